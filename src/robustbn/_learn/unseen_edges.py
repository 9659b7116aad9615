"""Edges that rows ask for: added while their cells are judged, and nowhere else.

Where the network lacks an edge, a pair of states that it does not expect looks like a wrong cell.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import States
from robustbn._learn.gain import find_gain

MOST_PARENTS = 4  # of a node, with those it has
LARGEST_TABLE = 20_000  # cells of a table with one more parent

Parents = tuple[tuple[int, ...], ...]
Rows = NDArray[np.int64]


def add_edges(cards: tuple[int, ...], parents: Parents, truth: States) -> Parents:
    """Return the parents of each node with those whose edge gains most, one after another."""
    # New ones come last. Only nodes that come before in an order of the network are tried, so that
    # no circle is closed. O(d^2 n) time.
    some = np.ascontiguousarray(truth.T, np.int64)
    order, more = _order(parents), [list(of) for of in parents]
    for place, i in enumerate(order):
        while len(more[i]) < MOST_PARENTS:
            cells, shape = _find_cells(cards, more[i], i, some)
            tried = [
                (_describe(cells * cards[p] + some[p], (*shape, cards[p])), p)
                for p in order[:place]
                if p not in more[i] and prod(shape) * cards[p] <= LARGEST_TABLE
            ]
            best, p = max(tried, default=(-np.inf, -1))
            if best <= _describe(cells, (*shape, 1)):
                break
            more[i].append(p)
    return tuple(map(tuple, more))


def _find_cells(
    cards: tuple[int, ...], parents: list[int], i: int, rows: Rows
) -> tuple[Rows, tuple[int, int]]:
    """Return the cell of a node that each row, by column, is in, and its table's two sizes."""
    at = np.zeros(rows.shape[1], np.int64)
    for p in (*parents, i):
        at = at * cards[p] + rows[p]
    return at, (prod(cards[p] for p in parents), cards[i])


def _describe(cells: Rows, shape: tuple[int, int, int]) -> float:
    """Return the log-likelihood of a node's states, less the price of its table; in nats."""
    counts = np.bincount(cells, minlength=prod(shape)).reshape(shape)
    told = _sum_logs(counts) - _sum_logs(counts.sum(axis=1))
    return float(find_gain(told, shape[0] * shape[2] * (shape[1] - 1), len(cells)))


def _sum_logs(counts: Rows) -> float:
    seen = counts[counts > 0].astype(np.float64)
    return float(seen @ np.log(seen))


def _order(parents: Parents) -> list[int]:
    """Return the nodes, parents before children."""
    order: list[int] = []
    left = list(range(len(parents)))
    while left:
        ready = [i for i in left if set(parents[i]) <= set(order)]
        order += ready
        left = [i for i in left if i not in set(ready)]
    return order
