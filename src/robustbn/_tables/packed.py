"""Compressed tables, read as far as a file of their size may reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from robustbn._core.file_names import COMPRESSIONS, name_of
from robustbn._core.inflation import (
    SHEET_FLOOR,
    SHEET_RATIO,
    TABLE_FLOOR,
    TABLE_RATIO,
    BoundedStream,
    most_inflated,
    say_inflated,
)
from robustbn.exceptions import DataError


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
