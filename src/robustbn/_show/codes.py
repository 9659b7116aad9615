"""Findings about numbers that stand for missing values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.far import find_coded, find_rest, is_code
from robustbn._core.findings import WARNING, Finding, Kind
from robustbn._core.numbers import count
from robustbn._show import saying
from robustbn._show.odd_values import judge_repeated, mend
from robustbn._show.result import FitResult
from robustbn._show.words import as_text

LIKE_ALL = "the rest of these rows is like that of all rows, not of rows with the nearest values"
LEAST_CODE = 7  # a number that stands for a missing value among few others: -9, 99, but not 0
LEAST_WORDS = 2  # states that are words: a number is none of them
LEAST_NUMBERS = 40  # of fewer, nothing is a code


def find_codes(result: FitResult) -> Iterator[Finding]:
    """Yield the columns in which a number stands for a missing one, unless it is far from the rest.

    It is what people write so, among few values or among words, or the rest of its rows says so.
    """
    judged = result.judged
    if judged is None or result.rows_hidden:
        return
    n_drawn, sample = len(judged.drawn), result.aside.clues.numbers
    for k, node in enumerate(result.network.nodes):
        codes: list[object] = []
        if node in sample.values:
            values, of = sample.values[node], result.reading.n_included / max(len(sample.rows), 1)
            inside = _judge_inside(result, node, values)
            rows, told = sample.rows[np.isin(values, inside)], len(inside)
            codes += [int(value) if value.is_integer() else value for value in inside]
        else:
            states, of = result.network.states[node], result.n_rows / max(n_drawn, 1)
            found, told = _find_coded_states(result, node, judged.drawn_codes[:, k])
            rows = judged.drawn[np.isin(judged.drawn_codes[:, k], found)]
            codes += [states[code] for code in found]
        if not len(rows):
            continue
        parts = saying.find_parts(result, rows)
        n = round(len(rows) * of)
        shown, first = map(as_text, codes), int(rows[0])
        why = f": {LIKE_ALL}" if told else ""
        yield Finding(
            Kind.WRONG_CELLS,
            WARNING,
            f"{count(n, 'value')} of {as_text(node)} {'is' if n == 1 else 'are'} "
            f"{' or '.join(shown)}, which people write for a missing value, first "
            f"{saying.say_span(result, first, first)}{why}.{saying.having(parts, ' They')}",
            0.8,
            (node,),
            saying.where_of(parts),
            n,
            n,
            cause="code for missing",
            advice=mend(result, node, rows, codes),
            rows=tuple(rows[: saying.MOST_NUMBERED].tolist()),
        )


def _judge_inside(result: FitResult, node: str, values: NDArray[np.float64]) -> list[float]:
    """Return the numbers of a node that stand for missing ones by their rows and are not far."""
    missing, _ = judge_repeated(result, node)
    if not missing:
        return []
    numbers = np.sort(values[np.isfinite(values)])
    low, high = find_rest(numbers)
    return [value for value in missing if numbers[low] <= value <= numbers[high - 1]]


def _find_coded_states(result: FitResult, node: str, shown: NDArray[Any]) -> tuple[list[int], bool]:
    """Return the states that stand for a missing value, and whether the rest of the rows says so.

    shown : the state of each row.
    """
    states = result.network.states[node]
    missing, measured = judge_repeated(result, node)
    numbers = [read_number(str(state)) for state in states]
    told = {k for k, number in enumerate(numbers) if number in missing}
    kept = {k for k in _find_codes(states, shown) if numbers[k] not in measured}
    return sorted(told | kept), bool(told)


def _find_codes(states: Sequence[object], shown: NDArray[Any]) -> list[int]:
    """Return the states that stand for a missing value: at an end of numbers, or among words.

    Small numbers, such as 0 and -1, are ordinary ones where there are few.

    shown : the state of each row.
    """
    numbers = np.array([read_number(str(state)) for state in states])
    is_code_here = np.array([is_code(value) and abs(value) >= LEAST_CODE for value in numbers])
    if np.isnan(numbers).sum() >= LEAST_WORDS:
        are_alone = bool(is_code_here.any()) and not (np.isfinite(numbers) & ~is_code_here).any()
        return np.flatnonzero(is_code_here).tolist() if are_alone else []
    values = np.sort(numbers[shown[shown < len(states)]])
    if np.isnan(numbers).any() or len(values) < LEAST_NUMBERS:
        return []
    low, high = find_coded(values)
    is_inside = (numbers >= values[low]) & (numbers <= values[high - 1])
    return np.flatnonzero(is_code_here & ~is_inside).tolist()


def read_number(text: str) -> float:
    """Return the number that a text is; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
