"""How far each table moved from what counting gives, and how far noise alone could move it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import standard_errors, sum_over_rows
from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector
from robustbn.network import BayesianNetwork

FEW_ROWS = 10  # a configuration with fewer trusted rows says little
UNMOVED = 0.001  # a cell or configuration that moved by no more is folded away
Z_95 = 1.959964  # two-sided 95 %
Z_95_ONE_SIDED = 1.644854


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
