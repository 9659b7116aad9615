"""XDSL, the format of GeNIe and SMILE.

`<cpt id="X"><state id="yes" />...<parents>A B</parents><probabilities>...</probabilities></cpt>`:
the node's own states fastest, then the last parent. A `<deterministic>` node lists the state of
each configuration in `<resultingstates>`. Identifiers of nodes and states are letters, digits and
underscores and begin with a letter; a name or label that is no identifier gets a stand-in, and the
true one is kept, as JSON, in the node's `<property id="robustbn">`. Parents stand before their
children; the property also keeps the column where that changed the order.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from robustbn._networks.parts import (
    Family,
    NodePart,
    Parts,
    ReadTable,
    refuse,
    require_once,
    show,
    unknown_parent,
    wrong_count,
)
from robustbn._networks.text import (
    choose_identifiers,
    escape,
    text_labels,
    warn_of_stand_ins,
    write_numbers,
)
from robustbn._networks.xml import Element, parse_xml, read_xml_table
from robustbn.network import BayesianNetwork

PROPERTY = "robustbn"


@dataclass(frozen=True)
class _Remark:
    """What is noted in a node: its true name and labels, and its column, where they differ."""

    name: str | None = None
    states: tuple[str, ...] | None = None
    column: int = 0


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of an XDSL file; their tables are read later."""
    root = parse_xml(data, source, "smile", "an XDSL network")
    section = root.only("nodes", source)
    if root.all("dynamic"):
        line = root.all("dynamic")[0].line
        raise refuse(source, line, "this is a dynamic network; only static ones are read.")
    remarks: dict[str, _Remark] = {}
    elements: dict[str, Element] = {}
    for element in section.children:
        _require_chance_node(element, source)
        elements[element.attributes["id"]] = element
        remarks[element.attributes["id"]] = _read_remark(element, source)
    named = [(element.attributes["id"], element.line) for element in section.children]
    require_once(named, source, int)
    if not elements:
        raise refuse(source, section.line, "the network has no nodes.")
    true = {name: name if of.name is None else of.name for name, of in remarks.items()}
    order = sorted(elements, key=lambda name: remarks[name].column)  # keeps ties in order
    nodes = [_read_node(elements[name], remarks[name], true, source) for name in order]
    return Parts(nodes, int)


def _require_chance_node(element: Element, source: str) -> None:
    if element.tag not in ("cpt", "deterministic"):
        raise refuse(
            source,
            element.line,
            f"a node of kind <{element.tag}> cannot be read; a Bayesian network has <cpt> and "
            "<deterministic> nodes. In GeNIe, change the type of the node to General.",
        )
    if "id" not in element.attributes:
        raise refuse(source, element.line, f"<{element.tag}> has no id.")


def _read_remark(element: Element, source: str) -> _Remark:
    """Return what we noted when we wrote the file."""
    import msgspec

    for noted in element.all("property"):
        if noted.attributes.get("id") != PROPERTY:
            continue
        try:
            remark = msgspec.convert(json.loads(noted.text), _Remark)
            is_whole = remark.states is None or len(remark.states) == len(element.all("state"))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            is_whole = False
        if not is_whole:
            message = f"the {PROPERTY} property is damaged: {show(noted.text)}."
            raise refuse(source, noted.line, message)
        return remark
    return _Remark()


def _read_node(element: Element, remark: _Remark, true: dict[str, str], source: str) -> NodePart:
    name = true[element.attributes["id"]]
    ids = []
    for state in element.all("state"):
        if "id" not in state.attributes:
            raise refuse(source, state.line, f"a state of node {name!r} has no id.")
        ids.append(state.attributes["id"])
    parents: tuple[str, ...] = ()
    line = element.line
    for found in element.all("parents"):
        line = found.line
        for p in found.text.split():
            if p not in true:
                raise refuse(source, line, unknown_parent(name, p, true))
        parents = tuple(true[p] for p in found.text.split())
    states = tuple(ids) if remark.states is None else remark.states
    reader: Callable[[Family], ReadTable] | None = None
    if element.tag == "cpt" and element.all("probabilities"):
        reader = partial(read_xml_table, element.all("probabilities")[0], name, source)
    elif element.tag == "deterministic" and element.all("resultingstates"):
        listed = element.all("resultingstates")[0]
        reader = partial(_read_resulting_states, listed, name, source, ids)
    return NodePart(name, states, parents, element.line, line, reader)


def _read_resulting_states(
    element: Element, node: str, source: str, ids: list[str], family: Family
) -> ReadTable:
    """Read the state that each configuration leads to, as a table of zeros and ones."""
    words = element.text.split()
    expected = prod(len(labels) for labels in family[:-1])
    if len(words) != expected:
        raise refuse(source, element.line, wrong_count(node, expected, len(words)))
    code = {label: v for v, label in enumerate(ids)}
    for word in words:
        if word not in code:
            message = f"node {node!r} has no state {word!r}; its states are {show(ids, 200)}."
            raise refuse(source, element.line, message)
    values = np.zeros((expected, len(ids)))
    values[np.arange(expected), [code[word] for word in words]] = 1.0
    return ReadTable(values.ravel(), lambda k: element.line)


def to_text(network: BayesianNetwork) -> str:
    """Return the network as XDSL, with stand-ins for what is no identifier."""
    labels = text_labels(network, "XDSL")
    names = choose_identifiers(network.nodes, "n_")
    column = {node: i for i, node in enumerate(network.nodes)}
    is_sorted = all(column[p] < column[n] for n in network.nodes for p in network.parents[n])
    order = network.nodes if is_sorted else network.topological_order
    stand_ins = [(n, i) for n, i in names.items() if n != i]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines += ['<smile version="1.0" id="network" numsamples="10000" discsamples="10000">']
    lines.append("  <nodes>")
    for node in order:
        ids = choose_identifiers(labels[node], "s_")
        stand_ins += [(label, i) for label, i in ids.items() if label != i]
        remark: dict[str, Any] = {} if is_sorted else {"column": column[node]}
        if names[node] != node:
            remark["name"] = node
        if any(label != i for label, i in ids.items()):
            remark["states"] = list(labels[node])
        lines += _write_node(network, node, names, list(ids.values()), remark)
    warn_of_stand_ins("XDSL", stand_ins)
    return "\n".join([*lines, "  </nodes>", *_lay_out(order, names), "</smile>"]) + "\n"


def _write_node(
    network: BayesianNetwork,
    node: str,
    names: dict[str, str],
    ids: list[str],
    remark: dict[str, Any],
) -> list[str]:
    lines = [f'    <cpt id="{names[node]}">']
    if remark:
        text = html.escape(json.dumps(remark))
        lines.append(f'      <property id="{PROPERTY}">{text}</property>')
    lines += [f'      <state id="{i}" />' for i in ids]
    if network.parents[node]:
        parents = " ".join(names[p] for p in network.parents[node])
        lines.append(f"      <parents>{parents}</parents>")
    if network.has_cpts:
        numbers = write_numbers(network.given_cpts[node].ravel().tolist())
        lines.append(f"      <probabilities>{numbers}</probabilities>")
    return [*lines, "    </cpt>"]


def _lay_out(order: Sequence[str], names: dict[str, str]) -> list[str]:
    """Return what GeNIe shows: the name of each node, and a place for it, ten to a row."""
    lines = ["  <extensions>", '    <genie version="1.0" app="robustbn" name="network">']
    for i, node in enumerate(order):
        x, y = 40 + i % 10 * 120, 40 + i // 10 * 90
        lines += [
            f'      <node id="{names[node]}">',
            f"        <name>{html.escape(escape(node))}</name>",
            f"        <position>{x} {y} {x + 80} {y + 50}</position>",
            "      </node>",
        ]
    return [*lines, "    </genie>", "  </extensions>"]
