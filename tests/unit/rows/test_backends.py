"""The native kernels against the NumPy specification, and both against first principles."""

from __future__ import annotations

import sys
import zlib
from dataclasses import astuple

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbn import BayesianNetwork, random_network, sample
from robustbn._core.layout import Layout
from robustbn._core.protocols import TwoSides
from robustbn._rows.kernels import _native, clusters, has_native, load_kernels
from robustbn._rows.kernels.clusters import cells_of_states, fuse_families
from robustbn.exceptions import InsufficientMemoryError
from tests.strategies import networks, networks_with_rows

assert has_native(), "the test environment must have the native kernels: run make setup"
native, numpy = load_kernels("native"), load_kernels("numpy")
WIDTHS = (1, 3, 4, 7, 8, 16, 21)


def both(network, codes, **options):
    return native.encode(network.layout, codes, **options), numpy.encode(network.layout, codes)


@given(networks_with_rows(), st.booleans(), st.integers(1, 3))
def test_native_counts_are_the_specified_counts(case, fuse, n_threads):
    network, codes, weights = case
    fast, slow = both(network, codes, fuse=fuse, n_threads=n_threads)
    np.testing.assert_array_equal(fast.count(), slow.count())
    np.testing.assert_allclose(fast.count(weights), slow.count(weights), rtol=1e-12, atol=1e-12)
    single = weights.astype(np.float32)
    np.testing.assert_allclose(fast.count(single), slow.count(single), rtol=1e-12, atol=1e-12)


@given(networks_with_rows(max_rows=1500), st.booleans(), st.sampled_from(WIDTHS))
def test_native_products_are_the_specified_products(case, fuse, width):
    network, codes, weights = case
    fast, slow = both(network, codes, fuse=fuse, n_threads=2)
    rng = np.random.default_rng(len(codes))
    table, offset = rng.normal(size=(network.n_cells, width)), rng.normal(size=width)
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(fast.project(table, offset), slow.project(table, offset), **close)
    np.testing.assert_allclose(fast.project(table), slow.project(table), **close)
    np.testing.assert_allclose(fast.score(table, offset), slow.score(table, offset), **close)
    scale = 1 + np.sqrt(len(codes))
    for w in (None, weights, weights.astype(np.float32)):
        got, expected = fast.gram(table, offset, w), slow.gram(table, offset, w)
        np.testing.assert_allclose(got / scale, expected / scale, **close)


@given(networks_with_rows(max_rows=1500), st.booleans(), st.sampled_from((0, *WIDTHS[:-2], 15, 16)))
def test_native_division_is_the_specified_division(case, fuse, width):
    network, codes, weights = case
    fast, slow = both(network, codes, fuse=fuse, n_threads=2)
    rng = np.random.default_rng(len(codes))
    table, offset = rng.normal(size=(network.n_cells, width)), rng.normal(size=width)
    scale = 1 + len(codes)
    for w in (None, weights, weights.astype(np.float32)):
        got, expected = fast.divide(table, offset, w), slow.divide(table, offset, w)
        close = {"rtol": 1e-5, "atol": 2e-6 * scale}
        np.testing.assert_allclose(got.counts, expected.counts, **close)
        np.testing.assert_allclose(got.masses, expected.masses, **close)
        np.testing.assert_allclose(got.log_sum, expected.log_sum, **close)


@given(networks_with_rows(max_rows=1500), st.booleans(), st.sampled_from(WIDTHS))
def test_native_division_in_each_column_is_the_specified_one(case, fuse, width):
    network, codes, weights = case
    fast, slow = both(network, codes, fuse=fuse, n_threads=2)
    rng = np.random.default_rng(len(codes))
    table, offset = rng.normal(size=(network.n_cells, width)), rng.normal(size=width)
    against = rng.normal(size=len(codes))
    for w in (None, weights, weights.astype(np.float32)):
        got = fast.divide_apart(table, offset, against, w)
        expected = slow.divide_apart(table, offset, against, w)
        close = {"rtol": 1e-5, "atol": 2e-6 * (1 + len(codes))}
        for name in ("counts", "masses", "log_sums"):
            np.testing.assert_allclose(getattr(got, name), getattr(expected, name), **close)


@given(networks_with_rows(max_rows=1500), st.booleans(), st.sampled_from((1, 2, 5, 12, 15, 16)))
def test_native_division_in_two_is_the_specified_one(case, fuse, width):
    network, codes, weights = case
    fast, slow = both(network, codes, fuse=fuse, n_threads=2)
    rng = np.random.default_rng(len(codes))
    table, offset = rng.normal(size=(network.n_cells, width)), rng.normal(size=width)
    sides = TwoSides(int(rng.integers(width)), rng.normal(), rng.uniform(0.5, 1.5))
    odds = slow.odds(table, offset, sides.n_first)
    np.testing.assert_allclose(fast.odds(table, offset, sides.n_first), odds, rtol=1e-4, atol=1e-4)
    for w in (None, weights, weights.astype(np.float32)):
        got = fast.divide_in_two(table, offset, sides, w)
        expected = slow.divide_in_two(table, offset, sides, w)
        close = {"rtol": 1e-4, "atol": 2e-5 * (1 + len(codes))}
        for name in ("counts", "masses", "odds"):
            np.testing.assert_allclose(getattr(got, name), getattr(expected, name), **close)


@pytest.mark.parametrize("kernels", [native, numpy])
def test_rows_are_divided_between_two_sides_and_then_by_softmax(kernels):
    network = BayesianNetwork({"a": []}, {"a": ["n", "y"]})
    rows = kernels.encode(network.layout, np.array([[0], [1], [1]], np.uint8))
    table = np.log([[1.0, 2.0, 6.0], [3.0, 4.0, 12.0]])  # 1 and the first column against the others
    odds = np.log([8 / 2, 16 / 4, 16 / 4])
    np.testing.assert_allclose(rows.odds(table, None, 1), odds, rtol=1e-6)
    divided = rows.divide_in_two(
        table, None, TwoSides(1, np.log(2), 0.5), np.array([1.0, 2.0, 3.0])
    )
    np.testing.assert_allclose(divided.odds, odds, rtol=1e-6)
    first, second = 1 / 5, 4 / 5  # odds of 2 * 4 ** 0.5
    expected = [
        [first / 2, first / 2, second / 4, second * 3 / 4],
        [5 * first / 4, 5 * first * 3 / 4, 5 * second / 4, 5 * second * 3 / 4],
    ]
    np.testing.assert_allclose(divided.counts, expected, rtol=1e-6)
    np.testing.assert_allclose(divided.masses, np.sum(expected, axis=0), rtol=1e-6)


@pytest.mark.parametrize("kernels", [native, numpy])
def test_division_in_two_survives_odds_beyond_what_a_float_exponentiates(kernels):
    network = BayesianNetwork({"a": []}, {"a": ["n", "y"]})
    rows = kernels.encode(network.layout, np.array([[0], [1], [1]], np.uint8))
    table = np.array([[-5000.0, 5000.0], [4000.0, -5000.0]])
    divided = rows.divide_in_two(table, None, TwoSides(1), None)
    np.testing.assert_allclose(divided.odds, [5000, -9000, -9000], rtol=1e-6)
    np.testing.assert_allclose(divided.counts, [[0, 0, 1], [0, 2, 0]], atol=1e-30)


@pytest.mark.parametrize("kernels", [native, numpy])
def test_rows_are_divided_by_softmax(kernels):
    network = BayesianNetwork({"a": []}, {"a": ["n", "y"]})
    codes = np.array([[0], [1], [1]], np.uint8)
    table = np.log([[1.0, 2.0], [3.0, 1e-40]])
    divided = kernels.encode(network.layout, codes).divide(table, -np.log([1.0, 0.5]), None)
    shares = np.array([[1, 1, 1], [1, 3, 0.5e-40]]) / [[3], [4]]
    np.testing.assert_allclose(divided.counts, shares * [[1], [2]], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(divided.masses, shares[0] + 2 * shares[1], rtol=1e-6)
    assert divided.log_sum == pytest.approx(np.log(3) + 2 * np.log(4))


@pytest.mark.parametrize("kernels", [native, numpy])
def test_rows_are_divided_in_each_column_alone(kernels):
    network = BayesianNetwork({"a": []}, {"a": ["n", "y"]})
    rows = kernels.encode(network.layout, np.array([[0], [1], [1]], np.uint8))
    table, against = np.log([[1.0, 2.0], [3.0, 1e-30]]), np.log([1.0, 1.0, 2.0])
    divided = rows.divide_apart(table, None, against, np.array([1.0, 2.0, 1.0]))
    shares = [[1 / 2, 2 / 3], [2 * 3 / 4 + 3 / 5, 0]]
    np.testing.assert_allclose(divided.counts, shares, rtol=1e-6, atol=1e-25)
    np.testing.assert_allclose(divided.masses, np.sum(shares, axis=0), rtol=1e-6)
    logs = [np.log(2) + 2 * np.log(4) + np.log(5 / 2), np.log(3)]
    np.testing.assert_allclose(divided.log_sums, logs, rtol=1e-6)
    extreme = rows.divide_apart(1e4 * np.array([[1.0], [-1.0]]), None, np.zeros(3), None)
    np.testing.assert_allclose(extreme.counts, [[1.0], [0.0]], atol=1e-30)
    np.testing.assert_allclose(extreme.log_sums, [1e4])


@pytest.mark.parametrize("kernels", [native, numpy])
def test_division_survives_odds_beyond_what_a_float_exponentiates(kernels):
    network = BayesianNetwork({"a": []}, {"a": ["n", "y"]})
    rows = kernels.encode(network.layout, np.array([[0], [1], [1]], np.uint8))
    divided = rows.divide(np.array([[5000.0, -np.inf], [-5000.0, -300.0]]), None, None)
    np.testing.assert_allclose(divided.counts, [[0, 1, 0], [2, 0, 0]], atol=1e-30)
    assert divided.log_sum == pytest.approx(5000)


@given(networks_with_rows(max_rows=300))
def test_gram_is_the_adjoint_of_project(case):
    """`<gram(T, w), S> = sum of w <project(T), project(S)>` for any tables T and S."""
    network, codes, weights = case
    rows = numpy.encode(network.layout, codes)
    rng = np.random.default_rng(0)
    T, S = rng.normal(size=(2, network.n_cells, 3))
    left = (rows.gram(T, None, weights) * S).sum()
    right = (weights[:, None] * rows.project(T) * rows.project(S)).sum()
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


@given(networks_with_rows(max_rows=200))
def test_a_row_touches_one_cell_a_node(case):
    network, codes, _ = case
    rows = numpy.encode(network.layout, codes)
    by_hand = np.zeros(network.n_cells)
    for row in codes:
        label = {n: network.states[n][v] for n, v in zip(network.nodes, row, strict=True)}
        for node in network.nodes:
            by_hand[
                network.cell(node, {p: label[p] for p in network.parents[node]}, label[node])
            ] += 1
    np.testing.assert_array_equal(rows.count(), by_hand)


@given(networks(), st.integers(0, 1500), st.integers(0, 2**63 - 1))
def test_backends_draw_the_same_rows(network, n, key):
    order = [network.nodes.index(v) for v in network.topological_order]
    drawn = [
        b.sample(network.layout, order, network.probabilities, n, key, 2) for b in (native, numpy)
    ]
    np.testing.assert_array_equal(*drawn)


@given(networks(max_nodes=12))
def test_clusters_hold_every_family_once(network):
    layout = network.layout
    fused = fuse_families(layout)
    assert sorted(i for c in fused for i in c.nodes) == list(range(layout.n_nodes))
    for cluster in fused:
        assert cluster.n_states == np.prod([layout.cards[c] for c in cluster.columns])
        for i, cells in zip(cluster.nodes, cells_of_states(layout, cluster), strict=True):
            assert set(layout.families[i]) <= set(cluster.columns)
            assert set(cells) == set(range(layout.cell_start[i], layout.cell_start[i + 1]))
    assert max(c.n_states for c in fused) <= max(256, *layout.cells_per_node, 0)


SHAPES = {  # the family of node i
    "chain": lambda i: (i - 1, i) if i else (0,),
    "star": lambda i: (0, i) if i else (0,),
    "no edges": lambda i: (i,),
}


def calls_to_fuse(d, shape, n_states, is_holed):
    """Return how many functions are called to fuse the families of d nodes."""
    families = tuple(SHAPES[shape](i) for i in range(d))
    layout = Layout((n_states,) * d, families, tuple(range(d)) if is_holed else ())
    n_calls = 0

    def count(*_):
        nonlocal n_calls
        n_calls += 1

    sys.setprofile(count)
    try:
        for cluster in fuse_families(layout):
            cells_of_states(layout, cluster)
    finally:
        sys.setprofile(None)
    return n_calls


@pytest.mark.parametrize(("n_states", "is_holed"), [(1, False), (2, False), (2, True), (20, True)])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_time_to_fuse_families_grows_as_their_number(monkeypatch, shape, n_states, is_holed):
    monkeypatch.setattr(clusters, "MOST_SHARING", 16)  # more share a column in very large networks
    few, many = (calls_to_fuse(d, shape, n_states, is_holed) for d in (250, 1000))
    assert many < 5 * few


def test_networks_keep_the_clusters_that_their_results_were_computed_with():
    kinds = (("graph", 50, 500), ("tree", 250, None), ("graph", 20, 120))
    layouts = [random_network(*kind, (2, 5), random_state=3).layout for kind in kinds]
    layouts += [layout.with_holes(range(0, layout.n_nodes, 3)) for layout in layouts]
    found = [(c.columns, c.nodes, c.n_states) for each in layouts for c in fuse_families(each)]
    assert zlib.crc32(repr(found).encode()) == 1_511_238_662


@pytest.mark.parametrize(
    ("kind", "d", "m", "most"), [("graph", 50, 500, 20), ("tree", 250, None, 43)]
)
def test_clusters_shrink_the_rows_as_designed(kind, d, m, most):
    network = random_network(kind, d, m, random_state=0)
    rows = native.encode(network.layout, sample(network, 10, 0))
    assert sum(c.code_bytes for c in rows.clusters) <= most


@pytest.mark.parametrize("n_rows", [0, 1, 255, 256, 257, 70_000])
def test_results_are_the_same_bits_for_every_number_of_threads_and_instruction_set(n_rows):
    network = random_network("graph", 20, 120, (2, 5), random_state=3)
    codes = sample(network, n_rows, 1)
    rng = np.random.default_rng(0)
    table, w = rng.normal(size=(network.n_cells, 8)), rng.random(n_rows)
    results = []
    try:
        for isa in _native.isas():
            _native.use_isa(isa)
            for n_threads in (1, 2, 5):
                rows = native.encode(network.layout, codes, n_threads)
                divided = rows.divide(table, None, w)
                results.append(
                    [*astuple(divided), *astuple(rows.divide_apart(table, None, w, w)), rows.packed,
                     *astuple(rows.divide_in_two(table, None, TwoSides(3, 0.2, 0.9), w)),
                     rows.odds(table, None, 3),
                     rows.count(), rows.count(w), rows.score(table), rows.project(table),
                     rows.gram(table, None, w),
                     sample(network, n_rows, 1, n_threads=n_threads)]
                )  # fmt: skip
    finally:
        _native.use_isa(_native.isas()[-1])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_instruction_set_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no instruction set 'abacus'"):
        _native.use_isa("abacus")


def test_sums_stay_accurate_where_a_float_would_have_stopped_growing():
    """A float32 sum of ones stops at 2^24; of tenths it is off by percents long before."""
    n = 3 * 2**24
    network = BayesianNetwork({"a": []}, {"a": ["n", "y"]})
    rows = native.encode(network.layout, np.zeros((n, 1), np.uint8))
    assert rows.count()[0] == n
    tenth = np.full(n, np.float32(0.1))
    exact = float(np.float64(np.float32(0.1)) * n)
    np.testing.assert_allclose(rows.count(tenth)[0], exact, rtol=1e-12)
    table = np.array([[1.0, 0.3, 1e-3, 7.7], [0, 0, 0, 0]])
    expected = exact * table[0].astype(np.float32).astype(float)
    np.testing.assert_allclose(rows.gram(table, None, tenth)[0], expected, rtol=2e-4)


def test_random_sums_are_accurate_to_single_precision():
    network = random_network("tree", 8, random_state=0)
    codes = sample(network, 2_000_000, 0)
    rng = np.random.default_rng(0)
    table, w = rng.normal(size=(network.n_cells, 4)), rng.random(len(codes), np.float32)
    fast, slow = both(network, codes)
    got, expected = fast.gram(table, None, w), slow.gram(table, None, w)
    assert np.abs(got - expected).max() / np.abs(expected).max() < 1e-6


@pytest.mark.parametrize("arrange", [
    np.ascontiguousarray, np.asfortranarray,
    lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    lambda x: np.repeat(x, 3, axis=0)[::3],
    lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
])  # fmt: skip
@pytest.mark.parametrize("d", [5, 16, 37])
def test_rows_in_any_arrangement_are_read_without_being_changed(arrange, d):
    network = random_network("tree", d, cards=(2, 6), random_state=d)
    plain = sample(network, 1000, 0)
    codes = arrange(plain)
    codes.setflags(write=False)
    rows = native.encode(network.layout, codes)
    np.testing.assert_array_equal(rows.packed, native.encode(network.layout, plain).packed)


def test_nodes_of_one_state_and_of_256_states_work():
    network = random_network("tree", 6, cards=[1, 256, 2, 1, 256, 3], random_state=0)
    codes = sample(network, 20_000, 0)
    fast, slow = both(network, codes)
    np.testing.assert_array_equal(fast.count(), slow.count())
    assert fast.clusters[-1].code_bytes == (1 if max(network.layout.cells_per_node) <= 256 else 2)


def test_a_family_too_large_for_two_bytes_takes_four():
    layout = Layout((256, 256, 3), ((0,), (0, 1), (0, 1, 2)))
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, c, 5000) for c in layout.cards], axis=1).astype(np.uint8)
    fast, slow = native.encode(layout, codes), numpy.encode(layout, codes)
    assert [c.code_bytes for c in fast.clusters] == [4]
    np.testing.assert_array_equal(fast.count(), slow.count())
    table = rng.normal(size=(layout.n_cells, 5))
    np.testing.assert_allclose(fast.project(table), slow.project(table), atol=1e-5)


def test_the_kernels_check_every_size_they_are_given():
    network = random_network("tree", 4, random_state=0)
    rows = native.encode(network.layout, sample(network, 100, 0))
    table, out = np.zeros((network.n_cells, 4)), np.zeros(100, np.float32)
    with pytest.raises(ValueError, match="one weight a row"):
        rows.count(np.ones(99))
    with pytest.raises(ValueError, match="one line a cell"):
        rows.score(table[:-1])
    with pytest.raises(ValueError, match="shapes differ"):
        rows.score(table, np.zeros(3))
    with pytest.raises(ValueError, match="packed has the wrong size"):
        _native.score(rows.plan, rows.packed, 10_000, table, np.zeros(4), out, 1)
    with pytest.raises(ValueError, match="one column a node"):
        native.encode(network.layout, np.zeros((5, 3), np.uint8))


def test_memory_that_cannot_be_had_is_named():
    network = random_network("tree", 4, random_state=0)
    with pytest.raises(InsufficientMemoryError, match=r"Drawing rows needs 4,000,000,000,000,000"):
        sample(network, 10**15, 0)


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="Unknown kernels 'abacus'; choose one of native, numpy"):
        load_kernels("abacus")


@pytest.mark.parametrize(("told", "n"), [("1", 1), ("1,4", 1), (" 1 ", 1)])
def test_threads_are_as_many_as_the_environment_says(monkeypatch, told, n):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert native.available_cpus() == n


@pytest.mark.parametrize("told", ["", "0", "-1", "many", "1e6", "100000"])
def test_threads_are_as_many_as_there_are_cpus_otherwise(monkeypatch, told):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    n_cpus = native.available_cpus()
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert native.available_cpus() == n_cpus


def test_a_stream_takes_no_more_threads_than_this_process_may_use(monkeypatch):
    import os

    from robustbn._rows.stream.data import RowsInStream

    rows = RowsInStream(stream=None, cache=None)  # neither is asked
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert rows._few_threads == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert rows._few_threads == 1


def test_workers_of_joblib_share_the_cpus():
    n_cpus = native.available_cpus()
    job = joblib.delayed(native.available_cpus)
    each = joblib.Parallel(n_jobs=2)(job() for _ in range(4))
    assert set(each) == {max(1, n_cpus // 2)}
