"""The benchmark of dirty tables: everybody gets the same rows, and any answer is judged alike."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import dirt
from benchmarks.dirt_methods import METHODS, Contestant, find_method, predict_state, read_answer
from benchmarks.dirt_tables import PUBLIC, Place, draw, list_people, plan, read_public
from benchmarks.held_out import count_rows
from benchmarks.measure import Settings

import robustbn

PAGE = Path(__file__).parents[2] / "docs" / "dirt.md"
NETWORK = robustbn.random_network("graph", 6, 14, 3, random_state=0)
ROWS = np.asarray(robustbn.sample(NETWORK, 1_000, random_state=1))


# --- answers --------------------------------------------------------------------------------------


def test_tables_weights_and_both_are_read():
    structure, counted = NETWORK.with_cpts(None), count_rows(NETWORK, ROWS)
    by_name = {node: counted.cpts[node] for node in counted.nodes}
    ones = np.ones(len(ROWS))
    for answer in (counted, by_name, ones, (counted, ones), (by_name, ones)):
        tables, weights = read_answer(structure, ROWS, answer)
        assert np.allclose(tables.probabilities, counted.probabilities)
        assert (weights is None) == (answer is counted or answer is by_name)
    halved, _ = read_answer(structure, ROWS, (np.arange(1_000) < 200).astype(float))
    assert np.allclose(halved.probabilities, count_rows(NETWORK, ROWS[:200]).probabilities)


@pytest.mark.parametrize("wrong", [np.ones(3), np.full(1_000, 2.0), np.full(1_000, np.nan)])
def test_weights_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="one weight from 0 to 1 for each of the 1000 rows"):
        read_answer(NETWORK, ROWS, wrong)


def test_only_a_method_that_asks_is_told_the_share():
    told = []
    asks = Contestant("asks", "", lambda network, rows, share: told.append(share) or np.ones(1_000))
    asks.learn(NETWORK, ROWS, 0.25)
    assert told == [0.25]
    assert {name for name, m in METHODS.items() if m.is_told} == {
        "trimmed", "forest", "ecod", "cleanlab"
    }  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_every_method_answers_and_a_told_share_is_dropped(name):
    pytest.importorskip({"ecod": "pyod", "cleanlab": "cleanlab"}.get(name, "sklearn"))
    tables, weights = find_method(name).learn(NETWORK.with_cpts(None), ROWS, 0.1)
    assert tables.nodes == NETWORK.nodes
    if METHODS[name].is_told:
        assert weights.mean() == pytest.approx(0.9, abs=0.02)


def test_a_state_is_predicted_from_all_other_cells():
    table = np.zeros(3)
    row = ROWS[:1].copy()
    for state in range(3):
        row[0, 2] = state
        table[state] = np.exp(robustbn.MaximumLikelihoodEstimator(NETWORK).fit(ROWS).score(row))
    fitted = robustbn.MaximumLikelihoodEstimator(NETWORK).fit(ROWS).network_
    assert np.allclose(predict_state(fitted, ROWS[:1], 2)[0], table / table.sum())


def test_a_method_that_is_not_there_is_named():
    with pytest.raises(SystemExit, match="no method 'nobody': use one of ours, counting"):
        find_method("nobody")


def test_the_methods_of_the_page_are_answers():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, "docs/dirt.md", "exec"), names)  # noqa: S102
    for function in ("fit", "fit_told"):
        method = Contestant(function, "", names[function])
        assert method.is_told == (function == "fit_told")
        tables, _ = method.learn(NETWORK.with_cpts(None), ROWS, 0.1)
        assert np.isfinite(tables.probabilities).all()


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", PUBLIC)
def test_public_tables_are_inside_of_their_packages(table):
    pytest.importorskip(PUBLIC[table][0])
    good, bad = read_public(table)
    expected = {
        "shuttle": (45_586, 3_511, 9), "phishing": (702, 548, 9), "spam": (2_785, 1_812, 40),
        "segmented cells": (719, 1_300, 40),
    }  # fmt: skip
    assert (len(good), len(bad), good.shape[1]) == expected[table]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with faked answers and proteins."""
    rng = np.random.default_rng(0)
    lines = [[*map(str, rng.integers(1, 6, 8)), "H" if k % 2 else "D"] for k in range(120)]
    sachs = [[*map(str, rng.integers(0, 3, 8)), ("none", "akt")[k % 2]] for k in range(120)]
    header = [f"q{k}" for k in range(8)]
    for name, rows, last in (("answers-x", lines, "side"), ("sachs", sachs, "intervened")):
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            file.write("\n".join(map(",".join, [[*header, last], *rows])))
    return str(tmp_path)


def test_people_come_from_a_folder_and_are_left_out_without_it(folder):
    assert list(list_people(folder)) == ["answers-x", "sachs akt"]
    for table in list_people(folder):
        drawn = draw(Place("people", table, "tree", "labelled", 0.1, 0, folder))
        assert (len(drawn.rows), drawn.is_bad.sum(), len(drawn.judges)) == (22, 2, 20)
    assert {place.section for place in plan(folder)} == {"people", "public", "cells", "planted"}
    assert "people" not in {place.section for place in plan("nowhere")}


def test_the_good_rows_beside_bad_cells_are_those_before():
    drawn = draw(Place("cells", "AER/Fertility", "tree", "any state", 0.04))
    assert (drawn.is_bad == (drawn.rows != drawn.good).any(axis=1)).all()
    assert 0.02 < (drawn.rows != drawn.good).mean() < 0.04


# --- what comes of it -----------------------------------------------------------------------------


def record(table, ours, counting, way="labelled", **more):
    methods = {"ours": ours, "counting": counting, "trimmed": 0.0}
    return {
        "section": "public", "table": table, "structure": "tree", "way": way, "share": 0.1,
        "seed": 0, "columns": 9,
        "methods": {n: {"loss": x, "lost": 0.0, "caught": 0.5, "seconds": 1.0, **more}
                    for n, x in methods.items()},
    }  # fmt: skip


def test_what_is_lost_comes_first_and_those_who_are_told_do_not_count():
    records = [record(f"t{k}", *losses) for k, losses in enumerate([(0.1, 0.2), (0.3, 0.2)])]
    first, section, *_ = dirt.tabulate(records, ["ours", "counting", "trimmed"], "ours")
    assert [line[0] for line in first.lines] == ["public: t1"]
    assert first.lines[0][2:] == ("0.300", "0.200", "counting")
    assert first.note.startswith("1 of 2 cells")
    assert section.title.endswith(": 2 cells")
    assert section.lines[0][:4] == ("**robustbn**", "0.200", "100%", "50%")
    assert section.lines[2][0].endswith(" (told)")


def test_a_ratio_to_nothing_is_not_shown():
    records = [record("t", 0.1, 0.001)]
    assert dirt.show_left(records, "ours") == "–"


def test_goals_are_missed_by_harm():
    records = [record("t", 0.3, 0.2), record("t", 0.0, 0.0, "clean", lost=0.02)]
    assert [goal.met for goal in dirt.judge(records)] == [False, False]


def test_the_command_prints_a_method_of_ones_own_and_survives_its_failure(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "mine_for_dirt.py").write_text(
        "import numpy as np\n"
        "def fit(network, rows):\n"
        "    if len(network.nodes) > 20:\n"
        "        raise ValueError('too many columns')\n"
        "    return np.ones(len(rows))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(dirt, "NOTEBOOK", tmp_path / "cells.jsonl")
    monkeypatch.setattr(dirt.run, "__defaults__", ((), tmp_path / "cells.jsonl"))
    nothing = ["--folder", str(tmp_path / "nothing")]
    dirt.main(["--method", "mine_for_dirt:fit", "--beside", "counting", "--quick", *nothing])
    said = capsys.readouterr().out
    assert "| mine_for_dirt:fit |" in said
    assert "Lost: mine_for_dirt:fit loses" in said
    assert "too many columns" in said
    assert "made bad by people and experiments: no table is there" in said


def test_a_method_of_ones_own_is_measured_each_time(tmp_path, monkeypatch):
    (tmp_path / "mine_again.py").write_text(
        "import numpy as np\nn = 0\n"
        "def fit(network, rows):\n    global n\n    n += 1\n    return np.ones(len(rows))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    few = plan("nowhere", quick=True)[:1]
    monkeypatch.setattr(dirt, "plan", lambda *_, **__: few)
    for _ in range(2):
        dirt.run(Settings(quick=True), ["mine_again:fit"], tmp_path / "cells.jsonl")
    import mine_again

    assert mine_again.n == 2
