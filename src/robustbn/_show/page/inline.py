"""Small pieces of HTML for notebooks: a network, a fitted estimator, two fits side by side.

Styles are scoped by a class; colours are attributes of the drawing, so that a viewer which strips
styles still shows it; every label is escaped, and nothing outside is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from robustbn._core.findings import NOTE, Finding
from robustbn._core.numbers import count
from robustbn._show.advice import (
    cell_moves,
    say_from_file,
    say_state,
    verdict,
)
from robustbn._show.page.drawing import draw_network
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, clean_text, percent, shorten
from robustbn.network import BayesianNetwork

MAX_DRAWN = 120  # nodes; a larger picture says little in a notebook
MAX_LISTED = 8  # tables, and kinds of bad rows

_STYLE = """
.rbn-inline{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;max-width:60em;
color:#22262b;background:#fff;border:1px solid #e3ded4;border-radius:10px;padding:12px 14px}
.rbn-inline p{margin:0 0 6px}
.rbn-inline .rbn-quiet{color:#595f67;font-size:13px}
.rbn-inline table{border-collapse:collapse;font-size:13px;margin:6px 0}
.rbn-inline th,.rbn-inline td{padding:2px 14px 2px 0;text-align:left;border-bottom:1px solid #eee;
background:#fff;color:#22262b}
.rbn-inline ul{margin:0 0 6px;padding-left:1.4em}
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
    page = f'<p style="font-family:monospace;white-space:pre-wrap">{_shown(text)}</p>'
    return clean_text(page) + ("" if network is None else network_html(network))


def fit_html(result: FitResult) -> str:
    """Return a fit as a fragment: the verdict, the findings, the tables that moved, the drawing."""
    if result.judged is None:
        return settings_html(f"{say_from_file(result)} {result.status}", result.network)
    findings = "".join(
        f"<li><strong>{finding.severity}</strong> {_shown(finding.sentence)}"
        f"{_advice(finding) if finding.severity != NOTE else ''}</li>"
        for finding in result.findings[:MAX_LISTED]
    )
    more = len(result.findings) - MAX_LISTED
    rest = f'<p class="rbn-quiet">and {count(more, "more finding")}</p>' if more > 0 else ""
    head = f"<p><strong>{_shown(verdict(result))}</strong></p>"
    body = f"{head}<ul>{findings}</ul>{rest}{_moved_tables(result)}"
    return _fragment(body + _picture(result.network, result))


def _advice(finding: Finding) -> str:
    return f"<br>{_shown(finding.advice.say)} <code>{_shown(finding.advice.python)}</code>"


def comparison_html(facts: Mapping[str, Any]) -> str:
    """Return two fits side by side as a fragment."""
    moved = [table for table in facts["tables"] if table["is_significant"]]
    lines = [
        (shorten(t["node"], 40), *(percent(t[name]) for name in ("moved", "before", "after")),
         f"{t['z']:.1f}")
        for t in moved[:MAX_LISTED]
    ]  # fmt: skip
    kinds = "".join(
        f"<li>{kind['what']}: {_shown(shorten('; '.join(kind['unusual'][:2]), 160))}</li>"
        for kind in facts["kinds"][:MAX_LISTED]
    )
    table = _table(("table of", "moved", "before", "after", "z"), lines)
    return _fragment(f"<p><strong>{_shown(facts['verdict'])}</strong></p>{table}<ul>{kinds}</ul>")


def _moved_tables(result: FitResult) -> str:
    names = ("table of", "moved by", "cell that moved most", "counted", "robust")
    lines = [
        (shorten(table.node, 40), percent(table.moved), shorten(say_state(parents, state), 60),
         percent(counted), percent(robust))
        for table, parents, state, counted, robust in cell_moves(result, MAX_LISTED)
    ]  # fmt: skip
    rest = ""
    if result.n_moved > MAX_LISTED:
        first = [table for table in result.moved_tables if table.is_significant][MAX_LISTED]
        more = count(result.n_moved - MAX_LISTED, "more table")
        most = f"none moved by more than {percent(first.moved)}"
        rest = f'<p class="rbn-quiet">and {more}, {most}</p>'
    return _table(names, lines) + rest


def _table(names: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{_shown(value)}</td>' for value in line)}</tr>" for line in lines
    )
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""


def _picture(network: BayesianNetwork, result: FitResult | None = None) -> str:
    if network.n_nodes > MAX_DRAWN:
        return (
            '<p class="rbn-quiet">The network has too many nodes to draw here; see the report.</p>'
        )
    svg = draw_network(network, None if result is None else result.moves, name="rbn-inline")
    return f'<div class="rbn-figure">{svg}</div>'


def _shown(text: object) -> str:
    return escape(as_text(text))


def _fragment(body: str) -> str:
    return clean_text(f'<div class="rbn-inline"><style>{_STYLE}</style>{body}</div>')
