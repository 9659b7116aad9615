"""Which rows a person should look at: those whose answer would change the tables most.

The answer to one row says on which side the rows like it belong. So every component has a stake:
by how much the tables would move if it changed sides; so do the rows that filters and repeats
speak against. A row is worth the stakes of what it is an example of, and each answer makes the
next one about the same component worth less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import normalise_counts
from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import RowModel
from robustbn._core.tuning import Tuning

LEAST_SHARE = 0.01  # of a row that belongs to a component, for it to be an example of it


@dataclass(frozen=True)
class Question:
    """A row to look at.

    Parameters
    ----------
    place : among the rows that were offered.
    column : of the kind of bad rows that it is an example of, among the model's; one more for rows
        that no kind holds, -1 for none.
    change : share of the rows, on average over the nodes, whose state would be told otherwise if
        the answer is not the expected one.
    """

    place: int
    column: int
    change: float


def choose_questions(
    layout: Layout,
    model: RowModel,
    counts: Vector,
    drawn: tuple[Rows, RowVector],
    offered: tuple[Rows, RowVector],
    n: int,
    tuning: Tuning,
) -> list[Question]:
    """Return at most n rows to look at, the most telling first; no two alike.

    Parameters
    ----------
    counts : weight of the trusted rows on each cell; shape (M,).
    drawn : rows drawn evenly from all, and the trust in them.
    offered : rows to choose from, and the trust in them.
    """
    belongs, belongs_drawn = (_belongs(model, *each) for each in (offered, drawn))
    stakes = _find_stakes(layout, counts, drawn[0].count(belongs_drawn), drawn[1], model)
    stakes[~_is_distrusted(model)] *= tuning.ask_class
    prints = offered[0].fingerprints()
    asked, is_left = np.zeros(len(stakes)), belongs.max(axis=1) >= LEAST_SHARE
    kind_of = np.cumsum(_is_distrusted(model)) - 1
    questions: list[Question] = []
    while len(questions) < n:
        worth = np.where(is_left, belongs @ (stakes / (1 + asked)), 0.0)
        best = int(worth.argmax()) if len(worth) else 0
        if not len(worth) or worth[best] <= 0:
            break
        likely = int((belongs[best] * stakes).argmax())
        column = int(kind_of[likely]) if _is_distrusted(model)[likely] else -1
        questions.append(Question(best, column, float(belongs[best] @ stakes)))
        asked += belongs[best]
        is_left &= prints != prints[best]
    return questions


def _belongs(model: RowModel, rows: Rows, trust: RowVector) -> RowVector:
    """Return of what each row is an example; shape (N, K + 1).

    Of each component beside the main class; and, last, of rows that filters or repeats speak
    against and no kind holds.
    """
    others = np.empty((rows.n_rows, 0), np.float32)
    if model.n_others:
        others = model.judge(rows)[0][:, 1:].astype(np.float32)
    unexplained = np.clip(1 - trust - others[:, model.is_bad].sum(axis=1), 0, 1)
    return np.hstack([others, unexplained[:, None].astype(np.float32)])


def _is_distrusted(model: RowModel) -> NDArray[np.bool_]:
    return np.append(model.is_bad, True)


def _find_stakes(
    layout: Layout, counts: Vector, of_components: Vector, trust: RowVector, model: RowModel
) -> Vector:
    """Return by how much the tables would move if each component changed sides.

    The mean over nodes of `sum over configurations a of P(a) TV(now[a], then[a])`.
    """
    now = normalise_counts(layout, counts)
    total = float(trust.sum(dtype=np.float64))
    scale = float(counts.sum()) / max(total * layout.n_nodes, 1e-9)
    shown = layout.sum_configurations(counts)[layout.config_of_cell]
    stakes = np.zeros(of_components.shape[1])
    for k, is_distrusted in enumerate(_is_distrusted(model)):
        moved = of_components[:, k] * scale
        then = counts + moved if is_distrusted else np.maximum(counts - moved, 0)
        apart = np.abs(normalise_counts(layout, then) - now) / 2
        stakes[k] = float(apart @ shown) / max(float(counts.sum()), 1e-9)
    return stakes
