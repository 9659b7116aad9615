"""The parts that every reader finds in a file, and the one place where they become a network.

A reader finds, for each node, its name, its states, its parents and a way to read its table. The
table is read later, when the states of all parents are known and the size of the whole network
has been checked, or not at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import log10, prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.config import NodeReading
from robustbn._core.structure import MAX_STATES
from robustbn.exceptions import NetworkError, UnseenConfigurationWarning
from robustbn.network import SUM_TOLERANCE, BayesianNetwork

MOST_UNKNOWN_NAMED = 3  # configurations without probabilities that a warning names
MAX_PARENTS = 31  # a table has an axis for each, and one of its own; NumPy 1 has 32 axes
SKIP_TABLES = (
    "The tables are not needed to fit: read_network(..., tables=False) reads the structure alone."
)

Labels = tuple[Hashable, ...]
Family = Sequence[Labels]  # the states of each parent, then the node's own


@dataclass(frozen=True)
class ReadTable:
    """A node's table: its values in C order, own states innermost, and where they stand.

    Parameters
    ----------
    values : one number a cell.
    line_of : gives the line of a configuration, or 0 where the format has no lines.
    """

    values: NDArray[np.float64]
    line_of: Callable[[int], int]


@dataclass(frozen=True)
class NodePart:
    """What a file says of one node.

    Parameters
    ----------
    name, states, parents : as in `BayesianNetwork`.
    at : where the node is declared; `Parts.line_of` makes a line of it.
    parents_at : where its parents are listed.
    read_table : reads the table, given the states of the node's family; None if there is none.
    reading : how its column is read, if the file says so.
    """

    name: str
    states: Labels
    parents: tuple[str, ...]
    at: int
    parents_at: int
    read_table: Callable[[Family], ReadTable] | None
    reading: NodeReading | None = None


@dataclass(frozen=True)
class Parts:
    """What a file says of all nodes, in the order of the columns."""

    nodes: Sequence[NodePart]
    line_of: Callable[[int], int]


def refuse(source: str, line: int, message: str | Advice) -> NetworkError:
    """Return the error that names the file and, if known, the line."""
    return NetworkError(Advice(f"{source}, line {line}: " if line else f"{source}: ", message))


def show(found: object, limit: int = 60) -> str:
    """Return what was found in the file, shortened, for an error message."""
    text = repr(found)
    return text if len(text) <= limit else f"{text[:limit]}..."


def build_network(
    parts: Parts, source: str, *, tables: bool, normalize: bool, max_cells: int
) -> BayesianNetwork:
    """Build the network from its parts, with file and line in every error."""
    _require_unique_names(parts, source)
    _require_known_parents(parts, source)
    _require_size(parts, source, max_cells)
    try:
        structure = BayesianNetwork(
            {part.name: part.parents for part in parts.nodes},
            {part.name: part.states for part in parts.nodes},
            reading={p.name: p.reading for p in parts.nodes if p.reading is not None},
        )
    except NetworkError as error:
        raise NetworkError(f"{source}: {error}") from None
    bare = [part for part in parts.nodes if part.read_table is None]
    if not tables or len(bare) == len(parts.nodes):
        return structure
    if bare:
        raise refuse(
            source,
            parts.line_of(bare[0].parents_at),
            f"node {bare[0].name!r} has no table, while other nodes have one. {SKIP_TABLES}",
        )
    flat, found = _read_tables(parts, structure)
    _fill_unknown(structure, flat, source)
    _check_tables(structure, flat, found, source, normalize=normalize)
    try:
        return structure.with_cpts(flat)
    except NetworkError as error:
        raise NetworkError(f"{source}: {error}") from None


def _require_unique_names(parts: Parts, source: str) -> None:
    first: dict[str, NodePart] = {}
    for part in parts.nodes:
        if part.name in first:
            line = parts.line_of(first[part.name].at)
            where = f", first on line {line}" if line else ""
            raise refuse(
                source, parts.line_of(part.at), f"node {part.name!r} appears twice{where}."
            )
        first[part.name] = part
        n = len(part.states)
        if not 1 <= n <= MAX_STATES or len(set(part.states)) < n:
            what = "the same state twice" if 1 <= n <= MAX_STATES else f"{n:,} states"
            raise refuse(
                source,
                parts.line_of(part.at),
                f"node {part.name!r} has {what}; a node has 1 to {MAX_STATES:,} states, all "
                f"different. Found {show(list(part.states))}.",
            )


def _require_known_parents(parts: Parts, source: str) -> None:
    known = {part.name for part in parts.nodes}
    for part in parts.nodes:
        if not known.issuperset(part.parents):
            unknown = next(p for p in part.parents if p not in known)
            message = unknown_parent(part.name, unknown, known)
            raise refuse(source, parts.line_of(part.parents_at), message)


def unknown_parent(node: str, parent: str, known: Iterable[str]) -> str:
    """Return the words for a parent that is not declared."""
    return (
        f"node {node!r} has the unknown parent {parent!r}; no node of that name is declared. "
        f"Nodes: {show(sorted(known))}."
    )


def _require_size(parts: Parts, source: str, max_cells: int) -> None:
    """Refuse tables that are too large, before anything is allocated for them."""
    magnitude = {part.name: log10(len(part.states)) for part in parts.nodes}
    logs = [sum(magnitude[p] for p in part.parents) + magnitude[part.name] for part in parts.nodes]
    worst = max(range(len(logs)), key=logs.__getitem__, default=0)
    if not logs or (logs[worst] < 18 and sum(10**x for x in logs) <= max_cells * (1 - 1e-9)):
        _require_few_parents(parts, source)
        return
    part = parts.nodes[worst]
    cards = {p.name: len(p.states) for p in parts.nodes}
    if logs[worst] < 18:
        sizes = [prod([cards[p] for p in q.parents], start=cards[q.name]) for q in parts.nodes]
        if sum(sizes) <= max_cells:
            _require_few_parents(parts, source)
            return
        largest = f"{sizes[worst]:,} entries, {sizes[worst] * 8:,} bytes"
        total = f"{sum(sizes):,} entries"
    else:
        largest = f"10^{logs[worst]:.1f} entries, 10^{logs[worst] + log10(8):.1f} bytes"
        total = "more still"
    raise refuse(
        source,
        parts.line_of(part.parents_at),
        Advice(
            f"the tables are too large. That of node {part.name!r} with {len(part.parents)} "
            f"parents has {largest}; all together {total}; at most {max_cells:,} entries are read. "
            "Give that node fewer parents, or allow more with ",
            Setting("max_cells", Either("...", "N")),
            ".",
        ),
    )


def _require_few_parents(parts: Parts, source: str) -> None:
    for part in parts.nodes:
        if len(part.parents) > MAX_PARENTS:
            raise refuse(
                source,
                parts.line_of(part.parents_at),
                f"node {part.name!r} has {len(part.parents)} parents; at most {MAX_PARENTS} can "
                "be the axes of a table.",
            )


def _read_tables(
    parts: Parts, structure: BayesianNetwork
) -> tuple[NDArray[np.float64], list[ReadTable]]:
    start = structure.layout.cell_start.tolist()
    flat = np.empty(structure.n_cells)
    states = structure.states
    found = []
    for i, part in enumerate(parts.nodes):
        family = [*(states[p] for p in part.parents), part.states]
        assert part.read_table is not None  # noqa: S101  # checked by the caller
        table = part.read_table(family)
        flat[start[i] : start[i + 1]] = table.values
        found.append(table)
    return flat, found


def _fill_unknown(structure: BayesianNetwork, flat: NDArray[np.float64], source: str) -> None:
    """Give equal probabilities, in place, to configurations that have NaN alone, and warn of them.

    That is how bnlearn writes configurations that occur in no row.
    """
    layout = structure.layout
    is_nan = np.isnan(flat)
    n_states = layout.sum_configurations(np.ones_like(flat))
    is_unknown = layout.sum_configurations(is_nan) == n_states
    n = int(np.count_nonzero(is_unknown))
    if not n:
        return
    np.copyto(flat, (1 / n_states)[layout.config_of_cell], where=is_unknown[layout.config_of_cell])
    named = []
    for cell in layout.first_cell_of_config[is_unknown][:MOST_UNKNOWN_NAMED].tolist():
        node, parents, _ = structure.describe_cell(cell)
        setting = ", ".join(f"{parent} = {label}" for parent, label in parents.items())
        named.append(f"{node} given {setting}" if setting else node)
    more = f" and {n - len(named):,} more" if n > len(named) else ""
    has, their = ("has", "Its") if n == 1 else ("have", "Their")
    warnings.warn(
        f"{source}: {n:,} of {len(is_unknown):,} configurations {has} no probabilities (nan): "
        f"{'; '.join(named)}{more}. {their} states are taken to be equally likely.",
        UnseenConfigurationWarning,
        stacklevel=5,
    )


def _check_tables(
    structure: BayesianNetwork,
    flat: NDArray[np.float64],
    found: Sequence[ReadTable],
    source: str,
    *,
    normalize: bool,
) -> None:
    """Check every configuration; rescale in place those that do not sum to 1, if asked to.

    Values whose sum is within `SUM_TOLERANCE` of 1 are kept as they are, bit by bit.
    """
    layout = structure.layout
    with np.errstate(all="ignore"):
        sums = layout.sum_configurations(flat)
        is_off = ~(np.abs(sums - 1) <= SUM_TOLERANCE)
        if normalize:
            usable = is_off & np.isfinite(sums) & (sums > 0)
            flat /= np.where(usable, sums, 1.0)[layout.config_of_cell]
            sums = layout.sum_configurations(flat)
            is_off = ~(np.abs(sums - 1) <= SUM_TOLERANCE)
    for wrong, what, hint in (
        (~np.isfinite(flat), "has a value that is not finite", ""),
        (flat < 0, "has a negative probability", ""),
        (
            is_off[layout.config_of_cell],
            "does not sum to 1",
            ""
            if normalize
            else Advice("Correct it, or rescale with ", Setting("normalize", True), ". "),
        ),
    ):
        if wrong.any():
            cell = int(np.argmax(wrong))
            raise _wrong_configuration(structure, flat, found, source, cell, what, hint)


def _wrong_configuration(
    structure: BayesianNetwork,
    flat: NDArray[np.float64],
    found: Sequence[ReadTable],
    source: str,
    cell: int,
    what: str,
    hint: str | Advice,
) -> NetworkError:
    layout = structure.layout
    i = int(np.searchsorted(layout.cell_start, cell, side="right")) - 1
    card = layout.cards[i]
    k = (cell - int(layout.cell_start[i])) // card
    first = int(layout.cell_start[i]) + k * card
    values = flat[first : first + card]
    node, parents, _ = structure.describe_cell(first)
    setting = ", ".join(f"{p}={label!r}" for p, label in parents.items())
    with np.errstate(all="ignore"):
        total = values.sum()
    return refuse(
        source,
        found[i].line_of(k),
        Advice(
            f"table of node {node!r}{', configuration ' if setting else ''}{setting}: "
            f"{show(values.tolist(), 200)} {what} (sum {total:.9g}). ",
            hint,
            SKIP_TABLES,
        ),
    )


def wrong_count(node: str, expected: int, found: int | str) -> str:
    """Return the words for a table with the wrong number of values."""
    return f"node {node!r} needs {expected:,} probabilities, found {found}. {SKIP_TABLES}"
