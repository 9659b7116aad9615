"""True values of cells, drawn given all others: the native kernel against its specification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbn._core import cells as core
from robustbn._core.cells import CellModel, Lists
from robustbn._rows.cells import count_cells, find_nearby, load_sweep

native = pytest.importorskip("robustbn._rows.kernels._native")


def make_model(seed, d=5, n=120, largest=5, n_groups=1, nearby=False, holes=False):
    """Return a random model, and rows with their true values."""
    rng = np.random.default_rng(seed)
    cards = tuple(int(c) for c in rng.integers(1, largest + 1, d))
    parents = tuple(
        tuple(int(p) for p in rng.permutation(i)[: rng.integers(0, min(i, 2) + 1)])
        for i in range(d)
    )
    truth = (rng.random((n, d)) * np.array(cards)).astype(np.int32)
    seen = np.where(rng.random((n, d)) < 0.2, (rng.random((n, d)) * cards).astype(np.int32), truth)
    if holes:
        seen = np.where(rng.random((n, d)) < 0.1, np.array(cards), seen)
    near = find_nearby(cards, parents, truth) if nearby else ((), (), Lists.none(0))
    model = CellModel(
        cards, parents, count_cells(cards, parents, truth), rng.uniform(0.01, 3, d),
        rng.uniform(0.01, 3, d), rng.uniform(0.01, 0.4, (n_groups, d)), *near,
    )  # fmt: skip
    return model, seen.astype(np.int32), truth, rng.integers(0, n_groups, n).astype(np.int32)


def assert_same(one, other):
    np.testing.assert_array_equal(one.truth, other.truth)
    for name in ("rows", "columns", "seen", "likely"):
        np.testing.assert_array_equal(getattr(one.named, name), getattr(other.named, name))
    np.testing.assert_allclose(one.named.probability, other.named.probability, rtol=1e-5)
    for name in ("wrong", "counts", "gains", "n_wrong"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-6)


@given(
    seed=st.integers(0, 10_000),
    flags=st.tuples(*[st.booleans()] * 3),
    own=st.sampled_from([0.0, 1.0]),
)
@settings(max_examples=40, deadline=None)
def test_native_sweeps_are_those_of_the_specification(seed, flags, own):
    nearby, holes, is_large = flags
    with pytest.MonkeyPatch.context() as patch:
        if nearby:
            patch.setattr("robustbn._rows.cells.MOST_TRIED", 2)
        if is_large:
            patch.setattr(core, "LARGEST_DENSE", 10)
        model, seen, truth, groups = make_model(seed, n_groups=3, nearby=nearby, holes=holes)
        how = {"groups": groups, "own": own, "key": seed, "n_sweeps": 5, "n_burn": 2}
        weights = np.random.default_rng(seed).random(len(seen))
        how |= {"weights": weights, "calm": (seed % 3) * 0.1, "least": 0.3, "asks_wrong": True}
        seen = seen.astype([np.uint8, np.uint16, np.int32][seed % 3])
        found = [load_sweep(k)(model, seen, truth, **how) for k in ("native", "numpy")]
    assert_same(*found)


MANY_CHILDREN = (3, *[2] * 40), ((), *[(0,)] * 40)  # states differ by up to 1e257
LARGE_TABLE = (40, 128, 128), ((1, 2), (), ())  # too large for what a family says of each state


@pytest.mark.parametrize("network", [MANY_CHILDREN, LARGE_TABLE])
def test_large_families_are_swept_as_specified(network):
    cards, parents = network
    d, rng = len(cards), np.random.default_rng(0)
    truth = (rng.random((50, 1)) ** 2 * np.array(cards)).astype(np.int32)  # columns agree
    seen = np.where(rng.random((50, d)) < 0.1, (rng.random((50, d)) * cards).astype(int), truth)
    model = CellModel(
        cards, parents, count_cells(cards, parents, truth), np.full(d, 1e-6), np.full(d, 0.1),
        np.full((1, d), 0.05),
    )  # fmt: skip
    how = {"calm": 0.1, "n_sweeps": 3, "least": 0.3, "asks_wrong": True}
    assert_same(*(load_sweep(k)(model, seen, **how) for k in ("native", "numpy")))


def test_sweeps_do_not_depend_on_threads_nor_on_where_rows_are_cut():
    model, seen, truth, _ = make_model(3, d=8, n=500)
    sweep = load_sweep("native")
    how = {"key": 7, "n_sweeps": 4, "least": 0.0, "asks_wrong": True}
    whole = sweep(model, seen, truth, n_threads=1, **how)
    assert_same(whole, sweep(model, seen, truth, n_threads=3, **how))
    parts = [
        sweep(model, seen[k : k + 100], truth[k : k + 100], key=7, first_row=k, n_sweeps=4).truth
        for k in range(0, 500, 100)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole.truth)


def test_expected_counts_of_rows_without_doubt_are_their_counts():
    model, _, truth, _ = make_model(5, n=400)
    sure = model.with_rates(np.zeros_like(model.rates))
    swept = load_sweep("native")(
        sure, truth, truth, own=0.0, n_sweeps=3, least=0.0, asks_wrong=True
    )
    np.testing.assert_allclose(swept.counts, model.counts.cells)
    np.testing.assert_array_equal(swept.truth, truth)
    assert not swept.wrong.any()
    assert not len(swept.named)


def test_the_posterior_of_cells_is_that_of_all_true_values_together():
    rng = np.random.default_rng(0)
    coin = rng.integers(0, 2, 1000)
    shown = [np.where(rng.random(1000) < 0.15, 1 - coin, coin) for _ in range(2)]
    truth = np.stack([coin, *shown], axis=1).astype(np.int32)
    cards, parents, rate = (2, 2, 2), ((), (0,), (0,)), 0.2
    model = CellModel(
        cards, parents, count_cells(cards, parents, truth), np.full(3, 1e-6), np.full(3, 1e-6),
        np.full((1, 3), rate),
    )  # fmt: skip
    seen = np.array([[0, 1, 1]] * 200, np.int32)
    how = {"own": 0.0, "n_sweeps": 200, "n_burn": 20, "asks_wrong": True}
    swept = load_sweep("native")(model, seen, **how)
    tables = [truth[:, 0], *truth[:, 1:].T]
    expected = np.zeros((2, 2, 2))
    for z in np.ndindex(2, 2, 2):
        p = (tables[0] == z[0]).mean()
        for j in (1, 2):
            p *= (tables[j][truth[:, 0] == z[0]] == z[j]).mean()
        for j in range(3):
            p *= 1 - rate / 2 if z[j] == seen[0, j] else rate / 2
        expected[z] = p
    expected /= expected.sum()
    wrong = [1 - expected.take(seen[0, j], axis=j).sum() for j in range(3)]
    np.testing.assert_allclose(swept.wrong.mean(axis=0), wrong, atol=0.01)


def test_wrong_arguments_are_refused():
    model, seen, truth, _ = make_model(1)
    sweep = load_sweep("native")
    with pytest.raises(ValueError, match="no such state"):
        sweep(model, seen + 100, truth)
    with pytest.raises(ValueError, match="no such state"):
        sweep(model, seen, truth - 5)
    with pytest.raises(ValueError, match="one line a row"):
        sweep(model, seen, truth[:3])
    with pytest.raises(ValueError, match="no such group"):
        sweep(model, seen, truth, groups=np.full(len(seen), 4, np.int32))
    with pytest.raises(ValueError, match="sweeps"):
        sweep(model, seen, truth, n_sweeps=2, n_burn=2)
    with pytest.raises(ValueError, match="smoothing"):
        sweep(replace(model, novelty=np.zeros(5)), seen, truth)
    with pytest.raises(ValueError, match="one count a state"):
        sweep(replace(model, cards=(9,) * 5), seen, truth)
