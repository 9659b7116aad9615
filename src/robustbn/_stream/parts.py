"""The parts of a table, file by file, and their rows as codes, stretch by stretch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._config import TableConfig
from robustbn._encode import Tally
from robustbn._read.tables import Source, open_table
from robustbn._table import code_block, find_columns, fix_edges, make_coders
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork


@dataclass(frozen=True)
class Part:
    """One file of a table, or the whole of it.

    Parameters
    ----------
    name : its path, or what to call it.
    open : opens it, again and again.
    """

    name: str
    open: Callable[[], Source]


@dataclass(frozen=True, eq=False)
class Block:
    """A stretch of rows of one part.

    Parameters
    ----------
    start : number of its first row in the part.
    n_read : rows in it, those left out included.
    left_out : which of them are left out.
    codes : of the others; shape (n, d).
    """

    start: int
    n_read: int
    left_out: NDArray[np.int64]
    codes: NDArray[np.uint8]

    @property
    def kept(self) -> NDArray[np.int64]:
        """Numbers, in the part, of the rows that are not left out."""
        return self.start + np.delete(np.arange(self.n_read), self.left_out)


def find_parts(table: Any, *, sep: str | None = None, encoding: str = "utf-8") -> list[Part]:
    """Return the parts of a table that can be read more than once.

    Parameters
    ----------
    table : a path, a folder or a pattern; a pyarrow dataset, on any filesystem; a DuckDB relation;
        a frame; or a function that returns a reader or an iterator of record batches, anew at
        every call.
    """
    if isinstance(table, str | os.PathLike):
        from robustbn._read.table_files import find_files, open_files

        root = os.fspath(table)
        return [
            Part(
                str(file), partial(open_files, [file], root, str(file), sep=sep, encoding=encoding)
            )
            for file in find_files(root)
        ]
    if callable(table):
        return [Part("The stream", partial(_open_anew, table))]
    source = open_table(table)
    if source.is_once:
        raise DataError(
            f"{source.where} can be read once only, and two passes are needed. Give a function "
            "that opens it anew, such as lambda: reader, or read it into memory first."
        )
    return [Part(source.where, partial(open_table, table))]


def _open_anew(make: Callable[[], Any]) -> Source:
    import pyarrow as pa

    made = make()
    if isinstance(made, Iterator):
        first = next(made, None)
        if first is None:
            raise DataError("The stream has no batches, so not even its columns are known.")
        made = pa.RecordBatchReader.from_batches(first.schema, _chain(first, made))
    return open_table(made)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


@dataclass(frozen=True, eq=False)
class CodeStream:
    """The rows of every part as codes, as often as asked.

    Parameters
    ----------
    network : whose columns are read.
    parts : of the table; those that cannot be opened are left out already.
    sizes : rows of each part, or None where only reading tells.
    config : how values are read; all cuts are spelled out.
    ignored : columns that are no node of the network.
    skipped : name of each part that cannot be read, and why.
    """

    network: BayesianNetwork
    parts: tuple[Part, ...]
    sizes: tuple[int | None, ...]
    config: TableConfig
    ignored: tuple[str, ...]
    skipped: dict[str, str]

    @property
    def drops_nothing(self) -> bool:
        """Whether every row that is read is kept, or else an error."""
        return self.config.on_unknown == "error" and self.config.on_missing == "error"

    def read(self, part: int, tally: Tally) -> Iterator[Block]:
        """Yield the stretches of a part in order; what is odd is counted in `tally`.

        An unknown or missing value that is to be an error is one at the end of its stretch.
        """
        source = self.parts[part].open()
        positions = find_columns(source, self.network, self.config)
        coders = make_coders(source, self.network, self.config)
        start = 0
        for columns in source.read(positions):
            n = len(columns[0].values)
            codes = np.empty((self.network.n_nodes, n), np.uint8)
            bad = code_block(coders, columns, codes, tally, start)
            if len(bad):
                tally.complain(self.network, source.where, start + n, self.config, coders)
            kept = np.delete(codes.T, bad, axis=0) if len(bad) else codes.T
            yield Block(start, n, bad, kept)
            start += n


def open_stream(
    table: Any,
    network: BayesianNetwork,
    config: TableConfig,
    *,
    on_error: str = "raise",
    sep: str | None = None,
    encoding: str = "utf-8",
) -> CodeStream:
    """Open every part of a table and find its columns.

    Parameters
    ----------
    on_error : "raise", or "skip" to leave out a part that cannot be read; it is told.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error is 'raise' or 'skip'; found {on_error!r}.")
    parts, sizes, skipped = [], [], {}
    ignored: tuple[str, ...] = ()
    for part in find_parts(table, sep=sep, encoding=encoding):
        try:
            source = part.open()
        except DataError as error:
            if on_error == "raise":
                raise
            skipped[part.name] = str(error)
            continue
        positions = find_columns(source, network, config)
        config = fix_edges(source, network, positions, config)
        ignored = tuple(n for k, n in enumerate(source.names or ()) if k not in set(positions))
        parts.append(part)
        sizes.append(source.n_rows)
    if not parts:
        raise DataError(f"No file can be read; the first: {next(iter(skipped.values()))}")
    return CodeStream(network, tuple(parts), tuple(sizes), config, ignored, skipped)
