"""What reading a table noticed besides its codes: odd values, identifiers, a sample of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_STATE, NO_NUMBER, NO_DATE = "no state", "no number", "no date"
DECLARED, TITLE, FAR_DATE = "declared missing", "repeated header", "far values"
MOST_NUMBERS = 2**20  # row numbers that are kept for each kind of odd value: 8 MB
# what is wrong with dates that do not come in the order of the others
OUT_OF_ORDER, EXCHANGED, WRONG_YEAR = "out of order", "day and month exchanged", "wrong year"
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits mixed: joins prints in their order
SIGN, POINT, UNIT = "sign", "decimal point", "unit"  # what makes numbers others
MOST_EXAMPLES = 1_000  # different odd values of a column that are counted


@dataclass(frozen=True)
class OddValues:
    """Values of one column that were not read as ordinary values."""

    column: str  # the node or column of context, or "" where whole rows are meant
    # NO_STATE, NO_NUMBER, NO_DATE, FAR_DATE (far from all others), DECLARED (missing, since a
    # setting says so), TITLE (the row repeats the header), or a date among others that come in
    # order: OUT_OF_ORDER, and EXCHANGED or WRONG_YEAR if most are in order without that mistake
    kind: str
    n: int = 0  # how many
    # how often each of the first values occurs
    examples: Mapping[Any, int] = field(default_factory=dict)
    # numbers of the rows, increasing; the first `MOST_NUMBERS` of them
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), compare=False)
    n_mended: int = 0  # how many are in order once the mistake is undone


@dataclass(frozen=True, eq=False)
class NumberRows:
    """The numbers of some rows, before they are cut into intervals."""

    # the numbers of the rows; shape (n,)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    # the values of each node, NaN where there is none; shape (n,) each
    values: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def print_rows(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return prints of the numbers of rows, equal where all are; 0 if not known."""
        if not self.values:
            return np.broadcast_to(np.uint64(0), len(rows))  # takes no memory
        found, prints = np.zeros(len(rows), np.uint64), np.ones(len(self.rows), np.uint64)
        for values in self.values.values():
            alike = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
            prints = prints * FACTOR + alike.view(np.uint64)
        at, is_there = np.searchsorted(rows, self.rows), np.isin(self.rows, rows)
        found[at[is_there]] = np.maximum(prints[is_there], np.uint64(1))
        return found


@dataclass(frozen=True, eq=False)
class RepeatedIds:
    """Rows that share their identifier with another row."""

    column: str  # of the identifiers
    # first, again: numbers of the rows, a pair for each row whose identifier came before
    first: NDArray[np.int64]
    again: NDArray[np.int64]
    n_ids: int  # different identifiers that occur more than once
    examples: tuple[str, ...] = ()  # some of them
    # share of the pairs whose rows agree in the network's columns and in context; NaN if not known
    same: float = math.nan


@dataclass(frozen=True, eq=False)
class RepeatedBlock:
    """Rows that come again as a block, in the same order."""

    # first, again: numbers of the first row of the block, and of its copy
    first: int
    again: int
    n_rows: int  # in the block
    nats: float  # how unlikely so long a block is by chance
    # columns of context in which most rows of the block differ from their copies
    differing: tuple[str, ...] = ()
    n_between: tuple[int, int] = (0, 0)  # rows inside the block, and inside its copy, left out

    @property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The numbers of the first and the last row of the block, and of its copy."""
        starts = zip((self.first, self.again), self.n_between, strict=True)
        (a, b), (c, d) = ((start, start + self.n_rows + n - 1) for start, n in starts)
        return (a, b), (c, d)


@dataclass(frozen=True, eq=False)
class RepeatedPairs:
    """Rows that appear exactly twice, more of them than independent rows have."""

    # first, again: numbers of the rows of each pair, by the second
    first: NDArray[np.int64]
    again: NDArray[np.int64]
    most: float  # pairs that independent rows have at most
    context: tuple[str, ...] = ()  # columns of context in which they are the same, too


@dataclass(frozen=True, eq=False)
class Swap:
    """Two columns that seem to be exchanged in some rows."""

    nodes: tuple[int, ...]  # numbers of the nodes
    share: float  # of the rows
    gain: float  # in nats, after paying for it
    odds: float  # mean log-odds of these rows, each by itself
    chances: NDArray[np.float64]  # probability of each row; shape (n,)
    # the place at which they are, if that is what they have in common: column, first, last value
    parts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Scale:
    """What makes numbers others: `centre + factor * (number - centre)`."""

    factor: float
    name: str  # of the mistake, or of the two units
    centre: float = 0.0

    def undo(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers that were scaled to these."""
        return self.centre + (values - self.centre) / self.factor


@dataclass(frozen=True, eq=False)
class Scaled(Swap):
    """A column whose numbers seem to be scaled in some rows."""

    scale: Scale = Scale(1.0, "")


@dataclass(frozen=True)
class Repeated:
    """A repeated number of a column, and what the rest of its rows say of it."""

    node: int  # its number
    value: float
    # in nats: by how much more the rows look like all rows than like those with the nearest numbers
    gain: float

    @property
    def is_missing(self) -> bool:
        """Whether it stands for a missing value; else it was measured."""
        return self.gain > 0


@dataclass(frozen=True, eq=False)
class Clues:
    """All that reading noticed."""

    odd: tuple[OddValues, ...] = ()  # odd values, by column and kind
    # of some rows, where columns are cut into intervals
    numbers: NumberRows = field(default_factory=NumberRows)
    ids: tuple[RepeatedIds, ...] = ()  # identifiers that occur more than once, by column
    # rows that come again in the same order, where the rows are in memory
    blocks: tuple[RepeatedBlock, ...] = ()
    pairs: RepeatedPairs | None = None  # other rows that come again, if they are too many

    def without(self, rows: NDArray[np.int64]) -> Clues:
        """Return these clues without what only some rows show, by their numbers."""
        odd = tuple(e for e in self.odd if not len(e.rows) or not np.isin(e.rows, rows).all())
        is_left = ~np.isin(self.numbers.rows, rows)
        values = {node: each[is_left] for node, each in self.numbers.values.items()}
        return replace(self, odd=odd, numbers=NumberRows(self.numbers.rows[is_left], values))

    def with_beside(self, other: Clues) -> Clues:
        """Return these clues with those of columns beside the network's."""
        return replace(self, odd=(*self.odd, *other.odd), ids=other.ids)
