"""`robustbn fit`: from a network and a table to tables, a report, and a summary on one screen."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli import COMMAND_LINE, arguments, fit_files
from robustbn._cli.draft import EDGE_LISTS, draft_facts, make_draft
from robustbn._cli.files import (
    TABLES,
    Outputs,
    network_suffixes,
    raw_option,
    try_to_write,
    write_columns,
)
from robustbn._cli.options import (
    Decorator,
    at_least,
    edge,
    equivalent_rows,
    fail_over_option,
    file_option,
    force_option,
    no_rows_option,
    prior,
    setting_options,
)
from robustbn._cli.screen import STATISTICS, Screen, Steps, fails_over, say_error, screen_options
from robustbn._cli.states import describe_column, find_states, lacks_states
from robustbn._core.config import RobustConfig, Streaming
from robustbn._core.file_names import name_of, plain_path
from robustbn._core.numbers import count
from robustbn._means import ORACLES

if TYPE_CHECKING:
    from robustbn._core.config import TableConfig
    from robustbn._core.result import Round
    from robustbn._show.result import FitResult
    from robustbn.estimator import RobustEstimator
    from robustbn.estimator.drafting import Draft
    from robustbn.network import BayesianNetwork
    from robustbn.states import FoundStates

DRAFTED = "the draft"  # where a network has no file
METHOD_NAMES = ("filter", *ORACLES, "trimmed")


def _group_option(side: str) -> Decorator:
    """Return what gives a command the option of groups that belong to a side."""
    return click.option(
        f"--{side}-group", f"{side}_groups", type=click.IntRange(1), multiple=True, metavar="K",
        help=f"Treat the rows of group K as {side}. Can be repeated.",
    )  # fmt: skip


@click.command("fit", context_settings={"show_default": False})
@click.argument("network", type=click.Path())
@click.argument("table", type=click.Path(), required=False)
@file_option("-o", "--output", metavar="FITTED", help="Write the network with the learned tables.")
@file_option("--report", metavar="PAGE.html", help="Write the report as one HTML page.")
@file_option(
    "--weights",
    metavar="ROWS.parquet",
    help="Write the trust in each row and the reasons (.parquet, .csv, .arrow).",
)
@file_option(
    "--model",
    metavar="MODEL.json",
    help="Write the fitted model, with which score judges new rows.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write everything: network, cpts.csv, rows.parquet, report.html, run.json.",
)
@file_option(
    "--clean",
    metavar="FILE",
    help="Write the table in its own format, with the trust in each row as a column "
    "robustbn_trust.",
)
@click.option("--drop-distrusted", is_flag=True, help="Write only the trusted rows with --clean.")
@raw_option
@force_option
@setting_options(RobustConfig, choices={"method": METHOD_NAMES})
@click.option(
    "--prior", type=prior, default="none", show_default=True,
    metavar="N|laplace|bdeu:N|NETWORK|none",
    help="Pseudo-counts: a number N added to every cell; laplace (1); bdeu:N, N rows spread over "
        "each table; or an expert's tables (a network with the same nodes), weighted by "
        "--equivalent-rows.",
)  # fmt: skip
@click.option(
    "--equivalent-rows", multiple=True, metavar="N|NODE=N|@FILE.json",
    help="Number of rows that each configuration of an expert's table counts for, unless the data "
        "contradict it; @FILE.json gives a number or an array for each node.  [default: 50]",
)  # fmt: skip
@click.option(
    "--missing-is-evidence",
    is_flag=True,
    help="Use the pattern of missing values as evidence for or against a row.",
)
@click.option(
    "--known",
    metavar="COLUMN|FILE",
    help="A column that marks known rows as good (1) or bad (-1) and is empty otherwise; or a "
    "file with the marks of a report (row,known).",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PLACE",
    help="Leave out the rows of a place: site=7, line=200..350, or 'site=7 and "
    "day=2024-03..2024-05', with values as findings show them. Can be repeated.",
)
@_group_option("bad")
@_group_option("good")
@click.option(
    "--ask",
    type=at_least(1),
    metavar="N",
    help="Show the N rows that are most worth checking by hand: those that could change the "
    "tables most.",
)
@click.option(
    "--place",
    type=click.Choice(["memory", "stream"]),
    help="Keep the rows in memory, or stream the table in chunks (large tables are always "
    "streamed).",
)
@setting_options(Streaming)
@no_rows_option
@fail_over_option
@click.option(
    "--strict", is_flag=True, help="Exit with 5 when the rows do not permit a conclusion."
)
@click.option(
    "--edge", "edges", type=edge, multiple=True, metavar="PARENT,CHILD",
    help="An edge to add to NETWORK. Can be repeated.",
)  # fmt: skip
@arguments.aside_options
@arguments.states_option
@arguments.size_option
@arguments.state_options
@arguments.table_options
@screen_options
@click.pass_context
def fit_command(
    ctx: click.Context, /, network: str, table: str | None, screen: Screen, **options: Any
) -> None:
    """Learn the tables of NETWORK from TABLE, some rows of which may be corrupted.

    NETWORK: a .bif, .xmlbif, .xdsl, .net, .uai or .json file, an edge list (.csv, .tsv), or
    example:alarm; only its structure and states are used. States of an edge list that --states does
    not give are found in the table, as `robustbn states` does. TABLE: a .csv, .tsv, .parquet,
    .arrow, .jsonl or .xlsx file, a folder, a glob pattern, or '-' for standard input. Both may be
    URLs (https://, s3://, gs://).

    \b
    Print the findings only:
      robustbn fit net.bif rows.csv
    Write the fitted network and a report:
      robustbn fit net.bif rows.parquet -o fitted.bif --report report.html
    Write everything to one folder:
      robustbn fit net.bif rows.csv --output-dir result
    Messy files:
      robustbn fit net.bif rows.csv --sep ';' --missing drop --unknown drop \\
        --rename Age=age --bins age:18,65 --labels smoker:0=no,1=yes
    Write the table without the distrusted rows:
      robustbn fit net.bif rows.csv --clean trusted.csv --drop-distrusted
    Use it as a check in a pipeline:
      robustbn fit net.bif rows.csv --fail-over 5 --json > fit.json

    Files are written even when --fail-over or --strict fails, so that you can see why.
    """  # noqa: D301
    if table is None:
        raise _lacking_one(network, options["states"])
    job = plan_job(network, table, options, screen, ctx.find_root().meta.get(COMMAND_LINE, ""))
    with screen.working() as steps:
        facts = run_job(job, steps)
    from robustbn._cli.summary import show_fit  # slow to import

    screen.show(facts, show_fit)
    ctx.exit(exit_code(facts, options))


def _lacking_one(given: str, states: str | None) -> click.UsageError:
    """Return what to do if only a network or a table was given."""
    if not arguments.is_table(given, states):
        return click.UsageError(f"Missing argument 'TABLE': fit needs a table besides {given}.")
    name = shlex.quote(given)
    return click.UsageError(
        f"fit needs a network or an edge list besides the table {given}. To draft one: "
        f"robustbn draft {name} -o edges.csv, then robustbn fit edges.csv {name}. "
        f"To do both at once: robustbn check {name}."
    )


@dataclass
class Job:
    """What is to be fitted, and how, and where the results go."""

    network_path: str
    table_path: str
    network: BayesianNetwork
    config: TableConfig
    options: dict[str, Any]
    outputs: Outputs
    command_line: str
    found: FoundStates | None = None
    draft: Draft | None = None
    prior: dict[str, Any] = field(default_factory=dict)


def plan_job(
    network: str | None, table_path: str, options: dict[str, Any], screen: Screen, command_line: str
) -> Job:
    """Read the network, or draft one, and check all outputs, before anything that takes long."""
    if network is None:
        network_path, table_path = DRAFTED, arguments.bring_table(table_path, options)
    else:
        network_path, table_path = arguments.bring_both(network, table_path, options)
    outputs = Outputs(options["force"], [network_path, table_path, options["states"]])
    outputs.plan("network", options["output"], network_suffixes())
    outputs.plan("report", options["report"], (".html", ".htm"))
    outputs.plan("rows", options["weights"], TABLES)
    outputs.plan("model", options["model"], (".json", ".gz"))
    fit_files.plan_clean(outputs, table_path, options)
    if options["output_dir"] is not None:
        is_asking = options["ask"] is not None and not options["no_rows"]
        _plan_folder(outputs, network_path, options["output_dir"], is_asking=is_asking)
    draft: Draft | None = None
    found: FoundStates | None
    if network is None:
        outputs.plan("edges", options["draft_edges"], EDGE_LISTS)
        with screen.working() as steps:
            draft = make_draft(table_path, options, steps)
        structure, found = draft.network, draft.found_of_nodes
    else:
        structure, found = _load(network_path, table_path, options, screen)
    structure = arguments.with_edges(structure, options["edges"])
    for path in outputs.paths("network"):
        try_to_write(structure, path)
    if found is not None:
        options = {**options, "bins": ()}  # they are stored in the network now
    config = arguments.build_config(options, structure)
    return Job(
        network_path, table_path, structure, config, options, outputs, command_line, found, draft,
        _load_prior(options),
    )  # fmt: skip


def _load_prior(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the prior; an expert's network is read."""
    found, rows = dict(options["prior"]), options["equivalent_rows"]
    if found["prior"] in (None, "laplace", "bdeu"):
        if rows:
            raise click.UsageError("--equivalent-rows requires --prior NETWORK.")
        return found
    expert = arguments.load_network(
        arguments.bring_network(found["prior"]), max_cells=options["max_cells"]
    )
    arguments.require_tables(expert, found["prior"], "a prior")
    return {"prior": expert, "equivalent_rows": equivalent_rows(rows)}


def _load(
    path: str, table: str, options: dict[str, Any], screen: Screen
) -> tuple[BayesianNetwork, FoundStates | None]:
    """Return the network, with states from the table where an edge list has none."""
    with screen.working() as steps:
        if lacks_states(path, options["states"]):
            found = find_states(path, table, options, steps)
            return found.network, found
        network = arguments.load_network(
            path, states=options["states"], max_cells=options["max_cells"], tables=False
        )
    for name in ("dates", *arguments.LIMITS):
        if options[name]:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} applies only to states that are found in the table.")
    return network.with_cpts(None), None


def _plan_folder(outputs: Outputs, network_path: str, folder: Path, *, is_asking: bool) -> None:
    """Plan the files of a folder; outputs with a path of their own are written there, too."""
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{folder} is a file; --output-dir needs a folder.")
    suffixes = [s for s in Path(network_path).suffixes if s.lower() in network_suffixes()][-2:]
    is_plain = network_path.startswith(arguments.EXAMPLE) or not suffixes
    for what, file in {
        "folder network": "fitted" + (".json" if is_plain else "".join(suffixes)),
        "cpts": "cpts.csv",
        "folder rows": "rows.parquet",
        **({"ask": "ask.csv"} if is_asking else {}),
        **({"folder edges": "edges.csv"} if network_path == DRAFTED else {}),
        "folder report": "report.html",
        "run": "run.json",
    }.items():
        outputs.plan(what, folder / file, in_new=True)


def run_job(job: Job, steps: Steps) -> dict[str, Any]:
    """Read, fit and write; return the facts to show."""
    from robustbn._cli.summary import NOTHING_TO_ASK, fit_facts, rows_to_ask

    fit, options, outputs = _fit(job, steps), job.options, job.outputs
    if not hasattr(fit, "row_weights_"):
        for path in [*outputs.leave_out("rows"), *outputs.leave_out("clean")]:
            warnings.warn(
                f"{path} is not written: the table has too many rows to keep one value per row. "
                "Write a model (--model), then judge the table part by part with robustbn score.",
                stacklevel=2,
            )
    with steps.step("report", "writing"):
        result = fit.result_.shown(
            title=_title(job, fit), command=job.command_line or None, rows=not options["no_rows"]
        )
        facts = fit_facts(result, name_of(job.network_path), name_of(job.table_path))
        columns = () if job.found is None else job.found.columns
        facts["states"] = [describe_column(column) for column in columns]
        facts["ask"] = rows_to_ask(result, options["ask"])
        is_idle = options["ask"] is not None and not facts["ask"]
        facts["nothing_to_ask"] = NOTHING_TO_ASK if is_idle else ""
        facts["files"] = outputs.names
        if job.draft is not None:
            facts["draft"] = draft_facts(job.draft)
        with outputs.writing():
            _write(job, fit, result, facts, steps)
    facts["seconds"] = dict(steps.seconds)
    for path in outputs.paths("model") if options["no_rows"] and fit.repeats_ else ():
        warnings.warn(
            f"{path} contains the rows that are repeated too often, because it needs them to "
            "judge new rows. Keep it as private as the table.",
            stacklevel=2,
        )
    return facts


def _fit(job: Job, steps: Steps) -> RobustEstimator:
    """Fit to the table, in memory or streamed if it is large."""
    from robustbn._learn.places import Watch
    from robustbn._tables.exclusion import exclude_rows
    from robustbn.estimator import RobustEstimator
    from robustbn.estimator.learning import choose_place, fit_to

    options, table = job.options, job.table_path
    names = ("contamination", "method", "schedule", "misfit", "copies", "cells", "n_threads",
             "missing_is_evidence", "place")  # fmt: skip
    estimator = RobustEstimator(
        job.network,
        **{name: options[name] for name in names},
        **job.prior,
        random_state=options["seed"],
        streaming=Streaming(on_error=options["on_error"], cache=options["cache"]),
    )

    def tell(done: Round) -> None:
        steps.tell(f"fitting: round {done.number}, {done.removed:.1%} distrusted")

    def tell_part(what: str, done: int, of: int) -> None:
        steps.tell(f"{what}: {done} of {of} parts")

    rows, doing = None, f"fitting {name_of(table)}, streamed in chunks"
    known = arguments.read_known(table, options["known"], job.config)
    if choose_place(estimator, table) == "memory":
        rows = arguments.read_rows(
            table, job.network, job.config, steps, has_context=True, known=options["known"]
        )
        rows = exclude_rows(rows, options["exclude"])
        doing = f"fitting {count(len(rows), 'row')}"
    elif options["exclude"]:
        raise click.UsageError("--exclude needs the rows in memory: add --place memory.")
    with steps.step("fit", doing):
        watch = Watch(tell, tell_part)
        source = table if rows is None else rows
        fit_to(estimator, source, known=known, reading=job.config, watch=watch)
        bad, good = options["bad_groups"], options["good_groups"]
        return estimator.decide(bad, good, rows) if bad or good else estimator


def _title(job: Job, fit: RobustEstimator) -> str:
    paths = [job.network_path.removeprefix(arguments.EXAMPLE), job.table_path]
    network, table = (plain_path(name_of(path)).name for path in paths)
    return f"{network} and {table}, {count(fit.reading_.n_rows, 'row')}"


def _write(job: Job, fit: RobustEstimator, result: FitResult, facts: Any, steps: Steps) -> None:
    from robustbn._networks import write_network
    from robustbn._show.frames import question_columns, row_columns
    from robustbn._show.page.render import render_page

    outputs = job.outputs
    outputs.write("network", lambda path: write_network(fit.network_, path))
    if job.draft is not None:
        outputs.write("edges", job.draft.write)
    if outputs.paths("report"):
        page = render_page(result, job.draft).encode("utf-8")
        outputs.write("report", lambda path: path.write_bytes(page))
    if outputs.paths("rows"):
        columns = row_columns(result)
        if job.options["no_rows"]:
            del columns["why"]
        outputs.write("rows", lambda path: write_columns(columns, path))
    outputs.write(
        "ask", lambda path: write_columns(question_columns(result, job.options["ask"]), path)
    )
    outputs.write("clean", lambda path: fit_files.write_clean(job, fit.row_weights_, path))
    if job.options["no_rows"]:
        fit.result_.deeper.numbers = None
    outputs.write("model", fit.save)
    outputs.write("cpts", lambda path: fit_files.write_cpts(result, path))
    outputs.write(
        "run", lambda path: fit_files.describe_run(path, job, result, facts, steps.seconds)
    )


def exit_code(facts: dict[str, Any], options: dict[str, Any]) -> int:
    """Return the exit code: too many rows are distrusted, or the rows permit no conclusion."""
    share = facts["rows_distrusted"] / max(facts["table"]["rows"], 1)
    if code := fails_over(share, options["fail_over"]):
        return code
    if options["strict"] and facts["unsettled"]:
        say_error(f"The rows do not permit a conclusion (--strict). {facts['unsettled']}")
        return STATISTICS
    return 0
