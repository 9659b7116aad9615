"""The paper's oracle with covariances written down, beside the same steps by passes over the rows.

Both are run on the same rows in one process, one after the other, and are judged by CPU time. The
steps are the same up to rounding: so are the tables, which is measured too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from unittest import mock

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from benchmarks.scenes import build_network, draw_scene, title_network
from robustbn import RobustEstimator, total_variation

QUE_NETWORKS = ("example:alarm", "tree:50", "graph:50:500")
QUE_HEADER = (
    "network", "schedule", "rows", "TV, passes", "TV, written", "CPU, passes, s",
    "CPU, written, s", "times",
)  # fmt: skip
GROWTH_HEADER = ("rows of tree, d = 50", "schedule", "TV", "CPU, s", "wall, s")
N_GROWTH_SEEDS = 4
MOST_RISE = 1.05  # means of four tables at their floor differ by a few percent
QUE_NOTE = (
    'Adversary "network" at 0.1, `method="que"` told the share. `passes`: every product of the '
    "exponential is a pass over the rows; `written`: pairs of cells are counted when weights "
    "change. TV to the truth; with more rows, means over 4 tables."
)


def run(settings: Settings) -> Report:
    """Fit by both ways, then grow the table."""
    small, large = (10_000, 20_000) if settings.quick else (50_000, 200_000)
    n_seeds = 5 if settings.full else 1
    cases = [(name, small, seed) for name in QUE_NETWORKS for seed in range(n_seeds)]
    records = [
        _both(name, schedule, n_rows, seed)
        for name, n_rows, seed in [*cases, ("graph:50:500", large, 0)]
        for schedule in ("paper", "joint")
    ]
    growth = [
        _mean_fit("tree:50", schedule, n_rows)
        for schedule in ("paper", "joint")
        for n_rows in (large // 8, large // 4, large // 2, large)
    ]
    return Report(
        "que_time",
        "The paper's oracle, written down and by passes",
        QUE_NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        (
            Table("Both ways", QUE_HEADER, tuple(_line(r) for r in records), n_words=2),
            Table("More rows", GROWTH_HEADER, tuple(_growth_line(r) for r in growth)),
        ),
        (*records, *growth),
        () if settings.quick else tuple(_goals(records, growth)),
    )


@contextmanager
def _by_passes() -> Iterator[None]:
    with mock.patch("robustbn._means.algorithm1.remember_pairs", return_value=None):
        yield


def _fit(name: str, schedule: str, n_rows: int, seed: int) -> dict[str, Any]:
    say(f"que_time: {name}, {schedule}, {n_rows:,} rows, seed {seed}")
    network = build_network(name, 0)
    rows = draw_scene(network, "network", 0.1, n_rows, seed).rows
    wall, cpu = time.perf_counter(), time.process_time()
    fit = RobustEstimator(network, 0.1, method="que", schedule=schedule).fit(rows)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    tv = float(total_variation(network, fit.network_))
    return {"network": name, "schedule": schedule, "n_rows": n_rows, "seed": seed} | {
        "tv": tv, "cpu_s": cpu, "wall_s": wall,
    }  # fmt: skip


def _mean_fit(name: str, schedule: str, n_rows: int) -> dict[str, Any]:
    """Return the means over the tables of a few seeds."""
    fits = [_fit(name, schedule, n_rows, seed) for seed in range(N_GROWTH_SEEDS)]
    means = {k: sum(f[k] for f in fits) / len(fits) for k in ("tv", "cpu_s", "wall_s")}
    return fits[0] | means


def _both(name: str, schedule: str, n_rows: int, seed: int) -> dict[str, Any]:
    written = _fit(name, schedule, n_rows, seed)
    with _by_passes():
        passes = _fit(name, schedule, n_rows, seed)
    return written | {f"{k}_passes": passes[k] for k in ("tv", "cpu_s", "wall_s")}


def _line(record: dict[str, Any]) -> tuple[str, ...]:
    return (
        title_network(record["network"]),
        record["schedule"],
        f"{record['n_rows']:,}",
        f"{record['tv_passes']:.5f}",
        f"{record['tv']:.5f}",
        f"{record['cpu_s_passes']:.1f}",
        f"{record['cpu_s']:.1f}",
        f"{record['cpu_s_passes'] / record['cpu_s']:.1f}",
    )


def _growth_line(record: dict[str, Any]) -> tuple[str, ...]:
    n_rows, tv = f"{record['n_rows']:,}", f"{record['tv']:.4f}"
    return n_rows, record["schedule"], tv, f"{record['cpu_s']:.1f}", f"{record['wall_s']:.1f}"


def _goals(records: list[dict[str, Any]], growth: list[dict[str, Any]]) -> Iterator[Goal]:
    apart = max(abs(r["tv"] - r["tv_passes"]) for r in records)
    yield Goal("TV of one way from TV of the other", "0.0005", f"{apart:.6f}", apart <= 0.0005)
    for record in records[-2:]:
        what = f"200,000 rows of 50 nodes, schedule {record['schedule']}: wall clock"
        yield Goal(what, "3 s", f"{record['wall_s']:.1f} s", record["wall_s"] <= 3)
    for schedule in ("paper", "joint"):
        tvs = [r["tv"] for r in growth if r["schedule"] == schedule]
        rises = max(after / before for before, after in pairwise(tvs))
        what = f"{schedule}: TV with twice the rows, at most, over TV before"
        yield Goal(what, str(MOST_RISE), f"{rises:.2f}", rises <= MOST_RISE)
