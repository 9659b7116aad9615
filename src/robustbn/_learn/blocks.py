"""Blocks of rows that come again in the same order: a file that was appended twice, say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import RepeatedBlock

LEAST_ROWS = 10  # of a block: shorter ones are told as single rows, if at all
LEAST_NATS = 20.0  # evidence for a block beyond chance, all pairs of rows considered
MOST_COPIES = 4  # rows with the same print that are paired: more are common rows
MOST_OFFSETS = 20  # distances between a block and its copy that are tried, the most frequent first
LEAST_DISTINCT = 0.5  # share of a block's rows that differ from each other
MOST_BLOCKS = 5  # that are returned, the longest first
GAP = 2  # rows in a row that may differ inside of a block: it was changed here and there

Prints = NDArray[np.uint64]


def find_blocks(prints: Prints) -> list[RepeatedBlock]:
    """Return blocks of rows that come again in the same order, the longest first.

    Pairs of equal rows vote for the distance between them; along each distance with many votes,
    runs of equal rows are looked for. A run of L rows is worth

        L log(1 / c) - 2 log N nats,

    c being the chance that two rows of the table are equal. O(N log N) time.

    Parameters
    ----------
    prints : of the rows, equal where rows are; shape (N,).
    """
    n = len(prints)
    if n < 2 * LEAST_ROWS:
        return []
    order = np.argsort(prints, kind="stable")
    ordered = prints[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, n))
    chance = float((sizes * (sizes - 1.0)).sum() / (n * (n - 1.0)))
    worth = -np.log(np.clip(chance, 1.0 / n**2, 1 - 1e-9))
    size_of = np.repeat(sizes, sizes)
    is_pair = (size_of[:-1] <= MOST_COPIES) & (ordered[1:] == ordered[:-1])
    apart = (order[1:] - order[:-1])[is_pair]
    if not len(apart):
        return []
    offsets, votes = np.unique(apart, return_counts=True)
    likely = np.argsort(-votes, kind="stable")[:MOST_OFFSETS]
    found: list[RepeatedBlock] = []
    for offset in offsets[likely[votes[likely] >= LEAST_ROWS // 2]].tolist():
        found += _find_runs(prints, int(offset), worth, 2 * np.log(n))
    found.sort(key=lambda block: -block.n_rows)
    return _without_overlap(found)[:MOST_BLOCKS]


def _find_runs(prints: Prints, offset: int, worth: float, price: float) -> list[RepeatedBlock]:
    """Return the runs of rows that are equal to those so many rows later."""
    is_same = prints[:-offset] == prints[offset:]
    places = np.flatnonzero(is_same)
    breaks = np.flatnonzero(np.diff(places) > GAP + 1)
    firsts = places[np.append(0, breaks + 1)]
    lasts = places[np.append(breaks, len(places) - 1)]
    found = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        n_rows = last - first + 1
        n_same = int(np.count_nonzero(is_same[first : last + 1]))
        nats = n_same * worth - price
        if n_rows < LEAST_ROWS or n_rows > offset or nats < LEAST_NATS:
            continue
        n_distinct = len(np.unique(prints[first : last + 1]))
        if n_distinct >= LEAST_DISTINCT * n_rows:
            found.append(RepeatedBlock(first, first + offset, n_rows, nats))
    return found


def _without_overlap(blocks: list[RepeatedBlock]) -> list[RepeatedBlock]:
    """Return the blocks whose copies do not lie in the copy of a longer one."""
    kept: list[RepeatedBlock] = []
    for block in blocks:
        end = block.again + block.n_rows
        if all(end <= k.again or block.again >= k.again + k.n_rows for k in kept):
            kept.append(block)
    return kept
