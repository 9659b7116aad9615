"""The specification of `sweep_cells`: true values of rows, column by column, in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import CellModel, States, Swept, WrongCells
from robustbn._core.protocols import Vector
from robustbn._rows.kernels import GOLDEN, scramble

VOTED = 0.02  # probability: a cell that is less likely to be wrong has no likely other state
NUMBERS_A_CELL = 1024  # draws of a cell, one a sweep


@dataclass(frozen=True, eq=False)
class _Own:
    """What each row counts in the tables, which is taken out."""

    weight: float  # of that count
    configs: NDArray[np.uint64]  # its configurations; shape (n, d)
    states: States  # its states; shape (n, d)


def sweep_cells(
    model: CellModel,
    seen: States,
    truth: States | None = None,
    *,
    groups: NDArray[np.int32] | None = None,
    weights: Vector | None = None,
    own: float = 1.0,
    calm: Vector | float = 0.0,
    key: int = 0,
    first_row: int = 0,
    n_sweeps: int = 1,
    n_burn: int = 0,
    least: float = np.inf,
    asks_gains: bool = True,
    asks_wrong: bool = False,
    n_threads: int | None = None,
) -> Swept:
    """Draw the true value of every cell given all others, several times; see `Kernels`.

    O(n d r) time for each sweep, r the states that are tried. A cell that shows its true value and
    is wrong with a probability of less than `calm` is not drawn; rows of such cells are swept no
    more. Cells are named whose likeliest other state has at least the probability `least`; gains
    are needed only if `asks_gains`.
    """
    kind, d = seen.dtype, model.n_nodes
    seen = seen.astype(np.int32)
    truth = _begin(model, seen if truth is None else truth.astype(np.int32))
    n, n_kept, least_sure = len(seen), n_sweeps - n_burn, np.broadcast_to(calm, d)
    weights = np.ones(n) if weights is None else weights
    configs = np.stack([_configs(model, i, truth) for i in range(d)], axis=1)
    begun = truth.copy()
    votes: dict[tuple[int, int, int], float] = {}
    wrong, counts = np.zeros((n, d)), np.zeros(len(model.counts.cells))
    gains, n_wrong, active = np.zeros(d), np.zeros(d), np.arange(n)
    for s in (s for s in range(n_sweeps) if len(active)):
        quiet, drawn = np.ones(len(active), bool), []
        for j in range(d):
            rates = model.rates[0 if groups is None else groups[active], j]
            known = _Own(own, configs[active], begun[active])
            states, p, gain = _weigh(model, j, seen[active], truth[active], rates, known)
            config = _configs(model, j, truth[active])
            first = np.uint64((first_row * d + j) * NUMBERS_A_CELL + s + 1)
            number = active.astype(np.uint64) * np.uint64(d * NUMBERS_A_CELL) + first
            drawn_at = scramble(np.uint64(key) + number * GOLDEN) >> np.uint64(11)
            u = drawn_at.astype(np.float64) * 2.0**-53
            at_seen = (p * (states == seen[active, j, None])).sum(axis=1)
            stays = (truth[active, j] == seen[active, j]) & (1 - at_seen < least_sure[j])
            quiet &= stays
            picked = np.where(stays, seen[active, j], _pick(states, p, u, truth[active, j]))
            truth[active, j] = picked
            drawn.append((states, p, at_seen, config, gain))
        n_left = n_sweeps - max(s, n_burn)
        times = np.where(quiet, n_left, float(s >= n_burn))
        for j, (states, p, at_seen, config, gain) in enumerate(drawn):
            wrong[active, j] += times * (1 - at_seen)
            kept = times * weights[active] / n_kept
            gains[j] += float(kept @ gain)
            is_shown = seen[active, j] < model.cards[j]
            n_wrong[j] += float(kept @ ((1 - at_seen) * is_shown))
            by_weight = p * kept[:, None]
            if not model.is_hashed[j]:
                first = model.counts.cell_start[j]
                cells = config[:, None].astype(np.int64) * model.cards[j] + np.maximum(states, 0)
                np.add.at(counts, first + cells, np.where(states >= 0, by_weight, 0))
            is_loud = ~quiet | (s > 0)  # the others are counted, and no more
            for r in np.flatnonzero((times > 0) & (1 - at_seen >= VOTED) & is_shown & is_loud):
                for v, q in zip(states[r].tolist(), p[r].tolist(), strict=True):
                    place = (int(active[r]), j, v)
                    votes[place] = votes.get(place, 0.0) + float(times[r]) * q
        active = active[~quiet]
    shares = (wrong / n_kept).astype(np.float32) if asks_wrong else None
    named = _name(votes, seen, n_kept, least)
    return Swept(truth.astype(kind), counts, gains, n_wrong, named, shares)


def _begin(model: CellModel, truth: States) -> States:
    """Return true states in which those that are missing are the commonest of their column."""
    begun = truth.copy()
    for j, card in enumerate(model.cards):
        counts = model.counts.states[model.state_start[j] : model.state_start[j + 1]]
        begun[truth[:, j] == card, j] = int(counts.argmax())
    return begun


def _name(
    votes: dict[tuple[int, int, int], float], seen: States, n_kept: int, least: float
) -> WrongCells:
    """Return the cells whose likeliest other state has a probability, row by row."""
    best: dict[tuple[int, int], tuple[float, int]] = {}
    for (row, j, v), total in sorted(votes.items()):
        if v >= 0 and v != seen[row, j] and total > best.get((row, j), (0.0, 0))[0]:
            best[row, j] = total, v
    found = [
        (row, j, int(seen[row, j]), v, total / n_kept)
        for (row, j), (total, v) in sorted(best.items())
        if total / n_kept >= least
    ]
    kinds = (np.int64, np.int64, np.int32, np.int32, np.float32)
    lines = np.array(found).reshape(-1, 5)
    return WrongCells(*(lines[:, k].astype(kind) for k, kind in enumerate(kinds)))


def _configs(model: CellModel, i: int, truth: States) -> NDArray[np.uint64]:
    """Return the configuration of a node's parents in each row, modulo 2^64; shape (n,)."""
    at = np.zeros(len(truth), np.uint64)
    for p in model.parents[i]:
        at = at * np.uint64(model.cards[p]) + truth[:, p].astype(np.uint64)
    return at


def _look_up(
    model: CellModel, i: int, configs: NDArray[np.uint64], states: States
) -> tuple[Vector, Vector]:
    """Return the counts of cells, and those of their configurations."""
    counts = model.counts
    cells = slice(counts.cell_start[i], counts.cell_start[i + 1])
    totals = slice(counts.config_start[i], counts.config_start[i + 1])
    keys = configs * np.uint64(model.cards[i]) + np.maximum(states, 0).astype(np.uint64)
    if not model.is_hashed[i]:
        return counts.cells[cells][keys.astype(np.int64)], counts.configs[totals][
            configs.astype(np.int64)
        ]
    return (
        _find(counts.cell_keys[cells], counts.cells[cells], keys),
        _find(counts.config_keys[totals], counts.configs[totals], configs),
    )


def _find(keys: NDArray[np.uint64], values: Vector, wanted: NDArray[np.uint64]) -> Vector:
    """Return the values of keys, which increase; 0 where there is none."""
    if not len(keys):
        return np.zeros(wanted.shape)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0.0)


def _base(model: CellModel, i: int, states: States, own: _Own) -> Vector:
    """Return what smooths each state's count: its share of all rows, times the concentration."""
    counts = model.counts.states[model.state_start[i] : model.state_start[i + 1]]
    is_own = states == own.states[:, i].reshape(-1, *[1] * (states.ndim - 1))
    count = np.maximum(counts[np.maximum(states, 0)] - own.weight * is_own, 0)
    more = model.novelty[i]
    total = max(float(counts.sum()) - own.weight, 0.0) + more
    base: Vector = model.concentration[i] * (count + more / model.cards[i]) / total
    return base


def _weigh(
    model: CellModel, j: int, seen: States, truth: States, rates: Vector, own: _Own
) -> tuple[States, Vector, Vector]:
    """Return the states that are tried, their probabilities, and what errors bring in nats.

    Shapes (n, k), (n, k) and (n,); a state of -1 fills a line and has probability 0.
    """
    states, n = _list_states(model, j, seen, truth), len(truth)
    configs = np.repeat(_configs(model, j, truth)[:, None], states.shape[1], axis=1)
    count = _look_up(model, j, configs, states)[0]
    is_own = (configs == own.configs[:, j, None]) & (states == own.states[:, j, None])
    count = np.where(is_own, np.maximum(count - own.weight, 0), count)
    p = np.where(states >= 0, count + _base(model, j, states, own), 0)
    for i in (i for i, parents in enumerate(model.parents) if j in parents):
        tried = np.repeat(truth[:, None, :], states.shape[1], axis=1)
        tried[:, :, j] = np.maximum(states, 0)
        at = _configs(model, i, tried.reshape(-1, truth.shape[1])).reshape(n, -1)
        state = np.repeat(truth[:, i, None], states.shape[1], axis=1)
        count, total = _look_up(model, i, at, state)
        is_there = at == own.configs[:, i, None]
        total = np.where(is_there, np.maximum(total - own.weight, 0), total)
        is_own = is_there & (state == own.states[:, i, None])
        count = np.where(is_own, np.maximum(count - own.weight, 0), count)
        p = p * (count + _base(model, i, state, own)) / (total + model.concentration[i])
        p /= p.max(axis=1, keepdims=True)
    is_hole = seen[:, j] == model.cards[j]
    is_seen = states == seen[:, j, None]
    alone = np.where(is_hole, 1, (p * is_seen).sum(axis=1))
    rates = np.broadcast_to(rates, n)[:, None]
    shown = rates / model.cards[j] + np.where(is_seen, 1 - rates, 0)
    p = np.where(is_hole[:, None], p, p * shown)
    total = p.sum(axis=1)
    gain = np.where(is_hole, 0, np.log(total) - np.log(alone))
    return states, p / total[:, None], gain


def _list_states(model: CellModel, j: int, seen: States, truth: States) -> States:
    """Return the states that are tried in each row, filled up with -1; shape (n, k)."""
    if j not in model.near_nodes:
        return np.repeat(np.arange(model.cards[j], dtype=np.int32)[None], len(truth), axis=0)
    lines = []
    sizes = [model.cards[b] for b in model.near_columns]
    firsts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    pairs = [(firsts[e], b) for e, b in enumerate(model.near_columns) if model.near_nodes[e] == j]
    for row, shown in zip(truth.tolist(), seen[:, j].tolist(), strict=True):
        line = [row[j]]
        if shown < model.cards[j]:
            line.append(shown)
        for first, b in pairs:
            line += _list(model.nearby.start, model.nearby.states, first + row[b])
        lines.append(list(dict.fromkeys(line)))
    width = max(map(len, lines), default=1)
    filled = [line + [-1] * (width - len(line)) for line in lines]
    return np.array(filled, np.int32).reshape(len(lines), width)


def _list(start: NDArray[np.int64], states: States, k: int) -> list[int]:
    found: list[int] = states[start[k] : start[k + 1]].tolist()
    return found


def _pick(states: States, p: Vector, u: Vector, otherwise: States) -> States:
    """Return the first state whose running sum of probabilities passes u; shape (n,)."""
    is_reached = u[:, None] < np.cumsum(p, axis=1)
    at = is_reached.argmax(axis=1)
    picked: States = np.where(is_reached.any(axis=1), states[np.arange(len(states)), at], otherwise)
    return picked.astype(np.int32)
