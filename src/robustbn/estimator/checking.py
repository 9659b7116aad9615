"""Compare new rows with the good rows of a fit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robustbn._core.findings import ERROR, WARNING, Finding, Kind, Remedy, rank_findings
from robustbn._core.numbers import count
from robustbn._core.trust import DOUBT
from robustbn._learn.gate import ALARM, Batch, compare_batch
from robustbn._learn.origins import log_tail
from robustbn._rows.memory import load_codes
from robustbn._show.words import as_text, percent
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
    counts = learned.written_counts / learned.effect
    load = partial(load_codes, kernels=fit.kernels, n_threads=fit.n_threads)
    batch = compare_batch(counts, rows, fit.result_.calibration, load, table.codes)
    found = [
        *_tell_unlikely(batch),
        *_tell_moved(fit, batch),
        *_tell_known(fit, table, learned.model.weigh(rows)),
        *_tell_missing(fit, table),
        *_tell_unknown(table),
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
    order = np.argsort(-batch.effect[:-1], kind="stable")[:MOST_TABLES]
    if batch.moved[-1] > 0 and not batch.moved[:-1].any():
        yield Finding(
            Kind.NEW_ROWS,
            ERROR if batch.effect[-1] >= LARGE_EFFECT else WARNING,
            f"Taken together, the tables have changed ({batch.effect[-1]:.3f} nats per row), "
            "although no single table has clearly changed.",
            1 - math.exp(-float(batch.moved[-1])),
            n_rows=batch.n_rows,
            nats=float(batch.moved[-1]),
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


def _tell_unknown(table: Table) -> Iterator[Finding]:
    """Yield the columns with values that are not states."""
    for odd in table.aside.clues.odd:
        if odd.column not in table.states or odd.kind == "declared missing":
            continue
        values = ", ".join(repr(as_text(v)) for v in list(odd.examples)[:3])
        yield Finding(
            Kind.UNREADABLE,
            ERROR,
            f"{count(odd.n, 'value')} of {as_text(odd.column)} {'is' if odd.n == 1 else 'are'} "
            f"unknown to the model: {values}.",
            1.0,
            (odd.column,),
            n_rows=odd.n,
            n_cells=odd.n,
            cause=odd.kind,
            advice=Remedy(
                "Map these values to states, or correct them.",
                f"robustbn score MODEL NEW --labels {odd.column}:VALUE=STATE",
                "robustbn.read_table(new_table, network, labels={...})",
            ),
        )
