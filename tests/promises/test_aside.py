"""Promises of names and context wherever rows are: the same in stretches as in memory."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import Streaming
from robustbn._rows.stream import context_pass
from robustbn._rows.stream import data as stream_data
from robustbn._tables import aside as naming
from robustbn._tables import context as grouping
from robustbn._tables.context import ContextCoder, ContextCounts, group_rows
from robustbn.cli import main
from robustbn.exceptions import ContextWarning, DataError, NotFittedError
from tests.tables import draw_feeds

N_ROWS = 12_000


@pytest.fixture(scope="module")
def feeds():
    network, frame, is_bad, rng = draw_feeds(N_ROWS)
    frame["heat"] = rng.normal(20, 5, N_ROWS) + 8 * is_bad
    frame.loc[frame.index[::17], "heat"] = np.nan
    frame["seen"] = frame["day"] + pd.to_timedelta(rng.integers(0, 24 * 60, N_ROWS), "min")
    return network, frame


@pytest.fixture(scope="module")
def many_files(feeds, tmp_path_factory):
    """The same rows in Parquet files, and as one file of text."""
    _, frame = feeds
    folder = tmp_path_factory.mktemp("rows")
    for k, piece in enumerate(np.array_split(np.arange(N_ROWS), 5)):
        part = frame.iloc[piece]
        pq.write_table(
            pa.Table.from_pandas(part, preserve_index=False),
            folder / f"{k}.parquet",
            row_group_size=1_000,
        )
    return folder


@pytest.fixture(scope="module")
def json_files(feeds, tmp_path_factory):
    """The same rows as JSON lines, in folders that hold a column."""
    folder = tmp_path_factory.mktemp("json")
    for k, piece in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        (folder / f"site=s{k}").mkdir()
        part, path = feeds[1].iloc[piece], folder / f"site=s{k}" / "rows.jsonl"
        part.to_json(path, orient="records", lines=True, date_format="iso")
    return folder


@pytest.fixture(scope="module")
def text_file(feeds, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "rows.csv"
    feeds[1].to_csv(path, index=False)
    return path


SETTINGS = {"id": "uid", "keep": ["sensor"], "random_state": 0}


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found.where(), expected.where(), check_exact=True)
    few, many = found.where(p_value=1e-9), found.where(p_value=0.9)
    pd.testing.assert_frame_equal(few, expected.where(p_value=1e-9), check_exact=True)
    pd.testing.assert_frame_equal(many, expected.where(p_value=0.9), check_exact=True)
    pd.testing.assert_frame_equal(found.rows(), expected.rows())
    pd.testing.assert_frame_equal(found.ask(5), expected.ask(5))


@pytest.fixture(scope="module")
def in_memory(feeds):
    """Fits of the files as rows in memory, each made once."""
    return cache(lambda path: robustbn.fit(feeds[0], path, **SETTINGS))


def limits(monkeypatch, *, is_counted=False, judges_again=False, names_few=False):
    """Set limits so low that the rows of a test exceed them."""
    if is_counted:
        monkeypatch.setattr(context_pass, "MOST_HELD", 0)
    if judges_again:
        monkeypatch.setattr(stream_data, "MOST_WEIGHTS_HELD", 0)
    if names_few:
        monkeypatch.setattr(naming, "MOST_NAME_BYTES", 10_000)


@pytest.mark.parametrize("is_counted", [False, True])
@pytest.mark.parametrize("kind", ["many_files", "text_file", "json_files"])
def test_a_table_in_stretches_tells_what_rows_in_memory_tell(
    feeds, in_memory, kind, is_counted, monkeypatch, request
):
    network, table = feeds[0], request.getfixturevalue(kind)
    expected = in_memory(table)
    assert {"feed", "heat", "seen", "row number"} <= set(expected.where()["column"])
    limits(monkeypatch, is_counted=is_counted)
    found = robustbn.fit(network, table, place="stream", **SETTINGS)
    assert (found.result_.aside.counted is not None) == is_counted
    assert_same(found, expected)
    assert (found.row_weights_ == expected.row_weights_).all()


def test_context_needs_no_trust_in_memory(feeds, in_memory, many_files, monkeypatch):
    network, _ = feeds
    expected = in_memory(many_files)
    limits(monkeypatch, judges_again=True)
    found = robustbn.fit(network, many_files, place="stream", **SETTINGS)
    assert not hasattr(found, "row_weights_")
    pd.testing.assert_frame_equal(found.where(), expected.where(), check_exact=True)
    pd.testing.assert_frame_equal(found.ask(5), expected.ask(5))
    assert 'class="apart where"' in found.report()
    assert found.ask(1)["uid"][0] in found.report()


def test_rows_that_are_left_out_are_not_counted(feeds, tmp_path, monkeypatch):
    network, frame = feeds
    frame = frame.copy()
    frame.loc[frame.index[::7], network.nodes[0]] = None
    frame.to_parquet(tmp_path / "rows.parquet")
    settings = {**SETTINGS, "on_missing": "drop", "sample_rows": 100_000}
    expected = robustbn.fit(network, tmp_path / "rows.parquet", **settings)
    for is_counted, judges_again in ((False, False), (True, False), (True, True)):
        limits(monkeypatch, is_counted=is_counted, judges_again=judges_again)
        found = robustbn.fit(network, tmp_path / "rows.parquet", place="stream", **settings)
        pd.testing.assert_frame_equal(found.where(), expected.where(), check_exact=True)


def test_names_of_many_rows_are_those_of_rows_that_are_shown(feeds, many_files, monkeypatch):
    network, frame = feeds
    limits(monkeypatch, names_few=True)
    found = robustbn.fit(network, many_files, place="stream", **SETTINGS)
    asked = found.ask(5)
    assert asked["uid"].tolist() == frame["uid"][asked["row"]].tolist()
    rows = found.rows()
    shown = rows[rows["why"] != ""]
    assert len(shown) > 100
    assert shown["uid"].tolist() == frame["uid"][shown["row"]].tolist()


def test_weights_are_written_with_names(feeds, many_files, tmp_path, monkeypatch):
    network, frame = feeds
    for judges_again in (False, True):
        limits(monkeypatch, judges_again=judges_again)
        target = tmp_path / f"weights-{judges_again}"
        robustbn.fit(network, many_files, streaming=Streaming(weights_to=target), **SETTINGS)
        written = [pq.read_table(file) for file in sorted(target.iterdir())]
        names = ["uid", "sensor", "row", "weight", "is_suspicious"]
        assert all(table.column_names == names for table in written)
        whole = pa.concat_tables(written)
        assert whole["uid"].to_pylist() == frame["uid"].tolist()
        assert whole["sensor"].to_pylist() == frame["sensor"].tolist()
        assert written[1]["row"].to_pylist() == list(range(len(written[1])))
    plain = tmp_path / "plain"
    robustbn.fit(network, many_files, streaming=Streaming(weights_to=plain), random_state=0)
    again = pa.concat_tables([pq.read_table(file) for file in sorted(plain.iterdir())])
    assert again["weight"].equals(whole["weight"])


def test_the_command_line_names_rows_of_a_stream(feeds, text_file, tmp_path):
    network, frame = feeds
    network.write(tmp_path / "net.json")
    arguments = [
        "fit", tmp_path / "net.json", text_file, "--place", "stream", "--id", "uid", "--context",
        "feed,day", "--ask", 3, "--weights", tmp_path / "rows.parquet", "--json",
    ]  # fmt: skip
    told = CliRunner().invoke(main, [str(a) for a in arguments])
    assert told.exit_code == 0, told.output
    facts = json.loads(told.stdout)
    (rows,) = [each for each in facts["findings"] if each["kind"] == "rows"][:1]
    assert set(rows["where"]) == {"feed", "day"}
    assert all(line["uid"] == f"u{line['row']:05d}" for line in facts["ask"])
    rows = pq.read_table(tmp_path / "rows.parquet")
    assert rows.column_names[0] == "uid"
    assert rows["uid"].to_pylist() == frame["uid"].tolist()


def test_columns_that_are_not_there_are_refused_before_the_fit(feeds, many_files, monkeypatch):
    network, _ = feeds

    def refuse(*_, **__):
        raise AssertionError("the fit has begun")

    monkeypatch.setattr("robustbn._learn.places.fit_robustly", refuse)
    for wrong in ({"id": "name"}, {"context": ["name"]}):
        with pytest.raises(DataError, match="no column 'name'"):
            robustbn.fit(network, many_files, place="stream", **wrong)


def test_a_file_that_lacks_a_column_of_context_misses_its_values(feeds, tmp_path):
    network, frame = feeds
    for k, piece in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        part = frame.iloc[piece].drop(columns=["feed", "heat", "uid"] if k == 1 else [])
        part.to_parquet(tmp_path / f"{k}.parquet")
    settings = {"id": "uid", "context": ["feed", "heat"], "random_state": 0}
    expected = robustbn.fit(network, tmp_path, **settings)
    found = robustbn.fit(network, tmp_path, place="stream", **settings)
    assert_same(found, expected)
    assert found.rows()["uid"].isna().sum() == N_ROWS // 3


def test_kinds_that_are_trusted_change_where(feeds, many_files, monkeypatch):
    network, _ = feeds
    expected = robustbn.fit(network, many_files, random_state=0).decide(good=[1])
    found = robustbn.fit(network, many_files, place="stream", random_state=0).decide(good=[1])
    pd.testing.assert_frame_equal(found.where(), expected.where(), check_exact=True)
    limits(monkeypatch, is_counted=True)
    counted = robustbn.fit(network, many_files, place="stream", random_state=0).decide(good=[1])
    with pytest.raises(NotFittedError, match=r"decide\(bad, good, X\)"):
        counted.where()
    assert 'class="apart where"' not in counted.report()


@pytest.mark.parametrize(("most_held", "n_passes"), [(2**28, 1), (0, 0)])
def test_context_of_clean_rows_is_read_for_findings_if_it_can_be_held(
    feeds, tmp_path, monkeypatch, most_held, n_passes
):
    network, frame = feeds
    monkeypatch.setattr(context_pass, "MOST_HELD", most_held)
    frame[frame["feed"] != "feed-3"].to_parquet(tmp_path / "good.parquet")
    looks = []
    monkeypatch.setattr(
        context_pass.AsidePass, "_stretches", lambda *given: looks.append(given) or ()
    )
    fit = robustbn.fit(network, tmp_path / "good.parquet", place="stream", random_state=0)
    assert fit.contamination_ == 0
    assert len(looks) == n_passes
    assert not len(fit.where())


# --- summaries add up -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["feed", "day", "uid", "sensor", "heat", "seen", "mixed"])
@pytest.mark.parametrize("most_buckets", [2**14, 64])
def test_summaries_of_parts_add_up_in_any_order(feeds, name, most_buckets, monkeypatch):
    monkeypatch.setattr(grouping, "MOST_BUCKETS", most_buckets)
    _, frame = feeds
    frame = frame.assign(mixed=np.where(np.arange(N_ROWS) % 3, frame["heat"], frame["sensor"]))
    values, rng = frame[name].to_numpy(), np.random.default_rng(3)
    is_bad = rng.random(N_ROWS) < 0.1
    whole = ContextCounts("c")
    raw = ContextCoder("c").code(robustbn._core.protocols.Column(values))
    whole.add(raw, None, is_bad)
    expected, cuts = whole.group(), np.sort(rng.integers(0, N_ROWS, 40))
    pieces = []
    for rows in np.split(np.arange(N_ROWS), cuts):
        piece = ContextCounts("c")
        part = robustbn._core.protocols.Column(values[rows])
        piece.add(ContextCoder("c").code(part), None, is_bad[rows])
        pieces.append(piece)
    for order in (range(41), rng.permutation(41)):
        total = ContextCounts("c")
        for k in order:
            total.merge(pieces[k])
        found = total.group()
        assert (found is None) == (expected is None) == (name == "uid")
        if found is not None:
            assert found[0].labels == expected[0].labels
            assert found[0].ends == expected[0].ends
            assert (found[1] == expected[1]).all()
            column = group_rows(raw)
            seen = np.bincount(column.codes.astype(int) + 1, minlength=len(found[1]))
            assert (seen == found[1][:, 0]).all()
            bad = np.bincount(column.codes[is_bad].astype(int) + 1, minlength=len(found[1]))
            assert (bad == found[1][:, 2]).all()


def test_a_summary_does_not_grow_with_the_rows():
    rng = np.random.default_rng(0)
    moments = np.datetime64("1990-01-01T00:00") + rng.integers(0, 2**24, 300_000)
    for values, most in ((rng.normal(size=300_000), 2**14), (moments, 400)):
        coder, summary = ContextCoder("c"), ContextCounts("c")
        for part in np.array_split(values, 5):
            summary.add(coder.code(robustbn._core.protocols.Column(part)))
        assert summary.n_keys <= most
        labels = summary.group()[0].labels
        assert len(labels) in (10, 383)  # tenths; 2^24 minutes are 382.8 months


# --- columns that cannot be read ------------------------------------------------------------------


def write_json_lines(frame, path, note):
    records = frame.drop(columns=["day", "seen", "heat"]).to_dict("records")
    lines = [json.dumps({**record, "note": note(k)}) for k, record in enumerate(records)]
    path.write_text("\n".join(lines) + "\n")


def write_text(frame, path, note):
    lines = frame.drop(columns=["day", "seen", "heat"]).to_csv(index=False).encode().splitlines()
    ends = [b"note", *(note(k) for k in range(len(frame)))]
    path.write_bytes(b"\n".join(b"%s,%s" % pair for pair in zip(lines, ends, strict=True)) + b"\n")


def write_parquet(frame, path, note):
    """Write a file with the bytes of a column damaged, which its checksum tells."""
    table = pa.Table.from_pandas(frame.assign(note=note(0)), preserve_index=False)
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(table.column_names.index("note"))
    data = bytearray(path.read_bytes())
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    data[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(data)


DAMAGED = {
    "kinds.jsonl": (write_json_lines, lambda k: k if k < 1_000 else "word"),
    "late.jsonl": (write_json_lines, lambda k: k if k < N_ROWS - 5 else "word"),
    "first.csv": (write_text, lambda k: b"\xff\xfe" if k == 0 else b"ok"),
    "late.csv": (write_text, lambda k: b"\xff\xfe" if k == N_ROWS - 5 else b"ok"),
    "bytes.parquet": (write_parquet, lambda _: np.arange(N_ROWS) * 0.5),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_column_beside_the_network_stops_no_fit(feeds, name, tmp_path):
    network, frame = feeds
    write, note = DAMAGED[name]
    write(frame, tmp_path / name, note)
    settings = {"id": "uid", "random_state": 0}
    with_note = {"match": r"'note'.*cannot be read.*context=\(\)"}
    with pytest.warns(ContextWarning, **with_note) as told:
        found = robustbn.fit(network, tmp_path / name, **settings)
    assert len([w for w in told if issubclass(w.category, ContextWarning)]) == 1
    assert {"feed", "row number"} <= set(found.where()["column"])
    with pytest.warns(ContextWarning, **with_note):
        again = robustbn.fit(network, tmp_path / name, place="stream", **settings)
    assert_same(again, found)
    with pytest.warns(ContextWarning, **with_note):
        robustbn.fit(network, tmp_path / name, context=["note", "feed"], random_state=0)
    quiet = robustbn.fit(network, tmp_path / name, context=["feed"], random_state=0)
    assert (quiet.network_.probabilities == found.network_.probabilities).all()


def test_the_command_line_says_which_option_leaves_a_damaged_column_out(feeds, tmp_path):
    network, frame = feeds
    network.write(tmp_path / "net.json")
    write_text(frame, tmp_path / "rows.csv", DAMAGED["late.csv"][1])
    arguments = ["fit", tmp_path / "net.json", tmp_path / "rows.csv"]
    told = CliRunner().invoke(main, [str(a) for a in arguments])
    assert told.exit_code == 0, told.output
    said = " ".join(told.output.split())
    assert "'note' cannot be read" in said
    assert "--context none" in said


def test_a_damaged_column_of_the_network_is_still_an_error(feeds, tmp_path):
    network, frame = feeds
    node = network.nodes[0]
    frame = frame.drop(columns=["day", "seen", "heat"])
    records = frame.to_dict("records")
    lines = [json.dumps({**r, node: 1 if k < 9 else "x"}) for k, r in enumerate(records)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    for place in ("memory", "stream"):
        with pytest.raises(DataError, match=f"Column.*{node}.* changed from number to string"):
            robustbn.fit(network, tmp_path / "rows.jsonl", place=place)


def test_values_of_many_kinds_stop_no_fit(feeds):
    network, frame = feeds
    odd = np.empty(N_ROWS, object)
    odd[:] = [[1], {"a": 2}, "text", 3, None, 2.5] * (N_ROWS // 6)
    fit = robustbn.fit(network, frame.assign(odd=odd), random_state=0)
    assert "odd" not in set(fit.where()["column"])
