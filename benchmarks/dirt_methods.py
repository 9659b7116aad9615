"""The methods that `python -m benchmarks dirt` knows, each written as a user's own would be.

A method is a function `fit(network, rows)`. The network has nodes, parents and states, but no
tables; rows are codes, a column for each node. It returns one of

- tables: a `BayesianNetwork`, or a mapping from each node to an array, with an axis for each parent
  and the last for the states of the node;
- a weight for each row, from 0 to 1: the benchmark then counts the rows with these weights;
- both, as a pair (tables, weights).

A function that also takes `share` is told the true share of bad rows (where cells are wrong, of
wrong cells), and the table says so.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import expand_one_hot
from benchmarks.held_out import PRIOR, count_rows
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator

Codes = NDArray[np.uint8]
Weights = NDArray[np.float64]

GUESS = 0.05  # share of the rows that trimming drops if nobody says how many are bad
N_FOLDS = 5  # cleanlab judges a value by tables that its row had no part in; its own default


@dataclass(frozen=True)
class Contestant:
    """A method with its name in tables, and what exactly it does."""

    title: str
    note: str
    fit: Callable[..., Any]

    @property
    def is_told(self) -> bool:
        """Whether it asks for the true share of bad rows."""
        return "share" in inspect.signature(self.fit).parameters

    def learn(
        self, network: BayesianNetwork, rows: Codes, share: float
    ) -> tuple[BayesianNetwork, Weights | None]:
        """Return the learned tables, and the weights of the rows if it gives any."""
        told = {"share": share} if self.is_told else {}
        return read_answer(network, rows, self.fit(network, rows, **told))


def read_answer(
    network: BayesianNetwork, rows: Codes, answer: Any
) -> tuple[BayesianNetwork, Weights | None]:
    """Return tables and weights of what a method answered; see the head of this file."""
    tables, weights = answer if isinstance(answer, tuple) else (answer, None)
    if isinstance(tables, Mapping):
        tables = network.with_cpts(tables)
    elif not isinstance(tables, BayesianNetwork):
        tables, weights = None, tables
    if weights is not None:
        weights = np.asarray(weights, np.float64)
        if weights.shape != (len(rows),) or not ((weights >= 0) & (weights <= 1)).all():
            raise ValueError(
                f"A method must return tables, or one weight from 0 to 1 for each of the "
                f"{len(rows)} rows; found an array of shape {weights.shape}."
            )
    if tables is None:
        counting = MaximumLikelihoodEstimator(network, n_threads=1, **PRIOR)
        tables = counting.fit(rows, sample_weight=weights).network_
    return tables, weights


# --- methods --------------------------------------------------------------------------------------


def trust_all(network: BayesianNetwork, rows: Codes) -> Weights:
    """Count every row."""
    return np.ones(len(rows))


def trim(network: BayesianNetwork, rows: Codes, share: float) -> Weights:
    """Drop the least likely rows, fit again, five times."""
    if not share:
        return np.ones(len(rows))
    fit = RobustEstimator(network, share, "trimmed", n_threads=1, **PRIOR).fit(rows)
    return (fit.row_weights_ >= 0.5).astype(float)


def trim_by_guess(network: BayesianNetwork, rows: Codes) -> Weights:
    """Do the same without being told how many rows are bad."""
    return trim(network, rows, GUESS)


def isolate(network: BayesianNetwork, rows: Codes, share: float) -> Weights:
    """Drop the rows that scikit-learn's isolation forest isolates first."""
    from sklearn.ensemble import IsolationForest

    if not share:
        return np.ones(len(rows))
    forest = IsolationForest(contamination=share, random_state=0)
    return np.where(forest.fit_predict(expand_one_hot(network, rows)) > 0, 1.0, 0.0)


def drop_by_ecod(network: BayesianNetwork, rows: Codes, share: float) -> Weights:
    """Drop the rows that PyOD's ECOD calls outliers."""
    from pyod.models.ecod import ECOD

    if not share:
        return np.ones(len(rows))
    found = ECOD(contamination=share).fit(expand_one_hot(network, rows)).labels_
    return np.where(found > 0, 0.0, 1.0)


def drop_by_cleanlab(network: BayesianNetwork, rows: Codes, share: float) -> Weights:
    """Take every column for labels, and drop the rows whose labels cleanlab thinks least of."""
    from cleanlab.rank import get_label_quality_scores

    fold, quality = np.arange(len(rows)) % N_FOLDS, np.zeros(len(rows))
    fits = [count_rows(network, rows[fold != k]) for k in range(N_FOLDS)]
    for i, node in enumerate(network.nodes):
        chances = np.empty((len(rows), len(network.states[node])))
        for k, fit in enumerate(fits):
            chances[fold == k] = predict_state(fit, rows[fold == k], i)
        quality += get_label_quality_scores(rows[:, i].astype(int), chances)
    weights = np.ones(len(rows))
    weights[np.argsort(quality, kind="stable")[: round(share * len(rows))]] = 0
    return weights


def predict_state(network: BayesianNetwork, rows: Codes, i: int) -> NDArray[np.float64]:
    """Return the probability of each state of node i, given the other cells of each row."""
    column = {node: k for k, node in enumerate(network.nodes)}
    logs = np.zeros((len(rows), len(network.states[network.nodes[i]])))
    for node in network.nodes:
        family = [*(column[p] for p in network.parents[node]), column[node]]
        if i in family:
            table = np.moveaxis(np.log(network.cpts[node]), family.index(i), -1)
            logs += table[tuple(rows[:, k] for k in family if k != i)]
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def learn_robustly(network: BayesianNetwork, rows: Codes) -> tuple[BayesianNetwork, Weights]:
    """Fit by the default of robustbn, told nothing."""
    fit = RobustEstimator(network, random_state=0, n_threads=1, **PRIOR).fit(rows)
    return fit.network_, np.asarray(fit.row_weights_, float)


METHODS: dict[str, Contestant] = {
    "ours": Contestant("robustbn", "`RobustEstimator(network)`", learn_robustly),
    "counting": Contestant("counting", "`MaximumLikelihoodEstimator(network)`", trust_all),
    "trimmed": Contestant(
        "likelihood trimming", '`method="trimmed"`: drop the least likely, refit, five times', trim
    ),
    "guessed": Contestant(
        f"trimming {GUESS:.0%}", f"the same, always {GUESS:.0%} of the rows", trim_by_guess
    ),
    "forest": Contestant(
        "isolation forest", "scikit-learn's, with its defaults, on one-hot rows", isolate
    ),
    "ecod": Contestant("ECOD", "PyOD's, on one-hot rows", drop_by_ecod),
    "cleanlab": Contestant(
        "cleanlab",
        f"each column taken for labels, predicted by the network from the other columns, {N_FOLDS} "
        "folds; rows are dropped by their mean `get_label_quality_scores`",
        drop_by_cleanlab,
    ),
}


def find_method(name: str) -> Contestant:
    """Return a method of this file by its name, or anybody's by `module:function`."""
    if name in METHODS:
        return METHODS[name]
    module, _, function = name.partition(":")
    if not function:
        known = ", ".join(METHODS)
        raise SystemExit(f"There is no method {name!r}: use one of {known}, or module:function.")
    return Contestant(name, f"`{name}`", getattr(importlib.import_module(module), function))
