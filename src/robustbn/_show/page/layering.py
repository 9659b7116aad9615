"""Put the nodes of a graph on layers and route every edge between them.

A vertex is a node or a bend: a place on a layer that an edge passes through. Every piece of a route
joins neighbouring layers, so that an edge never has to cross a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

SWEEPS = 12  # of the fallback, to untangle

Edge = tuple[int, int]


@dataclass(frozen=True)
class Layered:
    """One connected part of a graph, layer by layer.

    Parameters
    ----------
    layers : vertices from top to bottom, each layer from left to right; numbers below the number
        of nodes are nodes, the others are bends.
    routes : for each edge the vertices it passes, its two ends included.
    """

    layers: list[list[int]]
    routes: dict[Edge, list[int]]


def layer_graph(n_nodes: int, edges: Sequence[Edge], use_sugiyama: bool = True) -> list[Layered]:
    """Return the connected parts of an acyclic graph, each on layers, edges pointing down.

    Layers and their order come from fast-sugiyama, or from a small layering of our own where that
    library cannot be imported. Layers that are very wide are split, and edges that run side by side
    from the same node share their way.
    """
    parts = None
    if use_sugiyama and edges:
        parts = _layer_by_sugiyama(n_nodes, edges)
    if parts is None:
        parts = [_layer_ourselves(n_nodes, part) for part in _split_into_parts(edges)]
    parts = [_share_ways(n_nodes, _split_wide_layers(n_nodes, part)) for part in parts]
    joined = {node for edge in edges for node in edge}
    return parts + [Layered([[i]], {}) for i in range(n_nodes) if i not in joined]


def _layer_by_sugiyama(n_nodes: int, edges: Sequence[Edge]) -> list[Layered] | None:
    """Return the parts as fast-sugiyama lays them out; None where it is not installed."""
    try:
        from fast_sugiyama import from_edges
    except ImportError:
        return None
    joined = sorted({node for edge in edges for node in edge})
    number = {node: i for i, node in enumerate(joined)}  # dense, so that bends cannot collide
    placed = from_edges(
        [(number[a], number[b]) for a, b in edges], dummy_vertices=True, check_layout=False
    )

    def vertex(v: int | str) -> int:
        return joined[int(v)] if int(v) < len(joined) else n_nodes + int(v)

    parts = []
    for positions, _, _, pieces in placed:
        below: dict[int, list[int]] = {}
        for a, b in pieces or ():
            below.setdefault(vertex(a), []).append(vertex(b))
        heights = sorted({y for _, (_, y) in positions}, reverse=True)
        from_left = sorted(positions, key=lambda p: p[1][0])
        layers = [[vertex(v) for v, (_, y) in from_left if y == height] for height in heights]
        routes = {}
        for start in (v for layer in layers for v in layer if v < n_nodes):
            for way in _follow(start, below, n_nodes):
                routes[way[0], way[-1]] = way
        parts.append(Layered(layers, routes))
    parts.sort(key=lambda part: min(v for layer in part.layers for v in layer))
    known = {edge for part in parts for edge in part.routes}
    return parts if known == set(edges) else None


def _follow(start: int, below: dict[int, list[int]], n_nodes: int) -> Iterable[list[int]]:
    for first in below.get(start, ()):
        way = [start, first]
        while way[-1] >= n_nodes:
            way.append(below[way[-1]][0])
        yield way


def _split_into_parts(edges: Sequence[Edge]) -> list[list[Edge]]:
    """Return the edges of each connected part."""
    root: dict[int, int] = {}

    def find(v: int) -> int:
        while root.setdefault(v, v) != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for a, b in edges:
        root[find(a)] = find(b)
    parts: dict[int, list[Edge]] = {}
    for edge in edges:
        parts.setdefault(find(edge[0]), []).append(edge)
    return list(parts.values())


def _layer_ourselves(n_nodes: int, edges: Sequence[Edge]) -> Layered:
    """Longest paths for the layers, barycentres for the order in them."""
    children: dict[int, list[int]] = {}
    waiting: dict[int, int] = {}
    for a, b in edges:
        children.setdefault(a, []).append(b)
        waiting.setdefault(a, 0)
        waiting[b] = waiting.get(b, 0) + 1
    roots = [v for v, k in waiting.items() if k == 0]
    depth = dict.fromkeys(roots, 0)
    order = list(roots)
    for v in order:  # grows while it is walked
        for child in children.get(v, ()):
            depth[child] = max(depth.get(child, 0), depth[v] + 1)
            waiting[child] -= 1
            if waiting[child] == 0:
                order.append(child)
    for v in reversed(order):  # a root belongs just above its first child
        if v in roots:
            depth[v] = min(depth[c] for c in children[v]) - 1
    layers: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for v in order:
        layers[depth[v]].append(v)
    bend = n_nodes
    routes = {}
    for a, b in edges:
        way = [a]
        for layer in range(depth[a] + 1, depth[b]):
            layers[layer].append(bend)
            way.append(bend)
            bend += 1
        routes[a, b] = [*way, b]
    _untangle(layers, routes)
    return Layered(layers, routes)


def _untangle(layers: list[list[int]], routes: dict[Edge, list[int]]) -> None:
    """Sort every layer by the mean place of its neighbours, down and up again, in place."""
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for way in routes.values():
        for a, b in pairwise(way):
            below.setdefault(a, []).append(b)
            above.setdefault(b, []).append(a)
    for sweep in range(SWEEPS):
        neighbours, walk = (above, layers[1:]) if sweep % 2 == 0 else (below, layers[-2::-1])
        place = {v: (i + 0.5) / len(layer) for layer in layers for i, v in enumerate(layer)}
        for layer in walk:
            key = {
                v: sum(place[u] for u in neighbours[v]) / len(neighbours[v])
                if v in neighbours
                else place[v]
                for v in layer
            }
            layer.sort(key=key.__getitem__)
            place.update({v: (i + 0.5) / len(layer) for i, v in enumerate(layer)})


def _split_wide_layers(n_nodes: int, part: Layered) -> Layered:
    """Spread a layer with very many nodes over several, in turn; adds no crossing.

    Every place of the old layer is kept in each of the new ones, as the node itself or as one bend:
    all edges into a node share the bends above it, all edges out of it those below it.
    """
    n_real = sum(v < n_nodes for layer in part.layers for v in layer)
    limit = max(8, ceil(1.6 * sqrt(n_real)))
    fresh = 1 + max(max(layer) for layer in part.layers)
    fresh = max(fresh, n_nodes)
    layers: list[list[int]] = []
    before: dict[int, list[int]] = {}  # vertices to pass before, and after, an old vertex
    after: dict[int, list[int]] = {}
    for layer in part.layers:
        n_new = ceil(sum(v < n_nodes for v in layer) / limit) or 1
        new: list[list[int]] = [[] for _ in range(n_new)]
        turn = 0
        for v in layer:
            own = turn % n_new if v < n_nodes else 0
            turn += v < n_nodes
            for j in range(n_new):
                if j == own:
                    new[j].append(v)
                    continue
                new[j].append(fresh)
                (before if j < own else after).setdefault(v, []).append(fresh)
                fresh += 1
        layers.extend(new)
    routes = {
        edge: [
            u
            for v in way
            for u in (
                *(before.get(v, ()) if v != edge[0] else ()),
                v,
                *(after.get(v, ()) if v != edge[1] else ()),
            )
        ]
        for edge, way in part.routes.items()
    }
    used = {v for way in routes.values() for v in way}
    return Layered([[v for v in layer if v in used] for layer in layers], routes)


def _share_ways(n_nodes: int, part: Layered) -> Layered:
    """Merge bends that stand side by side and come from the same vertex, from top to bottom."""
    above: dict[int, set[int]] = {}
    below: dict[int, set[int]] = {}
    for way in part.routes.values():
        for a, b in pairwise(way):
            above.setdefault(b, set()).add(a)
            below.setdefault(a, set()).add(b)
    same: dict[int, int] = {}
    layers = []
    for layer in part.layers:
        kept: list[int] = []
        came: set[int] = set()
        for v in layer:
            comes = {same.get(u, u) for u in above.get(v, ())}
            left = kept[-1] if kept else -1
            if v >= n_nodes and left >= n_nodes and len(comes) == 1 and comes == came:
                same[v] = left
                continue
            kept.append(v)
            came = comes
        layers.append(kept)
    routes = {edge: [same.get(v, v) for v in way] for edge, way in part.routes.items()}
    return Layered(layers, routes)
