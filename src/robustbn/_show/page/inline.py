"""Small pieces of HTML for notebooks: a network, a fitted estimator, two fits side by side."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from robustbn._core.numbers import count
from robustbn._show.advice import cell_moves, say_from_file, say_state, verdict
from robustbn._show.page.drawing import draw_network
from robustbn._show.page.render import environment, page_file
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, clean_text, percent, shorten
from robustbn.network import BayesianNetwork

MAX_DRAWN = 120  # nodes; a larger picture says little in a notebook
MAX_LISTED = 8  # findings, tables, and kinds of bad rows


def network_html(network: BayesianNetwork) -> str:
    """Return the network as a fragment for a notebook: a line of facts and its drawing."""
    return _fragment(network)


def settings_html(text: str, network: BayesianNetwork | None) -> str:
    """Return any estimator as a fragment: its settings, and its network if it has one."""
    shown = escape(as_text(text))
    page = f'<p style="font-family:monospace;white-space:pre-wrap">{shown}</p>'
    return clean_text(page) + ("" if network is None else network_html(network))


def fit_html(result: FitResult) -> str:
    """Return a fit as a fragment: the verdict, the findings, the tables that moved, the drawing."""
    if result.judged is None:
        return settings_html(f"{say_from_file(result)} {result.status}", result.network)
    lines = [
        (shorten(table.node, 40), percent(table.moved), shorten(say_state(parents, state), 60),
         percent(counted), percent(robust))
        for table, parents, state, counted, robust in cell_moves(result, MAX_LISTED)
    ]  # fmt: skip
    rest = ""
    if result.n_moved > MAX_LISTED:
        first = [table for table in result.moved_tables if table.is_significant][MAX_LISTED]
        more = count(result.n_moved - MAX_LISTED, "more table")
        rest = f"and {more}, none moved by more than {percent(first.moved)}"
    return _fragment(
        result.network,
        result,
        verdict=verdict(result),
        findings=result.findings,
        names=("table of", "moved by", "cell that moved most", "counted", "robust"),
        lines=lines,
        rest=rest,
    )


def comparison_html(facts: Mapping[str, Any]) -> str:
    """Return two fits side by side as a fragment."""
    moved = [table for table in facts["tables"] if table["is_significant"]]
    lines = [
        (shorten(t["node"], 40), *(percent(t[name]) for name in ("moved", "before", "after")),
         f"{t['z']:.1f}")
        for t in moved[:MAX_LISTED]
    ]  # fmt: skip
    names = ("table of", "moved", "before", "after", "z")
    kinds = facts["kinds"][:MAX_LISTED]
    return _fragment(verdict=facts["verdict"], names=names, lines=lines, kinds=kinds)


def _fragment(
    network: BayesianNetwork | None = None, result: FitResult | None = None, **shown: Any
) -> str:
    from markupsafe import Markup

    graph = ""
    if network is not None and network.n_nodes <= MAX_DRAWN:
        moves = None if result is None else result.moves
        graph = draw_network(network, moves, name="rbn-inline")
    empty = dict.fromkeys(("verdict", "findings", "names", "lines", "rest", "kinds"), "")
    page = environment().get_template("inline.html.j2").render(
        style=Markup(page_file("inline.css")),  # noqa: S704  our own file
        graph=Markup(graph),  # noqa: S704  escaped there
        network=network,
        most=MAX_LISTED,
        most_drawn=MAX_DRAWN,
        **{**empty, **shown},
    )  # fmt: skip
    return clean_text(page)
