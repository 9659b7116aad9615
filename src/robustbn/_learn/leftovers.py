"""What the trusted rows still depend on that the network has no edge for.

Screening: what is left of each node's state once its parents are known (its residual) is
uncorrelated with every other node's if the network is right; all correlations come from one product
of residuals, in stretches of rows. Pairs that pass are then measured: the conditional mutual
information that an edge would gain, and a likelihood-ratio test of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import RowVector, Vector

SCREENED_AT_ONCE = 2**12  # rows: bounds memory, changes nothing
SCREENED = 0.01  # p-value of a pair, before correcting for the number of pairs, to be measured
MOST_MEASURED = 20  # pairs a node, the most suspicious first
MOST_STATES_SCREENED = 256  # of a node: memory grows with the square of all states
MOST_TABLE = 2**20  # cells of a table that an edge may need to be measured


@dataclass(frozen=True)
class Leftover:
    """A pair of nodes that depend on each other although no edge says so."""

    # parent, child: the edge that keeps the graph acyclic and costs fewest cells
    parent: int
    child: int
    # log-likelihood that it would bring, in nats a row that shows all it needs, sampling noise
    # taken off
    gain: float
    p_value: float  # of the likelihood-ratio test, corrected for the number of pairs
    n_cells: int  # cells that it would add


def find_leftovers(
    layout: Layout, q: Vector, codes: Codes, weights: RowVector, p_value: float
) -> list[Leftover]:
    """Return pairs whose dependence cannot be chance, at a corrected p-value, largest gain first.

    O(n D^2) time with D the states of all nodes together, and O(D^2) memory.
    """
    ancestors, d = find_ancestors(layout), layout.n_nodes
    pairs, told, free = screen_pairs(layout, q, codes, weights, range(d))
    chances = np.array(list(map(chi2_tail, told.tolist(), free.tolist())))
    order = np.argsort(chances, kind="stable")[: np.count_nonzero(chances < SCREENED)]
    found = []
    for i, j in pairs[order[: MOST_MEASURED * d]].tolist():
        edge = _choose_direction(layout, ancestors, i, j)
        measured = measure_pair(layout, codes, weights, *edge)
        if measured is None:
            continue
        gain, chance, _ = measured
        corrected = min(1.0, chance * d * (d - 1) / 2)
        if corrected <= p_value and gain > 0:
            found.append(Leftover(*edge, gain, corrected, count_added_cells(layout, *edge)))
    return sorted(found, key=lambda each: -each.gain)


# --- screening ------------------------------------------------------------------------------------


def screen_pairs(
    layout: Layout, q: Vector, codes: Codes, weights: RowVector, nodes: Sequence[int]
) -> tuple[NDArray[np.intp], Vector, Vector]:
    """Return pairs that no edge joins, at least one of some nodes, and how far they are correlated.

    Of each pair: the node that comes later and the other, the statistic of the correlation of
    their residuals, which has a chi-squared distribution where the network is right, with its
    degrees of freedom. A pair is seen by the rows that show both nodes and all their parents. Nodes
    of very many states are left out.
    """
    cards, steps = np.array(layout.cards), _find_steps(layout)
    screened = np.flatnonzero(cards <= MOST_STATES_SCREENED)
    start = np.concatenate([[0], np.cumsum(cards[screened])])
    product = np.zeros((start[-1], start[-1]))
    total, squares = np.zeros(len(screened)), np.zeros((len(screened), len(screened)))
    for first in range(0, len(codes), SCREENED_AT_ONCE):
        part = codes[first : first + SCREENED_AT_ONCE]
        given = weights[first : first + SCREENED_AT_ONCE].astype(np.float64)
        residuals, shown = _residuals(layout, q, part, screened, steps[:, screened])
        product += residuals.T @ (residuals * given[:, None])
        total += given @ shown
        squares += shown.T @ (shown * np.square(given)[:, None])
    for card in np.unique(cards[screened]):  # nodes of as many states at once
        own = start[:-1][cards[screened] == card, None] + np.arange(card)
        roots = _roots_of_inverses(product[own[:, :, None], own[:, None]])
        for side in (product, product.T):
            side[own] = roots @ side[own]
    told = np.add.reduceat(np.add.reduceat(product**2, start[:-1], axis=0), start[:-1], axis=1)
    told *= np.outer(total, total) / np.maximum(squares, 1e-300)
    is_chosen, is_apart = np.isin(screened, nodes), steps[np.ix_(screened, screened)] == 0
    is_asked = (is_chosen | is_chosen[:, None]) & is_apart & is_apart.T
    places = np.argwhere(np.tril(is_asked, -1))
    pairs = screened[places]
    return pairs, told[tuple(places.T)], (cards[pairs] - 1.0).prod(axis=1)


def _find_steps(layout: Layout) -> Vector:
    """Return by how much a state of each column moves the cell of each node; shape (d, d)."""
    steps = np.zeros((layout.n_nodes, layout.n_nodes))
    for node, family in enumerate(layout.families):
        steps[family, node] = layout.strides[node]
    return steps


def _residuals(
    layout: Layout, q: Vector, codes: Codes, nodes: NDArray[np.intp], steps: Vector
) -> tuple[Vector, Vector]:
    """Return what is left of the states of some nodes, and which of the nodes each row shows.

    That is each state, 1 or 0, less what the parents lead to expect; 0 where a row does not show
    the node and its parents. Shapes (n, D) and (n, d).

    steps : see `_find_steps`, of these nodes.
    """
    cards, by_column = np.array(layout.cards), np.asfortranarray(codes, np.float64).T
    is_hole, own = by_column >= cards[:, None], by_column[nodes]
    shown = ((steps > 0).T.astype(np.float64) @ is_hole == 0).astype(np.float64)
    first = (steps.T @ by_column - own).astype(np.int64) + layout.cell_start[nodes, None]
    of_state = np.repeat(np.arange(len(nodes)), cards[nodes])
    state = np.concatenate([np.arange(card) for card in cards[nodes]])[:, None]
    left = (own[of_state] == state) - q.take(first[of_state] + state, mode="clip")
    return (left * shown[of_state]).T, shown.T


def _roots_of_inverses(matrices: Vector) -> Vector:
    """Return the root of the inverse of each of some matrices; shape (g, k, k)."""
    values, vectors = np.linalg.eigh(matrices)
    is_there = values > 1e-9 * np.maximum(values[:, -1:], 1e-300)
    scale = np.where(is_there, 1 / np.sqrt(np.where(is_there, values, 1.0)), 0.0)
    roots: Vector = (vectors * scale[:, None]) @ vectors.transpose(0, 2, 1)
    return roots


def chi2_tail(value: float, freedom: float) -> float:
    """Return the probability of a chi-square above `value`."""
    if freedom <= 0 or value <= 0:
        return 1.0
    return 0.5 * math.erfc(score_chi2(value, freedom) / math.sqrt(2))


def score_chi2(value: float, freedom: float) -> float:
    """Return a chi-square in standard deviations, by Wilson and Hilferty's cube root."""
    spread = 2 / (9 * freedom)
    return float(((value / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))


# --- measuring ------------------------------------------------------------------------------------


def measure_pair(
    layout: Layout, codes: Codes, weights: RowVector, parent: int, child: int
) -> tuple[float, float, float] | None:
    """Return an edge's gain in nats a row, p-value and rows; None if its table is too large."""
    *given, _ = layout.families[child]
    shape = prod(layout.cards[p] for p in given), layout.cards[parent], layout.cards[child]
    if prod(shape) > MOST_TABLE:
        return None
    cells, is_shown = layout.joint_states(codes, [*given, parent, child])
    if not is_shown.all():
        cells, weights = cells[is_shown], weights[is_shown]
    counts = np.bincount(cells, weights, prod(shape)).reshape(shape).astype(np.float64)
    total = float(counts.sum())
    of_parent, of_child = counts.sum(axis=2), counts.sum(axis=1)
    alone = of_child[:, None] * of_parent[:, :, None]
    alone /= np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1e-300)
    seen = counts > 0
    information = float((counts[seen] * np.log(counts[seen] / alone[seen])).sum())
    rows, columns = (np.count_nonzero(each, axis=1) - 1 for each in (of_parent, of_child))
    freedom = float((np.maximum(rows, 0) * np.maximum(columns, 0)).sum())
    n_effective = total**2 / max(float(np.square(weights, dtype=np.float64).sum()), 1e-300)
    statistic = 2 * information * n_effective / max(total, 1e-300)
    gain = information / max(total, 1e-300) - freedom / (2 * max(n_effective, 1.0))
    return gain, chi2_tail(statistic, freedom), total


# --- the graph ------------------------------------------------------------------------------------


def find_ancestors(layout: Layout) -> list[set[int]]:
    """Return the ancestors of every node."""
    parents = {node: family[:-1] for node, family in enumerate(layout.families)}
    found: dict[int, set[int]] = {}
    for node in TopologicalSorter(parents).static_order():
        found[node] = set(parents[node]).union(*(found[p] for p in parents[node]))
    return [found[node] for node in parents]


def _choose_direction(layout: Layout, ancestors: list[set[int]], i: int, j: int) -> tuple[int, int]:
    """Return (parent, child): acyclic, and of two such the one that adds fewest cells."""
    if i in ancestors[j]:
        return i, j
    if j in ancestors[i]:
        return j, i
    return min(((i, j), (j, i)), key=lambda edge: count_added_cells(layout, *edge))


def count_added_cells(layout: Layout, parent: int, child: int) -> int:
    """Return how many cells an edge would add to the child's table."""
    return int(layout.cells_per_node[child]) * (int(layout.cards[parent]) - 1)
