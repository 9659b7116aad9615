"""Numbers that lie far outside the rest of their column: codes for missing values, other units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

Way = Callable[[NDArray[np.float64]], NDArray[np.float64]]
LEAST = 40  # numbers: of fewer, nothing is called far
WIDEST_REST = 4.0  # spreads from the median: a far number lies farther out
LEAST_GAP = 1.5  # spreads without a number, between the rest and what is far
MOST_FAR = 0.25  # share of a column on one side: with more, it is no exception
REACH = 2.0  # times as far from the median as any ordinary number: a far one, in other rows
CODES = (0.0, -1.0, -2.0, -7.0, -8.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0, 99999.0)
CODE_GAP, CODE_ROWS = 0.5, 3  # spreads, and rows, of the smallest or largest number that is a code
APART_ROWS, APART_GAP = 5, 3.0  # rows, and spreads to the rest, of a group of far numbers
SLIPS = (10.0, 100.0, 1000.0, 12.0, 60.0)  # factors, if a decimal point slips, or of units
# different numbers at least (five look like any rest), and share at most, of such numbers; spreads
# of the logarithms below them; and how far apart they and the rest may be: the distance of
# Kolmogorov and Smirnov that one in 100 has. Four of 19,174 columns of public tables have some.
SLIP_ROWS, MOST_SLIPS, SLIP_GAP, SLIP_APART = 10, 0.1, 1.0, 1.63
MOST_ZEROS = 0.05  # share of a column: more zeros are part of what is measured
# Numbers with a wrong sign: different ones at least, of fewer any look like the rest; how many are
# far at least, whatever they look like; and spreads around zero without a number
FLIP_ROWS, BELOW_ROWS, FLIP_GAP = 20, 5, 0.5
# A number that stands for missing ones: rows that have it, times as many as have any other, numbers
# with as many digits in a spread, and standard errors by which it may be off the mean, since rows
# came or went. One of 6,639 columns of public tables has one, with ten digits: it may be right.
FILL_ROWS, FILL_TIMES, FILL_DIGITS, FILL_OFF = 20, 1.25, 30.0, 0.5
ROUNDING = 1e-3  # digits by which a number may be off for how it is kept


def find_rest(numbers: NDArray[np.float64]) -> tuple[int, int]:
    """Return where the rest of a column starts and ends, once far numbers are left out.

    A number is far if it lies several spreads from the median behind a gap, on the scale, plain or
    logarithmic, on which the quartiles are more nearly symmetric; or if it is the smallest or the
    largest one, is repeated, is a number that people write for a missing value (999, -9, 0), and
    stands alone: behind a gap, or as the only negative one, more frequent than numbers are here.
    Negative numbers are far, too, if there are few and none is near zero, and so are numbers that
    are like the rest but for one act; see `find_act`.

    >>> ages = np.sort(np.append(np.tile(np.arange(18.0, 90.0), 5), [999.0] * 4))
    >>> find_rest(ages)
    (0, 360)
    """
    n = len(numbers)
    if n < LEAST:
        return 0, n
    act = find_act(numbers)
    if act is not None:
        return act.low, act.high
    low, high = find_coded(numbers)
    low += _count_below_zero(numbers[low:high])
    inner = numbers[low:high]
    scaled = _choose_scale(inner)
    spread = _spread_of(scaled)
    if spread <= 0:
        return low, high
    apart = (scaled - np.quantile(scaled, 0.5)) / spread
    gaps = np.diff(apart)
    above = np.flatnonzero((gaps >= LEAST_GAP) & (apart[1:] > WIDEST_REST))
    below = np.flatnonzero((gaps >= LEAST_GAP) & (apart[:-1] < -WIDEST_REST))
    if len(above) and len(inner) - (above[0] + 1) <= MOST_FAR * n:
        high = low + int(above[0]) + 1
    if len(below) and below[-1] + 1 <= MOST_FAR * n:
        low += int(below[-1]) + 1
    return low, high


@dataclass(frozen=True)
class Act:
    """What was done to the far numbers of a column, which are like the rest without it."""

    # low, high: where the rest starts and ends
    low: int
    high: int
    factor: float  # of the far numbers: -1 for a wrong sign


def find_act(numbers: NDArray[np.float64]) -> Act | None:
    """Return what explains far numbers of a column, increasing; None if nothing does.

    A minus sign, or a factor of `SLIPS`: a decimal point that slipped, or another unit.

    >>> ages = np.repeat(np.arange(18.0, 75.0), 20)
    >>> find_act(np.append(ages, 12 * ages[::20]))
    Act(low=0, high=1140, factor=12.0)
    >>> find_act(np.append(ages[::20] / 1000, ages))
    Act(low=57, high=1197, factor=0.001)
    """
    low, high = find_coded(numbers)
    inner = numbers[low:high]
    n_flipped = find_flipped(inner)
    if n_flipped:
        return Act(low + n_flipped, high, -1.0)
    n, factor = find_slip(inner)
    if factor > 1:
        return Act(low, low + n, factor)
    if len(inner) and inner[0] > 0:
        n, factor = find_slip(1 / inner[::-1])
        if factor > 1:
            return Act(high - n, high, 1 / factor)
    return None


def find_slip(numbers: NDArray[np.float64]) -> tuple[int, float]:
    """Return where numbers start that are too large by a factor of `SLIPS`, and it; else 1."""
    # They lie behind a gap, are not all the same, and are distributed like the rest once divided.
    logs = np.log(numbers[np.searchsorted(numbers, 0.0, side="right") :])
    n = len(logs)
    start = max(int((1 - MOST_SLIPS) * n), 1)
    if n < LEAST or start >= n:
        return len(numbers), 1.0
    gaps = np.diff(logs[start - 1 :])
    first = start + int(np.argmax(gaps))
    rest, beyond = logs[:first], logs[first:]
    spread = _spread_of(rest)
    is_clear = spread > 0 and gaps[first - start] >= SLIP_GAP * spread
    ends = np.unique(beyond)
    if not is_clear or len(ends) < SLIP_ROWS:
        return len(numbers), 1.0
    ranks = np.searchsorted(beyond, ends, side="right") / len(beyond)
    whole, apart = _are_whole(np.exp(rest)), []
    for factor in SLIPS:
        divided = ends - np.log(factor) + 1e-9  # rounding
        of_rest = np.searchsorted(rest, divided, side="right") / len(rest)
        is_apart = float(np.abs(of_rest - ranks).max())
        apart.append(np.inf if whole and not _are_whole(np.exp(divided)) else is_apart)
    best = int(np.argmin(apart))
    if apart[best] >= SLIP_APART / np.sqrt(len(beyond)):
        return len(numbers), 1.0
    return len(numbers) - len(beyond), SLIPS[best]


def _are_whole(numbers: NDArray[np.float64]) -> bool:
    """Whether numbers, known to a few parts in a billion, are whole."""
    return bool((np.abs(numbers - np.round(numbers)) <= ROUNDING).all())


def find_flipped(numbers: NDArray[np.float64]) -> int:
    """Return how many numbers, the first ones, are negative and else like the others; 0 if none.

    >>> wages = np.repeat(np.arange(20.0, 75.0), 20)
    >>> find_flipped(np.sort(np.append(wages, -wages[::20])))
    55
    """
    n = _count_below_zero(numbers)
    if n < FLIP_ROWS:
        return 0
    return n if find_distance(-numbers[:n], numbers[n:]) < SLIP_APART / np.sqrt(n) else 0


def _count_below_zero(numbers: NDArray[np.float64]) -> int:
    """Return how many numbers, the first ones, are negative where hardly any should; 0 if none."""
    # They are few, not all the same, and there is a gap around zero, so that a number cannot be on
    # the wrong side by a little. Of 14,031 columns of public tables, five have such numbers.
    n = int(np.searchsorted(numbers, 0.0))
    if n > MOST_SLIPS * len(numbers) or len(np.unique(numbers[:n])) < BELOW_ROWS:
        return 0
    rest = numbers[n:]
    spread = _spread_of(rest)
    return n if rest[0] - numbers[n - 1] >= FLIP_GAP * spread > 0 else 0


def find_fill(numbers: NDArray[np.float64], share: float = 1.0) -> float | None:
    """Return the number that missing ones were filled in with; None if there is none.

    It is the mean of the others, has as many digits as most of them, and is more frequent than any.

    share : of the column's numbers that are given.

    >>> wages = np.append(np.arange(20.0, 75.0, 0.02), [47.49] * 20)
    >>> find_fill(wages)
    47.49
    """
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) < LEAST:
        return None
    value, n = float(values[counts.argmax()]), int(counts.max())
    if n < FILL_ROWS or n < FILL_TIMES * np.delete(counts, counts.argmax()).max():
        return None
    others = numbers[numbers != value]
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    digit = 10.0 ** min(int(exponent), 0)
    spread, in_digits = float(others.std()), others / digit
    is_rounder = np.mean(np.abs(in_digits - np.round(in_digits)) > ROUNDING) > 1 / 2
    if is_rounder or not FILL_DIGITS * digit <= spread < np.inf:
        return None
    unknown = 2 * np.sqrt(max(1 - share, 0.0))  # standard errors of the mean of all numbers
    off = digit / 2 + (FILL_OFF + unknown) * spread / np.sqrt(len(others))
    return value if abs(value - others.mean()) <= off else None


def is_apart(numbers: NDArray[np.float64], low: int, high: int) -> bool:
    """Whether far numbers are a group of their own: several, a wide gap away, or repeated codes."""
    coded = find_coded(numbers)
    if find_act(numbers) or _count_below_zero(numbers[coded[0] : coded[1]]):
        return True
    if (coded[0] and low >= coded[0]) or (coded[1] < len(numbers) and high <= coded[1]):
        return True
    scaled = _choose_scale(numbers)
    spread = _spread_of(scaled[low:high])
    below = low >= APART_ROWS and scaled[low] - scaled[low - 1] >= APART_GAP * spread
    n_above = len(numbers) - high
    above = n_above >= APART_ROWS and scaled[high] - scaled[high - 1] >= APART_GAP * spread
    return bool(below or above)


def find_coded(numbers: NDArray[np.float64]) -> tuple[int, int]:
    """Return where the rest of a column starts and ends, without codes at its ends."""
    low, high, spread = 0, len(numbers), _spread_of(numbers)
    after = int(np.searchsorted(numbers, numbers[0], side="right"))
    before = int(np.searchsorted(numbers, numbers[-1], side="left"))
    if after < high:
        first, gap = float(numbers[0]), float(numbers[after] - numbers[0])
        usual = len(numbers) / (1 + np.count_nonzero(np.diff(numbers)))
        if first < 0 <= numbers[after] and after > usual:
            gap = np.inf
        low = after if _stands_alone(first, after, gap, spread, high) else low
    last, n_last = float(numbers[-1]), len(numbers) - before
    if before > low and _stands_alone(
        last, n_last, last - numbers[before - 1], spread, len(numbers)
    ):
        high = before
    return low, high


def is_code(value: float) -> bool:
    """Whether people write a number for a missing value."""
    return value in CODES


def _stands_alone(value: float, n_rows: int, gap: float, spread: float, n: int) -> bool:
    most = MOST_ZEROS if value == 0 else MOST_FAR
    is_few = CODE_ROWS <= n_rows <= most * n
    return is_code(value) and is_few and gap > max(CODE_GAP * spread, 0)


def find_limits(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Return beyond which numbers others are far from all of these, which are increasing.

    They are `REACH` times as far from the median as any, on the scale of `find_rest`.

    >>> find_limits(np.arange(18.0, 81.0))
    (-13.0, 111.0)
    """
    to_scale, back = _choose_ways(numbers)
    ends = to_scale(numbers[[0, -1]])
    middle = float(np.median(to_scale(numbers)))
    with np.errstate(over="ignore"):
        first, last = np.clip(back(middle + REACH * (ends - middle)), -1e300, 1e300).tolist()
    return first, last


def _choose_scale(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return _choose_ways(numbers)[0](numbers)


def _choose_ways(numbers: NDArray[np.float64]) -> tuple[Way, Way]:
    """Return a way to numbers, or to logarithms if their quartiles are more symmetric; and back.

    Where some are zero or negative, `arcsinh` stands for the logarithm: incomes have long tails.
    """
    ways: tuple[Way, Way] = np.log, np.exp
    if numbers[0] <= 0:
        sizes = np.abs(numbers[numbers != 0])
        scale = float(np.median(sizes)) if len(sizes) else 1.0
        ways = lambda x: np.arcsinh(x / scale), lambda x: np.sinh(x) * scale
    is_longer = _skewness(ways[0](numbers)) < _skewness(numbers)
    return ways if is_longer else (np.asarray, np.asarray)


def _spread_of(numbers: NDArray[np.float64]) -> float:
    """Return the standard deviation of normal numbers whose quartiles are as far apart."""
    low, high = np.quantile(numbers, [0.25, 0.75])
    return float(high - low) / 1.349


def _skewness(numbers: NDArray[np.float64]) -> float:
    low, middle, high = np.quantile(numbers, [0.1, 0.5, 0.9])
    return abs(float(high - 2 * middle + low)) / max(float(high - low), 1e-300)


def find_distance(some: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Return the distance of Kolmogorov and Smirnov between two samples.

    >>> find_distance(np.arange(10.0), np.arange(5.0, 15.0))
    0.5
    """
    ends = np.unique(np.concatenate([some, others]))
    shares = [np.searchsorted(np.sort(x), ends, side="right") / len(x) for x in (some, others)]
    return float(np.abs(shares[0] - shares[1]).max())
