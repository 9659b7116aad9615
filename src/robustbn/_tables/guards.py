"""Guards against files that say to hold more than they should: what is read is bounded.

What a file says of its size is looked at before anything is unpacked, and streams are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from robustbn._core.downloads import OF_SHEET, OF_TABLE, BoundedStream, most_inflated, say_inflated
from robustbn._core.file_names import COMPRESSIONS, name_of
from robustbn.exceptions import DataError

STEP = 2**21
DEEPEST = 500
BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{}\]]', re.DOTALL)
T = TypeVar("T")


def open_unpacked(file: Path, compression: str = "detect") -> Any:
    """Return a stream of what a file holds, bounded if it is compressed."""
    stream = pa.input_stream(str(file), compression=compression)
    if compression == "detect" and file.suffix.lower() not in COMPRESSIONS:
        return stream
    limit = most_inflated(file.stat().st_size, *OF_TABLE)
    refusal = DataError(say_inflated(name_of(file), limit))
    return pa.PythonFile(BoundedStream(stream, limit, refusal), mode="r")


def require_modest_rows(file: Path, n_rows: int, n_bytes: int = 0) -> None:
    """Refuse a file that says to hold more rows, or more bytes, than one of its size should."""
    limit = most_inflated(file.stat().st_size, *OF_TABLE)
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

    limit = most_inflated(file.stat().st_size, *OF_SHEET)
    try:
        with zipfile.ZipFile(file) as parts:
            held = sum(part.file_size for part in parts.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"{name} cannot be read as a workbook: {error}.") from None
    if held > limit:
        raise DataError(say_inflated(name, limit))


def once_a_state(look: Callable[[Path], T]) -> Callable[[Path], T]:
    """Return a look at a file whose answer is remembered while the file stays as it is."""

    @lru_cache(maxsize=4096)
    def remembered(file: Path, size: int, mtime_ns: int) -> T:
        return look(file)

    @wraps(look)
    def ask(file: Path) -> T:
        state = file.stat()
        return remembered(file, state.st_size, state.st_mtime_ns)

    return ask


@once_a_state
def require_shallow(file: Path) -> None:
    """Refuse JSON that is nested too deep, which ends a process of Arrow, and packed too tight."""
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
