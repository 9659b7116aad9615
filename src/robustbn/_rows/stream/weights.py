"""The trust in each row, written beside the data: a file for every file, all or none."""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.file_names import names_below
from robustbn._core.protocols import RowVector
from robustbn._rows.stream.lock import holding
from robustbn._tables.aside import beside
from robustbn.exceptions import DataError

PARQUET = (".parquet", ".pq")


@contextmanager
def writing_weights(
    path: str | os.PathLike[str] | None, table: Any, names: Sequence[str]
) -> Iterator[WeightFiles | None]:
    """Yield what writes weights, if they are wanted; whatever is not finished then is removed.

    Parameters
    ----------
    path, names : as in `WeightFiles`. The path is for one run at a time, which holds a lock on it.
    table : the rows, among which no weights are written.
    """
    if path is None:
        yield None
        return
    _refuse_among_rows(path, table)
    place = Path(path)
    if not place.parent.is_dir():
        raise DataError(f"{place}: there is no folder {place.parent}.")
    lock = place.with_name(f".{place.name}.lock")
    with holding(lock, os.fspath(path)) as is_alone:
        files = WeightFiles(path, names, is_alone=is_alone)
        try:
            yield files
        finally:
            files.discard()


class WeightFiles:
    """Parquet files with a line a row: row, weight, is_suspicious; before them its names, if any.

    One table file gives one file; several give a folder with files of the same names, in the same
    folders. They are written under a temporary name and moved into place by `finish`; `discard`
    removes them.

    Parameters
    ----------
    path : the file or folder to write; it must not be there.
    names : the table's files.
    is_alone : whether no other run writes there: what killed runs left is removed.
    """

    def __init__(
        self, path: str | os.PathLike[str], names: Sequence[str], *, is_alone: bool
    ) -> None:
        self.path = Path(path)
        self._refuse_if_there()
        self.temporary = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:8]}.partial")
        own = f".{glob.escape(self.path.name)}.{'[0-9a-f]' * 8}.partial"
        for left_over in self.path.parent.glob(own) if is_alone else ():
            if not left_over.is_symlink():
                _remove(left_over)
        self.is_folder = len(names) > 1
        self.names = _relative(names) if self.is_folder else [""]
        self._writer: Any = None

    def begin(self, file: int, names: Mapping[str, Any] | None = None) -> None:
        """Begin the weights of a file of the table.

        Parameters
        ----------
        names : columns that rows keep, and what Arrow calls their kind.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        own = {"row": pa.int64(), "weight": pa.float32(), "is_suspicious": pa.bool_()}
        kinds = {name: _lasting(kind) for name, kind in (names or {}).items()}
        schema = pa.schema(list(beside(kinds, own).items()))
        try:
            place = self._place(file)
            place.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(
                place,
                schema,
                compression="zstd",
                use_dictionary=["weight"],
                column_encoding={"row": "DELTA_BINARY_PACKED"},
                write_page_checksum=True,
            )
        except OSError as error:
            raise self._not_written(error) from None

    def add(
        self, first_row: int, weights: RowVector, names: Mapping[str, Any] | None = None
    ) -> None:
        """Write the weights of the next rows of the file; those of rows left out are NaN."""
        import pyarrow as pa

        kinds = self._writer.schema.types
        columns = [
            *(array.cast(kind) for array, kind in zip((names or {}).values(), kinds, strict=False)),
            pa.array(np.arange(first_row, first_row + len(weights))),
            pa.array(weights.astype(np.float32, copy=False)),
            pa.array(weights < 0.5),
        ]
        try:
            self._writer.write_table(pa.table(columns, schema=self._writer.schema))
        except OSError as error:
            raise self._not_written(error) from None

    def end(self) -> None:
        """End the weights of the file."""
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close()
        except OSError as error:
            raise self._not_written(error) from None

    def finish(self) -> None:
        """Move what was written into place."""
        self.end()
        self._refuse_if_there()
        try:
            self.temporary.replace(self.path)
        except OSError as error:
            raise self._not_written(error) from None

    def _refuse_if_there(self) -> None:
        if os.path.lexists(self.path):
            raise DataError(f"{self.path} exists already; choose another name or remove it.")

    def discard(self) -> None:
        """Remove what was written so far."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):  # of a disk that is full, say; the file goes anyway
                writer.close()
        _remove(self.temporary)

    def _place(self, file: int) -> Path:
        return self.temporary / self.names[file] if self.is_folder else self.temporary

    def _not_written(self, error: OSError) -> DataError:
        self.discard()
        return DataError(f"{self.path} cannot be written: {error}. Nothing was left behind.")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _lasting(kind: Any) -> Any:
    """Return the kind of a column by which all its stretches can be written."""
    import pyarrow as pa

    is_open = pa.types.is_null(kind) or pa.types.is_decimal(kind)
    return pa.string() if is_open else kind


def _refuse_among_rows(path: str | os.PathLike[str], table: Any) -> None:
    """Refuse to write into the folder of a table: its next reader would take it for rows."""
    if not isinstance(table, str | os.PathLike):
        return
    if not Path(table).is_dir():
        pattern = os.path.abspath(os.fspath(table))  # noqa: PTH100 - it need not be a path
        if fnmatch(os.path.abspath(os.fspath(path)), pattern):  # noqa: PTH100
            raise DataError(
                f"{path} is among the files that {table} names, and would be read as rows next "
                "time. Write it elsewhere."
            )
        return
    folder, place = Path(table).resolve(), Path(path).resolve()
    if folder in place.parents:
        below = place.relative_to(folder).parts
        if not any(name.startswith(("_", ".")) for name in below):
            raise DataError(
                f"{path} lies in the folder of the table, {table}, and would be read as rows of it "
                f"next time. Write it elsewhere, or give it a name that is passed over, such as "
                f"{Path(table) / ('_' + below[0])}."
            )


def _relative(names: Sequence[str]) -> list[str]:
    """Return the files' names below the folder they share, each ending as Parquet files do.

    A store may hold any names, such as those with `..` in them: what leads elsewhere is refused.
    """
    try:
        root = os.path.commonpath([os.path.dirname(name) for name in names])  # noqa: PTH120
        below = [os.path.relpath(name, root) if root else name for name in names]
        names_below(below)
    except ValueError as error:
        raise DataError(
            f"Weights cannot be written by the names of these files: {error}. Rename them, or "
            "leave weights_to out."
        ) from None
    return [name if Path(name).suffix in PARQUET else f"{name}.parquet" for name in below]
