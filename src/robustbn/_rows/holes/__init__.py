"""Expected counts of rows with holes. One file an engine; `numpy` is the specification."""

from __future__ import annotations

import importlib
from typing import Any

from numpy.typing import NDArray

from robustbn._core.holes import Holes
from robustbn._core.layout import Layout
from robustbn._core.protocols import RowVector
from robustbn._core.tuning import TUNING, Tuning
from robustbn._rows.kernels import choose_kernels


def gather(
    layout: Layout,
    codes: NDArray[Any],
    weights: RowVector | None = None,
    n_threads: int | None = None,
    *,
    engine: str | None = None,
    seed: int = 0,
    tuning: Tuning = TUNING,
) -> Holes:
    """Return the questions that rows with holes ask; one pass.

    Time O(N d) and a hash look-up a component; memory is that of the distinct questions.

    Parameters
    ----------
    codes : uint8 or uint16; a code equal to the number of states of its column is a hole; (N, d).
    weights : of the rows, 1 each by default; rows of weight 0 ask nothing; shape (N,).
    engine : "native" or "numpy"; by default as the kernels are chosen.
    seed : of the sampling, where a component is too large to be exact.

    Examples
    --------
    >>> import numpy as np
    >>> from robustbn._core.layout import Layout
    >>> coin_and_echo = Layout((2, 2), ((0,), (0, 1)))  # the second shows the first, mostly
    >>> q = np.array([0.5, 0.5, 0.9, 0.1, 0.2, 0.8])
    >>> holes = gather(coin_and_echo, np.array([[2, 0], [0, 0]], np.uint8))
    >>> holes.expect(q).counts.round(3)  # 0.45 against 0.1
    array([0.818, 0.182, 0.818, 0.   , 0.182, 0.   ])
    """
    module = importlib.import_module(f"robustbn._rows.holes.{choose_kernels(engine)}")
    holes: Holes = module.make_holes(layout, n_threads, seed, tuning)
    holes.add(codes, weights)
    return holes
