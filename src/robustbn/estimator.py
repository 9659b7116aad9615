"""Estimators: learn a network's tables from rows, with the face of scikit-learn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from robustbn._encode import as_weights, require_rows
from robustbn._expand import bdeu_pseudo_counts, log_probabilities
from robustbn._fit import fit_by_counting, load_rows, log_likelihood_of_rows
from robustbn._protocols import RowVector, Vector
from robustbn.exceptions import NotFittedError, UnseenConfigurationWarning
from robustbn.network import BayesianNetwork

PRIORS = ("none", "laplace", "bdeu")


class MaximumLikelihoodEstimator:
    """Learn tables by counting. Every row is trusted.

    Time O(N d), memory about one byte for every few nodes of a row beside the rows themselves.

    Parameters
    ----------
    network : the structure to fit; its tables, if it has any, are ignored.
    prior : `None` or "none" (maximum likelihood), "laplace" (`pseudo_count` is added to every
        cell) or "bdeu" (`equivalent_sample_size` rows are spread evenly over every table).
    pseudo_count : what the prior "laplace" adds to every cell.
    equivalent_sample_size : how many rows the prior "bdeu" is worth.
    n_threads : threads to use; by default all that the process may use. Does not change results.
    backend : "native" or "numpy"; by default the fastest that is there.

    Attributes
    ----------
    network_ : the network with its learned tables.
    counts_ : weight of the rows that touch each cell, shape (M,).
    unseen_configurations_ : list of (node, states of its parents) that no row shows; their tables
        come from the prior, or are uniform.

    Examples
    --------
    >>> from robustbn import BayesianNetwork, MaximumLikelihoodEstimator
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["heads", "tails"]})
    >>> MaximumLikelihoodEstimator(coin).fit([[0], [0], [1], [0]]).network_.cpts["coin"]
    array([0.75, 0.25])
    """

    network_: BayesianNetwork
    counts_: Vector
    unseen_configurations_: list[tuple[str, dict[str, Hashable]]]

    def __init__(
        self,
        network: BayesianNetwork,
        prior: str | None = None,
        *,
        pseudo_count: float = 1.0,
        equivalent_sample_size: float = 10.0,
        n_threads: int | None = None,
        backend: str | None = None,
    ) -> None:
        self.network = network
        self.prior = prior
        self.pseudo_count = pseudo_count
        self.equivalent_sample_size = equivalent_sample_size
        self.n_threads = n_threads
        self.backend = backend

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Count the rows of X, integer codes of shape (N, d), and set `network_`.

        Parameters
        ----------
        sample_weight : one finite, non-negative weight a row; all 1 by default.
        """
        pseudo_counts = self._pseudo_counts()
        rows = load_rows(self.network, X, self.backend, self.n_threads)
        require_rows(rows.n_rows)
        weights = as_weights(sample_weight, rows.n_rows)
        probabilities, self.counts_ = fit_by_counting(rows, weights, pseudo_counts)
        self.network_ = self.network.with_cpts(probabilities)
        self.unseen_configurations_ = _find_unseen(self.network, self.counts_)
        if self.unseen_configurations_:
            _warn_of_unseen(
                self.network, self.unseen_configurations_, has_prior=bool(np.any(pseudo_counts))
            )
        return self

    def log_likelihood(self, X: ArrayLike) -> float:
        """Return the log-likelihood of all rows together: `sum over cells of C[j] log q[j]`.

        Minus infinity when a row has a state to which the tables give probability zero.
        """
        q = self._fitted().probabilities
        counts = load_rows(self.network, X, self.backend, self.n_threads).count()
        touched = counts > 0
        return float(counts[touched] @ log_probabilities(q[touched]))

    def score_samples(self, X: ArrayLike) -> RowVector:
        """Return the log-likelihood of each row; shape (N,)."""
        q = self._fitted().probabilities
        rows = load_rows(self.network, X, self.backend, self.n_threads)
        return log_likelihood_of_rows(rows, q)

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Return the mean log-likelihood of a row, for model selection."""
        n_rows = len(np.asarray(X))
        require_rows(n_rows)
        return self.log_likelihood(X) / n_rows

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, as scikit-learn's `clone` and searches expect."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no setting {name!r}; it has {', '.join(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name == "network" or value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _fitted(self) -> BayesianNetwork:
        if not hasattr(self, "network_"):
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet: call fit(X) first."
            )
        return self.network_

    def _pseudo_counts(self) -> Vector | float:
        prior = "none" if self.prior is None else str(self.prior).lower()
        if prior not in PRIORS:
            raise ValueError(f"Unknown prior {self.prior!r}; choose one of {', '.join(PRIORS)}.")
        for name in ("pseudo_count", "equivalent_sample_size"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative; found {value!r}.")
        if prior == "laplace":
            return self.pseudo_count
        if prior == "bdeu":
            return bdeu_pseudo_counts(self.network.layout, self.equivalent_sample_size)
        return 0.0


def _find_unseen(network: BayesianNetwork, counts: Vector) -> list[tuple[str, dict[str, Hashable]]]:
    layout = network.layout
    unseen = np.flatnonzero(layout.sum_configurations(counts) == 0)
    described = (network.describe_cell(int(j)) for j in layout.first_cell_of_config[unseen])
    return [(node, parents) for node, parents, _ in described]


def _warn_of_unseen(
    network: BayesianNetwork, unseen: list[tuple[str, dict[str, Hashable]]], has_prior: bool
) -> None:
    node, parents = unseen[0]
    given = ", ".join(f"{p}={v!r}" for p, v in parents.items())
    warnings.warn(
        f"{len(unseen)} of {network.n_configurations} parent configurations occur in no row; their "
        f"tables {'are the prior alone' if has_prior else 'are set to uniform'}. The first: node "
        f"{node!r} given {given}. All are in unseen_configurations_.",
        UnseenConfigurationWarning,
        stacklevel=3,
    )
