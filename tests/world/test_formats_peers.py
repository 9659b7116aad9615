"""Network files of others: published networks, and what pyAgrum and pgmpy read and write."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest

from robustbn import BayesianNetwork, read_network, write_network
from tests.unit.networks.test_formats import (
    FORMATS,
    assert_same,
    read_all_names,
    write_all_names,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


# --- what other libraries read and write ------------------------------------------------------


def published():
    """Return the paths of the published networks inside pgmpy, without importing it."""
    from importlib.util import find_spec

    spec = find_spec("pgmpy")
    if spec is None or spec.origin is None:
        return []
    return sorted((Path(spec.origin).parent / "utils" / "example_models").glob("*.bif.gz"))


SMALL = {"alarm", "asia", "cancer", "child", "earthquake", "hailfinder", "insurance", "sachs",
         "survey", "win95pts", "water", "munin1"}  # fmt: skip


@pytest.mark.skipif(len(published()) != 24, reason="pgmpy with its 24 networks is not here")
def test_all_24_published_networks_load(folder):
    sizes = {}
    for path in published():
        network = read_network(path)
        assert network.has_cpts
        sizes[path.name.split(".")[0]] = (network.n_nodes, len(network.edges))
    assert sizes["asia"] == (8, 8)
    assert sizes["alarm"] == (37, 46)
    assert sizes["munin"] == (1041, 1397)
    assert sizes["pathfinder"] == (109, 195)


@pytest.mark.parametrize("path", [p for p in published() if p.name.split(".")[0] in SMALL])
def test_published_networks_keep_every_bit_in_every_format(folder, path):
    network = read_network(path)
    for name in FORMATS:
        write_all_names(network, folder / f"p.{name}")
        assert_same(read_all_names(network, folder / f"p.{name}"), network)


def from_pyagrum(bn):
    """Return the network that pyAgrum holds; its axes run the other way."""
    parents, states, cpts = {}, {}, {}
    for name in bn.names():
        cpt = bn.cpt(name)
        axes = list(cpt.names)[::-1]
        states[name] = bn.variable(name).labels()
        parents[name] = axes[:-1]
        values = np.asarray(cpt.toarray(), float)
        cpts[name] = values / values.sum(axis=-1, keepdims=True)
    return BayesianNetwork(parents, states, cpts)


def assert_close(found, expected, atol):
    """Compare tables node by node, whatever the order of nodes and parents."""
    assert set(found.nodes) == set(expected.nodes)
    for node in expected.nodes:
        assert found.states[node] == expected.states[node]
        assert set(found.parents[node]) == set(expected.parents[node])
        axes = [found.parents[node].index(p) for p in expected.parents[node]]
        table = found.cpts[node].transpose(*axes, len(axes))
        np.testing.assert_allclose(table, expected.cpts[node], rtol=0, atol=atol)


def mixed_network(max_parents):
    """Plain names, different numbers of states, parents in an order of their own."""
    cards = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 3}
    parents = {"a": [], "b": ["a"], "c": ["b", "a"], "d": ["a", "c", "b"], "e": ["d"]}
    rng = np.random.default_rng(7)
    parents = {n: ps[:max_parents] for n, ps in parents.items()}
    return BayesianNetwork(
        parents,
        {n: [f"{n}{v}" for v in range(k)] for n, k in cards.items()},
        {n: rng.dirichlet(np.ones(cards[n]), [cards[p] for p in ps]) for n, ps in parents.items()},
    )


# pyAgrum takes the parents of XDSL and UAI in the reverse of the order that the formats say (and
# that pgmpy takes in XDSL), so there it is compared on nodes with one parent.
PYAGRUM = [("bif", 3), ("bifxml", 3), ("net", 3), ("xdsl", 1), ("uai", 1)]


@pytest.mark.parametrize(("name", "max_parents"), PYAGRUM)
def test_pyagrum_reads_what_we_write_and_we_read_what_it_writes(tmp_path, name, max_parents):
    gum = pytest.importorskip("pyagrum")
    network = mixed_network(max_parents)
    ours, theirs = str(tmp_path / f"ours.{name}"), str(tmp_path / f"theirs.{name}")
    write_all_names(network, ours)
    read = gum.loadBN(ours)
    gum.saveBN(read, theirs)
    if name == "uai":  # other names, the same numbers
        network = read_network(ours)
    assert_close(from_pyagrum(read), network, 1e-6)
    assert_close(read_network(theirs, normalize=True), network, 1e-5)


# Not child: a label of its own with a slash stops pyAgrum. The largest would take too long here.
READABLE = [p for p in published() if "child" not in p.name and p.stat().st_size < 30_000]


@pytest.mark.parametrize("path", READABLE)
def test_pyagrum_reads_the_published_networks_as_we_do(folder, path):
    gum = pytest.importorskip("pyagrum")
    plain = folder / path.name.removesuffix(".gz")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    assert_close(from_pyagrum(gum.loadBN(str(plain))), read_network(plain), 1e-6)


def from_pgmpy(model):
    parents, states, cpts = {}, {}, {}
    for cpd in model.get_cpds():
        node, *given = cpd.variables
        parents[node], states[node] = given, cpd.state_names[node]
        order = [*range(1, len(given) + 1), 0]
        cpts[node] = cpd.values.transpose(order)
    return BayesianNetwork(parents, states, cpts)


@pytest.fixture(scope="module")
def pgmpy_formats():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("pgmpy.readwrite")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["bif", "xmlbif", "net", "xdsl"])
def test_pgmpy_reads_what_we_write_and_we_read_what_it_writes(tmp_path, pgmpy_formats, name):
    network = mixed_network(3)
    ours, theirs = str(tmp_path / f"ours.{name}"), str(tmp_path / f"theirs.{name}")
    write_network(network, ours)
    model = getattr(pgmpy_formats, f"{name.upper()}Reader")(ours).get_model()
    assert_close(from_pgmpy(model), network, 1e-15)
    getattr(pgmpy_formats, f"{name.upper()}Writer")(model).write(theirs)
    exact = 1e-7 if name == "net" else 1e-15  # pgmpy rounds in NET
    assert_close(read_network(theirs, normalize=True), network, exact)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", [p for p in published() if p.name[:4] in ("asia", "surv", "sach")])
def test_pgmpy_reads_the_published_networks_as_we_do(folder, pgmpy_formats, path):
    plain = folder / path.name.removesuffix(".gz")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    model = pgmpy_formats.BIFReader(str(plain)).get_model()
    assert_close(from_pgmpy(model), read_network(path), 1e-15)
