"""What a Dask cluster on one machine costs, beside the same rows in memory of one process.

The cluster has as many worker processes, of one thread each, as the process in memory has threads.
Both start from the same pandas frames, in memory of the workers or of the process, or from rows
that are encoded already.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait
from threadpoolctl import threadpool_limits

from benchmarks.measure import (
    Goal,
    Report,
    Settings,
    Table,
    Timing,
    installed_versions,
    say,
    time_interleaved,
)
from robustbn import BayesianNetwork, random_network, read_table, sample
from robustbn._core.config import RobustConfig, TableConfig
from robustbn._core.protocols import Data
from robustbn._core.result import RobustFit
from robustbn._learn.conductor import fit_robustly
from robustbn._rows.dask import load_on_dask
from robustbn._rows.memory import RowsInMemory

N_WORKERS, N_PARTITIONS, GOAL = 2, 16, 1.5
MEMORY, DASK = "memory", "Dask"
FRAMES, ENCODED = "from pandas frames", "from encoded rows"
NOTE = (
    f"The robust fit of rows of which 5 % come from independent columns, on {N_WORKERS} Dask "
    f"workers of one thread ({N_PARTITIONS} partitions), and in memory with {N_WORKERS} threads. "
    "Wall clock of the fastest round; starting the cluster and making the rows are not counted."
)


def run(settings: Settings) -> Report:
    """Time the robust fit on a cluster and in memory."""
    warnings.simplefilter("ignore")
    network = random_network("graph", 50, random_state=settings.seed)
    n_rows = 200_000 if settings.quick else 5_000_000
    n_each = n_rows // N_PARTITIONS
    with (
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        say(f"dask_scale: making {n_rows:,} rows")
        made = dd.from_map(make_frame, range(N_PARTITIONS), network=network, n_rows=n_each)
        frames = client.persist(made)
        wait(frames)
        whole = pd.concat([make_frame(k, network, n_each) for k in range(N_PARTITIONS)])
        encoded = {MEMORY: _in_memory(network, whole), DASK: _on_dask(network, frames)}
        difference = _compare(network, encoded)
        contenders: dict[tuple[str, str], Callable[[], object]] = {
            (FRAMES, MEMORY): lambda: _fit(network, _in_memory(network, whole)),
            (FRAMES, DASK): lambda: _fit(network, _on_dask(network, frames)),
            (ENCODED, MEMORY): partial(_fit, network, encoded[MEMORY]),
            (ENCODED, DASK): partial(_fit, network, encoded[DASK]),
        }
        timings = time_interleaved(contenders, settings)
    table, goals = _tabulate(timings, n_rows, difference)
    return Report(
        "dask_scale",
        "A Dask cluster beside rows in memory",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pandas", "dask", "distributed"]),
        (table,),
        tuple(
            {"start": start, "where": where, "n_rows": n_rows, **timing.to_record()}
            for (start, where), timing in timings.items()
        ),
        () if settings.quick else goals,
    )


def make_frame(number: int, network: BayesianNetwork, n_rows: int) -> Any:
    """Return the rows of a partition as a pandas frame; the workers call this."""
    codes = sample(network, n_rows, random_state=number, n_threads=1)
    rng = np.random.default_rng(number)
    bad = rng.permutation(n_rows)[: n_rows // 20]
    codes[bad] = rng.random((len(bad), network.n_nodes)) < np.linspace(0.1, 0.9, network.n_nodes)
    return pd.DataFrame(
        {
            node: pd.Categorical.from_codes(codes[:, k].astype(np.int8), [str(s) for s in states])
            for k, (node, states) in enumerate(network.states.items())
        }
    )


def _in_memory(network: BayesianNetwork, frame: Any) -> RowsInMemory:
    rows = RowsInMemory(network, read_table(frame, network).codes, "native", N_WORKERS)
    rows.rows  # noqa: B018 - packs them
    return rows


def _on_dask(network: BayesianNetwork, frames: Any) -> Data:
    return load_on_dask(network, frames, TableConfig(), kernels="native", n_threads=N_WORKERS)


def _fit(network: BayesianNetwork, data: Data) -> RobustFit:
    config = RobustConfig(seed=0, kernels="native", n_threads=N_WORKERS)
    with threadpool_limits(limits=1, user_api="blas"):
        return fit_robustly(network, data, None, config, lambda done: None)[0]


def _compare(network: BayesianNetwork, encoded: dict[str, Any]) -> float:
    """Return the largest relative difference of the counts; it has to be rounding."""
    here, there = (_fit(network, encoded[where]).counts for where in (MEMORY, DASK))
    difference = float((np.abs(here - there) / np.maximum(here, 1)).max())
    assert difference < 1e-9, difference
    return difference


def _tabulate(
    timings: dict[tuple[str, str], Timing], n_rows: int, difference: float
) -> tuple[Table, tuple[Goal, ...]]:
    lines, goals = [], []
    for start in (FRAMES, ENCODED):
        here, there = timings[start, MEMORY].wall_s, timings[start, DASK].wall_s
        ratio = there / here
        lines.append((start, f"{here:.2f}", f"{there:.2f}", f"{ratio:.2f}"))
        goals.append(
            Goal(
                f"{N_WORKERS} workers on one machine beside the native backend, {start}",
                f"<= {GOAL:g} times",
                f"{ratio:.2f} times",
                ratio <= GOAL,
            )
        )
    return (
        Table(
            f"Random graph, 50 nodes; N = {n_rows:,}",
            ("start", "in memory, s", "Dask, s", "ratio"),
            tuple(lines),
            f"The counts differ by {difference:.1e} at the most, relative.",
        ),
        tuple(goals),
    )
