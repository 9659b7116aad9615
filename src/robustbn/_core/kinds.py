"""A kind of bad rows: what tells it from good rows, what made it, what it does to the tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robustbn._core.numbers import count
from robustbn._core.origins import Origin
from robustbn._core.protocols import Vector
from robustbn.exceptions import SettingError


@dataclass(frozen=True)
class UnusualCell:
    """A state that bad rows show far more often than good ones.

    Parameters
    ----------
    node, parents, state : the cell.
    among_bad, among_good : its probability, given the parents, among those rows.
    share : of the rows of this kind that show it.
    """

    node: str
    parents: dict[str, Hashable]
    state: Hashable
    among_bad: float
    among_good: float
    share: float

    def __str__(self) -> str:
        given = ", ".join(f"{p}={v!r}" for p, v in self.parents.items())
        where = f"{self.node}={self.state!r}" + (f" given {given}" if given else "")
        return (
            f"{where}: {self.among_bad:.1%} here, {self.among_good:.1%} among good rows "
            f"({self.share:.0%} of these rows)"
        )


@dataclass(frozen=True)
class Cause:
    """What may have made the rows of a kind.

    Parameters
    ----------
    name : "wrong join", "stuck columns", "shifted columns", "swapped columns", "swapped labels",
        "noise", "copies", "defaults" or "another population".
    columns : the nodes it concerns.
    confidence : share of what tells the rows from good ones that it explains, from 0 to 1; of
        another population, the share that no other cause explains.
    text : the same as a sentence.
    """

    name: str
    columns: tuple[str, ...]
    confidence: float
    text: str


@dataclass(frozen=True)
class MovedCell:
    """A cell of a table, learned with the rows of a kind left in and with them left out.

    Parameters
    ----------
    node, parents, state : the cell.
    with_kind, without : its probability, given the parents.
    """

    node: str
    parents: dict[str, Hashable]
    state: Hashable
    with_kind: float
    without: float


@dataclass(frozen=True)
class Example:
    """A typical row of a kind, beside the good row that is most like it.

    Parameters
    ----------
    row, states : its number, and its state at every node that it shows.
    nearest, nearest_states : the same of the good row.
    differs : the nodes at which the two differ.
    """

    row: int
    states: dict[str, Hashable]
    nearest: int
    nearest_states: dict[str, Hashable]
    differs: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class BadKind:
    """One kind of bad rows that was found.

    Parameters
    ----------
    share : of all rows.
    n_rows : expected number of such rows.
    unusual : the cells that tell them from good rows, most telling first.
    number : of the kind, from 1 for the largest; what `trust` takes.
    cause : what may have made them; None if no single cause explains them.
    nats : evidence a row: the mean over its rows of the log of how much likelier each is in this
        kind than among good rows; 0 if it was not measured.
    moved : what the tables would be with these rows left in, the largest difference first.
    examples : a few typical rows.
    origins : where its rows come from: groups that hold more of them than chance.
    """

    share: float
    n_rows: float
    unusual: tuple[UnusualCell, ...]
    number: int = 1
    cause: Cause | None = None
    nats: float = 0.0
    moved: tuple[MovedCell, ...] = ()
    examples: tuple[Example, ...] = field(default=(), compare=False)  # a file holds no rows
    origins: tuple[Origin, ...] = field(default=(), compare=False)

    def without_values(self) -> BadKind:
        """Return the kind without what single rows of a private table hold."""
        origins = tuple(origin.without_values() for origin in self.origins)
        return replace(self, examples=(), origins=origins)

    def __repr__(self) -> str:
        cause = "unnamed"
        if self.cause is not None:
            cause = f"{self.cause.name}: {', '.join(self.cause.columns[:6])}"
        return f"BadKind({self.number}: {count(self.n_rows, 'row')}, {cause})"

    def __str__(self) -> str:
        cause = f" {self.cause.name}. {self.cause.text}" if self.cause else ""
        lines = "".join(f"\n  {cell}" for cell in self.unusual)
        return f"{self.share:.2%} of the rows (about {self.n_rows:,.0f}):{cause}{lines}"


@dataclass(frozen=True, eq=False)
class FoundKinds:
    """The kinds of bad rows of a fit.

    Parameters
    ----------
    counts : number of their rows on each cell, whatever these weigh; those that no kind of the
        model holds come last. Shape (M, K + 1).
    columns : of `counts`, in the order of the kinds' numbers.
    kinds : in the same order.
    """

    counts: Vector
    columns: list[int]
    kinds: list[BadKind]

    def choose(self, numbers: Sequence[int]) -> list[int]:
        """Return the columns of some kinds, given their numbers from 1."""
        n = len(self.columns)
        if not n:
            raise SettingError(
                "There are no kinds of bad rows in this fit, so none can be trusted."
            )
        is_right = [isinstance(k, int | np.integer) and 0 < k <= n for k in numbers]
        if not is_right or not all(is_right):
            raise SettingError(
                f"kinds are numbers from 1 to {n}, the number of kinds_; found {list(numbers)!r}."
            )
        return [self.columns[k - 1] for k in numbers]
