"""Pairs of cells, the covariances that are written down from them, and "que" by either way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbn import random_network, sample
from robustbn._core.expansion import (
    MOST_WRITTEN_CELLS,
    Contrasts,
    Expansion,
    FollowingExpansion,
    PairMemory,
    remember_pairs,
)
from robustbn._core.layout import Layout
from robustbn._means.que import Past, approximate_scores, begin_epoch, draw_sketch, que
from robustbn._means.weighting import look_at
from robustbn._means.written import PassedVectors, WrittenVectors, see
from robustbn._rows.kernels import _native, load_kernels
from robustbn.adversary import corrupt
from tests.strategies import layouts_with_holed_rows, networks_with_rows

native, numpy = load_kernels("native"), load_kernels("numpy")


def seen_rows(kernels="numpy", n_rows=3000, cards=(2, 4), seed=0):
    """Rows of a graph, a tenth of them bad, in a set of kernels."""
    network = random_network("graph", 8, 30, cards, random_state=seed)
    codes, _ = corrupt(sample(network, n_rows, seed), network, "network", 0.1, seed)
    return load_kernels(kernels).encode(network.layout, codes)


def matrix_of(expansion):
    """The N x M matrix that is never built elsewhere."""
    return expansion.rows.project(expansion.table(np.eye(expansion.dim)))


@given(networks_with_rows(max_rows=600, max_cells=100), st.booleans(), st.integers(1, 3))
def test_native_pairs_are_the_specified_pairs(case, fuse, n_threads):
    network, codes, weights = case
    fast = native.encode(network.layout, codes, n_threads, fuse=fuse)
    slow = numpy.encode(network.layout, codes)
    np.testing.assert_array_equal(fast.count_pairs(), slow.count_pairs())
    for w in (weights, weights.astype(np.float32), -weights):
        got, expected = fast.count_pairs(w), slow.count_pairs(w)
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.diag(got), slow.count(w), rtol=1e-12, atol=1e-12)


@given(layouts_with_holed_rows(max_rows=300))
def test_native_pairs_with_holes_are_the_specified_pairs(case):
    layout, codes = case
    if layout.n_cells > 2000:
        layout = Layout(layout.cards, tuple((i,) for i in range(layout.n_nodes)), layout.holed)
    fast, slow = native.encode(layout, codes, 2), numpy.encode(layout, codes)
    np.testing.assert_array_equal(fast.count_pairs(), slow.count_pairs())


def test_pairs_of_groups_with_many_codes_are_the_specified_pairs():
    layout = Layout((60, 50, 200, 3), ((0,), (0, 1), (2,), (3,)))
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, c, 700) for c in layout.cards], axis=1).astype(np.uint8)
    w = rng.random(700)
    fast, slow = native.encode(layout, codes), numpy.encode(layout, codes)
    assert {c.code_bytes for c in fast.clusters} == {1, 2}
    np.testing.assert_allclose(fast.count_pairs(w), slow.count_pairs(w), rtol=1e-12, atol=1e-12)


def test_pairs_are_the_same_bits_for_every_number_of_threads():
    network = random_network("graph", 20, 120, (2, 5), random_state=3)
    codes, w = sample(network, 5000, 1), np.random.default_rng(0).random(5000)
    found = [native.encode(network.layout, codes, n).count_pairs(w) for n in (1, 2, 5)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_pair_kernel_checks_what_it_is_given():
    rows = seen_rows("native")
    with pytest.raises(ValueError, match="one weight a row"):
        rows.count_pairs(np.ones(2999))
    with pytest.raises(ValueError, match="packed has the wrong size"):
        replace(rows, n_rows=10_000).count_pairs()
    with pytest.raises(ValueError, match="a packed code is out of range"):
        replace(rows, packed=np.full_like(rows.packed, 255)).count_pairs()
    cells = [[np.zeros(2, np.int32)]]
    with pytest.raises(ValueError, match="too many cells"):
        _native.Pairs([1], cells, 10**6)
    with pytest.raises(ValueError, match="a cell belongs to one group"):
        _native.Pairs([1, 1], cells * 2, 4)
    with pytest.raises(ValueError, match="no such cell"):
        _native.Pairs([1], cells, 0)


def test_pairs_follow_the_weights_by_the_rows_that_changed():
    rows, counted = seen_rows(), []

    class Watched:
        def count_pairs(self, weights=None):
            counted.append(np.count_nonzero(weights))
            return rows.count_pairs(weights)

    memory, rng = PairMemory(Watched()), np.random.default_rng(0)
    ones = np.ones(rows.n_rows)
    lowered = np.where(np.arange(rows.n_rows) < 200, rng.random(rows.n_rows), 1.0)
    lower = np.where(np.arange(rows.n_rows) < 50, 0.0, lowered)
    for w in (ones, lowered, lower, lower, ones, lowered.astype(np.float32)):
        np.testing.assert_allclose(memory.at(w), rows.count_pairs(w), rtol=1e-9, atol=1e-9)
    assert counted == [rows.n_rows, 200, 50, 200]


def test_pairs_are_remembered_where_they_are_few():
    assert remember_pairs(seen_rows()) is not None
    assert remember_pairs(seen_rows(n_rows=100)) is None  # M^2 > N d

    class Wide:
        layout, n_rows = Layout((MOST_WRITTEN_CELLS + 1,), ((0,),)), 10**9

        def count_pairs(self, weights=None):
            raise AssertionError

    assert remember_pairs(Wide()) is None
    Wide.layout = Layout((MOST_WRITTEN_CELLS,), ((0,),))
    assert remember_pairs(Wide()) is not None


@pytest.mark.parametrize("cards", [2, (1, 2), (2, 5)])
def test_contrasts_keep_all_that_vectors_have(cards):
    rows = seen_rows(cards=cards)
    w = np.random.default_rng(0).random(rows.n_rows)
    expansion = Expansion.at_weights_of(rows, w)
    X = matrix_of(expansion)
    contrasts = Contrasts(rows.layout, expansion.q, expansion.scale)
    short = contrasts.reduce(X.T)
    assert len(short) == rows.layout.n_free
    np.testing.assert_allclose(contrasts.lift(short), X.T, atol=1e-9)
    np.testing.assert_allclose(short.T @ short, X @ X.T, atol=1e-7)
    moments = contrasts.moments(rows.count_pairs(w))
    np.testing.assert_allclose(moments, (w * short) @ short.T, atol=1e-7)


def test_what_is_written_down_is_what_passes_see():
    rows = seen_rows()
    w = np.random.default_rng(0).random(rows.n_rows)
    start = Expansion.at_weights_of(rows, np.ones(rows.n_rows), pairs=remember_pairs(rows))
    seen = see(start)
    assert isinstance(seen, WrittenVectors)
    assert isinstance(see(replace(start, pairs=None)), PassedVectors)
    found, passed = seen.look_at(w, seed=3), look_at(start, w, seed=3)
    np.testing.assert_allclose(found.mean, passed.mean)
    assert found.total == passed.total
    np.testing.assert_allclose(found.spectrum.values[:8], passed.spectrum.values[:8], rtol=1e-9)
    V = np.random.default_rng(1).normal(size=(start.dim, 5))
    lifted = seen.contrasts.lift(seen.expected @ seen.contrasts.reduce(V))
    np.testing.assert_allclose(lifted, start.expected(V), atol=1e-9)


@pytest.mark.parametrize("n_steps", [0, 1, 5])
def test_scores_of_written_covariances_are_those_of_passes(n_steps):
    rows = seen_rows()
    rng = np.random.default_rng(0)
    start = Expansion.at_weights_of(rows, np.ones(rows.n_rows), pairs=remember_pairs(rows))
    seen, past, w = see(start), Past.empty(start), np.ones(rows.n_rows)
    epoch = begin_epoch(seen)
    for _ in range(n_steps):
        w = w * np.where(rng.random(rows.n_rows) < 0.1, 0.5, 1.0)
        past, epoch = past.add(w, start.mean(w)), epoch.add(w, seen.look_at(w))
    look, sketch = seen.look_at(w), draw_sketch(start.dim, 16, rng)
    found = epoch.score(w, look, 0.7, sketch, 1.5)
    passed = approximate_scores(start, w, look.mean, past, 0.7, sketch, excess_bound=1.5)
    np.testing.assert_allclose(found.tau, passed.tau, rtol=1e-8, atol=1e-10)
    assert found.excess == pytest.approx(passed.excess, rel=1e-8)
    assert found.base == pytest.approx(passed.base, rel=1e-8)
    assert found.degree == passed.degree


@pytest.mark.parametrize("kind", [Expansion, FollowingExpansion])
def test_written_down_or_by_passes_que_takes_the_same_steps(kind):
    rows = seen_rows(n_rows=6000)
    written = kind.at_weights_of(rows, np.ones(rows.n_rows), pairs=remember_pairs(rows))
    found, passed = (
        que(each, 0.1, trim=False, random_state=0)
        for each in (written, replace(written, pairs=None))
    )
    assert passed.removed > 0.02
    assert len(found.history) == len(passed.history)
    np.testing.assert_allclose(found.weights, passed.weights, atol=1e-6)
    np.testing.assert_allclose(found.mean, passed.mean, atol=1e-8)


def test_steps_that_filter_nothing_pass_over_no_rows():
    rows = seen_rows()
    start = Expansion.at_weights_of(rows, np.ones(rows.n_rows), pairs=remember_pairs(rows))
    seen = see(start)
    assert isinstance(seen, WrittenVectors)
    ones = np.ones(rows.n_rows)
    look = seen.look_at(ones)
    epoch = begin_epoch(replace(seen, vectors=replace(start, rows=OnlyLayout(rows))))
    for _ in range(3):
        epoch = epoch.add(ones, look)
    sketch = draw_sketch(start.dim, 16, np.random.default_rng(0))
    assert np.isfinite(epoch.score(ones, look, 0.5, sketch, 1.5).excess)


class OnlyLayout:
    """Rows that nobody may pass over."""

    def __init__(self, rows):
        self.layout, self.n_rows = rows.layout, rows.n_rows
