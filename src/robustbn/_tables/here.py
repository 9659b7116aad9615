"""Tables that are not files here, or not of a kind that is read: made into ones that are.

Standard input is kept in a temporary file: a fit takes several passes over its table.
"""

from __future__ import annotations

import csv
import datetime as dt
import errno
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from robustbn._core.advice import Advice, Setting
from robustbn._core.downloads import bring_here, make_scratch
from robustbn._core.file_names import (
    COMPRESSIONS,
    TABLE_FORMATS,
    inner_suffix,
    name_of,
    remember_name,
    url_of,
)
from robustbn._tables.guards import open_unpacked, require_modest_sheets
from robustbn.exceptions import DataError, MissingDependencyError, RobustBNError, SettingError

STANDARD_INPUT = "-"
EXCEL = (".xlsx", ".xlsm")
EXCEL_EXTRA = "pip install 'robustbn[openpyxl]'"
_MARKS = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"\xff\xff\xff\xff", ".arrows"),
    (b"PK\x03\x04", ".xlsx"),
)
_COMPRESSED = ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst"), (b"BZh", ".bz2"))
_CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

_sheets: dict[tuple[Any, ...], Path] = {}  # what was read of a workbook, in this state of it
_taken: list[tuple[Any, Path]] = []  # standard input can be read once


def find_here(path: str | os.PathLike[str], format: str | None = None) -> Path:
    """Return a path here: of standard input (`-`) or a URL, that of a copy."""
    if os.fspath(path) == STANDARD_INPUT:
        return _take_standard_input(format)
    try:
        return bring_here(path)
    except OSError as error:
        raise DataError(str(error)) from None


def localize(table: Any, *, format: str | None = None, sheet: str | int | None = None) -> Any:
    """Return a table, or of a file whose name does not say how to read it, another name of it."""
    if format not in (None, *TABLE_FORMATS):
        raise SettingError(f"format is one of {', '.join(TABLE_FORMATS)}; found {format!r}.")
    if not isinstance(table, str | os.PathLike):
        if format is not None or sheet is not None:
            what = "format" if format is not None else "sheet"
            raise DataError(f"{what}=... is for files; this is a {type(table).__name__}.")
        return table
    is_elsewhere = os.fspath(table) == STANDARD_INPUT or url_of(table) is not None
    if format is None and sheet is None and not is_elsewhere:
        return table
    found = find_here(table, format)
    if format is not None and os.fspath(table) != STANDARD_INPUT:
        found = _rename(found, f".{format}")
    if sheet is None:
        return str(found)
    if inner_suffix(found) not in EXCEL:
        raise DataError(f"{name_of(found)} is not a workbook, so it has no sheet {sheet!r}.")
    return str(read_workbook(found, sheet))


def _rename(found: Path, suffix: str) -> Path:
    """Return links to a file, or to the files of a folder, whose names end in a suffix."""
    if found.is_dir():
        folder = make_scratch()
        for file in sorted(found.rglob("*")):
            if not file.is_dir() and not file.name.startswith(("_", ".")):
                _link(file, folder / file.relative_to(found).parent, suffix)
        return remember_name(folder, name_of(found))
    if not found.exists():
        return found  # whoever opens it says so
    return remember_name(_link(found, make_scratch(), suffix), name_of(found))


def _link(file: Path, folder: Path, suffix: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    packed = file.suffix if file.suffix.lower() in COMPRESSIONS else ""
    link = folder / (file.name.removesuffix(packed) + suffix + packed)
    try:
        link.symlink_to(file.resolve())
    except OSError:  # where links need a right that not everybody has
        shutil.copyfile(file, link)
    return link


# --- standard input -----------------------------------------------------------------------------


def _take_standard_input(format: str | None) -> Path:
    """Return the file that holds standard input; it is read when it is first asked for."""
    stream = sys.stdin.buffer
    for known, path in _taken:
        if known is stream:
            return path
    raw = make_scratch() / "standard-input"
    with _kept_in(raw.parent, "Standard input"):
        with raw.open("wb") as file:
            shutil.copyfileobj(stream, file, 2**20)
        if not raw.stat().st_size:
            raise DataError("Standard input is empty: there is not even a header.")
        path = _name_by_content(raw, format)
    _taken.append((stream, path))
    return remember_name(path, "standard input")


@contextmanager
def _kept_in(folder: Path, what: str) -> Iterator[None]:
    """Say what has no room, and where, if a disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            f"{what} does not fit in {folder.parent}, where it is stored while it is read: "
            f"{os.strerror(error.errno)}. Set TMPDIR to another folder."
        ) from error


def _name_by_content(raw: Path, format: str | None) -> Path:
    """Rename a file by what its first bytes say that it is."""
    with raw.open("rb") as file:
        head = file.read(16)
    packed = next((suffix for mark, suffix in _COMPRESSED if head.startswith(mark)), "")
    if packed:
        with pa.input_stream(str(raw), compression=_CODECS[packed]) as stream:
            head = stream.read(16)
    suffix = f".{format}" if format else _suffix_by_content(head)
    if suffix in (".arrow", ".arrows") and not head.startswith(b"ARROW1"):
        return _store_stream(raw, packed)
    return raw.rename(raw.with_name(raw.name + suffix + packed))


def _suffix_by_content(head: bytes) -> str:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        raise DataError(
            "Standard input starts with '[': JSON must have one object ({...}) per line."
        )
    plain = ".jsonl" if text.startswith(b"{") else ".csv"
    return next((suffix for mark, suffix in _MARKS if head.startswith(mark)), plain)


def _store_stream(raw: Path, packed: str) -> Path:
    """Return an Arrow stream as an Arrow file, which can be read again and in parts."""
    path = raw.with_name(raw.name + ".arrow")
    try:
        try:
            _copy_stream(raw, packed, path, by_words=True)
        except pa.ArrowInvalid:  # a file cannot hold words that change from stretch to stretch
            _copy_stream(raw, packed, path, by_words=False)
    except pa.ArrowException as error:
        raise DataError(f"Standard input is no Arrow stream, or is truncated: {error}") from None
    raw.unlink()
    return path


def _copy_stream(raw: Path, packed: str, path: Path, *, by_words: bool) -> None:
    """Write the batches of a stream to a file; `by_words`: columns of categories as they are."""
    with (
        open_unpacked(raw, _CODECS[packed]) if packed else pa.OSFile(str(raw)) as stream,
        pa.ipc.open_stream(stream) as reader,
    ):
        fields = [
            f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f
            for f in reader.schema
        ]
        schema = reader.schema if by_words else pa.schema(fields)
        with pa.ipc.new_file(str(path), schema) as writer:
            for batch in reader:
                batch.validate(full=True)
                writer.write_batch(batch if by_words else batch.cast(schema))


# --- workbooks ----------------------------------------------------------------------------------


def read_workbook(file: Path, sheet: str | int | None = None) -> Path:
    """Return a sheet of a workbook as a CSV file, so that it is read by the rules of text.

    Whole numbers lose their decimal point, dates and times are in ISO form, truth values are true
    and false. One row is held at a time.
    """
    state, where = file.stat(), name_of(file)
    key = (file.resolve(), sheet, state.st_size, state.st_mtime_ns)
    if key not in _sheets:
        path = make_scratch() / f"{file.stem}.csv"
        with _kept_in(path.parent, where):
            chosen = _write_sheet(file, where, sheet, path)
        _sheets[key] = remember_name(path, where if sheet is None else f"{where}, sheet {chosen}")
    return _sheets[key]


def _write_sheet(file: Path, name: str, sheet: str | int | None, path: Path) -> str:
    """Write the rows of a sheet as CSV; return the sheet's name. Messages name the workbook."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingDependencyError(f"{name} is read with openpyxl: {EXCEL_EXTRA}.") from None
    require_modest_sheets(file, name)
    try:
        book = load_workbook(file, read_only=True, data_only=True)
    except Exception as error:  # of zip, XML or openpyxl itself
        raise DataError(f"{name} cannot be read as a workbook: {error}") from None
    try:
        chosen = _choose(book, name, sheet)
        with path.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerows(_rows(book[chosen], f"{name}, sheet {chosen}"))
    except (RobustBNError, MemoryError):
        raise
    except Exception as error:  # of zip, XML or openpyxl itself, in the middle
        raise DataError(f"{name} cannot be read as a workbook: {error}.") from None
    finally:
        book.close()
    return chosen


def _choose(book: Any, name: str, sheet: str | int | None) -> str:
    """Return the sheet of a name, or of a number from 1; without one, the only one with values."""
    names: list[str] = [each.title for each in book.worksheets]
    listed = ", ".join(map(repr, names))
    if sheet is None:
        filled: list[str] = [s.title for s in book.worksheets if any(True for _ in _filled(s))]
        if len(filled) > 1:
            which = Setting("sheet", filled[0])
            raise DataError(Advice(f"{name} has several sheets: {listed}. Say which: ", which, "."))
        if not filled:
            raise DataError(f"{name} is empty: there is not even a header.")
        return filled[0]
    if str(sheet) in names:
        return str(sheet)
    if str(sheet).isdigit() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    raise DataError(f"{name} has no sheet {sheet!r}; it has {listed}.")


def _filled(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the rows that are not blank, with their numbers from 1."""
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if any(value is not None and value != "" for value in row):
            yield number, row


def _rows(sheet: Any, where: str) -> Iterator[list[str]]:
    """Yield the header and the rows as text, all as long as the header."""
    width = 0
    for number, row in _filled(sheet):
        texts = [_text(value) for value in row]
        used = max(k for k, text in enumerate(texts, start=1) if text)
        width = width or used
        if used > width:
            raise DataError(
                f"{where}, row {number}: column {used} has a value and no name. The header is the "
                "first row that is not blank."
            )
        yield (texts + [""] * (width - len(texts)))[:width]


def _text(value: Any) -> str:
    """Return a value as people write it in text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, dt.datetime):
        is_day = value.time() == dt.time()
        return value.date().isoformat() if is_day else value.isoformat(sep=" ")
    return str(value)
