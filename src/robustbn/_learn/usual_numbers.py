"""Which numbers of new rows are where hardly any number of the fit was.

Of each node that is cut into intervals, a few limits are kept, and how many numbers of the fit are
beyond each. Of new numbers, as many are beyond the m-th smallest of n others as chance says: by a
negative hypergeometric distribution, whatever the distribution of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from robustbn._core.far import LEAST, find_limits, find_rest
from robustbn._core.result import Limit, UsualNumbers
from robustbn._learn.gate import ALARM

TAILS = (0.001, 0.01)  # shares of the fit's numbers that are beyond a limit, at each side
MOST_TERMS = 100_000  # of a tail that are added up


def find_usual(values: NDArray[np.float64]) -> UsualNumbers | None:
    """Return where numbers are; None if there are too few. NaN is none."""
    numbers = np.sort(values[np.isfinite(values)])
    low, high = find_rest(numbers)
    if high - low < LEAST:
        return None
    rest = numbers[low:high]
    far = [
        Limit(number, is_upper, _count_beyond(numbers, number, is_upper), True)
        for number, is_upper in zip(find_limits(rest), (False, True), strict=True)
    ]
    tails = [
        Limit(number, is_upper, _count_beyond(numbers, number, is_upper), False)
        for share in TAILS
        for k in [math.ceil(share * len(rest)) - 1]
        for number, is_upper in ((float(rest[k]), False), (float(rest[-1 - k]), True))
    ]
    return UsualNumbers(len(numbers), float(rest[0]), float(rest[-1]), (*far, *tails))


def find_unusual(
    values: NDArray[np.float64], usual: UsualNumbers, inflation: float, n_nodes: int
) -> Iterator[tuple[Limit, int, float]]:
    """Yield limits with the new numbers beyond them, and the evidence that they are too many.

    One for each side at most, that with the most evidence. Far numbers where the fit had none are
    yielded without evidence, too.

    inflation : times that frequencies vary as much among stretches as among independent rows.
    n_nodes : whose numbers are compared.
    """
    numbers = values[np.isfinite(values)]
    pays = math.log(ALARM / (2 * n_nodes * len(usual.limits)))
    for is_upper in (False, True):
        best: tuple[Limit, int, float] | None = None
        for limit in (each for each in usual.limits if each.is_upper == is_upper):
            k = _count_beyond(numbers, limit.at, is_upper)
            sizes = (k, len(numbers), limit.n_beyond, usual.n_rows)
            nats = pays - log_tail_of_new(*(each / inflation for each in sizes))
            is_told = nats > 0 or (limit.is_far and k > 0 and not limit.n_beyond)
            if is_told and (best is None or nats > max(best[2], 0)):
                best = limit, k, max(nats, 0.0)
        if best is not None:
            yield best


def _count_beyond(numbers: NDArray[np.float64], limit: float, is_upper: bool) -> int:
    return int(np.count_nonzero(numbers > limit if is_upper else numbers < limit))


def log_tail_of_new(k: float, n_new: float, n_beyond: float, n_known: float) -> float:
    """Return `log P(K >= k)`, K of n_new being where n_beyond of n_known others are; 0 if usual.

    The limit is one of the n_known, the next one after those beyond it.

    >>> round(math.exp(log_tail_of_new(1, 1, 0, 9)), 6)
    0.1
    """
    m = n_beyond + 1
    if k <= n_new * m / (n_known + 1) or n_known < m:
        return 0.0
    first = _log_choose(k + m - 1, k) - _log_choose(n_known + n_new, n_new)
    first += _log_choose(n_known - m + n_new - k, n_new - k)
    j = k + np.arange(min(max(math.ceil(n_new - k), 0), MOST_TERMS))
    terms = np.cumprod((j + m) / (j + 1) * (n_new - j) / (n_known - m + n_new - j))
    return min(0.0, first + math.log1p(float(terms.sum())))


def _log_choose(n: float, k: float) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
