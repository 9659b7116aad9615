"""`RobustEstimator`: learn tables from rows that cannot all be trusted."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.calls import naming_the_nearest
from robustbn._core.config import Streaming
from robustbn._core.docstrings import explained_by
from robustbn._core.findings import Finding
from robustbn._core.groups import Group
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import Inferred, Misfit, RepeatedRow, Round, Shift, Vanishing
from robustbn._core.trust import DOUBT
from robustbn._rows.draw import sample
from robustbn._show import frames
from robustbn._show.explain import Explainer
from robustbn._show.progress import showing_progress
from robustbn._show.result import FitResult
from robustbn._tables.coded import Reading
from robustbn._tables.table import read_table
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
    """Return a view with the type of the attribute that it shows."""
    return _Found(path)


@explained_by(read_table, sample)
class RobustEstimator(ShownEstimator):
    """Learn the tables of a network from rows that cannot all be trusted.

    An unknown share of the rows may be wrong in any way. The fit judges rows by the spectrum of
    their expansion (Cheng and Lin, ICLR 2021), by how often they are repeated, and by a model of
    the bad rows. The tables are the counts of the rows, weighted by the trust in each row.

    Time is O(N d): a few passes over all rows, and rounds on a sample whose size depends only on
    the network. Memory beside the rows: about one byte for every few nodes of a row, and 30 bytes
    per row.

    The settings, in groups:

    - what to fit: `network`
    - how rows are judged: `contamination`, `method`, `schedule`, `polish`, `misfit`, `copies`,
      `cells`
    - what is added to the counts: `prior`, `pseudo_count`, `equivalent_sample_size`,
      `equivalent_rows`
    - how values are read: `on_unknown`, `on_missing`, `bins`, `missing_is_evidence`
    - how the work is done: `sample_rows`, `streaming`, `random_state`, `n_threads`, `kernels`,
      `place`, `verbose`

    Parameters
    ----------
    network : BayesianNetwork, default=None
        The structure to fit; its own tables, if any, are ignored. Without a network, every column
        becomes a node without edges, with the states found in it.
    contamination : float or "auto", default="auto"
        The largest share of bad rows to expect, below 0.5; up to twice that share may be
        distrusted. "auto" estimates it.
    method : str, default="filter"
        How bad rows are found. "filter" is the recommended method: filters, and a model of the bad
        rows. "spectral" (a spectral filter), "que" (the paper's quantum-entropy scores) and
        "descent" (projected gradient) are robust means as in the paper. "none" (counting),
        "trimmed" (by likelihood), "one_shot", "ransac", "geometric_median" and "coordinate_median"
        are baselines to compare with.
    schedule : {"joint", "paper"}, default="joint"
        "joint" updates tables, scale and weights together. "paper" runs Algorithm 1 of the paper,
        with its fixed scale and its thresholds, and needs a number for `contamination`.
    polish : bool, default=True
        Whether groups of bad rows are described by networks of their own. If False, the filters
        alone judge the rows.
    misfit : {"allow", "none"}, default="allow"
        "allow" accepts that the network is an approximation, and separates what it misses from bad
        rows. "none" assumes that good rows come from exactly this network, as the paper does.
    copies : {"auto", "count", "distrust"}, default="auto"
        How to treat rows that appear more often than they should. "auto" distrusts the copies of a
        few rows, but keeps repeated rows if most rows repeat, as in a bootstrap sample; they then
        count as rows, but not as more evidence. "count" never distrusts a row because of its
        copies. "distrust" always does.
    cells : {"find", "trust"}, default="find"
        "find" looks for single wrong cells in good rows and counts their most likely true values.
        "trust" counts every cell of a trusted row as it is.
    prior : BayesianNetwork, str, float or None, default=None
        What is added to the counts. None or "none" adds nothing (maximum likelihood); "laplace"
        adds `pseudo_count` to every cell; "bdeu" spreads `equivalent_sample_size` rows evenly over
        every table; a number is added to every cell. A `BayesianNetwork` with the same nodes,
        parents and states gives an expert's tables, or last year's; nothing is added where its
        probabilities are NaN.
    pseudo_count : float, default=1.0
        What the prior "laplace" adds to every cell.
    equivalent_sample_size : float, default=10.0
        How many rows the prior "bdeu" is worth.
    equivalent_rows : float or dict, default=50.0
        How many rows an expert's tables are worth in each configuration; fewer are added where the
        rows contradict the expert (see `expert_tables`). A dict maps nodes to numbers, or to arrays
        with one number per configuration, in the shape of the parents' states; nodes that it does
        not name get 50.
    missing_is_evidence : bool, default=False
        Whether the pattern of missing values counts as evidence about a row. It is off because
        genuine groups differ in what they leave out. If True, `network_` has one more node, named
        "... is missing", for every column with missing values.
    sample_rows : int or None, default=None
        How many rows the judgement is learned from; it is then applied to all rows. By default 200
        per free parameter of the network, and at least 50,000.
    streaming : Streaming or None, default=None
        What to keep and write while a table is streamed. Giving a `Streaming` makes the fit stream
        the table.
    random_state : int, RandomState, Generator or None, default=None
        The seed. The same seed gives the same result for any number of threads.
    place : {"memory", "stream", "dask"} or None, default=None
        Where the rows are processed. By default in memory, in a stream if the table would take more
        than a quarter of the memory, and on Dask for Dask frames.
    verbose : bool or None, default=None
        True prints every round on standard error, False prints nothing. By default a fit that takes
        more than two seconds shows its progress on standard error if that is a terminal.

    Attributes
    ----------
    result_ : FitResult
        Everything that was found, as one frozen value; the other attributes are views of it.
    findings_ : list of Finding
        What you should know about the table, the most serious first.
    network_ : BayesianNetwork
        The network with its learned tables.
    contamination_ : float
        The share of the rows' weight that is distrusted.
    row_weights_ : array of shape (N,)
        The trust in each row of the table, from 0 to 1; NaN for rows that were left out.
    kinds_ : list of Group
        The groups of bad rows, the largest first. Distrusted rows that no group describes have
        number 0.
    groups_ : list of Group
        All groups that were found, good or bad, the one that matters most first.
    repeats_ : list of RepeatedRow
        The 100 rows that most exceed the number of copies that the network allows.
    plain_network_ : BayesianNetwork
        The network with the tables that counting gives, for comparison.
    shift_ : Shift
        The robust minus the counted estimate of each cell, and its z-score.
    history_ : tuple of Round
        The rounds: eigenvalues, threshold, weight removed, seconds.
    vanishing_ : list of Vanishing
        States and configurations with at least 0.5 % of the rows of which less than a fifth is
        trusted, the largest first.
    cells_ : frame
        The cells that are likely to be wrong, the most certain first.
    cell_rates_ : frame
        For each column, the share of wrong cells and the most frequent confusions.
    misfit_ : Misfit or None
        How far the trusted rows are from rows of the network; None if it was not measured.
    converged_ : bool
        Whether the trusted rows look clean.
    status_ : str
        A sentence that says what was found and why the fit stopped.
    counts_ : array of shape (M,)
        The weight of the trusted rows in each cell of the tables.
    inferred_ : Inferred or None
        What was inferred about missing values; None if none were missing.
    unseen_configurations_ : list of tuple
        The (node, states of its parents) that no trusted row shows; their tables come from the
        prior, or are uniform.
    reading_ : Reading
        How many rows were read, which were left out, and which columns were ignored.

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

    method: str
    schedule: str
    streaming: Streaming | None
    random_state: Any
    place: str | None

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
    _weights: RowVector | None = None  # sample weights of the rows of `fit`, if they are in memory
    _sides: NDArray[np.int8] | None = None  # of the known rows: good or bad

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
        verbose: bool | int | None = None,
    ) -> None:
        self._hold(locals())

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
        X : table-like
            A table in any form that `read_table` accepts, or the result of `read_table`.
        y : None, default=None
            Ignored; scikit-learn passes it.
        sample_weight : array-like or None, default=None
            One finite, non-negative weight per row; by default all are 1.
        known : array-like or None, default=None
            What you know about each row: "good" or 1, "bad" or -1, and "", None or 0 for the
            others. Rows similar to a known row are judged like it. `ask` suggests the rows to
            check.
        """
        fit_to(self, X, sample_weight, known)
        return self

    @explained_by(fit)
    def fit_predict(self, X: Any, y: None = None, **settings: Any) -> Vector:
        """Fit, and return +1 for trusted rows, -1 for distrusted ones, and 0 for rows left out.

        Parameters
        ----------
        **settings : dict
            Passed on to `fit`: `sample_weight` and `known`.
        """
        self.fit(X, **settings)
        weights = self.result_.row_weights
        if weights is None:
            raise DataError(
                "The table was fitted, but it has too many rows to return one value per row: call "
                "predict on parts of it, or fit with streaming=Streaming(weights_to='...')."
            )
        return side_of(weights)

    def weights(self, X: Any) -> RowVector:
        """Return the trust in each row, from 0 to 1; shape (N,).

        The rows need not be those of `fit`. Rows that are left out because of missing or unknown
        values get NaN.

        Parameters
        ----------
        X : table-like
            The rows to judge, in any form that `read_table` accepts.
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self.result_.learned.model.weigh(self._load(table)))

    @explained_by(weights)
    def score_samples(self, X: Any) -> RowVector:
        """Return how normal each row is: the logarithm of the trust in it; shape (N,).

        Higher is more normal, and rows without any evidence against them score near 0. It is not a
        likelihood: a rare row that the network allows is normal. For the mean log-likelihood, use
        `score`.
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self.result_.learned.model.log_weigh(self._load(table)))

    @explained_by(weights)
    def decision_function(self, X: Any) -> RowVector:
        """Return `score_samples(X) - offset_`, which is negative for distrusted rows."""
        return self.score_samples(X) - self.offset_

    @explained_by(weights)
    def predict(self, X: Any) -> Vector:
        """Return +1 for trusted rows, -1 for distrusted ones, 0 for rows left out; shape (N,)."""
        return side_of(self.weights(X))

    @explained_by(weights)
    def group_shares(self, X: Any) -> RowVector:
        """Return the probability that each row belongs to each group; shape (N, 1 + K).

        Column 0 is the main population, and column k is group number k of `groups_`. Rows that are
        left out because of missing or unknown values get NaN.
        """
        self._fitted()
        table, model = self._encode(X), self.result_.learned.model
        shares = model.judge(self._load(table))[0]
        return np.column_stack([table.spread(column) for column in shares.T])

    @explained_by(ShownEstimator.update)
    def check(self, X: Any) -> list[Finding]:
        """Return how new rows differ from the good rows of the fit, the most serious finding first.

        Rows may be less likely than good rows are, tables or the frequencies of states may have
        moved, numbers may be out of range, values may be missing more often, or values may not be
        states. A batch of good rows has no finding in 99 of 100 cases, whatever its size. The
        findings are "new rows differ", "rows", "wrong cells", "missing values" and "unreadable
        values".
        """
        from robustbn.estimator.checking import check_table

        self._fitted()
        return check_table(self, self._encode(X, forgives=True))

    def decide(self, bad: Sequence[int] = (), good: Sequence[int] = (), X: Any = None) -> Self:
        """Return a fit in which you decide which groups are good or bad, without searching again.

        Groups keep their numbers, and the tables are learned again from the rows that are then
        trusted. Decisions are stored in the model file and apply to new rows.

        Parameters
        ----------
        bad : list of int, default=()
            The numbers, as in `groups_`, of groups whose rows are bad.
        good : list of int, default=()
            The numbers of groups whose rows belong to the population.
        X : table-like or None, default=None
            The rows of `fit`, to judge all of them again. Without them, the tables come from stored
            sums, and only distrusted rows are judged again. They are needed if values are missing,
            cells are wrong or rows are known.
        """
        self._fitted()
        new = copy(self)
        with showing_progress("Learning the tables again", self.verbose):
            decide_again(new, bad, good, X)
        return new

    def repair(self, X: Any, probability: float = 0.9) -> Repaired:
        """Return a table with its wrong cells corrected, and a frame of the changes.

        If the fit found no wrong cells, nothing is changed. X itself is not modified.

        Parameters
        ----------
        X : frame or array
            A pandas, polars or Arrow frame, or an array of codes.
        probability : float, default=0.9
            A cell is changed if its likely state is true with at least this probability.
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
        known = result.calibration, result.doubt, result.deeper.numbers
        return describe_fit(result.learned, plain, found, *known)

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
