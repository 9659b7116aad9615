"""Tables by one of the named oracles, through Algorithm 1 or jointly, on all rows."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import numpy as np

from robustbn._core.config import RobustConfig
from robustbn._core.expansion import normalise_counts, uniform_tables
from robustbn._core.protocols import Rows
from robustbn._core.result import RobustFit, Round
from robustbn._core.row_model import RowModel
from robustbn._means import NEED_SHARE, ORACLES
from robustbn._means.algorithm1 import Refined, follow_jointly, follow_paper, trim_by_likelihood
from robustbn.exceptions import SettingError


def fit_with_oracle(rows: Rows, config: RobustConfig, tell: Callable[[Round], None]) -> RobustFit:
    """Learn with a named oracle; unseen rows are judged by networks of trusted and other rows."""
    layout = rows.layout
    refined = _refine_with(rows, config, tell)
    plain_counts, distrust = rows.count(), np.asarray(1 - refined.weights)
    counts, group_counts = rows.count(refined.weights), np.zeros((layout.n_cells, 0))
    prior = normalise_counts(layout, plain_counts, uniform_tables(layout))
    model = RowModel.of_good_rows(normalise_counts(layout, counts, prior))
    if distrust.sum() > 1:
        group_counts = rows.count(distrust)[:, None]
        bad = normalise_counts(layout, group_counts[:, 0], prior)
        model = model.with_component(bad, float(distrust.sum(dtype=np.float64)) / rows.n_rows)
    pi = layout.sum_configurations(counts)[layout.config_of_cell]
    return RobustFit(
        counts=pi * refined.q,
        plain_counts=plain_counts,
        weights=refined.weights,
        n_rows=float(rows.n_rows),
        n_trusted=float(refined.weights.sum()),
        model=model,
        group_counts=group_counts,
        chances=np.ones(model.n_others),
        rounds=refined.rounds,
        converged=refined.converged,
        status=refined.status,
    )


def _refine_with(rows: Rows, config: RobustConfig, tell: Callable[[Round], None]) -> Refined:
    name = "spectral" if config.method == "filter" else config.method  # with the paper's schedule
    known = ("filter", *ORACLES, "trimmed")
    if name not in known:
        raise SettingError(f"Unknown method {name!r}; choose one of {', '.join(known)}.")
    is_auto = isinstance(config.contamination, str)
    if is_auto and (config.schedule == "paper" or name in (*NEED_SHARE, "trimmed")):
        raise SettingError(
            f"The method {config.method!r} with the schedule {config.schedule!r} needs the share "
            "of bad rows: set contamination to a number, or use the method 'filter' with the "
            "schedule 'joint', which estimates it."
        )
    if name == "trimmed":
        return trim_by_likelihood(rows, float(config.contamination), tell)
    oracle = ORACLES[name]
    follow = follow_paper if config.schedule == "paper" else follow_jointly
    settings = {"trim": False} if "trim" in signature(oracle).parameters else {}
    shares = [config.ceiling / 2] if is_auto else [float(config.contamination)]
    if is_auto and name == "descent":
        shares = [0.01, 0.03, 0.1, 0.2, 0.3, config.ceiling]
    for eps in shares:
        refined = follow(rows, oracle, eps, tell, **settings)
        if refined.converged:
            break
    return refined
