"""Rows with holes: what they ask of the tables, and what the tables answer.

A hole is a cell whose value is missing; its code is one past the last state of its column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout
from robustbn._core.protocols import RowVector, Vector


@dataclass(frozen=True, eq=False)
class Expectation:
    """What the families with a hole count, expected under given tables."""

    # `sum of w[n] P(cell j | what row n shows)` over the rows in which the family of cell j has a
    # hole; shape (M,)
    counts: Vector
    # `sum of w log Z`, where Z is the sum over a component's holes of the product of the families
    # that they touch; components that are impossible or sampled are left out
    log_likelihood: float
    # weight of the components for which no states of the holes have a probability above zero; they
    # add nothing to the counts
    n_impossible: float = 0.0
    # of the counts, from sampling; None if nothing was sampled; shape (M,)
    standard_errors: Vector | None = None


@dataclass(frozen=True, eq=False)
class HolePosterior:
    """The probabilities of what is missing, row by row, columns ascending within a row."""

    # rows, columns: where the holes are; shape (n_holes,)
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    # of the states of each hole given what its row shows, then zeros up to the largest number of
    # states; a line of zeros if the row is impossible; shape (n_holes, r)
    probabilities: NDArray[np.float64]
    # of what each row shows in the families that have a hole: the log of the sum over all values of
    # the holes; 0 for a complete row, NaN where it was sampled; shape (N,)
    log_likelihoods: NDArray[np.float64]


class Holes(Protocol):
    """The distinct questions that rows with holes ask, with the weight of the rows that ask them.

    Holes of a row that share a family are connected. A component (a connected set of holes) is
    independent of the others given what the row shows, so a question is a component and, for every
    family that contains one of its holes, the states of the members that are shown.
    """

    @property
    def layout(self) -> Layout:
        """Where each cell lives."""

    @property
    def n_sampled(self) -> float:
        """Weight of the questions that are too large to answer exactly, and are sampled."""

    @property
    def n_bytes(self) -> int:
        """Memory that the questions take."""

    def add(self, codes: NDArray[Any], weights: RowVector | None = None) -> None:
        """Add the questions of more rows; codes of shape (N, d), weights of shape (N,)."""

    def expect(self, q: Vector) -> Expectation:
        """Return the expected counts of the families with a hole under tables q; shape (M,)."""

    def posterior(self, codes: NDArray[Any], q: Vector) -> HolePosterior:
        """Return the probabilities of every hole's states, of these rows, under tables q."""
