"""Packed rows kept for later passes, so that no table is parsed twice: a few bytes a row."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from robustbn._core.allocate import physical_bytes
from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows
from robustbn._rows.kernels import load_kernels
from robustbn._rows.stream.parts import Span
from robustbn.exceptions import CacheError

MOST_BYTES = 3 * 2**28  # held in memory, where no folder is given; and at most this of all memory:
MEMORY_SHARE = 1 / 16


@dataclass(frozen=True, eq=False)
class _Stretch:
    layout: Layout  # values may be missing in other columns of another stretch
    span: Span
    n_rows: int
    n_bytes: int
    start: int  # in the file
    checksum: int
    rows: Rows | None  # if they are in memory


class CodeCache:
    """Packed rows of parts, in memory as far as they go; or in a folder, checksummed."""

    def __init__(self, kernels: str | None, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._kernels = load_kernels(kernels)
        self._stretches: dict[int, list[_Stretch]] = {}
        self._room = min(MOST_BYTES, int(MEMORY_SHARE * physical_bytes()))
        self._file: IO[bytes] | None = None
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._not_written(error) from None

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
            noted = _Stretch(rows.layout, span, rows.n_rows, packed.nbytes, 0, 0, rows)
        else:
            start, checksum = self._write(packed), zlib.crc32(packed.data)
            noted = _Stretch(rows.layout, span, rows.n_rows, packed.nbytes, start, checksum, None)
        if is_first:
            self._stretches[part] = []
        self._stretches[part].append(noted)

    def has(self, part: int) -> bool:
        """Whether the rows of a part are there."""
        return part in self._stretches

    def forget(self, part: int) -> None:
        """Forget the rows of a part; the file keeps its length."""
        for stretch in self._stretches.pop(part, ()):
            self._room += stretch.n_bytes if stretch.rows is not None else 0

    def read(self, part: int, n_threads: int | None) -> Iterator[tuple[Span, Rows]]:
        """Yield the stretches of a part; bytes that changed on disk are refused."""
        for stretch in self._stretches[part]:
            rows = stretch.rows
            if rows is None:
                packed = self._map(stretch)
                rows = self._kernels.restore(stretch.layout, packed, stretch.n_rows, n_threads)
            yield stretch.span, rows

    def close(self) -> None:
        """Remove every part."""
        for part in list(self._stretches):
            self.forget(part)
        if self._file is not None:
            with suppress(OSError):  # of a disk that is full, say; the file goes anyway
                self._file.close()
            self._file = None

    def _write(self, packed: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> int:
        """Append packed rows to the file; return where they start."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(packed.data)
            self._file.flush()
        except OSError as error:
            raise self._not_written(error) from None
        return start

    def _map(self, stretch: _Stretch) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        if not stretch.n_bytes:
            return np.empty(0, np.uint8)
        assert self._file is not None  # noqa: S101 - for the type checker
        try:
            mapped = np.memmap(self._file, np.uint8, "r", stretch.start, (stretch.n_bytes,))
        except (OSError, ValueError) as error:
            raise self._has_changed(f" ({error})") from None
        packed = np.asarray(mapped)
        if zlib.crc32(packed.data) != stretch.checksum:
            raise self._has_changed()
        return packed

    def _has_changed(self, why: str = "") -> CacheError:
        return CacheError(f"The cache in {self.folder} has changed on disk{why}; run again.")

    def _not_written(self, error: OSError) -> CacheError:
        return CacheError(
            f"The cache in {self.folder} cannot be written: {error}. Choose a folder with more "
            "space, or use no cache; the table is then read twice."
        )
