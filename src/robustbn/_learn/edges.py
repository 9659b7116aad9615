"""Whether one more edge would explain a kind of bad rows as well.

Where the network lacks an edge, rows with an unusual pair of states look like rows of another kind.
An edge explains them at least as well as a kind of their own; rows that are really bad break many
tables at once, and no single edge explains much of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import normalise_counts, uniform_tables
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import RowModel
from robustbn._core.tuning import Tuning
from robustbn._learn.leftovers import find_ancestors, measure_pair


class CodedRows(NamedTuple):
    """Rows, and their codes; shape (N, d)."""

    rows: Rows
    codes: Codes


def explained_by_edge(
    rows: Rows, codes: Codes, base: RowVector, model: RowModel, tuning: Tuning
) -> Vector:
    """Return the share of what each bad kind tells of the rows that an edge would tell, too; (K,).

    Each is measured among the rows that are of no other bad kind: the log-likelihood of two
    components against one, and of one with an edge more against one. 0 for a kind that breaks many
    tables, where no edge is looked for.

    Parameters
    ----------
    codes, base : of the rows, and their weights.
    """
    found = np.zeros(model.n_others)
    shares = model.sort(rows)[0] if model.n_others else np.empty((rows.n_rows, 1))
    for k in np.flatnonzero(model.is_bad).tolist():
        others = model.is_bad.copy()
        others[k] = False
        kept = base * np.maximum(1 - shares[:, 1:][:, others].sum(axis=1), 0)
        alone = replace(
            model,
            others=model.others[:, k : k + 1],
            shares=model.shares[k : k + 1],
            is_bad=model.is_bad[k : k + 1],
        )
        found[k] = _explain_one(rows, codes, kept, alone, tuning)
    return found


def filtered_rows_as_kind(rows: Rows, base: RowVector, model: RowModel) -> RowModel | None:
    """Return a model whose one kind is what filters alone distrust; None if that is nothing."""
    if not model.filters:
        return None
    only = replace(RowModel.of_good_rows(model.good), filters=model.filters)
    taken = base * (1 - only.weigh(rows))
    share = float(taken.sum(dtype=np.float64)) / float(base.sum(dtype=np.float64))
    if share <= 0:
        return None
    prior = normalise_counts(rows.layout, rows.count(base), uniform_tables(rows.layout))
    tables = normalise_counts(rows.layout, rows.count(taken), prior)
    return RowModel.of_good_rows(model.good).with_component(tables, share)


def _explain_one(
    rows: Rows, codes: Codes, kept: RowVector, model: RowModel, tuning: Tuning
) -> float:
    layout, counts = rows.layout, rows.count(kept)
    of_kind = rows.count(kept * model.sort(rows)[0][:, 1])
    apart = np.maximum(
        np.add.reduceat(of_kind * model.evidence[:, 0], layout.cell_start[:-1]), 1e-12
    )
    if apart.sum() ** 2 / (apart**2).sum() > tuning.edge_breadth:
        return 0.0
    one = normalise_counts(layout, counts, uniform_tables(layout))
    total = float(kept.sum(dtype=np.float64))
    told = float(kept @ model.log_density(rows)) - float(counts @ np.log(one))
    if layout.n_nodes <= tuning.edge_small:
        return add_edge(layout, codes, kept)[1] * total / max(told, 1e-9)
    if told < tuning.edge_least * total:
        return 0.0
    likely = np.argsort(-apart)[: tuning.edge_nodes].tolist()
    return _best_edge(layout, codes, kept, likely) * total / told


def _best_edge(layout: Layout, codes: Codes, kept: RowVector, nodes: list[int]) -> float:
    """Return the nats a row that the best edge at some nodes gains."""
    ancestors, best = find_ancestors(layout), 0.0
    for node in nodes:
        for other in range(layout.n_nodes):
            if other in layout.families[node] or node in layout.families[other]:
                continue
            edge = (node, other) if node in ancestors[other] else (other, node)
            measured = measure_pair(layout, codes, kept, *edge)
            best = best if measured is None else max(best, measured[0])
    return best


def is_no_kind(
    coded: CodedRows, given: RowVector, uncopied: RowVector, model: RowModel, tuning: Tuning
) -> NDArray[np.bool_]:
    """Return which bad kinds an edge explains about as well: misfit, not bad rows; shape (K,).

    Parameters
    ----------
    given, uncopied : weights of the rows as they are, and once repeated ones are lowered.
    """
    rows, codes = coded
    is_explained = explained_by_edge(rows, codes, given, model, tuning) >= tuning.edge_as_well
    if is_explained.any() and not np.array_equal(given, uncopied):
        share = explained_by_edge(rows, codes, uncopied, model, tuning)
        is_explained &= share >= tuning.edge_uncopied
    return is_explained


# --- networks of few nodes, where one edge may explain all that is amiss --------------------------


def add_edge(layout: Layout, codes: Codes, weights: RowVector) -> tuple[Layout, float]:
    """Return the layout with the edge that rows want most, and what it gains in nats a row.

    All edges are tried, each free number of their tables at its price: a table of many states fits
    anything. The layout is the same, and the gain 0, if none gains.
    """
    ancestors, best, wider = find_ancestors(layout), 0.0, layout
    n, cards = max(float(weights.sum(dtype=np.float64)), 2.0), np.array(layout.cards)
    for child in range(layout.n_nodes):
        *given, _ = layout.families[child]
        for parent in range(layout.n_nodes):
            if parent in layout.families[child] or child in ancestors[parent]:
                continue
            measured = measure_pair(layout, codes, weights, parent, child)
            n_free = float(np.prod(cards[given])) * (cards[parent] - 1) * (cards[child] - 1)
            price = 0.5 * n_free * np.log(n) / n
            if measured is not None and measured[0] - price > best:
                families = list(layout.families)
                families[child] = (*given, parent, child)
                best, wider = measured[0] - price, replace(layout, families=tuple(families))
    return wider, best


def tell_by_edge(
    layout: Layout, wider: Layout, codes: Codes, weights: RowVector, asked: Codes
) -> Vector:
    """Return how much likelier rows are, in nats, in a layout with an edge more; shape (k,).

    Parameters
    ----------
    codes, weights : the rows that both layouts' tables are of.
    asked : the rows that are asked about; shape (k, d).
    """
    told = np.zeros(len(asked))
    for family, more in zip(layout.families, wider.families, strict=True):
        if family != more:
            shown = (asked[:, more] < np.array(layout.cards)[list(more)]).all(axis=1)
            odds = [
                _log_table(layout, each, codes, weights, asked[shown]) for each in (family, more)
            ]
            told[shown] += odds[1] - odds[0]
    return told


def _log_table(
    layout: Layout, family: Sequence[int], codes: Codes, weights: RowVector, asked: Codes
) -> Vector:
    """Return the log-probability of the child in each row that is asked."""
    cards = [layout.cards[c] for c in family]
    shown = (codes[:, family] < np.array(cards)).all(axis=1)
    joint = np.ravel_multi_index(tuple(codes[shown][:, family].T.astype(np.int64)), cards)
    counts = np.bincount(joint, weights[shown], int(np.prod(cards))).reshape(-1, cards[-1])
    at = np.ravel_multi_index(tuple(asked[:, family].T.astype(np.int64)), cards)
    lines = counts[at // cards[-1]]
    of_state = counts.ravel()[at]
    log_table: Vector = np.log((of_state + 0.5 / cards[-1]) / (lines.sum(axis=1) + 0.5))
    return log_table
