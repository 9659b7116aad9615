"""Integer thresholds for drawing states, shared by the kernels so that they draw the same rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector


def sampling_thresholds(layout: Layout, probabilities: Vector) -> list[NDArray[np.int32]]:
    """Return for each node an array of shape (configurations, card - 1).

    A draw `u`, uniform in 0 ... 2^30 - 1, picks the state `sum(u >= thresholds)`: a state of
    probability 0 is never picked, others to within 2^-30.
    """
    start = layout.cell_start
    thresholds = []
    for i, card in enumerate(layout.cards):
        table = probabilities[start[i] : start[i + 1]].reshape(-1, card)
        cumulative = np.cumsum(table, axis=1)
        cumulative /= cumulative[:, -1:]
        thresholds.append(np.rint(cumulative[:, :-1] * 2.0**30).astype(np.int32))
    return thresholds
