"""Dates that are out of order in a table whose rows come by date."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import EXCHANGED, OUT_OF_ORDER, WRONG_YEAR

LEAST_ROWS = 30  # with a date: 27 of 30 random ones are hardly ever in order
LEAST_TIMES = 10  # different ones: two or three waves of a study may come in any order
# share of the rows, not counting those with the most frequent date, that may be out of order: a
# year with day and month exchanged at one of five sites has 7 %, a table that is not in order
# more than 50 %
MOST_EXCEPTIONS = 0.15
# the same, of exceptions that nothing explains: public tables of polls and matches have 2.5 to 15 %
# of their dates out of order, 40 other columns that come by date none
FEW_EXCEPTIONS = 0.01
ALONE = (
    2.0  # rows next to each other that are in order themselves: more on average are another file
)
MOST_COMPARED = 2**17  # rows: of more, evenly many of them say what lies between (0.1 seconds)
LEAST_MENDED = 3  # exceptions that one mistake puts back: fewer may do so by chance
HOURS = 24
MONTHS = 12

Hours = NDArray[np.int64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Exceptions:
    """Rows whose date is out of order, and the mistake that explains most of them."""

    rows: Places  # their numbers, increasing
    kind: str  # EXCHANGED, WRONG_YEAR, or OUT_OF_ORDER where neither explains them
    n_mended: int = 0  # how many of them are in order once the mistake is undone


def find_exceptions(hours: Hours) -> Exceptions | None:
    """Return the rows of a table in order whose date is not; None if it is not in order at all.

    The others are the longest run of rows, not necessarily next to each other, whose dates ascend;
    or descend, if late rows have early dates. An exception is mended by a mistake if undoing it
    takes the date to where its neighbours are, and further than these are from each other.

    hours : since 1970, of each row; shape (N,).
    """
    n = len(hours)
    if n < LEAST_ROWS:
        return None
    late, early = hours[n // 2 :], hours[: n // 2]
    is_up = np.median(late) >= np.median(early)
    times = hours if is_up else -hours
    n_steps_back = int(np.count_nonzero(np.diff(times) < 0))  # each needs an exception beside it
    if not 0 < n_steps_back <= 2 * MOST_EXCEPTIONS * n:
        return None
    counts = np.unique(times, return_counts=True)[1]
    n_other = n - int(counts.max())  # rows without the most frequent date
    if len(counts) < LEAST_TIMES:
        return None
    low, high = _find_bounds(times)
    rows = np.flatnonzero((times < low) | (times > high))
    if not 0 < len(rows) <= MOST_EXCEPTIONS * n_other:
        return None
    low, high = low[rows], high[rows]
    n_alone = 1 + int(np.count_nonzero((np.diff(rows) > 1) | (np.diff(times[rows]) < 0)))
    is_odd = len(rows) <= FEW_EXCEPTIONS * n_other and len(rows) <= ALONE * n_alone
    if not is_up:
        low, high = -high, -low
    kind, n_mended = _explain(hours[rows], low, high)
    return Exceptions(rows, kind, n_mended) if is_odd or kind != OUT_OF_ORDER else None


def _explain(hours: Hours, low: Hours, high: Hours) -> tuple[str, int]:
    """Return the mistake that puts most exceptions between their neighbours, and how many."""
    days, rest = np.divmod(hours, HOURS)
    days = days.astype("M8[D]")
    months = days.astype("M8[M]")
    day = (days - months.astype("M8[D]")).astype(np.int64)  # from 0 on, as months are below
    month = months.astype(np.int64) % MONTHS
    exchanged = (months - month + np.minimum(day, MONTHS - 1)).astype("M8[D]") + month
    exchanged = np.where(day < MONTHS, exchanged, days)
    other_years = [(months + step).astype("M8[D]") + day for step in (-MONTHS, MONTHS)]
    mended = {
        kind: max(
            _count_mended(hours, each.astype(np.int64) * HOURS + rest, low, high) for each in tried
        )
        for kind, tried in ((EXCHANGED, [exchanged]), (WRONG_YEAR, other_years))
    }
    kind = max(mended, key=lambda name: mended[name])
    if mended[kind] >= LEAST_MENDED and 2 * mended[kind] > len(hours):
        return kind, mended[kind]
    return OUT_OF_ORDER, 0


def _count_mended(hours: Hours, undone: Hours, low: Hours, high: Hours) -> int:
    """Return how many times get between two others, and by more than these are apart."""
    is_between = (undone >= low) & (undone <= high)
    return int(np.count_nonzero(is_between & (high - low < np.abs(undone - hours))))


def _find_bounds(times: Hours) -> tuple[Hours, Hours]:
    """Return between which times each row must lie: those of the rows in order around it."""
    some = np.arange(0, len(times), -(-len(times) // MOST_COMPARED))
    kept = some[_longest_ascending(times[some])]
    after = np.searchsorted(kept, np.arange(len(times)), side="right")
    low = times[kept[np.maximum(after - 1, 0)]]
    high = times[kept[np.minimum(after, len(kept) - 1)]]
    low[after == 0] = times.min()
    high[after == len(kept)] = times.max()
    return low, high


def _longest_ascending(times: Hours) -> Places:
    """Return the places of a longest subsequence that does not descend, by patience sorting."""
    ends: list[int] = []  # the smallest time that a subsequence of each length ends with
    last: list[int] = []  # its place
    before = np.empty(len(times), np.int64)
    for place, time in enumerate(times.tolist()):
        length = bisect_right(ends, time)
        before[place] = last[length - 1] if length else -1
        if length == len(ends):
            ends.append(time)
            last.append(place)
        else:
            ends[length], last[length] = time, place
    found = np.empty(len(ends), np.int64)
    place = last[-1]
    for k in range(len(ends) - 1, -1, -1):
        found[k] = place
        place = int(before[place])
    return found
