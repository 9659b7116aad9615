"""Tell misfit from bad rows: no drawn network is exactly the population's.

If the rows that remain beside a few kinds look like rows of the network, it is exact, and the
method that takes it for exact decides. Otherwise the components that stand out are bad rows, the
others are classes of the good population, and no verdict is drawn from what the network expects.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import Misfit, Round, Verdict
from robustbn._core.row_model import Repeats, RowModel
from robustbn._core.trust import sum_weights
from robustbn._learn.causes.judging import find_spoilt
from robustbn._learn.edges import CodedRows, filtered_rows_as_kind, is_no_kind
from robustbn._learn.judgement import accept, find_standings, keep_within
from robustbn._learn.population import LEAST_DRAWN
from robustbn._learn.proposals import Sample
from robustbn._learn.repeats import Copies, find_repeats_of_mixture
from robustbn._learn.spectrum import find_bottom
from robustbn._learn.study import Chosen, Study
from robustbn._learn.tied_kinds import Population, Search, look_at_main, search_components
from robustbn._learn.ties import Families


@dataclass(frozen=True, eq=False)
class Described:
    """What rows there are, and which of them are bad.

    Parameters
    ----------
    search : components, and what the main class looks like beside them.
    is_bad : which components are bad rows, no more than contamination allows; shape (K,).
    share_standing_out : of the rows in all components that stand out.
    share_dubious : of the rows in components that are bad, if at all, by what was done to them.
    looks_exact : whether the main class looks like rows of the network.
    rounds : what happened.
    """

    search: Search
    is_bad: NDArray[np.bool_]
    share_standing_out: float
    share_dubious: float
    looks_exact: bool
    rounds: tuple[Round, ...]

    @property
    def shares(self) -> Vector:
        """Share of each component; shape (K,)."""
        return self.search.population.model.shares


def learn_allowing_misfit(
    study: Study, copies: Copies, learn_exactly: Callable[[tuple[Round, ...]], Verdict]
) -> Verdict:
    """Learn how rows are to be judged when the network may be wrong.

    Parameters
    ----------
    copies : rows that appear several times.
    learn_exactly : learns as if good rows were the network's, after some rounds.
    """
    tuning = study.config.tuning
    chosen = study.choose(tuning.tied_rows)
    described = describe_rows(study, copies, chosen)
    shares, is_dubious = described.shares, described.share_dubious > tuning.exact_dubious
    if described.looks_exact and not is_dubious and shares.sum() <= tuning.standing_share:
        verdict = learn_exactly(described.rounds)
        removed = 1 - float(verdict.model.weigh(chosen.rows).mean(dtype=np.float64))
        is_more = removed > shares.sum() + tuning.exact_more
        uncopied = study.weigh(verdict.model.repeats).base
        if not is_more and not is_misfit(study, verdict.model, uncopied):
            exact = Misfit(True, 0.0, 0, verdict.top, verdict.threshold)
            return replace(verdict, misfit=exact)
    return _judge_components(study, copies, chosen, described)


def is_misfit(study: Study, model: RowModel, uncopied: RowVector) -> bool:
    """Whether an edge would explain as well what a kind, or the filters, distrust.

    Asked where the network seems exact otherwise. Where much is amiss, some edge gains more than
    any kind and says nothing of it. An edge that explains copies of bad rows, and little else,
    excuses nothing: it has to explain most of the kind without them, too.

    Parameters
    ----------
    uncopied : weight of each surveyed row once repeated ones are lowered; shape (n,).
    """
    if not (model.n_kinds or model.filters):
        return False
    tuning = study.config.tuning
    chosen = study.choose(tuning.edge_rows)
    given = study.given[chosen.which]
    filtered = filtered_rows_as_kind(chosen.rows, given, model)
    models = [model] if filtered is None else [model, filtered]
    rows = CodedRows(chosen.rows, chosen.codes)
    weights = given, uncopied[chosen.which]
    return any(is_no_kind(rows, *weights, each, tuning).any() for each in models)


def describe_rows(study: Study, copies: Copies, chosen: Chosen) -> Described:
    """Find the components of the rows, and which are bad."""
    sample = study.sample(chosen, study.unweighed())
    families = Families(sample.rows.layout, sample.prior, sample.plain_counts)
    rounds: tuple[Round, ...] = ()
    started_at = time.perf_counter()
    for search in search_components(sample, families):
        done = _note(sample, search, len(rounds), time.perf_counter() - started_at)
        rounds, started_at = (*rounds, done), time.perf_counter()
        sample.tell(done)
    looks_exact = _looks_exact(study, sample, copies, chosen, search)
    standings = find_standings(sample, families, search)
    shares = search.population.model.shares
    config, is_exhausted = study.config, search.is_exhausted or looks_exact
    tuning = config.tuning
    stands_out = accept(standings, shares, is_exhausted, tuning)
    is_spoilt = find_spoilt(
        sample.rows.layout,
        chosen.codes,
        sample.base,
        search.population.shares,
        stands_out,
        tuning,
    )
    is_bad = stands_out | is_spoilt
    if sample.rows.layout.n_nodes <= tuning.edge_small and is_bad.any():
        coded = CodedRows(sample.rows, chosen.codes)
        model = replace(search.population.model, is_bad=is_bad)
        is_bad &= ~is_no_kind(coded, sample.base, sample.base, model, tuning)
    standing_out = float(shares[is_bad].sum())
    if standing_out > config.ceiling:
        is_bad = keep_within(config.ceiling, is_bad, standings, shares)
    is_dubious = ~(is_bad & ~is_spoilt)
    return Described(
        search, is_bad, standing_out, float(shares[is_dubious].sum()), looks_exact, rounds
    )


def _looks_exact(
    study: Study, sample: Sample, copies: Copies, chosen: Chosen, search: Search
) -> bool:
    """Whether the main class looks like rows of the network; copies of rows may be in the way."""
    tuning, excess = sample.tuning, search.excesses
    nearly = min(tuning.exact_nearly, tuning.exact_share * excess[0]) if search.gains else 0.0
    if excess[-1] <= nearly or _is_one_sided(sample, search):
        return True
    repeats = study.surest_repeats(copies)
    if repeats is None or not len(repeats.factors):
        return False
    return _is_clean_without(study, sample, chosen, search.population, repeats)


def _is_one_sided(sample: Sample, search: Search) -> bool:
    """Whether only the top of the spectrum is off: misfit moves both ends, bad rows the top.

    Such rows are bad ones that no tied component is worth its description for.
    """
    tuning, excess = sample.tuning, search.excesses[-1]
    if excess > tuning.exact_one_sided:
        return False
    bottom, limit = look_at_bottom(sample, search.population)
    return limit - bottom < tuning.exact_shortage * excess


def _is_clean_without(
    study: Study, sample: Sample, chosen: Chosen, population: Population, repeats: Repeats
) -> bool:
    weighed = study.weigh(repeats).base[chosen.which]
    if not (weighed * population.shares[:, 0]).any():  # no row is left that could look so
        return False
    spectrum, limit = look_at_main(replace(sample, base=weighed), population)
    return spectrum.top <= limit


def _judge_components(
    study: Study, copies: Copies, chosen: Chosen, described: Described
) -> Verdict:
    """Return the verdict of components: what stands out is bad, the rest are classes.

    Rows that appear too often are distrusted only if the caller says so.
    """
    search, sample = described.search, study.sample(chosen, study.unweighed())
    population, started_at = search.population, time.perf_counter()
    model = replace(population.model, is_bad=described.is_bad)
    if study.config.copies == "distrust":
        n = sum_weights(study.given)
        repeats = find_repeats_of_mixture(copies, model, n, study.config.tuning)
        model = replace(model, repeats=study.scale_to_all(repeats))
    counts = sample.rows.count(population.shares * sample.base[:, None])
    scale = study.unit * study.scale * (study.n_rows / sample.rows.n_rows)
    scale *= study.effect_of(chosen)
    bottom, limit = look_at_bottom(sample, population)
    stopped, standing_out = "", described.share_standing_out
    if standing_out > described.shares[described.is_bad].sum():
        stopped = f"because {standing_out:.1%} stand out and {study.config.ceiling:.0%} may go"
    trusted = float(sample.base @ model.weigh(sample.rows))
    done = replace(
        _note(sample, search, len(described.rounds), time.perf_counter() - started_at),
        action=f"took {model.n_kinds} of {model.n_others} components for bad rows",
        removed=max(0.0, 1 - trusted / sample.n_given),
        n_kinds=model.n_kinds,
    )
    sample.tell(done)
    return Verdict(
        model=model,
        kind_counts=counts[:, 1:][:, described.is_bad] * scale,
        rounds=(*described.rounds, done),
        top=search.tops[-1],
        threshold=search.limits[-1],
        stopped=stopped,
        misfit=replace(_measure(described), bottom=bottom, bottom_limit=limit),
    )


def look_at_bottom(sample: Sample, population: Population) -> tuple[float, float]:
    """Return the bottom of the main class's spectrum, and that of rows drawn from its tables."""
    weights = sample.base * population.shares[:, 0]
    n = max(float(weights.sum(dtype=np.float64)), LEAST_DRAWN)
    drawn = sample.draw([(population.model.good, int(min(n, sample.tuning.sample_drawn)))])
    noise = 1 - find_bottom(drawn, np.ones(drawn.n_rows, np.float32), sample.tuning)
    bottom = find_bottom(sample.rows, weights, sample.tuning)
    return bottom, 1 - noise * float(np.sqrt(drawn.n_rows / n))


def _measure(described: Described) -> Misfit:
    search, is_class = described.search, ~described.is_bad
    gains = [gain.evidence + gain.cost for gain in search.gains]
    return Misfit(
        is_exact=False,
        nats=float(np.array(gains)[is_class] @ described.shares[is_class]) if gains else 0.0,
        n_classes=int(is_class.sum()),
        top=search.tops[-1],
        limit=search.limits[-1],
    )


def _note(sample: Sample, search: Search, number: int, wall_s: float) -> Round:
    n_others = len(search.gains)
    return Round(
        number=number,
        action=f"described rows by {n_others + 1} components" if n_others else "looked at the rows",
        eigenvalues=(search.tops[-1],),
        threshold=search.limits[-1],
        removed=0.0,
        n_kinds=0,
        wall_s=wall_s,
    )
