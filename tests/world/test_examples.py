"""Every example runs, and what it claims holds."""

import json
import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = EXAMPLES / "scale" / "dask_cluster.py"  # whose processes import it


@pytest.mark.parametrize(
    "script", sorted({*EXAMPLES.rglob("*.py")} - {CLUSTER}), ids=lambda path: path.stem
)
def test_the_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example shows what it found"


def test_the_example_of_a_cluster_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(CLUSTER)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows what it found"


def test_the_front_page_says_what_is_found_in_the_crashes(tmp_path):
    def run(name, *arguments):
        command = [Path(sys.executable).with_name(name), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout

    run("python", EXAMPLES / "crashes.py")
    told = json.loads(run("robustbn", "check", "crashes.csv", "--json"))
    serious = [one for one in told["findings"] if one["severity"] != "note"]
    assert [(one["severity"], one["kind"]) for one in serious[:3]] == [
        ("error", "column differs"),
        ("error", "repeated rows"),
        ("warning", "wrong cells"),
    ]
    assert {"seatbelt", "airbag", "injSeverity", "sex"} <= set(serious[0]["columns"])
    assert serious[2]["columns"] == ["ageOFocc"]
    run("robustbn", "repair", "edges.csv", "airbags.csv", "-o", "repaired.csv")
    names = ("airbags_before.csv", "airbags.csv", "repaired.csv")
    right, wrong, repaired = (pd.read_csv(tmp_path / name, dtype=str) for name in names)
    is_changed = (repaired != wrong).to_numpy()
    n_right = int((repaired == right).to_numpy()[is_changed].sum())
    page = re.sub(r"\s+", " ", (EXAMPLES.parent / "README.md").read_text(encoding="utf-8"))
    assert f"{is_changed.sum()} values are changed, {n_right} of them to the right value" in page
