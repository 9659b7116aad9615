"""Fit what rows look like: a good population mixed with kinds of bad rows.

The filter proves that the spectrum is clean; it does not separate rows well, because it looks along
few directions. Once it has split the rows roughly, bad rows are modelled by networks of the same
structure, and every row is judged by all its cells. Each step is one `project` and one `count`.

Bad rows need not follow any such network, so the odds are then calibrated: rows drawn from the good
tables say how many good rows there should be at each value of the log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robustbn._core.expansion import (
    chi_distance,
    normalise_counts,
    total_weight,
    uniform_tables,
)
from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import ROWS_JUDGED_AT_ONCE, Draw, RowModel, logistic
from robustbn._core.tuning import Tuning

CALIBRATION_STEPS = 50  # of least squares, which settles in a handful
LEAST_DRAWN = 1000  # rows that are drawn however few there are
INNERMOST = (1e-3, 20)  # drawn log-odds that get no bin: lowest share, highest number


@dataclass(frozen=True, eq=False)
class Explained:
    """A model with what it says of the rows it was fitted to.

    Parameters
    ----------
    good : probability of each row to be good; shape (N,).
    components : probability of each row to be of each component beside the main class;
        shape (N, K).
    log_likelihood : of the rows under the model.
    clarity : mean of the probability of being bad, over the weight that is distrusted. It is 1 when
        every row is judged with certainty, and low where rows that the network could well have
        made are taken for bad ones.
    ambiguity : mean over rows of `min(good, 1 - good)`: the share that it cannot judge.
    """

    model: RowModel
    good: RowVector
    components: RowVector
    log_likelihood: float
    clarity: float
    ambiguity: float


def refit(
    layout: Layout, counts: Vector, mass: Vector, pseudo_counts: Vector, model: RowModel
) -> RowModel:
    """Return the model of counts by component; its calibration is kept.

    Parameters
    ----------
    counts : the main class first; shape (M, 1 + K).
    mass : weight of each component's rows; shape (1 + K,).
    """
    good, *others = (normalise_counts(layout, c, pseudo_counts) for c in counts.T)
    shares = mass[1:] / mass.sum()
    return replace(model, good=good, others=np.stack(others, axis=1), shares=shares)


def explain(
    rows: Rows,
    base: RowVector,
    start: RowModel,
    prior: Vector,
    tuning: Tuning,
    *,
    max_steps: int | None = None,
) -> Explained:
    """Fit the model by expectation-maximisation from a start, not calibrated.

    Parameters
    ----------
    base : fixed weight of each row.
    prior : tables that every component shrinks to where it has few rows: there, all components say
        the same and a row's odds stay as they are.
    max_steps : by default as many as may be needed.
    """
    total = float(base.sum(dtype=np.float64))
    plain = rows.count(base)
    model, before = replace(start, intercept=0.0, slope=1.0), -np.inf
    for step in range(tuning.kind_steps if max_steps is None else max_steps):
        divided = model.divide(rows, base)
        likelihood = (
            divided.log_sum + total * model.log_main_share + float(plain @ np.log(model.good))
        )
        if step and likelihood - before < tuning.kind_tolerance * total:
            break
        before, last = likelihood, model
        pseudo_counts = tuning.kind_prior * prior
        model = refit(rows.layout, divided.counts, divided.masses, pseudo_counts, model)
    else:
        model = last
    shares, _ = model.sort(rows)
    good = shares[:, 0]
    if not model.is_bad.all():
        good = good + shares[:, 1:][:, ~model.is_bad].sum(axis=1)
    bad = base * (1 - good)
    clarity = float(bad @ (1 - good)) / max(float(bad.sum(dtype=np.float64)), 1e-300)
    doubt = float(base @ np.minimum(good, 1 - good)) / total
    return Explained(model, good, shares[:, 1:], likelihood, clarity, doubt)


# --- the last refit, calibrated -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
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
    def of_drawn(cls, log_odds: RowVector, n_bins: int) -> OddsHistogram:
        """Choose bins that hold nearly all of the drawn rows, and count them."""
        ends = [INNERMOST[0], 1 - INNERMOST[1] / len(log_odds)]
        low, high = (float(v) for v in np.quantile(log_odds, ends))
        empty = cls(low, max(high, low + 1e-6), np.zeros(n_bins), len(log_odds))
        return replace(empty, drawn=empty.count(log_odds, None))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.drawn)

    def count(self, log_odds: RowVector, weights: RowVector | None) -> Vector:
        """Return the weight in each bin; what is outside is left out."""
        scale = self.n_bins / (self.high - self.low)
        bins = np.clip((log_odds - self.low) * scale + 1, 0, self.n_bins + 1).astype(np.int32)
        return np.bincount(bins, weights, minlength=self.n_bins + 2)[1:-1].astype(np.float64)

    @property
    def centers(self) -> Vector:
        """Middle of each bin."""
        step = (self.high - self.low) / self.n_bins
        return np.linspace(self.low + step / 2, self.high - step / 2, self.n_bins)


def calibrate(
    model: RowModel, histogram: OddsHistogram, observed: Vector, total: float, tuning: Tuning
) -> RowModel:
    """Return the model with its odds corrected by rows drawn from its good side.

    If `drawn` log-odds y have density f, observed ones should have density
    `(1 - e) f(y) (1 + exp(intercept + slope y))`. The three numbers are fitted to binned counts by
    iterated weighted least squares on the log, with a mild pull towards 0 and 1.

    Parameters
    ----------
    observed : weight of the observed rows in each bin of the histogram.
    total : weight of all observed rows.
    """
    used = histogram.drawn > tuning.settle_bin_rows
    seen, drawn, y = observed[used], histogram.drawn[used], histogram.centers[used]
    unit = total / histogram.n_drawn
    theta = np.array([np.log1p(-min(0.5, model.share_bad)), model.intercept, model.slope])
    pull = np.array([0.0, tuning.settle_intercept_pull, tuning.settle_slope_pull])
    target = np.array([0.0, 0.0, 1.0])
    for _ in range(CALIBRATION_STEPS):
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
    return replace(model, intercept=float(theta[1]), slope=float(theta[2]))


def share_unsure(log_odds: RowVector) -> float:
    """Return the mean over rows of `min(good, 1 - good)`: the share that cannot be judged."""
    return float(logistic(-np.abs(log_odds)).mean(dtype=np.float64))


Weighted = tuple[Rows, RowVector]


def settle(
    model: RowModel, sample: Weighted, some: Weighted, many: Weighted, draw: Draw, tuning: Tuning
) -> tuple[RowModel, Vector]:
    """Refit the model to many rows, calibrated, until its good tables stop moving.

    When the sample leaves no doubt about any row there is nothing to refit. Most of the way is gone
    with some of the rows, where there are many more. Returns the model and its counts by component,
    shape (M, 1 + K), scaled to the many rows.

    Parameters
    ----------
    sample, some, many : rows the model was learned from, as many as are needed to learn it, and
        all there are; each with their base.
    """
    rows, base = many
    noise = _sampling_noise(rows, base)
    shares, log_odds = model.judge(sample[0])
    counts = sample[0].count(shares * sample[1][:, None]) * (rows.n_rows / sample[0].n_rows)
    if share_unsure(log_odds) < tuning.split_unsure * noise:
        return model, counts
    if some[0].n_rows == rows.n_rows:
        return _settle_on(many, model, tuning.settle_least, tuning.sample_calibrated, draw, tuning)
    model, _ = _settle_on(some, model, tuning.settle_least, tuning.sample_drawn, draw, tuning)
    return _settle_on(many, model, 1, tuning.sample_calibrated, draw, tuning)


def _sampling_noise(rows: Rows, base: RowVector) -> float:
    return float(np.sqrt(rows.layout.n_free / max(float(base.sum(dtype=np.float64)), 1.0)))


def _settle_on(
    weighted: Weighted, model: RowModel, least: int, most_drawn: int, draw: Draw, tuning: Tuning
) -> tuple[RowModel, Vector]:
    """Refit and calibrate the model on some rows, at least so often; with its counts there.

    Every step is one pass over the rows in parts, so that memory beside them stays small.
    """
    rows, base = weighted
    layout, total = rows.layout, float(base.sum(dtype=np.float64))
    prior = tuning.kind_prior * normalise_counts(layout, rows.count(base), uniform_tables(layout))
    settled = tuning.settle_moved * _sampling_noise(rows, base)
    for step in range(tuning.settle_steps):
        n_drawn = int(min(max(total, LEAST_DRAWN), most_drawn))
        drawn = model.log_odds(model.draw_good(draw, n_drawn))
        histogram = OddsHistogram.of_drawn(drawn, tuning.settle_bins)
        observed = np.zeros(histogram.n_bins)
        counts = np.zeros((layout.n_cells, 1 + model.n_others))
        mass = np.zeros(1 + model.n_others)
        for where, part in rows.parts(ROWS_JUDGED_AT_ONCE):
            shares, log_odds = model.judge(part)
            weights = shares * base[where, None]
            here = part.count(weights)
            counts += here
            mass += total_weight(layout, here, weights)
            observed += histogram.count(log_odds, base[where])
        before, model = model, refit(layout, counts, mass, prior, model)
        model = calibrate(model, histogram, observed, total, tuning)
        pi = layout.sum_configurations(counts[:, 0]) / total
        if step >= least - 1 and chi_distance(layout, pi, before.good, model.good) < settled:
            break
    return model, counts
