"""The last refit, calibrated, where the rest looks like rows of the network.

Bad rows need not follow any network, so the odds are calibrated: rows drawn from the good tables
say how many good rows there should be at each value of the log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robustbn._core.expansion import chi_distance, normalise_counts, uniform_tables
from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import Draw, RowModel, logistic
from robustbn._core.trust import is_even, sum_weights
from robustbn._learn.look import LEAST_DRAWN, MOST_DRAWN

LEAST_STEPS, MOST_STEPS = 4, 8  # the calibration starts at none, and two or three settle it
# Sampling noise: an error of a tenth of it makes the whole half a percent larger. Each draw of rows
# moves the tables by 0.06 to 0.1, so that a limit of 0.05 was often met by chance alone.
MOVED = 0.1  # sampling noise: see above
UNSURE = 0.02  # sampling noise: fewer rows that are not judged clearly do not matter to the tables
PRIOR = 1.0  # rows a configuration: where a group has few rows it says what all rows say
CALIBRATED = 200_000  # rows drawn at most, to calibrate the odds
BINS, LEAST_IN_BIN = 120, 10.0  # of the log-odds, and drawn rows of a bin that says something
PULL = (0.0, 4.0, 25.0)  # prior precision of the share, of the intercept at 0, of the slope at 1
CALIBRATION_STEPS = 50  # of least squares, which settles in a handful
INNERMOST = (1e-3, 20)  # drawn log-odds that get no bin: lowest share, highest number


@dataclass(frozen=True, eq=False)
class OddsHistogram:
    """How many rows there are at each value of the log-odds, observed and drawn."""

    # low, high: range of the bins
    low: float
    high: float
    drawn: Vector  # number of drawn rows in each bin
    n_drawn: int  # number of all drawn rows

    @classmethod
    def of_drawn(cls, log_odds: RowVector) -> OddsHistogram:
        """Choose bins that hold nearly all of the drawn rows, and count them."""
        ends = [INNERMOST[0], 1 - INNERMOST[1] / len(log_odds)]
        low, high = np.quantile(np.sort(log_odds), ends).tolist()  # faster than selecting
        empty = cls(low, max(high, low + 1e-6), np.zeros(BINS), len(log_odds))
        return replace(empty, drawn=empty.count(log_odds, None))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.drawn)

    def count(self, log_odds: RowVector, weights: RowVector | None) -> Vector:
        """Return the weight in each bin; what is outside is left out."""
        scale = self.n_bins / (self.high - self.low)
        bins = np.clip((log_odds - self.low) * scale + 1, 0, self.n_bins + 1).astype(np.intp)
        given = None if weights is None or is_even(weights) else weights
        return np.bincount(bins, given, minlength=self.n_bins + 2)[1:-1].astype(np.float64)

    @property
    def centers(self) -> Vector:
        """Middle of each bin."""
        step = (self.high - self.low) / self.n_bins
        return np.linspace(self.low + step / 2, self.high - step / 2, self.n_bins)


def calibrate(
    model: RowModel, histogram: OddsHistogram, observed: Vector, total: float
) -> RowModel:
    """Return the model with its odds corrected by rows drawn from its good side.

    If `drawn` log-odds y have density f, observed ones should have density
    `(1 - e) f(y) (1 + exp(intercept + slope y))`. The three numbers are fitted to binned counts by
    iterated weighted least squares on the log, with a mild pull towards 0 and 1.

    observed : weight of the observed rows in each bin of the histogram.
    """
    used = histogram.drawn > LEAST_IN_BIN
    seen, drawn, y = observed[used], histogram.drawn[used], histogram.centers[used]
    unit = total / histogram.n_drawn
    theta = np.array([np.log1p(-min(0.5, model.share_bad)), model.intercept, model.slope])
    pull, target = np.array(PULL), np.array([0.0, 0.0, 1.0])
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


Weighted = tuple[Rows, RowVector]


def settle(
    model: RowModel, sample: Weighted, many: Weighted, draw: Draw
) -> tuple[RowModel, Vector]:
    """Refit the model to many rows, calibrated, until its good tables stop moving.

    When the sample leaves no doubt about any row there is nothing to refit. Most of the way is gone
    with the sample, where there are many more. Returns the model and its counts by component,
    shape (M, 1 + K), scaled to the many rows.

    sample, many : rows the model was learned from, and all there are; each with their weights.
    """
    rows, n_rows = many[0], sample[0].n_rows
    judged = model.divide_calibrated(*sample)
    unsure = float(logistic(-np.abs(judged.odds)).mean(dtype=np.float64))
    if unsure < UNSURE * _sampling_noise(*many):
        return model, judged.counts * (rows.n_rows / n_rows)
    if n_rows == rows.n_rows:
        return _settle_on(many, model, LEAST_STEPS, CALIBRATED, draw)
    model, _ = _settle_on(sample, model, LEAST_STEPS, MOST_DRAWN, draw)
    return _settle_on(many, model, 1, CALIBRATED, draw)


def _sampling_noise(rows: Rows, base: RowVector) -> float:
    return float(np.sqrt(rows.layout.n_free / max(sum_weights(base), 1.0)))


def _settle_on(
    weighted: Weighted, model: RowModel, least: int, most_drawn: int, draw: Draw
) -> tuple[RowModel, Vector]:
    """Refit and calibrate the model on some rows, at least so often; with its counts there."""
    # Every step is one pass over the rows, and one over newly drawn ones: what errs by chance in
    # one draw would add up over steps that share it.
    rows, base = weighted
    layout, total = rows.layout, sum_weights(base)
    prior = PRIOR * normalise_counts(layout, rows.count(base), uniform_tables(layout))
    settled = MOVED * _sampling_noise(rows, base)
    n_drawn = int(min(max(total, LEAST_DRAWN), most_drawn))
    for step in range(MOST_STEPS):
        drawn = model.log_odds(model.draw_good(draw, n_drawn))
        histogram = OddsHistogram.of_drawn(drawn)
        judged = model.divide_calibrated(rows, base)
        observed = histogram.count(judged.odds, base)
        before, model = model, _refit(layout, judged.counts, judged.masses, prior, model)
        model = calibrate(model, histogram, observed, total)
        pi = layout.sum_configurations(judged.counts[:, 0]) / total
        if step >= least - 1 and chi_distance(layout, pi, before.good, model.good) < settled:
            break
    return model, judged.counts


def _refit(
    layout: Layout, counts: Vector, mass: Vector, pseudo_counts: Vector, model: RowModel
) -> RowModel:
    """Return the model of counts by component, the main class first; its calibration is kept."""
    good, *others = (normalise_counts(layout, c, pseudo_counts) for c in counts.T)
    shares = mass[1:] / mass.sum()
    return replace(model, good=good, others=np.stack(others, axis=1), shares=shares)
