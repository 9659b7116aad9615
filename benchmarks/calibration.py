"""`python -m benchmarks calibration`: is what a fit says of itself as often so as stated.

Clean rows are distrusted by hardly any fit; intervals and z-scores cover as stated; rows never seen
raise as many false alarms as documented; and a majority of bad rows is not called clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.calibration_scenes import (
    LEAST_ROWS,
    CalibrationCell,
    measure_calibration,
    version_of_calibration,
)
from benchmarks.cells import NOTEBOOK, Notebook, Record
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.pool import list_missing, measure_all
from benchmarks.scenes import title_network
from benchmarks.verdict import group_by

Records = Sequence[Record]

NETWORKS = ("tree:20", "graph:25:70", "categorical:12:60", "example:alarm")
N_ROWS, EPS, MAJORITY = 20_000, 0.1, 0.6
FAR, NEAR = ("network", "product"), ("tilt",)
MAJORITIES = (
    "product", "network", "repeated", "flipped", "shift", "rowflip", "comonotone", "misjoined",
    "blocks", "mixture", "tilt", "clones", "decoy", "flood",
)  # fmt: skip
CALLED_CLEAN = 0.05  # share distrusted below which a fit that converged says that all is well
NOTE = (
    f"Rows are drawn from known networks, {N_ROWS:,} a fit, a new network for every seed (ALARM "
    "apart). *Distrust anything*: any weight is taken from any row. *Intervals*: the 95 % "
    "intervals of probabilities (`cpts.csv`, the page), by how many trusted rows show the "
    "configuration. *z*: two samples of one network compared; configurations of at least 20 rows "
    "in both. *False alarms*: fresh rows of the network that `predict` calls -1."
)


def plan(settings: Settings) -> list[CalibrationCell]:
    """Return the cells: clean rows, few bad rows, a majority of bad rows."""
    few = 2 if settings.quick else 50 if settings.full else 10
    networks = NETWORKS[:2] if settings.quick else NETWORKS

    def cells(adversary: str, eps: float, n_seeds: int) -> Iterator[CalibrationCell]:
        for network in networks:
            for k in range(n_seeds):
                yield CalibrationCell(network, adversary, eps, N_ROWS, settings.seed + k)

    found = list(cells("none", 0.0, few))
    for adversary in MAJORITIES[:2] if settings.quick else MAJORITIES:
        found += cells(adversary, MAJORITY, max(1, few // 50))
    for adversary in (*FAR, *NEAR):
        found += cells(adversary, EPS, max(1, few // 10))
    return found


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Fit, and compare what is said with what is so."""
    kept = Notebook(notebook, version_of_calibration(), fresh=settings.fresh)
    records = measure_all(plan(settings), measure_calibration, kept, settings)
    return Report(
        "calibration",
        "Calibration: is what a fit says of itself right as often as it says?",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        tuple(tabulate(records)),
        tuple(records),
        () if settings.quick else tuple(judge(records)),
        list_missing(records),
    )


def tabulate(records: Records) -> Iterator[Table]:
    """Yield the tables of the report, from the records alone."""
    done = [record for record in records if "contamination" in record]
    clean = [record for record in done if not record["eps"]]
    if clean:
        yield _tabulate_clean(clean)
    few = [record for record in done if 0 < record["eps"] < 0.5]
    yield _tabulate_intervals([*clean, *few])
    if few:
        yield _tabulate_few(few)
    many = [record for record in done if record["eps"] > 0.5]
    if many:
        yield _tabulate_majority(many)


def share(records: Records, name: str) -> tuple[int, float]:
    """Return how many there are, and the share of them, of a pair of counts summed over records."""
    n, of_them = np.sum([record[name] for record in records], axis=0)
    return int(n), float(of_them / max(n, 1))


def share_covered(records: Records, least: int) -> tuple[int, float]:
    """Return how many intervals have so many rows behind them, and the share that hold."""
    n, held = np.sum([record["intervals"][str(least)] for record in records], axis=0)
    return int(n), float(held / n) if n else float("nan")


def _tabulate_clean(records: Records) -> Table:
    groups = {title_network(key[0]): group for key, group in group_by(records, "network").items()}
    lines = []
    for title, group in (*groups.items(), ("all", list(records))):
        lines.append(
            (
                title,
                str(len(group)),
                str(sum(r["contamination"] > 0 for r in group)),
                str(sum(not r["is_exact"] for r in group)),
                str(sum(r["named_edges"] > 0 for r in group)),
                f"{np.mean([r['false_alarms'] for r in group]):.3%}",
                f"{share(group, 'z')[1]:.2%}",
                f"{share(group, 'tables')[1]:.2%}",
            )
        )
    header = (
        "network", "fits", "distrust anything", "find a misfit", "name an edge", "false alarms",
        "cells with z beyond 1.96", "tables that seem to move",
    )  # fmt: skip
    note = (
        "Stated: an edge at a p-value of 1 %, z beyond 1.96 and tables beyond their error in 5 % "
        "(tables of more than two states in fewer: their error is careful)."
    )
    return Table("Clean rows", header, tuple(lines), note)


def _tabulate_intervals(records: Records) -> Table:
    groups = group_by(records, "adversary")
    lines = []
    for (adversary,), group in groups.items():
        cells = [share_covered(group, least) for least in LEAST_ROWS]
        shown = [f"{held:.1%} of {n:,}" if n else "–" for n, held in cells]
        lines.append((("clean rows" if adversary == "none" else f"{EPS:.0%} {adversary}"), *shown))
    ends = [f"{low:,} to {high - 1:,} rows" for low, high in pairwise(LEAST_ROWS)]
    header = ("rows", *ends, f"{LEAST_ROWS[-1]:,} rows or more")
    return Table("95 % intervals that hold the truth", header, tuple(lines))


def _tabulate_few(records: Records) -> Table:
    lines = []
    for (adversary,), group in group_by(records, "adversary").items():
        alarms = [r["false_alarms"] for r in group]
        lines.append(
            (
                adversary,
                str(len(group)),
                f"{np.mean([r['contamination'] for r in group]):.2%}",
                f"{np.mean([r['caught'] for r in group]):.1%}",
                f"{np.mean(alarms):.3%}",
                f"{np.max(alarms):.3%}",
                str(sum(r["named_groups"] > 0 for r in group)),
            )
        )
    header = (
        "bad rows", "fits", "found", "caught", "false alarms", "most", "name a source",
    )  # fmt: skip
    note = "Bad rows come from twenty sources alike; `where()` states a p-value of 1 %."
    return Table(f"{EPS:.0%} bad rows", header, tuple(lines), note)


def is_called_clean(record: Record) -> bool:
    """Whether a fit says that hardly any row is bad, and does not say that it failed."""
    return bool(record["converged"] and record["contamination"] < CALLED_CLEAN)


def _tabulate_majority(records: Records) -> Table:
    lines = []
    for (adversary,), group in group_by(records, "adversary").items():
        lines.append(
            (
                adversary,
                str(len(group)),
                str(sum(is_called_clean(r) for r in group)),
                str(sum(is_called_clean(r) and r["is_exact"] for r in group)),
                str(sum(not r["converged"] for r in group)),
                str(sum(not r["is_exact"] for r in group)),
                f"{np.mean([r['contamination'] for r in group]):.1%}",
            )
        )
    header = (
        "bad rows", "fits", "hardly distrust", "and find no misfit", "not converged",
        "find a misfit", "found",
    )  # fmt: skip
    note = (
        "No method can know which side of a table is the good one when it is the smaller: what can "
        "be known is that not all rows are of one network. A fit that distrusts hardly any row and "
        "finds no misfit calls the table clean."
    )
    return Table(f"A majority of bad rows: {MAJORITY:.0%}", header, tuple(lines), note)


def judge(records: Records) -> Iterator[Goal]:
    """Yield the goals."""
    done = [record for record in records if "contamination" in record]
    clean = [record for record in done if not record["eps"]]
    many = [record for record in done if record["eps"] > 0.5]
    distrusting = np.mean([r["contamination"] > 0 for r in clean])
    yield Goal("Clean rows: fits that distrust anything", "≤ 1 %", f"{distrusting:.1%}",
               bool(distrusting <= 0.01))  # fmt: skip
    for least in LEAST_ROWS[1:]:
        n, held = share_covered(clean, least)
        yield Goal(f"Clean rows: 95 % intervals from {least:,} rows on that hold ({n:,})",
                   "94 to 96.5 %", f"{held:.1%}", 0.94 <= held <= 0.965)  # fmt: skip
    n, beyond = share(clean, "z")
    yield Goal(f"Clean rows: cells with z beyond 1.96 ({n:,})", "4 to 6 %", f"{beyond:.1%}",
               0.04 <= beyond <= 0.06)  # fmt: skip
    called = sum(is_called_clean(r) and r["is_exact"] for r in many)
    yield Goal(f"A majority of bad rows called clean, of {len(many)} fits", "0", str(called),
               called == 0)  # fmt: skip
