"""`robustbn score`: rows judged by a model, or by the likelihood of a network."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from robustbn._cli import arguments
from robustbn._cli.draft import EDGE_LISTS
from robustbn._cli.files import TABLES, Outputs, raw_option, write_columns
from robustbn._cli.options import (
    fail_over_option,
    file_option,
    force_option,
    jobs_option,
    no_rows_option,
)
from robustbn._cli.screen import (
    Screen,
    Steps,
    fails_on,
    fails_over,
    names_before_row,
    print_facts,
    say_kept,
    screen_options,
    show_findings,
)
from robustbn._core.file_names import inner_suffix, name_of
from robustbn._core.numbers import count

if TYPE_CHECKING:
    from rich.console import Console

    from robustbn._core.findings import Finding
    from robustbn._core.protocols import RowVector
    from robustbn._tables.coded import Table
    from robustbn.estimator import RobustEstimator
    from robustbn.network import BayesianNetwork

MOST_ROWS = 10


@click.command("score")
@click.argument("network", metavar="MODEL|NETWORK", type=click.Path())
@click.argument("table", type=click.Path())
@file_option("-o", "--output", metavar="ROWS.parquet", help="Write one line per row (also .csv).")
@raw_option
@force_option
@no_rows_option
@jobs_option
@fail_over_option
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    help="Exit with 1 if the new rows differ from the good rows of the fit: certainly (error) or "
    "possibly (warning).",
)
@arguments.table_options
@screen_options
@click.pass_context
def score_command(
    ctx: click.Context, /, network: str, table: str, screen: Screen, **options: Any
) -> None:
    """Judge the rows of TABLE.

    With a model (from `fit --model`), it gives the trust in each row (from 0 to 1), whether the row
    is suspicious (below 0.5), and why. It also reports how the rows as a whole differ from the good
    rows of the fit: less likely rows, changed tables, numbers out of range, more missing values,
    unknown values. The table is read with the options of the fit, unless others are given.

    With a network that has tables, it gives the log-likelihood of each row. This is not trust: a
    rare row may be correct, and a likely one may be a copy.

    \b
      robustbn score model.json tomorrow.csv
      robustbn score model.json tomorrow.csv --fail-on error
      robustbn score model.json tomorrow.csv -o judged.parquet --fail-over 5
      robustbn score fitted.bif rows.csv -o likelihood.csv
    """  # noqa: D301
    network, table = arguments.bring_both(network, table, options)
    outputs = Outputs(options["force"], [table, network])
    outputs.plan("rows", options["output"], TABLES)
    by: Any = arguments.load_model(network) if arguments.is_model(network) else None
    is_robust = hasattr(by, "weights")
    for option in ("fail_over", "fail_on"):
        if options[option] is not None and not is_robust:
            raise click.UsageError(
                f"--{option.replace('_', '-')} needs a model of good rows; a network alone "
                "distrusts no row. Give a model (robustbn fit ... --model model.json)."
            )
    with screen.working() as steps:
        if is_robust:
            facts, columns = _judge_by_model(by, network, table, options, steps)
        else:
            alone = _load_alone(network) if by is None else by.network_
            arguments.require_tables(alone, network, "a likelihood")
            facts, columns = _judge_by_likelihood(alone, table, options, steps)
        with steps.step("write", "writing"), outputs.writing():
            outputs.write("rows", lambda path: write_columns(columns, path))
    if options["no_rows"]:
        facts["worst"] = []
    facts = {"by": name_of(network), "table": name_of(table), **facts, "files": outputs.names}
    screen.show(facts, _show)
    share = max(facts.get("share_distrusted", 0.0), facts.get("share_unlikely", 0.0))
    code = fails_on(facts.get("findings", []), options["fail_on"])
    ctx.exit(code or fails_over(share, options["fail_over"]))


Judged = tuple[dict[str, Any], dict[str, Any]]  # the facts to show, and one line per row


def _load_alone(network: str) -> BayesianNetwork:
    """Return a network to score by; refuse a list of edges, whatever states it had."""
    from robustbn.exceptions import NetworkError

    if inner_suffix(Path(network)) in EDGE_LISTS:
        raise NetworkError(
            f"{network} is a list of edges, without probabilities to judge rows by. Learn a model "
            f"first: robustbn fit {shlex.quote(network)} TABLE --model model.json."
        )
    return arguments.load_network(network)


def _name_files(finding: Finding, model: str, table: str) -> Finding:
    """Return a finding whose command names the files of this one."""
    advice, files = finding.advice, {"MODEL": shlex.quote(model), "NEW": shlex.quote(table)}
    words = (files.get(word, word) for word in advice.command.split(" "))
    return replace(finding, advice=advice._replace(command=" ".join(words)))


def _judge_by_model(
    fit: RobustEstimator, model: str, path: str, options: dict[str, Any], steps: Steps
) -> Judged:
    from robustbn.estimator.checking import check_table, share_unlikely
    from robustbn.estimator.robust import judge_rows

    fit.n_threads = options["n_threads"]
    config = arguments.build_config(options, fit.network_, fit.reading_.config)
    if options["fail_on"] and config.on_unknown == "error":
        config = replace(config, on_unknown="missing")  # reported, not an error
    table = arguments.read_rows(path, fit.network_, config, steps)
    with steps.step("judge", f"judging {len(table):,} rows"):
        columns = judge_rows(fit, table)
        findings = check_table(fit, table)
    weights, is_bad = columns["weight"], columns["is_suspicious"]
    worst = np.flatnonzero(is_bad)
    worst = worst[np.argsort(weights[worst], kind="stable")][:MOST_ROWS]
    kept = names_before_row(columns)
    facts = {
        "judged": "trust",
        **_rows_of(table),
        "rows_distrusted": int(is_bad.sum()),
        "share_distrusted": float(is_bad.sum() / len(table)),
        "share_in_fit": fit.contamination_,
        "share_unlikely": share_unlikely(findings, len(table)),
        "findings": [_name_files(finding, model, path).as_facts() for finding in findings],
        "worst": [
            {name: columns[name][i] for name in kept}
            | {"row": int(i), "weight": float(weights[i]), "why": columns["why"][i]}
            for i in worst
        ],
    }
    if options["no_rows"]:
        del columns["why"]
    return facts, columns


def _judge_by_likelihood(
    network: BayesianNetwork, path: str, options: dict[str, Any], steps: Steps
) -> Judged:
    from robustbn._learn.likelihood import log_likelihood_of_table

    table = arguments.read_rows(path, network, arguments.build_config(options, network), steps)
    with steps.step("judge", f"judging {len(table):,} rows"):
        found = log_likelihood_of_table(network, table, n_threads=options["n_threads"])
        values = table.spread(found)
    found = values[~np.isnan(values)]  # of all rows but those left out, or with too many holes
    lowest = np.argsort(values, kind="stable")[: min(MOST_ROWS, len(found))]
    is_possible = np.isfinite(found)
    facts = {
        "judged": "log_likelihood",
        **_rows_of(table),
        "mean_log_likelihood": _mean(found),
        "mean_of_possible_rows": _mean(found[is_possible]),
        "rows_impossible": int((~is_possible).sum()),
        "rows_sampled": len(table) - len(found),
        "worst": [{"row": int(i), "log_likelihood": float(values[i])} for i in lowest],
    }
    return facts, {"row": np.arange(len(values)), "log_likelihood": values}


def _mean(values: RowVector) -> float | None:
    return float(values.mean(dtype=np.float64)) if len(values) else None


def _rows_of(table: Table) -> dict[str, int]:
    return {"rows": len(table), "rows_left_out": table.reading.n_dropped}


def _show(console: Console, facts: Any) -> None:
    from robustbn._show.words import percent

    show_findings(console, facts.get("findings", []))
    left_out = f"; {facts['rows_left_out']:,} left out" if facts["rows_left_out"] else ""
    lines = {"rows": f"{facts['rows']:,}{left_out}"}
    if facts["judged"] == "trust":
        n, share = count(facts["rows_distrusted"], "row"), percent(facts["share_distrusted"])
        before = percent(facts["share_in_fit"])
        lines["distrusted"] = f"{n} ({share}); {before} when the model was fitted"
        worst = {"row": "trust  least trusted rows, and why"}
        for row in facts["worst"]:
            named = ", ".join(f"{name} {value}" for name, value in say_kept(row))
            why = f"{named}: {row['why']}" if named else row["why"]
            worst[f"{row['row']:,}"] = f"{row['weight']:.3f}  {why}"
    else:
        lines["judged by"] = "log-likelihood; a model (from fit --model) would give the trust"
        lines |= _say_likelihood(facts)
        worst = {"row": "log-likelihood, lowest first"}
        worst |= {f"{row['row']:,}": f"{row['log_likelihood']:.2f}" for row in facts["worst"]}
    print_facts(console, lines, worst if facts["worst"] else {}, facts["files"])


def _say_likelihood(facts: Mapping[str, Any]) -> dict[str, str]:
    said = {}
    mean, rest, n = (
        facts[k] for k in ("mean_log_likelihood", "mean_of_possible_rows", "rows_sampled")
    )
    if mean is not None:
        said["mean"] = f"{mean:.4f}"
    if facts["rows_impossible"]:
        others = "" if rest is None else f"; the mean of the others is {rest:.4f}"
        said["impossible"] = f"{count(facts['rows_impossible'], 'row')}, by the tables{others}"
    if n:
        few = "1 row misses" if n == 1 else f"{n:,} rows miss"
        said["no answer"] = f"{few} too many dependent values to sum over"
    return said
