"""Where bad rows come from: columns beside the network, in groups, and those that hold many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ContextColumn:
    """A column outside the network, its rows in groups.

    Parameters
    ----------
    name : of the column.
    labels : of the groups; where they are stretches of a line, the start of each.
    codes : the group of each row that was read, -1 where the value is missing; shape (n,).
    ends : the last value of each group that is a stretch; empty where a label says it all.
    is_ordered : whether neighbours belong together: times, numbers, rows.
    """

    name: str
    labels: tuple[str, ...]
    codes: NDArray[np.signedinteger[Any]]
    ends: tuple[str, ...] = ()
    is_ordered: bool = False


@dataclass(frozen=True)
class Origin:
    """A group of rows that holds more distrusted rows than chance would put there.

    Parameters
    ----------
    parts : what its rows have in common: column, first value, last value.
    n_rows, n_distrusted : rows of the group, and those of them that are distrusted.
    overall : share of all rows that is distrusted.
    p_value : of so many distrusted rows, corrected for all groups that were tested; of two columns
        together, against the share of the better one alone, corrected for the pairs.
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

    @property
    def rate(self) -> float:
        """Share of its rows that is distrusted."""
        return self.n_distrusted / self.n_rows

    @property
    def ratio(self) -> float:
        """That share over the share of all rows."""
        return self.rate / self.overall

    def __str__(self) -> str:
        having = " and ".join(
            f"{name} = {a}" if a == b else f"{name} from {a} to {b}" for name, a, b in self.parts
        )
        return (
            f"{100 * self.rate:.1f} % of the {self.n_rows:,} rows with {having} are distrusted, "
            f"{self.ratio:.3g} times as many as overall"
        )
