"""What is said first of a fit: what was made of the rows, in the reader's terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np

from robustbn._core.findings import NOTE
from robustbn._core.groups import Group, MovedCell
from robustbn._core.numbers import count, rounded
from robustbn._core.origins import Origin
from robustbn._show.measures import MovedTable
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent

MOST_TOLD = 2  # cells that moved most, at the top of the page
MISFIT = "This network does not describe the trusted rows."


def _is_clean(result: FitResult) -> bool:
    return result.n_distrusted == 0 and result.contamination < 1e-6


def is_exact(result: FitResult) -> bool:
    """Whether the trusted rows look like rows of the network, or nobody asked."""
    return result.misfit is None or result.misfit.is_exact


def verdict(result: FitResult) -> str:
    """Return what the fit found, in a few plain sentences."""
    n, misfit = f"{result.n_rows:,}", "" if is_exact(result) else MISFIT
    if not result.converged:
        care = (
            "Interpret the tables with care: the remaining rows still do not look like rows of "
            "this network."
        )
        said = [_say_rows(result), _say_tables(result), care]
    elif not _is_clean(result):
        said = [_say_rows(result), misfit, _say_tables(result)]
    elif count_serious(result):
        said = [f"All {n} rows are counted as they are.", misfit, result.few_rows]
        return " ".join(filter(None, [count_serious(result), *said]))
    elif misfit:
        trusted = f"No row stands out: all {n} are trusted"
        said = [f"{trusted}, and the tables are their relative frequencies.", misfit]
    elif result.few_rows:
        seen = (
            "Only gross corruption would be detectable, and none was found; the tables are the "
            "relative frequencies of all"
        )
        said = [count_serious(result), result.few_rows, f"{seen} rows."]
        return " ".join(filter(None, said))
    else:
        said = [f"All {n} rows fit this network."]
        said.append("The tables are the relative frequencies of all rows.")
    return " ".join(filter(None, [count_serious(result), *said, result.few_rows]))


def count_serious(result: FitResult) -> str:
    """Return how many errors and warnings were found; empty if none was."""
    found = Counter(each.severity for each in result.findings if each.severity != NOTE)
    said = " and ".join(count(n, name) for name, n in found.items())
    return f"{said} {'was' if found.total() == 1 else 'were'} found." if said else ""


def say_from_file(result: FitResult) -> str:
    """Return what is known of the rows of a model from a file."""
    share = f"{result.contamination:.1%} of their weight distrusted"
    return f"From a file: fitted to {count(result.n_rows, 'row')}, {share}."


def say_fit(result: FitResult) -> str:
    """Return a fit in a few sentences: the verdict, and what a person should look at."""
    said = [say_from_file(result), result.status]
    if result.judged is not None:
        serious = [str(each) for each in result.findings if each.severity != NOTE]
        said = [verdict(result), *serious]
    return "\n".join(filter(None, [*said, result.unseen, result.missing]))


def _say_rows(result: FitResult) -> str:
    n, bad = result.n_rows, result.n_distrusted
    if _is_clean(result):
        return f"No row is distrusted: all {n:,} are counted."
    if not bad:
        return (
            f"No row is fully distrusted; some of the {n:,} have reduced weight, as if "
            f"{result.contamination * n:,.1f} rows had been left out."
        )
    share = percent(bad / n).replace(".0 %", " %")
    does, are = ("does", "is") if bad == 1 else ("do", "are")
    apart = f"{does} not fit this network"
    if not is_exact(result):
        apart = f"{'stands' if bad == 1 else 'stand'} out from the other rows"
    causes = list(dict.fromkeys(kind.cause.name for kind in result.kinds if kind.cause))[:2]
    what = f": {' and '.join(causes)}" if causes else ""
    return f"{bad:,} of {n:,} rows ({share}) {apart} and {are} left out{what}."


def _say_tables(result: FitResult) -> str:
    n_moved, d = result.n_moved, result.network.n_nodes
    if n_moved == 0:
        return "No table changed by more than its error."
    if d == 1:
        return "The only table changed by more than its error."
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


def say_moved_cells(result: FitResult) -> list[str]:
    """Return the cells that moved most, one of each of the tables that moved most, in words."""
    return [
        f"{say_cell(table.node, parents, state)}: {percent(counted)} counted, "
        f"{percent(robust)} robust"
        for table, parents, state, counted, robust in cell_moves(result, MOST_TOLD)
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
        return (
            "a typical row of this kind is more than a million times more likely to be bad than "
            "good"
        )
    times = float(f"{np.exp(nats):.2g}")
    return (
        f"a typical row of this kind is about {rounded(times, 2)} times more likely to be bad "
        "than good"
    )


def say_cause(kind: Group) -> str:
    """Return what may have made the rows of a kind."""
    if kind.cause is None:
        return "No single cause explains these rows."
    if kind.cause.name == "another population":
        return kind.cause.text
    explained = percent(kind.cause.confidence)
    return f"{kind.cause.text} This explains {explained} of the difference from good rows."


def say_origin(origin: Origin, what: str) -> str:
    """Return where many rows of a kind, or distrusted ones, are."""
    rows = count(origin.n_rows, "row")
    return f"{percent(origin.rate)} of the {rows} with {origin.having} {what}."
