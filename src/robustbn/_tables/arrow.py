"""Arrow tables, datasets and streams, and every frame that can turn into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from robustbn._core.allocate import out_of_memory
from robustbn._core.protocols import Column
from robustbn._tables.guards import check_array
from robustbn._tables.sources import BLOCK_ROWS, Source, UnreadableError
from robustbn._tables.values import as_objects
from robustbn._tables.written import as_number


def open_arrow(table: Any) -> Source:
    """Return the source of an Arrow table, batch, reader or dataset, or of any other frame."""
    import pyarrow.dataset as ds

    kind = type(table).__module__.partition(".")[0]
    kind = kind if kind in ("pandas", "polars") else "pyarrow"
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return _open_whole(table, kind)
    if isinstance(table, ds.Dataset):
        return naming_table(open_dataset(table, "The dataset"))
    if isinstance(table, pa.RecordBatchReader):
        return _open_stream(table)
    return _open_frame(table, kind)


def open_dataset(dataset: Any, where: str, **settings: Any) -> Source:
    """Return the source of a `pyarrow.dataset.Dataset`; only the columns asked for are read."""
    from robustbn._tables.row_groups import scan

    names = tuple(dataset.schema.names)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        wanted = [names[k] for k in positions]
        for batch in scan(dataset, wanted, BLOCK_ROWS, **settings):
            yield from columns_of(batch)

    kind = getattr(getattr(dataset, "format", None), "default_extname", "")
    n_rows = None if kind in ("csv", "json") else dataset.count_rows()  # text would be parsed
    if n_rows is not None and n_rows < 0:
        raise pa.ArrowInvalid(f"it says that it has {n_rows} rows")
    return Source(
        names, len(names), n_rows, "file", where, read, plain=plain_columns(dataset.schema)
    )


def plain_columns(schema: pa.Schema) -> frozenset[int]:
    """Return the columns whose values are numbers, words or times: no lists, no images."""
    types = pa.types

    def isplain_columns(kind: pa.DataType) -> bool:
        if types.is_dictionary(kind):
            return isplain_columns(kind.value_type)
        is_word = types.is_string(kind) or types.is_large_string(kind)
        is_word = is_word or types.is_string_view(kind) or types.is_boolean(kind)
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        return bool(is_word or is_number or types.is_timestamp(kind) or types.is_date(kind))

    return frozenset(k for k, field in enumerate(schema) if isplain_columns(field.type))


def _open_whole(table: pa.Table, kind: str) -> Source:
    names = tuple(table.column_names)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for batch in table.select(list(positions)).to_batches(max_chunksize=BLOCK_ROWS):
            yield from columns_of(batch)

    plain = plain_columns(table.schema)
    return naming_table(
        Source(names, len(names), table.num_rows, kind, "The table", read, plain=plain)
    )


def _open_stream(reader: pa.RecordBatchReader) -> Source:
    names = tuple(reader.schema.names)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for batch in reader:
            yield from columns_of(batch.select(list(positions)))

    return naming_table(
        Source(names, len(names), None, "pyarrow", "The stream", read, is_once=True)
    )


def _open_frame(frame: Any, kind: str) -> Source:
    """Open a frame through narwhals, or through its Arrow stream where narwhals does not know it.

    Only the columns asked for are handed over; a lazy frame is collected with those alone.
    """
    import narwhals as nw

    known = nw.from_native(frame, pass_through=True)
    if known is frame and not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return _open_stream(pa.RecordBatchReader.from_stream(frame))
    names = tuple(known.collect_schema().names())
    is_lazy = isinstance(known, nw.LazyFrame)
    n_rows = None if is_lazy else len(known)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        chosen = known.select([names[k] for k in positions])
        native = chosen.collect().to_native() if is_lazy else chosen.to_native()
        stream: Any = native if hasattr(native, "__arrow_c_stream__") else chosen.to_arrow()
        for batch in pa.RecordBatchReader.from_stream(stream):
            yield from columns_of(batch)

    return naming_table(Source(names, len(names), n_rows, kind, "The frame", read))


def naming_table(source: Source) -> Source:
    """Return the source with errors of Arrow that say which table they are of."""

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        try:
            yield from source.stretches(positions)
        except pa.ArrowMemoryError as error:
            raise out_of_memory(f"Reading {source.where.lower()}", error) from None
        except (pa.ArrowException, UnicodeError) as error:
            said = str(error).strip().rstrip(".")
            raise UnreadableError(f"{source.where} cannot be read: {said}.") from error

    return replace(source, stretches=read)


def columns_of(batch: pa.RecordBatch) -> Iterator[list[Column]]:
    """Yield the columns of a batch in stretches of rows."""
    for start in range(0, batch.num_rows, BLOCK_ROWS):
        stretch = batch.slice(start, BLOCK_ROWS)
        pairs = zip(batch.schema.names, stretch.columns, strict=True)
        yield [column_of(check_array(array, name)) for name, array in pairs]


def column_of(array: pa.Array) -> Column:
    """Return a checked array as a column: text by its distinct values, the rest as it is."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        values, missing = _numbers(array.indices)
        try:
            labels = array.dictionary.to_pylist()
        except OverflowError as error:
            raise pa.ArrowInvalid(f"a category cannot be read: {error}") from None
        return Column(values, labels, missing, is_ordered=kind.ordered)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column_of(_find_distinct(array))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values, missing = _numbers(array)
        return Column(values, None, missing)
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return _column_of_times(array)
    if pa.types.is_null(kind):
        return Column(np.full(len(array), -1, np.int8), [])
    if pa.types.is_run_end_encoded(kind):
        return column_of(pc.run_end_decode(array))
    try:
        return Column(as_objects(array.to_pylist()))
    except (OverflowError, ValueError) as error:  # a day beyond the last that Python knows
        raise pa.ArrowInvalid(f"a value of type {kind} cannot be read: {error}") from None


def parse_numbers(labels: Sequence[str], for_missing: Iterable[str] = ()) -> NDArray[np.float64]:
    """Return texts as numbers; NaN for words, and for those that stand for a missing value."""
    texts = pc.utf8_trim_whitespace(pa.array(labels, pa.string()))
    missing = pc.is_in(texts, value_set=pa.array(list(for_missing), pa.string()))
    texts = pc.if_else(missing, pa.scalar(None, pa.string()), texts)
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:  # a word among them
        found = [as_number(label) for label in labels]
        return np.array([np.nan if number is None else float(number) for number in found])
    return np.array(_view(numbers.fill_null(np.nan)))


def _column_of_times(array: pa.Array) -> Column:
    """Return days or moments, without a Python object for each."""
    is_day = pa.types.is_date32(array.type)
    values, missing = _numbers(array.view(pa.int32() if is_day else pa.int64()))
    unit, zone = ("D", None) if is_day else (array.type.unit, array.type.tz)
    return Column(values.astype(np.int64).view(f"M8[{unit}]"), None, missing, zone)


def _find_distinct(array: pa.Array) -> pa.Array:
    try:
        return array.dictionary_encode()
    except pa.ArrowNotImplementedError:  # views of text, in older versions
        return array.cast(pa.large_string()).dictionary_encode()


def _numbers(array: pa.Array) -> tuple[Any, Any]:
    """Return an array of numbers and which of them are missing, without a copy if none is."""
    if not array.null_count:
        return _view(array), None
    nothing = False if pa.types.is_boolean(array.type) else 0
    return _view(array.fill_null(nothing)), _view(array.is_null())


def _view(array: pa.Array) -> Any:
    """Return numbers without a copy. Arrow's own way imports pandas, which takes half a second."""
    if pa.types.is_boolean(array.type):
        return _view(array.cast(pa.uint8())).view(bool)
    name = str(array.type)
    dtype = np.dtype({"halffloat": "f2", "float": "f4", "double": "f8"}.get(name, name))
    values = array.buffers()[1]
    if values is None or not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(values, dtype, len(array), array.offset * dtype.itemsize)
