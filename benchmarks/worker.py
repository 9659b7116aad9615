"""Measure one cell in this process: error, rows caught, seconds, peak memory."""

from __future__ import annotations

import gc
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cells import Cell, Record
from benchmarks.contenders import FLOOR, METHODS, Fitted, Task
from benchmarks.scenes import Scene, load_scene
from robustbn import total_variation

WARM_ROWS = 500  # first calls load code; they are made with this many rows before the clock starts


def measure_cell(cell: Cell, folder: Path) -> Record:
    """Return what came out of a cell; the rows are read from, or written to, the folder."""
    with warnings.catch_warnings(), threadpool_limits(limits=cell.n_threads):
        warnings.simplefilter("ignore")
        scene = load_scene(cell, folder)
        task = Task(
            scene.network.with_cpts(None),
            scene.rows,
            scene.good if cell.method == FLOOR else scene.rows[:0],
            cell.eps,
            cell.seed,
            cell.n_threads,
        )
        _warm_up(task, cell.method)
        fitted, costs = _measure_costs(task, cell)
        return {
            "n_rows_given": len(scene.rows),
            "row_bytes": scene.rows.nbytes,
            **costs,
            **_judge_tables(scene, fitted, cell),
            **_judge_rows(scene, fitted),
            **(fitted.facts or {}),
        }


def _warm_up(task: Task, method: str) -> None:
    few = replace(task, rows=task.rows[:WARM_ROWS].copy(), good=task.good[:WARM_ROWS])
    try:
        METHODS[method].prepare(few)()
    except ImportError:
        raise
    except Exception:  # so few rows may be too few: that is no failure
        return


def _measure_costs(task: Task, cell: Cell) -> tuple[Fitted, Record]:
    method = METHODS[cell.method]
    run = method.prepare(task)
    walls, cpus, peak, found = [], [], 0, None
    for _ in range(cell.n_rounds):
        del found
        gc.collect()
        before = reset_peak()
        cpu, wall = time.process_time(), time.perf_counter()
        found = run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        peak = max(peak, peak_bytes() - before)
    costs = {"seconds": min(walls), "cpu_s": min(cpus), "walls_s": walls, "peak_bytes": peak}
    return method.read(task, found), costs


def _judge_tables(scene: Scene, fitted: Fitted, cell: Cell) -> Record:
    if fitted.network is None or not cell.n_draws:
        return {}
    distance = total_variation(
        scene.network, fitted.network, n_draws=cell.n_draws, random_state=cell.seed
    )
    return {"tv": float(distance), "tv_error": distance.standard_error}


def _judge_rows(scene: Scene, fitted: Fitted) -> Record:
    """Return precision and recall of what was caught, and the share of good rows lost."""
    if fitted.is_caught is None:
        return {}
    caught, bad = fitted.is_caught, scene.is_bad
    n_hit = int((caught & bad).sum())
    judged: dict[str, Any] = {"n_bad": int(bad.sum()), "n_caught": int(caught.sum())}
    if bad.any():
        judged["recall"] = n_hit / int(bad.sum())
        judged["precision"] = n_hit / int(caught.sum()) if caught.any() else None
    judged["lost"] = float(np.mean(caught[~bad]))
    return judged


# --- memory ---------------------------------------------------------------------------------------


def reset_peak() -> int:
    """Forget the peak of this process's memory where the system can; return the bytes in use."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _read_status("VmRSS")
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    """Return the peak of this process's resident memory since `reset_peak`."""
    try:
        return _read_status("VmHWM")
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _read_status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024
