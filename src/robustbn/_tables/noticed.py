"""Gathers what is odd while a table is read, stretch by stretch and in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import MOST_EXAMPLES, MOST_NUMBERS, Clues, NumberRows, OddValues
from robustbn._core.protocols import Column
from robustbn._tables.values import as_numbers

MOST_SAMPLED = 2**15  # rows whose numbers are kept; once there are more, every other one stays
Rows = NDArray[np.int64]


@dataclass
class _Odd:
    """Odd values of one column and kind, so far."""

    n: int = 0
    examples: Counter[Any] = field(default_factory=Counter)
    rows: list[Rows] = field(default_factory=list)
    n_kept: int = 0

    def add(self, n: int, examples: Counter[Any], rows: Rows) -> None:
        self.n += n
        for value, times in examples.items():
            if value in self.examples or len(self.examples) < MOST_EXAMPLES:
                self.examples[value] += times
        if self.n_kept < MOST_NUMBERS:
            self.rows.append(rows[: MOST_NUMBERS - self.n_kept])
            self.n_kept += len(self.rows[-1])


class Noticed:
    """What is odd in a table, so far, by the row numbers of whoever reads."""

    def __init__(self) -> None:
        self._odd: dict[tuple[str, str], _Odd] = {}
        self._rows: Rows = np.empty(0, np.int64)
        self._values: dict[str, NDArray[np.float64]] = {}
        self._step = 1

    def note(self, node: str, kind: str, column: Column, places: Rows, start: int) -> None:
        """Take in the odd values at some places of a stretch that begins at row `start`."""
        if len(places):
            odd = self._odd.setdefault((node, kind), _Odd())
            odd.add(len(places), count_examples(column, places[:MOST_EXAMPLES]), start + places)

    def sample(
        self, columns: dict[str, tuple[Column, str | None]], start: int, n_rows: int
    ) -> None:
        """Keep the numbers of some rows of a stretch."""
        if not columns:
            return
        some = slice(-start % self._step, None, self._step)
        rows = np.arange(start, start + n_rows)[some]
        values = {node: numbers_at(column, some, how) for node, (column, how) in columns.items()}
        self._keep(rows, values)

    def _keep(self, rows: Rows, values: Mapping[str, NDArray[np.float64]]) -> None:
        self._rows = np.concatenate([self._rows, rows])
        for node, new in values.items():
            self._values[node] = np.concatenate([self._values.get(node, np.empty(0)), new])
        while len(self._rows) > MOST_SAMPLED:
            self._rows, self._step = self._rows[::2], 2 * self._step
            self._values = {node: kept[::2] for node, kept in self._values.items()}

    def merge(self, other: Clues, offset: int) -> None:
        """Take in what another reader noticed, whose row 0 is our row `offset`."""
        for odd in other.odd:
            own = self._odd.setdefault((odd.column, odd.kind), _Odd())
            own.add(odd.n, Counter(odd.examples), offset + odd.rows)
        if other.numbers.values:
            self._keep(offset + other.numbers.rows, other.numbers.values)

    def clues(self) -> Clues:
        """Return what was noticed."""
        odd = tuple(
            OddValues(
                column,
                kind,
                each.n,
                dict(each.examples.most_common()),
                np.concatenate([*each.rows, np.empty(0, np.int64)]),
            )
            for (column, kind), each in self._odd.items()
        )
        return Clues(odd, NumberRows(self._rows, self._values))


def count_examples(column: Column, rows: Rows) -> Counter[Any]:
    """Return how often each value occurs among some rows; one that cannot be counted, as text."""
    seen: Counter[Any] = Counter()
    for value in column.values[rows]:
        value = column.labels[value] if column.labels is not None else value
        if isinstance(value, np.datetime64):
            value = value.astype("M8[us]")  # finer ones turn into numbers
        value = value.item() if isinstance(value, np.generic) else value
        try:
            seen[value] += 1
        except TypeError:  # a list, say
            seen[str(value)] += 1
    return seen


def numbers_at(column: Column, some: slice, notation: str | None) -> NDArray[np.float64]:
    """Return the numbers of some rows of a column; labels that do not occur are not read."""
    part = column[some]
    if part.labels is not None:
        used, places = np.unique(part.values, return_inverse=True)
        there = used[used >= 0]
        labels = [part.labels[k] for k in there]
        places = np.maximum(places - (len(used) - len(there)), -1)
        part = Column(places, labels, part.is_missing)
    return as_numbers(part, notation)
