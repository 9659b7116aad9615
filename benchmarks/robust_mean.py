"""How the time of a robust mean grows with the stored entries, from sparse to dense rows.

The good rows of a case have the given density, normal entries where they have any; a tenth of the
rows also has entries 3 in a random half of 30 columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import (
    Goal,
    Report,
    Settings,
    Table,
    installed_versions,
    say,
    time_interleaved,
)
from benchmarks.verdict import fit_exponent
from robustbn.mean import robust_mean

DENSITIES = (0.001, 0.01, 0.1, 1.0)
METHODS = ("none", "spectral", "que")
QUE_ENTRIES = 2_000_000  # more would take minutes
SHARE = 0.1
STEEPEST = 1.1

HEADER = ("density", "method", "nnz", "time, ms", "ns an entry", "steps", "error", "bad removed")
NOTE = (
    "Time is wall clock of the fastest round. `ns an entry` divides it by nnz + N + dim; with a "
    "constant number of steps it is constant when time is linear. `error` is the distance from the "
    "mean of the good rows, as a share of that of the plain mean; `bad removed` is the share of "
    "the bad rows' weight that was taken. A density of 1 is a dense array, the others are CSR."
)


@dataclass(frozen=True)
class Case:
    """A matrix and what is known about it."""

    density: float
    X: Any
    is_bad: np.ndarray[Any, np.dtype[np.bool_]]
    good_mean: np.ndarray[Any, np.dtype[np.float64]]
    nnz: int

    @property
    def size(self) -> int:
        """What time should be linear in."""
        return self.nnz + int(sum(self.X.shape))


def run(settings: Settings) -> Report:
    """Time the methods at every density."""
    shape = (4000, 300) if settings.quick else (20_000, 1000)
    records: list[dict[str, Any]] = []
    for density in DENSITIES:
        case = _draw_case(*shape, density, settings.seed)
        say(f"robust mean: density {density:g}, {case.nnz:,} entries")
        records += _measure_case(case, settings)
    return Report(
        "robust_mean",
        "Robust means: time against stored entries",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "scipy"]),
        (_tabulate(shape, records),),
        tuple(records),
        () if settings.quick else tuple(_judge(records)),
    )


def _draw_case(n_rows: int, dim: int, density: float, seed: int) -> Case:
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, dim, density, format="csr", rng=rng, data_rvs=rng.standard_normal)
    is_bad = rng.random(n_rows) < SHARE
    columns = rng.choice(dim, 30, replace=False)
    added = np.zeros((int(is_bad.sum()), dim))
    added[:, columns] = 3.0 * (rng.random((len(added), 30)) < 0.5)
    place = sp.csr_array(
        (np.ones(len(added)), (np.flatnonzero(is_bad), np.arange(len(added)))),
        shape=(n_rows, len(added)),
    )
    X = (X + place @ sp.csr_array(added)).tocsr()
    good_mean = X[~is_bad].mean(axis=0)
    return Case(density, X.toarray() if density == 1 else X, is_bad, good_mean, X.nnz)


def _measure_case(case: Case, settings: Settings) -> Iterator[dict[str, Any]]:
    methods = [m for m in METHODS if m != "que" or case.nnz <= QUE_ENTRIES]
    contenders = {m: partial(robust_mean, case.X, SHARE, m) for m in methods}
    plain = float(np.linalg.norm(case.X.mean(axis=0) - case.good_mean))
    for method, timing in time_interleaved(contenders, settings).items():
        found = contenders[method]()
        yield {
            "density": case.density,
            "method": method,
            "nnz": case.nnz,
            **timing.to_record(),
            "ns_per_entry": timing.wall_s * 1e9 / case.size,
            "n_steps": len(found.history),
            "error": float(np.linalg.norm(found.mean - case.good_mean)) / plain,
            "bad_removed": 1.0 - float(found.weights[case.is_bad].mean()),
        }


def _tabulate(shape: tuple[int, int], records: list[dict[str, Any]]) -> Table:
    lines = tuple(
        (
            f"{r['density']:g}",
            r["method"],
            f"{r['nnz']:,}",
            f"{r['wall_s'] * 1e3:.1f}",
            f"{r['ns_per_entry']:.0f}",
            str(r["n_steps"]),
            f"{r['error']:.3f}",
            f"{r['bad_removed']:.2f}",
        )
        for r in records
    )
    return Table(f"N = {shape[0]:,} rows, {shape[1]:,} columns", HEADER, lines, n_words=2)


def _judge(records: list[dict[str, Any]]) -> Iterator[Goal]:
    """Judge the growth of time a step with nnz, and the error."""
    filtered = [r for r in records if r["method"] == "spectral"]
    seconds = [r["wall_s"] / max(r["n_steps"], 1) for r in filtered]
    slope = fit_exponent([r["nnz"] for r in filtered], seconds)
    yield Goal(
        "filter: time of a step grows like nnz to the power",
        f"≤ {STEEPEST:g}",
        f"{slope:.2f}",
        slope <= STEEPEST,
    )
    worst = max(r["error"] for r in filtered)
    yield Goal("filter: error, share of the plain mean's", "≤ 0.3", f"{worst:.2f}", worst <= 0.3)
