"""`robustbn draft` and `check`: a structure from a table alone, and a fit with it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from robustbn._cli import COMMAND_LINE, arguments
from robustbn._cli.files import Outputs
from robustbn._cli.options import (
    at_least,
    edge,
    fail_over_option,
    file_option,
    force_option,
    no_rows_option,
    seed_option,
    with_options,
)
from robustbn._cli.screen import Screen, Steps, plain, print_facts, screen_options
from robustbn._cli.states import config_of_table
from robustbn._core.file_names import DRAFTED_EDGES, name_of, named_after
from robustbn._core.numbers import count

if TYPE_CHECKING:
    from rich.console import Console

    from robustbn.estimator.drafting import Draft

EDGE_LISTS = (".csv", ".tsv", ".txt")
MOST_SHOWN = 40  # edges

limit_options = with_options(
    click.option(
        "--most-parents", type=at_least(1), default=3, show_default=True, metavar="N",
        help="Largest number of parents of a node.",
    ),
    click.option(
        "--forbid", type=edge, multiple=True, metavar="PARENT,CHILD",
        help="An edge that the draft must not contain. Can be repeated.",
    ),
    click.option(
        "--require", type=edge, multiple=True, metavar="PARENT,CHILD",
        help="An edge that the draft must contain. Can be repeated.",
    ),
    click.option(
        "--order", metavar="NAMES",
        help="Columns from earliest to latest: no edge points from a later to an earlier one.",
    ),
    click.option(
        "--leave-out", metavar="NAMES",
        help="Columns that do not become nodes, such as region,ward; a fit uses them as context.",
    ),
    seed_option, arguments.states_option, arguments.state_options, arguments.source_options,
)  # fmt: skip


@click.command("draft")
@click.argument("table", type=click.Path())
@file_option(
    "-o", "--output", metavar="EDGES.csv", help="Write the edges, as an edge list that fit reads."
)
@force_option
@limit_options
@screen_options
def draft_command(
    table: str, screen: Screen, output: str | None, force: bool, **options: Any
) -> None:
    """Draft the edges of a network from TABLE alone: which columns depend on each other.

    Rows that no edges explain are left out of the draft. Identifiers, dates, columns that say where
    rows come from (site, batch, ...), constant columns and copies of other columns do not become
    nodes. The direction of an edge does not imply causation: review the draft, correct EDGES.csv,
    then fit it.

    \b
      robustbn draft rows.csv
      robustbn draft rows.csv -o edges.csv --forbid wage,age --order age,education,wage
      robustbn fit edges.csv rows.csv --report report.html
    """  # noqa: D301
    table = arguments.bring_table(table, options)
    outputs = Outputs(force, [table, options["states"]])
    outputs.plan("edges", output, EDGE_LISTS)
    with screen.working() as steps:
        drafted = make_draft(table, options, steps)
        with outputs.writing():
            outputs.write("edges", drafted.write)
    facts = {"table": name_of(table), "draft": draft_facts(drafted), "files": outputs.names}
    screen.show(facts, _show)


@click.command("check", context_settings={"allow_extra_args": True})
@click.argument("table", type=click.Path())
@file_option(
    "--report",
    metavar="PAGE.html",
    help="Write the report. [default: TABLE.check.html in the current folder]",
)
@file_option(
    "--edges",
    "draft_edges",
    metavar="EDGES.csv",
    help="Write the drafted edges. [default: TABLE.edges.csv in the current folder]",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write everything: edges.csv and the files of fit --output-dir.",
)
@force_option
@no_rows_option
@fail_over_option
@limit_options
@screen_options
@click.pass_context
def check_command(ctx: click.Context, /, table: str, screen: Screen, **options: Any) -> None:
    """Check TABLE without a network: draft one, fit it, list the findings, write a report.

    This is the same as `draft` followed by `fit` with the drafted edges and default settings. The
    edges are written, too, for `fit`.

    \b
      robustbn check rows.csv
      robustbn check rows.csv --output-dir result --leave-out region
    """  # noqa: D301
    from robustbn._cli.fit import exit_code, fit_command, plan_job, run_job
    from robustbn._cli.summary import show_fit

    if ctx.args:
        _refuse_more(table, ctx.args)
    if options["output_dir"] is None:
        options["report"] = options["report"] or named_after(table, ".check.html")
        options["draft_edges"] = options["draft_edges"] or named_after(table, DRAFTED_EDGES)
    usual = fit_command.make_context("fit", [table, table]).params  # the options as they are
    command_line = ctx.find_root().meta.get(COMMAND_LINE, "")
    job = plan_job(None, table, {**usual, **options}, screen, command_line)
    with screen.working() as steps:
        facts = run_job(job, steps)

    def show(console: Console, facts: Any) -> None:
        show_fit(console, facts)
        console.print()
        _show_draft(console, {**facts, "table": facts["table"]["path"]})

    screen.show(facts, show)
    ctx.exit(exit_code(facts, job.options))


def _refuse_more(table: str, more: Sequence[str]) -> NoReturn:
    """Say what to do instead about arguments besides the table: a network, or more tables."""
    both = sorted([table, more[0]], key=lambda each: arguments.kind_of(each) != "network")
    fit = shlex.join(["robustbn", "fit", *both])
    raise click.UsageError(
        f"check takes one table and no network, and got {count(len(more) + 1, 'argument')}. With a "
        f"network or a list of edges, use fit: {fit}. To check several files as one table, give a "
        "pattern in quotes, such as 'rows-*.csv'."
    )


def make_draft(table: str, options: Mapping[str, Any], steps: Steps) -> Draft:
    """Draft the structure of a table with the given options, and show the progress."""
    from robustbn.estimator.drafting import draft

    config = config_of_table(table, options)
    with steps.step("draft", f"drafting the edges of {name_of(table)}"):
        return draft(
            table,
            most_parents=options["most_parents"],
            forbid=options["forbid"],
            require=options["require"],
            order=arguments.split_names(options["order"] or ""),
            leave_out=arguments.split_names(options["leave_out"] or ""),
            random_state=options["seed"],
            states=options["states"],
            **arguments.reading_of(config, options),
        )


def draft_facts(drafted: Draft) -> dict[str, Any]:
    """Return the facts to show about a draft."""
    from robustbn.estimator.drafting import CAUTION, FIRST_LOOKED_AT

    return {
        "rows": drafted.n_rows,
        "rows_left_out": drafted.n_rows_left_out,
        "nodes": list(drafted.network.nodes),
        "edges": [asdict(each) for each in drafted.edges],
        "look_first": [str(each) for each in drafted.look_first()[:FIRST_LOOKED_AT]],
        "columns_left_out": dict(drafted.left_out),
        "columns_alone": list(drafted.alone),
        "caution": CAUTION,
    }


def _show_draft(console: Console, facts: Any) -> None:
    """Print what became of the columns and rows of a table."""
    drafted = facts["draft"]
    left_out = drafted["columns_left_out"]
    n_out = drafted["rows_left_out"]
    print_facts(
        console,
        {
            "table": f"{facts['table']}: {count(drafted['rows'], 'row')}",
            "draft": f"{count(len(drafted['nodes']), 'node')}, "
            f"{count(len(drafted['edges']), 'edge')}. {drafted['caution']}",
            "rows": f"{n_out:,} not used for the draft: no edges explain them" if n_out else None,
            "columns left out": "\n".join(f"{n} {why}" for n, why in left_out.items()) or None,
            "without an edge": arguments.some(drafted["columns_alone"]) or None,
        },
    )


def _show(console: Console, facts: Any) -> None:
    """Print a draft with its edges."""
    drafted = facts["draft"]
    _show_draft(console, facts)
    console.print()
    for each in drafted["edges"][:MOST_SHOWN]:
        edge = f"{each['parent']} -> {each['child']}"
        told = f"{each['gain']:>10,.0f} nats  found in {each['returns']:.0%}"
        console.print(plain(f"{edge:<40}  {told}"))
    if len(drafted["edges"]) > MOST_SHOWN:
        console.print(f"and {count(len(drafted['edges']) - MOST_SHOWN, 'more edge')}")
    look_first = {"review first": "\n".join(drafted["look_first"])}
    if drafted["look_first"] or facts["files"]:
        console.print()
    print_facts(console, look_first, facts["files"])
