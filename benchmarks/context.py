"""What names and context of a table in stretches cost, beside the same fit without them.

Every measurement has a process of its own, whose peak memory is told by the system when it ends.
Six columns stand beside the network: a name, words, days, minutes, whole numbers and numbers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from robustbn import BayesianNetwork, random_network, sample

CONTEXT_NODES, CONTEXT_CONFIGURATIONS = 30, 200
CONTEXT_ROUNDS = 3
WRITTEN_AT_ONCE = 250_000
WAYS = {
    "without": "network's columns alone",
    "held": "context, the group of each row held",
    "counted": "context, counted: bounded memory",
    "named": "context held, and names (`id`)",
}
MOST_CPU_RATIO, MOST_MORE_BYTES = 2.0, 2e8
CONTEXT_NOTE = (
    "Ratios are to the fit to the network's columns alone, in the same run; the fastest of "
    "interleaved rounds, each in a fresh process and without its imports. "
    "`more MB` is the peak memory of the process above that of the fit without context. Rows are "
    "held when their context takes at most 256 MiB, and counted otherwise; `counted` asks for that."
)


def run(settings: Settings) -> Report:
    """Fit to a Parquet and a text file in stretches, with and without what is beside the nodes."""
    n_rows = 100_000 if settings.quick else 1_000_000
    lines, records, goals = [], [], []
    with TemporaryDirectory(prefix="benchmarks-") as folder:
        for kind in ("parquet", "csv"):
            say(f"context: writing {n_rows:,} rows, {kind}")
            path = _write(Path(folder), kind, n_rows, settings.seed)
            found = _measure(path, settings)
            base = found["without"]
            for way, record in found.items():
                times, cpu = (record[k] / base[k] for k in ("wall_s", "cpu_s"))
                more = record["peak_bytes"] - base["peak_bytes"]
                records.append({"kind": kind, "n_rows": n_rows, "way": way, **record})
                peak = record["peak_bytes"] / 1e6
                figures = (record["wall_s"], times, record["cpu_s"], cpu, peak, more / 1e6)
                places = ("{:.2f}", "{:.2f}", "{:.2f}", "{:.2f}", "{:.0f}", "{:+.0f}")
                said = (p.format(v) for p, v in zip(places, figures, strict=True))
                lines.append((kind, WAYS[way], *said))
                goals += _judge(kind, way, cpu, more) if way != "without" else []
    header = ("table", "what", "seconds", "ratio", "CPU seconds", "CPU ratio", "peak MB", "more MB")
    return Report(
        "context",
        "Names and context of tables in stretches",
        CONTEXT_NOTE,
        settings,
        installed_versions(["robustbn", "pyarrow", "numpy"]),
        (Table(f"{n_rows:,} rows of {CONTEXT_NODES} nodes", header, tuple(lines), n_words=2),),
        tuple(records),
        () if settings.quick else tuple(goals),
    )


def _judge(kind: str, way: str, times: float, more: float) -> list[Goal]:
    is_quick, is_small = times <= MOST_CPU_RATIO, more <= MOST_MORE_BYTES
    most = f"≤ {MOST_MORE_BYTES / 1e6:g}"
    return [
        Goal(f"{kind}, {way}: CPU ratio", f"≤ {MOST_CPU_RATIO:g}", f"{times:.2f}", is_quick),
        Goal(f"{kind}, {way}: more MB", most, f"{more / 1e6:+.0f}", is_small),
    ]


def _network(seed: int) -> BayesianNetwork:
    return random_network("graph", CONTEXT_NODES, CONTEXT_CONFIGURATIONS, random_state=seed)


def _write(folder: Path, kind: str, n_rows: int, seed: int) -> Path:
    """Write rows of which those of one feed are noise in the last third."""
    import pyarrow as pa
    import pyarrow.csv as pv
    import pyarrow.parquet as pq

    network, rng, path = _network(seed), np.random.default_rng(seed), folder / f"rows.{kind}"
    writer: Any = None
    minute = np.timedelta64(365 * 24 * 60, "m") / n_rows
    for start in range(0, n_rows, WRITTEN_AT_ONCE):
        n = min(WRITTEN_AT_ONCE, n_rows - start)
        codes = sample(network, n, random_state=seed + start)
        feed, number = rng.integers(0, 40, n), start + np.arange(n)
        is_bad = (feed == 7) & (number > 2 * n_rows // 3)
        codes[is_bad] = rng.permuted(codes[is_bad], axis=0)
        moments = np.datetime64("2024-01-01T00:00") + number * minute
        columns = {node: pa.array(codes[:, k]) for k, node in enumerate(network.nodes)}
        columns |= {
            "uid": pa.array([f"u{k:09d}" for k in number]),
            "feed": pa.array([f"feed-{k}" for k in feed]),
            "day": pa.array(moments.astype("M8[D]")),
            "seen": pa.array(moments.astype("M8[s]")),
            "sensor": pa.array(rng.integers(0, 800, n)),
            "heat": pa.array(rng.normal(20, 5, n)),
        }
        table = pa.table(columns)
        if writer is None:
            make = pq.ParquetWriter if kind == "parquet" else pv.CSVWriter
            writer = make(path, table.schema)
        writer.write_table(table)
    writer.close()
    return path


def _measure(path: Path, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the fastest round of every way, and its largest peak."""
    rng, found = np.random.default_rng(settings.seed), dict[str, dict[str, Any]]()
    for k in range(min(settings.n_rounds, CONTEXT_ROUNDS)):
        for way in rng.permutation(list(WAYS)).tolist():
            here = [sys.executable, "-W", "ignore", "-m", "benchmarks.context", way, str(path)]
            done = subprocess.run(
                [*here, str(settings.seed)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"{way} on {path} failed:\n{done.stderr}")
            record = json.loads(done.stdout)
            say(f"context: {path.suffix}, round {k + 1}, {way}: {record['wall_s']:.2f} s")
            before = found.get(way, record)
            found[way] = {
                "wall_s": min(before["wall_s"], record["wall_s"]),
                "cpu_s": min(before["cpu_s"], record["cpu_s"]),
                "peak_bytes": max(before["peak_bytes"], record["peak_bytes"]),
            }
    return {way: found[way] for way in WAYS}


def _measure_here(way: str, path: str, seed: str) -> None:
    import pyarrow.dataset  # noqa: F401 - not on the clock

    import robustbn
    from robustbn._rows.stream import context_pass as aside

    network = _network(int(seed))
    how: dict[str, Any] = {"context": ()} if way == "without" else {}
    how |= {"id": "uid"} if way == "named" else {}
    most = 0 if way == "counted" else aside.MOST_HELD
    with patch.object(aside, "MOST_HELD", most):
        wall, cpu = time.perf_counter(), time.process_time()
        fit = robustbn.fit(network, path, place="stream", random_state=0, **how)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    first = fit.result_.origins[0].column
    assert first.startswith("row number" if way == "without" else "feed and "), first
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "peak_bytes": peak}))


if __name__ == "__main__":
    _measure_here(*sys.argv[1:])
