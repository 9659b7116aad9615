"""Packed rows kept for later passes, so that no table is parsed twice: a few bytes a row."""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robustbn._core.allocate import physical_bytes
from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows
from robustbn._rows.kernels import load_kernels
from robustbn._rows.stream.parts import Span
from robustbn.exceptions import CheckpointError

MOST_BYTES = 3 * 2**28  # held in memory, where no folder is given; and at most this of all memory:
MEMORY_SHARE = 1 / 16


@dataclass(frozen=True, eq=False)
class _Stretch:
    layout: Layout  # values may be missing in other columns of another stretch
    span: Span
    n_rows: int
    n_bytes: int
    checksum: int
    rows: Rows | None  # if they are in memory


class CodeCache:
    """Packed rows of parts, in memory as far as they go; or in a folder, checksummed.

    Parameters
    ----------
    kernels : that packs the rows; NumPy's has no packed form and is not cached.
    folder : made if it is not there; for one run at a time, which holds a lock on it. What a run
        that was ended has left is removed. None: in memory.
    """

    def __init__(self, kernels: str | None, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._kernels = load_kernels(kernels)
        self._stretches: dict[int, list[_Stretch]] = {}
        self._run = uuid.uuid4().hex[:8]  # no file of another run has such a name
        self._room = min(MOST_BYTES, int(MEMORY_SHARE * physical_bytes()))
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                for left_over in self.folder.glob("rows-*.packed"):
                    left_over.unlink()
            except OSError as error:
                raise _not_written(self.folder, error) from None

    def add(self, part: int, span: Span, rows: Rows) -> None:
        """Keep the next stretch of a part; without room for it, none of that part."""
        packed = getattr(rows, "packed", None)
        if packed is None:
            return
        is_first = span.start == 0
        if not is_first and part not in self._stretches:  # there was no room for those before
            return
        if self.folder is None:
            self._room -= packed.nbytes
            if self._room < 0:
                self.forget(part)
                self._room = 0  # nor is there for others: they are read again
                return
            noted = _Stretch(rows.layout, span, rows.n_rows, packed.nbytes, 0, rows)
        else:
            self._write(part, packed, is_first=is_first)
            checksum = zlib.crc32(packed.data)
            noted = _Stretch(rows.layout, span, rows.n_rows, packed.nbytes, checksum, None)
        if is_first:
            self._stretches[part] = []
        self._stretches[part].append(noted)

    def has(self, part: int) -> bool:
        """Whether the rows of a part are there."""
        return part in self._stretches

    def forget(self, part: int) -> None:
        """Remove the rows of a part."""
        for stretch in self._stretches.pop(part, ()):
            self._room += stretch.n_bytes if stretch.rows is not None else 0
        if self.folder is not None:
            self._file(part).unlink(missing_ok=True)

    def read(self, part: int, n_threads: int | None) -> Iterator[tuple[Span, Rows]]:
        """Yield the stretches of a part; bytes that changed on disk are refused."""
        start = 0
        for stretch in self._stretches[part]:
            rows = stretch.rows
            if rows is None:
                packed = self._map(part, start, stretch)
                rows = self._kernels.restore(stretch.layout, packed, stretch.n_rows, n_threads)
            yield stretch.span, rows
            start += stretch.n_bytes

    def clear(self) -> None:
        """Remove every part."""
        for part in list(self._stretches):
            self.forget(part)
        if self.folder is not None:
            for left_over in self.folder.glob("rows-*.packed"):
                left_over.unlink(missing_ok=True)

    def _write(
        self, part: int, packed: np.ndarray[tuple[int], np.dtype[np.uint8]], *, is_first: bool
    ) -> None:
        file = self._file(part)
        try:
            with file.open("wb" if is_first else "ab") as opened:
                opened.write(packed.data)
        except OSError as error:
            raise _not_written(file, error) from None

    def _map(
        self, part: int, start: int, stretch: _Stretch
    ) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        file = self._file(part)
        if not stretch.n_bytes:
            return np.empty(0, np.uint8)
        try:
            packed = np.asarray(np.memmap(file, np.uint8, "r", start, (stretch.n_bytes,)))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{file} has changed on disk ({error}); run again.") from None
        if zlib.crc32(packed.data) != stretch.checksum:
            raise CheckpointError(f"{file} has changed on disk; run again.")
        return packed

    def _file(self, part: int) -> Path:
        assert self.folder is not None  # noqa: S101 - for the type checker
        return self.folder / f"rows-{self._run}-{part:06}.packed"


def _not_written(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"The cache {path} cannot be written: {error}. Choose a folder with more room, or leave "
        "the cache out: the table is then read twice."
    )
