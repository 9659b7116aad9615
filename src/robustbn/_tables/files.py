"""Tables in files: CSV, TSV, Parquet, Arrow, JSON lines; one file, a folder, or a pattern."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.allocate import out_of_memory
from robustbn._core.file_names import did_you_mean, inner_suffix, name_of, say_special
from robustbn._core.protocols import Column
from robustbn._tables.arrow import columns_of, open_dataset, plain_columns
from robustbn._tables.guards import open_unpacked, require_modest_parquet, require_shallow
from robustbn._tables.here import EXCEL, find_here, read_workbook
from robustbn._tables.ipc import open_ipc, values_of_folders
from robustbn._tables.sources import Source, UnreadableError, chain_files
from robustbn._tables.text import open_text
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
FIRST_BYTES = 2**20  # by which the kinds of JSON are decided, as Arrow does
CHANGED = re.compile(r"JSON parse error: Column\(/([^/)]+)[^)]*\) changed")


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
    """Return the source of files; folders below `root` may hold columns, such as `year=2024`."""
    suffix = inner_suffix(files[0])
    try:
        if suffix in TEXT:
            return open_text(files, where, TEXT[suffix] if sep is None else sep, encoding)
        if DATASETS[suffix] == "ipc":
            return open_ipc(files, where, find_folders(files, root))
        if DATASETS[suffix] == "json":
            return _open_json(files, root, where)
        dataset = make_dataset(files, root, where)
        source = open_dataset(dataset, where)
        if len(files) == 1:
            return source
        return replace(
            source, file_rows=lambda: [(f.path, f.count_rows()) for f in dataset.get_fragments()]
        )
    except UNREADABLE as error:
        raise unreadable(where, error) from None


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


def unreadable(where: str, error: Exception, *, is_file: bool = True) -> RobustBNError:
    """Return the error for a table that is damaged, or a file that is not what its name says."""
    if isinstance(error, MemoryError):
        return out_of_memory(f"Reading {where if is_file else where.lower()}", error)
    if isinstance(error, PermissionError):
        return UnreadableError(f"{where}: no permission to read it.")
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, UnicodeEncodeError):
        text = "its header is not UTF-8"  # its bytes were kept, and are no letters
    text = re.sub(r"^Error creating dataset.* input source '.*?': (Invalid: )?", "", text)
    said = f"{where} cannot be read: {text.rstrip('.')}."
    if not is_file:
        return UnreadableError(said)
    advice = Advice("It may be truncated, or not be what its name says.")
    if "UTF8" in text or "UTF-8" in text or isinstance(error, UnicodeError):
        such_as = Setting("encoding", "latin-1")
        advice = Advice("If it is text, it has another encoding; name it, such as ", such_as, ".")
    elif "Empty CSV" in text:
        advice = Advice("There is not even a header.")
    elif re.search(r"CSV parse error: (Row #\d+: )?Expected", text):
        sep = Setting("sep", Either("...", "CHAR"))
        advice = Advice(
            "A line has more or fewer values than the header; ", sep, " sets the column separator."
        )
    elif "JSON parse error: Column" in text:
        advice = Advice("Make its values all text or all numbers.")
    return UnreadableError(Advice(f"{said} ", advice))


def find_files(path: str | Path, *, may_be_empty: bool = False) -> list[Path]:
    """Return the files of a path, a folder or a pattern, in order."""
    found = find_here(path)
    path, text = name_of(found), str(found)
    if not found.exists() and glob.has_magic(text):
        matches = glob.glob(text, recursive=True)  # noqa: PTH207 - Path takes no absolute pattern
        files = _only_files(Path(f) for f in matches)
        if not files:
            raise DataError(Advice(f"{path}: no file matches this pattern.", _query_hint(text)))
    elif found.is_dir():
        if not os.access(found, os.R_OK | os.X_OK):
            raise PermissionError(f"{path} cannot be listed")
        files = _only_files(
            f
            for f in found.rglob("*")
            if not any(p.startswith(("_", ".")) for p in f.relative_to(found).parts)
        )
        if not files:
            raise DataError(f"{path} is a folder without files.")
    elif found.is_file():
        files = [found]
    elif found.exists():
        raise DataError(f"{path} is {say_special(found)}: write it to a file, or use '-'.")
    else:
        hint = _query_hint(text) or did_you_mean(found, TABLE_SUFFIXES)
        raise DataError(Advice(f"{found}: no such file or folder.", hint))
    _check_files(path, files, may_be_empty=may_be_empty)
    return [read_workbook(file) if inner_suffix(file) in EXCEL else file for file in files]


def _only_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files among some paths, in order; refuse what is neither a file nor a folder."""
    listed = list(paths)
    for path in listed:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise DataError(
                f"{name_of(path)} is {say_special(path)}: write it to a file, or take it out of "
                "the folder."
            )
    return sorted(path for path in listed if path.is_file())


def _check_files(path: str, files: list[Path], *, may_be_empty: bool) -> None:
    """Refuse files of unknown or several kinds, and empty ones."""
    for file in files:
        if inner_suffix(file) not in TABLE_SUFFIXES:
            raise _not_a_table(file)
    kinds = sorted({inner_suffix(file) for file in files})
    if len(kinds) > 1:
        raise DataError(
            f"{path} contains files of several kinds ({', '.join(kinds)}). Name one, such as "
            f"{Path(path) / ('*' + kinds[0])}."
        )
    for file in files:
        if file.stat().st_size == 0 and not may_be_empty:
            raise DataError(f"{name_of(file)} is empty (0 bytes): there is not even a header.")


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
        hint = Advice(" If it is one anyway, give the format: ", csv, ".")
    return DataError(
        Advice(f"{path} is not a supported table format; supported are {KNOWN}.", hint)
    )


def make_dataset(files: list[Path], root: str, where: str, *, by_words: bool = True) -> Any:
    """Return Parquet files as a pyarrow dataset; errors name them."""
    import pyarrow.dataset as ds

    try:
        for file in files:
            require_modest_parquet(file)
        schema = ds.dataset(str(files[0]), format="parquet").schema
        texts = [
            f.name
            for f in schema
            if by_words and (pa.types.is_string(f.type) or pa.types.is_large_string(f.type))
        ]
        checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        how = ds.ParquetFileFormat(dictionary_columns=texts, default_fragment_scan_options=checked)
        return _make_dataset(files, root, how)
    except UNREADABLE as error:
        raise unreadable(where, error) from None


def _make_dataset(files: list[Path], root: str, how: Any) -> Any:
    import pyarrow.dataset as ds

    names, base = [str(f) for f in files], _fixed_part(root)
    keys = list(values_of_folders(files[0], base))
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


def sound_batches(batches: Iterable[pa.RecordBatch], where: str) -> Iterator[pa.RecordBatch]:
    """Yield batches of which every column may be used, whole; an error names the file."""
    try:
        for batch in batches:
            batch.validate(full=True)
            yield batch
    except UNREADABLE as error:
        raise unreadable(where, error) from None


# --- JSON lines: a column that changes its kind is left out ---------------------------------------


def _open_json(files: list[Path], root: str, where: str) -> Source:
    """Return the source of JSON lines, without the columns in which values change their kind."""
    for file in files:
        require_shallow(file)
    damaged: dict[str, str] = {}
    try:
        dataset = _make_dataset(files, root, "json")
        schema, fragments = dataset.schema, list(dataset.get_fragments())
    except pa.ArrowInvalid as error:
        schema, damaged = _leave_out_changed(files[0], where, error)

    def read_file(k: int, positions: Sequence[int]) -> Iterator[list[Column]]:
        import pyarrow.json as pj

        wanted = pa.schema([schema.field(p) for p in positions])
        if damaged:
            how = pj.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
            batches = (
                b.select(wanted.names) for b in pj.open_json(str(files[k]), parse_options=how)
            )
        else:
            batches = fragments[k].to_batches(schema=schema, columns=wanted.names)
        for batch in batches:
            yield from columns_of(batch)

    read, file_rows = chain_files(files, read_file)
    names, plain = tuple(schema.names), plain_columns(schema)
    source = Source(names, len(names), None, "file", where, read, file_rows=file_rows)
    return replace(source, plain=plain, damaged=damaged)


def _leave_out_changed(
    file: Path, where: str, error: pa.ArrowInvalid
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns that do not change their kind, and why the others cannot be read."""
    import pyarrow.json as pj

    damaged: dict[str, str] = {}
    while True:
        found = CHANGED.search(str(error))
        if found is None or found[1] in damaged or not hasattr(pj, "open_json"):
            raise error
        said = "JSON parse error: " + str(error).strip().partition("JSON parse error: ")[2]
        why = f"{where} cannot be read: {said}. Make its values all text or all numbers."
        damaged[found[1]] = why
        try:
            return _infer_schema(file, damaged), damaged
        except pa.ArrowInvalid as next_error:
            error = next_error


def _infer_schema(file: Path, damaged: dict[str, str]) -> Any:
    """Return the kinds of the other columns, by the first lines."""
    import pyarrow.json as pj

    with open_unpacked(file) as stream:
        text = stream.read(FIRST_BYTES)
    lines = text.splitlines()
    if len(text) == FIRST_BYTES and len(lines) > 1:
        lines = lines[:-1]  # the last may be cut off
    try:
        records = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise pa.ArrowInvalid(f"JSON parse error: {error}") from None
    kept = ({n: v for n, v in record.items() if n not in damaged} for record in records)
    return pj.read_json(pa.BufferReader("\n".join(map(json.dumps, kept)).encode())).schema
