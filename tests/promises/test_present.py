"""What a fitted estimator shows of itself: report, figures, summary, notebook."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator, sample
from robustbn._learn.places import Watch
from robustbn._show.advice import strongest_cell
from robustbn._show.measures import measure_moves
from robustbn._show.page.drawing import draw_network
from robustbn.estimator.learning import fit_to
from robustbn.exceptions import NetworkError, NotFittedError
from robustbn.simulate import corrupt
from tests.reports import HOSTILE, fit_corrupted

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def fit(alarm):
    return fit_corrupted(alarm, 20_000)[0]


@pytest.fixture(scope="module")
def coins():
    return BayesianNetwork(
        {"a": [], "b": ["a"], "c": ["b"]},
        dict.fromkeys("abc", ("no", "yes")),
        {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]], "c": [[0.7, 0.3], [0.4, 0.6]]},
    )


def page_data(page):
    return json.loads(re.search(r'type="application/json"[^>]*>\s*(\{.*?\})\s*<', page, re.S)[1])


def labelled(network, codes):
    names = {n: np.array(network.states[n], object) for n in network.nodes}
    return {n: names[n][codes[:, k]] for k, n in enumerate(network.nodes)}


# --- the report -----------------------------------------------------------------------------------


def test_missing_edges_stay_inside_the_drawing():
    rng = np.random.default_rng(0)
    for n, n_edges in ((2, 0), (5, 0), (6, 5), (12, 14), (30, 40)):
        nodes = [f"node {k}" for k in range(n)]
        pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
        drawn = {pairs[k] for k in rng.permutation(len(pairs))[:n_edges]}
        parents = {nodes[b]: [nodes[a] for a, c in drawn if c == b] for b in range(n)}
        network = BayesianNetwork(parents, dict.fromkeys(nodes, ("no", "yes")))
        missing = [(nodes[a], nodes[b]) for a, b in pairs if (a, b) not in drawn]
        svg = draw_network(network, missing=missing)
        width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
        paths = re.findall(r'class="line" d="M([-\d. Q]+)"', svg)
        assert len(paths) == len(missing)
        t = np.linspace(0, 1, 101)[:, None]
        for path in paths:
            start, bend, end = np.array(path.replace("Q", " ").split(), float).reshape(3, 2)
            curve = (1 - t) ** 2 * start + 2 * t * (1 - t) * bend + t**2 * end
            assert curve.min() >= 1
            assert curve[:, 0].max() <= width - 1
            assert curve[:, 1].max() <= height - 1


def test_the_report_says_what_the_estimator_holds(fit):
    report = fit.result_.shown()
    weights = fit.row_weights_
    assert report.n_rows == len(weights) == 20_000
    n_shown = sum(row.n_alike for row in report.rows)
    assert report.n_distrusted == (weights < 0.5).sum() == n_shown
    assert report.effective_rows == pytest.approx(
        weights.sum(dtype=float) ** 2 / (weights.astype(float) ** 2).sum()
    )
    assert report.weight_counts.sum() == 20_000
    assert report.contamination == fit.contamination_
    assert report.status == fit.status_
    assert report.diagnosis == fit.diagnose()
    assert report.seconds == fit.fit_seconds_
    assert report.settings_in_words["random_state"] == "0"
    assert report.versions["robustbn"] == robustbn.__version__


def test_the_rows_of_the_report_are_the_least_trusted_with_their_states_and_reasons(alarm):
    fit, rows = fit_corrupted(alarm, 20_000)
    report = fit.result_.shown(max_rows=50)
    assert len(report.rows) == 50
    shown = [round(row.weight, 3) for row in report.rows]
    assert shown == sorted(shown)
    assert (
        max(shown) <= np.sort(fit.row_weights_)[sum(row.n_alike for row in report.rows) - 1] + 0.001
    )
    why = fit.rows()["why"]
    for row in report.rows[:10]:
        states = [alarm.states[n][c] for n, c in zip(alarm.nodes, rows[row.row], strict=True)]
        assert list(row.states) == states
        assert row.why == why[row.row]
        assert set(row.blamed) <= set(alarm.nodes)


def test_a_report_is_written_as_a_whole_or_returned(fit, tmp_path):
    path = tmp_path / "report.html"
    assert fit.report(path, title="Ours & theirs") is None
    page = path.read_text(encoding="utf-8")
    assert "Ours &amp; theirs" in page
    assert list(tmp_path.iterdir()) == [path]
    assert fit.report(title="Ours & theirs") == page
    with pytest.raises(NetworkError, match="there is no folder"):
        fit.report(tmp_path / "nowhere" / "report.html")


def test_without_rows_no_single_row_is_in_the_page(fit):
    page = fit.report(rows=False)
    data = page_data(page)
    assert data["rows"] == data["repeats"] == []
    assert len(page_data(fit.report(max_rows=7))["rows"]) == 7
    with pytest.raises(ValueError, match="max_rows must be a whole number"):
        fit.report(max_rows=-1)


def test_rows_that_were_left_out_are_counted_in_the_report(coins):
    frame = pd.DataFrame(labelled(coins, sample(coins, 3000, 0)))
    frame["unused"] = 1
    frame.loc[[5, 9], "a"] = None
    frame.loc[11, "b"] = "perhaps"
    table = robustbn.read_table(frame, coins, on_missing="drop", on_unknown="drop")
    report = RobustEstimator(coins, random_state=0).fit(table).result_.shown()
    assert report.dropped == {"a value is missing or unknown": 3}
    assert report.n_rows == 2997 == report.weight_counts.sum()
    assert report.settings_in_words["on_missing"] == "drop"
    assert report.settings_in_words["columns ignored"] == "unused"
    rows = {row.row for row in report.rows}
    assert rows.isdisjoint({5, 9, 11})


def test_the_report_names_the_call_that_repeats_the_fit(coins):
    codes = sample(coins, 2000, 0)
    fit = RobustEstimator(coins, 0.1, prior="laplace", random_state=3).fit(codes)
    call = fit.result_.shown().command
    made = eval(call, {"robustbn": robustbn, "network": coins, "table": codes})  # noqa: S307
    assert made.network_ == fit.network_


def test_edges_may_be_an_array(coins):
    network = BayesianNetwork({"a": [], "b": ["a"]}, dict.fromkeys("ab", ("low", "some", "high")))
    rows = pd.DataFrame(np.random.default_rng(0).random((3000, 2)), columns=["a", "b"])
    fit = RobustEstimator(network, bins=np.array([0.3, 0.5]), random_state=0).fit(rows)
    assert "</html>" in fit.report()
    assert len(fit.summary()) == 13
    assert "bins=array([0.3, 0.5])" in fit.result_.shown().command


def test_a_model_from_a_file_has_no_report_but_says_so(fit, tmp_path):
    fit.save(tmp_path / "model.json")
    loaded = RobustEstimator.load(tmp_path / "model.json")
    with pytest.raises(NotFittedError, match="A report needs the trust in the rows of the fit"):
        loaded.report()
    assert "From a file: fitted to 20,000 rows" in loaded._repr_html_()
    figures = loaded.summary().set_index("figure")["value"]
    assert figures["contamination"] == fit.contamination_
    assert np.isnan(figures["rows_distrusted"])
    with pytest.raises(NotFittedError, match="call fit"):
        RobustEstimator().report()


def test_the_strongest_cell_moves_the_most_rows(fit):
    report = fit.result_.shown(rows=False)
    network, layout = report.network, report.network.layout
    rows = layout.sum_configurations(report.counts)[layout.config_of_cell]
    moved = rows * np.abs(network.probabilities - report.plain_network.probabilities)
    for i, node in enumerate(network.nodes):
        cell = strongest_cell(report, node)
        assert network.describe_cell(cell)[0] == node
        assert moved[cell] == moved[layout.cell_start[i] : layout.cell_start[i + 1]].max()


# --- the summary ----------------------------------------------------------------------------------


def test_the_summary_has_a_line_a_figure_in_the_frame_of_the_caller(coins):
    columns = labelled(coins, corrupt(sample(coins, 4000, 0), coins, "repeated", 0.1, 1)[0])
    for kind in (pd.DataFrame, pl.DataFrame):
        fit = RobustEstimator(coins, random_state=0).fit(kind(columns))
        found = fit.summary()
        assert isinstance(found, kind)
        assert list(found.columns) == ["figure", "value", "meaning"]
        value = dict(zip(found["figure"], found["value"], strict=True))
        assert value["rows"] == 4000
        assert value["rows_distrusted"] == (fit.row_weights_ < 0.5).sum()
        assert value["contamination"] == fit.contamination_
        assert value["converged"] == fit.converged_


def test_the_summary_agrees_with_the_tables_that_moved(fit):
    value = fit.summary().set_index("figure")["value"]
    moved = fit.moved()
    assert value["largest_move"] == moved["moved"].max()
    assert value["tables_moved"] == moved["is_significant"].sum()
    moves = measure_moves(
        fit.network_.layout, fit.network_.probabilities, fit.plain_network_.probabilities,
        fit.counts_, fit.result_.learned.plain_counts,
    )  # fmt: skip
    assert value["largest_move"] == moves.moved.max()


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["network", "tables", "rounds", "rows"])
def test_every_figure_can_be_saved(fit, tmp_path, name):
    getattr(fit.plot, name)().savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_the_figure_of_tables_is_that_of_the_most_moved_unless_told(fit):
    top = fit.moved()["node"].iloc[0]
    label = fit.plot.tables().get_supxlabel()
    assert label.startswith(f"{top} is")
    assert label == fit.plot.tables(top).get_supxlabel()
    with pytest.raises(NetworkError, match="Unknown node 'nobody'"):
        fit.plot.tables("nobody")


# --- notebooks ------------------------------------------------------------------------------------


def test_notebooks_show_the_headline_the_settings_and_the_network(fit, alarm):
    shown = fit._repr_html_()
    assert "do not fit this network" in shown
    assert "<svg" in shown
    unfitted = RobustEstimator(alarm, 0.2)._repr_html_()
    assert "contamination=0.2" in unfitted
    assert "<svg" in unfitted
    assert RobustEstimator()._repr_html_().count("<svg") == 0
    counted = MaximumLikelihoodEstimator(alarm).fit(sample(alarm, 100, 0))
    assert "37 nodes" in counted._repr_html_()
    assert "37 nodes, 46 edges" in alarm._repr_html_()


def test_labels_cannot_break_out_of_a_notebook():
    network = BayesianNetwork(
        dict.fromkeys(HOSTILE[:4], ()), {n: list(HOSTILE[:2]) for n in HOSTILE[:4]}
    )
    codes = np.random.default_rng(0).integers(0, 2, (500, 4)).astype(np.uint8)
    fit = RobustEstimator(network, random_state=0).fit(codes)
    for shown in (network._repr_html_(), fit._repr_html_(), RobustEstimator(network)._repr_html_()):
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown


def test_rounds_can_be_watched_without_printing(alarm, capsys):
    rows, _ = corrupt(sample(alarm, 20_000, 0), alarm, "product", 0.1, 1)
    seen = []
    estimator = RobustEstimator(alarm, random_state=0, verbose=True)
    fit_to(estimator, rows, watch=Watch(round=seen.append))
    assert [r.number for r in seen] == [r.number for r in estimator.history_]
    assert capsys.readouterr().err == ""
