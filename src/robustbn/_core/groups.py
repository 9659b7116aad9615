"""Groups of rows: what tells them from good rows, what made them, what they do to the tables."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from robustbn._core.numbers import count
from robustbn._core.origins import Origin
from robustbn._core.protocols import Vector

WORTH_A_LOOK = 0.3  # probability of a group to be bad, from which it is told
# Probability from which it is a warning, with its cause: more likely bad than not. With 0.3, the 16
# clean tables of `benchmarks mistakes` have 0.9 warnings each instead of 0.4, and of 304 planted
# mistakes one more is found.
LIKELY = 0.5


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
class Group:
    """A group of rows that differ from what the network says of the others.

    Parameters
    ----------
    share : of all rows.
    n_rows : expected number of such rows.
    unusual : the cells that tell them from good rows, most telling first.
    number : of the group, from 1: what `decide` takes, and its column in `group_shares`. 0 for the
        rows that filters and repetition alone speak against.
    probability : of being bad rows, rather than a part of the population.
    is_bad : whether its rows are distrusted: from a probability of 80 % on, unless you decided.
    stake : share of the rows, on average over the nodes, whose state the tables would tell
        otherwise if the group changed sides.
    cause : what may have made them; None if no single cause explains them, or if they are most
        likely not bad: then none is sought.
    nats : evidence a row: the mean over its rows of the log of how much likelier each is in this
        group than among good rows; 0 if it was not measured.
    moved : what the tables would be with these rows left in, the largest difference first.
    examples : a few typical rows.
    origins : where its rows come from: values of columns that hold more of them than chance.
    """

    share: float
    n_rows: float
    unusual: tuple[UnusualCell, ...]
    number: int = 1
    probability: float = 1.0
    is_bad: bool = True
    stake: float = 0.0
    cause: Cause | None = None
    nats: float = 0.0
    moved: tuple[MovedCell, ...] = ()
    examples: tuple[Example, ...] = field(default=(), compare=False)  # a file holds no rows
    origins: tuple[Origin, ...] = field(default=(), compare=False)

    @property
    def may_be_bad(self) -> bool:
        """Whether its rows are distrusted, or may be worth a look: it is told."""
        return self.is_bad or self.probability >= WORTH_A_LOOK

    @property
    def is_likely_bad(self) -> bool:
        """Whether its rows are distrusted, or more likely bad than not: its cause is sought."""
        return self.is_bad or self.probability >= LIKELY

    def without_values(self) -> Group:
        """Return the group without what single rows of a private table hold."""
        origins = tuple(origin.without_values() for origin in self.origins)
        return replace(self, examples=(), origins=origins)

    def __repr__(self) -> str:
        cause = "unnamed"
        if self.cause is not None:
            cause = f"{self.cause.name}: {', '.join(self.cause.columns[:6])}"
        sure = f"bad with probability {self.probability:.2f}"
        return f"Group({self.number}: {count(self.n_rows, 'row')}, {sure}, {cause})"

    def __str__(self) -> str:
        cause = f" {self.cause.name}. {self.cause.text}" if self.cause else ""
        lines = "".join(f"\n  {cell}" for cell in self.unusual)
        doubt = "" if self.probability > 0.99 else f", bad with probability {self.probability:.0%}"
        return f"{self.share:.2%} of the rows (about {self.n_rows:,.0f}{doubt}):{cause}{lines}"


@dataclass(frozen=True, eq=False)
class FoundGroups:
    """The groups of a fit."""

    # number of their rows on each cell, whatever these weigh; those that no group holds, and that
    # are distrusted, come last. Shape (M, K + 1).
    counts: Vector
    groups: list[Group]  # those that have a row at least, the largest stake first

    @property
    def kinds(self) -> list[Group]:
        """The groups of bad rows, largest first."""
        return sorted((g for g in self.groups if g.is_bad), key=lambda g: -g.n_rows)

    def column(self, group: Group) -> int:
        """Return where the sums of a group are."""
        return (group.number or self.counts.shape[1]) - 1
