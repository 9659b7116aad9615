"""Numbers that ascend or descend over a stretch of rows, as if a column was sorted by itself.

One order of the values is as likely as another, so a run of m of them in order, c of each value,
has the log-odds `log m! - sum log c!`. Tables may be sorted, or be series: the yardstick is what
the other runs of the column have. Of columns with few values a change looks like that, too: no
before some day, yes after it; so numbers alone are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.dirichlet import log_gamma
from robustbn._core.protocols import Vector

Rows = NDArray[np.int64]

MOST_RUNS = 4  # of a column that are returned; the next one is the yardstick
LEAST_NATS = 10.0  # nats beyond the price of a choice among all rows: odds of 20,000 to 1
LEAST_RATIO = 4.0  # times the log-odds of the yardstick
MOST_SORTED = 0.3  # share of the rows in such runs: with more, the table comes in order


@dataclass(frozen=True, eq=False)
class SortedRun:
    """Rows over which a column is in order."""

    rows: Rows  # places of the rows that have a value there, among those that were looked at
    is_ascending: bool
    nats: float  # log-odds, beyond the price of choosing the run
    size: float  # its log-odds over those of the yardstick


def find_sorted_runs(values: Vector, n_tried: int) -> list[SortedRun]:
    """Return the runs of rows over which a column is in order, as it is nowhere else.

    values : of the rows in their order, NaN where there is none; shape (n,).
    """
    rows = np.flatnonzero(np.isfinite(values))
    ordered = [(sign, *_find_runs(sign * values[rows])) for sign in (1, -1)]
    every = [
        (float(nats[k]), int(starts[k]), int(ends[k]), sign > 0)
        for sign, starts, ends, nats in ordered
        for k in np.argsort(-nats, kind="stable")[: MOST_RUNS + 1]
    ]
    every.sort(key=lambda run: -run[0])
    price = float(np.log(2.0 * max(len(rows), 1) * n_tried))
    usual = max(every[MOST_RUNS][0] if len(every) > MOST_RUNS else 0.0, price)
    found = [
        SortedRun(rows[start:end], is_up, nats - price, nats / usual)
        for nats, start, end, is_up in every[:MOST_RUNS]
        if nats - price >= LEAST_NATS and nats >= LEAST_RATIO * usual
    ]
    return found if sum(len(run.rows) for run in found) <= MOST_SORTED * len(rows) else []


def _find_runs(values: Vector) -> tuple[Rows, Rows, Vector]:
    """Return where each longest run that does not descend starts and ends, and its log-odds."""
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    steps = np.diff(values)
    starts = np.append(0, np.flatnonzero(steps < 0) + 1)
    ends = np.append(starts[1:], len(values))
    of_value = np.append(0, np.flatnonzero(steps != 0) + 1)  # where equal values start
    n_equal = np.diff(np.append(of_value, len(values))).astype(np.float64)
    run_of_value = np.searchsorted(starts, of_value, side="right") - 1
    ties = np.bincount(run_of_value, log_gamma(n_equal + 1), len(starts))
    return starts, ends, log_gamma((ends - starts) + 1.0) - ties
