"""Outputs: checked before the work begins, written under other names, moved into place together."""

from __future__ import annotations

import csv
import io
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli import ENDING
from robustbn._cli.screen import CannotWriteError
from robustbn._core.file_names import inner_suffix, url_of
from robustbn._core.formulas import FORMULA, PLAIN_NUMBER, guard_cell

if TYPE_CHECKING:
    import pyarrow as pa

    from robustbn.network import BayesianNetwork

TABLES = (".parquet", ".pq", ".csv", ".tsv", ".arrow", ".feather")
PACKABLE = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
CODECS = {
    ".snappy": "snappy", ".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd",
    ".lz4": "lz4", ".br": "brotli", ".brotli": "brotli",
}  # fmt: skip
ROWS_TO_WRITE = 2**16
RAW = "robustbn.raw_csv"  # in the context of a command


class Outputs:
    """The files that a command will write."""

    def __init__(self, force: bool, inputs: Iterable[str | None] = ()) -> None:
        self._force = force
        self._inputs = {Path(path).resolve() for path in inputs if path is not None}
        self._paths: dict[str, Path] = {}
        self._staged: list[tuple[Path, Path]] = []
        self._made: list[Path] = []

    def plan(
        self, name: str, path: str | Path | None, kinds: Sequence[str] = (), in_new: bool = False
    ) -> None:
        """Note an output and refuse it now if it could not be written later."""
        if path is None:
            return
        url = url_of(path)
        if url is not None:
            raise click.UsageError(f"{url} is remote: write a local file, and copy it there.")
        path = Path(path)
        target = path.resolve()
        if kinds and not {path.suffix.lower(), _text_suffix(path)} & set(kinds):
            raise click.UsageError(f"{path}: the name must end in one of {', '.join(kinds)}.")
        if target in self._inputs:
            raise click.UsageError(f"{path} is read by this command; write to another file.")
        same = [n for n, other in self._paths.items() if other.resolve() == target]
        if same:
            raise click.UsageError(f"{path} would be written twice: as {same[0]} and as {name}.")
        if target.is_dir():
            raise click.UsageError(f"{path} is a folder; give the name of a file.")
        if target.exists() and not self._force:
            raise click.UsageError(f"{path} already exists; --force replaces it.")
        if not in_new and not target.parent.is_dir():
            raise click.UsageError(f"{path}: the folder {path.parent} does not exist.")
        folder = next(p for p in target.parents if p.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise click.UsageError(f"{path}: the folder {folder} is not writable.")
        self._paths[name] = path

    def paths(self, name: str) -> list[Path]:
        """Return where an output is written: as a file of its own, and among all in a folder."""
        return [self._paths[n] for n in (name, f"folder {name}") if n in self._paths]

    def leave_out(self, name: str) -> list[Path]:
        """Do not write a planned output after all; return where it would have been."""
        left = self.paths(name)
        self._paths = {n: path for n, path in self._paths.items() if path not in left}
        return left

    @property
    def names(self) -> dict[str, str]:
        """The outputs and their paths."""
        return {name: str(path) for name, path in self._paths.items()}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Move all files into place at the end, or none of them if anything goes wrong."""
        try:
            yield
            with _undisturbed():
                for temporary, target in self._staged:
                    if target.exists():
                        temporary.chmod(target.stat().st_mode & 0o777)
                    temporary.replace(target)
                self._staged, self._made = [], []
        except OSError as error:
            raise CannotWriteError(str(error)) from error
        finally:  # what is still staged was not moved
            for temporary, _ in self._staged:
                temporary.unlink(missing_ok=True)
            for folder in self._made:
                with suppress(OSError):
                    folder.rmdir()

    def write(self, name: str, write: Callable[[Path], object]) -> None:
        """Let `write` fill a file with the suffix of the output, wherever that was planned."""
        for path in self.paths(name):
            target = path.resolve()
            new = [folder for folder in target.parents if not folder.exists()]
            self._made = new + self._made  # inner ones first
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.parent / f".robustbn-{os.urandom(6).hex()}-{target.name}"
            self._staged.append((temporary, target))
            try:
                write(temporary)
            except OSError as error:
                why = os.strerror(error.errno) if error.errno else str(error)
                raise CannotWriteError(f"{path} cannot be written: {why}.") from error


def _text_suffix(path: Path) -> str:
    """Return the suffix of a text file, which may be compressed; that of any other file."""
    inner = inner_suffix(path)
    return inner if inner in PACKABLE else path.suffix.lower()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C, and other signals that end a command, for a moment."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, signal.SIG_IGN) for each in ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def network_suffixes() -> tuple[str, ...]:
    """Return how the name of a network that is written may end."""
    from robustbn._networks import FORMATS

    return (*(s for s, name in FORMATS.items() if name != "edges"), ".gz")


def try_to_write(network: BayesianNetwork, path: Path, **settings: Any) -> None:
    """Refuse a format that cannot hold the names of a network, before its tables are learned."""
    import tempfile
    import warnings

    from robustbn._core.expansion import uniform_tables
    from robustbn._networks import write_network

    trial = network.with_cpts(uniform_tables(network.layout))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_network(trial, Path(folder) / path.name, **settings)


# --- tables -------------------------------------------------------------------------------------


def write_columns(columns: Mapping[str, Any], path: Path) -> None:
    """Write columns as a table; the suffix says the format."""
    import pyarrow as pa

    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    write_batches(table.schema, table.to_batches(ROWS_TO_WRITE), path)


def write_codes(
    codes: Any, network: BayesianNetwork, target: Any, keep_codes: bool = False
) -> None:
    """Write rows with their labels to a path, or as CSV to a stream."""
    import pyarrow as pa

    labels = [_label_array(network.states[node]) for node in network.nodes]

    def batch(start: int) -> pa.RecordBatch:
        block = codes[start : start + ROWS_TO_WRITE]
        columns = [
            pa.array(block[:, k])
            if keep_codes
            else pa.DictionaryArray.from_arrays(pa.array(block[:, k]).cast("int32"), names)
            for k, names in enumerate(labels)
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(network.nodes))

    batches = map(batch, range(0, max(len(codes), 1), ROWS_TO_WRITE))
    may_break = any(set(str(s)) & set('",\t\r\n') for n in network.nodes for s in network.states[n])
    write_batches(batch(len(codes)).schema, batches, target, "needed" if may_break else "none")


def _label_array(states: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    kinds = {type(s) for s in states}
    if kinds in ({int}, {float}, {bool}):
        return pa.array(states)
    texts = [str(s).encode("utf-8", "replace").decode() for s in states]
    return pa.array(texts, pa.string())


def write_batches(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    target: Any,
    quotes: str = "needed",
    codec: str | None = None,
) -> None:
    """Write blocks of rows to a path by its suffix, or as CSV to a stream."""
    import pyarrow as pa

    suffix = _text_suffix(target) if isinstance(target, Path) else ".csv"
    if suffix not in (".parquet", ".pq", ".arrow", ".feather", ".ipc"):
        _write_text(schema, batches, target, "\t" if suffix == ".tsv" else ",", quotes)
        return
    how = CODECS.get("".join(target.suffixes[-2:-1]).lower()) or codec
    writer: Any
    if suffix in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        writer = pq.ParquetWriter(str(target), schema, compression=how or "snappy")
    else:
        options = pa.ipc.IpcWriteOptions(compression=how)
        writer = pa.ipc.new_file(str(target), schema, options=options)
    with writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_text(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], target: Any, sep: str, quotes: str
) -> None:
    import pyarrow as pa
    import pyarrow.csv as pv

    fields = [
        pa.field(f.name, f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in schema
    ]
    flat = pa.schema(fields)
    context = click.get_current_context(silent=True)
    is_raw = context is not None and bool(context.meta.get(RAW))
    header = io.StringIO()
    names = schema.names if is_raw else [guard_cell(name) for name in schema.names]
    csv.writer(header, delimiter=sep, lineterminator="\n").writerow(names)
    options = pv.WriteOptions(delimiter=sep, quoting_style=quotes, include_header=False)
    with pa.output_stream(target) if isinstance(target, Path) else nullcontext(target) as file:
        file.write(header.getvalue().encode("utf-8", "replace"))
        with pv.CSVWriter(file, flat, write_options=options) as writer:
            for batch in batches:
                if not is_raw:
                    arrays = [_guard(array) for array in batch.columns]
                    batch = pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
                writer.write_table(pa.Table.from_batches([batch]).cast(flat))


def _guard(array: pa.Array) -> pa.Array:
    """Return cells as they are written: those that a spreadsheet would run after a quote."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, _guard(array.dictionary))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return array
    is_number = pc.match_substring_regex(array, PLAIN_NUMBER)
    runs = pc.and_not(pc.match_substring_regex(array, f"(?s){FORMULA}"), is_number)
    if not pc.any(runs).as_py():
        return array
    quoted = pc.binary_join_element_wise(pa.scalar("'", kind), array, pa.scalar("", kind))
    return pc.if_else(runs, quoted, array)


def raw_option(function: Any) -> Any:
    """Give a command the option of writing cells as they are."""

    def note(context: click.Context, _: click.Parameter, is_raw: bool) -> None:
        context.meta[RAW] = is_raw

    return click.option(
        "--raw-csv",
        is_flag=True,
        expose_value=False,
        callback=note,
        help="Write cells that begin with = + - @ to CSV unchanged, although a spreadsheet may "
        "run them as formulas.",
    )(function)
