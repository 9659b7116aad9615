"""Draw rows from a network; `robustbn.simulate` is the face."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from robustbn._core.calls import naming_the_nearest, require_network
from robustbn._core.layout import Codes
from robustbn._core.protocols import Rows, Survey, Vector
from robustbn._core.row_model import Draw
from robustbn._rows.kernels import load_kernels
from robustbn.exceptions import SettingError
from robustbn.network import BayesianNetwork


@naming_the_nearest
def sample(
    network: BayesianNetwork,
    n: int,
    random_state: Any = None,
    *,
    n_threads: int | None = None,
    kernels: str | None = None,
) -> Codes:
    """Draw `n` rows; integer codes of shape (n, d), columns in the order of `network.nodes`.

    The same seed gives the same rows, for all kernels and any number of threads. Time is O(n d).

    Parameters
    ----------
    network : BayesianNetwork
        The network to draw from, with its tables.
    n : int
        The number of rows.
    random_state : int, Generator or None, default=None
        The seed; None for new rows each time.
    n_threads : int or None, default=None
        The number of threads. By default all cores that the process may use, or `OMP_NUM_THREADS`,
        which joblib and Dask set for their workers. It does not change the results.
    kernels : {"native", "numpy"} or None, default=None
        Which kernels to use; by default the fastest that are installed.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.simulate import sample
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["h", "t"]}, {"coin": [0.9, 0.1]})
    >>> sample(coin, 10_000, random_state=0).mean().round(1)
    np.float64(0.1)
    """
    require_network(network, "sample(network, n)", n)
    if not isinstance(n, Real) or n < 0 or int(n) != n:
        raise SettingError(f"n must be a whole number of rows, 0 or more; found {n!r}.")
    rng = np.random.default_rng(random_state)
    key, order = int(rng.integers(2**63)), _order(network)
    return load_kernels(kernels).sample(
        network.layout, order, network.probabilities, int(n), key, n_threads
    )


def drawing(
    network: BayesianNetwork,
    kernels: str | None,
    n_threads: int | None,
    seed: int,
    *,
    like: Survey | None = None,
) -> Draw:
    """Return a function that draws new rows from some tables, which miss values as others do."""
    native, order = load_kernels(kernels), _order(network)
    rng = np.random.default_rng(seed)
    holed = () if like is None else like.rows.layout.holed
    layout = network.layout.with_holes(holed) if holed else network.layout

    def draw(parts: Sequence[tuple[Vector, int]]) -> Rows:
        drawn = list[Codes]()
        for q, n in parts:
            key = int(rng.integers(2**63))
            if n or not drawn:
                drawn.append(native.sample(network.layout, order, q, n, key, n_threads))
        codes = drawn[0] if len(drawn) == 1 else np.concatenate(drawn)
        if like is not None and holed:
            codes = codes.astype(layout.code_dtype, copy=False)
            pattern = like.codes[rng.integers(0, len(like.codes), len(codes))]
            for c in holed:
                codes[pattern[:, c] == layout.cards[c], c] = layout.cards[c]
        return native.encode(layout, codes, n_threads)

    return draw


def _order(network: BayesianNetwork) -> list[int]:
    """Return the columns, parents before children."""
    column = {node: i for i, node in enumerate(network.nodes)}
    return [column[node] for node in network.topological_order]
