"""Guards against damaged and hostile files: what is read is bounded, and checked before it is used.

A few bytes may say to hold gigabytes: compressed streams are read as far as a file of their size
may reach, and what Parquet, Arrow and workbooks say of their sizes is looked at before anything is
unpacked. JSON that is nested too deep would end the process. So would Arrow arrays whose offsets
point outside of the text: Arrow trusts its arrays. Checked is what is followed later and no more:
ends of buffers (in no time), the offsets of text, and all of kinds that are seldom met. Positions
among categories are checked where rows have numbers, in `Source.read`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from robustbn._core.downloads import (
    SHEET_FLOOR,
    SHEET_RATIO,
    TABLE_FLOOR,
    TABLE_RATIO,
    BoundedStream,
    most_inflated,
    say_inflated,
)
from robustbn._core.file_names import COMPRESSIONS, name_of
from robustbn.exceptions import DataError

STEP = 2**21
DEEPEST = 500
BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{}\]]', re.DOTALL)
MAGIC = b"ARROW1"
MOST_METADATA = 2**28  # bytes of a message, or of the end of a file
DICTIONARIES, BATCHES = 2, 3  # fields of the end of a file
HEADER = 2  # field of a message
BUFFERS, COMPRESSION = 2, 3  # fields of a record batch
BATCH_OF_DICTIONARY = 1


def open_unpacked(file: Path, compression: str = "detect") -> Any:
    """Return a stream of what a file holds, bounded if it is compressed."""
    stream = pa.input_stream(str(file), compression=compression)
    if compression == "detect" and file.suffix.lower() not in COMPRESSIONS:
        return stream
    limit = most_inflated(file.stat().st_size, TABLE_RATIO, TABLE_FLOOR)
    refusal = DataError(say_inflated(name_of(file), limit))
    return pa.PythonFile(BoundedStream(stream, limit, refusal), mode="r")


def require_modest_rows(file: Path, n_rows: int, n_bytes: int = 0) -> None:
    """Refuse a file that says to hold more rows, or more bytes, than one of its size should."""
    limit = most_inflated(file.stat().st_size, TABLE_RATIO, TABLE_FLOOR)
    if n_rows > limit or n_bytes > limit:
        unit = "rows" if n_rows > limit else "bytes"
        raise DataError(say_inflated(name_of(file), limit, unit))


def require_modest_parquet(file: Path) -> None:
    """Refuse Parquet whose end tells of more rows or bytes than a file of its size should hold."""
    import pyarrow.parquet as pq

    about = pq.read_metadata(file)
    groups = [about.row_group(k) for k in range(about.num_row_groups)]
    require_modest_rows(file, about.num_rows, sum(g.total_byte_size for g in groups))


def require_modest_sheets(file: Path, name: str) -> None:
    """Refuse a workbook whose parts are far larger than the file; more than told is never read."""
    import zipfile

    limit = most_inflated(file.stat().st_size, SHEET_RATIO, SHEET_FLOOR)
    try:
        with zipfile.ZipFile(file) as parts:
            held = sum(part.file_size for part in parts.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"{name} cannot be read as a workbook: {error}.") from None
    if held > limit:
        raise DataError(say_inflated(name, limit))


def require_shallow(file: Path) -> None:
    """Refuse JSON that is nested too deep, which ends a process of Arrow, and packed too tight.

    Reads the file once in each state of it, at about 1 GB/s where records are flat.
    """
    state = file.stat()
    _scan_depth(file, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _scan_depth(file: Path, size: int, mtime_ns: int) -> None:
    held = b""
    with open_unpacked(file) as stream:
        while True:
            more = stream.read(STEP)
            held += more
            end = held.rfind(b"\n") + 1 if more else len(held)  # text never goes beyond a line
            part, held = held[:end], held[end:]
            n_opened = part.count(b"{") + part.count(b"[")
            n_flat = part.count(b"}\n{") + part.count(b"}\r\n{")  # never inside of another
            if n_opened > DEEPEST + n_flat and _depth_of(part) > DEEPEST:
                raise DataError(
                    f"{name_of(file)} is refused: its JSON is nested more than {DEEPEST} deep."
                )
            if not more:
                return


def _depth_of(part: bytes) -> int:
    """Return how deep brackets are nested, those inside of texts left out."""
    depth = deepest = 0
    for found in BRACKETS.finditer(part):
        mark = found[0][:1]
        if mark in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in b"}]":
            depth = max(depth - 1, 0)
    return deepest


# --- the sizes that a file of Arrow tells, in its own tables (flatbuffers) ------------------------
#
# Its end lists blocks, each begins with a message that lists buffers, and each compressed buffer
# begins with its size. Arrow makes room for whatever that says.


def count_unpacked_bytes(file: Path) -> int:
    """Return how many bytes a file says to hold; O(buffers), once in each state of the file."""
    state = file.stat()
    return _count_unpacked_bytes(file, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _count_unpacked_bytes(file: Path, size: int, mtime_ns: int) -> int:
    try:
        with file.open("rb") as opened:
            end = _read_end(opened, size)
            return sum(
                _count_block(opened, block, is_dictionary=field == DICTIONARIES)
                for field in (DICTIONARIES, BATCHES)
                for block in _blocks(end, field)
            )
    except struct.error:
        raise pa.ArrowInvalid("its tables of contents point outside of the file") from None


def _read(opened: BinaryIO, start: int, n: int) -> bytes:
    if start < 0 or not 0 <= n <= MOST_METADATA:
        raise pa.ArrowInvalid("its tables of contents point outside of the file")
    opened.seek(start)
    return opened.read(n)


def _read_end(opened: BinaryIO, size: int) -> bytes:
    """Return the last table of a file, which lists its blocks."""
    tail = _read(opened, max(size - 10, 0), 10)
    if tail[4:] != MAGIC:
        raise pa.ArrowInvalid("Not an Arrow file")
    (n,) = struct.unpack_from("<i", tail)
    return _read(opened, size - 10 - n, n)


def _blocks(end: bytes, field: int) -> Iterator[tuple[int, int]]:
    """Yield where blocks begin, and how long their messages are."""
    at = _fields_of(end, _follow(end, 0))(field)
    if at:
        for place in _places(end, at, 24):
            start, n_metadata = struct.unpack_from("<qi", end, place)
            yield start, n_metadata


def _count_block(opened: BinaryIO, block: tuple[int, int], *, is_dictionary: bool) -> int:
    start, n_metadata = block
    message = _read(opened, start, n_metadata)
    message = message[8 if message[:4] == b"\xff\xff\xff\xff" else 4 :]
    batch = _fields_of(message, _follow(message, _fields_of(message, _follow(message, 0))(HEADER)))
    if is_dictionary:
        batch = _fields_of(message, _follow(message, batch(BATCH_OF_DICTIONARY)))
    if not batch(BUFFERS):
        return 0
    buffers: list[Any] = [
        struct.unpack_from("<qq", message, place) for place in _places(message, batch(BUFFERS), 16)
    ]
    if not batch(COMPRESSION):
        return sum(max(length, 0) for _, length in buffers)
    total, body = 0, start + n_metadata
    for offset, length in buffers:
        if length >= 8:
            (unpacked,) = struct.unpack("<q", _read(opened, body + offset, 8))
            total += length if unpacked == -1 else max(unpacked, 0)
    return total


def _follow(data: bytes, at: int) -> int:
    """Return the place that a reference points at."""
    (offset,) = struct.unpack_from("<I", data, at)
    return int(at + offset)


def _places(data: bytes, at: int, width: int) -> range:
    """Return the places of the entries of a list, which is referred to at a place."""
    first = _follow(data, at)
    (n,) = struct.unpack_from("<I", data, first)
    if n * width > len(data):
        raise pa.ArrowInvalid("its tables of contents point outside of the file")
    return range(first + 4, first + 4 + n * width, width)


def _fields_of(data: bytes, at: int) -> Callable[[int], int]:
    """Return what gives the place of each field of a table; 0 for one that is not there."""
    (back,) = struct.unpack_from("<i", data, at)
    index = at - back
    if index < 0:
        raise pa.ArrowInvalid("its tables of contents point outside of the file")
    (size,) = struct.unpack_from("<H", data, index)

    def place_of(field: int) -> int:
        entry = 4 + 2 * field
        if entry + 2 > size:
            return 0
        (offset,) = struct.unpack_from("<H", data, index + entry)
        return at + int(offset) if offset else 0

    return place_of


# --- arrays ---------------------------------------------------------------------------------------


def check_array(array: pa.Array, name: str = "") -> pa.Array:
    """Return an array that may be used, or raise `pyarrow.ArrowInvalid`; O(n) for text.

    Parameters
    ----------
    name : of the column, for the message.
    """
    try:
        _check(array)
    except pa.ArrowInvalid as error:
        where = f"column {name!r}" if name else "a column"
        raise pa.ArrowInvalid(f"{where} is damaged: {error}") from None
    return array


def join_chunks(column: pa.ChunkedArray, name: str = "") -> pa.Array:
    """Return a column in one piece; its pieces are checked first."""
    chunks = [check_array(chunk, name) for chunk in column.chunks]
    if not chunks:
        return pa.array([], column.type)
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _check(array: pa.Array) -> None:
    kind = array.type
    array.validate()
    if pa.types.is_dictionary(kind):
        _check(array.dictionary)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        _check_offsets(array, np.dtype(np.int32))
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        _check_offsets(array, np.dtype(np.int64))
    elif not pa.types.is_primitive(kind):  # views, lists, structures, extensions
        array.validate(full=True)


def _check_offsets(array: pa.Array, dtype: np.dtype[Any]) -> None:
    """Refuse offsets that do not ascend. That the first and the last are inside is known."""
    offsets = array.buffers()[1]
    if offsets is None or not len(array):
        return
    ends = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
    descends = ends[1:] < ends[:-1]
    if descends.any():
        raise pa.ArrowInvalid(f"the text of row {int(descends.argmax())} ends before it begins")
