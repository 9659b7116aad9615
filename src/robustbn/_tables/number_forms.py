"""Numbers in the ways that people write them: units, marks between thousands, decimal marks.

A column has one way of each sort, as far as most of its numbers show one: 1,234 shows a mark
between thousands, 12 does not.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple

_NUMBER = re.compile(r"([+-]?)(\D ?)?([0-9](?:[0-9.,' ]*[0-9])?)((\s?)([^\s\d][^\d]*))?", re.ASCII)
LEAST_SHOWN = 5  # cells that are written in a way: fewer are no habit
_LONGEST = 64  # characters of a number with its unit
_GROUPS = {
    mark: re.compile(
        rf"(0|[1-9][0-9]*|[1-9][0-9]{{0,2}}(?:([{other}' ])[0-9]{{3}})(?:\2[0-9]{{3}})*)"
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


def read_numbers(texts: Iterable[str]) -> dict[str, Number]:
    """Return the texts that are numbers, in the decimal mark that fits more of them.

    A text that only the other mark fits is read by that one: 61,5 among 61.2 and 60.8.
    """
    split = {text: parts for text in texts if (parts := _split(text)) is not None}
    fits: dict[str, dict[str, Number]] = {mark: {} for mark in _GROUPS}
    for text, (sign, digits, unit) in split.items():
        for mark, form in _GROUPS.items():
            if found := form.fullmatch(digits):
                whole = re.sub("[^0-9]", "", found[1])
                between = (found[2] or "") if len(whole) > 3 else None
                part = found[3] or ""
                shown = mark if part else None
                fits[mark][text] = Number(sign, whole, part, unit, between, shown)
    mark, other = sorted(_GROUPS, key=lambda mark: -len(fits[mark]))
    return fits[other] | fits[mark]


def _split(text: str) -> tuple[str, str, Unit] | None:
    """Return sign, digits and unit of a text that may be a number."""
    found = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or (found[2] and found[4]):
        return None
    sign, before, digits, after = found[1], found[2], found[3], found[4]
    if before:
        is_money = unicodedata.category(before[0]) == "Sc"
        return (sign, digits, Unit(before, True)) if is_money else None
    if after and not _is_unit(found[6][0]):
        return None
    return sign, digits, Unit(after, False) if after else PLAIN


def _is_unit(first: str) -> bool:
    """Whether a unit may begin so: with a letter, or a sign of money, percent or degrees."""
    return first.isalpha() or first in "%°" or unicodedata.category(first) == "Sc"


def find_number_form(numbers: Mapping[str, Number], counts: Mapping[str, int]) -> NumberForm:
    """Return how most numbers are written, wherever one way has more than half of those it shows.

    counts : cells of each text.
    """
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
