"""What the measured cells say: averages over seeds, who is lowest, where ours loses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cells import NOT_MEASURED, Record
from benchmarks.contenders import FLOOR, RIVALS

TIE = 1.02  # errors whose ratio is at most this count as equal

T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


@dataclass(frozen=True)
class Average:
    """Mean over seeds, and how far a 95 % interval reaches to either side (nan for one seed)."""

    mean: float
    reach: float
    n: int

    def show(self, digits: int = 4) -> str:
        """Return `mean ± reach`, or the mean alone."""
        mean = f"{self.mean:.{digits}f}"
        return mean if math.isnan(self.reach) else f"{mean} ± {self.reach:.{digits}f}"


def average(values: Sequence[float]) -> Average:
    """Return the mean and a 95 % interval by Student's t."""
    n = len(values)
    mean = float(np.mean(values))
    if n < 2:
        return Average(mean, math.nan, n)
    return Average(mean, T_95.get(n - 1, 1.96) * float(np.std(values, ddof=1)) / math.sqrt(n), n)


def bootstrap(
    records: Sequence[Record],
    statistic: Callable[[list[Record]], float],
    key: str,
    n_draws: int = 1000,
) -> tuple[float, float] | None:
    """Return a 95 % interval: groups of one key are drawn again, with all their records.

    None where there are fewer than three groups, of which an interval would say nothing.
    """
    groups = list(group_by(records, key).values())
    if len(groups) < 3:
        return None
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(groups), (n_draws, len(groups)))
    found = [statistic([r for g in draw for r in groups[g]]) for draw in draws]
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def with_interval(
    records: Sequence[Record],
    statistic: Callable[[list[Record]], float],
    form: str = ".0%",
    key: str = "table",
) -> str:
    """Return a figure and, in brackets, its interval over tables, or over another key."""
    interval = bootstrap(records, statistic, key)
    is_known = interval is not None and interval[0] < interval[1]  # never seen is not never
    shown = f" ({interval[0]:{form}} to {interval[1]:{form}})" if interval and is_known else ""
    return f"{statistic(list(records)):{form}}{shown}"


def errors_by_method(records: Iterable[Record]) -> dict[str, Average]:
    """Return the total variation of each method, averaged; a method that failed once is left out.

    A mean over the seeds that happened to succeed would flatter it.
    """
    values: dict[str, list[float]] = {}
    failed = set()
    for record in records:
        if "tv" in record:
            values.setdefault(record["method"], []).append(record["tv"])
        elif "failed" in record:
            failed.add(record["method"])
    return {method: average(tvs) for method, tvs in values.items() if method not in failed}


@dataclass(frozen=True)
class Outcome:
    """One network and one adversary: the error of ours beside that of every rival.

    Parameters
    ----------
    ours : error of ours; None if it failed.
    errors : of the rivals that were measured.
    floor : error of counting the good rows alone; None if it was not measured.
    """

    network: str
    adversary: str
    ours: float | None
    errors: dict[str, float]
    floor: float | None

    @property
    def best(self) -> tuple[str, float]:
        """The lowest of the rivals, and its error."""
        return min(self.errors.items(), key=lambda item: item[1])

    @property
    def is_lowest(self) -> bool:
        """Whether no rival is lower by more than a tie."""
        return self.ours is not None and self.ours <= TIE * self.best[1]

    @property
    def is_worst(self) -> bool:
        """Whether every rival is lower by more than a tie; true if ours failed."""
        return self.ours is None or self.ours > TIE * max(self.errors.values())


def judge(records: Sequence[Record], ours: str) -> list[Outcome]:
    """Return an outcome for each network and adversary of the records, in their order.

    There is no verdict where the time limit of the run left out ours or a rival.
    """
    outcomes = []
    for (network, adversary), group in group_by(records, "network", "adversary").items():
        errors = errors_by_method(group)
        rivals = {m: errors[m].mean for m in RIVALS if m in errors}
        if not rivals or any(is_left_out(r) for r in group if r["method"] in (ours, *RIVALS)):
            continue
        mine, floor = errors.get(ours), errors.get(FLOOR)
        outcomes.append(
            Outcome(
                network,
                adversary,
                mine.mean if mine else None,
                rivals,
                floor.mean if floor else None,
            )
        )
    return outcomes


def is_left_out(record: Record) -> bool:
    """Whether the run ended before the cell was begun."""
    return record.get("failed") == NOT_MEASURED


def group_by(records: Iterable[Record], *keys: str) -> dict[tuple[Any, ...], list[Record]]:
    """Return the records by their values of the keys, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in keys), []).append(record)
    return groups


def fit_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds against log size, by least squares; nan for one size."""
    if len(set(sizes)) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
