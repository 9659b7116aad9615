"""Two fits side by side: tables that moved, kinds of bad rows that came and went."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Setting
from robustbn._core.groups import Group
from robustbn._core.numbers import count
from robustbn._core.protocols import Vector
from robustbn._core.tables import arrange_table
from robustbn._networks.files import write_text
from robustbn._show.advice import say_state, verdict
from robustbn._show.frames import columns_of
from robustbn._show.measures import expect_moves
from robustbn._show.result import FitResult
from robustbn._show.words import percent, say_misfit
from robustbn._tables.sources import build_frame
from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork

ALIKE_KINDS = 0.5  # below, two kinds of bad rows differ in more than they share
MOST_DIFFERENCES = 5  # of two networks, that are named
MOST_LINES = 5  # of tables and of kinds, when a comparison is printed


@dataclass(frozen=True)
class ChangedCell:
    """A probability in two fits.

    Parameters
    ----------
    node, parents, state : the cell.
    before, after : its probability in the first fit, and in the second.
    z : their difference, in standard errors of both together.
    rows_before, rows_after : weight of the trusted rows that show its configuration.
    weight : share of the rows of both, on average, that it moves.
    """

    node: str
    parents: dict[str, Hashable]
    state: Hashable
    before: float
    after: float
    z: float
    rows_before: float
    rows_after: float
    weight: float

    @property
    def says(self) -> str:
        """The cell in words."""
        return say_state(self.parents, self.state)


@dataclass(frozen=True)
class ChangedTable:
    """How far a table is from what it was.

    Parameters
    ----------
    node : whose table it is.
    moved : share of the rows in which the node would have another state.
    error : what sampling alone would make of it in 95 of 100 cases, given the rows of both.
    cell : the one that adds most.
    """

    node: str
    moved: float
    error: float
    cell: ChangedCell

    @property
    def is_significant(self) -> bool:
        """Whether it moved by more than its error."""
        return self.moved > self.error


@dataclass(frozen=True)
class ChangedKind:
    """A kind of bad rows that stayed, came or went.

    Parameters
    ----------
    before, after : the kind in the first fit, and in the second; None where it is not there.
    similarity : of the two, from 0 to 1; of one alone, to the nearest on the other side.
    """

    before: Group | None
    after: Group | None
    similarity: float

    @property
    def what(self) -> str:
        """Whether it stayed, came or went."""
        if self.before is None:
            return "came"
        return "went" if self.after is None else "stayed"

    @property
    def shown(self) -> Group:
        """The kind, as the later fit has it."""
        kind = self.before if self.after is None else self.after
        assert kind is not None  # noqa: S101 - one of the two is there
        return kind

    def __str__(self) -> str:
        shares = [percent(k.share) if k is not None else "none" for k in (self.before, self.after)]
        near = f"{self.similarity:.0%} alike"
        if self.what != "stayed":
            near = f"the nearest is {near}" if self.similarity else "no other is like it"
        cause = self.shown.cause
        cells = "; ".join(str(cell) for cell in self.shown.unusual[:2])
        said = f"{cause.name}. {cause.text}" if cause else cells
        return f"{self.what}: {shares[0]} -> {shares[1]} of the rows ({near}): {said}"


# --- which tables can be compared -----------------------------------------------------------------


def common_nodes(a: BayesianNetwork, b: BayesianNetwork) -> list[str]:
    """Return the nodes that have the same parents and states in both, in any order."""
    other = set(b.nodes)

    def is_alike(node: str) -> bool:
        return node in other and set(a.states[node]) == set(b.states[node])

    return [
        node
        for node in a.nodes
        if is_alike(node)
        and set(a.parents[node]) == set(b.parents[node])
        and all(map(is_alike, a.parents[node]))
    ]


def refuse_differences(a: FitResult, b: FitResult) -> None:
    """Refuse fits of different networks, and say what differs."""
    found: list[str] = []
    for one, two in ((a, b), (b, a)):
        own, other = one.network, two.network
        nodes = [node for node in own.nodes if node not in other.states]
        edges = [f"{p} -> {c}" for p, c in own.edges if (p, c) not in set(other.edges)]
        found += [f"the node {node} is in {one.title} only" for node in nodes]
        found += [f"the edge {edge} is in {one.title} only" for edge in edges]
    for node, states in a.network.states.items():
        others = b.network.states.get(node, states)
        if set(states) != set(others):
            each = " and ".join(", ".join(map(str, s)) for s in (states, others))
            found.append(f"the states of {node} are {each}")
    if found:
        more = len(found) - MOST_DIFFERENCES
        rest = f"; and {more} more differences" if more > 0 else ""
        raise NetworkError(
            Advice(
                f"{a.title} and {b.title} are fits of different networks: "
                f"{'; '.join(found[:MOST_DIFFERENCES])}{rest}. To compare only the nodes that "
                "both have in common, use ",
                Setting("common", True),
                ".",
            )
        )


def _family(
    side: FitResult, values: Vector, node: str, like: BayesianNetwork
) -> NDArray[np.float64]:
    """Return the values on the cells of a node, parents and states in the order of a network."""
    network = side.network
    axes, wanted = (*network.parents[node], node), (*like.parents[node], node)
    cells = network.layout.table_of(network.nodes.index(node), values)
    array = cells.reshape(*(len(network.states[name]) for name in axes), *values.shape[1:])
    return arrange_table(array, axes, wanted, network.states, like.states)


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ComparedCells:
    """The cells of a node in two fits, by configuration and state; shape (K, card).

    Notation: k a configuration, P(k) its share among the trusted rows of both fits.

        moved = sum over k of P(k) * 1/2 sum over v of |after[k, v] - before[k, v]|
    """

    node: str
    like: BayesianNetwork
    # before, after, error: probabilities, and the standard error of their difference
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    error: NDArray[np.float64]
    # weight of the rows that show each configuration, in both fits; shape (2, K)
    rows: NDArray[np.float64]
    share: NDArray[np.float64]  # P, of the rows of both that show it; shape (K,)

    def table(self) -> ChangedTable:
        """Return how far the table moved, with the cell that adds most."""
        change = np.abs(self.after - self.before)
        moved = float((self.share * 0.5 * change.sum(axis=1)).sum())
        spread = 0.5 * self.error.sum(axis=1) * self.share
        error = float(expect_moves(spread, np.zeros(1, np.int64))[0])
        top = int(np.argmax(self.share[:, None] * change))
        return ChangedTable(self.node, moved, error, self.cell(top))

    def cell(self, place: int) -> ChangedCell:
        """Return one cell, by its place among all."""
        k, v = divmod(place, self.before.shape[1])
        start = self.like.layout.cell_start[self.like.nodes.index(self.node)]
        change = self.after[k, v] - self.before[k, v]
        return ChangedCell(
            *self.like.describe_cell(int(start) + place),
            float(self.before[k, v]),
            float(self.after[k, v]),
            float(change / self.error[k, v]),
            float(self.rows[0, k]),
            float(self.rows[1, k]),
            float(self.share[k] * abs(change)),
        )

    def largest(self, most: int) -> list[ChangedCell]:
        """Return the cells that are most standard errors apart."""
        z = np.abs(self.after - self.before) / self.error
        return [self.cell(int(j)) for j in np.argsort(-z, axis=None, kind="stable")[:most]]


def compare_cells(a: FitResult, b: FitResult, node: str) -> ComparedCells:
    card = len(a.network.states[node])
    q, rows, variances = [], [], []
    for side in (a, b):
        own = _family(side, side.network.probabilities, node, a.network).reshape(-1, card)
        counts = _family(side, side.counts, node, a.network).reshape(-1, card).sum(axis=1)
        n = np.maximum(counts, 0.5)[:, None]
        q.append(own)
        rows.append(counts)
        variances.append(np.maximum(own * (1 - own), 0.25 / n) / n)
    both = np.array(rows)
    total = both.sum(axis=1, keepdims=True)
    share = (both / np.maximum(total, 1e-300)).mean(axis=0)
    return ComparedCells(node, a.network, q[0], q[1], np.sqrt(sum(variances)), both, share)


# --- kinds of bad rows ----------------------------------------------------------------------------


def compare_kinds(a: FitResult, b: FitResult, nodes: Sequence[str]) -> list[ChangedKind]:
    """Return the kinds of both fits, those that are alike together, largest first."""
    alike = measure_similarity(a, b, nodes)
    found: list[ChangedKind] = []
    left, gone, new = alike.copy(), dict(enumerate(a.kinds)), dict(enumerate(b.kinds))
    while left.size and left.max() >= ALIKE_KINDS:
        i, j = (int(k) for k in np.unravel_index(np.argmax(left), left.shape))
        found.append(ChangedKind(gone.pop(i), new.pop(j), float(left[i, j])))
        left[i, :] = left[:, j] = -1.0
    found += [ChangedKind(k, None, float(alike[i].max(initial=0.0))) for i, k in gone.items()]
    found += [ChangedKind(None, k, float(alike[:, j].max(initial=0.0))) for j, k in new.items()]
    return sorted(found, key=lambda kind: -kind.shown.share)


def measure_similarity(a: FitResult, b: FitResult, nodes: Sequence[str]) -> NDArray[np.float64]:
    """Return how similar each kind of `a` is to each of `b`, from 0 to 1; shape (Ka, Kb)."""
    # Of each family, a kind has a distribution over its cells. Two kinds are as far apart as these
    # are in total variation, on average over the families, each weighed by how far the kinds are
    # from the good rows in it: families in which both are like good rows say nothing.
    n_a, n_b = len(a.kinds), len(b.kinds)
    apart, weight = np.zeros((n_a, n_b)), np.zeros((n_a, n_b))
    if not n_a or not n_b:
        return apart
    sides = [(side, side.deeper.groups) for side in (a, b)]
    kind_counts = [
        (side, found.counts[:, [found.column(kind) for kind in found.kinds]])
        for side, found in sides
    ]
    for node in nodes:
        kinds, unusual = [], []
        for side, counts_of in kind_counts:
            bad = _family(side, counts_of, node, a.network).reshape(-1, counts_of.shape[1])
            good = _family(side, side.counts, node, a.network).reshape(-1, 1)
            bad, good = (x / np.maximum(x.sum(axis=0), 1e-300) for x in (bad, good))
            kinds.append(bad)
            unusual.append(0.5 * np.abs(bad - good).sum(axis=0))
        distance = 0.5 * np.abs(kinds[0][:, :, None] - kinds[1][:, None, :]).sum(axis=0)
        counts = np.maximum(unusual[0][:, None], unusual[1][None, :])
        apart += counts * distance
        weight += counts
    return np.clip(1 - apart / np.maximum(weight, 1e-12), 0.0, 1.0)


# --- both together ----------------------------------------------------------------------------


class Comparison:
    """What differs between two fits of a network.

    Attributes
    ----------
    first, second : what the two fits found.
    tables : how far each table moved, most first.
    kinds : the kinds of bad rows that stayed, came and went, with how similar they are.
    verdict : two or three sentences.
    """

    def __init__(self, first: FitResult, second: FitResult, nodes: Sequence[str]) -> None:
        self.first, self.second = first, second
        tables = [compare_cells(first, second, node).table() for node in nodes]
        self.tables: list[ChangedTable] = sorted(tables, key=lambda table: -table.moved)
        self.kinds: list[ChangedKind] = compare_kinds(first, second, nodes)
        self.verdict: str = self._say_verdict()

    def _say_verdict(self) -> str:
        moved = [table for table in self.tables if table.is_significant]
        first = "No table moved by more than its error."
        if moved:
            most = f"{moved[0].node} most, in {percent(moved[0].moved)} of the rows"
            n, whose = len(self.tables), "its" if len(moved) == 1 else "their"
            first = f"{len(moved):,} of {n:,} tables moved by more than {whose} error: {most}."
        shares = f"{percent(self.first.contamination)} of the rows' weight was distrusted before, "
        shares += f"{percent(self.second.contamination)} now is."
        whats = [kind.what for kind in self.kinds]
        told = ", ".join(f"{whats.count(w)} {w}" for w in ("stayed", "came", "went") if w in whats)
        return f"{first} {shares}" + (f" Kinds of bad rows: {told}." if told else "")

    def moved(self) -> Any:
        """Return a frame with a line a node: how far its table moved, most first.

        The columns are node, moved (share of the rows in which it would have another state), error
        (what sampling alone would make of it in 95 of 100 cases), is_significant, and the cell that
        adds most: cell, before, after, z (their difference in standard errors of both).
        """
        names = {"node": "node", "moved": "moved", "error": "error"}
        columns = columns_of(self.tables, **names, is_significant="is_significant")
        cells = [table.cell for table in self.tables]
        columns |= columns_of(cells, cell="says", before="before", after="after", z="z")
        return build_frame(columns, self.first.reading.kind)

    def cells(self, node: str, most: int = 20) -> list[ChangedCell]:
        """Return the cells of a node's table that are most standard errors apart."""
        if node not in {table.node for table in self.tables}:
            raise NetworkError(f"{node!r} is not a node that the two fits have in common.")
        return compare_cells(self.first, self.second, node).largest(most)

    def facts(self) -> dict[str, Any]:
        """Return all of it as plain values, as `robustbn compare --json` prints them."""
        return {
            "verdict": self.verdict,
            "first": _side_facts(self.first),
            "second": _side_facts(self.second),
            "tables_compared": len(self.tables),
            "tables_moved": sum(table.is_significant for table in self.tables),
            "tables": [
                {
                    "node": table.node,
                    "moved": table.moved,
                    "error": table.error,
                    "is_significant": table.is_significant,
                    **{k: v for k, v in vars(table.cell).items() if k not in ("node", "weight")},
                }
                for table in self.tables
            ],
            "kinds": [
                {
                    "what": kind.what,
                    "similarity": kind.similarity,
                    "share_before": None if kind.before is None else kind.before.share,
                    "share_after": None if kind.after is None else kind.after.share,
                    "cause": None if kind.shown.cause is None else asdict(kind.shown.cause),
                    "unusual": [str(cell) for cell in kind.shown.unusual],
                }
                for kind in self.kinds
            ],
        }

    def report(self, path: str | Path | None = None) -> str | None:
        """Write one HTML page that needs nothing else; without a path, return it."""
        from robustbn._show.page.render import render_comparison

        page = render_comparison(self.facts(), self.kinds, self.largest_cells())
        return write_text(page, path)

    def largest_cells(self, most: int = 50) -> list[ChangedCell]:
        """Return the cells, of tables that moved by more than their error, that moved most rows."""
        found: list[ChangedCell] = []
        for table in self.tables:
            if table.is_significant:
                found += self.cells(table.node, most)
        return sorted(found, key=lambda cell: -cell.weight)[:most]

    def __str__(self) -> str:
        lines = [self.verdict]
        for side in (self.first, self.second):
            lines.append(
                f"{side.title}: {count(side.n_rows, 'row')}, {percent(side.contamination)} "
                f"distrusted, misfit {say_misfit(side.misfit)}. {verdict(side)}"
            )
        for table in self.tables[:MOST_LINES]:
            cell = table.cell
            lines.append(
                f"  {table.node}: moved {percent(table.moved)}, error {percent(table.error)}; "
                f"{cell.says}: {percent(cell.before)} -> {percent(cell.after)} (z = {cell.z:.1f})"
            )
        lines += [f"  kind {kind}" for kind in self.kinds[:MOST_LINES]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        names = f"{self.first.title!r}, {self.second.title!r}"
        return f"Comparison({names}: {count(len(self.tables), 'table')})"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        from robustbn._show.page.inline import comparison_html

        return comparison_html(self.facts())


def _side_facts(side: FitResult) -> dict[str, Any]:
    return {
        "name": side.title,
        "verdict": verdict(side),
        "rows": side.n_rows,
        "rows_left_out": side.reading.n_dropped,
        "contamination": side.contamination,
        "kinds": len(side.kinds),
        "misfit": None if side.misfit is None else asdict(side.misfit),
        "misfit_in_words": say_misfit(side.misfit),
        "converged": side.converged,
        "status": side.status,
    }
