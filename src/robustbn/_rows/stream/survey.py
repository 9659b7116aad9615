"""What a first pass has found so far: counts, what was odd, and rows drawn while they pass by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._tables.coder import Tally

LARGEST_KEY = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some rows of a table.

    Parameters
    ----------
    numbers : among all rows of the table, increasing.
    codes : shape (n, d).
    keys : by which they were chosen: the smallest of all; empty if they were chosen beforehand.
    """

    numbers: NDArray[np.int64]
    codes: Codes
    keys: NDArray[np.uint64]


class EvenDraw:
    """Rows drawn evenly while they pass by, whatever their number turns out to be.

    Each row has a random-looking key, and those with the smallest keys are wanted; a few others are
    held besides.

    Parameters
    ----------
    n_most : how many rows are wanted.
    n_nodes : columns of their codes.
    seed : of the keys.
    chosen : numbers of the rows that are wanted, increasing, if they were chosen beforehand.
    limit : rows with a larger key are not wanted for certain.
    """

    def __init__(
        self,
        n_most: int,
        n_nodes: int,
        seed: int,
        chosen: NDArray[np.int64] | None = None,
        limit: np.uint64 = LARGEST_KEY,
    ) -> None:
        self._n_most, self._n_nodes, self._seed = n_most, n_nodes, seed
        self._chosen, self._limit = chosen, limit
        self._drawn: list[Drawn] = []
        self._n_keyed = 0

    def begin_part(self) -> EvenDraw:
        """Return a draw of its own for rows that may yet be left out; see `take`."""
        return EvenDraw(self._n_most, self._n_nodes, self._seed, self._chosen, self._limit)

    def take(self, of_part: EvenDraw) -> None:
        """Take in the rows that were drawn from a part."""
        for each in of_part._drawn:
            self._add(each)

    def offer(self, numbers: NDArray[np.int64], codes: Codes) -> None:
        """Take in those rows of a stretch that may be wanted."""
        if self._chosen is None:
            keys = _keys_of(numbers, self._seed)
            is_near = keys <= self._limit
            self._add(Drawn(numbers[is_near], codes[is_near], keys[is_near]))
        elif len(numbers):
            low, high = np.searchsorted(self._chosen, [numbers[0], numbers[-1] + 1])
            mine = self._chosen[low:high]
            self._add(Drawn(mine, codes[mine - numbers[0]], np.empty(0, np.uint64)))

    def finish(self) -> Drawn:
        """Return the rows that are wanted, in order of their numbers."""
        nothing = np.empty((0, self._n_nodes), np.uint8)  # joins codes of either type
        drawn = Drawn(
            np.concatenate([np.empty(0, np.int64), *(d.numbers for d in self._drawn)]),
            np.concatenate([nothing, *(d.codes for d in self._drawn)]),
            np.concatenate([np.empty(0, np.uint64), *(d.keys for d in self._drawn)]),
        )
        if len(drawn.keys) <= self._n_most:
            return drawn
        smallest = np.sort(np.argpartition(drawn.keys, self._n_most)[: self._n_most])
        return Drawn(drawn.numbers[smallest], drawn.codes[smallest], drawn.keys[smallest])

    def _add(self, drawn: Drawn) -> None:
        self._drawn.append(drawn)
        self._n_keyed += len(drawn.keys)
        if self._n_keyed > 2 * self._n_most:
            kept = self.finish()
            self._drawn, self._n_keyed = [kept], len(kept.keys)
            self._limit = kept.keys.max()


def _keys_of(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return a random-looking number for each row: a function of its number and the seed."""
    offset = np.random.default_rng(seed).integers(2**63)
    z = (numbers.astype(np.uint64) + np.uint64(offset)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(eq=False)
class Surveyed:
    """The parts that were surveyed.

    Parameters
    ----------
    counts : of all rows, cell by cell.
    draw : rows that were drawn.
    sizes, reads : rows of each part that were kept, and that were read.
    missing, unknown : values of each node.
    incomplete : rows from which a value is missing.
    """

    counts: Vector
    draw: EvenDraw
    sizes: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    incomplete: int = 0

    @property
    def n_rows(self) -> int:
        """Rows that were kept."""
        return sum(self.sizes)

    @property
    def n_read(self) -> int:
        """Rows that were read."""
        return sum(self.reads)

    def add(self, counts: Vector, drawn: EvenDraw, n_kept: int, n_read: int, odd: Tally) -> None:
        """Take in a part."""
        self.counts += counts
        self.sizes.append(n_kept)
        self.reads.append(n_read)
        self.missing.update(odd.missing)
        self.unknown.update(odd.unknown)
        self.incomplete += odd.incomplete
        self.draw.take(drawn)

    def skip_to(self, part: int) -> None:
        """Pass over the parts before one that were not added."""
        n_skipped = part - len(self.sizes)
        self.sizes += [0] * n_skipped
        self.reads += [0] * n_skipped
