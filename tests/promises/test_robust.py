"""Promises of the robust fit. Seeds are fixed; margins leave room for another machine's rounding.

`R = TV(fit, truth) / TV(counts of the good rows, truth)`.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from robustbn import (
    BayesianNetwork,
    MaximumLikelihoodEstimator,
    RobustEstimator,
    example_network,
    random_network,
    sample,
    total_variation,
)
from robustbn._core.expansion import drop_rounding
from robustbn._rows.memory import load_rows
from robustbn.adversary import KINDS, corrupt
from robustbn.exceptions import (
    ConvergenceWarning,
    DataError,
    NotFittedError,
    SmallSampleWarning,
    UnseenConfigurationWarning,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
]

NETWORKS = {
    "graph": lambda: random_network("graph", 30, 200, random_state=0),
    "tree": lambda: random_network("tree", 60, random_state=0),
    "categorical": lambda: random_network("graph", 30, 200, (2, 4), random_state=0),
}


@pytest.fixture(
    scope="module",
    params=[
        "categorical",
        pytest.param("graph", marks=pytest.mark.full),
        pytest.param("tree", marks=pytest.mark.full),
    ],
)
def scene(request):
    network = NETWORKS[request.param]()
    return network, sample(network, 10 * network.n_configurations * 100, 1)


def distance(network, fitted):
    return total_variation(network, fitted, n_draws=50_000)


def ratios(network, X, kind, strength=None, eps=0.1, **settings):
    """R of the robust fit and of counting, and the fit."""
    dirty, is_bad = corrupt(X, network, kind, eps, random_state=2, strength=strength)
    good = MaximumLikelihoodEstimator(network).fit(dirty[~is_bad] if is_bad.any() else X)
    fit = RobustEstimator(network, random_state=0, **settings).fit(dirty)
    floor = distance(network, good.network_)
    ours = distance(network, fit.network_) / floor
    return ours, distance(network, fit.plain_network_) / floor, fit, is_bad


# Every adversary, by what is promised against it.
FAR = ["product", "network", "repeated", "flipped", "shift", "comonotone"]
SEVERAL = {"mixture": 1.25, "blocks": 1.15, "rowflip": 1.35, "misjoined": 1.4}  # at most this R
NEAR = {"shift": 0.1, "clones": None, "decoy": None, "tilt": 2.0}  # of this strength
UNDONE = ["flood", "veil"]
UNSEEN = ["lawful", "tail", "subtract", "adaptive"]
EMPTYING = "starve"


def test_every_adversary_has_a_promise():
    assert {*FAR, *SEVERAL, *NEAR, *UNDONE, *UNSEEN, EMPTYING} == set(KINDS)


@pytest.mark.parametrize("kind", FAR)
def test_far_adversaries_cost_nothing(scene, kind):
    ours, counting, fit, is_bad = ratios(*scene, kind)
    assert counting > 5
    assert ours < 1.05
    assert fit.contamination_ == pytest.approx(0.1, abs=0.01)
    assert (fit.row_weights_[is_bad] < 0.5).mean() > (0.85 if kind == "shift" else 0.95)
    assert (fit.row_weights_[~is_bad] < 0.5).mean() < (0.03 if kind == "comonotone" else 0.01)


@pytest.mark.parametrize(("kind", "most"), SEVERAL.items())
def test_several_kinds_at_once_cost_little(scene, kind, most):
    ours, counting, _, _ = ratios(*scene, kind)
    assert counting > 5
    assert ours < most


@pytest.mark.parametrize(("kind", "strength"), NEAR.items())
def test_near_adversaries_cost_little(scene, kind, strength):
    ours, counting, _, _ = ratios(*scene, kind, strength)
    assert ours < 1.4
    assert ours < counting / 2


@pytest.mark.parametrize("kind", UNDONE)
def test_a_flooded_configuration_and_a_veiled_edge_are_undone_for_the_most_part(scene, kind):
    ours, counting, _, _ = ratios(*scene, kind)
    assert counting > 5 or kind == "flood"
    assert ours < counting / 2.5


@pytest.mark.parametrize("kind", UNSEEN)
def test_what_nobody_can_see_does_no_more_harm_than_counting(scene, kind):
    ours, counting, _, _ = ratios(*scene, kind)
    assert ours < 1.02 * counting


def test_emptying_a_configuration_does_at_most_twice_the_harm_of_counting(scene):
    """The rows that are left depend on each other as no network of this structure has it."""
    ours, counting, _, _ = ratios(*scene, EMPTYING)
    assert ours < 2 * counting


def test_lawful_rows_move_the_table_as_far_as_no_one_can_tell():
    """Both tables are those of networks: who is right about one is wrong about the other by eps."""
    network = random_network("tree", 10, random_state=0)
    root = min(float(network.cpts[n].min()) for n in network.nodes if not network.parents[n])
    ours, counting, fit, _ = ratios(network, sample(network, 50_000, 1), "lawful")
    assert fit.contamination_ == 0
    assert ours == pytest.approx(counting)
    assert distance(network, fit.network_) == pytest.approx(0.1 * (1 - root), abs=0.01)


def test_clean_rows_give_the_counts(scene):
    network, X = scene
    fit = RobustEstimator(network, random_state=0).fit(X)
    assert fit.contamination_ < 0.005
    assert fit.converged_
    assert "clean" in fit.status_
    counting = MaximumLikelihoodEstimator(network).fit(X)
    assert distance(network, fit.network_) < 1.02 * distance(network, counting.network_)
    assert fit.plain_network_ == counting.network_


def test_the_share_of_bad_rows_is_found(scene):
    network, X = scene
    for eps in (0.02, 0.2, 0.3):
        ours, _, fit, _ = ratios(network, X, "network", eps=eps)
        assert fit.contamination_ == pytest.approx(eps, abs=0.005)
        assert ours < 1.1


def test_knowing_the_share_helps_little(scene):
    known, _, _, _ = ratios(*scene, "mixture", contamination=0.1)
    found, _, _, _ = ratios(*scene, "mixture")
    assert found < 1.05 * known


def test_added_rows_are_found_as_replaced_ones_are():
    network = NETWORKS["graph"]()
    X = sample(network, 100_000, 1)
    dirty, is_bad = corrupt(X, network, "flipped", 0.1, 0, mode="add")
    assert len(dirty) > len(X)
    fit = RobustEstimator(network, random_state=0).fit(dirty)
    assert ((fit.row_weights_ < 0.5) == is_bad).mean() > 0.999


@pytest.mark.parametrize("method", ["spectral", "que", "descent"])
@pytest.mark.parametrize("schedule", ["joint", "paper"])
def test_every_oracle_beats_counting_by_far_under_both_schedules(method, schedule):
    network = random_network("graph", 15, 60, (2, 3), random_state=0)
    X = sample(network, 20_000, 1)
    ours, counting, fit, is_bad = ratios(
        network, X, "network", contamination=0.1, method=method, schedule=schedule, polish=False
    )
    assert ours < counting / 2
    assert {r.action for r in fit.history_} == {"ran the oracle"}
    caught = fit.row_weights_[is_bad].mean(), fit.row_weights_[~is_bad].mean()
    assert caught[0] < 0.6 < caught[1]
    fresh = fit.weights(sample(network, 1000, 5))
    assert ((fresh >= 0) & (fresh <= 1)).all()


@pytest.mark.parametrize("method", ["trimmed", "one_shot", "ransac", "none", "geometric_median"])
def test_baselines_run_and_are_told_the_share(method):
    network = random_network("tree", 12, random_state=0)
    dirty, _ = corrupt(sample(network, 5000, 1), network, "flipped", 0.1, 2)
    fit = RobustEstimator(network, 0.1, method, random_state=0).fit(dirty)
    assert fit.status_
    assert fit.contamination_ <= 0.25
    if method == "none":
        assert fit.network_ == fit.plain_network_
    if method in ("trimmed", "one_shot", "ransac"):
        with pytest.raises(ValueError, match="needs the share of bad rows"):
            RobustEstimator(network, method=method).fit(dirty)


def test_algorithm_1_has_to_be_told_the_share():
    with pytest.raises(ValueError, match="needs the share of bad rows"):
        RobustEstimator(COINS, method="que", schedule="paper").fit(np.zeros((10, 6), np.uint8))
    with pytest.raises(ValueError, match="sample_weight is supported only by the method 'filter'"):
        RobustEstimator(COINS, method="que").fit(
            np.zeros((10, 6), np.uint8), sample_weight=np.ones(10)
        )


def test_filters_alone_help_too(scene):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours, counting, fit, _ = ratios(*scene, "network", polish=False)
    assert not fit.result_.learned.model.n_kinds
    assert ours < counting / 5
    assert [r.removed for r in fit.history_] == sorted(r.removed for r in fit.history_)


# --- what leaves the fit --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def poisoned():
    network = NETWORKS["categorical"]()
    dirty, is_bad = corrupt(sample(network, 60_000, 1), network, "mixture", 0.1, 2)
    return network, dirty, is_bad, RobustEstimator(network, random_state=0).fit(dirty)


def test_any_row_can_be_judged_and_seen_rows_get_the_weights_of_the_fit(poisoned):
    network, dirty, _, fit = poisoned
    np.testing.assert_array_equal(fit.weights(dirty), fit.row_weights_)
    fresh = sample(network, 5000, 9)
    bad, _ = corrupt(fresh, network, "flipped", 0.5, 3)
    weights = fit.weights(bad)
    assert weights.shape == (5000,)
    assert ((weights >= 0) & (weights <= 1)).all()
    np.testing.assert_array_equal(fit.predict(bad), np.where(weights < 0.5, -1, 1))
    order = np.argsort(fit.score_samples(bad))
    assert (np.diff(weights[order]) > -1e-5).all()


def test_a_weight_depends_on_the_row_alone(poisoned):
    _, dirty, _, fit = poisoned
    some = np.random.default_rng(0).permutation(len(dirty))[:1000]
    np.testing.assert_array_equal(fit.weights(dirty[some]), fit.row_weights_[some])


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(poisoned):
    network, dirty, _, fit = poisoned
    for n_threads in (1, 3):
        again = RobustEstimator(network, random_state=0, n_threads=n_threads).fit(dirty)
        assert again.network_ == fit.network_
        np.testing.assert_array_equal(again.row_weights_, fit.row_weights_)


def test_the_numpy_backend_agrees():
    network = random_network("graph", 12, 50, (2, 3), random_state=0)
    dirty, _ = corrupt(sample(network, 20_000, 1), network, "flipped", 0.1, 2)
    native, slow = (
        RobustEstimator(network, random_state=0, kernels=b).fit(dirty) for b in ("native", "numpy")
    )
    np.testing.assert_allclose(
        native.network_.probabilities, slow.network_.probabilities, atol=2e-4
    )


def test_the_order_of_rows_hardly_matters(poisoned):
    """The sample changes with the order when not all rows are in it; here they are."""
    network, dirty, _, _ = poisoned
    every = {"random_state": 0, "sample_rows": 10**6}
    shuffle = np.random.default_rng(0).permutation(len(dirty))
    one = RobustEstimator(network, **every).fit(dirty)
    other = RobustEstimator(network, **every).fit(dirty[shuffle])
    np.testing.assert_allclose(one.network_.probabilities, other.network_.probabilities, atol=1e-3)
    np.testing.assert_allclose(one.row_weights_[shuffle], other.row_weights_, atol=0.1)


def test_names_of_states_do_not_matter(poisoned):
    """Reversing the states of every node reverses the tables, and nothing else."""
    network, dirty, _, fit = poisoned
    top = np.array(network.layout.cards) - 1
    again = RobustEstimator(network, random_state=0).fit((top - dirty).astype(np.uint8))
    assert again.contamination_ == pytest.approx(fit.contamination_, abs=8e-3)
    for node, table in fit.network_.cpts.items():
        flipped = np.flip(again.network_.cpts[node])
        seen = np.abs(flipped - table).max(axis=-1)
        assert np.median(seen) < 5e-3


def test_the_result_says_what_happened(poisoned):
    _, _, is_bad, fit = poisoned
    first, last = fit.history_[0], fit.history_[-1]
    assert first.eigenvalues[0] > first.threshold
    assert last.eigenvalues[0] <= last.threshold
    assert fit.converged_
    assert f"{fit.contamination_:.2%}" in fit.status_
    assert fit.contamination_ == pytest.approx(is_bad.mean(), abs=0.01)
    delta = fit.network_.probabilities - fit.plain_network_.probabilities
    np.testing.assert_array_equal(fit.shift_.delta, delta)
    assert np.abs(fit.shift_.z).max() > 10
    assert np.sign(fit.shift_.z).tolist() == np.sign(delta).tolist()


def test_the_kinds_of_bad_rows_are_described():
    network = NETWORKS["categorical"]()
    X = sample(network, 60_000, 1)
    X[:3000, 3] = 1 - np.minimum(X[:3000, 3], 1)
    X[:3000, 7] = 0
    X[:3000, 9] = network.layout.cards[9] - 1
    X[:3000, 12] = 0
    fit = RobustEstimator(network, random_state=0).fit(X)
    if fit.kinds_:
        total = sum(kind.share for kind in fit.kinds_)
        assert total == pytest.approx(fit.contamination_, abs=0.01)
        named = {cell.node for kind in fit.kinds_ for cell in kind.unusual}
        assert named & {"X3", "X7", "X9", "X12"}
        for cell in fit.kinds_[0].unusual:
            assert cell.among_bad > cell.among_good
            assert cell.node in str(fit.kinds_[0])


def test_repeated_rows_are_named_with_their_numbers():
    network = NETWORKS["graph"]()
    X = sample(network, 50_000, 1)
    X[::50] = X[17]
    fit = RobustEstimator(network, random_state=0).fit(X)
    worst = fit.repeats_[0]
    assert worst.seen >= 1000
    assert worst.expected < 100
    np.testing.assert_array_equal(X[worst.row], X[17])
    assert list(worst.states) == list(network.nodes)
    assert fit.contamination_ == pytest.approx(0.02, abs=0.005)


def test_repeated_rows_keep_their_numbers_when_rows_before_them_are_left_out():
    network = random_network("tree", 20, random_state=0)
    X = sample(network, 1500, 1)
    X[::25] = X[7]
    labels = {n: np.array(network.states[n], object) for n in network.nodes}
    table = {n: labels[n][X[:, k]] for k, n in enumerate(network.nodes)}
    table[network.nodes[0]][:5] = None
    fit = RobustEstimator(network, random_state=0, on_missing="drop").fit(table)
    worst = fit.repeats_[0]
    assert worst.row == 7
    assert {n: column[worst.row] for n, column in table.items()} == worst.states


def test_sample_weights_count_as_repeated_trust(poisoned):
    network, dirty, is_bad, _ = poisoned
    ignored = np.where(is_bad, 0.0, 1.0)
    fit = RobustEstimator(network, random_state=0).fit(dirty, sample_weight=ignored)
    assert fit.contamination_ < 0.01
    good = MaximumLikelihoodEstimator(network).fit(dirty[~is_bad])
    assert distance(good.network_, fit.network_) < 0.01


@pytest.mark.parametrize("unit", [1e-6, 0.01, 5.0, 1e6])
def test_the_unit_of_sample_weights_does_not_matter(unit):
    network = NETWORKS["tree"]()
    dirty, _ = corrupt(sample(network, 30_000, 1), network, "product", 0.1, 2)
    plain = RobustEstimator(network, random_state=0).fit(dirty)
    weighted = RobustEstimator(network, random_state=0).fit(
        dirty, sample_weight=np.full(len(dirty), unit)
    )
    assert weighted.contamination_ == pytest.approx(plain.contamination_, abs=1e-3)
    np.testing.assert_allclose(weighted.row_weights_, plain.row_weights_, atol=0.05)
    np.testing.assert_allclose(
        weighted.network_.probabilities, plain.network_.probabilities, atol=2e-3
    )
    assert weighted.counts_.sum() == pytest.approx(plain.counts_.sum() * unit, rel=1e-3)


@pytest.mark.parametrize("unit", [1 / 3000, 7.0, 1e60])
@pytest.mark.parametrize("misses", [False, True])
def test_the_unit_of_sample_weights_does_not_matter_to_what_is_said_of_a_fit(
    unit, misses, tmp_path
):
    network = random_network("tree", 8, random_state=0)
    rows = corrupt(sample(network, 3000, 0), network, "product", 0.15, 1)[0]
    if misses:
        rows = np.where(np.random.default_rng(0).random(rows.shape) < 0.1, np.nan, rows)
    plain = RobustEstimator(network, random_state=0).fit(rows)
    fit = RobustEstimator(network, random_state=0).fit(rows, sample_weight=np.full(3000, unit))
    fit.save(tmp_path / "model.json")
    for other in (fit, RobustEstimator.load(tmp_path / "model.json")):
        np.testing.assert_allclose(other.network_.probabilities, plain.network_.probabilities)
        np.testing.assert_allclose(other.shift_.z, plain.shift_.z)
        assert [k.n_rows for k in other.kinds_] == pytest.approx([k.n_rows for k in plain.kinds_])
        assert [k.share for k in other.kinds_] == pytest.approx([k.share for k in plain.kinds_])
        for name in ("moved", "error", "n_eff"):
            np.testing.assert_allclose(other.moved()[name], plain.moved()[name])
        assert str(other.diagnose()) == str(plain.diagnose())
    assert len(plain.kinds_) > 0
    np.testing.assert_allclose(fit.row_weights_, plain.row_weights_, atol=1e-6)
    found, expected = fit.result_.shown(rows=False), plain.result_.shown(rows=False)
    np.testing.assert_allclose(found.counts, expected.counts)
    np.testing.assert_allclose(found.plain_counts, expected.plain_counts)


def test_clean_rows_with_weights_of_all_sizes_are_trusted():
    network = random_network("tree", 6, random_state=0)
    X = sample(network, 2000, 1)
    rng = np.random.default_rng(0)
    one = np.zeros(2000)
    one[7] = 3.0
    for weights in (one, rng.integers(0, 4, 2000), rng.random(2000) * 100):
        fit = RobustEstimator(network, random_state=0, sample_rows=10**6).fit(
            X, sample_weight=weights
        )
        assert fit.contamination_ < 0.02
        assert fit.row_weights_.shape == (2000,)
    RobustEstimator(network, random_state=0, sample_rows=10).fit(X, sample_weight=one)


def test_more_distrust_than_was_allowed_is_told():
    network = NETWORKS["tree"]()
    dirty, _ = corrupt(sample(network, 30_000, 1), network, "clones", 0.1, 2)
    with pytest.warns(ConvergenceWarning, match="10.0% stand out but at most 2% may be removed"):
        fit = RobustEstimator(network, 0.01, random_state=0).fit(dirty)
    assert not fit.converged_


@pytest.mark.parametrize("method", ["filter", "spectral", "trimmed", "none", "one_shot"])
def test_every_method_can_tell_its_rounds(method, capsys):
    X = np.random.default_rng(0).integers(0, 2, (2000, 6)).astype(np.uint8)
    RobustEstimator(COINS, 0.1, method, random_state=0, verbose=True).fit(X)
    assert "round 0" in capsys.readouterr().err


def test_trimming_takes_exactly_the_share_and_shares_ties():
    same = np.ones((500, 6), np.uint8)
    fit = RobustEstimator(COINS, 0.1, "trimmed", random_state=0).fit(same)
    assert fit.contamination_ == pytest.approx(0.1)
    assert fit.network_.cpts["c0"].tolist() == [0, 1]


def test_numbers_of_numpy_are_numbers():
    X = np.random.default_rng(0).integers(0, 2, (2000, 6)).astype(np.uint8)
    fit = RobustEstimator(COINS, np.float32(0.1), sample_rows=np.int64(1000), random_state=0).fit(X)
    assert "eps = 0.1" in str(fit.diagnose())
    with pytest.raises(ValueError, match="sample_rows is a whole number"):
        RobustEstimator(COINS, sample_rows=1e3).fit(X)


def test_the_diagnosis_speaks_plainly(poisoned):
    _, _, _, fit = poisoned
    found = fit.diagnose()
    assert found.rows_wanted == pytest.approx(200 / fit.contamination_**2, rel=0.05)
    assert found.has_enough_rows
    assert not found.theorem_applies
    for words in ("Rows:", "Enough.", "does not apply", "Balance", "configurations occur in fewer"):
        assert words in str(found)


# --- odd data -------------------------------------------------------------------------------------

COINS = BayesianNetwork({f"c{i}": [] for i in range(6)}, {f"c{i}": ["h", "t"] for i in range(6)})


def test_too_few_rows_are_warned_of_with_the_numbers():
    network = NETWORKS["graph"]()
    said = r"500 rows are too few for 200 free parameters: at least 4,000 rows are recommended"
    with pytest.warns(SmallSampleWarning, match=said):
        RobustEstimator(network, random_state=0).fit(sample(network, 500, 0))


def test_one_row_is_enough_to_say_something():
    fit = RobustEstimator(COINS, prior="laplace", random_state=0).fit(np.zeros((1, 6), np.uint8))
    assert fit.contamination_ == 0
    assert fit.network_.cpts["c0"].tolist() == [2 / 3, 1 / 3]


def test_rows_that_are_all_the_same_are_trusted():
    fit = RobustEstimator(COINS, random_state=0).fit(np.ones((5000, 6), np.uint8))
    assert fit.contamination_ == 0
    assert fit.network_.cpts["c3"].tolist() == [0, 1]


def test_a_constant_column_changes_nothing():
    X = np.random.default_rng(0).integers(0, 2, (20_000, 6)).astype(np.uint8)
    X[:, 2] = 1
    fit = RobustEstimator(COINS, random_state=0).fit(X)
    assert fit.contamination_ < 0.005
    assert fit.network_.cpts["c2"].tolist() == [0, 1]


def test_one_node_and_no_edges_work():
    coin = BayesianNetwork({"c": []}, {"c": ["h", "t"]})
    X = np.random.default_rng(0).integers(0, 2, (5000, 1)).astype(np.uint8)
    fit = RobustEstimator(coin, random_state=0).fit(X)
    assert fit.contamination_ == 0
    assert fit.network_.cpts["c"][1] == pytest.approx(X.mean())


def test_nodes_of_256_states_work():
    network = random_network("tree", 5, cards=[256, 2, 3, 256, 2], random_state=0)
    X = sample(network, 100_000, 0)
    fit = RobustEstimator(network, random_state=0).fit(X)
    assert fit.contamination_ < 0.005


def test_a_majority_of_bad_rows_is_not_thrown_away():
    """Two halves: whatever is distrusted, most of the weight stays, and it says if it is unsure."""
    network = NETWORKS["tree"]()
    dirty, _ = corrupt(sample(network, 50_000, 1), network, "flipped", 0.5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = RobustEstimator(network, random_state=0).fit(dirty)
    assert fit.contamination_ < 0.56


def test_a_budget_too_small_is_told():
    network = NETWORKS["tree"]()
    dirty, _ = corrupt(sample(network, 50_000, 1), network, "network", 0.2, 2)
    for misfit in ("none", "allow"):
        with pytest.warns(
            ConvergenceWarning, match="20.0% stand out but at most 4% may be removed"
        ):
            fit = RobustEstimator(network, contamination=0.02, misfit=misfit, random_state=0).fit(
                dirty
            )
        assert not fit.converged_
        assert fit.contamination_ < 0.05


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "above 0, below 0.5.*use MaximumLikelihoodEstimator"),
        (-0.1, "found -0.1"),
        (0.5, "a majority of the rows must be good"),
        (10, r"found 10. Did you mean 0.10\?"),
        (float("nan"), "found nan"),
        ("some", "'auto'; found 'some'"),
        (None, "found None"),
    ],
)
def test_a_wrong_contamination_is_refused(value, message):
    with pytest.raises(ValueError, match=message):
        RobustEstimator(COINS, contamination=value).fit(np.zeros((10, 6), np.uint8))


def test_other_wrong_settings_are_refused():
    X = np.zeros((10, 6), np.uint8)
    with pytest.raises(ValueError, match="schedule is one of 'joint', 'paper'; found 'x'"):
        RobustEstimator(COINS, schedule="x").fit(X)
    with pytest.raises(ValueError, match="Unknown method 'x'"):
        RobustEstimator(COINS, method="x").fit(X)
    with pytest.raises(ValueError, match="sample_rows is a whole number"):
        RobustEstimator(COINS, sample_rows=0).fit(X)
    with pytest.raises(DataError, match="no rows"):
        RobustEstimator(COINS).fit(X[:0])
    with pytest.raises(NotFittedError):
        RobustEstimator(COINS).predict(X)


# --- adversaries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["replace", "add"])
def test_every_adversary_returns_rows_and_a_mask(kind, mode):
    network = NETWORKS["categorical"]()
    X = sample(network, 4000, 0)
    before = X.copy()
    dirty, is_bad = corrupt(X, network, kind, 0.1, random_state=5, mode=mode)
    again, _ = corrupt(X, network, kind, 0.1, random_state=5, mode=mode)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(dirty, again)
    assert len(dirty) == len(is_bad)
    assert dirty.dtype == np.uint8
    assert (dirty < np.array(network.layout.cards)).all()
    if kind in ("subtract", "starve"):
        assert not is_bad.any()
        assert 3500 <= len(dirty) < 4000
    else:
        assert is_bad.mean() == pytest.approx(0.1, abs=0.002)
        assert len(dirty) == (4000 if mode == "replace" else 4444)


def test_adversaries_hurt_counting(scene):
    network, X = scene
    floor = distance(network, MaximumLikelihoodEstimator(network).fit(X).network_)
    for kind in KINDS:
        dirty, _ = corrupt(X, network, kind, 0.1, random_state=2)
        hurt = distance(network, MaximumLikelihoodEstimator(network).fit(dirty).network_)
        assert hurt > 1.5 * floor, kind


@pytest.mark.parametrize("kind", KINDS)
def test_no_share_corrupts_nothing(kind):
    network = NETWORKS["categorical"]()
    X = sample(network, 100, 0)
    rows, is_bad = corrupt(X, network, kind, 0.0, 0)
    assert not is_bad.any()
    assert len(rows) == len(X)


def test_an_adversary_that_cannot_empty_a_configuration_thins_the_rarest():
    """It once took every row away, the root's configuration being the first that did not fit."""
    network = random_network("tree", 8, random_state=0)
    X = sample(network, 5000, random_state=1)
    left, _ = corrupt(X, network, "starve", 0.1, random_state=2)
    assert 4500 <= len(left) < 5000
    few, _ = corrupt(X, network, "starve", 0.0004, random_state=2)  # two rows: too few for any
    assert len(few) == 4998


def test_wrong_adversaries_are_refused():
    X = np.zeros((10, 6), np.uint8)
    net = COINS.with_cpts(np.full(12, 0.5))
    with pytest.raises(ValueError, match="Unknown kind of adversary 'x'"):
        corrupt(X, net, "x", 0.1)
    with pytest.raises(ValueError, match="eps is a share"):
        corrupt(X, net, "product", 10)
    with pytest.raises(ValueError, match="Unknown mode"):
        corrupt(X, net, "product", 0.1, mode="x")


def test_a_configuration_that_only_distrusted_rows_show_is_unseen_by_either_kernels():
    alarm = example_network("alarm")
    rows, is_bad = corrupt(sample(alarm, 20_000, 0), alarm, "product", 0.1, random_state=0)
    fits = {}
    for kernels in ("native", "numpy"):
        with pytest.warns(UnseenConfigurationWarning):
            fits[kernels] = RobustEstimator(alarm, random_state=0, kernels=kernels).fit(rows)
    native, numpy = fits.values()
    np.testing.assert_allclose(native.network_.probabilities, numpy.network_.probabilities, 0, 1e-3)
    assert native.unseen_configurations_ == numpy.unseen_configurations_
    layout = alarm.layout
    good, plain = (
        layout.sum_configurations(load_rows(alarm, some).count()) for some in (rows[~is_bad], rows)
    )
    trusted = layout.sum_configurations(numpy.counts_)
    only_bad = (good == 0) & (plain > 100)
    assert only_bad.any()
    assert (trusted[only_bad] == 0).all()
    assert (trusted[good > 0] > 0.1).all()


@pytest.mark.parametrize(("trust", "is_seen"), [(3e-8, False), (1e-3, True)])
def test_below_a_rounding_of_trust_a_configuration_is_unseen(trust, is_seen):
    pair = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["0", "1"], "b": ["0", "1"]})
    plain = np.array([90.0, 10.0, 80.0, 10.0, 9.0, 1.0])
    for scale in (1e-9, 1.0, 1e9):  # of weights
        counts = scale * plain * np.array([1.0, trust, 1.0, 1.0, trust, trust])
        kept = drop_rounding(pair.layout, counts, scale * plain)
        np.testing.assert_array_equal(kept[:4], counts[:4])
        np.testing.assert_array_equal(kept[4:], counts[4:] if is_seen else 0.0)


def test_unseen_configurations_are_still_told():
    network = NETWORKS["graph"]()
    with pytest.warns(UnseenConfigurationWarning):
        RobustEstimator(network, random_state=0).fit(sample(network, 300, 0))


def test_a_finer_picture_of_bad_rows_does_not_explain_good_rows_away():
    """Rows were taken away, none added: splitting kinds once took 62 % of what was left."""
    network = random_network("tree", 20, random_state=0)
    good = sample(network, 39_000, random_state=1)
    X, _ = corrupt(good, network, "subtract", eps=0.1, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = RobustEstimator(network, random_state=0).fit(X)
    assert fit.contamination_ < 0.25


def test_a_fit_that_fails_leaves_the_one_before():
    network = random_network("tree", 8, random_state=0)
    fit = RobustEstimator(network, random_state=0).fit(sample(network, 4000, random_state=0))
    before = fit.reading_
    with pytest.raises(DataError, match="not negative"):
        fit.fit(sample(network, 50, random_state=1), sample_weight=-np.ones(50))
    assert fit.reading_ is before


def test_common_good_rows_are_not_taken_for_copies_when_many_rows_are_bad():
    """At 30 % the plain tables do not say how often a row may appear: half the good were lost."""
    alarm = example_network("alarm")
    X, is_bad = corrupt(
        sample(alarm, 30_000, random_state=0), alarm, "network", 0.3, random_state=1
    )
    fit = RobustEstimator(alarm, random_state=0).fit(X)
    assert fit.row_weights_[~is_bad].mean() > 0.99
    assert fit.row_weights_[is_bad].mean() < 0.01


def test_repeated_rows_of_a_tiny_network_do_not_run_away():
    """With 8 nodes every row is repeated: taking surpluses away once took half of all rows."""
    network = random_network("tree", 8, random_state=1)
    good = sample(network, 50_000, random_state=0)
    for kind in ("shift", "rowflip", "network"):
        X, is_bad = corrupt(good, network, kind, 0.1, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = RobustEstimator(network, random_state=0).fit(X)
        floor = distance(network, MaximumLikelihoodEstimator(network).fit(X[~is_bad]).network_)
        assert distance(network, fit.network_) < max(
            distance(network, fit.plain_network_), 2 * floor
        ), kind
        assert fit.contamination_ < 0.25, kind
