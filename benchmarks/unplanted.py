"""Bad rows that nobody planted: questionnaires faked on instruction, proteins under intervention.

`python -m benchmarks unplanted FOLDER` reads `answers-*.csv.gz` and `sachs.csv.gz` from a folder
(public tables; none is part of this repository). Good rows are cut into thirds: one teaches the
structure, one is fitted with 0, 5 and 10 % of bad rows among it, one judges. It prints the loss in
nats a row against counting the good rows, of counting and of the default, and what is distrusted.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.held_out import PRIOR, count_rows, score_rows
from benchmarks.real_tables import STRUCTURES, learn_greedily, learn_tree
from robustbn import BayesianNetwork, RobustEstimator

SHARES = (0.0, 0.05, 0.1)
MOST_COLUMNS = 40
SEEDS = 3


def read_tables(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each table, the codes of its good rows, and those of its bad ones."""
    for path in sorted(folder.glob("answers-*.csv.gz")):
        frame = pd.read_csv(path)
        side = frame.pop(frame.columns[-1])
        yield path.name.removesuffix(".csv.gz"), *_divide(frame, side == "H", side == "D")
    frame = pd.read_csv(folder / "sachs.csv.gz")
    side = frame.pop("intervened")
    for protein in sorted(set(side) - {"none"}):
        yield f"sachs {protein}", *_divide(frame, side == "none", side == protein)


def _divide(frame: pd.DataFrame, is_good: Any, is_bad: Any) -> tuple[Any, Any]:
    codes = np.stack([pd.factorize(frame[c], sort=True)[0] for c in frame], axis=1)
    codes = (codes - codes.min(axis=0)).astype(np.uint8)  # missing values are a state
    codes = codes[:, codes.max(axis=0) > 0][:, :MOST_COLUMNS]
    return codes[is_good], codes[is_bad]


def measure(good: Any, bad: Any, structure: str, eps: float, seed: int) -> dict[str, float]:
    """Return what counting and the default lose, and the share of good and bad rows distrusted."""
    rng = np.random.default_rng(seed)
    cards = (np.maximum(good.max(axis=0), bad.max(axis=0)) + 1).tolist()
    teach, fitted, judges = np.array_split(good[rng.permutation(len(good))], 3)
    learned = learn_tree(teach, cards)[1] if structure == "tree" else learn_greedily(teach, cards)
    names = [f"x{i}" for i in range(len(cards))]
    network = BayesianNetwork(
        {names[i]: [names[p] for p in learned[i]] for i in range(len(cards))},
        {names[i]: list(range(cards[i])) for i in range(len(cards))},
    )
    n_bad = min(round(eps * len(fitted) / (1 - eps)), len(bad))
    rows = np.concatenate([fitted, bad[rng.permutation(len(bad))[:n_bad]]])
    is_bad = np.arange(len(rows)) >= len(fitted)
    fit = RobustEstimator(network, random_state=seed, n_threads=1, **PRIOR).fit(rows)
    floor = score_rows(count_rows(network, fitted), judges)
    weights = fit.row_weights_
    return {
        "counting": floor - score_rows(count_rows(network, rows), judges),
        "ours": floor - score_rows(fit.network_, judges),
        "lost": float(1 - weights[~is_bad].mean()),
        "caught": float(1 - weights[is_bad].mean()) if n_bad else 0.0,
    }


def main(arguments: list[str]) -> None:
    """Fit every table, and print what is lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks unplanted", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the tables")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    print("table, structure, bad: counting loses, ours loses, good rows lost, bad rows caught")
    worst = 0.0
    for name, good, bad in read_tables(chosen.folder):
        for structure in STRUCTURES:
            for eps in SHARES:
                found = [measure(good, bad, structure, eps, seed) for seed in range(SEEDS)]
                mean = {key: float(np.mean([each[key] for each in found])) for key in found[0]}
                worst = max(worst, *(each["ours"] - each["counting"] for each in found))
                print(f"{name}, {structure}, {eps:.0%}:", *(f"{mean[k]:.3f}" for k in mean))
    print(f"worse than counting by {worst:.3f} nats at the most")
