"""A column of a table to codes: look up each distinct value once, then every row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Column, Vector
from robustbn._tables.encode.labels import MISSING, MOST_REMEMBERED, UNKNOWN, StateFinder
from robustbn._tables.encode.values import to_number, without_gone
from robustbn._tables.encode.written import period_of

MarkedCodes = NDArray[np.int32]  # with MISSING and UNKNOWN among them

LARGEST_LOOK_UP = 2**12


class ColumnCoder:
    """Turns the columns of one node into codes; remembers what its values stand for.

    Parameters
    ----------
    node : its name, for messages.
    finder : the rules for labels.
    n_states : of the node.
    edges : inner ends of the intervals of a number that is to be cut, or None.
    is_codes : whether whole numbers are codes themselves.
    period : what is taken of a date, before it is looked up.
    notation : of numbers that are to be cut, if they are not written plainly.
    gone : finds the values that are said to be missing; None if none is.
    """

    def __init__(
        self,
        node: str,
        finder: StateFinder,
        n_states: int,
        edges: Vector | None = None,
        is_codes: bool = False,
        period: str | None = None,
        notation: str | None = None,
        gone: StateFinder | None = None,
    ) -> None:
        self.node = node
        self.finder = finder
        self.gone = gone
        self._notation = notation
        self.is_cut = edges is not None
        self.is_codes = is_codes
        self.n_states = n_states
        self.hole = n_states  # the code of a missing value, where rows without it are kept
        self._edges = np.empty(0) if edges is None else edges
        self._find: Callable[[Any], int] = finder.find
        if self.is_cut:
            self._find = self._find_interval
        elif is_codes:
            self._find = self._find_code
        elif period is not None:
            self._find = lambda value: finder.find(period_of(value, period))
        self._table: tuple[Sequence[Any], MarkedCodes] | None = None
        self._letters: tuple[int, int, bytes | None] | None = None
        self._memo = _Memo(self._find)
        self._missing = MISSING if self.is_cut or is_codes else finder.missing

    def find(self, value: Any) -> int:
        """Return the code of one value, MISSING or UNKNOWN."""
        is_gone = self.gone is not None and self.gone.find(value) >= 0
        return self._missing if is_gone else self._find(value)

    def code(self, column: Column, out: Codes) -> MarkedCodes | None:
        """Write the codes of a stretch into `out`.

        Returns None, or if some values are missing or unknown all codes with MISSING and UNKNOWN
        where they are; `out` is 0 there. O(n) time.
        """
        column = without_gone(column, self.gone)
        if column.labels is not None:
            found = self._code_positions(column, out)
        elif self.is_cut and column.values.dtype.kind in "iuf":
            found = self._cut(column.values)
        elif column.values.dtype.kind in "biu":
            is_small = column.values.dtype.itemsize == 1 and column.values.dtype.kind != "b"
            is_small = is_small and out.dtype == np.uint8
            if is_small and column.is_missing is None and self._code_bytes(column.values, out):
                return None
            found = self._code_whole_numbers(column.values)
        elif column.values.dtype.kind == "f":
            found = self._code_floats(column.values)
        else:
            found = self._code_objects(column.values)
        if found is None:
            return None
        if column.is_missing is not None:
            found = np.where(column.is_missing, np.int32(self._missing), found)
        if found.min(initial=0) < 0:
            np.maximum(found, 0, out=out, casting="unsafe")
            return found
        out[:] = found
        return None

    def _code_positions(self, column: Column, out: Codes) -> MarkedCodes | None:
        """Look up positions among labels; the last entry is for negative positions."""
        labels = column.labels
        assert labels is not None  # noqa: S101 - for the type checker
        if self._table is None or self._table[0] is not labels:
            codes = [self._find(label) for label in labels]
            self._table = labels, np.array([*codes, self._missing], np.int32)
        table = self._table[1]
        values = column.values
        has_negative = values.dtype.kind == "i" and values.min(initial=0) < 0
        if column.is_missing is None and not has_negative and table[:-1].min(initial=0) >= 0:
            self._translate(values, table[:-1], out)
            return None
        found: MarkedCodes = table[values]
        return found

    @staticmethod
    def _translate(values: NDArray[Any], table: MarkedCodes, out: Codes) -> None:
        """Write `table[values]`. Up to 256 labels, translating bytes is twice as fast as that."""
        if len(table) > 256 or out.dtype != np.uint8:
            out[:] = table[values]
        elif (table == np.arange(len(table))).all():
            out[:] = values
        else:
            letters = table.astype(np.uint8).tobytes().ljust(256, b"\0")
            out[:] = np.frombuffer(
                values.astype(np.uint8, copy=False).tobytes().translate(letters), np.uint8
            )

    def _code_bytes(self, values: NDArray[Any], out: Codes) -> bool:
        """Write the codes of numbers of one byte; False if one in their range is no state."""
        if not len(values):
            return True
        starts_at_0 = values.dtype.kind == "u" and (self._letters or (1,))[0] == 0
        low, high = 0 if starts_at_0 else int(values.min()), int(values.max())
        if self._letters is None or not (self._letters[0] <= low and high <= self._letters[1]):
            codes = [self._find(v) for v in range(low, high + 1)]
            if min(codes) < 0:
                return False
            if codes == list(range(low, high + 1)):
                self._letters = low, high, None
            else:  # by byte, so that negative numbers come last
                by_byte = bytearray(256)
                for number, code in zip(range(low, high + 1), codes, strict=True):
                    by_byte[number % 256] = code
                self._letters = low, high, bytes(by_byte)
        letters = self._letters[2]
        if letters is None:
            out[:] = values
        else:
            out[:] = np.frombuffer(values.tobytes().translate(letters), np.uint8)
        return True

    def _code_whole_numbers(self, values: NDArray[Any]) -> MarkedCodes:
        if values.dtype.kind == "b":
            return np.array([self._find(False), self._find(True)], np.int32)[values.view(np.uint8)]
        if not len(values):
            return np.empty(0, np.int32)
        low, high = int(values.min()), int(values.max())
        if self.is_codes and low >= 0 and high < self.n_states:
            return values.astype(np.int32)
        if high - low < LARGEST_LOOK_UP:
            table = np.array([self._find(v) for v in range(low, high + 1)], np.int32)
            places = (values - low).view(f"u{values.itemsize}")  # 100 - -100 wraps in a byte
            found: MarkedCodes = table[places]
            return found
        distinct, place = np.unique(values, return_inverse=True)
        return np.array([self._find(int(v)) for v in distinct], np.int32)[place]

    def _code_floats(self, values: NDArray[np.floating[Any]]) -> MarkedCodes:
        is_number = np.isfinite(values)
        whole = np.where(is_number, values, 0)
        if np.abs(whole).max(initial=0) < LARGEST_LOOK_UP and (whole == np.floor(whole)).all():
            found = self._code_whole_numbers(whole.astype(np.int64))
        else:
            distinct, place = np.unique(values, return_inverse=True)
            found = np.array([self._find(float(v)) for v in distinct], np.int32)[place]
        found[np.isnan(values)] = self._missing
        for end in (np.inf, -np.inf):
            found[values == end] = self._find(end)
        return found

    def _code_objects(self, values: NDArray[Any]) -> MarkedCodes:
        if values.dtype.kind in "mM":  # whose nanoseconds would turn into whole numbers
            values = values.astype(f"{values.dtype.kind}8[us]")
        listed = values.tolist()
        try:
            return np.fromiter(map(self._memo.__getitem__, listed), np.int32, len(listed))
        except TypeError:  # a list among them, say, that cannot be looked up
            return np.fromiter(map(self._find, listed), np.int32, len(listed))

    def _cut(self, values: NDArray[Any]) -> MarkedCodes:
        found = np.searchsorted(self._edges, values, side="right").astype(np.int32)
        if values.dtype.kind == "f":
            found[np.isnan(values)] = MISSING
            found[np.isinf(values)] = UNKNOWN
        return found

    def _find_interval(self, value: Any) -> int:
        """Return the interval of a number, which may be written as text."""
        number = to_number(value, self._notation)
        if number is None:  # a state by its name, perhaps
            return MISSING if self.finder.means_missing(value) else self.finder.find(value)
        if np.isinf(number):
            return UNKNOWN
        return int(np.searchsorted(self._edges, number, side="right"))

    def _find_code(self, value: Any) -> int:
        """Return a number, which may be written as text, as the code it is."""
        number = to_number(value)
        if number is None:
            return MISSING if self.finder.means_missing(value) else UNKNOWN
        is_code = 0 <= number < self.n_states and number == int(number)
        return int(number) if is_code else UNKNOWN


class _Memo(dict[Hashable, int]):
    """Looks every text up once. Others are not kept: 1 and True would be one key."""

    def __init__(self, find: Any) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, value: Any) -> int:
        code: int = self._find(value)
        if isinstance(value, str):
            if len(self) >= MOST_REMEMBERED:
                self.clear()
            self[value] = code
        return code


def find_edges(bins: int | str | Sequence[float], values: NDArray[np.float64]) -> Vector:
    """Return the inner ends of intervals: given, of equal width, or with equally many rows."""
    if not isinstance(bins, Integral | str):
        return np.asarray(bins, np.float64)
    n = count_intervals(bins)
    values = values[np.isfinite(values)]
    if not len(values):
        return np.arange(1.0, n)
    if isinstance(bins, str):
        return np.quantile(values, np.arange(1, n) / n)
    low, high = values.min(), values.max()
    return np.linspace(low, high if high > low else low + 1, n + 1)[1:-1]


def count_intervals(bins: int | str | Sequence[float]) -> int:
    """Return how many intervals a setting asks for."""
    if isinstance(bins, str):
        return int(bins[1:])
    return len(bins) + 1 if isinstance(bins, Sized) else int(bins)
