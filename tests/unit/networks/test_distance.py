from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings

from robustbn import BayesianNetwork, random_network, total_variation
from robustbn.distance import (
    TotalVariation,
    configuration_probabilities,
    node_distances,
    total_variation_bound,
)
from robustbn.exceptions import NetworkError
from tests.strategies import networks


def nudged(network, share, seed=0):
    """The network with its tables moved a little towards random ones."""
    rng = np.random.default_rng(seed)
    layout = network.layout
    noise = rng.random(layout.n_cells)
    noise /= layout.sum_configurations(noise)[layout.config_of_cell]
    return network.with_cpts((1 - share) * network.probabilities + share * noise)


def by_brute_force(P, Q):
    total = 0.0
    for labels in itertools.product(*P.states.values()):
        row = dict(zip(P.nodes, labels, strict=True))
        chance = []
        for net in (P, Q):
            c = 1.0
            for n in net.nodes:
                where = [net.states[x].index(row[x]) for x in (*net.parents[n], n)]
                c *= net.cpts[n][tuple(where)]
            chance.append(c)
        total += abs(chance[0] - chance[1])
    return total / 2


@settings(max_examples=30)
@given(networks(max_nodes=4, max_states=4))
def test_enumeration_is_the_definition(network):
    other = nudged(network, 0.3)
    assert total_variation(network, other) == pytest.approx(by_brute_force(network, other))
    assert total_variation(network, network) == 0


def test_the_order_of_nodes_states_and_parents_does_not_matter(sprinkler):
    other = nudged(sprinkler, 0.2)
    shuffled = BayesianNetwork(
        {"rain": [], "sprinkler": ["rain"], "wet": ["sprinkler", "rain"]},
        {"rain": ["yes", "no"], "sprinkler": ["off", "on"], "wet": ["wet", "dry", "damp"]},
        {
            "rain": other.cpts["rain"][::-1],
            "sprinkler": other.cpts["sprinkler"][::-1],
            "wet": other.cpts["wet"].transpose(1, 0, 2)[:, ::-1][:, :, [2, 0, 1]],
        },
    )
    for distance in (total_variation, total_variation_bound):
        assert distance(sprinkler, shuffled) == pytest.approx(distance(sprinkler, other))
    assert node_distances(sprinkler, shuffled) == pytest.approx(node_distances(sprinkler, other))


@pytest.mark.parametrize("share", [0.003, 0.1, 0.9])
def test_drawing_agrees_with_enumeration_and_knows_its_error(share):
    P = random_network("graph", 14, 60, (2, 3), random_state=1)
    Q = nudged(P, share)
    exact = total_variation(P, Q)
    assert exact.exact
    z = []
    for seed in range(40):
        drawn = total_variation(P, Q, method="monte_carlo", n_draws=20_000, random_state=seed)
        assert not drawn.exact
        assert drawn.low < drawn < drawn.high
        z.append((drawn - exact) / drawn.standard_error)
    assert abs(np.mean(z)) < 4 / np.sqrt(len(z))
    assert 0.7 < np.std(z) < 1.4


def test_drawing_is_seeded():
    P = random_network("tree", 60, random_state=0)
    Q = nudged(P, 0.01)
    one, same, other = (total_variation(P, Q, random_state=s, n_draws=10_000) for s in (0, 0, 1))
    assert one == same != other
    assert repr(one) == f"TotalVariation({float(one):.6g}, {one.low:.6g} to {one.high:.6g})"


def test_networks_of_different_structure_are_compared_by_the_joint_alone():
    P = random_network("graph", 14, 60, random_state=1)
    Q = random_network("tree", 14, random_state=2)
    exact = total_variation(P, Q)
    drawn = total_variation(P, Q, method="monte_carlo")
    assert abs(drawn - exact) < 5 * drawn.standard_error
    with pytest.raises(NetworkError, match=r"needs one structure: node 'X[0-9]+' has parents"):
        total_variation_bound(P, Q)
    with pytest.raises(NetworkError, match="needs one structure"):
        node_distances(P, Q)


def test_rows_ruled_out_by_one_network_are_counted_in_full():
    P = random_network("tree", 40, random_state=0)
    table = P.cpts["X0"]
    left = P.with_cpts({**P.cpts, "X0": [1.0, 0.0]})
    right = P.with_cpts({**P.cpts, "X0": [0.0, 1.0]})
    assert total_variation(left, right) == pytest.approx(1)
    assert total_variation(P, left) == pytest.approx(table[1], abs=0.01)


@settings(max_examples=50)
@given(networks(max_nodes=6, max_states=4, max_cells=200))
def test_the_bound_of_the_paper_bounds(network):
    for share in (0.01, 0.3, 1.0):
        other = nudged(network, share)
        assert total_variation(network, other) <= total_variation_bound(network, other) + 1e-12


def test_the_bound_for_two_states_is_the_formula_of_the_paper():
    P = random_network("graph", 10, 40, random_state=0)
    Q = nudged(P, 0.05)
    p, q = P.probabilities[1::2], Q.probabilities[1::2]
    pi = np.sqrt(configuration_probabilities(P) * configuration_probabilities(Q))
    paper = np.sqrt(2 * (pi * (p - q) ** 2 / ((p + q) * (2 - p - q))).sum())
    assert total_variation_bound(P, Q) == pytest.approx(paper)


def test_configuration_probabilities_by_drawing_agree_with_enumeration(monkeypatch):
    P = random_network("graph", 12, 60, (2, 3), random_state=4)
    exact = configuration_probabilities(P)
    monkeypatch.setattr("robustbn.distance.MAX_ENUMERATED_STATES", 1)
    n = 400_000
    drawn = configuration_probabilities(P, n_draws=n)
    error = np.abs(drawn - exact) / np.sqrt(exact * (1 - exact) / n + 1e-12)
    assert error.max() < 5


def test_a_node_is_as_far_as_its_table_in_the_configurations_that_happen(sprinkler):
    table = np.array(sprinkler.cpts["sprinkler"])
    table[1] = [0.49, 0.51]
    other = sprinkler.with_cpts({**sprinkler.cpts, "sprinkler": table})
    assert node_distances(sprinkler, other) == pytest.approx(
        {"wet": 0, "rain": 0, "sprinkler": 0.2 * 0.5}
    )


def test_other_nodes_or_states_are_refused(sprinkler, alarm):
    with pytest.raises(NetworkError, match="different nodes: only in the first"):
        total_variation(sprinkler, alarm)
    states = {**sprinkler.states, "rain": ["no", "si"]}
    with pytest.raises(NetworkError, match="'rain' has states"):
        total_variation(sprinkler, BayesianNetwork(sprinkler.parents, states, sprinkler.cpts))
    with pytest.raises(ValueError, match="joint states; at most 4,194,304"):
        total_variation(alarm, alarm, method="exact")
    with pytest.raises(ValueError, match="Unknown method"):
        total_variation(alarm, alarm, method="guess")
    with pytest.raises(ValueError, match="at least 4"):
        total_variation(alarm, alarm, n_draws=1)


def test_a_distance_is_a_float_and_survives_pickling():
    value = TotalVariation(0.1, 0.01, 100)
    copy = pickle.loads(pickle.dumps(value))  # noqa: S301
    assert copy == 0.1 == float(value)
    assert (copy.low, copy.exact, copy.n_draws) == (value.low, False, 100)
