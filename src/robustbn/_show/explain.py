"""Why rows are distrusted: the cells that speak most against each; those that are alike as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.numbers import rounded
from robustbn._core.protocols import RowVector
from robustbn._core.row_model import RowModel
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn._show.result import FitResult

ROWS_AT_ONCE = 2**14
MOST_ALIKE = 50  # rows that are named beside the first of those that are alike


@dataclass(frozen=True)
class Reason:
    """Why one row is distrusted."""

    cells: tuple[int, ...]  # the cells of the row that speak most against it, most telling first
    nodes: tuple[str, ...]  # the nodes they belong to
    text: str  # the same as a sentence


@dataclass(frozen=True)
class ExplainedRow:
    """A row that is not trusted, and why."""

    row: int  # its number, from 0
    weight: float  # the trust in it, from 0 to 1
    states: tuple[Hashable, ...]  # its state at every node, in the order of `network.nodes`
    why: str  # a sentence on the cells that speak against it
    blamed: tuple[str, ...] = ()  # the nodes of those cells, most telling first
    names: tuple[str, ...] = ()  # its values in the columns that rows keep
    n_alike: int = 1  # rows that show the same states with the same trust, itself included
    # some of the others: the number of each, and its names
    alike: tuple[tuple[int, tuple[str, ...]], ...] = ()
    kind: int = 0  # number of the kind of bad rows that it is of, 0 for none


def touched_cells(layout: Layout, codes: Codes) -> NDArray[np.int64]:
    """Return the cell of each node that each row touches, -1 where it is none; shape (n, d)."""
    wide = codes.astype(np.int64)
    is_hole = wide == np.array(layout.cards)
    cells = np.empty(wide.shape, np.int64)
    for i, family in enumerate(layout.families):
        cells[:, i] = layout.cell_start[i] + wide[:, family] @ np.array(layout.strides[i])
        cells[is_hole[:, family].any(axis=1), i] = -1
    return cells


@dataclass(frozen=True, eq=False)
class Explainer:
    """Explains rows by what a fit knows of good and bad ones."""

    network: BayesianNetwork  # with the learned tables
    model: RowModel  # how rows are judged
    # returns what to put before the reason of each row: the cause of its kind
    name_kinds: Callable[[Codes], list[str]] | None = None

    def explain(self, codes: Codes, n_cells: int = 3) -> list[Reason]:
        """Return why each row is distrusted. O(n d) time."""
        network, reasons = self.network, []
        for start in range(0, len(codes), ROWS_AT_ONCE):
            part = codes[start : start + ROWS_AT_ONCE]
            cells = touched_cells(network.layout, part)
            against = self.model.speak_against(cells)
            order = np.argsort(-against, axis=1)[:, :n_cells]
            picked = np.take_along_axis(cells, order, axis=1)
            picked[np.take_along_axis(against, order, axis=1) <= 0] = -1
            said = {j: _say_cell(network, j) for j in np.unique(picked).tolist() if j >= 0}
            kinds = self.name_kinds(part) if self.name_kinds else [""] * len(part)
            for row, kind, line in zip(part.tolist(), kinds, picked.tolist(), strict=True):
                chosen = tuple(j for j in line if j >= 0)
                copies = self._copies.get(tuple(row))
                texts = ([copies] if copies else []) + [said[j][1] for j in chosen]
                nodes = tuple(said[j][0] for j in chosen)
                reasons.append(Reason(chosen, nodes, kind + "; ".join(texts)))
        return reasons

    @cached_property
    def _copies(self) -> dict[tuple[int, ...], str]:
        repeats = self.model.repeats
        each = zip(repeats.codes.tolist(), repeats.seen, repeats.expected.tolist(), strict=True)
        return {
            tuple(row): f"appears {seen:,} times, "
            f"{'fewer than 0.01' if expected < 0.01 else rounded(expected, 2)} expected"
            for row, seen, expected in each
        }


def _say_cell(network: BayesianNetwork, cell: int) -> tuple[str, str]:
    """Return the node of a cell, and the cell in words."""
    node, parents, state = network.describe_cell(cell)
    given = ", ".join(f"{p}={v}" for p, v in parents.items())
    what = f"{node}={state}" + (f" given {given}" if given else "")
    return node, f"{what} ({network.probabilities[cell]:.1%} expected)"


# --- the least trusted rows ---------------------------------------------------------------------


def explain_rows(result: FitResult) -> list[ExplainedRow]:
    """Return the least trusted rows, worst and most frequent first, those that are alike as one."""
    judged = result.judged
    if judged is None:
        return []
    order, first, counts = gather_rows(judged.codes, judged.doubts)
    trust = np.round(judged.doubts[order[first]], 3)  # what is smaller is no difference
    shown = np.lexsort((order[first], -counts, trust))[: result.max_rows]
    groups = [order[first[g] : first[g] + min(counts[g], MOST_ALIKE)] for g in shown]
    named = _name(result, [judged.numbers[group] for group in groups])
    worst = np.array([group[0] for group in groups], np.int64)
    codes = judged.codes[worst]
    each = zip(
        worst.tolist(),
        codes.tolist(),
        result.explainer.explain(codes),
        result.number_kinds(codes).tolist(),
        counts[shown].tolist(),
        named,
        strict=True,
    )
    return [
        ExplainedRow(
            row=alike[0][0],
            weight=float(judged.doubts[place]),
            states=result.network.label_row(line),
            why=reason.text,
            blamed=reason.nodes,
            names=alike[0][1],
            n_alike=n_alike,
            alike=alike[1:],
            kind=kind,
        )
        for place, line, reason, kind, n_alike, alike in each
    ]


def gather_rows(
    codes: Codes, trust: RowVector
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return an order in which rows that are alike follow each other, and where groups begin.

    Rows are alike if they show the same states with the same trust: told by a random sum of both,
    64 bits wide. Returns the order, the place in it of the first row of each group, and how many
    rows each group has. O(n d) time.
    """
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, codes.shape[1] + 1, np.uint64) * np.uint64(2) + np.uint64(1)
    prints = np.ascontiguousarray(trust, np.float32).view(np.uint32) * factors[-1]
    for column, factor in zip(codes.T, factors, strict=False):
        prints = prints + column * factor
    order = np.argsort(prints, kind="stable")
    _, first, counts = np.unique(prints[order], return_index=True, return_counts=True)
    return order, first.astype(np.int64), counts.astype(np.int64)


def _name(
    result: FitResult, groups: list[NDArray[np.int64]]
) -> list[tuple[tuple[int, tuple[str, ...]], ...]]:
    """Return the number of each row of each group, and its values in the columns that rows keep."""
    if not groups:
        return []
    numbers = np.concatenate(groups)
    pairs = list(zip(numbers.tolist(), _names_of(result, numbers), strict=True))
    ends = np.cumsum([len(group) for group in groups]).tolist()
    return [tuple(pairs[end - len(group) : end]) for end, group in zip(ends, groups, strict=True)]


def name_singled(result: FitResult) -> dict[int, tuple[str, ...]]:
    """Return what typical rows, good ones beside them and repeated ones hold in columns kept."""
    examples = [each for kind in result.kinds for each in kind.examples]
    numbers = {number for each in examples for number in (each.row, each.nearest)}
    numbers |= {each.row for each in result.repeats}
    if not numbers or not result.aside.names:
        return {}
    order = np.array(sorted(numbers), np.int64)
    return dict(zip(order.tolist(), _names_of(result, order), strict=True))


def _names_of(result: FitResult, numbers: NDArray[np.int64]) -> list[tuple[str, ...]]:
    """Return what rows hold in the columns that they keep, as text; empty where it is missing."""
    kept = list(result.aside.of(numbers).values())
    names = [
        tuple("" if value is None else str(value) for value in line)
        for line in zip(*kept, strict=True)
    ]
    return names or [()] * len(numbers)
