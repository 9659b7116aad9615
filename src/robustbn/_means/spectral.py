"""A spectral filter for any vectors: no model of the good rows beyond their covariance."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import RowVector, Vector, Vectors
from robustbn._core.result import OracleResult, Status, Step
from robustbn._means.weighting import (
    ALLOWANCE,
    MAD_TO_SD,
    MOST_STEPS,
    STEP_CAP,
    Look,
    end_with,
    follow_weights,
    look_at,
    sampling_noise,
    signed_positions,
    soft_filter,
    tolerated_excess,
    trim_far_rows,
    weighted_median,
)

DIRECTIONS = 8  # that a step scores together at most: as many as a look finds
LAYERS = 12  # of correlated directions that are looked behind: there may be no end to it
PROBES = 9  # columns that say how heavy tails are: a median of them
HEAVIEST = 3.0  # variance over spread^2 that heavy tails excuse: 2.3 for Student's t_3


@dataclass(frozen=True, eq=False)
class Whitened:
    """Vectors with some directions scaled down: `T x`, `T = I + B diag(factors - 1) B'`."""

    vectors: Vectors  # any vectors
    directions: Vector  # B, orthonormal; shape (dim, k)
    factors: Vector  # from 0 to 1, without 0; shape (k,)

    @property
    def n_rows(self) -> int:
        """Number of vectors, N."""
        return self.vectors.n_rows

    @property
    def dim(self) -> int:
        """Length of each."""
        return self.vectors.dim

    def mean(self, weights: RowVector | None = None) -> Vector:
        """Return T times the mean."""
        return self._scale(self.vectors.mean(weights), self.factors)

    def gram(self, V: Vector, weights: RowVector | None, center: Vector) -> Vector:
        """Return T times the product with T V."""
        table, inner = self._scale(V, self.factors), self._scale(center, 1.0 / self.factors)
        return self._scale(self.vectors.gram(table, weights, inner), self.factors)

    def score(self, V: Vector, center: Vector) -> RowVector:
        """Return the scores along T V."""
        inner = self._scale(center, 1.0 / self.factors)
        return self.vectors.score(self._scale(V, self.factors), inner)

    def square_norms(self, center: Vector) -> RowVector:
        """Return `|y|^2 - sum of (1 - factors_k^2) (b_k' y)^2` with `y = x - T^-1 center`."""
        inner = self._scale(center, 1.0 / self.factors)
        shrunk = self.directions * np.sqrt(1.0 - self.factors**2)
        norms: RowVector = self.vectors.square_norms(inner) - self.vectors.score(shrunk, inner)
        return np.maximum(norms, 0.0)

    def expected(self, V: Vector) -> Vector:
        """Return what was expected before: the excess along B is what was scaled away."""
        return self.vectors.expected(V)

    def _scale(self, V: Vector, factors: Vector) -> Vector:
        along = self.directions.T @ V
        return V + self.directions @ ((factors - 1.0) * along.T).T


@dataclass(frozen=True, eq=False)
class Finding:
    """What good rows would not show, if anything."""

    vectors: Vectors  # the rows, whitened where that was needed
    look: Look  # what they look like
    reference: Vector  # variance that good rows have along the top directions; shape (k,)
    thresholds: Vector  # what sampling may make of it at most; shape (k,)
    is_complete: bool = True  # whether all directions with a large variance were examined

    @property
    def values(self) -> Vector:
        """Variance along the top directions."""
        return self.look.spectrum.values[: len(self.reference)]

    @property
    def in_excess(self) -> NDArray[np.bool_]:
        """Which directions vary more than good rows may."""
        return self.values > self.thresholds


def spectral_filter(
    vectors: Vectors,
    eps: float,
    *,
    beta: float = 0.0,
    gamma: float = 0.0,
    known_covariance: bool = True,
    allowance: float = ALLOWANCE,
    step_cap: float = STEP_CAP,
    max_steps: int = MOST_STEPS,
    trim: bool = True,
    random_state: Any = None,
) -> OracleResult:
    """Lower the weight of rows that stick out where the covariance is too large, until it is not.

    Each step finds the top of the weighted covariance, compares it with what good rows may have,
    scores rows along the directions in excess and lowers the weights of the highest scores. About 8
    passes over the rows a step, with at most 8 columns each; when the covariance is not known, some
    20 passes more with one column, and 15 for every 8 directions that correlation explains.

    At most the share 2 eps of the weight is removed. `trim` drops rows very far out first. If good
    rows do not have the covariance `vectors.expected` (not `known_covariance`), a direction is in
    excess only if its variance also exceeds what the middle half of the rows shows, with an excuse
    for tails that are heavy in all directions.
    """
    seed = int(np.random.default_rng(random_state).integers(2**31))
    n_rows = vectors.n_rows
    xi = tolerated_excess(eps, beta, gamma, allowance)
    weights = trim_far_rows(vectors, 2.0 * eps if trim else 0.0, seed=seed)
    history: list[Step] = []
    status, seen = Status.STEPS_SPENT, vectors
    for number in range(max_steps):
        start = time.perf_counter()
        found = examine(seen, weights, xi, known_covariance, seed)
        before = float(weights.sum())
        budget = before - (1.0 - 2.0 * eps) * n_rows
        if not found.in_excess.any():
            status = Status.CLEAN if found.is_complete else Status.NOT_ALL_SEEN
        elif budget <= 1e-6 * eps * n_rows:
            status = Status.BUDGET_SPENT
        else:
            max_mass = min(step_cap * eps * n_rows, budget)
            weights = _filter_once(found, weights, 2.0 * eps, max_mass)
            seen = follow_weights(seen, weights)
        removed = (before - float(weights.sum())) / n_rows
        wall_s = time.perf_counter() - start
        threshold = float(found.thresholds[0])
        history.append(Step(number, tuple(found.values.tolist()), threshold, removed, wall_s))
        if status is not Status.STEPS_SPENT:
            break
    return end_with(vectors, weights, status, history)


def examine(
    vectors: Vectors, weights: RowVector, xi: float, known_covariance: bool, seed: int
) -> Finding:
    """Look for directions whose variance is above `reference + noise + xi`.

    The reference of a unit direction u is `u' expected u`. When the covariance is not known and a
    variance is above that, the reference becomes the squared robust spread of the rows along u
    times the excuse for tails; directions that this explains are scaled down to see what is hidden
    behind them, until nothing is above, something is not explained, or there is no end to it.
    """
    excuse = 0.0
    for layer in range(LAYERS):
        look = look_at(vectors, weights, seed=seed)
        directions = look.spectrum.vectors[:, :DIRECTIONS]
        reference = np.einsum("jk,jk->k", directions, vectors.expected(directions))
        thresholds = reference + sampling_noise(vectors, weights, look, reference) + xi
        found = Finding(vectors, look, reference, thresholds)
        above = found.in_excess
        if known_covariance or not above.any():
            return found
        excuse = excuse or _excuse_tails(vectors, weights, look.mean, seed)
        for k in np.flatnonzero(above):
            _, spread = _spread_along(vectors, weights, look.mean, directions[:, k])
            reference[k] = max(reference[k], excuse * spread**2)
        thresholds = reference + sampling_noise(vectors, weights, look, reference) + xi
        found = Finding(vectors, look, reference, thresholds, is_complete=False)
        if found.in_excess.any() or layer == LAYERS - 1:
            break
        factors = 1.0 / np.sqrt(np.maximum(reference[above], 1.0))
        vectors = Whitened(vectors, directions[:, above], factors)
    return found


def _filter_once(found: Finding, weights: RowVector, tail: float, max_mass: float) -> RowVector:
    """Lower weights by scores along the directions in excess, the more so the larger the excess."""
    # The goal for each is the middle of what good rows have, between reference and threshold.
    which = found.in_excess
    share = (found.values / found.thresholds - 1.0)[which]
    goals = 0.5 * (found.reference + found.thresholds)[which]
    directions = found.look.spectrum.vectors[:, : len(which)][:, which]
    columns = directions * np.sqrt(share / (share.sum() * goals))
    scores = found.vectors.score(columns, found.look.mean)
    return soft_filter(weights, scores, tail=tail, allowed=1.0, max_mass=max_mass)


def _excuse_tails(vectors: Vectors, weights: RowVector, mean: Vector, seed: int) -> float:
    """Return by how much a variance may exceed the squared robust spread."""
    # The median of that ratio over a few coordinates, between 1 and `HEAVIEST`; and room for the
    # standard error of a squared median distance, which is 2.3 / sqrt(n).
    rng = np.random.default_rng(seed)
    ratios = []
    for j in rng.choice(vectors.dim, min(PROBES, vectors.dim), replace=False):
        axis = np.zeros(vectors.dim)
        axis[j] = 1.0
        variance, spread = _spread_along(vectors, weights, mean, axis)
        if spread > 0:
            ratios.append(variance / spread**2)
    typical = float(np.clip(np.median(ratios), 1.0, HEAVIEST)) if ratios else 1.0
    return typical * (1.0 + 4.0 / math.sqrt(float(weights.sum())))


def _spread_along(
    vectors: Vectors, weights: RowVector, mean: Vector, direction: Vector
) -> tuple[float, float]:
    """Return the variance and the robust spread of the weighted rows along a unit direction."""
    y = signed_positions(vectors, direction, mean)
    distances = np.abs(y - weighted_median(y, weights))
    variance = float((weights * y**2).sum() / weights.sum())
    return variance, MAD_TO_SD * weighted_median(distances, weights)
