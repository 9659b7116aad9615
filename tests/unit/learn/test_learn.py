"""The stages of the default method, each on a small input of its own."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from unittest.mock import patch

import numpy as np
import pytest

from robustbn import RobustEstimator, random_network, sample
from robustbn._core.config import RobustConfig
from robustbn._core.expansion import normalise_counts, uniform_tables
from robustbn._core.row_model import RowModel
from robustbn._core.tuning import TUNING
from robustbn._learn.density_filter import build_filter, falling_ratios
from robustbn._learn.population import (
    OddsHistogram,
    _Part,
    calibrate,
    explain,
    refit,
    settle,
)
from robustbn._learn.proposals import Sample, propose_kind, split_kinds, split_widest
from robustbn._learn.repeats import find_copies, find_repeats, share_patterns
from robustbn._learn.rounds import (
    begin,
    begin_from,
    explain_bad_rows,
    filter_the_rest,
    is_suspicious,
)
from robustbn._learn.spectrum import clean_top, find_spectrum
from robustbn._learn.status import describe_status
from robustbn._rows.draw import drawing
from robustbn._rows.memory import load_rows
from robustbn.adversary import corrupt

NETWORK = random_network("graph", 14, 60, random_state=0)
WIDE = random_network("graph", 40, 250, random_state=0)  # whose rows tell bad from good
N_ROWS = 12_000


def draw_sample(adversary=None, eps=0.1, network=NETWORK, n_rows=N_ROWS, ceiling=0.45, **numbers):
    """Rows to learn from, and which of them are bad."""
    codes = sample(network, n_rows, 1)
    is_bad = np.zeros(n_rows, bool)
    if adversary:
        codes, is_bad = corrupt(codes, network, adversary, eps, 2)
    draw = drawing(network, None, None, 0)
    rows = load_rows(network, codes)
    base = np.ones(len(codes), np.float32)
    tuning = replace(TUNING, **numbers)
    return Sample(rows, base, float(len(codes)), draw, ceiling, tuning), is_bad


# --- spectrum -------------------------------------------------------------------------------------


def test_good_rows_have_the_spectrum_of_drawn_rows():
    found, _ = draw_sample()
    top = find_spectrum(found.rows, found.base, TUNING).top
    drawn = clean_top(found.draw([(NETWORK.probabilities, N_ROWS)]), N_ROWS, TUNING)
    assert 1 < top < 1.1
    assert top == pytest.approx(drawn, abs=0.03)


def test_bad_rows_lift_the_top_and_lie_along_it():
    found, is_bad = draw_sample("product")
    spectrum = find_spectrum(found.rows, found.base, TUNING)
    assert spectrum.top > 1.5
    scores = found.rows.score(spectrum.table[:, :1])
    assert scores[is_bad].mean() > 3 * scores[~is_bad].mean()


def test_fewer_drawn_rows_are_scaled_to_more_rows():
    found, _ = draw_sample()
    few = found.draw([(NETWORK.probabilities, 3000)])
    many = found.draw([(NETWORK.probabilities, 48_000)])
    from_few, from_many = (clean_top(rows, 48_000, TUNING) for rows in (few, many))
    assert from_many - 0.01 < from_few < 1.2


# --- filter ---------------------------------------------------------------------------------------


def test_ratios_are_pooled_until_they_fall_and_keep_their_mean():
    above, below = np.array([0.2, 0.3, 0.1, 0.4]), np.array([0.3, 0.2, 0.4, 0.1])
    ratios = falling_ratios(above, below)
    assert (np.diff(ratios) <= 1e-12).all()
    assert ratios @ below == pytest.approx(above.sum())


def test_rows_like_the_drawn_ones_pass_a_filter():
    found, _ = draw_sample()
    clean = found.draw([(NETWORK.probabilities, 50_000)])
    table = find_spectrum(found.rows, found.base, TUNING).table[:, :2]
    _, factors = build_filter(table, found.rows, found.base, clean, TUNING)
    assert factors.mean() > 0.97


def test_a_filter_takes_the_rows_that_stick_out_and_is_a_function_of_the_row():
    found, is_bad = draw_sample("product")
    clean = found.draw([(NETWORK.probabilities, 50_000)])
    table = find_spectrum(found.rows, found.base, TUNING).table[:, :2]
    built, factors = build_filter(table, found.rows, found.base, clean, TUNING)
    assert factors[is_bad].mean() < 0.6 < 0.9 < factors[~is_bad].mean()
    np.testing.assert_array_equal(built.weigh(found.rows), factors)
    assert (np.diff(built.factors) <= 0).all()


# --- copies ---------------------------------------------------------------------------------------


def copies_of(codes, network=NETWORK):
    rows = load_rows(network, codes)
    ones = np.ones(len(codes), np.float32)
    found = find_copies(
        rows.fingerprints(), ones, codes, lambda some: load_rows(network, some), TUNING
    )
    return found, rows.count()


NO_SLACK = replace(TUNING, copies_slack=1.02)


def test_rows_seen_three_times_are_copies_and_know_where_they_first_appear():
    codes = np.array([[0, 1], [1, 1], [0, 1], [0, 1], [1, 1], [0, 0]], np.uint8)
    network = random_network("empty", 2, random_state=0)
    found, _ = copies_of(codes, network)
    assert found.seen.tolist() == [3]
    assert found.first.tolist() == [0]
    assert found.codes.tolist() == [[0, 1]]
    assert found.weight.tolist() == [3.0]


@pytest.mark.parametrize("n_nodes", [3, 8, 70, 150])
def test_patterns_of_missing_values_are_counted(n_nodes):
    layout = random_network("empty", n_nodes, random_state=0).layout
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (200, n_nodes)).astype(np.uint8)
    is_missing = rng.random((12, n_nodes))[rng.integers(0, 12, 200)] < 0.3
    codes[is_missing] = 2
    which = np.array([7, 3, 7, 199])
    by_hand = [(is_missing == is_missing[k]).all(axis=1).mean() for k in which]
    np.testing.assert_allclose(share_patterns(layout, codes, which), by_hand)
    assert len(share_patterns(layout, codes, which[:0])) == 0


def test_a_row_copied_far_too_often_keeps_the_weight_it_should_have():
    codes = sample(NETWORK, 5000, 1)
    codes[:400] = codes[7]
    found, counts = copies_of(codes)
    repeats = find_repeats(found, counts, 5000.0, np.ones(len(found.seen)), NO_SLACK)
    worst = repeats.seen.argmax()
    assert repeats.seen[worst] >= 400
    kept = repeats.factors[worst] * repeats.seen[worst]
    assert kept == pytest.approx(repeats.expected[worst], rel=1e-6)
    assert kept < 100
    assert repeats.weigh_prints(load_rows(NETWORK, codes).fingerprints())[:400].max() < 0.25


def test_rows_repeated_by_chance_are_left_alone():
    found, counts = copies_of(sample(NETWORK, 20_000, 3))
    assert len(found.seen) > 100
    repeats = find_repeats(found, counts, 20_000.0, np.ones(len(found.seen)), NO_SLACK)
    assert len(repeats.factors) <= 2


def test_common_rows_of_a_network_that_is_not_quite_right_are_no_copies():
    apart = random_network("empty", 2, random_state=0)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 5000)
    y = np.where(rng.random(5000) < 0.3, x, rng.integers(0, 2, 5000))  # x = y 1.3 times as often
    found, counts = copies_of(np.stack([x, y], 1).astype(np.uint8), apart)
    trust = np.ones(len(found.seen))
    assert len(find_repeats(found, counts, 5000.0, trust, TUNING).factors) == 0
    strict_repeats = find_repeats(found, counts, 5000.0, trust, NO_SLACK)
    assert strict_repeats is None or len(strict_repeats.factors)


def test_copies_whose_surplus_grows_and_grows_are_not_believed():
    codes = sample(NETWORK, 5000, 1)
    codes[:400] = codes[7]
    found, counts = copies_of(codes)
    trust = np.ones(len(found.seen))
    assert find_repeats(found, counts, 5000.0, trust, NO_SLACK) is not None
    strict = replace(NO_SLACK, copies_runaway=0.5)  # less than there is at the first step
    assert find_repeats(found, counts, 5000.0, trust, strict) is None


# --- kinds ----------------------------------------------------------------------------------------


def test_expectation_maximisation_recovers_good_and_bad_tables():
    found, is_bad = draw_sample("network", eps=0.15)
    marked = found.base * np.where(is_bad, 0.7, 0.05)  # a rough mark is enough
    start = propose_kind(found, RowModel.of_good_rows(found.prior), found.base, marked)
    explained = found.explain(start)
    assert explained.model.shares[0] == pytest.approx(0.15, abs=0.02)
    assert explained.good[is_bad].mean() < 0.1
    assert explained.good[~is_bad].mean() > 0.97
    assert explained.clarity > 0.8
    assert explained.log_likelihood > found.log_likelihood


def test_every_step_of_expectation_maximisation_gains():
    found, is_bad = draw_sample("network")
    start = propose_kind(
        found, RowModel.of_good_rows(found.prior), found.base, found.base * np.where(is_bad, 0.6, 0)
    )
    gains = [
        explain(found.rows, found.base, start, found.prior, TUNING, max_steps=k).log_likelihood
        for k in (1, 2, 4, 8)
    ]
    assert gains == sorted(gains)


def test_classes_take_part_in_fitting_but_their_rows_stay_good():
    found, is_bad = draw_sample("network", eps=0.15)
    marked = found.base * is_bad
    start = propose_kind(found, RowModel.of_good_rows(found.prior), found.base, marked)
    as_class = found.explain(replace(start, is_bad=np.array([False])))
    as_kind = found.explain(start)
    np.testing.assert_allclose(as_class.model.others, as_kind.model.others)
    assert (as_class.good > 1 - 1e-5).all()
    assert as_class.model.weigh(found.rows).min() == 1


def test_a_kind_of_two_networks_is_split_and_one_network_is_not():
    found, is_bad = draw_sample("mixture", eps=0.2, n_rows=20_000)
    rough = propose_kind(found, RowModel.of_good_rows(found.prior), found.base, found.base * is_bad)
    explained = found.explain(rough)
    assert split_kinds(found, explained).model.n_kinds > 1
    single, is_bad = draw_sample("product", eps=0.2, n_rows=20_000)
    rough = propose_kind(
        single, RowModel.of_good_rows(single.prior), single.base, single.base * is_bad
    )
    assert split_widest(single, single.explain(rough), set(), TUNING.split_edge) is None


def explain_rowflips(*, by_parts):
    """Rows explained by a rough start that takes many steps; and how many rows each passed over."""
    found, is_bad = draw_sample("rowflip", network=WIDE, n_rows=30_000, kind_steps=500)
    codes = found.rows.unpack()
    if by_parts:
        found = replace(found, codes=codes, load=lambda some: load_rows(WIDE, some))
    start = RowModel.of_good_rows(found.prior)
    for half in (0, 1):  # two kinds that have to find out in what they differ
        marked = found.base * (is_bad & (np.arange(len(is_bad)) % 2 == half))
        start = found.with_kind(start, marked, found.prior)
    passed = []

    def divide(model, rows, base):
        passed.append(rows.n_rows)
        return rows.divide(model.evidence, -model.log_prior_odds, base)

    with patch.object(RowModel, "divide", divide):
        return found.explain(start), passed


def test_steps_that_leave_out_sure_rows_end_where_steps_over_all_rows_do():
    whole, n_whole = explain_rowflips(by_parts=False)
    parts, n_parts = explain_rowflips(by_parts=True)
    n_rows = whole.rows.n_rows
    assert set(n_whole) == {n_rows}
    assert min(n_parts) < n_rows / 2
    assert n_parts[0] == n_parts[-1] == n_rows  # what is said is said of all rows
    assert sum(n_parts) < sum(n_whole)
    few = TUNING.kind_tolerance * n_rows * 20
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, abs=few)
    assert np.abs(parts.good - whole.good).mean() < 0.002
    np.testing.assert_allclose(parts.model.shares, whole.model.shares, rtol=0.02)


def test_steps_that_leave_out_sure_rows_raise_what_they_claim():
    """With most rows divided as they are, a step still raises the log-likelihood of all."""
    found, is_bad = draw_sample("rowflip", network=WIDE, n_rows=30_000)
    codes = found.rows.unpack()
    found = replace(found, codes=codes, load=lambda some: load_rows(WIDE, some))
    start = propose_kind(found, RowModel.of_good_rows(found.prior), found.base, found.base * is_bad)
    whole = _Part.whole(found.rows, found.base, 2)
    divided, before = whole.divide(start)
    part = whole.take_unsure(start, divided, found.take, TUNING.kind_certain)
    assert part.rows.n_rows < found.rows.n_rows / 2
    again, lower = part.divide(start)
    np.testing.assert_allclose(again.counts, divided.counts, atol=0.05)
    model = start
    for _ in range(5):
        divided, bound = part.divide(model)
        assert bound >= lower
        lower = bound
        model = refit(
            WIDE.layout, divided.counts, divided.masses, TUNING.kind_prior * found.prior, model
        )
    assert whole.divide(model)[1] > before


def test_odds_that_are_right_need_no_calibration_and_wrong_ones_get_it():
    found, is_bad = draw_sample("shift", eps=0.2, n_rows=40_000)
    marked = found.base * is_bad
    start = propose_kind(found, RowModel.of_good_rows(found.prior), found.base, marked)
    model = found.explain(start).model
    drawn = found.draw([(model.good, 100_000)])
    histogram = OddsHistogram.of_drawn(model.log_odds(drawn), TUNING.settle_bins)
    observed = histogram.count(model.log_odds(found.rows), found.base)
    right = calibrate(model, histogram, observed, found.total, TUNING)
    assert abs(right.intercept) < 0.3
    assert right.slope == pytest.approx(1, abs=0.15)
    wrong = replace(model, shares=model.shares * 4)
    histogram = OddsHistogram.of_drawn(wrong.log_odds(drawn), TUNING.settle_bins)
    observed = histogram.count(wrong.log_odds(found.rows), found.base)
    mended = calibrate(wrong, histogram, observed, found.total, TUNING)
    assert mended.intercept < -0.5


def test_settling_leaves_a_clear_verdict_as_it_is():
    found, is_bad = draw_sample("repeated")
    start = propose_kind(found, RowModel.of_good_rows(found.prior), found.base, found.base * is_bad)
    model = found.explain(start).model
    both = (found.rows, found.base)
    settled, counts = settle(model, both, both, both, found.draw, TUNING)
    assert settled is model
    assert counts.sum() == pytest.approx(found.total * NETWORK.n_nodes, rel=1e-5)


# --- rounds ---------------------------------------------------------------------------------------


def test_clean_rows_end_after_one_look():
    found, _ = draw_sample()
    state = begin(found)
    assert not is_suspicious(state, found.tuning)
    after = filter_the_rest(found, explain_bad_rows(found, state))
    assert after is state
    assert [r.action for r in after.rounds] == ["looked at the rows"]


def test_a_spectrum_that_is_known_is_not_looked_for_again():
    found, _ = draw_sample()
    state = begin(found)
    again = begin(found, spectrum=state.spectrum)
    assert again.spectrum is state.spectrum
    assert (again.threshold, again.log_likelihood) == (state.threshold, state.log_likelihood)


def test_a_round_leaves_the_state_before_as_it_was():
    found, _ = draw_sample("product")
    state = begin(found)
    weights, rounds = state.weights.copy(), state.rounds
    after = explain_bad_rows(found, state)
    assert after is not state
    assert after.model.n_kinds == 1
    assert state.rounds == rounds
    assert not state.model.n_kinds
    np.testing.assert_array_equal(state.weights, weights)
    with pytest.raises(FrozenInstanceError):
        after.threshold = 1.0


def test_a_round_that_makes_things_worse_is_undone_and_stays_in_the_history():
    network = random_network("tree", 10, random_state=0)
    found, _ = draw_sample("subtract", 0.3, network=network, n_rows=20_000)
    state = begin(found)
    after = explain_bad_rows(found, state)
    assert [r.is_accepted for r in after.rounds] == [True, False]
    assert after.model is state.model
    np.testing.assert_array_equal(after.weights, state.weights)
    assert after.rounds[1].eigenvalues[0] - after.rounds[1].threshold > state.excess


def test_a_kind_must_gain_and_be_clear():
    for numbers in ({"kind_gain": 1e6}, {"kind_clarity": 1.1}, {"kind_least_rows": 1e9}):
        found, _ = draw_sample("product", **numbers)
        state = begin(found)
        assert explain_bad_rows(found, state) is state


@pytest.mark.parametrize("most", [0, 1])
def test_as_many_rounds_explain_rows_as_tuning_allows(most):
    found, _ = draw_sample("product", kind_rounds=most)
    after = explain_bad_rows(found, begin(found))
    assert after.n_explained == after.model.n_kinds == most
    assert [r.action for r in after.rounds[1:]] == ["explained bad rows"] * most


def test_rounds_go_on_from_a_model_that_was_learned_before():
    found, _ = draw_sample("product")
    first = explain_bad_rows(found, begin(found))
    again = begin_from(found, first.model, first.rounds)
    assert again.rounds[-1].action == "looked again"
    assert again.rounds[:-1] == first.rounds
    np.testing.assert_allclose(again.weights, first.weights, atol=0.03)


@pytest.mark.parametrize(("evidence", "is_split"), [(1e3, False), (None, True)])
def test_rounds_that_stopped_for_lack_of_evidence_go_on_as_if_they_had_not(evidence, is_split):
    found, _ = draw_sample("product")
    through = explain_bad_rows(found, begin(found))
    if evidence is None:  # more than the kind brings, less than twice that
        evidence = 1.1 * through.least_evidence
    found, _ = draw_sample("product")  # which draws the same rows again
    stopped = explain_bad_rows(found, begin(found), evidence)
    assert stopped.least_evidence < evidence
    assert stopped.pending is not None
    assert stopped.pending[1] is is_split
    assert not stopped.model.n_kinds
    after = explain_bad_rows(found, stopped)
    assert after.pending is None
    np.testing.assert_array_equal(after.model.good, through.model.good)
    assert [r.action for r in after.rounds] == [r.action for r in through.rounds]


def test_filters_stop_at_the_ceiling_and_say_so():
    found, _ = draw_sample("network", eps=0.3, ceiling=0.05)
    state = filter_the_rest(found, begin(found))
    assert state.excess > 0
    assert state.stopped == "because more than 5% would go, repeated rows apart"
    assert 1 - state.weights.sum() / found.total <= 0.05


def test_filters_alone_bring_the_spectrum_down():
    found, is_bad = draw_sample("network")
    state = filter_the_rest(found, begin(found))
    assert state.excess <= 0
    assert state.model.filters
    trust = state.model.weigh(found.rows)
    np.testing.assert_allclose(state.weights, trust, rtol=1e-5)
    assert trust[is_bad].mean() < 0.5 < 0.9 < trust[~is_bad].mean()


# --- what is told ---------------------------------------------------------------------------------


def test_the_last_round_removes_what_is_removed_repeats_included():
    network = random_network("tree", 12, random_state=0)
    dirty, _ = corrupt(sample(network, 20_000, 1), network, "clones", 0.3, 2)
    fit = RobustEstimator(network, random_state=0, misfit="none").fit(dirty)
    assert fit.repeats_
    assert fit.contamination_ > 0.1
    assert fit.history_[-1].removed == pytest.approx(fit.contamination_, abs=0.01)


@pytest.mark.parametrize(
    ("contamination", "can_raise"), [("auto", False), (0.4, False), (0.1, True)]
)
def test_nobody_is_told_to_raise_what_cannot_be_raised(contamination, can_raise):
    config = RobustConfig(contamination=contamination)
    for top, removed in ((1.5, 0.2), (1.0, 0.67)):
        converged, status = describe_status(removed, config, top, 1.1, "after 20 filters")
        assert not converged
        assert ("raise" in status.lower()) == can_raise
        assert f"{removed:.2%} of the rows' weight is distrusted" in status


def test_uniform_tables_know_nothing():
    tables = uniform_tables(NETWORK.layout)
    np.testing.assert_allclose(normalise_counts(NETWORK.layout, tables), tables)
