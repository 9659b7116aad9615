"""Compares new rows with what a model knows of good ones: their likelihood, and the tables.

How surprising a row is, is measured against what the tables expect of such a row:

    s = (sum of -log q[j] - sum of H[k]) / sqrt(sum of V[k])

over its cells j and their configurations k, where H and V are the mean and the variance of -log q
in a configuration. Rows that miss values are measured by the families that they show. A second
measure asks whether columns have been put together from different rows:

    m = a Q / ((1 - a) P + a Q),  a = 0.1,

with P what the tables say of the row and Q the product of the columns' own frequencies: how likely
it is that the row is such a one, if a tenth of the rows are. Its mean over the batch is one number,
and a test of it finds far fewer such rows than tests of whole tables do.

How both are spread among good rows is known from the rows of the fit. They are cut into contiguous
stretches, and each stretch is measured by the counts of the others, as new rows are: rows that
follow each other, such as the visits of a person, tell of one another. How much more the stretches
differ than independent rows would is kept, too, and divides what a batch must exceed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.result import Calibration
from robustbn._learn.origins import log_tail

LEVELS = (0.5, 0.9, 0.99)  # shares of good rows below a surprise that is kept
ADDED = 0.5  # rows that are added to each cell, so that no row is impossible
ALARM = 0.003  # chance that a batch of good rows fails any of the tests
STRETCHES, LEAST_STRETCH = 50, 50  # into which the rows of a fit are cut at most; rows of one
MIXED = 0.1  # share of rows of mixed columns that the test for them is made for
MOST_INFLATED = 20.0  # times the variance of independent rows: a sorted file has more, by its order
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


def calibrate(
    layout: Layout, counts: Vector, load: Callable[..., Rows], codes: Codes, trust: RowVector
) -> Calibration:
    """Return how surprising good rows are.

    Parameters
    ----------
    counts : of the trusted rows, cell by cell; shape (M,).
    load : makes rows of codes.
    codes, trust : some rows of the fit, in their order, and the trust in each.
    """
    weights, every = trust.astype(np.float64), load(codes)
    scale = float(counts.sum()) / max(float(every.count(trust).sum()), 1e-9)
    n_parts = min(STRETCHES, 1 + len(codes) // LEAST_STRETCH)
    parts = np.array_split(np.arange(len(codes)), n_parts)
    told = np.empty((2, len(codes)))
    differs, free = np.zeros((2, layout.n_nodes + 1))
    for part in parts:
        rows = load(codes[part])
        own = rows.count(trust[part])
        others = np.maximum(counts - scale * own, 0.0)
        told[:, part] = _measure(layout, others, rows)
        total, n_free = _sum_differences(layout, others, own)
        differs, free = differs + 2 * total, free + n_free
    order = np.argsort(told[0], kind="stable")
    upto = np.cumsum(weights[order])
    places = np.searchsorted(upto, np.array(LEVELS) * upto[-1])
    mean = told @ weights / weights.sum()
    spread = np.sqrt((told - mean[:, None]) ** 2 @ weights / weights.sum())
    rng = np.random.default_rng(0)
    mixed = load(np.column_stack([rng.permutation(column) for column in codes.T]))
    ratios = [_compare_stretches(told[k], weights, parts, mean[k], spread[k]) for k in (0, 1)]
    ratios += (differs / np.maximum(free, 1)).tolist()
    known = np.concatenate([np.full(2, n_parts - 1), free])  # numbers that each is known from
    error = np.sqrt(2 / np.maximum(known, 1))  # relative
    is_sure = ratios > 1 + 2 * error
    return Calibration(
        told[0][order[np.minimum(places, len(order) - 1)]],
        mean,
        spread,
        ((told - mean[:, None]) / spread[:, None].clip(1e-9)) ** 3 @ weights / weights.sum(),
        float(weights.sum()),
        float(_measure(layout, counts, mixed)[1].mean()),
        np.where(is_sure, np.minimum(ratios * (1 + error), MOST_INFLATED), 1.0),
    )


def _compare_stretches(
    told: Vector, weights: Vector, parts: Sequence[NDArray[np.int64]], mean: float, spread: float
) -> float:
    """Return how much more the means of stretches vary than those of independent rows would."""
    n = np.array([weights[part].sum() for part in parts])
    sums = np.array([weights[part] @ (told[part] - mean) for part in parts])
    if len(parts) < 2 or spread <= 0:
        return 1.0
    return float((sums**2 / np.maximum(n, 1e-9)).sum() / (len(parts) - 1)) / spread**2


def _measure(layout: Layout, counts: Vector, rows: Rows) -> Vector:
    """Return how surprising rows are, and how much like rows of mixed columns; shape (2, n)."""
    added = counts + ADDED
    q = added / layout.sum_configurations(added)[layout.config_of_cell]
    information = -np.log(q)
    mean = layout.sum_configurations(q * information)
    variance = layout.sum_configurations(q * information**2) - mean**2
    alone = np.empty_like(q)
    ends = zip(layout.cell_start[:-1], layout.cell_start[1:], layout.cards, strict=True)
    for start, end, card in ends:
        of_state = added[start:end].reshape(-1, card).sum(axis=0)
        alone[start:end] = np.tile(np.log(of_state / of_state.sum()), (end - start) // card)
    of_cell = np.column_stack(
        [information, mean[layout.config_of_cell], variance[layout.config_of_cell], alone]
    )
    told = rows.project(of_cell).astype(np.float64)
    surprise = (told[:, 0] - told[:, 1]) / np.sqrt(np.maximum(told[:, 2], 1e-3))
    odds = math.log(MIXED / (1 - MIXED)) + told[:, 0] + told[:, 3]
    return np.stack([surprise, 1 / (1 + np.exp(-np.clip(odds, -700, 700)))])


def compare_batch(layout: Layout, counts: Vector, known: Calibration | None, rows: Rows) -> Batch:
    """Return what new rows have that good ones do not.

    Parameters
    ----------
    counts : of the trusted rows of the fit; shape (M,).
    known : how surprising good rows are; None if the model does not say: then tables decide alone.
    rows : the new ones.
    """
    unlikely, nats, inflation = 0.0, 0.0, np.ones(layout.n_nodes + 1)
    if known is not None and rows.n_rows:
        unlikely, nats = _find_unlikely(_measure(layout, counts, rows), known)
        inflation = known.inflation[2:]
    moved, effect = _compare_tables(layout, counts, rows.count(), inflation)
    return Batch(rows.n_rows, unlikely, nats, moved, effect)


def _find_unlikely(told: Vector, known: Calibration) -> tuple[float, float]:
    """Return the share of rows that are less likely than good ones, and the evidence for it."""
    (surprise, _), n, found = told, told.shape[1], []
    few = n / known.inflation[0]  # independent rows that say as much
    for level, limit in zip(LEVELS, known.limits.tolist(), strict=True):
        usual = 1 - level
        at_most = usual + 2 * math.sqrt(usual * level * known.inflation[0] / known.n_rows)
        share = np.count_nonzero(surprise > limit) / n
        found.append((-log_tail(int(share * few), round(few), at_most), (share - usual) / level))
    off = told.mean(axis=1) - known.mean
    independent = 1 / (known.inflation[:2] * (1 / n + 1 / known.n_rows))
    share = min(float(off[1]) / max(known.mixed - float(known.mean[1]), 1e-9), 1.0)
    told_by = np.stack([off, known.spread, known.skew, independent], axis=1).tolist()
    shares = (found[0][1], share)
    found += [(_exceed_mean(*each), s) for each, s in zip(told_by, shares, strict=True)]
    nats, share = max(found)
    nats -= math.log(2 * len(found) / ALARM)
    return (max(share, 0.0), nats) if nats > 0 else (0.0, 0.0)


def _exceed_mean(off: float, spread: float, skew: float, n: float) -> float:
    """Return `-log P` of a mean of n values so far above its own: by a gamma of the same skewness.

    A gamma of skewness `skew / sqrt(n)` is half a chi-square of `8 n / skew^2` degrees of freedom.
    """
    z = off / spread * math.sqrt(n)
    if skew <= 0 or z <= 0:
        return _log_odds_of(z)
    free = 8 * n / skew**2
    return _tail(free + z * math.sqrt(2 * free), free)


def _log_odds_of(z: float) -> float:
    """Return `-log P(N(0, 1) > z)`; 0 below the mean."""
    if z <= 0:
        return 0.0
    if z < 25:
        return -math.log(0.5 * math.erfc(z / math.sqrt(2)))
    return z * z / 2 + math.log(z * math.sqrt(2 * math.pi))


def _compare_tables(
    layout: Layout, known: Vector, new: Vector, inflation: Vector
) -> tuple[Vector, Vector]:
    """Return the evidence that each table is another, and nats a row of the difference."""
    total, n_free = _sum_differences(layout, known, new)
    scaled = 2 * total / inflation
    evidence = np.array([_tail(g, f) for g, f in zip(scaled, n_free, strict=True)])
    evidence = np.maximum(evidence - math.log(2 * len(total) / ALARM), 0.0)
    n_rows = max(float(new.sum()) / layout.n_nodes, 1.0)
    excess = np.maximum(total - inflation * n_free / 2, 0)
    return evidence, np.where(evidence > 0, excess / n_rows, 0.0)


def _sum_differences(layout: Layout, known: Vector, new: Vector) -> tuple[Vector, Vector]:
    """Return how far two tables differ, and by how many numbers; all nodes together come last.

    Likelihood ratios, in which states that are rare in a configuration are taken together, since
    their distribution is known where cells are not nearly empty.
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
    return np.append(total, total.sum()), np.append(n_free, n_free.sum())


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
