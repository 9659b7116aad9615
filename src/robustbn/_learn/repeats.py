"""Rows that appear far more often than the network allows.

Discrete data allow what real vectors do not: among n good rows, a row u is expected n Q(u) times. A
few typical rows copied many times hardly move any spectrum, but no honest table repeats them so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import log_probabilities, normalise_counts, sum_over_rows
from robustbn._core.protocols import Rows, RowVector, Vector

MAX_STEPS = 12
RUNAWAY = 2.0  # growth of the surplus; copies made by adversaries stay below 1.7


@dataclass(frozen=True)
class Copies:
    """Distinct rows that appear at least three times.

    Parameters
    ----------
    fingerprints : of each, increasing; as the backend that holds the rows computes them.
    first : a row number at which each appears.
    seen, weight : how often each appears, and what all its copies weigh.
    rows : one copy of each.
    """

    fingerprints: NDArray[np.uint64]
    first: NDArray[np.int64]
    seen: NDArray[np.int64]
    weight: Vector
    rows: Rows


@dataclass(frozen=True)
class Repeats:
    """Which rows appear too often, and the share of its weight that each copy keeps.

    Parameters
    ----------
    fingerprints : of those rows, increasing.
    factors : so that all copies together weigh as much as is expected.
    first, seen, expected : where each appears, how often, and how often it should.
    """

    fingerprints: NDArray[np.uint64]
    factors: Vector
    first: NDArray[np.int64]
    seen: NDArray[np.int64]
    expected: Vector

    def weigh(self, rows: Rows) -> RowVector:
        """Return the factor of each row, 1 for a row that is not among them; shape (N,)."""
        return self.weigh_prints(rows.fingerprints()) if len(self.factors) else _ones(rows.n_rows)

    def weigh_prints(self, prints: NDArray[np.uint64]) -> RowVector:
        """Return the factor of each row from its fingerprint; shape (N,)."""
        factor = _ones(len(prints))
        if len(self.factors):
            found, place = _locate(prints, self.fingerprints)
            factor[found] = self.factors[place]
        return factor


NO_REPEATS = Repeats(
    np.empty(0, np.uint64), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
)


def find_copies(
    prints: NDArray[np.uint64],
    weights: RowVector,
    pick: Callable[[NDArray[np.int64]], Rows],
) -> Copies:
    """Find the rows that appear at least three times. O(N log N) time.

    Parameters
    ----------
    prints, weights : fingerprints of the rows, and their weights; shape (N,).
    pick : returns the rows of given numbers.
    """
    ordered = np.sort(prints)
    is_start = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_start[1:])
    starts = np.flatnonzero(is_start)
    seen = np.diff(starts, append=len(ordered))
    often = seen > 2
    repeated, seen = ordered[starts[often]], seen[often]
    found, place = _locate(prints, repeated)
    first = np.empty(len(repeated), np.int64)
    first[place[::-1]] = found[::-1]  # the last one written is the first that appears
    weight = np.zeros(len(repeated))
    np.add.at(weight, place, weights[found])
    return Copies(repeated, first, seen, weight, pick(first))


def _locate(
    prints: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of `prints` are among `wanted`, which increases, and their places in it.

    A table of the low bits passes over most of the others without a search.
    """
    mask = np.uint64(2**18 - 1)
    might_be = np.zeros(2**18, bool)
    might_be[wanted & mask] = True
    candidates = np.flatnonzero(might_be[prints & mask])
    place = np.searchsorted(wanted, prints[candidates])
    place[place == len(wanted)] = 0
    is_there = (
        wanted[place] == prints[candidates] if len(wanted) else np.zeros(len(candidates), bool)
    )
    return candidates[is_there], place[is_there]


def _ones(n: int) -> RowVector:
    return np.ones(n, np.float32)


def find_repeats(
    copies: Copies, counts: Vector, trust: RowVector, slack: float = 1.02
) -> Repeats | None:
    """Find the rows whose number of copies cannot be chance.

    A row seen c times where lam = n Q(u) are expected is reported when the Poisson tail bound
    `exp(-(c log(c / lam) - c + lam))` is below `N^-1.2`. Taking its surplus away changes Q and n,
    so that is repeated until nothing changes: O(copies) a step. Copies are few steps away. Where a
    network is so small that its common rows are counted, and the tables do not quite fit, each step
    finds more of them and never ends: then there is no telling, and None is returned.

    Parameters
    ----------
    counts : weighted counts of all rows; shape (M,).
    trust : share of its weight that each of `copies` has in those counts.
    slack : factor on lam, because Q is itself an estimate.
    """
    layout = copies.rows.layout
    n_rows = float(sum_over_rows(layout, counts))
    seen = np.maximum(copies.weight, 1e-12)
    factors, expected = np.ones(len(seen)), seen.copy()
    surplus: list[float] = []
    for _ in range(MAX_STEPS if len(seen) else 0):
        kept = counts - copies.rows.count((1 - factors) * seen * trust)
        q = normalise_counts(layout, np.maximum(kept, 0), 1e-3)
        log_q = copies.rows.project(log_probabilities(q)[:, None])[:, 0].astype(np.float64)
        expected = float(sum_over_rows(layout, kept)) * np.exp(log_q)
        lam = slack * np.maximum(expected, 1e-12)
        surprise = seen * np.log(seen / lam) - seen + lam
        too_many = (seen > lam) & (surprise > 1.2 * np.log(max(n_rows, 2.0)))
        before, factors = factors, np.where(too_many, np.minimum(1, expected / seen), 1.0)
        surplus.append(float((seen * (1 - factors)).sum()))
        if surplus[-1] > RUNAWAY * max(surplus[0], 0.01 * n_rows):
            return None
        if np.abs((factors - before) * seen).sum() < 1e-4 * n_rows:
            break
    found = factors < 1
    return Repeats(
        copies.fingerprints[found],
        factors[found],
        copies.first[found],
        copies.seen[found],
        expected[found],
    )
