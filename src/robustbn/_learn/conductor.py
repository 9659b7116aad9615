"""The conductor: the whole flow from rows to tables, on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.config import RobustConfig
from robustbn._core.expansion import (
    log_probabilities,
    normalise_counts,
    sum_over_rows,
    uniform_tables,
)
from robustbn._core.protocols import Data, Rows, RowVector, Survey, Vector
from robustbn._core.result import Round
from robustbn._learn.density_filter import Filter
from robustbn._learn.population import Mixture, with_kind
from robustbn._learn.repeats import NO_REPEATS, Repeats, find_copies, find_repeats
from robustbn._learn.rounds import OBVIOUS, Learned, Rounds, look_at, settle, weigh_rows
from robustbn._means import METHODS, NEED_SHARE
from robustbn._means.algorithm1 import Refined, follow_jointly, follow_paper, trim_by_likelihood
from robustbn._rows.kernels import load_backend
from robustbn._rows.memory import draw_evenly, load_rows
from robustbn._show.words import describe_status
from robustbn.network import BayesianNetwork

SAMPLE_ROWS_PER_PARAMETER = 200  # O(m / eps^2) rows tell good from bad; more only cost time
LEAST_SAMPLE_ROWS = 50_000
MANY_ROWS = 1_000_000  # enough to count copies in, and to refit the verdict on


def fit_by_counting(
    rows: Rows, weights: RowVector | None, pseudo_counts: Vector | float
) -> tuple[Vector, Vector]:
    """Return the plain estimate, which trusts every row: tables and counts, each of shape (M,).

    Lines 1 and 2 of the paper's Algorithm 1: `q^S` are the empirical conditional probabilities.
    """
    counts = rows.count(weights)
    return normalise_counts(rows.layout, counts, pseudo_counts), counts


def log_likelihood_of_rows(rows: Rows, probabilities: Vector) -> RowVector:
    """Return `log P(row)` for each row; shape (N,)."""
    return rows.project(log_probabilities(probabilities)[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class RobustFit:
    """What a robust fit found, and how it judges rows.

    Parameters
    ----------
    counts : weight of the trusted rows that touch each cell; shape (M,).
    plain_counts : the same with every row trusted.
    weights : trust in each row, from 0 to 1; shape (N,), or None if nobody holds it.
    n_rows, n_trusted : weight of all rows, and of the trusted ones.
    mixture, filters, repeats : how rows are judged.
    repeated : codes of the rows that appear too often, in the order of `repeats`.
    kind_counts : weight of each kind of bad rows on each cell; shape (M, K).
    rounds, converged, status : what happened, and why it stopped.
    """

    counts: Vector
    plain_counts: Vector
    weights: RowVector | None
    n_rows: float
    n_trusted: float
    mixture: Mixture | None
    filters: tuple[Filter, ...]
    repeats: Repeats
    repeated: NDArray[np.uint8]
    kind_counts: Vector
    rounds: tuple[Round, ...]
    converged: bool
    status: str

    @property
    def removed(self) -> float:
        """Share of the rows' weight that is distrusted."""
        return max(0.0, 1 - self.n_trusted / self.n_rows)

    def weigh(self, rows: Rows) -> RowVector:
        """Return the trust in each of any rows, from 0 to 1; shape (N,)."""
        return weigh_rows(rows, self.mixture, self.filters) * self.repeats.weigh(rows)

    def score(self, rows: Rows) -> RowVector:
        """Return the log of the trust in each of any rows; shape (N,)."""
        score = self.repeats.weigh(rows)
        for each in self.filters:
            score = score * each.weigh(rows)
        with np.errstate(divide="ignore"):
            score = np.log(score)
        return score if self.mixture is None else score + self.mixture.log_weigh(rows)


def fit_robustly(
    network: BayesianNetwork,
    data: Data,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Callable[[Round], None],
) -> RobustFit:
    """Learn which rows to distrust, and count the others: the default method.

    Time O(N d) for two passes, plus rounds on a sample whose size depends on the network and not on
    N. Memory beside the rows: their packed codes and a few numbers a row.
    """
    # The plain estimate, Algorithm 1, lines 1 and 2; and rows to learn the verdict from.
    n_most = max(MANY_ROWS, _sample_size(network, config))
    survey = data.survey(sample_weight, n_most, config.seed)
    verdict = data.remember("verdict", lambda: learn(network, survey, sample_weight, config, tell))
    if config.verify:
        first, rows = verdict, data.all_rows()
        verdict = data.remember(
            "verified", lambda: _verify(network, rows, first, sample_weight, config, tell)
        )

    # The verdict on all rows, and the tables of those that are trusted.
    counts, weights = data.judge(verdict.weigh, sample_weight)
    unit = 1.0 if sample_weight is None else float(sample_weight.mean(dtype=np.float64))
    n, n_trusted = survey.n_rows * unit, float(sum_over_rows(network.layout, counts))
    learned = verdict.learned
    converged, status = describe_status(
        max(0.0, 1 - n_trusted / n),
        config.ceiling,
        learned.top,
        learned.threshold,
        learned.stopped,
    )
    return RobustFit(
        counts=counts,
        plain_counts=survey.counts,
        weights=weights,
        n_rows=n,
        n_trusted=n_trusted,
        mixture=learned.mixture,
        filters=learned.filters,
        repeats=verdict.repeats,
        repeated=verdict.repeated,
        kind_counts=verdict.kind_counts,
        rounds=learned.rounds,
        converged=converged,
        status=status,
    )


@dataclass(frozen=True, eq=False)
class Verdict:
    """How rows are judged, learned from some of them.

    Parameters
    ----------
    learned : filters, and the model of good and bad rows.
    repeats, repeated : rows that appear too often, and their codes.
    kind_counts : weight of each kind of bad rows on each cell, scaled to all rows; shape (M, K).
    """

    learned: Learned
    repeats: Repeats
    repeated: NDArray[np.uint8]
    kind_counts: Vector

    def weigh(self, rows: Rows) -> RowVector:
        """Return the trust in each of any rows, from 0 to 1; shape (N,)."""
        return self.learned.weigh(rows) * self.repeats.weigh(rows)


def learn(
    network: BayesianNetwork,
    survey: Survey,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Callable[[Round], None],
) -> Verdict:
    """Learn how rows are to be judged, from those of a survey."""
    draw = _drawing(network, config)
    many, n_many = survey.rows, len(survey.numbers)
    given: RowVector = np.ones(n_many, np.float32)
    unit = 1.0
    if sample_weight is not None:
        unit = float(sample_weight.mean(dtype=np.float64))
        given = sample_weight[survey.numbers] / unit

    sample, chosen = many, np.arange(n_many)
    if _sample_size(network, config) < n_many:
        chosen = draw_evenly(n_many, _sample_size(network, config), config.seed)
        sample = _load(network, survey.codes[chosen], config)

    # Rows copied more often than the network allows. If the others still do not look like rows of
    # any network, the tables do not say how often a row may appear, and it is asked again later:
    # the common rows among the good would seem copied.
    prints = many.fingerprints()
    copies = find_copies(prints, given, lambda i: _load(network, survey.codes[i], config))
    everywhere = np.ones(len(copies.seen))
    repeats = find_repeats(copies, many.count(given), everywhere, slack=1.5) or NO_REPEATS
    base: RowVector = given * repeats.weigh_prints(prints)
    if len(repeats.factors) and look_at(sample, base[chosen]).top > OBVIOUS:
        repeats, base = NO_REPEATS, given

    # Which rows are bad, learned from a sample: filter, explain, filter again.
    rounds = Rounds(sample, base[chosen], draw, config.ceiling, tell)
    learned = rounds.run(explain_first=config.polish, filter_last=False)
    if learned.is_suspicious and n_many > sample.n_rows:  # look closer
        sample, chosen = many, np.arange(n_many)
        rounds = Rounds(sample, base, draw, config.ceiling, tell, learned.rounds)
        learned = rounds.run(explain_first=config.polish, filter_last=False, start=learned.mixture)

    # How often rows may be repeated, now that the tables are better known.
    trust: RowVector = given[chosen] * learned.weigh(sample)
    counts = sample.count(trust) * (n_many / sample.n_rows)
    if learned.top <= OBVIOUS:
        repeats = find_repeats(copies, counts, learned.weigh(copies.rows)) or repeats
    before, base = base, given * repeats.weigh_prints(prints)
    n_newly_repeated = float(np.maximum(before - base, 0).sum(dtype=np.float64))
    if learned.is_in_excess or n_newly_repeated > 2e-3 * n_many:
        rounds = Rounds(sample, base[chosen], draw, config.ceiling, tell, learned.rounds)
        learned = rounds.run(explain_first=config.polish, filter_last=True, start=learned.mixture)
    by_kind = np.zeros((network.n_cells, 1))
    if learned.mixture is not None:
        mixture, by_kind = settle(learned.mixture, (sample, base[chosen]), (many, base), draw)
        learned = replace(learned, mixture=mixture)
    scale = survey.n_rows / n_many
    return Verdict(
        learned=learned,
        repeats=replace(
            repeats,
            first=survey.numbers[repeats.first],
            seen=np.rint(repeats.seen * scale).astype(np.int64),
            expected=repeats.expected * scale,
        ),
        repeated=survey.codes[repeats.first],
        kind_counts=by_kind[:, 1:] * (unit * scale),
    )


def _verify(
    network: BayesianNetwork,
    rows: Rows,
    verdict: Verdict,
    sample_weight: RowVector | None,
    config: RobustConfig,
    tell: Callable[[Round], None],
) -> Verdict:
    """Look at all rows as they are judged, and filter on when they do not look clean."""
    base = verdict.repeats.weigh(rows)
    if sample_weight is not None:  # in the unit in which the verdict was learned
        base = base * (sample_weight / float(sample_weight.mean(dtype=np.float64)))
    draw = _drawing(network, config)
    rounds = Rounds(rows, base, draw, config.ceiling, tell, verdict.learned.rounds)
    return replace(verdict, learned=rounds.check(verdict.learned))


def fit_with_oracle(
    network: BayesianNetwork,
    X: ArrayLike,
    config: RobustConfig,
    on_round: Callable[[Round], None],
) -> RobustFit:
    """Learn with one of the named oracles, by Algorithm 1 or jointly, on all rows.

    Rows that were not seen are judged by two networks: that of the trusted rows, and that of the
    others.
    """
    rows = load_rows(network, X, config.backend, config.n_threads)
    layout = rows.layout
    refined = _refine_with(rows, config, on_round)
    plain_counts, distrust = rows.count(), np.asarray(1 - refined.weights)
    mixture, kind_counts = None, np.zeros((layout.n_cells, 0))
    if distrust.sum() > 1:
        prior = normalise_counts(layout, plain_counts, uniform_tables(layout))
        good = normalise_counts(layout, rows.count(refined.weights), prior)
        mixture = with_kind(None, rows, distrust, float(rows.n_rows), good, prior)
        kind_counts = rows.count(distrust)[:, None]
    pi = layout.sum_configurations(rows.count(refined.weights))[layout.config_of_cell]
    return RobustFit(
        counts=pi * refined.q,
        plain_counts=plain_counts,
        weights=refined.weights,
        n_rows=float(rows.n_rows),
        n_trusted=float(refined.weights.sum()),
        mixture=mixture,
        filters=(),
        repeats=NO_REPEATS,
        repeated=np.empty((0, layout.n_nodes), np.uint8),
        kind_counts=kind_counts,
        rounds=refined.rounds,
        converged=refined.converged,
        status=refined.status,
    )


def _refine_with(rows: Rows, config: RobustConfig, on_round: Callable[[Round], None]) -> Refined:
    known = (*METHODS, "trimmed")
    if config.method not in known:
        raise ValueError(f"Unknown method {config.method!r}; choose one of {', '.join(known)}.")
    is_auto = isinstance(config.contamination, str)
    if is_auto and (config.schedule == "paper" or config.method in (*NEED_SHARE, "trimmed")):
        raise ValueError(
            f"method={config.method!r} with schedule={config.schedule!r} has to be told the share "
            "of bad rows: give contamination a number, or use method='filter' with "
            "schedule='joint', which finds it."
        )
    if config.method == "trimmed":
        return trim_by_likelihood(rows, float(config.contamination), on_round)
    follow = follow_paper if config.schedule == "paper" else follow_jointly
    settings = {"trim": False} if config.method in ("filter", "que", "descent") else {}
    shares = [config.ceiling / 2] if is_auto else [float(config.contamination)]
    if is_auto and config.method == "descent":
        shares = [0.01, 0.03, 0.1, 0.2, 0.3, config.ceiling]
    for eps in shares:
        refined = follow(rows, METHODS[config.method], eps, on_round, **settings)
        if refined.converged:
            break
    return refined


def _drawing(network: BayesianNetwork, config: RobustConfig) -> Callable[[Vector, int], Rows]:
    """Return a function that draws rows from tables q, new ones at every call."""
    backend = load_backend(config.backend)
    column = {node: i for i, node in enumerate(network.nodes)}
    order = [column[node] for node in network.topological_order]
    rng = np.random.default_rng(config.seed)

    def draw(q: Vector, n: int) -> Rows:
        key = int(rng.integers(2**63))
        codes = backend.sample(network.layout, order, q, n, key, config.n_threads)
        return backend.encode(network.layout, codes, config.n_threads)

    return draw


def _sample_size(network: BayesianNetwork, config: RobustConfig) -> int:
    """Return how many rows to learn the verdict from."""
    if config.sample_rows is not None:
        return config.sample_rows
    return max(LEAST_SAMPLE_ROWS, SAMPLE_ROWS_PER_PARAMETER * network.layout.n_free)


def _load(network: BayesianNetwork, codes: NDArray[np.uint8], config: RobustConfig) -> Rows:
    return load_rows(network, codes, config.backend, config.n_threads)
