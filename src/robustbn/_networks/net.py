"""NET, the text format of Hugin.

`node X { states = ("yes" "no"); }` declares a node and
`potential ( X | A B ) { data = (((0.1 0.9) ...)); }` its parents and its table: parents from the
outermost brackets inwards, the node's own states innermost. `%` begins a comment. The name of a
node is an identifier; a name that is none is kept in the attribute `robustbn_name`, next to a
stand-in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

from robustbn._networks.files import decode
from robustbn._networks.parts import (
    Family,
    NodePart,
    Parts,
    ReadTable,
    join_parts,
    show,
    unknown_parent,
    wrong_count,
)
from robustbn._networks.text import (
    CLOSE,
    CLOSE_ROUND,
    ESCAPES,
    KEYWORD,
    OPEN,
    OPEN_ROUND,
    Scanner,
    all_texts,
    choose_identifiers,
    compile_ascii,
    escape,
    needs_escape,
    text_labels,
    warn_of_stand_ins,
    write_numbers,
)
from robustbn.network import BayesianNetwork

TRUE_NAME = "robustbn_name"
_BLANKS = r"(?:\s++|%[^\n]*+)*+"
_RESERVED = frozenset(
    {"net", "class", "node", "potential", "discrete", "continuous", "utility", "decision"}
    | {"function", "states", "data"}
)
_BLANK, _BAR = compile_ascii(_BLANKS), compile_ascii(r"\|")
_WORD = compile_ascii(r'"([^"\n]*+)"|([^\s;{}()="|%]++)')
_ATTRIBUTE = compile_ascii(
    rf'([A-Za-z_]\w*+){_BLANKS}={_BLANKS}((?:[^";{{}}%]++|"[^"]*+"|%[^\n]*+)*+);'
)
_COMMENT = compile_ascii(r"%[^\n]*+")
_BRACKETS = compile_ascii(r"[()]")

Attributes = dict[str, tuple[int, str]]  # name -> where its value begins, and the value


@dataclass(frozen=True)
class _Node:
    name: str
    at: int
    attributes: Attributes


# --- reading ----------------------------------------------------------------------------------


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of a NET file; their tables are read later."""
    scan = Scanner(decode(data, source), source, _BLANK, _WORD)
    nodes: list[_Node] = []
    definitions: list[NodePart] = []
    while scan.skip() < len(scan.text):
        at = scan.at
        keyword = scan.expect(KEYWORD, "net, node or potential")[0]
        if keyword == "discrete":
            keyword = scan.expect(KEYWORD, "node after discrete")[0]
        if keyword == "net":
            scan.is_escaped = ESCAPES in _read_attributes(scan, "net", at)
        elif keyword == "node":
            name = scan.word("the name of a node")
            nodes.append(_Node(name, at, _read_attributes(scan, f"node {name}", at)))
        elif keyword == "potential":
            definitions.append(_read_potential(scan, at))
        else:
            raise scan.error(
                at,
                f"{keyword!r} is not part of a Bayesian network over discrete nodes; expected "
                "net, node or potential.",
            )
    if not nodes:
        raise scan.error(0, "the file declares no node, so it is not a NET network.")
    return _join(scan, nodes, definitions)


def _join(scan: Scanner, nodes: list[_Node], definitions: list[NodePart]) -> Parts:
    """Bring each node together with its potential, under its true name."""
    true = {node.name: _true_name(scan, node) for node in nodes}
    named = []
    for each in definitions:
        for p in each.parents:
            if p not in true:
                raise scan.error(each.at, unknown_parent(each.name, p, true))
        parents = tuple(true[p] for p in each.parents)
        named.append(replace(each, name=true.get(each.name, each.name), parents=parents))
    states = [(true[node.name], _read_states(scan, node), node.at) for node in nodes]
    return join_parts(states, named, scan.source, scan.line_of, "potential")


def _read_potential(scan: Scanner, at: int) -> NodePart:
    scan.expect(OPEN_ROUND, "'(' after potential")
    heads: list[str] = []
    parents: list[str] = []
    names = heads
    while not scan.accept(CLOSE_ROUND):
        if names is heads and scan.accept(_BAR):
            names = parents
        else:
            names.append(scan.word("the name of a node or ')'"))
    if len(heads) != 1:
        raise scan.error(at, f"a potential must be of one node given its parents; found {heads}.")
    (name,) = heads
    data = _read_attributes(scan, f"potential of {name}", at).get("data")
    reader = partial(_read_table, scan, name, *data) if data else None
    return NodePart(name, (), tuple(parents), at, at, reader)


def _read_attributes(scan: Scanner, block: str, opened: int) -> Attributes:
    scan.expect(OPEN, f"'{{' after {block}")
    attributes: Attributes = {}
    while not scan.accept(CLOSE):
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


def _true_name(scan: Scanner, node: _Node) -> str:
    if TRUE_NAME not in node.attributes:
        return node.name
    at, value = node.attributes[TRUE_NAME]
    match = _WORD.match(value)
    if match is None:
        raise scan.error(at, f"{TRUE_NAME} of node {node.name!r} must be a text in quotes.")
    return scan.text_of(match)


def _read_states(scan: Scanner, node: _Node) -> tuple[str, ...]:
    if "states" not in node.attributes:
        raise scan.error(
            node.at, f"node {node.name!r} has no `states = (...)`; only discrete nodes are read."
        )
    start, value = node.attributes["states"]
    inner = Scanner(value, scan.source, _BLANK, _WORD)
    labels = []
    match = inner.accept(OPEN_ROUND)
    while match is not None and not inner.accept(CLOSE_ROUND):
        match = inner.accept(_WORD)
        if match is not None:
            labels.append(scan.text_of(match))
    if match is None or inner.skip() < len(value):
        raise scan.error(
            start + inner.at,
            f"the states of node {node.name!r} must be in brackets; found {show(value)}.",
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
    table = scan.read_run(_BRACKETS.sub(" ", text), at, node, prod(shape), shape[-1])
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
            shape = network.given_cpts[node].shape
            rows = network.given_cpts[node].reshape(-1, shape[-1]).tolist()
            lines.append(f"    data = {_nest_rows(shape, rows)};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _nest_rows(shape: tuple[int, ...], rows: list[list[float]]) -> str:
    pieces = [f"({write_numbers(row)})" for row in rows]
    between = "\n        "
    for n in reversed(shape[:-1]):
        pieces = [f"({between.join(pieces[i : i + n])})" for i in range(0, len(pieces), n)]
    return pieces[0]
