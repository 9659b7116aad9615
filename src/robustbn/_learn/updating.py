"""More rows for a fit: judged by what it knows, and added to its sums. Nothing is searched again.

The sums of a fit are all that its tables are made of, so sums of new rows can be added to them. How
rows are judged stays as it was: the tables of the groups, their sides, the calibration, the list of
repeated rows. Only the share of each group follows the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robustbn._core.config import RobustConfig
from robustbn._core.numbers import count
from robustbn._core.protocols import Data, Vector
from robustbn._core.result import Inferred, Recorded, RobustFit
from robustbn._learn.completion import Complete
from robustbn._learn.filling import complete_fit, count_recorded
from robustbn._learn.wrong_cells import counting_true

LOOKED_AT = 100_000  # new rows at most from which the shares of groups and the doubt are told


@dataclass(frozen=True, eq=False)
class Added:
    """What new rows are, judged by a fit."""

    fit: RobustFit  # of the new rows alone, by the model of the old fit
    doubt: Vector  # sum of `w (1 - w)` of the trust in the rows of each configuration; shape (m,)
    shares: Vector  # of each group among them; shape (K,)


def judge_more(
    old: RobustFit, data: Data, config: RobustConfig, complete: Complete | None
) -> Added:
    """Return what new rows are, judged by a fit. One pass over them, and one to count them all."""
    survey, model = data.survey(None, LOOKED_AT, config.seed), old.model
    cells = old.cells and old.cells.for_other_rows()
    judged = data.judge(
        model.trust, None, gathers=complete is not None, count=counting_true(cells, config)
    )
    rows, scale = survey.rows, survey.n_rows / max(len(survey.numbers), 1)
    layout, trust = rows.layout, model.weigh(rows).astype(np.float64)
    doubt = trust * (1 - trust)
    groups, shares = np.zeros((layout.n_cells, 0)), model.shares
    if model.n_others and rows.n_rows:
        divided = model.divide_calibrated(rows, np.ones(rows.n_rows))
        groups, shares = divided.counts[:, 1:] * scale, divided.masses[1:] / divided.masses.sum()
    fit = replace(
        old,
        counts=judged.counts,
        plain_counts=survey.counts,
        weights=None,
        n_rows=float(survey.n_rows),
        n_trusted=judged.total,
        group_counts=groups,
        recorded=count_recorded(survey, model, judged.trust, None),
        inferred=None,
        unit=1.0,
    )
    if complete is not None and judged.holes is not None:
        fit = complete_fit(fit, data, judged.holes, None, complete)
    return Added(fit, layout.sum_configurations(rows.count(doubt)) * scale, shares)


def add_rows(old: RobustFit, added: Added, forgetting: float) -> RobustFit:
    """Return a fit with the sums of new rows added to its own, which are multiplied first."""
    new, unit = added.fit, old.unit

    def total(a: Vector, b: Vector) -> Vector:
        return forgetting * a + unit * b

    n_rows = forgetting * old.n_rows + unit * new.n_rows
    n_trusted = forgetting * old.n_trusted + unit * new.n_trusted
    shares = total(old.n_rows * old.model.shares, new.n_rows * added.shares) / n_rows
    recorded = None
    if old.recorded is not None and new.recorded is not None:
        recorded = Recorded(
            total(old.recorded.states, new.recorded.states),
            total(old.recorded.configurations, new.recorded.configurations),
        )
    removed = max(0.0, 1 - n_trusted / n_rows)
    return replace(
        old,
        counts=total(old.counts, new.counts),
        plain_counts=total(old.plain_counts, new.plain_counts),
        weights=None,
        n_rows=n_rows,
        n_trusted=n_trusted,
        model=replace(old.model, shares=shares),
        group_counts=total(old.group_counts, new.group_counts),
        status=f"{removed:.2%} of the rows' weight is distrusted; {count(new.n_rows, 'row')} "
        "were added last and judged by the model of the earlier rows.",
        inferred=add_inferred(
            (forgetting * old.counts, old.inferred), (unit * new.counts, new.inferred), forgetting
        ),
        recorded=recorded,
        cells=None,
    )


def add_inferred(
    old: tuple[Vector, Inferred | None], new: tuple[Vector, Inferred | None], forgetting: float
) -> Inferred | None:
    """Return how much of all rows was inferred, and whether the last of them settled.

    old, new : the counts, as they are added, and what of them was inferred.
    forgetting : what the old ones were multiplied by.
    """
    last = new[1] or old[1]
    if last is None:
        return None
    weight = [float(counts.sum()) for counts, _ in (old, new)]
    none = np.zeros_like(last.missing)
    missing = [none if how is None else how.missing for _, how in (old, new)]
    before, after = (counts if how is None else how.observed_counts for counts, how in (old, new))
    return replace(
        last,
        observed_counts=(before if old[1] is None else forgetting * before) + after,
        missing=(weight[0] * missing[0] + weight[1] * missing[1]) / max(sum(weight), 1e-9),
    )
