"""Expected counts of rows with holes: both engines against the sum over all completions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbn import random_network, sample
from robustbn._core.layout import Layout
from robustbn._rows.memory import gather
from robustbn.exceptions import CodeRangeError, InsufficientMemoryError

ENGINES = ("native", "numpy")
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@st.composite
def layouts(draw, max_nodes=7):
    """A network of nodes with 1 to 5 states and 0 to 3 parents, columns in any order."""
    d = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order = rng.permutation(d)
    families = [()] * d
    for position, node in enumerate(order):
        n = min(position, draw(st.integers(0, 3)))
        parents = rng.choice(order[:position], n, replace=False) if n else []
        families[node] = (*(int(p) for p in parents), int(node))
    cards = tuple(draw(st.integers(1, 5)) for _ in range(d))
    return Layout(cards, tuple(families))


def draw_tables(layout, rng, zeros):
    q = rng.gamma(1.0, size=layout.n_cells) + 1e-6
    q[rng.random(layout.n_cells) < zeros] = 0.0
    total = layout.sum_configurations(q)[layout.config_of_cell]
    return np.divide(q, total, out=np.zeros_like(q), where=total > 0)


def make_holes(codes, layout, share, rng):
    is_hole = rng.random(codes.shape) < share
    return np.where(is_hole, np.array(layout.cards), codes).astype(codes.dtype)


@st.composite
def cases(draw, max_nodes=7, max_rows=12):
    layout = draw(layouts(max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, max_rows))
    codes = np.stack([rng.integers(0, c, size=n) for c in layout.cards], axis=1)
    codes = codes.astype(draw(st.sampled_from([np.uint8, np.uint16])))
    holed = make_holes(codes, layout, draw(st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0])), rng)
    weights = rng.random(n) * (rng.random(n) < 0.8)
    q = draw_tables(layout, rng, draw(st.sampled_from([0.0, 0.0, 0.3])))
    return layout, holed, weights, q


def touched_cells(layout, row, which):
    return [
        layout.cell_start[i] + sum(s * row[c] for c, s in zip(f, layout.strides[i], strict=True))
        for i, f in enumerate(layout.families)
        if i in which
    ]


def by_hand(layout, codes, weights, q):
    """Sum over every completion of every row. Nothing is said about impossible rows."""
    counts, log_likelihood = np.zeros(layout.n_cells), 0.0
    posteriors = []
    for row, w in zip(codes.astype(int), weights, strict=True):
        holes = [c for c, code in enumerate(row) if code == layout.cards[c]]
        which = [i for i, f in enumerate(layout.families) if set(f) & set(holes)]
        total, expected = 0.0, np.zeros(layout.n_cells)
        states = [np.zeros(layout.cards[h]) for h in holes]
        for values in product(*(range(layout.cards[h]) for h in holes)):
            row[holes] = values
            cells = touched_cells(layout, row, which)
            p = np.prod(q[cells])
            total += p
            np.add.at(expected, cells, p)
            for state, value in zip(states, values, strict=True):
                state[value] += p
        if total == 0:
            return None
        counts += w * expected / total
        log_likelihood += w * np.log(total)
        posteriors += [s / total for s in states]
    return counts, log_likelihood, posteriors


@pytest.mark.parametrize("engine", ENGINES)
@given(case=cases(max_nodes=5, max_rows=4))
def test_expected_counts_are_sums_over_all_completions(engine, case):
    layout, codes, weights, q = case
    truth = by_hand(layout, codes, weights, q)
    if truth is None:
        return
    holes = gather(layout, codes, weights, engine=engine)
    found = holes.expect(q)
    np.testing.assert_allclose(found.counts, truth[0], **CLOSE)
    np.testing.assert_allclose(found.log_likelihood, truth[1], **CLOSE)
    assert found.n_impossible == 0
    posterior = holes.posterior(codes, q)
    np.testing.assert_array_equal(
        np.stack([posterior.rows, posterior.columns], axis=1),
        np.argwhere(codes == np.array(layout.cards)),
    )
    for p, expected in zip(posterior.probabilities, truth[2], strict=True):
        np.testing.assert_allclose(p[: len(expected)], expected, **CLOSE)
        assert not p[len(expected) :].any()


def n_questions(holes):
    if hasattr(holes, "questions"):
        return holes.questions.n_questions
    return sum(len(questions) for questions in holes.weights.values())


@given(case=cases(max_nodes=14, max_rows=40))
def test_native_answers_are_the_specified_answers(case):
    layout, codes, weights, q = case
    fast, slow = (gather(layout, codes, weights, 2, engine=e) for e in ENGINES)
    assert (n_questions(fast), fast.questions.n_patterns) == (n_questions(slow), len(slow.weights))
    found, expected = fast.expect(q), slow.expect(q)
    np.testing.assert_allclose(found.counts, expected.counts, **CLOSE)
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, **CLOSE)
    np.testing.assert_allclose(found.n_impossible, expected.n_impossible, **CLOSE)
    np.testing.assert_allclose(
        fast.posterior(codes, q).probabilities, slow.posterior(codes, q).probabilities, **CLOSE
    )


@pytest.mark.parametrize("engine", ENGINES)
@given(case=cases(), cut=st.floats(0, 1))
def test_rows_may_come_in_parts(engine, case, cut):
    layout, codes, weights, q = case
    whole = gather(layout, codes, weights, engine=engine)
    n = int(cut * len(codes))
    parts = gather(layout, codes[:n], weights[:n], engine=engine)
    parts.expect(q)  # questions may be answered in between
    parts.add(codes[n:], weights[n:])
    assert n_questions(parts) == n_questions(whole)
    np.testing.assert_allclose(parts.expect(q).counts, whole.expect(q).counts, **CLOSE)


@pytest.mark.parametrize("engine", ENGINES)
@given(case=cases())
def test_a_node_counts_the_weight_of_the_rows_in_which_its_family_has_a_hole(engine, case):
    layout, codes, weights, q = case
    q = draw_tables(layout, np.random.default_rng(0), zeros=0.0)
    counts = gather(layout, codes, weights, engine=engine).expect(q).counts
    is_hole = codes == np.array(layout.cards)
    for i, family in enumerate(layout.families):
        own = counts[layout.cell_start[i] : layout.cell_start[i + 1]]
        np.testing.assert_allclose(
            own.sum(), weights[is_hole[:, list(family)].any(axis=1)].sum(), **CLOSE
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_show_nothing_count_what_the_tables_expect(engine, sprinkler):
    layout, q = sprinkler.layout, sprinkler.probabilities
    codes = np.tile(np.array(layout.cards, np.uint8), (10, 1))
    found = gather(layout, codes, engine=engine).expect(q)
    drawn = np.zeros(layout.n_cells)
    for row in product(*(range(c) for c in layout.cards)):
        cells = touched_cells(layout, row, range(layout.n_nodes))
        np.add.at(drawn, cells, np.prod(q[cells]))
    np.testing.assert_allclose(found.counts, 10 * drawn, **CLOSE)
    np.testing.assert_allclose(found.log_likelihood, 0.0, atol=1e-12)


def holed_alarm(alarm, n, share, seed=0):
    rng = np.random.default_rng(seed)
    return make_holes(sample(alarm, n, seed), alarm.layout, share, rng)


def test_results_are_the_same_bits_for_every_number_of_threads(alarm):
    codes = holed_alarm(alarm, 70_000, 0.1)
    weights = np.random.default_rng(1).random(len(codes))
    one, two = (gather(alarm.layout, codes, weights, n) for n in (1, 2))
    a, b = one.expect(alarm.probabilities), two.expect(alarm.probabilities)
    np.testing.assert_array_equal(a.counts, b.counts)
    assert a.log_likelihood == b.log_likelihood
    assert n_questions(one) == n_questions(two)


def test_any_strides_and_either_width_give_the_same(alarm):
    codes = holed_alarm(alarm, 500, 0.2)
    expected = gather(alarm.layout, codes).expect(alarm.probabilities).counts
    wide = np.zeros((500, 2 * codes.shape[1]), np.uint16)
    wide[:, ::2] = codes
    for other in (np.asfortranarray(codes), codes.astype(np.uint16), wide[:, ::2]):
        found = gather(alarm.layout, other)
        np.testing.assert_array_equal(found.expect(alarm.probabilities).counts, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_questions_are_asked_once(engine, alarm):
    codes = np.tile(holed_alarm(alarm, 20, 0.1), (50, 1))
    few, many = (gather(alarm.layout, c, engine=engine) for c in (codes[:20], codes))
    assert n_questions(many) == n_questions(few)
    np.testing.assert_allclose(
        many.expect(alarm.probabilities).counts, 50 * few.expect(alarm.probabilities).counts
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_impossible_questions_count_nothing_and_are_told(engine):
    layout = Layout((2, 2, 2), ((0,), (0, 1), (1, 2)))
    q = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.5])  # 0 means 0 means 0
    codes = np.array([[2, 2, 1], [2, 2, 0], [0, 2, 1]], np.uint8)
    holes = gather(layout, codes, np.array([1.0, 2.0, 4.0]), engine=engine)
    found = holes.expect(q)
    assert found.n_impossible == 5.0
    assert found.counts.sum() == 3 * 2.0
    assert found.log_likelihood == 0.0
    np.testing.assert_array_equal(
        holes.posterior(codes, q).probabilities.sum(axis=1), [0, 0, 1, 1, 0]
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_holes", [1, 2, 8])
def test_products_too_small_for_a_double_are_no_zeros(engine, n_holes):
    """A chain of eight whose last has 600 observed children: 0.01 ** 600 is below 1e-308."""
    n = 600
    chain = ((0,), *((i - 1, i) for i in range(1, 8)))
    layout = Layout((2,) * (8 + n), (*chain, *((7, i) for i in range(8, 8 + n))))
    q = np.array([0.5, 0.5, *[0.9, 0.1, 0.1, 0.9] * 7, *[0.01, 0.99, 0.01, 0.99] * n])
    row = np.zeros((1, 8 + n), np.uint8)
    row[0, 8 - n_holes : 8] = 2
    holes = gather(layout, row, engine=engine)
    expected = {1: [0.9, 0.1], 2: [0.82, 0.18], 8: [0.5, 0.5]}[n_holes]
    np.testing.assert_allclose(holes.posterior(row, q).probabilities[-1], expected)
    np.testing.assert_allclose(holes.expect(q).log_likelihood, n * np.log(0.01))


@pytest.mark.parametrize("engine", ENGINES)
def test_codes_beyond_a_hole_are_refused(engine, alarm):
    codes = holed_alarm(alarm, 5, 0.1)
    codes[3, 2] = alarm.layout.cards[2] + 1
    with pytest.raises(CodeRangeError, match="row 3, column 2"):
        gather(alarm.layout, codes, engine=engine)
    with pytest.raises(CodeRangeError, match="row 3, column 2"):
        gather(alarm.layout, codes[:0], engine=engine).posterior(codes, alarm.probabilities)


def test_components_too_large_are_sampled_and_told(alarm, monkeypatch):
    codes = holed_alarm(alarm, 300, 0.5)
    exact = gather(alarm.layout, codes)
    assert exact.n_sampled == 0
    assert exact.expect(alarm.probabilities).standard_errors is None
    monkeypatch.setattr("robustbn._rows.kernels.native.LARGEST_TABLE", 8)
    monkeypatch.setattr("robustbn._rows.kernels.native.SWEEPS", 2048)
    rough = gather(alarm.layout, codes)
    assert rough.n_sampled > 0
    truth, found = exact.expect(alarm.probabilities), rough.expect(alarm.probabilities)
    np.testing.assert_array_equal(found.counts, rough.expect(alarm.probabilities).counts)
    errors = found.standard_errors
    assert errors is not None
    off = (found.counts - truth.counts)[errors > 0.01] / errors[errors > 0.01]
    assert 0.6 < np.sqrt(np.mean(off**2)) < 1.6
    assert np.abs(found.counts - truth.counts).max() < 5
    p, r = (h.posterior(codes, alarm.probabilities).probabilities for h in (exact, rough))
    assert np.abs(p - r).mean() < 0.01


def test_the_numpy_engine_refuses_what_is_too_large(alarm, monkeypatch):
    codes = holed_alarm(alarm, 20, 1.0)
    monkeypatch.setattr("robustbn._rows.kernels.numpy.LARGEST_TABLE", 8)
    holes = gather(alarm.layout, codes, engine="numpy")
    with pytest.raises(InsufficientMemoryError, match="C\\+\\+17 compiler"):
        holes.expect(alarm.probabilities)


def test_memory_that_cannot_be_had_is_refused_with_its_size(alarm):
    class Greedy:
        n_bytes, n_sampled = 2**40, 0.0

        def refuse(self, *arguments):
            raise MemoryError

        add = expect = posterior = refuse

    codes = holed_alarm(alarm, 5, 0.1)
    holes = replace(gather(alarm.layout, codes), questions=Greedy())
    for ask in (
        lambda: holes.add(codes),
        lambda: holes.expect(alarm.probabilities),
        lambda: holes.posterior(codes, alarm.probabilities),
    ):
        with pytest.raises(InsufficientMemoryError, match="bytes"):
            ask()


def test_wide_networks_end_and_stay_exact():
    """A tree of 300 nodes, half of the cells missing: components of dozens of holes."""
    network = random_network("tree", 300, random_state=0)
    rng = np.random.default_rng(0)
    codes = make_holes(sample(network, 50, 1), network.layout, 0.5, rng)
    fast, slow = (gather(network.layout, codes, engine=e) for e in ENGINES)
    assert fast.n_sampled == 0
    found, expected = fast.expect(network.probabilities), slow.expect(network.probabilities)
    np.testing.assert_allclose(found.counts, expected.counts, **CLOSE)
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, **CLOSE)
