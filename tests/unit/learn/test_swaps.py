"""Columns whose values were swapped in some rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn import BayesianNetwork
from robustbn._learn import swaps
from robustbn._learn.swaps import Labels

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
    d, tried = 100, []
    network = BayesianNetwork({f"x{i}": [] for i in range(d)}, {f"x{i}": [0, 1] for i in range(d)})
    codes = np.zeros((50, d), np.uint8)
    columns = {i: Labels(np.zeros(50), np.array([0, 1]), 2) for i in range(d)}
    monkeypatch.setattr(swaps, "_may_gain", lambda *given: tried.append(given[-1]))
    assert swaps.find_swaps(network.layout, codes, columns) == []
    assert len(tried) == swaps.MOST_PAIRS
    assert {(i, i + 1) for i in range(d - 1)} <= set(tried)
