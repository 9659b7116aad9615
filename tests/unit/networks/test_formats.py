"""Network files: what each format holds, what is refused, and what others read and write."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import robustbn
from robustbn import BayesianNetwork, read_network, write_network
from robustbn._networks.edges import read_edge, read_parents, write_edge
from robustbn.exceptions import NetworkError, StandInWarning, UnseenConfigurationWarning
from tests.strategies import networks

ROOT = Path(__file__).parents[3]
FORMATS = ["json", "bif", "xmlbif", "net", "xdsl", "uai"]
NAMED = [f for f in FORMATS if f != "uai"]

HEAD = """network n {
}
variable a {
  type discrete [ 2 ] { no, yes };
}
variable b {
  type discrete [ 2 ] { no, yes };
}
probability ( a ) {
  table 0.4, 0.6;
}
"""
BIF = HEAD + "probability ( b | a ) {\n  (no) 0.5, 0.5;\n  (yes) 0.25, 0.75;\n}\n"


NET = """net { }
node a { states = ("no" "yes"); }
node b { states = ("no" "yes"); }
potential (a) { data = (0.4 0.6); }
potential (b | a) {
  data = ((0.5 0.5)
          (0.25 0.75));
}
"""
XMLBIF = """<BIF VERSION="0.3"><NETWORK>
<VARIABLE TYPE="nature"><NAME>a</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>b</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<DEFINITION><FOR>a</FOR><TABLE>0.4 0.6</TABLE></DEFINITION>
<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>
0.5 0.5 <!-- a remark
of two lines -->
0.25 0.75</TABLE></DEFINITION>
</NETWORK></BIF>
"""
XDSL = """<smile version="1.0"><nodes>
<cpt id="a"><state id="no"/><state id="yes"/><probabilities>0.4 0.6</probabilities></cpt>
<cpt id="b"><state id="no"/><state id="yes"/>
<parents>a</parents><probabilities>0.5 0.5
0.25 0.75</probabilities></cpt>
</nodes></smile>
"""
UAI = "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n\n2\n0.4 0.6\n4\n0.5 0.5\n0.25 0.75\n"
JSON = """{"format": "robustbn-network", "version": 1, "nodes": [
{"name": "a", "states": ["no", "yes"], "parents": [], "probabilities": [0.4, 0.6]},
{"name": "b", "states": ["no", "yes"], "parents": ["a"], "probabilities": [0.5, 0.5, 0.25, 0.75]}
]}
"""
TEXTS = {"bif": BIF, "net": NET, "xmlbif": XMLBIF, "xdsl": XDSL, "uai": UAI, "json": JSON}
LINES = {"bif": 14, "net": 7, "xmlbif": 8, "xdsl": 5, "uai": 12, "json": 3}


def write_all_names(network, path):
    """Write, numbered if UAI needs it, and let stand-ins pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StandInWarning)
        write_network(network, path, numbered=".uai" in Path(path).name)


def read_all_names(network, path):
    return read_network(path, states=network.states if ".uai" in Path(path).name else None)


def assert_same(found, expected):
    assert found == expected
    assert found.nodes == expected.nodes
    if expected.has_cpts:
        assert found.probabilities.tobytes() == expected.probabilities.tobytes()


def refused(path, text, message, **options):
    """Write the text, and check that reading it is refused with the file's name."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(NetworkError, match=message) as error:
        read_network(path, **options)
    assert path.name in str(error.value)


# --- round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [f"{f}{gz}" for f in FORMATS for gz in ("", ".gz")])
def test_every_format_keeps_every_bit(tmp_path, sprinkler, alarm, suffix):
    for network in (sprinkler, alarm):
        path = tmp_path / f"n.{suffix}"
        write_all_names(network, path)
        assert_same(read_all_names(network, path), network)
        assert (path.read_bytes()[:2] == b"\x1f\x8b") == suffix.endswith(".gz")


@pytest.mark.parametrize("name", FORMATS)
def test_nodes_of_more_states_than_a_byte_holds_come_back(tmp_path, name):
    rng = np.random.default_rng(0)
    network = BayesianNetwork(
        {"a": [], "b": ["a"]},
        {"a": [f"s{v}" for v in range(1000)], "b": ["no", "yes"]},
        {"a": rng.dirichlet(np.ones(1000)), "b": rng.dirichlet(np.ones(2), 1000)},
    )
    write_all_names(network, tmp_path / f"n.{name}")
    assert_same(read_all_names(network, tmp_path / f"n.{name}"), network)


@pytest.mark.parametrize("name", NAMED)
def test_a_structure_without_tables_is_kept(tmp_path, sprinkler, name):
    bare = sprinkler.with_cpts(None)
    write_network(bare, tmp_path / f"n.{name}")
    assert read_network(tmp_path / f"n.{name}") == bare


def test_uai_needs_tables(tmp_path, sprinkler):
    with pytest.raises(NetworkError, match="holds tables, and this network has none"):
        write_network(sprinkler.with_cpts(None), tmp_path / "n.uai", numbered=True)


HOSTILE = [
    "", " ", "a b", "a,b", 'say "x"', "<tag>", "a/b", "a//b", "/*", "back\\slash", "\\u0041", "é",
    "日本", "😀", "two\nlines", "tab\t", " lead", "trail ", "0", "1x", "probability", "table",
    "default", "property", "network", "node", "net", "potential", "data", "states", "{", "}", "(",
    ")", "|", ";", "=", "%", "#", "&amp;", "]]>", "'", "\x00", "\x1f", "\x85", "\u2028", "\ufeff",
    "\uffff", "n_0", "N_0", "A", "a", "__", "-1", "1e5", "nan", "True", "\r", "\r\n",
]  # fmt: skip


@st.composite
def hostile_networks(draw):
    """Two to four nodes whose names and labels are chosen to break a file."""
    word = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=6))
    names = draw(st.lists(word, min_size=2, max_size=4, unique=True))
    states = {n: draw(st.lists(word, min_size=1, max_size=4, unique=True)) for n in names}
    order = draw(st.permutations(names))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    parents = {n: [p for p in order[: order.index(n)] if draw(st.booleans())][::-1] for n in names}
    tables = {
        n: rng.dirichlet(np.ones(len(states[n])), size=[len(states[p]) for p in parents[n]])
        for n in names
    }
    return BayesianNetwork(parents, states, tables)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@given(network=hostile_networks())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_label_comes_back_from_every_format(folder, network):
    for name in FORMATS:
        path = folder / f"hostile.{name}"
        write_all_names(network, path)
        assert_same(read_all_names(network, path), network)


@given(network=networks(max_nodes=6, max_cells=200))
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_random_tables_come_back_from_every_format(folder, network):
    for name in FORMATS:
        write_all_names(network, folder / f"random.{name}")
        assert_same(read_all_names(network, folder / f"random.{name}"), network)


@pytest.mark.parametrize("name", FORMATS)
def test_a_lone_surrogate_is_refused_and_nothing_is_written(tmp_path, name):
    network = BayesianNetwork({"a": []}, {"a": ["\ud800", "x"]}, {"a": [0.5, 0.5]})
    if name in ("uai", "xdsl"):  # holds no labels; holds them as escaped JSON
        write_all_names(network, tmp_path / f"n.{name}")
        assert read_all_names(network, tmp_path / f"n.{name}") == network
        return
    with pytest.raises(NetworkError, match="lone surrogate"):
        write_network(network, tmp_path / f"n.{name}")
    assert not list(tmp_path.iterdir())


def test_a_stand_in_is_never_silent(tmp_path):
    network = BayesianNetwork({"a b": []}, {"a b": ["<5", ">5", "_5"]}, {"a b": [0.1, 0.2, 0.7]})
    with pytest.warns(StandInWarning, match=r"NET file.*a_b for 'a b'"):
        write_network(network, tmp_path / "n.net")
    with pytest.warns(StandInWarning, match=r"XDSL file.*a_b for 'a b', s__5 for '<5'"):
        write_network(network, tmp_path / "n.xdsl")
    for name in ("net", "xdsl"):
        assert read_network(tmp_path / f"n.{name}") == network


def test_json_keeps_the_type_of_labels_and_text_formats_hold_text(tmp_path):
    network = BayesianNetwork({"a": []}, {"a": [0, True, 2.5, "x"]}, {"a": [0.1, 0.2, 0.3, 0.4]})
    write_network(network, tmp_path / "n.json")
    assert [type(s) for s in read_network(tmp_path / "n.json").states["a"]] == [
        int, bool, float, str,
    ]  # fmt: skip
    for name in NAMED[1:]:
        write_all_names(network, tmp_path / f"n.{name}")
        assert read_network(tmp_path / f"n.{name}").states["a"] == ("0", "True", "2.5", "x")


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1, "1"], "same text"), ([None, "x"], "NoneType"), ([(1,), "x"], "tuple")],
)
def test_labels_that_text_cannot_tell_apart_are_refused(tmp_path, labels, message):
    network = BayesianNetwork({"a": []}, {"a": labels})
    for name in NAMED[1:]:
        with pytest.raises(NetworkError, match=message):
            write_network(network, tmp_path / f"n.{name}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("label", [None, (1, 2), float("nan"), float("inf")])
def test_labels_that_json_cannot_hold_are_refused(tmp_path, label):
    with pytest.raises(NetworkError, match="only strings and finite numbers"):
        write_network(BayesianNetwork({"a": []}, {"a": [label]}), tmp_path / "n.json")


def test_numpy_labels_are_written_as_what_they_are_equal_to(tmp_path):
    network = BayesianNetwork({"a": []}, {"a": [np.int64(3), np.str_("x"), np.float64(0.5)]})
    write_network(network, tmp_path / "n.json")
    assert read_network(tmp_path / "n.json") == network


def test_uai_drops_names_only_when_told_to(tmp_path, sprinkler):
    with pytest.raises(NetworkError, match="no names"):
        write_network(sprinkler, tmp_path / "n.uai")
    write_network(sprinkler, tmp_path / "n.uai", numbered=True)
    numbered = read_network(tmp_path / "n.uai")
    assert numbered.nodes == ("0", "1", "2")
    assert numbered.states["0"] == ("0", "1", "2")
    assert numbered.parents["0"] == ("1", "2")
    write_network(numbered, tmp_path / "again.uai")
    assert_same(read_network(tmp_path / "again.uai"), numbered)
    with pytest.raises(NetworkError, match="3 nodes, but `states` names 1"):
        read_network(tmp_path / "n.uai", states={"a": ["x"]})
    wrong = {**sprinkler.states, "rain": ("no",)}
    with pytest.raises(NetworkError, match=r"line 3: node 1 has 2 states, but .* 1 for 'rain'"):
        read_network(tmp_path / "n.uai", states=wrong)


# --- what the formats mean --------------------------------------------------------------------


def test_bif_lines_may_come_in_any_order_with_a_default_and_comments(tmp_path):
    text = HEAD + (
        "// a remark\nprobability ( b | a ) { /* two\nlines */ property x;\n"
        '  default 0.5 /* half */ 0.5;\n  ("yes") .25, 75e-2; // not plain\n}\n'
    )
    (tmp_path / "n.bif").write_text(text)
    assert read_network(tmp_path / "n.bif").cpts["b"].tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_a_whole_table_in_bif_has_the_states_of_the_node_slowest(tmp_path):
    (tmp_path / "n.bif").write_text(HEAD + "probability(b|a){table 0.1 0.2 0.9 0.8;}")
    assert read_network(tmp_path / "n.bif").cpts["b"].tolist() == [[0.1, 0.9], [0.2, 0.8]]


def test_the_first_form_of_bif_without_bars_and_commas_is_read(tmp_path):
    text = BIF.replace(" | ", " ").replace(",", " ").replace("variable a", 'variable "a"')
    (tmp_path / "old.bif").write_text(text)
    (tmp_path / "new.bif").write_text(BIF)
    assert read_network(tmp_path / "old.bif") == read_network(tmp_path / "new.bif")


def test_comments_inside_an_xml_table_are_passed_over(tmp_path, sprinkler):
    write_network(sprinkler, tmp_path / "n.xmlbif")
    text = (tmp_path / "n.xmlbif").read_text().replace("<TABLE>", "<TABLE><!-- first\nrow -->")
    (tmp_path / "n.xmlbif").write_text(text)
    assert read_network(tmp_path / "n.xmlbif") == sprinkler


def test_net_words_without_quotes_and_flat_data_are_read(tmp_path):
    text = (
        'net { name = x; }\nnode a { states = (no yes); label = "A"; }\n'
        'discrete node b { states = ("no" "yes"); }\npotential (a |) { data = (0.4 0.6); }\n'
        "potential (b | a) { data = (0.5 0.5 % a=no\n 0.25 0.75); }\n"
    )
    (tmp_path / "n.net").write_text(text)
    (tmp_path / "n.bif").write_text(BIF)
    assert read_network(tmp_path / "n.net") == read_network(tmp_path / "n.bif")


def test_a_deterministic_node_of_xdsl_is_a_table_of_zeros_and_ones(tmp_path):
    text = (
        '<smile version="1.0"><nodes><cpt id="a"><state id="x"/><state id="y"/>'
        "<probabilities>0.5 0.5</probabilities></cpt>"
        '<deterministic id="b"><state id="u"/><state id="v"/><parents>a</parents>'
        "<resultingstates>v u</resultingstates></deterministic></nodes></smile>"
    )
    (tmp_path / "n.xdsl").write_text(text)
    assert read_network(tmp_path / "n.xdsl").cpts["b"].tolist() == [[0, 1], [1, 0]]


def test_backslashes_of_other_programs_are_read_to_the_letter(tmp_path):
    (tmp_path / "n.bif").write_text(
        BIF.replace("{ no, yes }", r'{ no, "C:\u0041" }', 1).replace("(yes)", r'("C:\u0041")')
    )
    assert read_network(tmp_path / "n.bif").states["a"] == ("no", r"C:\u0041")


@pytest.mark.parametrize("head", [b"", "\ufeff".encode()])
def test_a_byte_order_mark_is_passed_over(tmp_path, head):
    (tmp_path / "n.bif").write_bytes(head + BIF.encode())
    assert read_network(tmp_path / "n.bif").nodes == ("a", "b")


def test_the_suffix_says_the_format_and_format_overrides_it(tmp_path):
    (tmp_path / "N.BIF").write_text(BIF)
    (tmp_path / "n.txt").write_text(BIF)
    assert read_network(tmp_path / "n.txt", format="bif") == read_network(tmp_path / "N.BIF")
    network = read_network(tmp_path / "N.BIF")
    write_network(network, tmp_path / "m.txt", format="net")
    assert read_network(tmp_path / "m.txt", format="net") == network
    with pytest.raises(NetworkError, match="no network format 'x'; there are json, bif"):
        read_network(tmp_path / "N.BIF", format="x")


def test_xml_files_are_told_apart_by_what_is_inside(tmp_path, sprinkler):
    write_network(sprinkler, tmp_path / "n.xml")
    assert read_network(tmp_path / "n.xml") == sprinkler
    write_network(sprinkler, tmp_path / "genie.xml", format="xdsl")
    with pytest.raises(NetworkError, match=r"This is a GeNIe file: name it \.xdsl"):
        read_network(tmp_path / "genie.xml")
    refused(tmp_path / "o.xml", "<html/>", "outermost tag of an XMLBIF network is <BIF>")


# --- configurations that were never seen ------------------------------------------------------


@pytest.mark.parametrize("nan", ["nan", "NaN", "-nan"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_configuration_of_nan_is_read_as_unknown_and_told(tmp_path, name, nan):
    path = tmp_path / f"n.{name}"
    nan = "NaN" if name == "json" else nan
    path.write_text(TEXTS[name].replace("0.25", nan).replace("0.75", nan))
    with pytest.warns(UnseenConfigurationWarning) as caught:
        network = read_network(path)
    a, b = network.nodes
    yes = network.states[a][1]
    assert str(caught[0].message) == (
        f"{path}: 1 of 3 configurations has no probabilities (nan): {b} given {a} = {yes}. "
        "Its states are assumed to be equally likely."
    )
    assert caught[0].filename == __file__
    assert network.cpts[b].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert network.is_unknown.tolist() == [False, False, True]
    assert read_network(path, tables=False) == network.with_cpts(None)


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_unknown_stays_unknown_in_every_format_and_can_be_fitted(tmp_path, name):
    path, again = tmp_path / f"n.{name}", tmp_path / f"m.{name}"
    path.write_text(TEXTS[name].replace("0.25", "NaN").replace("0.75", "NaN"))
    network = read_network(path)
    write_network(network, again)
    assert read_network(again) == network
    assert read_network(again) != network.with_cpts(network.cpts)
    rows = robustbn.sample(network, 500, random_state=0)
    for estimator in (robustbn.MaximumLikelihoodEstimator, robustbn.RobustEstimator):
        learned = estimator(network).fit(rows).network_
        assert not learned.is_unknown.any()
        assert np.isfinite(learned.probabilities).all()


def test_the_script_for_networks_of_bnrep_checks_a_folder(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("bnrep", ROOT / "scripts/bnrep.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / "good.bif").write_text(
        "network unknown {\n}\n"
        "variable Age {\n  type discrete [ 2 ] { 14-34, >=_35 };\n}\n"
        "variable Rent {\n  type discrete [ 3 ] { <500, 500+, none };\n}\n"
        "probability ( Age ) {\n  table 0.25, 0.75;\n}\n"
        "probability ( Rent | Age ) {\n"
        "  (14-34) NaN, NaN, NaN;\n  (>=_35) 0.5, 0.25, 0.25;\n}\n"
    )
    assert script.main([str(tmp_path)]) == 0
    assert "1 networks, 1 with unknown configurations, 0 failed" in capsys.readouterr().out
    half = (tmp_path / "good.bif").read_text().replace("NaN, NaN, NaN", "NaN, 0.5, 0.5")
    (tmp_path / "half.bif").write_text(half)
    assert script.main([str(tmp_path)]) == 1
    assert script.main([]) == 0
    assert "write.bif(" in capsys.readouterr().out


def test_all_configurations_of_nan_are_counted_and_some_are_named(tmp_path):
    rows = "".join(f"  (s{k}) NaN, NaN;\n" for k in range(9))
    labels = ", ".join(f"s{k}" for k in range(9))
    (tmp_path / "n.bif").write_text(
        f"variable a {{ type discrete [ 9 ] {{ {labels} }}; }}\n"
        "variable b { type discrete [ 2 ] { no, yes }; }\n"
        f"probability ( a ) {{ table {', '.join(['nan'] * 9)}; }}\n"
        f"probability ( b | a ) {{\n{rows}}}\n"
    )
    with pytest.warns(UnseenConfigurationWarning) as caught:
        network = read_network(tmp_path / "n.bif")
    assert str(caught[0].message).endswith(
        "10 of 10 configurations have no probabilities (nan): a; b given a = s0; b given a = s1 "
        "and 7 more. Their states are assumed to be equally likely."
    )
    np.testing.assert_allclose(network.cpts["a"], 1 / 9)


# --- edge lists -------------------------------------------------------------------------------


@pytest.mark.parametrize("title", ["", "parent,child\n"])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_an_edge_list_with_its_states_is_a_structure(tmp_path, title, separator):
    suffix = "csv" if separator == "," else "tsv"
    edges = tmp_path / f"edges.{suffix}"
    edges.write_text(
        (title + 'b,"c, d"\na,"c, d"\n\n')
        .replace("b,", f"b{separator}")
        .replace("a,", f"a{separator}")
        .replace("parent,", f"parent{separator}")
    )
    (tmp_path / "s.json").write_text('{"a": [0, 1], "b": ["x", "y"], "c, d": [true, false]}')
    (tmp_path / "s.csv").write_text('node,state\na,0\na,1\nb,x\nb,y\n"c, d",x\n"c, d",\n')
    network = read_network(edges, states=tmp_path / "s.json")
    assert network.nodes == ("a", "b", "c, d")
    assert network.parents["c, d"] == ("b", "a")
    assert network.states == {"a": (0, 1), "b": ("x", "y"), "c, d": (True, False)}
    assert read_network(edges, states=network.states) == network
    assert read_network(edges, states=tmp_path / "s.csv").states["c, d"] == ("x", "")


@pytest.mark.parametrize("title", [False, True])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt"])
@pytest.mark.parametrize(
    "between", [",", ", ", " , ", "->", " -> ", " \u2192 ", "\t", " ", "   ", ";", "; "]
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_an_edge_list_is_read_whatever_stands_between_the_names(
    tmp_path, title, suffix, between, quote
):
    pairs = [("from", "to")] * title + [("b", "c-d"), ("a", "c-d")]
    lines = [f"{quote}{parent}{quote}{between}{quote}{child}{quote}" for parent, child in pairs]
    path = tmp_path / f"edges.{suffix}"
    path.write_text("\n".join([*lines[:-1], "", f" {lines[-1]} "]) + "\r\n")
    assert read_parents(path) == {"b": [], "c-d": ["b", "a"], "a": []}
    network = read_network(path, states={"a": [0, 1], "b": [0, 1], "c-d": [0, 1]})
    assert network.parents["c-d"] == ("b", "a")


@pytest.mark.parametrize(
    ("line", "edge"),
    [
        ("blood pressure, heart rate", ("blood pressure", "heart rate")),
        ("blood pressure -> heart rate;", ("blood pressure", "heart rate")),
        ('"a, b" -> "c -> d"', ("a, b", "c -> d")),
        ('"say ""hi""";b', ('say "hi"', "b")),
        ('" a "," b"', (" a ", " b")),
        ('"two\nlines",b', ("two\nlines", "b")),
        ('a 5" pipe,b', ('a 5" pipe', "b")),
        ("a;b,c", ("a;b", "c")),
    ],
)
def test_names_of_an_edge_list_may_hold_blanks_and_what_stands_between_them(tmp_path, line, edge):
    (tmp_path / "edges.csv").write_text(line)
    assert read_parents(tmp_path / "edges.csv") == {edge[0]: [], edge[1]: [edge[0]]}
    assert read_edge(line) == edge
    assert read_edge(write_edge(*edge)) == edge


@pytest.mark.parametrize(
    ("edges", "states", "message"),
    [
        ("a,b\n", None, "does not say which states"),
        ("a,b\na,z\n", {"a": [0], "b": [0]}, "line 2: the edge 'a' -> 'z' names 'z'"),
        ('a," b"\n', {"a": [0], "b": [0]}, "line 1: .* Did you mean 'b', without the blanks"),
        ("a|b\n", {"a": [0], "b": [0]}, "line 1: expected two columns, parent,child"),
        ("a,b\na\n", {"a": [0], "b": [0]}, "line 2: expected two columns, parent,child"),
        ("a,b\na,\n", {"a": [0], "b": [0]}, "line 2: .* names '', which has no states"),
        ("a -> b -> c\n", {"a": [0], "b": [0]}, "line 1: expected two .* found 3"),
        ("p,c,edge weight\na,b,1\n", {"a": [0], "b": [0]}, "line 1: expected two .* found 3"),
        ("a,b\na,b\n", {"a": [0], "b": [0]}, "line 2: the edge 'a' -> 'b' is given twice"),
        ("a,b\nb,a\n", {"a": [0], "b": [0]}, "cycle"),
        ('a,b\na,"b\n', {"a": [0], "b": [0]}, "line 2: .*a quote is not closed"),
        ('a,b\n"a"b,c\n', {"a": [0], "b": [0]}, "line 2: .*after the quoted name 'a'"),
        ("a,b\n", {"a": [0], "b": "xy"}, "list of labels for node 'b'"),
        ("a,b\n", 3, "`states` must be a mapping"),
        ("a,b\n", {"a": [0], "b": [0, 0]}, "'b' has the same state twice"),
    ],
)
def test_a_wrong_edge_list_is_refused(tmp_path, edges, states, message):
    (tmp_path / "e.csv").write_text(edges)
    with pytest.raises(NetworkError, match=message):
        read_network(tmp_path / "e.csv", states=states)


def test_an_edge_list_is_not_written_and_other_formats_name_their_states(tmp_path, sprinkler):
    with pytest.raises(NetworkError, match="neither states nor tables"):
        write_network(sprinkler, tmp_path / "e.csv")
    (tmp_path / "n.bif").write_text(BIF)
    with pytest.raises(NetworkError, match="already has states"):
        read_network(tmp_path / "n.bif", states={"a": [0]})
    with pytest.raises(NetworkError, match="`numbered=` applies only to UAI"):
        write_network(sprinkler, tmp_path / "n.bif", numbered=True)
