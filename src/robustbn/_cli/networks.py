"""Networks as arguments: a file of any format, a model, or an example; and told from a table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.options import at_least
from robustbn._core.file_names import find_near, inner_suffix, nearest_name, plain_path, url_of

if TYPE_CHECKING:
    from robustbn.network import BayesianNetwork

EXAMPLE = "example:"
HEAD_BYTES = 2**16  # of a text file, which tell whether it is a list of edges

states_option = click.option(
    "--states",
    type=click.Path(),
    metavar="FILE",
    help="States of nodes, for an edge list (.csv, .tsv) or UAI.",
)
size_option = click.option(
    "--max-table",
    "max_cells",
    type=at_least(1),
    metavar="N",
    help="Table entries that a network may have.  [default: 67108864]",
)


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
    max_cells: int | None = None,
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
        max_cells=MAX_CELLS if max_cells is None else max_cells,
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
    return path.is_file() and b'"robustbn-model"' in read_bytes(path)[:400]


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
    """Return which columns are no nodes, in a few words; nothing if there are none."""
    n = len(columns)
    which = "1 column that is no node" if n == 1 else f"{n} columns that are no nodes"
    return f"{which}: {some(columns)}" if columns else ""


# --- which argument is the network ----------------------------------------------------------------


def kind_of(text: str) -> str | None:
    """Return what an argument is by its name; None if that does not tell.

    "network", "table", or "text", which may be a table as well as a list of edges.
    """
    from robustbn._networks import FORMATS
    from robustbn._tables.files import TABLE_SUFFIXES
    from robustbn._tables.here import STANDARD_INPUT

    suffix = inner_suffix(plain_path(text))
    if text.startswith(EXAMPLE):
        return "network"
    if suffix in FORMATS:
        return "text" if FORMATS[suffix] == "edges" else "network"
    return "table" if suffix in TABLE_SUFFIXES or text == STANDARD_INPUT else None


def is_swapped(first: str, second: str) -> bool:
    """Whether a network and a table have each other's place; not in doubt."""
    kinds = kind_of(first), kind_of(second)
    if kinds == ("text", "text"):
        return has_edges(first) is False and has_edges(second) is True
    return kinds in (("table", "text"), ("table", "network"), ("text", "network"))


def refuse_swapped(network: str, table: str) -> None:
    """Refuse a network and a table that have each other's place."""
    if is_swapped(network, table):
        raise click.UsageError(
            f"{network} is a table and {table} a network: they have each other's place. The "
            "network comes first, then the table."
        )


def refuse_table(text: str) -> None:
    """Refuse a table where a network or a model is wanted, with the way to a model."""
    kind = kind_of(text)
    if kind == "table" or (kind == "text" and has_edges(text) is False):
        raise click.UsageError(
            f"{text} is a table; two models (fit --model) or two networks with tables are wanted. "
            f"Learn from it first: robustbn fit NETWORK {shlex.quote(text)} --model model.json"
        )


def has_edges(text: str) -> bool | None:
    """Whether the lines at the beginning of a text file are those of edges; None if unreadable."""
    from robustbn._networks.edges import looks_like_edges
    from robustbn._tables.guards import open_unpacked
    from robustbn._tables.here import find_here
    from robustbn.exceptions import DataError

    try:
        file = find_here(text)
        with open_unpacked(file) as stream:
            head = stream.read(HEAD_BYTES)
    except (DataError, OSError):
        return None
    lines = head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1]
    return looks_like_edges(lines.decode("utf-8-sig", "replace"), file.name)


def is_table(text: str, states: str | None) -> bool:
    """Whether a single argument is a table and not a network.

    Parameters
    ----------
    states : a file of states, which only a list of edges has.
    """
    from robustbn._networks import FORMATS
    from robustbn._tables.files import TABLE_SUFFIXES

    kind = kind_of(text)
    if kind is None:  # mistyped: what is beside it?
        near = find_near(Path(text), {*FORMATS, *TABLE_SUFFIXES})
        kind = None if near is None else kind_of(str(near))
        return kind != "network"
    return states is None if kind == "text" else kind == "table"
