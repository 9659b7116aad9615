"""The estimators are scikit-learn's citizens."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import robustbn
from robustbn import MaximumLikelihoodEstimator, RobustEstimator
from robustbn.exceptions import DataError
from robustbn.simulate import corrupt

NO_QUOTA = "contamination is an upper limit: clean rows are all trusted, there is no quota to fill"
EXCUSED = {
    "check_outliers_train": NO_QUOTA,
    "check_outliers_fit_predict": NO_QUOTA,
}


def _excused(estimator):
    return EXCUSED if isinstance(estimator, RobustEstimator) else {}


with warnings.catch_warnings():  # that we do not inherit from it: `import robustbn` stays light
    warnings.filterwarnings("ignore", "Estimator .* does not inherit")
    every_check = parametrize_with_checks(
        [RobustEstimator(bins=8, contamination=0.1), MaximumLikelihoodEstimator(bins=8)],
        expected_failed_checks=_excused,
    )


@pytest.mark.filterwarnings("ignore")
@every_check
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def tree():
    return robustbn.random_network("tree", 20, cards=2, random_state=0)


@pytest.fixture(scope="module")
def frame(tree):
    rows = robustbn.sample(tree, 6000, random_state=0)
    dirty, _ = corrupt(rows, tree, "product", eps=0.1, random_state=1)
    labels = {n: np.array(tree.states[n], object)[dirty[:, k]] for k, n in enumerate(tree.nodes)}
    return pd.DataFrame(labels)


def test_a_pipeline_with_an_encoder_gives_the_same_tables(tree, frame):
    encoder = OrdinalEncoder(categories=[list(tree.states[n]) for n in tree.nodes])
    pipeline = make_pipeline(encoder, RobustEstimator(tree, random_state=0)).fit(frame)
    straight = RobustEstimator(tree, random_state=0).fit(frame)
    assert pipeline[-1].network_ == straight.network_
    np.testing.assert_array_equal(pipeline.predict(frame), straight.predict(frame))


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.ConvergenceWarning")  # 1 % is too low
def test_a_search_over_contamination_scores_held_out_rows(tree, frame):
    settings = {"contamination": [0.01, 0.1]}
    estimator = RobustEstimator(tree, random_state=0, prior="laplace")
    search = GridSearchCV(estimator, settings, cv=2).fit(frame)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(frame) == pytest.approx(
        search.best_estimator_.log_likelihood(frame) / len(frame)
    )


def test_clones_have_the_settings_and_nothing_learned(tree, frame):
    fitted = RobustEstimator(tree, contamination=0.2, random_state=3).fit(frame)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "network_")


@pytest.mark.parametrize("kind", [RobustEstimator, MaximumLikelihoodEstimator])
def test_fitted_estimators_can_be_pickled(tree, frame, kind):
    fitted = kind(tree).fit(frame)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own bytes
    assert again.network_ == fitted.network_
    np.testing.assert_array_equal(again.score_samples(frame), fitted.score_samples(frame))


def test_columns_are_remembered_by_name(tree, frame):
    fitted = RobustEstimator(tree, random_state=0).fit(frame)
    assert list(fitted.feature_names_in_) == list(tree.nodes)
    assert fitted.n_features_in_ == 20
    np.testing.assert_array_equal(fitted.predict(frame[frame.columns[::-1]]), fitted.predict(frame))
    fitted.fit(robustbn.sample(tree, 2000, random_state=0))
    assert not hasattr(fitted, "feature_names_in_")


def test_a_continuous_column_is_refused_with_advice():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(50, 10, 1000), "sex": rng.integers(0, 2, 1000)})
    with pytest.raises(DataError, match=r"'age'.*1,000 different values.*bins="):
        RobustEstimator().fit(rows)
    fitted = MaximumLikelihoodEstimator(bins="q4").fit(rows)
    np.testing.assert_allclose(fitted.network_.cpts["age"], 0.25, atol=0.01)


def test_weights_are_routed_to_the_fit(tree, frame):
    weight = np.random.default_rng(0).random(len(frame)) + 0.5
    straight = MaximumLikelihoodEstimator(tree).fit(frame, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = MaximumLikelihoodEstimator(tree).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(estimator).fit(frame, sample_weight=weight)
        assert pipeline[-1].network_ == straight.network_
        asked = clone(estimator).get_metadata_routing().fit.requests
        assert asked == {"sample_weight": True}


def test_decisions_agree_with_weights(tree, frame):
    fitted = RobustEstimator(tree, random_state=0).fit(frame)
    is_out = fitted.weights(frame) < 0.5
    assert is_out.any()
    np.testing.assert_array_equal(fitted.predict(frame) == -1, is_out)
    np.testing.assert_array_equal(fitted.decision_function(frame) < 0, is_out)
    np.testing.assert_array_equal(
        RobustEstimator(tree, random_state=0).fit_predict(frame) == -1, fitted.row_weights_ < 0.5
    )
