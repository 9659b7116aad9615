"""Random networks with random tables of rows, and settings to fit them with; a seed makes a case.

Sizes come from distributions with long tails: most cases take milliseconds, and now and then one
has thousands of nodes, hundreds of states or tens of thousands of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import robustbn

MOST_NODES, MOST_STATES, MOST_PARENTS, MOST_ROWS = 2_000, 256, 8, 30_000
MOST_CODES = 1_000_000  # rows times nodes
CELL_LIMITS = (300, 3_000, 30_000)  # of one node's table


@dataclass(frozen=True)
class Case:
    """A network, a table, and how it is fitted.

    Parameters
    ----------
    codes : of the rows, shape (N, d); a code one past the last state is a hole.
    table : the same as it is handed over: codes, or labels in an Arrow table.
    """

    seed: int
    network: robustbn.BayesianNetwork
    codes: NDArray[np.int64]
    table: Any
    settings: dict[str, Any]
    fit_settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        cards = self.network.layout.cards
        degree = max(len(f) - 1 for f in self.network.layout.families)
        holes = float((self.codes == np.array(cards)).mean()) if self.codes.size else 0.0
        return (
            f"seed {self.seed}: {len(self.codes)} rows, {len(cards)} nodes, {min(cards)} to "
            f"{max(cards)} states, up to {degree} parents, {holes:.0%} holes, {self.settings}"
            f"{' ' + str(sorted(self.fit_settings)) if self.fit_settings else ''}"
        )


def draw_case(seed: int, most_nodes: int = MOST_NODES, most_rows: int = MOST_ROWS) -> Case:
    """Return the case of a seed; smaller ones where less is the most."""
    rng = np.random.default_rng([20_210, seed])
    network = _draw_network(rng, most_nodes)
    codes = _draw_rows(network, seed, rng, most_rows)
    settings = _draw_settings(rng, network)
    fit_settings: dict[str, Any] = {}
    if rng.random() < 0.1:
        weights = rng.choice([0.0, 1.0, 2.0, 1e-9, 1e9], len(codes))
        fit_settings["sample_weight"] = weights if rng.random() < 0.5 else rng.random(len(codes))
    if rng.random() < 0.05:
        fit_settings["known"] = rng.choice([-1, 0, 0, 0, 0, 0, 1], len(codes))
    return Case(seed, network, codes, _hand_over(network, codes, rng), settings, fit_settings)


# --- networks -------------------------------------------------------------------------------------


def _long_tail(rng: np.random.Generator, most: int, shape: float) -> int:
    """Return a number from 1 to `most`, mostly small."""
    return int(min(rng.pareto(shape) + 1, most))


def _draw_network(rng: np.random.Generator, most: int) -> robustbn.BayesianNetwork:
    d = 1 if rng.random() < 0.08 else int(min(2 + 4 * rng.pareto(1.1), most))
    cards = _draw_cards(rng, d)
    parents = _draw_parents(rng, cards)
    columns = rng.permutation(d)  # their order is not that of the edges
    names = [f"n{columns[i]}" for i in range(d)]
    tables = {
        names[i]: _draw_table(rng, [cards[p] for p in parents[i]], cards[i]) for i in range(d)
    }
    order = np.argsort(columns)
    return robustbn.BayesianNetwork(
        {names[i]: [names[p] for p in parents[i]] for i in order},
        {names[i]: [f"s{v}" for v in range(cards[i])] for i in order},
        tables,
    )


def _draw_cards(rng: np.random.Generator, d: int) -> list[int]:
    kind = rng.choice(["binary", "few", "mixed", "one", "widest"], p=[0.3, 0.3, 0.3, 0.05, 0.05])
    if kind == "binary":
        return [2] * d
    if kind == "few":
        return [int(c) for c in rng.integers(1, 6, d)]
    if kind == "one":
        return [1 if rng.random() < 0.7 else 3 for _ in range(d)]
    if kind == "widest":
        wide = rng.random(d) < min(1.0, 8 / d)
        return [int(rng.choice([255, MOST_STATES])) if w else 2 for w in wide]
    return [_long_tail(rng, MOST_STATES, 0.7) for _ in range(d)]


def _draw_parents(rng: np.random.Generator, cards: list[int]) -> list[list[int]]:
    """Return earlier nodes as parents, within one of several components if there are some."""
    d, limit = len(cards), int(rng.choice(CELL_LIMITS, p=[0.5, 0.4, 0.1]))
    limit = min(limit, max(300, 300_000 // d))
    most = int(rng.choice([0, 1, 2, 3, MOST_PARENTS], p=[0.1, 0.3, 0.25, 0.2, 0.15]))
    n_parts = int(rng.choice([1, 1, 1, 2, 5]))
    reach = int(rng.choice([3, 20, d + 1]))  # how far back parents are looked for
    parents: list[list[int]] = []
    for i in range(d):
        pool = [p for p in range(max(0, i - reach * n_parts), i) if p % n_parts == i % n_parts]
        rng.shuffle(pool)
        chosen, size = [], cards[i]
        for p in pool[: most if rng.random() < 0.5 else rng.integers(most + 1)]:
            if size * cards[p] <= limit:
                chosen.append(p)
                size *= cards[p]
        parents.append(chosen)
    return parents


def _draw_table(rng: np.random.Generator, shape: list[int], card: int) -> NDArray[np.float64]:
    kind = rng.choice(["flat", "sharp", "deterministic", "even", "holey"])
    if kind == "even":
        return np.full([*shape, card], 1 / card)
    if kind == "deterministic":
        return np.eye(card)[rng.integers(card, size=shape)]
    if kind == "sharp":
        table = rng.gamma(0.1, size=[*shape, card]) + 1e-12
    else:
        table = rng.gamma(1.0, size=[*shape, card])
    if kind == "holey":
        table = np.where(rng.random(table.shape) < 0.4, 0.0, table)
        table[..., 0] += 1e-3
    scaled: NDArray[np.float64] = table / table.sum(axis=-1, keepdims=True)
    return scaled


# --- rows -----------------------------------------------------------------------------------------


def _draw_rows(
    network: robustbn.BayesianNetwork, seed: int, rng: np.random.Generator, most: int
) -> NDArray[np.int64]:
    cards = np.array(network.layout.cards)
    most = max(1, min(most, MOST_CODES // len(cards)))
    n = int(min(20 * (rng.pareto(0.7) + 1), most))
    if rng.random() < 0.15:
        n = int(rng.integers(1, 4))
    codes = robustbn.sample(network, n, random_state=seed).astype(np.int64)
    noise = rng.integers(0, cards, (n, len(cards)))
    kind = rng.choice(
        ["drawn", "noise", "mixed", "copies", "group", "same"], p=[0.3, 0.1, 0.2, 0.15, 0.2, 0.05]
    )
    if kind == "noise":
        codes = noise
    elif kind == "mixed":
        is_bad = rng.random(n) < rng.choice([0.02, 0.1, 0.3, 0.6])
        codes[is_bad] = noise[is_bad]
    elif kind == "copies":
        codes = codes[rng.integers(0, _long_tail(rng, n, 0.4), n)]
    elif kind == "group":
        codes[: int(n * rng.choice([0.05, 0.2, 0.49]))] = noise[0]
        codes = codes[rng.permutation(n)]
    elif kind == "same":
        codes[:] = codes[0]
    if rng.random() < 0.15:  # constant columns
        fixed = rng.random(len(cards)) < 0.5
        codes[:, fixed] = noise[0, fixed]
    return _punch(codes, cards, rng)


def _punch(
    codes: NDArray[np.int64], cards: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the rows with holes: none, some, those of a column, or nothing but holes."""
    n, d = codes.shape
    kind = rng.choice(["none", "some", "column", "row", "all"], p=[0.6, 0.25, 0.08, 0.06, 0.01])
    if kind == "none":
        return codes
    is_hole = np.zeros((n, d), bool)
    if kind == "some":
        # sums over nearly all of a large network are sampled, which takes minutes
        share = rng.choice([0.01, 0.1, 0.5, 0.95 if d <= 10 else 0.3]) * (
            rng.random(d) < rng.choice([0.2, 1.0])
        )
        is_hole = rng.random((n, d)) < share
    elif kind == "column":
        is_hole[:, rng.integers(d)] = True
    elif kind == "row":
        is_hole[rng.random(n) < 0.3] = True
    else:
        is_hole[:] = True
    return np.where(is_hole, cards, codes)


def _hand_over(
    network: robustbn.BayesianNetwork, codes: NDArray[np.int64], rng: np.random.Generator
) -> Any:
    """Return rows as codes, if none misses a value, or as labels in an Arrow table."""
    cards = np.array(network.layout.cards)
    is_hole = codes == cards
    if not is_hole.any() and rng.random() < 0.5:
        return codes if rng.random() < 0.5 else np.asfortranarray(codes[::-1])
    columns = {}
    for i, node in enumerate(network.nodes):
        indices = pa.array(codes[:, i].astype(np.int32), mask=is_hole[:, i])
        columns[node] = pa.DictionaryArray.from_arrays(indices, pa.array(network.states[node]))
    return pa.table(columns)


# --- settings -------------------------------------------------------------------------------------


def _draw_settings(rng: np.random.Generator, network: robustbn.BayesianNetwork) -> dict[str, Any]:
    """Return settings of which most are the defaults."""
    odd: dict[str, list[Any]] = {
        "contamination": [0.01, 0.1, 0.3, 0.49],
        "misfit": ["none"],
        "copies": ["count", "distrust"],
        "polish": [False],
        "prior": ["laplace", "bdeu", 1.0, 1e-6],
        "on_missing": ["observed", "state", "drop"],
        "missing_is_evidence": [True],
        "sample_rows": [1, 10, 1000],
        "n_threads": [1, 3],
    }
    if network.layout.n_cells < 2_000:
        odd["kernels"] = ["numpy"]
    chosen: dict[str, Any] = {"random_state": int(rng.integers(2**31))}
    for name, values in odd.items():
        if rng.random() < 0.1:
            chosen[name] = values[rng.integers(len(values))]
    return chosen
