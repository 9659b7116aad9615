"""Days and numbers in the forms that people write them, and the periods in which days lie.

Of 03/07/2024 it must be said whether the day ("dmy") or the month ("mdy") comes first, and 20240531
is a number unless "ymd" is said. A notation of numbers is the mark before the decimals, `.` or `,`,
and the unit that every number carries, if any: `.$` reads $1,234.50, `,€` reads 1.234,50 €.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_MONTHS = {form: k for k, name in enumerate(_NAMES, 1) for form in (name, name[:3])} | {"sept": 9}
_TIME = r"(?:(?:[ T]|, ?)\d{1,2}:\d\d.*)?"
_ISO = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([ T].*)?", re.ASCII)
_YEAR_FIRST = re.compile(rf"(\d{{4}})([/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}", re.ASCII)
_DOTTED = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}}){_TIME}", re.ASCII)
_SLASHED = re.compile(rf"(\d{{1,2}})([/-])(\d{{1,2}})\2(\d{{4}}){_TIME}", re.ASCII)
_DAY_MONTH = re.compile(rf"(\d{{1,2}})[ -]([A-Za-z]{{3,9}})\.?,?[ -](\d{{4}}){_TIME}", re.ASCII)
_MONTH_DAY = re.compile(rf"([A-Za-z]{{3,9}})\.? (\d{{1,2}}),? (\d{{4}}){_TIME}", re.ASCII)
_BETWEEN = r"[ /,._-]{0,2}"
_PART_YEAR = re.compile(rf"([A-Za-z]{{3,9}}|Q[1-4]|\d{{1,2}}(?=[/-])){_BETWEEN}(\d{{4}})", re.ASCII)
_YEAR_PART = re.compile(rf"(\d{{4}}){_BETWEEN}([A-Za-z]{{3,9}}|Q[1-4])", re.ASCII)
_LIKE_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)", re.ASCII)
_CLEAR = (  # forms that show what is what, and where year, month and day are in them
    (_YEAR_FIRST, 1, 3, 4), (_DOTTED, 3, 2, 1), (_DAY_MONTH, 3, 2, 1), (_MONTH_DAY, 3, 1, 2)
)  # fmt: skip
LEAST_COMPACT = 5  # so many different numbers that all spell days are no accident
CALENDAR = range(1800, 2200)  # years of dates that are not marked as such


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
    if len(text) < 8 or not ("0" <= text[0] <= "9" or text[0].isalpha()):
        return None
    for form, *places in _CLEAR:
        if found := form.fullmatch(text):
            return _day(*(found[k] for k in places))
    if order == "ymd" and (found := _COMPACT.fullmatch(text)):
        return _day(found[1], found[2], found[3])
    if order in ("dmy", "mdy") and (found := _SLASHED.fullmatch(text)):
        day, month = (found[1], found[3]) if order == "dmy" else (found[3], found[1])
        return _day(found[4], month, day)
    return None


def exchange_day(text: Any) -> str | None:
    """Return the day of a text like a date whose month is none, once the two are exchanged.

    >>> exchange_day("2024-31-05"), exchange_day("2024-05-31"), exchange_day("2024-31-02")
    ('2024-05-31', None, None)
    """
    found = _LIKE_ISO.match(text) if isinstance(text, str) else None
    return _day(found[1], found[3], found[2]) if found and int(found[2]) > 12 else None


def _day(year: str, month: str, day: str) -> str | None:
    try:
        return dt.date(int(year), _month(month), int(day)).isoformat()
    except ValueError:  # the 31st of June
        return None


def _month(text: str) -> int:
    """Return the number of a month by its name or its digits, 0 if it is none."""
    return int(text) if text.isdigit() else _MONTHS.get(text.lower(), 0)


def year_first(text: str) -> str:
    """Return a month or a quarter of a year with the year first; any other text as it is.

    Examples
    --------
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
    return isinstance(value, str) and bool(_slashed_orders(value))


def date_part(value: Any) -> Any:
    """Return what says the day: in ISO form, or the text without its time; any other as it is."""
    if is_doubtful(value):
        return re.split(r"[ T,]", value.strip(), maxsplit=1)[0]
    return day_of(value) or value


def _slashed_orders(text: str) -> set[str]:
    """Return the orders in which a text such as 03/07/2024 is a day."""
    if not _SLASHED.fullmatch(text.strip()):
        return set()
    return {order for order in ("dmy", "mdy") if _day_of_text(text.strip(), order) is not None}


def find_orders(values: Iterable[Any]) -> set[str]:
    """Return the orders in which all values like 03/07/2024 are days; both if there are none."""
    orders, is_same = {"dmy", "mdy"}, True
    for value in values:
        if is_doubtful(value):
            orders &= _slashed_orders(value)
            is_same = is_same and day_of(value, "dmy") == day_of(value, "mdy")
    return {"dmy"} if is_same and len(orders) == 2 else orders


def are_compact_days(values: Iterable[Any]) -> bool:
    """Whether numbers such as 20240531 are clearly days: several different ones, and all are."""
    days = [day_of(value, "ymd") for value in values]
    is_all = all(day is not None and int(day[:4]) in CALENDAR for day in days)
    return is_all and len(set(days)) >= LEAST_COMPACT


def period_of(value: Any, period: str) -> Any:
    """Return the period in which a date lies, as text; what is no date as it is.

    Examples
    --------
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


# --- numbers --------------------------------------------------------------------------------------

_LONGEST_NUMBER = 400
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LONGEST = 64
_CODES = (
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SEK|SGD|TRY|USD|"
    "ZAR|kr|zł|Fr"
)
_CURRENCY = rf"(?:[A-Z]{{0,3}}\$|[£¥¤¢\u20a0-\u20cf]|{_CODES})"
_BLANKS = " '\u2019\u00a0\u202f"
_WRITTEN = re.compile(
    rf"([+-]?) ?({_CURRENCY})?[ \u00a0]?([+-]?)([0-9](?:[0-9.,{_BLANKS}]*[0-9])?)"
    rf"[ \u00a0\u202f]?({_CURRENCY}|%)?"
)


def _forms(decimal: str, between: str) -> re.Pattern[str]:
    grouped = rf"[1-9][0-9]{{0,2}}([{between}{_BLANKS}])[0-9]{{3}}(?:\1[0-9]{{3}})*"
    return re.compile(rf"(?:0|[1-9][0-9]*|{grouped})(?:{re.escape(decimal)}[0-9]+)?")


_FORMS = {".": _forms(".", ","), ",": _forms(",", ".")}


def as_number(value: Any) -> Any:
    """Return a number, or text that is one, as an int or float; None for all else."""
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_whole else float(value)
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            return None
        if text.lstrip("+-").isdigit():
            return int(text)
        number = float(text)
        return number if math.isfinite(number) else None
    return value if isinstance(value, int | float) else None


def number_in(value: Any, notation: str) -> float | None:
    """Return the number that a text spells in a notation; None for all else.

    A value that is no text is the number it is.

    >>> number_in("$1,234.50", ".$"), number_in("1.234,50", ","), number_in("1.5", ",")
    (1234.5, 1234.5, None)
    """
    if not isinstance(value, str):
        return as_number(value)  # type: ignore[no-any-return]
    found = _split(value)
    if found is None or found[1] != notation[1:]:
        return None
    sign, _, digits = found
    decimal = notation[0]
    if not _FORMS[decimal].fullmatch(digits):
        return None
    whole, _, part = digits.partition(decimal)
    number = float(f"{sign}{re.sub('[^0-9]', '', whole)}.{part or 0}")
    return number if math.isfinite(number) else None


def find_notation(values: Iterable[Any]) -> str | None:
    """Return the notation in which all numbers among some values are written.

    None if they are plain, do not agree, or could be read in two ways. A mark that three digits
    follow wherever it stands parts thousands, but not in per cent.

    >>> find_notation(["$999", "$1,234"]), find_notation(["0,5", "12", "1.000,25"])
    ('.$', ',')
    >>> find_notation(["1,5", "2.5"]), find_notation(["1500", "1,234"]), find_notation(["1.5", "2"])
    (None, None, None)
    """
    texts = [value for value in values if isinstance(value, str)]
    if all(as_number(text) is not None or _split(text) is None for text in texts):
        return None
    if any(as_number(text) is not None and _split(text) is None for text in texts):
        return None  # 1e5
    found = [parts for text in texts if (parts := _split(text)) is not None]
    units, numbers = {unit for _, unit, _ in found}, [digits for _, _, digits in found]
    fit = [mark for mark, form in _FORMS.items() if all(map(form.fullmatch, numbers))]
    if len(units) != 1 or not fit:
        return None
    unit = units.pop()
    decimal = fit[0] if len(fit) == 1 else _decide(numbers, unit)
    return None if decimal is None else decimal + unit


def _decide(numbers: list[str], unit: str) -> str | None:
    """Return the decimal mark of numbers in which each mark is followed by three digits."""
    used = [mark for mark in _FORMS if any(mark in digits for digits in numbers)]
    if not used:
        return "." if unit else None
    if len(used) == 2:
        return None
    if unit == "%":
        return used[0]
    has_long = any(digits.isdigit() and len(digits) > 3 for digits in numbers)
    return None if has_long else {".": ",", ",": "."}[used[0]]


def _split(text: str) -> tuple[str, str, str] | None:
    """Return sign, unit and digits of a text that may be a number in some notation."""
    text = text.strip()
    found = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or (found[1] and found[3]) or (found[2] and found[5]):
        return None
    return found[1] + found[3], found[2] or found[5] or "", found[4]
