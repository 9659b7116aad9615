"""Whether a verdict hangs on the order of nodes, states and rows, or on the seed.

`python -m benchmarks order` fits every table of the packages that may be opened (two structures,
clean, stuck columns and templates), then the same table with its nodes listed in another
order, its states relabelled, its rows shuffled, and with another seed. It prints how often the
share of distrusted rows moves by more than 0.01.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import say
from benchmarks.real_tables import STRUCTURES, build_case, list_tables, plant
from robustbn import BayesianNetwork, RobustEstimator

WAYS, EPS = ("clean", "stuck", "templates"), 0.1
ORDERS = ("nodes", "states", "rows", "seed")
MOVED = 0.01

Cell = tuple[str, str, str]


def reorder(
    order: str, network: BayesianNetwork, rows: Any, rng: np.random.Generator
) -> tuple[BayesianNetwork, Any]:
    """Return the same network and rows in another order."""
    if order == "rows":
        return network, rows[rng.permutation(len(rows))]
    if order == "nodes":
        shuffled = rng.permutation(len(network.nodes))
        nodes = [network.nodes[i] for i in shuffled]
        parents = {node: list(network.parents[node]) for node in nodes}
        return BayesianNetwork(parents, {n: network.states[n] for n in nodes}), rows[:, shuffled]
    rows = rows.copy()
    for j, node in enumerate(network.nodes):
        rows[:, j] = rng.permutation(len(network.states[node]))[rows[:, j]]
    return network, rows


def fit_cell(cell: Cell) -> list[float]:
    """Return the share of distrusted rows, and by how much each order moves it."""
    table, structure, way = cell
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        case, rng = build_case(table, structure), np.random.default_rng(3)
        rows = case.rows if way == "clean" else plant(case.rows, case.cards, way, EPS, rng)[0]
        shares = [find_share(case.network, rows)]
        for order in ORDERS:
            seed = int(order == "seed")
            again = (case.network, rows) if seed else reorder(order, case.network, rows, rng)
            shares.append(find_share(*again, seed))
    return [shares[0], *(abs(share - shares[0]) for share in shares[1:])]


def find_share(network: BayesianNetwork, rows: Any, seed: int = 0) -> float:
    """Return the share of distrusted rows."""
    return float(RobustEstimator(network, random_state=seed, n_threads=1).fit(rows).contamination_)


def main(arguments: list[str]) -> None:
    """Fit every table in every order, and print how often that matters."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks order", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--tables", type=int, default=None, help="use so many of the tables")
    chosen = parser.parse_args(arguments)
    tables = list_tables()[: chosen.tables]
    cells = [(t, s, w) for t in tables for s in STRUCTURES for w in WAYS]
    with ProcessPoolExecutor(chosen.jobs) as pool:
        found = np.array(list(pool.map(fit_cell, cells, chunksize=len(WAYS))))
    for i, order in enumerate(ORDERS, start=1):
        share = float(np.mean(found[:, i] > MOVED))
        say(f"{order}: {share:.1%} of {len(cells)} fits move by more than {MOVED}")
        for j in np.flatnonzero(found[:, i] > MOVED):
            say(f"  {'/'.join(cells[j])}: {found[j, 0]:.3f}, moved by {found[j, i]:.3f}")
