"""`python -m benchmarks misfit`: networks that are wrong in a known way.

Rows come from a population that the fitted network does not describe: a published network of which
edges were left out, one with a hidden cause, one whose tables drift. Clean, nothing should be
distrusted; with bad rows, those should be; and the edges that were left out should be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.cells import NOTEBOOK, Notebook, Record
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.misfit_scenes import SOUGHT_GAIN, MisfitCell, measure_misfit, version_of_misfit
from benchmarks.pool import list_missing, measure_all
from benchmarks.scenes import title_network
from benchmarks.verdict import bootstrap, group_by

Records = list[Record]

THINNED = ("example:alarm", "bif:insurance", "bif:child", "bif:hailfinder")
MIXED = ("example:alarm", "bif:insurance")
REMOVED = (1, 3, 10)
HIDDEN_SHARES, TOUCHED, STRENGTHS = (0.1, 0.3, 0.5), (2, 8), (0.3, 1.0)
DRIFTS = (0.2, 0.5)
ADVERSARIES = ("none", "network", "rowflip")
EPS, N_ROWS = 0.1, 20_000
ALARM = 0.01  # share of clean rows that are distrusted
WANTED = 0.9
EDGES, HIDDEN, DRIFT = "misfit edges", "misfit hidden", "misfit drift"
NOTE = (
    f"{N_ROWS:,} rows; `bad` says which adversary made {EPS:.0%} of them. The target is the "
    "population's tables for the network that is fitted, counted from 500,000 rows. `R` is the "
    "total variation from it over that of counting the good rows (geometric mean over the cells, "
    "and largest); losses are in nats a row of 100,000 rows kept aside, against counting the good "
    "rows; `left` is our loss over counting's. An alarm is a clean table of which more than 1 % is "
    "distrusted.\n\n"
    "**Missing edges.** A removed edge is sought if it would gain at least "
    f"{SOUGHT_GAIN} nats a row in the population, and found if `missing_edges()` names its pair, "
    "either way round: recall. A named pair is right if a removed edge joins it, or if the two are "
    "d-connected in the whole network given the child's parents in the thinned one, so that they "
    "do depend on each other where the thinned network says they do not: precision. `of them "
    "removed` is the share of named pairs that a removed edge joins: one missing edge makes many "
    "pairs depend, so it is low."
)


def plan(settings: Settings) -> list[MisfitCell]:
    """Return the cells: every population with two seeds (three for edges), clean and not."""
    n_rows, n_seeds = (4000, 1) if settings.quick else (N_ROWS, 5 if settings.full else 1)
    thinned, mixed = THINNED[: 1 if settings.quick else 2], MIXED[:1]
    if settings.full:
        thinned, mixed = THINNED, MIXED
    worlds: list[tuple[str, str, float, int, float]] = []
    worlds += [(EDGES, name, n, 0, 0.0) for name in thinned for n in REMOVED]
    worlds += [
        (HIDDEN, name, share, k, strength)
        for name in mixed
        for strength in STRENGTHS
        for k in TOUCHED
        for share in HIDDEN_SHARES
    ]
    worlds += [(DRIFT, name, moved, 0, 0.0) for name in mixed for moved in DRIFTS]
    if settings.quick:
        worlds = [worlds[1], worlds[3], worlds[-1]]
    return [
        MisfitCell(*world, adversary, EPS, n_rows, settings.seed + k)
        for world in worlds
        for k in range(n_seeds + (world[0] == EDGES and not settings.quick))
        for adversary in ADVERSARIES
    ]


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Fit every population, clean and with bad rows."""
    kept = Notebook(notebook, version_of_misfit(), fresh=settings.fresh)
    records = measure_all(plan(settings), measure_misfit, kept, settings)
    return Report(
        "misfit",
        "Networks that are wrong: edges left out, a hidden cause, drift",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pgmpy"]),
        tuple(tabulate(records)),
        tuple(records),
        () if settings.quick else tuple(judge(records)),
        list_missing(records),
    )


# --- tables ---------------------------------------------------------------------------------------


def tabulate(records: Sequence[Record]) -> Iterator[Table]:
    """Yield the tables of the report, from the records alone."""
    done = [r for r in records if "R" in r]
    edges = [r for r in done if r["experiment"] == EDGES]
    if edges:
        yield _tabulate_edges(edges, "Edges left out", "amount", "edges")
        yield _tabulate_edges(edges, "Edges left out, by network", "network", "network")
    hidden = [r for r in done if r["experiment"] == HIDDEN]
    if hidden:
        yield _tabulate_population(
            hidden, "A hidden cause", {"strength": "strength", "n_touched": "nodes"}, "share"
        )
    drift = [r for r in done if r["experiment"] == DRIFT]
    if drift:
        yield _tabulate_population(drift, "Drift over twelve months", {}, "moved")


def _tabulate_edges(edges: Records, title: str, key: str, word: str) -> Table:
    lines = []
    for (value, adversary), group in group_by(edges, key, "adversary").items():
        ratios = [r["R"] for r in group]
        lines.append(
            (
                title_network(value) if key == "network" else f"{value:g}",
                adversary,
                f"{len(group)}",
                f"{_geometric([r['R_counting'] for r in group]):.2f}",
                f"**{_geometric(ratios):.2f}**",
                f"{max(ratios):.2f}",
                f"{np.mean([r['lost'] for r in group]):.2%}",
                _show_alarms(group, adversary),
                "–" if adversary == "none" else f"{np.mean([r['caught'] for r in group]):.2f}",
                _show(find_recall(group)),
                _show(find_precision(group)),
                _show(_ratio(group, "n_removed_named", "n_named")),
            )
        )
    header = (word, "bad", "cells", "R counting", "R", "largest R", "good lost", "alarms", "caught")
    return Table(title, (*header, "recall", "precision", "of them removed"), tuple(lines), "", 2)


def _tabulate_population(records: Records, title: str, more: dict[str, str], word: str) -> Table:
    lines = []
    keys = (*more, "amount")
    for values, group in group_by(records, *keys).items():
        clean = [r for r in group if r["adversary"] == "none"]
        planted = [r for r in group if r["adversary"] != "none"]
        ours, counting = (
            float(np.mean([max(r[k], 0.0) for r in planted])) for k in ("loss", "loss_counting")
        )
        lines.append(
            (
                *(f"{value:g}" for value in values),
                f"{len(group)}",
                f"{np.mean([r['lost'] for r in clean]):.2%}",
                _show_alarms(clean, "none"),
                f"{np.mean([r['loss'] for r in clean]):.3f}",
                f"{counting:.3f}",
                f"**{ours:.3f}**",
                f"{ours / max(counting, 1e-9):.0%}",
                f"{np.mean([r['caught'] for r in planted]):.2f}",
                f"{np.mean([r['lost'] for r in planted]):.2%}",
            )
        )
    header = (*more.values(), word, "cells", "clean: distrusted", "alarms", "loss")
    planted_header = ("10 % bad: counting", "ours", "left", "caught", "good lost")
    return Table(title, (*header, *planted_header), tuple(lines), "", len(keys))


def _show_alarms(group: Records, adversary: str) -> str:
    if adversary != "none":
        return "–"
    return f"{sum(r['lost'] > ALARM for r in group)} of {len(group)}"


def _geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


# --- missing edges --------------------------------------------------------------------------------


def _ratio(records: Records, above: str, below: str) -> float:
    total = sum(r[below] for r in records)
    return sum(r[above] for r in records) / total if total else float("nan")


def find_recall(records: Records) -> float:
    """Return the share of sought edges that are named, over all cells together."""
    return _ratio(records, "n_found", "n_sought")


def find_precision(records: Records) -> float:
    """Return the share of named pairs that are right, over all cells together."""
    return _ratio(records, "n_right", "n_named")


def _show(share: float) -> str:
    return "–" if np.isnan(share) else f"{share:.2f}"


def judge(records: Sequence[Record]) -> Iterator[Goal]:
    """Yield the goals of missing edges, for clean tables and for those with bad rows."""
    edges = [r for r in records if "n_named" in r]
    for title, group in (
        ("clean", [r for r in edges if r["adversary"] == "none"]),
        ("10 % bad rows", [r for r in edges if r["adversary"] != "none"]),
    ):
        if not group:
            continue
        group = [{**r, "population": str(r["world"])} for r in group]
        for word, find in (("recall", find_recall), ("precision", find_precision)):
            interval = bootstrap(group, find, "population")
            shown = "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
            share = find(group)
            sentence = f"Missing edges, {title}: {word}"
            yield Goal(sentence, f"≥ {WANTED}", f"{share:.2f}{shown}", share >= WANTED)
