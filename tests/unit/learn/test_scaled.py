"""Numbers that are in another unit, lost a decimal point or have a wrong sign in some rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn._core.clues import Scale
from robustbn._learn.scaled import list_scales
from robustbn._learn.swaps import scale_alone

N_ROWS = 4_000
EDGES = [("height", "weight"), ("age", "income"), ("warmth", "sales")]


def make_people(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    height, age = rng.normal(170, 9, N_ROWS).round(), rng.integers(18, 80, N_ROWS)
    warmth = rng.normal(15, 6, N_ROWS).round(1)
    return pd.DataFrame(
        {
            "height": height,
            "weight": (0.9 * (height - 100) + rng.normal(0, 4, N_ROWS)).round(1),
            "age": age,
            "income": np.exp(6 + age / 25 + rng.normal(0, 0.2, N_ROWS)).round(),
            "warmth": warmth,
            "sales": (100 + 10 * warmth + rng.normal(0, 10, N_ROWS)).round(),
        }
    )


def draw_rows(share: float) -> np.ndarray:
    return np.random.default_rng(1).choice(N_ROWS, int(share * N_ROWS), replace=False)


def find_scaled(frame: pd.DataFrame) -> list[robustbn.Finding]:
    found = robustbn.fit(EDGES, frame, random_state=0).findings_
    return [each for each in found if "fit the rest of their rows" in each.sentence]


MISTAKES = {
    "pounds": ("weight", lambda v: (v * 2.2046).round(1), "unit", "pounds and kilograms"),
    "decimal point": ("income", lambda v: v * 10, "decimal point", "divided by 10"),
    "lost zero": ("income", lambda v: v / 10, "decimal point", "multiplied by 10"),
    "degrees": ("warmth", lambda v: 1.8 * v + 32, "unit", "Fahrenheit"),
}


@pytest.mark.parametrize("share", [0.05, 0.1])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_scaled_numbers_are_named_though_they_could_be_others(mistake, share):
    frame, rows = make_people(), draw_rows(share)
    column, change, cause, said = MISTAKES[mistake]
    frame[column] = frame[column].astype(float)
    frame.loc[rows, column] = change(frame.loc[rows, column])
    [found] = find_scaled(frame)
    assert (found.kind, found.severity, found.cause) == ("wrong cells", "warning", cause)
    assert found.columns == (column,)
    assert said in found.sentence
    assert 0.5 * len(rows) < found.n_rows < 1.2 * len(rows)
    assert {*found.rows} <= {*rows.tolist()}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_python_of_scaled_numbers_puts_them_back(mistake):
    frame, rows = make_people(), draw_rows(0.1)
    column, change, *_ = MISTAKES[mistake]
    table = frame.astype({column: float})
    table.loc[rows, column] = change(table.loc[rows, column])
    [found] = find_scaled(table)
    exec(found.advice.python, {"table": table})  # noqa: S102
    told = [*found.rows]
    np.testing.assert_allclose(table.loc[told, column], frame.loc[told, column], rtol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_scaled_in_a_clean_table(seed):
    assert not find_scaled(make_people(seed))


def test_two_kinds_of_rows_are_no_other_unit():
    """Children weigh less than half of what adults do, and are smaller, too."""
    frame = make_people()
    rows = draw_rows(0.1)
    frame.loc[rows, "height"] = (frame.loc[rows, "height"] * 0.6).round()
    frame.loc[rows, "weight"] = (frame.loc[rows, "weight"] / 2.2046).round(1)
    assert not find_scaled(frame)


def test_numbers_that_are_far_anyhow_are_told_once():
    frame, rows = make_people(), draw_rows(0.05)
    frame.loc[rows, "age"] *= 10
    found = robustbn.fit(EDGES, frame, random_state=0).findings_
    told = [each for each in found if each.columns == ("age",) and each.severity != "note"]
    assert [each.cause for each in told] == ["decimal point"]


@pytest.mark.parametrize("scale", list_scales(), ids=lambda scale: f"{scale.factor:g}")
def test_a_scale_moves_numbers_from_one_interval_to_another(scale: Scale):
    values = np.exp(np.random.default_rng(0).normal(3, 1, 500)) + scale.centre
    part = scale_alone(np.append(values, scale.undo(values)), scale)
    np.testing.assert_array_equal(part.swapped[:500], part.as_is[500:])


# --- all rows with one label of a node ------------------------------------------------------------


def make_states(seed: int = 0) -> pd.DataFrame:
    """Return people of twelve states; what they earn depends on the state a little."""
    frame, rng = make_people(seed), np.random.default_rng(seed + 100)
    state = rng.integers(0, 12, N_ROWS)
    earned = frame["income"] * np.exp(0.2 * rng.normal(size=12))[state]
    return frame.assign(state=[f"s{k}" for k in state], income=earned.round())


@pytest.mark.parametrize("edge", [("income", "state"), ("state", "income")])
def test_a_unit_at_a_place_that_is_a_node_is_a_warning_with_the_place(edge):
    frame = make_states()
    edges = [*EDGES, edge]
    assert not [f for f in robustbn.fit(edges, frame, random_state=0).findings_ if f.cause]
    table = frame.copy()
    rows = table["state"] == "s7"
    table.loc[rows, "income"] = (table.loc[rows, "income"] / 12).round(2)
    found = robustbn.fit(edges, table, random_state=0).findings_
    [unit] = [each for each in found if each.cause == "unit"]
    assert (unit.severity, unit.kind, unit.columns) == ("warning", "column differs", ("income",))
    assert unit.where == {"state": "s7"}
    exec(unit.advice.python, {"table": table})  # noqa: S102
    np.testing.assert_allclose(table["income"], frame["income"], atol=0.1)


def test_numbers_around_zero_are_in_no_other_unit():
    """Calm days have smaller changes."""
    rng = np.random.default_rng(0)
    calm = rng.random(N_ROWS) < 0.2
    change = rng.normal(0, np.where(calm, 0.1, 1.0))
    frame = pd.DataFrame({"change": change, "volume": (np.abs(change) * 10 + rng.random(N_ROWS))})
    found = robustbn.fit([("change", "volume")], frame, random_state=0).findings_
    assert not [each for each in found if each.cause in ("unit", "decimal point")]
