"""Which rows a person should look at: those whose answer would change the tables most.

The answer to one row says on which side the rows like it belong. So every group has a stake: by
how much the tables would move if it changed sides; so do the rows that filters and repeats speak
against. Groups are asked about first, one typical row each. After that a row is worth the stakes of
what it is an example of, and each answer makes the next one about the same group worth less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import normalise_counts
from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import RowModel

TYPICAL = 0.5  # of a row that is of a group, to stand for it
LEAST_SHARE = 0.01  # of a row that belongs to a component, for it to be an example of it


@dataclass(frozen=True)
class Question:
    """A row to look at."""

    place: int  # among the rows that were offered
    number: int  # of the group that it is an example of, from 1; 0 for rows that no group holds
    # share of the rows, on average over the nodes, whose state would be told otherwise if the
    # answer is not the expected one
    change: float


def choose_questions(
    layout: Layout,
    model: RowModel,
    counts: Vector,
    drawn: tuple[Rows, RowVector],
    offered: tuple[Rows, RowVector],
    n: int,
) -> list[Question]:
    """Return at most n rows to look at; no two alike.

    First one typical row of each group, the largest stake first; then those whose answers would
    change most.
    """
    belongs, belongs_drawn = (_belongs(model, *each) for each in (offered, drawn))
    scale = float(counts.sum()) / max(float(drawn[1].sum(dtype=np.float64)) * layout.n_nodes, 1e-9)
    is_distrusted = np.append(model.is_bad, True)
    of_groups = drawn[0].count(belongs_drawn) * scale
    stakes = find_stakes(layout, counts, of_groups, is_distrusted)
    prints = offered[0].fingerprints()
    asked, is_left = np.zeros(len(stakes)), belongs.max(axis=1) >= LEAST_SHARE
    typical = [k for k in np.argsort(-stakes, kind="stable").tolist() if stakes[k] > 0]
    questions: list[Question] = []
    while len(questions) < n and is_left.any():
        if typical:
            k = typical.pop(0)
            best = int(np.where(is_left, belongs[:, k], -1).argmax())
            if belongs[best, k] < TYPICAL:
                continue
        else:
            worth = np.where(is_left, belongs @ (stakes / (1 + asked)), 0.0)
            best = int(worth.argmax())
            if worth[best] <= 0:
                break
            k = int((belongs[best] * stakes).argmax())
        number = k + 1 if k < model.n_others else 0
        questions.append(Question(best, number, float(belongs[best] @ stakes)))
        asked += belongs[best]
        is_left &= prints != prints[best]
    return questions


def _belongs(model: RowModel, rows: Rows, trust: RowVector) -> RowVector:
    """Return of what each row is an example: of each group and, last, of none; (N, K + 1)."""
    others = np.empty((rows.n_rows, 0), np.float32)
    if model.n_others:
        others = model.judge(rows)[0][:, 1:].astype(np.float32)
    unexplained = np.clip(1 - trust - others @ (1 - model.kept), 0, 1)
    return np.hstack([others, unexplained[:, None].astype(np.float32)])


def find_stakes(
    layout: Layout, counts: Vector, of_groups: Vector, is_distrusted: NDArray[np.bool_]
) -> Vector:
    """Return by how much the tables would move if each group changed sides; shape (K,).

    The mean over nodes of `sum over configurations a of P(a) TV(now[a], then[a])`.
    """
    now, total = normalise_counts(layout, counts), max(float(counts.sum()), 1e-9)
    shown = layout.sum_configurations(counts)[layout.config_of_cell]
    stakes = np.zeros(of_groups.shape[1])
    for k, is_out in enumerate(is_distrusted):
        moved = of_groups[:, k]
        then = counts + moved if is_out else np.maximum(counts - moved, 0)
        stakes[k] = float(np.abs(normalise_counts(layout, then) - now) @ shown) / 2 / total
    return stakes
