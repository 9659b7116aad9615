"""Messages: the settings they name, told in Python's words or as options; and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OURS = ("robustbn", "contextlib", "functools")  # the latter two between our own functions


@dataclass(frozen=True, repr=False)
class Either:
    """Words that differ between Python and the command line; both may be empty."""

    python: str
    shell: str

    def __repr__(self) -> str:
        return self.python

    def __str__(self) -> str:
        return self.shell


@dataclass(frozen=True)
class Setting:
    """A setting in a message: `sep=';'` in Python, `--sep ';'` on the command line."""

    # name, value: as they are given in Python; `Either` stands for a value that is not known
    name: str
    value: Any
    key: str | None = None  # what the command line calls it, if it has another name there

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}"


Part = str | Setting | Either


class Advice:
    """A message that names settings. Its text is Python's; the command line has its own.

    Errors and warnings hold it as their only argument: `DataError(Advice("Use ", setting, "."))`.
    """

    def __init__(self, *parts: Part | Advice) -> None:
        inner = [p.parts if isinstance(p, Advice) else (p,) for p in parts]
        self.parts: tuple[Part, ...] = tuple(part for each in inner for part in each)

    def tell(self, say: Callable[[Setting], str]) -> str:
        """Return the message for the command line; `say` turns a setting into an option."""
        return "".join(say(p) if isinstance(p, Setting) else str(p) for p in self.parts)

    def __str__(self) -> str:
        return "".join(p.python if isinstance(p, Either) else str(p) for p in self.parts)


def warn(message: str | Advice, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and (
        frame.f_globals.get("__name__", "").partition(".")[0] in OURS
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(category(message), stacklevel=level)
