"""Checkpoints with bytes changed at random: our error, or the tables of an undisturbed run."""

from __future__ import annotations

import random
import shutil
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import robustbn
from fuzz.readers import mutate
from robustbn._rows.stream.checkpoint import Checkpoint, is_lock
from robustbn.exceptions import RobustBNError
from robustbn.simulate import corrupt

NETWORK = robustbn.random_network("tree", 4, random_state=0)


def write_rows(folder: Path) -> Path:
    """Write bad rows in two files; return their folder."""
    rows = robustbn.sample(NETWORK, 1000, random_state=0)
    rows, _ = corrupt(rows, NETWORK, "network", eps=0.15, random_state=1)
    (folder / "rows").mkdir()
    for k, piece in enumerate(np.array_split(rows, 2)):
        table = pa.table({n: piece[:, i].astype(str) for i, n in enumerate(NETWORK.nodes)})
        pq.write_table(table, folder / f"rows/{k}.parquet")
    return folder / "rows"


def fit(rows: Path, checkpoint: Path) -> NDArray[np.float64]:
    """Return the counts of a run that keeps a checkpoint, or goes on from one."""
    estimator = robustbn.RobustEstimator(
        NETWORK,
        place="stream",
        streaming=robustbn.Streaming(checkpoint=checkpoint),
        random_state=0,
        n_threads=1,
    )
    return estimator.fit(rows).counts_


def make_checkpoint(rows: Path, folder: Path) -> NDArray[np.float64]:
    """Leave the checkpoint of a run that was ended right before its end; return its counts."""
    with (
        mock.patch("robustbn._rows.stream.data.SAVE_SECONDS", 0.0),
        mock.patch.object(Checkpoint, "clear", return_value=None),
    ):
        return fit(rows, folder)


def run(n: int, seed: int) -> int:
    """Go on from `n` changed checkpoints; return how many gave another error or other tables."""
    n_wrong = 0
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(scratch)
        rows, good, changed = write_rows(folder), folder / "good", folder / "changed"
        wanted = make_checkpoint(rows, good)
        files = [file.name for file in sorted(good.iterdir()) if not is_lock(file)]
        for k in range(n):
            rng = random.Random(f"{seed} {k}")  # noqa: S311
            shutil.rmtree(changed, ignore_errors=True)
            shutil.copytree(good, changed)
            file = changed / rng.choice(files)
            if rng.random() < 0.1:
                file.unlink()
            else:
                file.write_bytes(mutate(file.read_bytes(), rng))
            try:
                if not np.array_equal(fit(rows, changed), wanted):
                    raise AssertionError("other tables than those of an undisturbed run")
            except RobustBNError:
                continue
            except Exception as error:
                n_wrong += 1
                print(f"{file.name} {seed} {k}: {type(error).__name__}: {str(error)[:200]}")
    return n_wrong
