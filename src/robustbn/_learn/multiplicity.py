"""Rows that are repeated by design: resampled, upsampled, or a weight written as copies.

A row that the tables expect once in a hundred tables appears once in a table of independent rows,
whatever else is in it. Somebody who copies a few rows changes that for a few; a bootstrap, or ten
copies of a table, changes it for most. So among the rows that should appear once, from the least to
the most likely, the share that appears again is looked at in each fifth: where it is above what bad
rows can make up in every one of them, repetition is the design, and speaks against no row.

Copies bring no information. If a row that is drawn at random stands among m rows like it on
average (its own included), n rows say as much as n / m different ones: `effect` is that m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import log_probabilities, normalise_counts
from robustbn._core.layout import Codes, take_rows
from robustbn._core.protocols import RowVector, Survey, Vector
from robustbn._core.result import Repetition, UnevenCopies
from robustbn._core.trust import even_weights, is_even
from robustbn._core.tuning import Tuning
from robustbn._learn.repeats import share_patterns
from robustbn._learn.study import Study
from robustbn.network import BayesianNetwork

ANY_NUMBER = 2**62  # of copies speaks against no row


@dataclass(frozen=True, eq=False)
class _Distinct:
    """Different rows that should appear once, the least likely first.

    Parameters
    ----------
    codes : of each; shape (n, d).
    seen : how often each appears.
    weight : what its copies weigh together.
    expected : how often it should appear.
    scale : how many different rows each of them stands for.
    """

    codes: Codes
    seen: NDArray[np.int64]
    weight: Vector
    expected: Vector
    scale: float


def heed_design(network: BayesianNetwork, study: Study) -> Study:
    """Return a study that takes copies for what the caller says, or the rows show, that they are.

    O(N) time, unless all rows have copies.
    """
    copies, tuning = study.config.copies, study.config.tuning
    if copies == "distrust":
        return study
    scale = study.scale
    looked = _look_at_some(study)
    study, divisor = _thin(study, looked)
    effect = _effect_of(study.given)
    share, rare = _find_rare(study, looked if divisor == 1 else _look_at_some(study))
    is_design = divisor > 1
    most = 0
    if rare is not None:
        n_rare = float(rare.seen.sum()) * rare.scale
        is_alike = _least_repeated(
            rare.seen, tuning
        ) > tuning.design_share and n_rare >= tuning.design_rare * len(study.prints)
        is_design |= is_alike
        if is_alike or copies == "count":
            most = _most_copies(rare, tuning)
            effect = max(effect, _effect_of(rare.weight, most) - _natural(rare, most))
    effect = effect if effect >= tuning.design_effect else 1.0
    uneven = None if rare is None else _find_uneven(network, rare, tuning)
    found = Repetition(
        is_design=is_design,
        is_counted=is_design or copies == "count",
        share=1.0 if divisor > 1 else share,
        divisor=divisor,
        effect=1 + (effect * divisor - 1) * scale,
        uneven=uneven,
    )
    if not (found.is_counted or uneven or effect > 1):
        return study
    most = ANY_NUMBER if copies == "count" else most
    return replace(study, repetition=found, effect=effect, most_copies=most)


def _thin(study: Study, looked: _Looked) -> tuple[Study, int]:
    """Return the rows once each, if all are there k times, 2k times and so on; and k."""
    if not len(looked.rows) or np.gcd.reduce(looked.seen) == 1:
        return study, 1
    if (study.given != study.given[0]).any():
        return study, 1
    seen = np.unique(study.prints, return_counts=True)[1]
    divisor = int(np.gcd.reduce(seen))
    if divisor == 1 or len(seen) < study.config.tuning.design_distinct:
        return study, 1
    order = np.argsort(study.prints, kind="stable")
    number = np.arange(len(order)) - np.repeat(np.cumsum(seen) - seen, seen)
    kept = np.sort(order[number % divisor == 0])
    survey, codes = study.survey, take_rows(study.survey.codes, kept)
    thinned = Survey(survey.n_rows, survey.counts, codes, survey.numbers[kept], study.load(codes))
    given = even_weights(len(kept)) if is_even(study.given) else study.given[kept]
    return replace(study, survey=thinned, given=given, prints=study.prints[kept]), divisor


@dataclass(frozen=True, eq=False)
class _Looked:
    """Rows that are looked at, each with all its copies.

    Parameters
    ----------
    rows : their numbers, increasing; shape (n,).
    first, seen : of each different one, where among them it appears first, and how often.
    place : which of the different ones each is; shape (n,).
    """

    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    place: NDArray[np.int64]
    seen: NDArray[np.int64]


def _look_at_some(study: Study) -> _Looked:
    """Return about so many rows as are looked at, chosen by their fingerprints."""
    prints = study.prints
    share = study.config.tuning.design_rows / max(len(prints), 1)
    if share >= 1:
        some = np.arange(len(prints))
    else:
        low = prints.view(np.uint32)[::2]  # of machines that are little-endian, as all of ours are
        some = np.flatnonzero(low < np.uint32(share * 2**32))
    _, *found = np.unique(prints[some], return_index=True, return_inverse=True, return_counts=True)
    return _Looked(some, *found)


def _find_rare(study: Study, looked: _Looked) -> tuple[float, _Distinct | None]:
    """Return the share of rows that should appear once and are repeated, and those rows.

    They are None where too few rows are repeated to ask, or too few should appear once.
    """
    tuning, survey, some = study.config.tuning, study.survey, looked.rows
    first, seen = looked.first, looked.seen
    if 1 - np.count_nonzero(seen == 1) / max(len(some), 1) < tuning.design_noticed:
        return 0.0, None
    codes = take_rows(survey.codes, some[first])
    rows = study.load(codes)
    q = normalise_counts(rows.layout, survey.counts, 1e-3)
    log_q = rows.project(log_probabilities(q)[:, None])[:, 0].astype(np.float64)
    if rows.layout.holed and not study.knows_patterns:
        log_q += np.log(share_patterns(rows.layout, survey.codes[some], first))
    expected = study.n_rows * np.exp(log_q)
    is_rare = expected <= tuning.design_expected
    if np.count_nonzero(is_rare) < tuning.design_strata * tuning.design_least:
        return 0.0, None
    weight = np.bincount(looked.place, study.given[some], len(seen)).astype(np.float64)
    scale = len(study.prints) / len(some)
    chosen = np.flatnonzero(is_rare)[np.argsort(expected[is_rare], kind="stable")]
    rare = _Distinct(codes[chosen], seen[chosen], weight[chosen], expected[chosen], scale)
    return _share_repeated(rare.seen), rare


def _share_repeated(seen: NDArray[np.int64]) -> float:
    return 1 - float(np.count_nonzero(seen == 1) / seen.sum())


def _least_repeated(seen: NDArray[np.int64], tuning: Tuning) -> float:
    """Return the share of rows that appear again where it is least, from rare to less rare."""
    return min(_share_repeated(part) for part in np.array_split(seen, tuning.design_strata))


def _most_copies(rare: _Distinct, tuning: Tuning) -> int:
    """Return how often a row may appear by design: the upper tail of most rows, carried on.

    Numbers of copies that are drawn fall off at least as fast from the 95 % on as before.
    """
    middle, high = np.quantile(rare.seen, [0.5, 0.95])
    decades = np.log10(max(0.05 * len(rare.seen) * rare.scale, 1.0)) + tuning.design_tail
    return int(np.ceil(high + (high - middle + 1) * decades))


def _effect_of(weight: RowVector, most: float = np.inf) -> float:
    """Return how many rows say as much as one: `sum of w^2 / sum of w` in units of a row.

    Parameters
    ----------
    weight : of different rows, or of all rows where 1 is the mean.
    most : a row that weighs more is no measure of the others.
    """
    if is_even(weight):
        return 1.0
    within = weight[weight <= most].astype(np.float64)
    total = float(within.sum())
    return float(within @ within) / total if total > 0 else 1.0


def _natural(rare: _Distinct, most: float) -> float:
    """Return how many of its like a row has by chance alone."""
    within = rare.weight <= most
    return float(rare.weight[within] @ rare.expected[within] / max(rare.weight[within].sum(), 1.0))


def _find_uneven(network: BayesianNetwork, rare: _Distinct, tuning: Tuning) -> UnevenCopies | None:
    """Return the state whose rows are nearly all repeated, far more often than all others."""
    best, found = 0.0, None
    n, total = len(rare.seen), float(rare.seen.sum())
    least = max(tuning.design_least, tuning.design_group * n)
    repeated = np.flatnonzero(rare.seen > 1)
    more = (rare.seen[repeated] - 1).astype(np.float64)
    if len(repeated) < tuning.design_alike * least:
        return None
    for i, node in enumerate(network.nodes):
        states, card = rare.codes[:, i], len(network.states[node])
        inside = np.bincount(states, minlength=card + 1)[:card].astype(np.float64)
        here = states[repeated]
        again = np.bincount(here, minlength=card + 1)[:card] / np.maximum(inside, 1)
        mean = 1 + np.bincount(here, more, card + 1)[:card] / np.maximum(inside, 1)
        rest = (total - inside * mean) / np.maximum(n - inside, 1)
        is_uneven = (again >= tuning.design_alike) & (mean >= tuning.design_uneven * rest)
        is_uneven &= (inside >= least) & (n - inside >= least)
        contrast = np.where(is_uneven, inside * (n - inside) * (mean - rest) ** 2, 0.0)
        k = int(contrast.argmax())
        if contrast[k] > best:
            best = float(contrast[k])
            state = str(network.states[node][k])
            found = UnevenCopies(node, state, float(mean[k]), float(rest[k]))
    return found
