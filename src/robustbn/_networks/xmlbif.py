"""XMLBIF, the interchange format in XML, version 0.3.

`<VARIABLE TYPE="nature"><NAME>X</NAME><OUTCOME>yes</OUTCOME>...` declares a node and
`<DEFINITION><FOR>X</FOR><GIVEN>A</GIVEN><TABLE>...</TABLE>` its parents and its table: the node's
own states fastest, then the last parent.
"""

from __future__ import annotations

import html
from functools import partial

from robustbn._networks.parts import NodePart, Parts, join_parts, refuse
from robustbn._networks.text import (
    ESCAPES,
    all_texts,
    escape,
    needs_escape,
    text_labels,
    unescape,
    write_numbers,
)
from robustbn._networks.xml import Element, parse_xml, read_xml_table
from robustbn.network import BayesianNetwork


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of an XMLBIF file; their tables are read later."""
    root = parse_xml(data, source, "BIF", "an XMLBIF network")
    network = root.only("NETWORK", source)
    is_escaped = any(p.text.split("=")[0].strip() == ESCAPES for p in network.all("PROPERTY"))
    definitions = [_read_definition(e, source, is_escaped) for e in network.all("DEFINITION")]
    states = [_read_variable(e, source, is_escaped) for e in network.all("VARIABLE")]
    if not states:
        raise refuse(source, network.line, "the network has no <VARIABLE>.")
    return join_parts(states, definitions, source, int, "definition")


def _read_variable(
    variable: Element, source: str, is_escaped: bool
) -> tuple[str, tuple[str, ...], int]:
    kind = variable.attributes.get("TYPE", "nature")
    name = _label(variable.only("NAME", source), is_escaped)
    if kind != "nature":
        message = f"node {name!r} is of type {kind!r}; a Bayesian network has only nature nodes."
        raise refuse(source, variable.line, message)
    labels = tuple(_label(outcome, is_escaped) for outcome in variable.all("OUTCOME"))
    return name, labels, variable.line


def _read_definition(element: Element, source: str, is_escaped: bool) -> NodePart:
    name = _label(element.only("FOR", source), is_escaped)
    parents = tuple(_label(given, is_escaped) for given in element.all("GIVEN"))
    reader = None
    if element.all("TABLE"):
        reader = partial(read_xml_table, element.only("TABLE", source), name, source)
    return NodePart(name, (), parents, element.line, element.line, reader)


def _label(element: Element, is_escaped: bool) -> str:
    return unescape(element.text) if is_escaped else element.text


def to_text(network: BayesianNetwork) -> str:
    """Return the network as XMLBIF."""
    labels = text_labels(network, "XMLBIF")
    texts = all_texts(network, labels)
    is_escaped = needs_escape(texts, edges=True)

    def put(text: str) -> str:
        return html.escape(escape(text, edges=True) if is_escaped else text)

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
            rows = network.given_cpts[node].reshape(-1, len(labels[node])).tolist()
            lines += ["  <TABLE>", *(f"    {write_numbers(row)}" for row in rows), "  </TABLE>"]
        lines.append("</DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"
