"""`robustbn states` and `convert`: a network of an edge list and a table, or in another format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli import arguments
from robustbn._cli.files import Outputs, network_suffixes
from robustbn._cli.options import WITH_TABLES, file_option, force_option
from robustbn._cli.screen import Screen, Steps, print_facts, screen_options
from robustbn._core.file_names import name_of, nearest_name
from robustbn._core.numbers import count

if TYPE_CHECKING:
    from rich.console import Console

    from robustbn._core.config import TableConfig
    from robustbn._tables.states import ColumnStates
    from robustbn.network import BayesianNetwork
    from robustbn.states import FoundStates

MOST_STATES_SHOWN = 8


@click.command("states")
@click.argument("edges", type=click.Path())
@click.argument("table", type=click.Path())
@file_option(
    "-o", "--output", metavar="NETWORK.json",
    help="Write the network; a .json file also stores how columns are read.",
)  # fmt: skip
@force_option
@arguments.states_option
@arguments.state_options
@arguments.source_options
@screen_options
def states_command(
    edges: str, table: str, screen: Screen, output: str | None, force: bool, **options: Any
) -> None:
    """Find the states of the nodes of EDGES (.csv, .tsv, .txt) in the columns of TABLE.

    Labels are sorted alphabetically, numbers are cut into intervals, dates are grouped by year,
    quarter, month or day, and rare labels are merged. The network in NETWORK.json reads other
    tables in the same way. `fit EDGES TABLE` does this automatically.

    \b
      robustbn states edges.csv rows.csv
      robustbn states edges.csv rows.csv -o network.json --bins age:18,65 --most-states 20
      robustbn fit network.json rows.csv --report report.html
    """  # noqa: D301
    edges, table = arguments.bring_both(edges, table, options)
    outputs = Outputs(force, [edges, table, options["states"]])
    outputs.plan("network", output, network_suffixes())
    with screen.working() as steps:
        found = find_states(edges, table, options, steps)
        with outputs.writing():
            outputs.write("network", found.network.write)
    facts = {
        "edges": name_of(edges),
        "table": name_of(table),
        "rows": found.n_rows,
        "columns": [describe_column(column) for column in found.columns],
        "columns_ignored": list(found.ignored),
        "files": outputs.names,
    }
    screen.show(facts, _show)


def lacks_states(network: str, states: str | None) -> bool:
    """Whether an argument is an edge list, and some of its nodes have no states in a file."""
    from robustbn._networks.edges import read_parents, read_states

    if arguments.kind_of(network) != "text":
        return False
    return states is None or not set(read_parents(network)) <= set(read_states(states))


def find_states(edges: str, table: str, options: Mapping[str, Any], steps: Steps) -> FoundStates:
    """Return the states of the nodes of an edge list, and show how far that is."""
    from robustbn.states import states_from

    config = arguments.build_config(options, draft_network(edges))
    with steps.step("states", f"finding states in {name_of(table)}"):
        return states_from(
            table,
            edges,
            states=options["states"],
            watch=steps.advance,
            **arguments.reading_of(config, options),
        )


def draft_network(nodes: str | Iterable[str]) -> BayesianNetwork:
    """Return a network of which only the nodes count, or those of an edge list."""
    from robustbn._networks.edges import read_parents
    from robustbn.network import BayesianNetwork

    names = list(read_parents(nodes) if isinstance(nodes, str) else nodes)
    return BayesianNetwork(dict.fromkeys(names, ()), dict.fromkeys(names, ("?",)))


def config_of_table(path: str, options: Mapping[str, Any]) -> TableConfig:
    """Return how the columns of a table without a network are read, were they nodes."""
    plain = {**options, "rename": (), "labels": (), "bins": ()}
    columns = (
        arguments.open_source(path, arguments.build_config(plain, draft_network(["x"]))).names or ()
    )
    given = {"rename": options["rename"]}
    renamed = arguments.build_config(given, draft_network(["x"])).rename if given["rename"] else {}
    names = [renamed.get(name, name) for name in columns]
    config = arguments.build_config(options, draft_network(dict.fromkeys(names)))
    for node in config.bins if isinstance(config.bins, Mapping) else ():
        if node not in names:
            near = nearest_name(node, names)
            raise click.UsageError(f"--bins names {node!r}, which {name_of(path)} lacks.{near}")
    return config


def describe_column(column: ColumnStates) -> dict[str, Any]:
    reading = column.reading
    return {
        "name": column.name,
        "kind": column.kind,
        "states": list(column.states),
        "different_values": column.n_distinct,
        "missing": column.n_missing,
        "rows_merged": column.n_merged,
        "edges": None if reading is None or reading.edges is None else list(reading.edges),
        "others": None if reading is None else reading.others,
        "period": None if reading is None else reading.period,
        "note": column.note,
    }


def say_column(column: Mapping[str, Any]) -> str:
    states = column["states"]
    shown = ", ".join(map(str, states[:MOST_STATES_SHOWN]))
    dots = ", ..." if len(states) > MOST_STATES_SHOWN else ""
    missing = f"; {column['missing']:,} missing" if column["missing"] else ""
    note = f"; {column['note']}" if column["note"] else ""
    found = count(len(states), "state")
    return f"{column['kind']:<11}  {found:>10}: {shown}{dots}{note}{missing}"


def say_found(columns: list[dict[str, Any]]) -> str:
    """Return in a few words how the states of a network were found."""
    parts = [
        (sum(c["edges"] is not None for c in columns), "cut into intervals"),
        (sum(c["period"] is not None for c in columns), "taken by period"),
        (sum(c["others"] is not None for c in columns), "with a state 'other'"),
        (sum(c["kind"] == "given" for c in columns), "given"),
    ]
    said = ", ".join(f"{n} {what}" for n, what in parts if n)
    return f"found in the table for {count(len(columns), 'node')}" + (f": {said}" if said else "")


def _show(console: Console, facts: Any) -> None:
    table = {"table": f"{facts['table']}: {count(facts['rows'], 'row')}"}
    columns = {column["name"]: say_column(column) for column in facts["columns"]}
    ignored = {"ignored": arguments.say_ignored(facts["columns_ignored"])}
    print_facts(console, table, columns, ignored, facts["files"])


@click.command("convert")
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--from", "from_format", type=click.Choice([*WITH_TABLES, "edges"]),
              help="Format of IN, regardless of its name.")  # fmt: skip
@click.option("--to", "to_format", type=click.Choice(WITH_TABLES),
              help="Format of OUT, regardless of its name.")  # fmt: skip
@click.option("--no-tables", is_flag=True, help="Write the structure without the tables.")
@click.option("--normalize", is_flag=True, help="Rescale tables that do not sum to 1.")
@click.option("--numbered", is_flag=True, help="For UAI: write numbers instead of names.")
@force_option
@arguments.states_option
@arguments.size_option
@screen_options
def convert_command(
    source: str,
    target: str,
    screen: Screen,
    from_format: str | None,
    to_format: str | None,
    no_tables: bool,
    normalize: bool,
    numbered: bool,
    force: bool,
    **options: Any,
) -> None:
    """Convert the network IN to OUT; the file extensions give the formats.

    All probabilities are kept, and all names that the format can store. Formats: .json, .bif,
    .xmlbif, .net, .xdsl, .uai, each also .gz; a list of edges (.csv with --states) can be read.

    \b
      robustbn convert net.xdsl net.bif
      robustbn convert example:alarm alarm.bif
      robustbn convert edges.csv net.json --states states.json
    """  # noqa: D301
    from robustbn._networks import write_network

    outputs = Outputs(force, [source])
    outputs.plan("network", target, () if to_format else network_suffixes())
    with screen.working():
        network = arguments.load_network(
            source, tables=not no_tables, normalize=normalize, format=from_format, **options
        )
        network = network.with_cpts(None) if no_tables else network
        with outputs.writing():
            outputs.write(
                "network", lambda path: write_network(network, path, to_format, numbered=numbered)
            )
    facts = {**arguments.describe(network), "files": outputs.names}
    screen.show(facts, lambda console, _: print_facts(console, {"written": target}))
