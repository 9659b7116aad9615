"""Tables as distributions: parameters, intervals that hold the truth, networks drawn, answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator
from robustbn._core.dirichlet import beta_quantile
from robustbn._networks import libraries
from robustbn._show.posterior import worth_of_rows
from robustbn.adversary import corrupt
from robustbn.exceptions import MissingDependencyError, NetworkError, SettingError

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
]


def test_quantiles_are_those_of_beta_distributions():
    rng = np.random.default_rng(0)
    a, b = np.exp(rng.uniform(np.log(0.05), np.log(1e6), (2, 500)))
    for level in (0.025, 0.5, 0.975):
        found = beta_quantile(level, a, b)
        np.testing.assert_allclose(found, beta.ppf(level, a, b), atol=1e-4)


def test_parameters_are_the_counts_and_the_prior(sprinkler):
    rows = robustbn.sample(sprinkler, 500, random_state=0)
    for estimator in (MaximumLikelihoodEstimator, RobustEstimator):
        for prior, added in ((None, 0.5), (2, 2.0)):
            fit = estimator(sprinkler, prior=prior).fit(rows)
            posterior = fit.posterior()
            assert list(posterior) == list(sprinkler.nodes)
            assert posterior["wet"].shape == sprinkler.cpts["wet"].shape
            flat = np.concatenate([posterior[node].ravel() for node in sprinkler.nodes])
            np.testing.assert_allclose(flat, fit.counts_ + added)


@pytest.mark.parametrize("way", ["none", "network", "product"])
def test_intervals_hold_the_truth_in_93_to_97_of_100_cases(way):
    held = []
    for seed in range(3):
        network = robustbn.random_network("graph", 40, 160, random_state=seed)
        rows = robustbn.sample(network, 20_000, random_state=seed)
        if way != "none":
            rows, _ = corrupt(rows, network, way, eps=0.1, random_state=seed)
        low, high = RobustEstimator(network, random_state=0).fit(rows).posterior().limits()
        held.append((low <= network.probabilities) & (network.probabilities <= high))
    assert 0.93 <= np.concatenate(held).mean() <= 0.97


def test_doubt_about_rows_makes_them_worth_less_and_is_kept_in_the_file(tmp_path):
    network = robustbn.random_network("graph", 12, 30, random_state=0)
    rows = robustbn.sample(network, 20_000, random_state=0)
    dirty, _ = corrupt(rows, network, "mixture", eps=0.1, random_state=0)
    fit = RobustEstimator(network, random_state=0).fit(dirty)
    weights = fit.row_weights_.astype(float)
    assert (weights * (1 - weights)).sum() > 100  # there is doubt
    layout = network.layout
    trusted = layout.sum_configurations(fit.counts_)
    worth = np.array(
        [table.sum() for table in np.split(fit.posterior()._rows, layout.config_start[1:-1])]
    )
    assert (worth < np.add.reduceat(trusted, layout.config_start[:-1])).all()
    fit.save(tmp_path / "m.json")
    again = RobustEstimator.load(tmp_path / "m.json").posterior()
    for node, parameters in fit.posterior().items():
        np.testing.assert_allclose(again[node], parameters)
    drawn = layout.sum_configurations(fit._load(fit._encode(dirty)).count(weights * (1 - weights)))
    np.testing.assert_allclose(fit.result_.doubt.sum(), drawn.sum(), rtol=0.05)


def test_a_group_that_may_be_good_or_bad_widens_the_intervals():
    network = robustbn.random_network("tree", 40, random_state=0)
    rows = robustbn.sample(network, 20_000, random_state=0)
    dirty, _ = corrupt(rows, network, "product", eps=0.1, random_state=0)
    fit = RobustEstimator(network, random_state=0).fit(dirty)
    learned = fit.result_.learned
    assert learned.model.n_others
    unsure = replace(
        learned, model=replace(learned.model, kept=np.full(learned.model.n_others, 0.4))
    )
    sure = replace(learned, model=replace(learned.model, kept=np.zeros(learned.model.n_others)))
    less, more = (worth_of_rows(fit.network_, each, fit.result_.doubt) for each in (unsure, sure))
    assert (less <= more + 1e-9).all()
    assert less.sum() < 0.5 * more.sum()


def test_inferred_cells_are_worth_nothing():
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": [0, 1], "b": [0, 1]})
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": [0, None, 1, 1] * 25})
    fit = MaximumLikelihoodEstimator(network).fit(frame)
    rows = fit.posterior().intervals("b")["rows"]
    assert rows.tolist() == [50, 50, 25, 25]
    assert fit.posterior()["a"].sum() == 101


def test_intervals_are_a_frame_of_the_kind_of_the_table(sprinkler):
    codes = robustbn.sample(sprinkler, 500, random_state=0)
    labels = {n: np.array(sprinkler.states[n])[codes[:, i]] for i, n in enumerate(sprinkler.nodes)}
    fit = RobustEstimator(sprinkler).fit(pd.DataFrame(labels))
    found = fit.posterior().intervals()
    assert isinstance(found, pd.DataFrame)
    assert list(found) == ["node", "parents", "state", "probability", "low", "high", "rows"]
    assert (found["low"] <= found["probability"]).all()
    assert (found["probability"] <= found["high"]).all()
    wider = fit.posterior().intervals("rain", level=0.99)
    assert (wider["high"] > found[found["node"] == "rain"]["high"].to_numpy()).all()
    assert 'id="intervals"' in fit.report()
    with pytest.raises(SettingError, match="between 0 and 1"):
        fit.posterior().intervals(level=1)
    with pytest.raises(NetworkError, match="no node 'x'"):
        fit.posterior().intervals("x")


def test_only_without_a_prior_does_an_interval_reach_0_or_1():
    coin = BayesianNetwork({"a": []}, {"a": [0, 1]}, {"a": [0.6, 0.4]})
    alone = MaximumLikelihoodEstimator(coin).fit([[0], [0], [0]]).posterior()
    assert (alone.limits()[1][0], alone.limits()[0][1]) == (1, 0)
    known = MaximumLikelihoodEstimator(coin, prior=coin).fit([[0], [0], [0]]).posterior()
    assert 0.4 < known.limits()[0][0] < 0.6 < known.limits()[1][0] < 0.8


def test_networks_are_drawn_around_the_learned_one(sprinkler):
    fit = MaximumLikelihoodEstimator(sprinkler, prior=1).fit(robustbn.sample(sprinkler, 2_000, 0))
    drawn = fit.posterior().sample(400, random_state=0)
    tables = np.array([network.probabilities for network in drawn])
    posterior = np.concatenate([table.ravel() for table in fit.posterior().values()])
    layout = sprinkler.layout
    total = layout.sum_configurations(posterior)[layout.config_of_cell]
    mean = posterior / total
    spread = np.sqrt(mean * (1 - mean) / (total + 1))
    np.testing.assert_allclose(tables.mean(axis=0), mean, atol=4 * spread.max() / 20)
    np.testing.assert_allclose(tables.std(axis=0), spread, rtol=0.15)
    assert (
        fit.posterior().sample(1, random_state=3)[0] == fit.posterior().sample(2, random_state=3)[0]
    )


@pytest.mark.parametrize("library", ["pyagrum", "pgmpy"])
def test_an_answer_has_an_interval(sprinkler, library):
    pytest.importorskip(library)
    fit = MaximumLikelihoodEstimator(sprinkler).fit(robustbn.sample(sprinkler, 3_000, 0))
    posterior, evidence = fit.posterior(), {"wet": sprinkler.states["wet"][1]}
    found = posterior.query("rain", evidence, n=40, library=library)
    assert list(found["state"]) == list(sprinkler.states["rain"])
    np.testing.assert_allclose(sum(found["probability"]), 1)
    joint = np.zeros(2)
    codes = robustbn.sample(fit.network_, 400_000, random_state=1)
    wet, rain = (codes[:, sprinkler.nodes.index(n)] for n in ("wet", "rain"))
    joint = np.bincount(rain[wet == 1], minlength=2) / (wet == 1).sum()
    np.testing.assert_allclose(found["probability"], joint, atol=0.01)
    assert (np.asarray(found["low"]) < np.asarray(found["probability"])).all()
    assert (np.asarray(found["probability"]) < np.asarray(found["high"])).all()


def test_questions_that_cannot_be_answered_are_refused(sprinkler, monkeypatch):
    posterior = (
        MaximumLikelihoodEstimator(sprinkler).fit(robustbn.sample(sprinkler, 100, 0)).posterior()
    )
    for node, evidence, message in (
        ("x", {}, "no node 'x'"),
        ("rain", {"y": "no"}, "no node 'y'"),
        ("rain", {"wet": "maybe"}, "'wet' has no state 'maybe'"),
        ("rain", {"rain": "no"}, "given as evidence"),
    ):
        with pytest.raises(NetworkError, match=message):
            posterior.query(node, evidence)
    with pytest.raises(SettingError, match="library is one of"):
        posterior.query("rain", library="bnlearn")
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pyagrum or pgmpy"):
        posterior.query("rain")
