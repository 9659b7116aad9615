"""UAI, the format of the inference competitions: numbers alone, no names.

`BAYES`, the number of nodes, their numbers of states, the number of tables, then for each table its
scope (parents, then the node itself last) and, after all scopes, for each table its number of
values and the values in C order of the scope. `#` begins a comment.

Nodes are called "0", "1", ... and so are their states, unless `states=` gives the true names.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import islice
from math import prod

import numpy as np

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.structure import MAX_STATES
from robustbn._networks.files import decode
from robustbn._networks.parts import (
    Family,
    Labels,
    NodePart,
    Parts,
    ReadTable,
    refuse,
    show,
    wrong_count,
)
from robustbn._networks.text import read_run, write_numbers
from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork

_WORD = re.compile(r"[^\s#]++|#[^\n]*+", re.ASCII)


class _Words:
    """The words of the file, handed out one by one."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.at = text, source, 0
        self.words = [w for w in _WORD.findall(text) if w[0] != "#"]

    def line_of(self, at: int) -> int:
        """Return the line of the word number `at`."""
        words = (match for match in _WORD.finditer(self.text) if match[0][0] != "#")
        match = next(islice(words, at, None), None)
        end = len(self.text) if match is None else match.start()
        return self.text.count("\n", 0, end) + 1

    def error(self, at: int, message: str) -> NetworkError:
        return refuse(self.source, self.line_of(at), message)

    def count(self, what: str, low: int, high: int) -> int:
        """Return the next word as a whole number from `low` to `high`."""
        if self.at >= len(self.words):
            raise self.error(self.at, f"expected {what}, but the file ends here. Is it truncated?")
        word = self.words[self.at]
        is_number = len(word) <= 12 and word.isascii() and word.isdigit()
        if not is_number or not low <= int(word) <= high:
            raise self.error(
                self.at, f"expected {what}, a number from {low} to {high:,}; found {show(word)}."
            )
        self.at += 1
        return int(word)


def read_parts(data: bytes, source: str) -> Parts:
    """Find the nodes of a UAI file; their tables are read later."""
    words = _Words(decode(data, source), source)
    if words.words[:1] != ["BAYES"]:
        kind = words.words[0] if words.words else ""
        hint = " A Markov network has no parents and children." if kind == "MARKOV" else ""
        raise words.error(0, f"a Bayesian network begins with BAYES; found {show(kind)}.{hint}")
    words.at = 1
    n_words = len(words.words)
    n = words.count("the number of nodes", 1, n_words)
    places, cards = [], []
    for i in range(n):
        places.append(words.at)
        cards.append(words.count(f"the number of states of node {i}", 1, MAX_STATES))
    words.count("the number of tables, one per node", n, n)
    scopes: list[list[int]] = []
    scope_places = []
    for _ in range(n):
        scope_places.append(words.at)
        size = words.count("the size of a scope", 1, n)
        scopes.append([words.count("the number of a node", 0, n - 1) for _ in range(size)])
    readers = {}
    for scope, place in zip(scopes, scope_places, strict=True):
        if scope[-1] in readers:
            raise words.error(place, f"node {scope[-1]} has two tables; the node stands last.")
        at = words.at
        size = words.count("the number of values of a table", 0, n_words)
        words.at += size
        if words.at > n_words:
            raise words.error(
                n_words, f"the table of node {scope[-1]} ends too early. Is the file truncated?"
            )
        parents = tuple(map(str, scope[:-1]))
        readers[scope[-1]] = (parents, place, partial(_read_table, words, at, size, scope[-1]))
    if words.at < n_words:
        raise words.error(words.at, f"expected the end, found {show(words.words[words.at])}.")
    nodes = [
        NodePart(
            str(i), tuple(map(str, range(cards[i]))), readers[i][0], places[i], *readers[i][1:]
        )
        for i in range(n)
    ]
    return Parts(nodes, words.line_of)


def _read_table(words: _Words, at: int, size: int, node: int, family: Family) -> ReadTable:
    expected, card = prod(len(labels) for labels in family), len(family[-1])
    if size != expected:
        raise words.error(at, wrong_count(str(node), expected, size))
    text = " ".join(words.words[at + 1 : at + 1 + size])

    def line_at(k: int) -> int:
        return words.line_of(at + 1 + text.count(" ", 0, k))

    return read_run(text, str(node), expected, card, words.source, line_at)


def rename(parts: Parts, states: dict[str, Labels], source: str) -> Parts:
    """Give nodes and states their true names, in the order of `states`."""
    names = list(states)
    if len(names) != len(parts.nodes):
        raise refuse(
            source, 0, f"the file has {len(parts.nodes)} nodes, but `states` names {len(names)}."
        )
    nodes = []
    for part, (name, labels) in zip(parts.nodes, states.items(), strict=True):
        if len(labels) != len(part.states):
            raise refuse(
                source,
                parts.line_of(part.at),
                f"node {part.name} has {len(part.states)} states, but `states` gives "
                f"{len(labels)} for {name!r}: {show(list(labels))}.",
            )
        parents = tuple(names[int(p)] for p in part.parents)
        nodes.append(replace(part, name=name, states=labels, parents=parents))
    return replace(parts, nodes=nodes)


def to_text(network: BayesianNetwork, *, numbered: bool) -> str:
    """Return the network as UAI; names and labels must be numbers, or `numbered` drops them."""
    if not network.has_cpts:
        raise NetworkError("A UAI file holds tables, and this network has none. Write .json.")
    numbers = {node: i for i, node in enumerate(network.nodes)}
    is_numbered = list(network.nodes) == [str(i) for i in range(network.n_nodes)] and all(
        list(labels) == [str(v) for v in range(len(labels))] for labels in network.states.values()
    )
    if not (is_numbered or numbered):
        raise NetworkError(
            Advice(
                "A UAI file has no names: nodes and states would become numbers. Write another "
                "format, or ",
                Setting("numbered", True),
                " and keep the states, with which ",
                Setting("states", Either("...", "FILE")),
                " restores the names.",
            )
        )
    cards = network.layout.cards
    lines = ["BAYES", str(len(cards)), " ".join(map(str, cards)), str(len(cards))]
    for node in network.nodes:
        scope = [numbers[n] for n in (*network.parents[node], node)]
        lines.append(" ".join(map(str, [len(scope), *scope])))
    for node in network.nodes:
        table = network.given_cpts[node]
        rows = np.reshape(table, (-1, table.shape[-1])).tolist()
        lines += ["", str(table.size), *(write_numbers(row) for row in rows)]
    return "\n".join(lines) + "\n"
