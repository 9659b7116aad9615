"""Fits without end: what grows, what is left behind, and whether all give the same answer.

`python -m benchmarks soak --fits 1000`: so many fits in one process, whose memory, threads and open
files are looked at; fits from eight threads at once, in forked and in spawned processes, compared
to the last bit; and fits that are interrupted, or that run out of memory at some allocation, after
which the estimator must be as it was. Ends with 1 if any of it is not so.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import robustbn
from benchmarks.measure import say
from robustbn._core import allocate
from robustbn.simulate import corrupt

N_WARM = 30  # fits before memory is looked at: caches fill
MOST_GROWTH = 5 * 2**20  # bytes
N_THREADS = 8


def draw_rows(n_rows: int = 3000) -> tuple[robustbn.BayesianNetwork, Any]:
    """Return a network, and bad rows of which some miss values."""
    network = robustbn.random_network("tree", 12, random_state=3)
    rows = robustbn.sample(network, n_rows, random_state=3)
    codes = corrupt(rows, network, "flipped", eps=0.15, random_state=3)[0]
    table = {n: codes[:, i].astype(str).astype(object) for i, n in enumerate(network.nodes)}
    table[network.nodes[0]][::9] = None
    return network, table


def fit(network: robustbn.BayesianNetwork, table: Any) -> bytes:
    """Return what a fit learned, as bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = robustbn.RobustEstimator(network, random_state=0).fit(table)
    return found.counts_.tobytes() + found.row_weights_.tobytes() + found.status_.encode()


def resident_bytes() -> int:
    """Return the memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def count_left() -> tuple[int, int]:
    """Return how many threads and open files there are, those of the system counted too."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def fit_often(n_fits: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """Return by how many bytes fits grow the process, and what was open before and after."""
    network, table = draw_rows()
    wanted = fit(network, table)
    for _ in range(N_WARM):
        fit(network, table)
    gc.collect()
    before, left_before = resident_bytes(), count_left()
    for k in range(n_fits):
        if fit(network, table) != wanted:
            raise AssertionError(f"fit {k} gave another answer")
        if k % 100 == 99:
            say(f"{k + 1} of {n_fits} fits, {(resident_bytes() - before) / 2**20:+.1f} MB")
    gc.collect()
    return resident_bytes() - before, left_before, count_left()


def fit_in_threads(n_fits: int) -> bool:
    """Whether fits from eight threads at once give the answer of one alone."""
    network, table = draw_rows()
    wanted = fit(network, table)
    with ThreadPoolExecutor(N_THREADS) as pool:
        return all(f == wanted for f in pool.map(lambda _: fit(network, table), range(n_fits)))


def fit_elsewhere(queue: Any) -> None:
    """Put what a fit learned into a queue."""
    queue.put(fit(*draw_rows()))


def fit_in_process(method: str) -> bool:
    """Whether a process that is forked or spawned after a fit gives the same answer."""
    wanted = fit(*draw_rows())
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python: a fork with threads about
        child = context.Process(target=fit_elsewhere, args=(queue,))
        child.start()
    found = queue.get(timeout=120)
    child.join()
    return bool(found == wanted)


def is_as_it_was(disturb: Callable[[], Any], expected: type[BaseException]) -> tuple[bool, bool]:
    """Return whether a fit was disturbed at all, and whether its estimator is as it was before.

    Parameters
    ----------
    disturb : a context in which the fit is to fail with what is expected.
    """
    network, table = draw_rows()
    estimator = robustbn.RobustEstimator(network, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit({n: v[:500] for n, v in table.items()})
        before = {name: id(value) for name, value in vars(estimator).items()}
        said = str(estimator.status_), estimator.counts_.copy()
        try:
            with disturb():
                estimator.fit(table)
            is_disturbed = False
        except expected:
            is_disturbed = True
    if not is_disturbed:
        return False, True
    same = {name: id(value) for name, value in vars(estimator).items()} == before
    same &= estimator.status_ == said[0] and bool(np.array_equal(estimator.counts_, said[1]))
    again = robustbn.RobustEstimator(network, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same &= bool(np.array_equal(estimator.fit(table).counts_, again.fit(table).counts_))
    return True, same


class InterruptAfter:
    """A context in which Ctrl-C is pressed after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()


def starve_at(number: int) -> Any:
    """Return a context in which the allocation of that number finds no memory."""
    n_asked, empty = [0], np.empty

    def refuse(*shape: Any, **settings: Any) -> Any:
        n_asked[0] += 1
        if n_asked[0] == number:
            raise MemoryError
        return empty(*shape, **settings)

    return mock.patch.object(allocate.np, "empty", refuse)


def fit_interrupted(n_fits: int, seed: int) -> tuple[int, int]:
    """Return how many fits were interrupted, and how many estimators stayed as they were."""
    rng, network_and_table = np.random.default_rng(seed), draw_rows()
    start = time.perf_counter()
    fit(*network_and_table)
    took, disturbed, same = time.perf_counter() - start, 0, 0
    for _ in range(n_fits):
        seconds = float(rng.random() * took)
        was, is_same = is_as_it_was(lambda s=seconds: InterruptAfter(s), KeyboardInterrupt)
        disturbed, same = disturbed + was, same + (was and is_same)
    return disturbed, same


def fit_starved(n_fits: int) -> tuple[int, int]:
    """Return how many fits ran out of memory, and how many estimators stayed as they were."""
    disturbed = same = 0
    for number in range(1, n_fits + 1):
        was, is_same = is_as_it_was(lambda n=number: starve_at(n), MemoryError)
        disturbed, same = disturbed + was, same + (was and is_same)
    return disturbed, same


def main(arguments: list[str]) -> None:
    """Soak as long as the command line asks for, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak", description=__doc__)
    parser.add_argument("--fits", type=int, default=1000, help="in one process")
    parser.add_argument("--disturbed", type=int, default=100, help="interrupted, and starved")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    grown, before, after = fit_often(chosen.fits)
    print(f"{chosen.fits} fits: {grown / 2**20:+.2f} MB; threads and files {before} -> {after}")
    is_good = grown < MOST_GROWTH and after <= before
    checks = {"8 threads at once": fit_in_threads(10 * N_THREADS)}
    checks |= {method: fit_in_process(method) for method in ("fork", "spawn")}
    for name, is_same in checks.items():
        print(f"{name}: {'the same answer' if is_same else 'ANOTHER ANSWER'}")
    told = {
        "interrupted": fit_interrupted(chosen.disturbed, chosen.seed),
        "without memory": fit_starved(chosen.disturbed),
    }
    for name, (disturbed, same) in told.items():
        print(f"{name}: {disturbed} fits, {same} of them left the estimator as it was")
        is_good &= disturbed == same
    sys.exit(0 if is_good and all(checks.values()) else 1)
