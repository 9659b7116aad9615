"""Warnings that point at the line of the caller's code, however deep they arise."""

from __future__ import annotations

import sys
import warnings

from robustbn._core.advice import Advice

OURS = ("robustbn", "contextlib", "functools")  # the latter two between our own functions


def warn(message: str | Advice, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(category(message), stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS
