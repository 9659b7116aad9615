"""The rows that are least trusted, those that are alike as one, each with why and of which kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import RowVector
from robustbn._show.page.content import ExplainedRow

if TYPE_CHECKING:
    from robustbn._show.fitted import FittedEstimator

MOST_ALIKE = 50  # rows that are named beside the first of those that are alike


def explain_rows(fit: FittedEstimator, max_rows: int) -> list[ExplainedRow]:
    """Return the least trusted rows, worst and most frequent first, those that are alike as one.

    O(n d) time for n distrusted rows, and O(max_rows d) to explain them.

    Parameters
    ----------
    max_rows : how many different rows at the most.
    """
    judged = fit._judged
    order, first, counts = gather_rows(judged.codes, judged.doubts)
    trust = np.round(judged.doubts[order[first]], 3)  # what is smaller is no difference
    shown = np.lexsort((order[first], -counts, trust))[:max_rows]
    groups = [order[first[g] : first[g] + min(counts[g], MOST_ALIKE)] for g in shown]
    named = _name(fit, groups)
    worst = np.array([group[0] for group in groups], np.int64)
    codes = judged.codes[worst]
    each = zip(
        worst.tolist(),
        codes.tolist(),
        fit.explainer_.explain(codes),
        find_kinds(fit, codes).tolist(),
        counts[shown].tolist(),
        named,
        strict=True,
    )
    return [
        ExplainedRow(
            row=alike[0][0],
            weight=float(judged.doubts[place]),
            states=fit.network_.label_row(line),
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


def find_kinds(fit: FittedEstimator, codes: Codes) -> NDArray[np.int64]:
    """Return the number of the kind that each row is most likely of, 0 for none; shape (n,)."""
    if not len(codes):
        return np.zeros(0, np.int64)
    number = {column: k for k, column in enumerate(fit._kinds().columns, start=1)}
    columns = fit._fit.model.most_like(fit._load_codes(codes))
    return np.array([number.get(column, 0) for column in columns], np.int64)


def _name(
    fit: FittedEstimator, groups: list[NDArray[np.int64]]
) -> list[tuple[tuple[int, tuple[str, ...]], ...]]:
    """Return the number of each row of each group, and its values in the columns that rows keep."""
    if not groups:
        return []
    numbers = fit._judged.numbers[np.concatenate(groups)]
    pairs = list(zip(numbers.tolist(), _names_of(fit, numbers), strict=True))
    ends = np.cumsum([len(group) for group in groups]).tolist()
    return [tuple(pairs[end - len(group) : end]) for end, group in zip(ends, groups, strict=True)]


def name_singled(fit: FittedEstimator) -> dict[int, tuple[str, ...]]:
    """Return what typical rows, good ones beside them and repeated ones hold in columns kept."""
    numbers = {n for kind in fit.kinds_ for each in kind.examples for n in (each.row, each.nearest)}
    numbers |= {each.row for each in fit.repeats_}
    if not numbers or not fit._aside.names:
        return {}
    order = np.array(sorted(numbers), np.int64)
    return dict(zip(order.tolist(), _names_of(fit, order), strict=True))


def _names_of(fit: FittedEstimator, numbers: NDArray[np.int64]) -> list[tuple[str, ...]]:
    """Return what rows hold in the columns that they keep, as text; empty where it is missing."""
    kept = list(fit._aside.of(numbers).values())
    names = [
        tuple("" if value is None else str(value) for value in line)
        for line in zip(*kept, strict=True)
    ]
    return names or [()] * len(numbers)
