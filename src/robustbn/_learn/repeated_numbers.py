"""Repeated numbers that stand for missing values, told by the rest of their rows.

Rows whose number is missing look like all rows; rows with a small number look like those with other
small ones. So three tables of each neighbour of the node predict the rows that show a number: that
of all other rows, that of the rows with the nearest numbers, and one of their own, of which nothing
is known before. A number is a code if the first is best, and it was measured if the second is: one
that is missing at one place only is best told by its own. Columns of numbers that show one and the
same in most of the rows may be missing with it, or be computed from it: whether a number was
measured has to be clear without them, too. All tables are Dirichlet distributions that are
integrated out, so that few rows near a number are no evidence for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Repeated
from robustbn._core.dirichlet import JEFFREYS, log_gamma
from robustbn._core.far import CODES
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._learn.swap_search import LEAST_GAIN

# Of 78 zeros for missing values, planted in 1, 5 and 15 % of the rows of 26 columns of the tables
# of `CHOSEN_ON` (benchmarks/mistake_tables.py), 73 are told with 0.02, 71 with 0.05, 68 with 0.14
# and 65 with 0.25, and of 70 tables of these packages as they are one number at most: 18 incomes.
NEAREST = 0.05  # share of the other rows: those with the nearest numbers
MOST_NEAR = 0.5  # share: where most rows show the nearest number, they are all rows themselves
LEAST_ROWS = 5  # that show a number: fewer are no habit, whatever they look like


def judge_repeated(
    layout: Layout, codes: Codes, numbers: Mapping[int, Vector], labels: Mapping[int, Vector]
) -> list[Repeated]:
    """Return repeated numbers, of which the other columns say whether they stand for missing ones.

    These are what people write for a missing value, 0 or at an end of the column. O(n log n) time
    for each column.

    Parameters
    ----------
    codes : of some rows; shape (n, d).
    numbers, labels : of the same rows, by node, NaN where there is none; shape (n,) each. Labels
        are numbers that are not cut into intervals.
    """
    every = {**numbers, **labels}
    tried = [(node, each) for node, values in every.items() for each in _list_values(values)]
    price, found = LEAST_GAIN + np.log(max(len(tried), 1)), list[Repeated]()
    for node, value in tried:
        told = dict(_compare(layout, codes, node, every[node], value))
        here = every[node] == value
        is_one = {i for i in told.keys() & numbers.keys() if _shows_one(numbers[i][here])}
        over_near, over_own = np.sum([(0.0, 0.0), *told.values()], axis=0)
        others = [(0.0, 0.0), *(each for i, each in told.items() if i not in is_one)]
        by_others, by_own = np.sum(others, axis=0)
        is_measured = max(over_near, by_others) <= -price and by_own >= by_others
        if is_measured or (over_near >= price and over_own >= 0):
            found.append(Repeated(node, value, float(over_near)))
    return found


def _list_values(values: Vector) -> list[float]:
    """Return the numbers of a column that people write for missing ones, and did so repeatedly.

    Zeros, and those at its ends. Others look like codes too often, by chance: of 120 public tables,
    three had such numbers at their ends that nobody writes for missing ones, and one had them
    inside.
    """
    shown, times = np.unique(values[np.isfinite(values)], return_counts=True)
    is_end = np.isin(shown, CODES)
    is_end = np.logical_and.accumulate(is_end) | np.logical_and.accumulate(is_end[::-1])[::-1]
    return list(map(float, shown[(times >= LEAST_ROWS) & (is_end | (shown == 0))]))


def _compare(
    layout: Layout, codes: Codes, node: int, values: Vector, value: float
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield by how many nats all rows predict those with a number better than the nearest ones do.

    And better than they do themselves, by each neighbour. Nothing where no number is near enough.
    """
    here = np.flatnonzero(values == value)
    others = np.flatnonzero(np.isfinite(values) & (values != value))
    n_near = int(NEAREST * len(others))
    if not n_near:
        return
    apart = np.abs(values[others] - value)
    near = others[apart <= np.partition(apart, n_near)[n_near]]
    if len(near) > MOST_NEAR * len(others):
        return
    for neighbour in _list_neighbours(layout, node):
        card, states = layout.cards[neighbour], codes[:, neighbour]
        shown, of_all, of_near = (
            np.bincount(states[rows], minlength=card + 1)[:card] for rows in (here, others, near)
        )
        by_all, by_near, by_own = (_predict(shown, each) for each in (of_all, of_near, 0 * shown))
        yield neighbour, (by_all - by_near, by_all - by_own)


def _shows_one(values: Vector) -> bool:
    """Return whether most of some numbers are the same."""
    times = np.unique(values[np.isfinite(values)], return_counts=True)[1]
    return bool(2 * times.max(initial=0) > len(values))


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
