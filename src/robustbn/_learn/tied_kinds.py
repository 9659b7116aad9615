"""Find what rows there are, without believing that the good ones are a network's.

Components are proposed one after another, each with tied tables (`ties.py`), until the main class
looks like rows drawn from its tables, or nothing more is worth its description. A round lets many
starts race, all in the same passes, against the density found so far; the best are fitted together
with all components. Which of them are bad rows and which are classes of the good population is
judged afterwards (`judgement.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import uniform_tables
from robustbn._core.layout import Codes
from robustbn._core.protocols import DividedApart, Rows, RowVector, Vector
from robustbn._core.row_model import LARGEST_SHARE, RowModel, log_sum_exp, logistic, softplus
from robustbn._learn.population import LEAST_DRAWN
from robustbn._learn.proposals import Sample
from robustbn._learn.spectrum import RowSpectrum, clean_top, find_spectrum
from robustbn._learn.ties import AS_GOOD, Families, Tied

LEAST_START = 1e-5  # share of the rows that a start may shrink to


@dataclass(frozen=True, eq=False)
class Population:
    """Components with tied tables, and what they say of the rows they were fitted to.

    Parameters
    ----------
    model : the main class and the other components, all of them called bad until they are judged.
    ties : of the components beside the main class.
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
        """Log-odds of each component against the main class; shape (N, K). One pass."""
        log_odds: RowVector = self.model.log_odds_by_component(self.rows).astype(np.float64)
        return log_odds

    @cached_property
    def shares(self) -> RowVector:
        """Probability of each row to be of each component, the main class first; (N, 1 + K)."""
        return share_out(self.log_odds)


@dataclass(frozen=True)
class Gain:
    """What a component brought when it entered, in nats a row that it holds.

    Parameters
    ----------
    evidence : log-likelihood, after paying for its parameters.
    cost : what they cost.
    """

    evidence: float
    cost: float


@dataclass(frozen=True, eq=False)
class Search:
    """What was found.

    Parameters
    ----------
    population : the components.
    gains : of each component when it entered.
    tops, limits : top eigenvalue of the main class after each component, from none on, and what
        rows drawn from its tables have.
    is_exhausted : whether the search ended because nothing more was worth its description.
    """

    population: Population
    gains: tuple[Gain, ...]
    tops: tuple[float, ...]
    limits: tuple[float, ...]
    is_exhausted: bool

    @property
    def excesses(self) -> list[float]:
        """By how much the main class varied more than drawn rows, after each component."""
        return [top - limit for top, limit in zip(self.tops, self.limits, strict=True)]


# --- fitting --------------------------------------------------------------------------------------


def fit_population(
    sample: Sample,
    families: Families,
    model: RowModel,
    modes: NDArray[np.int64],
    max_steps: int,
) -> Population:
    """Fit all components together by expectation-maximisation.

    The main class also learns from the rows of other components in the families where those are as
    good. Ties are chosen anew in the first steps, then kept.

    Parameters
    ----------
    model, modes : where to start; modes of -1 are not chosen yet.
    """
    tuning, before = sample.tuning, -np.inf
    ties = Tied(model.others, modes, np.zeros(model.n_others))
    for step in range(max_steps + 1):
        divided = model.divide(sample.rows, sample.base)
        likelihood = (
            divided.log_sum
            + sample.total * model.log_main_share
            + float(sample.plain_counts @ np.log(model.good))
        )
        gained = likelihood - before
        if step == max_steps or (step and gained < tuning.kind_tolerance * sample.total):
            break
        before = likelihood
        kept = ties.modes if step >= tuning.tied_settled else None
        model, ties = _refit(families, model, divided.counts, divided.masses, kept)
    return Population(model, ties, divided.masses, likelihood, sample.rows)


def share_out(log_odds: RowVector) -> RowVector:
    """Return the probability of each row to be of each component, the main class first."""
    shares = np.ones((len(log_odds), 1 + log_odds.shape[1]), np.float32)
    if log_odds.shape[1]:
        total = log_sum_exp(log_odds)
        main = logistic(-total)
        shares[:, 0] = main
        shares[:, 1:] = np.exp(log_odds - total[:, None]) * (1 - main)[:, None]
    return shares


def _refit(
    families: Families,
    model: RowModel,
    counts: Vector,
    mass: Vector,
    modes: NDArray[np.int64] | None,
) -> tuple[RowModel, Tied]:
    """Return the model of counts by component, and its ties; by default they are chosen anew."""
    of_kinds = counts[:, 1:]
    ties = families.tie(of_kinds, families.own(counts[:, 0]), modes)
    is_as_good = (ties.modes == AS_GOOD)[families.node_of_cell]
    good = families.own(counts[:, 0] + (of_kinds * is_as_good).sum(axis=1))
    ties = replace(ties, tables=np.where(is_as_good, good[:, None], ties.tables))
    return replace(model, good=good, others=ties.tables, shares=mass[1:] / mass.sum()), ties


# --- starts ---------------------------------------------------------------------------------------


def log_density(sample: Sample, population: Population) -> RowVector:
    """Return the log-probability of each row under all components; shape (N,). One pass."""
    model = population.model
    main = sample.rows.project(np.log(model.good)[:, None])[:, 0].astype(np.float64)
    main += model.log_main_share
    if model.n_others:
        main += softplus(log_sum_exp(population.log_odds))
    return main


def build_starts(
    sample: Sample,
    families: Families,
    population: Population,
    density: RowVector,
    spectrum: RowSpectrum,
) -> tuple[Vector, Vector]:
    """Return tables to start from, shape (M, S), and the share of rows of each.

    Rows that are unlikely so far; rows at either end of the directions in excess; rows near one
    that appears too often; and two tables that need no rows: no edges, and nothing but noise.
    """
    tuning, good = sample.tuning, population.model.good
    marks = [density <= np.quantile(density, p) for p in (0.02, 0.06, 0.2)]
    along = sample.rows.project(spectrum.table[:, : tuning.tied_directions])
    for y in along.T:
        for side in (y, -y):
            marks += [side >= np.quantile(side, p) for p in (0.97, 0.88)]
    marks += near_copies(sample, families, density)
    marks = [mark for mark in marks if mark.sum() >= tuning.kind_least_rows]
    tables = np.empty((families.layout.n_cells, 0))
    if marks:  # few rows may leave none
        counts = sample.rows.count(np.stack(marks, axis=1) * sample.base[:, None])
        tables = families.tie(counts, good).tables
    alone = families.alone(np.zeros(families.layout.n_cells))
    noise = 0.9 * uniform_tables(families.layout) + 0.1 * alone
    # rows that are all alike are all marked
    shares = [min(float(sample.base @ mark) / sample.total, LARGEST_SHARE) for mark in marks]
    return np.column_stack([tables, alone, noise]), np.array([*shares, 0.05, 0.05])


def near_copies(sample: Sample, families: Families, density: RowVector) -> list[NDArray[np.bool_]]:
    """Return the rows near each of the few that appear most in excess of their density."""
    if sample.codes is None:
        return []
    tuning, prints = sample.tuning, sample.rows.fingerprints()
    _, first, seen = np.unique(prints, return_index=True, return_counts=True)
    expected = np.maximum(sample.rows.n_rows * np.exp(density[first]), 1e-12)
    surprise = seen * np.log(seen / expected) - seen + expected
    least = max(tuning.copies_seen, sample.most_copies + 1)
    surprise[(seen < least) | (seen <= expected)] = 0
    found: list[NDArray[np.bool_]] = []
    taken = np.zeros(sample.rows.n_rows, bool)
    radius = max(1.0, tuning.tied_radius * families.layout.n_nodes)
    for i in np.argsort(-surprise)[: tuning.tied_copies * 60]:
        if surprise[i] < tuning.tied_surprise or len(found) == tuning.tied_copies:
            break
        if taken[first[i]]:
            continue
        distance = _distance_from(sample, families, sample.codes[first[i]])
        found.append(distance <= radius)
        taken |= distance <= 2 * radius
    return found


def _distance_from(sample: Sample, families: Families, row: Codes) -> RowVector:
    """Return at how many nodes each row differs from this one; shape (N,). One pass."""
    differs = (families.state_of_cell != row[families.node_of_cell]).astype(np.float64)
    return sample.rows.project(differs[:, None])[:, 0]


def race(
    sample: Sample,
    families: Families,
    density: RowVector,
    good: Vector,
    tables: Vector,
    shares: Vector,
    n_steps: int,
) -> tuple[Vector, Vector, Vector]:
    """Let every start fit its tables and its share alone against a fixed density; S columns a pass.

    Returns tables, shares, and what each brings a row (after paying for its parameters; a handful
    of odd rows must not win, so that 1 % of all rows is added to its own).
    """
    tuning, total = sample.tuning, sample.total

    def divide() -> DividedApart:
        offset = np.log1p(-shares) - np.log(shares)
        return sample.rows.divide_apart(np.log(tables), offset, density, sample.base)

    divided = divide()
    for _ in range(n_steps):
        tied = families.tie(divided.counts, good)
        tables, costs = tied.tables, tied.n_parameters
        shares = np.clip(divided.masses / total, LEAST_START, 0.6)
        divided = divide()
    n = np.maximum(divided.masses, 2.0)
    gain = divided.log_sums + total * np.log1p(-shares) - 0.5 * np.log(n) * costs
    worth = np.where(n >= tuning.kind_least_rows, gain / (n + tuning.tied_handful * total), -1.0)
    return tables, shares, worth


# --- the search -----------------------------------------------------------------------------------


def search_components(sample: Sample, families: Families) -> Iterator[Search]:
    """Yield what is known after every component, the last of them the result."""
    tuning = sample.tuning
    model = RowModel.of_good_rows(families.prior)
    untied = np.empty((families.layout.n_nodes, 0), np.int64)
    population = fit_population(sample, families, model, untied, 1)
    spectrum, limit = look_at_main(sample, population)
    found = Search(population, (), (spectrum.top,), (limit,), True)
    while found.excesses[-1] > 0:
        is_cut = len(found.gains) == tuning.tied_most
        if is_cut or found.population.shares[:, 0].mean() < tuning.tied_main:
            yield replace(found, is_exhausted=False)
            return
        more = _propose(sample, families, found.population, spectrum)
        if more is None:
            break
        population, gain = more
        spectrum, limit = look_at_main(sample, population)
        yield found
        found = Search(
            population,
            (*found.gains, gain),
            (*found.tops, spectrum.top),
            (*found.limits, limit),
            True,
        )
    yield found


def look_at_main(sample: Sample, population: Population) -> tuple[RowSpectrum, float]:
    """Look at the rows of the main class, and at rows drawn from its tables.

    Returns the spectrum, and what its top may be. None are drawn when it is obviously too large.
    """
    tuning = sample.tuning
    weights = sample.base * population.shares[:, 0]
    spectrum = find_spectrum(sample.rows, weights, tuning)
    if spectrum.top > tuning.spectrum_obvious:
        return spectrum, 1.0
    n = max(float(weights.sum(dtype=np.float64)), LEAST_DRAWN)
    drawn = sample.draw([(spectrum.q, int(min(n, tuning.sample_drawn)))])
    excess = tuning.tied_noise * (clean_top(drawn, n, tuning) - 1)
    return spectrum, 1 + excess + tuning.spectrum_allowance


def _propose(
    sample: Sample, families: Families, population: Population, spectrum: RowSpectrum
) -> tuple[Population, Gain] | None:
    """Return the population with the component that brings most, or None if none is worth it."""
    tuning, good = sample.tuning, population.model.good
    density = log_density(sample, population)
    tables, shares = build_starts(sample, families, population, density, spectrum)
    tables, shares, worth = race(
        sample, families, density, good, tables, shares, tuning.tied_first_steps
    )
    kept = _different(sample, density, tables, shares, worth)
    if not kept:
        return None
    tables, shares, worth = race(
        sample, families, density, good, tables[:, kept], shares[kept], tuning.tied_more_steps
    )
    best, most = None, 0.0
    for j in np.argsort(-worth)[: tuning.tied_finished]:
        if worth[j] <= 0:
            continue
        model = replace(population.model, shares=population.model.shares * (1 - shares[j]))
        model = model.with_component(tables[:, j], float(shares[j]))
        modes = np.column_stack([population.ties.modes, np.full(families.layout.n_nodes, -1)])
        new = fit_population(sample, families, model, modes, tuning.tied_joint_steps)
        n = float(new.masses[-1])
        cost = 0.5 * float(np.log(max(n, 2.0)) * new.ties.n_parameters[-1])
        gain = new.log_likelihood - population.log_likelihood - cost
        brings = gain / (n + tuning.tied_handful * sample.total)
        if n >= tuning.kind_least_rows and gain > 0 and brings > most:
            best, most = (new, Gain(gain / n, cost / n)), brings
    return best


def _different(
    sample: Sample, density: RowVector, tables: Vector, shares: Vector, worth: Vector
) -> list[int]:
    """Return the best starts, none of which holds nearly the same rows as a better one."""
    kept: list[int] = []
    order = [j for j in np.argsort(-worth).tolist() if worth[j] > 0]
    if not order:
        return kept
    offset = (np.log1p(-shares) - np.log(shares))[order]
    odds = sample.rows.project(np.log(tables[:, order]), offset) - density[:, None]
    belongs = logistic(odds.astype(np.float32)) * sample.base[:, None]
    alike = belongs.T @ belongs
    size = np.sqrt(alike.diagonal())
    for j in range(len(order)):
        if len(kept) == sample.tuning.tied_kept:
            break
        if all(alike[j, i] <= 0.9 * size[j] * size[i] for i in kept):
            kept.append(j)
    return [order[j] for j in kept]
