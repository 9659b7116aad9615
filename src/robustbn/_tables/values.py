"""The values of a table: which are missing, which state each stands for, what a column holds.

The rules are those of `docs/tables.md`, "Which state a value stands for". The keys of `labels` are
found by the same rules. Bytes are the text that they spell in UTF-8.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Column
from robustbn._tables.number_forms import as_number, number_in

if TYPE_CHECKING:
    import pyarrow as pa

MISSING, UNKNOWN = -1, -2
WORDS_FOR_MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>"]
)
MOST_REMEMBERED = 2**16
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)


def is_missing(value: Any, is_text: bool = False) -> bool:
    """Whether a value is None, NaN or a mark for a missing one; in a text file, a word for it."""
    if isinstance(value, str):
        return is_text and value.strip() in WORDS_FOR_MISSING
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float) and value != value


class StateFinder:
    """Finds the code of a value; remembers the values it has seen."""

    def __init__(
        self,
        states: Sequence[Hashable],
        labels: Mapping[Hashable, Hashable] | None = None,
        ignore_case: bool = False,
        is_text: bool = False,
        others: Hashable = None,
    ) -> None:
        rules = [*_RULES, _folded] if ignore_case else _RULES
        self.is_text = is_text
        own = dict(zip(states, range(len(states)), strict=True))
        said = {value: own[state] for value, state in (labels or {}).items()}
        self._steps = [
            (rule, _table_of(rule, code_of)) for code_of in (said, own) if code_of for rule in rules
        ]
        named = [*said.items(), *own.items()]
        self.missing = next((code for v, code in named if is_missing(_plain(v))), MISSING)
        self.others = None if others is None else own[others]
        self._unknown = UNKNOWN if self.others is None else self.others
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

    def _search(self, value: Any) -> int:
        value = _plain(value)
        if is_missing(value):
            return self.missing
        for rule, table in self._steps:
            code = table.get(rule(value))
            if code is not None:
                return code
        return self.missing if is_missing(value, self.is_text) else self._unknown


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


def declare_missing(
    labels: Mapping[str, Mapping[Hashable, Hashable]] | None, missing: Any, nodes: Iterable[str]
) -> dict[str, Mapping[Hashable, Hashable]]:
    """Return labels that also say which values are missing."""
    declared = dict(labels or {})
    by_node = missing if isinstance(missing, Mapping) else dict.fromkeys(nodes, missing)
    for node, said in by_node.items():
        is_one = isinstance(said, str | bytes) or not isinstance(said, Iterable)
        gone = dict.fromkeys([said] if is_one else said, None)
        gone.pop(None, None)
        if gone:
            declared[node] = {**gone, **declared.get(node, {})}
    return declared


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
        value = _plain(label)
        key = None if is_missing(value) else rule(value)
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


# --- columns --------------------------------------------------------------------------------------


def as_objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as an array of objects, whatever they are."""
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


def nothing_in(n_rows: int) -> Column:
    """Return the column that a part of a table lacks: every value is missing."""
    return Column(np.full(n_rows, -1, np.int8), [])


def find_distinct(column: Column) -> tuple[Sequence[Any], NDArray[np.integer[Any]]]:
    """Return values, and the place of each row among them: -1 where one is said to be missing."""
    values, found = column.values, column.labels
    if found is not None:
        places = values if values.dtype.kind == "u" else np.maximum(values, -1)
    elif values.dtype.kind in "biufmM":
        distinct, places = np.unique(values, return_inverse=True)
        if distinct.dtype.kind in "mM" and np.datetime_data(distinct.dtype)[0] in ("ns", "ps"):
            distinct = distinct.astype(f"{distinct.dtype.kind}8[us]")  # finer ones become numbers
        found = distinct.tolist()
    else:
        numbers: dict[Hashable, int] = {}
        listed = values.tolist()
        each = (numbers.setdefault(value, len(numbers)) for value in listed)
        places = np.fromiter(each, np.int64, len(listed))
        found = list(numbers)
    if column.is_missing is not None:
        places = np.where(column.is_missing, -1, places.astype(np.int64))
    return found, places


def count_values(column: Column) -> list[tuple[Any, int]]:
    """Return the values that occur in a column, with the rows of each; None and NaN may be some."""
    try:
        found, places = find_distinct(column)
    except TypeError:
        texts = [v if isinstance(v, Hashable) else str(v) for v in column.values.tolist()]
        found, places = find_distinct(replace(column, values=as_objects(texts)))
    rows = np.bincount(places[places >= 0], minlength=len(found)).tolist()
    return [(value, n) for value, n in zip(found, rows, strict=True) if n]


def distinct_values(column: Column, is_text: bool = False) -> set[Any]:
    """Return the values that occur in a column, missing ones left out."""
    found = {value for value, _ in count_values(with_moments(column))}
    if is_text:
        found = {str(value).strip() for value in found}
    return {value for value in found if not is_missing(value, is_text)}


def without_gone(column: Column, gone: StateFinder | None) -> Column:
    """Return a column from which the values that are said to be missing are missing; O(n)."""
    if gone is None:
        return column
    try:
        found, places = find_distinct(column)
    except TypeError:  # a list among them, say
        found, places = column.values.tolist(), np.arange(len(column.values))
    is_gone = np.array([*(gone.find(value) >= 0 for value in found), False], bool)[places]
    if column.is_missing is not None:
        is_gone |= column.is_missing
    return replace(column, is_missing=is_gone) if is_gone.any() else column


def as_numbers(column: Column, notation: str | None = None) -> NDArray[np.float64]:
    """Return a column of numbers, or of text that is one, as floats; NaN for all else."""
    values: Any = column.values
    if column.labels is not None:
        table = [_as_float(label, notation) for label in column.labels]
        values = np.array([*table, np.nan])[values]
    elif values.dtype.kind in "mM":
        values = np.full(len(values), np.nan)
    elif values.dtype.kind not in "biuf":
        values = np.array([_as_float(v, notation) for v in values.tolist()], np.float64)
    numbers: NDArray[np.float64] = values.astype(np.float64)
    return numbers if column.is_missing is None else np.where(column.is_missing, np.nan, numbers)


def _as_float(value: Any, notation: str | None) -> float:
    number = to_number(value, notation)
    return float("nan") if number is None else number


def to_number(value: Any, notation: str | None = None) -> float | None:
    """Return a number, or text that is one, as a float; None for all else, NaN too."""
    if notation is not None and isinstance(value, str):
        return number_in(value, notation)
    is_text = isinstance(value, str) and "_" not in value  # Python reads 1_000, others do not
    if not is_text and (not isinstance(value, int | float | np.number | Decimal)):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        return float("inf") if value > 0 else float("-inf")
    except ValueError:
        return None
    return None if number != number else number


def moments_of(column: Column) -> pa.Array:
    """Return moments of a time zone as Arrow holds them."""
    import pyarrow as pa

    unit = np.datetime_data(column.values.dtype)[0]
    numbers = pa.array(column.values.view(np.int64), mask=column.is_missing)
    return numbers.view(pa.timestamp(unit, column.zone))


def with_moments(column: Column) -> Column:
    """Return a column with moments of a time zone as objects; any other as it is."""
    if column.zone is None:
        return column
    return Column(as_objects(moments_of(column).to_pylist()))
