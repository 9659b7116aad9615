"""A parameter that several public calls share is described once: `help()` shows it at each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Call = TypeVar("Call", bound=Callable[..., Any])
HEADING = "\nParameters\n----------\n"


def explained_by(*others: Callable[..., Any]) -> Callable[[Call], Call]:
    """Complete the parameters of a docstring by those of other calls, in the signature's order."""

    def explain(call: Call) -> Call:
        text = inspect.getdoc(call)
        if text is None:  # Python was started without docstrings
            return call
        before, _, rest = text.partition(HEADING)
        own, blank, after = rest.partition("\n\n")
        known: dict[str, str] = {}
        for said in (*(_described(inspect.getdoc(other) or "") for other in others), own):
            known |= _entries(said)
        lines = [known[name] for name in inspect.signature(call).parameters if name in known]
        call.__doc__ = before + HEADING + "\n".join(lines) + blank + after
        return call

    return explain


def _described(text: str) -> str:
    """Return the lines of a docstring that describe its parameters."""
    return text.partition(HEADING)[2].partition("\n\n")[0]


def _entries(described: str) -> dict[str, str]:
    """Return the lines of each parameter, by its name."""
    return {each.partition(" : ")[0]: each for each in re.split(r"\n(?=\S)", described) if each}
