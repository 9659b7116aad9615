"""Tables as arguments: the options of reading one, and reading it with a bar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.count import Count
from robustbn._cli.screen import Steps
from robustbn._core.config import DATE_ORDERS
from robustbn._core.file_names import TABLE_FORMATS, name_of, nearest_name

if TYPE_CHECKING:
    from robustbn._core.config import TableConfig
    from robustbn._tables.coded import Table
    from robustbn.network import BayesianNetwork

NAMES = (
    "on_unknown", "on_missing", "bins", "rename", "labels", "ignore_case", "codes", "sep",
    "encoding", "format", "sheet",
)  # fmt: skip


MISSING_WAYS = ("use", "observed", "state", "drop", "error")


def table_options(function: Any) -> Any:
    """Give a command the options of reading a table."""
    for option in (
        click.option(
            "--sheet", metavar="NAME", help="Of a workbook (.xlsx): its name, or its number from 1."
        ),
        click.option(
            "--format",
            type=click.Choice(TABLE_FORMATS),
            help="What TABLE is, whatever its name; '-' is known by its first bytes.",
        ),
        click.option("--encoding", metavar="NAME", help="Of a text file.  [default: utf-8]"),
        click.option("--sep", metavar="CHAR", help="What parts columns; 'tab' for a tab."),
        click.option("--codes", is_flag=True, help="Whole numbers are positions of states."),
        click.option("--ignore-case", is_flag=True, help="'Yes' stands for the state 'yes'."),
        click.option(
            "--labels",
            multiple=True,
            metavar="NODE:VALUE=STATE,...",
            help="What values stand for, such as smoker:0=no,1=yes; age:?= says that '?' is "
            "missing. '@FILE.json' reads them.",
        ),
        click.option(
            "--rename",
            multiple=True,
            metavar="COLUMN=NODE",
            help="The node of a column with another name. Repeat it for more columns.",
        ),
        click.option(
            "--bins",
            multiple=True,
            metavar="NODE:CUT",
            help="Cut numbers: age:18,65 (edges), age:4 (equal widths), age:q5 (equal counts). "
            "Without NODE, for all columns.",
        ),
        click.option(
            "--missing", "--on-missing", "on_missing", type=click.Choice(MISSING_WAYS),
            help="What to do with a missing value: infer it, count what is there, make it a state, "
            "leave the row out, refuse.  [default: use]",
        ),
        click.option(
            "--unknown", "--on-unknown", "on_unknown",
            type=click.Choice(["error", "drop", "missing"]),
            help="What to do with a value that is no state.  [default: error]",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def date_options(function: Any) -> Any:
    """Give a command the option of finding states in dates."""
    return click.option(
        "--dates",
        multiple=True,
        metavar="NODE:ORDER",
        help="What comes first in dates such as 03/07/2024: dmy or mdy; ymd for 20240703. Without "
        "NODE, for all; for the states of an edge list.",
    )(function)


def limit_options(function: Any) -> Any:
    """Give a command the limits of finding states: how many labels and numbers stay."""
    for option in (
        click.option(
            "--most-numbers",
            type=Count(1),
            metavar="N",
            help="Different numbers that stay as they are; more are cut into intervals; for the "
            "states of an edge list.  [default: 12]",
        ),
        click.option(
            "--most-states",
            type=Count(2),
            metavar="N",
            help="States that a node may have; rarer labels become 'other'; for the states of an "
            "edge list.  [default: 100]",
        ),
    ):
        function = option(function)
    return function


def given_limits(options: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits that were given."""
    names = ("most_states", "most_numbers")
    return {name: options[name] for name in names if options[name] is not None}


def parse_dates(texts: Sequence[str]) -> dict[str, str] | str:
    """Return the order of dates, for each node or for all."""
    orders: dict[str, str] = {}
    for text in texts:
        node, colon, order = text.rpartition(":")
        if order not in DATE_ORDERS:
            raise _usage(f"--dates {text}: write NODE:ORDER, with one of {', '.join(DATE_ORDERS)}.")
        if not colon and len(texts) == 1:
            return order
        if not node:
            raise _usage(f"--dates {text}: give the node too, such as born:dmy.")
        orders[node] = order
    return orders


def aside_options(function: Any) -> Any:
    """Give a command the options of columns beside the network."""
    for option in (
        click.option(
            "--keep", metavar="A,B", help="Columns beside the network that are shown with rows."
        ),
        click.option("--id", "id_column", metavar="COLUMN", help="The column that names the rows."),
        click.option(
            "--context",
            metavar="A,B",
            help="Columns beside the network in which bad rows may gather; 'none' for none.  "
            "[default: those with at most 1,000 values, numbers, times]",
        ),
    ):
        function = option(function)
    return function


def with_aside(config: TableConfig, options: dict[str, Any]) -> TableConfig:
    """Return how to read a table, with the columns beside the network that were asked for."""
    context, keep = (
        None if options[name] is None else _split_names(options[name])
        for name in ("context", "keep")
    )
    context = () if options["context"] == "none" else context
    return replace(config, context=context, keep=keep or (), id=options["id_column"])


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def take_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of reading a table out of a command's options."""
    return {name: options.pop(name) for name in NAMES}


def bring_table(text: str, reading: dict[str, Any]) -> str:
    """Return the name of a table here: of standard input or a URL, that of a copy."""
    from robustbn._tables.here import localize

    named: str = localize(text, format=reading["format"], sheet=reading["sheet"])
    return named


def build_config(
    options: dict[str, Any], network: BayesianNetwork, start: TableConfig | None = None
) -> TableConfig:
    """Return how to read a table: what was said on the command line, on top of `start`."""
    from robustbn._core.config import TableConfig

    said: dict[str, Any] = {
        "on_unknown": options["on_unknown"],
        "on_missing": options["on_missing"],
        "bins": _parse_bins(options["bins"]),
        "rename": _parse_rename(options["rename"], network),
        "labels": _parse_labels(options["labels"], network),
        "ignore_case": options["ignore_case"],
        "codes": options["codes"] or None,
        "sep": {"tab": "\t", "\\t": "\t"}.get(options["sep"], options["sep"]),
        "encoding": options["encoding"],
    }
    given = {name: value for name, value in said.items() if value}
    try:
        return replace(TableConfig() if start is None else start, **given)
    except ValueError as error:
        raise _usage(str(error)) from None


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
    from robustbn._tables.encode import require_rows
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
    """Return what a column says of each row: +1, -1 or 0; None if there is no such column."""
    import numpy as np

    from robustbn._tables.encode.codes import SIDES
    from robustbn._tables.sources import open_table

    if column is None:
        return None
    source = open_table(path, sep=config.sep, encoding=config.encoding)
    if source.names is None or column not in source.names:
        near = nearest_name(column, source.names or ())
        raise _usage(f"--known {column}: {name_of(path)} has no such column.{near}")
    sides: list[int] = []
    for (values,) in source.read([source.names.index(column)]):
        words, labels = values.values, values.labels
        if labels is not None:
            words = np.array([*labels, ""], object)[words]
        is_missing = np.zeros(len(words), bool) if values.is_missing is None else values.is_missing
        for k, (word, gone) in enumerate(zip(words, is_missing, strict=True), start=len(sides)):
            text = "" if gone or word is None else str(word).strip().lower()
            side = SIDES.get(text.removesuffix(".0"))
            if side is None:
                raise _usage(
                    f"--known {column}: row {k} says {str(word)!r}; write 1 or good, -1 or bad, "
                    "and 0 or nothing where it is not known."
                )
            sides.append(side)
    return np.array(sides, np.int8)


def _usage(message: str) -> click.UsageError:
    from robustbn._cli.wording import say_as_options

    return click.UsageError(say_as_options(message))


def _read_json(text: str, option: str) -> dict[str, Any]:
    path = Path(text.removeprefix("@"))
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _usage(f"{option} {text}: the file cannot be read as JSON: {error}") from None
    if not isinstance(document, dict):
        raise _usage(f"{option} {text}: expected a JSON object, found {type(document).__name__}.")
    return document


def _parse_bins(texts: Sequence[str]) -> Any:
    bins: dict[str, Any] = {}
    for text in texts:
        if text.startswith("@"):
            bins |= _read_json(text, "--bins")
            continue
        node, colon, cut = text.rpartition(":")
        parsed = _parse_cut(cut, text)
        if not colon and len(texts) == 1:
            return parsed
        if not node:
            raise _usage(f"--bins {text}: give the node too, such as age:q5.")
        bins[node] = parsed
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
        raise _usage(
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
            raise _usage(f"--rename {text}: write COLUMN=NODE.")
        column, node = next((s for s in splits if s[1] in network.parents), splits[0])
        rename[column] = node
    return rename


def _parse_labels(texts: Sequence[str], network: BayesianNetwork) -> dict[str, dict[Any, Any]]:
    labels: dict[str, dict[Any, Any]] = {}
    for text in texts:
        if text.startswith("@"):
            for node, pairs in _read_json(text, "--labels").items():
                if not isinstance(pairs, dict):
                    raise _usage(f"--labels {text}: {node!r} needs an object {{value: state}}.")
                said = {value or None: _state(network, node, s) for value, s in pairs.items()}
                labels.setdefault(node, {}).update(said)
            continue
        splits = list(_splits(text, ":"))
        node, pairs = next((s for s in splits if s[0] in network.parents), ("", ""))
        if not node:
            raise _usage(
                f"--labels {text}: write NODE:VALUE=STATE,..., with a node of the network."
                f"{nearest_name(text.partition(':')[0], network.nodes)}"
            )
        for pair in pairs.split(","):
            either = list(_splits(pair, "="))
            if not either:
                raise _usage(f"--labels {text}: {pair!r} is not VALUE=STATE.")
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
