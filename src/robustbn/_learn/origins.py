"""Where bad rows come from: values and stretches that hold more of them than chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import (
    ORIGIN_P_VALUE,
    ContextColumn,
    ContextTally,
    GroupRun,
    Groups,
    Origin,
    RowNumbers,
    count_together,
)
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.trust import DOUBT

Counts = NDArray[np.int64]
Together = Callable[[Sequence[GroupRun]], tuple[Counts, Counts]]
COUNTED_AT_ONCE = 2**20  # rows: bounds memory, changes nothing
LEAST_ROWS = 10  # rows of a group that is named: fewer are single cases
LEAST_RATIO = 1.2  # times the overall share: among many rows less is certain, and of no interest
PAIRED = 12  # groups, the most telling ones, that are looked at two by two
MISSING_LABEL = "(missing)"


def find_origins(
    context: Sequence[ContextColumn], weights: RowVector, p_value: float = ORIGIN_P_VALUE
) -> list[Origin]:
    """Return the groups of rows that hold more distrusted rows than chance, most telling first.

    O(N) time for each column; memory O(1) beside the columns. See `name_origins`.

    weights : trust in each row that was read, NaN for those left out; shape (n,).
    """
    numbers = RowNumbers.of(len(weights))
    of_numbers = ContextColumn(numbers.groups, numbers.place(0, len(weights)))
    columns = [*context, of_numbers]  # of equals, the first is named first
    is_judged, is_bad = ~np.isnan(weights), weights < DOUBT
    tallies = [tally_column(column, is_judged, is_bad) for column in columns]

    def together(runs: Sequence[GroupRun]) -> tuple[Counts, Counts]:
        rows, bad = np.zeros((2, len(runs), len(runs)), np.int64)
        for some in _stretches(len(is_bad)):
            codes = {run.column: columns[run.column].codes[some] for run in runs}
            counted = count_together(runs, codes, is_judged[some], is_bad[some])
            rows, bad = rows + counted[0], bad + counted[1]
        return rows, bad

    return name_origins(tallies, together, p_value)


def name_origins(
    tallies: Sequence[ContextTally], together: Together, p_value: float = ORIGIN_P_VALUE
) -> list[Origin]:
    """Return the groups of rows that hold more distrusted rows than chance, most telling first.

    Notation: n all rows that were judged, q the share of them that is distrusted, r the rows of a
    group and k those of them that are distrusted.

        p = P(Binomial(r, q) >= k) * T
        gain = k log(k / r q) + (r - k) log((r - k) / r (1 - q))

    T is the number of groups tested in all columns together (Bonferroni's correction): each value
    of a column; of times, numbers and the row number each run of neighbouring groups, k (k + 1) / 2
    of them. Of runs that overlap the one with most gain is kept. Then the best pair of groups of
    two columns is looked for: both together must hold more than the better one alone. Its p is that
    of any group, with `T^2 / 2` tests, so that all p-values can be compared; they give the order,
    and gain does where they are too small for a number.

    tallies : of the columns; that of the row number, which every row has, is the last.
    together : returns how many rows belong to both of two runs of groups, and how many of those
        are distrusted.
    """
    found = _find_groups(tallies, p_value)
    n_tests = sum(map(_n_tests, tallies))
    pair = _best_pair(found[:PAIRED], together, p_value, n_tests)
    origins = [group.origin for group in found] + ([] if pair is None else [pair])
    return sorted(origins, key=lambda origin: (origin.p_value, -origin.gain))


def choose_runs(tallies: Sequence[ContextTally]) -> list[GroupRun]:
    """Return the groups to count two by two, before it is known which p-value will be asked for."""
    found = _find_groups(tallies, 1.0)[: 2 * PAIRED]
    runs = [group.run for group in found]
    return runs if len({run.column for run in runs}) > 1 else []


class _Group(NamedTuple):
    """A run of groups that holds too many distrusted rows, and what is known of it."""

    run: GroupRun
    origin: Origin


def _find_groups(tallies: Sequence[ContextTally], p_value: float) -> list[_Group]:
    """Return the groups that hold too many, most gain first."""
    n, n_bad = int(tallies[-1].rows.sum()), int(tallies[-1].bad.sum())
    if not n_bad or n_bad == n:
        return []
    n_tests = sum(map(_n_tests, tallies))
    level = math.log(p_value / n_tests)
    found = [
        group
        for k, tally in enumerate(tallies)
        for group in _find_in_column(k, tally, n_bad / n, level, n_tests)
    ]
    return sorted(found, key=lambda group: -group.origin.gain)


def tally_column(
    column: ContextColumn, is_judged: NDArray[np.bool_], is_bad: NDArray[np.bool_]
) -> ContextTally:
    """Return how many rows each group has, and how many of them are distrusted; O(N)."""
    size = len(column.groups.labels) + 1  # the first is for missing values
    rows, bad = np.zeros((2, size), np.int64)
    for some in _stretches(len(column.codes)):
        codes = column.codes[some].astype(np.int16) + 1
        rows += np.bincount(codes[is_judged[some]], minlength=size)
        bad += np.bincount(codes[is_bad[some]], minlength=size)
    return ContextTally(column.groups, rows, bad)


def _stretches(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, COUNTED_AT_ONCE):
        yield slice(start, start + COUNTED_AT_ONCE)


def _n_tests(tally: ContextTally) -> int:
    n = len(tally.groups.labels)
    return 1 + (n * (n + 1) // 2 if tally.groups.is_ordered else n)


def _find_in_column(
    column: int, tally: ContextTally, overall: float, level: float, n_tests: int
) -> list[_Group]:
    """Return the groups of a column, or runs of them, that hold too many; none overlaps another."""
    firsts, lasts = _runs(tally)
    sums = (np.concatenate([[0], np.cumsum(v)]) for v in (tally.rows, tally.bad))
    rows, bad = (upto[lasts + 1] - upto[firsts] for upto in sums)
    gains = gain_of(bad, rows, overall)
    gains[(rows < LEAST_ROWS) | (bad < LEAST_RATIO * overall * rows)] = 0
    found = []
    while (place := int(np.argmax(gains))) >= 0 and gains[place] > 0:
        log_p = log_tail(int(bad[place]), int(rows[place]), overall)
        if log_p > level:
            break
        first, last = int(firsts[place]), int(lasts[place])
        p = math.exp(min(0.0, log_p + math.log(n_tests)))
        numbers = int(rows[place]), int(bad[place])
        said = _say(tally.groups, first, last)
        origin = Origin((said,), *numbers, overall, p, float(gains[place]))
        found.append(_Group(GroupRun(column, first - 1, last - 1), origin))
        gains[(firsts <= last) & (lasts >= first)] = 0
    return found


def _runs(tally: ContextTally) -> tuple[Counts, Counts]:
    """Return where each group, or each run of neighbours, starts and ends; 0 is for missing."""
    if not tally.groups.is_ordered:
        each = np.arange(len(tally.rows))
        return each, each
    firsts, lasts = np.triu_indices(len(tally.groups.labels))
    return np.append(firsts + 1, 0), np.append(lasts + 1, 0)


def _say(groups: Groups, first: int, last: int) -> tuple[str, str, str]:
    if last == 0:
        return groups.name, MISSING_LABEL, MISSING_LABEL
    ends = groups.ends or groups.labels
    return groups.name, groups.labels[first - 1], ends[last - 1]


def _best_pair(
    groups: Sequence[_Group], together: Together, p_value: float, n_tests: int
) -> Origin | None:
    """Return the two groups that together hold most beyond the better of them; None if none do."""
    runs = [group.run for group in groups]
    places = range(len(runs))
    pairs = [(a, b) for a, b in combinations(places, 2) if runs[a].column != runs[b].column]
    if not pairs:
        return None
    rows, bad = together(runs)
    best: Origin | None = None
    best_gain, overall = 0.0, groups[0].origin.overall
    for a, b in pairs:
        n, k = int(rows[a, b]), int(bad[a, b])
        base = max(groups[a].origin.rate, groups[b].origin.rate)
        if n < LEAST_ROWS or base >= 1 or k < LEAST_RATIO * base * n:
            continue
        gain = float(gain_of(k, n, base))
        log_alone = log_tail(k, n, base) + math.log(len(pairs))
        log_p = log_tail(k, n, overall) + math.log(n_tests * n_tests / 2)
        if gain > best_gain and max(log_alone, log_p) <= math.log(p_value):
            parts, p = groups[a].origin.parts + groups[b].origin.parts, math.exp(min(0.0, log_p))
            best_gain = gain
            best = Origin(parts, n, k, overall, p, float(gain_of(k, n, overall)))
    return best


def gain_of(k: Counts | int, r: Counts | int, q: float) -> Vector:
    """Return `k log(k / r q) + (r - k) log((r - k) / r (1 - q))`; 0 where k is below `r q`."""
    bad, good, n = np.asarray(k, np.float64), np.asarray(r - k, np.float64), np.maximum(r, 1)
    gain = bad * np.log(np.maximum(bad, 1e-300) / (n * q))
    gain += good * np.log(np.maximum(good, 1e-300) / (n * (1 - q)))
    return np.where(bad > n * q, gain, 0.0)


def log_tail(k: int, r: int, q: float) -> float:
    """Return `log P(Binomial(r, q) >= k)`."""
    # The first term by logarithms of factorials, the others by their ratios, which are below one
    # and fall: `t[j + 1] / t[j] = (r - j) q / ((j + 1) (1 - q))` for j above `r q`.
    if k <= r * q:
        return 0.0
    first = math.lgamma(r + 1) - math.lgamma(k + 1) - math.lgamma(r - k + 1)
    first += k * math.log(q) + (r - k) * math.log1p(-q)
    n_terms = min(r - k, 200 + int(40 * math.sqrt(r * q)))
    j = np.arange(k, k + n_terms, dtype=np.float64)
    terms = np.cumprod((r - j) * q / ((j + 1) * (1 - q)))
    return min(0.0, first + math.log1p(float(terms.sum())))
