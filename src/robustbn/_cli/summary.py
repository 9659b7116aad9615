"""What `fit` says on one screen, and the same as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from robustbn._cli.arguments import describe, say_ignored
from robustbn._cli.screen import (
    names_before_row,
    plain,
    print_facts,
    print_moved,
    print_table,
    say_kept,
    show_findings,
)
from robustbn._cli.states import say_found
from robustbn._show.advice import cell_moves, verdict
from robustbn._show.frames import question_columns
from robustbn._show.result import FitResult
from robustbn._show.words import percent, shorten

if TYPE_CHECKING:
    from rich.console import Console

MOST_TABLES = 10
MOST_PRINTED = 3  # tables that moved: all must fit on one screen
NOTHING_TO_ASK = (
    "There are no rows to check: no row is suspicious, and no group differs from the others."
)


def fit_facts(result: FitResult, network: str, table: str) -> dict[str, Any]:
    """Return the facts to show about a fit."""
    reading = result.reading
    return {
        "network": {"path": network, **describe(result.network)},
        "table": {
            "path": table,
            "rows_read": reading.n_read,
            "rows": reading.n_rows,
            "rows_left_out": reading.n_dropped,
            "left_out_because": result.dropped,
            "values_missing": reading.n_holes,
            "missing_by_column": {n: k for n, k in reading.n_missing.items() if k},
            "rows_incomplete": reading.n_incomplete,
            "missing": result.missing,
            "columns_ignored": result.ignored,
            "id": reading.config.id,
        },
        "verdict": verdict(result),
        "findings": [finding.as_facts() for finding in result.findings],
        "rows_distrusted": result.n_distrusted,
        "contamination": result.contamination,
        "effective_rows": result.effective_rows,
        "converged": result.converged,
        "status": result.status,
        "unseen_configurations": len(result.unseen_configurations),
        "unseen": result.unseen,
        "misfit": None if result.misfit is None else asdict(result.misfit),
        "unsettled": result.few_rows if result.converged else result.status,
        "tables_moved": result.n_moved,
        "moved": [
            {**vars(table), "state": state, "parents": parents, "counting": counted, "robust": q}
            for table, parents, state, counted, q in cell_moves(result, MOST_TABLES, True)
        ],
        "inferred": _inferred(result),
        "expert": _expert(result),
    }


def _expert(result: FitResult) -> dict[str, Any] | None:
    """Return in how many configurations the rows contradict the expert, and the clearest."""
    view = result.expert
    if view is None:
        return None
    n, n_said = int(view.is_contradicted.sum()), int((view.expert.rows > 0).sum())
    return {
        "says": view.say(),
        "configurations": n_said,
        "contradicted": n,
        "cells": _lines_of(view.columns(min(n, MOST_TABLES))),
    }


def _lines_of(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _inferred(result: FitResult) -> dict[str, Any] | None:
    found = result.inferred
    if found is None:
        return None
    shares = zip(result.network.nodes, found.missing.tolist(), strict=True)
    return {
        "steps": found.n_steps,
        "is_converged": found.is_converged,
        "standard_errors_left": found.left,
        "rows_sampled": found.n_sampled,
        "share_inferred": {node: share for node, share in shares if share},
    }


def rows_to_ask(result: FitResult, n: int | None) -> list[dict[str, Any]]:
    """Return the rows to check if --ask was given; without values if rows are private."""
    if n is None:
        return []
    columns = question_columns(result, n)
    if result.rows_hidden:
        columns = {n: columns[n] for n in ("row", "weight", "group", "change")}
    return _lines_of(columns)


def show_fit(console: Console, facts: Mapping[str, Any]) -> None:
    """Print what a fit found, on one screen: the verdict, the findings, the tables that moved."""
    from rich.text import Text

    table = facts["table"]
    console.print(Text(plain(facts["verdict"]), "bold"), soft_wrap=True)
    console.print()
    page = facts["files"].get("report") or facts["files"].get("folder report")
    show_findings(console, facts["findings"], f"in {page}" if page else "--report, or --json")
    left_out = [f"; {n:,} left out, {why}" for why, n in table["left_out_because"].items()]
    print_facts(
        console,
        {
            "rows": f"{table['rows']:,}{''.join(left_out)}",
            "ignored": say_ignored(table["columns_ignored"]),
            "states": say_found(facts["states"]) if facts.get("states") else None,
            "expert": facts["expert"] and facts["expert"]["says"],
        },
    )
    console.print()
    show_moved(console, [line for line in facts["moved"][:MOST_PRINTED] if line["is_significant"]])
    show_asked(console, facts["ask"])
    times = ", ".join(f"{name} {value:.2f} s" for name, value in facts["seconds"].items())
    print_facts(console, {"ask": facts["nothing_to_ask"], "time": times})
    for name, path in facts["files"].items():
        print_facts(console, {name.removeprefix("folder "): path})


def show_moved(console: Console, moved: list[dict[str, Any]]) -> None:
    if moved:
        print_moved(console, moved, counting="counting", trusted="robust")


def show_asked(console: Console, asked: list[dict[str, Any]]) -> None:
    """Print the rows to check, with their numbers and identifiers."""
    if not asked:
        return
    columns = dict.fromkeys(("check row", "trust", "group", "change"), "right")
    columns |= {shorten(plain(name), 24): "left" for name in names_before_row(asked[0])}
    lines = []
    for line in asked:
        group = str(line["group"] or "")
        cells = [f"{line['row']:,}", percent(line["weight"]), group, percent(line["change"])]
        cells += [shorten(plain(value), 40) for _, value in say_kept(line)]
        lines.append(([*cells, plain(line.get("why", ""))], False))
    print_table(console, {**columns, "because": "wide"}, lines)
