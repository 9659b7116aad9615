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
    """A few rows that the kind's rows are copies of."""

    rows: Codes  # the templates, those with most copies first; shape (n, d)
    covered: float  # share of the kind's rows that are near one of them
    noise: float  # share of the cells in which copies differ from their template
    gain: float  # nats a row that they bring over good tables, what they cost taken off


def find_templates(sides: Sides) -> Templates | None:
    """Return the rows that the kind's rows are copies of; None if they are not near any few."""
    chance = sides.kind.weights / sides.n_rows
    n = min(MOST_ROWS_MATCHED, int((chance > 0).sum()))
    codes = sides.kind.codes[sides.rng.choice(len(chance), n, replace=False, p=chance)]
    found = [_find_within(sides, codes, radius) for radius in RADII]
    return max((t for t in found if t), key=lambda t: t.gain, default=None)


def share_copied(sides: Sides) -> float:
    """Return the share of the kind's rows that appear far more often than its tables say."""
    kind = sides.kind
    _, which, seen = np.unique(kind.codes, axis=0, return_inverse=True, return_counts=True)
    times = seen[which.reshape(-1)]
    expected = len(kind.codes) * np.exp(kind.find_likelihood(kind.codes))
    is_copy = (times >= 3) & (times >= 5 * expected)
    return float(kind.weights[is_copy].sum() / kind.total)


def _find_within(sides: Sides, codes: Codes, radius: float) -> Templates | None:
    """Return templates such that copies differ from them in so many of their cells at most."""
    rows = _lead(sides.rng, codes, radius)
    for _ in range(REFINED):
        nearest = _match(codes, rows, radius)
        members = [codes[nearest == t] for t in range(len(rows))]
        rows = np.unique([_commonest(m) for m in members if len(m)] or rows[:0], axis=0)
    copies = np.bincount(_match(codes, rows, radius) + 1, minlength=len(rows) + 1)[1:]
    rows = rows[copies >= LEAST_COPIES * len(codes)]
    if not len(rows):
        return None
    nearest = _match(codes, rows, radius)
    codes, nearest, n = codes[nearest >= 0], nearest[nearest >= 0], len(codes)
    shares = np.bincount(nearest, minlength=len(rows)) / n
    noise = float((codes != rows[nearest]).mean())
    likely = np.log(shares[nearest]) + _spoil(sides, codes, rows[nearest], noise)
    gain = (likely - sides.good.find_likelihood(codes)).sum() / n
    cost = len(rows) * (float(np.log(sides.cards).sum()) + sides.price) + sides.price
    order = np.argsort(-shares, kind="stable")
    return Templates(rows[order], float(shares.sum()), noise, float(gain - cost / sides.n_rows))


def _match(codes: Codes, rows: Codes, radius: float) -> NDArray[np.int64]:
    """Return the template that each row is a copy of: the one it differs least from; -1: none."""
    if not len(rows):
        return np.full(len(codes), -1)
    differ = np.stack([_differ(codes, row) for row in rows], axis=1)
    return np.where(differ.min(axis=1) <= radius, differ.argmin(axis=1), -1)


def _differ(codes: Codes, row: Codes) -> Vector:
    """Return the share of the cells in which each row differs from one."""
    share: Vector = np.count_nonzero(codes != row, axis=1) / codes.shape[1]
    return share


def _commonest(codes: Codes) -> Codes:
    return np.array([np.bincount(column).argmax() for column in codes.T], codes.dtype)


def _lead(rng: np.random.Generator, codes: Codes, radius: float) -> Codes:
    """Return the commonest states of rows around the rows that have most others near them."""
    found: list[Codes] = []
    left = codes
    while len(left) and len(found) < MOST_TEMPLATES:
        probes = left[rng.permutation(len(left))[:MOST_PROBES]]
        near = np.stack([_differ(left, probe) <= radius for probe in probes])
        best = near[near.sum(axis=1).argmax()]
        if best.sum() < LEAST_COPIES * len(codes):
            break
        found.append(_commonest(left[best]))
        left = left[~best]
    return np.array(found, codes.dtype).reshape(-1, codes.shape[1])


def _spoil(sides: Sides, codes: Codes, templates: Codes, noise: float) -> Vector:
    """Return the log-probability of rows that are copies of others, but for some noise."""
    noise = min(max(noise, 1e-3), 0.999)
    likely = np.zeros(len(codes))
    for c, card in enumerate(sides.cards):
        good = np.append(sides.good.count((c,)) + 0.5, 0.5)
        other = 0.5 * good / good.sum() + 0.5 / (card + 1)
        chance = noise * other[codes[:, c]]
        chance[codes[:, c] == templates[:, c]] += 1 - noise
        likely += np.log(chance)
    return likely
