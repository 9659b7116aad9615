"""Small pieces of HTML for notebooks: a network, a fitted estimator. Nothing outside is touched.

Styles are scoped by a class; colours are attributes of the drawing, so that a viewer which strips
styles still shows it; every label is escaped.
"""

from __future__ import annotations

from html import escape

from robustbn._core.numbers import count
from robustbn._show.page.advice import next_actions, say_moved_cells, strongest_cell, verdict
from robustbn._show.page.content import Report, as_text, percent, shorten
from robustbn._show.page.drawing import draw_network
from robustbn.network import BayesianNetwork

MAX_DRAWN = 120  # nodes; a larger picture says little in a notebook
MAX_LISTED = 8

_STYLE = """
.rbn-inline{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;max-width:60em;
color:#22262b;background:#fff;border:1px solid #e3ded4;border-radius:10px;padding:12px 14px}
.rbn-inline p{margin:0 0 6px}
.rbn-inline .rbn-quiet{color:#595f67;font-size:13px}
.rbn-inline table{border-collapse:collapse;font-size:13px;margin:6px 0}
.rbn-inline th,.rbn-inline td{padding:2px 14px 2px 0;text-align:left;border-bottom:1px solid #eee;
background:#fff;color:#22262b}
.rbn-inline ol{margin:0 0 6px;padding-left:1.4em}
.rbn-inline code{background:#f4f1ea;color:#22262b;overflow-wrap:anywhere}
.rbn-inline .rbn-figure{max-height:420px;overflow:auto}
.rbn-inline svg{max-width:100%;height:auto}
"""


def network_html(network: BayesianNetwork) -> str:
    """Return the network as a fragment for a notebook: a line of facts and its drawing."""
    tables = "with tables" if network.has_cpts else "without tables"
    facts = (
        f"{count(network.n_nodes, 'node')}, {count(len(network.edges), 'edge')}, "
        f"{count(network.n_configurations, 'configuration')}, {count(network.n_cells, 'cell')}, "
        f"{tables}"
    )
    return _fragment(f"<p><strong>BayesianNetwork</strong>: {facts}</p>" + _picture(network))


def estimator_html(report: Report) -> str:
    """Return a fitted estimator as a fragment: the verdict, the cells that moved, the drawing."""
    facts = (
        f"{report.n_distrusted:,} of {count(report.n_rows, 'row')} distrusted; effective sample "
        f"size {report.effective_rows:,.0f}"
    )
    changed = "".join(f"<p>{escape(line)}</p>" for line in say_moved_cells(report))
    actions = "".join(
        f"<li>{escape(as_text(action.say))} <code>{escape(as_text(action.python))}</code></li>"
        for action in next_actions(report)
    )
    body = (
        f"<p><strong>{escape(as_text(verdict(report)))}</strong></p>{changed}"
        f'<p class="rbn-quiet">{facts}. {escape(as_text(report.status))}</p>'
        f"<ol>{actions}</ol>{_moved_tables(report)}"
    )
    return _fragment(body + _picture(report.network, report))


def _moved_tables(report: Report) -> str:
    """Return the tables that moved, each with the cell that moved most in it."""
    moved = [table for table in report.moved_tables if table.is_significant]
    if not moved:
        return ""
    lines = []
    for table in moved[:MAX_LISTED]:
        cell = strongest_cell(report, table.node)
        _, parents, state = report.network.describe_cell(cell)
        given = ", ".join(f"{as_text(p)} = {as_text(v)}" for p, v in parents.items())
        what = as_text(state) + (f" when {given}" if given else "")
        counted, robust = (
            percent(float(network.probabilities[cell]))
            for network in (report.plain_network, report.network)
        )
        values = [
            shorten(as_text(table.node), 40),
            percent(table.moved),
            shorten(what, 60),
            counted,
            robust,
        ]
        lines.append("".join(f"<td>{escape(value)}</td>" for value in values))
    names = ("table of", "moved by", "its cell that moved most", "counted", "robust")
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    more = len(moved) - MAX_LISTED
    rest = (
        f'<p class="rbn-quiet">and {count(more, "more table")}, none moved by more than '
        f"{percent(moved[MAX_LISTED].moved)}</p>"
        if more > 0
        else ""
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def _picture(network: BayesianNetwork, report: Report | None = None) -> str:
    if network.n_nodes > MAX_DRAWN:
        return '<p class="rbn-quiet">Too many nodes to draw here; the report draws them.</p>'
    if report is None:
        svg = draw_network(network, name="rbn-inline")
    else:
        svg = draw_network(
            network,
            report.moves.moved,
            is_strong=report.moves.is_significant.tolist(),
            notes=[
                f"{as_text(n)}: table moved by {percent(float(m))}"
                for n, m in zip(network.nodes, report.moves.moved, strict=True)
            ],
            name="rbn-inline",
        )
    return f'<div class="rbn-figure">{svg}</div>'


def _fragment(body: str) -> str:
    page = f'<div class="rbn-inline"><style>{_STYLE}</style>{body}</div>'
    return page.encode("utf-8", "replace").decode("utf-8")
