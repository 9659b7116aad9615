"""`robustbn update`: add new rows to a model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.arguments import bring_both, is_model, load_model
from robustbn._cli.compare import compare_fits, show_fits
from robustbn._cli.files import Outputs
from robustbn._cli.options import file_option, force_option, jobs_option
from robustbn._cli.screen import Screen, screen_options, show_findings
from robustbn._core.file_names import name_of

if TYPE_CHECKING:
    from rich.console import Console

MOST_SHOWN = 10  # nodes


@click.command("update")
@click.argument("model", type=click.Path())
@click.argument("table", type=click.Path())
@file_option("-o", "--output", metavar="MODEL.json", help="Write the updated model.")
@click.option(
    "--forgetting",
    type=float,
    default=1.0,
    show_default=True,
    metavar="F",
    help="Weight of the earlier rows: above 0, at most 1.",
)
@file_option("--report", metavar="PAGE.html", help="Write a page with both models side by side.")
@force_option
@jobs_option
@screen_options
def update_command(model: str, table: str, screen: Screen, **options: Any) -> None:
    """Add the rows of TABLE to MODEL (from `fit --model`) without reading the old rows.

    The new rows are judged by the model and added to its counts; its groups, and the decisions
    about them, do not change. The output lists how the new rows differ from the good rows of the
    fit, and the tables that changed. Fit again if much has changed. The table is read with the
    options of the fit.

    \b
      robustbn update model.json today.csv -o model2.json
      robustbn update model.json today.csv -o model2.json --forgetting 0.9 --report changes.html
    """  # noqa: D301
    model, table = bring_both(model, table, {"format": None, "sheet": None})
    if not is_model(model):
        raise click.UsageError(
            f"{model} is not a model: robustbn fit NETWORK TABLE --model writes one."
        )
    from robustbn.estimator.learning import choose_place

    outputs = Outputs(options["force"], [model, table])
    outputs.plan("model", options["output"], (".json", ".gz"))
    outputs.plan("report", options["report"], (".html", ".htm"))
    before = load_model(model)
    if not hasattr(before, "check"):
        raise click.UsageError(f"{model} is a plain count of rows: update it in Python.")
    before.n_threads = options["n_threads"]
    with screen.working() as steps:
        with steps.step("update", f"adding {name_of(table)}"):
            after = before.update(table, forgetting=options["forgetting"])
        with steps.step("check", "comparing"):
            is_held = choose_place(before, table) == "memory"
            found = before.check(table) if is_held else []
            findings = [finding.as_facts() for finding in found]
        names = (name_of(model), options["output"] or "updated")
        with outputs.writing():
            facts = compare_fits((before, after), names, outputs, top=MOST_SHOWN)
            outputs.write("model", after.save)
    screen.show({**facts, "findings": findings}, partial(_show, top=MOST_SHOWN))


def _show(console: Console, facts: Any, top: int) -> None:
    show_findings(console, facts["findings"])
    show_fits(console, facts, top)
