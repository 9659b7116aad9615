"""What a newcomer meets: mistyped names, swapped arguments, numbers and shares as people write."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn import BayesianNetwork, write_network
from robustbn._show.page.render import render_markdown, render_page
from robustbn.exceptions import DataError, NetworkError, SettingError, UnknownSettingError
from tests.commands import as_json, call
from tests.reports import changed, quick_report

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
        (("score", "edges.csv", "rows.csv"), "robustbn fit edges.csv TABLE --model model.json"),
        (("sample", "edges.csv"), "robustbn convert --states FILE"),
        (("fit", "bad.bif", "rows.csv", "--states", "states.json"), None),
        (("sample", "bad.bif"), "robustbn convert --normalize"),
        (("convert", "bad.bif", "out.bif"), "--normalize"),
        (("fit", "net.bif", "select rain from x"), None),
        (("compare", "genie.xml", "net.bif"), "robustbn convert --from xdsl"),
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


# --- what to do next ------------------------------------------------------------------------------


def test_what_to_do_next_are_commands_that_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = [f"node {k}, of ten" for k in range(10)]
    columns = {names[0]: rng.integers(0, 2, 6_000)}
    for before, name in pairwise(names):  # a chain
        columns[name] = np.where(rng.random(6_000) < 0.8, columns[before], 1 - columns[before])
    pd.DataFrame(columns).to_csv("rows.csv", index=False)
    drawn = [pair for pair in pairwise(names) if pair != (names[4], names[5])]
    Path("edges.csv").write_text("".join(f'"{a}","{b}"\n' for a, b in drawn))
    told = call("fit", "edges.csv", "rows.csv")
    assert "in Python" not in told.stdout
    found = as_json("fit", "edges.csv", "rows.csv")["findings"][0]
    assert f"note     {found['sentence']}\n         {found['advice']['command']}\n" in told.stdout
    command = found["advice"]["command"]
    assert "--edge" in command
    again = as_json(*shlex.split(command)[1:])
    assert again["network"]["edges"] == 9
    assert again["misfit"]["is_exact"]


def test_an_edge_that_cannot_be_drawn_is_answered(desk):
    wrong = {
        "rain,wett": "there is no node 'wett'. Did you mean 'wet'?",
        "rain": "'rain' is not an edge: write PARENT,CHILD.",
    }
    for edge, answer in wrong.items():
        assert answer in said(call("fit", "net.bif", "rows.csv", "--edge", edge, code=2))
    assert "cycle" in said(call("fit", "net.bif", "rows.csv", "--edge", "wet,rain", code=3))


# --- swapped arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "fit rows.csv edges.csv",
        "fit rows.csv net.bif --seed 3",
        "fit rows.parquet example:alarm",
        "score rows.csv net.json",
        "score rows.csv edges.csv",
        "states rows.csv edges.csv -o n.json",
        "corrupt rows.csv net.bif -o b.csv",
    ],
)
def test_swapped_arguments_are_told(desk, command):
    (desk / "rows.csv").write_text(
        "".join(f"{line},x\n" for line in (desk / "rows.csv").read_text().splitlines())
    )
    told = said(call(*command.split(), code=2))
    _, table, network = command.split()[:3]
    assert f"{table} is a table and {network} is a network: the arguments are swapped" in told


@pytest.mark.parametrize("name", ["arrows.txt", "arrows.csv", "blanks.txt", "semicolons.csv"])
def test_an_edge_list_is_told_from_a_table_whatever_stands_between_the_names(desk, name):
    line = {"arrows": "rain -> wet", "blanks": "rain wet", "semicolons": '"rain"; "wet"'}
    (desk / name).write_text(line[Path(name).stem] + "\n")
    call("fit", name, "rows.csv")
    (desk / "more.csv").write_text("rain,wet,more\n" + "no,dry,x\nyes,wet,y\n" * 20)
    for paths in ((name, "rows.csv"), (name, "more.csv"), ("more.csv", name)):
        assert as_json("inspect", *paths)["network"]["edges"] == 1
    ran = call("states", "more.csv", name, code=2)
    assert f"more.csv is a table and {name} is a network" in said(ran)


def test_a_header_line_in_the_middle_is_told_once(desk):
    lines = (desk / "rows.csv").read_text().splitlines()
    (desk / "joined.csv").write_text("\n".join([*lines, lines[0], *lines[1:300]]))
    told = call("fit", "edges.csv", "joined.csv")
    assert said(told).count("joined.csv: 1 line repeats the header and is left out: row 600.") == 1
    assert "899; 1 left out, the header is repeated" in told.stdout


def test_a_table_of_two_columns_is_not_taken_for_edges_in_the_right_place(desk):
    call("fit", "edges.csv", "rows.csv")


@pytest.mark.parametrize("paths", ["net.bif rows.csv", "rows.csv rows.csv", "net.bif rows.parquet"])
def test_compare_says_what_it_wants_instead_of_a_table(desk, paths):
    (desk / "rows.csv").write_text("rain,wet,more\nno,dry,x\n")
    (desk / "rows.parquet").write_bytes(b"")
    told = said(call("compare", *paths.split(), code=2))
    assert f"{paths.split()[-1]} is a table; compare needs two models (from fit --model)" in told
    assert f"robustbn fit NETWORK {paths.split()[-1]} --model model.json" in told


@pytest.mark.parametrize("paths", [("net.json", "rows.csv"), ("rows.csv", "net.json")])
def test_inspect_takes_a_network_and_a_table_in_either_order(desk, paths):
    facts = as_json("inspect", *paths)
    assert facts["network"]["path"] == "net.json"
    assert facts["table"]["path"] == "rows.csv"


# --- names that are mistyped in options -----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--bins", "rian:q2"), "rain"),
        (("--labels", "rian:0=no"), "rain"),
        (("--rename", "sorce=rain"), "source"),
        (("--id", "sourc"), "source"),
        (("--keep", "sourc"), "source"),
        (("--context", "Source"), "source"),
        (("--known", "sorce"), "source"),
    ],
)
@pytest.mark.parametrize("network", ["net.bif", "edges.csv"])
def test_a_mistyped_column_is_answered_by_the_nearest(desk, options, wanted, network):
    lines = (desk / "rows.csv").read_text().splitlines()
    named = [f"{lines[0]},source", *(f"{line},x" for line in lines[1:])]
    (desk / "rows.csv").write_text("\n".join(named))
    from click.testing import CliRunner

    from robustbn.cli import main

    ran = CliRunner().invoke(main, ["fit", network, "rows.csv", *options])
    if options[0] == "--rename" and network == "edges.csv":
        return  # a column that is not there renames nothing: the edges say what is needed
    assert ran.exit_code in (2, 4), ran.output
    assert f"Did you mean '{wanted}'?" in said(ran)
    assert options[0].removeprefix("--") in said(ran)


def test_states_for_a_node_that_is_not_there_are_answered_by_the_nearest(desk):
    (desk / "states.json").write_text('{"rian": ["no", "yes"]}')
    ran = call("fit", "edges.csv", "rows.csv", "--states", "states.json", code=4)
    assert "names 'rian'" in said(ran)
    assert "Did you mean 'rain'?" in said(ran)


# --- counts and shares as people write them -------------------------------------------------------


@pytest.mark.parametrize("text", ["2e3", "2_000", "2,000", "2k", "2000", "2.0e3", "0.002M"])
def test_a_count_is_written_as_people_do(desk, text):
    assert as_json("sample", "net.bif", "-n", text, "-o", "drawn.csv")["rows"] == 2000


@pytest.mark.parametrize("text", ["1e-3", "many", "-3", "1.5", "nan", "0", "1e999"])
def test_what_is_no_count_is_refused(desk, text):
    assert "Invalid value for '-n'" in call("sample", "net.bif", "-n", text, code=2).stderr


def test_every_option_that_counts_takes_a_count():
    import click

    from robustbn.cli import COMMANDS, main

    for name in COMMANDS:
        for each in main.get_command(None, name).params:
            if isinstance(each.type, click.types.IntParamType):
                assert each.name in ("seed", "bad_groups", "good_groups"), (name, each.name)


@pytest.mark.parametrize("text", ["1", "laplace", "0.5", "bdeu"])
def test_a_prior_is_a_name_or_a_number(desk, text):
    (desk / "rows.csv").write_text("rain,wet\n" + "no,dry\n" * 300)
    facts = as_json("fit", "net.bif", "rows.csv", "--prior", text, "-o", "fitted.json")
    assert facts["unseen_configurations"] == 1
    assert "its table is the prior alone" in facts["unseen"]
    assert (
        "Invalid value for '--prior'"
        in call("fit", "net.bif", "rows.csv", "--prior", "much", code=2).stderr
    )


# --- what is told of a fit ------------------------------------------------------------------------


def test_configurations_that_nobody_shows_are_told_with_what_their_tables_got(desk):
    (desk / "rows.csv").write_text("rain,wet\n" + "no,dry\nno,wet\n" * 300)
    ran = call("fit", "net.bif", "rows.csv")
    told = (
        "1 of 3 parent configurations occurs in no trusted row; its table is set to "
        "uniform. It is node 'wet' given rain='yes'. To smooth it and other tables with few "
        "rows, use a prior of 1."
    )
    assert told in said(ran)  # once, as a warning
    assert as_json("fit", "net.bif", "rows.csv")["unseen"] == told
    assert "unseen_configurations_" not in ran.stdout + ran.stderr
    fit = robustbn.fit("net.bif", "rows.csv", random_state=0)
    assert told in str(fit)
    summary = dict(zip(fit.summary()["figure"], fit.summary()["value"], strict=True))
    assert summary["unseen_configurations"] == 1
    assert "prior=1 smooths" in " ".join(fit.summary()["meaning"])
    smooth = robustbn.fit("net.bif", "rows.csv", prior=1, random_state=0)
    assert smooth.network_.cpts["wet"][0].tolist() == [301 / 603, 1 / 603, 301 / 603]
    fit.save("model.json")
    assert told in str(robustbn.RobustEstimator.load("model.json"))


@pytest.fixture(scope="module")
def dirty(tmp_path_factory):
    """Rows of a tree, a tenth of them bad, each with a name and a source."""
    import numpy as np

    from robustbn.simulate import corrupt

    folder = tmp_path_factory.mktemp("dirty")
    tree = robustbn.random_network("tree", 30, random_state=0)
    good = robustbn.sample(tree, 8000, random_state=0)
    rows, is_bad = corrupt(good, tree, "product", 0.1, random_state=1)
    write_network(tree, folder / "tree.json")
    states = [
        [str(tree.states[n][c]) for n, c in zip(tree.nodes, row, strict=True)] for row in rows
    ]
    source = np.where(is_bad, "SECRETSOURCE", "north")
    lines = [",".join([*row, f"SECRETNAME{k}", str(source[k])]) for k, row in enumerate(states)]
    header = ",".join([*tree.nodes, "uid", "source"])
    (folder / "rows.csv").write_text("\n".join([header, *lines]) + "\n")
    return folder


def test_a_fit_that_did_not_settle_says_so_among_its_findings(dirty, tmp_path):
    command = ("fit", dirty / "tree.json", dirty / "rows.csv", "--contamination", "0.01")
    facts = as_json(*command)
    (found,) = [f for f in facts["findings"] if f["sentence"] == facts["status"]]
    assert found["severity"] == "warning"
    assert (
        "because 10.0% stand out but at most 2% may be removed. Raise contamination"
        in found["sentence"]
    )
    assert found["sentence"] in call(*command, "-o", tmp_path / "fitted.json").stdout
    assert found["sentence"] in call(*command, "--strict", code=5).stderr
    settled = as_json("fit", dirty / "tree.json", dirty / "rows.csv", "--strict")
    assert settled["status"] not in [f["sentence"] for f in settled["findings"]]


def test_too_few_rows_are_told_by_the_verdict_and_nothing_contradicts_it(desk):
    (desk / "rows.csv").write_text("rain,wet\n" + "no,dry\nyes,wet\n" * 20)
    ran = call("fit", "net.bif", "rows.csv")
    few = "40 rows are too few for 5 free parameters: at least 100 rows are recommended (20 per "
    few += "parameter)."
    told = " ".join(ran.stdout.split())
    assert told.startswith(f"{few} Only gross corruption would be detectable, and none was found; ")
    assert ran.stdout.count(few) == 1
    assert "rows fit this network" not in told
    assert ran.stderr.startswith(f"Warning: {few}")  # the same numbers wherever it is told
    call("fit", "net.bif", "rows.csv", "--strict", code=5)


def test_fail_over_counts_judged_rows_with_a_trust_below_one_half(dirty, tmp_path):
    """Rows that miss values count; those that are left out do not, above or below the line."""
    lines = (dirty / "rows.csv").read_text().splitlines()
    holed = [line if k % 4 else "," + line.partition(",")[2] for k, line in enumerate(lines[1:])]
    (tmp_path / "holed.csv").write_text("\n".join([lines[0], *holed]))
    for missing, n in (("use", 8000), ("drop", 6000)):
        command = ("fit", dirty / "tree.json", tmp_path / "holed.csv", "--missing", missing)
        rows = tmp_path / f"{missing}.csv"
        facts = as_json(*command, "--weights", rows)
        weights = [line.split(",")[1] for line in rows.read_text().splitlines()[1:]]
        judged = [float(w) for w in weights if w and w.lower() != "nan"]
        share = 100 * sum(w < 0.5 for w in judged) / n
        assert len(judged) == facts["table"]["rows"] == n
        call(*command, "--fail-over", f"{share - 0.01:.4f}", code=1)
        call(*command, "--fail-over", f"{share + 0.01:.4f}%")
    model = tmp_path / "model.json"
    call(*command, "--model", model)
    facts = as_json("score", model, tmp_path / "holed.csv", "--fail-over", "0", code=1)
    assert facts["share_distrusted"] == facts["rows_distrusted"] / 6000


def test_private_values_are_in_no_page_and_no_json(dirty, tmp_path):
    command = (
        "fit", dirty / "tree.json", dirty / "rows.csv", "--id", "uid", "--keep", "source",
        "--context", "source", "--ask", 3,
    )  # fmt: skip
    ran = call(*command, "--output-dir", tmp_path / "open")
    assert "SECRETSOURCE" in (tmp_path / "open" / "report.html").read_text() + ran.stdout
    ran = call(*command, "--no-rows", "--output-dir", tmp_path / "closed", "--json")
    written = [file for file in (tmp_path / "closed").iterdir() if file.name != "rows.parquet"]
    assert {"report.html", "run.json", "cpts.csv"} <= {file.name for file in written}
    for text in (ran.stdout, ran.stderr, *(file.read_text() for file in written)):
        assert "SECRET" not in text
    assert "source" in ran.stdout
    assert "SECRET" not in call(*command, "--no-rows").stdout


@pytest.mark.parametrize("width", ["60", "200"])
def test_the_terminal_says_a_finding_in_full(desk, monkeypatch, width):
    from io import StringIO

    from robustbn._cli.screen import Screen
    from robustbn._cli.summary import show_fit
    from robustbn._core.findings import Finding

    facts = as_json("fit", "net.bif", "rows.csv")
    text = (
        "Stuck at one value, whatever the other columns are: wet = damp, rain = yes in all of them."
    )
    finding = Finding("rows", "warning", f"About 40 rows (group 3): stuck columns. {text}", 0.9)
    facts["findings"] = [finding.as_facts()]
    monkeypatch.setenv("COLUMNS", width)
    shown = StringIO()
    show_fit(Screen().console(shown), facts)
    assert finding.sentence in shown.getvalue()


def test_tables_that_did_not_move_are_not_listed(desk):
    ran = call("fit", "net.bif", "rows.csv")
    assert "All 600 rows fit" in ran.stdout
    assert "table of" not in ran.stdout
    assert as_json("fit", "net.bif", "rows.csv")["moved"]  # JSON has them all the same


def test_nothing_to_ask_is_told(desk):
    told = "ask         There are no rows to check: no row is suspicious"
    assert told in call("fit", "net.bif", "rows.csv", "--ask", 5).stdout
    assert told not in call("fit", "net.bif", "rows.csv").stdout


# --- words and numbers ----------------------------------------------------------------------------


def test_messages_advise_no_earlier_spelling():
    from robustbn._core.allocate import out_of_memory

    assert "place='stream'" in str(out_of_memory("Reading", MemoryError()))
    source = Path(robustbn.__file__).parent
    messages = [file.read_text() for file in source.rglob("*.py")]
    assert not [text for text in messages if "backend='" in text]


def test_one_is_singular_wherever_it_is_told(desk):
    """A table of one row, one column and one state, through every command that counts."""
    import re

    nouns = "row|value|column|node|state|edge|step|label|kind|parameter|configuration|cell|table"
    plural = re.compile(rf"(?<![\w.,])1 (?:[a-z]+ )?(?:{nouns})s\b")
    (desk / "one.csv").write_text("a\nyes\n")
    (desk / "edges.csv").write_text("a,b\n")
    (desk / "two.csv").write_text("a,b\nyes,1\n" + "no,2\n" * 20)
    BayesianNetwork({"a": []}, {"a": ["no", "yes"]}).write("one.json")
    told = [
        call(*command)
        for command in (
            ("inspect", "one.csv"),
            ("inspect", "one.json"),
            ("inspect", "one.json", "one.csv"),
            ("states", "edges.csv", "two.csv"),
            ("fit", "one.json", "one.csv", "--model", "m.json", "--report", "page.html"),
            ("score", "m.json", "one.csv"),
        )
    ]
    fit = robustbn.fit("one.json", {"a": ["yes"]}, random_state=0)
    texts = [ran.stdout + ran.stderr for ran in told]
    texts += [str(fit), repr(fit), fit.to_markdown(), str(fit.reading_), fit._repr_html_()]
    texts += [str(robustbn.states_from("two.csv", [("a", "b")]))]
    texts += [
        re.sub(r"<(style|script)\b.*?</\1>", "", (desk / "page.html").read_text(), flags=re.S)
    ]
    assert [plural.findall(text) for text in texts] == [[]] * len(texts)


def test_a_single_row_and_a_single_value_are_told_as_one(sprinkler):
    from robustbn._core.groups import Group
    from robustbn._show.words import say_few_rows

    kind = Group(0.01, 1.0, (), number=1)
    assert repr(kind) == "Group(1: 1 row, bad with probability 1.00, unnamed)"
    report = changed(quick_report(sprinkler), kinds=[kind])
    assert "About 1 row (" in report.findings[0].sentence
    assert "About 1 row (" in render_markdown(report)
    assert "About 1 row (" in render_page(report)
    few = "1 row is too few for 1 free parameter: at least 20 rows are recommended "
    few += "(20 per parameter)."
    assert say_few_rows(1, 1) == few
    table = robustbn.read_table(
        {"a": ["no", None, "no"]}, BayesianNetwork({"a": []}, {"a": ["no"]})
    )
    assert table.reading.say_missing().startswith("1 value is missing; 2 of 3 rows are complete")


def test_large_factors_are_told_without_exponents():
    from robustbn._core.origins import Origin
    from robustbn._show.advice import say_evidence

    origin = Origin((("feed", "x", "x"),), 1_200, 1_030, 1_030 / 1_200 / 1_030, 1e-9, 50.0)
    assert str(origin).endswith("distrusted, 1,030 times as many as overall")
    assert say_evidence(np.log(150_000)).endswith(
        "about 150,000 times more likely to be bad than good"
    )


# --- Python ---------------------------------------------------------------------------------------


@pytest.fixture
def small():
    """A network of two nodes, and a table for it."""
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["n", "y"], "b": ["n", "y"]})
    return network, pd.DataFrame({"a": ["n", "y"] * 60, "b": ["n", "y", "y"] * 40})


@pytest.mark.parametrize("edges", [[("a", "b")], {"b": ["a"]}, {"a": [], "b": ("a",)}])
@pytest.mark.parametrize("states", [None, {"a": ["n", "y"], "b": ["n", "y"]}])
def test_edges_and_parents_are_networks_to_the_one_call(small, edges, states):
    network, table = small
    fit = robustbn.fit(edges, table, states=states, random_state=0)
    expected = robustbn.fit(network, table, random_state=0).network_
    for node in network.nodes:
        assert fit.network_.cpts[node].tolist() == expected.cpts[node].tolist()
    with pytest.raises(NetworkError, match=r"found the string 'a'. Write \['a'\]"):
        robustbn.fit({"b": "a"}, table)


@pytest.mark.parametrize("swap", ["frame", "mapping", "array", "paths", "nothing", "number"])
def test_what_is_no_network_is_refused_in_a_sentence(small, swap):
    network, table = small
    network, table = {
        "frame": (table, network),
        "mapping": (table.to_dict("list"), network),
        "array": (table.to_numpy(), [("a", "b")]),
        "paths": ("rows.parquet", "net.json"),
        "nothing": (None, table),
        "number": (3, table),
    }[swap]
    with pytest.raises(UnknownSettingError, match="The network comes first, then the table: "):
        robustbn.fit(network, table)


def test_known_rows_are_told_in_the_same_words_in_python_and_in_the_terminal(small):
    network, table = small
    words = np.array(["good", "bad", "", None, "1", "-1.0"] + [float("nan")] * 114, object)
    sides = np.array([1, -1, 0, 0, 1, -1] + [0] * 114)
    by_words = robustbn.fit(network, table, known=words, random_state=0)
    estimator = robustbn.RobustEstimator(network, random_state=0)
    by_sides = estimator.fit(table, known=sides)
    assert by_words.row_weights_.tolist() == by_sides.row_weights_.tolist()
    assert by_words.row_weights_[:2].tolist() == [1, 0]
    for wrong, found in (("fine", "'fine' at row 7"), (2, "2 at row 7")):
        words[7] = wrong
        with pytest.raises(
            DataError, match=r"known values are 1 \(good\), -1 \(bad\) .*found " + found
        ):
            robustbn.fit(network, table, known=words)
    with pytest.raises(DataError, match=r"known needs one value per row, shape \(120,\)"):
        robustbn.fit(network, table, known="checked")


def test_a_misspelt_setting_is_answered_by_the_nearest(small):
    network, table = small
    answer = (
        r"no setting 'contaminaton'. Did you mean 'contamination'\? Its settings: .*contamination"
    )
    with pytest.raises(UnknownSettingError, match=answer):
        robustbn.fit(network, table, contaminaton=0.1)
    with pytest.raises(UnknownSettingError, match=answer):
        robustbn.RobustEstimator(network, contaminaton=0.1)
    with pytest.raises(SettingError, match=answer):
        robustbn.RobustEstimator(network).set_params(contaminaton=0.1)


def test_one_edge_where_a_list_of_edges_belongs_is_told(small):
    network, table = small
    answer = r"Edges are a list of pairs .*found 'a' in it. Did you mean \[\('a', 'b'\)\]\?"
    with pytest.raises(NetworkError, match=answer):
        network.with_edges(("a", "b"))
    with pytest.raises(NetworkError, match=answer):
        BayesianNetwork.from_edges(("a", "b"), network.states)
    with pytest.raises(NetworkError, match=answer):
        robustbn.fit(("a", "b"), table)
    for wrong in (("a", "b", "a"), ("a",), 7):
        with pytest.raises(NetworkError, match="Edges are a list of pairs"):
            network.with_edges([wrong])


def test_warnings_point_at_the_line_of_the_caller(small):
    network, table = small
    few = table[table["a"] == "n"][:10]
    calls = [
        lambda: robustbn.fit(network, few),
        lambda: robustbn.RobustEstimator(network).fit(few),
        lambda: robustbn.RobustEstimator(network).fit_predict(few),
        lambda: robustbn.MaximumLikelihoodEstimator(network).fit(few),
    ]
    for call_it in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call_it()
        assert caught
        assert {each.filename for each in caught} == {__file__}


def test_a_fitted_estimator_looks_fitted(small):
    network, table = small
    for kind in (robustbn.RobustEstimator, robustbn.MaximumLikelihoodEstimator):
        estimator = kind(network)
        assert "fitted" not in repr(estimator)
        assert "fitted to 120 rows" in repr(estimator.fit(table))
        assert "fitted to 1 row" in repr(estimator.fit(table[:1]))
        assert "fitted to 1 rows" not in repr(estimator)


# --- words that are right in Python and on the command line ---------------------------------------


def test_every_status_says_what_to_do_in_words_that_are_right_everywhere():
    import re

    from robustbn._core.config import RobustConfig
    from robustbn._core.result import Misfit, Status, Verdict
    from robustbn._core.row_model import RowModel
    from robustbn._learn.status import describe_status

    misfit, one = Misfit(False, 0.1, 1, 2.0, 1.0), np.ones(1)
    model = RowModel.of_good_rows(one).with_component(one, 0.1, kept=1.0)
    verdict = Verdict(model, np.ones((1, 1)), np.full(1, 0.5), (), 1.0, 1.5, "because")
    texts = [str(status) for status in Status]
    for contamination in (0.1, "auto"):
        config = RobustConfig(contamination=contamination)
        for removed, changes in (
            (0.1, {"top": 2.0}),
            (0.47, {}),
            (0.1, {"misfit": misfit}),
            (0.1, {"misfit": misfit, "stopped": ""}),
        ):
            texts.append(describe_status(removed, config, replace(verdict, **changes))[1])
    for text in texts:
        assert not re.search(r"\b[a-z]\w*_(?!\w)|\b[a-z_]+=\S|--[a-z]", text), text
