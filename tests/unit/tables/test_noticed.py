"""What reading notices: odd values with their rows, codes for missing values, identifiers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn._core.clues import DECLARED, NO_DATE, NO_NUMBER, NO_STATE, TITLE
from robustbn._core.far import find_fill, find_flipped, find_rest, is_apart
from robustbn._core.protocols import Column
from robustbn._tables.identifiers import IdentifierReader, is_identifier
from robustbn._tables.noticed import MOST_SAMPLED, Noticed
from robustbn._tables.values import as_objects

NETWORK = robustbn.BayesianNetwork(
    {"age": [], "sex": []}, {"age": ["young", "old"], "sex": ["f", "m"]}
)


def read(frame, **settings):
    return robustbn.read_table(frame, NETWORK, bins={"age": [40]}, **settings).aside.clues


def odd_of(clues, column, kind):
    return next(each for each in clues.odd if (each.column, each.kind) == (column, kind))


def test_the_only_negative_number_is_a_code_if_it_is_frequent_and_the_end_of_a_scale_if_not():
    ages = np.repeat(np.arange(0.0, 90.0), 10)
    assert find_rest(np.sort(np.append(ages, [-1.0] * 20))) == (20, 920)
    assert find_rest(np.sort(np.append(ages, [-1.0] * 5))) == (0, 905)
    assert find_rest(np.sort(np.append(ages, [-2.0] * 5 + [-1.0] * 20))) == (0, 925)


@pytest.mark.parametrize("how", ["missing", "drop"])
def test_values_that_are_no_states_are_told_with_their_rows_whatever_is_made_of_them(how):
    frame = {"age": [20, 50, 30, 60], "sex": ["f", "x", "m", "?"]}
    odd = odd_of(read(frame, on_unknown=how), "sex", NO_STATE)
    assert (odd.n, odd.examples, odd.rows.tolist()) == (2, {"x": 1, "?": 1}, [1, 3])


def test_words_among_numbers_are_told_though_they_have_a_state(tmp_path):
    words = ["12", "unknown", "70"] * 30 + [str(k) for k in range(200)]
    frame = pd.DataFrame({"age": words, "sex": ["f", "m"] * 145})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    fit = robustbn.fit([("sex", "age")], tmp_path / "rows.csv", random_state=0)
    assert "other" in fit.network_.states["age"]
    odd = odd_of(fit.result_.aside.clues, "age", NO_NUMBER)
    assert odd.n == 30
    assert odd.rows[:2].tolist() == [1, 4]


def test_numbers_among_words_have_one_state_and_are_told(tmp_path):
    words = ["good", "fair", "poor"] * 100 + [f"{k}.5" for k in range(40)]
    frame = pd.DataFrame({"health": words, "sex": ["f", "m"] * 170})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    fit = robustbn.fit([("sex", "health")], tmp_path / "rows.csv", random_state=0)
    assert fit.network_.states["health"] == ("fair", "good", "poor", "other")
    odd = odd_of(fit.result_.aside.clues, "health", NO_STATE)
    assert (odd.n, odd.rows[0]) == (40, 300)


def test_numbers_among_words_join_the_label_other_where_the_column_has_it(tmp_path):
    words = ["good", "Other", "poor"] * 100 + [f"{k}.5" for k in range(40)]
    frame = pd.DataFrame({"health": words, "sex": ["f", "m"] * 170})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    fit = robustbn.fit([("sex", "health")], tmp_path / "rows.csv", random_state=0)
    assert set(fit.network_.states["health"]) == {"good", "Other", "poor"}
    assert odd_of(fit.result_.aside.clues, "health", NO_STATE).n == 40


def test_a_long_tail_beside_zeros_is_not_far_from_the_rest():
    rng = np.random.default_rng(0)
    incomes = np.append(np.zeros(300), np.exp(rng.normal(0, 1.5, 2000)))
    incomes = np.sort(np.append(incomes, -np.exp(rng.normal(0, 1.5, 200))))
    assert find_rest(incomes) == (0, len(incomes))


def test_values_that_are_declared_missing_are_missing_and_are_still_told(tmp_path):
    frame = {"age": [20, 999, 30, 999], "sex": ["f", "m", "m", "999"]}
    table = robustbn.read_table(frame, NETWORK, bins={"age": [40]}, missing=999)
    assert table.reading.n_missing == {"age": 2, "sex": 1}
    assert odd_of(table.aside.clues, "age", DECLARED).rows.tolist() == [1, 3]
    one = robustbn.read_table(
        frame, NETWORK, bins={"age": [40]}, missing={"age": [999]}, on_unknown="missing"
    )
    assert one.reading.n_missing == {"age": 2}
    assert one.reading.n_unknown == {"sex": 1}


def test_a_header_in_the_middle_of_a_file_is_told(tmp_path):
    (tmp_path / "rows.csv").write_text("age,sex\n20,f\nage,sex\n50,m\n")
    with pytest.warns(robustbn.exceptions.RepeatedHeaderWarning):
        clues = read(tmp_path / "rows.csv")
    assert odd_of(clues, "", TITLE).rows.tolist() == [1]


def test_dates_that_cannot_be_are_told_and_the_others_stay_dates():
    days = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(200)]
    days[7] = days[90] = "2024-31-12"
    found = robustbn.states_from({"day": days, "x": ["a", "b"] * 100}, [("x", "day")])
    assert found.network.reading["day"].period == "quarter"
    frame = {"day": days, "age": [20, 50] * 100, "sex": ["f", "m"] * 100}
    odd = odd_of(read(pd.DataFrame(frame)), "day", NO_DATE)
    assert (odd.n, odd.rows.tolist()) == (2, [7, 90])


@pytest.mark.parametrize("n_years", [1, 3])  # with more than 1,000 days, values are not kept
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_exchanged_days_and_months_are_told_however_many_they_are(share, n_years):
    rng = np.random.default_rng(0)
    n_days = 366 * n_years
    days = (np.datetime64("2024-01-01") + np.sort(rng.integers(0, n_days, 20_000))).astype(str)
    days = days.astype(object)
    for row in rng.choice(len(days), int(share * len(days)), replace=False):
        days[row] = f"{days[row][:5]}{days[row][8:]}-{days[row][5:7]}"
    n_odd = sum(day[5:7] > "12" for day in days)
    days[:3] = [None, float("nan"), None]  # what is missing is not odd
    frame = {"day": days, "age": [20, 50] * 10_000, "sex": ["f", "m"] * 10_000}
    assert odd_of(read(pd.DataFrame(frame)), "day", NO_DATE).n == n_odd > 0


def test_row_numbers_of_parts_become_those_of_the_whole_table():
    column = Column(as_objects(["a", "?", "b"]))
    whole, part = Noticed(), Noticed()
    part.note("x", NO_STATE, column, np.array([1]), 0)
    whole.merge(part.clues(), 100)
    whole.merge(part.clues(), 200)
    (odd,) = whole.clues().odd
    assert (odd.n, odd.rows.tolist(), odd.examples) == (2, [101, 201], {"?": 2})


def test_the_sample_of_numbers_is_bounded_and_does_not_depend_on_stretches():
    values = np.arange(5 * MOST_SAMPLED, dtype=float)
    once, in_parts = Noticed(), Noticed()
    once.sample({"x": (Column(values), None)}, 0, len(values))
    for start in range(0, len(values), 10_007):
        part = values[start : start + 10_007]
        in_parts.sample({"x": (Column(part), None)}, start, len(part))
    for found in (once.clues().numbers, in_parts.clues().numbers):
        assert len(found.rows) <= MOST_SAMPLED
        np.testing.assert_array_equal(found.values["x"], found.rows)
    np.testing.assert_array_equal(once.clues().numbers.rows, in_parts.clues().numbers.rows)


# --- identifiers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "is_one"),
    [
        ("id", np.arange(500), True),
        ("patient", [f"p{k}" for k in range(500)], True),
        ("id", np.r_[np.arange(400), np.arange(100)], True),
        ("income", np.random.default_rng(0).integers(10_000, 90_000, 500), False),
        ("height", np.random.default_rng(0).normal(size=500), False),
        ("site", ["a", "b"] * 250, False),
    ],
)
def test_a_column_names_rows_if_hardly_any_value_comes_twice(name, values, is_one):
    column = Column(np.asarray(values) if not isinstance(values, list) else as_objects(values))
    assert is_identifier(name, column, is_text=False) == is_one


def test_repeated_identifiers_are_paired_with_their_first_row_across_stretches():
    reader = IdentifierReader("id", is_text=True)
    for part in (["a", "b", "NA", "NA"], ["c", "b ", "a"]):
        reader.add(Column(as_objects(part)))
    found = reader.finish()
    assert found.first.tolist() == [1, 0]
    assert found.again.tolist() == [5, 6]
    assert found.n_ids == 2
    assert set(found.examples) == {"a", "b"}


# --- far numbers ----------------------------------------------------------------------------------


def test_codes_and_other_units_lie_far_from_the_rest_and_heavy_tails_do_not():
    rng = np.random.default_rng(0)
    heights = np.sort(np.append(rng.normal(170, 8, 2000), rng.normal(67, 3, 60)))
    assert find_rest(heights) == (60, 2060)
    assert is_apart(heights, 60, 2060)
    incomes = np.sort(np.exp(rng.normal(10, 1, 5000)))
    assert find_rest(incomes) == (0, 5000)
    ages = np.sort(np.r_[rng.integers(18, 95, 3000), [999] * 5, [0] * 5]).astype(float)
    assert find_rest(ages) == (5, 3005)
    assert is_apart(ages, 5, 3005)


def test_far_numbers_get_states_of_their_own():
    rng = np.random.default_rng(1)
    heights = np.append(rng.normal(170, 8, 2000).round(1), rng.normal(67, 3, 60).round(1))
    found = robustbn.states_from({"h": heights, "x": ["a", "b"] * 1030}, [("x", "h")])
    first = found.network.reading["h"].edges[0]
    assert 75 < first < 140
    assert len(found.states["h"]) == 5


def test_numbers_with_a_minus_sign_too_many_are_far_unless_some_are_near_zero():
    wages = np.random.default_rng(0).gamma(20.0, 5.0, 2000) + 10
    numbers = np.sort(np.append(wages, -wages[:50]))
    assert find_flipped(numbers) == 50
    assert find_rest(numbers)[0] == 50
    assert is_apart(numbers, 50, len(numbers))
    changes = np.sort(np.append(wages - 10, -wages[:50] + 10))
    assert not find_flipped(np.sort(np.random.default_rng(1).normal(1.5, 1.0, 2000)))
    assert not find_flipped(np.sort(np.append(changes, [-0.1, 0.1])))
    assert not find_flipped(np.sort(np.append(wages, -wages[:50] / 4)))


def test_the_mean_stands_for_missing_numbers_only_if_it_is_frequent_and_has_many_digits():
    wages = np.random.default_rng(0).gamma(20.0, 5.0, 2000).round(1)
    mean = round(float(wages.mean()), 2)
    assert find_fill(np.append(wages, [mean] * 60)) == mean
    assert find_fill(np.append(wages, [mean] * 10)) is None
    assert find_fill(np.append(wages, [round(mean * 1.1, 2)] * 60)) is None
    hours = np.random.default_rng(0).normal(40, 10, 2000).round()
    assert find_fill(np.append(hours, [40.0] * 300)) is None
