"""Where bad rows come from: columns beside the network, in groups, and those that hold many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbn._core.numbers import rounded

ROW_NUMBER, FILE_NAME = "row number", "file name"  # columns that no table has
HIDDEN = "not shown"
ORIGIN_P_VALUE = 0.01  # probability of naming any group of a table whose bad rows gather nowhere
STRETCHES = 100  # of the row number: one is 1 % of the rows


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups into which a column outside the network puts rows."""

    name: str  # of the column
    labels: tuple[str, ...]  # of the groups; where they are stretches of a line, the start of each
    # the last value of each group that is a stretch; empty where a label says it all
    ends: tuple[str, ...] = ()
    is_ordered: bool = False  # whether neighbours belong together: times, numbers, rows
    kind: str = "values"  # by what rows are placed: "values", "hours", "numbers", "files" or "rows"
    # of hours and numbers, where each group but the first begins
    starts: NDArray[Any] | None = None
    of_values: Mapping[Any, int] = field(default_factory=dict)  # of values, the group of each
    is_measured: bool = False  # whether they are numbers too many to be places, such as sites
    is_code: bool = False  # whether they are numbers that may be names of places, each by itself

    @property
    def has_periods(self) -> bool:
        """Whether neighbours together are a place, as days and rows are; sites are not."""
        # A run of ages or counts is no place at which rows were recorded: whatever depends on the
        # number would differ there.
        return self.is_ordered and not self.is_code


@dataclass(frozen=True, eq=False)
class ContextColumn:
    """A column outside the network: the group of each row that was read, -1 where it has none."""

    groups: Groups
    codes: NDArray[np.signedinteger[Any]]

    @property
    def name(self) -> str:
        return self.groups.name


@dataclass(frozen=True, eq=False)
class ContextTally:
    """How many rows each group of a column has, and how many of them are distrusted."""

    groups: Groups
    # rows, bad: rows that were judged, and those that are distrusted; shape (groups + 1,), rows
    # whose value is missing first
    rows: NDArray[np.int64]
    bad: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """The number of each row, in equal stretches."""

    starts: NDArray[np.int64]  # where each stretch begins, and the last of them ends

    @classmethod
    def of(cls, n_rows: int, most: int = STRETCHES) -> RowNumbers:
        """Return the stretches of a table, at most so many."""
        n_stretches = min(most, n_rows)
        return cls(np.linspace(0, n_rows, n_stretches + 1).astype(np.int64))

    @property
    def groups(self) -> Groups:
        """The stretches, by their first rows and their last ones."""
        firsts = tuple(f"{v:,}" for v in self.starts[:-1])
        lasts = tuple(f"{v:,}" for v in self.starts[1:] - 1)
        return Groups(ROW_NUMBER, firsts, lasts, is_ordered=True, kind="rows")

    def as_column(self) -> ContextColumn:
        """Return the stretch of every row."""
        return ContextColumn(self.groups, self.place(0, int(self.starts[-1])))

    def place(self, start: int, n_rows: int) -> NDArray[np.int16]:
        """Return the stretch of each of some rows, from number `start` on."""
        ends = np.clip(self.starts, start, start + n_rows)
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int16), np.diff(ends))


class GroupRun(NamedTuple):
    """Neighbouring groups of a column, from `first` up to `last`; -1 is for missing values."""

    column: int
    first: int
    last: int

    def holds(self, codes: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
        """Return which of these groups of the column belong to it."""
        return (codes >= self.first) & (codes <= self.last)


def count_together(
    runs: Sequence[GroupRun],
    codes: Mapping[int, NDArray[np.signedinteger[Any]]],
    is_judged: NDArray[np.bool_],
    is_bad: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many rows of a stretch belong to both of two runs, and are distrusted; (r, r)."""
    inside = np.array([run.holds(codes[run.column]) & is_judged for run in runs], np.float32)
    of_bad = inside[:, is_bad]
    return (inside @ inside.T).astype(np.int64), (of_bad @ of_bad.T).astype(np.int64)


@dataclass(frozen=True, eq=False)
class CountedContext:
    """Columns outside the network, counted where nobody holds the group of each row."""

    tallies: tuple[ContextTally, ...]  # of the columns; that of the row number is the last
    runs: tuple[GroupRun, ...]  # groups that were counted two by two
    # rows, bad: rows that belong to both of two runs, and those that are distrusted; shape (r, r)
    rows: NDArray[np.int64]
    bad: NDArray[np.int64]

    def together(self, runs: Sequence[GroupRun]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the counts of some runs two by two; 0 where they were not counted."""
        known = {run: k for k, run in enumerate(self.runs)}
        places = [(k, known[run]) for k, run in enumerate(runs) if run in known]
        rows, bad = np.zeros((2, len(runs), len(runs)), np.int64)
        if places:
            here, there = np.array(places).T
            rows[np.ix_(here, here)] = self.rows[np.ix_(there, there)]
            bad[np.ix_(here, here)] = self.bad[np.ix_(there, there)]
        return rows, bad


@dataclass(frozen=True, eq=False)
class Difference:
    """A place at which tables are others than elsewhere."""

    # what its rows have in common: column, first value, last value
    parts: tuple[tuple[str, str, str], ...]
    # nodes, missing: numbers of the nodes whose tables differ there, and of those that are missing
    # more or less often, the clearest first
    nodes: tuple[int, ...]
    missing: tuple[int, ...]
    rows: NDArray[np.int64]  # which of the rows that were looked at lie there
    n_rows: int  # rows that lie there, of all that were read
    nats: float  # what tables of their own gain, over the spread among other values
    size: float  # of the clearest difference, in spreads among other values
    runs: tuple[GroupRun, ...] = ()  # the groups of context columns that the parts stand for
    # what was done there to the values of a node, where that is recognised: number of the node,
    # name, and a sentence
    causes: tuple[tuple[int, str, str], ...] = ()
    # how other nodes differ there, the clearest first: number of the node, and a sentence
    contrasts: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Origin:
    """A group of rows that holds more distrusted rows than chance would put there.

    Parameters
    ----------
    parts : what its rows have in common: column, first value, last value.
    n_rows, n_distrusted : rows of the group, and those of them that are distrusted.
    overall : share of all rows that is distrusted.
    p_value : of so many distrusted rows, corrected for all groups that were tested; of two columns
        together, for all pairs of them.
    gain : log-likelihood that a share of its own brings to the group, in nats.
    """

    parts: tuple[tuple[str, str, str], ...]
    n_rows: int
    n_distrusted: int
    overall: float
    p_value: float
    gain: float

    @property
    def column(self) -> str:
        """Its columns."""
        return " and ".join(name for name, _, _ in self.parts)

    @property
    def value(self) -> str:
        """Its values."""
        return " and ".join(a if a == b else f"{a} to {b}" for _, a, b in self.parts)

    def without_values(self) -> Origin:
        """Return the group without what a private table holds: its row numbers and files stay."""
        parts = tuple(
            part if part[0] in (ROW_NUMBER, FILE_NAME) else (part[0], HIDDEN, HIDDEN)
            for part in self.parts
        )
        return replace(self, parts=parts)

    @property
    def rate(self) -> float:
        """Share of its rows that is distrusted."""
        return self.n_distrusted / self.n_rows

    @property
    def ratio(self) -> float:
        """That share over the share of all rows."""
        return self.rate / self.overall

    @property
    def having(self) -> str:
        """What its rows have in common, in words."""
        return " and ".join(say_place(*part) for part in self.parts)

    def __str__(self) -> str:
        return (
            f"{100 * self.rate:.1f} % of the {self.n_rows:,} rows with {self.having} are "
            f"distrusted, {rounded(self.ratio)} times as many as overall"
        )


def say_place(column: str, first: str, last: str) -> str:
    """Return a value of a column, or a range of them, in words."""
    return f"{column} = {first}" if first == last else f"{column} from {first} to {last}"
