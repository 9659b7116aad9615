"""Where to cut numbers into intervals, at ends that are easy to read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from robustbn._core.tuning import TUNING


def cut_evenly(numbers: NDArray[np.float64], n_intervals: int) -> list[float]:
    """Return inner ends of intervals with about equally many rows.

    A value with more rows than an interval should have gets one of its own. There may be fewer
    intervals than asked for, none of them empty.

    Parameters
    ----------
    numbers : one a row, in order; finite.

    >>> cut_evenly(np.arange(1000.0), 4)
    [250, 500, 750]
    >>> cut_evenly(np.array([0.0] * 60 + list(range(1, 41))), 4)
    [1, 15, 28]
    """
    edges: list[float] = []
    start, n = 0, len(numbers)
    for left in range(n_intervals, 1, -1):
        size = (n - start) / left
        end = _nearest_change(numbers, start + size, start)
        if end >= n:
            break
        low = max(start + 1, math.ceil(end - TUNING.states_rounding * size))
        high = min(n - 1, math.floor(end + TUNING.states_rounding * size))
        is_one_value = numbers[start] == numbers[end - 1]
        if is_one_value or not numbers[low - 1] < numbers[high]:
            low = high = end
        ends = float(numbers[low - 1]), float(numbers[high])
        edge = find_readable(*ends, float(numbers[end]))
        edges.append(edge)
        start = int(np.searchsorted(numbers, edge, side="left"))
    return edges


def _nearest_change(numbers: NDArray[np.float64], wanted: float, start: int) -> int:
    """Return the place nearest to one that is wanted at which a new value begins, after `start`."""
    middle = min(max(round(wanted), start + 1), len(numbers) - 1)
    before = int(np.searchsorted(numbers, numbers[middle], side="left"))
    after = int(np.searchsorted(numbers, numbers[middle], side="right"))
    return before if before > start and wanted - before <= after - wanted else after


def cut_equally(low: float, high: float, n_intervals: int) -> list[float]:
    """Return inner ends of intervals of about equal width.

    >>> cut_equally(0.3, 9.9, 3)
    [3.5, 7]
    """
    width = (high - low) / n_intervals if high > low else 1.0
    middles = [low + k * width for k in range(1, n_intervals)]
    slack = TUNING.states_rounding * width
    return [find_readable(m - slack, m + slack, m) for m in middles]


def find_readable(low: float, high: float, wanted: float) -> float:
    """Return the number above `low` and at most `high` with the fewest digits; a whole one as int.

    Of several, the one nearest to what is wanted.

    >>> find_readable(643.2, 655.1, 648), find_readable(-3, 7, 5), find_readable(0.61, 0.82, 0.69)
    (650, 0, 0.7)
    """
    if low < 0 <= high:
        return 0
    power = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for exponent in range(power, power - 18, -1):
        for part in (1, 0.5):  # 1000; 500; 100; 50; 10; ...
            step = 10.0**exponent * part
            for place in (round(wanted / step), math.floor(high / step)):
                edge = float(f"{place * step:.15g}")
                if low < edge <= high:
                    return int(edge) if edge.is_integer() and abs(edge) < 2**53 else edge
    return high


def name_intervals(edges: Sequence[float]) -> list[str]:
    """Return what to call the intervals between edges: the first and the last are open.

    >>> name_intervals([645, 1076.5])
    ['< 645', '[645, 1076.5)', '>= 1076.5']
    """
    texts = [f"{edge:.15g}" for edge in edges]
    inner = [f"[{low}, {high})" for low, high in pairwise(texts)]
    return [f"< {texts[0]}", *inner, f">= {texts[-1]}"]
