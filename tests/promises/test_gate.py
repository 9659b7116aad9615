"""The gate: new rows judged by what a model knows of good ones."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import RobustEstimator, example_network, sample
from robustbn.cli import main
from tests.commands import as_json, call

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ALARM = example_network("alarm")


def shuffled(rows, share, rng):
    """Rows of which a share have every column shuffled by itself."""
    mixed, n = rows.copy(), int(share * len(rows))
    for column in range(rows.shape[1]):
        mixed[:n, column] = rng.permutation(rows[:, column])[:n]
    return mixed


def count_failed(fit, batches, share):
    """How many batches fail once a share of their rows has mixed columns."""
    rng = np.random.default_rng(0)
    checked = [fit.check(shuffled(rows, share, rng)) for rows in batches]
    return sum(any(each.severity != "note" for each in found) for found in checked)


@pytest.fixture(scope="module")
def fit():
    return robustbn.fit(ALARM, sample(ALARM, 20_000, random_state=0), random_state=0)


@pytest.fixture(scope="module")
def new_rows():
    return sample(ALARM, 120_000, random_state=1)


def test_a_clean_batch_passes_in_99_of_100_draws():
    """On average over fits: one that happens to lack a kind of rare rows alarms more often."""
    n_failed = 0
    for seed in range(4):
        fit = robustbn.fit(ALARM, sample(ALARM, 20_000, random_state=10 * seed), random_state=0)
        rows = sample(ALARM, 138_000, random_state=10 * seed + 1)
        batches = np.split(rows, np.cumsum([300] * 60 + [3_000] * 39))
        n_failed += count_failed(fit, batches, 0.0)
    assert n_failed <= 4


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


@pytest.mark.parametrize("kept", [{}, {"calibration": {"mean": 0.1, "inflation": [1.0]}}])
def test_a_file_of_a_release_that_did_not_keep_this_of_good_rows_is_read(
    fit, new_rows, tmp_path, kept
):
    """By none of its tables can a row be judged, so that moved tables decide alone."""
    fit.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    del document["fit"]["good_rows"]
    document["fit"] |= kept
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = RobustEstimator.load(tmp_path / "old.json")
    assert not old.check(new_rows[:2_000])
    found = old.check(shuffled(new_rows[:2_000], 1.0, np.random.default_rng(0)))
    assert {each.cause for each in found} == {"moved table"}


@pytest.mark.parametrize(
    ("entry", "spoil"),
    [
        ("inflation", lambda known: known["inflation"].pop()),
        ("counts", lambda known: known["counts"].pop()),
        ("cards", lambda known: known["cards"].pop()),
        ("cards", lambda known: known["cards"].__setitem__(0, 9)),
        ("families", lambda known: known["families"].pop()),
        ("families", lambda known: known["families"].__setitem__(0, [1, 1, 0])),
        ("families", lambda known: known["families"].__setitem__(0, [99, 0])),
        ("families", lambda known: known["families"].__setitem__(0, [0, 1])),
        ("families", lambda known: known["families"].__setitem__(0, [])),
        ("counts", lambda known: known["families"].__setitem__(0, [*range(36, 0, -1), 0])),
    ],
)
def test_a_damaged_entry_of_good_rows_is_named(fit, tmp_path, entry, spoil):
    fit.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    spoil(document["fit"]["good_rows"])
    (tmp_path / "damaged.json").write_text(json.dumps(document))
    named = f"good_rows.{entry} is damaged"
    with pytest.raises(robustbn.exceptions.ModelFileError, match=named):
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
    batches = [weak_rows(1_500, 100 + seed) for seed in range(20)]
    assert count_failed(weak, batches, 0.0) == 0
    assert count_failed(weak, batches, 0.1) >= 18


def test_columns_that_depend_on_each_other_without_an_edge_tell_mixed_rows():
    alone = robustbn.BayesianNetwork({name: [] for name in "abcdef"}, STAR.states)
    fit = robustbn.fit(alone, weak_rows(6_000, 0), random_state=0)
    batches = [weak_rows(1_500, 100 + seed) for seed in range(20)]
    assert count_failed(fit, batches, 0.0) == 0
    assert count_failed(fit, batches, 0.1) >= 18


def test_an_edge_that_tells_nothing_hides_no_mixed_rows():
    """Tables of 81 configurations, of which each row is in one by chance, say nothing."""
    parents = {"a": [], **{name: ["a"] for name in "bcdef"}, "g": list("cdef")}
    drawn = robustbn.BayesianNetwork(parents, dict.fromkeys("abcdefg", ("x", "y", "z")))

    def make(n, seed):
        noise = np.random.default_rng(seed).integers(0, 3, (n, 1))
        return np.hstack([weak_rows(n, seed), noise]).astype(np.uint8)

    fit = robustbn.fit(drawn, make(3_000, 0), random_state=0)
    assert fit.result_.calibration.families[6] == (6,)
    assert count_failed(fit, [make(1_500, 100 + seed) for seed in range(20)], 0.1) >= 18


def test_values_that_are_missing_together_tell_mixed_rows():
    """Three rows of ten lack three columns, which tell nothing else of each other."""
    names = tuple("abcdef")
    alone = robustbn.BayesianNetwork({n: [] for n in names}, dict.fromkeys(names, ("x", "y")))

    def make(n, seed):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 2, (n, 6)).astype(np.float64)
        rows[np.ix_(rng.random(n) < 0.3, [1, 3, 4])] = np.nan
        return rows

    fit = robustbn.fit(alone, make(4_000, 0), random_state=0)
    batches = [make(500, 100 + seed) for seed in range(10)]
    assert count_failed(fit, batches, 0.0) == 0
    assert count_failed(fit, batches, 0.1) == 10


def test_rows_that_depend_on_their_neighbours_hardly_ever_raise_a_false_alarm():
    """Eight visits of each person: a batch of persons is a small sample, however many its rows."""
    panel = robustbn.fit(STAR, weak_rows(8_000, 0, person=8), random_state=0, copies="count")
    batches = [weak_rows(800, 100 + seed, person=8) for seed in range(25)]
    assert count_failed(panel, batches, 0.0) <= 1
    panel.result_.calibration.inflation[:] = 1  # as if all rows were independent
    assert count_failed(panel, batches, 0.0) > 12


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
    good.assign(HR=["FAST"] * 20 + [*good["HR"][20:]]).to_csv(folder / "label.csv", index=False)
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


def test_commands_of_the_gate_name_its_files_and_the_nearest_label(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"home": rng.choice(["owner", "rent"], 3000), "car": rng.integers(0, 3, 3000)}
    )
    frame.to_csv(tmp_path / "old rows.csv", index=False)
    frame[:500].replace({"home": {"owner": "ownr"}}).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "edges.csv").write_text("parent,child\nhome,car\n")
    model = tmp_path / "the model.json"
    call("fit", tmp_path / "edges.csv", tmp_path / "old rows.csv", "--model", model)
    facts = as_json("score", model, tmp_path / "new.csv", "--fail-on", "error", code=1)
    (unknown,) = [each for each in facts["findings"] if each["kind"] == "unreadable values"]
    command = unknown["advice"]["command"]
    assert command == (
        f"robustbn score {shlex.quote(str(model))} {tmp_path / 'new.csv'} --labels home:ownr=owner"
    )
    again = shlex.split(command)[1:]
    assert not [f for f in as_json(*again)["findings"] if f["columns"] == ["home"]]
