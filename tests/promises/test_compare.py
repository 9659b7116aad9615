"""Two fits side by side: tables that moved, kinds that came and went, the page."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import robustbn
from robustbn import BayesianNetwork, compare
from robustbn._show.measures import expect_moves
from robustbn._show.words import percent
from robustbn.exceptions import NetworkError
from tests.browser import open_browser
from tests.commands import as_json, call
from tests.reports import HOSTILE

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fit(network, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return robustbn.fit(network, rows, random_state=0)


@pytest.fixture(scope="module")
def tree():
    return robustbn.random_network("tree", 30, random_state=0)


@pytest.fixture(scope="module")
def fits(tree):
    """Clean rows, two days with the same kind of bad rows, and one with another kind."""
    good = [robustbn.sample(tree, 12_000, random_state=k) for k in range(4)]
    found = {"clean": fit(tree, good[0]), "clean too": fit(tree, good[1])}
    rng = np.random.default_rng(0)
    for name, k, template in (("monday", 2, 0), ("tuesday", 3, 0), ("other", 3, 1)):
        rows = good[k].copy()
        bad = rng.permutation(len(rows))[:1200]
        stuck = np.random.default_rng(template).permutation(30)[:15]
        for node in stuck:
            rows[bad, node] = template % len(tree.states[tree.nodes[node]])
        found[name] = fit(tree, rows)
    return found


@pytest.fixture(scope="module")
def saved(fits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    for name, each in fits.items():
        each.save(folder / f"{name.replace(' ', '_')}.json")
    return folder


def test_a_fit_does_not_differ_from_itself(fits):
    found = compare(fits["monday"], fits["monday"])
    moved = found.moved()
    assert (moved["moved"] == 0).all()
    assert (moved["z"] == 0).all()
    assert [kind.what for kind in found.kinds] == ["stayed"] * len(fits["monday"].kinds_)
    assert all(kind.similarity == pytest.approx(1) for kind in found.kinds)
    assert found.verdict.startswith("No table moved by more than its error.")


def test_the_error_of_a_table_is_what_sampling_makes_of_it_in_95_of_100_cases():
    rng = np.random.default_rng(0)
    for spread in (np.array([0.3]), np.array([0.1, 0.01]), 0.1 * rng.random(12)):
        moves = (np.abs(rng.standard_normal((200_000, len(spread)))) * spread).sum(axis=1)
        error = expect_moves(spread, np.zeros(1, np.int64))
        assert (moves > error).mean() == pytest.approx(0.05, abs=0.003)


def test_a_fit_and_a_comparison_state_the_same_95_percent_error():
    """1.96 standard errors of a table with one configuration; of the difference in `compare`."""
    network = BayesianNetwork({"a": []}, {"a": ["n", "y"]})
    rows = np.repeat([[0], [1]], [300, 700], axis=0)
    one = fit(network, rows)
    standard_error = np.sqrt(0.3 * 0.7 / 1000)
    assert float(one.moved()["error"][0]) == pytest.approx(1.96 * standard_error, rel=2e-3)
    error = compare(one, one).moved()["error"][0]
    assert float(error) == pytest.approx(1.96 * np.sqrt(2) * standard_error, rel=2e-3)


def test_no_table_has_an_error_of_more_than_100_percent():
    network = robustbn.random_network("tree", 3, cards=40, random_state=0)
    few = fit(network, robustbn.sample(network, 20, random_state=0))
    assert max(few.moved()["error"]) <= 1


def test_rows_of_one_network_move_no_table_but_by_chance(fits, tree):
    """About 95 of 100 tables stay within their error, and z is standard normal."""
    found = compare(fits["clean"], fits["clean too"])
    assert found.moved()["is_significant"].sum() <= 5
    z = np.array([cell.z for node in tree.nodes for cell in found.cells(node, 1000)])
    assert 0.8 < z.std() < 1.2
    assert np.abs(z).max() < 5


def test_a_table_that_changed_is_named_with_its_cell(fits, tree):
    node = tree.nodes[0]
    cpts = {n: np.array(t) for n, t in tree.cpts.items()}
    table = cpts[node].reshape(-1)
    table[:] = (
        table[::-1]
        if abs(table[0] - table[-1]) > 0.2
        else [0.9, *[0.1 / (len(table) - 1)] * (len(table) - 1)]
    )
    changed = robustbn.sample(tree.with_cpts(cpts), 12_000, random_state=9)
    found = compare(fits["clean"], fit(tree, changed), names=("before", "after"))
    top = found.tables[0]
    assert top.node == node
    assert top.is_significant
    assert abs(top.cell.z) > 10
    state = tree.states[node].index(top.cell.state)
    assert top.cell.before == pytest.approx(tree.cpts[node][state], abs=0.03)
    assert top.cell.after == pytest.approx(cpts[node][state], abs=0.03)
    assert f"{node} most" in str(found)


def test_kinds_stay_come_and_go(fits):
    same = compare(fits["monday"], fits["tuesday"])
    assert [kind.what for kind in same.kinds] == ["stayed"]
    assert same.kinds[0].similarity > 0.8
    assert [k.what for k in compare(fits["monday"], fits["clean"]).kinds] == ["went"]
    assert [k.what for k in compare(fits["clean"], fits["monday"]).kinds] == ["came"]
    other = compare(fits["monday"], fits["other"])
    assert sorted(kind.what for kind in other.kinds) == ["came", "went"]
    assert all(kind.similarity < 0.5 for kind in other.kinds)


def test_a_fit_from_a_file_compares_like_the_fit_itself(fits, saved):
    here = compare(fits["monday"], fits["tuesday"]).facts()
    there = compare(saved / "monday.json", str(saved / "tuesday.json")).facts()
    for side in ("first", "second"):
        here[side].pop("verdict"), there[side].pop("verdict")
    assert json.dumps(here, default=str) == json.dumps(there, default=str)


def test_nodes_parents_and_states_may_be_in_any_order():
    parents = {"a": [], "b": [], "c": ["a", "b"]}
    states = {"a": ["x", "y"], "b": ["p", "q", "r"], "c": ["no", "yes"]}
    rng = np.random.default_rng(0)
    network = BayesianNetwork(parents, states)
    rows = [{n: str(rng.choice(states[n])) for n in parents} for _ in range(3000)]
    for row in rows:
        if row["a"] == "y" and row["b"] == "r":
            row["c"] = "yes"
    other = BayesianNetwork(
        {"b": [], "a": [], "c": ["b", "a"]},
        {"b": ["r", "p", "q"], "a": ["y", "x"], "c": ["yes", "no"]},
    )
    found = compare(fit(network, rows), fit(other, rows))
    assert [table.moved for table in found.tables] == pytest.approx([0, 0, 0], abs=1e-12)
    cells = {(c.state, *sorted(c.parents.values())): c for c in found.cells("c")}
    assert cells["yes", "r", "y"].after == 1


def test_different_networks_are_refused_with_a_sentence(fits, saved, tree, tmp_path):
    first, last = tree.nodes[0], tree.nodes[-1]
    parents = {n: list(p) for n, p in tree.parents.items() if n != last}
    states = {n: list(s) for n, s in tree.states.items() if n != last}
    leaf = next(n for n in reversed(tree.nodes[:-1]) if not any(n in p for p in parents.values()))
    states[leaf] = [f"new {s}" for s in states[leaf]]
    rows = robustbn.sample(tree, 4000, random_state=5)
    columns = {n: [states[n][c] for c in rows[:, k]] for k, n in enumerate(tree.nodes) if n != last}
    smaller = fit(BayesianNetwork(parents, states), columns)
    with pytest.raises(NetworkError) as error:
        compare(fits["clean"], smaller, names=("old", "new"))
    for part in (f"the node {last} is in old only", f"the states of {leaf} are", "common=True"):
        assert part in str(error.value)
    found = compare(fits["clean"], smaller, common=True)
    assert {table.node for table in found.tables} == set(tree.nodes) - {last, leaf}
    assert first in {table.node for table in found.tables}
    smaller.save(tmp_path / "smaller.json")
    ran = call("compare", saved / "clean.json", tmp_path / "smaller.json", code=3)
    assert "use --common" in " ".join(ran.stderr.split())
    facts = as_json("compare", saved / "clean.json", tmp_path / "smaller.json", "--common")
    assert facts["tables_compared"] == tree.n_nodes - 2
    nothing = fit(BayesianNetwork({"zz": []}, {"zz": ["0", "1"]}), {"zz": ["0", "1"] * 200})
    with pytest.raises(NetworkError, match="no node in common"):
        compare(fits["clean"], nothing, common=True)


def test_the_command_says_what_differs(fits, saved, tmp_path):
    page = tmp_path / "changes.html"
    words = ("compare", saved / "monday.json", saved / "clean.json")
    ran = call(*words, "--report", page)
    said = " ".join(ran.stdout.split())
    assert (
        "10.0 % of the rows' weight was distrusted before, 0 % now is. Kinds of bad rows: 1 "
        "went." in said
    )
    share = percent(fits["monday"].kinds_[0].share)
    assert f"kind went: {share} -> none of the rows" in said
    assert "12,000 rows; 10.0 % distrusted; 1 kind; misfit none" in said
    assert page.read_text().endswith("</html>")
    assert "already exists" in call(*words, "--report", page, code=2).stderr
    facts = as_json(*words)
    assert facts["verdict"] == compare(fits["monday"], fits["clean"]).verdict
    assert facts["kinds"][0]["what"] == "went"
    assert len(facts["tables"]) == 30
    assert {"before", "after", "z", "state", "parents"} <= set(facts["tables"][0])


def test_networks_are_compared_as_before(saved, tree, tmp_path):
    robustbn.write_network(tree, tmp_path / "tree.json")
    facts = as_json("compare", tmp_path / "tree.json", saved / "clean.json")
    assert facts["total_variation"] < 0.1
    words = ("compare", tmp_path / "tree.json", saved / "clean.json", "--common")
    assert "require two models" in call(*words, code=2).stderr


def test_a_notebook_shows_it(fits):
    html = compare(fits["monday"], fits["tuesday"])._repr_html_()
    assert "stayed" in html
    assert "<script" not in html


@pytest.fixture(scope="module")
def hostile():
    """A comparison whose every label is an attack, or at least a nuisance."""
    names = [f"{label} {i}" for i, label in enumerate(HOSTILE[:4])]
    states = {n: [*HOSTILE[5:7], HOSTILE[0]] for n in names}
    network = BayesianNetwork({n: names[:1] if k else [] for k, n in enumerate(names)}, states)
    rng = np.random.default_rng(0)
    found = []
    for shift in (0, 1):
        codes = rng.integers(0, 2 + shift, (2000, 4)).astype(np.uint8)
        found.append(fit(network, codes))
    return compare(*found, names=(HOSTILE[0], HOSTILE[1]))


def test_labels_cannot_turn_the_text_around(hostile):
    page = hostile.report()
    assert "\ufffd" in page
    assert "\u202e" not in page + hostile._repr_html_()


def test_the_page_opens_in_a_browser_and_says_what_was_found(fits, hostile, tmp_path):
    found = compare(fits["monday"], fits["clean"], names=("monday.json", "tuesday.json"))
    with open_browser(tmp_path) as browser:
        for scheme in ("light", "dark"):
            browser.set_colours(scheme)
            browser.open(found.report(), tmp_path)
            assert browser.text("#verdict") == found.verdict
            assert browser.unreadable() == []
        assert browser.texts("#moved tbody td:first-child")[:3] == [
            table.node for table in found.tables[:3]
        ]
        assert browser.text("#kinds article h3").startswith("Went")
        assert browser.texts("#both .card h3") == ["monday.json", "tuesday.json"]
        browser.click("#theme")
        assert browser.run("return document.documentElement.dataset.theme") == "light"
        browser.resize(360, 700)
        assert browser.run("return document.documentElement.scrollWidth") <= 360
        assert browser.complaints() == []
        assert browser.requests() == []
        browser.open(hostile.report(), tmp_path)
        assert "<script>alert(1)</script>" in browser.text("#verdict, .eyebrow")
        assert browser.run("return document.querySelectorAll('img').length") == 0
        assert browser.complaints() == []
        assert browser.requests() == []


def test_counting_is_not_a_robust_fit(tree, tmp_path):
    counted = robustbn.MaximumLikelihoodEstimator(tree).fit(robustbn.sample(tree, 500, 0))
    counted.save(tmp_path / "counted.json")
    with pytest.raises(robustbn.exceptions.ModelFileError, match="MaximumLikelihoodEstimator"):
        compare(tmp_path / "counted.json", tmp_path / "counted.json")
