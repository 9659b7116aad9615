"""`robustbn compare`: two fits side by side; or how far two networks are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.compare_fits import are_fits, compare_fits
from robustbn._cli.files import Outputs
from robustbn._cli.networks import bring_network, load_network, refuse_table, require_tables
from robustbn._cli.options import Count, force_option
from robustbn._cli.screen import Screen, print_facts, screen_options
from robustbn._core.file_names import name_of

if TYPE_CHECKING:
    from rich.console import Console


@click.command
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@click.option("--top", type=Count(0), default=10, show_default=True, metavar="N",
              help="Nodes to show; --json has them all.")  # fmt: skip
@click.option("--common", is_flag=True, help="Of two models, compare the nodes that are alike.")
@click.option("--report", type=click.Path(), metavar="PAGE.html",
              help="Of two models, a page with both side by side.")  # fmt: skip
@force_option
@screen_options
def command(
    first: str,
    second: str,
    screen: Screen,
    top: int,
    common: bool,
    report: str | None,
    force: bool,
) -> None:
    """Say what differs between two fits, or how far two networks are apart.

    A and B are models (from `fit --model`): yesterday and today, before and after a mend. Shown are
    the tables that moved, with the cell of each that moved most and z, its change in standard
    errors of both; the kinds of bad rows that stayed, came and went; rows, share distrusted,
    misfit. Networks must be the same, or --common compares the nodes that are alike.

    Of two networks, their total variation is told: the largest difference in probability that any
    event can have, 0 for equal networks, 1 at most. Per node, it is the difference of the tables,
    each configuration counted as often as it occurs in A. Nodes and states must be the same, in
    any order; where edges differ, only the whole is compared.

    \b
      robustbn compare yesterday.json today.json --report changes.html
      robustbn compare truth.bif fitted.bif
      robustbn compare fitted.bif model.json --json
    """  # noqa: D301
    from robustbn.distance import node_distances, total_variation
    from robustbn.exceptions import NetworkError

    for text in (first, second):
        refuse_table(text)
    first, second = bring_network(first), bring_network(second)
    outputs = Outputs(force, [first, second])
    outputs.plan("report", report, (".html", ".htm"))
    if are_fits(first, second):
        compare_fits(first, second, screen, outputs, common=common, top=top)
        return
    if common or report is not None:
        raise click.UsageError("--common and --report are for two models (fit --model).")
    with screen.catching_warnings(), screen.steps() as steps:
        with steps.step("read", "reading"):
            a, b = (load_network(text) for text in (first, second))
            for text, network in ((first, a), (second, b)):
                require_tables(network, text, "a distance")
        with steps.step("compare", "comparing"):
            distance = total_variation(a, b, random_state=0)
            only_a, only_b = set(a.edges) - set(b.edges), set(b.edges) - set(a.edges)
            try:
                apart = {} if only_a or only_b else node_distances(a, b, random_state=0)
            except NetworkError:  # pragma: no cover - same edges are the same parents
                apart = {}
    order = sorted(apart, key=lambda node: -apart[node])
    facts = {
        "first": name_of(first),
        "second": name_of(second),
        "total_variation": float(distance),
        "low": distance.low,
        "high": distance.high,
        "is_exact": distance.exact,
        "nodes": [{"node": node, "distance": apart[node]} for node in order],
        "edges_only_in_first": sorted(only_a),
        "edges_only_in_second": sorted(only_b),
        "warnings": screen.warned,
    }

    def show(console: Console, facts: Any) -> None:
        _show(console, facts, top)

    screen.show(facts, show)


def _show(console: Console, facts: Any, top: int) -> None:
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
        console.print("distance of the tables:")
        print_facts(console, {n["node"]: f"{n['distance']:.6f}" for n in nodes})
