"""A structure from a table alone: what becomes a node, what is refused, what follows from it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn._networks.edges import read_parents
from robustbn.exceptions import (
    DataError,
    NetworkError,
    RobustBNError,
    SettingError,
    UnknownSettingError,
)
from tests.commands import as_json, call

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N = 1_500


def make_frame(n=N, seed=0):
    """Return a chain of three columns, one apart, and columns that can be no nodes."""
    rng = np.random.default_rng(seed)

    def copy(column, share):
        return np.where(rng.random(n) < share, rng.permutation(column), column)

    rank = rng.choice(["low", "middle", "high"], n)
    skill = copy(rank, 0.3)
    return pd.DataFrame(
        {
            "id": np.arange(5_000, 5_000 + n),
            "rank": rank,
            "skill": skill,
            "pay": pd.Series(copy(skill, 0.3)).map({"low": 10, "middle": 20, "high": 30})
            + rng.random(n),
            "coin": rng.choice(["head", "tail"], n),
            "country": "here",
            "level": pd.Series(rank).map({"low": 1, "middle": 2, "high": 3}),
            "day": (np.datetime64("2024-01-01") + rng.integers(0, 300, n)).astype(str),
            "empty": np.full(n, np.nan),
            "site": rng.choice(["north", "south"], n),
        }
    )


@pytest.fixture(scope="module")
def drafted():
    return robustbn.draft(make_frame())


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_frame().to_csv("rows.csv", index=False)
    return tmp_path


# --- what a draft is ------------------------------------------------------------------------------


def test_a_draft_joins_what_depends_on_each_other(drafted):
    pairs = {frozenset((edge.parent, edge.child)) for edge in drafted.edges}
    assert pairs == {frozenset(("rank", "skill")), frozenset(("skill", "pay"))}
    assert all(edge.gain > 100 and edge.returns == 1.0 for edge in drafted.edges)
    assert drafted.n_rows == N
    assert drafted.n_rows_left_out == 0


def test_what_can_be_no_node_is_left_out_and_said(drafted):
    assert set(drafted.left_out) == {"id", "country", "level", "day", "empty", "site"}
    assert drafted.left_out["level"] == "is a copy of rank"
    assert drafted.alone == ("coin",)
    for name, why in drafted.left_out.items():
        assert f"Left out: {name} {why}." in str(drafted)
    assert "Without an edge: 'coin'" in str(drafted)
    assert set(drafted.network.nodes) == {"rank", "skill", "pay", "coin"}


def test_a_draft_is_called_one_and_says_that_arrows_are_no_causes(drafted):
    assert "This is a draft." in str(drafted)
    assert "its direction does not imply causation" in str(drafted)
    doubtful = [edge for edge in drafted.edges if edge.same_way < 0.8]
    assert drafted.look_first() == doubtful or len(drafted.look_first()) >= len(doubtful)
    for edge in drafted.look_first():
        assert f"{edge.parent} -> {edge.child}" in str(drafted).partition("Review first:")[2]


def test_a_draft_can_be_fitted_as_it_is_and_as_the_file_that_it_writes(drafted, tmp_path):
    drafted.write(tmp_path / "edges.csv")
    frame = make_frame()
    of_file = robustbn.fit(tmp_path / "edges.csv", frame, random_state=0)
    of_network = robustbn.fit(drafted.network, frame, random_state=0)
    assert set(of_file.network_.edges) == set(of_network.network_.edges)
    assert of_file.network_.nodes == of_network.network_.nodes
    assert (of_file.row_weights_ == of_network.row_weights_).all()
    assert read_parents(tmp_path / "edges.csv")["coin"] == []


def test_the_same_rows_give_the_same_draft(drafted):
    again = robustbn.draft(make_frame())
    assert again.edges == drafted.edges


def test_columns_may_be_left_out_and_settings_say_how_they_are_read():
    found = robustbn.draft(make_frame(), leave_out=["rank"], bins={"pay": "q3"})
    assert found.left_out["rank"] == "is left out, as requested"
    assert {"level", "skill"} <= set(found.network.nodes)  # no copy of anything now
    assert len(found.network.states["pay"]) == 3


def test_a_column_called_like_a_place_of_origin_is_context_unless_its_states_are_given():
    frame = make_frame()
    frame["site"] = np.where(frame["rank"] == "low", "north", frame["site"])
    assert "site" in robustbn.draft(frame).left_out
    found = robustbn.draft(frame, states={"site": ["north", "south"]})
    assert "site" in found.network.nodes


def test_limits_are_kept():
    frame = make_frame()
    found = robustbn.draft(
        frame, require=[("coin", "pay")], forbid=[("skill", "pay")], order=["pay", "skill", "rank"]
    )
    edges = set(found.network.edges)
    assert ("coin", "pay") in edges
    assert ("skill", "pay") not in edges
    assert ("pay", "skill") in edges
    assert not edges & {("rank", "pay"), ("rank", "skill")}
    one = robustbn.draft(frame, most_parents=1)
    assert max(len(own) for own in one.network.parents.values()) == 1


def test_values_that_are_missing_do_not_change_the_draft(drafted):
    frame = make_frame().astype({"rank": object, "skill": object})
    rng = np.random.default_rng(1)
    for name in ("rank", "skill", "pay"):
        frame.loc[rng.random(N) < 0.15, name] = None
    found = robustbn.draft(frame.drop(columns="level"))
    pairs = {frozenset((edge.parent, edge.child)) for edge in found.edges}
    assert pairs == {frozenset((edge.parent, edge.child)) for edge in drafted.edges}


def test_wrong_cells_are_left_out_where_asked_for():
    alarm = robustbn.example_network("alarm")
    rows = np.asarray(robustbn.sample(alarm, 3_000, random_state=0))[:, :12]
    rng = np.random.default_rng(0)
    is_wrong = rng.random(rows.shape) < 0.03
    noise = (rng.random(rows.shape) * np.array(alarm.layout.cards[:12])).astype(rows.dtype)
    frame = pd.DataFrame(np.where(is_wrong, noise, rows), columns=alarm.nodes[:12])
    assert robustbn.draft(frame).n_cells_left_out == 0
    found = robustbn.draft(frame, cells="find")
    assert 30 < found.n_cells_left_out < is_wrong.sum()
    assert "likely to be wrong" in str(found)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"forbid": [("skil", "pay")]}, DataError, "forbid names 'skil'.*Did you mean 'skill'?"),
        ({"require": [("rank", "Pay")]}, DataError, "require names 'Pay'.*Did you mean 'pay'?"),
        ({"order": ["rank", "pray"]}, DataError, "order names 'pray'.*Did you mean 'pay'?"),
        ({"leave_out": ["countri"]}, DataError, "Did you mean 'country'?"),
        ({"require": [("country", "pay")]}, DataError, "'country', which has only one value"),
        (
            {"require": [("rank", "pay")], "forbid": [("rank", "pay")]},
            SettingError,
            "'rank' -> 'pay' is forbidden",
        ),
        (
            {"require": [("rank", "pay")], "order": ["pay", "rank"]},
            SettingError,
            "points from a later column of order",
        ),
        ({"require": [("pay", "pay")]}, SettingError, "from a column to itself"),
        ({"require": [("pay", "rank"), ("rank", "pay")]}, NetworkError, "cycle"),
        (
            {"require": [("rank", "pay"), ("coin", "pay")], "most_parents": 1},
            SettingError,
            "2 parents, and most_parents is 1",
        ),
        ({"most_parents": 0}, SettingError, "at least 1"),
        ({"order": "rank"}, SettingError, "a list of columns"),
        ({"order": ["rank", "rank"]}, SettingError, "each of them once"),
        ({"forbid": ["rank", "pay"]}, NetworkError, r"Did you mean \[\('rank', 'pay'\)\]"),
        ({"cells": "all"}, SettingError, "cells is one of"),
        ({"most_parent": 2}, UnknownSettingError, "Did you mean 'most_parents'?"),
    ],
)
def test_what_contradicts_itself_is_refused(settings, error, said):
    with pytest.raises(error, match=said) as caught:
        robustbn.draft(make_frame(200), **settings)
    assert isinstance(caught.value, RobustBNError)


@pytest.mark.parametrize(
    "rows",
    [
        {"rain": ["no", "yes"] * 50},
        {"rain": ["no", "yes"] * 50, "always": ["x"] * 100},
        {"name": [f"n{k}" for k in range(100)], "other": [f"m{k}" for k in range(100)]},
        {"rain": ["no", "yes"] * 50, "copy": [1, 2] * 50},
        {"a": [], "b": []},
    ],
)
def test_a_table_with_fewer_than_two_nodes_is_refused_and_told_why(rows):
    with pytest.raises(DataError, match=r"an edge needs two|can be a node"):
        robustbn.draft(rows)


def test_a_table_that_can_be_read_once_only_is_refused():
    import pyarrow as pa

    table = pa.Table.from_pandas(make_frame(200))
    with pytest.raises(DataError, match="can be read only once"):
        robustbn.draft(table.to_reader())
    with pytest.raises(RobustBNError):
        robustbn.draft(lambda: [make_frame(200)])


def test_columns_that_do_not_depend_on_each_other_are_written_as_nodes(tmp_path):
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 2, 500) for name in "abc"}
    found = robustbn.draft(table)
    assert found.edges == ()
    assert found.alone == ("a", "b", "c")
    found.write(tmp_path / "edges.csv")
    assert robustbn.fit(tmp_path / "edges.csv", table, random_state=0).network_.nodes == found.alone


def test_a_table_of_independent_columns_is_checked_too(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 90, 2000).astype(float)
    ages[::50] = 999
    frame = pd.DataFrame({"age": ages, "group": rng.choice([*"xyz"], 2000)})
    monkeypatch.chdir(tmp_path)
    frame.to_csv("rows.csv", index=False)
    assert "40 values of age are far outside" in call("check", "rows.csv").output


# --- the command line -----------------------------------------------------------------------------


def test_the_edges_that_a_draft_writes_are_fitted(desk):
    facts = as_json("draft", "rows.csv", "-o", "edges.csv")
    assert facts["draft"]["columns_left_out"]["id"] == "looks like an identifier"
    assert {"parent", "child", "gain", "returns", "same_way"} == set(facts["draft"]["edges"][0])
    fitted = as_json("fit", "edges.csv", "rows.csv")
    assert fitted["network"]["edges"] == len(facts["draft"]["edges"]) == 2


def test_a_draft_on_the_screen_names_edges_and_what_was_left_out(desk):
    shown = " ".join(call("draft", "rows.csv", "--forbid", "rank,skill").stdout.split())
    assert "its direction does not imply causation" in shown
    assert "country has only one value" in shown
    assert "skill -> rank" in shown


def test_a_mistyped_edge_is_answered_by_the_nearest_column(desk):
    ran = call("draft", "rows.csv", "--require", "ranc,pay", code=4)
    assert "Did you mean 'rank'?" in ran.stderr


def test_a_table_alone_is_answered_by_what_to_do(desk):
    said = " ".join(call("fit", "rows.csv", code=2).stderr.split())
    assert "robustbn draft rows.csv -o edges.csv" in said
    assert "robustbn check rows.csv" in said
    call("draft", "rows.csv", "-o", "edges.csv")
    said = " ".join(call("fit", "net.json", code=2).stderr.split())
    assert "fit needs a table besides net.json" in said


def test_a_check_drafts_fits_and_writes_a_page(desk):
    facts = as_json("check", "rows.csv")
    assert facts["draft"]["rows"] == facts["table"]["rows"] == N
    assert "findings" in facts
    page = (desk / "rows.check.html").read_text(encoding="utf-8")
    assert 'id="draft"' in page
    assert "The network is a draft" in page
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="rbn-network"' in page
    for edge in facts["draft"]["edges"]:
        assert re.search(rf'{edge["parent"]}</td><td class="label">{edge["child"]}<', page)
    assert "already exists" in call("check", "rows.csv", code=2).stderr
    call("check", "rows.csv", "--force", "--leave-out", "coin")


@pytest.mark.parametrize("given", [("net.bif", "rows.csv"), ("rows.csv", "net.bif")])
def test_a_check_with_a_network_is_answered_by_the_command_that_takes_one(desk, given):
    said = " ".join(call("check", *given, code=2).stderr.split())
    assert "check takes one table and no network, and got 2 arguments." in said
    assert "use fit: robustbn fit net.bif rows.csv." in said


def test_a_check_of_several_files_has_a_page_without_signs_of_the_pattern(desk):
    for k in (1, 2):
        make_frame().to_csv(f"part-{k}.csv", index=False)
    call("check", "part-*.csv")
    assert (desk / "part.check.html").is_file()


def test_a_check_finds_what_a_fit_with_the_drafted_edges_finds(desk):
    frame = make_frame()
    block = frame.iloc[200:300]
    pd.concat([frame, block]).to_csv("rows.csv", index=False)
    checked = as_json("check", "rows.csv", "--output-dir", "result")
    assert (desk / "result" / "edges.csv").is_file()
    fitted = as_json("fit", "result/edges.csv", "rows.csv")
    told = [[each["sentence"] for each in facts["findings"]] for facts in (checked, fitted)]
    assert told[0] == told[1]
    assert any(each["kind"] == "repeated ids" for each in checked["findings"])


def test_a_column_without_an_edge_is_looked_at_and_may_say_where(desk):
    frame, rng = make_frame(4000), np.random.default_rng(7)
    frame["site"] = rng.choice([*"abcdef"], len(frame))
    frame.loc[frame["site"] == "c", "coin"] = "head"
    frame.to_csv("rows.csv", index=False)
    facts = as_json("check", "rows.csv")
    assert facts["draft"]["columns_alone"] == ["coin"]
    (found,) = [each for each in facts["findings"] if each["kind"] == "column differs"]
    assert (found["columns"], found["where"]) == (["coin"], {"site": "c"})
    assert found["advice"]["command"].startswith("robustbn fit rows.edges.csv rows.csv ")
    Path("edges.csv").write_text("rank,skill\n,coin\n,site\n")
    of_nodes = as_json("fit", "edges.csv", "rows.csv")["findings"]
    (again,) = [each for each in of_nodes if each["kind"] == "column differs"]
    assert (again["columns"], again["where"]) == (["coin"], {"site": "c"})


def test_the_commands_of_a_check_run(desk):
    frame = make_frame()
    pd.concat([frame, frame.iloc[200:300]]).to_csv("rows.csv", index=False, sep=";")
    given = [("--edges", "mine.csv"), ("--output-dir", "result"), ()]
    for options in given:
        checked = as_json("check", "rows.csv", "--sep", ";", *options, "--force")
        commands = {each["advice"]["command"] for each in checked["findings"]}
        assert commands
        for command in sorted(commands):
            call(*shlex.split(command)[1:], "--force")


def test_a_page_of_a_network_that_was_drawn_says_nothing_of_a_draft(desk):
    (desk / "edges.csv").write_text("rank,skill\nskill,pay\n")
    call("fit", "edges.csv", "rows.csv", "--report", "page.html")
    assert 'id="draft"' not in (desk / "page.html").read_text(encoding="utf-8")


def test_rows_that_a_draft_does_not_use_are_not_said_to_be_left_out_of_the_fit(desk):
    """A fit that follows counts them as it judges them."""
    frame = pd.read_csv("rows.csv")
    frame = pd.concat([frame, pd.concat([frame[["rank", "skill", "pay"]].iloc[:1]] * 60)])
    for column in ("rank", "skill", "pay"):
        some = frame[column].iloc[:400].sample(frac=1, random_state=1).to_numpy()
        frame.iloc[:400, frame.columns.get_loc(column)] = some
    frame.to_csv("rows.csv", index=False)
    n = robustbn.draft(frame).n_rows_left_out
    assert n
    said = " ".join(call("draft", "rows.csv").output.split())
    assert f"{n:,} not used for the draft: no edges explain them" in said
    assert "rows left out" not in said
