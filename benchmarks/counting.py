"""How fast tables are counted, ours against peers, and whether all find the same tables.

Ours is timed from an array of uint8 codes to the fitted network: checking, packing, counting and
building `network_`. What each peer is given is in `peers.py`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measure import (
    Goal,
    Report,
    Settings,
    Table,
    installed_versions,
    say,
    time_interleaved,
)
from benchmarks.peers import PEERS, Codes, Fit, Peer, compare_tables
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, example_network
from robustbn.exceptions import UnseenConfigurationWarning
from robustbn.simulate import random_network, sample

OURS = "robustbn"
OURS_ONE_THREAD = "robustbn, one thread"
JUDGED_ROWS = 1_000_000  # the goals speak of this many rows
FASTER_THAN_FASTEST, FASTER_THAN_PGMPY = 3, 50

HEADER = ("library", "input", "time, ms", "CPU, ms", "ns a cell", "× ours", "rounds", "difference")
NOTE = (
    "Time is wall clock of the fastest round, CPU that of all threads; `× ours` is the ratio of "
    "times; `difference` is the largest between its tables and ours, over configurations that "
    "occur in some row. Ours includes checking and packing the rows; a peer's input, as named, is "
    "ready before its clock starts."
)


class SkippedError(Exception):
    """A peer cannot take part; the message says why."""


def run(settings: Settings) -> Report:
    """Count two networks at two numbers of rows with every library that is installed."""
    records: list[dict[str, Any]] = []
    skipped: list[str] = []
    for title, network in _draw_networks(settings.seed).items():
        for n_rows in (20_000, 100_000) if settings.quick else (100_000, JUDGED_ROWS):
            say(f"counting: {title}, {n_rows:,} rows")
            codes = sample(network, n_rows, settings.seed)
            race = _race(network, codes, settings, skipped)
            records += [{"network": title, "n_rows": n_rows, **record} for record in race]
    distributions = dict.fromkeys(name for peer in PEERS for name in peer.distributions)
    return Report(
        "counting",
        "Counting: from rows to tables",
        NOTE,
        settings,
        installed_versions([OURS, "numpy", *distributions]),
        tuple(_tabulate(records)),
        tuple(records),
        () if settings.quick else tuple(_judge(records)),
        tuple(dict.fromkeys(skipped)),
    )


def _draw_networks(seed: int) -> dict[str, BayesianNetwork]:
    binary = random_network("graph", n_nodes=50, n_parameters=500, random_state=seed)
    return {
        "ALARM, 37 nodes, 2 to 4 states": example_network("alarm"),
        "the paper's graph, 50 binary nodes, m = 500": binary,
    }


# --- one race -------------------------------------------------------------------------------------


def _race(
    network: BayesianNetwork, codes: Codes, settings: Settings, skipped: list[str]
) -> list[dict[str, Any]]:
    """Return one record a contender; who cannot take part is appended to `skipped`."""
    with _temporary_files(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenConfigurationWarning)
        ours = MaximumLikelihoodEstimator(network).fit(codes)
        contenders: dict[str, Fit] = {
            OURS: lambda: MaximumLikelihoodEstimator(network).fit(codes),
            OURS_ONE_THREAD: lambda: MaximumLikelihoodEstimator(network, n_threads=1).fit(codes),
        }
        facts: dict[str, dict[str, Any]] = {name: {"input": "uint8 array"} for name in contenders}
        for peer in PEERS:
            try:
                fit = _prepare(peer, network, codes)
            except SkippedError as reason:
                skipped.append(f"{peer.name}: {reason}")
                say(f"  skipped {skipped[-1]}")
                continue
            contenders[peer.name] = fit
            facts[peer.name] = {"input": peer.route, **compare_tables(peer, fit(), ours)}
        timings = time_interleaved(contenders, settings)
    return [
        {
            "library": name,
            **facts[name],
            **timing.to_record(),
            "ns_per_cell": timing.wall_s * 1e9 / codes.size,
            "times_ours": timing.wall_s / timings[OURS].wall_s,
        }
        for name, timing in timings.items()
    ]


def _prepare(peer: Peer, network: BayesianNetwork, codes: Codes) -> Fit:
    if peer.max_rows is not None and len(codes) > peer.max_rows:
        raise SkippedError(f"takes too long with more than {peer.max_rows:,} rows")
    try:
        return peer.prepare(network, codes)
    except ImportError as error:
        raise SkippedError(f"not installed ({error})") from error


@contextmanager
def _temporary_files() -> Iterator[None]:
    """Keep CSV files, ours and those that pyAgrum leaves behind, in a folder that goes away."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before


# --- what it shows --------------------------------------------------------------------------------


def _tabulate(records: list[dict[str, Any]]) -> Iterator[Table]:
    for (network, n_rows), race in _group_races(records):
        ranked = sorted(race, key=lambda r: float(r["wall_s"]))
        lines = tuple(_tabulate_record(record) for record in ranked)
        yield Table(f"{network}; N = {n_rows:,}", HEADER, lines, n_words=2)


def _tabulate_record(record: dict[str, Any]) -> tuple[str, ...]:
    difference = f"{record['difference']:.2g}" if "difference" in record else "–"
    return (
        record["library"],
        record["input"],
        f"{record['wall_s'] * 1e3:.1f}",
        f"{record['cpu_s'] * 1e3:.1f}",
        f"{record['ns_per_cell']:.2f}",
        f"{record['times_ours']:.1f}",
        str(len(record["walls_s"])),
        difference if record.get("agrees", True) else f"**{difference}**",
    )


def _judge(records: list[dict[str, Any]]) -> Iterator[Goal]:
    """Judge every network at the number of rows that the goals speak of."""
    for (network, n_rows), race in _group_races(records):
        ratios = {r["library"]: r["times_ours"] for r in race if "difference" in r}
        if n_rows != JUDGED_ROWS or not ratios:
            continue
        fastest = min(ratios, key=lambda library: float(ratios[library]))
        goals = [(fastest, f"the fastest peer ({fastest})", FASTER_THAN_FASTEST)]
        if "pgmpy" in ratios:
            goals.append(("pgmpy", "pgmpy", FASTER_THAN_PGMPY))
        for library, whom, wanted in goals:
            ratio = ratios[library]
            sentence = f"{network}: faster than {whom}"
            yield Goal(sentence, f"≥ {wanted}×", f"{ratio:.1f}×", ratio >= wanted)


def _group_races(
    records: list[dict[str, Any]],
) -> Iterator[tuple[tuple[str, int], list[dict[str, Any]]]]:
    races: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for record in records:
        races.setdefault((record["network"], record["n_rows"]), []).append(record)
    yield from races.items()
