"""Draw networks as in the paper's experiments; `robustbn.simulate` is the face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.calls import naming_the_nearest
from robustbn._core.structure import MAX_STATES
from robustbn.exceptions import SettingError
from robustbn.network import BayesianNetwork

STRUCTURES = ("graph", "tree", "empty")


@naming_the_nearest
def random_network(
    kind: str = "graph",
    n_nodes: int = 50,
    n_parameters: int | None = None,
    cards: int | tuple[int, int] | Sequence[int] = 2,
    random_state: Any = None,
) -> BayesianNetwork:
    """Draw a network as in the paper's experiments.

    Edges run from smaller to larger index. The tables of binary nodes have probabilities uniform in
    [0, 1/4] or [3/4, 1]; nodes with more states have tables uniform on the simplex.

    Parameters
    ----------
    kind : {"graph", "tree", "empty"}, default="graph"
        "empty" has no edges; in a "tree" every node except the first has one parent, drawn from the
        earlier nodes; a "graph" gets random edges while it has fewer than `n_parameters`
        configurations.
    n_nodes : int, default=50
        The number of nodes.
    n_parameters : int or None, default=None
        For "graph", the number of configurations m to reach; by default `10 * n_nodes`.
    cards : int, tuple or list, default=2
        The number of states of every node; a tuple (low, high) to draw each number from that range;
        or a list with one number per node.
    random_state : int, Generator or None, default=None
        The seed; None for a new network each time.

    Examples
    --------
    >>> from robustbn.simulate import random_network
    >>> random_network("tree", n_nodes=50, random_state=0)
    BayesianNetwork(50 nodes, 49 edges, 99 configurations, 198 cells, with tables)
    """
    if kind not in STRUCTURES:
        raise SettingError(f"Unknown kind {kind!r}; choose one of {', '.join(STRUCTURES)}.")
    if n_nodes < 1:
        raise SettingError(f"n_nodes must be at least 1; found {n_nodes!r}.")
    if n_parameters is not None and kind != "graph":
        raise SettingError(
            f"n_parameters only shapes a 'graph'; the structure of kind {kind!r} follows from "
            "n_nodes and cards."
        )
    rng = np.random.default_rng(random_state)
    n_states = _draw_cards(cards, n_nodes, rng)
    if kind == "graph":
        parents = _draw_graph(n_states, n_parameters or 10 * n_nodes, rng)
    elif kind == "tree":
        parents = [[], *([int(rng.integers(i))] for i in range(1, n_nodes))]
    else:
        parents = [[] for _ in range(n_nodes)]
    names = [f"X{i}" for i in range(n_nodes)]
    return BayesianNetwork(
        parents={names[i]: [names[p] for p in parents[i]] for i in range(n_nodes)},
        states={names[i]: [str(v) for v in range(n_states[i])] for i in range(n_nodes)},
        cpts={
            names[i]: _draw_table([n_states[p] for p in parents[i]], n_states[i], rng)
            for i in range(n_nodes)
        },
    )


def _draw_cards(
    cards: int | tuple[int, int] | Sequence[int], n_nodes: int, rng: np.random.Generator
) -> list[int]:
    if isinstance(cards, int | np.integer):
        drawn = [int(cards)] * n_nodes
    elif isinstance(cards, tuple):
        low, high = cards
        drawn = rng.integers(low, high, size=n_nodes, endpoint=True).tolist()
    else:
        drawn = [int(c) for c in cards]
    if len(drawn) != n_nodes:
        raise SettingError(
            f"cards must have one entry per node: {n_nodes} nodes, {len(drawn)} entries."
        )
    if not all(1 <= c <= MAX_STATES for c in drawn):
        raise SettingError(f"A node has 1 to {MAX_STATES:,} states; found {sorted(set(drawn))}.")
    return drawn


def _draw_graph(cards: list[int], n_parameters: int, rng: np.random.Generator) -> list[list[int]]:
    """Add random edges, in one random order, each as long as m stays within `n_parameters`."""
    n_nodes = len(cards)
    if n_parameters < n_nodes:
        raise SettingError(
            f"A graph of {n_nodes} nodes has at least {n_nodes} configurations; n_parameters is "
            f"{n_parameters}."
        )
    parents: list[list[int]] = [[] for _ in cards]
    n_configurations = [1] * n_nodes
    m = n_nodes
    first, second = np.triu_indices(n_nodes, k=1)
    for e in rng.permutation(len(first)):
        parent, child = int(first[e]), int(second[e])
        growth = n_configurations[child] * (cards[parent] - 1)
        if m + growth <= n_parameters:
            parents[child].append(parent)
            n_configurations[child] *= cards[parent]
            m += growth
        elif m == n_parameters:
            break
    return [sorted(p) for p in parents]


def _draw_table(
    parent_cards: list[int], card: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    if card != 2:
        return rng.dirichlet(np.ones(card), size=parent_cards)
    p = rng.uniform(0, 0.25, size=parent_cards)
    p = np.where(rng.random(size=parent_cards) < 0.5, p, 1 - p)
    return np.stack([1 - p, p], axis=-1)
