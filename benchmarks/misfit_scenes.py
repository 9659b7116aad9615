"""Populations that the network does not describe: edges left out, a hidden cause, drift.

What decides a result of `misfit` is in this file; how it is shown is in `misfit.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from benchmarks.cells import Record, code_version
from benchmarks.held_out import PRIOR, count_rows, score_rows
from benchmarks.scenes import Codes, build_network
from robustbn import BayesianNetwork, RobustEstimator, sample, total_variation
from robustbn.adversary import corrupt

Edge = tuple[str, str]

N_TARGET, N_JUDGES, N_DRAWS = 500_000, 100_000, 50_000
N_MONTHS = 12
SOUGHT_GAIN = 0.01  # nats a row from which on a removed edge should be found


@dataclass(frozen=True)
class MisfitCell:
    """A population, an adversary, and how many rows.

    Parameters
    ----------
    experiment : "misfit edges", "misfit hidden" or "misfit drift".
    network : as in `scenes.build_network`.
    amount : edges removed; share of the rows with the hidden cause; how far tables move in a year.
    n_touched : nodes that depend on the hidden cause; 0 elsewhere.
    strength : how far it moves their tables towards others drawn evenly, 0 to 1; 0 elsewhere.
    adversary : of `robustbn.adversary.KINDS`, or "none".
    """

    experiment: str
    network: str
    amount: float
    n_touched: int
    strength: float
    adversary: str
    eps: float
    n_rows: int
    seed: int

    @property
    def world(self) -> tuple[str, str, float, int, float, int]:
        """What decides the population."""
        name = (self.experiment, self.network, self.amount)
        return (*name, self.n_touched, self.strength, self.seed)


@cache
def version_of_misfit() -> str:
    """Return a hash of the package and of the files that decide what is measured here."""
    return code_version("benchmarks/held_out.py", "benchmarks/misfit_scenes.py")


@dataclass(frozen=True, eq=False)
class World:
    """A population, and the network that does not describe it.

    Parameters
    ----------
    base : the network whose rows an adversary imitates.
    structure : to be fitted, without tables.
    draw : rows of the population, so many, by seed.
    removed : edges of the base that the structure lacks.
    target : the structure with the population's tables, counted from many rows.
    judges : rows that are kept aside.
    """

    base: BayesianNetwork
    structure: BayesianNetwork
    draw: Callable[[int, int], Codes]
    removed: tuple[Edge, ...]
    target: BayesianNetwork
    judges: Codes


# --- populations ----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def build_world(
    experiment: str, network: str, amount: float, n_touched: int, strength: float, seed: int
) -> World:
    """Return a population by name."""
    base = build_network(network, seed)
    rng = np.random.default_rng([seed, 17])
    structure, removed = base.with_cpts(None), tuple[Edge, ...]()
    if experiment == "misfit edges":
        structure, removed = remove_edges(base, int(amount), rng)
        draw = mix_networks([base], [1.0])
    elif experiment == "misfit hidden":
        nodes = [base.nodes[i] for i in rng.permutation(base.n_nodes)[:n_touched]]
        draw = mix_networks([base, move_tables(base, nodes, strength, rng)], [1 - amount, amount])
    else:
        last = move_tables(base, base.nodes, 1.0, rng)
        months = np.linspace(0, amount, N_MONTHS)
        networks = [_between(base, last, moved) for moved in months]
        draw = mix_networks(networks, [1 / N_MONTHS] * N_MONTHS)
    target = count_rows(structure, draw(N_TARGET, seed + 1000))
    return World(base, structure, draw, removed, target, draw(N_JUDGES, seed + 2000))


def remove_edges(
    network: BayesianNetwork, n_edges: int, rng: np.random.Generator
) -> tuple[BayesianNetwork, tuple[Edge, ...]]:
    """Return the structure without some edges, and these."""
    chosen = rng.permutation(len(network.edges))[:n_edges]
    gone = tuple(network.edges[i] for i in sorted(chosen))
    parents = {c: [p for p in network.parents[c] if (p, c) not in gone] for c in network.nodes}
    return BayesianNetwork(parents, network.states), gone


def move_tables(
    network: BayesianNetwork, nodes: Iterable[str], share: float, rng: np.random.Generator
) -> BayesianNetwork:
    """Return the network with tables of some nodes moved towards others, drawn evenly."""
    cpts: dict[str, Any] = dict(network.cpts)
    for node in nodes:
        table = network.cpts[node]
        other = rng.dirichlet(np.ones(table.shape[-1]), table.shape[:-1])
        cpts[node] = (1 - share) * table + share * other
    return network.with_cpts(cpts)


def _between(one: BayesianNetwork, other: BayesianNetwork, share: float) -> BayesianNetwork:
    return one.with_cpts((1 - share) * one.probabilities + share * other.probabilities)


def mix_networks(
    networks: list[BayesianNetwork], shares: list[float]
) -> Callable[[int, int], Codes]:
    """Return a function that draws rows, each from one of the networks."""

    def draw(n_rows: int, seed: int) -> Codes:
        ends = np.rint(np.cumsum(shares) * n_rows).astype(int)
        sizes = np.diff(ends, prepend=0)
        parts = [
            sample(network, int(n), seed + 31 * k)
            for k, (network, n) in enumerate(zip(networks, sizes, strict=True))
        ]
        rows: Codes = np.vstack(parts)
        return rows[np.random.default_rng(seed).permutation(n_rows)]

    return draw


# --- one cell -------------------------------------------------------------------------------------


def measure_misfit(cell: MisfitCell) -> Record:
    """Fit one cell, and count beside it.

    `R` is the total variation from the population's tables over that of counting the good rows;
    losses are in nats a row of rows kept aside, against counting the good rows.
    """
    world = build_world(*cell.world)
    rows = world.draw(cell.n_rows, cell.seed + 1)
    is_bad = np.zeros(len(rows), bool)
    if cell.adversary != "none":
        rows, is_bad = corrupt(rows, world.base, cell.adversary, cell.eps, cell.seed + 2)
    fit = RobustEstimator(world.structure, random_state=cell.seed, n_threads=1, **PRIOR).fit(rows)
    found = {
        "good": count_rows(world.structure, rows[~is_bad]),
        "counting": count_rows(world.structure, rows),
        "ours": fit.network_,
    }
    errors = {k: float(total_variation(world.target, q, n_draws=N_DRAWS)) for k, q in found.items()}
    scores = {k: score_rows(q, world.judges) for k, q in found.items()}
    weights = fit.row_weights_
    record: Record = {
        "world": list(cell.world),
        "R": errors["ours"] / errors["good"],
        "R_counting": errors["counting"] / errors["good"],
        "loss": scores["good"] - scores["ours"],
        "loss_counting": scores["good"] - scores["counting"],
        "caught": 1 - float(weights[is_bad].mean()) if is_bad.any() else 0.0,
        "lost": 1 - float(weights[~is_bad].mean()),
        "is_exact": fit.misfit_ is not None and fit.misfit_.is_exact,
        "n_classes": fit.misfit_.n_classes if fit.misfit_ is not None else 0,
    }
    if world.removed:
        record |= score_edges(world, fit)
    return record


# --- missing edges --------------------------------------------------------------------------------


def score_edges(world: World, fit: RobustEstimator) -> Record:
    """Return how many removed edges are named, and how many named pairs are right.

    A removed edge is sought if it would gain at least `SOUGHT_GAIN`, and found if its pair is
    named, either way round. A named pair is right if a removed edge joins it, or if the two are
    d-connected in the whole network given the child's parents in the thinned one: then they do
    depend on each other in the population, and the thinned network says that they do not.
    """
    named = [
        (fit.network_.nodes[edge.parent], fit.network_.nodes[edge.child])
        for edge in fit.result_.deeper.edges
    ]
    removed = {frozenset(edge) for edge in world.removed}
    gains = [find_gain(world, edge) for edge in world.removed]
    sought = {
        frozenset(edge)
        for edge, gain in zip(world.removed, gains, strict=True)
        if gain >= SOUGHT_GAIN
    }
    pairs = {frozenset(edge) for edge in named}
    is_right = [
        frozenset(edge) in removed
        or are_connected(world.base.parents, *edge, world.structure.parents[edge[1]])
        for edge in named
    ]
    return {
        "n_sought": len(sought),
        "n_found": len(sought & pairs),
        "n_named": len(named),
        "n_right": sum(is_right),
        "n_removed_named": len(removed & pairs),
        "gains": gains,
    }


def find_gain(world: World, edge: Edge) -> float:
    """Return what an edge would gain in the population, in nats a row."""
    before = count_rows(world.structure, world.judges)
    after = count_rows(world.structure.with_edges([edge]), world.judges)
    return score_rows(after, world.judges) - score_rows(before, world.judges)


def are_connected(
    parents: dict[str, tuple[str, ...]] | Any, one: str, other: str, given: Iterable[str]
) -> bool:
    """Whether two nodes are d-connected given others.

    By the moral graph of all their ancestors, without the nodes that are given.
    """
    shut = set(given)
    kept, waiting = set[str](), [one, other, *shut]
    while waiting:
        node = waiting.pop()
        if node not in kept:
            kept.add(node)
            waiting.extend(parents[node])
    beside: dict[str, set[str]] = {node: set() for node in kept}
    for node in kept:
        family = [node, *parents[node]]
        for member in family:
            beside[member].update(family)
    seen, waiting = {one}, [one]
    while waiting:
        for node in beside[waiting.pop()] - seen - shut:
            seen.add(node)
            waiting.append(node)
    return other in seen
