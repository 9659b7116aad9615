"""Figures of the page, from stored numbers: readable by the colour-blind, and without colours.

Every line has its own marker and dash beside its colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Record
from benchmarks.contenders import AUTO, FLOOR, GIVEN, METHODS
from benchmarks.scenes import build_network
from benchmarks.verdict import errors_by_method, group_by

# colour (Okabe and Ito's), marker, dash
STYLES: dict[str, tuple[str, str, str]] = {
    FLOOR: ("#000000", "", ":"),
    "counting": ("#999999", "s", "-"),
    "one_shot": ("#E69F00", "^", "--"),
    "que_paper": ("#56B4E9", "D", "-."),
    AUTO: ("#D55E00", "o", "-"),
    GIVEN: ("#0072B2", "x", "--"),
}


def draw_paper(records: Sequence[Record], path: Path, made: str) -> Path:
    """Draw the paper's figure as SVG, with what made its numbers in it; return the path."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "robustbn", "font.size": 8, "axes.grid": False}):
        _draw_panels(records).savefig(path, metadata={"Description": made, "Date": None})
    return path


def draw_growth(records: Sequence[Record], path: Path, made: str) -> Path:
    """Draw time and memory against what grows, beside lines of slope 1."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * len(records), 5.4), layout="constrained")
    grid = figure.subplots(2, len(records), squeeze=False)
    for column, record in enumerate(records):
        sizes = np.array(record["sizes"])
        lines = (("seconds", record["walls_s"]), ("MiB", np.array(record["peak_bytes"]) / 2**20))
        for axes, (unit, values) in zip(grid[:, column], lines, strict=True):
            values = np.maximum(np.array(values), 1e-3)
            axes.loglog(sizes, values, "o-")
            axes.loglog(sizes, values[-1] * sizes / sizes[-1], "--", color="grey", label="slope 1")
            axes.set(xlabel=record["grows"], ylabel=unit)
        grid[0, column].set_title(f"exponent {record['exponent']:.2f}")
    grid[0, 0].legend()
    figure.savefig(path, metadata={"Description": made, "Date": None})
    return path


def _draw_panels(records: Sequence[Record]) -> Any:
    """Draw error against m: a column a structure, a row an adversary."""
    by_panel = {
        (adversary, structure): group
        for (adversary,), rows in group_by(records, "adversary").items()
        for structure, group in _by_structure(rows).items()
    }
    adversaries = list(dict.fromkeys(a for a, _ in by_panel))
    structures = list(dict.fromkeys(s for _, s in by_panel))
    figure, axes = _make_grid(len(adversaries), len(structures))
    for (adversary, structure), group in by_panel.items():
        panel = axes[adversaries.index(adversary)][structures.index(structure)]
        lines: dict[str, list[tuple[float, float, float]]] = {}
        for (network,), cell in group_by(group, "network").items():
            m = build_network(network, cell[0]["seed"]).n_configurations
            for method, error in errors_by_method(cell).items():
                lines.setdefault(method, []).append((m, error.mean, error.reach))
        _plot_lines(panel, lines)
        panel.set(title=f"{structure}; bad rows: {adversary}", xlabel="m", ylabel="total variation")
    _add_legend(figure, axes)
    return figure


def _by_structure(records: Sequence[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        kind, *sizes = record["network"].split(":")
        name = f"{kind}, d = {sizes[0]}" if kind == "graph" else kind
        groups.setdefault(name, []).append(record)
    return groups


def _plot_lines(panel: Any, lines: dict[str, list[tuple[float, float, float]]]) -> None:
    for method in (m for m in METHODS if m in lines):
        color, marker, dash = STYLES[method]
        x, y, reach = (np.array(column) for column in zip(*sorted(lines[method]), strict=True))
        width = 2.0 if method == AUTO else 1.2
        label = METHODS[method].title
        # open markers of two sizes: lines that lie on one another can still be told apart
        size = 7 if method == AUTO else 4
        style = {"color": color, "marker": marker or None, "linestyle": dash, "linewidth": width}
        panel.plot(x, y, label=label, markersize=size, markerfacecolor="none", **style)
        if np.isfinite(reach).all():
            panel.fill_between(
                x, np.maximum(y - reach, y / 10), y + reach, color=color, alpha=0.15, linewidth=0
            )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.grid(which="major", color="#dddddd", linewidth=0.5)
    _set_ticks(panel, {x for line in lines.values() for x, _, _ in line})


def _make_grid(n_lines: int, n_columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * n_columns, 2.4 * n_lines + 0.9), layout="constrained")
    return figure, figure.subplots(n_lines, n_columns, squeeze=False)


def _set_ticks(panel: Any, places: Iterable[float]) -> None:
    """Mark the sizes that were measured, and 1, 2 and 5 in every decade of the other axis."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator, StrMethodFormatter

    panel.set_xticks(sorted(places))
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.xaxis.set_minor_locator(NullLocator())
    low, high = panel.get_ylim()
    if high / low < 1000:
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.yaxis.set_minor_locator(NullLocator())


def _add_legend(figure: Any, axes: Any) -> None:
    found: dict[str, Any] = {}
    for panel in axes.ravel():
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    n_columns = min(len(found), max(2, int(figure.get_size_inches()[0] / 1.5)))
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=n_columns)
