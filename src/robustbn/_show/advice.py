"""What is said first of a fit: what was found, in the reader's terms, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from robustbn._core.groups import Group, MovedCell
from robustbn._core.numbers import count, rounded
from robustbn._core.origins import Origin
from robustbn._networks.edges import write_edge
from robustbn._show.measures import MovedTable
from robustbn._show.result import FitResult
from robustbn._show.saying import read_command
from robustbn._show.words import as_text, percent, shorten

MOST_ACTIONS = 3
MANY_MISSING = 0.1  # share of the rows from which a node is missing, to be named


@dataclass(frozen=True)
class Action:
    """Something to do next.

    Parameters
    ----------
    say : what, and when.
    command, python : how, in a terminal and in Python.
    kind : the kind of bad rows whose rows are to be looked at; 0 for none.
    """

    say: str
    command: str
    python: str
    kind: int = 0


def _is_clean(result: FitResult) -> bool:
    return result.n_distrusted == 0 and result.contamination < 1e-6


def _is_exact(result: FitResult) -> bool:
    return result.misfit is None or result.misfit.is_exact


def verdict(result: FitResult) -> str:
    """Return what the fit found, in a few plain sentences."""
    n, misfit = f"{result.n_rows:,}", "" if _is_exact(result) else _say_misfit(result)
    if not result.converged:
        care = "Read with care: the rows that are kept still do not look like rows of this network."
        said = [_say_rows(result), _say_tables(result), care]
    elif not _is_clean(result):
        said = [_say_rows(result), misfit, _say_tables(result)]
    elif misfit:
        trusted = f"No row stands out: all {n} are trusted"
        said = [f"{trusted}, and the tables are what counting them gives.", misfit]
    elif result.few_rows:
        return (
            f"{result.few_rows} Only gross corruption would show, and none does; the tables are "
            "what counting all rows gives."
        )
    else:
        said = [f"Every one of the {n} rows fits this network."]
        said.append("The tables are what counting all rows gives.")
    return " ".join(filter(None, [*said, result.few_rows]))


def say_from_file(result: FitResult) -> str:
    """Return what is known of the rows of a model from a file."""
    share = f"{result.contamination:.1%} of their weight distrusted"
    return f"From a file: fitted to {count(result.n_rows, 'row')}, {share}."


def say_fit(result: FitResult) -> str:
    """Return a fit in a few sentences."""
    lines = [say_from_file(result)]
    if result.judged is not None:
        rows = f"{result.n_distrusted:,} of {count(result.n_rows, 'row')}"
        are = "is" if result.n_distrusted == 1 else "are"
        lines = [verdict(result), f"{rows} {are} distrusted."]
    return "\n".join(filter(None, [*lines, result.status, result.unseen, result.missing]))


def _say_rows(result: FitResult) -> str:
    n, bad = result.n_rows, result.n_distrusted
    if _is_clean(result):
        return f"No row is distrusted: all {n:,} have their say."
    if not bad:
        return (
            f"No row is distrusted outright; some of the {n:,} count for less, "
            f"{result.contamination * n:,.1f} rows' worth in all."
        )
    share = percent(bad / n).replace(".0 %", " %")
    does, are = ("does", "is") if bad == 1 else ("do", "are")
    apart = f"{does} not fit this network"
    if not _is_exact(result):
        apart = f"{'stands' if bad == 1 else 'stand'} out from the others"
    causes = list(dict.fromkeys(kind.cause.name for kind in result.kinds if kind.cause))[:2]
    what = f": {' and '.join(causes)}" if causes else ""
    return f"{bad:,} of {n:,} rows ({share}) {apart} and {are} left out{what}."


def _say_misfit(result: FitResult) -> str:
    said = "This network does not describe the trusted rows"
    if result.edges:
        edge = result.edges[0]
        names = f"{shorten(edge.parent, 40)} and {shorten(edge.child, 40)}"
        return f"{said}: {names} depend on each other without an edge."
    return f"{said}: an edge is missing, or there is a hidden group."


def _say_tables(result: FitResult) -> str:
    n_moved, d = result.n_moved, result.network.n_nodes
    if n_moved == 0:
        return "No table changed by more than its error."
    if d == 1:
        return "Its one table changed by more than its error."
    whose = "its" if n_moved == 1 else "their"
    return f"{n_moved:,} of {d:,} tables changed by more than {whose} error."


# --- cells ----------------------------------------------------------------------------------------


def strongest_cell(result: FitResult, node: str) -> int:
    """Return the cell that adds most to the move of a node's table: `C[k] |q[j] - plain[j]|`."""
    network = result.network
    layout, i = network.layout, network.nodes.index(node)
    cells = slice(int(layout.cell_start[i]), int(layout.cell_start[i + 1]))
    rows = layout.sum_configurations(result.counts)[layout.config_of_cell[cells]]
    apart = np.abs(network.probabilities[cells] - result.plain_network.probabilities[cells])
    return cells.start + int(np.argmax(rows * apart))


class CellMove(NamedTuple):
    """A table, and the cell that adds most to its move: as counted, and from trusted rows."""

    table: MovedTable
    parents: dict[str, Hashable]
    state: Hashable
    counted: float
    robust: float


def cell_moves(result: FitResult, most: int, is_any: bool = False) -> list[CellMove]:
    """Return the tables that moved most, each with its cell; by more than their error, or any."""
    found = []
    for table in [t for t in result.moved_tables if is_any or t.is_significant][:most]:
        cell = strongest_cell(result, table.node)
        _, parents, state = result.network.describe_cell(cell)
        counted, robust = result.plain_network.probabilities, result.network.probabilities
        found.append(CellMove(table, parents, state, float(counted[cell]), float(robust[cell])))
    return found


def say_state(parents: Mapping[str, Hashable], state: Hashable) -> str:
    """Return a cell of a known node in words: `LOW when CO = HIGH`."""
    given = ", ".join(f"{as_text(p)} = {as_text(v)}" for p, v in parents.items())
    return as_text(state) + (f" when {given}" if given else "")


def say_cell(node: str, parents: Mapping[str, Hashable], state: Hashable) -> str:
    """Return a cell in words: `HR = LOW when CO = HIGH`."""
    return f"{as_text(node)} = {say_state(parents, state)}"


def say_moved_cells(result: FitResult, most: int = 2) -> list[str]:
    """Return the cells that moved most, one of each of the tables that moved most, in words."""
    return [
        f"{say_cell(table.node, parents, state)}: {percent(counted)} counted, "
        f"{percent(robust)} robust"
        for table, parents, state, counted, robust in cell_moves(result, most)
    ]


def say_kind_move(cell: MovedCell) -> str:
    """Return what a table would say with the rows of a kind left in."""
    what = say_cell(cell.node, cell.parents, cell.state)
    return f"{what}: {percent(cell.with_kind)} with them, {percent(cell.without)} without"


def say_evidence(nats: float) -> str:
    """Return how much likelier a typical row of a kind is bad than good; empty if not measured."""
    if nats <= 0:
        return ""
    if nats > np.log(1e6):
        return "a typical row of it is more than a million times likelier bad than good"
    times = float(f"{np.exp(nats):.2g}")
    return f"a typical row of it is about {rounded(times, 2)} times likelier bad than good"


def say_cause(kind: Group) -> str:
    """Return what may have made the rows of a kind."""
    if kind.cause is None:
        return "No single cause explains these rows."
    if kind.cause.name == "another population":
        return kind.cause.text
    explained = percent(kind.cause.confidence)
    return f"{kind.cause.text} That explains {explained} of what sets these rows apart."


def say_origin(origin: Origin) -> str:
    """Return where many rows of a kind are."""
    rows = count(origin.n_rows, "row")
    return f"{percent(origin.rate)} of the {rows} with {origin.having} are of it."


# --- what to do -----------------------------------------------------------------------------------


def next_actions(result: FitResult) -> list[Action]:
    """Return two or three things to do, the most useful first; what was done is left out."""
    fit, written = read_command(result.command)
    is_exact = _is_exact(result)
    if not result.converged:
        actions = [*_look_at_rows(result, fit), *_draw_edge(result, fit)]
        actions.append(_bound_the_share(result, fit))
    elif not _is_clean(result):
        look, leave = _look_at_rows(result, fit), _leave_out(result, fit)
        actions = [*look, leave] if is_exact else [look[0], leave, *_draw_edge(result, fit)]
    else:
        actions = [] if is_exact else _draw_edge(result, fit)
        if is_exact and result.few_rows:
            actions = _smooth(result, fit)
        actions += [*_look_at_holes(result, fit), *_use(fit, written)]
    return actions[:MOST_ACTIONS]


def _look_at_rows(result: FitResult, fit: str) -> list[Action]:
    where = f" Begin where they come from: {result.origins[0]}." if result.origins else ""
    ask = (f"{fit} --ask 20", "fit.ask(20)")
    n_copies = sum(max(r.seen - r.expected, 0.0) for r in result.repeats)
    if n_copies > max((kind.n_rows for kind in result.kinds), default=0.0):
        said = (
            f"Look at the copies: about {count(n_copies, 'copy', 'copies')} of "
            f"{count(len(result.repeats), 'row')} beyond what chance allows. A double import, a "
            "default form, a stuck sensor?"
        )
        return [Action(said + where, ask[0], "fit.repeats_")]
    if not result.kinds:
        said = f"Check twenty rows: those whose answer would change the tables most.{where}"
        return [Action(said, *ask)]
    kind = result.kinds[0]
    name = "" if kind.cause is None else f", {kind.cause.name}"
    if not kind.number:  # there is no group to decide on
        said = f"Check twenty rows: about {count(kind.n_rows, 'row')} stand out alone{name}.{where}"
        return [Action(said, *ask)]
    said = f"Look at group {kind.number} (about {count(kind.n_rows, 'row')}{name}): are they wrong?"
    real = f"If they are real, take group {kind.number} for good rows; nothing is learned again."
    decide = f"fit.decide(good=[{kind.number}], X=table)"
    return [
        Action(said + where, *ask, kind=kind.number),
        Action(real, f"{fit} --good-group {kind.number}", decide),
    ]


def _draw_edge(result: FitResult, fit: str) -> list[Action]:
    if not result.edges:
        said = (
            "Look for a hidden group: a source, a region or a period with its own way in some of "
            "the tables, and make it a node."
        )
        inspect = f"robustbn inspect {shlex.quote(result.table or 'TABLE')}"
        return [Action(said, inspect, "fit.misfit_")]
    edge = result.edges[0]
    drawn = f"[({edge.parent!r}, {edge.child!r})]"
    first = "Once the bad rows are settled: if" if result.n_distrusted else "If"
    said = (
        f"{first} {as_text(edge.parent)} and {as_text(edge.child)} may depend on each other, draw "
        "the edge and fit again; one missing edge makes other pairs depend on each other, too."
    )
    line = shlex.quote(write_edge(str(edge.parent), str(edge.child)))
    again = f"robustbn.fit(fit.network_.with_edges({drawn}), table)"
    return [Action(said, f"{fit} --edge {line}", again)]


def _look_at_holes(result: FitResult, fit: str) -> list[Action]:
    node, n = max(result.n_missing.items(), key=lambda each: each[1], default=("", 0))
    if result.settings.get("missing_is_evidence") or n < MANY_MISSING * result.n_rows:
        return []
    said = (
        f"{as_text(node)} is missing from {percent(n / result.n_rows)} of the rows. If it is "
        "missing because of what it would say, let that speak for or against a row."
    )
    again = "robustbn.fit(network, table, missing_is_evidence=True)"
    return [Action(said, f"{fit} --missing-is-evidence", again)]


def _smooth(result: FitResult, fit: str) -> list[Action]:
    if result.settings.get("prior") not in (None, "none"):
        return []
    said = (
        "Smooth the tables, most of which rest on a handful of rows: add one row to every cell. A "
        "network with fewer edges or states needs fewer rows."
    )
    return [Action(said, f"{fit} --prior 1", "robustbn.fit(network, table, prior=1)")]


def _leave_out(result: FitResult, fit: str) -> Action:
    table = PurePath(result.table)
    packed = table.suffix in (".gz", ".zst", ".bz2", ".xz")
    suffix = "".join(table.suffixes[-2:]) if packed else table.suffix
    suffix = ".csv" if suffix.lower() == ".xlsx" else suffix  # workbooks are read, not written
    return Action(
        "If they are wrong, go on without them: the same table, trusted rows only.",
        f"{fit} --clean {'trusted' + suffix if suffix else 'FILE'} --drop-distrusted",
        "table[fit.row_weights_ >= 0.5]",
    )


def _bound_the_share(result: FitResult, fit: str) -> Action:
    share, said = "0.2", "If you know the largest share of rows that can be bad, say so."
    if result.settings.get("contamination", "auto") != "auto":
        share, said = "auto", "Let the share of bad rows be found: more may be bad than was said."
    value = repr(share) if share == "auto" else share
    again = f"robustbn.fit(network, table, contamination={value})"
    return Action(said, f"{fit} --contamination {share}", again)


def _use(fit: str, written: Mapping[str, str]) -> list[Action]:
    """Return how to write the tables, unless they are, and how to judge the next rows by them."""
    model = written.get("--model")
    keep = f"{fit} --model model.json && robustbn score model.json NEW"
    if model is not None:
        keep = f"robustbn score {shlex.quote(model)} NEW"
    said = "Keep what was learned, and judge the next table by it."
    actions = [Action(said, keep, "fit.rows(new_table)")]
    if not {"-o", "--output", "--output-dir"} & set(written):
        said, write = "Use the tables: write the network.", "fit.network_.write('fitted.json')"
        actions.insert(0, Action(said, f"{fit} -o fitted.json", write))
    return actions
