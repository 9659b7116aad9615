"""Drafts of structures: what edges are worth, the limits they keep, and rows that are left out."""

from __future__ import annotations

from graphlib import TopologicalSorter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbn import example_network, random_network, sample
from robustbn._core.config import RobustConfig
from robustbn._learn import draft
from robustbn._learn.draft import (
    Climb,
    Limits,
    Worth,
    find_structure,
    find_tree,
    list_edges,
    measure_gains,
    measure_pairs,
)
from robustbn._learn.draft_rounds import draft_rows
from robustbn._rows.families import FamilyCounts
from robustbn.simulate import corrupt


def rows_of(network, n, seed=0):
    return np.asarray(sample(network, n, random_state=seed)), network.layout.cards


def bic(codes, cards, child, parents):
    """Log-likelihood less half a log n a parameter, by a loop."""
    n, total = len(codes), 0.0
    n_configurations = int(np.prod([cards[p] for p in parents], dtype=int))
    for values in {tuple(row) for row in codes[:, parents].tolist()}:
        some = codes[(codes[:, parents] == values).all(axis=1), child]
        counts = np.bincount(some, minlength=cards[child])
        counts = counts[counts > 0]
        total += float((counts * np.log(counts / counts.sum())).sum())
    return total - 0.5 * np.log(n) * n_configurations * (cards[child] - 1)


def pairs_of(structure):
    return {frozenset(edge) for edge in list_edges(structure)}


def find(codes, cards, limits=None, seed=0):
    return find_structure(codes, cards, limits or Limits(), np.random.default_rng(seed))


def test_parents_are_worth_the_difference_of_the_bic():
    codes, cards = rows_of(random_network("graph", 6, cards=(2, 4), random_state=0), 500)
    worth = Worth(FamilyCounts(codes, cards), len(codes))
    for child, parents in ((0, [1]), (2, [3, 5]), (4, [0, 1, 2])):
        wanted = bic(codes, cards, child, parents) - bic(codes, cards, child, [])
        assert worth.of(child, parents) == pytest.approx(wanted)
    assert worth.of(3, []) == 0.0


def test_a_sample_is_worth_about_what_all_rows_are():
    codes, cards = rows_of(example_network("alarm"), 40_000)
    whole = Worth(FamilyCounts(codes, cards), len(codes))
    part = Worth(FamilyCounts(codes[:10_000], cards), len(codes))
    gains = np.array([[w.of(k, [k - 1]) for k in range(1, 37)] for w in (whole, part)])
    strong = gains[0] > 2_000  # nats; one in four rows tells them within about 6 %
    assert strong.sum() > 5
    np.testing.assert_allclose(gains[1][strong], gains[0][strong], rtol=0.2)
    assert abs(np.median((gains[1] - gains[0])[~strong])) < 20  # chance adds nothing to a sample


def test_missing_values_leave_the_draft_as_it_is():
    codes, cards = rows_of(random_network("tree", 12, cards=3, random_state=3), 8_000)
    holed = codes.copy()
    holed[np.random.default_rng(0).random(codes.shape) < 0.15] = 3
    assert pairs_of(find(holed, cards)[0]) == pairs_of(find(codes, cards)[0])


def test_a_column_that_is_never_shown_beside_another_has_no_edge_to_it():
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(0, 2, (400, 1)), 3, axis=1).astype(np.uint8)
    codes[:200, 1], codes[200:, 2] = 2, 2
    structure = find(codes, (2, 2, 2))[0]
    assert frozenset((1, 2)) not in pairs_of(structure)
    assert len(pairs_of(structure)) == 2


def test_the_tree_of_rows_of_a_tree_is_that_tree():
    network = random_network("tree", 15, cards=3, random_state=2)
    codes, cards = rows_of(network, 20_000)
    worth = Worth(FamilyCounts(codes, cards), len(codes))
    place = {node: k for k, node in enumerate(network.nodes)}
    wanted = {frozenset((place[a], place[b])) for a, b in network.edges}
    assert {frozenset(edge) for edge in find_tree(measure_pairs(worth))} == wanted


def test_rows_of_nothing_have_no_edge():
    codes = np.random.default_rng(0).integers(0, 3, (3_000, 8)).astype(np.uint8)
    assert list_edges(find(codes, [3] * 8)[0]) == []


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), most=st.integers(1, 3))
def test_a_draft_keeps_its_limits_and_no_single_change_improves_it(seed, most):
    rng = np.random.default_rng(seed)
    network = random_network("graph", 7, cards=(2, 3), random_state=seed)
    codes, cards = rows_of(network, 300, seed)
    order = rng.permutation(7).tolist()
    pairs = list(permutations(range(7), 2))
    forbidden = {pairs[k] for k in rng.choice(len(pairs), 12, replace=False)}
    required = {(order[0], order[3])} - forbidden
    limits = Limits(most, frozenset(forbidden), frozenset(required))
    structure, worth = find(codes, cards, limits)
    edges = set(list_edges(structure))
    assert required <= edges
    assert not edges & forbidden
    assert max(map(len, structure)) <= most
    list(TopologicalSorter(dict(enumerate(structure))).static_order())  # no cycle
    best = Climb(worth, limits, list_edges(structure)).best(())
    assert best is None or best[0] <= draft.EXACT


def test_all_rows_decide_where_a_sample_was_searched(monkeypatch):
    codes, cards = rows_of(random_network("graph", 10, cards=3, random_state=1), 30_000)
    structure, worth = find(codes, cards)
    monkeypatch.setattr(draft, "SCREENED", 10**6)
    searched, whole = find(codes, cards)
    assert worth.share == whole.share == 1.0
    assert worth.of_all(structure) == pytest.approx(whole.of_all(structure))
    assert whole.of_all(structure) > 0.99 * whole.of_all(searched)


def test_drafts_do_not_hang_on_the_order_of_the_rows():
    codes, cards = rows_of(random_network("graph", 10, cards=3, random_state=1), 5_000)
    order = np.random.default_rng(0).permutation(len(codes))
    assert find(codes, cards)[0] == find(codes[order], cards)[0]


def test_gains_of_equivalent_edges_are_the_same():
    codes, cards = rows_of(random_network("graph", 5, cards=(2, 4), random_state=0), 500)
    counts = FamilyCounts(codes, cards)
    one = measure_gains(counts.count_beside([1], [0]), cards[1], [cards[0]], 500, 1.0)
    other = measure_gains(counts.count_beside([0], [1]), cards[0], [cards[1]], 500, 1.0)
    np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("kind", ["mixture", "product"])
def test_bad_rows_do_not_draw_edges(kind):
    network = random_network("graph", 20, cards=3, random_state=1)
    good = sample(network, 10_000, random_state=0)
    dirty, is_bad = corrupt(good, network, kind, eps=0.1, random_state=0)
    dirty, cards = np.asarray(dirty), network.layout.cards
    wanted = pairs_of(find(dirty[~is_bad], cards)[0])
    plain = draft_rows(dirty, cards, Limits(), RobustConfig(), robust=False)
    robust = draft_rows(dirty, cards, Limits(), RobustConfig())
    assert not plain.is_left_out.any()
    assert robust.is_left_out[is_bad].mean() > 0.8
    assert robust.is_left_out[~is_bad].mean() < 0.02
    far, near = (len(pairs_of(each.structure) ^ wanted) for each in (plain, robust))
    assert far >= 4
    assert near <= far / 2


def test_good_rows_are_not_left_out_and_strong_edges_return():
    network = random_network("tree", 12, cards=3, random_state=3)
    codes, cards = rows_of(network, 5_000)
    drafted = draft_rows(codes, cards, Limits(), RobustConfig())
    assert not drafted.is_left_out.any()
    strong = [edge for edge, gain in drafted.gains.items() if gain > 100]
    assert len(strong) > 5
    assert all(drafted.returns[edge] > 0.95 for edge in strong)
    assert all(drafted.same_way[edge] <= drafted.returns[edge] for edge in drafted.returns)
    assert all(gain > 0 for gain in drafted.gains.values())
