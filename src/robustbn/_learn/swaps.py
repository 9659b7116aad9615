"""Two columns whose values were exchanged in some rows.

A swapped row is a good row under a one-to-one map of its values, so its density is known: that of
the row with the two values put back. For numbers that are cut into intervals the map is of the
numbers, not of the intervals, so a number's density is

    P(interval | parents) h(number) / P(interval),

h being a histogram of the column that is fine enough for both. Every row is swapped with the same
probability; it, and all tables and histograms of the rows with their values put back, are found by
expectation-maximisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Swap
from robustbn._core.config import CEILING
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._core.row_model import logistic
from robustbn._learn.gain import find_gain

FINE = 64  # intervals of the histograms, as many of the numbers of both columns in each
START = 0.05  # share of the rows that is swapped, to start from
FIRST_STEPS, MOST_STEPS = 10, 50  # that every pair is given, and one that gains by then
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
CLEAR = 0.7  # mean probability of swapped rows: 0.74 to 1 where planted, 0.42 to 0.68 where not

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a node that is cut into intervals.

    Parameters
    ----------
    values : of the rows, NaN where there is none; shape (n,).
    edges : inner ends of the intervals.
    """

    values: Vector
    edges: Vector

    def read(self, values: Vector) -> Places:
        """Return the states of values."""
        return np.searchsorted(self.edges, values, side="right").astype(np.int64)


def find_swaps(layout: Layout, codes: Codes, columns: Mapping[int, Numbers]) -> list[Swap]:
    """Return pairs of columns that seem to be swapped in some rows, the largest gain first.

    O(n) time for each pair.

    Parameters
    ----------
    codes : of some rows; shape (n, d).
    columns : the numbers of the same rows, by node.
    """
    pairs = list(combinations(columns, 2))
    found = [_find_swap(layout, codes, columns, pair, len(pairs)) for pair in pairs]
    return sorted((swap for swap in found if swap is not None), key=lambda swap: -swap.gain)


def _find_swap(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Numbers],
    pair: tuple[int, int],
    n_tried: int,
) -> Swap | None:
    """Return what swapping two columns in some rows explains, if that is clear."""
    is_there = np.isfinite(columns[pair[0]].values) & np.isfinite(columns[pair[1]].values)
    n = int(np.count_nonzero(is_there))
    if not n:
        return None
    parts = list(_list_parts(layout, codes[is_there], columns, pair, is_there))
    nobody: Vector = np.zeros(n)
    before = float(np.sum([part.weigh(nobody)[0] for part in parts]))
    # to start from, rows are swapped whose values are usual in the other column
    starts = [part.weigh(nobody) for part in parts if part.is_first]
    as_is, swapped = np.sum(starts, axis=0)
    share, best, most = START, None, 0.0
    for step in range(MOST_STEPS):
        chances = logistic(swapped - as_is + np.log(share / (1 - share))).astype(np.float64)
        share = float(np.clip(chances.mean(), 1e-9, 0.5))
        as_is, swapped = np.sum([part.weigh(chances) for part in parts], axis=0)
        odds = swapped - as_is + np.log(share / (1 - share))
        told = float(as_is.sum() + n * np.log1p(-share) + np.logaddexp(0, odds).sum())
        gain = float(find_gain(told - before, 1, n, n_tried))
        if step >= FIRST_STEPS and gain <= 0:
            break
        # Tables can also explain swapped values as seldom ones, which blurs later steps.
        clear = float(chances @ chances) / max(float(chances.sum()), 1e-9)
        if gain >= LEAST_GAIN and clear >= CLEAR and share <= CEILING and gain * clear > most:
            of_all = np.zeros(len(codes))
            of_all[is_there] = chances
            odds_a_row = float(chances @ (swapped - as_is)) / float(chances.sum())
            best, most = Swap(pair, float(of_all.mean()), gain, odds_a_row, of_all), gain * clear
    return best


@dataclass(frozen=True, eq=False)
class _Part:
    """A factor of the density: a table whose cells rows show, as they are and swapped.

    Parameters
    ----------
    as_is, swapped : cell of each row, -1 for none; shape (n,).
    card : states of each configuration.
    sign : 1 for a factor, -1 for a divisor.
    is_first : whether it says where to start.
    """

    as_is: Places
    swapped: Places
    card: int
    sign: int = 1
    is_first: bool = False

    def weigh(self, chances: Vector) -> tuple[Vector, Vector]:
        """Return the log of the factor of each row, as it is and swapped.

        The table is that of the rows with their values put back.
        """
        size = int(max(self.as_is.max(), self.swapped.max())) + 1
        size = -(-size // self.card) * self.card
        counts = np.full(size + 1, 0.5)  # the last is of rows that show no cell
        for cells, weights in ((self.as_is, 1 - chances), (self.swapped, chances)):
            counts += np.bincount(np.where(cells < 0, size, cells), weights, size + 1)
        by_config = counts[:-1].reshape(-1, self.card)
        logs = np.append(np.log(by_config / by_config.sum(axis=1, keepdims=True)), 0.0)
        return self.sign * logs[self.as_is], self.sign * logs[self.swapped]


def _list_parts(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Numbers],
    pair: tuple[int, int],
    is_there: NDArray[np.bool_],
) -> Iterator[_Part]:
    """Yield the factors that swapping two columns changes."""
    one, other = (columns[node] for node in pair)
    x, y = one.values[is_there], other.values[is_there]
    swapped = codes.copy()
    swapped[:, pair[0]], swapped[:, pair[1]] = one.read(y), other.read(x)
    for family in layout.families:
        if {*family} & {*pair}:
            cells = [_find_cells(layout, each, family) for each in (codes, swapped)]
            yield _Part(cells[0], cells[1], layout.cards[family[-1]])
    n_one, n_other = len(one.edges) + 1, len(other.edges) + 1
    alone = _Part(one.read(x), one.read(y), n_one), _Part(other.read(y), other.read(x), n_other)
    divisors = [replace(part, sign=-1) for part in alone]
    if not any(family[-1] in pair and {*pair} <= {*family} for family in layout.families):
        # an edge that the network lacks would look like a swap
        cells = [
            a * n_other + b
            for a, b in ((alone[0].as_is, alone[1].as_is), (alone[0].swapped, alone[1].swapped))
        ]
        yield _Part(cells[0], cells[1], n_one * n_other)
        yield from divisors
    ends = np.unique(np.quantile(np.concatenate([x, y]), np.arange(1, FINE) / FINE))
    fine, card = Numbers(x, ends), len(ends) + 1
    yield _Part(fine.read(x), fine.read(y), card, is_first=True)
    yield _Part(fine.read(y), fine.read(x), card, is_first=True)
    yield from divisors


def _find_cells(layout: Layout, codes: Codes, family: Sequence[int]) -> Places:
    """Return the cell of a family that each row shows; -1 for none."""
    cells, is_shown = layout.joint_states(codes, family)
    return np.where(is_shown, cells, -1)
