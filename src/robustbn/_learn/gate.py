"""Compares new rows with what a model knows of good ones: their likelihood, and the tables.

How likely a row is to be a bad one is measured against a background, the product Q of the columns'
own frequencies, of which a share a of the rows might be drawn:

    m = a Q / ((1 - a) P + a Q),  a = 0.1,

with P what a draft of the good rows says of the row (`draft_layout`). Its sum over a batch is, up
to a constant, the derivative of the log-likelihood in that share: the most powerful test of rows
whose columns come from different rows, and of others that break what ties columns. The tables that
are compared beside it are those of the user's network.

How m is spread among good rows is known from the rows of the fit. They are cut into contiguous
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
from robustbn._core.trust import DOUBT
from robustbn._learn.draft import Worth, find_tree, measure_pairs
from robustbn._learn.leftovers import score_chi2
from robustbn._rows.families import FamilyCounts
from robustbn._rows.memory import find_holed

Load = Callable[[Layout, Codes], Rows]  # makes rows of codes, for any layout of their columns

ADDED = 0.5  # rows that are added to each cell, so that no row is impossible
ALARM = 0.003  # chance that a batch of good rows fails by its rows; by its tables, half of that
STRETCHES, LEAST_STRETCH = 50, 50  # into which the rows of a fit are cut at most; rows of one
MIXED = 0.1  # a: share of rows of the background at which the test is most powerful
MOST_INFLATED = 20.0  # times the variance of independent rows: a sorted file has more, by its order
LEAST_EXPECTED = 2.0  # rows that a cell should have in a batch to be compared by itself
LEAST_ROWS = 5.0  # of a configuration in a batch: fewer are not compared
PAIRED = 10**7  # values that are counted beside another column's: about 0.1 seconds
LEAST_DRAFTED = 500  # rows, however many columns: a pair that tells 0.01 nats a row is still found
NEAREST = 5  # columns, those that tell most alone, which may be further parents
MOST_PARENTS = 3  # of a node; more changed nothing on 22 tables


@dataclass(frozen=True, eq=False)
class Batch:
    """What new rows have that good ones do not."""

    n_rows: int  # of the batch
    unlikely: float  # share of the rows that are less likely than good rows are, beyond chance
    # evidence that there are such rows, beyond what is due to chance; 0 if none
    unlikely_nats: float
    # evidence in nats that each node's table is another, 0 where chance explains it; that of all
    # tables together; that each node's states have other frequencies, where they are compared.
    # Shape (2 d + 1,)
    moved: Vector
    effect: Vector  # nats a row by which it is another; shape (2 d + 1,)
    counts: Vector  # of the new rows in each cell; shape (M,)


def calibrate(layout: Layout, load: Load, codes: Codes, trust: RowVector) -> Calibration:
    """Return how much like the background good rows are."""
    weights, own = trust.astype(np.float64), draft_layout(layout, codes[trust >= DOUBT])
    n_parts = min(STRETCHES, 1 + len(codes) // LEAST_STRETCH)
    parts = np.array_split(np.arange(len(codes)), n_parts)
    counts, told = load(own, codes).count(trust), np.empty(len(codes))
    for part in parts:
        rows = load(own, codes[part])
        told[part] = _measure(own, np.maximum(counts - rows.count(trust[part]), 0.0), rows)
    n_rows = float(weights.sum())
    mean = float(told @ weights) / n_rows
    off = told - mean
    spread = math.sqrt(float(off**2 @ weights) / n_rows)
    rng = np.random.default_rng(0)
    mixed = load(own, np.column_stack([rng.permutation(column) for column in codes.T]))
    differs, free = _compare_parts(layout, load, codes, trust, parts)
    ratios = np.append(_compare_stretches(off, weights, parts, spread), differs)
    known = np.append(n_parts - 1, free)  # numbers that each is known from
    error = np.sqrt(2 / np.maximum(known, 1))  # relative
    is_sure = ratios > 1 + 2 * error
    return Calibration(
        own.cards,
        own.families,
        counts,
        mean,
        spread,
        float((off / max(spread, 1e-9)) ** 3 @ weights) / n_rows,
        n_rows,
        float(_measure(own, counts, mixed).mean()),
        np.where(is_sure, np.minimum(ratios * (1 + error), MOST_INFLATED), 1.0),
    )


def _compare_parts(
    layout: Layout, load: Load, codes: Codes, trust: RowVector, parts: Sequence[NDArray[np.int64]]
) -> tuple[Vector, Vector]:
    """Return how much more the tables of stretches differ than chance, by how many numbers."""
    counts = load(layout, codes).count(trust)
    differs, free = np.zeros((2, 2 * layout.n_nodes + 1))
    for part in parts:
        own = load(layout, codes[part]).count(trust[part])
        total, n_free = _sum_all(layout, np.maximum(counts - own, 0.0), own)
        differs, free = differs + 2 * total, free + n_free
    return differs / np.maximum(free, 1), free


def _compare_stretches(
    off: Vector, weights: Vector, parts: Sequence[NDArray[np.int64]], spread: float
) -> float:
    """Return how much more the means of stretches vary than those of independent rows would."""
    n = np.array([weights[part].sum() for part in parts])
    sums = np.array([weights[part] @ off[part] for part in parts])
    if len(parts) < 2 or spread <= 0:
        return 1.0
    return float((sums**2 / np.maximum(n, 1e-9)).sum() / (len(parts) - 1)) / spread**2


def _measure(layout: Layout, counts: Vector, rows: Rows) -> Vector:
    """Return how likely each row is to be one of the background, if a share `MIXED` is."""
    added = counts + ADDED
    ratio = np.log(added / layout.sum_configurations(added)[layout.config_of_cell])
    for i in range(layout.n_nodes):
        of_state = layout.table_of(i, added).sum(axis=0)
        table = layout.table_of(i, ratio)
        table -= np.log(of_state / of_state.sum())
    told = rows.project(ratio[:, None])[:, 0].astype(np.float64)
    return 1 / (1 + (1 / MIXED - 1) * np.exp(np.clip(told, -700, 700)))


def compare_batch(
    counts: Vector, rows: Rows, known: Calibration | None, load: Load, codes: Codes
) -> Batch:
    """Return what new rows have that good ones do not.

    known : how much like the background good rows are; None if the model does not say, so that
        tables decide alone.
    """
    layout = rows.layout
    unlikely, nats, inflation = 0.0, 0.0, np.ones(layout.n_nodes + 1)
    new = rows.count()
    if known is not None and rows.n_rows:
        own = Layout(known.cards, known.families)
        unlikely, nats = _find_unlikely(_measure(own, known.counts, load(own, codes)), known)
        inflation = known.inflation[1:]
    moved, effect = _compare_tables(layout, counts, new, inflation)
    return Batch(rows.n_rows, unlikely, nats, moved, effect, new)


def _find_unlikely(told: Vector, known: Calibration) -> tuple[float, float]:
    """Return the share of rows that are less likely than good ones, and the evidence for it."""
    off = float(told.mean()) - known.mean
    n = 1 / (float(known.inflation[0]) * (1 / len(told) + 1 / known.n_rows))
    nats = _exceed_mean(off / known.spread, known.skew, n) + math.log(ALARM)
    share = min(off / max(known.mixed - known.mean, 1e-9), 1.0)
    return (share, nats) if nats > 0 else (0.0, 0.0)


def _exceed_mean(off: float, skew: float, n: float) -> float:
    """Return `-log P` of a mean of n values so many spreads above its own: by a gamma as skewed."""
    # A gamma of skewness `skew / sqrt(n)` is half a chi-square of `8 n / skew^2` degrees of
    # freedom.
    z = off * math.sqrt(n)
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
    """Return the evidence that each table is another, and nats a row of the difference.

    inflation : of the tables, and of the frequencies of states if these are compared.
    """
    total, n_free = _sum_all(layout, known, new)
    n_free[len(inflation) :] = 0  # not compared
    inflation = np.append(inflation, np.ones(len(total) - len(inflation)))
    scaled = 2 * total / inflation
    evidence = np.array([_tail(g, f) for g, f in zip(scaled, n_free, strict=True)])
    evidence = np.maximum(evidence - math.log(2 * len(total) / ALARM), 0.0)
    n_rows = max(float(new.sum()) / layout.n_nodes, 1.0)
    excess = np.maximum(total - inflation * n_free / 2, 0)
    return evidence, np.where(evidence > 0, excess / n_rows, 0.0)


def _sum_all(layout: Layout, known: Vector, new: Vector) -> tuple[Vector, Vector]:
    """Return how far tables, and the frequencies of states, differ, and by how many numbers.

    A change is diluted over the configurations of the parents in a table, but not in the
    frequencies. Those of nodes without parents are their tables, and not compared again.
    """
    alone = Layout(layout.cards, tuple((i,) for i in range(layout.n_nodes)))
    has_parents = np.array([len(family) > 1 for family in layout.families])
    tables = _sum_differences(layout, known, new)
    states = _sum_differences(alone, count_states(layout, known), count_states(layout, new))
    total, n_free = (
        np.append(table, has_parents * state[:-1])
        for table, state in zip(tables, states, strict=True)
    )
    return total, n_free


def count_states(layout: Layout, counts: Vector) -> Vector:
    """Return the rows with each state of each node, from those in each cell."""
    tables = (layout.table_of(i, counts) for i in range(layout.n_nodes))
    return np.concatenate([table.sum(axis=0) for table in tables])


def _sum_differences(layout: Layout, known: Vector, new: Vector) -> tuple[Vector, Vector]:
    """Return how far two tables differ, and by how many numbers; all nodes together come last."""
    # Likelihood ratios, in which states that are rare in a configuration are taken together, since
    # their distribution is known where cells are not nearly empty.
    node_of_config = np.repeat(np.arange(layout.n_nodes), np.diff(layout.config_start))
    here, there = layout.sum_configurations(new), layout.sum_configurations(known)
    share = here / np.maximum(here + there, 1e-12)
    expected = (new + known) * share[layout.config_of_cell]
    is_compared = ((here >= LEAST_ROWS) & (there >= LEAST_ROWS))[layout.config_of_cell]
    is_large = (expected >= LEAST_EXPECTED) & is_compared
    is_rare = ~is_large & is_compared
    ratio = _ratio_of(
        np.where(is_large, new, 0), np.where(is_large, known, 0), share[layout.config_of_cell]
    )
    rare = [layout.sum_configurations(np.where(is_rare, c, 0.0)) for c in (new, known)]
    has_rare = (rare[0] + rare[1]) * share >= LEAST_EXPECTED
    pooled = _ratio_of(np.where(has_rare, rare[0], 0), np.where(has_rare, rare[1], 0), share)
    of_config = layout.sum_configurations(ratio) + pooled
    free = layout.sum_configurations(is_large.astype(np.float64)) + has_rare - 1
    free = np.where(here * there > 0, np.maximum(free, 0), 0)
    total = np.bincount(node_of_config, of_config, layout.n_nodes)
    n_free = np.bincount(node_of_config, free, layout.n_nodes)
    return np.append(total, total.sum()), np.append(n_free, n_free.sum())


def _ratio_of(new: Vector, known: Vector, share: Vector) -> Vector:
    """Return `a log(a / e) + b log(b / f)`, e and f being the expected parts of a + b."""
    both = new + known
    first = new * np.log(np.maximum(new, 1e-300) / np.maximum(both * share, 1e-300))
    second = known * np.log(np.maximum(known, 1e-300) / np.maximum(both * (1 - share), 1e-300))
    return np.where(new > 0, first, 0.0) + np.where(known > 0, second, 0.0)


def _tail(g: float, free: float) -> float:
    """Return `-log P(chi-square > g)`; 0 below the mean."""
    return 0.0 if free <= 0 or g <= free else _log_odds_of(score_chi2(g, free))


# --- the network by which rows are judged, drafted from the rows ----------------------------------

# The edges of the user's network need not be those that tie columns most, and its tables may be too
# large to be known well. The draft is a tree of the pairs that tell most of each other, and further
# parents where they pay. A missing value is a state here: values that are missing together tie
# columns, too.


def draft_layout(layout: Layout, codes: Codes) -> Layout:
    """Return the cells of a draft of rows; O(n d^2) time, with n <= `PAIRED / d^2` rows or so."""
    holed = frozenset(find_holed(layout, codes))
    cards = tuple(card + (c in holed) for c, card in enumerate(layout.cards))
    n = max(PAIRED // layout.n_nodes**2, LEAST_DRAFTED)
    some = codes[:: -(-len(codes) // n)]
    worth = Worth(FamilyCounts(some, cards), len(some))
    gains = measure_pairs(worth)
    tree = {child: parent for parent, child in find_tree(gains)}
    order = [*(c for c in range(layout.n_nodes) if c not in tree), *tree]  # parents come first
    families: list[tuple[int, ...]] = [(c,) for c in range(layout.n_nodes)]
    for place, child in enumerate(order):
        if child in tree:
            before = np.setdiff1d(order[:place], tree[child])
            nearest = before[np.argsort(-gains[before, child], kind="stable")][:NEAREST]
            parents = _add_parents(worth, child, tree[child], nearest.tolist())
            families[child] = (*parents, child)
    return Layout(cards, tuple(families))


def _add_parents(worth: Worth, child: int, first: int, nearest: list[int]) -> list[int]:
    """Return the first parent of a child, and those of the nearest columns that pay beside it."""
    own, told = [first], worth.of(child, [first])
    while nearest and len(own) < MOST_PARENTS:
        found = worth.of_each(child, own, nearest)
        best = int(np.argmax(found))
        if found[best] <= told:
            break
        told = float(found[best])
        own.append(nearest.pop(best))
    return own
