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
