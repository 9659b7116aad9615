"""Supposed causes that put cells of several rows into one: wrong joins, columns sorted alone."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robustbn._learn.causes.sides import Sides
from robustbn._learn.causes.suspects import Suspect

UNDECIDED = 3.0  # nats against going together that two groups of columns may have and be one
UNDECIDED_SHARE = 0.03  # the same, as a share of what speaks against all groups that are left


def find_joins(sides: Sides) -> list[Suspect]:
    """Return columns that come from another row than the rest; and all columns from different."""
    parts = split_columns(sides)
    found = [_try_parts(sides, np.arange(sides.n_columns))]
    if parts.max() > 0:
        found.append(_try_parts(sides, parts))
    return found


def split_columns(sides: Sides) -> NDArray[np.int64]:
    """Return a number for each column: those that go together as among good rows have the same.

    Groups are joined while they go together, those that agree most first. The largest group has
    number 0.
    """
    agreement = sides.of_kind.agreement(sides.of_good, sides.pairs)
    group = _join_groups(sides.n_columns, sides.pairs, agreement)
    group = _move_single(group, sides.pairs, agreement)
    names, group, sizes = np.unique(group, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    return rank[group]


def _join_groups(
    n_columns: int, pairs: Sequence[tuple[int, int]], agreement: NDArray[np.float64]
) -> NDArray[np.int64]:
    between: list[dict[int, float]] = [{} for _ in range(n_columns)]
    for (i, j), nats in zip(pairs, agreement.tolist(), strict=True):
        between[i][j] = between[j][i] = nats
    waiting = [(-nats, i, j) for (i, j), nats in zip(pairs, agreement.tolist(), strict=True)]
    heapq.heapify(waiting)
    group = np.arange(n_columns)
    while waiting:
        nats, i, j = heapq.heappop(waiting)
        if between[i].get(j) != -nats:
            continue  # one of the two has grown since
        if nats >= UNDECIDED:
            against = -sum(min(more, 0.0) for of in between for more in of.values()) / 2
            if nats >= UNDECIDED_SHARE * against:
                break
        group[group == j] = i
        for k, more in between[j].items():
            between[k].pop(j)
            if k != i:
                between[i][k] = between[k][i] = between[i].get(k, 0.0) + more
                heapq.heappush(waiting, (-between[i][k], i, k))
        between[j] = {}
    return group


def _move_single(
    group: NDArray[np.int64], pairs: Sequence[tuple[int, int]], agreement: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the groups once each column is in the one that it agrees with most."""
    at: list[list[tuple[int, float]]] = [[] for _ in group]
    for (i, j), nats in zip(pairs, agreement.tolist(), strict=True):
        at[i].append((j, nats))
        at[j].append((i, nats))
    for _ in range(10):
        has_moved = False
        for i in range(len(group)):
            total: dict[int, float] = {int(group[i]): 0.0}
            for j, nats in at[i]:
                total[int(group[j])] = total.get(int(group[j]), 0.0) + nats
            best = max(total, key=lambda g: total[g])
            if total[best] > total[int(group[i])] + 1e-9:
                group[i], has_moved = best, True
        if not has_moved:
            break
    return group


def _try_parts(sides: Sides, parts: NDArray[np.int64]) -> Suspect:
    """Return what is explained if each part of the columns comes from a row of its own."""
    n_parts, good = int(parts.max()) + 1, sides.good_codes
    spoilt = good.copy()
    for part in range(1, n_parts):
        columns = np.flatnonzero(parts == part)
        spoilt[:, columns] = good[np.ix_(sides.rng.permutation(len(good)), columns)]
    is_all_apart = n_parts == sides.n_columns
    moved = tuple(np.flatnonzero(parts > 0).tolist())
    nats = 1.0 if is_all_apart else sides.n_columns * float(np.log(n_parts))
    trial = sides.attempt(spoilt, moved)
    columns_named = tuple(range(sides.n_columns)) if is_all_apart else moved
    details = {"n_parts": n_parts, "is_all_apart": is_all_apart}
    return Suspect("wrong join", columns_named, nats / sides.price, trial, details)
