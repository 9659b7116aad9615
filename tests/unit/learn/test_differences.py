"""Blocks that come again, and tables that are another at one place."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn import BayesianNetwork, random_network, sample
from robustbn._core.clues import NumberRows
from robustbn._core.origins import ContextColumn, Difference, Groups, RowNumbers
from robustbn._learn.blocks import RowPrints, find_blocks
from robustbn._learn.compared_places import MOST_STRETCHES
from robustbn._learn.compared_tables import (
    ComparedFactors,
    ComparedTable,
    make_number_tables,
    make_tables,
)
from robustbn._learn.differences import find_differences
from robustbn._learn.units import (
    find_copied,
    find_one_state,
    find_one_value,
    find_stand_in,
    find_step,
    name_unit,
)


def prints_of(codes, numbers=None, step=1):
    prints = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.uint64)
    rows = np.arange(0, len(codes), step)
    known = NumberRows() if numbers is None else NumberRows(rows, {"a": numbers[rows]})
    return RowPrints.of(prints, known, np.arange(len(codes)))


def test_a_block_that_is_appended_again_is_found_from_its_first_to_its_last_row():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (3000, 8))
    found = find_blocks(prints_of(np.vstack([codes, codes[500:620]])))
    assert [(b.first, b.again, b.n_rows) for b in found] == [(500, 3000, 120)]


@pytest.mark.parametrize("n_states", [2, 4])
def test_rows_that_are_equal_by_chance_make_no_block(n_states):
    codes = np.random.default_rng(1).integers(0, n_states, (5000, 5))
    assert not find_blocks(prints_of(codes))
    assert not find_blocks(prints_of(np.sort(codes, axis=0)))


@pytest.mark.parametrize("step", [1, 4])
def test_rows_in_the_same_intervals_are_no_block_unless_their_numbers_are_the_same(step):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, (3000, 8))
    codes = np.vstack([codes, codes[500:620]])
    numbers = rng.normal(size=len(codes))
    assert not find_blocks(prints_of(codes, numbers, step))
    numbers[3000:] = numbers[500:620]
    assert find_blocks(prints_of(codes, numbers, step))[0].n_rows == 120


NETWORK = random_network("tree", 8, random_state=3)
SITES = Groups("site", ("a", "b", "c", "d", "e"))
N = 6000


def looked_at(codes, rng, n_sites=5):
    numbers = RowNumbers.of(len(codes), MOST_STRETCHES)
    sites = rng.integers(0, n_sites, len(codes)).astype(np.int16)
    columns = [
        ContextColumn(SITES, sites),
        ContextColumn(numbers.groups, numbers.place(0, len(codes))),
    ]
    return sites, columns


def drawn(seed):
    return sample(NETWORK, N, random_state=seed).astype(np.uint8)


@pytest.mark.parametrize("seed", range(4))
def test_tables_that_are_the_same_everywhere_differ_nowhere(seed):
    codes = drawn(seed)
    _, columns = looked_at(codes, np.random.default_rng(seed))
    assert not find_differences(make_tables(NETWORK.layout, codes), columns)


def test_a_column_that_is_turned_round_at_one_site_is_found_with_its_site():
    codes, rng = drawn(0), np.random.default_rng(0)
    sites, columns = looked_at(codes, rng)
    codes[sites == 2, 5] = 1 - codes[sites == 2, 5]
    (found,) = find_differences(make_tables(NETWORK.layout, codes), columns)
    assert found.parts == (("site", "c", "c"),)
    assert 5 in found.nodes
    np.testing.assert_array_equal(found.rows, np.flatnonzero(sites == 2))


def test_a_column_that_differs_at_one_site_for_some_time_is_found_with_both():
    codes, rng = drawn(1), np.random.default_rng(1)
    sites, columns = looked_at(codes, rng)
    is_bad = (sites == 1) & (np.arange(N) >= 2400) & (np.arange(N) < 3600)
    codes[is_bad, 4] = rng.permutation(codes[is_bad, 4]) ^ 1
    (found,) = find_differences(make_tables(NETWORK.layout, codes), columns)
    assert [part[0] for part in found.parts] == ["site", "row number"]
    assert np.isin(np.flatnonzero(is_bad), found.rows).mean() > 0.9
    assert is_bad[found.rows].mean() > 0.9


def test_a_column_that_differs_at_one_site_most_of_the_time_is_found_with_both():
    codes, rng = drawn(6), np.random.default_rng(6)
    sites, columns = looked_at(codes, rng)
    is_bad = (sites == 1) & (np.arange(N) < 4500)
    codes[is_bad, 4] ^= 1
    (found,) = find_differences(make_tables(NETWORK.layout, codes), columns)
    assert [part[0] for part in found.parts] == ["site", "row number"]
    np.testing.assert_allclose(np.flatnonzero(is_bad)[[0, -1]], found.rows[[0, -1]], atol=50)


@pytest.mark.parametrize("first", [1000, 2222, 5900])
def test_a_column_that_is_filled_in_for_a_hundredth_of_the_rows_is_found_with_its_ends(first):
    codes, rng = drawn(4), np.random.default_rng(4)
    _, columns = looked_at(codes, rng)
    codes[first : first + 60] = [0, 1, 0, 1, 0, 1, 0, 1]
    (found,) = find_differences(make_tables(NETWORK.layout, codes), columns)
    assert [part[0] for part in found.parts] == ["row number"]
    ends = [int(part.replace(",", "")) for part in found.parts[0][1:]]
    np.testing.assert_allclose(ends, [first, first + 59], atol=N / MOST_STRETCHES)


def test_numbers_that_drift_a_little_are_found_given_the_parents_if_not_by_themselves():
    rng, n_rows = np.random.default_rng(5), N // 50
    layout = BayesianNetwork({"a": [], "b": ["a"]}, {"a": range(8), "b": range(4)}).layout
    codes = np.stack([rng.integers(0, 8, N), rng.integers(0, 4, N)], axis=1).astype(np.uint8)
    numbers = rng.normal(size=N) + 5 * codes[:, 0]
    numbers[-n_rows:] += np.linspace(0, 3, n_rows)
    _, columns = looked_at(codes, rng)
    tables = list(make_number_tables(layout, codes, 1, numbers))
    assert not find_differences(tables[:2], columns)
    (found,) = find_differences(tables, columns)
    assert found.nodes == (1,)
    assert (found.rows >= N - n_rows).all()


def test_sites_that_all_differ_naturally_are_their_own_yardstick():
    codes, rng = drawn(2), np.random.default_rng(2)
    sites, columns = looked_at(codes, rng)
    for site, share in enumerate([0.05, 0.35, 0.2, 0.45, 0.6]):
        rows = np.flatnonzero(sites == site)
        chosen = rows[rng.random(len(rows)) < share]
        codes[chosen, 3] = 1
    assert not find_differences(make_tables(NETWORK.layout, codes), columns)


@pytest.mark.parametrize("node", range(8))
def test_a_node_by_which_the_table_is_sorted_differs_nowhere(node):
    codes = drawn(4)
    codes = codes[np.argsort(codes[:, node], kind="stable")]
    _, columns = looked_at(codes, np.random.default_rng(4))
    found = find_differences(make_tables(NETWORK.layout, codes), columns)
    assert not any(node in each.nodes for each in found)


@pytest.mark.parametrize("is_code", [False, True])
def test_a_run_of_numbers_is_no_place_but_a_run_of_years_is(is_code):
    codes, rng = drawn(6), np.random.default_rng(6)
    numbers = rng.integers(0, 12, N).astype(np.int16)
    labels = tuple(map(str, range(2010, 2022)))
    groups = Groups("number", labels, is_ordered=True, is_code=is_code)
    is_late = numbers >= 8
    codes[is_late, 5] ^= (rng.random(is_late.sum()) < 0.15).astype(np.uint8)
    found = find_differences(make_tables(NETWORK.layout, codes), [ContextColumn(groups, numbers)])
    assert [each.parts for each in found] == ([] if is_code else [(("number", "2018", "2021"),)])


def test_values_that_are_missing_at_one_site_are_found():
    codes, rng = drawn(3), np.random.default_rng(3)
    sites, columns = looked_at(codes, rng)
    chosen = rng.random(N) < np.where(sites == 4, 0.6, 0.05)
    codes[chosen, 6] = NETWORK.layout.cards[6]
    (found,) = find_differences(make_tables(NETWORK.layout, codes), columns)
    assert found.parts == (("site", "e", "e"),)
    assert found.missing == (6,)


@pytest.mark.parametrize(
    ("act", "name"),
    [
        (lambda x: x * 2.2046, "pounds and kilograms"),
        (lambda x: x / 3.2808, "metres and feet"),
        (lambda x: x / 2.54, "centimetres and inches"),
        (lambda x: x * 1000, "grams and kilograms, or thousands and units"),
        (lambda x: x * 1.8 + 32, "degrees Fahrenheit and Celsius"),
        (lambda x: x, ""),
        (lambda x: x * 1.6, ""),
        (lambda x: x * 1.8 + 60, ""),
    ],
)
def test_a_factor_between_medians_that_is_a_unit_is_named(act, name):
    rng = np.random.default_rng(0)
    usual, here = rng.normal(60, 9, 3000), rng.normal(60, 9, 300)
    assert name_unit(act(here), usual, [59.0, 60.0, 61.5]) == name


def test_a_factor_within_the_spread_of_other_medians_is_no_unit():
    rng = np.random.default_rng(0)
    usual, here = np.exp(rng.normal(3, 0.5, 3000)), np.exp(rng.normal(3, 0.5, 300))
    assert name_unit(2.2046 * here, usual, [10.0, 20.0, 35.0]) == ""


def test_numbers_that_are_nearer_those_of_another_column_are_in_no_other_unit():
    rng = np.random.default_rng(0)
    usual = rng.normal(22, 3, 1000)
    others, here = rng.normal(10.2, 1.5, (2, 1000))
    assert name_unit(here, usual, [21.5, 22.0, 22.4]) == "pounds and kilograms"
    assert name_unit(here, usual, [21.5, 22.0, 22.4], [others]) == ""
    assert name_unit(here, usual, [21.5, 22.0, 22.4], [others + 2, np.empty(0)]) != ""


def test_one_value_in_nearly_all_rows_is_told():
    rng = np.random.default_rng(0)
    usual = rng.integers(20, 80, 1000).astype(float)
    assert find_one_value(np.r_[np.full(95, 40.0), usual[:5]], usual) == (40, 0.95, 0.01)
    assert find_one_value(usual[:100], usual) is None


def test_one_state_of_nearly_all_rows_is_told():
    usual = np.array([500, 300, 200, 0])
    assert find_one_state(np.array([97, 2, 1, 0]), usual) == 0
    assert find_one_state(np.array([30, 20, 10, 40]), usual) is None


CHAIN = BayesianNetwork(
    {"a": [], "b": ["a"], "c": ["b"]}, {"a": range(3), "b": range(4), "c": range(2)}
)


def draw_chain(rng):
    a = rng.choice(3, N, p=[0.4, 0.35, 0.25])
    b = np.where(rng.random(N) < 0.7, a, rng.integers(0, 3, N))  # b = 3 is not used
    c = rng.random(N) < np.array([0.1, 0.8, 0.4, 0.4])[b]
    return np.stack([a, b, c], axis=1).astype(np.uint8)


def place_of(rows, *nodes):
    return Difference((("site", "c", "c"),), nodes, (), rows, len(rows), 100.0, 50.0)


@pytest.mark.parametrize("node", [0, 1])
def test_states_that_stand_for_each_other_at_a_place_are_named_by_the_tables_beside(node):
    codes, rows = draw_chain(np.random.default_rng(0)), np.arange(2000, 2120)
    layout = CHAIN.layout
    assert find_stand_in(layout, codes, {}, place_of(rows, 1), node) is None
    codes[rows, node] = np.array([1, 0, 2, 3])[codes[rows, node]]
    found = find_stand_in(layout, codes, {}, place_of(rows, 1), node)
    assert sorted(found.pairs) == [(0, 1), (1, 0)]
    assert found.is_mutual
    assert find_stand_in(layout, codes, {}, place_of(rows, 0, 1, 2), 1 - node) is None


@pytest.mark.parametrize("rough", [0, 10])
def test_a_new_state_stands_for_the_old_one_even_if_the_ends_of_the_place_are_rough(rough):
    codes, rows = draw_chain(np.random.default_rng(1)), np.arange(2000, 2100)
    renamed = rows[rough:]
    codes[renamed, 1] = np.array([3, 1, 2])[codes[renamed, 1]]
    found = find_stand_in(CHAIN.layout, codes, {}, place_of(rows, 1), 1)
    assert (found.pairs, found.is_mutual) == ([(3, 0)], False)


@pytest.mark.parametrize("step", [1, -1])
def test_codes_that_are_moved_by_one_at_a_place_are_told_with_what_they_mean(step):
    codes, rows = draw_chain(np.random.default_rng(1)), np.arange(2000, 2200)
    codes[rows, 1] = np.clip(codes[rows, 1].astype(int) + step, 0, 3)
    found = find_stand_in(CHAIN.layout, codes, {}, place_of(rows, 1), 1)
    if step == 1:
        assert found.pairs == [(1, 0), (2, 1), (3, 2)]
    else:  # two states became one: nobody can put them back
        assert found is None


def test_a_place_with_more_rows_of_one_state_has_no_other_names():
    rng = np.random.default_rng(2)
    codes, rows = draw_chain(rng), np.arange(2000, 2300)
    more = np.flatnonzero(codes[:, 1] == 1)
    codes[rows[:150]] = codes[rng.choice(more, 150)]
    assert all(find_stand_in(CHAIN.layout, codes, {}, place_of(rows, 1), k) is None for k in (0, 1))


def test_a_change_that_all_configurations_share_is_found_in_few_rows_of_a_large_table():
    """Its own table would have 45 free numbers, its factors have three."""
    rng, sizes = np.random.default_rng(3), {"a": range(4), "b": range(4), "c": range(4)}
    layout = BayesianNetwork({"a": [], "b": [], "c": ["a", "b"]}, sizes).layout
    codes = np.stack([rng.integers(0, 4, N) for _ in range(3)], axis=1).astype(np.uint8)
    codes[:, 2] = np.where(rng.random(N) < 0.6, (codes[:, 0] + codes[:, 1]) % 4, codes[:, 2])
    _, columns = looked_at(codes, rng)
    rows = np.arange(2000, 2160)
    chosen = rows[rng.random(len(rows)) < 0.55]
    codes[chosen, 2] = 1
    tables = make_tables(layout, codes)
    plain = [table for table in tables if not isinstance(table, ComparedFactors)]
    assert not find_differences(plain, columns)
    (found,) = find_differences(tables, columns)
    assert found.nodes == (2,)
    assert np.isin(found.rows, rows).mean() > 0.9


@pytest.mark.parametrize("n_states", [2, 3])
def test_factors_bound_the_best_likelihood_closely_from_below(n_states):
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, 6, N), rng.integers(0, n_states, N)], axis=1)
    codes[:, 1] = np.where(rng.random(N) < 0.5, codes[:, 0] % n_states, codes[:, 1])
    codes[: N // 20, 1] = np.where(rng.random(N // 20) < 0.4, 0, codes[: N // 20, 1])
    codes = codes.astype(np.uint8)
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": range(6), "b": range(n_states)})
    table = next(t for t in make_tables(network.layout, codes) if type(t) is ComparedFactors)
    total = np.bincount(table.cells).astype(float)
    inside = np.bincount(table.cells[: N // 20], minlength=len(total)).astype(float)
    ratio, free = table.compare(inside[None], total)
    here, usual = (each.reshape(6, n_states) for each in (inside, total))
    usual = usual / usual.sum(axis=1, keepdims=True)
    factors = np.ones(n_states)
    for _ in range(500):  # iterative scaling
        own = usual * factors
        own /= own.sum(axis=1, keepdims=True)
        factors *= here.sum(axis=0) / (here.sum(axis=1) @ own)
    best = float((here * np.log(own / usual)).sum())
    assert free == [n_states - 1]
    assert 0.9 * best < ratio[0] <= best + 1e-9


def test_a_column_that_is_cut_off_from_its_parents_in_few_rows_is_found():
    """The parents have many configurations: a table of its own would cost more than it gains."""
    rng = np.random.default_rng(7)
    layout = BayesianNetwork(
        {"a": [], "b": [], "c": ["a", "b"]}, {"a": range(6), "b": range(6), "c": range(4)}
    ).layout
    codes = rng.integers(0, 6, (N, 3)).astype(np.uint8)
    usual = (codes[:, 0] + codes[:, 1]) % 4
    codes[:, 2] = np.where(rng.random(N) < 0.6, usual, rng.integers(0, 4, N))
    _, columns = looked_at(codes, rng)
    tables = make_tables(layout, codes)
    assert not find_differences(tables, columns)
    codes[3000:3240, 2] = np.roll(codes[3000:3240, 2], 1)
    tables = make_tables(layout, codes)
    assert not find_differences([t for t in tables if type(t) is ComparedTable], columns)
    (found,) = find_differences(tables, columns)
    assert found.nodes == (2,)
    assert 2 * len(found.rows) > 240
    assert np.isin(found.rows, np.arange(3000, 3240)).mean() > 0.9


def test_a_column_that_names_the_place_of_a_difference_does_not_differ_for_it():
    """Rows that a place explains are left out of the columns that differ there, and of no other."""
    codes, rng = drawn(1), np.random.default_rng(1)
    sites, columns = looked_at(codes, rng)
    network = BayesianNetwork({"site": [], **NETWORK.parents}, {"site": range(5), **NETWORK.states})
    codes[(sites == 1) & (np.arange(N) < 3000), 4] ^= 1
    codes = np.column_stack([sites.astype(np.uint8), codes])
    (found,) = find_differences(make_tables(network.layout, codes), columns)
    assert found.nodes[0] == 5
    assert 0 not in found.nodes


def test_a_place_where_many_columns_differ_a_little_is_found_where_each_alone_says_too_little():
    codes, rng = drawn(0), np.random.default_rng(0)
    _, columns = looked_at(codes, rng)
    rows, noisy = np.arange(3000, 3060), codes.copy()
    is_redrawn = rng.random((60, 8)) < 0.5
    noisy[rows] = np.where(is_redrawn, rng.integers(0, 2, (60, 8)), codes[rows])
    (found,) = find_differences(make_tables(NETWORK.layout, noisy), columns)
    assert found.parts[0][0] == "row number"
    assert len(np.intersect1d(found.rows, rows)) >= 50
    for node in range(8):
        one = codes.copy()
        one[rows, node] = noisy[rows, node]
        assert not find_differences(make_tables(NETWORK.layout, one), columns)


def test_rows_that_have_no_value_of_a_column_are_no_yardstick_for_its_values():
    codes, rng = drawn(0), np.random.default_rng(0)
    values = rng.integers(0, 5, N).astype(np.int16)
    values[codes[:, 5] == 0] = -1  # as a cause of death is only told of the dead
    codes[values == 2, 2] = 1
    (found,) = find_differences(make_tables(NETWORK.layout, codes), [ContextColumn(SITES, values)])
    assert found.nodes == (2,)


def test_a_long_period_that_differs_a_little_does_not_hide_few_rows_that_differ_much():
    codes, rng = drawn(0), np.random.default_rng(0)
    _, columns = looked_at(codes, rng)
    codes[np.flatnonzero(rng.random(2500) < 0.2), 5] = 1
    codes[1000:1060, 5] = 0
    few, many = find_differences(make_tables(NETWORK.layout, codes), columns)
    assert len(few.rows) < 100
    assert len(np.intersect1d(few.rows, np.arange(1000, 1060))) > 50
    assert len(many.rows) > 2000


def test_numbers_are_rounded_if_nearly_all_are_multiples_of_a_step_that_others_are_not():
    rng = np.random.default_rng(0)
    wages = rng.gamma(20.0, 5.0, 2000)
    assert find_step(wages[:100].round(-1), wages) == 10
    assert find_step(wages[:100].round(), wages) == 1
    assert find_step((2 * wages[:100]).round(-1) / 2, wages.round(1)) == 5
    assert find_step(wages[:100].round(-1), wages.round(-1)) is None
    assert find_step(wages[:100], wages) is None
    assert find_step(np.zeros(100), wages) is None
    assert find_step(np.full(100, 40.0), wages) is None


def test_a_column_is_copied_if_nearly_all_its_numbers_are_the_others_there_only():
    rng = np.random.default_rng(0)
    first, other = rng.normal(size=(2, 500))
    elsewhere = {"first": first, "other": other}
    assert find_copied({"first": other[:50], "other": other[:50]}, elsewhere, "first") == "other"
    assert find_copied({"first": first[:50], "other": other[:50]}, elsewhere, "first") is None
    same = {"first": other, "other": other}
    assert find_copied({"first": other[:50], "other": other[:50]}, same, "first") is None
