"""Bridges to other libraries, in memory: `to_x` and `from_x` for each.

Every bridge carries nodes, parents in order, states in order and tables. What a library cannot hold
is refused with a reason; nothing is renamed without a word. Libraries are imported when a bridge is
crossed, so this file costs nothing until then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.structure import some_of
from robustbn.exceptions import MissingDependencyError, NetworkError, SettingError
from robustbn.network import BayesianNetwork

States = Mapping[str, Sequence[Hashable]]
DTYPES = ("float32", "float64")
POMEGRANATE = ("torch", "pomegranate", "pomegranate.bayesian_network", "pomegranate.distributions")


def import_library(caller: str, extra: str, *modules: str) -> list[Any]:
    """Return some modules of a library; or say what is to be installed."""
    try:
        return [import_module(module) for module in modules]
    except ImportError as error:
        raise MissingDependencyError(
            f"{caller}() needs {extra}: pip install 'robustbn[{extra}]'"
        ) from error


def complete_states(known: States, given: States | None, nodes: Sequence[str], what: str) -> States:
    """Return the states of all nodes: those that are given, else those that are known."""
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


# --- networkx: a directed graph whose nodes carry states, parents and tables ---------------------


def to_networkx(network: BayesianNetwork) -> Any:
    """Return a `networkx.DiGraph`; see `BayesianNetwork.to_networkx`."""
    graph = import_library("to_networkx", "networkx", "networkx")[0].DiGraph()
    for node in network.nodes:
        extra = {"cpt": network.cpts[node]} if network.has_cpts else {}
        graph.add_node(node, states=network.states[node], parents=network.parents[node], **extra)
    graph.add_edges_from(network.edges)
    return graph


def from_networkx(graph: Any, states: States | None = None) -> BayesianNetwork:
    """Return the network that a directed graph describes; see `BayesianNetwork.from_networkx`."""
    (nx,) = import_library("from_networkx", "networkx", "networkx")
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


# --- pgmpy: `DiscreteBayesianNetwork` and its `TabularCPD` tables --------------------------------


def to_pgmpy(network: BayesianNetwork) -> Any:
    """Return a `pgmpy.models.DiscreteBayesianNetwork` of the network.

    Nodes, parents' order, states of any type and double-precision tables are all kept. pgmpy knows
    states only through tables, so every node also carries its labels in the node attribute
    `states`; that is how a structure without tables keeps them. `model.copy()` drops attributes.

    Parameters
    ----------
    network : BayesianNetwork
        The network to convert, with or without tables.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> from robustbn.pgmpy import to_pgmpy
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.75, 0.25]})
    >>> to_pgmpy(coin).get_cpds("coin").values
    array([0.75, 0.25])
    """
    model = import_library("to_pgmpy", "pgmpy", "pgmpy.models")[0].DiscreteBayesianNetwork()
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
    (discrete,) = import_library("to_pgmpy", "pgmpy", "pgmpy.factors.discrete")
    cpds = []
    for node in network.nodes:
        table, parents = network.cpts[node], network.parents[node]
        cpds.append(
            discrete.TabularCPD(
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
    model : pgmpy.models.DiscreteBayesianNetwork
        The model, with a table for every node or for none. Its nodes must be strings.
    states : dict or None, default=None
        The labels of the states, for a model without tables that did not come from `to_pgmpy`.

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
        {n: _table_of_cpd(cpds[n], known) for n in nodes},
    )


def collect_cpds(model: Any) -> dict[Any, Any]:
    """Return the table of each node that has one; refuse what is not a discrete model."""
    base, discrete = import_library("from_pgmpy", "pgmpy", "pgmpy.base", "pgmpy.factors.discrete")
    if not isinstance(model, base.DAG):
        raise NetworkError(
            "A pgmpy DiscreteBayesianNetwork (or a DAG, for its structure) was expected; found "
            f"{type(model).__name__}."
        )
    cpds = {}
    for cpd in getattr(model, "cpds", ()):
        if not isinstance(cpd, discrete.TabularCPD):
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
            f"model give it the parents {by_edges}. pgmpy's check_model() reports the same."
        )
    return in_table


def _table_of_cpd(cpd: Any, states: Mapping[Any, Sequence[Hashable]]) -> NDArray[np.float64]:
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


# --- pyAgrum: `BayesNet`, whose names and labels are text ----------------------------------------


def to_pyagrum(network: BayesianNetwork) -> Any:
    """Return a `pyagrum.BayesNet` of the network; see `BayesianNetwork.to_pyagrum`."""
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
    """Return the network of a `pyagrum.BayesNet`; see `BayesianNetwork.from_pyagrum`."""
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
        return import_library(caller, "pyagrum", "pyagrum")[0]


# --- pomegranate: `BayesianNetwork` over torch, whose nodes and states are numbers ---------------


def to_pomegranate(network: BayesianNetwork, dtype: str = "float32") -> Any:
    """Return a model of pomegranate; see `BayesianNetwork.to_pomegranate`."""
    torch, pomegranate = import_library("to_pomegranate", "pomegranate", *POMEGRANATE)[:2]
    if dtype not in DTYPES:
        raise SettingError(f"Unknown dtype {dtype!r}; choose one of {', '.join(DTYPES)}.")
    column = {node: k for k, node in enumerate(network.nodes)}
    if not network.has_cpts:
        return pomegranate.bayesian_network.BayesianNetwork(
            structure=tuple(tuple(column[p] for p in ps) for ps in network.parents.values())
        )
    nodes = []
    for node, table in network.cpts.items():
        tensor = torch.tensor(table, dtype=getattr(torch, dtype))
        if network.parents[node]:
            nodes.append(pomegranate.distributions.ConditionalCategorical([tensor]))
        else:
            nodes.append(pomegranate.distributions.Categorical(tensor[None, :]))
    edges = [(nodes[column[p]], nodes[column[n]]) for p, n in network.edges]
    return pomegranate.bayesian_network.BayesianNetwork(nodes, edges)


def from_pomegranate(
    model: Any, nodes: Sequence[str] | None = None, states: States | None = None
) -> BayesianNetwork:
    """Return the network of a model of pomegranate; see `BayesianNetwork.from_pomegranate`."""
    pomegranate = import_library("from_pomegranate", "pomegranate", *POMEGRANATE)[1]
    if not isinstance(model, pomegranate.bayesian_network.BayesianNetwork):
        raise NetworkError(
            "A pomegranate.bayesian_network.BayesianNetwork was expected; found "
            f"{type(model).__module__}.{type(model).__name__}."
        )
    if not len(model.distributions):
        return _from_structure(model, nodes, states)
    distributions = list(model.distributions)
    names = _check_columns(nodes, len(distributions))
    column = {id(distribution): k for k, distribution in enumerate(distributions)}
    parents: dict[str, list[str]] = {name: [] for name in names}
    for parent, child in model.edges:
        parents[names[column[id(child)]]].append(names[column[id(parent)]])
    tables = {
        name: _table_of_column(name, dist) for name, dist in zip(names, distributions, strict=True)
    }
    if states is None:
        states = {name: range(table.shape[-1]) for name, table in tables.items()}
    return BayesianNetwork(parents, states, tables)


def _from_structure(
    model: Any, nodes: Sequence[str] | None, states: States | None
) -> BayesianNetwork:
    if model.structure is None:
        raise NetworkError("The pomegranate model is empty: no distributions and no structure.")
    if states is None:
        raise NetworkError(
            "The pomegranate model has a structure and was not fitted, so it does not know its "
            "states: give states={node: [labels], ...}, or fit it first."
        )
    names = _check_columns(nodes, len(model.structure))
    return BayesianNetwork(
        {name: [names[p] for p in ps] for name, ps in zip(names, model.structure, strict=True)},
        states,
    )


def _check_columns(nodes: Sequence[str] | None, n_nodes: int) -> list[str]:
    names = [f"X{k}" for k in range(n_nodes)] if nodes is None else list(nodes)
    if len(names) != n_nodes or len(set(names)) != n_nodes:
        raise NetworkError(
            f"`nodes` must name the {n_nodes} columns of the pomegranate model, each once; found "
            f"{len(names)} names, {len(set(names))} of them different."
        )
    return names


def _table_of_column(name: str, distribution: Any) -> NDArray[np.float64]:
    """Return the table of one column; a pomegranate distribution may have several, ours has one."""
    if distribution.probs is None or len(distribution.probs) != 1:
        found = 0 if distribution.probs is None else len(distribution.probs)
        raise NetworkError(
            f"The distribution of column {name!r} has {found} tables; a node of a network has one."
        )
    return np.asarray(distribution.probs[0].detach().cpu().numpy(), dtype=np.float64)


# --- inference ------------------------------------------------------------------------------------

Probabilities = NDArray[np.float64]
Ask = Callable[[BayesianNetwork, str, Mapping[str, Hashable]], Probabilities]


def find_inference(name: str | None = None) -> Ask:
    """Return what answers `P(node | evidence)`, by the library that is named or installed."""
    known: dict[str, Ask] = {"pyagrum": _ask_pyagrum, "pgmpy": _ask_pgmpy}
    if name is not None and name not in known:
        raise SettingError(f"library is one of 'pyagrum', 'pgmpy' or None; found {name!r}.")
    for each in [name] if name else known:
        if find_spec(each) is not None:
            return known[each]
    raise MissingDependencyError(
        f"A query needs {name or 'pyagrum or pgmpy'}: pip install {name or 'pyagrum'}"
    )


def _ask_pyagrum(
    network: BayesianNetwork, node: str, evidence: Mapping[str, Hashable]
) -> Probabilities:
    pyagrum = _import_pyagrum("query")
    inference = pyagrum.LazyPropagation(network.to_pyagrum())
    inference.setEvidence({n: network.states[n].index(s) for n, s in evidence.items()})
    inference.addTarget(node)
    inference.makeInference()
    return np.asarray(inference.posterior(node).toarray(), np.float64)


def _ask_pgmpy(
    network: BayesianNetwork, node: str, evidence: Mapping[str, Hashable]
) -> Probabilities:
    with warnings.catch_warnings():  # of parts of pgmpy that are not used here
        warnings.simplefilter("ignore")
        from pgmpy.inference import VariableElimination
    found = VariableElimination(network.to_pgmpy()).query(
        [node], evidence=dict(evidence), show_progress=False
    )
    order = [found.state_names[node].index(state) for state in network.states[node]]
    return np.asarray(found.values, np.float64)[order]
