"""Learn the tables of a Bayesian network from rows that cannot all be trusted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from robustbn._core import __version__

if TYPE_CHECKING:
    from robustbn import adversary as adversary
    from robustbn import distance as distance
    from robustbn import estimator as estimator
    from robustbn import exceptions as exceptions
    from robustbn import mean as mean
    from robustbn import network as network
    from robustbn import pgmpy as pgmpy
    from robustbn import simulate as simulate
    from robustbn import states as states
    from robustbn._core.config import Streaming
    from robustbn._networks import example_network, read_network, write_network
    from robustbn._show.result import FitResult
    from robustbn._tables.coded import Table
    from robustbn._tables.table import read_table
    from robustbn._tables.unroll import unroll
    from robustbn.distance import total_variation
    from robustbn.estimator import MaximumLikelihoodEstimator, RobustEstimator, compare, fit
    from robustbn.estimator.drafting import Draft, draft
    from robustbn.mean import robust_mean
    from robustbn.network import BayesianNetwork
    from robustbn.simulate import random_network, sample
    from robustbn.states import states_from

__all__ = [
    "BayesianNetwork",
    "Draft",
    "FitResult",
    "MaximumLikelihoodEstimator",
    "RobustEstimator",
    "Streaming",
    "Table",
    "__version__",
    "compare",
    "draft",
    "example_network",
    "fit",
    "random_network",
    "read_network",
    "read_table",
    "robust_mean",
    "sample",
    "states_from",
    "total_variation",
    "unroll",
    "write_network",
]

_ROOM_OF = {
    "BayesianNetwork": "network",
    "Draft": "estimator.drafting",
    "FitResult": "_show.result",
    "MaximumLikelihoodEstimator": "estimator",
    "RobustEstimator": "estimator",
    "Streaming": "_core.config",
    "Table": "_tables.coded",
    "compare": "estimator",
    "draft": "estimator.drafting",
    "example_network": "_networks",
    "fit": "estimator",
    "random_network": "simulate",
    "read_network": "_networks",
    "read_table": "_tables.table",
    "robust_mean": "mean",
    "sample": "simulate",
    "states_from": "states",
    "total_variation": "distance",
    "unroll": "_tables.unroll",
    "write_network": "_networks",
}
_ROOMS = (
    "adversary", "distance", "estimator", "exceptions", "mean", "network", "simulate", "states",
)  # fmt: skip


def _load(name: str) -> Any:
    """Load a public name when it is first asked for: a command that needs none starts at once."""
    if name in _ROOM_OF:
        value = getattr(import_module(f"robustbn.{_ROOM_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in (*_ROOMS, "pgmpy"):  # which is not listed: it needs pgmpy
        return import_module(f"robustbn.{name}")
    raise AttributeError(f"module 'robustbn' has no attribute {name!r}")


if not TYPE_CHECKING:  # to a checker, which sees it, every name would be there
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
