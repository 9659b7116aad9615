"""Promises of what a report says first: the verdict, the findings, and the same as Markdown."""

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
from robustbn._core.findings import Finding
from robustbn._core.groups import Cause, Example, Group, MovedCell, UnusualCell
from robustbn._core.origins import Origin
from robustbn._core.result import Inferred, Misfit, RepeatedRow, Vanishing
from robustbn._show.advice import say_evidence, say_moved_cells, strongest_cell, verdict
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
        "clean": (clean, "All 4,000 rows fit this network."),
        "misfit": (changed(clean, misfit=WRONG, edges=edges), "No row stands out: all 4,000"),
        "bad": (changed(bad, kinds=[KIND]), "of 4,000 rows (10 %) do not fit this network"),
        "both": (
            changed(bad, kinds=[KIND], misfit=WRONG, edges=edges),
            "of 4,000 rows (10 %) stand out from the other rows",
        ),
        "not settled": (changed(bad, converged=False), "still do not look like rows"),
    }


@pytest.mark.parametrize("case", ["clean", "misfit", "bad", "both", "not settled"])
def test_each_verdict_has_its_headline_and_findings_that_say_what_to_do(sprinkler, case):
    report, said = cases(sprinkler)[case]
    assert said in verdict(report)
    findings = report.findings
    assert bool(findings) == (case != "clean")
    page = render_page(report)
    for finding in findings:
        assert str(escape(finding.sentence)) in page
        assert finding.advice.command.startswith("robustbn ")
        assert finding.advice.python
        if finding.severity != "note":
            for words in finding.advice:
                assert str(escape(words)) in page
    ways = " ".join(each.advice.command + each.advice.python for each in findings)
    assert ("with_edges" in ways) == (case in ("misfit", "both"))
    assert ("--good-group 1" in ways) == (case in ("bad", "both"))
    assert ("--contamination 0.2" in ways) == (case == "not settled")


def test_the_verdict_begins_with_how_many_errors_and_warnings_there_are(sprinkler):
    clean = quick_report(sprinkler, eps=0.0)
    assert verdict(clean).startswith("All 4,000 rows")
    found = [Finding("rows", severity, "", 1.0) for severity in ("error", "error", "warning")]
    assert verdict(changed(clean, findings=found)).startswith("2 errors and 1 warning were found. ")
    assert verdict(changed(clean, findings=found[2:])).startswith("1 warning was found. ")
    note = Finding("rows", "note", "", 0.0)
    assert verdict(changed(clean, findings=[note])) == verdict(clean)


def test_rows_that_are_too_few_for_their_parameters_are_not_said_to_fit(sprinkler):
    """Whatever else is found is told with it: a finding stands, a clean bill does not."""
    few = "87 rows are too few for 2,531 free parameters: at least 50,620 rows are recommended."
    for case, (report, said) in cases(sprinkler).items():
        told = verdict(changed(report, few_rows=few))
        assert few in told
        assert (said in told) == (case != "clean")


def test_a_hidden_group_is_looked_for_with_a_command(sprinkler):
    report = changed(quick_report(sprinkler, eps=0.0), misfit=WRONG, table="my rows.csv")
    (found,) = report.findings
    assert (found.kind, found.severity) == ("missing edge", "note")
    assert "There may be a hidden group" in found.sentence
    assert found.advice.command == "robustbn inspect 'my rows.csv'"


def test_rows_are_counted_in_one_unit(fit):
    report = fit.result_.shown()
    n = int((fit.row_weights_ < 0.5).sum())
    share = percent(n / 20_000).replace(".0 %", " %")  # the verdict is short
    assert f"{n:,} of 20,000 rows ({share})" in verdict(report)
    lead = render_page(report).split("<section")[1]
    assert "weight" not in lead
    assert f"of 20,000 rows ({share})" in lead.replace("\u00a0", " ")


def test_rows_that_count_for_less_are_told_in_rows(sprinkler):
    clean = quick_report(sprinkler, eps=0.0)
    said = verdict(changed(clean, contamination=0.01))
    assert said.startswith("No row is fully distrusted; some of the 4,000 have reduced weight")
    assert "as if 40.0 rows had been left out" in said


def test_a_share_that_was_given_too_small_is_to_be_found(sprinkler):
    report = changed(quick_report(sprinkler, eps=0.0), converged=False)
    assert "No row is distrusted: all 4,000 are counted." in verdict(report)
    (found,) = report.findings
    assert (found.severity, found.sentence) == ("warning", report.status)
    assert found.advice.command.endswith("--contamination 0.2")
    (given,) = changed(report, settings={"contamination": 0.02}).findings
    assert given.advice.command.endswith("--contamination auto")


def test_no_decision_is_asked_on_rows_that_no_group_holds(sprinkler):
    (found,) = changed(quick_report(sprinkler), kinds=[changed(KIND, number=0)]).findings
    assert found.sentence.startswith("About 400 rows (10.0 %) do not fit the other rows")
    assert found.advice.command.endswith("--ask 20")
    (alone,) = quick_report(sprinkler).findings
    assert "no common pattern was found" in alone.sentence
    assert alone.advice == found.advice


def test_distrusted_rows_that_no_group_holds_are_told_with_their_place(sprinkler):
    origin = Origin((("feed", "x", "x"),), 1_200, 900, 0.1, 1e-9, 50.0)
    (found,) = changed(quick_report(sprinkler), origins=[origin]).findings
    assert "75.0 % of the 1,200 rows with feed = x are distrusted." in found.sentence
    assert found.where == {"feed": "x"}


def test_copies_are_told_with_the_row_that_comes_most_often(sprinkler):
    report = changed(quick_report(sprinkler), kinds=[KIND], repeats=[RepeatedRow(3, {}, 900, 2.0)])
    (found,) = [each for each in report.findings if each.kind == "repeated rows"]
    assert "about 898 copies in all; row 3 appears 900 times (2 expected)" in found.sentence
    assert (found.advice.python, found.rows) == ("fit.repeats_", (3,))


def test_states_of_which_hardly_any_row_is_trusted_are_told(sprinkler):
    gone = [Vanishing({"rain": f"s{k}"}, 100.0 + k, 0.0) for k in range(9)]
    report = changed(quick_report(sprinkler), vanishing=gone)
    (found,) = [each for each in report.findings if each.cause == "hardly any is trusted"]
    assert (found.severity, found.columns) == ("warning", ("rain",))
    assert f"{gone[0]}; {gone[1]}; {gone[2]}; {gone[3]}; and 5 more." in found.sentence
    named = changed(report, kinds=[KIND])
    assert [f.severity for f in named.findings if f.cause == found.cause] == ["note"]


def test_a_column_that_is_often_missing_is_named(sprinkler):
    clean, node = quick_report(sprinkler, eps=0.0), sprinkler.nodes[0]
    (found,) = changed(clean, n_missing={node: 1_000}).findings
    assert found.sentence == f"{node} is missing from 25.0 % of the rows."
    assert found.advice.command == "robustbn fit NETWORK TABLE --missing-is-evidence"
    assert found.advice.python == "robustbn.fit(network, table, missing_is_evidence=True)"
    assert not changed(clean, n_missing={node: 10}).findings
    done = changed(clean, n_missing={node: 1_000}, settings={"missing_is_evidence": True})
    assert not done.findings


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
        for finding in page.findings:
            assert finding.sentence in notebook
            assert (finding.advice.python in notebook) == (finding.severity != "note")
            assert (str(finding) in str(each)) == (finding.severity != "note")


def test_a_command_is_built_on_without_what_it_writes():
    typed = "robustbn fit 'my net.bif' rows.csv --sep ';' -o x.bif --report=page.html --seed 3"
    assert (
        base_command(f"{typed} --force") == "robustbn fit 'my net.bif' rows.csv --sep ';' --seed 3"
    )
    assert base_command("robustbn fit 'open") == "robustbn fit NETWORK TABLE"
    assert base_command("robustbn.RobustEstimator(network)") == "robustbn fit NETWORK TABLE"


def test_every_line_of_python_runs(fit, misfitting, alarm):
    rows, _ = corrupt(sample(alarm, 20_000, 1), alarm, "mixture", 0.1, random_state=2)
    for each, table in ((fit, rows), (misfitting, sample(alarm, 12_000, 1))):
        names = {"fit": each, "robustbn": robustbn, "table": table, "network": alarm}
        assert each.findings_
        for finding in each.findings_:
            eval(finding.advice.python, names)  # noqa: S307


def test_every_command_runs(alarm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alarm.with_cpts(None).write("net.json")
    rows, _ = corrupt(sample(alarm, 8_000, 1), alarm, "mixture", 0.1, random_state=2)
    labels = {n: np.array(alarm.states[n], object)[rows[:, k]] for k, n in enumerate(alarm.nodes)}
    pd.DataFrame(labels).to_parquet("rows.parquet")
    typed = ["fit", "net.json", "rows.parquet", "--report", "page.html", "--json"]
    facts = json.loads(CliRunner().invoke(main, typed).stdout)
    commands = [each["advice"]["command"] for each in facts["findings"]]
    assert commands
    for command in commands:
        words = command.split()
        assert words[:4] == ["robustbn", "fit", "net.json", "rows.parquet"]
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, done.output


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
        assert line in render_page(report).replace("\u00a0", " ")
    assert say_moved_cells(quick_report(example_network("alarm"), eps=0.0)) == []


def test_evidence_is_told_in_plain_words():
    assert say_evidence(0.0) == ""
    said = say_evidence(np.log(150))
    assert said == "a typical row of this kind is about 150 times more likely to be bad than good"
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
    for heading in ("Findings", "Cells that moved most"):
        assert f"\n### {heading}\n" in text
    for finding in fit.findings_:
        assert finding.sentence in text.replace("\\", "")
    cell = strongest_cell(report, report.moved_tables[0].node)
    assert f"| {percent(fit.plain_network_.probabilities[cell])} |" in text
    assert "`robustbn fit net.bif rows.csv --good-group 1`" in text
    assert (
        "LVEDVOLUME and PCWP depend on each other, but the network has no edge"
        in misfitting.to_markdown()
    )
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
    said = "Rain and grass come from other rows. This explains 80.0 % of the difference"
    assert f"{said} from good rows." in hidden


def test_missing_values_have_their_place(sprinkler):
    clean = quick_report(sprinkler, eps=0.0)
    node = sprinkler.nodes[1]
    shares = np.linspace(0, 0.25, sprinkler.n_nodes)
    inferred = Inferred(np.ones(sprinkler.n_cells), shares, 12, True, 0.01)
    page = render_page(
        changed(clean, n_missing={node: 800}, missing="800 values are missing.", inferred=inferred)
    )
    section = page.split('<section id="columns"')[1].split("</section>")[0]
    assert "800 values are missing." in section
    assert "inferred in 12 steps" in section
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    profile = {each["name"]: each["profile"] for each in data["nodes"]}[node]
    assert profile["missing"] == 800
