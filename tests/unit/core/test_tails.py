"""The tail of the scores and the power of a filter step, against the plain way to find them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbn._means.weighting import SOFTNESS, _bracket, _find_tail, soft_filter


def tail_by_sorting(w, scores, mass):
    order = np.argsort(-scores, kind="stable")
    reached = int(np.searchsorted(np.cumsum(w[order]), mass * (1 - 1e-9)))
    return (scores >= scores[order[min(reached, len(w) - 1)]]) & (w > 0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 400), st.floats(0, 1.2), st.booleans())
def test_the_tail_is_what_sorting_all_rows_gives(seed, n, share, has_ties):
    rng = np.random.default_rng(seed)
    scores = rng.gamma(1.0, size=n)
    scores = np.round(scores, 1) if has_ties else scores
    w = np.round(rng.random(n) * (rng.random(n) < 0.7), 3)
    mass = share * w.sum()
    np.testing.assert_array_equal(_find_tail(w, scores, mass), tail_by_sorting(w, scores, mass))


def test_a_tail_whose_rows_weigh_little_is_found_whole():
    """More rows than the mass would need if all weighed as much as the heaviest."""
    scores = np.arange(1000.0)
    w = np.where(scores >= 500, 0.01, 1.0)
    assert _find_tail(w, scores, 5.0).sum() == 500


@given(st.floats(0.01, 1e5), st.sampled_from([1.0, 3.0, 0.3]))  # below, a cube takes all steps
def test_the_bracket_holds_the_root_and_is_tiny(root, power):
    n_calls = [0]

    def lacks(kappa):
        n_calls[0] += 1
        return 1.0 - (kappa / root) ** power

    below, above = _bracket(lacks)
    assert n_calls[0] <= 45
    assert lacks(below) > 0 >= lacks(above)
    assert above - below <= 1e-12 * above
    assert above == pytest.approx(root, rel=1e-12)


def test_a_bracket_without_a_root_ends():
    assert _bracket(lambda kappa: 1.0)[1] >= 1e6
    assert _bracket(lambda kappa: -1.0) == (0.0, 0.0)


@pytest.mark.parametrize("max_mass", [100.0, np.inf])
def test_a_filter_step_takes_the_smallest_power_that_is_enough(max_mass):
    rng = np.random.default_rng(0)
    w, scores = rng.random(2000), rng.gamma(1.0, size=2000)
    in_tail = tail_by_sorting(w, scores, 0.2 * w.sum())
    top = scores[in_tail].max() * (1 + SOFTNESS)
    allowed = 0.9 * (w @ scores) / w.sum()

    def lowered(kappa):
        return np.where(in_tail, w * (1 - np.minimum(scores / top, 1)) ** kappa, w)

    def is_enough(kappa):
        after = lowered(kappa)
        return (w - after).sum() >= max_mass or after @ scores <= allowed * after.sum()

    below, above = 0.0, 64.0
    for _ in range(80):
        middle = 0.5 * (below + above)
        below, above = (below, middle) if is_enough(middle) else (middle, above)
    found = soft_filter(w, scores, tail=0.2, allowed=allowed, max_mass=max_mass)
    np.testing.assert_allclose(found, lowered(above), rtol=1e-9)
