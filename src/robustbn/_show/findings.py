"""The findings of a fit: one function a kind of finding, in one registry."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from robustbn._core.findings import ERROR, NOTE, WARNING, Finding, Kind, Remedy, rank_findings
from robustbn._core.groups import Group
from robustbn._core.numbers import count
from robustbn._core.origins import ROW_NUMBER, Difference, Origin
from robustbn._networks.edges import write_edge
from robustbn._show import saying
from robustbn._show.advice import is_exact, say_origin
from robustbn._show.codes import find_codes
from robustbn._show.frames import rate_columns
from robustbn._show.odd_values import (
    find_far,
    find_filled,
    find_odd_labels,
    find_scaled,
    find_unreadable,
)
from robustbn._show.repeated import find_repeated_ids, find_repeated_rows
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent
from robustbn._tables.coded import IS_MISSING

SURE = 0.95  # probability of a group to be bad, from which a named cause makes it an error
MOST_EDGES = 3  # that are told
MOST_VANISHING = 4  # states of which hardly any row is trusted, that are named
# nats: swaps that nobody made had 5.3 and 7.0 in 16 real tables, planted ones 4.4 to 16
SURE_SWAP = 9.0
SURE_CELLS = 5  # cells of a column, wrong with 0.9: 5 % of clean tables have so many; fewer: a note
# share of a column: if more of it seem to be wrong, the rest of the row hardly tells what is right
MANY_WRONG = 0.1
LEAST_GAP = 20  # rows in a row from which a column is missing, to be told
MOST_OF_GAPS = 0.8  # share of its missing values that are in these rows
CONVERT = "If they are in another unit, convert them to that of the others, or leave them out."
LEAVE_OUT = "If the values are wrong, correct them, or leave these rows out."
MANY_MISSING = 0.1  # share of the rows from which a node is missing, to be told
ECHO = 0.4  # share of a place's rows whose values are told: these make the column differ there
LONG = 0.2  # share of the rows: of a longer period or stretch of rows, a difference is a note
MANY_TIMES = 100  # times as much as other values differ: more is not told
# columns that have one value each at a place, where forms were left at their defaults: none of 479
# public tables has more than two
STUCK, MANY_STUCK = "one value", 3
# share of the rows that show it: where players never hit, 55 to 69 % have four columns of zeros
NEARLY_ALL = 0.9
CLEAR = 20.0  # spreads among other values: a difference that hardly ever is natural


def find_all(result: FitResult) -> list[Finding]:
    """Return everything that a person should know about a table, the most serious first."""
    if result.judged is None:
        return []
    return rank_findings(_without_echoes([f for find in FINDERS for f in find(result)]))


def _without_echoes(findings: list[Finding]) -> Iterator[Finding]:
    """Yield findings; a column that differs because of values that are told is only a note."""
    values = Kind.UNREADABLE, Kind.WRONG_CELLS
    told = [each for each in findings if each.kind in values and each.severity != NOTE]
    for each in findings:
        is_echo = (
            each.kind in (Kind.COLUMN_DIFFERS, Kind.MISSING)
            and each.cause in ("", "one value", "copied column")
            and any(
                each.columns == value.columns
                and set(each.where) & set(value.where)
                and value.n_rows >= ECHO * each.n_rows
                for value in told
            )
        )
        yield replace(each, severity=NOTE) if is_echo else each


# --- rows -----------------------------------------------------------------------------------------


def find_swaps(result: FitResult) -> Iterator[Finding]:
    """Yield the pairs of columns whose values were exchanged in some rows, or at a place."""
    for swap in result.deeper.swaps:
        columns = [result.network.nodes[node] for node in swap.nodes]
        n = max(round(swap.share * result.n_rows), 1)
        where = parts = saying.say_parts(result, swap.parts)
        rows, examples = saying.name_surest(result, swap.chances)
        what = f"he values of {saying.quote_names(columns)} appear to be swapped"
        python = f"table.iloc[{rows}][{columns}]"
        if parts:
            said = f"{saying.having(parts, 'Where ')}, t{what} ({count(n, 'row')})."
            look = f"If so, exchange {' and '.join(columns)} in these rows, or leave them out."
            some = saying.choose_rows(parts)
            if some != saying.EVERY_ROW:
                back = f"table.loc[{some}, {columns[::-1]}].to_numpy()"
                python = f"table.loc[{some}, {columns}] = {back}"
        else:
            if result.judged is not None:
                where = saying.find_parts(result, result.judged.drawn[swap.chances > 1 / 2])
            said = f"T{what} in about {count(n, 'row')} ({percent(swap.share)}){examples}."
            said += saying.having(where, " They")
            look = f"Compare {' and '.join(columns)} in these rows with their source."
        yield Finding(
            Kind.ROWS,
            ERROR if parts or swap.odds >= SURE_SWAP else WARNING,
            said,
            float(1 / (1 + np.exp(-min(swap.gain, 40.0)))),
            tuple(columns),
            saying.where_of(where),
            n_rows=n,
            n_cells=2 * n,
            nats=swap.gain,
            cause="swapped columns",
            advice=Remedy(look, saying.exclude_command(result, parts), python),
            rows=tuple(rows),
        )


def find_rows(result: FitResult) -> Iterator[Finding]:
    """Yield the groups of rows that are bad, or may be; or else that single rows are distrusted."""
    told = {group.number: group for group in (*result.groups, *result.kinds)}
    yield from (_tell_group(result, group) for group in told.values() if group.may_be_bad)
    if result.n_distrusted and not result.kinds:
        place = result.origins[0] if result.origins else None
        where = "" if place is None else f" {say_origin(place, 'are distrusted')}"
        yield Finding(
            Kind.ROWS,
            WARNING,
            f"{count(result.n_distrusted, 'row')} "
            f"({percent(result.n_distrusted / max(result.n_rows, 1))}) "
            f"{'does' if result.n_distrusted == 1 else 'do'} not fit the other rows, and no "
            f"common pattern was found among them.{where}",
            0.5,
            where={} if place is None else saying.where_of(saying.say_parts(result, place.parts)),
            n_rows=result.n_distrusted,
            advice=_ask(result, "Inspect some of these rows."),
        )


def _tell_group(result: FitResult, group: Group) -> Finding:
    cause = "" if group.cause is None else group.cause.name
    origin = next(iter(_origins_of(result, group)), None)
    is_sure = group.is_bad and _is_act(group) and group.probability >= SURE
    return Finding(
        Kind.ROWS,
        ERROR if is_sure else WARNING if group.is_likely_bad else NOTE,
        _say_group(result, group),
        group.probability,
        () if group.cause is None else group.cause.columns,
        {} if origin is None else saying.where_of(saying.say_parts(result, origin.parts)),
        round(group.n_rows),
        nats=group.nats * group.n_rows,
        cause=cause,
        group=group.number,
        advice=_decide(result, group),
        rows=tuple(example.row for example in group.examples),
    )


def _origins_of(result: FitResult, group: Group) -> Sequence[Origin]:
    """Return where the rows of a group are; of the largest kind, where all bad rows are."""
    is_first = result.kinds[:1] == [group]
    return group.origins or (result.origins if is_first else ())


def _is_act(group: Group) -> bool:
    """Whether something was done to these rows that has a name."""
    return group.cause is not None and group.cause.name != "another population"


def _say_group(result: FitResult, group: Group) -> str:
    rows = f"{count(group.n_rows, 'row')} ({percent(group.n_rows / max(result.n_rows, 1))})"
    number = f" (group {group.number})" if group.number else ""
    is_one = round(group.n_rows) == 1
    verb = "differs from the other rows" if is_one else "differ from the other rows"
    if group.is_bad:
        does, are = ("does", "is") if is_one else ("do", "are")
        verb = f"{does} not fit the other rows and {are} left out"
    said = f"About {rows} {verb}{number}"
    if group.cause is not None and _is_act(group) and group.is_bad:
        said += f": {group.cause.name}. {group.cause.text}"
    elif group.cause is not None and _is_act(group):
        said += f". If they are bad, the likely cause is: {group.cause.name}. {group.cause.text}"
    elif group.cause is not None:
        said += f". They have {group.cause.text[:1].lower()}{group.cause.text[1:]}"
    elif group.unusual:
        cell = group.unusual[0]
        said += f": mostly {as_text(cell.node)} = {as_text(cell.state)}."
    else:
        said += "."
    for origin in _origins_of(result, group)[:1]:
        said += f" {say_origin(origin, 'are among them' if group.origins else 'are distrusted')}"
    if not group.is_bad:
        said += (
            f" They are bad with a probability of {group.probability:.0%}, but may be a genuine "
            f"subgroup; they are still counted."
        )
    return said


def _decide(result: FitResult, group: Group) -> Remedy:
    look = "Inspect some of these rows."
    if not group.number:
        return _ask(result, look)
    side, word = ("good", "right") if group.is_bad else ("bad", "wrong")
    other = f" --{'bad' if group.is_bad else 'good'}-group {group.number}"
    command = f"{saying.base_command(result.command)} ".replace(f"{other} ", " ")
    return Remedy(
        f"{look} If they are {word}, mark the group as {side}.",
        f"{command}--{side}-group {group.number}",
        f"fit.decide({side}=[{group.number}], X=table)",
    )


def _ask(result: FitResult, look: str) -> Remedy:
    return Remedy(look, f"{saying.base_command(result.command)} --ask 20", "fit.ask(20)")


def find_vanishing_states(result: FitResult) -> Iterator[Finding]:
    """Yield the states of which hardly any row is trusted: a real group may look like that."""
    gone = result.vanishing
    is_named = bool(result.kinds) and all(_is_act(kind) for kind in result.kinds)
    if gone:
        named = "; ".join(str(each) for each in gone[:MOST_VANISHING])
        more = f"; and {len(gone) - MOST_VANISHING} more" if len(gone) > MOST_VANISHING else ""
        yield Finding(
            Kind.ROWS,
            NOTE if is_named else WARNING,
            f"Nearly all rows of these groups were rejected: {named}{more}. Check that they are "
            f"not genuine subgroups.",
            0.5,
            tuple(dict.fromkeys(node for each in gone for node in each.states)),
            n_rows=round(sum(each.n_rows for each in gone)),
            cause="hardly any is trusted",
            advice=_ask(result, "Inspect these rows before you rely on the tables."),
        )


def find_unsettled(result: FitResult) -> Iterator[Finding]:
    """Yield that the trusted rows do not look like rows of the network."""
    if result.converged:
        return
    share, said = "0.2", "If you know the largest possible share of bad rows, set contamination."
    if result.settings.get("contamination", "auto") != "auto":
        share, said = "auto", "Estimate the share of bad rows: it may exceed contamination."
    value = repr(share) if share == "auto" else share
    yield Finding(
        Kind.ROWS,
        WARNING,
        result.status,
        0.5,
        n_rows=result.n_rows,
        cause="not settled",
        advice=Remedy(
            said,
            f"{saying.base_command(result.command)} --contamination {share}",
            f"robustbn.fit(network, table, contamination={value})",
        ),
    )


# --- cells ----------------------------------------------------------------------------------------


def find_cells(result: FitResult) -> Iterator[Finding]:
    """Yield the columns with cells that show another value than the true one."""
    if result.cells is None:
        return
    names, rates, wrong, confusions, _, there = rate_columns(result).values()
    sure = np.bincount(result.cells.wrong.above(0.9).columns, minlength=len(names))
    by = result.cells.by
    place = () if by is None else saying.say_parts(result, (by.place,))
    for name, rate, n, confused, here in zip(names, rates, wrong, confusions, there, strict=True):
        if n:
            worst = f" {saying.having(place, 'Where ')}, {percent(here)} are." if place else ""
            is_sure = sure[result.network.nodes.index(name)] >= SURE_CELLS and rate <= MANY_WRONG
            often = "" if result.rows_hidden or not confused else f", most often {confused}"
            yield Finding(
                Kind.WRONG_CELLS,
                WARNING if is_sure else NOTE,
                f"{count(n, 'value')} of {as_text(name)} {'is' if n == 1 else 'are'} likely to be "
                f"wrong{as_text(often)}; of all of its cells, about {percent(rate)} are.{worst}",
                0.9,
                (name,),
                saying.where_of(place),
                n_rows=n,
                n_cells=n,
                cause="wrong cells",
                advice=Remedy(
                    "Review the proposed corrections.",
                    saying.report_command(result),
                    "fit.repair(table)",
                ),
            )


# --- columns across context -----------------------------------------------------------------------


def find_differing(result: FitResult) -> Iterator[Finding]:
    """Yield the places at which columns differ from what they are elsewhere."""
    for place in result.deeper.differences:
        if place.nodes:
            yield _tell_difference(result, place)
        if place.missing:
            yield _tell_missing_there(result, place)


def _tell_difference(result: FitResult, place: Difference) -> Finding:
    network, parts = result.network, saying.say_parts(result, place.parts)
    named = [node for node, _, _ in place.causes]
    columns = tuple(network.nodes[node] for node in dict.fromkeys((*place.nodes, *named)))
    names = list(dict.fromkeys(name for _, name, _ in place.causes))
    is_default = _count_stuck(result, place) >= MANY_STUCK
    names = ["defaults" if is_default and name == STUCK else name for name in names]
    is_error, is_clear = is_default or "unit" in names, _is_clear(result, place)
    return Finding(
        Kind.COLUMN_DIFFERS,
        ERROR if is_error else WARNING if is_clear or names else NOTE,
        _say_difference(result, place, columns),
        0.99 if is_error else 0.8 if is_clear else 0.5,
        columns,
        saying.where_of(parts),
        place.n_rows,
        place.n_rows * len(columns),
        place.nats,
        ", ".join(names),
        advice=Remedy(
            f"Check the source of these rows. {CONVERT if 'unit' in names else LEAVE_OUT}",
            saying.exclude_command(result, parts),
            f"table.loc[{saying.choose_rows(parts)}, {list(columns)!r}].describe()",
        ),
        rows=_rows_at(result, place),
    )


def _count_stuck(result: FitResult, place: Difference) -> int:
    """Return how many columns have the same value in nearly all rows of a place."""
    judged, numbers, n_stuck = result.judged, result.aside.clues.numbers, 0
    assert judged is not None  # noqa: S101 - `find_all` has looked
    for node in {node for node, name, _ in place.causes if name == STUCK}:
        shown = judged.drawn_codes[place.rows, node].astype(np.float64)
        values = numbers.values.get(result.network.nodes[node])
        if values is not None:
            shown = values[np.isin(numbers.rows, judged.drawn[place.rows])]
            shown = shown[np.isfinite(shown)]
        most = np.unique(shown, return_counts=True)[1].max(initial=0)
        n_stuck += bool(most >= NEARLY_ALL * max(len(shown), 1))
    return n_stuck


def _say_difference(result: FitResult, place: Difference, columns: Sequence[str]) -> str:
    """Return what differs at a place, how much more than at others, and how."""
    nodes, other = result.network.nodes, as_text(place.parts[0][0])
    times = f"{place.size:,.0f}" if place.size < MANY_TIMES else f"more than {MANY_TIMES}"
    said = (
        f"{saying.having(saying.say_parts(result, place.parts), 'Where ').strip()}: "
        f"{saying.quote_names(columns)} {'differs' if len(columns) == 1 else 'differ'} from the "
        f"other rows, {times} times as much as other values of {other} do "
        f"({'about ' if place.n_rows != len(place.rows) else ''}{count(place.n_rows, 'row')})."
    )
    rows = [text for _, name, text in place.causes if name == "copies"]
    values = [(node, text) for node, name, text in place.causes if name != "copies"]
    shown = () if result.rows_hidden else place.contrasts
    parts = [*rows, *(f"{nodes[node]}: {text}" for node, text in (*values, *shown))]
    if not parts:
        return said
    how = as_text("; ".join(parts))  # the name of a column keeps its spelling
    return f"{said} {how[0].upper()}{how[1:]}." if rows else f"{said} {how}."


def _is_clear(result: FitResult, place: Difference) -> bool:
    """Whether a difference is hardly ever natural.

    A long run is no such place: rows come in some order, and which end is odd is not known.
    """
    is_run = len(place.parts) == 1 and place.parts[0][1] != place.parts[0][2]
    is_order = is_run and place.n_rows > LONG * result.reading.n_read
    return place.size >= CLEAR and not is_order


def _rows_at(result: FitResult, place: Difference) -> tuple[int, ...]:
    drawn = () if result.judged is None else result.judged.drawn[place.rows[: saying.MOST_NUMBERED]]
    return tuple(int(row) for row in drawn)


def _tell_missing_there(result: FitResult, place: Difference) -> Finding:
    """Return that columns are missing more often at a place; less often, or in order: a note."""
    parts, judged = saying.say_parts(result, place.parts), result.judged
    nodes, layout = np.array(place.missing), result.network.layout
    assert judged is not None  # noqa: S101 - `find_all` has looked
    is_hole = judged.drawn_codes[:, nodes] >= np.array(layout.cards)[nodes]
    there = is_hole[place.rows].mean(axis=0)
    elsewhere = np.delete(is_hole, place.rows, axis=0).mean(axis=0)
    is_more = there > elsewhere
    is_clear = bool(is_more.any()) and _is_clear(result, place)
    some = np.flatnonzero(is_more if is_more.any() else ~is_more)
    columns = tuple(result.network.nodes[node] for node in nodes[some])
    return Finding(
        Kind.MISSING,
        WARNING if is_clear else NOTE,
        f"{saying.having(parts, 'Where ').strip()}, {saying.quote_names(columns)} "
        f"{'is' if len(columns) == 1 else 'are'} missing {'more' if is_more.any() else 'less'} "
        f"often than elsewhere: {percent(float(there[some[0]]))} of the values of "
        f"{as_text(columns[0])} are missing there, {percent(float(elsewhere[some[0]]))} elsewhere.",
        0.8 if is_clear else 0.5 if is_more.any() else 0.1,
        columns,
        saying.where_of(parts),
        place.n_rows,
        nats=place.nats,
        advice=_look_at_holes(
            result, f"table.loc[{saying.choose_rows(parts)}, {list(columns)!r}].isna().mean()"
        ),
    )


def find_gaps(result: FitResult) -> Iterator[Finding]:
    """Yield the stretches of rows in which columns are missing that hardly are elsewhere.

    Rows that are alike one after the other say little of a place, so comparing leaves these out.
    """
    judged, layout = result.judged, result.network.layout
    if judged is None or result.settings.get("missing_is_evidence"):
        return
    gaps: dict[tuple[int, int], list[int]] = {}
    told = {node for place in result.deeper.differences for node in place.missing}
    for name in result.n_missing:
        node = result.network.nodes.index(name)
        is_hole = judged.drawn_codes[:, node] >= layout.cards[node]
        ends = np.flatnonzero(np.diff(is_hole, prepend=False, append=False))
        starts, lengths = ends[::2], ends[1::2] - ends[::2]
        if len(starts) and node not in told:
            k = int(lengths.argmax())
            if lengths[k] >= max(LEAST_GAP, MOST_OF_GAPS * lengths.sum()):
                gaps.setdefault((int(starts[k]), int(starts[k] + lengths[k]) - 1), []).append(node)
    for (first, last), nodes in gaps.items():
        names = [result.network.nodes[node] for node in nodes]
        rows = judged.drawn[first], judged.drawn[last]
        where = saying.say_parts(result, ((ROW_NUMBER, f"{rows[0]:,}", f"{rows[1]:,}"),))
        n = int(rows[1] - rows[0]) + 1
        yield Finding(
            Kind.MISSING,
            WARNING if n <= LONG * result.reading.n_read else NOTE,
            f"{saying.having(where, 'Where ').strip()}, {saying.quote_names(names)} "
            f"{'is' if len(names) == 1 else 'are'} missing from all {count(n, 'row')}, and hardly "
            "elsewhere.",
            0.8,
            tuple(names),
            saying.where_of(where),
            n,
            n * len(names),
            advice=_look_at_holes(result),
        )


def find_missing(result: FitResult) -> Iterator[Finding]:
    """Yield the columns from which many values are missing, wherever they are."""
    if result.settings.get("missing_is_evidence"):
        return
    for node, n in result.n_missing.items():
        if n >= MANY_MISSING * max(result.n_rows, 1):
            yield Finding(
                Kind.MISSING,
                NOTE,
                f"{as_text(node)} is missing from {percent(n / result.n_rows)} of the rows.",
                0.1,
                (node,),
                n_rows=n,
                n_cells=n,
                advice=_look_at_holes(result),
            )


def _look_at_holes(result: FitResult, look: str = "") -> Remedy:
    """Return what to do about holes; `look` shows them, if missingness is evidence already."""
    if result.settings.get("missing_is_evidence"):
        return Remedy(
            "Check why these values are missing there.", saying.report_command(result), look
        )
    return Remedy(
        "If the value itself is why it is missing, treat missingness as evidence.",
        f"{saying.base_command(result.command)} --missing-is-evidence",
        "robustbn.fit(network, table, missing_is_evidence=True)",
    )


# --- edges ----------------------------------------------------------------------------------------


def find_edges(result: FitResult) -> Iterator[Finding]:
    """Yield the edges that the network lacks, or that it lacks something."""
    for edge in result.edges[:MOST_EDGES]:
        ends = str(edge.parent), str(edge.child)
        command = saying.report_command(result)  # which nodes say what is missing, no option names
        if not any(end.endswith(IS_MISSING) for end in ends):
            command = (
                f"{saying.base_command(result.command)} --edge {shlex.quote(write_edge(*ends))}"
            )
        yield Finding(
            Kind.MISSING_EDGE,
            NOTE,
            f"{as_text(edge.parent)} and {as_text(edge.child)} depend on each other, but the "
            f"network has no edge between them ({edge.gain:.3f} nats per row).",
            0.0,
            (edge.parent, edge.child),
            nats=edge.gain * result.n_rows,
            advice=Remedy(
                "If the dependence is plausible, add the edge and fit again: one missing edge "
                "also makes other pairs appear dependent.",
                command,
                f"robustbn.fit(fit.network_.with_edges([({edge.parent!r}, {edge.child!r})]), "
                "table)",
            ),
        )
    if not result.edges and not is_exact(result):
        yield Finding(
            Kind.MISSING_EDGE,
            NOTE,
            "The network does not describe the trusted rows, and no single edge would fix that. "
            "There may be a hidden group, such as a source or a period with its own probabilities.",
            0.0,
            advice=Remedy(
                "Look for a column that distinguishes the groups, and add it as a node.",
                f"robustbn inspect {shlex.quote(result.table or 'TABLE')}",
                "fit.misfit_",
            ),
        )


FINDERS: tuple[Callable[[FitResult], Iterable[Finding]], ...] = (
    find_swaps,
    find_rows,
    find_vanishing_states,
    find_unsettled,
    find_cells,
    find_repeated_rows,
    find_repeated_ids,
    find_differing,
    find_unreadable,
    find_far,
    find_scaled,
    find_filled,
    find_codes,
    find_odd_labels,
    find_gaps,
    find_missing,
    find_edges,
)
