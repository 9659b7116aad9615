"""Classes that are spoilt rows after all: what was done to them is seen.

A class of the good population may break as few tables, and bring as little evidence, as a few
columns that are stuck or that show their neighbours' values. But it differs from other rows in
more than that: rows that are just like good ones but for such columns were made.
"""

from __future__ import annotations

from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import RowVector
from robustbn._core.tuning import Tuning
from robustbn._learn.causes.moves import find_shifted
from robustbn._learn.causes.pairs import Pairs
from robustbn._learn.causes.sides import Sides, spread
from robustbn._learn.causes.suspects import find_stuck

LEAST_COMPARED = 50  # rows of a class, and good rows: fewer say nothing
MOST_COMPARED = (1_500, 4_000)  # rows of a class, and good rows
States = dict[int, int]  # of columns that are stuck
BY_THEMSELVES = 0.2  # share of nats that states of shifted columns bring, or it is not tried


def find_spoilt(
    layout: Layout,
    codes: Codes,
    base: RowVector,
    shares: RowVector,
    is_bad: NDArray[np.bool_],
    tuning: Tuning,
) -> NDArray[np.bool_]:
    """Return which classes are good rows with some columns stuck or shifted; shape (K,).

    Parameters
    ----------
    codes, base : of rows, and the weight of each.
    shares : of each row in the main class and in each component; shape (n, 1 + K).
    is_bad : components that are bad rows by what they bring; they are not looked at.
    """
    good, share_of = 1 - shares[:, 1:][:, is_bad].sum(axis=1), shares[:, 1:].mean(axis=0)

    @cache
    def try_class(k: int) -> list[tuple[float, States]]:
        of_class = shares[:, 1 + k]
        sides = _set_beside(layout, codes, base * of_class, base * (good - of_class))
        return [] if sides is None else _try(sides)

    found, classes = np.zeros(len(is_bad), bool), np.flatnonzero(~is_bad).tolist()
    for k in classes:
        if share_of[k] > tuning.cause_judges_share:
            continue
        seem_made = [states for share, states in try_class(k) if share >= tuning.cause_judges]
        if seem_made:  # only then it matters what the other classes are
            others = [states for j in classes if j != k for _, states in try_class(j)]
            found[k] = any(
                not any(_vary_as_one(states, each) for each in others) for states in seem_made
            )
    return found


def _try(sides: Sides) -> list[tuple[float, States]]:
    """Return what causes explain of a class: the share of its nats, and where it is stuck."""
    whole = max(sides.unexplained, 1e-9)
    suspects = chain(
        find_stuck(sides, has_defaults=False), find_shifted(sides, BY_THEMSELVES * whole)
    )
    return [(s.trial.total / whole, s.details.get("states", {})) for s in suspects]


def _vary_as_one(states: States, others: States) -> bool:
    """Return whether columns are stuck here at some states and in another class at others.

    They are then a block that takes several values as a whole, as answers that exclude each other.
    """
    shared = states.keys() & others.keys()
    return len(shared) > 1 and any(states[c] != others[c] for c in shared)


def _set_beside(
    layout: Layout, codes: Codes, of_class: RowVector, of_good: RowVector
) -> Sides | None:
    some = spread(np.flatnonzero(of_class > 0.01), MOST_COMPARED[0])
    good = spread(np.flatnonzero(of_good > 0.5), MOST_COMPARED[1])
    if min(len(some), len(good)) < LEAST_COMPARED:
        return None
    good_codes, trust = np.asfortranarray(codes[good]), of_good[good].astype(np.float64)
    return Sides(
        layout.cards,
        layout.families,
        np.asfortranarray(codes[some]),
        of_class[some].astype(np.float64),
        good_codes,
        trust,
        Pairs(layout.cards, good_codes, trust),
        np.random.default_rng(0),
    )
