"""Edges: two columns depend on each other without an edge.

Where the network lacks an edge, rows with an unusual pair of states look like a group. An edge
explains them at least as well as tables of their own; rows that are really bad break many tables at
once, and no single edge explains much of that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import RowVector, Vector
from robustbn._learn.gain import find_gain
from robustbn._learn.leftovers import count_added_cells, find_ancestors, measure_pair, screen_pairs

SCREENED = 2_000  # rows on which all pairs are compared: those that depend most are measured
MEASURED = 3  # pairs for each node that are measured on all rows


def find_edges(
    layout: Layout, q: Vector, codes: Codes, weights: RowVector, nodes: Sequence[int]
) -> list[float]:
    """Return what edges at some nodes gain: the best to each child, screened on a few rows."""
    few, best = slice(None, None, -(-len(codes) // SCREENED)), dict[int, float]()
    pairs, told, free = screen_pairs(layout, q, codes[few], weights[few], nodes)
    told = find_gain(told / 2, free, weights[few].sum())
    ancestors, by_column = find_ancestors(layout), np.asfortranarray(codes)
    most = np.argsort(told, kind="stable")[::-1][: MEASURED * len(nodes)]
    for i, j in pairs[most].tolist():
        ways = [(p, c) for p, c in ((i, j), (j, i)) if c not in ancestors[p]]
        gains = {c: _measure(layout, by_column, weights, p, c) for p, c in ways}
        gain = max(gains.values())
        alike = [c for c in gains if gains[c] == gain]
        child = alike[0]
        if len(alike) > 1:
            child = max(alike, key=lambda c: (_evenness(by_column, c), c))
        best[child] = max(gain, best.get(child, 0.0))
    return sorted(best.values(), reverse=True)


def _evenness(codes: Codes, node: int) -> int:
    """Return a number that tells columns apart wherever they and their states stand."""
    return -int(np.square(np.bincount(codes[:, node])).sum())


def _measure(layout: Layout, codes: Codes, weights: RowVector, parent: int, child: int) -> float:
    """Return what an edge gains, in nats; 0 if its table is too large."""
    measured = measure_pair(layout, codes, weights, parent, child)
    if measured is None:
        return 0.0
    told, _, n = measured
    n_free = count_added_cells(layout, parent, child) * (1 - 1 / layout.cards[child])
    return round(float(find_gain(told * n, n_free, n)), 3)  # both ways round may gain alike
