"""Numbers as people read them: a noun in the right number, no exponents."""

from __future__ import annotations


def count(n: float, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: `1 row`, `1,200 rows`."""
    text = f"{n:,.0f}"
    return f"{text} {noun}" if text == "1" else f"{text} {nouns or noun + 's'}"


def count_are(n: float, noun: str) -> str:
    """Return a number with its noun and verb: `1 row is`, `1,200 rows are`."""
    text = count(n, noun)
    return f"{text} is" if text == f"1 {noun}" else f"{text} are"


def count_have(n: float, noun: str) -> str:
    """Return a number with its noun and verb: `1 column has`, `1,200 columns have`."""
    text = count(n, noun)
    return f"{text} has" if text == f"1 {noun}" else f"{text} have"


def rounded(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, or all those before the point: `0.12`, `1,030`."""
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
