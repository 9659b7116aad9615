"""Estimators: learn a network's tables from rows, with the face of scikit-learn."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from robustbn._config import RobustConfig
from robustbn._describe import describe_kinds, describe_repeats, find_unseen
from robustbn._diagnose import Diagnosis, diagnose
from robustbn._encode import as_codes, as_weights, require_rows
from robustbn._expand import (
    bdeu_pseudo_counts,
    log_probabilities,
    normalise_counts,
    standard_errors,
)
from robustbn._fit import (
    RobustFit,
    fit_by_counting,
    fit_robustly,
    fit_with_oracle,
    load_rows,
    log_likelihood_of_rows,
)
from robustbn._protocols import RowVector, Vector
from robustbn._result import BadKind, RepeatedRow, Round, Shift
from robustbn.exceptions import (
    ConvergenceWarning,
    NotFittedError,
    SmallSampleWarning,
    UnseenConfigurationWarning,
)
from robustbn.network import BayesianNetwork

PRIORS = ("none", "laplace", "bdeu")


class _TableEstimator:
    """What the estimators share: settings, priors, likelihoods."""

    network: BayesianNetwork
    prior: str | None
    pseudo_count: float
    equivalent_sample_size: float
    n_threads: int | None
    backend: str | None
    network_: BayesianNetwork
    counts_: Vector
    unseen_configurations_: list[tuple[str, dict[str, Hashable]]]

    def log_likelihood(self, X: ArrayLike) -> float:
        """Return the log-likelihood of all rows together: `sum over cells of C[j] log q[j]`.

        Minus infinity when a row has a state to which the tables give probability zero.
        """
        q = self._fitted().probabilities
        counts = load_rows(self.network, X, self.backend, self.n_threads).count()
        touched = counts > 0
        return float(counts[touched] @ log_probabilities(q[touched]))

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

    def _set_tables(self, probabilities: Vector, counts: Vector, has_prior: bool) -> None:
        """Store what was learned, and warn of configurations that no row shows."""
        self.counts_ = counts
        self.network_ = self.network.with_cpts(probabilities)
        self.unseen_configurations_ = find_unseen(self.network, counts)
        if self.unseen_configurations_:
            node, parents = self.unseen_configurations_[0]
            given = ", ".join(f"{p}={v!r}" for p, v in parents.items())
            warnings.warn(
                f"{len(self.unseen_configurations_)} of {self.network.n_configurations} parent "
                "configurations occur in no row; their tables "
                f"{'are the prior alone' if has_prior else 'are set to uniform'}. The first: node "
                f"{node!r} given {given}. All are in unseen_configurations_.",
                UnseenConfigurationWarning,
                stacklevel=3,
            )


class MaximumLikelihoodEstimator(_TableEstimator):
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
        probabilities, counts = fit_by_counting(rows, weights, pseudo_counts)
        self._set_tables(probabilities, counts, bool(np.any(pseudo_counts)))
        return self

    def score_samples(self, X: ArrayLike) -> RowVector:
        """Return the log-likelihood of each row; shape (N,)."""
        q = self._fitted().probabilities
        rows = load_rows(self.network, X, self.backend, self.n_threads)
        return log_likelihood_of_rows(rows, q)


class RobustEstimator(_TableEstimator):
    """Learn tables as if the bad rows were not there.

    An unknown share of the rows may be anything at all. Rows are judged by the spectrum of their
    expansion (Cheng and Lin, ICLR 2021), by how often they are repeated, and by a model of what the
    bad rows look like; tables are the counts of the rows weighted by the trust in them.

    Time O(N d): a few passes over all rows, and rounds on a sample of them whose size depends on
    the network only. Memory beside the rows: about one byte for every few nodes and 30 bytes a row.

    Parameters
    ----------
    network : the structure to fit; its tables, if it has any, are ignored.
    contamination : largest share of bad rows to expect (eps, below 0.5); twice as much may be
        distrusted. "auto" finds it.
    method : how rows are judged: "filter" (the default), the oracles "que" (the paper's
        quantum-entropy scores) and "descent" (projected gradient), or a baseline to compare with:
        "none" (counting), "trimmed" (by likelihood), "one_shot", "ransac", "geometric_median",
        "coordinate_median".
    schedule : "joint" (tables, scale and weights are updated together) or "paper" (Algorithm 1
        with its fixed scale and its schedule of thresholds; needs `contamination`).
    polish : whether bad rows are explained by networks of their own; otherwise filters alone judge.
    prior, pseudo_count, equivalent_sample_size : as in `MaximumLikelihoodEstimator`.
    sample_rows : how many rows to learn the verdict from; by default 200 a free parameter of the
        network, at least 50,000. The verdict is applied to all rows.
    random_state : seed; the same seed gives the same result, whatever the number of threads.
    n_threads, backend : as in `MaximumLikelihoodEstimator`.
    verbose : whether every round is told on standard error.

    Attributes
    ----------
    network_ : the network with its learned tables.
    contamination_ : share of the rows' weight that is distrusted.
    row_weights_ : trust in each row, from 0 to 1; shape (N,).
    kinds_ : the kinds of bad rows that were found, largest first.
    repeats_ : the rows that appear more often than the network allows, the 100 worst first.
    plain_network_ : what counting gives, for comparison.
    shift_ : robust minus plain estimate of each cell, and its z-score.
    history_ : the rounds: eigenvalues, threshold, weight removed, seconds.
    converged_, status_ : whether the trusted rows look clean, and a sentence on why it stopped.
    counts_ : weight of the trusted rows that touch each cell, shape (M,).
    unseen_configurations_ : as in `MaximumLikelihoodEstimator`.

    Examples
    --------
    >>> import robustbn
    >>> from robustbn.adversary import corrupt
    >>> network = robustbn.random_network("tree", 60, random_state=0)
    >>> X = robustbn.sample(network, 50_000, random_state=0)
    >>> dirty, is_bad = corrupt(X, network, "product", eps=0.1, random_state=0)
    >>> fit = robustbn.RobustEstimator(network, random_state=0).fit(dirty)
    >>> round(fit.contamination_, 3)
    0.1
    >>> bool((fit.row_weights_[is_bad] < 0.5).mean() > 0.99)
    True
    """

    contamination_: float
    row_weights_: RowVector
    kinds_: list[BadKind]
    repeats_: list[RepeatedRow]
    plain_network_: BayesianNetwork
    shift_: Shift
    history_: list[Round]
    converged_: bool
    status_: str

    def __init__(
        self,
        network: BayesianNetwork,
        contamination: float | str = "auto",
        method: str = "filter",
        *,
        schedule: str = "joint",
        polish: bool = True,
        prior: str | None = None,
        pseudo_count: float = 1.0,
        equivalent_sample_size: float = 10.0,
        sample_rows: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
        backend: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.network = network
        self.contamination = contamination
        self.method = method
        self.schedule = schedule
        self.polish = polish
        self.prior = prior
        self.pseudo_count = pseudo_count
        self.equivalent_sample_size = equivalent_sample_size
        self.sample_rows = sample_rows
        self.random_state = random_state
        self.n_threads = n_threads
        self.backend = backend
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the rows of X, integer codes of shape (N, d).

        Parameters
        ----------
        sample_weight : one finite, non-negative weight a row; all 1 by default.
        """
        pseudo_counts = self._pseudo_counts()
        config = RobustConfig(
            contamination=self.contamination,
            method=self.method,
            schedule=self.schedule,
            polish=self.polish,
            sample_rows=self.sample_rows,
            seed=int(np.random.default_rng(self.random_state).integers(2**63)),
            n_threads=self.n_threads,
            backend=self.backend,
        )
        codes = as_codes(X, self.network)
        require_rows(len(codes))
        weights = as_weights(sample_weight, len(codes))
        tell = self._tell if self.verbose else (lambda _: None)
        is_default = self.method == "filter" and self.schedule == "joint"
        if weights is not None and not is_default:
            raise ValueError(
                "sample_weight is understood by method='filter' with schedule='joint' only."
            )
        with threadpool_limits(limits=1, user_api="blas"):  # its idle threads spin on our cores
            if is_default:
                self._fit = self._fit_weighted(codes, weights, config, tell)
            else:
                self._fit = fit_with_oracle(self.network, codes, config, tell)
        self._store(codes, self._fit, pseudo_counts)
        self._warn_if_unsure()
        return self

    def _fit_weighted(
        self,
        codes: NDArray[np.uint8],
        weights: RowVector | None,
        config: RobustConfig,
        tell: Callable[[Round], None],
    ) -> RobustFit:
        """Fit to the rows that have weight, and judge the others as rows never seen."""
        if weights is None or weights.all():
            return fit_robustly(self.network, codes, weights, config, tell)
        has_weight = np.flatnonzero(weights)
        fit = fit_robustly(self.network, codes[has_weight], weights[has_weight], config, tell)
        rows = load_rows(self.network, codes, self.backend, self.n_threads)
        first = has_weight[fit.repeats.first]
        return replace(fit, weights=fit.weigh(rows), repeats=replace(fit.repeats, first=first))

    def weights(self, X: ArrayLike) -> RowVector:
        """Return the trust in each row, seen in `fit` or not, from 0 to 1; shape (N,)."""
        self._fitted()
        return self._fit.weigh(load_rows(self.network, X, self.backend, self.n_threads))

    def score_samples(self, X: ArrayLike) -> RowVector:
        """Return how normal each row is: the log of the trust in it; shape (N,).

        Higher is more normal. Rows that nothing speaks against have the highest score, near 0. It
        is not a likelihood: a rare row that the network allows is normal. (`score` is the mean
        log-likelihood.)
        """
        self._fitted()
        return self._fit.score(load_rows(self.network, X, self.backend, self.n_threads))

    def predict(self, X: ArrayLike) -> Vector:
        """Return +1 for rows that are trusted and -1 for the others; shape (N,)."""
        return np.where(self.weights(X) < 0.5, -1, 1)

    def diagnose(self) -> Diagnosis:
        """Return what the paper asks of network and rows and whether it holds; print the result."""
        self._fitted()
        is_auto = isinstance(self.contamination, str)
        eps = self.contamination_ if is_auto else float(self.contamination)
        return diagnose(self.network.layout, self.counts_, eps)

    def _store(self, codes: ArrayLike, fit: RobustFit, pseudo_counts: Vector | float) -> None:
        layout = self.network.layout
        q = normalise_counts(layout, fit.counts, pseudo_counts)
        plain = normalise_counts(layout, fit.plain_counts, pseudo_counts)
        self._set_tables(q, fit.counts, bool(np.any(pseudo_counts)))
        self.plain_network_ = self.network.with_cpts(plain)
        self.shift_ = Shift(
            q - plain, (q - plain) / standard_errors(layout, fit.plain_counts, plain)
        )
        self.row_weights_ = fit.weights
        self.contamination_ = fit.removed
        self.kinds_ = describe_kinds(self.network, fit.kind_counts, q, fit.n_rows)
        self.repeats_ = describe_repeats(self.network, np.asarray(codes), fit.repeats)
        self.history_ = list(fit.rounds)
        self.converged_, self.status_ = fit.converged, fit.status

    def _warn_if_unsure(self) -> None:
        if not self.converged_:
            warnings.warn(self.status_, ConvergenceWarning, stacklevel=3)
        n, n_free = len(self.row_weights_), self.network.layout.n_free
        if n < 20 * n_free:
            warnings.warn(
                f"{n:,} rows are few for a network with {n_free:,} free parameters: sampling noise "
                "hides all but gross corruption. Something like "
                f"{self.network.n_configurations * 100:,} rows would show 10 % of bad rows; with "
                "fewer, read the tables with care, or use a simpler network.",
                SmallSampleWarning,
                stacklevel=3,
            )

    @staticmethod
    def _tell(done: Round) -> None:
        spectrum = ""
        if done.eigenvalues:
            spectrum = (
                f"top eigenvalue {done.eigenvalues[0]:.3f}, good rows up to {done.threshold:.3f}; "
            )
        print(
            f"round {done.number}: {done.action}; {spectrum}{done.removed:.2%} distrusted "
            f"({done.wall_s:.2f} s)",
            file=sys.stderr,
        )
