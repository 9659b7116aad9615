"""Findings about single values: unreadable ones, far ones, labels that look mistyped."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import (
    DECLARED,
    EXCHANGED,
    FAR_DATE,
    NO_DATE,
    NO_NUMBER,
    NO_STATE,
    OUT_OF_ORDER,
    POINT,
    SIGN,
    TITLE,
    UNIT,
    WRONG_YEAR,
    OddValues,
    Scale,
)
from robustbn._core.far import (
    find_act,
    find_fill,
    find_rest,
    is_apart,
    is_code,
)
from robustbn._core.findings import NOTE, WARNING, Finding, Kind, Remedy
from robustbn._core.numbers import count
from robustbn._show import saying
from robustbn._show.owners import FROM_OTHER, find_owner, say_owner
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent
from robustbn._tables.date_forms import exchange_day, is_doubtful

MOST_EXAMPLES = 3  # values that are quoted
MOST_MAPPED = 5  # labels that are mapped by a command: a longer one nobody reads
LIKE_NEAR = "; the rest of these rows is like that of rows with the nearest values"
LIKE_A_CODE = 0.5  # share of odd values that are the same: it may stand for a missing value
UNREAD = (NO_STATE, NO_NUMBER)  # odd values that may be another column's
READ = (FAR_DATE, OUT_OF_ORDER, EXCHANGED, WRONG_YEAR)  # odd values that are dates, but wrong
LIKELY = 0.9  # probability that numbers are scaled
POWERS = (10, 100, 1000)  # a decimal point slips by
SHORTEST_CUT = 3  # letters of a label that may be the beginning of another
MUCH_RARER = 10.0  # times as many rows have the label that a rare one is taken for
ALIKE = 0.85  # similarity of two labels, from which the rare one may be a mistyped other
MOST_COMPARED = 60  # labels of a column, the most frequent, that others are compared with
FITTED = "cut off", "mistyped"  # what happened to labels that are like others
OWNED = 3.0  # times as many rows of another column have a label that belongs there
BROKEN = "contains characters from a wrong encoding"
_NO_DIGIT = re.compile(r"\D")
LOST = "\ufffd"  # stands for bytes that could not be read
_BROKEN = re.compile(f"{LOST}|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac")


def find_unreadable(result: FitResult) -> Iterator[Finding]:
    """Yield the columns with values that could not be read, and lines that repeat the header."""
    for odd in _join_exchanged(result.aside.clues.odd):
        origins = result.deeper.find_places(odd.rows, odd.column) if len(odd.rows) else []
        parts: saying.Parts = saying.say_parts(result, origins[0].parts) if origins else ()
        n_there = origins[0].n_distrusted if origins else 0
        common, n_common = next(iter(odd.examples.items()), ("", 0))
        owner = find_owner(result, odd.column, odd.examples, odd.rows) if odd.kind in UNREAD else ""
        is_common = bool(odd.column) and n_common >= LIKE_A_CODE * odd.n and not owner
        is_common &= not _is_of_another(result, odd.column, common)
        cause = EXCHANGED if _is_exchanged(odd) else FROM_OTHER if owner else odd.kind
        yield Finding(
            Kind.WRONG_CELLS if odd.kind in READ else Kind.UNREADABLE,
            NOTE if odd.kind == DECLARED else WARNING,
            _say_odd(result, odd, parts, n_there) + (say_owner(owner) if owner else ""),
            0.3 if odd.kind == DECLARED else 0.9,
            (odd.column,) if odd.column else (),
            saying.where_of(parts),
            odd.n,
            0 if odd.kind == TITLE else odd.n,
            origins[0].gain if origins else 0.0,
            cause,
            advice=_nothing_to_do(result)
            if odd.kind == DECLARED
            else mend(result, odd.column, odd.rows, [common] if is_common else []),
            rows=tuple(odd.rows[: saying.MOST_NUMBERED].tolist()),
        )


def mend(
    result: FitResult, column: str, rows: NDArray[np.int64], codes: Sequence[object]
) -> Remedy:
    """Return what to do about values: to declare the codes among them missing, or to look."""
    if not codes or column not in result.network.nodes:
        cells = f"[{column!r}]" if column else ""
        look = f"table{cells}.iloc[{rows[:MOST_EXAMPLES].tolist()}]"
        return Remedy("Correct these values in the source.", saying.report_command(result), look)
    hidden = ["VALUE" if result.rows_hidden else code for code in codes]
    declare = " ".join(f"--missing {shlex.quote(f'{column}={code}')}" for code in hidden)
    return Remedy(
        "Correct these values, or declare them as missing.",
        f"{saying.base_command(result.command)} {declare}",
        f"robustbn.fit(network, table, missing={{{column!r}: {hidden!r}}})",
    )


def _nothing_to_do(result: FitResult) -> Remedy:
    return Remedy("No action is needed.", saying.base_command(result.command), "fit.reading_")


def _is_of_another(result: FitResult, column: str, value: object) -> bool:
    """Whether a value is a state of another column: it may have slipped, and is no code."""
    text = str(value)
    return any(
        text == str(state)
        for node, states in result.network.states.items()
        for state in states
        if node != column
    )


def _is_exchanged(odd: OddValues, *, is_told: bool = False) -> bool:
    """Whether most of the values that are no dates are dates once day and month are exchanged.

    is_told : whether dates of the column are exchanged for sure: then 25/03/2024 is, too, and so
        are values that are not kept.
    """
    if odd.kind != NO_DATE or odd.n_mended or not odd.examples:
        return odd.kind == NO_DATE and (is_told or bool(odd.n_mended))
    n_days = sum(
        n
        for text, n in odd.examples.items()
        if exchange_day(text) is not None or (is_told and is_doubtful(text))
    )
    return n_days > sum(odd.examples.values()) / 2


def _join_exchanged(every: Sequence[OddValues]) -> Iterator[OddValues]:
    """Yield odd values, those of a column whose days and months are exchanged only once.

    Where they are exchanged, some are no dates, and others are out of order.
    """
    in_order = {odd.column: odd for odd in every if odd.kind == EXCHANGED}
    joined = {
        odd.column for odd in every if odd.column in in_order and _is_exchanged(odd, is_told=True)
    }
    for odd in every:
        if odd.column not in joined or odd.kind not in (NO_DATE, EXCHANGED):
            yield odd
        elif odd.kind == NO_DATE:
            other = in_order[odd.column]
            rows = np.union1d(odd.rows, other.rows)
            yield replace(odd, n=odd.n + other.n, rows=rows, n_mended=other.n_mended)


def _say_odd(result: FitResult, odd: OddValues, parts: saying.Parts, n_there: int) -> str:
    first = "" if not len(odd.rows) else saying.say_span(result, int(odd.rows[0]), int(odd.rows[0]))
    if odd.kind == TITLE:
        lines = count(odd.n, "line repeats", "lines repeat")
        are = "is" if odd.n == 1 else "are"
        return f"{lines} the header inside the table and {are} left out, first {first}."
    what = {
        NO_NUMBER: "could not be read as a number",
        NO_DATE: "is not a date",
        FAR_DATE: "is far from all other dates",
        **dict.fromkeys((OUT_OF_ORDER, EXCHANGED, WRONG_YEAR), "is out of the order of the rows"),
        DECLARED: "is treated as missing, as requested",
    }.get(odd.kind, "is not a state")
    if odd.kind == NO_DATE and odd.n_mended:
        what = "is not a date, or out of the order of the rows"
    verb = what if odd.n == 1 else what.replace("is ", "are ", 1)
    such = ""
    if odd.examples and not result.rows_hidden:
        values = [f"{as_text(v)!r} ({n:,})" for v, n in list(odd.examples.items())[:MOST_EXAMPLES]]
        such = f": {', '.join(values)}"
    start = f", first {first}" if first else ""
    said = f"{count(odd.n, 'value')} of {as_text(odd.column)} {verb}{such}{start}."
    if odd.n_mended:
        said += f" {_say_mended(odd)}"
    elif _is_exchanged(odd):
        said += (
            " Day and month appear to be exchanged; where the day is at most 12, that cannot be "
            "seen."
        )
    if not parts:
        return said
    every = "All" if n_there >= odd.n else f"{n_there:,}"
    return f"{said}{saying.having(parts, f' {every} of them').replace('mostly ', '')}"


def _say_mended(odd: OddValues) -> str:
    """Return which mistake puts dates back into the order of the rows."""
    n = f"{odd.n_mended:,} of them {'is' if odd.n_mended == 1 else 'are'}"
    if odd.kind == WRONG_YEAR:
        return f"The year appears to be wrong: with the year before or after, {n} in order."
    return f"Day and month appear to be exchanged: put back, {n} in order."


def find_far(result: FitResult) -> Iterator[Finding]:
    """Yield the columns in which some numbers lie far outside the rest."""
    sample = result.aside.clues.numbers
    for node, values in sample.values.items():
        is_there = np.flatnonzero(np.isfinite(values))
        order = is_there[np.argsort(values[is_there], kind="stable")]
        ends = find_rest(values[order])
        if ends == (0, len(order)) or result.rows_hidden:
            continue
        missing, measured = judge_repeated(result, node)
        low, high = _leave_measured(values[order], ends, measured)
        is_measured = (low, high) == (0, len(order))
        low, high = ends if is_measured else (low, high)
        far = np.concatenate([order[:low], order[high:]])
        is_sure = is_apart(values[order], low, high) and not is_measured
        is_sure |= bool(np.isin(values[far], missing).any())
        rest = values[order[low:high]]
        n = round(len(far) * result.reading.n_included / len(sample.rows))
        shown, times = np.unique(values[far], return_counts=True)
        common = shown[np.argsort(-times, kind="stable")][:MOST_EXAMPLES]
        rows = np.sort(sample.rows[far])
        parts = saying.find_parts(result, rows)
        values_shown = ", ".join(f"{value:g}" for value in common)
        first = saying.say_span(result, int(rows[0]), int(rows[0]))
        codes = [int(value) for value in shown if is_code(value)]
        cause, like = ("far values", LIKE_NEAR) if is_measured else _explain_far(values[order])
        seen = dict(zip(*(each.tolist() for each in (shown, times)), strict=True))
        owner = "" if like else find_owner(result, node, seen, rows, (rest[0], rest[-1]))
        yield Finding(
            Kind.WRONG_CELLS,
            WARNING if is_sure else NOTE,
            f"{count(n, 'value')} of {as_text(node)} {'is' if n == 1 else 'are'} far outside the "
            f"range of the others ({rest[0]:g} to {rest[-1]:g}): {values_shown}, first "
            f"{first}{like}.{saying.having(parts, ' They')}{say_owner(owner) if owner else ''}",
            0.8 if is_sure else 0.3,
            (node,),
            saying.where_of(parts),
            n,
            n,
            cause=FROM_OTHER if owner else cause,
            advice=_nothing_to_do(result)
            if is_measured
            else mend(result, node, rows, [] if owner or cause == SIGN else codes),
            rows=tuple(rows[: saying.MOST_NUMBERED].tolist()),
        )


def _leave_measured(
    numbers: NDArray[np.float64], ends: tuple[int, int], measured: Sequence[float]
) -> tuple[int, int]:
    """Return where the rest of numbers starts and ends, if what is far on a side was measured."""
    low, high = ends
    low = 0 if np.isin(numbers[:low], measured).any() else low
    return low, len(numbers) if np.isin(numbers[high:], measured).any() else high


def judge_repeated(result: FitResult, node: str) -> tuple[list[float], list[float]]:
    """Return the numbers of a node that stand for missing ones by their rows, and measured ones."""
    k = result.network.nodes.index(node)
    told = [each for each in result.deeper.repeated if each.node == k]
    missing, measured = (
        [each.value for each in told if each.is_missing == is_missing]
        for is_missing in (True, False)
    )
    return missing, measured


def find_scaled(result: FitResult) -> Iterator[Finding]:
    """Yield the columns whose numbers seem to be scaled in some rows, unless that is told already.

    It is if they are far from the others, or those of one place.
    """
    if not result.deeper.scaled:
        return
    told = {
        result.network.nodes[node]
        for place in result.deeper.differences
        for node, cause, _ in place.causes
        if cause == UNIT
    }
    told |= {each.columns[0] for each in find_far(result) if each.cause in (POINT, UNIT, SIGN)}
    for each in result.deeper.scaled:
        [node] = (result.network.nodes[node] for node in each.nodes)
        if node in told or result.judged is None:
            continue
        n = max(round(each.share * result.n_rows), 1)
        rows, examples = saying.name_surest(result, each.chances)
        parts = saying.say_parts(result, each.parts)
        there = saying.choose_rows(parts) if parts else f"table.index[{rows}]"
        cause, how, back = _undo(each.scale, f"table.loc[{there}, {node!r}]")
        if not each.parts and len(rows) <= saying.MOST_EXAMPLES < n:
            back += f"  # for example: of about {n:,} rows, the surest"
        if each.parts:
            said = f"{saying.having(parts, 'Where ')}, the values of {as_text(node)} {how}."
        else:
            parts = saying.find_parts(result, result.judged.drawn[each.chances > 1 / 2])
            said = f"About {count(n, 'value')} of {as_text(node)} ({percent(each.share)}) {how}"
            said += f"{examples}.{saying.having(parts, ' They')}"
        yield Finding(
            Kind.COLUMN_DIFFERS if each.parts else Kind.WRONG_CELLS,
            WARNING,
            said,
            LIKELY,
            (node,),
            saying.where_of(parts),
            n,
            n,
            each.gain,
            cause=cause,
            advice=Remedy(
                f"Compare {as_text(node)} in these rows with its source.",
                saying.exclude_command(result, parts if each.parts else ()),
                back,
            ),
            rows=tuple(rows),
        )


def _undo(scale: Scale, numbers: str) -> tuple[str, str, str]:
    """Return the cause of scaled numbers, what it means in words, and Python that puts them back.

    numbers : that are put back, in Python.
    """
    fit = "they fit the rest of their rows"
    if scale.name == SIGN:
        return SIGN, f"seem to have a wrong sign: without it, {fit}", f"{numbers} *= -1"
    is_less = abs(scale.factor) < 1
    factor = 1 / scale.factor if is_less else scale.factor
    sign, how = ("*", "multiplied") if is_less else ("/", "divided")
    way, back = f"{how} by {factor:g}", f"{numbers} {sign}= {factor:g}"
    if scale.centre:
        way, back = "converted", f"{numbers} = ({numbers} + 40) {sign} {factor:g} - 40"
    if scale.name == POINT:
        return POINT, f"seem to have a decimal point in the wrong place: {way}, {fit}", back
    return UNIT, f"seem to be in another unit ({scale.name}): {way}, {fit}", back


def _explain_far(numbers: NDArray[np.float64]) -> tuple[str, str]:
    """Return what makes numbers far from the rest, and how they are like it then; "" if not.

    numbers : of the column, increasing.
    """
    act = find_act(numbers)
    if act is None:
        return "far values", ""
    if act.factor < 0:
        return SIGN, "; without the minus sign, the negative ones are distributed like them"
    is_less = act.factor < 1
    factor = round(1 / act.factor if is_less else act.factor)
    how = f"{'multiplied' if is_less else 'divided'} by {factor:,}"
    cause = POINT if factor in POWERS else UNIT
    return cause, f"; {how}, they are distributed like them"


def find_filled(result: FitResult) -> Iterator[Finding]:
    """Yield the columns of numbers in which missing ones were filled in with the mean."""
    sample = result.aside.clues.numbers
    if result.rows_hidden:
        return
    share = len(sample.rows) / max(result.reading.n_included, 1)
    for node, values in sample.values.items():
        fill = find_fill(values[np.isfinite(values)], share)
        if fill is None:
            continue
        rows = sample.rows[values == fill]
        parts, n = saying.find_parts(result, rows), round(len(rows) / share)
        yield Finding(
            Kind.WRONG_CELLS,
            WARNING,
            f"{count(n, 'value')} of {as_text(node)} are {fill:.10g}, about the others' mean: "
            f"missing values may have been filled in.{saying.having(parts, ' They')}",
            0.9,
            (node,),
            saying.where_of(parts),
            n,
            n,
            cause="filled in",
            advice=mend(result, node, rows, [fill]),
            rows=tuple(rows[: saying.MOST_NUMBERED].tolist()),
        )


def find_odd_labels(result: FitResult) -> Iterator[Finding]:
    """Yield the columns with labels that look broken, cut off, mistyped or in another case."""
    judged, network = result.judged, result.network
    if judged is None or result.rows_hidden:
        return
    counted = {
        node: _count_labels(network.states[node], judged.drawn_codes[:, k])
        for k, node in enumerate(network.nodes)
    }
    for k, node in enumerate(network.nodes):
        states = network.states[node]
        if not all(isinstance(state, str) for state in states):
            continue
        labels = counted[node]
        others = [each for other, each in counted.items() if other != node]
        guesses = {
            label: guess
            for label, n in labels.items()
            if (guess := _guess(label, n, labels))[1]
            and not (guess[1] in FITTED and _belongs_elsewhere(label, n, others))
        }
        found: dict[str, dict[str, str]] = {}
        for label, (taken_for, how) in guesses.items():
            while taken_for in guesses:  # to which the advice maps other labels, too
                taken_for = guesses[taken_for][0]
            found.setdefault(how, {})[label] = taken_for
        for how, guessed in found.items():
            codes = [c for c, state in enumerate(states) if str(state).strip() in guessed]
            rows = judged.drawn[np.isin(judged.drawn_codes[:, k], codes)]
            yield _tell_labels(result, node, how, {g: labels[g] for g in guessed}, guessed, rows)


def _count_labels(states: Sequence[object], shown: NDArray[Any]) -> dict[str, int]:
    """Return how many of some rows have each label; shown: the state of each row."""
    seen = np.bincount(shown, minlength=len(states) + 1)[: len(states)]
    return {str(s).strip(): int(n) for s, n in zip(states, seen, strict=True) if n}


def _belongs_elsewhere(label: str, n: int, others: Sequence[dict[str, int]]) -> bool:
    """Whether a label is one of another column, out of which it slipped."""
    return any(each.get(label, 0) >= OWNED * n for each in others)


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
    n = sum(seen.values()) * result.n_rows / n_drawn
    many = f"({count(n, 'row')}, {percent(sum(seen.values()) / n_drawn)})"
    parts = saying.find_parts(result, rows)
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
        advice=_relabel(result, node, {label: taken_for[label] for label in shown}),
        rows=tuple(np.sort(rows)[: saying.MOST_NUMBERED].tolist()),
    )


def _relabel(result: FitResult, node: str, taken_for: dict[str, str]) -> Remedy:
    """Return how to map labels to others; of many labels in a text file, how to repair it."""
    fit = saying.base_command(result.command)
    words = shlex.split(fit)
    python = f"robustbn.fit(network, table, labels={{{node!r}: {taken_for!r}}})"
    if (
        len(taken_for) > MOST_MAPPED
        and len(words) > 3
        and words[3].lower().endswith(saying.TEXT_FILES)
    ):
        repair = shlex.join(["robustbn", "repair", *words[2:4], "-o", "repaired.csv"])
        why = "If so, correct them by the rest of their rows, and look through the changes."
        return Remedy(why, f"{repair} --changes changes.csv", python)
    pairs = ",".join(f"{label}={other or 'STATE'}" for label, other in taken_for.items())
    command = f"{fit} --labels {shlex.quote(f'{node}:{pairs}')}"
    return Remedy("If so, map each to the correct label.", command, python)


def _guess(label: str, n: int, labels: dict[str, int]) -> tuple[str, str]:
    """Return which label another may stand for, and what happened to it; empty if nothing."""
    if LOST in label:
        pattern = re.compile(re.escape(label).replace(LOST, f"[^{LOST}]"))
        fitting = [other for other in labels if pattern.fullmatch(other)]
        return fitting[0] if len(fitting) == 1 else "", BROKEN
    right = _decode_again(label)
    if right != label or _BROKEN.search(label):
        return right if right != label else "", BROKEN
    # Of labels that are as frequent, the first one is taken for the right one.
    others = {other: k for other, k in labels.items() if (k, label) > (n, other)}
    alike = [other for other in others if other.casefold() == label.casefold()]
    if alike:  # the most frequent one, for all of them
        return min(alike, key=lambda other: (-others[other], other)), "written in another case"
    digits = _NO_DIGIT.sub("", label)  # 'grade 2' is no mistyped 'grade 1'
    frequent = [
        other
        for other in sorted(others, key=lambda other: -others[other])[:MOST_COMPARED]
        if others[other] >= MUCH_RARER * n and _NO_DIGIT.sub("", other) == digits
    ]
    for other in frequent:
        goes_on = other[len(label) : len(label) + 1]
        if len(label) >= SHORTEST_CUT and other.startswith(label) and goes_on.isalpha():
            return other, FITTED[0]
    import difflib  # seldom needed

    near = difflib.get_close_matches(label, frequent, 1, ALIKE)
    return (near[0], FITTED[1]) if near and len(label) > SHORTEST_CUT else ("", "")


def _decode_again(label: str) -> str:
    """Return a label whose UTF-8 was read as Windows-1252 or Latin-1 as it was; others as they are.

    >>> _decode_again("\u00c3\u2030cole"), _decode_again("fin")
    ('\u00c9cole', 'fin')
    """
    try:
        again = b"".join(map(_as_bytes, label)).decode("utf-8")
    except UnicodeError:
        return label
    return again if again == label else _decode_again(again)  # some were read so twice


def _as_bytes(letter: str) -> bytes:
    try:
        return letter.encode("cp1252")
    except UnicodeEncodeError:
        return letter.encode("latin-1")
