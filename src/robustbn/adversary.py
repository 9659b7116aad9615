"""Corrupt rows on purpose: adversaries to test an estimator against.

Each adversary is a function `(Scene) -> rows`, in `KINDS`. Far ones are easy to see and do great
harm to counting; near ones stay close to the network; the last group cannot be told from good rows
by any method; there an estimator should at least do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.calls import naming_the_nearest, require_network
from robustbn._core.layout import Codes
from robustbn._networks.random_networks import random_network
from robustbn._rows.draw import sample
from robustbn._rows.memory import load_rows
from robustbn._tables.coded import as_codes
from robustbn.exceptions import SettingError
from robustbn.network import BayesianNetwork

__all__ = ["KINDS", "Scene", "corrupt"]


@naming_the_nearest
def corrupt(
    X: ArrayLike,
    network: BayesianNetwork,
    kind: str,
    eps: float,
    random_state: Any = None,
    *,
    mode: str = "replace",
    strength: float | None = None,
) -> tuple[Codes, NDArray[np.bool_]]:
    """Return a corrupted copy of the rows, and which of its rows are corrupted.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Good rows, as codes, drawn from `network`.
    network : BayesianNetwork
        The network of the good rows, with its tables; adversaries know it.
    kind : str
        The adversary, one of `KINDS`.
    eps : float
        The share of the returned rows that are corrupted; for "subtract" and "starve", the share of
        the good rows that are removed.
    random_state : int, Generator or None, default=None
        The seed; None for other rows each time.
    mode : {"replace", "add"}, default="replace"
        Whether bad rows replace good ones (the paper's strong model) or are added to them (Huber's
        model).
    strength : float or None, default=None
        How far the adversary goes, in its own unit; see each adversary.

    Examples
    --------
    >>> import robustbn
    >>> from robustbn.adversary import corrupt
    >>> alarm = robustbn.example_network("alarm")
    >>> X = robustbn.sample(alarm, 1000, random_state=0)
    >>> dirty, is_bad = corrupt(X, alarm, "product", eps=0.1, random_state=0)
    >>> dirty.shape, int(is_bad.sum())
    ((1000, 37), 100)
    """
    require_network(network, "corrupt(X, network, kind, eps)", X)
    if kind not in KINDS:
        raise SettingError(f"Unknown kind of adversary {kind!r}; choose one of {', '.join(KINDS)}.")
    if not 0 <= eps < 1:
        raise SettingError(f"eps is a share of rows, from 0 to below 1; found {eps!r}.")
    if mode not in ("replace", "add"):
        raise SettingError(f"Unknown mode {mode!r}; choose replace or add.")
    codes = as_codes(X, network)
    rng = np.random.default_rng(random_state)
    n = len(codes)
    n_bad = round(eps * n) if mode == "replace" else round(eps * n / (1 - eps))
    scene = Scene(codes, network, n_bad, eps, strength, rng)
    if kind in TAKERS:
        keep = np.sort(TAKERS[kind](scene))
        return codes[keep], np.zeros(len(keep), bool)
    bad = KINDS[kind](scene) if n_bad else codes[:0]
    if mode == "replace":
        rows, is_bad = codes.copy(), np.zeros(n, bool)
        where = rng.choice(n, n_bad, replace=False)
        rows[where], is_bad[where] = bad, True
        return rows, is_bad
    order = rng.permutation(n + n_bad)
    return np.vstack([codes, bad])[order], (np.arange(n + n_bad) >= n)[order]


@dataclass(frozen=True)
class Scene:
    """What an adversary knows: the good rows, the network, how many rows it may corrupt.

    An adversary is a function from a scene to `n_bad` rows of codes; `KINDS` lists them.

    Parameters
    ----------
    codes : array of shape (N, d)
        The good rows, as codes.
    network : BayesianNetwork
        The network of the good rows.
    n_bad : int
        The number of rows to make.
    eps : float
        The share of corrupted rows.
    strength : float or None
        How far to go; None for the adversary's own default.
    rng : numpy.random.Generator
        The source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> import robustbn
    >>> from robustbn.adversary import KINDS, Scene
    >>> alarm = robustbn.example_network("alarm")
    >>> good = robustbn.sample(alarm, 100, random_state=0)
    >>> scene = Scene(good, alarm, 10, 0.1, None, np.random.default_rng(0))
    >>> KINDS["product"](scene).shape
    (10, 37)
    """

    codes: Codes
    network: BayesianNetwork
    n_bad: int
    eps: float
    strength: float | None
    rng: np.random.Generator

    def strength_or(self, usual: float) -> float:
        """Return the strength, or a default if none was given.

        Parameters
        ----------
        usual : float
            The default.
        """
        return usual if self.strength is None else self.strength

    def draw(self, tables: NDArray[np.float64] | Mapping[str, ArrayLike]) -> Codes:
        """Draw `n_bad` rows from the network with other tables.

        Parameters
        ----------
        tables : dict or array
            The tables, as `with_cpts` accepts them.
        """
        return sample(self.network.with_cpts(tables), self.n_bad, self.rng)

    def draw_good(self, n: int | None = None) -> Codes:
        """Draw rows from the network itself.

        Parameters
        ----------
        n : int or None, default=None
            The number of rows; by default `n_bad`.
        """
        return sample(self.network, self.n_bad if n is None else n, self.rng)


# --- far ------------------------------------------------------------------------------------------


def product(scene: Scene) -> Codes:
    """Independent nodes, each with a random distribution."""
    columns = [
        scene.rng.choice(card, scene.n_bad, p=scene.rng.dirichlet(np.ones(card)))
        for card in scene.network.layout.cards
    ]
    return np.stack(columns, axis=1).astype(scene.network.layout.code_dtype)


def other_network(scene: Scene) -> Codes:
    """Rows of another network: a random tree with random tables."""
    tree = random_network(
        "tree",
        scene.network.n_nodes,
        cards=list(scene.network.layout.cards),
        random_state=scene.rng,
    )
    return sample(tree, scene.n_bad, scene.rng)


def repeated_row(scene: Scene) -> Codes:
    """One row of unlikely values, over and over."""
    network = scene.network
    row = np.zeros(network.n_nodes, network.layout.code_dtype)
    for node in network.topological_order:
        i = network.nodes.index(node)
        *parents, _ = network.layout.families[i]
        row[i] = np.argmin(network.cpts[node][tuple(row[p] for p in parents)])
    return np.tile(row, (scene.n_bad, 1))


def flipped(scene: Scene) -> Codes:
    """Every table with its states in reverse order."""
    tables = {n: t[..., ::-1] for n, t in scene.network.cpts.items()}
    return scene.draw(tables)


def shifted(scene: Scene) -> Codes:
    """In every configuration `strength` (0.3) of probability moves from the likeliest state."""
    size = scene.strength_or(0.3)
    tables = {}
    for node, table in scene.network.cpts.items():
        card = table.shape[-1]
        rows = np.array(table.reshape(-1, card))
        every = np.arange(len(rows))
        likeliest = rows.argmax(axis=1)
        moved = np.minimum(size, rows[every, likeliest]) if card > 1 else 0.0
        rows[every, likeliest] -= moved
        target = (likeliest + scene.rng.integers(1, max(card, 2), len(rows))) % card
        rows[every, target] += moved
        tables[node] = rows.reshape(table.shape)
    return scene.draw(tables)


def flipped_nodes(scene: Scene) -> Codes:
    """Good rows with `strength` (the square root of d) nodes changed at random in each."""
    rows = scene.draw_good()
    d = scene.network.n_nodes
    n_flipped = min(d, round(scene.strength_or(np.sqrt(d))))
    chosen = scene.rng.random(rows.shape).argpartition(n_flipped - 1, axis=1)[:, :n_flipped]
    return _change_states(scene, rows, chosen)


def comonotone(scene: Scene) -> Codes:
    """Right marginals, one uniform number behind all nodes of a row."""
    u = scene.rng.random(scene.n_bad)
    columns = []
    for i, card in enumerate(scene.network.layout.cards):
        share = np.bincount(scene.codes[:, i], minlength=card) / len(scene.codes)
        columns.append(np.searchsorted(np.cumsum(share)[:-1], u, side="right"))
    return np.stack(columns, axis=1).astype(scene.network.layout.code_dtype)


def misjoined(scene: Scene) -> Codes:
    """Good rows of which a random half of the columns comes from another row."""
    left, right = scene.draw_good(), scene.draw_good()
    half = scene.rng.permutation(scene.network.n_nodes)[: scene.network.n_nodes // 2]
    left[:, half] = right[:, half]
    return left


def blocks(scene: Scene) -> Codes:
    """Each bad row has one of `strength` (5) blocks of nodes changed: many directions at once."""
    n_blocks = max(1, round(scene.strength_or(5)))
    rows = scene.draw_good()
    parts = np.array_split(scene.rng.permutation(scene.network.n_nodes), n_blocks)
    owner = scene.rng.integers(0, n_blocks, scene.n_bad)
    for b, part in enumerate(parts):
        mine = np.flatnonzero(owner == b)
        rows[mine] = _change_states(scene, rows[mine], np.tile(part, (len(mine), 1)))
    return rows


# --- near -----------------------------------------------------------------------------------------


def tilt(scene: Scene) -> Codes:
    """Tables tilted so that the mean of a random direction moves by `strength` (2) deviations."""
    return _tilted(scene, scene.strength_or(2.0))


def clones(scene: Scene) -> Codes:
    """`strength` (100) typical rows, each copied many times."""
    n_distinct = max(1, round(scene.strength_or(100)))
    return scene.draw_good(n_distinct)[scene.rng.integers(0, n_distinct, scene.n_bad)]


def decoy(scene: Scene) -> Codes:
    """Half of the bad rows are an obvious product, the other half a tilt hidden behind it."""
    first = replace(scene, n_bad=scene.n_bad // 2)
    second = replace(scene, n_bad=scene.n_bad - first.n_bad)
    return np.vstack([product(first), _tilted(second, 2.0)])


def flood(scene: Scene) -> Codes:
    """Rows that all show one rare configuration, its node in its least likely state."""
    network, layout = scene.network, scene.network.layout
    counts = layout.sum_configurations(load_rows(network, scene.codes).count()) / len(scene.codes)
    has_parents = np.repeat([len(f) > 1 for f in layout.families], np.diff(layout.config_start))
    rare = np.flatnonzero((counts > 0.3 * scene.eps / 100) & (counts < 0.05) & has_parents)
    k = int(scene.rng.choice(rare if len(rare) else len(counts)))
    i, parents, codes, shows = _find_configuration(scene, k)
    pool = scene.codes[shows] if shows.any() else scene.codes
    rows = pool[scene.rng.integers(0, len(pool), scene.n_bad)].copy()
    rows[:, parents] = codes
    rows[:, i] = network.cpts[network.nodes[i]][tuple(codes)].argmin()
    return rows


def adaptive(scene: Scene) -> Codes:
    """Knows the filter: a tilt whose excess variance stays just inside what it allows."""
    m, n = scene.network.layout.n_free, len(scene.codes)
    allowed = 2 * np.sqrt(m / n) + m / n
    return _tilted(scene, float(np.sqrt(allowed / max(scene.eps * (1 - scene.eps), 1e-9))))


def mixture(scene: Scene) -> Codes:
    """Four kinds at once: another network, a product, one repeated row, shifted tables."""
    kinds = (other_network, product, repeated_row, shifted)
    sizes = [len(part) for part in np.array_split(np.arange(scene.n_bad), len(kinds))]
    return np.vstack(
        [f(replace(scene, n_bad=s, strength=None)) for f, s in zip(kinds, sizes, strict=True)]
    )


def veiled(scene: Scene) -> Codes:
    """Break a few tables and one configuration, and copy rows: as if an edge were missing.

    Found by a search against the default (`python -m benchmarks learned_adversary`). `strength`
    (65) percent of the rows show one configuration with its node in its least likely state; a
    quarter of all tables is tilted towards unlikely states; of n rows n^0.65 are different.
    """
    share = scene.strength_or(65.0) / 100
    network, layout, rng = scene.network, scene.network.layout, scene.rng
    is_tilted = rng.permutation(layout.n_nodes) < max(1, round(layout.n_nodes / 4))
    lean = 0.4 * -np.log(np.maximum(network.probabilities, 1e-3))
    lean += 0.6 * rng.normal(size=layout.n_cells)
    direction = _standardised(network, lean * np.repeat(is_tilted, np.diff(layout.cell_start)))
    rows = _draw_along(scene, 1.8 * direction * np.sqrt(layout.n_nodes / is_tilted.sum()))
    rows = rows[rng.integers(0, max(1, round(scene.n_bad**0.65)), scene.n_bad)]
    i = int(rng.integers(layout.n_nodes))
    *parents, _ = layout.families[i]
    shown = scene.draw_good(1)[0]
    is_forced = rng.random(scene.n_bad) < share
    for parent in parents:
        rows[is_forced, parent] = shown[parent]
    table = network.cpts[network.nodes[i]][tuple(shown[p] for p in parents)]
    rows[is_forced, i] = int(table.argmin())
    return rows


# --- not to be told from good rows ----------------------------------------------------------------


def lawful(scene: Scene) -> Codes:
    """Put a root into its least likely state, the rest as good rows have it: all rows are lawful.

    The table is then exactly one that the network with another table of that root would give, at a
    distance of eps (1 - p): whoever is right about clean rows is wrong by so much.
    """
    network = scene.network
    roots = [node for node in network.nodes if not network.parents[node]]
    root = min(roots, key=lambda node: float(network.cpts[node].min()))
    forced = np.zeros(len(network.states[root]))
    forced[int(network.cpts[root].argmin())] = 1.0
    return scene.draw({**network.cpts, root: forced})


def tail(scene: Scene) -> Codes:
    """Rows that the network could have produced, from one tail of a random direction."""
    pool = scene.draw_good(max(len(scene.codes), 2 * scene.n_bad))
    return pool[_along(scene, pool).argsort()[-scene.n_bad :]] if scene.n_bad else pool[:0]


def subtract(scene: Scene) -> NDArray[np.intp]:
    """Take away the good rows in one tail of a random direction."""
    return _along(scene, scene.codes).argsort()[: len(scene.codes) - scene.n_bad]


def starve(scene: Scene) -> NDArray[np.intp]:
    """Take away the rows that show one configuration: the likeliest the budget can empty.

    Where it can empty none, it thins the rarest one as far as it goes.
    """
    network, layout = scene.network, scene.network.layout
    counts = layout.sum_configurations(load_rows(network, scene.codes).count())
    can_empty = (counts > 0) & (counts <= scene.n_bad)
    if can_empty.any():
        k = int(np.where(can_empty, counts, -1).argmax())
    else:
        k = int(np.where(counts > 0, counts, np.inf).argmin())
    *_, shows = _find_configuration(scene, k)
    taken = scene.rng.permutation(np.flatnonzero(shows))[: scene.n_bad]
    return np.delete(np.arange(len(scene.codes)), taken)


TAKERS: dict[str, Callable[[Scene], NDArray[np.intp]]] = {"subtract": subtract, "starve": starve}
KINDS: dict[str, Callable[[Scene], NDArray[Any]]] = {
    "product": product,
    "network": other_network,
    "repeated": repeated_row,
    "flipped": flipped,
    "shift": shifted,
    "rowflip": flipped_nodes,
    "comonotone": comonotone,
    "misjoined": misjoined,
    "blocks": blocks,
    "mixture": mixture,
    "tilt": tilt,
    "clones": clones,
    "decoy": decoy,
    "flood": flood,
    "adaptive": adaptive,
    "veil": veiled,
    "lawful": lawful,
    "tail": tail,
    **TAKERS,
}


def _find_configuration(scene: Scene, k: int) -> tuple[int, list[int], Codes, NDArray[np.bool_]]:
    """Return the node of a configuration, its parents and their codes, and which rows show it."""
    layout = scene.network.layout
    i = layout.node_of_configuration(k)
    *parents, _ = layout.families[i]
    place = np.unravel_index(k - int(layout.config_start[i]), [layout.cards[p] for p in parents])
    codes: Codes = np.array(place).astype(layout.code_dtype)
    return i, parents, codes, (scene.codes[:, parents] == codes).all(axis=1)


def _change_states(scene: Scene, rows: Codes, chosen: NDArray[np.intp]) -> Codes:
    """Give the chosen nodes of each row another state, uniform among the others."""
    cards = np.array(scene.network.layout.cards)[chosen]
    step = scene.rng.integers(1, np.maximum(cards, 2))
    every = np.arange(len(rows))[:, None]
    rows[every, chosen] = ((rows[every, chosen] + step) % cards).astype(
        scene.network.layout.code_dtype
    )
    return rows


def _direction(scene: Scene) -> NDArray[np.float64]:
    """Return a random table h whose sum over a row's cells has mean 0 and variance 1."""
    h = scene.rng.normal(size=scene.network.layout.n_cells)
    return _standardised(scene.network, h)


def _standardised(network: BayesianNetwork, h: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a table with mean 0 and variance 1 / d in every configuration where it varies."""
    layout, p = network.layout, network.probabilities
    of = layout.config_of_cell
    h = h - layout.sum_configurations(p * h)[of]
    deviation = np.sqrt(layout.sum_configurations(p * h * h))[of]
    scaled: NDArray[np.float64] = h / (
        np.where(deviation > 1e-6, deviation, np.inf) * np.sqrt(layout.n_nodes)
    )
    return scaled


def _along(scene: Scene, rows: Codes) -> NDArray[np.floating]:
    return load_rows(scene.network, rows).project(_direction(scene)[:, None])[:, 0]


def _tilted(scene: Scene, z: float) -> Codes:
    return _draw_along(scene, z * _direction(scene))


def _draw_along(scene: Scene, direction: NDArray[np.float64]) -> Codes:
    """Draw rows from the tables times the exponential of a direction."""
    layout = scene.network.layout
    tilted = scene.network.probabilities * np.exp(direction)
    return scene.draw(tilted / layout.sum_configurations(tilted)[layout.config_of_cell])
