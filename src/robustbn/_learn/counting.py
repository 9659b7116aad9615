"""The plain estimate: every row is trusted."""

from __future__ import annotations

from robustbn._core.expansion import log_probabilities, normalise_counts
from robustbn._core.protocols import Rows, RowVector, Vector


def fit_by_counting(
    rows: Rows, weights: RowVector | None, pseudo_counts: Vector | float
) -> tuple[Vector, Vector]:
    """Return tables and counts, each of shape (M,). One pass.

    Lines 1 and 2 of the paper's Algorithm 1: `q^S` are the empirical conditional probabilities.
    """
    counts = rows.count(weights)
    return normalise_counts(rows.layout, counts, pseudo_counts), counts


def log_likelihood_of_rows(rows: Rows, probabilities: Vector) -> RowVector:
    """Return `log P(row)` for each row; shape (N,). One pass."""
    return rows.project(log_probabilities(probabilities)[:, None])[:, 0]
