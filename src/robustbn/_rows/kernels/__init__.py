"""Passes over rows in memory. One file a set of kernels; `numpy` is the specification."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import warn
from robustbn._core.protocols import Kernels
from robustbn.exceptions import SettingError, SlowBackendWarning

KERNELS = ("native", "numpy")
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # numbers are multiplied by it before `scramble`


def load_kernels(name: str | None = None) -> Kernels:
    """Return kernels by name; by default the native ones, or NumPy's where they were not built."""
    _check_machine()
    module = importlib.import_module(f"robustbn._rows.kernels.{choose_kernels(name)}")
    return cast("Kernels", module)


def choose_kernels(name: str | None) -> str:
    """Return the name of the kernels that are used where these are asked for, or none are."""
    if name is None:
        name = os.environ.get("ROBUSTBN_KERNELS") or _default_name()
    if name not in KERNELS:
        raise SettingError(f"Unknown kernels {name!r}; choose one of {', '.join(KERNELS)}.")
    return name


def has_native() -> bool:
    """Whether the native kernels were built with this installation."""
    return importlib.util.find_spec("robustbn._rows.kernels._native") is not None


def _check_machine() -> None:
    """Refuse machines on which nothing was ever tried, rather than be wrong there."""
    if sys.maxsize < 2**63 - 1:
        raise ImportError("robustbn needs a 64-bit Python; this one is 32-bit.")
    if sys.byteorder != "little":
        raise ImportError("robustbn needs a little-endian machine; this one is big-endian.")


def scramble(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a random-looking number for each number: the finalizer of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@cache
def _default_name() -> str:
    if has_native():
        return "native"
    warn(
        "robustbn was installed without its native kernels (no C++ compiler was found); the NumPy "
        "kernels run instead: the same results, 10 to 100 times slower. Install a C++17 compiler "
        "and reinstall robustbn.",
        SlowBackendWarning,
    )
    return "numpy"
