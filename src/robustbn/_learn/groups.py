"""Groups: some rows have tables of their own.

Many starts race, all in the same passes, against the density found so far; the best are fitted
together with all groups that are there already. Tables of a group are tied (`ties.py`): a family
differs from the good one only where the rows say so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import uniform_tables
from robustbn._core.layout import Codes
from robustbn._core.protocols import Divided, DividedApart, Rows, RowVector, Vector
from robustbn._core.row_model import (
    LARGEST_SHARE,
    SMALLEST_SHARE,
    RowModel,
    log_sum_exp,
    logistic,
    softplus,
)
from robustbn._learn.copies import Copies
from robustbn._learn.gain import find_gain
from robustbn._learn.look import Look
from robustbn._learn.study import Sample, Study
from robustbn._learn.ties import AS_GOOD, Families, Tied

LEAST_ROWS = 20.0  # rows: fewer describe nothing
UNLIKELY = (0.02, 0.06, 0.2)  # shares of the rows that are least likely so far: starts
FAR = (0.97, 0.88)  # quantiles along a direction in excess beyond which rows are starts
DIRECTIONS = 4  # of which both ends are starts
NEAR = (3, 0.15, 10.0)  # rows often copied, share of nodes near one, nats that are no chance
HANDFUL = 0.01  # share of rows, added to a start's own: or a handful of odd rows wins
PROMISING = 0.05  # nats a row: a start that lacks no more after its first steps may still pay
KEPT = 6  # starts after the first steps; none holds another's rows
FINISHED = 2  # starts that are fitted together with all groups
RACE_STEPS, JOINT_STEPS = 3, 25  # of all starts, and again of those kept; of all groups
MISSED_STEPS = 3  # of the shares of those that are left, when a group is left out
SETTLED = 10  # steps after which ties are kept: they would flicker
TOLERANCE = 5e-6  # nats a row: a step that gains less is the last
START_SHARES = (1e-5, 0.6)  # of the rows, that a start may shrink and grow to


@dataclass(frozen=True, eq=False)
class Population:
    """Components with tied tables, and what they say of the rows they were fitted to.

    Parameters
    ----------
    model : the main class and the groups, all of them called bad until they are judged.
    ties : of the groups.
    masses : weight of each component's rows, the main class first; shape (1 + K,).
    log_likelihood : of the rows.
    rows : the rows.
    """

    model: RowModel
    ties: Tied
    masses: Vector
    log_likelihood: float
    rows: Rows

    @cached_property
    def log_odds(self) -> RowVector:
        """Log-odds of each group against the main class; shape (N, K). One pass."""
        log_odds: RowVector = self.model.log_odds_by_component(self.rows).astype(np.float64)
        return log_odds

    @cached_property
    def shares(self) -> RowVector:
        """Probability of each row to be of each component, the main class first; (N, 1 + K)."""
        shares = np.ones((self.rows.n_rows, 1 + self.model.n_others), np.float32)
        if self.model.n_others:
            total = log_sum_exp(self.log_odds)
            main = logistic(-total)
            shares[:, 0] = main
            shares[:, 1:] = np.exp(self.log_odds - total[:, None]) * (1 - main)[:, None]
        return shares

    @cached_property
    def density(self) -> RowVector:
        """Log-probability of each row under all components; shape (N,). One pass."""
        main = self.rows.project(np.log(self.model.good)[:, None])[:, 0].astype(np.float64)
        main += self.model.log_main_share
        if self.model.n_others:
            main += softplus(log_sum_exp(self.log_odds))
        return main


@dataclass(frozen=True)
class Entry:
    """What an explanation brought when it entered.

    Parameters
    ----------
    gain : in nats, after paying for its parameters.
    cost : what they cost.
    n_rows : weight of its rows then.
    lead : log of what edges would have gained over what it did, or something larger before it.
    """

    gain: float
    cost: float
    n_rows: float
    lead: float = -np.inf

    def scale(self, times: float) -> Entry:
        """Return what it would have brought to so many times as many rows."""
        n_rows = max(self.n_rows, 2.0)
        cost = self.cost * float(np.log(n_rows * times) / np.log(n_rows))
        gain = (self.gain + self.cost) * times - cost
        return replace(self, gain=gain, cost=cost, n_rows=self.n_rows * times)


def fit_population(
    sample: Sample,
    families: Families,
    model: RowModel,
    modes: NDArray[np.int64],
    max_steps: int = JOINT_STEPS,
) -> Population:
    """Fit all components together by expectation-maximisation.

    The main class also learns from the rows of groups in the families where those are as good. Ties
    are chosen anew in the first steps, then kept.

    Parameters
    ----------
    model, modes : where to start; modes of -1 are not chosen yet.
    """
    before, ties = -np.inf, Tied(model.others, modes, np.zeros(model.n_others))
    for step in range(max_steps + 1):
        divided = model.divide(sample.rows, sample.base)
        likelihood = find_likelihood(sample, model, divided)
        if step == max_steps or (step and likelihood - before < TOLERANCE * sample.total):
            break
        before = likelihood
        kept = ties.modes if step >= SETTLED else None
        model, ties = _refit(families, model, divided.counts, divided.masses, kept)
    return Population(model, ties, divided.masses, likelihood, sample.rows)


def find_missed(
    sample: Sample, population: Population, left_out: list[int], enough: float = np.inf
) -> float:
    """Return the log-likelihood that rows lose without some groups; the others keep their tables.

    Their shares are fitted again: a group whose rows another describes as well is not missed.

    Parameters
    ----------
    enough : nats; where at least as much is lost for sure, how much does not matter.
    """
    model, most = population.model, population.log_likelihood - enough
    for k in sorted(left_out, reverse=True):
        model = model.without_component(k)
    for _ in range(MISSED_STEPS):
        divided = model.divide(sample.rows, sample.base)
        shares = np.array([np.exp(model.log_main_share), *model.shares])
        # Rows a share, over the share: no shares whatever are likelier by more than this each row.
        ratio = float(np.max(divided.masses / (sample.total * np.maximum(shares, SMALLEST_SHARE))))
        more = sample.total * float(np.log(max(ratio, 1.0)))
        left = find_likelihood(sample, model, divided) + more
        if left <= most:
            return population.log_likelihood - left
        model = replace(model, shares=divided.masses[1:] / divided.masses.sum())
    left = find_likelihood(sample, model, model.divide(sample.rows, sample.base))
    return population.log_likelihood - left


def find_likelihood(sample: Sample, model: RowModel, divided: Divided) -> float:
    """Return the log-likelihood of rows that were divided among the components."""
    main = sample.total * model.log_main_share + float(sample.plain_counts @ np.log(model.good))
    return divided.log_sum + main


def _refit(
    families: Families,
    model: RowModel,
    counts: Vector,
    mass: Vector,
    modes: NDArray[np.int64] | None,
) -> tuple[RowModel, Tied]:
    """Return the model of counts by component, and its ties; by default they are chosen anew."""
    of_groups = counts[:, 1:]
    ties = families.tie(of_groups, families.own(counts[:, 0]), modes)
    is_as_good = (ties.modes == AS_GOOD)[families.node_of_cell]
    good = families.own(counts[:, 0] + (of_groups * is_as_good).sum(axis=1))
    ties = replace(ties, tables=np.where(is_as_good, good[:, None], ties.tables))
    return replace(model, good=good, others=ties.tables, shares=mass[1:] / mass.sum()), ties


# --- starts ---------------------------------------------------------------------------------------


def build_starts(
    study: Study,
    sample: Sample,
    families: Families,
    population: Population,
    look: Look,
) -> tuple[Vector, Vector]:
    """Return tables to start from, shape (M, S), and the share of rows of each.

    Rows that are unlikely so far; rows at either end of the directions in excess; rows near one
    that appears too often; and two tables that need no rows: no edges, and nothing but noise.
    """
    density, good = population.density, population.model.good
    marks = [density <= limit for limit in np.quantile(np.sort(density), UNLIKELY)]
    n_excess = min(int(np.count_nonzero(look.spectrum.values > look.limit)), DIRECTIONS)
    along = sample.rows.project(look.spectrum.table[:, :n_excess])
    for y in along.T:
        limits = np.quantile(np.sort(y), [*FAR, *(1 - np.array(FAR))])  # faster than selecting
        marks += [y >= limit for limit in limits[: len(FAR)]]
        marks += [y <= limit for limit in limits[len(FAR) :]]
    surprise = study.copies.find_surprise(population.model, study.total)
    marks += _near_copies(sample, families, study.copies, surprise)
    marks = [mark for mark in marks if sample.base @ mark >= LEAST_ROWS]
    tables = np.empty((families.layout.n_cells, 0))
    if marks:  # few rows may leave none
        counts = sample.rows.count(np.stack(marks, axis=1) * sample.base[:, None])
        tables = families.tie(counts, good).tables
    alone = families.alone(np.zeros(families.layout.n_cells))
    noise = 0.9 * uniform_tables(families.layout) + 0.1 * alone
    # rows that are all alike are all marked
    shares = [min(float(sample.base @ mark) / sample.total, LARGEST_SHARE) for mark in marks]
    return np.column_stack([tables, alone, noise]), np.array([*shares, 0.05, 0.05])


def _near_copies(
    sample: Sample, families: Families, copies: Copies, surprise: Vector
) -> list[NDArray[np.bool_]]:
    """Return the rows near each of the few that appear most in excess of their density."""
    n_copied, share_near, no_chance = NEAR
    radius = max(1.0, share_near * families.layout.n_nodes)
    most = np.argsort(-surprise, kind="stable")[: n_copied * 60]
    left, found = copies.codes[most[surprise[most] >= no_chance]], list[NDArray[np.bool_]]()
    while len(left) and len(found) < n_copied:
        centre = left[0]
        found.append(_distance_from(sample, families, centre) <= radius)
        left = left[np.count_nonzero(left != centre, axis=1) > 2 * radius]
    return found


def _distance_from(sample: Sample, families: Families, row: Codes) -> RowVector:
    """Return at how many nodes each row differs from this one; shape (N,). One pass."""
    differs = (families.state_of_cell != row[families.node_of_cell]).astype(np.float64)
    return sample.rows.project(differs[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class Starts:
    """Groups that race, each alone against a fixed density of all rows.

    Parameters
    ----------
    tables, shares : of each; shapes (M, S) and (S,).
    divided : the rows among each and all others.
    worth : what each gains a row that it holds.
    """

    tables: Vector
    shares: Vector
    divided: DividedApart
    worth: Vector

    @classmethod
    def at(cls, sample: Sample, density: RowVector, tables: Vector, shares: Vector) -> Starts:
        """Divide rows among starts with these tables and shares, worth nothing yet. One pass."""
        offset = np.log1p(-shares) - np.log(shares)
        divided = sample.rows.divide_apart(np.log(tables), offset, density, sample.base)
        return cls(tables, shares, divided, np.zeros(len(shares)))

    def picked(self, which: list[int]) -> Starts:
        """Return some of them."""
        counts, *sums = self.divided.counts[:, which], self.divided.masses, self.divided.log_sums
        divided = DividedApart(counts, *(each[which] for each in sums))
        return Starts(self.tables[:, which], self.shares[which], divided, self.worth[which])


def race(
    sample: Sample, families: Families, density: RowVector, good: Vector, starts: Starts, n: int
) -> Starts:
    """Let every start fit its tables and its share, in n steps; S columns a pass."""
    for _ in range(n):
        tied = families.tie(starts.divided.counts, good)
        shares = np.clip(starts.divided.masses / sample.total, *START_SHARES)
        starts = Starts.at(sample, density, tied.tables, shares)
    brought = starts.divided.log_sums + sample.total * np.log1p(-shares)
    n_free, n_rows = tied.n_parameters + 1, starts.divided.masses  # one more: its share
    gains = find_gain(brought, n_free, n_rows, len(shares))
    return replace(starts, worth=_gain_a_row(sample, gains, n_rows))


def _gain_a_row(sample: Sample, gain: Vector, n_rows: Vector) -> Vector:
    """Return gains by the row: of starts, the one that says most of its rows is the best."""
    is_group = n_rows >= LEAST_ROWS
    return np.where(is_group, gain / (n_rows + HANDFUL * sample.total), -1.0)


def propose_group(
    study: Study,
    sample: Sample,
    families: Families,
    population: Population,
    look: Look,
) -> tuple[Population, Entry] | None:
    """Return the population with the group that brings most, or None if none is worth it."""
    starts, n_tried = find_starts(study, sample, families, population, look)
    untied = np.full(families.layout.n_nodes, -1)
    modes = np.column_stack([population.ties.modes, untied])
    best, most = None, 0.0
    for model in starts:
        new = fit_population(sample, families, model, modes)
        n, n_free = float(new.masses[-1]), float(new.ties.n_parameters[-1])
        brought = new.log_likelihood - population.log_likelihood
        gain = float(find_gain(brought, n_free + 1, n, n_tried))
        brings = float(_gain_a_row(sample, np.array(gain), np.array(n)))
        if brings > most:
            best, most = (new, Entry(gain, brought - gain, n)), brings
    return best


def find_starts(
    study: Study,
    sample: Sample,
    families: Families,
    population: Population,
    look: Look,
) -> tuple[list[RowModel], float]:
    """Return models with one more group each, the best that race, and how many were tried."""
    good, density = population.model.good, population.density
    tables, shares = build_starts(study, sample, families, population, look)
    n_tried = float(len(shares))
    starts = Starts.at(sample, density, tables, shares)
    starts = race(sample, families, density, good, starts, RACE_STEPS)
    # Beside a clean rest only rows that are taken from it explain anything.
    asked = population.shares[:, 0] if look.excess <= 0 else np.ones_like(sample.base)
    kept = _different(sample, density, starts, asked)
    if not kept:
        return [], n_tried
    starts = race(sample, families, density, good, starts.picked(kept), RACE_STEPS)
    found = []
    for j in np.argsort(-starts.worth, kind="stable")[:FINISHED]:
        share = float(starts.shares[j])
        if starts.worth[j] > 0:
            model = replace(population.model, shares=population.model.shares * (1 - share))
            found.append(model.with_component(starts.tables[:, j], share))
    return found, n_tried


def _different(sample: Sample, density: RowVector, starts: Starts, asked: RowVector) -> list[int]:
    """Return the best starts, none of which holds nearly the same rows as a better one.

    Parameters
    ----------
    asked : part of each row that counts; a start holds at least `LEAST_ROWS` of them.
    """
    kept: list[int] = []
    order = np.argsort(-starts.worth, kind="stable")
    order = order[starts.worth[order] > -PROMISING]
    if not len(order):
        return kept
    tables, shares = starts.tables[:, order], starts.shares[order]
    odds = sample.rows.project(np.log(tables), np.log1p(-shares) - np.log(shares))
    belongs = logistic((odds - density[:, None]).astype(np.float32)) * sample.base[:, None]
    alike, n_held = belongs.T @ belongs, asked @ belongs
    size = np.sqrt(alike.diagonal())
    for j in range(len(order)):
        if len(kept) == KEPT:
            break
        is_other = all(alike[j, i] <= 0.9 * size[j] * size[i] for i in kept)
        if is_other and n_held[j] >= LEAST_ROWS:
            kept.append(j)
    return [int(order[j]) for j in kept]
