"""Numbers as people write them: $1,234.50, 1.234,50 €, 12,5 %, 1 234.

A notation is the mark before the decimals, `.` or `,`, and the unit that every number carries, if
any: `.$`, `,€`, `.%`, `,`. The other mark, a blank or an apostrophe may part thousands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from robustbn._tables.encode.labels import as_number

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
