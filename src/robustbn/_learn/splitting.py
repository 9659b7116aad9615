"""Cells that hold the value of another column as well, which is empty in their row.

`San Diego CA` in the column of cities is a city and a state, if the state is missing there and CA
is one of the states.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_BEFORE_LAST = re.compile(r"[\s,;/]+")


class Split(NamedTuple):
    """A cell that held two values, or the one that was empty, and what it becomes."""

    row: int
    column: str
    likely: str
    probability: float


def split_joined(columns: Mapping[str, Sequence[str]]) -> Iterator[Split]:
    """Yield the cells that end with a value of another column, and those where it was missing.

    A text may end so by chance: as often as it does in rows where the other column has its value.
    That is weighed for all pairs of columns, since all are looked at. What is left must be a value
    of its column, or most of the missing values must be found so.
    """
    n_pairs = len(columns) * (len(columns) - 1)
    for other, values in columns.items():
        empty = [row for row, value in enumerate(values) if not value]
        labels = set(values) - {""}
        for name, texts in columns.items() if empty and labels else ():
            joined = {row: parts for row in empty if (parts := _part(texts[row], labels))}
            if name == other or not joined:
                continue
            filled = [text for text, value in zip(texts, values, strict=True) if value]
            n_there = sum(_part(text, labels) is not None for text in filled)
            p = _tell_chance(len(joined), len(empty) * (n_there + 1) / (len(filled) + 1), n_pairs)
            known = set(texts)
            for row, (first, last) in joined.items():
                is_value = 1.0 if first in known else len(joined) / len(empty)
                yield Split(row, name, first, p * is_value)
                yield Split(row, other, last, p * is_value)


def _tell_chance(n: int, expected: float, n_pairs: int) -> float:
    """Return the probability that a cell of n is there for a reason, if so many are by chance.

    Chance is bounded by Chernoff's inequality for counts.
    """
    if n <= expected:
        return 0.0
    log_chance = n - expected + n * math.log(expected / n)
    return (1 - min(n_pairs * math.exp(log_chance), 1.0)) * (1 - expected / n)


def _part(text: str, labels: set[str]) -> tuple[str, str] | None:
    """Return a text without a label at its end, and that label; None if it has none."""
    for gap in _BEFORE_LAST.finditer(text):
        if gap.start() and text[gap.end() :] in labels:
            return text[: gap.start()], text[gap.end() :]
    return None
