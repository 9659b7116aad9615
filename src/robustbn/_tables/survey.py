"""What is in a column, in one pass and bounded memory: kinds, distinct values, missing ones.

Distinct values are counted exactly up to `MOST_COUNTED`. A column with more is *wide*: of numbers a
sample is kept, dates are counted by day, and of words the frequent ones stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Column
from robustbn._tables.arrow import parse_numbers
from robustbn._tables.date_forms import date_part, day_of, is_doubtful
from robustbn._tables.number_forms import as_number, find_notation, number_in
from robustbn._tables.sources import Source
from robustbn._tables.values import (
    WORDS_FOR_MISSING,
    StateFinder,
    as_numbers,
    count_values,
    is_missing,
    without_gone,
)

MOST_COUNTED = 2**14
SAMPLED_NUMBERS = 2**16
SAMPLE_SEED = 20210503  # any: the same rows give the same sample
NUMBER, DATE, TRUTH, WORD = "number", "date", "truth value", "label"


class NumberSample:
    """Numbers drawn evenly from all that went by, however cut: those with the smallest keys."""

    def __init__(self) -> None:
        self.values, self._keys = np.empty(0), np.empty(0)
        self.lowest, self.highest = np.inf, -np.inf
        self._random = np.random.default_rng(SAMPLE_SEED)

    def add(self, numbers: NDArray[np.float64]) -> None:
        """Take in more numbers; NaN and infinities are passed over. O(n)."""
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers):
            return
        self.lowest = min(self.lowest, float(numbers.min()))
        self.highest = max(self.highest, float(numbers.max()))
        keys = self._random.random(len(numbers))
        is_low = keys < (self._keys[-1] if len(self._keys) == SAMPLED_NUMBERS else np.inf)
        keys = np.concatenate([self._keys, keys[is_low]])
        values = np.concatenate([self.values, numbers[is_low]])
        order = np.argsort(keys, kind="stable")[:SAMPLED_NUMBERS]
        self._keys, self.values = keys[order], values[order]


@dataclass
class ColumnSurvey:
    """What one column holds, so far."""

    name: str  # of the column
    is_text: bool = False  # whether values come from a text file, where a missing value is a word
    # n_rows, n_missing: rows so far, and those without a value
    n_rows: int = 0
    n_missing: int = 0
    # rows of each distinct value; of a wide column of dates, of each day; of other wide columns, of
    # the frequent words
    counts: Counter[Any] = field(default_factory=Counter)
    # None, or the kind of a column with more than `MOST_COUNTED` distinct values
    wide: str | None = None
    # rows of each word that was taken for a missing value
    words_for_missing: Counter[str] = field(default_factory=Counter)
    sample: NumberSample = field(default_factory=NumberSample)  # of the numbers of a wide column
    is_mostly_distinct: bool = False
    # the values in their order, where they are categories that have one
    order: tuple[Any, ...] | None = None
    gone: StateFinder | None = None  # finds the values that are said to be missing; None if none is
    # of its numbers, if they are not written plainly; once all rows are in
    notation: str | None = None

    @property
    def n_present(self) -> int:
        """Rows with a value."""
        return self.n_rows - self.n_missing

    @property
    def n_distinct(self) -> int | None:
        """How many different values there are; None if they are too many to count."""
        return len(self.counts) if self.wide is None else None

    @property
    def n_least(self) -> int:
        """How many different values there are at the least; more if they are too many to count."""
        return len(self.counts) if self.wide is None else MOST_COUNTED

    def add(self, column: Column) -> None:
        """Take in a stretch of rows."""
        column = column if column.is_title is None else column[~column.is_title]
        ordered = tuple(column.labels or ()) if column.is_ordered else None
        column = without_gone(column, self.gone)
        self.order = ordered if self.order == ordered or not self.n_rows else None
        self.n_rows += len(column.values)
        if self.wide == NUMBER:
            self._add_numbers(column)
            return
        counts, is_text, by_day = self.counts, self.is_text, self.wide == DATE
        n_present = 0
        for value, n in count_values(column):
            if is_text and type(value) is str:
                value = value.strip()
                if value in WORDS_FOR_MISSING:
                    self.words_for_missing[value] += n
                    continue
            elif is_missing(value):
                continue
            n_present += n
            if by_day:
                value = date_part(value)
            if value in counts:
                counts[value] += n
            elif not self.is_mostly_distinct:
                counts[value] = n
        self.n_missing += len(column.values) - n_present
        if len(counts) > MOST_COUNTED:
            self._grow_wide()

    def _grow_wide(self) -> None:
        """Keep less of a column with many distinct values."""
        if self.wide is None:
            self.notation = find_notation(self.counts)
            kinds = [kind_of(value, self.notation) for value in self.counts]
            self.wide, most = Counter(kinds).most_common(1)[0]
            if most < 0.9 * len(self.counts):
                self.wide = WORD
            self.is_mostly_distinct = self.wide == WORD and 2 * most > self.n_present
            if self.wide == NUMBER:
                self._sample_numbers(kinds)
                return
            if self.wide == DATE:
                days: Counter[Any] = Counter()
                for value, n in self.counts.items():
                    days[date_part(value)] += n
                self.counts = days
        if len(self.counts) > MOST_COUNTED:
            self.counts = Counter(dict(self.counts.most_common(MOST_COUNTED // 2)))

    def _sample_numbers(self, kinds: Sequence[str]) -> None:
        """Turn the counts of numbers into a sample of them; words stay counted."""
        is_number = np.array(kinds) == NUMBER
        values, rows = list(self.counts), np.fromiter(self.counts.values(), np.int64)
        read = float if self.notation is None else self.number_of
        numbers = np.array([read(values[k]) for k in np.flatnonzero(is_number)], float)
        part = (np.cumsum(rows[is_number]) - 1) // 2**22  # so that rows take little memory
        for k in np.unique(part):
            self.sample.add(np.repeat(numbers[part == k], rows[is_number][part == k]))
        self.counts = Counter({values[k]: int(rows[k]) for k in np.flatnonzero(~is_number)})

    def _add_numbers(self, column: Column) -> None:
        """Take in a stretch of a wide column of numbers; words among them are counted."""
        labels = column.labels
        if labels is None or not self.is_text or self.notation is not None:
            numbers = as_numbers(column, self.notation)
        else:
            parsed = np.append(parse_numbers(labels, WORDS_FOR_MISSING), np.nan)
            numbers = as_numbers(Column(parsed[column.values], None, column.is_missing))
        self.sample.add(numbers)
        n_nan = np.count_nonzero(np.isnan(numbers))
        if not n_nan:
            return
        counted = [(v, n) for v, n in count_values(column) if not is_missing(v, self.is_text)]
        n_missing = len(numbers) - sum(n for _, n in counted)
        self.n_missing += n_missing
        for value, n in counted if n_nan > n_missing else ():
            word = value.strip() if isinstance(value, str) else value
            if kind_of(word, self.notation) != NUMBER and len(self.counts) < MOST_COUNTED:
                self.counts[word] += n

    def number_of(self, value: Any) -> Any:
        """Return a value of the column as the number it is; None if it is none."""
        return as_number(value) if self.notation is None else number_in(value, self.notation)


def survey_columns(
    source: Source, positions: Sequence[int], gone: Mapping[int, StateFinder | None] | None = None
) -> Iterator[list[ColumnSurvey]]:
    """Yield what the columns at some positions hold, after each stretch of rows."""
    names = source.names or tuple(f"x{k}" for k in range(source.n_columns))
    surveys = [ColumnSurvey(names[k], source.is_text, gone=(gone or {}).get(k)) for k in positions]
    for columns in source.read(positions):
        for survey, column in zip(surveys, columns, strict=True):
            survey.add(column)
        yield surveys
    for survey in surveys:
        if survey.wide is None:
            survey.notation = find_notation(survey.counts)
    yield surveys


def kind_of(value: Any, notation: str | None = None) -> str:
    """Return what a value is by itself: a truth value, a number, a date, or a label."""
    if isinstance(value, bool):
        return TRUTH
    if (as_number(value) if notation is None else number_in(value, notation)) is not None:
        return NUMBER
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return TRUTH
    return DATE if is_doubtful(value) or day_of(value) is not None else WORD
