"""Columns that were sorted by themselves over a stretch of rows."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn._learn.sorted_runs import find_sorted_runs

N = 6000


def numbers(seed=0):
    return np.random.default_rng(seed).normal(size=N).round(1)


@pytest.mark.parametrize("is_ascending", [True, False])
def test_a_column_that_is_sorted_over_thirty_rows_is_found_with_its_rows(is_ascending):
    values = numbers()
    values[1000:1030] = np.sort(values[1000:1030])[:: 1 if is_ascending else -1]
    values[1010] = np.nan
    (found,) = find_sorted_runs(values, 10)
    assert found.is_ascending == is_ascending
    assert set(range(1001, 1029)) - {1010} <= set(found.rows.tolist())
    assert len(found.rows) < 35


@pytest.mark.parametrize("seed", range(5))
def test_numbers_in_any_order_are_not_sorted(seed):
    assert not find_sorted_runs(numbers(seed), 1)


def test_equal_values_are_in_every_order():
    values = numbers()
    values[1000:1400] = 3.0
    assert not find_sorted_runs(values, 10)


def test_a_table_that_comes_in_order_is_no_exception():
    assert not find_sorted_runs(np.sort(numbers()), 10)
    halves = np.concatenate([np.sort(numbers()), np.sort(numbers(1))])
    assert not find_sorted_runs(halves, 10)


def test_series_that_rise_again_and_again_are_their_own_yardstick():
    assert not find_sorted_runs(np.tile(np.arange(60.0), 100), 10)
    assert not find_sorted_runs(np.tile(np.arange(60.0), 1), 10)


def test_a_column_without_numbers_is_not_sorted():
    assert not find_sorted_runs(np.full(50, np.nan), 1)
    assert not find_sorted_runs(np.zeros(0), 1)
