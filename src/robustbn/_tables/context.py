"""Columns of context: read in stretches, counted in tables that add up, put into groups.

Counted is by NumPy: Arrow's `group_by` needs its scanner, and even `pa.array` needs pandas, whose
import takes longer than most tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import FAR_DATE, NO_DATE, OddValues
from robustbn._core.far import find_rest, is_apart
from robustbn._core.origins import ContextColumn, ContextTally, Groups
from robustbn._core.protocols import Column
from robustbn._tables.date_forms import CALENDAR, day_of, find_order
from robustbn._tables.date_order import find_exceptions
from robustbn._tables.values import as_numbers, as_objects, find_distinct, is_missing

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_] | None
NEITHER = np.iinfo(np.int32).min  # the hour of what is no time
GONE = NEITHER + 1  # the hour of what is missing
MOST_HOURS = 2**27  # 15,000 years: what is further from 1970 is no time
ISO_START = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d)?", re.ASCII)
PERIODS = ("h", "D", "M", "Y")  # NumPy's letters
NO_KEY = np.iinfo(np.int64).min  # of rows that miss a value: NumPy's NaT
WIDEST_SPAN = 2**18  # of keys that are counted without being sorted
MOST_BUCKETS = 2**14  # of numbers: an end of a tenth is off by 1 row in 1,600 if all are alike
MOST_VALUES = 1_000  # of words and whole numbers: with more they are names, or are cut
MOST_PERIODS = 400  # of a time: the shortest with no more of them, so a year goes by days
HOURS_OF_YEAR = 24 * 365.25
MOST_EXAMPLES = 3  # of times that are far from all others
MOST_ODD_TIMES = 0.5  # share of different values that are no times; exchanged days and months: 0.39
MOST_NUMBERED = 200  # different numbers of sites, interviewers or years: more are measurements
INTERVALS = 10  # of numbers, with equally many rows each
COUNTED_TOGETHER = 2**16  # rows: once the first are counted, others need fewer bits


@dataclass(frozen=True, eq=False)
class RawContext:
    """A column of context as it was read.

    `kind` says what `codes` are: positions in `values`, -1 where one is missing; "hours" since
    1970; "numbers", NaN where there is none; "none" if the column was given up.
    """

    name: str
    kind: str
    values: tuple[Any, ...]
    codes: NDArray[Any]

    def as_units(self, kind: str) -> NDArray[Any]:
        """Return positions of values as hours or numbers."""
        gone = np.int32(GONE) if kind == "hours" else np.float32(np.nan)
        found: NDArray[Any] = np.append(_units_of(kind, self.values), gone)[self.codes]
        return found


class ContextCoder:
    """Reads one column of context: its values while they are few, then its hours or numbers.

    `kind` is "values", then "hours", "numbers" or, given up, "none".
    """

    def __init__(self, name: str, is_text: bool = False, kind: str = "values") -> None:
        self.name, self.kind = name, kind
        self._is_text = is_text
        self._numbers: dict[Any, int] = {}

    def code(self, column: Column) -> RawContext:
        """Return a stretch of rows; what it holds may be of another kind than the one before."""
        codes: NDArray[Any] = np.empty(0, np.int16)
        if self.kind == "values":
            try:
                codes = self._code_values(column)
            except (TypeError, ValueError):  # a list among the values, say
                self.kind = "none"
        if self.kind == "hours":
            codes = _column_of_hours(column, self._is_text)
        elif self.kind == "numbers":
            codes = _column_of_floats(column)
        values = tuple(self._numbers) if self.kind == "values" else ()
        return RawContext(self.name, self.kind, values, codes)

    def _code_values(self, column: Column) -> NDArray[Any]:
        """Give new values a number; where they get too many, change the kind: nothing is coded."""
        if column.labels is None and column.values.dtype.kind == "M":
            column = replace(column, values=column.values.astype("M8[h]"))
        values, places = find_distinct(column)
        occurs = np.arange(len(values))
        if len(values) > MOST_VALUES:
            occurs = np.unique(places)
            occurs = occurs[occurs >= 0]
        table = np.full(len(values) + 1, -1, np.int16)
        for k in occurs.tolist():
            if not is_missing(values[k], self._is_text):
                table[k] = self._numbers.setdefault(values[k], len(self._numbers))
            if len(self._numbers) > MOST_VALUES:
                self.kind = _kind_of(list(self._numbers))
                return table[:0]
        codes: NDArray[Any] = table[places]
        return codes


def join_raws(name: str, raws: Sequence[RawContext]) -> RawContext:
    """Return the stretches of a column as one: 2 bytes a row for values, 4 for the others."""
    last = raws[-1] if raws else RawContext(name, "values", (), np.empty(0, np.int16))
    if last.kind == "none" or not raws:
        return last
    codes = [raw.codes if raw.kind == last.kind else raw.as_units(last.kind) for raw in raws]
    return RawContext(name, last.kind, last.values, np.concatenate(codes))


class ContextCounts:
    """How often the values of a column occur: of bounded size, and the same in any order.

    Keys are values, while they are few; then hours, days, months or years, the shortest that are
    not too many; or numbers by the bits they begin with, as many as keep them few. Rows that miss a
    value have a key of their own. Counts of parts add up to those of the whole.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = "values"
        self.low, self.high = math.inf, -math.inf
        self._values: dict[Any, int] = {}
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros((0, 3), np.int64)  # rows read, judged and distrusted of each key
        self._scale = 0  # place of the period, or bits that are left out

    @property
    def n_keys(self) -> int:
        """How many values, periods or buckets are counted."""
        return int(np.count_nonzero(self._keys != NO_KEY))

    def add(self, raw: RawContext, is_judged: Mask = None, is_bad: Mask = None) -> None:
        """Count some rows; without masks, all of them are judged and none is distrusted."""
        if raw.kind == "none":
            self._give_up()
        for start in range(0, len(raw.codes), COUNTED_TOGETHER):
            some = slice(start, start + COUNTED_TOGETHER)
            masks = (None if mask is None else mask[some] for mask in (is_judged, is_bad))
            self._count(raw, raw.codes[some], *masks)

    def _count(self, raw: RawContext, codes: NDArray[Any], is_judged: Mask, is_bad: Mask) -> None:
        keys, scale = _keys_of(raw.kind, codes), 0
        if raw.kind == "numbers":
            self._widen(codes)
            scale = self._scale if self.kind == "numbers" else 0
            keys = _coarser(raw.kind, keys, 0, scale)
        counts = np.ones((len(codes), 3), np.int64)
        counts[:, 1] = True if is_judged is None else is_judged
        counts[:, 2] = False if is_bad is None else is_bad
        self._take(raw.kind, raw.values, *_sum_by_key(keys, counts), scale)

    def merge(self, other: ContextCounts) -> None:
        """Take in what another part has."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        if len(other._keys) or other.kind == "none":
            values = tuple(other._values)
            self._take(other.kind, values, other._keys, other._counts, other._scale)

    def _widen(self, numbers: NDArray[np.float32]) -> None:
        there = numbers[np.isfinite(numbers)]
        if len(there):
            self.low = min(self.low, float(there.min()))
            self.high = max(self.high, float(there.max()))

    def _give_up(self) -> None:
        self.kind, self._keys, self._counts = "none", self._keys[:0], self._counts[:0]

    def _take(
        self, kind: str, values: Sequence[Any], keys: Counts, counts: Counts, scale: int
    ) -> None:
        """Take in counts of some kind, at a scale of theirs."""
        if kind == self.kind == "values":
            known = self._values
            own = [k if k == NO_KEY else known.setdefault(values[k], len(known)) for k in keys]
            keys = np.array(own, np.int64)
        elif kind == "values" and self.kind != "none":
            kind, keys = self.kind, self._as_units(self.kind, values, keys)
        elif self.kind == "values":
            seen = list(self._values)
            self._turn(kind if not seen or _kind_of(seen) == kind else "none")
        if kind != self.kind or kind == "none":
            self._give_up()
            return
        wanted = max(scale, self._scale)
        old = _coarser(kind, self._keys, self._scale, wanted)
        new = _coarser(kind, keys, scale, wanted)
        self._set(np.concatenate([old, new]), np.concatenate([self._counts, counts]), wanted)
        if kind == "values" and len(self._values) > MOST_VALUES:
            self._turn(_kind_of(list(self._values)))
        self._stay_small()

    def _set(self, keys: Counts, counts: Counts, scale: int) -> None:
        self._keys, self._counts = _sum_by_key(keys, counts)
        self._scale = scale

    def _as_units(self, kind: str, values: Sequence[Any], keys: Counts) -> Counts:
        """Return keys of values as those of hours or numbers; what is neither is missing."""
        units = _units_of(kind, values)
        if kind == "numbers":
            self._widen(units[keys[keys != NO_KEY]])
        return np.append(_keys_of(kind, units), NO_KEY)[np.maximum(keys, -1)]

    def _turn(self, kind: str) -> None:
        """Go on by hours or numbers, or give up."""
        values, self._values, self.kind = list(self._values), {}, kind
        if kind == "none":
            self._give_up()
        else:
            self._set(self._as_units(kind, values, self._keys), self._counts, 0)

    def _stay_small(self) -> None:
        """Merge neighbours until they are few enough."""
        most = {"hours": MOST_PERIODS, "numbers": MOST_BUCKETS}.get(self.kind, math.inf)
        while self.n_keys > most and not (self.kind == "hours" and self._scale == 3):
            scale = self._scale + 1
            self._set(_coarser(self.kind, self._keys, self._scale, scale), self._counts, scale)

    # --- groups -----------------------------------------------------------------------------------

    def group(self) -> tuple[Groups, Counts] | None:
        """Return the groups, and how many rows each has, those that miss a value first."""
        is_there = self._keys != NO_KEY
        missing = self._counts[~is_there].sum(axis=0)
        keys, counts = self._keys[is_there], self._counts[is_there]
        if self.kind == "values":
            found = self._group_values(counts)
        elif self.kind == "hours":
            found = self._group_hours(keys, counts)
        else:
            found = self._group_numbers(keys, counts) if self.kind == "numbers" else None
        if found is None or len(found[0].labels) + bool(missing[0]) < 2:
            return None
        return found[0], np.vstack([missing[None], found[1]])

    def tally(self) -> ContextTally | None:
        """Return how many rows of each group were judged, and are distrusted; None as of groups."""
        found = self.group()
        return None if found is None else ContextTally(found[0], *found[1][:, 1:].T)

    def _group_values(self, counts: Counts) -> tuple[Groups, Counts] | None:
        values = list(self._values)
        kind, numbers = _kind_of(values), _floats_of(values)
        is_cut = kind == "numbers" and len(values) > INTERVALS
        if kind == "hours" or (is_cut and (numbers != np.floor(numbers)).any()):
            turned = deepcopy(self)
            turned._turn(kind)
            turned._stay_small()
            found = turned.group()
            return None if found is None else (found[0], found[1][1:])
        days = _days_of(values) if kind == "none" else None
        is_ordered = kind == "numbers" or days is not None
        if days is not None:
            is_day = ~np.isnat(days)
            values = [value for value, is_one in zip(values, is_day, strict=True) if is_one]
            days, counts = days[is_day], counts[is_day]
            names, firsts = [str(day) for day in days], days.astype(np.float64)
        elif is_ordered:
            names, firsts = [_say_number(v) for v in values], numbers
        else:
            names, firsts = [str(v) for v in values], np.zeros(len(values))
        ranks = [(firsts[k], names[k], str(type(value))) for k, value in enumerate(values)]
        order = sorted(range(len(values)), key=ranks.__getitem__)
        of_values = {values[k]: place for place, k in enumerate(order)}
        labels = tuple(names[k] for k in order)
        is_measured = kind == "numbers" and len(values) > MOST_NUMBERED
        is_code = kind == "numbers" and not all(int(v) in CALENDAR for v in numbers)
        groups = Groups(
            self.name, labels, (), is_ordered, "values", None, of_values, is_measured, is_code
        )
        return groups, counts[order]

    def _group_hours(self, hours: Counts, counts: Counts) -> tuple[Groups, Counts] | None:
        """Group times by the shortest period of which there are not too many."""
        letters = PERIODS[self._scale :]
        moments = hours.astype("M8[h]")
        by_period = {p: np.unique(moments.astype(f"M8[{p}]"), return_inverse=True) for p in letters}
        sizes = {p: len(periods) for p, (periods, _) in by_period.items()}
        fits = next((n for n in sizes.values() if n <= MOST_PERIODS), sizes["Y"])
        if not len(moments) or fits > MOST_VALUES:
            return None
        letter = [p for p in letters if sizes[p] == fits][-1]  # days, where each has one hour only
        periods, group = by_period[letter]
        end = ":00" if letter == "h" else ""
        labels = tuple(str(period).replace("T", " ") + end for period in periods)
        starts = periods[1:].astype("M8[h]").astype(np.int64)
        groups = Groups(self.name, labels, (), True, "hours", starts)
        return groups, _sum_groups(counts, group, len(labels))

    def _group_numbers(self, keys: Counts, counts: Counts) -> tuple[Groups, Counts] | None:
        """Group numbers by tenths of the rows; equal numbers stay together."""
        if not len(keys):
            return None
        below = np.concatenate([[0], np.cumsum(counts[:-1, 0])])
        n, k = int(counts[:, 0].sum()), INTERVALS
        cuts = np.unique(np.searchsorted(below, np.arange(1, k) * n / k))
        cuts = cuts[cuts < len(below)]
        starts = _number_of(keys[cuts] << self._scale)
        says = tuple(f"{v:.6g}" for v in (self.low, *starts.tolist(), self.high))
        groups = Groups(self.name, says[:-1], says[1:], True, "numbers", starts, is_measured=True)
        group = np.searchsorted(cuts, np.arange(len(below)), side="right")
        return groups, _sum_groups(counts, group, len(says) - 1)


def group_rows(raw: RawContext) -> ContextColumn | None:
    """Return a column in groups; None if it was given up, or has one group only."""
    counts = ContextCounts(raw.name)
    counts.add(raw)
    found = counts.group()
    return None if found is None else ContextColumn(found[0], place_rows(found[0], raw))


def place_rows(groups: Groups, raw: RawContext) -> NDArray[np.signedinteger[Any]]:
    """Return the group of each row, -1 where its value is missing."""
    small: type[np.int8 | np.int16] = np.int8 if len(groups.labels) < 128 else np.int16
    if groups.kind == "values":
        of_values = np.array([groups.of_values.get(v, -1) for v in raw.values], small)
        codes: NDArray[np.signedinteger[Any]] = np.append(of_values, small(-1))[raw.codes]
        return codes
    assert groups.starts is not None  # noqa: S101 - for the type checker
    units = raw.as_units(groups.kind) if raw.kind == "values" else raw.codes
    places = np.searchsorted(groups.starts, units, side="right")
    return np.where(_is_gone(groups.kind, units), -1, places).astype(small)


def find_odd_times(raw: RawContext) -> list[OddValues]:
    """Return values of a column of times: those that are none, far from others, or out of order."""
    if raw.kind not in ("hours", "values") or not len(raw.codes):
        return []
    times = raw.codes
    if raw.kind == "values":
        times = np.append(_times_of(raw.values), GONE)[raw.codes]
    found = [_gather_odd(raw, kind, rows) for kind, rows in _find_odd_rows(times)]
    is_usual = ~_is_gone("hours", times)
    for odd in found:
        is_usual[odd.rows] = False
    usual = np.flatnonzero(is_usual)
    exceptions = find_exceptions(times[usual].astype(np.int64))
    if exceptions is not None:
        odd = _gather_odd(raw, exceptions.kind, usual[exceptions.rows])
        found.append(replace(odd, n_mended=exceptions.n_mended))
    return [odd for odd in found if odd.n]


def _find_odd_rows(hours: NDArray[np.int32]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the rows of a column of hours whose value is no time, and those far from others."""
    yield NO_DATE, np.flatnonzero(hours == NEITHER)
    there = np.flatnonzero(~_is_gone("hours", hours))
    order = there[np.argsort(hours[there], kind="stable")]
    years = 1970 + hours[order] / HOURS_OF_YEAR
    low, high = find_rest(years)
    if high - low < len(years) and is_apart(years, low, high):
        yield FAR_DATE, np.sort(np.concatenate([order[:low], order[high:]]))


def _gather_odd(raw: RawContext, kind: str, rows: NDArray[np.int64]) -> OddValues:
    """Return odd values of some rows; values that are no times and too many are not kept."""
    codes, seen = np.unique(raw.codes[rows], return_counts=True)
    order = np.argsort(-seen, kind="stable")
    if raw.kind == "values":
        examples = {raw.values[codes[k]]: int(seen[k]) for k in order}
    else:
        known = order[codes[order] != NEITHER][:MOST_EXAMPLES]
        examples = {str(codes[k].astype("M8[h]").astype("M8[D]")): int(seen[k]) for k in known}
    return OddValues(raw.name, kind, len(rows), examples, rows)


# --- keys -----------------------------------------------------------------------------------------


def _sum_by_key(keys: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Return the keys that occur, in order, and the sums of their counts; O(n) if they are near."""
    there = keys[keys != NO_KEY]
    low, high = (int(there.min()), int(there.max())) if len(there) else (0, 0)
    if high - low >= WIDEST_SPAN:
        found, places = np.unique(keys, return_inverse=True)
        return found, _sum_groups(counts, places, len(found))
    places = np.where(keys == NO_KEY, 0, keys - low + 1)
    sums = _sum_groups(counts, places, high - low + 2)
    found = np.flatnonzero(sums[:, 0])
    return np.where(found == 0, NO_KEY, found + low - 1), sums[found]


def _coarser(kind: str, keys: Counts, scale: int, wanted: int) -> Counts:
    """Return keys of longer periods, by their first hours, or of fewer bits."""
    if scale == wanted or not len(keys):
        return keys
    if kind == "hours":
        return (
            keys.astype("M8[h]").astype(f"M8[{PERIODS[wanted]}]").astype("M8[h]").astype(np.int64)
        )
    return np.where(keys == NO_KEY, NO_KEY, keys >> (wanted - scale))


def _sum_groups(counts: Counts, group: NDArray[np.integer[Any]], n_groups: int) -> Counts:
    """Return the sums over the rows of each group; exact up to 2^53 rows."""
    sums = [np.bincount(group, column, minlength=n_groups) for column in counts.T]
    return np.stack(sums, axis=1).astype(np.int64)


def _is_gone(kind: str, units: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows miss a value."""
    least = -MOST_HOURS if kind == "hours" else 0
    gone: NDArray[np.bool_] = ~np.isfinite(units) if kind == "numbers" else units < least
    return np.logical_or(gone, units > MOST_HOURS) if kind == "hours" else gone


def _keys_of(kind: str, units: NDArray[Any]) -> Counts:
    """Return positions, hours or numbers as whole numbers; NO_KEY where one is missing."""
    whole = _bits_of(units) if kind == "numbers" else units.astype(np.int64)
    return np.where(_is_gone(kind, units), NO_KEY, whole)


def _bits_of(numbers: NDArray[np.float32]) -> Counts:
    """Return the bits of numbers as whole numbers that are ordered as they are."""
    bits = (numbers + np.float32(0)).view(np.int32).astype(np.int64)  # there is one zero only
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _number_of(bits: Counts) -> NDArray[np.float32]:
    """Return the numbers that `_bits_of` turns into these."""
    magnitude = np.abs(bits).astype(np.int32).view(np.float32)
    return np.where(bits < 0, -magnitude, magnitude)


# --- values as hours since 1970, or as numbers ----------------------------------------------------


def _kind_of(values: Sequence[Any]) -> str:
    """Return what values are: "hours" if most are times, "numbers" if all are, or else "none"."""
    if not values:
        return "none"
    if np.mean(_hours_of(values) == NEITHER) <= MOST_ODD_TIMES:
        return "hours"
    return "numbers" if np.isfinite(_floats_of(values)).all() else "none"


def _units_of(kind: str, values: Sequence[Any]) -> NDArray[Any]:
    return _hours_of(values) if kind == "hours" else _narrow(_floats_of(values))


def _hours_of(values: Sequence[Any]) -> NDArray[np.int32]:
    """Return the hour of each value since 1970, NEITHER for what is no time."""
    return np.fromiter(map(_hour_of, values), np.int32, len(values))


def _times_of(values: Sequence[Any]) -> NDArray[np.int32]:
    """Return the hour of each value of a column of times, else NEITHER; all GONE if it is none."""
    if _kind_of(values) == "hours":
        return _hours_of(values)
    days = _days_of(values)
    if days is None:
        return np.full(len(values), GONE, np.int32)
    return np.where(np.isnat(days), NEITHER, days.astype("M8[h]").astype(np.int64)).astype(np.int32)


def _hour_of(value: Any) -> int:
    """Return the hour of a time, or of text that is one in any order; NEITHER for all else."""
    if isinstance(value, str):
        text = value.strip()
        hour = _hour_of_text(text[:13])
        return hour if hour != NEITHER else _hour_of_day(text)
    if not isinstance(value, np.datetime64 | date):
        return NEITHER
    moment = value.replace(tzinfo=None) if isinstance(value, datetime) else value
    hour = int(np.array(moment, "M8[h]").astype(np.int64))
    return hour if abs(hour) <= MOST_HOURS else NEITHER


@lru_cache(maxsize=2**17)
def _hour_of_day(text: str) -> int:
    """Return the first hour of a day in an order that it shows (see `_days_of`); else NEITHER."""
    day = day_of(text)
    return NEITHER if day is None else int(np.datetime64(day, "h").astype(np.int64))


@lru_cache(maxsize=2**17)
def _hour_of_text(start: str) -> int:
    """Return the hour of a text that starts like 2024-03-07 or 2024-03-07T12."""
    if not ISO_START.fullmatch(start):
        return NEITHER
    try:
        return int(np.datetime64(start.replace(" ", "T"), "h").astype(np.int64))
    except ValueError:  # a 31st of February
        return NEITHER


def _days_of(values: Sequence[Any]) -> NDArray[np.datetime64] | None:
    """Return days such as 03/07/2024, in the order of most, NaT for others; None in any doubt."""
    order = find_order(values)
    if order is None:
        return None
    days = np.array([day_of(value, order) or "NaT" for value in values], "M8[D]")
    return days if np.isnat(days).mean() <= MOST_ODD_TIMES else None


def _floats_of(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return values as numbers; NaN for what is none, or a truth value."""
    plain = [None if isinstance(v, bool | np.bool_) else v for v in values]
    return as_numbers(Column(as_objects(plain)))


def _column_of_hours(column: Column, is_text: bool) -> NDArray[np.int32]:
    """Return a column as hours since 1970; NEITHER for what is no time, GONE if missing."""
    if column.labels is not None or column.values.dtype.kind != "M":
        values, places = find_distinct(column)
        hours = [GONE if is_missing(value, is_text) else _hour_of(value) for value in values]
        found: NDArray[np.int32] = np.array([*hours, GONE], np.int32)[places]
        return found
    hours_since = column.values.astype("M8[h]").astype(np.int64)
    is_gone = _is_gone("hours", hours_since)
    if column.is_missing is not None:
        is_gone |= column.is_missing
    return np.where(is_gone, GONE, hours_since).astype(np.int32)


def _column_of_floats(column: Column) -> NDArray[np.float32]:
    """Return a column as numbers, quickly where every label is one; NaN for what is none."""
    if column.labels is not None:
        try:
            table = np.fromiter(map(float, column.labels), np.float64, len(column.labels))
            column = Column(np.append(table, np.nan)[column.values], None, column.is_missing)
        except (TypeError, ValueError):
            pass
    return _narrow(as_numbers(column))


def _narrow(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return numbers in 4 bytes each; those that are too large are no numbers then."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def _say_number(value: Any) -> str:
    """Return a number as text; one that is text keeps its zeros in front."""
    if isinstance(value, str):
        return value.strip()
    return str(int(value)) if value == int(value) else f"{value:.6g}"
