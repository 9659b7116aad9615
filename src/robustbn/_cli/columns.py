"""The columns of a table, one a line: what is in them, and what they would become as nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from robustbn._cli.screen import Steps, print_facts
from robustbn._cli.states import describe_column
from robustbn._core.file_names import name_of
from robustbn._core.numbers import count

if TYPE_CHECKING:
    from rich.console import Console

    from robustbn._core.config import TableConfig
    from robustbn._tables.sources import Source
    from robustbn._tables.states import StateRules
    from robustbn._tables.survey import ColumnSurvey

MOST_COLUMNS = 60
MOST_NAMED = 8
MOST_SHOWN = 3


def survey_table(
    path: str, config: TableConfig, steps: Steps
) -> tuple[Source, list[ColumnSurvey], int]:
    """Return a table's source, what its columns hold, and its rows; shows how far that is."""
    from robustbn._tables.encode.labels import split_labels
    from robustbn._tables.sources import open_table
    from robustbn._tables.survey import survey_columns

    n_rows = 0
    surveys: list[ColumnSurvey] = []
    with steps.step("read", f"reading {name_of(path)}"):
        source = open_table(path, sep=config.sep, encoding=config.encoding)
        steps.expect(source.n_rows)
        nodes = [config.rename.get(name, name) for name in source.names or ()]
        labels = {k: config.labels[n] for k, n in enumerate(nodes) if n in config.labels}
        gone = {k: split_labels(said, config.ignore_case)[1] for k, said in labels.items()}
        for surveys in survey_columns(source, range(source.n_columns), gone):
            n_read = surveys[0].n_rows
            steps.advance(n_read - n_rows)
            n_rows = n_read
    return source, surveys, n_rows


def rules_for(
    config: TableConfig,
    names: Sequence[str],
    dates: Mapping[str, str] | str,
    limits: Mapping[str, int],
) -> StateRules:
    """Return by which rules columns of these names would become nodes."""
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
        dates=dates,
        **limits,
    )


def describe_table(
    path: str, surveys: Sequence[ColumnSurvey], n_rows: int, rules: StateRules
) -> dict[str, Any]:
    """Return the columns of a table as plain values; `rules` say what they would become."""
    columns = [_describe(survey, rules) for survey in surveys]
    return {"path": name_of(path), "rows": n_rows, "columns": columns}


def _describe(survey: ColumnSurvey, rules: StateRules) -> dict[str, Any]:
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
    from robustbn._tables.encode.written import day_of

    if kind == "number" and survey.wide == "number":
        return [survey.sample.lowest, survey.sample.highest]
    if kind not in ("number", "date"):
        return None
    is_number = kind == "number"
    read = [survey.number_of(v) if is_number else day_of(v, order) for v in survey.counts]
    found = [value for value in read if value is not None]
    return [min(found), max(found)] if found else None


def show_table(console: Console, table: Any) -> None:
    """Print a line a column."""
    columns = table["columns"]
    size = f"{count(table['rows'], 'row')}, {count(len(columns), 'column')}"
    print_facts(console, {"table": f"{table['path']}: {size}"})
    console.print()
    shown = columns[:MOST_COLUMNS]
    print_facts(console, {c["name"]: _say(c, table["rows"]) for c in shown})
    if len(columns) > MOST_COLUMNS:
        console.print(f"and {count(len(columns) - MOST_COLUMNS, 'more column')}")


def _say(column: Any, n_rows: int) -> str:
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
