"""Where the judge's coefficients come from, and how well it judges tables it has not seen.

`python -m benchmarks judge` searches every table of the packages that may be opened, with three
structures (a tree, greedy BIC, and a hunch that lacks most edges), clean and planted, all rows and
few of them; and rows drawn from networks that are then taken for exact, lose the parents of some
nodes, or lose nodes. Every group that is found is bad rows or not; two fifths of the rows are never
bad, but a class. A logistic function learns that, one for groups beside rows that look like the
network's and one for others. A group of a table weighs what a wrong decision about it costs on rows
kept aside (at most one nat a row, 0.1 added), six times that if the table is clean; a group of an
exact network weighs 8, of one that lost parents 10 (3 where the rest does not look exact), of one
that lost nodes 1: a hidden cause of few rows cannot be told from bad ones. All that is reported is
of packages that were left out; a network is a package. Groups are kept in `judged_groups.json`,
where the tests find them; `--write` puts the coefficients into `_learn/judge.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.measure import say
from benchmarks.real_tables import STRUCTURES, WAYS, build_case, list_tables, plant
from benchmarks.scenes import build_network, draw_scene
from robustbn import BayesianNetwork, sample
from robustbn._core.config import RobustConfig
from robustbn._learn import judge
from robustbn._learn.judge import (
    Traits,
    find_exactness,
    find_traits,
    keep_at,
    probability,
    set_beside,
    try_acts,
)
from robustbn._learn.multiplicity import heed_design
from robustbn._learn.search import begin, search
from robustbn._learn.study import Study
from robustbn._rows.memory import RowsInMemory
from robustbn.adversary import KINDS

SHARES = (0.03, 0.1, 0.25)
FEW = ("two stuck", "two swapped")  # ways to spoil two columns
PLANTED = 4  # of the 24 ways and shares, drawn for each table and structure
FEW_ROWS = (250, 1_000)  # rows of the same tables, clean and planted once
EXACT = (
    "example:alarm",
    "bif:asia",
    "tree:10",
    "tree:20",
    "tree:50",
    "graph:30:120",
    "categorical:8:30",
    "categorical:20:100",
)
N_ROWS, N_JUDGES = (30_000, 8_000), 20_000  # of exact networks, by seed
CLASSES, CLASS = (
    ("network", "product", "flipped", "shift", "rowflip"),
    0.4,
)  # so many are no mistake
N_LACKING = 10  # of each network, that lack parents or nodes; half of them with bad rows
FLOOR = 1e-4  # of a probability, where rows kept aside are judged
CLEAN = 6.0  # times: what a group of a clean table weighs
LEAST, MOST = 0.1, 1.0  # that a group weighs beside, and at most by, what deciding it wrongly costs
OF_NETWORKS = {
    "exact": 8.0,
    "classes": 3.0,
    "cut": 10.0,
    "hidden": 1.0,
}  # that a group weighs there
OF_CUT = 3.0  # the same, beside rows that do not look like the network's
GROUPS = Path(__file__).parent / "judged_groups.json"
LEAST_WEIGHT = 1e-3  # of a group: those that weigh less are not learned from
RIDGE = 1.0  # precision of a coefficient, its trait scaled to a spread of one


@dataclass(frozen=True)
class Cell:
    """Some rows: a table or a network by name, and what was done to its rows; by default all."""

    source: str
    structure: str
    way: str
    eps: float
    seed: int = 0
    n_rows: int | None = None

    @property
    def package(self) -> str:
        """What is left out together."""
        return self.source.split("/")[0]

    @property
    def is_table(self) -> bool:
        """Whether its rows are of a table; otherwise they are drawn."""
        return "/" in self.source

    @property
    def is_usual(self) -> bool:
        """Whether it is all rows of a table with a fair structure, at most a quarter planted."""
        return self.structure in STRUCTURES and self.n_rows is None and self.eps < CLASS


@dataclass(frozen=True, eq=False)
class Example:
    """What was found among the rows of a cell, and what is true of it.

    Parameters
    ----------
    exactness : how surely the rest looks like rows of the network, from 0 to 1.
    traits : of each group.
    counts : weight of each component on each cell, the main class first; shape (M, 1 + K).
    good, plain : counts of the good rows, and of all.
    judges : share of the rows kept aside on each cell.
    cards : states of each configuration.
    mass : weight of good and bad rows in each component; shape (2, 1 + K).
    """

    cell: Cell
    exactness: float
    traits: list[Traits]
    counts: NDArray[np.float64]
    good: NDArray[np.float64]
    plain: NDArray[np.float64]
    judges: NDArray[np.float64]
    cards: NDArray[np.int64]
    mass: NDArray[np.float64]

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        """Which groups are mostly bad rows; shape (K,)."""
        is_bad: NDArray[np.bool_] = self.mass[1, 1:] > self.mass[0, 1:]
        return is_bad

    def loss(self, kept: NDArray[np.float64]) -> float:
        """Return the nats a row kept aside that are lost, over counting the good rows alone."""
        return self._score(self.good) - self._score(self.counts @ np.append(1.0, kept))

    @property
    def loss_of_counting(self) -> float:
        """The same of all rows, counted."""
        return self._score(self.good) - self._score(self.plain)

    def lost(self, kept: NDArray[np.float64]) -> float:
        """Return the share of the good rows' weight that goes."""
        return float(self.mass[0, 1:] @ (1 - kept) / self.mass[0].sum())

    def _score(self, counts: NDArray[np.float64]) -> float:
        start = np.concatenate([[0], np.cumsum(self.cards)[:-1]])
        tables = (counts + 0.5) / np.repeat(np.add.reduceat(counts + 0.5, start), self.cards)
        of_cell = np.repeat(self.cards, self.cards)
        return float(self.judges @ np.log((1 - FLOOR) * tables + FLOOR / of_cell))

    @property
    def stakes(self) -> NDArray[np.float64]:
        """Nats a row that a wrong decision about each group costs, the others decided well."""
        kept = np.where(self.is_bad, 0.0, 1.0)
        best, found = self.loss(kept), np.zeros(len(kept))
        for k in range(len(kept)):
            other = kept.copy()
            other[k] = 1 - other[k]
            found[k] = max(self.loss(other) - best, 0.0)
        return found


# --- rows -----------------------------------------------------------------------------------------


def plan(step: int = 1) -> list[Cell]:
    """Return the cells of every so many tables and networks."""
    cells = []
    ways = [(way, eps) for way in (*WAYS, *FEW) for eps in SHARES]
    for t, table in enumerate(list_tables()[::step]):
        for s, structure in enumerate((*STRUCTURES, "hunch")):
            rng = np.random.default_rng([t, s])
            drawn = rng.permutation(len(ways))[:PLANTED]
            chosen = [("clean", 0.0), *(ways[i] for i in drawn)]
            cells += [Cell(table, structure, way, eps) for way, eps in chosen]
            for n in FEW_ROWS:
                cells += [Cell(table, structure, way, eps, 0, n) for way, eps in chosen[:2]]
            cells.append(Cell(table, structure, str(rng.choice(WAYS)), CLASS))
    kinds = [kind for kind in KINDS if kind != "adaptive"]
    for n, name in enumerate(EXACT[::step]):
        rng = np.random.default_rng([9, n])
        cells += [Cell(name, "exact", "clean", 0.0, seed) for seed in (0, 1, 2, 3)]
        cells += [Cell(name, "exact", kind, eps) for kind in (*kinds, *FEW) for eps in SHARES]
        for seed in range(N_LACKING):
            way, eps = (rng.choice([*kinds, *FEW]), rng.choice(SHARES))
            bad = (str(way), float(eps)) if seed % 2 else ("clean", 0.0)
            cells += [Cell(name, lacking, *bad, seed) for lacking in ("cut", "hidden")]
        cells += [Cell(name, "classes", kind, CLASS) for kind in CLASSES]
    return cells


def draw(cell: Cell) -> tuple[BayesianNetwork, Any, NDArray[np.bool_], Any]:
    """Return the network, the rows, which of them are bad, and rows to judge by."""
    if cell.is_table:
        case = build_case(cell.source, cell.structure)
        if cell.way == "clean":
            return case.network, case.rows, np.zeros(len(case.rows), bool), case.judges
        rng = np.random.default_rng([5, len(case.cards), int(1000 * cell.eps)])
        spoil = plant_few if cell.way in FEW else plant
        rows, is_bad = spoil(case.rows, case.cards, cell.way, cell.eps, rng)
        return case.network, rows, is_bad & (cell.eps < CLASS), case.judges
    truth = build_network(cell.source, cell.seed)
    way, n = "none" if cell.way in ("clean", *FEW) else cell.way, N_ROWS[cell.seed // 2 % 2]
    scene = draw_scene(truth, way, cell.eps, n, cell.seed + 7)
    rows, is_bad = scene.rows, scene.is_bad & (cell.structure != "classes")
    if cell.way in FEW:
        rng = np.random.default_rng([6, cell.seed])
        rows, is_bad = plant_few(rows, list(truth.layout.cards), cell.way, cell.eps, rng)
    judges = sample(truth, N_JUDGES, cell.seed + 99)
    network, shown = reduce_network(truth, cell)
    return network, rows[:, shown], is_bad, judges[:, shown]


def reduce_network(truth: BayesianNetwork, cell: Cell) -> tuple[BayesianNetwork, list[int]]:
    """Return a network that lacks parents of some nodes, or some nodes; and the columns shown."""
    rng, nodes = np.random.default_rng(cell.seed), list(truth.nodes)
    cut: set[str] = set()
    gone: set[str] = set()
    if cell.structure == "cut":
        some = [node for node in nodes if truth.parents[node]]
        n_cut = min(int(rng.choice([1, 2, 8])), len(some) // 2)
        cut = set(rng.choice(some, n_cut, replace=False).tolist())
    elif cell.structure == "hidden":
        some = [n for n in nodes if sum(n in truth.parents[child] for child in nodes) > 1]
        gone = set(rng.choice(some, min(int(rng.choice([1, 2])), len(some)), replace=False))
    shown = [i for i, node in enumerate(nodes) if node not in gone]
    parents = {
        nodes[i]: [p for p in truth.parents[nodes[i]] if p not in gone and nodes[i] not in cut]
        for i in shown
    }
    return BayesianNetwork(parents, {n: list(truth.states[n]) for n in parents}), shown


def plant_few(
    X: Any, cards: list[int], way: str, eps: float, rng: np.random.Generator
) -> tuple[Any, NDArray[np.bool_]]:
    """Return the rows with two columns of a share of them spoilt, and which rows they are."""
    rows, (n, d) = X.copy(), X.shape
    bad = rng.choice(n, int(eps * n), replace=False)
    alike = [(i, j) for i in range(d) for j in range(i) if cards[i] == cards[j]]
    first, second = alike[rng.integers(len(alike))] if alike else rng.permutation(d)[:2]
    if way == "two swapped" and alike:
        rows[bad, first], rows[bad, second] = X[bad, second], X[bad, first]
    else:
        for j in (first, second):
            rows[bad, j] = np.bincount(X[:, j], minlength=cards[j]).argmin()
    is_bad = np.zeros(n, bool)
    is_bad[bad] = True
    return rows, is_bad


def study_cell(cell: Cell) -> Example:
    """Search the rows of a cell, and find the traits of every group."""
    network, rows, is_bad, judges = draw(cell)
    rows, is_bad = rows[: cell.n_rows], is_bad[: cell.n_rows]
    config = RobustConfig(n_threads=1)
    survey = RowsInMemory(network, rows, None, 1, ()).survey(None, len(rows), 0)
    study = heed_design(network, Study.of(network, survey, None, config, lambda _: None))
    state = search(begin(study, config.sample_size(network.layout)))
    exactness = find_exactness(state)
    traits = find_traits(state)
    if exactness < 1:
        traits = [t | try_acts(set_beside(state, k)) for k, t in enumerate(traits)]
    shares, which = state.population.shares, state.sample.which
    counts = state.sample.rows.count(shares)
    scale = len(rows) / len(shares)
    plain = survey.rows
    return Example(
        cell,
        exactness,
        traits,
        counts * scale,
        plain.count((~is_bad).astype(np.float32)),
        plain.count(),
        RowsInMemory(network, judges, None, 1, ()).rows.count() / len(judges),
        network.layout.config_cards,
        np.stack([shares[~is_bad[which]].sum(axis=0), shares[is_bad[which]].sum(axis=0)]),
    )


def study_quietly(cell: Cell) -> Example:
    """Do the same in a process of its own."""
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        return study_cell(cell)


def gather(cells: Sequence[Cell], n_jobs: int) -> list[Example]:
    """Return an example of each cell."""
    examples = []
    with ProcessPoolExecutor(n_jobs) as pool:
        for example in pool.map(study_quietly, cells, chunksize=10):
            examples.append(example)
            if len(examples) % 100 == 0:
                say(f"{len(examples)} of {len(cells)} cells")
    return examples


# --- learning -------------------------------------------------------------------------------------


Coefficients = dict[bool, Traits]  # of groups beside exact rows, and of others
NAMES = {True: "BESIDE_EXACT", False: "BESIDE_OTHERS"}  # of the coefficients, in the source


@dataclass(frozen=True)
class Group:
    """One group: what the judge is told of it, and what is true of it.

    Parameters
    ----------
    package : that is left out together with it.
    exactness : how surely the rest looks like rows of the network, from 0 to 1.
    weights : that a decision about it has, beside exact rows and beside others.
    """

    package: str
    exactness: float
    traits: Traits
    is_bad: bool
    weights: tuple[float, float]


def list_groups(example: Example) -> list[Group]:
    """Return the groups of an example."""
    package, exactness = example.cell.package, example.exactness
    return [
        Group(package, exactness, t, bool(bad), (exactness * beside, (1 - exactness) * others))
        for t, bad, beside, others in zip(
            example.traits, example.is_bad, *map(_weigh, (example,) * 2, NAMES), strict=True
        )
    ]


def learn(groups: Sequence[Group]) -> Coefficients:
    """Return the coefficients, by trait; a group teaches either as much as it is judged by it."""
    return {
        is_exact: _learn_one(
            getattr(judge, name), groups, [g.weights[not is_exact] for g in groups]
        )
        for is_exact, name in NAMES.items()
    }


def _learn_one(traits: Iterable[str], groups: Sequence[Group], weights: Sequence[float]) -> Traits:
    names = [name for name in traits if name != "intercept"]
    some = [(g, w) for g, w in zip(groups, weights, strict=True) if w > LEAST_WEIGHT]
    X = np.array([[group.traits[name] for name in names] for group, _ in some])
    y, weights = [group.is_bad for group, _ in some], [w for _, w in some]
    center, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-9)
    found = LogisticRegression(C=1 / RIDGE, max_iter=2000).fit((X - center) / spread, y, weights)
    slopes = found.coef_[0] / spread
    intercept = float(found.intercept_[0] - slopes @ center)
    return dict(zip(names, slopes.tolist(), strict=True)) | {"intercept": intercept}


def _weigh(example: Example, is_exact: bool) -> NDArray[np.float64]:
    if not example.cell.is_table:
        weight = OF_NETWORKS[example.cell.structure]
        if not is_exact:  # where the others say nothing that tables do not say better
            weight = OF_CUT if example.cell.structure == "cut" else 0.0
        return np.full(len(example.traits), weight)
    times = CLEAN if example.cell.way == "clean" else 1.0
    return (LEAST + np.minimum(example.stakes, MOST)) * times


def leave_out(groups: Sequence[Group]) -> dict[str, Coefficients]:
    """Return for each package the coefficients that were learned without it."""
    packages = sorted({group.package for group in groups})
    return {p: learn([group for group in groups if group.package != p]) for p in packages}


def write_groups(groups: Sequence[Group], path: Path = GROUPS) -> None:
    """Keep groups in a file, a line each: names of traits are told once."""
    names = list(dict.fromkeys(name for group in groups for name in group.traits))
    lines = []
    for g in groups:
        traits = [_round(g.traits[name]) if name in g.traits else None for name in names]
        lines.append(
            json.dumps([g.package, _round(g.exactness), traits, g.is_bad, *map(_round, g.weights)])
        )
    told = ",\n".join(lines)
    path.write_text(f'{{"traits": {json.dumps(names)},\n"groups": [\n{told}\n]}}\n')


def read_groups(path: Path = GROUPS) -> list[Group]:
    """Return the groups of a file."""
    kept = json.loads(path.read_text())
    found = []
    for package, exactness, values, is_bad, *weights in kept["groups"]:
        known = zip(kept["traits"], values, strict=True)
        traits = {name: value for name, value in known if value is not None}
        found.append(Group(package, exactness, traits, is_bad, tuple(weights)))
    return found


def _round(value: float) -> float:
    return float(f"{value:.4g}")


# --- what it comes to -----------------------------------------------------------------------------


Judged = Sequence[tuple[Example, NDArray[np.float64]]]
Calibrated = tuple[float, float, int]


def summarise(judged: Judged, keep: Callable[[float], float] = keep_at) -> dict[str, float]:
    """Return what is left of counting's loss, and how often harm is done."""
    decided = [(e, np.array([keep(p) for p in chances])) for e, chances in judged]
    planted = [(e, kept) for e, kept in decided if e.cell.way != "clean"]
    clean = [(e, kept) for e, kept in decided if e.cell.way == "clean"]
    losses = np.array([max(e.loss(kept), 0) for e, kept in planted])
    counting = np.array([max(e.loss_of_counting, 0) for e, _ in planted])
    return {
        "cells": len(planted),
        "left": losses.sum() / counting.sum(),
        "worse": float(np.mean(losses > counting + 0.01)),
        "alarms": float(np.mean([e.lost(kept) > 0.01 for e, kept in clean])),
        "lost": float(np.mean([e.lost(kept) for e, kept in planted])),
    }


def calibrate(groups: Sequence[Group], left_out: dict[str, Coefficients]) -> list[Calibrated]:
    """Return for tenths of the probability its mean, the share that is bad, and how many are."""
    chances = np.array([judge_group(left_out[group.package], group) for group in groups])
    is_bad = np.array([group.is_bad for group in groups])
    tenths = np.minimum((chances * 10).astype(int), 9)
    return [
        (float(chances[tenths == t].mean()), float(is_bad[tenths == t].mean()), int(n))
        for t in range(10)
        if (n := np.count_nonzero(tenths == t))
    ]


def judge_group(coefficients: Coefficients, group: Group) -> float:
    """Return the probability of a group to be bad: by how surely the rest looks exact."""
    sides = ((True, group.exactness), (False, 1 - group.exactness))
    return sum(p * probability(group.traits, coefficients[side]) for side, p in sides if p > 0)


def main(arguments: list[str]) -> None:
    """Gather examples, say how well packages left out are judged, and print coefficients."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks judge", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--step", type=int, default=1, help="use every so many tables and networks")
    parser.add_argument("--write", action="store_true", help="put the coefficients into the source")
    chosen = parser.parse_args(arguments)
    examples = gather(plan(chosen.step), chosen.jobs)
    of_example = [list_groups(example) for example in examples]
    groups = [group for some in of_example for group in some]
    left_out = leave_out(groups)
    judged = [
        (e, np.array([judge_group(left_out[e.cell.package], g) for g in some]))
        for e, some in zip(examples, of_example, strict=True)
    ]
    for title, wanted in KINDS_OF_CELLS.items():
        some = [each for each in judged if wanted(each[0].cell)]
        print(title, {name: round(value, 4) for name, value in summarise(some).items()})
    known = [(e, e.is_bad.astype(float)) for e, _ in judged if KINDS_OF_CELLS["tables"](e.cell)]
    print("who knows", {name: round(value, 4) for name, value in summarise(known).items()})
    for mean, share, n in calibrate(groups, left_out):
        print(f"probability {mean:.2f}: {share:.2f} of {n} are bad")
    for is_exact, by in learn(groups).items():
        print(NAMES[is_exact], by)
        if chosen.write:
            write_groups(groups)
            write(NAMES[is_exact], by)


KINDS_OF_CELLS: dict[str, Callable[[Cell], bool]] = {
    "tables": lambda c: c.is_usual and c.way not in FEW,
    "tables, with two columns": lambda c: c.is_usual,
    "few rows": lambda c: c.is_table and c.n_rows is not None,
    "a hunch": lambda c: c.structure == "hunch" and c.n_rows is None and c.eps < CLASS,
    "exact networks": lambda c: c.structure == "exact",
    "lacking parents": lambda c: c.structure == "cut",
    "lacking nodes": lambda c: c.structure == "hidden",
}


def write(name: str, coefficients: Traits) -> None:
    """Put coefficients into the source of the judge."""
    path = Path(str(judge.__file__))
    lines = "".join(f'    "{trait}": {value:.3f},\n' for trait, value in coefficients.items())
    block = f"{name}: Traits = {{\n{lines}}}\n"
    pattern = rf"(?s){name}: Traits = \{{.*?\}}\n"
    path.write_text(re.sub(pattern, lambda _: block, path.read_text()))
