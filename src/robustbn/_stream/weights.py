"""The trust in each row, written beside the data: a file for every file, all or none."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._protocols import RowVector
from robustbn._stream.parts import Block
from robustbn.exceptions import DataError

COLUMNS = ("row", "weight", "is_suspicious")


class WeightFiles:
    """Parquet files with a line a row: row, weight, is_suspicious.

    One table file gives one file; several give a folder with files of the same names. They are
    written under a temporary name and moved into place by `finish`; `discard` removes them.

    Parameters
    ----------
    path : the file or folder to write.
    names : the table's files.
    overwrite : whether what is there may be replaced.
    """

    def __init__(self, path: str | Path, names: Sequence[str], *, overwrite: bool = False) -> None:
        self.path = Path(path)
        if self.path.exists() and not overwrite:
            raise DataError(f"{self.path} exists already; choose another name or overwrite it.")
        if not self.path.parent.is_dir():
            raise DataError(f"{self.path}: there is no folder {self.path.parent}.")
        self.temporary = self.path.with_name(f".{self.path.name}.partial")
        self.is_folder = len(names) > 1
        self.names = _relative(names) if self.is_folder else [""]
        self._writer: Any = None
        self._part = -1
        self._n = 0
        self.discard()

    def add(self, part: int, weights: RowVector, block: Block | None) -> None:
        """Write the weights of the next rows of a part; rows that were left out get none."""
        import pyarrow as pa

        if part != self._part:
            self._close()
            self._open(part)
        rows = self._n + np.arange(len(weights))
        if block is not None:
            rows = block.kept
            self._n = block.start + block.n_read
        else:
            self._n += len(weights)
        table = pa.table(
            {"row": rows, "weight": weights.astype(np.float32), "is_suspicious": weights < 0.5}
        )
        try:
            self._writer.write_table(table)
        except OSError as error:
            self.discard()
            raise DataError(
                f"{self.path} cannot be written: {error}. Nothing was left behind."
            ) from error

    def finish(self) -> None:
        """Move what was written into place."""
        self._close()
        if not self.temporary.exists():
            return
        if self.path.is_dir():
            shutil.rmtree(self.path)
        self.temporary.replace(self.path)

    def discard(self) -> None:
        """Remove what was written so far."""
        self._close(quietly=True)
        if self.temporary.is_dir():
            shutil.rmtree(self.temporary, ignore_errors=True)
        else:
            self.temporary.unlink(missing_ok=True)

    def _open(self, part: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema(
            [("row", pa.int64()), ("weight", pa.float32()), ("is_suspicious", pa.bool_())]
        )
        file = self.temporary
        if self.is_folder:
            file = self.temporary / self.names[part]
            file.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._writer = pq.ParquetWriter(file, schema, compression="zstd")
        except OSError as error:
            raise DataError(f"{self.path} cannot be written: {error}.") from error
        self._part, self._n = part, 0

    def _close(self, *, quietly: bool = False) -> None:
        writer, self._writer, self._part = self._writer, None, -1
        if writer is None:
            return
        try:
            writer.close()
        except OSError as error:
            if not quietly:
                self.discard()
                raise DataError(
                    f"{self.path} cannot be written: {error}. Nothing was left behind."
                ) from error


def _relative(names: Sequence[str]) -> list[str]:
    """Return the files' names below the folder they share, each ending in .parquet."""
    import os

    root = os.path.commonpath([str(Path(name).parent) for name in names])
    return [str(Path(name).relative_to(root).with_suffix(".parquet")) for name in names]
