"""The benchmarks of starts and of threads measure what they say."""

from __future__ import annotations

import pytest
from benchmarks import startup, threads
from benchmarks.measure import Timing


def test_a_start_is_a_process_of_its_own_whose_time_is_the_childs(tmp_path):
    idle, printed = startup._start("print(7)", tmp_path)
    busy, _ = startup._start("sum(range(20_000_000))", tmp_path)
    assert printed == "7\n"
    assert 0 < idle < busy
    with pytest.raises(RuntimeError, match="ended with 3"):
        startup._start("raise SystemExit(3)", tmp_path)


def test_goals_of_starts_are_a_tenth_of_a_second_and_half_of_one():
    fastest = dict.fromkeys(startup.STARTS, 0.05)
    assert all(goal.met for goal in startup._goals(fastest, 0.6, 0.2))
    assert not any(goal.met for goal in startup._goals(dict.fromkeys(fastest, 0.2), 0.8, 0.2))


def test_gains_of_threads_are_those_of_one_over_two_and_passes_are_judged():
    times = {1: 0.4, 2: 0.2}
    timings = {
        (what, n, k): Timing((wall,), (wall,))
        for what in ("encode", threads.FIT)
        for n in (1000, threads.JUDGED_SIZE)
        for k, wall in times.items()
    }
    gains = threads.find_gains(timings)
    assert set(gains.values()) == {2.0}
    assert [goal.met for goal in threads.judge(gains)] == [True]
    assert not threads.judge(dict.fromkeys(gains, 1.5))[0].met


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
@pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning")
def test_all_that_is_timed_by_threads_can_be_called():
    contenders = threads.list_contenders(600, 0)
    assert len(contenders) == 2 * (len(threads.PASSES) + 2 + len(threads.ROBUST))
    for (what, _, _), call in contenders.items():
        if not what.startswith("robust"):
            call()
