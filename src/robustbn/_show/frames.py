"""What a fit found as columns: single rows, tables, pairs, places, questions, headline figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from robustbn._core.cells import NO_CELLS, WrongCells
from robustbn._core.origins import Origin, say_place
from robustbn._core.trust import DOUBT, JudgedRows
from robustbn._show.result import FitResult
from robustbn._show.words import find_catch_all
from robustbn._tables.aside import Aside, beside
from robustbn._tables.coded import Table
from robustbn.exceptions import NotFittedError, SettingError
from robustbn.network import BayesianNetwork

OF_A_CLASS = "trusted: one of a group of good rows that the network does not describe"
MOST_CONFUSED = 3  # pairs of states of a column that are named
IN_DOUBT = "partly trusted; no single value is unusual"


def require_judged(result: FitResult, instead: str) -> JudgedRows:
    """Return what is known of the rows of a fit; refuse a model from a file, which has none."""
    if result.judged is None:
        raise NotFittedError(f"A model file does not contain the rows of the fit: {instead}.")
    return result.judged


def row_columns(result: FitResult, table: Table | None = None) -> dict[str, Any]:
    """Return a line a row: row, weight, is_suspicious, why; what names the rows comes before."""
    if table is None:
        judged, weights = result.judged, result.row_weights
        if judged is None or weights is None:
            raise NotFittedError(
                "The rows of the fit are not available, because this model was read from a file "
                "or has too many rows: call rows(X), or fit with "
                "streaming=Streaming(weights_to='...')."
            )
        reading, names = result.reading, result.aside.of()
        doubtful, codes = judged.numbers, judged.codes
    else:
        trust = result.learned.model.weigh(result.deeper.load(table.codes, holed=table.holed))
        is_bad = np.flatnonzero(trust < DOUBT)
        weights, codes, reading = table.spread(trust), table.codes[is_bad], table.reading
        doubtful = is_bad if table.kept is None else table.kept[is_bad]
        names = table.aside.of()
    why = np.full(len(weights), "", object)
    why[doubtful] = [reason.text for reason in result.explainer.explain(codes)]
    why[np.isnan(weights)] = f"left out: {reading.why_dropped}"
    columns = {
        "row": np.arange(len(weights)),
        "weight": weights,
        "is_suspicious": weights < DOUBT,
        "why": why,
    }
    return beside(names, columns)


def columns_of(found: Sequence[Any], **names: str) -> dict[str, list[Any]]:
    """Return columns of what things have, by the names that it has in them."""
    return {column: [getattr(each, name) for each in found] for column, name in names.items()}


def move_columns(result: FitResult) -> dict[str, Any]:
    """Return a line a node: how far its table moved, most first."""
    names = ("node", "moved", "error", "is_significant", "n_eff")
    return columns_of(result.moved_tables, **{name: name for name in names})


def edge_columns(result: FitResult, edges: list[Any]) -> dict[str, Any]:
    """Return a line a pair of nodes that depend on each other without an edge."""
    nodes = result.network.nodes
    ends = {name: [nodes[getattr(edge, name)] for edge in edges] for name in ("parent", "child")}
    return ends | columns_of(edges, gain="gain", p_value="p_value", cells="n_cells")


def origin_columns(origins: list[Origin]) -> dict[str, Any]:
    """Return a line a group of rows that holds more distrusted ones than chance."""
    return columns_of(
        origins, column="column", value="value", rows="n_rows", distrusted="n_distrusted",
        rate="rate", ratio="ratio", p_value="p_value",
    )  # fmt: skip


def question_columns(result: FitResult, n: int) -> dict[str, Any]:
    """Return a line a row that a person should look at, the most telling first."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise SettingError(f"n must be a whole number of rows, 0 or more; found {n!r}.")
    judged = require_judged(result, "fit again, and ask")
    deeper, network = result.deeper, result.network
    numbers, codes, trust = judged.candidates()
    drawn = (deeper.load(judged.drawn_codes), judged.drawn_trust)
    questions = deeper.find_questions(drawn, (deeper.load(codes), trust), n)
    trusted = set((np.flatnonzero(~result.learned.model.is_bad) + 1).tolist())
    places = np.array([q.place for q in questions], np.int64)
    reasons = result.explainer.explain(codes[places])
    asked: dict[str, Any] = {
        "row": numbers[places],
        "weight": trust[places],
        "group": [q.number for q in questions],
        "change": [q.change for q in questions],
        "why": [
            reason.text or (OF_A_CLASS if question.number in trusted else IN_DOUBT)
            for question, reason in zip(questions, reasons, strict=True)
        ],
    }
    labels = zip(*(network.label_row(line) for line in codes[places].tolist()), strict=True)
    for node, states in zip(network.nodes, labels, strict=False):
        asked[node if node not in asked else f"{node} (state)"] = list(states)
    return beside(result.aside.of(numbers[places]), asked)


def cell_columns(network: BayesianNetwork, wrong: WrongCells, aside: Aside) -> dict[str, Any]:
    """Return a line a cell that is likely to be wrong, the surest first."""
    labels = [network.states[node] for node in network.nodes]
    p = np.clip(wrong.probability.astype(np.float64), 1e-12, 1 - 1e-7)
    at = wrong.columns.tolist()
    columns = {
        "row": wrong.rows,
        "column": [network.nodes[j] for j in at],
        "seen": [labels[j][v] for j, v in zip(at, wrong.seen.tolist(), strict=True)],
        "likely": [labels[j][v] for j, v in zip(at, wrong.likely.tolist(), strict=True)],
        "probability": wrong.probability,
        "nats": np.log(p / (1 - p)),
    }
    return beside(aside.of(wrong.rows), columns)


def rate_columns(result: FitResult) -> dict[str, Any]:
    """Return a line a column: its rate of wrong cells, what is taken for what, and where most."""
    network, cells = result.network, result.cells
    rates = there = np.zeros(network.n_nodes)
    wrong, where = NO_CELLS, ""
    if cells is not None:
        rates, there, wrong = cells.rates, cells.worst_rates, cells.wrong
        where = "" if cells.by is None else say_place(*cells.by.place)
    order = np.argsort(-rates, kind="stable").tolist()
    numbers = np.bincount(wrong.columns, minlength=network.n_nodes)
    return {
        "column": [network.nodes[j] for j in order],
        "rate": rates[order],
        "cells": numbers[order],
        "confusions": [
            _say_confusions(network, wrong.picked(wrong.columns == j), j) for j in order
        ],
        "where": [where] * len(order),
        "rate_there": there[order],
    }


def _say_confusions(network: BayesianNetwork, wrong: WrongCells, j: int) -> str:
    """Return what is most often seen for what in a column, and how often."""
    node = network.nodes[j]
    labels, catch_all = list(network.states[node]), find_catch_all(network, node)
    if catch_all is not None:
        labels[catch_all] = "a rare label"
    pairs = Counter(zip(wrong.seen.tolist(), wrong.likely.tolist(), strict=True))
    return "; ".join(
        f"{labels[seen]} for {labels[likely]} ({n:,})"
        for (seen, likely), n in pairs.most_common(MOST_CONFUSED)
    )


def summary_columns(result: FitResult) -> dict[str, Any]:
    """Return the headline figures: their names, their values, and what they mean."""
    top = result.moved_tables[0]
    got = "the prior alone" if result.has_prior else "uniform tables (prior=1 smooths)"
    n_distrusted = math.nan if result.judged is None else result.n_distrusted
    unseen = len(result.unseen_configurations)
    lines = [
        ("rows", result.n_rows, "rows read and judged"),
        ("rows_left_out", result.reading.n_dropped, "rows read but not judged"),
        ("rows_distrusted", n_distrusted, "rows whose weight is below one half"),
        ("contamination", result.contamination, "share of the rows' weight that is distrusted"),
        ("effective_rows", result.effective_rows, "effective number of rows that remain"),
        ("largest_move", top.moved, f"share of rows in which the state of {top.node} would differ"),
        ("tables_moved", result.n_moved, "tables that changed by more than their error"),
        ("unseen_configurations", unseen, f"parent configurations without a trusted row: {got}"),
        ("kinds", len(result.kinds), "kinds of bad rows found"),
        ("repeated_rows", len(result.repeats), "rows that appear more often than expected"),
        ("rounds", len(result.rounds), "rounds of the fit"),
        ("converged", result.converged, result.status),
        (
            "seconds",
            result.seconds,
            "time for the fit, including reading unless the table was read before",
        ),
    ]
    names, values, meanings = zip(*lines, strict=True)
    return {"figure": list(names), "value": [float(v) for v in values], "meaning": list(meanings)}
