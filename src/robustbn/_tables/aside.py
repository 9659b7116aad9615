"""Reads what a table has beside the network's columns, in the pass that reads those."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from robustbn._core.config import TableConfig
from robustbn._core.origins import ContextColumn
from robustbn._core.protocols import Column
from robustbn._tables.context import MOST_CONTEXT_VALUES, Aside, ContextCoder
from robustbn._tables.encode import moments_of
from robustbn._tables.sources import Source
from robustbn.exceptions import DataError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CONTEXT = 64  # columns that are taken without being asked for
FILE_NAME = "file name"


class AsideReader:
    """Gathers names and context, stretch by stretch.

    Parameters
    ----------
    source : the table.
    used : positions of the network's columns.
    config : which columns are wanted.
    is_later : whether columns that are wanted may be missing.

    Attributes
    ----------
    positions : of the columns to read.
    """

    def __init__(
        self, source: Source, used: Sequence[int], config: TableConfig, *, is_later: bool = False
    ) -> None:
        places = {name: k for k, name in enumerate(source.names or ())}
        if is_later:
            config = _as_far_as_there(config, places)
        kept = _positions("id and keep", config.named, places, source, set(used))
        context = _find_context(source, set(used), config, places)
        self._source = source
        self.positions = list(dict.fromkeys([*kept.values(), *context]))
        self._names: dict[str, list[pa.Array]] = {name: [] for name in kept}
        self._place = {k: i for i, k in enumerate(self.positions)}
        self._kept = kept
        named = source.names or ()
        self._coders = {k: ContextCoder(named[k], source.is_text, kind=context[k]) for k in context}

    def add(self, columns: Sequence[Column]) -> None:
        """Take the columns at `positions`, of one stretch."""
        for position, coder in self._coders.items():
            coder.add(columns[self._place[position]])
        for name, position in self._kept.items():
            self._names[name].append(to_arrow(columns[self._place[position]]))

    def finish(self) -> Aside:
        """Return what was gathered."""
        found = [coder.finish() for coder in self._coders.values()]
        of_files = _file_column(self._source)
        context = tuple(column for column in (of_files, *found) if column is not None)
        names = {name: _join(chunks) for name, chunks in self._names.items()}
        return Aside(context, names)


def _as_far_as_there(config: TableConfig, places: Mapping[str, int]) -> TableConfig:
    """Return the settings without columns that a table does not have."""
    kept = tuple(name for name in config.named if name in places)
    context = config.context
    if context is not None:
        context = tuple(name for name in context if name in places)
    return replace(config, keep=kept, id=None, context=context)


def _positions(
    setting: str,
    names: Sequence[str],
    places: Mapping[str, int],
    source: Source,
    used: set[int],
) -> dict[str, int]:
    missing = [name for name in names if name not in places]
    if missing:
        has = ", ".join(map(repr, list(places)[:8])) or "no names of columns"
        raise DataError(
            f"{source.where} has no column {missing[0]!r}, which {setting} names; it has {has}."
        )
    nodes = [name for name in names if places[name] in used]
    if nodes:
        raise DataError(
            f"{setting} names {nodes[0]!r}, which is a node of the network: give columns beside it."
        )
    return {name: places[name] for name in names}


def _find_context(
    source: Source, used: set[int], config: TableConfig, places: Mapping[str, int]
) -> dict[int, str]:
    """Return the columns of context, those asked for or all that seem to be some; and their kinds.

    Whether a column is taken without being asked for is decided by its first stretch.
    """
    if config.context is not None:
        chosen = _positions("context", config.context, places, source, used)
        return dict.fromkeys(chosen.values(), "values")
    if source.names is None or not source.can_be_tried:
        return {}
    often = Counter(source.names)  # a file of Arrow cannot be asked for one of two alike
    free = [
        k
        for k, name in enumerate(source.names)
        if k not in used
        and name != config.id
        and often[name] == 1
        and (source.plain is None or k in source.plain)
    ]
    if not free:
        return {}
    coders = [ContextCoder(source.names[k], source.is_text) for k in free]
    for columns in source.read(free):
        for coder, column in zip(coders, columns, strict=True):
            coder.add(column)
        break
    seem = {k: coder.kind for k, coder in zip(free, coders, strict=True) if coder.kind != "none"}
    return dict(list(seem.items())[:MOST_CONTEXT])


def _file_column(source: Source) -> ContextColumn | None:
    """Return the file of each row, where there are several."""
    files = source.file_rows() if source.file_rows is not None else ()
    if not 1 < len(files) <= MOST_CONTEXT_VALUES:
        return None
    paths = [path for path, _ in files]
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])  # noqa: PTH120
    labels = [os.path.relpath(path, folder) if folder else path for path in paths]
    codes = np.repeat(np.arange(len(files), dtype=np.int16), [n for _, n in files])
    return ContextColumn(FILE_NAME, tuple(labels), codes)


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


def _join(chunks: list[pa.Array]) -> pa.ChunkedArray:
    """Return stretches as one column; as text where their kinds differ."""
    import pyarrow as pa

    kinds = {chunk.type for chunk in chunks} - {pa.null()}
    kind = kinds.pop() if len(kinds) == 1 else pa.string()
    return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
