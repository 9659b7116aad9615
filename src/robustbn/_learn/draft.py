"""A first structure of a table: a tree, then single edges added, removed and reversed.

Each set of parents is worth the log-likelihood that it brings less the price of its parameters, by
`find_gain`. Where no value is missing, the sum over all nodes is the Bayesian information criterion
(BIC) of the structure, but for a constant. Edges say which columns depend on each other. They do
not say what causes what.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, take_rows
from robustbn._learn.gain import find_gain
from robustbn._rows.families import CountedBeside, FamilyCounts

Edge = tuple[int, int]  # parent and child
Structure = tuple[tuple[int, ...], ...]  # parents of each node, increasing
Gains = NDArray[np.float64]

MOST_TABLE = 2**20  # cells of a table that an edge may need
SCREENED = 10_000  # rows on which all structures are tried; all rows decide about the best one
SHAKES = 24  # times that the best structure is shaken, to leave a local optimum; see `_shake`
SHAKES_OF_SAMPLE = 4  # the same on a sample, whose best structure is not quite that of all rows
DROPPED, TURNED = 0.5, 0.2  # share of its edges that a shake drops, and turns round
PATIENCE = 5  # steps in a row that may bring nothing: a way over a dip of the score
EXACT = 1e-6  # nats: what differs by less is the same, on any machine


@dataclass(frozen=True)
class Limits:
    """What a structure may be."""

    most_parents: int = 3  # of a node; required edges count, but are never refused
    # forbidden, required: edges that it must not have, and those that it must have
    forbidden: Collection[Edge] = field(default_factory=frozenset)
    required: Collection[Edge] = field(default_factory=frozenset)


# --- what parents are worth -----------------------------------------------------------------------


class Worth:
    """What sets of parents are worth to a child, in nats: counted once, then remembered.

    n_rows : all rows; what a sample tells is scaled to them.
    screen : what a sample tells: one more parent is counted only where that speaks for it.
    """

    def __init__(self, counts: FamilyCounts, n_rows: int, screen: Worth | None = None) -> None:
        self.counts, self.cards, self.n_rows = counts, counts.cards, n_rows
        self._screen = screen
        self._known: dict[tuple[int, frozenset[int]], float] = {}

    def of(self, child: int, parents: Collection[int]) -> float:
        """Return the gain of a set of parents over none."""
        if not parents:
            return 0.0
        known = self._known.get((child, frozenset(parents)))
        if known is not None:
            return known
        first, *rest = sorted(parents)
        return float(self.of_each(child, rest, [first])[0])

    def of_all(self, parents: Sequence[Collection[int]]) -> float:
        """Return what a whole structure is worth."""
        return sum(self.of(child, own) for child, own in enumerate(parents))

    def of_each(self, child: int, parents: Collection[int], others: Sequence[int]) -> Gains:
        """Return the gain of some parents and one more over none, for each of some others."""
        given = frozenset(parents)
        size = prod(self.cards[k] for k in (*given, child))
        found = np.array([self._known.get((child, given | {p}), np.nan) for p in others])
        is_new = np.isnan(found) & (size * np.array([self.cards[p] for p in others]) <= MOST_TABLE)
        if self._screen is not None and len(others) > 1:
            told = self._screen.of_each(child, given, others) - self._screen.of(child, given)
            price = -find_gain(0.0, size * (1 - 1 / self.cards[child]), self.n_rows)
            is_new &= told > -price  # far enough below zero that chance does not explain it
        new = np.flatnonzero(is_new).tolist()
        if new:
            counted = self.counts.count_beside([*sorted(given), child], [others[k] for k in new])
            n_given = [size // self.cards[child] * self.cards[others[k]] for k in new]
            found[new] = measure_gains(counted, self.cards[child], n_given, self.n_rows, self.share)
            for k in new:
                self._known[child, given | {others[k]}] = float(found[k])
        return np.where(np.isnan(found), -np.inf, found)

    @property
    def share(self) -> float:
        """The share of all rows that is counted."""
        return self.counts.n_rows / self.n_rows


def measure_gains(
    counted: CountedBeside, n_states: int, n_given: Sequence[int], n_rows: int, share: float
) -> Gains:
    """Return what columns tell about the last one, in nats, for each that takes the first place.

        sum of N_ij log(N_ij n / (N_i N_j)) - (q - 1) (r - 1) / 2 log(n)

    Where values are missing, it is measured on the n rows that show all of them, and scaled to all
    rows: sets of parents are then compared as if no value were missing. Of a sample, the likelihood
    is what all rows are expected to have, without what chance adds in a sample.

    n_states, n_given : r, and q of each.
    n_rows, share : all rows, and the share of them that was counted.
    """
    at = counted.starts // n_states
    table = counted.counts.reshape(-1, n_states).astype(np.float64)
    alone = np.add.reduceat(table, at, axis=0)
    n = np.maximum(alone.sum(axis=1), 1.0)
    told = np.add.reduceat(_logs(table).sum(axis=1) - _logs(table.sum(axis=1)), at)
    told += _logs(n) - _logs(alone).sum(axis=1)
    n_free = (np.array(n_given) - 1.0) * (n_states - 1)
    told = (told - n_free / 2) / share + n_free / 2
    gains: Gains = find_gain(told, n_free, n / share) * n_rows * share / n
    return gains


def _logs(counts: Gains) -> Gains:
    """Return `n log(n)`, 0 for none."""
    return counts * np.log(np.maximum(counts, 1.0))


# --- the search -----------------------------------------------------------------------------------


class Climb:
    """A structure, and what each change of one edge would bring."""

    def __init__(self, worth: Worth, limits: Limits, edges: Sequence[Edge] = ()) -> None:
        """Take required edges and as many others as the limits permit; either way round."""
        self.worth, self.limits = worth, limits
        d = len(worth.cards)
        self.parents: list[set[int]] = [set() for _ in range(d)]
        self._adds = np.full((d, d), -np.inf)  # gain of the edge from the row to the column
        self._removes = np.full((d, d), -np.inf)
        self._is_free = ~np.eye(d, dtype=bool)
        for parent, child in limits.forbidden:
            self._is_free[parent, child] = False
        for parent, child in limits.required:
            self._is_free[child, parent] = False
            self.parents[child].add(parent)
        for a, b in edges:
            if b not in self.parents[a] and a not in self.parents[b]:
                parent, child = (a, b) if self._may_add(a, b) else (b, a)
                if self._may_add(parent, child):
                    self.parents[child].add(parent)
        for child in range(d):
            self._refresh(child)

    def _may_add(self, parent: int, child: int) -> bool:
        has_room = len(self.parents[child]) < self.limits.most_parents
        is_free = bool(self._is_free[parent, child])
        return is_free and has_room and not self._paths()[1][child, parent]

    def _refresh(self, child: int) -> None:
        """Measure again every change of the parents of a child."""
        own, now = self.parents[child], self.worth.of(child, self.parents[child])
        self._adds[:, child] = self._removes[:, child] = -np.inf
        others = [p for p in np.flatnonzero(self._is_free[:, child]).tolist() if p not in own]
        if len(own) < self.limits.most_parents and others:
            self._adds[others, child] = self.worth.of_each(child, own, others) - now
        for p in own:
            if (p, child) not in self.limits.required:
                self._removes[p, child] = self.worth.of(child, own - {p}) - now

    def _paths(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return from which node (row) to which (column) is an edge, a path, a path of several."""
        d = len(self.parents)
        edges = np.zeros((d, d), np.float32)
        for child, own in enumerate(self.parents):
            edges[list(own), child] = 1.0
        reach, n_steps = edges, 1
        while n_steps < d:
            reach = np.minimum(reach + reach @ reach, 1.0)
            n_steps *= 2
        return edges > 0, reach > 0, edges @ reach > 0

    def best(self, closed: Collection[Edge]) -> tuple[float, list[Edge], list[Edge]] | None:
        """Return the best change: its gain, and the edges that go and come.

        `closed` are edges that must stay as they are, there or not, either way round.
        """
        is_edge, is_path, is_long = self._paths()
        adds = np.where(is_path.T | is_edge, -np.inf, self._adds)
        turns = np.where(is_edge & ~is_long, self._removes + self._adds.T, -np.inf)
        found = None
        for kind, gains in enumerate((adds, self._removes.copy(), turns)):
            for a, b in closed:
                gains[a, b] = gains[b, a] = -np.inf
            parent, child = divmod(int(np.argmax(np.round(gains, 6))), len(gains))
            gain, edge = float(gains[parent, child]), (parent, child)
            if np.isfinite(gain) and (found is None or gain > found[0] + EXACT):
                goes = [edge] if kind else []
                comes = [[edge], [], [(child, parent)]][kind]
                found = gain, goes, comes
        return found

    def change(self, goes: Sequence[Edge], comes: Sequence[Edge]) -> None:
        """Take edges away and add others."""
        for parent, child in goes:
            self.parents[child].discard(parent)
        for parent, child in comes:
            self.parents[child].add(parent)
        for child in {child for _, child in (*goes, *comes)}:
            self._refresh(child)


def climb_from(
    start: Sequence[Edge], worth: Worth, limits: Limits, patience: int = PATIENCE
) -> tuple[float, Structure]:
    """Return what the best structure on a way of single changes is worth, and the structure."""
    climb = Climb(worth, limits, start)
    level = top = worth.of_all(climb.parents)
    best, closed, n_idle = freeze(climb), list[Edge](), 0
    while n_idle < patience:
        found = climb.best(closed)
        if found is None:
            break
        gain, goes, comes = found
        climb.change(goes, comes)
        level, n_idle, closed = level + gain, n_idle + 1, [*closed, *goes, *comes]
        if level > top + EXACT:
            best, top, closed, n_idle = freeze(climb), level, [], 0
    return top, best


def freeze(climb: Climb) -> Structure:
    """Return the structure that a climb has reached."""
    return tuple(tuple(sorted(own)) for own in climb.parents)


def measure_pairs(worth: Worth) -> Gains:
    """Return what each node gains from each other as its only parent; shape (d, d), symmetric."""
    d = len(worth.cards)
    gains = np.full((d, d), -np.inf)
    for child in range(1, d):
        gains[:child, child] = worth.of_each(child, (), range(child))
    both: Gains = np.maximum(gains, gains.T)
    return both


def find_tree(gains: Gains) -> list[Edge]:
    """Return the edges of the tree that gains most, away from the node that tells most.

    Pairs that gain nothing have no edge, so there may be several trees (Chow and Liu). O(d^2) time.
    """
    links, edges = np.round(gains, 6), list[Edge]()
    root = int(np.argmax(np.maximum(gains, 0).sum(axis=0)))
    nearest = np.full(len(gains), root)  # of the nodes inside, to each node
    outside = np.delete(np.arange(len(gains)), root)
    while len(outside):
        found = links[nearest[outside], outside]
        best = np.flatnonzero(found == found.max())
        at = best[np.argmin(nearest[outside[best]])]
        child = int(outside[at])
        parent = int(nearest[child])
        if gains[parent, child] > 0:
            edges.append((parent, child))
        else:
            at, child = 0, int(outside[0])
        outside = np.delete(outside, at)
        now, new = links[nearest[outside], outside], links[child, outside]
        is_nearer = (new > now) | ((new == now) & (child < nearest[outside]))
        nearest[outside[is_nearer]] = child
    return edges


def list_edges(structure: Structure) -> list[Edge]:
    """Return the edges of a structure, child by child."""
    return [(parent, child) for child, own in enumerate(structure) for parent in own]


def find_structure(
    codes: Codes,
    cards: Sequence[int],
    limits: Limits,
    rng: np.random.Generator,
    *,
    start: Sequence[Edge] = (),
    shakes: int | None = None,
) -> tuple[Structure, Worth]:
    """Return the parents of each column, and what parents are worth; O(N d) a step.

    start : edges to begin with beside those of a tree.
    shakes : how often the search begins anew; 0 for a quick look.
    """
    worth = screen = Worth(FamilyCounts(codes, cards), len(codes))
    if len(codes) > 2 * SCREENED:
        some = np.sort(rng.choice(len(codes), SCREENED, replace=False))
        screen = Worth(FamilyCounts(take_rows(codes, some), cards), len(codes))
        worth = Worth(worth.counts, len(codes), screen)
    best = climb_from(find_tree(measure_pairs(screen)), screen, limits)
    if shakes is None:
        shakes = SHAKES if worth is screen else SHAKES_OF_SAMPLE
    for k in range(1 + shakes):
        other = climb_from(_shake(best[1], rng) if k else start, screen, limits)
        best = other if other[0] > best[0] + EXACT else best  # of two as good, the first
    if worth is not screen:
        best = climb_from(list_edges(best[1]), worth, limits, patience=1)
    return best[1], worth


def _shake(structure: Structure, rng: np.random.Generator) -> list[Edge]:
    """Return some of the edges of a structure, and some of those turned round."""
    edges = list_edges(structure)
    kept = rng.permutation(len(edges))[int(DROPPED * len(edges)) :]
    return [edges[k][:: -1 if rng.random() < TURNED else 1] for k in kept.tolist()]
