"""The rounds: look at the spectrum, distrust, explain, look again; and when to stop.

Each round is a function from a state to the next one. While the spectrum of what is trusted is in
excess of what drawn rows show, a filter marks rows. They seed one more kind of bad rows, which must
earn its place; or, where bad rows are not explained, the filter's own factors are kept.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from robustbn._core.protocols import Rows, RowVector
from robustbn._core.result import Round
from robustbn._core.row_model import Filter, RowModel
from robustbn._core.trust import sum_weights
from robustbn._core.tuning import Tuning
from robustbn._learn.density_filter import build_filter
from robustbn._learn.population import LEAST_DRAWN, Explained
from robustbn._learn.proposals import Sample, propose_kind, split_kinds
from robustbn._learn.spectrum import RowSpectrum, clean_top, find_spectrum


@dataclass(frozen=True, eq=False)
class State:
    """What is known after a round.

    Parameters
    ----------
    model : what rows look like.
    log_likelihood : of the sample under it.
    weights : trust in each row of the sample, times its base; shape (N,).
    spectrum : of the rows by those weights.
    threshold : the top eigenvalue above which they vary more than good rows do.
    clean : drawn rows, if there was a reason to draw them.
    rounds : what happened, rejected rounds too.
    ended_at : when the last of them ended, in seconds.
    stopped : why no more was filtered although the rows do not look clean, in a few words.
    least_evidence : the least that any kind brought for each row it took, in nats.
    pending : rows explained by one kind more, which brings too little to go on at once; and whether
        it has been split.
    n_explained : rounds that explained rows since the rows were first looked at.
    """

    model: RowModel
    log_likelihood: float
    weights: RowVector
    spectrum: RowSpectrum
    threshold: float
    clean: Rows | None
    rounds: tuple[Round, ...]
    ended_at: float
    stopped: str = ""
    least_evidence: float = math.inf
    pending: tuple[Explained, bool] | None = None
    n_explained: int = 0

    @property
    def excess(self) -> float:
        """By how much the top eigenvalue is above what good rows have; negative when clean."""
        return self.spectrum.top - self.threshold


def is_suspicious(state: State, tuning: Tuning) -> bool:
    """Whether the trusted rows vary at all more than good rows do."""
    return state.spectrum.top > _least_suspicious(state.threshold, tuning)


def _least_suspicious(threshold: float, tuning: Tuning) -> float:
    return threshold - tuning.spectrum_allowance + tuning.spectrum_suspicion


# --- one round ------------------------------------------------------------------------------------


def begin(
    sample: Sample, rounds: tuple[Round, ...] = (), spectrum: RowSpectrum | None = None
) -> State:
    """Look at the rows as they are.

    Parameters
    ----------
    spectrum : of the rows, if it is known.
    """
    model, started_at = RowModel.of_good_rows(sample.prior), time.perf_counter()
    likelihood, action = sample.log_likelihood, "looked at the rows"
    return _look(
        sample, model, likelihood, sample.base, action, rounds, started_at, spectrum=spectrum
    )


def begin_from(sample: Sample, model: RowModel, rounds: tuple[Round, ...]) -> State:
    """Fit a model that was learned before to these rows, and look at what it trusts."""
    if not model.n_others:
        return begin(sample, rounds)
    started_at = time.perf_counter()
    explained = sample.explain(model)
    return _look_explained(sample, explained, "looked again", rounds, started_at)


def _look_explained(
    sample: Sample,
    explained: Explained,
    action: str,
    rounds: tuple[Round, ...],
    started_at: float,
    most_excess: float = math.inf,
) -> State:
    weights = sample.base * explained.good
    model, likelihood = explained.model, explained.log_likelihood
    return _look(sample, model, likelihood, weights, action, rounds, started_at, most_excess)


def _look(
    sample: Sample,
    model: RowModel,
    log_likelihood: float,
    weights: RowVector,
    action: str,
    rounds: tuple[Round, ...],
    started_at: float,
    most_excess: float = math.inf,
    spectrum: RowSpectrum | None = None,
) -> State:
    """Look at weighted rows, and at rows drawn from their tables; note the round.

    None are drawn when the top eigenvalue is one that good rows of any network may well have.

    Parameters
    ----------
    most_excess : a round that leaves more is marked as not accepted.
    spectrum : of the rows by these weights, if it is known.
    """
    tuning, clean = sample.tuning, None
    if spectrum is None:
        counts = sample.plain_counts if weights is sample.base else None
        spectrum = find_spectrum(sample.rows, weights, tuning, counts=counts)
    n = max(sum_weights(weights), 1.0)
    threshold = 1.0 + tuning.spectrum_quiet * sample.noise + tuning.spectrum_allowance
    if spectrum.top > _least_suspicious(threshold, tuning):
        n_drawn = int(min(max(n, LEAST_DRAWN), tuning.sample_drawn))
        clean = replace(model, good=spectrum.q).draw_good(sample.draw, n_drawn)
        threshold = clean_top(clean, n, tuning) + tuning.spectrum_allowance
    ended_at = time.perf_counter()
    done = Round(
        number=len(rounds),
        action=action,
        eigenvalues=tuple(float(v) for v in spectrum.values[:4]),
        threshold=threshold,
        removed=1.0 - n / sample.n_given,
        n_kinds=model.n_kinds,
        wall_s=ended_at - started_at,
        is_accepted=spectrum.top - threshold <= most_excess,
    )
    sample.tell(done)
    return State(
        model, log_likelihood, weights, spectrum, threshold, clean, (*rounds, done), ended_at
    )


# --- rounds until there is no reason for another --------------------------------------------------


def explain_bad_rows(sample: Sample, state: State, plain_evidence: float = 0.0) -> State:
    """Add kinds of bad rows while the spectrum is in excess and each earns its place.

    Parameters
    ----------
    plain_evidence : nats a row; ends at a kind that brings less, which is left pending.
    """
    tuning = sample.tuning
    while state.n_explained < tuning.kind_rounds:
        if state.pending is None:
            explained, is_split = _explain_more(sample, state), False
        else:
            (explained, is_split), state = state.pending, replace(state, pending=None)
        if explained is not None and not is_split:
            evidence = _find_evidence(sample, state, explained)
            if evidence < tuning.exact_unsplit * plain_evidence:
                return replace(state, least_evidence=evidence, pending=(explained, False))
            explained = _split(sample, explained)
        if explained is None:
            break
        evidence = min(_find_evidence(sample, state, explained), state.least_evidence)
        if evidence < plain_evidence:
            return replace(state, least_evidence=evidence, pending=(explained, True))
        after = _look_explained(
            sample, explained, "explained bad rows", state.rounds, state.ended_at, state.excess
        )
        if not after.rounds[-1].is_accepted:  # the certificate decides
            return replace(state, rounds=after.rounds, ended_at=after.ended_at)
        state = replace(after, least_evidence=evidence, n_explained=state.n_explained + 1)
    return state


def _find_evidence(sample: Sample, state: State, explained: Explained) -> float:
    """Return the log-likelihood that was gained for each row that is newly distrusted."""
    gain = explained.log_likelihood - state.log_likelihood
    trusted = float(sample.base @ explained.good)
    newly = float(state.weights.sum(dtype=np.float64)) - trusted
    return gain / max(newly, 1.0)


def _explain_more(sample: Sample, state: State) -> Explained | None:
    """Return the rows explained with one kind more, or None if that does not earn its place."""
    tuning = sample.tuning
    if not is_suspicious(state, tuning):
        return None
    marked = state.weights * (1 - _filter_again(sample, state)[1])
    if marked.sum() < tuning.kind_least_rows:
        return None
    explained = sample.explain(propose_kind(sample, state.model, state.weights, marked))
    gain = explained.log_likelihood - state.log_likelihood
    if gain < tuning.kind_gain * sample.rows.layout.n_free:
        return None
    return None if explained.clarity < tuning.kind_clarity else explained


def _split(sample: Sample, explained: Explained) -> Explained | None:
    """Return the rows explained with finer kinds, or None if too many would be bad."""
    explained = split_kinds(sample, explained)
    return explained if explained.model.share_bad <= sample.ceiling else None


def filter_the_rest(sample: Sample, state: State) -> State:
    """Filter until the spectrum is clean or as much is removed as may be."""
    tuning = sample.tuning
    while state.excess > 0:
        if len(state.model.filters) == tuning.filter_most:
            return replace(state, stopped=f"after {tuning.filter_most} filters")
        built, factors = _filter_again(sample, state)
        weights = state.weights * factors
        kept = float(weights.sum(dtype=np.float64))
        if 1 - kept / sample.total > sample.ceiling:
            why = f"because more than {sample.ceiling:.0%} would go, repeated rows apart"
            return replace(state, stopped=why)
        if kept > (1 - tuning.filter_least) * float(state.weights.sum(dtype=np.float64)):
            return replace(state, stopped="because no row stands out")
        model = replace(state.model, filters=(*state.model.filters, built))
        likelihood, rounds = state.log_likelihood, state.rounds
        state = _look(sample, model, likelihood, weights, "filtered", rounds, state.ended_at)
    return state


def _filter_again(sample: Sample, state: State) -> tuple[Filter, RowVector]:
    """Return a filter along the directions in excess, and the factor of each row."""
    if state.clean is None:
        raise ValueError("Rows that look clean are not filtered.")
    above = state.spectrum.values > _least_suspicious(state.threshold, sample.tuning)
    n_directions = int(np.clip(above.sum(), 1, sample.tuning.spectrum_directions))
    table = state.spectrum.table[:, :n_directions]
    return build_filter(table, sample.rows, state.weights, state.clean, sample.tuning)
