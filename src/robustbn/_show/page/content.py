"""What a report says: its facts, and how far each table moved."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import standard_errors, sum_over_rows
from robustbn._core.kinds import BadKind
from robustbn._core.layout import Layout
from robustbn._core.origins import Origin
from robustbn._core.protocols import Vector
from robustbn._core.result import Inferred, Misfit, RepeatedRow, Round, Vanishing
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork

FEW_ROWS = 10  # a configuration with fewer trusted rows says little
UNMOVED = 0.001  # a cell or configuration that moved by no more is folded away
LONGEST_LABEL = 22  # in a drawing
Z_95 = 1.959964  # two-sided 95 %
Z_95_ONE_SIDED = 1.644854
_UNSHOWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tabs and line ends
    r"\u202a-\u202e\u2066-\u2069\ud800-\udfff]"  # of direction; halves of characters
)


@dataclass(frozen=True)
class ExplainedRow:
    """A row that is not trusted, and why.

    Parameters
    ----------
    row : its number, from 0.
    weight : the trust in it, from 0 to 1.
    states : its state at every node, in the order of `network.nodes`.
    why : a sentence on the cells that speak against it.
    blamed : the nodes of those cells, most telling first.
    names : its values in the columns that rows keep.
    n_alike : rows that show the same states with the same trust, itself included.
    alike : some of the others: the number of each, and its names.
    kind : number of the kind of bad rows that it is of, 0 for none.
    """

    row: int
    weight: float
    states: tuple[Hashable, ...]
    why: str
    blamed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    n_alike: int = 1
    alike: tuple[tuple[int, tuple[str, ...]], ...] = ()
    kind: int = 0


@dataclass(frozen=True, eq=False)
class MissingEdge:
    """Two nodes that depend on each other without an edge, and how that shows.

    Parameters
    ----------
    parent, child : the edge that could be drawn.
    gain : what it would bring, in nats a row.
    seen : share of each state of the child among the trusted rows with each of these states of the
        parent; shape (n, m).
    expected : the same by the tables of the network, given the parents that each of the rows shows.
    n_rows : trusted rows with each of these states of the parent, scaled to all rows; shape (n,).
    parent_codes, child_codes : which states these are; a long table holds those that differ most.
    """

    parent: str
    child: str
    gain: float
    seen: Vector
    expected: Vector
    n_rows: Vector
    parent_codes: NDArray[np.int64]
    child_codes: NDArray[np.int64]

    def __str__(self) -> str:
        return f"{self.parent} and {self.child} ({self.gain:.3f} nats a row)"


@dataclass(frozen=True, eq=False)
class Report:
    """Everything the page says about one robust fit, as plain values.

    Parameters
    ----------
    network, plain_network : the tables from the trusted rows, and from all rows.
    counts, plain_counts : weight of the trusted rows, and of all rows, on each cell; shape (M,).
    n_rows : rows that were read and judged.
    n_distrusted : rows with a weight below one half.
    effective_rows : effective sample size of the weights, `(sum w)^2 / sum w^2`.
    contamination : share of the rows' weight that is distrusted.
    converged, status : whether the trusted rows look clean, and a sentence on why it stopped.
    few_rows : that there are too few rows for so many free parameters; empty if there are not.
    weight_edges, weight_counts : histogram of the weights: B + 1 edges, B counts.
    misfit : as in the estimator's `misfit_`; None if the network was taken for exact.
    kinds, repeats, rounds : as in the estimator's `kinds_`, `repeats_`, `history_`.
    rows : the least trusted rows that the page may show, worst first.
    rows_hidden : whether single rows must not be shown (private data).
    dropped : rows left out while reading: reason and how many.
    diagnosis : the conditions of the paper's theorem in words, one a line.
    settings, versions : what a reader needs to repeat the fit.
    seconds : how long the fit took.
    command : the command line that repeats it.
    title : of the page.
    table : the file that the rows came from, if it is one.
    missing, inferred : what was missing from the rows, in a sentence; and what was made of it.
    n_missing : how often each node is missing, where it ever is.
    vanishing : groups of rows of which hardly any is trusted.
    edges : pairs of nodes that depend on each other without an edge, the strongest first.
    origins : groups that hold more distrusted rows than chance, most telling first.
    row_names : the columns beside the network that rows keep, the one that names them first.
    kept_names : what typical rows, the good ones beside them and repeated ones hold in these.
    """

    network: BayesianNetwork
    plain_network: BayesianNetwork
    counts: Vector
    plain_counts: Vector
    n_rows: int
    n_distrusted: int
    effective_rows: float
    contamination: float
    converged: bool
    status: str
    weight_edges: Vector
    weight_counts: NDArray[np.int64]
    kinds: Sequence[BadKind] = ()
    repeats: Sequence[RepeatedRow] = ()
    rounds: Sequence[Round] = ()
    rows: Sequence[ExplainedRow] = ()
    rows_hidden: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)
    diagnosis: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    command: str | None = None
    title: str = "Robust tables"
    table: str = ""
    misfit: Misfit | None = None
    few_rows: str = ""
    missing: str = ""
    inferred: Inferred | None = None
    n_missing: Mapping[str, int] = field(default_factory=dict)
    vanishing: Sequence[Vanishing] = ()
    edges: Sequence[MissingEdge] = ()
    origins: Sequence[Origin] = ()
    row_names: tuple[str, ...] = ()
    kept_names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_cells = self.network.n_cells
        if not self.network.has_same_structure(self.plain_network):
            raise DataError(
                "`network` and `plain_network` of a report must have the same nodes, parents and "
                "states in the same order; they differ."
            )
        for name in ("counts", "plain_counts"):
            shape = np.shape(getattr(self, name))
            if shape != (n_cells,):
                raise DataError(
                    f"`{name}` of a report must have shape ({n_cells},), one entry a cell; found "
                    f"{shape}."
                )
        if len(self.weight_edges) != len(self.weight_counts) + 1:
            raise DataError(
                f"A histogram with {len(self.weight_counts)} counts needs "
                f"{len(self.weight_counts) + 1} edges; found {len(self.weight_edges)}."
            )
        for row in self.rows:
            if len(row.states) != self.network.n_nodes:
                raise DataError(
                    f"Row {row.row} of a report has {len(row.states)} states; the network has "
                    f"{self.network.n_nodes} nodes. Give one state a node, in their order."
                )

    @cached_property
    def moves(self) -> Moves:
        """How far each table moved."""
        return measure_moves(
            self.network.layout,
            self.network.probabilities,
            self.plain_network.probabilities,
            self.counts,
            self.plain_counts,
        )

    @cached_property
    def moved_tables(self) -> list[MovedTable]:
        """The tables, those that moved most first."""
        return moved_tables(self.network, self.moves)

    @property
    def n_rows_shown(self) -> int:
        """Rows that `rows` stand for."""
        return sum(row.n_alike for row in self.rows)

    @property
    def n_moved(self) -> int:
        """Tables that moved by more than their error."""
        return int(self.moves.is_significant.sum())


@dataclass(frozen=True, eq=False)
class Moves:
    """How far the tables moved, one entry a node unless said otherwise.

    Parameters
    ----------
    moved : parent-weighted total variation between robust and plain table.
    error : what sampling alone would give in 95 of 100 cases.
    rows_per_configuration : trusted rows behind a configuration that occurs, on average.
    n_only_distrusted : configurations that only distrusted rows show.
    of_configuration : total variation of each configuration; shape (m,).
    """

    moved: Vector
    error: Vector
    rows_per_configuration: Vector
    n_only_distrusted: NDArray[np.int64]
    of_configuration: Vector

    @property
    def is_significant(self) -> NDArray[np.bool_]:
        """Whether the table moved by more than its error; shape (d,)."""
        return self.moved > self.error


def measure_moves(
    layout: Layout, q: Vector, plain: Vector, counts: Vector, plain_counts: Vector
) -> Moves:
    """Measure how far each table moved, and how far noise alone could have moved it.

    Notation: k a configuration of the node, v a state, C[k] the trusted rows that show k, N all
    trusted rows, P(k) = C[k] / N, se[k, v] the standard error of q[k, v] (`standard_errors`).

        moved = sum over k of P(k) * 1/2 sum over v of |q[k, v] - plain[k, v]|
        error = expect_moves of P(k) * 1/2 sum over v of se[k, v]

    The error is the 95 % level of the distance, measured in the same way, between a table learned
    from the trusted rows and the true table. A table that moved by more than that was given by
    counting as something the trusted rows rule out. Weighing by P(k) keeps configurations with a
    handful of rows from deciding. O(M).

    Parameters
    ----------
    q, plain : robust and plain tables; shape (M,).
    counts, plain_counts : weight of the trusted rows and of all rows on each cell; shape (M,).
    """
    of_config = layout.sum_configurations
    trusted, seen = of_config(counts), of_config(plain_counts)
    n = float(sum_over_rows(layout, counts))
    share = trusted / n if n > 0 else np.zeros_like(trusted)
    distance = 0.5 * of_config(np.abs(q - plain))
    spread = 0.5 * of_config(standard_errors(layout, counts, q)) * share

    def of_node(values: Vector) -> Vector:
        total: Vector = np.add.reduceat(values, layout.config_start[:-1], dtype=np.float64)
        return total

    occurs = of_node((trusted > 0).astype(np.float64))
    return Moves(
        moved=of_node(share * distance),
        error=expect_moves(spread, layout.config_start[:-1]),
        rows_per_configuration=n / np.maximum(occurs, 1),
        n_only_distrusted=of_node(((seen >= 1) & (trusted < 0.5)).astype(float)).astype(np.int64),
        of_configuration=distance,
    )


def expect_moves(spread: Vector, start: NDArray[np.int64]) -> Vector:
    """Return how far sampling alone moves each table in 95 of 100 cases, at most 1.

    The states of a configuration are taken to err together (exact for two, careful for more), so a
    table moves by a sum of independent half-normals, of deviation s[k] before folding. With its
    mean m, deviation d and skewness g, the 95 % level is, by Cornish and Fisher,
    `m + d (z + (z^2 - 1) g / 6)`: for one configuration 1.96 s, as it should be.

    Parameters
    ----------
    spread : s, half the standard errors of a configuration's states times its share; shape (K,).
    start : the first configuration of each table; shape (d,).
    """
    z, ratio = Z_95_ONE_SIDED, 2 / np.pi
    first, second, third = (np.add.reduceat(spread**power, start) for power in (1, 2, 3))
    variance = (1 - ratio) * second
    skewness = np.sqrt(ratio) * (4 / np.pi - 1) * third / np.maximum(variance, 1e-100) ** 1.5
    level: Vector = np.sqrt(ratio) * first + np.sqrt(variance) * (z + (z**2 - 1) * skewness / 6)
    return np.minimum(level, 1.0)


@dataclass(frozen=True)
class MovedTable:
    """How far one table moved from what counting gives.

    Parameters
    ----------
    node : whose table it is.
    moved, error : as in `measure_moves`.
    n_eff : trusted rows behind a configuration that occurs, on average.
    is_significant : whether it moved by more than its error.
    n_only_distrusted : configurations that only distrusted rows show.
    """

    node: str
    moved: float
    error: float
    n_eff: float
    is_significant: bool
    n_only_distrusted: int


def moved_tables(network: BayesianNetwork, moves: Moves) -> list[MovedTable]:
    """Return one entry a node, the table that moved most first; ties keep the order of nodes."""
    order = np.argsort(-moves.moved, kind="stable")
    return [
        MovedTable(
            network.nodes[i],
            float(moves.moved[i]),
            float(moves.error[i]),
            float(moves.rows_per_configuration[i]),
            bool(moves.moved[i] > moves.error[i]),
            int(moves.n_only_distrusted[i]),
        )
        for i in order
    ]


def interval(q: Vector, n_rows: Vector) -> tuple[Vector, Vector]:
    """Return the 95 % interval of each probability (Wilson's), given the rows behind it.

    `(q + z^2 / 2n -+ z sqrt(q (1 - q) / n + z^2 / 4n^2)) / (1 + z^2 / n)`; from 0 to 1 where there
    are no rows.
    """
    n = np.maximum(n_rows, 1e-9)
    centre = q + Z_95**2 / (2 * n)
    half = Z_95 * np.sqrt(q * (1 - q) / n + Z_95**2 / (4 * n**2))
    scale = 1 + Z_95**2 / n
    return np.maximum((centre - half) / scale, 0.0), np.minimum((centre + half) / scale, 1.0)


def percent(share: float) -> str:
    """Return a share as people write it: three digits at most, and never 0 for what is not 0."""
    value = 100 * share
    if value == 0:
        return "0 %"
    if value < 0.001:
        return "less than 0.001 %"
    digits = 1 if value >= 1 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f} %"


def as_text(label: object) -> str:
    """Return a label as text that a page can hold and that turns nothing around.

    U+FFFD takes the place of control characters, of those that change the direction of the text
    after them, and of what is not a character.
    """
    return _UNSHOWN.sub("\ufffd", str(label))


def shorten(label: str, longest: int = LONGEST_LABEL) -> str:
    """Cut a long label in its middle, where names differ least."""
    label = " ".join(label.split())
    if len(label) <= longest:
        return label
    tail = longest // 3
    return f"{label[: longest - tail - 1]}…{label[len(label) - tail :]}"
