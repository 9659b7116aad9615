"""The report: one page, figures for a paper, small pieces for notebooks.

Nothing here knows an estimator: whoever has one fills a `Report` and hands it over.
"""

from robustbn._report.content import (
    ExplainedRow,
    MovedTable,
    Moves,
    Report,
    measure_moves,
    moved_tables,
    verdict,
)
from robustbn._report.drawing import draw_network
from robustbn._report.inline import estimator_html, network_html
from robustbn._report.page import render_page

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
