"""Which other column odd values of a column are from: columns were shifted, swapped or pasted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.far import CODES, find_distance
from robustbn._show.result import FitResult

FROM_OTHER = "values of another column"
LEAST_DIFFERENT = 2  # values: a single one, such as 'unknown', may be a code of both columns
LEAST_NUMBERS = 20  # of fewer numbers nobody can tell whose they are
MOST_OTHER = 0.1  # share of the values that need not be the other column's: typing errors
APART = 1.63  # over the root of how many there are: a distance that one sample in 100 has

GONE = 0.5  # distance to its own values, from which most of a column's are others
Rows = NDArray[np.int64]
Numbers = NDArray[np.float64]


def find_owner(
    result: FitResult,
    column: str,
    odd: Mapping[Any, int],
    rows: Rows,
    rest: tuple[float, float] | None = None,
) -> str:
    """Return the only other node whose values odd values look like; empty if none or several.

    Labels are compared one by one. Numbers are compared by their distribution, and where another
    column's numbers went, that column shows something else, or the same if they were copied.

    rest : the smallest and the largest ordinary number of the column, between which none is odd.
    """
    if len(odd) < LEAST_DIFFERENT or result.rows_hidden:
        return ""
    numbers, sample = _read_numbers(odd), result.aside.clues.numbers
    is_there = np.isin(sample.rows, rows)
    own = sample.values.get(column)
    found = []
    for node, states in result.network.states.items():
        values = sample.values.get(node)
        if node == column:
            continue
        if values is None:
            is_owner = numbers is None and _are_states(odd, {str(state) for state in states})
        else:
            is_owner = (
                numbers is not None
                and _are_numbers(numbers, values, rest)
                and (
                    _are_gone(values[is_there], values[~is_there])
                    or (own is not None and (own == values)[is_there].mean() >= 1 - MOST_OTHER)
                )
            )
        found += [node] if is_owner else []
    return found[0] if len(found) == 1 else ""


def say_owner(owner: str) -> str:
    """Return a sentence on whose values odd values are."""
    how = "columns may have been shifted, swapped or copied there"
    return f" They look like values of {owner}: {how}."


def _read_numbers(odd: Mapping[Any, int]) -> Numbers | None:
    """Return numbers, each as often as it occurs; None if some values are no numbers."""
    try:
        numbers = np.array([float(value) for value in odd])
    except (TypeError, ValueError):
        return None
    return np.repeat(numbers, [*odd.values()]) if np.isfinite(numbers).all() else None


def _are_states(odd: Mapping[Any, int], states: set[str]) -> bool:
    """Whether nearly all of some values are states of a column, and not all of them the same."""
    owned = {value: n for value, n in odd.items() if str(value).strip() in states}
    is_most = sum(owned.values()) >= (1 - MOST_OTHER) * sum(odd.values())
    return is_most and len(owned) >= LEAST_DIFFERENT


def _are_numbers(numbers: Numbers, values: Numbers, rest: tuple[float, float] | None) -> bool:
    """Whether numbers are distributed like those of a column that would be odd here, too."""
    # Most of the column's are, and codes for missing values, which columns share, do not count.
    numbers, there = (some[np.isfinite(some) & ~np.isin(some, CODES)] for some in (numbers, values))
    others = there if rest is None else there[(there < rest[0]) | (there > rest[1])]
    if min(len(numbers), len(others)) < LEAST_NUMBERS or 2 * len(others) < len(there):
        return False
    return bool(find_distance(numbers, others) < APART / np.sqrt(len(numbers)))


def _are_gone(here: Numbers, elsewhere: Numbers) -> bool:
    """Whether most of a column's values at some rows are not like its values elsewhere."""
    here, elsewhere = (some[np.isfinite(some)] for some in (here, elsewhere))
    return not len(here) or not len(elsewhere) or find_distance(here, elsewhere) >= GONE
