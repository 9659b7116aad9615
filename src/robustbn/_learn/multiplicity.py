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
from robustbn._core.protocols import Rows, RowVector, Survey, Vector
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
class _Some:
    """About so many rows as are looked at, each with all its copies: by fingerprints."""

    rows: NDArray[np.int64]  # which they are
    # first, place, seen: different rows: the first of each, which of them each row is, how often
    first: NDArray[np.int64]
    place: NDArray[np.int64]
    seen: NDArray[np.int64]

    @classmethod
    def of(cls, study: Study) -> _Some:
        """Choose rows, and find those that are equal."""
        share = LOOKED_AT / max(study.n_rows, 1)
        if share >= 1:
            rows = np.arange(study.n_rows)
        else:  # the low halves, on machines that are little-endian, as all of ours are
            rows = np.flatnonzero(study.prints.view(np.uint32)[::2] < np.uint32(share * 2**32))
        prints = study.prints[rows]
        _, *found = np.unique(prints, return_index=True, return_inverse=True, return_counts=True)
        return cls(rows, *found)


@dataclass(frozen=True, eq=False)
class _Rare:
    """Different rows that should appear once, the least likely first."""

    codes: Codes  # of each; shape (n, d)
    seen: NDArray[np.int64]  # how often each appears
    weight: Vector  # what its copies weigh together
    expected: Vector  # how often it should appear
    scale: float  # how many different rows each of them stands for

    @property
    def most_copies(self) -> int:
        """How often a row may appear by design: the upper tail of most rows, carried on."""
        middle, high = np.quantile(self.seen, [0.5, 0.95])
        decades = np.log10(max(0.05 * len(self.seen) * self.scale, 1.0)) + TAIL
        return int(np.ceil(high + (high - middle + 1) * decades))

    def find_effect(self, most: int) -> float:
        """Return how many rows say as much as one, beyond chance; of at most `most` copies."""
        within = self.weight <= most
        weight, expected = self.weight[within], self.expected[within]
        return _find_effect(weight) - float(weight @ expected / max(weight.sum(), 1.0))


def heed_design(network: BayesianNetwork, study: Study) -> Study:
    """Return a study that takes copies for what the caller says, or the rows show, they are."""
    copies, scale = study.config.copies, study.scale
    if copies == "distrust":
        return study
    some = _Some.of(study)
    study, divisor = _thin(study, some)
    rare = _find_rare(study, some if divisor == 1 else _Some.of(study))
    is_alike = rare is not None and _are_alike(study, rare)
    is_counted = divisor > 1 or is_alike or copies == "count"
    effect, most = _find_effect(study.given), 0
    if rare is not None and (is_alike or copies == "count"):
        most = rare.most_copies
        effect = max(effect, rare.find_effect(most))
    effect = effect if effect >= EFFECT else 1.0
    uneven = None if rare is None else _find_uneven(network, rare)
    if not (is_counted or uneven or effect > 1):
        return study
    found = Repetition(
        is_design=divisor > 1 or is_alike,
        is_counted=is_counted,
        share=1.0 if divisor > 1 else 0.0 if rare is None else _share_repeated(rare.seen),
        divisor=divisor,
        effect=1 + (effect * divisor - 1) * scale,
        uneven=uneven,
    )
    most = ANY_NUMBER if copies == "count" else most
    return replace(study, repetition=found, effect=effect, most_copies=most)


def _thin(study: Study, some: _Some) -> tuple[Study, int]:
    """Return the rows once each, if all are there k times, 2k times and so on; and k."""
    if np.gcd.reduce(some.seen) <= 1 or (study.given != study.given[0]).any():
        return study, 1
    *_, seen = np.unique(study.prints, return_counts=True)
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


def _find_rare(study: Study, some: _Some) -> _Rare | None:
    """Return rows that should appear once; None if too few do, or too few rows are repeated."""
    survey, seen = study.survey, some.seen
    if 1 - np.count_nonzero(seen == 1) / max(len(some.rows), 1) < NOTICED:
        return None
    codes = take_rows(survey.codes, some.rows[some.first])
    rows = study.load(codes)
    log_q = _log_likelihood(study, rows)
    if rows.layout.holed and not study.knows_patterns:
        log_q += np.log(share_patterns(rows.layout, survey.codes[some.rows], some.first))
    expected = study.n_rows * np.exp(log_q)
    is_rare = expected <= EXPECTED
    if np.count_nonzero(is_rare) < STRATA * LEAST:
        return None
    weight = np.bincount(some.place, study.given[some.rows], len(seen)).astype(np.float64)
    scale = study.n_rows / len(some.rows)
    rare = np.flatnonzero(is_rare)[np.argsort(expected[is_rare], kind="stable")]
    return _Rare(codes[rare], seen[rare], weight[rare], expected[rare], scale)


def _log_likelihood(study: Study, rows: Rows) -> Vector:
    """Return the log-probability of rows under the tables of all."""
    q = normalise_counts(rows.layout, study.survey.counts, 1e-3)
    return rows.project(log_probabilities(q)[:, None])[:, 0].astype(np.float64)


def _share_repeated(seen: NDArray[np.int64]) -> float:
    return 1 - float(np.count_nonzero(seen == 1) / seen.sum())


def _are_alike(study: Study, rare: _Rare) -> bool:
    """Whether rows that should appear once are enough, and repeated from rare to less rare."""
    share = float(rare.seen.sum()) * rare.scale / study.n_rows
    is_enough = share >= RARE or (_is_drawn_anew(rare.seen) and _is_expected(study, share))
    parts = np.array_split(rare.seen, STRATA)
    return is_enough and min(map(_share_repeated, parts)) > SHARE


def _is_expected(study: Study, share: float) -> bool:
    """Whether rows that should appear once are as many as the tables say, and not more."""
    layout, n = study.survey.rows.layout, min(study.n_rows, LOOKED_AT)
    drawn = study.draw([(normalise_counts(layout, study.survey.counts, 1e-3), n)])
    expected = study.n_rows * np.exp(_log_likelihood(study, drawn))
    return share <= MORE_RARE * float(np.mean(expected <= EXPECTED))


def _is_drawn_anew(seen: NDArray[np.int64]) -> bool:
    """Whether rows are there as often as if a table had been drawn from with replacement."""
    # Numbers of copies are then those of a Poisson distribution without its zeros. Where somebody
    # copied some rows, far more rows are there once than a distribution of that mean has.
    mean = float(seen.mean())
    rate = max(mean - 1, 1e-6)
    for _ in range(50):
        rate = mean * -math.expm1(-rate)
    once = rate * math.exp(-rate) / -math.expm1(-rate)
    return float(np.mean(seen == 1)) <= DRAWN_ANEW * once


def _find_effect(weight: RowVector) -> float:
    """Return how many rows say as much as one: `sum of w^2 / sum of w` in units of a row."""
    if is_even(weight):
        return 1.0
    weight = weight.astype(np.float64)
    total = float(weight.sum())
    return float(weight @ weight) / total if total > 0 else 1.0


def _find_uneven(network: BayesianNetwork, rare: _Rare) -> UnevenCopies | None:
    """Return the state whose rows are nearly all repeated, far more often than all others."""
    best, found = 0.0, None
    n, total = len(rare.seen), float(rare.seen.sum())
    least = max(LEAST, GROUP * n)
    repeated = np.flatnonzero(rare.seen > 1)
    more = (rare.seen[repeated] - 1).astype(np.float64)
    if len(repeated) < ALIKE * least:
        return None
    for node, states in zip(network.nodes, np.asfortranarray(rare.codes).T, strict=True):
        here, labels = states[repeated], network.states[node]
        again = np.bincount(here, minlength=len(labels))[: len(labels)]
        for k in np.flatnonzero(again >= ALIKE * least).tolist():
            inside = int(np.count_nonzero(states == k))
            if again[k] / inside < ALIKE or not least <= inside <= n - least:
                continue
            mean = 1 + float(more[here == k].sum()) / inside
            rest = (total - inside * mean) / (n - inside)
            contrast = inside * (n - inside) * (mean - rest) ** 2
            if mean >= UNEVEN * rest and contrast > best:
                best, found = contrast, UnevenCopies(node, str(labels[k]), mean, rest)
    return found
