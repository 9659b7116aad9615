"""Why a row is distrusted: the cells that speak most against it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.row_model import RowModel
from robustbn.network import BayesianNetwork

ROWS_AT_ONCE = 2**14


@dataclass(frozen=True)
class Reason:
    """Why one row is distrusted.

    Parameters
    ----------
    cells : the cells of the row that speak most against it, most telling first.
    nodes : the nodes they belong to.
    text : the same as a sentence.
    """

    cells: tuple[int, ...]
    nodes: tuple[str, ...]
    text: str


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
    """Explains rows by what a fit knows of good and bad ones.

    Parameters
    ----------
    network : with the learned tables.
    model : how rows are judged.
    name_kinds : returns what to put before the reason of each row: the cause of its kind.
    """

    network: BayesianNetwork
    model: RowModel
    name_kinds: Callable[[Codes], list[str]] | None = None

    def explain(self, codes: Codes, n_cells: int = 3) -> list[Reason]:
        """Return why each row is distrusted. O(n d) time."""
        reasons: list[Reason] = []
        for start in range(0, len(codes), ROWS_AT_ONCE):
            part = codes[start : start + ROWS_AT_ONCE]
            cells = touched_cells(self.network.layout, part)
            against = self.model.speak_against(cells)
            order = np.argsort(-against, axis=1)[:, :n_cells]
            picked = np.take_along_axis(cells, order, axis=1)
            tells = np.take_along_axis(against, order, axis=1) > 0
            kinds = self.name_kinds(part) if self.name_kinds else [""] * len(part)
            lines = zip(part, picked.tolist(), tells.tolist(), kinds, strict=True)
            for row, top, telling, kind in lines:
                chosen = tuple(j for j, speaks in zip(top, telling, strict=True) if speaks)
                reasons.append(self._reason(chosen, row, kind))
        return reasons

    def _reason(self, cells: tuple[int, ...], row: Codes, kind: str) -> Reason:
        texts = [self._texts[j] for j in cells]
        copies = self._copies.get(tuple(row.tolist()))
        if copies is not None:
            texts.insert(0, copies)
        nodes = tuple(self.network.nodes[self._node_of_cell[j]] for j in cells)
        return Reason(cells, nodes, kind + "; ".join(texts))

    @cached_property
    def _node_of_cell(self) -> NDArray[np.int64]:
        layout = self.network.layout
        return np.repeat(np.arange(layout.n_nodes), layout.cells_per_node)

    @cached_property
    def _texts(self) -> _CellTexts:
        return _CellTexts(self.network)

    @cached_property
    def _copies(self) -> dict[tuple[int, ...], str]:
        repeats = self.model.repeats
        return {
            tuple(row): f"appears {seen:,} times, {_rounded(expected)} expected"
            for row, seen, expected in zip(
                repeats.codes.tolist(),
                repeats.seen.tolist(),
                repeats.expected.tolist(),
                strict=True,
            )
        }


class _CellTexts(dict[int, str]):
    """Words for a cell, made when first asked for."""

    def __init__(self, network: BayesianNetwork) -> None:
        super().__init__()
        self._network = network

    def __missing__(self, cell: int) -> str:
        node, parents, state = self._network.describe_cell(cell)
        text = f"{node}={state}{_given(parents)} ({self._network.probabilities[cell]:.1%} expected)"
        self[cell] = text
        return text


def _given(parents: dict[str, Hashable]) -> str:
    return " given " + ", ".join(f"{p}={v}" for p, v in parents.items()) if parents else ""


def _rounded(value: float) -> str:
    if value < 0.01:
        return "fewer than 0.01"
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"
