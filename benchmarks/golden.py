"""`python -m benchmarks golden write FOLDER`, `check FOLDER`: every number stays the same.

For a change that should change nothing. Four networks, eight adversaries and clean rows, each
fitted in memory by both kernels, with weights, read in stretches, and on a cluster; other methods
on one network. Kept are counts, trust in each row, the status and the rounds, to the last bit. That
holds for one machine and one set of libraries: write and check on the same one.

Only public names are used, so that the same script runs before and after.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import say
from benchmarks.scenes import Codes, Scene, build_network, draw_scene
from robustbn import BayesianNetwork, RobustEstimator

NETWORKS = ("tree:40", "graph:20:120", "categorical:20:100", "example:alarm")
ADVERSARIES = (
    "none",
    "product",
    "network",
    "mixture",
    "clones",
    "tilt",
    "rowflip",
    "misjoined",
    "subtract",
)
PLACES = ("memory", "numpy", "weights", "stream", "dask")
METHODS = (
    ("que", "joint"),
    ("que", "paper"),
    ("filter", "paper"),
    ("descent", "joint"),
    ("trimmed", "joint"),
    ("one_shot", "joint"),
    ("ransac", "joint"),
    ("geometric_median", "joint"),
)
N_ROWS = 20_000
FIELDS = ("counts", "weights", "status", "eigenvalues", "actions", "removed")


@dataclass(frozen=True)
class Case:
    """One fit."""

    network: str
    adversary: str
    place: str
    method: str = "filter"
    schedule: str = "joint"

    @property
    def name(self) -> str:
        """A name for its files."""
        parts = (self.network, self.adversary, self.place, self.method, self.schedule)
        return "-".join(parts).replace(":", "_")


def cases() -> Iterator[Case]:
    """Yield every case, those of one place together."""
    for place in PLACES:
        for network in NETWORKS:
            for adversary in ADVERSARIES:
                yield Case(network, adversary, place)
    for method, schedule in METHODS:
        for adversary in ("none", "mixture"):
            yield Case(NETWORKS[1], adversary, "memory", method, schedule)


def main(arguments: list[str]) -> None:
    """Write or check; exit 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks golden", description=__doc__)
    parser.add_argument("what", choices=("write", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--places", default=",".join(PLACES), help=f"of {','.join(PLACES)}")
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    wanted = [case for case in cases() if case.place in chosen.places.split(",")]
    differing: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as name, cluster("dask" in chosen.places):
        for case in wanted:
            found = fit_case(case, Path(name) / case.name)
            path = chosen.folder / f"{case.name}.json"
            if chosen.what == "write":
                path.write_text(json.dumps(found, indent=1))
                continue
            kept = json.loads(path.read_text())
            differs = [field for field in FIELDS if found[field] != kept[field]]
            if differs:
                differing[case.name] = differs
                say(f"{case.name}: {', '.join(differs)} differ")
    if differing:
        sys.exit(f"{len(differing)} of {len(wanted)} fits differ.")
    print(f"{len(wanted)} fits {'kept' if chosen.what == 'write' else 'are the same'}.")


def fit_case(case: Case, folder: Path) -> dict[str, Any]:
    """Fit, and return what is compared: numbers in hexadecimal, to the last bit."""
    network = build_network(case.network, 5)
    scene = draw_scene(network, case.adversary, 0.1, N_ROWS, 7)
    needs_share = case.schedule == "paper" or case.method in ("trimmed", "one_shot", "ransac")
    settings: dict[str, Any] = {
        "contamination": 0.1 if needs_share else "auto",
        "method": case.method,
        "schedule": case.schedule,
        "random_state": 11,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = fit_at(case.place, network, scene, settings, folder)
    return {
        "counts": exact(fit.counts_),
        "weights": exact(fit.row_weights_) if hasattr(fit, "row_weights_") else None,
        "status": fit.status_,
        "eigenvalues": [[float(v).hex() for v in r.eigenvalues] for r in fit.history_],
        "actions": [[r.action, r.n_kinds, float(r.threshold).hex()] for r in fit.history_],
        "removed": [float(r.removed).hex() for r in fit.history_],
    }


def fit_at(
    place: str, network: BayesianNetwork, scene: Scene, settings: dict[str, Any], folder: Path
) -> RobustEstimator:
    """Fit the rows where they are asked to be."""
    if place == "weights":
        weights = np.random.default_rng(3).uniform(0.5, 2.0, len(scene.rows))
        return RobustEstimator(network, **settings).fit(scene.rows, sample_weight=weights)
    if place in ("stream", "dask"):
        write_parts(network, scene.rows, folder)
        settings["place"] = place
        return RobustEstimator(network, **settings).fit(str(folder))
    if place == "numpy":
        settings["kernels"] = place
    return RobustEstimator(network, **settings).fit(scene.rows)


def write_parts(network: BayesianNetwork, codes: Codes, folder: Path) -> None:
    """Write rows as three Parquet files of labels."""
    folder.mkdir()
    for k, part in enumerate(np.array_split(codes, 3)):
        labels = {
            node: pa.array(np.array(network.states[node], str)[part[:, i]])
            for i, node in enumerate(network.nodes)
        }
        pq.write_table(pa.table(labels), folder / f"part-{k}.parquet")


@contextmanager
def cluster(is_wanted: bool) -> Iterator[None]:
    """Start two workers for as long as it lasts."""
    if not is_wanted:
        yield
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as workers,
        Client(workers),
    ):
        yield


def exact(values: Any) -> str:
    """Return numbers as a string that two arrays share only if all their bits are the same."""
    array = np.ascontiguousarray(values)
    return f"{array.dtype} {array.shape} {array.tobytes().hex()}"
