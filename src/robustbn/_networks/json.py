"""Our own network format: versioned JSON with exact doubles.

`{"format": "robustbn-network", "version": 1, "nodes": [{"name", "states", "parents",
"probabilities"}, ...]}`: nodes in column order; `probabilities` (optional, for all nodes or none)
is the node's table in C order, its own states innermost; null throughout a configuration says that
its probabilities are unknown. A node's `reading` (optional) says how the
values of its column become states: `{"edges": [18, 65]}` cuts numbers, `{"others": "other"}` names
the state of any other value, `{"period": "month"}` takes the month of a date, `{"edges": [100],
"notation": ".$"}` cuts numbers such as $1,234.50. Other keys, such as `name` and `source`, are for
people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from math import isfinite, nan, prod
from typing import Any

import numpy as np

from robustbn._core.config import NodeReading
from robustbn._networks.files import decode
from robustbn._networks.parts import Family, NodePart, Parts, ReadTable, refuse, show, wrong_count
from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork

NETWORK_FORMAT = "robustbn-network"
NETWORK_VERSION = 1


def to_text(network: BayesianNetwork) -> str:
    """Return the network as JSON, one line a node."""
    entries = describe_network(network)["nodes"]
    lines = ["  " + json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in entries]
    return (
        f'{{\n "format": "{NETWORK_FORMAT}",\n "version": {NETWORK_VERSION},\n "nodes": [\n'
        + ",\n".join(lines)
        + "\n ]\n}\n"
    )


def describe_network(network: BayesianNetwork) -> dict[str, Any]:
    """Return the network as the plain values of the file."""
    nodes = []
    for node in network.nodes:
        entry: dict[str, Any] = {
            "name": node,
            "states": [_plain(label, node) for label in network.states[node]],
            "parents": list(network.parents[node]),
        }
        if node in network.reading:
            entry["reading"] = _describe_reading(network.reading[node], node)
        if network.has_cpts:
            table = network.given_cpts[node].ravel().tolist()
            entry["probabilities"] = [None if p != p else p for p in table]
        nodes.append(entry)
    return {"format": NETWORK_FORMAT, "version": NETWORK_VERSION, "nodes": nodes}


def _describe_reading(reading: NodeReading, node: str) -> dict[str, Any]:
    said = {name: value for name, value in vars(reading).items() if value is not None}
    if "edges" in said:
        said["edges"] = list(said["edges"])
    if "others" in said:
        said["others"] = _plain(said["others"], node)
    return said


def _read_reading(said: Any, node: str, refuse_here: Callable[[str], NetworkError]) -> NodeReading:
    try:
        known = {each.name: said.get(each.name) for each in fields(NodeReading)}
        edges = known.pop("edges")
        return NodeReading(None if edges is None else tuple(edges), **known)
    except (AttributeError, TypeError, ValueError) as error:
        raise refuse_here(f"the reading of node {node!r} is wrong: {error}") from None


def _plain(label: object, node: str) -> object:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str | int) or (isinstance(label, float) and isfinite(label)):
        return label
    raise NetworkError(
        f"Node {node!r} has the state {label!r} of type {type(label).__name__}; only strings and "
        "finite numbers can be written."
    )


def parse_json(text: str, source: str) -> Any:
    """Return the document, or say where it is not JSON."""

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise refuse(source, 0, f"the key {twice!r} appears twice in one object.")
        return entries

    try:
        return json.loads(text, object_pairs_hook=build)
    except json.JSONDecodeError as error:
        ends = " Is the file truncated?" if error.pos >= len(text.rstrip()) else ""
        raise refuse(
            source, error.lineno, f"this is not JSON: {error.msg} (column {error.colno}).{ends}"
        ) from None
    except NetworkError:
        raise
    except RecursionError:
        raise refuse(source, 0, "this is not a network: brackets are nested too deep.") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise refuse(source, 0, f"this is not a network: {error}.") from None


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of a JSON file; their tables are read later."""
    text = decode(data, source)
    return find_parts(parse_json(text, source), source, text)


def find_parts(document: Any, source: str, text: str = "") -> Parts:
    """Find the nodes of a document; `text` is what it was read from, for the lines in errors."""
    if not isinstance(document, dict) or document.get("format") != NETWORK_FORMAT:
        raise refuse(source, 0, f'this is not a network file: "format" must be "{NETWORK_FORMAT}".')
    version = document.get("version")
    if version != NETWORK_VERSION or isinstance(version, bool):
        raise refuse(
            source,
            0,
            f"the file has version {version!r}; this release reads version {NETWORK_VERSION}. A "
            "newer release of robustbn may read it.",
        )
    entries = document.get("nodes")
    if not isinstance(entries, list) or not entries:
        raise refuse(source, 0, '"nodes" must be a list of at least one node.')

    def line_of(k: int) -> int:
        return _find_node(text, entries[k]["name"])

    return Parts([_read_node(k, entry, text, source) for k, entry in enumerate(entries)], line_of)


def _find_node(text: str, name: str) -> int:
    """Return the line where a node is named, or 0 if it is written in an unusual way."""
    for ascii_only in (False, True):
        quoted = re.escape(json.dumps(name, ensure_ascii=ascii_only))
        match = re.search(rf'"name"\s*+:\s*+{quoted}', text)
        if match is not None:
            return text.count("\n", 0, match.start()) + 1
    return 0


def _read_node(k: int, entry: Any, text: str, source: str) -> NodePart:
    if not isinstance(entry, dict) or not {"name", "states", "parents"} <= entry.keys():
        raise refuse(source, 0, f"node {k} needs name, states and parents.")
    name, states, parents = entry["name"], entry["states"], entry["parents"]
    if not isinstance(name, str):
        raise refuse(source, 0, f"the name of node {k} must be text; found {show(name)}.")
    line_of = partial(_find_node, text, name)
    check_labels(states, name, source, line_of)
    if not isinstance(parents, list) or not all(isinstance(p, str) for p in parents):
        message = f"the parents of node {name!r} must be a list of names; found {show(parents)}."
        raise refuse(source, line_of(), message)
    reader = None
    if "probabilities" in entry:
        reader = partial(_read_table, entry["probabilities"], name, source, line_of)
    reading = None
    if "reading" in entry:
        reading = _read_reading(entry["reading"], name, lambda m: refuse(source, line_of(), m))
    return NodePart(name, tuple(states), tuple(parents), k, k, reader, reading)


def check_labels(labels: Any, node: str, source: str, line_of: Callable[[], int] = int) -> None:
    """Refuse anything but a list of strings and finite numbers."""
    if not isinstance(labels, list):
        message = f"the states of node {node!r} must be a list; found {show(labels)}."
        raise refuse(source, line_of(), message)
    for label in labels:
        is_text_or_whole = isinstance(label, str | int)
        if not is_text_or_whole and not (isinstance(label, float) and isfinite(label)):
            message = f"node {node!r} has the state {show(label)}, not a string or finite number."
            raise refuse(source, line_of(), message)


def _read_table(
    numbers: Any, node: str, source: str, line_of: Callable[[], int], family: Family
) -> ReadTable:
    expected = prod(len(labels) for labels in family)
    if not isinstance(numbers, list) or len(numbers) != expected:
        found = len(numbers) if isinstance(numbers, list) else type(numbers).__name__
        raise refuse(source, line_of(), wrong_count(node, expected, found))
    numbers = [nan if number is None else number for number in numbers]
    if not {type(number) for number in numbers} <= {float, int}:
        odd = next(number for number in numbers if type(number) not in (float, int))
        raise refuse(source, line_of(), f"table of node {node!r}: {show(odd)} is not a number.")
    try:
        values = np.array(numbers, np.float64)
    except OverflowError:
        message = f"table of node {node!r} has a number that is too large."
        raise refuse(source, line_of(), message) from None
    return ReadTable(values, lambda _: line_of())
