"""The conductor: the whole flow from rows to tables, on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._backends import load_backend
from robustbn._config import RobustConfig
from robustbn._describe import describe_status
from robustbn._encode import as_codes
from robustbn._expand import (
    log_probabilities,
    normalise_counts,
    sum_over_rows,
    uniform_tables,
)
from robustbn._oracle import METHODS, NEED_SHARE
from robustbn._oracle.filter import Filter
from robustbn._oracle.mixture import Mixture, with_kind
from robustbn._paper import Refined, follow_jointly, follow_paper, trim_by_likelihood
from robustbn._protocols import Rows, RowVector, Vector
from robustbn._refine import Rounds, settle, weigh_rows
from robustbn._repeats import NO_REPEATS, Repeats, find_copies, find_repeats
from robustbn._result import Round
from robustbn.exceptions import CodeRangeError
from robustbn.network import BayesianNetwork

SAMPLE_ROWS_PER_PARAMETER = 200  # O(m / eps^2) rows tell good from bad; more only cost time
LEAST_SAMPLE_ROWS = 50_000
MANY_ROWS = 1_000_000  # enough to count copies in, and to refit the verdict on


def load_rows(
    network: BayesianNetwork, X: ArrayLike, backend: str | None = None, n_threads: int | None = None
) -> Rows:
    """Check the rows and hand them to a backend."""
    codes = as_codes(X, network)
    try:
        return load_backend(backend).encode(network.layout, codes, n_threads)
    except CodeRangeError as wrong:
        raise CodeRangeError(
            wrong.row, wrong.column, wrong.value, wrong.n_states, network.nodes[wrong.column]
        ) from None


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
    weights : trust in each row, from 0 to 1; shape (N,).
    n_rows, n_trusted : weight of all rows, and of the trusted ones.
    mixture, filters, repeats : how rows are judged.
    kind_counts : weight of each kind of bad rows on each cell; shape (M, K).
    rounds, converged, status : what happened, and why it stopped.
    """

    counts: Vector
    plain_counts: Vector
    weights: RowVector
    n_rows: float
    n_trusted: float
    mixture: Mixture | None
    filters: tuple[Filter, ...]
    repeats: Repeats
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
    X: ArrayLike,
    sample_weight: RowVector | None,
    config: RobustConfig,
    on_round: Callable[[Round], None],
) -> RobustFit:
    """Learn which rows to distrust, and count the others: the default method.

    Time O(N d) for a fixed number of passes, plus rounds on a sample whose size depends on the
    network and not on N. Memory beside the rows: their packed codes and a few numbers a row.
    """
    codes = as_codes(X, network)
    rows = load_rows(network, codes, config.backend, config.n_threads)
    draw = _drawing(network, config)

    # The plain estimate: Algorithm 1, lines 1 and 2.
    given: RowVector = np.ones(rows.n_rows, np.float32)
    unit = 1.0
    if sample_weight is not None:
        unit = float(sample_weight.mean(dtype=np.float64))
        given = sample_weight / unit
    plain_counts = rows.count(sample_weight)

    # Rows copied more often than the network allows.
    many, of_many = _draw_sample(network, codes, rows, MANY_ROWS, config)
    prints = rows.fingerprints()
    copies = find_copies(
        prints[of_many],
        of_many,
        given[of_many],
        lambda i: load_rows(network, codes[i], config.backend, config.n_threads),
    )
    everywhere = np.ones(len(copies.seen))
    repeats = find_repeats(copies, many.count(given[of_many]), everywhere, slack=1.5)
    base: RowVector = given * repeats.weigh_prints(prints)

    # Which rows are bad, learned from a sample: filter, explain, filter again.
    sample, chosen = _draw_sample(network, codes, rows, _sample_size(network, config), config)
    rounds = Rounds(sample, base[chosen], draw, config.ceiling, on_round)
    learned = rounds.run(explain_first=config.polish, filter_last=False)
    if learned.is_suspicious and many.n_rows > sample.n_rows:  # look closer
        sample, chosen = many, of_many
        rounds = Rounds(sample, base[chosen], draw, config.ceiling, on_round, learned.rounds)
        learned = rounds.run(explain_first=config.polish, filter_last=False, start=learned.mixture)

    # How often rows may be repeated, now that the tables are better known.
    trust: RowVector = given[chosen] * learned.weigh(sample)
    counts = sample.count(trust) * (many.n_rows / sample.n_rows)
    repeats = find_repeats(copies, counts, learned.weigh(copies.rows))
    before, factor = base, repeats.weigh_prints(prints)
    base = given * factor
    n_newly_repeated = float(np.maximum(before - base, 0).sum(dtype=np.float64))
    if learned.is_in_excess or n_newly_repeated > 2e-3 * rows.n_rows:
        rounds = Rounds(sample, base[chosen], draw, config.ceiling, on_round, learned.rounds)
        learned = rounds.run(explain_first=config.polish, filter_last=True, start=learned.mixture)

    # The verdict on all rows, and the tables of those that are trusted.
    by_kind = np.zeros((network.n_cells, 1))
    if learned.mixture is not None:
        mixture, by_kind = settle(
            learned.mixture, (sample, base[chosen]), (many, base[of_many]), draw
        )
        by_kind *= unit * rows.n_rows / many.n_rows
        learned = replace(learned, mixture=mixture)
    trust = learned.weigh(rows)
    counts = rows.count(base * trust) * unit
    weights = trust * factor
    n = float(given.sum(dtype=np.float64)) * unit
    n_trusted = float(sum_over_rows(rows.layout, counts))
    removed = max(0.0, 1 - n_trusted / n)
    converged, status = describe_status(
        removed, config.ceiling, learned.top, learned.threshold, learned.stopped
    )
    return RobustFit(
        counts,
        plain_counts,
        weights,
        n,
        n_trusted,
        learned.mixture,
        learned.filters,
        repeats,
        by_kind[:, 1:],
        learned.rounds,
        converged,
        status,
    )


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


def _draw_sample(
    network: BayesianNetwork, codes: NDArray[np.uint8], rows: Rows, n: int, config: RobustConfig
) -> tuple[Rows, NDArray[np.int64]]:
    """Return one row drawn from each of n equal stretches, and their numbers; or all, if few."""
    if n >= rows.n_rows:
        return rows, np.arange(rows.n_rows)
    rng = np.random.default_rng([config.seed, n])
    chosen = ((np.arange(n) + rng.random(n)) * (rows.n_rows / n)).astype(np.int64)
    return load_rows(network, codes[chosen], config.backend, config.n_threads), chosen
