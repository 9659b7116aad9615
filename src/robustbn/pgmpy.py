"""Estimators for pgmpy: `model.fit(data, estimator=RobustEstimator())`.

Needs pgmpy 1.1.2 or later. Importing this module imports pgmpy; `import robustbn` does not.

Examples
--------
>>> import pandas as pd
>>> from pgmpy.models import DiscreteBayesianNetwork
>>> from robustbn.pgmpy import MaximumLikelihoodEstimator
>>> rows = pd.DataFrame({"rain": ["no", "no", "yes", "no"], "wet": ["no", "no", "yes", "yes"]})
>>> model = DiscreteBayesianNetwork([("rain", "wet")])
>>> model = model.fit(rows, estimator=MaximumLikelihoodEstimator())
>>> model.get_cpds("rain").values
array([0.75, 0.25])
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from robustbn import estimator as _estimator
from robustbn._core.docstrings import explained_by
from robustbn._networks.libraries import (
    collect_cpds,
    from_pgmpy,
    known_states,
    to_pgmpy,
    to_tabular_cpds,
)
from robustbn.exceptions import DataError, MissingDependencyError, NetworkError
from robustbn.network import BayesianNetwork

try:
    import pandas as pd
    from pgmpy.parameter_estimator import DiscreteParameterEstimator
except ImportError as error:
    raise MissingDependencyError(
        "robustbn.pgmpy needs pgmpy 1.1.2 or later: pip install 'robustbn[pgmpy]'"
    ) from error

__all__ = ["MaximumLikelihoodEstimator", "RobustEstimator", "from_pgmpy", "to_pgmpy"]

States = Mapping[str, Sequence[Hashable]]


class _Estimator(DiscreteParameterEstimator):  # type: ignore[misc]
    """What both estimators do with a model of pgmpy."""

    _learner: ClassVar[type[Any]]
    _tags = {"supports_latent_variables": False, "supports_weighted_data": True}  # noqa: RUF012

    def _keep(self, given: dict[str, Any]) -> None:
        """Hold the settings that were given, each under its name."""
        for name, value in given.items():
            if name not in ("self", "state_names"):
                setattr(self, name, value)
        super().__init__(state_names=given["state_names"])

    def fit(self, model: Any, data: pd.DataFrame, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the tables of a model from the rows of a pandas frame.

        Parameters
        ----------
        model : pgmpy.models.DiscreteBayesianNetwork
            The model whose tables are learned; without latent nodes.
        data : pandas.DataFrame
            The rows, with a column for every node of the model.
        sample_weight : array-like or None, default=None
            One finite, non-negative weight per row; by default all are 1.
        """
        network = _structure(model, data, self.state_names)
        settings = {k: v for k, v in self.get_params(deep=False).items() if k != "state_names"}
        learn = self._learner(network, **settings)
        self.estimator_ = learn.fit(data, sample_weight=sample_weight)
        self.network_ = self.estimator_.network_
        self.parameters_ = to_tabular_cpds(self.network_)
        self.state_names_ = {node: list(of) for node, of in self.network_.states.items()}
        return self


@explained_by(_estimator.RobustEstimator)
class MaximumLikelihoodEstimator(_Estimator):
    """Learn the tables of a pgmpy model by counting. Every row is trusted.

    Parameters
    ----------
    state_names : dict or None, default=None
        The states of the nodes. A node it does not name has the states that the model knows (from
        its tables, or from `to_pgmpy`), or else the sorted values of its column.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        The tables, one per node; parents are sorted, as pgmpy sorts them.
    state_names_ : dict
        The states of each node.
    network_ : BayesianNetwork
        The `robustbn.BayesianNetwork` with the learned tables.
    estimator_ : robustbn.MaximumLikelihoodEstimator
        The fitted estimator.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from robustbn.pgmpy import MaximumLikelihoodEstimator
    >>> rows = pd.DataFrame({"rain": ["no", "yes"] * 50, "wet": ["no", "yes"] * 50})
    >>> model = DiscreteBayesianNetwork([("rain", "wet")])
    >>> fitted = model.fit(rows, estimator=MaximumLikelihoodEstimator(prior=1))
    >>> model.get_cpds("rain").values
    array([0.5, 0.5])
    """

    _learner = _estimator.MaximumLikelihoodEstimator

    def __init__(
        self,
        state_names: States | None = None,
        *,
        prior: BayesianNetwork | str | float | None = None,
        pseudo_count: float = 1.0,
        equivalent_sample_size: float = 10.0,
        equivalent_rows: float | Mapping[str, Any] = 50.0,
        on_unknown: str = "error",
        on_missing: str = "use",
        bins: Any = None,
        n_threads: int | None = None,
        kernels: str | None = None,
    ) -> None:
        self._keep(locals())


@explained_by(_estimator.RobustEstimator, MaximumLikelihoodEstimator)
class RobustEstimator(_Estimator):
    """Learn the tables of a pgmpy model from rows that cannot all be trusted.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        The tables, one per node; parents are sorted, as pgmpy sorts them.
    state_names_ : dict
        The states of each node.
    network_ : BayesianNetwork
        The `robustbn.BayesianNetwork` with the learned tables.
    row_weights_ : array of shape (N,)
        The trust in each row, from 0 to 1; any other estimator accepts it as `sample_weight`.
    contamination_ : float
        The share of the rows' weight that is distrusted.
    kinds_ : list of Group
        The groups of bad rows, the largest first.
    estimator_ : robustbn.RobustEstimator
        The fitted estimator, with everything else it learned.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import robustbn
    >>> from robustbn.pgmpy import RobustEstimator, to_pgmpy
    >>> network = robustbn.random_network("tree", 40, random_state=0)
    >>> good = robustbn.sample(network, 20_000, random_state=0)
    >>> X, is_bad = robustbn.simulate.corrupt(good, network, "product", 0.1, random_state=0)
    >>> labels = [np.array(network.states[node])[X[:, k]] for k, node in enumerate(network.nodes)]
    >>> rows = pd.DataFrame(dict(zip(network.nodes, labels)))
    >>> learn = RobustEstimator(random_state=0)
    >>> round(learn.fit(to_pgmpy(network), rows).contamination_, 2)
    0.1
    """

    _learner = _estimator.RobustEstimator
    row_weights_ = property(attrgetter("estimator_.row_weights_"), doc="The trust in each row.")
    contamination_ = property(attrgetter("estimator_.contamination_"), doc="The share distrusted.")
    kinds_ = property(attrgetter("estimator_.kinds_"), doc="The groups of bad rows.")

    def __init__(
        self,
        state_names: States | None = None,
        *,
        contamination: float | str = "auto",
        method: str = "filter",
        schedule: str = "joint",
        polish: bool = True,
        misfit: str = "allow",
        copies: str = "auto",
        cells: str = "find",
        prior: BayesianNetwork | str | float | None = None,
        pseudo_count: float = 1.0,
        equivalent_sample_size: float = 10.0,
        equivalent_rows: float | Mapping[str, Any] = 50.0,
        on_unknown: str = "error",
        on_missing: str = "use",
        bins: Any = None,
        missing_is_evidence: bool = False,
        sample_rows: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
        kernels: str | None = None,
        verbose: bool | int | None = None,
    ) -> None:
        self._keep(locals())


def _structure(model: Any, data: pd.DataFrame, state_names: States | None) -> BayesianNetwork:
    """Return the structure of the model, parents sorted, with the states of every node."""
    collect_cpds(model)  # refuses what is not a discrete model
    if model.latents:
        raise NetworkError(
            f"Latent nodes cannot be learned from rows: {sorted(map(str, model.latents))}. Use a "
            "model of the observed nodes."
        )
    nodes = list(model.nodes())
    _check_columns(data, nodes)
    states = {**known_states(model), **_check_state_names(state_names, nodes, data)}
    for node in nodes:
        if node not in states:
            states[node] = _observed_states(data[node])
    parents = {node: sorted(model.predecessors(node)) for node in nodes}
    return BayesianNetwork(parents, {node: states[node] for node in nodes})


def _check_columns(data: pd.DataFrame, nodes: Sequence[Any]) -> None:
    if not isinstance(data, pd.DataFrame):
        raise DataError(f"pgmpy's data is a pandas DataFrame; found {type(data).__name__}.")
    columns = list(data.columns)
    missing = [node for node in nodes if node not in columns]
    if missing:
        near = difflib.get_close_matches(str(missing[0]), list(map(str, columns)), n=3)
        raise DataError(
            f"{len(missing)} of {len(nodes)} nodes have no column; the first is {missing[0]!r}."
            + (f" Columns with a similar name: {', '.join(map(repr, near))}." if near else "")
            + " Rename the columns of the frame, or remove the nodes from the model."
        )
    twice = [node for node in nodes if columns.count(node) > 1]
    if twice:
        raise DataError(f"Column {twice[0]!r} appears {columns.count(twice[0])} times; keep one.")


def _check_state_names(
    state_names: States | None, nodes: Sequence[Any], data: pd.DataFrame
) -> States:
    """Return the given states of the model's nodes; states of other columns are let pass."""
    given = state_names or {}
    if not isinstance(given, Mapping):
        raise NetworkError(
            f"state_names maps each node to its states; found {type(given).__name__}."
        )
    unknown = [name for name in given if name not in nodes and name not in data.columns]
    if unknown:
        raise NetworkError(
            f"state_names names {unknown[0]!r}, which is neither a node of the model nor a column."
        )
    return {name: labels for name, labels in given.items() if name in nodes}


def _observed_states(column: pd.Series[Any]) -> list[Hashable]:
    found = list(column.dropna().unique())
    if not found:
        raise DataError(
            f"Column {column.name!r} holds no values ({len(column)} rows), so its states are "
            f"unknown. Give state_names={{{column.name!r}: [labels]}}."
        )
    try:
        return sorted(found)
    except TypeError:
        raise DataError(
            f"The values of column {column.name!r} are of types that cannot be put in order: "
            f"{sorted({type(v).__name__ for v in found})}. Give state_names={{{column.name!r}: "
            "[labels]}, in the order you want."
        ) from None
