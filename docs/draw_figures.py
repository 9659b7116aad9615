"""Draw the figures of the pages, and print the numbers they show: `make figures`.

Small, the same to the last byte whenever nothing has changed, and readable in grey.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator
from robustbn._learn.look import find_spectrum
from robustbn._rows.memory import load_rows
from robustbn.simulate import corrupt

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent / "figures"
GOOD, BAD, OTHER = "#0072B2", "#D55E00", "#555555"
LINES = {
    "counting": (BAD, "s-"),
    "trimming, told 10 %": (OTHER, "^--"),
    "robustbn": (GOOD, "o-"),
    "the good rows alone": ("k", ":"),
}
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
N_ROWS = 20_000


def draw_counting(folder: Path) -> dict[str, Any]:
    """Draw how far counting and trimming are off, against the share of bad rows."""
    alarm = robustbn.example_network("alarm")
    good = robustbn.sample(alarm, N_ROWS, random_state=0)
    lines: dict[str, list[float]] = {name: [] for name in LINES}
    for eps in SHARES:
        rows, is_bad = corrupt(good, alarm, "rowflip", eps, random_state=1)
        fits = {
            "counting": MaximumLikelihoodEstimator(alarm).fit(rows),
            "trimming, told 10 %": RobustEstimator(alarm, 0.1, method="trimmed").fit(rows),
            "robustbn": RobustEstimator(alarm, random_state=0).fit(rows),
            "the good rows alone": MaximumLikelihoodEstimator(alarm).fit(rows[~is_bad]),
        }
        for name, fit in fits.items():
            lines[name].append(round(float(robustbn.total_variation(alarm, fit.network_)), 4))
    figure, axes = plt.subplots(figsize=(5.2, 3.2))
    for name, values in lines.items():
        colour, line = LINES[name]
        axes.plot([100 * eps for eps in SHARES], values, line, color=colour, label=name)
    axes.set(xlabel="bad rows, %", ylabel="distance from the truth", ylim=(0, None))
    axes.legend(frameon=False)
    save(figure, folder / "counting.png")  # for the front page: package indices show no SVG
    save(figure, folder / "counting.svg")
    return {"shares": SHARES, **lines}


def draw_filter(folder: Path) -> dict[str, Any]:
    """Draw the scores of rows along the direction in which they vary most."""
    tree = robustbn.random_network("tree", 50, random_state=1)
    good = robustbn.sample(tree, N_ROWS, random_state=0)
    rows, is_bad = corrupt(good, tree, "shift", 0.1, random_state=1)
    loaded, trust = load_rows(tree, rows), np.ones(len(rows), np.float32)
    seen = find_spectrum(loaded, trust)
    scores = loaded.project(seen.table[:, :1])[:, 0]
    drawn = load_rows(tree, robustbn.sample(tree.with_cpts(seen.q), N_ROWS, random_state=2))
    expected = drawn.project(seen.table[:, :1])[:, 0]
    sign = np.sign(np.median(scores[is_bad]))
    figure, axes = plt.subplots(figsize=(5.2, 3.2))
    bins = np.linspace(-6, 10, 65)
    parts, colours = [sign * scores[~is_bad], sign * scores[is_bad]], [GOOD, BAD]
    axes.hist(parts, bins, stacked=True, color=colours, label=["good rows", "bad rows"])
    heights, _ = np.histogram(sign * expected, bins)
    axes.stairs(heights, bins, color="k", label="rows drawn from the tables")
    axes.set(xlabel="score along the direction of most variance", ylabel="rows")
    axes.legend(frameon=False)
    save(figure, folder / "filter.svg")
    clean = find_spectrum(drawn, np.ones(drawn.n_rows, np.float32)).top
    return {"top of the rows": round(seen.top, 3), "top of drawn rows": round(clean, 3)}


def draw_evidence(folder: Path) -> dict[str, Any]:
    """Draw what each row says for the model of bad rows, all cells together."""
    tree = robustbn.random_network("tree", 50, random_state=1)
    good = robustbn.sample(tree, N_ROWS, random_state=0)
    rows, is_bad = corrupt(good, tree, "shift", 0.1, random_state=1)
    fit = RobustEstimator(tree, random_state=0).fit(rows)
    log_odds = fit.result_.learned.model.log_odds(load_rows(tree, rows))
    figure, axes = plt.subplots(figsize=(5.2, 3.2))
    bins = np.linspace(-25, 25, 76)
    parts = [np.clip(log_odds[side], -25, 25) for side in (~is_bad, is_bad)]
    axes.hist(parts, bins, stacked=True, color=[GOOD, BAD], label=["good rows", "bad rows"])
    axes.axvline(0, color="k", linestyle=":")
    axes.set(xlabel="log-odds of being bad", ylabel="rows")
    axes.legend(frameon=False)
    save(figure, folder / "evidence.svg")
    is_distrusted = fit.row_weights_ < 0.5
    caught, lost = is_distrusted[is_bad].mean(), is_distrusted[~is_bad].mean()
    shares = {"caught": round(float(caught), 4), "good rows lost": round(float(lost), 4)}
    return {**shares, "kinds": len(fit.kinds_)}


def draw_misfit(folder: Path) -> dict[str, Any]:
    """Draw what the spectrum says of missing edges and of bad rows, and what is distrusted."""
    alarm = robustbn.example_network("alarm")
    rows = robustbn.sample(alarm, N_ROWS, random_state=1)
    parents = {node: list(alarm.parents[node]) for node in alarm.nodes}
    for node in ("CVP", "PCWP", "HR"):
        parents[node] = []
    thinned = BayesianNetwork(parents, alarm.states)
    spoilt, _ = corrupt(rows, alarm, "network", 0.05, random_state=1)
    cases = {
        "the network is right": (alarm.with_cpts(None), rows),
        "5 % of bad rows": (alarm.with_cpts(None), spoilt),
        "three edges missing": (thinned, rows),
        "three edges missing,\n5 % of bad rows": (thinned, spoilt),
    }
    tops, shares = [], []
    for network, X in cases.values():
        loaded = load_rows(network, X)
        tops.append(find_spectrum(loaded, np.ones(len(X), np.float32)).top)
        shares.append(100 * RobustEstimator(network, random_state=0).fit(X).contamination_)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.6), sharey=True)
    names = list(cases)
    left.barh(names, tops, color=OTHER)
    left.axvline(1, color="k", linestyle=":")
    left.set(xlabel="top eigenvalue: something is odd")
    right.barh(names, shares, color=BAD)
    right.set(xlabel="rows that are distrusted, %")
    left.invert_yaxis()
    save(figure, folder / "misfit.svg")
    plain = [name.replace("\n", " ") for name in names]
    return {
        "cases": plain,
        "tops": np.round(tops, 3).tolist(),
        "distrusted, %": np.round(shares, 2).tolist(),
    }


def draw_theorem(folder: Path) -> dict[str, Any]:
    """Draw what the theorem asks of the rarest configuration, and what ALARM has."""
    eps = np.geomspace(1e-4, 0.3, 200)
    alarm = robustbn.example_network("alarm")
    pi = robustbn.distance.configuration_probabilities(alarm, n_draws=1_000_000, random_state=0)
    figure, axes = plt.subplots(figsize=(5.2, 3.2))
    for balance, line in ((0.25, "-"), (0.05, "--")):
        wanted = (eps * np.sqrt(np.log(1 / eps))) ** (2 / 3) * balance ** (-1 / 3)
        axes.plot(100 * eps, wanted, line, color=GOOD, label=f"asked for, balance c = {balance}")
    middle, rare = float(np.median(pi)), float(np.quantile(pi, 0.1))
    axes.axhline(middle, color=BAD, label="ALARM: half are rarer")
    axes.axhline(max(rare, 1e-6), color=BAD, linestyle=":", label="ALARM: a tenth is rarer")
    axes.set(xscale="log", yscale="log", xlabel="bad rows, %", ylim=(1e-6, 2))
    axes.set(ylabel="probability of the rarest\nconfiguration")
    axes.legend(frameon=False, fontsize=8)
    save(figure, folder / "theorem.svg")
    at = float((0.1 * np.sqrt(np.log(10))) ** (2 / 3) * 0.25 ** (-1 / 3))
    return {
        "alpha asked for at eps = 0.1, c = 0.25": round(at, 3),
        "ALARM, median": round(middle, 4),
    }


def save(figure: Any, path: Path) -> None:
    """Write a small figure without a date, readable on light and dark pages."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    undated = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    figure.savefig(path, metadata=undated, facecolor="white", dpi=200)
    plt.close(figure)


def draw_all(folder: Path = FOLDER) -> dict[str, Any]:
    """Draw all figures into a folder; return the numbers that they show."""
    folder.mkdir(exist_ok=True)
    mpl.rcParams.update({"svg.hashsalt": "robustbn", "svg.fonttype": "path", "font.size": 9})
    numbers = {
        "counting": draw_counting(folder),
        "filter": draw_filter(folder),
        "evidence": draw_evidence(folder),
        "misfit": draw_misfit(folder),
        "theorem": draw_theorem(folder),
    }
    text = json.dumps(numbers, indent=1)
    (folder / "numbers.json").write_text(text + "\n", encoding="utf-8")
    return numbers


if __name__ == "__main__":
    print(json.dumps(draw_all(), indent=1))
