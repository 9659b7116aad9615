"""Where bad rows come from: values and stretches that hold more of them than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.judged import DOUBT
from robustbn._core.origins import ContextColumn, Origin
from robustbn._core.protocols import RowVector, Vector

ROW_NUMBER = "row number"
MOST_STRETCHES = 100  # of the row number
LEAST_NAMED = 10  # of a group that is named
LEAST_RATIO = 1.2  # to the overall share; among many rows less is certain and of no interest
MOST_PAIRED = 12  # groups that are looked at two by two
COUNTED_AT_ONCE = 2**20
MISSING_LABEL = "(missing)"


def find_origins(
    context: Sequence[ContextColumn], weights: RowVector, p_value: float = 0.01
) -> list[Origin]:
    """Return the groups of rows that hold more distrusted rows than chance, most telling first.

    Notation: n all rows that were judged, q the share of them that is distrusted, r the rows of a
    group and k those of them that are distrusted.

        p = P(Binomial(r, q) >= k) * T
        gain = k log(k / r q) + (r - k) log((r - k) / r (1 - q))

    T is the number of groups tested in all columns together (Bonferroni's correction): each value
    of a column; of times, numbers and the row number each run of neighbouring groups, k (k + 1) / 2
    of them. Of runs that overlap the one with most gain is kept. Then the best pair of groups of
    two columns is looked for: both together must hold more than the better one alone. O(N) time
    for each column; memory O(1) beside the columns.

    Parameters
    ----------
    weights : trust in each row that was read, NaN for those left out; shape (n,).
    p_value : largest to be named.
    """
    columns = [*context, _row_numbers(len(weights))]  # of equals, the first is named first
    is_judged = ~np.isnan(weights)
    n, is_bad = int(is_judged.sum()), weights < DOUBT
    n_bad = int(is_bad.sum())
    if not n_bad or n_bad == n:
        return []
    tallies = [_Tally.of(column, is_judged, is_bad) for column in columns]
    n_tests = sum(tally.n_tests for tally in tallies)
    found = [
        group
        for tally in tallies
        for group in tally.find(n_bad / n, math.log(p_value / n_tests), n_tests)
    ]
    found.sort(key=lambda group: -group.origin.gain)
    pair = _best_pair(found[:MOST_PAIRED], is_judged, is_bad, n_bad / n, p_value)
    origins = [group.origin for group in found] + ([] if pair is None else [pair])
    return sorted(origins, key=lambda origin: -origin.gain)


def _row_numbers(n_rows: int) -> ContextColumn:
    """Return the number of each row in equal stretches."""
    n = min(MOST_STRETCHES, n_rows)
    starts = np.linspace(0, n_rows, n + 1).astype(np.int64)
    codes = np.repeat(np.arange(n, dtype=np.int8), np.diff(starts))
    labels, ends = ([f"{v:,}" for v in values] for values in (starts[:-1], starts[1:] - 1))
    return ContextColumn(ROW_NUMBER, tuple(labels), codes, tuple(ends), is_ordered=True)


@dataclass(frozen=True, eq=False)
class _Group:
    """Neighbouring groups of a column, from `first` up to `last`, and what is known of them."""

    column: ContextColumn
    first: int
    last: int
    origin: Origin

    def holds(self, rows: slice) -> NDArray[np.bool_]:
        """Return which rows of a stretch belong to it."""
        codes = self.column.codes[rows]
        return (codes >= self.first) & (codes <= self.last)


@dataclass(frozen=True, eq=False)
class _Tally:
    """How many rows each group of a column has, and how many of them are distrusted."""

    column: ContextColumn
    rows: NDArray[np.int64]
    bad: NDArray[np.int64]

    @classmethod
    def of(
        cls, column: ContextColumn, is_judged: NDArray[np.bool_], is_bad: NDArray[np.bool_]
    ) -> _Tally:
        size = len(column.labels) + 1  # the first is for missing values
        rows, bad = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for start in range(0, len(column.codes), COUNTED_AT_ONCE):
            some = slice(start, start + COUNTED_AT_ONCE)
            codes = column.codes[some].astype(np.int16) + 1
            rows += np.bincount(codes[is_judged[some]], minlength=size)
            bad += np.bincount(codes[is_bad[some]], minlength=size)
        return cls(column, rows, bad)

    @property
    def n_tests(self) -> int:
        n = len(self.column.labels)
        return 1 + (n * (n + 1) // 2 if self.column.is_ordered else n)

    def find(self, overall: float, log_level: float, n_tests: int) -> list[_Group]:
        """Return the groups, or runs of them, that hold too many; none overlaps another."""
        firsts, lasts = self._runs()
        sums = (np.concatenate([[0], np.cumsum(v)]) for v in (self.rows, self.bad))
        rows, bad = (upto[lasts + 1] - upto[firsts] for upto in sums)
        gains = gain_of(bad, rows, overall)
        gains[(rows < LEAST_NAMED) | (bad < LEAST_RATIO * overall * rows)] = 0
        found = []
        while (place := int(np.argmax(gains))) >= 0 and gains[place] > 0:
            log_p = log_tail(int(bad[place]), int(rows[place]), overall)
            if log_p > log_level:
                break
            first, last = int(firsts[place]), int(lasts[place])
            p = math.exp(min(0.0, log_p + math.log(n_tests)))
            numbers = int(rows[place]), int(bad[place])
            origin = Origin((self._say(first, last),), *numbers, overall, p, float(gains[place]))
            found.append(_Group(self.column, first - 1, last - 1, origin))
            gains[(firsts <= last) & (lasts >= first)] = 0
        return found

    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each group, or each run of neighbours, starts and ends; 0 is for missing."""
        if not self.column.is_ordered:
            each = np.arange(len(self.rows))
            return each, each
        firsts, lasts = np.triu_indices(len(self.column.labels))
        return np.append(firsts + 1, 0), np.append(lasts + 1, 0)

    def _say(self, first: int, last: int) -> tuple[str, str, str]:
        if last == 0:
            return self.column.name, MISSING_LABEL, MISSING_LABEL
        ends = self.column.ends or self.column.labels
        return self.column.name, self.column.labels[first - 1], ends[last - 1]


def _best_pair(
    groups: Sequence[_Group],
    is_judged: NDArray[np.bool_],
    is_bad: NDArray[np.bool_],
    overall: float,
    p_value: float,
) -> Origin | None:
    """Return the two groups that together hold most beyond the better of them; None if none do."""
    pairs = [(a, b) for a, b in combinations(range(len(groups)), 2)
             if groups[a].column is not groups[b].column]  # fmt: skip
    if not pairs:
        return None
    rows, bad = np.zeros((len(groups),) * 2), np.zeros((len(groups),) * 2)
    for start in range(0, len(is_bad), COUNTED_AT_ONCE):
        some = slice(start, start + COUNTED_AT_ONCE)
        inside = np.array([g.holds(some) & is_judged[some] for g in groups], np.float32)
        rows += inside @ inside.T
        of_bad = inside[:, is_bad[some]]
        bad += of_bad @ of_bad.T
    best: Origin | None = None
    best_gain = 0.0
    for a, b in pairs:
        n, k = round(rows[a, b]), round(bad[a, b])
        base = max(groups[a].origin.rate, groups[b].origin.rate)
        if n < LEAST_NAMED or base >= 1 or k < LEAST_RATIO * base * n:
            continue
        gain = float(gain_of(np.array([k]), np.array([n]), base)[0])
        log_p = log_tail(k, n, base) + math.log(len(pairs))
        if gain > best_gain and log_p <= math.log(p_value):
            parts = groups[a].origin.parts + groups[b].origin.parts
            over_all = float(gain_of(np.array([k]), np.array([n]), overall)[0])
            best_gain = gain
            best = Origin(parts, n, k, overall, math.exp(min(0.0, log_p)), over_all)
    return best


def gain_of(k: NDArray[np.int64], r: NDArray[np.int64], q: float) -> Vector:
    """Return `k log(k / r q) + (r - k) log((r - k) / r (1 - q))`; 0 where k is below `r q`."""
    bad, good = k.astype(np.float64), (r - k).astype(np.float64)
    n = np.maximum(r, 1)
    gain = bad * np.log(np.maximum(bad, 1e-300) / (n * q))
    gain += good * np.log(np.maximum(good, 1e-300) / (n * (1 - q)))
    return np.where(bad > n * q, gain, 0.0)


def log_tail(k: int, r: int, q: float) -> float:
    """Return `log P(Binomial(r, q) >= k)`.

    The first term by logarithms of factorials, the others by their ratios, which are below one and
    fall: `t[j + 1] / t[j] = (r - j) q / ((j + 1) (1 - q))` for j above `r q`.
    """
    if k <= r * q:
        return 0.0
    first = math.lgamma(r + 1) - math.lgamma(k + 1) - math.lgamma(r - k + 1)
    first += k * math.log(q) + (r - k) * math.log1p(-q)
    n_terms = min(r - k, 200 + int(40 * math.sqrt(r * q)))
    j = np.arange(k, k + n_terms, dtype=np.float64)
    terms = np.cumprod((r - j) * q / ((j + 1) * (1 - q)))
    return min(0.0, first + math.log1p(float(terms.sum())))
