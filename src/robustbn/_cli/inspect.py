"""`robustbn inspect`: describe a network or a table, and check whether they match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli import arguments
from robustbn._cli.options import say, share_of_rows
from robustbn._cli.screen import DATA, Screen, Steps, print_facts, say_error, screen_options
from robustbn._cli.states import (
    config_of_table,
    describe_column,
    draft_network,
    find_states,
    lacks_states,
)
from robustbn._core.file_names import name_of
from robustbn._core.numbers import count, count_are

if TYPE_CHECKING:
    from rich.console import Console

    from robustbn._core.config import TableConfig
    from robustbn._tables.sources import Source
    from robustbn._tables.states import StateRules
    from robustbn._tables.survey import ColumnSurvey
    from robustbn.network import BayesianNetwork

MOST_COLUMNS = 60
MOST_NAMED = 8
MOST_SHOWN = 3


@click.command("inspect")
@click.argument("paths", nargs=-1, required=True, metavar="TABLE|NETWORK...", type=click.Path())
@click.option(
    "--eps",
    type=share_of_rows(1e-6, 0.5),
    default=0.1,
    show_default=True,
    help="Share of bad rows to assume for the recommended number of rows.",
)
@arguments.states_option
@arguments.state_options
@arguments.table_options
@screen_options
@click.pass_context
def inspect_command(
    ctx: click.Context, /, paths: tuple[str, ...], screen: Screen, eps: float, **options: Any
) -> None:
    """Describe a TABLE, a NETWORK or a model, or check a table against a network.

    Given both, it lists everything that stops the network from reading the table.

    For a table, it prints one line per column: the kind of values, how many there are, how many are
    missing, and the states they would become. For a table and a network (in either order), it
    prints which columns are present and every value that is not a state, each with the option that
    fixes it; the exit code is 4 if there are any. A single .csv, .tsv or .txt file is read as a
    table, unless --states is given; next to a table, a file with two columns is read as an edge
    list.

    \b
      robustbn inspect rows.csv
      robustbn inspect net.bif
      robustbn inspect rows.csv net.bif --eps 0.05
      robustbn inspect rows.csv edges.csv
    """  # noqa: D301
    if len(paths) > 2:
        raise click.UsageError("Give a network, a table, or a network and a table.")
    network, table = _tell_apart(paths, options["states"])
    network = None if network is None else arguments.bring_network(network)
    table = None if table is None else arguments.bring_table(table, options)
    with screen.working() as steps:
        facts = _look(network, table, options, eps, steps)
    facts["eps"] = eps
    screen.show(facts, _show)
    if facts.get("problems"):
        names = [name_of(str(path)) for path in (table, network)]
        say_error(f"{names[0]} does not match {names[1]} as it is.")
        ctx.exit(DATA)


def _tell_apart(paths: tuple[str, ...], states: str | None) -> tuple[str | None, str | None]:
    if len(paths) == 1:
        return (None, paths[0]) if arguments.is_table(paths[0], states) else (paths[0], None)
    first, second = paths
    is_folder = arguments.kind_of(first) is None and arguments.kind_of(second) == "network"
    return (second, first) if is_folder or arguments.is_swapped(first, second) else (first, second)


def _look(
    network_path: str | None,
    table_path: str | None,
    options: dict[str, Any],
    eps: float,
    steps: Steps,
) -> dict[str, Any]:
    from robustbn._networks.edges import read_states

    facts: dict[str, Any] = {}
    states = options["states"]
    is_open = None not in (table_path, network_path) and lacks_states(str(network_path), states)
    network = None
    if network_path is not None and not is_open:
        network = arguments.load_network(network_path, states=states)
        facts["network"] = _describe_network(network_path, network, eps)
        if arguments.is_model(network_path):
            facts["model"] = _describe_model(network_path)
    if table_path is None:
        return facts
    if network_path is None:
        config = config_of_table(table_path, {**options, "rename": ()})
    else:
        config = arguments.build_config(options, network or draft_network(network_path))
    source, surveys, n_rows = _survey(table_path, config, steps)
    rules = _rules_for(config, [survey.name for survey in surveys], options)
    columns = [_describe_survey(survey, rules) for survey in surveys]
    facts["table"] = {"path": name_of(table_path), "rows": n_rows, "columns": columns}
    if network_path is None:
        return facts
    given = read_states(states) if is_open and states is not None else {}
    nodes = (network or draft_network(network_path)).nodes
    found = _match(source, surveys, network, nodes, config, given, rules)
    facts["columns"], facts["problems"] = found
    if facts["problems"]:
        return facts
    if network is None:
        network = find_states(network_path, table_path, options, steps).network
        config = arguments.build_config({**options, "bins": ()}, network)
        facts["network"] = _describe_network(network_path, network, eps)
    facts["together"] = _check(network, table_path, config, eps, steps)
    return facts


def _describe_network(path: str, network: BayesianNetwork, eps: float) -> dict[str, Any]:
    wanted = round(network.n_configurations / eps**2)
    return {"path": name_of(path), **arguments.describe(network), "rows_wanted": wanted}


# --- the columns of a table -----------------------------------------------------------------------


def _survey(path: str, config: TableConfig, steps: Steps) -> tuple[Source, list[ColumnSurvey], int]:
    """Return a table's source, its columns and its rows; show the progress."""
    from robustbn._tables.survey import survey_columns
    from robustbn._tables.values import split_labels

    n_rows = 0
    surveys: list[ColumnSurvey] = []
    with steps.step("read", f"reading {name_of(path)}"):
        source = arguments.open_source(path, config)
        steps.expect(source.n_rows)
        nodes = [config.rename.get(name, name) for name in source.names or ()]
        labels = {k: config.labels[n] for k, n in enumerate(nodes) if n in config.labels}
        gone = {k: split_labels(said, config.ignore_case)[1] for k, said in labels.items()}
        for surveys in survey_columns(source, range(source.n_columns), gone):
            n_read = surveys[0].n_rows
            steps.advance(n_read - n_rows)
            n_rows = n_read
    return source, surveys, n_rows


def _rules_for(config: TableConfig, names: Sequence[str], options: Mapping[str, Any]) -> StateRules:
    from robustbn._tables.states import StateRules

    nodes = {name: config.rename.get(name, name) for name in names}
    bins = config.bins
    if isinstance(bins, Mapping):
        bins = {name: bins[node] for name, node in nodes.items() if node in bins}
    labels = {n: config.labels[node] for n, node in nodes.items() if node in config.labels}
    return StateRules(
        bins="q4" if bins is None else bins,
        labels=labels,
        ignore_case=config.ignore_case,
        **arguments.rules_of(options),
    )


def _describe_survey(survey: ColumnSurvey, rules: StateRules) -> dict[str, Any]:
    from robustbn._tables.states import propose_states

    decided = propose_states(survey, rules)
    top = survey.counts.most_common(MOST_NAMED)
    return {
        "name": survey.name,
        "kind": decided.kind if survey.n_present else "empty",
        "different_values": survey.n_least,
        "is_more": survey.n_distinct is None,
        "missing": decided.n_missing,
        "share_missing": decided.n_missing / max(survey.n_rows, 1),
        "values": nsmallest(MOST_NAMED, map(str, survey.counts)),
        "top": [{"value": value, "rows": n} for value, n in top],
        "range": _range(survey, decided.kind, decided.order),
        "becomes": describe_column(decided),
    }


def _range(survey: ColumnSurvey, kind: str, order: str | None) -> list[Any] | None:
    """Return the smallest and the largest value of numbers and dates."""
    from robustbn._tables.date_forms import day_of

    if kind == "number" and survey.wide == "number":
        return [survey.sample.lowest, survey.sample.highest]
    if kind not in ("number", "date"):
        return None
    is_number = kind == "number"
    read = [survey.number_of(v) if is_number else day_of(v, order) for v in survey.counts]
    found = [value for value in read if value is not None]
    return [min(found), max(found)] if found else None


def _match(
    source: Any,
    surveys: list[Any],
    network: BayesianNetwork | None,
    nodes: Sequence[str],
    config: TableConfig,
    given: Mapping[str, Any],
    rules: StateRules,
) -> tuple[dict[str, list[str]], list[dict[str, Any]]]:
    """Return which columns are nodes, and everything that stops the table from being read."""
    from robustbn._tables.problems import find_identifiers, find_lacking, find_misfits

    names = [config.rename.get(survey.name, survey.name) for survey in surveys]
    of_node = {n: s for n, s in zip(names, surveys, strict=True) if n in set(nodes)}
    problems = find_lacking(names, nodes)
    if network is None:
        open_ones = {n: s for n, s in of_node.items() if n not in given}
        problems += find_identifiers(open_ones, rules)
    else:
        problems += find_misfits(source, of_node, network, config)
    columns = {
        "matched": [node for node in nodes if node in of_node],
        "ignored": [name for name in names if name not in of_node],
        "lacking": [node for node in nodes if node not in of_node],
    }
    return columns, [{**asdict(p), "remedy": say(p.remedy)} for p in problems]


def _describe_model(path: str) -> dict[str, Any]:
    fit = arguments.load_model(path)
    return {
        "estimator": type(fit).__name__,
        "fitted_to": fit.reading_.where,
        "rows": fit.reading_.n_rows,
        "contamination": getattr(fit, "contamination_", None),
        "status": getattr(fit, "status_", None),
    }


def _check(
    network: BayesianNetwork, path: str, config: TableConfig, eps: float, steps: Steps
) -> dict[str, Any]:
    """Return how a table fits a network, and what the paper asks of both."""
    from robustbn._rows.memory import load_rows
    from robustbn._show.measures import diagnose
    from robustbn._show.words import find_constants, find_unseen

    table = arguments.read_rows(path, network, config, steps)
    reading = table.reading
    with steps.step("count", "counting"):
        counts = load_rows(network, table.codes, holed=table.holed).count()
    found = diagnose(network.layout, counts, eps)
    return {
        "path": name_of(path),
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
        text = f"{model['estimator']}, fitted to {count(model['rows'], 'row')}{found}"
        print_facts(console, {"model": text, "status": model["status"]})
    if "table" in facts:
        _show_columns(console, facts["table"])
    if "columns" in facts:
        console.print()
        _show_problems(console, facts["columns"], facts["problems"])
    if "together" in facts:
        found = facts["together"]
        unseen = found["configurations_unseen"]
        print_facts(
            console,
            {
                "table": f"{found['path']}: {count(found['rows'], 'row')}, every node has its "
                "column",
                "left out": count(found["rows_left_out"], "row")
                if found["rows_left_out"]
                else None,
                "missing": found["missing"] or None,
                "constant": arguments.some(found["constant_columns"]) or None,
                "unseen": f"{count(unseen, 'configuration')} that no row shows" if unseen else None,
            },
        )
        print_facts(console, {"paper": "\n".join(found["conditions"])})


def _show_network(console: Console, network: Any, eps: float) -> None:
    fewest, most = network["states"].values()
    states = count(fewest, "state") if fewest == most else f"{fewest} to {most} states"
    print_facts(
        console,
        {
            "network": f"{network['path']}: {count(network['nodes'], 'node')} with {states}, "
            f"{count(network['edges'], 'edge')}, at most "
            f"{count(network['most_parents'], 'parent')}",
            "tables": f"{'there' if network['has_tables'] else 'none'}; "
            f"{network['cells']:,} entries, {network['free_parameters']:,} of them free, in "
            f"{count(network['configurations'], 'configuration')}",
            "to fit": f"about {network['rows_wanted']:,} rows (m / eps^2 at eps = {eps:g})",
        },
    )


def _show_problems(console: Console, columns: Any, problems: list[dict[str, Any]]) -> None:
    n = len(columns["matched"])
    print_facts(
        console,
        {
            "matched": f"{count_are(n, 'column')} {'a node' if n == 1 else 'nodes'}",
            "ignored": arguments.some(columns["ignored"]) or None,
            "lacking": arguments.some(columns["lacking"]) or None,
        },
    )
    for problem in problems:
        console.print()
        values = [
            f"{value!r} ({n:,}" + (f", near {near!r})" if near else ")")
            for value, n, near in problem["values"]
        ]
        rows = f" in {count(problem['n_rows'], 'row')}" if problem["n_rows"] else ""
        found = f": {', '.join(values)}" if values else ""
        text = f"{problem['what']}{rows}{found}\n{problem['remedy']}"
        print_facts(console, {problem["node"]: text})


def _show_columns(console: Console, table: Any) -> None:
    columns = table["columns"]
    size = f"{count(table['rows'], 'row')}, {count(len(columns), 'column')}"
    print_facts(console, {"table": f"{table['path']}: {size}"})
    console.print()
    shown = columns[:MOST_COLUMNS]
    print_facts(console, {c["name"]: _say_column(c, table["rows"]) for c in shown})
    if len(columns) > MOST_COLUMNS:
        console.print(f"and {count(len(columns) - MOST_COLUMNS, 'more column')}")


def _say_column(column: Any, n_rows: int) -> str:
    """Return a column on one line: kind, values, missing, range or top values, states."""
    n = column["different_values"]
    values = f"{'>' if column['is_more'] else ''}{count(n, 'value')}"
    missing = f", {column['missing']:,} missing ({column['share_missing']:.1%})"
    parts = [f"{column['kind']:<11}  {values:>13}{missing if column['missing'] else ''}"]
    if column["range"] is not None:
        low, high = (f"{v:.6g}" if isinstance(v, int | float) else v for v in column["range"])
        parts.append(f"{low} to {high}")
    elif column["kind"] != "identifier":
        top = column["top"][:MOST_SHOWN]
        said = [f"{each['value']} ({each['rows'] / max(n_rows, 1):.0%})" for each in top]
        parts.append(", ".join(said) + (", ..." if n > MOST_SHOWN else ""))
    states = column["becomes"]["states"]
    note = column["becomes"]["note"]
    if states:
        parts.append(count(len(states), "state") + (f", {note}" if note else ""))
    else:
        why = f"{note}, " if note else ""
        parts.append(f"no states: {why}give them with --states, or leave it out")
    return "; ".join(part for part in parts if part)
