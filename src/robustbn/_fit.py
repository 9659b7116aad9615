"""The conductor: the whole flow from rows to tables, on one page."""

from __future__ import annotations

from numpy.typing import ArrayLike

from robustbn._backends import load_backend
from robustbn._encode import as_codes
from robustbn._expand import log_probabilities, normalise_counts
from robustbn._protocols import Rows, RowVector, Vector
from robustbn.exceptions import CodeRangeError
from robustbn.network import BayesianNetwork


def load_rows(
    network: BayesianNetwork, X: ArrayLike, backend: str | None = None, n_threads: int | None = None
) -> Rows:
    """Check the rows and hand them to a backend."""
    codes = as_codes(X, network)
    try:
        return load_backend(backend).encode(network.layout, codes, n_threads)
    except CodeRangeError as wrong:
        raise CodeRangeError(
            wrong.row, wrong.column, wrong.value, wrong.n_states, network.nodes[wrong.column]
        ) from None


def fit_by_counting(
    rows: Rows, weights: RowVector | None, pseudo_counts: Vector | float
) -> tuple[Vector, Vector]:
    """Return the plain estimate, which trusts every row: tables and counts, each of shape (M,).

    Lines 1 and 2 of the paper's Algorithm 1: `q^S` are the empirical conditional probabilities.
    """
    counts = rows.count(weights)
    return normalise_counts(rows.layout, counts, pseudo_counts), counts


def log_likelihood_of_rows(rows: Rows, probabilities: Vector) -> RowVector:
    """Return `log P(row)` for each row; shape (N,)."""
    return rows.project(log_probabilities(probabilities)[:, None])[:, 0]
