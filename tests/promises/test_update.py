"""More rows for a fit: as if it had seen them all, in a hundredth of the time."""

from __future__ import annotations

import gc
import json
import pickle
import time
import weakref

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn import MaximumLikelihoodEstimator, RobustEstimator, Streaming
from robustbn.adversary import corrupt
from robustbn.exceptions import DataError, ModelFileError, NotFittedError, SettingError
from tests.commands import as_json, call

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
]
TOLERANCE = 0.02  # of the sampling error, that the documentation allows where nothing drifts


@pytest.fixture(scope="module")
def alarm():
    return robustbn.example_network("alarm")


@pytest.fixture(scope="module")
def dirty(alarm):
    rows = robustbn.sample(alarm, 60_000, random_state=0)
    return {
        way: rows if way == "none" else corrupt(rows, alarm, way, eps=0.1, random_state=0)[0]
        for way in ("none", "network", "mixture", "shift")
    }


def distance(a, b, counts):
    layout = a.layout
    apart = layout.sum_configurations(np.abs(a.probabilities - b.probabilities)) / 2
    weights = layout.sum_configurations(counts)
    return float(weights @ apart / weights.sum())


def label(network, codes):
    columns = {n: np.array(network.states[n])[codes[:, i]] for i, n in enumerate(network.nodes)}
    return pd.DataFrame(columns)


@pytest.mark.parametrize("way", ["none", "network", "mixture", "shift"])
def test_an_update_is_a_fit_to_all_rows_where_nothing_drifts(alarm, dirty, way):
    rows = dirty[way]
    everything = RobustEstimator(alarm, random_state=0).fit(rows)
    half = RobustEstimator(alarm, random_state=0).fit(rows[:40_000])
    updated = half.update(rows[40_000:50_000]).update(rows[50_000:])
    error = distance(everything.network_, alarm, everything.counts_)
    apart = distance(everything.network_, updated.network_, everything.counts_)
    assert apart <= TOLERANCE * error
    assert updated.contamination_ == pytest.approx(everything.contamination_, abs=0.001)
    assert updated.reading_.n_rows == 60_000
    assert len(updated.groups_) == len(half.groups_)
    assert half.reading_.n_rows == 40_000  # which stays as it was
    if way == "none":
        np.testing.assert_allclose(updated.counts_, everything.counts_)
    else:
        of_all, of_half, after = (
            sum(kind.n_rows for kind in fit.kinds_) for fit in (everything, half, updated)
        )
        assert after == pytest.approx(of_all, rel=0.05)
        assert after > 1.4 * of_half


def test_an_update_of_one_percent_takes_at_most_a_twentieth_of_a_fit(alarm, dirty):
    rows = dirty["mixture"]
    new, times = rows[:600], []
    began = time.process_time()
    fit = RobustEstimator(alarm, random_state=0, n_threads=1).fit(rows)
    of_fit = time.process_time() - began
    for _ in range(3):
        began = time.process_time()
        fit.update(new)
        times.append(time.process_time() - began)
    assert min(times) <= 0.05 * of_fit


def test_counts_of_the_plain_estimator_are_added(alarm, dirty):
    rows = dirty["none"][:6_000]
    for prior in (None, 1, alarm):
        everything = MaximumLikelihoodEstimator(alarm, prior).fit(rows)
        updated = MaximumLikelihoodEstimator(alarm, prior).fit(rows[:4_000]).update(rows[4_000:])
        np.testing.assert_array_equal(updated.counts_, everything.counts_)
        np.testing.assert_allclose(
            updated.network_.probabilities, everything.network_.probabilities
        )


@pytest.mark.parametrize("estimator", [MaximumLikelihoodEstimator, RobustEstimator])
def test_rows_that_miss_values_are_completed_by_all_that_is_known(alarm, estimator):
    rows = robustbn.sample(alarm, 12_000, random_state=1).astype(float)
    rows[np.random.default_rng(0).random(rows.shape) < 0.03] = np.nan
    everything = estimator(alarm).fit(rows)
    updated = estimator(alarm).fit(rows[:8_000]).update(rows[8_000:])
    error = distance(everything.network_, alarm, everything.counts_)
    apart = distance(everything.network_, updated.network_, everything.counts_)
    assert apart <= 0.1 * error
    np.testing.assert_allclose(
        updated.inferred_.observed_counts, everything.inferred_.observed_counts
    )
    np.testing.assert_allclose(updated.inferred_.missing, everything.inferred_.missing, atol=0.01)
    assert updated.reading_.n_missing == everything.reading_.n_missing
    assert updated.posterior()


def test_old_rows_are_forgotten_by_a_factor(alarm, dirty):
    rows = dirty["none"]
    for estimator in (MaximumLikelihoodEstimator, RobustEstimator):
        old = estimator(alarm).fit(rows[:2_000])
        new = MaximumLikelihoodEstimator(alarm).fit(rows[2_000:3_000])
        updated = old.update(rows[2_000:3_000], forgetting=0.25)
        np.testing.assert_allclose(updated.counts_, 0.25 * old.counts_ + new.counts_)
        assert updated.reading_.n_rows == 1_500


def test_decisions_and_files_are_carried_on(alarm, dirty, tmp_path):
    rows = dirty["network"]
    decided = RobustEstimator(alarm, random_state=0).fit(rows[:40_000]).decide(good=[1])
    decided.save(tmp_path / "m.json")
    loaded = RobustEstimator.load(tmp_path / "m.json")
    updated, of_file = (fit.update(rows[40_000:]) for fit in (decided, loaded))
    assert updated.contamination_ < 0.001
    assert not updated.kinds_
    np.testing.assert_allclose(updated.counts_, of_file.counts_)
    of_file.save(tmp_path / "again.json")
    again = RobustEstimator.load(tmp_path / "again.json")
    np.testing.assert_array_equal(again.counts_, of_file.counts_)
    for node, parameters in again.posterior().items():
        np.testing.assert_allclose(parameters, updated.posterior()[node], rtol=1e-3)
    assert pickle.loads(pickle.dumps(updated)).contamination_ == updated.contamination_  # noqa: S301
    assert not any(updated.check(rows[:5_000]))
    assert [kind.what for kind in robustbn.compare(loaded, of_file).kinds] == []


def test_many_updates_hold_on_to_none_of_the_fits_before(alarm, dirty):
    fit = RobustEstimator(alarm, random_state=0).fit(dirty["network"][:20_000])
    first = weakref.ref(fit.result_)
    for _ in range(60):
        fit = fit.update(dirty["network"][20_000:20_050])
    gc.collect()
    assert first() is None
    assert fit.reading_.n_rows == 23_000
    assert len(fit.kinds_) == 1


def test_new_rows_may_come_in_a_stream(alarm, dirty, tmp_path):
    rows = dirty["network"]
    label(alarm, rows[40_000:]).to_parquet(tmp_path / "new.parquet")
    fit = RobustEstimator(alarm, random_state=0).fit(rows[:40_000])
    held = fit.update(rows[40_000:])
    streamed = fit.set_params(streaming=Streaming()).set_params(place="stream")
    streamed = streamed.update(tmp_path / "new.parquet")
    np.testing.assert_allclose(streamed.counts_, held.counts_, rtol=1e-6, atol=1e-6)
    assert streamed.contamination_ == pytest.approx(held.contamination_)


def test_compare_tells_what_an_update_changed(alarm, dirty):
    rows = dirty["none"]
    fit = RobustEstimator(alarm, random_state=0).fit(rows[:20_000])
    same = robustbn.compare(fit, fit.update(rows[20_000:40_000]))
    assert not any(same.moved()["is_significant"])
    drifted = rows[20_000:40_000].copy()
    column = alarm.nodes.index("HISTORY")
    drifted[:, column] = np.random.default_rng(0).integers(0, 2, len(drifted))
    moved = robustbn.compare(fit, fit.update(drifted)).moved()
    named = [
        n for n, is_moved in zip(moved["node"], moved["is_significant"], strict=True) if is_moved
    ]
    assert named == ["HISTORY"]


def test_what_cannot_be_added_is_refused(alarm, dirty, tmp_path):
    rows = dirty["none"][:3_000]
    for estimator in (MaximumLikelihoodEstimator, RobustEstimator):
        with pytest.raises(NotFittedError):
            estimator(alarm).update(rows)
        fit = estimator(alarm).fit(label(alarm, rows))
        for forgetting in (0, -1, 1.5, float("nan"), "much", True):
            with pytest.raises(SettingError, match="above 0 and at most 1"):
                fit.update(rows, forgetting=forgetting)
        unknown = label(alarm, rows[:10])
        unknown.loc[3, "CVP"] = "ENORMOUS"
        with pytest.raises(DataError, match="ENORMOUS"):
            fit.update(unknown)
        with pytest.raises(DataError):
            fit.update(label(alarm, rows[:0]))
        with pytest.raises(DataError, match="CVP"):
            fit.update(label(alarm, rows[:10]).drop(columns="CVP"))
    fit.save(tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    del document["fit"]["counts"]
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="counts"):
        RobustEstimator.load(tmp_path / "m.json")
    assert call("update", tmp_path / "m.json", tmp_path / "m.json", code=3)


def test_the_command_updates_a_model_and_tells_what_changed(alarm, dirty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alarm.write("net.bif")
    rows = dirty["none"]
    label(alarm, rows[:15_000]).to_csv("old.csv", index=False)
    label(alarm, rows[15_000:17_000]).to_csv("new.csv", index=False)
    call("fit", "net.bif", "old.csv", "--model", "m.json")
    told = as_json("update", "m.json", "new.csv", "-o", "m2.json", "--report", "page.html")
    assert (told["first"]["rows"], told["second"]["rows"]) == (15_000, 17_000)
    assert told["findings"] == []
    assert told["tables_moved"] == 0
    assert "<html" in (tmp_path / "page.html").read_text()
    expected = RobustEstimator(alarm, random_state=0).fit(rows[:17_000])
    np.testing.assert_allclose(RobustEstimator.load("m2.json").counts_, expected.counts_)
    told = as_json("update", "m2.json", "new.csv", "--forgetting", "0.5")
    assert told["second"]["rows"] == 10_500
    call("update", "net.bif", "new.csv", code=2)
    call("update", "m.json", "new.csv", "--forgetting", "7", code=2)
    shuffled = np.random.default_rng(0).permuted(rows[15_000:17_000], axis=0)
    label(alarm, shuffled).to_csv("mixed.csv", index=False)
    said = as_json("update", "m.json", "mixed.csv")
    assert any(finding["severity"] == "error" for finding in said["findings"])
