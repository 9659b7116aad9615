"""How the values of a column at one place differ from all others, in words with a few numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robustbn._show.owners import LEAST_NUMBERS
from robustbn._show.words import percent

Numbers = NDArray[np.float64]

LEAST_MOVED = 0.15  # interquartile ranges: a median that moved less says little
LEAST_WIDER = 1.5  # times the interquartile range of the others
LEAST_SHARE = 0.05  # by which the share of a label is larger, to be told
CUT_OFF = 10.0  # numbers beyond a limit that would be there if they were as elsewhere
HEAPED = 0.5  # times as many as are beyond a limit elsewhere lie on it
RARE = 0.25  # times as many, at most, lie on it elsewhere


def contrast_numbers(here: Numbers, elsewhere: Numbers) -> str:
    """Return how numbers of a place differ from all others; empty if quartiles do not show it.

    >>> contrast_numbers(np.arange(50.0, 90.0), np.arange(40.0))
    'the median is 69.5 there, 19.5 elsewhere'
    """
    if min(len(here), len(elsewhere)) < LEAST_NUMBERS:
        return ""
    seen, usual = (np.quantile(some, (0.25, 0.5, 0.75)) for some in (here, elsewhere))
    widths = seen[2] - seen[0], usual[2] - usual[0]
    if abs(seen[1] - usual[1]) > LEAST_MOVED * widths[1]:
        return f"the median is {seen[1]:.6g} there, {usual[1]:.6g} elsewhere"
    if max(widths) > LEAST_WIDER * min(widths):
        ends = (f"{some[0]:.6g} and {some[2]:.6g}" for some in (seen, usual))
        return "half of the values lie between {} there, between {} elsewhere".format(*ends)
    return ""


def contrast_labels(
    here: NDArray[np.int64], elsewhere: NDArray[np.int64], labels: Sequence[str]
) -> str:
    """Return the label whose share is larger most at a place; empty if it is not by much.

    >>> contrast_labels(np.array([30, 10]), np.array([20, 80]), ["'a'", "'b'"])
    "75.0 % are 'a' there, 20.0 % elsewhere"
    """
    shares, usual = (some / max(some.sum(), 1) for some in (here, elsewhere))
    most = int((shares - usual).argmax())
    if shares[most] - usual[most] < LEAST_SHARE:
        return ""
    return (
        f"{percent(float(shares[most]))} are {labels[most]} there, "
        f"{percent(float(usual[most]))} elsewhere"
    )


def find_limit(here: Numbers, elsewhere: Numbers) -> str:
    """Return how numbers of a place end where those of others go on; empty if they do not.

    Those beyond the limit were set to it, as a device or a form does that knows no more.

    >>> weights = np.arange(100.0)
    >>> find_limit(np.minimum(weights, 70), weights)
    'none are above 70 there (29.0 % elsewhere), and 30.0 % are 70'
    """
    if min(len(here), len(elsewhere)) < LEAST_NUMBERS:
        return ""
    for sign, word in ((1, "above"), (-1, "below")):
        limit = float(np.max(sign * here)) * sign
        beyond = float(np.mean(sign * (elsewhere - limit) > 0))
        on, usual = (float(np.mean(some == limit)) for some in (here, elsewhere))
        if beyond * len(here) >= CUT_OFF and on >= HEAPED * beyond and usual <= RARE * on:
            return (
                f"none are {word} {limit:.6g} there ({percent(beyond)} elsewhere), "
                f"and {percent(on)} are {limit:.6g}"
            )
    return ""
