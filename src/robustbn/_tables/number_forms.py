"""Numbers in the ways that people write them: units, marks between thousands, decimal marks.

A column has one way of each sort, as far as most of its numbers show one: 1,234 shows a mark
between thousands, 12 does not. A notation of a column that is read is the mark before the decimals,
`.` or `,`, and the currency or percent sign of every number, if any: `.$` reads $1,234.50, `,€`
reads 1.234,50 €.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple

_LONGEST_PLAIN = 400  # characters of a number without a unit, as programs write it
_PLAIN = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_CODES = (
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SEK|SGD|TRY|USD|"
    "ZAR|kr|zł|Fr"
)
_CURRENCY = rf"(?:[A-Z]{{0,3}}\$|[£¥¤¢؋฿៛﷼\u20a0-\u20cf]|{_CODES})"
_AMOUNT = re.compile(rf"(?:{_CURRENCY}|%)?")  # units of notations
_BLANKS = " '\u2019\u00a0\u202f"  # between thousands, beside the other decimal mark
_WRITTEN = re.compile(
    rf"(?:([+-]) ?)?({_CURRENCY}[ \u00a0]?)?([+-]?)([0-9](?:[0-9.,{_BLANKS}]*[0-9])?)"
    r"(\s?[^\s\d][^\d]*)?"
)
LEAST_SHOWN = 5  # cells that are written in a way: fewer are no habit
_LONGEST = 64  # characters of a number with its unit
_GROUPS = {
    mark: re.compile(
        rf"(0|[1-9][0-9]*|[1-9][0-9]{{0,2}}(?:([{other}{_BLANKS}])[0-9]{{3}})(?:\2[0-9]{{3}})*)"
        rf"(?:{re.escape(mark)}([0-9]+))?"
    )
    for mark, other in ((".", ","), (",", "."))
}
_EXACT, _MOST_EXACT = 15, 12  # digits that a binary fraction keeps; fewer that someone has written


class Unit(NamedTuple):
    """What is written before or after a number, with its blanks; "" if nothing is."""

    text: str
    is_before: bool

    @property
    def word(self) -> str:
        """The unit without case, blanks and dots."""
        return self.text.casefold().strip(" .")

    @property
    def initial(self) -> str:
        """Its first letter or sign: that of an abbreviation is the word's."""
        return self.word[:1]


PLAIN = Unit("", False)


class Number(NamedTuple):
    """A number as it is written."""

    # sign, whole, part: its digits; part are the decimals
    sign: str
    whole: str
    part: str
    unit: Unit
    # between, mark: what parts thousands and decimals; None if it has none to part
    between: str | None
    mark: str | None

    @property
    def value(self) -> float:
        """The number itself."""
        return float(f"{self.sign}{self.whole}.{self.part or 0}")

    @property
    def zeros(self) -> str | None:
        """The decimals of a whole number; None if the number is none."""
        return None if self.part.strip("0") else self.part


@dataclass(frozen=True)
class NumberForm:
    """How numbers are to be written; None: each as it is."""

    unit: Unit | None  # what is written beside the digits
    # between, mark: what parts thousands and decimals
    between: str | None
    mark: str | None
    zeros: str | None  # the decimals of whole numbers

    def fits(self, number: Number) -> bool:
        """Whether a number is written so, as far as it shows how it is written."""
        wanted = (self.unit, self.between, self.mark, self.zeros)
        shown = (number.unit, number.between, number.mark, number.zeros)
        return all(a is None or b is None or a == b for a, b in zip(wanted, shown, strict=True))

    def write(self, number: Number) -> str:
        """Return a number in this form; noise of binary fractions is left out."""
        unit = number.unit if self.unit is None else self.unit
        between = number.between if self.between is None else self.between
        mark = (number.mark if self.mark is None else self.mark) or "."
        whole, part = _round(number.whole, number.part)
        if self.zeros is not None and not part.strip("0"):
            part = self.zeros
        if between and len(whole) > 3:
            whole = f"{int(whole):,}".replace(",", between)
        digits = f"{whole}{mark}{part}" if part else whole
        before, after = (unit.text, "") if unit.is_before else ("", unit.text)
        return f"{number.sign}{before}{digits}{after}"


def _round(whole: str, part: str) -> tuple[str, str]:
    """Return digits as someone has written them: 0.056 for 0.055999999999999994."""
    if len((whole + part).lstrip("0")) <= _EXACT:
        return whole, part
    rounded = Context(prec=_EXACT).create_decimal(f"{whole}.{part}").normalize()
    short = f"{rounded:f}"
    if len(Decimal(short).as_tuple().digits) > _MOST_EXACT:
        return whole, part
    new, _, rest = short.partition(".")
    return new, rest


class _Split(NamedTuple):
    """A text that may be a number."""

    sign: str
    digits: str  # with the marks between them
    unit: Unit

    def read(self, mark: str) -> Number | None:
        """Return the number by a decimal mark; None if the digits do not fit it."""
        found = _GROUPS[mark].fullmatch(self.digits)
        if found is None:
            return None
        whole, part = re.sub("[^0-9]", "", found[1]), found[3] or ""
        between = (found[2] or "") if len(whole) > 3 else None
        return Number(self.sign, whole, part, self.unit, between, mark if part else None)


def _split(text: str) -> _Split | None:
    found = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or (found[1] and found[3]) or (found[2] and found[5]):
        return None
    before, after = found[2] or "", found[5] or ""
    if after and not _is_unit(after.strip()[0]):
        return None
    return _Split((found[1] or "") + found[3], found[4], Unit(before or after, bool(before)))


def _is_unit(first: str) -> bool:
    """Whether a unit may begin so: with a letter, or a sign of money, percent or degrees."""
    return first.isalpha() or first in "%°" or unicodedata.category(first) == "Sc"


def read_numbers(texts: Iterable[str]) -> dict[str, Number]:
    """Return the texts that are numbers, in the decimal mark that fits more, or else the other."""
    split = {text: parts for text in texts if (parts := _split(text)) is not None}
    fits = {
        mark: {t: number for t, parts in split.items() if (number := parts.read(mark)) is not None}
        for mark in _GROUPS
    }
    mark, other = sorted(_GROUPS, key=lambda mark: -len(fits[mark]))
    return fits[other] | fits[mark]


def find_number_form(numbers: Mapping[str, Number], counts: Mapping[str, int]) -> NumberForm:
    """Return how most numbers are written, where one way has more than half of those shown."""
    units: Counter[Unit] = Counter()
    ways: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    for text, number in numbers.items():
        units[number.unit] += counts[text]
        for way, shown in zip(ways, (number.between, number.mark, number.zeros), strict=True):
            if shown is not None:
                way[shown] += counts[text]
    between, mark, zeros = map(_most, ways)
    return NumberForm(_most(units), between, mark, zeros)


def _most(counter: Counter[Any]) -> Any:
    """Return what has more than half of the counts; None if nothing has, or too few show it."""
    way, n = counter.most_common(1)[0] if counter else (None, 0)
    return way if n > counter.total() / 2 and n >= LEAST_SHOWN else None


# --- numbers of a column that is read -------------------------------------------------------------


def as_number(value: Any) -> Any:
    """Return a number, or text that is one, as an int or float; None for all else."""
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_whole else float(value)
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_PLAIN or not _PLAIN.fullmatch(text):
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
    parts = _split_amount(value)
    if parts is None or parts.unit.text.strip() != notation[1:]:
        return None
    number = parts.read(notation[0])
    return None if number is None else number.value


def _split_amount(text: str) -> _Split | None:
    """Return the parts of a text that may be a number in some notation."""
    parts = _split(text.strip())
    return parts if parts is not None and _AMOUNT.fullmatch(parts.unit.text.strip()) else None


def find_notation(values: Iterable[Any]) -> str | None:
    """Return the notation in which all numbers among some values are written.

    None if they are plain, do not agree, or could be read in two ways. A mark that three digits
    follow wherever it stands parts thousands, but not in per cent.

    >>> find_notation(["$999", "$1,234"]), find_notation(["0,5", "12", "1.000,25"])
    ('.$', ',')
    >>> find_notation(["1,5", "2.5"]), find_notation(["1500", "1,234"]), find_notation(["1.5", "2"])
    (None, None, None)
    """
    split = {text: _split_amount(text) for text in values if isinstance(text, str)}
    plain = {text for text in split if as_number(text) is not None}
    if all(text in plain or parts is None for text, parts in split.items()):
        return None
    if any(split[text] is None for text in plain):
        return None  # 1e5
    found = [parts for parts in split.values() if parts is not None]
    units, numbers = {parts.unit.text.strip() for parts in found}, [parts.digits for parts in found]
    fit = [mark for mark, form in _GROUPS.items() if all(map(form.fullmatch, numbers))]
    if len(units) != 1 or not fit:
        return None
    unit = units.pop()
    decimal = fit[0] if len(fit) == 1 else _decide(numbers, unit)
    return None if decimal is None else decimal + unit


def _decide(numbers: list[str], unit: str) -> str | None:
    """Return the decimal mark of numbers in which each mark is followed by three digits."""
    used = [mark for mark in _GROUPS if any(mark in digits for digits in numbers)]
    if not used:
        return "." if unit else None
    if len(used) == 2:
        return None
    if unit == "%":
        return used[0]
    has_long = any(digits.isdigit() and len(digits) > 3 for digits in numbers)
    return None if has_long else {".": ",", ",": "."}[used[0]]
