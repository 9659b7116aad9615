"""Wrong cells: how well they are found, left out of the tables, and mended.

`python -m benchmarks cells` measures, one part after another:

- exact: rows of ALARM with 0, 1, 3 and 10 % of all cells replaced at random; R is the error of the
  tables over that of clean rows.
- real: tables that nobody drew from a network, two structures, clean and with 1, 2 and 4 % of the
  cells spoilt in four ways; nats that held-out rows lose, and what is said of single cells. Six of
  the tables are shown to cleanlab, too, if it is installed.
- time: 500,000 rows of 50 columns, with and without wrong cells, in counts of the same rows.

`--only exact` runs a part, `--tables 5` so many of the real tables, `--minutes 10` begins no cell
of theirs after that. A run of all parts is kept in `results/cells.json` and `cells.md`.
"""

from __future__ import annotations

import argparse
import shlex
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import NOTEBOOK, Notebook, Record
from benchmarks.fit_scenes import standard_network
from benchmarks.measure import (
    RESULTS,
    Goal,
    Report,
    Settings,
    Table,
    installed_versions,
    render_markdown,
    say,
    write_report,
)
from benchmarks.pool import list_missing, measure_all
from benchmarks.real_tables import SIX, STRUCTURES, list_tables
from benchmarks.table_cells import WAYS, TableCell, describe_wrong, measure_table, version_of_cells
from robustbn import (
    MaximumLikelihoodEstimator,
    RobustEstimator,
    example_network,
    sample,
    total_variation,
)

SHARES = (0.01, 0.02, 0.04)
MOST_R = {0.01: 1.25, 0.03: 2.5, 0.1: 8.0}
NOTE = (
    "Cells of rows are replaced, and the network is fitted with cells found (`find`) and trusted. "
    "R is the error of the tables over that of clean rows. Nats are lost by rows that were kept "
    "aside, against counting the clean rows. cleanlab is "
    "given each column as a label and predictions of boosted trees from the other columns; its "
    "likely value is the most probable one."
)


def spoil(rows: Any, cards: Any, share: float, seed: int = 1) -> Any:
    """Return rows with a share of the cells replaced by any state."""
    rng = np.random.default_rng(seed)
    any_state = (rng.random(rows.shape) * np.array(cards)).astype(rows.dtype)
    return np.where(rng.random(rows.shape) < share, any_state, rows)


def measure_exact(n_rows: int = 50_000) -> tuple[Table, list[Record], list[Goal]]:
    """Return R of ALARM at several shares of wrong cells."""
    alarm = example_network("alarm")
    rows = np.asarray(sample(alarm, n_rows, random_state=0))
    clean, lines, records, goals = 0.0, [], [], []
    for share in (0.0, 0.01, 0.03, 0.1):
        dirty, errors = spoil(rows, alarm.layout.cards, share), []
        for cells in ("trust", "find"):
            fit = RobustEstimator(alarm, prior=0.01, cells=cells, random_state=0).fit(dirty)
            errors.append(total_variation(alarm, fit.network_))
        clean = clean or errors[0]
        trusted, found = (error / clean for error in errors)
        wrong = fit.result_.learned.cells
        told = describe_wrong(wrong and wrong.wrong, rows, dirty)
        record = {"part": "exact", "share": share, "trusted": trusted, "found": found, **told}
        record |= {"n_wrong": int((rows != dirty).sum()), "n_cells": int(rows.size)}
        records.append(record)
        lines.append((f"{share:.0%}", f"{trusted:.2f}", f"{found:.3f}", *_say_sure([record])))
        say(f"ALARM, {share:.0%} of cells: R {trusted:.2f} if trusted, {found:.3f} if found")
        if share:
            goal, most = f"ALARM, {share:.0%} of the cells: R", MOST_R[share]
            goals.append(Goal(goal, f"≤ {most:g}", f"{found:.3f}", found <= most))
        else:
            flagged = sum(told["named"]) / rows.size
            is_met = abs(found - 1) < 5e-4 and flagged <= 1e-4
            said = f"{found:.3f}, {flagged:.3%}"
            goals.append(Goal("ALARM, clean: R, cells flagged", "1.000, ≤ 0.01 %", said, is_met))
    header = ("cells replaced", "R, trusted", "R, found", *SURE)
    return Table(f"ALARM, {n_rows:,} rows", header, tuple(lines)), records, goals


WAYS_SHOWN = ("clean", *WAYS)
SURE = ("flagged", "found of all wrong", "p ≥ 0.9: are wrong", "and mended correctly")


def _say_sure(records: list[Record]) -> tuple[str, ...]:
    """Return what is said of single cells, all records together."""
    named, wrong, mended = (
        np.sum([record[name] for record in records], axis=0)
        for name in ("named", "are_wrong", "mended")
    )
    n_wrong, n_cells = (sum(record[name] for record in records) for name in ("n_wrong", "n_cells"))
    n_sure = named[4:].sum()
    if not named.sum():
        return "0 %", "", "", ""
    of_sure = (wrong[4:].sum() / n_sure, mended[4:].sum() / n_sure) if n_sure else (1.0, 1.0)
    found = f"{wrong.sum() / n_wrong:.2f}" if n_wrong else ""
    return f"{named.sum() / n_cells:.3%}", found, f"{of_sure[0]:.3f}", f"{of_sure[1]:.3f}"


def measure_real(
    n_tables: int | None, settings: Settings
) -> tuple[list[Table], list[Record], list[Goal], tuple[str, ...]]:
    """Return what wrong cells cost held-out rows of real tables, and what is said of them."""
    tables = list_tables()[:n_tables]
    scenes = [("clean", 0.0), *(("uniform", share) for share in SHARES)]
    scenes += [(way, share) for share in (0.02, 0.01, 0.04) for way in WAYS[1:]]
    cells = [
        TableCell(table, structure, way, share, table in SIX and (way, share) == ("uniform", 0.02))
        for way, share in scenes
        for structure in STRUCTURES
        for table in tables
        if way in ("clean", "uniform") or structure == "tree"
    ]
    notebook = Notebook(NOTEBOOK, version_of_cells(), fresh=settings.fresh)
    records = measure_all(cells, measure_table, notebook, settings)
    done = [record for record in records if "failed" not in record]
    by_scene = {scene: [r for r in done if (r["way"], r["share"]) == scene] for scene in scenes}
    lines = []
    for (way, share), some in sorted(
        by_scene.items(), key=lambda item: WAYS_SHOWN.index(item[0][0])
    ):
        if not some or way == "misspelt":
            continue
        lost, left = (float(np.mean([r[name] for r in some])) for name in ("counting", "ours"))
        ratio = f"{left / lost:.1%}" if share else ""
        figures = (f"{len(some)}", f"{lost:.4f}", f"{left:.4f}", ratio)
        lines.append((way, f"{share:.0%}", *figures, *_say_sure(some)))
    header = ("way", "cells", "cases", "counting loses", "ours loses", "left", *SURE)
    shown = [Table("Real tables, nats a row", header, tuple(lines), n_words=1)]
    shown += [_tabulate_spelling(by_scene), _tabulate_calibration(by_scene), _compare_peer(done)]
    return shown, [{"part": "real", **r} for r in records], _judge(by_scene), list_missing(records)


def _tabulate_spelling(by_scene: dict[tuple[str, float], list[Record]]) -> Table:
    lines = []
    for share in SHARES:
        some = by_scene["misspelt", share]
        names = ("n_wrong", "n_changed", "n_wrong_changed", "n_mended")
        total = {name: sum(r[name] for r in some) for name in names}
        n = max(total["n_changed"], 1)
        counts = (f"{len(some)}", f"{total['n_wrong']:,}", f"{total['n_changed']:,}")
        shares = (total["n_wrong_changed"] / n, total["n_mended"] / n)
        recall = total["n_mended"] / max(total["n_wrong"], 1)
        lines.append((f"{share:.0%}", *counts, *(f"{x:.3f}" for x in (*shares, recall))))
    header = (
        "cells",
        "tables",
        "wrong",
        "changed",
        "were wrong",
        "mended correctly",
        "of all wrong",
    )
    return Table("Misspelt labels, `repair` at 0.9, a tree", header, tuple(lines))


def _tabulate_calibration(by_scene: dict[tuple[str, float], list[Record]]) -> Table:
    lines = []
    for way in WAYS[:3]:
        some = [r for share in SHARES for r in by_scene[way, share]]
        if some:
            named, mended = (np.sum([r[x] for r in some], axis=0) for x in ("named", "mended"))
            shares = mended / np.maximum(named, 1)
            lines.append((way, *(f"{x:.2f}" for x in shares.tolist())))
    header = ("way", "0.5 to 0.6", "to 0.7", "to 0.8", "to 0.9", "to 0.95", "to 1")
    title = "How often the likely value is right, by the probability that is given"
    return Table(title, header, tuple(lines))


def _compare_peer(records: list[Record]) -> Table:
    some = [r for r in records if "cleanlab" in r]
    header = ("who", "flagged", "are wrong", "mended correctly", "of all wrong", "CPU seconds")
    if not some:
        return Table("Beside cleanlab", header, (), "cleanlab is not installed.")
    names = ("n_flagged", "n_right", "n_mended", "n_wrong", "cpu_s")
    n, right, mended, wrong, cpu = (sum(r["cleanlab"][x] for r in some) for x in names)
    named, ours_right, ours_mended = (
        int(np.sum([r[x] for r in some])) for x in ("named", "are_wrong", "mended")
    )
    ours_wrong = sum(r["n_wrong"] for r in some)
    lines = (
        _say_who("ours, p ≥ 0.5", named, ours_right, ours_mended, ours_wrong,
                 sum(r["cpu_s"] for r in some)),
        _say_who("cleanlab", n, right, mended, wrong, cpu),
    )  # fmt: skip
    return Table(f"Beside cleanlab, 2 % of the cells, {len(some)} cases", header, lines)


def _say_who(who: str, n: int, right: int, mended: int, wrong: int, cpu: float) -> tuple[str, ...]:
    shares = (right / max(n, 1), mended / max(n, 1), mended / max(wrong, 1))
    return who, f"{n:,}", *(f"{x:.3f}" for x in shares), f"{cpu:.1f}"


def _judge(by_scene: dict[tuple[str, float], list[Record]]) -> list[Goal]:
    clean, goals = by_scene["clean", 0.0], []
    uniform = [r for share in SHARES for r in by_scene["uniform", share]]
    if not clean or not uniform:
        return []
    left = sum(r["ours"] for r in uniform) / sum(r["counting"] for r in uniform)
    goals.append(Goal("real tables: loss left", "≤ 35 %", f"{left:.1%}", left <= 0.35))
    lost = float(np.mean([r["ours"] for r in clean]))
    goals.append(Goal("clean tables: nats lost", "≤ 0.002", f"{lost:.4f}", lost <= 0.002))
    flagged = sum(sum(r["named"]) for r in clean) / sum(r["n_cells"] for r in clean)
    goals.append(Goal("clean tables: flagged", "≤ 0.02 %", f"{flagged:.3%}", flagged <= 2e-4))
    named, wrong, mended = (
        sum(sum(r[x][4:]) for r in uniform) for x in ("named", "are_wrong", "mended")
    )
    for sentence, share in (("are wrong", wrong / named), ("mended correctly", mended / named)):
        goals.append(Goal(f"p ≥ 0.9: {sentence}", "≥ 0.85", f"{share:.3f}", share >= 0.85))
    return goals


def measure_time(n_rows: int = 500_000) -> tuple[Table, list[Record], list[Goal]]:
    """Return the time of fits to clean rows and to rows with wrong cells, in counts."""
    network = standard_network(0)
    rows = np.asarray(sample(network, n_rows, random_state=0))
    lines, records, goals = [], [], []
    for share in (0.0, 0.01):
        dirty = spoil(rows, network.layout.cards, share)
        makers = {
            "count": lambda: MaximumLikelihoodEstimator(network),
            "trust": lambda: RobustEstimator(network, cells="trust", random_state=0),
            "find": lambda: RobustEstimator(network, random_state=0),
        }
        wall, cpu = dict.fromkeys(makers, np.inf), dict.fromkeys(makers, np.inf)
        for _ in range(3):
            for name, make in makers.items():
                begun, begun_cpu = time.perf_counter(), time.process_time()
                make().fit(dirty)
                wall[name] = min(wall[name], time.perf_counter() - begun)
                cpu[name] = min(cpu[name], time.process_time() - begun_cpu)
        counts, times = cpu["find"] / cpu["count"], cpu["find"] / cpu["trust"]
        records.append({"part": "time", "share": share, "wall_s": wall, "cpu_s": cpu})
        figures = (f"{1e3 * cpu[name]:.0f}" for name in makers)
        lines.append((f"{share:.0%}", *figures, f"{counts:.0f}", f"{times:.2f}"))
        if share:
            goals.append(Goal("1 % wrong cells: counts", "≤ 60", f"{counts:.0f}", counts <= 60))
        else:
            said = f"{times:.2f}"
            goals.append(Goal("clean: times the fit without", "≤ 1.3", said, times <= 1.3))
    header = ("cells replaced", "count, ms", "trust, ms", "find, ms", "counts", "times trust")
    title = f"Processor time, {n_rows:,} rows of 50 columns"
    return Table(title, header, tuple(lines)), records, goals


def main(arguments: list[str]) -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cells", description=__doc__)
    parts = ("exact", "real", "time")
    parser.add_argument("--only", choices=parts, help="one part")
    parser.add_argument("--tables", type=int, help="so many of the real tables")
    parser.add_argument("--minutes", type=float, default=25.0, help="for the real tables")
    parser.add_argument("--fresh", action="store_true", help="ignore cells measured before")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    chosen = parser.parse_args(arguments)
    settings = Settings(
        minutes=chosen.minutes,
        fresh=chosen.fresh,
        command=shlex.join(["python", "-m", "benchmarks", "cells", *arguments]),
    )
    tables, records, goals, skipped = [], [], [], ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part, measure in (("exact", measure_exact), ("time", measure_time)):
            if chosen.only in (None, part):
                table, some, wanted = measure()
                tables, records, goals = [*tables, table], records + some, goals + wanted
        if chosen.only in (None, "real"):
            shown, some, wanted, skipped = measure_real(chosen.tables, settings)
            tables, records, goals = tables + shown, records + some, goals + wanted
    names = ["robustbn", "numpy", "scikit-learn"]
    report = Report(
        "cells", "Wrong cells", NOTE, settings, installed_versions(names), tuple(tables),
        tuple(records), tuple(goals), skipped,
    )  # fmt: skip
    print(render_markdown(report))
    if chosen.only is None:
        for path in write_report(report, chosen.output):
            say(f"wrote {path}")
