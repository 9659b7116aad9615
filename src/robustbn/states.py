"""Find the states of the nodes of an edge list in a raw table."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustbn._core.calls import naming_the_nearest
from robustbn._core.docstrings import explained_by
from robustbn._core.file_names import nearest_name
from robustbn._core.numbers import count
from robustbn._core.structure import as_names, check_edges
from robustbn._networks.edges import read_parents, read_states
from robustbn._tables.coded import Table
from robustbn._tables.columns import place_nodes
from robustbn._tables.here import localize
from robustbn._tables.identifiers import is_identifier, says_where
from robustbn._tables.sources import Source, open_table
from robustbn._tables.states import (
    GIVEN,
    IDENTIFIER,
    ColumnStates,
    StateRules,
    decide_states,
    propose_states,
)
from robustbn._tables.survey import DATE, NUMBER, ColumnSurvey, survey_columns
from robustbn._tables.table import read_table
from robustbn._tables.values import declare_missing
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork

__all__ = ["FoundStates", "states_from"]

MOST_SHOWN = 8  # states of a column

Edges = (
    str | os.PathLike[str] | BayesianNetwork | Mapping[str, Iterable[str]]
    | Iterable[tuple[str, str]]
)  # fmt: skip


@dataclass(frozen=True)
class FoundStates:
    """The states that a table gives to the nodes of an edge list, and how each was decided.

    Parameters
    ----------
    network : BayesianNetwork
        The structure with its states and how its columns are read.
    columns : tuple of ColumnStates
        What was decided for each node.
    n_rows : int
        The number of rows of the table.
    where : str
        The name of the table.
    ignored : tuple of str, default=()
        The columns of the table that are not nodes.
    left_out : mapping of str to str, optional
        Why columns did not become nodes, if every column was a candidate.

    Examples
    --------
    >>> import robustbn
    >>> rows = {"rain": ["no", "yes"] * 20, "wet": ["dry", "wet", "damp", "wet"] * 10}
    >>> found = robustbn.states_from(rows, [("rain", "wet")])
    >>> found.n_rows, found.states["rain"]
    (40, ('no', 'yes'))
    >>> found.network
    BayesianNetwork(2 nodes, 1 edge, 3 configurations, 8 cells, no tables)
    """

    network: BayesianNetwork
    columns: tuple[ColumnStates, ...]
    n_rows: int
    where: str
    ignored: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def states(self) -> Mapping[str, tuple[Hashable, ...]]:
        """States of each node."""
        return self.network.states

    def __str__(self) -> str:
        lines = [f"{self.where}: {count(self.n_rows, 'row')}, {count(len(self.columns), 'node')}."]
        width = max(len(column.name) for column in self.columns)
        for column in self.columns:
            missing = f"{column.n_missing:,} missing; " if column.n_missing else ""
            note = f" ({column.note})" if column.note else ""
            lines.append(
                f"{column.name:<{width}}  {column.kind:<11}  {missing}{_say_states(column)}{note}"
            )
        if self.ignored:
            lines.append(f"Not used as nodes: {', '.join(self.ignored)}.")
        return "\n".join(lines)


def _say_states(column: ColumnStates) -> str:
    """Return the states of a column in a few words."""
    shown, more = list(map(str, column.states[:MOST_SHOWN])), len(column.states) - MOST_SHOWN
    if more > 0:
        shown.append(f"... ({more} more)")
    return f"{count(len(column.states), 'state')}: {', '.join(shown)}"


@explained_by(read_table)
@naming_the_nearest
def states_from(
    table: Any,
    edges: Edges | None,
    *,
    states: str | Path | Mapping[str, Sequence[Hashable]] | None = None,
    bins: Mapping[str, int | str | Sequence[float]] | int | str | None = None,
    most_states: int = 100,
    most_numbers: int = 12,
    rename: Mapping[str, str] | None = None,
    labels: Mapping[str, Mapping[Hashable, Hashable]] | None = None,
    missing: Any = None,
    ignore_case: bool = False,
    dates: Mapping[str, str] | str | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
    connection: Any = None,
    format: str | None = None,
    sheet: str | int | None = None,
    watch: Callable[[int], None] | None = None,
) -> FoundStates:
    """Find the states of the nodes of an edge list in a table, in one pass with bounded memory.

    Labels become states, in the order of their categories or of time if they have one, and in
    alphabetical order otherwise. Columns with more than `most_numbers` different numbers are cut
    into intervals with about the same number of rows and readable ends. Dates become years,
    quarters, months or days. If there are more than `most_states` labels, the rarest become one
    state, "other". A column in which hardly any value occurs twice is refused. See
    `docs/tables.md`.

    Parameters
    ----------
    table : table-like
        A table with named columns in any form that `read_table` accepts, or a function that opens
        one, for a streamed table.
    edges : path, list, dict, BayesianNetwork or None
        The path of an edge list, (parent, child) pairs, a dict of the parents of each node, or a
        network, whose own states are ignored. None makes every suitable column a node; identifiers,
        dates, columns that say where rows come from, and columns with one value are not suitable.
    states : str, Path, dict or None, default=None
        The states of the nodes where they are known: a mapping, or a file with one. Other states
        are found in the table.
    bins : dict, int, str or None, default=None
        How to cut numbers, as in `read_table`; by default "q4", four intervals with about the same
        number of rows. A node that is named here is always cut.
    most_states : int, default=100
        The largest number of states of a node, including "other".
    most_numbers : int, default=12
        Columns with more different numbers than this are cut into intervals.
    dates : str, dict or None, default=None
        The order in dates such as 03/07/2024, for each node or for all: "dmy" or "mdy"; "ymd" for
        numbers such as 20240531 that are not clearly dates.
    watch : callable or None, default=None
        A function that is called with the number of rows of each chunk that was read.

    Examples
    --------
    >>> import robustbn
    >>> rows = {"pay": list(range(1000, 2000)), "rank": ["low", "high", "medium", "low"] * 250}
    >>> found = robustbn.states_from(rows, [("rank", "pay")])
    >>> found.states["rank"], found.states["pay"]
    (('high', 'low', 'medium'), ('< 1250', '[1250, 1500)', '[1500, 1750)', '>= 1750'))
    >>> fitted = robustbn.fit(found.network, rows, random_state=0)
    """
    source = _open(localize(table, format=format, sheet=sheet), sep, encoding, connection)
    given = {} if states is None else read_states(states)
    rename, dates = rename or {}, dates or {}
    names = tuple(rename.get(name, name) for name in source.names or ())
    parents = {name: [] for name in names} if edges is None else parents_of(edges, names)
    _refuse_unknown("states", given, [*parents, *names])
    parents |= {node: [] for node in given if node not in parents}
    labels = declare_missing(labels, missing, parents)
    for setting, said in (("bins", bins), ("labels", labels), ("dates", dates)):
        _refuse_unknown(setting, said if isinstance(said, Mapping) else {}, list(parents))
    cuts = "q4" if bins is None else bins
    rules = StateRules(most_states, most_numbers, cuts, labels, ignore_case, dates)
    open_ones = [node for node in parents if node not in given]
    positions = place_nodes(source, open_ones, rename)
    places = dict(zip(open_ones, positions, strict=True))
    decided, n_rows, left_out = _find(source, places, rules, watch, is_strict=edges is not None)
    decided |= {node: ColumnStates(node, GIVEN, tuple(said)) for node, said in given.items()}
    parents = {node: of for node, of in parents.items() if node in decided}
    if not parents:
        why = "; ".join(f"{node} {reason}" for node, reason in left_out.items())
        raise DataError(f"{source.where} has no column that can be a node: {why or 'none at all'}.")
    columns = tuple(decided[node] for node in parents)
    network = BayesianNetwork(
        parents,
        {column.name: column.states for column in columns},
        reading={c.name: c.reading for c in columns if c.reading is not None},
    )
    ignored = tuple(name for name in names if name not in parents)
    return FoundStates(network, columns, n_rows, source.where, ignored, left_out)


def _open(table: Any, sep: str | None, encoding: str, connection: Any) -> Source:
    if isinstance(table, Table):
        raise DataError("This table was read for a network already, so its states are known.")
    if callable(table):
        from robustbn._rows.stream.find import as_reader

        table = as_reader(table())
    source = open_table(table, sep=sep, encoding=encoding, connection=connection)
    if source.names is None:
        raise DataError(f"{source.where} has no named columns, so no node can be found in it.")
    return source


def _refuse_unknown(setting: str, said: Iterable[str], nodes: Sequence[str]) -> None:
    """Refuse a setting that names something else than a node."""
    wrong = [node for node in said if node not in set(nodes)]
    if wrong:
        near = nearest_name(wrong[0], nodes)
        raise DataError(f"{setting} names {wrong[0]!r}, which is not a node of the edges.{near}")


def parents_of(edges: Edges, names: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the parents of each node, given edges in any form."""
    if isinstance(edges, BayesianNetwork):
        return {node: list(of) for node, of in edges.parents.items()}
    if isinstance(edges, str | os.PathLike):
        return read_parents(os.fspath(edges), names)
    if isinstance(edges, Mapping):
        parents = {node: list(as_names(node, of)) for node, of in edges.items()}
        for of in list(parents.values()):
            parents |= {name: [] for name in of if name not in parents}
        return parents
    parents = {}
    for parent, child in check_edges(edges):
        parents.setdefault(parent, [])
        parents.setdefault(child, []).append(parent)
    return parents


def _find(
    source: Source,
    places: Mapping[str, int],
    rules: StateRules,
    watch: Callable[[int], None] | None,
    *,
    is_strict: bool,
) -> tuple[dict[str, ColumnStates], int, dict[str, str]]:
    """Return what was decided for some nodes, the number of rows, and why columns were left out."""
    n_rows, decided, left_out = 0, dict[str, ColumnStates](), dict[str, str]()
    if not places:
        return decided, n_rows, left_out
    if not is_strict:
        if source.is_once:
            raise DataError(
                f"{source.where} can be read only once, but finding the columns that can be nodes "
                "takes two passes: give a table that can be read again, or edges."
            )
        left_out = _find_names(source, places)
        places = {node: k for node, k in places.items() if node not in left_out}
    gone = {k: rules.split_labels(node)[1] for node, k in places.items()}
    surveys: list[ColumnSurvey] = []
    for surveys in survey_columns(source, list(places.values()), gone):
        if watch is not None and surveys:
            watch(surveys[0].n_rows - n_rows)
        n_rows = surveys[0].n_rows if surveys else 0
    for survey, node in zip(surveys, places, strict=True):
        survey.name = node
        found = decide_states(survey, rules) if is_strict else propose_states(survey, rules)
        if rules.is_cut(node) and found.kind not in (NUMBER, IDENTIFIER):
            raise DataError(
                f"bins['{node}']: column {node!r} holds {found.kind}s, such as "
                f"{found.states[0]!r}, and no numbers that could be cut."
            )
        why = "" if is_strict else _why_left_out(found)
        if why:
            left_out[node] = why
        else:
            decided[node] = found
    return decided, n_rows, left_out


def _find_names(source: Source, places: Mapping[str, int]) -> dict[str, str]:
    """Return the columns that identify rows or places, with the reason to leave them out."""
    found = {node: "cannot be read" for node in places if node in source.damaged}
    found |= {
        node: "says where the row comes from, so it is context"
        for node in places
        if says_where(node)
    }
    left = [node for node in places if node not in found]
    for columns in source.read([places[node] for node in left]):
        for node, column in zip(left, columns, strict=True):
            if is_identifier(node, column, source.is_text):
                found[node] = "looks like an identifier"
        break
    return found


def _why_left_out(found: ColumnStates) -> str:
    """Return why a column does not become a node by default; empty if it does."""
    if found.kind == DATE:
        return "says when the row was made, so it is context"
    if found.kind == IDENTIFIER:
        return "looks like an identifier"
    n = len(found.states)
    return "" if n > 1 else "has no values" if n == 0 else "has only one value"
