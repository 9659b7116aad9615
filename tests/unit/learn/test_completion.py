"""Expectation-maximisation over missing cells: where it ends, when, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn import random_network, sample, total_variation
from robustbn._core.expansion import bdeu_pseudo_counts, normalise_counts, standard_errors
from robustbn._learn import completion
from robustbn._learn.completion import complete
from robustbn._rows.memory import gather


def count_complete_families(layout, codes):
    counts, cards = np.zeros(layout.n_cells), np.array(layout.cards)
    for i, family in enumerate(layout.families):
        shown = codes[(codes[:, family] != cards[list(family)]).all(axis=1)].astype(np.int64)
        cells = layout.cell_start[i] + shown[:, family] @ np.array(layout.strides[i])
        counts += np.bincount(cells, minlength=layout.n_cells)
    return counts


def punch(codes, layout, share, seed=0):
    is_hole = np.random.default_rng(seed).random(codes.shape) < share
    return np.where(is_hole, np.array(layout.cards), codes).astype(np.uint8)


def fit(layout, codes, pseudo_counts=0.0, **settings):
    observed = count_complete_families(layout, codes)
    return complete(layout, pseudo_counts, observed, gather(layout, codes), **settings)


def network_of(network, tables):
    starts = network.layout.cell_start
    return network.with_cpts(
        {
            node: tables[starts[i] : starts[i + 1]].reshape(network.cpts[node].shape)
            for i, node in enumerate(network.nodes)
        }
    )


def fit_strictly(monkeypatch, *arguments, most_steps=5000, **settings):
    """Fit until next to nothing is left to go."""
    with monkeypatch.context() as patched:
        patched.setattr(completion, "SETTLED", 1e-3)
        patched.setattr(completion, "MOST_STEPS", most_steps)
        return fit(*arguments, **settings)


def sample_questions(monkeypatch, n_sweeps):
    """Let all but the smallest questions be sampled."""
    monkeypatch.setattr("robustbn._rows.kernels.native.LARGEST_TABLE", 8)
    monkeypatch.setattr("robustbn._rows.kernels.native.SWEEPS", n_sweeps)


@pytest.fixture(scope="module")
def holed(alarm):
    return punch(sample(alarm, 2000, 0), alarm.layout, 0.15)


def test_rows_without_holes_give_their_counts_in_two_steps(alarm):
    codes = sample(alarm, 1000, 0)
    found = fit(alarm.layout, codes)
    np.testing.assert_array_equal(found.counts, count_complete_families(alarm.layout, codes))
    assert found.inferred.is_converged
    assert found.inferred.n_steps == 2
    assert not found.inferred.missing.any()


def test_the_end_is_a_fixed_point_of_the_plain_step(alarm, holed, monkeypatch):
    layout = alarm.layout
    found = fit_strictly(monkeypatch, layout, holed)
    assert found.inferred.is_converged
    counts = count_complete_families(layout, holed)
    counts += gather(layout, holed).expect(found.tables).counts
    np.testing.assert_allclose(normalise_counts(layout, counts), found.tables, atol=1e-4)


def test_plain_and_stretched_steps_end_at_the_same_tables_and_stretched_ones_sooner(
    alarm, holed, monkeypatch
):
    plain = fit_strictly(monkeypatch, alarm.layout, holed, accelerate=False)
    fast = fit_strictly(monkeypatch, alarm.layout, holed)
    errors = standard_errors(alarm.layout, fast.counts, fast.tables)
    assert np.abs((plain.tables - fast.tables) / errors).max() < 0.02
    assert fast.inferred.n_steps < plain.inferred.n_steps / 2


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("accelerate", [False, True])
def test_it_stops_when_a_small_fraction_of_a_nat_is_left_to_gain(
    alarm, share, accelerate, monkeypatch
):
    codes = punch(sample(alarm, 1000, 1), alarm.layout, share)
    found = fit(alarm.layout, codes, accelerate=accelerate)
    end = fit_strictly(monkeypatch, alarm.layout, codes)
    assert found.inferred.is_converged
    assert found.inferred.n_steps < end.inferred.n_steps
    assert end.log_likelihood - found.log_likelihood < 0.05


@pytest.mark.parametrize("accelerate", [False, True])
def test_the_likelihood_never_falls(alarm, holed, accelerate, monkeypatch):
    found = [
        fit_strictly(monkeypatch, alarm.layout, holed, accelerate=accelerate, most_steps=n)
        for n in range(2, 40, 3)
    ]
    assert (np.diff([f.log_likelihood for f in found]) > -1e-6).all()
    assert not found[0].inferred.is_converged


def test_missing_cells_cost_less_than_leaving_their_families_out(alarm):
    layout = alarm.layout
    codes = sample(alarm, 20_000, 0)
    holed = punch(codes, layout, 0.2)
    observed, all_seen = (count_complete_families(layout, c) for c in (holed, codes))
    error_of = [
        float(total_variation(alarm, network_of(alarm, tables)))
        for tables in (
            normalise_counts(layout, all_seen),
            fit(layout, holed).tables,
            normalise_counts(layout, observed),
        )
    ]
    assert error_of[0] < error_of[1] < 0.9 * error_of[2]


def test_a_parent_missing_because_of_its_child_biases_counts_but_not_the_completion(sprinkler):
    """Rain goes unrecorded mostly when it is wet: complete families say that rain is rare."""
    layout, truth = sprinkler.layout, sprinkler.probabilities
    codes = sample(sprinkler, 50_000, 0)
    wet, rain = (sprinkler.nodes.index(n) for n in ("wet", "rain"))
    is_lost = np.random.default_rng(1).random(len(codes)) < 0.7 * (codes[:, wet] == 2)
    codes[is_lost, rain] = layout.cards[rain]
    observed = normalise_counts(layout, count_complete_families(layout, codes))
    found = fit(layout, codes).tables
    assert np.abs(observed - truth).max() > 0.08
    assert np.abs(found - truth).max() < 0.03


def test_a_prior_is_climbed_too(alarm, holed, monkeypatch):
    layout = alarm.layout
    pseudo = bdeu_pseudo_counts(layout, 50.0)
    ends = [
        fit_strictly(
            monkeypatch,
            layout,
            holed,
            pseudo,
            accelerate=accelerate,
        )
        for accelerate in (False, True)
    ]
    np.testing.assert_allclose(ends[0].tables, ends[1].tables, atol=1e-3)
    assert all(end.inferred.is_converged for end in ends)


def test_what_was_inferred_is_told_node_by_node(alarm, holed):
    layout = alarm.layout
    found = fit(layout, holed)
    is_hole = holed == np.array(layout.cards)
    expected = [is_hole[:, family].any(axis=1).mean() for family in layout.families]
    np.testing.assert_allclose(found.inferred.missing, expected)


def test_states_never_seen_whole_can_still_be_learned(sprinkler):
    """No row shows rain and sprinkler together, so no complete family knows the sprinkler."""
    layout = sprinkler.layout
    codes = sample(sprinkler, 3000, 0)
    rain, sprinkles = (sprinkler.nodes.index(n) for n in ("rain", "sprinkler"))
    codes[::2, rain] = layout.cards[rain]
    codes[1::2, sprinkles] = layout.cards[sprinkles]
    found = fit(layout, codes)
    assert found.inferred.n_impossible == 0
    assert np.isfinite(found.log_likelihood)


def test_sampled_components_are_told_and_end_near_the_exact_ones(monkeypatch):
    network = random_network("graph", 20, 100, random_state=0)
    layout = network.layout
    codes = punch(sample(network, 1000, 0), layout, 0.4)
    exact = fit(layout, codes)
    observed = count_complete_families(layout, codes)
    with monkeypatch.context() as patched:
        sample_questions(patched, n_sweeps=128)
        holes = gather(layout, codes)
    assert holes.n_sampled > 100
    found = complete(layout, 0.0, observed, holes)
    assert found.inferred.is_converged
    assert found.inferred.n_sampled == holes.n_sampled
    assert found.sampling_errors is not None

    def log_likelihood(tables):
        is_seen = observed > 0
        of_holes = gather(layout, codes).expect(tables).log_likelihood
        return observed[is_seen] @ np.log(tables[is_seen]) + of_holes

    start = normalise_counts(layout, observed)
    lost = [exact.log_likelihood - log_likelihood(q) for q in (found.tables, start)]
    assert lost[0] < 1.0
    assert lost[0] < 0.05 * lost[1]


@pytest.mark.parametrize("unit", [0.001, 7.0])
def test_the_unit_of_weights_does_not_matter_where_components_are_sampled(unit, monkeypatch):
    network = random_network("graph", 20, 100, random_state=0)
    layout = network.layout
    codes = punch(sample(network, 300, 0), layout, 0.4)
    sample_questions(monkeypatch, n_sweeps=64)

    def learn(weight):
        observed = weight * count_complete_families(layout, codes)
        holes = gather(layout, codes, np.full(len(codes), weight))
        return complete(layout, 0.5 * weight, observed, holes, weight)

    one, other = learn(1.0), learn(unit)
    assert one.inferred.n_sampled > 10
    assert other.inferred.n_steps == one.inferred.n_steps
    assert other.inferred.left == pytest.approx(one.inferred.left)
    np.testing.assert_allclose(other.tables, one.tables, atol=1e-9)
    np.testing.assert_allclose(other.sampling_errors, unit * one.sampling_errors)


def test_every_step_is_told(alarm, holed):
    told = []
    found = fit(alarm.layout, holed, tell=lambda step, left: told.append((step, left)))
    assert told[-1] == (found.inferred.n_steps, found.inferred.left)
    assert [step for step, _ in told] == sorted({step for step, _ in told})
