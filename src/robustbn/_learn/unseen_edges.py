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
    """Return the parents of each node with those whose edge gains most, one after another.

    New ones come last. Only nodes that come before in an order of the network are tried, so that no
    circle is closed. O(d^2 n) time.
    """
    some = np.ascontiguousarray(truth.T, np.int64)
    order, more = _order(parents), [list(of) for of in parents]
    for place, i in enumerate(order):
        own = _describe(cards, more[i], i, some)
        while len(more[i]) < MOST_PARENTS:
            tried = [
                (_describe(cards, [*more[i], p], i, some), p)
                for p in order[:place]
                if p not in more[i] and prod(cards[c] for c in (*more[i], p, i)) <= LARGEST_TABLE
            ]
            best, p = max(tried, default=(-np.inf, -1))
            if best <= own:
                break
            more[i].append(p)
            own = best
    return tuple(map(tuple, more))


def _describe(cards: tuple[int, ...], parents: list[int], i: int, rows: Rows) -> float:
    """Return the log-likelihood of a node's states, less the price of its table; in nats.

    Parameters
    ----------
    rows : column by column; shape (d, n).
    """
    at, n_configs = np.zeros(rows.shape[1], np.int64), prod(cards[p] for p in parents)
    for p in parents:
        at = at * cards[p] + rows[p]
    counts = np.bincount(at * cards[i] + rows[i], minlength=n_configs * cards[i])
    by_config = counts.reshape(n_configs, -1).sum(axis=1)
    told = _sum_logs(counts) - _sum_logs(by_config)
    return float(find_gain(told, n_configs * (cards[i] - 1), rows.shape[1]))


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
