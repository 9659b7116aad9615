from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from robustbn import BayesianNetwork, example_network

settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")

ROOT = Path(__file__).parents[1]
LONG = set((ROOT / "tests/data/long.txt").read_text(encoding="utf-8").split())
# Files that share what takes long to start: a cluster, a browser, what mypy knows.
TOGETHER = {
    "test_dask": "dask", "test_aside_dask": "dask", "test_report_browser": "browser",
    "test_report_reading": "browser", "test_checkers": "types", "test_extend": "types",
    "test_public_names": "types",
}  # fmt: skip
# What takes longest starts first, so that none of it is left at the end.
FIRST = (
    "dask", "types", "browser", "test_cli", "test_docs", "test_recipes", "test_killed",
    "test_package", "test_examples", "test_misfit", "test_oracles", "test_stream", "test_states",
)  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="every network and seed of the promises")
    parser.addoption("--short", action="store_true", help="no test of tests/data/long.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is not asked for."""
    left_out = [item for item in items if is_left_out(item, config)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item, config)]
    items.sort(key=when_to_start)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep a file on one worker, and files that share something: it is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(Path(nodeid.partition("::")[0]))

    return ByGroup(config, log)


def group_of(path):
    return TOGETHER.get(path.stem, path.stem)


def is_left_out(item, config):
    if config.getoption("--short") and item.nodeid.partition("[")[0] in LONG:
        return True
    return not config.getoption("--full") and item.get_closest_marker("full") is not None


def when_to_start(item):
    group = group_of(item.path)
    return FIRST.index(group) if group in FIRST else len(FIRST)


def pytest_terminal_summary(terminalreporter, config):
    """Keep how long each test took, for `make slowest`."""
    cache = getattr(config, "cache", None)
    if cache is None:
        return
    taken = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                name = report.nodeid
                taken[name] = taken.get(name, 0) + report.duration
    cache.set("robustbn/seconds", cache.get("robustbn/seconds", {}) | taken)


@pytest.fixture(scope="session")
def alarm() -> BayesianNetwork:
    return example_network("alarm")


@pytest.fixture
def sprinkler() -> BayesianNetwork:
    """Columns in an order that is not topological; three states; two parents."""
    return BayesianNetwork(
        parents={"wet": ["rain", "sprinkler"], "rain": [], "sprinkler": ["rain"]},
        states={
            "wet": ["dry", "damp", "wet"],
            "rain": ["no", "yes"],
            "sprinkler": ["off", "on"],
        },
        cpts={
            "wet": [
                [[0.9, 0.08, 0.02], [0.1, 0.3, 0.6]],
                [[0.05, 0.15, 0.8], [0.01, 0.04, 0.95]],
            ],
            "rain": [0.8, 0.2],
            "sprinkler": [[0.6, 0.4], [0.99, 0.01]],
        },
    )


@pytest.fixture(scope="session")
def checked_types():
    """What mypy says of the sources: nothing; what it learned of them is kept for later runs."""
    command = [sys.executable, "-m", "mypy"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def cluster():
    """A Dask cluster of two processes, and a client of it."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit="1GB",
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield cluster


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A real browser; the test is skipped with a reason where there is none."""
    from tests.browser import open_browser

    with open_browser(tmp_path_factory.mktemp("downloads")) as opened:
        yield opened


@pytest.fixture
def clean(browser):
    """The browser, and after the test: not a word in its log, not a request."""
    yield browser
    browser.resize(1360, 900)
    assert browser.complaints() == []
    assert browser.requests() == []


@pytest.fixture(scope="module")
def alarm_report(alarm):
    """What a fit to corrupted rows of ALARM shows."""
    from tests.reports import fit_corrupted, report_of

    return report_of(*fit_corrupted(alarm, 30_000))


@pytest.fixture(scope="module")
def page(alarm_report):
    """The same as a page."""
    from robustbn._show.page.render import render_page

    return render_page(alarm_report)
