"""Tables in files: CSV, TSV, Parquet, Arrow, JSON lines; one file, a folder, or a pattern."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.allocate import out_of_memory
from robustbn._core.file_names import did_you_mean, inner_suffix, name_of, say_special
from robustbn._core.formulas import unguard_cell
from robustbn._core.protocols import Column
from robustbn._tables.arrow import columns_of, open_dataset
from robustbn._tables.guards import open_unpacked, require_modest_parquet, require_shallow
from robustbn._tables.header import (
    TextHeader,
    TitleFinder,
    complain_of_separator,
    complain_of_widths,
    find_encoding,
    read_header,
)
from robustbn._tables.here import EXCEL, find_here, read_workbook
from robustbn._tables.ipc import open_ipc, values_of_folders
from robustbn._tables.json_lines import open_without_changed
from robustbn._tables.sources import Source, UnreadableError
from robustbn._tables.values import nothing_in
from robustbn.exceptions import DataError, RobustBNError

TEXT = {".csv": ",", ".tsv": "\t", ".txt": None}
DATASETS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".jsonl": "json",
    ".ndjson": "json",
}
KNOWN = ".csv and .tsv (also .gz, .zst, .bz2), .parquet, .arrow, .feather, .jsonl, .xlsx"
TABLE_SUFFIXES = (*TEXT, *DATASETS, *EXCEL)  # suffixes of tables
UNREADABLE = (pa.ArrowException, OSError, UnicodeError)
UNSAFE = (".pkl", ".pickle", ".joblib", ".npy", ".npz")


def open_file(path: str, *, sep: str | None, encoding: str) -> Source:
    """Return the source of a path: a file, a folder of files of one kind, or a pattern."""
    found = find_here(path)
    where = name_of(found)
    try:
        files = find_files(found)
    except OSError as error:  # a folder that may not be entered
        raise unreadable(where, error) from None
    return open_files(files, str(found), where, sep=sep, encoding=encoding)


def open_files(
    files: list[Path], root: str, where: str, *, sep: str | None, encoding: str
) -> Source:
    """Return the source of some files.

    Parameters
    ----------
    root : the path they were found by: folders below it may hold columns, such as `year=2024`.
    where : what to call them in messages.
    """
    suffix = inner_suffix(files[0])
    try:
        if suffix in TEXT:
            return _open_text(files, where, TEXT[suffix] if sep is None else sep, encoding)
        if DATASETS[suffix] == "ipc":
            return naming_file(open_ipc(files, where, find_folders(files, root)))
        for file in files:
            (require_modest_parquet if has_row_groups(files) else require_shallow)(file)
        try:
            dataset = _make_dataset(files, root, DATASETS[suffix])
        except pa.ArrowInvalid as error:
            if DATASETS[suffix] != "json":
                raise
            return naming_file(open_without_changed(files, where, error))
        source = open_dataset(dataset, where)
        if len(files) > 1 and is_packed(files):
            source = replace(source, file_rows=lambda: _rows_of_fragments(dataset))
        elif len(files) > 1:
            source = _counting_rows(source, dataset)
        return naming_file(source)
    except UNREADABLE as error:
        raise unreadable(where, error) from None


def _rows_of_fragments(dataset: Any) -> list[tuple[str, int]]:
    """Return the file of each fragment and how many rows it has, by what its end says."""
    return [(fragment.path, fragment.count_rows()) for fragment in dataset.get_fragments()]


def _counting_rows(source: Source, dataset: Any) -> Source:
    """Return the source of files that do not say how many rows they have: they are counted."""
    n_rows: dict[str, int] = {}

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        wanted = [dataset.schema.names[k] for k in positions]
        n_rows.clear()
        for fragment in dataset.get_fragments():
            n_rows[fragment.path] = 0
            for batch in fragment.to_batches(schema=dataset.schema, columns=wanted):
                n_rows[fragment.path] += batch.num_rows
                yield from columns_of(batch)

    return replace(source, stretches=read, file_rows=lambda: list(n_rows.items()))


def find_folders(files: Sequence[Path], root: str) -> list[dict[str, str]]:
    """Return, of each file, the columns that its folders hold the value of."""
    base = _fixed_part(root)
    return [values_of_folders(file, base) for file in files]


def has_row_groups(files: Sequence[Path]) -> bool:
    """Whether files are Parquet, of which parts can be read alone."""
    return DATASETS.get(inner_suffix(files[0])) == "parquet"


def is_packed(files: list[Path]) -> bool:
    """Whether files say how many rows they have without being read, unlike text."""
    return inner_suffix(files[0]) not in TEXT and DATASETS[inner_suffix(files[0])] != "json"


def unreadable(path: str, error: Exception) -> RobustBNError:
    """Return the error for a file that is damaged or is not what its name says."""
    if isinstance(error, MemoryError):
        return out_of_memory(f"Reading {path}", error)
    if isinstance(error, PermissionError):
        return UnreadableError(f"{path}: no permission to read it.")
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    text = re.sub(r"^Error creating dataset.* input source '.*?': (Invalid: )?", "", text)
    advice = Advice("It may be truncated, or not be what its name says.")
    if "UTF8" in text or "UTF-8" in text or isinstance(error, UnicodeError):
        such_as = Setting("encoding", "latin-1")
        advice = Advice("Its text is in another encoding: name it, such as ", such_as, ".")
    elif "Empty CSV" in text:
        advice = Advice("There is not even a header.")
    elif "CSV parse error: Expected" in text:
        sep = Setting("sep", Either("...", "CHAR"))
        advice = Advice(
            "A line has more or fewer values than the header; ", sep, " sets what parts them."
        )
    elif "JSON parse error: Column" in text:
        advice = Advice("Make its values all text or all numbers.")
    return UnreadableError(Advice(f"{path} cannot be read: {text.rstrip('.')}. ", advice))


def find_files(path: str | Path, *, may_be_empty: bool = False) -> list[Path]:
    """Return the files of a path, a folder or a pattern, in order.

    Parameters
    ----------
    may_be_empty : whether a file of 0 bytes is passed over; it is an error otherwise.
    """
    found = find_here(path)
    path, text = name_of(found), str(found)
    if not found.exists() and glob.has_magic(text):
        matches = glob.glob(text, recursive=True)  # noqa: PTH207 - Path takes no absolute pattern
        files = sorted(_only_files(Path(f) for f in matches))
        if not files:
            raise DataError(Advice(f"{path}: no file matches this pattern.", _query_hint(text)))
    elif found.is_dir():
        if not os.access(found, os.R_OK | os.X_OK):
            raise PermissionError(f"{path} cannot be listed")
        files = sorted(
            _only_files(
                f
                for f in found.rglob("*")
                if not any(p.startswith(("_", ".")) for p in f.relative_to(found).parts)
            )
        )
        if not files:
            raise DataError(f"{path} is a folder without files.")
    elif found.is_file():
        files = [found]
    elif found.exists():
        raise DataError(f"{path} is {say_special(found)}: write it to a file, or use '-'.")
    else:
        raise _not_there(found)
    _check_files(path, files, may_be_empty=may_be_empty)
    return [read_workbook(file) if inner_suffix(file) in EXCEL else file for file in files]


def _only_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among some paths; refuse what is neither a file nor a folder."""
    for path in paths:
        if path.is_file():
            yield path
        elif path.exists() and not path.is_dir():
            raise DataError(
                f"{name_of(path)} is {say_special(path)}: write it to a file, or take it out of "
                "the folder."
            )


def _check_files(path: str, files: list[Path], *, may_be_empty: bool) -> None:
    """Refuse files of unknown or several kinds, and empty ones."""
    for file in files:
        if inner_suffix(file) not in TABLE_SUFFIXES:
            raise _not_a_table(file)
    kinds = sorted({inner_suffix(file) for file in files})
    if len(kinds) > 1:
        raise DataError(
            f"{path}: files of several kinds ({', '.join(kinds)}). Name one, such as "
            f"{Path(path) / ('*' + kinds[0])}."
        )
    for file in files:
        if file.stat().st_size == 0 and not may_be_empty:
            raise DataError(f"{name_of(file)} is empty (0 bytes): there is not even a header.")


def _not_there(path: Path) -> DataError:
    hint = _query_hint(str(path)) or did_you_mean(path, TABLE_SUFFIXES)
    return DataError(Advice(f"{path}: no such file or folder.", hint))


def _query_hint(text: str) -> Either | str:
    is_query = " " in text and "select" in text.lower()
    return Either(" For a query, give its database too: connection=...", "") if is_query else ""


def _not_a_table(file: Path) -> DataError:
    path = name_of(file)
    if inner_suffix(file) in UNSAFE:
        return DataError(
            f"{path} is refused: files of this kind may run code when they are opened. Load it "
            "yourself if you trust it, and pass the table."
        )
    hint = Advice(did_you_mean(file, TABLE_SUFFIXES) if path == str(file) else "")
    if not str(hint):
        csv = Setting("format", "csv")
        hint = Advice(" If it is one all the same, say which: ", csv, ".")
    return DataError(Advice(f"{path} is not a table that can be read; known are {KNOWN}.", hint))


def make_dataset(files: list[Path], root: str, where: str, *, by_words: bool = True) -> Any:
    """Return files of one kind as a pyarrow dataset; errors name them.

    Pages of Parquet that carry a checksum are checked.

    Parameters
    ----------
    by_words : whether text is read by its distinct values.
    """
    try:
        for file in files if has_row_groups(files) else ():
            require_modest_parquet(file)
        return _make_dataset(files, root, DATASETS[inner_suffix(files[0])], by_words=by_words)
    except UNREADABLE as error:
        raise unreadable(where, error) from None


def _make_dataset(files: list[Path], root: str, kind: str, *, by_words: bool = True) -> Any:
    import pyarrow.dataset as ds

    names = [str(f) for f in files]
    how: Any = kind
    if kind == "parquet":
        schema = ds.dataset(names[0], format="parquet").schema
        texts = [
            f.name
            for f in schema
            if by_words and (pa.types.is_string(f.type) or pa.types.is_large_string(f.type))
        ]
        checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        how = ds.ParquetFileFormat(dictionary_columns=texts, default_fragment_scan_options=checked)
    base = _fixed_part(root)
    keys = _keys_of_folders(files[0], base)
    if not keys:
        return ds.dataset(names, format=how)
    folders = ds.partitioning(pa.schema([(key, pa.string()) for key in keys]), flavor="hive")
    return ds.dataset(
        names, format=how, partitioning=folders, partition_base_dir=str(base.absolute())
    )


def _fixed_part(where: str) -> Path:
    """Return the folder that a path is, or that its pattern starts from."""
    path = Path(where)
    if path.is_dir():
        return path
    folders = [p for p in path.parents if not glob.has_magic(str(p)) or p.is_dir()]
    return folders[0]


def _keys_of_folders(file: Path, root: Path) -> list[str]:
    """Return the names of columns that folders such as `year=2024` hold the values of."""
    return [part.partition("=")[0] for part in file.relative_to(root).parts[:-1] if "=" in part]


def naming_file(source: Source) -> Source:
    """Return the source with errors of reading that name the file."""

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        try:
            yield from source.stretches(positions)
        except UNREADABLE as error:
            raise unreadable(source.where, error) from None

    return replace(source, stretches=read)


def sound_batches(batches: Iterable[pa.RecordBatch], where: str) -> Iterator[pa.RecordBatch]:
    """Yield batches of which every column may be used, whole; an error names the file."""
    try:
        for batch in batches:
            batch.validate(full=True)
            yield batch
    except UNREADABLE as error:
        raise unreadable(where, error) from None


def _open_text(files: list[Path], where: str, sep: str | None, encoding: str) -> Source:
    """Return the source of text files; every value is text, so that no type is guessed.

    Columns are those of the first file; in others they are found by name, and empty if they are not
    there.
    """
    mark = sep or ","
    headers = [read_header(file, mark, find_encoding(file, encoding)) for file in files]
    names = headers[0].names
    if len(names) == 1:
        complain_of_separator(where, headers[0], sep)
    for file, header in zip(files, headers, strict=True):
        complain_of_widths(name_of(file), header, mark)
    differ = any(header.names != names for header in headers)
    own = {name_of(f): h.names for f, h in zip(files, headers, strict=True)} if differ else {}
    n_rows = dict.fromkeys(map(str, files), 0)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        n_rows.update(dict.fromkeys(n_rows, 0))
        for file, header in zip(files, headers, strict=True):
            read_file = partial(_read_text, file, mark, header, names)
            titles = TitleFinder(name_of(file), names, partial(read_file, range(len(names))))
            for columns in read_file(positions):
                start = n_rows[str(file)]
                n_rows[str(file)] += len(columns[0].values)
                yield titles.mark(columns, positions, start)

    file_rows = (lambda: list(n_rows.items())) if len(files) > 1 else None
    source = Source(names, len(names), None, "file", where, read, is_text=True, file_rows=file_rows)
    return naming_file(replace(source, headers=own))


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
