"""Supposed causes that write one label for another: states swapped, turned round, off by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import Sides
from robustbn._learn.causes.suspects import Suspect

MOST_STATES_RENAMED = 32  # of a column whose labels may have been swapped
MOST_ROWS_RENAMED = 1500  # of the kind, the surest: enough to tell labels apart
LABEL_SWEEPS = 6  # over all columns: ends a search that goes on changing labels
WORTH = 3.0  # nats, beside log of the number of states, that new labels of a column must bring

Names = NDArray[np.int64]  # of a column: the good state that each state stands for


def find_swapped_labels(sides: Sides) -> list[Suspect]:
    """Return columns whose labels were swapped.

    If y are good rows and every column's labels were permuted, the rows that are seen are as
    likely as the y that they stand for. So labels are found by making the rows as likely as can be
    under the good tables, column by column: each is an assignment problem.
    """
    search = _Search(sides)
    starts = [
        [np.arange(card) for card in sides.cards],
        [(np.arange(card) - 1) % card for card in sides.cards],
        [(np.arange(card) + 1) % card for card in sides.cards],
        [np.arange(card)[::-1] for card in sides.cards],
        [_match_marginals(sides, c) for c in range(sides.n_columns)],
    ]
    names, _ = max((search.improve(start) for start in starts), key=lambda found: found[1])
    columns = [c for c, n in enumerate(names) if (n != np.arange(len(n))).any()]
    if not columns:
        return []
    spoilt = sides.good_codes.copy()
    for c in columns:
        written = np.append(np.argsort(names[c]), sides.cards[c])  # a hole stays one
        spoilt[:, c] = written[spoilt[:, c]]
    nats = sum(float(np.log(np.arange(1, sides.cards[c] + 1)).sum()) for c in columns)
    trial = sides.attempt(spoilt, columns)
    details = {"names": {c: names[c].tolist() for c in columns}}
    return [Suspect("swapped labels", tuple(columns), nats / sides.price, trial, details)]


def _match_marginals(sides: Sides, column: int) -> Names:
    """Return the labels that make a column by itself as good rows' one, if that is much better."""
    card = sides.cards[column]
    if card > MOST_STATES_RENAMED:
        return np.arange(card)
    good = sides.of_good.alone(column) + 0.5
    worth = np.outer(sides.of_kind.alone(column), np.log(good / good.sum()))
    names = assign(worth, np.arange(card))
    gain = worth[np.arange(card), names].sum() - worth.trace()
    return names if gain > WORTH + np.log(max(card, 2)) else np.arange(card)


def assign(worth: Vector, start: Names) -> Names:
    """Return one column for each line, none twice, so that what is picked is worth most.

    Greedy by what a line loses if it does not get its best, then by exchanging two while that is
    better: exact for the few clear states that columns have, and never worse than the start.
    """
    n = len(worth)
    taken, greedy = np.zeros(n, bool), np.full(n, -1)
    for line in np.argsort(-np.ptp(worth, axis=1), kind="stable"):
        free = np.flatnonzero(~taken)
        greedy[line] = free[worth[line, free].argmax()]
        taken[greedy[line]] = True
    every = np.arange(n)
    found = [_exchange(worth, names) for names in (start.copy(), greedy)]
    return max(found, key=lambda names: float(worth[every, names].sum()))


def _exchange(worth: Vector, names: Names) -> Names:
    every = np.arange(len(names))
    for _ in range(len(names) ** 2):
        picked = worth[:, names]  # [line, other] = worth of the other's column for the line
        better = picked + picked.T - picked.diagonal()[:, None] - picked.diagonal()[None, :]
        i, j = np.unravel_index(int(better.argmax()), better.shape)
        if better[i, j] <= 1e-9:
            break
        names[[i, j]] = names[[j, i]]
    return names[every]


class _Search:
    """The kind's rows under good tables, each column with labels of its own."""

    def __init__(self, sides: Sides) -> None:
        cards = np.array(sides.cards)
        surest = np.argsort(-sides.weights, kind="stable")[:MOST_ROWS_RENAMED]
        surest = surest[(sides.codes[surest] < cards).all(axis=1)]
        self._rows = sides.codes[surest].astype(np.int64)
        self._weights = sides.weights[surest]
        self._cards = sides.cards
        self._families = sides.network
        self._tables = [np.log(table) for table in sides.good_tables]
        self._strides = [_strides(sides.cards, family) for family in sides.network]
        self._at: list[list[int]] = [[] for _ in sides.cards]
        for f, family in enumerate(sides.network):
            for column in family:
                self._at[column].append(f)
        self._order = np.argsort(-sides.broken, kind="stable").tolist()

    def improve(self, start: Sequence[Names]) -> tuple[list[Names], float]:
        """Return labels that make the rows likelier than the start does, and their likelihood."""
        names = [n.copy() for n in start]
        states = np.stack([n[self._rows[:, c]] for c, n in enumerate(names)], axis=1)
        cells: list[Names] = [
            states[:, list(steps)] @ np.array(list(steps.values())) for steps in self._strides
        ]
        for _ in range(LABEL_SWEEPS):
            has_changed = False
            for c in self._order:
                card = self._cards[c]
                if not 2 <= card <= MOST_STATES_RENAMED:
                    continue
                worth = self._weigh_states(c, states[:, c], cells)
                better, every = assign(worth, names[c]), np.arange(card)
                gain = worth[every, better].sum() - worth[every, names[c]].sum()
                if gain <= WORTH + np.log(card):
                    continue
                shown = better[self._rows[:, c]]
                for f in self._at[c]:
                    cells[f] = cells[f] + (shown - states[:, c]) * self._strides[f][c]
                states[:, c], names[c], has_changed = shown, better, True
            if not has_changed:
                break
        likelihood = sum(
            float(self._weights @ table[cell])
            for table, cell in zip(self._tables, cells, strict=True)
        )
        return names, likelihood

    def _weigh_states(self, column: int, states: Names, cells: Sequence[Names]) -> Vector:
        """Return the likelihood of a column's rows by what is written and what it stands for."""
        card = self._cards[column]
        worth = np.empty((card, card))
        for state in range(card):
            likely = np.zeros(len(states))
            for f in self._at[column]:
                step = self._strides[f][column]
                likely += self._tables[f][cells[f] + (state - states) * step]
            worth[:, state] = np.bincount(self._rows[:, column], self._weights * likely, card)
        return worth


def _strides(cards: Sequence[int], family: Sequence[int]) -> dict[int, int]:
    steps, size = {}, 1
    for column in reversed(family):
        steps[column] = size
        size *= cards[column]
    return steps
