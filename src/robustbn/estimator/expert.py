"""An expert's tables as a prior: equivalent rows that are added to the counts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from robustbn._core.dirichlet import Expert
from robustbn._core.tables import arrange_table
from robustbn.exceptions import SettingError
from robustbn.network import BayesianNetwork

USUAL_ROWS = 50.0  # of a node that `equivalent_rows` does not name


def align_expert(network: BayesianNetwork, prior: BayesianNetwork, equivalent_rows: Any) -> Expert:
    """Return an expert's tables and rows in the order of a network's cells."""
    _refuse_others(network, prior)
    named = _check_rows(network, equivalent_rows)
    usual = USUAL_ROWS if isinstance(equivalent_rows, Mapping) else float(equivalent_rows)
    tables, rows = [], []
    for node in network.nodes:
        own, wanted = (*prior.parents[node], node), (*network.parents[node], node)
        given = prior.given_cpts[node]  # NaN where the expert says nothing
        table = arrange_table(given, own, wanted, prior.states, network.states)
        worth = np.broadcast_to(np.asarray(named.get(node, usual), float), table.shape[:-1])
        rows.append(np.where(np.isnan(table[..., 0]), 0.0, worth).ravel())
        tables.append(table.ravel())
    return Expert(np.concatenate(tables), np.concatenate(rows))


def _refuse_others(network: BayesianNetwork, prior: BayesianNetwork) -> None:
    """Refuse a prior with other nodes, parents or states; the error names the first difference."""
    if not prior.has_cpts:
        raise SettingError("The network given as prior has no tables.")
    for node in (*network.nodes, *prior.nodes):
        if node not in prior.parents or node not in network.parents:
            whose = "the prior" if node not in prior.parents else "the network that is fitted"
            raise SettingError(f"Node {node!r} is not in {whose}: both need the same nodes.")
        for what, ours, theirs in (
            ("parents", network.parents[node], prior.parents[node]),
            ("states", network.states[node], prior.states[node]),
        ):
            if set[Hashable](ours) != set[Hashable](theirs):
                raise SettingError(
                    f"Node {node!r} has the {what} {list(theirs)[:8]} in the prior; expected "
                    f"{list(ours)[:8]}, in any order."
                )


def _check_rows(network: BayesianNetwork, given: Any) -> Mapping[str, Any]:
    """Return the equivalent rows of single nodes; refuse values that are not numbers of rows."""
    named = given if isinstance(given, Mapping) else {}
    for node in named:
        if node not in network.parents:
            raise SettingError(f"equivalent_rows names {node!r}, which is not a node.")
    for node, value in named.items() if named else [("", given)]:
        where = f"equivalent_rows[{node!r}]" if node else "equivalent_rows"
        if isinstance(value, Real) and not isinstance(value, bool):
            if math.isfinite(value) and float(value) >= 0:
                continue
        elif node:
            shape = tuple(len(network.states[p]) for p in network.parents[node])
            try:
                array = np.asarray(value, np.float64)
            except (TypeError, ValueError):
                array = np.empty(0)
            if array.shape == shape and shape and np.isfinite(array).all() and array.min() >= 0:
                continue
            raise SettingError(
                f"{where} is a number of rows, at least 0, or one for each configuration, of shape "
                f"{shape}; found {value!r}."
            )
        raise SettingError(f"{where} is a number of rows, at least 0; found {value!r}.")
    return named
