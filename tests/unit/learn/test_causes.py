"""What made the bad rows, by name."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.cause_scenes import WAYS, CauseCell, Good, measure_cause, score_columns

import robustbn
from robustbn import BayesianNetwork, RobustEstimator, sample
from robustbn._learn.causes import naming
from robustbn._learn.causes.joins import split_columns
from robustbn._learn.causes.labels import assign
from robustbn._learn.causes.moves import _Likely
from robustbn._learn.causes.naming import Inquiry, name_causes
from robustbn._learn.causes.sides import Sides
from robustbn._learn.causes.templates import share_copied
from robustbn._learn.causes.weighed import Weighed
from robustbn._show.words import tell_cause
from robustbn.adversary import corrupt

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
]
N_GOOD, N_BAD = 8_000, 1_000


@pytest.fixture(scope="module")
def alarm():
    return robustbn.example_network("alarm")


def spoil(network, way, seed=0):
    """Return good rows, rows that were spoilt in a way, and the columns it spoilt."""
    rng = np.random.default_rng(seed)
    rows = sample(network, N_GOOD + N_BAD, seed)
    chosen = np.arange(N_GOOD, N_GOOD + N_BAD)
    spoilt, columns = WAYS[way](Good(rows, chosen, np.array(network.layout.cards), rng, network))
    return rows[:N_GOOD], spoilt, columns


def set_beside(network, good, bad, weights=None):
    good = Weighed(network.layout, good, np.ones(len(good)))
    weights = np.ones(len(bad)) if weights is None else weights
    kind = Weighed(network.layout, bad, weights)
    return Sides(kind, good, np.random.default_rng(0))


# --- rows whose cause is known --------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
def test_each_cause_is_named_with_its_columns(alarm, way, seed):
    good, bad, columns = spoil(alarm, way, seed)
    named = Inquiry.of(set_beside(alarm, good, bad)).decide()
    assert named is not None
    assert named.name == way
    if way not in ("another population", "copies"):
        score = score_columns(set(named.columns), set(columns.tolist()), set(range(37)), way)
        assert score["precision"] >= 0.85
        assert score["recall"] >= 0.75
    cause = tell_cause(alarm, named.name, named.columns, named.explained, named.details)
    assert cause.text.endswith(".")
    assert cause.confidence == pytest.approx(named.explained, abs=1e-3)
    if way != "noise":
        assert any(alarm.nodes[c] in cause.text for c in named.columns) or way == "copies"


def test_columns_that_are_shuffled_are_a_wrong_join_of_all(alarm):
    rows = sample(alarm, N_GOOD + N_BAD, 3)
    rng = np.random.default_rng(0)
    bad = np.stack([rng.permutation(column) for column in rows[N_GOOD:].T], axis=1)
    named = Inquiry.of(set_beside(alarm, rows[:N_GOOD], bad)).decide()
    assert named.name == "wrong join"
    assert named.details["is_all_apart"]


def test_good_rows_have_no_cause(alarm):
    rows = sample(alarm, N_GOOD + N_BAD, 3)
    assert Inquiry.of(set_beside(alarm, rows[:N_GOOD], rows[N_GOOD:])).decide() is None


def test_two_causes_mixed_in_one_kind_have_no_name(alarm):
    good, bad, _ = spoil(alarm, "stuck columns", 1)
    _, more, _ = spoil(alarm, "shifted columns", 1)
    both = np.vstack([bad[::2], more[::2]])
    named = Inquiry.of(set_beside(alarm, good, both)).decide()
    assert named is None or named.name == "another population"


def test_a_cause_that_explains_less_than_it_must_is_not_named(alarm, monkeypatch):
    good, bad, _ = spoil(alarm, "wrong join", 1)
    inquiry = Inquiry.of(set_beside(alarm, good, bad))
    assert inquiry.decide().name == "wrong join"
    monkeypatch.setattr(naming, "EXPLAINS", 1.5)
    assert inquiry.decide() is None


def test_kinds_that_one_cause_made_have_it_in_common(alarm):
    good, bad, _ = spoil(alarm, "shifted columns", 1)
    first = bad[:, 0] == np.bincount(bad[:, 0]).argmax()
    kinds = [set_beside(alarm, good, bad[first]), set_beside(alarm, good, bad[~first])]
    found, rest = name_causes(kinds, None)
    assert [named.name for named in found] == ["shifted columns"] * 2
    assert rest is None


def test_rows_that_do_not_show_that_they_were_spoilt_are_allowed_for(alarm):
    good, bad, _ = spoil(alarm, "swapped columns", 1)
    shown = alarm.nodes.index("BP")

    def hold(codes):  # a model that sees only some of the spoilt rows
        return (codes[:, shown] == 0).astype(float)

    seen = hold(bad) > 0
    assert 0.1 < seen.mean() < 0.9
    blind = set_beside(alarm, good, bad[seen])
    sides = replace(blind, hold=hold)
    of_blind, of_sides = (
        {s.name: s.explained for s in i.suspects} for i in (Inquiry.of(blind), Inquiry.of(sides))
    )
    assert of_sides["swapped columns"] > 0.95
    assert of_sides["swapped columns"] > of_blind["swapped columns"] + 0.05


@pytest.mark.parametrize(("way", "least"), [("stuck columns", 0.5), ("clean", 0.0)])
def test_two_stuck_columns_are_told_from_a_class(way, least):
    pytest.importorskip("pgmpy")
    record = measure_cause(CauseCell("bif:insurance", way, 0.1, 25_000, 0))
    assert record["caught"] >= least
    assert record["lost"] <= 0.05 * (way != "clean")


def test_holes_do_not_hide_a_cause(alarm):
    good, bad, columns = spoil(alarm, "stuck columns", 2)
    rng = np.random.default_rng(0)
    cards = np.array(alarm.layout.cards, good.dtype)
    good, bad = (np.where(rng.random(x.shape) < 0.1, cards, x) for x in (good, bad))
    named = Inquiry.of(set_beside(alarm, good, bad)).decide()
    assert named.name == "stuck columns"
    assert set(named.columns) == set(columns.tolist())


def test_a_row_that_counts_twice_is_two_rows(alarm):
    good, bad, _ = spoil(alarm, "swapped labels", 1)
    once = Inquiry.of(set_beside(alarm, good, np.vstack([bad, bad])))
    twice = Inquiry.of(set_beside(alarm, good, bad, np.full(len(bad), 2.0)))
    assert once.sides.unexplained == pytest.approx(twice.sides.unexplained)
    assert once.decide().columns == twice.decide().columns


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_columns_that_travelled_together_are_one_group(alarm, seed):
    good, bad, columns = spoil(alarm, "wrong join", seed)
    parts, is_sure = split_columns(set_beside(alarm, good, bad).agreement)
    has_moved = np.isin(np.arange(37), columns)[is_sure]
    assert is_sure.mean() > 0.8
    assert len({*zip(parts[is_sure].tolist(), has_moved.tolist(), strict=True)}) == 2


@pytest.mark.parametrize("n", [2, 3, 7])
def test_states_are_assigned_so_that_they_are_worth_most(n):
    from itertools import permutations

    rng = np.random.default_rng(n)
    for _ in range(20):
        worth = rng.normal(size=(n, n)) + 6 * np.eye(n)[rng.permutation(n)]
        found = assign(worth, np.arange(n))
        best = max(permutations(range(n)), key=lambda p: worth[np.arange(n), list(p)].sum())
        assert sorted(found) == list(range(n))
        assert worth[np.arange(n), found].sum() == pytest.approx(
            worth[np.arange(n), list(best)].sum()
        )


def test_copies_are_told_from_rows_that_are_merely_common(alarm):
    good = sample(alarm, N_GOOD, 1)
    copies = good[np.random.default_rng(0).integers(0, 100, N_BAD)]
    assert share_copied(set_beside(alarm, good, copies)) > 0.5
    assert share_copied(set_beside(alarm, good, good[:N_BAD])) < 0.2


# --- in a fit -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stuck(alarm):
    rows = sample(alarm, 20_000, 1)
    chosen = np.random.default_rng(0).choice(20_000, 2_000, replace=False)
    rows[chosen, alarm.nodes.index("HR")] = 0
    rows[chosen, alarm.nodes.index("SAO2")] = 2
    rows[chosen, alarm.nodes.index("BP")] = 0
    return rows, chosen, RobustEstimator(alarm.with_cpts(None), random_state=0).fit(rows)


def test_a_fit_names_the_cause_of_its_kinds(alarm, stuck):
    _, _chosen, fit = stuck
    kind = fit.kinds_[0]
    assert kind.cause.name == "stuck columns"
    assert set(kind.cause.columns) == {"HR", "SAO2", "BP"}
    assert "HR at LOW" in kind.cause.text
    assert kind.cause.name in str(kind)
    in_kinds = sum(each.n_rows for each in fit.kinds_)
    assert in_kinds == pytest.approx(20_000 * fit.contamination_, rel=0.02)
    assert kind.nats > 1


def test_reasons_begin_with_the_cause(stuck):
    rows, chosen, fit = stuck
    why = fit.rows()["why"]
    of_chosen = [why[n] for n in chosen if why[n]]
    assert len(of_chosen) > 1_000
    assert np.mean([text.startswith("stuck columns: ") for text in of_chosen]) > 0.95
    assert fit.rows(rows[chosen[:50]])["why"][0].startswith("stuck columns: ")


def test_what_a_kind_did_to_the_tables_is_what_counting_its_rows_does(alarm, stuck):
    _rows, _chosen, fit = stuck
    moved = {cell.node: cell for cell in fit.kinds_[0].moved}
    assert moved.keys() & {"HR", "SAO2", "BP", "HRBP", "HRSAT", "HREKG", "CO"}
    assert all(abs(cell.with_kind - cell.without) >= 0.001 for cell in moved.values())
    truth = alarm.cpts
    for cell in moved.values():
        place = tuple(alarm.states[p].index(s) for p, s in cell.parents.items())
        good = truth[cell.node][(*place, alarm.states[cell.node].index(cell.state))]
        assert abs(cell.without - good) < abs(cell.with_kind - good)


def test_examples_stand_beside_the_good_row_that_differs_least(stuck):
    rows, chosen, fit = stuck
    examples = fit.kinds_[0].examples
    assert 1 <= len(examples) <= 3
    network = fit.network_
    for example in examples:
        assert example.row in set(chosen.tolist())
        assert fit.row_weights_[example.nearest] >= 0.5
        for states, n in ((example.states, example.row), (example.nearest_states, example.nearest)):
            assert list(states.values()) == list(network.label_row(rows[n].tolist()))
        assert example.differs == tuple(
            node for node in network.nodes if example.states[node] != example.nearest_states[node]
        )


def test_a_model_file_keeps_causes_and_no_rows(stuck, tmp_path):
    *_, fit = stuck
    fit.save(tmp_path / "model.json")
    again = RobustEstimator.load(tmp_path / "model.json")
    assert again.kinds_ == fit.kinds_
    assert again.kinds_[0].cause == fit.kinds_[0].cause
    assert again.kinds_[0].examples == ()


def test_a_cause_that_cannot_be_is_refused_in_a_model_file(stuck, tmp_path):
    *_, fit = stuck
    path = tmp_path / "model.json"
    fit.save(path)
    document = json.loads(path.read_text())
    document["fit"]["causes"][0][1]["columns"] = ["HEART"]
    path.write_text(json.dumps(document))
    with pytest.raises(robustbn.exceptions.ModelFileError, match=r"causes.*HEART"):
        RobustEstimator.load(path)


@pytest.mark.parametrize("seed", [5, 6])
def test_clean_rows_have_neither_kinds_nor_causes(alarm, seed):
    fit = RobustEstimator(alarm.with_cpts(None), random_state=0).fit(sample(alarm, 10_000, seed))
    assert fit.kinds_ == []


def test_rows_that_no_group_holds_are_a_kind_without_a_number(alarm):
    rows = sample(alarm, 20_000, 0)
    dirty, _is_bad = corrupt(rows, alarm, "clones", 0.1, random_state=1)
    fit = RobustEstimator(alarm.with_cpts(None), random_state=0).fit(dirty)
    assert not fit.result_.learned.model.n_kinds
    (kind,) = fit.kinds_
    assert kind.number == 0
    assert kind.cause.name == "copies"
    assert kind.n_rows == pytest.approx(fit.contamination_ * 20_000, rel=0.3)
    assert fit.groups_ == []


def test_a_stream_names_causes_too(alarm, stuck, tmp_path):
    import pandas as pd

    rows, *_ = stuck
    frame = pd.DataFrame(
        {n: np.array(alarm.states[n])[rows[:, i]] for i, n in enumerate(alarm.nodes)}
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    streaming = robustbn.Streaming(on_error="skip")
    fit = RobustEstimator(alarm.with_cpts(None), random_state=0, streaming=streaming)
    fit.fit(tmp_path / "rows.parquet")
    assert fit.reading_.kind == "file"
    assert {kind.cause.name for kind in fit.kinds_ if kind.cause} == {"stuck columns"}


def test_a_network_of_one_node_or_two_is_no_trouble():
    coin = BayesianNetwork({"a": []}, {"a": ["h", "t"]}, {"a": [0.9, 0.1]})
    pair = BayesianNetwork(
        {"a": [], "b": ["a"]},
        {"a": ["h", "t"], "b": ["h", "t"]},
        {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.1, 0.9]]},
    )
    for network in (coin, pair):
        good, bad = sample(network, 500, 0), np.ones((50, network.n_nodes), np.uint8)
        Inquiry.of(set_beside(network, good, bad)).decide()


# --- the benchmark --------------------------------------------------------------------------------


def test_a_cell_of_the_benchmark_says_what_was_named():
    record = measure_cause(CauseCell("example:alarm", "stuck columns", 0.1, 8_000, 2))
    assert record["names"]
    assert set(record["names"]) <= {"stuck columns", None}
    assert record["precision"] >= 0.9


def test_a_step_of_a_search_for_moved_columns_looks_at_the_columns_that_it_changes():
    rng, d = np.random.default_rng(0), 60
    asked = set()

    def count(columns):
        asked.add(columns)
        return rng.random(2)

    rows = SimpleNamespace(count=count, together=lambda *_: rng.random((2, 2)))
    edges = [(c, c + 1) for c in range(d - 1)]
    likely = _Likely(SimpleNamespace(cards=[2] * d, edges=edges, kind=rows, good=rows))
    before = tuple(range(d))
    sources = (1, 0, *before[2:])
    gain = likely.gain(sources, before)
    assert asked == {(0,), (1,)}
    totals = [
        sum(likely.alone(c, s) for c, s in enumerate(each))
        + sum(likely.along(*edge, each) for edge in edges)
        for each in (sources, before)
    ]
    assert gain == pytest.approx(totals[0] - totals[1])


def test_a_wrong_join_of_one_column_is_told_as_one():
    network = robustbn.example_network("alarm")
    details = {"is_all_apart": False, "n_parts": 2}
    told = tell_cause(network, "wrong join", [0], 0.9, details)
    assert (
        told.text == f"The values of {network.nodes[0]} seem to have been joined from other rows."
    )
