"""Numbers as options, as people write them: 1e6, 1_000_000, 200k; a prior by name or number."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    Kind = click.ParamType[Any]
else:
    Kind = click.ParamType

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_NUMBER = re.compile(r"\+?(\d[\d_,]*(?:\.\d*)?(?:e\+?\d+)?)\s*([km]?)", re.IGNORECASE)
PRIOR_NAMES = ("none", "laplace", "bdeu")


class Count(Kind):
    """A whole number of things: 1000000, 1_000_000, 1,000,000, 1e6 or 1M.

    Parameters
    ----------
    least : that it may be.
    """

    name = "N"

    def __init__(self, least: int = 0) -> None:
        self._least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return a whole number."""
        found = _NUMBER.fullmatch(str(value).strip())
        number = float("nan")
        if found is not None:
            number = float(re.sub("[_,]", "", found[1])) * _UNITS[found[2].lower()]
        if not (math.isfinite(number) and number == int(number)):
            self.fail(f"{value!r} is not a whole number, such as 1000, 1e6 or 200k.", param, ctx)
        if number < self._least:
            self.fail(f"{value} is below {self._least}, the least there can be.", param, ctx)
        return int(number)


class Prior(Kind):
    """What tables are smoothed with: a name, or how many rows are added to every cell."""

    name = "PRIOR"

    def convert(self, value: Any, param: Any, ctx: Any) -> str | float:
        """Return a name, or a number."""
        text = str(value).strip().lower()
        if text in PRIOR_NAMES:
            return text
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not (math.isfinite(number) and number >= 0):
            names = ", ".join(PRIOR_NAMES)
            self.fail(f"{value!r} is no prior: give {names}, or a number such as 1.", param, ctx)
        return number
