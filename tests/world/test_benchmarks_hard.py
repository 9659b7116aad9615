"""The searching adversary and the calibration measure what they say, and small versions hold."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import calibration, learned_adversary
from benchmarks.attacks import GENES, Attack, poison, scale_tilt, search
from benchmarks.calibration_scenes import CalibrationCell, measure_calibration
from benchmarks.measure import Settings

from robustbn import random_network, sample
from robustbn.distance import total_variation

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.ConvergenceWarning"),
]

N_ROWS = 4000


@pytest.fixture(scope="module")
def tree():
    return random_network("tree", 8, random_state=0)


# --- calibration ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clean():
    cells = [
        CalibrationCell(network, "none", 0.0, N_ROWS, seed)
        for network in ("tree:15", "categorical:10:40")
        for seed in range(8)
    ]
    return [{"eps": 0.0, **measure_calibration(cell)} for cell in cells]


def test_clean_rows_are_trusted_whatever_the_seed(clean):
    assert [record["contamination"] for record in clean] == [0.0] * len(clean)
    assert {record["false_alarms"] for record in clean} == {0.0}


def test_intervals_hold_the_truth_as_often_as_stated(clean):
    n, held = np.sum([c for r in clean for c in r["intervals"].values()], axis=0)
    assert n > 1000
    assert 0.935 < held / n < 0.97


def test_two_samples_of_one_network_differ_as_often_as_stated(clean):
    n, beyond = calibration.share(clean, "z")
    assert n > 1000
    assert 0.03 < beyond < 0.07


@pytest.mark.parametrize("adversary", ["product", "network", "flipped", "clones"])
def test_a_majority_of_bad_rows_is_not_called_clean(adversary):
    record = measure_calibration(CalibrationCell("graph:25:70", adversary, 0.6, 10_000, 0))
    assert not (calibration.is_called_clean(record) and record["is_exact"])


def test_false_alarms_on_fresh_rows_are_few_beside_far_bad_rows():
    record = measure_calibration(CalibrationCell("graph:25:70", "network", 0.1, 10_000, 0))
    assert record["false_alarms"] < 0.005
    assert record["named_groups"] == 0


def test_two_hundred_seeds_are_planned():
    planned = calibration.plan(Settings(full=True))
    assert sum(cell.eps == 0 for cell in planned) == 200
    assert {cell.eps for cell in planned} == {0.0, 0.1, 0.6}


# --- the adversary that learns --------------------------------------------------------------------


def test_an_attack_replaces_its_share_and_nothing_else(tree):
    good = sample(tree, N_ROWS, 1)
    rows, is_bad = poison(tree, good, Attack(flood=0.5, decoy=0.3, copies=0.4, flips=0.2), 0.1)
    assert is_bad.sum() == N_ROWS // 10
    assert np.array_equal(rows[~is_bad], good[~is_bad])
    assert (rows < np.array(tree.layout.cards)).all()


def test_theft_takes_the_rows_at_the_other_end(tree):
    good, attack = sample(tree, N_ROWS, 1), Attack(theft=1.0, seed=3)
    again = poison(tree, good, attack, 0.1)
    spared = poison(tree, good, Attack(seed=3), 0.1)
    assert not np.array_equal(again.is_bad, spared.is_bad)
    assert again.is_bad.sum() == spared.is_bad.sum()


def test_a_tilt_has_mean_zero_and_one_deviation(tree):
    tilt = scale_tilt(tree, np.random.default_rng(0).normal(size=tree.layout.n_cells))
    mean = tree.layout.sum_configurations(tree.probabilities * tilt)
    variance = tree.layout.sum_configurations(tree.probabilities * tilt**2)
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(variance, 1 / tree.n_nodes)


@pytest.mark.parametrize("may_steal", [False, True])
def test_the_search_goes_where_the_harm_grows(tree, may_steal):
    def harm(attack, tilt):
        return attack.push + attack.theft

    tried = list(search(tree, harm, 100, 0, may_steal=may_steal))
    assert len(tried) == 100
    assert {t.stage for t in tried} == {"random", "climb", "gradient"}
    by_stage = {s: max(t.error for t in tried if t.stage == s) for s in ("random", "climb")}
    assert by_stage["climb"] > by_stage["random"]
    assert may_steal or all(t.attack.theft == 0 for t in tried)


def test_the_limit_is_reached_by_a_table_of_another_network(tree):
    limit = learned_adversary.find_limit(tree, 0.1, may_steal=False)
    root = min((n for n in tree.nodes if not tree.parents[n]), key=lambda n: tree.cpts[n].min())
    forced = np.eye(len(tree.states[root]))[int(tree.cpts[root].argmin())]
    moved = tree.with_cpts({**tree.cpts, root: 0.9 * tree.cpts[root] + 0.1 * forced})
    assert total_variation(tree, moved) == pytest.approx(limit)
    assert learned_adversary.find_limit(tree, 0.1, may_steal=True) == 0.1


def test_known_attacks_can_be_tried_again():
    known = learned_adversary.read_known()
    assert known
    for entry in known:
        assert set(entry["attack"]) == {*GENES, "seed"}
        assert entry["may_steal"] or entry["attack"]["theft"] == 0
    assert json.loads(learned_adversary.KNOWN.read_text()) == known


def _known_attacks():
    stands = pytest.mark.xfail(
        reason="is_mended in known_attacks.json: as strong as ever", strict=True
    )
    for entry in learned_adversary.read_known():
        yield pytest.param(entry, marks=() if entry["is_mended"] else stands)


@pytest.mark.parametrize("entry", list(_known_attacks()))
def test_a_known_attack_is_one_and_a_half_times_weaker_or_at_the_limit(entry):
    attack = tuple(entry["attack"].items())
    cell = learned_adversary.SearchCell(
        entry["source"], entry["may_steal"], 1, entry["seed"], attack
    )
    now = learned_adversary.measure_search(cell)
    limit = learned_adversary.AT_THE_LIMIT * (now["limit"] + now["floor"])
    assert now["error"] < max(entry["error"] / 1.5, limit)
