"""The parts of the learner, each on rows made for it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from robustbn import BayesianNetwork, RobustEstimator, random_network, sample
from robustbn._core.config import RobustConfig
from robustbn._core.expansion import normalise_counts, uniform_tables
from robustbn._core.result import Verdict
from robustbn._core.row_model import RowModel
from robustbn._learn.conductor import conclude, explain
from robustbn._learn.copies import find_copies, share_patterns
from robustbn._learn.density_filter import build_filter, falling_ratios, filter_rest
from robustbn._learn.edges import find_edges
from robustbn._learn.gain import find_gain
from robustbn._learn.groups import find_missed, fit_population
from robustbn._learn.judge import (
    BESIDE_EXACT,
    BESIDE_OTHERS,
    DISTRUSTED,
    are_copies_bad,
    keep_at,
    probability,
)
from robustbn._learn.look import clean_top, find_spectrum, look_at
from robustbn._learn.multiplicity import heed_design
from robustbn._learn.search import CopiedRows, Groups, begin, drop_unpaid, search
from robustbn._learn.settle import OddsHistogram, calibrate, settle
from robustbn._learn.status import describe_status
from robustbn._learn.study import Study
from robustbn._rows.memory import RowsInMemory, load_rows
from robustbn.adversary import corrupt

NETWORK = random_network("graph", 14, 60, random_state=0)
N_ROWS = 12_000


def study_rows(codes, network=NETWORK, **settings):
    config = RobustConfig(n_threads=1, **settings)
    survey = RowsInMemory(network, codes, None, 1, ()).survey(None, len(codes), 0)
    return heed_design(network, Study.of(network, survey, None, config, lambda _: None))


def draw_rows(adversary=None, eps=0.1, network=NETWORK, n_rows=N_ROWS, **settings):
    """A study of rows, and which of them are bad."""
    codes = sample(network, n_rows, 1)
    is_bad = np.zeros(n_rows, bool)
    if adversary:
        codes, is_bad = corrupt(codes, network, adversary, eps, 2)
    return study_rows(codes, network, **settings), is_bad


# --- the gain -------------------------------------------------------------------------------------


def test_a_gain_is_likelihood_less_the_price_of_numbers_and_of_choices():
    assert find_gain(100.0, 4, np.e**6) == pytest.approx(100 - 4 * 3)
    assert find_gain(100.0, 4, np.e**6, np.e**5) == pytest.approx(100 - 4 * 3 - 5)


def test_a_group_gains_what_its_tables_say_of_its_rows():
    apart = BayesianNetwork({n: [] for n in "abcdefgh"}, {n: [0, 1] for n in "abcdefgh"})
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (10_000, 8)).astype(np.uint8)
    codes[:500] = (rng.random((500, 8)) < 0.95).astype(np.uint8)  # 8 columns at 1, 19 of 20 times
    state = search(begin(study_rows(codes, apart), 10_000))
    assert state.population.model.n_others >= 1
    entry = state.entries[0]
    log_odds = 0.95 * np.log(0.95 / 0.5) + 0.05 * np.log(0.05 / 0.5)  # of a column, a row
    most = 500 * (8 * log_odds + np.log(0.05 / 0.95))
    assert 0.3 * most < entry.gain < 1.2 * most
    assert entry.cost == pytest.approx(8 * 0.5 * np.log(entry.n_rows), rel=0.3)


def test_copies_gain_the_surprise_of_each_row_less_its_price():
    codes = sample(NETWORK, 5000, 1)
    codes[:400] = codes[7]
    study = study_rows(codes, copies="distrust")
    tables = normalise_counts(NETWORK.layout, study.survey.counts, 1.0)
    model = RowModel.of_good_rows(tables)
    repeats = study.copies.hold_to(model, 5000.0)
    gain = study.copies.find_gain(repeats, model, 5000.0)
    worst = repeats.seen.argmax()
    seen, likely = repeats.seen[worst], repeats.expected[worst]
    own = seen * np.log(seen / likely) - 0.5 * np.log(seen) - np.log(5000)
    assert gain >= own * (1 - 1e-9) > 100


def test_an_edge_gains_the_mutual_information_less_its_price():
    apart = BayesianNetwork({"a": [], "b": []}, {"a": [0, 1], "b": [0, 1]})
    x = np.random.default_rng(0).integers(0, 2, 4000)
    codes = np.stack([x, x], 1).astype(np.uint8)
    q = np.full(4, 0.5)
    [gain] = find_edges(apart.layout, q, codes, np.ones(4000), [0, 1])  # once, from whichever end
    assert gain == pytest.approx(4000 * np.log(2) - 0.5 * np.log(4000), rel=0.01)


# --- the search -----------------------------------------------------------------------------------


def test_the_largest_gain_enters_first():
    codes = sample(NETWORK, N_ROWS, 1)
    codes[:900] = codes[np.random.default_rng(0).integers(0, 3, 900)]  # three rows, 300 times each
    state = begin(study_rows(codes, copies="distrust"), N_ROWS)
    groups, copies = (each.propose(state) for each in (Groups(), CopiedRows()))
    assert copies.gain > 0
    after = search(state)
    first = after.rounds[1].action
    wins = groups is not None and groups.gain > copies.gain
    assert first.startswith("described" if wins else "held")


def test_the_search_ends_when_the_rest_looks_like_rows_of_the_network():
    study, is_bad = draw_rows("network")
    state = search(begin(study, N_ROWS))
    assert state.is_exact
    assert state.look.excess <= 0
    shares = state.population.shares
    assert shares[is_bad, 0].mean() < 0.1
    assert shares[~is_bad, 0].mean() > 0.97


def test_clean_rows_end_after_one_look():
    study, _ = draw_rows()
    state = begin(study, N_ROWS)
    assert search(state) is state
    assert [r.action for r in state.rounds] == ["looked at the rows"]


def test_a_group_that_others_make_superfluous_leaves():
    study, _ = draw_rows("network")
    state = search(begin(study, N_ROWS))
    ties, last = state.population.ties.modes, state.population.model.others[:, -1]
    twice = state.population.model.with_component(last, 0.01)
    modes = np.column_stack([ties, ties[:, -1]])
    entries = (*state.entries, state.entries[-1])
    more = replace(
        state,
        population=fit_population(state.sample, state.families, twice, modes, 1),
        entries=entries,
    )
    assert drop_unpaid(more).population.model.n_others == len(state.entries)


def test_every_step_of_expectation_maximisation_gains():
    study, is_bad = draw_rows("network", eps=0.15)
    state = begin(study, N_ROWS)
    marked = state.sample.rows.count(np.where(is_bad, 0.7, 0.05))
    families = state.families
    tied = families.tie(marked[:, None], state.population.model.good)
    model = state.population.model.with_component(tied.tables[:, 0], 0.15)
    modes = np.full((NETWORK.n_nodes, 1), -1)
    likelihoods = [
        fit_population(state.sample, families, model, modes, n).log_likelihood for n in range(6)
    ]
    assert all(b >= a - 1e-6 * abs(a) for a, b in pairwise(likelihoods))
    found = fit_population(state.sample, families, model, modes)
    assert found.shares[is_bad, 1].mean() > 0.9 > 0.05 > found.shares[~is_bad, 1].mean()
    missed = find_missed(state.sample, found, [0])
    assert missed > 1000
    assert 1000 <= find_missed(state.sample, found, [0], 1000) <= missed + 1e-6
    assert find_missed(state.sample, found, [0], 2 * missed) == missed


def test_a_group_whose_rows_another_describes_is_not_enough_missed():
    study, _ = draw_rows("mixture", eps=0.2)
    state = search(begin(study, N_ROWS))
    model = state.population.model
    half = replace(model, shares=np.append(model.shares[:-1], 0.5 * model.shares[-1]))
    twice = half.with_component(half.others[:, -1], float(half.shares[-1]))
    ties = state.population.ties.modes
    both = fit_population(
        state.sample, state.families, twice, np.column_stack([ties, ties[:, -1]]), 0
    )
    last = twice.n_others - 1
    assert find_missed(state.sample, both, [last], 10.0) < 10
    assert find_missed(state.sample, both, [last - 1, last], 10.0) >= 10


# --- the judge ------------------------------------------------------------------------------------


def test_trust_falls_with_the_probability_and_to_zero_only_where_it_is_sure():
    chances = np.linspace(0, 1, 101)
    kept = np.array([keep_at(p) for p in chances])
    assert (np.diff(kept) <= 0).all()
    assert keep_at(DISTRUSTED) == pytest.approx(0.5)
    assert kept[chances <= 0.45].min() == 1
    assert kept[chances < 0.8].min() > 0
    assert keep_at(0.999) == 0


def test_what_a_trait_says_has_the_right_sign():
    natural = {"evidence": -1.0, "breadth": -1.5, "divergence": -0.5, "many": 0.002, "rival": 0.5}
    natural |= {"excess": -1.0, "apart": -1.0, "act": 0.5, "worth": 0.3}
    for name, more, by in (
        ("evidence", 1.0, BESIDE_EXACT),
        ("breadth", -0.2, BESIDE_EXACT),
        ("rival", -0.5, BESIDE_EXACT),
        ("many", 0.0, BESIDE_EXACT),
        ("evidence", 1.0, BESIDE_OTHERS),
        ("breadth", -0.2, BESIDE_OTHERS),
        ("excess", -4.0, BESIDE_OTHERS),
        ("rival", -0.5, BESIDE_OTHERS),
        ("many", 0.0, BESIDE_OTHERS),
        ("act", 0.98, BESIDE_OTHERS),
    ):
        assert probability(natural | {name: more}, by) > probability(natural, by)


def test_copies_that_an_edge_explains_are_no_bad_rows():
    apart = BayesianNetwork({n: [] for n in "abc"}, {n: [0, 1] for n in "abc"})
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 2, (2, 6000))
    codes = np.stack([a, np.where(rng.random(6000) < 0.85, a, 1 - a), c], 1).astype(np.uint8)
    state = begin(study_rows(codes, apart, copies="distrust"), 6000)
    proposed = CopiedRows().propose(state)
    assert proposed is None or not are_copies_bad(proposed.enter())


# --- spectrum -------------------------------------------------------------------------------------


def test_good_rows_have_the_spectrum_of_drawn_rows():
    study, _ = draw_rows()
    found = study.choose(N_ROWS)
    top = find_spectrum(found.rows, found.base).top
    drawn = clean_top(study.draw([(NETWORK.probabilities, N_ROWS)]), N_ROWS)
    assert 1 < top < 1.1
    assert top == pytest.approx(drawn, abs=0.03)


def test_bad_rows_lift_the_top_and_lie_along_it():
    study, is_bad = draw_rows("product")
    found = study.choose(N_ROWS)
    spectrum = find_spectrum(found.rows, found.base)
    assert spectrum.top > 1.5
    scores = found.rows.score(spectrum.table[:, :1])
    assert scores[is_bad].mean() > 3 * scores[~is_bad].mean()


def test_fewer_drawn_rows_are_scaled_to_more_rows():
    study, _ = draw_rows()
    few = study.draw([(NETWORK.probabilities, 3000)])
    many = study.draw([(NETWORK.probabilities, 48_000)])
    from_few, from_many = (clean_top(rows, 48_000) for rows in (few, many))
    assert from_many - 0.01 < from_few < 1.2


def test_what_few_rows_may_vary_hardly_depends_on_the_draw():
    study, _ = draw_rows(n_rows=1500)
    found = study.choose(1500)
    looks = [look_at(found.rows, found.base, study.draw, closely=True) for _ in range(8)]
    assert np.std([look.limit for look in looks]) < 0.01


def test_what_edges_gain_does_not_depend_on_where_columns_stand():
    codes = sample(NETWORK, 3000, 4)
    codes[:, 0], codes[:, 5] = codes[:, 9], codes[:, 9]
    empty = {node: [] for node in NETWORK.nodes}
    found = []
    for order in (np.arange(14), np.random.default_rng(0).permutation(14)):
        nodes = [NETWORK.nodes[i] for i in order]
        network = BayesianNetwork(
            {n: empty[n] for n in nodes}, {n: NETWORK.states[n] for n in nodes}
        )
        rows, layout = np.ascontiguousarray(codes[:, order]), network.layout
        q = normalise_counts(layout, load_rows(network, rows).count(), 0.5)
        found.append(find_edges(layout, q, rows, np.ones(3000), range(14)))
    assert found[0] == pytest.approx(found[1])


# --- filter ---------------------------------------------------------------------------------------


def test_ratios_are_pooled_until_they_fall_and_keep_their_mean():
    above, below = np.array([0.2, 0.3, 0.1, 0.4]), np.array([0.3, 0.2, 0.4, 0.1])
    ratios = falling_ratios(above, below)
    assert (np.diff(ratios) <= 1e-12).all()
    assert ratios @ below == pytest.approx(above.sum())


def test_rows_like_the_drawn_ones_pass_a_filter():
    study, _ = draw_rows()
    found = study.choose(N_ROWS)
    clean = study.draw([(NETWORK.probabilities, 50_000)])
    table = find_spectrum(found.rows, found.base).table[:, :2]
    _, factors = build_filter(table, found.rows, found.base, clean)
    assert factors.mean() > 0.97


def test_a_filter_takes_the_rows_that_stick_out_and_is_a_function_of_the_row():
    study, is_bad = draw_rows("product")
    found = study.choose(N_ROWS)
    clean = study.draw([(NETWORK.probabilities, 50_000)])
    table = find_spectrum(found.rows, found.base).table[:, :2]
    built, factors = build_filter(table, found.rows, found.base, clean)
    assert factors[is_bad].mean() < 0.6 < 0.9 < factors[~is_bad].mean()
    np.testing.assert_array_equal(built.weigh(found.rows), factors)
    assert (np.diff(built.factors) <= 0).all()


# --- copies ---------------------------------------------------------------------------------------


def copies_of(codes, network=NETWORK):
    rows = load_rows(network, codes)
    ones = np.ones(len(codes), np.float32)
    found = find_copies(rows.fingerprints(), ones, codes, lambda some: load_rows(network, some))
    return found, RowModel.of_good_rows(normalise_counts(network.layout, rows.count(), 1.0))


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
    study = study_rows(codes)
    repeats = CopiedRows().propose(begin(study, 5000)).enter().repeats
    worst = repeats.seen.argmax()
    assert repeats.seen[worst] >= 400
    kept = repeats.factors[worst] * repeats.seen[worst]
    assert kept == pytest.approx(repeats.expected[worst], rel=1e-6)
    assert kept < 100
    assert repeats.weigh_prints(load_rows(NETWORK, codes).fingerprints())[:400].max() < 0.25
    assert 0.05 < study.copies.find_surplus(repeats, 5000.0) < 0.09


def test_rows_repeated_by_chance_are_left_alone():
    found, model = copies_of(sample(NETWORK, 20_000, 3))
    assert len(found.seen) > 100
    assert len(found.hold_to(model, 20_000.0).factors) <= 2


def test_common_rows_of_a_network_that_is_not_quite_right_are_no_copies():
    apart = random_network("empty", 2, random_state=0)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 5000)
    y = np.where(rng.random(5000) < 0.3, x, rng.integers(0, 2, 5000))  # x = y 1.3 times as often
    found, model = copies_of(np.stack([x, y], 1).astype(np.uint8), apart)
    assert not len(found.hold_to(model, 5000.0).factors)


# --- the last refit -------------------------------------------------------------------------------


def found_model(study, is_bad):
    state = search(begin(study, study.n_rows))
    return replace(state.population.model, kept=np.zeros(len(state.entries))), state.sample


def test_odds_that_are_right_need_no_calibration_and_wrong_ones_get_it():
    study, is_bad = draw_rows("shift", eps=0.2, n_rows=40_000)
    model, found = found_model(study, is_bad)
    drawn = study.draw([(model.good, 100_000)])
    histogram = OddsHistogram.of_drawn(model.log_odds(drawn))
    observed = histogram.count(model.log_odds(found.rows), found.base)
    right = calibrate(model, histogram, observed, found.total)
    assert abs(right.intercept) < 0.3
    assert right.slope == pytest.approx(1, abs=0.15)
    wrong = replace(model, shares=model.shares * 3)
    histogram = OddsHistogram.of_drawn(wrong.log_odds(drawn))
    observed = histogram.count(wrong.log_odds(found.rows), found.base)
    mended = calibrate(wrong, histogram, observed, found.total)
    assert mended.intercept < -0.5


def test_settling_leaves_a_clear_verdict_as_it_is():
    study, is_bad = draw_rows("repeated")
    counts = study.survey.rows.count(is_bad.astype(np.float32))
    good = study.survey.rows.count((~is_bad).astype(np.float32))
    prior = study.choose(N_ROWS).prior
    tables = [normalise_counts(NETWORK.layout, each, prior) for each in (good, counts)]
    model = RowModel.of_good_rows(tables[0]).with_component(tables[1], 0.1)
    both = (study.survey.rows, study.given)
    settled, by_component = settle(model, both, both, study.draw)
    assert settled is model
    assert by_component.sum() == pytest.approx(N_ROWS * NETWORK.n_nodes, rel=1e-5)


# --- what is left ---------------------------------------------------------------------------------


def test_filters_stop_at_the_ceiling_and_say_so():
    study, _ = draw_rows("network", eps=0.3)
    found = study.choose(N_ROWS)
    model, look, stopped = filter_rest(
        found.rows, found.base, RowModel.of_good_rows(found.prior), study.draw, 0.05
    )
    assert look.excess > 0
    assert stopped == "because more than 5% would be removed"
    assert 1 - model.weigh(found.rows).mean() <= 0.05


def test_filters_alone_bring_the_spectrum_down():
    study, is_bad = draw_rows("network")
    found = study.choose(N_ROWS)
    model, look, _ = filter_rest(
        found.rows, found.base, RowModel.of_good_rows(found.prior), study.draw, 0.45
    )
    assert look.excess <= 0
    assert model.filters
    trust = model.weigh(found.rows)
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
    nothing = RowModel.of_good_rows(NETWORK.probabilities)
    empty = np.empty((NETWORK.n_cells, 0)), np.empty(0), ()
    for top, removed in ((1.5, 0.2), (1.0, 0.67)):
        verdict = Verdict(nothing, *empty, top, 1.1, "after 20 filters")
        converged, status = describe_status(removed, config, verdict)
        assert not converged
        assert ("raise" in status.lower()) == can_raise
        assert f"{removed:.2%} of the rows' weight is distrusted" in status


@pytest.mark.parametrize("eps", [0.02, 0.05])
def test_no_more_goes_than_may(eps):
    study, _ = draw_rows("network", eps=0.3, contamination=eps, misfit="none")
    verdict = conclude(explain(study))
    trust = verdict.model.weigh(study.survey.rows)
    assert 1 - trust.mean() <= 2 * eps + 0.001
    assert verdict.stopped


def test_uniform_tables_know_nothing():
    tables = uniform_tables(NETWORK.layout)
    np.testing.assert_allclose(normalise_counts(NETWORK.layout, tables), tables)
