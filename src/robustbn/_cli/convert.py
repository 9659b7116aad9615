"""`robustbn convert`: a network in another format."""

from __future__ import annotations

from typing import Any

import click

from robustbn._cli.files import Outputs, network_suffixes
from robustbn._cli.networks import describe, load_network, size_option, states_option
from robustbn._cli.options import force_option
from robustbn._cli.screen import Screen, print_facts, screen_options

FORMAT_NAMES = ("json", "bif", "xmlbif", "net", "xdsl", "uai")


@click.command
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--from", "from_format", type=click.Choice([*FORMAT_NAMES, "edges"]),
              help="Format of IN, whatever its name.")  # fmt: skip
@click.option("--to", "to_format", type=click.Choice(FORMAT_NAMES),
              help="Format of OUT, whatever its name.")  # fmt: skip
@click.option("--no-tables", is_flag=True, help="Write the structure alone.")
@click.option("--normalize", is_flag=True, help="Rescale tables that do not sum to 1.")
@click.option("--numbered", is_flag=True, help="For UAI: drop the names, write numbers.")
@force_option
@states_option
@size_option
@screen_options
def command(
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
    """Write the network IN to OUT; the ends of the names say the formats.

    Every number and, where the format can hold it, every name is kept. Formats: .json, .bif,
    .xmlbif, .net, .xdsl, .uai, each also .gz; a list of edges (.csv with --states) can be read.

    \b
      robustbn convert net.xdsl net.bif
      robustbn convert example:alarm alarm.bif
      robustbn convert edges.csv net.json --states states.json
    """  # noqa: D301
    from robustbn._networks import write_network

    outputs = Outputs(force, [source])
    outputs.plan("network", target, () if to_format else network_suffixes())
    with screen.catching_warnings():
        network = load_network(
            source, tables=not no_tables, normalize=normalize, format=from_format, **options
        )
        network = network.with_cpts(None) if no_tables else network
        with outputs.writing():
            outputs.write(
                "network",
                lambda path: write_network(network, path, to_format, numbered=numbered),
            )
    facts = {**describe(network), "files": outputs.names, "warnings": screen.warned}
    screen.show(facts, lambda console, _: print_facts(console, {"written": target}))
