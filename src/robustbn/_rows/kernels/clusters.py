"""Choose which columns the native kernels fuse into one code.

A pass costs one look-up for each code of a row. Families that share columns can share a code, as
long as their joint states fit into a byte; the tables are then expanded to joint states before the
pass. On the paper's random graph (50 nodes, m = 500) that makes fewer than 20 look-ups out of 50.

A column with holes has one state more: its value is missing. That makes many joint states, but few
that differ: a family with a hole touches no cell, whatever its other values are. So joint states
that touch the same cells are folded into one code, and what must fit into a byte is the number of
those; a family with too many joint states to fold is blanked: one code stands for any hole in it.
What such codes no longer tell is kept in spare ones, which no pass but `fingerprints` looks at.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout

BYTE_STATES = 256
MOST_FOLDED = 2**16  # joint states: a table of them is looked up when rows are packed
MOST_TRIED = 8  # families for the next place in a cluster, if there are holes in them


@dataclass(frozen=True)
class Cluster:
    """Columns fused into one code, the first slowest, and the nodes whose cells it tells.

    Parameters
    ----------
    n_states : different codes.
    is_folded : whether joint states that touch the same cells share a code.
    is_blanked : whether the last code says that some value is missing.
    """

    columns: tuple[int, ...]
    nodes: tuple[int, ...]
    n_states: int
    is_folded: bool = False
    is_blanked: bool = False

    @property
    def code_bytes(self) -> int:
        """Bytes of one code: 1, 2 or 4."""
        return 1 if self.n_states <= 2**8 else 2 if self.n_states <= 2**16 else 4

    @property
    def tells_columns(self) -> bool:
        """Whether different values of its columns always have different codes."""
        return not self.is_folded and not self.is_blanked


def separate_families(layout: Layout) -> list[Cluster]:
    """Return one cluster a node: its family, in the order of its table's axes."""
    clusters = [_cluster(layout, family, [i]) for i, family in enumerate(layout.families)]
    return [*sorted(clusters, key=lambda c: c.code_bytes), *_spare(layout, clusters)]


def fuse_families(layout: Layout) -> list[Cluster]:
    """Return few clusters that hold every family, none wider than it must be.

    Greedy: the largest family that is left opens a cluster, which takes in the neighbouring
    families that make it grow least while its codes fit into a byte (a family too large for a byte
    takes in only what costs nothing). Then clusters that fit together are put together. About
    O(d * neighbours) time.
    """
    clusters = _merge(layout, _grow_all(layout))
    clusters.sort(key=lambda c: (c.code_bytes, c.n_states))
    return [*clusters, *_spare(layout, clusters)]


def cells_of_states(layout: Layout, cluster: Cluster) -> list[NDArray[np.int32]]:
    """Return, for each node of a cluster, the cell that every code touches: -1 if it is none."""
    cells = _cells_of_joint_states(layout, cluster)
    if cluster.is_blanked:
        return [np.append(of_node, np.int32(-1)) for of_node in cells]
    if cluster.is_folded:
        _, first = np.unique(_fold(cells), return_index=True)
        return [of_node[first] for of_node in cells]
    return cells


def fold_states(layout: Layout, cluster: Cluster) -> NDArray[np.uint16]:
    """Return the code of each joint state of a cluster; empty if that is the state itself."""
    if not cluster.is_folded:
        return np.empty(0, np.uint16)
    return _fold(_cells_of_joint_states(layout, cluster)).astype(np.uint16)


def _fold(cells: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return a number for each joint state: the same where all nodes touch the same cells."""
    codes = np.zeros(len(cells[0]), np.int64)
    for of_node in cells:
        told = codes * (int(of_node.max()) + 2) + of_node + 1
        codes = np.unique(told, return_inverse=True)[1].reshape(-1)
    return codes


def _cells_of_joint_states(layout: Layout, cluster: Cluster) -> list[NDArray[np.int32]]:
    states = layout.cards if cluster.is_blanked else layout.codes_per_column
    told = [c for c in cluster.columns if states[c] > 1]  # hundreds of constant ones may be fused
    shape = [states[c] for c in told]
    maps = []
    for i in cluster.nodes:
        cells = np.full(shape, layout.cell_start[i], dtype=np.int32)
        for column, stride in zip(layout.families[i], layout.strides[i], strict=True):
            if states[column] == 1:
                continue
            axis = told.index(column)
            steps = np.arange(states[column], dtype=np.int64) * stride
            along = [-1 if k == axis else 1 for k in range(len(shape))]
            cells += steps.astype(np.int32).reshape(along)
        for column in set(layout.families[i]) & set(layout.holed):
            if not cluster.is_blanked:
                np.moveaxis(cells, told.index(column), 0)[-1] = -1
        maps.append(cells.ravel())
    return maps


# --- how many codes -------------------------------------------------------------------------------


def _joint_states(layout: Layout, columns: Iterable[int]) -> int:
    return prod(layout.codes_per_column[c] for c in columns)


def _has_holes(layout: Layout, columns: Iterable[int]) -> bool:
    return any(layout.codes_per_column[c] > layout.cards[c] for c in columns)


def _count_codes(layout: Layout, nodes: Iterable[int]) -> int:
    """Return how many codes some families need together, joint states folded.

    A code tells which families show all their values, and those values. Which families can do so
    while the others do not is told by the holed columns that they cover together. Sets of columns
    are the bits of a number.
    """
    columns = {c for i in nodes for c in layout.families[i]}
    bit = {c: 1 << k for k, c in enumerate(columns)}
    holed = sum(bit[c] for c in columns if _has_holes(layout, [c]))
    families = [sum(bit[c] for c in layout.families[i]) for i in nodes]
    covers = {0}
    for family in families:
        covers |= {family & holed | cover for cover in covers}
        if len(covers) > BYTE_STATES:  # too many in any case: each has a code or more
            return MOST_FOLDED + 1
    n_codes = 0
    for cover in covers:
        shown = 0
        for family in families:
            if not family & holed & ~cover:
                shown |= family
        n_codes += prod(layout.cards[c] for c in columns if bit[c] & shown)
    return n_codes


def _cluster(layout: Layout, columns: Sequence[int], nodes: Sequence[int]) -> Cluster:
    """Return the cluster of some families; of one only, if it has more states than are folded."""
    cluster = Cluster(tuple(columns), tuple(sorted(nodes)), _joint_states(layout, columns))
    if cluster.n_states <= BYTE_STATES or not _has_holes(layout, columns):
        return cluster
    if cluster.n_states > MOST_FOLDED:
        (node,) = nodes
        return replace(cluster, n_states=layout.cells_per_node[node] + 1, is_blanked=True)
    n_codes = _count_codes(layout, nodes)
    if n_codes >= cluster.n_states:
        return cluster
    return replace(cluster, n_states=n_codes, is_folded=True)


def _join(layout: Layout, cluster: Cluster, families: Sequence[int]) -> Cluster | None:
    """Return a cluster with more families, if its codes fit into a byte or are no more than now."""
    limit = max(BYTE_STATES, cluster.n_states)
    columns = sorted(set(cluster.columns).union(*(layout.families[i] for i in families)))
    if prod(layout.cards[c] for c in columns) > limit:
        return None
    if _has_holes(layout, columns) and _joint_states(layout, columns) > MOST_FOLDED:
        return None
    joined = _cluster(layout, columns, [*cluster.nodes, *families])
    return joined if joined.n_states <= limit else None


def _spare(layout: Layout, clusters: list[Cluster]) -> list[Cluster]:
    """Return clusters of no node that hold the columns which no other tells apart."""
    told = {c for cluster in clusters if cluster.tells_columns for c in cluster.columns}
    spare: list[list[int]] = []
    for c in sorted(set(range(layout.n_nodes)) - told, key=lambda c: -layout.codes_per_column[c]):
        for columns in spare:
            if _joint_states(layout, [*columns, c]) <= BYTE_STATES:
                columns.append(c)
                break
        else:
            spare.append([c])
    return [Cluster(tuple(each), (), _joint_states(layout, each)) for each in spare]


# --- putting families together --------------------------------------------------------------------


def _grow_all(layout: Layout) -> list[Cluster]:
    families = [set(f) for f in layout.families]
    users: list[list[int]] = [[] for _ in layout.cards]
    for i, family in enumerate(families):
        for c in family:
            users[c].append(i)
    neighbours = [
        set().union(*(users[c] for c in family)) - {i} for i, family in enumerate(families)
    ]
    left = set(range(layout.n_nodes))
    looseness = [len(near) for near in neighbours]  # neighbours that are left

    def take(i: int) -> None:
        left.discard(i)
        for near in neighbours[i]:
            looseness[near] -= 1

    grown = []
    while left:
        seed = min(left, key=lambda i: (-layout.cells_per_node[i], looseness[i], i))
        cluster = _cluster(layout, sorted(families[seed]), [seed])
        take(seed)
        near = neighbours[seed] & left
        while near:
            columns = set(cluster.columns)
            growth = {i: prod(layout.cards[c] for c in families[i] - columns) for i in near}
            likely = heapq.nsmallest(
                MOST_TRIED if layout.holed else 1,
                near,
                key=lambda i: (growth[i], looseness[i], -len(families[i]), i),
            )
            tried = [(_join(layout, cluster, [i]), i) for i in likely]
            fitting = [(joined, i) for joined, i in tried if joined is not None]
            if not fitting:
                break
            cluster, best = min(fitting, key=lambda each: each[0].n_states)
            take(best)
            near = (near | neighbours[best]) & left
        grown.append(cluster)
    return grown


def _merge(layout: Layout, clusters: list[Cluster]) -> list[Cluster]:
    """Put together what fits together: first fit, the widest first."""
    merged: list[Cluster] = []
    fewest: list[int] = []  # codes of each: a bound that is quick to check
    for cluster in sorted(clusters, key=lambda c: -c.n_states):
        n_codes = _count_codes(layout, cluster.nodes)
        for k, other in enumerate(merged):
            is_apart = set(other.columns).isdisjoint(cluster.columns)
            if is_apart and fewest[k] * n_codes > max(BYTE_STATES, other.n_states):
                continue
            joined = _join(layout, other, cluster.nodes)
            if joined is not None:
                merged[k], fewest[k] = joined, _count_codes(layout, joined.nodes)
                break
        else:
            merged.append(cluster)
            fewest.append(n_codes)
    return merged
