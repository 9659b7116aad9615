"""`robustbn inspect`: what a network is, what a table is, and whether they fit together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.networks import (
    EXAMPLE,
    describe,
    is_model,
    load_model,
    load_network,
    network_options,
    some,
)
from robustbn._cli.screen import Screen, Steps, print_facts, screen_options
from robustbn._cli.share import Share
from robustbn._cli.tables import build_config, read_rows, table_options, take_options

if TYPE_CHECKING:
    from rich.console import Console

    from robustbn._core.config import TableConfig
    from robustbn.network import BayesianNetwork

MOST_VALUES = 256
MOST_COLUMNS = 60


@click.command
@click.argument("paths", nargs=-1, required=True, metavar="NETWORK|TABLE...", type=click.Path())
@click.option(
    "--eps", type=Share(False), default="0.1", help="Share of bad rows to plan for.  [default: 0.1]"
)
@network_options
@table_options
@screen_options
def command(paths: tuple[str, ...], screen: Screen, eps: float, **options: Any) -> None:
    """Say what a NETWORK, a model or a TABLE is; with both, whether they fit together.

    A .csv or .tsv file alone is a table, unless --states says that it is a list of edges.

    \b
      robustbn inspect net.bif
      robustbn inspect rows.csv
      robustbn inspect net.bif rows.csv --eps 0.05
    """  # noqa: D301
    if len(paths) > 2:
        raise click.UsageError("Give a network, a table, or a network and a table.")
    if not 0 < eps < 0.5:
        raise click.BadParameter(f"a share of rows above 0 and below 0.5; found {eps}.")
    reading = take_options(options)
    first_is_table = len(paths) == 1 and _is_table(paths[0], options["states"])
    facts: dict[str, Any] = {}
    with screen.catching_warnings(), screen.steps() as steps:
        network = None
        if not first_is_table:
            network = load_network(paths[0], **options)
            facts["network"] = {"path": paths[0], **describe(network)}
            facts["network"]["rows_wanted"] = round(network.n_configurations / eps**2)
            if is_model(paths[0]):
                facts["model"] = _describe_model(paths[0])
        if first_is_table:
            facts["table"] = _describe_table(paths[0], reading, steps)
        elif len(paths) == 2 and network is not None:
            config = build_config(reading, network)
            facts["together"] = _check(network, paths[1], config, eps, steps)
    facts["eps"] = eps
    facts["warnings"] = screen.warned
    screen.show(facts, _show)


def _is_table(text: str, states: str | None) -> bool:
    """Whether a single argument is a table and not a network."""
    from robustbn._networks import FORMATS

    if text.startswith(EXAMPLE):
        return False
    path = Path(text)
    suffixes = [s.lower() for s in path.suffixes]
    suffix = next((s for s in reversed(suffixes) if s not in (".gz", ".zst", ".bz2")), "")
    kind = FORMATS.get(suffix)
    return states is None if kind == "edges" else kind is None


def _describe_model(path: str) -> dict[str, Any]:
    fit = load_model(path)
    return {
        "estimator": type(fit).__name__,
        "fitted_to": fit.reading_.where,
        "rows": fit.reading_.n_rows,
        "contamination": getattr(fit, "contamination_", None),
        "status": getattr(fit, "status_", None),
    }


def _describe_table(path: str, reading: dict[str, Any], steps: Steps) -> dict[str, Any]:
    """Return the columns of a table and what is in them."""
    from robustbn._tables.encode import count_missing, distinct_values
    from robustbn._tables.sources import open_table
    from robustbn.network import BayesianNetwork

    nothing = BayesianNetwork({"x": []}, {"x": [0]})
    config = build_config({**reading, "rename": (), "labels": ()}, nothing)
    n_rows = 0
    with steps.step("read", f"reading {path}"):
        source = open_table(path, sep=config.sep, encoding=config.encoding)
        steps.expect(source.n_rows)
        names = source.names or tuple(map(str, range(source.n_columns)))
        values: list[set[Any]] = [set() for _ in names]
        missing = [0] * len(names)
        for columns in source.read(range(len(names))):
            n = len(columns[0].values)
            for k, (found, column) in enumerate(zip(values, columns, strict=True)):
                missing[k] += count_missing(column, source.is_text)
                if len(found) <= MOST_VALUES:
                    found |= distinct_values(column, source.is_text)
            n_rows += n
            steps.advance(n)
    return {
        "path": path,
        "rows": n_rows,
        "columns": [
            {
                "name": name,
                "different_values": len(found),
                "is_more": len(found) > MOST_VALUES,
                "missing": gone,
                "values": sorted(map(str, found))[:8],
            }
            for name, found, gone in zip(names, values, missing, strict=True)
        ],
    }


def _check(
    network: BayesianNetwork, path: str, config: TableConfig, eps: float, steps: Steps
) -> dict[str, Any]:
    """Return how a table fits a network, and what the paper asks of both."""
    from robustbn._rows.memory import load_rows
    from robustbn._show.diagnosis import diagnose
    from robustbn._show.words import find_constants, find_unseen

    table = read_rows(path, network, config, steps)
    reading = table.reading
    with steps.step("count", "counting"):
        counts = load_rows(network, table.codes, holed=table.holed).count()
    found = diagnose(network.layout, counts, eps)
    return {
        "path": path,
        "rows_read": reading.n_read,
        "rows": reading.n_rows,
        "rows_left_out": reading.n_dropped,
        "missing_by_column": {n: k for n, k in reading.n_missing.items() if k},
        "missing": reading.say_missing(),
        "columns_ignored": list(reading.ignored),
        "constant_columns": [node for node, _ in find_constants(network, counts)],
        "configurations_unseen": len(find_unseen(network, counts)),
        "has_enough_rows": found.has_enough_rows,
        "theorem_applies": found.theorem_applies,
        "rows_wanted": found.rows_wanted,
        "smallest_configuration": found.smallest_configuration,
        "balance": found.balance,
        "conditions": str(found).replace("trusted;", "read;").splitlines(),
    }


def _show(console: Console, facts: Any) -> None:
    if "network" in facts:
        _show_network(console, facts["network"], facts["eps"])
    if "model" in facts:
        model = facts["model"]
        share = model["contamination"]
        found = "" if share is None else f", {share:.1%} of their weight distrusted"
        text = f"{model['estimator']}, fitted to {model['rows']:,} rows{found}"
        print_facts(console, {"model": text, "status": model["status"]})
    if "table" in facts:
        _show_table(console, facts["table"])
    if "together" in facts:
        found = facts["together"]
        unseen = found["configurations_unseen"]
        print_facts(
            console,
            {
                "table": f"{found['path']}: {found['rows']:,} rows, every node has its column",
                "left out": f"{found['rows_left_out']:,} rows" if found["rows_left_out"] else None,
                "missing": found["missing"] or None,
                "ignored": some(found["columns_ignored"]) or None,
                "constant": some(found["constant_columns"]) or None,
                "unseen": f"{unseen:,} configurations occur in no row" if unseen else None,
            },
        )
        print_facts(console, {"paper": "\n".join(found["conditions"])})


def _show_network(console: Console, network: Any, eps: float) -> None:
    fewest, most = network["states"].values()
    states = f"{fewest} states" if fewest == most else f"{fewest} to {most} states"
    print_facts(
        console,
        {
            "network": f"{network['path']}: {network['nodes']:,} nodes with {states}, "
            f"{network['edges']:,} edges, at most {network['most_parents']} parents",
            "tables": f"{'there' if network['has_tables'] else 'none'}; "
            f"{network['cells']:,} entries, {network['free_parameters']:,} of them free, in "
            f"{network['configurations']:,} configurations",
            "to fit": f"about {network['rows_wanted']:,} rows (m / eps^2 at eps = {eps:g})",
        },
    )


def _show_table(console: Console, table: Any) -> None:
    columns = table["columns"]
    print_facts(
        console, {"table": f"{table['path']}: {table['rows']:,} rows, {len(columns)} columns"}
    )
    console.print()
    lines = {}
    for column in columns[:MOST_COLUMNS]:
        n = column["different_values"]
        count = f"more than {MOST_VALUES}" if column["is_more"] else f"{n:,}"
        dots = ", ..." if n > len(column["values"]) else ""
        gone = column["missing"]
        without = f" ({gone / max(table['rows'], 1):.1%} missing)" if gone else ""
        values = ", ".join(column["values"])
        lines[column["name"]] = f"{count:>13} values{without}: {values}{dots}"
    print_facts(console, lines)
    if len(columns) > MOST_COLUMNS:
        console.print(f"and {len(columns) - MOST_COLUMNS} more columns")
