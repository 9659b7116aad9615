"""What robustness costs: time and memory of the robust fit beside counting."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell, Notebook, code_version
from benchmarks.contenders import AUTO
from benchmarks.fit_scenes import GROUP_OF, build_fit_scene, standard_network
from benchmarks.measure import (
    Goal,
    Report,
    Settings,
    Table,
    installed_versions,
    say,
    time_interleaved,
)
from benchmarks.peers import PEERS
from benchmarks.runner import Limits, run_cells
from robustbn import (
    BayesianNetwork,
)
from robustbn._rows.kernels.native import available_cpus

NOTE = (
    "Times are the fastest of interleaved rounds, as multiples of our own counting (encoding "
    "included) of the same rows in the same run. Memory is the growth of the peak of a fresh "
    "process during the fit, as a multiple of the rows given (one byte a cell), those rows not "
    "counted."
)
MOST = {  # times counting, with 500,000 rows and with ten times as many
    "clean": (16, 6),
    "plainly bad": (20, 6),
    "ambiguous": (60, 15),
    "wrong joins": (40, 15),
    "misfit": (110, 15),
    "holes": (60, 25),
}


def run(settings: Settings) -> Report:
    """Time the robust fit against counting and pgmpy, and measure its memory."""
    warnings.simplefilter("ignore")
    shrink = 10 if settings.quick else 1
    tables, records, goals = [], [], []
    for part in (_against_counting, _memory):
        table, found, judged = part(settings, shrink)
        tables.append(table)
        records += found
        goals += judged
    return Report(
        "robust_time",
        "What robustness costs",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pgmpy"]),
        tuple(tables),
        tuple(records),
        () if settings.quick else tuple(goals),
    )


Part = tuple[Table, list[dict[str, Any]], list[Goal]]


def _against_counting(settings: Settings, shrink: int) -> Part:
    network = standard_network(settings.seed)
    sizes = (500_000 // shrink, 5_000_000 // shrink)[: 2 if settings.full else 1]
    lines, records, goals = [], [], []
    for size, n_rows in enumerate(sizes):
        for kind, group in GROUP_OF.items():
            scene = build_fit_scene(network, kind, n_rows, settings.seed)
            contenders: dict[str, Callable[[], object]] = {
                "counting": scene.count,
                "robust": scene.fit,
            }
            if size == 0 and kind == "network":
                contenders |= _pgmpy(network, scene.rows)
            say(f"robust_time: {n_rows:,} rows, {kind}")
            timings = time_interleaved(contenders, settings)
            walls = {name: t.wall_s for name, t in timings.items()}
            ratio = walls["robust"] / walls["counting"]
            records.append({"n_rows": n_rows, "kind": kind, "ratio": ratio, **walls})
            lines.append(
                (
                    f"{n_rows:,}",
                    kind,
                    f"{walls['counting'] * 1e3:.1f}",
                    f"{walls['robust'] * 1e3:.0f}",
                    f"{ratio:.1f}",
                )
            )
            said = f"{n_rows:,} rows, {kind}: times counting"
            goals.append(_at_most(said, MOST[group][size], ratio))
            if "pgmpy" in walls:
                against = walls["robust"] / walls["pgmpy"]
                lines.append(
                    (f"{n_rows:,}", "pgmpy counting", "", f"{walls['pgmpy'] * 1e3:.0f}", "")
                )
                goals.append(_at_most(f"{n_rows:,} rows: times pgmpy's counting", 1, against))
    header = ("rows", "what is the matter", "counting, ms", "robust, ms", "times counting")
    title = "Graph of 50 binary nodes, m = 500, 10 % bad rows"
    return Table(title, header, tuple(lines), n_words=2), records, goals


def _memory(settings: Settings, shrink: int) -> Part:
    lines, records, goals = [], [], []
    n_rows = 1_000_000 // shrink
    n_threads = available_cpus()
    cells = [
        Cell("memory", "graph:50:500", kind, AUTO, 0.1, n_rows, settings.seed, n_threads, n_draws=0)
        for kind in ("network", "mixture", "rowflip")
    ]
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        notebook = Notebook(Path(folder) / "cells.jsonl", code_version())
        run_cells(cells, notebook, Limits(), preload=False)
        found = notebook.records(cells)
    for record in found:
        if "failed" in record:
            say(f"robust_time: memory, {record['adversary']}: {record['failed']}")
            continue
        kind, times = record["adversary"], record["peak_bytes"] / record["row_bytes"]
        lines.append((kind, f"{times:.2f}"))
        records.append({"kind": kind, "n_rows": n_rows, "memory": times})
        goals.append(_at_most(f"{kind}: memory beside the rows, times them", 2, times))
    title = f"Memory, {n_rows:,} rows of 50 binary nodes"
    return Table(title, ("adversary", "times the rows"), tuple(lines)), records, goals


def _pgmpy(network: BayesianNetwork, rows: Any) -> dict[str, Callable[[], object]]:
    peer = next(p for p in PEERS if p.name == "pgmpy")
    try:
        return {"pgmpy": peer.prepare(network, rows)}
    except ImportError as missing:
        say(f"robust_time: pgmpy is skipped: {missing}")
        return {}


def _at_most(sentence: str, wanted: float, measured: float) -> Goal:
    return Goal(sentence, f"≤ {wanted:g}", f"{measured:.2f}", measured <= wanted)
