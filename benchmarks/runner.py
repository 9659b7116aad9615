"""Measure many cells, each in a process of its own; no cell can stop the others."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell, Notebook, Record
from benchmarks.measure import say
from benchmarks.scenes import scene_files

POLL_S = 0.5
PATHS = re.compile(r"/(?:[^/\s:'\"]+/)+([^/\s:'\"]+)")  # of a file; its name alone is told


@dataclass(frozen=True)
class Limits:
    """How much a run may take.

    Parameters
    ----------
    n_jobs : cells measured at a time.
    cell_s : seconds for one cell, drawing its rows included.
    ends_at : `time.monotonic()` at which no new cell is begun; None for no limit.
    """

    n_jobs: int = 1
    cell_s: float = 600.0
    ends_at: float | None = None

    def is_over(self) -> bool:
        """Whether no new cell may be begun."""
        return self.ends_at is not None and time.monotonic() >= self.ends_at


@dataclass(frozen=True, eq=False)
class _Job:
    cell: Cell
    process: Any
    started: float


def run_cells(
    cells: Sequence[Cell], notebook: Notebook, limits: Limits, *, preload: bool = True
) -> None:
    """Measure the cells that the notebook does not hold, and note each as soon as it ends.

    A cell that raises, dies or takes too long is noted as failed, with the reason.
    """
    todo = [cell for cell in cells if notebook.find(cell) is None]
    if len(todo) < len(cells):
        say(f"{len(cells) - len(todo)} of {len(cells)} cells were measured before")
    context = _choose_context(preload)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        waiting, running = list(reversed(todo)), dict[Connection, _Job]()
        uses = Counter(cell.scene for cell in todo)
        n_done = 0
        while running or (waiting and not limits.is_over()):
            while waiting and len(running) < limits.n_jobs and not limits.is_over():
                cell = waiting.pop()
                receiver, job = _start(context, cell, Path(folder))
                running[receiver] = job
            for receiver, result in _collect(running, limits.cell_s):
                cell = running.pop(receiver).cell
                notebook.note(cell, result)
                n_done += 1
                _tell(cell, result, n_done, len(todo), time.monotonic() - started)
                uses[cell.scene] -= 1
                if not uses[cell.scene]:
                    _remove(scene_files(cell, Path(folder)))
    if waiting:
        say(f"{len(waiting)} cells were not begun: the time limit was reached; run again to go on")


def _choose_context(preload: bool) -> Any:
    """Fork from a server that has imported everything, where there are such servers."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.preload" if preload else "benchmarks.worker"])
    return context


def _start(context: Any, cell: Cell, folder: Path) -> tuple[Connection, _Job]:
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(cell, folder, sender), daemon=True)
    process.start()
    sender.close()
    return receiver, _Job(cell, process, time.monotonic())


def _work(cell: Cell, folder: Path, sender: Connection) -> None:
    """Run in the process of the cell."""
    from benchmarks.worker import measure_cell

    tempfile.tempdir = str(folder)  # pyAgrum leaves files behind
    try:
        result = measure_cell(cell, folder)
    except MemoryError:
        result = {"failed": "ran out of memory"}
    except Exception as error:
        message = PATHS.sub(r"\1", " ".join(str(error).split()))[:300]
        result = {"failed": f"{type(error).__name__}: {message}"}
    sender.send(result)
    sender.close()
    os._exit(0)  # taking down all that was imported would take longer than many cells


def _collect(running: dict[Connection, _Job], cell_s: float) -> Iterable[tuple[Connection, Record]]:
    """Return the results of the cells that have ended, after waiting a moment for one."""
    ready = set(wait(list(running), timeout=POLL_S))
    ended: list[tuple[Connection, Record]] = []
    for receiver, job in running.items():
        if receiver in ready:
            ended.append((receiver, _receive(receiver, job)))
        elif time.monotonic() - job.started > cell_s:
            job.process.kill()
            ended.append((receiver, {"failed": f"took more than {cell_s:g} s"}))
    for receiver, _ in ended:
        running[receiver].process.join()
        receiver.close()
    return ended


def _receive(receiver: Connection, job: _Job) -> Record:
    try:
        result: Record = receiver.recv()
    except EOFError:
        job.process.join()
        code = job.process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            hint = ", probably for want of memory" if name == "SIGKILL" else ""
            return {"failed": f"the process was ended by {name}{hint}"}
        return {"failed": f"the process ended with exit code {code}"}
    return result


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _tell(cell: Cell, result: Record, n_done: int, n_all: int, elapsed: float) -> None:
    left = elapsed / n_done * (n_all - n_done)
    if "failed" in result:
        outcome = f"FAILED: {result['failed']}"
    else:
        outcome = f"{result['seconds']:.2f} s"
        if "tv" in result:
            outcome = f"TV {result['tv']:.4f}, {outcome}"
    say(f"[{n_done}/{n_all}, {left / 60:.1f} min left] {cell.describe()}: {outcome}")
