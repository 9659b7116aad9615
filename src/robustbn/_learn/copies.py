"""Rows that appear far more often than all that was found so far allows.

Discrete data allow what real vectors do not: among n rows of density f, a row u is expected n f(u)
times. A few typical rows copied many times hardly move any spectrum, but no honest table repeats
them so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout, take_rows
from robustbn._core.protocols import Copied, LoadCodes, Rows, RowVector, Vector
from robustbn._core.row_model import (
    NO_REPEATS,
    Repeats,
    RowModel,
    locate_prints,
    log_sum_exp,
    logistic,
)
from robustbn._core.trust import is_even
from robustbn._learn.gain import find_gain
from robustbn._rows.kernels import load_kernels

LEAST_SEEN = 3  # times: rows seen less often are not looked at
SLACK = 1.5  # times expected: that is estimated, at first with the bad rows


@dataclass(frozen=True, eq=False)
class Copies:
    """Distinct rows that appear at least three times."""

    # of each, increasing; as the kernels that hold the rows compute them
    fingerprints: NDArray[np.uint64]
    first: NDArray[np.int64]  # a row number at which each appears
    # seen, weight: how often each appears, and what all its copies weigh
    seen: NDArray[np.int64]
    weight: Vector
    # codes, rows: one copy of each
    codes: Codes
    rows: Rows
    pattern: Vector  # log of the share of all rows in which the same values are missing
    alike: Vector  # share of the copies of each with the same numbers, before these were cut
    # the numbers of all rows that are the first of them, then the second, and so on
    places: NDArray[np.int64]

    def weigh(self, repeats: Repeats, n_rows: int) -> RowVector:
        """Return the factor of each row as `Repeats.weigh` does, for repeats that are of these."""
        of_copy, factor = np.ones(len(self.seen), np.float32), np.ones(n_rows, np.float32)
        of_copy[self._place(repeats)] = repeats.factors
        factor[self.places] = np.repeat(of_copy, self.seen)
        return factor

    def hold_to(self, model: RowModel, n_rows: float) -> Repeats:
        """Return the rows that appear too often for chance, held to what is expected.

        Rows whose numbers lie in the same intervals are copies only if most of those that are too
        many have the same numbers.

        n_rows : what the rows weigh of which it is the density.
        """
        if not len(self.seen):
            return NO_REPEATS
        expected = self._expect(model, n_rows)
        seen = np.maximum(self.weight, 1e-12)
        found = _charge(_find_surprise(seen, SLACK * expected), seen, n_rows) > 0
        found &= self.alike * seen >= (seen - expected) / 2
        return Repeats(
            self.fingerprints[found],
            np.minimum(1, expected[found] / seen[found]),
            self.first[found],
            self.seen[found],
            expected[found],
            self.codes[found],
        )

    def find_gain(self, repeats: Repeats, model: RowModel, n_rows: float) -> float:
        """Return what it gains, in nats, that rows which come again have numbers of their own.

        What the others gain or lose by it is not in it.
        """
        which = self._place(repeats)
        seen, expected = self.weight[which], self._expect(model, n_rows)[which]
        return float(_charge(seen * np.log(seen / expected), seen, n_rows).sum())

    def find_surprise(self, model: RowModel, n_rows: float) -> Vector:
        """Return how much more often each row appears than is expected, in nats."""
        return _find_surprise(self.weight, self._expect(model, n_rows))

    def find_surplus_of_main(self, repeats: Repeats, model: RowModel) -> float:
        """Return the weight that repeated rows of the main class are too much."""
        odds = model.log_odds_by_component(self.rows)[self._place(repeats)].astype(np.float64)
        main = logistic(-log_sum_exp(odds)) if model.n_others else 1.0
        return float(self.weight[self._place(repeats)] @ ((1 - repeats.factors) * main))

    def find_surplus(self, repeats: Repeats, n_rows: float) -> float:
        """Return the share of all weight that repeated rows are too much."""
        return float(self.weight[self._place(repeats)] @ (1 - repeats.factors)) / max(n_rows, 1.0)

    def _expect(self, model: RowModel, n_rows: float) -> Vector:
        """Return how often each row is expected."""
        log_expected = model.log_density(self.rows) + self.pattern
        return np.maximum(n_rows * np.exp(log_expected), 1e-300)

    def _place(self, repeats: Repeats) -> NDArray[np.int64]:
        return np.searchsorted(self.fingerprints, repeats.fingerprints)


def _find_surprise(seen: Vector, expected: Vector) -> Vector:
    """Return `seen log(seen / expected) - seen + expected` where more is seen, else 0."""
    surprise: Vector = seen * np.log(seen / expected) - seen + expected
    return np.where(seen > expected, surprise, 0.0)


def _charge(brought: Vector, seen: Vector, n_rows: float) -> Vector:
    """Return what numbers of how often rows appear gain; each is of one of all rows: its price."""
    gains: Vector = find_gain(brought, 1, seen, max(n_rows, 2.0))
    return gains


def find_copies(
    prints: NDArray[np.uint64],
    weights: RowVector,
    codes: Codes,
    load: LoadCodes,
    *,
    knows_patterns: bool = False,
    most: int = 0,
    written: NDArray[np.uint64] | None = None,
    kernels: str | None = None,
) -> Copies:
    """Find the rows that appear at least three times. O(N log N) time.

    knows_patterns : whether nodes of the network say which values are missing.
    most : copies of a row that speak against none; it has to appear more often.
    written : prints of the numbers of the rows before they were cut; see `Survey`.
    """
    found = load_kernels(kernels).find_copied(prints, max(LEAST_SEEN, most + 1))
    first, seen, one_each = found.first, found.seen, take_rows(codes, found.first)
    weight = seen.astype(np.float64)
    if not is_even(weights):
        place = np.repeat(np.arange(len(seen)), seen)
        weight = np.bincount(place, weights[found.rows], len(seen)).astype(np.float64)
    rows, pattern = load(one_each), np.zeros(len(seen))
    if rows.layout.holed and not knows_patterns:
        pattern = np.log(share_patterns(rows.layout, codes, first))
    alike = np.ones(len(seen)) if written is None else _share_alike(found, written)
    return Copies(found.prints, first, seen, weight, one_each, rows, pattern, alike, found.rows)


def _share_alike(found: Copied, written: NDArray[np.uint64]) -> Vector:
    """Return the share of each print's rows with the numbers most of them have; 1 if not known."""
    place = np.repeat(np.arange(len(found.seen)), found.seen)
    numbers = written[found.rows]
    place, numbers = place[numbers > 0], numbers[numbers > 0]
    order = np.lexsort((numbers, place))
    place, numbers = place[order], numbers[order]
    is_new = np.append(True, (np.diff(place) > 0) | (numbers[1:] != numbers[:-1]))[: len(place)]
    most = np.zeros(len(found.seen))
    np.maximum.at(most, place[is_new], np.diff(np.append(np.flatnonzero(is_new), len(place))))
    n_known = np.bincount(place, minlength=len(found.seen))
    shares: Vector = np.where(n_known > 0, most / np.maximum(n_known, 1), 1.0)
    return shares


def share_patterns(layout: Layout, codes: Codes, which: NDArray[np.int64]) -> Vector:
    """Return for some rows the share of all rows that miss the same values. O(N) time."""
    if not len(which):
        return np.ones(0)
    packed = np.packbits(codes == np.array(layout.cards), axis=1)
    words = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    prints = np.zeros(len(packed), np.uint64)
    for word in words.view(np.uint64).T:
        prints = (prints ^ word) * np.uint64(0x9E3779B97F4A7C15)
        prints ^= prints >> np.uint64(29)
    wanted, place = np.unique(prints[which], return_inverse=True)
    n = np.bincount(locate_prints(prints, wanted)[1], minlength=len(wanted))
    return n[place] / len(codes)
