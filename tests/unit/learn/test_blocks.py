"""Rows that appear exactly twice: more than independent rows have, or not."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn._core.clues import NumberRows
from robustbn._learn import blocks
from robustbn._learn.blocks import RowPrints, find_blocks, find_clearer_pairs, find_pairs


def look_at(prints, is_told=None):
    rows = RowPrints.of(prints.astype(np.uint64), NumberRows(), np.arange(len(prints)))
    return find_pairs(rows, np.zeros(len(prints), bool) if is_told is None else is_told)


def independent_rows(kind, n, rng):
    if kind == "even":
        return rng.integers(50, 20 * n, n)
    if kind == "many":
        return rng.integers(50, 2**60, n)
    if kind == "few":
        return rng.integers(0, n // 3, n)
    if kind == "heavy":
        return np.minimum(rng.zipf(1.3, n), 2**60)
    return np.concatenate([rng.integers(0, 50, n // 2), rng.integers(50, 2**60, n - n // 2)])


@pytest.mark.parametrize("kind", ["even", "many", "few", "heavy", "half"])
@pytest.mark.parametrize("n", [500, 20_000])
def test_independent_rows_of_any_distribution_are_no_pairs(kind, n):
    rng = np.random.default_rng(n)
    assert not any(look_at(independent_rows(kind, n, rng)) for _ in range(20))


@pytest.mark.parametrize("kind", ["many", "half"])
def test_rows_that_were_entered_twice_are_found_wherever_they_stand(kind):
    rng = np.random.default_rng(0)
    rows = independent_rows(kind, 5000, rng)
    copied = np.sort(rng.choice(np.flatnonzero(rows >= 50), 300, replace=False))
    order = rng.permutation(5300)
    prints = np.concatenate([rows, rows[copied]])[order]
    found = look_at(prints)
    np.testing.assert_array_equal(prints[found.first], prints[found.again])
    assert (found.first < found.again).all()
    assert (np.diff(found.again) > 0).all()
    place = np.argsort(order)
    both = np.sort(np.stack([place[copied], place[5000 + np.arange(300)]]), axis=0)
    assert np.isin(both[1], found.again).mean() > 0.9
    assert found.most < 300


def of_few_kinds(seed, n_copies):
    """Return prints of rows of few kinds, and their site and month, some rows entered twice."""
    rng = np.random.default_rng(seed)
    prints = rng.integers(0, 6000, 6000) ** 2  # some kinds are in many rows
    columns = {"site": rng.integers(0, 5, 6000), "month": rng.integers(0, 24, 6000)}
    again = np.append(np.arange(6000), rng.choice(6000, n_copies, replace=False))
    order = rng.permutation(again)
    return prints[order].astype(np.uint64), {name: each[order] for name, each in columns.items()}


def look_clearer(prints, columns):
    rows = RowPrints.of(prints, NumberRows(), np.arange(len(prints)))
    return find_clearer_pairs(rows, np.zeros(len(prints), bool), columns)


def test_cases_entered_twice_are_told_by_their_context_where_the_network_says_too_little():
    prints, columns = of_few_kinds(0, 400)
    assert look_at(prints) is None
    found = look_clearer(prints, columns)
    assert found.context == ("site", "month")
    for each in (prints, *columns.values()):
        np.testing.assert_array_equal(each[found.first], each[found.again])
    assert len(found.again) > 350
    assert found.most < 350


def test_copies_with_another_date_are_told_without_it():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2**60, 5000)
    prints = np.append(rows, rows[:400]).astype(np.uint64)
    found = look_clearer(prints, {"day": rng.integers(0, 300, 5400)})
    assert len(found.again) == 400
    assert not found.context


def test_independent_rows_are_no_pairs_by_any_way_of_comparing_them():
    assert not any(look_clearer(*of_few_kinds(seed, 0)) for seed in range(20))


def test_in_a_long_table_some_prints_tell_whether_there_are_pairs(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ANCHORS", 4_000)
    rng = np.random.default_rng(3)
    kinds = rng.integers(0, 2**60, 15_000)
    single, pairs = kinds[rng.integers(0, 15_000, 20_000)], rng.integers(0, 2**60, 2_000)
    rows = RowPrints.of(single.astype(np.uint64), NumberRows(), np.arange(20_000))
    assert len(rows.some) < 4_000
    assert look_at(single) is None
    found = look_at(rng.permutation(np.concatenate([single, pairs, pairs])))
    assert len(found.again) > 2_000  # all are looked for, once there seem to be some


def test_copies_that_are_told_already_are_left_out():
    rows = np.random.default_rng(1).integers(0, 2**60, 5000)
    is_told = np.arange(5300) >= 5000
    assert look_at(np.concatenate([rows, rows[:300]]), is_told) is None
    assert look_at(np.concatenate([rows, rows[:300]])) is not None


def test_rows_in_the_same_intervals_are_copies_only_if_their_numbers_are_the_same():
    rng = np.random.default_rng(2)
    prints = rng.integers(0, 2**60, 5000).astype(np.uint64)
    prints[4700:] = prints[:300]
    numbers = rng.normal(size=5000)
    told = np.zeros(5000, bool)
    for is_same in (False, True):
        if is_same:
            numbers[4700:] = numbers[:300]
        known = NumberRows(np.arange(5000), {"a": numbers})
        found = find_pairs(RowPrints.of(prints, known, np.arange(5000)), told)
        assert (found is not None) == is_same


def test_rows_that_are_alike_because_of_their_order_are_no_block():
    """A table that is sorted has stretches of few kinds of rows; another repeats a pattern."""
    rng = np.random.default_rng(3)
    in_order = np.repeat(np.arange(60), 50) * 10 + rng.choice(2, 3000, p=[0.8, 0.2])
    in_turn = np.where(rng.random(3000) < 0.1, rng.integers(0, 900, 3000), np.arange(3000) % 6)
    in_turn[: 3000 // 2] = rng.integers(0, 2**40, 1500)
    for prints in (in_order, in_turn):
        rows = RowPrints.of(prints.astype(np.uint64), NumberRows(), np.arange(3000))
        assert not find_blocks(rows)
