"""Edge lists: a structure as lines `parent,child`, with the states in a file of their own.

A line `,node` names a node, which needs no edge then.
Between the names there may also be `->`, a tab, a semicolon or blanks; the first line tells which.
The states are a JSON object `{node: [labels]}` or lines `node,state`; their order is the order of
the columns and of the codes. A first line of column titles is passed over in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

from robustbn._core.file_names import inner_suffix, name_of
from robustbn._networks.files import decode, find_file, read_bytes
from robustbn._networks.json import check_labels, parse_json
from robustbn._networks.parts import Labels, NodePart, Parts, refuse, show
from robustbn.exceptions import NetworkError

_EDGE_TITLES = {("parent", "child"), ("from", "to"), ("source", "target")}
_STATE_TITLES = {("node", "state"), ("node", "label"), ("variable", "state")}
COMMA, ARROW, TAB, SEMICOLON, BLANKS = ",", "->", "\t", ";", " "
_END = r"\r\n?|\n|\Z"
_ENDS = {  # of a name: what parts it from the next, or the end of the line; in order of trial
    ARROW: re.compile(rf"(->|\u2192)|;[ \t]*+(?:{_END})|{_END}"),
    TAB: re.compile(rf"(\t)|{_END}"),
    COMMA: re.compile(rf"(,)|{_END}"),
    SEMICOLON: re.compile(rf"(;)|{_END}"),
    BLANKS: re.compile(rf"((?<![ \t])[ \t]++)(?![\r\n]|\Z)|{_END}"),
}
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"')
_MUST_QUOTE = re.compile(r'\A\s|\s\Z|[,"\r\n]')


def read_states(states: object) -> dict[str, Labels]:
    """Return the states of each node from a mapping or a file."""
    if isinstance(states, Mapping):
        checked = {}
        for node, labels in states.items():
            if not isinstance(labels, Sequence) or isinstance(labels, str):
                raise NetworkError(
                    f"`states` must give a list of labels for node {node!r}; found {labels!r}."
                )
            checked[node] = tuple(labels)
        return checked
    if not isinstance(states, str | Path):
        raise NetworkError(
            "`states` must be a mapping of node names to labels, or the name of a .json, .csv or "
            f".tsv file; found {type(states).__name__}."
        )
    path = find_file(states)
    source = name_of(path)
    text = decode(read_bytes(path), source)
    name = path.stem if path.suffix.lower() == ".gz" else path.name
    if Path(name).suffix.lower() == ".json":
        document = parse_json(text, source)
        if not isinstance(document, dict):
            raise refuse(source, 0, 'the states must be an object like {"rain": ["no", "yes"]}.')
        for node, labels in document.items():
            check_labels(labels, node, source)
        return {node: tuple(labels) for node, labels in document.items()}
    gathered: dict[str, dict[str, None]] = {}  # a dict of labels: ordered, and quick to look in
    rows = _pairs(text, source, name, "node,state")
    for number, (line, node, state) in enumerate(rows):
        if number == 0 and (node.lower(), state.lower()) in _STATE_TITLES:
            continue
        labels = gathered.setdefault(node, {})
        if state in labels:
            raise refuse(source, line, f"node {node!r} has the state {state!r} twice.")
        labels[state] = None
    return {node: tuple(labels) for node, labels in gathered.items()}


def read_parents(path: str | Path, named: Iterable[str] = ()) -> dict[str, list[str]]:
    """Return the parents of each node of an edge list, nodes in the order of their first edge."""
    file = find_file(path)
    source = name_of(file)
    text = decode(read_bytes(file), source)
    parents: dict[str, list[str]] = {}
    for _, parent, child in _read_edges(text, source, file.name, set(named)):
        parents.setdefault(parent or child, [])
        if parent:
            parents.setdefault(child, []).append(parent)
    if not parents:
        raise refuse(source, 0, "there is no edge in it.")
    return parents


def read_parts(data: bytes, source: str, states: dict[str, Labels]) -> Parts:
    """Read the lines `parent,child`; each node keeps the order of its edges."""
    lines: dict[str, int] = {}
    parents: dict[str, list[str]] = {node: [] for node in states}
    for line, parent, child in _read_edges(decode(data, source), source, source, states.keys()):
        unknown = next((end for end in (parent or child, child) if end not in parents), None)
        if unknown is not None:
            hint = ""
            if unknown.strip() in parents:
                hint = f" Did you mean {unknown.strip()!r}, without the blanks?"
            raise refuse(
                source,
                line,
                f"the edge {parent!r} -> {child!r} names {unknown!r}, which has no states.{hint} "
                f"Nodes with states: {show(list(parents), 200)}.",
            )
        parents[child] += [parent] if parent else []
        lines[child] = line
    nodes = [
        NodePart(node, labels, tuple(parents[node]), lines.get(node, 0), lines.get(node, 0), None)
        for node, labels in states.items()
    ]
    return Parts(nodes, int)


def _read_edges(
    text: str, source: str, name: str, named: Set[str]
) -> Iterator[tuple[int, str, str]]:
    """Yield line, parent and child; titles are none, unless both are `named`, and none is twice."""
    seen: set[tuple[str, str]] = set()
    for number, (line, parent, child) in enumerate(_pairs(text, source, name, "parent,child")):
        is_title = (parent.lower(), child.lower()) in _EDGE_TITLES
        if number == 0 and is_title and not {parent, child} <= named:
            continue
        if (parent, child) in seen:
            raise refuse(source, line, f"the edge {parent!r} -> {child!r} is given twice.")
        seen.add((parent, child))
        yield line, parent, child


def looks_like_edges(head: str, name: str) -> bool:
    """Whether each line of the beginning of a text file has two values, as those of edges have."""
    try:
        rows = list(split_lines(head, find_separator(head, _usual(name))))
    except LineError:
        return False
    return bool(rows) and all(len(values) == 2 for _, values in rows)


def _usual(name: str) -> str | None:
    """Return what parts the values in a file with this name, as a rule."""
    return {".csv": COMMA, ".tsv": TAB}.get(inner_suffix(Path(name)))


def _pairs(text: str, source: str, name: str, expected: str) -> list[tuple[int, str, str]]:
    """Return (line, first, second) of every line that is not blank."""
    separator = find_separator(text, _usual(name))
    pairs = []
    try:
        for line, values in split_lines(text, separator):
            if len(values) != 2:
                raise refuse(
                    source,
                    line,
                    f"expected two columns, {expected}, with {separator!r} between them; found "
                    f"{len(values)}: {show(values)}.",
                )
            pairs.append((line, values[0], values[1]))
    except LineError as error:
        raise refuse(source, error.line, f"this is not a table of text: {error}.") from None
    return pairs


# --- lines of two names, quoted where a name needs it ---------------------------------------------


class LineError(ValueError):
    """A line cannot be read; holds its number."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def write_edge(parent: str, child: str) -> str:
    """Return an edge as a line.

    >>> write_edge("rain", "wet, or not")
    'rain,"wet, or not"'
    """
    return f"{_quote(parent)},{_quote(child)}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if _MUST_QUOTE.search(name) else name


def read_edge(text: str) -> tuple[str, str] | None:
    """Return the edge of a line; None if it is none.

    >>> read_edge('rain,"wet, or not"'), read_edge("rain -> wet"), read_edge("rain")
    (('rain', 'wet, or not'), ('rain', 'wet'), None)
    """
    try:
        rows = list(split_lines(text, find_separator(text, COMMA)))
    except LineError:
        return None
    if len(rows) != 1 or len(rows[0][1]) != 2 or not all(rows[0][1]):
        return None
    parent, child = rows[0][1]
    return parent, child


def find_separator(text: str, usual: str | None = None) -> str:
    """Return what stands between the names of the first line; a comma if nothing does."""
    # What is usual is tried first. Blanks count only where nothing else is found, since they may be
    # part of names.
    for separator in ([] if usual is None else [usual]) + list(_ENDS):
        try:
            _, names = next(split_lines(text, separator), (0, []))
        except LineError:
            continue
        if len(names) > 1:
            return separator
    return COMMA


def split_lines(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not blank, and its names; O(length of the text).

    Blanks around names are passed over, but not those in quotes, where a name may also hold the
    separator and line breaks, and two quotes stand for one.
    """
    ends, inner = _ENDS[separator], " " if separator == TAB else " \t"
    at, line = 0, 1
    names: list[str] = []
    while at < len(text):
        at = _skip(text, at, inner)
        quoted = _QUOTED.match(text, at) if text[at : at + 1] == '"' else None
        if quoted is not None:
            name = quoted[1].replace('""', '"')
            end = ends.match(text, quoted.end()) or ends.match(
                text, _skip(text, quoted.end(), inner)
            )
            if end is None:
                raise LineError(line, f"there is more after the quoted name {name!r}")
        elif text[at : at + 1] == '"':
            raise LineError(line, "a quote is not closed")
        else:
            end = ends.search(text, at)
            assert end is not None  # noqa: S101  # the end of the text is one
            name = text[at : end.start()].rstrip(inner)
        names.append(name)
        if end[1] is None:
            if names != [""]:
                yield line, names
            names = []
        line += text.count("\n", at, end.end())
        at = end.end()
    if names:  # the last line ends in a separator
        yield line, [*names, ""]


def _skip(text: str, at: int, blanks: str) -> int:
    while at < len(text) and text[at] in blanks:
        at += 1
    return at
