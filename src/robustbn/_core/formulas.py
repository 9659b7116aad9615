"""Cells of text files that a spreadsheet would run, and how they are written instead.

Such a cell gets a `'` before it, also one that begins with `'` already, so that reading, which
takes one away, gives back what was written. Plain numbers, such as -5, are no formulas.
"""

from __future__ import annotations

import re

FORMULA = r"^'*(?:[=+@-].|[\x00-\x1f])"
PLAIN_NUMBER = r"^[+-](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_FORMULA = re.compile(FORMULA, re.DOTALL)
_NUMBER = re.compile(PLAIN_NUMBER)


def guard_cell(text: str) -> str:
    """Return a cell as it is written.

    >>> guard_cell("=1+1"), guard_cell("-5"), guard_cell("'@x"), guard_cell("it's")
    ("'=1+1", '-5', "''@x", "it's")
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguard_cell(text: str) -> str:
    """Return what a cell was before it was guarded.

    >>> unguard_cell("'=1+1"), unguard_cell("''@x"), unguard_cell("'tis")
    ('=1+1', "'@x", "'tis")
    """
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text
