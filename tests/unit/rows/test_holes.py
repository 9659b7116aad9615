"""Rows with missing values and nodes of many states, in both sets of kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbn import example_network, random_network
from robustbn._core.layout import Layout
from robustbn._rows.kernels import _native, load_kernels
from robustbn._rows.kernels.clusters import cells_of_states, fuse_families, separate_families
from robustbn._rows.memory import RowsInMemory, find_holed, load_rows
from robustbn._rows.stream.cache import CodeCache
from robustbn._rows.stream.parts import Span
from robustbn.exceptions import CodeRangeError, DataError
from tests.strategies import layouts_with_holed_rows

native, numpy = load_kernels("native"), load_kernels("numpy")
WIDE_CARDS = (255, 256, 257, 1000)


def draw_codes(layout, n, share_missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, c, n) for c in layout.cards], axis=1)
    for c in layout.holed:
        codes[rng.random(n) < share_missing, c] = layout.cards[c]
    return codes.astype(layout.code_dtype)


def all_results(rows, table, offset, weights):
    return {
        "count": rows.count(),
        "weighted": rows.count(weights),
        "columns": rows.count(np.stack([weights, 1 - weights], axis=1)),
        "project": rows.project(table, offset),
        "score": rows.score(table, offset),
        "gram": rows.gram(table, offset, weights),
    }


def inputs_for(layout, n, width=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(layout.n_cells, width)), rng.normal(size=width), rng.random(n)


@given(layouts_with_holed_rows(), st.booleans(), st.sampled_from([1, 4, 7, 21]))
def test_native_results_with_holes_are_the_specified_results(case, fuse, width):
    layout, codes = case
    given_to_all = inputs_for(layout, len(codes), width)
    fast = native.encode(layout, codes, 2, fuse=fuse)
    slow = numpy.encode(layout, codes)
    np.testing.assert_array_equal(fast.count(), slow.count())
    got, expected = (all_results(rows, *given_to_all) for rows in (fast, slow))
    for name, values in expected.items():
        scale = 1 + np.abs(values).max(initial=0)
        np.testing.assert_allclose(got[name] / scale, values / scale, atol=1e-5, err_msg=name)


@given(layouts_with_holed_rows(max_rows=200))
def test_a_family_with_a_hole_touches_no_cell(case):
    layout, codes = case
    by_hand = np.zeros(layout.n_cells)
    for row in codes:
        for i, family in enumerate(layout.families):
            if all(row[c] < layout.cards[c] for c in family):
                steps = [s * int(row[c]) for s, c in zip(layout.strides[i], family, strict=True)]
                by_hand[layout.cell_start[i] + sum(steps)] += 1
    np.testing.assert_array_equal(numpy.encode(layout, codes).count(), by_hand)


@given(layouts_with_holed_rows(max_rows=300))
def test_fingerprints_are_equal_where_values_and_holes_are(case):
    layout, codes = case
    codes = np.concatenate([codes, codes[::-1]])
    _, expected = np.unique(codes, axis=0, return_inverse=True)
    for kernels in (native, numpy):
        hashes = kernels.encode(layout, codes).fingerprints()
        _, found = np.unique(hashes, return_inverse=True)
        pairs = {(int(a), int(b)) for a, b in zip(expected.ravel(), found, strict=True)}
        assert len(pairs) == len(set(expected.ravel())) == len(set(found))
    hashes = native.encode(layout, codes, fuse=False).fingerprints()
    assert len(set(hashes)) == len(set(expected.ravel()))


@given(layouts_with_holed_rows(max_rows=300))
def test_fingerprints_depend_on_the_codes_alone(case):
    layout, codes = case
    roomy = layout.with_holes(range(layout.n_nodes))
    expected = numpy.encode(layout, codes).fingerprints()
    for each in (layout, roomy):
        for fuse in (False, True):
            rows = native.encode(each, codes, fuse=fuse)
            np.testing.assert_array_equal(rows.fingerprints(), expected)


@given(layouts_with_holed_rows(most_missing=0.0))
def test_columns_that_may_have_holes_but_have_none_change_nothing(case):
    layout, codes = case
    given_to_all = inputs_for(layout, len(codes))
    plain = layout.with_holes(())
    assert not plain.holed
    for kernels in (native, numpy):
        got, expected = (
            all_results(kernels.encode(each, codes), *given_to_all) for each in (layout, plain)
        )
        np.testing.assert_array_equal(got["count"], expected["count"])
        for name, values in expected.items():
            scale = 1 + np.abs(values).max(initial=0)
            np.testing.assert_allclose(got[name] / scale, values / scale, atol=1e-5, err_msg=name)


@given(layouts_with_holed_rows(max_rows=600))
def test_rows_with_holes_are_restored_from_their_bytes(case):
    layout, codes = case
    for kernels in (native, numpy):
        rows = kernels.encode(layout, codes)
        again = kernels.restore(layout, rows.packed, len(codes))
        np.testing.assert_array_equal(again.count(), rows.count())
        np.testing.assert_array_equal(again.fingerprints(), rows.fingerprints())


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n_rows", [1, 255, 257, 70_000])
def test_holes_give_the_same_bits_for_every_number_of_threads_and_instruction_set(n_rows, wide):
    network = random_network("graph", 20, 120, (2, 5), random_state=3)
    layout = network.layout
    if wide:
        layout = Layout((*layout.cards, 300), (*layout.families, (3, 20)))
    layout = layout.with_holes(range(0, layout.n_nodes, 2))
    codes = draw_codes(layout, n_rows, 0.2)
    assert codes.dtype == (np.uint16 if wide else np.uint8)
    given_to_all = inputs_for(layout, n_rows, 8)
    results = []
    try:
        for isa in _native.isas():
            _native.use_isa(isa)
            for n_threads in (1, 2):
                rows = native.encode(layout, codes, n_threads)
                results.append(
                    {
                        "packed": rows.packed,
                        "hashes": rows.fingerprints(),
                        **all_results(rows, *given_to_all),
                    }
                )
    finally:
        _native.use_isa(_native.isas()[-1])
    for other in results[1:]:
        for name, values in results[0].items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)


@given(layouts_with_holed_rows(max_rows=0))
def test_clusters_with_holes_tell_every_cell_or_that_there_is_none(case):
    layout, _ = case
    for clusters in (fuse_families(layout), separate_families(layout)):
        assert sorted(i for c in clusters for i in c.nodes) == list(range(layout.n_nodes))
        for cluster in clusters:
            for i, cells in zip(cluster.nodes, cells_of_states(layout, cluster), strict=True):
                assert len(cells) == cluster.n_states
                found = set(range(layout.cell_start[i], layout.cell_start[i + 1]))
                may_miss = not set(layout.holed).isdisjoint(layout.families[i])
                assert set(cells) == (found | {-1} if may_miss else found)


@pytest.mark.parametrize(("name", "most"), [("alarm", 14), ("graph", 18)])
def test_holes_in_every_column_cost_few_look_ups_more(name, most):
    """12 and 15 without holes; with a state for each hole in every code, 19 and 25."""
    graph = random_network("graph", 50, 500, random_state=0)
    layout = (example_network("alarm") if name == "alarm" else graph).layout
    clusters = fuse_families(layout.with_holes(range(layout.n_nodes)))
    assert sum(bool(c.nodes) for c in clusters) <= most
    assert all(c.code_bytes == 1 for c in clusters if not c.nodes)


def test_a_family_of_many_parents_does_not_explode_with_holes():
    """With a state for every hole, 16 binary columns would have 43 million joint states."""
    layout = Layout((2,) * 16, (*((i,) for i in range(15)), tuple(range(16))))
    layout = layout.with_holes(range(16))
    codes = draw_codes(layout, 3000, 0.02)
    fast, slow = native.encode(layout, codes), numpy.encode(layout, codes)
    assert fast.plan.n_entries < 2 * layout.n_cells + 1000
    np.testing.assert_array_equal(fast.count(), slow.count())
    assert len(set(fast.fingerprints())) == len(np.unique(codes, axis=0))


@pytest.mark.parametrize("card", WIDE_CARDS)
@pytest.mark.parametrize("is_holed", [False, True])
def test_nodes_of_many_states_are_counted_as_by_hand(card, is_holed):
    layout = Layout((3, card, 2), ((0,), (0, 1), (1, 2)))
    layout = layout.with_holes([1] if is_holed else [])
    codes = draw_codes(layout, 5000, 0.3)
    assert codes.dtype == (np.uint8 if card + is_holed <= 256 else np.uint16)
    wide = codes.astype(np.int64)
    seen = wide[wide[:, 1] < card]
    expected = np.concatenate(
        [
            np.bincount(wide[:, 0], minlength=3),
            np.bincount(seen[:, 0] * card + seen[:, 1], minlength=3 * card),
            np.bincount(seen[:, 1] * 2 + seen[:, 2], minlength=2 * card),
        ]
    )
    for kernels in (native, numpy):
        np.testing.assert_array_equal(kernels.encode(layout, codes).count(), expected)


@pytest.mark.parametrize(("card", "holed"), [(2**16, ()), (2**16 - 1, (0, 1))])
def test_nodes_may_have_as_many_states_as_two_bytes_hold(card, holed):
    layout = Layout((card, 2), ((0,), (0, 1))).with_holes(holed)
    codes = draw_codes(layout, 2000, 0.2)
    codes[:2, 0] = 0, card - 1
    fast, slow = native.encode(layout, codes), numpy.encode(layout, codes)
    np.testing.assert_array_equal(fast.count(), slow.count())
    assert fast.count().sum() > 0


def test_a_full_column_has_no_room_for_holes():
    layout = Layout((2, 2**16), ((0,), (1,)))
    with pytest.raises(DataError, match="Column 1 has 65,536 states and missing values"):
        layout.with_holes([1])
    with pytest.raises(DataError, match="There is no column 2"):
        layout.with_holes([2])


@pytest.mark.parametrize("arrange", [
    np.ascontiguousarray, np.asfortranarray,
    lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
])  # fmt: skip
def test_codes_of_two_bytes_are_read_in_any_arrangement(arrange):
    layout = Layout((300, *(3,) * 36), tuple((i,) for i in range(37))).with_holes([5])
    codes = draw_codes(layout, 1000, 0.5)
    packed = native.encode(layout, arrange(codes)).packed
    np.testing.assert_array_equal(packed, native.encode(layout, codes).packed)


@pytest.mark.parametrize("kernels", [native, numpy])
def test_codes_may_be_wider_than_they_need_be(kernels):
    layout = Layout((2, 3), ((0,), (0, 1))).with_holes([1])
    codes = draw_codes(layout, 700, 0.2)
    narrow, wide = (kernels.encode(layout, codes.astype(t)) for t in (np.uint8, np.uint16))
    np.testing.assert_array_equal(narrow.packed, wide.packed)


@pytest.mark.parametrize("kernels", [native, numpy])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_code_out_of_range_is_named_and_a_hole_is_not(kernels, dtype):
    layout = Layout((2, 3), ((0,), (0, 1))).with_holes([1])
    codes = np.zeros((600, 2), dtype)
    codes[5:, 1] = 3  # holes
    kernels.encode(layout, codes)
    codes[500, 1] = 4
    with pytest.raises(CodeRangeError, match="0 to 2, and 3 where its value is missing") as error:
        kernels.encode(layout, codes)
    assert (error.value.row, error.value.column, error.value.value) == (500, 1, 4)
    codes[400, 0] = 2
    with pytest.raises(CodeRangeError, match=r"its codes are 0 to 1\.$") as error:
        kernels.encode(layout, codes)
    assert (error.value.row, error.value.column, error.value.value) == (400, 0, 2)


def test_drawn_rows_have_no_holes_and_are_the_same_in_all_kernels():
    network = random_network("tree", 6, cards=[3, 256, 2, 1, 200, 3], random_state=0)
    order = [network.nodes.index(v) for v in network.topological_order]
    plain = native.sample(network.layout, order, network.probabilities, 3000, 7)
    assert plain.dtype == np.uint8
    holed = network.layout.with_holes(range(6))
    for kernels in (native, numpy):
        drawn = kernels.sample(holed, order, network.probabilities, 3000, 7)
        assert drawn.dtype == holed.code_dtype == np.uint16
        np.testing.assert_array_equal(drawn, plain)


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("name", ["native", "numpy"])
def test_packed_rows_with_holes_come_back_from_a_cache(name, in_folder, tmp_path):
    layout = Layout((3, 300, 2), ((0,), (0, 1), (1, 2))).with_holes([0, 1])
    rows = load_kernels(name).encode(layout, draw_codes(layout, 1000, 0.3))
    cache = CodeCache(name, tmp_path if in_folder else None)
    cache.add(0, Span(0, 1000, np.empty(0, np.int64)), rows)
    ((_, again),) = cache.read(0, 1)
    np.testing.assert_array_equal(again.count(), rows.count())
    np.testing.assert_array_equal(again.fingerprints(), rows.fingerprints())
    cache.close()


def test_rows_in_memory_keep_their_holes():
    network = random_network("tree", 5, random_state=0)
    layout = network.layout.with_holes([1, 3])
    codes = draw_codes(layout, 3000, 0.3)
    assert find_holed(network.layout, codes) == (1, 3)
    data = RowsInMemory(network, codes, holed=(1, 3))
    expected = numpy.encode(layout, codes).count()
    np.testing.assert_array_equal(data.rows.count(), expected)
    survey = data.survey(None, 100, 0)
    np.testing.assert_array_equal(survey.counts, expected)
    assert survey.rows.layout == data.rows.layout == layout
    with pytest.raises(CodeRangeError, match=r"column 3 \('X3'\).*0 to 1\.$"):
        load_rows(network, codes)


@pytest.mark.parametrize("card", [257, 5000])
def test_nodes_of_many_states_are_drawn_alike_and_fairly(card):
    layout = Layout((2, card), ((0,), (0, 1)))
    rng = np.random.default_rng(0)
    tables = [np.array([0.5, 0.5]), *rng.dirichlet(np.ones(card), 2)]
    drawn = [k.sample(layout, [0, 1], np.concatenate(tables), 50_000, 3) for k in (native, numpy)]
    np.testing.assert_array_equal(*drawn)
    assert drawn[0].dtype == np.uint16
    counts = native.encode(layout, drawn[0]).count()[2 : 2 + card]
    assert np.abs(counts / counts.sum() - tables[1]).sum() < 4 * np.sqrt(card / 25_000)
