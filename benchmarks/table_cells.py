"""Wrong cells in tables that nobody drew from a network: one cell of the benchmark `cells`.

Cells of a table are replaced in one of several ways, and its network is fitted with and without
looking for them. What decides a result is here and in `real_tables.py`; how it is shown is not.
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import Record, code_version
from benchmarks.held_out import PRIOR, count_rows, score_rows
from benchmarks.real_tables import Case, Codes, build_case
from robustbn import RobustEstimator
from robustbn._core.cells import WrongCells
from robustbn._learn.mending import mend_labels

WAYS = ("uniform", "confused", "one site", "misspelt")
SITE = 0.2  # share of the rows, which have all wrong cells if they are made at one site
SPELLINGS = 40  # of a label that is misspelt
MOST_SPELT = 3_000  # rows whose labels are mended
MOST_ASKED = 4_000  # rows that a peer is asked about
EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)  # of probabilities that are given


@dataclass(frozen=True)
class TableCell:
    """A table with a structure, and how its cells are spoilt.

    Parameters
    ----------
    table, structure : as in `real_tables.build_case`.
    way, share : one of `WAYS`, and of the cells; "clean" and 0 for none.
    peer : whether cleanlab is asked, too.
    """

    table: str
    structure: str
    way: str
    share: float
    peer: bool = False
    seed: int = 7
    experiment: str = "wrong cells"


@cache
def version_of_cells() -> str:
    """Return a hash of the package and of the files that decide what is measured here."""
    names = ("held_out", "table_cells", "real_tables")
    return code_version(*(f"benchmarks/{name}.py" for name in names))


def spoil_cells(rows: Codes, cards: list[int], way: str, share: float, seed: int) -> Codes:
    """Return rows with a share of the cells replaced."""
    rng, limits = np.random.default_rng(seed), np.array(cards)
    is_hit, shown = rng.random(rows.shape) < share, (rng.random(rows.shape) * limits)
    if way == "confused":  # each state is taken for the next
        shown = (rows + 1) % limits
    if way == "one site":
        at_site = np.arange(len(rows)) < SITE * len(rows)
        is_hit = at_site[:, None] & (rng.random(rows.shape) < share / SITE)
    return np.where(is_hit, shown.astype(rows.dtype), rows)


def measure_table(cell: TableCell) -> Record:
    """Return what is lost and found; `ours` and `counting` lose nats a row that was kept aside."""
    case = build_case(cell.table, cell.structure)
    if cell.way == "misspelt":
        return _measure_spelling(case, cell)
    rows = spoil_cells(case.rows, case.cards, cell.way, cell.share, cell.seed)
    best = score_rows(count_rows(case.network, case.rows), case.judges)
    start = time.process_time()
    fit = RobustEstimator(case.network, 1e-9, random_state=0, n_threads=1, **PRIOR).fit(rows)
    cpu_s, found = time.process_time() - start, fit.result_.learned.cells
    record: Record = {
        "n_cells": int(rows.size),
        "n_wrong": int((rows != case.rows).sum()),
        "counting": best - score_rows(count_rows(case.network, rows), case.judges),
        "ours": best - score_rows(fit.network_, case.judges),
        "cpu_s": cpu_s,
        **describe_wrong(None if found is None else found.wrong, case.rows, rows),
    }
    if cell.peer and importlib.util.find_spec("cleanlab"):
        record["cleanlab"] = _ask_cleanlab(case, rows)
    return record


def describe_wrong(wrong: WrongCells | None, right: Codes, rows: Codes) -> Record:
    """Return how many cells are named, by probability; and of those: wrong, mended correctly."""
    if wrong is None:
        return {"named": [0] * 6, "are_wrong": [0] * 6, "mended": [0] * 6}
    truth = right[wrong.rows, wrong.columns]
    at = np.clip(np.searchsorted(EDGES, wrong.probability, "right") - 1, 0, 5)
    is_wrong, is_mended = truth != rows[wrong.rows, wrong.columns], truth == wrong.likely
    counts = (np.bincount(at, weights, 6) for weights in (None, is_wrong, is_mended))
    named, are_wrong, mended = (np.asarray(each, int).tolist() for each in counts)
    return {"named": named, "are_wrong": are_wrong, "mended": mended}


def _measure_spelling(case: Case, cell: TableCell) -> Record:
    """Return how misspelt labels are mended at a probability of 0.9."""
    rows = case.rows[:MOST_SPELT]
    rng = np.random.default_rng(cell.seed)
    is_hit, kind = rng.random(rows.shape) < cell.share, rng.integers(0, SPELLINGS, rows.shape)
    right = [[f"label {v}" for v in column] for column in rows.T.tolist()]
    shown = [
        [f"{label}{k}x" if hit else label for label, k, hit in zip(*each, strict=True)]
        for each in zip(right, kind.T.tolist(), is_hit.T.tolist(), strict=True)
    ]
    nodes = list(case.network.nodes)
    parents = tuple(tuple(nodes.index(p) for p in case.network.parents[n]) for n in nodes)
    start = time.process_time()
    found = mend_labels(shown, parents, n_threads=1)
    sure = found.wrong.above(0.9)
    places = zip(sure.rows.tolist(), sure.columns.tolist(), sure.likely.tolist(), strict=True)
    n_mended = sum(found.labels[j][v] == right[j][r] for r, j, v in places)
    return {
        "n_cells": int(rows.size),
        "n_wrong": int(is_hit.sum()),
        "n_changed": len(sure),
        "n_wrong_changed": int(is_hit[sure.rows, sure.columns].sum()),
        "n_mended": n_mended,
        "cpu_s": time.process_time() - start,
    }


def _ask_cleanlab(case: Case, rows: Codes) -> Record:
    """Return what cleanlab flags: each column a label, predicted from the others by boosted trees.

    Its likely value is the most probable one.
    """
    from cleanlab.filter import find_label_issues
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict

    rows, right = rows[:MOST_ASKED], case.rows[:MOST_ASKED]
    flags, likely = np.zeros(rows.shape, bool), rows.copy()
    start = time.process_time()
    for j in range(rows.shape[1]):
        classes, y = np.unique(rows[:, j], return_inverse=True)
        others = np.delete(rows, j, axis=1)
        model = HistGradientBoostingClassifier(max_iter=30, random_state=0)
        p: NDArray[Any] = cross_val_predict(model, others, y, cv=3, method="predict_proba")
        flags[:, j] = find_label_issues(y, p, n_jobs=1)
        likely[:, j] = classes[p.argmax(axis=1)]
    is_wrong = rows != right
    return {
        "n_wrong": int(is_wrong.sum()),
        "n_flagged": int(flags.sum()),
        "n_right": int((flags & is_wrong).sum()),
        "n_mended": int((flags & (likely == right) & is_wrong).sum()),
        "cpu_s": time.process_time() - start,
    }
