"""Measure many small cells, a few at a time, and keep each as soon as it is known.

For cells whose time is not compared: `runner.py` gives every cell a process of its own; here a few
processes stay, so that what several cells share (a table, a structure) is built once in each.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from threadpoolctl import threadpool_limits

from benchmarks.cells import NOT_MEASURED, Notebook, Record
from benchmarks.measure import Settings, say
from robustbn._rows.kernels.native import available_cpus

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    AnyCell = TypeVar("AnyCell", bound=DataclassInstance)
else:
    AnyCell = TypeVar("AnyCell")

TOLD_EVERY_S = 20.0


def measure_all(
    cells: Sequence[AnyCell],
    measure: Callable[[AnyCell], Record],
    notebook: Notebook,
    settings: Settings,
    n_jobs: int | None = None,
) -> list[Record]:
    """Return settings and results of the cells; those the notebook holds are not measured again.

    Parameters
    ----------
    measure : a function of a module, for it is called in other processes. What it raises is noted
        as the cell's failure.
    settings : `minutes` ends the run early: cells that were not begun are said to be missing.
    n_jobs : cells at a time; by default one a CPU, and one if the run is quick.
    """
    todo = [cell for cell in cells if notebook.find(cell) is None]
    if len(todo) < len(cells):
        say(f"{len(cells) - len(todo)} of {len(cells)} cells were measured before")
    n_jobs = n_jobs or (1 if settings.quick else available_cpus())
    started = told = time.monotonic()
    ends_at = started + 60 * settings.minutes if settings.minutes else None
    results = _measure_here(todo, measure, ends_at)
    if n_jobs > 1 and len(todo) > 1:
        results = _measure_elsewhere(todo, measure, ends_at, n_jobs)
    for n_done, (cell, result) in enumerate(results, 1):
        notebook.note(cell, result)
        now = time.monotonic()
        if now - told > TOLD_EVERY_S or n_done == len(todo):
            left = (now - started) / n_done * (len(todo) - n_done) / 60
            say(f"[{n_done}/{len(todo)}, {left:.1f} min left]")
            told = now
    return notebook.records(cells)


def list_missing(records: Sequence[Record]) -> tuple[str, ...]:
    """Return a sentence for each reason why cells have no result."""
    reasons: dict[str, int] = {}
    for record in records:
        if "failed" in record:
            reasons[record["failed"]] = reasons.get(record["failed"], 0) + 1
    return tuple(f"{n} of {len(records)} cells: {reason}" for reason, n in reasons.items())


def measure_safely(measure: Callable[[AnyCell], Record], cell: AnyCell) -> Record:
    """Return the result, or why there is none; one thread, no warnings."""
    try:
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore")
            return measure(cell)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}


def _measure_here(
    todo: Sequence[AnyCell], measure: Callable[[AnyCell], Record], ends_at: float | None
) -> Iterator[tuple[AnyCell, Record]]:
    for cell in todo:
        if ends_at is not None and time.monotonic() >= ends_at:
            say(f"the time limit was reached: {NOT_MEASURED}")
            return
        yield cell, measure_safely(measure, cell)


def _measure_elsewhere(
    todo: Sequence[AnyCell],
    measure: Callable[[AnyCell], Record],
    ends_at: float | None,
    n_jobs: int,
) -> Iterator[tuple[AnyCell, Record]]:
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload(["benchmarks.preload"])
    waiting, running = deque(todo), dict[Future[Record], AnyCell]()
    priority = os.nice(0) if hasattr(os, "nice") else 0
    with ProcessPoolExecutor(n_jobs, context, _begin, (priority,)) as pool:
        while waiting or running:
            is_over = ends_at is not None and time.monotonic() >= ends_at
            while waiting and not is_over and len(running) < n_jobs:
                cell = waiting.popleft()
                running[pool.submit(measure_safely, measure, cell)] = cell
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


def _begin(priority: int) -> None:
    """Be as polite as the process that asked: the server may have been started before."""
    with suppress(OSError, AttributeError):
        os.nice(max(0, priority - os.nice(0)))
