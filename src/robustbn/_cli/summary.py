"""What `fit` says on one screen, and the same as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from robustbn._cli.networks import describe, say_ignored
from robustbn._cli.screen import names_before_row, plain, print_facts, say_kept
from robustbn._cli.states import say_found
from robustbn._core.kinds import BadKind
from robustbn._core.numbers import count
from robustbn._show.advice import (
    CellMove,
    cell_moves,
    next_actions,
    say_moved_cells,
    say_origin,
    verdict,
)
from robustbn._show.frames import origin_columns, question_columns
from robustbn._show.result import FitResult
from robustbn._show.words import percent, shorten

if TYPE_CHECKING:
    from rich.console import Console

MOST_TABLES = 10
MOST_PRINTED = 3  # tables: all must fit on one screen
MOST_GROUPS = 3
NOTHING_TO_ASK = "No row to look at: nothing speaks against any, and no group stands apart."


def fit_facts(result: FitResult, network: str, table: str) -> dict[str, Any]:
    """Return what there is to say of a fit."""
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
        "where": _where(result),
        "unsettled": result.few_rows if result.converged else result.status,
        "missing_edges": [
            {"parent": edge.parent, "child": edge.child, "gain": edge.gain} for edge in result.edges
        ],
        "tables_moved": result.n_moved,
        "moved": [_moved(move) for move in cell_moves(result, MOST_TABLES, is_any=True)],
        "kinds": [_describe_kind(kind) for kind in result.kinds],
        "repeated_rows": len(result.repeats),
        "inferred": _inferred(result),
    }


def _describe_kind(kind: BadKind) -> dict[str, Any]:
    return {
        "number": kind.number,
        "share": kind.share,
        "rows": kind.n_rows,
        "cause": None if kind.cause is None else asdict(kind.cause),
        "nats_a_row": kind.nats,
        "unusual": [str(cell) for cell in kind.unusual],
        "where": [say_origin(origin) for origin in kind.origins],
    }


def _say_kind(kind: dict[str, Any]) -> str:
    """Return what is known of a kind, in full: the terminal breaks the line."""
    cause = kind["cause"]
    what = (
        f"{cause['name']}. {cause['text']}" if cause else f"no single cause; {kind['unusual'][0]}"
    )
    return plain(f"about {count(kind['rows'], 'row')}: {what}")


def _inferred(result: FitResult) -> dict[str, Any] | None:
    """Return what was inferred of missing values."""
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


def rows_to_ask(result: FitResult, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that a person should look at, if that was asked; no values if private."""
    if options["ask"] is None:
        return []
    columns = question_columns(result, options["ask"])
    if options["no_rows"]:
        columns = {n: columns[n] for n in ["row", "weight", "kind", "change"]}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _where(result: FitResult) -> list[dict[str, Any]]:
    """Return the groups of rows that hold more distrusted ones than chance."""
    columns = origin_columns(result.origins) | {"says": [str(each) for each in result.origins]}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _moved(move: CellMove) -> dict[str, Any]:
    """Return how one table moved, and the cell that moved most in it."""
    table = move.table
    return {
        "node": table.node,
        "moved": table.moved,
        "error": table.error,
        "is_significant": table.is_significant,
        "n_eff": table.n_eff,
        "state": move.state,
        "parents": move.parents,
        "counting": move.counted,
        "robust": move.robust,
    }


def show_fit(console: Console, facts: Mapping[str, Any]) -> None:
    """Print what a fit found, on one screen."""
    from rich.text import Text

    table = facts["table"]
    console.print(Text(plain(facts["verdict"]), "bold"))
    for line in facts["changed"]:
        console.print(Text(plain(line)), soft_wrap=True)
    console.print()
    left_out = "; ".join(f"{n:,} left out, {why}" for why, n in table["left_out_because"].items())
    ignored = table["columns_ignored"]
    print_facts(
        console,
        {
            "rows": f"{table['rows']:,}" + (f"; {left_out}" if left_out else ""),
            "ignored": say_ignored(ignored) if ignored else None,
            "states": say_found(facts["states"]) if facts.get("states") else None,
            "missing": table["missing"] or None,
            "stopped": facts["status"],
            "unseen": facts["unseen"] or None,
            **{f"kind {n + 1}": _say_kind(kind) for n, kind in enumerate(facts["kinds"][:2])},
            "where": "\n".join(plain(o["says"]) for o in facts["where"][:MOST_GROUPS]) or None,
            "edges": _say_edges(facts["missing_edges"]),
        },
    )
    show_moved(console, [line for line in facts["moved"][:MOST_PRINTED] if line["moved"]])
    show_asked(console, facts["ask"])
    print_facts(console, {"ask": facts["nothing_to_ask"] or None})
    show_next(console, facts["next"])
    show_end(console, facts)


def show_next(console: Console, actions: list[dict[str, str]]) -> None:
    """Print what to do next, each with its command."""
    for number, action in enumerate(actions, start=1):
        print_facts(console, {f"next {number}": f"{action['say']}\n  {action['command']}"})


def _say_edges(edges: list[dict[str, Any]]) -> str | None:
    said = [f"{e['parent']} - {e['child']} ({e['gain']:.3f} nats a row)" for e in edges]
    return f"missing: {'; '.join(said)}" if said else None


def show_moved(console: Console, moved: list[dict[str, Any]]) -> None:
    """Print the tables that moved most, if any did."""
    from rich.table import Table

    console.print()
    if not moved:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left", pad_edge=False)
    for name, justify in (("table of", "left"), ("moved", "right"), ("error", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("its cell that moved most", ratio=1)
    table.add_column("counting", justify="right", no_wrap=True)
    table.add_column("trusted", justify="right", no_wrap=True)
    for line in moved:
        given = ", ".join(f"{p}={v}" for p, v in line["parents"].items())
        cell = f"{line['state']}" + (f" given {given}" if given else "")
        style = "" if line["is_significant"] else "dim"
        table.add_row(
            shorten(plain(line["node"]), 24),
            percent(line["moved"]),
            percent(line["error"]),
            shorten(plain(cell), 60),
            percent(line["counting"]),
            percent(line["robust"]),
            style=style,
        )
    console.print(table)
    console.print()


def show_asked(console: Console, asked: list[dict[str, Any]]) -> None:
    """Print the rows that a person should look at, by number and by what they keep."""
    from rich.table import Table

    if not asked:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("look at row", "trust", "kind", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    kept = names_before_row(asked[0])
    for name in kept:
        table.add_column(shorten(plain(name), 24), no_wrap=True)
    table.add_column("because", ratio=1)
    for line in asked:
        kind = str(line["kind"]) if line["kind"] else ""
        numbers = f"{line['row']:,}", percent(line["weight"]), kind, percent(line["change"])
        named = [shorten(plain(say_kept(line[name])), 40) for name in kept]
        table.add_row(*numbers, *named, plain(line.get("why", "")))
    console.print(table)
    console.print()


def show_end(console: Console, facts: Mapping[str, Any]) -> None:
    """Print how long it took, where the files are, and last whether the fit did not settle."""
    seconds = facts["seconds"]
    parts = [f"{name} {value:.2f} s" for name, value in seconds.items()]
    print_facts(console, {"time": ", ".join(parts)})
    for name, path in facts["files"].items():
        print_facts(console, {name.removeprefix("folder "): path})
    if not facts["converged"]:
        console.print(f"Not settled: {plain(facts['unsettled'])}", style="yellow", soft_wrap=True)
