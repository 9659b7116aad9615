"""Supposed causes that spoil each column by itself: stuck, defaults, noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import Sides, Trial

SHARES = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
                   0.98, 1.0])  # fmt: skip # of a column's cells that were replaced: a grid
NOISE_SHARES = (1.0, 0.85, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08)  # of all cells that are noise: a grid
STUCK_FROM = 0.85  # share of a column's cells at one state, good rows among the kind's allowed for
PRUNINGS = 4  # rounds in which columns that gain nothing are let go


@dataclass(frozen=True, eq=False)
class Suspect:
    """A supposed cause, and what it explains.

    Parameters
    ----------
    name : as in `robustbn.Cause`.
    columns : that it spoils.
    n_parameters : free numbers it was fitted with, in units of `Sides.price`.
    trial : what it explains.
    details : what words are made of; depends on the name.
    """

    name: str
    columns: tuple[int, ...]
    n_parameters: float
    trial: Trial
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replaced:
    """A column some of whose cells were replaced.

    Parameters
    ----------
    gain : nats that this explains of the column by itself.
    share : of its cells.
    state : they were replaced by; -1 for any.
    """

    gain: float
    share: float
    state: int


def find_stuck(sides: Sides, has_defaults: bool = True) -> list[Suspect]:
    """Return columns that are stuck at a state, or that show a default in some of the rows.

    Parameters
    ----------
    has_defaults : whether defaults are looked for.
    """
    replaced = [_fit_default(sides, c) for c in range(sides.n_columns)]
    paid = 2 * sides.price
    found = [c for c, r in enumerate(replaced) if r.gain > paid]
    stuck = [c for c in found if replaced[c].share >= STUCK_FROM]
    states = [r.state for r in replaced]
    suspects = []
    if stuck:
        shares = dict.fromkeys(stuck, 1.0)
        suspects.append(_try_defaults(sides, "stuck columns", shares, states, 1))
    if found and has_defaults:
        shares = {c: replaced[c].share for c in found}
        suspects.append(_try_defaults(sides, "defaults", shares, states, 2))
    return suspects


def _fit_default(sides: Sides, column: int) -> Replaced:
    """Return the state, and the share of cells, that best explain a column by itself."""
    seen = sides.of_kind.alone(column)
    good = sides.of_good.alone(column) + 0.5
    good = good / good.sum()
    # at the default the probability is (1 - p) good + p, elsewhere (1 - p) good
    at = np.log(np.outer(1 - SHARES, good) + SHARES[:, None] + 1e-4) - np.log(good)
    off = np.log(1 - SHARES[:, None] + 1e-4 / good)
    gain = (seen * off).sum(axis=1)[:, None] + seen * (at - off)
    p, state = np.unravel_index(int(gain.argmax()), gain.shape)
    return Replaced(float(gain[p, state]), float(SHARES[p]), int(state))


def _try_defaults(
    sides: Sides, name: str, shares: dict[int, float], states: Sequence[int], per_column: int
) -> Suspect:
    columns = list(shares)
    for _ in range(PRUNINGS):
        spoilt = _replace(sides, {c: (shares[c], states[c]) for c in columns})
        trial = sides.attempt(spoilt, columns)
        kept = [c for c in columns if sides.gain_at(trial, c) >= 0]
        if len(kept) == len(columns) or not kept:
            break
        columns = kept
    details = {"states": {c: states[c] for c in columns}, "shares": {c: shares[c] for c in columns}}
    return Suspect(name, tuple(columns), per_column * len(columns), trial, details)


def _replace(sides: Sides, replaced: dict[int, tuple[float, int]]) -> Codes:
    """Return good rows with a share of some columns' cells at a state, or at any (-1)."""
    spoilt = sides.good_codes.copy()
    for column, (share, state) in replaced.items():
        hit = sides.rng.random(len(spoilt)) < share if share < 1 else np.ones(len(spoilt), bool)
        n = int(hit.sum())
        spoilt[hit, column] = sides.rng.integers(0, sides.cards[column], n) if state < 0 else state
    return spoilt


def find_noise(sides: Sides) -> list[Suspect]:
    """Return cells replaced by any state: all, a share of all, or those of some columns."""
    every, suspects = tuple(range(sides.n_columns)), []
    likely = int(np.argmax([_fit_noise(sides, share) for share in NOISE_SHARES]))
    for share in NOISE_SHARES[max(likely - 1, 0) : likely + 2]:
        trial = sides.attempt(_replace(sides, dict.fromkeys(every, (share, -1))), every)
        suspects.append(Suspect("noise", every, 1, trial, {"share": share, "is_uniform": True}))
    some = [c for c in every if _is_uniform(sides, c)]
    if 0 < len(some) < len(every):
        trial = sides.attempt(_replace(sides, dict.fromkeys(some, (1.0, -1))), some)
        details = {"share": 1.0, "is_uniform": True}
        suspects.append(Suspect("noise", tuple(some), len(some), trial, details))
    suspects.append(_try_unrelated(sides))
    return [max(suspects, key=lambda s: s.trial.total - sides.price * s.n_parameters)]


def _fit_noise(sides: Sides, share: float) -> float:
    """Return the log-likelihood of the columns, each by itself, with a share of cells replaced."""
    total = 0.0
    for column, card in enumerate(sides.cards):
        good = sides.of_good.alone(column) + 0.5
        mixed = (1 - share) * good / good.sum() + share / card
        total += float(sides.of_kind.alone(column) @ np.log(mixed))
    return total


def _is_uniform(sides: Sides, column: int) -> bool:
    """Return whether a column's states are as frequent as one another, and were not."""
    seen, good = sides.of_kind.alone(column), sides.of_good.alone(column) + 0.5
    good = good / good.sum()
    mixed = 0.7 / len(good) + 0.3 * good
    return float(seen @ (np.log(mixed) - np.log(good))) > 2 * sides.price


def _try_unrelated(sides: Sides) -> Suspect:
    """Return all columns drawn each by itself, as often as the kind shows each state."""
    spoilt = np.empty_like(sides.good_codes)
    for column in range(sides.n_columns):
        spoilt[:, column] = _draw(sides.rng, sides.of_kind.alone(column), len(spoilt))
    every = tuple(range(sides.n_columns))
    n_free = sum(sides.cards) - sides.n_columns
    trial = sides.attempt(spoilt, every)
    return Suspect("noise", every, n_free, trial, {"share": 1.0, "is_uniform": False})


def _draw(rng: np.random.Generator, weights: Vector, n: int) -> Vector:
    ends = np.cumsum(weights + 1e-9 * weights.sum())
    drawn: Vector = np.searchsorted(ends[:-1], rng.random(n) * ends[-1], side="right")
    return drawn
