"""What a newcomer meets: mistyped names, swapped arguments, numbers and shares as people write."""

from __future__ import annotations

import pytest

from robustbn import BayesianNetwork, write_network
from tests.test_cli import as_json, call

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def said(ran):
    """What went to standard error, on one line."""
    return " ".join(ran.stderr.split())


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a network, its edges and its rows, and the command line in it."""
    network = BayesianNetwork(
        {"rain": [], "wet": ["rain"]}, {"rain": ["no", "yes"], "wet": ["dry", "damp", "wet"]}
    )
    cpts = {"rain": [0.7, 0.3], "wet": [[0.8, 0.15, 0.05], [0.1, 0.3, 0.6]]}
    network = network.with_cpts(cpts)
    monkeypatch.chdir(tmp_path)
    write_network(network, "net.bif")
    write_network(network, "net.json")
    (tmp_path / "edges.csv").write_text("parent,child\nrain,wet\n")
    call("sample", "net.bif", "-n", 600, "-o", "rows.csv")
    return tmp_path


# --- mistyped names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (("fit", "net.biff", "rows.csv"), "net.bif"),
        (("fit", "net.bif", "rows.cvs"), "rows.csv"),
        (("fit", "nett.bif", "rows.csv"), "net.bif"),
        (("score", "net.biff", "rows.csv"), "net.bif"),
        (("score", "net.bif", "row.csv"), "rows.csv"),
        (("inspect", "net.biff"), "net.bif"),
        (("inspect", "rows.cvs"), "rows.csv"),
        (("convert", "net.biff", "out.json"), "net.bif"),
        (("compare", "net.bif", "net.jsn"), "net.json"),
        (("sample", "net.biff"), "net.bif"),
        (("states", "edges.cvs", "rows.csv"), "edges.csv"),
        (("corrupt", "net.bif", "rows.cvs", "-o", "bad.csv"), "rows.csv"),
    ],
)
def test_a_mistyped_name_is_answered_by_the_file_beside_it(desk, command, wanted):
    ran = call(*command, code=4 if wanted == "rows.csv" else 3)
    assert f"Did you mean {wanted}?" in said(ran)
    assert "--" not in said(ran)


def test_a_table_with_a_mistyped_suffix_is_told_from_the_one_beside_it(desk):
    (desk / "rows.cvs").write_text("rain,wet\nno,dry\n")
    assert "Did you mean rows.csv?" in said(call("fit", "net.bif", "rows.cvs", code=4))


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("fit", "other.dat", "rows.csv"), None),
        (("convert", "other.dat", "out.json"), "--from"),
        (("score", "edges.csv", "rows.csv"), "robustbn states edges.csv rows.csv"),
        (("sample", "edges.csv"), "--states states.json"),
        (("fit", "bad.bif", "rows.csv", "--states", "states.json"), None),
        (("sample", "bad.bif"), "robustbn convert --normalize"),
        (("convert", "bad.bif", "out.bif"), "--normalize"),
        (("fit", "net.bif", "select rain from x"), None),
        (("compare", "genie.xml", "net.bif"), "name it .xdsl."),
        (("convert", "genie.xml", "out.bif"), "--from xdsl"),
    ],
)
def test_no_message_names_an_option_that_the_command_lacks(desk, command, advice):
    import re

    from robustbn.cli import main

    (desk / "other.dat").write_text("x")
    (desk / "genie.xml").write_text("<smile></smile>")
    bif = (desk / "net.bif").read_text()
    (desk / "bad.bif").write_text(bif.replace("0.7,", "0.9,").replace("0.7 ", "0.9 "))
    (desk / "states.json").write_text('{"rain": ["no", "yes"], "wet": ["dry", "damp", "wet"]}')
    found = main.get_command(None, command[0])
    options = {name for each in found.params for name in each.opts}
    from click.testing import CliRunner

    ran = CliRunner().invoke(main, list(command))
    assert ran.exit_code, ran.output
    if advice is not None:
        assert advice in said(ran)
    own = said(ran).partition("robustbn ")[0]
    assert set(re.findall(r"(?<![\w-])--[a-z-]+", own)) <= options


# --- swapped arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "right"),
    [
        ("fit rows.csv edges.csv", "robustbn fit edges.csv rows.csv"),
        ("fit rows.csv net.bif --seed 3", "robustbn fit net.bif rows.csv --seed 3"),
        ("fit rows.parquet example:alarm", "robustbn fit example:alarm rows.parquet"),
        ("score rows.csv net.json", "robustbn score net.json rows.csv"),
        ("score rows.csv edges.csv", "robustbn score edges.csv rows.csv"),
        ("states rows.csv edges.csv -o n.json", "robustbn states edges.csv rows.csv -o n.json"),
        ("corrupt rows.csv net.bif -o b.csv", "robustbn corrupt net.bif rows.csv -o b.csv"),
    ],
)
def test_swapped_arguments_are_told_with_the_right_command(desk, command, right):
    (desk / "rows.csv").write_text(
        "".join(f"{line},x\n" for line in (desk / "rows.csv").read_text().splitlines())
    )
    ran = call(*command.split(), code=2)
    assert "is a table and" in said(ran)
    assert said(ran).endswith(f"Did you mean: {right}")


def test_a_table_of_two_columns_is_not_taken_for_edges_in_the_right_place(desk):
    call("fit", "edges.csv", "rows.csv")


@pytest.mark.parametrize("paths", [("net.json", "rows.csv"), ("rows.csv", "net.json")])
def test_inspect_takes_a_network_and_a_table_in_either_order(desk, paths):
    facts = as_json("inspect", *paths)
    assert facts["network"]["path"] == "net.json"
    assert facts["table"]["path"] == "rows.csv"
