"""Choose which columns the native kernels fuse into one code.

A pass costs one look-up for each code of a row. Families that share columns can share a code, as
long as their joint states fit into a byte; the tables are then expanded to joint states before the
pass. On the paper's random graph (50 nodes, m = 500) that makes fewer than 20 look-ups out of 50.

A column with holes has one state more: its value is missing. A family that would not fit into a
byte with those has a blanked code of its own instead: one state stands for any hole in it. What
such codes no longer tell is kept in spare ones, which no pass but `fingerprints` looks at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout

BYTE_STATES = 256


@dataclass(frozen=True)
class Cluster:
    """Columns fused into one code, the first slowest, and the nodes whose cells it tells.

    Parameters
    ----------
    n_states : different codes; if `is_blanked`, the last one says that some value is missing.
    """

    columns: tuple[int, ...]
    nodes: tuple[int, ...]
    n_states: int
    is_blanked: bool = False

    @property
    def code_bytes(self) -> int:
        """Bytes of one code: 1, 2 or 4."""
        return 1 if self.n_states <= 2**8 else 2 if self.n_states <= 2**16 else 4


def separate_families(layout: Layout) -> list[Cluster]:
    """Return one cluster a node: its family, in the order of its table's axes."""
    blanked = _find_blanked(layout)
    clusters = [
        _blank(layout, i) if i in blanked else Cluster(family, (i,), _joint_states(layout, family))
        for i, family in enumerate(layout.families)
    ]
    return [*sorted(clusters, key=lambda c: c.code_bytes), *_spare(layout, clusters)]


def fuse_families(layout: Layout) -> list[Cluster]:
    """Return few clusters that hold every family, none wider than it must be.

    Greedy: the largest family that is left opens a cluster, which takes in the neighbouring
    families that make it grow least while its joint states fit into a byte (a family too large for
    a byte takes in only what costs nothing). Then clusters that fit together are put together.
    About O(d * neighbours) time.
    """
    blanked = _find_blanked(layout)
    fused = [_grow(layout, *grown) for grown in _grow_all(layout, blanked)]
    clusters = [*_merge(layout, fused), *(_blank(layout, i) for i in blanked)]
    clusters.sort(key=lambda c: (c.code_bytes, c.n_states))
    return [*clusters, *_spare(layout, clusters)]


def cells_of_states(layout: Layout, cluster: Cluster) -> list[NDArray[np.int32]]:
    """Return, for each node of a cluster, the cell that every code touches: -1 if it is none."""
    states = layout.cards if cluster.is_blanked else layout.codes_per_column
    shape = [states[c] for c in cluster.columns]
    maps = []
    for i in cluster.nodes:
        cells = np.full(shape, layout.cell_start[i], dtype=np.int32)
        for column, stride in zip(layout.families[i], layout.strides[i], strict=True):
            axis = cluster.columns.index(column)
            steps = np.arange(states[column], dtype=np.int64) * stride
            cells += steps.astype(np.int32).reshape(
                [-1 if k == axis else 1 for k in range(len(shape))]
            )
        for column in set(layout.families[i]) & set(layout.holed):
            if not cluster.is_blanked:
                np.moveaxis(cells, cluster.columns.index(column), 0)[-1] = -1
        flat = cells.ravel()
        maps.append(np.append(flat, np.int32(-1)) if cluster.is_blanked else flat)
    return maps


def _joint_states(layout: Layout, columns: Iterable[int]) -> int:
    return prod(layout.codes_per_column[c] for c in columns)


def _find_blanked(layout: Layout) -> set[int]:
    """Return the nodes whose families, with a state for every hole, are too large for a byte."""
    holed = set(layout.holed)
    return {
        i
        for i, family in enumerate(layout.families)
        if len(family) > 1
        and not holed.isdisjoint(family)
        and _joint_states(layout, family) > BYTE_STATES
    }


def _blank(layout: Layout, node: int) -> Cluster:
    return Cluster(layout.families[node], (node,), layout.cells_per_node[node] + 1, is_blanked=True)


def _spare(layout: Layout, clusters: list[Cluster]) -> list[Cluster]:
    """Return clusters of no node that hold the columns which others hold blanked only."""
    told = {c for cluster in clusters if not cluster.is_blanked for c in cluster.columns}
    alone = [Cluster((c,), (), _joint_states(layout, [c])) for c in range(layout.n_nodes)]
    return _merge(layout, [c for c in alone if c.columns[0] not in told])


def _grow_all(layout: Layout, blanked: set[int]) -> list[tuple[set[int], list[int]]]:
    families = [set(f) for f in layout.families]
    states = [_joint_states(layout, f) for f in families]
    users: list[list[int]] = [[] for _ in layout.cards]
    for i, family in enumerate(families):
        for c in family:
            users[c].append(i)
    neighbours = [
        set().union(*(users[c] for c in family)) - {i} for i, family in enumerate(families)
    ]
    left = set(range(layout.n_nodes)) - blanked

    def looseness(i: int) -> int:
        return len(neighbours[i] & left)

    grown = []
    while left:
        seed = min(left, key=lambda i: (-states[i], looseness(i), i))
        columns, members = set(families[seed]), [seed]
        n_states = states[seed]
        limit = max(BYTE_STATES, n_states)
        left.discard(seed)
        near = neighbours[seed] & left
        while near:
            growth = {i: _joint_states(layout, families[i] - columns) for i in near}
            best = min(near, key=lambda i: (growth[i], looseness(i), -len(families[i]), i))
            if n_states * growth[best] > limit:
                break
            n_states *= growth[best]
            columns |= families[best]
            members.append(best)
            left.discard(best)
            near = (near | neighbours[best]) & left
        grown.append((columns, members))
    return grown


def _grow(layout: Layout, columns: set[int], members: list[int]) -> Cluster:
    ordered = tuple(sorted(columns))
    return Cluster(ordered, tuple(sorted(members)), _joint_states(layout, ordered))


def _merge(layout: Layout, clusters: list[Cluster]) -> list[Cluster]:
    """Put together what fits together: first fit, the widest first."""
    merged: list[Cluster] = []
    for cluster in sorted(clusters, key=lambda c: -c.n_states):
        for k, other in enumerate(merged):
            columns = set(cluster.columns) | set(other.columns)
            if _joint_states(layout, columns) <= max(BYTE_STATES, other.n_states):
                merged[k] = _grow(layout, columns, [*other.nodes, *cluster.nodes])
                break
        else:
            merged.append(cluster)
    return merged
