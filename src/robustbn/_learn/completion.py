"""Tables from rows with missing cells: expectation-maximisation, accelerated.

A step expects what the missing cells would count under the tables of now, adds what the complete
families count, and makes new tables of the sum. The likelihood of what was seen never falls, but
steps shorten as they go: where a share s of what would tell is missing, a step leaves about s of
the way. So after every two steps a third is tried that is stretched by what the two show (SQUAREM:
Varadhan and Roland 2008), and kept if it explains what was seen better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustbn._core.expansion import (
    chi_distance,
    log_probabilities,
    normalise_counts,
    uniform_tables,
)
from robustbn._core.holes import Expectation, Holes
from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector
from robustbn._core.result import Inferred

START = 1.0  # rows a configuration, spread evenly at first: no step leaves a zero
SETTLED = 0.05  # standard errors left to go: a thousandth of a nat, what was seen says no more
NOISE = 0.25  # sampling noise left to go, where components are sampled: steps jump about as far
MOST_STEPS = 300  # each a pass over the distinct questions
STRETCH = 4.0  # times a step, at first; so much more after a success, less after a failure
MEMORY = 0.7  # times the pace found before: a stretch hides slow directions for a while
LEAST_LEFT = 0.1  # share of an inferred count that a stretched step leaves: never nothing


@dataclass(frozen=True, eq=False)
class Completion:
    """Tables that explain what was seen best, and how much of it was inferred."""

    tables: Vector  # of the last step; shape (M,)
    counts: Vector  # of the complete families, and expected ones of the others; shape (M,)
    # of what the rows show, under the tables before the last step; without the components that were
    # sampled or are impossible
    log_likelihood: float
    inferred: Inferred  # how it went
    # standard errors of `counts` that sampling adds; None if nothing was sampled
    sampling_errors: Vector | None


Complete = Callable[[Vector, Holes, float], Completion]  # the last of the positions of `complete`


@dataclass(frozen=True, eq=False)
class Point:
    """Tables, what they expect, and how well they explain what was seen."""

    tables: Vector  # shape (M,)
    counts: Vector  # of the complete families and, under the tables, of the others; shape (M,)
    log_likelihood: float  # of what was seen
    log_prior: float  # of the tables
    expected: Expectation  # of the families with a hole

    @property
    def rank(self) -> tuple[float, float]:
        """What a step should raise: less that is impossible, then likelihood times prior."""
        return -self.expected.n_impossible, self.log_likelihood + self.log_prior


def complete(
    layout: Layout,
    pseudo_counts: Vector | float,
    observed_counts: Vector,
    holes: Holes,
    unit: float = 1.0,
    *,
    accelerate: bool = True,
    tell: Callable[[int, float], None] | None = None,
) -> Completion:
    """Return the tables to which expectation-maximisation converges.

    Each step costs one pass over the distinct questions of the rows, not over the rows.

    observed_counts : weight of the rows that show each cell's whole family; shape (M,).
    unit : weight that says as much as one row: all that is measured in rows, such as standard
        errors, is measured in it, so that the scale of the weights does not matter.
    accelerate : whether to stretch steps; never done where components are sampled, whose likelihood
        is not known.
    tell : called after each step with its number and the standard errors that are left to go.
    """
    n_steps, pace, longest = 0, 1.0, STRETCH
    is_stretched = accelerate and holes.n_sampled == 0
    added = np.broadcast_to(pseudo_counts, observed_counts.shape)
    before: Vector | None = None

    def tables_from(counts: Vector) -> Vector:
        return normalise_counts(layout, counts, pseudo_counts)

    def take(tables: Vector) -> Point:
        nonlocal n_steps
        n_steps += 1
        expected = holes.expect(tables)
        seen = _log_likelihood(observed_counts, tables) + expected.log_likelihood
        prior = _log_likelihood(added, tables)
        return Point(tables, observed_counts + expected.counts, seen, prior, expected)

    step = take(_softened(layout, tables_from(observed_counts), observed_counts, unit * START))
    while True:
        first = take(tables_from(step.counts))
        tables = tables_from(first.counts)
        if before is not None:
            pace = _pace(before, step.counts, first.counts, unit)
        left = _left(layout, first, tables, pace, unit)
        if tell:
            tell(n_steps, left)
        is_converged = left <= max(SETTLED, NOISE * _noise(first, unit))
        if is_converged or n_steps >= MOST_STEPS:
            steps = {"n_steps": n_steps, "is_converged": is_converged, "left": left}
            return _conclude(observed_counts, holes, first, tables, steps)
        if not is_stretched:
            before, step = step.counts, first
            continue
        second = take(tables)
        found = _pace(step.counts, first.counts, second.counts, unit)
        pace = max(found, MEMORY * pace)
        length = min(found, longest)
        stretched = _stretch(step.counts, first.counts, second.counts, length)
        step = second
        if length > 1:
            least = observed_counts + LEAST_LEFT * second.expected.counts
            tried = take(tables_from(np.maximum(stretched, least)))
            is_better = tried.rank >= second.rank
            step = tried if is_better else second
            longest *= STRETCH if is_better else 1 / STRETCH
            longest = max(longest, STRETCH)


def _softened(layout: Layout, tables: Vector, counts: Vector, weight: float) -> Vector:
    """Return tables without zeros, which no step could leave: `weight` more a configuration."""
    of_config = layout.sum_configurations(counts)[layout.config_of_cell]
    return (of_config * tables + weight * uniform_tables(layout)) / (of_config + weight)


def _log_likelihood(counts: Vector, tables: Vector) -> float:
    """Return `sum of C log q`."""
    is_seen = counts > 0
    return float(counts[is_seen] @ log_probabilities(tables[is_seen]))


def _pace(c0: Vector, c1: Vector, c2: Vector, unit: float) -> float:
    """Return how many times its own length a step is from the end: 1 / (1 - rate), at least 1."""
    scale = 1 / np.sqrt(c2 + unit)
    r, v = (c1 - c0) * scale, (c2 - 2 * c1 + c0) * scale
    return max(1.0, float(np.linalg.norm(r)) / max(float(np.linalg.norm(v)), 1e-300))


def _stretch(c0: Vector, c1: Vector, c2: Vector, length: float) -> Vector:
    """Return `c0 + 2 a r + a^2 v`, with r the first step and v the change from it to the second."""
    # For a = 1 these are the counts after both; where all directions shrink alike, by `1 - 1 / a` a
    # step, those at the very end.
    return c0 + 2 * length * (c1 - c0) + length**2 * (c2 - 2 * c1 + c0)


def _left(layout: Layout, step: Point, after: Vector, pace: float, unit: float) -> float:
    """Return how far the end is, in standard errors of what was seen: `sqrt(pace) |step|`.

    |.| is in standard errors of complete rows, `|r|^2 = sum of C[k] r^2 / q`. With J the rate of
    the steps, what is left is `(1 - J)^-1 r` and what was seen tells `1 - J` of what complete rows
    would, so in its standard errors what is left has the square `r' (1 - J)^-1 r`, about
    `pace |r|^2`. Half of it is the log-likelihood still to gain, and no function of the tables has
    farther to go than this many of its own standard errors.
    """
    of_config = layout.sum_configurations(step.counts) / unit
    return float(np.sqrt(pace)) * chi_distance(layout, of_config, after, step.tables)


def _noise(point: Point, unit: float) -> float:
    """Return the standard error that sampling adds to the counts, in the unit of `_left`."""
    if point.expected.standard_errors is None:
        return 0.0
    variances = (point.expected.standard_errors / unit) ** 2
    return float(np.sqrt(np.sum(variances / np.maximum(point.counts / unit, 0.5))))


def _conclude(
    observed_counts: Vector, holes: Holes, last: Point, tables: Vector, steps: dict[str, Any]
) -> Completion:
    expected, starts = last.expected, holes.layout.cell_start[:-1]
    inferred, weight = (np.add.reduceat(each, starts) for each in (expected.counts, last.counts))
    how = Inferred(
        observed_counts=observed_counts,
        missing=np.divide(inferred, weight, out=np.zeros_like(weight), where=weight > 0),
        n_sampled=holes.n_sampled,
        n_impossible=expected.n_impossible,
        **steps,
    )
    return Completion(tables, last.counts, last.log_likelihood, how, expected.standard_errors)
