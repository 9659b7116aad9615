"""What a robust fit found: one frozen value behind all that is shown, written and compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import FoundCells
from robustbn._core.clues import Repeated, Scaled, Swap
from robustbn._core.config import is_same
from robustbn._core.documents import VERSIONS
from robustbn._core.expansion import standard_errors
from robustbn._core.findings import Finding
from robustbn._core.groups import FoundGroups, Group
from robustbn._core.layout import Codes
from robustbn._core.numbers import count
from robustbn._core.origins import ORIGIN_P_VALUE, ContextColumn, Difference, Origin
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.result import (
    Calibration,
    Inferred,
    Misfit,
    RepeatedRow,
    RobustFit,
    Round,
    Shift,
    UsualNumbers,
    Vanishing,
)
from robustbn._core.trust import TRUST_EDGES, JudgedRows
from robustbn._show.expert import ExpertView
from robustbn._show.explain import ExplainedRow, Explainer, explain_rows, name_singled
from robustbn._show.measures import (
    Diagnosis,
    MissingEdge,
    MovedTable,
    Moves,
    diagnose,
    measure_moves,
    moved_tables,
    show_pair,
)
from robustbn._show.posterior import Posterior, find_posterior, worth_of_rows
from robustbn._show.words import (
    describe_repeats,
    find_unseen,
    find_vanishing,
    say_few_rows,
    say_unseen,
)
from robustbn._tables.aside import Aside
from robustbn._tables.coded import Reading
from robustbn.exceptions import NotFittedError, SettingError
from robustbn.network import BayesianNetwork

ROWS_SHOWN = 2_000
MOST_EDGES = 5
EDGE_P_VALUE = 0.01  # largest of a missing edge that is named


class Deeper:
    """What takes a while to find: found when it is first asked for, and once.

    Here no rows are at hand: nothing is found but what is known already.
    """

    def __init__(self, load: Callable[..., Rows], **known: Any) -> None:
        """Keep what makes rows of codes and of their columns with holes; and what is known."""
        self.load = load
        vars(self).update(known)

    @cached_property
    def groups(self) -> FoundGroups:
        """The groups, those of bad rows with their causes, and the sums of each."""
        raise NotImplementedError

    @cached_property
    def swaps(self) -> list[Swap]:
        """The columns whose values were exchanged in some rows."""
        return []

    @cached_property
    def scaled(self) -> list[Scaled]:
        """The columns whose numbers are scaled in some rows."""
        return []

    @cached_property
    def repeated(self) -> list[Repeated]:
        """The repeated numbers that stand for missing values, or do not, by the rest of the row."""
        return []

    @cached_property
    def differences(self) -> list[Difference]:
        """The places at which tables are others than elsewhere, once swaps are undone."""
        return []

    @cached_property
    def calibration(self) -> Calibration | None:
        """How surprising good rows are; None if that is not known."""
        return None

    @cached_property
    def numbers(self) -> dict[str, UsualNumbers] | None:
        """Where the numbers of nodes were that are cut into intervals; None if not known."""
        return None

    @cached_property
    def doubt(self) -> Vector | None:
        """Sum of `w (1 - w)` of the trust in the rows of each configuration; None if not known."""
        return None

    @cached_property
    def origins(self) -> list[Origin]:
        """Where bad rows come from."""
        return self.find_origins(ORIGIN_P_VALUE)

    @cached_property
    def edges(self) -> list[Any]:
        """The pairs of nodes that depend on each other without an edge, by their numbers."""
        return self.find_edges(EDGE_P_VALUE)

    def find_origins(self, p_value: float) -> list[Origin]:
        """Return where bad rows come from, up to a p-value."""
        return []

    def find_edges(self, p_value: float) -> list[Any]:
        """Return the pairs that depend on each other without an edge, up to a p-value."""
        return []

    def find_questions(self, drawn: Any, offered: Any, n: int) -> list[Any]:
        """Return at most n rows to look at, of those `offered`, with the trust in them."""
        return []

    def find_places(self, numbers: NDArray[np.int64], but: str = "") -> list[Origin]:
        """Return where some rows come from, by their numbers and any column but one."""
        return []

    def list_context(self) -> list[ContextColumn]:
        """Return the groups of all rows, those of their numbers last; empty if not known."""
        return []


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """What a robust fit found, as `RobustEstimator.result_`.

    Everything that is shown, written or compared is made from this value.

    Parameters
    ----------
    network : BayesianNetwork
        The network with the tables from the trusted rows.
    plain_network : BayesianNetwork
        The network with the tables from all rows.
    learned : RobustFit
        How rows are judged, the sums behind the tables, and what each round found.
    reading : Reading
        How the table was read.
    deeper : Deeper
        What is computed only when it is first asked for.
    judged : JudgedRows or None, default=None
        What is known about the rows; None for a model from a file.
    aside : Aside, optional
        The columns of the rows that are not nodes.
    added : array of shape (M,) or float, default=0.0
        What was added to the counts.
    expert : ExpertView or None, default=None
        An expert's tables beside the learned ones; None without an expert.
    settings : mapping, optional
        The settings of the estimator that are always shown, and those that differ from the default.
    seconds : float, default=nan
        How long the fit took.
    title : str, default=''
        How the fit is called where it is shown.
    command : str, default=''
        The command that repeats the fit.
    rows_hidden : bool, default=False
        Whether single rows, and values of columns that are not nodes, are hidden.
    max_rows : int, default=2000
        The largest number of rows to show, the least trusted first.

    Examples
    --------
    >>> import robustbn
    >>> coins = robustbn.random_network("empty", 4, random_state=0)
    >>> rows = robustbn.sample(coins, 10_000, random_state=0)
    >>> found = robustbn.fit(coins, rows, random_state=0).result_
    >>> found.n_rows, found.n_distrusted, found.converged
    (10000, 0, True)
    """

    network: BayesianNetwork
    plain_network: BayesianNetwork
    learned: RobustFit
    reading: Reading
    deeper: Deeper
    judged: JudgedRows | None = None
    aside: Aside = field(default_factory=Aside)
    added: Vector | float = 0.0
    expert: ExpertView | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = math.nan
    title: str = ""
    command: str = ""
    rows_hidden: bool = False
    max_rows: int = ROWS_SHOWN

    def shown(
        self,
        *,
        title: str | None = None,
        command: str | None = None,
        rows: bool = True,
        max_rows: int = ROWS_SHOWN,
    ) -> FitResult:
        """Return the same result with other settings of what is shown; nothing is computed again.

        Parameters
        ----------
        title : str or None, default=None
            The title; by default that of the fit.
        command : str or None, default=None
            The command that repeats the fit; by default that of the fit.
        rows : bool, default=True
            Whether single rows, and values of columns that are not nodes, may be shown; False for
            private data.
        max_rows : int, default=2000
            The largest number of rows to show, the least trusted first.
        """
        if self.judged is None:
            raise NotFittedError(
                "A report needs the trust in the rows of the fit, which a model file does not "
                "contain. Fit the table again, or judge rows with rows(X)."
            )
        if max_rows < 0:
            raise SettingError(
                f"max_rows must be a whole number of at least 0; found {max_rows!r}."
            )
        return replace(
            self,
            title=self.title if title is None else title,
            command=self.command if command is None else command,
            rows_hidden=not rows,
            max_rows=max_rows,
        )

    def __repr__(self) -> str:
        return (
            f"FitResult({self.network!r}, {count(self.n_rows, 'row')}, "
            f"{self.contamination:.1%} of their weight distrusted)"
        )

    # --- the rows -----------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Rows that were read and judged."""
        return self.reading.n_rows

    @property
    def n_distrusted(self) -> int:
        """Rows with a weight below one half; of a model from a file, by the share of the weight."""
        if self.judged is None:
            return round(self.contamination * self.n_rows)
        return self.judged.trust.n_distrusted

    @property
    def effective_rows(self) -> float:
        """Effective sample size of the weights, `(sum w)^2 / sum w^2`; NaN if from a file."""
        return math.nan if self.judged is None else self.judged.trust.effective_rows

    @property
    def contamination(self) -> float:
        """Share of the rows' weight that is distrusted."""
        return self.learned.removed

    @property
    def row_weights(self) -> RowVector | None:
        """Trust in each row, NaN for those left out; None if nobody holds it."""
        return None if self.judged is None else self.judged.weights

    @property
    def weight_edges(self) -> Vector:
        """Ends of the intervals of the histogram of the weights; shape (B + 1,)."""
        return TRUST_EDGES

    @property
    def weight_counts(self) -> NDArray[np.int64]:
        """Rows with a weight in each of them; shape (B,)."""
        if self.judged is None:
            return np.zeros(len(TRUST_EDGES) - 1, np.int64)
        return self.judged.trust.counts.astype(np.int64)

    @cached_property
    def explainer(self) -> Explainer:
        """What says why a row is distrusted."""
        return Explainer(self.network, self.learned.model, self._name_kinds)

    @cached_property
    def rows(self) -> Sequence[ExplainedRow]:
        """The least trusted rows that may be shown, worst first, those that are alike as one."""
        return () if self.rows_hidden else explain_rows(self)

    @property
    def row_names(self) -> tuple[str, ...]:
        """The columns beside the network that rows keep, the one that names them first."""
        return () if self.rows_hidden else tuple(self.aside.names)

    @cached_property
    def kept_names(self) -> Mapping[int, tuple[str, ...]]:
        """What typical rows, the good ones beside them and repeated ones hold in these."""
        return {} if self.rows_hidden else name_singled(self)

    @property
    def dropped(self) -> dict[str, int]:
        """How many rows were left out while reading, by reason."""
        return self.reading.dropped

    @property
    def few_rows(self) -> str:
        """That there are too few rows for so many free parameters; empty if there are not."""
        n = round(self.n_rows / self.learned.effect)
        which = "different row" if self.learned.effect > 1 else "row"
        return say_few_rows(n, self.network.layout.n_free, which)

    # --- the tables ---------------------------------------------------------------------------

    @cached_property
    def counts(self) -> Vector:
        """Weight of the trusted rows on each cell, as so many rows; shape (M,)."""
        return self.learned.counts_in_rows

    @cached_property
    def plain_counts(self) -> Vector:
        """The same of all rows."""
        return self.learned.plain_counts_in_rows

    @cached_property
    def shift(self) -> Shift:
        """Robust minus plain estimate of each cell, and its z-score."""
        plain = self.plain_network.probabilities
        delta = self.network.probabilities - plain
        return Shift(delta, delta / standard_errors(self.network.layout, self.plain_counts, plain))

    @cached_property
    def moves(self) -> Moves:
        """How far each table moved."""
        q, plain = self.network.probabilities, self.plain_network.probabilities
        return measure_moves(self.network.layout, q, plain, self.counts, self.plain_counts)

    @cached_property
    def moved_tables(self) -> list[MovedTable]:
        """The tables, those that moved most first."""
        return moved_tables(self.network, self.moves)

    @property
    def n_moved(self) -> int:
        """Tables that moved by more than their error."""
        return int(self.moves.is_significant.sum())

    @cached_property
    def unseen_configurations(self) -> list[tuple[str, dict[str, Hashable]]]:
        """(node, states of its parents) of the configurations that no trusted row shows."""
        return find_unseen(self.network, self.learned.counts)

    @property
    def unseen(self) -> str:
        """How many of them there are, and what their tables got; empty if there are none."""
        return say_unseen(self.unseen_configurations, self.network, has_prior=self.has_prior)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What the paper asks of network and rows, and whether it holds."""
        given = self.settings.get("contamination", "auto")
        eps = self.contamination if isinstance(given, str) else float(given)
        return diagnose(self.network.layout, self.counts, eps)

    @property
    def has_prior(self) -> bool:
        """Whether anything was added to the counts."""
        return bool(np.any(self.added))

    @property
    def doubt(self) -> Vector | None:
        """Sum of `w (1 - w)` of the trust in the rows of each configuration; None if not known."""
        return self.deeper.doubt

    @cached_property
    def posterior(self) -> Posterior:
        """What is known of each table, as a distribution."""
        rows = worth_of_rows(self.network, self.learned, self.doubt)
        return find_posterior(self.network, self.counts, rows, self.added, self.reading.kind)

    # --- what was found -----------------------------------------------------------------------

    @property
    def converged(self) -> bool:
        """Whether the trusted rows look clean."""
        return self.learned.converged

    @property
    def status(self) -> str:
        """Why it stopped, in a sentence."""
        said = self.learned.status
        return said if self.inferred is None else f"{said} {self.inferred}"

    @property
    def rounds(self) -> tuple[Round, ...]:
        """What each round saw and did."""
        return self.learned.rounds

    @property
    def cells(self) -> FoundCells | None:
        """What explains wrong cells, and which they are; None if there are none."""
        return self.learned.cells

    @property
    def misfit(self) -> Misfit | None:
        """How far the trusted rows are from rows of the network; None if that was not asked."""
        return self.learned.misfit

    @property
    def inferred(self) -> Inferred | None:
        """What was inferred of values that are missing; None if nothing was."""
        return self.learned.inferred

    @property
    def missing(self) -> str:
        """What is missing from the rows, in a sentence; empty if nothing is."""
        return self.reading.say_missing()

    @property
    def n_missing(self) -> dict[str, int]:
        """How often each node is missing, where it ever is."""
        n_missing = self.reading.n_missing if self.reading.n_holes else {}
        return {node: n for node, n in n_missing.items() if n}

    @cached_property
    def vanishing(self) -> list[Vanishing]:
        """Groups of rows of which hardly any is trusted, largest first."""
        return find_vanishing(self.network, self.learned)

    @cached_property
    def repeats(self) -> list[RepeatedRow]:
        """The rows that appear more often than the network allows, the 100 worst first."""
        return describe_repeats(self.network, self.learned.model.repeats)

    @cached_property
    def kinds(self) -> list[Group]:
        """The kinds of bad rows, largest first."""
        kinds = self.deeper.groups.kinds
        return [kind.without_values() for kind in kinds] if self.rows_hidden else kinds

    @cached_property
    def groups(self) -> list[Group]:
        """All groups that were found, whichever side they are on, the largest stake first."""
        groups = [group for group in self.deeper.groups.groups if group.number]
        return [group.without_values() for group in groups] if self.rows_hidden else groups

    def number_kinds(self, codes: Codes) -> NDArray[np.int64]:
        """Return the number of the most likely kind of each row, 0 for none; shape (n,).

        Parameters
        ----------
        codes : array of shape (n, d)
            The rows, as codes.
        """
        if not len(codes):
            return np.zeros(0, np.int64)
        return self.learned.model.most_like(self.deeper.load(codes))

    def _name_kinds(self, codes: Codes) -> list[str]:
        """Return the cause of the kind that each row is most like, to be put before its reason."""
        kinds = self.deeper.groups.kinds
        named = {kind.number: f"{kind.cause.name}: " for kind in kinds if kind.cause}
        if not named:
            return [""] * len(codes)
        return [named.get(number, "") for number in self.number_kinds(codes).tolist()]

    @cached_property
    def origins(self) -> list[Origin]:
        """Groups that hold more distrusted rows than chance, most telling first."""
        origins = self.deeper.origins
        return [origin.without_values() for origin in origins] if self.rows_hidden else origins

    @cached_property
    def edges(self) -> tuple[MissingEdge, ...]:
        """The edges that the network misses most, if it does not describe the rows."""
        if self.misfit is None or self.misfit.is_exact or self.judged is None:
            return ()
        found = self.deeper.edges[:MOST_EDGES]
        return tuple(show_pair(self.network, self.judged, edge) for edge in found)

    @property
    def calibration(self) -> Calibration | None:
        """How surprising good rows are; None for a model from a file that does not say."""
        return self.deeper.calibration

    @cached_property
    def findings(self) -> list[Finding]:
        """What a person should know about the table, the most serious first."""
        from robustbn._show.findings import find_all  # which is made of this value

        return find_all(self)

    # --- how it can be repeated ---------------------------------------------------------------

    @property
    def table(self) -> str:
        """The file that the rows came from, if it is one."""
        return self.reading.where if self.reading.kind == "file" else ""

    @property
    def ignored(self) -> list[str]:
        """The columns that are no nodes and that nobody asked for."""
        config = self.reading.config
        asked = {*config.named, *(config.context or ())}
        return [name for name in self.reading.ignored if name not in asked]

    @cached_property
    def settings_in_words(self) -> dict[str, str]:
        """The settings of the estimator, and those of reading that are not as usual, as text."""
        chosen, config = dict(self.settings), self.reading.config
        for each in fields(config):
            value = getattr(config, each.name)
            is_empty = isinstance(value, Mapping) and not value
            if not is_same(value, each.default) and not is_empty:
                chosen[each.name] = dict(value) if isinstance(value, Mapping) else value
        if self.ignored:
            chosen["columns ignored"] = ", ".join(self.ignored)
        return {name: str(value) for name, value in chosen.items()}

    @property
    def versions(self) -> dict[str, str]:
        """The versions that decide what a fit gives."""
        return VERSIONS


def title_of(reading: Reading) -> str:
    """Return what a fit is called unless it is given a name."""
    rows = count(reading.n_rows, "row")
    return f"{reading.where}, {rows}" if reading.kind == "file" else f"Robust tables from {rows}"
