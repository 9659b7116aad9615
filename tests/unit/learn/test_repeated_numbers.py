"""Repeated numbers: do they stand for missing values, or were they measured? The rows tell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import robustbn

N_ROWS = 4_000
EDGES = [("age", "income"), ("income", "rooms"), ("gusts", "wind")]


def make_people(seed: int = 0) -> pd.DataFrame:
    """Return a table whose incomes and rooms are near zero."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, N_ROWS)
    income = np.exp(6 + age / 25 + rng.normal(0, 0.5, N_ROWS)).round()
    wind = (3 + rng.gamma(4, 1.5, N_ROWS)).round(1)
    return pd.DataFrame(
        {
            "age": age,
            "income": income,
            "rooms": np.clip((np.log(income) - 5 + rng.normal(0, 0.5, N_ROWS)).round(), 1, 6),
            "wind": wind,
            "gusts": (wind * rng.uniform(1.2, 1.8, N_ROWS)).round(1),
        }
    )


def draw_rows(share: float) -> np.ndarray:
    return np.random.default_rng(1).choice(N_ROWS, int(share * N_ROWS), replace=False)


def find_told(frame: pd.DataFrame, edges: list[tuple[str, str]] = EDGES) -> list[robustbn.Finding]:
    """Return what is told of far values and of codes."""
    found = robustbn.fit(edges, frame, random_state=0).findings_
    return [each for each in found if each.cause in ("far values", "code for missing")]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.15])
@pytest.mark.parametrize("column", ["income", "rooms"])
def test_zeros_that_stand_for_missing_values_are_told_though_they_are_near_the_others(
    column, share
):
    frame, rows = make_people(), draw_rows(share)
    frame.loc[rows, column] = 0
    told = [each for each in find_told(frame) if each.severity == "warning"]
    [found] = [each for each in told if each.columns == (column,)]
    assert (found.kind, found.cause) == ("wrong cells", "code for missing")
    assert found.n_rows == len(rows)
    assert {*found.rows} <= {*rows.tolist()}
    assert "like that of all rows" in found.sentence
    assert found.advice.command.endswith(f"--missing {column}=0")


def test_a_code_right_behind_the_largest_number_is_told():
    frame, rows = make_people(), draw_rows(0.05)
    score = 1.15 * frame["age"] + np.random.default_rng(2).normal(0, 3, N_ROWS)
    frame["score"] = score.round().clip(upper=95)
    frame.loc[rows, "score"] = 99
    [found] = [e for e in find_told(frame, [*EDGES, ("age", "score")]) if e.columns == ("score",)]
    assert (found.severity, found.n_rows) == ("warning", len(rows))
    assert found.advice.command.endswith("--missing score=99")


@pytest.mark.parametrize("seed", range(3))
def test_no_number_of_a_clean_table_stands_for_missing_ones(seed):
    frame = make_people(seed)
    frame["savings"] = np.maximum(frame["income"] - 2_000, 0)  # as it is: many have none
    told = find_told(frame, [*EDGES, ("income", "savings")])
    assert not [each for each in told if each.severity == "warning"]


def make_calm(frame: pd.DataFrame) -> np.ndarray:
    """Let winds that are hardly there be 0 in the table, as an anemometer does; return the rows."""
    rows = np.flatnonzero(frame["wind"] < 5)
    frame.loc[rows, "wind"] = 0
    return rows


def test_zeros_that_were_measured_are_a_note():
    frame = make_people()
    rows = make_calm(frame)
    [found] = [each for each in find_told(frame) if each.columns == ("wind",)]
    assert found.severity == "note"
    assert found.n_rows == len(rows)
    assert "--missing" not in found.advice.command
    assert found.advice.say == "No action is needed."


def test_far_zeros_stay_a_warning_where_the_other_columns_cannot_tell():
    frame = make_people()
    make_calm(frame)
    frame["noise"] = np.random.default_rng(2).normal(size=N_ROWS)
    [found] = [e for e in find_told(frame, [("noise", "wind")]) if e.columns == ("wind",)]
    assert found.severity == "warning"
    assert found.advice.command.endswith("--missing wind=0")


def test_numbers_that_are_missing_together_are_no_measured_ones():
    """Zeros of two columns in the same rows look like each other, and like small numbers."""
    frame, rows = make_people(), draw_rows(0.02)
    frame.loc[rows, ["wind", "gusts"]] = 0
    told = {each.columns: each.severity for each in find_told(frame)}
    assert told["wind",] == "warning"
