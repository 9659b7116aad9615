"""What the trusted rows still depend on that the network has no edge for.

Screening: what is left of each node's state once its parents are known (its residual) is
uncorrelated with every other node's if the network is right; all correlations come from one product
of residuals, in stretches of rows. Pairs that pass are then measured: the conditional mutual
information that an edge would gain, and a likelihood-ratio test of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
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
    screened = screen_pairs(layout, q, codes, weights, range(d))
    chances = {(i, j): chi2_tail(told, free) for i, j, told, free in screened}
    pairs = [pair for pair, chance in chances.items() if chance < SCREENED]
    pairs.sort(key=lambda pair: chances[pair])
    found = []
    for i, j in pairs[: MOST_MEASURED * d]:
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
) -> Iterator[tuple[int, int, float, float]]:
    """Yield pairs that no edge joins, at least one of some nodes, and how far they are correlated.

    Of each pair: the node that comes later, the other, and the statistic of the correlation of
    their residuals, which has a chi-squared distribution where the network is right, with its
    degrees of freedom. A pair is seen by the rows that show both nodes and all their parents. Nodes
    of very many states are left out.
    """
    cards, chosen, family = np.array(layout.cards), set(nodes), layout.families
    screened = np.flatnonzero(cards <= MOST_STATES_SCREENED).tolist()
    start = np.concatenate([[0], np.cumsum(cards[screened])]).astype(np.int64)
    product = np.zeros((start[-1], start[-1]))
    total, squares = np.zeros(len(screened)), np.zeros((len(screened), len(screened)))
    for first in range(0, len(codes), SCREENED_AT_ONCE):
        part = codes[first : first + SCREENED_AT_ONCE]
        given = weights[first : first + SCREENED_AT_ONCE].astype(np.float64)
        residuals, shown = np.zeros((len(part), start[-1])), np.zeros((len(part), len(screened)))
        for k, i in enumerate(screened):
            rows, left = _residuals(layout, q, part, i)
            shown[rows, k] = 1.0
            residuals[rows, start[k] : start[k + 1]] = left
        product += residuals.T @ (residuals * given[:, None])
        total += given @ shown
        squares += shown.T @ (shown * np.square(given)[:, None])
    roots = [_root_of_inverse(product[a:b, a:b]) for a, b in pairwise(start)]
    for side in (product, product.T):
        for root, a, b in zip(roots, start, start[1:], strict=False):
            side[a:b] = root @ side[a:b]
    told = np.add.reduceat(np.add.reduceat(product**2, start[:-1], axis=0), start[:-1], axis=1)
    told *= np.outer(total, total) / np.maximum(squares, 1e-300)
    for k, i in enumerate(screened):
        for h, j in enumerate(screened[:k]):
            if (i in chosen or j in chosen) and not (i in family[j] or j in family[i]):
                yield i, j, float(told[k, h]), float((layout.cards[i] - 1) * (layout.cards[j] - 1))


def _residuals(
    layout: Layout, q: Vector, codes: Codes, node: int
) -> tuple[NDArray[np.intp], Vector]:
    """Return the rows that show a node's family, and its states less what the parents expect."""
    cells, is_shown = layout.joint_states(codes, layout.families[node])
    rows, card, start = np.flatnonzero(is_shown), layout.cards[node], layout.cell_start
    tables = q[start[node] : start[node + 1]].reshape(-1, card)
    left = -tables[cells[rows] // card]
    left[np.arange(len(rows)), codes[rows, node]] += 1
    return rows, left


def _root_of_inverse(matrix: Vector) -> Vector:
    values, vectors = np.linalg.eigh(matrix)
    is_there = values > 1e-9 * max(float(values[-1]), 1e-300)
    scale = np.where(is_there, 1 / np.sqrt(np.where(is_there, values, 1.0)), 0.0)
    root: Vector = (vectors * scale) @ vectors.T
    return root


def chi2_tail(value: float, freedom: float) -> float:
    """Return the probability of a chi-square above `value`."""
    if freedom <= 0 or value <= 0:
        return 1.0
    return 0.5 * math.erfc(score_chi2(value, freedom) / math.sqrt(2))


def score_chi2(value: float, freedom: float) -> float:
    """Return a chi-square in standard deviations, by Wilson and Hilferty's cube root."""
    spread = 2 / (9 * freedom)
    return ((value / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


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
    alone = counts.sum(axis=1, keepdims=True) * counts.sum(axis=2, keepdims=True)
    alone /= np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1e-300)
    seen = counts > 0
    information = float((counts[seen] * np.log(counts[seen] / alone[seen])).sum())
    rows, columns = (counts.sum(axis=a) > 0 for a in (2, 1))
    freedom = float(((rows.sum(axis=1) - 1).clip(0) * (columns.sum(axis=1) - 1).clip(0)).sum())
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
