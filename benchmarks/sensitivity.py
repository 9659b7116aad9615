"""Which numbers of `Tuning` matter: each halved and doubled, on scenes not used to choose it.

The networks are published ones and draws that no other benchmark makes; of some, edges are left out
(`-6`: six of them), so that good rows are not the network's. The adversaries work on rows and are
not those of the gallery.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.measure import Report, Settings, Table, installed_versions, say
from benchmarks.scenes import Codes, build_network
from robustbn import BayesianNetwork, sample, total_variation
from robustbn._core.config import RobustConfig
from robustbn._core.expansion import normalise_counts
from robustbn._core.tuning import TUNING, Tuning
from robustbn._learn.conductor import fit_robustly
from robustbn._means import ORACLES
from robustbn._means.algorithm1 import follow_jointly, follow_paper, trim_by_likelihood
from robustbn._rows.memory import RowsInMemory, load_rows

EPS = 0.08
N_ROWS = 6_000
N_DRAWS = 20_000
NETWORKS = (
    "bif:insurance", "categorical:24:160", "tree:70", "bif:insurance -6", "graph:25:160 -8",
)  # fmt: skip
SMALL = ("graph:15:60", "categorical:12:50")  # for the oracles, which are slow
MATTERS = 0.02  # a change of R by more than this share, on average over the scenes
HARMS = 0.1  # or in one of them

AROUND_ONE = (
    "spectrum_obvious", "split_edge", "split_growth", "copies_slack", "copies_runaway",
)  # fmt: skip
BELOW_ONE = ("descent_better", "descent_shrink", "paper_shrink", "que_halved")
OF_ORACLES = ("oracle", "paper", "joint", "que", "spectral", "descent", "ransac", "trimmed")
OF_WORDS = ("where", "states")  # decide what is said or read: R does not depend on them
ARGUMENTS = {
    "oracle_allowance": "allowance",
    "oracle_step": "step_cap",
    "oracle_steps": "max_steps",
    "que_width": "width",
    "ransac_trials": "n_trials",
}
NOTE = (
    "R = TV(fit, truth) / TV(counts of the good rows, truth), mean over the scenes; `change` is "
    "the mean of |log(R / R with the default)|, `worst` the largest rise of R in one scene. A "
    f"number matters when the mean change is above {MATTERS:.0%} or a scene is harmed by more "
    f"than {HARMS:.0%}. {EPS:.0%} of {N_ROWS:,} rows are bad."
)


# --- scenes ---------------------------------------------------------------------------------------


def stick(rows: Codes, network: BayesianNetwork, rng: np.random.Generator) -> Codes:
    """Stick a third of the columns at the rarest state that good rows show."""
    rows = rows.copy()
    for i in rng.permutation(rows.shape[1])[: max(2, rows.shape[1] // 3)]:
        states, seen = np.unique(rows[:, i], return_counts=True)
        rows[:, i] = states[seen.argmin()]
    return rows


def template(rows: Codes, network: BayesianNetwork, rng: np.random.Generator) -> Codes:
    """Repeat three good rows over and over, one cell in twenty changed."""
    cards = np.array(network.layout.cards)
    drawn = rows[rng.choice(len(rows), 3)][rng.integers(0, 3, len(rows))]
    noise = (rng.random(drawn.shape) * cards).astype(np.uint8)
    return np.where(rng.random(drawn.shape) < 0.05, noise, drawn)


def rotate(rows: Codes, network: BayesianNetwork, rng: np.random.Generator) -> Codes:
    """Put every value into the column to the right of its own."""
    return (np.roll(rows, 1, axis=1) % np.array(network.layout.cards)).astype(np.uint8)


def shuffle(rows: Codes, network: BayesianNetwork, rng: np.random.Generator) -> Codes:
    """Shuffle every column by itself: right marginals, nothing else."""
    return np.stack([rng.permutation(column) for column in rows.T], axis=1)


def scatter(rows: Codes, network: BayesianNetwork, rng: np.random.Generator) -> Codes:
    """Replace a third of each row's cells, other ones in every row, by any state."""
    noise = (rng.random(rows.shape) * np.array(network.layout.cards)).astype(np.uint8)
    return np.where(rng.random(rows.shape) < 1 / 3, noise, rows)


def combine(rows: Codes, network: BayesianNetwork, rng: np.random.Generator) -> Codes:
    """Stick columns of one half of the rows, rotate the other half."""
    half = len(rows) // 2
    return np.vstack([stick(rows[:half], network, rng), rotate(rows[half:], network, rng)])


MAKERS: dict[str, Callable[[Codes, BayesianNetwork, np.random.Generator], Codes]] = {
    "templates": template,
    "shuffled": shuffle,
    "scattered": scatter,
    "two kinds": combine,
}


@dataclass(frozen=True, eq=False)
class Scene:
    """Rows, the network they come from, and what the good ones alone give."""

    name: str
    network: BayesianNetwork
    rows: Codes
    floor: float


def build_scenes(names: tuple[str, ...], n_rows: int, seed: int) -> list[Scene]:
    """Return every network with every adversary, and with clean rows."""
    scenes = []
    for name in names:
        truth, network = build_truth(name, seed)
        for adversary in ("clean", *MAKERS):
            rng = np.random.default_rng(seed + 7)
            rows = good = sample(truth, n_rows, seed + 3)
            if adversary in MAKERS:
                bad = rng.permutation(n_rows)[: round(EPS * n_rows)]
                rows, good = rows.copy(), np.delete(rows, bad, axis=0)
                rows[bad] = MAKERS[adversary](rows[bad], network, rng)
            floor = _distance(network, load_rows(network, good).count())
            scenes.append(Scene(f"{name} {adversary}", network, rows, floor))
    return scenes


def build_truth(name: str, seed: int) -> tuple[BayesianNetwork, BayesianNetwork]:
    """Return where rows come from, and the network to fit, with the tables that it should get."""
    name, _, less = name.partition(" -")
    truth = build_network(name, seed + 77)
    if not less:
        return truth, truth
    rng = np.random.default_rng(seed + 11)
    edges = [(p, c) for c in truth.nodes for p in truth.parents[c]]
    gone = {edges[i] for i in rng.permutation(len(edges))[: int(less)]}
    parents = {c: [p for p in truth.parents[c] if (p, c) not in gone] for c in truth.nodes}
    fitted = BayesianNetwork(parents, truth.states)
    counts = load_rows(fitted, sample(truth, 400_000, seed + 13)).count()
    return truth, fitted.with_cpts(normalise_counts(fitted.layout, counts))


def _distance(network: BayesianNetwork, counts: NDArray[np.float64]) -> float:
    fitted = network.with_cpts(normalise_counts(network.layout, counts))
    return total_variation(network, fitted, n_draws=N_DRAWS)


# --- fits -----------------------------------------------------------------------------------------


def fit_default(scene: Scene, tuning: Tuning, name: str) -> float:
    """Return R of the default method; `name` says which number differs."""
    data, config = RowsInMemory(scene.network, scene.rows), RobustConfig(tuning=tuning)
    fit, _ = fit_robustly(scene.network, data, None, config, lambda _: None)
    return _distance(scene.network, fit.counts) / scene.floor


def fit_oracle(scene: Scene, tuning: Tuning, name: str) -> float:
    """Return R of the oracle that a number belongs to, told the contamination."""
    rows, stage = load_rows(scene.network, scene.rows), name.partition("_")[0]
    files = ("algorithm1", "baselines", "descent", "que", "spectral", "weighting")
    modules = [import_module(f"robustbn._means.{file}") for file in files]
    with _patched(modules, tuning):
        if stage == "trimmed":
            found = trim_by_likelihood(rows, EPS, lambda _: None)
        else:
            which = stage if stage in ORACLES else "que" if stage == "joint" else "spectral"
            settings: dict[str, Any] = {} if which == "ransac" else {"trim": stage == "oracle"}
            if name in ARGUMENTS:
                settings[ARGUMENTS[name]] = getattr(tuning, name)
            follow = follow_paper if stage == "paper" else follow_jointly
            found = follow(rows, partial(ORACLES[which], **settings), EPS, lambda _: None)
    layout = scene.network.layout
    pi = layout.sum_configurations(rows.count(found.weights))[layout.config_of_cell]
    return _distance(scene.network, pi * found.q) / scene.floor


class _patched:  # noqa: N801 - reads as a word at the place of use
    """Modules that read their numbers from `TUNING`, given others."""

    def __init__(self, modules: list[Any], tuning: Tuning) -> None:
        self._patches = [patch.object(module, "TUNING", tuning) for module in modules]

    def __enter__(self) -> None:
        for each in self._patches:
            each.start()

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()


def vary(name: str, factor: float) -> Any:
    """Return a number times a factor; numbers near 1 are moved away from 1, or towards it."""
    value = getattr(TUNING, name)
    if name in AROUND_ONE:
        return 1 + (value - 1) * factor
    if name in BELOW_ONE:
        return 1 - (1 - value) * factor
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


# --- the sweep ------------------------------------------------------------------------------------


def run(settings: Settings) -> Report:
    """Halve and double every number."""
    n_rows = N_ROWS // 5 if settings.quick else N_ROWS
    records = []
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.simplefilter("ignore")
        for fit, is_wanted, scenes in (
            (fit_default, _is_of_default, build_scenes(NETWORKS, n_rows, 0)),
            (fit_oracle, _is_of_oracle, build_scenes(SMALL, n_rows, 0)),
        ):
            defaults: dict[str, NDArray[np.float64]] = {}
            for name in (each.name for each in fields(TUNING) if is_wanted(each.name)):
                stage = name.partition("_")[0] if fit is fit_oracle else ""
                if stage not in defaults:
                    defaults[stage] = np.array([fit(s, TUNING, name) for s in scenes])
                for factor in (0.5, 2.0):
                    records.append(_sweep(fit, scenes, name, factor, defaults[stage]))
    return Report(
        "sensitivity",
        "Sensitivity: which numbers matter",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        tuple(_tabulate(records)),
        tuple(records),
    )


def _is_of_default(name: str) -> bool:
    return name.partition("_")[0] not in (*OF_ORACLES, *OF_WORDS)


def _is_of_oracle(name: str) -> bool:
    return name.partition("_")[0] in OF_ORACLES


def _sweep(
    fit: Callable[[Scene, Tuning, str], float],
    scenes: list[Scene],
    name: str,
    factor: float,
    default: NDArray[np.float64],
) -> dict[str, Any]:
    start, value = time.perf_counter(), vary(name, factor)
    found = np.array([fit(s, replace(TUNING, **{name: value}), name) for s in scenes])
    change = np.abs(np.log(found / default))
    worst = int((found / default).argmax())
    record = {
        "name": name,
        "default": getattr(TUNING, name),
        "value": value,
        "R default": float(default.mean()),
        "R": float(found.mean()),
        "change": float(change.mean()),
        "worst": float(found[worst] / default[worst] - 1),
        "worst scene": scenes[worst].name,
        "wall_s": time.perf_counter() - start,
    }
    say(f"{name} = {value:g}: R {record['R']:.3f}, change {record['change']:.2%}")
    return record


def _tabulate(records: list[dict[str, Any]]) -> list[Table]:
    reasons = {name: (unit, reason) for name, _, unit, reason in TUNING.describe()}
    header = ("number", "unit", "default", "value", "R", "change", "worst", "where", "matters")
    tables = []
    for title, wanted in (("The default method", False), ("The oracles", True)):
        lines = [
            (
                r["name"],
                reasons[r["name"]][0],
                f"{r['default']:g}",
                f"{r['value']:g}",
                f"{r['R']:.3f}",
                f"{r['change']:.1%}",
                f"{r['worst']:+.0%}",
                r["worst scene"],
                "yes" if r["change"] > MATTERS or r["worst"] > HARMS else "",
            )
            for r in records
            if _is_of_oracle(r["name"]) == wanted
        ]
        tables.append(Table(title, header, tuple(lines), n_words=2))
    return tables
