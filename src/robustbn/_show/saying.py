"""Places, rows and names in the sentences of findings; commands to build on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robustbn._core.file_names import DRAFTED_EDGES, named_after
from robustbn._core.numbers import count
from robustbn._core.origins import FILE_NAME, HIDDEN, ROW_NUMBER
from robustbn._show.result import FitResult
from robustbn._show.words import as_text
from robustbn._tables.exclusion import LINE, LINE_OF_ROW, write_place

ANY_FIT = "robustbn fit NETWORK TABLE"
EDGES, FOLDER = "--edges", "--output-dir"  # where check writes its draft
OUTPUTS = frozenset(
    {"-o", "--output", "--report", "--weights", "--model", FOLDER, "--clean", "--ask"}
    | {"--fail-over"}
    | {EDGES, "--most-parents", "--forbid", "--require", "--order", "--leave-out"}  # of check
)
SWITCHES = frozenset(("--drop-distrusted", "--force", "--json", "--quiet", "--strict"))
MOST_NAMED = 4  # columns in a sentence
EVERY_ROW = "slice(None)"  # in Python
MOST_EXAMPLES = 3  # rows to which something was done, that are told
MOST_NUMBERED = 200  # rows that a finding knows by their numbers
TEXT_FILES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")

Parts = tuple[tuple[str, str, str], ...]


def base_command(command: str | None) -> str:
    """Return the command of a fit (of a check, with the edges it wrote) without what it writes."""
    try:
        words = shlex.split(command or "")
    except ValueError:
        words = []
    is_check = words[:2] == ["robustbn", "check"] and len(words) > 2 and words[2][:1] != "-"
    if words[:2] != ["robustbn", "fit"] and not is_check:
        return ANY_FIT
    kept: list[str] = []
    left_out, name, is_value = dict[str, str](), "", False
    for word in words:
        if is_value:  # of an option that is left out
            left_out[name], is_value = word, False
            continue
        name, has_value, value = word.partition("=")
        if name in OUTPUTS:
            left_out[name], is_value = value, not has_value
        elif word not in SWITCHES:
            kept.append(word)
    if is_check:
        folder, named = left_out.get(FOLDER), named_after(words[2], DRAFTED_EDGES)
        edges = left_out.get(EDGES) or (f"{folder}/edges.csv" if folder else named)
        kept[1:2] = ["fit", edges]
    return shlex.join(kept)


def report_command(result: FitResult) -> str:
    """Return the command that writes the page of a fit, again if it is there."""
    return f"{base_command(result.command)} --report report.html --force"


def exclude_command(result: FitResult, parts: Parts) -> str:
    """Return the command that fits again without the rows of a place; to private ones, the page."""
    if not parts or any(HIDDEN in part for part in parts):
        return report_command(result)
    return f"{base_command(result.command)} --exclude {shlex.quote(write_place(parts))}"


def has_lines(result: FitResult) -> bool:
    """Whether rows are lines of one text file, the header being the first."""
    reading = result.reading
    is_one = not any(column.name == FILE_NAME for column in result.aside.context)
    return reading.kind == "file" and is_one and reading.where.lower().endswith(TEXT_FILES)


def say_span(result: FitResult, first: int, last: int) -> str:
    """Return some neighbouring rows by their lines in a text file, or else by their numbers."""
    word, add = ("line", LINE_OF_ROW) if has_lines(result) else ("row", 0)
    first, last = first + add, last + add
    return f"{word} {first:,}" if first == last else f"{word}s {first:,} to {last:,}"


def say_parts(result: FitResult, parts: Parts) -> Parts:
    """Return a place with lines instead of row numbers where rows are lines; no private values."""
    said = []
    for name, first, last in parts:
        if name == ROW_NUMBER and has_lines(result):
            lines = [f"{int(text.replace(',', '')) + LINE_OF_ROW:,}" for text in (first, last)]
            said.append((LINE, lines[0], lines[1]))
        elif result.rows_hidden and name not in (ROW_NUMBER, FILE_NAME):
            said.append((name, HIDDEN, HIDDEN))
        else:
            said.append((name, first, last))
    return tuple(said)


def name_surest(result: FitResult, chances: NDArray[np.float64]) -> tuple[list[int], str]:
    """Return the rows to which something was done, and the surest of them in words.

    If they are more than `MOST_NUMBERED`, or not all are known, the surest ones only.
    """
    judged = result.judged
    if judged is None or result.rows_hidden:
        return [], ""
    surest = np.argsort(-chances, kind="stable")
    first = np.sort(judged.drawn[surest[:MOST_EXAMPLES]]).tolist()
    n = int(np.count_nonzero(chances > 1 / 2))
    is_all = MOST_EXAMPLES < n <= MOST_NUMBERED and len(judged.drawn) == result.n_rows
    rows = np.sort(judged.drawn[surest[:n]]).tolist() if is_all else first
    numbers = ", ".join(f"{row + LINE_OF_ROW * has_lines(result):,}" for row in first)
    return rows, f", for example in {'lines' if has_lines(result) else 'rows'} {numbers}"


def choose_rows(parts: Parts) -> str:
    """Return Python for the rows of a place, as `table.loc` takes them."""
    chosen, lines = [], EVERY_ROW
    for name, first, last in parts:
        column = f"table[{name!r}]"
        if re.match(r"\d{4}-\d\d", first):  # a month has more than its first day
            column += f".astype(str).str[:{len(first)}]"
        if name in (ROW_NUMBER, LINE):
            add = LINE_OF_ROW if name == LINE else 0
            start, end = (int(text.replace(",", "")) - add for text in (first, last))
            lines = f"table.index[{start}:{end + 1}]"
        elif name != FILE_NAME:
            ends = f"{as_python(first)}, {as_python(last)}"
            is_one = first == last
            chosen.append(
                f"({column}.astype(str) == {first!r})" if is_one else f"{column}.between({ends})"
            )
    if chosen and lines != EVERY_ROW:
        chosen.append(f"table.index.isin({lines})")
    return " & ".join(chosen) or lines


def find_parts(result: FitResult, rows: NDArray[np.int64]) -> Parts:
    """Return where most of some rows are, by their numbers; nothing if they are everywhere."""
    origins = result.deeper.find_places(rows)
    most = [each for each in origins if 2 * each.n_distrusted >= len(rows)]
    return say_parts(result, most[0].parts) if most else ()


def where_of(parts: Parts) -> dict[str, str]:
    """Return a place as the value, or range of values, of each of its columns."""
    return {
        name: as_text(first if first == last else f"{first} to {last}")
        for name, first, last in parts
    }


def having(parts: Parts, start: str) -> str:
    """Return a place in words, after a start: `Where site is north`; empty if there is none."""
    if not parts:
        return ""
    each = [
        f"{as_text(name)} is {as_text(first)}"
        if first == last
        else f"{as_text(name)} is {as_text(first)} to {as_text(last)}"
        for name, first, last in parts
    ]
    if start.startswith("Where"):
        return f"{start}{' and '.join(each)}"
    return f"{start} occur mostly where {' and '.join(each)}."


def quote_names(names: Sequence[str]) -> str:
    """Return a few names, and how many more there are."""
    shown = [as_text(name) for name in names[:MOST_NAMED]]
    if len(names) > MOST_NAMED:
        shown.append(count(len(names) - MOST_NAMED, "more column"))
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def as_python(value: str) -> str:
    """Return an end of a range as Python compares it: a number without quotes, else text."""
    number = value.replace(",", "")
    return number if re.fullmatch(r"-?\d+(\.\d+)?", number) else repr(value)
