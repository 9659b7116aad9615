"""What is compared: ours, the methods of the literature, and what a user would pick instead.

A method is two small functions. `prepare(task)` builds, untimed, the input that it likes best and
returns a function without arguments, which is timed. `read(task, found)` says, untimed, what tables
came out and which rows were caught. No method sees the tables of the true network. A library is
imported where it is used; one that is not installed raises `ImportError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import PEERS, compare_tables
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator

Codes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

LOF_BLOCK = 5_000  # LOF compares all rows with all rows: it is given blocks of this many
AUTO, GIVEN = "default_auto", "default_eps"
OURS = (AUTO, GIVEN)
FLOOR = "good"


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given.

    Parameters
    ----------
    structure : the network without tables.
    rows : codes of shape (N, d).
    good : rows that only the floor may look at.
    eps : the share of bad rows that is told.
    """

    structure: BayesianNetwork
    rows: Codes
    good: Codes
    eps: float
    seed: int
    n_threads: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method found.

    Parameters
    ----------
    network : with its learned tables; None if there are none to judge.
    is_caught : whether a row is distrusted; shape (N,), None if rows are not judged.
    facts : more to be noted.
    """

    network: BayesianNetwork | None
    is_caught: Mask | None = None
    facts: dict[str, Any] | None = None


def _as_found(task: Task, found: Any) -> Fitted:
    assert isinstance(found, Fitted)
    return found


@dataclass(frozen=True)
class Method:
    """A way to get tables out of rows.

    Parameters
    ----------
    title : as figures and tables show it.
    note : what exactly it does, for the page.
    needs : distributions whose versions the page names.
    """

    title: str
    note: str
    prepare: Callable[[Task], Callable[[], Any]]
    read: Callable[[Task, Any], Fitted] = _as_found
    needs: tuple[str, ...] = ()


# --- counting -------------------------------------------------------------------------------------


def _count(task: Task, rows: Codes) -> BayesianNetwork:
    return MaximumLikelihoodEstimator(task.structure, n_threads=task.n_threads).fit(rows).network_


def count_good(task: Task) -> Callable[[], Fitted]:
    """Count the good rows: what is possible, for nobody knows them."""
    return lambda: Fitted(_count(task, task.good))


def count_all(task: Task) -> Callable[[], Fitted]:
    """Count all rows."""
    return lambda: Fitted(_count(task, task.rows))


def count_distinct(task: Task) -> Callable[[], Fitted]:
    """Drop exact duplicates, then count."""

    def fit() -> Fitted:
        whole = np.dtype((np.void, task.rows.shape[1]))
        first = np.unique(np.ascontiguousarray(task.rows).view(whole).ravel(), return_index=True)[1]
        is_caught = np.ones(len(task.rows), bool)
        is_caught[first] = False
        return Fitted(_count(task, task.rows[~is_caught]), is_caught)

    return fit


# --- robustbn -------------------------------------------------------------------------------------


def fit_robustly(task: Task, *, is_told: bool = True, **settings: Any) -> Callable[[], Any]:
    """Fit a `RobustEstimator` that is told the share of bad rows, or not."""
    estimator = RobustEstimator(
        task.structure,
        contamination=task.eps if is_told else "auto",
        random_state=task.seed + 3,
        n_threads=task.n_threads,
        **settings,
    )
    return lambda: estimator.fit(task.rows)


def read_estimator(task: Task, fit: RobustEstimator) -> Fitted:
    """Call a row caught when the trust in it is below one half."""
    facts = {"found": float(fit.contamination_), "converged": bool(fit.converged_)}
    return Fitted(fit.network_, np.asarray(fit.row_weights_ < 0.5), facts)


# --- detectors of odd rows ------------------------------------------------------------------------


def expand_one_hot(structure: BayesianNetwork, rows: Codes) -> NDArray[np.float32]:
    """Return a column for every state of every node, 1 where the row shows it."""
    cards = structure.layout.cards
    columns = np.zeros((len(rows), sum(cards)), np.float32)
    for i, start in enumerate(np.cumsum((0, *cards[:-1]))):
        columns[np.arange(len(rows)), start + rows[:, i]] = 1
    return columns


def detect_then_count(
    task: Task, detect: Callable[[Task, NDArray[np.float32]], Mask]
) -> Callable[[], Fitted]:
    """Detect odd rows among the one-hot rows, drop them, and count the others."""

    def fit() -> Fitted:
        is_caught = detect(task, expand_one_hot(task.structure, task.rows))
        return Fitted(_count(task, task.rows[~is_caught]), is_caught)

    return fit


def detect_by_forest(task: Task, columns: NDArray[np.float32]) -> Mask:
    """Ask scikit-learn's isolation forest, with its defaults."""
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(
        contamination=task.eps, random_state=task.seed + 3, n_jobs=task.n_threads
    )
    return np.asarray(forest.fit_predict(columns) < 0)


def detect_by_lof(task: Task, columns: NDArray[np.float32]) -> Mask:
    """Ask scikit-learn's local outlier factor, block by block."""
    from sklearn.neighbors import LocalOutlierFactor

    n_blocks = math.ceil(len(columns) / LOF_BLOCK)
    found = [
        LocalOutlierFactor(contamination=task.eps, n_jobs=task.n_threads).fit_predict(block) < 0
        for block in np.array_split(columns, n_blocks)
    ]
    return np.concatenate(found)


def detect_by_hbos(task: Task, columns: NDArray[np.float32]) -> Mask:
    """Ask PyOD's histogram-based outlier score."""
    from pyod.models.hbos import HBOS

    return np.asarray(HBOS(contamination=task.eps).fit(columns).labels_ == 1)


def detect_by_ecod(task: Task, columns: NDArray[np.float32]) -> Mask:
    """Ask PyOD's empirical cumulative distribution outlier detection."""
    from pyod.models.ecod import ECOD

    return np.asarray(ECOD(contamination=task.eps).fit(columns).labels_ == 1)


# --- other libraries that count -------------------------------------------------------------------


def prepare_peer(task: Task, name: str) -> Callable[[], Any]:
    """Prepare a library that counts, as `peers.py` says."""
    if name.startswith("pyAgrum"):
        import pyagrum

        pyagrum.setNumberOfThreads(task.n_threads)
    peer = next(peer for peer in PEERS if peer.name == name)
    return peer.prepare(task.structure, task.rows)


def read_peer(task: Task, model: Any, name: str) -> Fitted:
    """Note the largest difference from our counts, where some row tells the table."""
    peer = next(peer for peer in PEERS if peer.name == name)
    ours = MaximumLikelihoodEstimator(task.structure).fit(task.rows)
    return Fitted(None, None, compare_tables(peer, model, ours))


# --- one pass -------------------------------------------------------------------------------------


def add_bytes(task: Task) -> Callable[[], Fitted]:
    """Add up the rows' bytes, eight at a time: what one look at them costs."""
    whole = np.ascontiguousarray(task.rows).reshape(-1)
    words = whole[: whole.size // 8 * 8].view(np.uint64)

    def fit() -> Fitted:
        return Fitted(None, None, {"sum": int(words.sum())})

    return fit


def _robust(title: str, note: str, **settings: Any) -> Method:
    return Method(title, note, partial(fit_robustly, **settings), read_estimator)


def _detector(
    title: str,
    note: str,
    library: str,
    detect: Callable[[Task, NDArray[np.float32]], Mask],
) -> Method:
    return Method(title, note, partial(detect_then_count, detect=detect), needs=(library,))


def _peer(title: str, note: str, name: str, library: str) -> Method:
    return Method(
        title,
        note,
        partial(prepare_peer, name=name),
        partial(read_peer, name=name),
        (library,),
    )


METHODS: dict[str, Method] = {
    FLOOR: Method(
        "good rows only",
        "counting of the good rows alone, which nobody knows: the floor, not a contender "
        "(for rows taken away: of all rows that were there before)",
        count_good,
    ),
    "counting": Method("counting", "`MaximumLikelihoodEstimator(network)`, all rows", count_all),
    "one_shot": _robust(
        "one-shot filter",
        'the filter of the NeurIPS 2018 baseline, `method="one_shot"`: drops the eps of the rows '
        "farthest along the top direction, centred anew up to six times",
        method="one_shot",
    ),
    "que_paper": _robust(
        "Algorithm 1 (paper)",
        'the paper to the letter, `method="que", schedule="paper"`',
        method="que",
        schedule="paper",
    ),
    AUTO: _robust(
        "robustbn, eps unknown",
        "`RobustEstimator(network)`, not told how many rows are bad",
        is_told=False,
    ),
    GIVEN: _robust("robustbn, eps given", "`RobustEstimator(network, contamination=eps)`"),
    "trimmed": _robust(
        "likelihood trimming",
        'fit, drop the least likely eps of the rows, refit, five times: `method="trimmed"`',
        method="trimmed",
    ),
    "forest": _detector(
        "isolation forest",
        "scikit-learn's `IsolationForest(contamination=eps)` on one-hot rows, then counting",
        "scikit-learn",
        detect_by_forest,
    ),
    "lof": _detector(
        "LOF",
        f"scikit-learn's `LocalOutlierFactor(contamination=eps)` on one-hot rows, in blocks of at "
        f"most {LOF_BLOCK:,} rows (its time grows with the square of the rows), then counting",
        "scikit-learn",
        detect_by_lof,
    ),
    "hbos": _detector(
        "HBOS",
        "PyOD's `HBOS(contamination=eps)` on one-hot rows, then counting",
        "pyod",
        detect_by_hbos,
    ),
    "ecod": _detector(
        "ECOD",
        "PyOD's `ECOD(contamination=eps)` on one-hot rows, then counting",
        "pyod",
        detect_by_ecod,
    ),
    "distinct": Method(
        "de-duplication", "drop exact duplicates of rows, then counting", count_distinct
    ),
    "pgmpy": _peer("pgmpy", "counting by pgmpy, from a frame of categories", "pgmpy", "pgmpy"),
    "pyagrum": _peer(
        "pyAgrum", "counting by pyAgrum, from its own database", "pyAgrum, loaded", "pyagrum"
    ),
    "bytes": Method("one pass over the bytes", "the rows' bytes added up by NumPy", add_bytes),
}
# Those that ours is judged against.
RIVALS = (
    "counting",
    "one_shot",
    "que_paper",
    "trimmed",
    "forest",
    "lof",
    "hbos",
    "ecod",
    "distinct",
)
