"""Supposed causes that write one label for another: states swapped, turned round, off by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import CLEAR, Sides, Suspect

MOST_STATES_RENAMED = 32  # of a column whose labels may have been swapped
MOST_ROWS_RENAMED = 1500  # of the kind, the surest: enough to tell labels apart

Names = NDArray[np.int64]  # of a column: the good state that each state stands for


def find_swapped_labels(sides: Sides) -> list[Suspect]:
    """Return columns whose labels were swapped."""
    # If y are good rows and every column's labels were permuted, the rows that are seen are as
    # likely as the y that they stand for. So labels are found by making the rows as likely as can
    # be under the good tables, column by column: each is an assignment problem.
    search = _Search(sides)
    every = [np.arange(card) for card in sides.cards]
    starts = [
        every,
        [np.roll(states, 1) for states in every],
        [np.roll(states, -1) for states in every],
        [states[::-1] for states in every],
        [_match_marginals(sides, c) for c in range(sides.n_columns)],
    ]
    found, _ = max((search.improve(start) for start in starts), key=lambda each: each[1])
    names = {c: n for c, n in enumerate(found) if (n != every[c]).any()}
    if not names:
        return []
    spoilt = sides.good.codes.copy()
    for c, n in names.items():
        written = np.append(np.argsort(n), sides.cards[c])  # a hole stays one
        spoilt[:, c] = written[spoilt[:, c]]
    nats = sum(float(np.log(np.arange(1, sides.cards[c] + 1)).sum()) for c in names)
    details = {"names": {c: n.tolist() for c, n in names.items()}}
    return [sides.suspect("swapped labels", names, nats, spoilt, details)]


def _match_marginals(sides: Sides, column: int) -> Names:
    """Return the labels that make a column by itself as good rows' one, if that is much better."""
    every = np.arange(sides.cards[column])
    if len(every) > MOST_STATES_RENAMED:
        return every
    good = sides.good.count((column,)) + 0.5
    worth = np.outer(sides.kind.count((column,)), np.log(good / good.sum()))
    names = assign(worth, every)
    return names if _is_better(worth, names, every) else every


def _is_better(worth: Vector, names: Names, before: Names) -> bool:
    """Whether new labels of a column bring so much more that they are not chance."""
    every = np.arange(len(worth))
    gain = worth[every, names].sum() - worth[every, before].sum()
    return bool(gain > CLEAR + np.log(max(len(worth), 2)))


def assign(worth: Vector, start: Names) -> Names:
    """Return one column for each line, none twice, worth most: greedily, then by exchanges."""
    every = np.arange(len(worth))
    free, greedy = np.ones(len(worth), bool), np.empty_like(start)
    for line in np.argsort(-np.ptp(worth, axis=1), kind="stable"):
        greedy[line] = np.where(free, worth[line], -np.inf).argmax()
        free[greedy[line]] = False
    found = [_exchange(worth, names) for names in (start, greedy)]
    return max(found, key=lambda names: float(worth[every, names].sum()))


def _exchange(worth: Vector, start: Names) -> Names:
    names = start.copy()
    while True:
        picked = worth[:, names]  # [line, other] = worth of the other's column for the line
        better = picked + picked.T - picked.diagonal()[:, None] - picked.diagonal()[None, :]
        i, j = np.unravel_index(int(better.argmax()), better.shape)
        if better[i, j] <= 1e-9:
            return names
        names[[i, j]] = names[[j, i]]


class _Search:
    """The kind's rows under good tables, each column with labels of its own."""

    def __init__(self, sides: Sides) -> None:
        layout, kind = sides.layout, sides.kind
        surest = np.argsort(-kind.weights, kind="stable")[:MOST_ROWS_RENAMED]
        surest = surest[(kind.codes[surest] < np.array(layout.cards)).all(axis=1)]
        self._rows, self._weights = kind.codes[surest].astype(np.int64), kind.weights[surest]
        self._layout = layout
        self._tables = sides.good.log_tables
        self._steps: list[dict[int, int]] = [{} for _ in layout.cards]  # of a column, by family
        for f, family in enumerate(layout.families):
            for column, step in zip(family, layout.strides[f], strict=True):
                self._steps[column][f] = step
        self._order = [
            c
            for c in np.argsort(-sides.broken, kind="stable").tolist()
            if 2 <= layout.cards[c] <= MOST_STATES_RENAMED
        ]

    def improve(self, start: Sequence[Names]) -> tuple[list[Names], float]:
        """Return labels that make the rows likelier than the start does, and their likelihood."""
        names = list(start)
        states = np.stack([n[self._rows[:, c]] for c, n in enumerate(names)], axis=1)
        families = zip(self._layout.families, self._layout.strides, strict=True)
        cells = [states[:, family] @ np.array(strides) for family, strides in families]
        has_changed = True
        while has_changed:  # each time the rows are clearly likelier
            has_changed = False
            for c in self._order:
                worth = self._weigh_states(c, states[:, c], cells)
                if not _is_better(worth, worth.argmax(axis=1), names[c]):
                    continue  # no labels can be: even those that need not differ are not
                better = assign(worth, names[c])
                if not _is_better(worth, better, names[c]):
                    continue
                shown = better[self._rows[:, c]]
                for f, step in self._steps[c].items():
                    cells[f] = cells[f] + (shown - states[:, c]) * step
                states[:, c], names[c], has_changed = shown, better, True
        tables = zip(self._tables, cells, strict=True)
        return names, sum(float(self._weights @ table[cell]) for table, cell in tables)

    def _weigh_states(self, column: int, states: Names, cells: Sequence[Names]) -> Vector:
        """Return the likelihood of a column's rows by what is written and what it stands for."""
        card = self._layout.cards[column]
        worth = np.empty((card, card))
        for state in range(card):
            likely = np.zeros(len(states))
            for f, step in self._steps[column].items():
                likely += self._tables[f][cells[f] + (state - states) * step]
            worth[:, state] = np.bincount(self._rows[:, column], self._weights * likely, card)
        return worth
