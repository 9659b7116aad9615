"""Draft a structure from a table alone, for a person to review and correct."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.config import RobustConfig
from robustbn._core.file_names import nearest_name
from robustbn._core.layout import Codes
from robustbn._core.numbers import count, count_are
from robustbn._core.structure import check_edges, some, sort_topologically
from robustbn._learn.draft import Limits
from robustbn._learn.draft_rounds import Drafted, draft_rows
from robustbn._networks.edges import write_edge
from robustbn._show.progress import showing_progress
from robustbn._tables.coded import require_rows
from robustbn._tables.table import read_table
from robustbn.exceptions import DataError, SettingError, UnknownSettingError
from robustbn.network import BayesianNetwork
from robustbn.states import FoundStates, states_from

RARELY, MOSTLY = 0.8, 0.8  # share of the resamples in which an edge, and its direction, returns
FIRST_LOOKED_AT = 5  # edges
CAUTION = (
    "This is a draft. An edge means that two columns depend on each other; its direction does not "
    "imply causation."
)


@dataclass(frozen=True)
class DraftEdge:
    """An edge of a draft.

    Parameters
    ----------
    parent, child : its ends.
    gain : log-likelihood that it brings to its child beside the child's other parents, less the
        price of its parameters, in nats; see `docs/draft.md`.
    returns : share of drafts of half of the rows that have it, either way round.
    same_way : share that has it this way round.
    """

    parent: str
    child: str
    gain: float
    returns: float
    same_way: float

    def __str__(self) -> str:
        way = "" if self.same_way >= MOSTLY * self.returns else "; may point the other way"
        return (
            f"{self.parent} -> {self.child}: {self.gain:,.0f} nats, in {self.returns:.0%} of the "
            f"resamples{way}"
        )


@dataclass(frozen=True, eq=False)
class Draft:
    """A structure that a table suggests; review it before you use it.

    Parameters
    ----------
    network : BayesianNetwork
        The columns, with their states and how they are read.
    edges : tuple of DraftEdge
        The edges of the network, the largest gain first.
    left_out : mapping of str to str
        The columns that were not considered, and why.
    alone : tuple of str
        The nodes without an edge.
    n_rows : int
        The number of rows of the table.
    n_rows_left_out : int
        The number of rows that were not used because they do not look like the others.
    n_cells_left_out : int
        The number of single cells that were not used because they are likely to be wrong.
    where : str
        The name of the table.
    found : FoundStates
        How the states were decided.

    Examples
    --------
    >>> import robustbn
    >>> alarm = robustbn.example_network("alarm")
    >>> rows = robustbn.sample(alarm, 5_000, random_state=0)
    >>> table = {node: rows[:, k] for k, node in enumerate(alarm.nodes)}
    >>> draft = robustbn.draft({k: table[k] for k in ("CVP", "LVEDVOLUME", "PCWP")}, random_state=0)
    >>> len(draft.edges), draft.n_rows
    (2, 5000)
    """

    network: BayesianNetwork
    edges: tuple[DraftEdge, ...]
    left_out: Mapping[str, str]
    alone: tuple[str, ...]
    n_rows: int
    n_rows_left_out: int
    n_cells_left_out: int
    where: str
    found: FoundStates = field(repr=False)

    @property
    def found_of_nodes(self) -> FoundStates:
        """How the states of the nodes were decided."""
        nodes = self.network.parents
        columns = tuple(each for each in self.found.columns if each.name in nodes)
        return replace(self.found, network=self.network, columns=columns)

    def look_first(self) -> list[DraftEdge]:
        """Return the least certain edges: those that return rarely, or in either direction."""
        doubtful = [
            edge
            for edge in self.edges
            if edge.returns < RARELY or edge.same_way < MOSTLY * edge.returns
        ]
        return sorted(doubtful, key=lambda edge: (edge.returns, edge.gain))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the nodes as lines `,node` and the edges as lines `parent,child`, for a fit.

        A fit with the file is the fit with `network`, group by group: the order of the nodes is
        that of their lines.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        lines = ["parent,child", *(write_edge("", node) for node in self.network.nodes)]
        lines += [write_edge(edge.parent, edge.child) for edge in self.edges]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        size = f"{count(self.n_rows, 'row')}, {count(self.network.n_nodes, 'node')}"
        lines = [f"{self.where}: {size}, {count(len(self.edges), 'edge')}.", CAUTION]
        if self.n_rows_left_out:
            lines.append(
                f"{count_are(self.n_rows_left_out, 'row')} left out of it, because no edges "
                "explain how they differ from the others."
            )
        if self.n_cells_left_out:
            lines.append(f"{count_are(self.n_cells_left_out, 'cell')} likely to be wrong.")
        lines += [str(edge) for edge in self.edges]
        first = self.look_first()[:FIRST_LOOKED_AT]
        if first:
            named = ", ".join(f"{edge.parent} -> {edge.child}" for edge in first)
            lines.append(f"Review first: {named}.")
        lines += [f"Left out: {name} {why}." for name, why in self.left_out.items()]
        if self.alone:
            lines.append(f"Without an edge: {some(self.alone)}.")
        return "\n".join(lines)


def draft(
    table: Any,
    *,
    most_parents: int = 3,
    forbid: Iterable[tuple[str, str]] = (),
    require: Iterable[tuple[str, str]] = (),
    order: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    robust: bool = True,
    cells: str = "trust",
    random_state: int = 0,
    **reading: Any,
) -> Draft:
    """Draft the structure of a network from a table: which columns depend on each other.

    States are found as in `states_from`. The draft starts from a tree and adds, removes or reverses
    single edges as long as the BIC improves (the log-likelihood minus half the log of the number of
    rows for each parameter). Rows that no edges explain are left out, and the others are drafted
    again. Identifiers, dates, columns named like places of origin (site, batch, operator),
    constants and copies of columns do not become nodes, unless you give their states. The direction
    of an edge does not imply causation: review the draft, and correct it.

    Parameters
    ----------
    table : table-like
        A table with named columns, in any form that `read_table` accepts and that can be read
        twice.
    most_parents : int, default=3
        The largest number of parents of a node.
    forbid : list of tuple, default=()
        The (parent, child) pairs that must not be edges.
    require : list of tuple, default=()
        The (parent, child) pairs that must be edges.
    order : list of str, default=()
        Columns, the earliest first; no edge points from a later to an earlier one.
    leave_out : list of str, default=()
        Columns that must not become nodes, such as a region; a fit uses them as context.
    robust : bool, default=True
        Whether rows that do not look like the others may be left out.
    cells : {"find", "trust"}, default="trust"
        "find" leaves out single cells that are likely to be wrong.
    random_state : int, default=0
        The seed.
    **reading : dict
        How columns become states: `states`, `bins`, `most_states`, `most_numbers`, `rename`,
        `labels`, `missing`, `ignore_case`, `dates`, `sep`, `encoding`, `connection`, `format` and
        `sheet`, as in `states_from`.

    Examples
    --------
    >>> import robustbn
    >>> rows = {"rain": ["no", "yes"] * 50, "wet": ["dry", "wet"] * 49 + ["wet", "dry"]}
    >>> print(robustbn.draft(rows).edges[0])
    rain -> wet: 57 nats, in 100% of the resamples
    """
    of_states = {
        n for n in inspect.signature(states_from).parameters if n not in ("table", "edges")
    }
    for name in reading:
        if name not in of_states:
            near = nearest_name(name, [*of_states, *inspect.signature(draft).parameters])
            raise UnknownSettingError(f"draft has no setting {name!r}.{near}")
    config = RobustConfig(cells=cells, seed=random_state)
    found = states_from(table, None, **reading)
    left_out = dict(found.left_out)
    for name in leave_out:
        _require_column(name, "leave_out", found, left_out)
        left_out[name] = "is left out, as requested"
    nodes = [node for node in found.network.nodes if node not in left_out]
    known = {n: reading[n] for n in inspect.signature(read_table).parameters if n in reading}
    known.pop("bins", None)  # they are stored in the network now
    structure = _network(found.network, {node: [] for node in nodes})
    read = read_table(table, structure, on_unknown="missing", context=(), **known)
    require_rows(len(read))
    columns = _find_copies(read.codes, nodes, left_out)
    if len(columns) < 2:
        why = "".join(f" {name} {left_out[name]}." for name in left_out)
        raise DataError(
            f"{found.where} has {count(len(columns), 'column')} that can be a node, but an edge "
            f"needs two.{why} Give the states of a column to make it a node: states={{...}}."
        )
    names = [nodes[k] for k in columns]
    limits = _limits(names, found, left_out, most_parents, forbid, require, order)
    codes = np.ascontiguousarray(read.codes[:, columns])
    cards = [len(found.network.states[name]) for name in names]
    with showing_progress("Drafting edges"):
        drafted = draft_rows(codes, cards, limits, config, robust=robust)
    return _describe(drafted, names, found, left_out)


def _network(network: BayesianNetwork, parents: Mapping[str, Sequence[str]]) -> BayesianNetwork:
    """Return a structure over some nodes of a network, with the same reading of columns."""
    return BayesianNetwork(
        parents,
        {node: network.states[node] for node in parents},
        reading={node: how for node, how in network.reading.items() if node in parents},
    )


def _find_copies(codes: Codes, nodes: Sequence[str], left_out: dict[str, str]) -> list[int]:
    """Return the columns that are neither constant nor copies; add the others to `left_out`."""
    first: dict[bytes, int] = {}
    for k, column in enumerate(codes.T):
        _, at, places = np.unique(column, return_index=True, return_inverse=True)
        renamed = np.argsort(np.argsort(at))[places]  # by first occurrence, whatever the names
        print_of = sha256(renamed.astype(np.uint16).tobytes()).digest()
        same = first.setdefault(print_of, k)
        if len(at) < 2:
            left_out[nodes[k]] = "has only one value"
        elif same != k:
            left_out[nodes[k]] = f"is a copy of {nodes[same]}"
    return [k for k, node in enumerate(nodes) if node not in left_out]


def _require_column(
    name: str, setting: str, found: FoundStates, left_out: Mapping[str, str]
) -> None:
    """Refuse a name that is not a column."""
    names = [*found.network.nodes, *found.ignored, *left_out]
    if name not in names:
        near = nearest_name(name, names)
        raise DataError(f"{setting} names {name!r}, which is not a column of {found.where}.{near}")


def _limits(
    names: Sequence[str],
    found: FoundStates,
    left_out: Mapping[str, str],
    most_parents: int,
    forbid: Iterable[tuple[str, str]],
    require: Iterable[tuple[str, str]],
    order: Sequence[str],
) -> Limits:
    """Return the limits of a draft, by column numbers; refuse limits that contradict each other."""
    if not isinstance(most_parents, Integral) or most_parents < 1:
        raise SettingError(f"most_parents is a whole number, at least 1; found {most_parents!r}.")
    if isinstance(order, str) or len(set(order)) != len(order):
        raise SettingError(f"order is a list of columns, each of them once; found {order!r}.")
    forbidden, required = check_edges(forbid), check_edges(require)
    said = {"forbid": forbidden, "require": required, "order": [(name, name) for name in order]}
    for setting, pairs in said.items():
        for name in (end for pair in pairs for end in pair):
            _require_column(name, setting, found, left_out)
            if name in left_out and setting == "require":
                raise DataError(f"require names {name!r}, which {left_out[name]}.")
    place = {name: k for k, name in enumerate(names)}
    later = [(b, a) for k, a in enumerate(order) for b in order[k + 1 :]]
    for pair in required:
        if pair in forbidden or pair in later or pair[0] == pair[1]:
            what = "is forbidden" if pair in forbidden else "points from a later column of order"
            what = "leads from a column to itself" if pair[0] == pair[1] else what
            raise SettingError(f"The required edge {pair[0]!r} -> {pair[1]!r} {what}.")
    parents = {name: [a for a, b in dict.fromkeys(required) if b == name] for name in names}
    sort_topologically({name: tuple(own) for name, own in parents.items()})  # refuses a cycle
    for name, own in parents.items():
        if len(own) > most_parents:
            raise SettingError(
                f"require gives {name!r} {count(len(own), 'parent')}, and most_parents is "
                f"{most_parents}."
            )
    known = [(a, b) for a, b in [*forbidden, *later] if a in place and b in place]
    return Limits(
        int(most_parents),
        frozenset((place[a], place[b]) for a, b in known),
        frozenset((place[a], place[b]) for a, b in required),
    )


def _describe(
    drafted: Drafted, names: Sequence[str], found: FoundStates, left_out: Mapping[str, str]
) -> Draft:
    edges = sorted(
        (
            DraftEdge(names[p], names[c], gain, drafted.returns[p, c], drafted.same_way[p, c])
            for (p, c), gain in drafted.gains.items()
        ),
        key=lambda edge: -edge.gain,
    )
    linked = {end for edge in edges for end in (edge.parent, edge.child)}
    structure = zip(names, drafted.structure, strict=True)
    parents = {name: [names[p] for p in own] for name, own in structure}
    return Draft(
        _network(found.network, parents),
        tuple(edges),
        dict(left_out),
        tuple(name for name in names if name not in linked),
        len(drafted.is_left_out),
        int(drafted.is_left_out.sum()),
        drafted.n_wrong,
        found.where,
        found,
    )
