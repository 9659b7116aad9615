"""Fit what rows look like: a good population mixed with kinds of bad rows.

The filter proves that the spectrum is clean; it does not separate rows well, because it looks along
few directions. Once it has split the rows roughly, bad rows are modelled by networks of the same
structure, and every row is judged by all its cells. Each step is one `project` and one `count`.

Bad rows need not follow any such network, so the odds are then calibrated: rows drawn from the good
tables say how many good rows there should be at each value of the log-odds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import (
    chi_distance,
    normalise_counts,
    uniform_tables,
)
from robustbn._core.layout import Layout
from robustbn._core.protocols import Divided, Rows, RowVector, Vector
from robustbn._core.row_model import Draw, RowModel, logistic
from robustbn._core.tuning import Tuning

STEPS_OVER_ALL = 4  # before it is asked again which rows are sure
CALIBRATION_STEPS = 50  # of least squares, which settles in a handful
LEAST_DRAWN = 1000  # rows that are drawn however few there are
INNERMOST = (1e-3, 20)  # drawn log-odds that get no bin: lowest share, highest number


Take = Callable[[NDArray[np.bool_]], tuple[Rows, NDArray[np.int64] | slice]]


@dataclass(frozen=True, eq=False)
class Explained:
    """A model with what it says of the rows it was fitted to.

    Parameters
    ----------
    rows : the rows.
    good : probability of each row to be good; shape (N,).
    log_likelihood : of the rows under the model.
    clarity : mean of the probability of being bad, over the weight that is distrusted. It is 1 when
        every row is judged with certainty, and low where rows that the network could well have
        made are taken for bad ones.
    ambiguity : mean over rows of `min(good, 1 - good)`: the share that it cannot judge.
    """

    rows: Rows
    model: RowModel
    good: RowVector
    log_likelihood: float
    clarity: float
    ambiguity: float

    @cached_property
    def components(self) -> RowVector:
        """Probability of each row to be of each component beside the main class; shape (N, K)."""
        shares: RowVector = self.model.sort(self.rows)[0][:, 1:]
        return shares


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
    take: Take | None = None,
) -> Explained:
    """Fit the model by expectation-maximisation from a start, not calibrated.

    Where many steps are needed, most of them pass over the rows alone that are not surely of the
    main class; the others stay divided as they are, until a step over all rows gains nothing.

    Parameters
    ----------
    base : fixed weight of each row.
    prior : tables that every component shrinks to where it has few rows: there, all components say
        the same and a row's odds stay as they are.
    max_steps : by default as many as may be needed.
    take : gives some of the rows; without it, every step passes over all of them.
    """
    whole = _Part.whole(rows, base, 1 + start.n_others)
    pseudo_counts = tuning.kind_prior * prior
    enough, n_steps = tuning.kind_tolerance * whole.total, max_steps or tuning.kind_steps
    model, before, part = replace(start, intercept=0.0, slope=1.0), -np.inf, whole
    for step in range(n_steps):
        part = part if step < n_steps - 1 else whole
        divided, likelihood = part.divide(model)
        gain, before = likelihood - before, likelihood
        if step and gain < enough:
            if part is whole:
                break
            part, before = whole, -np.inf
            continue
        is_slow = np.inf > gain > tuning.kind_many_steps * enough
        if take is not None and part is whole and is_slow and step % STEPS_OVER_ALL == 2:
            part = whole.take_unsure(model, divided, take, tuning.kind_certain)
            before = likelihood if part is whole else -np.inf
        last = model
        model = refit(rows.layout, divided.counts, divided.masses, pseudo_counts, model)
    else:
        model = last
    good = model.trust_at(model.log_odds(rows))
    bad = base * (1 - good)
    clarity = float(bad @ (1 - good)) / max(float(bad.sum(dtype=np.float64)), 1e-300)
    doubt = float(base @ np.minimum(good, 1 - good)) / whole.total
    return Explained(rows, model, good, likelihood, clarity, doubt)


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows that steps pass over, and the others, which stay divided as they are.

    Parameters
    ----------
    rows, base : the rows, and their weights.
    plain, total : weight of the rows on each cell, shape (M,), and of all of them.
    counts, masses : of the others, by component; shapes (M, 1 + K) and (1 + K,).
    """

    rows: Rows
    base: RowVector
    plain: Vector
    total: float
    counts: Vector
    masses: Vector

    @classmethod
    def whole(cls, rows: Rows, base: RowVector, n_components: int) -> _Part:
        """Return all rows: there are no others."""
        counts, masses = np.zeros((rows.layout.n_cells, n_components)), np.zeros(n_components)
        total = float(base.sum(dtype=np.float64))
        return cls(rows, base, rows.count(base), total, counts, masses)

    def take_unsure(self, model: RowModel, divided: Divided, take: Take, certain: float) -> _Part:
        """Return the rows that are not surely of the main class, unless they are most.

        Parameters
        ----------
        divided : these rows, by the model.
        certain : probability to be of another component, below which a row is sure.
        """
        odds = self.rows.odds(model.evidence, -model.log_prior_odds, 0)
        rows, which = take(odds > np.log(certain))
        if rows is self.rows:
            return self
        base = self.base[which]
        of_rows = model.divide(rows, base)
        counts = np.maximum(divided.counts - of_rows.counts, 0)  # what is rounded may be below
        masses = np.maximum(divided.masses - of_rows.masses, 0)
        total = float(base.sum(dtype=np.float64))
        return _Part(rows, base, rows.count(base), total, counts, masses)

    def divide(self, model: RowModel) -> tuple[Divided, float]:
        """Return all rows divided among the components, and their log-likelihood.

        Of rows that stay divided as they are it is what the steps raise, up to a constant.
        """
        divided, log_good = model.divide(self.rows, self.base), np.log(model.good)
        total, plain = self.total + self.masses.sum(), self.plain + self.counts.sum(axis=1)
        likelihood = divided.log_sum + total * model.log_main_share + plain @ log_good
        likelihood += self.masses[1:] @ model.log_prior_odds
        likelihood += (self.counts[:, 1:] * model.evidence).sum()
        counts, masses = divided.counts + self.counts, divided.masses + self.masses
        return Divided(counts, masses, divided.log_sum), float(likelihood)


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
    judged = model.divide_calibrated(*sample)
    if share_unsure(judged.odds) < tuning.split_unsure * noise:
        return model, judged.counts * (rows.n_rows / sample[0].n_rows)
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

    Every step is one pass over the rows, and one over newly drawn ones: what errs by chance in one
    draw would add up over steps that share it.
    """
    rows, base = weighted
    layout, total = rows.layout, float(base.sum(dtype=np.float64))
    prior = tuning.kind_prior * normalise_counts(layout, rows.count(base), uniform_tables(layout))
    settled = tuning.settle_moved * _sampling_noise(rows, base)
    n_drawn = int(min(max(total, LEAST_DRAWN), most_drawn))
    for step in range(tuning.settle_steps):
        drawn = model.log_odds(model.draw_good(draw, n_drawn))
        histogram = OddsHistogram.of_drawn(drawn, tuning.settle_bins)
        judged = model.divide_calibrated(rows, base)
        observed = histogram.count(judged.odds, base)
        before, model = model, refit(layout, judged.counts, judged.masses, prior, model)
        model = calibrate(model, histogram, observed, total, tuning)
        pi = layout.sum_configurations(judged.counts[:, 0]) / total
        if step >= least - 1 and chi_distance(layout, pi, before.good, model.good) < settled:
            break
    return model, judged.counts
