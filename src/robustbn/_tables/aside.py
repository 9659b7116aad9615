"""What a table has beside the network's columns: names that rows keep, and context.

Read in the pass that reads the network's columns, or in one more where rows are in a stream.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Clues
from robustbn._core.config import TableConfig
from robustbn._core.file_names import nearest_name
from robustbn._core.origins import FILE_NAME, ContextColumn, CountedContext, Groups
from robustbn._core.protocols import Column
from robustbn._tables.context import (
    MOST_VALUES,
    ContextCoder,
    RawContext,
    find_odd_times,
    group_rows,
    join_raws,
)
from robustbn._tables.identifiers import IdentifierReader, is_identifier
from robustbn._tables.sources import Source, UnreadableError
from robustbn._tables.values import as_objects, moments_of
from robustbn.exceptions import DataError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
MOST_ID_COLUMNS = 4  # that are compared: more are seldom names of rows
MOST_CONTEXT = 64  # columns that are taken without being asked for
MOST_NAME_BYTES = 2**28  # that names of all rows may take; with more, those of rows shown are kept


@dataclass(frozen=True, eq=False)
class Aside:
    """What a table has beside the network's columns, for the rows that were read."""

    context: tuple[ContextColumn, ...] = ()  # columns in groups
    # columns that rows keep, the one that names them first: Arrow arrays
    names: Mapping[str, Any] = field(default_factory=dict)
    # columns of a part of a table, as they were read, for whoever knows all parts
    raw: tuple[RawContext, ...] = ()
    # columns that cannot be read and were left out, and why
    damaged: Mapping[str, str] = field(default_factory=dict)
    # context that is counted, where nobody holds the group of each row
    counted: CountedContext | None = None
    # of the rows whose names are there, in order; None if all are
    numbers: NDArray[np.int64] | None = None
    n_rows: int = 0  # that were read, if not all have their names here
    given_up: tuple[str, ...] = ()  # of a part of a table, columns that turned out to be no context
    is_forgotten: bool = False  # whether context was counted for other verdicts than those of today
    is_chosen: bool = False  # whether a person named the columns of context
    # what reading noticed besides: odd values, numbers before they were cut, identifiers
    clues: Clues = field(default_factory=Clues)

    def without_counts(self) -> Aside:
        """Return what is left once rows are judged otherwise: counts of context are not."""
        return self if self.counted is None else replace(self, counted=None, is_forgotten=True)

    @property
    def places(self) -> tuple[ContextColumn, ...]:
        """The columns of context that may say where rows come from."""
        # What depends on a measurement is no mistake at a place, unless a person names the column.
        return tuple(c for c in self.context if self.is_chosen or not c.groups.is_measured)

    def without_context(self, name: str) -> Aside:
        """Return the same without a column of context."""
        return replace(self, context=tuple(each for each in self.context if each.name != name))

    def of(self, rows: NDArray[np.int64] | None = None) -> dict[str, Any]:
        """Return the names of some rows, by their numbers, or of all of them; None if missing."""
        if self.numbers is None:
            return {name: _as_values(column, rows) for name, column in self.names.items()}
        rows = np.arange(self.n_rows) if rows is None else rows
        is_there = np.isin(rows, self.numbers)
        places = np.searchsorted(self.numbers, rows[is_there])
        found = {name: np.full(len(rows), None, object) for name in self.names}
        for name, column in self.names.items():
            found[name][is_there] = _as_values(column, places)
        return found


def _as_values(column: Any, rows: NDArray[np.int64] | None) -> NDArray[Any]:
    """Return an Arrow column, or some of its rows, as an array; of objects if some are missing."""
    found = column if rows is None else column.take(rows)
    if found.null_count or str(found.type) in ("string", "large_string"):
        return as_objects(found.to_pylist())
    values: NDArray[Any] = found.to_numpy()
    return values


def beside(names: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns with those that name the rows before them, under names that differ."""
    free = {name if name not in columns else f"{name} (column)": v for name, v in names.items()}
    return {**free, **columns}


@dataclass(frozen=True)
class AsidePlan:
    """Which columns of a table are read beside the network's."""

    names: tuple[str, ...] = ()  # columns that rows keep, the one that names them first
    # columns of context, each with the kind it is first taken for
    context: Mapping[str, str] = field(default_factory=dict)
    is_text: bool = False  # whether a missing value is a word
    # columns of context that cannot be read, and why
    damaged: Mapping[str, str] = field(default_factory=dict)
    given_up: tuple[str, ...] = ()  # columns that a look at the first rows showed to be no context
    ids: tuple[str, ...] = ()  # columns that name rows, whose values should not come twice
    is_chosen: bool = False  # whether a person named the columns of context

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them, none twice."""
        return tuple(dict.fromkeys([*self.names, *self.context, *self.ids]))

    def coders(self) -> dict[str, ContextCoder]:
        """Return what reads each column of context."""
        return {n: ContextCoder(n, self.is_text, kind) for n, kind in self.context.items()}

    def without(self, damaged: Mapping[str, str]) -> AsidePlan:
        """Return the plan without columns that cannot be read."""
        left = {name: kind for name, kind in self.context.items() if name not in damaged}
        ids = tuple(name for name in self.ids if name not in damaged)
        return replace(self, context=left, ids=ids, damaged={**self.damaged, **damaged})

    def without_damaged(self, error: Exception, read: Callable[[list[str]], None]) -> AsidePlan:
        """Return the plan without the columns at which an error was raised; raise it if at none."""
        is_other = isinstance(error, DataError) and not isinstance(error, UnreadableError)
        free = [name for name in (*self.context, *self.ids) if name not in self.names]
        if is_other or isinstance(error, MemoryError) or not free:
            raise error
        damaged = find_damaged({name: name for name in free}, read)
        if not damaged:
            raise error
        return self.without(damaged)


def plan_aside(
    source: Source, used: Sequence[int], config: TableConfig, *, is_later: bool = False
) -> AsidePlan:
    """Return which columns of a table, or of its first part, to read beside the network's."""
    places = {name: k for k, name in enumerate(source.names or ())}
    named, wanted = config.named, config.context
    if is_later:
        named = tuple(name for name in named if name in places)
        wanted = None if wanted is None else tuple(name for name in wanted if name in places)
    _require_beside("id or keep", named, places, source, used)
    ids = (config.id,) if config.id in named else ()
    if wanted is None:
        found, damaged, look_alike = _try_context(source, set(used), config.id)
        ids = tuple(dict.fromkeys([*ids, *look_alike]))[:MOST_ID_COLUMNS]
        context = {name: kind for name, kind in found.items() if kind != "none"}
        given_up = tuple(name for name, kind in found.items() if kind == "none")
        taken = dict(list(context.items())[:MOST_CONTEXT])
        return AsidePlan(named, taken, source.is_text, damaged, given_up, ids)
    asked = [name for name in wanted if name not in source.damaged]
    damaged = {name: why for name, why in source.damaged.items() if name in wanted}
    _require_beside("context", asked, places, source, used)
    kinds = dict.fromkeys(asked, "values")
    return AsidePlan(named, kinds, source.is_text, damaged, ids=ids, is_chosen=True)


def _require_beside(
    setting: str,
    names: Sequence[str],
    places: Mapping[str, int],
    source: Source,
    used: Sequence[int],
) -> None:
    """Refuse names of columns that are not there, or that are nodes."""
    for name in names:
        if name not in places:
            has = ", ".join(map(repr, list(places)[:8])) or "no names of columns"
            raise DataError(
                f"{source.where} has no column {name!r}, which {setting} names; it has {has}."
                f"{nearest_name(name, places)}"
            )
    for name in names:
        if places[name] in used:
            raise DataError(
                f"{setting} names {name!r}, which is a node of the network: give columns beside it."
            )


def _try_context(
    source: Source, used: set[int], id: str | None
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return the kinds of all columns that may be context, why others cannot be read, and ids."""
    damaged = dict(source.damaged)
    if source.names is None or not source.can_be_tried:
        return {}, damaged, []
    often = Counter(source.names)  # a file of Arrow cannot be asked for one of two alike
    free = {
        name: k
        for k, name in enumerate(source.names)
        if k not in used
        and name != id
        and often[name] == 1
        and (source.plain is None or k in source.plain)
    }
    firsts: dict[int, Column] = {}

    def read_first(chosen: list[int]) -> None:
        for columns in source.read(chosen):
            firsts.update(zip(chosen, columns, strict=True))
            break

    damaged |= find_damaged(free, read_first) if free else {}
    coders = {name: ContextCoder(name, source.is_text) for name in free if name not in damaged}
    ids = []
    for name, coder in coders.items():
        if free[name] not in firsts:
            continue
        first = firsts[free[name]]
        coder.code(first)
        ids += [name] if is_identifier(name, first, source.is_text) else []
    kinds = {name: coder.kind for name, coder in coders.items()}
    return kinds, damaged, ids


class AsideReader:
    """Gathers names and context, stretch by stretch."""

    def __init__(self, plan: AsidePlan, shown: NDArray[np.int64] | None = None) -> None:
        self.plan, self._shown = plan, shown
        self._coders = plan.coders()
        self._ids = [IdentifierReader(name, plan.is_text) for name in plan.ids]
        self._raws: dict[str, list[RawContext]] = {name: [] for name in plan.context}
        self._names: list[dict[str, pa.Array]] = []
        self._starts, self._n_bytes, self._has_all = [0], 0, True

    def add(self, columns: Mapping[str, Column]) -> dict[str, pa.Array]:
        """Take the columns of the plan, of one stretch; return those that rows keep."""
        for name, coder in self._coders.items():
            self._raws[name].append(coder.code(columns[name]))
        for reader in self._ids:
            reader.add(columns[reader.name])
        names = {name: to_arrow(columns[name]) for name in self.plan.names}
        if names:
            self._keep(names)
        return names

    def _keep(self, names: dict[str, pa.Array]) -> None:
        self._names.append(names)
        self._starts.append(self._starts[-1] + len(next(iter(names.values()))))
        self._n_bytes += sum(array.nbytes for array in names.values())
        if self._shown is not None and self._n_bytes > MOST_NAME_BYTES:
            for k in range(0 if self._has_all else len(self._names) - 1, len(self._names)):
                start, end = self._starts[k : k + 2]
                first, last = np.searchsorted(self._shown, [start, end])
                some = self._shown[first:last] - start
                self._names[k] = {name: array.take(some) for name, array in self._names[k].items()}
            self._has_all = False

    def finish(self, files: Sequence[tuple[str, int]] = (), *, is_part: bool = False) -> Aside:
        """Return what was gathered; of a part of a table, context stays as it was read."""
        raw = tuple(join_raws(name, raws) for name, raws in self._raws.items())
        names = {n: join_arrow([stretch[n] for stretch in self._names]) for n in self.plan.names}
        if is_part:
            kept = tuple(each for each in raw if each.kind != "none")
            given_up = (*self.plan.given_up, *(r.name for r in raw if r.kind == "none"))
            return Aside((), names, kept, self.plan.damaged, given_up=given_up)
        found = [_file_column(files), *map(group_rows, raw)]
        context = tuple(column for column in found if column is not None)
        numbers = None if self._has_all else self._shown
        ids = tuple(each for reader in self._ids if (each := reader.finish()) is not None)
        found_names = Aside(context, names, (), self.plan.damaged, None, numbers, self._starts[-1])
        odd = tuple(each for some in raw for each in find_odd_times(some))
        return replace(found_names, clues=Clues(odd, ids=ids), is_chosen=self.plan.is_chosen)


def find_damaged(places: Mapping[str, T], read: Callable[[list[T]], None]) -> dict[str, str]:
    """Return the columns that cannot be read, and why; a few readings for each of them."""
    try:
        read(list(places.values()))
    except MemoryError:
        raise
    except Exception as error:  # whatever a reader makes of damaged bytes
        if len(places) == 1:
            return {name: str(error) or type(error).__name__ for name in places}
        half, named = len(places) // 2, list(places.items())
        return find_damaged(dict(named[:half]), read) | find_damaged(dict(named[half:]), read)
    return {}


def _file_column(files: Sequence[tuple[str, int]]) -> ContextColumn | None:
    """Return the file of each row, where there are several."""
    labels = say_files([path for path, _ in files])
    codes = np.repeat(np.arange(len(files), dtype=np.int16), [n for _, n in files])
    return ContextColumn(Groups(FILE_NAME, labels), codes) if labels else None


def say_files(paths: Sequence[str]) -> tuple[str, ...]:
    """Return what to call each of several files; nothing if there is one, or too many."""
    if not 1 < len(paths) <= MOST_VALUES:
        return ()
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])  # noqa: PTH120
    return tuple(os.path.relpath(path, folder) if folder else path for path in paths)


def to_arrow(column: Column) -> pa.Array:
    """Return the values of a column as an Arrow array, missing ones as nulls."""
    import pyarrow as pa

    values, missing = column.values, column.is_missing
    if column.zone is not None:
        return moments_of(column)
    if column.labels is not None:
        is_gone = values < 0 if missing is None else missing | (values < 0)
        places = pa.array(np.where(is_gone, 0, values), mask=is_gone)
        return _array(list(column.labels) or [None]).take(places)
    if values.dtype.kind in "biufM":
        return pa.array(values, mask=missing, from_pandas=True)
    return _array(values.tolist())


def _array(values: list[object]) -> pa.Array:
    """Return Python values as an Arrow array; as text where they are of several kinds."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if v is None else str(v) for v in values])


def join_arrow(chunks: list[pa.Array]) -> pa.ChunkedArray:
    """Return stretches as one column; as text where their kinds differ."""
    import pyarrow as pa

    kinds = {chunk.type for chunk in chunks} - {pa.null()}
    kind = kinds.pop() if len(kinds) == 1 else pa.string()
    return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
