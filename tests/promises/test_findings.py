"""Findings: one list behind terminal, page, Markdown, notebook and JSON."""

from __future__ import annotations

import ast
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import RobustEstimator
from robustbn._core.findings import SEVERITIES, Finding, Kind, rank_findings
from robustbn._core.groups import Group
from robustbn._show import findings as registry
from robustbn.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

EDGES = [("sex", "weight"), ("height", "weight"), ("sex", "height"), ("weight", "risk")]
N = 4000


def clean_table(seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, N)
    height = 165 + 12 * sex + rng.normal(0, 7, N)
    weight = 0.9 * (height - 100) + rng.normal(0, 6, N)
    risk = np.where(rng.random(N) < 1 / (1 + np.exp(-(weight - 72) / 8)), "high", "low")
    days = np.datetime64("2023-01-01") + np.sort(rng.integers(0, 720, N))
    return pd.DataFrame(
        {
            "id": np.arange(10_000, 10_000 + N),
            "sex": np.where(sex, "male", "female"),
            "height": height.round(1),
            "weight": weight.round(1),
            "risk": risk,
            "site": rng.choice(["north", "south", "east", "west", "harbour"], N),
            "day": days.astype(str),
        }
    )


def look_at(frame, folder, edges=EDGES, **settings):
    frame.to_csv(folder / "rows.csv", index=False)
    return robustbn.fit(edges, folder / "rows.csv", random_state=0, **settings)


def serious(fit):
    return [each for each in fit.findings_ if each.severity != "note"]


def test_a_clean_table_has_nothing_to_look_at(tmp_path):
    fit = look_at(clean_table(), tmp_path)
    assert not serious(fit)


def test_what_depends_on_another_measurement_is_no_mistake_at_a_place(tmp_path):
    """A pump runs, for so many minutes, in rows of high risk only."""
    frame, rng = clean_table(), np.random.default_rng(1)
    is_long = (frame["risk"] == "high") & (rng.random(N) < 0.2)
    frame["minutes"] = np.where(is_long, 300.0, 0.0) + rng.normal(100, 20, N).round(3)
    assert not serious(look_at(frame, tmp_path))
    named = serious(look_at(frame, tmp_path, context=["minutes"]))
    assert [each.kind for each in named] == ["column differs"]


def test_a_value_that_most_rows_have_is_no_place(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(1)
    wards = np.where(frame["sex"] == "male", "none", rng.choice([*"abcdef"], N))
    frame["ward"] = np.where(rng.random(N) < 0.2, "none", wards)
    found = [each for each in serious(look_at(frame, tmp_path)) if each.kind == "column differs"]
    assert not any(each.where == {"ward": "none"} for each in found)


def test_pounds_at_one_site_for_some_months_are_an_error_with_place_and_unit(tmp_path):
    frame = clean_table()
    is_bad = (frame["site"] == "north") & frame["day"].between("2023-05-01", "2023-09-30")
    frame.loc[is_bad, "weight"] = (frame.loc[is_bad, "weight"] * 2.2046).round(1)
    first = serious(look_at(frame, tmp_path))[0]
    assert (first.kind, first.severity, first.cause) == ("column differs", "error", "unit")
    assert "convert them to that of the others" in first.advice.say
    assert first.columns[0] == "weight"
    assert first.where["site"] == "north"
    assert "pounds and kilograms" in first.sentence
    assert abs(first.n_rows - is_bad.sum()) < 0.2 * is_bad.sum()


def test_pounds_in_a_hundredth_of_the_rows_are_told_with_site_and_lines(tmp_path):
    frame = clean_table()
    rows = np.flatnonzero(frame["site"] == "north")[300:340]
    frame.loc[rows, "weight"] = (frame.loc[rows, "weight"] * 2.2046).round(1)
    (found,) = [f for f in serious(look_at(frame, tmp_path)) if f.kind == "column differs"]
    assert found.columns[0] == "weight"
    assert found.where["site"] == "north"
    first, last = (int(n.replace(",", "")) - 2 for n in found.where["line"].split(" to "))
    inside = set(np.flatnonzero(frame["site"] == "north").tolist()) & {*range(first, last + 1)}
    assert len(inside & set(rows.tolist())) >= 0.9 * max(len(inside), len(rows))


def test_a_column_that_was_sorted_by_itself_in_a_few_rows_is_told_with_its_lines(tmp_path):
    frame = clean_table()
    frame.loc[700:729, "weight"] = np.sort(frame.loc[700:729, "weight"])
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause, found.columns) == ("column differs", "sorted", ("weight",))
    first, last = (int(n) for n in found.where["line"].split(" to "))
    assert (first, last) == pytest.approx((702, 731), abs=2)
    assert "all values ascend, as if this column was sorted by itself" in found.sentence


def test_the_python_of_a_finding_shows_its_rows_where_sites_are_numbers():
    table = clean_table()
    table["site"] = pd.factorize(table["site"])[0] + 1
    table.loc[table["site"] == 2, "weight"] *= 2.2046
    finding = robustbn.fit(EDGES, table, random_state=0).findings_[0]
    assert finding.where == {"site": "2"}
    shown = eval(finding.advice.python, {"table": table})  # noqa: S307
    assert shown.loc["count", "weight"] == finding.n_rows == (table["site"] == 2).sum()


def test_a_category_that_is_renamed_for_some_time_is_told_with_its_old_name(tmp_path):
    frame = clean_table()
    is_later = frame["day"] >= "2024-03-01"
    frame.loc[is_later & (frame["risk"] == "low"), "risk"] = "minor"
    (found,) = [f for f in serious(look_at(frame, tmp_path)) if f.kind == "column differs"]
    assert found.cause == "renamed"
    assert found.columns == ("risk",)
    assert "'minor' seems to stand for 'low' there" in found.sentence


def test_labels_that_stand_for_each_other_at_one_site_are_told(tmp_path):
    frame = clean_table()
    is_there = frame["site"] == "south"
    frame.loc[is_there, "sex"] = frame.loc[is_there, "sex"].map(
        {"female": "male", "male": "female"}
    )
    (found,) = [f for f in serious(look_at(frame, tmp_path)) if f.kind == "column differs"]
    assert found.cause == "swapped labels"
    assert "sex" in found.columns
    assert found.where == {"site": "south"}
    assert "'female' and 'male' seem to stand for each other there" in found.sentence


def test_a_batch_of_test_rows_is_told_as_copies_of_a_few_forms(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(0)
    columns = ["sex", "height", "weight", "risk"]
    forms = frame.loc[[5, 3000], columns].to_numpy(object)
    frame[columns] = frame[columns].astype(object)
    frame.loc[1500:1749, columns] = forms[rng.integers(0, 2, 250)]
    told = [f for f in serious(look_at(frame, tmp_path)) if f.kind == "column differs"]
    assert "copies" in told[0].cause
    assert "copies of 2 distinct rows" in told[0].sentence


def test_a_block_that_is_appended_again_is_told_by_lines_and_by_ids(tmp_path):
    frame = clean_table()
    frame = pd.concat([frame, frame.iloc[1000:1200]], ignore_index=True)
    for copies in ("auto", "count"):
        found = {each.kind: each for each in look_at(frame, tmp_path, copies=copies).findings_}
        rows, ids = found["repeated rows"], found["repeated ids"]
        assert (rows.severity, ids.severity) == ("error", "error")
        assert "lines 4,002 to 4,201 repeat lines 1,002 to 1,201" in rows.sentence
        assert (rows.n_rows, ids.n_rows, ids.columns) == (200, 200, ("id",))
        assert "11000" in ids.sentence


def test_days_that_are_alike_hour_by_hour_are_no_repeated_block():
    rng = np.random.default_rng(8)
    of_days = np.repeat(rng.normal(0, 10, (300, 4)), 12, axis=0)
    frame = pd.DataFrame(of_days + rng.normal(0, 0.1, of_days.shape), columns=list("abcd"))
    frame["time"] = np.tile([f"{hour}:00" for hour in range(0, 24, 2)], 300)
    edges = [("time", node) for node in "abcd"]
    assert not [f for f in serious(robustbn.fit(edges, frame)) if f.kind == "repeated rows"]
    frame = pd.concat([frame, frame.iloc[600:660]], ignore_index=True)
    (found,) = [f for f in serious(robustbn.fit(edges, frame)) if f.kind == "repeated rows"]
    assert (found.severity, found.n_rows) == ("error", 60)


def test_a_run_of_counts_is_no_place(tmp_path):
    """Nobody of low risk makes more than twelve visits."""
    frame, rng = clean_table(), np.random.default_rng(2)
    visits = np.where(frame["risk"] == "low", rng.integers(0, 13, N), rng.integers(0, 20, N))
    assert not serious(look_at(frame.assign(visits=visits), tmp_path))


def test_a_table_with_several_rows_of_a_person_repeats_no_ids_and_no_block(tmp_path):
    frame = clean_table().drop(columns=["day", "site"])
    stacked = pd.concat([frame.assign(outcome=name) for name in "ab"], ignore_index=True)
    found = serious(look_at(stacked, tmp_path))
    assert [(each.kind, each.severity) for each in found] == [("repeated rows", "warning")]
    assert "with other values of outcome" in found[0].sentence


def test_days_and_months_that_are_exchanged_are_told_by_name_and_place(tmp_path):
    frame = clean_table()
    is_bad = (frame["site"] == "north") & frame["day"].between("2023-05-01", "2023-09-30")
    frame.loc[is_bad, "day"] = [f"{d[:5]}{d[8:]}-{d[5:7]}" for d in frame.loc[is_bad, "day"]]
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause) == ("unreadable values", "day and month exchanged")
    assert "Day and month appear to be exchanged" in found.sentence
    assert found.where["site"] == "north"


def test_days_and_months_that_are_exchanged_into_other_dates_are_told_by_their_order(tmp_path):
    frame = clean_table()
    is_bad = (frame["site"] == "north") & (frame["day"].str[8:].astype(int) < 13)
    frame.loc[is_bad, "day"] = [f"{d[:5]}{d[8:]}-{d[5:7]}" for d in frame.loc[is_bad, "day"]]
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause) == ("wrong cells", "day and month exchanged")
    assert "are out of the order of the rows" in found.sentence
    assert "Day and month appear to be exchanged: put back, " in found.sentence
    assert dict(found.where) == {"site": "north"}
    assert found.columns == ("day",)


def test_exchanged_dates_that_are_none_and_those_out_of_order_are_one_finding(tmp_path):
    frame = clean_table()
    is_bad = frame["site"] == "north"
    frame.loc[is_bad, "day"] = [f"{d[:5]}{d[8:]}-{d[5:7]}" for d in frame.loc[is_bad, "day"]]
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause) == ("unreadable values", "day and month exchanged")
    assert found.n_rows > 0.9 * is_bad.sum()
    assert "are not a date, or out of the order of the rows" in found.sentence
    assert dict(found.where) == {"site": "north"}


def test_the_year_before_in_january_is_told_as_a_wrong_year(tmp_path):
    frame = clean_table()
    some = np.flatnonzero(frame["day"].str.startswith("2024-01"))[::4]
    frame.loc[some, "day"] = [f"2023{d[4:]}" for d in frame.loc[some, "day"]]
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause, found.n_rows) == ("wrong cells", "wrong year", len(some))
    assert f"with the year before or after, {len(some)} of them are in order" in found.sentence


def test_only_a_code_is_to_be_declared_missing(tmp_path):
    frame = clean_table()
    frame.loc[:7, "weight"] = 843.171
    far = next(f for f in look_at(frame, tmp_path).findings_ if f.cause == "far values")
    assert "--missing" not in far.advice.command
    shown = eval(far.advice.python, {"table": frame})  # noqa: S307
    assert (shown == 843.171).all()
    frame.loc[:7, "weight"] = 999
    far = next(f for f in look_at(frame, tmp_path).findings_ if f.cause == "far values")
    assert far.advice.command.endswith("--missing weight=999")
    frame.loc[:3, "weight"] = -9
    far = next(f for f in look_at(frame, tmp_path).findings_ if f.cause == "far values")
    assert far.advice.command.endswith("--missing weight=-9 --missing weight=999")


@pytest.mark.parametrize(
    ("values", "code", "is_told"),
    [([0, 1, 2, 3, 4], 99, True), ([0, 1, 2, 3, 4], 5, False), ([1, 2, 3, 4, 5], 0, False),
     (["a", "b", "c"], "99", True), (["a", "b", "c"], "d", False), (["a", "7", "c"], "99", False),
     ([90, 95, 99], 99, False), ([1, 2, 3], -9, True)],
)  # fmt: skip
def test_codes_for_missing_are_told_in_columns_of_few_values_too(tmp_path, values, code, is_told):
    frame, rng = clean_table(), np.random.default_rng(6)
    frame["kids"] = rng.choice(np.array(values, object), N)
    frame.loc[:40, "kids"] = code
    found = look_at(frame, tmp_path, edges=[*EDGES, ("risk", "kids")]).findings_
    told = [each for each in found if each.cause == "code for missing"]
    assert bool(told) == is_told
    if is_told:
        assert (told[0].severity, told[0].columns, told[0].n_cells) == ("warning", ("kids",), 41)
        assert told[0].advice.command.endswith(f"--missing kids={code}")


def test_a_state_of_another_column_is_no_code(tmp_path):
    for word, is_code in (("female", False), ("n/a?", True)):
        frame = clean_table()
        frame["weight"] = frame["weight"].astype(object)
        frame.loc[:30, "weight"] = word
        (found,) = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
        assert ("--missing" in found.advice.command) == is_code


def test_rows_that_repeat_an_identifier_are_left_out_if_copies_are_distrusted(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(5)
    again = frame.iloc[np.sort(rng.choice(N, 60, replace=False))]
    frame = pd.concat([frame, again]).iloc[rng.permutation(N + 60)]
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.kind, found.severity) == ("repeated ids", "error")
    assert found.advice.command.endswith(" --copies distrust")
    fit = look_at(frame, tmp_path, copies="distrust")
    assert not serious(fit)
    assert fit.reading_.dropped == {"they repeat other rows": 60}


def test_values_that_are_missing_less_often_at_a_place_are_a_note(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(3)
    is_gone = rng.random(N) < np.where(frame["site"] == "east", 0.02, 0.8)
    frame["risk"] = frame["risk"].mask(is_gone)
    (found,) = [f for f in look_at(frame, tmp_path).findings_ if f.where == {"site": "east"}]
    assert found.severity == "note"
    assert "risk is missing less often than elsewhere" in found.sentence


def test_values_that_are_missing_more_often_in_a_long_stretch_of_rows_are_a_note(tmp_path):
    """As with columns that differ there: files come in some order."""
    frame, rng = clean_table(), np.random.default_rng(3)
    is_long = (np.arange(N) >= 1_000) & (np.arange(N) < 2_600)
    frame["risk"] = frame["risk"].mask(rng.random(N) < np.where(is_long, 0.35, 0.1))
    told = [f for f in look_at(frame, tmp_path).findings_ if "risk is missing more" in f.sentence]
    assert told
    assert not [f for f in told if f.severity != "note"]
    frame["risk"] = clean_table()["risk"].mask(
        rng.random(N) < np.where(frame["site"] == "east", 0.6, 0.1)
    )
    (found,) = [f for f in look_at(frame, tmp_path).findings_ if f.where == {"site": "east"}]
    assert found.severity == "warning"
    assert found.advice.command.count("--missing-is-evidence") == 1
    given = look_at(frame, tmp_path, missing_is_evidence=True)
    (found,) = [f for f in given.findings_ if "risk is missing more often" in f.sentence]
    assert "robustbn.fit" not in found.advice.python  # that is done: it shows these rows
    assert eval(found.advice.python, {"table": frame})["risk"] > 0.5  # noqa: S307


def test_columns_that_are_missing_from_a_stretch_of_rows_only_are_told_with_it(tmp_path):
    """Where all rows are alike, one after the other, comparing rows says little."""
    frame = clean_table().drop(columns=["site", "day"])
    frame.loc[1000:1099, ["weight", "risk"]] = None
    [found] = serious(look_at(frame, tmp_path))
    assert (found.kind, found.columns) == ("missing values", ("weight", "risk"))
    assert found.where == {"line": "1,002 to 1,101"}
    frame.loc[::100, ["weight", "risk"]] = None  # nor only there
    assert not [f for f in look_at(frame, tmp_path).findings_ if "hardly elsewhere" in str(f)]


def test_words_in_a_column_of_numbers_are_told_with_their_place_and_their_line(tmp_path):
    frame = clean_table()
    frame["weight"] = frame["weight"].astype(object)
    chosen = np.flatnonzero((frame["site"] == "south") & (frame["day"] < "2023-04-01"))
    frame.loc[chosen, "weight"] = "not weighed"
    (found,) = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
    assert (found.n_cells, found.columns) == (len(chosen), ("weight",))
    assert found.where["site"] == "south"
    assert "All of them occur where" in found.sentence
    assert "'not weighed'" in found.sentence
    assert f"first line {chosen[0] + 2}" in found.sentence


def test_words_of_another_column_are_told_with_the_column_that_they_are_of(tmp_path):
    """At one site, in a few months, every value is in the next column."""
    frame = clean_table()
    names = ["sex", "height", "weight", "risk"]
    is_bad = (frame["site"] == "north") & frame["day"].between("2023-05-01", "2023-06-30")
    frame[names] = frame[names].astype(object)
    frame.loc[is_bad, names] = np.roll(frame.loc[is_bad, names].to_numpy(object), 1, axis=1)
    told = {
        f.columns[0]: f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"
    }
    for column, owner in (("height", "sex"), ("risk", "weight")):
        assert told[column].cause == "values of another column"
        assert f"They look like values of {owner}" in told[column].sentence
        assert told[column].where["site"] == "north"


def test_a_word_that_two_columns_have_is_no_value_of_the_other(tmp_path):
    frame = clean_table()
    frame["weight"] = frame["weight"].astype(object)
    frame.loc[:60, "weight"] = frame.loc[100:160, "risk"] = "unknown"
    (told,) = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
    assert told.cause == "no number"


def test_far_numbers_are_another_columns_only_where_that_column_shows_others(tmp_path):
    frame = clean_table()
    frame["visits"] = np.random.default_rng(1).integers(0, 4, N).astype(float)
    frame["stays"] = np.random.default_rng(2).normal(30, 4, N).round(1)
    frame.loc[3_000:3_050, "stays"] = np.random.default_rng(3).normal(400, 20, 51).round(1)
    frame["beds"] = np.random.default_rng(4).normal(400, 20, N).round(1)
    pair, rows = ["visits", "height"], slice(2_000, 2_050)
    frame.loc[rows, pair] = frame.loc[rows, pair[::-1]].to_numpy()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    edges = [*EDGES, ("risk", "visits"), ("risk", "stays"), ("risk", "beds")]
    fit = robustbn.fit(edges, tmp_path / "rows.csv", random_state=0)
    told = {f.columns: f for f in fit.findings_ if f.kind == "wrong cells"}
    assert told["visits",].cause == "values of another column"
    assert "They look like values of height" in told["visits",].sentence
    assert told["height",].cause == "values of another column"
    # the beds of these rows are as ever: numbers that are alike by chance
    assert told["stays",].cause == "far values"


def test_what_a_setting_makes_missing_is_still_told(tmp_path):
    frame = clean_table()
    frame.loc[:40, "weight"] = 999
    told = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "wrong cells"]
    assert told[0].severity == "warning"
    assert "41 values of weight are far outside the range of the others" in told[0].sentence
    fit = look_at(frame, tmp_path, missing={"weight": 999})
    assert fit.reading_.n_missing == {"weight": 41}
    (declared,) = [f for f in fit.findings_ if f.cause == "declared missing"]
    assert declared.n_cells == 41
    assert not [f for f in fit.findings_ if f.kind == "wrong cells"]


@pytest.mark.parametrize(
    ("label", "cause"),
    [("fem", "cut off"), ("Female", "written in another case"), ("femalle", "mistyped"),
     ("fem\ufffdle", "contains characters from a wrong encoding")],
)  # fmt: skip
def test_labels_that_look_wrong_are_told_with_what_they_may_stand_for(tmp_path, label, cause):
    frame = clean_table()
    frame.loc[np.flatnonzero(frame["sex"] == "female")[:30], "sex"] = label
    told = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
    assert [(f.cause, f.n_cells) for f in told] == [(cause, 30)]
    assert "--labels" in told[0].advice.command


def test_of_labels_as_frequent_as_each_other_one_stands_for_the_other(tmp_path):
    frame = clean_table()
    frame.loc[:99, "risk"] = "Unclear"
    frame.loc[100:199, "risk"] = "unclear"
    told = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
    assert [f.n_cells for f in told] == [100]
    assert "'unclear' for 'Unclear'" in told[0].sentence


def test_mistyped_labels_of_a_column_are_one_finding_however_many_they_are(folder, tmp_path):
    frame, rng = clean_table(), np.random.default_rng(3)
    frame["risk"] = frame["risk"].map({"high": "2. high risk of falls", "low": "1. no known risk"})
    column = frame["risk"].to_list()
    for row in rng.choice(N, 200, replace=False):
        at = rng.integers(3, len(column[row]) - 1)
        column[row] = column[row][:at] + rng.choice(list("xyz")) + column[row][at:]
    frame["risk"] = column
    (told,) = [f for f in look_at(frame, tmp_path).findings_ if f.cause == "mistyped"]
    assert told.columns == ("risk",)
    assert 150 <= told.n_cells <= 200  # the rarest labels are 'other'
    assert "for '1. no known risk'" in told.sentence
    words = ["fit", str(folder / "edges.csv"), str(tmp_path / "rows.csv"), "--json"]
    facts = json.loads(CliRunner().invoke(main, words).stdout)
    (told,) = [f for f in facts["findings"] if f["cause"] == "mistyped"]
    wanted = f"robustbn repair {words[1]} {words[2]} -o repaired.csv --changes changes.csv"
    assert told["advice"]["command"] == wanted


def test_numbered_labels_are_not_mistyped(tmp_path):
    frame = clean_table()
    frame["risk"] = [f"grade {k}" for k in np.random.default_rng(4).choice([1, 1, 1, 1, 2], N)]
    frame.loc[:20, "risk"] = "grade 3"
    assert not [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]


def test_a_stream_finds_what_memory_finds(tmp_path):
    frame = clean_table()
    is_bad = (frame["site"] == "north") & frame["day"].between("2023-05-01", "2023-12-31")
    frame["weight"] = frame["weight"].astype(object)
    frame.loc[is_bad, "weight"] = frame.loc[is_bad, "weight"].astype(float) * 2.2046
    frame.loc[3:9, "height"] = -9
    frame = pd.concat([frame, frame.iloc[:50]], ignore_index=True)
    network = look_at(frame, tmp_path).network_.with_cpts(None)
    kinds = [
        {(f.kind, f.columns) for f in serious(
            robustbn.fit(network, tmp_path / "rows.csv", place=place, random_state=0)
        )}
        for place in ("memory", "stream")
    ]  # fmt: skip
    assert kinds[0] == kinds[1]
    assert {("repeated rows", ()), ("repeated ids", ("id",))} <= kinds[1]


def test_a_stream_finds_blocks_beside_missing_values_and_rows_that_are_left_out(tmp_path):
    frame = clean_table()
    frame.loc[::7, "risk"] = None
    frame.loc[::11, "sex"] = "?"
    frame = pd.concat([frame, frame.iloc[1000:1200]], ignore_index=True)
    network = look_at(clean_table(), tmp_path).network_.with_cpts(None)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    told = [
        next(f for f in robustbn.fit(
            network, tmp_path / "rows.csv", place=place, random_state=0, on_unknown="drop",
        ).findings_ if f.kind == "repeated rows").sentence
        for place in ("memory", "stream")
    ]  # fmt: skip
    assert told[0] == told[1]
    assert "repeat" in told[0]


def test_a_block_with_other_ids_and_some_changes_is_still_told(tmp_path):
    """Near-copies: somebody appended old rows under new names, and touched a few of them."""
    frame, rng = clean_table(), np.random.default_rng(0)
    block = frame.iloc[1000:1400].assign(id=np.arange(50_000, 50_400))
    block.loc[rng.choice(block.index, 30, replace=False), "risk"] = "high"
    found = look_at(pd.concat([frame, block], ignore_index=True), tmp_path).findings_
    (told,) = [f for f in found if f.kind == "repeated rows"]
    assert told.severity == "error"
    assert abs(told.n_rows - 400) <= 10
    assert not [f for f in found if f.kind == "repeated ids"]


def test_cases_entered_twice_are_told_by_site_and_day_where_the_network_has_few_kinds_of_rows(
    tmp_path,
):
    """The columns beside the network tell copies from rows that are alike by chance."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 6, N) for name in ("a", "b", "c", "d")})
    frame["e"] = (frame["a"] + rng.integers(0, 2, N)) % 6
    frame["site"] = rng.choice(["north", "south", "east", "west", "harbour"], N)
    frame["day"] = clean_table()["day"]
    frame = pd.concat([frame, frame.sample(400, random_state=0)], ignore_index=True)
    frame = frame.sample(frac=1, random_state=0)
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "e")]
    (found,) = serious(look_at(frame, tmp_path, edges))
    assert (found.kind, found.cause) == ("repeated rows", "copies")
    assert "the same in all 5 columns of the network and in site and day" in found.sentence
    assert "'site', 'day'" in found.advice.python
    assert not serious(look_at(frame.drop(columns=["site", "day"]), tmp_path, edges))


@pytest.mark.parametrize("place", ["memory", "stream"])
def test_cases_that_were_entered_twice_with_other_ids_are_told_wherever_they_stand(tmp_path, place):
    frame, rng = clean_table(), np.random.default_rng(0)
    frame["weight"] += rng.integers(0, 100, N) / 1000  # weighed to the gram
    copies = frame.iloc[rng.choice(N, 300, replace=False)]
    frame = pd.concat([frame, copies], ignore_index=True).iloc[rng.permutation(N + 300)]
    frame = frame.assign(id=np.arange(10_000, 10_300 + N), day="2023-01-01")
    found = look_at(frame, tmp_path, place=place).findings_
    (told,) = [each for each in found if each.kind == "repeated rows"]
    assert (told.severity, told.cause) == ("warning", "copies")
    assert abs(told.n_rows - 300) <= 10
    assert not told.where  # of two rows that stand anywhere, the later one is no place
    nodes = ["sex", "height", "weight", "risk"]
    assert frame.reset_index().duplicated(nodes)[list(told.rows)].all()


def test_numbers_whose_decimal_point_slipped_are_told_with_the_factor(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(3)
    age = np.round(rng.gamma(4, 9, N) + 18)  # long to the right: ten times as old is not far
    some = rng.choice(N, 30, replace=False)
    age[some] *= 10
    fit = look_at(frame.assign(risk=age.clip(18, 900)), tmp_path)
    (told,) = serious(fit)
    assert (told.kind, told.cause, told.columns) == ("wrong cells", "decimal point", ("risk",))
    assert abs(told.n_rows - 30) <= 3
    assert "divided by 10" in told.sentence


@pytest.mark.parametrize(
    ("factor", "cause", "how"),
    [(12, "unit", "divided by 12"), (0.001, "decimal point", "multiplied by 1,000")],
)
def test_numbers_of_another_unit_are_told_with_the_factor(tmp_path, factor, cause, how):
    frame = clean_table()
    frame.loc[::100, "height"] *= factor
    (told,) = serious(look_at(frame, tmp_path))
    assert (told.kind, told.cause, told.columns) == ("wrong cells", cause, ("height",))
    assert told.n_rows == 40
    assert how in told.sentence


def test_a_series_that_was_dragged_over_a_column_is_told_as_one(tmp_path):
    frame = clean_table()
    frame.loc[2000:2079, "weight"] = 40.0 + np.arange(80)
    [found] = [f for f in serious(look_at(frame, tmp_path)) if f.columns == ("weight",)]
    assert (found.kind, found.cause) == ("column differs", "series")
    assert "ascend by the same step" in found.sentence


def test_numbers_that_were_copied_down_are_told_with_their_lines(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(2)
    for k in range(2000, 2120):
        if rng.random() < 0.7:
            frame.loc[k, "weight"] = frame.loc[k - 1, "weight"]
    [found] = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause) == ("column differs", "copied down")
    assert found.columns == ("weight",)
    first, last = (int(line.replace(",", "")) for line in found.where["line"].split(" to "))
    assert (first, last) == (pytest.approx(2002, abs=20), pytest.approx(2121, abs=20))


def test_the_mean_that_stands_for_missing_values_is_to_be_declared_missing(tmp_path):
    frame = clean_table()
    mean = round(float(frame["weight"].mean()), 2)
    frame.loc[::20, "weight"] = mean
    [found] = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause, found.columns) == ("wrong cells", "filled in", ("weight",))
    assert f"--missing weight={mean}" in found.advice.command


def test_numbers_with_a_wrong_sign_at_one_site_are_one_finding(tmp_path):
    frame = clean_table()
    frame.loc[(frame["site"] == "north") & (np.arange(N) < 1200), "weight"] *= -1
    [found] = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause) == ("wrong cells", "sign")
    assert found.where["site"] == "north"


def test_pounds_at_one_of_thirty_sites_for_some_months_are_told_with_both(tmp_path):
    frame, rng = clean_table(), np.random.default_rng(5)
    frame["site"] = rng.integers(101, 131, N)
    is_bad = (frame["site"] == 117) & frame["day"].between("2023-05-01", "2023-12-31")
    frame.loc[is_bad, "weight"] *= 2.2046
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.severity, found.cause, found.columns) == ("error", "unit", ("weight",))
    assert found.where["site"] == "117"
    assert {*found.where} & {"day", "line"}


def test_numbers_that_are_rounded_at_one_site_are_told_with_the_step(tmp_path):
    frame = clean_table()
    rows = np.flatnonzero(frame["site"] == "north")[300:340]
    frame.loc[rows, "weight"] = frame.loc[rows, "weight"].round(-1)
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.severity, found.cause, found.columns) == ("warning", "rounded", ("weight",))
    assert found.where["site"] == "north"
    assert "weight: nearly all are multiples of 10 there" in found.sentence


def test_half_of_a_sites_numbers_that_are_the_same_are_told_with_it(tmp_path):
    frame = clean_table()
    rows = np.flatnonzero(frame["site"] == "north")[::2]
    frame.loc[rows, "weight"] = 70.0
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.cause, found.columns) == ("one value", ("weight",))
    assert "% are 70 there (" in found.sentence


def test_a_column_that_was_copied_over_another_at_one_site_is_told_with_both(tmp_path):
    frame = clean_table()
    rows = np.flatnonzero(frame["site"] == "north")[300:400]
    frame.loc[rows, "weight"] = frame.loc[rows, "height"]
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.cause, found.columns) == ("values of another column", ("weight",))
    assert "They look like values of height" in found.sentence
    near, rng = clean_table(), np.random.default_rng(2)
    near["waist"] = (near["height"] - 80 + rng.normal(0, 5, N)).round(1)
    near.loc[rows, "weight"] = near.loc[rows, "waist"]
    (found,) = serious(look_at(near, tmp_path, [*EDGES, ("height", "waist")]))
    assert (found.cause, found.columns[0]) == ("copied column", "weight")
    assert "weight: nearly all are the same as waist there" in found.sentence


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y"])
def test_dates_in_another_form_at_one_site_are_told_whatever_the_form_of_the_others(form, tmp_path):
    frame = clean_table()
    days = pd.to_datetime(frame["day"])
    other = "%d/%m/%Y" if form != "%d/%m/%Y" else "%m/%d/%Y"
    rows = np.flatnonzero(frame["site"] == "north")[300:340]
    frame["day"] = days.dt.strftime(form)
    frame.loc[rows, "day"] = days[rows].dt.strftime(other)
    (found,) = serious(look_at(frame, tmp_path))
    cause = "no date" if form in ("%Y-%m-%d", "%d.%m.%Y") else "day and month exchanged"
    assert (found.kind, found.columns, found.cause) == ("unreadable values", ("day",), cause)
    assert found.where["site"] == "north"


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
def test_dates_with_a_wrong_year_are_told_as_far_from_all_others(form, tmp_path):
    frame = clean_table()
    days = pd.to_datetime(frame["day"])
    days[::200] = days[::200] - pd.Timedelta(36_525, "D")
    frame["day"] = days.dt.strftime(form)
    (found,) = serious(look_at(frame, tmp_path))
    assert (found.kind, found.cause, found.columns) == ("wrong cells", "far values", ("day",))
    assert found.n_cells == 20
    assert "20 values of day are far from all other dates" in found.sentence


def test_a_long_stretch_of_rows_that_differs_is_a_note_and_a_short_one_a_warning(tmp_path):
    """Files come in some order: of two halves that differ, nobody knows which one is odd."""
    for n_rows, severity in ((1500, "note"), (400, "warning")):
        frame, rng = clean_table(), np.random.default_rng(0)
        rows = np.arange(1000, 1000 + n_rows)
        frame.loc[rows, "risk"] = rng.choice(["high", "low"], n_rows, p=[0.7, 0.3])
        found = look_at(frame.drop(columns="day"), tmp_path).findings_
        told = [each for each in found if each.columns == ("risk",) and each.where]
        told = [each for each in told if "line" in each.where and not each.cause]
        assert [each.severity for each in told] == [severity], [str(f) for f in found]


def test_findings_are_ranked_and_each_has_a_known_kind_and_severity(tmp_path):
    frame = clean_table()
    frame.loc[:20, "weight"] = 999
    frame = pd.concat([frame, frame.iloc[:100]], ignore_index=True)
    found = look_at(frame, tmp_path).findings_
    ranks = [SEVERITIES.index(each.severity) for each in found]
    assert ranks == sorted(ranks)
    assert {each.kind for each in found} <= set(vars(Kind).values())
    assert all(0 <= each.probability <= 1 for each in found)
    mixed = [Finding("rows", s, "", p) for s, p in (("note", 1), ("error", 0.5), ("error", 0.9))]
    assert [f.probability for f in rank_findings(mixed)] == [0.9, 0.5, 1]


@pytest.mark.parametrize(("of_values", "of_column"), [("warning", "note"), ("note", "warning")])
def test_a_column_that_differs_by_values_that_are_told_is_a_note(of_values, of_column):
    there = {"columns": ("weight",), "where": {"site": "north"}, "n_rows": 100}
    values = Finding(Kind.WRONG_CELLS, of_values, "Far.", 0.8, **there)
    differs = Finding(Kind.COLUMN_DIFFERS, "warning", "Differs.", 0.8, **there)
    found = {each.kind: each.severity for each in registry._without_echoes([values, differs])}
    assert found == {Kind.WRONG_CELLS: of_values, Kind.COLUMN_DIFFERS: of_column}


def test_a_group_that_is_more_likely_natural_is_a_note(monkeypatch):
    chances = {1: 0.4, 2: 0.49, 3: 0.8, 4: 0.51, 5: 0.1}
    groups = [Group(0.1, 10, (), n, p, is_bad=False) for n, p in chances.items()]
    for name, said in (("_origins_of", ()), ("_say_group", ""), ("_decide", None)):
        monkeypatch.setattr(registry, name, lambda *_, said=said: said)
    result = SimpleNamespace(groups=groups, kinds=[], n_distrusted=0)
    found = {each.group: each.severity for each in registry.find_rows(result)}
    assert found == {1: "note", 2: "note", 3: "warning", 4: "warning"}


def test_a_new_kind_of_finding_is_one_more_function_in_the_registry(tmp_path, monkeypatch):
    new = Finding("wrong cells", "error", "Said by a new function.", 1.0)
    monkeypatch.setattr(registry, "FINDERS", (*registry.FINDERS, lambda result: [new]))
    assert look_at(clean_table(), tmp_path).findings_[0] is new


# --- where they are shown -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("found")
    frame = clean_table()
    frame = pd.concat([frame, frame.iloc[1000:1200]], ignore_index=True)
    frame.to_csv(folder / "rows.csv", index=False)
    (folder / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in EDGES))
    return folder


def run(folder, *more):
    words = ["fit", str(folder / "edges.csv"), str(folder / "rows.csv"), "--seed", "0", *more]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_holds_the_findings_with_these_entries(folder):
    found = json.loads(run(folder, "--json"))["findings"]
    entries = ["kind", "cause", "severity", "probability", "columns", "where", "n_rows", "n_cells",
               "group", "sentence", "advice"]  # fmt: skip
    assert [list(each) for each in found] == [entries] * len(found)
    assert found[0]["severity"] == "error"
    assert list(found[0]["advice"]) == ["say", "command", "python"]


def test_terminal_page_markdown_and_notebook_say_the_same_findings(folder, tmp_path):
    told = run(folder, "--report", str(tmp_path / "page.html"))
    fit = robustbn.fit(folder / "edges.csv", folder / "rows.csv", random_state=0)
    page = (tmp_path / "page.html").read_text()
    for finding in serious(fit):
        sentence = finding.sentence
        assert sentence in " ".join(told.split())
        assert sentence in page
        assert sentence in fit.to_markdown()
        assert sentence in fit._repr_html_()
    assert told.startswith("2 errors were found. ")


def test_private_rows_show_no_value_in_findings(tmp_path):
    frame = clean_table()
    frame = frame.assign(id=[f"secret-{k}" for k in range(N)])
    frame["weight"] = frame["weight"].astype(object)
    frame.loc[frame["site"] == "south", "weight"] = "hush"
    frame = pd.concat([frame, frame.iloc[1000:1200]], ignore_index=True)
    fit = look_at(frame, tmp_path)
    assert any("secret-" in each.sentence for each in fit.findings_)
    hidden = fit.result_.shown(rows=False).findings
    said = " ".join(f"{f.sentence} {f.where} {f.advice}" for f in hidden)
    assert "repeated ids" in {f.kind for f in hidden}
    for word in ("secret-", "hush", "south"):
        assert word not in said


def test_missing_values_can_be_declared_on_the_command_line(folder, tmp_path):
    frame = clean_table()
    frame.loc[:9, "weight"] = 999
    frame.loc[:4, "risk"] = "?"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = ["fit", str(folder / "edges.csv"), str(tmp_path / "rows.csv"), "--json"]
    told = CliRunner().invoke(main, [*words, "--missing", "weight=999", "--missing", "?"])
    facts = json.loads(told.stdout)
    assert facts["table"]["missing_by_column"] == {"weight": 10, "risk": 5}
    told = CliRunner().invoke(main, [*words, "--missing", "999", "--missing", "drop"])
    assert json.loads(told.stdout)["table"]["rows_left_out"] == 10
    told = CliRunner().invoke(main, [*words, "--missing", "drpo"])
    assert told.exit_code == 2
    assert "Did you mean 'drop'?" in told.output
    told = CliRunner().invoke(main, [*words, "--missing", "wait=999"])
    assert told.exit_code == 2
    assert "Did you mean 'weight'?" in told.output


def test_a_model_from_a_file_holds_no_findings(folder, tmp_path):
    fit = robustbn.fit(folder / "edges.csv", folder / "rows.csv", random_state=0)
    fit.save(tmp_path / "model.json")
    assert RobustEstimator.load(tmp_path / "model.json").findings_ == []


def test_a_sensor_that_drifts_in_the_last_rows_is_told():
    rng = np.random.default_rng(0)
    load = rng.gamma(4.0, 10.0, 4_000)
    frame = pd.DataFrame({"load": load, "heat": load + rng.normal(0, 8, 4_000)})
    assert not [
        f for f in robustbn.fit([("load", "heat")], frame).findings_ if f.severity != "note"
    ]
    frame.loc[3_800:, "heat"] *= np.linspace(1, 2, 200)
    found = robustbn.fit([("load", "heat")], frame, random_state=0).findings_
    differing = [f for f in found if f.kind == "column differs" and "heat" in f.columns]
    assert any("row number" in f.where for f in differing)


def relabelled(frame, finding, tmp_path):
    """The findings of unreadable values once the labels are mapped as a finding says."""
    labels = ast.literal_eval(finding.advice.python.partition("labels=")[2].removesuffix(")"))
    found = look_at(frame, tmp_path, labels=labels).findings_
    return [each for each in found if each.kind == "unreadable values"]


@pytest.mark.parametrize(
    ("broken", "right"),
    [("hypothÃ¨que", "hypothèque"), ("Ã‰cole", "École"), ("dÃƒÂ©cÃƒÂ¨s", "décès"),
     ("hypoth\ufffdque", "hypothèque")],
)  # fmt: skip
def test_a_label_from_a_wrong_encoding_is_mapped_to_the_one_it_was(tmp_path, broken, right):
    frame = clean_table()
    frame["sex"] = frame["sex"].replace("female", right)
    frame.loc[np.flatnonzero(frame["sex"] == right)[:30], "sex"] = broken
    (told,) = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
    assert f"{broken.strip()}={right.strip()}" in told.advice.command
    assert not relabelled(frame, told, tmp_path)


def test_a_label_from_a_wrong_encoding_is_mapped_though_no_other_row_has_it(tmp_path):
    frame = clean_table()
    frame["sex"] = frame["sex"].replace("female", "fÃ©minin")
    (told,) = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
    assert "fÃ©minin=féminin" in told.advice.command
    assert not relabelled(frame, told, tmp_path)


def test_labels_in_several_cases_are_all_mapped_to_the_most_frequent_one(tmp_path):
    frame = clean_table()
    frame["sex"] = frame["sex"].replace("female", "lycée")
    rows = np.flatnonzero(frame["sex"] == "lycée")
    frame.loc[rows[:60], "sex"] = "Lycée"
    frame.loc[rows[60:90], "sex"] = "LYCÉE"
    (told,) = [f for f in look_at(frame, tmp_path).findings_ if f.kind == "unreadable values"]
    assert "'sex:Lycée=lycée,LYCÉE=lycée'" in told.advice.command
    assert not relabelled(frame, told, tmp_path)


def test_a_frequent_label_of_another_column_is_not_mistyped(tmp_path):
    frame = clean_table()
    frame["risk"] = frame["risk"].map({"high": "did not ride", "low": "rode"})
    frame["sex"] = frame["sex"].map({"female": "did not drive", "male": "drove"})
    frame.loc[7, "risk"] = "did not drive"
    assert not [f for f in look_at(frame, tmp_path).findings_ if f.cause == "mistyped"]
    frame.loc[7, "risk"] = "did not rlde"
    assert [f for f in look_at(frame, tmp_path).findings_ if f.cause == "mistyped"]


def test_rare_labels_are_not_told_as_if_they_were_a_label(tmp_path):
    """A hundred labels of a few rows each are one state, 'other', which the file has not."""
    frame, rng = clean_table(), np.random.default_rng(5)
    frame["risk"] = rng.choice([f"kind {k}" for k in range(20)], N)
    rows = np.flatnonzero(frame["site"] == "north")
    frame.loc[rows, "risk"] = [f"{a} and {b}" for a, b in rng.integers(0, 99, (len(rows), 2))]
    fit = look_at(frame, tmp_path, most_states=12)
    told = [each for each in fit.findings_ if each.cause == "one value"]
    assert "nearly all are rare labels there" in told[0].sentence
    assert not [each for each in fit.findings_ if "'other'" in each.sentence]


def test_all_rows_of_scaled_numbers_are_named_or_are_said_to_be_examples(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(100, 20, N).round(1)
    frame = pd.DataFrame({"size": size, "weight": (2 * size + rng.normal(0, 2, N)).round(1)})
    for n in (100, 400):
        spoiled = frame.copy()
        rows = rng.choice(N, n, replace=False)
        spoiled.loc[rows, "weight"] = (spoiled.loc[rows, "weight"] / 2.2046).round(1)
        (told,) = [
            each
            for each in look_at(spoiled, tmp_path, edges=[("size", "weight")]).findings_
            if each.cause == "unit"
        ]
        named = ast.literal_eval(told.advice.python.partition("index[")[2].partition("]")[0] + "]")
        assert "for example in lines" in told.sentence
        if n == 100:
            assert len(set(named) & set(rows.tolist())) >= 90
            assert "#" not in told.advice.python
        else:
            assert len(named) == 3
            assert "# for example: of about " in told.advice.python
