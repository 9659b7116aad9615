"""What the text formats share: a scanner that knows its line, numbers, labels that must be escaped.

Labels. None of the formats has an escape for quotes, backslashes or line breaks inside a label, so
we add one: such a character is written as a backslash, `u` and four hexadecimal digits, and a
remark in the file, `robustbn_escapes`, says that backslashes are to be read in this way. A file
without the remark is read to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import warn
from robustbn._networks.parts import ReadTable, refuse, show, wrong_count
from robustbn.exceptions import NetworkError, StandInWarning
from robustbn.network import BayesianNetwork

ESCAPES = "robustbn_escapes"
_NUMBERS_ONLY = re.compile(r"(?:[0-9e+\-.,\s]++|nan)*+", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[^\s,]++", re.ASCII)
_MUST_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]')
_EDGE_SPACE = re.compile(r"\A\s+|\s+\Z")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*+")


# --- scanning ---------------------------------------------------------------------------------


def compile_ascii(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose classes of characters are those of ASCII."""
    return re.compile(pattern, re.ASCII)


KEYWORD = compile_ascii(r"[A-Za-z_]\w*+")
OPEN, CLOSE = compile_ascii(r"\{"), compile_ascii(r"\}")
OPEN_ROUND, CLOSE_ROUND = compile_ascii(r"\("), compile_ascii(r"\)")


class Scanner:
    """A position in a text, moved on by patterns; each match is tried once, from left to right."""

    def __init__(
        self, text: str, source: str, blank: re.Pattern[str], word: re.Pattern[str]
    ) -> None:
        self.text, self.source, self.at = text, source, 0
        self.is_escaped = False  # whether backslashes in quotes are ours
        self._blank, self._word = blank, word

    def line_of(self, at: int) -> int:
        """Return the line number of a position."""
        return self.text.count("\n", 0, at) + 1

    def skip(self) -> int:
        """Pass over blanks and comments; return the new position."""
        match = self._blank.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.at

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of a pattern here, after blanks, and pass over it; or None."""
        match = pattern.match(self.text, self.skip())
        if match is not None:
            self.at = match.end()
        return match

    def expect(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Return the match of a pattern here, or say what was expected and what was found."""
        return self.accept(pattern) or self.fail(f"expected {what}")

    def word(self, what: str) -> str:
        """Return the name or label that is here."""
        return self.text_of(self.expect(self._word, what))

    def words_until(self, end: re.Pattern[str], what: str) -> list[str]:
        """Return the names or labels up to what ends them."""
        words = []
        while not self.accept(end):
            words.append(self.word(what))
        return words

    def text_of(self, match: re.Match[str]) -> str:
        """Return the name or label that was matched."""
        quoted: str | None = match[1]
        if quoted is None:
            return str(match[2])
        return unescape(quoted) if self.is_escaped else quoted

    def fail(self, what: str) -> NoReturn:
        """Raise the error that says what is wrong here."""
        if self.at >= len(self.text):
            raise self.error(self.at, f"{what}, but the file ends here. Is it truncated?")
        found = self.text[self.at : self.at + 40].split("\n", 1)[0]
        raise self.error(self.at, f"{what}, found {show(found)}.")

    def error(self, at: int, message: str) -> NetworkError:
        """Return the error for a position."""
        return refuse(self.source, self.line_of(at), message)

    def read_run(self, text: str, at: int, node: str, expected: int, card: int) -> ReadTable:
        """Read a table that begins at a position, as `read_run` does."""
        return read_run(text, node, expected, card, self.source, lambda k: self.line_of(at + k))


# --- numbers ----------------------------------------------------------------------------------


def parse_numbers(words: list[str]) -> NDArray[np.float64] | None:
    """Return the numbers, or None if some word is not a number."""
    try:
        return np.array(list(map(float, words)), np.float64)
    except ValueError:
        return None


def has_odd_characters(text: str) -> bool:
    """Whether the text holds anything but numbers, nan, blanks and commas."""
    return _NUMBERS_ONLY.fullmatch(text) is None


def read_run(
    text: str, node: str, expected: int, card: int, source: str, line_at: Callable[[int], int]
) -> ReadTable:
    """Read a table written as one run of `expected` numbers in C order, `card` a configuration."""
    words = text.replace(",", " ").split() if text.isascii() else _NUMBER.findall(text)
    values = None if has_odd_characters(text) else parse_numbers(words)
    if values is None:
        raise _wrong_number(text, node, source, line_at)
    if len(values) != expected:
        raise refuse(source, line_at(0), wrong_count(node, expected, len(values)))

    def line_of(k: int) -> int:
        return line_at(next(islice(_NUMBER.finditer(text), k * card, None)).start())

    return ReadTable(values, line_of)


def _wrong_number(text: str, node: str, source: str, line_at: Callable[[int], int]) -> NetworkError:
    """Return the error that shows the first word that is not a number."""
    wrong = next(
        word
        for word in _NUMBER.finditer(text)
        if has_odd_characters(word[0]) or parse_numbers([word[0]]) is None
    )
    message = f"table of node {node!r}: {show(wrong[0])} is not a number."
    return refuse(source, line_at(wrong.start()), message)


def write_numbers(values: Iterable[float], separator: str = " ") -> str:
    """Return the numbers as text that reads back as the same doubles."""
    return separator.join(map(repr, values))


# --- labels -----------------------------------------------------------------------------------


def text_labels(network: BayesianNetwork, name: str) -> dict[str, tuple[str, ...]]:
    """Return the states of each node as text, the only kind of label that format `name` holds."""
    labels = {}
    for node, states in network.states.items():
        texts = tuple(_text_of(label, node, name) for label in states)
        if len(set(texts)) < len(texts):
            raise NetworkError(
                f"Node {node!r} has states that become the same text in a {name} file: "
                f"{show(list(states))}. Write .json, which keeps numbers and text apart."
            )
        labels[node] = texts
    return labels


def _text_of(label: object, node: str, name: str) -> str:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool | int | float):
        return repr(label)
    raise NetworkError(
        f"Node {node!r} has the state {label!r} of type {type(label).__name__}; only strings and "
        f"numbers can be written to a {name} file."
    )


def needs_escape(texts: Iterable[str], *, edges: bool = False) -> bool:
    """Whether some text holds a character that must be escaped (or, with `edges`, outer blanks)."""
    return any(_MUST_ESCAPE.search(text) or (edges and _EDGE_SPACE.search(text)) for text in texts)


def escape(text: str, *, edges: bool = False) -> str:
    """Return the text with awkward characters (and outer blanks, with `edges`) escaped."""
    text = _MUST_ESCAPE.sub(_escape_match, text)
    return _EDGE_SPACE.sub(_escape_match, text) if edges else text


def _escape_match(match: re.Match[str]) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in match[0])


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def all_texts(network: BayesianNetwork, labels: dict[str, tuple[str, ...]]) -> list[str]:
    """Return every node name and every label."""
    return [*network.nodes, *(label for states in labels.values() for label in states)]


def choose_identifiers(
    names: Iterable[str], prefix: str, reserved: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return an identifier for each name: itself if it is one, else a stand-in like it."""
    names = list(names)
    chosen = {n: n for n in names if _IDENTIFIER.fullmatch(n) and n.lower() not in reserved}
    taken = set(chosen)
    for name in names:
        if name in chosen:
            continue
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:40]
        if not _IDENTIFIER.fullmatch(stem) or stem.lower() in reserved:
            stem = prefix + stem
        candidate, number = stem, len(taken)
        while candidate in taken:
            candidate, number = f"{stem}_{number}", number + 1
        chosen[name] = candidate
        taken.add(candidate)
    return {n: chosen[n] for n in names}


def warn_of_stand_ins(name: str, pairs: list[tuple[str, str]]) -> None:
    """Warn that other programs will see stand-ins, with the first few of them."""
    if not pairs:
        return
    some = ", ".join(f"{stand_in} for {true!r}" for true, stand_in in pairs[:4])
    more = f" and {len(pairs) - 4} more" if len(pairs) > 4 else ""
    warn(
        f"A {name} file cannot hold {len(pairs)} of the names and labels; other programs will see "
        f"stand-ins ({some}{more}). read_network restores the true ones.",
        StandInWarning,
    )
