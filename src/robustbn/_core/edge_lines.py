"""Lines of two names, as of an edge list: `parent,child`, quoted where a name needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


class LineError(ValueError):
    """A line cannot be read; holds its number."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def write_edge(parent: str, child: str) -> str:
    """Return an edge as a line.

    Examples
    --------
    >>> write_edge("rain", "wet, or not")
    'rain,"wet, or not"'
    """
    return f"{_quote(parent)},{_quote(child)}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if _MUST_QUOTE.search(name) else name


def read_edge(text: str) -> tuple[str, str] | None:
    """Return the edge of a line; None if it is none.

    Examples
    --------
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
    """Return what stands between the names of the first line; a comma if nothing does.

    Blanks count only where nothing else is found, since they may be part of names.

    Parameters
    ----------
    usual : what is tried first.
    """
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
