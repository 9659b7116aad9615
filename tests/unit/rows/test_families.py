"""Counts of families are those of a plain loop, with values missing or not."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbn._rows import families
from robustbn._rows.families import FamilyCounts


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cards=st.lists(st.integers(2, 5), min_size=3, max_size=5),
    n=st.integers(0, 400),
    holes=st.sampled_from([0.0, 0.2]),
    at_once=st.sampled_from([1, 2**17]),
)
def test_families_are_counted_over_the_rows_that_show_them(seed, cards, n, holes, at_once):
    rng = np.random.default_rng(seed)
    codes = (rng.random((n, len(cards))) * cards).astype(np.uint8)
    codes[rng.random(codes.shape) < holes] = 255
    codes = np.minimum(codes, cards).astype(np.uint8)
    *others, given_one, child = rng.permutation(len(cards)).tolist()
    before = families.AT_ONCE
    families.AT_ONCE = at_once
    try:
        counted = FamilyCounts(codes, cards).count_beside([given_one, child], others)
    finally:
        families.AT_ONCE = before
    for other, start in zip(others, counted.starts, strict=True):
        shape = [cards[other], cards[given_one], cards[child]]
        wanted = np.zeros(shape, int)
        for row in codes.tolist():
            place = row[other], row[given_one], row[child]
            if all(k < card for k, card in zip(place, shape, strict=True)):
                wanted[place] += 1
        found = counted.counts[start : start + wanted.size].reshape(shape)
        np.testing.assert_array_equal(found, wanted)
    assert counted.counts.sum() == sum(
        int((codes[:, [other, given_one, child]] < np.array(cards)[[other, given_one, child]])
            .all(axis=1).sum())
        for other in others
    )  # fmt: skip
