"""Which kind of value each setting of an estimator has, so that a wrong one is refused by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from robustbn.exceptions import SettingError

LARGEST_COUNT = 2**31 - 1


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not _is_truth(value) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, Integral) and not _is_truth(value)
    return value is None or (is_whole and 1 <= value <= LARGEST_COUNT)


KINDS_OF_VALUES = {
    "True or False": _is_truth,
    "a word": lambda value: isinstance(value, str),
    "a word or None": lambda value: value is None or isinstance(value, str),
    "a finite number": _is_number,
    "a number or a word": lambda value: isinstance(value, str) or _is_number(value),
    "a word, a number or None": lambda v: v is None or isinstance(v, str) or _is_number(v),
    "a whole number from 1, or None": _is_count,
}
SETTINGS = {
    "contamination": "a number or a word",
    "method": "a word",
    "schedule": "a word",
    "polish": "True or False",
    "misfit": "a word",
    "prior": "a word, a number or None",
    "pseudo_count": "a finite number",
    "equivalent_sample_size": "a finite number",
    "on_unknown": "a word",
    "on_missing": "a word",
    "missing_is_evidence": "True or False",
    "sample_rows": "a whole number from 1, or None",
    "n_threads": "a whole number from 1, or None",
    "kernels": "a word or None",
    "place": "a word or None",
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse a setting of another kind than it should be, by its name."""
    for name, kind in SETTINGS.items():
        if name in settings and not KINDS_OF_VALUES[kind](settings[name]):
            found = settings[name]
            raise SettingError(
                f"{name} is {kind}; found {found!r}, of type {type(found).__name__}."
            )
