"""Tables as if the bad rows were not there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.calls import naming_the_nearest
from robustbn._core.config import Streaming
from robustbn._core.findings import Finding
from robustbn._core.groups import Group
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import Inferred, Misfit, RepeatedRow, Round, Shift, Vanishing
from robustbn._core.trust import DOUBT
from robustbn._show import frames
from robustbn._show.explain import Explainer
from robustbn._show.result import FitResult
from robustbn._tables.coded import Reading
from robustbn.estimator.finding import build_result_of_file
from robustbn.estimator.learning import decide_again, fit_to
from robustbn.estimator.showing import ShownEstimator
from robustbn.estimator.updating import update_fit
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn.estimator.mending import Repaired


class _Found:
    """A view of what a fit found: `contamination_` is `result_.contamination`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, fit: Any, owner: type | None = None) -> Any:
        if fit is None:
            return self
        if "result_" not in vars(fit):
            raise AttributeError(
                f"{type(fit).__name__!r} object has no attribute {self._name!r}: call fit(X) first."
            )
        return attrgetter(self._path)(fit.result_)


def _found(path: str) -> Any:
    """Return a view; its type is that of what is found there."""
    return _Found(path)


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
    cells : "find" (the default: single wrong cells of good rows are looked for, and counted by what
        they should be) or "trust" (every cell of a trusted row counts as it is).
    prior, pseudo_count, equivalent_sample_size, equivalent_rows : as in
        `MaximumLikelihoodEstimator`.
    on_unknown, on_missing, bins : as there.
    missing_is_evidence : whether which values are missing speaks for or against a row. Off by
        default: honest groups differ in what they leave out. On, `network_` has one more node,
        named "... is missing", for every column that misses values.
    sample_rows : how many rows to learn the verdict from; by default 200 a free parameter of the
        network, at least 50,000. The verdict is applied to all rows.
    streaming : a `Streaming` with what a table that is read in stretches keeps and writes; giving
        one makes it so.
    random_state : seed; the same seed gives the same result, whatever the number of threads.
    n_threads : as in `MaximumLikelihoodEstimator`.
    kernels : as there.
    place : where the rows are worked on: in "memory", in a "stream" of stretches, as is done anyway
        when a table's codes would take a quarter of the memory, or on "dask", as Dask frames are.
    verbose : whether every round is told on standard error.

    Attributes
    ----------
    result_ : all that was found, as one frozen `FitResult`; the others are views of it.
    findings_ : what a person should know about the table, the most serious first: a list of
        `Finding`.
    network_ : the network with its learned tables.
    contamination_ : share of the rows' weight that is distrusted.
    row_weights_ : trust in each row of the table, from 0 to 1; NaN for rows that were left out.
    kinds_ : the groups of bad rows, largest first; those that no group describes have number 0.
    groups_ : all groups that were found, whichever side they are on, the largest stake first.
    repeats_ : the rows that appear more often than the network allows, the 100 worst first.
    plain_network_ : what counting gives, for comparison.
    shift_ : robust minus plain estimate of each cell, and its z-score.
    history_ : the rounds: eigenvalues, threshold, weight removed, seconds.
    vanishing_ : states and configurations, of at least 0.5 % of the rows, that keep less than a
        fifth of them, largest first.
    cells_ : a frame of the cells that are likely to be wrong, the surest first.
    cell_rates_ : a frame of the columns: share of wrong cells, and what is taken for what.
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

    result_: FitResult
    network_: BayesianNetwork = _found("network")
    plain_network_: BayesianNetwork = _found("plain_network")
    counts_: Vector = _found("learned.counts")
    contamination_: float = _found("contamination")
    kinds_: list[Group] = _found("kinds")
    groups_: list[Group] = _found("groups")
    repeats_: list[RepeatedRow] = _found("repeats")
    findings_: list[Finding] = _found("findings")
    shift_: Shift = _found("shift")
    history_: tuple[Round, ...] = _found("rounds")
    converged_: bool = _found("converged")
    status_: str = _found("status")
    misfit_: Misfit | None = _found("misfit")
    inferred_: Inferred | None = _found("inferred")
    vanishing_: list[Vanishing] = _found("vanishing")
    unseen_configurations_: list[tuple[str, dict[str, Hashable]]] = _found("unseen_configurations")
    reading_: Reading = _found("reading")
    explainer_: Explainer = _found("explainer")
    fit_seconds_: float = _found("seconds")
    offset_ = float(np.log(DOUBT))
    _HAS_CONTEXT = True
    _GROUPS: ClassVar[Mapping[str, type]] = {"streaming": Streaming}
    _weights: RowVector | None = None  # of the rows of `fit`, if they are at hand
    _sides: NDArray[np.int8] | None = None  # of those that are known

    @naming_the_nearest
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
        self.cells = cells
        self.prior = prior
        self.pseudo_count = pseudo_count
        self.equivalent_sample_size = equivalent_sample_size
        self.equivalent_rows = equivalent_rows
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

    @property
    def row_weights_(self) -> RowVector:
        """Trust in each row of the table, from 0 to 1; NaN for rows that were left out."""
        weights = self.result_.row_weights
        if weights is None:
            raise AttributeError("This fit has no row_weights_: the table has too many rows.")
        return weights

    @naming_the_nearest
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
        fit_to(self, X, sample_weight, known)
        return self

    def fit_predict(self, X: Any, y: None = None, **settings: Any) -> Vector:
        """Fit, and return +1 for rows that are trusted, -1 for the others, 0 if left out."""
        self.fit(X, **settings)
        weights = self.result_.row_weights
        if weights is None:
            raise DataError(
                "The table was fitted, but it has too many rows to return one value per row: call "
                "predict on parts of it, or fit with streaming=Streaming(weights_to='...')."
            )
        return side_of(weights)

    def weights(self, X: Any) -> RowVector:
        """Return the trust in each row, seen in `fit` or not, from 0 to 1; shape (N,).

        Rows that are left out because of missing or unknown values get NaN.
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self.result_.learned.model.weigh(self._load(table)))

    def score_samples(self, X: Any) -> RowVector:
        """Return how normal each row is: the log of the trust in it; shape (N,).

        Higher is more normal. Rows that nothing speaks against have the highest score, near 0. It
        is not a likelihood: a rare row that the network allows is normal. (`score` is the mean
        log-likelihood.)
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self.result_.learned.model.log_weigh(self._load(table)))

    def decision_function(self, X: Any) -> RowVector:
        """Return `score_samples(X) - offset_`: negative for rows that are distrusted."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Vector:
        """Return +1 for rows that are trusted, -1 for the others, 0 if left out; shape (N,)."""
        return side_of(self.weights(X))

    def group_shares(self, X: Any) -> RowVector:
        """Return how surely each row is of each group; shape (N, 1 + K).

        Column 0 is the main class, column k the group whose number is k (see `groups_`). Rows that
        are left out because of missing or unknown values get NaN.
        """
        self._fitted()
        table, model = self._encode(X), self.result_.learned.model
        shares = model.judge(self._load(table))[0]
        return np.column_stack([table.spread(column) for column in shares.T])

    def check(self, X: Any) -> list[Finding]:
        """Return in what new rows differ from the good rows of the fit, the most serious first.

        Rows may be less likely than good rows are, tables may have moved, values may be missing
        more often, or be no states. A batch of good rows has nothing of it in 99 of 100 cases,
        whatever its size. The findings are "new rows differ", "rows", "missing values" and
        "unreadable values".

        Parameters
        ----------
        X : new rows, as in `fit`.
        """
        from robustbn.estimator.checking import check_table

        self._fitted()
        return check_table(self, self._encode(X, forgives=True))

    def decide(self, bad: Sequence[int] = (), good: Sequence[int] = (), X: Any = None) -> Self:
        """Return a fit in which you decide on groups, without searching again.

        Groups keep their numbers. The tables are those of the rows that are trusted now. Decisions
        are kept in the model file, and new rows are judged by them.

        Parameters
        ----------
        bad, good : numbers of groups, as in `groups_`, whose rows are bad, or belong to the
            population.
        X : the rows of `fit`, to judge them all again; without it, the tables come from the sums
            that were kept, and only rows that were distrusted are judged again. Needed where
            values are missing, or rows are known: they are inferred and judged again.
        """
        self._fitted()
        new = copy(self)
        decide_again(new, bad, good, X)
        return new

    def repair(self, X: Any, probability: float = 0.9) -> Repaired:
        """Return a table with its wrong cells mended, and a frame of the changes.

        If the fit found no wrong cells, nothing is changed. X itself is not touched.

        Parameters
        ----------
        X : a frame of pandas, polars or Arrow, or an array of codes.
        probability : least, that the likely state is the true one, for a cell to be changed.
        """
        from robustbn.estimator.mending import repair_table

        self._fitted()
        return repair_table(self, X, probability)

    def _add(self, X: Any, forgetting: float) -> None:
        update_fit(self, X, forgetting)

    def _describe_fit(self) -> dict[str, Any]:
        from robustbn.estimator.model_file import describe_fit

        result = self.result_
        plain, found = result.plain_network.probabilities, result.deeper.groups
        return describe_fit(result.learned, plain, found, result.calibration, result.doubt)

    def _restore(
        self, network: BayesianNetwork, reading: Reading, document: dict[str, Any]
    ) -> None:
        from robustbn.estimator.model_file import build_counted, build_fit

        build_counted(document, network)  # refuses counts of another network
        fit, beside, found = build_fit(document, network, reading.n_rows, self.kernels)
        self.result_ = build_result_of_file(self, network, beside, fit, reading, found)


def judge_rows(fit: RobustEstimator, X: Any) -> dict[str, Any]:
    """Return the columns of `fit.rows(X)`, whatever kind of frame would be made of them."""
    return frames.row_columns(fit.result_, fit._encode(X))


def side_of(weights: RowVector) -> Vector:
    """Return +1 for rows that are trusted, -1 for the others, 0 for those that were left out."""
    return np.where(np.isnan(weights), 0, np.where(weights < DOUBT, -1, 1))
