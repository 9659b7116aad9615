"""What a caller names: where it is worked on, and its parts: files, datasets, queries, streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from robustbn._core.allocate import physical_bytes
from robustbn._core.config import Streaming, TableConfig
from robustbn._core.file_names import COMPRESSIONS, name_of
from robustbn._core.protocols import Column
from robustbn._rows.stream.parts import Part
from robustbn._tables.coded import Table
from robustbn._tables.sources import BLOCK_ROWS, Source, UnreadableError, open_table
from robustbn.exceptions import DataError, SettingError
from robustbn.network import BayesianNetwork

PLACES = ("memory", "stream", "dask")
HELD_SHARE = 0.25  # codes of rows that take more than this of the memory are not held
COMPRESSION = 16  # a compressed text file may hold this many times as much text
PART_ROWS = 2**22  # row groups are read together up to so many rows
READ_AHEAD = {"batch_readahead": 4, "fragment_readahead": 1}  # what is decoded is held in memory
Found = tuple[list[Part], dict[str, str]]


def find_place(
    table: Any, network: BayesianNetwork | None, wanted: str | None, streaming: Streaming
) -> str:
    """Return one of `PLACES`: the one that is wanted, or where the table belongs by its size."""
    if wanted not in (None, *PLACES):
        raise SettingError(f"Unknown place {wanted!r}; choose one of {', '.join(PLACES)}.")
    if wanted == "dask" or is_on_dask(table):
        return "dask"
    if wanted == "stream" or streaming != Streaming():
        return "stream"
    if wanted == "memory" or network is None or not _is_elsewhere(table):
        return "memory"
    return "stream" if is_large(table, network) else "memory"


def is_on_dask(table: Any) -> bool:
    """Whether a table is a Dask collection; imports nothing."""
    return type(table).__module__.partition(".")[0] in ("dask", "dask_expr")


def _is_elsewhere(table: Any) -> bool:
    """Whether a table lies in files or a database."""
    is_named = isinstance(table, str | os.PathLike) or callable(table)
    return is_named or hasattr(table, "count_rows") or "duckdb" in type(table).__module__


def is_large(table: Any, network: BayesianNetwork) -> bool:
    """Whether the codes of a table in files or a database would take much of the memory."""
    limit = HELD_SHARE * physical_bytes()
    if isinstance(table, str | os.PathLike):
        from robustbn._tables.files import find_files, is_packed, open_file
        from robustbn._tables.here import find_here

        table = find_here(table)
        files = find_files(table)
        if not is_packed(files):  # text: a value takes two bytes or more
            sizes = [
                f.stat().st_size * (COMPRESSION if f.suffix in COMPRESSIONS else 1) for f in files
            ]
            return sum(sizes) / 2 > limit
        source = open_file(str(table), sep=None, encoding="utf-8")
        return (source.n_rows or 0) * network.n_nodes > limit
    if type(table).__module__.startswith("pyarrow") and hasattr(table, "count_rows"):
        return bool(table.count_rows() * network.n_nodes > limit)
    if is_relation(table):
        return bool(table.aggregate("count(*)").fetchall()[0][0] * network.n_nodes > limit)
    return callable(table)


def find_parts(
    table: Any, on_error: str, config: TableConfig, part_rows: int | None = None
) -> Found:
    """Return the parts of a table that can be read again and again, and files that cannot be."""
    if on_error not in ("raise", "skip"):
        raise SettingError(f"on_error is 'raise' or 'skip'; found {on_error!r}.")
    part_rows = part_rows or PART_ROWS
    if isinstance(table, Table):
        raise DataError(
            "This table was read into memory already, and cannot be streamed: give the path or "
            "the frame that it was read from."
        )
    if isinstance(table, str | os.PathLike):
        return _find_files(os.fspath(table), on_error, config, part_rows)
    if _is_dataset_of_files(table):
        fragments = {fragment.path: fragment for fragment in table.get_fragments()}
        slices = lambda name: _slices_of(fragments[name], table, part_rows, name)  # noqa: E731
        return _collect(fragments, slices, on_error)
    if is_relation(table):
        return [Part("The relation", partial(_open_relation, table))], {}
    if callable(table):
        return [Part("The stream", _reopening(table), is_made=True)], {}
    source = open_table(table)
    if source.is_once:
        raise DataError(
            f"{source.where} can be read only once, but two passes are needed. Give a function "
            "that opens it anew at every call, or read it into memory first."
        )
    return [Part(source.where, partial(open_table, table))], {}


def is_relation(table: Any) -> bool:
    is_duckdb = type(table).__module__.partition(".")[0] in ("duckdb", "_duckdb")
    return is_duckdb and hasattr(table, "project")


def _is_dataset_of_files(table: Any) -> bool:
    """Whether a table is a pyarrow dataset whose files can be read one by one."""
    if not type(table).__module__.startswith("pyarrow"):
        return False
    is_filtered = bool(getattr(table, "_scan_options", None))
    return hasattr(table, "get_fragments") and hasattr(table, "files") and not is_filtered


def _find_files(path: str, on_error: str, config: TableConfig, part_rows: int) -> Found:
    from robustbn._tables.files import find_files, has_row_groups, make_dataset, open_files
    from robustbn._tables.here import find_here

    path = str(find_here(path))
    files, empty = find_files(path, may_be_empty=on_error == "skip"), {}
    if on_error == "skip":
        empty = {str(f): f"{name_of(f)} is empty (0 bytes)." for f in files if not f.stat().st_size}
        files = [file for file in files if str(file) not in empty]
    is_sliced = bool(files) and has_row_groups(files)

    def make(file: str) -> list[Part]:
        where = name_of(file)
        if is_sliced:
            dataset = make_dataset([Path(file)], path, where)
            return _slices_of(next(iter(dataset.get_fragments())), dataset, part_rows, file)
        open_one = partial(
            open_files, [Path(file)], path, where, sep=config.sep, encoding=config.encoding
        )
        open_one()  # its header is read: can it be?
        return [Part(file, open_one)]

    parts, skipped = _collect(map(str, files), make, on_error)
    return parts, empty | skipped


def _collect(names: Iterable[str], make: Callable[[str], list[Part]], on_error: str) -> Found:
    """Return the parts of every file, those that cannot be read left out if they may be."""
    parts: list[Part] = []
    skipped: dict[str, str] = {}
    for name in names:
        try:
            parts += make(name)
        except UnreadableError as error:
            if on_error == "raise":
                raise
            skipped[name] = str(error)
    return parts, skipped


def _slices_of(fragment: Any, dataset: Any, part_rows: int, name: str) -> list[Part]:
    """Return a file as parts of about `part_rows` rows each, if it has row groups."""
    from robustbn._tables.files import UNREADABLE, unreadable

    try:
        groups = [(g.id, g.num_rows) for g in getattr(fragment, "row_groups", ())]
    except UNREADABLE as error:
        raise unreadable(name, error) from None
    place = (fragment.path, fragment.filesystem, fragment.partition_expression)
    open_some = partial(_open_slice, name, dataset.format, dataset.schema, place)
    if sum(n for _, n in groups) < 2 * part_rows:
        return [Part(name, open_some, 0, open_some().n_rows)]
    parts: list[Part] = []
    first, n, ids = 0, 0, list[int]()
    for identity, n_rows in groups:
        ids.append(identity)
        n += n_rows
        if n >= part_rows or identity == groups[-1][0]:
            parts.append(Part(name, partial(open_some, ids, first), first, n))
            first, n, ids = first + n, 0, []
    return parts


def _open_slice(
    name: str,
    format: Any,
    schema: Any,
    place: tuple[str, Any, Any],
    row_groups: list[int] | None = None,
    first_row: int = 0,
) -> Source:
    """Open some row groups of a file, or all of it; nobody holds what its end says of them."""
    import pyarrow.dataset as ds

    from robustbn._tables.arrow import open_dataset
    from robustbn._tables.files import UNREADABLE, unreadable

    chosen = {} if row_groups is None else {"row_groups": row_groups}
    try:
        fragment = format.make_fragment(*place, **chosen)
        dataset = ds.FileSystemDataset([fragment], schema, format, place[1])
        source = open_dataset(dataset, name, **READ_AHEAD)
        return replace(source, first_row=first_row)
    except UNREADABLE as error:
        raise unreadable(name, error) from None


def _reopening(make: Callable[[], Any]) -> Callable[[], Source]:
    """Return what opens the table that a function makes, again and again."""
    first = make()
    if isinstance(first, Iterator) and make() is first:
        raise DataError(
            "The function returns the same iterator at every call, which can be read only once, "
            "but two passes are needed. Create a new iterator in the function."
        )
    waiting = [open_table(as_reader(first))]

    def open_next() -> Source:
        if not waiting:
            waiting.append(open_table(as_reader(make())))
        source = waiting[0]

        def read(positions: Sequence[int]) -> Iterator[list[Column]]:
            is_new = waiting == [source]
            if is_new:
                waiting.clear()
            again = source if is_new else open_table(as_reader(make()))
            yield from again.stretches(positions)

        return replace(source, stretches=read)

    return open_next


def as_reader(made: Any) -> Any:
    """Return a table as it is, and an iterator of tables as a reader of the first one's columns."""
    import pyarrow as pa

    if not isinstance(made, Iterator) or isinstance(made, pa.RecordBatchReader):
        return made
    first = next(made, None)
    if first is None:
        raise DataError(
            "The stream has no batches, so its columns are not known. A function must return a "
            "new iterator at every call."
        )
    table = _as_table(first)
    names = table.column_names
    rest = (
        batch
        for k, each in enumerate(made, start=1)
        for batch in _with_columns(_as_table(each), names, k).to_batches()
    )
    return pa.RecordBatchReader.from_batches(table.schema, chain(table.to_batches(), rest))


def _with_columns(table: Any, names: Sequence[str], number: int) -> Any:
    """Return the columns of a later step of an iterator in the order of the first."""
    if table.column_names == names:
        return table
    for name in names:
        n = table.column_names.count(name)
        if n != 1:
            raise DataError(
                f"The stream: batch {number} (from 0) has {n} columns {name!r}, and the first has "
                f"{names.count(name)}. Columns are found by their names in every batch."
            )
    return table.select(names)


def _as_table(made: Any) -> Any:
    """Return one step of an iterator as an Arrow table."""
    import pyarrow as pa

    if isinstance(made, pa.RecordBatch):
        return pa.Table.from_batches([made])
    if hasattr(made, "__arrow_c_stream__"):
        return pa.table(made)
    raise DataError(
        f"The stream yields a {type(made).__name__}; expected record batches, Arrow tables or "
        "frames."
    )


def _open_relation(relation: Any) -> Source:
    """Return the source of a DuckDB relation; its query is run anew at every reading."""
    import pyarrow as pa

    from robustbn._tables.arrow import columns_of

    names = tuple(relation.columns)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        quoted = ('"' + names[k].replace('"', '""') + '"' for k in positions)
        chosen = relation.project(", ".join(quoted))
        to_reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
        reader: pa.RecordBatchReader = to_reader(BLOCK_ROWS)
        for batch in reader:
            yield from columns_of(batch)

    return Source(names, len(names), None, "pyarrow", "The relation", read)
