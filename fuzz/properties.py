"""`python -m fuzz.properties [CASES] [FIRST]`: fit random networks to random tables.

Every fit must end with tables that sum to one, without a NaN, and with a sentence on why it ended;
or with one of our errors, which are counted by what they say. Prints how far it has come, and every
case that does not, with its seed: `python -m fuzz.properties 1 SEED` makes it again. Cases are
fitted in processes of their own, so that one that ends its process is told as well.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import robustbn
from fuzz.cases import Case, draw_case
from robustbn.exceptions import DataError, RobustBNError

CHUNK = 250  # cases in one process
MOST_SECONDS = 600  # of one case: a fit that never ends is found too
ONE = 1e-9  # how far from one a table may sum
# What a table may be refused for: no row is left that shows a value, or every weight is zero.
ALLOWED = (
    "no rows", "no row", "left out", "Every row weight is zero",
)  # fmt: skip


def require(condition: Any, said: str) -> None:
    """Fail with what was said, also where assertions are switched off."""
    if not condition:
        raise AssertionError(said)


def check_tables(network: robustbn.BayesianNetwork, counts: Any) -> None:
    """Require tables that are probabilities, and counts that are weights."""
    q, layout = network.probabilities, network.layout
    require(np.isfinite(q).all(), "a table has a NaN")
    require(q.min() >= 0, "a table has a negative entry")
    require(np.abs(layout.sum_configurations(q) - 1).max() <= ONE, "a table does not sum to one")
    require(np.isfinite(counts).all() and counts.min() >= 0, "a count is no weight")


def check_robust(case: Case) -> None:
    """Fit a case robustly, and require that everything is said and none of it is NaN."""
    fit = robustbn.RobustEstimator(case.network, **case.settings).fit(
        case.table, **case.fit_settings
    )
    check_tables(fit.network_, fit.counts_)
    check_tables(fit.plain_network_, fit.counts_)
    weights = fit.row_weights_
    require(weights.shape == (len(case.codes),), "not one weight a row")
    kept = weights[~np.isnan(weights)]
    require(len(kept) == fit.reading_.n_rows, "a row that was kept has no weight")
    require(kept.min() >= 0 and kept.max() <= 1, "a weight is not from 0 to 1")
    require(0 <= fit.contamination_ <= 1, f"contamination_ is {fit.contamination_}")
    status = fit.status_
    require(len(status) > 20 and status.endswith("."), f"status_ is no sentence: {status!r}")
    require("nan" not in status.lower().split() and "nan%" not in status, f"NaN in {status!r}")
    require(np.isfinite(fit.shift_.delta).all(), "a shift is NaN")
    require(not np.isnan(fit.shift_.z).any(), "a z-score is NaN")
    said = f"{fit.summary()} {fit.kinds_} {fit.diagnose()}"
    require(" nan" not in said.lower(), f"NaN in what is said: {said[:300]}")
    head = case.table[:50]
    again = fit.weights(head)
    require(((again >= 0) & (again <= 1) | np.isnan(again)).all(), "a new weight is not 0 to 1")
    require(not np.isnan(fit.score_samples(head)[~np.isnan(again)]).any(), "a score is NaN")
    if len(case.codes) < 2000:
        fit.rows()
        fit.moved()


def check_counting(case: Case) -> None:
    """Count the rows of a case, and require tables that are probabilities."""
    shared = ("prior", "on_missing", "kernels", "n_threads")
    settings = {name: case.settings[name] for name in shared if name in case.settings}
    weights = case.fit_settings.get("sample_weight")
    fit = robustbn.MaximumLikelihoodEstimator(case.network, **settings).fit(
        case.table, sample_weight=weights
    )
    check_tables(fit.network_, fit.counts_)
    require(not np.isnan(fit.score(case.table)), "the likelihood is NaN")


def is_allowed(error: RobustBNError) -> bool:
    """Whether rows may be refused with what is said: it is not our settings' fault."""
    return isinstance(error, DataError) and any(words in str(error) for words in ALLOWED)


def check_case(case: Case) -> str:
    """Return what a case was refused for, empty if it was fitted; raise if it is neither."""
    refused = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # of NumPy: a division by zero, a NaN
        for check in (check_counting, check_robust):
            try:
                check(case)
            except RobustBNError as error:
                if not is_allowed(error):
                    raise
                refused = str(error)
    return refused


def run(n: int, first: int, progress: Any = None, **most: int) -> int:
    """Check `n` cases from a seed on; return how many were neither fitted nor refused.

    Parameters
    ----------
    progress : a file that always holds the seed of the case that is being fitted.
    most : nodes and rows, as in `draw_case`.
    """
    n_wrong, refused, slowest = 0, Counter[str](), (0.0, first)
    for seed in range(first, first + n):
        if progress is not None:
            Path(progress).write_text(str(seed))
        start = time.perf_counter()
        try:
            refused[check_case(draw_case(seed, **most))[:60]] += 1
        except Exception as error:
            n_wrong += 1
            print(f"{draw_case(seed, **most)}\n  {type(error).__name__}: {str(error)[:300]}")
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"  in {where.filename}:{where.lineno}", flush=True)
        slowest = max(slowest, (time.perf_counter() - start, seed))
    for said, times in refused.items():
        if said:
            print(f"  refused {times}: {said}", flush=True)
    print(f"  slowest: seed {slowest[1]}, {slowest[0]:.1f} s", flush=True)
    return n_wrong


def run_apart(n: int, first: int) -> int:
    """Check cases in a process of its own; one that ends it is wrong, and the next go on."""
    n_wrong, last = 0, first + n
    with tempfile.TemporaryDirectory() as scratch:
        progress = Path(scratch) / "seed"
        while first < last:
            command = [sys.executable, "-m", "fuzz.properties", str(last - first), str(first)]
            code = _wait(subprocess.Popen([*command, str(progress)]), progress)
            if 0 <= code < 100:
                return n_wrong + code
            seed = int(progress.read_text())
            print(f"{draw_case(seed)}\n  ended its process, or never ended: {code}", flush=True)
            n_wrong, first = n_wrong + 1, seed + 1
    return n_wrong


def _wait(child: subprocess.Popen[bytes], progress: Path) -> int:
    """Return how a process ended; -1 if it was ended because a case took too long."""
    seed, since = "", time.monotonic()
    while True:
        try:
            return child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            now = progress.read_text() if progress.exists() else ""
            if now != seed:
                seed, since = now, time.monotonic()
            elif time.monotonic() - since > MOST_SECONDS:
                child.kill()
                child.wait()
                return -1


def main() -> int:
    """Check as many cases as are asked for."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if len(sys.argv) > 3:
        return min(run(n, first, sys.argv[3]), 99)
    n_wrong, start = 0, time.monotonic()
    for done in range(0, n, CHUNK):
        n_wrong += run_apart(min(CHUNK, n - done), first + done)
        ready = min(done + CHUNK, n)
        took = time.monotonic() - start
        print(f"{ready:,} of {n:,} cases, {n_wrong} wrong, {took:.0f} s", flush=True)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
