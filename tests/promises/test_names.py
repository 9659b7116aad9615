"""Promises of names: rows keep them wherever they are shown, and the table can be had back."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import RobustEstimator
from robustbn._cli.fit_files import split_records
from robustbn._show.page.payload import page_data
from robustbn.cli import main
from robustbn.exceptions import DataError
from robustbn.simulate import corrupt

N_ROWS = 4_000


@pytest.fixture(scope="module")
def named():
    """Rows of a random tree, a tenth of them bad, each with a name and a site."""
    network = robustbn.random_network("tree", 20, random_state=0)
    rows, _ = corrupt(
        robustbn.sample(network, N_ROWS, random_state=0), network, "product", 0.1, random_state=1
    )
    frame = pd.DataFrame(
        {n: np.array(network.states[n], object)[rows[:, k]] for k, n in enumerate(network.nodes)}
    )
    frame.insert(0, "uid", [f"u{k:05d}" for k in range(N_ROWS)])
    frame["site"] = np.where(np.arange(N_ROWS) % 7 == 0, None, 1 + np.arange(N_ROWS) % 5)
    return network, frame


@pytest.fixture(scope="module")
def fitted(named):
    network, frame = named
    return robustbn.fit(network, frame, id="uid", keep=["site"], random_state=0)


@pytest.fixture
def on_disk(named, tmp_path):
    network, frame = named
    network.write(tmp_path / "net.json")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def run(*arguments):
    told = CliRunner().invoke(main, [str(a) for a in arguments])
    assert told.exit_code == 0, told.output
    return told


def test_rows_and_questions_begin_with_the_name(named, fitted):
    _, frame = named
    rows = fitted.rows()
    assert list(rows.columns) == ["uid", "site", "row", "weight", "is_suspicious", "why"]
    assert rows["uid"].tolist() == frame["uid"].tolist()
    assert rows["site"].isna().tolist() == frame["site"].isna().tolist()
    asked = fitted.ask(5)
    assert list(asked.columns[:3]) == ["uid", "site", "row"]
    assert asked["uid"].tolist() == frame["uid"][asked["row"]].tolist()


def test_names_do_not_change_what_is_learned(named, fitted):
    network, frame = named
    plain = robustbn.fit(network, frame, context=(), random_state=0)
    assert (plain.network_.probabilities == fitted.network_.probabilities).all()
    assert list(plain.rows().columns) == ["row", "weight", "is_suspicious", "why"]


def test_every_kind_of_table_keeps_names(named, tmp_path):
    network, frame = named
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    tables = [pa.Table.from_pandas(frame), frame.to_dict("list"), *tmp_path.iterdir()]
    for table in tables:
        read = robustbn.read_table(table, network, id="uid", context=())
        assert read.aside.of()["uid"].tolist() == frame["uid"].tolist()
        assert read.aside.of(np.array([3, 1]))["uid"].tolist() == ["u00003", "u00001"]


def test_rows_that_are_left_out_keep_their_names(named):
    network, frame = named
    frame = frame.copy()
    frame.loc[frame.index[:10], network.nodes[0]] = None
    fit = robustbn.fit(network, frame, on_missing="drop", id="uid", random_state=0)
    rows = fit.rows()
    assert rows["uid"].tolist() == frame["uid"].tolist()
    assert rows["weight"].isna().sum() == 10


def test_later_rows_show_names_if_they_have_them(named, fitted, tmp_path):
    _, frame = named
    assert fitted.rows(frame.iloc[5:8])["uid"].tolist() == ["u00005", "u00006", "u00007"]
    assert next(iter(fitted.rows(frame.drop(columns=["uid", "site"])).columns)) == "row"
    fitted.save(tmp_path / "model.json")
    loaded = RobustEstimator.load(tmp_path / "model.json")
    assert loaded.reading_.config.id == "uid"
    assert loaded.reading_.config.keep == ("site",)
    assert loaded.rows(frame.iloc[5:8])["uid"].tolist() == ["u00005", "u00006", "u00007"]


def test_a_name_that_is_taken_is_told_apart(named):
    network, frame = named
    fit = robustbn.fit(network, frame.rename(columns={"uid": "row"}), id="row", random_state=0)
    assert list(fit.rows().columns)[:2] == ["row (column)", "row"]


def test_columns_that_are_not_there_are_refused(named):
    network, frame = named
    for wrong in ({"id": "name"}, {"keep": ["site", "name"]}):
        with pytest.raises(DataError, match="no column 'name', which id or keep names"):
            robustbn.read_table(frame, network, **wrong)
    with pytest.raises(ValueError, match="id must be a column name"):
        robustbn.read_table(frame, network, id=3)


def test_the_page_names_its_rows_unless_they_are_private(named, fitted):
    _, frame = named
    data = page_data(fitted.result_.shown())
    assert data["names"] == ["uid", "site"]
    for row in data["rows"]:
        assert row[5][0] == frame["uid"][row[0]]
    assert page_data(fitted.result_.shown(rows=False))["names"] == []
    assert not re.search(r"\bu\d{5}", fitted.report(rows=False).split('id="data"')[-1])


def test_typical_rows_of_a_kind_have_their_names_on_the_page(named, fitted):
    _, frame = named
    shown = fitted.report().split('class="example"', 1)[1].split("</details>", 1)[0]
    for example in fitted.kinds_[0].examples:
        for number in (example.row, example.nearest):
            heading = re.search(rf"ow {number}\b(.*?)</th>", shown, re.DOTALL).group(1)
            assert f"uid {frame['uid'][number]}" in heading
            assert ("site" in heading) == (frame["site"][number] is not None)
    assert 'class="example"' not in fitted.report(rows=False)


def test_repeated_rows_have_their_names_on_the_page(named):
    network, frame = named
    copied = frame.index.to_numpy().copy()
    copied[100:400] = 100
    frame = frame.loc[copied].reset_index(drop=True).assign(uid=frame["uid"])
    report = robustbn.fit(network, frame, id="uid", random_state=0).result_.shown()
    repeats = page_data(report)["repeats"]
    assert repeats
    for number, *_, names in repeats:
        assert names == [frame["uid"][number]]
    assert page_data(replace(report, rows_hidden=True))["repeats"] == []


def test_the_command_line_names_rows(on_disk):
    arguments = ["fit", on_disk / "net.json", on_disk / "rows.csv", "--id", "uid", "--keep", "site"]
    told = run(*arguments, "--ask", 3, "--output-dir", on_disk / "all", "--json")
    asked = json.loads(told.stdout)["ask"]
    assert list(asked[0])[:3] == ["uid", "site", "row"]
    assert all(line["uid"] == f"u{line['row']:05d}" for line in asked)
    rows = pq.read_table(on_disk / "all" / "rows.parquet")
    assert rows.column_names[:3] == ["uid", "site", "row"]
    told = run(*arguments, "--ask", 3)
    assert asked[0]["uid"] in told.output
    assert re.search(r"check row.* uid +site +because", told.output)
    private = json.loads(run(*arguments, "--ask", 3, "--no-rows", "--json").stdout)["ask"]
    assert list(private[0]) == ["row", "weight", "group", "change"]


def test_rows_that_are_scored_are_named(on_disk):
    model = on_disk / "model.json"
    net, table = on_disk / "net.json", on_disk / "rows.csv"
    run("fit", net, table, "--id", "uid", "--keep", "site", "--model", model)
    worst = json.loads(run("score", model, table, "--json").stdout)["worst"]
    assert list(worst[0]) == ["uid", "site", "row", "weight", "why"]
    assert all(line["uid"] == f"u{line['row']:05d}" for line in worst)
    told = run("score", model, table).stdout
    assert f"0.000  uid {worst[0]['uid']}, site " in told
    assert not re.search(r"\bu\d{5}", run("score", model, table, "--no-rows").stdout)


# --- the table, cleaned ---------------------------------------------------------------------------


def clean(folder, table, target, *options):
    told = run(
        "fit", folder / "net.json", folder / table, "--clean", folder / target,
        "--weights", folder / "w.csv", "--force", *options,
    )  # fmt: skip
    assert str(folder / target) in told.output
    return pd.read_csv(folder / "w.csv")["weight"].to_numpy()


def test_a_text_file_is_written_as_it_was_with_one_more_value(on_disk):
    weights = clean(on_disk, "rows.csv", "trust.csv")
    before = (on_disk / "rows.csv").read_text().splitlines()
    after = (on_disk / "trust.csv").read_text().splitlines()
    assert after[0] == before[0] + ",robustbn_trust"
    assert [line.rpartition(",")[0] for line in after[1:]] == before[1:]
    told = [float(line.rpartition(",")[2]) for line in after[1:]]
    np.testing.assert_allclose(told, weights, rtol=1e-5)


def test_files_of_other_column_orders_and_encodings_become_one_table(on_disk, named):
    _, frame = named
    (on_disk / "parts").mkdir()
    half = N_ROWS // 2
    frame[:half].to_csv(on_disk / "parts" / "a.csv", index=False, encoding="utf-16")
    turned = frame[half:][frame.columns[::-1]].drop(columns="site")
    turned.to_csv(on_disk / "parts" / "b.csv", index=False)
    weights = clean(on_disk, "parts", "trust.csv")
    back = pd.read_csv(on_disk / "trust.csv", dtype=str, encoding="utf-16")
    frame = frame.astype(str)
    frame.loc[half:, "site"] = np.nan
    pd.testing.assert_frame_equal(back.drop(columns="robustbn_trust"), frame, check_dtype=False)
    np.testing.assert_allclose(back["robustbn_trust"].astype(float), weights, rtol=1e-5)


def test_distrusted_rows_are_left_out_of_a_text_file(on_disk):
    weights = clean(on_disk, "rows.csv", "good.csv", "--drop-distrusted")
    before = (on_disk / "rows.csv").read_text().splitlines()
    good = [line for line, weight in zip(before[1:], weights, strict=True) if weight >= 0.5]
    assert 0 < len(good) < len(before) - 1
    assert (on_disk / "good.csv").read_text().splitlines() == [before[0], *good]


def test_quotes_line_breaks_and_endings_are_kept(on_disk, named):
    _, frame = named
    frame = frame.copy()
    frame["note"] = np.resize(['say "hi", twice', "two\nlines", 'a 5" pipe', "plain", ""], N_ROWS)
    frame.to_csv(on_disk / "odd.csv", index=False, sep=";", lineterminator="\r\n")
    text = (on_disk / "odd.csv").read_bytes().decode()
    text = text.replace('"a 5"" pipe"', 'a 5" pipe').replace("\r\n", "\r\n\r\n", 1)
    (on_disk / "odd.csv").write_bytes(("\ufeff" + text).encode())
    weights = clean(on_disk, "odd.csv", "odd-trust.csv", "--sep", ";")
    assert b"\r\n" in (on_disk / "odd-trust.csv").read_bytes()
    back = pd.read_csv(on_disk / "odd-trust.csv", sep=";", dtype=str, keep_default_na=False)
    same = pd.read_csv(on_disk / "odd.csv", sep=";", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(back.drop(columns="robustbn_trust"), same)
    np.testing.assert_allclose(back["robustbn_trust"].astype(float), weights, rtol=1e-5)


def test_a_value_of_many_lines_takes_as_long_as_as_many_records(tmp_path):
    n_lines, took = 10_000, {}
    for name, line in (("records", '"a","b"\n'), ("value", 'a,""b""\n')):
        file = tmp_path / f"{name}.csv"
        quote = '"' if name == "value" else ""
        file.write_text("h,i\n" + quote + line * n_lines + quote + "\n")
        start = time.process_time()
        found = [record for record, _ in split_records(file, ",", "utf-8")]
        took[name] = time.process_time() - start
        assert len(found) == (2 if quote else n_lines + 2)
        assert "".join(found) == file.read_text()
    assert took["value"] < 20 * took["records"]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
def test_other_formats_keep_their_columns(on_disk, named, kind):
    _, frame = named
    frame = frame.assign(when=pd.Timestamp("2024-03-01"), tags=[["a", "b"]] * N_ROWS)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    path = on_disk / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=1_500)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        frame.to_json(path, orient="records", lines=True, date_format="iso")

    def load(name):
        if kind == "parquet":
            return pq.read_table(on_disk / name)
        if kind == "arrow":
            return pa.ipc.open_file(on_disk / name).read_all()
        lines = (on_disk / name).read_text().splitlines()
        return pa.Table.from_pylist([json.loads(line) for line in lines])

    weights = clean(on_disk, path.name, f"trust.{kind}")
    before, after = load(path.name), load(f"trust.{kind}")
    assert after.drop_columns(["robustbn_trust"]).equals(before)
    np.testing.assert_allclose(after["robustbn_trust"].to_numpy(), weights, rtol=1e-5)
    clean(on_disk, path.name, f"good.{kind}", "--drop-distrusted")
    assert load(f"good.{kind}").equals(before.filter(pa.array(weights >= 0.5)))


def test_rows_that_were_left_out_have_no_trust(on_disk, named):
    network, frame = named
    frame = frame.copy()
    frame.loc[frame.index[:10], network.nodes[0]] = None
    frame.to_csv(on_disk / "holes.csv", index=False)
    clean(on_disk, "holes.csv", "trust.csv", "--missing", "drop")
    trust = pd.read_csv(on_disk / "trust.csv")["robustbn_trust"]
    assert trust.isna().to_numpy().nonzero()[0].tolist() == list(range(10))


@pytest.mark.parametrize("place", ["memory", "stream"])
def test_a_header_line_in_the_middle_of_a_text_file_has_no_trust(on_disk, place):
    lines = (on_disk / "rows.csv").read_text().splitlines()
    (on_disk / "joined.csv").write_text("\n".join([*lines[:1_001], *lines]))
    weights = clean(on_disk, "joined.csv", "good.csv", "--drop-distrusted", "--place", place)
    assert np.flatnonzero(np.isnan(weights)).tolist() == [1_000]
    assert (on_disk / "good.csv").read_text().splitlines().count(lines[0]) == 1


def test_several_files_become_one(on_disk, named):
    _, frame = named
    (on_disk / "many").mkdir()
    for k in range(3):
        frame.iloc[k::3].to_csv(on_disk / "many" / f"{k}.csv", index=False)
    clean(on_disk, "many", "one.csv")
    expected = [uid for k in range(3) for uid in frame["uid"].iloc[k::3]]
    assert pd.read_csv(on_disk / "one.csv")["uid"].tolist() == expected


def test_a_table_in_stretches_can_be_cleaned(on_disk):
    weights = clean(on_disk, "rows.csv", "trust.csv", "--place", "stream")
    trust = pd.read_csv(on_disk / "trust.csv")["robustbn_trust"]
    np.testing.assert_allclose(trust, weights, rtol=1e-5)


def test_clean_is_refused_before_the_fit(on_disk):
    def refused(*options):
        arguments = ["fit", on_disk / "net.json", on_disk / "rows.csv", *options]
        told = CliRunner().invoke(main, [str(a) for a in arguments])
        assert told.exit_code == 2, told.output
        return told.output

    assert "must end in one of .csv" in refused("--clean", on_disk / "trust.parquet")
    assert "is read by this command" in refused("--clean", on_disk / "rows.csv", "--force")
    assert "requires --clean" in refused("--drop-distrusted")
