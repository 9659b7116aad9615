"""Supposed causes that put cells of several rows into one: wrong joins, columns sorted alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Vector
from robustbn._learn.causes.sides import CLEAR, Sides, Suspect

UNDECIDED = 0.03  # share of all that speaks against groups that may do so of two that are one

Places = NDArray[np.int64]  # a number for each column


def find_joins(sides: Sides) -> list[Suspect]:
    """Return columns that come from another row than the rest; and all columns from different."""
    every = np.arange(sides.n_columns)
    parts, is_sure = split_columns(sides.agreement)
    found = [_try_parts(sides, every, every)]
    if parts.max() > 0:
        found.append(_try_parts(sides, parts, np.flatnonzero((parts > 0) & is_sure)))
    return found


def split_columns(told: Vector) -> tuple[Places, NDArray[np.bool_]]:
    """Return a number for each column: those that came from the same row have the same.

    Columns that go together as among good rows are joined, those that agree most first. The groups
    that are left then take sides: one that does not go with a side is on the other. The largest
    part has number 0. And return which columns clearly belong where they are: some depend on no
    other, and then nobody can know.

    told : nats for going together, of each two columns; shape (d, d).
    """
    part, is_sure = _take_sides(_move_single(_join_groups(told), told), told)
    names, part, sizes = np.unique(part, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    return rank[part], is_sure


def _join_groups(told: Vector) -> Places:
    """Return groups of columns that go together clearly."""
    group, between = np.arange(len(told)), told.copy()
    while True:
        i, j = divmod(int(between.argmax()), len(told))
        if between[i, j] < CLEAR:
            return group
        group[group == j] = i
        between[i] += between[j]
        between[j] = between[:, j] = between[i, i] = 0.0
        between[:, i] = between[i]


def _move_single(group: Places, told: Vector) -> Places:
    """Return the groups once each column is in the one that it agrees with most."""
    has_moved = True
    while has_moved:
        has_moved = False
        for i, nats in enumerate(told):
            total = np.bincount(group, nats, len(group))
            beside = np.append(group[nats != 0], group[i])
            best = beside[total[beside].argmax()]
            if total[best] > total[group[i]] + 1e-9:
                group[i], has_moved = best, True
    return group


def _take_sides(group: Places, told: Vector) -> tuple[Places, NDArray[np.bool_]]:
    """Return the part that each column is of, two wherever two will do; and which are clear."""
    # The group about which most is told goes first, to the part that it agrees with most; it opens
    # a part of its own if it goes with none that there is.
    names, group, sizes = np.unique(group, return_inverse=True, return_counts=True)
    member = np.eye(len(names))[group]
    between = member.T @ told @ member
    np.fill_diagonal(between, 0.0)
    limit = max(CLEAR, UNDECIDED * float(-np.minimum(between, 0).sum()) / 2)
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
        is_sure[left[k]] = stakes[k] >= CLEAR
    return part[group], is_sure[group]


def _try_parts(sides: Sides, parts: Places, named: Places) -> Suspect:
    """Return what is explained if each part of the columns comes from a row of its own."""
    n_parts, good = int(parts.max()) + 1, sides.good.codes
    spoilt = good.copy()
    for part in range(1, n_parts):
        columns = np.flatnonzero(parts == part)
        spoilt[:, columns] = good[np.ix_(sides.rng.permutation(len(good)), columns)]
    is_all_apart = n_parts == sides.n_columns
    return sides.suspect(
        "wrong join",
        named.tolist(),
        1.0 if is_all_apart else sides.n_columns * float(np.log(n_parts)),
        spoilt,
        {"n_parts": n_parts, "is_all_apart": is_all_apart},
        changed=np.flatnonzero(parts > 0).tolist(),
    )
