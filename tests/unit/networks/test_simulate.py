from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from robustbn import BayesianNetwork, random_network, sample
from robustbn.distance import configuration_probabilities
from robustbn.simulate import KINDS
from tests.strategies import networks


def test_frequencies_are_the_joint_distribution(sprinkler):
    n = 400_000
    codes = sample(sprinkler, n, random_state=7)
    shape = sprinkler.layout.cards
    seen = np.bincount(np.ravel_multi_index(codes.T, shape), minlength=np.prod(shape)) / n
    wet, rain, on = np.indices(shape)
    cpts = sprinkler.cpts
    joint = (cpts["rain"][rain] * cpts["sprinkler"][rain, on] * cpts["wet"][rain, on, wet]).ravel()
    assert np.abs((seen - joint) / np.sqrt(joint * (1 - joint) / n)).max() < 4.5


def test_the_seed_decides_the_rows(alarm):
    one = sample(alarm, 1000, random_state=1)
    assert np.array_equal(one, sample(alarm, 1000, random_state=1))
    assert np.array_equal(one, sample(alarm, 1000, random_state=np.random.default_rng(1)))
    assert np.array_equal(one, sample(alarm, 1000, random_state=1, kernels="numpy"))
    assert not np.array_equal(one, sample(alarm, 1000, random_state=2))
    assert not np.array_equal(sample(alarm, 1000), sample(alarm, 1000))
    assert one.dtype == np.uint8
    assert one.flags.c_contiguous


def test_fewer_rows_of_the_same_seed_are_the_first_of_more(alarm):
    assert np.array_equal(sample(alarm, 3000, 5)[:700], sample(alarm, 700, 5))


@given(networks())
def test_a_state_of_probability_zero_is_never_drawn(network):
    codes = sample(network, 2000, 0)
    for node in network.nodes:
        family = [network.nodes.index(n) for n in (*network.parents[node], node)]
        assert (network.cpts[node][tuple(codes[:, family].T)] > 1e-200).all()


def test_neighbouring_rows_and_columns_are_independent():
    coins = BayesianNetwork(
        {f"c{i}": [] for i in range(40)},
        {f"c{i}": [0, 1] for i in range(40)},
        {f"c{i}": [0.5, 0.5] for i in range(40)},
    )
    x = sample(coins, 100_000, 0) - 0.5
    bound = 5 * 2 / np.sqrt(len(x)) / 2
    columns = np.corrcoef(x.T) - np.eye(40)
    assert np.abs(columns).max() < bound
    for lag in (1, 2, 256):
        assert np.abs((x[lag:] * x[:-lag]).mean(axis=0) * 4).max() < bound


def test_no_rows_is_an_array_of_no_rows(alarm):
    assert sample(alarm, 0, 0).shape == (0, 37)
    with pytest.raises(ValueError, match="found -1"):
        sample(alarm, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_edges_run_from_smaller_to_larger_index(kind):
    network = random_network(kind, 30, random_state=0)
    assert network.topological_order
    for parent, child in network.edges:
        assert int(parent[1:]) < int(child[1:])


def test_kinds_have_the_sizes_of_the_paper():
    assert random_network("empty", 100, random_state=0).n_configurations == 100
    assert random_network("tree", 50, random_state=0).n_configurations == 99
    graph = random_network("graph", 50, 500, random_state=0)
    assert 490 <= graph.n_configurations <= 500


def test_binary_tables_avoid_the_middle_and_use_both_sides():
    p = random_network("graph", 50, 500, random_state=0).probabilities
    assert ((p <= 0.25) | (p >= 0.75)).all()
    low = p.reshape(-1, 2)[:, 1] <= 0.25
    assert 0.4 < low.mean() < 0.6


def test_cards_are_one_number_a_range_or_a_list():
    assert set(random_network("tree", 9, cards=3, random_state=0).layout.cards) == {3}
    drawn = random_network("tree", 99, cards=(2, 4), random_state=0).layout.cards
    assert set(drawn) == {2, 3, 4}
    assert random_network("empty", 3, cards=[2, 5, 256]).layout.cards == (2, 5, 256)


def test_the_seed_decides_the_network():
    assert random_network(random_state=3) == random_network(random_state=3)
    assert random_network(random_state=3) != random_network(random_state=4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "ring"}, "Unknown kind 'ring'"),
        ({"n_nodes": 0}, "at least 1"),
        ({"n_nodes": 9, "n_parameters": 3}, "at least 9 configurations"),
        ({"kind": "tree", "n_parameters": 3}, "only shapes a 'graph'"),
        ({"n_nodes": 9, "cards": [2, 2]}, "9 nodes, 2 entries"),
        ({"cards": 70_000}, "1 to 65,536 states"),
    ],
)
def test_impossible_networks_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        random_network(**settings)


def test_configuration_probabilities_are_those_of_drawn_rows(sprinkler):
    pi = configuration_probabilities(sprinkler)
    np.testing.assert_allclose(pi, [0.48, 0.32, 0.198, 0.002, 1, 0.8, 0.2])
