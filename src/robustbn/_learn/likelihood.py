"""How likely rows are under the tables of a network."""

from __future__ import annotations

from robustbn._core.expansion import log_probabilities
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._rows.memory import gather, load_rows
from robustbn._tables.coded import Table
from robustbn.network import BayesianNetwork


def log_likelihood_of_rows(rows: Rows, probabilities: Vector) -> RowVector:
    """Return `log P(row)` for each row; shape (N,). One pass."""
    return rows.project(log_probabilities(probabilities)[:, None])[:, 0]


def log_likelihood_of_table(
    network: BayesianNetwork, table: Table, kernels: str | None = None, n_threads: int | None = None
) -> RowVector:
    """Return `log P(what the row shows)`; NaN where too many connected values are missing."""
    q = network.probabilities
    rows = load_rows(network, table.codes, kernels, n_threads, holed=table.holed)
    found = log_likelihood_of_rows(rows, q)
    if not table.holed:
        return found
    holes = gather(network.layout, table.codes, None, n_threads, engine=kernels)
    return found + holes.posterior(table.codes, q).log_likelihoods
