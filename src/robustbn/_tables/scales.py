"""The natural order of labels: numbers, scales of words, time, then the alphabet."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from robustbn._tables.encode.dates import year_first

# One scale a line, lowest first; `/` between words of the same rank, which may not meet.
_SCALES = """
false, true
no, maybe/possibly/perhaps, yes
n, y
absent, present
off, on
none/zero/no/absent, very low, low, below average, low normal/medium low, medium/moderate/normal/\
average/avg/mid/middle, medium high/high normal, above average, high, very high, extreme
lowest, very low, lower, low, medium/middle/average, high, higher, very high, highest
none/no/absent, trace/minimal/slight, mild, moderate, severe, very severe, critical
never, almost never, rarely/seldom, occasionally, sometimes, often/frequently, usually, \
almost always, always
none, a little/little/few, some, many/much/a lot, most, all
strongly disagree, disagree, somewhat disagree, neutral/undecided/neither/neither agree nor \
disagree, somewhat agree, agree, strongly agree
very dissatisfied, dissatisfied, neutral, satisfied, very satisfied
very unlikely, unlikely, neutral, likely, very likely
not at all happy, not too happy, pretty happy, very happy
very bad, bad, poor, fair/average/ok, good, very good, excellent
very poor, poor, fair/average, good, very good, excellent
xxs, xs, s, m, l, xl, xxl, xxxl
tiny/very small, small, medium/moderate, large/big, very large/huge/extra large
young, middle/middle aged/adult, old/senior/elderly
newborn, infant, child, adolescent/teen/teenager, adult, senior/elderly
cold, cool, mild, warm, hot
weak, medium/moderate, strong, very strong
light, medium/moderate, heavy, very heavy
slow, medium/moderate, fast
short, medium, long/tall
early, middle/mid, late
thin, medium, thick
decreasing/falling/down/worse, stable/steady/same/unchanged, increasing/rising/up/better
negative, neutral, positive
first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth
bronze, silver, gold, platinum
mon/monday, tue/tues/tuesday, wed/wednesday, thu/thur/thurs/thursday, fri/friday, sat/saturday, \
sun/sunday
jan/january, feb/february, mar/march, apr/april, may, jun/june, jul/july, aug/august, \
sep/sept/september, oct/october, nov/november, dec/december
"""
WORD_SCALES: tuple[dict[str, int], ...] = tuple(
    {word.strip(): rank for rank, words in enumerate(line.split(",")) for word in words.split("/")}
    for line in _SCALES.strip().splitlines()
)
_FIRST = re.compile(r"(lt|less than|under|below|up to)\b", re.IGNORECASE)
_LAST = re.compile(r"(gt|more than|over|above)\b|.*\bor (more|over)$", re.IGNORECASE)
_PIECES = re.compile(r"([0-9]{1,15})")


def order_labels(labels: Iterable[Hashable]) -> list[Any]:
    """Return labels in their natural order.

    Numbers as numbers; words of one scale (low, medium, high; weekdays; months; ...) by that scale,
    in any case; months and quarters of years by time; other text by the alphabet, which need not be
    the order that its words mean, with the numbers in it as numbers, `<5` first and `>5` last.
    Numbers come before text.

    >>> order_labels(["high", "low", "medium"]), order_labels(["b10", "b9", "> 2", "< 2"])
    (['low', 'medium', 'high'], ['< 2', 'b9', 'b10', '> 2'])
    """
    listed = list(labels)
    ranks = find_scale([label for label in listed if isinstance(label, str)])
    if ranks is not None:
        return sorted(listed, key=lambda label: _rank(label, ranks))
    return sorted(listed, key=_natural)


def find_scale(words: Sequence[str]) -> dict[str, int] | None:
    """Return the rank of each word on a scale that has them all, no two at the same rank."""
    folded = [_fold(word) for word in words]
    if len(folded) < 2:
        return None
    for scale in WORD_SCALES:
        ranks = {scale[word] for word in folded if word in scale}
        if len(ranks) == len(folded):
            return {word: scale[name] for word, name in zip(words, folded, strict=True)}
    return None


def _fold(word: str) -> str:
    return re.sub(r"[\s_-]+", " ", word).strip().casefold()


def _rank(label: Hashable, ranks: dict[str, int]) -> tuple[Any, ...]:
    return (1, ranks[label]) if isinstance(label, str) else _natural(label)


def _natural(label: Any) -> tuple[Any, ...]:
    if isinstance(label, bool | int | float):
        return 0, float(label), ""
    text = str(label).strip()
    has_number = _PIECES.search(text) is not None  # "less than 5", but not "less than high school"
    is_first = text[:1] in ("<", "\u2264") or (has_number and _FIRST.match(text))
    is_last = text[:1] in (">", "\u2265") or (has_number and _LAST.match(text))
    end = 0 if is_first else 2 if is_last else 1
    pieces = [
        (0, int(piece), "") if piece[0] in "0123456789" else (1, 0, piece.casefold())
        for piece in _PIECES.split(year_first(text))
        if piece
    ]
    return 1, end, pieces, text
