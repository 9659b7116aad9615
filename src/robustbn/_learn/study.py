"""The rows of a survey, and what is asked of them while a verdict is learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.config import RobustConfig
from robustbn._core.expansion import normalise_counts, uniform_tables
from robustbn._core.layout import Codes, take_rows
from robustbn._core.protocols import LoadCodes, Rows, RowVector, Survey, Vector
from robustbn._core.result import Repetition, Round
from robustbn._core.row_model import Draw, Repeats
from robustbn._core.trust import even_weights, is_even, sum_weights
from robustbn._learn.copies import Copies, find_copies
from robustbn._rows.draw import drawing
from robustbn._rows.memory import draw_evenly, load_rows
from robustbn._tables.coded import IS_MISSING
from robustbn.network import BayesianNetwork


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from, with a weight for each."""

    # rows, codes: the rows, and their codes of shape (N, d)
    rows: Rows
    codes: Codes
    # which they are among those of the survey; all are a slice: no copies
    which: NDArray[np.int64] | slice
    # weight of each, lower than given where a row is repeated too often; shape (N,)
    base: RowVector
    n_given: float  # what all rows together weigh as they were given

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return sum_weights(self.base)

    @cached_property
    def plain_counts(self) -> Vector:
        """Weight of the rows that touch each cell; shape (M,)."""
        return self.rows.count(self.base)

    @cached_property
    def prior(self) -> Vector:
        """Tables of all rows, smoothed: what components say where they have no rows; (M,)."""
        layout = self.rows.layout
        return normalise_counts(layout, self.plain_counts, uniform_tables(layout))


@dataclass(frozen=True, eq=False)
class Study:
    """Rows of a survey with their weights."""

    survey: Survey  # the rows
    given: RowVector  # weight of each, 1 on average over all rows of the table; shape (n,)
    unit: float  # what a weight of 1 stands for
    prints: NDArray[np.uint64]  # fingerprint of each; shape (n,)
    # load, draw: encode codes, and draw rows from tables
    load: LoadCodes
    draw: Draw
    config: RobustConfig  # the caller's
    tell: Callable[[Round], None]  # is told of every round
    knows_patterns: bool = False  # whether nodes of the network say which values are missing
    repetition: Repetition | None = None  # how rows are repeated; None if that changes nothing
    effect: float = 1.0  # how many of the rows say as much as one
    most_copies: int = 0  # that speak against no row
    _chosen: dict[int, tuple[NDArray[np.int64] | slice, Rows, Codes]] = field(
        default_factory=dict, init=False
    )

    @classmethod
    def of(
        cls,
        network: BayesianNetwork,
        survey: Survey,
        sample_weight: RowVector | None,
        config: RobustConfig,
        tell: Callable[[Round], None],
    ) -> Study:
        """Take up the rows of a survey; one pass for their fingerprints."""
        unit, n, holed = mean_weight(sample_weight), len(survey.numbers), survey.rows.layout.holed
        given = even_weights(n)
        if sample_weight is not None and (sample_weight != unit).any():
            given = sample_weight[survey.numbers] / unit
        return cls(
            survey=survey,
            given=given,
            unit=unit,
            prints=survey.rows.fingerprints(),
            load=lambda codes: load_rows(
                network, codes, config.kernels, config.n_threads, holed=holed
            ),
            draw=drawing(network, config.kernels, config.n_threads, config.seed, like=survey),
            config=config,
            tell=tell,
            knows_patterns=any(node.endswith(IS_MISSING) for node in network.nodes),
        )

    @property
    def n_rows(self) -> int:
        """Number of surveyed rows."""
        return len(self.survey.numbers)

    @property
    def scale(self) -> float:
        """How many rows of the table each of them stands for."""
        return self.survey.n_rows / self.n_rows

    @property
    def total(self) -> float:
        """What they weigh, as different rows that say as much."""
        return sum_weights(self.given) / self.effect

    def weight_of(self, sample: Sample) -> float:
        """Return what a weight of 1 in a sample stands for among all rows of the table."""
        share = self.n_rows / sample.rows.n_rows
        return self.unit * self.scale * share * self._effect_of(sample.rows.n_rows)

    def choose(self, n: int, repeats: Repeats | None = None) -> Sample:
        """Return at most n of the rows, evenly drawn, that weigh as those that say as much."""
        n = min(n, self.n_rows)
        if n not in self._chosen:
            self._chosen[n] = self._choose(n)
        which, rows, codes = self._chosen[n]
        effect, given = self._effect_of(n), _pick(self.given, which, n)
        base = given if effect == 1 else (given / effect).astype(given.dtype)
        n_given = sum_weights(base)
        if repeats is not None and len(repeats.factors):
            base = base * self.copies.weigh(repeats, self.n_rows)[which]
        return Sample(rows, codes, which, base, n_given)

    def _choose(self, n: int) -> tuple[NDArray[np.int64] | slice, Rows, Codes]:
        if n == self.n_rows:
            return slice(None), self.survey.rows, self.survey.codes
        which = draw_evenly(self.n_rows, n, self.config.seed)
        codes = take_rows(self.survey.codes, which)
        return which, self.load(codes), codes

    def _effect_of(self, n: int) -> float:
        """Return how many of some rows say as much as one: of a few, fewer are copies."""
        return 1 + (self.effect - 1) * n / self.n_rows

    @cached_property
    def copies(self) -> Copies:
        """The rows that appear more often than once, or than is by design."""
        return find_copies(
            self.prints,
            self.given if self.effect == 1 else self.given / self.effect,
            self.survey.codes,
            self.load,
            knows_patterns=self.knows_patterns,
            most=self.most_copies,
            written=self.survey.written,
            kernels=self.config.kernels,
        )


def _pick(weights: RowVector, which: NDArray[np.int64] | slice, n: int) -> RowVector:
    return even_weights(n) if is_even(weights) else weights[which]


def mean_weight(sample_weight: RowVector | None) -> float:
    """Return the mean weight of a row; 1 where none are given."""
    if sample_weight is None:
        return 1.0
    first = float(sample_weight[0])
    if (sample_weight == first).all():  # whose mean a sum would round
        return first
    return float(sample_weight.mean(dtype=np.float64))
