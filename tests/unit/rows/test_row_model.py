"""The row model: what it says of a row, by hand, and wherever it is asked."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from robustbn import BayesianNetwork, random_network, sample
from robustbn._core.documents import build, describe
from robustbn._core.expansion import normalise_counts
from robustbn._core.result import RobustFit
from robustbn._core.row_model import NO_REPEATS, Filter, Repeats, RowModel
from robustbn._rows.draw import drawing
from robustbn._rows.memory import fingerprint_codes, load_rows
from robustbn._show.explain import Explainer, touched_cells

PAIR = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["0", "1"], "b": ["0", "1", "2"]})
ROWS = np.array(list(product(range(2), range(3))), np.uint8)  # every row there is
GOOD = np.array([0.8, 0.2, 0.7, 0.2, 0.1, 0.1, 0.3, 0.6])
BAD = np.array([0.5, 0.5, 0.2, 0.2, 0.6, 0.2, 0.2, 0.6])
CLASS = np.array([0.1, 0.9, 0.3, 0.3, 0.4, 0.6, 0.2, 0.2])
WORSE = np.array([0.3, 0.7, 0.1, 0.1, 0.8, 0.8, 0.1, 0.1])


def rows_of(codes=ROWS, kernels="numpy"):
    return load_rows(PAIR, codes, kernels)


def probability(tables, row):
    a, b = row
    return tables[a] * tables[2 + 3 * a + b]


def one_kind():
    return RowModel.of_good_rows(GOOD).with_component(BAD, 0.1)


def everything():
    """Two classes of good rows, two kinds of bad ones."""
    model = RowModel.of_good_rows(GOOD).with_component(BAD, 0.1)
    return model.with_component(CLASS, 0.3, kept=1.0).with_component(WORSE, 0.05)


@pytest.mark.parametrize("kernels", ["numpy", "native"])
def test_the_log_odds_are_those_of_bayes(kernels):
    odds = one_kind().log_odds(rows_of(kernels=kernels))
    by_hand = [np.log(0.1 * probability(BAD, r) / (0.9 * probability(GOOD, r))) for r in ROWS]
    np.testing.assert_allclose(odds, by_hand, rtol=1e-5)


def test_trust_is_the_probability_of_all_classes_together():
    trust = everything().weigh(rows_of())
    for row, found in zip(ROWS, trust, strict=True):
        good = 0.55 * probability(GOOD, row) + 0.3 * probability(CLASS, row)
        bad = 0.1 * probability(BAD, row) + 0.05 * probability(WORSE, row)
        assert found == pytest.approx(good / (good + bad), rel=1e-5)


def test_a_class_that_looks_like_a_kind_takes_its_rows_back():
    model = one_kind()
    forgiven = model.with_component(BAD, 0.4, kept=1.0)
    before, after = model.weigh(rows_of()), forgiven.weigh(rows_of())
    assert (after > before)[before < 0.9].all()


def test_every_row_is_of_some_component():
    for model in (one_kind(), everything()):
        shares, _ = model.judge(rows_of())
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
        of_good = np.append(True, ~model.is_bad)
        np.testing.assert_allclose(
            shares[:, of_good].sum(axis=1), model.weigh(rows_of()), rtol=1e-5
        )
        sorted_, _ = model.sort(rows_of())
        np.testing.assert_allclose(sorted_, shares, rtol=1e-4)


def test_calibration_moves_the_line_between_good_and_bad_but_not_who_is_who():
    plain = everything()
    strict = replace(plain, intercept=1.5, slope=0.8)
    assert (strict.weigh(rows_of()) < plain.weigh(rows_of())).all()
    shares, odds = strict.judge(rows_of())
    trust = 1 / (1 + np.exp(1.5 + 0.8 * odds))
    np.testing.assert_allclose(strict.weigh(rows_of()), trust, rtol=1e-5)
    before, _ = plain.judge(rows_of())
    kinds = shares[:, 1] / shares[:, 3], before[:, 1] / before[:, 3]
    np.testing.assert_allclose(*kinds, rtol=1e-4)


def test_filters_and_repeats_multiply_the_trust():
    table = np.zeros((8, 1))
    table[1] = 2.0  # a = 1 has the score 4
    half = Filter(table, np.array([1.0]), np.array([1.0, 0.5]))
    prints = rows_of().fingerprints()
    repeats = Repeats(
        prints[:1], np.array([0.25]), np.array([0]), np.array([40]), np.array([10.0]), ROWS[:1]
    )
    model = replace(one_kind(), filters=(half,), repeats=repeats)
    factor = np.where(ROWS[:, 0] == 1, 0.5, 1.0) * np.where(np.arange(6) == 0, 0.25, 1.0)
    np.testing.assert_allclose(
        model.weigh(rows_of()), one_kind().weigh(rows_of()) * factor, rtol=1e-6
    )
    np.testing.assert_allclose(
        model.log_weigh(rows_of()), np.log(model.weigh(rows_of())), rtol=1e-4
    )


def test_a_model_without_kinds_trusts_every_row():
    model = RowModel.of_good_rows(GOOD)
    assert model.n_kinds == 0
    assert (model.weigh(rows_of()) == 1).all()
    assert (model.log_weigh(rows_of()) == 0).all()
    with_class = model.with_component(CLASS, 0.4, kept=1.0)
    assert with_class.n_kinds == 0
    assert (with_class.weigh(rows_of()) == 1).all()
    shares, odds = with_class.judge(rows_of())
    assert (odds == -np.inf).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)


def test_an_impossible_row_is_precise_in_the_log():
    sure = RowModel.of_good_rows(np.where(GOOD == 0.1, 1e-30, GOOD)).with_component(BAD, 0.1)
    scores = sure.log_weigh(rows_of())
    assert np.isfinite(scores).all()
    assert scores.min() < -50


def test_counts_by_component_add_up_to_all_rows():
    base = np.linspace(0.5, 2, 6)
    counts = everything().count(rows_of(), base)
    assert counts.shape == (8, 4)
    np.testing.assert_allclose(counts.sum(axis=1), rows_of().count(base), rtol=1e-5)


def test_good_rows_are_drawn_from_the_classes_by_their_shares():
    rows = everything().draw_good(drawing(PAIR.with_cpts(GOOD), "numpy", None, 0), 100_000)
    assert rows.n_rows == 100_000
    share = rows.count()[:2] / 100_000
    expected = (0.55 * GOOD[:2] + 0.3 * CLASS[:2]) / 0.85
    np.testing.assert_allclose(share, expected, atol=0.01)
    tables = normalise_counts(
        PAIR.layout,
        one_kind().draw_good(drawing(PAIR.with_cpts(GOOD), "numpy", None, 0), 100_000).count(),
    )
    np.testing.assert_allclose(tables, GOOD, atol=0.02)


def test_the_cells_that_speak_against_a_row_are_those_its_kind_favours():
    cells = np.array([[0, 4], [1, 5]])  # a=0 b=2, a=1 b=0
    against = one_kind().speak_against(cells)
    np.testing.assert_allclose(against, np.log(BAD[cells] / GOOD[cells]))
    with_class = one_kind().with_component(CLASS, 0.3, kept=1.0)
    np.testing.assert_allclose(with_class.speak_against(cells), against)


def test_a_family_with_a_hole_says_nothing_about_a_row():
    holed = np.array([[2, 1], [1, 3], [1, 2]], np.uint8)  # a missing, b missing, none
    cells = touched_cells(PAIR.layout, holed)
    np.testing.assert_array_equal(cells, [[-1, -1], [1, -1], [1, 7]])
    cut = Filter(np.arange(16.0).reshape(8, 2), np.array([1.0]), np.array([1.0, 0.5]))
    by_filter = replace(RowModel.of_good_rows(GOOD), filters=(cut,))
    for model in (one_kind(), by_filter):
        against = model.speak_against(cells)
        assert not against[cells < 0].any()
        assert against[2].any()
        of_seen = model.speak_against(np.array([[1, 7]]))
        np.testing.assert_allclose(against[2], of_seen[0])
    reasons = Explainer(PAIR.with_cpts(GOOD), one_kind()).explain(holed)
    assert [r.nodes for r in reasons] == [(), ("a",), ("a",)]


def read(document, network):
    return build(document, network.layout, fingerprint_codes(network))


def stored(model, network):
    """The model as it comes back from a file."""
    counts, of_groups = np.ones(network.n_cells), np.ones((network.n_cells, model.n_others))
    chances = np.ones(model.n_others)
    fit = RobustFit(counts, counts, None, 9.0, 9.0, model, of_groups, chances, (), True, "")
    return read(json.loads(json.dumps(describe(fit))), network).model


def test_a_model_knows_repeated_rows_with_holes_again():
    holed = np.array([[2, 1], [0, 1], [1, 3], [1, 3]], np.uint8)
    prints = load_rows(PAIR, holed, "native", holed=(0, 1)).fingerprints()
    assert prints[2] == prints[3]
    assert len(set(prints)) == 3
    for kernels in ("native", "numpy"):
        np.testing.assert_array_equal(fingerprint_codes(PAIR, kernels)(holed), prints)
        np.testing.assert_array_equal(fingerprint_codes(PAIR, kernels)(holed[1:2]), prints[1:2])
    order = np.argsort(prints[:3])
    some = (np.full(3, 0.5), np.arange(3), np.full(3, 9), np.ones(3))
    repeats = Repeats(prints[:3][order], *some, holed[:3][order])
    model = replace(RowModel.of_good_rows(GOOD), repeats=repeats)
    again = stored(model, PAIR)
    np.testing.assert_array_equal(again.repeats.fingerprints, repeats.fingerprints)
    rows = load_rows(PAIR, holed[[1, 1, 0]], holed=(0,))
    np.testing.assert_array_equal(again.weigh(rows), [0.5, 0.5, 0.5])
    reasons = Explainer(PAIR.with_cpts(GOOD), again).explain(holed[:1])
    assert "appears 9 times" in reasons[0].text


def test_components_come_and_go():
    model = everything()
    assert (model.n_others, model.n_kinds) == (3, 2)
    assert model.share_bad == pytest.approx(0.15)
    less = model.without_component(1)
    assert less.n_others == less.n_kinds == 2
    np.testing.assert_array_equal(less.others[:, 1], WORSE)


def test_a_model_survives_a_file_and_a_pickle_to_the_last_bit():
    network = random_network("tree", 6, random_state=0)
    codes = sample(network, 500, 1)
    rows = load_rows(network, codes)
    rng = np.random.default_rng(0)
    tables = normalise_counts(network.layout, rng.random(network.n_cells))
    repeated = np.unique(codes, axis=0)[:3]
    prints = fingerprint_codes(network)
    order = np.argsort(prints(repeated))
    model = RowModel.of_good_rows(network.probabilities + 1e-3).with_component(tables, 0.1)
    model = model.with_component(tables[::-1].copy(), 0.2, kept=1.0)
    model = replace(
        model,
        intercept=0.1,
        slope=0.9,
        filters=(Filter(rng.normal(size=(network.n_cells, 2)), np.array([1.0]), np.ones(2) / 2),),
        repeats=Repeats(
            prints(repeated)[order],
            np.array([0.5, 0.25, 0.1])[order],
            np.arange(3)[order],
            np.arange(3)[order] + 10,
            np.ones(3),
            repeated[order],
        ),
    )
    again = stored(model, network)
    for other in (again, pickle.loads(pickle.dumps(model))):  # noqa: S301
        np.testing.assert_array_equal(other.weigh(rows), model.weigh(rows))
        np.testing.assert_array_equal(other.log_weigh(rows), model.log_weigh(rows))
        assert other.is_bad.tolist() == [True, False]


def test_no_repeats_weigh_nothing_down():
    assert (NO_REPEATS.weigh(rows_of()) == 1).all()
    assert (NO_REPEATS.weigh_prints(np.arange(5, dtype=np.uint64)) == 1).all()
