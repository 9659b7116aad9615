"""Sections of the page from stored results: real tables, wrong networks, holes, causes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from benchmarks import causes, holes, misfit, proposals, real
from benchmarks.cells import Record
from benchmarks.measure import Goal, Table, render_lines, tabulate_goals
from benchmarks.sources import describe_sources


def render_stored(folder: Path) -> Iterator[str]:
    """Yield the sections of the results that are in the folder; nothing is measured."""
    few, every = (_read(folder / f"{name}.json") for name in ("real", "real-full"))
    if few is not None or every is not None:
        yield from _render_real(few, every)
    wrong = _read(folder / "misfit-full.json") or _read(folder / "misfit.json")
    if wrong is not None:
        yield from _render_section("Networks that are wrong in a known way", misfit, wrong)
    holed = _read(folder / "holes-full.json") or _read(folder / "holes.json")
    if holed is not None:
        yield from _render_holed(holed)
    named = _read(folder / "causes-full.json") or _read(folder / "causes.json")
    if named is not None:
        yield from _render_section("What is wrong with the rows, by name", causes, named)


def _read(path: Path) -> Record | None:
    if not path.exists():
        return None
    stored: Record = json.loads(path.read_text(encoding="utf-8"))
    return stored


def _render_real(few: Record | None, every: Record | None) -> Iterator[str]:
    yield "## Real tables"
    yield (
        "Nobody drew these rows from a network: the structure is learned from a third of each "
        "table and misses what real structures miss. " + real.NOTE
    )
    for stored in (few, every):
        if stored is None:
            continue
        records = stored["records"]
        n_tables = len({r["table"] for r in records if "methods" in r})
        yield f"### {n_tables} tables"
        yield _render_origin(stored)
        shown = [real.tabulate_columns(records), real.tabulate_rivals(records)]
        if stored is few:
            shown.append(real.tabulate_ways(records))
        yield from _render_tables(shown)
        yield from _render_goals(stored)
    records = (every or few or {})["records"]
    yield "### Finding or judging"
    yield proposals.NOTE
    yield from _render_tables(list(proposals.tabulate(records))[:2])


def _render_section(title: str, benchmark: ModuleType, stored: Record) -> Iterator[str]:
    yield f"## {title}"
    yield benchmark.NOTE
    yield _render_origin(stored)
    yield from _render_tables(benchmark.tabulate(stored["records"]))
    yield from _render_goals(stored)


def _render_holed(stored: Record) -> Iterator[str]:
    yield "## Rows that miss values"
    yield holes.NOTE
    yield _render_origin(stored)
    for table in holes.tabulate(stored["records"]):
        yield from _render_tables([table])
        if table.note:
            yield table.note
    yield from _render_goals(stored)


def _render_origin(stored: Record) -> str:
    records = stored["records"]
    n_done = sum("failed" not in r for r in records)
    file = stored["name"] + ("-full" if stored["settings"].get("full") else "")
    words = (
        f"Made by `{stored['settings']['command']}`, {describe_sources(stored)}: "
        f"`benchmarks/results/{file}.json`, {n_done:,} of {len(records):,} cells"
    )
    return words + ("." if n_done == len(records) else "; " + "; ".join(stored["skipped"]) + ".")


def _render_tables(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        yield f"**{table.title}**"
        yield render_lines(table.header, table.lines, table.n_words)


def _render_goals(stored: Record) -> Iterator[str]:
    if stored["goals"]:
        yield from _render_tables([tabulate_goals([Goal(**goal) for goal in stored["goals"]])])
