"""Which numbers matter: each halved and doubled, on scenes not used to choose it.

The networks are published ones and draws that no other benchmark makes; of some, edges are left out
(`-6`: six of them), so that good rows are not the network's. The adversaries work on rows and are
not those of the gallery. Swept is what stands at the top of a module under a name in capitals; what
the judge has learned is not: `python -m benchmarks judge` makes and measures it.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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

OF_DEFAULT = (
    "conductor", "copies", "density_filter", "edges", "gain", "groups", "judge", "look",
    "multiplicity", "search", "settle", "study", "ties",
)  # fmt: skip
OF_CORE = (
    "CEILING",
    "DAMPING",
    "LEAST_SAMPLE",
    "ROWS_A_PARAMETER",
)  # which decide the default, too
OF_ORACLES = ("algorithm1", "baselines", "descent", "que", "spectral", "weighting")
NO_CHOICE = ("AS_GOOD", "ALONE", "OWN", "ANY_NUMBER", "BISECTIONS", "MAD_TO_SD")  # never otherwise
LINE = re.compile(r"([A-Z][A-Z0-9_]*(?:, [A-Z][A-Z0-9_]*)*)(?:: [^=]+)? = .*?(?:  # (.*))?")
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


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A number, or a tuple of them, at the top of a module; `comment` says its unit and reason."""

    module: str
    name: str
    value: Any
    comment: str


def find_numbers(package: str) -> list[Number]:
    """Return the numbers at the top of all modules of a package."""
    found = []
    for each in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        module = import_module(each.name)
        for match in filter(None, map(LINE.fullmatch, inspect.getsource(module).splitlines())):
            for name in match[1].split(", "):
                number = Number(
                    each.name.rpartition(".")[2], name, vars(module)[name], match[2] or ""
                )
                if all(type(v) in (int, float) for v in _each(number.value)):
                    found.append(number)
    return found


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def vary(value: Any, factor: float) -> Any:
    """Return a number times a factor; one near 1 is moved away from 1, or towards it."""
    if isinstance(value, tuple):
        return tuple(vary(v, factor) for v in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    return 1 + (value - 1) * factor if 0.5 < value <= 1.5 and value != 1 else value * factor


@contextmanager
def replaced(number: Number, value: Any) -> Iterator[None]:
    """Set a number in all modules that hold it, and in functions that take it by default."""
    with ExitStack() as patches:
        for module in [m for name, m in sys.modules.items() if name.startswith("robustbn.")]:
            if vars(module).get(number.name) is not number.value:
                continue
            patches.enter_context(patch.object(module, number.name, value))
            for function in filter(inspect.isfunction, list(vars(module).values())):
                if function.__module__ == module.__name__:
                    given, named = function.__defaults__ or (), function.__kwdefaults__ or {}
                    given = tuple(value if v is number.value else v for v in given)
                    named = {k: value if v is number.value else v for k, v in named.items()}
                    patches.enter_context(patch.object(function, "__defaults__", given))
                    patches.enter_context(patch.object(function, "__kwdefaults__", named))
        yield


# --- fits -----------------------------------------------------------------------------------------


def fit_default(scene: Scene, method: str) -> float:
    """Return R of the default method."""
    data = RowsInMemory(scene.network, scene.rows)
    fit, _ = fit_robustly(scene.network, data, None, RobustConfig(), lambda _: None)
    return _distance(scene.network, fit.counts) / scene.floor


def fit_oracle(scene: Scene, method: str) -> float:
    """Return R of an oracle, told the contamination."""
    rows, (which, _, way) = load_rows(scene.network, scene.rows), method.partition(" ")
    if which == "trimmed":
        found = trim_by_likelihood(rows, EPS, lambda _: None)
    else:
        settings = {} if which == "ransac" else {"trim": way == "trim"}
        follow = follow_paper if way == "paper" else follow_jointly
        found = follow(rows, partial(ORACLES[which], **settings), EPS, lambda _: None)
    layout = scene.network.layout
    pi = layout.sum_configurations(rows.count(found.weights))[layout.config_of_cell]
    return _distance(scene.network, pi * found.q) / scene.floor


def method_of(number: Number) -> str:
    """Return the oracle that shows what a number does, and how it is used."""
    if number.module == "algorithm1":
        stage = number.name.partition("_")[0]
        return {"TRIMMED": "trimmed", "JOINT": "que"}.get(stage, "spectral paper")
    return {"baselines": "ransac", "weighting": "spectral trim"}.get(number.module, number.module)


# --- the sweep ------------------------------------------------------------------------------------


def run(settings: Settings) -> Report:
    """Halve and double every number."""
    n_rows = N_ROWS // 5 if settings.quick else N_ROWS
    of_default = [n for n in find_numbers("robustbn._learn") if n.module in OF_DEFAULT]
    of_default += [n for n in find_numbers("robustbn._core") if n.name in OF_CORE]
    of_oracles = [n for n in find_numbers("robustbn._means") if n.module in OF_ORACLES]
    tables, records = [], []
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.simplefilter("ignore")
        for title, fit, numbers, networks in (
            ("The default method", fit_default, of_default, NETWORKS),
            ("The oracles", fit_oracle, of_oracles, SMALL),
        ):
            found = list(_sweep(fit, numbers, build_scenes(networks, n_rows, 0)))
            tables.append(_tabulate(title, found))
            records += found
    return Report(
        "sensitivity",
        "Sensitivity: which numbers matter",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        tuple(tables),
        tuple(records),
    )


def _sweep(
    fit: Callable[[Scene, str], float], numbers: list[Number], scenes: list[Scene]
) -> Iterator[dict[str, Any]]:
    defaults: dict[str, NDArray[np.float64]] = {}
    for number in (each for each in numbers if each.name not in NO_CHOICE):
        method = method_of(number) if fit is fit_oracle else ""
        if method not in defaults:
            defaults[method] = np.array([fit(s, method) for s in scenes])
        for value in (vary(number.value, 0.5), vary(number.value, 2.0)):
            start, default = time.perf_counter(), defaults[method]
            with replaced(number, value):
                found = np.array([fit(s, method) for s in scenes])
            change = np.abs(np.log(found / default)).mean()
            worst = int((found / default).argmax())
            say(
                f"{number.module}.{number.name} = {_say(value)}: R {found.mean():.3f}, {change:.2%}"
            )
            yield {
                "name": f"{number.module}.{number.name}",
                "comment": number.comment,
                "default": number.value,
                "value": value,
                "R default": float(default.mean()),
                "R": float(found.mean()),
                "change": float(change),
                "worst": float(found[worst] / default[worst] - 1),
                "worst scene": scenes[worst].name,
                "wall_s": time.perf_counter() - start,
            }


def _tabulate(title: str, records: list[dict[str, Any]]) -> Table:
    header = (
        "number",
        "what it is",
        "default",
        "value",
        "R",
        "change",
        "worst",
        "where",
        "matters",
    )
    lines = tuple(
        (
            r["name"],
            r["comment"],
            _say(r["default"]),
            _say(r["value"]),
            f"{r['R']:.3f}",
            f"{r['change']:.1%}",
            f"{r['worst']:+.0%}",
            r["worst scene"],
            "yes" if r["change"] > MATTERS or r["worst"] > HARMS else "",
        )
        for r in records
    )
    return Table(title, header, lines, n_words=2)


def _say(value: Any) -> str:
    return ", ".join(f"{v:g}" for v in _each(value))
