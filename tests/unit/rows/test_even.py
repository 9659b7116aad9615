"""Weights that are all 1, and rows that are passed over no oftener than need be."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn import RobustEstimator, example_network, sample
from robustbn._core.row_model import RowModel
from robustbn._core.trust import Trust, even_weights, is_even, sum_weights
from robustbn._rows.draw import drawing
from robustbn._rows.kernels import load_kernels
from robustbn._rows.memory import RowsInMemory, load_rows

NETWORK = example_network("alarm")
KERNELS = ("native", "numpy")


@pytest.fixture(scope="module")
def codes():
    return sample(NETWORK, 3000, random_state=0)


def test_even_weights_are_told_from_all_others():
    assert is_even(even_weights(5))
    assert is_even(even_weights(5)[1:])
    assert not is_even(np.ones(5, np.float32))
    assert not is_even(np.broadcast_to(np.float32(2), (5,)))
    assert not is_even(even_weights(0))
    assert sum_weights(even_weights(5)) == 5.0 == sum_weights(np.ones(5, np.float32))
    assert sum_weights(even_weights(0)) == 0.0


@pytest.mark.parametrize("kernels", KERNELS)
def test_even_weights_give_what_ones_give_to_the_last_bit(codes, kernels):
    rows = load_rows(NETWORK, codes, kernels)
    table = np.random.default_rng(0).normal(size=(NETWORK.n_cells, 3))
    against = np.zeros(len(codes), np.float32)
    even, ones = even_weights(len(codes)), np.ones(len(codes), np.float32)
    np.testing.assert_array_equal(rows.count(even), rows.count(ones))
    np.testing.assert_array_equal(rows.gram(table, None, even), rows.gram(table, None, ones))
    for mine, theirs in (
        (rows.divide(table, None, even), rows.divide(table, None, ones)),
        (
            rows.divide_apart(table, None, against, even),
            rows.divide_apart(table, None, against, ones),
        ),
    ):
        np.testing.assert_array_equal(mine.counts, theirs.counts)
        np.testing.assert_array_equal(mine.masses, theirs.masses)


def test_even_weights_of_other_rows_are_refused(codes):
    rows = load_rows(NETWORK, codes, "native")
    with pytest.raises(ValueError, match="one weight a row"):
        rows.count(even_weights(len(codes) - 1))


def test_counts_that_are_changed_by_who_asked_for_them_stay_as_they_are(codes):
    rows = load_rows(NETWORK, codes)
    counts = rows.count()
    before = counts.copy()
    counts[:] = -1
    np.testing.assert_array_equal(rows.count(), before)


def test_the_spread_of_even_trust_is_that_of_ones():
    mine, theirs = Trust.of(even_weights(1000)), Trust.of(np.ones(1000, np.float32))
    np.testing.assert_array_equal(mine.counts, theirs.counts)
    assert (mine.n_distrusted, mine.total, mine.squares) == (0, 1000.0, 1000.0)
    assert (theirs.n_distrusted, theirs.total, theirs.squares) == (0, 1000.0, 1000.0)


def test_a_model_of_good_rows_trusts_all_without_a_pass(codes):
    rows = load_rows(NETWORK, codes)
    model = RowModel.of_good_rows(NETWORK.probabilities)
    assert model.trusts_all
    assert is_even(model.trust(rows))
    np.testing.assert_array_equal(model.trust(rows), model.weigh(rows))
    data = RowsInMemory(NETWORK, codes)
    survey, weights = data.survey(None, 10, 0), np.linspace(0, 1, len(codes))
    np.testing.assert_array_equal(data.judge(model.trust, None).counts, survey.counts)
    by_weight = data.judge(model.trust, weights)
    np.testing.assert_array_equal(by_weight.counts, rows.count(weights))
    assert by_weight.total == weights.sum()


@pytest.fixture(scope="module")
def clean():
    return sample(NETWORK, 150_000, random_state=0)


@pytest.fixture
def passes(monkeypatch):
    """The number of rows of every pass that counts by one weight a row, or by none."""
    native = load_kernels("native")
    made, count = [], native.NativeRows._count

    def note(self, weights):
        made.append(self.n_rows)
        return count(self, weights)

    monkeypatch.setattr(native.NativeRows, "_count", note)
    return made


def test_clean_rows_are_counted_once(clean, passes):
    fit = RobustEstimator(NETWORK, prior=1, random_state=0, kernels="native").fit(clean)
    assert fit.contamination_ == 0
    assert passes.count(len(clean)) == 1


def test_the_weights_of_clean_rows_can_be_written_to(clean):
    fit = RobustEstimator(NETWORK, prior=1, random_state=0).fit(clean)
    fit.row_weights_[0] = 0.5
    assert fit.row_weights_.dtype == np.float32
    assert fit.row_weights_[:2].tolist() == [0.5, 1.0]


def test_fingerprints_take_one_pass_however_often_they_are_asked_for(codes):
    rows = load_rows(NETWORK, codes, "native")
    assert rows.fingerprints() is rows.fingerprints()


def test_no_table_is_drawn_from_for_no_rows(monkeypatch):
    kernels, sizes = load_kernels("native"), []
    draw_rows = kernels.sample

    def count_rows(*given):
        sizes.append(given[3])
        return draw_rows(*given)

    monkeypatch.setattr(kernels, "sample", count_rows)
    q = NETWORK.probabilities
    assert drawing(NETWORK, "native", None, 0)([(q, 50), (q, 0)]).n_rows == 50
    assert sizes == [50]
