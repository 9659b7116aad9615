"""`robustbn compare` of two models: tables that moved, kinds of bad rows that came and went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robustbn._cli.files import Outputs
from robustbn._cli.networks import is_model, load_model
from robustbn._cli.screen import Screen, print_facts
from robustbn._core.file_names import name_of
from robustbn._core.numbers import count

if TYPE_CHECKING:
    from rich.console import Console


def are_fits(first: str, second: str) -> bool:
    """Whether both are robust fits, as `fit --model` writes them."""
    from robustbn.estimator import RobustEstimator
    from robustbn.estimator.model_file import read_model

    return all(
        is_model(text) and read_model(text).estimator == RobustEstimator.__name__
        for text in (first, second)
    )


def compare_fits(
    first: str, second: str, screen: Screen, outputs: Outputs, *, common: bool, top: int
) -> None:
    """Compare two saved fits, and show what differs."""
    from robustbn.estimator import compare

    with screen.catching_warnings(), screen.steps() as steps:
        with steps.step("read", "reading"):
            fits = [load_model(text) for text in (first, second)]
        with steps.step("compare", "comparing"):
            names = name_of(first), name_of(second)
            found = compare(*fits, common=common, names=names)
            cells = {
                table.node: [_describe(cell) for cell in found.cells(table.node, 5)]
                for table in found.tables[:top]
            }
        with outputs.writing():
            outputs.write("report", found.report)
    facts = {**found.facts(), "cells": cells, "files": outputs.names, "warnings": screen.warned}
    kinds = [str(kind) for kind in found.kinds]

    def show(console: Console, facts: Any) -> None:
        _show(console, facts, kinds, top)

    screen.show(facts, show)


def _describe(cell: Any) -> dict[str, Any]:
    """Return a cell as plain values."""
    return {
        "state": cell.state,
        "parents": cell.parents,
        "before": cell.before,
        "after": cell.after,
        "z": cell.z,
    }


def _show(console: Console, facts: Any, kinds: list[str], top: int) -> None:
    """Print what differs between two fits, on one screen."""
    from rich.text import Text

    from robustbn._cli.screen import plain
    from robustbn._show.words import percent

    console.print(Text(plain(facts["verdict"]), "bold"))
    console.print()
    for side in (facts["first"], facts["second"]):
        left_out = f", {side['rows_left_out']:,} left out" if side["rows_left_out"] else ""
        settled = "" if side["converged"] else "; not settled"
        kinds_of = count(side["kinds"], "kind")
        text = (
            f"{count(side['rows'], 'row')}{left_out}; {percent(side['contamination'])} distrusted; "
            f"{kinds_of}; misfit {side['misfit_in_words']}{settled}"
        )
        print_facts(console, {side["name"]: text})
    _show_tables(console, facts["tables"][:top])
    for kind in kinds:
        print_facts(console, {"kind": kind})
    print_facts(console, facts["files"])


def _show_tables(console: Console, tables: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from robustbn._cli.screen import plain
    from robustbn._show.words import percent, shorten

    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("table of", no_wrap=True)
    for name in ("moved", "error"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("its cell that moved most", ratio=1)
    for name in ("before", "after", "z"):
        shown.add_column(name, justify="right", no_wrap=True)
    for line in tables:
        given = ", ".join(f"{p}={v}" for p, v in line["parents"].items())
        cell = f"{line['state']}" + (f" given {given}" if given else "")
        shown.add_row(
            shorten(plain(line["node"]), 24),
            percent(line["moved"]),
            percent(line["error"]),
            shorten(plain(cell), 60),
            percent(line["before"]),
            percent(line["after"]),
            f"{line['z']:.1f}",
            style="" if line["is_significant"] else "dim",
        )
    console.print()
    console.print(shown)
    console.print()
