"""Fingerprints that occur several times: the kernels find what sorting finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbn import random_network, sample
from robustbn._core.layout import take_rows
from robustbn._core.row_model import Repeats
from robustbn._core.trust import even_weights
from robustbn._learn.copies import find_copies
from robustbn._rows.kernels import has_native, load_kernels
from robustbn._rows.memory import load_rows

needs_native = pytest.mark.skipif(not has_native(), reason="the native kernels were not built")


def assert_same(mine, theirs):
    for field in ("prints", "first", "seen", "rows"):
        np.testing.assert_array_equal(getattr(mine, field), getattr(theirs, field))


def test_copied_prints_come_in_order_with_all_their_rows():
    found = load_kernels("numpy").find_copied(np.array([7, 3, 7, 9, 3, 7, 1], np.uint64), 2)
    assert found.prints.tolist() == [3, 7]
    assert found.first.tolist() == [1, 0]
    assert found.seen.tolist() == [2, 3]
    assert found.rows.tolist() == [1, 4, 0, 2, 5]


@needs_native
@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40),
    st.integers(0, 400),
    st.integers(1, 6),
    st.integers(0, 2**32),
)
def test_the_kernels_find_the_specified_copies(values, n, least, seed):
    prints = np.random.default_rng(seed).choice(np.array(values, np.uint64), n)
    assert_same(
        load_kernels("native").find_copied(prints, least),
        load_kernels("numpy").find_copied(prints, least),
    )


@needs_native
@pytest.mark.parametrize("least", [1, 3, 255, 256, 300, 2**62])
def test_many_rows_and_many_copies_are_told_apart_however_alike_their_bits(least):
    rng = np.random.default_rng(0)
    many = np.repeat(rng.integers(0, 2**64, 3, np.uint64), [299, 300, 301])
    alike = rng.integers(0, 2**30, 5000, np.uint64) << np.uint64(30)  # the same low bits
    low = rng.integers(0, 3000, 5000).astype(np.uint64)  # the same high bits
    prints = rng.permutation(np.concatenate([many, alike, alike[:100], alike[:100], low]))
    assert_same(
        load_kernels("native").find_copied(prints, least),
        load_kernels("numpy").find_copied(prints, least),
    )


@needs_native
def test_what_is_no_list_of_prints_is_refused():
    from robustbn._rows.kernels import _native

    prints = np.array([5, 5, 2], np.uint64)
    with pytest.raises(ValueError, match="at least once"):
        _native.Copies(prints, 0)
    with pytest.raises(TypeError):
        _native.Copies(prints.astype(np.int64), 2)
    found = _native.Copies(prints, 2)
    with pytest.raises(ValueError, match="shapes differ"):
        found.write(np.empty(2, np.uint64), np.empty(1, np.int64), np.empty(2, np.int64))


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_taken_whatever_their_order_in_memory(order):
    codes = np.asarray(np.arange(40, dtype=np.uint8).reshape(8, 5), order=order)
    which = np.array([6, 0, 0, 3])
    np.testing.assert_array_equal(take_rows(codes, which), codes[which])
    np.testing.assert_array_equal(take_rows(codes[:, ::2], which), codes[:, ::2][which])


def test_copies_weigh_rows_as_their_fingerprints_do():
    network = random_network("empty", 3, random_state=0)
    codes = sample(network, 500, random_state=0)
    rows = load_rows(network, codes)
    ones, prints = np.ones(len(codes), np.float32), rows.fingerprints()
    copies = find_copies(prints, ones, codes, lambda some: load_rows(network, some))
    assert len(copies.seen) > 3
    which = np.arange(0, len(copies.seen), 2)
    repeats = Repeats(
        copies.fingerprints[which],
        np.linspace(0.1, 0.9, len(which)),
        copies.first[which],
        copies.seen[which],
        np.ones(len(which)),
        copies.codes[which],
    )
    np.testing.assert_array_equal(copies.weigh(repeats, len(codes)), repeats.weigh(rows))
    heavy = find_copies(prints, 2 * ones, codes, lambda some: load_rows(network, some))
    even = even_weights(len(codes))
    light = find_copies(prints, even, codes, lambda some: load_rows(network, some))
    np.testing.assert_array_equal(heavy.weight, 2 * copies.weight)
    np.testing.assert_array_equal(light.weight, copies.weight)


def test_the_share_of_copies_with_the_same_numbers_is_that_of_rows_whose_numbers_are_known():
    network = random_network("empty", 3, random_state=0)
    codes = sample(network, 500, random_state=0)
    prints, rng = load_rows(network, codes).fingerprints(), np.random.default_rng(0)
    even = even_weights(len(codes))

    def find(written):
        return find_copies(
            prints, even, codes, lambda some: load_rows(network, some), written=written
        )

    different = rng.permutation(np.arange(1, 501)).astype(np.uint64)
    np.testing.assert_array_equal(find(different).alike, 1 / find(different).seen)
    for not_known in (None, np.zeros(500, np.uint64)):
        assert (find(not_known).alike == 1).all()
    chosen = find(None).fingerprints[1]
    written = np.where((prints == chosen) & (rng.random(500) < 0.8), np.uint64(7), different)
    is_same = written[prints == chosen] == 7
    assert find(written).alike[1] == is_same.mean()
    written[rng.random(500) < 0.5] = 0
    some = written[prints == chosen]
    assert find(written).alike[1] == np.mean(some[some > 0] == 7)
