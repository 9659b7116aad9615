"""Fitted estimators as files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzz import models
from hypothesis import given, settings
from hypothesis import strategies as st

import robustbn
from robustbn import MaximumLikelihoodEstimator, RobustEstimator, Streaming
from robustbn.exceptions import ModelFileError, NetworkError, NotFittedError, RobustBNError
from robustbn.simulate import corrupt

STORED = Path(__file__).parents[1] / "data" / "model-version-1.json"


@pytest.fixture(scope="module")
def tree():
    return robustbn.random_network("tree", 12, cards=3, random_state=0)


@pytest.fixture(scope="module")
def dirty(tree):
    rows = robustbn.sample(tree, 12_000, random_state=0)
    dirty, _ = corrupt(rows, tree, "network", eps=0.1, random_state=1)
    dirty[:200] = dirty[0]  # copies
    return dirty


@pytest.fixture(scope="module")
def fitted(tree, dirty):
    return RobustEstimator(tree, random_state=0).fit(dirty)


@pytest.fixture(scope="module")
def document(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    fitted.save(path)
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", ["model.json", "model.json.gz"])
def test_a_model_comes_back_as_it_was(fitted, dirty, tmp_path, name):
    fitted.save(tmp_path / name)
    again = RobustEstimator.load(tmp_path / name)
    assert again.network_ == fitted.network_
    assert again.plain_network_ == fitted.plain_network_
    assert again.get_params() == {**fitted.get_params(), "network": fitted.network_.with_cpts(None)}
    np.testing.assert_array_equal(again.weights(dirty), fitted.weights(dirty))
    np.testing.assert_array_equal(again.score_samples(dirty), fitted.score_samples(dirty))
    assert again.repeats_ == fitted.repeats_
    assert again.kinds_ == fitted.kinds_
    assert again.history_ == fitted.history_
    assert (again.status_, again.contamination_) == (fitted.status_, fitted.contamination_)
    assert str(again.diagnose()) == str(fitted.diagnose())
    assert again.rows(dirty).equals(fitted.rows(dirty))
    assert again.moved().equals(fitted.moved())


@pytest.mark.parametrize("is_uneven", [False, True])
def test_a_model_keeps_how_rows_are_repeated(is_uneven, tmp_path):
    network = robustbn.random_network("tree", 20, random_state=0)
    rows = robustbn.sample(network, 4_000, 1)
    copied = np.repeat(rows, np.where(rows[:, 0] == 0, 1, 5) if is_uneven else 3, axis=0)
    fit = RobustEstimator(network, random_state=0).fit(copied)
    fit.save(tmp_path / "model.json")
    again = RobustEstimator.load(tmp_path / "model.json")
    assert fit.result_.learned.effect == (1 if is_uneven else 3)
    assert (fit.result_.learned.repetition.uneven is not None) == is_uneven
    assert again.result_.learned.repetition == fit.result_.learned.repetition
    assert again.result_.few_rows == fit.result_.few_rows


@pytest.mark.parametrize("total", [1e-30, 2e16, 1e99])
def test_a_model_of_any_total_weight_comes_back(tree, total, tmp_path):
    rows, weights = robustbn.sample(tree, 2_000, 1), np.full(2_000, total / 2_000)
    fit = RobustEstimator(tree, random_state=0).fit(rows, sample_weight=weights)
    fit.save(tmp_path / "model.json")
    again = RobustEstimator.load(tmp_path / "model.json")
    assert again.result_.learned.n_rows == fit.result_.learned.n_rows == pytest.approx(total)
    assert again.contamination_ == fit.contamination_
    np.testing.assert_array_equal(again.counts_, fit.counts_)


def test_a_model_judges_the_same_on_another_backend(fitted, dirty, tmp_path):
    fitted.save(tmp_path / "model.json")
    again = RobustEstimator.load(tmp_path / "model.json").set_params(kernels="numpy")
    again.save(tmp_path / "numpy.json")
    again = RobustEstimator.load(tmp_path / "numpy.json")
    np.testing.assert_allclose(again.weights(dirty[:2000]), fitted.weights(dirty[:2000]), atol=1e-4)


def test_filters_alone_can_be_stored(tree, dirty, tmp_path):
    fitted = RobustEstimator(tree, polish=False, random_state=0).fit(dirty)
    assert fitted.result_.learned.model.filters
    fitted.save(tmp_path / "model.json")
    again = RobustEstimator.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.weights(dirty), fitted.weights(dirty))


def test_intervals_and_labels_are_remembered(tmp_path):
    rng = np.random.default_rng(0)
    age, risk = rng.normal(50, 15, 3000), rng.choice(["N", "Y"], 3000)
    network = robustbn.BayesianNetwork(
        {"age": [], "risk": ["age"]}, {"age": ["young", "middle", "old"], "risk": ["no", "yes"]}
    )
    rows = pd.DataFrame({"Age": age, "risk": risk})
    fitted = robustbn.fit(
        network,
        rows,
        bins={"age": [30, 65]},
        rename={"Age": "age"},
        labels={"risk": {"N": "no", "Y": "yes"}},
    )
    fitted.save(tmp_path / "model.json")
    again = RobustEstimator.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.weights(rows), fitted.weights(rows))
    assert again.reading_ == fitted.reading_


@pytest.mark.parametrize(
    "edges", [np.array([30.5, 65]), (np.int64(30), np.float32(65)), range(30, 66, 35)]
)
def test_settings_may_be_numbers_of_numpy(edges, tmp_path):
    network = robustbn.BayesianNetwork({"age": []}, {"age": ["young", "middle", "old"]})
    rows = pd.DataFrame({"age": np.random.default_rng(0).normal(50, 15, 3000)})
    fitted = RobustEstimator(
        network, bins={"age": edges}, n_threads=np.int64(1), random_state=np.int64(3)
    ).fit(rows)
    fitted.save(tmp_path / "model.json")
    again = RobustEstimator.load(tmp_path / "model.json")
    assert again.bins == {"age": [float(edge) for edge in edges]}
    assert (again.n_threads, again.random_state) == (1, 3)
    np.testing.assert_array_equal(again.weights(rows), fitted.weights(rows))


def test_counting_can_be_stored_too(tree, dirty, tmp_path):
    fitted = MaximumLikelihoodEstimator(tree, prior="laplace").fit(dirty)
    fitted.save(tmp_path / "model.json")
    again = MaximumLikelihoodEstimator.load(tmp_path / "model.json")
    assert again.network_ == fitted.network_
    assert again.score(dirty) == fitted.score(dirty)
    with pytest.raises(ModelFileError, match="contains a MaximumLikelihoodEstimator"):
        RobustEstimator.load(tmp_path / "model.json")


def test_the_rows_of_the_fit_are_not_in_the_file(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    with pytest.raises(NotFittedError, match=r"call rows\(X\)"):
        RobustEstimator.load(tmp_path / "model.json").rows()


PLACES = ("cache", "weights_to")


def test_paths_are_not_saved_in_a_model_file(tree, tmp_path):
    rows = pd.DataFrame(robustbn.sample(tree, 3000, random_state=0).astype(str), columns=tree.nodes)
    settings = {name: tmp_path / "private" / name for name in PLACES}
    (tmp_path / "private").mkdir()
    streaming = Streaming(on_error="skip", **settings)
    fitted = RobustEstimator(tree, random_state=0, streaming=streaming).fit(rows)
    fitted.save(tmp_path / "model.json")
    assert "private" not in (tmp_path / "model.json").read_text()
    assert RobustEstimator.load(tmp_path / "model.json").streaming == Streaming(on_error="skip")


@pytest.mark.parametrize("spelling", [f"streaming__{name}" for name in PLACES])
def test_paths_are_not_read_from_a_model_file(spelling, document, tree, tmp_path):
    place = tmp_path / "elsewhere" / "w.parquet"
    place.parent.mkdir()
    (tmp_path / "model.json").write_text(
        json.dumps(_changed(document, ["settings", spelling], str(place)))
    )
    loaded = RobustEstimator.load(tmp_path / "model.json")
    assert str(place) not in map(str, loaded.get_params().values())
    rows = pd.DataFrame(robustbn.sample(tree, 3000, random_state=0).astype(str), columns=tree.nodes)
    loaded.set_params(place="stream").fit(rows)
    assert list(place.parent.iterdir()) == []


def test_a_file_from_version_1_is_still_read():
    """Once there is a release of the format, never to be written again."""
    model = RobustEstimator.load(STORED)
    expected = json.loads(STORED.with_suffix(".expected.json").read_text())
    weights = model.weights(np.array(expected["rows"], np.uint8))
    np.testing.assert_allclose(weights, expected["weights"], atol=1e-5)
    assert model.contamination_ == pytest.approx(expected["contamination"])


def _changed(document, path, value):
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], "other", 'must be "robustbn-model"'),
        (["version"], 2, "has version 2; this release reads version 1"),
        (["fit"], KeyError, "missing required field `fit`"),
        (["estimator"], "os.system", "contains a os.system"),
        (["settings", "shell"], "rm", "unknown setting 'shell'"),
        (["settings", "network"], "x.bif", "unknown setting 'network'"),
        (["settings", "streaming"], {"weights_to": "x"}, "unknown setting 'streaming'"),
        (["settings", "streaming__shell"], "rm", "unknown setting 'streaming__shell'"),
        (["settings", "polish__shell"], "rm", "unknown setting 'polish__shell'"),
        (["fit", "n_rows"], 0, "fit.n_rows must be a number from 1e-300"),
        (["fit", "counts"], [1.0], "fit.counts is damaged: it has shape"),
        (["fit", "counts", 0], -1.0, r"fit.counts\[0\] must be a number from 0"),
        (["fit", "model", "good", 0], 0.0, "fit.model.good is damaged: it must be above 0"),
        (["fit", "model", "others"], [[0.5]], "fit.model.others is damaged: it has shape"),
        (["fit", "model", "slope"], "steep", "fit.model.slope is damaged: Expected `float`"),
        (["fit", "model", "repeats", "codes", 0, 0], 9, "Code 9 at row 0"),
        (["fit", "model", "repeats", "codes", 0, 0], 900, "damaged"),
        (["fit", "rounds", 0], {"what": 1}, "damaged"),
        (["reading", "config", "on_unknown"], "explode", "on_unknown is one of"),
        (["reading", "n_rows"], KeyError, "missing required field `n_rows`"),
        (["network", "nodes", 0, "states"], [], "states"),
    ],
)
def test_damaged_files_are_refused_with_the_part(document, tmp_path, path, value, message):
    file = tmp_path / "model.json"
    file.write_text(json.dumps(_changed(document, path, value)))
    with pytest.raises((ModelFileError, NetworkError), match=message):
        RobustEstimator.load(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x04\x95", "not"),
        (b"[" * 100_000, "not a model file"),
        (b'{"format": "robustbn-model", "version": NaN}', "NaN is not a number"),
        (b"{}", "must be"),
    ],
)
def test_hostile_bytes_are_refused(tmp_path, content, message):
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(RobustBNError, match=message):
        RobustEstimator.load(tmp_path / "model.json")


def test_pickles_are_refused_by_name(tmp_path):
    with pytest.raises(ModelFileError, match="may run code"):
        RobustEstimator.load(tmp_path / "model.pkl")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_change_of_a_value_gives_anything_but_a_model_or_our_error(
    document, tmp_path_factory, data
):
    path, place = [], document
    while isinstance(place, dict | list) and len(place):
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        path.append(data.draw(st.sampled_from(list(keys))))
        place = place[path[-1]]
        if data.draw(st.booleans()) and len(path) > 1:
            break
    value = data.draw(st.sampled_from([None, -1, 1e308, "x", [], {}, True, [[1]], 2**70]))
    file = tmp_path_factory.mktemp("fuzz") / "model.json"
    file.write_text(json.dumps(_changed(document, path, value)))
    try:
        model = RobustEstimator.load(file)
    except RobustBNError:
        return
    assert model.network_.has_cpts


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["fit", "counts", 3], "1e999", r"fit.counts\[3\] must be a number from .* found inf"),
        (["fit", "rounds", 0, "removed"], 2, r"fit.rounds\[0\].removed must be .* found 2"),
        (["fit", "rounds", 0, "wall_s"], "x", r"fit.rounds\[0\].wall_s is damaged: Expected"),
        (["fit", "converged"], "yes", "fit.converged is damaged: Expected `bool`, got `str`"),
        (["fit", "model", "kept"], ["x"], "fit.model.kept.* is damaged: Expected `float`"),
        (["fit", "repetition"], [], r"fit.repetition is damaged: Expected `object . null`"),
        (["fit", "repetition"], {"effect": 0.5}, "fit.repetition.effect must be a number from 1"),
        (["fit", "misfit"], [], r"fit.misfit is damaged: Expected `object . null`"),
        (["reading", "n_missing"], {"a": None}, "reading.n_missing.* is damaged: Expected `int`"),
        (
            ["reading", "config", "others"],
            0.5,
            "reading.config.others is damaged",
        ),
        (["settings", "n_threads"], "2", "settings: n_threads is a whole number from 1, or None"),
        (["settings", "polish"], 1, "settings: polish is True or False; found 1, of type int"),
        (["settings", "prior"], "x", "settings: Unknown prior 'x'"),
        (["version"], "1", "has version '1'; this release reads version 1"),
    ],
)
def test_the_path_of_a_wrong_entry_is_told(document, tmp_path, path, value, message):
    file = tmp_path / "model.json"
    text = json.dumps(_changed(document, path, value))
    file.write_text(text.replace('"1e999"', "1e999"))
    with pytest.raises(ModelFileError, match=message):
        RobustEstimator.load(file)


def test_a_changed_model_is_refused_or_works():
    assert models.run(150, seed=0) == 0
