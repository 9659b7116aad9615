"""How far robust tables are from the truth, against every adversary, beside counting."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from benchmarks.scenes import draw_scene
from robustbn import (
    BayesianNetwork,
    MaximumLikelihoodEstimator,
    RobustEstimator,
    example_network,
    random_network,
    total_variation,
)

EPS = 0.1
N_SEEDS = 5
N_DRAWS = 100_000

NETWORKS: dict[str, Callable[[int], BayesianNetwork]] = {
    "graph, d = 50, m = 500": lambda s: random_network("graph", 50, 500, random_state=s),
    "tree, d = 250": lambda s: random_network("tree", 250, random_state=s),
    "categorical, d = 30": lambda s: random_network("graph", 30, 300, (2, 4), random_state=s),
    "ALARM": lambda _: example_network("alarm"),
}
# kind, strength, goal: R at most, or R at most so many times that of counting
FAR: dict[tuple[str, float | None], float] = {
    (k, None): 1.05 for k in ("product", "network", "repeated", "flipped", "rowflip")
}
FAR |= {("shift", 0.3): 1.05, ("mixture", None): 1.15}
NEAR = {(k, None): 1.3 for k in ("clones", "decoy", "tilt")} | {("shift", 0.1): 1.3}
UNSEEN = {(k, None): 1.02 for k in ("none", "tail", "subtract")}
MORE = [(k, None) for k in ("comonotone", "misjoined", "blocks", "flood", "adaptive", "starve")]
ADVERSARIES = [*FAR, *NEAR, *UNSEEN, *MORE]

NOTE = (
    "R = TV(fit, truth) / TV(counts of the good rows, truth), mean and largest of the seeds; rows "
    f"N = 10 m / eps^2 with eps = {EPS}, contamination unknown to the fit. A row is caught when "
    "its weight is below one half. The goals are 1.05 for far adversaries (1.15 for the mixture), "
    "1.3 and half of counting for near ones, and no more than 1.02 times counting for clean rows "
    "and for what nobody can see. The last six adversaries have no goal."
)


def run(settings: Settings) -> Report:
    """Fit every network against every adversary."""
    n_seeds = 1 if settings.quick else N_SEEDS
    records = []
    for title in NETWORKS:
        for kind, strength in ADVERSARIES:
            record = _measure(title, kind, strength, range(settings.seed, settings.seed + n_seeds))
            say(f"{title}: {_name(record)}: R {record['R']:.3f}, counting {record['counting']:.2f}")
            records.append(record)
    return Report(
        "robustness",
        "Robustness: distance from the truth with 10 % of bad rows",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        tuple(_tabulate(title, records) for title in NETWORKS),
        tuple(records),
        () if settings.quick else tuple(_judge(records)),
    )


def _measure(title: str, kind: str, strength: float | None, seeds: range) -> dict[str, Any]:
    fits = [_measure_one(NETWORKS[title](seed), kind, strength, seed) for seed in seeds]
    mean = {key: float(np.mean([fit[key] for fit in fits])) for key in fits[0]}
    worst = max(fit["R"] for fit in fits)
    return {"network": title, "kind": kind, "strength": strength, "worst": worst, **mean}


def _measure_one(
    network: BayesianNetwork, kind: str, strength: float | None, seed: int
) -> dict[str, float]:
    n_rows = round(10 * network.n_configurations / EPS**2)
    name = kind if strength is None else f"{kind} {strength:g}"
    scene = draw_scene(network, name, EPS, n_rows, seed)
    rows, is_bad = scene.rows, scene.is_bad

    def distance(fitted: BayesianNetwork) -> float:
        return total_variation(network, fitted, n_draws=N_DRAWS)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fit = RobustEstimator(network, random_state=seed).fit(rows)
        wall_s = time.perf_counter() - start
        floor = distance(MaximumLikelihoodEstimator(network).fit(scene.good).network_)
    distrusted = fit.row_weights_ < 0.5
    return {
        "R": distance(fit.network_) / floor,
        "counting": distance(fit.plain_network_) / floor,
        "contamination": fit.contamination_,
        "caught": float(distrusted[is_bad].mean()) if is_bad.any() else 0.0,
        "lost": float(distrusted[~is_bad].mean()),
        "wall_s": wall_s,
    }


def _name(record: dict[str, Any]) -> str:
    strength = record["strength"]
    return str(record["kind"]) + ("" if strength is None else f" {strength:g}")


def _tabulate(title: str, records: list[dict[str, Any]]) -> Table:
    lines = tuple(
        (
            _name(r),
            f"{r['counting']:.2f}",
            f"**{r['R']:.3f}**",
            f"{r['worst']:.3f}",
            f"{r['contamination']:.2%}",
            f"{r['caught']:.1%}",
            f"{r['lost']:.2%}",
            f"{r['wall_s']:.2f}",
        )
        for r in records
        if r["network"] == title
    )
    header = ("adversary", "counting", "R", "worst", "found", "caught", "lost", "s")
    return Table(title, header, lines)


def _judge(records: list[dict[str, Any]]) -> Iterator[Goal]:
    for r in records:
        key = (r["kind"], r["strength"])
        what = f"{r['network']}: {_name(r)}"
        if key in FAR or key in NEAR:
            most = (FAR | NEAR)[key]
            half = r["counting"] / 2 if key in NEAR else np.inf
            yield Goal(what, f"≤ {min(most, half):.2f}", f"{r['R']:.3f}", r["R"] <= min(most, half))
        elif key in UNSEEN:
            most = UNSEEN[key] * r["counting"]
            yield Goal(what, f"≤ {most:.3f}", f"{r['R']:.3f}", r["R"] <= most)
        if r["kind"] == "none":
            found = r["contamination"]
            yield Goal(f"{what}, found", "≤ 0.5 %", f"{found:.2%}", found <= 0.005)
