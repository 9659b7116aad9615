"""An expert's tables as a prior: of use where they are right, outvoted where not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator
from robustbn._core.dirichlet import Expert, log_evidence
from robustbn.exceptions import SettingError
from tests.commands import as_json, call

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
]
ESTIMATORS = (MaximumLikelihoodEstimator, RobustEstimator)
COINS = BayesianNetwork(
    {"a": [], "b": ["a"]},
    {"a": ["no", "yes"], "b": ["low", "mid", "high"]},
    {"a": [0.25, 0.75], "b": [[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]},
)


def spread(network, cells):
    """Return tables with probabilities in proportion to the cells of each configuration."""
    layout = network.layout
    return network.with_cpts(cells / layout.sum_configurations(cells)[layout.config_of_cell])


def near(network, seed, within=0.05):
    """Return an expert none of whose probabilities is off by more than so much, before scaling."""
    noise = np.random.default_rng(seed).uniform(-within, within, network.n_cells)
    return spread(network, np.clip(network.probabilities + noise, 0, None) + 1e-12)


def wrong(network, seed):
    """Return an expert who knows nothing of the network and is sure of it."""
    return spread(network, np.random.default_rng(seed).gamma(0.5, size=network.n_cells) + 1e-6)


def error(network, learned, rows):
    """Return the mean over nodes of the distance of tables, by how often configurations occur."""
    layout = network.layout
    seen = layout.sum_configurations(MaximumLikelihoodEstimator(network).fit(rows).counts_)
    apart = layout.sum_configurations(np.abs(learned.probabilities - network.probabilities)) / 2
    return float(seen @ apart) / len(rows) / network.n_nodes


@pytest.fixture(scope="module", params=["alarm", "tree"])
def network(request):
    if request.param == "alarm":
        return robustbn.example_network("alarm")
    return robustbn.random_network("tree", 50, random_state=1)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_with_fifty_rows_a_good_expert_leaves_at_most_six_tenths_of_the_error(network, estimator):
    test, ratios = robustbn.sample(network, 100_000, random_state=99), []
    for seed in range(4):
        rows, expert = robustbn.sample(network, 50, random_state=seed), near(network, seed)
        alone = estimator(network).fit(rows).network_
        both = estimator(network, prior=expert, equivalent_rows=50).fit(rows).network_
        ratios.append(error(network, both, test) / error(network, alone, test))
    assert max(ratios) <= 0.6


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_with_many_rows_a_wrong_expert_costs_at_most_two_percent(network, estimator):
    test = robustbn.sample(network, 100_000, random_state=99)
    for seed in range(2):
        rows = robustbn.sample(network, 50_000, random_state=seed)
        alone = estimator(network).fit(rows).network_
        expert = wrong(network, seed)
        both = estimator(network, prior=expert, equivalent_rows=50).fit(rows).network_
        assert error(network, both, test) <= 1.02 * error(network, alone, test)


def test_the_rows_of_an_expert_are_added_to_every_configuration():
    added = MaximumLikelihoodEstimator(COINS, prior=COINS, equivalent_rows=40).fit([[1, 2]])
    expert = added._expert(COINS)
    np.testing.assert_allclose(expert.added(COINS.layout), 40 * COINS.probabilities)
    by_node = MaximumLikelihoodEstimator(COINS, prior=COINS, equivalent_rows={"b": [8, 0]})
    assert by_node._expert(COINS).rows.tolist() == [50, 8, 0]
    assert by_node.fit([[1, 2]]).network_.cpts["b"][1].tolist() == [0, 0, 1]
    assert by_node.network_.cpts["b"][0].tolist() == [0.5, 0.25, 0.25]


def test_a_table_that_the_expert_left_empty_is_flat():
    tables = {"a": [0.25, 0.75], "b": [[np.nan] * 3, [0.125, 0.125, 0.75]]}
    half = BayesianNetwork(COINS.parents, COINS.states, tables)
    learned = MaximumLikelihoodEstimator(COINS, prior=half).fit([[1, 2]])
    np.testing.assert_allclose(learned.network_.cpts["b"][0], 1 / 3)
    assert learned._expert(COINS).rows.tolist() == [50, 0, 50]
    assert set(learned.expert_tables()["parents"]) == {"", "a=yes"}


def test_an_expert_may_name_nodes_parents_and_states_in_another_order():
    wet = BayesianNetwork(
        {"c": ["a", "b"], "a": [], "b": []},
        {"a": [0, 1], "b": ["x", "y", "z"], "c": ["n", "y"]},
        {
            "a": [0.3, 0.7],
            "b": [0.2, 0.3, 0.5],
            "c": np.arange(1, 7).reshape(2, 3)[..., None] / 8 @ [[1, -1]] + [0, 1],
        },
    )
    other = BayesianNetwork(
        {"b": [], "a": [], "c": ["b", "a"]},
        {"a": [1, 0], "b": ["z", "x", "y"], "c": ["y", "n"]},
        {
            "a": [0.7, 0.3],
            "b": [0.5, 0.2, 0.3],
            "c": wet.cpts["c"].transpose(1, 0, 2)[np.ix_([2, 0, 1], [1, 0], [1, 0])],
        },
    )
    expert = MaximumLikelihoodEstimator(wet, prior=other)._expert(wet)
    np.testing.assert_array_equal(expert.tables, wet.probabilities)


def test_evidence_is_the_probability_of_the_rows_one_after_the_other():
    layout, added = COINS.layout, 5 * COINS.probabilities
    counts = np.array([2.0, 1, 0, 0, 3, 1, 0, 2])
    found = log_evidence(layout, counts, added)
    for k, first in enumerate(layout.first_cell_of_config.tolist()):
        cells, log_p = added[first : first + int(layout.config_cards[k])].copy(), 0.0
        for v in range(len(cells)):
            for _ in range(int(counts[first + v])):
                log_p += np.log(cells[v] / cells.sum())
                cells[v] += 1
        np.testing.assert_allclose(found[k], log_p)


def test_a_right_expert_is_contradicted_in_one_of_a_hundred_fits_at_most():
    rng, layout = np.random.default_rng(0), COINS.layout
    expert, n_wrong = Expert(COINS.probabilities, np.full(3, 20.0)), 0
    for _ in range(400):  # rows of a truth that is drawn as the expert is sure of it
        drawn = rng.gamma(20 * COINS.probabilities)
        truth = drawn / layout.sum_configurations(drawn)[layout.config_of_cell]
        seen = [rng.multinomial(200, each) for each in (truth[:2], truth[2:5], truth[5:])]
        against = expert.nats_against(layout, np.concatenate(seen).astype(float))
        n_wrong += bool((3 * np.exp(-against) <= 0.01).any())
    assert n_wrong <= 4


def test_where_the_rows_contradict_the_expert_is_told_and_shown():
    tables = {"a": [0.25, 0.75], "b": [[0.5, 0.25, 0.25], [0.9, 0.05, 0.05]]}
    expert = BayesianNetwork(COINS.parents, COINS.states, tables)
    rows = robustbn.sample(COINS, 5_000, random_state=0)
    fit = RobustEstimator(COINS, prior=expert, random_state=0).fit(rows)
    lines = fit.expert_tables()
    assert list(lines["parents"][:3]) == ["a=yes"] * 3
    assert lines["p_value"][0] < 1e-6
    assert lines["p_value"][3] == 1
    np.testing.assert_allclose(lines["expert"][:3], [0.9, 0.05, 0.05])
    np.testing.assert_allclose(lines["learned"][:3], lines["counted"][:3], atol=1e-6)
    page = fit.report()
    assert "The expert and the rows" in page
    assert "contradict the expert in 1 of 3 configurations, most clearly b given a=yes" in page
    assert "expert" not in RobustEstimator(COINS).fit(rows).report().split("<main")[1]


def test_an_expert_is_kept_in_the_model_file(tmp_path):
    tables = {"a": [0.25, 0.75], "b": [[np.nan] * 3, [0.9, 0.05, 0.05]]}
    expert = BayesianNetwork(COINS.parents, COINS.states, tables)
    rows = robustbn.sample(COINS, 300, random_state=0)
    for estimator in ESTIMATORS:
        fit = estimator(COINS, prior=expert, equivalent_rows={"b": np.array([3, 9.0])}).fit(rows)
        fit.save(tmp_path / "m.json")
        again = estimator.load(tmp_path / "m.json")
        assert again.prior == expert
        for name, column in fit.expert_tables().items():
            np.testing.assert_array_equal(again.expert_tables()[name], column)


@pytest.mark.parametrize(
    ("prior", "rows", "message"),
    [
        (COINS.with_cpts(None), 50, "no tables"),
        (BayesianNetwork({"a": []}, {"a": ["no", "yes"]}, {"a": [0.5, 0.5]}), 50, "'b' is not in"),
        (robustbn.random_network("tree", 5, random_state=0), 50, "'a' is not in the prior"),
        (
            BayesianNetwork(
                {"a": [], "b": []}, COINS.states, {"a": [0.5, 0.5], "b": [0.5, 0.25, 0.25]}
            ),
            50,
            r"'b' has the parents \[\] in the prior; expected \['a'\]",
        ),
        (
            BayesianNetwork({"a": [], "b": ["a"]}, {**COINS.states, "a": [0, 1]}, COINS.cpts),
            50,
            r"'a' has the states \[0, 1\] in the prior",
        ),
        (COINS, -1, "at least 0; found -1"),
        (COINS, float("nan"), "found nan"),
        (COINS, float("inf"), "found inf"),
        (COINS, True, "found True"),
        (COINS, "many", "found 'many'"),
        (COINS, {"c": 3}, "names 'c', which is not a node"),
        (COINS, {"b": -3}, r"equivalent_rows\['b'\]"),
        (COINS, {"b": [1, 2, 3]}, r"shape \(2,\); found \[1, 2, 3\]"),
        (COINS, {"b": [1, np.nan]}, r"shape \(2,\)"),
        ({"a": 1}, 50, "prior is a word, a number, a BayesianNetwork or None"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused_by_name(prior, rows, message):
    for estimator in ESTIMATORS:
        with pytest.raises(SettingError, match=message):
            estimator(COINS, prior=prior, equivalent_rows=rows).fit([[0, 0], [1, 2]])
    with pytest.raises(SettingError, match="This fit has no expert's tables"):
        MaximumLikelihoodEstimator(COINS).fit([[0, 0]]).expert_tables()


def test_fit_takes_the_path_of_an_expert(tmp_path):
    COINS.write(tmp_path / "expert.bif")
    rows = robustbn.sample(COINS, 200, random_state=0)
    by_path = robustbn.fit(COINS, rows, prior=tmp_path / "expert.bif", random_state=0)
    assert by_path.prior == COINS
    text = robustbn.fit(COINS, rows, prior=str(tmp_path / "expert.bif"), random_state=0)
    assert text.network_ == by_path.network_


def test_the_command_takes_an_expert_and_tells_of_contradictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables = {"a": [0.25, 0.75], "b": [[0.5, 0.25, 0.25], [0.9, 0.05, 0.05]]}
    BayesianNetwork(COINS.parents, COINS.states, tables).write("expert.bif")
    COINS.write("net.bif")
    call("sample", "net.bif", "-n", 3000, "-o", "rows.csv")
    told = as_json("fit", "net.bif", "rows.csv", "--prior", "expert.bif")["expert"]
    assert told["configurations"] == 3
    assert told["contradicted"] == 1
    assert {line["parents"] for line in told["cells"]} == {"a=yes"}
    (tmp_path / "rows.json").write_text(json.dumps({"a": 10, "b": [5, 0]}))
    told = as_json(
        "fit", "net.bif", "rows.csv", "--prior", "expert.bif", "--equivalent-rows", "@rows.json"
    )["expert"]
    assert told["configurations"] == 2
    assert told["contradicted"] == 0
    several = ["--equivalent-rows", "a=1", "--equivalent-rows", "b=2"]
    assert as_json("fit", "net.bif", "rows.csv", "--prior", "expert.bif", *several)["expert"]
    assert call("fit", "net.bif", "rows.csv", "--equivalent-rows", 5, code=2)
    assert call("fit", "net.bif", "rows.csv", "--prior", "missing.bif", code=3)
    assert call("fit", "net.bif", "rows.csv", "--prior", "net.bif", "--equivalent-rows", "x",
                code=2)  # fmt: skip
