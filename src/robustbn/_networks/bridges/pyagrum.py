"""The bridge to pyAgrum: `BayesNet`, whose names and labels are text."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._networks.bridges import States, import_library
from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork


def to_pyagrum(network: BayesianNetwork) -> Any:
    """Return a `pyagrum.BayesNet` of the network.

    Nodes, parents' order and double-precision tables are kept. Labels are text in pyAgrum: numbers
    and truth values become their text (`0` becomes "0"), and `from_pyagrum(bn, states=...)` brings
    them back. Refused: labels of other types, labels that become the same text, and text with a
    null character or half of a surrogate pair, which pyAgrum cuts or crashes on. A structure
    without tables gives tables of zeros, as pyAgrum itself does.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.75, 0.25]})
    >>> bn = to_pyagrum(coin)  # keep it: pyAgrum's tables do not outlive their BayesNet
    >>> bn.cpt("coin")[:]
    array([0.75, 0.25])
    """
    gum = _import_pyagrum("to_pyagrum")
    labels = {node: _labels_as_text(node, network.states[node]) for node in network.nodes}
    for node in network.nodes:
        _check_text(node, f"Node name {node!r}")
    bn = gum.BayesNet()
    ids = {n: bn.add(gum.LabelizedVariable(n, n, list(labels[n]))) for n in network.nodes}
    for parent, child in network.edges:
        bn.addArc(ids[parent], ids[child])
    if network.has_cpts:
        for node, table in network.cpts.items():
            bn.cpt(ids[node])[:] = np.ascontiguousarray(_swap_parents(table))
    return bn


def from_pyagrum(bn: Any, states: States | None = None) -> BayesianNetwork:
    """Return the network of a `pyagrum.BayesNet`.

    The order of nodes is that of their ids, the order of parents that in which their arcs were
    added (`bn.cpt(node).names` without the first). Labels are the text that pyAgrum shows, for
    ranges and intervals too. If every table is all zeros, the network is a structure without
    tables. Titles and other properties are not carried.

    Parameters
    ----------
    states : labels to use in place of the text, for the nodes it names: as many as the node has
        states, in the same order. `states=network.states` undoes what `to_pyagrum` did to numbers.

    Examples
    --------
    >>> import robustbn
    >>> from robustbn._networks.bridges.pyagrum import from_pyagrum, to_pyagrum
    >>> alarm = robustbn.example_network("alarm")
    >>> from_pyagrum(to_pyagrum(alarm)) == alarm
    True
    """
    gum = _import_pyagrum("from_pyagrum")
    if not isinstance(bn, gum.BayesNet):
        raise NetworkError(f"A pyagrum.BayesNet was expected; found {type(bn).__name__}.")
    ids = sorted(bn.nodes())
    names = {i: bn.variable(i).name() for i in ids}
    labels: dict[str, Sequence[Hashable]] = {names[i]: bn.variable(i).labels() for i in ids}
    for node, given in (states or {}).items():
        if node not in labels or len(given) != len(labels[node]):
            found = f"{len(labels[node])} states there" if node in labels else "no such node there"
            raise NetworkError(
                f"`states` gives {len(given)} labels for {node!r}; pyAgrum has {found}."
            )
        labels[node] = given
    parents = {names[i]: tuple(bn.cpt(i).names[1:]) for i in ids}
    tables = {names[i]: np.array(bn.cpt(i)[:], dtype=np.float64) for i in ids}
    if not any(table.any() for table in tables.values()):
        return BayesianNetwork(parents, labels)
    return BayesianNetwork(parents, labels, {n: _swap_parents(t) for n, t in tables.items()})


def _swap_parents(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Reverse the axes of the parents: pyAgrum's arrays have the last parent first."""
    return table.transpose(*reversed(range(table.ndim - 1)), table.ndim - 1)


def _labels_as_text(node: str, labels: Sequence[Hashable]) -> tuple[str, ...]:
    text: dict[str, Hashable] = {}
    for label in labels:
        if not isinstance(label, str | Real | np.bool_):
            raise NetworkError(
                f"pyAgrum's labels are text: state {label!r} of node {node!r} is a "
                f"{type(label).__name__}. Name the states with strings or numbers."
            )
        shown = str(label)
        if shown in text:
            raise NetworkError(
                f"pyAgrum's labels are text: states {text[shown]!r} and {label!r} of node {node!r} "
                f"would both be called {shown!r}. Rename one of them."
            )
        _check_text(shown, f"State {label!r} of node {node!r}")
        text[shown] = label
    return tuple(text)


def _check_text(text: str, what: str) -> None:
    """Refuse text that does not survive the way to C++ and back."""
    has_surrogate = any("\ud800" <= c <= "\udfff" for c in text)
    if "\0" in text or has_surrogate:
        found = "half of a surrogate pair" if has_surrogate else "a null character"
        raise NetworkError(
            f"{what} holds {found}, which pyAgrum cannot keep. Rename it before to_pyagrum()."
        )


def _import_pyagrum(caller: str) -> Any:
    with warnings.catch_warnings():
        # Its C++ part crashes the interpreter if a warning of the import is made an error.
        warnings.simplefilter("ignore")
        return import_library(caller, "pyagrum", "pyagrum")
