"""Rows that miss values: kept, judged by what they show, and learned from."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from robustbn import (
    BayesianNetwork,
    MaximumLikelihoodEstimator,
    RobustEstimator,
    Streaming,
    example_network,
    random_network,
    read_table,
    sample,
    total_variation,
    write_network,
)
from robustbn._learn.likelihood import log_likelihood_of_rows
from robustbn._rows.memory import load_rows
from robustbn.adversary import corrupt
from robustbn.cli import main
from robustbn.exceptions import DataError, NotFittedError

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
]

SMOOTH = {"prior": "laplace", "pseudo_count": 0.5}


def with_holes(rows, share, seed=0):
    """Rows as numbers, some of which are missing completely at random."""
    holed = rows.astype(float)
    holed[np.random.default_rng(seed).random(rows.shape) < share] = np.nan
    return holed


def as_frame(network, rows):
    """Rows as a frame of labels, None where a value is missing."""
    columns = {}
    for i, node in enumerate(network.nodes):
        states = [*network.states[node], None]
        codes = np.where(np.isnan(rows[:, i]), len(states) - 1, rows[:, i]).astype(int)
        columns[node] = [states[c] for c in codes]
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def alarm():
    return example_network("alarm")


@pytest.fixture(scope="module")
def rows(alarm):
    return sample(alarm, 10_000, random_state=0)


def error(truth, fit):
    return float(total_variation(truth, fit.network_, random_state=0))


# --- learning -------------------------------------------------------------------------------------


def test_missing_values_are_used_by_default_and_better_than_any_other_way(alarm, rows):
    holed = with_holes(rows, 0.1)
    errors = {
        way: error(alarm, MaximumLikelihoodEstimator(alarm, on_missing=way, **SMOOTH).fit(holed))
        for way in ("use", "observed", "drop")
    }
    full = error(alarm, MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(rows))
    assert full < errors["use"] < errors["observed"] < 0.5 * errors["drop"]
    assert errors["use"] < 1.1 * full
    default = MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(holed)
    assert error(alarm, default) == errors["use"]


def test_what_was_inferred_is_told(alarm, rows):
    fit = MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(with_holes(rows, 0.1))
    found = fit.inferred_
    assert found.is_converged
    assert 2 < found.n_steps < 50
    assert found.missing[0] == pytest.approx(1 - 0.9**2, abs=0.02)  # HISTORY and its parent
    assert "of the values that the tables need are missing" in str(found)
    assert fit.counts_.sum() == pytest.approx(len(rows) * len(alarm.nodes))
    assert found.observed_counts.sum() < 0.9 * fit.counts_.sum()
    assert fit.reading_.n_dropped == 0
    assert sum(fit.reading_.n_missing.values()) == fit.reading_.n_holes > 30_000
    assert MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(rows).inferred_ is None


def test_values_missing_by_what_a_child_shows_bias_counting_and_not_inference():
    """A parent is missing more often where its child is 1: observed families are biased."""
    network = BayesianNetwork(
        {"cause": [], "effect": ["cause"]},
        {"cause": ["0", "1"], "effect": ["0", "1"]},
        {"cause": [0.7, 0.3], "effect": [[0.9, 0.1], [0.2, 0.8]]},
    )
    rows = sample(network, 100_000, 1).astype(float)
    is_gone = np.random.default_rng(0).random(len(rows)) < np.where(rows[:, 1] == 1, 0.8, 0.1)
    rows[is_gone, 0] = np.nan
    used = MaximumLikelihoodEstimator(network).fit(rows).network_
    observed = MaximumLikelihoodEstimator(network, on_missing="observed").fit(rows).network_
    assert used.cpts["effect"][1, 1] == pytest.approx(0.8, abs=0.02)
    assert used.cpts["cause"][1] == pytest.approx(0.3, abs=0.01)
    assert observed.cpts["effect"][1, 1] < 0.6
    assert observed.cpts["cause"][1] < 0.25


def test_missing_may_be_a_state_of_its_own(alarm, rows):
    frame = as_frame(alarm, with_holes(rows[:2000], 0.1))
    frame["CVP"] = [alarm.states["CVP"][c] for c in rows[:2000, alarm.nodes.index("CVP")]]
    for estimator in (MaximumLikelihoodEstimator, RobustEstimator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = estimator(alarm, on_missing="state").fit(frame)
        assert fit.network_.states["HISTORY"] == (*alarm.states["HISTORY"], "missing")
        assert fit.network_.states["CVP"] == alarm.states["CVP"]
        share = fit.network_.cpts["INTUBATION"][-1]
        assert share == pytest.approx(frame["INTUBATION"].isna().mean(), abs=0.05)
        assert fit.inferred_ is None
        assert np.isfinite(fit.score(frame.head(50)))
    with pytest.raises(ValueError, match="is supported only for rows in memory"):
        RobustEstimator(alarm, on_missing="state", place="stream").fit(frame)


def test_a_prior_smooths_what_is_inferred_too():
    network = random_network("tree", 8, random_state=0)
    holed = with_holes(sample(network, 300, 1), 0.3)
    fit = MaximumLikelihoodEstimator(network, prior="bdeu").fit(holed)
    assert fit.inferred_.is_converged
    assert fit.network_.probabilities.min() > 0
    assert fit.counts_.sum() == pytest.approx(300 * 8)


def test_weights_of_rows_count_for_what_they_miss(alarm, rows):
    holed = with_holes(rows[:3000], 0.1)
    twice = np.vstack([holed, holed[:1000]])
    weights = np.ones(3000)
    weights[:1000] = 2
    one = MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(twice)
    other = MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(holed, sample_weight=weights)
    np.testing.assert_allclose(one.counts_, other.counts_, atol=1e-6)


@pytest.mark.parametrize("way", [MaximumLikelihoodEstimator, RobustEstimator])
@pytest.mark.parametrize("unit", [1 / 800, 7.0, 1e13])
@pytest.mark.parametrize("is_even", [True, False])
def test_the_unit_of_sample_weights_does_not_matter_to_what_is_inferred(
    alarm, rows, way, unit, is_even
):
    holed = with_holes(rows[:800], 0.3)
    weights = np.ones(800) if is_even else np.random.default_rng(0).uniform(0.5, 2, 800)
    settings = {} if way is MaximumLikelihoodEstimator else {"random_state": 0}
    both = weights, unit * weights
    one, other = (way(alarm, **settings).fit(holed, sample_weight=given) for given in both)
    assert other.inferred_.n_steps == one.inferred_.n_steps
    assert other.inferred_.left == pytest.approx(one.inferred_.left)
    assert other.inferred_.is_converged
    np.testing.assert_allclose(other.counts_, unit * one.counts_, rtol=1e-6, atol=1e-6 * unit)
    np.testing.assert_allclose(other.network_.probabilities, one.network_.probabilities, atol=1e-6)
    if is_even:
        assert one.inferred_.n_steps == way(alarm, **settings).fit(holed).inferred_.n_steps


def test_numpy_and_native_kernels_learn_the_same(rows, alarm):
    holed = with_holes(rows[:400], 0.1)
    fits = [MaximumLikelihoodEstimator(alarm, kernels=k, **SMOOTH).fit(holed) for k in KERNELS]
    np.testing.assert_allclose(fits[0].counts_, fits[1].counts_, atol=1e-6)


KERNELS = ("native", "numpy")


# --- robust ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dirty(alarm):
    """A tenth of the rows from another network, a fifth of all values missing."""
    bad, is_bad = corrupt(sample(alarm, 20_000, 0), alarm, "network", 0.1, random_state=0)
    return with_holes(bad, 0.2), is_bad


@pytest.fixture(scope="module")
def fitted(alarm, dirty):
    return RobustEstimator(alarm, random_state=0, **SMOOTH).fit(dirty[0])


def test_bad_rows_are_found_among_rows_with_holes(alarm, dirty, fitted):
    holed, is_bad = dirty
    assert fitted.row_weights_[is_bad].mean() < 0.02
    assert fitted.row_weights_[~is_bad].mean() > 0.995
    good = MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(holed[~is_bad])
    assert error(alarm, fitted) < 1.15 * error(alarm, good)
    plain = float(total_variation(alarm, fitted.plain_network_, random_state=0))
    assert error(alarm, fitted) < 0.3 * plain
    assert "were inferred in" in fitted.status_
    n_trusted = fitted.result_.learned.n_trusted
    assert fitted.counts_.sum() == pytest.approx(n_trusted * len(alarm.nodes))


def test_good_rows_with_holes_are_trusted(alarm):
    fit = RobustEstimator(alarm, random_state=0).fit(with_holes(sample(alarm, 20_000, 3), 0.2))
    assert fit.contamination_ == 0
    assert fit.converged_


def test_holes_that_follow_a_pattern_are_no_evidence(alarm):
    """Half of the rows lack a third of the columns, as two versions of a form do."""
    rows = sample(alarm, 20_000, 3).astype(float)
    rows[::2, :12] = np.nan
    fit = RobustEstimator(alarm, random_state=0).fit(rows)
    assert fit.contamination_ < 0.002


def test_a_row_that_shows_nothing_is_trusted_and_tells_nothing(alarm, dirty, fitted):
    nothing = np.full((1, len(alarm.nodes)), np.nan)
    assert fitted.weights(nothing)[0] > 0.5
    assert fitted.predict(nothing)[0] == 1
    more = np.vstack([dirty[0], np.repeat(nothing, 500, axis=0)])
    again = RobustEstimator(alarm, random_state=0, **SMOOTH).fit(more)
    np.testing.assert_allclose(
        again.network_.probabilities, fitted.network_.probabilities, atol=0.02
    )


def test_a_reason_never_names_a_missing_cell(alarm, dirty, fitted):
    table = read_table(dirty[0], alarm)
    doubtful = np.flatnonzero(fitted.row_weights_ < 0.5)[:300]
    for row, reason in zip(doubtful, fitted.explainer_.explain(table.codes[doubtful]), strict=True):
        for cell in reason.cells:
            node, parents, _ = alarm.describe_cell(cell)
            for name in (node, *parents):
                assert not np.isnan(dirty[0][row, alarm.nodes.index(name)])


def test_copies_with_the_same_holes_are_found(alarm):
    rows = with_holes(sample(alarm, 20_000, 3), 0.1)
    rows[:1000] = rows[5]
    fit = RobustEstimator(alarm, random_state=0).fit(rows)
    assert fit.row_weights_[:1000].mean() < 0.2
    assert fit.row_weights_[1000:].mean() > 0.99


def test_other_methods_keep_rows_with_holes(alarm, dirty):
    holed, is_bad = dirty
    fit = RobustEstimator(alarm, 0.1, "trimmed", **SMOOTH).fit(holed)
    assert fit.inferred_.is_converged
    assert fit.row_weights_[is_bad].mean() < fit.row_weights_[~is_bad].mean()


def test_trusting_a_kind_infers_missing_values_again(alarm, dirty, fitted):
    counted = MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(dirty[0])
    trusted = fitted.decide(good=[1], X=dirty[0])
    assert trusted.contamination_ < 1e-6
    assert trusted.network_.probabilities == pytest.approx(counted.network_.probabilities, abs=1e-6)
    np.testing.assert_allclose(trusted.inferred_.missing, counted.inferred_.missing, atol=1e-6)
    np.testing.assert_allclose(
        trusted.inferred_.observed_counts, counted.inferred_.observed_counts, rtol=1e-6
    )
    with pytest.raises(NotFittedError, match=r"missing values, .* Call decide\(bad, good, X\)"):
        fitted.decide(good=[1])


def test_the_command_line_infers_missing_values_again_for_a_trusted_kind(tmp_path):
    network = random_network("tree", 30, random_state=0)
    rows, _ = corrupt(sample(network, 3_000, 0), network, "product", 0.1, random_state=0)
    network.write(tmp_path / "net.bif")
    as_frame(network, with_holes(rows, 0.1)).to_csv(tmp_path / "rows.csv", index=False)
    command = ["fit", str(tmp_path / "net.bif"), str(tmp_path / "rows.csv"), "--good-group", "1"]
    done = CliRunner().invoke(main, [*command, "--json", "--quiet", "--seed", "0"])
    assert json.loads(done.stdout)["contamination"] < 1e-6
    assert max(node["moved"] for node in json.loads(done.stdout)["moved"]) < 1e-9


def test_a_table_that_was_read_is_taken_by_a_fit_in_which_missing_is_a_state(alarm, rows):
    table = read_table(with_holes(rows[:500], 0.1), alarm, on_missing="state")
    fit = RobustEstimator(alarm, on_missing="state", random_state=0).fit(table)
    np.testing.assert_array_equal(fit.weights(table), fit.row_weights_)


def test_a_pattern_of_holes_is_evidence_if_asked(alarm):
    """A tenth of the rows are of another population, and half of their values are missing."""
    bad, is_bad = corrupt(sample(alarm, 20_000, 0), alarm, "shift", 0.1, random_state=0)
    holed = with_holes(bad, 0.05)
    holed[is_bad] = with_holes(bad[is_bad], 0.6)
    settings = {"random_state": 0, **SMOOTH}
    plain = RobustEstimator(alarm, **settings).fit(holed)
    asked = RobustEstimator(alarm, missing_is_evidence=True, **settings).fit(holed)
    assert asked.row_weights_[is_bad].mean() < 0.05 < plain.row_weights_[is_bad].mean()
    assert asked.row_weights_[~is_bad].mean() > 0.99
    assert asked.network_.nodes[: len(alarm.nodes)] == alarm.nodes
    assert asked.network_.cpts["HR is missing"][1] == pytest.approx(0.05, abs=0.01)
    again = asked.weights(holed[:2000])
    np.testing.assert_allclose(again, asked.row_weights_[:2000], atol=1e-6)
    assert "is missing" in " ".join(asked.rows()["why"].head(2000))
    with pytest.raises(ValueError, match="is supported only for rows in memory"):
        RobustEstimator(alarm, missing_is_evidence=True, place="stream").fit(holed)


@pytest.fixture(scope="module")
def vanishing():
    """A state, and a pair of states, that only bad rows have; some of all values are missing."""
    network = random_network("graph", 40, 110, random_state=4)
    pair = [network.nodes.index(node) for node in network.parents["X9"]]
    rows = sample(network, 5_000, 1)
    rows[(rows[:, pair] == 0).all(axis=1), pair[0]] = 1
    rows[:, 0] = 1
    rows[:400] = sample(random_network("graph", 40, 110, random_state=9), 400, 2)
    rows[:400, [0, *pair]] = 0
    return network, with_holes(rows, 0.15)


@pytest.mark.parametrize("settings", [{}, {"on_missing": "observed"}, {"place": "stream"}])
def test_vanishing_groups_count_recorded_rows_not_inferred_ones(vanishing, settings, tmp_path):
    network, rows = vanishing
    table = rows
    if "place" in settings:
        table = tmp_path / "rows.parquet"
        pq.write_table(pa.Table.from_pandas(as_frame(network, rows)), table)
    fit = RobustEstimator(network, random_state=0, **settings).fit(table)
    groups = {tuple(group.states): group for group in fit.vanishing_}
    assert {("X0",), network.parents["X9"]} <= set(groups)
    for nodes, group in groups.items():
        columns = [network.nodes.index(node) for node in nodes]
        has_it = (rows[:, columns] == [int(state) for state in group.states.values()]).all(axis=1)
        assert group.n_rows == pytest.approx(has_it.sum(), rel=1e-6)
        assert group.n_trusted == pytest.approx(fit.row_weights_[has_it].sum(), rel=1e-5)
    fit.save(tmp_path / "model.json")
    assert RobustEstimator.load(tmp_path / "model.json").vanishing_ == fit.vanishing_


# --- everywhere -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(alarm, dirty, tmp_path_factory):
    path = tmp_path_factory.mktemp("holes")
    frame = as_frame(alarm, dirty[0])
    for k, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        pq.write_table(pa.Table.from_pandas(frame.iloc[part]), path / f"part-{k}.parquet")
    return path


@pytest.mark.parametrize("cache", [None, "folder"])
def test_a_stream_gives_the_tables_of_memory(alarm, folder, fitted, cache, tmp_path):
    where = None if cache is None else tmp_path / "cache"
    settings = {"random_state": 0, "place": "stream", **SMOOTH}
    fit = RobustEstimator(alarm, streaming=Streaming(cache=where), **settings).fit(folder)
    np.testing.assert_allclose(fit.counts_, fitted.counts_, rtol=1e-4, atol=1e-2)
    assert fit.inferred_.n_steps == fitted.inferred_.n_steps
    assert fit.reading_.n_holes == fitted.reading_.n_holes


def test_a_model_file_keeps_what_was_inferred(fitted, dirty, alarm, tmp_path):
    fitted.save(tmp_path / "model.json")
    loaded = RobustEstimator.load(tmp_path / "model.json")
    assert loaded.inferred_.n_steps == fitted.inferred_.n_steps
    np.testing.assert_array_equal(loaded.inferred_.missing, fitted.inferred_.missing)
    np.testing.assert_allclose(loaded.weights(dirty[0]), fitted.weights(dirty[0]))
    counted = MaximumLikelihoodEstimator(alarm, **SMOOTH).fit(dirty[0][:500])
    counted.save(tmp_path / "counted.json")
    again = MaximumLikelihoodEstimator.load(tmp_path / "counted.json")
    assert str(again.inferred_) == str(counted.inferred_)


def test_likelihoods_are_those_of_what_a_row_shows():
    network = random_network("tree", 5, random_state=0)
    fit = MaximumLikelihoodEstimator(network, **SMOOTH).fit(sample(network, 2000, 1))
    every = np.stack(np.meshgrid(*[[0, 1]] * 5, indexing="ij"), -1).reshape(-1, 5)
    joint = np.exp(fit.score_samples(every.astype(np.uint8)))
    assert joint.sum() == pytest.approx(1)
    row = np.array([[np.nan, 1, np.nan, 0, np.nan]])
    shows = (every[:, 1] == 1) & (every[:, 3] == 0)
    assert fit.score_samples(row)[0] == pytest.approx(np.log(joint[shows].sum()), abs=1e-5)
    assert fit.log_likelihood(row) == pytest.approx(np.log(joint[shows].sum()), abs=1e-5)
    filled = fit.impute(row)
    best = joint[shows & (every[:, 0] == 1)].sum() / joint[shows].sum()
    assert filled["probability"][0] == pytest.approx(max(best, 1 - best), abs=1e-6)
    assert filled["value"][0] == str(int(best > 0.5))
    assert list(filled["node"]) == [network.nodes[i] for i in (0, 2, 4)]


def test_a_node_of_256_states_may_miss_values():
    network = BayesianNetwork(
        {"wide": [], "child": ["wide"]},
        {"wide": [f"s{k}" for k in range(256)], "child": ["no", "yes"]},
    )
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 256, 5000)
    frame = pd.DataFrame(
        {"wide": [f"s{k}" for k in wide], "child": np.where(wide < 128, "no", "yes")}
    )
    frame.loc[::10, "wide"] = None
    fit = MaximumLikelihoodEstimator(network, **SMOOTH).fit(frame)
    assert fit.inferred_.is_converged
    assert fit.counts_[:256].sum() == pytest.approx(5000)
    assert read_table(frame, network).codes.max() == 256


# --- told -----------------------------------------------------------------------------------------


def test_reading_says_what_is_missing_and_what_it_would_cost(alarm, dirty):
    reading = read_table(dirty[0], alarm).reading
    assert "values are missing" in str(reading)
    assert "rows are complete" in str(reading)


def test_the_command_line_tells_and_takes_the_ways(alarm, dirty, tmp_path):
    as_frame(alarm, dirty[0][:4000]).to_csv(tmp_path / "rows.csv", index=False)
    call = ["fit", "example:alarm", str(tmp_path / "rows.csv"), "--prior", "laplace", "--json"]
    facts = json.loads(CliRunner().invoke(main, call, catch_exceptions=False).stdout)
    assert facts["table"]["rows"] == 4000
    assert facts["table"]["values_missing"] > 20_000
    assert facts["inferred"]["is_converged"]
    for way in ("observed", "state"):
        done = CliRunner().invoke(main, [*call, "--missing", way], catch_exceptions=False)
        assert json.loads(done.stdout)["inferred"] is None
    shown = CliRunner().invoke(main, call[:-1], catch_exceptions=False).stdout
    assert "missing" in shown
    inspected = CliRunner().invoke(
        main, ["inspect", str(tmp_path / "rows.csv")], catch_exceptions=False
    )
    assert "missing" in inspected.stdout


def test_score_by_a_network_gives_the_likelihood_of_what_a_row_shows(tmp_path):
    network = random_network("tree", 5, random_state=0)
    rows = with_holes(sample(network, 200, 1), 0.3)
    write_network(network, tmp_path / "tree.json")
    as_frame(network, rows).to_csv(tmp_path / "rows.csv", index=False)
    found = score_rows(tmp_path)
    every = np.stack(np.meshgrid(*[[0, 1]] * 5, indexing="ij"), -1).reshape(-1, 5)
    whole = load_rows(network, every.astype(np.uint8))
    joint = np.exp(log_likelihood_of_rows(whole, network.probabilities))
    shows = ((every == rows[:, None]) | np.isnan(rows)[:, None]).all(axis=2)
    written = pd.read_csv(tmp_path / "judged.csv")["log_likelihood"]
    np.testing.assert_allclose(written, np.log(shows @ joint), atol=1e-5)
    assert found["mean_log_likelihood"] == pytest.approx(written.mean(), abs=1e-5)
    assert found["rows"] == 200
    assert found["rows_impossible"] == found["rows_sampled"] == 0


def test_score_tells_of_rows_that_miss_too_many_values_for_a_likelihood(tmp_path, monkeypatch):
    monkeypatch.setattr("robustbn._rows.kernels.native.LARGEST_TABLE", 2)
    network = random_network("tree", 12, random_state=0)
    rows = sample(network, 20, 1).astype(float)
    rows[3] = np.nan
    write_network(network, tmp_path / "tree.json")
    as_frame(network, rows).to_csv(tmp_path / "rows.csv", index=False)
    found = score_rows(tmp_path)
    written = pd.read_csv(tmp_path / "judged.csv")["log_likelihood"]
    assert np.isnan(written[3])
    assert found["mean_log_likelihood"] == pytest.approx(np.delete(written, 3).mean(), abs=1e-5)
    assert (found["rows_impossible"], found["rows_sampled"]) == (0, 1)
    assert 3 not in [row["row"] for row in found["worst"]]
    call = ["score", str(tmp_path / "tree.json"), str(tmp_path / "rows.csv")]
    assert "1 row misses too many dependent values" in CliRunner().invoke(main, call).stdout


def score_rows(folder):
    call = ["score", "tree.json", "rows.csv", "-o", "judged.csv"]
    call = [str(folder / word) if "." in word else word for word in call]
    done = CliRunner().invoke(main, [*call, "--json"], catch_exceptions=False)
    return json.loads(done.stdout)


def test_codes_never_stand_for_missing_values_by_accident(alarm, rows):
    wrong = rows.copy()
    wrong[7, 3] = alarm.layout.cards[3]
    with pytest.raises(DataError, match="at row 7, column 3"):
        MaximumLikelihoodEstimator(alarm).fit(wrong)
