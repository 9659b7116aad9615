"""Rows that are left out by what they have in common, and the findings that say which."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from robustbn._tables.exclusion import exclude_rows, write_place
from robustbn.exceptions import DataError
from tests.commands import as_json, call
from tests.promises.test_findings import EDGES, N, clean_table, look_at, serious

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def with_defaults(frame):
    """One site leaves its form at the defaults for some months."""
    is_there = (frame["site"] == "north") & frame["day"].between("2023-05-01", "2023-10-31")
    frame.loc[is_there, ["height", "risk", "weight"]] = [180.0, "high", 70.0]
    return frame, is_there


def write_edges(folder):
    lines = ["parent,child", *(",".join(edge) for edge in EDGES)]
    (folder / "edges.csv").write_text("\n".join(lines))
    return folder / "edges.csv"


@pytest.fixture
def rows(tmp_path):
    frame, is_there = with_defaults(clean_table())
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return write_edges(tmp_path), tmp_path / "rows.csv", is_there


def test_defaults_in_three_columns_at_a_place_are_an_error(tmp_path):
    (found,) = serious(look_at(with_defaults(clean_table())[0], tmp_path))
    assert (found.kind, found.severity, found.cause) == (
        "column differs",
        "error",
        "defaults, copies",
    )
    assert found.where["site"] == "north"
    assert {"height", "risk", "weight"} <= set(found.columns)


def test_one_value_in_one_column_of_a_place_may_be_right(tmp_path):
    frame = clean_table()
    frame.loc[frame["site"] == "harbour", "risk"] = "high"
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.severity, found.cause) == ("warning", "one value")


def test_the_command_of_a_finding_leaves_out_its_rows_and_ends_it(rows):
    edges, table, is_there = rows
    facts = as_json("fit", edges, table, "--json")
    command = shlex.split(facts["findings"][0]["advice"]["command"])
    assert "--exclude" in command
    again = as_json(*command[1:], "--json")
    assert abs(again["table"]["rows_left_out"] - is_there.sum()) <= 0.05 * is_there.sum()
    assert not [each for each in again["findings"] if each["severity"] == "error"]


def test_excluded_rows_have_no_weight_and_are_not_written(rows, tmp_path):
    edges, table, _ = rows
    clean = tmp_path / "clean.csv"
    call(
        "fit", edges, table, "--exclude", "site=north", "--exclude", "line=2..101",
        "--clean", clean, "--drop-distrusted",
    )  # fmt: skip
    kept = clean.read_text().splitlines()
    frame = clean_table()
    n_out = ((frame["site"] == "north") | (np.arange(len(frame)) < 100)).sum()
    assert len(kept) - 1 == len(frame) - n_out
    assert not any(",north," in line for line in kept)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("sit=north", "Did you mean 'site'"),
        ("site=nort", "Did you mean 'north'"),
        ("line=a..b", "needs whole numbers"),
        ("line=99999", "No row is excluded"),
        ("line=1..99999", "All 4,000 rows"),
    ],
)
def test_a_place_that_cannot_be_read_is_refused_and_the_nearest_name_is_told(rows, place, said):
    edges, table, _ = rows
    ran = call("fit", edges, table, "--exclude", place, code=4)
    assert said in ran.stderr


def test_places_are_read_as_they_are_written(tmp_path):
    fit = look_at(clean_table(), tmp_path)
    table = fit._read(tmp_path / "rows.csv")[1]
    parts = (("site", "north", "north"), ("sex", "male", "male"), ("row number", "1,000", "1,999"))
    text = write_place(parts)
    assert text == "site=north and sex=male and row number=1,000..1,999"
    frame = clean_table()
    is_out = (frame["site"] == "north") & (frame["sex"] == "male")
    is_out &= (np.arange(len(frame)) >= 1000) & (np.arange(len(frame)) < 2000)
    left = exclude_rows(table, [text])
    assert left.reading.n_excluded == is_out.sum()
    assert left.kept.tolist() == np.flatnonzero(~is_out).tolist()
    assert "were excluded, as requested" in str(left.reading)
    with pytest.raises(DataError):
        exclude_rows(table, ["site"])


def test_numbers_that_are_cut_off_at_a_place_are_told_with_their_limit(tmp_path):
    frame = clean_table()
    is_there = frame["site"] == "east"
    frame.loc[is_there, "weight"] = frame.loc[is_there, "weight"].clip(upper=66)
    (found,) = serious(look_at(frame, tmp_path))
    assert found.cause == "capped"
    assert "none are above 66 there" in found.sentence


def test_a_column_that_differs_is_told_with_how(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(0)
    is_there = frame["site"] == "east"
    frame.loc[is_there, "risk"] = rng.choice(["high", "low"], is_there.sum(), p=[0.8, 0.2])
    (found,) = serious(look_at(frame, tmp_path))
    assert "% are 'high' there, " in found.sentence


def test_counts_and_blocks_are_those_of_the_file_once_rows_are_left_out(tmp_path):
    frame = clean_table()
    frame.loc[frame.index[:1000:25], "weight"] = 999.0
    frame = pd.concat([frame, frame.iloc[2000:2300]], ignore_index=True)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    facts = as_json("fit", write_edges(tmp_path), tmp_path / "rows.csv", "--exclude", "site=north")
    kept = frame["site"] != "north"
    far = next(each for each in facts["findings"] if each["cause"] == "far values")
    assert far["n_rows"] == (kept & (frame["weight"] == 999.0)).sum()
    block = next(each for each in facts["findings"] if each["cause"] == "block appended twice")
    again = np.flatnonzero(kept & (frame.index >= N))
    assert block["n_rows"] == len(again)
    assert f"table.iloc[{again[0]}:{again[-1] + 1}]" in block["advice"]["python"]


def test_a_default_that_most_rows_have_counts_if_all_rows_of_a_place_have_it(tmp_path):
    frame = clean_table()
    is_there = (frame["site"] == "north") & frame["day"].between("2023-05-01", "2023-10-31")
    frame.loc[is_there, ["height", "risk", "weight"]] = [170.0, "low", 60.0]
    assert (frame["risk"] == "low").mean() > 0.6
    (found,) = serious(look_at(frame, tmp_path))
    assert found.severity == "error"
    assert "defaults" in found.cause


def test_a_value_that_most_rows_of_a_place_have_is_no_default(tmp_path):
    """A quarter of the rows of a site have other numbers: they may be natural there."""
    frame, rng = clean_table(), np.random.default_rng(0)
    is_there = (frame["site"] == "north") & (rng.random(N) < 0.75)
    frame.loc[is_there, ["height", "risk", "weight"]] = [160.0, "high", 50.0]
    found = [each for each in serious(look_at(frame, tmp_path)) if each.kind == "column differs"]
    assert found
    assert not [each for each in found if each.severity == "error"]
