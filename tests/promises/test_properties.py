"""Random networks and tables: every fit ends with tables, and with a sentence on why."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fuzz import properties

from robustbn import BayesianNetwork, RobustEstimator, random_network, sample
from robustbn._core.layout import Layout
from robustbn._core.row_model import RowModel
from robustbn._rows.kernels import load_kernels


@pytest.mark.parametrize("first", [0, 150])
def test_random_networks_and_tables_are_fitted_or_refused_for_a_reason(first):
    assert properties.run(150, first, most_nodes=30, most_rows=1000) == 0


@pytest.mark.parametrize("seed", [7460, 7584])
def test_a_start_that_holds_all_rows_is_none_that_ends_the_fit(seed):
    assert properties.run(1, seed, most_nodes=25, most_rows=600) == 0


@pytest.mark.parametrize("kernels", ["native", "numpy"])
def test_hundreds_of_nodes_of_one_state_are_packed_together(kernels):
    layout = Layout((1,) * 300 + (2,), tuple((i,) for i in range(301)))
    codes = np.zeros((5, 301), np.uint8)
    codes[::2, 300] = 1
    rows = load_kernels(kernels).encode(layout, codes)
    assert rows.count().tolist() == [5.0] * 300 + [2.0, 3.0]
    assert np.array_equal(rows.unpack(), codes)


@pytest.mark.parametrize("d", [1, 300])
def test_nodes_of_one_state_alone_can_be_fitted(d):
    network = BayesianNetwork({f"n{i}": [] for i in range(d)}, {f"n{i}": ["s"] for i in range(d)})
    fit = RobustEstimator(network, random_state=0).fit(np.zeros((4, d), np.uint8))
    assert fit.contamination_ == 0
    assert fit.status_.endswith(".")


@pytest.mark.parametrize("on_missing", ["use", "observed", "state"])
def test_rows_of_nothing_but_holes_are_diagnosed(on_missing):
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["x", "y"], "b": ["x", "y"]})
    fit = RobustEstimator(network, random_state=0, on_missing=on_missing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit.fit({"a": [None] * 3, "b": [None] * 3})
    assert "nan" not in str(fit.diagnose())


@pytest.mark.parametrize("misfit", ["allow", "none"])
def test_rows_that_are_all_copied_far_too_often_are_judged_by_something_else(misfit):
    network = random_network("empty", 400, random_state=0)
    few = sample(network, 4, random_state=0)
    fit = RobustEstimator(network, random_state=0, misfit=misfit, copies="distrust", sample_rows=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit.fit(np.repeat(few, 300, axis=0))
    assert np.isfinite(fit.network_.probabilities).all()
    assert fit.status_.endswith(".")


def test_few_rows_that_no_network_made_leave_nothing_to_start_from():
    network = random_network("empty", 400, random_state=0)
    rows = sample(network, 24, random_state=0)
    rows[::2] = 1 - rows[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert RobustEstimator(network, random_state=0).fit(rows).status_.endswith(".")


def test_rows_of_nothing_but_holes_may_be_known_to_be_bad():
    network = BayesianNetwork({"a": []}, {"a": ["x", "y", "z"]})
    known = np.repeat([-1, 0, 1], 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = RobustEstimator(network, random_state=0).fit({"a": [None] * 300}, known=known)
    assert fit.network_.cpts["a"].tolist() == [1 / 3] * 3


def test_components_that_take_all_rows_leave_finite_odds():
    layout = Layout((2,), ((0,),))
    rows = load_kernels("numpy").encode(layout, np.array([[0], [1]], np.uint8))
    model = RowModel.of_good_rows(np.array([0.5, 0.5]))
    model = model.with_component(np.array([0.1, 0.9]), 1.0)
    assert np.isfinite(model.log_odds_by_component(rows)).all()
    assert np.isfinite(model.log_density(rows)).all()
