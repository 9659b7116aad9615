"""Repeated numbers that stand for missing values, told by the rest of their rows.

Rows whose number is missing look like all rows; rows with a small number look like those with other
small ones. So three tables of each neighbour of the node predict the rows that show a number: that
of all other rows, that of the rows with the nearest numbers, and one of their own, of which nothing
is known before. A number is a code if the first is best, and it was measured if the second is
better than the first. All are Dirichlet distributions that are integrated out, so that few rows
near a number are no evidence for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Repeated
from robustbn._core.dirichlet import JEFFREYS, log_gamma
from robustbn._core.far import is_code
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._learn.swap_search import LEAST_GAIN

# share of the other rows: those with the nearest numbers. Of 78 zeros for missing values, planted
# in 1, 5 and 15 % of the rows of 26 columns of the tables of `CHOSEN_ON` (benchmarks/
# mistake_tables.py), 73 are told with 0.02, 71 with 0.05, 68 with 0.14 and 64 with 0.25, and of 70
# tables of these packages as they are one number at most: 18 incomes that are 0.
NEAREST = 0.05
MOST_NEAR = 0.5  # share: where most rows show the nearest number, they are all rows themselves
LEAST_ROWS = 5  # that show a number: fewer are no habit, whatever they look like


def judge_repeated(layout: Layout, codes: Codes, numbers: Mapping[int, Vector]) -> list[Repeated]:
    """Return repeated numbers, of which the other columns say whether they stand for missing ones.

    These are what people write for a missing value, such as 0, and the ends of a column. O(n log n)
    time for each column.

    Parameters
    ----------
    codes : of some rows; shape (n, d).
    numbers : of the same rows, by node, NaN where there is none; shape (n,) each.
    """
    tried = [(node, each) for node, values in numbers.items() for each in _list_values(values)]
    price, found = LEAST_GAIN + np.log(max(len(tried), 1)), list[Repeated]()
    for node, value in tried:
        like_near, like_own = _compare(layout, codes, node, numbers[node], value)
        if (like_near >= price and like_own >= 0) or like_near <= -price:
            found.append(Repeated(node, value, like_near))
    return found


def _list_values(values: Vector) -> Iterator[float]:
    """Yield the numbers of a column that may stand for missing ones."""
    shown, times = np.unique(values[np.isfinite(values)], return_counts=True)
    for k in np.flatnonzero(times >= LEAST_ROWS).tolist():
        if k in (0, len(shown) - 1) or is_code(shown[k]):
            yield float(shown[k])


def _compare(
    layout: Layout, codes: Codes, node: int, values: Vector, value: float
) -> tuple[float, float]:
    """Return by how many nats all rows predict those with a number better than the nearest ones do.

    And better than they do themselves. Nothing is told where there is no neighbour, or no number is
    near enough.
    """
    here = np.flatnonzero(values == value)
    others = np.flatnonzero(np.isfinite(values) & (values != value))
    n_near = int(NEAREST * len(others))
    if not n_near:
        return 0.0, 0.0
    apart = np.abs(values[others] - value)
    near = others[apart <= np.partition(apart, n_near)[n_near]]
    if len(near) > MOST_NEAR * len(others):
        return 0.0, 0.0
    gains = np.zeros(2)
    for neighbour in _list_neighbours(layout, node):
        card, states = layout.cards[neighbour], codes[:, neighbour]
        shown, of_all, of_near = (
            np.bincount(states[rows], minlength=card + 1)[:card] for rows in (here, others, near)
        )
        by_all = _predict(shown, of_all)
        gains += by_all - _predict(shown, of_near), by_all - _predict(shown, np.zeros(card))
    return float(gains[0]), float(gains[1])


def _list_neighbours(layout: Layout, node: int) -> set[int]:
    """Return the parents and the children of a node."""
    of_families = (each for each in layout.families if node in each)
    found = {i for *parents, child in of_families for i in (parents if child == node else [child])}
    return set(map(int, found))


def _predict(counts: NDArray[np.int64], known: NDArray[Any]) -> float:
    """Return the log-probability of rows in order, once others are known; by states."""
    added = np.asarray(known + JEFFREYS, np.float64)
    total = np.array([added.sum(), added.sum() + counts.sum()])
    before, after = log_gamma(total)
    return float((log_gamma(added + counts) - log_gamma(added)).sum() + before - after)
