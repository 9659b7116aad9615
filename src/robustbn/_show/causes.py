"""What may have made a kind of bad rows, in the words of the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robustbn._core.kinds import Cause
from robustbn.network import BayesianNetwork

MOST_IN_SENTENCE = 6  # columns, or what happened to them, in a sentence
MOST_TABLES_NAMED = 5  # of another population


def tell_cause(
    network: BayesianNetwork,
    name: str,
    columns: Sequence[int],
    explained: float,
    details: dict[str, Any],
) -> Cause:
    """Return a cause in words.

    Parameters
    ----------
    name, columns, explained, details : as it was found.
    """
    nodes = tuple(network.nodes[c] for c in columns)
    return Cause(name, nodes, round(explained, 3), _WORDS[name](network, columns, details))


def _list(items: Sequence[str], most: int = MOST_IN_SENTENCE) -> str:
    """Return "A, B and C", or "A, B and 12 more"."""
    if len(items) > most:
        return f"{', '.join(items[: most - 1])} and {len(items) - most + 1} more"
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _names(network: BayesianNetwork, columns: Sequence[int]) -> str:
    return _list([network.nodes[c] for c in columns])


def _state(network: BayesianNetwork, column: int, state: int) -> str:
    states = network.states[network.nodes[column]]
    return f"{states[state]}" if state < len(states) else "missing"


def _tell_join(network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]) -> str:
    if details["is_all_apart"]:
        return (
            "Each column looks right by itself and none fits another, as if every column came "
            "from another row: shuffled, or sorted alone."
        )
    if details["n_parts"] == 2:
        return (
            f"{_names(network, columns)} fit one another but not the rest of their row, as if "
            "they had been joined from another row."
        )
    return (
        f"The columns fall into {details['n_parts']} groups that fit in themselves but not one "
        f"another, as if joined from different rows: {_names(network, columns)} against the rest."
    )


def _tell_stuck(network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]) -> str:
    stuck = [f"{network.nodes[c]} at {_state(network, c, details['states'][c])}" for c in columns]
    return f"Stuck whatever the rest of the row says: {_list(stuck)}."


def _tell_defaults(
    network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]
) -> str:
    order = sorted(columns, key=lambda c: -details["shares"][c])
    filled = [
        f"{network.nodes[c]} = {_state(network, c, details['states'][c])} "
        f"({details['shares'][c]:.0%})"
        for c in order
    ]
    return (
        f"A value is filled in, in so many of the rows, instead of what was there: {_list(filled)}."
    )


def _tell_shift(network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]) -> str:
    first, last = network.nodes[min(columns)], network.nodes[max(columns)]
    way = "next" if details["step"] > 0 else "previous"
    return f"From {first} to {last} every value stands in the {way} column."


def _tell_swap(network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]) -> str:
    pairs = [
        f"{network.nodes[c]} with {network.nodes[source]}"
        for c, source in sorted(details["sources"].items())
        if c < source
    ]
    return f"The values of columns are swapped: {_list(pairs)}."


def _tell_labels(network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]) -> str:
    renamed = []
    for c in columns:
        names = details["names"][c]
        changed = [
            f"{_state(network, c, seen)} for {_state(network, c, meant)}"
            for seen, meant in enumerate(names)
            if seen != meant
        ]
        renamed.append(f"{network.nodes[c]} ({_list(changed, 3)})")
    return f"One label is written for another: {_list(renamed, 4)}."


def _tell_noise(network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]) -> str:
    if not details["is_uniform"]:
        return (
            "No column depends on another, and states have frequencies of their own: values "
            "without a row behind them."
        )
    if details["share"] < 1:
        return f"About {details['share']:.0%} of all cells are random: any state, equally often."
    if len(columns) == network.n_nodes:
        return "Every cell is random: any state, equally often, whatever the rest of the row says."
    return f"Random values, any state equally often, in {_names(network, columns)}."


def _tell_copies(network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]) -> str:
    if details["templates"] is None:
        return "Rows that appear again and again, far more often than they should."
    n, noise = len(details["templates"]), details["noise"]
    what = "one row" if n == 1 else f"{n} rows"
    text = f"Copies of {what}"
    return f"{text}, with {noise:.1%} of the cells changed." if noise >= 0.0005 else f"{text}."


def _tell_population(
    network: BayesianNetwork, columns: Sequence[int], details: dict[str, Any]
) -> str:
    return (
        f"Tables of their own in {len(columns)} of {network.n_nodes} columns, most in "
        f"{_list([network.nodes[c] for c in columns[:MOST_TABLES_NAMED]])}: another population, or "
        "another network."
    )


_WORDS = {
    "wrong join": _tell_join,
    "stuck columns": _tell_stuck,
    "defaults": _tell_defaults,
    "shifted columns": _tell_shift,
    "swapped columns": _tell_swap,
    "swapped labels": _tell_labels,
    "noise": _tell_noise,
    "copies": _tell_copies,
    "another population": _tell_population,
}
