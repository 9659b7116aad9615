"""The report as one HTML file that needs nothing else, or as a few lines of Markdown.

Words and pictures are written here, escaped; tables and rows travel as JSON and are put on the page
by its script, as text. A page forbids itself every request and every script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from robustbn._core.findings import NOTE
from robustbn._core.numbers import count, rounded
from robustbn._show import advice
from robustbn._show.measures import FEW_ROWS
from robustbn._show.page.drawing import SCALE, draw_network, nice_top
from robustbn._show.page.evidence import COLUMNS_DRAWN, gather_evidence, line_of
from robustbn._show.page.payload import page_data, to_script_json
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, clean_text, percent, shorten
from robustbn.exceptions import LONGEST_NAME, shorten_name
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn._show.comparison import ChangedCell, ChangedKind

SCRIPTS = ("theme.js", "page.js", "columns.js", "tables.js", "rows.js", "graph.js")
SECTIONS = (
    ("findings", "Findings"), ("columns", "Columns"), ("expert", "Expert"), ("network", "Network"),
    ("draft", "Draft"), ("misfit", "Misfit"), ("intervals", "Intervals"), ("rows", "Rows"),
    ("repeat", "Reproduce"),
)  # fmt: skip
STYLES = ("look.css", "page.css")  # the first is the look of all pages
MOST_ORIGINS = 20  # groups of rows that are named
MOST_EXPERT = 60  # configurations of an expert's tables
MOST_COMPARED = 60  # tables of two fits
MOST_LISTED, MOST_FINDINGS = 5, 20  # tables and findings, in Markdown


def render_page(result: FitResult, draft: Any = None) -> str:
    """Return the report as the text of one HTML file; with the draft of its network, if any."""
    from markupsafe import Markup

    missing = [(edge.parent, edge.child) for edge in result.edges]
    graph = draw_network(result.network, result.moves, missing=missing, is_interactive=True)
    data = page_data(result) | {"markdown": render_markdown(result)}
    top = nice_top(float(result.moves.moved.max()))
    evidence = gather_evidence(result)
    may_lack = {"findings": evidence, "expert": result.expert, "misfit": result.edges}
    may_lack["draft"] = draft
    page = _render(
        "page.html.j2",
        SCRIPTS,
        result=result,
        links=[each for each in SECTIONS if may_lack.get(each[0], True)],
        draft=draft,
        verdict=as_text(advice.verdict(result)),
        changed=advice.say_moved_cells(result),
        evidence=evidence,
        kinds_shown={row[8] for row in data["rows"]} - {0},
        line_of=line_of(result),
        say_row=partial(_say_row, line_of(result)),
        most_columns=COLUMNS_DRAWN,
        say_cause=advice.say_cause,
        say_cell=advice.say_cell,
        say_evidence=advice.say_evidence,
        say_kind_move=advice.say_kind_move,
        say_names=_say_names,
        legend=[percent(top * k / len(SCALE)) for k in range(len(SCALE) + 1)],
        few=FEW_ROWS,
        most_origins=MOST_ORIGINS,
        most_tables=MOST_EXPERT,
        n_shown=sum(row[6] for row in data["rows"]),
        n_lines=len(data["rows"]),
        data=Markup(to_script_json(data)),  # noqa: S704  escaped there
        graph=Markup(graph),  # noqa: S704  escaped there
    )
    return shorten_names(page, result.network)


def _say_row(line_of_row: int, row: int) -> str:
    """Return the number of a row, and its line in a text file."""
    return f"Row {row}" + (f", line {row + line_of_row}" if line_of_row else "")


def render_comparison(
    facts: Mapping[str, Any], kinds: Sequence[ChangedKind], cells: Sequence[ChangedCell]
) -> str:
    """Return the page of two fits: their facts, and the cells that moved most rows."""
    return _render(
        "compare.html.j2",
        ("theme.js", "compare.js"),
        facts=facts,
        sides=(facts["first"], facts["second"]),
        tables=facts["tables"][:MOST_COMPARED],
        kinds=kinds,
        cells=cells,
        tiles=_tiles_of_both(facts),
    )


def _render(template: str, scripts: Sequence[str], **words: Any) -> str:
    from markupsafe import Markup

    style, script = ("\n".join(map(page_file, names)) for names in (STYLES, scripts))
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest())
    page = environment().get_template(template).render(
        style=Markup(style),  # noqa: S704  our own files, not the reader's data
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest.decode('ascii')}",
        **words,
    )  # fmt: skip
    return clean_text(page)


@cache
def environment() -> Any:
    """Return what fills in the templates of this folder."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(page_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        text=as_text, percent=percent, tied=_tie_units, count=count, rounded=rounded,
        shorten=shorten,
    )  # fmt: skip
    return made


def page_file(name: str) -> str:
    """Return a file of this folder."""
    from importlib.resources import files  # slow to import

    return (files("robustbn") / "_show" / "page" / name).read_text(encoding="utf-8")


def shorten_names(page: str, network: BayesianNetwork) -> str:
    """Return a page in which names and labels of more than 1,000 characters are shown in part."""
    names = [str(text) for node in network.nodes for text in (node, *network.states[node])]
    for name in sorted({n for n in names if len(n) > LONGEST_NAME}, key=len, reverse=True):
        for written in (name, html.escape(name), to_script_json(name)[1:-1]):
            page = page.replace(written, html.escape(shorten_name(name)))
    return page


def _say_names(result: FitResult, row: int) -> list[tuple[str, str]]:
    held = result.kept_names.get(row, ())
    return [pair for pair in zip(result.row_names, held, strict=False) if pair[1]]


def _tie_units(text: str) -> str:
    """Keep a number and its percent sign on one line."""
    return text.replace(" %", "\u00a0%")


def _tiles_of_both(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    a, b, top = facts["first"], facts["second"], facts["tables"][0]
    what = [kind["what"] for kind in facts["kinds"]]
    shares = f"{percent(a['contamination'])} → {percent(b['contamination'])}"
    most = f"{shorten(as_text(top['node']), 40)} most, by {percent(top['moved'])}"
    return [
        ("Distrusted", shares, "of the rows' weight"),
        ("Rows", f"{a['rows']:,} → {b['rows']:,}", "that were judged"),
        (
            "Tables moved",
            f"{facts['tables_moved']:,} of {facts['tables_compared']:,}",
            f"by more than their error; {most}",
        ),
        (
            "Kinds of bad rows",
            f"{a['kinds']} → {b['kinds']}",
            ", ".join(f"{what.count(each)} {each}" for each in ("stayed", "came", "went")),
        ),
    ]


# --- Markdown -------------------------------------------------------------------------------------


def render_markdown(result: FitResult) -> str:
    """Return the verdict, the findings and the cells that moved most; labels as text."""
    parts = [f"## {_escape(result.title)}", _escape(advice.verdict(result))]
    sections = [("Findings", _findings(result)), ("Cells that moved most", _cells(result))]
    for heading, lines in sections:
        if lines:
            parts += [f"### {heading}", "\n".join(lines)]
    if result.command:
        parts.append(_code(result.command, "To reproduce this: "))
    return clean_text("\n\n".join(parts) + "\n")


def _findings(result: FitResult) -> list[str]:
    lines = []
    for finding in result.findings[:MOST_FINDINGS]:
        lines.append(f"- **{finding.severity}**: {_escape(finding.sentence)}")
        ways = (finding.advice.command, finding.advice.python)
        lines += [_code(way, "  - ") for way in ways if way and finding.severity != NOTE]
    return lines + _more(len(result.findings), MOST_FINDINGS, "findings")


def _cells(result: FitResult) -> list[str]:
    lines = ["| cell | counted | robust |", "|---|---:|---:|"]
    for table, parents, state, counted, robust in advice.cell_moves(result, MOST_LISTED):
        what = _escape(advice.say_cell(table.node, parents, state)).replace("|", "\\|")
        lines.append(f"| {what} | {percent(counted)} | {percent(robust)} |")
    more = _more(result.n_moved, MOST_LISTED, "tables")
    return [*lines, *([""] if more else []), *more] if result.n_moved else []


def _more(n: int, most: int, noun: str) -> list[str]:
    return [f"- and {n - most} more {noun}"] if n > most else []


def _code(text: str, before: str) -> str:
    """Return a line of code that its own backticks cannot end."""
    text = " ".join(as_text(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{before}{fence}{space}{text}{space}{fence}"


def _escape(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(as_text(text).split()))
