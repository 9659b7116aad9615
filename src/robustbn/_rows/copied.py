"""Which fingerprints occur several times, and where; natively if the kernels can."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Copied, CopyFinding
from robustbn._rows.kernels import load_kernels


def find_copied(prints: NDArray[np.uint64], least: int, kernels: str | None = None) -> Copied:
    """Return the fingerprints that occur at least so often, and their rows. O(N log N) time."""
    loaded = load_kernels(kernels)
    if isinstance(loaded, CopyFinding):
        return loaded.find_copied(prints, least)
    return sort_copied(prints, least)


def sort_copied(prints: NDArray[np.uint64], least: int) -> Copied:
    """Return the same in plain NumPy: the specification."""
    order = np.argsort(prints, kind="stable")
    found, begin, seen = np.unique(prints[order], return_index=True, return_counts=True)
    is_copied = seen >= least
    within = np.repeat(is_copied, seen)
    return Copied(found[is_copied], order[begin[is_copied]], seen[is_copied], order[within])
