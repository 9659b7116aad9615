"""Compares new rows with what a model knows of good ones: their likelihood, and the tables.

How surprising a row is, is measured against what the tables expect of such a row:

    s = (sum of -log q[j] - sum of H[k]) / sqrt(sum of V[k])

over its cells j and their configurations k, where H and V are the mean and the variance of -log q
in a configuration. Rows that miss values are measured by the families that they show. How large s
is among good rows is kept from the rows of the fit, each measured without its own count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.result import Calibration
from robustbn._learn.origins import log_tail

LEVELS = (0.5, 0.9, 0.99)  # shares of good rows below a surprise that is kept
ADDED = 0.5  # rows that are added to each cell, so that no row is impossible
ALARM = 0.002  # chance that a batch of good rows fails any of the tests
LEAST_EXPECTED = 2.0  # rows that a cell should have in a batch to be compared by itself
LEAST_ROWS = 5.0  # of a configuration in a batch: fewer are not compared


@dataclass(frozen=True, eq=False)
class Batch:
    """What new rows have that good ones do not.

    Parameters
    ----------
    n_rows : of the batch.
    unlikely : share of the rows that are less likely than good rows are, beyond chance.
    unlikely_nats : evidence that there are such rows, the number of tests considered; 0 if none.
    moved : evidence in nats that each node's table is another, 0 where chance explains it; that
        of all tables together comes last. Shape (d + 1,).
    effect : nats a row by which it is another; shape (d + 1,).
    """

    n_rows: int
    unlikely: float
    unlikely_nats: float
    moved: Vector
    effect: Vector


def calibrate(layout: Layout, counts: Vector, rows: Rows, trust: RowVector) -> Calibration:
    """Return how surprising good rows are.

    Parameters
    ----------
    counts : of the trusted rows, cell by cell; shape (M,).
    rows, trust : some rows of the fit, and the trust in each.
    """
    surprise = _measure(layout, counts, rows, n_own=1.0)
    weights = trust.astype(np.float64)
    order = np.argsort(surprise, kind="stable")
    upto = np.cumsum(weights[order])
    places = np.searchsorted(upto, np.array(LEVELS) * upto[-1])
    limits = surprise[order[np.minimum(places, len(order) - 1)]]
    mean = float(weights @ surprise / weights.sum())
    spread = float(np.sqrt(weights @ (surprise - mean) ** 2 / weights.sum()))
    return Calibration(limits, mean, spread, float(weights.sum()))


def _measure(layout: Layout, counts: Vector, rows: Rows, n_own: float) -> Vector:
    """Return how surprising rows are, if each has been counted `n_own` times; shape (n,)."""
    added = counts + ADDED
    totals = layout.sum_configurations(added)[layout.config_of_cell]
    q = added / totals
    log_q = np.log(np.maximum(added - n_own, ADDED) / np.maximum(totals - n_own, ADDED))
    information = -np.log(q)
    mean = layout.sum_configurations(q * information)
    variance = layout.sum_configurations(q * information**2) - mean**2
    of_cell = np.column_stack(
        [-log_q, mean[layout.config_of_cell], variance[layout.config_of_cell]]
    )
    told = rows.project(of_cell).astype(np.float64)
    surprise: Vector = (told[:, 0] - told[:, 1]) / np.sqrt(np.maximum(told[:, 2], 1e-3))
    return surprise


def compare_batch(layout: Layout, counts: Vector, known: Calibration | None, rows: Rows) -> Batch:
    """Return what new rows have that good ones do not.

    Parameters
    ----------
    counts : of the trusted rows of the fit; shape (M,).
    known : how surprising good rows are; None if the model does not say: then tables decide alone.
    rows : the new ones.
    """
    n_tests = len(LEVELS) + 2 + layout.n_nodes
    unlikely, nats = 0.0, 0.0
    if known is not None and rows.n_rows:
        unlikely, nats = _find_unlikely(_measure(layout, counts, rows, n_own=0.0), known, n_tests)
    moved, effect = _compare_tables(layout, counts, rows.count(), n_tests)
    return Batch(rows.n_rows, unlikely, nats, moved, effect)


def _find_unlikely(surprise: Vector, known: Calibration, n_tests: int) -> tuple[float, float]:
    """Return the share of rows that are more surprising than good ones, and the evidence."""
    n, share, nats = len(surprise), 0.0, 0.0
    for level, limit in zip(LEVELS, known.limits.tolist(), strict=True):
        usual = 1 - level
        at_most = usual + 2 * math.sqrt(usual * level / known.n_rows)  # the limit is an estimate
        k = int(np.count_nonzero(surprise > limit))
        share = max(share, (k / n - usual) / level)
        nats = max(nats, -log_tail(k, n, at_most))
    off = (float(surprise.mean()) - known.mean) / known.spread
    z = off / math.sqrt(1 / n + 1 / known.n_rows)
    nats = max(nats, _log_odds_of(z)) - math.log(n_tests / ALARM)
    return (share, nats) if nats > 0 else (0.0, 0.0)


def _log_odds_of(z: float) -> float:
    """Return `-log P(N(0, 1) > z)`; 0 below the mean."""
    if z <= 0:
        return 0.0
    if z < 25:
        return -math.log(0.5 * math.erfc(z / math.sqrt(2)))
    return z * z / 2 + math.log(z * math.sqrt(2 * math.pi))


def _compare_tables(
    layout: Layout, known: Vector, new: Vector, n_tests: int
) -> tuple[Vector, Vector]:
    """Return the evidence that each table is another, and nats a row of the difference.

    A likelihood-ratio test of two tables, in which states that are rare in a configuration are
    taken together, since the test's distribution is known where cells are not nearly empty.
    """
    node_of_config = np.repeat(np.arange(layout.n_nodes), np.diff(layout.config_start))
    here, there = layout.sum_configurations(new), layout.sum_configurations(known)
    share = here / np.maximum(here + there, 1e-12)
    expected = (new + known) * share[layout.config_of_cell]
    is_compared = ((here >= LEAST_ROWS) & (there >= LEAST_ROWS))[layout.config_of_cell]
    is_large = (expected >= LEAST_EXPECTED) & is_compared
    is_rare = ~is_large & is_compared
    ratio = _sum_ratio(np.where(is_large, new, 0), np.where(is_large, known, 0), share, layout)
    rare = [layout.sum_configurations(np.where(is_rare, c, 0.0)) for c in (new, known)]
    has_rare = (rare[0] + rare[1]) * share >= LEAST_EXPECTED
    pooled = _ratio_of(np.where(has_rare, rare[0], 0), np.where(has_rare, rare[1], 0), share)
    of_config = layout.sum_configurations(ratio) + pooled
    free = layout.sum_configurations(is_large.astype(np.float64)) + has_rare - 1
    free = np.where(here * there > 0, np.maximum(free, 0), 0)
    total = np.bincount(node_of_config, of_config, layout.n_nodes)
    n_free = np.bincount(node_of_config, free, layout.n_nodes)
    total, n_free = np.append(total, total.sum()), np.append(n_free, n_free.sum())
    evidence = np.array([_tail(2 * g, f) for g, f in zip(total, n_free, strict=True)])
    evidence = np.maximum(evidence - math.log(n_tests / ALARM), 0.0)
    n_rows = max(float(new.sum()) / layout.n_nodes, 1.0)
    return evidence, np.where(evidence > 0, np.maximum(total - n_free / 2, 0) / n_rows, 0.0)


def _sum_ratio(new: Vector, known: Vector, share: Vector, layout: Layout) -> Vector:
    return _ratio_of(new, known, share[layout.config_of_cell])


def _ratio_of(new: Vector, known: Vector, share: Vector) -> Vector:
    """Return `a log(a / e) + b log(b / f)`, e and f being the expected parts of a + b."""
    both = new + known
    first = new * np.log(np.maximum(new, 1e-300) / np.maximum(both * share, 1e-300))
    second = known * np.log(np.maximum(known, 1e-300) / np.maximum(both * (1 - share), 1e-300))
    return np.where(new > 0, first, 0.0) + np.where(known > 0, second, 0.0)


def _tail(g: float, free: float) -> float:
    """Return `-log P(chi-square > g)`, by the cube root of Wilson and Hilferty."""
    if free <= 0 or g <= free:
        return 0.0
    part = 2 / (9 * free)
    z = ((g / free) ** (1 / 3) - (1 - part)) / math.sqrt(part)
    return _log_odds_of(z)
