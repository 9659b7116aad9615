"""Tables as arguments: the options of reading one, and reading it with a bar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.options import Count, say, setting_options, with_options
from robustbn._cli.screen import Steps
from robustbn._core.config import DATE_ORDERS, TableConfig
from robustbn._core.file_names import TABLE_FORMATS, name_of, nearest_name

if TYPE_CHECKING:
    from robustbn._tables.coded import Table
    from robustbn.network import BayesianNetwork

VALUES = ("on_unknown", "on_missing", "codes")  # what states are needed for
COLUMNS = ("bins", "rename", "labels", "ignore_case")
TEXT_FILES = ("sep", "encoding")
ASIDE = ("context", "id", "keep")
LIMITS = ("most_states", "most_numbers")

source_options = with_options(
    setting_options(TableConfig, *COLUMNS, *TEXT_FILES),
    click.option(
        "--format",
        type=click.Choice(TABLE_FORMATS),
        help="What TABLE is, whatever its name; '-' is known by its first bytes.",
    ),
    click.option(
        "--sheet", metavar="NAME", help="Of a workbook (.xlsx): its name, or its number from 1."
    ),
)
table_options = with_options(setting_options(TableConfig, *VALUES), source_options)
aside_options = setting_options(TableConfig, *ASIDE)
state_options = with_options(
    click.option(
        "--dates",
        multiple=True,
        metavar="NODE:ORDER",
        help="What comes first in dates such as 03/07/2024: dmy or mdy; ymd for 20240703. Without "
        "NODE, for all; for the states of an edge list.",
    ),
    click.option(
        "--most-states",
        type=Count(2),
        metavar="N",
        help="States that a node may have; rarer labels become 'other'; for the states of an "
        "edge list.  [default: 100]",
    ),
    click.option(
        "--most-numbers",
        type=Count(1),
        metavar="N",
        help="Different numbers that stay as they are; more are cut into intervals; for the "
        "states of an edge list.  [default: 12]",
    ),
)


def bring_table(text: str, options: Mapping[str, Any]) -> str:
    """Return the name of a table here: of standard input or a URL, that of a copy."""
    from robustbn._tables.here import localize

    named: str = localize(text, format=options.get("format"), sheet=options.get("sheet"))
    return named


def build_config(
    options: Mapping[str, Any], network: BayesianNetwork, start: TableConfig | None = None
) -> TableConfig:
    """Return how to read a table: what was said on the command line, on top of `start`."""
    parsed = {
        "bins": _parse_bins,
        "rename": lambda texts: _parse_rename(texts, network),
        "labels": lambda texts: _parse_labels(texts, network),
        "sep": lambda text: {"tab": "\t", "\\t": "\t"}.get(text, text),
        "context": lambda text: () if text == "none" else _split_names(text),
        "keep": _split_names,
    }
    given = {
        name: parsed[name](value) if name in parsed else value
        for name in (each.name for each in fields(TableConfig) if "option" in each.metadata)
        if (value := options.get(name))
    }
    try:
        return replace(TableConfig() if start is None else start, **given)
    except ValueError as error:
        raise click.UsageError(say(error)) from None


def _split_names(text: str) -> tuple[str, ...]:
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
    """Read a table as codes, and show how far that is.

    Parameters
    ----------
    has_context : whether columns beside the network are looked at as `config` says.
    known : the column of --known. It says which rows are bad, not where they come from, so it is
        context only if `config` names it.
    """
    from robustbn._tables.coded import require_rows
    from robustbn._tables.sources import open_table
    from robustbn._tables.table import encode_source

    with steps.step("read", f"reading {name_of(path)}"):
        source = open_table(path, sep=config.sep, encoding=config.encoding)
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


def read_known(path: str, column: str | None, config: TableConfig) -> Any:
    """Return what a column says of each row, in its own words; None if there is no such column."""
    import numpy as np

    from robustbn._tables.sources import open_table

    if column is None:
        return None
    source = open_table(path, sep=config.sep, encoding=config.encoding)
    if source.names is None or column not in source.names:
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


def rules_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return by which rules states are found in a table."""
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
        raise click.UsageError(f"{option} {text}: give the node too, such as {such_as}.")
    return node, rest


def _read_json(text: str, option: str) -> dict[str, Any]:
    path = Path(text.removeprefix("@"))
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
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
            f"--bins {text}: a cut is edges (18,65 or, for one edge, '18,'), a number of intervals "
            "of equal width (4), or q and a number of intervals with equally many rows (q5)."
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
