"""Sheets of Excel workbooks, through openpyxl: maintained, and one row is held at a time."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from robustbn._core.advice import Advice, Setting
from robustbn._tables.packed import require_modest_sheets
from robustbn.exceptions import DataError, MissingDependencyError, RobustBNError

EXCEL_EXTRA = "pip install 'robustbn[openpyxl]'"


def write_sheet(file: Path, name: str, sheet: str | int | None, path: Path) -> str:
    """Write the rows of a sheet as CSV; return the sheet's name.

    Parameters
    ----------
    name : what to call the workbook in messages.
    sheet : its name, or its number from 1; None if there is but one with values.
    """
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
    names: list[str] = [each.title for each in book.worksheets]
    listed = ", ".join(map(repr, names))
    if sheet is None:
        filled: list[str] = [
            each.title for each in book.worksheets if next(_filled(each), None) is not None
        ]
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
    width, is_first = 0, True
    for number, row in _filled(sheet):
        texts = [_text(value) for value in row]
        used = max(k for k, text in enumerate(texts, start=1) if text)
        if is_first:
            width, is_first = used, False
        if used > width:
            raise DataError(
                f"{where}, row {number}: column {used} has a value and no name. The header is the "
                "first row that is not blank."
            )
        texts += [""] * (width - len(texts))
        yield texts[:width]


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
