"""The data behind the page: tables, rows, pairs as small JSON, safe inside a script element.

Probabilities are whole numbers of 1/100,000; what can be computed from others is left to the page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import sum_over_rows
from robustbn._core.result import RepeatedRow
from robustbn._show.explain import ExplainedRow
from robustbn._show.measures import FEW_ROWS, UNMOVED, MissingEdge
from robustbn._show.page.drawing import colour_steps
from robustbn._show.page.evidence import line_of, most_frequent, profile_columns, raw_numbers
from robustbn._show.result import FitResult
from robustbn._show.words import LEAST_GROUP, MOST_KEPT, as_text
from robustbn.network import BayesianNetwork

UNIT = 100_000
MAX_CONFIGURATIONS = 500  # of one table
CELLS_SHOWN = 30_000  # of all tables together
WHOLE_STATES = 200  # of a node whose configurations are shown as a whole; of others, single cells
MAX_LABELS = 1_000  # of a node; of others, those alone that are on the page
MAX_ROWS = 2_000
MAX_RAW = 20_000  # numbers before cutting, of all rows together
MAX_ROW_BYTES = 450_000  # of all rows together

Numbers = dict[str, int]  # of nodes


def to_script_json(data: object) -> str:
    """Return JSON in plain ASCII that cannot end a script element or start a comment in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def page_data(result: FitResult) -> dict[str, Any]:
    """Return all that the page's script needs."""
    network, cards = result.network, result.network.layout.cards
    number = {node: i for i, node in enumerate(network.nodes)}
    tables = [_table(result, i, kept) for i, kept in enumerate(choose_configurations(result))]
    total, trusted = (
        float(sum_over_rows(network.layout, c)) for c in (result.plain_counts, result.counts)
    )
    rows, repeats = ((), ()) if result.rows_hidden else (result.rows, result.repeats)
    lines = [row.states for row in rows]
    lines += [tuple(each.states[node] for node in network.nodes) for each in repeats]
    codes = _code_rows(network, lines)
    is_holed = bool((codes == np.array(cards)).any())
    bits = bits_of(cards, is_holed)
    packed = pack_rows(codes, bits)
    n_rows = min(MAX_ROWS, len(rows), MAX_ROW_BYTES // max(1, sum(bits) // 6))
    parts: dict[str, int] = {}  # of reasons: many are the same, and stand once
    return {
        "unit": UNIT,
        "few": FEW_ROWS,
        "unmoved": UNMOVED,
        "total": total,
        "trusted": trusted,
        "group": LEAST_GROUP,
        "kept": MOST_KEPT,
        "title": as_text(result.title),
        "nodes": _nodes(result, number, tables, _used_states(result, number, tables, codes)),
        "order": [number[moved.node] for moved in result.moved_tables],
        "names": [] if result.rows_hidden else [as_text(name) for name in result.row_names],
        "kinds": [kind.number for kind in result.kinds],
        "holes": int(is_holed),
        "line": line_of(result),
        "raw": _raw(result, [row.row for row in rows[:n_rows]]),
        "rows": [
            _row(row, number, states, parts)
            for row, states in zip(rows[:n_rows], packed, strict=False)
        ],
        "parts": list(parts),
        "repeats": [
            _repeat(result, each, states)
            for each, states in zip(repeats, packed[len(rows) :], strict=True)
        ],
        "pairs": [_pair(edge, number) for edge in result.edges],
    }


def _nodes(
    result: FitResult, number: Numbers, tables: list[dict[str, Any]], used: dict[int, list[int]]
) -> list[dict[str, Any]]:
    network, moves = result.network, result.moves
    steps = colour_steps(moves.moved)
    n_configurations = np.diff(network.layout.config_start)
    nodes: list[dict[str, Any]] = []
    profiles = profile_columns(result)
    for i, node in enumerate(network.nodes):
        states = network.states[node]
        shown: dict[str, Any] = {
            "name": as_text(node),
            "states": [as_text(states[v]) for v in used.get(i, range(len(states)))],
            "nStates": len(states),
            "parents": [number[p] for p in network.parents[node]],
            "step": int(steps[i]),
            "moved": _short(moves.moved[i]),
            "error": _short(moves.error[i]),
            "perConfiguration": round(float(moves.rows_per_configuration[i]), 1),
            "onlyDistrusted": int(moves.n_only_distrusted[i]),
            "size": int(n_configurations[i]),
            "missing": 0.0 if result.inferred is None else _short(result.inferred.missing[i]),
            "table": tables[i],
            "profile": profiles[i],
        }
        nodes.append(shown | ({"codes": used[i]} if i in used else {}))
    return nodes


def _used_states(
    result: FitResult, number: Numbers, tables: list[dict[str, Any]], codes: NDArray[np.int64]
) -> dict[int, list[int]]:
    """Return, for each node of very many states, those that the page shows."""
    layout = result.network.layout
    used = {
        i: set(codes[:, i].tolist()) for i, card in enumerate(layout.cards) if card > MAX_LABELS
    }
    for i, table in enumerate(tables):
        if i in used:
            used[i].update(table["state"])
            used[i].update(most_frequent(result, i))
        *parents, _ = layout.families[i]
        if not used.keys().isdisjoint(parents):
            which = table.get("which", range(layout.config_start[i + 1] - layout.config_start[i]))
            cards = [layout.cards[p] for p in parents]
            given = np.unravel_index(np.array(list(which), np.int64), cards)
            for p, states in zip(parents, given, strict=True):
                used.get(p, set()).update(states.tolist())
    for edge in result.edges:
        for node, states in ((edge.parent, edge.parent_codes), (edge.child, edge.child_codes)):
            used.get(number[node], set()).update(states.tolist())
    return {i: sorted(v for v in own if v < layout.cards[i]) for i, own in used.items()}


def choose_configurations(result: FitResult) -> list[NDArray[np.int64]]:
    """Return, for each node, the configurations to show, by their number in the node's table."""
    # All of them while they are few; otherwise those that add most to the node's move, nodes that
    # moved most being served first. Of a node with very many states none: see `_cells`.
    layout = result.network.layout
    share = layout.sum_configurations(result.counts)
    weight = share * result.moves.of_configuration
    kept: list[NDArray[np.int64]] = [np.arange(0)] * layout.n_nodes
    left = CELLS_SHOWN
    for i in np.argsort(-result.moves.moved, kind="stable"):
        if layout.cards[i] > WHOLE_STATES:
            continue
        own = slice(layout.config_start[i], layout.config_start[i + 1])
        n = own.stop - own.start
        most = min(n, MAX_CONFIGURATIONS, max(left, 0) // layout.cards[i])
        if most == n:
            kept[i] = np.arange(n)
        else:  # by what they add; then by how many rows they have
            order = np.lexsort((-share[own], -weight[own]))
            kept[i] = np.sort(order[:most])
        left -= most * layout.cards[i]
    return kept


def _table(result: FitResult, i: int, kept: NDArray[np.int64]) -> dict[str, Any]:
    """Return configurations of a node: robust, plain - robust, trusted rows, all rows."""
    layout = result.network.layout
    counts, plain_counts = (
        layout.table_of(i, c).sum(axis=1) for c in (result.counts, result.plain_counts)
    )
    q = layout.table_of(i, result.network.probabilities)
    plain = layout.table_of(i, result.plain_network.probabilities)
    if layout.cards[i] > WHOLE_STATES:
        return _cells(q, plain, counts, plain_counts)
    robust = _whole(q[kept])
    table: dict[str, Any] = {
        "robust": robust.ravel().tolist(),
        "change": (_whole(plain[kept]) - robust).ravel().tolist(),
        "n": [_round_rows(c) for c in counts[kept].tolist()],
        "all": [_round_rows(c) for c in plain_counts[kept].tolist()],
    }
    if len(kept) < len(q):
        table["which"] = kept.tolist()
    return table


def _cells(
    q: NDArray[np.float64],
    plain: NDArray[np.float64],
    counts: NDArray[np.float64],
    plain_counts: NDArray[np.float64],
) -> dict[str, Any]:
    """Return the cells of a wide table that moved most, and how far the others moved at most."""
    apart = np.abs(q - plain)
    weight = (counts[:, None] * apart + 1e-9 * counts[:, None] * q).ravel()
    order = np.argsort(-weight, kind="stable")[:WHOLE_STATES]
    which, state = np.divmod(order, q.shape[1])
    rest = apart.ravel().copy()
    rest[order] = 0
    robust = _whole(q[which, state])
    return {
        "which": which.tolist(),
        "state": state.tolist(),
        "robust": robust.tolist(),
        "change": (_whole(plain[which, state]) - robust).tolist(),
        "n": [_round_rows(c) for c in counts[which].tolist()],
        "all": [_round_rows(c) for c in plain_counts[which].tolist()],
        "rest": q.size - len(order),
        "restMoved": _short(rest.max(initial=0.0)),
    }


def _raw(result: FitResult, rows: list[int]) -> dict[str, list[float | None]]:
    """Return the numbers of rows before they were cut into intervals, by node; none if too many."""
    raw = raw_numbers(result, rows) if rows else {}
    most = MAX_RAW // max(len(raw), 1)
    return {
        node: [_short(v) if np.isfinite(v) else None for v in values[:most].tolist()]
        for node, values in raw.items()
    }


def _pair(edge: MissingEdge, number: Numbers) -> dict[str, Any]:
    return {
        "parent": number[edge.parent],
        "child": number[edge.child],
        "gain": _short(edge.gain),
        "given": edge.parent_codes.tolist(),
        "state": edge.child_codes.tolist(),
        "seen": _whole(edge.seen).tolist(),
        "expected": _whole(edge.expected).tolist(),
        "n": [_round_rows(n) for n in edge.n_rows.tolist()],
    }


def _row(row: ExplainedRow, number: Numbers, states: str, parts: dict[str, int]) -> list[Any]:
    return [
        int(row.row),
        round(float(row.weight), 4),
        [parts.setdefault(part, len(parts)) for part in as_text(row.why).split("; ")],
        [number[node] for node in row.blamed if node in number],
        states,
        [as_text(name) for name in row.names],
        int(row.n_alike),
        [[int(other), *(as_text(name) for name in names)] for other, names in row.alike],
        int(row.kind),
    ]


def _repeat(result: FitResult, row: RepeatedRow, states: str) -> list[Any]:
    names = result.kept_names.get(row.row, [""] * len(result.row_names))
    expected = float(f"{row.expected:.3g}")
    return [int(row.row), int(row.seen), expected, states, [as_text(name) for name in names]]


def _round_rows(weight: float) -> float:
    """Keep few rows exact enough to be told from `FEW_ROWS`; whole numbers without a point."""
    rounded = round(weight, 3 if weight < 100 else 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _short(value: float) -> float:
    return float(f"{float(value):.5g}")


def _whole(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(shares * UNIT).astype(np.int64)


# --- the states of rows in few bytes: each in as many bits as its node needs --------------------


def _code_rows(network: BayesianNetwork, lines: Sequence[Sequence[Hashable]]) -> NDArray[np.int64]:
    """Return rows by the codes of their states, one past the last for a missing value."""
    code_of = [{s: v for v, s in enumerate(network.states[node])} for node in network.nodes]
    codes = [[c.get(s, len(c)) for c, s in zip(code_of, line, strict=True)] for line in lines]
    return np.array(codes, np.int64).reshape(len(lines), network.n_nodes)


def bits_of(cards: Sequence[int], is_holed: bool) -> list[int]:
    """Return the bits that each node takes: what `c - 1` needs, or c if values are missing."""
    return [int(card - 1 + is_holed).bit_length() for card in cards]


def pack_rows(codes: NDArray[np.int64], bits: Sequence[int]) -> list[str]:
    """Return each row in base64: node by node, the highest bit first."""
    columns = [
        ((codes[:, i, None] >> np.arange(size - 1, -1, -1)) & 1).astype(np.uint8)
        for i, size in enumerate(bits)
    ]
    packed = np.packbits(np.concatenate(columns, axis=1), axis=1)
    return [base64.b64encode(line.tobytes()).decode("ascii") for line in packed]
