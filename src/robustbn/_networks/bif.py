"""BIF, the interchange format of the public network repository.

`variable X { type discrete [ 2 ] { yes, no }; }` declares a node and
`probability ( X | A, B ) { ... }` its parents and its table. The table is lines
`(a, b) 0.1, 0.9;`, one a configuration, `default 0.5, 0.5;` for those without a line, or
`table ...;`, which lists the node's first state for all configurations (the last parent fastest),
then its second, and so on. Commas and bars are blanks, as the format says; `//` and `/* */` are
comments. Names and labels are words or stand in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._networks.files import decode
from robustbn._networks.parts import Family, NodePart, Parts, ReadTable, show, wrong_count
from robustbn._networks.text import (
    ESCAPES,
    Scanner,
    all_texts,
    escape,
    has_odd_characters,
    needs_escape,
    parse_numbers,
    read_run,
    text_labels,
    unescape,
    write_numbers,
    wrong_number,
)
from robustbn.network import BayesianNetwork

_COMMENT = r"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/"
_BLANK = rf"(?:[\s,|]++|{_COMMENT})*+"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


_REMARK = _compile(_COMMENT)
_KEYWORD = _compile(r"[A-Za-z]\w*+")
_WORD = _compile(r'"([^"\n]*+)"|((?:[^\s,|;{}\[\]()"/]++|/(?![/*]))++)')
_OPEN, _CLOSE, _END = _compile(r"\{"), _compile(r"\}"), _compile(r";")
_OPEN_ROUND, _CLOSE_ROUND = _compile(r"\("), _compile(r"\)")
_TYPE = _compile(rf"discrete{_BLANK}\[{_BLANK}(\d{{1,9}}){_BLANK}\]{_BLANK}\{{")
_PROPERTY = _compile(r'((?:[^;"]++|"[^"]*+")*+);')
_BODY = _compile(rf'(?:[^{{}}"/]++|"[^"\n]*+"|/(?![/*])|{_COMMENT})*+\}}')
_PLAIN_LINE = _compile(r'\s*+\(([^()"/;{}]*+)\)([^;()"/{}]*+);')
_NUMBERS = _compile(rf'((?:[^;"/{{}}()]++|{_COMMENT})*+);')
_PLAIN_LABEL = _compile(r"(?:[A-Za-z0-9_<>=+.\-]|/(?![/*]))++")
_KEYWORDS = {
    "network",
    "variable",
    "probability",
    "property",
    "type",
    "discrete",
    "default",
    "table",
}


@dataclass(frozen=True)
class _Block:
    """A probability block: whose it is, and where its body is."""

    parents: tuple[str, ...]
    at: int
    start: int
    end: int


# --- reading ----------------------------------------------------------------------------------


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of a BIF file; their tables are read later."""
    scan = Scanner(decode(data, source), source, _BLANK)
    states: dict[str, tuple[int, tuple[str, ...]]] = {}
    blocks: dict[str, _Block] = {}
    is_escaped = False
    while scan.skip() < len(scan.text):
        keyword = scan.expect(_KEYWORD, "network, variable or probability")
        if keyword[0] == "network":
            is_escaped = _read_network_block(scan) or is_escaped
        elif keyword[0] == "variable":
            _read_variable(scan, states, is_escaped)
        elif keyword[0] == "probability":
            _read_probability(scan, blocks, is_escaped)
        else:
            scan.at = keyword.start()
            scan.fail("expected network, variable or probability")
    if not states:
        raise scan.error(0, "the file declares no variable, so it is not a BIF network.")
    for name, block in blocks.items():
        if name not in states:
            raise scan.error(
                block.at, f"a probability is given for {name!r}, which is no variable."
            )
    nodes = []
    for name, (at, labels) in states.items():
        if name not in blocks:
            raise scan.error(at, f"node {name!r} has no probability block. Is the file truncated?")
        block = blocks[name]
        has_table = _has_entries(scan, block)
        reader = partial(_read_table, scan, name, block, is_escaped) if has_table else None
        nodes.append(NodePart(name, labels, block.parents, at, block.at, reader))
    return Parts(nodes, scan.line_of)


def _word(scan: Scanner, what: str, is_escaped: bool) -> str:
    return _text(scan.expect(_WORD, what), is_escaped)


def _text(match: re.Match[str], is_escaped: bool) -> str:
    quoted: str | None = match[1]
    if quoted is None:
        word: str = match[2]
        return word
    return unescape(quoted) if is_escaped else quoted


def _read_network_block(scan: Scanner) -> bool:
    """Read `network name { property ...; }`; return whether labels in the file are escaped."""
    opened = scan.at
    is_escaped = False
    scan.accept(_WORD)
    scan.expect(_OPEN, "'{' after network")
    while not scan.accept(_CLOSE):
        text = _read_property(scan, opened, "network")
        is_escaped = is_escaped or text.split()[:1] == [ESCAPES]
    return is_escaped


def _read_property(scan: Scanner, opened: int, block: str) -> str:
    where = f"the {block} block that begins on line"
    keyword = scan.accept(_KEYWORD)
    if keyword is None or keyword[0] != "property":
        scan.at = keyword.start() if keyword else scan.at
        scan.fail(f"expected property or '}}' in {where} {scan.line_of(opened)}")
    return scan.expect(_PROPERTY, "the end ';' of a property")[1]


def _read_variable(
    scan: Scanner, states: dict[str, tuple[int, tuple[str, ...]]], is_escaped: bool
) -> None:
    at = scan.skip()
    name = _word(scan, "the name of a variable", is_escaped)
    if name in states:
        first = scan.line_of(states[name][0])
        raise scan.error(at, f"node {name!r} appears twice, first on line {first}.")
    scan.expect(_OPEN, f"'{{' after variable {name}")
    labels: tuple[str, ...] | None = None
    while not scan.accept(_CLOSE):
        before = scan.at
        keyword = scan.accept(_KEYWORD)
        if keyword is not None and keyword[0] == "type":
            labels = _read_type(scan, name, is_escaped)
        else:
            scan.at = before
            _read_property(scan, at, "variable")
    if labels is None:
        raise scan.error(at, f"node {name!r} has no type, so its states are not known.")
    states[name] = (at, labels)


def _read_type(scan: Scanner, name: str, is_escaped: bool) -> tuple[str, ...]:
    count = scan.expect(_TYPE, f"discrete [ number of states ] {{ for node {name!r}")
    labels = []
    while not scan.accept(_CLOSE):
        labels.append(_word(scan, f"a state of node {name!r} or '}}'", is_escaped))
    if len(labels) != int(count[1]):
        raise scan.error(
            count.start(),
            f"node {name!r} is said to have {int(count[1])} states, but {len(labels)} are listed: "
            f"{show(labels, 200)}.",
        )
    scan.expect(_END, "';' after the states")
    return tuple(labels)


def _read_probability(scan: Scanner, blocks: dict[str, _Block], is_escaped: bool) -> None:
    at = scan.skip()
    scan.expect(_OPEN_ROUND, "'(' after probability")
    names = []
    while not scan.accept(_CLOSE_ROUND):
        names.append(_word(scan, "the name of a variable or ')'", is_escaped))
    if not names:
        raise scan.error(at, "a probability block names no variable.")
    if names[0] in blocks:
        first = scan.line_of(blocks[names[0]].at)
        raise scan.error(
            at, f"node {names[0]!r} has two probability blocks, first on line {first}."
        )
    scan.expect(_OPEN, "'{' after the names of a probability block")
    start = scan.at
    body = _BODY.match(scan.text, start)
    if body is None:
        line = scan.line_of(at)
        scan.at = len(scan.text)
        scan.fail(f"the probability block of {names[0]!r} that begins on line {line} needs a '}}'")
    scan.at = body.end()
    blocks[names[0]] = _Block(tuple(names[1:]), at, start, body.end() - 1)


def _has_entries(scan: Scanner, block: _Block) -> bool:
    """Whether the body holds a table; properties are none."""
    scan.at = block.start
    while scan.skip() < block.end:
        keyword = scan.accept(_KEYWORD)
        if keyword is None or keyword[0] != "property":
            return True
        scan.expect(_PROPERTY, "the end ';' of a property")
    return False


# --- the table of one node --------------------------------------------------------------------


class _TableReader:
    """Collect the lines of one probability block, whatever their order."""

    def __init__(
        self, scan: Scanner, node: str, block: _Block, is_escaped: bool, family: Family
    ) -> None:
        self.scan, self.node, self.block, self.is_escaped = scan, node, block, is_escaped
        self.card = len(family[-1])
        cards = [len(labels) for labels in family[:-1]]
        self.n_configurations = prod(cards)
        self.steps: list[dict[Hashable, int]] = [
            {label: v * prod(cards[k + 1 :]) for v, label in enumerate(labels)}
            for k, labels in enumerate(family[:-1])
        ]
        self.line_at: dict[int, int] = {}  # configuration -> position of its line
        self.words: list[str] = []
        self.default: NDArray[np.float64] | None = None
        self.table: ReadTable | None = None

    def read(self) -> ReadTable:
        text, end = self.scan.text, self.block.end
        at = self.block.start
        match_plain = _PLAIN_LINE.match
        while True:
            line = match_plain(text, at, end)
            if line is None or not self._add_plain(line):
                self.scan.at = at
                if self.scan.skip() >= end:
                    break
                self._read_entry()
                at = self.scan.at
            else:
                at = line.end()
        return self._finish()

    def _add_plain(self, line: re.Match[str]) -> bool:
        """Add a line without quotes and comments; False if it needs a closer look."""
        labels, numbers = line.groups()
        parts = labels.split(",")
        if len(parts) != len(self.steps):
            return False
        k = 0
        try:
            for part, step in zip(parts, self.steps, strict=True):
                k += step[part.strip()]
        except KeyError:
            return False
        self._add(k, numbers, line.start(2))
        return True

    def _add(self, k: int, numbers: str, at: int) -> None:
        if k in self.line_at:
            first = self.scan.line_of(self.line_at[k])
            raise self.scan.error(
                at, f"this configuration of node {self.node!r} was given before, on line {first}."
            )
        n_before = len(self.words)
        self.words += self._split(numbers, at)
        if len(self.words) != n_before + self.card:
            found = len(self.words) - n_before
            raise self.scan.error(at, wrong_count(self.node, self.card, f"{found} on this line"))
        self.line_at[k] = at

    def _split(self, numbers: str, at: int) -> list[str]:
        if has_odd_characters(numbers):
            raise self._wrong_number(numbers, at)
        return numbers.replace(",", " ").split()

    def _wrong_number(self, numbers: str, at: int) -> Exception:
        scan = self.scan
        return wrong_number(numbers, self.node, scan.source, lambda k: scan.line_of(at + k))

    def _read_entry(self) -> None:
        """Read one entry of any kind: a line with labels, default, table or property."""
        scan = self.scan
        at = scan.at
        if scan.accept(_OPEN_ROUND):
            k = self._read_configuration(at)
            numbers, start = self._read_numbers()
            self._add(k, numbers, start)
            return
        keyword = scan.accept(_KEYWORD)
        if keyword is not None and keyword[0] == "property":
            scan.expect(_PROPERTY, "the end ';' of a property")
        elif keyword is not None and keyword[0] == "default":
            numbers, start = self._read_numbers()
            self.default = self._read_some(numbers, start, self.card).values
        elif keyword is not None and keyword[0] == "table":
            self._read_whole_table()
        else:
            scan.at = at
            scan.fail(f"expected '(', table or default in the table of node {self.node!r}")

    def _read_configuration(self, at: int) -> int:
        labels = []
        while not self.scan.accept(_CLOSE_ROUND):
            labels.append(_word(self.scan, "a state of a parent or ')'", self.is_escaped))
        if len(labels) != len(self.steps):
            raise self.scan.error(
                at,
                f"node {self.node!r} has {len(self.steps)} parents, but this line names "
                f"{len(labels)} states: {show(labels, 200)}.",
            )
        k = 0
        for parent, label, step in zip(self.block.parents, labels, self.steps, strict=True):
            if label not in step:
                raise self.scan.error(
                    at,
                    f"table of node {self.node!r}: parent {parent!r} has no state {label!r}; its "
                    f"states are {show(list(step), 200)}.",
                )
            k += step[label]
        return k

    def _read_numbers(self) -> tuple[str, int]:
        match = self.scan.expect(_NUMBERS, f"numbers and ';' in the table of node {self.node!r}")
        if "/" not in match[1]:
            return match[1], match.start(1)
        return _REMARK.sub(_keep_lines, match[1]), match.start(1)

    def _read_some(self, numbers: str, at: int, expected: int) -> ReadTable:
        scan = self.scan
        return read_run(
            numbers, self.node, expected, self.card, scan.source, lambda k: scan.line_of(at + k)
        )

    def _read_whole_table(self) -> None:
        numbers, at = self._read_numbers()
        if self.table is not None:
            raise self.scan.error(at, f"node {self.node!r} has two tables.")
        table = self._read_some(numbers, at, self.n_configurations * self.card)
        values = table.values.reshape(self.card, -1).T.ravel()  # the node's states come slowest
        line = self.scan.line_of
        self.table = ReadTable(values, lambda k: line(at))

    def _finish(self) -> ReadTable:
        scan, block, n = self.scan, self.block, self.n_configurations
        if self.table is not None:
            if self.line_at or self.default is not None:
                raise scan.error(block.at, f"node {self.node!r} has a table and other lines.")
            return self.table
        if self.default is None and len(self.line_at) < n:
            raise self._missing_line()
        given = parse_numbers(self.words)
        if given is None:
            raise self._first_wrong_number()
        values = np.empty((n, self.card))
        if self.default is not None:
            values[:] = self.default
        if self.line_at:
            values[list(self.line_at)] = given.reshape(-1, self.card)
        line_at, fallback = self.line_at, block.at
        return ReadTable(values.ravel(), lambda k: scan.line_of(line_at.get(k, fallback)))

    def _first_wrong_number(self) -> Exception:
        card = self.card
        rows = [self.words[n * card : (n + 1) * card] for n in range(len(self.line_at))]
        wrong = [n for n, row in enumerate(rows) if parse_numbers(row) is None]
        return self._wrong_number(" ".join(rows[wrong[0]]), list(self.line_at.values())[wrong[0]])

    def _missing_line(self) -> Exception:
        k = next(k for k in range(self.n_configurations) if k not in self.line_at)
        labels = []
        for step in self.steps:
            stride = next(iter(list(step.values())[1:]), 1)
            labels.append(list(step)[k // stride % len(step)])
        return self.scan.error(
            self.block.at,
            f"the table of node {self.node!r} has {len(self.line_at):,} lines for "
            f"{self.n_configurations:,} configurations and no default; the first without a line "
            f"is {show(labels, 200)}.",
        )


def _read_table(
    scan: Scanner, node: str, block: _Block, is_escaped: bool, family: Family
) -> ReadTable:
    return _TableReader(scan, node, block, is_escaped, family).read()


def _keep_lines(match: re.Match[str]) -> str:
    return " " + "\n" * match[0].count("\n")


# --- writing ----------------------------------------------------------------------------------


def to_text(network: BayesianNetwork) -> str:
    """Return the network as BIF; quotes stand around labels that are not plain words."""
    labels = text_labels(network, "BIF")
    quoted = {text: _quote(text) for text in all_texts(network, labels)}
    remark = f"  property {ESCAPES} yes;\n" if needs_escape(quoted) else ""
    lines = [f"network unknown {{\n{remark}}}"]
    for node in network.nodes:
        states = ", ".join(quoted[label] for label in labels[node])
        lines += [
            f"variable {quoted[node]} {{",
            f"  type discrete [ {len(labels[node])} ] {{ {states} }};",
            "}",
        ]
    for node in network.nodes:
        parents = network.parents[node]
        given = f" | {', '.join(quoted[p] for p in parents)}" if parents else ""
        lines.append(f"probability ( {quoted[node]}{given} ) {{")
        if network.has_cpts:
            rows = network.cpts[node].reshape(-1, len(labels[node])).tolist()
            if parents:
                settings = product(*([quoted[label] for label in labels[p]] for p in parents))
                lines += [
                    f"  ({', '.join(setting)}) {write_numbers(row, ', ')};"
                    for setting, row in zip(settings, rows, strict=True)
                ]
            else:
                lines.append(f"  table {write_numbers(rows[0], ', ')};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    if _PLAIN_LABEL.fullmatch(text) and text not in _KEYWORDS:
        return text
    return f'"{escape(text)}"'
