"""True values of rows by the C++ kernels; `numpy_cells` says what they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate, available_cpus
from robustbn._core.cells import CellModel, States, Swept
from robustbn._core.protocols import Vector
from robustbn._rows.kernels import _native


def sweep_cells(
    model: CellModel,
    seen: States,
    truth: States,
    *,
    groups: NDArray[np.int32] | None = None,
    weights: Vector | None = None,
    own: float = 1.0,
    calm: float = 0.0,
    key: int = 0,
    first_row: int = 0,
    n_sweeps: int = 1,
    n_burn: int = 0,
    names: bool = True,
    asks_gains: bool = True,
    n_threads: int | None = None,
) -> Swept:
    """Draw the true value of every cell given all others, several times; see `Kernels`."""
    counts, shapes, nearby = model.counts, model.shapes, model.nearby
    tables = _native.CellTables(
        list(model.cards),
        [list(of) for of in model.parents],
        list(model.is_hashed),
        *(counts.cell_start, counts.cell_keys, counts.cells),
        *(counts.config_start, counts.config_keys, counts.configs),
        *(counts.states, model.concentration, model.novelty, model.shaped),
        *(shapes.start, shapes.states, shapes.values),
        list(model.near_nodes),
        list(model.near_columns),
        nearby.start,
        nearby.states,
    )
    gains = np.zeros((2, model.n_nodes))
    found = Swept(
        np.array(truth, np.int32, order="C"),
        np.zeros(len(counts.cells)),
        *gains,
        *(
            allocate(seen.shape, kind, "Judging cells") if names else None
            for kind in (np.float32, np.int32, np.float32)
        ),
    )
    _native.sweep_cells(
        tables,
        np.ascontiguousarray(seen, np.int32),
        found.truth,
        np.ascontiguousarray(model.rates),
        groups,
        None if weights is None else np.ascontiguousarray(weights, np.float64),
        own,
        calm,
        key,
        first_row,
        n_sweeps,
        n_burn,
        asks_gains,
        found.wrong,
        found.likely,
        found.probability,
        found.counts,
        gains.reshape(-1),
        available_cpus() if n_threads is None else n_threads,
    )
    return found
