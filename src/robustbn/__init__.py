"""Learn the tables of a Bayesian network from rows that cannot all be trusted."""

from robustbn._face import fit
from robustbn._read import example_network, read_network, write_network
from robustbn._table import Table, read_table
from robustbn._version import __version__
from robustbn.distance import total_variation
from robustbn.estimator import MaximumLikelihoodEstimator, RobustEstimator
from robustbn.mean import robust_mean
from robustbn.network import BayesianNetwork
from robustbn.simulate import random_network, sample

__all__ = [
    "BayesianNetwork",
    "MaximumLikelihoodEstimator",
    "RobustEstimator",
    "Table",
    "__version__",
    "example_network",
    "fit",
    "random_network",
    "read_network",
    "read_table",
    "robust_mean",
    "sample",
    "total_variation",
    "write_network",
]
