"""The data behind the page: tables, rows and repeats as small JSON, safe inside a script element.

Probabilities are whole numbers of 1/100,000; states of a row are positions in their node's list.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import sum_over_rows
from robustbn._show.page.content import FEW_ROWS, Report, as_text, interval
from robustbn._show.page.drawing import colour_steps, nice_top
from robustbn._show.words import LEAST_GROUP, MOST_KEPT

UNIT = 100_000
MAX_CONFIGURATIONS = 500  # of one table
CELLS_SHOWN = 60_000  # of all tables together
MAX_ROWS = 2_000
MAX_ROW_CELLS = 300_000  # of all rows together


def to_script_json(data: object) -> str:
    """Return JSON in plain ASCII that cannot end a script element or start a comment in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def page_data(report: Report) -> dict[str, Any]:
    """Return all that the page's script needs."""
    network = report.network
    labels = {n: [as_text(s) for s in network.states[n]] for n in network.nodes}
    moves = report.moves
    steps = colour_steps(moves.moved, nice_top(float(moves.moved.max())))
    number = {node: i for i, node in enumerate(network.nodes)}
    kept = choose_configurations(report)
    nodes = [
        {
            "name": as_text(node),
            "states": labels[node],
            "parents": [number[p] for p in network.parents[node]],
            "step": int(steps[i]),
            "moved": float(moves.moved[i]),
            "error": float(moves.error[i]),
            "strong": bool(moves.is_significant[i]),
            "perConfiguration": round(float(moves.rows_per_configuration[i]), 1),
            "onlyDistrusted": int(moves.n_only_distrusted[i]),
            "size": int(np.diff(network.layout.config_start)[i]),
            "missing": 0.0 if report.inferred is None else float(report.inferred.missing[i]),
            "table": _table(report, i, kept[i]),
        }
        for i, node in enumerate(network.nodes)
    ]
    return {
        "unit": UNIT,
        "few": FEW_ROWS,
        "total": float(sum_over_rows(network.layout, report.plain_counts)),
        "group": LEAST_GROUP,
        "kept": MOST_KEPT,
        "title": as_text(report.title),
        "nodes": nodes,
        "order": [number[m.node] for m in report.moved_tables],
        "names": [] if report.rows_hidden else [as_text(name) for name in report.row_names],
        "rows": [] if report.rows_hidden else _rows(report),
        "repeats": [] if report.rows_hidden else _repeats(report),
    }


def choose_configurations(report: Report) -> list[NDArray[np.int64]]:
    """Return, for each node, the configurations to show, by their number in the node's table.

    All of them while they are few; otherwise those that add most to the node's move, nodes that
    moved most being served first.
    """
    layout = report.network.layout
    share = layout.sum_configurations(report.counts)
    weight = share * report.moves.of_configuration
    kept: list[NDArray[np.int64]] = [np.arange(0)] * layout.n_nodes
    left = CELLS_SHOWN
    for i in np.argsort(-report.moves.moved, kind="stable"):
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


def _table(report: Report, i: int, kept: NDArray[np.int64]) -> dict[str, Any]:
    layout = report.network.layout
    cells = slice(layout.cell_start[i], layout.cell_start[i + 1])
    card = layout.cards[i]
    counts, plain_counts = (
        c[cells].reshape(-1, card).sum(axis=1) for c in (report.counts, report.plain_counts)
    )
    q = report.network.probabilities[cells].reshape(-1, card)
    plain = report.plain_network.probabilities[cells].reshape(-1, card)
    low, high = interval(q, counts[:, None])
    own = slice(layout.config_start[i], layout.config_start[i + 1])
    table: dict[str, Any] = {
        "robust": _whole(q[kept]),
        "low": _whole(low[kept]),
        "high": _whole(high[kept]),
        "plain": _whole(plain[kept]),
        "n": [_round_rows(c) for c in counts[kept].tolist()],
        "all": [_round_rows(c) for c in plain_counts[kept].tolist()],
        "moved": _whole(report.moves.of_configuration[own][kept]),
    }
    if report.inferred is not None:
        shown = report.inferred.observed_counts[cells].reshape(-1, card).sum(axis=1)
        table["shown"] = [_round_rows(c) for c in shown[kept].tolist()]
    if len(kept) < own.stop - own.start:
        table["which"] = kept.tolist()
    return table


def _round_rows(weight: float) -> float:
    """Keep few rows exact enough to be told from `FEW_ROWS`."""
    return round(weight, 3 if weight < 100 else 1)


def _whole(shares: NDArray[np.float64]) -> list[int]:
    whole: list[int] = np.rint(shares * UNIT).astype(np.int64).ravel().tolist()
    return whole


def _rows(report: Report) -> list[list[Any]]:
    code_of = _codes(report)
    number = {node: i for i, node in enumerate(report.network.nodes)}
    most = min(MAX_ROWS, MAX_ROW_CELLS // report.network.n_nodes)
    return [
        [
            int(row.row),
            round(float(row.weight), 4),
            as_text(row.why),
            [number[n] for n in row.blamed if n in number],
            [code.get(s, -1) for code, s in zip(code_of, row.states, strict=True)],
            [as_text(name) for name in row.names],
        ]
        for row in report.rows[:most]
    ]


def _repeats(report: Report) -> list[list[Any]]:
    code_of = _codes(report)
    nodes = report.network.nodes
    return [
        [
            int(r.row),
            int(r.seen),
            float(f"{r.expected:.3g}"),
            [code.get(r.states[n], -1) for code, n in zip(code_of, nodes, strict=True)],
        ]
        for r in report.repeats
    ]


def _codes(report: Report) -> list[Mapping[Hashable, int]]:
    states = report.network.states
    return [{s: v for v, s in enumerate(states[n])} for n in report.network.nodes]
