"""What leaves a fit: values, the trust in each row behind them, and how they came about."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import FoundCells
from robustbn._core.numbers import count
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import RowModel

ALL_TRUSTED = 1e-3  # share of the rows' weight: if less is distrusted, all rows are taken for good


class Status(StrEnum):
    """Why an oracle stopped, in the sentence that the user reads."""

    CLEAN = "The trusted rows vary no more than good rows do."
    BUDGET_SPENT = (
        "The removal limit was reached: twice the contamination was removed, and the remaining "
        "rows still vary more than good rows do. Either more rows are bad than contamination says "
        "(raise it), or good rows do not have the assumed covariance (see scale)."
    )
    STEPS_SPENT = (
        "The maximum number of steps was reached before the remaining rows looked clean. Raise "
        "the number of steps; if that does not help, good rows may not have the assumed covariance."
    )
    NO_PROGRESS = (
        "Further steps no longer improve the remaining rows, which still vary more than good rows "
        "do. Raise contamination, or try the method 'filter'."
    )
    NOT_ALL_SEEN = (
        "No excess variance was found, but the columns are so strongly correlated that not all "
        "directions could be examined. Decorrelate the columns, or use fewer of them."
    )
    NOT_TESTED = "This method does not test the remaining rows."
    NOT_SETTLED = (
        "The estimate had not converged at the last step. Raise the number of steps; if the rows "
        "lie on a line, the centre is not unique."
    )


@dataclass(frozen=True)
class Step:
    """What one step of an oracle saw and did.

    Parameters
    ----------
    number : of the step, from 0.
    top : largest eigenvalues of the weighted covariance before the step, largest first.
    threshold : what the largest may be for good rows.
    removed : share of the rows' weight that the step took away.
    wall_s : seconds the step took.
    """

    number: int
    top: tuple[float, ...]
    threshold: float
    removed: float
    wall_s: float


@dataclass(frozen=True)
class Round:
    """What one round of the robust fit saw and did.

    Parameters
    ----------
    number : of the round, from 0.
    action : what was done before looking.
    eigenvalues : the largest of the weighted, scaled covariance; good rows have about 1.
    threshold : what rows drawn from the current tables have, plus an allowance.
    removed : share of the rows' weight distrusted so far, repeated rows included.
    n_kinds : kinds of bad rows in the model so far.
    wall_s : seconds since the round before.
    is_accepted : False if it left more in excess than there was: then it was undone.
    """

    number: int
    action: str
    eigenvalues: tuple[float, ...]
    threshold: float
    removed: float
    n_kinds: int
    wall_s: float
    is_accepted: bool = True


@dataclass(frozen=True)
class Misfit:
    """How far the trusted rows are from rows of the network.

    Parameters
    ----------
    is_exact : whether the network describes them as well as can be told.
    nats : log-likelihood a row that classes of the good population explain and the network does
        not: at least so far is it from the population.
    n_classes : further classes that were found in the good population.
    top, limit : largest eigenvalue of the main class, and what rows drawn from its tables have.
    bottom, bottom_limit : the smallest, where 1 is what the tables say, and what drawn rows have; a
        missing edge moves both ends alike. NaN where the network is exact.
    """

    is_exact: bool
    nats: float
    n_classes: int
    top: float
    limit: float
    bottom: float = math.nan
    bottom_limit: float = math.nan


@dataclass(frozen=True)
class UnevenCopies:
    """A state whose rows are repeated more often than those of other states."""

    # node, state: the rows that have it
    node: str
    state: str
    # times, elsewhere: how often such a row appears on average, and others do
    times: float
    elsewhere: float


@dataclass(frozen=True)
class Repetition:
    """How rows are repeated that should appear once."""

    is_design: bool  # whether most of them are: resampled or upsampled rows
    is_counted: bool  # whether copies are counted as they are, and speak against no row
    share: float  # of the rows, that appear more than once
    divisor: int  # number of copies that all rows have, or a multiple of; 1 if there is none
    effect: float  # how many rows say as much as one
    # the state that is repeated most, if one is more than others
    uneven: UnevenCopies | None = None

    def say(self) -> str:
        """Say how rows are repeated; empty if there is nothing to say."""
        said = []
        if self.is_design:
            how = f"{self.share:.0%} of the rows expected once appear again"
            if self.divisor > 1:
                how = f"each appears {self.divisor} times or a multiple of it"
            said.append(f"Rows are repeated by design ({how}), so all copies are counted.")
        if self.uneven is not None:
            said.append(
                f"Rows with {self.uneven.node} = {self.uneven.state} appear "
                f"{self.uneven.times:.1f} times on average, while other rows appear "
                f"{self.uneven.elsewhere:.1f} times."
            )
        return " ".join(said)

    @property
    def advice(self) -> str:
        """What to do where the rows of one state have more copies than others; empty elsewhere."""
        is_odd = self.uneven is not None and not self.is_counted
        return "If the copies are intentional, set copies to 'count'." if is_odd else ""


@dataclass(frozen=True, eq=False)
class Verdict:
    """How rows are to be judged, learned from some of them."""

    model: RowModel  # what rows look like; it judges any row
    group_counts: Vector  # weight of each group on each cell, scaled to all rows; shape (M, K)
    chances: Vector  # probability of each group to be bad rows; shape (K,)
    rounds: tuple[Round, ...]  # what happened
    # top, threshold: the certificate: largest eigenvalue left, and what clean rows would have
    top: float
    threshold: float
    stopped: str  # why the rounds ended, in a few words; empty when the rows look clean
    # the rows that it was learned from, and the trust in each
    judged: tuple[Rows | None, RowVector | None] = (None, None)
    misfit: Misfit | None = None  # how well the network fits; None if it was taken for exact
    repetition: Repetition | None = None  # how rows are repeated; None if that changes nothing

    def trust(self, rows: Rows) -> RowVector:
        """Return the trust in each row, not to be written to; where it is known, at no cost."""
        known, trust = self.judged
        return self.model.trust(rows) if trust is None or rows is not known else trust


@dataclass(frozen=True, eq=False)
class Inferred:
    """What was inferred of values that are missing, and how (`on_missing="use"`).

    Parameters
    ----------
    observed_counts : weight of the rows that show the whole family of each cell; shape (M,).
    missing : for each node, the share of its table's weight that is inferred; shape (d,).
    n_steps, is_converged : steps of expectation-maximisation, and whether they have settled.
    left : how far the tables would still go, in their standard errors.
    n_sampled : weight of the questions that were too large to be answered exactly: answered by
        sampling.
    n_impossible : weight of the questions that the tables say cannot be.
    """

    observed_counts: Vector
    missing: Vector
    n_steps: int
    is_converged: bool
    left: float
    n_sampled: float = 0.0
    n_impossible: float = 0.0

    def __str__(self) -> str:
        share = 100 * float(self.missing.mean())
        most = 100 * float(self.missing.max(initial=0.0))
        text = (
            f"{share:.1f} % of the values that the tables need are missing (up to {most:.1f} % "
            f"for one table) and were inferred in {count(self.n_steps, 'step')}"
        )
        if not self.is_converged:
            text += f"; EM stopped before converging ({self.left:.2g} standard errors remaining)"
        if self.n_sampled:
            rows = count(self.n_sampled, "row misses", "rows miss")
            text += f"; {rows} too many values at once; their missing values were sampled"
        return text + "."


@dataclass(frozen=True, eq=False)
class Recorded:
    """Weight of the rows that record a state, or all states of a configuration.

    A row in which a value is missing counts wherever its other values are enough to tell.
    """

    # of all rows, and of the trusted ones, for each state of each node; shape (S, 2)
    states: Vector
    configurations: Vector  # the same for each configuration; shape (m, 2)


@dataclass(frozen=True, eq=False)
class Calibration:
    """How much like rows of mixed columns good rows are, by which new ones are judged."""

    # cards, families: of the network by which rows are judged, as in `Layout`; a missing value is
    # a state where the rows of the fit have some
    cards: tuple[int, ...]
    families: tuple[tuple[int, ...], ...]
    counts: Vector  # of good rows, in each of its cells
    # mean, spread, skew: of that measure among good rows
    mean: float
    spread: float
    skew: float
    n_rows: float  # rows that this is known from
    mixed: float  # its mean among rows of mixed columns
    # times that stretches of good rows vary as much as independent rows would: the measure, the
    # tables of the nodes, all tables together, the frequencies of the nodes' states; shape
    # (2 d + 2,). Files of releases that did not compare the last ones have (d + 2,).
    inflation: Vector


@dataclass(frozen=True)
class Limit:
    """A number beyond which few numbers of the fit are."""

    at: float
    is_upper: bool
    n_beyond: int
    is_far: bool  # whether a number beyond it is far from all ordinary ones


@dataclass(frozen=True)
class UsualNumbers:
    """Where the numbers of a node were in the fit."""

    n_rows: int  # that this is known from
    # low, high: the range of the ordinary numbers
    low: float
    high: float
    limits: tuple[Limit, ...]


@dataclass(frozen=True, eq=False)
class RobustFit:
    """What a robust fit found."""

    counts: Vector  # weight of the trusted rows that touch each cell; shape (M,)
    plain_counts: Vector  # the same with every row trusted
    # trust in each row, from 0 to 1; shape (N,), or None if nobody holds it
    weights: RowVector | None
    # n_rows, n_trusted: weight of all rows, and of the trusted ones
    n_rows: float
    n_trusted: float
    model: RowModel  # how any row is judged
    group_counts: Vector  # weight of each group of the model on each cell; shape (M, K)
    chances: Vector  # probability of each group to be bad rows; shape (K,)
    # rounds, converged, status: what happened, whether it settled, and why it stopped
    rounds: tuple[Round, ...]
    converged: bool
    status: str
    misfit: Misfit | None = None  # how well the network fits; None if it was taken for exact
    # what was inferred of values that are missing; None if nothing was
    inferred: Inferred | None = None
    repetition: Repetition | None = None  # how rows are repeated; None if that changes nothing
    unit: float = 1.0  # weight that stands for one row
    # how many rows record each state; None if the counts say it: no value is missing
    recorded: Recorded | None = None
    # what explains wrong cells, and which they are; None if there is nothing to explain
    cells: FoundCells | None = None

    @property
    def counts_in_rows(self) -> Vector:
        """The counts as so many rows, whatever the scale of their weights; shape (M,)."""
        return self.counts / self.unit

    @property
    def plain_counts_in_rows(self) -> Vector:
        """The same with every row trusted."""
        return self.plain_counts / self.unit

    @property
    def shown_counts(self) -> Vector:
        """Trusted rows that show the whole family of each cell, none of it inferred; shape (M,)."""
        shown = self.counts if self.inferred is None else self.inferred.observed_counts
        return shown / self.unit

    @property
    def written_counts(self) -> Vector:
        """The same of rows as they were written, wrong values among them; shape (M,)."""
        # New rows have wrong values, too. Known where every row is trusted; elsewhere wrong values
        # count as what they should be.
        is_corrected = self.cells is not None and self.removed < ALL_TRUSTED
        return self.plain_counts / self.unit if is_corrected else self.shown_counts

    @property
    def effect(self) -> float:
        """How many rows say as much as one."""
        return 1.0 if self.repetition is None else self.repetition.effect

    @property
    def removed(self) -> float:
        """Share of the rows' weight that is distrusted."""
        return max(0.0, 1 - self.n_trusted / self.n_rows)

    def with_numbers(self, first: NDArray[np.int64]) -> RobustFit:
        """Return the fit with other numbers for the rows that are repeated."""
        return replace(
            self, model=replace(self.model, repeats=replace(self.model.repeats, first=first))
        )


@dataclass(frozen=True, eq=False)
class OracleResult:
    """A robust mean and the trust in each row; see `MeanResult`."""

    mean: Vector
    weights: RowVector
    removed: float  # share of the rows' weight that was taken away
    converged: bool
    status: str
    history: tuple[Step, ...] = ()


# (vectors, eps, *, beta, gamma, random_state): A_mean. eps is the contamination; beta and gamma are
# the stability of the good rows (Definition stability), and raise the threshold.
Oracle = Callable[..., OracleResult]


@dataclass(frozen=True, eq=False)
class MeanResult:
    """What `robust_mean` returns.

    Parameters
    ----------
    mean : array of shape (dim,)
        The mean, in the units of the columns.
    weights : array of shape (N,)
        The trust in each row, from 0 to 1.
    contamination : float
        The estimated share of bad rows: the share of the weight that was removed.
    converged : bool
        Whether the method reached its goal.
    status : str
        Why it stopped, and what to do if it did not converge.
    history : tuple of Step, default=()
        The steps.

    Examples
    --------
    >>> import numpy as np
    >>> from robustbn.mean import robust_mean
    >>> X = np.random.default_rng(0).normal(size=(2000, 20))
    >>> X[:200] += 3.0
    >>> found = robust_mean(X)
    >>> found.mean.shape, found.converged, bool(found.weights[:200].mean() < 0.1)
    ((20,), True, True)
    """

    mean: Vector
    weights: RowVector
    contamination: float
    converged: bool
    status: str
    history: tuple[Step, ...] = ()


@dataclass(frozen=True)
class RepeatedRow:
    """A row that appears more often than the network allows.

    Parameters
    ----------
    row : number of one of its copies.
    states : its state at every node.
    seen, expected : how often it appears, and how often it should among good rows.
    """

    row: int
    states: dict[str, Hashable]
    seen: int
    expected: float


@dataclass(frozen=True)
class Vanishing:
    """A group of rows of which hardly any is trusted: nearly all that is known of it is distrusted.

    Parameters
    ----------
    states : what the rows of the group have in common.
    n_rows, n_trusted : weight of its rows, and what of it is trusted.
    """

    states: dict[str, Hashable]
    n_rows: float
    n_trusted: float

    def __str__(self) -> str:
        having = ", ".join(f"{node} = {state}" for node, state in self.states.items())
        gone = self.n_rows - self.n_trusted
        which = "all" if gone > self.n_rows - 0.5 else f"{gone:,.0f} of"
        return f"{which} {count(self.n_rows, 'row')} with {having} are distrusted"


@dataclass(frozen=True, eq=False)
class Shift:
    """How far the robust tables are from the plain ones.

    Parameters
    ----------
    delta : robust minus plain probability of each cell; shape (M,).
    z : the same in standard errors of the plain estimate; shape (M,).
    """

    delta: Vector
    z: Vector
