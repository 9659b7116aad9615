"""The report as one HTML file that needs nothing else: no network, no other file.

Words and pictures are written here, escaped; tables and rows travel as JSON and are put on the page
by its script, as text. The page forbids itself every request and every script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
from typing import Any

from robustbn._core.numbers import count, rounded
from robustbn._show.advice import (
    next_actions,
    say_cause,
    say_evidence,
    say_kind_move,
    say_moved_cells,
    say_origin,
    verdict,
)
from robustbn._show.moves import FEW_ROWS
from robustbn._show.page.charts import draw_rounds, draw_spectrum, draw_weights
from robustbn._show.page.drawing import SCALE, draw_network, nice_top
from robustbn._show.page.payload import page_data, to_script_json
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent, shorten
from robustbn.exceptions import LONGEST_NAME, MissingDependencyError, shorten_name
from robustbn.network import BayesianNetwork

SCRIPTS = ("page.js", "tables.js", "rows.js", "graph.js")
STYLES = ("look.css", "page.css")  # the first is the look of all pages
MOST_ORIGINS = 20  # groups of rows that are named
MOST_CARDS = 12  # kinds of bad rows
MOST_VANISHING = 4  # groups that are named at once; the others can be unfolded


def render_page(result: FitResult) -> str:
    """Return the report as the text of one HTML file.

    Time and size grow with the tables and the rows that are shown, not with the rows that were
    read: at most 30,000 cells and 2,000 rows are shown, and the page says what it leaves out.
    """
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingDependencyError("A report needs jinja2: pip install jinja2") from error
    script = "\n".join(page_file(name) for name in SCRIPTS)
    environment = Environment(
        loader=FunctionLoader(page_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        text=as_text, percent=percent, tied=tie_units, count=count, rounded=rounded
    )
    data = page_data(result)
    page = environment.get_template("page.html.j2").render(
        **_words(result, data),
        style=Markup(page_style()),  # noqa: S704  our own files, not the reader's data
        script=Markup(script),  # noqa: S704
        script_hash=script_hash(script),
        data=Markup(to_script_json(data)),  # noqa: S704  escaped there
        graph=Markup(_graph(result)),  # noqa: S704  escaped there, as are the charts
        weights=Markup(draw_weights(result)),  # noqa: S704
        spectrum=Markup(draw_spectrum(result.rounds)),  # noqa: S704
        rounds=Markup(draw_rounds(result.rounds)),  # noqa: S704
    )
    return shorten_names(page.encode("utf-8", "replace").decode("utf-8"), result.network)


def shorten_names(page: str, network: BayesianNetwork) -> str:
    """Return a page in which names and labels of more than 1,000 characters are shown in part."""
    names = [str(text) for node in network.nodes for text in (node, *network.states[node])]
    for name in sorted({n for n in names if len(n) > LONGEST_NAME}, key=len, reverse=True):
        for written in (name, html.escape(name), to_script_json(name)[1:-1]):
            page = page.replace(written, html.escape(shorten_name(name)))
    return page


def _words(result: FitResult, data: dict[str, Any]) -> dict[str, Any]:
    """Return what the template says."""
    return {
        "result": result,
        "verdict": as_text(verdict(result)),
        "changed": say_moved_cells(result),
        "actions": next_actions(result),
        "say_cause": say_cause,
        "say_evidence": say_evidence,
        "say_kind_move": say_kind_move,
        "say_origin": say_origin,
        "say_names": say_names,
        "inferred": _inferred(result),
        "tiles": _tiles(result),
        "legend": _legend(result),
        "few": FEW_ROWS,
        "most_origins": MOST_ORIGINS,
        "most_cards": MOST_CARDS,
        "most_groups": MOST_VANISHING,
        "n_shown": sum(row[6] for row in data["rows"]),
        "n_lines": len(data["rows"]),
    }


def say_names(result: FitResult, row: int) -> list[tuple[str, str]]:
    """Return the columns that a typical row keeps, and what it holds in each."""
    held = result.kept_names.get(row, ())
    return [pair for pair in zip(result.row_names, held, strict=False) if pair[1]]


def page_file(name: str) -> str:
    """Return the text of a file of the page, or of the look that all pages share."""
    from importlib.resources import files  # slow to import

    return (files("robustbn") / "_show" / "page" / name).read_text(encoding="utf-8")


def page_style() -> str:
    """Return the look of all pages."""
    return "\n".join(page_file(name) for name in STYLES)


def script_hash(script: str) -> str:
    """Return what a page says of the one script that it may run."""
    digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _graph(result: FitResult) -> str:
    moves = result.moves
    notes = [
        f"{as_text(node)}: table moved by {percent(moved)}"
        f"{', more than its error' if is_strong else ''}"
        for node, moved, is_strong in zip(
            result.network.nodes, moves.moved.tolist(), moves.is_significant.tolist(), strict=True
        )
    ]
    return draw_network(
        result.network,
        moves.moved,
        is_strong=moves.is_significant.tolist(),
        notes=notes,
        is_interactive=True,
        missing=[(edge.parent, edge.child) for edge in result.edges],
    )


def tie_units(text: str) -> str:
    """Keep a number and its percent sign on one line."""
    return text.replace(" %", "\u00a0%")


def _inferred(result: FitResult) -> list[tuple[str, int, float]]:
    """Return the nodes that miss values: how often, and the share of their tables inferred."""
    shares = [0.0] * result.network.n_nodes
    if result.inferred is not None:
        shares = result.inferred.missing.tolist()
    lines = [
        (node, result.n_missing.get(node, 0), share)
        for node, share in zip(result.network.nodes, shares, strict=True)
    ]
    return sorted((line for line in lines if line[1]), key=lambda line: -line[1])


def _legend(result: FitResult) -> list[dict[str, Any]]:
    top = nice_top(float(result.moves.moved.max()))
    n = len(SCALE)
    return [{"step": k, "low": percent(top * k / n), "top": percent(top)} for k in range(n)]


def _tiles(result: FitResult) -> list[dict[str, str]]:
    top = result.moved_tables[0]
    d = result.network.n_nodes
    return [
        {
            "name": "Distrusted rows",
            "value": f"{result.n_distrusted:,}",
            "note": f"of {result.n_rows:,}: {percent(result.n_distrusted / result.n_rows)}",
        },
        {
            "name": "Rows' worth that is left",
            "value": f"{result.effective_rows:,.0f}",
            "note": "the effective sample size",
        },
        {
            "name": "Largest change of a table",
            "value": percent(top.moved),
            "note": f"{shorten(as_text(top.node), 40)}; its error is {percent(top.error)}"
            if top.moved
            else "all are what counting gives",
        },
        {
            "name": "Tables changed",
            "value": f"{result.n_moved:,} of {d:,}",
            "note": "by more than their error",
        },
    ]
