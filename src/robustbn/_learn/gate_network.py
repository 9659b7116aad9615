"""The network by which the gate judges rows: what ties the columns, drafted from the rows.

The edges of the user's network need not be those that tie columns most, and its tables may be too
large to be known well. The draft is a tree of the pairs that tell most of each other, and further
parents where they pay. A missing value is a state here: values that are missing together tie
columns, too.
"""

from __future__ import annotations

import numpy as np

from robustbn._core.layout import Codes, Layout
from robustbn._learn.draft import Worth, find_tree, measure_pairs
from robustbn._rows.families import FamilyCounts
from robustbn._rows.memory import find_holed

PAIRED = 10**7  # values that are counted beside another column's: about 0.1 seconds
LEAST_DRAFTED = 500  # rows, however many columns: a pair that tells 0.01 nats a row is still found
NEAREST = 5  # columns, those that tell most alone, which may be further parents
MOST_PARENTS = 3  # of a node; more changed nothing on 22 tables


def draft_layout(layout: Layout, codes: Codes) -> Layout:
    """Return the cells of a draft of rows; O(n d^2) time, with n <= `PAIRED / d^2` rows or so."""
    holed = frozenset(find_holed(layout, codes))
    cards = tuple(card + (c in holed) for c, card in enumerate(layout.cards))
    n = max(PAIRED // layout.n_nodes**2, LEAST_DRAFTED)
    some = codes[:: -(-len(codes) // n)]
    worth = Worth(FamilyCounts(some, cards), len(some))
    gains = measure_pairs(worth)
    tree = {child: parent for parent, child in find_tree(gains)}
    order = [*(c for c in range(layout.n_nodes) if c not in tree), *tree]  # parents come first
    families: list[tuple[int, ...]] = [(c,) for c in range(layout.n_nodes)]
    for place, child in enumerate(order):
        if child in tree:
            before = np.setdiff1d(order[:place], tree[child])
            nearest = before[np.argsort(-gains[before, child], kind="stable")][:NEAREST]
            parents = _add_parents(worth, child, tree[child], nearest.tolist())
            families[child] = (*parents, child)
    return Layout(cards, tuple(families))


def _add_parents(worth: Worth, child: int, first: int, nearest: list[int]) -> list[int]:
    """Return the first parent of a child, and those of the nearest columns that pay beside it."""
    own, told = [first], worth.of(child, [first])
    while nearest and len(own) < MOST_PARENTS:
        found = worth.of_each(child, own, nearest)
        best = int(np.argmax(found))
        if found[best] <= told:
            break
        told = float(found[best])
        own.append(nearest.pop(best))
    return own
