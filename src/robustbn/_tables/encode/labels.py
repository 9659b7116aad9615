"""Which state a value of a table stands for. The rules, and nothing that guesses.

A missing value (None, NaN, NaT, a null) stands for no state, unless `labels` names one for None. A
value for which `labels` names None is missing.
Any other value stands for a state when, in this order,
1. `labels` says so;
2. they are equal: text with text, number with number, truth value with truth value;
3. their texts are equal once blanks at both ends are gone: `" yes "` is "yes";
4. both are truth values, or text that is one in any case: True is "true", "True" and "TRUE";
5. both are numbers, or text that is one, and equal: 1, 1.0, "1", "1.0" and True are one another;
   "01" is text and no number, because leading zeros are often part of a name;
6. both are dates or times, or text that is one (2024-05-31, 2024-05-31 12:00:00), and equal; a
   date is its midnight;
7. with `ignore_case`, their texts are equal in lower case.
A rule that two states of a node would pass for the same value decides nothing. The keys of `labels`
are found by the same rules. Bytes are the text that they spell in UTF-8.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

MISSING, UNKNOWN = -1, -2
WORDS_FOR_MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>"]
)
MOST_REMEMBERED = 2**16
_LONGEST_NUMBER = 400
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)


class StateFinder:
    """Finds the code of a value; remembers the values it has seen.

    Parameters
    ----------
    states : the node's labels.
    labels : what the caller says certain values stand for; None: what a missing one stands for.
    ignore_case : whether texts that differ in case only are the same.
    is_text : whether values come from a text file, where a missing value is a word such as "NA".
    others : the state of a value that stands for no other; None: it is unknown.

    Attributes
    ----------
    missing : code of a missing value: MISSING, unless a label was given for it.
    """

    def __init__(
        self,
        states: Sequence[Hashable],
        labels: Mapping[Hashable, Hashable] | None = None,
        ignore_case: bool = False,
        is_text: bool = False,
        others: Hashable = None,
    ) -> None:
        rules = [*_RULES, _folded] if ignore_case else _RULES
        self._is_text = is_text
        own = dict(zip(states, range(len(states)), strict=True))
        said = {value: own[state] for value, state in (labels or {}).items()}
        self._steps = [
            (rule, _table_of(rule, code_of)) for code_of in (said, own) if code_of for rule in rules
        ]
        for_missing = [code for code_of in (said, own) for v, code in code_of.items() if _is_no(v)]
        self.missing = for_missing[0] if for_missing else MISSING
        self._unknown = UNKNOWN if others is None else own[others]
        self._known: dict[tuple[type, Any], int] = {}

    def find(self, value: Any) -> int:
        """Return the code of a value, MISSING or UNKNOWN."""
        try:
            key = (type(value), value)
            code = self._known.get(key)
        except TypeError:  # a list, say
            return self.missing if is_missing(value) else UNKNOWN
        if code is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            code = self._known[key] = self._search(value)
        return code

    def is_ambiguous(self, value: Any) -> bool:
        """Whether some rule would pass a value for two states."""
        value = _plain(value)
        return any(table.get(rule(value), 0) is None for rule, table in self._steps)

    def means_missing(self, value: Any) -> bool:
        """Whether a value is missing, or in a text file a word for that."""
        is_word = isinstance(value, str) and value.strip() in WORDS_FOR_MISSING
        return is_missing(value) or (self._is_text and is_word)

    def _search(self, value: Any) -> int:
        value = _plain(value)
        if is_missing(value):
            return self.missing
        for rule, table in self._steps:
            code = table.get(rule(value))
            if code is not None:
                return code
        return self.missing if self.means_missing(value) else self._unknown


def split_labels(
    said: Mapping[Hashable, Hashable], ignore_case: bool = False
) -> tuple[dict[Hashable, Hashable], StateFinder | None]:
    """Return the labels that lead to states, and what finds the values that are to be missing."""
    leading = {value: state for value, state in said.items() if state is not None}
    if len(leading) == len(said):
        return leading, None
    nothing = object()
    gone = {value: nothing for value, state in said.items() if state is None and value is not None}
    return leading, StateFinder([nothing], gone, ignore_case)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the mark of a data frame library for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float) and value != value


def _is_no(value: Any) -> bool:
    return is_missing(_plain(value))


def _plain(value: Any) -> Any:
    """Return a value as Python's own: no NumPy scalar, no bytes."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value


def _table_of(rule: Any, code_of: Mapping[Any, int]) -> dict[Any, int | None]:
    """Return what a rule makes of each state; what two states share stands for neither."""
    table: dict[Any, int | None] = {}
    for label, code in code_of.items():
        key = None if _is_no(label) else rule(_plain(label))
        if key is not None:
            table[key] = None if table.get(key, code) != code else code
    return table


def _itself(value: Any) -> Any:
    if isinstance(value, str):
        return "text", value
    if isinstance(value, bool):
        return "truth", value
    return ("number", value) if isinstance(value, int | float) else (type(value), value)


def _stripped(value: Any) -> Any:
    return str(value).strip() if not isinstance(value, int | float) else None


def _as_truth(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return None


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


def _as_moment(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        try:
            return dt.datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
        except ValueError:  # the 31st of June
            return None
    if isinstance(value, dt.datetime):
        return value
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else None


def _folded(value: Any) -> Any:
    return str(value).strip().casefold()


_RULES = (_itself, _stripped, _as_truth, as_number, _as_moment)
