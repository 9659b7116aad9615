"""The specification: expected counts of rows with holes in plain NumPy, slow and right.

Questions of one component are answered together: every array has them on its first axis, and one
axis more for each hole that it speaks of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.holes import Expectation, HolePosterior
from robustbn._core.layout import Layout
from robustbn._core.protocols import RowVector, Vector
from robustbn.exceptions import CodeRangeError, InsufficientMemoryError

Columns = tuple[int, ...]
ENTRIES_AT_ONCE = 2**22  # of the largest table, over all questions that are answered together


@dataclass(frozen=True, eq=False)
class Component:
    """Connected holes, how to sum them out, and the families that they touch."""

    order: Columns  # the holes, first summed out first
    scopes: tuple[Columns, ...]  # for each hole itself and the later ones that its table is over
    families: Columns  # the families that contain a hole, ascending
    holes_of: tuple[Columns, ...]  # for each of these families its holes, in `order`


@dataclass(frozen=True, eq=False)
class Answer:
    """What a component's questions are answered."""

    # logarithm of the sum over the holes of the product of the factors; shape (n,)
    log_sums: NDArray[np.float64]
    # for each family of the component, the probability of its holes' states
    families: list[NDArray[np.float64]]
    # for each hole in order, the probability of its states; shape (n, r)
    holes: list[NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class NumpyHoles:
    """For each component a dictionary: where its families start in the tables -> weight."""

    layout: Layout
    largest_table: int
    components: dict[Columns, Component] = field(default_factory=dict)
    weights: dict[Columns, dict[Columns, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )

    @property
    def n_sampled(self) -> float:
        """Nothing is sampled here: what is too large is refused."""
        return 0.0

    @property
    def n_bytes(self) -> int:
        """Memory that the questions take, about."""
        return sum(
            len(questions) * (100 + 36 * len(self.components[columns].families))
            for columns, questions in self.weights.items()
        )

    def add(self, codes: NDArray[Any], weights: RowVector | None = None) -> None:
        w = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
        keep = w != 0
        for columns, rows in self._components_of(codes[keep]):
            bases = _bases(self.layout, self.components[columns], codes[keep][rows])
            distinct, which = np.unique(bases, axis=0, return_inverse=True)
            sums = np.bincount(which.ravel(), w[keep][rows], minlength=len(distinct))
            for question, weight in zip(distinct, sums, strict=True):
                self.weights[columns][tuple(question.tolist())] += float(weight)

    def expect(self, q: Vector) -> Expectation:
        counts, log_likelihood, n_impossible = np.zeros(self.layout.n_cells), 0.0, 0.0
        for columns, questions in self.weights.items():
            component = self.components[columns]
            bases = np.array(list(questions), dtype=np.int64)
            weights = np.array(list(questions.values()))
            for part in self._parts(component, len(bases)):
                answer = _answer(self.layout, component, q, bases[part])
                is_possible = np.isfinite(answer.log_sums)
                w = np.where(is_possible, weights[part], 0.0)
                log_likelihood += float(w @ np.where(is_possible, answer.log_sums, 0.0))
                n_impossible += float(weights[part][~is_possible].sum())
                for k in range(len(component.families)):
                    cells = _cells(self.layout, component, k, bases[part])
                    expected = answer.families[k] * _like(w, answer.families[k])
                    counts += np.bincount(cells.ravel(), expected.ravel(), minlength=len(counts))
        return Expectation(counts, log_likelihood, n_impossible)

    def posterior(self, codes: NDArray[Any], q: Vector) -> HolePosterior:
        is_hole = codes == np.array(self.layout.cards)
        line = np.cumsum(is_hole.ravel()).reshape(is_hole.shape) - 1
        probabilities = np.zeros((int(is_hole.sum()), max(self.layout.cards, default=0)))
        logs = np.zeros(len(codes))
        for columns, rows in self._components_of(codes):
            component = self.components[columns]
            bases = _bases(self.layout, component, codes[rows])
            for part in self._parts(component, len(bases)):
                answer = _answer(self.layout, component, q, bases[part])
                logs[rows[part]] += answer.log_sums
                for hole, p in zip(component.order, answer.holes, strict=True):
                    probabilities[line[rows[part], hole], : p.shape[1]] = p
        where = np.argwhere(is_hole)
        return HolePosterior(where[:, 0], where[:, 1], probabilities, logs)

    def _components_of(self, codes: NDArray[Any]) -> Iterator[tuple[Columns, NDArray[np.int64]]]:
        """Yield the components of the rows, each with the rows that have it."""
        cards = np.array(self.layout.cards)
        if (codes > cards).any():
            row, column = np.argwhere(codes > cards)[0]
            raise CodeRangeError(int(row), int(column), int(codes[row, column]), cards[column])
        masks, which = np.unique(codes == cards, axis=0, return_inverse=True)
        rows_of = defaultdict(list)
        for k, mask in enumerate(masks):
            rows = np.flatnonzero(which.ravel() == k)
            for columns in _connect(self.layout, np.flatnonzero(mask).tolist()):
                rows_of[columns].append(rows)
        for columns, stretches in rows_of.items():
            if columns not in self.components:
                self.components[columns] = _plan(self.layout, columns)
            yield columns, np.sort(np.concatenate(stretches))

    def _parts(self, component: Component, n: int) -> Iterator[slice]:
        """Yield stretches of questions whose tables can be held together."""
        largest = max(prod(self.layout.cards[h] for h in scope) for scope in component.scopes)
        if largest > self.largest_table:
            raise InsufficientMemoryError(
                f"{len(component.order)} connected missing cells need a table of {largest:,} "
                f"entries; the NumPy engine goes up to {self.largest_table:,}, and only the native "
                "one samples what is larger. Install a C++17 compiler and reinstall robustbn."
            )
        step = max(1, ENTRIES_AT_ONCE // largest)
        yield from (slice(start, start + step) for start in range(0, n, step))


def _connect(layout: Layout, holes: Sequence[int]) -> list[Columns]:
    """Return the components of the holes: those that share a family are connected."""
    components = [{hole} for hole in holes]
    for family in layout.families:
        tied = [c for c in components if c & set(family)]
        if len(tied) > 1:
            components = [c for c in components if not c & set(family)] + [set().union(*tied)]
    return [tuple(sorted(c)) for c in components]


def _plan(layout: Layout, columns: Columns) -> Component:
    """Choose the order of summing out: always the hole with the smallest table next."""
    families = [i for i, family in enumerate(layout.families) if set(family) & set(columns)]
    left = [set(layout.families[i]) & set(columns) for i in families]
    order: list[int] = []
    scopes: list[set[int]] = []

    def scope_of(hole: int) -> set[int]:
        return set().union(*(scope for scope in left if hole in scope))

    while len(order) < len(columns):
        hole = min(
            (c for c in columns if c not in order),
            key=lambda c: prod(layout.cards[h] for h in scope_of(c)),
        )
        scopes.append(scope_of(hole))
        left = [scope for scope in left if hole not in scope] + [scopes[-1] - {hole}]
        order.append(hole)
    return Component(
        tuple(order),
        tuple(tuple(sorted(scope, key=order.index)) for scope in scopes),
        tuple(families),
        tuple(tuple(h for h in order if h in layout.families[i]) for i in families),
    )


def _bases(layout: Layout, component: Component, codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each family starts: its cell with every hole in state 0; shape (n, families)."""
    bases = np.empty((len(codes), len(component.families)), dtype=np.int64)
    for k, i in enumerate(component.families):
        bases[:, k] = layout.cell_start[i]
        for column, stride in zip(layout.families[i], layout.strides[i], strict=True):
            if column not in component.order:
                bases[:, k] += stride * codes[:, column].astype(np.int64)
    return bases


def _cells(
    layout: Layout, component: Component, k: int, bases: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cells of family k for every state of its holes; shape (n, states ...)."""
    i = component.families[k]
    holes = component.holes_of[k]
    cells = bases[:, k].reshape(-1, *[1] * len(holes))
    for axis, hole in enumerate(holes):
        step = layout.strides[i][layout.families[i].index(hole)] * np.arange(layout.cards[hole])
        cells = cells + step.reshape(-1, *[1] * (len(holes) - axis - 1))
    return cells


def _answer(layout: Layout, component: Component, q: Vector, bases: NDArray[np.int64]) -> Answer:
    """Sum out the holes one after another, then go back from the last to the first.

    The table of hole h is the product of all factors and messages that speak of it and have not
    been used before; its sum over h is a message about the rest of its scope. Backwards, a table
    becomes the probability of its scope: times that of the rest, over the message.
    """
    factors: list[tuple[Columns, NDArray[np.float64]]] = [
        (component.holes_of[k], q[_cells(layout, component, k, bases)])
        for k in range(len(component.families))
    ]
    log_sums = np.zeros(len(bases))
    tables, messages = [], []
    user: dict[int, int] = {}  # which table used factor k; messages are numbered after families
    for h, (hole, scope) in enumerate(zip(component.order, component.scopes, strict=True)):
        table = np.ones((len(bases), *(layout.cards[c] for c in scope)))
        for k, (holes, factor) in enumerate(factors):
            if hole in holes and k not in user:
                user[k] = h
                table = table * _spread(factor, holes, scope)
                table, log_peak = _scaled(table)
                log_sums += log_peak
        tables.append(table)
        messages.append(table.sum(axis=1))
        factors.append((scope[1:], messages[-1]))
    for scope, message in zip(component.scopes, messages, strict=True):
        if len(scope) == 1:
            with np.errstate(divide="ignore"):
                log_sums += np.log(message)
    n_families = len(component.families)
    for h in reversed(range(len(tables))):
        scope, table, message = component.scopes[h], tables[h], messages[h]
        rest = np.ones(len(bases))
        if len(scope) > 1:
            parent = user[n_families + h]
            rest = _margin(tables[parent], component.scopes[parent], scope[1:])
        ratio = np.divide(rest, message, out=np.zeros_like(message), where=message > 0)
        tables[h] = table * ratio[:, None]
    return Answer(
        log_sums,
        [
            _margin(tables[user[k]], component.scopes[user[k]], component.holes_of[k])
            for k in range(n_families)
        ],
        [
            _margin(table, scope, scope[:1])
            for table, scope in zip(tables, component.scopes, strict=True)
        ],
    )


def _spread(factor: NDArray[np.float64], holes: Columns, scope: Columns) -> NDArray[np.float64]:
    """Return the factor with an axis of length 1 for every hole of the scope that it lacks."""
    axes = [axis for axis, hole in enumerate(scope, start=1) if hole not in holes]
    return np.expand_dims(factor, axes)


def _margin(table: NDArray[np.float64], scope: Columns, holes: Columns) -> NDArray[np.float64]:
    """Return the sum of a table over all but the holes."""
    axes = tuple(axis for axis, hole in enumerate(scope, start=1) if hole not in holes)
    margin: NDArray[np.float64] = table.sum(axis=axes)
    return margin


def _scaled(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the table with a largest entry of 1 a question, and the logarithm of what it was."""
    peak = table.reshape(len(table), -1).max(axis=1)
    with np.errstate(divide="ignore"):
        return table / _like(np.where(peak > 0, peak, 1.0), table), np.log(peak)


def _like(values: NDArray[np.float64], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one value a question, with as many axes as the table."""
    return values.reshape(-1, *[1] * (table.ndim - 1))
