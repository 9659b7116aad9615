"""Promises of `where`: bad rows that gather somewhere are found there, honest ones nowhere."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import MaximumLikelihoodEstimator, RobustEstimator
from robustbn._core.origins import ContextColumn, Groups, Origin
from robustbn._core.protocols import Column
from robustbn._learn.origins import find_origins, log_tail
from robustbn._show.page.render import render_page
from robustbn._tables.context import ContextCoder, group_rows, join_raws
from robustbn.cli import main
from robustbn.exceptions import DataError
from tests.reports import HOSTILE, quick_report
from tests.tables import draw_feeds

N_ROWS = 20_000


@pytest.fixture(scope="module")
def feeds():
    network, frame, _, rng = draw_feeds(N_ROWS)
    frame["heat"] = rng.normal(20, 5, N_ROWS)
    return network, frame


@pytest.fixture(scope="module")
def fitted(feeds):
    network, frame = feeds
    return robustbn.fit(network, frame, random_state=0)


def line_of(found, column):
    return found[found["column"] == column].iloc[0]


def test_bad_rows_are_found_where_they_come_from(fitted):
    found = fitted.where()
    columns = ["column", "value", "rows", "distrusted", "rate", "ratio", "p_value"]
    assert list(found.columns) == columns
    assert set(found["column"]) == {"feed and day", "feed", "day", "row number"}
    first = found.iloc[0]
    assert first["column"] == "feed and day"
    assert first["value"].startswith("feed-3 and 2024-03-0")
    assert first["rate"] > 0.6
    assert line_of(found, "feed")["value"] == "feed-3"
    start, _, end = line_of(found, "day")["value"].partition(" to ")
    assert start in ("2024-03-06", "2024-03-07", "2024-03-08")
    assert end in ("2024-03-30", "2024-03-31")


def test_the_figures_are_the_counts_of_the_rows(feeds, fitted):
    _, frame = feeds
    line = line_of(fitted.where(), "feed")
    is_bad, is_there = fitted.row_weights_ < 0.5, (frame["feed"] == "feed-3").to_numpy()
    assert line["rows"] == is_there.sum()
    assert line["distrusted"] == (is_bad & is_there).sum()
    assert line["rate"] == pytest.approx(is_bad[is_there].mean())
    assert line["ratio"] == pytest.approx(is_bad[is_there].mean() / is_bad.mean())


def test_lines_are_in_the_order_of_their_p_values():
    rng = np.random.default_rng(0)
    n = 5_000
    feed, team = rng.integers(0, 4, n), rng.integers(0, 6, n)
    rate = np.where((feed == 3) & (team == 5), 0.5, np.where(feed == 3, 0.12, 0.05))
    trust = (rng.random(n) > rate).astype(float)
    columns = [
        ContextColumn(Groups(name, tuple(map(str, range(6)))), codes.astype(np.int16))
        for name, codes in (("feed", feed), ("team", team))
    ]
    found = find_origins(columns, trust)
    assert [origin.column for origin in found] == ["feed and team", "feed", "team"]
    assert 0 < found[0].p_value < found[1].p_value < found[2].p_value
    bad = trust < 0.5
    both = (feed == 3) & (team == 5)
    n_tests = 2 * 7 + 1 + 100 * 101 / 2  # values and missing ones; stretches of the row number
    tail = math.exp(log_tail(int(bad[both].sum()), int(both.sum()), float(bad.mean())))
    assert found[0].p_value == pytest.approx(tail * n_tests**2 / 2)


def test_files_tell_the_same_as_frames(feeds, fitted, tmp_path):
    network, frame = feeds
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = fitted.where().to_dict()
    for name in ("rows.csv", "rows.parquet"):
        fit = robustbn.fit(network, tmp_path / name, random_state=0)
        assert fit.where().to_dict() == expected


def test_context_is_chosen_or_left_out(feeds):
    network, frame = feeds

    def names(**settings):
        table = robustbn.read_table(frame, network, **settings)
        return [column.name for column in table.aside.context]

    assert names() == ["feed", "day", "sensor", "heat"]
    assert names(context=["day"]) == ["day"]
    assert names(context=()) == []
    assert names(id="sensor") == ["feed", "day", "heat"]
    with pytest.raises(DataError, match="no column 'nowhere'"):
        names(context=["nowhere"])
    with pytest.raises(DataError, match="is a node"):
        names(context=[network.nodes[0]])


def test_counting_reads_the_columns_of_the_network_only(feeds, monkeypatch):
    network, frame = feeds

    def refuse(*_):
        raise AssertionError("context was read")

    monkeypatch.setattr(ContextCoder, "code", refuse)
    MaximumLikelihoodEstimator(network).fit(frame)
    with pytest.raises(AssertionError):
        RobustEstimator(network).fit(frame)


def test_the_file_of_a_row_is_context(feeds, tmp_path):
    network, frame = feeds
    frame = frame.sort_values("feed", kind="stable").drop(columns=["feed", "uid"])
    bounds = np.linspace(0, N_ROWS, 5).astype(int)
    for kind in ("csv", "parquet"):
        folder = tmp_path / kind
        folder.mkdir()
        for k in range(4):
            part = frame.iloc[bounds[k] : bounds[k + 1]]
            path = folder / f"{k}.{kind}"
            part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
        fit = robustbn.fit(network, folder, random_state=0)
        assert line_of(fit.where(), "file name")["value"] == f"2.{kind}"


def test_rows_that_were_left_out_are_not_counted(feeds):
    network, frame = feeds
    frame = frame.copy()
    frame.loc[frame.index[:100], network.nodes[0]] = None
    fit = robustbn.fit(network, frame, on_missing="drop", random_state=0)
    is_there = (frame["feed"] == "feed-3").to_numpy()
    assert line_of(fit.where(), "feed")["rows"] == is_there[100:].sum()


def test_a_model_from_a_file_does_not_know_where(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    loaded = RobustEstimator.load(tmp_path / "model.json")
    with pytest.raises(robustbn.exceptions.NotFittedError, match="does not contain the rows"):
        loaded.where()


# --- statistics -----------------------------------------------------------------------------------


def groups(codes, **settings):
    labels = tuple(str(k) for k in range(codes.max() + 1))
    return ContextColumn(Groups("c", labels, **settings), codes.astype(np.int16))


def test_chance_alone_is_hardly_ever_named():
    """At level 0.01, with Bonferroni's correction: less than 1 in 100 of honest tables."""
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(200):
        weights = (rng.random(5_000) > 0.05).astype(np.float32)
        columns = [groups(rng.integers(0, 50, 5_000)) for _ in range(3)]
        columns.append(groups(rng.integers(0, 30, 5_000), is_ordered=True))
        named += bool(find_origins(columns, weights))
    assert named <= 5


def test_the_tail_is_that_of_the_binomial():
    stats = pytest.importorskip("scipy.stats")
    for k, r, q in [(1, 10, 0.05), (60, 100, 0.5), (300, 2_000, 0.1), (40, 1_000_000, 1e-5)]:
        expected = stats.binom.logsf(k - 1, r, q)
        assert log_tail(k, r, q) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert log_tail(900, 1_000, 0.1) < -1_000
    assert math.isfinite(log_tail(1_000, 1_000, 0.1))


def test_neighbouring_stretches_are_one_line():
    weights = np.ones(10_000, np.float32)
    weights[3_000:4_500] = 0
    (found,) = find_origins([], weights)
    assert (found.column, found.value) == ("row number", "3,000 to 4,499")
    assert (found.n_rows, found.n_distrusted) == (1_500, 1_500)
    assert str(found).startswith("100.0 % of the 1,500 rows with row number from 3,000 to 4,499")


def test_what_is_missing_can_be_where():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 9, 10_000)
    weights = np.where((codes == -1) & (rng.random(10_000) < 0.5), 0.0, 1.0)
    for is_ordered in (False, True):
        assert find_origins([groups(codes, is_ordered=is_ordered)], weights)[0].value == "(missing)"


def test_nothing_distrusted_is_nowhere():
    assert find_origins([], np.ones(100)) == []
    assert find_origins([], np.zeros(100)) == []


# --- columns in groups ----------------------------------------------------------------------------


def read(values, is_text=False):
    coder, raws = ContextCoder("c", is_text), []
    array = np.asarray(values)
    for start in range(0, len(array), 500):
        part = array[start : start + 500]
        if is_text:
            labels = list(dict.fromkeys(part.tolist()))
            part_codes = np.array([labels.index(v) for v in part.tolist()])
            raws.append(coder.code(Column(part_codes, labels)))
        else:
            raws.append(coder.code(Column(part)))
    return group_rows(join_raws("c", raws))


@pytest.mark.parametrize(
    ("step", "first", "n_groups"),
    [("10min", "2024-01-01 00:00", 334), ("1h", "2024-01-01", 84), ("12h", "2024-01", 33)],
)
def test_times_go_by_the_period_that_fits(step, first, n_groups):
    times = pd.date_range("2024-01-01", periods=2_000, freq=step)
    for column in (read(times.to_numpy()), read(times.astype(str).to_numpy(object), is_text=True)):
        assert column.groups.is_ordered
        assert column.groups.labels[0] == first
        assert len(column.groups.labels) == n_groups
        assert (np.diff(column.codes.astype(int)) >= 0).all()


def test_moments_of_a_time_zone_are_told_in_utc_and_stay_states(tmp_path):
    times = pd.date_range("2024-01-01 23:30", periods=5, freq="D", tz="Europe/Berlin")
    frame = pd.DataFrame({"rain": ["no", "yes"] * 500, "seen": times[np.arange(1_000) % 5]})
    network = robustbn.BayesianNetwork({"rain": []}, {"rain": ["no", "yes"]})
    frame.to_parquet(tmp_path / "rows.parquet")
    for table in (frame, pa.Table.from_pandas(frame), tmp_path / "rows.parquet"):
        (seen,) = robustbn.read_table(table, network).aside.context
        assert seen.groups.labels == tuple(f"2024-01-0{k}" for k in range(1, 6))
        assert (seen.codes == np.arange(1_000) % 5).all()
        of_times = robustbn.BayesianNetwork({"seen": []}, {"seen": list(times)})
        assert (robustbn.read_table(table, of_times).codes[:, 0] == np.arange(1_000) % 5).all()


def test_numbers_go_by_tenths():
    rng = np.random.default_rng(0)
    values = rng.normal(size=3_000)
    values[:50] = np.nan
    column = read(values)
    assert len(column.groups.labels) == len(column.groups.ends) == 10
    assert column.groups.is_ordered
    assert (column.codes[:50] == -1).all()
    assert np.bincount(column.codes[50:]).min() > 280


def test_whole_numbers_and_words_go_by_value():
    column = read(np.arange(2_000) % 300)
    assert column.groups.labels == tuple(str(k) for k in range(300))
    assert (column.codes == np.arange(2_000) % 300).all()
    words = read([f"w{k % 7}" for k in range(2_000)], is_text=True)
    assert words.groups.labels == tuple(f"w{k}" for k in range(7))
    assert not words.groups.is_ordered
    zeros = read(["007", "010", "NA", ""] * 10, is_text=True)
    assert zeros.groups.labels == ("007", "010")
    assert zeros.codes[:4].tolist() == [0, 1, -1, -1]


def test_names_and_lists_are_no_context():
    assert read([f"w{k}" for k in range(2_000)], is_text=True) is None
    lists = np.empty(2, object)
    lists[:] = [[1], [2]]
    assert read(lists) is None
    assert read(["same"] * 10, is_text=True) is None


# --- where it is told -----------------------------------------------------------------------------


def test_the_terminal_and_json_say_where(feeds, tmp_path):
    network, frame = feeds
    network.write(tmp_path / "net.json")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["fit", str(tmp_path / "net.json"), str(tmp_path / "rows.csv")]
    told = CliRunner().invoke(main, arguments)
    assert told.exit_code == 0, told.output
    assert "rows with feed = feed-3 and day from 2024-03-0" in told.output
    told = CliRunner().invoke(main, [*arguments, "--json", "--context", "feed"])
    assert set(where_of_rows(told)) <= {"feed", "line"}
    told = CliRunner().invoke(main, [*arguments, "--json", "--context", "none"])
    assert set(where_of_rows(told)) == {"line"}


def where_of_rows(told):
    """The place of the first finding about rows."""
    findings = json.loads(told.stdout)["findings"]
    return next(each["where"] for each in findings if each["kind"] == "rows")


def test_the_page_shows_where_and_escapes_it(fitted, sprinkler):
    page = fitted.report()
    assert 'class="apart where"' in page
    assert '<td class="label">feed-3</td>' in page
    parts = tuple((text, text, text) for text in HOSTILE[:2])
    hostile = render_page(
        quick_report(sprinkler, origins=[Origin(parts, 100, 90, 0.1, 1e-9, 50.0)])
    )
    assert "<script>alert" not in hostile
    assert "<img src=x" not in hostile
    assert 'class="apart where"' not in render_page(quick_report(sprinkler))
