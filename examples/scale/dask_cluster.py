"""Learn from a Dask frame whose partitions are encoded by the workers and stay with them."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import robustbn
from robustbn._config import RobustConfig, TableConfig
from robustbn._dask import load_on_dask
from robustbn._fit import fit_robustly
from robustbn._passes import RowsInMemory

N_PARTITIONS, N_EACH = 8, 5_000
truth = robustbn.random_network("tree", 20, random_state=5)


def make_codes(number: int) -> np.ndarray:
    """Return the rows of a partition, a tenth of which come from independent columns."""
    codes = robustbn.sample(truth, N_EACH, random_state=number)
    rng = np.random.default_rng(number)
    codes[: N_EACH // 10] = rng.random((N_EACH // 10, 20)) < np.linspace(0.1, 0.9, 20)
    return codes


def make_frame(number: int) -> pd.DataFrame:
    """Return them with their labels."""
    codes = make_codes(number)
    labels = {node: np.array(states, str) for node, states in truth.states.items()}
    return pd.DataFrame({n: labels[n][codes[:, k]] for k, n in enumerate(truth.nodes)})


def main() -> None:
    """Fit on a cluster of two workers, and in memory."""
    config = RobustConfig(seed=0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        frame = dd.from_map(make_frame, range(N_PARTITIONS))
        rows = load_on_dask(truth, frame, TableConfig())
        print(rows.reading)
        found = fit_robustly(truth, rows, None, config, lambda done: None)
    codes = np.concatenate([make_codes(k) for k in range(N_PARTITIONS)])
    expected = fit_robustly(truth, RowsInMemory(truth, codes), None, config, lambda done: None)
    print(f"{found.removed:.1%} of the rows are distrusted.")
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-9)
    assert found.removed > 0.05


if __name__ == "__main__":  # worker processes read this file too
    main()
