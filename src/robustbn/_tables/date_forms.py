"""Days of the calendar in the forms that people write them, and the periods in which days lie.

A form says the order of year, month and day, what stands between them, and whether the month is
a name. A text may have several: of 03/07/2024 it must be said whether the day ("dmy") or the month
("mdy") comes first. 20240531 is a number unless "ymd" is said.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_STYLES = ([f"{k}" for k in range(1, 13)], [name[:3] for name in _NAMES], _NAMES)
_MONTHS = {name.lower(): k for names in _STYLES for k, name in enumerate(names, 1)} | {"sept": 9}
_PARTS = re.compile(
    r"(\d{4}|\d{1,2}|[A-Za-z]{3,9})(\.? |[-/.])(\d{1,2}|[A-Za-z]{3,9})"
    r"(\.?,?[ -]|[/.])(\d{4}|\d{1,2})(?:(?:[ T]|, ?)\d{1,2}:\d\d.*)?",  # a time
    re.ASCII,
)
_ISO = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([ T].*)?", re.ASCII)
_BETWEEN = r"[ /,._-]{0,2}"
_PART_YEAR = re.compile(rf"([A-Za-z]{{3,9}}|Q[1-4]|\d{{1,2}}(?=[/-])){_BETWEEN}(\d{{4}})", re.ASCII)
_YEAR_PART = re.compile(rf"(\d{{4}}){_BETWEEN}([A-Za-z]{{3,9}}|Q[1-4])", re.ASCII)
_LIKE_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)", re.ASCII)
LEAST_COMPACT = 5  # so many different numbers that all spell days are no accident
CALENDAR = range(1800, 2200)  # years of dates that are not marked as such
ORDERS = ("ymd", "dmy", "mdy")


class DateForm(NamedTuple):
    """How days are written."""

    order: str  # of year, month and day, by their initials
    between: tuple[str, str]  # what stands after the first and after the second
    style: int  # how months are written: 0 number, 1 short name, 2 name
    is_padded: bool  # whether numbers below ten have a zero before them

    def write(self, day: dt.date) -> str:
        """Return a day in this form."""
        month = _STYLES[self.style][day.month - 1]
        parts = {"y": f"{day.year:04d}", "m": month, "d": f"{day.day}"}
        if self.is_padded:
            parts |= {k: parts[k].zfill(2) for k in "md"}
        a, b, c = (parts[k] for k in self.order)
        return f"{a}{self.between[0]}{b}{self.between[1]}{c}"


class _Parsed(NamedTuple):
    """A text that is a day in some order, or could be one."""

    text: str  # without its time
    between: tuple[str, str]
    days: dict[str, dt.date]  # by the orders in which it is one
    order: str | None  # the one that it shows; None if it must be said


def _parse(text: str) -> _Parsed | None:
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    parts, between = found.group(1, 3, 5), (found[2], found[4])
    by_order = {o: _day(*(parts[o.index(k)] for k in "ymd")) for o in ORDERS}
    days = {order: day for order, day in by_order.items() if day is not None}
    order = None
    if len(parts[0]) == 4 or not "".join(parts).isdigit():
        order = next(iter(days), None)
    elif between[0][0] == ".":
        order = "dmy"
    return _Parsed(text[: found.end(5)], between, days, order)


def _day(year: str, month: str, day: str) -> dt.date | None:
    try:
        return dt.date(int(year), _month(month), int(day)) if len(year) == 4 else None
    except ValueError:  # the 31st of June, or a word
        return None


def _month(text: str) -> int:
    """Return the number of a month by its name or its digits, 0 if it is none."""
    return int(text) if text.isdigit() else _MONTHS.get(text.lower(), 0)


def read_day(text: str) -> dict[DateForm, dt.date]:
    """Return the forms in which a text is a day, each with the day.

    >>> {form.order: str(day) for form, day in read_day("03/07/2024").items()}
    {'dmy': '2024-07-03', 'mdy': '2024-03-07'}
    """
    parsed = _parse(text)
    if parsed is None:
        return {}
    forms = {
        DateForm(order, parsed.between, style, is_padded): day
        for order, day in parsed.days.items()
        for style in range(len(_STYLES))
        for is_padded in (True, False)
    }
    return {form: day for form, day in forms.items() if form.write(day) == text}


def decide_days(
    readings: Iterable[dict[DateForm, dt.date]], common: DateForm
) -> list[dt.date | None]:
    """Return the day of each text; None where its order is open."""
    # Texts with the same marks between their parts, and the year first or last in all, are taken to
    # have one order, the one in which all of them are days; that of the common form, if it is such.
    readings = list(readings)
    orders = {_marks(common): {common.order}}
    for marks in {_marks(form) for forms in readings for form in forms}:
        told = [{form.order for form in forms if _marks(form) == marks} for forms in readings]
        every = set(ORDERS).intersection(*filter(None, told))
        orders[marks] = every & orders.get(marks, every) or every
    found = [{d for f, d in forms.items() if f.order in orders[_marks(f)]} for forms in readings]
    return [days.pop() if len(days) == 1 else None for days in found]


def _marks(form: DateForm) -> tuple[str, str, bool]:
    return *form.between, form.order[0] == "y"


# --- days of a column that is read ----------------------------------------------------------------


def day_of(value: Any, order: str | None = None) -> str | None:
    """Return the day of a date, a time stamp, or text that is one, in ISO form; else None."""
    if isinstance(value, str):
        return _day_of_text(value.strip(), order)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, dt.date) and type(value).__name__ != "NaTType":
        return value.isoformat()[:10]
    if order == "ymd" and isinstance(value, int | float | np.number):
        return _day_of_text(f"{value:.0f}", order) if float(value).is_integer() else None
    return None


def _day_of_text(text: str, order: str | None) -> str | None:
    if _ISO.fullmatch(text):
        return text[:10]
    if order == "ymd" and (found := _COMPACT.fullmatch(text)):
        day = _day(*found.groups())
    else:
        parsed = _parse(text)
        day = None if parsed is None else parsed.days.get(parsed.order or order or "")
    return None if day is None else day.isoformat()


def exchange_day(text: Any) -> str | None:
    """Return the day of a text like a date whose month is none, once the two are exchanged.

    >>> exchange_day("2024-31-05"), exchange_day("2024-05-31"), exchange_day("2024-31-02")
    ('2024-05-31', None, None)
    """
    found = _LIKE_ISO.match(text) if isinstance(text, str) else None
    day = _day(found[1], found[3], found[2]) if found and int(found[2]) > 12 else None
    return None if day is None else day.isoformat()


def year_first(text: str) -> str:
    """Return a month or a quarter of a year with the year first; any other text as it is.

    >>> [year_first(text) for text in ("Jan-2018", "2018 January", "1/2018", "Q3 2018", "Sun 2018")]
    ['2018-01', '2018-01', '2018-01', '2018-Q3', 'Sun 2018']
    """
    if found := _PART_YEAR.fullmatch(text):
        part, year = found.groups()
    elif found := _YEAR_PART.fullmatch(text):
        year, part = found.groups()
    else:
        return text
    if part[1:].isdigit() and not part.isdigit():
        return f"{year}-{part}"
    month = _month(part)
    return f"{year}-{month:02d}" if month in range(1, 13) else text


def is_doubtful(value: Any) -> bool:
    """Whether a value is a date of which it must be said what comes first."""
    return isinstance(value, str) and bool(_open_days(value))


def _open_days(text: str) -> dict[str, dt.date]:
    """Return the days that a text such as 03/07/2024 may be, by their orders; else nothing."""
    parsed = _parse(text.strip())
    return parsed.days if parsed is not None and parsed.order is None else {}


def date_part(value: Any) -> Any:
    """Return what says the day: in ISO form, or the text without its time; any other as it is."""
    if is_doubtful(value) and (parsed := _parse(value.strip())):
        return parsed.text
    return day_of(value) or value


def find_orders(values: Iterable[Any]) -> set[str]:
    """Return the orders in which all values like 03/07/2024 are days; both if there are none."""
    orders, is_same = {"dmy", "mdy"}, True
    for value in values:
        if isinstance(value, str) and (days := _open_days(value)):
            orders &= days.keys()
            is_same = is_same and days.get("dmy") == days.get("mdy")
    return {"dmy"} if is_same and len(orders) == 2 else orders


def find_order(values: Iterable[Any]) -> str | None:
    """Return the order of most values like 03/07/2024; None if there are none, or in any doubt.

    >>> find_order(["25/12/2024", "03/07/2024", "12/26/2024", "31/01/2025"])
    'dmy'
    """
    read = [_open_days(value) for value in values if isinstance(value, str)]
    if not any(read):
        return None
    is_same = all(days.get("dmy") == days.get("mdy") for days in read)
    told = [sum(order in days and len(days) == 1 for days in read) for order in ("dmy", "mdy")]
    if told[0] == told[1]:
        return "dmy" if is_same else None
    return "dmy" if told[0] > told[1] else "mdy"


def are_compact_days(values: Iterable[Any]) -> bool:
    """Whether numbers such as 20240531 are clearly days: several different ones, and all are."""
    days = [day_of(value, "ymd") for value in values]
    is_all = all(day is not None and int(day[:4]) in CALENDAR for day in days)
    return is_all and len(set(days)) >= LEAST_COMPACT


def period_of(value: Any, period: str) -> Any:
    """Return the period in which a date lies, as text; what is no date as it is.

    >>> [period_of("2024-05-31", period) for period in ("year", "quarter", "month", "day")]
    ['2024', '2024-Q2', '2024-05', '2024-05-31']
    >>> period_of("03/07/2024", "month dmy"), period_of("03/07/2024", "month mdy")
    ('2024-07', '2024-03')
    """
    name, _, order = period.partition(" ")
    day = day_of(value, order or None)
    if day is None:
        return value
    if name == "quarter":
        return f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}"
    return day[: {"year": 4, "month": 7, "day": 10}[name]]
