"""Packed rows on disk, so that later passes need not parse again: a few bytes a row, checked."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robustbn._backends import load_backend
from robustbn._layout import Layout
from robustbn._protocols import Rows
from robustbn.exceptions import CheckpointError


class CodeCache:
    """One file a part, memory-mapped when read; a checksum for every stretch.

    Parameters
    ----------
    folder : made if it is not there.
    layout : of the network.
    backend : that packs the rows; NumPy's has no packed form and is not cached.
    """

    def __init__(self, folder: str | Path, layout: Layout, backend: str | None) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._layout = layout
        self._backend = load_backend(backend)
        self._stretches: dict[int, list[tuple[int, int, int]]] = {}

    def add(self, part: int, rows: Rows) -> None:
        """Append a stretch of a part: its rows, bytes and checksum are noted."""
        packed = getattr(rows, "packed", None)
        if packed is None:
            return
        is_first = part not in self._stretches
        with self._file(part).open("wb" if is_first else "ab") as file:
            file.write(packed.data)
        noted = (rows.n_rows, packed.nbytes, zlib.crc32(packed.data))
        self._stretches.setdefault(part, []).append(noted)

    def has(self, part: int) -> bool:
        """Whether the rows of a part are there."""
        return part in self._stretches

    def forget(self, part: int) -> None:
        """Remove the rows of a part."""
        self._stretches.pop(part, None)
        self._file(part).unlink(missing_ok=True)

    def read(self, part: int, n_threads: int | None) -> Iterator[Rows]:
        """Yield the stretches of a part; bytes that changed on disk are refused."""
        file = self._file(part)
        mapped = np.memmap(file, np.uint8, "r")
        start = 0
        for n_rows, n_bytes, checksum in self._stretches[part]:
            packed = np.asarray(mapped[start : start + n_bytes])
            if len(packed) != n_bytes or zlib.crc32(packed.data) != checksum:
                raise CheckpointError(f"{file} has changed on disk; remove it and run again.")
            yield self._backend.restore(self._layout, packed, n_rows, n_threads)
            start += n_bytes

    def clear(self) -> None:
        """Remove every part."""
        for part in list(self._stretches):
            self.forget(part)

    def _file(self, part: int) -> Path:
        return self.folder / f"rows-{part:06}.packed"
