"""What rows look like: one value that judges any row, seen or not.

Good rows come from a population: a main class with tables of its own, and perhaps further classes.
Bad rows are of a few kinds, each with tables of the same structure. A row's log-odds of being bad
are `log of the sum of its kinds' e[k] T[k](x), over that of its classes`; a component that is
neither surely is on both sides, by the share of its weight that a row of it keeps. Filters and a
list of repeated rows multiply the trust that follows from them. All of it is a function of the row
alone, so that streams and clusters need no state, and new rows are judged like old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Divided, DividedInTwo, Rows, RowVector, TwoSides, Vector
from robustbn._core.trust import even_weights, sum_weights

Draw = Callable[[Sequence[tuple[Vector, int]]], Rows]  # rows from each of some tables, so many
ROWS_JUDGED_AT_ONCE = 2**18  # rows judged at a time: bounds memory, changes nothing
SMALLEST_SHARE = 1e-12  # of a component: its logarithm is taken
LARGEST_SHARE = 1 - 2.0**-53  # of all components beside the main class: the largest below one


@dataclass(frozen=True, eq=False)
class Filter:
    """A pure function of a row: its weight is multiplied by `factors[bin of its score]`."""

    table: Vector  # shape (M, r); the score of a row is `|sum of table[j] over its cells j|^2`
    edges: Vector  # ends of the bins, increasing
    # one more than edges, from 1 downwards: a larger score never gets a larger factor
    factors: Vector

    def weigh(self, rows: Rows) -> RowVector:
        """Return the factor of each row; shape (N,). One pass."""
        return self.factor(rows.score(self.table))

    def factor(self, scores: RowVector) -> RowVector:
        """Return the factor that goes with each score."""
        return self.factors[np.searchsorted(self.edges, scores, side="right")]


@dataclass(frozen=True, eq=False)
class Repeats:
    """Which rows appear too often, and the share of its weight that each copy keeps."""

    fingerprints: NDArray[np.uint64]  # of those rows, increasing
    factors: Vector  # so that all copies together weigh as much as is expected
    # first, seen, expected: where each appears, how often, and how often it should
    first: NDArray[np.int64]
    seen: NDArray[np.int64]
    expected: Vector
    codes: Codes  # of those rows, one copy each; shape (n, d)

    def weigh(self, rows: Rows) -> RowVector:
        """Return the factor of each row, 1 for a row that is not among them; shape (N,)."""
        if not len(self.factors):
            return np.ones(rows.n_rows, np.float32)
        return self.weigh_prints(rows.fingerprints())

    def weigh_prints(self, prints: NDArray[np.uint64]) -> RowVector:
        """Return the factor of each row from its fingerprint; shape (N,)."""
        factor = np.ones(len(prints), np.float32)
        if len(self.factors):
            found, place = locate_prints(prints, self.fingerprints)
            factor[found] = self.factors[place]
        return factor


NO_REPEATS = Repeats(
    fingerprints=np.empty(0, np.uint64),
    factors=np.empty(0),
    first=np.empty(0, np.int64),
    seen=np.empty(0, np.int64),
    expected=np.empty(0),
    codes=np.empty((0, 0), np.uint8),
)


def locate_prints(
    prints: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of `prints` are among `wanted`, which increases, and their places in it."""
    mask = np.uint64(2**18 - 1)
    might_be = np.zeros(2**18, bool)
    might_be[wanted & mask] = True
    candidates = np.flatnonzero(np.take(might_be, (prints & mask).view(np.int64)))
    place = np.searchsorted(wanted, prints[candidates])
    place[place == len(wanted)] = 0
    is_there = (
        wanted[place] == prints[candidates] if len(wanted) else np.zeros(len(candidates), bool)
    )
    return candidates[is_there], place[is_there]


@dataclass(frozen=True, eq=False)
class RowModel:
    """What good and bad rows look like, and how many there are of each."""

    good: Vector  # tables of the main class of the good population; shape (M,)
    others: Vector  # tables of the other components, classes and kinds; shape (M, K)
    shares: Vector  # share of each of them among all rows; shape (K,)
    # share of its weight that a row of each of them keeps; shape (K,). It is 1 for classes of the
    # good population, 0 for kinds of rows that are surely bad, and between where neither is sure.
    kept: Vector
    # intercept, slope: calibration; the log-odds used are `intercept + slope * log-odds`
    intercept: float = 0.0
    slope: float = 1.0
    filters: tuple[Filter, ...] = ()  # applied on top
    repeats: Repeats = NO_REPEATS  # rows that appear too often

    @classmethod
    def of_good_rows(cls, good: Vector) -> RowModel:
        """Return a model in which every row is good: one class, no kinds."""
        return cls(good, np.empty((len(good), 0)), np.empty(0), np.empty(0))

    @property
    def n_others(self) -> int:
        """Number of components beside the main class, K."""
        return len(self.shares)

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        """Which components are kinds of bad rows: their rows keep less than half their weight."""
        return self.kept < 0.5

    @property
    def n_kinds(self) -> int:
        """Number of kinds of bad rows."""
        return int(np.count_nonzero(self.is_bad))

    @property
    def share_bad(self) -> float:
        """Share of the rows' weight that the components lose."""
        return float(self.shares @ (1 - self.kept))

    @property
    def distrusts(self) -> bool:
        """Whether rows of any component lose some of their weight."""
        return bool((self.kept < 1).any())

    @property
    def trusts_all(self) -> bool:
        """Whether there is nothing that could speak against a row."""
        return not (self.distrusts or self.filters or len(self.repeats.factors))

    def with_component(self, tables: Vector, share: float, *, kept: float = 0.0) -> RowModel:
        """Return the model with one more component; the calibration no longer holds."""
        return replace(
            self,
            others=np.hstack([self.others, tables[:, None]]),
            shares=np.append(self.shares, share),
            kept=np.append(self.kept, kept),
            intercept=0.0,
            slope=1.0,
        )

    def without_component(self, k: int) -> RowModel:
        """Return the model without its component k; the calibration no longer holds."""
        keep = np.arange(self.n_others) != k
        return replace(
            self,
            others=self.others[:, keep],
            shares=self.shares[keep],
            kept=self.kept[keep],
            intercept=0.0,
            slope=1.0,
        )

    @property
    def log_main_share(self) -> float:
        """Log of the share of the main class; finite where the others took all rows."""
        return float(np.log1p(-min(float(self.shares.sum()), LARGEST_SHARE)))

    # --- one row's odds ---------------------------------------------------------------------------

    @cached_property
    def evidence(self) -> Vector:
        """What each cell says for each component and against the main class; shape (M, K)."""
        return np.log(self.others) - np.log(self.good)[:, None]

    @property
    def log_prior_odds(self) -> Vector:
        """Log of the share of each component over the main class's; shape (K,)."""
        return np.log(np.maximum(self.shares, SMALLEST_SHARE)) - self.log_main_share

    def log_odds_by_component(self, rows: Rows) -> RowVector:
        """Return `log e[k] T[k](x) / (e[0] T[0](x))`, 0 the main class; shape (N, K). One pass."""
        return rows.project(self.evidence, -self.log_prior_odds)  # an offset is subtracted

    def divide(self, rows: Rows, base: RowVector) -> Divided:
        """Divide rows among the components, not calibrated: an expectation step. One pass.

        The log of the density of all rows is that of the main class alone plus `log_sum`.
        """
        if not self.n_others:
            return Divided(rows.count(base)[:, None], np.array([sum_weights(base)]), 0.0)
        return rows.divide(self.evidence, -self.log_prior_odds, base)

    def log_density(self, rows: Rows) -> RowVector:
        """Return the log-probability of each row under all components; shape (N,). Two passes."""
        main: RowVector = rows.project(np.log(self.good)[:, None])[:, 0].astype(np.float64)
        if self.n_others:
            odds = log_sum_exp(self.log_odds_by_component(rows).astype(np.float64))
            main += self.log_main_share + softplus(odds)
        return main

    @cached_property
    def _sides(self) -> tuple[NDArray[np.int64], Vector, Vector, TwoSides]:
        """The components that rows are divided among, those of the good side first.

        A component whose rows keep some of their weight is on both sides. Returns which component
        each column is, what each cell and the shares say for it, and the sides.
        """
        good, bad = np.flatnonzero(self.kept > 0), np.flatnonzero(self.kept < 1)
        which = np.concatenate([good, bad])
        log_part = np.log(np.concatenate([self.kept[good], 1 - self.kept[bad]]))
        sides = TwoSides(len(good), self.intercept, self.slope)
        return which, self.evidence[:, which], -(self.log_prior_odds[which] + log_part), sides

    def log_odds(self, rows: Rows) -> RowVector:
        """Return the log-odds of each row to be bad, not calibrated; shape (N,). One pass."""
        if not self.distrusts:
            return np.full(rows.n_rows, -np.inf, np.float32)
        _, evidence, offset, sides = self._sides
        return rows.odds(evidence, offset, sides.n_first)

    def divide_calibrated(self, rows: Rows, base: RowVector) -> DividedInTwo:
        """Divide rows among the components, calibrated; and their log-odds to be bad. One pass."""
        if not self.distrusts:
            divided = self.divide(rows, base)
            return DividedInTwo(divided.counts, divided.masses, self.log_odds(rows))
        which, evidence, offset, sides = self._sides
        found = rows.divide_in_two(evidence, offset, sides, base)
        counts, masses = np.zeros((len(self.good), 1 + self.n_others)), np.zeros(1 + self.n_others)
        for column, k in enumerate((0, *(which + 1))):
            counts[:, k] += found.counts[:, column]
            masses[k] += found.masses[column]
        return DividedInTwo(counts, masses, found.odds)

    def sort(self, rows: Rows) -> tuple[RowVector, RowVector]:
        """Return the probability of each row to be of each component, not calibrated.

        Shape (N, 1 + K), the main class first; and the log-odds not to be of the main class, shape
        (N,). What an expectation step needs: it does not matter which components are bad. One pass.
        """
        by_component = self.log_odds_by_component(rows)
        log_odds = log_sum_exp(by_component)
        return _divide(by_component, log_odds, logistic(-log_odds)), log_odds

    def judge(self, rows: Rows) -> tuple[RowVector, RowVector]:
        """Return the probability of each row to be of each component, and its log-odds to be bad.

        Shapes (N, 1 + K), the main class first, and (N,). The trust in a row, calibrated, is the
        sum over the classes. One pass.
        """
        of_main = np.zeros((rows.n_rows, 1), np.float32)
        by_component = np.hstack([of_main, self.log_odds_by_component(rows)])
        kept, divided, totals = np.append(1.0, self.kept), [], []
        for part in (kept, 1 - kept):
            side = np.flatnonzero(part)
            if len(side):
                odds = by_component[:, side] + np.log(part[side]).astype(by_component.dtype)
                totals.append(log_sum_exp(odds))
                divided.append((side, np.exp(odds - totals[-1][:, None])))
        if not self.distrusts:
            totals.append(np.full(rows.n_rows, -np.inf, by_component.dtype))
        log_odds = totals[1] - totals[0]
        good, shares = self.trust_at(log_odds), np.zeros_like(by_component)
        for (side, among), total in zip(divided, (good, 1 - good), strict=False):
            shares[:, side] += among * total[:, None]
        return shares, log_odds

    def trust_at(self, log_odds: RowVector) -> RowVector:
        """Return the probability to be good, calibrated, by the log-odds to be bad; shape (N,)."""
        return logistic(-self.intercept - self.slope * log_odds)

    # --- any rows ---------------------------------------------------------------------------------

    def weigh(self, rows: Rows) -> RowVector:
        """Return the trust in each row, from 0 to 1; shape (N,). In parts."""
        weights = np.ones(rows.n_rows, np.float32)
        if self.trusts_all:
            return weights
        for where, part in rows.parts(ROWS_JUDGED_AT_ONCE):
            if self.distrusts:
                weights[where] = self.trust_at(self.log_odds(part))
            for each in self.filters:
                weights[where] *= each.weigh(part)
            if len(self.repeats.factors):
                weights[where] *= self.repeats.weigh(part)
        return weights

    def trust(self, rows: Rows) -> RowVector:
        """Return the same, not to be written to: where all rows are trusted, at no cost."""
        return even_weights(rows.n_rows) if self.trusts_all else self.weigh(rows)

    def log_weigh(self, rows: Rows) -> RowVector:
        """Return the log of the trust in each row, precise where it is tiny; shape (N,)."""
        trust = self.repeats.weigh(rows)
        for each in self.filters:
            trust = trust * each.weigh(rows)
        with np.errstate(divide="ignore"):
            log_trust: RowVector = np.log(trust)
        if not self.distrusts:
            return log_trust
        return log_trust - softplus(self.intercept + self.slope * self.log_odds(rows))

    def count(self, rows: Rows, base: RowVector) -> Vector:
        """Return the weight of each component's rows on each cell; shape (M, 1 + K). One pass."""
        return self.divide_calibrated(rows, base).counts

    def draw_good(self, draw: Draw, n_rows: int) -> Rows:
        """Return rows drawn from the good population, each class by its share."""
        shares = np.append(1 - self.shares.sum(), self.shares * self.kept)
        sizes = np.diff(np.rint(np.cumsum(shares / shares.sum()) * n_rows), prepend=0)
        tables = [self.good, *self.others.T]
        return draw([(q, int(n)) for q, n in zip(tables, sizes, strict=True)])

    def most_like(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of the kind of bad rows that each row is most like, from 1; (N,).

        0 for rows that no kind holds: filters and repetition speak against them.
        """
        kinds = np.flatnonzero(self.is_bad)
        belongs = np.empty((rows.n_rows, 0), np.float32)
        if len(kinds):
            belongs = self.judge(rows)[0][:, 1 + kinds] * (1 - self.kept[kinds]).astype(np.float32)
        unheld = 1 - self.weigh(rows) - belongs.sum(axis=1)
        best = np.hstack([belongs, unheld[:, None]]).argmax(axis=1)
        numbers: NDArray[np.int64] = np.append(kinds + 1, 0)[best]
        return numbers

    def speak_against(self, cells: NDArray[np.int64]) -> Vector:
        """Return how much each of a row's cells speaks against it; shape (n, d)."""
        # By `log T[j] / good[j]` with the tables of the kind of bad rows that the row most
        # resembles; or, where filters alone decide, by its part of the score.
        is_there = cells >= 0
        if self.n_kinds:
            by_kind = np.stack(
                [column[cells] * is_there for column in self.evidence[:, self.is_bad].T]
            )
            shares = np.maximum(self.shares[self.is_bad], SMALLEST_SHARE)
            kind = (by_kind.sum(axis=2) + np.log(shares)[:, None]).argmax(axis=0)
            chosen: Vector = np.take_along_axis(by_kind, kind[None, :, None], axis=0)[0]
            return chosen
        against, lowest = np.zeros(cells.shape), np.ones(len(cells))
        for each in self.filters:
            lines = each.table[cells] * is_there[:, :, None]
            total = lines.sum(axis=1)
            factor = each.factor((total**2).sum(axis=1))
            is_lower = factor < lowest
            against[is_lower] = np.einsum("nir,nr->ni", lines[is_lower], total[is_lower])
            lowest[is_lower] = factor[is_lower]
        return against


def _divide(by_component: RowVector, log_odds: RowVector, main: RowVector) -> RowVector:
    """Return `[main, ...]`: what is left of 1 is divided among the other components."""
    shares = np.empty((len(main), 1 + by_component.shape[1]), by_component.dtype)
    shares[:, 0] = main
    if by_component.shape[1] == 1:
        np.subtract(1, main, out=shares[:, 1])
    else:
        by_component -= log_odds[:, None]
        np.exp(by_component, out=by_component)
        np.multiply(by_component, 1 - shares[:, :1], out=shares[:, 1:])
    return shares


def log_sum_exp(values: RowVector) -> RowVector:
    """Return `log of the sum of exp(values[n, k]) over k`, column by column: K is small."""
    largest = values[:, 0].copy()
    for column in values.T[1:]:
        np.maximum(largest, column, out=largest)
    if values.shape[1] == 1:
        return largest
    total = np.zeros_like(largest)
    for column in values.T:
        total += np.exp(column - largest)
    return largest + np.log(total)


def softplus(values: RowVector) -> RowVector:
    """Return `log(1 + exp(x))` without overflow."""
    return np.maximum(values, 0) + np.log1p(np.exp(-np.abs(values)))


def logistic(values: RowVector) -> RowVector:
    """Return `1 / (1 + exp(-x))` without overflow."""
    logistic: RowVector = 0.5 * (1 + np.tanh(values * np.float32(0.5)))
    return logistic
