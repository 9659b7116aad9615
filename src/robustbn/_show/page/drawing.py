"""Draw a network as SVG: layers for the nodes, ways for the edges, colours for the tables.

A vertex is a node or a bend: a place on a layer that an edge passes through. Every piece of a route
joins neighbouring layers, so that an edge never has to cross a node. The picture carries its own
light colours as attributes, so that it looks right where styles are stripped; its classes (`node`,
`edge`, `c0` to `c6`) let a page restyle it.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from html import escape
from itertools import count as count_from
from itertools import pairwise
from math import ceil, floor, log10, sqrt
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from robustbn._core.numbers import count
from robustbn._show.measures import Moves
from robustbn._show.words import as_text, percent, shorten
from robustbn.network import BayesianNetwork

# From paper to burnt earth: lightness falls in even steps, so that the order is read without hue.
SCALE = ("#f6f1e7", "#f6dfb6", "#f0c27a", "#e29d45", "#c4722a", "#964c1c", "#612c12")
INK_ON_SCALE = ("#22262b", "#22262b", "#22262b", "#22262b", "#000000", "#ffffff", "#ffffff")
EDGE_COLOUR = "#9aa1a9"
MISSING_COLOUR = "#1f5fa8"
OUTLINE = "#c9c3b6"
STRONG_OUTLINE = "#22262b"

NODE_HEIGHT = 28.0
NODE_GAP = 18.0
BEND_WIDTH = 5.0
BEND_GAP = 7.0
SWEEPS = 24  # over the layers, to untangle the edges and to place the vertices
MARGIN = 16.0
BOW = 35.0  # of a missing edge between neighbours: over a box and what stands between
INSIDE = 3.0  # from the rim, for the width of a line

Edge = tuple[int, int]
Route = list[tuple[str, tuple[float, ...]]]
Box = tuple[float, float, float]


@dataclass(frozen=True)
class Picture:
    """A network laid out: what a drawing in any format needs."""

    # labels, boxes: of each node: its name, shortened, and its centre and width
    labels: list[str]
    boxes: list[Box]
    # of each edge: curves from its parent to its child, as `(letter, numbers)` of SVG paths: M x y,
    # L x y, C x1 y1 x2 y2 x y
    routes: dict[Edge, Route]
    # width, height: of the whole
    width: float
    height: float


@dataclass(frozen=True)
class Layered:
    """One connected part of a graph, layer by layer."""

    # vertices from top to bottom, each layer from left to right; numbers below the number of nodes
    # are nodes, the others are bends
    layers: list[list[int]]
    routes: dict[Edge, list[int]]  # for each edge the vertices it passes, its two ends included


@dataclass(frozen=True)
class Placed:
    """Where the vertices of one part of the graph have their centres, and its size."""

    x: dict[int, float]
    y: dict[int, float]
    width: float
    height: float


def colour_steps(moved: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the step of `SCALE` for each value, from 0 for nothing to 6 for the most."""
    share = moved / nice_top(float(moved.max())) * len(SCALE)
    return np.clip(share, 0, len(SCALE) - 1).astype(np.int64)


def nice_top(largest: float) -> float:
    """Return the end of the colour scale: a round number above the largest, at least 1 %."""
    largest = max(largest, 0.01)
    power: float = 10.0 ** floor(log10(largest))
    return next(f * power for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if f * power >= largest * 0.999)


def draw_network(
    network: BayesianNetwork,
    moves: Moves | None = None,
    *,
    missing: Sequence[tuple[str, str]] = (),
    is_interactive: bool = False,
    name: str = "network",
) -> str:
    """Return the network as one `<svg>` element; every label is escaped."""
    nodes, picture = network.nodes, lay_out(network)
    steps, is_strong = [0] * len(nodes), [False] * len(nodes)
    notes = [as_text(node) for node in nodes]
    if moves is not None:
        steps, is_strong = colour_steps(moves.moved).tolist(), moves.is_significant.tolist()
        for i, moved in enumerate(moves.moved.tolist()):
            more = ", more than its error" if is_strong[i] else ""
            notes[i] += f": table moved by {percent(moved)}{more}"
    lines = [_head(network, picture, escape(name))]
    lines.append(f'<g class="edges" fill="none" stroke="{EDGE_COLOUR}" stroke-width="1.2">')
    lines += [_draw_edge(edge, route) for edge, route in picture.routes.items()]
    lines.append("</g>")
    for k, pair in enumerate(missing):
        ends = [picture.boxes[nodes.index(node)] for node in pair]
        note = " and ".join(map(as_text, pair)) + " depend on each other without an edge"
        lines.append(_draw_missing(k, note, ends, picture))
    lines.append('<g class="nodes" font-size="12" text-anchor="middle">')
    for i, (label, (x, y, width)) in enumerate(zip(picture.labels, picture.boxes, strict=True)):
        note, step = escape(notes[i]), steps[i]
        stroke, thick = (STRONG_OUTLINE, 1.6) if is_strong[i] else (OUTLINE, 1.0)
        button = f' role="button" tabindex="-1" aria-pressed="false" aria-label="{note}"'
        lines.append(
            f'<g class="node c{step}{" strong" if is_strong[i] else ""}" data-node="{i}" '
            f'transform="translate({x:.1f} {y:.1f})"{button if is_interactive else ""}>'
            f"<title>{note}</title>"
            f'<rect x="{-width / 2:.1f}" y="{-NODE_HEIGHT / 2:.1f}" width="{width:.1f}" '
            f'height="{NODE_HEIGHT:.0f}" rx="7" fill="{SCALE[step]}" stroke="{stroke}" '
            f'stroke-width="{thick}"/>'
            f'<text y="4" fill="{INK_ON_SCALE[step]}">{escape(label)}</text></g>'
        )
    lines.append("</g></svg>")
    return "\n".join(lines)


def lay_out(network: BayesianNetwork) -> Picture:
    """Return places for the nodes and ways for the edges; parents above their children."""
    nodes = network.nodes
    number = {node: i for i, node in enumerate(nodes)}
    labels = [shorten(as_text(node)) for node in nodes]
    widths = [max(40.0, _text_width(label) + 22) for label in labels]
    parts = layer_graph(len(nodes), [(number[a], number[b]) for a, b in network.edges])
    placed, width, height = _place(parts, widths)
    boxes = {v: (at.x[v], at.y[v], widths[v]) for at in placed for v in at.x if v < len(nodes)}
    routes = {
        edge: _route(way, at)
        for part, at in zip(parts, placed, strict=True)
        for edge, way in part.routes.items()
    }
    return Picture(labels, [boxes[i] for i in range(len(nodes))], routes, width, height)


def _head(network: BayesianNetwork, picture: Picture, name: str) -> str:
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rbn-network" role="group" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'preserveAspectRatio="xMidYMid meet" aria-labelledby="{name}-title {name}-desc" '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif">'
        f'<title id="{name}-title">The network</title><desc id="{name}-desc">'
        f"{count(network.n_nodes, 'node')} in layers, parents above their children, joined by "
        f"{count(len(network.edges), 'arrow')}.</desc>"
    )


def _draw_edge(edge: Edge, route: Route) -> str:
    path = "".join(f"{letter}{' '.join(f'{v:.0f}' for v in at)}" for letter, at in route)
    return f'<path data-edge="{edge[0]} {edge[1]}" d="{path}m-3.5 -6 3.5 6 3.5 -6"/>'


def _draw_missing(k: int, note: str, ends: Sequence[Box], picture: Picture) -> str:
    """Return a bow from box to box that stays in the picture, and a wider one that can be hit."""
    (x0, y0, _), (x1, y1, _) = ends
    x, y, low, high = (x0 + x1) / 2, (y0 + y1) / 2, min(y0, y1), max(y0, y1)
    if high - low >= NODE_HEIGHT:
        x = min(max(x - 0.12 * (y1 - y0), INSIDE), picture.width - INSIDE)
        y = min(max(y + 0.12 * (x1 - x0), INSIDE), picture.height - INSIDE)
    elif low - BOW >= INSIDE:  # side by side: over the tops, or under them
        y = low - 2 * BOW
    else:
        y = high + 2 * min(BOW, picture.height - INSIDE - high)
    path = f"M{x0:.1f} {y0:.1f}Q{x:.1f} {y:.1f} {x1:.1f} {y1:.1f}"
    return (
        f'<g class="missing" data-pair="{k}" fill="none"><title>{escape(note)}</title>'
        f'<path class="hit" d="{path}" stroke="transparent" stroke-width="14"/>'
        f'<path class="line" d="{path}" stroke="{MISSING_COLOUR}" stroke-width="2.2" '
        'stroke-dasharray="6 4"/></g>'
    )


def _route(way: list[int], places: Placed) -> Route:
    """Return curves between the layers, and straight lines through them."""
    half, x, y = NODE_HEIGHT / 2, places.x, places.y
    at = y[way[0]] + half
    route: Route = [("M", (x[way[0]], at))]
    for a, b in pairwise(way):
        is_last = b == way[-1]
        end = y[b] - half - (1.5 if is_last else 0)
        if abs(x[a] - x[b]) < 0.5:
            route.append(("L", (x[b], end)))
        else:
            middle = (at + end) / 2
            route.append(("C", (x[a], middle, x[b], middle, x[b], end)))
        at = y[b] + half
        if not is_last:
            route.append(("L", (x[b], at)))
    return route


def _text_width(label: str) -> float:
    """Return about how wide a label is at 12 pixels; script and font are not known here."""
    wide = sum(east_asian_width(c) in "WF" for c in label)
    narrow = sum(c in "iIl.,:;'|!()[] fjt1" for c in label)
    upper = sum(c.isupper() for c in label)
    return 6.7 * len(label) + 5.6 * wide - 2.6 * narrow + 1.7 * upper


# --- layers ---------------------------------------------------------------------------------------


def layer_graph(n_nodes: int, edges: Iterable[Edge]) -> list[Layered]:
    """Return the connected parts of an acyclic graph, each on layers, edges pointing down."""
    parents: dict[int, list[int]] = {v: [] for v in range(n_nodes)}
    near: dict[int, list[int]] = {v: [] for v in range(n_nodes)}
    for a, b in edges:
        parents[b].append(a)
        near[a].append(b)
        near[b].append(a)
    parts: list[Layered] = []
    seen: set[int] = set()
    for v in parents:
        if v not in seen:
            part = _walk(v, near)
            seen.update(part)
            parts.append(_layer_part(n_nodes, {u: parents[u] for u in part}))
    return parts


def _walk(start: int, near: Mapping[int, Sequence[int]]) -> list[int]:
    """Return all that can be reached from a vertex, depth first."""
    met: dict[int, None] = {}
    ahead = [start]
    while ahead:
        v = ahead.pop()
        if v not in met:
            met[v] = None
            ahead += reversed(near[v])
    return list(met)


def _layer_part(n_nodes: int, parents: Mapping[int, Sequence[int]]) -> Layered:
    depth = _depths(parents)
    layers: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for v, k in depth.items():
        layers[k].append(v)
    bends, routes = count_from(n_nodes), {}
    for b, own in parents.items():
        for a in own:
            between = {k: next(bends) for k in range(depth[a] + 1, depth[b])}
            for k, bend in between.items():
                layers[k].append(bend)
            routes[a, b] = [a, *between.values(), b]
    return _share_ways(n_nodes, Layered(_untangle(layers, routes), routes))


def _depths(parents: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the layer of each node: as low as its children allow, or just below its parents."""
    # Just below if it has at least as many parents as children: that shortens edges. The nodes of a
    # very wide layer are spread over several, in turn.
    order = list(TopologicalSorter(parents).static_order())
    children: dict[int, list[int]] = {v: [] for v in order}
    for v, own in parents.items():
        for p in own:
            children[p].append(v)
    depth: dict[int, int] = {}
    for v in reversed(order):
        depth[v] = min((depth[c] for c in children[v]), default=0) - 1
    for v in order:
        if parents[v] and len(parents[v]) >= len(children[v]):
            depth[v] = max(depth[p] for p in parents[v]) + 1
    layers: dict[int, list[int]] = {}
    for v in parents:
        layers.setdefault(depth[v], []).append(v)
    most = max(8, ceil(1.6 * sqrt(len(parents))))
    spread, start = {}, 0
    for k in sorted(layers):
        n = ceil(len(layers[k]) / most)
        spread.update({v: start + i % n for i, v in enumerate(layers[k])})
        start += n
    return spread


def _untangle(layers: list[list[int]], routes: dict[Edge, list[int]]) -> list[list[int]]:
    """Order layers depth first, then by the mean place of neighbours; keep what crosses least."""
    above: dict[int, list[int]] = {v: [] for layer in layers for v in layer}
    below: dict[int, list[int]] = {v: [] for v in above}
    for a, b in (piece for way in routes.values() for piece in pairwise(way)):
        below[a].append(b)
        above[b].append(a)
    met = {v: i for i, v in enumerate(_walk(layers[0][0], {v: above[v] + below[v] for v in above}))}
    layers = [sorted(layer, key=met.__getitem__) for layer in layers]
    best, least = list(layers), _count_crossings(layers, below)
    for sweep in range(SWEEPS):
        near, order = (above, range(1, len(layers))) if sweep % 2 == 0 else (
            below, range(len(layers) - 2, -1, -1)
        )  # fmt: skip
        place = {v: (i + 0.5) / len(layer) for layer in layers for i, v in enumerate(layer)}
        for k in order:
            wish = {v: _mean([place[u] for u in near[v]] or [place[v]]) for v in layers[k]}
            layers[k] = sorted(layers[k], key=wish.__getitem__)
            place.update({v: (i + 0.5) / len(layers[k]) for i, v in enumerate(layers[k])})
        n = _count_crossings(layers, below)
        if n < least:
            best, least = list(layers), n
    return best


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _count_crossings(layers: list[list[int]], below: Mapping[int, Sequence[int]]) -> int:
    n = 0
    for upper, lower in pairwise(layers):
        place = {v: i for i, v in enumerate(lower)}
        seen: list[int] = []
        for v in upper:
            ends = [place[u] for u in below[v]]
            n += sum(len(seen) - bisect(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return n


def _share_ways(n_nodes: int, part: Layered) -> Layered:
    """Merge bends that stand side by side and come from the same vertex, from top to bottom."""
    above = {b: a for way in part.routes.values() for a, b in pairwise(way)}  # a bend has one
    same: dict[int, int] = {}
    layers = []
    for layer in part.layers:
        kept: list[int] = []
        came = -1
        for v in layer:
            comes = same.get(above[v], above[v]) if v >= n_nodes else -1
            if comes == came >= 0:
                same[v] = kept[-1]
            else:
                kept.append(v)
            came = comes
        layers.append(kept)
    return Layered(layers, {e: [same.get(v, v) for v in way] for e, way in part.routes.items()})


# --- places ---------------------------------------------------------------------------------------


def _place(parts: Sequence[Layered], widths: Sequence[float]) -> tuple[list[Placed], float, float]:
    """Place each connected part, then put the parts on shelves, tallest first; the size of all."""
    placed = [_place_part(part, widths) for part in parts]
    area = sum((p.width + NODE_GAP) * (p.height + NODE_GAP) for p in placed)
    widest, wanted = max(p.width for p in placed), 1.7 * sqrt(area)
    shelf_width = widest if widest > 0.6 * wanted else wanted
    left = top = shelf_height = right = 0.0
    for k in sorted(range(len(parts)), key=lambda k: -placed[k].height):
        part = placed[k]
        if left > 0 and left + part.width > shelf_width:
            left, top, shelf_height = 0.0, top + shelf_height + 2 * NODE_GAP, 0.0
        x = {v: at + left + MARGIN for v, at in part.x.items()}
        y = {v: at + top + MARGIN for v, at in part.y.items()}
        placed[k] = Placed(x, y, part.width, part.height)
        left += part.width + NODE_GAP
        right = max(right, left - NODE_GAP)
        shelf_height = max(shelf_height, part.height)
    return placed, right + 2 * MARGIN, top + shelf_height + 2 * MARGIN


def _place_part(part: Layered, widths: Sequence[float]) -> Placed:
    """Choose x by pulling every vertex to its neighbours, layer by layer, keeping their order."""
    n_nodes = len(widths)
    size = {v: widths[v] if v < n_nodes else BEND_WIDTH for layer in part.layers for v in layer}
    above: dict[int, list[tuple[int, float]]] = {v: [] for v in size}
    below: dict[int, list[tuple[int, float]]] = {v: [] for v in size}
    for a, b in {piece for way in part.routes.values() for piece in pairwise(way)}:
        pull = 1.0 + 3.0 * (a >= n_nodes) + 3.0 * (b >= n_nodes)
        below[a].append((b, pull))
        above[b].append((a, pull))
    x: dict[int, float] = {}
    for layer in part.layers:
        offsets = _offsets(layer, size)
        x.update(zip(layer, (o - offsets[-1] / 2 for o in offsets), strict=True))
    for sweep in range(SWEEPS):
        sides = [above] if sweep % 2 == 0 else [below]
        if sweep >= SWEEPS - 4:
            sides = [above, below]
        for layer in part.layers if sweep % 2 == 0 else reversed(part.layers):
            _pull(layer, x, _offsets(layer, size), sides)
    left = min(x[v] - size[v] / 2 for v in x)
    right = max(x[v] + size[v] / 2 for v in x)
    y, height = _heights(part, x)
    return Placed({v: at - left for v, at in x.items()}, y, right - left, height)


def _offsets(layer: Sequence[int], size: dict[int, float]) -> list[float]:
    """Return the places of a layer's vertices when they stand as close as they may."""
    offsets = [0.0]
    for a, b in pairwise(layer):
        gap = BEND_GAP if BEND_WIDTH in (size[a], size[b]) else NODE_GAP
        offsets.append(offsets[-1] + (size[a] + size[b]) / 2 + gap)
    return offsets


def _pull(
    layer: Sequence[int],
    x: dict[int, float],
    offsets: Sequence[float],
    sides: Sequence[dict[int, list[tuple[int, float]]]],
) -> None:
    """Move a layer to the least sum of `weight (x - wish)^2` in order: isotonic regression."""
    pools: list[tuple[float, float, int]] = []  # wish, weight, how many
    for v, offset in zip(layer, offsets, strict=True):
        near = [pair for side in sides for pair in side[v]]
        weight = sum(w for _, w in near)
        wish = sum(x[u] * w for u, w in near) / weight if weight else x[v]
        wish, weight, n = wish - offset, weight or 0.1, 1
        while pools and pools[-1][0] > wish:
            other, own, more = pools.pop()
            wish = (other * own + wish * weight) / (own + weight)
            weight, n = own + weight, n + more
        pools.append((wish, weight, n))
    at = [wish for wish, _, n in pools for _ in range(n)]
    x.update({v: a + offset for v, a, offset in zip(layer, at, offsets, strict=True)})


def _heights(part: Layered, x: dict[int, float]) -> tuple[dict[int, float], float]:
    """Return y of every vertex: layers are further apart where edges run far sideways."""
    layer_of = {v: k for k, layer in enumerate(part.layers) for v in layer}
    reach = [0.0] * len(part.layers)
    for a, b in (piece for way in part.routes.values() for piece in pairwise(way)):
        reach[layer_of[b]] = max(reach[layer_of[b]], abs(x[a] - x[b]))
    y: dict[int, float] = {}
    at = NODE_HEIGHT / 2
    most = max(110.0, 0.035 * (max(x.values()) - min(x.values())))
    for k, layer in enumerate(part.layers):
        if k:
            at += NODE_HEIGHT + min(max(0.14 * reach[k], 30.0), most)
        y.update(dict.fromkeys(layer, at))
    return y, ceil(at + NODE_HEIGHT / 2)
