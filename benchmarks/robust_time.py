"""What robustness costs: time and memory of the robust fit beside counting, and how they grow."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Cell, Notebook, code_version
from benchmarks.contenders import AUTO
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
from benchmarks.scenes import draw_scene
from benchmarks.verdict import fit_exponent
from robustbn import (
    BayesianNetwork,
    MaximumLikelihoodEstimator,
    RobustEstimator,
    random_network,
)
from robustbn._rows.kernels.native import available_cpus

NOTE = (
    "Times are the fastest of interleaved rounds, as multiples of our own counting (encoding "
    "included) of the same rows in the same run. Memory is the growth of the peak of a fresh "
    "process during the fit, as a multiple of the rows given (one byte a cell), those rows not "
    "counted."
)
ADVERSARIES = ("none", "network", "product", "flipped", "clones", "mixture", "tilt", "rowflip")


def run(settings: Settings) -> Report:
    """Time the robust fit against counting and pgmpy, measure its memory, and let it grow."""
    warnings.simplefilter("ignore")
    shrink = 10 if settings.quick else 1
    tables, records, goals = [], [], []
    for part in (_against_counting, _memory, _growth):
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
    network = random_network("graph", 50, 500, random_state=settings.seed)
    lines, records, goals = [], [], []
    for n_rows in (500_000 // shrink, 5_000_000 // shrink):
        for kind in ADVERSARIES:
            rows = _poison(network, n_rows, kind, settings.seed)
            contenders: dict[str, Callable[[], object]] = {
                "counting": partial(_count, network, rows),
                "robust": partial(_fit, network, rows),
            }
            is_first = n_rows == 500_000 // shrink
            if is_first and kind == "network":
                contenders |= _pgmpy(network, rows)
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
            wanted = 25 if is_first else 12
            goals.append(_at_most(f"{n_rows:,} rows, {kind}: times counting", wanted, ratio))
            if "pgmpy" in walls:
                against = walls["robust"] / walls["pgmpy"]
                lines.append(
                    (f"{n_rows:,}", "pgmpy counting", "", f"{walls['pgmpy'] * 1e3:.0f}", "")
                )
                goals.append(_at_most(f"{n_rows:,} rows: times pgmpy's counting", 1, against))
    header = ("rows", "adversary", "counting, ms", "robust, ms", "times counting")
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


def _growth(settings: Settings, shrink: int) -> Part:
    """Let N, d and m grow, each alone; fit the exponent of time by least squares on logs."""
    lines, records, goals = [], [], []
    for name, cases, most in _growing(settings.seed, shrink):
        sizes, walls = [], []
        for size, network, n_rows in cases:
            rows = _poison(network, n_rows, "network", settings.seed)
            say(f"robust_time: growth of {name}, {size:,}")
            fits = time_interleaved({"robust": partial(_fit, network, rows)}, settings)
            sizes.append(size)
            walls.append(fits["robust"].wall_s)
            lines.append((name, f"{size:,}", f"{n_rows:,}", f"{walls[-1] * 1e3:.0f}"))
        exponent = fit_exponent(sizes, walls)
        lines.append((name, "exponent", "", f"**{exponent:.2f}**"))
        records.append({"grows": name, "sizes": sizes, "walls_s": walls, "exponent": exponent})
        goals.append(_at_most(f"exponent of time in {name}", most, exponent))
    if not settings.quick:
        _plot_growth(records)
    header = ("what grows", "size", "rows", "robust, ms")
    return Table("Growth", header, tuple(lines), n_words=1), records, goals


def _plot_growth(records: list[dict[str, Any]]) -> None:
    """Draw time against what grows, beside a line of slope 1, into results/growth.svg."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        say(f"robust_time: no plot: {missing}")
        return
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, record in zip(figure.subplots(1, len(records)), records, strict=True):
        sizes, walls = np.array(record["sizes"]), np.array(record["walls_s"])
        axes.loglog(sizes, walls, "o-", label=f"exponent {record['exponent']:.2f}")
        axes.loglog(sizes, walls[0] * sizes / sizes[0], "--", color="grey", label="slope 1")
        axes.set(xlabel=record["grows"], ylabel="seconds")
        axes.legend()
    figure.savefig(Path(__file__).parent / "results" / "growth.svg")


def _growing(
    seed: int, shrink: int
) -> Iterator[tuple[str, list[tuple[int, BayesianNetwork, int]], float]]:
    graph = random_network("graph", 50, 500, random_state=seed)
    rows = [n // shrink for n in (200_000, 500_000, 1_000_000, 2_000_000, 5_000_000)]
    yield "N", [(n, graph, n) for n in rows], 1.1
    trees = [(d, random_network("tree", d, random_state=seed)) for d in (25, 50, 100, 200, 400)]
    yield "d", [(d, tree, 500_000 // shrink) for d, tree in trees], 1.2
    graphs = [
        random_network("graph", 50, m, random_state=seed) for m in (100, 200, 500, 1000, 2000)
    ]
    yield "m", [(g.n_configurations, g, 2_000_000 // shrink) for g in graphs], 0.35


def _pgmpy(network: BayesianNetwork, rows: Any) -> dict[str, Callable[[], object]]:
    peer = next(p for p in PEERS if p.name == "pgmpy")
    try:
        return {"pgmpy": peer.prepare(network, rows)}
    except ImportError as missing:
        say(f"robust_time: pgmpy is skipped: {missing}")
        return {}


def _poison(network: BayesianNetwork, n_rows: int, kind: str, seed: int) -> Any:
    return draw_scene(network, kind, 0.1, n_rows, seed).rows


def _count(network: BayesianNetwork, rows: Any) -> object:
    return MaximumLikelihoodEstimator(network).fit(rows)


def _fit(network: BayesianNetwork, rows: Any) -> object:
    return RobustEstimator(network, random_state=0).fit(rows)


def _at_most(sentence: str, wanted: float, measured: float) -> Goal:
    return Goal(sentence, f"≤ {wanted:g}", f"{measured:.2f}", measured <= wanted)
