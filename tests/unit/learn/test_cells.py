"""How often cells are wrong, learned; and the edges that rows ask for."""

from __future__ import annotations

import numpy as np
import pytest

from robustbn import example_network, sample
from robustbn._core.config import RobustConfig
from robustbn._core.origins import ContextColumn, Groups
from robustbn._learn.cells import Chain, learn_cells, look_first, pays_at_first
from robustbn._learn.error_places import PlaceColumn, choose_places
from robustbn._learn.mending import mend_by_votes, mend_labels
from robustbn._learn.wrong_cells import PAIRS, _are_independent, add_edges, explain_cells
from robustbn._rows.memory import RowsInMemory

NETWORK = example_network("alarm")
CARDS = NETWORK.layout.cards
PARENTS = tuple(family[:-1] for family in NETWORK.layout.families)
SHORT = Chain(n_sweeps=24, n_burn=12)


@pytest.fixture(scope="module")
def rows():
    return np.asarray(sample(NETWORK, 6000, random_state=0)).astype(np.int32)


def spoil(rows, share, columns=slice(None), seed=1):
    rng, dirty = np.random.default_rng(seed), rows.copy()
    any_state = (rng.random(rows.shape) * np.array(CARDS)).astype(np.int32)
    is_hit = rng.random(rows.shape) < share
    dirty[:, columns] = np.where(is_hit, any_state, rows)[:, columns]
    return dirty


def test_the_rate_of_errors_is_found(rows):
    learned = learn_cells(CARDS, PARENTS, spoil(rows, 0.03), SHORT)
    np.testing.assert_allclose(learned.model.rates, 0.03, rtol=0.2)


def test_a_column_has_a_rate_of_its_own_where_that_pays(rows):
    column = NETWORK.nodes.index("CATECHOL")
    learned = learn_cells(CARDS, PARENTS, spoil(rows, 0.2, [column]), SHORT)
    assert learned.model.rates[0, column] == pytest.approx(0.2, rel=0.3)
    assert np.median(learned.model.rates[0]) < 0.001


def test_errors_do_not_pay_in_clean_rows_and_do_in_dirty_ones(rows):
    clean, dirty = (look_first(CARDS, PARENTS, x) for x in (rows, spoil(rows, 0.01)))
    assert not pays_at_first(clean.gains, len(rows))
    assert pays_at_first(dirty.gains, len(rows))
    assert dirty.pays
    assert not clean.pays
    assert clean.contrast < 0 < dirty.contrast


def test_cells_that_show_usual_states_are_taken_for_variety(rows):
    rng = np.random.default_rng(2)
    usual = np.stack([rng.permutation(column) for column in rows.T], axis=1)
    shown = np.where(rng.random(rows.shape) < 0.02, usual, rows)
    assert look_first(CARDS, PARENTS, shown).contrast < 0


def test_errors_are_independent_but_for_rows_that_are_wrong_all_over(rows):
    cells = spoil(rows, 0.02)
    bad = np.where(np.arange(len(rows))[:, None] % 10, rows, spoil(rows, 1.0))
    assert [_is_independent(x) for x in (cells, bad)] == [True, False]


def _is_independent(rows):
    every = np.ones(len(CARDS), bool)
    return _are_independent(learn_cells(CARDS, PARENTS, rows, SHORT), PAIRS, every)


@pytest.mark.parametrize(
    ("share_there", "name", "values"),
    [
        (0.1, "site", (("(missing)",) * 2, ("north",) * 2, ("south",) * 2)),
        (0.02, None, None),
    ],
)
def test_the_column_by_which_rates_of_errors_differ_is_chosen_by_itself(
    rows, share_there, name, values
):
    of_site = (np.arange(len(rows)) % 5 > 0).astype(np.int16)
    dirty = np.where(of_site[:, None] > 0, spoil(rows, 0.02), spoil(rows, share_there))
    clerks = np.random.default_rng(0).integers(0, 8, len(rows)).astype(np.int16)
    context = (
        ContextColumn(Groups("clerk", tuple("abcdefgh")), clerks),
        ContextColumn(Groups("site", ("north", "south")), of_site),
    )
    data = RowsInMemory(NETWORK, dirty.astype(np.uint8), context=context)
    found, _ = explain_cells(NETWORK, data.survey(None, len(rows), 0), None, RobustConfig())
    if name is None:
        assert found.by is None
        return
    assert (found.by.column, found.by.values) == (name, values)
    np.testing.assert_allclose(found.by.rates[1:].mean(axis=1), [0.1, 0.02], rtol=0.25)
    np.testing.assert_allclose(found.model.rates.mean(), 0.036, rtol=0.25)
    # Of rows that are not all held, the places are not known: errors look as if rows were bad.
    some = data.survey(None, 4_000, 0)
    assert explain_cells(NETWORK, some, None, RobustConfig())[0] is None


def test_a_line_is_cut_where_the_rate_changes_and_nowhere_else():
    rng, codes = np.random.default_rng(0), np.repeat(np.arange(100), 60)
    rates = np.where((codes >= 30) & (codes < 45), 0.04, 0.01)
    line = PlaceColumn(codes, 100, is_line=True)
    found = choose_places(rng.binomial(20, rates), 20, [line])
    assert np.flatnonzero(np.diff(found.part_of)).tolist() == [29, 44]
    assert choose_places(rng.binomial(20, 0.01, len(codes)), 20, [line]) is None


def test_an_edge_that_the_network_lacks_is_added_and_no_other(rows):
    node, parent = NETWORK.nodes.index("HRBP"), NETWORK.nodes.index("HR")
    lacking = tuple(
        tuple(p for p in of if (i, p) != (node, parent)) for i, of in enumerate(PARENTS)
    )
    found = add_edges(CARDS, lacking, rows)
    assert parent in found[node] or node in found[parent]
    assert add_edges(CARDS, PARENTS, rows) == PARENTS


def test_misspelt_labels_are_mended_and_rare_ones_are_not():
    rng = np.random.default_rng(0)
    cities = np.array([f"city {k}" for k in range(40)])[rng.integers(0, 40, 1200)]
    state = np.array([f"state {c[-1]}" for c in cities])
    more = [np.array([f"{x} of {c}" for c in cities]) for x in ("zip", "fax")]
    columns = [column.astype(object) for column in (cities, state, *more)]
    parents = ((), (0,), (0,), (0,))
    dirty, wrong = [column.copy() for column in columns], set()
    for j in (0, 2, 3):
        rows = rng.choice(1200, 40, replace=False)
        dirty[j][rows] = [f"{label}{k % 9}x" for k, label in enumerate(columns[j][rows])]
        wrong |= {(int(r), j) for r in rows}
    found = mend_labels([column.tolist() for column in dirty], parents)
    sure = found.wrong.above(0.9)
    where = list(zip(sure.rows.tolist(), sure.columns.tolist(), strict=True))
    assert set(where) <= wrong
    assert len(where) >= 0.9 * len(wrong)
    mended = [found.labels[j][v] for (_, j), v in zip(where, sure.likely, strict=True)]
    assert mended == [columns[j][r] for r, j in where]
    clean = mend_labels([column.tolist() for column in columns], parents)
    assert clean.model is None
    assert not len(clean.wrong)


def test_rare_labels_are_not_corrected_where_rare_ones_are_usual():
    rng = np.random.default_rng(0)
    n_keys, n_rows = 800, 4_000
    kind = rng.integers(0, 400, n_keys)  # of each key: two keys of one kind show the same
    of = rng.choice(n_keys, n_rows, p=rng.dirichlet(np.ones(n_keys)))
    keys = [f"N{k:04d}" for k in rng.permutation(10_000)[:n_keys]]
    others = [[f"c{k % 20}" for k in kind], [f"m{k}" for k in kind], [f"s{k % 37}" for k in kind]]
    columns = [[labels[k] for k in of] for labels in (keys, *others)]
    for r in range(0, n_rows, 60):
        columns[2][r] += f"?{r}"
    found = mend_labels(columns, ((), (0,), (0,), (0,))).wrong.above(0.9)
    n_changed = np.bincount(found.columns, minlength=4).tolist()
    assert n_changed[2] >= 60
    assert n_changed[0] <= 3  # 42 if nothing but the rest of the row is looked at


def test_errors_have_rates_of_their_own_by_source():
    rng = np.random.default_rng(0)
    key = rng.integers(0, 20, 1500)
    source = np.where(rng.random(1500) < 0.3, "careless", "careful")
    columns = [np.array([f"{x}{k}" for k in key], object) for x in "abcd"]
    for column in columns[1:]:
        is_hit = (source == "careless") & (rng.random(1500) < 0.2)
        column[is_hit] = [f"{v}?{k % 8}" for k, v in enumerate(column[is_hit])]
    lists = [column.tolist() for column in columns]
    context = {"source": source.tolist()}
    found = mend_labels(lists, ((), (0,), (0,), (0,)), context=context)
    rates = dict(zip(dict.fromkeys(source), found.model.rates[:, 1:].mean(axis=1), strict=True))
    assert rates["careless"] == pytest.approx(0.2, abs=0.05)
    assert rates["careful"] < 0.02


def test_the_context_that_tells_most_of_errors_is_chosen_by_itself_if_any_does():
    rng = np.random.default_rng(0)
    key, n = rng.integers(0, 20, 1500), 1500
    context = {
        "clerk": [f"clerk {k}" for k in rng.integers(0, 5, n)],
        "source": np.where(rng.random(n) < 0.3, "careless", "careful").tolist(),
        "number": [str(k) for k in range(n)],
    }
    columns = [np.array([f"{x}{k}" for k in key], object) for x in "abcd"]
    for column in columns[1:]:
        is_hit = (np.array(context["source"]) == "careless") & (rng.random(n) < 0.2)
        column[is_hit] = [f"{v}?{k % 8}" for k, v in enumerate(column[is_hit])]
    lists = [column.tolist() for column in columns]
    parents = ((), (0,), (0,), (0,))
    found = mend_labels(lists, parents, context=context)
    assert found.by == "source"
    alone = mend_labels(lists, parents, context={"source": context["source"]})
    np.testing.assert_array_equal(found.model.rates, alone.model.rates)
    others = {name: context[name] for name in ("clerk", "number")}
    assert mend_labels(lists, parents, context=others).by is None


def test_rows_of_one_key_vote_and_an_empty_cell_is_filled():
    flight = [f"f{k % 50}" for k in range(600)]
    right = [f"{k % 50}:00" for k in range(600)]
    shown = [["", "1:23", time][min(k % 7, 2)] for k, time in enumerate(right)]
    found = mend_by_votes([flight, shown], ((), (0,)), 0)
    sure = found.wrong.above(0.9)
    assert set(sure.rows.tolist()) == {k for k in range(600) if shown[k] != right[k]}
    assert [found.labels[1][v] for v in sure.likely] == [right[k] for k in sure.rows]
    assert not len(mend_by_votes([flight, right], ((), (0,)), 0).wrong)
    assert not len(mend_by_votes([flight, [""] * 600], ((), (0,)), 0).wrong)


def test_a_million_different_labels_are_taken_as_they_are():
    names = [f"name {k}" for k in range(1_000_000)]
    assert not len(mend_labels([names, ["a", "b"] * 500_000], ((), (0,))).wrong)


@pytest.mark.parametrize(
    "columns",
    [
        [[str(k) for k in range(500)], [str(-k) for k in range(500)]],
        [["same"] * 500, ["a", "b"] * 250],
        [["", "x"] * 250, ["y"] * 500],
    ],
    ids=["all distinct", "a constant", "empty cells"],
)
def test_nothing_is_mended_where_nothing_can_be_known(columns):
    assert not len(mend_labels(columns, ((), (0,))).wrong)


def test_one_column_alone_is_never_mended():
    assert not len(mend_labels([["a"] * 99 + ["b"]], ((),)).wrong)
