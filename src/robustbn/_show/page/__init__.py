"""The report: one page, figures for a paper, small pieces for notebooks.

Nothing here knows an estimator: whoever has one fills a `Report` and hands it over.
"""

from robustbn._show.page.content import (
    ExplainedRow,
    MovedTable,
    Moves,
    Report,
    measure_moves,
    moved_tables,
    verdict,
)
from robustbn._show.page.drawing import draw_network
from robustbn._show.page.inline import estimator_html, network_html
from robustbn._show.page.render import render_page

__all__ = [
    "ExplainedRow",
    "MovedTable",
    "Moves",
    "Report",
    "draw_network",
    "estimator_html",
    "measure_moves",
    "moved_tables",
    "network_html",
    "render_page",
    "verdict",
]
