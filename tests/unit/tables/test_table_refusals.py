"""Tables, files and settings that do not fit are refused with what to do."""

from __future__ import annotations

import os
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustbn
from robustbn import MaximumLikelihoodEstimator, RobustEstimator, read_table
from robustbn.exceptions import ConstantColumnWarning, DataError, SmallSampleWarning
from tests.tables import (
    DROP,
    one_node,
    read_one,
)

# --- errors that say what to do -------------------------------------------------------------------


YES = ["no", "yes"]


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ({"b": [1]}, {}, r"lacks 1 of the network's columns: 'a'. It has 'b'. Add the column, or"),
        ({" A": ["no"]}, {}, r"lacks .*'a'. It has ' A'. Did you mean rename=\{' A': 'a'\}"),
        ({"b": [1]}, {"rename": {"c": "a"}}, r"rename=\{'c': 'a'\}: there is no column 'c'"),
        ({"b": [1]}, {"rename": {"b": "z"}}, "there is no node 'z'"),
        ({"a": [1], "b": [1]}, {"rename": {"b": "a"}}, "two columns for node 'a': number 0 and"),
        (pd.DataFrame([["no", "no"]], columns=["a", "a"]), {}, "two columns for node 'a'"),
        (
            {"a": ["no", "maybe", "maybe"]},
            {},
            r"The mapping, column 'a': 2 of 3 rows \(66.67%\) have a value that is not a state of "
            r"the node, the first at row 1: 'maybe'. States: 'no', 'yes'. .*labels=\{'a': .*"
            r"on_unknown='drop'",
        ),
        ({"a": ["yess"]}, {}, r"Did you mean 'yes' by 'yess'\? Say so with labels=\{'a'"),
        ({"a": ["YES"]}, {}, "differ from a state only in case: use ignore_case=True"),
        ({"a": [0, 1]}, {}, r"positions of the states: .*codes=True, .*\{'a': \{0: 'no', 1: 'yes'"),
        ({"a": [0.0, 1.0]}, {}, r"positions of the states: .*codes=True"),
        ({"a": ["0", "1"]}, {}, r"positions of the states: .*codes=True"),
        ({"a": np.arange(99) / 7}, {}, r"look continuous: .* bins=\{'a': \[...\]\}, 1 inner edge"),
        (np.array([[0.5]]), {}, r"Code 0.5 at row 0.*bins=\{'a': \[...\]\} or bins=\{'a': 'q2'\}"),
        (np.array([[2]]), {}, r"Code 2 at row 0, column 0 \('a'\) .* 0 to 1. .*codes=False"),
        (
            {"a": [None]},
            {"on_missing": "error"},
            r"1 of 1 rows \(100.00%\) have no value, .* row 0\..*on_missing='drop'",
        ),
        (
            {"a": ["no", "?"]},
            {"on_unknown": "missing", "on_missing": "error"},
            "'a': 1 of 2 rows .* have no value or an unknown one, the first at row 1",
        ),
        ({"a": [[1], [2]]}, {}, r"not a state of the node, the first at row 0: '\[1\]'"),
        ({"a": ["no"]}, {"labels": {"z": {}}}, "labels names 'z', which the network does not have"),
        (
            {"a": ["no"]},
            {"labels": {"a": {1: "on"}}},
            r"labels\['a'\] leads to 'on', which is not a state",
        ),
        ({"a": ["no"]}, {"labels": {"a": {1: "no"}}, "bins": {"a": [1]}}, "both bins and labels"),
        ({"a": [1]}, {"bins": {"z": [1]}}, "bins names 'z', which the network does not have"),
        (
            {"a": [1]},
            {"bins": {"a": [1, 2]}},
            r"bins\['a'\] cuts into 3 intervals .* 2 states: 'no'",
        ),
        (
            pa.table({"a": [1]}).to_reader(),
            {"bins": {"a": "q2"}},
            "can be read only once, so the intervals of 'a' cannot be found first: give .* edges",
        ),
        (np.zeros((2, 3)), {}, "has 3 columns; the network has 1 nodes"),
        (np.zeros(2), {}, "two dimensions.*found 1 dimension"),
        ([["no"], ["no", "yes"]], {}, "rows are not all equally long: they have 1 to 2 values"),
        ({"a": ["no"], "b": [1, 2]}, {}, "columns are not equally long"),
        ({"a": "no"}, {}, "Column 'a' of the mapping must be a list or an array; found str"),
        (pd.Series(YES, name="a"), {}, r"pandas Series is one column.*series.to_frame\(\)"),
        (pl.Series("a", YES), {}, r"polars Series is one column"),
        (None, {}, "A table is a data frame, an array, .* found NoneType"),
        (7, {}, "A table is a data frame, an array, .* found int"),
        ("select a from t", {}, "no such file or folder. For a query, .* connection=..."),
        ("select * from t", {}, "no file matches this pattern. For a query, .* connection=..."),
        (
            "select b",
            {"connection": sqlite3.connect(":memory:")},
            "The query fails: no such column",
        ),
        ("select b", {"connection": duckdb.connect()}, "The query fails: "),
        ("select 1", {"connection": 3}, "DuckDB connection, or one with a cursor.*found int"),
        ({"a": []}, {"connection": duckdb.connect()}, "the table is an SQL query; found dict"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(table, settings, message):
    with pytest.raises(DataError, match=message):
        read_table(table, one_node(*YES), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"on_unknown": "ignore"},
            "on_unknown is one of 'error', 'drop', 'missing'; found 'ignore'",
        ),
        (
            {"on_missing": "fill"},
            "on_missing is one of 'use', 'observed', 'state', 'drop', 'error'; found 'fill'",
        ),
        ({"bins": {"a": "5"}}, r"bins\['a'\] is a list of increasing inner edges.*'q5'.*Found '5'"),
        ({"bins": {"a": [2, 1]}}, r"increasing inner edges, .* Found \[2, 1\]"),
        ({"bins": 0}, "bins is a list .* Found 0"),
        ({"bins": {"a": None}}, r"bins\['a'\] is a list .* Found None"),
        ({"labels": {"a": ["x"]}}, r"labels\['a'\] is a mapping"),
        ({"rename": "a"}, "rename is a mapping"),
        ({"sep": "::"}, "sep is one character.*found '::'"),
        ({"encoding": "klingon"}, "encoding must be the name.*found 'klingon'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        read_table({"a": ["no"]}, one_node(*YES), **settings)


def test_a_share_of_ten_is_taken_for_ten_per_cent_and_refused():
    with pytest.raises(
        ValueError, match=r"contamination is the share .*found 10. Did you mean 0.10"
    ):
        robustbn.fit(one_node(*YES), {"a": YES * 50}, contamination=10)
    with pytest.raises(
        TypeError, match=r"fit\(\) has no setting 'epsilon'\. .*Its settings: .*bins"
    ):
        robustbn.fit(one_node(*YES), {"a": YES * 50}, epsilon=0.1)


def test_few_rows_and_constant_columns_are_told():
    with pytest.warns(
        SmallSampleWarning,
        match=r"4 rows are too few .* 1 free .* at least 20 rows are recommended",
    ):
        RobustEstimator(one_node(*YES), random_state=0).fit({"a": [*YES, *YES]})
    with pytest.warns(ConstantColumnWarning, match=r"Column 'a' is 'no' in every row.*n_eff = 0"):
        MaximumLikelihoodEstimator(one_node(*YES)).fit({"a": ["no"] * 100})


# --- files that are not what they seem ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", r"t.csv is empty \(0 bytes\): there is not even a header"),
        ("t.parquet", b"", "t.parquet is empty"),
        ("t.csv", b"\n\n", "t.csv has no header: all of its lines are blank"),
        ("t.csv", b"a;b\nno;1\n", r"t.csv has one column, 'a;b': .* separated by ';'. .* sep=';'"),
        ("t.tsv", b"a,b\nno,1\n", r"t.tsv has one column, 'a,b'.* sep=','"),
        ("t.csv", b"a\tb\nno\t1\n", r"t.csv has one column.* sep='\\t'"),
        ("t.csv", b"a,b\nno,1\nyes\nno,1\n", "Expected 2 columns, got 1: yes. A line has more or"),
        ("t.csv", b"a,b\nno,1\nyes\n", "its last line has 1 value instead of 2: yes. It is a foo"),
        ("t.csv", b"a,b\nno,1\nn" + b"o" * 200 + b",1,2\n\n", "its last line has 3 values inst"),
        ("t.csv", b"a,a\nno,1\n", "t.csv has two columns for node 'a': number 0 and number 1"),
        ("t.csv", b"b\nno\n", "t.csv lacks 1 of the network's columns: 'a'"),
        ("t.csv", "a,b\né,1\n".encode("latin-1"), "another encoding; .* encoding='latin-1'"),
        (
            "t.csv",
            "a,é\nno,1\n".encode("latin-1"),
            "its header is not UTF-8. If it is text, it has",
        ),
        ("t.csv", b"\xff\xfea\x00,\x00b\x00\n\x00n", "another encoding"),
        (
            "t.csv",
            b"# 2024; mine\na,b\nno,1\n",
            "line 1 names 1 column, '# 2024; mine', while lines",
        ),
        (
            "t.csv",
            b"Report, 2024\n\nby me\na,b,c\nno,1,2\nno,1,2\n",
            "line 1 names 2 columns, 'Report', '2024', while lines 4 to 6 have 3 values each. "
            "Delete the lines before its header, name every column, or quote the values that",
        ),
        ("t.csv", b"a,b\nno,1,5\nno,2,5\n", "lines 2 to 3 have 3 values each.*quote the values"),
        ("t.csv", b"a;b\nno;1,5\nno;2,5\n", r"t.csv has one column, 'a;b': .* sep=';'"),
        (
            "t.csv.gz",
            b"a,b\nno,1\n",
            "t.csv.gz cannot be read: .*truncated, or not be what its name",
        ),
        ("t.parquet", b"PAR1 and no more", "t.parquet cannot be read: .*truncated, or not be"),
        ("t.feather", b"ARROW1 and no more", "t.feather cannot be read: .*truncated, or not be"),
        ("t.jsonl", b'{"a": "no"', "t.jsonl cannot be read: "),
        (
            "t.jsonl",
            b'{"a": "no"}\n{"a": 1}\n',
            "t.jsonl cannot be read: .*all text or all numbers",
        ),
        ("t.pkl", b"anything", "t.pkl is refused: files of this kind may run code"),
        ("t.joblib", b"anything", "t.joblib is refused"),
        ("t.xls", b"anything", r"t.xls is not a supported table format; supported are .csv"),
        ("t", b"anything", "is not a supported table format; supported are"),
    ],
)
def test_files_that_cannot_be_read_are_named_with_the_reason(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        MaximumLikelihoodEstimator(one_node(*YES)).fit(tmp_path / name)


def test_a_truncated_parquet_file_is_named(tmp_path):
    pq.write_table(pa.table({"a": ["no"] * 5000}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"t.parquet cannot be read: .*It may be truncated"):
        read_table(tmp_path / "t.parquet", one_node(*YES))


def test_an_error_in_the_middle_of_a_file_names_the_file(tmp_path):
    lines = "a,b\n" + "no,1\n" * 3_000_000 + "no\nno,1\n"
    (tmp_path / "t.csv").write_text(lines)
    with pytest.raises(DataError, match=r"t.csv cannot be read: .*Expected 2 columns"):
        read_table(tmp_path / "t.csv", one_node(*YES))


def test_folders_say_what_is_wrong_with_them(tmp_path):
    network = one_node(*YES)
    with pytest.raises(DataError, match="is a folder without files"):
        read_table(tmp_path, network)
    (tmp_path / "one.csv").write_text("a,b\nno,1\n")
    (tmp_path / "two.csv").write_text("b,c\n1,no\n")
    with pytest.raises(DataError, match=r"two.csv lacks 1 of the network's columns: 'a'"):
        read_table(tmp_path, network)
    with pytest.raises(DataError, match=r"no such file or folder. Did you mean .*one.csv"):
        read_table(tmp_path / "onee.csv", network)
    with pytest.raises(DataError, match=r"no file matches this pattern"):
        read_table(tmp_path / "*.parquet", network)
    (tmp_path / "three.tsv").write_text("a\nno\n")
    with pytest.raises(DataError, match=r"several kinds \(.csv, .tsv\). Name one, .*csv"):
        read_table(tmp_path, network)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\nno\n")
    path.chmod(0)
    with pytest.raises(DataError, match=r"t.csv: no permission to read it"):
        read_table(path, one_node(*YES))


@pytest.mark.parametrize("content", [b"a,b", b"a,b\n", b"a,b\r\n", b"\xef\xbb\xbfa,b\n"])
def test_a_header_without_rows_is_a_table_without_rows(content, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    read = read_table(tmp_path / "t.csv", one_node(*YES))
    assert (len(read), read.reading.n_read, read.reading.ignored) == (0, 0, ("b",))
    with pytest.raises(DataError, match=r"no rows \(N = 0\).*check the file"):
        MaximumLikelihoodEstimator(one_node(*YES)).fit(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\nno,1\nyes,2",
        b"\n\na,b\nno,1\n\nyes,2\n\n",
        b'"a",b\r\n"no",1\r\n yes ,2\r\n',
        b'"b\nc",a\n1,no\n2,yes\n',
        b"  a , b\nno,1\nyes,2\n",
    ],
)
def test_text_files_may_be_untidy(content, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    assert read_one(tmp_path / "t.csv", *YES) == ([0, 1], 0, 0)


def test_a_blank_line_of_one_column_is_a_missing_value(tmp_path):
    (tmp_path / "t.csv").write_text("a\nno\n\nyes\n")
    assert read_one(tmp_path / "t.csv", *YES, **DROP) == ([0, 1], 1, 0)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_in_utf_16_is_known_by_its_first_bytes(encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes("a,é\nno,1\nyes,ü\n".encode(encoding))
    read = read_table(tmp_path / "t.csv", one_node(*YES))
    assert read.codes[:, 0].tolist() == [0, 1]
    assert read.reading.ignored == ("é",)


def test_separator_and_encoding_are_kept_for_later_files(tmp_path):
    (tmp_path / "t.csv").write_bytes("a;b\nné;1\noui;2\n".encode("latin-1"))
    settings = {"sep": ";", "encoding": "latin-1"}
    table = read_table(tmp_path / "t.csv", one_node("né", "oui"), **settings)
    fit = MaximumLikelihoodEstimator(one_node("né", "oui")).fit(table)
    assert fit.log_likelihood(tmp_path / "t.csv") == pytest.approx(2 * np.log(0.5))


@pytest.mark.parametrize("estimator", [MaximumLikelihoodEstimator, RobustEstimator])
def test_weights_of_rows_that_were_left_out_alone_are_refused(estimator):
    network = robustbn.BayesianNetwork({"a": []}, {"a": ["x", "y"]})
    with pytest.raises(DataError, match="Every row with a weight above zero was left out"):
        estimator(network, on_missing="drop").fit(
            {"a": [None, "x", "y", "x"]}, sample_weight=[1, 0, 0, 0]
        )


def test_without_a_network_a_number_that_is_no_position_is_refused_at_once():
    with pytest.raises(DataError, match="the number 1,000,000,000,000 is not the position"):
        RobustEstimator().fit(np.array([[0], [10**12]]))


@pytest.mark.parametrize("place", [None, "stream"])
def test_a_path_in_place_of_a_network_is_refused_wherever_the_rows_are(place, tmp_path):
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "rows.parquet")
    with pytest.raises(TypeError, match="network must be a BayesianNetwork; found str"):
        RobustEstimator("net.bif", place=place).fit(tmp_path / "rows.parquet")


def test_dask_frames_are_refused_with_what_to_do():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"a": YES}), npartitions=1)
    with pytest.raises(DataError, match=r"Dask .*Call .compute\(\)"):
        read_table(frame, one_node(*YES))
