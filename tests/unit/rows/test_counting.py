from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given

from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, sample
from robustbn.exceptions import (
    CodeRangeError,
    DataError,
    NotFittedError,
    UnseenConfigurationWarning,
)
from tests.strategies import networks_with_rows

pytestmark = pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")

CHAIN = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["n", "y"], "b": ["lo", "mid", "hi"]})
ROWS = np.array([[0, 0], [0, 1], [0, 1], [0, 2]], dtype=np.uint8)


@pytest.fixture(params=["native", "numpy"])
def kernels(request):
    return request.param


def fit(X=ROWS, network=CHAIN, **settings):
    weight = settings.pop("sample_weight", None)
    return MaximumLikelihoodEstimator(network, **settings).fit(X, sample_weight=weight)


def test_tables_are_relative_frequencies(kernels):
    net = fit(kernels=kernels).network_
    assert net.cpts["a"].tolist() == [1, 0]
    assert net.cpts["b"].tolist() == [[0.25, 0.5, 0.25], [1 / 3, 1 / 3, 1 / 3]]


def test_an_unseen_configuration_is_uniform_listed_and_warned_of(kernels):
    with pytest.warns(UnseenConfigurationWarning, match="1 of 3 .* uniform.*'b' given a='y'"):
        fitted = fit(kernels=kernels)
    assert fitted.unseen_configurations_ == [("b", {"a": "y"})]


def test_nothing_is_warned_of_when_all_is_seen():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = fit(np.vstack([ROWS, [[1, 0]]]))
    assert fitted.unseen_configurations_ == []


def test_laplace_adds_to_every_cell():
    net = fit(prior="laplace", pseudo_count=0.5).network_
    np.testing.assert_allclose(net.cpts["a"], [4.5 / 5, 0.5 / 5])
    np.testing.assert_allclose(net.cpts["b"][0], [1.5 / 5.5, 2.5 / 5.5, 1.5 / 5.5])


def test_bdeu_spreads_the_same_sample_size_over_every_table():
    net = fit(prior="BDeu", equivalent_sample_size=6).network_
    np.testing.assert_allclose(net.cpts["a"], [7 / 10, 3 / 10])
    np.testing.assert_allclose(net.cpts["b"], [[2 / 7, 3 / 7, 2 / 7], [1 / 3] * 3])


def test_weights_count_as_repeated_rows(kernels):
    twice = fit(np.repeat(ROWS, [1, 2, 0, 3], axis=0), kernels=kernels)
    weighted = fit(sample_weight=[1, 2, 0, 3], kernels=kernels)
    assert weighted.network_ == twice.network_
    np.testing.assert_array_equal(weighted.counts_, twice.counts_)


@given(networks_with_rows(max_rows=300))
def test_the_log_likelihood_is_that_of_the_rows(case):
    network, codes, _ = case
    if not len(codes):
        return
    fitted = fit(codes, network)
    by_row = fitted.score_samples(codes)
    direct = np.zeros(len(codes))
    for node in network.nodes:
        family = [network.nodes.index(n) for n in (*network.parents[node], node)]
        direct += np.log(fitted.network_.cpts[node][tuple(codes[:, family].T)])
    np.testing.assert_allclose(by_row, direct, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(fitted.log_likelihood(codes), direct.sum(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fitted.score(codes), direct.mean(), rtol=1e-9, atol=1e-9)


def test_an_impossible_row_has_log_likelihood_minus_infinity(kernels):
    fitted = fit(kernels=kernels)
    assert fitted.log_likelihood([[1, 0]]) == -np.inf
    assert fitted.score_samples([[1, 0], [0, 1]]).tolist() == pytest.approx([-np.inf, np.log(0.5)])


def test_many_rows_bring_the_tables_back(alarm):
    fitted = fit(sample(alarm, 300_000, 0), alarm)
    counts = alarm.layout.sum_configurations(fitted.counts_)[alarm.layout.config_of_cell]
    seen = counts > 0
    p = alarm.probabilities[seen]
    z = (fitted.network_.probabilities[seen] - p) / np.sqrt(p * (1 - p) / counts[seen] + 1e-12)
    assert np.abs(z).max() < 5


@given(networks_with_rows(max_rows=200))
def test_the_order_of_rows_does_not_matter(case):
    network, codes, weights = case
    if not weights.any():
        return
    shuffle = np.random.default_rng(0).permutation(len(codes))
    one = fit(codes, network, sample_weight=weights).network_.probabilities
    other = fit(codes[shuffle], network, sample_weight=weights[shuffle]).network_.probabilities
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16", "bool", "float32"])
def test_whole_numbers_of_any_type_are_codes(dtype):
    binary = BayesianNetwork({"a": [], "b": ["a"]}, {"a": [0, 1], "b": [0, 1]})
    X = np.array([[0, 0], [0, 1], [1, 1]])
    assert fit(X.astype(dtype), binary).network_ == fit(X.astype("uint8"), binary).network_


def test_uint8_rows_are_not_copied():
    from robustbn._tables.coded import as_codes

    codes = np.zeros((10, 2), np.uint8)[::2]
    assert as_codes(codes, CHAIN) is codes


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 2), np.uint8), r"no rows \(N = 0\)"),
        (np.zeros((3, 5), np.uint8), "5 columns; the network has 2 nodes.*'a', 'b'"),
        (np.zeros(3, np.uint8), r"shape \(rows, 2\); found 1 dimension"),
        (np.array([[0, 1], [0, np.nan]]), r"column 'b': 1 of 2 rows .* no value, .* at row 1"),
        (np.array([[0, 0], [0, 0.5]]), r"Code 0.5 at row 1, column 1 \('b'\)"),
        (np.array([["n", "low"]]), "column 'b': 1 of 1 rows .* 'low'. States: 'lo', 'mid', 'hi'"),
        (np.array([["n", None]]), "column 'b': 1 of 1 rows .* no value"),
        (np.array([[0, 0], [0, 3]], np.uint8), r"Code 3 at row 1, column 1 \('b'\).*0 to 2"),
        (np.array([[0, 0], [2, 3]]), r"Code 2 at row 1, column 0 \('a'\)"),
        (np.array([[0, 0], [0, -1]]), r"Code -1 at row 1, column 1 \('b'\)"),
        (np.array([[0, 256]]), r"Code 256 at row 0, column 1 \('b'\)"),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_place(X, message, kernels):
    with pytest.raises(DataError, match=message):
        fit(X, kernels=kernels, on_missing="error")


def test_the_first_wrong_code_is_found_wherever_it_is(kernels):
    rng = np.random.default_rng(0)
    for _ in range(20):
        codes = np.zeros((40_000, 2), np.uint8)
        wrong = sorted(rng.choice(len(codes), 3, replace=False))
        codes[wrong, rng.integers(0, 2, 3)] = 9
        with pytest.raises(CodeRangeError) as error:
            fit(codes, kernels=kernels)
        assert error.value.row == wrong[0]
        assert codes[error.value.row, error.value.column] == error.value.value == 9


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, 1], r"shape \(4,\); found shape \(3,\)"),
        ([1, -2, 1, 1], "found -2.0 at row 1"),
        ([1, 1, np.nan, 1], "found nan at row 2"),
        ([0, 0, 0, 0], "Every row weight is zero"),
        (["a", "b", "c", "d"], "must be numbers"),
    ],
)
def test_wrong_weights_are_refused(weights, message, kernels):
    with pytest.raises(DataError, match=message):
        fit(sample_weight=weights, kernels=kernels)


def test_wrong_settings_are_refused():
    with pytest.raises(
        ValueError, match="Unknown prior 'magic'; choose one of none, laplace, bdeu"
    ):
        fit(prior="magic")
    with pytest.raises(ValueError, match="pseudo_count must be finite"):
        fit(prior="laplace", pseudo_count=-1)
    with pytest.raises(ValueError, match="has no setting 'x'"):
        MaximumLikelihoodEstimator(CHAIN).set_params(x=1)


def test_learned_values_are_asked_for_after_fit():
    with pytest.raises(NotFittedError, match=r"call fit\(X\) first"):
        MaximumLikelihoodEstimator(CHAIN).log_likelihood(ROWS)


def test_settings_are_kept_as_given():
    estimator = MaximumLikelihoodEstimator(CHAIN, "bdeu", equivalent_sample_size=3)
    again = MaximumLikelihoodEstimator(**estimator.get_params())
    assert again.get_params() == estimator.get_params()
    assert repr(again).endswith("prior='bdeu', equivalent_sample_size=3)")
    assert again.set_params(prior=None).prior is None
