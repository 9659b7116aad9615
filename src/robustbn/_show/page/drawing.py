"""Draw a network as SVG: places for the nodes, ways for the edges, colours for the tables.

The picture carries its own light colours as attributes, so that it looks right where styles are
stripped; its classes (`node`, `edge`, `c0` to `c6`) let a page restyle it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10, sqrt
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from robustbn._core.numbers import count
from robustbn._show.page.layering import Edge, Layered, layer_graph
from robustbn._show.words import as_text, shorten
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
DRAWING_SWEEPS = 24
MARGIN = 16.0
BOW = 35.0  # of a missing edge between neighbours: over a box and what stands between
INSIDE = 3.0  # from the rim, for the width of a line


@dataclass(frozen=True)
class Picture:
    """A network laid out: what a drawing in any format needs.

    Parameters
    ----------
    labels, boxes : of each node: its name, shortened, and its centre and width.
    routes : of each edge: curves from its parent to its child, as `(letter, numbers)` of SVG paths:
        M x y, L x y, C x1 y1 x2 y2 x y.
    width, height : of the whole.
    """

    labels: list[str]
    boxes: list[tuple[float, float, float]]
    routes: dict[Edge, list[tuple[str, tuple[float, ...]]]]
    width: float
    height: float


@dataclass(frozen=True)
class Placed:
    """Where the vertices of one part of the graph have their centres, and its size."""

    x: dict[int, float]
    y: dict[int, float]
    width: float
    height: float


def colour_steps(moved: NDArray[np.float64], top: float) -> NDArray[np.int64]:
    """Return the step of `SCALE` for each value, from 0 for nothing to 6 at `top`."""
    steps: NDArray[np.int64] = np.clip(moved / top * len(SCALE), 0, len(SCALE) - 1).astype(np.int64)
    return steps


def nice_top(largest: float) -> float:
    """Return the end of the colour scale: a round number above the largest, at least 1 %."""
    largest = max(largest, 0.01)
    power: float = 10.0 ** floor(log10(largest))
    return next(f * power for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if f * power >= largest * 0.999)


def draw_network(
    network: BayesianNetwork,
    moved: NDArray[np.float64] | None = None,
    *,
    top: float | None = None,
    is_strong: Sequence[bool] | None = None,
    notes: Sequence[str] | None = None,
    is_interactive: bool = False,
    name: str = "network",
    missing: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the network as one `<svg>` element; every label is escaped.

    Parameters
    ----------
    moved : how far each node's table moved, for its colour; no colour by default.
    top : the value of the strongest colour; by default the largest, rounded up.
    is_strong : nodes to draw with a dark outline.
    notes : a line a node to show on hover and to read aloud; by default its name.
    is_interactive : whether nodes are buttons (for the page's script).
    name : start of the ids in the picture; give each picture of a document its own.
    missing : edges that the network lacks, parent and child, drawn dashed in another colour.
    """
    nodes = network.nodes
    picture = lay_out(network)
    steps = np.zeros(len(nodes), np.int64)
    if moved is not None:
        steps = colour_steps(moved, top or nice_top(float(moved.max())))
    lines = [_head(network, picture, name)]
    lines.append(f'<g class="edges" fill="none" stroke="{EDGE_COLOUR}" stroke-width="1.2">')
    lines.extend(_draw_edge(edge, route) for edge, route in picture.routes.items())
    lines.append("</g>")
    for k, (parent, child) in enumerate(missing):
        ends = picture.boxes[nodes.index(parent)], picture.boxes[nodes.index(child)]
        note = f"{as_text(parent)} and {as_text(child)} depend on each other without an edge"
        lines.append(_draw_missing(k, note, ends, (picture.width, picture.height)))
    lines.append('<g class="nodes" font-size="12" text-anchor="middle">')
    for i, node in enumerate(nodes):
        note = as_text(node) if notes is None else notes[i]
        lines.append(
            _draw_node(
                i,
                picture.labels[i],
                note,
                picture.boxes[i],
                int(steps[i]),
                bool(is_strong is not None and is_strong[i]),
                is_interactive,
            )
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
    placed, (width, height) = _place(parts, widths)
    boxes = {v: (at.x[v], at.y[v], widths[v]) for at in placed for v in at.x if v < len(nodes)}
    routes = {
        edge: _route(way, at)
        for part, at in zip(parts, placed, strict=True)
        for edge, way in part.routes.items()
    }
    return Picture(labels, [boxes[i] for i in range(len(nodes))], routes, width, height)


def _head(network: BayesianNetwork, picture: Picture, name: str) -> str:
    edges = len(network.edges)
    description = (
        f"{count(network.n_nodes, 'node')} in layers, parents above their children, joined by "
        f"{count(edges, 'arrow')}."
    )
    width, height = picture.width, picture.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rbn-network" role="group" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'preserveAspectRatio="xMidYMid meet" '
        f'aria-labelledby="{escape(name)}-title {escape(name)}-desc" '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif">'
        f'<title id="{escape(name)}-title">The network</title>'
        f'<desc id="{escape(name)}-desc">{description}</desc>'
    )


def _draw_node(
    i: int,
    label: str,
    note: str,
    box: tuple[float, float, float],
    step: int,
    is_strong: bool,
    is_interactive: bool,
) -> str:
    x, y, width = box
    stroke, thick = (STRONG_OUTLINE, 1.6) if is_strong else (OUTLINE, 1.0)
    button = (
        f' role="button" tabindex="-1" aria-pressed="false" aria-label="{escape(note)}"'
        if is_interactive
        else ""
    )
    return (
        f'<g class="node c{step}{" strong" if is_strong else ""}" data-node="{i}" '
        f'transform="translate({x:.1f} {y:.1f})"{button}>'
        f"<title>{escape(note)}</title>"
        f'<rect x="{-width / 2:.1f}" y="{-NODE_HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{NODE_HEIGHT:.0f}" rx="7" fill="{SCALE[step]}" stroke="{stroke}" '
        f'stroke-width="{thick}"/>'
        f'<text y="4" fill="{INK_ON_SCALE[step]}">{escape(label)}</text></g>'
    )


def _draw_edge(edge: Edge, route: list[tuple[str, tuple[float, ...]]]) -> str:
    """Return one path: the route, and a tip at its end."""
    path = "".join(f"{letter}{' '.join(f'{v:.0f}' for v in at)}" for letter, at in route)
    return f'<path data-edge="{edge[0]} {edge[1]}" d="{path}m-3.5 -6 3.5 6 3.5 -6"/>'


def _draw_missing(
    k: int,
    note: str,
    ends: tuple[tuple[float, float, float], tuple[float, float, float]],
    size: tuple[float, float],
) -> str:
    """Return a bow from box to box, and a wider one that can be hit."""
    (x0, y0, _), (x1, y1, _) = ends
    x, y = _bend((x0, y0), (x1, y1), size)
    path = f"M{x0:.1f} {y0:.1f}Q{x:.1f} {y:.1f} {x1:.1f} {y1:.1f}"
    return (
        f'<g class="missing" data-pair="{k}" fill="none"><title>{escape(note)}</title>'
        f'<path class="hit" d="{path}" stroke="transparent" stroke-width="14"/>'
        f'<path class="line" d="{path}" stroke="{MISSING_COLOUR}" stroke-width="2.2" '
        'stroke-dasharray="6 4"/></g>'
    )


def _bend(
    start: tuple[float, float], end: tuple[float, float], size: tuple[float, float]
) -> tuple[float, float]:
    """Return the point towards which a bow bends, halfway, so that it stays in the picture."""
    (x0, y0), (x1, y1), (width, height) = start, end, size
    dx, dy = x1 - x0, y1 - y0
    if abs(dy) >= NODE_HEIGHT:
        x, y = (x0 + x1) / 2 - 0.12 * dy, (y0 + y1) / 2 + 0.12 * dx
        return min(max(x, INSIDE), width - INSIDE), min(max(y, INSIDE), height - INSIDE)
    above, below = min(y0, y1), max(y0, y1)  # side by side: over the tops, or under them
    if above - BOW >= INSIDE:
        return (x0 + x1) / 2, above - 2 * BOW
    return (x0 + x1) / 2, below + 2 * min(BOW, height - INSIDE - below)


def _route(way: list[int], places: Placed) -> list[tuple[str, tuple[float, ...]]]:
    """Return curves between the layers, and straight lines through them."""
    half = NODE_HEIGHT / 2
    x, y = places.x, places.y
    at = y[way[0]] + half
    route: list[tuple[str, tuple[float, ...]]] = [("M", (x[way[0]], at))]
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


# --- places ---------------------------------------------------------------------------------------


def _place(
    parts: Sequence[Layered], widths: Sequence[float]
) -> tuple[list[Placed], tuple[float, float]]:
    """Place each connected part, then put the parts on shelves, tallest first."""
    alone = [_place_part(part, widths) for part in parts]
    area = sum((p.width + NODE_GAP) * (p.height + NODE_GAP) for p in alone)
    widest, wanted = max(p.width for p in alone), 1.7 * sqrt(area)
    shelf_width = widest if widest > 0.6 * wanted else wanted
    placed = list(alone)
    left = top = shelf_height = right = 0.0
    for k in sorted(range(len(parts)), key=lambda k: -alone[k].height):
        part = alone[k]
        if left > 0 and left + part.width > shelf_width:
            left, top, shelf_height = 0.0, top + shelf_height + 2 * NODE_GAP, 0.0
        placed[k] = Placed(
            {v: x + left + MARGIN for v, x in part.x.items()},
            {v: y + top + MARGIN for v, y in part.y.items()},
            part.width,
            part.height,
        )
        left += part.width + NODE_GAP
        right = max(right, left - NODE_GAP)
        shelf_height = max(shelf_height, part.height)
    return placed, (right + 2 * MARGIN, top + shelf_height + 2 * MARGIN)


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
    for sweep in range(DRAWING_SWEEPS):
        if sweep >= DRAWING_SWEEPS - 4:
            sides: tuple[dict[int, list[tuple[int, float]]], ...] = (above, below)
        else:
            sides = (above,) if sweep % 2 == 0 else (below,)
        for layer in part.layers if sweep % 2 == 0 else reversed(part.layers):
            _pull(layer, x, size, sides)
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
    size: dict[int, float],
    sides: Sequence[dict[int, list[tuple[int, float]]]],
) -> None:
    """Move one layer to the least sum of `weight (x - wish)^2` that keeps order and distances.

    In the coordinates `x - offset` the order is all that must be kept: isotonic regression, by
    pooling neighbours that would cross.
    """
    offsets = _offsets(layer, size)
    pools: list[list[float]] = []  # wish, weight, how many
    for v, offset in zip(layer, offsets, strict=True):
        near = [pair for side in sides for pair in side[v]]
        weight = sum(w for _, w in near)
        wish = sum(x[u] * w for u, w in near) / weight if weight else x[v]
        pools.append([wish - offset, weight or 0.1, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            wish_b, weight_b, n_b = pools.pop()
            wish_a, weight_a, n_a = pools.pop()
            weight = weight_a + weight_b
            pools.append([(wish_a * weight_a + wish_b * weight_b) / weight, weight, n_a + n_b])
    at = [wish for wish, _, n in pools for _ in range(int(n))]
    x.update({v: a + offset for v, a, offset in zip(layer, at, offsets, strict=True)})


def _heights(part: Layered, x: dict[int, float]) -> tuple[dict[int, float], float]:
    """Return y of every vertex: layers are further apart where edges run far sideways."""
    layer_of = {v: k for k, layer in enumerate(part.layers) for v in layer}
    reach = [0.0] * len(part.layers)
    for way in part.routes.values():
        for a, b in pairwise(way):
            reach[layer_of[b]] = max(reach[layer_of[b]], abs(x[a] - x[b]))
    y: dict[int, float] = {}
    at = NODE_HEIGHT / 2
    most = max(110.0, 0.035 * (max(x.values()) - min(x.values())))
    for k, layer in enumerate(part.layers):
        if k:
            at += NODE_HEIGHT + min(max(0.14 * reach[k], 30.0), most)
        y.update(dict.fromkeys(layer, at))
    return y, ceil(at + NODE_HEIGHT / 2)
