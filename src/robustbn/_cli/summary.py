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
from robustbn._core.groups import Group
from robustbn._show.advice import cell_moves, next_actions, say_moved_cells, say_origin, verdict
from robustbn._show.frames import origin_columns, question_columns
from robustbn._show.result import FitResult
from robustbn._show.words import percent, shorten

if TYPE_CHECKING:
    from rich.console import Console

MOST_TABLES = 10
MOST_PRINTED = 3  # tables that moved: all must fit on one screen
NOTHING_TO_ASK = "No row to look at: nothing speaks against any, and no group stands apart."


def fit_facts(result: FitResult, network: str, table: str) -> dict[str, Any]:
    """Return what there is to say of a fit."""
    reading = result.reading
    origins = origin_columns(result.origins) | {"says": [str(each) for each in result.origins]}
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
        "changed": say_moved_cells(result),
        "next": [
            {"say": action.say, "command": action.command, "python": action.python}
            for action in next_actions(result)
        ],
        "rows_distrusted": result.n_distrusted,
        "contamination": result.contamination,
        "effective_rows": result.effective_rows,
        "converged": result.converged,
        "status": result.status,
        "unseen_configurations": len(result.unseen_configurations),
        "unseen": result.unseen,
        "misfit": None if result.misfit is None else asdict(result.misfit),
        "vanishing": [str(group) for group in result.vanishing],
        "where": _lines_of(origins),
        "unsettled": result.few_rows if result.converged else result.status,
        "missing_edges": [
            {"parent": edge.parent, "child": edge.child, "gain": edge.gain} for edge in result.edges
        ],
        "tables_moved": result.n_moved,
        "moved": _moved(result),
        "kinds": [_describe_kind(kind) for kind in result.kinds],
        "repeated_rows": len(result.repeats),
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


def _moved(result: FitResult) -> list[dict[str, Any]]:
    return [
        {
            **{k: v for k, v in vars(table).items() if k != "n_only_distrusted"},
            "state": state,
            "parents": parents,
            "counting": counted,
            "robust": robust,
        }
        for table, parents, state, counted, robust in cell_moves(result, MOST_TABLES, True)
    ]


def _lines_of(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _describe_kind(kind: Group) -> dict[str, Any]:
    return {
        "number": kind.number,
        "share": kind.share,
        "rows": kind.n_rows,
        "cause": None if kind.cause is None else asdict(kind.cause),
        "nats_a_row": kind.nats,
        "unusual": [str(cell) for cell in kind.unusual],
        "where": [say_origin(origin) for origin in kind.origins],
    }


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
    """Return the rows that a person should look at, if that was asked; no values if private."""
    if n is None:
        return []
    columns = question_columns(result, n)
    if result.rows_hidden:
        columns = {n: columns[n] for n in ("row", "weight", "group", "change")}
    return _lines_of(columns)


def show_fit(console: Console, facts: Mapping[str, Any]) -> None:
    """Print what a fit found, on one screen; last, whether it did not settle."""
    from rich.text import Text

    table = facts["table"]
    console.print(Text(plain(facts["verdict"]), "bold"))
    for line in facts["changed"]:
        console.print(Text(plain(line)), soft_wrap=True)
    console.print()
    show_findings(console, facts["findings"])
    left_out = [f"; {n:,} left out, {why}" for why, n in table["left_out_because"].items()]
    print_facts(
        console,
        {
            "rows": f"{table['rows']:,}{''.join(left_out)}",
            "ignored": say_ignored(table["columns_ignored"]),
            "states": say_found(facts["states"]) if facts.get("states") else None,
            "unseen": facts["unseen"],
            "expert": facts["expert"] and facts["expert"]["says"],
        },
    )
    console.print()
    show_moved(console, [line for line in facts["moved"][:MOST_PRINTED] if line["moved"]])
    show_asked(console, facts["ask"])
    ask = facts["nothing_to_ask"]
    told = {f["advice"]["command"] for f in facts["findings"] if f["severity"] != "note"}
    left = [action for action in facts["next"] if action["command"] not in told]
    actions = enumerate(left, start=1)
    said = {f"next {n}": f"{each['say']}\n  {each['command']}" for n, each in actions}
    times = ", ".join(f"{name} {value:.2f} s" for name, value in facts["seconds"].items())
    print_facts(console, {"ask": ask, **said, "time": times})
    for name, path in facts["files"].items():
        print_facts(console, {name.removeprefix("folder "): path})
    if not facts["converged"]:
        console.print(f"Not settled: {plain(facts['unsettled'])}", style="yellow", soft_wrap=True)


def show_moved(console: Console, moved: list[dict[str, Any]]) -> None:
    if moved:
        print_moved(console, moved, counting="counting", trusted="robust")


def show_asked(console: Console, asked: list[dict[str, Any]]) -> None:
    """Print the rows that a person should look at, by number and by what they keep."""
    if not asked:
        return
    columns = dict.fromkeys(("look at row", "trust", "group", "change"), "right")
    columns |= {shorten(plain(name), 24): "left" for name in names_before_row(asked[0])}
    lines = []
    for line in asked:
        group = str(line["group"] or "")
        cells = [f"{line['row']:,}", percent(line["weight"]), group, percent(line["change"])]
        cells += [shorten(plain(value), 40) for _, value in say_kept(line)]
        lines.append(([*cells, plain(line.get("why", ""))], False))
    print_table(console, {**columns, "because": "wide"}, lines)
