"""Draw rows from a network; `robustbn.simulate` is the face."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._rows.kernels import load_backend
from robustbn.network import BayesianNetwork


def sample(
    network: BayesianNetwork,
    n: int,
    random_state: Any = None,
    *,
    n_threads: int | None = None,
    backend: str | None = None,
) -> NDArray[np.uint8]:
    """Draw `n` rows; integer codes of shape (n, d), columns in the order of `network.nodes`.

    The same seed gives the same rows, whatever the backend and the number of threads. O(n d) time.

    Parameters
    ----------
    random_state : seed, `numpy.random.Generator`, or None for fresh randomness.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.simulate import sample
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["h", "t"]}, {"coin": [0.9, 0.1]})
    >>> sample(coin, 10_000, random_state=0).mean().round(1)
    np.float64(0.1)
    """
    if n < 0 or int(n) != n:
        raise ValueError(f"n must be a whole number of rows, 0 or more; found {n!r}.")
    rng = np.random.default_rng(random_state)
    column = {node: i for i, node in enumerate(network.nodes)}
    return load_backend(backend).sample(
        network.layout,
        [column[node] for node in network.topological_order],
        network.probabilities,
        int(n),
        int(rng.integers(2**63)),
        n_threads,
    )
