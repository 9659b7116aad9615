"""Compare new rows with the good rows of a fit."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robustbn._core.clues import NO_STATE, OddValues
from robustbn._core.findings import ERROR, WARNING, Finding, Kind, Remedy, rank_findings
from robustbn._core.layout import Layout
from robustbn._core.numbers import count
from robustbn._core.protocols import Vector
from robustbn._core.result import Limit, UsualNumbers
from robustbn._core.trust import DOUBT
from robustbn._learn.gate import ALARM, Batch, compare_batch, count_states
from robustbn._learn.origins import log_tail
from robustbn._learn.usual_numbers import find_unusual, log_tail_of_new
from robustbn._rows.memory import load_codes
from robustbn._show.words import as_text, find_catch_all, percent
from robustbn._tables.coded import Table

if TYPE_CHECKING:
    from robustbn.estimator.robust import RobustEstimator

LARGE_EFFECT = 0.003  # nats per row by which a table differs: an error from here on
MANY_UNLIKELY = 0.01  # share of rows that are less likely than good ones: an error from here on
MOST_TABLES = 10  # that are reported
NOT_SAID = 5  # rows: fewer distrusted rows are never reported
UNLIKELY = "unlikely rows"
COMPARE = Remedy(
    "Compare the tables of the new rows with those of the fit.",
    "robustbn compare MODEL NEW_MODEL",
    "robustbn.fit(network, new_table).moved()",
)


def check_table(fit: RobustEstimator, table: Table) -> list[Finding]:
    """Return how new rows differ from good ones, the most serious finding first."""
    if not len(table):
        return []
    rows, learned = fit._load(table), fit.result_.learned
    counts, calibration = learned.written_counts / learned.effect, fit.result_.calibration
    load = partial(load_codes, kernels=fit.kernels, n_threads=fit.n_threads)
    batch = compare_batch(counts, rows, calibration, load, table.codes)
    numbers = list(_tell_numbers(fit, table))
    found = [
        *_tell_unlikely(batch),
        *_tell_moved(fit, batch),
        *numbers,
        *_tell_states(fit, batch, counts, {each.columns[0] for each in numbers}),
        *_tell_known(fit, table, learned.model.weigh(rows)),
        *_tell_missing(fit, table),
        *_tell_unknown(fit, table, counts),
    ]
    return rank_findings(found)


def share_unlikely(findings: list[Finding], n_rows: int) -> float:
    """Return the share of new rows that are less likely than good rows."""
    unlikely = [each.n_rows for each in findings if each.cause == UNLIKELY]
    return max(unlikely, default=0) / max(n_rows, 1)


def _tell_unlikely(batch: Batch) -> Iterator[Finding]:
    if batch.unlikely_nats <= 0:
        return
    n = batch.unlikely * batch.n_rows
    yield Finding(
        Kind.NEW_ROWS,
        ERROR if batch.unlikely >= MANY_UNLIKELY else WARNING,
        f"About {count(n, 'row')} ({percent(batch.unlikely)}) are less likely than good rows.",
        1 - math.exp(-batch.unlikely_nats),
        n_rows=round(n),
        nats=batch.unlikely_nats,
        cause=UNLIKELY,
        advice=Remedy(
            "Inspect the new rows: their columns may be mixed up, or they may come from another "
            "population.",
            "robustbn fit NETWORK NEW --report report.html",
            "robustbn.fit(network, new_table).findings_",
        ),
    )


def _tell_moved(fit: RobustEstimator, batch: Batch) -> Iterator[Finding]:
    nodes = fit.network_.nodes
    d = len(nodes)
    order = np.argsort(-batch.effect[:d], kind="stable")[:MOST_TABLES]
    if batch.moved[d] > 0 and not batch.moved[:d].any():
        yield Finding(
            Kind.NEW_ROWS,
            ERROR if batch.effect[d] >= LARGE_EFFECT else WARNING,
            f"Taken together, the tables have changed ({batch.effect[d]:.3f} nats per row), "
            "although no single table has clearly changed.",
            1 - math.exp(-float(batch.moved[d])),
            n_rows=batch.n_rows,
            nats=float(batch.moved[d]),
            cause="moved tables",
            advice=COMPARE,
        )
    for node in order[batch.moved[order] > 0].tolist():
        name, effect = as_text(nodes[node]), float(batch.effect[node])
        given = " given its parents" if fit.network_.parents[nodes[node]] else ""
        yield Finding(
            Kind.NEW_ROWS,
            ERROR if effect >= LARGE_EFFECT else WARNING,
            f"The distribution of {name}{given} has changed: its table differs by {effect:.3f} "
            f"nats per row, more than expected by chance with {count(batch.n_rows, 'row')}.",
            1 - math.exp(-float(batch.moved[node])),
            (nodes[node],),
            n_rows=batch.n_rows,
            n_cells=batch.n_rows,
            nats=float(batch.moved[node]),
            cause="moved table",
            advice=COMPARE,
        )


def _tell_states(
    fit: RobustEstimator, batch: Batch, known: Vector, told: set[str]
) -> Iterator[Finding]:
    """Yield the nodes whose states have other frequencies, but those that are told already.

    Nor those whose ancestors have moved so far that they move them, too: no further than all of
    them together.
    """
    network, d = fit.network_, fit.network_.n_nodes
    layout, effect = network.layout, batch.effect[d + 1 :]
    before, now = (count_states(layout, each) for each in (known, batch.counts))
    first = np.concatenate([[0], np.cumsum(layout.cards)])
    due = np.zeros(d)  # to the tables of the node and of its ancestors
    order = np.argsort(-effect, kind="stable")
    for node in range(d):
        due[node] = batch.effect[list(_find_ancestors(layout, node))].sum()
    for node in order[effect[order] > due[order]].tolist()[:MOST_TABLES]:
        name = network.nodes[node]
        if name in told:
            continue
        of = slice(first[node], first[node + 1])
        shares = now[of] / now[of].sum(), before[of] / before[of].sum()
        most = int(np.abs(shares[0] - shares[1]).argmax())
        is_rare = most == find_catch_all(network, name)
        label = "rare labels" if is_rare else as_text(network.states[name][most])
        yield Finding(
            Kind.NEW_ROWS,
            ERROR if effect[node] >= LARGE_EFFECT else WARNING,
            f"The frequencies of the states of {as_text(name)} have changed: "
            f"{percent(shares[0][most])} of the new rows are {label}, compared with "
            f"{percent(shares[1][most])} of the rows of the fit.",
            1 - math.exp(-float(batch.moved[d + 1 + node])),
            (name,),
            n_rows=batch.n_rows,
            n_cells=batch.n_rows,
            nats=float(batch.moved[d + 1 + node]),
            cause="moved states",
            advice=COMPARE,
        )


def _find_ancestors(layout: Layout, node: int) -> set[int]:
    """Return a node and all on which it depends."""
    found, waiting = set[int](), [node]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += layout.families[node]
    return found


def _tell_numbers(fit: RobustEstimator, table: Table) -> Iterator[Finding]:
    """Yield the columns with numbers where hardly any of the fit are."""
    usual, sample = fit.result_.deeper.numbers or {}, table.aside.clues.numbers
    calibration, d = fit.result_.calibration, fit.network_.n_nodes
    inflation = np.ones(2 * d + 2)
    if calibration is not None and len(calibration.inflation) == len(inflation):
        inflation = calibration.inflation
    scale = table.reading.n_read / max(len(sample.rows), 1)
    for node, values in sample.values.items():
        if node not in usual:
            continue
        own = inflation[
            fit.network_.nodes.index(node) + (d + 2 if fit.network_.parents[node] else 1)
        ]
        for limit, k, nats in find_unusual(values, usual[node], float(own), len(usual)):
            yield _tell_limit(node, usual[node], limit, round(k * scale), len(table), nats)


def _tell_limit(
    node: str, usual: UsualNumbers, limit: Limit, n: int, n_rows: int, nats: float
) -> Finding:
    """Return that so many new numbers of a node are beyond a limit."""
    share, before = n / n_rows, limit.n_beyond / usual.n_rows
    ends = f"{usual.low:g} to {usual.high:g}"
    if limit.is_far:
        where, seen = f"far outside the range of the fit ({ends})", ""
    else:
        where = f"{'above' if limit.is_upper else 'below'} {limit.at:g}"
        seen = f", compared with {percent(before)} in the fit (range {ends})"
    is_many = share - before >= MANY_UNLIKELY or limit.is_far
    return Finding(
        Kind.WRONG_CELLS if limit.is_far else Kind.NEW_ROWS,
        ERROR if nats > 0 and is_many else WARNING,
        f"{count(n, 'value')} of {as_text(node)} ({percent(share)} of the new rows) "
        f"{'is' if n == 1 else 'are'} {where}{seen}.",
        0.8 if nats <= 0 else max(1 - math.exp(-nats), 0.8),
        (node,),
        n_rows=n,
        n_cells=n,
        nats=nats,
        cause="far values" if limit.is_far else "unusual numbers",
        advice=Remedy(
            "Compare these values with their source: their unit, the decimal point, and codes for "
            "missing values.",
            "robustbn inspect NEW",
            f"new_table[new_table[{node!r}] {'><'[not limit.is_upper]} {limit.at:g}]",
        ),
    )


def _tell_known(
    fit: RobustEstimator, table: Table, weights: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> Iterator[Finding]:
    """Yield the groups of bad rows of the fit that are more frequent in the new rows."""
    is_bad = np.flatnonzero(weights < DOUBT)
    usual = min(max(fit.contamination_, 1e-4), 0.5)
    if len(is_bad) < NOT_SAID or log_tail(len(is_bad), len(table), usual) > math.log(ALARM):
        return
    numbers = Counter(fit.result_.number_kinds(table.codes[is_bad]).tolist())
    causes = {kind.number: kind.cause for kind in fit.kinds_}
    for number, n in numbers.most_common():
        cause = causes.get(number)
        name = f": {cause.name}. {cause.text}" if cause else "."
        group = f" of group {number} of the fit" if number else ""
        yield Finding(
            Kind.ROWS,
            ERROR if n >= MANY_UNLIKELY * len(table) else WARNING,
            f"{count(n, 'row is', 'rows are')} distrusted{group}, a larger share than in the "
            f"fit{name}",
            1.0,
            () if cause is None else cause.columns,
            n_rows=n,
            cause=cause.name if cause else "",
            group=number,
            advice=Remedy(
                "Inspect these rows.", "robustbn score MODEL NEW -o rows.csv", "fit.rows(new_table)"
            ),
        )


def _tell_missing(fit: RobustEstimator, table: Table) -> Iterator[Finding]:
    """Yield the columns with more missing values than in the fit."""
    before, now = fit.reading_, table.reading
    n_before, n_now = max(before.n_examined, 1), max(now.n_examined, 1)
    for node in fit.network_.nodes:
        n, usual = now.n_missing.get(node, 0), before.n_missing.get(node, 0) / n_before
        at_most = usual + 3 * math.sqrt((usual + 1 / n_before) / n_before)
        if n < NOT_SAID or at_most >= 1 or log_tail(n, n_now, at_most) > math.log(ALARM / 100):
            continue
        share = n / n_now
        yield Finding(
            Kind.MISSING,
            ERROR if share >= usual + 0.1 else WARNING,
            f"{as_text(node)} is missing from {percent(share)} of the new rows, compared with "
            f"{percent(usual)} of the rows of the fit.",
            0.99,
            (node,),
            n_rows=n,
            n_cells=n,
            advice=Remedy(
                "Check why these values are missing.",
                "robustbn inspect NEW",
                "new_table.isna().sum()",
            ),
        )


def _tell_unknown(fit: RobustEstimator, table: Table, known: Vector) -> Iterator[Finding]:
    """Yield the columns with values that are not states.

    A label that the fit did not see is an error if there are more than labels that it saw once
    allow: so frequent are new ones (Good and Turing).
    """
    layout, states = fit.network_.layout, count_states(fit.network_.layout, known)
    first = np.concatenate([[0], np.cumsum(layout.cards)])
    for odd in table.aside.clues.odd:
        if odd.column not in table.states or odd.kind == "declared missing":
            continue
        values = ", ".join(repr(as_text(v)) for v in list(odd.examples)[:3])
        node = fit.network_.nodes.index(odd.column)
        seen = np.round(states[first[node] : first[node + 1]])
        n_once, n_known = int(np.count_nonzero(seen == 1)), float(seen.sum())
        are_few = log_tail_of_new(odd.n, table.reading.n_read, n_once, n_known) > math.log(ALARM)
        yield Finding(
            Kind.UNREADABLE,
            WARNING if odd.kind == NO_STATE and are_few else ERROR,
            f"{count(odd.n, 'value')} of {as_text(odd.column)} {'is' if odd.n == 1 else 'are'} "
            f"unknown to the model: {values}.",
            1.0,
            (odd.column,),
            n_rows=odd.n,
            n_cells=odd.n,
            cause=odd.kind,
            advice=Remedy(
                "Map these values to states, or correct them.",
                f"robustbn score MODEL NEW --labels {shlex.quote(_guess_labels(odd, table))}",
                "robustbn.read_table(new_table, network, labels={...})",
            ),
        )


def _guess_labels(odd: OddValues, table: Table) -> str:
    """Return how to map unknown values, to the nearest states where there are any."""
    states = list(map(str, table.states[odd.column]))
    near = {value: get_close_matches(str(value), states, 1) for value in odd.examples}
    pairs = [f"{value}={found[0]}" for value, found in near.items() if found]
    return f"{odd.column}:{','.join(pairs) or 'VALUE=STATE'}"
