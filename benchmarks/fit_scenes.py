"""Rows whose robust fit is timed: clean, plainly bad, ambiguous, with a misfit, with holes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.scenes import draw_scene
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator, random_network

GROUPS = {
    "clean": ("none",),
    "plainly bad": ("network", "product", "flipped", "clones"),
    "ambiguous": ("mixture", "tilt", "rowflip"),
    "wrong joins": ("misjoined",),
    "misfit": ("edges left out",),
    "holes": ("20 % holes",),
}
GROUP_OF = {kind: group for group, kinds in GROUPS.items() for kind in kinds}
EDGES_LEFT_OUT, HOLES, BAD = 8, 0.2, 0.1


@dataclass(frozen=True, eq=False)
class FitScene:
    """A structure, rows to learn its tables from, and how values that are missing are used."""

    network: BayesianNetwork
    rows: Any
    settings: Mapping[str, Any] = field(default_factory=dict)

    def count(self) -> object:
        """Learn by counting."""
        return MaximumLikelihoodEstimator(self.network, **self.settings).fit(self.rows)

    def fit(self) -> object:
        """Learn robustly."""
        return RobustEstimator(self.network, random_state=0, **self.settings).fit(self.rows)


def build_fit_scene(network: BayesianNetwork, kind: str, n_rows: int, seed: int) -> FitScene:
    """Return a scene by the name of an adversary, or of what else is the matter."""
    if kind == "edges left out":
        rng = np.random.default_rng(seed)
        edges = [(p, c) for c in network.nodes for p in network.parents[c]]
        gone = {edges[i] for i in rng.choice(len(edges), EDGES_LEFT_OUT, replace=False)}
        parents = {c: [p for p in network.parents[c] if (p, c) not in gone] for c in network.nodes}
        rows = draw_scene(network, "none", BAD, n_rows, seed).rows
        return FitScene(BayesianNetwork(parents, network.states), rows)
    if kind == "20 % holes":
        rows = draw_scene(network, "network", BAD, n_rows, seed).rows
        is_missing = np.random.default_rng(seed).random(rows.shape, np.float32) < HOLES
        return FitScene(network, np.ma.masked_array(rows, is_missing), {"on_missing": "observed"})
    return FitScene(network, draw_scene(network, kind, BAD, n_rows, seed).rows)


def standard_network(seed: int) -> BayesianNetwork:
    """Return the network of 50 binary nodes and 500 configurations."""
    return random_network("graph", 50, 500, random_state=seed)
