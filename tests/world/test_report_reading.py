"""Promises of the page to whoever acts on it, kept by a real browser."""

from __future__ import annotations

import base64
import re
import time

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn import BayesianNetwork, RobustEstimator, random_network, sample
from robustbn._core.groups import Cause, Example, Group, MovedCell, UnusualCell
from robustbn._core.origins import Origin
from robustbn._core.result import Vanishing
from robustbn._show.page.figures import MAX_BARS, Plots
from robustbn._show.page.payload import bits_of, pack_rows
from robustbn._show.page.render import render_markdown, render_page
from robustbn.exceptions import InsufficientMemoryError
from robustbn.simulate import corrupt
from tests.reports import changed, fit_corrupted, quick_report

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
N_STATES = 105
MOST_BYTES = 1_500_000
PAGES = re.compile(rb"/Type\s*/Page\b(?!s)")


@pytest.fixture(scope="module")
def fit(alarm):
    return fit_corrupted(alarm, 30_000)[0]


@pytest.fixture(scope="module")
def report(fit):
    return fit.result_.shown()


@pytest.fixture(scope="module")
def misfit_report(alarm):
    parents = {node: list(alarm.parents[node]) for node in alarm.nodes}
    parents["CVP"], parents["PCWP"], parents["HR"] = [], [], []
    drawn = BayesianNetwork(parents, alarm.states)
    fit = RobustEstimator(drawn, random_state=0).fit(sample(alarm, 12_000, 1))
    return fit.result_.shown()


@pytest.fixture(scope="module")
def wide_report():
    """A node of 105 states alone, one under a parent, one under seven configurations."""
    rng = np.random.default_rng(1)
    states = tuple(f"code {i:03d}" for i in range(N_STATES))
    network = BayesianNetwork(
        {"region": [], "alone": [], "under": ["region"], "many": ["month"], "month": []},
        {
            "region": ("N", "S"),
            "month": tuple("JFMASON"),
            "alone": states,
            "under": states,
            "many": states,
        },
    )
    tables = {
        n: rng.dirichlet(np.full(len(network.states[n]), 0.4), network._shape_of(n)[:-1])
        for n in network.nodes
    }
    network = network.with_cpts(tables)
    rows, is_bad = corrupt(sample(network, 40_000, 1), network, "product", 0.1, random_state=2)
    rows[is_bad, 1] = 62
    good, every = (
        robustbn.MaximumLikelihoodEstimator(network).fit(r) for r in (rows[~is_bad], rows)
    )
    return changed(
        quick_report(network, 200, n_shown=5),
        network=good.network_,
        plain_network=every.network_,
        counts=good.counts_,
        plain_counts=every.counts_,
        n_rows=len(rows),
        n_distrusted=int(is_bad.sum()),
    )


def choose(browser, node):
    browser.run("document.querySelector(`.rank[data-name='${arguments[0]}']`).click()", node)


def cells_in(browser, selector):
    return browser.run(
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".map(tr => [...tr.cells].map(td => td.textContent))",
        selector,
    )


def pasted(browser):
    """What was copied."""
    browser.run("clip.value = ''; clip.classList.remove('hide'); clip.focus()")
    browser.find("#clip").send_keys("\ue009v")  # Ctrl + V
    return browser.run("return clip.value")


# --- what to do -----------------------------------------------------------------------------------


def test_the_page_begins_with_the_findings_and_what_to_do(clean, report, tmp_path):
    clean.open(render_page(report), tmp_path)
    said = [text.replace("\u00a0", " ") for text in clean.texts(".finding .what .label")]
    assert said == [finding.sentence for finding in report.findings]
    serious = [f.advice for f in report.findings if f.severity != "note"]
    ways = [way for advice in serious for way in (advice.command, advice.python)]
    assert clean.texts(".finding code") == ways
    ids = clean.run("return [...document.querySelectorAll('main > section')].map(e => e.id)")
    wanted = ["", "columns", "network", "rows", "rounds", "conditions", "repeat"]
    assert [name for name in ids if name in wanted] == wanted
    clean.click(".finding .copy-way")
    assert pasted(clean) == ways[0]
    assert "igenvalue" not in clean.run("return document.body.innerText")


def test_a_finding_leads_to_the_table_of_its_column_and_to_its_pair(clean, misfit_report, tmp_path):
    clean.open(render_page(misfit_report), tmp_path)
    edge = misfit_report.edges[1]
    names = [(e.parent, e.child) for e in misfit_report.edges]
    shown = [f.columns for f in misfit_report.findings if f.kind == "missing edge"]
    assert shown == names[: len(shown)]
    clean.click(".show-pair[data-pair='1']")
    assert edge.parent in clean.text("#pair-scroll") or edge.parent in clean.text("#pair-say")
    clean.click(f".show-node[data-name='{edge.child}']")
    assert clean.text("#table-name") == edge.child


def test_ticks_beside_rows_and_groups_are_exported_for_known(clean, report, tmp_path):
    clean.open(render_page(report), tmp_path)
    assert not clean.run("return document.getElementById('marks').checkVisibility()")
    numbers = [{str(r.row), *(str(number) for number, _ in r.alike)} for r in report.rows[:2]]
    ticks = "return document.querySelectorAll('#row-scroll .tick')[arguments[0]]"
    clean.run(f"{ticks}.click()", 0)  # the first row is good
    clean.run(f"{ticks}.click()", 3)  # the second is bad
    assert clean.text("#marks-count") == f"{len(numbers[0] | numbers[1])} rows marked"
    clean.click("#marks-export")
    file, end = clean.downloads / "known.csv", time.perf_counter() + 10
    while not file.exists() and time.perf_counter() < end:
        time.sleep(0.02)
    told = dict(line.split(",") for line in file.read_text(encoding="utf-8-sig").splitlines())
    expected = dict.fromkeys(numbers[0], "good") | dict.fromkeys(numbers[1], "bad")
    assert told == {"row": "known", **expected}
    number = report.kinds[0].number
    clean.run("document.querySelector(arguments[0]).click()",
              f".ticks[data-group='{number}'] .tick:last-child")  # fmt: skip
    own = sum(1 + len(row.alike) for row in report.rows if row.kind == number)
    assert clean.text("#marks-count").startswith(f"{own:,} row")


def test_every_column_has_a_profile(clean, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"dose": rng.normal(50, 9, 4_000).round(1), "ill": rng.choice(["n", "y"], 4_000)}
    )
    table["dose"] = table["dose"].astype(object)
    table.loc[:39, "dose"] = "none"
    table.loc[40:99, "ill"] = None
    table.loc[100:102, "ill"] = "maybe"
    table.to_csv(tmp_path / "rows.csv", index=False)
    fit = robustbn.fit([("dose", "ill")], tmp_path / "rows.csv", random_state=0)
    clean.open(fit.report(), tmp_path)
    head = [text.split(" ")[0] for text in clean.texts("#column-scroll th")]
    lines = {row[0]: dict(zip(head, row, strict=True)) for row in cells_in(clean, "#column-scroll")}
    assert set(lines) == {"dose", "ill"}
    assert lines["dose"]["Unreadable"] == "40"
    assert lines["ill"]["Missing"].startswith("60 (1.5")
    assert lines["ill"]["Rare"] == "1"
    low, *_, high = map(float, lines["dose"]["Range"].split(" · "))
    assert low < 30 < 70 < high
    assert len(clean.texts("#column-scroll .stack-line")) == 4


def test_a_column_that_differs_is_drawn_by_place_and_rows_have_lines_and_raw_values(
    clean, tmp_path
):
    rng = np.random.default_rng(0)
    height = rng.normal(170, 8, 4_000)
    table = pd.DataFrame(
        {"height": height, "weight": 0.9 * (height - 100) + rng.normal(0, 5, 4_000)}
    )
    table["site"] = rng.choice(["north", "south", "east", "west", "hill"], 4_000)
    table.loc[table["site"] == "north", "weight"] *= 2.2046
    table.loc[10:19, "height"] = 999
    table.to_csv(tmp_path / "rows.csv", index=False)
    fit = robustbn.fit([("height", "weight")], tmp_path / "rows.csv", random_state=0)
    clean.open(fit.report(), tmp_path)
    labels = clean.texts(".finding.error .by-place tbody th")
    assert labels[:2] == ["there", "elsewhere"]
    assert {f"site {name}" for name in table["site"]} <= set(labels)
    assert len(clean.texts(".finding.error .by-place .stack")) == 2 * len(labels)
    assert "Values as they were read, there: median " in clean.text(".finding.error .by-place")
    (far,) = [k for k, f in enumerate(fit.findings_, 1) if f.cause == "far values" and 10 in f.rows]
    assert clean.texts(f"#finding-{far} .numbers li")[0] == "Row 10, line 12: height = 999"
    clean.resize(390, 844)
    clean.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert clean.run("return document.documentElement.scrollWidth") <= 390
    assert clean.unreadable() == []
    hidden = fit.report(rows=False)
    assert "site hill" not in hidden
    assert "height = 999" not in hidden


def test_the_page_is_copied_as_markdown(clean, report, tmp_path):
    clean.open(render_page(report), tmp_path)
    clean.click("#markdown-copy")
    clean.wait("document.getElementById('markdown-copied').textContent !== ''")
    assert pasted(clean) == render_markdown(report)


def test_the_rows_of_a_kind_are_one_click_away(clean, report, tmp_path):
    clean.open(render_page(report), tmp_path)
    number = report.kinds[-1].number
    clean.click(f".show-kind[data-kind='{number}']")
    head = clean.texts("#row-scroll th")
    kind = next(k for k, name in enumerate(head) if name.startswith("Group"))
    shown = cells_in(clean, "#row-scroll")
    assert {row[kind] for row in shown} == {str(number)}
    n = sum(row.n_alike for row in report.rows if row.kind == number)
    assert clean.text("#row-count").startswith(f"{n:,} of ")


def test_kinds_have_the_numbers_of_their_groups(clean, sprinkler, tmp_path):
    """Groups of good rows have numbers, too: those of bad rows need not follow each other."""
    report = quick_report(sprinkler)
    rows = [changed(row, kind=5 if k < 7 else 0) for k, row in enumerate(report.rows)]
    kinds = [Group(0.1, 400.0, (), number=5)]
    clean.open(render_page(changed(report, kinds=kinds, rows=rows)), tmp_path)
    clean.click(".show-kind[data-kind='5']")
    assert len(cells_in(clean, "#row-scroll")) == 7
    assert clean.text("#row-count").startswith("7 of ")


def test_a_kind_shows_its_cause_its_evidence_its_moves_and_its_rows(clean, sprinkler, tmp_path):
    a, b = sprinkler.nodes[:2]
    good, bad, *_ = sprinkler.states[a]
    kind = Group(
        0.1, 400.0, (UnusualCell(a, {}, good, 0.9, 0.1, 0.9),),
        cause=Cause("stuck columns", (a, b), 0.75, f"{a} and {b} never change."),
        nats=float(np.log(2_000)), moved=(MovedCell(a, {}, good, 0.5, 0.25),),
        examples=(Example(3, {a: bad, b: "x"}, 8, {a: good, b: "x"}, (a,)),),
    )  # fmt: skip
    unnamed = Group(0.05, 200.0, (), number=2)
    clean.open(render_page(changed(quick_report(sprinkler), kinds=[kind, unnamed])), tmp_path)
    said = clean.text("#finding-1")
    assert "(group 1): stuck columns" in said
    assert (
        f"{a} and {b} never change. This explains 75.0 % of the difference from good rows." in said
    )
    assert "about 2,000 times more likely to be bad than good" in said
    assert f"{a} = {good}: 50.0 % with them, 25.0 % without" in said
    clean.click("#finding-1 summary")
    cells = "#finding-1 .example tbody th, #finding-1 .example tbody td"
    assert clean.texts(cells) == [a, str(bad), str(good)]
    assert clean.texts("#finding-1 mark") == [str(bad)]
    assert clean.unreadable() == []


def test_rows_that_are_the_same_stand_on_one_line(clean, alarm, tmp_path):
    rows = sample(alarm, 6_000, 1)
    rows[100:400, :20] = np.array([len(alarm.states[n]) - 1 for n in alarm.nodes])[:20]
    rows[100:400] = rows[100]
    labels = {n: np.array(alarm.states[n], object)[rows[:, k]] for k, n in enumerate(alarm.nodes)}
    frame = pd.DataFrame({**labels, "uid": [f"u{i}" for i in range(len(rows))]})
    clean.open(robustbn.fit(alarm, frame, random_state=0, id="uid").report(), tmp_path)
    line = cells_in(clean, "#row-scroll")[0]
    assert line[:3] == ["100", "300", "u100"]
    clean.click("#row-scroll .open")
    assert clean.text(".others").startswith("The same: rows 101 (u101), 102 (u102)")
    assert clean.text(".others").endswith("and 250 more.")
    states = dict(zip(clean.texts(".states dt"), clean.texts(".states dd"), strict=True))
    assert states == {n: str(alarm.states[n][rows[100, k]]) for k, n in enumerate(alarm.nodes)}
    clean.find("#row-filter").send_keys("uid = u120")
    assert [row[0] for row in cells_in(clean, "#row-scroll")] == ["100"]


def test_states_survive_being_packed():
    rng = np.random.default_rng(0)
    cards = [2, 3, 1, 300, 65_536]
    for is_holed in (False, True):
        codes = np.stack([rng.integers(0, c + is_holed, 50) for c in cards], axis=1)
        bits = bits_of(cards, is_holed)
        for line, packed in zip(codes, pack_rows(codes, bits), strict=True):
            number = "".join(f"{byte:08b}" for byte in base64.b64decode(packed))
            ends = np.cumsum(bits)
            found = [int(number[e - b : e] or "0", 2) for e, b in zip(ends, bits, strict=True)]
            assert found == line.tolist()


# --- what the network misses ----------------------------------------------------------------------


def test_missing_edges_are_drawn_in_their_own_colour_and_show_their_pair(
    clean, misfit_report, tmp_path
):
    clean.open(render_page(misfit_report), tmp_path)
    edges = misfit_report.edges
    assert len(clean.texts("#canvas .missing")) == len(edges) > 1
    colour = "return getComputedStyle(document.querySelector(arguments[0])).stroke"
    assert clean.run(colour, ".missing .line") != clean.run(colour, ".edges path")
    assert clean.texts(".pair-button") == [str(edge) for edge in edges]
    clean.run("""const hit = document.querySelector(".missing[data-pair='1'] .hit");
        hit.dispatchEvent(new MouseEvent('click', {bubbles: true}))""")
    pressed = "return [...document.querySelectorAll('.pair-button')].map(b => b.ariaPressed)"
    assert clean.run(pressed)[:2] == ["false", "true"]
    edge = edges[1]
    shown = cells_in(clean, "#pair-scroll")
    states, child = (misfit_report.network.states[n] for n in (edge.parent, edge.child))
    assert [row[0] for row in shown] == [str(states[u]) for u in edge.parent_codes]
    assert len(shown[0]) == 2 + len(edge.child_codes) == 2 + len(child)
    for r, row in enumerate(shown):
        for v, cell in enumerate(row[2:]):
            seen, expected = (float(x) for x in re.findall(r"[\d.]+", cell))
            assert seen == pytest.approx(100 * edge.seen[r, v], abs=0.051)
            assert expected == pytest.approx(100 * edge.expected[r, v], abs=0.051)
    clean.click(".pair-button[data-pair='0']")
    assert clean.run(pressed)[:2] == ["true", "false"]
    assert clean.unreadable() == []


def test_groups_that_vanish_and_where_rows_come_from_have_their_place(clean, sprinkler, tmp_path):
    groups = tuple(Vanishing({"site": f"s{k}"}, 100.0 + k, 0.0) for k in range(9))
    origin = Origin((("feed", "x", "x"),), 1_200, 900, 0.1, 1e-9, 50.0)
    page = render_page(changed(quick_report(sprinkler), vanishing=groups, origins=[origin]))
    clean.open(page, tmp_path)
    said = " ".join(clean.texts(".finding .what"))
    assert "; ".join(str(group) for group in groups[:4]) + "; and 5 more." in said
    assert clean.texts(".where tbody td")[:2] == ["feed", "x"]


# --- wide tables ----------------------------------------------------------------------------------


def unmoved(report, node):
    layout, i = report.network.layout, report.network.nodes.index(node)
    cells = slice(layout.cell_start[i], layout.cell_start[i + 1])
    q, plain = (
        np.rint(n.probabilities[cells] * 1e5).reshape(-1, layout.cards[i])
        for n in (report.network, report.plain_network)
    )
    return np.abs(q - plain) <= 100


def test_a_wide_table_is_turned_on_its_side_sorted_and_folded(clean, wide_report, tmp_path):
    clean.open(render_page(wide_report), tmp_path)
    choose(clean, "alone")
    shown = cells_in(clean, "#table-scroll")
    assert shown[0][0] == "code 062"
    adds = [float(row[-1].removesuffix(" %")) for row in shown]
    assert adds == sorted(adds, reverse=True)
    n_quiet = int(unmoved(wide_report, "alone").all(axis=0).sum())
    n_loud = N_STATES - n_quiet
    assert len(shown) == min(25, max(n_loud, 10))
    folded = N_STATES - max(n_loud, 10)
    said = f"and {folded} more states, none moved by more than 0.1 %"
    assert clean.text("#table-pager .fold") == said
    clean.click("#table-pager .fold")
    assert "of 105 states" in clean.text("#table-pager")
    choose(clean, "under")
    assert "region N" in "".join(clean.texts("#table-scroll th"))
    assert len(cells_in(clean, "#table-scroll")[0]) == 1 + 2 + 1
    choose(clean, "many")
    assert clean.texts("#table-scroll th")[0].startswith("many")
    assert len(cells_in(clean, "#table-scroll")) == 25
    assert clean.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "node"), [(1360, "many"), (390, "many"), (390, "under")])
def test_heads_stay_and_the_moved_cell_is_in_view(clean, wide_report, tmp_path, width, node):
    clean.open(render_page(wide_report), tmp_path, width, 844)
    choose(clean, node)
    box = "const r = document.querySelector(arguments[0]).getBoundingClientRect();"
    clean.run("document.querySelector('#table-scroll').scrollIntoView({block: 'center'})")
    edges = "return [r.left, r.right, r.top, r.bottom]"
    left, right, top, bottom = clean.run(f"{box} {edges}", "#table-scroll")
    cell = clean.run(f"{box} {edges}", "#table-scroll td.most")
    assert left - 1 <= cell[0] < cell[1] <= right + 1
    assert top - 1 <= cell[2] < cell[3] <= bottom + 1
    clean.run("document.querySelector('#table-scroll').scrollTop = 300")
    head = clean.run(f"{box} {edges}", "#table-scroll thead tr:last-child th")
    assert top - 1 <= head[2] < head[3] <= bottom
    assert clean.run("return document.documentElement.scrollWidth") <= width


def test_a_wide_figure_has_one_panel_and_few_lines(wide_report, report, tmp_path):
    figure = Plots(wide_report).tables("many")
    assert len(figure.axes) == 1
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == MAX_BARS
    assert names[0].startswith("code ")
    assert "of 735 cells, the others moved by at most" in figure.get_supxlabel()
    first = Plots(wide_report).tables("alone").axes[0].get_yticklabels()[0].get_text()
    assert first == "code 062"
    assert len(Plots(report).tables("VENTLUNG").axes) == 4
    figure.savefig(tmp_path / "wide.png")


def test_what_no_row_shows_is_not_known(clean, tmp_path):
    network = BayesianNetwork(
        {"a": [], "b": ["a"]}, {"a": ("often", "never"), "b": ("no", "yes")},
        {"a": [1.0, 0.0], "b": [[0.5, 0.5], [0.2, 0.8]]},
    )  # fmt: skip
    report = quick_report(network, eps=0.0)
    clean.open(render_page(report), tmp_path)
    choose(clean, "b")
    shown = {row[0]: row[2:4] for row in cells_in(clean, "#table-scroll")}
    assert all("not known" in cell for cell in shown["never"])
    assert not any("not known" in cell for cell in shown["often"])
    assert "0.0–100.0" not in clean.text("#table-scroll")
    texts = [text.get_text() for axes in Plots(report).tables("b").axes for text in axes.texts]
    assert texts == ["not known", "not known"]


def test_a_node_of_65536_states_has_a_small_page(clean, tmp_path):
    k = 2**16
    network = BayesianNetwork(
        {"who": [], "ill": ["who"]}, {"who": [f"patient {i}" for i in range(k)], "ill": ("n", "y")}
    )
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, k, 5_000), rng.integers(0, 2, 5_000)], 1).astype(np.uint16)
    rows[:400] = 5, 1
    good, every = (robustbn.MaximumLikelihoodEstimator(network).fit(r) for r in (rows[400:], rows))
    states = ("patient 5", "y")
    small = quick_report(random_network("tree", 2, random_state=0), 200)
    row = changed(small.rows[0], row=0, states=states, n_alike=400)
    report = changed(
        small, network=good.network_, plain_network=every.network_, counts=good.counts_,
        plain_counts=every.counts_, rows=[row], n_rows=5_000, n_distrusted=400,
    )  # fmt: skip
    page = render_page(report)
    assert len(page.encode()) < 400_000
    clean.open(page, tmp_path)
    choose(clean, "who")
    assert cells_in(clean, "#table-scroll")[0][0] == "patient 5"
    assert f"{k - 200:,} more moved by no more than" in clean.text("#table-say")
    clean.click("#row-scroll .open")
    assert clean.texts(".states dd") == list(states)
    choose(clean, "ill")
    assert re.fullmatch(r"patient \d+", cells_in(clean, "#table-scroll")[0][0])


def test_tables_that_cannot_be_addressed_are_refused_with_their_bytes():
    states = [str(i) for i in range(2**16)]
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": states, "b": states})
    with pytest.raises(InsufficientMemoryError, match=r"4.3e\+09 cells \(32 GiB as float64\)"):
        RobustEstimator(network).fit(np.zeros((10, 2), np.uint16))


# --- phone, print, size ---------------------------------------------------------------------------


def test_the_page_prints_on_six_pages_with_nothing_cut(clean, report, tmp_path):
    assert sum(1 for _ in report.rows) == 2_000
    clean.open(render_page(report), tmp_path, 695, 1000)
    choose(clean, "CATECHOL")
    clean.command("Emulation.setEmulatedMedia", media="print")
    wide = clean.run("""return [...document.querySelectorAll('main *')].filter(e =>
        e.checkVisibility() && !e.closest('svg, .hide') && e.scrollWidth > e.clientWidth + 2
        && getComputedStyle(e).display !== 'inline' && e.clientWidth
        && getComputedStyle(e).overflowX !== 'visible').map(e => e.className || e.id)""")
    assert wide == []
    assert clean.run("return document.documentElement.scrollWidth") <= 695
    clean.command("Emulation.setEmulatedMedia", media="")
    printed = clean.command("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
    assert 2 <= len(PAGES.findall(base64.b64decode(printed["data"]))) <= 6


def test_five_hundred_nodes_and_two_thousand_rows_are_a_small_page(clean, tmp_path):
    network = random_network("graph", 500, cards=3, random_state=0)
    page = render_page(quick_report(network, 25_000, n_shown=2_000))
    assert len(page.encode()) <= MOST_BYTES
    clean.open(page, tmp_path)
    assert "of 2,000 rows" in clean.text("#row-pager")
    clean.run("document.querySelectorAll('#row-pager button')[1].click()")
    clean.click("#row-scroll .open")
    assert len(clean.texts(".states dd")) == 500
    assert set(clean.texts(".states dd")) <= {"0", "1", "2"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_new_parts_can_be_read_on_a_phone(clean, misfit_report, tmp_path, scheme):
    clean.set_colours(scheme)
    clean.open(render_page(misfit_report), tmp_path, 390, 844)
    assert clean.run("return document.documentElement.scrollWidth") <= 390
    assert clean.unreadable() == []
    clean.set_colours("light")
