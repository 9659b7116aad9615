"""The benchmark of wrong cells: what it spoils, and how it counts what is found."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.table_cells import WAYS, describe_wrong, spoil_cells

from robustbn._core.cells import WrongCells

CARDS = [4, 3, 2, 5]
ROWS = (np.random.default_rng(0).random((20_000, 4)) * CARDS).astype(np.uint8)


@pytest.mark.parametrize("way", WAYS[:3])
def test_so_many_cells_are_spoilt_in_each_way(way):
    dirty = spoil_cells(ROWS, CARDS, way, 0.04, 1)
    is_wrong = dirty != ROWS
    expected = 0.04 * (1.0 if way == "confused" else (1 - 1 / np.array(CARDS)).mean())
    assert is_wrong.mean() == pytest.approx(expected, rel=0.1)
    assert (dirty < CARDS).all()
    if way == "confused":
        np.testing.assert_array_equal(dirty[is_wrong], ((ROWS + 1) % CARDS)[is_wrong])
    if way == "one site":
        assert not is_wrong[len(ROWS) // 5 :].any()


def test_cells_are_counted_by_the_probability_that_is_given():
    dirty = ROWS.copy()
    dirty[0, 0] = (ROWS[0, 0] + 1) % 4
    wrong = WrongCells(
        np.array([0, 1]), np.array([0, 1]), dirty[[0, 1], [0, 1]].astype(np.int32),
        np.array([ROWS[0, 0], 9], np.int32), np.array([0.97, 0.55], np.float32),
    )  # fmt: skip
    told = describe_wrong(wrong, ROWS, dirty)
    assert told["named"] == [1, 0, 0, 0, 0, 1]
    assert told["are_wrong"] == told["mended"] == [0, 0, 0, 0, 0, 1]
    assert sum(describe_wrong(None, ROWS, dirty)["named"]) == 0
