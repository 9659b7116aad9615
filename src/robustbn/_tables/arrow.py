"""Arrow tables, datasets and streams, and every frame that can turn into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from robustbn._core.protocols import Column
from robustbn._tables.number_forms import as_number
from robustbn._tables.sources import BLOCK_ROWS, Source
from robustbn._tables.values import as_objects, nothing_in

LARGEST_GROUP = 2**22  # rows of a row group that is decoded as a whole
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def open_arrow(table: Any) -> Source:
    """Return the source of an Arrow table, batch, reader or dataset, or of any other frame."""
    import pyarrow.dataset as ds

    if isinstance(table, ds.Dataset):
        return open_dataset(table, "The dataset")
    if isinstance(table, pa.RecordBatchReader):
        return _open_stream(table)
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        return _open_frame(table)
    names, plain = tuple(table.column_names), plain_columns(table.schema)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for batch in table.select(list(positions)).to_batches(max_chunksize=BLOCK_ROWS):
            yield from columns_of(batch)

    return Source(names, len(names), table.num_rows, "pyarrow", "The table", read, plain=plain)


def open_dataset(dataset: Any, where: str, **settings: Any) -> Source:
    """Return the source of a `pyarrow.dataset.Dataset`; only the columns asked for are read."""
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

    def is_plain(kind: pa.DataType) -> bool:
        if types.is_dictionary(kind):
            return is_plain(kind.value_type)
        is_word = types.is_string(kind) or types.is_large_string(kind)
        is_word = is_word or types.is_string_view(kind) or types.is_boolean(kind)
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        return bool(is_word or is_number or types.is_timestamp(kind) or types.is_date(kind))

    return frozenset(k for k, field in enumerate(schema) if is_plain(field.type))


def _open_stream(reader: pa.RecordBatchReader) -> Source:
    names = tuple(reader.schema.names)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for batch in reader:
            yield from columns_of(batch.select(list(positions)))

    return Source(names, len(names), None, "pyarrow", "The stream", read, is_once=True)


def _open_frame(frame: Any) -> Source:
    """Open a frame through narwhals, or through its Arrow stream where that does not know it."""
    import narwhals as nw

    known = nw.from_native(frame, pass_through=True)
    if known is frame and not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return _open_stream(pa.RecordBatchReader.from_stream(frame))
    schema, is_lazy = known.collect_schema(), isinstance(known, nw.LazyFrame)
    names, is_polars = tuple(schema.names()), known.implementation.is_polars()

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        wanted = [names[k] for k in positions]
        own = [n for n in wanted if is_polars and schema[n] == nw.Object]  # unknown to Arrow
        rest = [n for n in wanted if n not in own]
        whole: Any = known.select(wanted)
        whole = whole.collect() if is_lazy else whole
        for start in range(0, len(whole), BLOCK_ROWS):
            part = whole[start : start + BLOCK_ROWS]
            found = {n: Column(as_objects(part[n].to_list())) for n in own}
            native = part.select(rest).to_native()
            table = pa.table(native if hasattr(native, "__arrow_c_stream__") else part.to_arrow())
            yield [found[n] if n in own else _column_of_chunks(table[n], n) for n in wanted]

    n_rows, kind = None if is_lazy else len(known), "polars" if is_polars else "pyarrow"
    return Source(names, len(names), n_rows, kind, "The frame", read)


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
        return nothing_in(len(array))
    if pa.types.is_run_end_encoded(kind):
        return column_of(pc.run_end_decode(array))
    try:
        return Column(as_objects(array.to_pylist()))
    except (OverflowError, ValueError) as error:  # a day beyond the last that Python knows
        raise pa.ArrowInvalid(f"a value of type {kind} cannot be read: {error}") from None


def column_of_series(series: Any) -> Column:
    """Return a series of pandas that Arrow knows."""
    array = pa.array(series, from_pandas=True)
    is_chunked = isinstance(array, pa.ChunkedArray)
    return _column_of_chunks(array if is_chunked else pa.chunked_array([array]), str(series.name))


def _column_of_chunks(array: pa.ChunkedArray, name: str) -> Column:
    """Return a column in one piece; its pieces are checked first."""
    chunks = [check_array(chunk, name) for chunk in array.chunks] or [pa.array([], array.type)]
    return column_of(chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks))


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


# --- arrays that may be damaged -------------------------------------------------------------------
#
# Arrow trusts its arrays: offsets that point outside of the text would end the process. Checked is
# what is followed later and no more: ends of buffers (in no time), the offsets of text, and all of
# kinds that are seldom met. Positions among categories are checked in `Source.read`.


def check_array(array: pa.Array, name: str = "") -> pa.Array:
    """Return an array that may be used, or raise `pyarrow.ArrowInvalid`; O(n) for text."""
    try:
        _check(array)
    except pa.ArrowInvalid as error:
        where = f"column {name!r}" if name else "a column"
        raise pa.ArrowInvalid(f"{where} is damaged: {error}") from None
    return array


def _check(array: pa.Array) -> None:
    kind = array.type
    array.validate()
    if pa.types.is_dictionary(kind):
        _check(array.dictionary)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        _check_offsets(array, np.dtype(np.int32))
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        _check_offsets(array, np.dtype(np.int64))
    elif not pa.types.is_primitive(kind):  # views, lists, structures, extensions
        array.validate(full=True)


def _check_offsets(array: pa.Array, dtype: np.dtype[Any]) -> None:
    """Refuse offsets that do not ascend. That the first and the last are inside is known."""
    offsets = array.buffers()[1]
    if offsets is None or not len(array):
        return
    ends = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
    descends = ends[1:] < ends[:-1]
    if descends.any():
        raise pa.ArrowInvalid(f"the text of row {int(descends.argmax())} ends before it begins")


# --- Parquet in parts of a row group --------------------------------------------------------------
#
# Arrow's scanner decodes a row group as a whole, however many rows it has. One that is larger than
# writers make them is therefore read column by column, as many rows at a time as are wanted.


def scan(
    dataset: Any, columns: Sequence[str], batch_size: int, **settings: Any
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a dataset, in batches that may be smaller than asked for."""
    import pyarrow.dataset as ds

    settings |= {"columns": list(columns), "batch_size": batch_size}
    is_filtered = bool(getattr(dataset, "_scan_options", None))
    is_parquet = isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat)
    fragments = [] if is_filtered or not is_parquet else list(dataset.get_fragments())
    is_large = [any(g.num_rows > LARGEST_GROUP for g in f.row_groups) for f in fragments]
    if not any(is_large):
        yield from dataset.to_batches(**settings)
        return
    for fragment, is_split in zip(fragments, is_large, strict=True):
        if is_split:
            yield from _scan_in_parts(fragment, dataset.schema, columns, batch_size)
        else:
            yield from fragment.to_batches(schema=dataset.schema, **settings)


def _scan_in_parts(
    fragment: Any, schema: pa.Schema, columns: Sequence[str], batch_size: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    held = ds.get_partition_keys(fragment.partition_expression)
    wanted = pa.schema([schema.field(name) for name in columns])
    by_words = fragment.format.read_options.dictionary_columns
    checks = fragment.format.default_fragment_scan_options
    how = {
        "read_dictionary": [c for c in fragment.physical_schema.names if c in by_words],
        "page_checksum_verification": checks.page_checksum_verification,
        "buffer_size": 2**20,
    }
    with fragment.open() as raw, pq.ParquetFile(raw, **how) as file:
        for group in fragment.row_groups:
            for batch in file.iter_batches(batch_size, [group.id], columns=columns):
                yield place_columns(batch, wanted, held)


def place_columns(
    batch: pa.RecordBatch, schema: pa.Schema, held: Mapping[str, str]
) -> pa.RecordBatch:
    """Return the columns of a schema: of a batch of all columns, of its folders, or missing."""
    arrays = []
    for k, field in enumerate(schema):
        place = find_field(batch.schema, field.name, k)
        value = held.get(field.name)
        if field.name in held and value != NO_VALUE:
            arrays.append(pa.array([value] * batch.num_rows, field.type))
        elif place < 0 or field.name in held:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            array = batch.column(place)
            if array.type != field.type:
                array.validate(full=True)
                array = array.cast(field.type)
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def find_field(schema: pa.Schema, name: str, position: int) -> int:
    """Return where a column is in a file; -1 if it is not there."""
    if position < len(schema) and schema[position].name == name:
        return position
    return int(schema.get_field_index(name))
