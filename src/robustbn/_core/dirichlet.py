"""Tables as distributions: an expert's as a prior, what it predicts, intervals of probabilities.

An expert may be wrong. A configuration's table is the expert's, as sure as so many rows, or nothing
is known of it (Jeffreys' prior); how probable the rows are under each says which, and the expert's
rows count by the probability that the expert is right. How often experts are right in general is
learned from all configurations together, so that one who is wrong throughout is not believed where
there are few rows either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector

JEFFREYS = 0.5  # rows a cell: what is known of a table before any row, with next to no influence
LEAST_ADDED = 1e-3  # rows: an expert's zero, which a single row must not refute for good
BOTH_LARGE = 40.0  # rows: from here on, three cumulants of the logit give levels to 0.0002
BELIEVED = (9.0, 1.0)  # configurations in which an expert was right, and wrong, before any row
TRUST_STEPS = 50  # of expectation-maximisation for one number, which needs about ten
MOST_NATS = 700.0  # of which the exponential is still a number
STEPS, MOST_TERMS = 60, 400  # of bisection, below rounding; of a continued fraction, many too many


@dataclass(frozen=True, eq=False)
class Expert:
    """An expert's tables, NaN where nothing is said, and what each configuration is worth."""

    tables: Vector  # shape (M,)
    rows: Vector  # that each configuration is worth; shape (m,)

    def added(self, layout: Layout) -> Vector:
        """Return the pseudo-counts of an expert who is right, `A[k, v] = rows[k] q[k, v]`; (M,)."""
        return self.rows[layout.config_of_cell] * np.nan_to_num(self.tables)

    def nats_against(self, layout: Layout, counts: Vector) -> Vector:
        """Return the log of the Bayes factor of no expert against this one; shape (m,)."""
        flat = np.full(layout.n_cells, JEFFREYS)
        against = log_evidence(layout, counts, flat)
        against -= log_evidence(layout, counts, self.added(layout))
        is_both = (self.rows > 0) & (layout.sum_configurations(counts) > 0)
        return np.where(is_both, np.clip(against, -MOST_NATS, MOST_NATS), 0.0)

    def weighed(self, layout: Layout, counts: Vector) -> Vector:
        """Return the pseudo-counts, times the probability that the expert is right; shape (M,)."""
        # Time O(M). Counts are those of trusted rows; shape (M,).
        against = self.nats_against(layout, counts)
        is_told = against != 0
        share = BELIEVED[0] / sum(BELIEVED)  # of the configurations, in which the expert is right
        for _ in range(TRUST_STEPS):
            odds = np.exp(-against) * share / (1 - share)
            is_right = odds / (1 + odds)
            n = np.count_nonzero(is_told) + sum(BELIEVED)
            share = (is_right[is_told].sum() + BELIEVED[0]) / n
        return is_right[layout.config_of_cell] * self.added(layout)


def log_evidence(layout: Layout, counts: Vector, added: Vector) -> Vector:
    """Return the log-probability of each configuration's rows, in order, before they were seen.

    `log G(A[k]) - log G(A[k] + C[k]) + sum over v of log G(A[k, v] + C[k, v]) - log G(A[k, v])`,
    with G the gamma function: a Dirichlet distribution of the table, integrated out. Shape (m,).
    """
    added = np.maximum(added, LEAST_ADDED)
    of_cells = layout.sum_configurations(log_gamma(added + counts) - log_gamma(added))
    total, seen = layout.sum_configurations(added), layout.sum_configurations(counts)
    return of_cells + log_gamma(total) - log_gamma(total + seen)


def log_gamma(values: Vector) -> Vector:
    """Return the logarithm of the gamma function of each of some numbers; shape (n,)."""
    return np.fromiter(map(math.lgamma, values.tolist()), np.float64, len(values))


def beta_quantile(level: float, a: Vector, b: Vector) -> Vector:
    """Return the quantile of beta distributions at one level; shape of a and b."""
    # Bisection of the distribution function; where a and b are both large, by the mean, variance
    # and third cumulant of the logit (Cornish and Fisher).
    from statistics import NormalDist

    z = NormalDist().inv_cdf(level)
    with np.errstate(all="ignore"):
        low, high = a - 0.5, b - 0.5
        spread = np.sqrt(1 / low + 1 / high)
        bent = (z * z - 1) / 6 * (1 / high**2 - 1 / low**2) / spread**2
        near: Vector = 1 / (1 + np.exp(-(np.log(low / high) + z * spread + bent)))
    hard = np.flatnonzero((a < BOTH_LARGE) | (b < BOTH_LARGE))
    if len(hard):
        near[hard] = _bisect(level, a[hard], b[hard])
    return near


def _bisect(level: float, a: Vector, b: Vector) -> Vector:
    """Return beta quantiles, bisecting the logarithm where they are small: they may be tiny."""
    low, high = np.full(a.shape, -700.0), np.full(a.shape, 37.0)  # of logits
    log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
    for _ in range(STEPS):
        middle = (low + high) / 2
        is_below = _beta_cdf(middle, a, b, log_beta) < level
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    quantile: Vector = 1 / (1 + np.exp(-(low + high) / 2))
    return quantile


def _beta_cdf(logit: Vector, a: Vector, b: Vector, log_beta: Vector) -> Vector:
    """Return the beta distribution function at logits, by its continued fraction (Lentz)."""
    log_x, log_y = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
    x = np.exp(log_x)
    swap = x > (a + 1) / (a + b + 2)
    x = np.where(swap, np.exp(log_y), x)
    p, q = np.where(swap, b, a), np.where(swap, a, b)
    tiny = 1e-300
    c, d = np.ones_like(x), 1 / _apart(1 - (p + q) * x / (p + 1), tiny)
    total = d.copy()
    for m in range(1, MOST_TERMS):
        before = total
        for term in (
            m * (q - m) * x / ((p + 2 * m - 1) * (p + 2 * m)),
            -(p + m) * (p + q + m) * x / ((p + 2 * m) * (p + 2 * m + 1)),
        ):
            d = 1 / _apart(1 + term * d, tiny)
            c = _apart(1 + term / c, tiny)
            total = total * c * d
        if np.abs(total / before - 1).max() < 1e-12:
            break
    part = np.exp(a * log_x + b * log_y - log_beta) * total / p
    return np.where(swap, 1 - part, part)


def _apart(values: Vector, tiny: float) -> Vector:
    """Return values, none of them zero."""
    return np.where(np.abs(values) < tiny, tiny, values)
