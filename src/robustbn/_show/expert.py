"""What an expert said beside what the rows say, and where the rows contradict it.

How surely they do is a Bayes factor: how many times more probable a configuration's rows are if
nothing is known of its table (Jeffreys' prior) than if the table is the expert's, as sure as so
many rows. If the expert is right, a factor of c or more has a probability of 1 / c at most, so
1 / c times the number of configurations is a p-value. A p-value of the expert's numbers themselves
would reject all of them once there are enough rows, since nobody's numbers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.dirichlet import Expert
from robustbn._core.expansion import normalise_counts
from robustbn._core.numbers import count
from robustbn._core.protocols import Vector
from robustbn._show.words import as_text, name_cells
from robustbn.network import BayesianNetwork

EXPERT_P_VALUE = 0.01  # largest at which the rows contradict the expert


@dataclass(frozen=True, eq=False)
class ExpertView:
    """An expert's tables beside those that were counted and learned."""

    network: BayesianNetwork  # with the learned tables
    expert: Expert  # what was said
    # plain_counts, counts: of all rows, and of the trusted ones, as so many rows; shape (M,)
    plain_counts: Vector
    counts: Vector

    @cached_property
    def nats(self) -> Vector:
        """Log of the Bayes factor against the expert; 0 where the expert or the rows are silent."""
        return self.expert.nats_against(self.network.layout, self.counts)

    @property
    def p_values(self) -> Vector:
        """Of each configuration, corrected for their number; shape (m,)."""
        n = max(int(np.count_nonzero(self.expert.rows)), 1)
        p_values: Vector = np.minimum(1.0, n * np.exp(-self.nats))
        return p_values

    @property
    def is_contradicted(self) -> NDArray[np.bool_]:
        """Whether the rows contradict the expert; shape (m,)."""
        return self.p_values <= EXPERT_P_VALUE

    def say(self) -> str:
        """Return whether the rows agree with the expert, in a sentence."""
        n, n_said = int(self.is_contradicted.sum()), int((self.expert.rows > 0).sum())
        if not n:
            return f"The rows contradict none of the expert's {count(n_said, 'configuration')}."
        line = self.tables(1)[0]
        given = f" given {line['parents']}" if line["parents"] else ""
        return (
            f"The rows contradict the expert in {n:,} of {count(n_said, 'configuration')}, most "
            f"clearly {as_text(line['node'])}{as_text(given)} (p = {line['p_value']:.1e}); the "
            "expert's tables have reduced weight there."
        )

    @property
    def order(self) -> NDArray[np.int64]:
        """The configurations of which the expert says something, most contradicted first."""
        order = np.argsort(-self.nats, kind="stable")
        return order[self.expert.rows[order] > 0]

    def columns(self, most: int | None = None) -> dict[str, Any]:
        """Return a line a cell of so many configurations, those contradicted most first."""
        layout, network = self.network.layout, self.network
        cells = [
            first + v
            for k in self.order[:most].tolist()
            for first in [int(layout.first_cell_of_config[k])]
            for v in range(int(layout.config_cards[k]))
        ]
        of = layout.config_of_cell[cells]
        return {
            **name_cells(network, cells),
            "expert": self.expert.tables[cells],
            "counted": normalise_counts(layout, self.plain_counts)[cells],
            "learned": network.probabilities[cells],
            "expert_rows": self.expert.rows[of],
            "rows": layout.sum_configurations(self.counts)[of],
            "nats": self.nats[of],
            "p_value": self.p_values[of],
        }

    def tables(self, most: int) -> list[dict[str, Any]]:
        """Return the configurations for a page, most contradicted first, with a line a state."""
        columns, found = self.columns(most), list[dict[str, Any]]()
        lines = zip(*columns.values(), strict=True)
        for line in (dict(zip(columns, values, strict=True)) for values in lines):
            if not found or (found[-1]["node"], found[-1]["parents"]) != (
                line["node"],
                line["parents"],
            ):
                found.append({**line, "states": []})
            found[-1]["states"].append(line)
        return found
