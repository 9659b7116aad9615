"""Edges: two columns depend on each other without an edge.

Where the network lacks an edge, rows with an unusual pair of states look like a group. An edge
explains them at least as well as tables of their own; rows that are really bad break many tables at
once, and no single edge explains much of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import RowVector
from robustbn._learn.gain import find_gain
from robustbn._learn.leftovers import (
    count_added_cells,
    find_ancestors,
    measure_pair,
)

SCREENED = 2_000  # rows on which all edges are measured: those that say most there are looked at
MEASURED = 3  # edges for each node that are measured on all rows


def find_edges(
    layout: Layout, codes: Codes, weights: RowVector, nodes: Sequence[int]
) -> list[float]:
    """Return what edges at some nodes gain, in nats: the best to each child, largest first.

    All are measured on a few rows, and those that say most there on all of them.
    """
    few = slice(None, None, -(-len(codes) // SCREENED))
    edges = list(_list_edges(layout, nodes))
    told = [_measure(layout, codes[few], weights[few], *edge)[0] for edge in edges]
    best: dict[int, float] = {}
    of_pair: dict[frozenset[int], tuple[float, int]] = {}
    for k in np.argsort(told, kind="stable")[::-1][: MEASURED * len(nodes)]:
        _, gain = _measure(layout, codes, weights, *edges[k])
        pair, child = frozenset(edges[k]), edges[k][1]
        of_pair[pair] = max(of_pair.get(pair, (0.0, child)), (gain, child))
    for gain, child in of_pair.values():  # each pair once, the better way
        best[child] = max(gain, best.get(child, 0.0))
    return sorted(best.values(), reverse=True)


def _list_edges(layout: Layout, nodes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the edges at some nodes that could be added, parent and child."""
    ancestors = find_ancestors(layout)
    for i in nodes:
        for j in range(layout.n_nodes):
            is_new = i not in layout.families[j] and j not in layout.families[i]
            if is_new and (j not in nodes or i < j):
                if j not in ancestors[i]:
                    yield i, j
                if i not in ancestors[j]:
                    yield j, i


def _measure(
    layout: Layout, codes: Codes, weights: RowVector, parent: int, child: int
) -> tuple[float, float]:
    """Return the nats a row that an edge brings, and what it gains in all; 0 if it is too large."""
    measured = measure_pair(layout, codes, weights, parent, child)
    if measured is None:
        return 0.0, 0.0
    told, _, n = measured
    n_free = count_added_cells(layout, parent, child) * (1 - 1 / layout.cards[child])
    return told, float(find_gain(told * n, n_free, n))
