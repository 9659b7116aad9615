"""Imported once, before the processes of the cells are forked from it: slow imports are paid once.

Nothing here may start threads: forked processes would inherit their locks.
"""

from __future__ import annotations

import contextlib
import gc
import warnings

import numpy as np

import benchmarks.worker  # noqa: F401

with contextlib.suppress(Exception), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sklearn.ensemble
    import sklearn.neighbors  # noqa: F401
    from pyod.models.ecod import ECOD  # noqa: F401
    from pyod.models.hbos import HBOS

    HBOS().fit(np.eye(30, dtype=np.float32))  # compiles its loops, which takes seconds

gc.freeze()  # what was imported is never collected: forked processes need not touch its pages
