"""The network by which the gate judges rows: a tree, further parents, missing values as states."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn._core.layout import Layout
from robustbn._learn import gate
from robustbn._learn.gate import draft_layout
from robustbn._rows.memory import load_codes

BITS = Layout((2,) * 5, tuple((c,) for c in range(5)))


def tied_rows(n=2_000, seed=0):
    """Columns 0 and 3 are nearly the same, 1 is nearly 'both or neither' of 0 and 2, 4 is free."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (n, 5)).astype(np.uint8)
    rows[:, 3] = np.where(rng.random(n) < 0.9, rows[:, 0], rows[:, 3])
    rows[:, 1] = np.where(rng.random(n) < 0.9, rows[:, 0] & rows[:, 2], rows[:, 1])
    return rows


def test_columns_that_tell_of_each_other_are_tied_and_others_are_not():
    families = draft_layout(BITS, tied_rows()).families
    tied = {frozenset((p, family[-1])) for family in families for p in family[:-1]}
    assert {frozenset((0, 3)), frozenset((0, 1)), frozenset((1, 2))} <= tied
    assert not any(4 in pair for pair in tied)
    assert max(map(len, families)) > 2  # what the tree has not: a second parent


def test_the_edges_of_the_network_do_not_matter():
    drawn = Layout(BITS.cards, ((4, 0), (1,), (2,), (4, 2, 3), (4,)))
    assert draft_layout(drawn, tied_rows()) == draft_layout(BITS, tied_rows())


def test_a_missing_value_is_a_state_of_the_columns_that_have_some():
    rows = tied_rows()
    rows[:700, [2, 4]] = 2
    own = draft_layout(BITS, rows)
    assert own.cards == (2, 2, 3, 2, 3)
    assert any({2, 4} <= set(family) for family in own.families)
    counts = load_codes(own, rows).count()
    assert counts.sum() == rows.size  # no family is left out


@pytest.mark.parametrize("kernels", ["native", "numpy"])
def test_codes_of_one_byte_are_read_where_missing_values_need_two(kernels):
    rng = np.random.default_rng(0)
    layout = Layout((256, 2), ((0,), (1,)))
    rows = np.column_stack([rng.integers(0, 257, 5_000), rng.integers(0, 2, 5_000)])
    own = draft_layout(layout, rows.astype(np.uint16))
    assert own.cards == (257, 2)
    new = rng.integers(0, 2, (100, 2))
    counts = [load_codes(own, new.astype(kind), kernels).count() for kind in (np.uint8, np.uint16)]
    np.testing.assert_array_equal(*counts)


def test_fewer_rows_are_looked_at_where_there_are_many_columns(monkeypatch):
    seen = []

    class Counted(gate.FamilyCounts):
        def __init__(self, codes, cards):
            seen.append(len(codes))
            super().__init__(codes, cards)

    monkeypatch.setattr(gate, "FamilyCounts", Counted)
    rng = np.random.default_rng(0)
    for d in (10, 100):
        wide = Layout((2,) * d, tuple((c,) for c in range(d)))
        draft_layout(wide, rng.integers(0, 2, (9_000, d)).astype(np.uint8))
    assert seen == [9_000, 1_000]


def test_one_column_and_rows_without_any_tie_have_a_network_too():
    rng = np.random.default_rng(0)
    one = Layout((3,), ((0,),))
    assert draft_layout(one, rng.integers(0, 3, (50, 1)).astype(np.uint8)).families == ((0,),)
    free = rng.integers(0, 2, (300, 5)).astype(np.uint8)
    assert all(len(family) < 3 for family in draft_layout(BITS, free).families)
