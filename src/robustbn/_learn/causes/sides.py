"""The rows of a kind beside good rows, and what a supposed cause would make of the good ones.

A cause is tried by doing it: good rows are spoilt as it would have spoilt them, counted, and the
tables that follow are compared with those of the kind. Rows are compared in the families of the
network, and in the pairs of columns that depend on each other most among the kind's rows, so that
what the network has no edge for is seen too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._learn.causes.pairs import MOST_STATES_PAIRED, Pairs, strongest_tree

LEAST_HELD = 0.02  # share of spoilt rows that would be seen to be
SPARED = (0.0, 0.03, 0.08, 0.15, 0.25, 0.4)  # shares of good rows that may be among the kind's


@dataclass(frozen=True, eq=False)
class Seen:
    """The cells that the kind's rows show in one family, and how good rows fill them.

    Parameters
    ----------
    counts, totals : weight of the kind's rows on each cell, and on its configuration.
    cells, configurations, states : where they are; each of shape (n,).
    good : log-probability of each cell among good rows.
    """

    counts: Vector
    totals: Vector
    cells: NDArray[np.int64]
    configurations: NDArray[np.int64]
    states: NDArray[np.int64]
    good: Vector


@dataclass(frozen=True, eq=False)
class Trial:
    """What a supposed cause explains.

    Parameters
    ----------
    gain : log-likelihood of the kind's rows that it brings over good tables, by family.
    spared : share of the kind's rows that it left as they were.
    spoilt : good rows, spoilt as it would.
    """

    gain: Vector
    spared: float
    spoilt: Codes

    @property
    def total(self) -> float:
        """The gain of all families together, in nats."""
        return float(self.gain.sum())


@dataclass(frozen=True, eq=False)
class Sides:
    """Rows of a kind, and good rows.

    Parameters
    ----------
    cards : number of states of each column.
    network : families of the network, the child last.
    codes, weights : the kind's rows, and how surely each is one of them.
    good_codes, good_weights : good rows, and the trust in each.
    of_good : how columns go together among them.
    rng : for causes that draw.
    hold : says how surely the model would hold rows for the kind's; None if it does not say.
    """

    cards: tuple[int, ...]
    network: tuple[tuple[int, ...], ...]
    codes: Codes
    weights: Vector
    good_codes: Codes
    good_weights: Vector
    of_good: Pairs
    rng: np.random.Generator
    hold: Callable[[Codes], Vector] | None = None

    @property
    def n_columns(self) -> int:
        """Number of columns, d."""
        return len(self.cards)

    @cached_property
    def n_rows(self) -> float:
        """Weight of the kind's rows."""
        return float(self.weights.sum())

    @cached_property
    def price(self) -> float:
        """Nats that one free number costs."""
        return 0.5 * float(np.log(max(self.n_rows, 2.0)))

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges of the network: (parent, child)."""
        return tuple((p, child) for *parents, child in self.network for p in parents)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of columns that are looked at: all of them, or the edges of a wide network."""
        if sum(self.cards) > MOST_STATES_PAIRED:
            return self.edges
        d = self.n_columns
        return tuple((i, j) for i in range(d) for j in range(i + 1, d))

    @cached_property
    def of_kind(self) -> Pairs:
        """How columns go together among the kind's rows."""
        return Pairs(self.cards, self.codes, self.weights)

    # --- the tables in which rows are compared ----------------------------------------------------

    @cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """The network's families, then the pairs that depend most among the kind's rows."""
        if sum(self.cards) > MOST_STATES_PAIRED:
            return self.network
        return self.network + strongest_tree(self.of_kind, self.price)

    @cached_property
    def _by_column(self) -> tuple[frozenset[int], ...]:
        found: list[set[int]] = [set() for _ in self.cards]
        for f, family in enumerate(self.families):
            for column in family:
                found[column].add(f)
        return tuple(frozenset(each) for each in found)

    def _cells(self, codes: Codes, family: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the cell of a family that each row touches, and which rows touch one."""
        cells = np.zeros(len(codes), np.int64)
        is_there = np.ones(len(codes), bool)
        for column in family:
            values = codes[:, column]
            is_there &= values < self.cards[column]
            cells *= self.cards[column]
            cells += values
        return cells, is_there

    def _count(self, codes: Codes, weights: Vector, family: Sequence[int]) -> Vector:
        size = int(np.prod([self.cards[c] for c in family]))
        cells, is_there = self._cells(codes, family)
        if not is_there.all():
            cells, weights = cells[is_there], weights[is_there]
        return np.bincount(cells, weights, size).astype(np.float64, copy=False)

    @cached_property
    def _seen(self) -> tuple[Seen, ...]:
        found = []
        for family, good in zip(self.families, self._good, strict=True):
            seen = self._find_seen(family, self.codes, self.weights)
            table = self._tabulate(seen, good, self.cards[family[-1]])
            found.append(replace(seen, good=np.log(table)))
        return tuple(found)

    def _find_seen(self, family: Sequence[int], codes: Codes, weights: Vector) -> Seen:
        counts, card = self._count(codes, weights, family), self.cards[family[-1]]
        cells = np.flatnonzero(counts)
        of = cells // card
        totals = counts.reshape(-1, card).sum(axis=1)[of]
        return Seen(counts[cells], totals, cells, of, cells % card, np.empty(0))

    @cached_property
    def _good(self) -> tuple[Vector, ...]:
        return tuple(
            self._count(self.good_codes, self.good_weights, family) for family in self.families
        )

    @cached_property
    def good_tables(self) -> tuple[Vector, ...]:
        """The tables of the network's families among good rows, none of them zero."""
        return self._fill(self._good[: len(self.network)])

    def _fill(self, counts: Iterable[Vector]) -> tuple[Vector, ...]:
        tables = []
        for family, each in zip(self.network, counts, strict=True):
            table = each.reshape(-1, self.cards[family[-1]])
            marginal = table.sum(axis=0) + 0.5
            filled = table + marginal / marginal.sum()
            tables.append((filled / filled.sum(axis=1, keepdims=True)).ravel())
        return tuple(tables)

    def good_likelihood(self, codes: Codes) -> Vector:
        """Return the log-probability of rows under the good tables; a hole says nothing."""
        return self._likelihood(codes, self.good_tables)

    def own_likelihood(self, codes: Codes) -> Vector:
        """Return the log-probability of rows under tables of the kind's own."""
        counts = (self._count(self.codes, self.weights, family) for family in self.network)
        return self._likelihood(codes, self._fill(counts))

    def _likelihood(self, codes: Codes, tables: Sequence[Vector]) -> Vector:
        likely = np.zeros(len(codes))
        for family, table in zip(self.network, tables, strict=True):
            cells, is_there = self._cells(codes, family)
            likely[is_there] += np.log(table[cells[is_there]])
        return likely

    @staticmethod
    def _tabulate(seen: Seen, counts: Vector, card: int) -> Vector:
        """Return the probability of the cells that are seen; a configuration leans on all rows."""
        table = counts.reshape(-1, card)
        totals, marginal = table.sum(axis=1), table.sum(axis=0) + 0.5
        marginal = marginal / marginal.sum()
        filled: Vector = counts[seen.cells] + marginal[seen.states]
        tables: Vector = filled / (totals[seen.configurations] + 1)
        return tables

    # --- what there is to explain, and what is explained ------------------------------------------

    @cached_property
    def own(self) -> Vector:
        """What tables of its own bring to the kind's rows over good tables, by family: nats."""
        gains = [s.counts @ (np.log(s.counts / s.totals) - s.good) for s in self._seen]
        return np.array(gains, np.float64)

    @cached_property
    def n_free(self) -> Vector:
        """Free numbers of such tables that the rows fill, by family."""
        free = [len(s.cells) - len(np.unique(s.configurations)) for s in self._seen]
        return np.array(free, np.float64)

    @cached_property
    def unexplained(self) -> float:
        """Nats between the kind and good rows: what its own tables bring, less sampling noise."""
        return float((self.own - np.maximum(0.5 * self.n_free, self.chance)).sum())

    @cached_property
    def chance(self) -> Vector:
        """What their own tables would bring to as many good rows over the other good ones: nats.

        Half a nat a free number where cells are well filled, and far more where they are not.
        """
        n = len(self.good_codes)
        size = min(round(self.n_rows), n // 3)
        if not size:
            return np.zeros(len(self.families))
        picked = spread(np.arange(n), size)
        some, weights = np.asfortranarray(self.good_codes[picked]), self.good_weights[picked]
        gains = []
        for family, all_good in zip(self.families, self._good, strict=True):
            seen = self._find_seen(family, some, weights)
            others = all_good.copy()
            others[seen.cells] = np.maximum(others[seen.cells] - seen.counts, 0)
            table = self._tabulate(seen, others, self.cards[family[-1]])
            gains.append(seen.counts @ (np.log(seen.counts / seen.totals) - np.log(table)))
        scale = self.n_rows / float(weights.sum())
        return np.array(gains, np.float64) * scale

    @cached_property
    def paid(self) -> Vector:
        """What is left of `own` once each free number is paid for, by family."""
        return self.own - self.price * self.n_free

    @cached_property
    def broken(self) -> Vector:
        """How far each column is from good, alone and with others: nats, paid for; shape (d,)."""
        paid = self.paid
        return np.array([max(paid[f] for f in of) if of else 0.0 for of in self._by_column])

    def attempt(self, spoilt: Codes, changed: Iterable[int]) -> Trial:
        """Return what is explained if good rows were spoilt like this.

        Parameters
        ----------
        spoilt : the good rows, spoilt.
        changed : the columns in which they differ from the good ones.
        """
        touched = sorted(set().union(*(self._by_column[c] for c in changed)))
        gain = np.zeros((len(SPARED), len(self.families)))
        for f in touched:
            seen, card = self._seen[f], self.cards[self.families[f][-1]]
            counts = self._count(spoilt, self.good_weights, self.families[f])
            for s, spared in enumerate(SPARED):
                mixed = (1 - spared) * counts + spared * self._good[f]
                gain[s, f] = seen.counts @ (np.log(self._tabulate(seen, mixed, card)) - seen.good)
        best = int(gain.sum(axis=1).argmax())
        return Trial(gain[best], SPARED[best], spoilt)

    def attempt_held(self, spoilt: Codes) -> float:
        """Return the nats explained by those of the spoilt rows that would be held for the kind's.

        Rows that were spoilt and do not show it are not among the kind's, and good rows that seem
        spoilt are: both change tables that the cause has not touched.
        """
        if self.hold is None:
            return 0.0
        held, held_good = (
            self.good_weights * self.hold(codes) for codes in (spoilt, self.good_codes)
        )
        if held.sum() < LEAST_HELD * self.good_weights.sum():
            return 0.0
        held_good *= held.sum() / max(float(held_good.sum()), 1e-9)
        gain = np.zeros(len(SPARED))
        for seen, family in zip(self._seen, self.families, strict=True):
            card = self.cards[family[-1]]
            counts = self._count(spoilt, held, family)
            good = self._count(self.good_codes, held_good, family)
            for s, spared in enumerate(SPARED):
                mixed = (1 - spared) * counts + spared * good
                gain[s] += seen.counts @ (np.log(self._tabulate(seen, mixed, card)) - seen.good)
        return float(gain.max())

    def gain_at(self, trial: Trial, column: int) -> float:
        """Return what a trial brings to the families whose child a column is."""
        return sum(
            float(trial.gain[f]) for f in self._by_column[column] if self.families[f][-1] == column
        )


def spread(places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return at most so many of some places, evenly."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.int64)]
