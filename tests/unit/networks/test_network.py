from __future__ import annotations

import itertools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given

from robustbn import BayesianNetwork
from robustbn.exceptions import InsufficientMemoryError, NetworkError
from tests.strategies import networks

AB = {"a": ["n", "y"], "b": ["n", "y"]}


def test_nodes_keep_the_order_given_and_a_topological_one_is_found(sprinkler):
    assert sprinkler.nodes == ("wet", "rain", "sprinkler")
    assert sprinkler.topological_order == ("rain", "sprinkler", "wet")


def test_sizes_are_those_of_the_tables(sprinkler):
    assert (sprinkler.d, sprinkler.m, sprinkler.M) == (3, 4 + 1 + 2, 12 + 2 + 4)
    assert (sprinkler.n_nodes, sprinkler.n_configurations, sprinkler.n_cells) == (3, 7, 18)
    assert sprinkler.layout.n_free == 11
    assert sprinkler.cpts["wet"].shape == (2, 2, 3)


@given(networks())
def test_a_cell_is_found_and_described_by_the_same_words(network):
    for cell in range(0, network.n_cells, max(1, network.n_cells // 50)):
        node, parents, state = network.describe_cell(cell)
        assert network.cell(node, parents, state) == cell
        index = [network.states[p].index(v) for p, v in parents.items()]
        own = network.states[node].index(state)
        assert network.cpts[node][(*index, own)] == network.probabilities[cell]


def test_a_network_cannot_be_changed(sprinkler):
    with pytest.raises(AttributeError, match="immutable"):
        sprinkler.nodes = ()
    with pytest.raises(ValueError, match="read-only"):
        sprinkler.cpts["rain"][0] = 1
    with pytest.raises(TypeError):
        sprinkler.parents["rain"] = ("wet",)


def test_the_tables_given_are_copied():
    table = np.array([0.5, 0.5])
    net = BayesianNetwork({"a": []}, {"a": ["n", "y"]}, {"a": table})
    table[:] = [1, 0]
    assert net.cpts["a"].tolist() == [0.5, 0.5]


def test_equality_is_of_structure_and_tables(sprinkler):
    same = BayesianNetwork(sprinkler.parents, sprinkler.states, sprinkler.cpts)
    assert same == sprinkler
    assert hash(same) == hash(sprinkler)
    assert sprinkler.with_cpts(None) != sprinkler
    assert sprinkler.with_cpts(None) == same.with_cpts(None)
    assert sprinkler.with_cpts(sprinkler.probabilities) == sprinkler
    assert sprinkler != "sprinkler"
    reversed_columns = BayesianNetwork(
        dict(reversed(sprinkler.parents.items())), sprinkler.states, sprinkler.cpts
    )
    assert reversed_columns != sprinkler


def test_a_network_survives_pickling(sprinkler):
    copy = pickle.loads(pickle.dumps(sprinkler))  # noqa: S301
    assert copy == sprinkler
    assert copy.nodes == sprinkler.nodes


def test_repr_says_how_large_it_is(sprinkler):
    assert repr(sprinkler) == (
        "BayesianNetwork(3 nodes, 3 edges, 7 configurations, 18 cells, with tables)"
    )


def test_edges_give_the_network_in_the_order_of_states():
    net = BayesianNetwork.from_edges([("b", "c"), ("a", "c")], {"c": [0, 1], "a": [0, 1], "b": [0]})
    assert net.nodes == ("c", "a", "b")
    assert net.parents["c"] == ("b", "a")
    with pytest.raises(NetworkError, match="'x'"):
        BayesianNetwork.from_edges([("x", "a")], {"a": [0, 1]})


def test_networkx_gets_nodes_edges_states_and_tables(sprinkler):
    graph = sprinkler.to_networkx()
    assert set(graph.edges) == set(sprinkler.edges)
    assert graph.nodes["wet"]["states"] == ("dry", "damp", "wet")
    assert graph.nodes["wet"]["cpt"] is sprinkler.cpts["wet"]
    assert "cpt" not in sprinkler.with_cpts(None).to_networkx().nodes["wet"]


def test_tables_of_a_bare_structure_are_asked_for_in_vain(sprinkler):
    bare = sprinkler.with_cpts(None)
    assert not bare.has_cpts
    bare.validate()
    with pytest.raises(NetworkError, match="no tables"):
        bare.cpts  # noqa: B018


@pytest.mark.parametrize(
    ("parents", "states", "cpts", "message"),
    [
        ({}, {}, None, "at least one node"),
        ({"a": ["b"], "b": ["a"]}, AB, None, "cycle: (a -> b -> a|b -> a -> b)"),
        ({"a": ["a"], "b": []}, AB, None, "cycle: a -> a"),
        ({"a": [], "b": ["z"]}, AB, None, "'b' has the unknown parent 'z'"),
        ({"a": [], "b": ["a", "a"]}, AB, None, "'b' lists a parent twice"),
        ({"a": [], "b": "a"}, AB, None, r"Write \['a'\]"),
        ({1: []}, {1: [0, 1]}, None, "strings; found 1"),
        ({"a": []}, {"a": ["x", "y", "x"]}, None, "'a' has the duplicate state 'x'"),
        ({"a": []}, {"a": [1, True]}, None, "duplicate state True"),
        ({"a": []}, {"a": "yes"}, None, "'a' must be a sequence of labels; found 'yes'"),
        ({"a": []}, {"a": 2}, None, "found 2"),
        ({"a": []}, {"a": []}, None, "'a' has 0 states"),
        (
            {"a": []},
            {"a": range(65537)},
            None,
            "65,537 .* 1 to 65,536, because a code has two",
        ),
        ({"a": []}, AB, None, r"without parents \['b'\]"),
        ({"a": [], "b": []}, {"a": [0, 1]}, None, r"without states \['b'\]"),
        ({"a": []}, {"a": [0, 1]}, {}, r"missing \['a'\]"),
        ({"a": []}, {"a": [0, 1]}, {"a": [1, 0], "z": [1]}, r"unknown \['z'\]"),
        ({"a": []}, {"a": [0, 1]}, {"a": [[0.5, 0.5]]}, r"shape \(1, 2\); expected \(2,\)"),
        ({"a": []}, {"a": [0, 1]}, {"a": [[0.5], [0.5, 1]]}, "'a' is not an array of numbers"),
        ({"a": []}, {"a": [0, 1]}, {"a": [np.nan, 0.5]}, r"'a'.*\[nan, 0.5\].*not finite"),
        ({"a": []}, {"a": [0, 1]}, {"a": [-0.5, 1.5]}, r"'a'.*\[-0.5, 1.5\].*negative"),
        (
            {"a": [], "b": ["a"]},
            AB,
            {"a": [0.5, 0.5], "b": [[0.5, 0.5], [0.5, 0.43]]},
            r"'b', configuration a='y': \[0.5, 0.43\] does not sum to 1 \(sum 0.93\); 1 of 2",
        ),
    ],
)
def test_a_wrong_network_is_refused_with_the_node_and_the_values(parents, states, cpts, message):
    with pytest.raises(NetworkError, match=message):
        BayesianNetwork(parents, states, cpts)


def test_a_configuration_of_nan_is_unknown_and_no_other_value_may_be_nan():
    parents, tables = {"a": [], "b": ["a"]}, {"a": [0.5, 0.5], "b": [[0.9, 0.1], [np.nan, np.nan]]}
    net = BayesianNetwork(parents, AB, tables)
    assert net.cpts["b"].tolist() == [[0.9, 0.1], [0.5, 0.5]]
    assert net.is_unknown.tolist() == [False, False, True]
    assert np.isnan(net.given_cpts["b"][1]).all()
    assert repr(net).endswith("with tables, 1 configuration unknown)")
    assert pickle.loads(pickle.dumps(net)) == net != net.with_cpts(net.cpts)  # noqa: S301
    with pytest.raises(NetworkError, match="contains NaN"):
        net.with_cpts(np.full(6, np.nan))


def test_a_long_cycle_is_shown_as_it_runs():
    parents = {"a": ["d"], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}
    with pytest.raises(NetworkError) as error:
        BayesianNetwork(parents, {n: [0, 1] for n in parents})
    path = re.search(r"cycle: (.*)\.", str(error.value)).group(1).split(" -> ")
    assert path[0] == path[-1]
    assert all(parent in parents[child] for parent, child in itertools.pairwise(path))


def test_thirty_parents_are_refused_before_anything_is_allocated():
    parents = {f"p{i}": [] for i in range(31)} | {"child": [f"p{i}" for i in range(31)]}
    net = BayesianNetwork(parents, {n: [0, 1] for n in parents})
    assert net.n_cells == 2**32 + 62
    with pytest.raises(InsufficientMemoryError, match=r"4.29e\+09 cells \(32 GiB.*31 parents"):
        net.layout.cell_start  # noqa: B018


def test_wrong_words_for_a_cell_are_refused(sprinkler):
    with pytest.raises(NetworkError, match="Unknown node 'x'"):
        sprinkler.cell("x", {}, "no")
    with pytest.raises(NetworkError, match="has parents"):
        sprinkler.cell("wet", {}, "dry")
    with pytest.raises(NetworkError, match="'rain' has no state 'maybe'"):
        sprinkler.cell("rain", {}, "maybe")
    with pytest.raises(NetworkError, match="Cell 99 does not exist"):
        sprinkler.describe_cell(99)
    with pytest.raises(NetworkError, match=r"shape \(18,\)"):
        sprinkler.with_cpts(np.ones(3))
