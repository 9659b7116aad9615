"""The parts that every reader finds in a file, and the one place where they become a network.

A reader finds, for each node, its name, its states, its parents and a way to read its table. The
table is read later, when the states of all parents are known and the size of the whole network
has been checked, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log10, prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, Setting, warn
from robustbn._core.config import NodeReading
from robustbn._core.structure import MAX_STATES
from robustbn._core.tables import SUM_TOLERANCE, fill_unknown, find_wrong_configuration
from robustbn.exceptions import NetworkError, UnseenConfigurationWarning
from robustbn.network import BayesianNetwork

MOST_UNKNOWN_NAMED = 3  # configurations without probabilities that a warning names
MAX_PARENTS = 31  # a table has an axis for each, and one of its own; NumPy 1 has 32 axes
SKIP_TABLES = (
    "The tables are not needed to fit: read_network(..., tables=False) reads the structure alone."
)

Labels = tuple[Hashable, ...]
Family = Sequence[Labels]  # the states of each parent, then the node's own


@dataclass(frozen=True)
class ReadTable:
    """A node's table: its values in C order, own states innermost, and where they stand."""

    values: NDArray[np.float64]  # one number a cell
    # gives the line of a configuration, or 0 where the format has no lines
    line_of: Callable[[int], int]


@dataclass(frozen=True)
class NodePart:
    """What a file says of one node."""

    # name, states, parents: as in `BayesianNetwork`
    name: str
    states: Labels
    parents: tuple[str, ...]
    at: int  # where the node is declared; `Parts.line_of` makes a line of it
    parents_at: int  # where its parents are listed
    # reads the table, given the states of the node's family; None if there is none
    read_table: Callable[[Family], ReadTable] | None
    reading: NodeReading | None = None  # how its column is read, if the file says so


@dataclass(frozen=True)
class Parts:
    """What a file says of all nodes, in the order of the columns."""

    nodes: Sequence[NodePart]
    line_of: Callable[[int], int]


def join_parts(
    states: Sequence[tuple[str, Labels, int]],
    definitions: Sequence[NodePart],
    source: str,
    line_of: Callable[[int], int],
    what: str,
) -> Parts:
    """Bring the states of each node together with its definition, whatever the format calls it."""
    require_once([(name, at) for name, _, at in states], source, line_of)
    places = [(each.name, each.at) for each in definitions]
    require_once(places, source, line_of, f"has two {what}s")
    found = {each.name: each for each in definitions}
    known = {name for name, _, _ in states}
    for name, at in places:
        if name not in known:
            message = f"a {what} is given for {name!r}, which is not a node."
            raise refuse(source, line_of(at), message)
    for name, _, at in states:
        if name not in found:
            message = f"node {name!r} has no {what}. Is the file truncated?"
            raise refuse(source, line_of(at), message)
    nodes = [replace(found[name], states=labels, at=at) for name, labels, at in states]
    return Parts(nodes, line_of)


def require_once(
    names: Iterable[tuple[str, int]],
    source: str,
    line_of: Callable[[int], int],
    twice: str = "appears twice",
) -> None:
    """Refuse a name that is there twice; names come with their places."""
    places: dict[str, int] = {}
    for name, at in names:
        if name in places:
            line = line_of(places[name])
            where = f", first on line {line}" if line else ""
            raise refuse(source, line_of(at), f"node {name!r} {twice}{where}.")
        places[name] = at


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
    require_once([(part.name, part.at) for part in parts.nodes], source, parts.line_of)
    _require_states(parts, source)
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
    if not tables or all(part.read_table is None for part in parts.nodes):
        return structure
    flat, found = _read_tables(parts, structure, source)
    flat, is_unknown = fill_unknown(structure.layout, flat)
    _check_tables(structure, flat, found, source, normalize=normalize)
    if is_unknown.any():
        _tell_unknown(structure, is_unknown, source)
        flat[is_unknown[structure.layout.config_of_cell]] = np.nan
    try:
        return structure.with_cpts(structure.tables_of(flat))
    except NetworkError as error:
        raise NetworkError(f"{source}: {error}") from None


def _require_states(parts: Parts, source: str) -> None:
    for part in parts.nodes:
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
    cards = {part.name: len(part.states) for part in parts.nodes}
    families = [[cards[n] for n in (part.name, *part.parents)] for part in parts.nodes]
    logs = [sum(map(log10, family)) for family in families]
    worst = max(range(len(logs)), key=logs.__getitem__, default=-1)
    if worst < 0:
        return  # there is no node, which is told where the network is built
    part, is_huge = parts.nodes[worst], logs[worst] >= 18
    sizes = [0] if is_huge else list(map(prod, families))
    if is_huge or sum(sizes) > max_cells:
        largest = f"10^{logs[worst]:.1f} entries, 10^{logs[worst] + log10(8):.1f} bytes"
        total = "more still"
        if not is_huge:
            largest = f"{sizes[worst]:,} entries, {sizes[worst] * 8:,} bytes"
            total = f"{sum(sizes):,} entries"
        raise refuse(
            source,
            parts.line_of(part.parents_at),
            Advice(
                f"the tables are too large. That of node {part.name!r} with {len(part.parents)} "
                f"parents has {largest}; all together {total}; at most {max_cells:,} entries are "
                "read. Give that node fewer parents, or allow more with ",
                Setting("max_cells", Either("...", "N")),
                ".",
            ),
        )
    for part in parts.nodes:
        if len(part.parents) > MAX_PARENTS:
            raise refuse(
                source,
                parts.line_of(part.parents_at),
                f"node {part.name!r} has {len(part.parents)} parents; at most {MAX_PARENTS} can "
                "be the axes of a table.",
            )


def _read_tables(
    parts: Parts, structure: BayesianNetwork, source: str
) -> tuple[NDArray[np.float64], list[ReadTable]]:
    flat, found, states = np.empty(structure.n_cells), [], structure.states
    cells = pairwise(structure.layout.cell_start.tolist())
    for part, (start, end) in zip(parts.nodes, cells, strict=True):
        if part.read_table is None:
            raise refuse(
                source,
                parts.line_of(part.parents_at),
                f"node {part.name!r} has no table, while other nodes have one. {SKIP_TABLES}",
            )
        table = part.read_table([*(states[p] for p in part.parents), part.states])
        flat[start:end] = table.values
        found.append(table)
    return flat, found


def _tell_unknown(structure: BayesianNetwork, is_unknown: NDArray[np.bool_], source: str) -> None:
    """Warn of configurations that have NaN alone: bnlearn writes those so that are in no row."""
    layout, n = structure.layout, int(is_unknown.sum())
    named = []
    for cell in layout.first_cell_of_config[is_unknown][:MOST_UNKNOWN_NAMED].tolist():
        node, parents, _ = structure.describe_cell(cell)
        setting = ", ".join(f"{parent} = {label}" for parent, label in parents.items())
        named.append(f"{node} given {setting}" if setting else node)
    more = f" and {n - len(named):,} more" if n > len(named) else ""
    has, their = ("has", "Its") if n == 1 else ("have", "Their")
    warn(
        f"{source}: {n:,} of {len(is_unknown):,} configurations {has} no probabilities (nan): "
        f"{'; '.join(named)}{more}. {their} states are assumed to be equally likely.",
        UnseenConfigurationWarning,
    )


def _check_tables(
    structure: BayesianNetwork,
    flat: NDArray[np.float64],
    found: Sequence[ReadTable],
    source: str,
    *,
    normalize: bool,
) -> None:
    """Check every configuration; rescale in place those that do not sum to 1, if asked to."""
    # Values whose sum is within `SUM_TOLERANCE` of 1 are kept as they are, bit by bit.
    layout = structure.layout
    if normalize:
        with np.errstate(all="ignore"):
            sums = layout.sum_configurations(flat)
            usable = (np.abs(sums - 1) > SUM_TOLERANCE) & np.isfinite(sums) & (sums > 0)
            flat /= np.where(usable, sums, 1.0)[layout.config_of_cell]
    wrong = find_wrong_configuration(structure.layout, structure.describe_cell, flat)
    if wrong is None:
        return
    i, k, said = wrong
    hint = Advice("Correct it, or rescale with ", Setting("normalize", True), ". ")
    raise refuse(
        source,
        found[i].line_of(k),
        Advice(f"{said}. ", hint if "sum to" in said and not normalize else "", SKIP_TABLES),
    )


def wrong_count(node: str, expected: int, found: int | str) -> str:
    """Return the words for a table with the wrong number of values."""
    return f"node {node!r} needs {expected:,} probabilities, found {found}. {SKIP_TABLES}"
