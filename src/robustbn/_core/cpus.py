"""How many threads this process may run at once."""

from __future__ import annotations

import os


def available_cpus() -> int:
    """Return the number of CPUs this process may use; fewer if `OMP_NUM_THREADS` says so.

    That is how those who run several processes (joblib, Dask) tell each of them its part.
    """
    try:
        n = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        n = os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(n, int(told)) if told.isdecimal() and int(told) else n
