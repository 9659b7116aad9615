"""Promises of the report: right numbers, harmless labels, one file that asks for nothing."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from base64 import b64encode
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, random_network, sample
from robustbn._core.expansion import normalise_counts
from robustbn._core.groups import UnusualCell
from robustbn._core.result import RepeatedRow, Round
from robustbn._show.advice import verdict
from robustbn._show.measures import interval, measure_moves
from robustbn._show.page.drawing import (
    INK_ON_SCALE,
    NODE_HEIGHT,
    SCALE,
    draw_network,
    lay_out,
    layer_graph,
    nice_top,
)
from robustbn._show.page.figures import Plots
from robustbn._show.page.inline import fit_html, network_html
from robustbn._show.page.payload import MAX_CONFIGURATIONS, page_data, to_script_json
from robustbn._show.page.render import render_markdown, render_page
from robustbn.exceptions import MissingDependencyError, NetworkError
from tests.reports import (
    facts,
    hostile_kind,
    hostile_report,
    quick_report,
    star,
)
from tests.strategies import networks

# --- numbers --------------------------------------------------------------------------------------


def test_a_move_is_the_distance_weighted_by_the_parents(sprinkler):
    rng = np.random.default_rng(0)
    layout = sprinkler.layout
    counts, plain_counts = rng.uniform(1, 50, (2, layout.n_cells))
    total = counts[: layout.cells_per_node[0]].sum()
    q, plain = (normalise_counts(layout, c) for c in (counts, plain_counts))
    moves = measure_moves(layout, q, plain, counts, plain_counts)
    for i, node in enumerate(sprinkler.nodes):
        by_hand = 0.0
        for j in range(layout.cell_start[i], layout.cell_start[i + 1]):
            k = layout.config_of_cell[j]
            in_config = counts[layout.config_of_cell == k].sum()
            by_hand += in_config / total * abs(q[j] - plain[j]) / 2
        assert moves.moved[i] == pytest.approx(by_hand), node


@pytest.mark.parametrize(("cards", "low", "high"), [(2, 0.02, 0.09), (4, 0.0, 0.06)])
def test_sampling_alone_passes_the_error_in_about_five_of_a_hundred(cards, low, high):
    network = random_network("tree", 30, cards=cards, random_state=3)
    layout = network.layout
    beyond = []
    for seed in range(20):
        rows = sample(network, 2000, seed)
        counts = MaximumLikelihoodEstimator(network).fit(rows).counts_
        q = normalise_counts(layout, counts)
        moves = measure_moves(layout, q, network.probabilities, counts, counts)
        beyond.append(moves.is_significant)
    assert low <= np.mean(beyond) <= high


def test_the_interval_is_wilsons():
    from scipy.stats import binomtest

    for k, n in ((0, 7), (3, 10), (450, 1000), (20, 20)):
        wilson = binomtest(k, n).proportion_ci(method="wilson")
        ours = interval(np.array([k / n]), np.array([float(n)]))
        assert [float(v[0]) for v in ours] == pytest.approx([wilson.low, wilson.high], abs=1e-6)
    low, high = interval(np.array([0.5]), np.array([0.0]))
    assert (low[0], high[0]) == (pytest.approx(0, abs=1e-4), pytest.approx(1, abs=1e-4))


def test_corruption_moves_tables_and_none_moves_none(alarm, alarm_report):
    assert alarm_report.n_moved > 30
    clean = quick_report(alarm, eps=0.0)
    assert clean.n_moved == 0
    said = "All 4,000 rows fit this network."
    assert verdict(clean) == f"{said} The tables are the relative frequencies of all rows."


def test_the_verdict_is_plain_and_warns(alarm_report):
    said = verdict(alarm_report)
    bad = f"{alarm_report.n_distrusted:,} of 30,000 rows (10 %)"
    assert f"{bad} do not fit this network and are left out" in said
    assert f"{alarm_report.n_moved} of 37 tables changed by more than their error" in said


def test_the_verdict_on_a_fit_that_did_not_settle_asks_for_care(alarm_report):
    unsettled = verdict(facts(**(vars(alarm_report) | {"converged": False})))
    assert unsettled.endswith("still do not look like rows of this network.")


# --- the drawing ----------------------------------------------------------------------------------


DRAWN = {
    "alarm": lambda: robustbn.example_network("alarm"),
    "dense": lambda: random_network("graph", 30, 300, random_state=0),
    "tree": lambda: random_network("tree", 200, random_state=0),
    "star": lambda: star(90),
    "empty": lambda: random_network("empty", 60),
    "one": lambda: random_network("empty", 1),
    "graph": lambda: random_network("graph", 150, random_state=1),
}


def points_of(route):
    """Many points of a route."""
    t = np.linspace(0, 1, 40)[:, None]
    points, at = [], np.zeros(2)
    for letter, numbers in route:
        ends = np.reshape(numbers, (-1, 2))
        if letter == "L":
            points.append(at + t * (ends[0] - at))
        elif letter == "C":
            a, b, c = ends
            points.append(
                (1 - t) ** 3 * at + 3 * (1 - t) ** 2 * t * a + 3 * (1 - t) * t**2 * b + t**3 * c
            )
        at = ends[-1]
    return np.concatenate(points)


@pytest.mark.parametrize("kind", DRAWN)
def test_edges_run_down_and_around_nodes_that_do_not_overlap(kind):
    network = DRAWN[kind]()
    picture = lay_out(network)
    x, y, width = np.array(picture.boxes).T
    near = np.abs(y[:, None] - y) < NODE_HEIGHT
    wide = np.abs(x[:, None] - x) < (width[:, None] + width) / 2
    np.fill_diagonal(near, False)
    assert not (near & wide).any()
    assert (x - width / 2 >= 0).all()
    assert (x + width / 2 <= picture.width).all()
    number = {n: i for i, n in enumerate(network.nodes)}
    assert set(picture.routes) == {(number[a], number[b]) for a, b in network.edges}
    for (a, b), route in picture.routes.items():
        assert y[a] < y[b]
        points = points_of(route)
        inside = (np.abs(points[:, :1] - x) < width / 2) & (
            np.abs(points[:, 1:] - y) < NODE_HEIGHT / 2 - 0.1
        )
        assert not inside.any(), (network.nodes[a], network.nodes[b])


@given(network=networks(max_nodes=12))
def test_every_edge_has_a_way_from_layer_to_layer(network):
    number = {n: i for i, n in enumerate(network.nodes)}
    edges = [(number[a], number[b]) for a, b in network.edges]
    parts = layer_graph(network.n_nodes, edges)
    seen = [v for part in parts for layer in part.layers for v in layer if v < network.n_nodes]
    assert sorted(seen) == list(range(network.n_nodes))
    for part in parts:
        layer_of = {v: k for k, layer in enumerate(part.layers) for v in layer}
        for (a, b), way in part.routes.items():
            assert (way[0], way[-1]) == (a, b)
            assert np.diff([layer_of[v] for v in way]).tolist() == [1] * (len(way) - 1)
    assert sorted(e for part in parts for e in part.routes) == sorted(edges)


@pytest.mark.parametrize(("kind", "most"), [("alarm", 10), ("tree", 0), ("star", 0)])
def test_few_edges_cross(kind, most):
    network = DRAWN[kind]()
    number = {n: i for i, n in enumerate(network.nodes)}
    crossed = 0
    for part in layer_graph(network.n_nodes, [(number[a], number[b]) for a, b in network.edges]):
        place = {v: (k, i) for k, layer in enumerate(part.layers) for i, v in enumerate(layer)}
        pieces = {p for way in part.routes.values() for p in pairwise(way)}
        at = np.array([(*place[a], place[b][1]) for a, b in pieces]).reshape(-1, 3)
        same, left, right = (at[:, None, k] - at[:, k] for k in range(3))
        crossed += int(((same == 0) & (left * right < 0)).sum()) // 2
    assert crossed <= most


def test_the_scale_of_colours_ends_at_a_round_number():
    assert [nice_top(v) for v in (0.0, 0.011, 0.07, 0.31, 0.9, 1.0)] == pytest.approx(
        [0.01, 0.015, 0.08, 0.4, 1.0, 1.0]
    )


def luminance(colour):
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_colours_are_ordered_by_lightness_and_their_labels_can_be_read():
    style = (files("robustbn") / "_show" / "page" / "look.css").read_text(encoding="utf-8")
    light, dark = style.split("@media")[0], style.split('[data-theme="dark"] {')[1].split("}")[0]
    schemes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in (light, dark)]
    for scheme in schemes:
        steps = [luminance(scheme[f"c{k}"]) for k in range(7)]
        assert steps == sorted(steps) or steps == sorted(steps, reverse=True)
        assert all(contrast(scheme[f"c{k}"], scheme[f"t{k}"]) >= 4.5 for k in range(7))
        for back in ("paper", "card", "sunk"):
            assert all(
                contrast(scheme[back], scheme[c]) >= 4.5
                for c in ("ink", "muted", "accent", "misfit")
            )
    assert [schemes[0][f"c{k}"] for k in range(7)] == list(SCALE)
    assert all(contrast(a, b) >= 4.5 for a, b in zip(SCALE, INK_ON_SCALE, strict=True))


# --- the page as text -----------------------------------------------------------------------------


class Strict(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_is_one_small_file_that_asks_for_nothing(alarm, alarm_report):
    many = facts(
        **(vars(alarm_report) | {"rows": list(alarm_report.rows) * 10, "n_rows": 1_000_000})
    )
    page = render_page(many)
    assert len(page.encode()) < 1_500_000
    read = Strict(page)
    assert read.tags.count("script") == 2
    addresses = [v for k, v in read.attributes if k in ("href", "src", "action", "srcset")]
    assert all(v.startswith(("#", "data:")) for v in addresses)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "url(" not in page
    assert "@import" not in page
    script = re.findall(r"<script>(.*?)</script>", page, re.S)[0]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        f"script-src &#39;sha256-{digest}&#39;" in page or f"script-src 'sha256-{digest}'" in page
    )


def test_the_same_report_gives_the_same_page(alarm_report, page):
    assert render_page(alarm_report) == page


def test_hostile_labels_are_text_everywhere():
    report = hostile_report()
    page = render_page(report)
    read = Strict(page)
    assert read.tags.count("script") == 2
    assert "img" not in read.tags
    assert not any(name.startswith("on") for name, _ in read.attributes)
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert [n["name"] for n in data["nodes"]] == [
        n.replace("\u202e", "�") for n in report.network.nodes
    ]
    for piece in (
        network_html(report.network),
        fit_html(report),
        draw_network(report.network),
    ):
        read = Strict(piece)
        assert not {"script", "img"} & set(read.tags)
        assert not any(name.startswith("on") for name, _ in read.attributes)
        piece.encode()


def texts_in(data):
    """Yield every text in what JSON holds."""
    if isinstance(data, str):
        yield data
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from texts_in(each)


UNSEEN = "\u202e\u2066\x00\x1b\x7f\x9b"  # turn text around, or steer what shows it


def test_what_turns_text_around_and_control_characters_are_shown_as_such():
    names = [f"a{UNSEEN}", f"b{UNSEEN}"]
    network = BayesianNetwork({names[0]: [], names[1]: names[:1]}, dict.fromkeys(names, names))
    network = network.with_cpts(np.tile([0.9, 0.1], 3))
    cell = UnusualCell(names[1], {names[0]: names[0]}, names[1], 0.9, 0.1, 0.5)
    everywhere = dict.fromkeys(("title", "status", "command", "diagnosis", "missing"), UNSEEN)
    report = quick_report(
        network,
        kinds=[hostile_kind(cell, names, UNSEEN)],
        repeats=[RepeatedRow(7, dict.fromkeys(names, names[0]), 50, 0.25)],
        rounds=[Round(0, UNSEEN, (3.0, 1.0), 1.1, 0.0, 0, 0.1)],
        settings={UNSEEN: UNSEEN},
        dropped={UNSEEN: 3},
        row_names=(UNSEEN,),
        **everywhere,
    )
    page = render_page(report)
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    shown = [page, *texts_in(data), network_html(network), fit_html(report)]
    shown += [draw_network(network), render_markdown(report)]
    assert [text for text in shown if set(text) & set(UNSEEN)] == []
    assert "a\ufffd" in data["nodes"][0]["name"]


@given(st.text())
def test_data_cannot_leave_its_script_element(label):
    text = to_script_json({"label": label + "</script><!--\u2028"})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text)["label"].startswith(label)


def test_private_rows_are_not_in_the_page(alarm_report):
    page = render_page(facts(**(vars(alarm_report) | {"rows_hidden": True})))
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["rows"] == data["repeats"] == []
    assert alarm_report.rows[0].why not in page
    assert "Single rows are left out of this report" in page


def test_large_tables_are_cut_to_what_moved_most():
    names = [f"p{i}" for i in range(11)]
    network = BayesianNetwork(
        {**{n: [] for n in names}, "child": names}, dict.fromkeys([*names, "child"], ("no", "yes"))
    )
    rng = np.random.default_rng(0)
    network = network.with_cpts(
        {n: rng.dirichlet((1, 1), size=network._shape_of(n)[:-1]) for n in network.nodes}
    )
    report = quick_report(network)
    child = page_data(report)["nodes"][-1]
    assert child["size"] == 2048
    assert len(child["table"]["which"]) == MAX_CONFIGURATIONS
    first = report.network.layout.config_start[-2]
    weight = report.moves.of_configuration * network.layout.sum_configurations(report.counts)
    most = np.argsort(-weight[first:], kind="stable")[:MAX_CONFIGURATIONS]
    kept = np.array(child["table"]["which"])
    assert weight[first:][kept].sum() == pytest.approx(weight[first:][most].sum())


# --- figures and notebooks ------------------------------------------------------------------------


def test_figures_stand_alone(alarm_report, tmp_path):
    plots = Plots(alarm_report)
    figures = [plots.network(), plots.tables("CATECHOL"), plots.rounds(), plots.rows()]
    for i, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{i}.svg")
        assert (tmp_path / f"{i}.svg").stat().st_size > 5_000
    with pytest.raises(NetworkError, match="Unknown node 'nobody'"):
        plots.tables("nobody")
    untested = quick_report(random_network("empty", 2, random_state=0))
    Plots(untested).rounds().savefig(tmp_path / "untested.png")


def test_without_matplotlib_a_figure_says_what_to_install(alarm_report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'robustbn\[plots\]'"):
        Plots(alarm_report).rows()


def test_importing_the_report_imports_nothing_heavy():
    heavy = "{'jinja2', 'matplotlib', 'importlib.resources'}"
    page = "robustbn._show.page"
    code = f"import {page}, {page}.figures, sys; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_notebooks_get_small_pieces(alarm, alarm_report):
    piece = network_html(alarm)
    assert "37 nodes, 46 edges" in piece
    assert len(piece) < 40_000
    piece = fit_html(alarm_report)
    assert "do not fit this network" in piece
    assert alarm_report.moved_tables[0].node in piece
    assert "too many nodes" in network_html(random_network("empty", 200))
