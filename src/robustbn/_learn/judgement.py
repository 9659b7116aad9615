"""Which components are bad rows, and which are classes of the good population.

Natural variety explains a little about many rows, or breaks a few families by a lot; bad rows are
few, each is explained a lot, and many of their families have lost their parents. A component's
standing is what it brings a row, times the square root of the breadth of what it breaks, of the
share of its families that are independent of their parents, and of how many rows it has for each
parameter it uses. It is bad if it stands out, by itself and from the component after it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Vector
from robustbn._core.row_model import log_sum_exp, softplus
from robustbn._core.tuning import Tuning
from robustbn._learn.proposals import Sample
from robustbn._learn.tied_kinds import Population, Search
from robustbn._learn.ties import ALONE, Families

MOST_BAD = 0.5  # share of the rows: with more, there is no majority to stand out from


def find_standings(sample: Sample, families: Families, found: Search) -> Vector:
    """Return the standing of each component; shape (K,)."""
    tuning, population = sample.tuning, found.population
    counts = sample.rows.count(population.shares * sample.base[:, None])
    standings = []
    weights = np.maximum(sample.base @ population.shares[:, 1:], 1e-9)
    for k, gain in enumerate(found.gains):
        n, later = float(weights[k]), list(range(k, len(found.gains)))
        missed = _evidence_without(sample, found, [k], weights)
        if population.model.shares[later].sum() <= tuning.standing_share:
            missed = max(missed, _evidence_without(sample, found, later, weights))
        evidence = min(gain.evidence, missed)
        breadth = _find_breadth(families, population, k, counts[:, 1 + k] / n)
        alone = float(np.mean(population.ties.modes[:, k] == ALONE))
        wanted = tuning.standing_rows * max(float(population.ties.n_parameters[k]), 1.0)
        broken = breadth * (alone + tuning.standing_alone) * n / (n + wanted)
        standings.append(max(evidence, 0.02) * float(np.sqrt(broken)))
    is_large = population.model.shares > tuning.standing_share
    return np.where(is_large, 1e-3, standings) if standings else np.empty(0)


def _evidence_without(sample: Sample, found: Search, left_out: list[int], weights: Vector) -> float:
    """Return what some components bring for each row they hold, nothing refitted without them.

    Asked of one component, and of it and all that entered after it: these may have split its rows,
    and then none of them alone is missed.
    """
    odds, shares = found.population.log_odds, found.population.model.shares
    rest = np.delete(odds, left_out, axis=1)
    share = float(np.clip(shares[left_out].sum(), 1e-12, 1 - 1e-9))
    without = softplus(log_sum_exp(rest)) if rest.shape[1] else 0.0
    lost = softplus(log_sum_exp(odds)) - without + np.log1p(-share)
    cost = sum(found.gains[k].cost * float(weights[k]) for k in left_out)
    return (float(sample.base @ lost) - cost) / float(weights[left_out].sum())


def _find_breadth(families: Families, population: Population, k: int, share: Vector) -> float:
    """Return the share of the families that a component breaks, as if all broke alike.

    `(sum of sqrt D)^2 / (d sum of D)` with D the divergence of each family from the good one.
    """
    evidence = share * population.model.evidence[:, k]
    apart = np.maximum(families.sum_by_node(evidence), 0)
    return float(np.sqrt(apart).sum() ** 2 / max(apart.sum(), 1e-9) / len(apart))


def accept(
    standings: Vector, shares: Vector, is_exhausted: bool, tuning: Tuning
) -> NDArray[np.bool_]:
    """Return which components are bad: the first few, as many as stand out from the next.

    `A[c]^2 >= factor * max(A[c + 1], natural)`: half a ratio to the next, half a level by itself.

    Parameters
    ----------
    is_exhausted : whether there are no more components than these to be found.
    """
    order = np.argsort(-standings)
    ordered, is_bad = standings[order], np.zeros(len(standings), bool)
    for c in range(len(standings), 0, -1):
        following = 0.0 if is_exhausted else float(ordered[-1])
        following = float(ordered[c]) if c < len(standings) else following
        least = tuning.standing_factor * max(following, tuning.standing_natural)
        if ordered[c - 1] ** 2 >= least and shares[order[:c]].sum() <= MOST_BAD:
            is_bad[order[:c]] = True
            break
    return is_bad


def keep_within(
    most: float, is_bad: NDArray[np.bool_], standings: Vector, shares: Vector
) -> NDArray[np.bool_]:
    """Return the bad components that stand out most, as many as may be bad; shape (K,).

    Parameters
    ----------
    most : share of the rows that may be bad.
    """
    order = np.argsort(-standings)
    kept = np.zeros(len(is_bad), bool)
    kept[order] = is_bad[order] & (np.cumsum(shares[order] * is_bad[order]) <= most)
    return kept
