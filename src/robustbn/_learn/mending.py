"""Labels that are wrong in a table, and what they should be: of any number of states.

Every label of a column is a state, an empty one too. Columns that determine each other have tables
with few rows a configuration: a row must not vouch for itself, and many errors together look like
truth, so the sweeps begin with a high rate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import NO_CELLS, CellModel, States, WrongCells
from robustbn._core.protocols import Vector
from robustbn._learn.cells import (
    FIRST_RATE,
    SETTLED,
    Chain,
    Learned,
    learn_cells,
    look_first,
    pays_at_first,
)
from robustbn._learn.error_places import PlaceColumn, choose_places
from robustbn._rows.cells import judge_cells

CHAIN = Chain(n_sweeps=24, n_burn=12, start=0.4, n_held=6, is_drawn=True)
FIRST_VOTE, VOTE_STEPS = 0.3, 10  # rate of wrong labels at first, and how often it is found again
NATURAL = 1.0  # labels that occur once for each that occurs twice: 0.6 to 4 in clean columns
MOST_SINGLE = 0.5  # of the rows with a label that occurs once, from which labels name rows
COMPARED = 24  # labels, whose pairs say how alike labels are by chance
DEGREES = 5  # of likeness: a few labels tell no more
CLOSED = 0.5  # of what a column without an error would lose by errors: one that loses more has none


@dataclass(frozen=True, eq=False)
class Mended:
    """Wrong labels of a table."""

    labels: tuple[tuple[str, ...], ...]  # of each column, in the order of their states
    wrong: WrongCells  # the cells that are likely to be wrong, as states
    model: CellModel | None  # what true labels look like; None if nothing speaks for errors
    # the context whose values have rates of errors of their own; None if none pays
    by: str | None = None


def mend_labels(
    columns: Sequence[Sequence[str]],
    parents: tuple[tuple[int, ...], ...],
    *,
    context: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    n_threads: int | None = None,
) -> Mended:
    """Return the labels that are likely to be wrong, and the likeliest others.

    context : labels of the rows, such as their source, by column: the values of the best column
        have rates of errors of their own, if these explain more than they cost.
    """
    coded = [_code(column) for column in columns]
    labels = tuple(names for _, names in coded)
    seen: States = np.stack([codes for codes, _ in coded], axis=1)
    cards, chosen, groups = tuple(map(len, labels)), None, None
    gains = look_first(cards, parents, seen, None, n_threads).gains
    if not pays_at_first(gains, len(seen)):
        return Mended(labels, NO_CELLS, None)
    lost = len(seen) * FIRST_RATE * (1 - 1 / np.array(cards))
    learn = partial(
        learn_cells, cards, parents, seen, CHAIN, is_open=gains > -CLOSED * lost, seed=seed,
        n_threads=n_threads,
    )  # fmt: skip
    learned = learn()
    if context:
        tried = [PlaceColumn(codes, len(values)) for codes, values in map(_code, context.values())]
        places = choose_places(learned.is_wrong.sum(axis=1), len(cards), tried)
        if places is not None:
            chosen, groups = list(context)[places.column], tried[places.column].codes
            learned = learn(groups=groups)
    judged = judge_cells(
        learned.model, seen, learned.truth, groups=groups, calm=SETTLED, key=seed,
        n_threads=n_threads,
    )  # fmt: skip
    return Mended(labels, doubt_singles(judged.named, learned, labels), learned.model, chosen)


def doubt_singles(
    wrong: WrongCells, learned: Learned, labels: tuple[tuple[str, ...], ...]
) -> WrongCells:
    """Return wrong cells with what else is known of labels that occur once."""
    # No other row vouches for such a label, be it a misspelling or a rare one: the sweeps take it
    # for an error wherever another label fits its neighbours. But where many true labels occur
    # twice, many occur once, too. A misspelling is like the label that it stands for, or has an odd
    # form. Where most rows have a label of their own, it names them, and nothing tells that it is
    # wrong.
    p = wrong.probability.astype(np.float64)
    for j, names in enumerate(labels):
        n_shown, n_true = (
            np.bincount(states[:, j], minlength=len(names))
            for states in (learned.seen, learned.truth)
        )
        which = np.flatnonzero(wrong.columns == j)
        which = which[n_shown[wrong.seen[which]] == 1]
        if not len(which):
            continue
        if np.count_nonzero(n_shown == 1) > MOST_SINGLE * len(learned.seen):
            p[which] = 0
            continue
        pairs = zip(wrong.seen[which].tolist(), wrong.likely[which].tolist(), strict=True)
        true = [names[v] for v in np.flatnonzero(n_true > 1)]
        spelt = _Spelling(Counter(map(_form, true)))
        looks = [spelt.compare(names[a], names[b], 0) for a, b in pairs]
        some = true[:: -(-len(true) // COMPARED) or 1]
        by_chance = [spelt.compare(a, b, 1) for a, b in combinations(some, 2)]
        once, twice = np.count_nonzero(n_shown == 1), np.count_nonzero(n_true == 2)
        at_first = (once + 0.5) / (NATURAL * twice + 0.5)
        odds = at_first * (_shares(looks) / _shares(by_chance))[looks]
        p[which] *= odds / (1 + odds)
    doubted = replace(wrong, probability=p.astype(np.float32))
    return doubted.picked(np.argsort(-p, kind="stable"))


@dataclass(frozen=True)
class _Spelling:
    """How the true labels of a column are spelt."""

    forms: Counter[str]  # how many of them have each form

    def compare(self, label: str, other: str, own: int) -> int:
        """Return how alike a label and another are, and its form; `own`: 1 if its form is known."""
        degree = int(SequenceMatcher(None, label, other, autojunk=False).ratio() * DEGREES)
        is_odd = self.forms[_form(label)] <= own
        return min(degree, DEGREES - 1) + DEGREES * is_odd


def _form(label: str) -> str:
    """Return a label with a letter for each run of letters, and a digit for each of digits."""
    return re.sub(r"[0-9]+", "0", re.sub(r"[^\W\d_]+", "a", label))


def _shares(looks: list[int]) -> Vector:
    """Return how often labels look in each way; no share is 0."""
    n = np.bincount(np.array(looks, int), minlength=2 * DEGREES) + 0.5
    shares: Vector = n / n.sum()
    return shares


def mend_by_votes(
    columns: Sequence[Sequence[str]], parents: tuple[tuple[int, ...], ...], key: int
) -> Mended:
    """Return the labels that rows of the same key outvote: each key has one value in a column."""
    # Looked at are the columns with the key among their parents. A row shows the key's value or,
    # with the rate of its column, any label, so a label is the true one in proportion to `((1 -
    # rate) r / rate) ** rows` that show it, of r labels. An empty cell has no vote, and is filled.
    # Sources that copy each other count as if they did not: the probabilities are too high.
    coded = [_code(column) for column in columns]
    labels = tuple(names for _, names in coded)
    of, n_keys = coded[key][0].astype(np.int64), len(labels[key])
    parts = [NO_CELLS]
    for j in (j for j, above in enumerate(parents) if key in above and len(labels[j]) > 1):
        seen, card = coded[j][0], len(labels[j])
        shows = np.array([bool(label.strip()) for label in labels[j]])[seen]
        pairs, votes = np.unique(of[shows] * card + seen[shows], return_counts=True)
        owner, rate, n_shown = pairs // card, FIRST_VOTE, max(int(shows.sum()), 1)
        for _ in range(VOTE_STEPS):
            told = votes * np.log((1 - rate) * card / rate)
            most = np.full(n_keys, -np.inf)
            np.maximum.at(most, owner, told)
            p = np.exp(told - most[owner])
            p /= np.bincount(owner, p, n_keys)[owner]
            rate = float(np.clip(votes @ (1 - p) / n_shown, 1 / n_shown, 0.5))
        order = np.argsort(p, kind="stable")
        likely, sure = np.full(n_keys, -1, np.int32), np.zeros(n_keys, np.float32)
        likely[owner[order]] = (pairs % card)[order]  # the last one stays: the likeliest
        sure[owner[order]] = p[order]
        rows = np.flatnonzero((likely[of] >= 0) & (likely[of] != seen) & (sure[of] >= 0.5))
        at = of[rows]
        parts.append(WrongCells(rows, np.full(len(rows), j), seen[rows], likely[at], sure[at]))
    return Mended(labels, WrongCells.join(parts), None)


def _code(column: Sequence[str]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return the state of each label, and the labels in the order in which they first occur."""
    places: dict[str, int] = {}
    codes = np.fromiter((places.setdefault(x, len(places)) for x in column), np.int32, len(column))
    return codes, tuple(places)
