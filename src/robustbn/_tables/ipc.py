"""Files of Arrow (.arrow, .feather), batch by batch, in the thread that asks.

Arrow's own scanner reads ahead in threads of its own; where a file is damaged, these use what is
gone already, and end the process. Files are read, not mapped: one that is cut short meanwhile is an
error then, and no signal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from robustbn._core.protocols import Column
from robustbn._tables.arrow import column_of, plain_columns
from robustbn._tables.guards import check_array, count_unpacked_bytes, require_modest_rows
from robustbn._tables.sources import BLOCK_ROWS, Source

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def open_ipc(files: Sequence[Path], where: str, folders: Sequence[Mapping[str, str]]) -> Source:
    """Return the source of Arrow files; those of the first are its columns.

    Parameters
    ----------
    folders : of each file, the columns that its folders hold the value of, such as `year=2024`.
    """
    for file in files:
        require_modest_rows(file, 0, count_unpacked_bytes(file))
    schema = read_schema(files[0], folders[0])
    names = tuple(schema.names)
    counts = [(str(file), count_rows(file)) for file in files]

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for file, held in zip(files, folders, strict=True):
            yield from _read_file(file, [names[k] for k in positions], list(positions), held)

    return Source(
        names,
        len(names),
        sum(n for _, n in counts),
        "file",
        where,
        read,
        plain=plain_columns(schema),
        file_rows=(lambda: counts) if len(files) > 1 else None,
    )


def values_of_folders(file: Path, root: Path) -> dict[str, str]:
    """Return the values that folders below a root hold, such as `year=2024`."""
    parts = [part.partition("=") for part in file.relative_to(root).parts[:-1] if "=" in part]
    return {key: unquote(value) for key, _, value in parts}


def read_schema(file: Path, held: Mapping[str, str]) -> pa.Schema:
    """Return the columns of a file, and those that its folders hold the value of."""
    with pa.OSFile(str(file)) as raw:
        schema: pa.Schema = pa.ipc.open_file(raw).schema
    more = [pa.field(key, pa.string()) for key in held if key not in schema.names]
    return pa.schema([*schema, *more])


def read_batches(file: Path, chosen: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file, with the columns at some positions in the order of the file.

    Nothing in them is checked but that they are equally long.
    """
    with pa.OSFile(str(file)) as raw:
        options = pa.ipc.IpcReadOptions(included_fields=sorted(set(chosen or ())))
        reader = pa.ipc.open_file(raw, options=options)
        for k in range(reader.num_record_batches):
            batch = reader.get_batch(k)
            batch.validate()
            yield batch


def count_rows(file: Path) -> int:
    """Return how many rows a file has; reads one column, once in each state of the file."""
    state = file.stat()
    return _count_rows(str(file), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _count_rows(file: str, size: int, mtime_ns: int) -> int:
    schema = read_schema(Path(file), {})
    counted = 0
    for batch in read_batches(Path(file), _narrowest(schema)):
        for array in batch.columns:
            check_array(array)
        counted += batch.num_rows
        require_modest_rows(Path(file), counted)
    return counted


def _narrowest(schema: pa.Schema) -> list[int]:
    """Return the position of the column that takes least to read; none of a file without any."""
    widths = [
        field.type.bit_width if pa.types.is_primitive(field.type) else 1000 for field in schema
    ]
    return [int(np.argmin(widths))] if widths else []


def _read_file(
    file: Path, names: Sequence[str], positions: Sequence[int], held: Mapping[str, str]
) -> Iterator[list[Column]]:
    """Yield columns of one file; found by name, or by position where that name is there too."""
    schema = read_schema(file, {})
    own = [_place(schema, name, k) for name, k in zip(names, positions, strict=True)]
    own = [-1 if name in held else k for name, k in zip(names, own, strict=True)]
    chosen = sorted({k for k in own if k >= 0}) or _narrowest(schema)
    for batch in read_batches(file, chosen):
        arrays = {k: check_array(batch.column(i), schema[k].name) for i, k in enumerate(chosen)}
        for start in range(0, batch.num_rows, BLOCK_ROWS):
            n = min(BLOCK_ROWS, batch.num_rows - start)
            yield [
                column_of(arrays[k].slice(start, n)) if k >= 0 else _constant(held.get(name), n)
                for name, k in zip(names, own, strict=True)
            ]


def place_columns(
    batch: pa.RecordBatch, schema: pa.Schema, held: Mapping[str, str]
) -> pa.RecordBatch:
    """Return the columns of a schema: of a batch of all columns, of its folders, or missing."""
    arrays = []
    for k, field in enumerate(schema):
        place = _place(batch.schema, field.name, k)
        value = held.get(field.name)
        if field.name in held and value != NO_VALUE:
            arrays.append(pa.array([value] * batch.num_rows, field.type))
        elif place < 0 or field.name in held:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            array = batch.column(place)
            if array.type != field.type:
                array.validate(full=True)
                array = array.cast(field.type)
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _place(schema: pa.Schema, name: str, position: int) -> int:
    """Return where a column is in a file; -1 if it is not there."""
    if position < len(schema) and schema[position].name == name:
        return position
    return int(schema.get_field_index(name))


def _constant(value: str | None, n_rows: int) -> Column:
    if value is None or value == NO_VALUE:
        return Column(np.full(n_rows, -1, np.int8), [])
    return Column(np.zeros(n_rows, np.int8), [value])
