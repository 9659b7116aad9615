"""The benchmarks decide as they say, keep what they measured, and survive a method that fails."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import proof, runner, verdict
from benchmarks.cells import NOT_MEASURED, Cell, Notebook
from benchmarks.compare import Pair, is_slower, tabulate
from benchmarks.contenders import AUTO, GIVEN, METHODS, RIVALS, Task, expand_one_hot
from benchmarks.measure import Settings
from benchmarks.scenes import build_network, draw_scene
from benchmarks.worker import measure_cell

from robustbn import MaximumLikelihoodEstimator, RobustEstimator
from robustbn.adversary import KINDS

CELL = Cell("gallery", "tree:10", "product", "counting", 0.1, 2000, n_draws=2000)


def with_method(method: str, **changes: Any) -> Cell:
    return dataclasses.replace(CELL, method=method, **changes)


def record(method: str, tv: float, adversary: str = "product", **more: Any) -> dict[str, Any]:
    cell = with_method(method, adversary=adversary)
    measured = {"tv": tv, "tv_error": 0.0, "seconds": 0.1, "peak_bytes": 2**20}
    return {**dataclasses.asdict(cell), **measured, **more}


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_s", "head_s", "slower"),
    [
        (1.0, 1.10, False),  # 10 % is allowed
        (1.0, 1.16, True),
        (0.1, 0.14, False),  # 40 %, but 40 ms only
        (0.1, 0.16, True),
        (10.0, 11.0, False),  # a second, but 10 % only
        (1.0, 0.5, False),
    ],
)
def test_slower_is_more_than_15_percent_and_50_ms(
    base_s: float, head_s: float, slower: bool
) -> None:
    assert is_slower(base_s, head_s) is slower


def test_the_gate_compares_medians() -> None:
    assert not Pair((1.0, 1.0, 1.0), (1.0, 1.0, 9.0)).is_worse
    assert Pair((1.0, 1.0, 1.0), (0.1, 1.5, 1.5)).is_worse


def test_what_only_the_base_can_do_is_worse_and_what_is_new_is_not() -> None:
    assert Pair((1.0,), ()).is_worse
    assert not Pair((), (1.0,)).is_worse
    assert "new" in tabulate({"a": Pair((), (1.0,))})


# --- the notebook ---------------------------------------------------------------------------------


def test_a_finished_cell_is_found_again_by_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    Notebook(path, "v1").note(CELL, {"tv": 0.5})
    found = Notebook(path, "v1").find(CELL)
    assert found is not None
    assert found["tv"] == 0.5
    assert Notebook(path, "v1").find(dataclasses.replace(CELL, seed=1)) is None


def test_other_code_and_a_fresh_run_start_afresh(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    Notebook(path, "v1").note(CELL, {"tv": 0.5})
    assert Notebook(path, "v2").find(CELL) is None
    assert Notebook(path, "v1", fresh=True).find(CELL) is None


def test_only_a_retry_measures_again_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    Notebook(path, "v1").note(CELL, {"failed": "no luck"})
    assert Notebook(path, "v1").find(CELL) is not None
    assert Notebook(path, "v1", retry=True).find(CELL) is None


def test_a_line_cut_short_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    Notebook(path, "v1").note(CELL, {"tv": 0.5})
    with path.open("a") as file:
        file.write('{"key": {"experi')
    assert Notebook(path, "v1").find(CELL) is not None


# --- the runner -----------------------------------------------------------------------------------


def test_a_cell_that_fails_is_noted_with_the_reason_and_stops_nobody(tmp_path: Path) -> None:
    bad = dataclasses.replace(CELL, adversary="nobody")
    slow = with_method("que_paper", network="tree:100", n_rows=200_000)
    notebook = Notebook(tmp_path / "cells.jsonl", "v1")
    runner.run_cells([bad, CELL], notebook, runner.Limits(n_jobs=2), preload=False)
    runner.run_cells([slow], notebook, runner.Limits(cell_s=0.2), preload=False)
    records = notebook.records([bad, CELL, slow])
    assert "nobody" in records[0]["failed"]
    assert records[1]["tv"] > 0
    assert "0.2 s" in records[2]["failed"]


def test_no_cell_is_begun_after_the_time_limit(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path / "cells.jsonl", "v1")
    runner.run_cells([CELL], notebook, runner.Limits(ends_at=0.0), preload=False)
    assert notebook.records([CELL])[0]["failed"] == NOT_MEASURED


# --- the methods ----------------------------------------------------------------------------------


def make_task(adversary: str = "rowflip", n_rows: int = 3000) -> tuple[Task, Any]:
    scene = draw_scene(build_network("tree:12", 0), adversary, 0.1, n_rows, 0)
    return Task(scene.network.with_cpts(None), scene.rows, scene.good, 0.1, 0, 1), scene


def test_trimming_is_fit_drop_the_least_likely_and_refit_five_times() -> None:
    task, _ = make_task()
    kept = np.ones(len(task.rows), bool)
    for _ in range(5):
        fit = MaximumLikelihoodEstimator(task.structure, "laplace", pseudo_count=1e-3)
        likelihood = fit.fit(task.rows[kept]).score_samples(task.rows)
        kept = np.ones(len(task.rows), bool)
        kept[np.argsort(likelihood, kind="stable")[: len(task.rows) // 10]] = False
    expected = MaximumLikelihoodEstimator(task.structure).fit(task.rows[kept]).network_
    found = RobustEstimator(task.structure, 0.1, "trimmed").fit(task.rows).network_
    assert np.abs(found.probabilities - expected.probabilities).max() < 1e-6


def test_deduplication_keeps_one_row_of_each_kind() -> None:
    task, _ = make_task()
    found = METHODS["distinct"].prepare(task)()
    assert (~found.is_caught).sum() == len(np.unique(task.rows, axis=0))


def test_one_hot_rows_have_a_one_for_every_node() -> None:
    task, _ = make_task(n_rows=50)
    columns = expand_one_hot(task.structure, task.rows)
    assert columns.shape == (50, sum(task.structure.layout.cards))
    assert (columns.sum(axis=1) == task.structure.n_nodes).all()


def test_the_floor_of_rows_taken_away_is_all_that_were_there() -> None:
    _, scene = make_task("subtract")
    assert len(scene.good) == 3000
    assert len(scene.rows) == 2700


@pytest.mark.parametrize("method", ["good", "counting", AUTO, GIVEN, "trimmed", "distinct"])
def test_a_cell_says_error_and_cost(method: str, tmp_path: Path) -> None:
    found = measure_cell(with_method(method), tmp_path)
    assert 0 < found["tv"] < 1
    assert found["seconds"] > 0
    assert found["peak_bytes"] >= 0
    json.dumps(found)


@pytest.mark.parametrize("method", ["forest", "lof"])
def test_a_detector_catches_the_share_it_is_told(method: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    found = measure_cell(with_method(method), tmp_path)
    assert 0.05 < found["n_caught"] / found["n_rows_given"] < 0.11


# --- the verdict ----------------------------------------------------------------------------------


def judge(ours: float, rivals: list[float]) -> verdict.Outcome:
    records = [record(AUTO, ours)]
    records += [record(m, tv) for m, tv in zip(RIVALS, rivals, strict=False)]
    return verdict.judge(records, AUTO)[0]


def test_a_tie_within_two_percent_counts_as_lowest() -> None:
    assert judge(0.1019, [0.1, 0.2]).is_lowest
    assert not judge(0.1021, [0.1, 0.2]).is_lowest


def test_worst_is_above_every_rival_by_more_than_a_tie() -> None:
    assert judge(0.21, [0.1, 0.2]).is_worst
    assert not judge(0.203, [0.1, 0.2]).is_worst


def test_a_failure_of_ours_is_a_loss_and_the_worst() -> None:
    failed = {**dataclasses.asdict(with_method(AUTO)), "failed": "no luck"}
    outcome = verdict.judge([failed, record("counting", 0.1)], AUTO)[0]
    assert not outcome.is_lowest
    assert outcome.is_worst


def test_there_is_no_verdict_where_a_rival_was_left_out() -> None:
    left_out = {**dataclasses.asdict(with_method("trimmed")), "failed": NOT_MEASURED}
    assert verdict.judge([record(AUTO, 0.1), record("counting", 0.2), left_out], AUTO) == []


def test_a_method_that_failed_for_one_seed_has_no_average() -> None:
    failed = {**dataclasses.asdict(with_method("counting", seed=1)), "failed": "no luck"}
    assert verdict.errors_by_method([record("counting", 0.1), failed]) == {}


def test_the_exponent_of_a_power_law_is_its_power() -> None:
    assert verdict.fit_exponent([1, 10, 100], [2, 20 * 10**0.5, 2000]) == pytest.approx(1.5)


# --- the reports ----------------------------------------------------------------------------------


GALLERY = [
    *(record(m, 0.3, "starve") for m in (AUTO, GIVEN)),
    *(record(m, 0.1) for m in (AUTO, GIVEN)),
    *(record("counting", tv, kind) for kind, tv in (("starve", 0.2), ("product", 0.4))),
    *(record("good", 0.05, kind) for kind in ("starve", "product")),
]


def test_every_place_that_is_lost_is_listed_and_is_a_missed_goal() -> None:
    lost = proof.tabulate_lost(GALLERY)
    assert [line[1] for line in lost.lines] == ["starve, 10%"]
    assert lost.lines[0][2:] == ("0.3000", "0.2000", "counting", "0.2000", "0.0500", "**yes**")
    assert lost.note.startswith("1 of 2")
    goals = list(proof.find_goals(GALLERY, AUTO))
    assert [(goal.measured, goal.met) for goal in goals] == [("50%", False), ("1 of 2", False)]


def test_tables_of_the_gallery_show_ratios_to_the_floor() -> None:
    shown = dict(proof.tabulate_gallery(GALLERY).lines)
    assert shown == {"starve": "4.00, 4.00, **6.00**", "product": "8.00, 8.00, **2.00**"}
    choices = {line[0]: line[1:4] for line in proof.tabulate_choices(GALLERY).lines}
    assert choices["counting"] == ("5.66", "8.0", "50%")
    assert choices[METHODS[AUTO].title] == ("3.46", "6.0", "50%")


def test_places_with_other_shares_of_bad_rows_are_judged_apart() -> None:
    shares = [
        {**record(m, tv), "eps": eps} for eps, tv in ((0.1, 0.1), (0.3, 0.5)) for m in (AUTO,)
    ]
    shares += [{**record("counting", 0.3), "eps": eps} for eps in (0.1, 0.3)]
    assert [line[1] for line in proof.tabulate_lost(shares).lines] == ["product, 30%"]


@pytest.mark.parametrize("name", proof.RUNS)
def test_a_run_is_a_report_that_names_what_failed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = f"plan_{name}"
    cells = getattr(proof, plan)(Settings(quick=True))
    few = [cell for cell in cells if cell.method not in ("pgmpy", "pyagrum")][:6]
    small = [dataclasses.replace(cell, n_rows=300, n_draws=500) for cell in few]
    bad = dataclasses.replace(small[0], adversary="nobody")
    monkeypatch.setattr(proof, plan, lambda _: iter([*small, bad]))
    report = proof.RUNS[name](Settings(quick=True), tmp_path / "cells.jsonl")
    assert len(report.records) == 7
    assert any("nobody" in reason for reason in report.skipped)
    assert any(table.lines for table in report.tables)
    assert "95 % interval" in report.note


def test_quick_and_full_plan_every_adversary_and_method() -> None:
    for settings in (Settings(), Settings(full=True)):
        cells = list(proof.plan_gallery(settings))
        assert {c.adversary for c in cells} == {"none", *KINDS}
        assert {c.method for c in cells} == {"good", AUTO, GIVEN, *RIVALS}
