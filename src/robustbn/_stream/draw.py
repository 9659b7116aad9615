"""Rows drawn evenly while they pass by, whatever their number turns out to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    codes: NDArray[np.uint8]
    keys: NDArray[np.uint64]


def pick(chosen: NDArray[np.int64], numbers: NDArray[np.int64], codes: NDArray[np.uint8]) -> Drawn:
    """Return the rows of a stretch that were chosen beforehand; both numbers increase."""
    low, high = np.searchsorted(chosen, [numbers[0], numbers[-1] + 1]) if len(numbers) else (0, 0)
    mine = chosen[low:high]
    return Drawn(mine, codes[mine - numbers[0]] if len(mine) else codes[:0], np.empty(0, np.uint64))


def pick_by_key(
    seed: int, numbers: NDArray[np.int64], codes: NDArray[np.uint8], n_most: int
) -> Drawn:
    """Return the rows of a stretch with the smallest keys, at most `n_most`."""
    return keep_smallest(Drawn(numbers, codes, keys_of(numbers, seed)), n_most)


def keep_smallest(drawn: Drawn, n_most: int) -> Drawn:
    """Return the rows with the smallest keys, in order of their numbers."""
    if len(drawn.keys) <= n_most:
        return drawn
    chosen = np.sort(np.argpartition(drawn.keys, n_most)[:n_most])
    return Drawn(drawn.numbers[chosen], drawn.codes[chosen], drawn.keys[chosen])


def join(drawn: list[Drawn], n_nodes: int) -> Drawn:
    """Return the rows of several stretches as one."""
    if not drawn:
        empty = np.empty((0, n_nodes), np.uint8)
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
