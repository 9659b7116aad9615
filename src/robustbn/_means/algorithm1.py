"""Algorithm 1 of the paper, with any oracle for robust means, and the same loop done jointly.

Line numbers are those of Algorithm 1 in Cheng and Lin (ICLR 2021). The paper's O(.) hide constants;
ours are below. The balance c and the smallest configuration probability alpha are taken as 1,
as in its informal theorem: at their measured values (alpha is about 1e-5 in real networks) the
thresholds would let everything pass.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustbn._core.expansion import Expansion, FollowingExpansion, normalise_counts, remember_pairs
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.result import Oracle, OracleResult, Round
from robustbn._means.weighting import drop_highest

RHO = 1.0  # times eps sqrt(d): rho at the start; the paper's O(.)
SHRINK = 0.6  # times: rho from round to round; the paper's c_1
BETA = 0.1  # times the paper's order: stability of the mean
GAMMA = 0.05  # times the paper's order: stability of the covariance
JOINT_ROUNDS = 6  # at most, of the joint loop: three settle it
JOINT_MOVED = 0.05  # eps: rounds that move less weight have settled
TRIMMED_ROUNDS = 5  # of the baseline: as it is used elsewhere


@dataclass(frozen=True, eq=False)
class Refined:
    """Where the outer loop ended."""

    q: Vector  # tables; shape (M,)
    weights: RowVector  # of the rows in the last round; shape (N,)
    rounds: tuple[Round, ...]  # what happened
    # converged, status: as the oracle said in the last round
    converged: bool
    status: str


def follow_paper(
    rows: Rows, oracle: Oracle, eps: float, on_round: Callable[[Round], None], **settings: Any
) -> Refined:
    """Run Algorithm 1: scale and centre fixed by the plain counts, q refined; slips are marked."""
    layout = rows.layout
    everything = np.ones(rows.n_rows, np.float32)
    start = Expansion.at_weights_of(rows, everything)  # lines 1 to 3, damped where counts are small
    pi = start.pi[layout.config_of_cell]
    q = start.q  # line 4
    rho = RHO * eps * math.sqrt(layout.n_nodes)  # line 6
    delta_1, delta_2 = eps * math.sqrt(math.log(1 / eps)), eps * math.log(1 / eps)
    shrinking = math.log(1 / SHRINK)
    n_rounds = max(1, math.ceil(math.log(max(rho / delta_1, 1.0)) / shrinking) + 1)
    pairs = remember_pairs(rows)
    rounds: list[Round] = []
    for t in range(n_rounds):  # line 7
        clock = time.perf_counter()
        # line 8, with the floors of Lemma first_phase
        beta = BETA * (delta_1 + eps * rho)
        gamma = GAMMA * (delta_2 + rho**2 + rho)
        vectors = Expansion(rows, q, start.pi, start.scale, pairs)
        found = oracle(vectors, eps, beta=beta, gamma=gamma, random_state=t, **settings)  # line 9
        step = np.divide(found.mean, start.scale * pi, out=np.zeros_like(q), where=pi > 0)
        q = normalise_counts(layout, np.clip(q + step, 0.0, 1.0))  # line 10; clipped: correction
        rho = max(SHRINK * rho, delta_1)
        rounds.append(_round(t, found, clock))
        on_round(rounds[-1])
    return Refined(q, found.weights, tuple(rounds), found.converged, found.status)


def follow_jointly(
    rows: Rows, oracle: Oracle, eps: float, on_round: Callable[[Round], None], **settings: Any
) -> Refined:
    """Let the oracle judge all rows afresh at the tables of the rows it trusted before.

    Centre and scale follow the weights, within a round (`follow_weights` says why) and from round
    to round, so that the mean is zero and variances are 1 among the rows that are trusted. A round
    starts again from full trust, which heals early mistakes. All rounds make the same random draws:
    between two of them only the tables differ, so that the loop can settle.
    """
    weights: RowVector = np.ones(rows.n_rows)
    pairs = remember_pairs(rows)
    rounds: list[Round] = []
    for t in range(JOINT_ROUNDS):
        clock = time.perf_counter()
        vectors = FollowingExpansion.at_weights_of(rows, weights, pairs=pairs)
        found = oracle(vectors, eps, random_state=0, **settings)
        rounds.append(_round(t, found, clock))
        on_round(rounds[-1])
        moved = float(np.abs(found.weights - weights).mean())
        weights = found.weights
        if moved < JOINT_MOVED * eps:
            break
    counts = rows.count(weights)
    return Refined(
        normalise_counts(rows.layout, counts), weights, tuple(rounds), found.converged, found.status
    )


def trim_by_likelihood(rows: Rows, eps: float, on_round: Callable[[Round], None]) -> Refined:
    """Fit, drop the least likely eps of the rows, refit: the baseline to beat."""
    layout = rows.layout
    weights: RowVector = np.ones(rows.n_rows)
    rounds: list[Round] = []
    for t in range(TRIMMED_ROUNDS):
        clock = time.perf_counter()
        counts = rows.count(weights)
        q = normalise_counts(layout, counts, 1e-3)
        likelihood = rows.project(np.log(q)[:, None])[:, 0]
        weights = drop_highest(np.ones(rows.n_rows), -likelihood, eps * rows.n_rows)
        removed = 1 - float(weights.mean())
        rounds.append(
            Round(
                t, "dropped the least likely rows", (), 0.0, removed, 0, time.perf_counter() - clock
            )
        )
        on_round(rounds[-1])
    counts = rows.count(weights)
    status = (
        "The least likely rows were dropped, as many as contamination specifies; no test was made."
    )
    return Refined(normalise_counts(layout, counts), weights, tuple(rounds), True, status)


def _round(number: int, found: OracleResult, clock: float) -> Round:
    last = found.history[-1] if found.history else None
    return Round(
        number=number,
        action="ran the oracle",
        eigenvalues=last.top if last else (),
        threshold=last.threshold if last else 0.0,
        removed=found.removed,
        n_kinds=0,
        wall_s=time.perf_counter() - clock,
    )
