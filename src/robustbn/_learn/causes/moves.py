"""Supposed causes that put values into the wrong column: columns shifted, columns swapped."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import Sides
from robustbn._learn.causes.suspects import Suspect

MOST_SWAPPED = 50  # columns, the farthest from good, that may have been swapped
LEAST_SHIFTED = 3  # columns next to each other: two are swapped
ENDS = ((1, 0), (-1, 0), (0, 1), (0, -1), (2, 0), (-2, 0), (0, 2), (0, -2))

Sources = NDArray[np.int64]  # for each column the one that its values came from


def find_moved(sides: Sides) -> list[Suspect]:
    """Return columns whose values come from the next or the one before, and pairs swapped."""
    sources = _Sources(sides)
    suspects = [_find_shifted(sides, sources, step) for step in (1, -1)]
    suspects.append(_find_swapped(sides, sources))
    return [found for found in suspects if found is not None]


def find_shifted(sides: Sides, least: float) -> list[Suspect]:
    """Return columns whose values come from the next or the one before.

    Parameters
    ----------
    least : nats that the states of the columns, each by itself, must bring.
    """
    sources, d = _Sources(sides), sides.n_columns
    found = []
    for step in (1, -1) if d >= LEAST_SHIFTED else ():
        gain = sources.shifting(step)
        first, last = _best_stretch(gain)
        if sum(gain[first:last]) >= least:
            found.append(_find_shifted(sides, sources, step))
    return [suspect for suspect in found if suspect is not None]


class _Sources:
    """How likely the kind's columns are, alone and along the network's edges, by their sources.

    A value that its new column does not have is taken round its states again.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._alone: dict[tuple[int, int], float] = {}
        self._along: dict[tuple[int, int, int, int], float] = {}
        self.edges_at: list[list[tuple[int, int]]] = [[] for _ in sides.cards]
        for edge in sides.edges:
            for column in edge:
                self.edges_at[column].append(edge)

    def alone(self, column: int, source: int) -> float:
        """Return the log-likelihood of a column's values if they came from another."""
        if (column, source) not in self._alone:
            card = self._sides.cards[column]
            good = _fold(self._sides.of_good.alone(source)[:, None], card, 1)[:, 0] + 0.5
            seen = self._sides.of_kind.alone(column)
            self._alone[column, source] = float(seen @ np.log(good / good.sum()))
        return self._alone[column, source]

    def shifting(self, step: int) -> list[float]:
        """Return what each column by itself gains if its values came from a neighbour."""
        d = self._sides.n_columns
        return [self.alone(c, (c - step) % d) - self.alone(c, c) for c in range(d)]

    def along(self, one: int, other: int, of_one: int, of_other: int) -> float:
        """Return what the dependence of two sources says of two columns."""
        key = (one, other, of_one, of_other)
        if key not in self._along:
            cards = self._sides.cards
            good = _fold(self._sides.of_good.together(of_one, of_other), cards[one], cards[other])
            good = good + 0.05 + 0.5 / good.size
            good = good / good.sum()
            lift = np.log(good / np.outer(good.sum(axis=1), good.sum(axis=0)))
            self._along[key] = float((self._sides.of_kind.together(one, other) * lift).sum())
        return self._along[key]

    def total(self, sources: Sources) -> float:
        """Return the log-likelihood of all columns by their sources."""
        single = sum(self.alone(c, int(s)) for c, s in enumerate(sources))
        return single + sum(
            self.along(a, b, int(sources[a]), int(sources[b])) for a, b in self._sides.edges
        )

    def may_swap(self, one: int, other: int) -> bool:
        """Return whether what is broken at two columns could pay for their states by themselves."""
        gain = self.alone(one, other) + self.alone(other, one)
        gain -= self.alone(one, one) + self.alone(other, other)
        return gain + float(self._sides.broken[[one, other]].sum()) > 0

    def swapping(self, one: int, other: int, sources: Sources) -> float:
        """Return what swapping two columns gains."""
        swapped = sources.copy()
        swapped[one], swapped[other] = other, one
        gain = self.alone(one, other) + self.alone(other, one)
        gain -= self.alone(one, one) + self.alone(other, other)
        for a, b in {*self.edges_at[one], *self.edges_at[other]}:
            gain += self.along(a, b, int(swapped[a]), int(swapped[b]))
            gain -= self.along(a, b, int(sources[a]), int(sources[b]))
        return gain


def _fold(table: Vector, n_lines: int, n_columns: int) -> Vector:
    """Return a table with other numbers of lines and columns: what is past them begins again."""
    for axis, size in ((0, n_lines), (1, n_columns)):
        folded = np.zeros((size, table.shape[1]) if axis == 0 else (table.shape[0], size))
        for start in range(0, table.shape[axis], size):
            part = table[start : start + size] if axis == 0 else table[:, start : start + size]
            folded[: part.shape[0], : part.shape[1]] += part
        table = folded
    return table


def _try_sources(
    sides: Sides, name: str, sources: Sources, columns: Sequence[int], nats: float,
    **details: object,
) -> Suspect:  # fmt: skip
    good, cards = sides.good_codes, np.array(sides.cards)
    columns = [c for c in columns if sources[c] != c]
    spoilt = good.copy()
    for c in columns:
        taken = good[:, sources[c]]
        spoilt[:, c] = np.where(taken < cards[sources[c]], taken % cards[c], cards[c])
    trial = sides.attempt(spoilt, columns)
    details["sources"] = {c: int(sources[c]) for c in columns}
    return Suspect(name, tuple(columns), nats / sides.price, trial, details)


# --- shifted --------------------------------------------------------------------------------------


def _find_shifted(sides: Sides, sources: _Sources, step: int) -> Suspect | None:
    """Return the columns next to each other whose values were shifted, the last going round."""
    d = sides.n_columns
    if d < LEAST_SHIFTED:
        return None
    starts = ((0, d), _best_stretch(sources.shifting(step)))
    ends = {_improve_ends(sources, d, step, first, last) for first, last in starts}
    first, last = max(ends, key=lambda e: sources.total(_shift(d, e[0], e[1], step)))
    return _try_sources(
        sides, "shifted columns", _shift(d, first, last, step), range(first, last),
        2 * float(np.log(d)), step=step,
    )  # fmt: skip


def _best_stretch(gain: Sequence[float]) -> tuple[int, int]:
    """Return the ends of the stretch of largest sum, long enough to be a shift."""
    sums = np.concatenate([[0.0], np.cumsum(gain)])
    best, ends = -np.inf, (0, len(gain))
    for first in range(len(gain) - LEAST_SHIFTED + 1):
        last = int(sums[first + LEAST_SHIFTED :].argmax()) + first + LEAST_SHIFTED
        if sums[last] - sums[first] > best:
            best, ends = sums[last] - sums[first], (first, last)
    return ends


def _shift(n_columns: int, first: int, last: int, step: int) -> Sources:
    sources = np.arange(n_columns)
    sources[first:last] = np.roll(sources[first:last], step)
    return sources


def _improve_ends(
    sources: _Sources, n_columns: int, step: int, first: int, last: int
) -> tuple[int, int]:
    best = sources.total(_shift(n_columns, first, last, step))
    for _ in range(n_columns):
        tried = {}
        for more, less in ENDS:
            a, b = first + more, last + less
            if a >= 0 and b <= n_columns and b - a >= LEAST_SHIFTED:
                tried[a, b] = sources.total(_shift(n_columns, a, b, step))
        if not tried or max(tried.values()) <= best:
            break
        first, last = max(tried, key=lambda e: tried[e])
        best = tried[first, last]
    return first, last


# --- swapped --------------------------------------------------------------------------------------


def _find_swapped(sides: Sides, sources: _Sources) -> Suspect | None:
    """Return pairs of columns whose values were swapped, the clearest pair first."""
    farthest = np.argsort(-sides.broken, kind="stable")[:MOST_SWAPPED]
    offered = sorted(int(c) for c in farthest if sides.broken[c] > 0)
    found, nats = np.arange(sides.n_columns), 2 * float(np.log(max(sides.n_columns, 2)))
    gains = {
        (a, b): sources.swapping(a, b, found)
        for a, b in combinations(offered, 2)
        if sources.may_swap(a, b)
    }
    while gains and max(gains.values()) >= nats + 5:
        a, b = max(gains, key=lambda pair: gains[pair])
        found[a], found[b] = b, a
        beside = {c for edge in (*sources.edges_at[a], *sources.edges_at[b]) for c in edge}
        gains = {
            pair: sources.swapping(*pair, found) if beside & {*pair} else gain
            for pair, gain in gains.items()
            if not {a, b} & {*pair}
        }
    found = _pair_anew(sources, found)
    columns = np.flatnonzero(found != np.arange(len(found))).tolist()
    if not columns:
        return None
    return _try_sources(sides, "swapped columns", found, columns, nats * len(columns) / 2)


def _pair_anew(sources: _Sources, found: Sources) -> Sources:
    """Return the swaps once no two of them are better with their partners exchanged."""
    best = sources.total(found)
    for _ in range(len(found)):
        pairs = [(int(a), int(b)) for a, b in enumerate(found) if a < b]
        tried = [
            _swap(found, ((a, c), (b, d)))
            for one, other in combinations(pairs, 2)
            for (a, b), (c, d) in ((one, other), (one, other[::-1]))
        ]
        totals = [sources.total(each) for each in tried]
        if not totals or max(totals) <= best + 1e-9:
            break
        found, best = tried[int(np.argmax(totals))], max(totals)
    return found


def _swap(found: Sources, pairs: Sequence[tuple[int, int]]) -> Sources:
    swapped = found.copy()
    for a, b in pairs:
        swapped[a], swapped[b] = b, a
    return swapped
