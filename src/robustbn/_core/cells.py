"""Cells that show another value than the true one: what is known of them, and what is found.

A row's true values come from a network. A recorded cell shows the true value or, with the rate of
its column, any state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ROW_NUMBER
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.trust import DOUBT

States = NDArray[Any]  # true or recorded states of rows, shape (n, d); a hole is one past all
LARGEST_DENSE = 2**20  # cells: a larger table is held by its cells that were seen


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of states, one after another."""

    start: NDArray[np.int64]  # where each begins in `states`, and the end of the last
    states: NDArray[np.int32]  # all of them

    @classmethod
    def none(cls, n: int) -> Lists:
        """Return n empty lists."""
        return cls(np.zeros(n + 1, np.int64), np.empty(0, np.int32))


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How often true values occur together; node by node."""

    # cell_start, cell_keys, cells: where each node's cells begin; their keys, which are looked at
    # for nodes with hashed tables only; and their counts
    cell_start: NDArray[np.int64]
    cell_keys: NDArray[np.uint64]
    cells: Vector
    # config_start, config_keys, configs: the same of configurations
    config_start: NDArray[np.int64]
    config_keys: NDArray[np.uint64]
    configs: Vector
    states: Vector  # counts of each node's states


@dataclass(frozen=True, eq=False)
class CellModel:
    """What true values look like, and how often and how they are recorded otherwise.

    Given the parents' states a, a state v is true with probability
    `(C[a, v] + c b[v]) / (C[a] + c)`, with the node's concentration c and its share b of all rows,
    itself smoothed by its novelty.
    """

    # cards, parents: states and parents of each node
    cards: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    counts: CellCounts  # of true values
    # concentration, novelty: rows that smooth each node's table, and its shares; shape (d,)
    concentration: Vector
    novelty: Vector
    # probability that a cell shows a draw from its errors, by group of rows and column; shape
    # (g, d)
    rates: Vector
    # near_nodes, near_columns, nearby: pairs of a node and a neighbour, and for each state of the
    # neighbour those of the node that are tried. Of a node without pairs all states are.
    near_nodes: tuple[int, ...] = ()
    near_columns: tuple[int, ...] = ()
    nearby: Lists = field(default_factory=lambda: Lists.none(0))

    @property
    def n_nodes(self) -> int:
        """Number of nodes, d."""
        return len(self.cards)

    @cached_property
    def state_start(self) -> NDArray[np.int64]:
        """First state of each node among all states, and their number; shape (d + 1,)."""
        return np.concatenate([[0], np.cumsum(self.cards, dtype=np.int64)])

    @cached_property
    def is_hashed(self) -> tuple[bool, ...]:
        """Which tables are held by the cells that were seen."""
        return find_hashed(self.cards, self.parents)

    def with_rates(self, rates: Vector) -> CellModel:
        """Return the model with other rates."""
        return replace(self, rates=np.ascontiguousarray(rates))


def sum_counts(
    cards: tuple[int, ...], parents: tuple[tuple[int, ...], ...], cells: Vector
) -> CellCounts:
    """Return counts of tables that hold every cell, from those of the cells; shape (M,)."""
    sizes = [prod(cards[p] for p in of) for of in parents]
    cell_start, config_start = (
        np.concatenate([[0], np.cumsum(each, dtype=np.int64)])
        for each in ([n * card for n, card in zip(sizes, cards, strict=True)], sizes)
    )
    if cells.shape != (cell_start[-1],):
        raise ValueError(f"there are {cell_start[-1]} cells; found {cells.shape}")
    tables = [
        cells[first : first + n * card].reshape(n, card)
        for first, n, card in zip(cell_start, sizes, cards, strict=False)
    ]
    configs, states = (np.concatenate([t.sum(axis=a) for t in tables]) for a in (1, 0))
    none = np.empty(0, np.uint64)
    return CellCounts(cell_start, none, cells, config_start, none, configs, states)


@lru_cache(maxsize=4)
def find_hashed(cards: tuple[int, ...], parents: tuple[tuple[int, ...], ...]) -> tuple[bool, ...]:
    """Return which tables are too large to hold every cell of."""
    sizes = (prod(cards[p] for p in (*of, i)) for i, of in enumerate(parents))
    return tuple(size > LARGEST_DENSE for size in sizes)


@dataclass(frozen=True, eq=False)
class WrongCells:
    """Cells that are likely to be wrong, the surest first."""

    # rows, columns: where they are
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    # seen, likely: recorded state, and the likeliest other one
    seen: NDArray[np.int32]
    likely: NDArray[np.int32]
    probability: NDArray[np.float32]  # that the likely state is the true one

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.rows)

    def above(self, probability: float) -> WrongCells:
        """Return those whose likely state is the true one with at least this probability."""
        return self.picked(self.probability >= probability)

    def picked(self, which: Any) -> WrongCells:
        """Return some of them."""
        return WrongCells(*(getattr(self, each.name)[which] for each in fields(self)))

    def numbered(self, numbers: NDArray[np.int64]) -> WrongCells:
        """Return the same cells by the numbers of their rows in the whole table."""
        return replace(self, rows=numbers[self.rows])

    @classmethod
    def join(cls, parts: list[WrongCells]) -> WrongCells:
        """Return the cells of several parts, the surest first."""
        names = [each.name for each in fields(cls)]
        joined = cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        return joined.picked(np.argsort(-joined.probability, kind="stable"))


NO_CELLS = WrongCells(
    rows=np.empty(0, np.int64),
    columns=np.empty(0, np.int64),
    seen=np.empty(0, np.int32),
    likely=np.empty(0, np.int32),
    probability=np.empty(0, np.float32),
)


@dataclass(frozen=True, eq=False)
class Swept:
    """What sweeps over rows give."""

    truth: Any  # states drawn last; shape (n, d)
    counts: Vector  # expected counts of the cells of tables that are not hashed; shape (M,)
    gains: Vector  # nats that errors bring to each column, given all other true values; shape (d,)
    n_wrong: Vector  # expected number of wrong cells in each column; shape (d,)
    named: WrongCells  # the cells that are likely to be wrong, row by row
    # probability that the recorded state is not the true one; shape (n, d); None if nobody asked
    wrong: NDArray[np.float32] | None = None


@dataclass(frozen=True, eq=False)
class PlacedRates:
    """Rates of errors that differ by a column outside the network."""

    column: str  # its name
    # the first and the last value of each part of the column that has rates of its own
    values: tuple[tuple[str, str], ...]
    rates: Vector  # of each part, by column of the network; shape (g, d)
    parts: NDArray[np.int32]  # which of them each surveyed row belongs to; shape (n,)

    @property
    def worst(self) -> int:
        """The part in which cells are wrong most often."""
        return int(self.rates.sum(axis=1).argmax())

    @property
    def place(self) -> tuple[str, str, str]:
        """The column, and the first and the last value of that part."""
        return (self.column, *self.values[self.worst])

    def numbered(self, numbers: NDArray[np.int64]) -> PlacedRates:
        """Return the same with the numbers that rows have in the whole table."""
        if self.column != ROW_NUMBER:
            return self
        ends = [[int(text.replace(",", "")) for text in each] for each in self.values]
        values = tuple((f"{numbers[a]:,}", f"{numbers[b]:,}") for a, b in ends)
        return replace(self, values=values)

    @property
    def of_all(self) -> Vector:
        """The rates of all rows together; shape (1, d)."""
        n_rows = np.bincount(self.parts, minlength=len(self.rates))
        of_all: Vector = (n_rows / max(n_rows.sum(), 1) @ self.rates)[None]
        return of_all


@dataclass(frozen=True, eq=False)
class FoundCells:
    """What explains that cells of a table differ from what the network expects."""

    # how any row's cells are judged; its parents are those of the network and then others
    model: CellModel
    n_parents: tuple[int, ...]  # how many of each node's parents are the network's
    gain: float  # nats that wrong cells bring to the rows it was learned from, less their price
    n_rows: int  # those rows
    seed: int  # of the draws
    wrong: WrongCells  # the cells of the surveyed rows that are likely to be wrong
    # what every row counts more on each cell of the network, by sweeps with care over the rows that
    # it was learned from, than by a quick look at each row; shape (M,)
    change: Vector
    # n_surveyed, counts: the surveyed rows, and the cells of the network that they touch if no cell
    # is wrong; shape (M,); None in a model from a file
    n_surveyed: int = 0
    counts: Vector | None = None
    # the column by which rates of errors differ; None if there is none, and in a model from a file.
    # The rates of the model are those of all rows.
    by: PlacedRates | None = None

    def numbered(self, numbers: NDArray[np.int64]) -> FoundCells:
        """Return the same with the numbers that rows have in the whole table."""
        by = self.by and self.by.numbered(numbers)
        return replace(self, wrong=self.wrong.numbered(numbers), by=by)

    def of_trusted(self, numbers: NDArray[np.int64], trust: RowVector) -> FoundCells:
        """Return the same without cells of rows that are distrusted; `numbers` increase."""
        is_good = trust[np.searchsorted(numbers, self.wrong.rows)] >= DOUBT
        return replace(self, wrong=self.wrong.picked(is_good))

    def without_rows(self) -> FoundCells | None:
        """Return what a model file holds; None if tables are too large for one."""
        if any(self.model.is_hashed):
            return None
        return self.for_other_rows()

    def place(self, n_rows: int) -> tuple[CellModel, NDArray[np.int32] | None]:
        """Return how so many rows are judged, and the part of each; these are all surveyed rows."""
        if self.by is None or len(self.by.parts) != n_rows:
            return self.model, None
        return self.model.with_rates(self.by.rates), self.by.parts

    def for_other_rows(self) -> FoundCells:
        """Return how rows are judged that the fit has not seen."""
        return replace(self, wrong=NO_CELLS, n_surveyed=0, counts=None, by=None)

    def checked(self, families: tuple[tuple[int, ...], ...], cards: tuple[int, ...]) -> FoundCells:
        """Return what a model file holds, if it belongs to a network; else raise a ValueError."""
        model, d = self.model, len(cards)
        own = tuple(of[:n] for of, n in zip(model.parents, self.n_parents, strict=True))
        if model.cards != cards or own != tuple(family[:-1] for family in families):
            raise ValueError("its nodes, states or parents are not those of the network")
        if any(not 0 <= p < d for of in model.parents for p in of) or any(model.is_hashed):
            raise ValueError("parents are other nodes, and tables are not that large")
        plain = CellModel(
            cards, model.parents, sum_counts(cards, model.parents, model.counts.cells),
            model.concentration, model.novelty, model.rates,
        )  # fmt: skip
        numbers = (model.counts.cells, plain.concentration, plain.novelty, plain.rates)
        shapes = [each.shape for each in (*numbers[1:], self.change)]
        n_cells = len(self.marginalise(model.counts.cells))
        if shapes != [(d,), (d,), (1, d), (n_cells,)] or any(each.min() < 0 for each in numbers):
            raise ValueError("counts, smoothing and rates are a number a node each, from 0 on")
        if plain.rates.max() > 1 or min(plain.concentration.min(), plain.novelty.min()) <= 0:
            raise ValueError("rates are at most 1, and smoothing is above 0")
        return replace(self, model=plain).for_other_rows()

    @property
    def rates(self) -> Vector:
        """Probability of a cell of each column to show another value than the true; (d,)."""
        return self._share(self.model.rates[0])

    @property
    def worst_rates(self) -> Vector:
        """The same where cells are wrong most often; (d,)."""
        return self.rates if self.by is None else self._share(self.by.rates[self.by.worst])

    def _share(self, rates: Vector) -> Vector:
        """Return how often cells are wrong: an error may show the true value by chance; (d,)."""
        return rates * (1 - 1 / np.array(self.model.cards))

    def correct(self, counts: Vector, total: float) -> Vector:
        """Return the weight of rows, `total`, on the cells of the network, by a quick look."""
        return np.maximum(self.marginalise(counts) + total * self.change, 0)

    def marginalise(self, counts: Vector) -> Vector:
        """Return counts of the cells of the network, from those with other parents; shape (M,)."""
        parts, cards, start = [], self.model.cards, self.model.counts.cell_start
        for i, (parents, n) in enumerate(zip(self.model.parents, self.n_parents, strict=True)):
            shape = [cards[p] for p in (*parents, i)]
            table = counts[start[i] : start[i + 1]].reshape(shape)
            parts.append(table.sum(axis=tuple(range(n, len(parents)))).ravel())
        return np.concatenate(parts)
