"""Oracles: Algorithm 2 against the exact exponential, filters against attacks, falling weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbn import random_network, sample
from robustbn._core.expansion import Expansion, FollowingExpansion, normalise_counts
from robustbn._means.algorithm1 import follow_jointly
from robustbn._means.baselines import (
    coordinate_median,
    geometric_median,
    one_shot,
    plain_mean,
    ransac,
)
from robustbn._means.descent import descent
from robustbn._means.matrix import DenseVectors
from robustbn._means.que import (
    Past,
    approximate_scores,
    choose_degree,
    draw_sketch,
    que,
    redraw_sketch,
)
from robustbn._means.spectral import spectral_filter
from robustbn._means.weighting import (
    drop_highest,
    find_center,
    follow_weights,
    look_at,
    project_capped_simplex,
    sampling_noise,
    signed_positions,
    soft_filter,
    tolerated_excess,
    trim_far_rows,
    weighted_median,
)
from robustbn._rows.kernels import load_kernels
from robustbn.adversary import corrupt
from robustbn.distance import total_variation

FILTERS = (spectral_filter, que)
TESTED = (spectral_filter, que, descent)
ATTACKS = ("cluster", "many", "tilt", "point")


def attacked_rows(kind, n_rows, dim, seed=0, eps=0.1):
    """Standard Gaussian rows, the share eps of them bad; which ones; the mean of the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, dim))
    bad = rng.choice(n_rows, round(eps * n_rows), replace=False)
    u = rng.normal(size=dim)
    u /= np.linalg.norm(u)
    if kind == "cluster":
        X[bad] = 0.1 * X[bad] + 10 * u
    elif kind == "tilt":
        X[bad] += 6 * u
    elif kind == "point":
        X[bad] = 7 * u
    else:
        basis = np.linalg.qr(rng.normal(size=(dim, 5)))[0]
        for k, part in enumerate(np.array_split(bad, 5)):
            X[part] += 12 * basis[:, k]
    is_bad = np.zeros(n_rows, bool)
    is_bad[bad] = True
    return X, is_bad, X[~is_bad].mean(axis=0)


# --- Algorithm 2 ----------------------------------------------------------------------------------


def exact_scores(X, weights, past_weights, a, E):
    """Definition score-oracle, word for word, by eigendecomposition: tau, q and |Sigma - E|."""

    def covariance(w):
        centred = X - w @ X / w.sum()
        return centred.T @ (w[:, None] * centred) / w.sum()

    total = sum((covariance(w) - E for w in past_weights), np.zeros_like(E))
    values, vectors = np.linalg.eigh(a * total)
    U = E @ (vectors * np.exp(values - values.max())) @ vectors.T @ E
    U /= np.trace(U)
    centred = X - weights @ X / weights.sum()
    difference = covariance(weights) - E
    tau = np.einsum("ni,ij,nj->n", centred, U, centred)
    return tau, np.trace(difference @ U), np.linalg.norm(difference, 2)


def dense_case(n_rows=300, dim=24, n_steps=4):
    X, *_ = attacked_rows("tilt", n_rows, dim)
    return DenseVectors.of(X), X, np.eye(dim), n_steps


def network_case(n_rows=400, n_steps=4):
    """Three states a node: the expansion has one null direction a configuration."""
    network = random_network("tree", 3, cards=3, random_state=1)
    codes, _ = corrupt(sample(network, n_rows, 0), network, "product", 0.1, 0)
    rows = load_kernels("numpy").encode(network.layout, codes)
    expansion = Expansion.at_weights_of(rows, np.ones(rows.n_rows), damping=0.0)
    X = np.zeros((n_rows, expansion.dim))  # from the definition of f^, not from the code's tables
    for n, code in enumerate(codes):
        label = {v: network.states[v][c] for v, c in zip(network.nodes, code, strict=True)}
        for node in network.nodes:
            given = {p: label[p] for p in network.parents[node]}
            cells = [network.cell(node, given, state) for state in network.states[node]]
            shown = np.array([state == label[node] for state in network.states[node]])
            X[n, cells] = expansion.scale[cells] * (shown - expansion.q[cells])
    E = np.zeros((expansion.dim, expansion.dim))  # per configuration I - sqrt(q) sqrt(q)'
    config = network.layout.config_of_cell
    for k in range(network.n_configurations):
        cells = np.flatnonzero(config == k)
        root = np.sqrt(expansion.q[cells])
        E[np.ix_(cells, cells)] = np.eye(len(cells)) - np.outer(root, root)
    return expansion, X, E, n_steps


def prepare_scores(case):
    """Return arguments for the approximate and for the exact scores, some steps into an epoch."""
    vectors, X, E, n_steps = case
    rng = np.random.default_rng(5)
    trail = [1.0 - 0.1 * i * rng.random(len(X)) for i in range(n_steps + 1)]
    lam = look_at(vectors, trail[0]).top - 1.0
    a = 1.0 / (1.1 * lam)
    past = Past.empty(vectors)
    for w in trail[:-1]:
        past = past.add(w, vectors.mean(w))
    state = (vectors, trail[-1], vectors.mean(trail[-1]), past, a)
    return state, exact_scores(X, trail[-1], trail[:-1], a, E), 1.1 * lam


CASES = {"dense": dense_case, "network": network_case}


@pytest.fixture(scope="module", params=CASES)
def prepared(request):
    return prepare_scores(CASES[request.param]())


def test_without_a_sketch_only_the_error_of_taylor_is_left(prepared):
    state, (tau, q, size), bound = prepared
    found = approximate_scores(*state, np.eye(state[0].dim), excess_bound=bound)
    np.testing.assert_allclose(found.tau, tau, rtol=1e-3)
    assert abs(found.excess - q) <= 1e-3 * size
    assert found.base == pytest.approx(1.0)
    assert found.degree <= 15


def test_at_the_width_of_the_theory_every_row_is_within_a_tenth(prepared):
    """Independent N(0, 1/r) entries, `r = 8 ln(N / delta) / 0.1^2`, as in lines 1 and 2."""
    state, (tau, q, size), bound = prepared
    vectors = state[0]
    width = math.ceil(8 * math.log(vectors.n_rows / 0.01) / 0.1**2)
    sketch = np.random.default_rng(1).normal(0, width**-0.5, size=(vectors.dim, width))
    found = approximate_scores(*state, sketch, excess_bound=bound)
    assert np.abs(found.tau / tau - 1).max() <= 0.1
    assert abs(found.excess - q) <= 0.1 * q + 0.05 * size


def test_at_the_default_width_the_excess_is_within_its_bound_and_rows_are_ranked():
    state, (tau, q, size), bound = prepare_scores(dense_case(600, 120, 6))
    for seed in range(5):
        sketch = draw_sketch(120, 64, np.random.default_rng(seed))
        found = approximate_scores(*state, sketch, excess_bound=bound)
        assert abs(found.excess - q) <= 0.1 * q + 0.05 * size
        assert np.corrcoef(found.tau, tau)[0, 1] > 0.95
        assert np.sqrt(np.mean((found.tau / tau - 1) ** 2)) < 0.2


def test_a_null_space_takes_no_part_in_the_trace():
    """A network's null space has variance 0; counted as a direction, it would lower every score."""
    case = network_case(n_steps=0)
    state, (tau, _, _), bound = prepare_scores(case)
    vectors, weights, *_, a = state
    found = approximate_scores(*state, np.eye(vectors.dim), excess_bound=bound)
    counted, *_ = exact_scores(case[1], weights, [], a, np.eye(vectors.dim))
    np.testing.assert_allclose(found.tau, tau, rtol=1e-3)
    assert counted.sum() == pytest.approx(2 / 3 * tau.sum())


def test_native_kernels_are_precise_enough_for_taylor():
    """Single precision, and a sum with terms of both signs."""
    network = random_network("tree", 6, cards=(2, 4), random_state=2)
    codes, _ = corrupt(sample(network, 3000, 0), network, "product", 0.1, 0)
    found = []
    for backend in ("native", "numpy"):
        rows = load_kernels(backend).encode(network.layout, codes)
        expansion = Expansion.at_weights_of(rows, np.ones(rows.n_rows))
        past = Past.empty(expansion)
        for _ in range(8):
            past = past.add(np.ones(3000), expansion.mean())
        sketch = draw_sketch(expansion.dim, 64, np.random.default_rng(0))
        arguments = (np.ones(3000), expansion.mean(), past, 1.0, sketch)
        found.append(approximate_scores(expansion, *arguments, excess_bound=1.0))
    np.testing.assert_allclose(found[0].tau, found[1].tau, rtol=2e-3)


@given(st.floats(0.01, 60), st.floats(0.01, 5), st.floats(0, 1))
def test_the_degree_is_enough_for_every_eigenvalue(at, excess_bound, where):
    shift, degree = choose_degree(at, excess_bound)
    x = 0.5 * at * (-shift + where * (1 + excess_bound))
    polynomial = 1.0
    for j in range(degree, 0, -1):
        polynomial = 1.0 + x / j * polynomial
    assert abs(polynomial - math.exp(x)) <= 2e-3 * max(1.0, math.exp(x))


def test_the_sum_of_past_covariances_takes_one_product():
    vectors, X, _, _ = dense_case()
    rng = np.random.default_rng(0)
    past, total = Past.empty(vectors), np.zeros((24, 24))
    for _ in range(3):
        w = rng.random(len(X))
        past = past.add(w, vectors.mean(w))
        total += np.cov(X.T, aweights=w, bias=True)
    V = rng.normal(size=(24, 5))
    np.testing.assert_allclose(past.multiply(vectors, V), total @ V, rtol=1e-9, atol=1e-9)


def test_a_sketch_keeps_lengths_on_average_and_all_of_them_at_full_width():
    rng = np.random.default_rng(0)
    v = rng.normal(size=50)
    sketch = draw_sketch(50, 10, rng)
    drawn = [np.sum((draw_sketch(50, 10, rng).T @ v) ** 2) for _ in range(400)]
    redrawn = [np.sum((redraw_sketch(sketch, rng).T @ v) ** 2) for _ in range(400)]
    assert np.mean(drawn) == pytest.approx(v @ v, rel=0.05)
    assert np.mean(redrawn) == pytest.approx(v @ v, rel=0.05)
    full = redraw_sketch(draw_sketch(50, 64, rng), rng)
    assert np.sum((full.T @ v) ** 2) == pytest.approx(v @ v)


# --- recovery -------------------------------------------------------------------------------------


@pytest.mark.parametrize("oracle", TESTED)
@pytest.mark.parametrize("kind", ATTACKS)
def test_the_mean_is_recovered_whatever_the_dimension(oracle, kind):
    """The error is far below that of the mean, at d = 20 and alike at d = 200."""
    errors = []
    for dim in (20, 200):
        X, is_bad, good_mean = attacked_rows(kind, 4000, dim)
        found = oracle(DenseVectors.of(X), 0.1, random_state=0)
        plain = np.linalg.norm(X.mean(axis=0) - good_mean)
        errors.append(np.linalg.norm(found.mean - good_mean))
        assert errors[-1] < 0.4 * plain
        assert found.weights[is_bad].mean() < 0.4 < 0.9 < found.weights[~is_bad].mean()
        assert found.converged
    assert errors[1] < max(2.5 * errors[0], 0.2)


def test_medians_do_depend_on_the_dimension():
    """What the test above would look like for a method that does not look at directions."""
    for oracle in (coordinate_median, geometric_median):
        errors = []
        for dim in (20, 200):
            X, _, good_mean = attacked_rows("cluster", 4000, dim)
            errors.append(np.linalg.norm(oracle(DenseVectors.of(X), 0.1).mean - good_mean))
        assert errors[1] > 2.5 * errors[0]


def test_one_look_does_not_see_many_directions():
    X, _, good_mean = attacked_rows("many", 4000, 50)
    vectors = DenseVectors.of(X)
    once = np.linalg.norm(one_shot(vectors, 0.1, random_state=0).mean - good_mean)
    for oracle in TESTED:
        found = oracle(vectors, 0.1, random_state=0)
        assert np.linalg.norm(found.mean - good_mean) < 0.5 * once


@pytest.mark.parametrize("oracle", FILTERS)
@pytest.mark.parametrize("dim", [1, 20, 150])
def test_clean_rows_keep_their_weight(oracle, dim):
    X = np.random.default_rng(3).normal(size=(3000, dim))
    found = oracle(DenseVectors.of(X), 0.1, random_state=0)
    assert found.removed <= 0.002
    assert found.converged


@pytest.mark.parametrize("oracle", FILTERS)
def test_the_budget_holds_and_the_status_says_so(oracle):
    """A third of the rows is bad where a tenth was announced."""
    X, *_ = attacked_rows("tilt", 2000, 20, eps=0.33)
    found = oracle(DenseVectors.of(X), 0.1, random_state=0)
    assert not found.converged
    assert "(raise it)" in found.status
    assert 0.19 < found.removed <= 0.2 + 1e-6
    assert sum(step.removed for step in found.history) == pytest.approx(found.removed, abs=1e-9)
    assert all(step.removed <= 0.25 * 0.1 + 1e-9 for step in found.history)


@pytest.mark.parametrize("oracle", TESTED)
def test_many_equal_rows_do_not_stall_a_filter(oracle):
    X, is_bad, good_mean = attacked_rows("point", 3000, 10)
    assert len(np.unique(X[is_bad], axis=0)) == 1
    found = oracle(DenseVectors.of(X), 0.1, random_state=0)
    assert found.converged
    assert np.ptp(found.weights[is_bad]) < 1e-9
    assert np.linalg.norm(found.mean - good_mean) < 0.15


@pytest.mark.parametrize("oracle", [*TESTED, one_shot, coordinate_median, geometric_median])
def test_the_order_of_the_rows_does_not_matter(oracle):
    X, *_ = attacked_rows("many", 1500, 30)
    order = np.random.default_rng(9).permutation(len(X))
    found = oracle(DenseVectors.of(X), 0.1, random_state=4)
    other = oracle(DenseVectors.of(X[order]), 0.1, random_state=4)
    np.testing.assert_allclose(other.weights, found.weights[order], atol=1e-6)
    np.testing.assert_allclose(other.mean, found.mean, atol=1e-7)


@pytest.mark.parametrize("oracle", [*TESTED, plain_mean, one_shot, ransac])
def test_weights_and_mean_belong_together(oracle):
    X, *_ = attacked_rows("tilt", 1000, 15)
    found = oracle(DenseVectors.of(X), 0.1, random_state=0)
    assert found.weights.min() >= 0
    assert found.weights.max() <= 1
    assert found.removed == pytest.approx(1 - found.weights.mean())
    np.testing.assert_allclose(found.mean, np.average(X, axis=0, weights=found.weights), atol=1e-9)


@pytest.mark.parametrize("oracle", TESTED)
def test_looser_stability_raises_the_threshold(oracle):
    """With gamma above the attack's excess nothing is in excess: beta and gamma are used."""
    X, *_ = attacked_rows("tilt", 2000, 10)
    strict = oracle(DenseVectors.of(X), 0.1, random_state=0)
    loose = oracle(DenseVectors.of(X), 0.1, gamma=2.0, random_state=0)
    assert loose.history[0].threshold > strict.history[0].threshold + 5
    assert len(loose.history) == 1
    assert len(strict.history) > 1
    assert tolerated_excess(0.1, 0.2, 0.3, 0.0) == pytest.approx(0.9 + 0.24 + 2.4)


@pytest.mark.parametrize("oracle", TESTED)
@pytest.mark.parametrize("cards", [2, 3])
def test_a_network_of_twenty_nodes_is_freed_of_half_the_harm_and_more(oracle, cards):
    network = random_network("graph", 20, 120, cards=cards, random_state=0)
    clean = sample(network, 40_000, 0)
    codes, is_bad = corrupt(clean, network, "product", 0.1, 0)
    rows = load_kernels("native").encode(network.layout, codes)

    def error(weights):
        q = normalise_counts(network.layout, rows.count(weights), 0.01)
        return float(total_variation(network, network.with_cpts(q)))

    expansion = Expansion.at_weights_of(rows, np.ones(rows.n_rows))
    found = oracle(expansion, 0.1, trim=False, random_state=0)
    assert found.converged
    assert error(found.weights) < 0.5 * error(np.ones(len(codes)))
    assert found.weights[is_bad].mean() < found.weights[~is_bad].mean() - 0.2
    rows = load_kernels("native").encode(network.layout, clean)
    if oracle in FILTERS:
        expansion = Expansion.at_weights_of(rows, np.ones(rows.n_rows))
        assert oracle(expansion, 0.1, trim=False, random_state=0).removed == 0


def joint_error(oracle, n_nodes, n_rows):
    """Fit a tree jointly, a tenth of its rows from another network; the error of its tables."""
    network = random_network("tree", n_nodes, random_state=0)
    codes, _ = corrupt(sample(network, n_rows, 0), network, "network", 0.1, 1)
    rows = load_kernels("native").encode(network.layout, codes)
    found = follow_jointly(rows, oracle, 0.1, lambda _: None, trim=False)
    assert found.converged
    return float(total_variation(network, network.with_cpts(found.q)))


def test_que_does_not_get_worse_with_more_rows():
    assert joint_error(que, 20, 40_000) < 0.9 * joint_error(que, 20, 8000)


def test_the_spectral_filter_does_not_get_worse_with_more_rows():
    assert joint_error(spectral_filter, 15, 64_000) < 0.9 * joint_error(spectral_filter, 15, 8000)


def test_losing_good_rows_of_a_rare_cell_is_no_evidence_against_the_others():
    """Distrusted by mistake, they lift the variance along it at a fixed scale; not if it follows.

    The cell is the rarest of those with more than 1,000 rows; no row is bad.
    """
    network = random_network("tree", 10, random_state=0)
    rows = load_kernels("native").encode(network.layout, sample(network, 20_000, 0))
    counts = rows.count()
    cell = np.zeros((len(counts), 1))
    cell[np.argmin(np.where(counts > 1000, counts, np.inf))] = 1.0
    is_in_cell = rows.project(cell)[:, 0] > 0
    mistaken = np.where(is_in_cell, 0.2, 1.0)

    def variance(expansion, weights):
        product = expansion.gram(cell, weights, expansion.mean(weights)) / weights.sum()
        return float((cell * product).sum() / (cell * expansion.expected(cell)).sum())

    half_healed = np.where(is_in_cell, 0.6, 1.0)
    fixed = Expansion.at_weights_of(rows, mistaken)
    following = FollowingExpansion.at_weights_of(rows, mistaken)
    assert follow_weights(fixed, half_healed) is fixed
    assert variance(fixed, half_healed) > 2
    assert variance(follow_weights(following, half_healed), half_healed) == pytest.approx(
        1, abs=0.01
    )


# --- weights --------------------------------------------------------------------------------------


@st.composite
def weighted_scores(draw):
    """Weights and scores, with ties and zeros among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 300))
    w = rng.random(n) ** draw(st.sampled_from([0.0, 1.0, 3.0]))
    scores = rng.exponential(size=n) ** draw(st.sampled_from([0.5, 1.0, 3.0]))
    if draw(st.booleans()):
        scores = np.round(scores)
    return w, scores


@given(weighted_scores(), st.floats(0.02, 0.9), st.floats(0, 1), st.floats(0.001, 0.5))
def test_soft_filter_lowers_the_tail_and_nothing_else(case, tail, ambition, share):
    w, scores = case
    before = w @ scores / w.sum()
    max_mass = share * w.sum()
    after = soft_filter(w, scores, tail=tail, allowed=ambition * before, max_mass=max_mass)
    taken = w.sum() - after.sum()
    assert np.all(after <= w)
    assert np.all(after >= 0)
    assert taken <= max_mass * (1 + 1e-9)
    lowered = after < w * (1 - 1e-12)
    if lowered.any():
        assert w[scores > scores[lowered].min()].sum() <= tail * w.sum() * (1 + 1e-6)
        assert after @ scores / after.sum() <= before * (1 + 1e-9)
    order = np.random.default_rng(0).permutation(len(w))
    again = soft_filter(
        w[order], scores[order], tail=tail, allowed=ambition * before, max_mass=max_mass
    )
    np.testing.assert_allclose(again, after[order], atol=1e-6)


def test_soft_filter_takes_no_more_than_it_needs():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.chisquare(1, 900), rng.normal(7, 1, 100) ** 2])
    w = np.ones(1000)
    after = soft_filter(w, scores, tail=0.2, allowed=3.0, max_mass=1000.0)
    assert after @ scores / after.sum() == pytest.approx(3.0, rel=1e-6)
    assert w[900:].sum() - after[900:].sum() > 10 * (w[:900].sum() - after[:900].sum())
    same = soft_filter(w, scores, tail=0.2, allowed=scores.mean() + 1, max_mass=1000.0)
    np.testing.assert_array_equal(same, w)


def test_soft_filter_lowers_ties_in_part():
    """200 equal scores at the top, and leave to take 50 of them."""
    scores = np.where(np.arange(1000) < 200, 9.0, 1.0)
    after = soft_filter(np.ones(1000), scores, tail=0.2, allowed=1.0, max_mass=50.0)
    assert after[:200].sum() == pytest.approx(150, rel=1e-6)
    assert np.ptp(after[:200]) == 0
    np.testing.assert_array_equal(after[200:], 1.0)


@given(weighted_scores(), st.floats(0.01, 0.99))
def test_dropping_the_highest_takes_exactly_the_mass_asked_for(case, share):
    w, scores = case
    after = drop_highest(w, scores, share * w.sum())
    assert w.sum() - after.sum() == pytest.approx(share * w.sum())
    touched = after < w
    assert scores[touched].min() >= scores[~touched & (w > 0)].max(initial=0)
    for value in np.unique(scores):  # ties share alike
        tied = (scores == value) & (w > 0)
        if tied.any():
            assert np.ptp(after[tied] / w[tied]) < 1e-9


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_the_projection_is_the_nearest_capped_weight(seed, share):
    rng = np.random.default_rng(seed)
    values = rng.normal(0.5, rng.choice([0.1, 1.0, 10.0]), size=40)
    caps = (rng.random(40) < 0.9).astype(float)
    total = share * caps.sum()
    near = project_capped_simplex(values, total, caps)
    assert near.sum() == pytest.approx(total, abs=1e-9)
    assert np.all((near >= 0) & (near <= caps))
    other = rng.random(40) * caps
    other *= min(1.0, total / other.sum())
    other += (caps - other) * (total - other.sum()) / max((caps - other).sum(), 1e-300)
    assert np.sum((near - values) ** 2) <= np.sum((other - values) ** 2) + 1e-9


def test_far_rows_are_trimmed_and_others_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    X[:30] *= 100
    np.testing.assert_array_equal(
        np.flatnonzero(trim_far_rows(DenseVectors.of(X), 0.1) == 0), range(30)
    )
    assert (trim_far_rows(DenseVectors.of(X), 0.01) == 0).sum() == 10
    assert trim_far_rows(DenseVectors.of(X), 0.0).all()
    binary = (rng.random((1000, 1)) < 0.2).astype(float)
    assert trim_far_rows(DenseVectors.of(binary), 0.4).all()


def test_noise_is_the_edge_of_the_spectrum_for_gaussian_rows():
    for n_rows, dim in [(2000, 40), (1000, 200)]:
        vectors = DenseVectors.of(np.random.default_rng(0).normal(size=(n_rows, dim)))
        weights = np.ones(n_rows)
        noise = sampling_noise(vectors, weights, look_at(vectors, weights))[0]
        assert noise == pytest.approx(2 * math.sqrt(dim / n_rows) + dim / n_rows, rel=0.1)


def test_positions_have_their_sign_and_medians_their_weight():
    X = np.random.default_rng(0).normal(3, 2, size=(500, 6))
    u = np.array([0.6, 0, 0.8, 0, 0, 0])
    center = np.arange(6.0)
    found = signed_positions(DenseVectors.of(X), u, center)
    np.testing.assert_allclose(found, (X - center) @ u, atol=1e-9)
    assert weighted_median(np.array([5.0, 1, 2]), np.array([1.0, 1, 3])) == 2


# --- baselines ------------------------------------------------------------------------------------


def test_the_geometric_median_has_the_least_sum_of_distances():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(400, 5))
    found = geometric_median(DenseVectors.of(X), 0.1)
    assert found.converged

    def distances(c):
        return np.linalg.norm(X - c, axis=1).sum()

    for _ in range(20):
        assert distances(found.mean) <= distances(found.mean + 0.01 * rng.normal(size=5))
    X[:150] += 1e8
    assert np.linalg.norm(find_center(DenseVectors.of(X)).point) < 10


def test_baselines_drop_the_share_they_were_told():
    X, is_bad, good_mean = attacked_rows("cluster", 2000, 10)
    for oracle in (one_shot, ransac):
        found = oracle(DenseVectors.of(X), 0.1, random_state=0)
        assert found.removed == pytest.approx(0.1)
        assert found.weights[is_bad].sum() < 5
        assert np.linalg.norm(found.mean - good_mean) < 0.1
    np.testing.assert_allclose(plain_mean(DenseVectors.of(X), 0.1).mean, X.mean(axis=0))
