"""What a look-up costs in every kernel, with and without cluster codes, and with holes; import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import (
    Goal,
    Report,
    Settings,
    Table,
    installed_versions,
    say,
    time_interleaved,
)
from benchmarks.scenes import build_network, title_network
from robustbn import BayesianNetwork
from robustbn._rows.kernels import native
from robustbn._rows.kernels.clusters import Cluster, fuse_families, separate_families
from robustbn.simulate import random_network, sample

WIDTHS = (4, 8, 16)
SEPARATE, FUSED = "a code a node", "cluster codes"
Race = dict[tuple[str, str], dict[str, Any]]  # one record for each (kernel, codes)

COMPLETE, HOLED = "no holes", "10 % of cells missing"
SHARE_MISSING = 0.1
HOLED_NETWORKS = ("example:alarm", "graph:50:500")
MOST_FOR_HOLES = 1.5  # times the complete table

IMPORT_ROUNDS = 5
MEASURE_IMPORT = (
    "import time; t = time.perf_counter(); import robustbn; print(time.perf_counter() - t)"
)

HEADER = (
    "kernel",
    f"{SEPARATE}, ms",
    "ns a look-up a thread",
    f"{FUSED}, ms",
    "ns a look-up a thread",
    "gain",
)


NOTE = (
    "A pass over N rows of d nodes makes N d node look-ups; their cost is wall clock of the "
    "fastest round times threads, divided by N d. Cluster codes serve several nodes with one "
    "look-up: the same N d is used for them, and `gain` is the ratio of times."
)


@dataclass(frozen=True)
class Case:
    """A network to measure on, and the gain that its cluster codes should bring."""

    title: str
    network: BayesianNetwork
    n_rows: int
    wanted_gain: float


def run(settings: Settings) -> Report:
    """Time every kernel on the paper's graph and on a tree, and the import of the package."""
    n_threads = native.available_cpus()
    tables: list[Table] = []
    records: list[dict[str, Any]] = []
    goals: list[Goal] = []
    for case in _draw_cases(settings):
        say(f"kernels: {case.title}, {case.n_rows:,} rows, {n_threads} threads")
        race = _measure_case(case, n_threads, settings)
        tables.append(_tabulate(case, race, n_threads))
        records += race.values()
        goals += _judge_case(case, race)
    for name in HOLED_NETWORKS:
        say(f"kernels: {title_network(name)}, rows with holes")
        race = _measure_holes(name, n_threads, settings)
        tables.append(_tabulate_holes(name, race))
        records += race.values()
        goals += _judge_holes(name, race)
    say("kernels: import in fresh interpreters")
    import_s = _measure_import()
    records.append({"kernel": "import", "wall_s": import_s})
    tables.append(
        Table("Import", ("command", "time, s"), (("import robustbn", f"{import_s:.3f}"),))
    )
    goals.append(_at_most("`import robustbn`", 0.3, import_s, "s"))
    return Report(
        "kernels",
        "Kernels: the cost of a look-up",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        tuple(tables),
        tuple(records),
        () if settings.quick else tuple(goals),
    )


def _draw_cases(settings: Settings) -> tuple[Case, ...]:
    seed, shrink = settings.seed, 10 if settings.quick else 1
    graph = random_network("graph", n_nodes=50, n_parameters=500, random_state=seed)
    tree = random_network("tree", n_nodes=250, random_state=seed)
    return (
        Case("the paper's graph, 50 binary nodes, m = 500", graph, 1_000_000 // shrink, 2.0),
        Case("tree, 250 binary nodes", tree, 200_000 // shrink, 4.0),
    )


# --- measuring ------------------------------------------------------------------------------------


def _measure_case(case: Case, n_threads: int, settings: Settings) -> Race:
    timings = time_interleaved(_list_contenders(case, n_threads, settings.seed), settings)
    n_lookups = case.n_rows * case.network.n_nodes
    return {
        (kernel, codes): {
            "network": case.title,
            "n_rows": case.n_rows,
            "kernel": kernel,
            "codes": codes,
            "n_threads": n_threads,
            **timing.to_record(),
            "ns_per_lookup": timing.wall_s * 1e9 * n_threads / n_lookups,
        }
        for (kernel, codes), timing in timings.items()
    }


def _list_contenders(
    case: Case, n_threads: int, seed: int
) -> dict[tuple[str, str], Callable[[], object]]:
    """Return what to time by (kernel, codes)."""
    network, layout = case.network, case.network.layout
    codes = sample(network, case.n_rows, seed)
    rng = np.random.default_rng(seed)
    weights = rng.random(case.n_rows)
    tables = {width: rng.normal(size=(network.n_cells, width)) for width in WIDTHS}
    contenders: dict[tuple[str, str], Callable[[], object]] = {}
    for kind in (SEPARATE, FUSED):
        encode = partial(native.encode, layout, codes, n_threads, fuse=kind == FUSED)
        rows = encode()
        contenders["encode", kind] = encode
        contenders["count", kind] = partial(_count_anew, rows)
        contenders["count, weighted", kind] = partial(rows.count, weights)
        for width, table in tables.items():
            contenders[f"score, {width} columns", kind] = partial(rows.score, table)
            contenders[f"gram, {width} columns", kind] = partial(rows.gram, table, None, weights)
    contenders["sample", SEPARATE] = partial(
        sample, network, case.n_rows, seed, n_threads=n_threads
    )
    return contenders


def _measure_holes(name: str, n_threads: int, settings: Settings) -> Race:
    """Time the passes over complete rows and over the same rows with holes, in one run."""
    network, n_rows = build_network(name, settings.seed), 500_000 // (10 if settings.quick else 1)
    complete, rng = sample(network, n_rows, settings.seed), np.random.default_rng(settings.seed)
    layout = network.layout
    is_hole = rng.random(complete.shape) < SHARE_MISSING
    holed = np.where(is_hole, np.array(layout.cards), complete).astype(layout.code_dtype)
    table, weights = rng.normal(size=(network.n_cells, 8)), rng.random(n_rows)
    contenders: dict[tuple[str, str], Callable[[], object]] = {}
    for kind, codes, its_layout in (
        (COMPLETE, complete, layout),
        (HOLED, holed, layout.with_holes(range(layout.n_nodes))),
    ):
        encode = partial(native.encode, its_layout, codes, n_threads)
        rows = encode()
        contenders["encode", kind] = encode
        contenders["count", kind] = partial(_count_anew, rows)
        contenders["count, weighted", kind] = partial(rows.count, weights)
        contenders["score, 8 columns", kind] = partial(rows.score, table)
        contenders["gram, 8 columns", kind] = partial(rows.gram, table, None, weights)
    return {
        (kernel, kind): {
            "network": title_network(name),
            "n_rows": n_rows,
            "kernel": kernel,
            "rows": kind,
            "n_threads": n_threads,
            **timing.to_record(),
        }
        for (kernel, kind), timing in time_interleaved(contenders, settings).items()
    }


def _measure_import() -> float:
    """Return the seconds that the import takes in the fastest of a few fresh interpreters."""
    command = [sys.executable, "-c", MEASURE_IMPORT]
    return min(
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(IMPORT_ROUNDS)
    )


# --- what it shows --------------------------------------------------------------------------------


def _tabulate(case: Case, race: Race, n_threads: int) -> Table:
    lines = [
        (kernel, *_show_cost(race, kernel, SEPARATE), *_show_cost(race, kernel, FUSED), gain)
        for kernel, gain in ((k, _show_gain(race, k)) for k in dict.fromkeys(k for k, _ in race))
    ]
    layout = case.network.layout
    separate, fused = separate_families(layout), fuse_families(layout)
    note = (
        f"{n_threads} threads. A row is {len(separate)} codes in {_count_bytes(separate)} bytes, "
        f"or {len(fused)} cluster codes in {_count_bytes(fused)} bytes. `gram` has row weights. "
        f"Sampling: {_sampling_rate(race) / 1e6:.0f} million cells a second a thread."
    )
    return Table(f"{case.title}; N = {case.n_rows:,}", HEADER, tuple(lines), note)


def _judge_case(case: Case, race: Race) -> Iterator[Goal]:
    for kernel, wanted_ns in (("score, 8 columns", 1.5), ("gram, 8 columns", 3.5)):
        what = f"{case.title}: {kernel}"
        measured_ns = race[kernel, SEPARATE]["ns_per_lookup"]
        yield _at_most(f"{what}, a code a node", wanted_ns, measured_ns, "ns")
        gain = _gain(race, kernel)
        yield _at_least(f"{what}, gain of cluster codes", case.wanted_gain, gain, "×")
    rate = _sampling_rate(race) / 1e6
    yield _at_least(f"{case.title}: sampling, a thread", 20, rate, " million cells / s")


def _tabulate_holes(name: str, race: Race) -> Table:
    kernels = list(dict.fromkeys(kernel for kernel, _ in race))
    lines = [
        (
            kernel,
            *(f"{race[kernel, kind]['wall_s'] * 1e3:.1f}" for kind in (COMPLETE, HOLED)),
            f"{_times(race, kernel):.2f}×",
        )
        for kernel in kernels
    ]
    layout = build_network(name, 0).layout
    n_codes = [
        sum(bool(cluster.nodes) for cluster in fuse_families(layout.with_holes(columns)))
        for columns in ((), range(layout.n_nodes))
    ]
    n_rows = race["count", HOLED]["n_rows"]
    header = ("kernel", f"{COMPLETE}, ms", f"{HOLED}, ms", "times")
    note = f"Holes in every column, at random. Look-ups a row: {n_codes[0]}, and {n_codes[1]}."
    return Table(f"{title_network(name)} with holes; N = {n_rows:,}", header, tuple(lines), note)


def _judge_holes(name: str, race: Race) -> Iterator[Goal]:
    for kernel in ("count", "score, 8 columns", "gram, 8 columns"):
        what = f"{title_network(name)}: {kernel}, {HOLED}, against {COMPLETE}"
        yield _at_most(what, MOST_FOR_HOLES, _times(race, kernel), "×")


def _times(race: Race, kernel: str) -> float:
    return float(race[kernel, HOLED]["wall_s"] / race[kernel, COMPLETE]["wall_s"])


def _gain(race: Race, kernel: str) -> float:
    return float(race[kernel, SEPARATE]["wall_s"] / race[kernel, FUSED]["wall_s"])


def _sampling_rate(race: Race) -> float:
    return float(1e9 / race["sample", SEPARATE]["ns_per_lookup"])


def _show_cost(race: Race, kernel: str, codes: str) -> tuple[str, str]:
    if (kernel, codes) not in race:
        return "–", "–"
    record = race[kernel, codes]
    return f"{record['wall_s'] * 1e3:.1f}", f"{record['ns_per_lookup']:.2f}"


def _show_gain(race: Race, kernel: str) -> str:
    return f"{_gain(race, kernel):.1f}×" if (kernel, FUSED) in race else "–"


def _count_anew(rows: native.NativeRows) -> object:
    """Count rows that do not know that they were counted before."""
    return replace(rows).count()


def _count_bytes(clusters: list[Cluster]) -> int:
    return sum(cluster.code_bytes for cluster in clusters)


def _at_most(sentence: str, wanted: float, measured: float, unit: str) -> Goal:
    return Goal(sentence, f"≤ {wanted:g} {unit}", f"{measured:.3g} {unit}", measured <= wanted)


def _at_least(sentence: str, wanted: float, measured: float, unit: str) -> Goal:
    return Goal(sentence, f"≥ {wanted:g}{unit}", f"{measured:.3g}{unit}", measured >= wanted)
