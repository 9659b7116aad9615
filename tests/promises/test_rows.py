"""Which rows are distrusted, why, and which tables moved: frames of the caller's own kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import robustbn
from robustbn import BayesianNetwork, RobustEstimator
from robustbn.adversary import corrupt
from robustbn.exceptions import DataError

pytestmark = pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
CHANGED = ("LVFAILURE", "HRSAT", "SAO2", "VENTLUNG")
N_ROWS = 20_000


def to_frame(codes, network):
    return pd.DataFrame(
        {
            n: pd.Categorical.from_codes(codes[:, k], network.states[n])
            for k, n in enumerate(network.nodes)
        }
    )


def change_columns(codes, network, nodes, share, seed=0):
    """Give certain nodes another state in some rows; return the rows and which were changed."""
    rng = np.random.default_rng(seed)
    is_bad = rng.random(len(codes)) < share
    dirty = codes.copy()
    for node in nodes:
        k, card = network.nodes.index(node), len(network.states[node])
        step = rng.integers(1, card, is_bad.sum())
        dirty[is_bad, k] = (dirty[is_bad, k] + step) % card
    return dirty, is_bad


@pytest.fixture(scope="module")
def clean():
    return robustbn.sample(robustbn.example_network("alarm"), N_ROWS, random_state=0)


@pytest.fixture(scope="module")
def changed(clean):
    """ALARM with four columns changed in a tenth of the rows, as a fitted estimator."""
    alarm = robustbn.example_network("alarm")
    dirty, is_bad = change_columns(clean, alarm, CHANGED, 0.1)
    fit = RobustEstimator(alarm, random_state=0).fit(to_frame(dirty, alarm))
    return fit, dirty, is_bad


def test_suspicious_rows_are_the_changed_ones(changed):
    fit, _, is_bad = changed
    rows = fit.rows()
    assert rows.columns.tolist() == ["row", "weight", "is_suspicious", "why"]
    assert rows["row"].tolist() == list(range(N_ROWS))
    np.testing.assert_array_equal(rows["weight"], fit.row_weights_)
    np.testing.assert_array_equal(rows["is_suspicious"], fit.row_weights_ < 0.5)
    assert (rows["is_suspicious"] == is_bad).mean() > 0.999


def test_why_names_nodes_that_were_changed(changed):
    """A cell is a node with its parents: one of them must be a node that was changed."""
    fit, _, is_bad = changed
    rows = fit.rows()
    texts = rows["why"][rows["is_suspicious"] & is_bad]
    parts = [text.split("; ") for text in texts]
    first = [next(p for p in each if not p.startswith("appears")) for each in parts]
    assert np.mean([any(node in text for node in CHANGED) for text in first]) > 0.99
    everywhere = [sum(node in text for node in CHANGED) for text in texts]
    assert np.mean(everywhere) > 2
    assert (rows["why"][~rows["is_suspicious"]] == "").all()
    assert (rows["why"][rows["is_suspicious"]] != "").all()


def test_why_says_what_was_expected(changed):
    fit, dirty, _ = changed
    network = fit.network_
    row = int(np.flatnonzero(fit.row_weights_ < 0.5)[0])
    (reason,) = fit.explainer_.explain(dirty[[row]])
    for cell, node in zip(reason.cells, reason.nodes, strict=True):
        named, parents, state = network.describe_cell(cell)
        assert named == node
        values = {n: network.states[n][dirty[row, k]] for k, n in enumerate(network.nodes)}
        assert values[node] == state
        assert all(values[p] == s for p, s in parents.items())
        assert f"{node}={state}" in reason.text
    assert fit.rows()["why"][row] == reason.text


def test_the_tables_that_moved_most_are_those_of_the_changed_nodes(changed):
    fit, _, _ = changed
    moved = fit.moved()
    assert set(moved["node"][:4]) == set(CHANGED)
    assert moved["is_significant"][:4].all()
    assert (np.diff(moved["moved"]) <= 0).all()
    assert sorted(moved["node"]) == sorted(fit.network_.nodes)


def test_rows_never_seen_are_judged_and_explained_too(changed, clean):
    fit, dirty, _ = changed
    alarm = fit.network_
    more = robustbn.sample(alarm, 3000, random_state=5)
    more, is_bad = change_columns(more, alarm, CHANGED, 0.2, seed=5)
    rows = fit.rows(to_frame(more, alarm))
    assert (rows["is_suspicious"] == is_bad).mean() > 0.99
    assert (rows["why"][rows["is_suspicious"]] != "").all()
    again = fit.rows(to_frame(dirty, alarm))
    pd.testing.assert_frame_equal(again, fit.rows())


def test_repeated_rows_say_how_often_they_appear(clean, alarm):
    dirty, is_bad = corrupt(clean, alarm, "repeated", 0.05, random_state=0)
    n_copies = int((dirty == dirty[np.argmax(is_bad)]).all(axis=1).sum())
    rows = RobustEstimator(alarm, random_state=0).fit(dirty).rows()
    texts = rows["why"][is_bad]
    assert texts.str.contains(f"appears {n_copies:,} times, ").all()
    assert texts.nunique() == 1


@pytest.mark.parametrize("kind", ["product", "rowflip", "mixture", "clones", "flood"])
def test_every_suspicious_row_has_a_reason(kind, clean, alarm):
    dirty, _ = corrupt(clean, alarm, kind, 0.1, random_state=0)
    rows = RobustEstimator(alarm, random_state=0).fit(dirty).rows()
    assert rows["is_suspicious"].any()
    assert (rows["why"][rows["is_suspicious"]] != "").all()


KINDS = {
    "pandas": (lambda frame: frame, pd.DataFrame),
    "polars": (pl.from_pandas, pl.DataFrame),
    "lazy": (lambda frame: pl.from_pandas(frame).lazy(), pl.DataFrame),
    "arrow": (lambda frame: pa.Table.from_pandas(frame, preserve_index=False), pa.Table),
    "reader": (
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False).to_reader(),
        pa.Table,
    ),
    "mapping": (lambda frame: frame.to_dict("list"), pd.DataFrame),
    "array": (lambda frame: frame.to_numpy(), pd.DataFrame),
}


@pytest.mark.parametrize("kind", KINDS)
def test_frames_come_back_in_kind(kind):
    convert, expected = KINDS[kind]
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["x", "y"], "b": ["x", "y"]})
    frame = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "y", "y", "x"] * 100})
    fit = RobustEstimator(network, random_state=0).fit(convert(frame))
    rows, moved = fit.rows(), fit.moved()
    assert isinstance(rows, expected)
    assert isinstance(moved, expected)
    assert isinstance(fit.rows(convert(frame)), expected)
    assert len(rows) == 400
    assert list(getattr(rows, "column_names", rows.columns)) == [
        "row",
        "weight",
        "is_suspicious",
        "why",
    ]


def test_rows_that_were_left_out_keep_their_place():
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["x", "y"], "b": ["x", "y"]})
    frame = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "y", "y", "x"] * 100})
    frame.loc[3, "a"], frame.loc[7, "b"] = None, "??"
    settings = {"on_missing": "drop", "on_unknown": "drop"}
    fit = RobustEstimator(network, random_state=0, **settings).fit(frame)
    assert (fit.reading_.n_read, fit.reading_.n_rows, fit.reading_.n_dropped) == (400, 398, 2)
    assert fit.reading_.n_missing == {"a": 1}
    assert fit.reading_.n_unknown == {"b": 1}
    assert np.flatnonzero(np.isnan(fit.row_weights_)).tolist() == [3, 7]
    rows = fit.rows()
    assert rows["why"][[3, 7]].tolist() == ["left out: a value is missing or unknown"] * 2
    assert not rows["is_suspicious"][[3, 7]].any()
    np.testing.assert_array_equal(fit.weights(frame), fit.row_weights_)
    np.testing.assert_array_equal(np.flatnonzero(fit.predict(frame) == 0), [3, 7])
    np.testing.assert_array_equal(fit.fit_predict(frame), fit.predict(frame))
    assert np.isnan(fit.score_samples(frame)[[3, 7]]).all()
    assert np.isfinite(fit.score(frame))


def test_row_numbers_count_the_rows_that_were_left_out(alarm, clean):
    dirty, is_bad = change_columns(clean, alarm, CHANGED, 0.1)
    frame = to_frame(dirty, alarm)
    gaps = np.arange(0, N_ROWS, 100)
    frame.loc[gaps, "SAO2"] = None
    rows = RobustEstimator(alarm, random_state=0, on_missing="drop").fit(frame).rows()
    is_left = np.ones(N_ROWS, bool)
    is_left[gaps] = False
    assert rows["weight"].isna().sum() == len(gaps)
    assert (rows["is_suspicious"] == is_bad)[is_left].mean() > 0.999
    assert (rows["why"][is_left & is_bad] != "").mean() > 0.99


def test_sample_weights_belong_to_all_rows_that_were_read():
    network = BayesianNetwork({"a": []}, {"a": ["x", "y"]})
    table = {"a": ["x", None, "y", "y"]}
    fit = robustbn.MaximumLikelihoodEstimator(network, on_missing="drop")
    assert fit.fit(table, sample_weight=[1, 100, 2, 3]).counts_.tolist() == [1, 5]
    with pytest.raises(DataError, match=r"one weight per row, shape \(4,\); found shape \(3,\)"):
        fit.fit(table, sample_weight=[1, 2, 3])


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_another_index_or_order_of_columns_changes_nothing(frame, changed):
    fit, dirty, _ = changed
    table = to_frame(dirty[:2000], fit.network_).iloc[:, ::-1]
    table = (
        table.set_index(np.arange(len(table))[::-1]) if frame == "pandas" else pl.from_pandas(table)
    )
    np.testing.assert_array_equal(fit.weights(table), fit.row_weights_[:2000])
