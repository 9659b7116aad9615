"""Networks and tables as arguments: told apart, brought here, read; and the options of reading."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.options import at_least, say, setting_options, with_options
from robustbn._cli.screen import Steps
from robustbn._core.config import DATE_ORDERS, TableConfig
from robustbn._core.file_names import (
    TABLE_FORMATS,
    find_near,
    inner_suffix,
    name_of,
    nearest_name,
    plain_path,
    url_of,
)

if TYPE_CHECKING:
    from robustbn._tables.coded import Table
    from robustbn._tables.sources import Source
    from robustbn.network import BayesianNetwork

EXAMPLE = "example:"
HEAD_BYTES = 2**16  # of a text file, which tell whether it is a list of edges
VALUES = ("on_unknown", "on_missing", "codes")  # what states are needed for
COLUMNS = ("bins", "rename", "labels", "ignore_case")
TEXT_FILES = ("sep", "encoding")
ASIDE = ("context", "id", "keep")
LIMITS = ("most_states", "most_numbers")
HOW_MISSING = ("use", "observed", "state", "drop", "error")

states_option = click.option(
    "--states",
    type=click.Path(),
    metavar="FILE",
    help="States of the nodes of an edge list (.csv, .tsv) or UAI file.",
)
size_option = click.option(
    "--max-table",
    "max_cells",
    type=at_least(1),
    metavar="N",
    help="Largest number of table entries that a network may have.  [default: 67108864]",
)
source_options = with_options(
    setting_options(TableConfig, *COLUMNS, *TEXT_FILES),
    click.option(
        "--format",
        type=click.Choice(TABLE_FORMATS),
        help="Format of TABLE, regardless of its name; that of '-' is detected.",
    ),
    click.option(
        "--sheet",
        metavar="NAME",
        help="Sheet of a workbook (.xlsx): its name, or its number from 1.",
    ),
)
table_options = with_options(setting_options(TableConfig, *VALUES), source_options)
aside_options = setting_options(TableConfig, *ASIDE)
state_options = with_options(
    click.option(
        "--dates",
        multiple=True,
        metavar="NODE:ORDER",
        help="Order of day and month in dates such as 03/07/2024: dmy or mdy; ymd for 20240703. "
        "Without NODE, for all nodes. Only for states found in the table.",
    ),
    click.option(
        "--most-states",
        type=at_least(2),
        metavar="N",
        help="Largest number of states of a node; rarer labels become 'other'. Only for states "
        "found in the table.  [default: 100]",
    ),
    click.option(
        "--most-numbers",
        type=at_least(1),
        metavar="N",
        help="Largest number of distinct numbers that become states; more are cut into intervals. "
        "Only for states found in the table.  [default: 12]",
    ),
)


# --- networks -------------------------------------------------------------------------------------


def with_edges(network: BayesianNetwork, edges: Sequence[tuple[str, str]]) -> BayesianNetwork:
    """Return a network with more edges; a name that is no node is answered by the nearest."""
    for parent, child in edges:
        for name in (parent, child):
            if name not in network.nodes:
                near = nearest_name(name, network.nodes)
                raise click.UsageError(f"--edge {parent},{child}: there is no node {name!r}.{near}")
    return network.with_edges(edges) if edges else network


def load_network(text: str, max_cells: int | None = None, **settings: Any) -> BayesianNetwork:
    """Return the network that an argument names; settings are those of `read_network`."""
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
    return read_network(text, max_cells=MAX_CELLS if max_cells is None else max_cells, **settings)


def bring_network(text: str) -> str:
    """Return the name of a network here; one that is elsewhere is fetched, once for a command."""
    from robustbn._networks.files import find_file

    return text if url_of(text) is None else str(find_file(text))


def require_tables(network: BayesianNetwork, text: str, why: str) -> None:
    from robustbn.exceptions import NetworkError

    if not network.has_cpts:
        raise NetworkError(
            f"{text} has no tables, and {why} needs them. Learn them first: robustbn fit "
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
    from robustbn.estimator import MaximumLikelihoodEstimator, RobustEstimator
    from robustbn.estimator.model_file import read_model

    is_plain = read_model(text).estimator == MaximumLikelihoodEstimator.__name__
    return (MaximumLikelihoodEstimator if is_plain else RobustEstimator).load(text)


def describe(network: BayesianNetwork) -> dict[str, Any]:
    layout = network.layout
    return {
        "nodes": network.n_nodes,
        "edges": len(network.edges),
        "configurations": network.n_configurations,
        "cells": network.n_cells,
        "free_parameters": layout.n_free,
        "states": {"fewest": min(layout.cards), "most": max(layout.cards)},
        "most_parents": max(len(family) - 1 for family in layout.families),
        "has_tables": network.has_cpts,
    }


def some(names: Sequence[object], limit: int = 8) -> str:
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(str, names[:limit])) + more


def say_ignored(columns: Sequence[str]) -> str:
    """Return which columns are no nodes, in a few words; nothing if there are none."""
    n = len(columns)
    which = "1 column that is not a node" if n == 1 else f"{n} columns that are not nodes"
    return f"{which}: {some(columns)}" if columns else ""


# --- which argument is the network ----------------------------------------------------------------


def kind_of(text: str) -> str | None:
    """Return what an argument is by its name; None if that does not tell."""
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


def bring_both(network: str, table: str, options: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of a network and a table here; refuse those in each other's place."""
    if is_swapped(network, table):
        raise click.UsageError(
            f"{network} is a table and {table} is a network: the arguments are swapped. Give the "
            f"network first, then the table."
        )
    return bring_network(network), bring_table(table, options)


def refuse_table(text: str) -> None:
    """Refuse a table where a network or a model is wanted, with the way to a model."""
    kind = kind_of(text)
    if kind == "table" or (kind == "text" and has_edges(text) is False):
        raise click.UsageError(
            f"{text} is a table; compare needs two models (from fit --model) or two networks with "
            f"tables. Fit it first: robustbn fit NETWORK {shlex.quote(text)} --model model.json"
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
    """Whether a single argument is a table, not a network; only edges have states in a file."""
    from robustbn._networks import FORMATS
    from robustbn._tables.files import TABLE_SUFFIXES

    kind = kind_of(text)
    if kind is None:  # mistyped: what is beside it?
        near = find_near(Path(text), {*FORMATS, *TABLE_SUFFIXES})
        return near is None or kind_of(str(near)) != "network"
    return states is None if kind == "text" else kind == "table"


# --- tables ---------------------------------------------------------------------------------------


def bring_table(text: str, options: Mapping[str, Any]) -> str:
    """Return the name of a table here: of standard input or a URL, that of a copy."""
    from robustbn._tables.here import localize

    return str(localize(text, format=options.get("format"), sheet=options.get("sheet")))


def build_config(
    options: Mapping[str, Any], network: BayesianNetwork, start: TableConfig | None = None
) -> TableConfig:
    """Return how to read a table: what was said on the command line, on top of `start`."""
    from robustbn._tables.values import declare_missing

    parsed = {
        "bins": _parse_bins,
        "rename": lambda texts: _parse_rename(texts, network),
        "labels": lambda texts: _parse_labels(texts, network),
        "sep": lambda text: {"tab": "\t", "\\t": "\t"}.get(text, text),
        "context": lambda text: () if text == "none" else split_names(text),
        "keep": split_names,
    }
    given = {
        name: parsed[name](value) if name in parsed else value
        for name in (each.name for each in fields(TableConfig) if "option" in each.metadata)
        if name != "on_missing" and (value := options.get(name))
    }
    policies, missing = _parse_missing(options.get("on_missing") or (), network)
    given |= {"on_missing": policies[-1]} if policies else {}
    if missing:
        labels = given.get("labels", {} if start is None else start.labels)
        for node, values in missing.items():
            labels = declare_missing(labels, {node: values}, ())
        given["labels"] = labels
    try:
        return replace(TableConfig() if start is None else start, **given)
    except ValueError as error:
        raise click.UsageError(say(error)) from None


def _parse_missing(
    texts: Sequence[str], network: BayesianNetwork
) -> tuple[list[str], dict[str, list[str]]]:
    """Return what to do with missing values, and the values that mean missing, by node."""
    policies: list[str] = []
    values: dict[str, list[str]] = {}
    for text in texts:
        if text in HOW_MISSING:
            policies.append(text)
            continue
        splits = [s for s in _splits(text, "=") if s[0] in network.parents]
        node, value = splits[0] if splits else (None, text)
        if node is None and "=" in text:
            name = text.partition("=")[0]
            raise click.UsageError(
                f"--missing {text}: there is no node {name!r}.{nearest_name(name, network.nodes)}"
            )
        near = nearest_name(text, HOW_MISSING)
        if node is None and near:
            known = ", ".join(HOW_MISSING)
            raise click.UsageError(f"--missing {text}: write one of {known}, or a value.{near}")
        for each in network.nodes if node is None else (node,):
            values.setdefault(each, []).append(value)
    return policies, values


def split_names(text: str) -> tuple[str, ...]:
    """Return names with commas between them.

    >>> split_names("site, batch")
    ('site', 'batch')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_rows(
    path: str,
    network: BayesianNetwork,
    config: TableConfig,
    steps: Steps,
    *,
    has_context: bool = False,
    known: str | None = None,
) -> Table:
    """Read a table as codes, and show how far that is."""
    from robustbn._tables.coded import require_rows
    from robustbn._tables.table import encode_source

    with steps.step("read", f"reading {name_of(path)}"):
        source = open_source(path, config)
        steps.expect(source.n_rows)

        def read(positions: Sequence[int]) -> Iterator[Any]:
            for columns in source.stretches(positions):
                yield columns
                steps.advance(len(columns[0].values) if columns else 0)

        config = config if has_context else replace(config, context=())
        watched = replace(source, stretches=read)
        table = encode_source(watched, network, config, is_later=not has_context)
        require_rows(len(table))
    if known is not None and config.context is None:
        table = replace(table, aside=table.aside.without_context(known))
    return table


def open_source(path: str, config: TableConfig) -> Source:
    from robustbn._tables.sources import open_table

    return open_table(path, sep=config.sep, encoding=config.encoding)


def read_known(path: str, column: str | None, config: TableConfig) -> Any:
    """Return what a column, or a file of ticks, says of each row, in its own words; or None."""
    import numpy as np

    if column is None:
        return None
    source = open_source(path, config)
    if source.names is None or column not in source.names:
        if Path(column).is_file():
            return _read_ticks(column, sum(len(part[0].values) for part in source.read([0])))
        near = nearest_name(column, source.names or ())
        raise click.UsageError(f"--known {column}: {name_of(path)} has no such column.{near}")
    said = []
    for (values,) in source.read([source.names.index(column)]):
        words = np.asarray(values.values)
        if values.labels is not None:
            words = np.array([*values.labels, ""], object)[words]
        words = words.astype(object)
        if values.is_missing is not None:
            words[values.is_missing] = ""
        said.append(words)
    return np.concatenate(said)


def _read_ticks(path: str, n_rows: int) -> Any:
    """Return what a file says of rows by their numbers, from 0; nothing of the others."""
    import csv

    import numpy as np

    said = np.full(n_rows, "", object)
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        for line, tick in enumerate(csv.DictReader(file), start=2):
            row = str(tick.get("row", "")).strip()
            if not row.isdecimal() or int(row) >= n_rows:
                raise click.UsageError(
                    f"--known {path}, line {line}: expected row,known with a row number from 0 to "
                    f"{n_rows - 1}; found {row!r}."
                )
            said[int(row)] = tick.get("known") or ""
    return said


def reading_of(config: TableConfig, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with which states are found in a table."""
    return {name: getattr(config, name) for name in (*COLUMNS, *TEXT_FILES)} | rules_of(options)


def rules_of(options: Mapping[str, Any]) -> dict[str, Any]:
    limits = {name: options[name] for name in LIMITS if options[name] is not None}
    return {"dates": _parse_dates(options["dates"]), **limits}


def _parse_dates(texts: Sequence[str]) -> dict[str, str] | str:
    """Return the order of dates, for each node or for all."""
    orders: dict[str, str] = {}
    for text in texts:
        node, order = _split_node(text, "--dates", len(texts) == 1, "born:dmy")
        if order not in DATE_ORDERS:
            known = ", ".join(DATE_ORDERS)
            raise click.UsageError(f"--dates {text}: write NODE:ORDER, with one of {known}.")
        if node is None:
            return order
        orders[node] = order
    return orders


def _split_node(text: str, option: str, is_alone: bool, such_as: str) -> tuple[str | None, str]:
    """Return the node of NODE:REST, None for all, and the rest."""
    node, colon, rest = text.rpartition(":")
    if not colon and is_alone:
        return None, rest
    if not node:
        raise click.UsageError(f"{option} {text}: give the node as well, such as {such_as}.")
    return node, rest


def _read_json(text: str, option: str) -> dict[str, Any]:
    try:
        document = json.loads(Path(text.removeprefix("@")).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(
            f"{option} {text}: the file cannot be read as JSON: {error}"
        ) from None
    if not isinstance(document, dict):
        raise click.UsageError(
            f"{option} {text}: expected a JSON object, found {type(document).__name__}."
        )
    return document


def _parse_bins(texts: Sequence[str]) -> Any:
    bins: dict[str, Any] = {}
    for text in texts:
        if text.startswith("@"):
            bins |= _read_json(text, "--bins")
            continue
        node, cut = _split_node(text, "--bins", len(texts) == 1, "age:q5")
        if node is None:
            return _parse_cut(cut, text)
        bins[node] = _parse_cut(cut, text)
    return bins


def _parse_cut(cut: str, text: str) -> str | int | list[float]:
    if re.fullmatch(r"q\d+", cut):
        return cut
    if cut.isdigit():
        return int(cut)
    try:
        edges = [float(part) for part in cut.split(",") if part.strip()]
    except ValueError:
        edges = []
    if not edges:
        raise click.UsageError(
            f"--bins {text}: expected edges (18,65 or, for one edge, '18,'), a number of "
            "intervals of equal width (4), or q and a number of intervals with equally many rows "
            "(q5)."
        )
    return edges


def _parse_rename(texts: Sequence[str], network: BayesianNetwork) -> dict[str, str]:
    rename: dict[str, str] = {}
    for text in texts:
        if text.startswith("@"):
            rename |= _read_json(text, "--rename")
            continue
        splits = list(_splits(text, "="))
        if not splits:
            raise click.UsageError(f"--rename {text}: write COLUMN=NODE.")
        column, node = next((s for s in splits if s[1] in network.parents), splits[0])
        rename[column] = node
    return rename


def _parse_labels(texts: Sequence[str], network: BayesianNetwork) -> dict[str, dict[Any, Any]]:
    labels: dict[str, dict[Any, Any]] = {}
    for text in texts:
        if text.startswith("@"):
            for node, pairs in _read_json(text, "--labels").items():
                if not isinstance(pairs, dict):
                    raise click.UsageError(
                        f"--labels {text}: {node!r} needs an object {{value: state}}."
                    )
                said = {value or None: _state(network, node, s) for value, s in pairs.items()}
                labels.setdefault(node, {}).update(said)
            continue
        splits = list(_splits(text, ":"))
        node, pairs = next((s for s in splits if s[0] in network.parents), ("", ""))
        if not node:
            raise click.UsageError(
                f"--labels {text}: write NODE:VALUE=STATE,..., with a node of the network."
                f"{nearest_name(text.partition(':')[0], network.nodes)}"
            )
        for pair in pairs.split(","):
            either = list(_splits(pair, "="))
            if not either:
                raise click.UsageError(f"--labels {text}: {pair!r} is not VALUE=STATE.")
            known = {str(s) for s in network.states[node]}
            value, state = next((s for s in either if s[1] in known), either[0])
            labels.setdefault(node, {})[value or None] = _state(network, node, state)
    return labels


def _splits(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield every way to cut a text in two at a mark, from the left."""
    for k, letter in enumerate(text):
        if letter == mark:
            yield text[:k], text[k + 1 :]


def _state(network: BayesianNetwork, node: str, text: Any) -> Any:
    """Return the state whose text this is, which may be a number; None for no text."""
    states = network.states.get(node, ())
    found = (s for s in states if text is not None and (s == text or str(s) == str(text)))
    return next(found, None if text == "" else text)
