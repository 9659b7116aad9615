"""Run one version of robustbn for `compare.py`: draw its rows, or time a case when asked.

usage: timed_cases.py SITE draw FOLDER N_ROWS | timed_cases.py SITE time FOLDER

SITE is where that version is installed. Cases are asked for on standard input, one a line; answers
are lines of JSON. Only the public face of robustbn is used, so that old versions can be timed too.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# An editable install of robustbn would be found before the one in SITE.
sys.meta_path[:] = [f for f in sys.meta_path if "_editable_" not in type(f).__module__]

import numpy as np  # noqa: E402

import robustbn  # noqa: E402
from robustbn.adversary import corrupt  # noqa: E402

Case = Callable[[], Any]


def draw(folder: Path, n_rows: int) -> None:
    """Write a network and the rows that both versions are given."""
    network = robustbn.random_network("graph", 50, 500, random_state=0)
    robustbn.write_network(network, folder / "network.json")
    good = robustbn.sample(network, n_rows, 1)
    np.save(folder / "good.npy", good)
    for kind, n in (("network", n_rows), ("rowflip", n_rows // 5), ("clones", n_rows // 5)):
        np.save(folder / f"{kind}.npy", corrupt(good[:n], network, kind, 0.1, 2)[0])


def list_cases(folder: Path) -> dict[str, Case]:
    """Return what can be timed, by name."""
    network = robustbn.read_network(folder / "network.json")
    rows = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    count = robustbn.MaximumLikelihoodEstimator(network, n_threads=1)
    counted = count.fit(rows["good"]).network_

    def fit(kind: str, *settings: Any) -> Case:
        estimator = robustbn.RobustEstimator(network, *settings, random_state=0, n_threads=1)
        return lambda: estimator.fit(rows[kind])

    n = len(rows["good"])
    return {
        "count": lambda: count.fit(rows["good"]),
        "log-likelihood of rows": lambda: count.score_samples(rows["good"]),
        "draw rows": lambda: robustbn.sample(network, n, 0, n_threads=1),
        "total variation": lambda: robustbn.total_variation(network, counted),
        "robust fit, clean rows": fit("good"),
        "robust fit, network": fit("network"),
        "robust fit, rowflip": fit("rowflip"),
        "robust fit, clones": fit("clones"),
        "likelihood trimming": fit("network", 0.1, "trimmed"),
        "robust mean": lambda: robustbn.robust_mean(
            rows["network"][: n // 10].astype(float), random_state=0
        ),
    }


def answer(cases: dict[str, Case], question: str) -> dict[str, Any]:
    """Return the names of the cases, or the seconds of one; a case that fails says why."""
    if question == "cases":
        return {"cases": list(cases)}
    start = time.perf_counter()
    try:
        cases[question]()
    except Exception as error:
        print(f"{question}: {type(error).__name__}: {error}", file=sys.stderr)
        return {"failed": str(error)}
    return {"seconds": time.perf_counter() - start}


def main(arguments: list[str]) -> None:
    """Do as the command line says."""
    site, action, folder, *rest = arguments
    warnings.simplefilter("ignore")
    found = Path(robustbn.__file__).resolve()
    if Path(site).resolve() not in found.parents:
        sys.exit(f"robustbn was found in {found}, not in {site}: the times would mean nothing.")
    if action == "draw":
        draw(Path(folder), int(rest[0]))
        return
    cases = list_cases(Path(folder))
    for line in sys.stdin:
        print(json.dumps(answer(cases, line.strip())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
