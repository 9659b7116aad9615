"""NET, the text format of Hugin.

`node X { states = ("yes" "no"); }` declares a node and
`potential ( X | A B ) { data = (((0.1 0.9) ...)); }` its parents and its table: parents from the
outermost brackets inwards, the node's own states innermost. `%` begins a comment. The name of a
node is an identifier; a name that is none is kept in the attribute `robustbn_name`, next to a
stand-in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from math import prod

from robustbn._networks.files import decode
from robustbn._networks.parts import (
    Family,
    NodePart,
    Parts,
    ReadTable,
    show,
    unknown_parent,
    wrong_count,
)
from robustbn._networks.text import (
    ESCAPES,
    Scanner,
    all_texts,
    choose_identifiers,
    escape,
    needs_escape,
    read_run,
    text_labels,
    unescape,
    warn_of_stand_ins,
    write_numbers,
)
from robustbn.network import BayesianNetwork

TRUE_NAME = "robustbn_name"
_BLANK = r"(?:\s++|%[^\n]*+)*+"
_RESERVED = frozenset(
    {"net", "class", "node", "potential", "discrete", "continuous", "utility", "decision"}
    | {"function", "states", "data"}
)


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


_KEYWORD = _compile(r"[A-Za-z_]\w*+")
_WORD = _compile(r'"([^"\n]*+)"|([^\s;{}()="|%]++)')
_OPEN, _CLOSE, _BAR = _compile(r"\{"), _compile(r"\}"), _compile(r"\|")
_OPEN_ROUND, _CLOSE_ROUND = _compile(r"\("), _compile(r"\)")
_ATTRIBUTE = _compile(rf'([A-Za-z_]\w*+){_BLANK}={_BLANK}((?:[^";{{}}%]++|"[^"]*+"|%[^\n]*+)*+);')
_COMMENT = _compile(r"%[^\n]*+")
_BRACKETS = _compile(r"[()]")

Attributes = dict[str, tuple[int, str]]  # name -> where its value begins, and the value


@dataclass(frozen=True)
class _Potential:
    parents: tuple[str, ...]
    at: int
    attributes: Attributes


# --- reading ----------------------------------------------------------------------------------


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of a NET file; their tables are read later."""
    scan = Scanner(decode(data, source), source, _BLANK)
    nodes: dict[str, tuple[int, Attributes]] = {}
    potentials: dict[str, _Potential] = {}
    is_escaped = False
    while scan.skip() < len(scan.text):
        at = scan.at
        keyword = scan.expect(_KEYWORD, "net, node or potential")[0]
        if keyword == "discrete":
            keyword = scan.expect(_KEYWORD, "node after discrete")[0]
        if keyword == "net":
            is_escaped = ESCAPES in _read_attributes(scan, "net", at)
        elif keyword == "node":
            _read_node(scan, at, nodes)
        elif keyword == "potential":
            _read_potential(scan, at, potentials)
        else:
            raise scan.error(
                at,
                f"{keyword!r} is not part of a Bayesian network over discrete nodes; expected "
                "net, node or potential.",
            )
    if not nodes:
        raise scan.error(0, "the file declares no node, so it is not a NET network.")
    for name, potential in potentials.items():
        if name not in nodes:
            raise scan.error(potential.at, f"a potential is given for {name!r}, which is no node.")
    return Parts(_join(scan, nodes, potentials, is_escaped), scan.line_of)


def _join(
    scan: Scanner,
    nodes: dict[str, tuple[int, Attributes]],
    potentials: dict[str, _Potential],
    is_escaped: bool,
) -> list[NodePart]:
    """Bring each node together with its potential, under its true name."""
    true = {name: _true_name(scan, name, a, is_escaped) for name, (_, a) in nodes.items()}
    joined = []
    for name, (at, attributes) in nodes.items():
        if name not in potentials:
            raise scan.error(at, f"node {name!r} has no potential. Is the file truncated?")
        potential = potentials[name]
        labels = _read_states(scan, name, at, attributes, is_escaped)
        for p in potential.parents:
            if p not in true:
                raise scan.error(potential.at, unknown_parent(name, p, nodes))
        parents = tuple(true[p] for p in potential.parents)
        data = potential.attributes.get("data")
        reader = partial(_read_table, scan, true[name], *data) if data else None
        joined.append(NodePart(true[name], labels, parents, at, potential.at, reader))
    return joined


def _read_node(scan: Scanner, at: int, nodes: dict[str, tuple[int, Attributes]]) -> None:
    name = _text(scan.expect(_WORD, "the name of a node"), False)
    if name in nodes:
        first = scan.line_of(nodes[name][0])
        raise scan.error(at, f"node {name!r} appears twice, first on line {first}.")
    nodes[name] = (at, _read_attributes(scan, f"node {name}", at))


def _read_potential(scan: Scanner, at: int, potentials: dict[str, _Potential]) -> None:
    scan.expect(_OPEN_ROUND, "'(' after potential")
    heads: list[str] = []
    parents: list[str] = []
    names = heads
    while not scan.accept(_CLOSE_ROUND):
        if names is heads and scan.accept(_BAR):
            names = parents
        else:
            names.append(_text(scan.expect(_WORD, "the name of a node or ')'"), False))
    if len(heads) != 1:
        raise scan.error(at, f"a potential must be of one node given its parents; found {heads}.")
    if heads[0] in potentials:
        first = scan.line_of(potentials[heads[0]].at)
        raise scan.error(at, f"node {heads[0]!r} has two potentials, first on line {first}.")
    attributes = _read_attributes(scan, f"potential of {heads[0]}", at)
    potentials[heads[0]] = _Potential(tuple(parents), at, attributes)


def _read_attributes(scan: Scanner, block: str, opened: int) -> Attributes:
    scan.expect(_OPEN, f"'{{' after {block}")
    attributes: Attributes = {}
    while not scan.accept(_CLOSE):
        found = scan.accept(_ATTRIBUTE)
        if found is None:
            line = scan.line_of(opened)
            if scan.text.find("}", scan.at) < 0:
                scan.at = len(scan.text)
            scan.fail(f"expected `attribute = value;` or '}}' in the {block} of line {line}")
        if found[1] in attributes:
            raise scan.error(found.start(), f"{block} has the attribute {found[1]!r} twice.")
        attributes[found[1]] = (found.start(2), found[2])
    return attributes


def _text(match: re.Match[str], is_escaped: bool) -> str:
    quoted: str | None = match[1]
    if quoted is None:
        word: str = match[2]
        return word
    return unescape(quoted) if is_escaped else quoted


def _true_name(scan: Scanner, name: str, attributes: Attributes, is_escaped: bool) -> str:
    if TRUE_NAME not in attributes:
        return name
    at, value = attributes[TRUE_NAME]
    match = _WORD.match(value)
    if match is None:
        raise scan.error(at, f"{TRUE_NAME} of node {name!r} must be a text in quotes.")
    return _text(match, is_escaped)


def _read_states(
    scan: Scanner, name: str, at: int, attributes: Attributes, is_escaped: bool
) -> tuple[str, ...]:
    if "states" not in attributes:
        raise scan.error(
            at, f"node {name!r} has no `states = (...)`; only discrete nodes are read."
        )
    start, value = attributes["states"]
    inner = Scanner(value, scan.source, _BLANK)
    labels = []
    match = inner.accept(_OPEN_ROUND)
    while match is not None and not inner.accept(_CLOSE_ROUND):
        match = inner.accept(_WORD)
        if match is not None:
            labels.append(_text(match, is_escaped))
    if match is None or inner.skip() < len(value):
        raise scan.error(
            start + inner.at,
            f"the states of node {name!r} must be in brackets; found {show(value)}.",
        )
    return tuple(labels)


def _read_table(scan: Scanner, node: str, at: int, value: str, family: Family) -> ReadTable:
    """Read `data`, and check that its brackets are those of the parents."""
    shape = [len(labels) for labels in family]
    text = _COMMENT.sub(lambda match: " " * len(match[0]), value)
    found = "".join(_BRACKETS.findall(text))
    if found != "()" and (len(found) != _count_brackets(shape) or found != _nest(shape)):
        raise scan.error(
            at,
            f"the brackets of the table of node {node!r} are not those of a table of shape "
            f"{tuple(shape)}: the parents' states from the outside inwards, the node's own "
            "innermost.",
        )
    table = read_run(
        _BRACKETS.sub(" ", text),
        node,
        prod(shape),
        shape[-1],
        scan.source,
        lambda k: scan.line_of(at + k),
    )
    if found != "()" and any(
        len(row.split()) not in (0, shape[-1]) for row in _BRACKETS.split(text)
    ):
        message = wrong_count(node, shape[-1], "another number in some brackets")
        raise scan.error(at, message)
    return table


def _count_brackets(shape: list[int]) -> int:
    """Return `len(_nest(shape))` without building it: a file may ask for a huge one."""
    return 2 * sum(prod(shape[:k]) for k in range(len(shape)))


def _nest(shape: list[int]) -> str:
    brackets = "()"
    for n in reversed(shape[:-1]):
        brackets = f"({brackets * n})"
    return brackets


# --- writing ----------------------------------------------------------------------------------


def to_text(network: BayesianNetwork) -> str:
    """Return the network as NET, with stand-ins for node names that are no identifiers."""
    labels = text_labels(network, "NET")
    names = choose_identifiers(network.nodes, "n_", _RESERVED)
    warn_of_stand_ins("NET", [(n, i) for n, i in names.items() if n != i])
    remark = f'    {ESCAPES} = "yes";\n' if needs_escape(all_texts(network, labels)) else ""
    lines = [f"net\n{{\n{remark}}}"]
    for node in network.nodes:
        states = " ".join(f'"{escape(label)}"' for label in labels[node])
        lines += [f"node {names[node]}", "{", f"    states = ({states});"]
        if names[node] != node:
            lines.append(f'    {TRUE_NAME} = "{escape(node)}";')
        lines.append("}")
    for node in network.nodes:
        parents = "".join(f" {names[p]}" for p in network.parents[node])
        lines += [f"potential ({names[node]}{' |' if parents else ''}{parents})", "{"]
        if network.has_cpts:
            shape = network.cpts[node].shape
            rows = network.cpts[node].reshape(-1, shape[-1]).tolist()
            lines.append(f"    data = {_nest_rows(shape, rows)};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _nest_rows(shape: tuple[int, ...], rows: list[list[float]]) -> str:
    pieces = [f"({write_numbers(row)})" for row in rows]
    between = "\n        "
    for n in reversed(shape[:-1]):
        pieces = [f"({between.join(pieces[i : i + n])})" for i in range(0, len(pieces), n)]
    return pieces[0]
