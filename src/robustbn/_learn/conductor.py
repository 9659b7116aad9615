"""The conductor: the whole flow from rows to tables, on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robustbn._core.config import RobustConfig
from robustbn._core.protocols import Data, RowVector, Survey
from robustbn._core.result import Misfit, RobustFit, Round, Verdict
from robustbn._learn.filling import Complete, complete_fit, count_recorded, typical_weight
from robustbn._learn.known import Known, heed_known
from robustbn._learn.misfit import is_misfit, learn_allowing_misfit
from robustbn._learn.multiplicity import heed_design
from robustbn._learn.population import settle
from robustbn._learn.repeats import Copies
from robustbn._learn.rounds import (
    State,
    begin,
    begin_from,
    explain_bad_rows,
    filter_the_rest,
    is_suspicious,
)
from robustbn._learn.status import describe_status, say_repetition
from robustbn._learn.study import Chosen, Study, Weighed, mean_weight
from robustbn.network import BayesianNetwork

Tell = Callable[[Round], None]


def fit_robustly(
    network: BayesianNetwork,
    data: Data,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Tell,
    known: Known | None = None,
    complete: Complete | None = None,
) -> tuple[RobustFit, Survey]:
    """Learn which rows to distrust, and count the others: the default method.

    Returns the fit, and the rows it was learned from. Time O(N d) for two passes, plus rounds on a
    sample whose size depends on the network and not on N. Memory beside the rows: their packed
    codes and a few numbers a row.

    Parameters
    ----------
    known : rows whose side a person knows; for rows that are judged all at once.
    complete : how tables are learned from rows that miss values; None: from complete families.
    """
    # The plain estimate, Algorithm 1, lines 1 and 2; and rows to learn the verdict from.
    n_most = max(config.tuning.sample_surveyed, config.sample_size(network.layout))
    survey = data.survey(sample_weight, n_most, config.seed)
    verdict = learn(network, survey, sample_weight, config, tell, known)

    # The verdict on all rows, and the tables of those that are trusted.
    weigh = verdict.model.trust
    judged = data.judge(
        weigh if known is None else lambda rows: known.override(weigh(rows)),
        sample_weight,
        gathers=complete is not None,
    )
    n = survey.n_rows * mean_weight(sample_weight)
    converged, status = describe_status(
        max(0.0, 1 - judged.total / n),
        config,
        verdict.top,
        verdict.threshold,
        verdict.stopped,
        verdict.misfit,
    )
    fit = RobustFit(
        counts=judged.counts,
        plain_counts=survey.counts,
        weights=judged.trust,
        n_rows=n,
        n_trusted=judged.total,
        model=verdict.model,
        kind_counts=verdict.kind_counts,
        rounds=verdict.rounds,
        converged=converged,
        status=status
        + say_repetition(verdict.repetition, survey.n_rows, len(verdict.model.repeats.factors)),
        misfit=verdict.misfit,
        repetition=verdict.repetition,
        unit=typical_weight(sample_weight),
        recorded=count_recorded(survey, verdict.model, judged.trust, sample_weight),
    )
    if complete is not None and judged.holes is not None:
        fit = complete_fit(fit, data, judged.holes, sample_weight, complete)
    return fit, survey


def learn(
    network: BayesianNetwork,
    survey: Survey,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Tell,
    known: Known | None = None,
) -> Verdict:
    """Learn how rows are to be judged, from those of a survey."""
    study = heed_design(network, Study.of(network, survey, sample_weight, config, tell))
    verdict = replace(judge_survey(study), repetition=study.repetition)
    return verdict if known is None else heed_known(study, verdict, known)


def judge_survey(study: Study) -> Verdict:
    """Learn how rows are to be judged from the rows alone."""
    config, tuning, copies = study.config, study.config.tuning, study.find_copies()
    begun = _begin(study, copies)
    if config.misfit == "none" or not config.polish:
        return _settle(study, _learn_exactly(study, copies, begun))
    n_nodes = study.survey.rows.layout.n_nodes
    least = max(tuning.exact_evidence, tuning.exact_evidence_node * n_nodes)
    plain = _learn_rounds(study, copies, begun, least)
    if _is_plain(study, plain, least):
        top, limit = plain.state.spectrum.top, plain.state.threshold
        return replace(_settle(study, plain), misfit=Misfit(True, 0.0, 0, top, limit))

    def go_on(rounds: tuple[Round, ...]) -> Verdict:
        return _settle(study, _learn_exactly(study, copies, plain.after(rounds)))

    return learn_allowing_misfit(study, copies, go_on)


@dataclass(frozen=True, eq=False)
class _Learned:
    """How far the rounds have come: the state, on which rows, and which rows are repeated."""

    state: State
    chosen: Chosen
    weighed: Weighed
    is_explained: bool = False
    is_finished: bool = False

    def after(self, rounds: tuple[Round, ...]) -> _Learned:
        """Return the same, as if some rounds had been before."""
        later = (replace(r, number=r.number + len(rounds)) for r in self.state.rounds)
        return replace(self, state=replace(self.state, rounds=(*rounds, *later)))


def _begin(study: Study, copies: Copies) -> _Learned:
    """Look at a sample, without rows that are copied more often than any network allows.

    If the others still do not look like rows of any network, the tables do not say how often a row
    may appear, and it is asked again later: the common rows among the good would seem copied.
    """
    few = study.choose(study.config.sample_size(study.survey.rows.layout))
    weighed = study.first_repeats(copies, few)
    state = begin(study.sample(few, weighed), spectrum=weighed.spectrum)
    return _Learned(state, few, weighed)


def _is_plain(study: Study, learned: _Learned, least: float) -> bool:
    """Whether all is plain: clean rows, or plainly bad ones beside clean ones.

    It is not where a kind of rows brings so little evidence that it may be the population's own
    variety.
    """
    state, weighed = learned.state, learned.weighed
    if not learned.is_finished or state.least_evidence < least or state.excess > 0:
        return False
    if is_misfit(study, state.model, weighed.base):
        return False
    return study.lost_to_copies(weighed, state) <= study.config.tuning.exact_copies


def _learn_exactly(study: Study, copies: Copies, begun: _Learned) -> _Learned:
    """Learn as if good rows were exactly the network's: filter, explain, filter again."""
    return _learn_rounds(study, copies, begun, 0.0)


def _learn_rounds(study: Study, copies: Copies, begun: _Learned, plain_evidence: float) -> _Learned:
    """Go through the rounds; stop, to go on later, at a kind that brings less evidence."""
    if begun.is_finished:
        return begun

    # Which rows are bad, learned from a sample: explain; and look closer where there is doubt.
    learned = _explain(study, begun, plain_evidence)
    if learned.state.pending is not None:
        return learned
    if study.n_rows > learned.chosen.rows.n_rows and _is_doubtful(study, learned):
        more = replace(learned, chosen=study.choose(study.n_rows), is_explained=False)
        sample = study.sample(more.chosen, more.weighed)
        state = begin_from(sample, learned.state.model, learned.state.rounds)
        learned = _explain(study, replace(more, state=state), plain_evidence)
    if learned.state.pending is not None or (plain_evidence and learned.state.excess > 0):
        return learned

    # How often rows may be repeated, now that the tables are better known; then filter the rest.
    state, before = learned.state, learned.weighed
    weighed = study.last_repeats(copies, learned.chosen, state, before)
    if state.excess > 0 or study.is_anew(before, weighed):
        sample = study.sample(learned.chosen, weighed)
        state = begin_from(sample, state.model, state.rounds)
        if study.config.polish:
            state = explain_bad_rows(sample, state, plain_evidence)
        if state.pending is not None:
            return learned
        state = filter_the_rest(sample, state)
    return replace(learned, state=state, weighed=weighed, is_finished=True)


def _is_doubtful(study: Study, learned: _Learned) -> bool:
    state = learned.state
    return not state.model.n_kinds or is_suspicious(state, study.config.tuning)


def _explain(study: Study, learned: _Learned, plain_evidence: float) -> _Learned:
    """Explain bad rows by kinds, from where that was left."""
    if learned.is_explained or not study.config.polish:
        return learned
    sample = study.sample(learned.chosen, learned.weighed)
    state = explain_bad_rows(sample, learned.state, plain_evidence)
    return replace(learned, state=state, is_explained=state.pending is None)


def _settle(study: Study, learned: _Learned) -> Verdict:
    """Return the verdict, its model refitted to all surveyed rows and calibrated."""
    survey, state, base = study.survey, learned.state, learned.weighed.base
    model, by_component = state.model, np.zeros((survey.rows.layout.n_cells, 1))
    if model.n_others:
        few = study.choose(study.config.sample_size(survey.rows.layout))
        sample, some = ((each.rows, base[each.which]) for each in (learned.chosen, few))
        many = survey.rows, base
        model, by_component = settle(model, sample, some, many, study.draw, study.config.tuning)
    return Verdict(
        model=replace(model, repeats=study.scale_to_all(learned.weighed.repeats)),
        kind_counts=by_component[:, 1:][:, model.is_bad] * (study.unit * study.scale),
        rounds=state.rounds,
        top=state.spectrum.top,
        threshold=state.threshold,
        stopped=state.stopped,
    )
