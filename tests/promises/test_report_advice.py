"""Promises of what a report says first: the verdict, what to do next, and the same as Markdown."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from markupsafe import escape

import robustbn
from robustbn import BayesianNetwork, RobustEstimator, example_network, sample
from robustbn._core.groups import Cause, Example, Group, MovedCell, UnusualCell
from robustbn._core.origins import Origin
from robustbn._core.result import Inferred, Misfit, RepeatedRow
from robustbn._show.advice import (
    next_actions,
    say_evidence,
    say_moved_cells,
    strongest_cell,
    verdict,
)
from robustbn._show.explain import gather_rows
from robustbn._show.measures import MissingEdge, show_pair
from robustbn._show.page.render import render_markdown, render_page
from robustbn._show.saying import base_command
from robustbn._show.words import percent
from robustbn.cli import main
from robustbn.simulate import corrupt
from tests.reports import changed, fit_corrupted, hostile_report, quick_report

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

WRONG = Misfit(False, 0.4, 2, 1.5, 1.1)
KIND = Group(
    0.1, 400.0, (UnusualCell("rain", {}, "yes", 0.9, 0.1, 0.9),),
    cause=Cause("wrong join", ("rain", "grass"), 0.8, "Rain and grass come from other rows."),
    nats=3.0, moved=(MovedCell("grass", {"rain": "yes"}, "wet", 0.5, 0.95),),
    examples=(Example(7, {"rain": "yes"}, 11, {"rain": "no"}, ("rain",)),),
)  # fmt: skip


@pytest.fixture(scope="module")
def fit(alarm):
    return fit_corrupted(alarm, 20_000)[0]


@pytest.fixture(scope="module")
def misfitting(alarm):
    parents = {node: list(alarm.parents[node]) for node in alarm.nodes}
    parents["CVP"], parents["PCWP"], parents["HR"] = [], [], []
    drawn = BayesianNetwork(parents, alarm.states)
    return RobustEstimator(drawn, random_state=0).fit(sample(alarm, 12_000, 1))


def edge_of(network):
    parent, child = network.nodes[0], network.nodes[-1]
    some = np.arange(2)
    return MissingEdge(parent, child, 0.3, np.eye(2), np.full((2, 2), 0.5), some + 9.0, some, some)


# --- the verdict ----------------------------------------------------------------------------------


def cases(network):
    clean, bad = quick_report(network, eps=0.0), quick_report(network)
    edges = (edge_of(network),)
    return {
        "clean": (clean, "Every one of the 4,000 rows fits this network."),
        "misfit": (changed(clean, misfit=WRONG, edges=edges), "No row stands out: all 4,000"),
        "bad": (changed(bad, kinds=[KIND]), "of 4,000 rows (10 %) do not fit this network"),
        "both": (
            changed(bad, kinds=[KIND], misfit=WRONG, edges=edges),
            "of 4,000 rows (10 %) stand out from the others",
        ),
        "not settled": (changed(bad, converged=False), "still do not look like rows"),
    }


@pytest.mark.parametrize("case", ["clean", "misfit", "bad", "both", "not settled"])
def test_each_verdict_has_its_headline_and_two_or_three_actions(sprinkler, case):
    report, said = cases(sprinkler)[case]
    assert said in verdict(report)
    actions = next_actions(report)
    assert 2 <= len(actions) <= 3
    assert all(action.command.startswith("robustbn ") and action.python for action in actions)
    page = render_page(report)
    for action in actions:
        for words in (action.command, action.python):
            assert str(escape(words)) in page
    ways = " ".join(action.command + action.python for action in actions)
    assert ("with_edges" in ways) == (case in ("misfit", "both"))
    assert ("--drop-distrusted" in ways) == (case in ("bad", "both"))
    assert ("--good-group 1" in ways) == (case == "bad")
    assert ("--ask 20" in ways) == (case in ("bad", "both", "not settled"))


def test_rows_that_are_too_few_for_their_parameters_are_not_said_to_fit(sprinkler):
    """Whatever else is found is told with it: a finding stands, a clean bill does not."""
    few = "87 rows are too few for 2,531 free parameters: 50,620 are wanted, 20 for each."
    for case, (report, said) in cases(sprinkler).items():
        told = verdict(changed(report, few_rows=few))
        assert few in told
        assert (said in told) == (case != "clean")
    clean = changed(cases(sprinkler)["clean"][0], few_rows=few)
    assert next_actions(clean)[0].command.endswith("--prior 1")
    smooth = changed(clean, settings={"prior": 1.0})
    assert "--prior" not in next_actions(smooth)[0].command


def test_a_hidden_group_is_looked_for_with_a_command(sprinkler):
    report = changed(quick_report(sprinkler, eps=0.0), misfit=WRONG, table="my rows.csv")
    first = next_actions(report)[0]
    assert first.say.startswith("Look for a hidden group")
    assert first.command == "robustbn inspect 'my rows.csv'"


def test_rows_are_counted_in_one_unit(fit):
    report = fit.result_.shown()
    n = int((fit.row_weights_ < 0.5).sum())
    assert verdict(report).startswith(f"{n:,} of 20,000 rows ({percent(n / 20_000)})")
    lead = render_page(report).split("<section")[1]
    assert "weight" not in lead
    assert f"of 20,000: {percent(n / 20_000)}" in lead


def test_rows_that_count_for_less_are_told_in_rows(sprinkler):
    clean = quick_report(sprinkler, eps=0.0)
    said = verdict(changed(clean, contamination=0.01))
    assert said.startswith("No row is distrusted outright; some of the 4,000 count for less, 40.0")


def test_a_share_that_was_given_too_small_is_to_be_found(sprinkler):
    report = changed(quick_report(sprinkler, eps=0.0), converged=False)
    assert verdict(report).startswith("No row is distrusted: all 4,000 have their say.")
    assert next_actions(report)[-1].command.endswith("--contamination 0.2")
    given = changed(report, settings={"contamination": 0.02})
    assert next_actions(given)[-1].command.endswith("--contamination auto")


def test_no_decision_is_asked_on_rows_that_no_group_holds(sprinkler):
    actions = next_actions(changed(quick_report(sprinkler), kinds=[changed(KIND, number=0)]))
    assert actions[0].say.startswith("Check twenty rows: about 400 rows stand out alone")
    assert all("-group" not in each.command and "decide" not in each.python for each in actions)


def test_the_first_action_is_about_copies_where_they_are_the_most(sprinkler):
    report = changed(quick_report(sprinkler), kinds=[KIND], repeats=[RepeatedRow(3, {}, 900, 2.0)])
    first = next_actions(report)[0]
    assert first.say.startswith("Look at the copies: about 898 copies of 1 row beyond")
    assert first.python == "fit.repeats_"
    origin = Origin((("feed", "x", "x"),), 1_200, 900, 0.1, 1e-9, 50.0)
    assert (
        "75.0 % of the 1,200 rows with feed = x"
        in next_actions(changed(report, origins=[origin]))[0].say
    )


def test_a_column_that_is_often_missing_is_named(sprinkler):
    clean, node = quick_report(sprinkler, eps=0.0), sprinkler.nodes[0]
    first = next_actions(changed(clean, n_missing={node: 1_000}))[0]
    assert first.say.startswith(f"{node} is missing from 25.0 % of the rows.")
    assert "--missing-is-evidence" in first.command
    assert "missing" not in next_actions(changed(clean, n_missing={node: 10}))[0].say


def test_missing_values_are_the_same_step_in_the_terminal_and_in_python(sprinkler):
    clean = changed(quick_report(sprinkler, eps=0.0), n_missing={sprinkler.nodes[0]: 1_000})
    first = next_actions(clean)[0]
    assert first.command == "robustbn fit NETWORK TABLE --missing-is-evidence"
    assert first.python == "robustbn.fit(network, table, missing_is_evidence=True)"
    done = changed(clean, settings={"missing_is_evidence": True})
    assert "missing" not in next_actions(done)[0].say


def test_a_notebook_says_what_the_page_says_and_names_the_groups(misfitting):
    tree = robustbn.random_network("tree", 20, random_state=0)
    rows, is_bad = corrupt(sample(tree, 3_000, 1), tree, "product", 0.1, random_state=2)
    table = pd.DataFrame(rows, columns=tree.nodes)
    table["site"] = np.where(is_bad, "harbour", "hill")
    gathered = robustbn.fit(tree, table, codes=True, random_state=0)
    assert "site = harbour" in gathered._repr_html_()
    for each in (misfitting, gathered):
        page = each.result_.shown()
        notebook = html.unescape(each._repr_html_())
        assert "not shown" not in notebook
        assert verdict(page) in notebook
        assert str(each).split("\n")[1] == verdict(page)
        for action in next_actions(page):
            assert action.say in notebook
            assert action.python in notebook


def test_a_command_is_built_on_without_what_it_writes():
    typed = "robustbn fit 'my net.bif' rows.csv --sep ';' -o x.bif --report=page.html --seed 3"
    assert (
        base_command(f"{typed} --force") == "robustbn fit 'my net.bif' rows.csv --sep ';' --seed 3"
    )
    assert base_command("robustbn fit 'open") == "robustbn fit NETWORK TABLE"
    assert base_command("robustbn.RobustEstimator(network)") == "robustbn fit NETWORK TABLE"


def test_what_was_written_is_not_advised_again(sprinkler):
    clean = quick_report(sprinkler, eps=0.0)
    typed = "robustbn fit net.bif rows.csv"
    assert [a.say[:14] for a in next_actions(clean)] == ["Use the tables", "Keep what was "]
    for output in ("-o fitted.bif", "--output=fitted.bif", "--output-dir out"):
        (only,) = next_actions(changed(clean, command=f"{typed} {output}"))
        assert only.command.startswith(f"{typed} --model model.json && ")
    both = next_actions(changed(clean, command=f"{typed} -o f.bif --model 'my model.json'"))
    assert [a.command for a in both] == ["robustbn score 'my model.json' NEW"]


def test_every_line_of_python_runs(fit, misfitting, alarm):
    rows, _ = corrupt(sample(alarm, 20_000, 1), alarm, "mixture", 0.1, random_state=2)
    clean = RobustEstimator(alarm, random_state=0).fit(sample(alarm, 3_000, 3))
    for each, table in ((fit, rows), (misfitting, sample(alarm, 12_000, 1)), (clean, rows)):
        names = {"fit": each, "robustbn": robustbn, "table": table, "new_table": table[:50]}
        for action in next_actions(each.result_.shown()):
            if "write" not in action.python:
                eval(action.python, {**names, "network": alarm})  # noqa: S307


def test_every_command_runs(alarm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alarm.with_cpts(None).write("net.json")
    rows, _ = corrupt(sample(alarm, 8_000, 1), alarm, "mixture", 0.1, random_state=2)
    labels = {n: np.array(alarm.states[n], object)[rows[:, k]] for k, n in enumerate(alarm.nodes)}
    pd.DataFrame(labels).to_parquet("rows.parquet")
    typed = ["fit", "net.json", "rows.parquet", "--report", "page.html", "--json"]
    ran = CliRunner().invoke(main, typed)
    facts = json.loads(ran.stdout)
    assert len(facts["next"]) == 3
    assert [" % counted, " in line for line in facts["changed"]] == [True, True]
    for action in facts["next"]:
        words = action["command"].split()
        assert words[:4] == ["robustbn", "fit", "net.json", "rows.parquet"]
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, done.output
    assert len(pd.read_parquet("trusted.parquet")) == 8_000 - facts["rows_distrusted"]


# --- cells ----------------------------------------------------------------------------------------


def test_the_two_cells_that_moved_most_are_named(fit):
    report = fit.result_.shown(rows=False)
    said = say_moved_cells(report)
    assert len(said) == 2
    for line, table in zip(said, report.moved_tables, strict=False):
        cell = strongest_cell(report, table.node)
        _, _, state = report.network.describe_cell(cell)
        counted, robust = (n.probabilities[cell] for n in (report.plain_network, report.network))
        assert line.startswith(f"{table.node} = {state}")
        assert line.endswith(f": {percent(counted)} counted, {percent(robust)} robust")
        assert line in fit._repr_html_()
    assert say_moved_cells(quick_report(example_network("alarm"), eps=0.0)) == []


def test_evidence_is_told_in_plain_words():
    assert say_evidence(0.0) == ""
    said = say_evidence(np.log(150))
    assert said == "a typical row of it is about 150 times likelier bad than good"
    assert "more than a million times" in say_evidence(40.0)


# --- rows and pairs -------------------------------------------------------------------------------


def test_rows_that_are_the_same_are_one():
    codes = np.array([[0, 1], [2, 1], [0, 1], [0, 1], [2, 1]], np.uint8)
    trust = np.array([0.1, 0.0, 0.1, 0.3, 0.0], np.float32)
    order, first, counts = gather_rows(codes, trust)
    groups = {frozenset(order[a : a + n].tolist()) for a, n in zip(first, counts, strict=True)}
    assert groups == {frozenset({0, 2}), frozenset({3}), frozenset({1, 4})}


def test_gathered_rows_keep_their_numbers_names_and_kinds(alarm):
    rows = sample(alarm, 6_000, 1)
    rows[100:400] = rows[100]
    rows[100:400, :20] = np.array([len(alarm.states[n]) - 1 for n in alarm.nodes])[:20]
    labels = {n: np.array(alarm.states[n], object)[rows[:, k]] for k, n in enumerate(alarm.nodes)}
    frame = pd.DataFrame({**labels, "uid": [f"u{i}" for i in range(len(rows))]})
    fit = robustbn.fit(alarm, frame, random_state=0, id="uid")
    report = fit.result_.shown()
    first = max(report.rows, key=lambda row: row.n_alike)
    assert first.n_alike == 300
    assert first.row == 100
    assert first.names == ("u100",)
    assert first.alike[:2] == ((101, ("u101",)), (102, ("u102",)))
    assert sum(row.n_alike for row in report.rows) == report.n_distrusted


def test_the_kind_of_a_row_is_the_one_that_holds_it(fit):
    asked = fit.ask(40)
    rows = asked[asked["weight"] < 0.1]
    numbers = fit.result_.judged.numbers
    asked_for = np.isin(numbers, rows["row"])
    kinds = fit.result_.number_kinds(fit.result_.judged.codes[asked_for])
    found = dict(zip(numbers[asked_for].tolist(), kinds.tolist(), strict=True))
    agree = [found[row] == group for row, group in zip(rows["row"], rows["group"], strict=True)]
    assert len(agree) > 5
    assert np.mean(agree) > 0.9
    assert set(kinds) <= {0, *(kind.number for kind in fit.kinds_)}


def test_the_table_of_a_pair_is_what_the_trusted_rows_show(misfitting):
    judged, network = misfitting.result_.judged, misfitting.network_
    found = misfitting.result_.deeper.edges[0]
    pair = show_pair(network, judged, found)
    assert (pair.parent, pair.child) == (network.nodes[found.parent], network.nodes[found.child])
    codes, trust = judged.drawn_codes, judged.drawn_trust
    table = network.cpts[pair.child]
    for r, u in enumerate(pair.parent_codes):
        rows = codes[:, found.parent] == u
        given = codes[rows][:, [network.nodes.index(p) for p in network.parents[pair.child]]]
        expected = np.average([table[tuple(g)] for g in given], axis=0, weights=trust[rows])
        seen = np.bincount(codes[rows, found.child], trust[rows], table.shape[-1])
        seen /= trust[rows].sum()
        np.testing.assert_allclose(pair.seen[r], seen[pair.child_codes], atol=1e-6)
        np.testing.assert_allclose(pair.expected[r], expected[pair.child_codes], atol=1e-6)
    assert pair.n_rows.sum() == pytest.approx(12_000, rel=0.01)


# --- Markdown -------------------------------------------------------------------------------------


def test_the_markdown_holds_what_a_ticket_needs(fit, misfitting):
    command = "robustbn fit net.bif rows.csv --report page.html"
    text = fit.to_markdown(title="March", command=command)
    report = fit.result_.shown(rows=False)
    assert text.startswith(f"## March\n\n{verdict(report)}\n")
    for heading in ("Kinds of bad rows", "Cells that moved most", "What to do next"):
        assert f"\n### {heading}\n" in text
    assert "**Kind 1**" in text
    cell = strongest_cell(report, report.moved_tables[0].node)
    assert f"| {percent(fit.plain_network_.probabilities[cell])} |" in text
    assert "`robustbn fit net.bif rows.csv --ask 20`" in text
    assert "LVEDVOLUME and PCWP depend on each other without an edge" in misfitting.to_markdown()
    with pytest.raises(robustbn.exceptions.NotFittedError):
        RobustEstimator().to_markdown()


def test_labels_are_text_in_markdown():
    text = render_markdown(hostile_report())
    outside_code = re.sub(r"(`+).*?\1", "", text)
    assert not re.search(r"(?<!\\)<\w", outside_code)
    assert "\\<script\\>" in text
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings[0].startswith("## \\<script\\>")
    assert all(line.startswith("###") for line in headings[1:])
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} <= {4}


def test_private_pages_show_no_example(sprinkler):
    report = changed(quick_report(sprinkler), kinds=[KIND])
    assert "Typical rows" in render_page(report)
    hidden = render_page(changed(report, rows_hidden=True))
    assert "Typical rows" not in hidden
    assert "No single cause" not in hidden
    said = "Rain and grass come from other rows. That explains 80.0 % of what sets"
    assert f"{said} these rows apart." in hidden


def test_missing_values_have_their_place(sprinkler):
    clean = quick_report(sprinkler, eps=0.0)
    node = sprinkler.nodes[1]
    shares = np.linspace(0, 0.25, sprinkler.n_nodes)
    inferred = Inferred(np.ones(sprinkler.n_cells), shares, 12, True, 0.01)
    page = render_page(
        changed(clean, n_missing={node: 800}, missing="800 values are missing.", inferred=inferred)
    )
    section = page.split('<section id="missing"')[1].split("</section>")[0]
    assert f">{node}</td>" in section
    assert "20.0 %" in section
    assert "inferred in 12 steps" in section
    assert '<section id="missing"' not in render_page(clean)
