"""Tables of rows that miss values, wherever the rows are: what the estimators and the fit share."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from robustbn._core.expansion import drop_rounding
from robustbn._core.holes import Holes
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Data, Rows, RowVector, Survey, Vector
from robustbn._core.result import Recorded, RobustFit
from robustbn._core.row_model import RowModel
from robustbn._core.trust import is_even
from robustbn._learn.completion import Complete


def typical_weight(weights: RowVector | None) -> float:
    """Return the weight that stands for one row: the median; 1 where none are given."""
    # With numbers of copies as weights most rows have 1 or little more, and a mean would take many
    # rows for few; rows of hardly any weight or of very much do not move it.
    return 1.0 if weights is None else float(np.median(weights[weights > 0]))


def complete_fit(
    fit: RobustFit, data: Data, holes: Holes, weights: RowVector | None, complete: Complete
) -> RobustFit:
    """Return the fit with its counts, plain ones too, once what is missing is expected."""
    shown = drop_rounding(holes.layout, fit.counts, fit.plain_counts)
    unit = typical_weight(weights)
    if fit.cells is not None:  # their sweeps have drawn what is missing, too
        return _complete_plainly(fit, data, weights, complete, unit)
    trusted = complete(shown, holes, unit)
    plain = trusted
    if fit.removed > 0:
        everything = data.judge(_trust_all, weights, gathers=True)
        plain = complete(everything.counts, everything.holes, unit)
    return replace(fit, counts=trusted.counts, plain_counts=plain.counts, inferred=trusted.inferred)


def _complete_plainly(
    fit: RobustFit, data: Data, weights: RowVector | None, complete: Complete, unit: float
) -> RobustFit:
    """Return a fit whose counts expect what is missing, with plain counts that do so, too."""
    everything = data.judge(_trust_all, weights, gathers=True)
    plain = complete(everything.counts, everything.holes, unit)
    layout, missing = everything.holes.layout, plain.inferred.missing
    shown = fit.counts * np.repeat(1 - missing, layout.cells_per_node)
    inferred = replace(plain.inferred, observed_counts=shown)
    return replace(fit, plain_counts=plain.counts, inferred=inferred)


def count_recorded(
    survey: Survey, model: RowModel, trust: RowVector | None, weights: RowVector | None
) -> Recorded | None:
    """Return how many rows record each state; None where the counts say it.

    That is so where no value is missing, or every row is trusted. Counted among the surveyed rows,
    which stand for all. O(n) time for each edge.

    model : judges the surveyed rows where nobody holds the trust in each row.
    """
    layout = survey.rows.layout
    if not layout.holed or (trust is not None and is_even(trust)):
        return None
    trust = model.trust(survey.rows) if trust is None else trust[survey.numbers]
    given = np.ones(len(trust)) if weights is None else weights[survey.numbers].astype(np.float64)
    both = np.stack([given, given * trust]) * (survey.n_rows / len(trust))
    states = [_count_joint(layout, survey.codes, (c,), both) for c in range(layout.n_nodes)]
    parents = [family[:-1] for family in layout.families]
    of_parents = {p: _count_joint(layout, survey.codes, p, both) for p in set(parents)}
    return Recorded(np.vstack(states), np.vstack([of_parents[p] for p in parents]))


def _count_joint(layout: Layout, codes: Codes, columns: tuple[int, ...], weights: Vector) -> Vector:
    """Return the weights of the rows that show each joint state of some columns; shape (k, 2)."""
    states, is_shown = layout.joint_states(codes, columns)
    size = prod(layout.cards[c] for c in columns)
    counts = [np.bincount(states[is_shown], each[is_shown], size) for each in weights]
    return np.column_stack(counts)


def _trust_all(rows: Rows) -> RowVector:
    return np.ones(rows.n_rows, np.float32)
