"""The last explanation, for rows that no group describes: some are denser than they should be.

Along the directions in which the rows vary more than they should, good rows have the scores that
rows drawn from the tables have. Where the observed rows are denser than that, some are bad: a row
keeps the share `expected density / observed density` of its weight. That needs no tail bound and no
eps, and rare configurations or heavy tails are in the comparison already.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import Draw, Filter, RowModel
from robustbn._core.trust import sum_weights
from robustbn._learn.look import DIRECTIONS, Look, look_at

BINS, TAIL = 64, 2e-5  # of the scores' upper half, and the deepest share of rows with its own bin
MOST_FILTERS = 20  # each is one more pass over all rows
LEAST_TAKEN = 1e-4  # share of rows: a filter that takes less is the last
QUANTILE_ROWS = 20_000  # scores that the edges of the bins are read off: a thinning, for time


def build_filter(
    table: Vector, rows: Rows, weights: RowVector, clean: Rows
) -> tuple[Filter, RowVector]:
    """Return the filter that brings the scores' density down to that of clean rows, and factors."""
    # Bins are cut at high quantiles of both score distributions together, so that the far tail,
    # where bad rows are, is resolved even when only a few rows are there.
    observed, drawn = rows.score(table), clean.score(table)
    tails = 1 - np.geomspace(0.5, TAIL, BINS)
    both = (scores[:: 1 + len(scores) // QUANTILE_ROWS] for scores in (observed, drawn))
    edges = np.unique(np.concatenate([np.quantile(scores, tails) for scores in both]))
    share_observed = _shares(observed, edges, weights)
    share_drawn = _shares(drawn, edges, None) + 0.5 / clean.n_rows
    factors = falling_ratios(share_drawn, np.maximum(share_observed, 1e-12))
    built = Filter(table, edges.astype(np.float64), np.minimum(1.0, factors))
    return built, built.factor(observed)


def filter_rest(
    rows: Rows, base: RowVector, model: RowModel, draw: Draw, most: float
) -> tuple[RowModel, Look, str]:
    """Filter rows until what is trusted looks like rows of the network.

    Returns the model with its filters, the last look, and why no more was filtered, in a few words;
    empty when the rows look clean.

    base : weight of each row, without its trust.
    most : share of the rows' weight that may be distrusted.
    """
    weights, total = base * model.weigh(rows), sum_weights(base)
    look, is_last = look_at(rows, weights, draw, closely=True), False
    while look.excess > 0 and look.clean is not None:
        if len(model.filters) == MOST_FILTERS:
            return model, look, f"after {MOST_FILTERS} filters"
        n_directions = int(np.clip((look.spectrum.values > look.limit).sum(), 1, DIRECTIONS))
        table = look.spectrum.table[:, :n_directions]
        built, factors = build_filter(table, rows, weights, look.clean)
        kept, before = weights * factors, sum_weights(weights)
        if 1 - sum_weights(kept) / total > most:
            return model, look, f"because more than {most:.0%} would be removed"
        takes = sum_weights(kept) <= (1 - LEAST_TAKEN) * before
        if is_last and not takes:
            return model, look, "because no row stands out"
        if takes:
            model, weights = replace(model, filters=(*model.filters, built)), kept
        is_last = not takes  # one draw of rows may hide what another shows
        look = look_at(rows, weights, draw, closely=True)
    return model, look, ""


def falling_ratios(above: Vector, below: Vector) -> Vector:
    """Return the ratios `above / below`, neighbours pooled until they nowhere rise."""
    # Pooling, unlike a running minimum, keeps the ratios right on average: noise in the bins alone
    # takes no weight away.
    pools: list[tuple[float, float, int]] = []
    for a, b in zip(above.tolist(), below.tolist(), strict=True):
        pool = (a, b, 1)
        while pools and pools[-1][0] * pool[1] < pool[0] * pools[-1][1]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])
        pools.append(pool)
    return np.repeat([a / b for a, b, _ in pools], [n for _, _, n in pools])


def _shares(scores: RowVector, edges: Vector, weights: RowVector | None) -> Vector:
    bins = np.searchsorted(edges, scores, side="right")
    counts = np.bincount(bins, weights, minlength=len(edges) + 1).astype(np.float64)
    counts /= counts.sum()
    return counts
