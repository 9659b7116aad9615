"""Choose which columns the native kernels fuses into one code.

A pass costs one look-up for each code of a row. Families that share columns can share a code, as
long as their joint states fit into a byte; the tables are then expanded to joint states before the
pass. On the paper's random graph (50 nodes, m = 500) that makes fewer than 20 look-ups out of 50.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout

BYTE_STATES = 256


@dataclass(frozen=True)
class Cluster:
    """Columns fused into one code, the first slowest, and the nodes whose cells it tells."""

    columns: tuple[int, ...]
    nodes: tuple[int, ...]
    n_states: int

    @property
    def code_bytes(self) -> int:
        """Bytes of one code: 1, 2 or 4."""
        return 1 if self.n_states <= 2**8 else 2 if self.n_states <= 2**16 else 4


def separate_families(layout: Layout) -> list[Cluster]:
    """Return one cluster a node: its family, in the order of its table's axes."""
    clusters = [
        Cluster(family, (i,), layout.cells_per_node[i]) for i, family in enumerate(layout.families)
    ]
    return sorted(clusters, key=lambda c: c.code_bytes)


def fuse_families(layout: Layout) -> list[Cluster]:
    """Return few clusters that hold every family, none wider than it must be.

    Greedy: the largest family that is left opens a cluster, which takes in the neighbouring
    families that make it grow least while its joint states fit into a byte (a family too large for
    a byte takes in only what costs nothing). Then clusters that fit together are put together.
    About O(d * neighbours) time.
    """
    clusters = [_grow(layout, *grown) for grown in _grow_all(layout)]
    return sorted(_merge(layout, clusters), key=lambda c: (c.code_bytes, c.n_states))


def cells_of_states(layout: Layout, cluster: Cluster) -> list[NDArray[np.int32]]:
    """Return, for each node of a cluster, the cell that every joint state touches."""
    shape = [layout.cards[c] for c in cluster.columns]
    maps = []
    for i in cluster.nodes:
        cells = np.full(shape, layout.cell_start[i], dtype=np.int32)
        for column, stride in zip(layout.families[i], layout.strides[i], strict=True):
            axis = cluster.columns.index(column)
            steps = np.arange(layout.cards[column], dtype=np.int32) * np.int32(stride)
            cells += steps.reshape([-1 if k == axis else 1 for k in range(len(shape))])
        maps.append(np.ascontiguousarray(cells.ravel()))
    return maps


def _grow_all(layout: Layout) -> list[tuple[set[int], list[int]]]:
    families = [set(f) for f in layout.families]
    users: list[list[int]] = [[] for _ in layout.cards]
    for i, family in enumerate(families):
        for c in family:
            users[c].append(i)
    neighbours = [
        set().union(*(users[c] for c in family)) - {i} for i, family in enumerate(families)
    ]
    left = set(range(layout.n_nodes))

    def looseness(i: int) -> int:
        return len(neighbours[i] & left)

    grown = []
    while left:
        seed = min(left, key=lambda i: (-layout.cells_per_node[i], looseness(i), i))
        columns, members = set(families[seed]), [seed]
        n_states = layout.cells_per_node[seed]
        limit = max(BYTE_STATES, n_states) if n_states <= BYTE_STATES else n_states
        left.discard(seed)
        near = neighbours[seed] & left
        while near:
            growth = {i: prod(layout.cards[c] for c in families[i] - columns) for i in near}
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
    return Cluster(ordered, tuple(sorted(members)), prod(layout.cards[c] for c in ordered))


def _merge(layout: Layout, clusters: list[Cluster]) -> list[Cluster]:
    """Put together what fits together: first fit, the widest first."""
    merged: list[Cluster] = []
    for cluster in sorted(clusters, key=lambda c: -c.n_states):
        for k, other in enumerate(merged):
            columns = set(cluster.columns) | set(other.columns)
            n_states = prod(layout.cards[c] for c in columns)
            if n_states <= max(BYTE_STATES, other.n_states):
                merged[k] = _grow(layout, columns, [*other.nodes, *cluster.nodes])
                break
        else:
            merged.append(cluster)
    return merged
