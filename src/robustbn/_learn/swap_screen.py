"""Which pairs of columns may be swapped: all pairs are looked at on a few rows.

If no row is swapped, tables are those of the rows as they are, the same for all pairs: they are
counted once. A family with one of the two columns sees only that one's state change, so its factor
is looked up for all partners of the column together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.dirichlet import JEFFREYS
from robustbn._core.layout import Codes, Layout
from robustbn._learn.swaps import NEVER, Column, Numbers, list_number_parts

SCREENED = 4_000  # rows on which all pairs are looked at first
SHARES = (0.01, 0.1)  # of swapped rows, that are tried
MOST_ODDS = 40.0  # log-odds: what is larger is sure

Pairs = Sequence[tuple[int, int]]
Flags = NDArray[np.bool_]
Odds = NDArray[np.float32]


def may_gain(odds: NDArray[np.floating]) -> Flags:
    """Return whether swapped rows, of any share, explain rows better by tables of all."""
    times = np.expm1(np.minimum(odds, odds.dtype.type(MOST_ODDS)))
    told = [np.log1p(odds.dtype.type(share) * times).sum(axis=-1) for share in SHARES]
    gains: Flags = np.max(told, axis=0) > 0
    return gains


def weigh_pairs(layout: Layout, codes: Codes, columns: Mapping[int, Column], pairs: Pairs) -> Odds:
    """Return the log-odds of each row to be swapped, if none is, for every pair; shape (P, n).

    They are those of `Act.weigh`, and 0 where a row misses one of the two columns. O(P n) time, and
    memory: a pair and a row take four bytes.
    """
    states = np.asfortranarray(codes, np.int32)
    shown = {
        node: np.isfinite(each.values) & (states[:, node] < layout.cards[node])
        for node, each in columns.items()
    }
    odds = np.zeros((len(pairs), len(codes)), np.float32)
    linked = {frozenset((p, child)) for *parents, child in layout.families for p in parents}
    moves = np.zeros((2, *odds.shape), np.int32)  # by how much the states of both change
    for p, pair in enumerate(pairs):
        both = shown[pair[0]] & shown[pair[1]]
        if not both.any():
            continue
        rows = slice(None) if both.all() else np.flatnonzero(both)
        some = [replace(columns[node], values=columns[node].values[rows]) for node in pair]
        at = [states[rows, node] for node in pair]
        reads = some[0].read(some[1].values), some[1].read(some[0].values)
        for k, read in enumerate(reads):
            moves[k, p, rows] = np.where(read < 0, 0, read - at[k])
        odds[p, rows] += np.where(np.minimum(*reads) < 0, np.float32(NEVER), 0)
        if frozenset(pair) not in linked:
            odds[p, rows] += _weigh_edge(at, moves[:, p, rows], [layout.cards[i] for i in pair])
        if isinstance(some[0], Numbers):
            nobody = np.zeros(len(at[0]))
            odds[p, rows] += sum(part.weigh(nobody) for part in list_number_parts(*some))
    of_node: dict[int, list[tuple[int, int, int]]] = {}  # its pairs: number, place in it, other
    for p, (one, other) in enumerate(pairs):
        of_node.setdefault(one, []).append((p, 0, other))
        of_node.setdefault(other, []).append((p, 1, one))
    for family in layout.families:
        table = Family.of(layout, codes, family)
        for node in (node for node in family if node in of_node):
            numbers, places, others = (np.array(each) for each in zip(*of_node[node], strict=True))
            alone = ~np.isin(others, family)
            odds[numbers[alone]] += table.weigh({node: moves[places[alone], numbers[alone]]})
            for p in numbers[~alone & (places == 0)]:
                odds[p] += table.weigh(dict(zip(pairs[p], moves[:, p], strict=True)))
    return odds


def _weigh_edge(
    states: Sequence[NDArray[np.int32]], moves: NDArray[np.int32], cards: Sequence[int]
) -> Odds:
    """Return what the dependence of two columns says of their values, exchanged and as they are."""
    card = np.int32(cards[1])
    joint = states[0] * card + states[1]
    counts = np.bincount(joint, minlength=prod(cards)).reshape(cards)
    logs = np.log(counts + JEFFREYS)
    for axis in (0, 1):
        logs -= np.log(counts.sum(axis=axis, keepdims=True) + JEFFREYS)
    flat = logs.ravel().astype(np.float32)
    swapped = joint + moves[0] * card + moves[1]
    weighed: Odds = flat.take(swapped, mode="clip") - flat.take(joint, mode="clip")
    return weighed


@dataclass(frozen=True, eq=False)
class Family:
    """The table of a family, of rows as they are."""

    cells: NDArray[np.int32]  # that each row shows, the last one if none; shape (n,)
    is_shown: Flags  # which rows show one; shape (n,)
    logs: Odds  # of the probability of each cell, and 0; shape (cells + 1,)
    as_is: Odds  # of what rows show; shape (n,)
    strides: Mapping[int, np.int32]  # by how much a state more of each column changes the cell

    @classmethod
    def of(cls, layout: Layout, codes: Codes, family: Sequence[int]) -> Family:
        """Count the table of a family."""
        cards = [layout.cards[i] for i in family]
        size = prod(cards)
        cells, is_shown = layout.joint_states(codes, family)
        cells = np.where(is_shown, cells, size)
        counts = np.bincount(cells, minlength=size + 1)[:-1].reshape(-1, cards[-1]) + JEFFREYS
        logs = np.append(np.log(counts / counts.sum(axis=1, keepdims=True)), 0).astype(np.float32)
        strides = {i: np.int32(prod(cards[k + 1 :])) for k, i in enumerate(family)}
        return cls(cells.astype(np.int32), is_shown, logs, logs[cells], strides)

    def weigh(self, moves: Mapping[int, NDArray[np.int32]]) -> Odds:
        """Return the log of the factor of each row with other states, over that as it is."""
        cells = self.cells + sum(move * self.strides[node] for node, move in moves.items())
        if not self.is_shown.all():
            cells = np.where(self.is_shown, cells, self.cells)
        weighed: Odds = self.logs.take(cells, mode="clip") - self.as_is
        return weighed
