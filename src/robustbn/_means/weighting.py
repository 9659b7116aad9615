"""Weights of rows: how they are lowered, and what they leave to be seen. Shared by the oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import FollowingExpansion
from robustbn._core.protocols import RowVector, Vector, Vectors
from robustbn._core.result import OracleResult, Status, Step
from robustbn._core.spectrum import Spectrum, top_eigenpairs

ALLOWANCE = 0.1  # eps ln(1/eps): raises the threshold; 0.5 only tied looking once, 0.1 saw more
STEP_CAP = 0.25  # eps: weight that a step may remove; uncapped steps took 30 % of good rows
MOST_STEPS = 60  # of the spectral filter and of descent: ends a run that makes no progress
FAR = 4.0  # median distances: a row farther out is trimmed first, in many columns
FAR_NARROW = 6.0  # median distances a 1/sqrt(dim), added to it: few columns have longer tails
SOFTNESS = 1e-3  # share of weight that the highest score keeps at kappa = 1: ties go in part
PROBES = 16  # vectors of random signs, by which a trace is estimated
BISECTIONS = 60  # steps: more than a double has bits
MAD_TO_SD = 1.4826  # median distance to standard deviation, of a normal distribution


# --- what weighted rows look like -----------------------------------------------------------------


def follow_weights(vectors: Vectors, weights: RowVector) -> Vectors:
    """Return the vectors as the rows trusted now make them; fixed vectors as they are."""
    # A threshold holds for good rows that are scaled by good rows. Scaled by a count C instead of
    # their own count G, good rows have the variance G / C along a cell. Before any bad row is found
    # that is up to 1 / (1 - eps), and when an oracle has taken good rows of a rare cell it is as
    # large as its own mistake: at a fixed scale the mistake is evidence for itself, the more rows
    # the surer, since only noise and damping hid it. At the scale of the current weights the
    # variance along every cell is 1 by construction, and only what cells do together counts as
    # evidence.
    return vectors.at_weights(weights) if isinstance(vectors, FollowingExpansion) else vectors


@dataclass(frozen=True)
class Look:
    """Weighted rows seen from their own mean."""

    mean: Vector  # `mu(w)`; shape (dim,)
    total: float  # `|w|`, the sum of the weights
    spectrum: Spectrum  # top of `Sigma(w)`

    @property
    def top(self) -> float:
        """Largest eigenvalue of `Sigma(w)`."""
        return self.spectrum.top


def look_at(vectors: Vectors, weights: RowVector, *, seed: int = 0) -> Look:
    """Return the weighted mean and the top of the weighted covariance; five passes."""
    mean = vectors.mean(weights)
    total = float(weights.sum(dtype=np.float64))
    return Look(mean, total, top_eigenpairs(vectors, weights, mean, total, seed=seed))


def sampling_noise(
    vectors: Vectors, weights: RowVector, look: Look, reference: Vector | None = None
) -> Vector:
    """Return how far sampling alone lifts the variance along each of the top directions.

    For a direction u with the variance `reference`, by `2 sqrt(reference R / n) + dim / n`. R is
    the mean of `|x|^2` over the rows, each counted by its weight times `(u'x)^2`, x seen from the
    mean; n is the effective number of rows, `|w|^2 / sum of w^2`. For Gaussian rows R is about dim,
    and 1 plus this is the edge of Marchenko and Pastur. A direction that is at the top because of a
    few rows far out, as heavy tails have them, has a larger R. No random signs, no shuffles: the
    order of the rows does not matter. `reference` is for the first few directions of the look; by
    default 1, for the first. Two passes.
    """
    reference = np.ones(1) if reference is None else reference
    k = len(reference)
    directions = look.spectrum.vectors[:, :k]
    norms = vectors.square_norms(look.mean)
    n_effective = look.total**2 / float((weights.astype(np.float64) ** 2).sum())
    fourth = (directions * vectors.gram(directions, weights * norms, look.mean)).sum(axis=0)
    R = np.maximum(fourth, 0.0) / (look.total * np.maximum(look.spectrum.values[:k], 1e-300))
    noise: Vector = 2.0 * np.sqrt(reference * R / n_effective) + vectors.dim / n_effective
    return noise


def tolerated_excess(eps: float, beta: float, gamma: float, allowance: float) -> float:
    """Return `xi`, by how much the covariance of good rows may exceed its expectation."""
    # `xi = 3 gamma + 6 beta^2 + 6 beta^2 / eps + allowance eps ln(1/eps)`: end of the appendix of
    # the paper (Lemma que_id, with the goodness that follows from (eps, beta, gamma)-stability).
    stability = 3.0 * gamma + 6.0 * beta**2 + 6.0 * beta**2 / eps
    return stability + allowance * eps * math.log(1.0 / eps)


def end_with(
    vectors: Vectors,
    weights: RowVector,
    status: Status,
    history: Iterable[Step] = (),
    mean: Vector | None = None,
) -> OracleResult:
    """Return what an oracle found; `mean` is that of the weighted rows unless it is given."""
    mean = vectors.mean(weights) if mean is None else mean
    removed = 1.0 - float(weights.sum()) / vectors.n_rows
    is_done = status in (Status.CLEAN, Status.NOT_TESTED)
    return OracleResult(mean, weights, removed, is_done, str(status), tuple(history))


# --- lowering weights -----------------------------------------------------------------------------


def soft_filter(
    weights: RowVector, scores: RowVector, *, tail: float, allowed: float, max_mass: float
) -> RowVector:
    """Lower the weights of the rows with the highest scores, by no more than is needed.

    Acts on the tail: the rows with the highest scores that carry the share `tail` of the weight
    (rows with equal scores are in it together). There

        w <- w (1 - score / top)^kappa          top = (1 + softness) max score in the tail

    with the smallest `kappa > 0` that brings the weighted mean of all scores down to `allowed`, or
    takes `max_mass`, whichever comes first. No weight grows. Since the top is not quite reached,
    the mass taken is continuous in kappa, and many equal rows can be lowered in part.
    O(N log N) time.
    """
    w = weights.astype(np.float64)
    in_tail = _find_tail(w, scores, tail * w.sum())
    tail_w, tail_scores = w[in_tail], scores[in_tail].astype(np.float64)
    highest = tail_scores.max(initial=0.0)
    if highest <= 0 or max_mass <= 0:
        return w
    logs = np.log1p(-tail_scores / (highest * (1.0 + SOFTNESS)))
    rest_mass = w.sum() - tail_w.sum()
    rest_score = (w * scores).sum() - (tail_w * tail_scores).sum()

    def lacks(kappa: float) -> float:
        """Return how far kappa is from enough, by mass or by the mean score; 0 or less if it is."""
        kept = tail_w * np.exp(kappa * logs)
        mass_left = max_mass - (tail_w.sum() - kept.sum())
        score_left = rest_score + (kept * tail_scores).sum() - allowed * (rest_mass + kept.sum())
        return float(min(mass_left, score_left))

    below, above = _bracket(lacks)
    lowered = tail_w * np.exp(above * logs)
    if tail_w.sum() - lowered.sum() > max_mass:  # the cap decides: stay just below it
        lowered = tail_w * np.exp(below * logs)
    w[in_tail] = lowered
    return w


def _find_tail(w: RowVector, scores: RowVector, mass: float) -> NDArray[np.bool_]:
    """Return which rows have the highest scores and carry `mass` together, ties included; O(N)."""
    n, wanted = len(w), mass * (1.0 - 1e-9)
    n_top = min(n, 1 + math.ceil(1.25 * wanted / max(float(w.max(initial=0.0)), 1e-300)))
    top = np.argpartition(scores, n - n_top)[n - n_top :]
    while n_top < n and w[top].sum() < wanted:
        n_top = min(n, 2 * n_top)
        top = np.argpartition(scores, n - n_top)[n - n_top :]
    order = top[np.argsort(-scores[top])]
    reached = np.searchsorted(np.cumsum(w[order]), wanted)
    boundary = scores[order[min(int(reached), n_top - 1)]]
    in_tail: NDArray[np.bool_] = (scores >= boundary) & (w > 0)
    return in_tail


def _bracket(lacks: Callable[[float], float]) -> tuple[float, float]:
    """Return the ends of a tiny interval in which `lacks` falls to 0; (0, 0) if at once."""
    # By secants (Illinois: an end that stays twice counts half), every eighth step by halves.
    below, above = 0.0, 0.25
    at_below, at_above = lacks(below), lacks(above)
    if at_below <= 0:
        return 0.0, 0.0
    while at_above > 0 and above < 1e6:
        below, above, at_below = above, 4.0 * above, at_above
        at_above = lacks(above)
    if at_above > 0:
        return above, above
    moved = 0
    for step in range(BISECTIONS):
        tiny = 2e-14 * above
        if above - below <= 4.0 * tiny:
            break
        share = 0.5 if step % 8 == 7 else at_below / (at_below - at_above)
        middle = min(max(below + share * (above - below), below + tiny), above - tiny)
        value = lacks(middle)
        if value > 0:
            at_above *= 0.5 if moved == 1 else 1.0
            below, at_below, moved = middle, value, 1
        else:
            at_below *= 0.5 if moved == -1 else 1.0
            above, at_above, moved = middle, value, -1
    return below, above


def drop_highest(weights: RowVector, scores: RowVector, mass: float) -> RowVector:
    """Take exactly `mass` from the rows with the highest scores; ties at the end share alike."""
    w = weights.astype(np.float64)
    in_tail = _find_tail(w, scores, mass)
    at_boundary = in_tail & (scores == scores[in_tail].min(initial=np.inf))
    above = in_tail & ~at_boundary
    left = mass - w[above].sum()
    w[above] = 0.0
    w[at_boundary] *= 1.0 - np.clip(left / max(w[at_boundary].sum(), 1e-300), 0.0, 1.0)
    return w


def project_capped_simplex(values: RowVector, total: float, caps: RowVector) -> RowVector:
    """Return the nearest point w with `0 <= w[n] <= caps[n]` and `sum of w = total`."""
    # It is `clip(values - shift, 0, caps)`; the shift is found by bisection, O(N) a step. The total
    # is at most the sum of the caps.
    low, high = float((values - caps).min()), float(values.max())
    for _ in range(BISECTIONS):
        shift = 0.5 * (low + high)
        if np.clip(values - shift, 0.0, caps).sum() > total:
            low = shift
        else:
            high = shift
    projected: RowVector = np.clip(values - 0.5 * (low + high), 0.0, caps)
    return projected


# --- far rows -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Center:
    """A centre that half of the rows cannot move far, and whether it settled."""

    point: Vector
    settled: bool


def find_center(vectors: Vectors, *, max_steps: int = 60, tolerance: float = 1e-3) -> Center:
    """Return the geometric median, by Weiszfeld's iteration: two passes a step."""
    # `c <- sum of x[n] / |x[n] - c|, over sum of 1 / |x[n] - c|`. Settled when a step moves it by
    # less than `tolerance` times the median distance of a row.
    point = vectors.mean()
    for _ in range(max_steps):
        distances = np.sqrt(np.maximum(vectors.square_norms(point), 0.0))
        typical = float(np.median(distances))
        floor = max(1e-6 * typical, 1e-300)
        moved = vectors.mean(1.0 / np.maximum(distances, floor) * max(typical, floor))
        shift = float(np.linalg.norm(moved - point))
        point = moved
        if shift <= tolerance * typical:
            return Center(point, True)
    return Center(point, False)


def signed_positions(vectors: Vectors, direction: Vector, center: Vector) -> RowVector:
    """Return `y[n] = direction' (x[n] - center)` for a unit direction, sign and all; two passes."""
    # Vectors only tell squares; the sign follows from two of them: `(y + t)^2 - y^2 = 2 t y + t^2`.
    squares = vectors.score(direction[:, None], center).astype(np.float64)
    t = max(math.sqrt(float(np.median(squares))), 1e-3 * math.sqrt(float(squares.max())), 1e-150)
    shifted = vectors.score(direction[:, None], center - t * direction)
    return (shifted - squares - t**2) / (2.0 * t)


def weighted_median(values: RowVector, weights: RowVector) -> float:
    """Return the value at which half of the weight is reached; O(N log N)."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order], dtype=np.float64)
    return float(values[order[np.searchsorted(reached, 0.5 * reached[-1])]])


def trim_far_rows(vectors: Vectors, max_share: float, *, seed: int = 0) -> RowVector:
    """Return weights 0 for rows very far out and 1 for the others."""
    # Far is more than `4 + 6 / sqrt(dim)` times as far from the geometric median as the median row.
    # Where half of the rows are in one place, so that the median row says nothing, the covariance
    # that good rows should have takes its part. This bounds the radius R of Lemma que_id, and with
    # it the number of epochs. At most `max_share` of the rows are trimmed, the farthest; what is
    # left over is the filter's work.
    if max_share <= 0:
        return np.ones(vectors.n_rows)
    norms = vectors.square_norms(find_center(vectors).point)
    typical, trace = float(np.median(norms)), _expected_trace(vectors, seed)
    typical = typical if typical > 0.2 * trace else trace
    far = FAR + FAR_NARROW / math.sqrt(vectors.dim)
    limit = max(far**2 * typical, float(np.quantile(norms, 1.0 - max_share)))
    return (norms <= limit).astype(np.float64)


def _expected_trace(vectors: Vectors, seed: int) -> float:
    """Return the trace of the covariance of good rows, from random signs (Hutchinson); no pass."""
    probes = np.random.default_rng(seed).choice([-1.0, 1.0], size=(vectors.dim, PROBES))
    return float((probes * vectors.expected(probes)).sum() / PROBES)
