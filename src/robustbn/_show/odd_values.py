"""Findings about single values: unreadable ones, far ones, labels that look mistyped."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import DECLARED, NO_DATE, NO_NUMBER, TITLE, OddValues
from robustbn._core.far import find_rest, is_apart
from robustbn._core.findings import NOTE, WARNING, Finding, Kind, Remedy
from robustbn._core.numbers import count
from robustbn._show import saying
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent

MOST_EXAMPLES = 3  # values that are quoted
SHORTEST_CUT = 3  # letters of a label that may be the beginning of another
MUCH_RARER = 10.0  # times as many rows have the label that a rare one is taken for
ALIKE = 0.85  # similarity of two labels, from which the rare one may be a mistyped other
MOST_COMPARED = 60  # labels of a column, the most frequent, that others are compared with
BROKEN = "contains characters from a wrong encoding"
_NO_DIGIT = re.compile(r"\D")
_BROKEN = re.compile("\ufffd|\u00c3[\u0080-\u00bf]|\u00e2\u20ac|\u00c2[\u0080-\u00bf]")


def find_unreadable(result: FitResult) -> Iterator[Finding]:
    """Yield the columns with values that could not be read, and lines that repeat the header."""
    fit = saying.base_command(result.command)
    for odd in result.aside.clues.odd:
        origins = result.deeper.find_places(odd.rows) if len(odd.rows) else []
        origins = [each for each in origins if any(n != odd.column for n, _, _ in each.parts)]
        parts: saying.Parts = saying.say_parts(result, origins[0].parts) if origins else ()
        n_there = origins[0].n_distrusted if origins else 0
        parts = tuple(part for part in parts if part[0] != odd.column)
        common = "VALUE" if result.rows_hidden else next(iter(odd.examples), "VALUE")
        declare = shlex.quote(f"{odd.column}={common}")
        yield Finding(
            Kind.UNREADABLE,
            NOTE if odd.kind == DECLARED else WARNING,
            _say_odd(result, odd, parts, n_there),
            0.3 if odd.kind == DECLARED else 0.9,
            (odd.column,) if odd.column else (),
            saying.where_of(parts),
            odd.n,
            0 if odd.kind == TITLE else odd.n,
            origins[0].gain if origins else 0.0,
            odd.kind,
            advice=Remedy(
                "Correct these values, or declare them as missing.",
                f"{fit} --missing {declare}" if odd.column else fit,
                f"robustbn.fit(network, table, missing={{{odd.column!r}: {common!r}}})"
                if odd.column
                else f"table.iloc[{odd.rows[:3].tolist()}]",
            ),
            rows=tuple(odd.rows[: saying.MOST_NUMBERED].tolist()),
        )


def _say_odd(result: FitResult, odd: OddValues, parts: saying.Parts, n_there: int) -> str:
    first = "" if not len(odd.rows) else saying.say_span(result, int(odd.rows[0]), int(odd.rows[0]))
    if odd.kind == TITLE:
        lines = count(odd.n, "line repeats", "lines repeat")
        are = "is" if odd.n == 1 else "are"
        return f"{lines} the header inside the table and {are} left out, first {first}."
    what = {
        NO_NUMBER: "could not be read as a number",
        NO_DATE: "is not a date",
        DECLARED: "is treated as missing, as requested",
    }.get(odd.kind, "is not a state")
    verb = what if odd.n == 1 else what.replace("is ", "are ", 1)
    such = ""
    if odd.examples and not result.rows_hidden:
        values = [f"{as_text(v)!r} ({n:,})" for v, n in list(odd.examples.items())[:MOST_EXAMPLES]]
        such = f": {', '.join(values)}"
    start = f", first {first}" if first else ""
    said = f"{count(odd.n, 'value')} of {as_text(odd.column)} {verb}{such}{start}."
    if not parts:
        return said
    every = "All" if n_there >= odd.n else f"{n_there:,}"
    return f"{said}{saying.having(parts, f' {every} of them').replace('mostly ', '')}"


def find_far(result: FitResult) -> Iterator[Finding]:
    """Yield the columns in which some numbers lie far outside the rest."""
    sample = result.aside.clues.numbers
    for node, values in sample.values.items():
        is_there = np.flatnonzero(np.isfinite(values))
        order = is_there[np.argsort(values[is_there], kind="stable")]
        low, high = find_rest(values[order])
        far = np.concatenate([order[:low], order[high:]])
        if not len(far) or result.rows_hidden:
            continue
        rest = values[order[low:high]]
        n = round(len(far) * result.reading.n_read / len(sample.rows))
        shown, times = np.unique(values[far], return_counts=True)
        shown = shown[np.argsort(-times, kind="stable")][:MOST_EXAMPLES]
        rows = np.sort(sample.rows[far])
        origins = result.deeper.find_places(rows)
        parts: saying.Parts = saying.say_parts(result, origins[0].parts) if origins else ()
        values_shown = ", ".join(f"{value:g}" for value in shown)
        first = saying.say_span(result, int(rows[0]), int(rows[0]))
        declare = shlex.quote(f"{node}={shown[0]:g}")
        yield Finding(
            Kind.WRONG_CELLS,
            WARNING if is_apart(values[order], low, high) else NOTE,
            f"{count(n, 'value')} of {as_text(node)} {'is' if n == 1 else 'are'} far outside the "
            f"range of the others ({rest[0]:g} to {rest[-1]:g}): {values_shown}, first "
            f"{first}.{saying.having(parts, ' They')}",
            0.8 if is_apart(values[order], low, high) else 0.3,
            (node,),
            saying.where_of(parts),
            n,
            n,
            cause="far values",
            advice=Remedy(
                "Correct these values, or declare them as missing.",
                f"{saying.base_command(result.command)} --missing {declare}",
                f"robustbn.fit(network, table, missing={{{node!r}: [{values_shown}]}})",
            ),
            rows=tuple(rows[: saying.MOST_NUMBERED].tolist()),
        )


def find_odd_labels(result: FitResult) -> Iterator[Finding]:
    """Yield the columns with labels that look broken, cut off, mistyped or in another case."""
    judged, network = result.judged, result.network
    if judged is None or result.rows_hidden:
        return
    for k, node in enumerate(network.nodes):
        states = network.states[node]
        if not all(isinstance(state, str) for state in states):
            continue
        seen = np.bincount(judged.drawn_codes[:, k], minlength=len(states) + 1)[: len(states)]
        labels = {str(s).strip(): int(n) for s, n in zip(states, seen, strict=True) if n}
        found: dict[str, dict[str, str]] = {}
        for label, n in labels.items():
            taken_for, how = _guess(label, n, labels)
            if how:
                found.setdefault(how, {})[label] = taken_for
        for how, guessed in found.items():
            codes = [c for c, state in enumerate(states) if str(state).strip() in guessed]
            rows = judged.drawn[np.isin(judged.drawn_codes[:, k], codes)]
            yield _tell_labels(result, node, how, {g: labels[g] for g in guessed}, guessed, rows)


def _tell_labels(
    result: FitResult,
    node: str,
    how: str,
    seen: dict[str, int],
    taken_for: dict[str, str],
    rows: NDArray[np.int64],
) -> Finding:
    """Return that labels of a column, of which so many drawn rows were seen, stand for others."""
    n_drawn = max(len(result.judged.drawn) if result.judged is not None else 0, 1)
    n = sum(seen.values()) * result.reading.n_read / n_drawn
    many = f"({count(n, 'row')}, {percent(sum(seen.values()) / n_drawn)})"
    origins = result.deeper.find_places(rows)
    parts: saying.Parts = saying.say_parts(result, origins[0].parts) if origins else ()
    shown = sorted(seen, key=lambda label: -seen[label])
    told = [
        f"{as_text(label)!r}" + (f" for {as_text(taken_for[label])!r}" if taken_for[label] else "")
        for label in shown[:MOST_EXAMPLES]
    ]
    if len(shown) > MOST_EXAMPLES:
        told.append(f"and {len(shown) - MOST_EXAMPLES:,} more")
    which = count(len(shown), "label")
    may = how.replace("contains", "contain") if how == BROKEN else f"be {how}"
    said = f"{which} of {as_text(node)} may {may} {many}: {', '.join(told)}."
    pairs = ",".join(f"{label}={taken_for[label]}" for label in shown)
    return Finding(
        Kind.UNREADABLE,
        WARNING,
        f"{said}{saying.having(parts, ' They')}",
        0.7,
        (node,),
        saying.where_of(parts),
        round(n),
        round(n),
        cause=how,
        advice=Remedy(
            "If so, map each to the correct label.",
            f"{saying.base_command(result.command)} --labels {shlex.quote(f'{node}:{pairs}')}",
            f"robustbn.fit(network, table, labels={{{node!r}: "
            f"{ {label: taken_for[label] for label in shown}!r}}})",
        ),
        rows=tuple(np.sort(rows)[: saying.MOST_NUMBERED].tolist()),
    )


def _guess(label: str, n: int, labels: dict[str, int]) -> tuple[str, str]:
    """Return which label another may stand for, and what happened to it; empty if nothing."""
    if _BROKEN.search(label):
        return "", BROKEN
    others = {other: times for other, times in labels.items() if other != label and times >= n}
    for other in others:
        if other.casefold() == label.casefold():
            return other, "written in another case"
    digits = _NO_DIGIT.sub("", label)  # 'grade 2' is no mistyped 'grade 1'
    frequent = [
        other
        for other in sorted(others, key=lambda other: -others[other])[:MOST_COMPARED]
        if others[other] >= MUCH_RARER * n and _NO_DIGIT.sub("", other) == digits
    ]
    for other in frequent:
        goes_on = other[len(label) : len(label) + 1]
        if len(label) >= SHORTEST_CUT and other.startswith(label) and goes_on.isalpha():
            return other, "cut off"
    import difflib  # seldom needed

    near = difflib.get_close_matches(label, frequent, 1, ALIKE)
    return (near[0], "mistyped") if near and len(label) > SHORTEST_CUT else ("", "")
