"""Which states the values of a column should become, and how the column is read then.

Numbers are cut at ends that are easy to read, labels are put into their natural order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.config import DATE_ORDERS, OTHER, PERIODS, NodeReading
from robustbn._core.far import find_rest
from robustbn._core.numbers import count, count_are
from robustbn._tables.columns import count_intervals
from robustbn._tables.date_forms import (
    are_compact_days,
    day_of,
    find_orders,
    is_doubtful,
    period_of,
    year_first,
)
from robustbn._tables.number_forms import as_number
from robustbn._tables.survey import DATE, NUMBER, TRUTH, WORD, ColumnSurvey, kind_of
from robustbn._tables.values import UNKNOWN, StateFinder, split_labels
from robustbn.exceptions import DataError, SettingError

IDENTIFIER = "identifier"
GIVEN = "given"
FEW_LABELS = 12  # so few are states even if no row repeats one: a small table
NAMES = 0.9  # different labels a row: above it labels are the names of rows, and no states
MOSTLY_DATES = 0.9  # share of rows with a date: then the other values are odd, and it is a date
FEW_PERIODS = 4  # of a date at least: the longest period that still tells rows apart
LEAST_FAR, SHARE_FAR = 5, 0.0005  # rows, and share of all, that lie far outside: then a state
ROUNDING = 0.1  # share of an interval's rows that a readable end may move to the next one
_FIRST = re.compile(r"(lt|less than|under|below|up to)\b", re.IGNORECASE)
_LAST = re.compile(r"(gt|more than|over|above)\b|.*\bor (more|over)$", re.IGNORECASE)
_PIECES = re.compile(r"([0-9]{1,15})")


@dataclass(frozen=True)
class StateRules:
    """What a caller chooses when states are found; see `states_from`."""

    most_states: int = 100
    most_numbers: int = 12
    bins: Mapping[str, int | str | Sequence[float]] | int | str = "q4"
    labels: Mapping[str, Mapping[Hashable, Hashable]] = field(default_factory=dict)
    ignore_case: bool = False
    dates: Mapping[str, str] | str = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("most_states", 2), ("most_numbers", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise SettingError(f"{name} is a whole number, at least {least}; found {value!r}.")
        said = [self.dates] if isinstance(self.dates, str) else list(self.dates.values())
        if not set(said) <= set(DATE_ORDERS):
            raise SettingError(
                f"dates is the order of day, month and year, one of {', '.join(DATE_ORDERS)}; "
                f"found {self.dates!r}."
            )

    def split_labels(self, node: str) -> tuple[dict[Hashable, Hashable], StateFinder | None]:
        """Return the labels that lead to states, and what finds values that are to be missing."""
        return split_labels(self.labels.get(node, {}), self.ignore_case)

    def is_cut(self, node: str) -> bool:
        """Whether the caller says how to cut this very node."""
        return isinstance(self.bins, Mapping) and node in self.bins


@dataclass(frozen=True)
class ColumnStates:
    """What was decided for one column.

    Parameters
    ----------
    name : of the node.
    kind : "label", "number", "date", "truth value", "identifier"; "given" if states were.
    states : what the node's states are to be; empty for an identifier.
    reading : how values become states, where they are not the states themselves.
    n_distinct : different values; None if they are too many to count.
    n_missing : rows without a value.
    n_merged : rows whose values were merged into the state `reading.others`.
    note : what was done, in words; empty if the values are the states.
    """

    name: str
    kind: str
    states: tuple[Hashable, ...]
    reading: NodeReading | None = None
    n_distinct: int | None = None
    n_missing: int = 0
    n_merged: int = 0
    note: str = ""

    @property
    def order(self) -> str | None:
        """What comes first in its dates, where they do not show it."""
        period = "" if self.reading is None else self.reading.period or ""
        return period.partition(" ")[2] or None


def decide_states(survey: ColumnSurvey, rules: StateRules) -> ColumnStates:
    """Return what the values of a column should become."""
    decided = propose_states(survey, rules)
    if decided.states:
        return decided
    where, why = f"Column {survey.name!r}", "has no values, so its states are not known"
    if decided.kind == DATE:
        raise DataError(Advice(f"{where}: {decided.note}. ", say_order(survey)))
    if decided.kind == IDENTIFIER and rules.is_cut(survey.name):
        examples = " and ".join(repr(value) for value, _ in survey.counts.most_common(2))
        raise DataError(
            f"bins[{survey.name!r}]: column {survey.name!r} holds text, such as {examples}, and "
            "not numbers in one notation, which could be cut."
        )
    if decided.kind == IDENTIFIER:
        n = f"{'more than ' if survey.n_distinct is None else ''}{survey.n_least:,}"
        why = (
            f"looks like an identifier: {n} distinct values in {survey.n_present:,} rows, too "
            "many to learn a table"
        )
    leave = f"{where} {why}. Leave the node out of the edges, or give its states: "
    raise DataError(Advice(leave, states_of(survey.name), "."))


def states_of(node: str) -> Setting:
    """Return the setting that gives the states of a node."""
    return Setting("states", {node: Either("[...]", "...")})


def say_order(survey: ColumnSurvey) -> Advice:
    """Return the advice for dates of which it is not known what comes first."""
    read = {v: [day_of(v, "dmy"), day_of(v, "mdy")] for v in survey.counts if is_doubtful(v)}
    example, days = next((v, d) for v, d in read.items() if d[0] != d[1])
    return Advice(
        "Say which: ",
        Setting("dates", {survey.name: "dmy"}),
        f" ({example} is {days[0]}) or ",
        Setting("dates", {survey.name: "mdy"}),
        f" ({days[1]}).",
    )


def propose_states(survey: ColumnSurvey, rules: StateRules) -> ColumnStates:
    """Return what the values of a column would become; no states if they cannot."""
    name, kinds, distinct = survey.name, Counter[str](), Counter[str]()
    for value, n in survey.counts.items():
        kind = kind_of(value, survey.notation)
        kinds[kind] += n
        distinct[kind] += 1
    if survey.wide == NUMBER:
        kinds[NUMBER] += survey.n_present - kinds.total()
        distinct[NUMBER] = rules.most_numbers + len(survey.counts) + 1
    only = next(iter(kinds)) if len(kinds) == 1 else None
    is_ordered = survey.order is not None and survey.wide is None and not rules.is_cut(name)
    if rules.split_labels(name)[0] or is_ordered:
        return _decide_labels(survey, rules)
    order = rules.dates if isinstance(rules.dates, str) else rules.dates.get(name)
    is_compact = only == NUMBER and survey.wide is None and survey.notation is None
    is_compact = is_compact and (order == "ymd" or are_compact_days(survey.counts))
    if is_compact and all(day_of(value, "ymd") for value in survey.counts):
        return _decide_dates(survey, rules, "ymd")
    is_mostly_date = kinds[DATE] >= max(MOSTLY_DATES * kinds.total(), 1)
    is_mostly_date = is_mostly_date and survey.wide in (None, DATE)
    if only == DATE or is_mostly_date:
        orders = {order} if order else find_orders(survey.counts)
        if len(orders) > 1:
            note = "day and month of its dates are ambiguous"
            return _decided(survey, DATE, note=note)
        if orders:
            has_doubt = any(map(is_doubtful, survey.counts))
            return _decide_dates(survey, rules, orders.pop() if has_doubt else None)
    mostly_numbers = 2 * kinds[NUMBER] > kinds.total() and distinct[NUMBER] > distinct[WORD]
    is_long = distinct[NUMBER] > rules.most_numbers or rules.is_cut(name)
    if is_long and (only == NUMBER or mostly_numbers):
        return _decide_numbers(survey, rules, kinds.total() - kinds[NUMBER])
    if only in (NUMBER, TRUTH) and survey.notation is None:
        return _decide_few(survey, only)
    if 2 * kinds[WORD] > kinds.total() and distinct[NUMBER] > max(
        rules.most_numbers, distinct[WORD]
    ):
        return _decide_words(survey, rules)
    return _decide_labels(survey, rules)


def _decide_words(survey: ColumnSurvey, rules: StateRules) -> ColumnStates:
    """Return words as states, and one more for the many numbers among them."""
    words = {v: n for v, n in survey.counts.items() if kind_of(v, survey.notation) != NUMBER}
    n_numbers = survey.counts.total() - sum(words.values())
    found = _decide_labels(replace(survey, counts=Counter(words)), rules)
    if found.reading is not None or not found.states:
        return found
    other = _other_of(found.states)
    note = f"; {count_are(n_numbers, 'row')} {other!r}: numbers among words"
    return replace(
        found,
        states=tuple(dict.fromkeys([*found.states, other])),
        reading=NodeReading(others=other),
        n_merged=n_numbers,
        note=(found.note + note).removeprefix("; "),
    )


def _decided(
    survey: ColumnSurvey, kind: str, states: Iterable[Hashable] = (), **more: Any
) -> ColumnStates:
    known = {"n_distinct": survey.n_distinct, "n_missing": survey.n_missing}
    return ColumnStates(survey.name, kind, tuple(states), **{**known, **more})


def _decide_few(survey: ColumnSurvey, kind: str) -> ColumnStates:
    """Return few numbers, or truth values, as states: each once, however it is written."""
    found: dict[Any, Any] = {}
    for value in survey.counts:
        plain = as_number(value) if kind == NUMBER else str(value).lower()
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        found.setdefault(plain, plain if kind == NUMBER else value)
    return _decided(survey, kind, order_labels(found.values()), n_distinct=len(found))


def _decide_numbers(survey: ColumnSurvey, rules: StateRules, n_words: int) -> ColumnStates:
    """Return intervals, and a state for the words among the numbers, if there are any."""
    numbers = _numbers_of(survey)
    if not len(numbers):
        return _decide_labels(survey, rules)
    bins = rules.bins
    cut = bins.get(survey.name, "q4") if isinstance(bins, Mapping) else bins
    if isinstance(cut, str):
        edges = cut_around(numbers, count_intervals(cut))
    elif isinstance(cut, int | Integral):
        low, high = min(numbers[0], survey.sample.lowest), max(numbers[-1], survey.sample.highest)
        edges = cut_equally(float(low), float(high), int(cut))
    else:
        edges = list(cut)
    states = name_intervals(edges) if edges else ["any number"]
    note = f"cut at {', '.join(f'{edge:.15g}' for edge in edges)}" if edges else "one value"
    if survey.notation is not None:
        plain = "1,234.5" if survey.notation[0] == "." else "1.234,5"
        note += f"; read as {plain} {survey.notation[1:]}".rstrip()
    others = OTHER if n_words else None
    if n_words:
        states.append(OTHER)
        note += f"; {count(n_words, 'row')} with words {'is' if n_words == 1 else 'are'} {OTHER!r}"
    reading = NodeReading(tuple(edges), others, notation=survey.notation) if edges else None
    return _decided(survey, NUMBER, states, reading=reading, n_merged=n_words, note=note)


def _numbers_of(survey: ColumnSurvey) -> NDArray[np.float64]:
    """Return the finite numbers of a column, or a sample of them, in order."""
    if survey.wide == NUMBER:
        return np.sort(survey.sample.values)
    found = {v: n for v, n in survey.counts.items() if kind_of(v, survey.notation) == NUMBER}
    values = np.array([float(survey.number_of(value)) for value in found])
    rows = np.array(list(found.values()), np.float64)
    most = rows.sum() / 2**20  # of more rows, their shares
    counts = np.ceil(rows / max(most, 1)).astype(np.int64)
    counts[~np.isfinite(values)] = 0
    return np.sort(np.repeat(values, counts))


def _decide_dates(survey: ColumnSurvey, rules: StateRules, order: str | None) -> ColumnStates:
    """Return the periods in which dates lie: the longest that gives some states."""
    end, found = "" if order is None else f" {order}", {}
    dates = {v: n for v, n in survey.counts.items() if day_of(v, order) is not None}
    n_words = survey.counts.total() - sum(dates.values())
    for period in PERIODS:
        rows: Counter[str] = Counter()
        for value, n in dates.items():
            rows[str(period_of(value, period + end))] += n
        found[period] = rows
    chosen = next((p for p in PERIODS[:2] if len(found[p]) >= FEW_PERIODS), None)
    if chosen is None:
        chosen = "month" if len(found["month"]) > 1 else "day"
    n_merged, others, states = 0, None, sorted(found[chosen])
    note = f"by {chosen}" + (f", read as {order}" if order else "")
    if len(states) > rules.most_states:
        kept, others, n_merged = _keep_most(found[chosen], rules.most_states)
        states = [*sorted(kept), others]
        note += f"; {count_are(n_merged, 'row')} {others!r}" if n_merged else ""
    if n_words:
        states, others = [*states, *([] if others else [OTHER])], others or OTHER
        note += f"; {count_are(n_words, 'row')} no date"
    reading = NodeReading(others=others, period=chosen + end)
    n_merged += n_words
    return _decided(survey, DATE, states, reading=reading, n_merged=n_merged, note=note)


def _decide_labels(survey: ColumnSurvey, rules: StateRules) -> ColumnStates:
    """Return labels as states; those of the fewest rows are merged if they are too many."""
    counts, n_missing, notes = Counter(survey.counts), survey.n_missing, list[str]()
    said = rules.split_labels(survey.name)[0]
    has_words = any(kind_of(value) == WORD for value in counts)
    for word, n in survey.words_for_missing.items():
        if word in said or (word == "None" and has_words):  # where words are, it is one of them
            counts[word] += n
            n_missing -= n
            notes.append(f"{word!r} is a state")
    counts = _join_equal(counts, said, rules.ignore_case)
    n_present = survey.n_rows - n_missing
    is_new_in_each = len(counts) > max(FEW_LABELS, NAMES * n_present)
    if survey.is_mostly_distinct or is_new_in_each:
        return _decided(survey, IDENTIFIER, n_missing=n_missing)
    others, n_merged, reading = None, 0, None
    if len(counts) > rules.most_states or survey.wide is not None:
        kept, others, n_merged = _keep_most(counts, rules.most_states)
        n_merged += n_present - counts.total()
        labels, reading = [*_in_order(survey, kept), others], NodeReading(others=others)
        more = "more than " if survey.wide is not None else ""
        n_rare = len(counts) - len(labels) + (others not in counts)
        rarest = f"{count(n_rare, 'rarest label')} ({count(n_merged, 'row')})"
        notes.append(f"the {more}{rarest} {'is' if n_rare == 1 else 'are'} {others!r}")
    else:
        labels = _in_order(survey, counts)
        if survey.order is not None and labels != order_labels(labels):
            notes.append("in the order of the categories")
    told = {"n_missing": n_missing, "n_merged": n_merged, "note": "; ".join(notes)}
    return _decided(survey, WORD, labels, reading=reading, **told)


def _in_order(survey: ColumnSurvey, labels: Iterable[Any]) -> list[Any]:
    """Return labels in the order that their categories have, or else in their natural one."""
    rank, listed = {label: k for k, label in enumerate(survey.order or ())}, list(labels)
    if rank and all(label in rank for label in listed):
        return sorted(listed, key=rank.__getitem__)
    return order_labels(listed)


def _join_equal(
    counts: Counter[Any], said: Mapping[Hashable, Hashable], ignore_case: bool
) -> Counter[Any]:
    """Return rows of each label, with those that are read as the same one together."""
    states = list(dict.fromkeys(said.values()))
    finder = StateFinder(states, said, ignore_case)
    joined: Counter[Any] = Counter()
    first: dict[Any, Any] = {}
    for value, n in counts.most_common():
        code = finder.find(value) if said else UNKNOWN
        text = str(value).strip().casefold() if ignore_case else str(value).strip()
        joined[states[code] if code >= 0 else first.setdefault(text, value)] += n
    return joined


def _other_of(labels: Iterable[Any]) -> Any:
    """Return the label that stands for all others: the column's own one if it has it."""
    return next((label for label in labels if str(label).casefold() == OTHER), OTHER)


def _keep_most(counts: Counter[Any], most: int) -> tuple[list[Any], Any, int]:
    """Return the labels of the most rows, the one that all others become, and the rows of those."""
    other = _other_of(counts)
    ranked = [label for label, _ in counts.most_common() if label != other]
    return ranked[: most - 1], other, sum(counts[label] for label in ranked[most - 1 :])


# --- the order of labels --------------------------------------------------------------------------


def order_labels(labels: Iterable[Hashable]) -> list[Any]:
    """Return labels in their natural order.

    Numbers as numbers; months and quarters of years by time; other text by the alphabet, which need
    not be the order that its words mean, with the numbers in it as numbers, `<5` first and `>5`
    last. Numbers come before text.

    >>> order_labels(["high", "low", "medium"]), order_labels(["b10", "b9", "> 2", "< 2"])
    (['high', 'low', 'medium'], ['< 2', 'b9', 'b10', '> 2'])
    """
    return sorted(labels, key=_natural)


def _natural(label: Any) -> tuple[Any, ...]:
    if isinstance(label, bool | int | float):
        return 0, float(label), ""
    text = str(label).strip()
    has_number = _PIECES.search(text) is not None  # "less than 5", but not "less than high school"
    is_first = text[:1] in ("<", "\u2264") or (has_number and _FIRST.match(text))
    is_last = text[:1] in (">", "\u2265") or (has_number and _LAST.match(text))
    end = 0 if is_first else 2 if is_last else 1
    pieces = [
        (0, int(piece), "") if piece[0] in "0123456789" else (1, 0, piece.casefold())
        for piece in _PIECES.split(year_first(text))
        if piece
    ]
    return 1, end, pieces, text


# --- where numbers are cut ------------------------------------------------------------------------


def cut_evenly(numbers: NDArray[np.float64], n_intervals: int) -> list[float]:
    """Return inner ends of intervals with about equally many rows.

    A value with more rows than an interval should have gets one of its own. There may be fewer
    intervals than asked for, none of them empty.

    >>> cut_evenly(np.arange(1000.0), 4)
    [250, 500, 750]
    >>> cut_evenly(np.array([0.0] * 60 + list(range(1, 41))), 4)
    [1, 15, 28]
    """
    edges: list[float] = []
    start, n = 0, len(numbers)
    for left in range(n_intervals, 1, -1):
        size = (n - start) / left
        end = _nearest_change(numbers, start + size, start)
        if end >= n:
            break
        low = max(start + 1, math.ceil(end - ROUNDING * size))
        high = min(n - 1, math.floor(end + ROUNDING * size))
        is_one_value = numbers[start] == numbers[end - 1]
        if is_one_value or not numbers[low - 1] < numbers[high]:
            low = high = end
        ends = float(numbers[low - 1]), float(numbers[high])
        edge = find_readable(*ends, float(numbers[end]))
        edges.append(edge)
        start = int(np.searchsorted(numbers, edge, side="left"))
    return edges


def cut_around(numbers: NDArray[np.float64], n_intervals: int) -> list[float]:
    """Return inner ends of intervals as `cut_evenly`, with intervals of their own for far numbers.

    >>> cut_around(np.sort(np.append(np.tile(np.arange(18.0, 90.0), 5), [999.0] * 9)), 3)
    [40, 65, 500]
    """
    low, high = find_rest(numbers)
    least = max(LEAST_FAR, SHARE_FAR * len(numbers))
    low, high = (
        (low if low >= least else 0),
        (high if len(numbers) - high >= least else len(numbers)),
    )
    edges = cut_evenly(numbers[low:high], n_intervals)
    for place in (low, high):
        if 0 < place < len(numbers):  # a readable end in the middle of the gap
            below, above = float(numbers[place - 1]), float(numbers[place])
            margin = 0.25 * (above - below)
            edges.append(find_readable(below + margin, above - margin, (below + above) / 2))
    return sorted(edges)


def _nearest_change(numbers: NDArray[np.float64], wanted: float, start: int) -> int:
    """Return the place nearest to one that is wanted at which a new value begins, after `start`."""
    middle = min(max(round(wanted), start + 1), len(numbers) - 1)
    before = int(np.searchsorted(numbers, numbers[middle], side="left"))
    after = int(np.searchsorted(numbers, numbers[middle], side="right"))
    return before if before > start and wanted - before <= after - wanted else after


def cut_equally(low: float, high: float, n_intervals: int) -> list[float]:
    """Return inner ends of intervals of about equal width.

    >>> cut_equally(0.3, 9.9, 3)
    [3.5, 7]
    """
    width = (high - low) / n_intervals if high > low else 1.0
    middles = [low + k * width for k in range(1, n_intervals)]
    slack = ROUNDING * width
    return [find_readable(m - slack, m + slack, m) for m in middles]


def find_readable(low: float, high: float, wanted: float) -> float:
    """Return the number above `low` and at most `high` with the fewest digits; a whole one as int.

    Of several, the one nearest to what is wanted.

    >>> find_readable(643.2, 655.1, 648), find_readable(-3, 7, 5), find_readable(0.61, 0.82, 0.69)
    (650, 0, 0.7)
    """
    if low < 0 <= high:
        return 0
    power = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for exponent in range(power, power - 18, -1):
        for part in (1, 0.5):  # 1000; 500; 100; 50; 10; ...
            step = 10.0**exponent * part
            for place in (round(wanted / step), math.floor(high / step)):
                edge = float(f"{place * step:.15g}")
                if low < edge <= high:
                    return int(edge) if edge.is_integer() and abs(edge) < 2**53 else edge
    return high


def name_intervals(edges: Sequence[float]) -> list[str]:
    """Return what to call the intervals between edges: the first and the last are open.

    >>> name_intervals([645, 1076.5])
    ['< 645', '[645, 1076.5)', '>= 1076.5']
    """
    texts = [f"{edge:.15g}" for edge in edges]
    inner = [f"[{low}, {high})" for low, high in pairwise(texts)]
    return [f"< {texts[0]}", *inner, f">= {texts[-1]}"]
