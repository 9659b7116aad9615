"""What a first look at a raw table costs, beside reading it: `inspect`, and finding states.

The yardstick is one pass over the same columns of the same file that does nothing with them, in the
same run. Beside it stands Arrow's reader of CSV alone, on one thread, which keeps text as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv

from benchmarks.measure import (
    Report,
    Settings,
    Table,
    installed_versions,
    say,
    time_interleaved,
)
from robustbn._tables.sources import open_table
from robustbn._tables.survey import survey_columns
from robustbn.cli import main

# see sources.py
SOURCES = ("src/robustbn/_cli/**/*", "src/robustbn/_show/**/*", "src/robustbn/cli.py")
ARROW_ALONE, READ_ALONE, LOOK, COMMAND = "arrow", "read", "survey", "inspect"
LABEL_CARDS = (2, 3, 5, 8, 20, 50, 200, 1000)
LOOK_HEADER = (
    "table", "Arrow, s", "read, s", "survey, s", "inspect, s", "survey / read", "inspect / read"
)  # fmt: skip
LOOK_NOTE = (
    "`inspect` and `states_from` survey the columns of a text file in one pass: kinds, distinct "
    "values, missing ones, a sample of numbers. `inspect` is the whole command, in this process. "
    "`read` is one pass over the same columns by our reader; `Arrow` is Arrow's own of CSV on one "
    "thread. All work on one thread: seconds are CPU, of the round that took least."
)


def run(settings: Settings) -> Report:
    """Time a survey of text files of labels and of numbers."""
    n_rows = 100_000 if settings.quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        say(f"first look: writing files of {n_rows:,} rows")
        files = _write_files(Path(folder), n_rows, settings.seed)
        contenders: dict[tuple[str, str], Callable[[], object]] = {}
        for kind, path in files.items():
            contenders[kind, ARROW_ALONE] = partial(_read_by_arrow, path)
            contenders[kind, READ_ALONE] = partial(_read, path)
            contenders[kind, LOOK] = partial(_survey, path)
            contenders[kind, COMMAND] = partial(_inspect, path)
        timings = time_interleaved(contenders, settings)
    lines = []
    for kind in files:
        names = (ARROW_ALONE, READ_ALONE, LOOK, COMMAND)
        arrow_s, read_s, look_s, inspect_s = (timings[kind, name].cpu_s for name in names)
        numbers = arrow_s, read_s, look_s, inspect_s, look_s / read_s, inspect_s / read_s
        lines.append((kind, *(f"{number:.2f}" for number in numbers)))
    table = Table(f"Text files; N = {n_rows:,}", LOOK_HEADER, tuple(lines), "")
    return Report(
        "first_look",
        "A first look at a raw table",
        LOOK_NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pyarrow"]),
        (table,),
        tuple(
            {"table": kind, "what": what, "n_rows": n_rows}
            | {**timing.to_record(), "cpus_s": timing.cpus_s}
            for (kind, what), timing in timings.items()
        ),
    )


def _write_files(folder: Path, n_rows: int, seed: int) -> dict[str, str]:
    rng = np.random.default_rng(seed)
    labels = {}
    for k in range(40):
        words = pa.array([f"label_{i}" for i in range(LABEL_CARDS[k % len(LABEL_CARDS)])])
        labels[f"c{k}"] = words.take(pa.array(rng.integers(0, len(words), n_rows)))
    numbers = {f"c{k}": rng.normal(size=n_rows).round(4) for k in range(10)}
    files = {}
    for kind, columns in (("40 columns of labels", labels), ("10 columns of numbers", numbers)):
        path = folder / f"{kind}.csv"
        pv.write_csv(pa.table(columns), path)
        files[kind] = str(path)
    return files


def _read(path: str) -> None:
    source = open_table(path)
    for _ in source.read(range(source.n_columns)):
        pass


def _survey(path: str) -> None:
    source = open_table(path)
    for _ in survey_columns(source, range(source.n_columns)):
        pass


def _inspect(path: str) -> None:
    with redirect_stdout(StringIO()):
        main(["inspect", path], standalone_mode=False)


def _read_by_arrow(path: str) -> None:
    pv.read_csv(path, pv.ReadOptions(use_threads=False))
