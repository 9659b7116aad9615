"""The bridge to pgmpy: `DiscreteBayesianNetwork` and its `TabularCPD` tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.structure import some_of
from robustbn._networks.bridges import States, complete_states, import_library
from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork

Probabilities = NDArray[np.float64]


def to_pgmpy(network: BayesianNetwork) -> Any:
    """Return a `pgmpy.models.DiscreteBayesianNetwork` of the network.

    Nodes, parents' order, states of any type and double-precision tables are all kept. pgmpy knows
    states only through tables, so every node also carries its labels in the node attribute
    `states`; that is how a structure without tables keeps them. `model.copy()` drops attributes.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.pgmpy import to_pgmpy
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.75, 0.25]})
    >>> to_pgmpy(coin).get_cpds("coin").values
    array([0.75, 0.25])
    """
    model = import_library("to_pgmpy", "pgmpy", "pgmpy.models").DiscreteBayesianNetwork()
    for node in network.nodes:
        model.add_node(node)
        model.nodes[node]["states"] = network.states[node]
    for parent, child in network.edges:
        model.add_edge(parent, child)
    if network.has_cpts:
        model.add_cpds(*to_tabular_cpds(network))
    return model


def to_tabular_cpds(network: BayesianNetwork) -> list[Any]:
    """Return one `pgmpy.factors.discrete.TabularCPD` a node, in the order of the nodes."""
    import_library("to_pgmpy", "pgmpy", "pgmpy.models")
    from pgmpy.factors.discrete import TabularCPD

    cpds = []
    for node in network.nodes:
        table, parents = network.cpts[node], network.parents[node]
        cpds.append(
            TabularCPD(
                node,
                table.shape[-1],
                np.moveaxis(table, -1, 0).reshape(table.shape[-1], -1),
                evidence=list(parents),
                evidence_card=list(table.shape[:-1]),
                state_names={n: list(network.states[n]) for n in (node, *parents)},
            )
        )
    return cpds


def from_pgmpy(model: Any, states: States | None = None) -> BayesianNetwork:
    """Return the network of a `pgmpy.models.DiscreteBayesianNetwork`.

    The order of parents is that of the node's table, or of the edges if there is none. A node's
    states are those of its own table; where the table of a child lists them in another order, its
    axes are permuted. Marks of latent nodes, exposures and outcomes are not carried.

    Parameters
    ----------
    model : the pgmpy model, with a table for every node or for none. Its nodes must be strings.
    states : labels of the states, for a model without tables. Not needed if the model came from
        `to_pgmpy`.

    Examples
    --------
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from robustbn.pgmpy import from_pgmpy
    >>> model = DiscreteBayesianNetwork([("rain", "wet")])
    >>> from_pgmpy(model, states={"rain": ["no", "yes"], "wet": ["no", "yes"]})
    BayesianNetwork(2 nodes, 1 edge, 3 configurations, 6 cells, no tables)
    """
    cpds = collect_cpds(model)
    nodes = list(model.nodes())
    if cpds and len(cpds) < len(nodes):
        without = [n for n in nodes if n not in cpds]
        raise NetworkError(
            f"{len(cpds)} of {len(nodes)} nodes of the pgmpy model have a table; {without[0]!r} "
            "has none. Add the missing ones with add_cpds(), or remove all."
        )
    if cpds and states is not None:
        raise NetworkError(
            "The pgmpy model has tables, and they name its states; `states=` is for a model "
            "without tables."
        )
    known = complete_states(known_states(model), states, nodes, "pgmpy model")
    if not cpds:
        return BayesianNetwork({n: list(model.predecessors(n)) for n in nodes}, known)
    return BayesianNetwork(
        {n: _parents_in_table(model, cpds[n]) for n in nodes},
        known,
        {n: _table(cpds[n], known) for n in nodes},
    )


def collect_cpds(model: Any) -> dict[Any, Any]:
    """Return the table of each node that has one; refuse what is not a discrete model."""
    import_library("from_pgmpy", "pgmpy", "pgmpy.models")
    from pgmpy.base import DAG
    from pgmpy.factors.discrete import TabularCPD

    if not isinstance(model, DAG):
        raise NetworkError(
            "A pgmpy DiscreteBayesianNetwork (or a DAG, for its structure) was expected; found "
            f"{type(model).__name__}."
        )
    cpds = {}
    for cpd in getattr(model, "cpds", ()):
        if not isinstance(cpd, TabularCPD):
            raise NetworkError(
                f"robustbn knows discrete nodes only; node {getattr(cpd, 'variable', '?')!r} has a "
                f"{type(cpd).__name__}, not a TabularCPD."
            )
        cpds[cpd.variable] = cpd
    return cpds


def known_states(model: Any) -> dict[Any, Sequence[Hashable]]:
    """Return the states a pgmpy model knows: those of tables, else of the attribute `states`."""
    known = {n: data["states"] for n, data in model.nodes(data=True) if "states" in data}
    known.update({n: tuple(cpd.state_names[n]) for n, cpd in collect_cpds(model).items()})
    return known


def _parents_in_table(model: Any, cpd: Any) -> list[Any]:
    """Return the parents in the order of the table's axes; they must be those of the edges."""
    in_table, by_edges = list(cpd.variables[1:]), list(model.predecessors(cpd.variable))
    if set(in_table) != set(by_edges):
        raise NetworkError(
            f"The table of node {cpd.variable!r} is given {in_table}, but the edges of the pgmpy "
            f"model give it the parents {by_edges}. pgmpy's check_model() tells the same."
        )
    return in_table


def _table(cpd: Any, states: Mapping[Any, Sequence[Hashable]]) -> Probabilities:
    """Return a table as (parents ..., node), every axis in the order of the node's states."""
    table = np.asarray(cpd.values, dtype=np.float64)
    for axis, name in enumerate(cpd.variables):
        here, wanted = list(cpd.state_names[name]), list(states[name])
        if here == wanted:
            continue
        if len(here) != len(wanted) or set(here) != set(wanted):
            raise NetworkError(
                f"The tables of {name!r} and of its child {cpd.variable!r} name different states "
                f"of {name!r}: {some_of(wanted)} and {some_of(here)}. Use the same state_names in "
                "both."
            )
        table = np.take(table, [here.index(label) for label in wanted], axis=axis)
    return np.moveaxis(table, 0, -1)
