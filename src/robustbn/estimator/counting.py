"""Tables by counting: every row is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from robustbn._core.allocate import telling_memory
from robustbn._core.calls import naming_the_nearest
from robustbn._core.expansion import normalise_counts
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import Inferred
from robustbn._learn.completion import complete
from robustbn._learn.filling import typical_weight
from robustbn._learn.likelihood import log_likelihood_of_table
from robustbn._learn.updating import add_inferred
from robustbn._rows.memory import gather_holes, load_rows
from robustbn._show.words import find_unseen
from robustbn._tables.coded import Reading, Table, as_weights, require_rows
from robustbn.estimator.base import TableEstimator
from robustbn.network import BayesianNetwork


class MaximumLikelihoodEstimator(TableEstimator):
    """Learn tables by counting. Every row is trusted.

    Time O(N d), memory about one byte for every few nodes of a row beside the rows themselves.

    Parameters
    ----------
    network : the structure to fit; its tables, if it has any, are ignored. None: a node a column,
        no edges, states as found.
    prior : `None` or "none" (maximum likelihood), "laplace" (`pseudo_count` is added to every
        cell), "bdeu" (`equivalent_sample_size` rows are spread evenly over every table), a
        number (so much is added to every cell), or a `BayesianNetwork` of the same nodes, parents
        and states: an expert's tables, or last year's. Where one of them is NaN, nothing is added.
    pseudo_count : what the prior "laplace" adds to every cell.
    equivalent_sample_size : how many rows the prior "bdeu" is worth.
    equivalent_rows : how many rows an expert's tables are worth: a number; or a mapping of nodes to
        numbers, or to arrays with a number for each configuration, in the shape of the parents'
        states; nodes that it does not name get 50. So many rows are added to each configuration,
        fewer where the rows contradict the expert (`expert_tables`).
    on_unknown, on_missing, bins : how values that are no states, missing values and numbers are
        read; see `read_table`, which can do more. Estimators take its result too.
    n_threads : threads to use; by default all that the process may use, or as many as
        `OMP_NUM_THREADS` says, which joblib and Dask set for workers. Does not change results.
    kernels : "native" or "numpy"; by default the fastest that is there.

    Attributes
    ----------
    network_ : the network with its learned tables.
    counts_ : weight of the rows that touch each cell, shape (M,).
    unseen_configurations_ : list of (node, states of its parents) that no row shows; their tables
        come from the prior, or are uniform.
    reading_ : how many rows were read, which were left out, which columns were ignored.

    Examples
    --------
    >>> from robustbn import BayesianNetwork, MaximumLikelihoodEstimator
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["heads", "tails"]})
    >>> MaximumLikelihoodEstimator(coin).fit([[0], [0], [1], [0]]).network_.cpts["coin"]
    array([0.75, 0.25])
    """

    @naming_the_nearest
    def __init__(
        self,
        network: BayesianNetwork | None = None,
        prior: BayesianNetwork | str | float | None = None,
        *,
        pseudo_count: float = 1.0,
        equivalent_sample_size: float = 10.0,
        equivalent_rows: float | Mapping[str, Any] = 50.0,
        on_unknown: str = "error",
        on_missing: str = "use",
        bins: Any = None,
        n_threads: int | None = None,
        kernels: str | None = None,
    ) -> None:
        self.network = network
        self.prior = prior
        self.pseudo_count = pseudo_count
        self.equivalent_sample_size = equivalent_sample_size
        self.equivalent_rows = equivalent_rows
        self.on_unknown = on_unknown
        self.on_missing = on_missing
        self.bins = bins
        self.n_threads = n_threads
        self.kernels = kernels

    @telling_memory("Counting")
    @naming_the_nearest
    def fit(self, X: Any, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Count the rows of a table and set `network_`.

        Parameters
        ----------
        X : any table that `read_table` takes, or its result.
        sample_weight : one finite, non-negative weight a row; all 1 by default.
        """
        self._check_settings()
        network, table = self._read(X)
        known = self._pseudo_counts(network)
        counts, inferred = self._count(network, table, as_weights(sample_weight, table), known)
        pseudo_counts = self._pseudo_counts(network, counts)
        probabilities = normalise_counts(network.layout, counts, pseudo_counts)
        with self._all_or_nothing():
            self._note_columns(X, network)
            self._store(network.with_cpts(probabilities), table.reading, counts, inferred)
            self._warn_of_tables(bool(np.any(pseudo_counts)))
        return self

    def _count(
        self,
        network: BayesianNetwork,
        table: Table,
        weights: RowVector | None,
        known: Vector | float,
    ) -> tuple[Vector, Inferred | None]:
        """Return the counts of rows, and what was inferred; `known` is what is added to them."""
        rows = load_rows(network, table.codes, self.kernels, self.n_threads, holed=table.holed)
        counts = rows.count(weights)  # Algorithm 1, lines 1 and 2
        if not table.holed or table.reading.config.on_missing != "use":
            return counts, None
        holes = gather_holes(network, table.codes, weights, self.kernels, self.n_threads)
        found = complete(network.layout, known, counts, holes, typical_weight(weights))
        return found.counts, found.inferred

    def _add(self, X: Any, forgetting: float) -> None:
        from robustbn.estimator.updating import add_readings, check_forgetting

        check_forgetting(forgetting)
        network, table = self.network_, self._encode(X)
        require_rows(len(table))
        before = forgetting * self.counts_
        counts, how = self._count(network, table, None, self._pseudo_counts(network) + before)
        inferred = add_inferred((before, self.inferred_), (counts, how), forgetting)
        counts = before + counts
        q = normalise_counts(network.layout, counts, self._pseudo_counts(network, counts))
        reading = add_readings(self.reading_, table.reading, forgetting)
        self._store(network.with_cpts(q), reading, counts, inferred)

    def _store(
        self, network: BayesianNetwork, reading: Reading, counts: Vector, inferred: Inferred | None
    ) -> None:
        """Set what was found."""
        self.network_, self.reading_ = network, reading
        self.counts_, self.inferred_ = counts, inferred
        self.unseen_configurations_ = find_unseen(network, counts)

    def _describe_fit(self) -> dict[str, Any]:
        from robustbn._core.documents import to_plain
        from robustbn.estimator.model_file import Counted

        document: dict[str, Any] = to_plain(Counted(self.counts_, self.inferred_))
        return document

    def _restore(
        self, network: BayesianNetwork, reading: Reading, document: dict[str, Any]
    ) -> None:
        from robustbn.estimator.model_file import build_counted

        counted = build_counted(document, network)
        self._store(network, reading, counted.counts, counted.inferred)

    def score_samples(self, X: Any) -> RowVector:
        """Return the log-likelihood of each row; shape (N,)."""
        network, table = self._fitted(), self._encode(X)
        return table.spread(log_likelihood_of_table(network, table, self.kernels, self.n_threads))
