"""Rows of consecutive visits."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import robustbn
from robustbn import unroll
from robustbn.exceptions import DataError, SettingError

VISITS = {
    "who": ["a", "b", "a", "a", "b", "c"],
    "day": [1, 1, 3, 4, 9, 2],
    "x": ["1", "2", "3", "4", "5", "6"],
    "y": [1.5, 2.5, None, 4.5, 5.5, 6.5],
}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_each_visit_stands_beside_the_one_before(kind):
    found = unroll(kind(VISITS), id="who", time="day")
    assert isinstance(found, pa.Table if kind in (dict, pa.table) else kind)
    lines = pa.table(found) if kind is pl.DataFrame else found
    lines = pa.Table.from_pandas(found) if kind is pd.DataFrame else lines
    assert lines["who"].to_pylist() == ["a", "a", "b"]
    assert lines["x"].to_pylist() == ["3", "4", "5"]
    assert lines["x@-1"].to_pylist() == ["1", "3", "2"]
    assert lines["y@-1"].to_pylist() == [1.5, None, 2.5]


def test_more_visits_and_fewer_columns_may_be_looked_back_on():
    found = unroll(pd.DataFrame(VISITS), id="who", time="day", lags=2, columns=["x"])
    assert list(found) == ["who", "day", "x", "y", "x@-1", "x@-2"]
    assert found.iloc[0].tolist() == ["a", 4, "4", 4.5, "3", "1"]
    assert len(found) == 1


def test_times_may_be_dates():
    dates = [datetime.date(2024, 7, day) for day in VISITS["day"]]
    for times in (dates, pd.to_datetime(dates), [date.isoformat() for date in dates]):
        assert len(unroll(pd.DataFrame({**VISITS, "day": times}), id="who", time="day")) == 3


def test_a_chain_is_learned_from_its_visits():
    chain = robustbn.BayesianNetwork(
        {"x@-1": [], "x": ["x@-1"]},
        {"x@-1": ["ill", "well"], "x": ["ill", "well"]},
        {"x@-1": [0.25, 0.75], "x": [[0.7, 0.3], [0.1, 0.9]]},
    )
    rng, states = np.random.default_rng(0), np.zeros((2_000, 6), int)
    states[:, 0] = rng.random(2_000) < 0.75
    for t in range(1, 6):
        ill = chain.cpts["x"][states[:, t - 1], 0]
        states[:, t] = rng.random(2_000) >= ill
    visits = pd.DataFrame({
        "who": np.repeat(np.arange(2_000), 6),
        "day": np.tile(np.arange(6), 2_000),
        "x": np.array(["ill", "well"])[states.ravel()],
    })  # fmt: skip
    rows = unroll(visits, id="who", time="day")
    assert len(rows) == 10_000
    fit = robustbn.fit([("x@-1", "x")], rows, random_state=0, context=())
    np.testing.assert_allclose(fit.network_.cpts["x"], chain.cpts["x"], atol=0.03)


@pytest.mark.parametrize(
    ("changes", "settings", "error", "message"),
    [
        ({"day": [1, 1, 5, 4, 9, 2]}, {}, DataError, "Row 3: who = a was seen after 5 at 4.*sort"),
        (
            {"day": [1, 1, 3, 3, 9, 2]},
            {},
            DataError,
            "who = a was seen twice at 3.*keep one",
        ),
        ({"day": [1, 1, 3, None, 9, 2]}, {}, DataError, "'day' is empty in row 3"),
        ({"who": ["a", None, "a", "a", "b", "c"]}, {}, DataError, "'who' is empty in row 1"),
        ({"x@-1": list("abcdef")}, {}, DataError, "There is a column"),
        ({}, {"lags": 5}, DataError, "No who has 6 visits"),
        ({}, {"lags": 0}, SettingError, "from 1 to 100; found 0"),
        ({}, {"lags": 1.5}, SettingError, "found 1.5"),
        ({}, {"lags": True}, SettingError, "found True"),
        ({}, {"id": "whom"}, DataError, "no column 'whom'; the table has 'who'"),
        ({}, {"time": "who"}, DataError, "both 'who'"),
        ({}, {"columns": ["z"]}, DataError, "no column 'z'"),
    ],
)
def test_visits_that_cannot_be_put_in_order_are_refused(changes, settings, error, message):
    for frame in (pd.DataFrame({**VISITS, **changes}), pl.DataFrame({**VISITS, **changes})):
        with pytest.raises(error, match=message):
            unroll(frame, **{"id": "who", "time": "day", **settings})


def test_what_is_no_frame_is_refused():
    with pytest.raises(DataError, match="found str"):
        unroll("visits.csv", id="who", time="day")
