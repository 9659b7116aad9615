"""Small pieces of HTML for notebooks: a network, a fitted estimator. Nothing outside is touched.

Styles are scoped by a class; colours are attributes of the drawing, so that a viewer which strips
styles still shows it; every label is escaped.
"""

from __future__ import annotations

from html import escape

from robustbn._core.numbers import count
from robustbn._show.advice import (
    next_actions,
    say_from_file,
    say_moved_cells,
    strongest_cell,
    verdict,
)
from robustbn._show.page.drawing import draw_network
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent, shorten
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


def settings_html(text: str, network: BayesianNetwork | None) -> str:
    """Return any estimator as a fragment: its settings, and its network if it has one."""
    page = f'<p style="font-family:monospace;white-space:pre-wrap">{escape(as_text(text))}</p>'
    page = page.encode("utf-8", "replace").decode("utf-8")
    return page + ("" if network is None else network_html(network))


def fit_html(result: FitResult) -> str:
    """Return a fit as a fragment: the verdict, the cells that moved, the drawing."""
    if result.judged is None:
        return settings_html(f"{say_from_file(result)} {result.status}", result.network)
    facts = (
        f"{result.n_distrusted:,} of {count(result.n_rows, 'row')} distrusted; effective sample "
        f"size {result.effective_rows:,.0f}"
    )
    changed = "".join(f"<p>{escape(line)}</p>" for line in say_moved_cells(result))
    actions = "".join(
        f"<li>{escape(as_text(action.say))} <code>{escape(as_text(action.python))}</code></li>"
        for action in next_actions(result)
    )
    body = (
        f"<p><strong>{escape(as_text(verdict(result)))}</strong></p>{changed}"
        f'<p class="rbn-quiet">{facts}. {escape(as_text(result.status))}</p>'
        f"<ol>{actions}</ol>{_moved_tables(result)}"
    )
    return _fragment(body + _picture(result.network, result))


def _moved_tables(result: FitResult) -> str:
    """Return the tables that moved, each with the cell that moved most in it."""
    moved = [table for table in result.moved_tables if table.is_significant]
    if not moved:
        return ""
    lines = []
    for table in moved[:MAX_LISTED]:
        cell = strongest_cell(result, table.node)
        _, parents, state = result.network.describe_cell(cell)
        given = ", ".join(f"{as_text(p)} = {as_text(v)}" for p, v in parents.items())
        what = as_text(state) + (f" when {given}" if given else "")
        counted, robust = (
            percent(float(network.probabilities[cell]))
            for network in (result.plain_network, result.network)
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


def _picture(network: BayesianNetwork, result: FitResult | None = None) -> str:
    if network.n_nodes > MAX_DRAWN:
        return '<p class="rbn-quiet">Too many nodes to draw here; the report draws them.</p>'
    if result is None:
        svg = draw_network(network, name="rbn-inline")
    else:
        svg = draw_network(
            network,
            result.moves.moved,
            is_strong=result.moves.is_significant.tolist(),
            notes=[
                f"{as_text(n)}: table moved by {percent(float(m))}"
                for n, m in zip(network.nodes, result.moves.moved, strict=True)
            ],
            name="rbn-inline",
        )
    return f'<div class="rbn-figure">{svg}</div>'


def _fragment(body: str) -> str:
    page = f'<div class="rbn-inline"><style>{_STYLE}</style>{body}</div>'
    return page.encode("utf-8", "replace").decode("utf-8")
