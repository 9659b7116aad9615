"""What is measured of a fit: how far tables moved, what the paper asks, what edges are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import normalise_counts, standard_errors, sum_over_rows
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._core.trust import JudgedRows
from robustbn.network import BayesianNetwork

FEW_ROWS = 10  # a configuration with fewer trusted rows says little
UNMOVED = 0.001  # a cell or configuration that moved by no more is folded away
MOST_SHOWN_STATES = 12  # of each node of a pair
Z_95 = 1.959964  # two-sided 95 %
Z_95_ONE_SIDED = 1.644854


@dataclass(frozen=True, eq=False)
class Moves:
    """How far the tables moved, one entry a node unless said otherwise."""

    moved: Vector  # parent-weighted total variation between robust and plain table
    error: Vector  # what sampling alone would give in 95 of 100 cases
    rows_per_configuration: Vector  # trusted rows behind a configuration that occurs, on average
    n_only_distrusted: NDArray[np.int64]  # configurations that only distrusted rows show
    of_configuration: Vector  # total variation of each configuration; shape (m,)

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
    """
    of_config = layout.sum_configurations
    trusted, seen = of_config(counts), of_config(plain_counts)
    n = float(sum_over_rows(layout, counts))
    share = trusted / n if n > 0 else np.zeros_like(trusted)
    distance = 0.5 * of_config(np.abs(q - plain))
    spread = 0.5 * of_config(standard_errors(layout, counts, q)) * share

    def of_node(values: Vector) -> Vector:
        return np.add.reduceat(values, layout.config_start[:-1], dtype=np.float64)

    occurs = of_node((trusted > 0).astype(np.float64))
    return Moves(
        moved=of_node(share * distance),
        error=expect_moves(spread, layout.config_start[:-1]),
        rows_per_configuration=n / np.maximum(occurs, 1),
        n_only_distrusted=of_node(((seen >= 1) & (trusted < 0.5)).astype(float)).astype(np.int64),
        of_configuration=distance,
    )


def expect_moves(spread: Vector, start: NDArray[np.int64]) -> Vector:
    """Return how far sampling alone moves each table in 95 of 100 cases, at most 1."""
    # The states of a configuration are taken to err together (exact for two, careful for more), so
    # a table moves by a sum of independent half-normals, of deviation s[k] before folding. With its
    # mean m, deviation d and skewness g, the 95 % level is, by Cornish and Fisher, `m + d (z + (z^2
    # - 1) g / 6)`: for one configuration 1.96 s, as it should be.
    z, ratio = Z_95_ONE_SIDED, 2 / np.pi
    first, second, third = (np.add.reduceat(spread**power, start) for power in (1, 2, 3))
    variance = (1 - ratio) * second
    skewness = np.sqrt(ratio) * (4 / np.pi - 1) * third / np.maximum(variance, 1e-100) ** 1.5
    level: Vector = np.sqrt(ratio) * first + np.sqrt(variance) * (z + (z**2 - 1) * skewness / 6)
    return np.minimum(level, 1.0)


@dataclass(frozen=True)
class MovedTable:
    """How far one table moved from what counting gives; see `measure_moves`."""

    node: str
    moved: float
    error: float
    n_eff: float  # trusted rows behind a configuration that occurs, on average
    is_significant: bool  # whether it moved by more than its error


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
        )
        for i in order
    ]


def interval(q: Vector, n_rows: Vector) -> tuple[Vector, Vector]:
    """Return the 95 % interval of each probability (Wilson's), given the rows behind it."""
    # `(q + z^2 / 2n -+ z sqrt(q (1 - q) / n + z^2 / 4n^2)) / (1 + z^2 / n)`; from 0 to 1 where
    # there are no rows.
    n = np.maximum(n_rows, 1e-9)
    centre = q + Z_95**2 / (2 * n)
    half = Z_95 * np.sqrt(q * (1 - q) / n + Z_95**2 / (4 * n**2))
    scale = 1 + Z_95**2 / n
    return np.maximum((centre - half) / scale, 0.0), np.minimum((centre + half) / scale, 1.0)


# --- what the paper asks --------------------------------------------------------------------------


@dataclass(frozen=True)
class Diagnosis:
    """The quantities of the paper's theorem, measured.

    Notation: eps contamination, c balance, alpha smallest configuration probability, m
    configurations, N rows.

    Parameters
    ----------
    n_rows : N, the weight of the trusted rows.
    contamination : eps, at least 0.001.
    balance : c, the smallest conditional probability among configurations that occur.
    smallest_configuration : alpha, the smallest probability of a configuration that occurs.
    n_unseen : configurations that never occur.
    n_unidentified : configurations rarer than 2 eps, which bad rows alone could make up.
    rows_wanted : m / eps^2.
    alpha_wanted : `(eps sqrt(ln 1/eps))^(2/3) c^(-1/3)`.
    """

    n_rows: float
    n_configurations: int
    contamination: float
    balance: float
    smallest_configuration: float
    n_unseen: int
    n_unidentified: int
    rows_wanted: float
    alpha_wanted: float

    @property
    def has_enough_rows(self) -> bool:
        """Whether N is at least m / eps^2."""
        return self.n_rows >= self.rows_wanted

    @property
    def theorem_applies(self) -> bool:
        """Whether the paper's conditions on N and alpha both hold."""
        return self.has_enough_rows and self.smallest_configuration >= self.alpha_wanted

    def __str__(self) -> str:
        rows = (
            f"Rows: {self.n_rows:,.0f} trusted; at eps = {self.contamination:.3g} the paper "
            f"requires about m / eps^2 = {self.rows_wanted:,.0f} (m = {self.n_configurations:,}). "
            f"{'Enough.' if self.has_enough_rows else 'Too few to detect small corruptions.'}"
        )
        wanted = f"{self.alpha_wanted:.2g}" if self.alpha_wanted < 1 else "more than is possible"
        alpha = (
            f"Rarest configuration: {self.smallest_configuration:.2g} of the rows; the theorem "
            f"requires {wanted}. "
            + (
                "It applies."
                if self.theorem_applies
                else "It does not apply, so there is no proven bound; real networks rarely meet "
                "these conditions, and the benchmarks measure the method without them."
            )
        )
        balance = f"Balance: the smallest conditional probability is {self.balance:.2g}."
        rare = (
            f"Use with care: {self.n_unidentified:,} of {self.n_configurations:,} configurations "
            f"occur in fewer than 2 eps of the rows, {self.n_unseen:,} in none; their tables "
            "could come from bad rows alone."
        )
        lines = [rows, alpha, balance]
        return "\n".join([*lines, rare] if self.n_unidentified else lines)


def diagnose(layout: Layout, counts: Vector, contamination: float) -> Diagnosis:
    """Measure the paper's quantities on weighted counts."""
    n = float(sum_over_rows(layout, counts))
    pi = layout.sum_configurations(counts) / (n or 1.0)  # rows of nothing but holes show none
    occurs = pi > 0
    q = normalise_counts(layout, counts)
    eps = max(contamination, 1e-3)
    c = float(q[occurs[layout.config_of_cell]].min()) if occurs.any() else 0.0
    alpha = float(pi[occurs].min()) if occurs.any() else 0.0
    return Diagnosis(
        n_rows=n,
        n_configurations=layout.n_configurations,
        contamination=eps,
        balance=c,
        smallest_configuration=alpha,
        n_unseen=int((~occurs).sum()),
        n_unidentified=int((pi < 2 * eps).sum()),
        rows_wanted=layout.n_configurations / eps**2,
        alpha_wanted=float((eps * np.sqrt(np.log(1 / eps))) ** (2 / 3) * max(c, 1e-12) ** (-1 / 3)),
    )


# --- dependence without an edge -------------------------------------------------------------------


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
        return f"{self.parent} and {self.child} ({self.gain:.3f} nats per row)"


def show_pair(network: BayesianNetwork, judged: JudgedRows, edge: Any) -> MissingEdge:
    """Return the table of a pair: what the trusted rows show, and what the network expects.

    `seen[u, v]` is the share of the child's state v among trusted rows with the parent's state u,
    `expected[u, v]` the mean of `q[v | parents of the child in the row]` over the same rows. From
    the drawn rows that show all of it; O(n card) time.
    """
    layout = network.layout
    codes, trust = judged.drawn_codes, judged.drawn_trust.astype(np.float64)
    family = layout.families[edge.child]
    needed = [*family, edge.parent]
    is_shown = (codes[:, needed] < np.array(layout.cards)[needed]).all(axis=1)
    codes, trust = codes[is_shown], trust[is_shown]
    seen, expected = _count_pair(network, codes, trust, edge.parent, edge.child)
    rows = seen.sum(axis=1)
    scale = float(judged.trust.total) / max(float(judged.drawn_trust.sum(dtype=np.float64)), 1e-9)
    apart = np.abs(seen - expected)
    parents = _choose(apart.sum(axis=1), rows > 0)
    children = _choose(apart[parents].sum(axis=0), np.ones(seen.shape[1], bool))
    share = np.maximum(rows[parents], 1e-300)[:, None]
    return MissingEdge(
        parent=network.nodes[edge.parent],
        child=network.nodes[edge.child],
        gain=float(edge.gain),
        seen=seen[parents][:, children] / share,
        expected=expected[parents][:, children] / share,
        n_rows=rows[parents] * scale,
        parent_codes=parents,
        child_codes=children,
    )


def _count_pair(
    network: BayesianNetwork, codes: Codes, trust: Vector, parent: int, child: int
) -> tuple[Vector, Vector]:
    """Return the weight of each pair of states, as the rows have it and as the tables say."""
    layout = network.layout
    wide = codes.astype(np.int64)
    n, m = layout.cards[parent], layout.cards[child]
    u, v = wide[:, parent], wide[:, child]
    seen = np.bincount(u * m + v, trust, n * m).reshape(n, m).astype(np.float64)
    strides = np.array(layout.strides[child])
    first = layout.cell_start[child] + wide[:, layout.families[child]] @ strides - v
    given, place = np.unique(u * layout.n_cells + first, return_inverse=True)
    weight = np.bincount(place, trust, len(given))
    expected = np.zeros((n, m))
    for both, w in zip(given.tolist(), weight.tolist(), strict=True):
        state, cell = divmod(both, layout.n_cells)
        expected[state] += w * network.probabilities[cell : cell + m]
    return seen, expected


def _choose(apart: Vector, may: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the states that differ most, in their own order."""
    order = np.argsort(np.where(may, -apart, np.inf), kind="stable")[: int(may.sum())]
    return np.sort(order[:MOST_SHOWN_STATES])
