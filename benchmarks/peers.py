"""Other libraries that learn tables by counting, each fed in the way that is fastest for it.

A peer is two small functions. `prepare(network, codes)` builds, untimed, the input that the library
likes best and returns a function without arguments, which is timed: it learns all tables and
returns the library's own model. `read_tables(network, model)` returns those tables in our order of
axes, so that they can be checked. A library is imported where it is used: one that is not installed
raises `ImportError` from `prepare`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn import BayesianNetwork, MaximumLikelihoodEstimator

Codes = NDArray[np.uint8]
Fit = Callable[[], Any]
Tables = dict[str, NDArray[np.floating[Any]]]

# pyAgrum refuses to learn without a prior when a configuration occurs in no row.
NEGLIGIBLE_PRIOR = 1e-9


@dataclass(frozen=True)
class Peer:
    """A library and one route into it.

    Parameters
    ----------
    distributions : what must be installed; the first is the library itself.
    route : the input that is prepared, and what is timed beside counting.
    tolerance : how far its tables may be from ours, given its precision.
    max_rows : more rows than this would take too long to be worth the wait.
    """

    name: str
    distributions: tuple[str, ...]
    route: str
    prepare: Callable[[BayesianNetwork, Codes], Fit]
    read_tables: Callable[[BayesianNetwork, Any], Tables]
    tolerance: float = 1e-8
    max_rows: int | None = None


# --- pgmpy ----------------------------------------------------------------------------------------


def prepare_pgmpy(network: BayesianNetwork, codes: Codes) -> Fit:
    """Feed a frame of categories; integers take about as long. One job is faster than two."""
    import pandas as pd
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.parameter_estimator import DiscreteMLE

    state_names = {node: list(labels) for node, labels in network.states.items()}
    columns = {
        node: pd.Categorical.from_codes(codes[:, i], categories=state_names[node])
        for i, node in enumerate(network.nodes)
    }
    frame = pd.DataFrame(columns)

    def fit() -> Any:
        model = DiscreteBayesianNetwork(network.edges)
        model.add_nodes_from(network.nodes)
        return model.fit(frame, estimator=DiscreteMLE(state_names=state_names, n_jobs=1))

    return fit


def read_pgmpy(network: BayesianNetwork, model: Any) -> Tables:
    """Undo the alphabetical order of parents."""
    cpds = {node: model.get_cpds(node) for node in network.nodes}
    return {n: _arrange_axes(network, n, cpd.values, cpd.variables) for n, cpd in cpds.items()}


# --- pyAgrum --------------------------------------------------------------------------------------


def prepare_pyagrum_loaded(network: BayesianNetwork, codes: Codes) -> Fit:
    """Let pyAgrum load the rows before the clock starts; only its counting is timed."""
    structure = _pyagrum_structure(network)
    learner = _pyagrum_learner(_write_csv(network, codes), structure)
    return lambda: learner.learnParameters(structure)


def prepare_pyagrum_csv(network: BayesianNetwork, codes: Codes) -> Fit:
    """Write a CSV file; reading it is timed, since it is the way into pyAgrum."""
    structure = _pyagrum_structure(network)
    path = _write_csv(network, codes)
    return lambda: _pyagrum_learner(path, structure).learnParameters(structure)


def prepare_pyagrum_frame(network: BayesianNetwork, codes: Codes) -> Fit:
    """Feed a frame, which pyAgrum writes to a temporary CSV file and reads back."""
    import pandas as pd

    structure = _pyagrum_structure(network)
    frame = pd.DataFrame(codes, columns=network.nodes)
    return lambda: _pyagrum_learner(frame, structure).learnParameters(structure)


def read_pyagrum(network: BayesianNetwork, model: Any) -> Tables:
    """Undo the order of axes: the reverse of the names of a table."""
    cpts = {node: model.cpt(node) for node in network.nodes}
    return {n: _arrange_axes(network, n, c.toarray(), c.names[::-1]) for n, c in cpts.items()}


def _pyagrum_structure(network: BayesianNetwork) -> Any:
    import pyagrum

    structure = pyagrum.BayesNet()
    for node in network.nodes:
        structure.add(pyagrum.RangeVariable(node, node, 0, len(network.states[node]) - 1))
    for parent, child in network.edges:
        structure.addArc(parent, child)
    return structure


def _pyagrum_learner(source: Any, structure: Any) -> Any:
    import pyagrum

    learner = pyagrum.BNLearner(source, structure)
    learner.useSmoothingPrior(NEGLIGIBLE_PRIOR)
    return learner


def _write_csv(network: BayesianNetwork, codes: Codes) -> str:
    """Write codes of one digit, the comma or newline behind each of them put in place at once."""
    assert max(network.layout.cards) <= 10
    text = np.full((len(codes), 2 * network.n_nodes), ord(","), np.uint8)
    text[:, ::2] = codes + ord("0")
    text[:, -1] = ord("\n")
    with tempfile.NamedTemporaryFile(suffix=".csv", delete=False) as file:
        file.write((",".join(network.nodes) + "\n").encode() + text.tobytes())
    return str(Path(file.name))


# --- pyBNesian ------------------------------------------------------------------------------------


def prepare_pybnesian(network: BayesianNetwork, codes: Codes) -> Fit:
    """Feed an Arrow record batch of dictionary columns with int8 indices."""
    import pybnesian

    batch = _arrow_batch(network, network.nodes, codes)

    def fit() -> Any:
        model = pybnesian.DiscreteBN(list(network.nodes), list(network.edges))
        model.fit(batch)
        return model

    return fit


def read_pybnesian(network: BayesianNetwork, model: Any) -> Tables:
    """Ask for the likelihood of every cell: pyBNesian does not hand out its tables."""
    tables = {}
    for i, node in enumerate(network.nodes):
        shape = tuple(network.layout.cards[c] for c in network.layout.families[i])
        cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
        batch = _arrow_batch(network, (*network.parents[node], node), cells)
        tables[node] = np.exp(model.cpd(node).logl(batch)).reshape(shape)
    return tables


def _arrow_batch(network: BayesianNetwork, nodes: Sequence[str], codes: NDArray[Any]) -> Any:
    import pyarrow as pa

    columns = [
        pa.DictionaryArray.from_arrays(
            pa.array(codes[:, k].astype(np.int8)), pa.array(list(map(str, network.states[node])))
        )
        for k, node in enumerate(nodes)
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(nodes))


# --- pomegranate ----------------------------------------------------------------------------------


def prepare_pomegranate(network: BayesianNetwork, codes: Codes) -> Fit:
    """Feed an int32 tensor stored by columns, to a network built before, without data checks.

    Given a `structure` instead of distributions, pomegranate counts everything twice.
    """
    import torch
    from pomegranate.bayesian_network import BayesianNetwork as Pomegranate
    from pomegranate.distributions import Categorical, ConditionalCategorical

    nodes = {}
    for i, node in enumerate(network.nodes):
        cards = [network.layout.cards[c] for c in network.layout.families[i]]
        table = torch.full(cards, 1 / cards[-1])
        kind, tables = (
            (ConditionalCategorical, [table]) if cards[1:] else (Categorical, table[None])
        )
        nodes[node] = kind(tables, check_data=False)
    edges = [(nodes[parent], nodes[child]) for parent, child in network.edges]
    model = Pomegranate(list(nodes.values()), edges, check_data=False)
    tensor = torch.from_numpy(codes.T.astype(np.int32, order="C")).T
    return lambda: model.fit(tensor)


def read_pomegranate(network: BayesianNetwork, model: Any) -> Tables:
    """Take the tables as they are: float32, axes in our order."""
    return {
        node: distribution.probs[0].numpy()
        for node, distribution in zip(network.nodes, model.distributions, strict=True)
    }


# --- checking them --------------------------------------------------------------------------------


def compare_tables(peer: Peer, model: Any, ours: MaximumLikelihoodEstimator) -> dict[str, Any]:
    """Return the largest difference of a peer's tables from ours where some row tells them."""
    network, layout = ours.network_, ours.network_.layout
    tables = peer.read_tables(network, model)
    theirs = np.concatenate([np.ravel(tables[node]) for node in network.nodes])
    is_seen = layout.sum_configurations(ours.counts_)[layout.config_of_cell] > 0
    difference = float(np.abs(theirs - network.probabilities)[is_seen].max())
    return {"difference": difference, "agrees": difference <= peer.tolerance}


# --- all of them ----------------------------------------------------------------------------------


def _arrange_axes(
    network: BayesianNetwork, node: str, values: NDArray[Any], axes: Sequence[str]
) -> NDArray[Any]:
    order = [list(axes).index(name) for name in (*network.parents[node], node)]
    return np.transpose(values, order)


PEERS = (
    Peer(
        "pyBNesian",
        ("pybnesian", "pyarrow"),
        "Arrow batch, int8 dictionaries",
        prepare_pybnesian,
        read_pybnesian,
    ),
    Peer(
        "pyAgrum, loaded",
        ("pyagrum",),
        "its own database; counting only",
        prepare_pyagrum_loaded,
        read_pyagrum,
    ),
    Peer(
        "pyAgrum, CSV",
        ("pyagrum",),
        "CSV file; reading and counting",
        prepare_pyagrum_csv,
        read_pyagrum,
    ),
    Peer(
        "pyAgrum, DataFrame",
        ("pyagrum", "pandas"),
        "pandas frame, uint8",
        prepare_pyagrum_frame,
        read_pyagrum,
        max_rows=100_000,
    ),
    Peer(
        "pomegranate",
        ("pomegranate", "torch"),
        "int32 tensor by columns, unchecked",
        prepare_pomegranate,
        read_pomegranate,
        tolerance=1e-6,
    ),
    Peer("pgmpy", ("pgmpy", "pandas"), "pandas frame of categories", prepare_pgmpy, read_pgmpy),
)
