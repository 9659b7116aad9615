"""How time and memory of the robust fit grow with each size alone."""

from __future__ import annotations

import ctypes
import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from benchmarks.measure import time_interleaved as time_turns
from benchmarks.scenes import draw_scene
from benchmarks.verdict import fit_exponent
from benchmarks.worker import peak_bytes, reset_peak
from robustbn import BayesianNetwork, RobustEstimator, random_network, sample

NOTE = (
    "10 % of the rows are of another network. The exponent of time is the slope of log time over "
    "log size by least squares, over the three largest sizes: where a fit takes a few hundredths "
    "of a second, what it does whatever the size is most of it. Memory is the growth of the "
    "process's peak during the fit, rows given not counted."
)
BAD = 0.1
MOST_EXPONENT = 1.05
N_LARGEST = 3  # sizes that the exponent is taken from
CHUNK = 1_000_000  # rows that a stream hands over at once


@dataclass(frozen=True)
class Growing:
    """What grows, and for each size a fit."""

    name: str
    what: str
    fits: list[tuple[int, Callable[[], Callable[[], object]]]]


def run(settings: Settings) -> Report:
    """Let each size grow alone."""
    warnings.simplefilter("ignore")
    shrink, most = (20, 3) if settings.quick else (1, None if settings.full else -1)
    tables, records, goals = [], [], []
    for growing in list_growing(settings.seed, shrink):
        lines, sizes, walls, peaks = [], [], [], []
        for size, build in growing.fits[:most]:
            fit = build()
            say(f"growth of {growing.name}: {size:,}")
            give_memory_back()
            before = reset_peak()
            fit()
            peaks.append(peak_bytes() - before)
            sizes.append(size)
            walls.append(time_turns({"fit": fit}, settings)["fit"].wall_s)
            lines.append((f"{size:,}", f"{walls[-1]:.3f}", f"{peaks[-1] / 2**20:,.0f}"))
        exponent = fit_exponent(sizes[-N_LARGEST:], walls[-N_LARGEST:])
        lines.append(("exponent", f"**{exponent:.2f}**", ""))
        header = (growing.name, "seconds", "memory, MiB")
        tables.append(Table(growing.what, header, tuple(lines), n_words=1))
        records.append(
            {"grows": growing.name, "sizes": sizes, "walls_s": walls, "peak_bytes": peaks,
             "exponent": exponent}
        )  # fmt: skip
        goals.append(
            Goal(f"exponent of time in {growing.name}", f"≤ {MOST_EXPONENT:g}", f"{exponent:.2f}",
                 exponent <= MOST_EXPONENT)
        )  # fmt: skip
    return Report(
        "growth",
        "How time and memory grow",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        tuple(tables),
        tuple(records),
        () if settings.quick else tuple(goals),
    )


def give_memory_back() -> None:
    """Let the C library return what earlier fits have left, so that a peak is of this one."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def list_growing(seed: int, shrink: int) -> Iterator[Growing]:
    """Yield what grows."""
    graph = random_network("graph", 50, 500, random_state=seed)
    rows = [n // shrink for n in (200_000, 500_000, 1_000_000, 2_000_000, 5_000_000)]
    fits = [(n, partial(prepare, graph, n, seed)) for n in rows]
    yield Growing("N", "Rows in memory, 50 binary nodes, m = 500", fits)
    tree = random_network("tree", 10, random_state=seed)
    rows = [n // shrink for n in (2_000_000, 5_000_000, 10_000_000, 30_000_000, 100_000_000)]
    fits = [(n, partial(prepare_stream, tree, n, seed)) for n in rows]
    yield Growing("N, streamed", "Rows of a stream that draws them, a tree of 10 nodes", fits)
    n = 100_000 // shrink
    nodes = (50, 100, 200, 500, 1000, 2000)
    fits = [(d, partial(prepare, random_network("tree", d, random_state=seed), n, seed))
            for d in nodes]  # fmt: skip
    yield Growing("d", f"Nodes of a tree, {n:,} rows", fits)
    n = 1_000_000 // shrink
    cells = (200, 1000, 5000, 20_000, 100_000)
    fits = [(m, partial(prepare, random_network("graph", 50, m, random_state=seed), n, seed))
            for m in cells]  # fmt: skip
    yield Growing("m", f"Configurations of 50 binary nodes, {n:,} rows", fits)
    kinds = [
        (k, partial(prepare_kinds, graph, k, 500_000 // shrink, seed)) for k in (1, 2, 3, 6, 12)
    ]
    yield Growing("K", f"Kinds of bad rows, {500_000 // shrink:,} rows", kinds)
    n = 200_000 // shrink
    fits = [(s, partial(prepare, wide_network(s, seed), n, seed)) for s in (10, 100, 1000, 10_000)]
    what = f"States of every other node of a chain of six, {n:,} rows"
    yield Growing("states", what, fits)


def prepare(network: BayesianNetwork, n_rows: int, seed: int) -> Callable[[], object]:
    """Draw rows; return their fit."""
    rows = draw_scene(network, "network", BAD, n_rows, seed).rows
    return lambda: RobustEstimator(network, random_state=0).fit(rows)


def prepare_stream(network: BayesianNetwork, n_rows: int, seed: int) -> Callable[[], object]:
    """Return the fit of a stream whose rows are drawn whenever they are read."""
    other = network.with_cpts(random_network("tree", 10, random_state=seed + 1).probabilities)
    labels = [np.array(network.states[node]) for node in network.nodes]

    def draw() -> Iterator[Any]:
        for first in range(0, n_rows, CHUNK):
            n = min(CHUNK, n_rows - first)
            codes = sample(network, n, [seed, first])
            n_bad = round(BAD * n)
            codes[:n_bad] = sample(other, n_bad, [seed + 1, first])
            columns = [pa.DictionaryArray.from_arrays(pa.array(c), pa.array(each))
                       for c, each in zip(codes.T, labels, strict=True)]  # fmt: skip
            yield pa.record_batch(columns, list(network.nodes))

    return lambda: RobustEstimator(network, random_state=0).fit(draw)


def prepare_kinds(
    network: BayesianNetwork, n_kinds: int, n_rows: int, seed: int
) -> Callable[[], object]:
    """Return the fit of rows of which one in ten is of some of so many other networks."""
    rows, rng = sample(network, n_rows, seed), np.random.default_rng(seed)
    which = np.array_split(rng.permutation(n_rows)[: round(BAD * n_rows)], n_kinds)
    for k, some in enumerate(which):
        tables = rng.uniform(0.1, 0.9, network.layout.n_cells)
        tables /= network.layout.sum_configurations(tables)[network.layout.config_of_cell]
        rows[some] = sample(network.with_cpts(tables), len(some), seed + 1 + k)
    return lambda: RobustEstimator(network, random_state=0).fit(rows)


def wide_network(n_states: int, seed: int) -> BayesianNetwork:
    """Return a chain of six nodes, every other one of which has so many states."""
    nodes = [f"X{i}" for i in range(6)]
    parents = {node: nodes[i - 1 : i] for i, node in enumerate(nodes)}
    states = {node: [str(v) for v in range(2 if i % 2 else n_states)]
              for i, node in enumerate(nodes)}  # fmt: skip
    network = BayesianNetwork(parents, states)
    tables = np.random.default_rng(seed).uniform(0.1, 1.0, network.layout.n_cells)
    totals = network.layout.sum_configurations(tables)
    return network.with_cpts(tables / totals[network.layout.config_of_cell])
