"""Drafts of structures, beside the hill climbing of pgmpy and pyAgrum with the same score.

`python -m benchmarks draft` measures, one part after another:

- held-out: ten real tables, halved; a structure of one half (BIC, at most three parents), its
  tables smoothed by ten rows (BDeu), and the mean log-likelihood of the other half, in nats a row.
- time: tables of 100,000 rows and 30 columns; seconds of the processor, one thread each.
- bad: 10 % of the rows spoilt, in real tables and in rows of networks; pairs of columns that are
  joined in one of two drafts only. The draft of the good rows is compared with the plain draft of
  all rows and with the robust one. `floor`: the same between drafts of the good rows and of
  nineteen in twenty of them, which is what chance alone does.

`--only time` runs a part. Numbers of the code were chosen on the packages `CHOSEN_ON` of
`mistake_tables`; `bad` tells them from the others.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import say
from benchmarks.mistake_tables import CHOSEN_ON
from benchmarks.real_tables import WAYS, Codes, _read_codes, plant
from robustbn import example_network, random_network, sample
from robustbn._core.config import RobustConfig
from robustbn._learn.draft import Limits, Structure, find_structure
from robustbn._learn.draft_rounds import draft_rows
from robustbn.simulate import corrupt

RESULTS = Path(__file__).parent / "results" / "draft.json"
TEN = (
    "AER/CPS1988", "DAAG/nassCDS", "Ecdat/MedExp", "ggplot2/diamonds", "mlmRev/Hsb82",
    "modeldata/credit_data", "plm/Males", "sampleSelection/RandHIE", "survival/flchain",
    "wooldridge/cps91",
)  # fmt: skip
SPOILT = (*TEN, "AER/HealthInsurance", "AER/NMES1988", "survival/nafld1", "wooldridge/k401ksubs")
MOST_ROWS, MOST_SPOILT = 20_000, 8_000
MOST_PARENTS = 3
SMOOTHING = 10.0  # rows, as in BDeu: equivalent structures are then worth the same
KINDS = ("mixture", "product", "shift", "clones", "misjoined", "rowflip")

Learn = Callable[[], Structure]


# --- contenders -----------------------------------------------------------------------------------


def learn_plainly(rows: Codes, cards: Sequence[int]) -> Structure:
    """Return the structure of all rows."""
    return find_structure(rows, cards, Limits(MOST_PARENTS), np.random.default_rng(0))[0]


def learn_robustly(rows: Codes, cards: Sequence[int]) -> Structure:
    """Return the structure of the rows that `robustbn.draft` does not leave out."""
    return draft_rows(rows, cards, Limits(MOST_PARENTS), RobustConfig()).structure


def prepare_pyagrum(rows: Codes, cards: Sequence[int]) -> Learn:
    """Return what learns a structure by pyAgrum's greedy hill climbing, its table made."""
    import pyagrum

    learner = pyagrum.BNLearner(as_frame(rows))
    learner.useScoreBIC()
    learner.useNoPrior()
    learner.useGreedyHillClimbing()
    learner.setMaxIndegree(MOST_PARENTS)
    learner.setNumberOfThreads(1)

    def learn() -> Structure:
        arcs = learner.learnDAG().arcs()
        edges = [[int(learner.nameFromId(end)[1:]) for end in arc] for arc in arcs]
        return as_structure(edges, len(cards))

    return learn


def prepare_pgmpy(rows: Codes, cards: Sequence[int]) -> Learn:
    """Return what learns a structure by pgmpy's hill climbing, its table made."""
    from pgmpy.estimators import HillClimbSearch

    search = HillClimbSearch(as_frame(rows).astype("category"))

    def learn() -> Structure:
        dag = search.estimate("bic-d", max_indegree=MOST_PARENTS, show_progress=False)
        return as_structure([[int(a[1:]), int(b[1:])] for a, b in dag.edges()], len(cards))

    return learn


def as_frame(rows: Codes) -> Any:
    """Return rows as a frame of labels."""
    import pandas as pd

    return pd.DataFrame({f"x{k}": column.astype(str) for k, column in enumerate(rows.T)})


def as_structure(edges: Sequence[Sequence[int]], n_nodes: int) -> Structure:
    """Return the parents of each node."""
    return tuple(tuple(sorted(a for a, b in edges if b == k)) for k in range(n_nodes))


CONTENDERS: dict[str, Callable[[Codes, Sequence[int]], Learn]] = {
    "draft": partial(partial, learn_plainly),
    "robust draft": partial(partial, learn_robustly),
    "pyAgrum": prepare_pyagrum,
    "pgmpy": prepare_pgmpy,
}


# --- measures -------------------------------------------------------------------------------------


def held_out(learned: Codes, others: Codes, cards: Sequence[int], parents: Structure) -> float:
    """Return the mean log-likelihood of other rows, in nats."""
    total = 0.0
    for child, own in enumerate(parents):
        places = []
        for rows in (learned, others):
            place = np.zeros(len(rows), np.int64)
            for p in own:
                place = place * cards[p] + rows[:, p]
            places.append(place)
        q, r = int(np.prod([cards[p] for p in own], dtype=np.int64)), cards[child]
        counts = np.bincount(places[0] * r + learned[:, child], minlength=q * r).reshape(q, r)
        smoothed = counts + SMOOTHING / (q * r)
        logs = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
        total += float(logs[places[1], others[:, child]].mean())
    return total


def count_differences(one: Structure, other: Structure) -> int:
    """Return how many pairs of columns are joined in one structure only."""
    pairs = [{frozenset((p, k)) for k, own in enumerate(s) for p in own} for s in (one, other)]
    return len(pairs[0] ^ pairs[1])


def read(table: str, n_most: int) -> tuple[Codes, list[int]]:
    """Return some rows of a table as codes, in any order, and the states of each column."""
    coded = _read_codes(table)
    if coded is None:
        raise ValueError(f"{table} has too few rows or usable columns.")
    rows, _, cards = coded
    return rows[np.random.default_rng(1).permutation(len(rows))][:n_most], cards


# --- parts ----------------------------------------------------------------------------------------


def measure_held_out(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a line for each table, half and contender."""
    lines = []
    for table in TEN:
        rows, cards = read(table, MOST_ROWS)
        for half in range(given.halves):
            order = np.random.default_rng(half).permutation(len(rows))
            learned, others = rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]
            line: dict[str, Any] = {"part": "held-out", "table": table, "half": half}
            for name in given.contenders:
                structure = CONTENDERS[name](learned, cards)()
                line[name] = round(held_out(learned, others, cards, structure), 5)
            lines.append(line)
            say(str(line))
    return lines


def make_large() -> dict[str, tuple[Codes, Sequence[int]]]:
    """Return tables of 100,000 rows and 30 columns."""
    alarm = example_network("alarm")
    binary = random_network("graph", 30, cards=2, random_state=1)
    mixed = random_network("graph", 30, cards=(2, 5), random_state=1)
    tree = random_network("tree", 30, cards=4, random_state=1)
    drawn = {"ALARM": alarm, "binary graph": binary, "mixed graph": mixed, "tree of four": tree}
    tables: dict[str, tuple[Codes, Sequence[int]]] = {
        name: (np.asarray(sample(net, 100_000, random_state=0))[:, :30], net.layout.cards[:30])
        for name, net in drawn.items()
    }
    rows, cards = read("sampleSelection/RandHIE", 10**6)
    rng = np.random.default_rng(0)
    again = rows[rng.integers(0, len(rows), 100_000)][:, :30]
    noise = (rng.random(again.shape) * np.array(cards[:30])).astype(np.uint8)
    tables["RandHIE"] = np.where(rng.random(again.shape) < 0.02, noise, again), cards[:30]
    return tables


def measure_time(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a line for each large table: seconds of the processor."""
    lines = []
    for name, (rows, cards) in make_large().items():
        line: dict[str, Any] = {"part": "time", "table": name}
        for contender in given.timed:
            learn = CONTENDERS[contender](rows, cards)
            start = time.process_time()
            learn()
            line[contender] = round(time.process_time() - start, 3)
        lines.append(line)
        say(str(line))
    return lines


def measure_bad(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a line for each table and way to spoil it: pairs that differ."""
    lines = []
    for table, way, rows, cards, is_bad in list_spoilt():
        good = rows[~is_bad]
        wanted = learn_plainly(good, cards)
        most = good[np.random.default_rng(2).random(len(good)) > 0.05]
        line = {
            "part": "bad",
            "table": table,
            "way": way,
            "edges": sum(map(len, wanted)),
            "floor": count_differences(wanted, learn_plainly(most, cards)),
            "plain": count_differences(wanted, learn_plainly(rows, cards)),
            "robust": count_differences(wanted, learn_robustly(rows, cards)),
        }
        lines.append(line)
        say(str(line))
    return lines


def list_spoilt() -> Any:
    """Yield tables with 10 % bad rows: name, way, rows, states, and which rows are bad."""
    for table in SPOILT:
        rows, cards = read(table, MOST_SPOILT)
        for way in WAYS:
            dirty, is_bad = plant(rows, cards, way, 0.1, np.random.default_rng(5))
            yield table, way, dirty, cards, is_bad
    networks = {
        "ALARM": example_network("alarm"),
        "graph": random_network("graph", 20, cards=3, random_state=1),
        "tree": random_network("tree", 20, cards=3, random_state=1),
    }
    for name, network in networks.items():
        good = sample(network, 20_000, random_state=0)
        for kind in KINDS:
            dirty, is_bad = corrupt(good, network, kind, eps=0.1, random_state=0)
            yield name, kind, np.asarray(dirty), network.layout.cards, np.asarray(is_bad, bool)


PARTS: dict[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {
    "held-out": measure_held_out,
    "time": measure_time,
    "bad": measure_bad,
}


def summarise(lines: Sequence[dict[str, Any]]) -> str:
    """Return the figures in a few lines."""
    import pandas as pd

    said = []
    for part in PARTS:
        frame = pd.DataFrame([line for line in lines if line["part"] == part])
        if not len(frame):
            continue
        if part == "held-out":
            means = frame.drop(columns=["part", "half"]).groupby("table", sort=False).mean()
            said.append(f"held-out, nats a row:\n{means.round(4).to_string()}")
            said.append(f"mean:\n{means.mean().round(4).to_string()}")
        elif part == "time":
            said.append(f"seconds:\n{frame.drop(columns='part').to_string(index=False)}")
        else:
            is_drawn = ~frame["table"].str.contains("/")
            is_chosen = frame["table"].str.partition("/")[0].isin(CHOSEN_ON)
            groups = {"networks": is_drawn, "tables chosen on": is_chosen,
                      "other tables": ~is_drawn & ~is_chosen}  # fmt: skip
            for name, chosen in groups.items():
                sums = frame[chosen][["floor", "plain", "robust"]].sum()
                if len(frame[chosen]):
                    share = sums["robust"] / max(sums["plain"], 1)
                    said.append(f"bad, {name}: {sums.to_dict()}; robust / plain {share:.2f}")
    return "\n\n".join(said)


def main(arguments: Sequence[str]) -> None:
    """Run `python -m benchmarks draft`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks draft", description=__doc__)
    names = list(CONTENDERS)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--contenders", nargs="*", default=names, choices=names)
    parser.add_argument("--timed", nargs="*", default=names[:3], choices=names)
    parser.add_argument("--halves", type=int, default=3, help="ways to halve a table")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    given = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [line for part in given.only for line in PARTS[part](given)]
    print(summarise(lines))
    if given.write:
        RESULTS.write_text(json.dumps(lines, indent=1) + "\n")
