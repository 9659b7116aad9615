"""Wrong cells: how well they are found, left out of the tables, and mended.

`python -m benchmarks cells` measures, one part after another:

- exact: rows of ALARM with 0, 1, 3 and 10 % of all cells replaced at random; R is the error of the
  tables over that of clean rows.
- real: tables that nobody drew from a network, two structures, clean and with 1 and 4 % of the
  cells replaced; nats that held-out rows lose, and what is said of single cells.
- repair: public tables with known errors (`--dirt FOLDER`), with a network drawn from what their
  columns mean.

`--only exact` runs a part, `--tables 5` so many of the real tables.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import say
from benchmarks.real_tables import STRUCTURES, build_case, list_tables
from robustbn import BayesianNetwork, RobustEstimator, example_network, sample, total_variation
from robustbn._learn.mending import mend_by_votes, mend_labels

FLOOR = 1e-4  # of probabilities that held-out rows are scored by
NETWORKS: dict[str, dict[str, list[str]]] = {
    "hospital": {
        "provider_number": [], "name": ["provider_number"], "address_1": ["provider_number"],
        "city": ["provider_number"], "state": ["city"], "zip": ["provider_number"],
        "county": ["city"], "phone": ["provider_number"], "type": ["provider_number"],
        "owner": ["provider_number"], "emergency_service": ["provider_number"],
        "measure_code": [], "condition": ["measure_code"], "measure_name": ["measure_code"],
        "state_average": ["measure_code", "state"],
    },
    "flights": {
        "flight": [], "sched_dep_time": ["flight"], "act_dep_time": ["flight"],
        "sched_arr_time": ["flight"], "act_arr_time": ["flight"],
    },
    "beers": {
        "brewery_id": [], "brewery_name": ["brewery_id"], "city": ["brewery_id"],
        "state": ["brewery_id", "city"], "style": [], "abv": ["style"], "ibu": ["style"],
        "ounces": ["style"],
    },
    "rayyan": {
        "journal_title": [], "jounral_abbreviation": ["journal_title"],
        "journal_issn": ["journal_title"], "article_language": ["journal_title"],
        "article_jvolumn": [], "article_jissue": ["article_jvolumn"],
    },
}  # fmt: skip
KEYS = {"flights": "flight"}  # all rows of one describe the same thing


def spoil(rows: Any, cards: Any, share: float, seed: int = 1) -> Any:
    """Return rows with a share of the cells replaced by any state."""
    rng = np.random.default_rng(seed)
    any_state = (rng.random(rows.shape) * np.array(cards)).astype(rows.dtype)
    return np.where(rng.random(rows.shape) < share, any_state, rows)


def describe_cells(fit: Any, rows: Any, dirty: Any) -> str:
    """Say how many cells are flagged, how many of the sure ones are wrong, and mended rightly."""
    found = fit.result_.learned.cells
    if found is None:
        return "nothing flagged"
    wrong, n_wrong = found.wrong, max(int((rows != dirty).sum()), 1)
    is_wrong = rows[wrong.rows, wrong.columns] != dirty[wrong.rows, wrong.columns]
    sure = wrong.probability >= 0.9
    right = rows[wrong.rows, wrong.columns] == wrong.likely
    return (
        f"flagged {len(wrong) / rows.size:.3%}, recall {is_wrong.sum() / n_wrong:.2f}; "
        f"p >= .9: {sure.mean():.2f} of them, wrong {is_wrong[sure].mean():.3f}, "
        f"mended rightly {right[sure].mean():.3f}"
    )


def measure_exact(n_rows: int = 50_000) -> None:
    """Print R of ALARM at several shares of wrong cells."""
    alarm = example_network("alarm")
    rows = np.asarray(sample(alarm, n_rows, random_state=0))
    clean = 0.0
    for share in (0.0, 0.01, 0.03, 0.1):
        dirty, errors, seconds = spoil(rows, alarm.layout.cards, share), [], []
        for cells in ("trust", "find"):
            start = time.perf_counter()
            fit = RobustEstimator(alarm, prior=0.01, cells=cells, random_state=0).fit(dirty)
            seconds.append(time.perf_counter() - start)
            errors.append(total_variation(alarm, fit.network_))
        clean = clean or errors[0]
        trusted, found = (error / clean for error in errors)
        say(
            f"ALARM, {share:.0%} of cells: R {trusted:.2f} if cells are trusted, {found:.3f} if "
            f"found; {describe_cells(fit, rows, dirty)}; {seconds[0]:.1f} and {seconds[1]:.1f} s"
        )


def measure_real(n_tables: int | None) -> None:
    """Print what wrong cells cost held-out rows of real tables."""
    for table in list_tables()[:n_tables]:
        for structure in STRUCTURES:
            case = build_case(table, structure)
            best = _score(case.network, case.rows, case.judges, "trust")[0]
            for share in (0.0, 0.01, 0.04):
                dirty = spoil(case.rows, case.cards, share, seed=7)
                lost, _ = _score(case.network, dirty, case.judges, "trust")
                left, fit = _score(case.network, dirty, case.judges, "find")
                say(
                    f"{table} {structure} {share:.0%}: counting loses {best - lost:.4f} nats a "
                    f"row, cells {best - left:.4f}; {describe_cells(fit, case.rows, dirty)}"
                )


def _score(network: BayesianNetwork, rows: Any, judges: Any, cells: str) -> tuple[float, Any]:
    """Return the mean log-likelihood of held-out rows by tables of good rows, and the fit."""
    fit = RobustEstimator(network, 1e-9, prior=0.5, cells=cells, random_state=0).fit(rows)
    layout, total = network.layout, np.zeros(len(judges))
    for i, family in enumerate(layout.families):
        at = layout.cell_start[i] + judges[:, family].astype(np.int64) @ np.array(layout.strides[i])
        q = fit.network_.probabilities[at]
        total += np.log((1 - FLOOR) * q + FLOOR / layout.cards[i])
    return float(total.mean()), fit


def measure_repair(folder: Path) -> None:
    """Print precision, recall and F1 of repair at a probability of .9."""
    for name, parents in NETWORKS.items():
        dirty, clean = (_read(folder / f"{name}-{kind}.csv.gz") for kind in ("dirty", "clean"))
        header, nodes = dirty[0], list(parents)
        columns = [[line[header.index(node)] for line in dirty[1:]] for node in nodes]
        of = tuple(tuple(nodes.index(p) for p in parents[node]) for node in nodes)
        n_wrong = sum(
            a != b
            for x, y in zip(dirty[1:], clean[1:], strict=True)
            for a, b in zip(x, y, strict=True)
        )
        start = time.perf_counter()
        if name in KEYS:
            found = mend_by_votes(columns, of, nodes.index(KEYS[name]))
        else:
            found = mend_labels(columns, of)
        sure, seconds = found.wrong.above(0.9), time.perf_counter() - start
        n_right = sum(
            clean[1 + r][header.index(nodes[j])] == found.labels[j][v]
            for r, j, v in zip(
                sure.rows.tolist(), sure.columns.tolist(), sure.likely.tolist(), strict=True
            )
        )
        precision, recall = n_right / max(len(sure), 1), n_right / n_wrong
        f1 = 2 * precision * recall / max(precision + recall, 1e-12)
        say(
            f"{name}: {n_wrong:,} wrong, {len(sure):,} mended, precision {precision:.3f}, recall "
            f"{recall:.3f}, F1 {f1:.3f}; {seconds:.1f} s"
        )


def _read(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        return list(csv.reader(text))


def main(arguments: list[str]) -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cells", description=__doc__)
    parser.add_argument("--only", choices=("exact", "real", "repair"), help="one part")
    parser.add_argument("--tables", type=int, help="so many of the real tables")
    parser.add_argument("--dirt", type=Path, help="folder of tables with known errors")
    chosen = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if chosen.only in (None, "exact"):
            measure_exact()
        if chosen.only in (None, "real"):
            measure_real(chosen.tables)
        if chosen.only == "repair" or (chosen.only is None and chosen.dirt):
            measure_repair(chosen.dirt)
