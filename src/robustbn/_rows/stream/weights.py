"""The trust in each row, written beside the data: a file for every file, all or none."""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.elsewhere import names_below
from robustbn._core.protocols import RowVector
from robustbn._tables.aside import beside
from robustbn.exceptions import DataError

PARQUET = (".parquet", ".pq")


class WeightFiles:
    """Parquet files with a line a row: row, weight, is_suspicious; before them its names, if any.

    One table file gives one file; several give a folder with files of the same names, in the same
    folders. They are written under a temporary name and moved into place by `finish`; `discard`
    removes them.

    Parameters
    ----------
    path : the file or folder to write; it must not be there. It is for one run at a time, which
        holds a lock on it.
    names : the table's files.
    run : the run that goes on with what another run has begun, if it has the same; else a new one.
    """

    def __init__(
        self, path: str | os.PathLike[str], names: Sequence[str], run: str | None = None
    ) -> None:
        self.path = Path(path)
        self._refuse_if_there()
        run = uuid.uuid4().hex[:8] if run is None else run
        self.temporary = self.path.with_name(f".{self.path.name}.{run}.partial")
        own = f".{glob.escape(self.path.name)}.{'[0-9a-f]' * 8}.partial"
        for left_over in self.path.parent.glob(own):
            if left_over != self.temporary and not left_over.is_symlink():
                _remove(left_over)
        for found in (self.temporary, *self.temporary.rglob("*")):
            if found.is_symlink():
                raise DataError(f"{found} is a link that robustbn did not make; remove it.")
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

    @property
    def identity(self) -> list[int]:
        """What still tells the files from all others once they are in place."""
        return identify(self.temporary)

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

    def has_whole(self, file: int, n_rows: int) -> bool:
        """Whether an earlier run, that was ended, has written all weights of a file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return bool(pq.read_metadata(self._place(file)).num_rows == n_rows)
        except (OSError, pa.ArrowException):
            return False

    def _place(self, file: int) -> Path:
        return self.temporary / self.names[file] if self.is_folder else self.temporary

    def _not_written(self, error: OSError) -> DataError:
        self.discard()
        return DataError(f"{self.path} cannot be written: {error}. Nothing was left behind.")


def identify(path: Path) -> list[int]:
    """Return what tells a file or folder from all others, whatever its name; empty if none."""
    try:
        found = path.stat()
    except OSError:
        return []
    return [found.st_ino, found.st_mtime_ns]


def lock_of(path: str | os.PathLike[str]) -> Path:
    """Return the file that is locked while weights are written; refuse a folder that is none."""
    place = Path(path)
    if not place.parent.is_dir():
        raise DataError(f"{place}: there is no folder {place.parent}.")
    return place.with_name(f".{place.name}.lock")


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


def refuse_among_rows(path: str | os.PathLike[str], table: Any) -> None:
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
