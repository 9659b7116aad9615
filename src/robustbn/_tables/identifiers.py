"""Columns that name rows: which they are, and which of their values occur more than once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import RepeatedIds
from robustbn._core.protocols import Column
from robustbn._tables.values import find_distinct, is_missing, to_number

LEAST_ROWS = 20  # with a value: fewer do not show that a column names rows
MOSTLY = 0.9  # different values a row, from which a column names rows
MOSTLY_NAMED = 0.5  # the same, of a column that is called an identifier: some rows are copies
DENSE = 4  # times as many whole numbers between the smallest and the largest as there are rows
MOST_IDS = 2**25  # rows whose identifiers are compared: 8 bytes each
MOST_QUOTED = 2**18  # rows of a table whose repeated identifiers can be quoted
MOST_EXAMPLES = 5
_NAMED = re.compile(r"(^|[_\W])(id|uuid|guid|key|nr|no|number|rownames|index|idx|record)s?$")
_WHERE = re.compile(
    r"(^|[_\W])(site|cent(er|re)|clinic|hospital|lab|laboratory|station|branch|batch|lot|run|source|file|"
    r"device|machine|sensor|instrument|operator|interviewer|rater)([_\W]?(name|code|id|no|nr))?$"
)
_NAMED_INSIDE = re.compile(r"[a-z]I[dD]$")


def is_identifier(name: str, column: Column, is_text: bool) -> bool:
    """Whether the first rows of a column look like names of rows: hardly any value comes twice."""
    try:
        values, places = find_distinct(column)
    except TypeError:  # lists among the values, say
        return False
    used = np.unique(places[places >= 0])
    shown = [values[k] for k in used.tolist() if not is_missing(values[k], is_text)]
    n_present = int(np.count_nonzero(places >= 0))
    is_named = bool(_NAMED.search(name.lower()) or _NAMED_INSIDE.search(name))
    if n_present < LEAST_ROWS or len(shown) < (MOSTLY_NAMED if is_named else MOSTLY) * n_present:
        return False
    numbers = [to_number(value) for value in shown]
    plain = [number for number in numbers if number is not None and np.isfinite(number)]
    if len(plain) < len(shown):
        return len(plain) < 0.5 * len(shown) and all(isinstance(v, str) for v in shown)
    is_whole = all(number == int(number) for number in plain)
    return is_whole and (is_named or max(plain) - min(plain) < DENSE * len(plain))


def says_where(name: str) -> bool:
    """Whether a column is called like one that says where rows come from, not what they say.

    >>> says_where("site"), says_where("Lab_ID"), says_where("website visits")
    (True, True, False)
    """
    return _WHERE.search(name.strip().lower()) is not None


class IdentifierReader:
    """Compares the identifiers of all rows, stretch by stretch."""

    def __init__(self, name: str, is_text: bool) -> None:
        self.name, self._is_text = name, is_text
        self._prints: list[NDArray[np.int64]] = []
        self._words: list[Any] | None = []
        self._n = 0

    def add(self, column: Column) -> None:
        """Take in a stretch of rows."""
        if self._n > MOST_IDS:
            return
        try:
            values, places = find_distinct(column)
        except TypeError:
            self._n = MOST_IDS + 1
            return
        of_values = [0 if is_missing(v, self._is_text) else _print_of(v) for v in values]
        self._prints.append(np.array([*of_values, 0], np.int64)[places])
        self._n += len(places)
        if self._words is not None:
            self._words = None if self._n > MOST_QUOTED else self._words
        if self._words is not None:
            self._words += [*(values[k] if k >= 0 else None for k in places.tolist())]

    def finish(self) -> RepeatedIds | None:
        """Return the identifiers that occur more than once; None if none does."""
        if self._n > MOST_IDS or not self._prints:
            return None
        prints = np.concatenate(self._prints)
        rows = np.flatnonzero(prints)
        order = rows[np.argsort(prints[rows], kind="stable")]
        is_again = np.append(False, prints[order[1:]] == prints[order[:-1]])
        if not is_again.any():
            return None
        starts = np.maximum.accumulate(np.where(is_again, 0, np.arange(len(order))))
        first, again = order[starts[is_again]], order[is_again]
        in_order = np.argsort(again, kind="stable")
        first, again = first[in_order], again[in_order]
        quoted = dict.fromkeys(first.tolist())
        words = self._words or []
        examples = tuple(str(words[k]).strip() for k in list(quoted)[:MOST_EXAMPLES] if words)
        return RepeatedIds(self.name, first, again, len(quoted), examples)


def _print_of(value: Any) -> int:
    """Return a number that stands for a value: the same for 7, 7.0 and "7"; never 0."""
    text = value.strip() if isinstance(value, str) else value
    number = to_number(text)
    if number is not None and abs(number) < 2**53 and number == int(number):
        text = int(number)
    return hash(str(text)) or 1
