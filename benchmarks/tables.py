"""What reading a cell costs, from frames of labels to codes, beside counting its values once.

Each kind of frame holds the same rows of ALARM. Its yardstick is one `value_counts` of every column
by the library that owns the frame: a pass that must look at each cell too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import (
    Report,
    Settings,
    Table,
    Timing,
    installed_versions,
    say,
    time_interleaved,
)
from robustbn import BayesianNetwork, example_network, read_table
from robustbn._tables.sources import BLOCK_ROWS
from robustbn.simulate import sample

READ, COUNT = "read_table", "value_counts"
HEADER = ("table", "read_table, ms", "ns a cell", "value_counts, ms", "ns a cell", "ratio")
NOTE = (
    "Reading a table of labels into codes, one byte a cell. The yardstick is one `value_counts` "
    "over all columns by the library that owns the frame, in the same run; `ratio` is the time of "
    "`read_table` over that. Wall clock of the fastest round."
)


def run(settings: Settings) -> Report:
    """Time `read_table` and `value_counts` on every kind of frame."""
    alarm = example_network("alarm")
    n_rows = 100_000 if settings.quick else 1_000_000
    say(f"tables: building frames of {n_rows:,} rows")
    codes = sample(alarm, n_rows, settings.seed)
    frames = _build_frames(alarm, codes)
    contenders: dict[tuple[str, str], Callable[[], object]] = {}
    for kind, frame in frames.items():
        np.testing.assert_array_equal(read_table(frame, alarm).codes, codes)
        contenders[kind, READ] = partial(read_table, frame, alarm)
        contenders[kind, COUNT] = partial(_count_values, frame)
    timings = time_interleaved(contenders, settings)
    n_cells = n_rows * alarm.n_nodes
    return Report(
        "tables",
        "Tables: the cost of reading a cell",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pandas", "polars", "pyarrow"]),
        (_tabulate(list(frames), timings, n_rows, alarm),),
        tuple(
            {
                "table": kind,
                "what": what,
                "n_rows": n_rows,
                "n_columns": alarm.n_nodes,
                **timing.to_record(),
                "ns_per_cell": timing.wall_s * 1e9 / n_cells,
            }
            for (kind, what), timing in timings.items()
        ),
    )


def _build_frames(network: BayesianNetwork, codes: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return the rows as frames of every kind; the order of categories is not that of states."""
    columns = {
        node: pa.DictionaryArray.from_arrays(
            pa.array((len(states) - 1 - codes[:, k]).astype(np.int32)), list(states)[::-1]
        )
        for k, (node, states) in enumerate(network.states.items())
    }
    dictionaries = pa.table(columns)
    text = pa.table({node: column.cast(pa.string()) for node, column in columns.items()})
    polars_text = pl.from_arrow(text)
    assert isinstance(polars_text, pl.DataFrame)
    enums = [
        pl.col(node).cast(pl.Enum([str(s) for s in states][::-1]))
        for node, states in network.states.items()
    ]
    return {
        "pandas str": text.to_pandas().astype("str"),
        "pandas category": dictionaries.to_pandas(),
        "polars String": polars_text,
        "polars Categorical": polars_text.with_columns(pl.all().cast(pl.Categorical)),
        "polars Enum": polars_text.with_columns(enums),
        "pyarrow dictionary": dictionaries,
    }


def _count_values(frame: Any) -> list[Any]:
    if isinstance(frame, pa.Table):
        return [pc.value_counts(column) for column in frame.columns]
    return [frame[name].value_counts() for name in frame.columns]


def _tabulate(
    kinds: list[str],
    timings: dict[tuple[str, str], Timing],
    n_rows: int,
    network: BayesianNetwork,
) -> Table:
    n_cells = n_rows * network.n_nodes
    lines = []
    for kind in kinds:
        read_s, count_s = timings[kind, READ].wall_s, timings[kind, COUNT].wall_s
        lines.append(
            (
                kind,
                f"{read_s * 1e3:.0f}",
                f"{read_s * 1e9 / n_cells:.2f}",
                f"{count_s * 1e3:.0f}",
                f"{count_s * 1e9 / n_cells:.2f}",
                f"{read_s / count_s:.2f}",
            )
        )
    title = f"ALARM, {network.n_nodes} columns; N = {n_rows:,}"
    note = f"Tables are read in stretches of {BLOCK_ROWS:,} rows, one column after another."
    return Table(title, HEADER, tuple(lines), note)
