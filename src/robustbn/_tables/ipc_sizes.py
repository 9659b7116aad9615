"""How much a file of Arrow holds once it is unpacked, by what it says, before anything is unpacked.

Arrow makes room for whatever a compressed buffer says to hold. The sizes are read from the file's
own tables (flatbuffers): its end lists blocks, each begins with a message that lists buffers, and
each compressed buffer begins with its size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

MAGIC = b"ARROW1"
MOST_METADATA = 2**28  # bytes of a message, or of the end of a file
DICTIONARIES, BATCHES = 2, 3  # fields of the end of a file
HEADER = 2  # field of a message
BUFFERS, COMPRESSION = 2, 3  # fields of a record batch
BATCH_OF_DICTIONARY = 1


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
