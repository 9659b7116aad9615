"""Cells that a spreadsheet would run are written so that it does not, and read as they were."""

from __future__ import annotations

import csv

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import robustbn
from robustbn import BayesianNetwork, read_table
from robustbn._core.formulas import guard_cell, unguard_cell
from robustbn.cli import main

LABELS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\tx", "\rx", "\n=1", "\x0b=1", "-5\n",
          "'=1+1", "-5", "+1.5e3", "-", "it's", "'", "plain"]  # fmt: skip
NAME = "=HYPERLINK(1)"
NETWORK = BayesianNetwork(
    {NAME: [], "b": [NAME]},
    {NAME: LABELS, "b": ["x", "=y"]},
    {NAME: [1 / len(LABELS)] * len(LABELS), "b": [[0.5, 0.5]] * len(LABELS)},
)


def run(*arguments):
    done = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr


def cells_of(path, sep=","):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=sep))


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_sampled_cells_are_guarded_and_come_back_as_they_were(suffix, tmp_path):
    NETWORK.write(tmp_path / "net.json")
    run("sample", tmp_path / "net.json", "-n", 2000, "-o", tmp_path / f"t{suffix}")
    cells = {c for line in cells_of(tmp_path / f"t{suffix}", "\t" if suffix == ".tsv" else ",")
             for c in line}  # fmt: skip
    assert {c for c in cells if c[0] in "=+-@\t\r\n\x0b"} == {"-5", "+1.5e3", "-"}
    assert f"'{NAME}" in cells
    read = read_table(tmp_path / f"t{suffix}", NETWORK)
    drawn = robustbn.sample(NETWORK, 2000, random_state=0)
    assert (read.codes == drawn).all()


def test_raw_csv_writes_cells_as_they_are(tmp_path):
    NETWORK.write(tmp_path / "net.json")
    run("sample", tmp_path / "net.json", "-n", 500, "-o", tmp_path / "t.csv", "--raw-csv")
    assert {"=1+1", "@SUM(1)", NAME} <= {c for line in cells_of(tmp_path / "t.csv") for c in line}


def test_tables_and_verdicts_are_guarded_too(tmp_path):
    NETWORK.write(tmp_path / "net.json")
    run("sample", tmp_path / "net.json", "-n", 3000, "-o", tmp_path / "t.parquet")
    run("fit", tmp_path / "net.json", tmp_path / "t.parquet", "--output-dir", tmp_path / "out",
        "--weights", tmp_path / "rows.csv")  # fmt: skip
    cells = [c for path in (tmp_path / "out" / "cpts.csv", tmp_path / "rows.csv")
             for line in cells_of(path) for c in line]  # fmt: skip
    assert {"'=1+1", "'\n=1"} <= set(cells)
    numbers = [c for c in cells if c[:1] in {*"=+-@\t\r\n\x0b"} and len(c) > 1]
    assert all(float(c) == float(c) for c in numbers)


@given(st.text("='+-@\t\r5.e x\n\x0b", max_size=6))
def test_every_cell_comes_back(text):
    assert unguard_cell(guard_cell(text)) == text
