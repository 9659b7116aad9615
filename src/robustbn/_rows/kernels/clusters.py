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
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout

BYTE_STATES = 256
MOST_FOLDED = 2**16  # joint states: a table of them is looked up when rows are packed
MOST_TRIED = 8  # families for the next place in a cluster, if there are holes in them
MOST_SHARING = 512  # of what shares a column, one with another; and columns of one cluster


@dataclass(frozen=True)
class Cluster:
    """Columns fused into one code, the first slowest, and the nodes whose cells it tells."""

    columns: tuple[int, ...]
    nodes: tuple[int, ...]
    n_states: int  # different codes
    is_folded: bool = False  # whether joint states that touch the same cells share a code
    is_blanked: bool = False  # whether the last code says that some value is missing

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
    takes in only what costs nothing). Then clusters that fit together are put together.
    O(d * neighbours) time, of which at most `MOST_SHARING` are looked at.
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
        for column in layout.families[i]:
            if states[column] > layout.cards[column]:
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
    if not _has_holes(layout, columns):
        return prod(layout.cards[c] for c in columns)
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
    if len(columns) > MOST_SHARING or prod(layout.cards[c] for c in columns) > limit:
        return None
    if _has_holes(layout, columns) and _joint_states(layout, columns) > MOST_FOLDED:
        return None
    joined = _cluster(layout, columns, [*cluster.nodes, *families])
    return joined if joined.n_states <= limit else None


def _spare(layout: Layout, clusters: list[Cluster]) -> list[Cluster]:
    """Return clusters of no node that hold the columns which no other tells apart."""
    told = {c for cluster in clusters if cluster.tells_columns for c in cluster.columns}
    left = sorted(set(range(layout.n_nodes)) - told, key=lambda c: -layout.codes_per_column[c])
    spare: list[list[int]] = []
    room = np.zeros(len(left), np.int64)
    for c in left:
        place = next(iter(np.flatnonzero(room >= layout.codes_per_column[c])), len(spare))
        if place == len(spare):
            spare.append([])
        spare[place].append(c)
        room[place] = BYTE_STATES // _joint_states(layout, spare[place])
    return [Cluster(tuple(each), (), _joint_states(layout, each)) for each in spare]


# --- putting families together --------------------------------------------------------------------


class _Loose:
    """The families that are in no cluster yet.

    Two families are neighbours if they share a column; of a column that very many families share,
    those are neighbours that stand near each other. `looseness` counts the neighbours that are
    left.
    """

    def __init__(self, layout: Layout) -> None:
        self.families = [set(family) for family in layout.families]
        self._cells = layout.cells_per_node
        self._users: list[list[int]] = [[] for _ in layout.cards]
        for i, family in enumerate(self.families):
            for c in family:
                self._users[c].append(i)
        self._left = set(range(layout.n_nodes))
        self._changed = set(self._left)
        self._seeds: list[tuple[int, int, int]] = []
        self.looseness = [len(self._neighbours(i)) for i in range(layout.n_nodes)]

    def _neighbours(self, i: int) -> set[int]:
        """Return the neighbours of a family, taken or not."""
        near: set[int] = set()
        for c in self.families[i]:
            users = self._users[c]
            if len(users) > MOST_SHARING:
                first = bisect_left(users, i) // MOST_SHARING * MOST_SHARING
                users = users[first : first + MOST_SHARING]
            near.update(users)
        near.discard(i)
        return near

    def take(self, i: int) -> set[int]:
        """Take a family away; return its neighbours that are left."""
        self._left.discard(i)
        near = self._neighbours(i) & self._left
        for k in near:
            self.looseness[k] -= 1
        self._changed |= near
        return near

    def find_seed(self) -> int | None:
        """Return the largest family that is left, of equal ones the loosest; None at the end."""
        for i in self._changed & self._left:
            heapq.heappush(self._seeds, (-self._cells[i], self.looseness[i], i))
        self._changed.clear()
        while self._seeds:
            _, looseness, i = heapq.heappop(self._seeds)
            if i in self._left and looseness == self.looseness[i]:
                return i
        return None


def _grow_all(layout: Layout) -> list[Cluster]:
    loose, grown = _Loose(layout), []
    families, looseness = loose.families, loose.looseness
    while (seed := loose.find_seed()) is not None:
        cluster = _cluster(layout, sorted(families[seed]), [seed])
        near = loose.take(seed)
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
            near |= loose.take(best)
            near.discard(best)
        grown.append(cluster)
    return grown


def _merge(layout: Layout, clusters: list[Cluster]) -> list[Cluster]:
    """Put together what fits together: first fit, the widest first."""
    merged: list[Cluster] = []
    room = np.zeros(len(clusters), np.int64)  # what is left of each, in codes
    holders: list[list[int]] = [[] for _ in layout.cards]  # clusters that hold each column
    growths: list[int] = []  # by how many joint states each may be multiplied
    for cluster in sorted(clusters, key=lambda c: -c.n_states):
        n_codes = _count_codes(layout, cluster.nodes)
        fresh = prod(layout.cards[c] for c in cluster.columns if not holders[c])
        near = {k for c in cluster.columns for k in holders[c][-MOST_SHARING:]}
        sharing = {k for k in near if growths[k] >= fresh}
        roomy = np.flatnonzero(room >= n_codes)[:MOST_SHARING]  # in vain only if too many holes
        for place in sorted(sharing.union(roomy.tolist())):
            joined = _join(layout, merged[place], cluster.nodes)
            if joined is not None:
                break
        else:
            place, joined = len(merged), cluster
            merged.append(Cluster((), (), 1))
            growths.append(1)
        for c in set(joined.columns).difference(merged[place].columns):
            holders[c].append(place)
        merged[place] = joined
        limit = max(BYTE_STATES, joined.n_states)
        growths[place] = limit // prod(layout.cards[c] for c in joined.columns)
        is_full = len(joined.columns) >= MOST_SHARING
        room[place] = 0 if is_full else limit // _count_codes(layout, joined.nodes)
    return merged
