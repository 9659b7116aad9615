"""The search for what explains that rows differ from rows of the network.

Every explanation proposes itself and says what it gains (`gain.py`); the largest gain enters, all
that is there is fitted again together, and what no longer pays leaves. The search ends when nothing
pays; where the rest looks like rows of the network, only what takes rows from it still enters. It
does not ask who is bad: `judge.py` does.

A new explanation is a class with `propose`, and a line in `EXPLANATIONS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from robustbn._core.config import CEILING
from robustbn._core.numbers import count
from robustbn._core.protocols import Vector
from robustbn._core.result import Round
from robustbn._core.row_model import NO_REPEATS, Repeats, RowModel
from robustbn._learn.edges import find_edges
from robustbn._learn.groups import (
    JOINT_STEPS,
    LEAST_ROWS,
    RACE_STEPS,
    Entry,
    Population,
    find_missed,
    fit_population,
    propose_group,
)
from robustbn._learn.look import Look, look_at
from robustbn._learn.study import Sample, Study
from robustbn._learn.ties import Families

MOST_GROUPS = 8  # natural variety goes on for ever
LEAST_MAIN = 0.3  # share of rows: a smaller main class is no main class
EDGE_NODES = 8  # nodes that groups or copies break most: an edge is sought at each
EDGE_ROWS = 20_000  # rows in which it is sought
LEAST_GAIN = 10.0  # nats: what edges and others gain is known up to about this
CLEAR_LEAD = 0.2  # log of the ratio of two gains: the larger one is larger for sure
HAIR = 0.03  # eigenvalue in excess: drawn rows differ by 0.005 to 0.02, misfitting tables have 0.1
COPIES_STEPS = 20  # of holding copies to what is expected, which changes what is expected
COPIES_MOVED = 1e-3  # share of rows: copies that move less have settled


@dataclass(frozen=True, eq=False)
class State:
    """What explains the rows so far.

    Parameters
    ----------
    study, n_rows : the rows, and how many of them are looked at.
    sample : those, copies held to what is expected.
    population : the groups.
    entries : what each group brought when it entered.
    repeats, copied : rows that appear too often, and what they brought when they entered.
    look : at the rest, and the looks before.
    rounds : what happened.
    ended_at : when the last of them ended, in seconds.
    """

    study: Study
    n_rows: int
    sample: Sample
    population: Population
    look: Look
    entries: tuple[Entry, ...] = ()
    repeats: Repeats = NO_REPEATS
    copied: Entry | None = None
    rounds: tuple[Round, ...] = ()
    ended_at: float = 0.0

    @cached_property
    def families(self) -> Families:
        """What is needed to tie tables."""
        return Families(self.sample.rows.layout, self.sample.prior, self.sample.plain_counts)

    @property
    def times(self) -> float:
        """How many times as many rows there are as are looked at."""
        return self.study.n_rows / self.sample.rows.n_rows

    @property
    def exactness(self) -> float:
        """How surely the rest looks like rows of the network, from 0 to 1.

        It falls with the excess, for drawn rows differ from draw to draw: nothing hangs on a hair.
        """
        return float(np.exp(-max(self.look.excess, 0.0) / HAIR))

    @property
    def limit(self) -> float:
        """The top of rows that look more like those of the network than not."""
        return self.look.limit + HAIR * float(np.log(2))

    @property
    def is_exact(self) -> bool:
        """Whether the rest looks more like rows of the network than not."""
        return self.look.top <= self.limit

    @property
    def entered(self) -> list[Entry]:
        """What groups and copies brought."""
        return [*self.entries, *([] if self.copied is None else [self.copied])]

    @property
    def is_explained(self) -> bool:
        """Whether anything has entered."""
        return bool(self.entered)

    def look_again(self, action: str) -> State:
        """Return the same with a look at the rest, which is told."""
        weights = self.sample.base * self.population.shares[:, 0]
        look, now = look_at(self.sample.rows, weights, self.study.draw), time.perf_counter()
        return replace(self, look=look).note(action, now - self.ended_at)

    def note(self, action: str, wall_s: float, removed: float = 0.0, n_kinds: int = 0) -> State:
        """Return the same with a round noted, which is told."""
        done = Round(
            number=len(self.rounds),
            action=action,
            eigenvalues=tuple(float(v) for v in self.look.spectrum.values[:4]),
            threshold=self.look.limit,
            removed=removed,
            n_kinds=n_kinds,
            wall_s=wall_s,
        )
        self.study.tell(done)
        return replace(self, rounds=(*self.rounds, done), ended_at=time.perf_counter())


@dataclass(frozen=True, eq=False)
class Candidate:
    """An explanation that could enter.

    Parameters
    ----------
    gain : in nats, among all rows, of which some are looked at.
    enter : returns the state with it.
    """

    gain: float
    enter: Callable[[], State]


class Explanation(Protocol):
    """A way to explain that rows differ from rows of the network."""

    def propose(self, state: State) -> Candidate | None:
        """Return the best of its kind; None if none is worth its description."""


class Groups:
    """Some rows have tables of their own."""

    def propose(self, state: State) -> Candidate | None:
        """Return one more group."""
        model = state.population.model
        is_clean = state.look.excess <= 0
        is_done = is_clean and not state.is_explained
        if is_done or model.n_others == MOST_GROUPS or model.shares.sum() > 1 - LEAST_MAIN:
            return None
        found = propose_group(
            state.study, state.sample, state.families, state.population, state.look
        )
        if found is None:
            return None
        population, entry = found
        if is_clean and _take_from_main(state, population) < LEAST_ROWS:
            return None  # it would split groups, and say nothing more of the rest

        def enter() -> State:
            counts = state.sample.rows.count(state.sample.base * population.shares[:, -1])
            told = counts * population.model.evidence[:, -1]
            entries = (*state.entries, replace(entry, lead=_find_lead(state, entry, told)))
            more = replace(state, population=population, entries=entries)
            more = drop_unpaid(hold_copies(more))
            n_groups = more.population.model.n_others
            return more.look_again(f"described rows by {count(n_groups, 'group')}")

        return Candidate(entry.scale(state.times).gain, enter)


class CopiedRows:
    """Some rows come again."""

    def propose(self, state: State) -> Candidate | None:
        """Return all rows that come too often, unless copies have entered already."""
        if len(state.repeats.factors):
            return None
        copies, total = state.study.copies, state.study.total
        model = state.population.model
        repeats = copies.hold_to(model, total)
        if not len(repeats.factors) or copies.find_surplus(repeats, total) > CEILING:
            return None
        if state.look.excess <= 0 and copies.find_surplus_of_main(repeats, model) < LEAST_ROWS:
            return None  # they are of groups, or too few to describe
        held = hold_copies(replace(state, repeats=repeats), RACE_STEPS)
        gain = _find_gain_of_copies(state, held)

        def enter() -> State:
            surplus = (state.sample.base - held.sample.base) * state.population.shares[:, 0]
            counts = state.sample.rows.count(surplus)
            told = counts * np.log(state.families.own(counts) / held.population.model.good)
            entry = Entry(gain / state.times, 0.0, float(surplus.sum()))
            entry = replace(entry, lead=_find_lead(state, entry, told, 1))
            return hold_copies(replace(held, copied=entry)).look_again("held copies")

        return Candidate(gain, enter)


def _find_gain_of_copies(state: State, held: State) -> float:
    """Return what copies gain: their own numbers, and what the tables of the others say of those.

    All rows were a draw from one density; now the others are, and copies are what is left.
    """
    copies, total = state.study.copies, state.study.total
    of_copies = copies.find_gain(held.repeats, state.population.model, total)
    main = np.log1p(-copies.find_surplus(held.repeats, total))
    others = np.where(held.sample.base < state.sample.base, 0, state.sample.base)
    rest = float(others @ (held.population.density + main - state.population.density))
    return of_copies + rest * state.times


def _take_from_main(state: State, population: Population) -> float:
    """Return the weight of the rows of the main class that the last group takes."""
    main = state.sample.base * state.population.shares[:, 0]
    return float(main @ population.shares[:, -1])


def _find_lead(state: State, entry: Entry, told: Vector, most: int = EDGE_NODES) -> float:
    """Return the log of what edges would gain over what an explanation does, or a larger one.

    Parameters
    ----------
    told : nats that the explanation brings on each cell; shape (M,).
    most : number of edges, each to another child.
    """
    larger = max((e.lead for e in state.entered if e.gain >= entry.gain), default=-np.inf)
    if larger >= CLEAR_LEAD:
        return larger
    sample = state.sample
    told = state.families.sum_by_node(told)
    nodes = np.argsort(-told, kind="stable")[:EDGE_NODES].tolist()
    some = slice(None, None, -(-sample.rows.n_rows // EDGE_ROWS))
    weights = (sample.base * state.population.shares[:, 0])[some].astype(np.float64)
    q = state.population.model.good
    gains = find_edges(sample.rows.layout, q, sample.codes[some], weights, nodes)
    of_edges = sum(gains[:most]) * sample.rows.n_rows / len(weights)
    lead = np.log((of_edges + LEAST_GAIN) / (max(entry.gain, 0.0) + LEAST_GAIN))
    return max(float(lead), larger)


EXPLANATIONS: tuple[Explanation, ...] = (Groups(), CopiedRows())


def hold_copies(state: State, n_steps: int = JOINT_STEPS) -> State:
    """Return the state with copies, if they have entered, held to what is now expected.

    Parameters
    ----------
    n_steps : of fitting all groups each time; a proposal needs few.
    """
    study, copies, total, surplus = state.study, state.study.copies, state.study.total, 0.0
    for _ in range(COPIES_STEPS if len(state.repeats.factors) else 0):
        state = replace(state, sample=study.choose(state.n_rows, state.repeats))
        before, model = state.population, state.population.model
        modes = before.ties.modes
        population = fit_population(state.sample, state.families, model, modes, n_steps)
        left = total * (1 - copies.find_surplus(state.repeats, total))
        repeats = copies.hold_to(population.model, left)
        more = copies.find_surplus(repeats, total)
        if more > CEILING:
            break  # more than bad rows can be: the tables do not say how often rows may appear
        state = replace(state, population=population, repeats=repeats)
        moved, surplus = abs(more - surplus), more
        if moved < COPIES_MOVED:
            break
    return state


def drop_unpaid(state: State) -> State:
    """Return the state without groups that the others have made superfluous."""
    model, n = state.population.model, state.population.masses[1:]
    for k in range(model.n_others - 1):
        cost = state.entries[k].cost
        missed = find_missed(state.sample, state.population, [k], np.nextafter(cost, np.inf))
        if missed <= cost or n[k] < LEAST_ROWS:
            modes = np.delete(state.population.ties.modes, k, axis=1)
            fewer = model.without_component(k)
            population = fit_population(state.sample, state.families, fewer, modes)
            entries = state.entries[:k] + state.entries[k + 1 :]
            return drop_unpaid(replace(state, population=population, entries=entries))
    return state


def begin(study: Study, n_rows: int) -> State:
    """Look at some of the rows as they are."""
    started_at = time.perf_counter()
    sample = study.choose(n_rows)
    families = Families(sample.rows.layout, sample.prior, sample.plain_counts)
    untied = np.empty((sample.rows.layout.n_nodes, 0), np.int64)
    model = RowModel.of_good_rows(families.prior)
    population = fit_population(sample, families, model, untied, 1)
    look = look_at(sample.rows, sample.base, study.draw)
    state = State(study, n_rows, sample, population, look, ended_at=started_at)
    return state.note("looked at the rows", time.perf_counter() - started_at)


def look_at_more(state: State, n_rows: int) -> State:
    """Return the state on more of the rows: what was found among fewer is fitted to them."""
    if not state.is_explained:
        return begin(state.study, n_rows)
    sample, times = state.study.choose(n_rows, state.repeats), n_rows / state.n_rows
    state = replace(
        state,
        n_rows=n_rows,
        sample=sample,
        entries=tuple(entry.scale(times) for entry in state.entries),
        copied=state.copied and state.copied.scale(times),
    )
    model, modes = state.population.model, state.population.ties.modes
    population = fit_population(sample, state.families, model, modes)
    state = drop_unpaid(hold_copies(replace(state, population=population)))
    return state.look_again("looked at more rows")


def search(
    state: State, explanations: tuple[Explanation, ...] = EXPLANATIONS, *, is_first: bool = False
) -> State:
    """Let explanations enter, the largest gain first, until nothing pays.

    Parameters
    ----------
    is_first : end as soon as the rest looks like rows of the network; more rows follow.
    """
    while not (is_first and state.look.excess <= 0):
        proposed = (each.propose(state) for each in explanations)
        candidates = [each for each in proposed if each is not None and each.gain > 0]
        if not candidates:
            break
        state = max(candidates, key=lambda each: each.gain).enter()
    return state
