"""The gate: numbers out of range, frequencies of states, and labels that the fit never saw."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import RobustEstimator
from robustbn._learn.usual_numbers import log_tail_of_new
from robustbn.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

EDGES = [("school", "income"), ("region", "income"), ("income", "wage"), ("age", "income")]


def make_table(n, seed):
    rng = np.random.default_rng(seed)
    school, region = rng.integers(0, 4, n), rng.integers(0, 6, n)
    income = np.exp(10 + 0.3 * school + 0.1 * region + rng.normal(0, 0.5, n)).round()
    wage = (income / 2000 * np.exp(rng.normal(0, 0.3, n))).round(2)
    age = rng.integers(18, 81, n)
    words = {"school": school.astype(str), "region": region.astype(str)}
    return pd.DataFrame({**words, "income": income, "wage": wage, "age": age})


@pytest.fixture(scope="module")
def fit():
    return robustbn.fit(EDGES, make_table(6_000, 0), random_state=0)


def spoil(table, column, change, every=10):
    """A table in which every tenth number of a column is changed."""
    is_changed = np.arange(len(table)) % every == 0
    return table.assign(**{column: table[column].where(~is_changed, change(table[column]))})


def find(fit, table, column):
    return [each for each in fit.check(table) if each.columns == (column,)]


@pytest.mark.parametrize(
    ("column", "change"),
    [("income", lambda x: x / 1000), ("wage", lambda x: 0 * x), ("age", lambda x: 0 * x + 999)],
)
def test_a_tenth_of_numbers_far_outside_the_range_of_the_fit_is_an_error(fit, column, change):
    new = spoil(make_table(1_000, 1), column, change)
    [far] = [each for each in find(fit, new, column) if each.cause == "far values"]
    assert (far.severity, far.kind) == ("error", "wrong cells")
    assert far.n_cells == 100
    assert "far outside the range of the fit (" in far.sentence
    assert f"{column!r}] " in far.advice.python


def test_one_far_number_is_a_warning(fit):
    new = make_table(1_000, 1)
    new.loc[7, "age"] = 999
    [far] = fit.check(new)
    assert (far.severity, far.columns, far.n_cells) == ("warning", ("age",), 1)
    assert "(18 to 80)" in far.sentence


def test_numbers_at_the_ends_of_the_range_are_told_if_they_are_too_many(fit):
    new = spoil(make_table(1_000, 1), "wage", lambda x: 0 * x + 3)
    [told] = [each for each in find(fit, new, "wage") if each.cause == "unusual numbers"]
    assert told.severity == "error"
    assert " are below " in told.sentence


def test_as_many_far_numbers_as_in_the_fit_pass():
    table = make_table(6_000, 0)
    table.loc[::100, "age"] = 999
    dirty = robustbn.fit(EDGES, table, random_state=0)
    new = make_table(1_000, 1)
    new.loc[::100, "age"] = 999
    assert not dirty.check(new)
    new.loc[::10, "age"] = 999
    assert "far values" in {each.cause for each in find(dirty, new, "age")}


def test_clean_batches_of_numbers_pass(fit):
    assert sum(bool(fit.check(make_table(1_000, 100 + seed))) for seed in range(60)) <= 1


def test_ranges_are_in_the_model_file_unless_rows_are_hidden(fit, tmp_path):
    fit.save(tmp_path / "model.json")
    loaded = RobustEstimator.load(tmp_path / "model.json")
    new = spoil(make_table(1_000, 1), "age", lambda x: 0 * x + 999)
    assert loaded.check(new) == fit.check(new)
    assert loaded.update(make_table(500, 2)).check(new)[0].severity == "error"
    make_table(2_000, 0).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in EDGES))
    words = ["fit", str(tmp_path / "edges.csv"), str(tmp_path / "rows.csv"), "--no-rows"]
    ran = CliRunner().invoke(main, [*words, "--model", str(tmp_path / "private.json")])
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "private.json").read_text())["fit"]["numbers"] is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda numbers: numbers.update(nobody=numbers["age"]),
        lambda numbers: numbers["age"]["limits"][0].update(n_beyond=-1),
        lambda numbers: numbers["age"]["limits"][0].update(n_beyond=10**6),
    ],
)
def test_damaged_ranges_are_refused(fit, tmp_path, damage):
    fit.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    damage(document["fit"]["numbers"])
    (tmp_path / "damaged.json").write_text(json.dumps(document))
    with pytest.raises(robustbn.exceptions.ModelFileError, match="numbers"):
        RobustEstimator.load(tmp_path / "damaged.json")


def test_a_model_without_ranges_and_frequencies_is_read(fit, tmp_path):
    fit.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    del document["fit"]["numbers"]
    del document["fit"]["good_rows"]["inflation"][-5:]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = RobustEstimator.load(tmp_path / "old.json")
    assert not old.check(make_table(1_000, 1))
    causes = {each.cause for each in old.check(spoil(make_table(1_000, 1), "wage", np.zeros_like))}
    assert causes == {"moved table", "unlikely rows"}


def test_a_change_that_parents_dilute_is_seen_in_the_frequencies_of_states():
    """A node of four states with 125 configurations of its parents, on which it does not depend."""

    def draw(n, seed, share):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 5, (n, 4))
        rows[:, 3] = rng.integers(0, 4, n)
        rows[rng.random(n) < share, 3] = 0
        return rows.astype(np.uint8)

    states = dict.fromkeys("abc", tuple("vwxyz")) | {"d": tuple("wxyz")}
    network = robustbn.BayesianNetwork({"a": [], "b": [], "c": [], "d": list("abc")}, states)
    many = robustbn.fit(network, draw(20_000, 0, 0), random_state=0)
    told = [each for seed in range(5) for each in many.check(draw(1_000, 1 + seed, 0.12))]
    shifted = [each for each in told if each.cause == "moved states"]
    assert len(shifted) >= 4 > sum(each.cause == "moved table" for each in told)
    assert " of the new rows are w, compared with 25" in shifted[0].sentence
    assert not [each for seed in range(40) for each in many.check(draw(1_000, 50 + seed, 0))]


def test_frequencies_that_follow_from_those_of_a_parent_are_not_told_again():
    def draw(n, seed, share):
        rng = np.random.default_rng(seed)
        first = (rng.random(n) < share).astype(int)
        second = np.where(rng.random(n) < 0.05, 1 - first, first)
        return np.column_stack([first, second]).astype(np.uint8)

    network = robustbn.BayesianNetwork({"a": [], "b": ["a"]}, dict.fromkeys("ab", ("x", "y")))
    chain = robustbn.fit(network, draw(6_000, 0, 0.5), random_state=0)
    assert {each.columns for each in chain.check(draw(1_000, 1, 0.7))} == {("a",)}


def test_one_label_that_the_fit_never_saw_is_a_warning_and_many_are_an_error(fit):
    new = make_table(4_000, 1)
    new.loc[0, "region"] = "9"
    [told] = fit.check(new)
    assert (told.severity, told.kind) == ("warning", "unreadable values")
    new.loc[::100, "region"] = "9"
    assert find(fit, new, "region")[0].severity == "error"


def test_a_tail_of_new_numbers_is_that_of_ranks():
    """Of 8 numbers in any order, the three new ones are below the second of five so often."""
    rng, n_below = np.random.default_rng(0), []
    for _ in range(20_000):
        numbers = rng.random(8)
        n_below.append(np.count_nonzero(numbers[5:] < np.sort(numbers[:5])[1]))
    for k in (1, 2, 3):
        seen = np.mean(np.array(n_below) >= k)
        expected = math.exp(log_tail_of_new(k, 3, 1, 5))
        if k > 1:  # one is no more than usual
            assert abs(seen - expected) < 0.01


def test_numbers_of_persons_with_several_visits_are_few_numbers():
    """Eight visits of each person, whose age says as much as one number."""

    def visits(n, seed):
        people = make_table(n, seed)
        return people.loc[people.index.repeat(8)].reset_index(drop=True)

    panel = robustbn.fit(EDGES, visits(600, 0), random_state=0, copies="count")
    batches = [visits(120, 1 + seed) for seed in range(40)]
    assert sum(bool(panel.check(batch)) for batch in batches) <= 1
    assert panel.check(spoil(batches[0], "age", lambda x: 0 * x + 999, 4))
