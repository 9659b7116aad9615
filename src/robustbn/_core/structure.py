"""What a structure must be: known parents, distinct states, no cycle."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from robustbn._core.config import NodeReading
from robustbn._core.layout import MOST_CODES
from robustbn.exceptions import NetworkError

MAX_STATES = MOST_CODES


def check_parents(parents: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the parents of every node; refuse names that are none."""
    if not isinstance(parents, Mapping):
        raise NetworkError(
            f"`parents` must be a mapping {{node: [parents]}}; found {type(parents).__name__}. For "
            "a list of edges, use BayesianNetwork.from_edges(edges, states)."
        )
    checked: dict[str, tuple[str, ...]] = {}
    for node, names in parents.items():
        if not isinstance(node, str):
            raise NetworkError(
                f"Node names are strings; found {node!r} of type {type(node).__name__}."
            )
        checked[node] = as_names(node, names)
    if not checked:
        raise NetworkError("A network needs at least one node; `parents` is empty.")
    for node, names in checked.items():
        for p in names:
            if p not in checked:
                raise NetworkError(
                    f"Node {node!r} has the unknown parent {p!r}. Nodes: {some_of(checked)}."
                )
        if len(set(names)) != len(names):
            raise NetworkError(f"Node {node!r} lists a parent twice: {list(names)}.")
    return checked


def as_names(node: str, parents: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a node's parents; refuse a single name, whose letters they would be."""
    if isinstance(parents, str):
        raise NetworkError(
            f"Parents of node {node!r} must be a sequence of names; found the string "
            f"{parents!r}. Write [{parents!r}]."
        )
    return tuple(parents)


def check_edges(edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (parent, child) pairs; refuse what is none."""
    if isinstance(edges, Mapping) or not isinstance(edges, Iterable):
        raise NetworkError(
            "Edges are a list of pairs (parent, child), and come before the states; found "
            f"{type(edges).__name__}."
        )
    listed, pairs = list(edges), list[tuple[str, str]]()
    for edge in listed:
        try:
            parent, child = () if isinstance(edge, str) else edge
        except (TypeError, ValueError):
            is_one = len(listed) == 2 and all(isinstance(each, str) for each in listed)
            hint = f" Did you mean [{tuple(listed)!r}]?" if is_one else ""
            raise NetworkError(
                f"Edges are a list of pairs (parent, child); found {edge!r} in it.{hint}"
            ) from None
        pairs.append((parent, child))
    return pairs


def check_states(
    states: Mapping[str, Sequence[Hashable]], parents: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[Hashable, ...]]:
    """Return the states of every node; refuse too many, none, or one twice."""
    if not isinstance(states, Mapping):
        raise NetworkError(
            f"`states` must be a mapping {{node: [labels]}}; found {type(states).__name__}."
        )
    missing = [n for n in parents if n not in states]
    unknown = [n for n in states if n not in parents]
    if missing or unknown:
        raise NetworkError(
            f"`states` and `parents` must name the same nodes: without states {some_of(missing)}, "
            f"without parents {some_of(unknown)}."
        )
    checked: dict[str, tuple[Hashable, ...]] = {}
    for node in parents:
        labels = states[node]
        if isinstance(labels, str | int):
            raise NetworkError(
                f"States of node {node!r} must be a sequence of labels; found {labels!r}."
            )
        labels = tuple(labels)
        if not 1 <= len(labels) <= MAX_STATES:
            raise NetworkError(
                f"Node {node!r} has {len(labels):,} states; a node has 1 to {MAX_STATES:,}, "
                "because a code has two bytes at most."
            )
        seen: set[Hashable] = set()
        for label in labels:
            if label in seen:
                raise NetworkError(
                    f"Node {node!r} has the duplicate state {label!r}: {some_of(labels)}."
                )
            seen.add(label)
        checked[node] = labels
    return checked


def check_reading(
    reading: Mapping[str, NodeReading], states: Mapping[str, tuple[Hashable, ...]]
) -> dict[str, NodeReading]:
    """Return how columns are read; refuse what does not go with the states."""
    for node, how in reading.items():
        if node not in states:
            raise NetworkError(f"`reading` names {node!r}, which is not a node.")
        if how.others is not None and how.others not in states[node]:
            raise NetworkError(
                f"Other values of node {node!r} are mapped to {how.others!r}, which is not one of "
                f"its states. States: {some_of(states[node])}."
            )
        least = 0 if how.edges is None else len(how.edges) + 1
        if len(states[node]) < least:
            raise NetworkError(
                f"Node {node!r} is cut into {least} intervals but has {len(states[node])} states."
            )
    return dict(reading)


def sort_topologically(parents: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the nodes, parents before children; refuse a cycle, which is shown."""
    sorter = TopologicalSorter(dict.fromkeys(parents, ()))  # nodes stay in order where they may
    for node, names in parents.items():
        sorter.add(node, *names)
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        cycle = error.args[1]
        shown = cycle if len(cycle) <= 20 else [*cycle[:10], "...", *cycle[-3:]]
        raise NetworkError(f"The graph has a cycle: {' -> '.join(shown)}.") from None


def some(names: Sequence[object], limit: int = 8) -> str:
    """Return a few names, and how many more there are."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown + (f", ... ({len(names) - limit} more)" if len(names) > limit else "")


def some_of(names: Iterable[object]) -> str:
    """Return a few names as a list, and how many more there are."""
    return f"[{some(list(names))}]"
