"""`python -m benchmarks posteriors`: do intervals hold the truth, does an expert help or harm.

The networks are exact: rows are drawn from them, and a tenth of the rows is corrupted. A cell is a
state of a configuration; its interval holds the truth or not. Probabilities of exactly 0 or 1 are
told apart: an interval that begins at 0 because no row shows a state holds a 0 always.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from benchmarks.scenes import build_network, draw_scene, title_network
from robustbn import BayesianNetwork, RobustEstimator, sample

SOURCES = ("src/robustbn/_show/posterior.py",)
NETWORKS = ("example:alarm", "tree:80", "graph:40:160", "categorical:30:120", "bif:insurance")
WAYS = ("none", "product", "network", "shift", "rowflip", "tilt", "mixture")
N_ROWS, N_SEEDS, EPS = 30_000, 3, 0.1
LEVEL, LOWEST, HIGHEST = 0.95, 0.93, 0.97
LEAST = (0, 1, 20, 100, 1000)  # rows of a configuration
HELPED, HARMED = 0.6, 1.02  # error with an expert over that without: a good one, a wrong one
WITHIN = 0.05  # how far a good expert's probabilities are off, at the most
NOTE = (
    f"{LEVEL:.0%} intervals of `fit.posterior()` on {N_ROWS:,} rows: the share of "
    "cells whose interval holds the true probability (open: of those whose truth is neither 0 nor "
    "1), and by the trusted rows of the configuration; "
    f"0 are configurations that no row shows. {EPS:.0%} of the rows are corrupted, by the way that "
    "is named. Experts: the mean distance of learned and true tables with the expert as prior (50 "
    "equivalent rows), over that without. A good expert's probabilities are off by up to "
    f"{WITHIN}, uniformly ('near'), or by exactly that in every configuration ('far')."
)
Record = dict[str, Any]


def run(settings: Settings) -> Report:
    """Measure coverage on every network, and what experts do to the error."""
    seeds = range(settings.seed, settings.seed + (N_SEEDS if settings.full else 1))
    n_rows = 5_000 if settings.quick else N_ROWS
    names = NETWORKS[:2] if settings.quick else NETWORKS
    with warnings.catch_warnings():  # fifty rows are few, and are meant to be
        warnings.simplefilter("ignore")
        records = [*measure_intervals(names, n_rows, seeds), *measure_experts(names, seeds)]
    return Report(
        "posteriors",
        "Posteriors: intervals of tables, and experts",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        (tabulate_intervals(records), tabulate_experts(records)),
        tuple(records),
        () if settings.quick else tuple(find_goals(records)),
    )


# --- intervals ------------------------------------------------------------------------------------


def measure_intervals(names: tuple[str, ...], n_rows: int, seeds: range) -> Iterator[Record]:
    """Yield how many intervals hold the truth, for each network and way."""
    for name in names:
        for way in WAYS:
            found = [cover(name, way, n_rows, seed) for seed in seeds]
            holds, is_open, rows = (np.concatenate(each) for each in zip(*found, strict=True))
            say(f"{name} {way}: {holds.mean():.3f}")
            ends = [*LEAST[1:], np.inf]
            by_rows = [(rows >= low) & (rows < high) for low, high in zip(LEAST, ends, strict=True)]
            yield {
                "network": name,
                "way": way,
                "cells": len(holds),
                "holds": float(holds.mean()),
                "holds_open": float(holds[is_open].mean()),
                "by_rows": [float(holds[some].mean()) if some.any() else None for some in by_rows],
            }


def cover(
    name: str, way: str, n_rows: int, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Return whether each interval holds the truth, whether that is between 0 and 1, the rows."""
    network = build_network(name, seed)
    scene = draw_scene(network, way, EPS, n_rows, seed)
    fit = RobustEstimator(network, random_state=seed).fit(scene.rows)
    low, high = fit.posterior().limits(LEVEL)
    truth, layout = network.probabilities, network.layout
    rows = layout.sum_configurations(fit.counts_)[layout.config_of_cell]
    return (low <= truth) & (truth <= high), (truth > 0) & (truth < 1), rows


def tabulate_intervals(records: list[Record]) -> Table:
    """Return a line a network and way."""
    header = (
        "network",
        "way",
        "cells",
        "hold",
        "open",
        *(f"{n}+ rows" if n else "0" for n in LEAST),
    )
    lines = [
        (
            title_network(r["network"]),
            r["way"],
            f"{r['cells']:,}",
            f"{r['holds']:.1%}",
            f"{r['holds_open']:.1%}",
            *("–" if share is None else f"{share:.1%}" for share in r["by_rows"]),
        )
        for r in records
        if "holds" in r
    ]
    return Table("Intervals that hold the truth", header, tuple(lines), n_words=2)


# --- experts --------------------------------------------------------------------------------------


def measure_experts(names: tuple[str, ...], seeds: range) -> Iterator[Record]:
    """Yield the error with an expert over that without."""
    for name in names:
        for kind, n_rows in (("near", 50), ("far", 50), ("wrong", 2_000), ("wrong", 50_000)):
            ratios = []
            for seed in seeds:
                network = build_network(name, seed)
                rows = sample(network, n_rows, seed + 1)
                test = RobustEstimator(network, method="none").fit(sample(network, 100_000, seed))
                expert = draw_expert(network, kind, seed)
                both = RobustEstimator(network, prior=expert, random_state=0).fit(rows)
                alone = RobustEstimator(network, random_state=0).fit(rows)
                errors = [distance(network, fit.network_, test.counts_) for fit in (both, alone)]
                ratios.append(errors[0] / errors[1])
            say(f"{name} {kind} expert, {n_rows} rows: {np.mean(ratios):.3f}")
            record = {"network": name, "expert": kind, "rows": n_rows}
            yield {**record, "ratio": float(np.mean(ratios)), "ratios": ratios}


def draw_expert(network: BayesianNetwork, kind: str, seed: int) -> BayesianNetwork:
    """Return the tables of an expert who is near the truth, far from it, or plainly wrong."""
    layout, rng = network.layout, np.random.default_rng(seed)
    if kind == "wrong":
        cells = rng.gamma(0.5, size=network.n_cells) + 1e-6
    else:
        off = rng.uniform(-1, 1, network.n_cells)
        if kind == "far":
            mean = layout.sum_configurations(off) / layout.config_cards
            off = off - mean[layout.config_of_cell]
            most = np.maximum.reduceat(np.abs(off), layout.first_cell_of_config)
            off = off / most[layout.config_of_cell]
        cells = np.maximum(network.probabilities + WITHIN * off, 1e-12)
    return network.with_cpts(cells / layout.sum_configurations(cells)[layout.config_of_cell])


def distance(
    truth: BayesianNetwork, learned: BayesianNetwork, counts: NDArray[np.float64]
) -> float:
    """Return the mean distance of tables, configurations weighted by how often they occur."""
    layout = truth.layout
    apart = layout.sum_configurations(np.abs(truth.probabilities - learned.probabilities)) / 2
    weights = layout.sum_configurations(counts)
    return float(weights @ apart / weights.sum())


def tabulate_experts(records: list[Record]) -> Table:
    """Return a line a network, kind of expert and number of rows."""
    lines = [
        (title_network(r["network"]), r["expert"], f"{r['rows']:,}", f"{r['ratio']:.3f}")
        for r in records
        if "ratio" in r
    ]
    return Table(
        "Error with an expert over that without",
        ("network", "expert", "rows", "ratio"),
        tuple(lines),
        n_words=2,
    )


def find_goals(records: list[Record]) -> Iterator[Goal]:
    """Yield what was wanted, and what was measured."""
    for title, is_clean in (("clean rows", True), (f"{EPS:.0%} bad rows", False)):
        chosen = [r for r in records if "way" in r and (r["way"] == "none") == is_clean]
        for which, key in (("all cells", "holds"), ("truth between 0 and 1", "holds_open")):
            shares = [r[key] for r in chosen]
            n = sum(LOWEST <= share <= HIGHEST for share in shares)
            mean = float(np.average(shares, weights=[r["cells"] for r in chosen]))
            yield Goal(
                f"{LEVEL:.0%} intervals hold the truth, {title}, {which}",
                f"{LOWEST:.0%} to {HIGHEST:.0%}, every network and way",
                f"{min(shares):.1%} to {max(shares):.1%}, mean {mean:.1%}; {n} of {len(shares)}",
                n == len(shares),
            )
    for kind, n_rows, most in (("near", 50, HELPED), ("wrong", 50_000, HARMED)):
        ratios = [r["ratio"] for r in records if (r.get("expert"), r.get("rows")) == (kind, n_rows)]
        yield Goal(
            f"error with a {'good' if kind == 'near' else kind} expert, {n_rows:,} rows",
            f"at most {most} of that without",
            f"{min(ratios):.3f} to {max(ratios):.3f}",
            max(ratios) <= most,
        )
