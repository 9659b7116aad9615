"""Runs and workers that are killed: how many go on to the same bits.

`python -m benchmarks kills --runs 100 --workers 50`: so many SIGKILLs of processes that fit a
stream with a checkpoint, a cache and weights, at a random change of a file or at a random moment,
several before a run may end; and so many of workers of a Dask cluster while it is fitted to. No
time is measured: every fit is compared with an undisturbed one, tables and files byte by byte.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import robustbn
from benchmarks.measure import say
from robustbn.adversary import corrupt

NETWORK = robustbn.random_network("tree", 12, random_state=3)
N_ROWS, N_FILES = 24_000, 6
MOST_CHANGES = 60  # of files in one run, about: kills are spread over them
PATIENT = {  # a cluster forgets workers that do not come back in time: here they always do
    "distributed.worker.daemon": False,
    "distributed.deploy.lost-worker-timeout": "10 minutes",
}
N_WORKERS = 3
MOST_KILLS = 4  # of one run before it may end

CHILD = """
import os, pathlib, signal, sys
import numpy as np
import robustbn._rows.stream.cache, robustbn._rows.stream.data
from robustbn import RobustEstimator, Streaming, read_network
robustbn._rows.stream.data.SAVE_SECONDS = 0.0
folder, settings, number = pathlib.Path(sys.argv[1]), eval(sys.argv[2]), int(sys.argv[3])
n_changes = 0

def dying(change):
    def changed(*values, **named):
        global n_changes
        n_changes += 1
        if n_changes == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return change(*values, **named)
    return changed

for name in ("replace", "unlink", "mkdir"):
    setattr(pathlib.Path, name, dying(getattr(pathlib.Path, name)))
print("begun", flush=True)
network = read_network(folder / "network.json")
streaming = Streaming(**settings)
fit = RobustEstimator(network, place="stream", random_state=0, streaming=streaming)
fit.fit(folder / "rows")
np.savez(sys.stdout.buffer, counts=fit.counts_, weights=fit.row_weights_)
print(n_changes, file=sys.stderr)
"""


def write_rows(folder: Path) -> None:
    """Write a network and bad rows in several files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = robustbn.sample(NETWORK, N_ROWS, random_state=3)
    codes = corrupt(rows, NETWORK, "flipped", eps=0.15, random_state=3)[0]
    (folder / "rows").mkdir(parents=True)
    robustbn.write_network(NETWORK, folder / "network.json")
    for k, piece in enumerate(np.array_split(codes, N_FILES)):
        table = pa.table({n: piece[:, i].astype(str) for i, n in enumerate(NETWORK.nodes)})
        pq.write_table(table, folder / f"rows/{k}.parquet")


def start_child(folder: Path, settings: dict[str, str], number: int) -> subprocess.Popen[bytes]:
    """Start a fit that kills itself before its change of files of that number; 0: never."""
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder), repr(settings)]
    return subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def settings_in(folder: Path) -> dict[str, str]:
    """Return the settings of a stream that keeps and writes all that it can."""
    return {name: str(folder / name) for name in ("checkpoint", "cache", "weights_to")}


def digest_of(folder: Path, printed: bytes) -> str:
    """Return a digest of what a run has printed, and of all files of weights."""
    digest = hashlib.sha256(printed.partition(b"begun\n")[2])
    for file in sorted((folder / "weights_to").rglob("*.parquet")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def run_killed(rows: Path, n_kills: int, seed: int) -> tuple[int, int, int]:
    """Return kills, runs that went on to their end, and how many of those gave the same bits."""
    rng = np.random.default_rng(seed)
    wanted, killed, ended, same = "", 0, 0, 0
    while killed < n_kills or not ended:
        with tempfile.TemporaryDirectory() as name:
            out, here = Path(name), 0
            n_here = (
                0 if not wanted else min(int(rng.integers(1, MOST_KILLS + 1)), n_kills - killed)
            )
            while True:
                by_change = here < n_here and rng.random() < 0.7
                number = int(rng.integers(1, MOST_CHANGES)) if by_change else 0
                child = start_child(rows, settings_in(out), number)
                if here < n_here and not by_change:
                    assert child.stdout is not None
                    child.stdout.readline()
                    time.sleep(rng.random())
                    child.kill()
                printed, told = child.communicate()
                if child.returncode == -signal.SIGKILL:
                    here, killed = here + 1, killed + 1
                    if not (out / "checkpoint/run.json").exists():  # it had ended: begin anew
                        shutil.rmtree(out / "weights_to", ignore_errors=True)
                    continue
                if child.returncode:
                    raise RuntimeError(told.decode())
                break
            if not printed.startswith(b"begun"):  # its first line was read already
                printed = b"begun\n" + printed
            found = digest_of(out, printed)
            wanted = wanted or found
            left = list(out.rglob(".*"))
            ended, same = ended + 1, same + (found == wanted and not left)
        say(f"{killed} of {n_kills} kills, {same} of {ended} runs the same")
    return killed, ended, same


def run_workers_killed(n_kills: int, seed: int) -> tuple[int, int, int]:
    """Return kills of workers, fits meanwhile, and how many gave undisturbed tables."""
    import dask
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    rows = robustbn.sample(NETWORK, N_ROWS, random_state=3)
    codes = corrupt(rows, NETWORK, "flipped", eps=0.15, random_state=3)[0]
    frame = pd.DataFrame(codes, columns=list(NETWORK.nodes)).astype(str)
    table = dd.from_pandas(frame, npartitions=12, sort=False)
    quiet: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": 60, "memory_limit": "1GB"}
    with (
        dask.config.set(PATIENT),
        LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, **quiet) as cluster,
        Client(cluster),
    ):

        def fit() -> Any:
            return robustbn.RobustEstimator(NETWORK, random_state=0).fit(table).counts_

        wanted, is_over, killed = fit(), threading.Event(), list[int]()
        killer = threading.Thread(
            target=_kill_workers, args=(cluster, is_over, killed, n_kills, seed)
        )
        killer.start()
        ended = same = 0
        try:
            while killer.is_alive():
                ended, same = ended + 1, same + bool(np.array_equal(fit(), wanted))
                say(f"{len(killed)} of {n_kills} workers killed, {same} of {ended} fits the same")
        finally:
            is_over.set()
            killer.join()
    return len(killed), ended, same


def _kill_workers(
    cluster: Any, is_over: threading.Event, killed: list[int], n_kills: int, seed: int
) -> None:
    """Kill a worker after another, at a random moment once all have been at work for a while.

    One that is killed while it starts is not started again: its nanny gives up.
    """
    since: dict[int, float] = {}
    rng = np.random.default_rng(seed)
    while len(killed) < n_kills and not is_over.wait(0.5 + 2 * rng.random()):
        at_work = set(cluster.scheduler.workers)
        nannies = [n for n in list(cluster.workers.values()) if n.status.name == "running"]
        pids = [n.pid for n in nannies if n.worker_address in at_work and n.pid is not None]
        now = time.monotonic()
        since = {pid: since.get(pid, now) for pid in pids}
        is_settled = all(now - begun > 1 for begun in since.values())
        if pids and len(pids) == len(nannies) and is_settled and not set(pids) & set(killed):
            killed.append(int(rng.choice(pids)))
            os.kill(killed[-1], signal.SIGKILL)


def main(arguments: list[str]) -> None:
    """Kill what the command line asks for, and print what became of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks kills", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="kills of runs over files")
    parser.add_argument("--workers", type=int, default=50, help="kills of workers of a cluster")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp())
    try:
        if chosen.runs:
            write_rows(folder / "given")
            killed, ended, same = run_killed(folder / "given", chosen.runs, chosen.seed)
            print(f"runs: {killed} SIGKILLs; {same} of {ended} runs ended with the same bits")
        if chosen.workers:
            killed, ended, same = run_workers_killed(chosen.workers, chosen.seed)
            print(f"workers: {killed} SIGKILLs; {same} of {ended} fits gave the same tables")
    finally:
        shutil.rmtree(folder)
