"""Cells that hold the value of another column as well, which is empty in their row.

`San Diego CA` in the column of cities is a city and a state, if the state is missing there and CA
is one of the states.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_GAP = re.compile(r"[\s,;/]+")


class Split(NamedTuple):
    """A cell that held two values, or the one that was empty, and what it becomes."""

    row: int
    column: str
    likely: str
    probability: float


def split_joined(columns: Mapping[str, Sequence[str]]) -> Iterator[Split]:
    """Yield the cells that end with a value of another column, and those where it was missing."""
    # A text may end so by chance: as often as it does in rows where the other column has its value.
    # That is weighed for all pairs of columns, since all are looked at. What is left must be a
    # value of its column, or most of the missing values must be found so.
    n_pairs = len(columns) * (len(columns) - 1)
    texts = {name: {t for t in set(column) if _GAP.search(t)} for name, column in columns.items()}
    for other, values in columns.items():
        empty = [row for row, value in enumerate(values) if not value]
        labels = set(values) - {""}
        for name in columns if empty and labels else ():
            parts = {} if name == other else _find_joined(texts[name], labels)
            joined = [row for row in empty if columns[name][row] in parts]
            if not joined:
                continue
            n_there = sum(text in parts for text in columns[name]) - len(joined)
            n_filled = len(values) - len(empty)
            p = _tell_chance(len(joined), len(empty) * (n_there + 1) / (n_filled + 1), n_pairs)
            known = set(columns[name])
            for row in joined:
                first, last = parts[columns[name][row]]
                is_value = 1.0 if first in known else len(joined) / len(empty)
                yield Split(row, name, first, p * is_value)
                yield Split(row, other, last, p * is_value)


def _find_joined(texts: set[str], labels: set[str]) -> dict[str, tuple[str, str]]:
    """Return the texts that end with a label, each without it, and the label."""
    most = max(len(_GAP.findall(label)) for label in labels) + 1
    found = {}
    for text in texts:
        for gap in list(_GAP.finditer(text))[-most:]:
            if gap.start() and text[gap.end() :] in labels:
                found[text] = text[: gap.start()], text[gap.end() :]
                break
    return found


def _tell_chance(n: int, expected: float, n_pairs: int) -> float:
    """Return the probability that a cell of n has a reason, given so many by chance (Chernoff)."""
    if n <= expected:
        return 0.0
    log_chance = n - expected + n * math.log(expected / n)
    return (1 - min(n_pairs * math.exp(log_chance), 1.0)) * (1 - expected / n)
