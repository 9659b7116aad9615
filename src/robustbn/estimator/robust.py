"""Tables as if the bad rows were not there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from robustbn._core.allocate import telling_memory
from robustbn._core.config import RobustConfig, Streaming, TableConfig
from robustbn._core.expansion import drop_rounding, normalise_counts, standard_errors
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import RobustFit, Shift
from robustbn._core.trust import DOUBT
from robustbn._core.warn import warn
from robustbn._learn.filling import Complete, completing
from robustbn._learn.known import trust_kinds
from robustbn._learn.places import (
    Fitted,
    Watch,
    fit_in_memory,
    fit_on_dask,
    fit_stream,
    trust_in_memory,
)
from robustbn._means.fit import fit_with_oracle
from robustbn._rows.place import find_place
from robustbn._show.words import describe_repeats, find_vanishing
from robustbn._tables.coded import as_sides, as_weights
from robustbn.estimator.settings import understand_earlier
from robustbn.estimator.shown import ShownEstimator
from robustbn.estimator.telling import tell_part, tell_round
from robustbn.exceptions import (
    ConvergenceWarning,
    DataError,
    NotFittedError,
    SettingError,
    SmallSampleWarning,
)
from robustbn.network import BayesianNetwork


class RobustEstimator(ShownEstimator):
    """Learn tables as if the bad rows were not there.

    An unknown share of the rows may be anything at all. Rows are judged by the spectrum of their
    expansion (Cheng and Lin, ICLR 2021), by how often they are repeated, and by a model of what the
    bad rows look like; tables are the counts of the rows weighted by the trust in them.

    Time O(N d): a few passes over all rows, and rounds on a sample of them whose size depends on
    the network only. Memory beside the rows: about one byte for every few nodes and 30 bytes a row.

    Parameters
    ----------
    network : the structure to fit; its tables, if it has any, are ignored. None: a node a column,
        no edges, states as found.
    contamination : largest share of bad rows to expect (eps, below 0.5); twice as much may be
        distrusted. "auto" finds it.
    method : how rows are judged: "filter" (the default: filters, and a model of the bad rows); the
        oracles "spectral" (a spectral filter), "que" (the paper's quantum-entropy scores) and
        "descent" (projected gradient); or a baseline to compare with: "none" (counting), "trimmed"
        (by likelihood), "one_shot", "ransac", "geometric_median", "coordinate_median".
    schedule : "joint" (tables, scale and weights are updated together) or "paper" (Algorithm 1
        with its fixed scale and its schedule of thresholds; needs `contamination`).
    polish : whether bad rows are explained by networks of their own; otherwise filters alone judge.
    misfit : "allow" (the default: the network may be wrong, and what it misses is told from bad
        rows) or "none" (good rows are exactly the network's, as the paper assumes).
    copies : what is made of rows that appear more often than they should: "auto" (the default:
        copies of a few rows are distrusted; where most rows are repeated, as in a bootstrap, they
        are counted, as so many rows and not as so much information), "count" (no row is distrusted
        for its copies) or "distrust" (whoever is repeated).
    prior, pseudo_count, equivalent_sample_size, on_unknown, on_missing, bins : as in
        `MaximumLikelihoodEstimator`.
    missing_is_evidence : whether which values are missing speaks for or against a row. Off by
        default: honest groups differ in what they leave out. On, `network_` has one more node,
        named "... is missing", for every column that misses values.
    sample_rows : how many rows to learn the verdict from; by default 200 a free parameter of the
        network, at least 50,000. The verdict is applied to all rows.
    streaming : a `Streaming` with what a table that is read in stretches keeps and writes; giving
        one makes it so. Its fields may be given by their own names too: `cache=...`.
    random_state : seed; the same seed gives the same result, whatever the number of threads.
    n_threads : as in `MaximumLikelihoodEstimator`.
    kernels : as there.
    place : where the rows are worked on: in "memory", in a "stream" of stretches, as is done anyway
        when a table's codes would take a quarter of the memory, or on "dask", as Dask frames are.
    verbose : whether every round is told on standard error.

    Attributes
    ----------
    network_ : the network with its learned tables.
    contamination_ : share of the rows' weight that is distrusted.
    row_weights_ : trust in each row of the table, from 0 to 1; NaN for rows that were left out.
    kinds_ : the kinds of bad rows that were found, largest first.
    repeats_ : the rows that appear more often than the network allows, the 100 worst first.
    plain_network_ : what counting gives, for comparison.
    shift_ : robust minus plain estimate of each cell, and its z-score.
    history_ : the rounds: eigenvalues, threshold, weight removed, seconds.
    vanishing_ : states and configurations, of at least 0.5 % of the rows, that keep less than a
        fifth of them, largest first.
    misfit_ : how far the trusted rows are from rows of the network; None if that was not asked.
    converged_, status_ : whether the trusted rows look clean, and a sentence on why it stopped.
    counts_ : weight of the trusted rows that touch each cell, shape (M,).
    unseen_configurations_, reading_ : as in `MaximumLikelihoodEstimator`.

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

    _EARLIER: ClassVar[Mapping[str, str]] = {
        "backend": "kernels",  # or place: see `_set`
        "on_error": "streaming__on_error",
        "cache": "streaming__cache",
        "weights_to": "streaming__weights_to",
    }
    _GROUPS: ClassVar[Mapping[str, type]] = {"streaming": Streaming}

    @understand_earlier
    def __init__(
        self,
        network: BayesianNetwork | None = None,
        contamination: float | str = "auto",
        method: str = "filter",
        *,
        schedule: str = "joint",
        polish: bool = True,
        misfit: str = "allow",
        copies: str = "auto",
        prior: str | float | None = None,
        pseudo_count: float = 1.0,
        equivalent_sample_size: float = 10.0,
        on_unknown: str = "error",
        on_missing: str = "use",
        bins: Any = None,
        missing_is_evidence: bool = False,
        sample_rows: int | None = None,
        streaming: Streaming | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
        kernels: str | None = None,
        place: str | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.network = network
        self.contamination = contamination
        self.method = method
        self.schedule = schedule
        self.polish = polish
        self.misfit = misfit
        self.copies = copies
        self.prior = prior
        self.pseudo_count = pseudo_count
        self.equivalent_sample_size = equivalent_sample_size
        self.on_unknown = on_unknown
        self.on_missing = on_missing
        self.bins = bins
        self.missing_is_evidence = missing_is_evidence
        self.sample_rows = sample_rows
        self.streaming = streaming
        self.random_state = random_state
        self.n_threads = n_threads
        self.kernels = kernels
        self.place = place
        self.verbose = verbose

    def _set(self, name: str, value: Any) -> None:
        if name == "backend":  # meant both once: which kernels, and where the rows are
            name = "place" if value in ("stream", "dask") else "kernels"
        super()._set(name, value)

    def fit(
        self,
        X: Any,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        known: ArrayLike | None = None,
    ) -> Self:
        """Learn from the rows of a table.

        Parameters
        ----------
        X : any table that `read_table` takes, or its result.
        sample_weight : one finite, non-negative weight a row; all 1 by default.
        known : "good" or 1 for a row that is known to be good, "bad" or -1 for one known to be bad,
            nothing ("", None) or 0 for the others; one a row. Rows that are like them change sides
            with them. `ask` says which to look at.
        """
        return self._learn_from(X, sample_weight, known)

    @telling_memory("Learning the tables")
    def _learn_from(
        self,
        X: Any,
        sample_weight: ArrayLike | None = None,
        known: ArrayLike | None = None,
        *,
        reading: TableConfig | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Learn from a table.

        Parameters
        ----------
        reading : how a table that is not in memory is read; by default as the settings say.
        watch : who is told of rounds and parts; by default the screen, if `verbose`.
        """
        self._check_settings()
        config, place = self._config(), self._find_place(X)
        is_default = self.method == "filter" and self.schedule == "joint"
        for name, given in (("sample_weight", sample_weight), ("known", known)):
            if given is not None and not is_default:
                raise SettingError(
                    f"{name} is understood by the method 'filter' with the schedule 'joint' only."
                )
        if known is not None and place != "memory":
            raise SettingError(
                "known is for rows in memory: set place to 'memory', or fit to a part that fits."
            )
        if not is_default and place != "memory":
            raise SettingError(
                "A table that is not in memory is fitted by the method 'filter' with the schedule "
                "'joint'."
            )
        watch = watch or (Watch(tell_round, tell_part) if self.verbose else Watch())
        start = time.perf_counter()
        with threadpool_limits(limits=1, user_api="blas"):  # its idle threads spin on our cores
            weights = sides = None
            if place == "memory":
                network, table = self._read(X)
                weights = as_weights(sample_weight, table)
                method = None if is_default else fit_with_oracle
                complete = self._completing(network, table.reading.config)
                sides = as_sides(known, table)
                found = fit_in_memory(
                    network, table, weights, config, watch, method, complete, sides
                )
            else:
                network = self._needed_network()
                found = self._fit_elsewhere(X, place, sample_weight, config, reading, watch)
        with self._all_or_nothing():
            self.fit_seconds_ = time.perf_counter() - start
            self._note_table(X, network, found.reading)
            self._aside, self._weights, self._sides = found.aside, weights, sides
            self._store(network, found)
        self._warn_if_unsure()
        return self

    def _config(self) -> RobustConfig:
        return RobustConfig(
            contamination=self.contamination,
            method=self.method,
            schedule=self.schedule,
            polish=self.polish,
            misfit=self.misfit,
            copies=self.copies,
            sample_rows=self.sample_rows,
            seed=_seed(self.random_state),
            n_threads=self.n_threads,
            kernels=self.kernels,
        )

    def fit_predict(self, X: Any, y: None = None, **settings: Any) -> Vector:
        """Fit, and return +1 for rows that are trusted, -1 for the others, 0 if left out."""
        self.fit(X, **settings)
        if not hasattr(self, "row_weights_"):
            raise DataError(
                "The table was fitted, but it has too many rows to return a number for each: call "
                "predict on pieces of it, or fit with weights_to='...'."
            )
        return side_of(self.row_weights_)

    def _find_place(self, X: Any) -> str:
        """Return where rows are worked on: in "memory", in a "stream", or on "dask"."""
        return find_place(X, self._given_network(), self.place, self.streaming or Streaming())

    def _needed_network(self) -> BayesianNetwork:
        network = self._given_network()
        if network is None:
            raise SettingError("A table that is not in memory needs a network: give network=...")
        return network

    def _fit_elsewhere(
        self,
        X: Any,
        place: str,
        sample_weight: ArrayLike | None,
        config: RobustConfig,
        reading: TableConfig | None,
        watch: Watch,
    ) -> Fitted:
        """Fit to rows that are read in stretches, or that live on a cluster."""
        network = self._needed_network()
        reading = reading or TableConfig(self.on_unknown, self.on_missing, self.bins)
        if reading.on_missing == "state":
            raise SettingError(
                "A state for missing values is for rows in memory: where they are missing is not "
                "known before a stream is read. Add the state 'missing' to the network, or let "
                "them be inferred ('use')."
            )
        if self.missing_is_evidence:
            raise SettingError("missing_is_evidence is for rows in memory.")
        complete = self._completing(network, reading)
        if place == "dask":
            return fit_on_dask(network, X, sample_weight, config, reading, watch, complete)
        if sample_weight is not None:
            raise DataError("sample_weight is for rows in memory; a stream takes none.")
        streaming = self.streaming or Streaming()
        return fit_stream(network, X, config, reading, streaming, watch, complete)

    def _completing(self, network: BayesianNetwork, reading: TableConfig) -> Complete | None:
        """Return how tables are learned from rows that miss values, if what is missing counts."""
        if reading.on_missing != "use":
            return None
        return completing(network.layout, self._pseudo_counts(network))

    def weights(self, X: Any) -> RowVector:
        """Return the trust in each row, seen in `fit` or not, from 0 to 1; shape (N,).

        Rows that are left out because of missing or unknown values get NaN.
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self._fit.model.weigh(self._load(table)))

    def score_samples(self, X: Any) -> RowVector:
        """Return how normal each row is: the log of the trust in it; shape (N,).

        Higher is more normal. Rows that nothing speaks against have the highest score, near 0. It
        is not a likelihood: a rare row that the network allows is normal. (`score` is the mean
        log-likelihood.)
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self._fit.model.log_weigh(self._load(table)))

    def decision_function(self, X: Any) -> RowVector:
        """Return `score_samples(X) - offset_`: negative for rows that are distrusted."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Vector:
        """Return +1 for rows that are trusted, -1 for the others, 0 if left out; shape (N,)."""
        return side_of(self.weights(X))

    def trust(self, kinds: Sequence[int], X: Any = None) -> Self:
        """Return a fit that takes some kinds of bad rows for good ones, without learning again.

        For a group that is real but far from the rest. The tables are those of the rows that are
        trusted now; the kinds that are left keep their order and are numbered anew.

        Parameters
        ----------
        kinds : their numbers, from 1: `kinds_[0]` is kind 1.
        X : the rows of `fit`, to judge them all again; without it, the tables come from the sums
            that were kept, and only rows that were distrusted are judged again. Needed where
            values are missing, or rows are known: they are inferred and judged again.
        """
        network, old = self._fitted(), self._fit
        if X is None and not hasattr(self, "_judged"):
            raise NotFittedError(
                "A model from a file does not hold the rows it was fitted to: call trust(kinds, X)."
            )
        if X is None and (old.recorded is not None or self._sides is not None):
            raise NotFittedError(
                "The sums of a fit do not tell what trusting a kind makes of rows that miss values "
                "or that are known: they are needed again. Call trust(kinds, X) with the rows of "
                "fit; robustbn fit does so with --place memory."
            )
        columns = self._kinds().choose(kinds)
        unheld = self._kinds().counts[:, -1] * (old.n_rows / max(self.reading_.n_rows, 1))
        new = copy(self)
        if X is None:
            fit = trust_kinds(network.layout, old, columns, unheld)
            judged = self._judged.judged_again(lambda c: fit.model.weigh(new._load_codes(c)))
            found = Fitted(fit, self.reading_, judged, self._aside.without_counts())
        else:
            table = self._encode_again(X)
            complete = self._completing(network, table.reading.config)
            found = trust_in_memory(
                network, table, old, self._config(), columns, unheld, self._weights, self._sides,
                complete,
            )  # fmt: skip
        new._aside = found.aside
        new._store(network.with_cpts(None), found)
        return new

    def _store(self, network: BayesianNetwork, found: Fitted) -> None:
        """Set the tables, and what is known of the rows."""
        fit, judged = found.fit, found.judged
        fit = replace(fit, counts=drop_rounding(network.layout, fit.counts, fit.plain_counts))
        self._fit, self._judged = fit, judged
        pseudo_counts = self._pseudo_counts(network)
        q = normalise_counts(network.layout, fit.counts, pseudo_counts)
        plain = normalise_counts(network.layout, fit.plain_counts, pseudo_counts)
        self._set_tables(network, q, fit.counts, bool(np.any(pseudo_counts)))
        self._describe(fit, plain)
        self._warn_if_not_settled()
        if judged.weights is not None:
            self.row_weights_ = judged.weights
        elif hasattr(self, "row_weights_"):
            del self.row_weights_

    def _describe(self, fit: RobustFit, plain: Vector) -> None:
        """Set what can be said without the rows."""
        network = self.network_
        q, layout = network.probabilities, network.layout
        self.plain_network_ = network if np.array_equal(q, plain) else network.with_cpts(plain)
        self.shift_ = Shift(
            q - plain, (q - plain) / standard_errors(layout, fit.plain_counts_in_rows, plain)
        )
        self.offset_ = float(np.log(0.5))
        self.contamination_ = fit.removed
        self._found = None
        self.repeats_ = describe_repeats(network, fit.model.repeats)
        self.history_ = list(fit.rounds)
        self.converged_, self.status_ = fit.converged, fit.status
        self.misfit_, self.inferred_ = fit.misfit, fit.inferred
        self.vanishing_ = find_vanishing(network, fit)
        if self.vanishing_:
            named = "; ".join(str(group) for group in self.vanishing_[:3])
            self.status_ += f" Look at them before you believe that: {named}."
        if fit.inferred is not None:
            self.status_ += f" {fit.inferred}"

    def _describe_fit(self) -> dict[str, Any]:
        from robustbn.estimator.model_file import describe_fit

        return describe_fit(self._fit, self.plain_network_.probabilities, self._kinds())

    def _restore(self, network: BayesianNetwork, document: dict[str, Any]) -> None:
        from robustbn.estimator.model_file import build_fit

        super()._restore(network, document)
        self._fit, plain, found = build_fit(document, network, self.reading_.n_rows, self.kernels)
        self._describe(self._fit, plain)
        self._found = found

    def _warn_if_unsure(self) -> None:
        self._warn_of_damaged()
        if not self.converged_:
            warn(self.status_, ConvergenceWarning)
        few = self._say_few_rows()
        if few:
            warn(
                f"{few} Sampling noise hides all but gross corruption: read the tables with care, "
                "or use a simpler network.",
                SmallSampleWarning,
            )


def _seed(random_state: Any) -> int:
    """Return a seed from whatever scikit-learn takes for one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(np.random.default_rng(random_state).integers(2**63))


def side_of(weights: RowVector) -> Vector:
    """Return +1 for rows that are trusted, -1 for the others, 0 for those that were left out."""
    return np.where(np.isnan(weights), 0, np.where(weights < DOUBT, -1, 1))
