"""Files of JSON lines in which a column changes its kind: read without that column."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from robustbn._core.protocols import Column
from robustbn._tables.arrow import columns_of, plain_columns
from robustbn._tables.guards import open_unpacked
from robustbn._tables.sources import Source

FIRST_BYTES = 2**20  # by which kinds are decided, as Arrow does
CHANGED = re.compile(r"JSON parse error: Column\(/([^/)]+)[^)]*\) changed")


def find_changed(error: Exception) -> str | None:
    """Return the column that an error says has changed its kind, if it does."""
    found = CHANGED.search(str(error))
    return None if found is None else found[1]


def open_without_changed(files: Sequence[Path], where: str, error: pa.ArrowInvalid) -> Source:
    """Return the source of files without the columns that change their kind, or raise the error.

    Parameters
    ----------
    error : that was raised when they were opened.
    """
    import pyarrow.json as pj

    damaged: dict[str, str] = {}
    schema = None
    while schema is None:
        name = find_changed(error)
        if name is None or name in damaged or not hasattr(pj, "open_json"):
            raise error
        said = "JSON parse error: " + str(error).strip().partition("JSON parse error: ")[2]
        damaged[name] = f"{where} cannot be read: {said}. Make its values all text or all numbers."
        try:
            schema = _infer_schema(files[0], damaged)
        except pa.ArrowInvalid as next_error:
            error = next_error

    n_rows = dict.fromkeys(map(str, files), 0)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        wanted = pa.schema([schema.field(k) for k in positions])
        how = pj.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
        for file in n_rows:
            n_rows[file] = 0
            for batch in pj.open_json(file, parse_options=how):
                n_rows[file] += batch.num_rows
                yield from columns_of(batch.select(wanted.names))

    names, plain = tuple(schema.names), plain_columns(schema)
    file_rows = (lambda: list(n_rows.items())) if len(files) > 1 else None
    source = Source(names, len(names), None, "file", where, read, file_rows=file_rows)
    return replace(source, plain=plain, damaged=damaged)


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
