"""One cell of the causes: rows spoilt in a known way, and what the fit says had happened.

Ways to spoil are operations on rows, in several sizes; "another population" alone is drawn, from
the same network with six tables in ten drawn anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import Record, code_version
from benchmarks.held_out import PRIOR
from benchmarks.real_tables import build_case
from benchmarks.scenes import build_network
from robustbn import BayesianNetwork, RobustEstimator, sample

Codes = NDArray[np.uint8]
Columns = NDArray[np.intp]
Spoil = Callable[["Good"], tuple[Codes, Columns]]
LEAST_APART = 0.15  # total variation between the columns of a swap: nearer ones look alike


@dataclass(frozen=True)
class CauseCell:
    """Rows of a network or a table, spoilt in one way.

    Parameters
    ----------
    source : a network as in `scenes.build_network`, or "table:NAME:STRUCTURE".
    way : a key of `WAYS`, or "clean".
    """

    source: str
    way: str
    eps: float
    n_rows: int
    seed: int
    experiment: str = "causes"


@dataclass(frozen=True, eq=False)
class Good:
    """Good rows, those of them that are to be spoilt, and what an adversary may need."""

    rows: Codes
    chosen: Columns
    cards: NDArray[np.int64]
    rng: np.random.Generator
    network: BayesianNetwork

    @property
    def spoilt(self) -> Codes:
        """The chosen rows, a copy."""
        return self.rows[self.chosen].copy()

    def pick(self, *sizes: float) -> Columns:
        """Return columns at random, as many as one of the sizes says."""
        size = int(self.rng.choice(sizes))
        return self.rng.permutation(len(self.cards))[: max(size, 2)]

    def share_of(self, column: int) -> NDArray[np.float64]:
        """Return the share of good rows in each state of a column."""
        return np.bincount(self.rows[:, column], minlength=self.cards[column]) / len(self.rows)

    def any_states(self) -> Codes:
        """Return rows of any state, equally often."""
        drawn = self.rng.random((len(self.chosen), len(self.cards))) * self.cards
        return drawn.astype(self.rows.dtype)


# --- ways -----------------------------------------------------------------------------------------


def join_wrongly(good: Good) -> tuple[Codes, Columns]:
    """Take a fifth to a half of the columns from another row."""
    d, spoilt = len(good.cards), good.spoilt
    columns = good.pick(0.2 * d, 0.35 * d, 0.5 * d)
    others = good.rng.integers(0, len(good.rows), len(spoilt))
    spoilt[:, columns] = good.rows[np.ix_(others, columns)]
    return spoilt, columns


def stick(good: Good) -> tuple[Codes, Columns]:
    """Two columns, or a sixth or a third of them, show one state that less than half show."""
    d, spoilt = len(good.cards), good.spoilt
    columns = good.pick(2, d // 6, d // 3)
    for c in columns:
        spoilt[:, c] = good.rng.choice(np.flatnonzero(good.share_of(c) < 0.5))
    return spoilt, columns


def shift(good: Good) -> tuple[Codes, Columns]:
    """Values stand one column on or back: in all columns, or in a third of them."""
    d, spoilt = len(good.cards), good.spoilt
    length = d if good.rng.random() < 0.5 else max(4, d // 3)
    first = int(good.rng.integers(0, d - length + 1))
    columns = np.arange(first, first + length)
    step = int(good.rng.choice([1, -1]))
    spoilt[:, columns] = np.roll(spoilt[:, columns], step, axis=1) % good.cards[columns]
    return spoilt, columns


def swap_columns(good: Good) -> tuple[Codes, Columns]:
    """One, two or an eighth of the columns are swapped with another of as many states."""
    d, spoilt, used = len(good.cards), good.spoilt, set[int]()
    wanted = int(good.rng.choice([1, 2, max(2, d // 8)]))
    pairs = [(a, b) for a in range(d) for b in range(a) if good.cards[a] == good.cards[b]]
    good.rng.shuffle(pairs)
    for a, b in pairs:
        apart = 0.5 * np.abs(good.share_of(a) - good.share_of(b)).sum()
        if len(used) < 2 * wanted and not {a, b} & used and apart >= LEAST_APART:
            spoilt[:, [a, b]] = spoilt[:, [b, a]]
            used |= {a, b}
    return spoilt, np.array(sorted(used), np.intp)


def swap_labels(good: Good) -> tuple[Codes, Columns]:
    """In two columns, a quarter or all of them labels are off by one, reversed, or at random."""
    d, spoilt = len(good.cards), good.spoilt
    columns = good.pick(2, d // 4, d)
    mode = 0 if len(columns) == d else int(good.rng.integers(3))
    for c in columns:
        every = np.arange(good.cards[c])
        names = [np.roll(every, -1), every[::-1], good.rng.permutation(every)][mode]
        spoilt[:, c] = (names if (names != every).any() else np.roll(every, -1))[spoilt[:, c]]
    return spoilt, columns


def add_noise(good: Good) -> tuple[Codes, Columns]:
    """Every cell, or half of the cells, shows any state."""
    hit = good.rng.random((len(good.chosen), len(good.cards))) < good.rng.choice([1.0, 1.0, 0.5])
    return np.where(hit, good.any_states(), good.spoilt), np.arange(len(good.cards))


def copy_rows(good: Good) -> tuple[Codes, Columns]:
    """One, three or eight good rows again and again, exactly or with 5 % of the cells random."""
    templates = good.rows[good.rng.choice(len(good.rows), good.rng.choice([1, 3, 8]))]
    copies = templates[good.rng.integers(0, len(templates), len(good.chosen))]
    hit = good.rng.random(copies.shape) < good.rng.choice([0.0, 0.05])
    return np.where(hit, good.any_states(), copies), np.arange(len(good.cards))


def fill_defaults(good: Good) -> tuple[Codes, Columns]:
    """Half of the columns show a default, in 60 % of the rows or from a place of a form on."""
    d, spoilt = len(good.cards), good.spoilt
    columns = good.pick(max(3, d // 2))
    start = good.rng.integers(0, len(columns), len(spoilt))
    is_form = good.rng.random() < 0.5
    for place, c in enumerate(columns):
        hit = place >= start if is_form else good.rng.random(len(spoilt)) < 0.6
        spoilt[hit, c] = good.rng.integers(good.cards[c])
    return spoilt, columns


def draw_others(good: Good) -> tuple[Codes, Columns]:
    """Rows of the same network with six tables in ten drawn anew."""
    tables = {}
    for node, table in good.network.cpts.items():
        n_states = table.shape[-1]
        anew = good.rng.dirichlet(np.full(n_states, 0.7), size=table.size // n_states)
        tables[node] = anew.reshape(table.shape) if good.rng.random() < 0.6 else np.array(table)
    seed = int(good.rng.integers(2**31))
    drawn = sample(good.network.with_cpts(tables), len(good.chosen), seed)
    return drawn, np.arange(len(good.cards))


WAYS: dict[str, Spoil] = {
    "wrong join": join_wrongly,
    "stuck columns": stick,
    "shifted columns": shift,
    "swapped columns": swap_columns,
    "swapped labels": swap_labels,
    "noise": add_noise,
    "copies": copy_rows,
    "defaults": fill_defaults,
    "another population": draw_others,
}


# --- one cell -------------------------------------------------------------------------------------


@cache
def version_of_causes() -> str:
    """Return a hash of the package and of the files that decide what is measured here."""
    names = ("cause_scenes", "real_tables")
    return code_version(*(f"benchmarks/{name}.py" for name in names))


def measure_cause(cell: CauseCell) -> Record:
    """Fit one cell and ask for the causes of its kinds of bad rows.

    `names` are those of the kinds, None for one without; `precision` and `recall` are those of the
    columns that the right name speaks of. Which side of a wrong join came from elsewhere cannot be
    known: the better one counts.
    """
    rng = np.random.default_rng([cell.seed, zlib.crc32(f"{cell.source} {cell.way}".encode())])
    network, rows = _draw_rows(cell, rng)
    is_bad, columns = np.zeros(len(rows), bool), np.arange(0)
    if cell.way != "clean":
        chosen = rng.choice(len(rows), round(cell.eps * len(rows)), replace=False)
        cards = np.array(network.layout.cards)
        spoilt, columns = WAYS[cell.way](Good(rows, chosen, cards, rng, network))
        rows, is_bad[chosen] = rows.copy(), True
        rows[chosen] = spoilt
    structure = network.with_cpts(None)
    fit = RobustEstimator(structure, random_state=cell.seed, n_threads=1, **PRIOR).fit(rows)
    kinds, weights = fit.kinds_, fit.row_weights_
    record: Record = {
        "n_nodes": network.n_nodes,
        "n_spoilt": len(columns),
        "caught": 1 - float(weights[is_bad].mean()) if is_bad.any() else 0.0,
        "lost": 1 - float(weights[~is_bad].mean()),
        "sizes": [kind.n_rows for kind in kinds],
        "names": [None if kind.cause is None else kind.cause.name for kind in kinds],
        "confidence": [None if kind.cause is None else kind.cause.confidence for kind in kinds],
    }
    right = [k.cause for k in kinds if k.cause is not None and k.cause.name == cell.way]
    if right:
        planted = {network.nodes[c] for c in columns}
        record |= score_columns(set(right[0].columns), planted, set(network.nodes), cell.way)
    return record


def _draw_rows(cell: CauseCell, rng: np.random.Generator) -> tuple[BayesianNetwork, Codes]:
    kind, _, rest = cell.source.partition(":")
    if kind == "table":
        case = build_case(*rest.rsplit(":", 1))
        return case.network, case.rows[: cell.n_rows]
    network = build_network(cell.source, cell.seed)
    return network, sample(network, cell.n_rows, int(rng.integers(2**31)))


def score_columns(named: set[str], planted: set[str], every: set[str], way: str) -> Record:
    """Return precision and recall of the columns that a cause names."""
    sides = [named, every - named] if way == "wrong join" and named != every else [named]
    shared = [
        (len(side & planted) / max(len(side), 1), len(side & planted) / len(planted))
        for side in sides
    ]
    precision, recall = max(shared, key=sum)
    return {"precision": precision, "recall": recall}
