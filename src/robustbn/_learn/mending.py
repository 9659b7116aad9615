"""Labels that are wrong in a table, and what they should be: of any number of states.

Every label of a column is a state, an empty one too. Columns that determine each other have tables
with few rows a configuration: a row must not vouch for itself, and many errors together look like
truth, so the sweeps begin with a high rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import NO_CELLS, CellModel, States, WrongCells
from robustbn._learn.cells import FIRST_RATE, SETTLED, Chain, learn_cells, look_first, pays_at_first
from robustbn._learn.gain import find_gain
from robustbn._rows.cells import judge_cells

CHAIN = Chain(n_sweeps=24, n_burn=12, start=0.4, n_held=6, is_drawn=True)
FIRST_VOTE, VOTE_STEPS = 0.3, 10  # rate of wrong labels at first, and how often it is found again
LEAST_GROUP = 20  # rows of a context's value, on average: fewer tell no rate
CLOSED = 0.5  # of what a column without an error would lose by errors: one that loses more has none


@dataclass(frozen=True, eq=False)
class Mended:
    """Wrong labels of a table.

    Parameters
    ----------
    labels : of each column, in the order of their states.
    wrong : the cells that are likely to be wrong, as states.
    model : what true labels look like; None if nothing speaks for errors.
    by : the context whose values have rates of errors of their own; None if none pays.
    """

    labels: tuple[tuple[str, ...], ...]
    wrong: WrongCells
    model: CellModel | None
    by: str | None = None


def mend_labels(
    columns: Sequence[Sequence[str]],
    parents: tuple[tuple[int, ...], ...],
    *,
    by: Sequence[str] | None = None,
    context: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    kernels: str | None = None,
    n_threads: int | None = None,
) -> Mended:
    """Return the labels that are likely to be wrong, and the likeliest others.

    Parameters
    ----------
    columns : labels of each node.
    parents : of each node, by number.
    by : a label for each row, such as its source: rates of errors are those of its rows.
    context : columns of which the best is such, if its rates explain more than they cost.
    """
    coded = [_code(column) for column in columns]
    labels = tuple(names for _, names in coded)
    seen: States = np.stack([codes for codes, _ in coded], axis=1)
    cards, chosen = tuple(map(len, labels)), None
    groups = None if by is None else _code(by)[0]
    gains = look_first(cards, parents, seen, kernels, n_threads).gains
    if not pays_at_first(gains, len(seen)):
        return Mended(labels, NO_CELLS, None)
    lost = len(seen) * FIRST_RATE * (1 - 1 / np.array(cards))
    learn = partial(
        learn_cells, cards, parents, seen, CHAIN, is_open=gains > -CLOSED * lost, seed=seed,
        kernels=kernels, n_threads=n_threads,
    )  # fmt: skip
    learned = learn(groups=groups)
    if by is None:
        chosen, groups = _choose_context(learned.is_wrong.sum(axis=1), len(cards), context or {})
        learned = learned if groups is None else learn(groups=groups)
    judged = judge_cells(
        learned.model,
        seen,
        learned.truth,
        groups=groups,
        calm=SETTLED,
        key=seed,
        kernels=kernels,
        n_threads=n_threads,
    )
    return Mended(labels, judged.named, learned.model, chosen)


def _choose_context(
    n_wrong: NDArray[np.int64], n_columns: int, context: Mapping[str, Sequence[str]]
) -> tuple[str | None, NDArray[np.int32] | None]:
    """Return the column whose values tell best how often cells are wrong, and its groups of rows.

    None if no rates of groups explain more than they cost. The wrong cells were drawn by one rate
    for all rows, which hides some of the differences: what is gained is gained at least.

    Parameters
    ----------
    n_wrong : wrong cells of each row; shape (n,).
    """
    best = 0.0
    chosen: tuple[str | None, NDArray[np.int32] | None] = (None, None)
    for name, column in context.items():
        groups, values = _code(column)
        if not 1 < len(values) <= len(column) / LEAST_GROUP:
            continue
        wrong = np.bincount(groups, n_wrong)
        cells = np.bincount(groups) * float(n_columns)
        told = _describe(wrong, cells).sum() - _describe(wrong.sum(), cells.sum())
        gain = find_gain(told, len(values) - 1, cells.sum(), len(context))
        if gain > best:
            best, chosen = float(gain), (name, groups)
    return chosen


def _describe(wrong: Any, cells: Any) -> Any:
    """Return the log-likelihood of so many wrong cells at their own rate; numbers or arrays."""
    rate = np.clip(wrong / np.maximum(cells, 1), 1e-12, 1 - 1e-12)
    return wrong * np.log(rate) + (cells - wrong) * np.log1p(-rate)


def mend_by_votes(
    columns: Sequence[Sequence[str]], parents: tuple[tuple[int, ...], ...], key: int
) -> Mended:
    """Return the labels that rows of the same key outvote: each key has one value in a column.

    Looked at are the columns with the key among their parents. A row shows the key's value or, with
    the rate of its column, any label, so a label is the true one in proportion to
    `((1 - rate) r / rate) ** rows` that show it, of r labels. An empty cell has no vote, and is
    filled. Sources that copy each other count as if they did not: the probabilities are too high.
    """
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
