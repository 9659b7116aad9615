"""Every example runs, and what it claims holds."""

import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

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
