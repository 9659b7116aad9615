"""Our own network format: versioned JSON with exact doubles.

`{"format": "robustbn-network", "version": 1, "nodes": [{"name", "states", "parents",
"probabilities"}, ...]}`: nodes in column order; `probabilities` (optional, for all nodes or none)
is the node's table in C order, its own states innermost. Other keys, such as `name` and `source`,
are for people.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork

FORMAT = "robustbn-network"
VERSION = 1


def network_to_json(network: BayesianNetwork) -> str:
    """Return the network as JSON, one line a node."""
    lines = []
    for node in network.nodes:
        for label in network.states[node]:
            if not isinstance(label, str | int | float | bool):
                raise NetworkError(
                    f"Node {node!r} has the state {label!r} of type {type(label).__name__}; only "
                    "strings and numbers can be written."
                )
        entry: dict[str, Any] = {
            "name": node,
            "states": list(network.states[node]),
            "parents": list(network.parents[node]),
        }
        if network.has_cpts:
            entry["probabilities"] = network.cpts[node].ravel().tolist()
        lines.append("  " + json.dumps(entry, ensure_ascii=False, allow_nan=False))
    return (
        f'{{\n "format": "{FORMAT}",\n "version": {VERSION},\n "nodes": [\n'
        + ",\n".join(lines)
        + "\n ]\n}\n"
    )


def network_from_json(text: str, source: str) -> BayesianNetwork:
    """Build the network; `source` is named in errors."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise NetworkError(f"{source} is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise NetworkError(f'{source} is not a network file: "format" must be "{FORMAT}".')
    if document.get("version") != VERSION:
        raise NetworkError(
            f"{source} has version {document.get('version')!r}; this release reads version "
            f"{VERSION}. A newer release of robustbn may read it."
        )
    nodes = document.get("nodes")
    if not isinstance(nodes, list):
        raise NetworkError(f'{source}: "nodes" must be a list.')
    parents: dict[str, list[str]] = {}
    states: dict[str, list[Any]] = {}
    tables: dict[str, list[float]] = {}
    for k, entry in enumerate(nodes):
        if not isinstance(entry, dict) or not {"name", "states", "parents"} <= entry.keys():
            raise NetworkError(f"{source}: node {k} needs name, states and parents.")
        name = entry["name"]
        if name in parents:
            raise NetworkError(f"{source}: node {name!r} appears twice.")
        parents[name], states[name] = entry["parents"], entry["states"]
        if "probabilities" in entry:
            tables[name] = entry["probabilities"]
    structure = BayesianNetwork(parents, states)
    if not tables:
        return structure
    return structure.with_cpts(_shape_tables(structure, tables, source))


def _shape_tables(
    structure: BayesianNetwork, tables: dict[str, list[float]], source: str
) -> dict[str, Any]:
    shaped = {}
    for node, flat in tables.items():
        shape = [len(structure.states[n]) for n in (*structure.parents[node], node)]
        if not isinstance(flat, list) or len(flat) != np.prod(shape):
            raise NetworkError(
                f"{source}: node {node!r} needs {np.prod(shape)} probabilities, found "
                f"{len(flat) if isinstance(flat, list) else type(flat).__name__}."
            )
        shaped[node] = np.array(flat).reshape(shape)
    return shaped
