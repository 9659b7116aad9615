"""Which column of a table belongs to which node, where its numbers are cut, and how it is read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.config import TableConfig
from robustbn._core.file_names import nearest_name
from robustbn._core.protocols import Column, Vector
from robustbn._core.structure import some
from robustbn._tables.coded import MISSING_STATE
from robustbn._tables.coder import ColumnCoder
from robustbn._tables.number_forms import find_notation
from robustbn._tables.sources import Source, UnreadableError
from robustbn._tables.values import (
    MISSING,
    UNKNOWN,
    StateFinder,
    as_numbers,
    distinct_values,
    split_labels,
    without_gone,
)
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork


def find_columns(source: Source, network: BayesianNetwork, config: TableConfig) -> list[int]:
    """Return the position of each node's column."""
    if source.names is None:
        if source.n_columns != network.n_nodes:
            raise DataError(
                f"{source.where} has {source.n_columns} columns; the network has "
                f"{network.n_nodes} nodes. Column k belongs to network.nodes[k]: "
                f"{some(network.nodes)}. A frame with named columns may have more."
            )
        return list(range(source.n_columns))
    for own in (source.names, *source.headers.values()):
        _check_rename(own, network, config)
    for name, why in source.damaged.items():
        if config.rename.get(name, name) in network.nodes:
            raise UnreadableError(why)
    return place_nodes(source, network.nodes, config.rename)


def _check_rename(columns: Sequence[str], network: BayesianNetwork, config: TableConfig) -> None:
    for column, node in config.rename.items():
        for what, name, names in (("column", column, columns), ("node", node, network.nodes)):
            if name not in names:
                said = f": there is no {what} {name!r}.{nearest_name(name, names)}"
                raise DataError(Advice(Setting("rename", {column: node}), said))


def place_nodes(source: Source, nodes: Sequence[str], rename: Mapping[str, str]) -> list[int]:
    """Return the position of each node's column; every file of a source has to have them all."""
    for where, names in source.headers.items():
        place_columns(where, [rename.get(name, name) for name in names], nodes)
    renamed = [rename.get(name, name) for name in source.names or ()]
    return place_columns(source.where, renamed, nodes)


def place_columns(where: str, names: Sequence[str], nodes: Sequence[str]) -> list[int]:
    """Return the position of each node among the names of a table's columns."""
    place: dict[str, int] = {}
    wanted = set(nodes)
    for k, name in enumerate(names):
        if name in place and name in wanted:
            raise DataError(
                f"{where} has two columns for node {name!r}: number {place[name]} and "
                f"number {k}. Leave one out, or rename it."
            )
        place[name] = k
    missing = [node for node in nodes if node not in place]
    if missing:
        spare = [name for name in names if name not in wanted]
        raise DataError(
            Advice(
                f"{where} lacks {len(missing)} of the network's columns: {some(missing)}. It has "
                f"{some(names)}. ",
                advise_renaming(missing[:8], spare),
            )
        )
    return [place[node] for node in nodes]


def advise_renaming(missing: Sequence[str], spare: Sequence[str]) -> Advice:
    """Say which of the spare columns may be those of nodes that have none."""
    import difflib  # seldom needed

    folded = {name.strip().casefold(): name for name in spare}
    hints = {}
    for node in missing:
        near = folded.get(node.strip().casefold())
        close = [near] if near else difflib.get_close_matches(node, spare, 1)
        if close:
            hints[close[0]] = node
    if hints:
        return Advice("Did you mean ", Setting("rename", hints), "?")
    other = Setting("rename", Either("{column: node}", "COLUMN=NODE"))
    add = "Add the column, or say which one it is with "
    if len(missing) > 1:
        add = "Add the columns, or say which ones they are with "
    return Advice(add, other, ".")


def fix_edges(
    source: Source, network: BayesianNetwork, positions: Sequence[int], config: TableConfig
) -> TableConfig:
    """Return the settings with every cut spelled out, which may take a pass over the columns."""
    bins = config.bins
    if bins is None:
        return config
    if not isinstance(bins, Mapping):
        bins = dict.fromkeys(network.nodes, bins)
    place = dict(zip(network.nodes, positions, strict=True))
    open_ones = [n for n, cut in bins.items() if isinstance(cut, Integral | str) and n in place]
    edges = {n: list(cut) for n, cut in bins.items() if not isinstance(cut, int | Integral | str)}
    wrong = [n for n in bins if n not in place]
    if wrong:
        raise no_such_node("bins", wrong, network.nodes)
    notations = dict(_look_for_notations(source, network, place, edges, config))
    if open_ones:
        if source.is_once:
            raise DataError(
                f"{source.where} can be read only once, so the intervals of {some(open_ones)} "
                "cannot be found first: give their edges."
            )
        stretches = list(source.read([place[n] for n in open_ones]))
        for k, node in enumerate(open_ones):
            gone = split_labels(config.labels.get(node, {}), config.ignore_case)[1]
            columns = [without_gone(each[k], gone) for each in stretches]
            notation = find_notation({text for c in columns for text in _texts_of(c)})
            values = [as_numbers(column, notation) for column in columns]
            whole = np.concatenate(values) if values else np.empty(0)
            edges[node] = find_edges(bins[node], whole).tolist()
            notations |= {} if notation is None else {node: notation}
    return replace(config, bins=edges, notations={**notations, **config.notations})


def _look_for_notations(
    source: Source,
    network: BayesianNetwork,
    place: Mapping[str, int],
    cut: Iterable[str],
    config: TableConfig,
) -> Iterator[tuple[str, str]]:
    """Yield the notation of nodes that are cut at given edges, if their first rows show one."""
    known = {n for n, how in network.reading.items() if how.edges is not None}
    unknown = [n for n in cut if n not in known and n not in config.notations]
    if not unknown or not source.can_be_tried:
        return
    for columns in islice(source.read([place[n] for n in unknown]), 1):
        for node, column in zip(unknown, columns, strict=True):
            notation = find_notation(_texts_of(column))
            if notation is not None:
                yield node, notation


def _texts_of(column: Column) -> set[Any]:
    """Return the values of a column that may be text."""
    is_number = column.labels is None and column.values.dtype.kind in "biufmM"
    return set() if is_number else distinct_values(column)


def find_edges(bins: int | str | Sequence[float], values: NDArray[np.float64]) -> Vector:
    """Return the inner ends of intervals of equal width, or with equally many rows."""
    n = count_intervals(bins)
    values = values[np.isfinite(values)]
    if not len(values):
        return np.arange(1.0, n)
    if isinstance(bins, str):
        return np.quantile(values, np.arange(1, n) / n)
    low, high = values.min(), values.max()
    return np.linspace(low, high if high > low else low + 1, n + 1)[1:-1]


def count_intervals(bins: int | str | Sequence[float]) -> int:
    """Return how many intervals a setting asks for."""
    if isinstance(bins, str):
        return int(bins[1:])
    return len(bins) + 1 if isinstance(bins, Sized) else int(bins)


def no_such_node(setting: str, wrong: list[str], nodes: Sequence[str]) -> DataError:
    """Return the error for a setting that names what is no node."""
    return DataError(
        f"{setting} names {some(wrong)}, which the network does not have."
        f"{nearest_name(wrong[0], nodes)}"
    )


# --- how each column is read ----------------------------------------------------------------------


def make_coders(source: Source, network: BayesianNetwork, config: TableConfig) -> list[ColumnCoder]:
    """Return what turns each node's column into codes."""
    wrong_nodes = [node for node in config.labels if node not in network.states]
    if wrong_nodes:
        raise no_such_node("labels", wrong_nodes, network.nodes)
    coders = []
    for node in network.nodes:
        states = network.states[node]
        said, gone = split_labels(config.labels.get(node, {}), config.ignore_case)
        wrong = [state for state in said.values() if state not in states]
        if wrong:
            raise DataError(
                f"labels[{node!r}] leads to {some(wrong)}, which is not a state of the node; "
                f"states: {some(states)}."
            )
        others, period = config.others.get(node), config.periods.get(node)
        if others is not None and others not in states:
            raise DataError(
                f"others[{node!r}] is {others!r}, which is not a state of the node; states: "
                f"{some(states)}."
            )
        finder = StateFinder(states, said, config.ignore_case, source.is_text, others)
        edges = None
        if isinstance(config.bins, Mapping) and node in config.bins:
            edges = np.asarray(config.bins[node], np.float64)
            more = states[len(edges) + 1 :]
            if len(edges) + 1 > len(states) or set(more) - {others, MISSING_STATE}:
                raise DataError(
                    f"bins[{node!r}] cuts into {len(edges) + 1} intervals at {edges.tolist()}; the "
                    f"node has {len(states)} states: {some(states)}."
                )
            if said:
                raise DataError(f"Node {node!r} has both bins and labels; give only one of them.")
        is_codes = source.is_codes if config.codes is None else config.codes
        is_codes = is_codes and not said and edges is None and others is None and period is None
        if is_codes and source.may_be_labels and config.codes is None:
            _refuse_doubtful_codes(source, node, states, finder)
        notation = config.notations.get(node)
        is_state = config.on_missing == "state" and MISSING_STATE in states
        hole = states.index(MISSING_STATE) if is_state else None
        coders.append(
            ColumnCoder(node, states, finder, edges, is_codes, period, notation, gone, hole)
        )
    return coders


def _refuse_doubtful_codes(
    source: Source, node: str, states: Sequence[Hashable], finder: StateFinder
) -> None:
    """Refuse numbers that are states in one reading and positions of other states in another."""
    for code in range(len(states)):
        as_state = finder.find(code)
        if as_state not in (code, MISSING, UNKNOWN):
            raise DataError(
                f"{source.where}, column {node!r}: {code} could be the state "
                f"{states[as_state]!r}, or the position of {states[code]!r}. States: "
                f"{some(states)}. Say which: for states, read_table(..., codes=False) or a frame "
                "with named columns; for positions, codes=True or an array of uint8."
            )


def follow_network(network: BayesianNetwork, config: TableConfig) -> TableConfig:
    """Return the settings with what the network says of its columns, where they say nothing."""
    if not network.reading or config.codes:
        return config
    said = {n for n, pairs in config.labels.items() if split_labels(pairs)[0]}
    open_ones = {n: how for n, how in network.reading.items() if n not in said}
    bins = config.bins
    if bins is None or isinstance(bins, Mapping):
        own = {n: how.edges for n, how in open_ones.items() if how.edges is not None}
        bins = {**own, **(bins or {})}
    others = {n: how.others for n, how in network.reading.items() if how.others is not None}
    periods = {n: how.period for n, how in open_ones.items() if how.period is not None}
    notations = {n: how.notation for n, how in open_ones.items() if how.notation is not None}
    return replace(
        config,
        bins=bins or None,
        others={**others, **config.others},
        periods={**periods, **config.periods},
        notations={**notations, **config.notations},
    )
