from __future__ import annotations

import pytest
from hypothesis import settings

from robustbn import BayesianNetwork, example_network

settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")


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


@pytest.fixture(scope="module")
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
