"""The lemmas of the paper on f(X, q), on networks small enough to enumerate."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbn import random_network, sample
from robustbn._core.expansion import Expansion, normalise_counts
from robustbn._core.spectrum import top_eigenpairs
from robustbn._rows.kernels import load_kernels
from robustbn.distance import _joint
from tests.strategies import networks_with_rows

numpy = load_kernels("numpy")


def every_row(network):
    """All joint states, and the probability of each."""
    rows = np.array(list(itertools.product(*map(range, network.layout.cards))), np.uint8)
    return numpy.encode(network.layout, rows), _joint(network)


def written_down(expansion):
    """The vectors `f^` of all rows, shape (N, M): for tests only."""
    layout = expansion.rows.layout
    one_hot = expansion.rows.project(np.eye(layout.n_cells))
    shows = one_hot @ np.eye(layout.n_configurations)[layout.config_of_cell]
    return expansion.scale * (one_hot - expansion.q * shows[:, layout.config_of_cell])


def exact_expansion(network, q=None):
    rows, p = every_row(network)
    expansion = Expansion.at_weights_of(rows, p, damping=0.0)
    return (expansion if q is None else replace(expansion, q=q)), p


@pytest.fixture(params=[2, (2, 4)], ids=["binary", "categorical"])
def network(request):
    return random_network("graph", 7, 24, request.param, random_state=3)


def test_at_the_true_tables_the_mean_is_zero(network):
    """Lemma F-moments (i)."""
    expansion, p = exact_expansion(network)
    np.testing.assert_allclose(expansion.q, network.probabilities, atol=1e-12)
    np.testing.assert_allclose(expansion.mean(p), 0, atol=1e-12)


def test_at_the_true_tables_the_covariance_is_a_projection(network):
    """Lemma F-moments (ii), for any number of states: per configuration `I - sqrt(q) sqrt(q)'`."""
    expansion, p = exact_expansion(network)
    identity = np.eye(network.n_cells)
    covariance = expansion.gram(identity, p, np.zeros(network.n_cells))
    same = np.equal.outer(network.layout.config_of_cell, network.layout.config_of_cell)
    root = np.sqrt(network.probabilities)
    np.testing.assert_allclose(covariance, identity - same * np.outer(root, root), atol=1e-9)
    np.testing.assert_allclose(expansion.expected(identity), covariance, atol=1e-9)
    values = np.linalg.eigvalsh(covariance)
    assert np.isclose(values, 1).sum() == network.layout.n_free
    assert np.isclose(values, 0, atol=1e-9).sum() == network.n_configurations


def test_away_from_the_true_tables_the_mean_is_pi_times_the_difference(network):
    """Lemma mean-fxq."""
    rng = np.random.default_rng(0)
    q = normalise_counts(network.layout, rng.random(network.n_cells))
    expansion, p = exact_expansion(network, q)
    pi = expansion.pi[network.layout.config_of_cell]
    expected = expansion.scale * pi * (network.probabilities - q)
    np.testing.assert_allclose(expansion.mean(p), expected, atol=1e-12)


def test_for_two_states_the_scaling_is_isometric_to_that_of_the_paper():
    """`(1[v] - q) / sqrt(pi q)` over both states has the norm of `(x - q) / sqrt(pi q (1 - q))`."""
    network = random_network("graph", 6, 20, random_state=0)
    expansion, _ = exact_expansion(network)
    rows, _ = every_row(network)
    q = network.probabilities[1::2]
    paper = 1 / np.sqrt(expansion.pi * q * (1 - q))
    one_hot = rows.project(np.eye(network.n_cells))
    f = (one_hot[:, 1::2] * (1 - q) - one_hot[:, ::2] * q) * paper
    np.testing.assert_allclose(
        np.square(written_down(expansion)).sum(axis=1), np.square(f).sum(axis=1)
    )


@settings(max_examples=30)
@given(networks_with_rows(max_nodes=5, max_states=4, max_rows=200, max_cells=60), st.booleans())
def test_products_are_those_of_the_vectors_written_down(case, centred):
    network, codes, weights = case
    if not weights.any():
        return
    rows = numpy.encode(network.layout, codes)
    expansion = Expansion.at_weights_of(rows, weights, damping=3.0)
    X = written_down(expansion)
    rng = np.random.default_rng(0)
    V = rng.normal(size=(network.n_cells, 3))
    center = rng.normal(size=network.n_cells) if centred else np.zeros(network.n_cells)
    close = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(expansion.mean(weights), weights @ X / weights.sum(), **close)
    gram = (X - center).T @ (weights[:, None] * (X - center)) @ V
    np.testing.assert_allclose(expansion.gram(V, weights, center), gram, **close)
    score = np.square((X - center) @ V).sum(axis=1)
    np.testing.assert_allclose(expansion.score(V, center), score, **close)
    norms = np.square(X - center).sum(axis=1)
    np.testing.assert_allclose(expansion.square_norms(center), norms, **close)


@settings(max_examples=30)
@given(networks_with_rows(max_rows=300))
def test_centred_at_weighted_counts_the_weighted_mean_is_zero(case):
    network, codes, weights = case
    if not weights.any():
        return
    rows = numpy.encode(network.layout, codes)
    expansion = Expansion.at_weights_of(rows, weights)
    np.testing.assert_allclose(expansion.mean(weights), 0, atol=1e-9)


def test_the_top_eigenpairs_are_those_of_the_matrix():
    network = random_network("graph", 12, 60, (2, 3), random_state=0)
    codes = sample(network, 4000, 0)
    codes[:400] = codes[0]
    rows = load_kernels("native").encode(network.layout, codes)
    expansion = Expansion.at_weights_of(rows, np.ones(rows.n_rows))
    center = np.zeros(expansion.dim)
    spectrum = top_eigenpairs(expansion, None, center, len(codes), depth=5)
    exact = np.linalg.eigvalsh(expansion.gram(np.eye(expansion.dim), None, center) / len(codes))
    assert spectrum.top == pytest.approx(exact[-1], rel=1e-4)
    top = spectrum.vectors[:, 0]
    assert np.linalg.norm(top) == pytest.approx(1)


def test_rows_drawn_from_the_tables_have_a_top_eigenvalue_near_one():
    for cards in (2, (2, 5)):
        network = random_network("graph", 20, 120, cards, random_state=1)
        rows = load_kernels("native").encode(network.layout, sample(network, 100_000, 0))
        expansion = Expansion.at_weights_of(rows, np.ones(rows.n_rows))
        top = top_eigenpairs(expansion, None, np.zeros(expansion.dim), 100_000, depth=8).top
        ratio = network.layout.n_free / 100_000
        assert 0.9 < top < 1 + 2 * np.sqrt(ratio) + ratio + 0.01


def test_a_rare_configuration_cannot_dominate_the_spectrum():
    """One row that alone shows many rare cells would have an eigenvalue of about their number."""
    network = random_network("tree", 30, random_state=0)
    likely = network.with_cpts(np.tile([1 - 1e-4, 1e-4], network.n_configurations))
    codes = sample(likely, 20_000, 0)
    codes[7] = 1
    rows = load_kernels("native").encode(network.layout, codes)
    center = np.zeros(network.n_cells)
    free, damped = (
        top_eigenpairs(
            Expansion.at_weights_of(rows, np.ones(rows.n_rows), damping=d), None, center, len(codes)
        ).top
        for d in (1e-9, 30.0)
    )
    assert free > 5
    assert damped < 1.5
