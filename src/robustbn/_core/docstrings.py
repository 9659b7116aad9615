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
        if call.__doc__ is None:  # Python was started without docstrings
            return call
        known: dict[str, str] = {}
        for each in (*others, call):
            before, _, rest = inspect.cleandoc(each.__doc__ or "").partition(HEADING)
            own, blank, after = rest.partition("\n\n")
            known |= {entry.partition(" : ")[0]: entry for entry in re.split(r"\n(?=\S)", own)}
        lines = [known[name] for name in inspect.signature(call).parameters if name in known]
        call.__doc__ = before + HEADING + "\n".join(lines) + blank + after
        return call

    return explain
