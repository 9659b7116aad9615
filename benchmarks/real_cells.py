"""One cell of the real tables: a table with a structure, planted in one way, and who does what.

What decides a result of these cells is here and in `real_tables.py`; how it is shown is not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import Record, code_version
from benchmarks.contenders import METHODS, Task
from benchmarks.held_out import PRIOR, count_rows, score_rows
from benchmarks.real_tables import MOST_FITTED, Case, Codes, build_case, plant
from robustbn import RobustEstimator

DETECTORS = ("forest", "lof", "hbos", "ecod")
PURE = 0.7  # share of bad rows in a component from which on it is a kind of its own


@dataclass(frozen=True)
class RealCell:
    """A table with a structure, clean or planted, and who else is asked.

    Parameters
    ----------
    table, structure : as in `real_tables.build_case`.
    way, eps : as in `real_tables.plant`; "clean" and 0 for none.
    rivals : methods that are told eps, beside counting.
    n_rows : of the table's second third, at the most.
    """

    table: str
    structure: str
    way: str
    eps: float
    rivals: tuple[str, ...]
    n_rows: int = MOST_FITTED
    seed: int = 0
    experiment: str = "real tables"


@cache
def version_of_cells() -> str:
    """Return a hash of the package and of the files that decide what is measured here."""
    names = ("held_out", "real_cells", "real_tables")
    return code_version(*(f"benchmarks/{name}.py" for name in names))


def measure_real(cell: RealCell) -> Record:
    """Fit one cell, count beside it, and ask the rivals."""
    return measure_case(build_case(cell.table, cell.structure), cell)


def measure_case(case: Case, cell: RealCell) -> Record:
    """Return what was measured: for each method `loss`, `caught` and `lost`.

    The loss is that of the rows kept aside, against counting the unplanted rows.
    """
    rows = case.rows[: cell.n_rows]
    is_bad = np.zeros(len(rows), bool)
    if cell.way != "clean":
        rng = np.random.default_rng([5 + cell.seed, len(case.cards), int(1000 * cell.eps)])
        rows, is_bad = plant(rows, case.cards, cell.way, cell.eps, rng)
    floor = score_rows(count_rows(case.network, rows[~is_bad]), case.judges)
    start = time.perf_counter()
    fit = RobustEstimator(case.network, random_state=cell.seed, n_threads=1, **PRIOR).fit(rows)
    wall_s = time.perf_counter() - start
    methods = {
        "ours": {
            "loss": floor - score_rows(fit.network_, case.judges),
            **_judge_rows(fit.row_weights_, is_bad),
        },
        "counting": {"loss": floor - score_rows(count_rows(case.network, rows), case.judges)},
    }
    for name in cell.rivals:
        methods[name] = _ask_rival(case, rows, is_bad, floor, name, cell)
    return {
        "columns": len(case.cards),
        "n_fitted": len(rows),
        "n_bad": int(is_bad.sum()),
        "methods": methods,
        "is_exact": fit.misfit_ is not None and fit.misfit_.is_exact,
        "wall_s": wall_s,
        **find_pure(fit, rows, is_bad),
    }


def _judge_rows(weights: NDArray[Any], is_bad: NDArray[np.bool_]) -> dict[str, float]:
    caught = 1 - float(weights[is_bad].mean()) if is_bad.any() else 0.0
    return {"caught": caught, "lost": 1 - float(weights[~is_bad].mean())}


def _ask_rival(
    case: Case, rows: Codes, is_bad: NDArray[np.bool_], floor: float, name: str, cell: RealCell
) -> dict[str, float]:
    """Let a rival, told the true share, say which rows to drop; the rest is counted as by all."""
    task = Task(case.network, rows, rows[:0], cell.eps, cell.seed, 1)
    found = METHODS[name].read(task, METHODS[name].prepare(task)())
    assert found.is_caught is not None
    kept = count_rows(case.network, rows[~found.is_caught])
    weights = np.where(found.is_caught, 0.0, 1.0)
    return {"loss": floor - score_rows(kept, case.judges), **_judge_rows(weights, is_bad)}


def find_pure(fit: RobustEstimator, rows: Codes, is_bad: NDArray[np.bool_]) -> Record:
    """Return the share of the bad rows that is in a component of its own, and accepted as bad.

    Components are those of the fitted row model beside its main class; what filters and the list
    of repeated rows take is one more. A row belongs to each by its probability; a component is
    pure if more than `PURE` of what belongs to it are bad rows.

    `found` is the share of the bad rows in pure components, `accepted` in pure ones judged bad,
    and `mixed` the share in components judged bad that are not pure.
    """
    model = fit.result_.learned.model
    loaded = fit._load(fit._encode(rows))
    kept = model.repeats.weigh(loaded).astype(np.float64)
    for each in model.filters:
        kept *= each.weigh(loaded)
    parts = [1 - kept]
    if model.n_others:
        parts += list((model.sort(loaded)[0][:, 1:] * kept[:, None]).T.astype(np.float64))
    judged_bad = np.append(True, model.is_bad)
    of_bad = np.array([part[is_bad].sum() for part in parts])
    sizes = np.array([part.sum() for part in parts])
    is_pure = of_bad > PURE * np.maximum(sizes, 1e-9)
    n_bad = max(int(is_bad.sum()), 1)
    return {
        "found": float(of_bad[is_pure].sum()) / n_bad,
        "accepted": float(of_bad[is_pure & judged_bad].sum()) / n_bad,
        "mixed": float(of_bad[~is_pure & judged_bad].sum()) / n_bad,
        "n_components": model.n_others,
        "n_kinds": model.n_kinds,
    }
