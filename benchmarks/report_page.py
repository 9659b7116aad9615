"""How large the page of a fit is, how long it takes to make, and until it can be used.

Opened from disk in headless Chromium. The yardstick is a page without content, opened by the same
browser in the same run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.browser import find_chromium, open_browser

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from robustbn import BayesianNetwork, RobustEstimator, example_network, random_network, sample
from robustbn.simulate import corrupt

SOURCES = ("src/robustbn/_show/**/*", "tests/browser.py")  # see sources.py
EMPTY_PAGE = '<!doctype html><html data-ready="true"><title>empty</title><p>Nothing.</p></html>'
PAGE_HEADER = ("network", "rows shown", "page, MB", "made in, s", "usable after, s", "times empty")
PAGE_NOTE = (
    "The report of a fit to 30,000 rows, 10 % of them bad. `usable after` is the wall clock from "
    "opening the file until the network, the tables and the rows answer; `times empty` the same "
    "over that of a page without content. Fastest round."
)
PAGES: dict[str, Callable[[], BayesianNetwork]] = {
    "ALARM, 37 nodes": lambda: example_network("alarm"),
    "graph, 500 nodes": lambda: random_network("graph", 500, cards=3, random_state=0),
}


def run(settings: Settings) -> Report:
    """Make the pages, open them, and write how long it took."""
    if not find_chromium():
        raise SystemExit("This benchmark needs chromium and chromedriver.")
    lines, records = [], []
    with tempfile.TemporaryDirectory() as name, open_browser(Path(name)) as browser:
        folder = Path(name)
        for title, build in PAGES.items():
            say(f"report page: {title}")
            made_s, page, n_shown = _make(build(), settings.seed)
            turns = [
                [browser.open(p, folder) for p in (page, EMPTY_PAGE)]
                for _ in range(settings.n_rounds)
            ]
            seconds, empty = (min(each) for each in zip(*turns, strict=True))
            size = len(page.encode()) / 1e6
            ratio = f"{seconds / empty:.1f}"
            lines.append(
                (title, f"{n_shown:,}", f"{size:.2f}", f"{made_s:.2f}", f"{seconds:.2f}", ratio)
            )
            records.append(
                {"network": title, "megabytes": size, "made_s": made_s, "usable_s": seconds}
                | {"empty_s": empty}
            )
    return Report(
        "report_page",
        "The page of a fit",
        PAGE_NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "jinja2"]),
        (Table("Pages", PAGE_HEADER, tuple(lines), ""),),
        tuple(records),
        tuple(_goals(records)),
    )


def _goals(records: list[dict[str, Any]]) -> Iterator[Goal]:
    for record in records:
        size, seconds = record["megabytes"], record["usable_s"]
        what = f"{record['network']}, with 2,000 rows"
        yield Goal(f"{what}: size of the page", "1.5 MB", f"{size:.2f} MB", size <= 1.5)
        yield Goal(f"{what}: until it can be used", "1 s", f"{seconds:.2f} s", seconds <= 1)


def _make(network: BayesianNetwork, seed: int) -> tuple[float, str, int]:
    rows, _ = corrupt(sample(network, 30_000, seed), network, "mixture", 0.1, random_state=seed)
    fit = RobustEstimator(network, random_state=seed).fit(rows)
    start = time.perf_counter()
    page = fit.report() or ""
    return time.perf_counter() - start, page, min(2_000, int((fit.row_weights_ < 0.5).sum()))
