"""A spectral filter for any vectors: no model of the good rows beyond their covariance."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustbn._oracle.weighting import (
    Look,
    look_at,
    sampling_noise,
    signed_positions,
    soft_filter,
    tolerated_excess,
    trim_far_rows,
    weighted_median,
)
from robustbn._protocols import RowVector, Vector, Vectors
from robustbn._result import OracleResult, Status, Step

MAD_TO_SD = 1.4826  # of a normal distribution
HEAVIEST = 3.0  # variance over squared robust spread that tails may excuse; 2.3 for Student's t_3
N_PROBES = 9
MAX_DIRECTIONS = 8


@dataclass(frozen=True)
class Excess:
    """Directions in which weighted rows vary more than good rows may; none if they look clean.

    Parameters
    ----------
    values : variance along each; shape (k,).
    goals : what a filter should bring it down to: in the middle of what good rows have; shape (k,).
    thresholds : what good rows may have at most; shape (k,).
    directions : shape (dim, k).
    threshold : for the top direction, in excess or not.
    """

    values: Vector
    goals: Vector
    thresholds: Vector
    directions: Vector
    threshold: float


def spectral_filter(
    vectors: Vectors,
    eps: float,
    *,
    beta: float = 0.0,
    gamma: float = 0.0,
    known_covariance: bool = True,
    allowance: float = 0.1,
    step_cap: float = 0.25,
    max_steps: int = 60,
    trim: bool = True,
    random_state: Any = None,
) -> OracleResult:
    """Lower the weight of rows that stick out where the covariance is too large, until it is not.

    Each step finds the top of the weighted covariance, compares it with what good rows may have,
    scores rows along the directions in excess and lowers the weights of the highest scores.
    About 10 passes over the rows a step, each with at most 8 columns; some 20 more with one column
    when the covariance is not known.

    Parameters
    ----------
    eps : contamination; at most twice this share of the weight is removed.
    beta, gamma : stability of the good rows (Definition stability); they raise the threshold.
    known_covariance : whether good rows have the covariance `vectors.expected`. If not, a
        direction is in excess only if its variance also exceeds what the middle half of the rows
        shows, with an excuse for tails that are heavy in all directions.
    allowance : the threshold is raised by `allowance * eps * ln(1 / eps)`.
    step_cap : a step removes at most `step_cap * eps` of the weight.
    trim : whether rows very far out are dropped first. Not for networks: rare rows are far out.
    """
    seed = int(np.random.default_rng(random_state).integers(2**31))
    n_rows = vectors.n_rows
    xi = tolerated_excess(eps, beta, gamma, allowance)
    weights = trim_far_rows(vectors, 2.0 * eps if trim else 0.0, seed=seed)
    history: list[Step] = []
    status = Status.STEPS_SPENT
    for number in range(max_steps):
        start = time.perf_counter()
        look = look_at(vectors, weights, seed=seed)
        excess = find_excess(vectors, weights, look, xi, known_covariance, seed)
        before = float(weights.sum())
        budget = before - (1.0 - 2.0 * eps) * n_rows
        if not len(excess.values):
            status = Status.CLEAN
        elif budget <= 1e-6 * eps * n_rows:
            status = Status.BUDGET_SPENT
        else:
            weights = _filter_once(
                vectors, weights, look, excess, 2.0 * eps, min(step_cap * eps * n_rows, budget)
            )
        removed = (before - float(weights.sum())) / n_rows
        top = tuple(look.spectrum.values[:MAX_DIRECTIONS].tolist())
        wall_s = time.perf_counter() - start
        history.append(Step(number, top, excess.threshold, removed, wall_s))
        if status is not Status.STEPS_SPENT:
            break
    return OracleResult(
        vectors.mean(weights),
        weights,
        1.0 - float(weights.sum()) / n_rows,
        status is Status.CLEAN,
        str(status),
        tuple(history),
    )


def find_excess(
    vectors: Vectors,
    weights: RowVector,
    look: Look,
    xi: float,
    known_covariance: bool,
    seed: int,
) -> Excess:
    """Return the directions whose variance is above `reference + noise + xi`.

    The reference of a unit direction v is `v' expected v`, or, when the covariance is not known,
    the larger of that and the squared robust spread of the rows along v times the excuse for tails.
    """
    values = look.spectrum.values[:MAX_DIRECTIONS]
    directions = look.spectrum.vectors[:, :MAX_DIRECTIONS]
    reference = np.einsum("jk,jk->k", directions, vectors.expected(directions))
    slack = sampling_noise(vectors, weights, look, reference) + xi
    if not known_covariance and np.any(values > reference + slack):
        tails = _excuse_tails(vectors, weights, look.mean, seed)
        # A squared median distance has the standard error 2.3 / sqrt(n): leave room for it.
        tails *= 1.0 + 4.0 / np.sqrt(look.total)
        for k in np.flatnonzero(values > reference + slack):
            _, spread = _spread_along(vectors, weights, look.mean, directions[:, k])
            reference[k] = max(reference[k], tails * spread**2)
        slack = sampling_noise(vectors, weights, look, reference) + xi
    thresholds = reference + slack
    in_excess = values > thresholds
    return Excess(
        values[in_excess],
        (reference + 0.5 * slack)[in_excess],
        thresholds[in_excess],
        directions[:, in_excess],
        float(thresholds[0]),
    )


def _filter_once(
    vectors: Vectors,
    weights: RowVector,
    look: Look,
    excess: Excess,
    tail: float,
    max_mass: float,
) -> RowVector:
    """Lower weights by scores along the directions in excess, the more so the larger the excess."""
    share = excess.values / excess.thresholds - 1.0
    share /= share.sum()
    scores = vectors.score(excess.directions * np.sqrt(share / excess.goals), look.mean)
    return soft_filter(weights, scores, tail=tail, allowed=1.0, max_mass=max_mass)


def _excuse_tails(vectors: Vectors, weights: RowVector, mean: Vector, seed: int) -> float:
    """Return the median of variance / spread^2 over a few coordinates, between 1 and `HEAVIEST`."""
    rng = np.random.default_rng(seed)
    ratios = []
    for j in rng.choice(vectors.dim, min(N_PROBES, vectors.dim), replace=False):
        axis = np.zeros(vectors.dim)
        axis[j] = 1.0
        variance, spread = _spread_along(vectors, weights, mean, axis)
        if spread > 0:
            ratios.append(variance / spread**2)
    return float(np.clip(np.median(ratios), 1.0, HEAVIEST)) if ratios else 1.0


def _spread_along(
    vectors: Vectors, weights: RowVector, mean: Vector, direction: Vector
) -> tuple[float, float]:
    """Return the variance and the robust spread of the weighted rows along a unit direction."""
    y = signed_positions(vectors, direction, mean)
    distances = np.abs(y - weighted_median(y, weights))
    variance = float(weights @ y**2 / weights.sum())
    return variance, MAD_TO_SD * weighted_median(distances, weights)
