"""Networks as arguments: a file of any format, a model, or an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.count import Count, Kind
from robustbn._core.file_names import nearest_name, plain_path, url_of
from robustbn._networks.edges import read_edge

if TYPE_CHECKING:
    from robustbn.network import BayesianNetwork

EXAMPLE = "example:"
NETWORK_HELP = "NETWORK is a file (.bif, .json, .xdsl, ...), a model, or example:alarm."


def network_options(function: Any) -> Any:
    """Give a command the options of reading a network."""
    for option in (
        click.option(
            "--max-table",
            type=Count(1),
            metavar="N",
            help="Table entries that a network may have.  [default: 67108864]",
        ),
        click.option(
            "--states",
            type=click.Path(),
            metavar="FILE",
            help="States of the nodes, for an edge list (.csv, .tsv) or UAI.",
        ),
    ):
        function = option(function)
    return function


class Edge(Kind):
    """An edge as a line of an edge list: `parent,child`."""

    name = "edge"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return the parent and the child."""
        edge = read_edge(value) if isinstance(value, str) else value
        if edge is None:
            self.fail(f"{value!r} is no edge: write PARENT,CHILD.", param, ctx)
        return edge


def with_edges(network: BayesianNetwork, edges: Sequence[tuple[str, str]]) -> BayesianNetwork:
    """Return a network with more edges; a name that is no node is answered by the nearest."""
    for parent, child in edges:
        for name in (parent, child):
            if name not in network.nodes:
                near = nearest_name(name, network.nodes)
                raise click.UsageError(f"--edge {parent},{child}: there is no node {name!r}.{near}")
    return network.with_edges(edges) if edges else network


def load_network(
    text: str,
    *,
    states: str | None = None,
    max_table: int | None = None,
    tables: bool = True,
    normalize: bool = False,
    format: str | None = None,
) -> BayesianNetwork:
    """Return the network that an argument names."""
    from robustbn._networks import MAX_CELLS, example_network, read_network
    from robustbn.exceptions import NetworkError

    if text.startswith(EXAMPLE):
        try:
            return example_network(text.removeprefix(EXAMPLE))
        except ValueError as error:
            raise NetworkError(str(error)) from None
    if is_model(text):
        network: BayesianNetwork = load_model(text).network_
        return network
    return read_network(
        text,
        format=format,
        states=states,
        tables=tables,
        normalize=normalize,
        max_cells=MAX_CELLS if max_table is None else max_table,
    )


def bring_network(text: str) -> str:
    """Return the name of a network here; one that is elsewhere is fetched, once for a command."""
    from robustbn._networks.files import find_file

    return text if url_of(text) is None else str(find_file(text))


def require_tables(network: BayesianNetwork, text: str, why: str) -> None:
    """Refuse a network without tables."""
    from robustbn.exceptions import NetworkError

    if not network.has_cpts:
        raise NetworkError(
            f"{text} has a structure but no tables, and {why} needs them. Learn them: robustbn fit "
            f"{text} TABLE -o fitted.json."
        )


def is_model(text: str) -> bool:
    """Whether a file is a fitted estimator, as `fit --model` writes it."""
    from robustbn._networks.files import find_file, read_bytes

    names = [s.lower() for s in plain_path(text).suffixes[-2:]]
    if text.startswith(EXAMPLE) or ".json" not in names:
        return False
    path = find_file(text)
    if not path.is_file():
        return False
    return b'"robustbn-model"' in read_bytes(path)[:400]


def load_model(text: str) -> Any:
    """Return a fitted estimator from a file."""
    from robustbn.estimator import MaximumLikelihoodEstimator, RobustEstimator
    from robustbn.estimator.model_file import read_model

    is_plain = read_model(text).estimator == MaximumLikelihoodEstimator.__name__
    return (MaximumLikelihoodEstimator if is_plain else RobustEstimator).load(text)


def describe(network: BayesianNetwork) -> dict[str, Any]:
    """Return what a network is, as figures."""
    layout = network.layout
    cards = layout.cards
    return {
        "nodes": network.n_nodes,
        "edges": len(network.edges),
        "configurations": network.n_configurations,
        "cells": network.n_cells,
        "free_parameters": layout.n_free,
        "states": {"fewest": min(cards), "most": max(cards)},
        "most_parents": max(len(family) - 1 for family in layout.families),
        "has_tables": network.has_cpts,
    }


def some(names: Sequence[object], limit: int = 8) -> str:
    """Return a few names, and how many more there are."""
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(str, names[:limit])) + more


def say_ignored(columns: Sequence[str]) -> str:
    """Return which columns are no nodes, in a few words."""
    n = (
        "1 column that is no node"
        if len(columns) == 1
        else f"{len(columns)} columns that are no nodes"
    )
    return f"{n}: {some(columns)}"
