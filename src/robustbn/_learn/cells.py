"""Learn how often cells are wrong: stochastic expectation-maximisation.

A sweep draws the true value of every cell given all others (`_rows/cells.py`); tables, rates and
smoothing follow from what was drawn; after some sweeps they move about what explains the rows best,
and what is left is averaged.

All columns have one rate unless a column's own pays: alone, the rate of a column that its
neighbours hardly determine cannot be told from a flatter table. Tables are smoothed as much as rows
that are left out one at a time ask for: where parents determine a state hardly at all, where rare
combinations are usual by more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import CellModel, States, Swept, sum_counts
from robustbn._core.protocols import Vector
from robustbn._learn.gain import find_gain
from robustbn._rows.cells import count_cells, find_nearby, list_cells, load_sweep

SMOOTHING = np.exp(np.linspace(np.log(3e-3), np.log(300.0), 24))  # rows that may smooth a table
AT_ONCE = 2**14  # cells of a table whose smoothing is tried at once: bounds memory
SMOOTHED_AT = (0, 3, 8)  # sweeps after which the smoothing is chosen again, and at the last burnt
Sweep = Callable[..., Swept]
Groups = NDArray[np.int32] | None  # of rows; None if there is one group only
LEAST_RATE, LARGEST_RATE = 1e-7, 0.9  # of errors in a column
FIRST_RATE = 0.003  # of errors in rows as they are: rare combinations would need more
FIRST_FREE = 4.0  # free numbers that errors in labels as they are must pay for
RATES = (3e-3, 1e-3, 3e-4, 1e-2, 3e-2)  # of errors: one must explain rows as they are
SMALLEST = 1e-6  # probability of a cell to be right
TRIED = (1e-4, 1e-3, 0.01, 0.04, 0.16)  # rates that are tried for each column by itself
INNER = 3, 1  # sweeps between two looks at tables and rates, and those of them that do not count
LONG = 10  # sweeps: in fewer, columns have one rate
DIFFERENT = 3.0  # times the rate of all: a column's own is at least so much higher or lower
CALM = 0.1  # probability: a cell that is less likely to be wrong need not be drawn
SETTLED = 1e-3  # the same where tables have few rows, and count what was drawn
FARTHEST = 4.0  # times a step that is leapt at most
DRAWS_OF_HOLES = 4  # sweeps until what is missing hardly depends on where it began
STRENGTH = 10.0  # errors: what all rows say of the rate of a group, which may have few


@dataclass(frozen=True)
class Chain:
    """How long to sweep, and from what rate."""

    # n_sweeps, n_burn: all sweeps, and those that are not averaged
    n_sweeps: int
    n_burn: int
    # start, n_held: rate at first, and the sweeps that it is held for. A high one tries every
    # explanation first: for tables whose columns determine each other, in which many errors
    # together look like truth.
    start: float = 0.02
    n_held: int = 0
    # whether tables count the true values that were drawn, and not what is expected of them: where
    # a configuration has few rows, only what was drawn can be taken out again
    is_drawn: bool = False


@dataclass(frozen=True, eq=False)
class Learned:
    """What sweeps over rows end with."""

    model: CellModel  # with the counts of the last sweep, and mean rates
    # seen, truth: recorded values, and true ones drawn last; shape (n, d)
    seen: States
    truth: States
    gains: Vector  # nats that errors bring to each column; shape (d,)
    is_own: NDArray[np.bool_]  # the columns with rates of their own; shape (d,)
    # of the rows, each with rates of its own; None if all rows have the same; shape (n,)
    groups: Groups = None

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Which cells show another value than the true one; shape (n, d)."""
        is_wrong: NDArray[np.bool_] = self.truth != self.seen
        return is_wrong & (self.seen < np.array(self.model.cards))


def learn_cells(
    cards: tuple[int, ...],
    parents: tuple[tuple[int, ...], ...],
    seen: States,
    chain: Chain,
    *,
    begin: Learned | None = None,
    groups: Groups = None,
    n_groups: int | None = None,
    is_open: NDArray[np.bool_] | None = None,
    seed: int = 0,
    kernels: str | None = None,
    n_threads: int | None = None,
) -> Learned:
    """Return what true values look like and how often cells are wrong.

    O(n d r) time a sweep, with r states tried a cell.

    begin : what was learned from other rows with the same parents: the first sweep is by it.
    groups, n_groups : of the rows; each has a rate of its own. Some may have no row here; by
        default the last one has.
    is_open : which columns may be wrong; all by default; shape (d,).
    """
    d = len(cards)
    is_open = np.ones(d, bool) if is_open is None else is_open
    is_open = is_open & (np.array(cards) > 1)
    n_groups = n_groups or (1 if groups is None else int(groups.max()) + 1)
    first_rates = np.where(is_open, chain.start, LEAST_RATE) * np.ones((n_groups, 1))
    model = _begin(cards, parents, seen, first_rates) if begin is None else begin.model
    kernel, n_kept = load_sweep(kernels), chain.n_sweeps - chain.n_burn
    truth, is_known = fill_holes(model, seen, seed, kernels, n_threads), begin is None
    gains, mean_rates, kept = np.zeros(d), np.zeros((n_groups, d)), list[Vector]()
    is_own = np.zeros(d, bool) if begin is None else begin.is_own
    tested_at = max(chain.n_burn // 2, chain.n_held) if begin is None else -1
    is_drawn = chain.is_drawn or any(model.is_hashed)
    models = [model]
    for s in range(chain.n_sweeps):
        once = partial(
            kernel,
            seen=seen,
            truth=truth,
            groups=groups,
            own=1.0 if is_known else 0.0,
            calm=SETTLED if is_drawn else CALM,
            key=seed * 2**20 + s,
            n_sweeps=1 if is_drawn else INNER[0],
            n_burn=0 if is_drawn else INNER[1],
            n_threads=n_threads,
        )
        if s in (*SMOOTHED_AT, chain.n_burn) and (begin is None or s):
            model = _smooth(model, s > 0)
        if s == tested_at and chain.n_sweeps >= LONG:
            is_own, model = _find_own(once, model, is_open, seen, groups)
        swept = once(model, asks_gains=s >= chain.n_burn, asks_wrong=groups is not None)
        truth, rates = swept.truth, model.rates
        if s >= chain.n_held:
            rates = _find_rates(model, seen, swept, is_drawn, groups, is_open, is_own)
        counts = sum_counts(cards, parents, swept.counts) if not is_drawn else None
        counts = counts or count_cells(cards, parents, truth)
        model, is_known = replace(model, counts=counts, rates=rates), True
        models = [*models[-2:], model]
        if len(models) == 3 and s + 1 < chain.n_sweeps and not is_drawn:
            model = _leap(models)
            models = [model]
        if s >= chain.n_burn:
            gains += swept.gains / n_kept
            mean_rates += rates / n_kept
            kept.append(swept.counts)
    if not is_drawn:
        model = replace(model, counts=sum_counts(cards, parents, np.mean(kept, axis=0)))
    model = _smooth(model, True).with_rates(mean_rates)
    return Learned(model, seen, truth, gains, is_own, groups)


def _leap(models: list[CellModel]) -> CellModel:
    """Return where two steps lead if those that follow shorten as the second did (Aitken)."""
    old, mid, new = (m.rates.ravel() for m in models)
    # Counts are drawn: by how much steps shorten is told by the rates, which many cells decide.
    kept = float((new - mid) @ (mid - old)) / max(float((mid - old) @ (mid - old)), 1e-300)
    times = min(max(kept, 0) / max(1 - kept, 1e-9), FARTHEST)
    model, before = models[2], models[1]
    cells = model.counts.cells + times * (model.counts.cells - before.counts.cells)
    counts = sum_counts(model.cards, model.parents, np.maximum(cells, 0))
    rates = model.rates * np.clip((model.rates / before.rates) ** times, 0.5, 2)
    return replace(model, counts=counts, rates=np.clip(rates, LEAST_RATE, LARGEST_RATE))


def _begin(
    cards: tuple[int, ...], parents: tuple[tuple[int, ...], ...], seen: States, rates: Vector
) -> CellModel:
    """Return a model that takes rows as they are."""
    d, filled = len(cards), np.minimum(seen, np.array(cards) - 1)
    counts, near = count_cells(cards, parents, seen), find_nearby(cards, parents, filled)
    same = np.ones(d)
    return CellModel(cards, parents, counts, same, same, rates, *near)


def fill_holes(
    model: CellModel,
    seen: States,
    seed: int = 0,
    kernels: str | None = None,
    n_threads: int | None = None,
) -> States:
    """Return states in which every missing one is drawn given the others, as if all were right."""
    if not (seen >= np.array(model.cards)).any():
        return seen
    right = model.with_rates(np.full_like(model.rates, LEAST_RATE))
    sweep = load_sweep(kernels)
    filled: States = sweep(
        right, seen, own=0.0, key=seed, n_sweeps=DRAWS_OF_HOLES, asks_gains=False,
        n_threads=n_threads,
    ).truth  # fmt: skip
    return filled


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What errors bring to rows as they are, in nats."""

    gains: Vector  # of errors of `FIRST_RATE`, to each column; shape (d,)
    odds: list[Vector]  # of each column: see `_find_odds`
    # of errors that show any state alike, more than errors that show the states by their shares of
    # all rows. The latter describe rows whose columns depend on each other less than the tables
    # say, which is a population's own variety.
    contrast: float

    @cached_property
    def pays(self) -> bool:
        """Whether errors of any of `RATES` bring something to all columns together."""
        return any(sum(_bring(rate, column) for column in self.odds) > 0 for rate in RATES)


def look_first(
    cards: tuple[int, ...],
    parents: tuple[tuple[int, ...], ...],
    seen: States,
    kernels: str | None = None,
    n_threads: int | None = None,
    is_open: NDArray[np.bool_] | None = None,
) -> FirstLook:
    """Return what errors bring to rows as they are; one sweep.

    is_open : which columns may be wrong; all by default; shape (d,).
    """
    is_open = np.ones(len(cards), bool) if is_open is None else is_open
    rates = np.where(is_open, FIRST_RATE, LEAST_RATE)[None]
    model = _smooth(_begin(cards, parents, seen, rates))
    truth = fill_holes(model, seen, 0, kernels, n_threads)
    swept = load_sweep(kernels)(model, seen, truth, calm=1.0, asks_wrong=True, n_threads=n_threads)
    contrast, odds = 0.0, _find_odds(model, seen, np.asarray(swept.wrong), None)
    odds = [each if may_be else each[:0] for each, may_be in zip(odds, is_open, strict=True)]
    for j, (card, column) in enumerate(zip(cards, np.ascontiguousarray(seen.T), strict=True)):
        shown = column[(column < card) & (card > 1) & is_open[j]]
        usual = model.counts.states[model.state_start[j] :][shown] / max(len(shown), 1)
        contrast += _bring(FIRST_RATE, odds[j]) - _bring(FIRST_RATE, odds[j] * card * usual)
    return FirstLook(swept.gains, odds, contrast)


def _find_odds(model: CellModel, seen: States, wrong: NDArray[Any], groups: Groups) -> list[Vector]:
    """Return, for each column, the odds of what rows show as an error over as the truth."""
    odds, seen, wrong = [], np.asfortranarray(seen), np.asfortranarray(wrong)
    for j, card in enumerate(model.cards):
        is_shown = (seen[:, j] < card) & (card > 1)
        rate = _rates_of(model.rates[:, j], groups, is_shown)
        shown = wrong[:, j] if is_shown.all() else wrong[is_shown, j]
        p, any_state = shown.astype(np.float64), rate / card
        # All states together over the one that is shown, by the tables alone.
        times = (p * (1 - rate) + any_state) / (any_state * np.maximum(1 - p, SMALLEST))
        odds.append(times / card)
    return odds


def _rates_of(rates: Vector, groups: Groups, is_shown: NDArray[np.bool_]) -> Any:
    """Return the rate of a column in each of some rows, or in all of them; rates: of each group."""
    return rates[0] if groups is None else rates[groups[is_shown]]


def _bring(rate: Any, odds: Vector) -> float:
    """Return the nats that errors bring; odds: of what is shown as an error over as the truth."""
    return float(np.log(1 - rate + rate * odds).sum())


def pays_at_first(gains: Vector, n_rows: int) -> bool:
    """Return whether errors of a small rate explain rows as they are."""
    return bool(find_gain(gains.sum(), FIRST_FREE, n_rows) > 0)


# --- rates --------------------------------------------------------------------------------------


def _find_rates(
    model: CellModel,
    seen: States,
    swept: Swept,
    is_drawn: bool,
    groups: Groups,
    is_open: NDArray[np.bool_],
    is_own: NDArray[np.bool_],
) -> Vector:
    """Return the rates at which errors must be drawn for so many wrong cells; shape (g, d)."""
    # One rate for all columns, or a column's own where that pays for itself; and so many times that
    # in each group of rows.
    wrong, chances = _count_wrong(model, seen, swept, is_drawn, groups)
    by_column = _pool(wrong.sum(axis=0), chances.sum(axis=0), is_own | ~is_open)
    rates = np.where(is_open, by_column, LEAST_RATE)[None]
    if groups is not None:
        rates = np.maximum(rates, LEAST_RATE)
        times = (wrong.sum(axis=1) + STRENGTH) / ((chances * rates).sum(axis=1) + STRENGTH)
        rates = np.where(is_open, rates * times[:, None], LEAST_RATE)
    return np.clip(rates, LEAST_RATE, LARGEST_RATE)


def _count_wrong(
    model: CellModel, seen: States, swept: Swept, is_drawn: bool, groups: Groups
) -> tuple[Vector, Vector]:
    """Return the wrong cells, drawn or expected, and those that errors would show; (g, d) each."""
    n_groups, d = model.rates.shape
    cards = np.array(model.cards)
    if not is_drawn and groups is None:
        return swept.n_wrong[None], (seen < cards).sum(axis=0)[None] * (1 - 1 / cards)
    of = np.zeros(len(seen), np.int32) if groups is None else groups
    wrong, shown = np.zeros((n_groups, d)), np.zeros((n_groups, d))
    for j, card in enumerate(model.cards):
        is_shown = seen[:, j] < card
        is_wrong = swept.truth[:, j] != seen[:, j] if is_drawn else np.asarray(swept.wrong)[:, j]
        shown[:, j] = np.bincount(of[is_shown], minlength=n_groups)
        wrong[:, j] = np.bincount(of, is_wrong * is_shown, n_groups)
    return wrong, shown * (1 - 1 / cards)


def _pool(wrong: Vector, chances: Vector, is_own: NDArray[np.bool_]) -> Vector:
    """Return one rate for all columns that have none of their own; shape (d,)."""
    pooled = wrong[~is_own].sum() / max(chances[~is_own].sum(), 1.0)
    return np.where(is_own, wrong / np.maximum(chances, 1), pooled)


def _find_own(
    sweep: Sweep, model: CellModel, is_open: NDArray[np.bool_], seen: States, groups: Groups
) -> tuple[NDArray[np.bool_], CellModel]:
    """Return the columns for which another rate than that of all pays, and the model with it."""
    # Judged by what errors of each rate bring to the column, given all other true values: that so
    # many true values were drawn says nothing, since they were drawn by the rate. Of several groups
    # of rows, those of all are as many times higher or lower.
    times = model.rates / model.rates.mean(axis=0)
    tried = [np.minimum(rate * times, LARGEST_RATE) for rate in TRIED]
    rates = np.stack([model.rates, *(np.where(is_open, each, model.rates) for each in tried)])
    swept = sweep(model, calm=1.0, n_sweeps=1, n_burn=0, asks_gains=False, asks_wrong=True)
    odds, gains = (
        _find_odds(model, seen, np.asarray(swept.wrong), groups),
        np.zeros(rates[:, 0].shape),
    )
    for j, card in enumerate(model.cards):
        is_shown = (seen[:, j] < card) & (card > 1)
        gains[:, j] = [_bring(_rates_of(each[:, j], groups, is_shown), odds[j]) for each in rates]
    common = gains.sum(axis=1).argmax()
    apart = np.exp(np.abs(np.log(rates[:, 0] / rates[common, 0])))
    gains = np.where(apart < DIFFERENT, gains[common], gains)
    best = gains.argmax(axis=0)
    gained = find_gain(gains.max(axis=0) - gains[common], 1, len(seen), model.n_nodes)
    is_own: NDArray[np.bool_] = is_open & (gained > 0)
    chosen = np.where(is_own, best, common)
    return is_own, model.with_rates(rates[chosen, :, np.arange(model.n_nodes)].T)


# --- smoothing ----------------------------------------------------------------------------------


def _smooth(model: CellModel, keeps_novelty: bool = False) -> CellModel:
    """Return the model with the smoothing that predicts rows best which are left out one by one."""
    start, cards = model.state_start, np.array(model.cards)
    of_state = np.repeat(np.arange(model.n_nodes), cards)
    states, card = model.counts.states, cards[of_state]
    total, novelty = np.add.reduceat(states, start[:-1]), model.novelty
    if not keeps_novelty:
        novelty = _choose(of_state, states, total[of_state], 1 / card, total)
    share = np.maximum(states - 1, 0) + (novelty / cards)[of_state]
    share /= (np.maximum(total - 1, 0) + novelty)[of_state]
    counts, configs, at = zip(*(list_cells(model, i) for i in range(model.n_nodes)), strict=True)
    nodes = np.repeat(np.arange(model.n_nodes), [len(each) for each in counts])
    shares = share[np.concatenate(at) + start[nodes]]
    joined = np.concatenate(counts), np.concatenate(configs)
    concentration = _choose(nodes, *joined, shares, np.ones(model.n_nodes))
    return replace(model, concentration=concentration, novelty=novelty)


def _choose(
    nodes: NDArray[np.int64], counts: Vector, totals: Vector, shares: Vector, most: Vector
) -> Vector:
    """Return for each node the c of the largest `sum of C log((C - 1 + c b) / (C[a] - 1 + c))`."""
    tried = np.vstack([np.tile(SMOOTHING[:, None], len(most)), SMOOTHING[-1] * np.maximum(most, 1)])
    brought = np.zeros(tried.shape)
    for first in range(0, len(counts), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        of, begin = np.unique(nodes[some], return_index=True)
        c = tried[:, nodes[some]]
        left = np.maximum(counts[some] - 1, 0) + c * shares[some]
        told = np.log(left / (np.maximum(totals[some] - 1, 0) + c)) * counts[some]
        brought[:, of] += np.add.reduceat(told, begin, axis=1)
    best: Vector = tried[brought.argmax(axis=0), np.arange(len(most))]
    return best
