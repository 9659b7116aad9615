"""Dates out of order in tables that come by date."""

import numpy as np
import pytest

from robustbn._core.clues import EXCHANGED, OUT_OF_ORDER, WRONG_YEAR
from robustbn._tables.date_order import MOST_COMPARED, find_exceptions

N = 4000


def days_in_order(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return np.datetime64("2023-01-01") + np.sort(rng.integers(0, 730, n))


def hours_of(days):
    return days.astype("M8[h]").astype(np.int64)


def exchange(days):
    texts = days.astype(str)
    return np.array([f"{d[:5]}{d[8:]}-{d[5:7]}" for d in texts], "M8[D]")


def can_be_exchanged(days):
    return np.array([int(d[8:]) < 13 and d[5:7] != d[8:] for d in days.astype(str)])


@pytest.mark.parametrize("is_up", [True, False])
def test_exchanged_days_and_months_are_the_exceptions_of_a_table_in_order(is_up):
    days = days_in_order()[:: 1 if is_up else -1]
    planted = np.flatnonzero(can_be_exchanged(days))[::25]
    days[planted] = exchange(days[planted])
    found = find_exceptions(hours_of(days))
    assert found.kind == EXCHANGED
    assert found.n_mended >= 0.9 * len(found.rows)
    assert np.isin(found.rows, planted).mean() >= 0.9
    assert np.isin(planted, found.rows).mean() >= 0.9


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_the_year_before_in_january_is_a_wrong_year(share):
    days = days_in_order()
    january = np.flatnonzero(days.astype("M8[M]") == np.datetime64("2024-01"))
    planted = january[: int(share * len(january))]
    days[planted] -= 365
    found = find_exceptions(hours_of(days))
    assert found.kind == WRONG_YEAR
    assert np.array_equal(found.rows, planted)
    assert found.n_mended == len(planted)


def test_a_few_dates_that_are_anywhere_are_out_of_order_for_no_known_cause():
    days, rng = days_in_order(), np.random.default_rng(1)
    planted = np.sort(rng.choice(np.arange(500, 3500), 15, replace=False))
    days[planted] += rng.choice([-1, 1], 15) * rng.integers(100, 180, 15)
    found = find_exceptions(hours_of(days))
    assert found.kind == OUT_OF_ORDER
    assert np.isin(planted, found.rows).all()
    assert len(found.rows) <= 17


def test_nothing_is_said_of_tables_that_are_in_order_or_in_none():
    days, rng = days_in_order(), np.random.default_rng(2)
    assert find_exceptions(hours_of(days)) is None
    assert find_exceptions(hours_of(days[::-1])) is None
    assert find_exceptions(hours_of(rng.permutation(days))) is None
    assert find_exceptions(hours_of(days[:20])) is None


@pytest.mark.parametrize(
    "sizes", [(1000, 1000, 1000), (2000, 500), (4000, 100), (4000, 20), (50,) * 20]
)
def test_nothing_is_said_of_sorted_files_one_after_another(sizes):
    days = np.concatenate([days_in_order(n, seed) for seed, n in enumerate(sizes)])
    assert find_exceptions(hours_of(days)) is None


def test_nothing_is_said_if_dates_come_nearly_in_order_as_those_of_polls_do():
    days, rng = days_in_order(), np.random.default_rng(3)
    late = rng.random(N) < 0.05
    days[late] -= rng.integers(1, 20, int(late.sum()))
    assert find_exceptions(hours_of(days)) is None


def test_nothing_is_said_if_most_rows_have_one_date():
    days, rng = np.full(N, np.datetime64("2023-06-01")), np.random.default_rng(4)
    some = rng.choice(N, 60, replace=False)
    days[some] += rng.integers(-100, 100, 60)
    assert find_exceptions(hours_of(days)) is None


def test_a_long_table_is_judged_by_some_of_its_rows_and_says_all_exceptions():
    days = days_in_order(2 * MOST_COMPARED + 1000)
    planted = np.flatnonzero(can_be_exchanged(days))[::200]
    days[planted] = exchange(days[planted])
    found = find_exceptions(hours_of(days))
    assert found.kind == EXCHANGED
    assert np.isin(planted, found.rows).mean() >= 0.9
    assert np.isin(found.rows, planted).mean() >= 0.9
