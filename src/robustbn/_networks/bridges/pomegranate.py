"""The bridge to pomegranate: `BayesianNetwork` over torch, whose nodes and states are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._networks.bridges import States, import_library
from robustbn.exceptions import NetworkError, SettingError
from robustbn.network import BayesianNetwork

DTYPES = ("float32", "float64")


def to_pomegranate(network: BayesianNetwork, dtype: str = "float32") -> Any:
    """Return a `pomegranate.bayesian_network.BayesianNetwork` of the network.

    Column k of pomegranate's rows is `network.nodes[k]` and its values are robustbn's codes:
    pomegranate has neither names nor labels, so they are lost, and `from_pomegranate(model,
    nodes=network.nodes, states=network.states)` brings them back. A structure without tables gives
    a model with `structure=` set, to be fitted; it does not know the numbers of states.

    Parameters
    ----------
    dtype : "float32", what pomegranate itself uses (tables are rounded to about 7 digits), or
        "float64": tables are exact, `log_probability`, `predict_proba` and `sample` work, and
        pomegranate's own `fit` does not.
    """
    torch, pomegranate = _import_pomegranate("to_pomegranate")
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
    model: Any,
    nodes: Sequence[str] | None = None,
    states: States | None = None,
) -> BayesianNetwork:
    """Return the network of a `pomegranate.bayesian_network.BayesianNetwork`.

    Tables are the model's own numbers in double precision: those of a "float32" model have about 7
    right digits.

    Parameters
    ----------
    nodes : names of the columns; "X0", "X1", ... by default.
    states : labels of the states of each node; 0, 1, ..., the values pomegranate itself uses, by
        default. Needed for a model that has a `structure` and was not fitted.
    """
    _, pomegranate = _import_pomegranate("from_pomegranate")
    if not isinstance(model, pomegranate.bayesian_network.BayesianNetwork):
        raise NetworkError(
            "A pomegranate.bayesian_network.BayesianNetwork was expected; found "
            f"{type(model).__module__}.{type(model).__name__}."
        )
    if not len(model.distributions):
        return _from_structure(model, nodes, states)
    distributions = list(model.distributions)
    names = _check_names(nodes, len(distributions))
    column = {id(distribution): k for k, distribution in enumerate(distributions)}
    parents: dict[str, list[str]] = {name: [] for name in names}
    for parent, child in model.edges:
        parents[names[column[id(child)]]].append(names[column[id(parent)]])
    tables = {name: _table(name, dist) for name, dist in zip(names, distributions, strict=True)}
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
    names = _check_names(nodes, len(model.structure))
    return BayesianNetwork(
        {name: [names[p] for p in ps] for name, ps in zip(names, model.structure, strict=True)},
        states,
    )


def _check_names(nodes: Sequence[str] | None, n_nodes: int) -> list[str]:
    names = [f"X{k}" for k in range(n_nodes)] if nodes is None else list(nodes)
    if len(names) != n_nodes or len(set(names)) != n_nodes:
        raise NetworkError(
            f"`nodes` must name the {n_nodes} columns of the pomegranate model, each once; found "
            f"{len(names)} names, {len(set(names))} of them different."
        )
    return names


def _table(name: str, distribution: Any) -> NDArray[np.float64]:
    """Return the table of one column; a pomegranate distribution may have several, ours has one."""
    if distribution.probs is None or len(distribution.probs) != 1:
        found = 0 if distribution.probs is None else len(distribution.probs)
        raise NetworkError(
            f"The distribution of column {name!r} has {found} tables; a node of a network has one."
        )
    return np.asarray(distribution.probs[0].detach().cpu().numpy(), dtype=np.float64)


def _import_pomegranate(caller: str) -> tuple[Any, Any]:
    modules = ("torch", "pomegranate", "pomegranate.bayesian_network", "pomegranate.distributions")
    torch = import_library(caller, "pomegranate", *modules)
    return torch, import_module("pomegranate")
