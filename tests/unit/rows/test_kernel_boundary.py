"""Whatever the kernels are called with: a Python error or a right answer, never a crash."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robustbn._core.layout import Layout
from robustbn._core.protocols import TwoSides
from robustbn._rows.kernels import has_native

if not has_native():
    pytest.skip("the native kernels were not built", allow_module_level=True)

from fuzz import kernels as fuzzed

from robustbn._rows.kernels import _native, native

LAYOUT = Layout((2, 3, 300), ((0,), (0, 1), (2,)))


@pytest.fixture
def rows():
    return native.encode(LAYOUT, np.zeros((300, 3), np.uint16))


WITH_TABLES = ("score", "gram", "project", "divide", "divide_apart", "odds", "divide_in_two")


@pytest.mark.parametrize("seed", [0, 1])
def test_random_arguments_are_refused_or_answered_as_numpy_does(seed):
    assert fuzzed.run(1500, seed) == 0


@pytest.mark.parametrize("name", ["count", "fingerprints", *WITH_TABLES])
def test_packed_codes_that_no_table_has_are_refused(rows, name):
    rows.packed[:] = 255
    table = np.ones((LAYOUT.n_cells, 2))
    more = {
        "divide_apart": [None, np.zeros(rows.n_rows)],
        "odds": [None, 1],
        "divide_in_two": [None, TwoSides(1)],
    }.get(name, [])
    with pytest.raises(ValueError, match="a packed code is out of range"):
        getattr(rows, name)(*([table] if name in WITH_TABLES else []), *more)


@pytest.mark.parametrize("n_first", [2, 3, -1, 2**63])
def test_a_second_side_without_columns_is_refused(rows, n_first):
    table = np.ones((LAYOUT.n_cells, 2))
    with pytest.raises((ValueError, TypeError)):
        rows.odds(table, None, n_first)
    with pytest.raises((ValueError, TypeError)):
        rows.divide_in_two(table, None, TwoSides(n_first))


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_results_are_not_written_into_a_converted_copy(rows, kind):
    counts = np.zeros(LAYOUT.n_cells, kind)
    with pytest.raises(TypeError):
        _native.count(rows.plan, rows.packed, rows.n_rows, None, counts, 1)


@pytest.mark.parametrize("n_rows", [2**64 - 1, 2**64 - 255, 2**63, 0, 513])
def test_another_number_of_rows_than_were_packed_is_refused(rows, n_rows):
    counts = np.zeros(LAYOUT.n_cells)
    for packed in (rows.packed, np.empty(0, np.uint8)):
        if n_rows or len(packed):
            with pytest.raises(ValueError, match="wrong size"):
                _native.count(rows.plan, packed, n_rows, None, counts, 1)


def test_packed_bytes_that_are_not_aligned_are_refused(rows):
    moved = np.empty(len(rows.packed) + 1, np.uint8)[1:]
    moved[:] = rows.packed
    with pytest.raises(ValueError, match="not aligned"):
        _native.count(rows.plan, moved, rows.n_rows, None, np.zeros(LAYOUT.n_cells), 1)


def test_other_arrays_that_are_not_aligned_are_refused(rows):
    scores = np.empty(4 * rows.n_rows + 1, np.uint8)[1:].view(np.float32)
    table, offset = np.ones((LAYOUT.n_cells, 1)), np.zeros(1)
    with pytest.raises(ValueError, match="not aligned"):
        _native.score(rows.plan, rows.packed, rows.n_rows, table, offset, scores, 1)


def test_rows_that_came_in_a_message_are_aligned_first(rows):
    def move(array):
        moved = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        moved[:] = array
        return moved

    codes = np.random.default_rng(0).integers(0, [2, 3, 300], (300, 3)).astype(np.uint16)
    here, there = native.encode(LAYOUT, codes), native.encode(LAYOUT, move(codes))
    there = replace(there, packed=move(there.packed))
    table, weights = np.random.default_rng(1).random((2, LAYOUT.n_cells, 1)), np.linspace(0, 1, 300)
    np.testing.assert_array_equal(here.count(weights), there.count(move(weights)))
    np.testing.assert_array_equal(here.count(table[0, :300]), there.count(move(table[0, :300])))
    np.testing.assert_array_equal(here.score(table[0]), there.score(move(table[0])))
    gram = there.gram(move(table[0]), move(table[1, 0]), move(weights))
    np.testing.assert_array_equal(here.gram(table[0], table[1, 0], weights), gram)


@pytest.mark.parametrize("width", [-1, 0, 3, 8, 2**31 - 1])
def test_codes_of_other_widths_are_refused(width):
    with pytest.raises(ValueError, match="1, 2 or 4 bytes"):
        _native.Plan(
            [2], [2], [[0]], [width], [np.empty(0, "u2")], [False], [[np.arange(2, dtype="i4")]], 2
        )


@pytest.mark.parametrize("cards", [[0, 2], [2, -1], [2, 1000]])
def test_states_that_do_not_fit_are_not_drawn(cards):
    thresholds = [np.zeros((1, 1), np.int32), np.zeros((max(cards[0], 0), 1), np.int32)]
    with pytest.raises(ValueError, match="states must fit a code"):
        _native.sample(cards, [0, 1], [[], [0]], thresholds, 1, np.zeros((5, 2), np.uint8), 1)


@pytest.mark.parametrize(
    ("cards", "families"),
    [([0], [[0]]), ([-3], [[0]]), ([2, 2], [[0], [0]]), ([2, 2], [[0], [0, 0, 1]])],
)
def test_families_that_are_none_are_refused(cards, families):
    with pytest.raises(ValueError, match=r"states|family|column"):
        _native.Holes(cards, families, 4096, 8, 1)
