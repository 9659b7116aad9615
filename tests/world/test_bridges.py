"""Bridges to pgmpy, pyAgrum, pomegranate and networkx, against the real libraries."""

from __future__ import annotations

import inspect
import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import robustbn
from robustbn import BayesianNetwork
from robustbn._networks.libraries import (
    from_networkx,
    from_pgmpy,
    from_pomegranate,
    from_pyagrum,
    to_networkx,
    to_pgmpy,
    to_pomegranate,
    to_pyagrum,
)
from robustbn.exceptions import DataError, MissingDependencyError, NetworkError
from robustbn.simulate import corrupt, random_network, sample
from tests.strategies import networks

nx = pytest.importorskip("networkx")
pd = pytest.importorskip("pandas")
pgmpy_models = pytest.importorskip("pgmpy.models")
with warnings.catch_warnings():  # made an error, a warning of its import crashes the interpreter
    warnings.simplefilter("ignore")
    gum = pytest.importorskip("pyagrum")

from pgmpy.factors.discrete import TabularCPD  # noqa: E402
from pgmpy.parameter_estimator import DiscreteMLE  # noqa: E402

import robustbn.pgmpy as for_pgmpy  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*pgmpy.estimators.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning"),
]

HOSTILE = (
    *("a b", "c,d", "<x>", "{", "|", '"q"', "", "\n", " a ", "é", "日本", "😀", "\\", "'", "1"),
    *("a->b", "[0;1[", "x" * 3000, "nan", "a;b"),
)


@pytest.fixture(scope="module")
def hostile() -> BayesianNetwork:
    """Names and labels that file formats break on; parents not in alphabetical order."""
    nodes = ["", "z z", "b", "A", "é😀", "->", "{x}", "a|b[3]"]
    states = {n: HOSTILE[:3] if i else HOSTILE for i, n in enumerate(nodes)}
    parents = {n: nodes[max(0, i - 3) : i][::-1] for i, n in enumerate(nodes)}
    return _with_random_tables(parents, states)


@pytest.fixture(scope="module")
def numbered() -> BayesianNetwork:
    """Labels that are not text."""
    return _with_random_tables(
        {"b": ["c", "a"], "a": [], "c": ["a"]},
        {"b": [1, 0], "a": [True, False], "c": [0.5, 1.5, -2.0]},
    )


def _with_random_tables(parents, states):
    rng = np.random.default_rng(0)
    shapes = {n: [len(states[p]) for p in ps] for n, ps in parents.items()}
    tables = {n: rng.dirichlet(np.ones(len(states[n])), size=shapes[n]) for n in parents}
    return BayesianNetwork(parents, states, tables)


def _frame(network, codes):
    labels = {n: np.array(network.states[n], dtype=object) for n in network.nodes}
    return pd.DataFrame({n: labels[n][codes[:, k]] for k, n in enumerate(network.nodes)})


def _posterior_by_enumeration(network, node, evidence):
    """Sum the joint probability of every row that shows the evidence."""
    column = {n: k for k, n in enumerate(network.nodes)}
    rows = np.array(list(itertools.product(*(range(c) for c in network.layout.cards))))
    joint = np.ones(len(rows))
    for name, table in network.cpts.items():
        axes = [column[n] for n in (*network.parents[name], name)]
        joint *= table[tuple(rows[:, axes].T)]
    for name, label in evidence.items():
        joint[rows[:, column[name]] != network.states[name].index(label)] = 0
    sums = np.bincount(rows[:, column[node]], joint, len(network.states[node]))
    return sums / sums.sum()


def _posterior_by_pgmpy(network, node, evidence):
    from pgmpy.inference import VariableElimination

    answer = VariableElimination(to_pgmpy(network)).query(
        [node], evidence=evidence, show_progress=False
    )
    return np.array([answer.get_value(**{node: label}) for label in network.states[node]])


def _posterior_by_pyagrum(network, node, evidence):
    bn = to_pyagrum(network)
    engine = gum.LazyPropagation(bn)
    engine.setEvidence(evidence)
    engine.makeInference()
    return np.array(engine.posterior(node)[:])


# --- round trips ----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(networks())
def test_round_trips_are_exact(network):
    for thing in (network, network.with_cpts(None)):
        assert from_pgmpy(to_pgmpy(thing)) == thing
        assert from_pyagrum(to_pyagrum(thing)) == thing
        assert from_networkx(to_networkx(thing)) == thing


def test_hostile_names_and_labels_survive(hostile):
    assert from_pgmpy(to_pgmpy(hostile)) == hostile
    assert from_pyagrum(to_pyagrum(hostile)) == hostile
    assert from_networkx(to_networkx(hostile)) == hostile


def test_alarm_crosses_every_bridge(alarm):
    pytest.importorskip("pomegranate")
    assert from_pgmpy(to_pgmpy(alarm)) == alarm
    assert from_pyagrum(to_pyagrum(alarm)) == alarm
    assert from_networkx(to_networkx(alarm)) == alarm
    model = to_pomegranate(alarm, dtype="float64")
    assert from_pomegranate(model, alarm.nodes, alarm.states) == alarm


def test_labels_that_are_not_text_keep_their_types(numbered):
    for back in (from_pgmpy(to_pgmpy(numbered)), from_networkx(to_networkx(numbered))):
        assert back == numbered
        assert [type(v) for s in back.states.values() for v in s] == [
            type(v) for s in numbered.states.values() for v in s
        ]


def test_numbers_become_text_in_pyagrum_and_can_be_brought_back(numbered):
    bn = to_pyagrum(numbered)
    back = from_pyagrum(bn)
    assert dict(back.states) == {
        "b": ("1", "0"),
        "a": ("True", "False"),
        "c": ("0.5", "1.5", "-2.0"),
    }
    assert np.array_equal(back.probabilities, numbered.probabilities)
    assert from_pyagrum(bn, states=numbered.states) == numbered
    with pytest.raises(NetworkError, match="3 labels for 'b'; pyAgrum has 2 states there"):
        from_pyagrum(bn, states={"b": [1, 2, 3]})
    with pytest.raises(NetworkError, match="no such node"):
        from_pyagrum(bn, states={"z": [1, 2]})


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([1, "1"], "states 1 and '1' of node 'n' would both be called '1'"),
        ([(0, 1), (1, 2)], r"state \(0, 1\) of node 'n' is a tuple"),
        ([None, "x"], "state None of node 'n' is a NoneType"),
        (["a\0b", "a"], "State 'a.x00b' of node 'n' holds a null character"),
        (["\ud800", "a"], "half of a surrogate pair"),
    ],
)
def test_labels_that_pyagrum_cannot_hold_are_refused(labels, reason):
    with pytest.raises(NetworkError, match=reason):
        to_pyagrum(BayesianNetwork({"n": []}, {"n": labels}))


def test_names_that_pyagrum_cannot_hold_are_refused():
    with pytest.raises(NetworkError, match=r"Node name 'n.x00m' holds a null character"):
        to_pyagrum(BayesianNetwork({"n\0m": []}, {"n\0m": [0, 1]}))


# --- what other libraries make --------------------------------------------------------------------


def test_tables_that_pgmpy_was_given_in_any_order_are_read_right():
    model = pgmpy_models.DiscreteBayesianNetwork([("z", "y"), ("a", "y")])
    names = {"y": ["n", "p", "q"], "a": ["lo", "hi"], "z": ["u", "v", "w"]}
    table = np.random.default_rng(1).dirichlet(np.ones(3), size=(2, 3))  # a, z, y
    child_states = {**names, "z": ["w", "u", "v"]}  # not the order of z's own table
    in_child_order = table[:, [2, 0, 1]]
    model.add_cpds(
        TabularCPD("z", 3, [[0.2], [0.3], [0.5]], state_names={"z": names["z"]}),
        TabularCPD("a", 2, [[0.4], [0.6]], state_names={"a": names["a"]}),
        TabularCPD(
            *("y", 3, in_child_order.reshape(6, 3).T, ["a", "z"], [2, 3]), state_names=child_states
        ),
    )
    network = from_pgmpy(model)
    assert network.parents["y"] == ("a", "z")
    assert dict(network.states) == {n: tuple(s) for n, s in names.items()}
    assert np.array_equal(network.cpts["y"], table)


def test_tables_that_contradict_the_pgmpy_model_are_refused():
    model = pgmpy_models.DiscreteBayesianNetwork([("a", "b")])
    own = TabularCPD("a", 2, [[0.4], [0.6]], state_names={"a": ["lo", "hi"]})
    model.add_cpds(own)
    with pytest.raises(NetworkError, match=r"1 of 2 nodes .* 'b' has none"):
        from_pgmpy(model)
    model.add_cpds(TabularCPD("b", 2, [[0.1, 0.2], [0.9, 0.8]], ["a"], [2]))
    with pytest.raises(NetworkError, match=r"different states of 'a': \['lo', 'hi'\] and \[0, 1\]"):
        from_pgmpy(model)
    model.cpds = [own, TabularCPD("b", 2, [[0.1], [0.9]])]
    with pytest.raises(NetworkError, match=r"'b' is given \[\], but the edges"):
        from_pgmpy(model)


def test_a_pgmpy_structure_needs_states():
    model = pgmpy_models.DiscreteBayesianNetwork([("a", "b")])
    with pytest.raises(NetworkError, match="2 of 2 nodes of the pgmpy model have no states"):
        from_pgmpy(model)
    with pytest.raises(NetworkError, match="`states` names 'c'"):
        from_pgmpy(model, states={"a": [0, 1], "b": [0, 1], "c": [0, 1]})
    assert from_pgmpy(model, states={"a": [0, 1], "b": [0, 1]}).edges == (("a", "b"),)
    with pytest.raises(NetworkError, match="its states"):
        from_pgmpy(to_pgmpy(random_network("tree", 3, random_state=0)), states={"a": [0, 1]})
    with pytest.raises(NetworkError, match="found dict"):
        from_pgmpy({})


def test_a_network_made_by_pyagrum_is_read_right():
    bn = gum.fastBN("A{x|y|z}->C[3]<-B{n|p};D[-1,1]->C")
    gum.initRandom(1)
    bn.generateCPTs()
    network = from_pyagrum(bn)
    assert network.states["D"] == ("-1", "0", "1")
    assert network.parents["C"] == tuple(bn.cpt("C").names[1:])
    for state in itertools.product(*(network.states[n] for n in ("A", "B", "D", "C"))):
        setting = dict(zip("ABDC", state, strict=True))
        index = [network.states[n].index(setting[n]) for n in (*network.parents["C"], "C")]
        assert network.cpts["C"][tuple(index)] == bn.cpt("C")[setting]
    with pytest.raises(NetworkError, match="found str"):
        from_pyagrum("A->B")


def test_a_plain_graph_needs_states_and_keeps_the_order_of_its_edges():
    graph = nx.DiGraph([("z", "y"), ("a", "y")])
    with pytest.raises(
        NetworkError, match="3 of 3 nodes of the graph have no states; the first is 'z'"
    ):
        from_networkx(graph)
    states = {n: ["no", "yes"] for n in "ayz"}
    assert from_networkx(graph, states).parents["y"] == ("z", "a")
    with pytest.raises(NetworkError, match="not a node of the graph"):
        from_networkx(graph, {**states, "q": [0, 1]})
    with pytest.raises(NetworkError, match="found Graph"):
        from_networkx(graph.to_undirected())


def test_a_graph_whose_edges_changed_is_not_read_with_old_tables(sprinkler):
    graph = to_networkx(sprinkler)
    graph.remove_edge("sprinkler", "wet")
    with pytest.raises(NetworkError, match=r"carries parents=\['rain', 'sprinkler'\]"):
        from_networkx(graph)
    graph = to_networkx(sprinkler)
    del graph.nodes["rain"]["cpt"]
    with pytest.raises(NetworkError, match=r"2 of 3 nodes carry a table .* 'rain' does not"):
        from_networkx(graph)


def test_the_networkx_bridge_writes_what_the_method_writes(sprinkler):
    ours, methods = to_networkx(sprinkler), sprinkler.to_networkx()
    assert list(ours.edges) == list(methods.edges)
    assert dict(ours.nodes(data=True)).keys() == dict(methods.nodes(data=True)).keys()
    assert ours.nodes["wet"].keys() == methods.nodes["wet"].keys()


def test_pomegranate_keeps_numbers_and_loses_names(sprinkler):
    pytest.importorskip("pomegranate")
    back = from_pomegranate(to_pomegranate(sprinkler))
    assert back.nodes == ("X0", "X1", "X2")
    assert back.states["X0"] == (0, 1, 2)
    assert back.parents["X0"] == ("X1", "X2")
    assert np.allclose(back.probabilities, sprinkler.probabilities, rtol=1e-7, atol=0)
    exact = to_pomegranate(sprinkler, dtype="float64")
    assert from_pomegranate(exact, sprinkler.nodes, sprinkler.states) == sprinkler
    with pytest.raises(NetworkError, match="name the 3 columns"):
        from_pomegranate(exact, nodes=["a", "b"])
    with pytest.raises(NetworkError, match=r"found builtins.int"):
        from_pomegranate(3)
    with pytest.raises(ValueError, match="float32, float64"):
        to_pomegranate(sprinkler, dtype="float16")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pomegranate_gives_rows_the_same_likelihood(sprinkler, dtype):
    torch = pytest.importorskip("torch")
    pytest.importorskip("pomegranate")
    rows = sample(sprinkler, 500, random_state=0)
    ours = robustbn.MaximumLikelihoodEstimator(sprinkler, prior="laplace").fit(rows)
    model = to_pomegranate(ours.network_, dtype=dtype)
    theirs = model.log_probability(torch.tensor(rows.astype(np.int64))).numpy()
    assert np.allclose(theirs, ours.score_samples(rows), atol=1e-5)
    hidden = torch.masked.MaskedTensor(
        torch.tensor([[2, 0, 0]]), torch.tensor([[True, False, True]])
    )
    posterior = model.predict_proba(hidden)[1].numpy()[0]
    evidence = {"wet": "wet", "sprinkler": "off"}
    wanted = _posterior_by_enumeration(ours.network_, "rain", evidence)
    assert np.allclose(posterior, wanted, atol=1e-5)


def test_a_pomegranate_structure_can_be_fitted_and_read_back(sprinkler):
    torch = pytest.importorskip("torch")
    pytest.importorskip("pomegranate")
    structure = sprinkler.with_cpts(None)
    model = to_pomegranate(structure)
    assert from_pomegranate(model, structure.nodes, structure.states) == structure
    with pytest.raises(NetworkError, match="does not know its states"):
        from_pomegranate(model)
    rows = sample(sprinkler, 2000, random_state=0)
    model.fit(torch.tensor(rows.astype(np.int64)))
    counted = robustbn.MaximumLikelihoodEstimator(structure).fit(rows).network_
    learned = from_pomegranate(model, structure.nodes, structure.states)
    assert np.allclose(learned.probabilities, counted.probabilities, atol=1e-5)


# --- the same answers everywhere ------------------------------------------------------------------


def test_posteriors_agree_with_enumeration(sprinkler):
    for node, evidence in [
        ("rain", {"wet": "wet"}),
        ("rain", {"wet": "damp", "sprinkler": "on"}),
        ("wet", {"sprinkler": "off"}),
        ("wet", {}),
    ]:
        wanted = _posterior_by_enumeration(sprinkler, node, evidence)
        assert np.allclose(_posterior_by_pgmpy(sprinkler, node, evidence), wanted, atol=1e-6)
        assert np.allclose(_posterior_by_pyagrum(sprinkler, node, evidence), wanted, atol=1e-6)


def test_posteriors_of_alarm_agree(alarm):
    evidence = {"HRBP": "HIGH", "PRESS": "LOW", "SAO2": "NORMAL"}
    for node in ("LVFAILURE", "INTUBATION", "VENTLUNG"):
        pgmpys = _posterior_by_pgmpy(alarm, node, evidence)
        assert np.allclose(pgmpys, _posterior_by_pyagrum(alarm, node, evidence), atol=1e-6)
        assert np.isclose(pgmpys.sum(), 1)


# --- estimators for pgmpy -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dirty():
    """A network of 16 nodes, a frame of 20,000 rows, one in ten of them bad, and its codes."""
    network = random_network("tree", 16, cards=3, random_state=5)
    codes, is_bad = corrupt(
        sample(network, 20_000, random_state=1), network, "product", 0.1, random_state=2
    )
    return network, _frame(network, codes), codes, is_bad


def test_counting_gives_pgmpys_own_tables(dirty):
    network, frame, *_ = dirty
    weights = np.random.default_rng(0).random(len(frame))
    for sample_weight in (None, weights):
        ours = pgmpy_models.DiscreteBayesianNetwork(network.edges)
        theirs = ours.copy()
        ours.fit(frame, for_pgmpy.MaximumLikelihoodEstimator(), sample_weight=sample_weight)
        theirs.fit(frame, DiscreteMLE(), sample_weight=sample_weight)
        for a, b in zip(ours.get_cpds(), theirs.get_cpds(), strict=True):
            assert a.variables == b.variables
            assert a.state_names == b.state_names
            assert np.allclose(a.values, b.values, atol=1e-12)


def test_a_robust_fit_in_pgmpy_is_much_nearer_to_the_truth(dirty):
    from pgmpy.inference import VariableElimination

    network, frame, codes, is_bad = dirty
    model = pgmpy_models.DiscreteBayesianNetwork(network.edges)
    plain = model.copy().fit(frame, DiscreteMLE())
    estimator = for_pgmpy.RobustEstimator(contamination="auto", random_state=0)
    assert model.fit(frame, estimator=estimator) is model
    assert model.check_model()
    far = robustbn.total_variation(from_pgmpy(plain), network)
    near = robustbn.total_variation(from_pgmpy(model), network)
    assert near < far / 3
    assert abs(estimator.contamination_ - 0.1) < 0.01
    assert (estimator.row_weights_[is_bad] < 0.5).mean() > 0.8
    assert estimator.kinds_ == estimator.estimator_.kinds_
    direct = robustbn.RobustEstimator(network, random_state=0).fit(codes)
    assert np.allclose(estimator.row_weights_, direct.row_weights_, atol=1e-6)
    assert from_pgmpy(model).has_same_structure(estimator.network_)
    answer = VariableElimination(model).query(["X3"], evidence={"X0": "1"}, show_progress=False)
    wanted = _posterior_by_pyagrum(estimator.network_, "X3", {"X0": "1"})
    assert np.allclose(answer.values, wanted, atol=1e-6)


def test_robust_tables_of_alarm_in_pgmpy(alarm):
    clean = sample(alarm, 20_000, random_state=0)
    codes, _ = corrupt(clean, alarm, "product", 0.1, random_state=0)
    frame = _frame(alarm, codes)
    model = to_pgmpy(alarm.with_cpts(None))
    with pytest.warns(robustbn.exceptions.UnseenConfigurationWarning):
        model.fit(frame, for_pgmpy.RobustEstimator(random_state=0))
    learned = from_pgmpy(model)
    assert learned.states == alarm.states
    names = {n: list(s) for n, s in alarm.states.items()}
    plain = to_pgmpy(alarm.with_cpts(None)).fit(frame, DiscreteMLE(state_names=names))
    far = robustbn.total_variation(from_pgmpy(plain), alarm)
    near = robustbn.total_variation(learned, alarm)
    assert near < far / 3


def test_row_weights_make_pgmpys_own_estimator_robust(dirty):
    network, frame, codes, _ = dirty
    fit = robustbn.RobustEstimator(network, random_state=0).fit(codes)
    model = to_pgmpy(network.with_cpts(None))
    model.fit(frame, DiscreteMLE(), sample_weight=fit.row_weights_)
    assert np.allclose(
        from_pgmpy(model).probabilities, fit.network_.probabilities, rtol=0, atol=1e-6
    )


def test_row_weights_make_pyagrums_learner_robust(dirty, tmp_path):
    network, frame, codes, _ = dirty
    n_rows = 4000
    fit = robustbn.RobustEstimator(network, random_state=0).fit(codes[:n_rows])
    path = tmp_path / "rows.csv"
    frame[:n_rows].to_csv(path, index=False)
    template = to_pyagrum(network.with_cpts(None))
    learner = gum.BNLearner(str(path), template)
    for row, weight in enumerate(fit.row_weights_.tolist()):
        learner.setRecordWeight(row, weight)
    learned = from_pyagrum(learner.learnParameters(template.dag()))
    assert learned.has_same_structure(network)
    assert np.allclose(learned.probabilities, fit.network_.probabilities, rtol=0, atol=1e-6)
    assert np.abs(learned.probabilities - fit.plain_network_.probabilities).max() > 0.05


def test_settings_are_those_of_the_robustbn_estimators():
    for ours, theirs in [
        (for_pgmpy.RobustEstimator, robustbn.RobustEstimator),
        (for_pgmpy.MaximumLikelihoodEstimator, robustbn.MaximumLikelihoodEstimator),
    ]:
        here = dict(inspect.signature(ours).parameters)
        there = dict(inspect.signature(theirs).parameters)
        del here["state_names"], there["network"]
        for name in ("streaming", "place"):  # pgmpy's rows are a frame
            there.pop(name, None)
        assert {n: p.default for n, p in here.items()} == {n: p.default for n, p in there.items()}
        copy = ours(prior="bdeu").set_params(pseudo_count=2.0).clone()
        assert copy.get_params()["prior"] == "bdeu"
        assert copy.pseudo_count == 2.0


@pytest.fixture
def wet():
    rows = pd.DataFrame({"rain": ["no", "no", "yes", "no"] * 5, "wet": [0, 1, 1, 0] * 5})
    return pgmpy_models.DiscreteBayesianNetwork([("rain", "wet")]), rows


def _count(model, rows, **settings):
    estimator = for_pgmpy.MaximumLikelihoodEstimator(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", robustbn.exceptions.UnseenConfigurationWarning)
        estimator.fit(model, rows)
    return estimator


def test_states_are_those_given_then_those_known_then_those_seen(wet):
    model, rows = wet
    assert _count(model, rows).state_names_ == {"rain": ["no", "yes"], "wet": [0, 1]}
    given = _count(model, rows, state_names={"rain": ["yes", "maybe", "no"]})
    assert given.state_names_ == {"rain": ["yes", "maybe", "no"], "wet": [0, 1]}
    assert given.parameters_[0].values.tolist() == [0.25, 0, 0.75]
    known = BayesianNetwork({"rain": [], "wet": ["rain"]}, {"rain": ["yes", "no"], "wet": [1, 0]})
    assert _count(to_pgmpy(known), rows).state_names_["wet"] == [1, 0]
    categories = rows.assign(rain=pd.Categorical(rows["rain"], categories=["x", "yes", "no"]))
    assert _count(model, categories).state_names_["rain"] == ["no", "yes"]


def test_a_dag_without_tables_is_enough(wet):
    from pgmpy.base import DAG

    _, rows = wet
    estimator = _count(DAG([("rain", "wet")]), rows)
    assert [cpd.variable for cpd in estimator.parameters_] == ["rain", "wet"]


def test_missing_values_are_counted_and_refused(wet):
    model, rows = wet
    rows = rows.astype(object)
    rows.loc[[3, 4], "wet"] = None
    rows.loc[7, "rain"] = np.nan
    for estimator in (for_pgmpy.RobustEstimator, for_pgmpy.MaximumLikelihoodEstimator):
        with pytest.raises(DataError, match=r"'wet': 2 of 20 rows .* at row 3\. 1 more"):
            model.fit(rows, estimator(on_missing="error"))


def test_frames_that_do_not_fit_the_model_are_refused(wet):
    model, rows = wet
    with pytest.raises(
        DataError, match=r"1 of 2 nodes have no column; the first is 'rain'.*'Rain'"
    ):
        _count(model, rows.rename(columns={"rain": "Rain"}))
    with pytest.raises(DataError, match="'wet' appears 2 times"):
        _count(model, pd.concat([rows, rows[["wet"]]], axis=1))
    with pytest.raises(DataError, match=r"'wet': 10 of 20 rows .* at row 1: 1\."):
        _count(model, rows, state_names={"wet": [0, 2]})
    with pytest.raises(DataError, match="cannot be put in order"):
        _count(model, rows.assign(wet=["a", 1] * 10))
    with pytest.raises(DataError, match="holds no values"):
        _count(model, rows[:0])
    with pytest.raises(DataError, match="no rows"):
        _count(model, rows[:0], state_names={"rain": ["no", "yes"], "wet": [0, 1]})
    with pytest.raises(DataError, match="found ndarray"):
        _count(model, rows.to_numpy())


def test_wrong_settings_are_refused(wet):
    model, rows = wet
    with pytest.raises(ValueError, match=r"Did you mean 0\.10"):
        model.fit(rows, for_pgmpy.RobustEstimator(contamination=10))
    with pytest.raises(ValueError, match="Unknown prior"):
        model.fit(rows, for_pgmpy.MaximumLikelihoodEstimator(prior="jeffreys"))
    with pytest.raises(NetworkError, match="state_names names 'Wet'"):
        _count(model, rows, state_names={"Wet": [0, 1]})
    with pytest.raises(DataError, match="one weight per row"):
        model.fit(rows, for_pgmpy.MaximumLikelihoodEstimator(), sample_weight=[1.0])
    latent = pgmpy_models.DiscreteBayesianNetwork([("rain", "wet")], latents={"rain"})
    with pytest.raises(NetworkError, match="Latent nodes"):
        _count(latent, rows)
    numbers = pgmpy_models.DiscreteBayesianNetwork([(0, 1)])
    with pytest.raises(NetworkError, match="Node names are strings; found 0"):
        _count(numbers, rows.set_axis([0, 1], axis=1))


# --- what is not installed costs nothing ----------------------------------------------------------


def test_the_estimators_of_pgmpy_are_there_without_another_import():
    assert robustbn.__getattr__("pgmpy") is for_pgmpy
    assert "pgmpy" not in dir(robustbn)


def test_importing_robustbn_imports_no_other_library():
    code = (
        "import sys, robustbn, robustbn._networks.libraries\n"
        "print([m for m in ('pgmpy', 'pyagrum', 'torch', 'pomegranate', 'networkx', 'pandas') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "cross"),
    [
        ("pgmpy.models", to_pgmpy),
        ("pyagrum", to_pyagrum),
        ("pomegranate.bayesian_network", to_pomegranate),
        ("networkx", to_networkx),
    ],
)
def test_a_missing_library_is_named(module, cross, sprinkler, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'robustbn\["):
        cross(sprinkler)
