"""XMLBIF, the interchange format in XML, version 0.3.

`<VARIABLE TYPE="nature"><NAME>X</NAME><OUTCOME>yes</OUTCOME>...` declares a node and
`<DEFINITION><FOR>X</FOR><GIVEN>A</GIVEN><TABLE>...</TABLE>` its parents and its table: the node's
own states fastest, then the last parent.
"""

from __future__ import annotations

from functools import partial
from math import prod

from robustbn._networks.parts import Family, NodePart, Parts, ReadTable, refuse
from robustbn._networks.text import (
    ESCAPES,
    all_texts,
    escape,
    needs_escape,
    read_run,
    text_labels,
    unescape,
    write_numbers,
)
from robustbn._networks.xml import Element, escape_xml, parse_xml
from robustbn.network import BayesianNetwork


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of an XMLBIF file; their tables are read later."""
    root = parse_xml(data, source, "BIF", "an XMLBIF network")
    networks = root.all("NETWORK")
    if len(networks) != 1:
        raise refuse(source, root.line, f"expected one <NETWORK>, found {len(networks)}.")
    network = networks[0]
    is_escaped = any(p.text.split("=")[0].strip() == ESCAPES for p in network.all("PROPERTY"))
    definitions: dict[str, Element] = {}
    for element in network.all("DEFINITION"):
        name = _label(_only(element, "FOR", source), is_escaped)
        if name in definitions:
            first = definitions[name].line
            message = f"node {name!r} has two definitions, first on line {first}."
            raise refuse(source, element.line, message)
        definitions[name] = element
    nodes = [_read_node(e, definitions, source, is_escaped) for e in network.all("VARIABLE")]
    if not nodes:
        raise refuse(source, network.line, "the network has no <VARIABLE>.")
    known = {node.name for node in nodes}
    for name, element in definitions.items():
        if name not in known:
            message = f"a definition is given for {name!r}, which is no variable."
            raise refuse(source, element.line, message)
    return Parts(nodes, int)


def _read_node(
    variable: Element, definitions: dict[str, Element], source: str, is_escaped: bool
) -> NodePart:
    kind = variable.attributes.get("TYPE", "nature")
    name = _label(_only(variable, "NAME", source), is_escaped)
    if kind != "nature":
        message = f"node {name!r} is of type {kind!r}; a Bayesian network has nature nodes alone."
        raise refuse(source, variable.line, message)
    if name not in definitions:
        message = f"node {name!r} has no <DEFINITION>, so its parents are not known."
        raise refuse(source, variable.line, message)
    definition = definitions[name]
    states = tuple(_label(outcome, is_escaped) for outcome in variable.all("OUTCOME"))
    parents = tuple(_label(given, is_escaped) for given in definition.all("GIVEN"))
    reader = None
    if definition.all("TABLE"):
        reader = partial(read_xml_table, _only(definition, "TABLE", source), name, source)
    return NodePart(name, states, parents, variable.line, definition.line, reader)


def read_xml_table(element: Element, node: str, source: str, family: Family) -> ReadTable:
    """Read the numbers of a tag as a table in C order."""
    shape = [len(labels) for labels in family]
    text, first = element.lined_text()
    return read_run(
        text, node, prod(shape), shape[-1], source, lambda k: first + text.count("\n", 0, k)
    )


def _only(element: Element, tag: str, source: str) -> Element:
    found = element.all(tag)
    if len(found) != 1:
        message = f"<{element.tag}> needs one <{tag}>, found {len(found)}."
        raise refuse(source, element.line, message)
    return found[0]


def _label(element: Element, is_escaped: bool) -> str:
    return unescape(element.text) if is_escaped else element.text


def to_text(network: BayesianNetwork) -> str:
    """Return the network as XMLBIF."""
    labels = text_labels(network, "XMLBIF")
    texts = all_texts(network, labels)
    is_escaped = needs_escape(texts, edges=True)

    def put(text: str) -> str:
        return escape_xml(escape(text, edges=True) if is_escaped else text)

    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    lines.append("<NAME>unknown</NAME>")
    if is_escaped:
        lines.append(f"<PROPERTY>{ESCAPES} = yes</PROPERTY>")
    for node in network.nodes:
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{put(node)}</NAME>"]
        lines += [f"  <OUTCOME>{put(label)}</OUTCOME>" for label in labels[node]]
        lines.append("</VARIABLE>")
    for node in network.nodes:
        lines += ["<DEFINITION>", f"  <FOR>{put(node)}</FOR>"]
        lines += [f"  <GIVEN>{put(parent)}</GIVEN>" for parent in network.parents[node]]
        if network.has_cpts:
            rows = network.cpts[node].reshape(-1, len(labels[node])).tolist()
            lines += ["  <TABLE>", *(f"    {write_numbers(row)}" for row in rows), "  </TABLE>"]
        lines.append("</DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"
