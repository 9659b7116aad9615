"""Robust means of matrices: what is found, what it costs, and what is refused."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from robustbn._means import ORACLES
from robustbn._means.matrix import DenseVectors, SparseVectors, as_vectors
from robustbn._means.que import Past, approximate_scores, draw_sketch
from robustbn._means.spectral import Whitened
from robustbn.exceptions import DataError
from robustbn.mean import robust_mean

TESTED = ("spectral", "que", "descent")


def clean_rows(kind, n_rows, dim, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, dim))
    if kind == "correlated":
        return X @ (np.eye(dim) + rng.normal(size=(dim, dim)) / math.sqrt(dim)) + 2 * X[:, :1]
    if kind == "t3":
        return rng.standard_t(3, size=(n_rows, dim))
    if kind == "t3, one tail a row":
        return X / np.sqrt(rng.chisquare(3, size=(n_rows, 1)) / 3)
    return X


def move_rows(X, distance, seed=0, share=0.1):
    """Move a share of the rows by a distance, in standard deviations, along a random direction."""
    rng = np.random.default_rng(seed)
    bad = np.zeros(len(X), bool)
    bad[rng.choice(len(X), round(share * len(X)), replace=False)] = True
    u = rng.normal(size=X.shape[1])
    return X + bad[:, None] * (distance * u / np.linalg.norm(u) * X.std(axis=0)), bad


def sparse_rows(n_rows, dim, density, seed=0, share=0.1):
    """Sparse rows, the last tenth of which fills the same 30 columns much more often."""
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, dim, density, format="csr", rng=rng, data_rvs=rng.standard_normal)
    bad = np.arange(n_rows) >= (1 - share) * n_rows
    added = sp.random(n_rows, dim, 0.5, format="csr", rng=rng, data_rvs=np.ones)
    keep_rows, keep_columns = sp.diags_array(bad * 1.0), sp.diags_array((np.arange(dim) < 30) * 3.0)
    return (X + keep_rows @ added @ keep_columns).tocsr(), bad


# --- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normal", "correlated"])
@pytest.mark.parametrize(("n_rows", "dim"), [(500, 5), (1000, 1), (1000, 60), (2000, 200)])
def test_clean_gaussian_rows_are_left_alone(kind, n_rows, dim):
    removed = [robust_mean(clean_rows(kind, n_rows, dim, s)).contamination for s in range(5)]
    assert np.mean(removed) <= 0.005


@pytest.mark.parametrize("kind", ["t3", "t3, one tail a row"])
@pytest.mark.parametrize("dim", [1, 20, 100])
def test_heavy_tails_do_not_break_it(kind, dim):
    """Few rows are lost, and the mean gets better rather than worse."""
    ours, plain, removed = 0.0, 0.0, []
    for seed in range(6):
        X = clean_rows(kind, 1000, dim, seed)
        found = robust_mean(X)
        ours += np.sum(found.mean**2)
        plain += np.sum(X.mean(axis=0) ** 2)
        removed.append(found.contamination)
    assert np.mean(removed) <= 0.02
    assert ours <= 1.02 * plain


@pytest.mark.parametrize("kind", ["normal", "correlated", "t3"])
@pytest.mark.parametrize("distance", [12.0, 1e4])
def test_a_tenth_of_rows_at_a_distance_is_caught(kind, distance):
    X = clean_rows(kind, 4000, 20, 1)
    dirty, bad = move_rows(X, distance)
    found = robust_mean(dirty)
    sd = X.std(axis=0)
    error = np.linalg.norm((found.mean - X[~bad].mean(axis=0)) / sd)
    plain = np.linalg.norm((dirty.mean(axis=0) - X[~bad].mean(axis=0)) / sd)
    assert found.converged
    assert found.weights[bad].mean() < 0.15
    assert found.weights[~bad].mean() > 0.95
    assert 0.085 < found.contamination < 0.15
    assert error < 0.2 * plain


@pytest.mark.parametrize("method", TESTED)
@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_every_tested_method_finds_the_mean(method, contamination):
    X = clean_rows("normal", 3000, 30, 2)
    dirty, bad = move_rows(X, 8.0)
    found = robust_mean(dirty, contamination, method)
    error = np.linalg.norm(found.mean - X[~bad].mean(axis=0))
    assert found.converged
    assert error < 0.3 * np.linalg.norm(dirty.mean(axis=0) - X[~bad].mean(axis=0))
    assert found.history[-1].top[0] <= found.history[-1].threshold
    assert found.history[0].top[0] > found.history[0].threshold


@pytest.mark.parametrize("method", ORACLES)
def test_units_and_origin_do_not_matter(method):
    X, _ = move_rows(clean_rows("normal", 800, 6, 3), 8.0)
    unit, origin = 10.0 ** np.arange(-3, 3), 1e6 * np.arange(6)
    found = robust_mean(X, 0.1, method)
    moved = robust_mean(X * unit + origin * unit, 0.1, method)
    np.testing.assert_allclose(moved.mean / unit - origin, found.mean, atol=1e-4)
    np.testing.assert_allclose(moved.weights, found.weights, atol=1e-3)


@pytest.mark.parametrize("exponent", [-300, -700, -1020])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    ("method", "scale"),
    [("spectral", "columns"), ("spectral", "common"), ("que", "columns"), ("descent", "columns")],
)
def test_very_small_numbers_give_the_mean_of_the_same_numbers_in_other_units(
    exponent, kind, method, scale
):
    X, _ = move_rows(clean_rows("normal", 300, 6, 0), 8.0)
    X[np.abs(X) < 0.5] = 0.0  # so that a sparse matrix is one
    X = np.round(X, 1).astype(np.float32).astype(np.float64)
    plain = robust_mean(kind(X), method=method, scale=scale)
    small = robust_mean(kind(np.ldexp(X, exponent)), method=method, scale=scale)
    assert plain.contamination > 0.05
    np.testing.assert_array_equal(small.weights, plain.weights)
    np.testing.assert_allclose(np.ldexp(small.mean, -exponent), plain.mean, rtol=1e-12)


def test_one_column_may_be_very_small():
    X, _ = move_rows(clean_rows("normal", 300, 6, 0), 8.0)
    units = np.array([1e-200, 1.0, 1e-200, 1e-90, 1e90, 1.0])
    found, plain = robust_mean(X * units), robust_mean(X)
    np.testing.assert_allclose(found.mean / units, plain.mean, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", ["columns", "common", [1e-200] * 4])
def test_a_number_too_far_from_its_column_is_refused(kind, scale):
    X = np.random.default_rng(0).normal(size=(200, 4)) * 1e-200
    X[7, 2] = 1.0
    with pytest.raises(DataError, match=r"column 2: some numbers are more than 1e\+100 times"):
        robust_mean(kind(X), scale=scale)


def test_columns_of_different_spread_do_not_hide_bad_rows():
    X, bad = move_rows(clean_rows("normal", 2000, 10, 4), 10.0)
    X[:, 0] *= 1000
    for scale in ("columns", "common", np.r_[1000.0, np.ones(9)]):
        assert robust_mean(X, 0.1, scale=scale).weights[bad].mean() < 0.2
    # A method that takes the scaled columns for alike depends on the scale, and says so.
    assert robust_mean(X, 0.1, "que").weights[bad].mean() < 0.2
    astray = robust_mean(X, 0.1, "que", scale="common")
    assert not astray.converged
    assert "the assumed covariance (see scale)" in astray.status


def test_bad_rows_hidden_behind_correlated_columns_are_caught():
    """Twenty directions of good rows vary more than the bad rows make their own direction vary."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    spread = np.r_[np.linspace(5, 8, 20), np.ones(40)]
    X = rng.normal(size=(4000, 60)) * spread @ basis.T
    bad = rng.random(4000) < 0.1
    X[bad] += 12 * basis[:, -1]
    assert 0.09 * 12**2 < 5**2
    found = robust_mean(X, scale=np.ones(60))
    assert found.converged
    assert found.weights[bad].mean() < 0.2
    assert found.weights[~bad].mean() > 0.95
    assert np.linalg.norm(basis[:, -1] @ found.mean) < 0.2 * np.linalg.norm(
        basis[:, -1] @ X.mean(0)
    )


def test_columns_too_correlated_to_be_examined_are_reported():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 200)) * np.geomspace(1, 1e4, 200)
    found = robust_mean(X @ np.linalg.qr(rng.normal(size=(200, 200)))[0], scale=np.ones(200))
    assert found.contamination < 0.005
    assert not found.converged
    assert "not all directions could be examined" in found.status


def test_a_known_covariance_sees_more():
    X, bad = move_rows(clean_rows("normal", 3000, 20, 5), 3.0)
    good_mean = X[~bad].mean(axis=0)
    known, unknown = robust_mean(X, 0.1, scale="identity"), robust_mean(X, 0.1)
    assert np.linalg.norm(known.mean - good_mean) < np.linalg.norm(unknown.mean - good_mean)


def test_a_constant_column_and_a_column_of_zeros_and_ones_are_no_trouble():
    X, bad = move_rows(clean_rows("normal", 2000, 8, 6), 10.0)
    X = np.c_[X, np.full(2000, 7.0), np.arange(2000) % 50 == 0]
    found = robust_mean(X)
    assert found.mean[8] == pytest.approx(7.0)
    assert found.mean[9] == pytest.approx(0.02, abs=0.005)
    assert found.weights[bad].mean() < 0.15


def test_equal_rows_have_their_own_mean():
    for method in ORACLES:
        found = robust_mean(np.tile([3.0, -1.0], (20, 1)), 0.1, method)
        np.testing.assert_allclose(found.mean, [3.0, -1.0])


def test_a_ceiling_is_kept():
    X, _ = move_rows(clean_rows("normal", 2000, 20, 7), 6.0, share=0.3)
    for method in TESTED:
        assert robust_mean(X, "auto", method, max_contamination=0.1).contamination <= 0.1 + 1e-9


# --- dense, sparse, anything ----------------------------------------------------------------------


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.3, 0.9]), st.sampled_from(["csr", "csc"])
)
def test_sparse_products_are_the_dense_products(seed, density, kind):
    rng = np.random.default_rng(seed)
    S = sp.random(37, 23, density, format=kind, rng=rng)
    sparse, dense = SparseVectors.of(S), DenseVectors.of(S.toarray())
    scale = rng.random(23) + 0.1
    V, center, w = rng.normal(size=(23, 19)), rng.normal(size=23), rng.random(37)
    for a, b in [(sparse, dense), (sparse.rescaled(scale), dense.rescaled(scale))]:
        np.testing.assert_allclose(a.mean(w), b.mean(w), atol=1e-12)
        np.testing.assert_allclose(a.mean(), b.mean(), atol=1e-12)
        np.testing.assert_allclose(a.gram(V, w, center), b.gram(V, w, center), atol=1e-9)
        np.testing.assert_allclose(a.gram(V, None, center), b.gram(V, None, center), atol=1e-9)
        np.testing.assert_allclose(a.score(V, center), b.score(V, center), atol=1e-9)
        np.testing.assert_allclose(a.square_norms(center), b.square_norms(center), atol=1e-9)
        np.testing.assert_allclose(a.column_medians(), b.column_medians())
        np.testing.assert_allclose(a.column_spreads(), b.column_spreads(), atol=1e-12)


def test_dense_products_are_what_they_say():
    rng = np.random.default_rng(0)
    X, scale = rng.normal(5, 1, size=(50_000, 7)), rng.random(7) + 0.5  # several blocks
    vectors = DenseVectors.of(X).rescaled(scale)
    V, center, w = rng.normal(size=(7, 3)), rng.normal(size=7), rng.random(50_000)
    centred = X * scale - center
    np.testing.assert_allclose(vectors.mean(w), np.average(X * scale, axis=0, weights=w))
    np.testing.assert_allclose(
        vectors.gram(V, w, center), centred.T @ (w[:, None] * (centred @ V)), rtol=1e-9
    )
    np.testing.assert_allclose(vectors.score(V, center), ((centred @ V) ** 2).sum(axis=1))
    np.testing.assert_allclose(vectors.square_norms(center), (centred**2).sum(axis=1))
    spread = 1.4826 * np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    np.testing.assert_allclose(vectors.column_spreads(), scale * spread)


def test_whitened_vectors_are_the_transformed_vectors():
    rng = np.random.default_rng(0)
    X, V, center, w = (rng.normal(size=s) for s in ((80, 9), (9, 4), 9, 80))
    basis = np.linalg.qr(rng.normal(size=(9, 3)))[0]
    factors = np.array([0.1, 0.5, 1.0])
    found = Whitened(DenseVectors.of(X), basis, factors)
    plain = DenseVectors.of(X @ (np.eye(9) + basis * (factors - 1) @ basis.T))
    np.testing.assert_allclose(found.mean(w**2), plain.mean(w**2), atol=1e-12)
    np.testing.assert_allclose(found.gram(V, w, center), plain.gram(V, w, center), atol=1e-9)
    np.testing.assert_allclose(found.score(V, center), plain.score(V, center), atol=1e-9)
    np.testing.assert_allclose(found.square_norms(center), plain.square_norms(center), atol=1e-9)


@pytest.mark.parametrize("method", ORACLES)
def test_sparse_and_dense_give_the_same(method):
    S, _ = sparse_rows(600, 40, 0.1)
    dense = robust_mean(S.toarray(), 0.1, method)
    for form in (S, S.tocsc(), S.tocoo(), sp.csr_matrix(S)):
        sparse = robust_mean(form, 0.1, method)
        np.testing.assert_allclose(sparse.mean, dense.mean, atol=1e-7)
        np.testing.assert_allclose(sparse.weights, dense.weights, atol=1e-5)


def test_bad_rows_of_a_sparse_matrix_are_caught():
    S, bad = sparse_rows(5000, 200, 0.02)
    found = robust_mean(S)
    good_mean = S[~bad].mean(axis=0)
    assert found.converged
    assert found.weights[bad].mean() < 0.25
    assert found.weights[~bad].mean() > 0.97
    plain = np.linalg.norm(S.mean(axis=0) - good_mean)
    assert np.linalg.norm(found.mean - good_mean) < 0.3 * plain


def test_entries_stored_twice_are_summed_and_the_input_is_not_touched():
    rows, columns = np.repeat(np.arange(50), 4), np.tile([0, 1, 1, 2], 50)
    values = np.random.default_rng(0).normal(size=200)
    pointers = np.arange(0, 201, 4)
    twice = sp.csr_array((values, columns, pointers), shape=(50, 3))
    once = np.zeros((50, 3))
    np.add.at(once, (rows, columns), values)
    np.testing.assert_allclose(robust_mean(twice).mean, robust_mean(once).mean)
    assert twice.nnz == 200


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, bool])
def test_any_real_type_will_do(dtype):
    X = np.random.default_rng(0).integers(0, 2, size=(500, 4)).astype(dtype)
    X.setflags(write=False)
    np.testing.assert_allclose(robust_mean(X).mean, X.mean(axis=0), atol=1e-6)
    S = sp.csr_matrix(X)
    np.testing.assert_allclose(robust_mean(S).mean, X.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(robust_mean(X.tolist()).mean, X.mean(axis=0), atol=1e-6)


# --- what it costs --------------------------------------------------------------------------------


class Counting:
    """Vectors that count the columns of all products: entries touched are this times nnz."""

    def __init__(self, X):
        self.inner = as_vectors(X)
        self.n_rows, self.dim = self.inner.n_rows, self.inner.dim
        self.n_columns = 0

    def mean(self, weights=None):
        self.n_columns += 1
        return self.inner.mean(weights)

    def gram(self, V, weights, center):
        self.n_columns += 2 * V.shape[1]
        return self.inner.gram(V, weights, center)

    def score(self, V, center):
        self.n_columns += V.shape[1]
        return self.inner.score(V, center)

    def square_norms(self, center):
        self.n_columns += 1
        return self.inner.square_norms(center)

    def expected(self, V):
        return V


def test_coordinate_medians_come_from_products_where_columns_are_not_known():
    X = np.random.default_rng(0).exponential(size=(301, 7))
    for vectors in (DenseVectors.of(X), Counting(X)):
        found = robust_mean(vectors, method="coordinate_median")
        np.testing.assert_allclose(found.mean, np.median(X, axis=0), atol=1e-9)


def count_columns(method, n_rows, dim, density=1.0):
    if density < 1:
        X, _ = sparse_rows(n_rows, dim, density)
    else:
        X, _ = move_rows(clean_rows("normal", n_rows, dim, 0), 8.0)
    vectors = Counting(X)
    found = robust_mean(vectors, 0.1, method)
    assert found.contamination > 0.03  # there was work to do
    return vectors.n_columns


@pytest.mark.parametrize(("method", "most"), [("spectral", 800), ("descent", 600), ("que", 30)])
def test_entries_touched_are_nearly_linear_in_nnz(method, most):
    """Column passes: a constant for "spectral" and "descent", `c width log(dim)^2` for "que".

    A count that grew with N or dim, as any explicit covariance would, fails here: from the first to
    the last case N grows 8-fold and dim 8-fold.
    """
    cases = [(500, 10), (500, 80), (4000, 80)]
    counts = [count_columns(method, n_rows, dim) for n_rows, dim in cases]
    for count, (_, dim) in zip(counts, cases, strict=True):
        assert count <= (most * min(64, dim) * math.log(dim) ** 2 if method == "que" else most)
    assert counts[2] <= 2 * counts[1]


def test_the_density_does_not_change_the_number_of_passes():
    counts = [count_columns("spectral", 3000, 300, density) for density in (0.01, 0.1)]
    assert max(counts) <= 800


def measure_peak(run, *arguments, **settings):
    tracemalloc.start()
    run(*arguments, **settings)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_no_copy_of_the_matrix_is_made():
    """No N × dim copy and no dim × dim matrix: the peak is far below either."""
    X, _ = move_rows(clean_rows("normal", 4000, 250, 0), 12.0)
    assert measure_peak(robust_mean, X, 0.1) < 0.25 * X.nbytes
    S, _ = sparse_rows(3000, 3000, 0.002)
    assert measure_peak(robust_mean, S, 0.1) < 0.1 * 8 * 3000**2
    vectors, ones = SparseVectors.of(S), np.ones(3000)
    past = Past.empty(vectors).add(ones, vectors.mean())
    sketch = draw_sketch(3000, 64, np.random.default_rng(0))
    state = (vectors, ones, vectors.mean(), past, 0.1, sketch)
    assert measure_peak(approximate_scores, *state, excess_bound=10.0) < 0.25 * 8 * 3000**2


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 3)), "X has 0 row"),
        (np.zeros((1, 3)), "X has 1 row"),
        (np.zeros((5, 0)), "no columns"),
        (np.zeros(5), r"found 1 dimension, shape \(5,\)"),
        (np.zeros((2, 2, 2)), "found 3 dimension"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "found nan at row 1, column 1"),
        (np.array([[1.0, np.inf], [3.0, 4.0]]), "found inf at row 0, column 1"),
        (np.array([[1.0, 2.0], [1e200, 4.0]]), r"found 1e\+200 at row 1, column 0"),
        (np.array([["a", "b"], ["c", "d"]]), "must hold real numbers"),
        (np.zeros((3, 3), complex), "must hold real numbers"),
        (sp.csr_array(np.array([[0, 1.0], [np.nan, 0]])), "found nan at row 1, column 0"),
        (sp.csc_array(np.array([[0, 1.0], [0, -np.inf]])), "found -inf at row 1, column 1"),
        (sp.csr_array((0, 4)), "X has 0 row"),
    ],
)
def test_wrong_data_are_named(X, message):
    with pytest.raises(DataError, match=message):
        robust_mean(X)


def test_nan_is_found_in_a_late_block():
    X = np.zeros((300_000, 2))
    X[299_999, 1] = np.nan
    with pytest.raises(DataError, match="found nan at row 299999, column 1"):
        robust_mean(X)


@pytest.mark.parametrize("value", [0, -0.1, 0.5, 1, math.nan, math.inf, "some", None, True])
def test_a_contamination_that_cannot_be_is_refused(value):
    with pytest.raises(ValueError, match=r"above 0 and below 0\.5"):
        robust_mean(np.eye(4), value)
    if value != "some":
        with pytest.raises(ValueError, match="max_contamination"):
            robust_mean(np.eye(4), max_contamination=value)


def test_unknown_words_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="Unknown method 'magic'; choose one of spectral, que"):
        robust_mean(np.eye(4), method="magic")
    with pytest.raises(ValueError, match="Unknown scale 'magic'; choose one of columns"):
        robust_mean(np.eye(4), scale="magic")
    with pytest.raises(ValueError, match="4 positive numbers"):
        robust_mean(np.eye(4), scale=[1.0, 2.0])
    with pytest.raises(ValueError, match="4 positive numbers"):
        robust_mean(np.eye(4), scale=[1.0, 2.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="used without scaling"):
        robust_mean(Counting(np.eye(4)), scale=np.ones(4))
    with pytest.raises(ValueError, match="'ransac' cannot estimate the contamination"):
        robust_mean(np.eye(4), method="ransac")
