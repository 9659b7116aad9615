"""`robustbn compare`: two fits side by side; or how far two networks are apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli import arguments
from robustbn._cli.files import Outputs
from robustbn._cli.options import at_least, file_option, force_option
from robustbn._cli.screen import Screen, plain, print_facts, print_moved, screen_options
from robustbn._core.file_names import name_of
from robustbn._core.numbers import count

if TYPE_CHECKING:
    from rich.console import Console


@click.command("compare")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@click.option("--top", type=at_least(0), default=10, show_default=True, metavar="N",
              help="Number of nodes to show; --json lists all.")  # fmt: skip
@click.option(
    "--common",
    is_flag=True,
    help="For two models: compare only the nodes that both have in common.",
)
@file_option(
    "--report", metavar="PAGE.html", help="For two models: write a page with both side by side."
)
@force_option
@screen_options
def compare_command(
    first: str, second: str, screen: Screen, top: int, common: bool, report: str | None, force: bool
) -> None:
    """Compare two fits, or measure the distance between two networks.

    If A and B are models (from `fit --model`), such as yesterday's and today's, it prints the
    tables that changed, each with the cell that changed most and z, its change in standard errors;
    the kinds of bad rows that stayed, appeared or disappeared; and the number of rows, share
    distrusted and misfit of each. Both models need the same network, or --common compares the nodes
    that they have in common.

    For two networks, it prints their total variation distance: the largest difference in
    probability of any event, from 0 (equal networks) to 1. For each node, it prints the distance
    between the tables, with parent configurations weighted by their probability in A. Nodes and
    states must be the same, in any order; if the edges differ, only the total is compared.

    \b
      robustbn compare yesterday.json today.json --report changes.html
      robustbn compare truth.bif fitted.bif
      robustbn compare fitted.bif model.json --json
    """  # noqa: D301
    for text in (first, second):
        arguments.refuse_table(text)
    first, second = arguments.bring_network(first), arguments.bring_network(second)
    outputs = Outputs(force, [first, second])
    outputs.plan("report", report, (".html", ".htm"))
    if _is_fit(first) and _is_fit(second):
        with screen.working() as steps:
            with steps.step("read", "reading"):
                fits = [arguments.load_model(text) for text in (first, second)]
            names = name_of(first), name_of(second)
            with steps.step("compare", "comparing"), outputs.writing():
                facts = compare_fits(fits, names, outputs, common=common, top=top)
        screen.show(facts, partial(show_fits, top=top))
        return
    if common or report is not None:
        raise click.UsageError("--common and --report require two models (from fit --model).")
    screen.show(_compare_networks(first, second, screen), partial(_show_networks, top=top))


def _is_fit(text: str) -> bool:
    """Whether it is a robust fit, as `fit --model` writes it."""
    from robustbn.estimator import RobustEstimator
    from robustbn.estimator.model_file import read_model

    return arguments.is_model(text) and read_model(text).estimator == RobustEstimator.__name__


def compare_fits(
    fits: Sequence[Any], names: tuple[str, str], outputs: Outputs, *, top: int, common: bool = False
) -> dict[str, Any]:
    """Return what differs between two fits, and write the page if one is planned."""
    from robustbn.estimator import compare

    found = compare(fits[0], fits[1], common=common, names=names)
    shown = ("state", "parents", "before", "after", "z")
    cells = {
        table.node: [{k: getattr(c, k) for k in shown} for c in found.cells(table.node, 5)]
        for table in found.tables[:top]
    }
    outputs.write("report", found.report)
    facts = {**found.facts(), "cells": cells, "files": outputs.names}
    for kind, each in zip(facts["kinds"], found.kinds, strict=True):
        kind["says"] = str(each)
    return facts


def _compare_networks(first: str, second: str, screen: Screen) -> dict[str, Any]:
    from robustbn.distance import node_distances, total_variation

    with screen.working() as steps:
        with steps.step("read", "reading"):
            a, b = (arguments.load_network(text) for text in (first, second))
            for text, network in ((first, a), (second, b)):
                arguments.require_tables(network, text, "a distance")
        with steps.step("compare", "comparing"):
            distance = total_variation(a, b, random_state=0)
            only_a, only_b = set(a.edges) - set(b.edges), set(b.edges) - set(a.edges)
            apart = {} if only_a or only_b else node_distances(a, b, random_state=0)
    order = sorted(apart, key=lambda node: -apart[node])
    return {
        "first": name_of(first),
        "second": name_of(second),
        "total_variation": float(distance),
        "low": distance.low,
        "high": distance.high,
        "is_exact": distance.exact,
        "nodes": [{"node": node, "distance": apart[node]} for node in order],
        "edges_only_in_first": sorted(only_a),
        "edges_only_in_second": sorted(only_b),
    }


def show_fits(console: Console, facts: Any, top: int) -> None:
    """Print what differs between two fits."""
    from rich.text import Text

    from robustbn._show.words import percent

    console.print(Text(plain(facts["verdict"]), "bold"))
    console.print()
    for side in (facts["first"], facts["second"]):
        left_out = f", {side['rows_left_out']:,} left out" if side["rows_left_out"] else ""
        settled = "" if side["converged"] else "; not converged"
        text = (
            f"{count(side['rows'], 'row')}{left_out}; {percent(side['contamination'])} distrusted; "
            f"{count(side['kinds'], 'kind')}; misfit {side['misfit_in_words']}{settled}"
        )
        print_facts(console, {side["name"]: text})
    console.print()
    print_moved(console, facts["tables"][:top], before="before", after="after", z="z")
    for kind in facts["kinds"]:
        print_facts(console, {"kind": kind["says"]})
    print_facts(console, facts["files"])


def _show_networks(console: Console, facts: Any, top: int) -> None:
    how = "exact" if facts["is_exact"] else f"{facts['low']:.6f} to {facts['high']:.6f}"
    print_facts(console, {"total variation": f"{facts['total_variation']:.6f} ({how})"})
    for name in ("edges_only_in_first", "edges_only_in_second"):
        if facts[name]:
            edges = ", ".join(f"{p} -> {c}" for p, c in facts[name][:8])
            dots = ", ..." if len(facts[name]) > 8 else ""
            print_facts(console, {name.replace("_", " "): f"{len(facts[name])}: {edges}{dots}"})
    nodes = [line for line in facts["nodes"][:top] if line["distance"] > 0]
    if nodes:
        console.print()
        console.print("distance between the tables:")
        print_facts(console, {n["node"]: f"{n['distance']:.6f}" for n in nodes})
