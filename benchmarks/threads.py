"""What a second thread brings: every pass, a count and robust fits, with one and with two."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.fit_scenes import build_fit_scene, standard_network
from benchmarks.measure import (
    Goal,
    Report,
    Settings,
    Table,
    Timing,
    installed_versions,
    say,
    time_interleaved,
)
from robustbn import MaximumLikelihoodEstimator, RobustEstimator
from robustbn._core.protocols import TwoSides
from robustbn._rows.kernels import native
from robustbn.simulate import sample

SIZES = (100_000, 500_000, 5_000_000)
JUDGED_SIZE = 500_000
LEAST_GAIN = 1.7
FEW_ROWS = 256  # one block: what a fit costs besides its rows
FIT, FIXED = "fit by counting", f"fit by counting, {FEW_ROWS} rows"
PASSES = (
    "encode", "count, weighted", "project, 4 columns", "score, 8 columns", "gram, 8 columns",
    "divide, 5 columns", "divide in two, 5 columns", "odds, 5 columns", "fingerprints", "sample",
)  # fmt: skip
ROBUST = ("none", "rowflip")
HEADER = ("what", "rows", "1 thread, ms", "2 threads, ms", "gain")
NOTE = (
    "The graph of 50 binary nodes, m = 500. Both numbers of threads take turns in one process; "
    "wall clock of the fastest round. A fit is its passes and what Python does once, which a "
    f"second thread does not speed up: the line of {FEW_ROWS} rows. Neighbours on the machine "
    "may take a core at any time, so gains scatter."
)
Name = tuple[str, int, int]  # what, rows, threads


def run(settings: Settings) -> Report:
    """Time everything with one thread and with two."""
    timings: dict[Name, Timing] = {}
    for n_rows in SIZES if settings.full else SIZES[:2]:
        say(f"threads: {n_rows:,} rows")
        timings |= time_interleaved(list_contenders(n_rows, settings.seed), settings)
    gains = find_gains(timings)
    lines = tuple(
        (
            what,
            f"{n_rows:,}",
            f"{timings[what, n_rows, 1].wall_s * 1e3:.2f}",
            f"{timings[what, n_rows, 2].wall_s * 1e3:.2f}",
            f"{gain:.2f}",
        )
        for (what, n_rows), gain in gains.items()
    )
    records = [
        {"what": what, "n_rows": n, "n_threads": k, **timing.to_record()}
        for (what, n, k), timing in timings.items()
    ]
    return Report(
        "threads",
        "What a second thread brings",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        (Table("One thread and two", HEADER, lines, n_words=2),),
        tuple(records),
        () if settings.quick else tuple(judge(gains)),
    )


def find_gains(timings: dict[Name, Timing]) -> dict[tuple[str, int], float]:
    """Return by how much two threads are faster than one."""
    return {
        (what, n): timings[what, n, 1].wall_s / timing.wall_s
        for (what, n, k), timing in timings.items()
        if k == 2
    }


def judge(gains: dict[tuple[str, int], float]) -> list[Goal]:
    """Return whether the passes are fast enough with a second thread."""
    return [
        Goal(
            f"{what}, {n:,} rows: two threads over one",
            f"≥ {LEAST_GAIN}",
            f"{gain:.2f}",
            gain >= LEAST_GAIN,
        )
        for (what, n), gain in gains.items()
        if n == JUDGED_SIZE and what in PASSES
    ]


def hash_again(rows: native.NativeRows) -> object:
    """Return the fingerprints of rows, which keep them, from another pass."""
    vars(rows).pop("_fingerprints", None)
    return rows.fingerprints()


def list_contenders(n_rows: int, seed: int) -> dict[Name, Callable[[], object]]:
    """Return what to time, by its name, the rows and the threads."""
    network, rng = standard_network(seed), np.random.default_rng(seed)
    codes, layout = sample(network, n_rows, seed), network.layout
    weights = rng.random(n_rows).astype(np.float32)
    four, eight = (rng.normal(size=(network.n_cells, r)) for r in (4, 8))
    spoilt = {kind: build_fit_scene(network, kind, n_rows, seed) for kind in ROBUST}
    contenders: dict[Name, Callable[[], object]] = {}
    for k in (1, 2):
        rows = native.encode(layout, codes, k)
        calls: tuple[Callable[[], Any], ...] = (
            partial(native.encode, layout, codes, k),
            partial(rows.count, weights),
            partial(rows.project, four),
            partial(rows.score, eight),
            partial(rows.gram, eight, None, weights),
            partial(rows.divide, four, None, weights),
            partial(rows.divide_in_two, four, None, TwoSides(0), weights),
            partial(rows.odds, four, None, 0),
            partial(hash_again, rows),
            partial(sample, network, n_rows, seed, n_threads=k),
        )
        counting = MaximumLikelihoodEstimator(network, n_threads=k)
        contenders |= {(what, n_rows, k): call for what, call in zip(PASSES, calls, strict=True)}
        contenders[FIXED, n_rows, k] = partial(counting.fit, codes[:FEW_ROWS])
        contenders[FIT, n_rows, k] = partial(counting.fit, codes)
        for kind, scene in spoilt.items():
            robust = RobustEstimator(scene.network, random_state=0, n_threads=k)
            contenders[f"robust fit, {kind}", n_rows, k] = partial(robust.fit, scene.rows)
    return contenders
