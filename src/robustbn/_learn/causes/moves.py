"""Supposed causes that put values into the wrong column: columns shifted, columns swapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import CLEAR, Sides, Suspect

MOST_SWAPPED = 50  # columns, the farthest from good, that may have been swapped
LEAST_SHIFTED = 3  # columns next to each other: two are swapped
ENDS = ((1, 0), (-1, 0), (0, 1), (0, -1), (2, 0), (-2, 0), (0, 2), (0, -2))

Sources = tuple[int, ...]  # for each column the one that its values came from


def find_moved(sides: Sides) -> list[Suspect]:
    """Return columns whose values come from the next or the one before, and pairs swapped."""
    likely, d = _Likely(sides), sides.n_columns
    nats = 2 * float(np.log(max(d, 2)))  # to say which pair, or which two ends
    suspects = []
    for step in (1, -1) if d >= LEAST_SHIFTED else ():
        sources = _find_shift(likely, d, step)
        suspects.append(_try_sources(sides, "shifted columns", sources, nats, {"step": step}))
    swapped = _find_swaps(sides, likely, nats + CLEAR)
    swapped = _climb(swapped, _exchange_partners, likely.gain)
    n_pairs = sum(c < source for c, source in enumerate(swapped))
    if n_pairs:
        suspects.append(_try_sources(sides, "swapped columns", swapped, nats * n_pairs, {}))
    return suspects


def _try_sources(
    sides: Sides, name: str, sources: Sources, nats: float, details: dict[str, int]
) -> Suspect:
    moved = {c: source for c, source in enumerate(sources) if c != source}
    codes, cards = sides.good.codes.copy(), sides.cards
    for c, source in moved.items():
        taken = sides.good.codes[:, source]
        codes[:, c] = np.where(taken < cards[source], taken % cards[c], cards[c])
    return sides.suspect(name, moved, nats, codes, {"sources": moved, **details})


def _climb(
    start: Sources,
    near: Callable[[Sources], Iterator[Sources]],
    gain: Callable[[Sources, Sources], float],
) -> Sources:
    """Return where steps to the best of what is near lead, while that gains."""
    best = start
    while True:
        found = max(((gain(each, best), each) for each in near(best)), default=(0.0, best))
        if found[0] <= 1e-9:
            return best
        best = found[1]


class _Likely:
    """How likely the kind's columns are, alone and along the network's edges, by their sources.

    A value that its new column does not have is taken round its states again.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._alone: dict[tuple[int, int], float] = {}
        self._along: dict[tuple[int, int, int, int], float] = {}
        self._edges_at: list[list[tuple[int, int]]] = [[] for _ in sides.cards]
        for edge in sides.edges:
            for column in edge:
                self._edges_at[column].append(edge)

    def alone(self, column: int, source: int) -> float:
        """Return the log-likelihood of a column's values if they came from another."""
        if (column, source) not in self._alone:
            seen = self._sides.kind.count((column,))
            good = _fold(self._sides.good.count((source,)), seen.shape) + 0.5
            self._alone[column, source] = float(seen @ np.log(good / good.sum()))
        return self._alone[column, source]

    def along(self, one: int, other: int, sources: Sources) -> float:
        """Return what the dependence of their sources says of two columns."""
        key = one, other, sources[one], sources[other]
        if key not in self._along:
            seen = self._sides.kind.together(one, other)
            good = _fold(self._sides.good.together(*key[2:]), seen.shape)
            good = good + 0.05 + 0.5 / good.size
            good = good / good.sum()
            lift = np.log(good / np.outer(good.sum(axis=1), good.sum(axis=0)))
            self._along[key] = float((seen * lift).sum())
        return self._along[key]

    def gain(self, sources: Sources, before: Sources) -> float:
        """Return what the log-likelihood gains by other sources, of the columns that change."""
        pairs = enumerate(zip(sources, before, strict=True))
        return self.gain_at([c for c, (new, old) in pairs if new != old], sources, before)

    def gain_at(self, columns: Sequence[int], sources: Sources, before: Sources) -> float:
        """Return the same if no other columns have another source."""
        single = sum(self.alone(c, sources[c]) - self.alone(c, before[c]) for c in columns)
        edges = {edge for c in columns for edge in self._edges_at[c]}
        return single + sum(
            self.along(*edge, sources) - self.along(*edge, before) for edge in edges
        )

    def list_near(self, columns: Sequence[int]) -> set[int]:
        """Return columns and those that the network's edges join with them."""
        return {*columns}.union(*(edge for c in columns for edge in self._edges_at[c]))

    def swap_alone(self, one: int, other: int) -> float:
        """Return what swapping two columns gains for their states by themselves."""
        gain = self.alone(one, other) + self.alone(other, one)
        return gain - (self.alone(one, one) + self.alone(other, other))


def _fold(table: Vector, shape: tuple[int, ...]) -> Vector:
    """Return a table of another shape: what is past an end begins again."""
    if table.shape == shape:
        return table
    folded = np.zeros(shape)
    places = (np.arange(n) % size for n, size in zip(table.shape, shape, strict=True))
    np.add.at(folded, np.ix_(*places), table)
    return folded


# --- shifted --------------------------------------------------------------------------------------


def _find_shift(likely: _Likely, n_columns: int, step: int) -> Sources:
    """Return columns next to each other whose values were shifted, the last going round."""
    every = range(n_columns)
    alone = [likely.alone(c, (c - step) % n_columns) - likely.alone(c, c) for c in every]

    def shift(ends: tuple[int, ...]) -> Sources:
        moved = every[slice(*ends)]
        return (*every[: ends[0]], *moved[-step:], *moved[:-step], *every[ends[1] :])

    def list_near(ends: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for more, less in ENDS:
            first, last = ends[0] + more, ends[1] + less
            if 0 <= first <= last - LEAST_SHIFTED and last <= n_columns:
                yield first, last

    starts = (0, n_columns), _find_stretch(alone)
    found = [
        _climb(ends, list_near, lambda new, old: likely.gain(shift(new), shift(old)))
        for ends in starts
    ]
    return max(map(shift, found), key=lambda sources: likely.gain(sources, tuple(every)))


def _find_stretch(gain: Sequence[float]) -> tuple[int, int]:
    """Return the ends of the stretch of largest sum, long enough to be a shift."""
    sums = np.concatenate([[0.0], np.cumsum(gain)])
    worth = sums - sums[:, None]
    worth[np.tril_indices(len(sums), LEAST_SHIFTED - 1)] = -np.inf
    return divmod(int(worth.argmax()), len(sums))


# --- swapped --------------------------------------------------------------------------------------


def _find_swaps(sides: Sides, likely: _Likely, least: float) -> Sources:
    """Return pairs of columns whose values were swapped, the clearest pair first."""
    broken, found = sides.broken, tuple(range(sides.n_columns))
    farthest = np.argsort(-broken, kind="stable")[:MOST_SWAPPED]
    offered = [
        (a, b)
        for a, b in combinations(sorted(farthest[broken[farthest] > 0].tolist()), 2)
        if likely.swap_alone(a, b) + float(broken[[a, b]].sum()) > 0
    ]
    gains, changed = dict.fromkeys(offered, 0.0), {*range(sides.n_columns)}
    while gains:
        for pair in gains:  # the others are as they were
            if changed & {*pair}:
                gains[pair] = likely.gain_at(pair, _swap(found, pair), found)
        best = max(gains, key=lambda pair: gains[pair])
        if gains[best] < least:
            break
        found, changed = _swap(found, best), likely.list_near(best)
        gains = {pair: gain for pair, gain in gains.items() if not {*pair} & {*best}}
    return found


def _exchange_partners(found: Sources) -> Iterator[Sources]:
    """Yield the swaps with the partners of two of them exchanged."""
    pairs = [(a, b) for a, b in enumerate(found) if a < b]
    for (a, b), (c, d) in combinations(pairs, 2):
        yield _swap(found, (a, c), (b, d))
        yield _swap(found, (a, d), (b, c))


def _swap(sources: Sources, *pairs: tuple[int, int]) -> Sources:
    swapped = list(sources)
    for a, b in pairs:
        swapped[a], swapped[b] = b, a
    return tuple(swapped)
