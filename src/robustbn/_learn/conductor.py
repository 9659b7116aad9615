"""The conductor: the whole flow from rows to tables, on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robustbn._core.config import RobustConfig
from robustbn._core.expansion import sum_over_rows
from robustbn._core.protocols import Data, Rows, RowVector, Survey
from robustbn._core.result import RobustFit, Round, Verdict
from robustbn._core.row_model import NO_REPEATS
from robustbn._learn.population import settle
from robustbn._learn.proposals import Sample
from robustbn._learn.rounds import (
    State,
    begin,
    begin_as_judged,
    begin_from,
    explain_bad_rows,
    filter_the_rest,
    is_suspicious,
)
from robustbn._learn.status import describe_status
from robustbn._learn.study import Study, mean_weight
from robustbn._rows.draw import drawing
from robustbn.network import BayesianNetwork

Tell = Callable[[Round], None]


def fit_robustly(
    network: BayesianNetwork,
    data: Data,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Tell,
) -> tuple[RobustFit, Survey]:
    """Learn which rows to distrust, and count the others: the default method.

    Returns the fit, and the rows it was learned from. Time O(N d) for two passes, plus rounds on a
    sample whose size depends on the network and not on N. Memory beside the rows: their packed
    codes and a few numbers a row.
    """
    # The plain estimate, Algorithm 1, lines 1 and 2; and rows to learn the verdict from.
    n_most = max(config.tuning.sample_surveyed, config.sample_size(network.layout))
    survey = data.survey(sample_weight, n_most, config.seed)
    verdict = data.remember("verdict", lambda: learn(network, survey, sample_weight, config, tell))
    if config.verify:
        first, rows = verdict, data.all_rows()
        verdict = data.remember(
            "verified", lambda: verify(network, rows, first, sample_weight, config, tell)
        )

    # The verdict on all rows, and the tables of those that are trusted.
    counts, weights = data.judge(verdict.model.weigh, sample_weight)
    n = survey.n_rows * mean_weight(sample_weight)
    n_trusted = float(sum_over_rows(network.layout, counts))
    converged, status = describe_status(
        max(0.0, 1 - n_trusted / n),
        config,
        verdict.top,
        verdict.threshold,
        verdict.stopped,
    )
    fit = RobustFit(
        counts=counts,
        plain_counts=survey.counts,
        weights=weights,
        n_rows=n,
        n_trusted=n_trusted,
        model=verdict.model,
        kind_counts=verdict.kind_counts,
        rounds=verdict.rounds,
        converged=converged,
        status=status,
    )
    return fit, survey


def learn(
    network: BayesianNetwork,
    survey: Survey,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Tell,
) -> Verdict:
    """Learn how rows are to be judged, from those of a survey."""
    study = Study.of(network, survey, sample_weight, config, tell)
    copies = study.find_copies()
    few = study.choose(config.sample_size(network.layout))

    # Rows copied more often than the network allows. If the others still do not look like rows of
    # any network, the tables do not say how often a row may appear, and it is asked again later:
    # the common rows among the good would seem copied.
    weighed = study.first_repeats(copies, few)

    # Which rows are bad, learned from a sample: explain; and look closer where there is doubt.
    sample = study.sample(few, weighed)
    state = _explain(begin(sample), sample, config)
    is_doubtful = not state.model.n_kinds or is_suspicious(sample, state)
    if is_doubtful and study.n_rows > few.rows.n_rows:
        few = study.choose(study.n_rows)
        sample = study.sample(few, weighed)
        state = _explain(begin_from(sample, state.model, state.rounds), sample, config)

    # How often rows may be repeated, now that the tables are better known; then filter the rest.
    before, weighed = weighed, study.last_repeats(copies, few, state, weighed)
    if state.excess > 0 or study.is_anew(before, weighed):
        sample = study.sample(few, weighed)
        state = _explain(begin_from(sample, state.model, state.rounds), sample, config)
        state = filter_the_rest(sample, state)

    # The model of all surveyed rows, calibrated.
    model, by_component = state.model, np.zeros((network.n_cells, 1))
    if model.n_others:
        chosen, many = (few.rows, weighed.base[few.which]), (survey.rows, weighed.base)
        model, by_component = settle(model, chosen, many, study.draw, config.tuning)
    return Verdict(
        model=replace(model, repeats=study.scale_to_all(weighed.repeats)),
        kind_counts=by_component[:, 1:][:, model.is_bad] * (study.unit * study.scale),
        rounds=state.rounds,
        top=state.spectrum.top,
        threshold=state.threshold,
        stopped=state.stopped,
    )


def _explain(state: State, sample: Sample, config: RobustConfig) -> State:
    return explain_bad_rows(sample, state) if config.polish else state


def verify(
    network: BayesianNetwork,
    rows: Rows,
    verdict: Verdict,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Tell,
) -> Verdict:
    """Look at all rows as they are judged, and filter on when they do not look clean."""
    model, base, n_given = verdict.model, verdict.model.repeats.weigh(rows), float(rows.n_rows)
    if sample_weight is not None:  # in the unit in which the verdict was learned
        base = base * (sample_weight / mean_weight(sample_weight))
    draw = drawing(network, config.kernels, config.n_threads, config.seed)
    sample = Sample(rows, base, n_given, draw, config.ceiling, config.tuning, tell)
    state = begin_as_judged(sample, replace(model, repeats=NO_REPEATS), verdict.rounds)
    state = filter_the_rest(sample, state)
    return replace(
        verdict,
        model=replace(state.model, repeats=model.repeats),
        rounds=state.rounds,
        top=state.spectrum.top,
        threshold=state.threshold,
        stopped=state.stopped,
    )
