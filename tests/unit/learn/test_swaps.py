"""Columns whose values were swapped in some rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn import BayesianNetwork
from robustbn._learn import swap_search
from robustbn._learn.swap_screen import weigh_pairs
from robustbn._learn.swaps import Act, Labels, Numbers

N_ROWS = 4_000


def make_people(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, N_ROWS)
    height = rng.normal(170, 9, N_ROWS).round()
    weight = (height - 100 + rng.normal(0, 6, N_ROWS)).round()
    income = (age * 700 + rng.normal(0, 8_000, N_ROWS)).round(-2)
    smokes = rng.random(N_ROWS) < 0.3
    coughs = rng.random(N_ROWS) < np.where(smokes, 0.7, 0.1)
    return pd.DataFrame(
        {
            "age": age,
            "height": height,
            "weight": weight,
            "income": income,
            "smokes": np.where(smokes, "yes", "no"),
            "coughs": np.where(coughs, "yes", "no"),
        }
    )


Edges = list[tuple[str, str]]
EDGES: Edges = [("height", "weight"), ("age", "income"), ("smokes", "coughs")]


def find_swaps(frame: pd.DataFrame, edges: Edges = EDGES) -> list[robustbn.Finding]:
    fit = robustbn.fit(edges, frame, random_state=0)
    return [found for found in fit.findings_ if found.cause == "swapped columns"]


@pytest.mark.parametrize("share", [0.03, 0.05, 0.2])
def test_two_columns_of_numbers_that_were_swapped_are_named(share):
    frame = make_people()
    rows = np.random.default_rng(1).choice(N_ROWS, int(share * N_ROWS), replace=False)
    frame.loc[rows, ["height", "weight"]] = frame.loc[rows, ["weight", "height"]].to_numpy()
    [found] = find_swaps(frame)
    assert set(found.columns) == {"height", "weight"}
    assert found.n_rows == pytest.approx(share * N_ROWS, rel=0.2)
    assert found.kind == "rows"
    assert found.severity in ("error", "warning")
    told = found.sentence.split(" in rows ")[1].rstrip(".").replace(",", "").split()
    assert {int(row) for row in told} <= set(rows.tolist())


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
@pytest.mark.parametrize("share", [0.03, 0.1])
@pytest.mark.parametrize("edges", [EDGES, [*EDGES, ("smokes", "town")]])
def test_two_columns_of_labels_that_were_swapped_are_named(share, edges):
    frame = make_people()
    towns = np.random.default_rng(7).choice(["Bonn", "Cork", "Graz", "other"], N_ROWS)
    frame["smokes"] = frame["smokes"].where(np.arange(N_ROWS) % 50 > 0, "other")
    frame["town"] = towns
    edges = [*edges, ("town", "age")]
    assert not find_swaps(frame, edges)
    rows = np.random.default_rng(1).choice(N_ROWS, int(share * N_ROWS), replace=False)
    frame.loc[rows, ["smokes", "town"]] = frame.loc[rows, ["town", "smokes"]].to_numpy()
    found, *others = find_swaps(frame, edges)  # a group of these rows may be told, too
    assert all(set(each.columns) == {"smokes", "town"} for each in (found, *others))
    assert found.n_rows == pytest.approx(share * N_ROWS, rel=0.2)


def test_nothing_is_swapped_in_a_clean_table():
    assert not find_swaps(make_people())


def test_two_columns_that_say_nearly_the_same_are_not_swapped():
    frame = make_people()
    frame["income"] = frame["age"] + np.random.default_rng(4).integers(-1, 2, N_ROWS)
    assert not find_swaps(frame)


def test_an_edge_that_the_network_lacks_is_no_swap():
    frame = make_people()
    years = np.random.default_rng(5).integers(6, 18, N_ROWS)
    frame["age"], frame["income"] = years, 24 - years + np.random.default_rng(6).integers(0, 2)
    edges = [("height", "weight"), ("smokes", "coughs"), ("smokes", "age"), ("smokes", "income")]
    fit = robustbn.fit(edges, frame, random_state=0)
    assert not [found for found in fit.findings_ if found.cause == "swapped columns"]


def test_of_very_many_columns_those_near_each_other_are_tried(monkeypatch):
    d, tried = 100, list[tuple[int, int]]()
    network = BayesianNetwork({f"x{i}": [] for i in range(d)}, {f"x{i}": [0, 1] for i in range(d)})
    codes = np.zeros((50, d), np.uint8)
    columns = {i: Labels(np.zeros(50), np.array([0, 1]), 2) for i in range(d)}

    def screen(layout, codes, columns, pairs):
        tried.extend(pairs)
        return np.zeros((len(pairs), len(codes)), np.float32)

    monkeypatch.setattr(swap_search, "weigh_pairs", screen)
    swaps = swap_search.find_swaps(network.layout, codes, columns, np.ones(50, bool))
    assert swaps.found == []
    assert len(tried) == swap_search.MOST_PAIRS
    assert {(i, i + 1) for i in range(d - 1)} <= set(tried)


def test_swapped_rows_that_are_mostly_at_one_place_are_told_with_it():
    rng = np.random.default_rng(8)
    frame = make_people().assign(site=rng.choice([*"abcdef"], N_ROWS))
    rows = np.flatnonzero(frame["site"] == "c")[::3]
    [found] = find_swaps(swap_at(frame, rows, "height", "weight"))
    assert found.where == {"site": "c"}
    assert found.sentence.endswith(" They occur mostly where site is c.")
    rows = np.arange(0, N_ROWS, 20)
    [found] = find_swaps(swap_at(frame, rows, "height", "weight"))
    assert not found.where


# --- at a place -----------------------------------------------------------------------------------


def make_answers(n_places: int = 20, spread: float = 0.0) -> pd.DataFrame:
    """Return a survey: four answers, and who asked; natural differences between those who ask."""
    rng = np.random.default_rng(3)
    place = rng.integers(0, n_places, N_ROWS)
    tilts = rng.normal(0, spread, (4, n_places))[:, place]
    frame = pd.DataFrame(index=range(N_ROWS))
    odds = -1.5 + tilts[0]
    for k, name in enumerate(("smokes", "coughs", "works", "drives")):
        yes = rng.random(N_ROWS) < 1 / (1 + np.exp(-odds))
        frame[name] = np.where(yes, "yes", "no")
        odds = (-2.0, 0.5, 0.0, 0.0)[k] + (2.5, 0.8, 1.0, 0.0)[k] * yes + tilts[min(k + 1, 3)]
    return frame.assign(asked_by=[f"p{k}" for k in place])


ANSWERS: Edges = [("smokes", "coughs"), ("coughs", "works"), ("works", "drives")]


def swap_at(frame: pd.DataFrame, rows: object, one: str, other: str) -> pd.DataFrame:
    swapped = frame.copy()
    swapped.loc[rows, [one, other]] = frame.loc[rows, [other, one]].to_numpy()
    return swapped


@pytest.mark.parametrize("spread", [0.0, 0.3])
@pytest.mark.parametrize("pair", [("smokes", "works"), ("coughs", "drives")])
@pytest.mark.parametrize("n_places", [20, 50])
def test_labels_that_are_swapped_at_one_place_are_an_error_with_the_place(n_places, pair, spread):
    frame = make_answers(n_places, spread)
    assert not find_swaps(frame, ANSWERS)
    rows = frame["asked_by"] == "p7"
    fit = robustbn.fit(ANSWERS, swap_at(frame, rows, *pair), random_state=0)
    [found] = [each for each in fit.findings_ if each.severity != "note"]  # nothing else differs
    assert (found.severity, found.kind, found.cause) == ("error", "rows", "swapped columns")
    assert set(found.columns) == set(pair)
    assert found.where == {"asked_by": "p7"}
    assert found.n_rows == rows.sum()


@pytest.mark.parametrize(
    ("first", "last"), [("2023-03-01", "2023-05-31"), ("2023-03-01", "2023-03-31"), (None, None)]
)
def test_the_python_of_a_swap_at_a_place_puts_it_back(first, last):
    frame = make_answers()
    days = np.random.default_rng(0).integers(0, 730, N_ROWS)
    frame["day"] = (np.datetime64("2023-01-01") + days).astype(str)
    rows = frame["day"].between(first, last) if first else frame["asked_by"] == "p7"
    table = swap_at(frame, rows, "smokes", "works")
    [found] = find_swaps(table, ANSWERS)
    exec(found.advice.python, {"table": table})  # noqa: S102
    pd.testing.assert_frame_equal(table, frame)


def test_columns_that_are_swapped_at_two_places_are_told_of_both():
    frame = make_answers()
    table = swap_at(frame, frame["asked_by"].isin(["p7", "p9"]), "smokes", "works")
    found = find_swaps(table, ANSWERS)
    assert {each.where["asked_by"] for each in found} == {"p7", "p9"}


def test_columns_that_are_swapped_for_some_time_are_told_with_the_rows():
    frame = make_answers().drop(columns="asked_by")
    [found] = find_swaps(swap_at(frame, slice(1_000, 1_099), "smokes", "works"), ANSWERS)
    first, last = (int(row.replace(",", "")) for row in found.where["row number"].split(" to "))
    assert abs(first - 1_000) < 25
    assert abs(last - 1_099) < 25


@pytest.mark.parametrize("pair", [("height", "weight"), ("age", "income")])
def test_columns_that_are_swapped_at_one_site_for_some_months_are_told_with_both(pair):
    rng = np.random.default_rng(8)
    frame = make_people().assign(income=lambda frame: (frame["income"] // 1_000).astype(int))
    days = np.datetime64("2023-01-01") + rng.integers(0, 730, N_ROWS)
    frame = frame.assign(site=rng.choice([*"abcdef"], N_ROWS), day=days.astype(str))
    rows = (frame["site"] == "c") & frame["day"].between("2023-03-01", "2023-08-31")
    fit = robustbn.fit(EDGES, table := swap_at(frame, rows, *pair), random_state=0)
    told = [each for each in fit.findings_ if each.severity == "error" or "differs" in each.kind]
    [found] = told  # no unit, and no column that differs
    assert (found.severity, found.cause) == ("error", "swapped columns")
    assert set(found.columns) == {*pair}
    assert found.where["site"] == "c"
    assert len(found.where) == 2
    exec(found.advice.python, {"table": table})  # noqa: S102
    assert (table != frame).any(axis=1).sum() < 0.1 * rows.sum()


def test_numbers_that_are_swapped_at_one_place_are_told_with_the_place():
    frame = make_people().assign(site=np.random.default_rng(8).integers(0, 30, N_ROWS))
    table = swap_at(frame, frame["site"] == 4, "height", "weight")
    [found] = find_swaps(table)
    assert found.severity == "error"
    assert found.where == {"site": "4"}


@pytest.mark.parametrize("names", [["smokes"], ["smokes", "works"]])
def test_a_place_with_other_people_is_no_swap(names):
    """Of those who were asked there, as many say yes as to the other question elsewhere."""
    frame = make_answers()
    usual = {name: (frame[name] == "yes").mean() for name in ("smokes", "works")}
    wanted = {"smokes": usual["works"], "works": usual["smokes"]}
    weights = np.ones(N_ROWS)
    for name in names:
        ratio = wanted[name] / usual[name], (1 - wanted[name]) / (1 - usual[name])
        weights *= np.where(frame[name] == "yes", *ratio)
    rows = np.flatnonzero(frame["asked_by"] == "p7")
    people = frame.sample(len(rows), weights=weights, random_state=0)
    frame.loc[rows, [*frame.columns[:4]]] = people[[*frame.columns[:4]]].to_numpy()
    assert not find_swaps(frame, ANSWERS)


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
def test_columns_that_say_which_category_a_row_has_are_not_swapped():
    rng = np.random.default_rng(9)
    ended = rng.choice(4, N_ROWS, p=[0.32, 0.1, 0.17, 0.41])
    weeks = rng.gamma(2, np.array([3.0, 4.0, 4.0, 9.0])[ended])
    frame = pd.DataFrame({f"end{k}": (ended == k).astype(int) for k in range(4)}).assign(
        weeks=weeks
    )
    edges = [("weeks", "end3"), ("end3", "end0"), ("end3", "end1"), ("end3", "end2")]
    assert not find_swaps(frame, edges)


# --- the screen -----------------------------------------------------------------------------------


def test_all_pairs_are_weighed_at_once_as_each_is_by_itself():
    rng = np.random.default_rng(0)
    parents = {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c"], "e": []}
    network = BayesianNetwork(parents, {node: range(3) for node in parents})
    codes = rng.integers(0, 3, (500, 5)).astype(np.uint8)
    codes[:, 3] = np.where(rng.random(500) < 0.8, codes[:, 2], codes[:, 3])
    numbers = rng.normal(size=(500, 2)).round(2)
    edges = np.array([-0.5, 0.5])
    codes[:, :2] = np.searchsorted(edges, numbers, side="right")
    states = np.array([0, 1, 2, -1]), np.array([-1, 0, 1, 2])  # of the labels 0 to 3
    columns = {
        0: Numbers(numbers[:, 0], edges),
        1: Numbers(numbers[:, 1], edges),
        2: Labels(codes[:, 2].astype(float), states[0], 3),
        3: Labels(codes[:, 3].astype(float) + 1, states[1], 3),
        4: Labels(codes[:, 4].astype(float), states[0], 3),
    }
    pairs = [(0, 1), (2, 3), (2, 4), (3, 4)]
    odds = weigh_pairs(network.layout, codes, columns, pairs)
    for pair, found in zip(pairs, odds, strict=True):
        expected = Act.swap(network.layout, codes, columns, pair).weigh()
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_row_that_misses_a_column_says_nothing_of_its_pairs():
    network = BayesianNetwork({"a": [], "b": []}, {"a": [0, 1], "b": [0, 1]})
    codes = np.array([[0, 1], [2, 1], [1, 1]] * 10, np.uint8)
    values = np.where(codes < 2, codes, np.nan)
    columns = {i: Labels(values[:, i], np.array([0, 1]), 2) for i in range(2)}
    odds = weigh_pairs(network.layout, codes, columns, [(0, 1)])[0]
    assert not odds[1::3].any()
    assert odds[0::3].all()


def test_two_columns_that_no_row_has_both_of_are_no_swap():
    frame = make_people()
    frame.loc[::2, "height"] = np.nan
    frame.loc[1::2, "weight"] = np.nan
    assert not find_swaps(frame)


def test_a_table_whose_columns_share_no_values_is_looked_at():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["x", "y"], 500), "b": rng.choice(["u", "v"], 500)})
    assert not find_swaps(frame, [("a", "b")])
