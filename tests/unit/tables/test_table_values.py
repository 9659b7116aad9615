"""Which state, interval or code a value of a table stands for."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator, read_table
from robustbn._tables.values import MISSING, UNKNOWN, StateFinder
from robustbn.exceptions import DataError
from tests.tables import (
    DROP,
    one_node,
    read_one,
)

# --- which state a value stands for ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "value", "state"),
    [
        (["no", "yes"], "yes", "yes"),
        (["no", "yes"], " yes ", "yes"),
        (["no", "yes "], "yes", "yes "),
        (["no", "yes"], "Yes", UNKNOWN),
        (["no", "yes"], b"yes", "yes"),
        (["no", "yes"], b"\xff", UNKNOWN),
        (["no", "yes"], np.str_("yes"), "yes"),
        (["no", "yes"], True, UNKNOWN),
        (["no", "yes"], 1, UNKNOWN),
        (["no", "yes"], [1], UNKNOWN),
        (["no", "yes"], None, MISSING),
        (["None", "yes"], None, MISSING),
        (["nan", "yes"], float("nan"), MISSING),
        (["<NA>", "yes"], pd.NA, MISSING),
        (["NaT", "yes"], pd.NaT, MISSING),
        (["NaT", "yes"], np.datetime64("NaT"), MISSING),
        (["a", "b"], np.ma.masked, MISSING),
        (["a", "b"], Decimal("NaN"), MISSING),
        (["a", "b"], "NA", UNKNOWN),
        ([0, 1], 1, 1),
        ([0, 1], 1.0, 1),
        ([0, 1], "1", 1),
        ([0, 1], "1.0", 1),
        ([0, 1], " 1 ", 1),
        ([0, 1], "+1", 1),
        ([0, 1], "1e0", 1),
        ([0, 1], "01", UNKNOWN),
        ([0, 1], "1_", UNKNOWN),
        ([0, 1], True, 1),
        ([0, 1], np.bool_(False), 0),
        ([0, 1], np.float32(1), 1),
        ([0, 1], Decimal("1.00"), 1),
        ([0, 1], 1.5, UNKNOWN),
        ([0, 1], float("inf"), UNKNOWN),
        ([0, 1], "9" * 5000, UNKNOWN),
        (["0", "1"], True, "1"),
        (["0", "1"], 1.0, "1"),
        (["0", "1"], Decimal(1), "1"),
        (["01", "02"], 1, UNKNOWN),
        (["01", "1"], "01", "01"),
        (["01", "1"], 1, "1"),
        ([0.1, 0.2], "0.1", 0.1),
        ([0.1, 0.2], Decimal("0.1"), 0.1),
        ([2**53, 2**53 + 1], "9007199254740993", 2**53 + 1),
        ([2**63, 0], np.uint64(2**63), 2**63),
        ([float("inf"), 0], float("inf"), float("inf")),
        ([float("inf"), 0], Decimal("Infinity"), float("inf")),
        ([float("inf"), 0], "1e999", UNKNOWN),
        ([True, False], 1, True),
        ([True, False], "true", True),
        ([True, False], "1", True),
        (["TRUE", "FALSE"], False, "FALSE"),
        (["TRUE", "FALSE"], "true", "TRUE"),
        (["TRUE", "FALSE"], 1, UNKNOWN),
        (["1", "True"], True, "True"),
        (["1", "1.0"], "1", "1"),
        (["1", "1.0"], "1.0", "1.0"),
        (["1", "1.0"], 1, UNKNOWN),
        (["a", " a"], "a", "a"),
        (["a", " a"], " a", " a"),
        (["a", " a"], "a ", UNKNOWN),
        (["2024-05-31", "x"], dt.date(2024, 5, 31), "2024-05-31"),
        (["2024-05-31", "x"], dt.datetime(2024, 5, 31), "2024-05-31"),
        (["2024-05-31", "x"], pd.Timestamp("2024-05-31"), "2024-05-31"),
        (["2024-05-31", "x"], np.datetime64("2024-05-31", "ns"), "2024-05-31"),
        (["2024-05-31", "x"], dt.datetime(2024, 5, 31, 12), UNKNOWN),
        (["2024-05-31 12:00", "x"], dt.datetime(2024, 5, 31, 12), "2024-05-31 12:00"),
        ([dt.date(2024, 5, 31), "x"], "2024-05-31", dt.date(2024, 5, 31)),
        ([dt.date(2024, 5, 31), "x"], pd.Timestamp("2024-05-31"), dt.date(2024, 5, 31)),
        (["2024-06-31", "x"], "2024-06-31", "2024-06-31"),
        ([("a", 1), "x"], ("a", 1), ("a", 1)),
    ],
)
def test_a_value_stands_for_the_state_that_the_rules_say(states, value, state):
    code = state if state in (MISSING, UNKNOWN) and state not in states else states.index(state)
    assert StateFinder(states).find(value) == code


@pytest.mark.parametrize(
    ("states", "value", "state"),
    [
        (["no", "yes"], "YES", "yes"),
        (["No", "yes"], " no ", "No"),
        (["yes", "Yes"], "Yes", "Yes"),
        (["yes", "Yes"], "YES", UNKNOWN),
        (["nan", "None"], None, MISSING),
    ],
)
def test_case_is_ignored_only_where_it_leaves_one_state(states, value, state):
    code = states.index(state) if state in states else state
    assert StateFinder(states, ignore_case=True).find(value) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("f", 1),
        (" f ", 1),
        ("m", 0),
        (1, 0),
        ("1", 0),
        (1.0, 0),
        (2, 1),
        ("male", 0),
        (3, UNKNOWN),
        (None, 1),
        (float("nan"), 1),
    ],
)
def test_labels_come_first_and_follow_the_same_rules(value, code):
    labels = {"m": "male", "f": "female", 1: "male", "2": "female", None: "female"}
    assert StateFinder(["male", "female"], labels).find(value) == code


@pytest.mark.parametrize(
    "table",
    [
        {"a": ["x", None, "y"]},
        pd.DataFrame({"a": pd.Categorical(["x", None, "y"])}),
        pd.DataFrame({"a": pd.array(["x", None, "y"], "string")}),
        pl.DataFrame({"a": ["x", None, "y"]}, schema={"a": pl.Categorical}),
        pl.DataFrame({"a": ["x", None, "y"]}),
        pa.table({"a": pa.array(["x", None, "y"]).dictionary_encode()}),
    ],
)
def test_a_label_for_missing_values_holds_in_every_kind_of_table(table):
    assert read_one(table, "x", "y", labels={"a": {None: "y"}}) == ([0, 1, 1], 0, 0)


@pytest.mark.parametrize("words", [["", "NA", "None", "nan", "null", " NULL ", "N/A", "<NA>"]])
def test_words_for_missing_are_missing_in_text_files_only(words, tmp_path):
    pd.DataFrame({"a": [*words, "x"], "b": 1}).to_csv(tmp_path / "t.csv", index=False)
    assert read_one(tmp_path / "t.csv", "x", "y", **DROP) == ([0], len(words), 0)
    assert read_one([*words, "x"], "x", "y", **DROP) == ([0], 0, len(words))


def test_a_state_that_is_such_a_word_is_a_state(tmp_path):
    pd.DataFrame({"a": ["NA", "None", "", "x", "null"], "b": 1}).to_csv(
        tmp_path / "t.csv", index=False
    )
    read = read_one(tmp_path / "t.csv", "NA", "None", "", "x", **DROP)
    assert read == ([0, 1, 2, 3], 1, 0)


@pytest.mark.parametrize("states", [[0, 1], ["0", "1"], [False, True], ["false", "TRUE"], [0.0, 1]])
def test_truth_values_stand_for_numbers_and_words(states):
    for table in (
        pd.DataFrame({"a": [True, False]}),
        pd.DataFrame({"a": pd.array([True, False], "boolean")}),
        pl.DataFrame({"a": [True, False]}),
        pa.table({"a": [True, False]}),
        pd.DataFrame({"a": np.array([True, False], object)}),
        {"a": np.array([True, False])},
    ):
        assert read_one(table, *states) == ([1, 0], 0, 0)


def test_truth_values_are_no_yes_and_no():
    with pytest.raises(DataError, match=r"True.*States: 'no', 'yes'.*labels=\{'a': \{0: 'no', 1"):
        read_one([True, True], "no", "yes")
    labels = {"a": {True: "yes", False: "no"}}
    assert read_one([True, False], "no", "yes", labels=labels) == ([1, 0], 0, 0)


@pytest.mark.parametrize(
    ("values", "states"),
    [
        (np.array([-100, 100], np.int8), range(-100, 101)),
        (np.array([-1, -128, 127], np.int8), range(-128, 128)),
        (np.array([2**64 - 1, 0], np.uint64), [0, 2**64 - 1]),
        (np.array([2**64 - 1, 2**64 - 2], np.uint64), [2**64 - 2, 2**64 - 1]),
        (np.array([-(2**63), 2**63 - 1]), [2**63 - 1, -(2**63)]),
        (np.array([-32768, 32767, 5], np.int16), [5, -32768, 32767]),
        (np.array([1e300, -0.5]), [-0.5, 1e300]),
        (np.array([1e300, 3], object), [3, 1e300]),
    ],
)
def test_numbers_of_any_size_are_told_apart(values, states):
    states = list(states)
    codes = [states.index(v) for v in values.tolist()]
    for table in (pd.DataFrame({"a": values}), {"a": values}, {"a": values.tolist()}):
        assert read_one(table, *states) == (codes, 0, 0)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.to_datetime(["2024-01-02", None, "2024-01-01"])}),
        pd.DataFrame({"a": [dt.date(2024, 1, 2), None, dt.date(2024, 1, 1)]}),
        pl.DataFrame({"a": [dt.date(2024, 1, 2), None, dt.date(2024, 1, 1)]}),
        pl.DataFrame({"a": [dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 1)]}),
        {"a": np.array(["2024-01-02", "NaT", "2024-01-01"], "M8[ns]")},
        {"a": np.array(["2024-01-02", "NaT", "2024-01-01"], "M8[D]")},
        pd.DataFrame({"a": ["2024-01-02", None, "2024-01-01"]}),
    ],
)
@pytest.mark.parametrize(
    "states", [["2024-01-01", "2024-01-02"], [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]]
)
def test_dates_stand_for_dates(table, states):
    assert read_one(table, *states, **DROP) == ([1, 0], 1, 0)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.array([1, None, 0], "Int64")}),
        pd.DataFrame({"a": [1, np.nan, 0]}),
        pd.DataFrame({"a": np.array([1, np.nan, 0], object)}),
        pd.DataFrame({"a": np.array([1, pd.NA, 0], object)}),
        pd.DataFrame({"a": np.array(["1", None, "0"], object)}),
        pd.DataFrame({"a": pd.array([True, None, False], "boolean")}),
        pd.DataFrame({"a": pd.Categorical([1, None, 0])}),
        pd.DataFrame({"a": pd.Categorical([1.0, None, 0.0])}),
        pd.DataFrame({"a": pd.arrays.SparseArray([1, np.nan, 0])}),
        pd.DataFrame({"a": pd.array([1, None, 0], pd.ArrowDtype(pa.int8()))}),
        pl.DataFrame({"a": [1, None, 0]}),
        pl.DataFrame({"a": [1.0, float("nan"), 0.0]}),
        pl.DataFrame({"a": pl.Series([Decimal(1), None, Decimal(0)])}),
        pa.table({"a": pa.array([1, None, 0], pa.uint64())}),
        pa.table({"a": [True, None, False]}),
        pa.table({"a": pa.array([1, None, 0], pa.decimal128(10, 2))}),
        pa.table({"a": pa.array([1, None, 0], pa.int8()).dictionary_encode()}),
        pa.table({"a": pa.DictionaryArray.from_arrays([1, 2, 0], pa.array([0, 1, None]))}),
        np.array([[1.0], [np.nan], [0.0]]),
        np.ma.array([[1], [7], [0]], mask=[[0], [1], [0]]),
        np.ma.array(np.array([[1], [7], [0]], np.uint8), mask=[[0], [1], [0]]),
        [[1], [None], [0]],
        {"a": np.ma.array([1, 7, 0], mask=[0, 1, 0])},
        [{"a": 1}, {"b": 3}, {"a": 0}],
    ],
    ids=lambda table: type(table).__name__,
)
def test_missing_values_of_every_kind_are_counted(table):
    read = read_table(table, one_node(0, 1), on_missing="drop")
    assert read.codes[:, 0].tolist() == [1, 0]
    assert read.kept.tolist() == [0, 2]
    assert read.reading.n_missing == {"a": 1}
    np.testing.assert_array_equal(read.spread(np.array([5.0, 6.0])), [5.0, np.nan, 6.0])
    with pytest.raises(DataError, match=r"column 'a': 1 of 3 rows \(33.33%\) have no value"):
        MaximumLikelihoodEstimator(one_node(0, 1), on_missing="error").fit(table)
    kept = read_table(table, one_node(0, 1))
    assert kept.codes[:, 0].tolist() == [1, 2, 0]
    assert (kept.kept, kept.holed, kept.reading.n_holes) == (None, (0,), 1)


@pytest.mark.parametrize("n_labels", [2, 256, 257, 300])
@pytest.mark.parametrize("nulls", [False, True])
def test_many_labels_may_stand_for_one_state(n_labels, nulls):
    """Labels that differ in blanks only, in categories of every size of number."""
    labels = [f"{'xy'[k % 2]}{' ' * (k // 2)}" for k in range(n_labels)]
    places = np.random.default_rng(0).integers(0, n_labels, 1000)
    codes = places % 2
    values = np.array(labels, object)[places]
    if nulls:
        values[::7], codes = None, np.delete(codes, np.s_[::7])
    n_missing = len(values) - len(codes)
    arrow = pa.array(values, pa.string()).dictionary_encode()
    for table in (
        pd.DataFrame({"a": pd.Categorical(values, labels)}),
        pl.DataFrame({"a": pl.Series(values.tolist(), dtype=pl.Categorical)}),
        pl.DataFrame({"a": pl.Series(values.tolist(), dtype=pl.Enum(labels))}),
        pa.table({"a": arrow}),
        {"a": values},
    ):
        assert read_one(table, "y", "x", **DROP) == ((1 - codes).tolist(), n_missing, 0)
        assert read_one(table, "x", "y", **DROP) == (codes.tolist(), n_missing, 0)


def test_dates_in_json_lines_are_dates(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": "2024-01-02"}\n{"a": "2024-01-01"}\n')
    assert read_one(tmp_path / "t.jsonl", "2024-01-01", "2024-01-02") == ([1, 0], 0, 0)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl"])
def test_numbers_in_files_are_states(suffix, tmp_path):
    frame, path = pd.DataFrame({"a": [2, 1, 2], "b": 0.5}), tmp_path / f"t{suffix}"
    if suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        (frame.to_parquet if suffix == ".parquet" else frame.to_feather)(path)
    assert read_one(path, 1, 2) == ([1, 0, 1], 0, 0)
    assert read_one(path, "1", "2", "3", codes=True) == ([2, 1, 2], 0, 0)


def test_a_category_may_be_missing_from_the_first_row_on():
    series = pl.Series([None, "y", None, "x"], dtype=pl.Categorical)
    assert read_one(pl.DataFrame({"a": series}), "x", "y", **DROP) == ([1, 0], 2, 0)


@pytest.mark.parametrize(
    "table",
    [
        {"a": [None, None]},
        pd.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": pd.Categorical([None, None], ["x"])}),
        pl.DataFrame({"a": [None, None]}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Categorical}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Enum(["x"])}),
        pa.table({"a": pa.nulls(2)}),
        pa.table({"a": pa.nulls(2, pa.dictionary(pa.int8(), pa.string()))}),
        pa.table({"a": pa.nulls(2, pa.string())}),
    ],
    ids=lambda table: type(table).__name__,
)
def test_a_column_may_be_missing_altogether(table):
    assert read_one(table, "x", "y", **DROP) == ([], 2, 0)
    with pytest.raises(DataError, match=r"no rows \(N = 0\)"):
        MaximumLikelihoodEstimator(one_node("x", "y"), on_missing="drop").fit(table)


# --- intervals ------------------------------------------------------------------------------------


NUMBERS = {
    "pandas": lambda v: pd.DataFrame({"a": v}),
    "nullable": lambda v: pd.DataFrame({"a": pd.array(v, "Float64")}),
    "objects": lambda v: pd.DataFrame({"a": np.array(v, object)}),
    "category": lambda v: pd.DataFrame({"a": pd.Categorical(v)}),
    "decimals": lambda v: {"a": [Decimal(x) for x in v]},
    "text": lambda v: {"a": [str(x) for x in v]},
    "polars": lambda v: pl.DataFrame({"a": v}),
    "lazy": lambda v: pl.LazyFrame({"a": v}),
    "arrow": lambda v: pa.table({"a": v}),
    "array": lambda v: np.array(v, float)[:, None],
    "DuckDB": lambda v: duckdb.connect().from_arrow(pa.table({"a": v})),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_cut_at_the_edges_and_an_edge_is_above(kind):
    values = [1.0, 17.5, 18.0, 64.0, 65.0, 99.0]
    for bins in ([18, 65], np.array([18.0, 65.0])):
        read = read_one(NUMBERS[kind](values), "young", "adult", "old", bins={"a": bins})
        assert read == ([0, 0, 1, 1, 2, 2], 0, 0)


@pytest.mark.parametrize("kind", NUMBERS)
def test_edges_are_found_in_every_kind_of_table(kind):
    values = np.random.default_rng(0).permutation(40).astype(float).tolist()
    expected = {"q4": np.quantile(values, [0.25, 0.5, 0.75]), 4: [9.75, 19.5, 29.25]}
    for bins, edges in expected.items():
        read = read_table(NUMBERS[kind](values), one_node(*"abcd"), bins={"a": bins})
        np.testing.assert_array_equal(read.reading.config.bins["a"], edges)
        np.testing.assert_array_equal(
            read.codes[:, 0], np.searchsorted(edges, values, side="right")
        )


def test_whole_numbers_and_text_in_a_file_are_cut_alike(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n7,x\n,x\n030,x\n1e2,x\nabc,x\n1_0,x\n")
    read = read_one(tmp_path / "t.csv", "lo", "mid", "hi", bins={"a": [18, 65]}, **DROP)
    assert read == ([0, 1, 2], 1, 2)
    with pytest.raises(
        DataError, match=r"'a': 2 of 6 rows .* is not a number, .* row 4: 'abc', '1_0'"
    ):
        read_one(tmp_path / "t.csv", "lo", "mid", "hi", bins={"a": "q3"})


def test_later_rows_are_cut_at_the_edges_found_in_fit():
    rng = np.random.default_rng(0)
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": range(4), "b": ["n", "y"]})
    frame = pd.DataFrame({"a": rng.normal(size=4000), "b": rng.choice(["n", "y"], 4000)})
    fit = RobustEstimator(network, bins={"a": "q4"}, random_state=0).fit(frame)
    edges = np.quantile(frame["a"], [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(fit.reading_.config.bins["a"], edges)
    later = frame[frame["a"] > 0.5]
    np.testing.assert_array_equal(fit.weights(later), fit.row_weights_[later.index])
    assert fit.log_likelihood(later) < 0
    coded = pd.DataFrame({"a": np.searchsorted(edges, later["a"], side="right"), "b": later["b"]})
    plain = RobustEstimator(network, random_state=0).fit(
        pd.DataFrame({"a": np.searchsorted(edges, frame["a"], side="right"), "b": frame["b"]})
    )
    assert fit.log_likelihood(later) == pytest.approx(plain.log_likelihood(coded))


def test_without_a_network_states_are_what_occurs(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n x,10\nx ,\ny,9\nNA,10\n")
    fit = MaximumLikelihoodEstimator(on_missing="drop").fit(tmp_path / "t.csv")
    assert dict(fit.network_.states) == {"a": ("x", "y"), "b": ("10", "9")}
    assert fit.reading_.n_missing == {"a": 1, "b": 1}
    frame = pd.DataFrame({"a": np.arange(300.0), "b": [0, 1] * 150})
    fit = MaximumLikelihoodEstimator(bins={"a": "q3"}).fit(frame)
    assert [len(s) for s in fit.network_.states.values()] == [3, 2]
    assert MaximumLikelihoodEstimator(bins=[10]).fit(frame).network_.states["a"] == (0, 1)
    with pytest.raises(DataError, match=r"column 'a': 300 different values .* bins='q5'"):
        MaximumLikelihoodEstimator().fit(frame)
    with pytest.raises(DataError, match="read only once"):
        MaximumLikelihoodEstimator().fit(pa.table({"a": ["x"]}).to_reader())
    table = read_table({"a": ["x", "y"]}, one_node("x", "y", "z"))
    assert MaximumLikelihoodEstimator().fit(table).network_.states["a"] == ("x", "y", "z")


# --- arrays of numbers ----------------------------------------------------------------------------


def test_numbers_in_arrays_are_codes_and_in_frames_states():
    assert read_one(np.array([[1], [0]]), "x", "y") == ([1, 0], 0, 0)
    assert read_one([1, 0], "x", "y", codes=True) == ([1, 0], 0, 0)
    assert read_one(["1", 0.0], "x", "y", codes=True) == ([1, 0], 0, 0)
    assert read_one([1, 2], 1, 2) == ([0, 1], 0, 0)
    assert read_one(np.array([[1], [2]]), 1, 2, codes=False) == ([0, 1], 0, 0)


@pytest.mark.parametrize(
    ("array", "states"),
    [
        (np.array([[1], [1]]), [1, 2]),
        (np.array([[1], [1]]), ["1", "0"]),
        (np.array([[True], [False]]), [True, False]),
        (np.array([[1.0]]), [1, 5]),
        (sp.csr_array(np.array([[True]])), [1, 0]),
        ([[1], [1]], [1, 2]),
    ],
)
def test_numbers_that_could_be_codes_or_other_states_are_refused(array, states):
    with pytest.raises(DataError, match=r"could be the state .* or the position of .*codes=False"):
        MaximumLikelihoodEstimator(one_node(*states)).fit(array)
    table = read_table(array, one_node(*states), codes=True)
    assert table.codes[0, 0] == 1


def test_uint8_arrays_are_codes_whatever_the_states():
    network = one_node(1, 2)
    codes = np.array([[1], [0]], np.uint8)
    assert MaximumLikelihoodEstimator(network).fit(codes).counts_.tolist() == [1, 1]
    assert read_table(codes, network).codes[:, 0].tolist() == [1, 0]
    labels = {"a": {7: 1, 9: 2}}
    table = read_table(np.array([[7], [9], [9]], np.uint8), network, labels=labels)
    fit = MaximumLikelihoodEstimator(network).fit(table)
    assert fit.counts_.tolist() == [1, 2]
    fit.log_likelihood(np.array([[7], [9]], np.uint8))  # read as in fit, by labels


def test_a_table_that_was_read_is_for_its_network_alone():
    table = read_table({"a": ["x"]}, one_node("x", "y"))
    assert MaximumLikelihoodEstimator(one_node("x", "y")).fit(table).counts_.tolist() == [1, 0]
    with pytest.raises(DataError, match="other nodes or states; read it again"):
        MaximumLikelihoodEstimator(one_node("y", "x")).fit(table)
