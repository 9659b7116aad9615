"""Labels that are wrong here and there are told from a population's own exceptions."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn._learn.scattered import Values, find_scattered

N, N_VALUES, N_LABELS = 4000, 8, 4


def make_columns(exceptions, seed=0):
    """A code and its name; `exceptions` are names at their own rates: (values, labels)."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, N_VALUES, N)
    names = codes % N_LABELS
    odd = rng.random(N) < exceptions.sum(axis=1)[codes]
    shares = exceptions / np.maximum(exceptions.sum(axis=1, keepdims=True), 1e-9)
    ends = np.cumsum(shares, axis=1)[codes[odd]]
    names[odd] = np.minimum((rng.random((odd.sum(), 1)) > ends).sum(axis=1), N_LABELS - 1)
    return codes, names


def look(codes, names, n_labels=N_LABELS):
    columns = {0: Values(codes, N_VALUES, True), 1: Values(names, n_labels, True)}
    return find_scattered(columns)


@pytest.mark.parametrize("rate", [0.01, 0.03])
def test_any_label_in_some_rows_is_told_with_its_rows(rate):
    codes, names = make_columns(np.zeros((N_VALUES, N_LABELS)))
    assert not look(codes, names)
    rng = np.random.default_rng(1)
    rows = rng.choice(N, int(rate * N), replace=False)
    names[rows] = (names[rows] + rng.integers(1, N_LABELS, len(rows))) % N_LABELS
    (found,) = look(codes, names)
    assert {found.node, found.by} == {0, 1}  # which of the two is wrong, nothing shows
    assert found.share == pytest.approx(rate, rel=0.3)
    assert set(found.rows.tolist()) == set(rows.tolist())


def test_numbers_tell_wrong_labels_too():
    rng = np.random.default_rng(2)
    numbers = rng.normal(0, 1, N)
    names = np.digitize(numbers, [-0.7, 0, 0.7])
    rows = rng.choice(N, 80, replace=False)
    names[rows] = (names[rows] + rng.integers(1, N_LABELS, len(rows))) % N_LABELS
    columns = {0: Values.of_numbers(numbers), 1: Values(names, N_LABELS, True)}
    (found,) = find_scattered(columns)
    assert (found.node, found.by) == (1, 0)


@pytest.mark.parametrize("seed", range(5))
def test_exceptions_at_their_own_rates_are_no_mistake(seed):
    rates = np.random.default_rng(seed).dirichlet(np.full(N_LABELS, 0.5), N_VALUES) * 0.05
    assert not look(*make_columns(rates, seed))


def test_rare_labels_beside_any_value_are_no_mistake():
    codes, names = make_columns(np.zeros((N_VALUES, N_LABELS)))
    rng = np.random.default_rng(3)
    rows = rng.choice(N, 160, replace=False)
    names[rows] = rng.integers(N_LABELS, N_LABELS + 2, len(rows))
    assert not look(codes, names, N_LABELS + 2)


def test_two_labels_say_nothing_of_how_errors_are_spread():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, N_VALUES, N)
    names = (codes % 2) ^ (rng.random(N) < 0.03)
    assert not look(codes, names, 2)
