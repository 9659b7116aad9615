"""The report: one page, figures for a paper, small pieces for notebooks.

Nothing here knows an estimator: whoever has one fills a `Report` and hands it over.
"""

from robustbn._show.page.advice import next_actions, say_moved_cells, verdict
from robustbn._show.page.content import (
    ExplainedRow,
    MissingEdge,
    MovedTable,
    Moves,
    Report,
    measure_moves,
    moved_tables,
)
from robustbn._show.page.drawing import draw_network
from robustbn._show.page.inline import estimator_html, network_html
from robustbn._show.page.markdown import render_markdown
from robustbn._show.page.render import render_page

__all__ = [
    "ExplainedRow",
    "MissingEdge",
    "MovedTable",
    "Moves",
    "Report",
    "draw_network",
    "estimator_html",
    "measure_moves",
    "moved_tables",
    "network_html",
    "next_actions",
    "render_markdown",
    "render_page",
    "say_moved_cells",
    "verdict",
]
