"""The report as a few lines of Markdown: for a ticket, a mail, a commit."""

from __future__ import annotations

import re

from robustbn._core.numbers import count
from robustbn._show.advice import (
    next_actions,
    say_cause,
    say_cell,
    say_evidence,
    say_kind_move,
    say_origin,
    strongest_cell,
    verdict,
)
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent

MOST_LISTED = 5


def render_markdown(result: FitResult) -> str:
    """Return the verdict, the kinds, the moved cells, where, and what to do; labels as text."""
    parts = [f"## {_escape(result.title)}", _escape(verdict(result))]
    groups = [str(group) for group in result.vanishing]
    sections = [
        ("Kinds of bad rows", _kinds(result)),
        ("Groups of which hardly any row is trusted", _list([_escape(g) for g in groups])),
        ("Where they come from", _list([_escape(str(o)) for o in result.origins])),
        ("Edges that are missing", _list([_escape(str(e)) for e in result.edges])),
        ("Cells that moved most", _cells(result)),
        ("Missing values", [_escape(result.missing)] if result.missing else []),
        ("What to do next", _actions(result)),
    ]
    for heading, lines in sections:
        if lines:
            parts.append(f"### {heading}")
            parts.append("\n".join(lines))
    if result.command:
        parts.append(_code(result.command, "To repeat it: "))
    text = "\n\n".join(parts) + "\n"
    return text.encode("utf-8", "replace").decode("utf-8")


def _kinds(result: FitResult) -> list[str]:
    lines = []
    for kind in result.kinds[:MOST_LISTED]:
        evidence = say_evidence(kind.nats)
        said = f"about {count(kind.n_rows, 'row')} ({percent(kind.share)}). {say_cause(kind)}"
        lines.append(f"- **Kind {kind.number}**: {_escape(said)}")
        if evidence:
            lines.append(f"  - {evidence}")
        for cell in kind.unusual[:3]:
            what = say_cell(cell.node, cell.parents, cell.state)
            seen = f"{percent(cell.among_bad)} here, {percent(cell.among_good)} among good rows"
            lines.append(f"  - {_escape(what)}: {seen}")
        lines += [f"  - {_escape(say_origin(origin))}" for origin in kind.origins[:1]]
        lines += [f"  - {_escape(say_kind_move(cell))}" for cell in kind.moved[:2]]
    return lines + _more(len(result.kinds), "kinds")


def _cells(result: FitResult) -> list[str]:
    moved = [table for table in result.moved_tables if table.is_significant]
    if not moved:
        return []
    lines = ["| cell | counted | robust |", "|---|---:|---:|"]
    for table in moved[:MOST_LISTED]:
        j = strongest_cell(result, table.node)
        what = _escape(say_cell(*result.network.describe_cell(j))).replace("|", "\\|")
        counted, robust = (
            percent(float(network.probabilities[j]))
            for network in (result.plain_network, result.network)
        )
        lines.append(f"| {what} | {counted} | {robust} |")
    return [*lines, "", *_more(len(moved), "tables")] if len(moved) > MOST_LISTED else lines


def _actions(result: FitResult) -> list[str]:
    lines = []
    for number, action in enumerate(next_actions(result), start=1):
        lines.append(f"{number}. {_escape(action.say)}")
        ways = [way for way in (action.command, action.python) if way]
        lines += [_code(way, "   - ") for way in ways]
    return lines


def _list(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines[:MOST_LISTED]] + _more(len(lines), "of them")


def _more(n: int, noun: str) -> list[str]:
    return [f"- and {n - MOST_LISTED} more {noun}"] if n > MOST_LISTED else []


def _code(text: str, before: str) -> str:
    """Return a line of code that its own backticks cannot end."""
    text = " ".join(as_text(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{before}{fence}{space}{text}{space}{fence}"


def _escape(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(as_text(text).split()))
