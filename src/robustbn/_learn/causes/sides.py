"""The rows of a kind beside good rows, and what a supposed cause would make of the good ones.

A cause is tried by doing it: good rows are spoilt as it would have spoilt them, counted, and the
tables that follow are compared with those of the kind. Rows are compared in the families of the
network, and in the pairs of columns that depend on each other most among the kind's rows, so that
what the network has no edge for is seen too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._learn.causes.weighed import Weighed, strongest_tree

CLEAR = 3.0  # nats, beside log of the number of candidates, that are more than chance
LEAST_HELD = 0.02  # share of spoilt rows that would be seen to be
SPARED = (0.0, 0.03, 0.08, 0.15, 0.25, 0.4)  # shares of good rows that may be among the kind's


class Seen:
    """The cells of a family that some rows show; the last axis of its table is the child's."""

    def __init__(self, table: Vector) -> None:
        self._card, counts = table.shape[-1], table.ravel()
        self._cells = np.flatnonzero(counts)
        self._config, self._state = np.divmod(self._cells, self._card)
        self.counts = counts[self._cells]
        self._own = np.log(self.counts / counts.reshape(-1, self._card).sum(axis=1)[self._config])

    @property
    def n_free(self) -> int:
        """Free numbers of a table of these rows."""
        return len(self._cells) - len(np.unique(self._config))

    def look_up(self, tables: Vector) -> Vector:
        """Return the log-probability of each cell among other rows; shape (k, cells)."""
        # A configuration that they hardly show leans on all of them.
        by_config = tables.reshape(len(tables), -1, self._card)
        totals, marginal = by_config.sum(axis=2), by_config.sum(axis=1) + 0.5
        marginal = marginal / marginal.sum(axis=1, keepdims=True)
        filled = tables[:, self._cells] + marginal[:, self._state]
        likely: Vector = np.log(filled / (totals[:, self._config] + 1))
        return likely

    def compare(self, others: Vector) -> float:
        """Return the nats that tables of their own bring over what others say of each cell."""
        return float(self.counts @ (self._own - others))


@dataclass(frozen=True, eq=False)
class Suspect:
    """A supposed cause, and what it explains."""

    name: str  # as in `robustbn.Cause`
    columns: tuple[int, ...]  # that it spoils
    cost: float  # nats that its description costs
    gain: Vector  # log-likelihood of the kind's rows that it brings over good tables, by family
    spoilt: Codes  # good rows, spoilt as it would
    details: dict[str, Any]  # what words are made of; depends on the name
    explained: float = 0.0  # share of what tells the kind from good rows that it explains

    @property
    def total(self) -> float:
        """What it brings, in nats."""
        return float(self.gain.sum())

    @property
    def worth(self) -> float:
        """What is left of that once its description is paid for."""
        return self.total - self.cost

    @property
    def is_of_rows(self) -> bool:
        """Whether it is made of good rows, not of columns drawn each by itself."""
        return bool(self.details.get("is_uniform", True))


@dataclass(frozen=True, eq=False)
class Sides:
    """Rows of a kind, and good rows."""

    kind: Weighed  # the kind's rows, and how surely each is one of them
    good: Weighed  # good rows, and the trust in each
    rng: np.random.Generator  # for causes that draw
    # says how surely the model would hold rows for the kind's; None if it does not say
    hold: Callable[[Codes], Vector] | None = None

    @property
    def layout(self) -> Layout:
        """Of the network."""
        return self.good.layout

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of states of each column."""
        return self.layout.cards

    @property
    def n_columns(self) -> int:
        """Number of columns, d."""
        return self.layout.n_nodes

    @property
    def n_rows(self) -> float:
        """Weight of the kind's rows."""
        return self.kind.total

    @cached_property
    def price(self) -> float:
        """Nats that one free number costs."""
        return 0.5 * float(np.log(max(self.n_rows, 2.0)))

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges of the network: (parent, child)."""
        return tuple((p, child) for *parents, child in self.layout.families for p in parents)

    @cached_property
    def agreement(self) -> Vector:
        """How far columns of the kind go together as among good rows; shape (d, d)."""
        return self.kind.agree(self.good, self.edges)

    # --- the tables in which rows are compared ----------------------------------------------------

    @cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """The network's families, then the pairs that depend most among the kind's rows."""
        more = strongest_tree(self.kind, self.price) if self.kind.has_pairs else ()
        return self.layout.families + more

    @cached_property
    def families_at(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the families that each column is of."""
        found: list[list[int]] = [[] for _ in self.cards]
        for f, family in enumerate(self.families):
            for column in family:
                found[column].append(f)
        return tuple(map(tuple, found))

    @cached_property
    def _seen(self) -> tuple[Seen, ...]:
        return tuple(Seen(self.kind.count(family)) for family in self.families)

    @cached_property
    def _usual(self) -> tuple[Vector, ...]:
        """What good rows say of the cells that the kind's rows show, by family."""
        tables = (self.good.count(family) for family in self.families)
        return tuple(
            seen.look_up(table.reshape(1, -1))[0]
            for seen, table in zip(self._seen, tables, strict=True)
        )

    # --- what there is to explain -----------------------------------------------------------------

    @cached_property
    def own(self) -> Vector:
        """What tables of its own bring to the kind's rows over good tables, by family: nats."""
        return np.array([s.compare(u) for s, u in zip(self._seen, self._usual, strict=True)])

    @cached_property
    def n_free(self) -> Vector:
        """Free numbers of such tables that the rows fill, by family."""
        return np.array([seen.n_free for seen in self._seen], np.float64)

    @cached_property
    def unexplained(self) -> float:
        """Nats between the kind and good rows: what its own tables bring, less sampling noise."""
        return float((self.own - np.maximum(0.5 * self.n_free, self.chance)).sum())

    @cached_property
    def chance(self) -> Vector:
        """What their own tables would bring to as many good rows over the other good ones: nats."""
        # Half a nat a free number where cells are well filled, and far more where they are not.
        n = len(self.good.codes)
        size = min(round(self.n_rows), n // 3)
        if not size:
            return np.zeros(len(self.families))
        picked = spread(np.arange(n), size)
        some = Weighed(self.layout, self.good.codes[picked], self.good.weights[picked])
        gains = []
        for family in self.families:
            table, others = some.count(family), self.good.count(family)
            seen = Seen(table)
            left = np.maximum(others - table, 0).reshape(1, -1)
            gains.append(seen.compare(seen.look_up(left)[0]))
        return np.array(gains) * (self.n_rows / some.total)

    @cached_property
    def paid(self) -> Vector:
        """What is left of `own` once each free number is paid for, by family."""
        return self.own - self.price * self.n_free

    @cached_property
    def broken(self) -> Vector:
        """How far each column is from good, alone and with others: nats, paid for; shape (d,)."""
        return np.array([self.paid[list(at)].max() for at in self.families_at])

    # --- what is explained ------------------------------------------------------------------------

    def suspect(
        self,
        name: str,
        columns: Iterable[int],
        cost: float,
        codes: Codes,
        details: dict[str, Any],
        changed: Iterable[int] | None = None,
    ) -> Suspect:
        """Return what is explained if good rows were spoilt like this.

        changed : the columns in which they differ from the good ones, if not those named.
        """
        columns, spoilt = tuple(columns), self.good.spoil(codes)
        touched = {
            f for c in (columns if changed is None else changed) for f in self.families_at[c]
        }
        gain = np.zeros((len(SPARED), len(self.families)))
        for f in touched:
            gain[:, f] = self._explain(f, spoilt, self.good)
        best = int(gain.sum(axis=1).argmax())
        return Suspect(name, columns, cost, gain[best], codes, details)

    def explain_held(self, codes: Codes) -> float:
        """Return the nats explained by the spoilt rows that would be held for the kind's."""
        # Rows that were spoilt and do not show it are not among the kind's, and good rows that seem
        # spoilt are: both change tables that the cause has not touched.
        if self.hold is None:
            return 0.0
        spoilt, seeming = (self.good.spoil(c, self.hold(c)) for c in (codes, self.good.codes))
        if spoilt.total < LEAST_HELD * self.good.total:
            return 0.0
        seeming = seeming.spoil(self.good.codes, spoilt.total / max(seeming.total, 1e-9))
        gains = [self._explain(f, spoilt, seeming) for f in range(len(self.families))]
        return float(np.sum(gains, axis=0).max())

    def _explain(self, f: int, spoilt: Weighed, good: Weighed) -> Vector:
        """Return the nats explained of a family, for each share of good rows among the kind's."""
        seen, usual, family = self._seen[f], self._usual[f], self.families[f]
        changed, same = (rows.count(family).ravel() for rows in (spoilt, good))
        share = np.array(SPARED)[:, None]
        return (seen.look_up((1 - share) * changed + share * same) - usual) @ seen.counts


def spread(places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return at most so many of some places, evenly."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.int64)]
