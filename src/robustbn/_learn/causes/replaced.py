"""Supposed causes that replace cells of each column by itself: stuck, defaults, noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import Sides, Suspect

SHARES = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
                   0.98, 1.0])  # fmt: skip # of a column's cells that were replaced: a grid
NOISE_SHARES = (1.0, 0.85, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08)  # of all cells that are noise: a grid
STUCK_FROM = 0.85  # share of a column's cells at one state, good rows among the kind's allowed for
ANY = -1  # cells are replaced by any state

Replaced = dict[int, tuple[float, int]]  # by column: the share of its cells, and by which state


def find_stuck(sides: Sides) -> list[Suspect]:
    """Return columns that are stuck at a state, and those that show a default in some rows."""
    fits = [_fit_default(sides, c) for c in range(sides.n_columns)]
    found = {c: (share, state) for c, (share, state, gain) in enumerate(fits) if gain > 0}
    stuck = {c: (1.0, state) for c, (share, state) in found.items() if share >= STUCK_FROM}
    tried = (("stuck columns", stuck, 1), ("defaults", found, 2))
    return [_try_defaults(sides, name, each, n) for name, each, n in tried if each]


def _usual(sides: Sides, column: int) -> Vector:
    """Return the share of good rows in each state of a column."""
    good = sides.good.count((column,)) + 0.5
    shares: Vector = good / good.sum()
    return shares


def _fit_default(sides: Sides, column: int) -> tuple[float, int, float]:
    """Return the share of cells and the state that explain a column best, and what they gain."""
    seen, good = sides.kind.count((column,)), _usual(sides, column)
    # at the default the probability is (1 - p) good + p, elsewhere (1 - p) good
    at = np.log(np.outer(1 - SHARES, good) + SHARES[:, None] + 1e-4) - np.log(good)
    off = np.log(1 - SHARES[:, None] + 1e-4 / good)
    gain = (seen * off).sum(axis=1)[:, None] + seen * (at - off)
    p, state = np.unravel_index(int(gain.argmax()), gain.shape)
    return float(SHARES[p]), int(state), float(gain[p, state]) - 2 * sides.price


def _try_defaults(sides: Sides, name: str, replaced: Replaced, n_free: int) -> Suspect:
    """Return what defaults explain, without the columns that they explain nothing of."""
    children = [family[-1] for family in sides.families]
    while True:
        suspect = sides.suspect(
            name,
            replaced,
            sides.price * n_free * len(replaced),
            _replace(sides, replaced),
            {
                "states": {c: state for c, (_, state) in replaced.items()},
                "shares": {c: share for c, (share, _) in replaced.items()},
            },
        )
        gain = np.bincount(children, suspect.gain, sides.n_columns)
        kept = {c: each for c, each in replaced.items() if gain[c] >= 0}
        if len(kept) in (0, len(replaced)):
            return suspect
        replaced = kept


def _replace(sides: Sides, replaced: Replaced) -> Codes:
    """Return good rows with some cells replaced."""
    spoilt = sides.good.codes.copy()
    for column, (share, state) in replaced.items():
        hit = sides.rng.random(len(spoilt)) < share if share < 1 else np.ones(len(spoilt), bool)
        if state == ANY:
            spoilt[hit, column] = sides.rng.integers(0, sides.cards[column], hit.sum())
        else:
            spoilt[hit, column] = state
    return spoilt


def find_noise(sides: Sides) -> list[Suspect]:
    """Return cells replaced by any state: all, a share of all, or those of some columns."""
    every = range(sides.n_columns)
    likely = int(np.argmax([_fit_noise(sides, share) for share in NOISE_SHARES]))
    near = NOISE_SHARES[max(likely - 1, 0) : likely + 2]
    suspects = [_try_noise(sides, every, share, 1) for share in near]
    some = [c for c in every if _is_uniform(sides, c)]
    if 0 < len(some) < len(every):
        suspects.append(_try_noise(sides, some, 1.0, len(some)))
    suspects.append(_try_unrelated(sides))
    return [max(suspects, key=lambda suspect: suspect.worth)]


def _try_noise(sides: Sides, columns: Sequence[int], share: float, n_free: int) -> Suspect:
    codes = _replace(sides, dict.fromkeys(columns, (share, ANY)))
    cost = sides.price * n_free
    details = {"share": share, "is_uniform": True}
    return sides.suspect("noise", columns, cost, codes, details)


def _fit_noise(sides: Sides, share: float) -> float:
    """Return the log-likelihood of the columns, each by itself, with a share of cells replaced."""
    return sum(
        float(sides.kind.count((c,)) @ np.log((1 - share) * _usual(sides, c) + share / card))
        for c, card in enumerate(sides.cards)
    )


def _is_uniform(sides: Sides, column: int) -> bool:
    """Return whether a column's states are as frequent as one another, and were not."""
    seen, good = sides.kind.count((column,)), _usual(sides, column)
    mixed = 0.7 / len(good) + 0.3 * good
    return float(seen @ (np.log(mixed) - np.log(good))) > 2 * sides.price


def _try_unrelated(sides: Sides) -> Suspect:
    """Return all columns drawn each by itself, as often as the kind shows each state."""
    codes = np.empty_like(sides.good.codes)
    for column in range(sides.n_columns):
        weights = sides.kind.count((column,))
        ends = np.cumsum(weights + 1e-9 * weights.sum())
        place = sides.rng.random(len(codes)) * ends[-1]
        codes[:, column] = np.searchsorted(ends[:-1], place, side="right")
    every, n_free = range(sides.n_columns), sum(sides.cards) - sides.n_columns
    cost = sides.price * n_free
    details = {"share": 1.0, "is_uniform": False}
    return sides.suspect("noise", every, cost, codes, details)
