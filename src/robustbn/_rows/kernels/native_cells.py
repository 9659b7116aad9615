"""True values of rows by the C++ kernels; `numpy_cells` says what they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate, available_cpus
from robustbn._core.cells import CellModel, States, Swept, WrongCells
from robustbn._core.protocols import Vector
from robustbn._rows.kernels import _native


def sweep_cells(
    model: CellModel,
    seen: States,
    truth: States | None = None,
    *,
    groups: NDArray[np.int32] | None = None,
    weights: Vector | None = None,
    own: float = 1.0,
    calm: Vector | float = 0.0,
    key: int = 0,
    first_row: int = 0,
    n_sweeps: int = 1,
    n_burn: int = 0,
    least: float = np.inf,
    asks_gains: bool = True,
    asks_wrong: bool = False,
    n_threads: int | None = None,
) -> Swept:
    """Draw the true value of every cell given all others, several times; see `Kernels`."""
    counts, nearby = model.counts, model.nearby
    tables = _native.CellTables(
        list(model.cards),
        [list(of) for of in model.parents],
        list(model.is_hashed),
        *(counts.cell_start, counts.cell_keys, counts.cells),
        *(counts.config_start, counts.config_keys, counts.configs),
        *(counts.states, model.concentration, model.novelty),
        list(model.near_nodes),
        list(model.near_columns),
        nearby.start,
        nearby.states,
    )
    kind = seen.dtype if seen.dtype in (np.uint8, np.uint16) else np.int32
    seen = np.ascontiguousarray(seen, kind)
    drawn = np.array(seen if truth is None else truth, kind, order="C")
    expected, gains = np.zeros(len(counts.cells)), np.zeros((2, model.n_nodes))
    wrong = allocate(seen.shape, np.float32, "Judging cells") if asks_wrong else None
    named = _native.sweep_cells(
        tables,
        seen,
        drawn,
        np.ascontiguousarray(model.rates),
        groups,
        None if weights is None else np.ascontiguousarray(weights, np.float64),
        own,
        np.full(model.n_nodes, calm, np.float64),
        key,
        first_row,
        n_sweeps,
        n_burn,
        asks_gains,
        least,
        wrong,
        expected,
        gains.reshape(-1),
        available_cpus() if n_threads is None else n_threads,
    )
    return Swept(drawn, expected, gains[0], gains[1], WrongCells(*named), wrong)
