"""The report as one HTML file that needs nothing else: no network, no other file.

Words and pictures are written here, escaped; tables and rows travel as JSON and are put on the page
by its script, as text. The page forbids itself every request and every script but its own.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from robustbn._show.page.charts import draw_rounds, draw_spectrum, draw_weights
from robustbn._show.page.content import FEW_ROWS, Report, as_text, percent, shorten, verdict
from robustbn._show.page.drawing import SCALE, draw_network, nice_top
from robustbn._show.page.payload import page_data, to_script_json
from robustbn.exceptions import MissingDependencyError

SCRIPTS = ("page.js", "graph.js")
MOST_ORIGINS = 20  # groups of rows that are named


def render_page(report: Report) -> str:
    """Return the report as the text of one HTML file.

    Time and size grow with the tables and the rows that are shown, not with the rows that were
    read: at most 60,000 cells and 2,000 rows are shown, and the page says what it leaves out.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingDependencyError("A report needs jinja2: pip install jinja2") from error
    script = "\n".join(_file(name) for name in SCRIPTS)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(text=as_text, percent=percent)
    data = page_data(report)
    page = environment.from_string(_file("page.html.j2")).render(
        report=report,
        verdict=as_text(verdict(report)),
        tiles=_tiles(report),
        legend=_legend(report),
        few=FEW_ROWS,
        most_origins=MOST_ORIGINS,
        n_shown=len(data["rows"]),
        style=Markup(_file("page.css")),  # noqa: S704  our own files, not the reader's data
        script=Markup(script),  # noqa: S704
        script_hash=_hash(script),
        data=Markup(to_script_json(data)),  # noqa: S704  escaped there
        graph=Markup(_graph(report)),  # noqa: S704  escaped there, as are the charts
        weights=Markup(draw_weights(report)),  # noqa: S704
        spectrum=Markup(draw_spectrum(report.rounds)),  # noqa: S704
        rounds=Markup(draw_rounds(report.rounds)),  # noqa: S704
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _file(name: str) -> str:
    from importlib.resources import files  # slow to import

    return (files("robustbn") / "_show" / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _graph(report: Report) -> str:
    moves = report.moves
    notes = [
        f"{as_text(node)}: table moved by {percent(moved)}"
        f"{', more than its error' if is_strong else ''}"
        for node, moved, is_strong in zip(
            report.network.nodes, moves.moved.tolist(), moves.is_significant.tolist(), strict=True
        )
    ]
    return draw_network(
        report.network,
        moves.moved,
        is_strong=moves.is_significant.tolist(),
        notes=notes,
        is_interactive=True,
    )


def _legend(report: Report) -> list[dict[str, Any]]:
    top = nice_top(float(report.moves.moved.max()))
    n = len(SCALE)
    return [{"step": k, "low": percent(top * k / n), "top": percent(top)} for k in range(n)]


def _tiles(report: Report) -> list[dict[str, str]]:
    top = report.moved_tables[0]
    d = report.network.n_nodes
    return [
        {
            "name": "Distrusted rows",
            "value": f"{report.n_distrusted:,}",
            "note": f"of {report.n_rows:,}; {percent(report.contamination)} of their weight",
        },
        {
            "name": "Effective sample size",
            "value": f"{report.effective_rows:,.0f}",
            "note": "rows' worth of information is left",
        },
        {
            "name": "Largest move of a table",
            "value": percent(top.moved),
            "note": f"{shorten(as_text(top.node), 40)}; its error is {percent(top.error)}",
        },
        {
            "name": "Tables moved",
            "value": f"{report.n_moved:,} of {d:,}",
            "note": "by more than their error",
        },
    ]
