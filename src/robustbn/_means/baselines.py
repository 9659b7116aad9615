"""What people try first: the methods that the others are compared with."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from robustbn._core.protocols import RowVector, Vector, Vectors
from robustbn._core.result import OracleResult, Status, Step
from robustbn._means.matrix import DenseVectors, SparseVectors
from robustbn._means.weighting import drop_highest, end_with, find_center, look_at, signed_positions

TRIALS = 20  # subsets that `ransac` averages: the usual number
LUCKY = 0.1  # probability that a subset holds good rows only: decides how small it is


def plain_mean(vectors: Vectors, eps: float, **ignored: Any) -> OracleResult:
    """Trust every row: the mean. One pass; every setting is ignored."""
    return _trust_all(vectors, vectors.mean())


def coordinate_median(vectors: Vectors, eps: float, **ignored: Any) -> OracleResult:
    """Take the median of each coordinate: its error grows like `eps sqrt(dim)`.

    O(N dim) time for a matrix; other vectors are asked for one coordinate at a time, `2 dim`
    passes. Every setting is ignored.
    """
    if isinstance(vectors, DenseVectors | SparseVectors):
        return _trust_all(vectors, vectors.column_medians())
    center = vectors.mean()
    axes = np.eye(1, vectors.dim)[0]
    medians = [
        float(np.median(signed_positions(vectors, np.roll(axes, j), center)))
        for j in range(vectors.dim)
    ]
    return _trust_all(vectors, center + medians)


def geometric_median(
    vectors: Vectors, eps: float, *, max_steps: int = 200, tolerance: float = 1e-5, **ignored: Any
) -> OracleResult:
    """Take the point with the least sum of distances: its error grows like `eps sqrt(dim)`.

    Weiszfeld's iteration, two passes a step. Only `max_steps` and `tolerance` are used.
    """
    center = find_center(vectors, max_steps=max_steps, tolerance=tolerance)
    status = Status.NOT_TESTED if center.settled else Status.NOT_SETTLED
    return end_with(vectors, np.ones(vectors.n_rows), status, mean=center.point)


def one_shot(
    vectors: Vectors, eps: float, *, random_state: Any = None, **ignored: Any
) -> OracleResult:
    """Look once: drop the share eps of the rows that lie farthest along the top direction.

    Harms clean data, and sees one direction only. 7 passes.
    """
    start = time.perf_counter()
    seed = int(np.random.default_rng(random_state).integers(2**31))
    weights: RowVector = np.ones(vectors.n_rows)
    look = look_at(vectors, weights, seed=seed)
    scores = vectors.score(look.spectrum.vectors[:, :1], look.mean)
    weights = drop_highest(weights, scores, eps * vectors.n_rows)
    top = tuple(look.spectrum.values[:8].tolist())
    step = Step(0, top, math.nan, eps, time.perf_counter() - start)
    return end_with(vectors, weights, Status.NOT_TESTED, [step])


def ransac(
    vectors: Vectors,
    eps: float,
    *,
    n_trials: int = TRIALS,
    random_state: Any = None,
    **ignored: Any,
) -> OracleResult:
    """Average small random subsets, keep the rows nearest to the best average."""
    # A subset is so small that all its rows are good with probability 0.1. The best average has the
    # share `1 - eps` of all rows nearest; the rest is dropped and the mean taken. Two passes a
    # trial.
    rng = np.random.default_rng(random_state)
    n_rows = vectors.n_rows
    size = min(n_rows, max(2, round(math.log(LUCKY) / math.log1p(-eps))))
    best, best_distance = vectors.square_norms(vectors.mean()), math.inf
    for _ in range(n_trials):
        subset = np.zeros(n_rows)
        subset[rng.choice(n_rows, size, replace=False)] = 1.0
        norms = vectors.square_norms(vectors.mean(subset))
        distance = float(np.quantile(norms, 1.0 - eps))
        if distance < best_distance:
            best, best_distance = norms, distance
    weights = drop_highest(np.ones(n_rows), best, eps * n_rows)
    return end_with(vectors, weights, Status.NOT_TESTED)


def _trust_all(vectors: Vectors, mean: Vector) -> OracleResult:
    return end_with(vectors, np.ones(vectors.n_rows), Status.NOT_TESTED, mean=mean)
