"""The benchmarks of what a fit costs: scenes, profiles, growth."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import growth, posteriors, profile_fits, robust_time
from benchmarks.fit_scenes import GROUP_OF, build_fit_scene
from benchmarks.measure import Settings

from robustbn import random_network

NETWORK = random_network("graph", 12, 40, random_state=0)


@pytest.mark.parametrize("kind", GROUP_OF)
def test_every_scene_is_counted_and_fitted(kind):
    scene = build_fit_scene(NETWORK, kind, 3000, 0)
    assert scene.count().network_.nodes == NETWORK.nodes
    assert scene.fit().network_.nodes == NETWORK.nodes
    assert np.ma.is_masked(scene.rows) == (kind == "20 % holes")


def test_a_misfit_is_a_network_with_fewer_edges():
    scene = build_fit_scene(NETWORK, "edges left out", 100, 0)
    left = sum(len(scene.network.parents[node]) for node in NETWORK.nodes)
    assert left == sum(len(NETWORK.parents[node]) for node in NETWORK.nodes) - 8


def test_a_profile_knows_its_stages_and_passes():
    found = profile_fits.profile(build_fit_scene(NETWORK, "rowflip", 20_000, 0))
    for stage in ("survey", "copies", "search", "judge groups", "judge all rows"):
        assert 0 < found["stages"][stage] < found["total"], stage
    assert found["passes"]["divide"][1] > 5
    assert found["passes"]["gram"][1] > 0
    assert sum(seconds for seconds, _ in found["passes"].values()) < found["total"]
    cells = list(profile_fits.describe_passes(found))
    assert len(cells) == len(profile_fits.PASSES) + 1


@pytest.mark.parametrize("stage", profile_fits.STAGES)
def test_stages_are_functions_that_exist(stage):
    from pathlib import Path

    import robustbn

    for file, name in profile_fits.STAGES[stage]:
        text = (Path(robustbn.__file__).parent / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text


@pytest.mark.filterwarnings("ignore::UserWarning")  # so few rows leave cells empty
def test_each_size_grows_alone_and_every_fit_ends():
    shrink = 2000
    growing = {g.name: g for g in growth.list_growing(0, shrink)}
    assert list(growing) == ["N", "N, streamed", "d", "m", "K", "states"]
    for each in growing.values():
        sizes = [size for size, _ in each.fits]
        assert sizes == sorted(sizes)
        assert each.fits[0][1]()() is not None
    assert growing["N, streamed"].fits[-1][0] * shrink == 10**8


def test_a_stream_that_draws_its_rows_gives_the_same_at_every_reading():
    tree = random_network("tree", 10, random_state=0)
    fit = growth.prepare_stream(tree, 30_000, 0)
    first, second = fit(), fit()
    np.testing.assert_array_equal(first.counts_, second.counts_)
    assert first.counts_.sum() > 20_000 * 10


def test_every_group_has_its_goal():
    assert set(robust_time.MOST) == set(GROUP_OF.values())


def test_intervals_and_experts_are_measured(monkeypatch):
    monkeypatch.setattr(posteriors, "NETWORKS", ("tree:8",))
    monkeypatch.setattr(posteriors, "WAYS", ("none", "product"))
    report = posteriors.run(Settings(quick=True))
    intervals, experts = report.tables
    assert [line[1] for line in intervals.lines] == ["none", "product"]
    assert [line[1] for line in experts.lines] == ["near", "far", "wrong", "wrong"]
    assert 0.8 < report.records[0]["holds"] <= 1
    assert 0.9 < report.records[-1]["ratio"] < 1.1
    assert len(list(posteriors.find_goals(list(report.records)))) == 6
