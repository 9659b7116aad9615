"""Parquet in parts of a row group.

Arrow's scanner decodes a row group as a whole, however many rows it has. One that is larger than
writers make them is therefore read column by column, as many rows at a time as are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from robustbn._tables.ipc import place_columns

LARGEST_GROUP = 2**22  # rows of a row group that is decoded as a whole


def scan(
    dataset: Any, columns: Sequence[str], batch_size: int, **settings: Any
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a dataset, in batches that may be smaller than asked for.

    Parameters
    ----------
    settings : of Arrow's scanner.
    """
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
