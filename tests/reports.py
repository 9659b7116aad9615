"""Reports to test with: of a robust fit, of rows known to be bad, of labels that attack."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, sample
from robustbn._core.groups import Cause, Example, Group, MovedCell, UnusualCell
from robustbn._core.result import RepeatedRow, Round
from robustbn._show.explain import ExplainedRow
from robustbn._show.findings import find_all
from robustbn._show.measures import measure_moves, moved_tables
from robustbn._show.posterior import find_posterior
from robustbn._show.result import FitResult
from robustbn._show.words import percent
from robustbn._tables.aside import Aside
from robustbn.adversary import corrupt

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "]]> --> <!--",
    "\"quotes\" and 'apostrophes' & ampersands",
    "=HYPERLINK(1)\tand\na line\u2028break",
    "{{ 7 * 7 }} ${7*7} \\u003c",
    "العربية \u202e 日本語 \U0001f600",
    "x" * 300,
)


def explain(network, codes, row, weight, n_cells=3):
    """The least likely cells of a row, in words; the estimator's own explanation is better."""
    layout = network.layout
    families = zip(layout.strides, layout.families, strict=True)
    cells = [
        int(layout.cell_start[i]) + sum(s * int(codes[c]) for s, c in zip(steps, own, strict=True))
        for i, (steps, own) in enumerate(families)
    ]
    p = network.probabilities[cells]
    worst = np.argsort(p, kind="stable")[:n_cells]
    states = tuple(network.states[n][int(v)] for n, v in zip(network.nodes, codes, strict=True))
    parts = [f"{network.nodes[i]} = {states[i]} ({percent(p[i])} of good rows)" for i in worst]
    blamed = tuple(network.nodes[i] for i in worst)
    return ExplainedRow(int(row), float(weight), states, "; ".join(parts), blamed)


def facts(**given):
    """What a page asks of the result of a fit, by hand; findings are made of it unless given."""
    no_codes = np.empty((0, given["network"].n_nodes), np.uint8)
    others = {
        **dict.fromkeys(
            ("kinds", "groups", "repeats", "rounds", "rows", "vanishing", "edges", "origins"), ()
        ),
        **{n: {} for n in ("dropped", "settings", "versions", "n_missing", "kept_names")},
        **dict.fromkeys(("diagnosis", "command", "table", "few_rows", "missing"), ""),
        "rows_hidden": False,
        "row_names": (),
        "seconds": math.nan,
        "title": "Robust tables",
        "misfit": None,
        "inferred": None,
        "cells": None,
        "judged": SimpleNamespace(drawn=np.empty(0, int), drawn_codes=no_codes),
        "aside": Aside(),
        "reading": SimpleNamespace(
            kind="frame", where="", n_read=given["n_rows"], n_included=given["n_rows"], n_copies=0
        ),
        "learned": SimpleNamespace(repetition=None),
        "deeper": SimpleNamespace(
            differences=[], swaps=[], scaled=[], repeated=(), find_places=lambda rows, but="": []
        ),
        "expert": None,
    }
    found = SimpleNamespace(**(others | given))
    q, plain = found.network.probabilities, found.plain_network.probabilities
    found.moves = measure_moves(found.network.layout, q, plain, found.counts, found.plain_counts)
    found.moved_tables = moved_tables(found.network, found.moves)
    found.n_moved = int(found.moves.is_significant.sum())
    rows = found.network.layout.sum_configurations(found.counts)
    found.posterior = find_posterior(found.network, found.counts, rows, 0.0, "")
    found.settings_in_words = found.settings
    if "findings" not in given:
        found.findings = find_all(found)
    found.shown = lambda **_: found
    return found


def changed(found, **changes):
    """What a fit found, or a row of it, with some of it changed."""
    if isinstance(found, SimpleNamespace):
        known = {name: value for name, value in vars(found).items() if name != "findings"}
        return facts(**(known | changes))
    if isinstance(found, FitResult):
        names = [n for n in dir(FitResult) if not n.startswith("_") and n != "findings"]
        known = {name: getattr(found, name) for name in (*found.__dataclass_fields__, *names)}
        return facts(**(known | changes))
    return replace(found, **changes)


def report_of(fit, rows, n_shown=500, **others):
    """What a fit found, with the rows explained in another way."""
    weights = np.asarray(fit.row_weights_, dtype=float)
    worst = np.flatnonzero(weights < 0.5)
    worst = worst[np.argsort(weights[worst], kind="stable")]
    counts, edges = np.histogram(weights, 20, (0, 1))
    fields = {
        "network": fit.network_,
        "plain_network": fit.plain_network_,
        "counts": fit.counts_,
        "plain_counts": fit.result_.learned.plain_counts,
        "n_rows": len(weights),
        "n_distrusted": len(worst),
        "effective_rows": weights.sum() ** 2 / (weights**2).sum(),
        "contamination": fit.contamination_,
        "converged": fit.converged_,
        "status": fit.status_,
        "weight_edges": edges,
        "weight_counts": counts,
        "kinds": fit.kinds_,
        "repeats": fit.repeats_,
        "rounds": fit.history_,
        "rows": [explain(fit.network_, rows[i], i, weights[i]) for i in worst[:n_shown]],
        "diagnosis": str(fit.diagnose()),
        "settings": {"method": "filter", "contamination": "auto", "random_state": "0"},
        "versions": {"robustbn": robustbn.__version__, "numpy": np.__version__},
        "seconds": 0.25,
        "command": "robustbn fit alarm.json rows.csv --seed 0 --out result",
        "title": "ALARM, 30,000 rows",
    }
    return facts(**(fields | others))


def fit_corrupted(network, n_rows, kind="mixture", eps=0.1):
    rows, _ = corrupt(sample(network, n_rows, 1), network, kind, eps, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return robustbn.RobustEstimator(network, random_state=0).fit(rows), rows


def quick_report(network, n_rows=4000, eps=0.1, n_shown=60, **others):
    """A report of any network without a fit: rows known to be bad have no weight."""
    rows, is_bad = corrupt(sample(network, n_rows, 1), network, "product", eps, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = MaximumLikelihoodEstimator(network).fit(rows[~is_bad])
        every = MaximumLikelihoodEstimator(network).fit(rows)
    bad = np.flatnonzero(is_bad)
    counts, edges = np.histogram(1.0 - is_bad, 20, (0, 1))
    fields = {
        "network": good.network_,
        "plain_network": every.network_,
        "counts": good.counts_,
        "plain_counts": every.counts_,
        "n_rows": n_rows,
        "n_distrusted": len(bad),
        "effective_rows": float(n_rows - len(bad)),
        "contamination": is_bad.mean(),
        "converged": True,
        "status": "The trusted rows look clean.",
        "weight_edges": edges,
        "weight_counts": counts,
        "rows": [explain(good.network_, rows[i], i, 0.0) for i in bad[:n_shown]],
    }
    return facts(**(fields | others))


def hostile_report():
    """Every label is an attack, or at least a nuisance."""
    names = [f"{label} {i}" for i, label in enumerate(HOSTILE)]
    first, second = names[:2]
    network = BayesianNetwork(
        {n: [first, second][:k] for n, k in zip(names, [0, 0, 2, 1, 1, 2, 1, 1], strict=True)},
        {
            n: list(HOSTILE[:3]) if i % 2 else [*HOSTILE[3:6], "\ud800\x00"]
            for i, n in enumerate(names)
        },
    )
    network = network.with_cpts(
        {n: np.full(network._shape_of(n), 1 / len(network.states[n])) for n in names}
    )
    cell = UnusualCell(names[2], {first: HOSTILE[3]}, HOSTILE[4], 0.9, 0.1, 0.5)
    states = {n: network.states[n][0] for n in names}
    return quick_report(
        network,
        kinds=[hostile_kind(cell, names)],
        repeats=[RepeatedRow(7, states, 50, 0.25)],
        rounds=[Round(0, HOSTILE[0], (3.0, 1.0), 1.1, 0.0, 0, 0.1)],
        diagnosis="\n".join(HOSTILE[:3]),
        settings={HOSTILE[0]: HOSTILE[1]},
        versions={HOSTILE[2]: HOSTILE[3]},
        command=HOSTILE[1],
        title=HOSTILE[0],
        status=HOSTILE[1],
        dropped={HOSTILE[0]: 3},
    )


def hostile_kind(cell, names, label=HOSTILE[1]):
    return Group(
        0.1,
        400.0,
        (cell,),
        cause=Cause(HOSTILE[0], (label,), 0.5, label),
        nats=2.0,
        moved=(MovedCell(cell.node, cell.parents, cell.state, 0.2, 0.4),),
        examples=(Example(3, {names[0]: label}, 9, {names[0]: HOSTILE[0]}, (names[0],)),),
    )


def star(n):
    parents = {"class": [], **{f"feature {i}": ["class"] for i in range(n)}}
    return BayesianNetwork(parents, dict.fromkeys(parents, ("a", "b")))
