"""Network files that are refused: what is said, with which line, and how soon."""

from __future__ import annotations

import gzip
import os
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robustbn import read_network, write_network
from robustbn.exceptions import NetworkError, NetworkFileError, RobustBNError
from tests.unit.networks.test_formats import (
    BIF,
    FORMATS,
    HEAD,
    LINES,
    NET,
    TEXTS,
    XMLBIF,
    refused,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


# --- files that are wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.25, 0.75", "0.25, 0.68", r"line 14: table of node 'b', configuration a='yes': "
         r"\[0.25, 0.68\] does not sum to 1 \(sum 0.93\).*normalize=True.*tables=False"),
        ("0.4, 0.6", "0.4, 0.6, 0.0", "line 10: node 'a' needs 2 probabilities, found 3"),
        ("(yes) 0.25, 0.75", "(yes) 0.25", "line 14: node 'b' needs 2 .* found 1"),
        ("0.25, 0.75", "-0.25, 1.25", "line 14: .*negative"),
        ("0.25, 0.75", "1e999, 0", "line 14: .*not finite"),
        ("0.25, 0.75", "nan, 0", r"line 14: table of node 'b', .*\[nan, 0.0\] .*not finite"),
        ("0.25, 0.75", "nans, 0", "line 14: table of node 'b': 'nans' is not a number"),
        ("0.25, 0.75", "inf, 0", "line 14: table of node 'b': 'inf' is not a number"),
        ("0.25, 0.75", "1_0, 0", "line 14: .*'1_0' is not a number"),
        ("0.25, 0.75", "0.25, 7.5.1", "line 14: .*'7.5.1' is not a number"),
        ("(yes)", "(perhaps)", "line 14: .*parent 'a' has no state 'perhaps'; its states are"),
        ("(yes)", "(no)", "line 14: this configuration of node 'b' was given before, on line 13"),
        ("(yes)", "(yes, no)", "line 14: node 'b' has 1 parents, but this line names 2"),
        ("  (yes) 0.25, 0.75;\n", "", r"line 12: .*1 lines for 2 configurations.*\['yes'\]"),
        ("[ 2 ]", "[ 3 ]", "line 4: node 'a' is said to have 3 states, but 2 are listed"),
        ("{ no, yes }", "{ no, no }", "line 3: node 'a' has the same state twice"),
        ("( b | a )", "( b | z )", "line 12: node 'b' has the unknown parent 'z'"),
        ("( b | a )", "( z | a )", "line 12: a probability block is given for 'z'"),
        ("( b | a )", "( a | a )", "line 12: node 'a' has two probability blocks, first on line 9"),
        ("( b | a )", "( b | b )", ": .*cycle: b -> b"),
        ("( b | a )", "( b | a, a )", ": .*'b' lists a parent twice"),
        ("variable b", "variable a", "line 6: node 'a' appears twice, first on line 3"),
        ("variable b", "var b", "line 6: expected network, variable or probability, found 'var"),
        ("type discrete [ 2 ]", "type continuous", "line 4: expected discrete"),
        ("  type discrete [ 2 ] { no, yes };\n", "", "line 3: node 'a' has no type"),
        ("table 0.4, 0.6", "table 0.4, 0.6; default 0.4, 0.6", "line 9: .*a table and other"),
        ("(no)", "no", "line 13: expected '\\(', table or default"),
        ("  (no) 0.5, 0.5;\n  (yes) 0.25, 0.75;\n", "", "line 12: node 'b' has no table, while"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_bif_file_is_said_with_its_line(tmp_path, old, new, message):
    assert old in BIF
    refused(tmp_path / "n.bif", BIF.replace(old, new, 1), f"n.bif.*{message}")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_line_of_a_table_that_sums_to_less(tmp_path, name):
    path = tmp_path / f"n.{name}"
    path.write_text(TEXTS[name])
    good = read_network(path)
    assert good.cpts[good.nodes[1]].tolist() == [[0.5, 0.5], [0.25, 0.75]]
    wrong = TEXTS[name].replace("0.75", "0.68")
    refused(path, wrong, rf"n.{name}, line {LINES[name]}: .*sum to 1 \(sum 0.93\)")
    assert read_network(path, tables=False) == good.with_cpts(None)
    scaled = read_network(path, normalize=True).probabilities
    np.testing.assert_array_equal(scaled[:4], good.probabilities[:4])
    np.testing.assert_allclose(scaled[4:], [0.25 / 0.93, 0.68 / 0.93], rtol=1e-15)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_refuses_a_table_of_the_wrong_size(tmp_path, name):
    wrong = TEXTS[name].replace("0.25, 0.75", "0.25").replace("0.25 0.75", "0.25")
    path = tmp_path / f"n.{name}"
    refused(path, wrong, r"line \d+: .*(needs \d probabilities, found|too early)")
    if name != "uai":
        assert not read_network(path, tables=False).has_cpts


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("net", "(0.25 0.75)", "0.25 0.75", "line 6: the brackets of the table of node 'b'"),
        ("net", "0.5)\n          (0.25", "0.5 0.25)\n(", "line 6: node 'b' needs 2 .*brackets"),
        ("net", "node b", "continuous node b", "line 3: 'continuous' is not part"),
        ("net", "node b", "node a", "line 3: node 'a' appears twice, first on line 2"),
        ("net", "(b | a)", "(b a)", "line 5: a potential must be of one node"),
        ("net", "(b | a)", "(b | z)", "line 5: node 'b' has the unknown parent 'z'"),
        ("net", '("no" "yes")', '"no"', "line 2: the states of node 'a' must be in brackets"),
        ("net", "states =", "stats =", "line 2: node 'a' has no `states"),
        ("xmlbif", "<GIVEN>a", "<GIVEN>z", "line 5: node 'b' has the unknown parent 'z'"),
        ("xmlbif", "<NAME>b", "<NAME>a", "line 3: node 'a' appears twice|'b', which is no"),
        ("xmlbif", "<FOR>b", "<FOR>a", "line 5: node 'a' has two definitions"),
        ("xmlbif", '"nature"', '"decision"', "line 2: node 'a' is of type 'decision'"),
        ("xmlbif", "0.4 0.6", "0.4 x", "line 4: table of node 'a': 'x' is not a number"),
        ("xdsl", "<parents>a", "<parents>z", "line 4: node 'b' has the unknown parent 'z'"),
        ("xdsl", '<cpt id="b"', '<cpt id="a"', "line 3: node 'a' appears twice, first on line 2"),
        ("xdsl", '<state id="no"/>', "<state/>", "line 2: a state of node 'a' has no id"),
        ("uai", "BAYES", "MARKOV", "line 1: .*begins with BAYES; found 'MARKOV'. A Markov"),
        ("uai", "2 0 1\n", "2 0 7\n", "line 6: expected the number of a node, .*found '7'"),
        ("uai", "2 0 1\n", "2 1 0\n", "line 6: node 0 has two tables"),
        ("uai", "0.75", "0.75 9", "line 12: expected the end, found '9'"),
        ("uai", "0.75", "x", "line 12: table of node '1': 'x' is not a number"),
        ("json", '"b"', '"a"', "line 2: node 'a' appears twice"),
        ("json", '["a"]', '["z"]', "line 3: node 'b' has the unknown parent 'z'"),
        ("json", '["a"]', '"a"', "line 3: the parents of node 'b' must be a list"),
        ("json", '["no", "yes"]', '["no", null]', "line 2: node 'a' has the state None"),
        ("json", "0.6]", '"0.6"]', "line 2: table of node 'a': '0.6' is not a number"),
        (
            "json",
            "0.6]",
            "1" + "0" * 400 + "]",
            "line 2: table of node 'a' has a number that is too large",
        ),
        ("json", "0.6]", "1" + "0" * 9000 + "]", "this is not a network: .*digits"),
        ("json", '"version": 1', '"version": 1, "version": 1', "key 'version' appears twice"),
        ("json", '"version": 1', '"version": 2', "has version 2; this release reads version 1"),
        ("json", "]}\n", "", "line 4: this is not JSON.*truncated"),
    ],
)
def test_what_is_wrong_in_other_files_is_said_with_its_line(tmp_path, name, old, new, message):
    assert old in TEXTS[name]
    refused(tmp_path / f"n.{name}", TEXTS[name].replace(old, new, 1), message)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_no_text_is_refused(tmp_path, name):
    path = tmp_path / f"n.{name}"
    refused(path, b"", "is empty")
    refused(path, b" \n\t\n", "is empty")
    refused(path, gzip.compress(TEXTS[name].encode()), "compressed with gzip")
    if name in ("xmlbif", "xdsl"):
        refused(path, TEXTS[name].replace(">", ">\n\xe9", 1).encode("latin-1"), "line 2: .*XML")
        latin = '<?xml version="1.0" encoding="ISO-8859-1"?>' + TEXTS[name].replace(
            '"no"', '"n\xe9"'
        ).replace(">no<", ">n\xe9<")
        path.write_bytes(latin.encode("latin-1"))
        assert read_network(path).states["a"] == ("n\xe9", "yes")
    else:
        refused(
            path, b"# one\n# caf\xe9\n" + TEXTS[name].encode(), "line 2: byte 0xe9 is not UTF-8"
        )
        refused(path, TEXTS[name].encode("utf-16"), "line 1: the text is UTF-16")
    packed = tmp_path / f"n.{name}.gz"
    refused(packed, gzip.compress(TEXTS[name].encode())[:-20], "truncated")
    refused(packed, TEXTS[name], "not a gzip file")
    refused(packed, b"", "is empty")


@pytest.mark.parametrize("name", FORMATS)
def test_every_truncation_is_refused(tmp_path, name):
    path = tmp_path / f"n.{name}"
    text = TEXTS[name].rstrip()
    if name == "uai":  # the last number, cut short, is another number
        text = text[: text.rindex("0.75")]
    for length in range(1, len(text)):
        refused(path, text[:length], ".")


def test_a_truncated_file_is_said_to_be_truncated(tmp_path):
    for name in FORMATS:
        cut = {"bif": "(yes)", "net": "0.75", "json": "0.75", "uai": "0.25"}.get(name, "0.25")
        refused(tmp_path / f"n.{name}", TEXTS[name].split(cut)[0], "(?i)truncated")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind here")
def test_a_file_that_may_not_be_read_is_a_permission_error(tmp_path, sprinkler):
    path = tmp_path / "n.bif"
    path.write_text(BIF)
    path.chmod(0)
    with pytest.raises(PermissionError, match=r"n.bif cannot be read: permission is denied") as e:
        read_network(path)
    assert isinstance(e.value, NetworkError)
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="cannot be written"):
        write_network(sprinkler, tmp_path / "m.bif")
    tmp_path.chmod(0o700)


def test_errors_of_the_file_system_are_ours_and_python_s(tmp_path, sprinkler):
    with pytest.raises(FileNotFoundError, match=r"none.bif cannot be read: there is no such") as e:
        read_network(tmp_path / "none.bif")
    assert isinstance(e.value, RobustBNError)
    assert isinstance(e.value, NetworkFileError)
    assert e.value.errno == 2
    (tmp_path / "folder.bif").mkdir()
    for act in (
        lambda: read_network(tmp_path / "folder.bif"),
        lambda: write_network(sprinkler, tmp_path / "folder.bif"),
    ):
        with pytest.raises(IsADirectoryError, match="it is a folder") as e:
            act()
        assert isinstance(e.value, NetworkError)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_network(sprinkler, tmp_path / "no" / "n.bif")
    for act in (
        lambda: read_network("a\0b.bif"),
        lambda: write_network(sprinkler, "a\0b.bif"),
    ):
        with pytest.raises(NetworkError, match="cannot be the name of a file"):
            act()


@pytest.mark.parametrize("suffix", ["pkl", "pickle", "joblib", "pkl.gz", "PKL"])
def test_pickles_are_refused_even_by_another_format(tmp_path, suffix, sprinkler):
    for act in (
        lambda: read_network(tmp_path / f"n.{suffix}"),
        lambda: read_network(tmp_path / f"n.{suffix}", format="json"),
        lambda: write_network(sprinkler, tmp_path / f"n.{suffix}"),
    ):
        with pytest.raises(NetworkError, match="may run code"):
            act()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, sprinkler, monkeypatch):
    path = tmp_path / "n.json"
    write_network(sprinkler, path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="cannot be written: No space left"):
            write_network(sprinkler.with_cpts(None), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["n.json"]


@pytest.mark.skipif(os.name == "nt", reason="links and modes are those of POSIX")
def test_writing_through_a_link_keeps_the_link_and_the_mode(tmp_path, sprinkler):
    target = tmp_path / "real.json"
    write_network(sprinkler, target)
    target.chmod(0o640)
    (tmp_path / "link.json").symlink_to(target)
    write_network(sprinkler.with_cpts(None), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert not read_network(target).has_cpts


# --- files that mean harm ---------------------------------------------------------------------


def many_parents(n, n_states=2):
    labels = ", ".join(f"s{v}" for v in range(n_states))
    names = [f"p{i}" for i in range(n)]
    lines = [f"variable {p} {{ type discrete [ {n_states} ] {{ {labels} }}; }}" for p in names]
    lines += [f"probability ( {p} ) {{ default {1 / n_states}"
              f"{f', {1 / n_states}' * (n_states - 1)}; }}" for p in names]  # fmt: skip
    lines += ["variable c { type discrete [ 2 ] { n, y }; }"]
    lines += [f"probability ( c | {', '.join(names)} ) {{ default 0.5, 0.5; }}"]
    return "\n".join(lines)


def test_a_node_with_30_parents_is_refused_before_anything_is_allocated(tmp_path):
    start = time.perf_counter()
    message = (
        r"line 62: the tables are too large. That of node 'c' with 30 parents has "
        r"2,147,483,648 entries, 17,179,869,184 bytes;.*at most 67,108,864.*max_cells="
    )
    refused(tmp_path / "n.bif", many_parents(30), message)
    refused(tmp_path / "n.bif", many_parents(30), message, tables=False)
    refused(tmp_path / "n.bif", many_parents(3000), r"10\^903.4 entries")
    refused(tmp_path / "n.bif", many_parents(3000, 1), "has 3000 parents; at most 31")
    refused(tmp_path / "n.bif", many_parents(10), "too large", max_cells=2000)
    assert read_network(tmp_path / "n.bif", max_cells=2048 + 20).n_cells == 2048 + 20
    assert time.perf_counter() - start < 5


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize("name", ["xmlbif", "xdsl"])
@pytest.mark.parametrize(
    "declaration",
    [
        f'<!ENTITY l0 "ha">{LAUGHS}',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY % x SYSTEM "http://localhost/x"> %x;',
    ],
)
def test_hostile_xml_is_refused(tmp_path, name, declaration):
    root = "BIF" if name == "xmlbif" else "smile"
    text = f"<!DOCTYPE {root} [{declaration}]>\n{TEXTS[name].replace('no', '&x;&l9;', 1)}"
    refused(tmp_path / f"n.{name}", text, "line 1: the file declares XML entities")


def test_an_ordinary_document_type_is_accepted(tmp_path):
    text = "<!DOCTYPE BIF [\n<!ELEMENT BIF ( NETWORK )*>\n]>\n" + XMLBIF
    (tmp_path / "n.xmlbif").write_text(text)
    assert read_network(tmp_path / "n.xmlbif").nodes == ("a", "b")


HARM = {
    "json": ["[" * 300_000, '{"a":' * 100_000, "9" * 1_000_000],
    "bif": ["/*" * 500_000, '"' * 1_000_001, "(" * 1_000_000, HEAD + "probability (" * 100_000,
            "variable a { type discrete [2] { " + "a " * 300_000,
            HEAD + "probability ( b | a ) {" + "(no" * 200_000,
            "variable a {" + "property " * 99_999,
            HEAD + "probability ( b | a ) {" + "(no) " * 200_000 + "}"],
    "net": ["%" * 1_000_000, '"' * 1_000_001, "node a { states = " + "(" * 500_000,
            NET.replace("(0.25", "(" * 500_000), "node a {" + " x" * 300_000],
    "xmlbif": ["<BIF>" * 200_000, "<BIF " + "a='1' " * 100_000, "<BIF>" + "<!--" * 200_000],
    "xdsl": ["<smile>" * 200_000, "<smile><nodes>" + "<cpt id='a'>" * 100_000],
    "uai": ["BAYES " + "9" * 1_000_000, "BAYES 999999999999", "BAYES\n" + "1 " * 500_000],
}  # fmt: skip


@pytest.mark.parametrize(("name", "k"), [(n, k) for n, ts in HARM.items() for k in range(len(ts))])
def test_long_and_deep_nonsense_is_refused_quickly(tmp_path, name, k):
    start = time.perf_counter()
    refused(tmp_path / f"n.{name}", HARM[name][k], ".")
    assert time.perf_counter() - start < 3


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_refused_or_is_a_network(folder, name, data):
    text = bytearray(TEXTS[name].encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        kind = data.draw(st.sampled_from(["byte", "cut", "drop", "twice", "special"]))
        if kind == "byte":
            text[at] = data.draw(st.integers(0, 255))
        elif kind == "special":
            text[at:at] = data.draw(st.sampled_from([b'"', b"(", b"}", b"<", b"&x;", b"9" * 20]))
        elif kind == "cut":
            text = text[: at + 1]
        elif kind == "drop":
            del text[at : at + data.draw(st.integers(1, 20))]
        else:
            text[at:at] = text[at : at + 30]
        if not text:
            break
    path = folder / f"damaged.{name}"
    path.write_bytes(bytes(text))
    try:
        network = read_network(path)
    except NetworkError:  # and nothing else
        return
    network.validate()
