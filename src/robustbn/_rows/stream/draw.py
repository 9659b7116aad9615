"""Rows drawn evenly while they pass by, whatever their number turns out to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes

LARGEST_KEY = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some rows of a part.

    Parameters
    ----------
    numbers : among all rows of the table, increasing.
    codes : shape (n, d).
    keys : by which they were chosen: the smallest of all; empty if they were chosen beforehand.
    """

    numbers: NDArray[np.int64]
    codes: Codes
    keys: NDArray[np.uint64]


def pick(chosen: NDArray[np.int64], numbers: NDArray[np.int64], codes: Codes) -> Drawn:
    """Return the rows of a stretch that were chosen beforehand; both numbers increase."""
    low, high = np.searchsorted(chosen, [numbers[0], numbers[-1] + 1]) if len(numbers) else (0, 0)
    mine = chosen[low:high]
    return Drawn(mine, codes[mine - numbers[0]] if len(mine) else codes[:0], np.empty(0, np.uint64))


class KeyedRows:
    """The rows with the smallest keys among those that passed by, and as many others.

    Parameters
    ----------
    n_most : how many rows are wanted.
    n_nodes : columns of their codes.
    limit : rows with a larger key are not among them for certain.
    """

    def __init__(self, n_most: int, n_nodes: int, limit: np.uint64 = LARGEST_KEY) -> None:
        self.n_most, self.n_nodes, self.limit = n_most, n_nodes, limit
        self.drawn: list[Drawn] = []
        self._n_rows = 0

    def offer(self, seed: int, numbers: NDArray[np.int64], codes: Codes) -> None:
        """Take in those rows of a stretch that may be wanted."""
        keys = keys_of(numbers, seed)
        chosen = keys <= self.limit
        self.add(Drawn(numbers[chosen], codes[chosen], keys[chosen]))

    def add(self, drawn: Drawn) -> None:
        """Take in rows; of more than twice as many as are wanted, the others are dropped."""
        self.drawn.append(drawn)
        self._n_rows += len(drawn.keys)
        if self._n_rows > 2 * self.n_most:
            kept = self.smallest()
            self.drawn, self._n_rows = [kept], len(kept.keys)
            self.limit = kept.keys.max()

    def smallest(self) -> Drawn:
        """Return the rows that are wanted."""
        return keep_smallest(join(self.drawn, self.n_nodes), self.n_most)


def keep_smallest(drawn: Drawn, n_most: int) -> Drawn:
    """Return the rows with the smallest keys, in order of their numbers."""
    if len(drawn.keys) <= n_most:
        return drawn
    chosen = np.sort(np.argpartition(drawn.keys, n_most)[:n_most])
    return Drawn(drawn.numbers[chosen], drawn.codes[chosen], drawn.keys[chosen])


def join(drawn: list[Drawn], n_nodes: int) -> Drawn:
    """Return the rows of several stretches as one."""
    if not drawn:
        empty = np.empty((0, n_nodes), np.uint8)  # joins codes of either type
        return Drawn(np.empty(0, np.int64), empty, np.empty(0, np.uint64))
    return Drawn(
        np.concatenate([d.numbers for d in drawn]),
        np.concatenate([d.codes for d in drawn]),
        np.concatenate([d.keys for d in drawn]),
    )


def keys_of(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return a random-looking number for each row: a function of its number and the seed."""
    offset = np.random.default_rng(seed).integers(2**63)
    z = (numbers.astype(np.uint64) + np.uint64(offset)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
