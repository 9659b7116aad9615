"""The rounds: look at the spectrum, distrust, explain, look again; and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robustbn._core.expansion import (
    DAMPING_ROWS,
    Expansion,
    chi_distance,
    normalise_counts,
    uniform_tables,
)
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.result import Round
from robustbn._core.spectrum import top_eigenpairs
from robustbn._learn.density_filter import Filter, build_filter
from robustbn._learn.population import (
    N_BINS,
    PRIOR_ROWS,
    Explained,
    Mixture,
    OddsHistogram,
    ambiguity,
    calibrate,
    explain,
    judge,
    refit,
    split_widest_kind,
    with_kind,
)

Draw = Callable[[Vector, int], Rows]  # rows drawn from tables q, so many

ALLOWANCE = 0.02  # above the top eigenvalue of drawn rows: more is in excess, and is filtered
OBVIOUS = 2.0  # a top eigenvalue above this need not be known more precisely
SUSPICION = 0.005  # more than this is looked into: an explanation has to earn its place anyway
MAX_DIRECTIONS = 8
MAX_ROUNDS = 12
MAX_KINDS = 12
MAX_FILTERS = 20
MIN_BAD_ROWS = 20.0
PART_ROWS = 2**18
PROBE_STEPS = 8
DRAWN_ROWS = 50_000
CALIBRATION_ROWS = 200_000
NEW_KIND_GAIN = 3.0  # log-likelihood a free parameter that a new kind must bring
MIN_CLARITY = 0.35  # share of the distrusted weight that must be sure
UNSURE = 0.02  # share of rows not judged clearly, in units of the noise, that matters
SPLIT_GAIN = 1.0  # and that a finer picture of the bad rows must bring
SPLIT_GROWTH = 1.5  # which shows the same rows, up to 1.25 times as many: more are good ones


@dataclass(frozen=True)
class Look:
    """The weighted rows seen from their own tables: tables, and the top of their covariance.

    Parameters
    ----------
    q : weighted tables; shape (M,).
    values : top eigenvalues, largest first.
    table : for each, the table whose sum over a row's cells is its score along it; shape (M, k).
    """

    q: Vector
    values: Vector
    table: Vector

    @property
    def top(self) -> float:
        """The largest eigenvalue: about 1 for good rows."""
        return float(self.values[0]) if len(self.values) else 0.0


@dataclass(frozen=True)
class Learned:
    """What bad rows look like: everything needed to judge any row.

    Parameters
    ----------
    mixture : the model of good and bad rows, or None when the filters alone decide.
    filters : applied on top of it.
    rounds : what happened.
    top, threshold : the certificate: largest eigenvalue left, and what clean rows would have.
    stopped : why the rounds ended, in a few words; empty when the rows look clean.
    """

    mixture: Mixture | None
    filters: tuple[Filter, ...]
    rounds: tuple[Round, ...]
    top: float
    threshold: float
    stopped: str

    @property
    def is_in_excess(self) -> bool:
        """Whether the rows that are kept vary more than good rows do."""
        return self.top > self.threshold

    @property
    def is_suspicious(self) -> bool:
        """Whether they vary at all more than good rows, or none was found bad: look closer."""
        return self.mixture is None or self.top > self.threshold - ALLOWANCE + SUSPICION

    def weigh(self, rows: Rows) -> RowVector:
        """Return the weight of each of any rows; shape (N,)."""
        return weigh_rows(rows, self.mixture, self.filters)


def weigh_rows(rows: Rows, mixture: Mixture | None, filters: Sequence[Filter]) -> RowVector:
    """Return the weight of each row: a function of the row alone; shape (N,). In parts."""
    weights = np.ones(rows.n_rows, np.float32)
    if mixture is None and not filters:
        return weights
    for where, part in rows.parts(PART_ROWS):
        if mixture is not None:
            weights[where] = mixture.weigh(part)
        for each in filters:
            weights[where] *= each.weigh(part)
    return weights


def look_at(rows: Rows, weights: RowVector, damping: float = DAMPING_ROWS) -> Look:
    """Centre and scale the rows at their own weighted counts and find the top of the covariance."""
    counts = rows.count(weights)
    expansion = Expansion.at_counts(rows, counts, damping=damping)
    n = float(weights.sum(dtype=np.float64))
    center = np.zeros(expansion.dim)
    spectrum = top_eigenpairs(expansion, weights, center, n, depth=4, enough=OBVIOUS)
    directions = spectrum.vectors[:, :MAX_DIRECTIONS]
    return Look(expansion.q, spectrum.values, expansion.table(directions))


def clean_top(clean: Rows, n_rows: float) -> float:
    """Return the top eigenvalue to expect of `n_rows` good rows, from drawn ones.

    With n rows instead of n' the excess over 1, which is sampling noise, changes by at most
    `sqrt(n' / n)`.
    """
    ratio = clean.n_rows / n_rows
    top = look_at(clean, np.ones(clean.n_rows, np.float32), DAMPING_ROWS * ratio).top
    return 1.0 + max(0.0, top - 1.0) * float(np.sqrt(ratio))


class Rounds:
    """The rounds on one set of rows, and the state they hand on.

    Each round looks at the spectrum of what is trusted so far. While it is in excess of what drawn
    rows show, a filter marks rows. With `polish`, they seed one more kind of bad rows in the
    mixture, which must earn its place; otherwise the filter's own factors are kept.

    Parameters
    ----------
    rows : the rows to learn from.
    base : fixed weight of each.
    draw : draws rows from tables.
    ceiling : largest share of the rows that may be distrusted, below 1/2.
    on_round : is told of every round.
    earlier : rounds that went before.
    """

    def __init__(
        self,
        rows: Rows,
        base: RowVector,
        draw: Draw,
        ceiling: float,
        on_round: Callable[[Round], None],
        earlier: Sequence[Round] = (),
    ) -> None:
        self.rows, self.base, self.draw, self.ceiling = rows, base, draw, ceiling
        self.on_round = on_round
        self.total = float(base.sum(dtype=np.float64))
        self.noise = float(np.sqrt(rows.layout.n_free / max(self.total, 1.0)))
        self.plain_counts = rows.count(base)
        self.prior = normalise_counts(rows.layout, self.plain_counts, uniform_tables(rows.layout))
        self.weights = base
        self.mixture: Mixture | None = None
        self.filters: list[Filter] = []
        self.rounds: list[Round] = list(earlier)
        self.n_earlier = len(earlier)
        self.stopped = ""
        self.clock = time.perf_counter()
        self.clean = rows  # drawn rows, once there is a reason to draw them

    def run(
        self, *, explain_first: bool, filter_last: bool, start: Mixture | None = None
    ) -> Learned:
        """Go through the rounds and return what was learned.

        Parameters
        ----------
        explain_first : whether bad rows are explained by networks of their own.
        filter_last : whether filters take what is still in excess.
        start : a mixture that was learned before.
        """
        likelihood = float(self.plain_counts @ np.log(self.prior))
        if start is None:
            self._look(self.base, "looked at the rows")
        else:
            explained = explain(self.rows, self.base, start, self.prior)
            self.mixture, likelihood = explained.mixture, explained.log_likelihood
            self._look(self.base * explained.good, "looked again")
        if explain_first:
            self._explain_rounds(likelihood)
        if filter_last:
            self._filter_rounds()
        return self._learned()

    def check(self, learned: Learned) -> Learned:
        """Look at these rows as another set of rows taught to judge them; filter on if need be."""
        self.mixture, self.filters = learned.mixture, list(learned.filters)
        self._look(self.base * learned.weigh(self.rows), "looked at all rows")
        self._filter_rounds()
        return self._learned()

    def _learned(self) -> Learned:
        return Learned(
            self.mixture,
            tuple(self.filters),
            tuple(self.rounds),
            self.top,
            self.threshold,
            self.stopped,
        )

    @property
    def top(self) -> float:
        return self.look.top

    @property
    def is_suspicious(self) -> bool:
        """Whether the trusted rows vary at all more than they should."""
        return self.top > self.threshold - ALLOWANCE + SUSPICION

    def _look(self, weights: RowVector, action: str) -> None:
        """Look at weighted rows, and at rows drawn from their tables; note the round.

        None are drawn when the top eigenvalue is one that good rows of any network may well have.
        """
        self.weights = weights
        self.look = look_at(self.rows, weights)
        n = max(float(weights.sum(dtype=np.float64)), 1.0)
        self.threshold = 1.0 + 0.15 * self.noise + ALLOWANCE
        if self.is_suspicious:
            self.clean = self.draw(self.look.q, int(min(max(n, 1000), DRAWN_ROWS)))
            self.threshold = clean_top(self.clean, n) + ALLOWANCE
        now = time.perf_counter()
        done = Round(
            number=len(self.rounds),
            action=action,
            eigenvalues=tuple(float(v) for v in self.look.values[:4]),
            threshold=self.threshold,
            removed=1.0 - n / self.total,
            n_kinds=0 if self.mixture is None else self.mixture.n_kinds,
            wall_s=now - self.clock,
        )
        self.clock = now
        self.rounds.append(done)
        self.on_round(done)

    def _explain_rounds(self, likelihood: float) -> None:
        """Add kinds of bad rows while the spectrum is in excess and each earns its place."""
        n_free = self.rows.layout.n_free
        while self.is_suspicious and len(self.rounds) < self.n_earlier + MAX_ROUNDS:
            marked = self.weights * (1 - self._build_filter()[1])
            if marked.sum() < MIN_BAD_ROWS:
                return
            kept = self.rows.count(self.weights - marked)
            good = normalise_counts(self.rows.layout, kept, self.prior)
            start = with_kind(self.mixture, self.rows, marked, self.total, good, self.prior)
            explained = explain(self.rows, self.base, start, self.prior)
            gain = explained.log_likelihood - likelihood
            if gain < NEW_KIND_GAIN * n_free or explained.clarity < MIN_CLARITY:
                return
            explained = self._split(explained)
            if explained.mixture.shares.sum() > self.ceiling:
                return
            likelihood = explained.log_likelihood
            before = (self.mixture, self.weights, self.look, self.threshold, self.clean)
            excess = self.top - self.threshold
            self.mixture = explained.mixture
            self._look(self.base * explained.good, "explained bad rows")
            if self.top - self.threshold > excess:  # the certificate decides
                self.mixture, self.weights, self.look, self.threshold, self.clean = before
                return

    def _split(self, explained: Explained) -> Explained:
        """Split kinds that are not like networks, as long as that changes the verdicts."""
        n_free = self.rows.layout.n_free
        tried: set[int] = set()
        most = SPLIT_GROWTH * float(explained.mixture.shares.sum())
        while explained.mixture.n_kinds < MAX_KINDS:
            if explained.ambiguity < UNSURE / 10 * self.noise:
                break
            is_unsure = explained.ambiguity > 10 * UNSURE * self.noise
            split = split_widest_kind(
                self.rows, self.base, explained, tried, 0.0 if is_unsure else 1.1
            )
            if split is None:
                break
            kind, start = split
            finer = explain(self.rows, self.base, start, self.prior, max_steps=PROBE_STEPS)
            if finer.log_likelihood - explained.log_likelihood < SPLIT_GAIN * n_free:
                tried.add(kind)
                continue
            moved = float(self.base @ np.abs(finer.good - explained.good)) / self.total
            if moved < 0.001 * self.noise:
                break
            finer = explain(self.rows, self.base, finer.mixture, self.prior)
            if finer.mixture.shares.sum() > most:  # it would explain good rows away
                break
            explained, tried = finer, set()
        return explained

    def _filter_rounds(self) -> None:
        """Filter until the spectrum is clean or as much is removed as may be."""
        while self.top > self.threshold:
            if len(self.filters) == MAX_FILTERS:
                self.stopped = f"after {MAX_FILTERS} filters"
                return
            built, factors = self._build_filter()
            weights = self.weights * factors
            kept = float(weights.sum(dtype=np.float64))
            if 1 - kept / self.total > self.ceiling:
                self.stopped = f"because more than {self.ceiling:.0%} of the rows would go"
                return
            if kept > (1 - 1e-4) * float(self.weights.sum(dtype=np.float64)):
                self.stopped = "because no row stands out"
                return
            self.filters.append(built)
            self._look(weights, "filtered")

    @property
    def n_in_excess(self) -> int:
        """In how many directions the trusted rows vary more than they should; at least 1."""
        most = self.threshold - ALLOWANCE + SUSPICION
        return int(np.clip((self.look.values > most).sum(), 1, MAX_DIRECTIONS))

    def _build_filter(self) -> tuple[Filter, RowVector]:
        table = self.look.table[:, : self.n_in_excess]
        return build_filter(table, self.rows, self.weights, self.clean)


def settle(
    mixture: Mixture,
    sample: tuple[Rows, RowVector],
    many: tuple[Rows, RowVector],
    draw: Draw,
    *,
    max_steps: int = 8,
) -> tuple[Mixture, Vector]:
    """Refit the mixture to many rows, calibrated, until its good tables stop moving.

    When the sample leaves no doubt about any row there is nothing to refit. Returns the mixture and
    its counts by `[good, kind 1, ..., kind K]`, shape (M, 1 + K), scaled to the many rows. Every
    step is one pass over the rows in parts, so that memory beside them stays small.

    Parameters
    ----------
    sample, many : rows the mixture was learned from, and more of them; each with their base.
    draw : draws rows from tables.
    """
    rows, base = many
    layout = rows.layout
    total = float(base.sum(dtype=np.float64))
    noise = float(np.sqrt(layout.n_free / max(total, 1.0)))
    shares, log_odds = judge(sample[0], mixture)
    counts = sample[0].count(shares * sample[1][:, None]) * (rows.n_rows / sample[0].n_rows)
    if ambiguity(log_odds) < UNSURE * noise:
        return mixture, counts
    prior = PRIOR_ROWS * normalise_counts(layout, rows.count(base), uniform_tables(layout))
    for step in range(max_steps):
        drawn = draw(mixture.q, int(min(max(total, 1000), CALIBRATION_ROWS)))
        histogram = OddsHistogram.of_drawn(mixture.log_odds(drawn))
        observed = np.zeros(N_BINS)
        counts = np.zeros((layout.n_cells, 1 + mixture.n_kinds))
        for where, part in rows.parts(PART_ROWS):
            shares, log_odds = judge(part, mixture)
            counts += part.count(shares * base[where, None])
            observed += histogram.count(log_odds, base[where])
        before, mixture = mixture, refit(layout, counts, prior, mixture)
        mixture = calibrate(mixture, histogram, observed, total)
        pi = layout.sum_configurations(counts[:, 0]) / total
        if step > 2 and chi_distance(layout, pi, before.q, mixture.q) < 0.05 * noise:
            break
    return mixture, counts
