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

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import log_probabilities, normalise_counts
from robustbn._core.layout import Codes, take_rows
from robustbn._core.protocols import RowVector, Survey, Vector
from robustbn._core.result import Repetition, UnevenCopies
from robustbn._core.trust import even_weights, is_even
from robustbn._learn.copies import share_patterns
from robustbn._learn.study import Study
from robustbn.network import BayesianNetwork

RARE = 0.2  # share of rows that should appear once: fewer may all be bad rows of a few patterns
SHARE = 0.45  # of those, that appear again: 0.47 to 0.7 in bootstraps, up to 0.37 in real tables
STRATA = 5  # parts, from rare to less rare, each of which must show it
LEAST = 20  # different rows of a part, or of a state: fewer say nothing
EXPECTED = 0.25  # rows, at most, expected of one that should appear once
NOTICED = 0.02  # share of rows repeated at all: less is not looked at
LOOKED_AT = 20_000  # rows, with all their copies: a thinning, for time
DISTINCT = 30  # different rows whose numbers share a divisor: by chance one table in 2^30 is so
EFFECT = 1.05  # rows that say as much as one: less is chance
TAIL = 1.0  # decades, added to the tail of the numbers of copies that a design may have
ALIKE = 0.9  # share of rows of an upsampled state that are repeated
UNEVEN = 1.5  # times as many copies as rows of other states have: less is not told of
GROUP = 0.01  # share of rows of a state that is told of
DRAWN_ANEW = 1.2  # times as many rows as are expected once: 1.0 in bootstraps, 1.7 and more else
MORE_RARE = 1.5  # times as many rows that should appear once as in drawn rows: bad ones are more
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
    copies = study.config.copies
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
        share_rare = float(rare.seen.sum()) * rare.scale / len(study.prints)
        is_enough = share_rare >= RARE or _is_bootstrap(study, rare, share_rare)
        is_alike = is_enough and _least_repeated(rare.seen) > SHARE
        is_design |= is_alike
        if is_alike or copies == "count":
            most = _most_copies(rare)
            effect = max(effect, _effect_of(rare.weight, most) - _natural(rare, most))
    effect = effect if effect >= EFFECT else 1.0
    uneven = None if rare is None else _find_uneven(network, rare)
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
    if divisor == 1 or len(seen) < DISTINCT:
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
    share = LOOKED_AT / max(len(prints), 1)
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
    survey, some = study.survey, looked.rows
    first, seen = looked.first, looked.seen
    if 1 - np.count_nonzero(seen == 1) / max(len(some), 1) < NOTICED:
        return 0.0, None
    codes = take_rows(survey.codes, some[first])
    rows = study.load(codes)
    q = normalise_counts(rows.layout, survey.counts, 1e-3)
    log_q = rows.project(log_probabilities(q)[:, None])[:, 0].astype(np.float64)
    if rows.layout.holed and not study.knows_patterns:
        log_q += np.log(share_patterns(rows.layout, survey.codes[some], first))
    expected = study.n_rows * np.exp(log_q)
    is_rare = expected <= EXPECTED
    if np.count_nonzero(is_rare) < STRATA * LEAST:
        return 0.0, None
    weight = np.bincount(looked.place, study.given[some], len(seen)).astype(np.float64)
    scale = len(study.prints) / len(some)
    chosen = np.flatnonzero(is_rare)[np.argsort(expected[is_rare], kind="stable")]
    rare = _Distinct(codes[chosen], seen[chosen], weight[chosen], expected[chosen], scale)
    return _share_repeated(rare.seen), rare


def _share_repeated(seen: NDArray[np.int64]) -> float:
    return 1 - float(np.count_nonzero(seen == 1) / seen.sum())


def _least_repeated(seen: NDArray[np.int64]) -> float:
    """Return the share of rows that appear again where it is least, from rare to less rare."""
    return min(_share_repeated(part) for part in np.array_split(seen, STRATA))


def _is_bootstrap(study: Study, rare: _Distinct, share_rare: float) -> bool:
    """Whether rows that should appear once are drawn anew, and are as many as the tables say.

    Bad rows of a few patterns are repeated, too, but there are more of them.
    """
    if not _is_drawn_anew(rare.seen):
        return False
    layout, n = study.survey.rows.layout, min(study.n_rows, LOOKED_AT)
    q = normalise_counts(layout, study.survey.counts, 1e-3)
    drawn = study.draw([(q, n)]).project(log_probabilities(q)[:, None])[:, 0]
    expected = study.n_rows * np.exp(drawn.astype(np.float64))
    return share_rare <= MORE_RARE * float(np.mean(expected <= EXPECTED))


def _is_drawn_anew(seen: NDArray[np.int64]) -> bool:
    """Whether rows are there as often as if a table had been drawn from with replacement.

    Numbers of copies are then those of a Poisson distribution without its zeros. Where somebody
    copied some rows, far more rows are there once than a distribution of that mean has.
    """
    mean = float(seen.mean())
    rate = max(mean - 1, 1e-6)
    for _ in range(50):
        rate = mean * -math.expm1(-rate)
    once = rate * math.exp(-rate) / -math.expm1(-rate)
    return float(np.mean(seen == 1)) <= DRAWN_ANEW * once


def _most_copies(rare: _Distinct) -> int:
    """Return how often a row may appear by design: the upper tail of most rows, carried on.

    Numbers of copies that are drawn fall off at least as fast from the 95 % on as before.
    """
    middle, high = np.quantile(rare.seen, [0.5, 0.95])
    decades = np.log10(max(0.05 * len(rare.seen) * rare.scale, 1.0)) + TAIL
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


def _find_uneven(network: BayesianNetwork, rare: _Distinct) -> UnevenCopies | None:
    """Return the state whose rows are nearly all repeated, far more often than all others."""
    best, found = 0.0, None
    n, total = len(rare.seen), float(rare.seen.sum())
    least = max(LEAST, GROUP * n)
    repeated = np.flatnonzero(rare.seen > 1)
    more = (rare.seen[repeated] - 1).astype(np.float64)
    if len(repeated) < ALIKE * least:
        return None
    for i, node in enumerate(network.nodes):
        states, card = rare.codes[:, i], len(network.states[node])
        inside = np.bincount(states, minlength=card + 1)[:card].astype(np.float64)
        here = states[repeated]
        again = np.bincount(here, minlength=card + 1)[:card] / np.maximum(inside, 1)
        mean = 1 + np.bincount(here, more, card + 1)[:card] / np.maximum(inside, 1)
        rest = (total - inside * mean) / np.maximum(n - inside, 1)
        is_uneven = (again >= ALIKE) & (mean >= UNEVEN * rest)
        is_uneven &= (inside >= least) & (n - inside >= least)
        contrast = np.where(is_uneven, inside * (n - inside) * (mean - rest) ** 2, 0.0)
        k = int(contrast.argmax())
        if contrast[k] > best:
            best = float(contrast[k])
            state = str(network.states[node][k])
            found = UnevenCopies(node, state, float(mean[k]), float(rest[k]))
    return found
