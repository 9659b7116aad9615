"""An adversary that learns: attacks described by a few numbers, and a search for the worst of them.

An attack makes rows in five ways at once: from tilted tables, by picking lawful rows out of a tail,
by forcing one configuration, as an obvious decoy, by flipping nodes; it may copy what it makes, and
choose which good rows it replaces. Every number lies between 0 and 1. The search knows the network
and the estimator: it fits, measures the true error, and goes where that grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbn import BayesianNetwork, sample
from robustbn._core.protocols import Vector
from robustbn._rows.memory import load_rows

Codes = NDArray[np.uint8]

FARTHEST = 6.0  # standard deviations that the tables are tilted by
MOST_FLIPS = 0.6  # share of the nodes of a row
GENES = ("push", "rarity", "breadth", "flood", "lawful", "decoy", "flips", "copies", "theft")
OFTEN_OFF = ("flood", "lawful", "decoy", "flips", "copies", "theft")


@dataclass(frozen=True)
class Attack:
    """A way to make bad rows; all numbers from 0 to 1.

    Parameters
    ----------
    push : how far tables are tilted, in units of six deviations of the tilt.
    rarity : from 0, towards likely states, over 0.5, anywhere, to 1, towards unlikely ones.
    breadth : share of the nodes whose tables are tilted.
    flood : share of the rows that are forced into one configuration, its node least likely.
    lawful : share of the rows that the network could have made, from the tail of the tilt.
    decoy : share of the rows with independent nodes, easy to see.
    flips : how many nodes of a row are changed.
    copies : from 0, every row different, to 1, all the same.
    theft : from 0, random rows are replaced, to 1, those at the other end of the tilt.
    seed : of all that is drawn.
    """

    push: float = 0.5
    rarity: float = 0.5
    breadth: float = 0.5
    flood: float = 0.0
    lawful: float = 0.0
    decoy: float = 0.0
    flips: float = 0.0
    copies: float = 0.0
    theft: float = 0.0
    seed: int = 0


class Poisoned(NamedTuple):
    """Rows after an attack, and which of them it made."""

    rows: Codes
    is_bad: NDArray[np.bool_]


# --- rows -----------------------------------------------------------------------------------------


def find_tilt(network: BayesianNetwork, attack: Attack) -> Vector:
    """Return the table along which the attack pushes, of variance 1 over good rows; shape (M,)."""
    layout, p = network.layout, network.probabilities
    rng = np.random.default_rng([attack.seed, 1])
    lean = 2 * attack.rarity - 1
    unlikely = -np.log(np.maximum(p, 1e-3))
    tilt = (1 - abs(lean)) * rng.normal(size=layout.n_cells) + lean * unlikely
    is_tilted = rng.permutation(layout.n_nodes) < max(1, round(attack.breadth * layout.n_nodes))
    tilt *= np.repeat(is_tilted, np.diff(layout.cell_start))
    return scale_tilt(network, tilt)


def scale_tilt(network: BayesianNetwork, tilt: Vector) -> Vector:
    """Return the tilt with mean 0 in every configuration, and variance 1 over good rows."""
    layout, p, of = network.layout, network.probabilities, network.layout.config_of_cell
    tilt = tilt - layout.sum_configurations(p * tilt)[of]
    deviation = np.sqrt(layout.sum_configurations(p * tilt * tilt))
    by_node = np.maximum.reduceat(deviation, layout.config_start[:-1])
    scaled: Vector = tilt / np.where(deviation > 1e-6, deviation, np.inf)[of]
    return scaled / np.sqrt(max(int((by_node > 1e-6).sum()), 1))


def poison(
    network: BayesianNetwork,
    good: Codes,
    attack: Attack,
    eps: float,
    tilt: Vector | None = None,
) -> Poisoned:
    """Replace a share of the good rows by those of an attack.

    Parameters
    ----------
    tilt : in place of the attack's own; shape (M,).
    """
    rng = np.random.default_rng([attack.seed, 2])
    tilt = find_tilt(network, attack) if tilt is None else tilt
    n, n_bad = len(good), round(eps * len(good))
    n_decoys = round(attack.decoy * n_bad)
    bad = _make_rows(network, attack, tilt, n_bad - n_decoys, n, rng)
    cards = np.array(network.layout.cards)
    decoys = (rng.random((n_decoys, len(cards))) * cards).astype(good.dtype)
    along = load_rows(network, good).project(tilt[:, None])[:, 0]
    order = attack.theft * along + (1 - attack.theft) * rng.normal(size=n)
    where = order.argsort()[:n_bad]
    rows, is_bad = good.copy(), np.zeros(n, bool)
    rows[where], is_bad[where] = np.vstack([bad, decoys]), True
    return Poisoned(rows, is_bad)


def _make_rows(
    network: BayesianNetwork,
    attack: Attack,
    tilt: Vector,
    n_rows: int,
    n_pool: int,
    rng: np.random.Generator,
) -> Codes:
    layout = network.layout
    n_lawful = round(attack.lawful * n_rows)
    tilted = network.probabilities * np.exp(FARTHEST * attack.push * tilt)
    tilted /= layout.sum_configurations(tilted)[layout.config_of_cell]
    rows = sample(network.with_cpts(tilted), n_rows - n_lawful, rng)
    if attack.copies and len(rows):
        n_different = max(1, round(len(rows) ** (1 - attack.copies)))
        rows = rows[rng.integers(0, n_different, len(rows))]
    if n_lawful:
        pool = sample(network, n_pool, rng)
        along = load_rows(network, pool).project(tilt[:, None])[:, 0]
        rows = np.vstack([rows, pool[along.argsort()[-n_lawful:]]])
    rows = _flood(network, attack, rows, rng)
    flipped = rng.random(rows.shape) < MOST_FLIPS * attack.flips
    cards = np.array(layout.cards)
    other = (rows + rng.integers(1, np.maximum(cards, 2), rows.shape)) % cards
    mixed: Codes = np.where(flipped, other, rows).astype(layout.code_dtype)
    return mixed


def _flood(
    network: BayesianNetwork, attack: Attack, rows: Codes, rng: np.random.Generator
) -> Codes:
    i = int(rng.integers(network.n_nodes))
    *parents, _ = network.layout.families[i]
    shown = sample(network, 1, rng)[0]
    table = network.cpts[network.nodes[i]][tuple(shown[p] for p in parents)]
    is_hit, flooded = rng.random(len(rows)) < attack.flood, rows.copy()
    for parent in parents:
        flooded[is_hit, parent] = shown[parent]
    flooded[is_hit, i] = int(table.argmin())
    return flooded


# --- the search -----------------------------------------------------------------------------------


class Tried(NamedTuple):
    """An attack, the tilt if it is not its own, and the error that it caused."""

    error: float
    attack: Attack
    tilt: Vector | None
    stage: str


def search(
    network: BayesianNetwork,
    harm: Callable[[Attack, Vector | None], float],
    n_tries: int,
    seed: int,
    *,
    may_steal: bool,
) -> Iterator[Tried]:
    """Yield every attack that is tried: at random, then near the worst, then up the gradient.

    Parameters
    ----------
    harm : error that an attack causes; called once a try.
    n_tries : two fifths of them at random, two fifths from the four worst on, the rest steps along
        a gradient of the worst one's tilt, by simultaneous perturbation.
    may_steal : whether the attack may choose which rows it replaces.
    """
    rng = np.random.default_rng(seed)
    worst: list[Tried] = []
    n_random, n_climbs = 2 * n_tries // 5, 2 * n_tries // 5
    for k in range(n_random + n_climbs):
        is_climb = k >= n_random and worst
        start = worst[int(rng.integers(len(worst)))].attack if is_climb else None
        attack = draw_attack(rng) if start is None else change(start, rng)
        attack = attack if may_steal else replace(attack, theft=0.0)
        tried = Tried(harm(attack, None), attack, None, "climb" if is_climb else "random")
        worst = sorted([*worst, tried], key=lambda t: -t.error)[:4]
        yield tried
    yield from _climb_gradient(network, harm, worst[0], n_tries - n_random - n_climbs, rng)


def draw_attack(rng: np.random.Generator) -> Attack:
    """Return a random attack; half of the ways are left out each time."""
    genes = {name: float(rng.random()) for name in GENES}
    for name in OFTEN_OFF:
        if rng.random() < 0.5:
            genes[name] = 0.0
    return Attack(**genes, seed=int(rng.integers(2**31)))


def change(attack: Attack, rng: np.random.Generator) -> Attack:
    """Return an attack near another: some numbers moved, now and then a way left out."""
    genes = {}
    for name in GENES:
        value = getattr(attack, name)
        if rng.random() < 0.4:
            value = float(np.clip(value + 0.2 * rng.normal(), 0, 1))
        if name in OFTEN_OFF and rng.random() < 0.05:
            value = 0.0
        genes[name] = value
    seed = int(rng.integers(2**31)) if rng.random() < 0.1 else attack.seed
    return Attack(**genes, seed=seed)


def _climb_gradient(
    network: BayesianNetwork,
    harm: Callable[[Attack, Vector | None], float],
    start: Tried,
    n_tries: int,
    rng: np.random.Generator,
) -> Iterator[Tried]:
    """Follow the gradient of the error in the tilt of every cell; two tries a step."""
    attack, size = start.attack, 0.3
    tilt = find_tilt(network, attack)
    for _ in range(n_tries // 2):
        step = rng.choice([-1.0, 1.0], len(tilt)) * np.abs(tilt).max()
        sides = [scale_tilt(network, tilt + sign * size * step) for sign in (1, -1)]
        errors = [harm(attack, side) for side in sides]
        for side, error in zip(sides, errors, strict=True):
            yield Tried(error, attack, side, "gradient")
        better = int(np.argmax(errors))
        if errors[better] > start.error:
            start, tilt = Tried(errors[better], attack, sides[better], "gradient"), sides[better]
        else:
            size *= 0.8
