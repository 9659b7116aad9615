"""What `fit` writes beside the network and the report: the tables, the run, the table judged.

`--clean` copies records of text as they stand; Parquet and Arrow keep their columns and types.
"""

from __future__ import annotations

import codecs
import csv
import glob
import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from robustbn._cli.arguments import EXAMPLE
from robustbn._cli.files import ROWS_TO_WRITE, Outputs, write_batches, write_columns
from robustbn._cli.screen import as_json
from robustbn._core.file_names import inner_suffix, name_of
from robustbn._core.trust import DOUBT
from robustbn.exceptions import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from robustbn._cli.fit import Job
    from robustbn._core.protocols import RowVector
    from robustbn._show.result import FitResult

TRUST_COLUMN = "robustbn_trust"
LINES_AT_ONCE = 1_000
OUTPUTS = ("output", "report", "weights", "model", "clean", "output_dir", "force")


def write_cpts(result: FitResult, path: Path) -> None:
    """Write one line per cell: both estimates, their rows, a 95 % interval of the robust one.

    `parents` is `name=state` of each parent, with `; ` between them; `n_eff` the weight of the
    trusted rows that show the configuration.
    """
    from robustbn._show.measures import interval
    from robustbn._show.words import clean_text, name_cells

    network, layout = result.network, result.network.layout
    q, plain = network.probabilities, result.plain_network.probabilities
    n_rows = layout.sum_configurations(result.counts)[layout.config_of_cell]
    low, high = interval(q, n_rows)
    cells = name_cells(network, range(network.n_cells))
    columns: dict[str, Any] = {
        name: [clean_text(str(value)) for value in values] for name, values in cells.items()
    }
    numbers = {"robust": q, "naive": plain, "delta": q - plain}
    write_columns({**columns, **numbers, "n_eff": n_rows, "low": low, "high": high}, path)


def describe_run(
    path: Path, job: Job, result: FitResult, facts: Mapping[str, Any], seconds: Mapping[str, float]
) -> None:
    """Write what was run on what, so that it can be run again."""
    document = {
        "format": "robustbn-run",
        "version": 1,
        "command": job.command_line,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": result.versions,
        "inputs": {"network": hash_files(job.network_path), "table": hash_files(job.table_path)},
        "seed": job.options["seed"],
        "settings": {name: value for name, value in job.options.items() if name not in OUTPUTS},
        "reading": vars(job.config),
        "seconds": dict(seconds),
        "result": {name: value for name, value in facts.items() if name != "files"},
        "files": facts["files"],
    }
    text = json.dumps(as_json(document), indent=1, ensure_ascii=True, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def hash_files(text: str) -> list[dict[str, Any]]:
    """Return name, size and SHA-256 of the files behind an argument."""
    if text.startswith(EXAMPLE):
        return [{"path": text}]
    path, named = Path(text), [Path(text)]
    if not path.is_file():
        named = list(path.rglob("*")) or [Path(p) for p in glob.glob(text, recursive=True)]  # noqa: PTH207
    files = sorted(p for p in named if p.is_file())
    found: list[dict[str, Any]] = []
    for file in files:
        name = name_of(file)
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:  # the fit may have skipped it
            found.append({"path": name, "error": str(error)})
            continue
        found.append({"path": name, "bytes": file.stat().st_size, "sha256": digest})
    return found


# --- the table, judged ----------------------------------------------------------------------------


def plan_clean(outputs: Outputs, table_path: str, options: dict[str, Any]) -> None:
    """Note the output; it has the format of the table."""
    from robustbn._tables.files import find_files

    if options["clean"] is None:
        if options["drop_distrusted"]:
            raise click.UsageError("--drop-distrusted requires --clean FILE.")
        return
    files = find_files(table_path)
    outputs.plan("clean", options["clean"], (inner_suffix(files[0]),))
    target = Path(options["clean"]).resolve()
    read = [file.resolve() for file in files]
    if target in read or Path(table_path).resolve() in target.parents:
        raise click.UsageError(f"{options['clean']} is among the files that are read.")


def write_clean(job: Job, weights: RowVector, path: Path) -> None:
    """Write the table of a fit, with the trust in each row that was read."""
    import pyarrow as pa

    from robustbn._tables.files import TEXT, find_files, is_packed
    from robustbn._tables.text import find_encoding

    files, root = find_files(job.table_path), job.table_path
    suffix, is_dropping = inner_suffix(files[0]), job.options["drop_distrusted"]
    if is_packed(files):
        _write_batches(files, root, weights, path, is_dropping)
        return
    encoding = "utf-8"
    header: Iterable[str] = ()
    add: Callable[[str, str], str]
    if suffix in TEXT:
        sep = job.config.sep or TEXT[suffix] or ","
        records = _read_records(files, sep, job.config.encoding)
        encoding = find_encoding(files[0], job.config.encoding)
        first = next(records)
        header = [first if is_dropping else _with_end(first, f"{sep}{TRUST_COLUMN}")]

        def add(record: str, trust: str) -> str:
            return _with_end(record, f"{sep}{trust}")
    else:
        records, add = _read_objects(files), _with_key

    def lines() -> Iterator[str]:
        yield from header
        for record, weight in _judge(records, weights, root):
            if is_dropping and weight >= DOUBT:
                yield _with_end(record, "")
            elif not is_dropping:
                yield add(record, "" if weight != weight else f"{weight:.6g}")

    encoder = codecs.getincrementalencoder(encoding)()  # writes a byte order mark where one belongs
    written = lines()
    with pa.output_stream(path) as stream:
        while chunk := "".join(islice(written, LINES_AT_ONCE)):
            stream.write(encoder.encode(chunk))


def _judge(records: Iterable[str], weights: RowVector, root: str) -> Iterator[tuple[str, float]]:
    """Yield each record with the trust in it; refuse a table that has changed since."""
    starts = range(0, len(weights), ROWS_TO_WRITE)
    trust = (w for k in starts for w in weights[k : k + ROWS_TO_WRITE].tolist())
    for record, weight in zip_longest(records, trust):
        if record is None or weight is None:
            raise _has_changed(root)
        yield record, weight


def _has_changed(root: str) -> DataError:
    return DataError(
        f"{root} has a different number of rows than before: it changed while it was being read."
    )


def _with_end(record: str, text: str) -> str:
    """Return a record with more text before the end of its line; one without an end gets one."""
    body = record.rstrip("\r\n")
    return f"{body}{text}{record[len(body) :] or chr(10)}"


def _with_key(record: str, trust: str) -> str:
    inner = record[: record.rindex("}")].rstrip()
    comma = "" if inner.endswith("{") else ", "
    return f"{inner}{comma}{json.dumps(TRUST_COLUMN)}: {trust or 'null'}}}\n"


def _read_objects(files: list[Path]) -> Iterator[str]:
    for file in files:
        with _open_text(file, "utf-8") as text:
            yield from (line for line in text if line.strip())


def _open_text(file: Path, encoding: str) -> io.TextIOWrapper:
    import pyarrow as pa

    stream: Any = pa.input_stream(str(file), compression="detect")
    return io.TextIOWrapper(stream, encoding=encoding, newline="")


def _read_records(files: list[Path], sep: str, encoding: str) -> Iterator[str]:
    """Yield the header, and the records of all files with the columns of the first, as text."""
    from robustbn._tables.text import find_encoding

    names: list[str] = []
    for file in files:
        records = split_records(file, sep, find_encoding(file, encoding))
        header, own = next(each for each in records if each[1])  # after blank lines
        if not names:
            names = own
            yield header
        places = {name.strip(): k for k, name in enumerate(own)}
        for record, values in records:
            if not values and len(own) > 1:
                continue  # the reader skips blank lines, too
            if values and own != names:
                line = io.StringIO()
                chosen = [values[places[n.strip()]] if n.strip() in places else "" for n in names]
                csv.writer(line, delimiter=sep, lineterminator="\n").writerow(chosen)
                record = line.getvalue()
            yield record


def split_records(file: Path, sep: str, encoding: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the records of a text file as they stand, and their values; some have several lines."""
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in text:
            taken.append(line)
            yield line.removeprefix("\ufeff")

    csv.field_size_limit(sys.maxsize)
    with _open_text(file, encoding) as text:
        for values in csv.reader(lines(), delimiter=sep):
            yield "".join(taken), values
            taken.clear()


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
                raise _has_changed(root)
            if is_dropping:
                yield batch.filter(pa.array(own >= DOUBT))
            else:
                trust = pa.array(own, mask=np.isnan(own))
                yield pa.RecordBatch.from_arrays([*batch.columns, trust], schema=wider)
        if start != len(weights):
            raise _has_changed(root)

    write_batches(wider, batches(), path, codec=_codec_of(files[0]))


def _open_batches(files: list[Path], root: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of Parquet or Arrow files, and their rows, all of which may be used."""
    from robustbn._tables.arrow import place_columns, scan
    from robustbn._tables.files import find_folders, make_dataset, sound_batches
    from robustbn._tables.ipc import read_batches, read_schema

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
