"""Supposed causes that write the same rows again and again: copies, with or without some noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import Sides

MOST_ROWS_MATCHED = 600  # of the kind: what all of them look like
MOST_TEMPLATES = 12  # of a kind: time and memory grow with them
MOST_PROBES = 30  # rows that may lead to the next template
RADII = (0.06, 0.12, 0.24)  # share of the cells in which a copy may differ from its template
LEAST_COPIES = 0.03  # share of the kind's rows that a template must have
REFINED = 3  # rounds in which templates become the commonest states of their copies


@dataclass(frozen=True, eq=False)
class Templates:
    """A few rows that the kind's rows are copies of.

    Parameters
    ----------
    rows : the templates, those with most copies first; shape (n, d).
    shares : of the kind's rows that are near each.
    noise : share of the cells in which copies differ from their template.
    gain : nats a row that they bring over good tables, what they cost taken off.
    """

    rows: Codes
    shares: Vector
    noise: float
    gain: float

    @property
    def covered(self) -> float:
        """Share of the kind's rows that are near one of them."""
        return float(self.shares.sum())


def find_templates(sides: Sides) -> Templates | None:
    """Return the rows that the kind's rows are copies of; None if they are not near any few."""
    chance = sides.weights / sides.n_rows
    n = min(MOST_ROWS_MATCHED, int((chance > 0).sum()))
    codes = sides.codes[sides.rng.choice(len(chance), n, replace=False, p=chance)]
    found = [_find_within(sides, codes, radius) for radius in RADII]
    return max((t for t in found if t), key=lambda t: t.gain, default=None)


def share_copied(sides: Sides) -> float:
    """Return the share of the kind's rows that appear far more often than its own tables say.

    Exact copies of however many rows. "Far more" is three times at least, and five times as often
    as expected.
    """
    _, which, seen = np.unique(sides.codes, axis=0, return_inverse=True, return_counts=True)
    times = seen[which.reshape(-1)]
    expected = len(sides.codes) * np.exp(sides.own_likelihood(sides.codes))
    is_copy = (times >= 3) & (times >= 5 * expected)
    return float(sides.weights[is_copy].sum() / sides.n_rows)


def _find_within(sides: Sides, codes: Codes, radius: float) -> Templates | None:
    rows = _lead(sides, codes, radius)
    for _ in range(REFINED):
        if not len(rows):
            return None
        nearest, is_near = _match(codes, rows, radius)
        members = [codes[is_near & (nearest == t)] for t in range(len(rows))]
        rows = np.unique([_commonest(m) for m in members if len(m)] or rows[:0], axis=0)
    if not len(rows):
        return None
    nearest, is_near = _match(codes, rows, radius)
    copies = np.bincount(nearest[is_near], minlength=len(rows))
    kept = copies >= LEAST_COPIES * len(codes)
    if not kept.any():
        return None
    rows, copies = rows[kept], copies[kept]
    nearest, is_near = _match(codes, rows, radius)
    shares = np.bincount(nearest[is_near], minlength=len(rows)) / len(codes)
    noise = float((codes[is_near] != rows[nearest[is_near]]).mean())
    gain = _gain(sides, codes[is_near], rows, shares, nearest[is_near], noise) / len(codes)
    cost = len(rows) * (float(np.log(sides.cards).sum()) + sides.price) + sides.price
    order = np.argsort(-shares, kind="stable")
    return Templates(rows[order], shares[order], noise, gain - cost / sides.n_rows)


def _match(codes: Codes, rows: Codes, radius: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the template that each row differs least from, and whether it is a copy of it."""
    differ = np.stack([_differ(codes, row) for row in rows], axis=1)
    return differ.argmin(axis=1), differ.min(axis=1) <= radius


def _differ(codes: Codes, row: Codes) -> Vector:
    """Return the share of the cells in which each row differs from one."""
    share: Vector = np.count_nonzero(codes != row, axis=1) / codes.shape[1]
    return share


def _commonest(codes: Codes) -> Codes:
    return np.array([np.bincount(column).argmax() for column in codes.T], codes.dtype)


def _lead(sides: Sides, codes: Codes, radius: float) -> Codes:
    """Return the commonest states of rows around the rows that have most others near them."""
    left = np.ones(len(codes), bool)
    found: list[Codes] = []
    while left.any() and len(found) < MOST_TEMPLATES:
        at_hand = np.flatnonzero(left)
        probes = sides.rng.permutation(at_hand)[:MOST_PROBES]
        near = np.stack([_differ(codes[at_hand], codes[p]) <= radius for p in probes])
        best = int(near.sum(axis=1).argmax())
        if near[best].sum() < LEAST_COPIES * len(codes):
            break
        found.append(_commonest(codes[at_hand[near[best]]]))
        left[at_hand[near[best]]] = False
    return np.array(found, codes.dtype).reshape(-1, codes.shape[1])


def _gain(
    sides: Sides,
    codes: Codes,
    rows: Codes,
    shares: Vector,
    nearest: NDArray[np.int64],
    noise: float,
) -> float:
    """Return the nats that templates bring to their copies over good tables."""
    noise = min(max(noise, 1e-3), 0.999)
    template, likely = rows[nearest], np.log(shares[nearest])
    for c, card in enumerate(sides.cards):
        good = np.append(sides.of_good.alone(c) + 0.5, 0.5)
        other = 0.5 * good / good.sum() + 0.5 / (card + 1)
        chance = noise * other[codes[:, c]]
        chance[codes[:, c] == template[:, c]] += 1 - noise
        likely += np.log(chance)
    return float((likely - sides.good_likelihood(codes)).sum())
