"""What a worker is asked in a pass: sums over the rows of its partitions, or something of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Rows, RowVector, TwoSides, Vector
from robustbn._rows.dask.partition import FoundInPartition, Partition

T = TypeVar("T")
Sum = tuple[Vector, Vector]  # a sum, and what rounding has taken from it
Question = Callable[[Partition, Any], tuple[Vector | None, Any]]  # a sum over rows, and the rest


def visit(
    question: Question, partitions: list[Partition], given: list[Any] | None
) -> tuple[Sum | None, list[Any]]:
    """Do one worker's share of a pass: return the sum, and the rest of each partition's answer."""
    total: Sum | None = None
    answers = []
    for k, partition in enumerate(partitions):
        table, answer = question(partition, None if given is None else given[k])
        if table is not None:
            total = add(total, (table, np.zeros_like(table)))
        answers.append(answer)
    return total, answers


def add(total: Sum | None, more: Sum) -> Sum:
    """Add with what rounding takes kept beside: the result does not depend on the order.

    For sums `s = a + b` the error is known exactly, as `(a - (s - b')) + (b - b')` where
    `b' = s - a`; errors are summed on their own.
    """
    if total is None:
        return more
    a, b = total[0], more[0]
    s = a + b
    from_b = s - a
    lost = (a - (s - from_b)) + (b - from_b)
    return s, total[1] + more[1] + lost


def hold(value: T) -> T:
    """Return what is given: a task for what a worker should have at hand."""
    return value


def describe(partition: Partition, _: None) -> tuple[None, tuple[int, FoundInPartition]]:
    """Return how many rows are left, and what was found."""
    return None, (len(partition.codes), partition.found)


def pick_rows(partition: Partition, numbers: NDArray[np.int64]) -> tuple[None, Codes]:
    """Return the codes of some rows, by their numbers in the partition."""
    return None, partition.codes[numbers]


def all_codes(partition: Partition, _: None) -> tuple[None, Codes]:
    """Return the codes of all rows."""
    return None, partition.codes


def count_rows(partition: Partition, weights: RowVector | None) -> tuple[Vector, None]:
    """Return the counts."""
    return partition.rows.count(weights), None


def judge_rows(
    weigh: Callable[[Rows], RowVector],
    keeps_trust: bool,
    verdict: str | None,
    partition: Partition,
    weights: RowVector | None,
) -> tuple[Vector, tuple[float, float, RowVector | None]]:
    """Return the counts by the trust in each row, its sum, and that trust if it is to be kept.

    With the name of a verdict, what rows that miss values ask is gathered, and the weight of the
    questions that are sampled is returned before the trust.
    """
    trust = weigh(partition.rows)
    judged = trust if weights is None else trust * weights
    total = float(judged.sum(dtype=np.float64))
    n_sampled = 0.0
    if verdict is not None:
        n_sampled = partition.gather(verdict, lambda: judged).n_sampled
    return partition.rows.count(judged), (total, n_sampled, trust if keeps_trust else None)


def expect_rows(
    weigh: Callable[[Rows], RowVector],
    verdict: str,
    q: Vector,
    partition: Partition,
    weights: RowVector | None,
) -> tuple[Vector, tuple[float, float]]:
    """Return the expected counts of the families that miss a value, and their variances.

    And the log-likelihood of what they show under the tables q, and the weight that is impossible.
    """

    def judge() -> RowVector:
        trust = weigh(partition.rows)
        return trust if weights is None else trust * weights

    found = partition.gather(verdict, judge).expect(q)
    errors = np.zeros_like(found.counts) if found.standard_errors is None else found.standard_errors
    return np.stack([found.counts, errors**2]), (found.log_likelihood, found.n_impossible)


def project_rows(
    table: Vector, offset: Vector | None, partition: Partition, _: None
) -> tuple[None, RowVector]:
    """Return `y` of each row."""
    return None, partition.rows.project(table, offset)


def score_rows(
    table: Vector, offset: Vector | None, partition: Partition, _: None
) -> tuple[None, RowVector]:
    """Return `|y|^2` of each row."""
    return None, partition.rows.score(table, offset)


def sum_rows(
    table: Vector, offset: Vector | None, partition: Partition, weights: RowVector | None
) -> tuple[Vector, None]:
    """Return the sums of `y` over the rows that touch each cell."""
    return partition.rows.gram(table, offset, weights), None


def divide_rows(
    table: Vector, offset: Vector | None, partition: Partition, weights: RowVector | None
) -> tuple[Vector, Vector]:
    """Return the counts of rows divided among columns; their masses, then the sum of logs."""
    divided = partition.rows.divide(table, offset, weights)
    return divided.counts, np.append(divided.masses, divided.log_sum)


def divide_rows_apart(
    table: Vector, offset: Vector | None, partition: Partition, both: RowVector
) -> tuple[Vector, Vector]:
    """Return the counts of rows divided in each column alone; their masses, and the sums of logs.

    Parameters
    ----------
    both : the weight of each row, and what is against all columns; shape (n, 2).
    """
    weights, against = np.ascontiguousarray(both.T)
    divided = partition.rows.divide_apart(table, offset, against, weights)
    return divided.counts, np.stack([divided.masses, divided.log_sums])


def find_odds(
    table: Vector, offset: Vector | None, n_first: int, partition: Partition, _: None
) -> tuple[None, RowVector]:
    """Return the log-odds of each row between two sides of columns."""
    return None, partition.rows.odds(table, offset, n_first)


def divide_rows_in_two(
    table: Vector,
    offset: Vector | None,
    sides: TwoSides,
    partition: Partition,
    weights: RowVector | None,
) -> tuple[Vector, tuple[Vector, RowVector]]:
    """Return the counts of rows divided between two sides; their masses, and their odds."""
    divided = partition.rows.divide_in_two(table, offset, sides, weights)
    return divided.counts, (divided.masses, divided.odds)


def hash_rows(partition: Partition, _: None) -> tuple[None, NDArray[np.uint64]]:
    """Return the hash of each row."""
    return None, partition.rows.fingerprints()
