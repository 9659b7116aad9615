"""A parameter that several public calls share is described once: `help()` shows it at each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Call = TypeVar("Call", bound=Callable[..., Any])
HEADING = "\nParameters\n----------\n"
OTHER_SECTION = re.compile(r"\n\w+\n---+\n")


def explained_by(*others: Callable[..., Any]) -> Callable[[Call], Call]:
    """Complete the parameters of a docstring by those of other calls, in the signature's order.

    Without parameters of its own, a docstring gets the section before its first other one.
    """

    def explain(call: Call) -> Call:
        if call.__doc__ is None:  # Python was started without docstrings
            return call
        known: dict[str, str] = {}
        for each in (*others, call):
            text = inspect.cleandoc(each.__doc__ or "")
            before, heading, rest = text.partition(HEADING)
            own, _, after = rest.partition("\n\n")
            entries = re.split(r"\n(?=\S)", own)
            known |= {entry.partition(" : ")[0].lstrip("*"): entry for entry in entries}
            if not heading:
                found = OTHER_SECTION.search(text)
                at = len(text) if found is None else found.start()
                before, after = text[:at].rstrip("\n") + "\n", text[at:].lstrip("\n")
        lines = [known[name] for name in inspect.signature(call).parameters if name in known]
        call.__doc__ = before + HEADING + "\n".join(lines) + ("\n\n" + after if after else "")
        return call

    return explain
