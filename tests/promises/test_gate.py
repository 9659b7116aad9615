"""The gate: new rows judged by what a model knows of good ones."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import RobustEstimator, example_network, sample
from robustbn.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ALARM = example_network("alarm")


def shuffled(rows, share, rng):
    """Rows of which a share have every column shuffled by itself."""
    mixed, n = rows.copy(), int(share * len(rows))
    for column in range(rows.shape[1]):
        mixed[:n, column] = rng.permutation(rows[:, column])[:n]
    return mixed


@pytest.fixture(scope="module")
def fit():
    return robustbn.fit(ALARM, sample(ALARM, 20_000, random_state=0), random_state=0)


@pytest.fixture(scope="module")
def new_rows():
    return sample(ALARM, 120_000, random_state=1)


def test_a_clean_batch_passes_in_99_of_100_draws(fit, new_rows):
    sizes = [300] * 60 + [3_000] * 40
    starts = np.cumsum([0, *sizes[:-1]]) % (len(new_rows) - 3_000)
    n_failed = sum(
        any(each.severity != "note" for each in fit.check(new_rows[start : start + size]))
        for start, size in zip(starts.tolist(), sizes, strict=True)
    )
    assert n_failed <= 1


def test_a_batch_with_as_many_wrong_cells_as_the_rows_of_the_fit_passes(new_rows, tmp_path):
    rng = np.random.default_rng(0)
    rows = new_rows[:30_000]
    any_state = (rng.random(rows.shape) * np.array(ALARM.layout.cards)).astype(rows.dtype)
    dirty = np.where(rng.random(rows.shape) < 0.03, any_state, rows)
    fit = robustbn.fit(ALARM, dirty[:20_000], random_state=0)
    assert len(fit.cells_) > 1_000
    fit.save(tmp_path / "model.json")
    for model in (fit, RobustEstimator.load(tmp_path / "model.json")):
        for start in range(20_000, 30_000, 2_500):
            found = model.check(dirty[start : start + 2_500])
            assert not [each for each in found if each.severity != "note"]


@pytest.mark.parametrize("n", [300, 5_000])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_shuffled_columns_fail_and_so_does_a_tenth_of_them(fit, new_rows, n, share):
    rng = np.random.default_rng(n)
    found = fit.check(shuffled(new_rows[:n], share, rng))
    assert found[0].severity == "error"
    assert "new rows differ" in {each.kind for each in found}


def test_a_table_that_moved_is_named(fit, new_rows):
    rows, node = new_rows[:3_000].copy(), ALARM.nodes.index("HR")
    rows[:, node] = np.minimum(rows[:, node], 1)
    moved = [each for each in fit.check(rows) if each.cause == "moved table"]
    assert moved[0].columns == ("HR",)


def test_a_small_effect_in_many_rows_is_a_warning_and_a_large_one_an_error(fit, new_rows):
    rng, node = np.random.default_rng(0), ALARM.nodes.index("HISTORY")
    severities = []
    for share in (0.004, 0.3):
        rows = new_rows.copy()
        chosen = rng.random(len(rows)) < share
        rows[chosen, node] = 1 - rows[chosen, node]
        told = [each for each in fit.check(rows) if each.columns == ("HISTORY",)]
        severities.append(told[0].severity if told else "")
    assert severities[1] == "error"
    assert severities[0] != "error"


def test_what_is_known_of_good_rows_is_in_the_model_file(fit, new_rows, tmp_path):
    fit.save(tmp_path / "model.json")
    loaded = RobustEstimator.load(tmp_path / "model.json")
    rows = shuffled(new_rows[:2_000], 0.1, np.random.default_rng(0))
    assert loaded.check(rows) == fit.check(rows)


def test_a_file_of_a_release_that_kept_nothing_of_good_rows_is_read(fit, new_rows, tmp_path):
    fit.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    del document["fit"]["calibration"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = RobustEstimator.load(tmp_path / "old.json")
    assert not old.check(new_rows[:2_000])
    found = old.check(shuffled(new_rows[:2_000], 1.0, np.random.default_rng(0)))
    assert {each.cause for each in found} == {"moved table"}
    fit.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    document["fit"]["calibration"]["inflation"].pop()
    (tmp_path / "damaged.json").write_text(json.dumps(document))
    with pytest.raises(
        robustbn.exceptions.ModelFileError, match=r"calibration.inflation is damaged"
    ):
        RobustEstimator.load(tmp_path / "damaged.json")


def weak_rows(n, seed, person=1):
    """Rows of six columns that hardly depend on each other; each comes so many times in a row."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 3, (n // person, 1))
    rest = np.where(rng.random((n // person, 5)) < 0.4, first, rng.integers(0, 3, (n // person, 5)))
    return np.repeat(np.hstack([first, rest]), person, axis=0).astype(np.uint8)


STAR = robustbn.BayesianNetwork(
    {"a": [], **{name: ["a"] for name in "bcdef"}}, dict.fromkeys("abcdef", ("x", "y", "z"))
)


def test_a_tenth_of_mixed_columns_fails_where_columns_depend_weakly():
    weak = robustbn.fit(STAR, weak_rows(6_000, 0), random_state=0)
    failed = {0.0: 0, 0.1: 0}
    for share in failed:
        for seed in range(20):
            rows = shuffled(weak_rows(1_500, 100 + seed), share, np.random.default_rng(seed))
            failed[share] += any(each.severity != "note" for each in weak.check(rows))
    assert failed[0.0] == 0
    assert failed[0.1] >= 18


def test_rows_that_depend_on_their_neighbours_hardly_ever_raise_a_false_alarm():
    """Eight visits of each person: a batch of persons is a small sample, however many its rows."""
    panel = robustbn.fit(STAR, weak_rows(8_000, 0, person=8), random_state=0, copies="count")
    batches = [weak_rows(800, 100 + seed, person=8) for seed in range(25)]

    def count_failed():
        return sum(any(f.severity != "note" for f in panel.check(rows)) for rows in batches)

    assert count_failed() <= 1
    panel.result_.calibration.inflation[:] = 1  # as if all rows were independent
    assert count_failed() > 12


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def work(fit, new_rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    fit.save(folder / "model.json")
    labels = {n: np.array(ALARM.states[n], object) for n in ALARM.nodes}

    def write(name, rows):
        frame = pd.DataFrame({n: labels[n][rows[:, k]] for k, n in enumerate(ALARM.nodes)})
        frame.to_csv(folder / name, index=False)
        return frame

    good = write("good.csv", new_rows[:2_000])
    write("mixed.csv", shuffled(new_rows[:2_000], 1.0, np.random.default_rng(0)))
    good.assign(HR=["FAST", *good["HR"][1:]]).to_csv(folder / "label.csv", index=False)
    good.assign(HR=good["HR"].where(np.arange(2_000) % 4 > 0)).to_csv(
        folder / "holes.csv", index=False
    )
    return folder


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("good.csv", ("--fail-on", "warning", "--fail-over", "1"), 0),
        ("mixed.csv", (), 0),
        ("mixed.csv", ("--fail-on", "error"), 1),
        ("mixed.csv", ("--fail-over", "5"), 1),
        ("label.csv", ("--fail-on", "error"), 1),
        ("label.csv", (), 4),
        ("holes.csv", ("--fail-on", "error"), 1),
    ],
)
def test_the_gate_fails_by_its_exit_code(work, name, options, code):
    ran = CliRunner().invoke(main, ["score", str(work / "model.json"), str(work / name), *options])
    assert ran.exit_code == code, ran.output


def test_the_json_of_the_gate_holds_findings_and_the_share_of_unlikely_rows(work):
    words = ["score", str(work / "model.json"), str(work / "mixed.csv"), "--json"]
    facts = json.loads(CliRunner().invoke(main, words).stdout)
    assert facts["findings"][0]["severity"] == "error"
    assert facts["share_unlikely"] > 0.3
    told = CliRunner().invoke(main, words[:-1]).stdout
    assert " ".join(facts["findings"][0]["sentence"].split()) in " ".join(told.split())


def test_a_network_alone_is_no_gate(work):
    network = str(work / "alarm.bif")
    ALARM.write(network)
    ran = CliRunner().invoke(main, ["score", network, str(work / "good.csv"), "--fail-on", "error"])
    assert ran.exit_code == 2
    assert "--fail-on needs a model of good rows" in ran.output
