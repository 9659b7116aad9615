"""Copies of a few rows are distrusted; rows that are resampled or upsampled are not."""

from __future__ import annotations

import gzip
import re
import warnings
from importlib.resources import files
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.real_tables import build_case
from click.testing import CliRunner
from distributed import Client

import robustbn
from robustbn import RobustEstimator, total_variation
from robustbn.adversary import corrupt
from robustbn.cli import main

N_ROWS = 30_000
ALARM = robustbn.example_network("alarm")
GOOD = robustbn.sample(ALARM, N_ROWS, random_state=0)


def fit(codes, network=ALARM, sample_weight=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = RobustEstimator(network, random_state=0, **settings)
        return estimator.fit(codes, sample_weight=sample_weight)


def dirty(kind):
    """Return rows of which a tenth is bad; of "clean" rows none."""
    return GOOD if kind == "clean" else corrupt(GOOD, ALARM, kind, eps=0.1, random_state=0)[0]


def resample(n, seed=0):
    return np.random.default_rng(seed).integers(n, size=n)


def read_published(name, folder):
    """Return a network that pgmpy ships."""
    packed = files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz").read_bytes()
    (folder / f"{name}.bif").write_bytes(gzip.decompress(packed))
    return robustbn.read_network(folder / f"{name}.bif")


def upsample(codes, node, state, times):
    """Return rows in which those of one state appear several times."""
    chosen = codes[codes[:, node] == state]
    return np.concatenate([codes, np.repeat(chosen, times - 1, axis=0)])


# --- by design ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alarm", "insurance", "child"])
def test_a_bootstrap_of_clean_rows_is_trusted_and_told(name, tmp_path):
    network = ALARM if name == "alarm" else read_published(name, tmp_path)
    good = robustbn.sample(network, N_ROWS, random_state=1)
    found = fit(good[resample(N_ROWS)], network)
    assert found.contamination_ < 1e-6
    assert found.kinds_ == found.repeats_ == []
    assert found.result_.learned.repetition.is_design
    assert found.result_.learned.effect == pytest.approx(2, abs=0.1)
    assert "Rows are repeated by design (6" in found.status_
    assert "30,000 rows carry as much information as 1" in found.status_


@pytest.mark.parametrize("times", [2, 10])
@pytest.mark.parametrize("way", [np.repeat, lambda rows, k, axis: np.tile(rows, (k, 1))])
def test_so_many_copies_of_every_row_give_what_the_rows_give(times, way):
    codes = corrupt(GOOD, ALARM, "mixture", eps=0.1, random_state=0)[0]
    copied, once = fit(way(codes, times, axis=0)), fit(codes)
    weighted = fit(codes, sample_weight=np.full(N_ROWS, float(times)))
    for other in (copied, weighted):
        np.testing.assert_allclose(other.counts_, times * once.counts_, rtol=1e-5, atol=1e-2)
        assert other.contamination_ == pytest.approx(once.contamination_, abs=1e-6)
    assert f"each appears {times} times" in copied.status_
    assert copied.result_.learned.effect == times


@pytest.mark.parametrize("kind", ["clean", "mixture"])
def test_copies_and_whole_weights_give_tables_much_nearer_than_sampling_noise(kind):
    codes = dirty(kind)
    times = np.random.default_rng(0).integers(1, 6, N_ROWS)
    copied = fit(np.repeat(codes, times, axis=0))
    weighted = fit(codes, sample_weight=times.astype(float))
    noise = float(total_variation(ALARM, weighted.network_))
    assert float(total_variation(copied.network_, weighted.network_)) < 0.1 * noise
    assert copied.contamination_ == pytest.approx(weighted.contamination_, abs=2e-3)
    effects = [fit.result_.learned.effect for fit in (weighted, copied)]
    rows = [len(codes) / effects[0], times.sum() / effects[1]]
    assert rows[0] == pytest.approx(rows[1], rel=0.05)  # both say as much as so many rows


def test_copies_of_which_some_were_dropped_are_still_a_design():
    copied = np.tile(GOOD[:5_000], (10, 1))
    kept = np.random.default_rng(0).random(len(copied)) < 0.8
    found = fit(copied[kept])
    assert found.result_.learned.repetition.is_design
    assert found.contamination_ < 1e-6
    assert found.result_.learned.effect == pytest.approx(8.2, abs=0.5)


def test_bad_rows_are_caught_in_a_bootstrap():
    codes, is_bad = corrupt(GOOD, ALARM, "mixture", eps=0.1, random_state=0)
    drawn = resample(N_ROWS)
    found = fit(codes[drawn])
    assert found.result_.learned.repetition.is_design
    distrusted = found.row_weights_ < 0.5
    assert distrusted[is_bad[drawn]].mean() > 0.97
    assert distrusted[~is_bad[drawn]].mean() < 0.005
    causes = [group.cause.name for group in found.groups_ if group.cause is not None]
    assert "copies" in causes  # of the one row that the mixture repeats


@pytest.mark.parametrize("table", ["DAAG/nassCDS", "Ecdat/DoctorContacts", "AER/Fertility"])
def test_a_bootstrap_of_a_real_table_gives_no_alarm(table):
    case = build_case(table, "tree")
    rows = case.rows[resample(len(case.rows))]
    assert fit(case.rows, case.network).contamination_ < 1e-6
    assert fit(rows, case.network).contamination_ < 1e-6


def test_few_surveyed_rows_of_many_copies_tell_of_all(monkeypatch):
    monkeypatch.setattr("robustbn._learn.conductor.SURVEYED", 20_000)
    monkeypatch.setattr("robustbn._core.config.LEAST_SAMPLE", 5_000)
    monkeypatch.setattr("robustbn._core.config.ROWS_A_PARAMETER", 10)
    copied = np.repeat(GOOD[:10_000], 8, axis=0)[np.random.default_rng(0).permutation(80_000)]
    found = fit(copied)
    assert found.result_.learned.repetition.is_design
    assert found.result_.learned.effect == pytest.approx(8, rel=0.1)
    assert found.contamination_ < 1e-6


# --- not by design --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["clean", "repeated", "clones", "mixture", "flood"])
def test_a_few_rows_copied_often_are_distrusted_as_if_nobody_had_asked(kind):
    codes = dirty(kind)
    found, as_ever = fit(codes), fit(codes, copies="distrust")
    np.testing.assert_array_equal(found.row_weights_, as_ever.row_weights_)
    np.testing.assert_array_equal(found.counts_, as_ever.counts_)
    assert found.status_ == as_ever.status_


@pytest.mark.parametrize("kind", ["repeated", "clones", "mixture"])
def test_bad_rows_below_a_majority_never_look_like_a_design(kind):
    codes = corrupt(GOOD, ALARM, kind, eps=0.4, random_state=0)[0]
    assert fit(codes).result_.learned.repetition is None


def test_copies_that_are_counted_speak_against_no_row():
    codes = corrupt(GOOD, ALARM, "clones", eps=0.1, random_state=0)[0]
    assert fit(codes).repeats_
    counted = fit(codes, copies="count")
    assert counted.repeats_ == []
    assert not len(counted.result_.learned.model.repeats.factors)


def test_copies_that_are_distrusted_are_so_in_a_bootstrap_too():
    found = fit(GOOD[resample(N_ROWS)], copies="distrust")
    assert found.result_.learned.repetition is None
    assert "by design" not in found.status_


# --- one state upsampled --------------------------------------------------------------------------


def test_a_small_group_that_is_upsampled_is_told_and_can_be_counted(tmp_path):
    insurance = read_published("insurance", tmp_path)
    node = insurance.nodes.index("RiskAversion")
    state = insurance.states["RiskAversion"].index("Psychopath")
    codes = robustbn.sample(insurance, N_ROWS, random_state=0)
    rows = upsample(codes, node, state, 5)
    found, counted = fit(rows, insurance), fit(rows, insurance, copies="count")
    told = "Rows with RiskAversion = Psychopath appear 5.0 times on average, while other rows"
    told += " appear 1.0"
    assert told in found.status_
    assert "are distrusted. If the copies are intentional, set copies to 'count'" in found.status_
    assert counted.contamination_ < 1e-6
    assert told in counted.status_
    assert "the rows with their copies, not those without them" in counted.status_


def test_a_large_group_that_is_upsampled_is_counted_and_told():
    node = ALARM.nodes.index("HYPOVOLEMIA")
    rows = upsample(GOOD, node, ALARM.states["HYPOVOLEMIA"].index("TRUE"), 5)
    found = fit(rows)
    assert found.contamination_ < 1e-6
    assert "by design" in found.status_
    assert "Rows with HYPOVOLEMIA = TRUE appear 5.0 times on average" in found.status_


# --- elsewhere ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory):
    """A bootstrap as a frame and as files."""
    folder = tmp_path_factory.mktemp("bootstrap") / "rows"
    folder.mkdir()
    codes = corrupt(GOOD, ALARM, "product", eps=0.1, random_state=0)[0][resample(N_ROWS)]
    labels = {n: np.array(ALARM.states[n])[codes[:, k]] for k, n in enumerate(ALARM.nodes)}
    frame = pd.DataFrame(labels)
    for k, part in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        pq.write_table(pa.Table.from_pandas(frame.iloc[part]), folder / f"{k}.parquet")
    return frame, folder


def test_streams_and_clusters_decide_as_rows_in_memory_do(bootstrap):
    frame, folder = bootstrap
    here, streamed = fit(frame), fit(folder, place="stream")
    with Client(processes=False, n_workers=1, dashboard_address=":0"):
        there = fit(dd.from_pandas(frame, npartitions=3, sort=False))
    assert here.result_.learned.repetition.is_design
    for other in (streamed, there):
        assert other.result_.learned.repetition == here.result_.learned.repetition
        assert other.status_ == here.status_
        np.testing.assert_allclose(other.counts_, here.counts_, rtol=1e-6, atol=1e-6)


def test_copies_are_distrusted_if_so_asked_where_the_network_does_not_fit_too():
    parents = {node: ALARM.parents[node][: 1 + k % 3] for k, node in enumerate(ALARM.nodes)}
    thinned = robustbn.BayesianNetwork(parents, ALARM.states)
    rows = GOOD[:6000].copy()
    rows[:400] = rows[400:410].repeat(40, axis=0)
    fits = {copies: fit(rows, thinned, copies=copies) for copies in ("auto", "distrust")}
    assert not any(each.misfit_.is_exact for each in fits.values())
    assert fits["auto"].repeats_ == []
    asked = fits["distrust"]
    assert asked.repeats_[0].seen >= 41
    assert asked.row_weights_[:400].mean() < 0.5
    assert asked.row_weights_[410:].mean() > 0.97
    assert 0.03 < asked.contamination_ < 0.09


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
def test_the_copy_of_a_block_is_left_out_if_copies_are_distrusted():
    rows = np.vstack([GOOD[:5000], GOOD[1000:1400]])
    asked = fit(rows, copies="distrust", prior=1)
    once = fit(GOOD[:5000], copies="distrust", prior=1)
    np.testing.assert_allclose(asked.network_.probabilities, once.network_.probabilities)
    assert asked.reading_.dropped == {"they repeat other rows": 400}
    assert np.flatnonzero(np.isnan(asked.row_weights_)).tolist() == list(range(5000, 5400))
    told = {each.severity for each in asked.findings_ if each.kind == "repeated rows"}
    assert told == {"note"}
    asked.decide(X=rows)
    assert asked.reading_.n_copies == 400
    (error,) = [each for each in fit(rows).findings_ if each.severity == "error"]
    assert error.advice.command.endswith(" --copies distrust")


@pytest.mark.parametrize("on_missing", ["use", "observed", "state"])
def test_values_that_are_missing_from_copies_are_not_counted(on_missing):
    rng, n = np.random.default_rng(0), 2000
    table = pd.DataFrame({"a": rng.choice([*"xyzw"], n), "k": rng.normal(size=n)})
    table["c"] = np.where(rng.random(n) < 0.9, None, table["a"])
    twice = pd.concat([table, table[100:500]], ignore_index=True)
    asked = robustbn.fit(
        [("a", "c"), ("a", "k")], twice, copies="distrust", on_missing=on_missing, random_state=0
    )
    n_missing, read = int(table["c"].isna().sum()), asked.reading_
    assert (read.n_rows, read.n_copies) == (2000, 400)
    assert (read.n_missing["c"], read.n_incomplete) == (n_missing, n_missing)
    assert f"{n - n_missing} of 2,000 rows are complete" in str(read)
    said = [each.sentence for each in asked.findings_ if each.kind == "missing values"]
    assert said == [f"c is missing from {n_missing / n:.1%} of the rows.".replace("%", " %")]


def test_the_command_line_counts_copies_if_it_is_told_to(bootstrap, tmp_path):
    ALARM.write(tmp_path / "alarm.bif")
    command = ["fit", str(tmp_path / "alarm.bif"), str(bootstrap[1]), "--seed", "0"]
    told = CliRunner().invoke(main, [*command, "--copies", "auto"])
    assert "Rows are repeated by design" in told.output
    told = CliRunner().invoke(main, [*command, "--copies", "distrust"])
    assert "Rows are repeated by design" not in told.output


def test_copies_are_auto_count_or_distrust():
    with pytest.raises(
        ValueError, match="copies is one of 'auto', 'count', 'distrust'; found 'keep'"
    ):
        fit(GOOD[:100], copies="keep")


def test_the_command_line_says_how_to_count_copies(tmp_path):
    insurance = read_published("insurance", tmp_path)
    node = insurance.nodes.index("RiskAversion")
    rows = upsample(robustbn.sample(insurance, N_ROWS, random_state=0), node, 0, 5)
    labels = {n: np.array(insurance.states[n])[rows[:, k]] for k, n in enumerate(insurance.nodes)}
    pq.write_table(pa.table(labels), tmp_path / "rows.parquet")
    command = ["fit", str(tmp_path / "insurance.bif"), str(tmp_path / "rows.parquet")]
    told = CliRunner().invoke(main, [*command, "--seed", "0"])
    assert "If the copies are intentional, set copies to 'count'" in " ".join(told.output.split())


@pytest.mark.filterwarnings("ignore")
def test_the_page_on_copies_runs_as_written():
    page = (Path(__file__).parents[2] / "docs" / "copies.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "docs/copies.md", "exec"), {})  # noqa: S102


# --- numbers --------------------------------------------------------------------------------------


EDGES = [("age", "school"), ("school", "income"), ("income", "abroad")]


def people(share=0.02, n_copies=0):
    """Return a table in which so many of the old and poor are from abroad; of the others 2 %."""
    rng = np.random.default_rng(0)
    age, school = rng.uniform(18, 90, 6000), rng.normal(13, 2.5, 6000)
    income = rng.gamma(3, 900, 6000)
    is_other = (age > 72) & (income < 1600) & (school < 11)
    abroad = (rng.random(6000) < np.where(is_other, share, 0.02)).astype(int)
    columns = {"age": age.round(1), "school": school.round(2), "income": income.round()}
    frame = pd.DataFrame({**columns, "abroad": abroad})
    return pd.concat([frame, frame[abroad == 1].iloc[[0] * n_copies]], ignore_index=True)


@pytest.mark.parametrize("place", ["memory", "stream", "dask"])
def test_rows_are_copies_only_if_their_numbers_are_the_same(tmp_path, place):
    network = robustbn.fit(EDGES, people(), random_state=0).network_.with_cpts(None)
    with Client(processes=False, n_workers=1, dashboard_address=":0"):
        for share, n_copies in ((0.3, 0), (0.02, 60)):
            path = tmp_path / f"{n_copies}.parquet"
            people(share, n_copies).to_parquet(path)
            table = dd.read_parquet(path) if place == "dask" else path
            settings = {} if place == "dask" else {"place": place}
            found = robustbn.fit(network, table, random_state=0, **settings).repeats_
            assert [each.seen >= 60 for each in found] == [True] * (n_copies > 0)
