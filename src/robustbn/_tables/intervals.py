"""Where the numbers of a table's columns are cut, and how they are written there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np

from robustbn._core.config import TableConfig
from robustbn._core.file_names import nearest_name
from robustbn._core.protocols import Column
from robustbn._tables.coded import some
from robustbn._tables.encode import as_numbers, distinct_values, find_edges, without_gone
from robustbn._tables.encode.labels import split_labels
from robustbn._tables.encode.notation import find_notation
from robustbn._tables.sources import Source
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork


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
                f"{source.where} can be read once only, so the intervals of {some(open_ones)} "
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


def no_such_node(setting: str, wrong: list[str], nodes: Sequence[str]) -> DataError:
    """Return the error for a setting that names what is no node."""
    return DataError(
        f"{setting} names {some(wrong)}, which the network does not have."
        f"{nearest_name(wrong[0], nodes)}"
    )
