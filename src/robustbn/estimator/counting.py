"""`MaximumLikelihoodEstimator`: learn tables by counting; every row is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from robustbn._core.allocate import telling_memory
from robustbn._core.calls import naming_the_nearest
from robustbn._core.docstrings import explained_by
from robustbn._core.expansion import normalise_counts
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import Inferred
from robustbn._learn.completion import complete
from robustbn._learn.filling import typical_weight
from robustbn._learn.likelihood import log_likelihood_of_table
from robustbn._learn.updating import add_inferred
from robustbn._rows.memory import gather, load_rows
from robustbn._show.progress import showing_progress
from robustbn._show.words import find_unseen
from robustbn._tables.coded import Reading, Table, as_weights, require_rows
from robustbn.estimator.base import TableEstimator
from robustbn.estimator.robust import RobustEstimator
from robustbn.network import BayesianNetwork


@explained_by(RobustEstimator)
class MaximumLikelihoodEstimator(TableEstimator):
    """Learn the tables of a network by counting; every row is trusted.

    Time is O(N d). Memory beside the rows: about one byte for every few nodes of a row.

    The settings, in groups:

    - what to fit: `network` - what is added to the counts: `prior`, `pseudo_count`,
      `equivalent_sample_size`, `equivalent_rows` - how values are read: `on_unknown`, `on_missing`,
      `bins` - how the work is done: `n_threads`, `kernels`

    Attributes
    ----------
    network_ : BayesianNetwork
        The network with its learned tables.
    counts_ : array of shape (M,)
        The weight of the rows in each cell of the tables.
    inferred_ : Inferred or None
        What was inferred about missing values; None if none were missing.
    unseen_configurations_ : list of tuple
        The (node, states of its parents) that no row shows; their tables come from the prior, or
        are uniform.
    reading_ : Reading
        How many rows were read, which were left out, and which columns were ignored.

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
        self._hold(locals())

    @telling_memory("Counting")
    @explained_by(RobustEstimator.fit)
    @naming_the_nearest
    def fit(self, X: Any, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Count the rows of a table and set `network_`."""
        self._check_settings()
        with showing_progress("Counting rows"):
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
        """Return the counts and what was inferred; `known` is what the prior adds."""
        rows = load_rows(network, table.codes, self.kernels, self.n_threads, holed=table.holed)
        counts = rows.count(weights)  # Algorithm 1, lines 1 and 2
        if not table.holed or table.reading.config.on_missing != "use":
            return counts, None
        layout, n_threads = network.layout, self.n_threads
        holes = gather(layout, table.codes, weights, n_threads, engine=self.kernels)
        found = complete(layout, known, counts, holes, typical_weight(weights))
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
        """Set the fitted attributes."""
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

    @explained_by(TableEstimator.log_likelihood)
    def score_samples(self, X: Any) -> RowVector:
        """Return the log-likelihood of each row; shape (N,)."""
        network, table = self._fitted(), self._encode(X)
        return table.spread(log_likelihood_of_table(network, table, self.kernels, self.n_threads))
