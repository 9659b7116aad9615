"""Random networks and rows for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from robustbn import BayesianNetwork
from robustbn._core.layout import Layout


@st.composite
def networks(draw, max_nodes=9, max_states=8, max_parents=5, max_cells=4000):
    """A network of 1 to `max_nodes` nodes in any order of columns, with tables."""
    d = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cards = [draw(st.integers(2, max_states)) for _ in range(d)]
    order = rng.permutation(d)  # topological order, unlike that of the columns
    parents = {}
    for position, node in enumerate(order):
        pool = list(order[:position])
        rng.shuffle(pool)
        chosen, size = [], cards[node]
        for p in pool[: draw(st.integers(0, max_parents))]:
            if size * cards[p] <= max_cells:
                chosen.append(p)
                size *= cards[p]
        parents[int(node)] = [int(p) for p in chosen]
    names = [f"n{i}" for i in range(d)]
    tables = {}
    for i in range(d):
        table = rng.dirichlet(np.ones(cards[i]), size=[cards[p] for p in parents[i]])
        if rng.random() < 0.3:  # some states that never happen
            table = np.where(rng.random(table.shape) < 0.3, 0.0, table) + 1e-300
            table /= table.sum(axis=-1, keepdims=True)
        tables[names[i]] = table
    return BayesianNetwork(
        {names[i]: [names[p] for p in parents[i]] for i in range(d)},
        {names[i]: [f"s{v}" for v in range(cards[i])] for i in range(d)},
        tables,
    )


@st.composite
def networks_with_rows(draw, max_rows=3000, **settings):
    """A network, codes of shape (N, d) with N from 0, and weights with zeros among them."""
    network = draw(networks(**settings))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.one_of(st.integers(0, 20), st.integers(0, max_rows)))
    codes = np.stack([rng.integers(0, c, size=n) for c in network.layout.cards], axis=1)
    weights = rng.random(n) * (rng.random(n) < 0.8)
    return network, codes.astype(np.uint8), weights


@st.composite
def layouts_with_holed_rows(draw, max_rows=1500, most_missing=1.0):
    """A layout with holes in some columns, now and then a wide node, and codes of shape (N, d)."""
    d = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cards = [draw(st.integers(1, 5)) for _ in range(d)]
    if draw(st.booleans()):
        cards[int(rng.integers(d))] = draw(st.sampled_from([255, 256, 257, 1000]))
    families = []
    for i in range(d):
        family, size = [i], cards[i]
        for p in rng.permutation(i)[: draw(st.integers(0, 6))]:
            if size * cards[p] <= 4000:
                family.insert(0, int(p))
                size *= cards[p]
        families.append(tuple(family))
    holed = [c for c in range(d) if rng.random() < 0.7]
    layout = Layout(tuple(cards), tuple(families)).with_holes(holed)
    n = draw(st.one_of(st.integers(0, 20), st.integers(0, max_rows)))
    codes = np.stack([rng.integers(0, c, size=n) for c in cards], axis=1)
    share = draw(st.sampled_from([0.0, 0.05, 0.3, 1.0])) * most_missing
    for c in layout.holed:
        codes[rng.random(n) < share, c] = cards[c]
    return layout, codes.astype(layout.code_dtype)
