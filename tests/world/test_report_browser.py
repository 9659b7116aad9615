"""Promises of the report's page, kept by a real browser: Chromium, from disk, offline."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest

import robustbn
from robustbn import random_network
from robustbn._core.origins import Origin
from robustbn._show.advice import verdict
from robustbn._show.measures import interval
from robustbn._show.page.render import render_page
from robustbn._show.words import as_text, percent
from tests.reports import (
    HOSTILE,
    changed,
    hostile_report,
    quick_report,
    star,
)

VIEW = "document.querySelector('#canvas svg').getAttribute('viewBox').split(' ').map(Number)"


def table_on_page(browser):
    script = """return [...document.querySelectorAll('#table-scroll tbody tr')].map(
        tr => [...tr.cells].map(td => td.classList.contains('p')
            ? [...td.children].map(e => e.textContent) : td.textContent))"""
    return browser.run(script)


def table_of(report, node):
    """What the page should show: parents, trusted rows, cells, move."""
    layout, i = report.network.layout, report.network.nodes.index(node)
    cells = slice(layout.cell_start[i], layout.cell_start[i + 1])
    card = layout.cards[i]
    q, plain, counts = (
        v[cells].reshape(-1, card)
        for v in (report.network.probabilities, report.plain_network.probabilities, report.counts)
    )
    n = counts.sum(axis=1)
    low, high = interval(q, n[:, None])
    return q, plain, low, high, n


def states_of(network, parents, k):
    """The states of a node's parents in its configuration k."""
    codes = np.unravel_index(k, [len(network.states[p]) for p in parents] or [1])
    return tuple(network.states[p][v] for p, v in zip(parents, codes, strict=False))


def test_the_page_says_what_the_report_says(clean, alarm_report, page, tmp_path):
    clean.open(page, tmp_path)
    assert clean.text("h1").replace("\u00a0", " ") == verdict(alarm_report)
    assert clean.texts("#ranking .name") == [m.node for m in alarm_report.moved_tables]
    assert clean.texts("#ranking .value") == [percent(m.moved) for m in alarm_report.moved_tables]
    assert len(clean.texts(".node")) == 37
    assert len(clean.texts(".finding")) == len(alarm_report.findings)
    steps = clean.run("return [...document.querySelectorAll('.node')].map(g => +g.classList[1][1])")
    assert np.corrcoef(steps, alarm_report.moves.moved)[0, 1] > 0.95
    clean.screenshot(tmp_path / "alarm.png", is_full=True)


def test_clicks_on_nodes_leave_the_drawing_where_it_is(clean, alarm_report, page, tmp_path):
    clean.open(page, tmp_path)
    drawn = "return document.querySelector('.node').ownerSVGElement.getAttribute('viewBox')"
    before = clean.run(drawn)
    for i, node in enumerate(alarm_report.network.nodes):
        clean.click(f".node[data-node='{i}']")
        clean.wait(f"document.querySelector('#table-name').textContent === '{node}'")
    assert clean.run(drawn) == before


@pytest.mark.parametrize("node", ["HRBP", "VENTLUNG", "MINVOLSET"])
def test_a_click_on_a_node_shows_its_table(clean, alarm_report, page, tmp_path, node):
    clean.open(page, tmp_path)
    i = alarm_report.network.nodes.index(node)
    clean.click(f".node[data-node='{i}']")
    clean.wait(f"document.querySelector('#table-name').textContent === '{node}'")
    clean.run("document.querySelectorAll('#table-pager .fold').forEach(e => e.click())")
    shown = table_on_page(clean)
    q, plain, low, high, n = table_of(alarm_report, node)
    network, parents = alarm_report.network, alarm_report.network.parents[node]
    assert len(shown) == min(len(q), 25)
    places = {states_of(network, parents, k): k for k in range(len(q))}
    found = [places[tuple(row[: len(parents)])] for row in shown]
    adds = n * np.abs(q - plain).sum(axis=1)
    assert adds[found] == pytest.approx(-np.sort(-adds)[: len(found)], abs=3e-5 * n.max())
    for k, row in zip(found, shown, strict=True):
        for v, (robust, between, was) in enumerate(row[len(parents) + 1 : -2]):
            assert float(robust) == pytest.approx(100 * q[k, v], abs=0.051)
            ends = [100 * low[k, v], 100 * high[k, v]]
            if between != "not known":
                assert [float(x) for x in between.split("–")] == pytest.approx(ends, abs=0.051)
            else:
                assert ends == pytest.approx([0, 100], abs=0.05)
            assert float(was.removeprefix("was ")) == pytest.approx(100 * plain[k, v], abs=0.051)
    thin = clean.run("return [...document.querySelectorAll('#table-scroll tbody tr')].map("
                     "tr => tr.classList.contains('thin'))")  # fmt: skip
    assert thin == (n[found] < 10).tolist()
    clean.screenshot(tmp_path / f"{node}.png")


def test_a_table_can_be_sorted_and_copied(clean, alarm_report, page, tmp_path):
    clean.open(page, tmp_path)
    clean.click(".rank[data-name='VENTLUNG']")
    q, *_, n = table_of(alarm_report, "VENTLUNG")
    clean.run("document.querySelectorAll('#table-pager .fold').forEach(e => e.click())")
    clean.click("#table-scroll th.n button")
    head = "document.querySelector('#table-scroll th.n[aria-sort]').getAttribute('aria-sort')"
    assert clean.run(f"return {head}") == "descending"
    first = float(table_on_page(clean)[0][3].split(" of ")[0].replace(",", ""))
    assert first == pytest.approx(n.max(), abs=0.6)
    clean.click("#table-scroll th.n button")
    assert clean.run(f"return {head}") == "ascending"
    clean.click("#table-copy")
    clean.wait("document.getElementById('table-copied').textContent !== ''")
    assert clean.text("#table-copied") == "Copied"
    clean.run("clip.classList.remove('hide'); clip.focus()")
    clean.find("#clip").send_keys("\ue009v")  # Ctrl + V
    lines = [line.split("\t") for line in clean.run("return clip.value").splitlines()]
    assert lines[0][:4] == ["INTUBATION", "KINKEDTUBE", "VENTTUBE", "trusted rows"]
    assert lines[0][5:9] == ["ZERO robust", "ZERO low", "ZERO high", "ZERO plain"]
    order = np.argsort(np.round(n, 3), kind="stable")
    assert [float(line[5]) for line in lines[1:]] == pytest.approx(q[order, 0].tolist(), abs=1e-5)


def test_rows_can_be_opened_filtered_and_exported(clean, alarm_report, page, tmp_path):
    clean.open(page, tmp_path)
    rows = alarm_report.rows
    shown = clean.texts("#row-scroll tbody tr td:first-child")
    assert shown == [str(r.row) for r in rows[:20]]
    assert clean.texts("#row-scroll .why")[1:] == [r.why for r in rows[:20]]
    clean.click("#row-scroll .open")
    states = dict(zip(clean.texts(".states dt"), clean.texts(".states dd"), strict=True))
    assert states == dict(zip(alarm_report.network.nodes, rows[0].states, strict=True))
    assert set(clean.texts(".states .blamed dt")) == set(rows[0].blamed)
    clean.find("#row-filter").send_keys("MINVOLSET = LOW")
    column = alarm_report.network.nodes.index("MINVOLSET")
    hits = [r for r in rows if r.states[column] == "LOW" or "MINVOLSET = LOW" in r.why]
    assert clean.text("#row-count") == f"{len(hits)} of {len(rows)} rows"
    clean.click("#row-export")
    file = clean.downloads / "distrusted-rows.csv"
    end = time.perf_counter() + 10
    while not file.exists() and time.perf_counter() < end:
        time.sleep(0.02)
    with file.open(encoding="utf-8-sig", newline="") as opened:
        table = list(csv.reader(opened))
    head = ["row", "trust", "same rows", "group", "why"]
    assert table[0] == [*head, *alarm_report.network.nodes]
    assert [int(line[0]) for line in table[1:]] == [r.row for r in hits]
    assert table[1][5:] == list(hits[0].states)
    clean.run("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))",
              clean.find("#row-filter"))  # fmt: skip
    clean.click("#row-pager button:nth-child(2)")
    assert clean.texts("#row-scroll tbody tr td:first-child")[0] == str(rows[20].row)


def test_keys_walk_the_network_open_tables_and_zoom(clean, alarm_report, page, tmp_path):
    clean.open(page, tmp_path)
    clean.run("document.getElementById('zoom-fit').focus()")
    active = clean.driver.switch_to.active_element
    active.send_keys("\ue004")  # Tab: into the network, one stop for all its nodes
    focus = "return Number(document.activeElement.dataset.node)"
    start = clean.run(focus)
    assert start == alarm_report.network.nodes.index(alarm_report.moved_tables[0].node)
    clean.driver.switch_to.active_element.send_keys("\ue015" if start else "\ue013")  # arrow
    walked = clean.run(focus)
    assert walked != start
    before = clean.run(f"return {VIEW}")
    clean.driver.switch_to.active_element.send_keys("+")
    clean.wait(f"{VIEW}[2] < {before[2] - 1}")
    clean.driver.switch_to.active_element.send_keys("0")
    clean.wait(f"Math.abs({VIEW}[2] - {before[2]}) < 1")
    clean.driver.switch_to.active_element.send_keys("\ue007")  # Enter
    assert clean.text("#table-name") == alarm_report.network.nodes[walked]
    assert clean.run("return document.activeElement.id") == "table-name"
    names = clean.run("""return [...document.querySelectorAll('button, input, [role=button]')]
        .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels.length))
        .length""")
    assert names == 0


def test_mouse_and_fingers_move_and_zoom_the_network(clean, page, tmp_path):
    clean.open(page, tmp_path)

    def box():
        clean.run("canvas.scrollIntoView({block: 'center'})")
        return clean.run(
            "const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]"
        )

    left, top, width, height = box()
    x, y = left + 12, top + height - 12
    before = clean.run(f"return {VIEW}")

    def mouse(kind, dx=0, dy=0, **others):
        clean.command("Input.dispatchMouseEvent", type=kind, x=x + dx, y=y + dy, **others)

    mouse("mousePressed", button="left", clickCount=1)
    mouse("mouseMoved", 30, -10, button="left", buttons=1)
    mouse("mouseMoved", 60, -20, button="left", buttons=1)
    mouse("mouseReleased", 60, -20, button="left", clickCount=1)
    clean.wait(f"{VIEW}[0] < {before[0] - 20}")
    mouse("mouseWheel", deltaX=0, deltaY=-240, modifiers=2)  # Ctrl
    clean.wait(f"{VIEW}[2] < {before[2] * 0.9}")
    clean.click("#zoom-fit")
    clean.wait(f"Math.abs({VIEW}[2] - {before[2]}) < 1")
    left, top, width, height = box()
    middle = (left + width / 2, top + height / 2)
    for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 60), ("touchEnd", 0)):
        points = [{"x": middle[0] + side * apart, "y": middle[1], "id": i}
                  for i, side in enumerate((-1, 1))]  # fmt: skip
        clean.command("Input.dispatchTouchEvent", type=kind, touchPoints=points if apart else [])
    clean.wait(f"{VIEW}[2] < {before[2] * 0.6}")


def test_search_finds_nodes(clean, page, tmp_path):
    clean.open(page, tmp_path)
    clean.find("#search").send_keys("lvf")
    assert clean.text("#found") == "1 found"
    assert clean.texts(".node.match title")[0].startswith("LVFAILURE")
    visible = "return [...document.querySelectorAll('#ranking li')].filter(e => !e.hidden).length"
    assert clean.run(visible) == 1
    clean.find("#search").send_keys("\ue007")
    assert clean.text("#table-name") == "LVFAILURE"


def test_hostile_labels_do_nothing_but_show(clean, tmp_path):
    report = hostile_report()
    clean.open(render_page(report), tmp_path)
    assert clean.run("return document.querySelectorAll('script').length") == 2
    assert clean.run("return document.querySelectorAll('img').length") == 0
    for button in range(report.network.n_nodes):
        clean.run("document.querySelectorAll('.rank')[arguments[0]].click()", button)
        assert clean.text("#table-name") == as_text(report.moved_tables[button].node).strip()
    clean.run("document.querySelectorAll('.open').forEach(e => e.click())")
    names = [as_text(node) for node in report.network.nodes]
    assert clean.texts(".states dt")[: len(names)] == names
    assert clean.text(".eyebrow") == HOSTILE[0]
    assert clean.text("#command") == HOSTILE[1].strip()
    assert clean.run("return document.documentElement.scrollWidth <= innerWidth")
    clean.screenshot(tmp_path / "hostile.png", is_full=True)


@pytest.mark.parametrize("kind", ["graph", "star"])
def test_five_hundred_nodes_can_be_used(clean, tmp_path, kind):
    network = random_network("graph", 500, random_state=0)
    if kind == "star":
        network = star(499)
        network = network.with_cpts({n: np.full(network._shape_of(n), 0.5) for n in network.nodes})
    clean.open(render_page(quick_report(network, 1000, n_shown=20)), tmp_path)
    assert len(clean.texts(".node")) == 500
    clean.run("document.querySelectorAll('.rank')[3].click()")
    assert clean.text("#table-name") == clean.texts("#ranking .name")[3]
    clean.screenshot(tmp_path / "500.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read_in_light_and_dark(clean, page, tmp_path, scheme):
    clean.set_colours(scheme)
    clean.open(page, tmp_path)
    clean.run("document.querySelector(\".rank[data-name='VENTLUNG']\").click()")
    assert clean.unreadable() == []
    clean.screenshot(tmp_path / f"{scheme}.png")
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = clean.run(paper)
    clean.click("#theme")
    assert clean.run(paper) != before
    assert clean.unreadable() == []
    clean.set_colours("light")


def test_a_phone_needs_no_sideways_scrolling(clean, page, tmp_path):
    clean.open(page, tmp_path, 390, 844)
    assert clean.run("return document.documentElement.scrollWidth") <= 390
    clean.run("document.querySelector(\".rank[data-name='CATECHOL']\").click()")
    assert clean.run("return document.documentElement.scrollWidth") <= 390
    assert "ARTCO2" in table_on_page(clean)[0][1]
    clean.screenshot(tmp_path / "phone.png", is_full=True)
    clean.resize(1360, 900)


def test_long_names_leave_room_for_the_percentages_on_a_phone(clean, tmp_path):
    parent, child = "public_record_of_bankruptcies", "number_of_historical_failures"
    states = ["0", "1", "2", "3"]
    network = robustbn.BayesianNetwork(
        {parent: [], child: [parent]}, {parent: states, child: states}
    ).with_cpts({parent: np.full(4, 0.25), child: np.full((4, 4), 0.25)})
    clean.open(render_page(quick_report(network)), tmp_path, 390, 844)
    clean.run(f"document.querySelector(\".rank[data-name='{child}']\").click()")
    left, first, when, share = clean.run("""const scroll = document.querySelector('#table-scroll');
        const ends = (e) => [e.getBoundingClientRect().left, e.getBoundingClientRect().right];
        const row = scroll.querySelector('tbody tr');
        return [ends(scroll), ...[0, 1, 2].map(k => ends(row.cells[k]))]""")
    assert left[0] - 1 <= first[0] < first[1] <= when[0] + 1
    assert when[1] <= share[0] + 1 < share[1] <= left[1] + 1
    clean.resize(1360, 900)


def test_the_page_prints_light_and_without_buttons(clean, page, tmp_path):
    clean.open(page, tmp_path)
    clean.run("document.documentElement.dataset.theme = 'dark'")
    clean.command("Emulation.setEmulatedMedia", media="print")
    assert (
        clean.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert not clean.run(
        "return [...document.querySelectorAll('.tools, .bar')].some(e => e.checkVisibility())"
    )
    assert len(clean.command("Page.printToPDF")["data"]) > 20_000
    clean.command("Emulation.setEmulatedMedia", media="")


def test_names_of_rows_and_where_they_come_from_are_shown_as_text(clean, sprinkler, tmp_path):
    origin = Origin((("feed", HOSTILE[0], HOSTILE[0]),), 1_200, 900, 0.1, 1e-9, 50.0)
    report = quick_report(sprinkler, origins=[origin], row_names=("uid", "site"))
    rows = [changed(row, names=(f"u{row.row}", HOSTILE[0])) for row in report.rows]
    clean.open(render_page(changed(report, rows=rows)), tmp_path)
    line = clean.texts(".where tbody td")
    assert line == ["feed", HOSTILE[0], "1,200", "900", "75.0 %", "7.5"]
    first = clean.texts("#row-scroll tbody tr:first-child td")
    assert first[:3] == [str(rows[0].row), f"u{rows[0].row}", HOSTILE[0]]
    clean.find("#row-filter").send_keys(f"uid = u{rows[3].row}")
    assert f"u{rows[3].row}" in clean.texts("#row-scroll tbody tr td:nth-child(2)")
