"""Values of a column of context in groups, found from counts that are small and can be added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ContextColumn, ContextTally
from robustbn._core.tuning import TUNING
from robustbn._tables.units import NEITHER, days_of, floats_of, hours_of, narrow

Counts = NDArray[np.int64]  # of rows that were read, that were judged, that are distrusted
Mask = NDArray[np.bool_] | None
NUMPY_PERIODS = ("h", "D", "M", "Y")  # NumPy's letters
MOST_BUCKETS = 2**14  # of numbers: an end of a tenth is off by 1 row in 1,600 if all are alike
WIDEST_SPAN = 2**18  # of whole numbers that are counted without being sorted
COUNTED_TOGETHER = 2**16  # rows: once the first are counted, others need fewer bits


@dataclass(frozen=True, eq=False)
class RawContext:
    """A column of context as it was read.

    Parameters
    ----------
    name : of the column.
    kind : what `codes` are: positions in `values`, -1 where one is missing; "hours" since 1970;
        "numbers", NaN where there is none; "none" if the column was given up.
    """

    name: str
    kind: str
    values: tuple[Any, ...]
    codes: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a column, and which of them a value belongs to.

    Parameters
    ----------
    name, labels, ends, is_ordered : as of a `ContextColumn`.
    kind : by what rows are placed: "values", "hours" or "numbers".
    starts : of kinds other than values, where each group but the first begins.
    of_values : of values, the group of each.
    """

    name: str
    labels: tuple[str, ...]
    ends: tuple[str, ...] = ()
    is_ordered: bool = False
    kind: str = "values"
    starts: NDArray[Any] | None = None
    of_values: Mapping[Any, int] = field(default_factory=dict)

    def place(self, raw: RawContext) -> NDArray[np.signedinteger[Any]]:
        """Return the group of each row, -1 where its value is missing."""
        small: type[np.int8 | np.int16] = np.int8 if len(self.labels) < 128 else np.int16
        if raw.kind != "values":
            return self._place(raw.codes).astype(small)
        if self.kind == "values":
            groups = np.array([self.of_values.get(v, -1) for v in raw.values], small)
        else:
            groups = self._place(_units_of(self.kind, raw.values)).astype(small)
        codes: NDArray[np.signedinteger[Any]] = np.append(groups, small(-1))[raw.codes]
        return codes

    def _place(self, units: NDArray[Any]) -> NDArray[Any]:
        assert self.starts is not None  # noqa: S101 - for the type checker
        is_gone = units == NEITHER if self.kind == "hours" else ~np.isfinite(units)
        return np.where(is_gone, -1, np.searchsorted(self.starts, units, side="right"))

    def column(self, raw: RawContext) -> ContextColumn:
        """Return the column with the group of each row."""
        return ContextColumn(self.name, self.labels, self.place(raw), self.ends, self.is_ordered)


class ContextSummary:
    """How often the values of a column occur: of bounded size, and the same in any order.

    Values are counted while they are few; then hours, days, months or years, the shortest that are
    not too many; or numbers by the bits they begin with, as many as keep them few. Summaries of
    parts add up to the summary of the whole.

    Parameters
    ----------
    name : of the column.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = "values"
        self.low, self.high = math.inf, -math.inf
        self._values: dict[Any, int] = {}
        self._of_values = np.zeros((0, 3), np.int64)
        self._missing = np.zeros(3, np.int64)
        self._keys = np.zeros(0, np.int64)
        self._of_keys = np.zeros((0, 3), np.int64)
        self._scale = 0  # place of the period, or bits that are left out

    def add(self, raw: RawContext, is_judged: Mask = None, is_bad: Mask = None) -> None:
        """Count some rows; without masks, all of them are judged and none is distrusted."""
        for start in range(0, len(raw.codes), COUNTED_TOGETHER):
            some = slice(start, start + COUNTED_TOGETHER)
            masks = (None if mask is None else mask[some] for mask in (is_judged, is_bad))
            self._count(raw, raw.codes[some], *masks)
        if raw.kind == "none":
            self.kind = "none"

    def _count(self, raw: RawContext, codes: NDArray[Any], is_judged: Mask, is_bad: Mask) -> None:
        if raw.kind == "values":
            size = len(raw.values) + 1
            counts = _count_places(codes.astype(np.int64) + 1, size, is_judged, is_bad)
            self._add_values(raw.values, counts[1:], counts[0])
            return
        is_there = codes != NEITHER if raw.kind == "hours" else np.isfinite(codes)
        gone = _count_places((~is_there).astype(np.int64), 2, is_judged, is_bad)[1]
        if not is_there.all():
            masks = (None if mask is None else mask[is_there] for mask in (is_judged, is_bad))
            codes, (is_judged, is_bad) = codes[is_there], tuple(masks)
        keys = codes.astype(np.int64) if raw.kind == "hours" else _bits_of(codes)
        if raw.kind == "numbers" and len(codes):
            self._widen(float(codes.min()), float(codes.max()))
        scale = self._scale if self.kind == raw.kind == "numbers" else 0
        keys, counts = _count_keys(keys >> scale, is_judged, is_bad)
        self._add_keys(raw.kind, keys, counts, gone, scale)

    def merge(self, other: ContextSummary) -> None:
        """Take in what another part has."""
        if other.kind == "values":
            self._add_values(tuple(other._values), other._of_values, other._missing)
        elif other.kind == "none":
            self.kind = "none"
        else:
            self._widen(other.low, other.high)
            keys, counts, missing = other._keys, other._of_keys, other._missing
            self._add_keys(other.kind, keys, counts, missing, other._scale)

    def _widen(self, low: float, high: float) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)

    def _add_values(self, values: Sequence[Any], counts: Counts, missing: Counts) -> None:
        occurs = np.flatnonzero(counts[:, 0]).tolist()
        if self.kind in ("hours", "numbers"):
            self._add_units(self.kind, [values[k] for k in occurs], counts[occurs], missing)
            return
        self._missing += missing
        places = [self._values.setdefault(values[k], len(self._values)) for k in occurs]
        more = len(self._values) - len(self._of_values)
        self._of_values = np.vstack([self._of_values, np.zeros((more, 3), np.int64)])
        np.add.at(self._of_values, places, counts[occurs])
        if len(self._values) > TUNING.where_values:
            self._turn(self._kind_of_values())

    def _kind_of_values(self) -> str:
        """Return what all values are: "hours", "numbers", or else "none"."""
        values = list(self._values)
        if values and not (hours_of(values) == NEITHER).any():
            return "hours"
        return "numbers" if values and np.isfinite(floats_of(values)).all() else "none"

    def _turn(self, kind: str) -> None:
        """Go on by hours or numbers, or give up."""
        values, counts, missing = list(self._values), self._of_values, self._missing
        self._values, self._of_values = {}, np.zeros((0, 3), np.int64)
        self._missing, self.kind = np.zeros(3, np.int64), kind
        if kind != "none":
            self._add_units(kind, values, counts, missing)

    def _add_units(self, kind: str, values: Sequence[Any], counts: Counts, missing: Counts) -> None:
        """Take in values as hours or numbers; those that are none are missing."""
        units = _units_of(kind, values)
        is_there = units != NEITHER if kind == "hours" else np.isfinite(units)
        missing = missing + counts[~is_there].sum(axis=0)
        units, counts = units[is_there], counts[is_there]
        if kind == "numbers" and len(units):
            self._widen(float(units.min()), float(units.max()))
        keys = units.astype(np.int64) if kind == "hours" else _bits_of(units)
        self._add_keys(kind, *_sum_keys(keys, counts), missing)

    def _add_keys(
        self, kind: str, keys: Counts, counts: Counts, missing: Counts, scale: int = 0
    ) -> None:
        """Take in counts of hours or numbers, at a scale of theirs."""
        if self.kind == "values":
            self._turn(self._as(kind))
        if self.kind != kind:
            self.kind = "none"
            return
        self._missing += missing
        while self._scale < scale:
            self._coarsen()
        for step in range(scale, self._scale):
            keys = _coarser(kind, keys, step)
        keys, counts = _sum_keys(keys, counts) if self._scale > scale else (keys, counts)
        self._keys, self._of_keys = _join_keys(self._keys, self._of_keys, keys, counts)
        most = TUNING.where_periods if kind == "hours" else MOST_BUCKETS
        while len(self._keys) > most and not (kind == "hours" and self._scale == 3):
            self._coarsen()

    def _as(self, kind: str) -> str:
        """Return the kind that the values so far can turn into, if it is this one; else "none"."""
        return kind if not self._values or self._kind_of_values() == kind else "none"

    def _coarsen(self) -> None:
        keys = _coarser(self.kind, self._keys, self._scale)
        self._keys, self._of_keys = _sum_keys(keys, self._of_keys)
        self._scale += 1

    # --- groups -----------------------------------------------------------------------------------

    def group(self) -> tuple[Groups, Counts] | None:
        """Return the groups, and how many rows each has, those that miss a value first.

        None if the column was given up, or has one group only.
        """
        if self.kind == "values":
            found = self._group_values()
        elif self.kind == "hours":
            found = self._group_hours()
        else:
            found = self._group_numbers() if self.kind == "numbers" else None
        if found is None or len(found[0].labels) + bool(self._missing[0]) < 2:
            return None
        return found[0], np.vstack([self._missing[None], found[1]])

    def tally(self) -> tuple[Groups, ContextTally] | None:
        """Return the groups, and how many of their rows were judged, and are distrusted."""
        found = self.group()
        if found is None:
            return None
        groups, counts = found
        said = groups.name, groups.labels, groups.ends, groups.is_ordered
        return groups, ContextTally(*said, counts[:, 1], counts[:, 2])

    def _group_values(self) -> tuple[Groups, Counts] | None:
        kind, values = self._kind_of_values(), list(self._values)
        numbers = floats_of(values)
        is_cut = kind == "numbers" and len(values) > TUNING.where_intervals
        if kind == "hours" or (is_cut and (numbers != np.floor(numbers)).any()):
            turned = ContextSummary(self.name)
            turned.merge(self)
            turned._turn(kind)
            found = turned.group()
            return None if found is None else (found[0], found[1][1:])
        days = days_of(values) if kind == "none" else None
        is_ordered = kind == "numbers" or days is not None
        if days is not None:
            names, firsts = [str(day) for day in days], days.astype(np.float64)
        elif is_ordered:
            names, firsts = [_say_number(v) for v in values], numbers
        else:
            names, firsts = [str(v) for v in values], np.zeros(len(values))
        kinds = [str(type(value)) for value in values]
        order = sorted(range(len(values)), key=lambda k: (firsts[k], names[k], kinds[k]))
        of_values = {values[k]: place for place, k in enumerate(order)}
        labels = tuple(names[k] for k in order)
        groups = Groups(self.name, labels, is_ordered=is_ordered, of_values=of_values)
        return groups, self._of_values[order]

    def _group_hours(self) -> tuple[Groups, Counts] | None:
        """Group times by the shortest period of which there are not too many."""
        letters = NUMPY_PERIODS[self._scale :]
        moments = self._keys.astype(f"M8[{letters[0]}]")
        by_period = {p: np.unique(moments.astype(f"M8[{p}]"), return_inverse=True) for p in letters}
        sizes = {p: len(periods) for p, (periods, _) in by_period.items()}
        fits = next((n for n in sizes.values() if n <= TUNING.where_periods), sizes["Y"])
        if not len(moments) or fits > TUNING.where_values:
            return None
        letter = [p for p in letters if sizes[p] == fits][-1]  # days, where each has one hour only
        periods, group = by_period[letter]
        end = ":00" if letter == "h" else ""
        labels = tuple(str(period).replace("T", " ") + end for period in periods)
        starts = periods[1:].astype("M8[h]").astype(np.int64)
        groups = Groups(self.name, labels, (), True, "hours", starts)
        return groups, _sum_groups(self._of_keys, group, len(labels))

    def _group_numbers(self) -> tuple[Groups, Counts] | None:
        """Group numbers by tenths of the rows; equal numbers stay together."""
        if not len(self._keys):
            return None
        below = np.concatenate([[0], np.cumsum(self._of_keys[:-1, 0])])
        n, k = int(self._of_keys[:, 0].sum()), TUNING.where_intervals
        cuts = np.unique(np.searchsorted(below, np.arange(1, k) * n / k))
        cuts = cuts[cuts < len(below)]
        starts = _number_of(self._keys[cuts] << self._scale)
        says = tuple(f"{v:.6g}" for v in (self.low, *starts.tolist(), self.high))
        groups = Groups(self.name, says[:-1], says[1:], True, "numbers", starts)
        group = np.searchsorted(cuts, np.arange(len(below)), side="right")
        return groups, _sum_groups(self._of_keys, group, len(says) - 1)


def group_rows(raw: RawContext) -> ContextColumn | None:
    """Return a column in groups; None if it was given up, or has one group only."""
    summary = ContextSummary(raw.name)
    summary.add(raw)
    found = summary.group()
    return None if found is None else found[0].column(raw)


def _units_of(kind: str, values: Sequence[Any]) -> NDArray[Any]:
    return hours_of(values) if kind == "hours" else narrow(floats_of(values))


def _count_places(places: Counts, size: int, is_judged: Mask, is_bad: Mask) -> Counts:
    """Return how many rows have each number below `size`: read, judged, distrusted; (size, 3)."""
    read = np.bincount(places, minlength=size)
    judged = read if is_judged is None else np.bincount(places[is_judged], minlength=size)
    bad = np.zeros_like(read) if is_bad is None else np.bincount(places[is_bad], minlength=size)
    return np.stack([read, judged, bad], axis=1)


def _count_keys(keys: Counts, is_judged: Mask, is_bad: Mask) -> tuple[Counts, Counts]:
    """Return the whole numbers that occur, in order, and how many rows have each; (k, 3)."""
    if not len(keys):
        return keys, np.zeros((0, 3), np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < WIDEST_SPAN:
        counts = _count_places(keys - low, high - low + 1, is_judged, is_bad)
        found = np.flatnonzero(counts[:, 0])
        return found + low, counts[found]
    found, places = np.unique(keys, return_inverse=True)
    return found, _count_places(places, len(found), is_judged, is_bad)


def _sum_keys(keys: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Return the keys that occur, in order, and the sums of their counts."""
    found, places = np.unique(keys, return_inverse=True)
    return found, _sum_groups(counts, places, len(found))


def _join_keys(
    keys: Counts, counts: Counts, more_keys: Counts, more_counts: Counts
) -> tuple[Counts, Counts]:
    """Return all keys in order, and the sums of their counts; either has none twice, in order."""
    if not len(keys) or not len(more_keys):
        return (keys, counts) if len(keys) else (more_keys, more_counts)
    places = np.searchsorted(keys, more_keys)
    is_known = keys[np.minimum(places, len(keys) - 1)] == more_keys
    counts = counts.copy()
    counts[places[is_known]] += more_counts[is_known]
    if is_known.all():
        return keys, counts
    new = places[~is_known]
    keys = np.insert(keys, new, more_keys[~is_known])
    return keys, np.insert(counts, new, more_counts[~is_known], axis=0)


def _sum_groups(counts: Counts, group: NDArray[np.integer[Any]], n_groups: int) -> Counts:
    total = np.zeros((n_groups, 3), np.int64)
    np.add.at(total, group, counts)
    return total


def _coarser(kind: str, keys: Counts, scale: int) -> Counts:
    """Return keys one step coarser: of the next period, or with one bit less."""
    if kind == "numbers":
        return keys >> 1
    letter, longer = NUMPY_PERIODS[scale : scale + 2]
    return keys.astype(f"M8[{letter}]").astype(f"M8[{longer}]").astype(np.int64)


def _bits_of(numbers: NDArray[np.float32]) -> Counts:
    """Return the bits of numbers as whole numbers that are ordered as they are."""
    bits = (numbers + np.float32(0)).view(np.int32).astype(np.int64)  # there is one zero only
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _number_of(bits: Counts) -> NDArray[np.float32]:
    """Return the numbers that `_bits_of` turns into these."""
    magnitude = np.abs(bits).astype(np.int32).view(np.float32)
    return np.where(bits < 0, -magnitude, magnitude)


def _say_number(value: Any) -> str:
    """Return a number as text; one that is text keeps its zeros in front."""
    if isinstance(value, str):
        return value.strip()
    return str(int(value)) if value == int(value) else f"{value:.6g}"
