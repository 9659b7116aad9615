"""Bridges to other libraries, in memory: one file a library, each with `to_x` and `from_x`.

Every bridge carries nodes, parents in order, states in order and tables. What a library cannot hold
is refused with a reason; nothing is renamed without a word. Libraries are imported when a bridge is
crossed, so this package costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from typing import Any

from robustbn.exceptions import MissingDependencyError, NetworkError

States = Mapping[str, Sequence[Hashable]]


def import_library(caller: str, extra: str, *modules: str) -> Any:
    """Return the first of some modules, once all are imported; or say what is to be installed."""
    try:
        first, *_ = [import_module(module) for module in modules]
    except ImportError as error:
        raise MissingDependencyError(
            f"{caller}() needs {extra}: pip install 'robustbn[{extra}]'"
        ) from error
    return first


def complete_states(known: States, given: States | None, nodes: Sequence[str], what: str) -> States:
    """Return the states of all nodes: those that are given, else those that are known.

    Parameters
    ----------
    what : what the nodes are of, for messages.
    """
    given = given or {}
    unknown = [node for node in given if node not in nodes]
    if unknown:
        raise NetworkError(f"`states` names {unknown[0]!r}, which is not a node of the {what}.")
    missing = [node for node in nodes if node not in known and node not in given]
    if missing:
        raise NetworkError(
            f"{len(missing)} of {len(nodes)} nodes of the {what} have no states; the first is "
            f"{missing[0]!r}. Give states={{node: [labels], ...}}."
        )
    return {**known, **given}
