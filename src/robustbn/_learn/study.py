"""The rows of a survey, and what is asked of them while a verdict is learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.config import CEILING, RobustConfig
from robustbn._core.expansion import normalise_counts, uniform_tables
from robustbn._core.layout import Codes, take_rows
from robustbn._core.protocols import LoadCodes, Rows, RowVector, Survey
from robustbn._core.result import Repetition, Round
from robustbn._core.row_model import NO_REPEATS, Draw, Repeats
from robustbn._core.trust import even_weights, is_even, sum_weights
from robustbn._learn.edges import add_edge, tell_by_edge
from robustbn._learn.proposals import Sample
from robustbn._learn.repeats import Copies, find_copies, find_repeats, is_no_chance
from robustbn._learn.rounds import State
from robustbn._learn.spectrum import RowSpectrum, find_spectrum
from robustbn._rows.draw import drawing
from robustbn._rows.memory import draw_evenly, load_rows
from robustbn._tables.coded import IS_MISSING
from robustbn.network import BayesianNetwork


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some of the surveyed rows: which they are (all are a slice: no copies), and the rows.

    With their codes; shape (n, d).
    """

    which: NDArray[np.int64] | slice
    rows: Rows
    codes: Codes

    def pick(self, weights: RowVector) -> RowVector:
        """Return the weights of these rows from those of all; shape (n,)."""
        return even_weights(self.rows.n_rows) if is_even(weights) else weights[self.which]


@dataclass(frozen=True, eq=False)
class Weighed:
    """Rows that are repeated too often, and the weight that this leaves to every row; (n,).

    With the spectrum of the rows that were chosen by these weights, where it was looked at.
    """

    repeats: Repeats
    base: RowVector
    spectrum: RowSpectrum | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """Rows of a survey with their weights.

    Parameters
    ----------
    survey : the rows.
    given : weight of each, 1 on average over all rows of the table; shape (n,).
    unit : what a weight of 1 stands for.
    prints : fingerprint of each; shape (n,).
    load, draw : encode codes, and draw rows from tables.
    config : the caller's.
    tell : is told of every round.
    knows_patterns : whether nodes of the network say which values are missing.
    repetition : how rows are repeated; None if that changes nothing.
    effect : how many of the rows say as much as one.
    most_copies : that speak against no row.

    What is asked for twice is made once: some of the rows, and samples of them.
    """

    survey: Survey
    given: RowVector
    unit: float
    prints: NDArray[np.uint64]
    load: LoadCodes
    draw: Draw
    config: RobustConfig
    tell: Callable[[Round], None]
    knows_patterns: bool = False
    repetition: Repetition | None = None
    effect: float = 1.0
    most_copies: int = 0
    _chosen: dict[int, Chosen] = field(default_factory=dict, init=False)
    _samples: dict[tuple[Chosen, Weighed], Sample] = field(default_factory=dict, init=False)

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
        return cls(
            survey=survey,
            given=(
                even_weights(n) if sample_weight is None else sample_weight[survey.numbers] / unit
            ),
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

    def choose(self, n: int) -> Chosen:
        """Return at most n of the rows, evenly drawn."""
        n = min(n, self.n_rows)
        if n not in self._chosen:
            self._chosen[n] = self._choose(n)
        return self._chosen[n]

    def _choose(self, n: int) -> Chosen:
        if n == self.n_rows:
            return Chosen(slice(None), self.survey.rows, self.survey.codes)
        which = draw_evenly(self.n_rows, n, self.config.seed)
        codes = take_rows(self.survey.codes, which)
        return Chosen(which, self.load(codes), codes)

    def sample(self, chosen: Chosen, weighed: Weighed) -> Sample:
        """Return rows to learn from; they weigh as much as different rows that say as much."""
        if (chosen, weighed) not in self._samples:
            self._samples[chosen, weighed] = self._sample(chosen, weighed)
        return self._samples[chosen, weighed]

    def _sample(self, chosen: Chosen, weighed: Weighed) -> Sample:
        effect, base = self.effect_of(chosen), chosen.pick(weighed.base)
        return Sample(
            rows=chosen.rows,
            base=base if effect == 1 else (base / effect).astype(base.dtype),
            n_given=sum_weights(chosen.pick(self.given)) / effect,
            draw=self.draw,
            ceiling=self.config.ceiling,
            tuning=self.config.tuning,
            tell=self.tell,
            codes=chosen.codes,
            load=self.load,
            most_copies=self.most_copies,
        )

    def effect_of(self, chosen: Chosen) -> float:
        """Return how many of some rows say as much as one: of a few, fewer are copies."""
        return 1 + (self.effect - 1) * chosen.rows.n_rows / self.n_rows

    # --- copies -----------------------------------------------------------------------------------

    def find_copies(self) -> Copies:
        """Return the rows that appear more often than once, or than is by design."""
        return self._copies

    @cached_property
    def _copies(self) -> Copies:
        return find_copies(
            self.prints,
            self.given if self.effect == 1 else self.given / self.effect,
            self.survey.codes,
            self.load,
            self.config.tuning,
            knows_patterns=self.knows_patterns,
            most=self.most_copies,
            kernels=self.config.kernels,
        )

    def weigh(self, repeats: Repeats) -> Weighed:
        """Return the weights of all rows once repeated ones, found here, are lowered."""
        if not len(repeats.factors):
            return Weighed(repeats, self.given)
        return Weighed(repeats, self.given * self._copies.weigh(repeats, self.n_rows))

    def unweighed(self) -> Weighed:
        """Return the weights as they were given."""
        return self._unweighed

    @cached_property
    def _unweighed(self) -> Weighed:
        return Weighed(NO_REPEATS, self.given)

    def surest_repeats(self, copies: Copies) -> Repeats | None:
        """Return the rows that appear too often whatever the tables are; None if no telling."""
        counts, everywhere = self.survey.rows.count(self.given), np.ones(len(copies.seen))
        n, tuning = sum_weights(self.given) / self.effect, self.config.tuning
        most = CEILING * n
        found = find_repeats(copies, counts / self.effect, n, everywhere, tuning, most)
        return None if found is None or self._would_be_common(found) else found

    def _would_be_common(self, found: Repeats) -> bool:
        """Whether rows appear too often only because the network lacks an edge.

        Rows that the tables expect, if less often, are as common as they are once the edge is there
        that all rows want most. Copies of rows that nobody expects are not.
        """
        tuning, n = self.config.tuning, sum_weights(self.given) / self.effect
        layout = self.survey.rows.layout
        if layout.n_nodes > tuning.edge_small or not len(found.factors):
            return False
        rows = self.load(found.codes)
        q = normalise_counts(layout, self.survey.rows.count(self.given), uniform_tables(layout))
        expected = n * np.exp(rows.project(np.log(q)[:, None])[:, 0].astype(np.float64))
        seen, surplus = found.seen / self.effect, found.seen * (1 - found.factors)
        if (surplus * (expected >= 1)).sum() <= 0.5 * surplus.sum():
            return False
        chosen = self.choose(tuning.edge_rows)
        codes, weights = chosen.codes, chosen.pick(self.given)
        wider, _ = add_edge(layout, codes, weights)
        told = tell_by_edge(layout, wider, codes, weights, found.codes)
        likely = tuning.copies_slack * expected * np.exp(told)
        is_left = is_no_chance(seen, likely, n, tuning)
        return bool(surplus[is_left].sum() < 0.5 * surplus.sum())

    def first_repeats(self, copies: Copies, chosen: Chosen) -> Weighed:
        """Return those rows if the others look at all like rows of a network; else none."""
        tuning, found = self.config.tuning, self.surest_repeats(copies)
        if found is None or not len(found.factors):
            return self.unweighed()
        weighed = self.weigh(found)
        left = chosen.pick(weighed.base)
        if not left.any():  # no others are left to look at
            return self.unweighed()
        spectrum = find_spectrum(chosen.rows, left, tuning)
        if spectrum.top > tuning.spectrum_obvious:
            return self.unweighed()
        is_learned_from = self.effect_of(chosen) == 1  # else it is in another unit
        return replace(weighed, spectrum=spectrum) if is_learned_from else weighed

    def last_repeats(
        self, copies: Copies, chosen: Chosen, state: State, before: Weighed
    ) -> Weighed:
        """Return the rows that appear too often by the tables of the rows that are trusted."""
        tuning = self.config.tuning
        if state.spectrum.top > tuning.spectrum_obvious:
            return before
        trust = _multiply(chosen.pick(self.given), state.model.trust(chosen.rows))
        scale = self.n_rows / chosen.rows.n_rows / self.effect
        counts, n = chosen.rows.count(trust) * scale, sum_weights(trust) * scale
        most = CEILING * sum_weights(self.given) / self.effect
        found = find_repeats(copies, counts, n, state.model.weigh(copies.rows), tuning, most)
        if found is None or self._would_be_common(found):
            return before
        weighed = self.weigh(found)
        return weighed if chosen.pick(weighed.base).any() else before

    def is_anew(self, before: Weighed, after: Weighed) -> bool:
        """Whether so many more rows are found to be repeated that all is to be judged again."""
        if before.base is after.base:
            return False
        lost = before.base - after.base
        np.maximum(lost, 0, out=lost)
        return float(lost.sum(dtype=np.float64)) > self.config.tuning.copies_anew * self.n_rows

    def lost_to_copies(self, weighed: Weighed, state: State) -> float:
        """Return the share of rows that only their copies speak against; 0 if there are no kinds.

        Where no kind was needed, copies alone made the difference between clean rows and not.
        """
        if not (state.model.n_kinds and len(weighed.repeats.factors)):
            return 0.0
        lowered = np.flatnonzero(self.given != weighed.base)
        trust = state.model.weigh(self.load(take_rows(self.survey.codes, lowered)))
        gone = self.given[lowered] - weighed.base[lowered]
        lost = float((trust * gone).sum(dtype=np.float64))
        return lost / sum_weights(self.given)

    def scale_to_all(self, repeats: Repeats) -> Repeats:
        """Return repeats among all rows of the table, by their numbers there."""
        return replace(
            repeats,
            first=self.survey.numbers[repeats.first],
            seen=np.rint(repeats.seen * self.scale).astype(np.int64),
            expected=repeats.expected * (self.scale * self.effect),
        )


def _multiply(weights: RowVector, trust: RowVector) -> RowVector:
    """Return `weights * trust`, without a look at them where all trust is 1."""
    return weights if is_even(trust) else weights * trust


def mean_weight(sample_weight: RowVector | None) -> float:
    """Return the mean weight of a row; 1 where none are given."""
    if sample_weight is None:
        return 1.0
    first = float(sample_weight[0])
    if (sample_weight == first).all():  # whose mean a sum would round
        return first
    return float(sample_weight.mean(dtype=np.float64))
