"""`fit --clean`: the table itself with the trust in each row, or without the distrusted rows.

Text keeps its bytes: a record is copied as it stands, with one more value at its end. Parquet and
Arrow keep their columns and types. One stretch of rows is held at a time.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from robustbn._cli.files import ROWS_TO_WRITE, Outputs, open_packed, write_batches
from robustbn._core.file_names import inner_suffix
from robustbn._core.trust import DOUBT
from robustbn.exceptions import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from robustbn._cli.fit import Job
    from robustbn._core.protocols import RowVector

TRUST_COLUMN = "robustbn_trust"
LINES_AT_ONCE = 1_000


def plan_clean(outputs: Outputs, table_path: str, options: dict[str, Any]) -> None:
    """Note the output; it has the format of the table."""
    from robustbn._tables.files import find_files

    if options["clean"] is None:
        if options["drop_distrusted"]:
            raise click.UsageError("--drop-distrusted goes with --clean FILE.")
        return
    files = find_files(table_path)
    outputs.plan("clean", options["clean"], (inner_suffix(files[0]),))
    target = Path(options["clean"]).resolve()
    read = [file.resolve() for file in files]
    if target in read or Path(table_path).resolve() in target.parents:
        raise click.UsageError(f"{options['clean']} is among the files that are read.")


def write_clean(job: Job, weights: RowVector, path: Path) -> None:
    """Write the table of a fit, with the trust in each row that was read."""
    from robustbn._tables.files import DATASETS, TEXT, find_files
    from robustbn._tables.header import find_encoding

    files, is_dropping = find_files(job.table_path), job.options["drop_distrusted"]
    suffix = inner_suffix(files[0])
    if suffix in TEXT:
        sep = job.config.sep or TEXT[suffix] or ","
        lines = _add_to_records(files, sep, job.config.encoding, weights, is_dropping)
        _write_lines(lines, path, find_encoding(files[0], job.config.encoding))
    elif DATASETS[suffix] == "json":
        _write_lines(_add_to_objects(files, weights, is_dropping), path, "utf-8")
    else:
        _write_batches(files, job.table_path, weights, path, is_dropping)


def _write_lines(lines: Iterator[str], path: Path, encoding: str) -> None:
    encoder = codecs.getincrementalencoder(encoding)()  # writes a byte order mark where one belongs
    with open_packed(path) as stream:
        while chunk := "".join(islice(lines, LINES_AT_ONCE)):
            stream.write(encoder.encode(chunk))


def _texts(weights: RowVector) -> Iterator[tuple[str, bool]]:
    """Yield the trust in each row as text, empty for a row that was left out; and whether it is."""
    for start in range(0, len(weights), ROWS_TO_WRITE):
        for weight in weights[start : start + ROWS_TO_WRITE].tolist():
            yield ("" if weight != weight else f"{weight:.6g}"), weight >= DOUBT


def _add_to_records(
    files: list[Path], sep: str, encoding: str, weights: RowVector, is_dropping: bool
) -> Iterator[str]:
    """Yield the header once, and each record with its trust; its columns are those of the first."""
    from robustbn._tables.header import find_encoding

    trust = _texts(weights)
    for number, file in enumerate(files):
        records = _records(file, sep, find_encoding(file, encoding))
        header = next(records)
        own = _values(header, sep)
        is_narrow = len(own) == 1
        if number == 0:
            names = own
        elif own != names:
            records = _placed(records, sep, own, names)
        if number == 0:
            yield header if is_dropping else _with_value(header, sep, TRUST_COLUMN)
        for record in records:
            if not record.strip("\r\n") and not is_narrow:
                continue  # the reader passes over blank lines, too
            text, is_trusted = _next(trust, file)
            if is_dropping:
                if is_trusted:
                    yield record if record.endswith(("\n", "\r")) else record + "\n"
            else:
                yield _with_value(record, sep, text)
    _end(trust, files[0])


def _values(record: str, sep: str) -> list[str]:
    return next(csv.reader([record.removeprefix("\ufeff")], delimiter=sep), [])


def _placed(records: Iterator[str], sep: str, own: list[str], names: list[str]) -> Iterator[str]:
    """Yield records with their values in the order of other columns; empty for one they lack."""
    places = {name.strip(): k for k, name in enumerate(own)}
    for record in records:
        values, line = _values(record, sep), io.StringIO()
        if values:
            chosen = (values[places[n.strip()]] if n.strip() in places else "" for n in names)
            csv.writer(line, delimiter=sep, lineterminator="\n").writerow(chosen)
        yield line.getvalue() or record


def _records(file: Path, sep: str, encoding: str) -> Iterator[str]:
    """Yield the records of a text file as they stand; one with quotes may have several lines.

    A value is quoted if it starts with a quote; others may hold quotes that mean nothing.
    """
    import pyarrow as pa

    with (
        pa.input_stream(str(file), compression="detect") as stream,
        io.TextIOWrapper(stream, encoding=encoding, newline="") as text,
    ):
        held: list[str] = []
        is_open, is_first = False, True
        for line in text:
            is_open = _ends_quoted(line, sep, is_open if held else None)
            held.append(line)
            if is_open:
                continue
            if line.strip("\r\n") or not is_first:  # blank lines may come before the header
                yield "".join(held)
                is_first = False
            held.clear()
        if held:
            yield "".join(held)


def _ends_quoted(line: str, sep: str, is_open: bool | None) -> bool:
    """Whether the end of a line is inside of a quoted value.

    Parameters
    ----------
    is_open : whether its start is; None where a record starts.
    """
    at = 0
    if is_open is None:
        at = line.startswith("\ufeff")
        is_open = line.startswith('"', at)
        at += is_open
    while True:
        if is_open:
            at = line.find('"', at) + 1
            if not at:
                return True
            is_open = line.startswith('"', at)  # two quotes stand for one
            at += is_open
        else:
            at = line.find(f'{sep}"', at) + 2
            if at == 1:
                return False
            is_open = True


def _with_value(record: str, sep: str, value: str) -> str:
    body = record.rstrip("\r\n")
    return f"{body}{sep}{value}{record[len(body) :] or chr(10)}"


def _next(trust: Iterator[tuple[str, bool]], file: Path) -> tuple[str, bool]:
    found = next(trust, None)
    if found is None:
        raise DataError(f"{file} has more rows than were read: it has changed since.")
    return found


def _end(trust: Iterator[tuple[str, bool]], file: Path) -> None:
    if next(trust, None) is not None:
        raise DataError(f"{file} has fewer rows than were read: it has changed since.")


def _add_to_objects(files: list[Path], weights: RowVector, is_dropping: bool) -> Iterator[str]:
    """Yield each line of JSON with its trust."""
    trust, name = _texts(weights), json.dumps(TRUST_COLUMN)
    for file in files:
        for line in _lines(file):
            body = line.rstrip()
            if not body:
                continue
            text, is_trusted = _next(trust, file)
            if is_dropping:
                if is_trusted:
                    yield f"{body}\n"
            else:
                inner = body[: body.rindex("}")].rstrip()
                comma = "" if inner.endswith("{") else ", "
                yield f"{inner}{comma}{name}: {text or 'null'}}}\n"
    _end(trust, files[0])


def _lines(file: Path) -> Iterator[str]:
    import pyarrow as pa

    with (
        pa.input_stream(str(file), compression="detect") as stream,
        io.TextIOWrapper(stream, encoding="utf-8") as text,
    ):
        yield from text


def _write_batches(
    files: list[Path], root: str, weights: RowVector, path: Path, is_dropping: bool
) -> None:
    """Write Parquet or Arrow with the schema it had, and the trust as one more column."""
    import pyarrow as pa

    schema, read = _open_batches(files, root)
    wider = schema if is_dropping else schema.append(pa.field(TRUST_COLUMN, pa.float32()))

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in read:
            own = weights[start : start + batch.num_rows].astype(np.float32)
            start += batch.num_rows
            if len(own) != batch.num_rows:
                raise DataError(f"{root} has more rows than were read: it has changed since.")
            if is_dropping:
                yield batch.filter(pa.array(own >= DOUBT))
            else:
                trust = pa.array(own, mask=np.isnan(own))
                yield pa.RecordBatch.from_arrays([*batch.columns, trust], schema=wider)
        if start != len(weights):
            raise DataError(f"{root} has fewer rows than were read: it has changed since.")

    write_batches(wider, batches(), path, codec=_codec_of(files[0]))


def _open_batches(files: list[Path], root: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of Parquet or Arrow files, and their rows, all of which may be used."""
    from robustbn._tables.files import find_folders, make_dataset, sound_batches
    from robustbn._tables.ipc import place_columns, read_batches, read_schema
    from robustbn._tables.row_groups import scan

    if inner_suffix(files[0]) in (".parquet", ".pq"):
        dataset = make_dataset(files, root, root, by_words=False)
        found = scan(dataset, dataset.schema.names, ROWS_TO_WRITE)
        return dataset.schema, sound_batches(found, root)
    folders = find_folders(files, root)
    schema = read_schema(files[0], folders[0])

    def read() -> Iterator[pa.RecordBatch]:
        for file, held in zip(files, folders, strict=True):
            for batch in read_batches(file):
                yield place_columns(batch, schema, held)

    return schema, sound_batches(read(), root)


def _codec_of(file: Path) -> str | None:
    """Return what a Parquet file is compressed with; None for Arrow, and where nothing is."""
    import pyarrow.parquet as pq

    if inner_suffix(file) not in (".parquet", ".pq"):
        return None
    about = pq.read_metadata(file)
    if not about.num_row_groups or not about.num_columns:
        return None
    codec = str(about.row_group(0).column(0).compression).lower()
    return {"uncompressed": "none"}.get(codec, codec)
