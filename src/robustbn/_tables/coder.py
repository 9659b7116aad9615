"""A column to codes: look up each distinct value once, then every row, and count what is odd.

A code is the position of a state in `network.states[node]`; column k of an array of codes belongs
to `network.nodes[k]`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.clues import DECLARED, MOST_EXAMPLES, NO_DATE, NO_NUMBER, NO_STATE, TITLE
from robustbn._core.config import TableConfig
from robustbn._core.layout import Codes
from robustbn._core.numbers import count, count_have
from robustbn._core.protocols import Column, Vector
from robustbn._core.structure import some
from robustbn._tables.date_forms import period_of
from robustbn._tables.noticed import Noticed, count_examples
from robustbn._tables.values import (
    MISSING,
    MOST_REMEMBERED,
    UNKNOWN,
    StateFinder,
    is_missing,
    to_number,
    with_moments,
    without_gone,
)
from robustbn.exceptions import CodeRangeError, DataError

MarkedCodes = NDArray[np.int32]  # with MISSING and UNKNOWN among them

LARGEST_LOOK_UP = 2**12
MOST_STATES_SAID = 12


class ColumnCoder:
    """Turns the columns of one node into codes; remembers what its values stand for."""

    def __init__(
        self,
        node: str,
        states: Sequence[Hashable],
        finder: StateFinder,
        edges: Vector | None = None,
        is_codes: bool = False,
        period: str | None = None,
        notation: str | None = None,
        gone: StateFinder | None = None,
        hole: int | None = None,
    ) -> None:
        self.node, self.states, self.n_states = node, states, len(states)
        self.finder, self.gone = finder, gone
        self.is_cut, self.is_codes = edges is not None, is_codes
        self.is_period = period is not None
        self.hole = self.n_states if hole is None else hole
        self.others = finder.others
        self.has_words = all(to_number(state) is None for state in states)
        self.notation = notation
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
        """Write the codes of a stretch into `out`; values said to be missing are marked already."""
        values, kind = column.values, column.values.dtype.kind
        if column.labels is not None:
            found = self._code_positions(column, column.labels, out)
        elif self.is_cut and kind in "iuf":
            found = self._cut(values)
        elif kind in "biu":
            is_small = values.dtype.itemsize == 1 and kind != "b" and out.dtype == np.uint8
            if is_small and column.is_missing is None and self._code_bytes(values, out):
                return None
            found = self._code_whole_numbers(values)
        elif kind == "f":
            found = self._code_floats(values)
        else:
            found = self._code_objects(values)
        if found is None:
            return None
        if column.is_missing is not None:
            found = np.where(column.is_missing, np.int32(self._missing), found)
        if found.min(initial=0) < 0:
            np.maximum(found, 0, out=out, casting="unsafe")
            return found
        out[:] = found
        return None

    def _look_up(self, values: Sequence[Any] | range) -> MarkedCodes:
        return np.array([self._find(value) for value in values], np.int32)

    def _code_positions(
        self, column: Column, labels: Sequence[Any], out: Codes
    ) -> MarkedCodes | None:
        """Look up positions among labels; the last entry is for negative positions."""
        if self._table is None or self._table[0] is not labels:
            self._table = labels, np.append(self._look_up(labels), np.int32(self._missing))
        table, values = self._table[1], column.values
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
            numbers = np.arange(low, high + 1)
            codes = self._look_up(numbers.tolist())
            if codes.min() < 0:
                return False
            by_byte = np.zeros(256, np.uint8)  # by byte, so that negative numbers come last
            by_byte[numbers % 256] = codes
            self._letters = low, high, None if (codes == numbers).all() else by_byte.tobytes()
        letters = self._letters[2]
        if letters is None:
            out[:] = values
        else:
            out[:] = np.frombuffer(values.tobytes().translate(letters), np.uint8)
        return True

    def _code_whole_numbers(self, values: NDArray[Any]) -> MarkedCodes:
        if values.dtype.kind == "b":
            return self._look_up([False, True])[values.view(np.uint8)]
        if not len(values):
            return np.empty(0, np.int32)
        low, high = int(values.min()), int(values.max())
        if self.is_codes and low >= 0 and high < self.n_states:
            return values.astype(np.int32)
        if high - low < LARGEST_LOOK_UP:
            places = (values - low).view(f"u{values.itemsize}")  # 100 - -100 wraps in a byte
            found: MarkedCodes = self._look_up(range(low, high + 1))[places]
            return found
        distinct, place = np.unique(values, return_inverse=True)
        return self._look_up(distinct.tolist())[place]

    def _code_floats(self, values: NDArray[np.floating[Any]]) -> MarkedCodes:
        is_number = np.isfinite(values)
        whole = np.where(is_number, values, 0)
        if np.abs(whole).max(initial=0) < LARGEST_LOOK_UP and (whole == np.floor(whole)).all():
            found = self._code_whole_numbers(whole.astype(np.int64))
        else:
            distinct, place = np.unique(values, return_inverse=True)
            found = self._look_up(distinct.tolist())[place]
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
            return self._look_up(listed)

    def _cut(self, values: NDArray[Any]) -> MarkedCodes:
        found = np.searchsorted(self._edges, values, side="right").astype(np.int32)
        if values.dtype.kind == "f":
            found[np.isnan(values)] = MISSING
            found[np.isinf(values)] = UNKNOWN
        return found

    def _find_interval(self, value: Any) -> int:
        """Return the interval of a number, which may be written as text."""
        number = to_number(value, self.notation)
        if number is None:  # a state by its name, perhaps
            gone = is_missing(value, self.finder.is_text)
            return MISSING if gone else self.finder.find(value)
        if np.isinf(number):
            return UNKNOWN
        return int(np.searchsorted(self._edges, number, side="right"))

    def _find_code(self, value: Any) -> int:
        """Return a number, which may be written as text, as the code it is."""
        number = to_number(value)
        if number is None:
            return MISSING if is_missing(value, self.finder.is_text) else UNKNOWN
        is_code = 0 <= number < self.n_states and number == int(number)
        return int(number) if is_code else UNKNOWN


class _Memo(dict[Hashable, int]):
    """Looks every text up once. Others are not kept: 1 and True would be one key."""

    def __init__(self, find: Callable[[Any], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, value: Any) -> int:
        code = self._find(value)
        if isinstance(value, str):
            if len(self) >= MOST_REMEMBERED:
                self.clear()
            self[value] = code
        return code


def code_block(
    coders: Sequence[ColumnCoder],
    columns: Sequence[Column],
    codes: Codes,
    tally: Tally,
    start: int,
    config: TableConfig,
) -> tuple[NDArray[np.int64], list[int]]:
    """Write the codes of a stretch of rows, shape (d, n).

    Returns which rows to leave out, and the columns in which values are missing from others: there
    the code is one past the last state.
    """
    has_hole, holed, is_title = np.zeros(codes.shape[1], bool), list[int](), columns[0].is_title
    is_bad = np.zeros(codes.shape[1], bool) if is_title is None else is_title.copy()
    cut: dict[str, tuple[Column, str | None]] = {}
    for k, (coder, column, out) in enumerate(zip(coders, columns, codes, strict=True)):
        column = with_moments(column)
        marked = without_gone(column, coder.gone)
        found = coder.code(marked, out)
        tally.notice(coder, column, marked, out, start)
        cut |= {coder.node: (marked, coder.notation)} if coder.is_cut else {}
        if found is None:
            continue
        if is_title is not None:
            found[is_title] = 0
        tally.add(coder, column, found, start)
        is_hole = np.zeros(len(found), bool)
        if config.keeps_holes:
            is_hole = (found < 0) if config.on_unknown == "missing" else (found == MISSING)
            if is_hole.any():
                out[is_hole] = coder.hole
                holed += [k] if coder.hole == coder.n_states else []
        has_hole |= is_hole
        is_bad |= (found < 0) & ~is_hole
    tally.incomplete += int(np.count_nonzero(has_hole & ~is_bad))
    tally.noticed.sample(cut, start, codes.shape[1])
    if is_title is not None:
        tally.noticed.note("", TITLE, columns[0], np.flatnonzero(is_title), start)
    return np.flatnonzero(is_bad), holed


# --- what a table holds that the network does not know --------------------------------------------


@dataclass
class Tally:
    """Missing and unknown values of each node so far."""

    # missing, unknown: number of values of each node that has any
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    # first_missing, first_unknown: number of the first row of each
    first_missing: dict[str, int] = field(default_factory=dict)
    first_unknown: dict[str, int] = field(default_factory=dict)
    # how often each unknown value of a node was seen, for the first of them
    examples: dict[str, Counter[Any]] = field(default_factory=dict)
    incomplete: int = 0  # rows from which a value is missing
    # odd values with their rows, whatever was made of them
    noticed: Noticed = field(default_factory=Noticed)

    def notice(
        self, coder: ColumnCoder, column: Column, marked: Column, codes: Codes, start: int
    ) -> None:
        """Take in values that settings turn into missing ones, or into the state for all others."""
        if marked is not column and marked.is_missing is not None:
            is_gone = marked.is_missing
            is_gone = is_gone if column.is_missing is None else is_gone & ~column.is_missing
            self.noticed.note(coder.node, DECLARED, column, np.flatnonzero(is_gone), start)
        if coder.others is not None and (coder.is_cut or coder.is_period):
            is_other = np.flatnonzero(codes == coder.others)
            kind = NO_DATE if coder.is_period else NO_NUMBER
            self.noticed.note(coder.node, kind, column, is_other, start)
        elif coder.others is not None and coder.has_words and column.labels is not None:
            is_number = np.array(
                [to_number(label) is not None for label in column.labels] + [False]
            )
            odd = np.flatnonzero(is_number[column.values] & (codes == coder.others))
            self.noticed.note(coder.node, NO_STATE, column, odd, start)

    def add(self, coder: ColumnCoder, column: Column, found: MarkedCodes, start: int) -> None:
        """Take in the codes of a stretch of a column that begins at row `start`."""
        node = coder.node
        for mark, counted, first in (
            (MISSING, self.missing, self.first_missing),
            (UNKNOWN, self.unknown, self.first_unknown),
        ):
            where = np.flatnonzero(found == mark)
            if not len(where):
                continue
            counted[node] += len(where)
            first.setdefault(node, start + int(where[0]))
            if mark == UNKNOWN:
                seen = self.examples.setdefault(node, Counter())
                seen.update(count_examples(column, where[:MOST_EXAMPLES]))
                kind = NO_NUMBER if coder.is_cut else NO_STATE
                self.noticed.note(node, kind, column, where, start)

    def complain(
        self, where: str, n_rows: int, config: TableConfig, coders: Sequence[ColumnCoder]
    ) -> None:
        """Raise what must not be passed over: unknown values first, then missing ones."""
        if self.unknown and config.on_unknown == "error":
            if any(coder.is_codes and coder.node in self.unknown for coder in coders):
                raise self._wrong_code(coders)
            coder = next(c for c in coders if c.node in self.unknown)
            raise self._unknown_values(where, n_rows, config, coder)
        unknown_is_missing = bool(self.unknown) and config.on_unknown == "missing"
        if (self.missing or unknown_is_missing) and config.on_missing == "error":
            raise self._missing_values(where, n_rows, unknown_is_missing)

    def _wrong_code(self, coders: Sequence[ColumnCoder]) -> DataError:
        wrong = [k for k, c in enumerate(coders) if c.is_codes and c.node in self.unknown]
        row, column = min((self.first_unknown[coders[k].node], k) for k in wrong)
        coder = coders[column]
        value = next(iter(self.examples[coder.node]))
        error = CodeRangeError(row, column, value, coder.n_states, coder.node)
        number = to_number(value)
        advice = Advice(
            "If the numbers are states themselves, read them with read_table(codes=False)."
        )
        if number is not None and np.isfinite(number) and number != int(number):
            edges, equal = _cuts(coder)
            advice = Advice(
                "If the column is continuous, say how to cut it: ", edges, " or ", equal, "."
            )
        error.args = (Advice(f"{error} ", advice),)
        return error

    def _unknown_values(
        self, where: str, n_rows: int, config: TableConfig, coder: ColumnCoder
    ) -> DataError:
        node, others = coder.node, len(self.unknown) - 1
        examples = self.examples[node]
        common = ", ".join(f"{v!r}" for v, _ in examples.most_common(5))
        more = ", ..." if len(examples) > 5 else ""
        elsewhere = f" {count_have(others, 'more column')} unknown values, too." if others else ""
        what = "not a state of the node"
        expected = f"States: {some(coder.states, MOST_STATES_SAID)}."
        if coder.is_cut:
            what, expected = "not a number", "The column is to be cut into intervals (bins)."
        return DataError(
            Advice(
                f"{where}, column {node!r}: {_rows(self.unknown[node], n_rows)} have a value that "
                f"is {what}, the first at row {self.first_unknown[node]}: {common}{more}. "
                f"{expected} ",
                advise(coder, list(examples), config.ignore_case),
                f"{elsewhere} To leave such rows out, use ",
                Setting("on_unknown", "drop"),
                "; they are counted.",
            )
        )

    def _missing_values(self, where: str, n_rows: int, with_unknown: bool) -> DataError:
        counts = self.missing + self.unknown if with_unknown else self.missing
        node, n = counts.most_common(1)[0]
        firsts = [self.first_missing, self.first_unknown if with_unknown else {}]
        first = min(each[node] for each in firsts if node in each)
        others = len(counts) - 1
        elsewhere = f" {count_have(others, 'more column')} missing values, too." if others else ""
        error, use, drop = (Setting("on_missing", how) for how in ("error", "use", "drop"))
        return DataError(
            Advice(
                f"{where}, column {node!r}: {_rows(n, n_rows)} have no value"
                f"{' or an unknown one' if with_unknown else ''}, the first at row {first}."
                f"{elsewhere} Missing values are an error here (",
                error,
                "); ",
                use,
                " learns from the values that are there, ",
                drop,
                " leaves such rows out; they are counted.",
            )
        )


def _rows(n: int, n_rows: int) -> str:
    return f"{n:,} of {n_rows:,} rows ({n / max(n_rows, 1):.2%})"


def _cuts(coder: ColumnCoder) -> tuple[Setting, Setting]:
    """Return the settings that cut a column: at edges, and into intervals of as many rows."""
    edges = Setting("bins", {coder.node: Either("[...]", "EDGE,EDGE,...")})
    return edges, Setting("bins", {coder.node: f"q{coder.n_states}"})


def advise(coder: ColumnCoder, values: list[Any], ignore_case: bool) -> Advice:
    """Say what the values that are no states look like, and what to do about it."""
    if coder.is_cut:
        return Advice("Correct them.")
    states = coder.states

    def labels(said: Any) -> Setting:
        return Setting("labels", {coder.node: said})

    doubtful = [v for v in values if coder.finder.is_ambiguous(v)]
    if doubtful:
        which = labels({doubtful[0]: Either("...", "STATE")})
        return Advice(
            f"{doubtful[0]!r} could mean more than one state: say which with ", which, "."
        )
    folded = {str(s).strip().casefold() for s in states}
    if not ignore_case and any(str(v).strip().casefold() in folded for v in values):
        fold = Setting("ignore_case", True)
        return Advice("Some differ from a state only in case: use ", fold, ".")
    numbers = [number for v in values if (number := to_number(v)) is not None]
    if len(numbers) == len(values) and np.isfinite(numbers).all():
        is_whole = all(v == int(v) for v in numbers)
        if is_whole and min(numbers) >= 0 and max(numbers) < len(states):
            return Advice(
                "They look like positions of the states: say so with ",
                Setting("codes", True),
                ", or map each to a state with ",
                labels(dict(enumerate(states[:3]))),
                ", and so on." if len(states) > 3 else ".",
            )
        if len(set(numbers)) > max(12, 2 * len(states)):
            edges, equal = _cuts(coder)
            return Advice(
                "They look continuous: say where to cut with ",
                edges,
                f", {count(len(states) - 1, 'inner edge')} for {len(states)} states, or with ",
                equal,
                " for intervals with equally many rows.",
            )
    import difflib  # seldom needed

    texts = [str(s) for s in states]
    for value in values[:5]:
        near = difflib.get_close_matches(str(value), texts, 1, 0.7)
        if near:
            so = labels({value: near[0]})
            return Advice(f"Did you mean {near[0]!r} by {value!r}? Say so with ", so, ".")
    what = labels(Either("{value: state, ...}", "VALUE=STATE,..."))
    return Advice("Map them to states with ", what, ".")
