"""Tables as if the bad rows were not there."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from robustbn._core.config import RobustConfig, TableConfig
from robustbn._core.expansion import (
    normalise_counts,
    standard_errors,
)
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import BadKind, JudgedRows, RepeatedRow, Round, Shift, Trust
from robustbn._learn.conductor import (
    RobustFit,
    fit_robustly,
    fit_with_oracle,
)
from robustbn._rows.memory import RowsInMemory
from robustbn._show.diagnosis import Diagnosis, diagnose
from robustbn._show.reasons import Explainer
from robustbn._show.words import describe_kinds, describe_repeats
from robustbn._tables.frames import build_frame
from robustbn._tables.table import Reading, as_weights
from robustbn.estimator.base import TableEstimator
from robustbn.exceptions import (
    ConvergenceWarning,
    DataError,
    NotFittedError,
    SmallSampleWarning,
)
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn._show.fitted import Plots


class RobustEstimator(TableEstimator):
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
    method : how rows are judged: "filter" (the default), the oracles "que" (the paper's
        quantum-entropy scores) and "descent" (projected gradient), or a baseline to compare with:
        "none" (counting), "trimmed" (by likelihood), "one_shot", "ransac", "geometric_median",
        "coordinate_median".
    schedule : "joint" (tables, scale and weights are updated together) or "paper" (Algorithm 1
        with its fixed scale and its schedule of thresholds; needs `contamination`).
    polish : whether bad rows are explained by networks of their own; otherwise filters alone judge.
    prior, pseudo_count, equivalent_sample_size, on_unknown, on_missing, bins : as in
        `MaximumLikelihoodEstimator`.
    sample_rows : how many rows to learn the verdict from; by default 200 a free parameter of the
        network, at least 50,000. The verdict is applied to all rows.
    verify : whether all rows are looked at once more as they are judged, and filtered on if they
        do not look clean; a few more passes.
    on_error : "raise", or "skip" to leave out a file that cannot be read, which is told in
        `reading_`. This and the next three are for tables that are read in stretches, and make it
        so.
    cache : a folder for packed rows, a few bytes each, so that a large table is parsed once only.
    checkpoint : a folder from which a run that was ended goes on.
    weights_to : a file or folder to which the trust in each row is written.
    random_state : seed; the same seed gives the same result, whatever the number of threads.
    n_threads : as in `MaximumLikelihoodEstimator`.
    backend : as there; "dask" to work on a cluster, as Dask frames always are; or "stream" to read
        a table in stretches, as is done anyway when its codes would take a quarter of the memory.
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

    contamination_: float
    row_weights_: RowVector
    kinds_: list[BadKind]
    repeats_: list[RepeatedRow]
    plain_network_: BayesianNetwork
    shift_: Shift
    history_: list[Round]
    converged_: bool
    status_: str
    offset_: float
    fit_seconds_: float
    _on_progress: Callable[[str, int, int], None] | None = None  # told of every part likewise
    _on_round: Callable[[Round], None] | None = None  # told of every round in place of `verbose`
    _table_config: TableConfig | None = None  # how a stream is read, if more is to be said of it

    def __init__(
        self,
        network: BayesianNetwork | None = None,
        contamination: float | str = "auto",
        method: str = "filter",
        *,
        schedule: str = "joint",
        polish: bool = True,
        prior: str | None = None,
        pseudo_count: float = 1.0,
        equivalent_sample_size: float = 10.0,
        on_unknown: str = "error",
        on_missing: str = "error",
        bins: Any = None,
        sample_rows: int | None = None,
        verify: bool = False,
        on_error: str = "raise",
        cache: Any = None,
        checkpoint: Any = None,
        weights_to: Any = None,
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
        self.on_unknown = on_unknown
        self.on_missing = on_missing
        self.bins = bins
        self.sample_rows = sample_rows
        self.verify = verify
        self.on_error = on_error
        self.cache = cache
        self.checkpoint = checkpoint
        self.weights_to = weights_to
        self.random_state = random_state
        self.n_threads = n_threads
        self.backend = backend
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the rows of a table.

        Parameters
        ----------
        X : any table that `read_table` takes, or its result.
        sample_weight : one finite, non-negative weight a row; all 1 by default.
        """
        config = RobustConfig(
            contamination=self.contamination,
            method=self.method,
            schedule=self.schedule,
            polish=self.polish,
            sample_rows=self.sample_rows,
            verify=self.verify,
            seed=_seed(self.random_state),
            n_threads=self.n_threads,
            backend=self._kernels,
        )
        tell = self._on_round or (self._tell if self.verbose else (lambda _: None))
        is_default = self.method == "filter" and self.schedule == "joint"
        if sample_weight is not None and not is_default:
            raise ValueError(
                "sample_weight is understood by method='filter' with schedule='joint' only."
            )
        place = self._lives(X)
        if not is_default and place != "here":
            raise ValueError(
                "A table that is not in memory is fitted by method='filter' with schedule='joint'."
            )
        start = time.perf_counter()
        with threadpool_limits(limits=1, user_api="blas"):  # its idle threads spin on our cores
            if place == "here":
                network, fit, reading, judged = self._fit_here(X, sample_weight, config, tell)
            else:
                network, fit, reading, judged = self._fit_elsewhere(
                    X, place, sample_weight, config, tell
                )
        self.fit_seconds_ = time.perf_counter() - start
        self._note_table(X, network, reading)
        self._store(network, fit, judged)
        self._warn_if_unsure()
        return self

    def fit_predict(self, X: Any, y: None = None, **settings: Any) -> Vector:
        """Fit, and return +1 for rows that are trusted, -1 for the others, 0 if left out."""
        self.fit(X, **settings)
        if not hasattr(self, "row_weights_"):
            raise DataError(
                "The table was fitted, but it has too many rows to return a number for each: call "
                "predict on pieces of it, or fit with weights_to='...'."
            )
        return _verdict(self.row_weights_)

    def _lives(self, X: Any) -> str:
        """Return where rows are worked on: "here", in a "stream", or on "dask"."""
        if self.backend == "dask" or type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
            return "dask"
        asked = (self.cache, self.checkpoint, self.weights_to)
        if self.backend == "stream" or self.on_error != "raise" or asked != (None, None, None):
            return "stream"
        is_elsewhere = isinstance(X, str | PathLike) or callable(X) or hasattr(X, "count_rows")
        is_elsewhere = is_elsewhere or "duckdb" in type(X).__module__
        network = self._given_network()
        if not is_elsewhere or network is None:
            return "here"
        from robustbn._learn.places import is_large

        return "stream" if is_large(X, network) else "here"

    def _fit_here(
        self,
        X: Any,
        sample_weight: ArrayLike | None,
        config: RobustConfig,
        tell: Callable[[Round], None],
    ) -> tuple[BayesianNetwork, RobustFit, Reading, JudgedRows]:
        """Fit to rows in memory; those without weight are judged as rows never seen."""
        network, table = self._read(X)
        codes, given = table.codes, as_weights(sample_weight, table)
        data = RowsInMemory(network, codes, self._kernels, self.n_threads)
        if self.method != "filter" or self.schedule != "joint":
            fit = fit_with_oracle(network, codes, config, tell)
        elif given is None or given.all():
            fit = fit_robustly(network, data, given, config, tell)
        else:
            has_weight = np.flatnonzero(given)
            some = replace(data, codes=codes[has_weight])
            fit = fit_robustly(network, some, given[has_weight], config, tell)
            first = has_weight[fit.repeats.first]
            weights = fit.weigh(data.all_rows())
            fit = replace(fit, weights=weights, repeats=replace(fit.repeats, first=first))
        trust = np.ones(len(codes), np.float32) if fit.weights is None else fit.weights
        doubtful = np.flatnonzero(trust < 0.5)
        numbers = doubtful
        if table.kept is not None:  # rows keep the numbers that they have in the table
            numbers, first = table.kept[doubtful], table.kept[fit.repeats.first]
            fit = replace(fit, repeats=replace(fit.repeats, first=first))
        judged = JudgedRows(
            table.spread(trust), Trust.of(trust), numbers, codes[doubtful], trust[doubtful]
        )
        return network, fit, table.reading, judged

    def _fit_elsewhere(
        self,
        X: Any,
        place: str,
        sample_weight: ArrayLike | None,
        config: RobustConfig,
        tell: Callable[[Round], None],
    ) -> tuple[BayesianNetwork, RobustFit, Reading, JudgedRows]:
        """Fit to rows that are read in stretches, or that live on a cluster."""
        from robustbn._learn.places import StreamConfig, fit_on_dask, fit_stream

        network = self._given_network()
        if network is None:
            raise ValueError("A table that is not in memory needs a network: give network=...")
        said, self._table_config = self._table_config, None  # of this fit alone
        reading = said or TableConfig(self.on_unknown, self.on_missing, self.bins)
        if place == "dask":
            fit, found, judged = fit_on_dask(
                network, X, sample_weight, config, reading, tell, self._progress
            )
        else:
            if sample_weight is not None:
                raise DataError("sample_weight is for rows in memory; a stream takes none.")
            is_seeded = self.random_state is not None
            where = StreamConfig(
                self.on_error, self.cache, self.checkpoint, self.weights_to, is_seeded
            )
            fit, found, judged = fit_stream(
                network, X, config, reading, where, tell, self._progress
            )
        return network, fit, found, judged

    def weights(self, X: Any) -> RowVector:
        """Return the trust in each row, seen in `fit` or not, from 0 to 1; shape (N,).

        Rows that are left out because of missing or unknown values get NaN.
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self._fit.weigh(self._load(table)))

    def score_samples(self, X: Any) -> RowVector:
        """Return how normal each row is: the log of the trust in it; shape (N,).

        Higher is more normal. Rows that nothing speaks against have the highest score, near 0. It
        is not a likelihood: a rare row that the network allows is normal. (`score` is the mean
        log-likelihood.)
        """
        self._fitted()
        table = self._encode(X)
        return table.spread(self._fit.score(self._load(table)))

    def decision_function(self, X: Any) -> RowVector:
        """Return `score_samples(X) - offset_`: negative for rows that are distrusted."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Vector:
        """Return +1 for rows that are trusted, -1 for the others, 0 if left out; shape (N,)."""
        return _verdict(self.weights(X))

    def rows(self, X: Any = None) -> Any:
        """Return a frame with a line a row: row, weight, is_suspicious, why.

        The frame is of the kind that the table was. `why` names the cells that speak most against
        a row; it is empty for rows that are trusted, and of a table read in stretches for those
        that were not drawn. Rows that were left out have weight NaN.

        Parameters
        ----------
        X : rows to judge; by default those of `fit`.
        """
        return build_frame(*self._judge(X))

    def _judge(self, X: Any) -> tuple[dict[str, Any], str]:
        """Return the columns of `rows`, and the kind of frame to make of them."""
        self._fitted()
        if X is None and not hasattr(self, "row_weights_"):
            raise NotFittedError(
                "A model from a file does not hold the rows it was fitted to, nor does one of too "
                "many rows: call rows(X), or fit with weights_to='...'."
            )
        if X is None:
            weights, kind = self.row_weights_, self.reading_.kind
            doubtful, codes = self._judged.numbers, self._judged.codes
        else:
            table = self._encode(X)
            judged = self._fit.weigh(self._load(table))
            is_bad = np.flatnonzero(judged < 0.5)
            weights, codes, kind = table.spread(judged), table.codes[is_bad], table.reading.kind
            doubtful = is_bad if table.kept is None else table.kept[is_bad]
        why = np.full(len(weights), "", object)
        why[doubtful] = [reason.text for reason in self.explainer_.explain(codes)]
        why[np.isnan(weights)] = "left out: a value is missing or unknown"
        columns = {
            "row": np.arange(len(weights)),
            "weight": weights,
            "is_suspicious": weights < 0.5,
            "why": why,
        }
        return columns, kind

    def moved(self) -> Any:
        """Return a frame with a line a node: how far its table moved from counting, most first.

        `moved` is `sum over configurations a of P(a) TV(robust[a], plain[a])`: the share of rows in
        which the node would have another state. `error` is what sampling alone would make of it,
        and `n_eff` the weight of the trusted rows there are for a configuration on average.
        The frame is of the kind that the table was.
        """
        from robustbn._show.page.content import measure_moves  # its room is not on the light path

        self._fitted()
        moves = measure_moves(
            self.network_.layout,
            self.network_.probabilities,
            self.plain_network_.probabilities,
            self.counts_,
            self._fit.plain_counts,
        )
        order = np.argsort(-moves.moved, kind="stable")
        return build_frame(
            {
                "node": [self.network_.nodes[i] for i in order],
                "moved": moves.moved[order],
                "error": moves.error[order],
                "is_significant": moves.is_significant[order],
                "n_eff": moves.rows_per_configuration[order],
            },
            self.reading_.kind,
        )

    def summary(self) -> Any:
        """Return a frame with a line a headline figure: figure, value, meaning.

        The figures are rows, rows_left_out, rows_distrusted, contamination, effective_rows,
        largest_move, tables_moved, kinds, repeated_rows, rounds, converged (1 or 0) and seconds.
        The frame is of the kind that the table was. `moved()` has a line a node, `rows()` a line a
        row.
        """
        from robustbn._show.fitted import summary_columns  # its room is not on the light path

        self._fitted()
        return build_frame(summary_columns(self), self.reading_.kind)

    def report(
        self,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        command: str | None = None,
        rows: bool = True,
        max_rows: int = 2000,
    ) -> str | None:
        """Write the report, one HTML page that needs nothing else; without a path, return it.

        Parameters
        ----------
        path : the file; it is there as a whole or not at all.
        title : of the page; by default the name of the table and how many rows it has.
        command : what repeats the fit; by default the call in Python.
        rows : whether single rows may be shown; False for private data.
        max_rows : how many of them at the most, least trusted first.
        """
        from robustbn._networks.files import encode, write_bytes
        from robustbn._show.fitted import report_page

        self._fitted()
        page = report_page(self, title=title, command=command, rows=rows, max_rows=max_rows)
        if path is None:
            return page
        write_bytes(encode(page, str(path)), Path(path))
        return None

    @property
    def plot(self) -> Plots:
        """Figures of the fit: `network()`, `tables(node)`, `rounds()`, `rows()`."""
        from robustbn._show.fitted import Plots

        self._fitted()
        return Plots(self)

    def _repr_html_(self) -> str:
        from robustbn._show.fitted import fitted_html

        return fitted_html(self) if hasattr(self, "network_") else super()._repr_html_()

    def diagnose(self) -> Diagnosis:
        """Return what the paper asks of network and rows and whether it holds; print the result."""
        network = self._fitted()
        is_auto = isinstance(self.contamination, str)
        eps = self.contamination_ if is_auto else float(self.contamination)
        return diagnose(network.layout, self.counts_, eps)

    @property
    def explainer_(self) -> Explainer:
        """What says why a row is distrusted."""
        fit = self._fit
        return Explainer(self._fitted(), fit.mixture, fit.filters, fit.repeats, fit.repeated)

    def _store(self, network: BayesianNetwork, fit: RobustFit, judged: JudgedRows) -> None:
        """Set the tables, and what is known of the rows."""
        self._fit, self._judged = fit, judged
        pseudo_counts = self._pseudo_counts(network)
        q = normalise_counts(network.layout, fit.counts, pseudo_counts)
        plain = normalise_counts(network.layout, fit.plain_counts, pseudo_counts)
        self._set_tables(network, q, fit.counts, bool(np.any(pseudo_counts)))
        self._describe(fit, plain)
        if judged.weights is not None:
            self.row_weights_ = judged.weights
        elif hasattr(self, "row_weights_"):
            del self.row_weights_

    def _describe(self, fit: RobustFit, plain: Vector) -> None:
        """Set what can be said without the rows."""
        network = self.network_
        q, layout = network.probabilities, network.layout
        self.plain_network_ = network.with_cpts(plain)
        self.shift_ = Shift(
            q - plain, (q - plain) / standard_errors(layout, fit.plain_counts, plain)
        )
        self.offset_ = float(np.log(0.5))
        self.contamination_ = fit.removed
        self.kinds_ = describe_kinds(network, fit.kind_counts, q, fit.n_rows)
        self.repeats_ = describe_repeats(network, fit.repeated, fit.repeats)
        self.history_ = list(fit.rounds)
        self.converged_, self.status_ = fit.converged, fit.status

    def _describe_fit(self) -> dict[str, Any]:
        from robustbn.estimator.model_file import describe_fit

        return describe_fit(self._fit, self.plain_network_.probabilities)

    def _restore(self, network: BayesianNetwork, document: dict[str, Any]) -> None:
        from robustbn.estimator.model_file import build_fit

        self._fit, plain = build_fit(document, network, self._kernels)
        super()._restore(network, document)
        self._describe(self._fit, plain)

    def _warn_if_unsure(self) -> None:
        if not self.converged_:
            warnings.warn(self.status_, ConvergenceWarning, stacklevel=3)
        n, n_free = self.reading_.n_rows, self.network_.layout.n_free
        if n < 20 * n_free:
            warnings.warn(
                f"{n:,} rows are few for a network with {n_free:,} free parameters: sampling noise "
                "hides all but gross corruption. Something like "
                f"{self.network_.n_configurations * 100:,} rows would show 10 % of bad rows; with "
                "fewer, read the tables with care, or use a simpler network.",
                SmallSampleWarning,
                stacklevel=3,
            )

    def _progress(self, what: str, done: int, total: int) -> None:
        """Tell how many of a table's parts are done."""
        if self._on_progress is not None:
            self._on_progress(what, done, total)
        elif self.verbose and total > 1:
            print(f"{what}: {done} of {total} files", file=sys.stderr)

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


def _verdict(weights: RowVector) -> Vector:
    """Return +1 for rows that are trusted, -1 for the others, 0 for those that were left out."""
    return np.where(np.isnan(weights), 0, np.where(weights < 0.5, -1, 1))


def _seed(random_state: Any) -> int:
    """Return a seed from whatever scikit-learn takes for one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(np.random.default_rng(random_state).integers(2**63))
