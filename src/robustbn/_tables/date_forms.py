"""Days of the calendar in the forms that people write them.

A form says the order of year, month and day, what stands between them, and whether the month is
a name. A text may have several: 03/07/2024 is a day in two orders.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Iterable
from typing import NamedTuple

_PARTS = re.compile(
    r"([0-9]{1,4}|[A-Za-z]{3,9})([-/. ])([0-9]{1,2}|[A-Za-z]{3,9})(, |[-/. ])([0-9]{1,4})"
)
ORDERS = ("ymd", "dmy", "mdy")
_STYLES = ([f"{k}" for k in range(13)], list(calendar.month_abbr), list(calendar.month_name))


class DateForm(NamedTuple):
    """How days are written."""

    order: str  # of year, month and day, by their initials
    between: tuple[str, str]  # what stands after the first and after the second
    style: int  # how months are written: 0 number, 1 short name, 2 name
    is_padded: bool  # whether numbers below ten have a zero before them

    def write(self, day: dt.date) -> str:
        """Return a day in this form."""
        month = _STYLES[self.style][day.month]
        parts = {"y": f"{day.year:04d}", "m": month, "d": f"{day.day}"}
        if self.is_padded:
            parts |= {k: parts[k].zfill(2) for k in "md"}
        a, b, c = (parts[k] for k in self.order)
        return f"{a}{self.between[0]}{b}{self.between[1]}{c}"


def read_day(text: str) -> dict[DateForm, dt.date]:
    """Return the forms in which a text is a day, each with the day.

    Examples
    --------
    >>> {form.order: str(day) for form, day in read_day("03/07/2024").items()}
    {'dmy': '2024-07-03', 'mdy': '2024-03-07'}
    """
    found = _PARTS.fullmatch(text)
    if found is None:
        return {}
    days = {}
    for order in ORDERS:
        parts = dict(zip(order, (found[1], found[3], found[5]), strict=True))
        for style, names in enumerate(_STYLES):
            day = _day(parts, names)
            for is_padded in (True, False) if day is not None else ():
                form = DateForm(order, (found[2], found[4]), style, is_padded)
                if day is not None and form.write(day) == text:
                    days[form] = day
    return days


def _day(parts: dict[str, str], months: list[str]) -> dt.date | None:
    month = parts["m"].lstrip("0")
    if len(parts["y"]) != 4 or not parts["y"].isdigit() or month not in months[1:]:
        return None
    try:
        return dt.date(int(parts["y"]), months.index(month), int(parts["d"]))
    except ValueError:  # the 31st of June
        return None


def decide_days(
    readings: Iterable[dict[DateForm, dt.date]], common: DateForm
) -> list[dt.date | None]:
    """Return the day of each text; None where its order is open.

    Texts with the same marks between their parts, and the year first or last in all, are taken to
    have one order, the one in which all of them are days; that of the common form, if it is such.
    """
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
