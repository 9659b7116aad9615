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
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from math import prod
from operator import getitem

import numpy as np
from numpy.typing import NDArray

from robustbn._networks.files import decode
from robustbn._networks.parts import Family, NodePart, Parts, ReadTable, join_parts, show
from robustbn._networks.text import (
    CLOSE,
    CLOSE_ROUND,
    ESCAPES,
    KEYWORD,
    OPEN,
    OPEN_ROUND,
    Scanner,
    all_texts,
    compile_ascii,
    escape,
    has_odd_characters,
    needs_escape,
    parse_numbers,
    text_labels,
    write_numbers,
)
from robustbn.network import BayesianNetwork

# Not a possessive group: Python 3.11.2, which Debian 12 has, matches some of them wrongly.
_COMMENT = r"//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*/"
_QUOTED_OR_PLAIN = r'"([^"\n]*+)"|((?:[^\s,|;{}\[\]()"/]++|/(?![/*]))++)'
_BLANKS = rf"(?:[\s,|]++|{_COMMENT})*+"
_REMARK, _BLANK = compile_ascii(_COMMENT), compile_ascii(_BLANKS)
_WORD, _END = compile_ascii(_QUOTED_OR_PLAIN), compile_ascii(r";")
_WORD_OR_REMARK = compile_ascii(rf"{_QUOTED_OR_PLAIN}|{_COMMENT}")
_TYPE = compile_ascii(r"type\b")
_DISCRETE = compile_ascii(rf"discrete{_BLANKS}\[{_BLANKS}(\d{{1,9}}){_BLANKS}\]{_BLANKS}\{{")
_PROPERTY = compile_ascii(r'property\b((?:[^;"]++|"[^"]*+")*+);')
_PROPERTIES = compile_ascii(rf"(?:{_BLANKS}{_PROPERTY.pattern})*+{_BLANKS}")
_BODY = compile_ascii(rf'(?:[^{{}}"/]++|"[^"\n]*+"|/(?![/*])|{_COMMENT})*+\}}')
_ENTRY = compile_ascii(  # labels or a keyword, then numbers
    rf'{_BLANKS}(?:\(((?:[^()\[\]"/;{{}}]++|"[^"\n]*+"|/(?![/*])|{_COMMENT})*+)\)|(default|table)\b)'
    rf'((?:[^;"/{{}}()]++|{_COMMENT})*+);'
)
_PLAIN_LABEL = compile_ascii(r"(?:[A-Za-z0-9_<>=+.\-]|/(?![/*]))++")
_TOP = ("network", "variable", "probability")
_KEYWORDS = {*_TOP, "property", "type", "discrete", "default", "table"}


@dataclass(frozen=True)
class _Block:
    """A probability block: its parents, and where its body is."""

    parents: tuple[str, ...]
    at: int
    start: int
    end: int


# --- reading ----------------------------------------------------------------------------------


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of a BIF file; their tables are read later."""
    scan = Scanner(decode(data, source), source, _BLANK, _WORD)
    states: list[tuple[str, tuple[str, ...], int]] = []
    definitions: list[NodePart] = []
    while scan.skip() < len(scan.text):
        at = scan.at
        keyword = scan.expect(KEYWORD, "network, variable or probability")[0]
        if keyword == "network":
            _read_network_block(scan)
        elif keyword == "variable":
            states.append(_read_variable(scan))
        elif keyword == "probability":
            definitions.append(_read_probability(scan))
        else:
            scan.at = at
            scan.fail("expected network, variable or probability")
    if not states:
        raise scan.error(0, "the file declares no variable, so it is not a BIF network.")
    return join_parts(states, definitions, source, scan.line_of, "probability block")


def _read_network_block(scan: Scanner) -> None:
    """Read `network name { property ...; }`, which says whether labels in the file are escaped."""
    opened = scan.at
    scan.accept(_WORD)
    scan.expect(OPEN, "'{' after network")
    while not scan.accept(CLOSE):
        words = _read_property(scan, opened, "network").split()
        scan.is_escaped = scan.is_escaped or words[:1] == [ESCAPES]


def _read_property(scan: Scanner, opened: int, block: str) -> str:
    where = f"the {block} block that begins on line {scan.line_of(opened)}"
    return scan.expect(_PROPERTY, f"property, which ends in ';', or '}}' in {where}")[1]


def _read_variable(scan: Scanner) -> tuple[str, tuple[str, ...], int]:
    at = scan.skip()
    name = scan.word("the name of a variable")
    scan.expect(OPEN, f"'{{' after variable {name}")
    labels: tuple[str, ...] | None = None
    while not scan.accept(CLOSE):
        if scan.accept(_TYPE):
            labels = _read_states(scan, name)
        else:
            _read_property(scan, at, "variable")
    if labels is None:
        raise scan.error(at, f"node {name!r} has no type, so its states are not known.")
    return name, labels, at


def _read_states(scan: Scanner, name: str) -> tuple[str, ...]:
    count = scan.expect(_DISCRETE, f"discrete [ number of states ] {{ for node {name!r}")
    labels = scan.words_until(CLOSE, f"a state of node {name!r} or '}}'")
    if len(labels) != int(count[1]):
        raise scan.error(
            count.start(),
            f"node {name!r} is said to have {int(count[1])} states, but {len(labels)} are listed: "
            f"{show(labels, 200)}.",
        )
    scan.expect(_END, "';' after the states")
    return tuple(labels)


def _read_probability(scan: Scanner) -> NodePart:
    at = scan.skip()
    scan.expect(OPEN_ROUND, "'(' after probability")
    names = scan.words_until(CLOSE_ROUND, "the name of a variable or ')'")
    if not names:
        raise scan.error(at, "a probability block names no variable.")
    name, *parents = names
    start = scan.expect(OPEN, "'{' after the names of a probability block").end()
    body = _BODY.match(scan.text, start)
    if body is None:
        line = scan.line_of(at)
        scan.at = len(scan.text)
        scan.fail(f"the probability block of {name!r} that begins on line {line} needs a '}}'")
    scan.at, block = body.end(), _Block(tuple(parents), at, start, body.end() - 1)
    is_bare = _PROPERTIES.fullmatch(scan.text, start, block.end)
    reader = None if is_bare else partial(_read_table, scan, name, block)
    return NodePart(name, (), block.parents, at, at, reader)


# --- the table of one node --------------------------------------------------------------------


def _read_table(scan: Scanner, node: str, block: _Block, family: Family) -> ReadTable:
    card, n = len(family[-1]), prod(len(labels) for labels in family[:-1])
    entries = _find_entries(scan, node, block)
    whole = [entry for entry in entries if entry[2] == "table"]
    if len(whole) > 1:
        raise scan.error(whole[1].start(2), f"node {node!r} has two tables.")
    if whole and len(entries) > 1:
        raise scan.error(block.at, f"node {node!r} has a table and other lines.")
    if whole:
        table = scan.read_run(_numbers_of(whole[0]), whole[0].start(3), node, n * card, card)
        values = table.values.reshape(card, -1).T.ravel()  # the node's states come slowest
        return ReadTable(values, lambda k: scan.line_of(whole[0].start(3)))
    values = np.empty((n, card))
    defaults = [entry for entry in entries if entry[2] == "default"]
    for entry in defaults:
        values[:] = scan.read_run(_numbers_of(entry), entry.start(3), node, card, card).values
    lines = _place_lines(scan, node, block, family, [e for e in entries if e[2] is None])
    if not defaults and len(lines) < n:
        labels = next(at for k, at in enumerate(product(*family[:-1])) if k not in lines)
        raise scan.error(
            block.at,
            f"the table of node {node!r} has {len(lines):,} lines for {n:,} configurations and no "
            f"default; the first without a line is {show(list(labels), 200)}.",
        )
    values[list(lines)] = _parse_lines(scan, node, list(lines.values()), card)
    at = {k: line.start(3) for k, line in lines.items()}
    return ReadTable(values.ravel(), lambda k: scan.line_of(at.get(k, block.at)))


def _find_entries(scan: Scanner, node: str, block: _Block) -> list[re.Match[str]]:
    """Return the entries of a block: labels or a keyword, and numbers; properties are left out."""
    entries, at = [], block.start
    while True:
        entry = _ENTRY.match(scan.text, at, block.end)
        if entry is not None:
            entries.append(entry)
            at = entry.end()
            continue
        scan.at = at
        if scan.skip() >= block.end:
            return entries
        what = f"'(', table or default, numbers and ';' in the table of node {node!r}"
        at = scan.expect(_PROPERTY, what).end()


def _numbers_of(entry: re.Match[str]) -> str:
    """Return the numbers of an entry without comments, but with their lines."""
    numbers: str = entry[3]
    if "/" not in numbers:
        return numbers
    return _REMARK.sub(lambda remark: " " + "\n" * remark[0].count("\n"), numbers)


def _place_lines(
    scan: Scanner, node: str, block: _Block, family: Family, lines: list[re.Match[str]]
) -> dict[int, re.Match[str]]:
    """Return the line of each configuration that has one."""
    cards = [len(labels) for labels in family[:-1]]
    steps = [
        {label: v * prod(cards[k + 1 :]) for v, label in enumerate(labels)}
        for k, labels in enumerate(family[:-1])
    ]
    placed: dict[int, re.Match[str]] = {}
    for line in lines:
        labels = _split_labels(scan, line[1])
        if len(labels) != len(steps):
            raise scan.error(
                line.start(3),
                f"node {node!r} has {len(steps)} parents, but this line names {len(labels)} "
                f"states: {show(labels, 200)}.",
            )
        try:
            k = sum(map(getitem, steps, labels))
        except KeyError:
            i = next(i for i, label in enumerate(labels) if label not in steps[i])
            raise scan.error(
                line.start(3),
                f"table of node {node!r}: parent {block.parents[i]!r} has no state {labels[i]!r}; "
                f"its states are {show(list(steps[i]), 200)}.",
            ) from None
        first = placed.setdefault(k, line)
        if first is not line:
            raise scan.error(
                line.start(3),
                f"this configuration of node {node!r} was given before, on line "
                f"{scan.line_of(first.start(3))}.",
            )
    return placed


def _split_labels(scan: Scanner, text: str) -> list[str]:
    if '"' in text or "/" in text:
        found = _WORD_OR_REMARK.finditer(text)
        return [scan.text_of(each) for each in found if each.lastindex]
    return text.replace(",", " ").replace("|", " ").split()


def _parse_lines(
    scan: Scanner, node: str, lines: list[re.Match[str]], card: int
) -> NDArray[np.float64]:
    """Return the numbers of each line; shape (number of lines, card)."""
    texts = [_numbers_of(line) for line in lines]
    rows = [text.replace(",", " ").split() for text in texts]
    values = parse_numbers(list(chain.from_iterable(rows)))
    is_wrong = values is None or has_odd_characters(" ".join(texts))
    if values is None or is_wrong or any(len(row) != card for row in rows):
        each = (  # one of them raises, and says what is wrong in its line
            scan.read_run(text, line.start(3), node, card, card).values
            for line, text in zip(lines, texts, strict=True)
        )
        values = np.concatenate(list(each))
    return values.reshape(-1, card)


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
            rows = network.given_cpts[node].reshape(-1, len(labels[node])).tolist()
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
