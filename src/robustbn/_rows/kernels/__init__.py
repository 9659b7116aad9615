"""Passes over rows in memory. One file a set of kernels; `numpy` is the specification."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from functools import cache
from typing import cast

from robustbn._core.protocols import Kernels
from robustbn.exceptions import SettingError, SlowBackendWarning

KERNELS = ("native", "numpy")


def load_kernels(name: str | None = None) -> Kernels:
    """Return kernels by name; by default the native ones, or NumPy's where they were not built."""
    if name is None:
        asked = os.environ.get("ROBUSTBN_KERNELS") or os.environ.get("ROBUSTBN_BACKEND")
        name = asked or _default_name()
    if name not in KERNELS:
        raise SettingError(f"Unknown kernels {name!r}; choose one of {', '.join(KERNELS)}.")
    return cast("Kernels", importlib.import_module(f"robustbn._rows.kernels.{name}"))


def has_native() -> bool:
    """Whether the native kernels were built with this installation."""
    return importlib.util.find_spec("robustbn._rows.kernels._native") is not None


@cache
def _default_name() -> str:
    if has_native():
        return "native"
    warnings.warn(
        "robustbn was installed without its native kernels (no C++ compiler was found); the NumPy "
        "kernels run instead: the same results, 10 to 100 times slower. Install a C++17 compiler "
        "and reinstall robustbn.",
        SlowBackendWarning,
        stacklevel=4,
    )
    return "numpy"
