"""How a dependence without an edge shows: the states of a pair of nodes among the trusted rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._core.trust import JudgedRows
from robustbn.network import BayesianNetwork

MOST_SHOWN_STATES = 12  # of each node of a pair


@dataclass(frozen=True, eq=False)
class MissingEdge:
    """Two nodes that depend on each other without an edge, and how that shows.

    Parameters
    ----------
    parent, child : the edge that could be drawn.
    gain : what it would bring, in nats a row.
    seen : share of each state of the child among the trusted rows with each of these states of the
        parent; shape (n, m).
    expected : the same by the tables of the network, given the parents that each of the rows shows.
    n_rows : trusted rows with each of these states of the parent, scaled to all rows; shape (n,).
    parent_codes, child_codes : which states these are; a long table holds those that differ most.
    """

    parent: str
    child: str
    gain: float
    seen: Vector
    expected: Vector
    n_rows: Vector
    parent_codes: NDArray[np.int64]
    child_codes: NDArray[np.int64]

    def __str__(self) -> str:
        return f"{self.parent} and {self.child} ({self.gain:.3f} nats a row)"


def show_pair(network: BayesianNetwork, judged: JudgedRows, edge: Any) -> MissingEdge:
    """Return the table of a pair: what the trusted rows show, and what the network expects.

    `seen[u, v]` is the share of the child's state v among trusted rows with the parent's state u,
    `expected[u, v]` the mean of `q[v | parents of the child in the row]` over the same rows. From
    the drawn rows that show all of it; O(n card) time.

    Parameters
    ----------
    edge : the pair, by the numbers of its nodes: parent, child, gain.
    """
    layout = network.layout
    codes, trust = judged.drawn_codes, judged.drawn_trust.astype(np.float64)
    family = layout.families[edge.child]
    needed = [*family, edge.parent]
    is_shown = (codes[:, needed] < np.array(layout.cards)[needed]).all(axis=1)
    codes, trust = codes[is_shown], trust[is_shown]
    seen, expected = _count_pair(network, codes, trust, edge.parent, edge.child)
    rows = seen.sum(axis=1)
    scale = float(judged.trust.total) / max(float(judged.drawn_trust.sum(dtype=np.float64)), 1e-9)
    apart = np.abs(seen - expected)
    parents = _choose(apart.sum(axis=1), rows > 0)
    children = _choose(apart[parents].sum(axis=0), np.ones(seen.shape[1], bool))
    share = np.maximum(rows[parents], 1e-300)[:, None]
    return MissingEdge(
        parent=network.nodes[edge.parent],
        child=network.nodes[edge.child],
        gain=float(edge.gain),
        seen=seen[parents][:, children] / share,
        expected=expected[parents][:, children] / share,
        n_rows=rows[parents] * scale,
        parent_codes=parents,
        child_codes=children,
    )


def _count_pair(
    network: BayesianNetwork, codes: Codes, trust: Vector, parent: int, child: int
) -> tuple[Vector, Vector]:
    """Return the weight of each pair of states, as the rows have it and as the tables say."""
    layout = network.layout
    wide = codes.astype(np.int64)
    n, m = layout.cards[parent], layout.cards[child]
    u, v = wide[:, parent], wide[:, child]
    seen = np.bincount(u * m + v, trust, n * m).reshape(n, m).astype(np.float64)
    strides = np.array(layout.strides[child])
    first = layout.cell_start[child] + wide[:, layout.families[child]] @ strides - v
    given, place = np.unique(np.stack([u, first]), axis=1, return_inverse=True)
    weight = np.bincount(place.ravel(), trust, given.shape[1])
    expected = np.zeros((n, m))
    for (state, cell), w in zip(given.T.tolist(), weight.tolist(), strict=True):
        expected[state] += w * network.probabilities[cell : cell + m]
    return seen, expected


def _choose(apart: Vector, may: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the states that differ most, in their own order."""
    order = np.argsort(np.where(may, -apart, np.inf), kind="stable")[: int(may.sum())]
    chosen: NDArray[np.int64] = np.sort(order[:MOST_SHOWN_STATES])
    return chosen
