"""Names and context of rows on a Dask cluster are those of the same rows in memory."""

from __future__ import annotations

import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import robustbn
from robustbn._rows.dask import rows as dask_rows
from robustbn.exceptions import ContextWarning, DataError
from tests.promises.test_aside import feeds, many_files, write_text  # noqa: F401 - fixtures

SETTINGS = {"id": "uid", "keep": ["sensor"], "random_state": 0}


@pytest.fixture(scope="module")
def in_memory(feeds):  # noqa: F811
    network, frame = feeds
    return robustbn.fit(network, frame, **SETTINGS)


def assert_same(found, expected):
    for p_value in (0.01, 1e-9, 0.9):
        pd.testing.assert_frame_equal(
            found.where(p_value), expected.where(p_value), check_exact=True
        )
    assert found.rows()["uid"].tolist() == expected.rows()["uid"].tolist()
    assert found.rows()["sensor"].tolist() == expected.rows()["sensor"].tolist()
    asked = found.ask(5)
    assert asked["uid"].tolist() == expected.rows()["uid"][asked["row"]].tolist()


@pytest.mark.parametrize("n_partitions", [1, 9])
def test_a_dask_frame_tells_what_rows_in_memory_tell(cluster, feeds, in_memory, n_partitions):  # noqa: F811
    network, frame = feeds
    table = dd.from_pandas(frame, npartitions=n_partitions, sort=False)
    found = robustbn.fit(network, table, **SETTINGS)
    assert {"feed and day", "heat", "seen", "row number"} <= set(found.where()["column"])
    assert_same(found, in_memory)
    assert 'class="apart where"' in found.report()


def test_odd_values_are_told_on_dask_as_in_memory(cluster):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dose": rng.normal(50, 9, 3_000), "ill": rng.choice(["n", "y"], 3_000)})
    network = robustbn.fit([("dose", "ill")], frame, random_state=0).network_.with_cpts(None)
    frame["dose"] = frame["dose"].astype(object)
    frame.loc[1_500:1_539, "dose"] = "none"
    frame.loc[2_000:2_019, "dose"] = 999.0
    frame.loc[10:14, "ill"] = "?"
    settings = {"random_state": 0, "on_unknown": "missing"}
    table = dd.from_pandas(frame, npartitions=4, sort=False)
    clues = [
        sorted(robustbn.fit(network, each, **settings).result_.aside.clues.odd, key=str)
        for each in (table, frame)
    ]
    assert clues[0] == clues[1]
    assert [o.rows.tolist() for o in clues[0]] == [o.rows.tolist() for o in clues[1]]
    told = {
        (f.kind, f.columns, f.n_cells) for f in robustbn.fit(network, table, **settings).findings_
    }
    assert ("unreadable values", ("dose",), 40) in told
    assert ("unreadable values", ("ill",), 5) in told
    assert ("wrong cells", ("dose",), 20) in told


def test_files_and_bags_tell_it_too(cluster, feeds, many_files, in_memory):  # noqa: F811
    network, frame = feeds
    expected = robustbn.fit(network, many_files, **SETTINGS)
    assert_same(robustbn.fit(network, many_files, place="dask", **SETTINGS), expected)
    pieces = [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), 7)]
    batches = [pa.Table.from_pandas(piece, preserve_index=False) for piece in pieces]
    found = robustbn.fit(network, db.from_sequence(batches, npartitions=3), **SETTINGS)
    assert_same(found, in_memory)


def test_rows_that_are_left_out_are_not_counted(cluster, feeds):  # noqa: F811
    network, frame = feeds
    frame = frame.copy()
    frame.loc[frame.index[::7], network.nodes[0]] = None
    settings = {**SETTINGS, "on_missing": "drop"}
    expected = robustbn.fit(network, frame, **settings)
    table = dd.from_pandas(frame, npartitions=5, sort=False)
    assert_same(robustbn.fit(network, table, **settings), expected)


def test_neither_trust_nor_names_of_all_rows_are_needed(cluster, feeds, in_memory, monkeypatch):  # noqa: F811
    network, frame = feeds
    monkeypatch.setattr(dask_rows, "MOST_WEIGHTS_FETCHED", 0)
    monkeypatch.setattr(dask_rows, "MOST_NAME_BYTES", 0)
    found = robustbn.fit(network, dd.from_pandas(frame, npartitions=4, sort=False), **SETTINGS)
    assert not hasattr(found, "row_weights_")
    pd.testing.assert_frame_equal(found.where(), in_memory.where(), check_exact=True)
    asked = found.ask(5)
    assert asked["uid"].tolist() == frame["uid"][asked["row"]].tolist()
    assert asked["uid"][0] in found.report()


def test_columns_are_chosen_or_refused(cluster, feeds, tmp_path):  # noqa: F811
    network, frame = feeds
    table = dd.from_pandas(frame, npartitions=3, sort=False)
    found = robustbn.fit(network, table, context=["feed"], random_state=0)
    assert set(found.where()["column"]) == {"feed", "row number", "feed and row number"}
    quiet = robustbn.fit(network, table, context=(), random_state=0)
    assert set(quiet.where()["column"]) == {"row number"}
    with pytest.raises(DataError, match="no column 'name', which id or keep names"):
        robustbn.fit(network, table, id="name")
    write_text(frame, tmp_path / "0.csv", lambda _: b"ok")
    write_text(frame, tmp_path / "1.csv", lambda k: b"\xff" if k == 9_000 else b"ok")
    with pytest.warns(ContextWarning, match="'note' cannot be read"):
        found = robustbn.fit(network, tmp_path, place="dask", random_state=0)
    assert "feed" in set(found.where()["column"])
