"""What this machine has: memory, asked for and told when it cannot be had, and processors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from robustbn._core.advice import Advice, Setting
from robustbn.exceptions import InsufficientMemoryError


def allocate(shape: tuple[int, ...], dtype: DTypeLike, purpose: str) -> NDArray[Any]:
    """Return an uninitialised array, or raise with the number of bytes that were needed."""
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes <= physical_bytes():
        try:
            return np.empty(shape, dtype)
        except MemoryError:
            pass
    raise insufficient_memory(n_bytes, purpose)


def insufficient_memory(n_bytes: int, purpose: str) -> InsufficientMemoryError:
    """Return the error that says `purpose` needs `n_bytes`."""
    return InsufficientMemoryError(
        f"{purpose} needs {n_bytes:,} bytes ({n_bytes / 2**30:.2f} GiB), more than this machine "
        f"has ({physical_bytes() / 2**30:.1f} GiB in total). Use fewer rows at a time, or "
        f"a machine with more memory."
    )


def out_of_memory(purpose: str, error: MemoryError) -> InsufficientMemoryError:
    """Return the error that says what memory was needed for, where nobody knows how much."""
    asked = re.search(r"(?:size|allocate) ([0-9.]+ ?[KMGTP]?i?B?)", str(error))
    size = asked[1].strip() if asked else ""
    size = f"{int(size):,} bytes" if size.isdigit() else size
    more = f" (the last request was for {size})" if size else ""
    return InsufficientMemoryError(
        Advice(
            f"{purpose} needs more memory than is available{more}. Raise the limit of this "
            "process, read fewer columns or rows at a time (a path with ",
            Setting("place", "stream"),
            "), or use a machine with more memory.",
        )
    )


@contextmanager
def telling_memory(purpose: str) -> Iterator[None]:
    """Turn a failed allocation, wherever it was, into an error that says what it was for."""
    try:
        yield
    except InsufficientMemoryError:
        raise
    except MemoryError as error:
        raise out_of_memory(purpose, error) from None


def physical_bytes() -> int:
    """Return the memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return 2**63


def available_cpus() -> int:
    """Return the number of CPUs this process may use; fewer if `OMP_NUM_THREADS` says so."""
    try:
        n = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        n = os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(n, int(told)) if told.isdecimal() and int(told) else n
