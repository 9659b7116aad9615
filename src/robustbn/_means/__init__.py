"""Which rows to trust. One file a method, over one shared spectral.py."""

from __future__ import annotations

from robustbn._core.result import Oracle
from robustbn._means.baselines import (
    coordinate_median,
    geometric_median,
    one_shot,
    plain_mean,
    ransac,
)
from robustbn._means.descent import descent
from robustbn._means.que import que
from robustbn._means.spectral import spectral_filter

ORACLES: dict[str, Oracle] = {
    "spectral": spectral_filter,
    "que": que,
    "descent": descent,
    "none": plain_mean,
    "coordinate_median": coordinate_median,
    "geometric_median": geometric_median,
    "one_shot": one_shot,
    "ransac": ransac,
}
NEED_SHARE = ("one_shot", "ransac")  # no test of their own: they cannot find the contamination
