"""Names of rows that are read in stretches: all of them while there is room, or those shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from robustbn._tables.aside import join_arrow

if TYPE_CHECKING:
    import pyarrow as pa

MOST_NAME_BYTES = 2**28  # that names of all rows may take; with more, those of rows shown are kept


class NameGatherer:
    """Keeps columns of names.

    Parameters
    ----------
    names : of the columns.
    shown : numbers of the rows that may be shown, in order.
    """

    def __init__(self, names: Sequence[str], shown: NDArray[np.int64]) -> None:
        self._shown = shown
        self._chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
        self._starts: list[int] = []
        self._n_bytes = 0
        self._has_all = True

    def add(self, start: int, arrays: Mapping[str, pa.Array]) -> None:
        """Take the names of the rows from number `start` on."""
        if not self._has_all:
            arrays = {name: self._pick(start, array) for name, array in arrays.items()}
        self._starts.append(start)
        for name, array in arrays.items():
            self._chunks[name].append(array)
        self._n_bytes += sum(array.nbytes for array in arrays.values())
        if self._has_all and self._n_bytes > MOST_NAME_BYTES:
            self._has_all = False
            for name, chunks in self._chunks.items():
                pairs = zip(self._starts, chunks, strict=True)
                self._chunks[name] = [self._pick(first, chunk) for first, chunk in pairs]

    def _pick(self, start: int, array: pa.Array) -> pa.Array:
        """Return the names of those rows of a stretch that may be shown."""
        first, last = np.searchsorted(self._shown, [start, start + len(array)])
        return array.take(self._shown[first:last] - start)

    def finish(self) -> tuple[dict[str, Any], NDArray[np.int64] | None]:
        """Return the names, and the numbers of the rows that have them; None for all."""
        found = {name: join_arrow(chunks) for name, chunks in self._chunks.items()}
        return found, None if self._has_all else self._shown
