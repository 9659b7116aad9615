"""Learn from a Dask frame whose partitions are encoded by the workers and stay with them."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import robustbn

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
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        frame = dd.from_map(make_frame, range(N_PARTITIONS))
        on_cluster = robustbn.RobustEstimator(truth, random_state=0).fit(frame)
        print(on_cluster.reading_)
    codes = np.concatenate([make_codes(k) for k in range(N_PARTITIONS)])
    here = robustbn.RobustEstimator(truth, random_state=0).fit(codes)
    print(f"{on_cluster.contamination_:.1%} of the rows are distrusted.")
    np.testing.assert_allclose(on_cluster.counts_, here.counts_, rtol=1e-9)
    assert on_cluster.contamination_ > 0.05


if __name__ == "__main__":  # worker processes read this file too
    main()
