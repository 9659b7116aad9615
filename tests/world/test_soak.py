"""Many fits leave nothing behind, fits at once give the same, and one that ends early no trace."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from benchmarks import soak

from robustbn import MaximumLikelihoodEstimator, RobustEstimator

on_linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")


@on_linux
def test_many_fits_leave_no_memory_threads_or_files_behind():
    alone = multiprocessing.get_context("spawn")  # what other tests close late is not counted
    with ProcessPoolExecutor(1, alone) as pool:
        grown, before, after = pool.submit(soak.fit_often, 20).result()
    assert grown < soak.MOST_GROWTH
    assert after <= before


def test_fits_from_many_threads_at_once_give_the_same():
    assert soak.fit_in_threads(soak.N_THREADS)


@on_linux
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_fits_in_other_processes_give_the_same(method):
    assert soak.fit_in_process(method)


def test_an_allocation_that_fails_leaves_the_estimator_as_it_was():
    disturbed, same = soak.fit_starved(8)
    assert disturbed == same > 0


@on_linux
def test_an_interrupt_leaves_the_estimator_as_it_was():
    disturbed, same = soak.fit_interrupted(4, seed=0)
    assert disturbed == same


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(
    ("kind", "last"),
    [
        (RobustEstimator, "robustbn._show.result.find_unseen"),
        (MaximumLikelihoodEstimator, "robustbn.estimator.counting.find_unseen"),
    ],
)
def test_even_at_its_last_step_a_fit_that_ends_leaves_the_estimator_as_it_was(
    kind, last, error, sprinkler, monkeypatch
):
    rows = np.random.default_rng(0).integers(0, 2, (600, 3)).astype(np.uint8)
    settings = {"random_state": 0} if kind is RobustEstimator else {}
    fit = kind(sprinkler, prior=1.0, **settings).fit(rows[:400])
    before = dict(vars(fit))

    def end(*_):
        raise error

    monkeypatch.setattr(last, end)
    with pytest.raises(error):
        fit.fit(rows)
    assert vars(fit).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(fit).items())
