"""Projected gradient on the weights: make the weighted covariance small, over capped weights."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from robustbn._core.protocols import RowVector, Vector, Vectors
from robustbn._core.result import OracleResult, Status, Step
from robustbn._means.weighting import (
    ALLOWANCE,
    MOST_STEPS,
    Look,
    end_with,
    look_at,
    project_capped_simplex,
    sampling_noise,
    tolerated_excess,
    trim_far_rows,
)

SIZE = 0.5  # weight that a row with the mean score of the tail loses in a step, at first
PATIENCE = 10  # steps without a better spectrum: no progress
BETTER = 0.99  # times the best excess: what counts as better
SHRINK = 0.8  # times: the size of a step that made nothing better


def descent(
    vectors: Vectors,
    eps: float,
    *,
    beta: float = 0.0,
    gamma: float = 0.0,
    allowance: float = ALLOWANCE,
    max_steps: int = MOST_STEPS,
    trim: bool = True,
    random_state: Any = None,
) -> OracleResult:
    """Minimise the top of the covariance over weights `0 <= w <= 1` that sum to `(1 - eps) N`.

    A step lowers each weight by the row's score along the top directions, which is the gradient of
    `v' Sigma(w) v`, and projects back; a weight that fell too far can rise again. Exactly the share
    eps of the weight is removed, so eps has to be known, at least from above. The best weights seen
    are returned. `trim` drops rows very far out first. About 11 passes a step.
    """
    seed = int(np.random.default_rng(random_state).integers(2**31))
    n_rows = vectors.n_rows
    tolerated = tolerated_excess(eps, beta, gamma, allowance)
    caps = trim_far_rows(vectors, eps if trim else 0.0, seed=seed)
    weights = project_capped_simplex(caps, (1.0 - eps) * n_rows, caps)
    history: list[Step] = []
    status = Status.STEPS_SPENT
    best, best_look, since_best, size = weights, None, 0, SIZE
    for number in range(max_steps):
        start = time.perf_counter()
        look = look_at(vectors, weights, seed=seed)
        threshold = 1.0 + tolerated + float(sampling_noise(vectors, weights, look)[0])
        if best_look is None or look.top - 1.0 <= BETTER * (best_look.top - 1.0):
            best, best_look, since_best = weights, look, 0
        else:
            since_best, size = since_best + 1, SHRINK * size
        top = tuple(look.spectrum.values[:8].tolist())
        if look.top <= threshold:
            best, best_look, status = weights, look, Status.CLEAN
        elif since_best >= PATIENCE:
            status = Status.NO_PROGRESS
        else:
            lowered = weights - size * _gradient(vectors, look, threshold, eps)
            weights = project_capped_simplex(lowered, (1.0 - eps) * n_rows, caps)
        removed = eps if number == 0 else 0.0
        history.append(Step(number, top, threshold, removed, time.perf_counter() - start))
        if status is not Status.STEPS_SPENT:
            break
    mean = None if best_look is None else best_look.mean
    return end_with(vectors, best, status, history, mean)


def _gradient(vectors: Vectors, look: Look, threshold: float, eps: float) -> RowVector:
    """Return scores along the directions in excess, in units of the mean score of the tail."""
    # A smooth maximum: the directions are weighted by a softmax of their variances, so that many
    # equally bad directions are lowered together.
    values = look.spectrum.values[:8]
    softness = 0.2 * max(look.top - threshold, 1e-12) + 0.02 * threshold
    share: Vector = np.exp((values - values[0]) / softness)
    directions = look.spectrum.vectors[:, :8] * np.sqrt(share / share.sum())
    scores = vectors.score(directions, look.mean).astype(np.float64)
    tail = scores[scores >= np.quantile(scores, 1.0 - eps)].mean()
    gradient: RowVector = scores / max(tail, 1e-300)
    return gradient
