"""Figures of a fit for a paper, by matplotlib: nothing global is touched, no backend is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Vector
from robustbn._show.measures import FEW_ROWS, UNMOVED, interval
from robustbn._show.page.drawing import (
    EDGE_COLOUR,
    INK_ON_SCALE,
    NODE_HEIGHT,
    OUTLINE,
    SCALE,
    STRONG_OUTLINE,
    colour_steps,
    lay_out,
    nice_top,
)
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, shorten
from robustbn.exceptions import MissingDependencyError, NetworkError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, QUIET = "#22262b", "#8f3d14", "#8e959d"
MAX_BARS = 40  # configurations or cells of a table that one figure shows
LEAST_BARS = 10  # cells that are shown though they hardly moved
MAX_PANELS = 6  # states of a table that stand beside each other
UNKNOWN = 0.05  # percent: an interval from less than this to the same below 100 says nothing


class Plots:
    """Figures of a fit, by matplotlib: `fit.plot.rounds().savefig("rounds.pdf")`.

    Each method returns a `matplotlib.figure.Figure` of its own. Needs `robustbn[plots]`.
    """

    def __init__(self, result: FitResult) -> None:
        self._result = result.shown(rows=False)

    def network(self) -> Figure:
        """Return the network, its nodes coloured by how far their tables moved."""
        result = self._result
        figure, axes = _figure(6.4, 4.8)
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import BoundaryNorm, ListedColormap
        from matplotlib.patches import FancyBboxPatch, PathPatch
        from matplotlib.path import Path

        picture = lay_out(result.network)
        moved = result.moves.moved
        top = nice_top(float(moved.max()))
        width = float(np.clip(picture.width / 100, 4.5, 30))
        figure.set_size_inches(width, width * picture.height / picture.width + 0.4)
        size = 12 * 0.86 * width / picture.width * 72
        letters = {"M": [Path.MOVETO], "L": [Path.LINETO], "C": [Path.CURVE4] * 3}
        for route in picture.routes.values():
            points = [(at[k], at[k + 1]) for _, at in route for k in range(0, len(at), 2)]
            codes = [code for letter, _ in route for code in letters[letter]]
            x, y = points[-1]
            points += [(x - 3.5, y - 6), (x, y), (x + 3.5, y - 6)]
            codes += [Path.MOVETO, Path.LINETO, Path.LINETO]
            axes.add_patch(PathPatch(Path(points, codes), fill=False, ec=EDGE_COLOUR, lw=size / 12))
        steps = colour_steps(moved)
        for i, (x, y, w) in enumerate(picture.boxes):
            is_strong = bool(result.moves.is_significant[i])
            axes.add_patch(
                FancyBboxPatch(
                    (x - w / 2, y - NODE_HEIGHT / 2),
                    w,
                    NODE_HEIGHT,
                    boxstyle="round,pad=0,rounding_size=7",
                    fc=SCALE[steps[i]],
                    ec=STRONG_OUTLINE if is_strong else OUTLINE,
                    lw=size / (9 if is_strong else 14),
                    zorder=2,
                )
            )
            text = _plain(picture.labels[i])
            colour = INK_ON_SCALE[steps[i]]
            axes.text(x, y, text, ha="center", va="center", size=size, color=colour, zorder=3)
        axes.set_xlim(0, picture.width)
        axes.set_ylim(picture.height, 0)
        axes.set_aspect("equal")
        axes.axis("off")
        norm = BoundaryNorm(np.linspace(0, 100 * top, len(SCALE) + 1), len(SCALE))
        bar = figure.colorbar(
            ScalarMappable(norm, ListedColormap(SCALE)), ax=axes, shrink=0.45, aspect=16, pad=0.01
        )
        bar.set_label("table moved by (%)")
        bar.set_ticks([0, 100 * top], labels=["0", f"{100 * top:g}"])
        return figure

    def tables(self, node: str | None = None) -> Figure:
        """Return a node's table, all rows against trusted rows; by default the most moved.

        Trusted rows have 95 % intervals. A panel a state while there are at most six; a table with
        more states is shown cell by cell. At most 40 configurations or cells are shown, those that
        add most to the table's move; the figure says so. Configurations with fewer than 10 trusted
        rows are pale, and what no trusted row shows is marked as not known.
        """
        result = self._result
        node = result.moved_tables[0].node if node is None else node
        if node not in result.network.parents:
            raise NetworkError(
                f"Unknown node {node!r}: it has no table to plot. The network has "
                f"{result.network.n_nodes} nodes, from {result.network.nodes[0]!r} to "
                f"{result.network.nodes[-1]!r}."
            )
        layout, i = result.network.layout, result.network.nodes.index(node)
        q = layout.table_of(i, result.network.probabilities)
        plain = layout.table_of(i, result.plain_network.probabilities)
        n = layout.table_of(i, result.counts).sum(axis=1)
        values = np.stack([plain, q, *interval(q, n[:, None])])
        draw = _draw_panels if layout.cards[i] <= MAX_PANELS else _draw_cells
        figure, more = draw(result, node, 100 * values, n)
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=2, fontsize=8, frameon=False)
        figure.supxlabel(f"{_plain(shorten(as_text(node), 40))} is ... (%){more}", fontsize=9)
        return figure

    def rounds(self) -> Figure:
        """Return what the rounds saw: the eigenvalues against their limit, the share distrusted."""
        figure, _ = _figure(6.4, 2.6, is_empty=True)
        left, right = figure.subplots(1, 2)
        tested = [r for r in self._result.rounds if r.eigenvalues]
        for axes in (left, right):
            _tidy(axes)
        if not tested:
            left.text(
                0.5, 0.5, "this method makes no test of rows", ha="center", transform=left.transAxes
            )
            right.axis("off")
            return figure
        for shown, style, label in (
            (tested[0], {"mfc": "white", "mec": ACCENT, "mew": 1.4}, "all rows"),
            (tested[-1], {"mfc": INK, "mec": INK}, "trusted rows"),
        ):
            ranks = np.arange(1, len(shown.eigenvalues) + 1)
            left.plot(ranks, shown.eigenvalues, "o", ms=5, label=label, **style)
        left.axhline(tested[-1].threshold, color=INK, lw=0.9, ls=(0, (5, 4)), label="limit")
        left.set(yscale="log", xlabel="eigenvalue, largest first", ylabel="variance / expected")
        _count_in_plain_numbers(left)
        left.legend(fontsize=7, frameon=False)
        numbers = [r.number for r in tested]
        right.plot(numbers, [r.eigenvalues[0] for r in tested], "o-", ms=4, lw=1, color=INK)
        right.step(
            numbers, [r.threshold for r in tested], where="mid", color=INK, lw=0.9, ls=(0, (5, 4))
        )
        right.set(yscale="log", xlabel="round", ylabel="largest eigenvalue")
        _count_in_plain_numbers(right)
        share = right.twinx()
        share.bar(numbers, [100 * r.removed for r in tested], width=0.5, color=ACCENT, alpha=0.25)
        share.set_ylabel("distrusted (%)", color=ACCENT)
        share.spines["top"].set_visible(False)
        return figure

    def rows(self) -> Figure:
        """Return how many rows have which trust; the heights are logarithmic."""
        figure, axes = _figure(4.2, 2.6)
        _tidy(axes)
        result = self._result
        edges = np.asarray(result.weight_edges, dtype=float)
        middles = (edges[:-1] + edges[1:]) / 2
        colours = [ACCENT if m < 0.5 else QUIET for m in middles]
        axes.bar(middles, result.weight_counts, width=0.9 * np.diff(edges), color=colours)
        axes.set(yscale="log", xlabel="trust in a row", ylabel="rows", xlim=(edges[0], edges[-1]))
        axes.set_ylim(bottom=0.7)
        return figure


def _draw_panels(result: FitResult, node: str, values: Vector, n: Vector) -> tuple[Figure, str]:
    plain, q = values[:2]
    _, n_configurations, card = values.shape
    shown = np.argsort(-n * np.abs(q - plain).sum(axis=1), kind="stable")[:MAX_BARS]
    figure, _ = _figure(2.2 + 1.5 * card, _height(len(shown)), is_empty=True)
    panels = figure.subplots(1, card, sharey=True, squeeze=False)[0]
    y = np.arange(len(shown))
    for v, axes in enumerate(panels):
        _draw_state(axes, y, values[:, shown, v], n[shown])
        axes.set_title(_plain(shorten(as_text(result.network.states[node][v]), 18)), fontsize=9)
    _name_lines(panels[0], [_configuration(result, node, int(k)) for k in shown])
    is_cut = len(shown) < n_configurations
    return figure, f"; {len(shown)} of {n_configurations:,} configurations" if is_cut else ""


def _draw_cells(result: FitResult, node: str, values: Vector, n: Vector) -> tuple[Figure, str]:
    """Draw the cells of a wide table below each other, those that moved most."""
    from matplotlib.ticker import MaxNLocator

    plain, q = values[:2]
    apart = np.abs(q - plain).ravel()
    n_moved = int((apart > 100 * UNMOVED).sum())
    order = np.argsort(-(n[:, None] * np.abs(q - plain)).ravel(), kind="stable")
    shown = order[: min(max(n_moved, LEAST_BARS), MAX_BARS)]
    k, v = np.divmod(shown, q.shape[1])
    figure, axes = _figure(6.4, _height(len(shown)))
    _draw_state(axes, np.arange(len(shown)), values[:, k, v], n[k])
    furthest = float(values[[0, 1, 3]][:, k, v].max(initial=1.0))
    if furthest < 60:  # many states share the whole: each has little
        axes.set_xlim(-0.04 * furthest, 1.06 * furthest)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    states, parents = result.network.states[node], result.network.parents[node]
    lines = []
    for a, b in zip(k.tolist(), v.tolist(), strict=True):
        given = f" when {_configuration(result, node, a)}" if parents else ""
        lines.append(_plain(shorten(as_text(states[b]), 18)) + given)
    _name_lines(axes, lines)
    apart[shown] = 0
    is_cut = len(shown) < q.size
    rest = f"the others moved by at most {apart.max():.2g} %"
    return figure, f"; {len(shown)} of {q.size:,} cells, {rest}" if is_cut else ""


def _height(n_lines: int) -> float:
    return max(1.6, 0.26 * n_lines + 1.1)


def _name_lines(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(np.arange(len(names)), names, fontsize=7.5)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _draw_state(axes: Axes, y: NDArray[np.int64], values: Vector, n: Vector) -> None:
    """Draw one value a line, in percent: plain, robust and its interval."""
    _tidy(axes)
    plain, q, low, high = values
    is_known = (low > UNKNOWN) | (high < 100 - UNKNOWN)
    axes.hlines(y, np.minimum(plain, q), np.maximum(plain, q), color="#d8d3c8", lw=1, zorder=1)
    axes.scatter(plain, y, s=18, fc="white", ec=ACCENT, lw=1.2, zorder=2, label="all rows")
    for is_few, alpha in ((False, 1.0), (True, 0.35)):
        which = ((n < FEW_ROWS) == is_few) & is_known
        label = None if is_few else "trusted rows"
        axes.hlines(y[which], low[which], high[which], color=INK, lw=1.6, alpha=alpha, zorder=3)
        axes.scatter(q[which], y[which], s=16, color=INK, alpha=alpha, lw=0, zorder=4, label=label)
    for line in y[~is_known]:
        axes.text(50, line, "not known", ha="center", va="center", fontsize=7, color=QUIET)
    axes.set_xlim(-4, 104)
    axes.set_xticks([0, 50, 100])
    axes.tick_params(axis="y", length=0)


def _figure(width: float, height: float, is_empty: bool = False) -> tuple[Figure, Axes]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "Figures need matplotlib: pip install 'robustbn[plots]'"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Any = None if is_empty else figure.subplots()
    return figure, axes


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def _count_in_plain_numbers(axes: Axes) -> None:
    """Write 2 and not 2 x 10^0 on a logarithmic axis; whole numbers on the other."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _plain(text: str) -> str:
    """Keep matplotlib from reading dollar signs as mathematics."""
    return text.replace("$", r"\$")


def _configuration(result: FitResult, node: str, k: int) -> str:
    network = result.network
    i = network.nodes.index(node)
    cell = network.layout.cell_start[i] + k * network.layout.cards[i]
    _, parents, _ = network.describe_cell(int(cell))
    given = [f"{shorten(as_text(p), 14)}={shorten(as_text(v), 12)}" for p, v in parents.items()]
    return _plain(", ".join(given)) or "always"
