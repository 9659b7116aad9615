"""The paper's own oracle: quantum-entropy scores (Dong, Hopkins, Li 2019) by its Algorithm 2.

Notation: `mu(w)`, `Sigma(w)` are the mean and covariance under weights w; `E` is the covariance
that good rows should have (the identity, or for networks a projection); `a` is the paper's alpha
of Definition score-oracle; `U = exp(a sum of Sigma(w^i)) / tr`; `tau_n` is the score of row n.
Where the paper slips (a square, weights, a sign, the shift) the formula here is the corrected one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from robustbn._core.protocols import RowVector, Vector, Vectors
from robustbn._core.result import OracleResult, Status, Step
from robustbn._means.weighting import (
    ALLOWANCE,
    STEP_CAP,
    Look,
    end_with,
    follow_weights,
    sampling_noise,
    soft_filter,
    tolerated_excess,
    trim_far_rows,
)
from robustbn._means.written import PassedVectors, WrittenLook, WrittenVectors, see

WIDTH = 64  # columns of the sketch: what they buy is measured in `draw_sketch`
REACH = 8.0  # nats: exp(-x) by Taylor loses e^x to cancellation, single precision bears 8
TRIGGER = 0.2  # times the first excess: q~ above it, and rows are filtered
GOAL = 0.1  # times the first excess: what filtering brings q~ down to
HALVED = 0.5  # times the first excess: an epoch ends when it has fallen so far
EPOCH_STEPS = 5.0  # ln dim: steps of an epoch at most (Lemma que_id)


@dataclass(frozen=True, eq=False)
class Past:
    """`sum over i < t of Sigma(w^i)`, known through products: one pass however large t is.

    `sum of Sigma(w^i) = sum over n of W_n (x_n - c)(x_n - c)' - sum over i of m_i m_i'` with
    `W_n = sum over i of w^i_n / |w^i|` and `m_i = mu(w^i) - c`, for any c.
    """

    weights: RowVector  # W; shape (N,)
    means: Vector  # `mu(w^i)`, stacked; shape (t, dim)

    @classmethod
    def empty(cls, vectors: Vectors) -> Past:
        """Start with t = 0."""
        return cls(np.zeros(vectors.n_rows), np.zeros((0, vectors.dim)))

    @property
    def n_steps(self) -> int:
        """The paper's t."""
        return len(self.means)

    def add(self, weights: RowVector, mean: Vector) -> Past:
        """Return the past with one step more."""
        return Past(self.weights + weights / weights.sum(), np.vstack([self.means, mean]))

    def multiply(self, vectors: Vectors, V: Vector) -> Vector:
        """Return `sum of Sigma(w^i) V`; shape (dim, r). One pass, none for t = 0."""
        if not self.n_steps:
            return np.zeros_like(V)
        center = self.means.mean(axis=0)
        m = self.means - center
        product: Vector = vectors.gram(V, self.weights, center) - m.T @ (m @ V)
        return product


@dataclass(frozen=True, eq=False)
class Scores:
    """What an approximate score oracle returns."""

    score_rows: Callable[[], RowVector]  # returns tau; by a pass, if the rows were not scored yet
    excess: float  # `q~`, about `<Sigma(w) - E, U>`
    base: float  # about `<E, U>`, the weighted mean of tau that good rows have; 1 when E is I
    degree: int  # of Taylor's polynomial

    @cached_property
    def tau(self) -> RowVector:
        """`tau~_n`, about `(x_n - mu)' U (x_n - mu)`; shape (N,)."""
        return self.score_rows()


def draw_sketch(dim: int, width: int, rng: np.random.Generator) -> Vector:
    """Return S' of shape (dim, width) with `E[S' S] = I`; line 2 of Algorithm 2.

    The paper draws entries from N(0, 1/width). Here the columns are made orthogonal, which never
    does worse: `width = dim` is exact where independent entries would still be off by tens of
    percents. When `width >= dim` the sketch is the identity.

    Measured on 1,000 Gaussian rows, dim 200, a tenth of them moved by 6, mean of 10 draws, 3 and 6
    steps into an epoch (Taylor's own error is below 1e-4 there):

        width                                  16        32        64       100       200
        root mean square error of tau~     .33 .31   .23 .21   .15 .14   .10 .09    0   0
        largest error of a row             1.3 1.3   .84 .94   .49 .49   .31 .33    0   0
        correlation with exact scores      .81 .99   .89 .996  .95 .998  .98 .999   1   1
        |q~ - q| over its bound, worst     .35 .79   .40 .91   .31 .76   .12 .31    0   0

    So the default, 64, keeps q~ within the bound of Definition score-oracle and ranks rows well,
    but single rows are off by up to a half; within 0.1 for every row takes `width >= dim`, or
    thousands of independent columns.
    """
    if width >= dim:
        return np.eye(dim)
    q, r = np.linalg.qr(rng.normal(size=(dim, width)))
    return q * np.sign(np.diag(r)) * math.sqrt(dim / width)


def redraw_sketch(sketch: Vector, rng: np.random.Generator) -> Vector:
    """Return a fresh sketch from an old one: lines shuffled, signs flipped, still orthogonal."""
    signs = rng.choice([-1.0, 1.0], size=(len(sketch), 1))
    return signs * sketch[rng.permutation(len(sketch))]


def approximate_scores(
    vectors: Vectors,
    weights: RowVector,
    mean: Vector,
    past: Past,
    a: float,
    sketch: Vector,
    *,
    excess_bound: float,
) -> Scores:
    """Compute Algorithm 2: scores of all rows under U, without a dim × dim matrix.

    `A = S P_l(Y)`, `Y = (a/2) sum over i of (Sigma(w^i) - shift E)`      (equation Arl)
    `tau~_n = |A (x_n - mu)|^2 / tr(A A')`                                (equation tau)
    `q~ = sum of w_n tau~_n / |w| - tr(A E A') / tr(A A')`                (equation q)

    Shifting Y by a multiple of E multiplies A by a number and leaves U as it is, but keeps the
    degree low. The sketch is first multiplied by E: where E is a projection (more than two states)
    its null space would otherwise fill the trace. The bound is of `Sigma(w^i) - E` for all i, and
    sets the degree. Passes: the degree, plus one.
    """
    shift, degree = choose_degree(a * past.n_steps, excess_bound)

    def multiply(A: Vector) -> Vector:
        return past.multiply(vectors, A) - shift * past.n_steps * vectors.expected(A)

    A = _exponentiate(multiply, vectors.expected(sketch), 0.5 * a, degree)
    trace = float((A * A).sum())
    tau = vectors.score(A, mean).astype(np.float64) / trace
    base = float((A * vectors.expected(A)).sum()) / trace
    excess = float(weights @ tau / weights.sum()) - base
    return Scores(lambda: tau, excess, base, degree)


def _exponentiate(
    multiply: Callable[[Vector], Vector], S: Vector, factor: float, degree: int
) -> Vector:
    """Return `P_l(factor Y) S` by Horner: `P_l(Y) = I + Y/1 (I + Y/2 (... (I + Y/l)))`."""
    A = S
    for j in range(degree, 0, -1):
        A = S + (factor / j) * multiply(A)
    return A


def choose_degree(at: float, excess_bound: float) -> tuple[float, int]:
    """Return the shift and the degree at which Taylor's polynomial is `exp(Y)` to about 1e-3.

    `at` is the paper's alpha times t. Eigenvalues of Y lie between `-low` and `high`, with
    `low = at shift / 2` and `high = at (1 + excess_bound - shift) / 2`. For x > 0 the degree l
    leaves the relative error `P(Poisson(x) > l)`: `x + 3 sqrt(x) + 2` is enough. For -x the terms
    cancel and leave `x^(l+1) / (l+1)!`: `2.4 x + 5`. The shift asks for the lowest degree.
    """
    if at <= 0:
        return 1.0, 0
    shifts = np.linspace(0.0, 1.0, 21)
    low, high = 0.5 * at * shifts, 0.5 * at * (1.0 + excess_bound - shifts)
    degrees = np.maximum(high + 3.0 * np.sqrt(high) + 2.0, 2.4 * low + 5.0)
    best = int(np.argmin(np.where(low <= REACH, degrees, np.inf)))
    return float(shifts[best]), math.ceil(degrees[best])


@dataclass(frozen=True, eq=False)
class PassedEpoch:
    """An epoch that passes over the rows for every product."""

    vectors: Vectors
    past: Past

    def add(self, weights: RowVector, look: Look) -> PassedEpoch:
        """Return the epoch with one step more."""
        return PassedEpoch(self.vectors, self.past.add(weights, look.mean))

    def score(
        self, weights: RowVector, look: Look, a: float, sketch: Vector, excess_bound: float
    ) -> Scores:
        """Compute Algorithm 2; as many passes as the degree, plus one."""
        return approximate_scores(
            self.vectors, weights, look.mean, self.past, a, sketch, excess_bound=excess_bound
        )


@dataclass(frozen=True, eq=False)
class WrittenEpoch:
    """An epoch of vectors whose covariances are written down."""

    written: WrittenVectors
    total: Vector  # `sum over i < t of Sigma(w^i)`, in the coordinates of `Contrasts`; shape (k, k)
    n_steps: int = 0  # the paper's t

    def add(self, weights: RowVector, look: Look) -> WrittenEpoch:
        """Return the epoch with one step more."""
        covariance = cast("WrittenLook", look).covariance
        return WrittenEpoch(self.written, self.total + covariance, self.n_steps + 1)

    def score(
        self, weights: RowVector, look: Look, a: float, sketch: Vector, excess_bound: float
    ) -> Scores:
        """Compute Algorithm 2; one pass, and only if the scores are asked for.

        Their weighted mean needs none: `sum of w_n tau~_n / |w| = tr(A Sigma(w) A') / tr(A A')`.
        """
        contrasts, expect = self.written.contrasts, self.written.expect
        shift, degree = choose_degree(a * self.n_steps, excess_bound)
        Y = self.total - (shift * self.n_steps) * self.written.expected
        S = expect(contrasts.reduce(sketch))
        A = _exponentiate(lambda V: Y @ V, S, 0.5 * a, degree)
        trace = float((A * A).sum())
        base = float((A * expect(A)).sum()) / trace
        covariance = cast("WrittenLook", look).covariance
        excess = float((A * (covariance @ A)).sum()) / trace - base

        def score_rows() -> RowVector:
            scores = self.written.vectors.score(contrasts.lift(A), look.mean)
            return scores.astype(np.float64) / trace

        return Scores(score_rows, excess, base, degree)


def begin_epoch(seen: WrittenVectors | PassedVectors) -> PassedEpoch | WrittenEpoch:
    """Return an epoch of no steps."""
    if isinstance(seen, WrittenVectors):
        return WrittenEpoch(seen, np.zeros_like(seen.expected))
    return PassedEpoch(seen.vectors, Past.empty(seen.vectors))


@dataclass(frozen=True, eq=False)
class QueSettings:
    """What stays the same during a run."""

    eps: float
    step_cap: float
    sketch: Vector
    seed: int


@dataclass(frozen=True, eq=False)
class QueState:
    """What moves: the weights, what the rows look like under them, the steps so far."""

    weights: RowVector
    look: Look
    history: tuple[Step, ...] = ()

    @property
    def excess(self) -> float:
        """`|Sigma(w) - E|`, its positive side."""
        return self.look.top - 1.0

    def advance(self, weights: RowVector, look: Look, xi: float, start: float) -> QueState:
        """Return the state after a step that began at the time `start`."""
        step = Step(
            len(self.history),
            tuple(self.look.spectrum.values[:8].tolist()),
            1.0 + xi,
            float(self.weights.sum() - weights.sum()) / len(weights),
            time.perf_counter() - start,
        )
        return QueState(weights, look, (*self.history, step))


def que(
    vectors: Vectors,
    eps: float,
    *,
    beta: float = 0.0,
    gamma: float = 0.0,
    width: int = WIDTH,
    allowance: float = ALLOWANCE,
    step_cap: float = STEP_CAP,
    trim: bool = True,
    random_state: Any = None,
) -> OracleResult:
    """Filter by quantum-entropy scores: A_mean of the paper (Lemma que_id).

    Epochs, each of which halves the excess `lam = |Sigma(w) - E|` (its positive side); in an epoch
    up to `5 ln dim` steps of matrix multiplicative weights, each with one call of Algorithm 2,
    whose scores look along all directions in excess at once. `O(log(R) log(dim))` calls of
    `O(width log(dim))` column passes each.

    At most the share 2 eps of the weight is removed. `width` are the columns of the sketch: what
    they buy is in `draw_sketch`. `trim` drops rows very far out first.
    """
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**31))
    tolerated = tolerated_excess(eps, beta, gamma, allowance)
    sketch = draw_sketch(vectors.dim, width, rng)
    settings = QueSettings(eps, step_cap, sketch, seed)
    weights = trim_far_rows(vectors, 2.0 * eps if trim else 0.0, seed=seed)
    seen = see(vectors)
    state = QueState(weights, seen.look_at(weights, seed=seed))
    radius_squared = float((weights * vectors.square_norms(state.look.mean)).max())  # R^2
    status = Status.STEPS_SPENT
    for _ in range(2 + max(0, math.ceil(math.log2(max(radius_squared, 1.0) / tolerated)))):
        # xi: what Lemma que_id tolerates, and what sampling alone adds, which its gamma_2 covers.
        xi = tolerated + float(sampling_noise(seen.vectors, state.weights, state.look)[0])
        if state.excess <= xi or _left(settings, state.weights) <= 0:
            status = Status.CLEAN if state.excess <= xi else Status.BUDGET_SPENT
            state = state.advance(state.weights, state.look, xi, time.perf_counter())
            break
        state = _run_epoch(seen, settings, state, xi, rng)
        followed = follow_weights(seen.vectors, state.weights)
        if followed is not seen.vectors:
            seen = see(followed)
            state = replace(state, look=seen.look_at(state.weights, seed=seed))
    return end_with(vectors, state.weights, status, state.history)


def _run_epoch(
    seen: WrittenVectors | PassedVectors,
    settings: QueSettings,
    state: QueState,
    xi: float,
    rng: np.random.Generator,
) -> QueState:
    """Run multiplicative weights until the excess has halved, is small, or the budget is spent."""
    first = state.excess
    a = 1.0 / (1.1 * first)
    epoch = begin_epoch(seen)
    for _ in range(math.ceil(EPOCH_STEPS * math.log(seen.vectors.dim + 1.0))):
        if state.excess <= max(HALVED * first, xi) or _left(settings, state.weights) <= 0:
            break
        start = time.perf_counter()
        sketch = redraw_sketch(settings.sketch, rng)
        scores = epoch.score(state.weights, state.look, a, sketch, 1.1 * first)
        weights, look = state.weights, state.look
        if scores.excess > TRIGGER * first:
            left = _left(settings, weights)
            weights = soft_filter(
                weights,
                scores.tau,
                tail=2.0 * settings.eps,
                allowed=scores.base + GOAL * first,
                max_mass=min(settings.step_cap * settings.eps * len(weights), left),
            )
            look = seen.look_at(weights, seed=settings.seed)
        epoch = epoch.add(weights, look)  # after the filter, not before
        state = state.advance(weights, look, xi, start)
    return state


def _left(settings: QueSettings, weights: RowVector) -> float:
    """Return the weight that may still be removed, 0 when hardly any: in all, the share 2 eps."""
    left = float(weights.sum()) - (1.0 - 2.0 * settings.eps) * len(weights)
    return left if left > 1e-6 * settings.eps * len(weights) else 0.0
