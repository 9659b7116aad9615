"""What the bad rows look like: the good network mixed with networks of bad rows.

The filter proves that the spectrum is clean; it does not separate rows well, because it looks along
few directions. Once it has split the rows roughly, bad rows are modelled by networks of the same
structure, and every row is judged by all its cells: its log-odds of being bad are
`log sum over k of e[k] B[k](x) / ((1 - e) P(x))`. Each step is one `project` and one `count`.

Bad rows need not follow any such network, so the odds are then calibrated: rows drawn from the good
tables say how many good rows there should be at each value of the log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import Expansion, normalise_counts, sum_over_rows
from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.spectrum import top_eigenpairs

PRIOR_ROWS = 1.0
N_BINS = 120


@dataclass(frozen=True)
class Mixture:
    """Good tables, tables of each kind of bad rows, and how many there are of each.

    Parameters
    ----------
    q : good tables; shape (M,).
    bad : tables of each kind of bad rows; shape (M, K).
    shares : share of each kind among all rows; shape (K,).
    intercept, slope : calibration; the log-odds used are `intercept + slope * log-odds`.
    """

    q: Vector
    bad: Vector
    shares: Vector
    intercept: float = 0.0
    slope: float = 1.0

    @property
    def n_kinds(self) -> int:
        """Number of kinds of bad rows, K."""
        return int(self.bad.shape[1])

    def log_odds_by_kind(self, rows: Rows) -> RowVector:
        """Return `log e[k] B[k](x) / ((1 - e) P(x))`; shape (N, K). One pass."""
        table = np.log(self.bad) - np.log(self.q)[:, None]
        prior = np.log(np.maximum(self.shares, 1e-12)) - np.log1p(-self.shares.sum())
        # an offset is subtracted
        return rows.project(table, -prior)

    def log_odds(self, rows: Rows) -> RowVector:
        """Return the log-odds of each row to be bad, not calibrated; shape (N,). One pass."""
        return _log_sum_exp(self.log_odds_by_kind(rows))

    def weigh(self, rows: Rows) -> RowVector:
        """Return the probability of each row to be good, calibrated; shape (N,). One pass."""
        return _logistic(-self.intercept - self.slope * self.log_odds(rows))

    def log_weigh(self, rows: Rows) -> RowVector:
        """Return the log of that probability, precise where it is tiny; shape (N,). One pass."""
        return -_softplus(self.intercept + self.slope * self.log_odds(rows))


@dataclass(frozen=True)
class Explained:
    """A mixture with what it says of the rows it was fitted to.

    Parameters
    ----------
    good : probability of each row to be good; shape (N,).
    kinds : probability of each row to be of each bad kind; shape (N, K).
    log_likelihood : of the rows under the mixture.
    clarity : mean of the probability of being bad, over the weight that is distrusted. It is 1 when
        every row is judged with certainty. Where rows that the network could well have made are
        taken for bad ones it is low: 0.2 to 0.3 for an adversary who picks them from one tail of
        the network itself, 0.4 to 1 for all that the model can undo.
    ambiguity : mean over rows of `min(good, 1 - good)`: the share that it cannot judge.
    """

    mixture: Mixture
    good: RowVector
    kinds: RowVector
    log_likelihood: float
    clarity: float
    ambiguity: float


def judge(rows: Rows, mixture: Mixture) -> tuple[RowVector, RowVector]:
    """Return `[good, kind 1, ..., kind K]` probabilities and the log-odds of each row to be bad.

    Shapes (N, 1 + K) and (N,). One pass.
    """
    by_kind = mixture.log_odds_by_kind(rows)
    total = _log_sum_exp(by_kind)
    shares = np.empty((len(total), 1 + mixture.n_kinds), by_kind.dtype)
    shares[:, 0] = _logistic(-mixture.intercept - mixture.slope * total)
    if mixture.n_kinds == 1:
        np.subtract(1, shares[:, 0], out=shares[:, 1])
    else:
        by_kind -= total[:, None]
        np.exp(by_kind, out=by_kind)
        np.multiply(by_kind, 1 - shares[:, :1], out=shares[:, 1:])
    return shares, total


def refit(layout: Layout, counts: Vector, pseudo_counts: Vector, mixture: Mixture) -> Mixture:
    """Return the mixture of counts by `[good, kind 1, ..., kind K]`; its calibration is kept.

    Parameters
    ----------
    counts : shape (M, 1 + K).
    """
    mass = sum_over_rows(layout, counts)
    good, *bad = (normalise_counts(layout, c, pseudo_counts) for c in counts.T)
    shares = mass[1:] / mass.sum()
    return replace(mixture, q=good, bad=np.stack(bad, axis=1), shares=shares)


def ambiguity(log_odds: RowVector) -> float:
    """Return the mean over rows of `min(good, 1 - good)`: the share that cannot be judged."""
    return float(_logistic(-np.abs(log_odds)).mean(dtype=np.float64))


def explain(
    rows: Rows,
    base: RowVector,
    start: Mixture,
    prior: Vector,
    *,
    max_steps: int = 50,
    tolerance: float = 5e-6,
) -> Explained:
    """Fit the mixture by expectation-maximisation from a start, not calibrated.

    Parameters
    ----------
    base : fixed weight of each row.
    prior : tables that every component shrinks to where it has few rows: there, all components say
        the same and a row's odds stay as they are.
    tolerance : stop when a step gains less than this log-likelihood a row.
    """
    total = float(base.sum(dtype=np.float64))
    plain = rows.count(base)
    mixture, before = start, -np.inf
    for step in range(max_steps):
        shares, log_odds = judge(rows, mixture)
        likelihood = (
            float(base @ _softplus(log_odds))
            + total * float(np.log1p(-mixture.shares.sum()))
            + float(plain @ np.log(mixture.q))
        )
        if step and likelihood - before < tolerance * total:
            break
        before = likelihood
        counts = rows.count(shares * base[:, None])
        mixture = refit(rows.layout, counts, PRIOR_ROWS * prior, mixture)
    good = shares[:, 0]
    bad = base * (1 - good)
    clarity = float(bad @ (1 - good)) / max(float(bad.sum(dtype=np.float64)), 1e-300)
    doubt = float(base @ np.minimum(good, 1 - good)) / total
    return Explained(mixture, good, shares[:, 1:], likelihood, clarity, doubt)


def with_kind(
    mixture: Mixture | None,
    rows: Rows,
    weights: RowVector,
    total: float,
    good: Vector,
    prior: Vector,
) -> Mixture:
    """Return the mixture with one more kind of bad rows: `weights`, of a `total` weight."""
    table = normalise_counts(rows.layout, rows.count(weights), PRIOR_ROWS * prior)[:, None]
    share = np.array([float(weights.sum(dtype=np.float64)) / total])
    if mixture is None:
        return Mixture(good, table, share)
    return Mixture(good, np.hstack([mixture.bad, table]), np.concatenate([mixture.shares, share]))


def split_widest_kind(
    rows: Rows, base: RowVector, explained: Explained, tried: set[int], least: float
) -> tuple[int, Mixture] | None:
    """Cut in two the kind whose rows are least like a network, along its top direction.

    Returns its number and the mixture to start from, or None when all kinds look like networks.
    `tried` holds the kinds to leave alone; a kind is cut when its top eigenvalue is at least
    `least` times what a network's rows would have.
    """
    best: tuple[float, int, NDArray[np.bool_]] | None = None
    mixture = explained.mixture
    for k in range(mixture.n_kinds):
        weights = base * explained.kinds[:, k]
        n = float(weights.sum())
        if k in tried or n < 200:
            continue
        counts = rows.count(weights)
        expansion = Expansion.at_counts(rows, counts)
        center = np.zeros(expansion.dim)
        spectrum = top_eigenpairs(expansion, weights, center, n, depth=3)
        ratio = rows.layout.n_free / n
        edge = 1 + 2 * np.sqrt(ratio) + ratio
        excess = (spectrum.top / edge - 1) * n
        if spectrum.top > least * edge and (best is None or excess > best[0]):
            along = rows.project(expansion.table(spectrum.vectors[:, :1]))[:, 0]
            best = (excess, k, along > 0)
    if best is None:
        return None
    _, k, side = best
    rest = Mixture(mixture.q, np.delete(mixture.bad, k, axis=1), np.delete(mixture.shares, k))
    for half in (side, ~side):
        rest = with_kind(
            rest,
            rows,
            base * explained.kinds[:, k] * half,
            float(base.sum(dtype=np.float64)),
            mixture.q,
            mixture.bad[:, k],
        )
    return k, rest


@dataclass(frozen=True)
class OddsHistogram:
    """How many rows there are at each value of the log-odds, observed and drawn.

    Parameters
    ----------
    low, high : range of the bins.
    drawn : number of drawn rows in each bin.
    n_drawn : number of all drawn rows.
    """

    low: float
    high: float
    drawn: Vector
    n_drawn: int

    @classmethod
    def of_drawn(cls, log_odds: RowVector) -> OddsHistogram:
        """Choose bins that hold nearly all of the drawn rows, and count them."""
        low, high = (float(v) for v in np.quantile(log_odds, [1e-3, 1 - 20 / len(log_odds)]))
        empty = cls(low, max(high, low + 1e-6), np.zeros(N_BINS), len(log_odds))
        return replace(empty, drawn=empty.count(log_odds, None))

    def count(self, log_odds: RowVector, weights: RowVector | None) -> Vector:
        """Return the weight in each bin; what is outside is left out."""
        scale = N_BINS / (self.high - self.low)
        bins = np.clip((log_odds - self.low) * scale + 1, 0, N_BINS + 1).astype(np.int32)
        return np.bincount(bins, weights, minlength=N_BINS + 2)[1:-1].astype(np.float64)

    @property
    def centers(self) -> Vector:
        """Middle of each bin."""
        step = (self.high - self.low) / N_BINS
        return np.linspace(self.low + step / 2, self.high - step / 2, N_BINS)


def calibrate(
    mixture: Mixture, histogram: OddsHistogram, observed: Vector, total: float
) -> Mixture:
    """Return the mixture with its odds corrected by rows drawn from its good tables.

    If `drawn` log-odds y have density f, observed ones should have density
    `(1 - e) f(y) (1 + exp(intercept + slope y))`. The three numbers are fitted to binned counts by
    iterated weighted least squares on the log, with a mild pull towards 0 and 1.

    Parameters
    ----------
    observed : weight of the observed rows in each bin of the histogram.
    total : weight of all observed rows.
    """
    used = histogram.drawn > 10
    seen, drawn, y = observed[used], histogram.drawn[used], histogram.centers[used]
    unit = total / histogram.n_drawn
    theta = np.array([np.log1p(-min(0.5, mixture.shares.sum())), mixture.intercept, mixture.slope])
    pull, target = np.array([0.0, 4.0, 25.0]), np.array([0.0, 0.0, 1.0])
    for _ in range(50):
        odds = np.exp(np.clip(theta[1] + theta[2] * y, -40, 40))
        expected = unit * drawn * np.exp(theta[0]) * (1 + odds)
        jacobian = np.column_stack([np.ones_like(y), odds / (1 + odds), y * odds / (1 + odds)])
        precision = 1 / (1 / expected + 1 / drawn)
        normal = jacobian.T @ (precision[:, None] * jacobian) + np.diag(pull)
        slope = jacobian.T @ (precision * (seen / expected - 1)) + pull * (target - theta)
        step = np.clip(np.linalg.solve(normal, slope), -1, 1)
        theta = theta + step
        theta[0] = min(theta[0], 0.0)
        if np.abs(step).max() < 1e-5:
            break
    return replace(mixture, intercept=float(theta[1]), slope=float(theta[2]))


def _log_sum_exp(values: RowVector) -> RowVector:
    """Return `log of the sum of exp(values[n, k]) over k`, column by column: K is small."""
    largest = values[:, 0].copy()
    for column in values.T[1:]:
        np.maximum(largest, column, out=largest)
    if values.shape[1] == 1:
        return largest
    total = np.zeros_like(largest)
    for column in values.T:
        total += np.exp(column - largest)
    return largest + np.log(total)


def _softplus(values: RowVector) -> RowVector:
    """Return `log(1 + exp(x))` without overflow."""
    softplus: RowVector = np.maximum(values, 0) + np.log1p(np.exp(-np.abs(values)))
    return softplus


def _logistic(values: RowVector) -> RowVector:
    """Return `1 / (1 + exp(-x))` without overflow."""
    logistic: RowVector = 0.5 * (1 + np.tanh(values * np.float32(0.5)))
    return logistic
