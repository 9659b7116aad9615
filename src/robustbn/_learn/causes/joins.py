"""Supposed causes that put cells of several rows into one: wrong joins, columns sorted alone."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from robustbn._learn.causes.sides import Sides
from robustbn._learn.causes.suspects import Suspect

UNDECIDED = 3.0  # nats against going together that two groups of columns may have and be one
UNDECIDED_SHARE = 0.03  # the same, as a share of all that speaks against groups

Told = dict[tuple[int, int], float]  # nats for going together, of two columns


def find_joins(sides: Sides) -> list[Suspect]:
    """Return columns that come from another row than the rest; and all columns from different."""
    every = np.arange(sides.n_columns)
    parts, is_sure = split_columns(sides)
    found = [_try_parts(sides, every, every)]
    if parts.max() > 0:
        found.append(_try_parts(sides, parts, np.flatnonzero((parts > 0) & is_sure)))
    return found


def split_columns(sides: Sides) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a number for each column: those that came from the same row have the same.

    Columns that go together as among good rows are joined, those that agree most first. The groups
    that are left then take sides: one that does not go with a side is on the other. The largest
    part has number 0. And return which columns clearly belong where they are: some depend on no
    other, and then nobody can know.
    """
    agreement = sides.of_kind.agreement(sides.of_good, sides.pairs)
    told = {pair: nats for pair, nats in zip(sides.pairs, agreement.tolist(), strict=True) if nats}
    group = _move_single(_join_groups(sides.n_columns, told), told)
    part, is_sure = _take_sides(group, told)
    names, part, sizes = np.unique(part, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    return rank[part], is_sure


def _join_groups(n_columns: int, told: Told) -> NDArray[np.int64]:
    """Return groups of columns that go together clearly."""
    between: list[dict[int, float]] = [{} for _ in range(n_columns)]
    for (i, j), nats in told.items():
        between[i][j] = between[j][i] = nats
    waiting = [(-nats, i, j) for (i, j), nats in told.items()]
    heapq.heapify(waiting)
    group = np.arange(n_columns)
    while waiting and -waiting[0][0] >= UNDECIDED:
        nats, i, j = heapq.heappop(waiting)
        if between[i].get(j) != -nats:
            continue  # one of the two has grown since
        group[group == j] = i
        for k, more in between[j].items():
            between[k].pop(j)
            if k != i:
                between[i][k] = between[k][i] = between[i].get(k, 0.0) + more
                heapq.heappush(waiting, (-between[i][k], i, k))
        between[j] = {}
    return group


def _move_single(group: NDArray[np.int64], told: Told) -> NDArray[np.int64]:
    """Return the groups once each column is in the one that it agrees with most."""
    at: list[list[tuple[int, float]]] = [[] for _ in group]
    for (i, j), nats in told.items():
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


def _take_sides(
    group: NDArray[np.int64], told: Told
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the part that each column is of, two wherever two will do; and which are clear.

    The group about which most is told goes first, to the part that it agrees with most; it opens a
    part of its own if it goes with none that there is.
    """
    names, group, sizes = np.unique(group, return_inverse=True, return_counts=True)
    between = np.zeros((len(names), len(names)))
    for (i, j), nats in told.items():
        between[group[i], group[j]] += nats
        between[group[j], group[i]] += nats
    np.fill_diagonal(between, 0.0)
    limit = max(UNDECIDED, UNDECIDED_SHARE * float(-np.minimum(between, 0).sum()) / 2)
    part = np.full(len(names), -1)
    is_sure = np.zeros(len(names), bool)
    first = int(sizes.argmax())
    part[first], is_sure[first] = 0, True
    while (part < 0).any():
        placed = np.eye(int(part.max()) + 1)[part[part >= 0]]
        left = np.flatnonzero(part < 0)
        score = between[np.ix_(left, part >= 0)] @ placed
        stakes = np.abs(score).max(axis=1)
        k = int(stakes.argmax())
        best = int(score[k].argmax())
        opens = score[k, best] < -limit
        part[left[k]] = int(part.max()) + 1 if opens else best
        is_sure[left[k]] = stakes[k] >= UNDECIDED
    return part[group], is_sure[group]


def _try_parts(sides: Sides, parts: NDArray[np.int64], named: NDArray[np.int64]) -> Suspect:
    """Return what is explained if each part of the columns comes from a row of its own.

    Parameters
    ----------
    named : the columns to be named.
    """
    n_parts, good = int(parts.max()) + 1, sides.good_codes
    spoilt = good.copy()
    for part in range(1, n_parts):
        columns = np.flatnonzero(parts == part)
        spoilt[:, columns] = good[np.ix_(sides.rng.permutation(len(good)), columns)]
    is_all_apart = n_parts == sides.n_columns
    moved = tuple(np.flatnonzero(parts > 0).tolist())
    nats = 1.0 if is_all_apart else sides.n_columns * float(np.log(n_parts))
    trial = sides.attempt(spoilt, moved)
    details = {"n_parts": n_parts, "is_all_apart": is_all_apart}
    return Suspect("wrong join", tuple(named.tolist()), nats / sides.price, trial, details)
