"""`robustbn corrupt`: a poisoned copy of a table, and which of its rows are bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from robustbn._cli.files import TABLES, Outputs, raw_option, write_codes, write_columns
from robustbn._cli.networks import bring_network, load_network, network_options, some
from robustbn._cli.order import refuse_swapped
from robustbn._cli.screen import Screen, print_facts, screen_options
from robustbn._cli.share import Share
from robustbn._cli.tables import bring_table, build_config, read_rows, table_options, take_options

ADVERSARIES = (
    "product", "network", "repeated", "flipped", "shift", "rowflip", "comonotone", "misjoined",
    "blocks", "mixture", "tilt", "clones", "decoy", "flood", "adaptive", "veil", "lawful",
    "tail", "subtract", "starve",
)  # fmt: skip


@click.command
@click.argument("network", type=click.Path())
@click.argument("table", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), metavar="DIRTY",
              help="The poisoned copy (.csv, .parquet, .arrow).")  # fmt: skip
@click.option("--bad", type=click.Path(), metavar="FILE",
              help="Which rows are bad.  [default: DIRTY with .bad.csv]")  # fmt: skip
@click.option("--kind", type=click.Choice(ADVERSARIES), default="mixture", show_default=True,
              help="Who poisons it.")  # fmt: skip
@click.option("--eps", type=Share(False), default="0.1", help="Share of bad rows.  [default: 0.1]")
@click.option("--mode", type=click.Choice(["replace", "add"]), default="replace", show_default=True,
              help="Replace rows, or add to them.")  # fmt: skip
@click.option("--strength", type=float, help="How far to go, in the unit of the kind.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same rows.")
@raw_option
@click.option("--force", is_flag=True, help="Replace files that are there.")
@network_options
@table_options
@screen_options
def command(network: str, table: str, screen: Screen, **options: Any) -> None:
    """Make a poisoned copy of TABLE to try things on, and write which of its rows are bad.

    The adversary knows the tables of NETWORK; a network without tables gets those of the rows, by
    counting. The copy has the columns of the network's nodes. Kinds `subtract` and `starve` take
    rows away instead of adding bad ones.

    \b
      robustbn corrupt net.bif good.csv --kind mixture --eps 0.1 -o dirty.csv
      robustbn corrupt net.bif good.csv --kind clones --eps 20% --mode add -o dirty.parquet
    """  # noqa: D301
    from robustbn.simulate import corrupt

    refuse_swapped(network, table)
    eps, output = options["eps"], Path(options["output"])
    if not 0 <= eps < 1:
        raise click.BadParameter(f"a share of rows, from 0 to below 1; found {eps:g}.")
    bad_path = options["bad"] or output.with_suffix(".bad.csv")
    reading = take_options(options)
    network, table = bring_network(network), bring_table(table, reading)
    outputs = Outputs(options["force"], [network, table])
    outputs.plan("rows", output, TABLES)
    outputs.plan("bad rows", bad_path, TABLES)
    with screen.catching_warnings(), screen.steps() as steps:
        source = load_network(network, states=options["states"], max_table=options["max_table"])
        good = read_rows(table, source, build_config(reading, source), steps)
        known = source if source.has_cpts else _count(source, good.codes, screen)
        with steps.step("corrupt", "corrupting"):
            rows, is_bad = corrupt(
                good.codes,
                known,
                options["kind"],
                eps,
                options["seed"],
                mode=options["mode"],
                strength=options["strength"],
            )
        columns = {"row": range(len(rows)), "is_bad": is_bad}
        with steps.step("write", "writing"), outputs.writing():
            outputs.write("rows", lambda path: write_codes(rows, source, path))
            outputs.write("bad rows", lambda path: write_columns(columns, path))
    if good.reading.ignored:
        screen.note(f"Columns left out of the copy: {some(good.reading.ignored)}")
    facts = {
        "kind": options["kind"],
        "rows_read": good.reading.n_read,
        "rows": len(rows),
        "rows_bad": int(is_bad.sum()),
        "rows_taken_away": max(0, len(good) - len(rows)),
        "seed": options["seed"],
        "files": outputs.names,
        "warnings": screen.warned,
    }
    taken = f", {facts['rows_taken_away']:,} taken away" if facts["rows_taken_away"] else ""
    text = f"{len(rows):,}, {facts['rows_bad']:,} of them bad ({options['kind']}){taken}"
    screen.show(
        facts,
        lambda console, _: print_facts(console, {"rows": text, "written": str(output),
                                                 "bad rows": str(bad_path)}),
    )  # fmt: skip


def _count(network: Any, codes: Any, screen: Screen) -> Any:
    """Return the network with the tables of the rows."""
    import warnings

    from robustbn.estimator import MaximumLikelihoodEstimator

    screen.note("The network has no tables; those of the rows are taken for the truth.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MaximumLikelihoodEstimator(network, "laplace").fit(codes).network_
