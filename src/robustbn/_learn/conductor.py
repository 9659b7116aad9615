"""The conductor: the whole flow from rows to tables, on one page."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robustbn._core.config import RobustConfig
from robustbn._core.protocols import Data, RowVector, Survey, Vector
from robustbn._core.result import Misfit, RobustFit, Round, Verdict
from robustbn._core.row_model import NO_REPEATS, Repeats, RowModel
from robustbn._core.trust import is_even
from robustbn._learn.completion import Complete
from robustbn._learn.density_filter import filter_rest
from robustbn._learn.filling import complete_fit, count_recorded, typical_weight
from robustbn._learn.judge import are_copies_bad, judge_groups, keep_at
from robustbn._learn.known import Known, contradicts_known, heed_known, override_known
from robustbn._learn.look import look_at, look_at_bottom
from robustbn._learn.multiplicity import heed_design
from robustbn._learn.search import EXPLANATIONS, State, begin, look_at_more, search
from robustbn._learn.settle import settle
from robustbn._learn.status import describe_status, say_cells, say_repetition
from robustbn._learn.study import Sample, Study, mean_weight
from robustbn._learn.wrong_cells import count_by_place, counting_true, explain_cells
from robustbn.network import BayesianNetwork

Tell = Callable[[Round], None]
SURVEYED = 1_000_000  # rows: enough to count copies in, and to refit the verdict on
FEW, LEAST_FEW = 40, 20_000  # rows a parameter, and in all, that are searched first
ROUNDING = 1e-5  # share of rows: this much less than may go is taken


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

    known : rows whose side a person knows; for rows that are judged all at once.
    complete : how tables are learned from rows that miss values; None: from complete families.
    """
    # The plain estimate, Algorithm 1, lines 1 and 2; and rows to learn the verdict from.
    n_most = max(SURVEYED, config.sample_size(network.layout))
    survey = data.survey(sample_weight, n_most, config.seed)
    # Rows with a wrong cell would look like a group: groups are sought without them. But where a
    # person knows rows, groups come first: rows of a class that is vouched for look like that, too.
    infers = complete is not None
    cells, given = (None, survey) if known else explain_cells(network, survey, None, config, infers)
    verdict = learn(network, given, sample_weight, config, tell, known)
    trust = verdict.trust(survey.rows)
    if known:
        trust = override_known(known.sides[survey.numbers], trust)
    if cells is None and (known or verdict.model.n_others or not is_even(trust)):
        cells, _ = explain_cells(network, survey, trust, config, infers)
        cells = None if cells and known and contradicts_known(cells.wrong, known) else cells

    # The verdict on all rows, and the tables of those that are trusted.
    weigh = verdict.model.trust
    judged = data.judge(
        weigh if known is None else lambda rows: override_known(known.sides, weigh(rows)),
        sample_weight, gathers=infers, count=counting_true(cells, config),
        surveyed=trust if survey.is_whole else None,
    )  # fmt: skip
    judged = count_by_place(judged, cells, survey, trust, sample_weight, config)
    cells = cells and cells.of_trusted(survey.numbers, trust)
    n = survey.n_rows * mean_weight(sample_weight)
    removed = max(0.0, 1 - judged.total / n)
    converged, status = describe_status(removed, config, verdict)
    fit = RobustFit(
        counts=judged.counts,
        plain_counts=survey.counts,
        weights=judged.trust,
        n_rows=n,
        n_trusted=judged.total,
        model=verdict.model,
        group_counts=verdict.group_counts,
        chances=verdict.chances,
        rounds=verdict.rounds,
        converged=converged,
        status=status
        + say_repetition(verdict.repetition, survey.n_rows, len(verdict.model.repeats.factors))
        + say_cells(cells, survey),
        misfit=verdict.misfit,
        repetition=verdict.repetition,
        unit=typical_weight(sample_weight),
        recorded=count_recorded(survey, verdict.model, judged.trust, sample_weight),
        cells=cells,
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
    """Learn how rows are to be judged, from those of a survey: look, search, judge."""
    study = heed_design(network, Study.of(network, survey, sample_weight, config, tell))
    verdict = replace(conclude(explain(study)), repetition=study.repetition)
    return verdict if known is None else heed_known(study, verdict, known)


def explain(study: Study) -> State:
    """Search for what explains the rows."""
    # Of many rows a few are searched at first, until the rest looks like rows of the network. Where
    # nothing is found, all rows are looked at; otherwise, and where they look different, what is
    # found is fitted to more of them, and the search goes on there.
    layout, config = study.survey.rows.layout, study.config
    explanations = EXPLANATIONS if config.polish else ()
    n_few, n_enough = max(LEAST_FEW, FEW * layout.n_free), config.sample_size(layout)
    if study.n_rows <= n_enough:  # no row is left out: their order does not matter
        return search(begin(study, study.n_rows), explanations)
    state = search(begin(study, min(n_few, n_enough)), explanations, is_first=True)
    everything = None if state.is_explained else look_at_more(state, study.n_rows)
    if everything and everything.look.excess <= 0:
        return search(everything, explanations)
    if state.n_rows < n_enough:
        state = search(look_at_more(state, n_enough), explanations, is_first=True)
    if not state.is_explained:
        state = everything or look_at_more(state, study.n_rows)
    return search(state, explanations)


def conclude(state: State) -> Verdict:
    """Judge what was found, and return how any row is judged."""
    study, sample, config = state.study, state.sample, state.study.config
    is_given = config.misfit == "none" or not config.polish  # that the network is exact
    is_exact = is_given or state.is_exact
    chances = judge_groups(state) if config.misfit == "allow" else np.ones(len(state.entries))
    model = replace(state.population.model, kept=np.array([keep_at(p) for p in chances]))
    model = replace(model, repeats=_distrusted_copies(state))
    model, wanted, trust = _keep_within(config.ceiling, state, model)
    stopped = ""
    if wanted > config.ceiling:
        stopped = f"because {wanted:.1%} stand out but at most {config.ceiling:.0%} may be removed"
    counts = sample.rows.count(state.population.shares[:, 1:] * sample.base[:, None])
    counts, look = counts * study.weight_of(sample), state.look
    if is_exact and model.is_bad.all():  # what is trusted is rows of the network
        if model.n_others:
            model, counts, trust = _settle(state, model, counts, trust)
        if is_given and look.excess > 0:
            given, most = study.choose(state.n_rows), config.ceiling
            model, look, why = filter_rest(given.rows, given.base, model, study.draw, most)
            stopped, trust = stopped or why, model.trust(study.survey.rows)
    removed = max(0.0, _find_lost(study.choose(state.n_rows), trust))
    state = replace(state, look=look)
    wall_s = time.perf_counter() - state.ended_at
    done = state.note("judged what was found", wall_s, removed, model.n_kinds)
    return Verdict(
        model=replace(model, repeats=_scale_to_all(study, model.repeats)),
        group_counts=counts,
        chances=chances,
        rounds=done.rounds,
        top=look.top,
        threshold=look.limit if is_given else state.limit,
        stopped=stopped,
        judged=(study.survey.rows, trust),
        misfit=_measure(state, model, trust, is_exact) if config.misfit == "allow" else None,
    )


def _distrusted_copies(state: State) -> Repeats:
    """Return the rows whose copies are distrusted: if they are bad, or the caller says so."""
    study, config, copies = state.study, state.study.config, state.study.config.copies
    if copies == "distrust" and not len(state.repeats.factors):
        return study.copies.hold_to(state.population.model, study.total)
    if copies == "distrust" or config.misfit == "none" or are_copies_bad(state):
        return state.repeats
    return NO_REPEATS


def _keep_within(most: float, state: State, model: RowModel) -> tuple[RowModel, float, RowVector]:
    """Return a model that takes as much as may go, what it would take, and the trust in rows."""
    # Where that is too much, every row keeps more of its weight, in proportion.
    given = state.study.choose(state.study.n_rows)
    trust = model.trust(given.rows)
    lost = wanted = _find_lost(given, trust)
    while lost > most:
        times = (most - ROUNDING) / lost
        kept, factors = (1 - (1 - each) * times for each in (model.kept, model.repeats.factors))
        model = replace(model, kept=kept, repeats=replace(model.repeats, factors=factors))
        trust = model.trust(given.rows)
        lost = _find_lost(given, trust)
    return model, wanted, trust


def _find_lost(given: Sample, trust: RowVector) -> float:
    """Return the share of the weight of some rows that is distrusted, by the trust in all."""
    if is_even(trust):
        return 0.0
    return 1 - float(given.base @ trust[given.which]) / given.n_given


def _settle(
    state: State, model: RowModel, counts: Vector, trust: RowVector
) -> tuple[RowModel, Vector, RowVector]:
    """Return the model refitted to all surveyed rows and calibrated, unless too much would go."""
    study, draw = state.study, state.study.draw
    some, many = (study.choose(n, model.repeats) for n in (state.n_rows, study.n_rows))
    settled, by_component = settle(model, (some.rows, some.base), (many.rows, many.base), draw)
    if settled is not model:  # or it is within the ceiling already
        judged = settled.trust(many.rows)
        if _find_lost(study.choose(study.n_rows), judged) > study.config.ceiling:
            return model, counts, trust
        trust = judged
    return settled, by_component[:, 1:] * study.weight_of(many), trust


def _scale_to_all(study: Study, repeats: Repeats) -> Repeats:
    """Return repeats among all rows of the table, by their numbers there."""
    return replace(
        repeats,
        first=study.survey.numbers[repeats.first],
        seen=np.rint(repeats.seen * study.scale).astype(np.int64),
        expected=repeats.expected * (study.scale * study.effect),
    )


def _measure(state: State, model: RowModel, trust: RowVector, is_exact: bool) -> Misfit:
    """Return how well the network describes the rows that are trusted."""
    is_class = ~model.is_bad
    if is_exact and not is_class.any():
        return Misfit(True, 0.0, 0, state.look.top, state.limit)
    entries = [(e.gain + e.cost) / e.n_rows for e in state.entries]
    nats = float(np.array(entries)[is_class] @ model.shares[is_class]) if entries else 0.0
    given, draw = state.study.choose(state.n_rows), state.study.draw
    weights = given.base if is_even(trust) else given.base * trust[given.which]
    look = look_at(given.rows, weights, draw)
    ends = look_at_bottom(given.rows, weights, look.spectrum.q, draw)
    return Misfit(False, nats, int(is_class.sum()), look.top, look.limit, *ends)
