"""Divide the weight of rows among columns, from the primitives alone: what fused passes give."""

from __future__ import annotations

import numpy as np

from robustbn._core.protocols import (
    Divided,
    DividedApart,
    DividedInTwo,
    Rows,
    RowVector,
    TwoSides,
    Vector,
)

ROWS_DIVIDED_AT_ONCE = 4096  # bounds memory, changes nothing


def divide_in_parts(
    rows: Rows, table: Vector, offset: Vector | None, weights: RowVector | None
) -> Divided:
    """Return what `Rows.divide` does: one `project` and one `count` for each part of the rows."""
    n_columns = table.shape[1] + 1
    counts, masses, log_sum = np.zeros((rows.layout.n_cells, n_columns)), np.zeros(n_columns), 0.0
    for where, part in rows.parts(ROWS_DIVIDED_AT_ONCE):
        y = np.zeros((part.n_rows, n_columns))
        y[:, 1:] = part.project(table, offset)
        given = np.ones(part.n_rows) if weights is None else weights[where].astype(np.float64)
        largest = y.max(axis=1, keepdims=True)
        shares = np.exp(y - largest)
        sums = shares.sum(axis=1, keepdims=True)
        shares *= given[:, None] / sums
        log_sum += float(given @ (largest + np.log(sums))[:, 0])
        counts += part.count(shares)
        masses += shares.sum(axis=0)
    return Divided(counts, masses, log_sum)


def divide_apart_in_parts(
    rows: Rows,
    table: Vector,
    offset: Vector | None,
    against: RowVector,
    weights: RowVector | None,
) -> DividedApart:
    """Return what `Rows.divide_apart` does: one `project` and one `count` for each part."""
    r = table.shape[1]
    counts, masses, log_sums = np.zeros((rows.layout.n_cells, r)), np.zeros(r), np.zeros(r)
    for where, part in rows.parts(ROWS_DIVIDED_AT_ONCE):
        odds = part.project(table, offset).astype(np.float64) - against[where, None]
        given = np.ones(part.n_rows) if weights is None else weights[where].astype(np.float64)
        shares = given[:, None] * 0.5 * (1 + np.tanh(0.5 * odds))
        log_sums += given @ (np.maximum(odds, 0) + np.log1p(np.exp(-np.abs(odds))))
        counts += part.count(shares)
        masses += shares.sum(axis=0)
    return DividedApart(counts, masses, log_sums)


def odds_in_parts(rows: Rows, table: Vector, offset: Vector | None, n_first: int) -> RowVector:
    """Return what `Rows.odds` does: one `project` for each part of the rows."""
    parts = [np.empty(0)]
    for _, part in rows.parts(ROWS_DIVIDED_AT_ONCE):
        first, second = _by_side(part, table, offset, n_first)
        parts.append(np.logaddexp.reduce(second, axis=1) - np.logaddexp.reduce(first, axis=1))
    return np.concatenate(parts)


def divide_in_two_in_parts(
    rows: Rows, table: Vector, offset: Vector | None, sides: TwoSides, weights: RowVector | None
) -> DividedInTwo:
    """Return what `Rows.divide_in_two` does: one `project` and one `count` for each part."""
    n_columns = table.shape[1] + 1
    counts, masses = np.zeros((rows.layout.n_cells, n_columns)), np.zeros(n_columns)
    all_odds = [np.empty(0)]
    for where, part in rows.parts(ROWS_DIVIDED_AT_ONCE):
        given = np.ones(part.n_rows) if weights is None else weights[where].astype(np.float64)
        y = _by_side(part, table, offset, sides.n_first)
        first, second = (np.logaddexp.reduce(side, axis=1) for side in y)
        odds = second - first
        v = sides.intercept + sides.slope * odds
        shares = np.hstack(
            [
                np.exp(side - each[:, None])
                * (given * 0.5 * (1 + np.tanh(0.5 * sign * v)))[:, None]
                for side, each, sign in ((y[0], first, -1), (y[1], second, 1))
            ]
        )
        counts += part.count(shares)
        masses += shares.sum(axis=0)
        all_odds.append(odds)
    return DividedInTwo(counts, masses, np.concatenate(all_odds))


def _by_side(
    rows: Rows, table: Vector, offset: Vector | None, n_first: int
) -> tuple[RowVector, RowVector]:
    """Return the columns of the two sides, a column of zeros before all."""
    y = rows.project(table, offset).astype(np.float64)
    return np.hstack([np.zeros((len(y), 1)), y[:, :n_first]]), y[:, n_first:]
