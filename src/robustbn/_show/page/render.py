"""The report as one HTML file that needs nothing else, or as a few lines of Markdown.

Words and pictures are written here, escaped; tables and rows travel as JSON and are put on the page
by its script, as text. A page forbids itself every request and every script but its own. Two fits
side by side are shown in the same look.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robustbn._core.findings import NOTE
from robustbn._core.numbers import count, rounded
from robustbn._show.advice import (
    cell_moves,
    next_actions,
    say_cause,
    say_cell,
    say_evidence,
    say_kind_move,
    say_moved_cells,
    say_origin,
    verdict,
)
from robustbn._show.frames import cell_columns, rate_columns
from robustbn._show.measures import FEW_ROWS
from robustbn._show.page.drawing import SCALE, draw_network, nice_top
from robustbn._show.page.figures import draw_rounds, draw_spectrum, draw_weights
from robustbn._show.page.payload import page_data, to_script_json
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, clean_text, percent, shorten
from robustbn._tables.aside import Aside
from robustbn.exceptions import LONGEST_NAME, shorten_name
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn._show.comparison import ChangedCell, ChangedKind

SCRIPTS = ("page.js", "tables.js", "rows.js", "graph.js")
STYLES = ("look.css", "page.css")  # the first is the look of all pages
MOST_ORIGINS = 20  # groups of rows that are named
CELLS_SHOWN = 20  # cells that are surely wrong
MOST_CARDS = 12  # kinds of bad rows
MOST_EXPERT = 60  # configurations of an expert's tables
MOST_VANISHING = 4  # groups that are named at once; the others can be unfolded
MOST_COMPARED = 60  # tables of two fits
MOST_LISTED = 5  # of each, in Markdown


def render_page(result: FitResult) -> str:
    """Return the report as the text of one HTML file.

    Time and size grow with the tables and the rows that are shown, not with the rows that were
    read: at most 30,000 cells and 2,000 rows are shown, and the page says what it leaves out.
    """
    from markupsafe import Markup

    missing = [(edge.parent, edge.child) for edge in result.edges]
    graph = draw_network(result.network, result.moves, missing=missing, is_interactive=True)
    data = page_data(result) | {"markdown": render_markdown(result)}
    top = nice_top(float(result.moves.moved.max()))
    page = _render(
        "page.html.j2",
        SCRIPTS,
        result=result,
        verdict=as_text(verdict(result)),
        changed=say_moved_cells(result),
        actions=next_actions(result),
        say_cause=say_cause,
        say_cell=say_cell,
        say_evidence=say_evidence,
        say_kind_move=say_kind_move,
        say_origin=say_origin,
        say_names=_say_names,
        inferred=_inferred(result),
        wrong_cells=_wrong_cells(result),
        tiles=_tiles(result),
        legend=[percent(top * k / len(SCALE)) for k in range(len(SCALE) + 1)],
        few=FEW_ROWS,
        most_origins=MOST_ORIGINS,
        most_cards=MOST_CARDS,
        most_groups=MOST_VANISHING,
        most_tables=MOST_EXPERT,
        n_shown=sum(row[6] for row in data["rows"]),
        n_lines=len(data["rows"]),
        data=Markup(to_script_json(data)),  # noqa: S704  escaped there
        graph=Markup(graph),  # noqa: S704  escaped there, as are the charts
        weights=Markup(draw_weights(result)),  # noqa: S704
        spectrum=Markup(draw_spectrum(result.rounds)),  # noqa: S704
        rounds=Markup(draw_rounds(result.rounds)),  # noqa: S704
    )
    return shorten_names(page, result.network)


def _wrong_cells(result: FitResult) -> dict[str, list[Any]] | None:
    """Return a line a column with wrong cells, and the surest of them; None if there are none."""
    found = result.cells
    if found is None:
        return None
    rates = rate_columns(result)
    lines = [line for line in zip(*rates.values(), strict=True) if line[2]]
    surest = found.wrong.picked(slice(0, 0 if result.rows_hidden else CELLS_SHOWN))
    shown = cell_columns(result.network, surest, Aside())
    names = ("row", "column", "seen", "likely", "probability")
    rows = [
        (*map(str, line[:-1]), float(line[-1]))
        for line in zip(*(shown[name] for name in names), strict=True)
    ]
    return {"columns": lines, "rows": rows}


def render_comparison(
    facts: Mapping[str, Any], kinds: Sequence[ChangedKind], cells: Sequence[ChangedCell]
) -> str:
    """Return the page of two fits: their facts, and the cells that moved most rows."""
    return _render(
        "compare.html.j2",
        ("compare.js",),
        facts=facts,
        sides=(facts["first"], facts["second"]),
        tables=facts["tables"][:MOST_COMPARED],
        kinds=kinds,
        cells=cells,
        tiles=_tiles_of_both(facts),
    )


def _render(template: str, scripts: Sequence[str], **words: Any) -> str:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_page_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        text=as_text, percent=percent, tied=_tie_units, count=count, rounded=rounded
    )
    style, script = ("\n".join(map(_page_file, names)) for names in (STYLES, scripts))
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest())
    page = environment.get_template(template).render(
        style=Markup(style),  # noqa: S704  our own files, not the reader's data
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest.decode('ascii')}",
        **words,
    )
    return clean_text(page)


def _page_file(name: str) -> str:
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


def _inferred(result: FitResult) -> list[tuple[str, int, float]]:
    """Return the nodes that miss values: how often, and the share of their tables inferred."""
    shares = [0.0] * result.network.n_nodes
    if result.inferred is not None:
        shares = result.inferred.missing.tolist()
    share_of = dict(zip(result.network.nodes, shares, strict=True))
    lines = [(node, result.n_missing[node], share_of[node]) for node in share_of
             if result.n_missing.get(node)]  # fmt: skip
    return sorted(lines, key=lambda line: -line[1])


def _tiles(result: FitResult) -> list[tuple[str, str, str]]:
    """Return figures: the name of each, its value, and a note."""
    top, n = result.moved_tables[0], result.n_distrusted
    most = "all are what counting gives"
    if top.moved:
        most = f"{shorten(as_text(top.node), 40)}; its error is {percent(top.error)}"
    return [
        ("Distrusted rows", f"{n:,}", f"of {result.n_rows:,}: {percent(n / result.n_rows)}"),
        (
            "Rows' worth that is left",
            f"{result.effective_rows:,.0f}",
            "the effective sample size",
        ),
        ("Largest change of a table", percent(top.moved), most),
        (
            "Tables changed",
            f"{result.n_moved:,} of {result.network.n_nodes:,}",
            "by more than their error",
        ),
    ]


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
    """Return the verdict, the kinds, the moved cells, where, and what to do; labels as text."""
    parts = [f"## {_escape(result.title)}", _escape(verdict(result))]
    sections = [
        ("Findings", _findings(result)),
        ("Kinds of bad rows", _kinds(result)),
        ("Groups of which hardly any row is trusted", _list(result.vanishing)),
        ("Where they come from", _list(result.origins)),
        ("Cells that moved most", _cells(result)),
        ("Missing values", [_escape(result.missing)] if result.missing else []),
        ("What to do next", _actions(result)),
    ]
    for heading, lines in sections:
        if lines:
            parts += [f"### {heading}", "\n".join(lines)]
    if result.command:
        parts.append(_code(result.command, "To repeat it: "))
    return clean_text("\n\n".join(parts) + "\n")


def _findings(result: FitResult) -> list[str]:
    lines = []
    for finding in result.findings[:MOST_LISTED]:
        lines.append(f"- **{finding.severity}**: {_escape(finding.sentence)}")
        ways = (finding.advice.command, finding.advice.python)
        lines += [_code(way, "  - ") for way in ways if way and finding.severity != NOTE]
    return lines + _more(len(result.findings), "findings")


def _kinds(result: FitResult) -> list[str]:
    lines = []
    for kind in result.kinds[:MOST_LISTED]:
        said = f"about {count(kind.n_rows, 'row')} ({percent(kind.share)}). {say_cause(kind)}"
        lines.append(f"- **Kind {kind.number}**: {_escape(said)}")
        details = [say_evidence(kind.nats)]
        for cell in kind.unusual[:3]:
            what = say_cell(cell.node, cell.parents, cell.state)
            seen = f"{percent(cell.among_bad)} here, {percent(cell.among_good)} among good rows"
            details.append(f"{what}: {seen}")
        details += map(say_origin, kind.origins[:1])
        details += map(say_kind_move, kind.moved[:2])
        lines += [f"  - {_escape(detail)}" for detail in details if detail]
    return lines + _more(len(result.kinds), "kinds")


def _cells(result: FitResult) -> list[str]:
    lines = ["| cell | counted | robust |", "|---|---:|---:|"]
    for table, parents, state, counted, robust in cell_moves(result, MOST_LISTED):
        what = _escape(say_cell(table.node, parents, state)).replace("|", "\\|")
        lines.append(f"| {what} | {percent(counted)} | {percent(robust)} |")
    more = _more(result.n_moved, "tables")
    return [*lines, *([""] if more else []), *more] if result.n_moved else []


def _actions(result: FitResult) -> list[str]:
    lines = []
    for number, action in enumerate(next_actions(result), start=1):
        lines.append(f"{number}. {_escape(action.say)}")
        lines += [_code(way, "   - ") for way in (action.command, action.python)]
    return lines


def _list(found: Sequence[object]) -> list[str]:
    lines = [f"- {_escape(str(each))}" for each in found[:MOST_LISTED]]
    return lines + _more(len(found), "of them")


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
