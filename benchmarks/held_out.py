"""How well tables describe rows that were kept aside, in nats a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn import BayesianNetwork, MaximumLikelihoodEstimator

FLOOR_PROBABILITY = 1e-4  # of a state, so that one unseen cell does not decide
PRIOR: dict[str, Any] = {"prior": "laplace", "pseudo_count": 0.5}  # the same for every method


def count_rows(network: BayesianNetwork, rows: NDArray[np.uint8]) -> BayesianNetwork:
    """Return the network with the tables that counting gives, under the common prior."""
    return MaximumLikelihoodEstimator(network, n_threads=1, **PRIOR).fit(rows).network_


def score_rows(network: BayesianNetwork, rows: NDArray[np.uint8]) -> float:
    """Return the mean log-likelihood a row, `(1 - floor) P + floor / states` in each cell."""
    column = {node: i for i, node in enumerate(network.nodes)}
    total = np.zeros(len(rows))
    for node in network.nodes:
        family = [column[p] for p in network.parents[node]] + [column[node]]
        table = network.cpts[node]
        found = table[tuple(rows[:, i] for i in family)]
        total += np.log((1 - FLOOR_PROBABILITY) * found + FLOOR_PROBABILITY / table.shape[-1])
    return float(total.mean())
