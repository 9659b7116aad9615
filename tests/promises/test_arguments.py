"""Wrong arguments get our errors, which name what was found and what to do."""

import re

import numpy as np
import pytest

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator
from robustbn.exceptions import RobustBNError
from robustbn.simulate import corrupt

NETWORK = robustbn.random_network("tree", 3, random_state=0)
ROWS = robustbn.sample(NETWORK, 200, random_state=0)
EDGES = [("a", "b")]
STATES = {"a": ["x", "y"], "b": ["u", "v"]}
FRAME = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}


@pytest.fixture(scope="module")
def fitted():
    return robustbn.fit(NETWORK, ROWS, random_state=0)


def refused(call, said):
    with pytest.raises(RobustBNError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: robustbn.fit(FRAME, NETWORK), r"The network comes first, then the table"),
        (lambda: robustbn.fit(ROWS, NETWORK), r"found ndarray as the network"),
        (lambda: RobustEstimator(NETWORK).fit(NETWORK), r"found BayesianNetwork"),
        (lambda: robustbn.read_table(NETWORK, FRAME), r"swapped: call read_table\(table, network"),
        (lambda: robustbn.sample(10, NETWORK), r"swapped: call sample\(network, n\)"),
        (lambda: robustbn.write_network("x.bif", NETWORK), r"swapped: call write_network\(network"),
        (lambda: corrupt(NETWORK, ROWS, "mixture", 0.1), r"swapped: call corrupt\(X, network"),
        (lambda: BayesianNetwork.from_edges(STATES, EDGES), r"come before the states; found dict"),
        (lambda: robustbn.states_from(EDGES, FRAME), r"no named columns"),
        (lambda: robustbn.random_network(5, "tree"), r"Unknown kind 5"),
    ],
)
def test_swapped_arguments_are_told(call, said):
    refused(call, said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: BayesianNetwork(EDGES, STATES), r"found list.*from_edges\(edges, states\)"),
        (lambda: BayesianNetwork(EDGES), r"BayesianNetwork needs states: call BayesianNetwork\("),
        (lambda: RobustEstimator(EDGES).fit(FRAME), r"found list.*robustbn.fit also accepts"),
        (lambda: MaximumLikelihoodEstimator(EDGES).fit(FRAME), r"found list"),
        (lambda: robustbn.read_table(FRAME, EDGES), r"found list. For a list of edges"),
        (lambda: robustbn.sample(EDGES, 10), r"found list. For a list of edges"),
        (lambda: robustbn.total_variation(EDGES, NETWORK), r"needs a BayesianNetwork; found list"),
        (lambda: robustbn.read_network(EDGES), r"needs the path of a file; found list"),
        (lambda: robustbn.fit(["a", "b"], FRAME), r"Did you mean \[\('a', 'b'\)\]"),
        (lambda: robustbn.draft(EDGES), r"no named columns"),
    ],
)
def test_a_list_of_edges_in_the_place_of_a_network_is_told(call, said):
    refused(call, said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: RobustEstimator({"b": ["a"]}).fit(FRAME), r"found dict"),
        (lambda: BayesianNetwork.from_edges({"a": "b"}, STATES), r"found dict"),
        (lambda: BayesianNetwork({"a": []}, [("a", ["x"])]), r"`states` must be a mapping"),
        (lambda: BayesianNetwork(None, None), r"`parents` must be a mapping.*found NoneType"),
        (lambda: NETWORK.with_cpts(3), r"`cpts` must map nodes to tables; found int"),
        (lambda: robustbn.read_network({"a": 1}), r"found dict"),
        (lambda: robustbn.compare({}, {}), r"needs the path of a file; found dict"),
        (lambda: robustbn.compare(NETWORK, NETWORK), r"use total_variation\(P, Q\)"),
        (lambda: robustbn.robust_mean({"a": [1, 2]}), r"X must be a matrix"),
        (lambda: robustbn.fit(NETWORK, None), r"A table is a data frame.*found NoneType"),
        (lambda: robustbn.fit(None, FRAME), r"found NoneType as the network"),
        (lambda: RobustEstimator.load(3), r"load\(path\) needs the path of a file; found int"),
        (lambda: NETWORK.write(3), r"needs the path of a file; found int"),
        (lambda: robustbn.sample("net.bif", 10), r"Read the file with read_network\(path\)"),
    ],
)
def test_a_value_of_another_kind_is_told_by_its_type(call, said):
    refused(call, said)


@pytest.mark.parametrize(
    ("call", "near"),
    [
        (lambda: robustbn.fit(NETWORK, ROWS, contaminaton=0.1), "contamination"),
        (lambda: RobustEstimator(NETWORK, contaminaton=0.1), "contamination"),
        (lambda: RobustEstimator(NETWORK).set_params(contaminaton=0.1), "contamination"),
        (lambda: RobustEstimator(NETWORK).fit(ROWS, sample_weigth=1), "sample_weight"),
        (lambda: MaximumLikelihoodEstimator(NETWORK, pior=1), "prior"),
        (lambda: MaximumLikelihoodEstimator(NETWORK).fit(ROWS, sampleweight=1), "sample_weight"),
        (lambda: BayesianNetwork(EDGES, STATES, cpt={}), "cpts"),
        (lambda: BayesianNetwork.from_edges(EDGES, state=STATES), "states"),
        (lambda: robustbn.read_table(FRAME, NETWORK, on_unkown="drop"), "on_unknown"),
        (lambda: robustbn.read_network("x.bif", state={}), "states"),
        (lambda: robustbn.write_network(NETWORK, "x.bif", fromat="bif"), "format"),
        (lambda: robustbn.sample(NETWORK, 10, random_sate=0), "random_state"),
        (lambda: robustbn.states_from(FRAME, EDGES, most_state=3), "most_states"),
        (lambda: robustbn.draft(FRAME, forbidd=[]), "forbid"),
        (lambda: robustbn.compare("a", "b", comon=True), "common"),
        (lambda: robustbn.total_variation(NETWORK, NETWORK, metod="exact"), "method"),
        (lambda: robustbn.robust_mean(np.eye(5), contaminaton=0.1), "contamination"),
        (lambda: robustbn.random_network("tree", 5, random_sate=1), "random_state"),
        (lambda: robustbn.unroll(FRAME, lag=2), "lags"),
        (lambda: corrupt(ROWS, NETWORK, "mixture", epps=0.1), "eps"),
    ],
)
def test_a_misspelt_setting_is_answered_with_the_nearest(call, near):
    refused(call, re.escape(f"Did you mean '{near}'?"))


def test_missing_and_surplus_arguments_are_told_with_the_right_call():
    refused(lambda: robustbn.fit(NETWORK), r"fit\(\) needs table: call fit\(network, table\)")
    refused(lambda: RobustEstimator(NETWORK).fit(), r"needs X: call RobustEstimator.fit\(X\)")
    refused(lambda: robustbn.fit(NETWORK, ROWS, 0.1, 0.2), r"at most 3 arguments by position")


def test_wrong_arguments_of_a_fit_are_told(fitted):
    refused(lambda: fitted.ask("x"), "n must be a whole number of rows")
    refused(lambda: fitted.decide(bad="x"), "numbers of groups")
    refused(lambda: fitted.save(3), r"save\(path\) needs the path of a file; found int")
    refused(lambda: robustbn.total_variation(fitted, NETWORK), "Give the network_ of the fitted")


def test_a_fitted_estimator_shows_what_it_found(fitted):
    assert repr(fitted).endswith("fitted to 200 rows, 0.0% of their weight distrusted")
    assert "fitted" not in repr(RobustEstimator(NETWORK))
    assert repr(MaximumLikelihoodEstimator(NETWORK).fit(ROWS)).endswith("fitted to 200 rows")
