"""`robustbn sample`: rows drawn from a network."""

from __future__ import annotations

import sys
from typing import Any

import click

from robustbn._cli.count import Count
from robustbn._cli.files import TABLES, Outputs, raw_option, write_codes
from robustbn._cli.networks import load_network, network_options, require_tables
from robustbn._cli.screen import Screen, print_facts, screen_options


@click.command
@click.argument("network", type=click.Path())
@click.option("-n", "--rows", type=Count(1), default=1000, show_default=True,
              help="How many rows to draw.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(), metavar="TABLE",
              help="A .csv, .parquet or .arrow file; else CSV on standard output.")  # fmt: skip
@click.option("--codes", is_flag=True, help="Write positions of states, not their labels.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same rows.")
@click.option("--jobs", type=Count(1), metavar="N", help="Threads.  [default: all]")
@raw_option
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@network_options
@screen_options
def command(
    network: str,
    screen: Screen,
    rows: int,
    output: str | None,
    codes: bool,
    seed: int,
    jobs: int | None,
    force: bool,
    **options: Any,
) -> None:
    """Draw rows from NETWORK, which must have tables.

    \b
      robustbn sample net.bif -n 100000 -o rows.parquet
      robustbn sample example:alarm -n 5
    """  # noqa: D301
    from robustbn.simulate import sample

    if output is None and screen.is_json:
        raise click.UsageError(
            "Without -o the rows themselves are printed: drop --json, or add -o."
        )
    outputs = Outputs(force, [network])
    outputs.plan("rows", output, TABLES)
    with screen.catching_warnings(), screen.steps() as steps:
        source = load_network(network, **options)
        require_tables(source, network, "drawing rows")
        with steps.step("draw", f"drawing {rows:,} rows"):
            drawn = sample(source, rows, seed, n_threads=jobs)
        with steps.step("write", "writing"), outputs.writing():
            outputs.write("rows", lambda path: write_codes(drawn, source, path, codes))
    if output is None:
        sys.stdout.flush()
        write_codes(drawn, source, sys.stdout.buffer, codes)
        return
    facts = {"network": network, "rows": rows, "seed": seed, "files": outputs.names}
    screen.show(facts, lambda console, _: print_facts(console, {f"{rows:,} rows": output}))
