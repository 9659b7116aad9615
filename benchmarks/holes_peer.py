"""pyAgrum's expectation-maximisation, in a process of its own so that it can be cut off.

`python -m benchmarks.holes_peer FOLDER` reads `rows.csv` and `network.bif` there and writes
`tables.npz`: the tables in our order of axes, and the seconds that learning them took.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scenes import Codes
from robustbn import BayesianNetwork, read_network

HOLE = "?"
STOP = 1e-3  # pyAgrum's own measure of how little a step still changes
LIMIT_S = 400.0


def learn_elsewhere(
    network: BayesianNetwork, rows: Codes, is_hidden: Any, pseudo_count: float, limit_s: float
) -> tuple[BayesianNetwork | None, float, float]:
    """Return pyAgrum's network, and its seconds: wall clock and CPU.

    The network is None if it was cut off after the limit; then the seconds are those of its whole
    process so far. pyAgrum has one thread, as ours has where the two are compared.
    """
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        folder = Path(name)
        _write_rows(folder / "rows.csv", network, rows, is_hidden)
        network.write(folder / "network.bif")
        command = [sys.executable, "-m", "benchmarks.holes_peer", name, repr(pseudo_count)]
        start, cpu = time.perf_counter(), _children_cpu_s()
        try:
            subprocess.run(command, check=True, timeout=limit_s, capture_output=True)
        except subprocess.TimeoutExpired:
            return None, time.perf_counter() - start, _children_cpu_s() - cpu
        with np.load(folder / "tables.npz") as found:
            tables = {node: found[f"table_{i}"] for i, node in enumerate(network.nodes)}
            return network.with_cpts(tables), float(found["seconds"]), float(found["cpu_s"])


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write_rows(path: Path, network: BayesianNetwork, rows: Codes, is_hidden: Any) -> None:
    lines = [",".join(network.nodes)]
    text = np.where(is_hidden, HOLE, rows.astype(str))
    lines += [",".join(row) for row in text.tolist()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(folder: Path, pseudo_count: float) -> None:
    """Learn the tables with pyAgrum and write them."""
    import pyagrum

    from benchmarks.peers import _pyagrum_structure, read_pyagrum

    network = read_network(folder / "network.bif")
    structure = _pyagrum_structure(network)
    start, cpu = time.perf_counter(), time.process_time()
    learner = pyagrum.BNLearner(str(folder / "rows.csv"), structure, [HOLE])
    learner.setNumberOfThreads(1)
    learner.useEM(STOP)
    learner.useSmoothingPrior(pseudo_count)
    model = learner.learnParameters(structure.dag())
    costs = {"seconds": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
    tables = read_pyagrum(network, model)
    arrays = {f"table_{i}": tables[node] for i, node in enumerate(network.nodes)}
    np.savez(folder / "tables.npz", **{k: np.float64(v) for k, v in costs.items()}, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
