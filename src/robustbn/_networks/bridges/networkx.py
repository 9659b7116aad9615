"""The bridge to networkx: a directed graph whose nodes carry states, parents and tables."""

from __future__ import annotations

from typing import Any

from robustbn._networks.bridges import States, complete_states, import_library
from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork


def to_networkx(network: BayesianNetwork) -> Any:
    """Return a `networkx.DiGraph` of the network.

    Every node carries `states`, `parents` (in the order of the axes of its table) and, if the
    network has tables, `cpt` (read-only, shape `(*parent_cards, card)`). Nothing is lost.

    Examples
    --------
    >>> from robustbn import example_network
    >>> graph = to_networkx(example_network("alarm"))
    >>> graph.number_of_edges(), graph.nodes["LVFAILURE"]["states"]
    (46, ('TRUE', 'FALSE'))
    """
    graph = import_library("to_networkx", "networkx", "networkx").DiGraph()
    for node in network.nodes:
        extra = {"cpt": network.cpts[node]} if network.has_cpts else {}
        graph.add_node(node, states=network.states[node], parents=network.parents[node], **extra)
    graph.add_edges_from(network.edges)
    return graph


def from_networkx(graph: Any, states: States | None = None) -> BayesianNetwork:
    """Return the network that a directed graph describes.

    Reads the node attributes `states`, `parents` and `cpt` that `to_networkx` writes. The order of
    nodes is that of the graph. A graph without these attributes is a structure: its parents are
    taken in the order of its edges, and `states` must be given.

    Parameters
    ----------
    graph : a `networkx.DiGraph` without cycles whose nodes are strings. Its edges decide who the
        parents are; the attribute `parents` only decides their order.
    states : labels of the states of each node; they take the place of the attribute `states` of
        the nodes they name.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet")])
    >>> states = {node: ["no", "yes"] for node in graph}
    >>> from_networkx(graph, states).parents["wet"]
    ('rain', 'sprinkler')
    """
    nx = import_library("from_networkx", "networkx", "networkx")
    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise NetworkError(
            "from_networkx() takes a networkx.DiGraph with at most one edge between two nodes; "
            f"found {type(graph).__name__}."
        )
    parents = {node: _order_parents(graph, node) for node in graph}
    carried = {node: data["states"] for node, data in graph.nodes(data=True) if "states" in data}
    known = complete_states(carried, states, list(graph), "graph")
    tables = {node: data["cpt"] for node, data in graph.nodes(data=True) if "cpt" in data}
    if tables and len(tables) < len(parents):
        without = [node for node in graph if node not in tables]
        raise NetworkError(
            f"{len(tables)} of {len(parents)} nodes carry a table in the attribute 'cpt'; "
            f"{without[0]!r} does not. Give every node its table, or none."
        )
    return BayesianNetwork(parents, known, tables or None)


def _order_parents(graph: Any, node: str) -> tuple[str, ...]:
    """Return the parents that the edges give, in the order of the attribute `parents`."""
    by_edges = tuple(graph.predecessors(node))
    ordered = tuple(graph.nodes[node].get("parents", by_edges))
    if len(ordered) != len(by_edges) or set(ordered) != set(by_edges):
        raise NetworkError(
            f"Node {node!r} carries parents={list(ordered)}, but its edges come from "
            f"{list(by_edges)}. Change the attribute 'parents' and the table together with the "
            "edges, or remove both."
        )
    return ordered
