"""Rows whose cells may be wrong: counted, swept, and judged part by part."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from math import prod
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import (
    NO_CELLS,
    CellCounts,
    CellModel,
    FoundCells,
    Lists,
    States,
    Swept,
    WrongCells,
    find_hashed,
)
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.trust import is_even
from robustbn._rows.kernels import choose_kernels

MOST_TRIED = 32  # states: of a node with more, only those seen beside its neighbours are tried
MOST_NEARBY = 5  # states seen beside a neighbour's: the commonest
# Of a row; most settle in the first. Six and two gave the same tables and as many right changes.
JUDGING_SWEEPS, JUDGING_BURN = 4, 1
TIMES_HOLED = 4  # so many more, where what is missing is drawn, too
# Of a cell to be drawn and named: that it is wrong is likelier than not. Others are only counted.
LEAST_PROBABILITY = 0.5
NAMED_AT_ONCE = 2**16  # cells that are compared with the others of their rows: bounds memory
NO_KEYS = np.empty(0, np.uint64)


class SweepCells(Protocol):
    """Draws true values of rows."""

    def __call__(
        self, model: CellModel, seen: States, truth: States | None = None, **settings: Any
    ) -> Swept:
        """Return what the sweeps give; they begin with `truth`, or with what is recorded."""


def load_sweep(kernels: str | None) -> SweepCells:
    """Return the kernel by the name of the kernels; NumPy's for kernels that have none."""
    name = f"robustbn._rows.kernels.{choose_kernels(kernels)}_cells"
    if importlib.util.find_spec(name) is None:
        name = "robustbn._rows.kernels.numpy_cells"
    return cast("SweepCells", importlib.import_module(name).sweep_cells)


# --- counting -----------------------------------------------------------------------------------


def count_cells(
    cards: tuple[int, ...], parents: tuple[tuple[int, ...], ...], truth: States
) -> CellCounts:
    """Return how often true values occur together, in rows that show all of a family.

    O(n d) time, and sorting for hashed tables.
    """
    hashed, parts, states = find_hashed(cards, parents), [], []
    by_column = np.asfortranarray(truth)
    is_hole = by_column >= np.array(cards)
    has_holes = bool(is_hole.any())
    for i, card in enumerate(cards):
        shown, own = by_column, by_column[:, i]
        if has_holes:
            shown = by_column[~is_hole[:, [*parents[i], i]].any(axis=1)]
            own = own[~is_hole[:, i]]
        cell, size = _key(cards, (*parents[i], i), shown), prod(cards[p] for p in parents[i])
        if hashed[i]:
            parts.append([_tally(cell), _tally(_key(cards, parents[i], shown))])
        else:
            counts = np.bincount(cell.view(np.int64), minlength=size * card).astype(np.float64)
            parts.append([(NO_KEYS, counts), (NO_KEYS, counts.reshape(size, card).sum(axis=1))])
        states.append(np.bincount(own, minlength=card))
    cells, configs = zip(*parts, strict=True)
    return CellCounts(*_join(cells), *_join(configs), np.concatenate(states).astype(np.float64))


def _key(cards: tuple[int, ...], columns: tuple[int, ...], truth: States) -> NDArray[np.uint64]:
    """Return the joint state of some columns, modulo 2^64; shape (n,)."""
    at = np.zeros(len(truth), np.uint64)
    for p in columns:
        at *= np.uint64(cards[p])
        at += truth[:, p].astype(np.uint64)
    return at


Tally = tuple[NDArray[np.uint64], Vector]


def _tally(keys: NDArray[np.uint64]) -> Tally:
    """Return different keys and how often each occurs."""
    found, seen = np.unique(keys, return_counts=True)
    return found, seen.astype(np.float64)


def _join(parts: tuple[Tally, ...]) -> tuple[NDArray[np.int64], NDArray[np.uint64], Vector]:
    start = np.concatenate([[0], np.cumsum([len(counts) for _, counts in parts], dtype=np.int64)])
    keys = NO_KEYS
    if any(len(keys) for keys, _ in parts):
        keys = np.zeros(start[-1], np.uint64)
        for (some, _), first in zip(parts, start, strict=False):
            keys[first : first + len(some)] = some
    return start, keys, np.concatenate([counts for _, counts in parts])


def list_cells(model: CellModel, i: int) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """Return, of the cells of a node that were seen: counts, those of configurations, states."""
    counts, card = model.counts, model.cards[i]
    cells = counts.cells[counts.cell_start[i] : counts.cell_start[i + 1]]
    configs = counts.configs[counts.config_start[i] : counts.config_start[i + 1]]
    if not model.is_hashed[i]:
        at = np.flatnonzero(cells)
        return cells[at], configs[at // card], at % card
    keys = counts.cell_keys[counts.cell_start[i] : counts.cell_start[i + 1]]
    config_keys = counts.config_keys[counts.config_start[i] : counts.config_start[i + 1]]
    states = (keys % np.uint64(card)).astype(np.int64)
    place = np.searchsorted(config_keys, (keys - states.astype(np.uint64)) // np.uint64(card))
    return cells, configs[np.minimum(place, len(configs) - 1)], states


def find_nearby(
    cards: tuple[int, ...], parents: tuple[tuple[int, ...], ...], truth: States
) -> tuple[tuple[int, ...], tuple[int, ...], Lists]:
    """Return which states of nodes with many are tried beside each state of each neighbour."""
    nodes, columns, sizes, states = [], [], [0], []
    for j, card in enumerate(cards):
        children = [i for i, of in enumerate(parents) if j in of]
        for b in (*parents[j], *children) if card > MOST_TRIED else ():
            pairs, seen = np.unique(_key(cards, (b, j), truth), return_counts=True)
            beside, state = np.divmod(pairs.astype(np.int64), card)
            order = np.lexsort((state, -seen, beside))
            beside, state = beside[order], state[order]
            first = np.searchsorted(beside, np.arange(cards[b]))
            is_kept = np.arange(len(beside)) - first[beside] < MOST_NEARBY
            nodes.append(j)
            columns.append(b)
            states.append(state[is_kept].astype(np.int32))
            sizes += np.bincount(beside[is_kept], minlength=cards[b]).tolist()
    joined = np.concatenate(states) if states else np.empty(0, np.int32)
    return tuple(nodes), tuple(columns), Lists(np.cumsum(sizes, dtype=np.int64), joined)


# --- judging ------------------------------------------------------------------------------------


def judge_cells(
    model: CellModel,
    seen: States,
    truth: States | None = None,
    *,
    calm: Vector | float = LEAST_PROBABILITY,
    holed: bool = False,
    kernels: str | None = None,
    **settings: Any,
) -> Swept:
    """Return what is found of cells; of each row by the model alone. O(n d) time.

    truth : states of rows that the model counts: each row's own count is taken out; None for rows
        that it does not know.
    calm : probability: a cell that is less likely to be wrong is not drawn.
    holed : whether values may be missing.
    settings : of the sweeps: groups, weights, key, n_threads.
    """
    times = TIMES_HOLED if holed else 1
    swept = load_sweep(kernels)(
        model,
        seen,
        truth,
        own=0.0 if truth is None else 1.0,
        calm=calm,
        n_sweeps=times * JUDGING_SWEEPS,
        n_burn=times * JUDGING_BURN,
        least=LEAST_PROBABILITY,
        asks_gains=False,
        **settings,
    )
    return replace(swept, named=WrongCells.join([swept.named]))


def name_wrong(
    model: CellModel,
    swept: Swept,
    groups: NDArray[np.int32] | None,
    kernels: str | None,
    n_threads: int | None,
) -> WrongCells:
    """Return the cells of judged rows that are likely to be wrong, whichever others may be instead.

    Where columns determine each other, an error in one is explained by a change of another, too,
    and cells that are drawn one by one keep the change that was drawn first. So each cell that was
    named is compared with all others of its row, given that no more than one of them is wrong:

        P = w[j] / (1 + sum over i of w[i]),

    with the odds w of every cell to be wrong, all others as they were drawn but j as recorded.
    O(d) time for each cell.
    """
    named, parts = swept.named, [NO_CELLS]
    for first in range(0, len(named), NAMED_AT_ONCE):
        some = named.picked(slice(first, first + NAMED_AT_ONCE))
        rows, at = swept.truth[some.rows], (np.arange(len(some)), some.columns)
        rows[at] = some.seen
        of_rows = None if groups is None else groups[some.rows]
        wrong = load_sweep(kernels)(
            model, rows, groups=of_rows, own=0.0, calm=1.0, asks_gains=False, asks_wrong=True,
            n_threads=n_threads,
        ).wrong  # fmt: skip
        right = np.maximum(1 - np.asarray(wrong), np.finfo(np.float32).eps)
        odds = np.asarray(wrong) / right
        p = some.probability * (1 + odds[at]) / (1 + odds.sum(axis=1, dtype=np.float64))
        parts.append(replace(some, probability=p.astype(np.float32)))
    return WrongCells.join(parts).above(LEAST_PROBABILITY)


def count_true(
    found: FoundCells, kernels: str | None, n_threads: int | None, rows: Rows, weights: RowVector
) -> Vector:
    """Return the weight of the rows on each cell, as if no cell were wrong; shape (M,).

    Without a pass, if they are the surveyed rows and all of them are trusted.
    """
    if found.counts is not None and rows.n_rows == found.n_surveyed and is_even(weights):
        return found.counts
    given = np.asarray(weights, np.float64)
    model, parts = found.place(rows.n_rows)
    swept = judge_cells(
        model,
        rows.unpack(),
        groups=parts,
        weights=given,
        holed=bool(rows.layout.holed),
        key=found.seed,
        kernels=kernels,
        n_threads=n_threads,
    )
    return found.correct(swept.counts, float(given.sum()))
