"""Rows that appear far more often than the network allows.

Discrete data allow what real vectors do not: among n good rows, a row u is expected n Q(u) times. A
few typical rows copied many times hardly move any spectrum, but no honest table repeats them so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import log_probabilities, normalise_counts
from robustbn._core.layout import Codes, Layout, take_rows
from robustbn._core.protocols import LoadCodes, Rows, RowVector, Vector
from robustbn._core.row_model import Repeats, RowModel, locate_prints
from robustbn._core.trust import is_even
from robustbn._core.tuning import Tuning
from robustbn._rows.kernels import load_kernels


@dataclass(frozen=True, eq=False)
class Copies:
    """Distinct rows that appear at least three times.

    Parameters
    ----------
    fingerprints : of each, increasing; as the kernels that hold the rows compute them.
    first : a row number at which each appears.
    seen, weight : how often each appears, and what all its copies weigh.
    codes, rows : one copy of each.
    pattern : log of the share of all rows in which the same values are missing.
    places : the numbers of all rows that are the first of them, then the second, and so on.
    """

    fingerprints: NDArray[np.uint64]
    first: NDArray[np.int64]
    seen: NDArray[np.int64]
    weight: Vector
    codes: Codes
    rows: Rows
    pattern: Vector
    places: NDArray[np.int64]

    def weigh(self, repeats: Repeats, n_rows: int) -> RowVector:
        """Return the factor of each row as `Repeats.weigh` does, for repeats that are of these."""
        of_copy, factor = np.ones(len(self.seen), np.float32), np.ones(n_rows, np.float32)
        of_copy[np.searchsorted(self.fingerprints, repeats.fingerprints)] = repeats.factors
        factor[self.places] = np.repeat(of_copy, self.seen)
        return factor


def find_copies(
    prints: NDArray[np.uint64],
    weights: RowVector,
    codes: Codes,
    load: LoadCodes,
    tuning: Tuning,
    *,
    knows_patterns: bool = False,
    most: int = 0,
    kernels: str | None = None,
) -> Copies:
    """Find the rows that appear at least three times. O(N log N) time.

    Parameters
    ----------
    prints, weights, codes : fingerprints of the rows, their weights and their codes.
    load : encodes some of the codes.
    knows_patterns : whether nodes of the network say which values are missing.
    most : copies of a row that speak against none; it has to appear more often.
    kernels : that look for fingerprints which occur several times.
    """
    least = max(tuning.copies_seen, most + 1)
    found = load_kernels(kernels).find_copied(prints, least)
    first, seen, one_each = found.first, found.seen, take_rows(codes, found.first)
    weight = seen.astype(np.float64)
    if not is_even(weights):
        place = np.repeat(np.arange(len(seen)), seen)
        weight = np.bincount(place, weights[found.rows], len(seen)).astype(np.float64)
    rows, pattern = load(one_each), np.ones(len(seen))
    if rows.layout.holed and not knows_patterns:
        pattern = share_patterns(rows.layout, codes, first)
    log_pattern = np.log(pattern)
    return Copies(found.prints, first, seen, weight, one_each, rows, log_pattern, found.rows)


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
    shares: Vector = n[place] / len(codes)
    return shares


def find_repeats(
    copies: Copies,
    counts: Vector,
    n_rows: float,
    trust: RowVector,
    tuning: Tuning,
    most_surplus: float = np.inf,
) -> Repeats | None:
    """Find the rows whose number of copies cannot be chance.

    A row seen c times where lam = n Q(u) are expected is reported when the Poisson tail bound
    `exp(-(c log(c / lam) - c + lam))` is below `N^-1.35`, with some slack for lam, which is itself
    estimated. Taking its surplus away changes Q and n, so that is repeated until nothing changes:
    O(copies) a step. Copies are few steps away. Where a network is so small that its common rows
    are counted, and the tables do not quite fit, each step finds more of them and never ends: then
    there is no telling, and None is returned. So it is where more is in surplus than bad rows can
    be: an edge that is missing from a network of three nodes makes most rows too many.

    Parameters
    ----------
    counts, n_rows : weighted counts of all rows, shape (M,), and what they weigh.
    trust : share of its weight that each of `copies` has in those counts.
    most_surplus : the most that bad rows may weigh.
    """
    layout = copies.rows.layout
    seen = np.maximum(copies.weight, 1e-12)
    factors, expected = np.ones(len(seen)), seen.copy()
    most = 0.0
    for step in range(tuning.copies_steps if len(seen) else 0):
        gone = (1 - factors) * seen * trust
        kept = counts - copies.rows.count(gone)
        q = normalise_counts(layout, np.maximum(kept, 0), 1e-3)
        log_q = copies.rows.project(log_probabilities(q)[:, None])[:, 0].astype(np.float64)
        expected = (n_rows - float(gone.sum())) * np.exp(log_q + copies.pattern)
        before, factors = factors, _hold_to(expected, seen, n_rows, tuning)
        surplus = float((seen * (1 - factors)).sum())
        if step == 0:
            most = tuning.copies_runaway * max(surplus, tuning.copies_few * n_rows)
        if surplus > min(most, most_surplus):
            return None
        if np.abs((factors - before) * seen).sum() < tuning.copies_settled * n_rows:
            break
    return _repeats_of(copies, factors, expected)


def find_repeats_of_mixture(
    copies: Copies, model: RowModel, n_rows: float, tuning: Tuning
) -> Repeats:
    """Find the rows that appear too often by what all components together expect.

    For rows that one network's tables do not describe: its common rows would seem copied.
    """
    expected = n_rows * np.exp(model.log_density(copies.rows) + copies.pattern)
    factors = _hold_to(expected, np.maximum(copies.weight, 1e-12), n_rows, tuning)
    return _repeats_of(copies, factors, expected)


def _hold_to(expected: Vector, seen: Vector, n_rows: float, tuning: Tuning) -> Vector:
    """Return the share of its weight that each row keeps if it is held to what is expected."""
    likely = tuning.copies_slack * np.maximum(expected, 1e-12)
    too_many = is_no_chance(seen, likely, n_rows, tuning)
    return np.where(too_many, np.minimum(1, expected / seen), 1.0)


def _repeats_of(copies: Copies, factors: Vector, expected: Vector) -> Repeats:
    found = factors < 1
    return Repeats(
        copies.fingerprints[found],
        factors[found],
        copies.first[found],
        copies.seen[found],
        expected[found],
        copies.codes[found],
    )


def is_no_chance(seen: Vector, lam: Vector, n_rows: float, tuning: Tuning) -> NDArray[np.bool_]:
    """Return which counts are too large for their Poisson means."""
    surprise = seen * np.log(seen / lam) - seen + lam
    is_rare: NDArray[np.bool_] = surprise > tuning.copies_surprise * np.log(max(n_rows, 2.0))
    return (seen > lam) & is_rare
