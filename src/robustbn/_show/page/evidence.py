"""What stands behind each finding on the page: its group, its rows, its columns by place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbn._core.findings import Finding, Kind
from robustbn._core.groups import Group
from robustbn._core.origins import Difference, Groups, Origin
from robustbn._show.frames import cell_columns
from robustbn._show.measures import FEW_ROWS
from robustbn._show.page.drawing import SCALE
from robustbn._show.result import FitResult
from robustbn._show.saying import has_lines, say_parts, where_of
from robustbn._show.words import as_text, percent
from robustbn._tables.aside import Aside
from robustbn._tables.exclusion import LINE_OF_ROW

ROWS_LISTED = 12  # of a finding, with their lines and raw values
CELLS_LISTED = 20  # wrong cells of a column, the surest first
COLUMNS_DRAWN = 3  # of a finding, the clearest first
VALUES_DRAWN = 8  # of a context column: sites, or stretches of time
STATES_DRAWN = 12  # of a column in its profile, the most frequent first
Mask = NDArray[np.bool_]


class Bar(NamedTuple):
    """One part of a stacked bar: where it begins and how wide it is, its colour and its name."""

    start: float
    width: float
    colour: str
    name: str


class Line(NamedTuple):
    """The states of a column in some rows: as they were read, and those that are trusted."""

    label: str
    n_rows: int
    before: list[Bar]
    after: list[Bar]


class Panel(NamedTuple):
    """A column by place."""

    column: str
    key: list[tuple[str, str]]
    lines: list[Line]
    raw: list[str]


@dataclass(frozen=True)
class Evidence:
    """What a reader can look at below a finding."""

    finding: Finding
    group: Group | None = None  # of rows; None for other findings
    places: Sequence[Origin] = ()  # where its rows are
    panels: Sequence[Panel] = ()  # its columns by place
    # some of its rows: number, line (0 if there are no lines), and values before cutting
    rows: Sequence[tuple[int, int, str]] = ()
    # wrong cells: row, value, likely value, probability
    cells: Sequence[tuple[int, int, str, str, float]] = ()
    pair: int = -1  # number of the missing edge in `result.edges`; -1 for none
    has_repeats: bool = False  # whether the table of repeated rows belongs here


def gather_evidence(result: FitResult) -> list[Evidence]:
    """Return what stands behind each finding, in their order."""
    groups = {group.number: group for group in (*result.groups, *result.kinds)}
    pairs: dict[tuple[str, ...], int] = {
        (edge.parent, edge.child): k for k, edge in enumerate(result.edges)
    }
    found, are_placed = [], False
    for finding in result.findings:
        group = groups.get(finding.group) if finding.kind == Kind.ROWS else None
        if group is not None and finding.cause != ("" if group.cause is None else group.cause.name):
            group = None
        places = () if group is None else group.origins
        if finding.kind == Kind.ROWS and not are_placed:  # where all of them are, once
            places, are_placed = (*places, *(o for o in result.origins if o not in places)), True
        found.append(
            Evidence(
                finding,
                group,
                places,
                list(_panels(result, finding)),
                list(_list_rows(result, finding)),
                list(_list_cells(result, finding)),
                pairs.get(finding.columns, -1) if finding.kind == Kind.MISSING_EDGE else -1,
                finding.cause == "copies" and bool(result.repeats),
            )
        )
    return found


# --- single rows and cells ------------------------------------------------------------------------


def line_of(result: FitResult) -> int:
    """Return what is added to the number of a row to get its line; 0 where rows are no lines."""
    return LINE_OF_ROW if has_lines(result) else 0


def raw_numbers(result: FitResult, rows: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """Return the numbers of rows before they were cut into intervals, NaN where not known."""
    sample = result.aside.clues.numbers
    if result.rows_hidden or not len(sample.rows):
        return {}
    order = np.argsort(sample.rows, kind="stable")
    wanted = np.asarray(rows, np.int64)
    places = np.searchsorted(sample.rows, wanted, sorter=order)
    places = order[np.minimum(places, len(order) - 1)]
    is_known = sample.rows[places] == wanted
    return {
        node: np.where(is_known, values[places], np.nan) for node, values in sample.values.items()
    }


def _list_rows(result: FitResult, finding: Finding) -> Iterator[tuple[int, int, str]]:
    shown = finding.rows[:ROWS_LISTED]
    raw, add = raw_numbers(result, shown), line_of(result)
    for k, row in enumerate(shown):
        values = [
            f"{as_text(node)} = {raw[node][k]:g}"
            for node in finding.columns[:COLUMNS_DRAWN]
            if node in raw and np.isfinite(raw[node][k])
        ]
        yield row, row + add if add else 0, ", ".join(values)


def _list_cells(result: FitResult, finding: Finding) -> Iterator[tuple[int, int, str, str, float]]:
    if finding.kind != Kind.WRONG_CELLS or result.cells is None or result.rows_hidden:
        return
    wrong = result.cells.wrong
    own = wrong.picked(wrong.columns == result.network.nodes.index(finding.columns[0]))
    columns = cell_columns(result.network, own.picked(slice(0, CELLS_LISTED)), Aside())
    names = ("row", "seen", "likely", "probability")
    add = line_of(result)
    for row, seen, likely, p in zip(*(columns[name] for name in names), strict=True):
        yield int(row), int(row) + add if add else 0, str(seen), str(likely), float(p)


# --- columns by place -----------------------------------------------------------------------------


def _panels(result: FitResult, finding: Finding) -> Iterator[Panel]:
    """Yield the columns of a finding at its place, elsewhere, and value by value."""
    if not finding.where or result.judged is None:
        return
    for place in result.deeper.differences:
        if where_of(say_parts(result, place.parts)) == finding.where:
            masks = list(_masks(result, place))
            numbers = [result.network.nodes.index(name) for name in finding.columns]
            for node in numbers[:COLUMNS_DRAWN]:
                yield _panel(result, place, node, masks)
            return


def _masks(result: FitResult, place: Difference) -> Iterator[tuple[str, Mask]]:
    """Yield a name and the drawn rows of each line: there, elsewhere, and each other value."""
    judged = result.judged
    if judged is None:
        return
    is_there = np.zeros(len(judged.drawn), bool)
    is_there[place.rows] = True
    yield "there", is_there
    yield "elsewhere", ~is_there
    if result.rows_hidden:
        return
    column = result.deeper.list_context()[place.runs[0].column]
    codes = column.codes[judged.drawn]
    for label, first, last in _values(column.groups, codes):
        yield f"{column.name} {label}", (codes >= first) & (codes <= last)


def _values(groups: Groups, codes: NDArray[Any]) -> Iterator[tuple[str, int, int]]:
    """Yield the values of a context column, each with its first and last group."""
    n = len(groups.labels)
    if groups.is_ordered and n > VALUES_DRAWN:
        for part in np.array_split(np.arange(n), VALUES_DRAWN):
            last = (groups.ends or groups.labels)[part[-1]]
            yield f"{groups.labels[part[0]]} to {last}", int(part[0]), int(part[-1])
        return
    sizes = np.bincount(codes[codes >= 0], minlength=n)
    for k in np.sort(np.argsort(-sizes, kind="stable")[:VALUES_DRAWN]).tolist():
        yield groups.labels[k], k, k


def _panel(
    result: FitResult, place: Difference, node: int, masks: Sequence[tuple[str, Mask]]
) -> Panel:
    judged, name = result.judged, result.network.nodes[node]
    states = [as_text(state) for state in result.network.states[name]]
    lines = []
    for label, mask in masks:
        if judged is None or not mask.any():
            continue
        codes, trust = judged.drawn_codes[mask, node], judged.drawn_trust[mask]
        before = np.bincount(codes, minlength=len(states) + 1)
        after = np.bincount(codes, trust, minlength=len(states) + 1)
        lines.append(
            Line(
                as_text(label), int(mask.sum()), *(_stack(each, states) for each in (before, after))
            )
        )
    key = [(_colour(k, len(states)), state) for k, state in enumerate(states)]
    key = key if len(key) <= len(SCALE) else [key[0], key[-1]]
    return Panel(name, key, lines, _say_raw(result, place, name))


def _colour(state: int, n_states: int) -> str:
    return "hole" if state == n_states else f"c{state * len(SCALE) // n_states}"


def _stack(counts: NDArray[Any], states: Sequence[str]) -> list[Bar]:
    """Return the parts of a bar of 100 units, missing values last."""
    total = float(counts.sum()) or 1.0
    bars, start = [], 0.0
    for k, name in enumerate([*states, "missing"]):
        width = 100 * float(counts[k]) / total
        if width:
            said = f"{name}: {percent(width / 100)}"
            bars.append(Bar(round(start, 2), round(width, 2), _colour(k, len(states)), said))
        start += width
    return bars


def _say_raw(result: FitResult, place: Difference, node: str) -> list[str]:
    """Return quartiles of the numbers there and elsewhere, before they were cut."""
    judged, sample = result.judged, result.aside.clues.numbers
    if judged is None or node not in sample.values or result.rows_hidden:
        return []
    is_there = np.isin(sample.rows, judged.drawn[place.rows])
    is_drawn = np.isin(sample.rows, judged.drawn)
    said = []
    for name, mask in (("there", is_there), ("elsewhere", is_drawn & ~is_there)):
        values = sample.values[node][mask]
        values = values[np.isfinite(values)]
        if len(values):
            low, middle, high = np.percentile(values, [25, 50, 75])
            half = f"half of the values from {low:.5g} to {high:.5g}"
            said.append(f"{name}: median {middle:.5g}, {half}")
    return said


# --- the profile of every column ------------------------------------------------------------------


def most_frequent(result: FitResult, node: int) -> list[int]:
    """Return the states of a node that its profile shows."""
    layout = result.network.layout
    counts = layout.table_of(node, result.plain_counts).sum(axis=0)
    return sorted(np.argsort(-counts, kind="stable")[:STATES_DRAWN].tolist())


def profile_columns(result: FitResult) -> list[dict[str, Any]]:
    """Return, for each node, its states in all rows and in the trusted ones, and what is odd."""
    network, layout = result.network, result.network.layout
    odd: dict[str, int] = {}
    for each in result.aside.clues.odd:
        odd[each.column] = odd.get(each.column, 0) + each.n
    profiles = []
    for i, node in enumerate(network.nodes):
        before, after = (
            layout.table_of(i, counts).sum(axis=0)
            for counts in (result.plain_counts, result.counts)
        )
        shown = np.array(most_frequent(result, i), np.int64)
        is_rare = (before > 0) & (before < FEW_ROWS)
        profile: dict[str, Any] = {
            "states": shown.tolist(),
            "before": _shares(before, shown),
            "after": _shares(after, shown),
            "missing": int(result.n_missing.get(node, 0)),
            "odd": odd.get(node, 0),
            "rare": int(is_rare.sum()),
            "unseen": int((before <= 0).sum()),
        }
        raw = result.aside.clues.numbers.values.get(node, np.empty(0))
        raw = raw[np.isfinite(raw)]
        if len(raw) and not result.rows_hidden:
            profile["raw"] = [float(f"{v:.5g}") for v in np.percentile(raw, [0, 25, 50, 75, 100])]
        profiles.append(profile)
    return profiles


def _shares(counts: NDArray[np.float64], shown: NDArray[np.int64]) -> list[float]:
    total = float(counts.sum()) or 1.0
    return [round(float(value) / total, 4) for value in counts[shown]]
