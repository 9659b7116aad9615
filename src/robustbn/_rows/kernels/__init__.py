"""Where rows live. One file a backend; `numpy` is the specification, the others are held to it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from functools import cache
from typing import cast

from robustbn._core.protocols import Backend
from robustbn.exceptions import SlowBackendWarning

NAMES = ("native", "numpy")


def load_backend(name: str | None = None) -> Backend:
    """Return a backend by name; by default the native one, or NumPy where it was not built."""
    if name is None:
        name = os.environ.get("ROBUSTBN_BACKEND") or _default_name()
    if name not in NAMES:
        raise ValueError(f"Unknown backend {name!r}; choose one of {', '.join(NAMES)}.")
    return cast("Backend", importlib.import_module(f"robustbn._rows.kernels.{name}"))


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
