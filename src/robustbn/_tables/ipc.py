"""Files of Arrow (.arrow, .feather), batch by batch, in the thread that asks.

Arrow's own scanner reads ahead in threads of its own; where a file is damaged, these use what is
gone already, and end the process. Files are read, not mapped: one that is cut short meanwhile is an
error then, and no signal.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from robustbn._core.protocols import Column
from robustbn._tables.arrow import NO_VALUE, check_array, column_of, find_field, plain_columns
from robustbn._tables.guards import once_a_state, require_modest_rows
from robustbn._tables.sources import BLOCK_ROWS, Source, chain_files
from robustbn._tables.values import nothing_in

MAGIC = b"ARROW1"
MOST_METADATA = 2**28  # bytes of a message, or of the end of a file
DICTIONARIES, BATCHES = 2, 3  # fields of the end of a file
HEADER = 2  # field of a message
BUFFERS, COMPRESSION = 2, 3  # fields of a record batch
BATCH_OF_DICTIONARY = 1
OUTSIDE = "its tables of contents point outside of the file"


def open_ipc(files: Sequence[Path], where: str, folders: Sequence[Mapping[str, str]]) -> Source:
    """Return the source of Arrow files; those of the first are its columns."""
    for file in files:
        require_modest_rows(file, 0, count_unpacked_bytes(file))
    schema = read_schema(files[0], folders[0])
    names = tuple(schema.names)
    n_rows = sum(map(count_rows, files))

    def read_file(k: int, positions: Sequence[int]) -> Iterator[list[Column]]:
        return _read_file(files[k], [names[p] for p in positions], positions, folders[k])

    read, file_rows = chain_files(files, read_file)
    return Source(
        names,
        len(names),
        n_rows,
        "file",
        where,
        read,
        plain=plain_columns(schema),
        file_rows=file_rows,
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
    """Yield the batches of a file, with the columns at some positions in the order of the file."""
    with pa.OSFile(str(file)) as raw:
        options = pa.ipc.IpcReadOptions(included_fields=sorted(set(chosen or ())))
        reader = pa.ipc.open_file(raw, options=options)
        for k in range(reader.num_record_batches):
            batch = reader.get_batch(k)
            batch.validate()
            yield batch


@once_a_state
def count_rows(file: Path) -> int:
    """Return how many rows a file has; reads one column, once in each state of the file."""
    counted = 0
    for batch in read_batches(file, _narrowest(read_schema(file, {}))):
        for array in batch.columns:
            check_array(array)
        counted += batch.num_rows
        require_modest_rows(file, counted)
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
    own = [
        -1 if name in held else find_field(schema, name, k)
        for name, k in zip(names, positions, strict=True)
    ]
    chosen = sorted({k for k in own if k >= 0}) or _narrowest(schema)
    for batch in read_batches(file, chosen):
        arrays = {k: check_array(batch.column(i), schema[k].name) for i, k in enumerate(chosen)}
        for start in range(0, batch.num_rows, BLOCK_ROWS):
            n = min(BLOCK_ROWS, batch.num_rows - start)
            yield [
                column_of(arrays[k].slice(start, n)) if k >= 0 else _constant(held.get(name), n)
                for name, k in zip(names, own, strict=True)
            ]


def _constant(value: str | None, n_rows: int) -> Column:
    if value is None or value == NO_VALUE:
        return nothing_in(n_rows)
    return Column(np.zeros(n_rows, np.int8), [value])


# --- the sizes that a file tells, in its own tables (flatbuffers) ---------------------------------
#
# Its end lists blocks, each begins with a message that lists buffers, and each compressed buffer
# begins with its size. Arrow makes room for whatever that says.


@once_a_state
def count_unpacked_bytes(file: Path) -> int:
    """Return how many bytes a file says to hold; O(buffers), once in each state of the file."""
    try:
        with file.open("rb") as opened:
            end = _Table(_read_end(opened, file.stat().st_size), 0)
            return sum(
                _count_block(opened, start, n_metadata, is_dictionary=field == DICTIONARIES)
                for field in (DICTIONARIES, BATCHES)
                for start, n_metadata, _ in end.entries(field, "<qi4xq")
            )
    except struct.error:
        raise pa.ArrowInvalid(OUTSIDE) from None


def _read(opened: BinaryIO, start: int, n: int) -> bytes:
    if start < 0 or not 0 <= n <= MOST_METADATA:
        raise pa.ArrowInvalid(OUTSIDE)
    opened.seek(start)
    return opened.read(n)


def _read_end(opened: BinaryIO, size: int) -> bytes:
    """Return the last table of a file, which lists its blocks."""
    tail = _read(opened, max(size - 10, 0), 10)
    if tail[4:] != MAGIC:
        raise pa.ArrowInvalid("Not an Arrow file")
    (n,) = struct.unpack_from("<i", tail)
    return _read(opened, size - 10 - n, n)


def _count_block(opened: BinaryIO, start: int, n_metadata: int, *, is_dictionary: bool) -> int:
    message = _read(opened, start, n_metadata)
    message = message[8 if message[:4] == b"\xff\xff\xff\xff" else 4 :]
    batch = _Table(message, 0).table(HEADER)
    if is_dictionary:
        batch = batch.table(BATCH_OF_DICTIONARY)
    total, body = 0, start + n_metadata
    for offset, length in batch.entries(BUFFERS, "<qq"):
        unpacked = length
        if batch.place(COMPRESSION):  # -1 says that it is as it was
            (told,) = struct.unpack("<q", _read(opened, body + offset, 8)) if length >= 8 else (0,)
            unpacked = length if told == -1 else told
        total += max(unpacked, 0)
    return total


class _Table:
    """A table of flatbuffers, which is referred to at a place in some bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, _follow(data, at)
        index = self._at - struct.unpack_from("<i", data, self._at)[0]
        if index < 0:
            raise pa.ArrowInvalid(OUTSIDE)
        (size,) = struct.unpack_from("<H", data, index)
        self._offsets = struct.unpack_from(f"<{max(size - 4, 0) // 2}H", data, index + 4)

    def place(self, field: int) -> int:
        """Return where a field is; 0 if it is not there."""
        offset: int = self._offsets[field] if field < len(self._offsets) else 0
        return self._at + offset if offset else 0

    def table(self, field: int) -> _Table:
        return _Table(self._data, self.place(field))

    def entries(self, field: int, form: str) -> Iterable[tuple[Any, ...]]:
        """Return the entries of a list, none if it is not there."""
        if not self.place(field):
            return ()
        first, width = _follow(self._data, self.place(field)), struct.calcsize(form)
        (n,) = struct.unpack_from("<I", self._data, first)
        if n * width > len(self._data):
            raise pa.ArrowInvalid(OUTSIDE)
        return struct.iter_unpack(form, self._data[first + 4 : first + 4 + n * width])


def _follow(data: bytes, at: int) -> int:
    """Return the place that a reference points at."""
    (offset,) = struct.unpack_from("<I", data, at)
    return int(at + offset)
