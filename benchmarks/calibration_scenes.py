"""One fit of rows whose truth is known, and whether what it says of itself is so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import robustbn
from benchmarks.cells import Record, code_version
from benchmarks.scenes import build_network, draw_scene
from robustbn import BayesianNetwork, RobustEstimator, sample
from robustbn._core.protocols import Vector
from robustbn._show.comparison import compare_cells
from robustbn._show.measures import Z_95, interval

SOURCES = ("src/robustbn/_show/**/*",)  # intervals and comparisons; see sources.py
N_FRESH = 20_000
LEAST_ROWS = (5, 20, 100, 1000)  # behind an interval: where one column of the table ends
GROUPS = 20  # sources that bad rows come from evenly
APART = 500_000  # between seeds of rows that have nothing to do with each other


@dataclass(frozen=True)
class CalibrationCell:
    """Rows of a known network, clean or with a share of bad ones.

    Parameters
    ----------
    network : as in `scenes.build_network`.
    adversary : one of `robustbn.adversary.KINDS`, or "none".
    eps : share of bad rows.
    """

    network: str
    adversary: str
    eps: float
    n_rows: int
    seed: int
    experiment: str = "calibration"


def version_of_calibration() -> str:
    """Return a hash of the package and of the files that decide what is measured here."""
    return code_version("benchmarks/calibration_scenes.py")


def measure_calibration(cell: CalibrationCell) -> Record:
    """Fit one cell, and compare what the fit says with what is so."""
    network = build_network(cell.network, cell.seed)
    scene = draw_scene(network, cell.adversary, cell.eps, cell.n_rows, cell.seed)
    fit = RobustEstimator(network, random_state=cell.seed, n_threads=1).fit(scene.rows)
    record: Record = {
        "contamination": fit.contamination_,
        "distrusted": int((fit.row_weights_ < 0.5).sum()),
        "converged": fit.converged_,
        "is_exact": fit.misfit_ is None or fit.misfit_.is_exact,
        "caught": float((fit.row_weights_[scene.is_bad] < 0.5).mean()) if cell.eps else 0.0,
    }
    if cell.eps >= 0.5:  # nothing else can be right
        return record
    fresh = sample(network, N_FRESH, cell.seed + APART)
    record["false_alarms"] = float((fit.predict(fresh) < 0).mean())
    record["intervals"] = count_covered(network, fit)
    record["named_edges"] = len(fit.missing_edges())
    if cell.eps:
        return record | {"named_groups": count_groups(network, scene.rows, cell)}
    again = sample(network, cell.n_rows, cell.seed + 2 * APART)
    other = RobustEstimator(network, random_state=cell.seed, n_threads=1).fit(again)
    return record | compare_two(fit, other)


def count_covered(network: BayesianNetwork, fit: RobustEstimator) -> dict[str, list[int]]:
    """Return, by the rows behind it, how many intervals there are and how many hold the truth."""
    layout = network.layout
    rows = layout.sum_configurations(fit.counts_)[layout.config_of_cell]
    low, high = interval(fit.network_.probabilities, rows)
    is_held = (low <= network.probabilities) & (network.probabilities <= high)
    is_random = (network.probabilities > 0) & (network.probabilities < 1)
    return {
        str(least): [int(chosen.sum()), int(is_held[chosen].sum())]
        for least, chosen in _by_rows(rows, is_random)
    }


def _by_rows(rows: Vector, among: NDArray[np.bool_]) -> list[tuple[int, NDArray[np.bool_]]]:
    ends = (*LEAST_ROWS[1:], np.inf)
    return [
        (low, among & (rows >= low) & (rows < high))
        for low, high in zip(LEAST_ROWS, ends, strict=True)
    ]


def compare_two(fit: RobustEstimator, other: RobustEstimator) -> Record:
    """Return how many cells and tables of two samples of one network seem to have changed."""
    one, two = fit.result_, other.result_
    n_cells = n_beyond = 0
    for node in fit.network_.nodes:
        cells = compare_cells(one, two, node)
        z = np.abs(cells.after - cells.before) / cells.error
        enough = cells.rows.min(axis=0) >= LEAST_ROWS[1]
        n_cells, n_beyond = n_cells + z[enough].size, n_beyond + int((z[enough] > Z_95).sum())
    tables = robustbn.compare(fit, other).tables
    return {
        "z": [n_cells, n_beyond],
        "tables": [len(tables), sum(table.is_significant for table in tables)],
        "kinds": len(fit.kinds_) + len(other.kinds_),
    }


def count_groups(network: BayesianNetwork, rows: NDArray[np.generic], cell: CalibrationCell) -> int:
    """Return how many sources are named, although bad rows come from all alike."""
    frame = {node: np.array(network.states[node], object)[rows[:, i]]
             for i, node in enumerate(network.nodes)}  # fmt: skip
    rng = np.random.default_rng(cell.seed + APART)
    frame["source"] = rng.integers(0, GROUPS, len(rows)).astype(str).astype(object)
    fit = robustbn.fit(network, frame, random_state=cell.seed, n_threads=1, context=["source"])
    return len(fit.where())
