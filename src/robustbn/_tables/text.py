"""Text files (CSV, TSV): their encoding, their header, lines that repeat it, and their columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Setting
from robustbn._core.file_names import name_of
from robustbn._core.formulas import unguard_cell
from robustbn._core.numbers import count
from robustbn._core.protocols import Column
from robustbn._core.structure import some
from robustbn._tables.arrow import columns_of
from robustbn._tables.guards import open_unpacked
from robustbn._tables.sources import Source, UnreadableError, chain_files
from robustbn._tables.values import nothing_in
from robustbn.exceptions import DataError, RepeatedHeaderWarning

LONGEST_HEADER = 2**22
MOST_BLANK = 10_000  # lines before the header
LONGEST_LAST = 2**16  # bytes of the last line that are read to name it
_WRONG_WIDTH = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")
LOOKED_AT = 20  # lines after the header, to see whether it is one


@dataclass(frozen=True)
class TextHeader:
    """The first line of a text file that is not blank.

    `n_blank` lines come before it, `is_last` says that none follows; its number, `line`, is from 1.
    `widths` are, of the next lines that are not blank, their numbers and how many values each has.
    """

    names: tuple[str, ...]
    n_blank: int
    is_last: bool
    encoding: str
    line: int
    next_line: str
    widths: tuple[tuple[int, int], ...]


def open_text(files: list[Path], where: str, sep: str | None, encoding: str) -> Source:
    """Return the source of text files; every value is text, so that no type is guessed."""
    mark = sep or ","
    headers = [_read_header(file, mark, find_encoding(file, encoding)) for file in files]
    names = headers[0].names
    if len(names) == 1:
        _complain_of_separator(where, headers[0], sep)
    for file, header in zip(files, headers, strict=True):
        _complain_of_widths(name_of(file), header, mark)
    differ = any(header.names != names for header in headers)
    own = {name_of(f): h.names for f, h in zip(files, headers, strict=True)} if differ else {}

    def read_file(k: int, positions: Sequence[int]) -> Iterator[list[Column]]:
        read_some, start = partial(_read_text, files[k], mark, headers[k], names), 0
        titles = TitleFinder(name_of(files[k]), names, partial(read_some, range(len(names))))
        for columns in read_some(positions):
            yield titles.mark(columns, positions, start)
            start += len(columns[0].values)

    read, file_rows = chain_files(files, read_file)
    source = Source(names, len(names), None, "file", where, read, is_text=True, file_rows=file_rows)
    return replace(source, headers=own)


def _read_text(
    file: Path, sep: str, header: TextHeader, names: Sequence[str], positions: Sequence[int]
) -> Iterator[list[Column]]:
    """Yield columns of one file, found by name unless all of its columns are where they should."""
    places = {name: k for k, name in enumerate(header.names)}
    own = [k if header.names == names else places.get(names[k], -1) for k in positions]
    chosen = sorted({k for k in own if k >= 0}) or [0]  # one tells how many rows there are
    for batch in _text_batches(file, sep, header, chosen):
        for columns in columns_of(batch):
            found = dict(zip(chosen, map(_as_written, columns), strict=True))
            nothing = nothing_in(len(columns[0].values))
            yield [found.get(k, nothing) for k in own]


def _as_written(column: Column) -> Column:
    """Return a column without the quotes that keep a spreadsheet from running its cells."""
    labels = column.labels
    if labels is None or not any(label[:1] == "'" for label in labels):
        return column
    return replace(column, labels=[unguard_cell(label) for label in labels])


def _text_batches(
    file: Path, sep: str, header: TextHeader, positions: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pv

    if header.is_last:
        return
    n_columns = len(header.names)
    numbered = [str(k) for k in range(n_columns)]
    wanted = [str(k) for k in positions]
    words = pa.dictionary(pa.int32(), pa.string())
    with (
        _telling_last_line(file, header),
        open_unpacked(file) as stream,
        pv.open_csv(
            stream,
            read_options=pv.ReadOptions(
                encoding=header.encoding,
                column_names=numbered,
                skip_rows=header.n_blank,
                skip_rows_after_names=1,
                block_size=2**23,
            ),
            parse_options=pv.ParseOptions(
                delimiter=sep,
                newlines_in_values=True,
                ignore_empty_lines=n_columns > 1,  # of one column, a blank line is a missing value
            ),
            convert_options=pv.ConvertOptions(
                column_types=dict.fromkeys(wanted, words),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        ) as reader,
    ):
        yield from reader


@contextmanager
def _telling_last_line(file: Path, header: TextHeader) -> Iterator[None]:
    """Say so if the line at which reading ends is the last one: it is a footer, or cut off."""
    try:
        yield
    except pa.ArrowInvalid as error:
        found = _WRONG_WIDTH.search(str(error))
        if found is None:
            raise
        wanted, n_values, line = found.groups()
        last = _read_last_line(file, header.encoding)
        start = line.removesuffix("...").strip()  # of a long line
        if not start or not (last.startswith(start) if line.endswith("...") else last == start):
            raise
        raise UnreadableError(
            f"{name_of(file)} cannot be read: its last line has {count(int(n_values), 'value')} "
            f"instead of {wanted}: {line}. It is a footer or is cut off; remove it. If it is cut "
            "off, more lines may be missing."
        ) from None


def _read_last_line(file: Path, encoding: str) -> str:
    """Return the last line of a text file that is not blank, or its end if it is long."""
    tail = b""
    with open_unpacked(file) as stream:
        while block := stream.read(LONGEST_LAST):
            tail = tail[-LONGEST_LAST:] + block
    lines = tail.decode(encoding, "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


# --- the header -----------------------------------------------------------------------------------


def find_encoding(file: Path, encoding: str) -> str:
    """Return the encoding of a text file: as given, unless its first bytes can only be UTF-16."""
    if codecs.lookup(encoding).name != "utf-8":
        return encoding
    with open_unpacked(file) as stream:
        head = stream.read(4)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-32" if head == codecs.BOM_UTF32_LE else "utf-16"
    letters = tuple(byte != 0 for byte in head)
    return {(True, False) * 2: "utf-16-le", (False, True) * 2: "utf-16-be"}.get(letters, encoding)


def _read_header(file: Path, sep: str, encoding: str) -> TextHeader:
    """Return the header of a text file."""
    with (
        open_unpacked(file) as stream,
        io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="") as text,
    ):
        lines = csv.reader(_short_lines(text, file), delimiter=sep, strict=True)
        try:
            for n_blank, values in enumerate(islice(lines, MOST_BLANK)):
                if values:
                    "".join(values).encode(encoding)  # refuses what could not be decoded
                    names = tuple(_name_column(name) for name in values)
                    line, after = lines.line_num, next(lines, None)
                    widths = [(lines.line_num, len(after or ())), *_look_at_widths(lines)]
                    widths = [each for each in widths if each[1]]
                    next_line = sep.join(after or ())
                    return TextHeader(
                        names, n_blank, after is None, encoding, line, next_line, tuple(widths)
                    )
        except csv.Error as error:
            raise DataError(f"{name_of(file)} cannot be read: its first lines: {error}.") from None
        if next(lines, None) is not None:
            raise DataError(
                f"{name_of(file)} has no header: its first {MOST_BLANK:,} lines are blank."
            )
    raise DataError(f"{name_of(file)} has no header: all of its lines are blank.")


def _look_at_widths(lines: Any) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the next lines, and how many values each has, while they are sound."""
    try:
        for values in islice(lines, LOOKED_AT):
            yield lines.line_num, len(values)
    except (csv.Error, DataError, UnicodeError):  # whoever reads the rows complains of it
        return


def _name_column(cell: str) -> str:
    """Return the name of a column, as a cell of the header gives it."""
    return unguard_cell(cell.removeprefix("\ufeff").strip())


def _short_lines(text: io.TextIOWrapper, file: Path) -> Iterator[str]:
    """Yield lines; one that does not end is no header, and is not held as a whole."""
    while line := text.readline(LONGEST_HEADER):
        if len(line) == LONGEST_HEADER:
            raise DataError(
                f"{name_of(file)} cannot be read: its first line has more than "
                f"{LONGEST_HEADER:,} characters."
            )
        yield line


def _complain_of_separator(where: str, header: TextHeader, sep: str | None) -> None:
    """Refuse a file of one column whose name looks like several."""
    name = header.names[0]
    for other in (";", "\t", "|", ","):
        if other in name and other != sep and (header.is_last or other in header.next_line):
            raise DataError(
                Advice(
                    f"{where} has one column, {name[:60]!r}: its columns seem to be separated by "
                    f"{other!r}. Say so with ",
                    Setting("sep", other),
                    ".",
                )
            )


def _complain_of_widths(where: str, header: TextHeader, sep: str) -> None:
    """Refuse lines of one length that have more values than the header, which may come later."""
    last = header.widths[-1:]
    wide = list(takewhile(lambda each: each[1] == last[0][1], reversed(header.widths)))
    n_names = len(header.names)
    if len(wide) < 2 or wide[0][1] <= n_names:
        return
    named = ", ".join(map(repr, header.names[:3])) + (", ..." if n_names > 3 else "")
    raise UnreadableError(
        f"{where}: line {header.line} names {n_names} column{'s' if n_names > 1 else ''}, {named}, "
        f"while lines {wide[-1][0]} to {wide[0][0]} have {wide[0][1]} values each. Delete the "
        f"lines before its header, name every column, or quote the values that hold {sep!r}."
    )


# --- lines that repeat the header -----------------------------------------------------------------


class TitleFinder:
    """Marks the lines of one file that repeat its header, and warns of them.

    Such a line has the name of every column, in any case, in its place. Where each of the names is
    a value in other lines too, it is a row like any other. To know, all columns are read, once, and
    only if the columns that are read anyway make it possible.
    """

    def __init__(
        self, where: str, names: Sequence[str], read_all: Callable[[], Iterable[list[Column]]]
    ) -> None:
        self._where, self._names, self._read_all = where, names, read_all
        self._rows: NDArray[np.int64] | None = None

    def mark(self, columns: list[Column], positions: Sequence[int], start: int) -> list[Column]:
        """Return the columns at some positions of a stretch that begins at row `start`, marked."""
        pairs = zip(columns, positions, strict=True)
        named = sorted(pairs, key=lambda pair: len(pair[0].labels or ()))  # the shortest first
        if len(self._names) < 2 or not all(_places(c, self._names[k]) for c, k in named):
            return columns
        if self._rows is None:
            self._rows = _find_titles(self._read_all(), self._names)
            self._warn(self._rows)
        is_title = np.zeros(len(columns[0].values), bool)
        here = self._rows - start
        is_title[here[(here >= 0) & (here < len(is_title))]] = True
        if not is_title.any():
            return columns
        return [replace(c, is_missing=is_title, is_title=is_title) for c in columns]

    def _warn(self, rows: NDArray[np.int64]) -> None:
        if not len(rows):
            return
        said = "1 line repeats the header and is left out: row"
        if len(rows) > 1:
            said = f"{len(rows):,} lines repeat the header and are left out: rows"
        text = f"{self._where}: {said} {some(rows.tolist())}."
        warnings.warn(text, RepeatedHeaderWarning, stacklevel=2)


def _find_titles(stretches: Iterable[list[Column]], names: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows that repeat the names, unless each name is a value in other rows as well."""
    n_rows, found = 0, [np.empty(0, np.int64)]
    n_named = np.zeros(len(names), np.int64)
    for columns in stretches:
        is_named = [
            np.isin(column.values, _places(column, name))
            for column, name in zip(columns, names, strict=True)
        ]
        n_named += [np.count_nonzero(each) for each in is_named]
        found.append(n_rows + np.flatnonzero(np.logical_and.reduce(is_named)))
        n_rows += len(columns[0].values)
    rows = np.concatenate(found)
    return rows if (n_named == len(rows)).any() else rows[:0]


def _places(column: Column, name: str) -> list[int]:
    """Return the positions of the labels that are the name of the column, in any case."""
    labels, name = enumerate(column.labels or ()), name.casefold()
    return [k for k, label in labels if name in (x := label.casefold()) and _name_column(x) == name]
