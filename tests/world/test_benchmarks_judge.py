"""What the judge's coefficients were learned from says how good they are."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.judge import NAMES, judge_group, learn, leave_out, read_groups

from robustbn._learn import judge


@pytest.fixture(scope="module")
def groups():
    return read_groups()


def test_groups_called_bad_are_bad_in_packages_left_out(groups):
    left_out = leave_out(groups)
    chances = np.array([judge_group(left_out[group.package], group) for group in groups])
    is_bad = np.array([group.is_bad for group in groups])
    called = chances >= 0.8
    assert called.sum() > 300
    assert is_bad[called].mean() >= 0.75
    assert is_bad[chances < 0.2].mean() <= 0.25


def test_coefficients_are_those_that_the_groups_give(groups):
    for is_exact, found in learn(groups).items():
        written = getattr(judge, NAMES[is_exact])
        assert written == pytest.approx(found, rel=0.02, abs=0.02)
