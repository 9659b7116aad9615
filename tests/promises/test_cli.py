"""The command line: every command, its exit codes, what it writes, and what it leaves behind."""

from __future__ import annotations

import csv
import inspect
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path

import click
import numpy as np
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import robustbn
from robustbn import BayesianNetwork, RobustEstimator, read_network, write_network
from robustbn._cli.fit import METHOD_NAMES
from robustbn._cli.fit_files import hash_files
from robustbn._cli.options import say
from robustbn._cli.simulate import ADVERSARIES
from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.config import RobustConfig, Streaming, TableConfig
from robustbn._means import ORACLES
from robustbn.adversary import KINDS
from robustbn.cli import COMMANDS, main
from robustbn.exceptions import DataError
from robustbn.simulate import corrupt
from tests.browser import open_browser
from tests.commands import COMMAND, as_json, call, start
from tests.reports import HOSTILE

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROOT = Path(__file__).parents[2]
ESCAPE = "\x1b["


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A network, good rows and dirty rows, made by the commands themselves."""
    folder = tmp_path_factory.mktemp("work")
    call("convert", "example:alarm", folder / "alarm.bif")
    call("sample", folder / "alarm.bif", "-n", 20000, "-o", folder / "good.csv")
    call(
        "corrupt", folder / "alarm.bif", folder / "good.csv", "--eps", "10%", "--kind", "product",
        "-o", folder / "dirty.parquet",
    )  # fmt: skip
    call(
        "fit", folder / "alarm.bif", folder / "dirty.parquet", "--model", folder / "model.json",
        "--output-dir", folder / "result", "--quiet",
    )  # fmt: skip
    return folder


@pytest.fixture
def small(tmp_path):
    """A small network and a messy text file."""
    network = BayesianNetwork(
        {"age": [], "smoker": ["age"]}, {"age": ["young", "old"], "smoker": ["no", "yes"]}
    )
    write_network(network, tmp_path / "net.json")
    rng = np.random.default_rng(0)
    lines = [f"{rng.integers(10, 90)};{rng.integers(0, 2)};x" for _ in range(400)]
    (tmp_path / "rows.csv").write_text("Age;smoker;note\n" + "\n".join(lines) + "\n;1;x\n40;7;x\n")
    return tmp_path


MESSY = ("--sep", ";", "--rename", "Age=age", "--bins", "age:40,", "--labels", "smoker:0=no,1=yes")


# --- help, version, completion --------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_example(name):
    said = call(name, "--help").stdout
    assert f"  robustbn {name}" in said
    assert "\b" not in said


def test_help_lists_every_command_and_every_exit_code():
    said = " ".join(call("--help").stdout.split())
    for name, text in COMMANDS.items():
        assert name in said
        assert text in said
    assert "130 interrupted by Ctrl-C, 141 the output pipe was closed, 143 terminated by" in said


def test_what_the_options_offer_is_what_there_is():
    assert set(ADVERSARIES) == set(KINDS)
    assert set(METHOD_NAMES) == {"filter", *ORACLES, "trimmed"}


def test_every_setting_that_is_an_option_is_one_of_the_one_call():
    configs = (RobustConfig, TableConfig, Streaming)
    settings = {f.name for c in configs for f in fields(c) if "option" in f.metadata}
    options = {each.name for each in main.get_command(None, "fit").params}
    assert settings <= options
    grouped = {f.name for f in fields(Streaming)}
    assert settings - grouped - {"seed"} <= set(inspect.signature(robustbn.fit).parameters)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_every_shell(shell):
    assert "_ROBUSTBN_COMPLETE" in call("completion", shell).stdout


def test_the_shell_completes_commands_options_and_choices():
    def complete(words, k):
        env = {**os.environ, "_ROBUSTBN_COMPLETE": "bash_complete", "COMP_WORDS": words}
        env["COMP_CWORD"] = str(k)
        return start(env=env).stdout.split()

    assert complete("robustbn co", 1) == [
        f"plain,{n}" for n in ("compare", "convert", "corrupt", "completion")
    ]
    assert "plain,--fail-over" in complete("robustbn fit --f", 2)
    assert complete("robustbn corrupt --kind clo", 3) == ["plain,clones"]


def test_a_mistyped_command_is_guessed():
    assert "Did you mean 'fit'?" in call("fti", code=2).stderr


# --- fit ------------------------------------------------------------------------------------------


def test_a_table_read_in_stretches_gives_the_same_network_and_a_report(work, tmp_path):
    options = ("--place", "stream", "--cache", tmp_path / "c")
    outputs = ("-o", tmp_path / "there.bif", "--report", tmp_path / "page.html")
    ran = call("fit", work / "alarm.bif", work / "dirty.parquet", *options, *outputs)
    assert "distrusted" in ran.stdout
    here = work / "result" / "fitted.bif"
    assert (tmp_path / "there.bif").read_text() == here.read_text()
    assert "</html>" in (tmp_path / "page.html").read_text()


def test_a_pattern_may_match_folders_too(small):
    (small / "rows" / "more").mkdir(parents=True)
    for name in ("a.csv", "more/b.csv"):
        (small / "rows" / name).write_text("age,smoker\nyoung,no\nold,yes\n")
    call("fit", small / "net.json", small / "rows" / "**", "--output-dir", small / "out", "--quiet")
    run = json.loads((small / "out" / "run.json").read_text())
    assert len(run["inputs"]["table"]) == 2


def test_too_many_rows_for_a_file_of_them_cost_no_other_output(small, monkeypatch):
    monkeypatch.setattr("robustbn._rows.stream.data.MOST_WEIGHTS_HELD", 10)
    (small / "many.csv").write_text("age,smoker\n" + "young,no\nold,yes\n" * 50)
    outputs = ("--output-dir", small / "out", "--weights", small / "w.parquet")
    ran = call("fit", small / "net.json", small / "many.csv", "--place", "stream", *outputs)
    assert "w.parquet is not written: the table has too many rows" in " ".join(ran.stderr.split())
    assert not (small / "w.parquet").exists()
    written = {file.name for file in (small / "out").iterdir()}
    assert written == {"fitted.json", "cpts.csv", "report.html", "run.json"}


def test_fit_says_on_one_screen_what_it_found(work, monkeypatch):
    monkeypatch.chdir(work)  # how long paths are decides how many lines the commands take
    ran = call("fit", "alarm.bif", "dirty.parquet")
    said = ran.stdout
    assert "of 20,000 rows (10 %) do not fit this network and are left out" in said.split("\n")[0]
    for word in ("rows        20,000", "--good-group 1", "counting", "time"):
        assert word in said
    assert re.search(r"^(error|warning) +About 2,000 rows", said, re.M)
    assert len(said.splitlines()) <= 24
    assert ESCAPE not in said
    assert ran.stderr == "" or ran.stderr.startswith("Warning:")


def test_the_json_of_fit_is_what_python_gives(work):
    facts = as_json("fit", work / "alarm.bif", work / "dirty.parquet")
    alarm = read_network(work / "alarm.bif")
    fit = robustbn.fit(alarm, work / "dirty.parquet", random_state=0)
    assert facts["contamination"] == fit.contamination_
    assert facts["rows_distrusted"] == int((fit.row_weights_ < 0.5).sum())
    assert facts["status"] == fit.status_
    assert facts["table"]["rows"] == 20000
    moved = fit.moved()
    assert [line["node"] for line in facts["moved"]] == list(moved["node"][:10])
    assert [line["moved"] for line in facts["moved"]] == list(moved["moved"][:10])
    first = facts["moved"][0]
    cell = alarm.cell(first["node"], first["parents"], first["state"])
    assert first["robust"] == fit.network_.probabilities[cell]
    assert first["counting"] == fit.plain_network_.probabilities[cell]


def test_quiet_says_nothing(work):
    ran = call("fit", work / "alarm.bif", work / "dirty.parquet", "--quiet")
    assert ran.stdout == ran.stderr == ""


def test_the_output_folder_holds_everything(work):
    folder = work / "result"
    assert sorted(p.name for p in folder.iterdir()) == [
        "cpts.csv", "fitted.bif", "report.html", "rows.parquet", "run.json",
    ]  # fmt: skip
    fit = robustbn.fit(work / "alarm.bif", work / "dirty.parquet", random_state=0)
    assert read_network(folder / "fitted.bif") == fit.network_
    rows = pq.read_table(folder / "rows.parquet")
    assert rows.column_names == ["row", "weight", "is_suspicious", "why"]
    assert np.array_equal(rows["weight"].to_numpy(), fit.row_weights_)
    assert rows["why"].to_pylist() == fit.rows()["why"].tolist()
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html")


def test_cpts_hold_both_estimates_of_every_cell(work):
    fit = robustbn.fit(work / "alarm.bif", work / "dirty.parquet", random_state=0)
    with (work / "result" / "cpts.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    network = fit.network_
    assert len(lines) == network.n_cells
    assert [float(line["robust"]) for line in lines] == network.probabilities.tolist()
    assert [float(line["naive"]) for line in lines] == fit.plain_network_.probabilities.tolist()
    for cell, line in enumerate(lines):
        node, parents, state = network.describe_cell(cell)
        given = "; ".join(f"{p}={v}" for p, v in parents.items())
        assert (line["node"], line["parents"], line["state"]) == (node, given, state)
        assert float(line["low"]) - 1e-5 <= float(line["robust"]) <= float(line["high"]) + 1e-5
    n_eff = network.layout.sum_configurations(fit.counts_)[network.layout.config_of_cell]
    assert np.allclose([float(line["n_eff"]) for line in lines], n_eff, rtol=1e-5)


def test_the_run_can_be_repeated_from_its_record(work):
    run = json.loads((work / "result" / "run.json").read_text())
    assert run["seed"] == 0
    assert run["versions"]["robustbn"] == robustbn.__version__
    assert run["inputs"]["table"] == hash_files(str(work / "dirty.parquet"))
    assert len(run["inputs"]["network"][0]["sha256"]) == 64
    assert set(run["seconds"]) >= {"read", "fit"}
    assert run["command"].startswith("robustbn fit ")
    assert run["command"] in (work / "result" / "report.html").read_text().replace("&#39;", "'")


def test_messy_files_are_read_with_the_options_of_read_table(small):
    args = ("fit", small / "net.json", small / "rows.csv", *MESSY)
    facts = as_json(*args, "--missing", "drop", "--unknown", "drop")
    assert facts["table"]["rows"] == 400
    assert facts["table"]["rows_left_out"] == 2
    assert facts["table"]["columns_ignored"] == ["note"]
    said = call(*args, "--missing", "drop", "--unknown", "drop").stdout
    assert "400; 2 left out, a value is missing or unknown" in said
    assert "1 column that is not a node: note" in said
    for asked in ("--id", "--keep", "--context"):
        assert (
            "ignored"
            not in call(*args, "--missing", "drop", "--unknown", "drop", asked, "note").stdout
        )


def test_settings_can_come_from_files(small):
    (small / "labels.json").write_text('{"smoker": {"0": "no", "1": "yes"}}')
    (small / "bins.json").write_text('{"age": [40]}')
    (small / "rename.json").write_text('{"Age": "age"}')
    facts = as_json(
        "fit", small / "net.json", small / "rows.csv", "--sep", ";", "--missing", "drop",
        "--unknown", "drop", "--labels", f"@{small / 'labels.json'}",
        "--bins", f"@{small / 'bins.json'}", "--rename", f"@{small / 'rename.json'}",
    )  # fmt: skip
    assert facts["table"]["rows"] == 400


def test_edge_lists_are_fitted_with_their_states(small):
    (small / "edges.csv").write_text("parent,child\nage,smoker\n")
    (small / "states.json").write_text('{"age": ["young", "old"], "smoker": ["no", "yes"]}')
    facts = as_json(
        "fit", small / "edges.csv", small / "rows.csv", *MESSY, "--missing", "drop",
        "--unknown", "drop", "--states", small / "states.json", "--output-dir", small / "out",
    )  # fmt: skip
    assert facts["network"]["edges"] == 1
    assert read_network(small / "out" / "fitted.json").edges == (("age", "smoker"),)


def test_private_rows_stay_private(work, tmp_path):
    call(
        "fit", work / "alarm.bif", work / "dirty.parquet", "--no-rows",
        "--report", tmp_path / "r.html", "--weights", tmp_path / "w.csv",
    )  # fmt: skip
    assert pv.read_csv(tmp_path / "w.csv").column_names == ["row", "weight", "is_suspicious"]
    assert '"rows":[]' in (tmp_path / "r.html").read_text()


def test_hostile_labels_reach_neither_the_terminal_nor_the_page(tmp_path):
    names = [f"{label}\x1b[31m{k}" for k, label in enumerate(HOSTILE[:4])]
    states = ["<script>alert(2)</script>", "\x1b]0;owned\x07"]
    network = BayesianNetwork(
        {n: names[:1] if k else [] for k, n in enumerate(names)}, dict.fromkeys(names, states)
    )
    truth = network.with_cpts(np.tile([0.9, 0.1], network.n_configurations))
    write_network(truth, tmp_path / "net.json")
    call("sample", tmp_path / "net.json", "-n", 3000, "-o", tmp_path / "rows.parquet")
    call(
        "corrupt", tmp_path / "net.json", tmp_path / "rows.parquet", "--kind", "flipped",
        "-o", tmp_path / "dirty.parquet",
    )  # fmt: skip
    args = ("fit", tmp_path / "net.json", tmp_path / "dirty.parquet")
    ran = call(*args, "--report", tmp_path / "r.html", "--model", tmp_path / "m.json")
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "\x07" not in ran.stdout
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert as_json(*args)["network"]["nodes"] == 4
    for other in (("inspect", args[1], args[2]), ("score", tmp_path / "m.json", args[2])):
        assert "\x1b" not in call(*other).stdout
    assert "\x1b" not in call("inspect", args[2]).stdout
    assert "\x1b" not in call("compare", args[1], tmp_path / "m.json").stdout


def test_a_prior_and_a_method_are_handed_on(work):
    facts = as_json(
        "fit", work / "alarm.bif", work / "dirty.parquet", "--method", "trimmed",
        "--contamination", "10%", "--prior", "laplace", "--jobs", 1,
    )  # fmt: skip
    fit = RobustEstimator(
        read_network(work / "alarm.bif"), 0.1, "trimmed", prior="laplace", random_state=0
    ).fit(robustbn.read_table(work / "dirty.parquet", read_network(work / "alarm.bif")))
    assert facts["contamination"] == pytest.approx(fit.contamination_)


# --- exit codes and messages ----------------------------------------------------------------------


def test_too_many_distrusted_rows_fail_a_pipeline_and_still_write_the_files(work, tmp_path):
    args = ("fit", work / "alarm.bif", work / "dirty.parquet", "--report", tmp_path / "r.html")
    ran = call(*args, "--fail-over", 5, code=1)
    assert "more than the 5 % of --fail-over" in ran.stderr
    assert (tmp_path / "r.html").exists()
    call(*args, "--force", "--fail-over", 20)


def test_strict_refuses_to_conclude_from_too_few_rows(work, tmp_path):
    call("sample", work / "alarm.bif", "-n", 300, "-o", tmp_path / "few.csv")
    ran = call("fit", work / "alarm.bif", tmp_path / "few.csv", "--strict", code=5)
    assert "do not permit a conclusion" in ran.stderr
    assert "Warning: 300 rows are too few" in ran.stderr
    call("fit", work / "alarm.bif", tmp_path / "few.csv")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("fit", "none.bif", "dirty.parquet"), 3, "none.bif cannot be read: there is no such file"),
        (("fit", "alarm.bif", "none.csv"), 4, "none.csv: no such file or folder"),
        (("fit", "alarm.pkl", "good.csv"), 3, "may run code when it is opened"),
        (("fit", "alarm.bif", "good.csv", "--sep", ";"), 4, "Say so with --sep ,"),
        (("fit", "alarm.bif", "good.csv", "--contamination", "10"), 2, "Did you mean 0.10?"),
        (("fit", "alarm.bif", "good.csv", "--contamination", "x"), 2, "0.1 or 10% or auto"),
        (("fit", "alarm.bif", "good.csv", "--method", "que", "--schedule", "paper"), 2,
         "'que' with the schedule 'paper' needs the share"),
        (("fit", "alarm.bif", "good.csv", "--max-table", "10"), 3, "--max-table"),
        (("fit", "alarm.bif"), 2, "Missing argument 'TABLE'"),
        (("score", "alarm.bif", "good.csv", "--fail-over", "1"), 2, "a network alone distrusts"),
        (("compare", "alarm.bif", "example:asia"), 3, "No example network 'asia'"),
        (("inspect", "a", "b", "c"), 2, "a network and a table"),
        (("sample", "alarm.bif", "--json"), 2, "remove --json, or add -o"),
        (("fit", "alarm.bif", "good.csv", "--bins", "HR:x"), 2, "expected edges"),
        (("fit", "alarm.bif", "good.csv", "--labels", "XX:1=2"), 2, "a node of the network"),
        (("fit", "alarm.bif", "good.csv", "--labels", "HR:1"), 2, "is not VALUE=STATE"),
        (("fit", "alarm.bif", "good.csv", "--rename", "HR"), 2, "write COLUMN=NODE"),
        (("fit", "alarm.bif", "good.csv", "--labels", "@none"), 2, "cannot be read as JSON"),
        (("fit", "alarm.bif", "good.csv", "--encoding", "x"), 2, "must be the name of a text"),
        (("fit", "alarm.bif", "good.csv", "-o", "x.uai"), 3, "robustbn convert --numbered"),
    ],
)  # fmt: skip
def test_errors_are_one_message_with_the_right_code(work, monkeypatch, args, code, message):
    monkeypatch.chdir(work)
    ran = call(*args, code=code)
    assert message in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (("-o", "alarm.bif"), "is read by this command"),
        (("-o", "good.csv"), "must end in one of"),
        (("-o", "model.json"), "already exists; --force replaces it"),
        (("-o", "nowhere/x.bif"), "the folder nowhere does not exist"),
        (("-o", "new.json", "--model", "./new.json"), "would be written twice"),
        (("--report", "result"), "must end in one of .html"),
        (("--weights", "rows.xls"), "must end in one of .parquet"),
        (("--output-dir", "result"), "already exists"),
        (("--output-dir", "good.csv"), "is a file"),
    ],
)
def test_outputs_are_checked_before_anything_is_read(work, monkeypatch, output, message):
    monkeypatch.chdir(work)
    before = sorted(work.rglob("*"))
    said = call("fit", "alarm.bif", "there-is-no-table.csv", *output, code=2).stderr
    assert message in " ".join(said.split())
    assert sorted(work.rglob("*")) == before


def test_a_table_is_never_replaced_even_by_force(work, monkeypatch):
    monkeypatch.chdir(work)
    before = (work / "dirty.parquet").read_bytes()
    args = ("fit", "alarm.bif", "dirty.parquet", "--force", "--weights", "./dirty.parquet")
    assert "is read by this command" in call(*args, code=2).stderr
    assert (work / "dirty.parquet").read_bytes() == before


def test_replacing_follows_links_and_keeps_the_mode(work, tmp_path):
    real = tmp_path / "real.json"
    real.write_text("old")
    real.chmod(0o640)
    (tmp_path / "link.json").symlink_to(real)
    call("convert", work / "alarm.bif", tmp_path / "link.json", "--force")
    assert (tmp_path / "link.json").is_symlink()
    assert read_network(real) == robustbn.example_network("alarm")
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("setting", "python", "shell"),
    [
        (Setting("on_unknown", "drop"), "on_unknown='drop'", "--unknown drop"),
        (Setting("rename", {"Age": "age", "a b": "c"}), "rename={'Age': 'age', 'a b': 'c'}",
         "--rename Age=age --rename 'a b=c'"),
        (Setting("sep", ";"), "sep=';'", "--sep ';'"),
        (Setting("sep", "\t"), "sep='\\t'", "--sep tab"),
        (Setting("ignore_case", True), "ignore_case=True", "--ignore-case"),
        (Setting("labels", {"A": {0: "no", 1: "yes"}}), "labels={'A': {0: 'no', 1: 'yes'}}",
         "--labels A:0=no,1=yes"),
        (Setting("bins", {"A": Either("[...]", "EDGE,...")}), "bins={'A': [...]}",
         "--bins A:EDGE,..."),
        (Setting("normalize", True), "normalize=True", "robustbn convert --normalize"),
        (Setting("connection", None), "connection=None", "connection=None"),
    ],
)  # fmt: skip
def test_advice_is_given_in_options_of_the_command_that_is_running(setting, python, shell):
    error = DataError(Advice("Use ", setting, "; ", Either("it", "they"), " helps."))
    assert str(error) == f"Use {python}; it helps."
    fit = main.get_command(None, "fit")
    with click.Context(main), click.Context(fit, parent=click.Context(main)):
        assert say(error) == f"Use {shell}; they helps."


def test_the_first_errors_people_meet_name_the_option_that_helps(small):
    args = ["fit", small / "net.json", small / "rows.csv"]
    assert "--sep ';'" in call(*args, code=4).stderr
    args += ["--sep", ";"]
    assert "--rename Age=age" in call(*args, code=4).stderr
    args += ["--rename", "Age=age"]
    assert "--bins age:q2" in call(*args, code=4).stderr
    args += ["--bins", "age:q2"]
    assert "--labels smoker:" in call(*args, code=4).stderr
    args += ["--labels", "smoker:0=no,1=yes"]
    assert "--unknown drop" in call(*args, code=4).stderr
    args += ["--unknown", "drop"]
    assert "--missing drop" in call(*args, "--missing", "error", code=4).stderr
    call(*args, "--missing", "drop")
    call(*args)


# --- the other commands ---------------------------------------------------------------------------


def test_score_judges_new_rows_by_a_model(work, tmp_path):
    out = tmp_path / "judged.parquet"
    facts = as_json("score", work / "model.json", work / "dirty.parquet", "-o", out)
    model = RobustEstimator.load(work / "model.json")
    weights = model.weights(work / "dirty.parquet")
    assert facts["judged"] == "trust"
    assert facts["rows_distrusted"] == int((weights < 0.5).sum())
    judged = pq.read_table(out)
    assert np.array_equal(judged["weight"].to_numpy(), weights)
    assert [w["row"] for w in facts["worst"]] == np.argsort(weights, kind="stable")[:10].tolist()
    said = call("score", work / "model.json", work / "good.csv", "--fail-over", 1).stdout
    assert "when the model was fitted" in said
    call("score", work / "model.json", work / "dirty.parquet", "--fail-over", 1, code=1)


def test_score_gives_likelihoods_by_a_network_and_says_so(work, tmp_path):
    out = tmp_path / "likelihood.csv"
    facts = as_json("score", work / "alarm.bif", work / "good.csv", "-o", out)
    alarm = read_network(work / "alarm.bif")
    rows = robustbn.read_table(work / "good.csv", alarm)
    of_row = np.log(
        [
            [alarm.probabilities[alarm.cell(n, {p: row[p] for p in alarm.parents[n]}, row[n])]
             for n in alarm.nodes]
            for row in ({n: alarm.states[n][c] for n, c in zip(alarm.nodes, codes, strict=True)}
                        for codes in rows.codes[:50])
        ]
    ).sum(axis=1)  # fmt: skip
    written = pv.read_csv(out)["log_likelihood"].to_numpy()
    assert np.allclose(written[:50], of_row, rtol=1e-5)
    assert facts["mean_log_likelihood"] == pytest.approx(written.mean(), rel=1e-5)
    said = call("score", work / "alarm.bif", work / "good.csv").stdout
    assert "log-likelihood; a model (from fit --model) would give the trust" in said


def test_findings_that_are_not_printed_are_said_to_be_where_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    columns = {f"c{k}": np.where(rng.random(400) < 0.5, "x", "") for k in range(6)}
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    Path("rows.csv").write_text("\n".join(lines).replace("x", "y", 40) + "\n")
    assert "more: in rows.check.html" in call("check", "rows.csv").output
    assert "more: in new/report.html" in call("check", "rows.csv", "--output-dir", "new").output
    assert "more: --report, or --json" in call("fit", "rows.edges.csv", "rows.csv").output


def test_score_asks_for_a_model_instead_of_a_list_of_edges(tmp_path):
    edges, rows = tmp_path / "edges.csv", tmp_path / "rows.csv"
    edges.write_text("parent,child\na,b\n")
    rows.write_text("a,b,c\nx,y,z\n")
    said = call("score", edges, rows, code=3)
    assert "edges.csv TABLE --model model.json" in said.stderr


def test_score_reads_new_rows_as_those_of_the_fit(small):
    args = (small / "rows.csv", "--missing", "drop", "--unknown", "drop")
    call("fit", small / "net.json", *args, *MESSY, "--model", small / "m.json")
    assert as_json("score", small / "m.json", small / "rows.csv")["rows"] == 400
    (small / "other.csv").write_text("Age,smoker\n20,0\n50,1\n")
    assert as_json("score", small / "m.json", small / "other.csv", "--sep", ",")["rows"] == 2


def test_inspect_says_what_a_file_is(work):
    alarm = as_json("inspect", work / "alarm.bif")["network"]
    assert (alarm["nodes"], alarm["edges"], alarm["free_parameters"]) == (37, 46, 509)
    assert alarm["rows_wanted"] == 24300
    table = as_json("inspect", work / "good.csv")["table"]
    assert table["rows"] == 20000
    assert table["columns"][0]["values"] == ["FALSE", "TRUE"]
    assert "fitted to 20,000 rows" in call("inspect", work / "model.json").stdout
    assert "37 columns" in call("inspect", work / "dirty.parquet").stdout


def test_inspect_says_whether_a_table_fits_a_network(work, small):
    found = as_json("inspect", work / "alarm.bif", work / "good.csv", "--eps", "10%")["together"]
    assert found["rows"] == 20000
    assert found["rows_wanted"] == pytest.approx(24300)
    assert found["has_enough_rows"] is False
    said = call("inspect", work / "alarm.bif", work / "good.csv").stdout
    assert "the paper requires about m / eps^2 = 24,300" in said
    call("inspect", small / "net.json", small / "rows.csv", code=4)


def test_compare_measures_the_distance(work, small):
    truth, fitted = work / "alarm.bif", work / "result" / "fitted.bif"
    facts = as_json("compare", truth, fitted)
    distance = robustbn.total_variation(read_network(truth), read_network(fitted))
    assert facts["total_variation"] == float(distance)
    assert facts["low"] == distance.low
    assert len(facts["nodes"]) == 37
    assert "total variation  0.000000" in call("compare", truth, truth).stdout
    assert "has no tables" in call("compare", truth, small / "net.json", code=3).stderr


def test_compare_tells_which_edges_differ(tmp_path, sprinkler):
    write_network(sprinkler, tmp_path / "a.json")
    parents = {**sprinkler.parents, "sprinkler": ()}
    other = BayesianNetwork(parents, sprinkler.states, {**sprinkler.cpts, "sprinkler": [0.7, 0.3]})
    write_network(other, tmp_path / "b.json")
    facts = as_json("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert facts["edges_only_in_first"] == [["rain", "sprinkler"]]
    assert facts["is_exact"]
    assert "rain -> sprinkler" in call("compare", tmp_path / "a.json", tmp_path / "b.json").stdout


def test_sample_draws_the_rows_that_python_draws(tmp_path, sprinkler):
    write_network(sprinkler, tmp_path / "net.json")
    codes = robustbn.sample(sprinkler, 70_000, 5)
    for name in ("rows.csv", "rows.tsv", "rows.parquet", "rows.arrow"):
        call("sample", tmp_path / "net.json", "-n", 70_000, "--seed", 5, "-o", tmp_path / name)
        found = robustbn.read_table(tmp_path / name, sprinkler)
        assert np.array_equal(found.codes, codes)
    said = call("sample", tmp_path / "net.json", "-n", 2, "--seed", 5).stdout
    assert said.splitlines()[0] == "wet,rain,sprinkler"
    assert len(said.splitlines()) == 3
    numbers = call("sample", tmp_path / "net.json", "-n", 2, "--codes").stdout.splitlines()[1]
    assert set(numbers) <= set("012,")


def test_corrupt_writes_a_poisoned_copy_and_which_rows_are_bad(work, tmp_path):
    args = ("corrupt", work / "alarm.bif", work / "good.csv", "--kind", "product", "--eps", 0.2)
    out = tmp_path / "dirty.parquet"
    facts = as_json(*args, "--mode", "add", "--seed", 4, "-o", out)
    alarm = read_network(work / "alarm.bif")
    good = robustbn.read_table(work / "good.csv", alarm).codes
    dirty, is_bad = corrupt(good, alarm, "product", 0.2, 4, mode="add")
    assert facts["rows_bad"] == is_bad.sum()
    assert np.array_equal(robustbn.read_table(out, alarm).codes, dirty)
    written = pv.read_csv(tmp_path / "dirty.bad.csv")["is_bad"].to_numpy(zero_copy_only=False)
    assert np.array_equal(written.astype(bool), is_bad)


def test_corrupt_learns_the_tables_of_a_network_that_has_none(work, tmp_path):
    call("convert", work / "alarm.bif", tmp_path / "bare.bif", "--no-tables")
    assert not read_network(tmp_path / "bare.bif").has_cpts
    ran = call("corrupt", tmp_path / "bare.bif", work / "good.csv", "-o", tmp_path / "d.csv")
    assert "those counted from the rows are used" in ran.stderr
    assert call("sample", tmp_path / "bare.bif", code=3).stdout == ""


@pytest.mark.parametrize("name", ["n.json", "n.bif.gz", "n.xmlbif", "n.net", "n.xdsl"])
def test_convert_keeps_every_number(tmp_path, name):
    call("convert", "example:alarm", tmp_path / name)
    assert read_network(tmp_path / name) == robustbn.example_network("alarm")


def test_convert_needs_a_word_to_drop_names(tmp_path):
    said = call("convert", "example:alarm", tmp_path / "n.uai", code=3).stderr
    assert "--numbered" in said
    assert list(tmp_path.iterdir()) == []
    call("convert", "example:alarm", tmp_path / "n.uai", "--numbered")
    call("convert", "example:alarm", tmp_path / "odd.name", "--to", "bif")
    call("convert", tmp_path / "odd.name", tmp_path / "n.json", "--from", "bif")


def test_the_json_of_the_demo_compares_with_counting(tmp_path):
    facts = as_json("demo", "--rows", 20000, "-o", tmp_path)
    assert facts["total_variation"]["robustbn"] < 0.2 * facts["total_variation"]["counting"]


# --- in a process of its own ----------------------------------------------------------------------


def test_results_go_to_stdout_and_everything_else_to_stderr(work):
    ran = start("fit", work / "alarm.bif", work / "dirty.parquet", "--json")
    assert json.loads(ran.stdout)["table"]["rows"] == 20000
    assert ESCAPE not in ran.stdout + ran.stderr
    bad = start("fit", work / "alarm.bif", work / "none.csv", code=4)
    assert bad.stdout == ""
    assert bad.stderr.count("\n") == 1


def test_an_ascii_terminal_is_no_reason_to_fail(tmp_path):
    write_network(BayesianNetwork({"größe": []}, {"größe": ["klein", "groß"]}), tmp_path / "n.json")
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    (tmp_path / "rows.csv").write_text("größe\n" + "groß\nklein\n" * 50, encoding="utf-8")
    start("fit", tmp_path / "n.json", tmp_path / "rows.csv", env=env)


def test_a_reader_that_leaves_early_is_no_error_to_shout_about():
    line = f"{COMMAND} sample example:alarm -n 200000 | head -n 2"
    ran = subprocess.run(line, shell=True, capture_output=True, text=True)  # noqa: S602
    assert len(ran.stdout.splitlines()) == 2
    assert ran.stderr == ""


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_closed_pipe_ends_a_command_quietly_as_it_does_others(tmp_path, options):
    names = ",".join(f"column {k}" for k in range(40))
    (tmp_path / "rows.csv").write_text(f"{names}\n" + ",".join("a" * 40) + "\n")
    line = [str(COMMAND), "inspect", str(tmp_path / "rows.csv"), *options]
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(line, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_a_closed_output_is_nowhere(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\nx,y\n")
    line = f"{COMMAND} inspect {tmp_path / 'rows.csv'} >&-"
    ran = subprocess.run(line, shell=True, capture_output=True, text=True)  # noqa: S602
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_tour_does_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tour = (ROOT / "examples" / "cli.sh").read_text()
    lines = [line for line in tour.splitlines() if line.startswith("robustbn ")]
    distances = []
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])[1:]
        fails = "|| echo" in line
        said = call(*words, code=1 if fails else 0).stdout
        if words[0] == "compare":
            distances.append(float(said.split()[2]))
    robust, counted = distances
    assert robust < 0.2 * counted
    assert (tmp_path / "result" / "report.html").exists()


def test_the_page_on_the_command_line_names_every_command_and_option():
    text = (ROOT / "docs" / "cli.md").read_text()
    for name in COMMANDS:
        assert f"robustbn {name}" in text
    for code in (0, 1, 2, 3, 4, 5, 6, 70, 130, 143):
        assert f"\n| {code} | " in text
    options = set(re.findall(r"`(--[a-z-]+)", text))
    known = {
        option
        for name in COMMANDS
        for param in main.get_command(None, name).params
        for option in param.opts
    }
    assert options <= known


def on_terminal(args, interrupt_at=None, **env):
    """Run a command on a terminal of its own, press Ctrl-C when a text appears."""
    import pty

    own, its = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [COMMAND, *map(str, args)], stdin=its, stdout=its, stderr=its, start_new_session=True,
        env={**clean, "TERM": "xterm-256color", **env},
    )  # fmt: skip
    os.close(its)
    said = b""
    while True:
        ready, _, _ = select.select([own], [], [], 60)
        try:
            part = os.read(own, 65536) if ready else b""
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
        if interrupt_at is not None and interrupt_at in said:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    os.close(own)
    return process.wait(timeout=60), said.decode()


def test_ctrl_c_in_the_middle_of_a_fit_leaves_no_file(work, tmp_path):
    args = (
        "fit", work / "alarm.bif", work / "dirty.parquet", "-o", tmp_path / "f.bif",
        "--report", tmp_path / "r.html", "--output-dir", tmp_path / "all",
    )  # fmt: skip
    code, said = on_terminal(args, b"fitting", ROBUSTBN_KERNELS="numpy")
    assert code == 130
    assert "No partial output was left behind" in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_files_are_written_leaves_none_of_them(work, tmp_path):
    code = f"""
import os, signal
import robustbn._cli.fit_files as files
from robustbn.cli import main
def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)
files.write_cpts = interrupt  # the network, report and rows are staged by then
main(["fit", {str(work / "alarm.bif")!r}, {str(work / "dirty.parquet")!r}, "--force",
      "-o", {str(tmp_path / "f.bif")!r}, "--output-dir", {str(tmp_path / "all")!r}])
"""
    (tmp_path / "f.bif").write_text("as it was")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 130, ran.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["f.bif"]
    assert (tmp_path / "f.bif").read_text() == "as it was"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_a_command_leaves_no_temporary_file(work, tmp_path, name):
    process = subprocess.Popen(
        [COMMAND, "fit", work / "alarm.bif", "-"], env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not list(tmp_path.rglob("standard-input")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name), said
    assert b"No partial output was left behind" in said
    assert list(tmp_path.iterdir()) == []


def fill(*_):
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_no_file_and_says_which_has_no_room(work, tmp_path, monkeypatch):
    monkeypatch.setattr("robustbn._cli.fit_files.write_cpts", fill)
    network, table = work / "alarm.bif", work / "dirty.parquet"
    said = call("fit", network, table, "--output-dir", tmp_path / "all", code=6).stderr
    written = tmp_path / "all" / "cpts.csv"
    assert f"{written} cannot be written: No space left on device." in said
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_for_standard_input_says_which_folder_has_no_room(work, monkeypatch):
    monkeypatch.setattr("robustbn._tables.here.shutil.copyfileobj", fill)
    said = call("fit", work / "alarm.bif", "-", code=6).stderr
    assert "Standard input does not fit in " in said
    assert f"{tempfile.gettempdir()}/robustbn-" in said
    assert "while it is read: No space left on device. Set TMPDIR to another folder." in said


@pytest.mark.parametrize(
    ("options", "env", "has_colour"),
    [((), {}, True), ((), {"NO_COLOR": "1"}, False)],
)
def test_colours_are_for_terminals_that_want_them(work, options, env, has_colour):
    code, said = on_terminal(("inspect", work / "alarm.bif", *options), **env)
    assert code == 0
    assert ("\x1b[1m" in said) is has_colour
    code, said = on_terminal(("fit", "none.bif", "none.csv", *options), **env)
    assert code == 3
    assert ("\x1b[31m" in said) is has_colour


def test_the_report_of_the_command_line_opens_in_a_browser(work, tmp_path):
    page = (work / "result" / "report.html").read_text(encoding="utf-8")
    with open_browser(tmp_path) as browser:
        browser.open(page, tmp_path)
        assert "do not fit this network" in browser.text("h1")
        assert "robustbn fit" in browser.text("#command")
        assert browser.complaints() == []
        assert browser.requests() == []
