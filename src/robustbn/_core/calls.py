"""Answers to calls with wrong arguments: misspelt names, missing ones, values of another kind."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from robustbn._core.file_names import nearest_name
from robustbn._core.layout import Layout
from robustbn._core.numbers import count
from robustbn.exceptions import UnknownSettingError

Call = TypeVar("Call", bound=Callable[..., Any])


def say_unknown(owner: str, name: str, known: Sequence[str]) -> str:
    """Return that there is no such setting, the nearest one, and all settings."""
    near = nearest_name(name, known)
    return f"{owner} has no setting {name!r}.{near} Its settings: {', '.join(known)}."


def naming_the_nearest(call: Call) -> Call:
    """Make a call name the nearest setting for a misspelt one, and each argument that it needs."""
    parameters = inspect.signature(call).parameters
    known = [name for name in parameters if name not in ("self", "cls")]
    required = [n for n in known if parameters[n].default is inspect.Parameter.empty]
    placeable = [n for n in known if parameters[n].kind is not inspect.Parameter.KEYWORD_ONLY]
    n_before = len(parameters) - len(known)
    owner = call.__qualname__
    owner = owner.removesuffix(".__init__") if owner.endswith(".__init__") else f"{owner}()"

    @wraps(call)
    def calling(*values: Any, **settings: Any) -> Any:
        for name in settings:
            if name not in known:
                raise UnknownSettingError(say_unknown(owner, name, known))
        n_placed = max(len(values) - n_before, 0)
        if n_placed > len(placeable):
            way = f"{owner.removesuffix('()')}({', '.join(placeable)})"
            raise UnknownSettingError(
                f"{owner} takes at most {count(len(placeable), 'argument')} by position, as in "
                f"{way}; found {n_placed}. Give the others by name."
            )
        placed = placeable[:n_placed]
        for name in required:
            if name not in placed and name not in settings:
                way = f"{owner.removesuffix('()')}({', '.join(required)})"
                raise UnknownSettingError(f"{owner} needs {name}: call {way}.")
        return call(*values, **settings)

    return cast("Call", calling)


def is_network(value: object) -> bool:
    """Whether a value is a `BayesianNetwork`, which this room cannot import."""
    return isinstance(getattr(value, "layout", None), Layout)


def require_network(value: object, way: str, other: object = None) -> None:
    """Refuse what is no network, with what to do."""
    if is_network(value):
        return
    hint = ""
    if is_network(other):
        hint = f" The arguments are swapped: call {way}."
    elif is_network(getattr(value, "network_", None)):
        hint = " Give the network_ of the fitted estimator."
    elif isinstance(value, str | os.PathLike):
        hint = " Read the file with read_network(path)."
    elif isinstance(value, Mapping | Sequence):
        hint = " For a list of edges, use BayesianNetwork.from_edges(edges, states)."
    found = type(value).__name__
    raise UnknownSettingError(f"{way} needs a BayesianNetwork; found {found}.{hint}")


def require_path(value: object, way: str) -> None:
    """Refuse what is not the path of a file."""
    if not isinstance(value, str | os.PathLike):
        found = type(value).__name__
        raise UnknownSettingError(f"{way} needs the path of a file; found {found}.")
