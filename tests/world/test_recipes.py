"""Every command and every block of the page of recipes runs, as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
SECTIONS = {
    title: re.findall(r"```(\w+)\n(.*?)```", text, re.S)
    for title, text in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
}
START, NOTEBOOK = "A table to try them on", "pandas, in a notebook"
FILE_NAME = re.compile(r"# (\w+\.\w+)\n")
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONWARNINGS": "ignore",
    "PYTHONIOENCODING": "utf-8",
}


def run(*command, folder):
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def follow(title, folder):
    """Do what a recipe says, block by block."""
    for kind, block in SECTIONS[title]:
        name = FILE_NAME.match(block)
        if name is not None:
            (folder / name[1]).write_text(block, encoding="utf-8")
        elif kind == "python":
            run(sys.executable, "-c", block, folder=folder)
        elif kind == "sh":
            run("sh", "-e", "-c", block, folder=folder)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    follow(START, folder)
    return folder


@pytest.mark.parametrize("title", [t for t in SECTIONS if t not in (START, NOTEBOOK)])
def test_the_recipe_works(title, rows, tmp_path):
    shutil.copytree(rows, tmp_path, dirs_exist_ok=True)
    follow(title, tmp_path)


def test_the_notebook_is_that_of_the_page_and_runs(rows):
    notebook = nbformat.read(ROOT / "examples" / "recipes" / "pandas.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    ((_, shown),) = SECTIONS[NOTEBOOK]
    assert "\n\n".join(cell.source for cell in cells) == shown.strip()
    assert not any(cell.outputs for cell in cells)
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": rows}})
    client.execute()
    fitted, where, worst, n_bad = (cell.outputs[-1]["data"] for cell in cells)
    assert "rbn-inline" in fitted["text/html"]
    assert "2024-03-07 to 2024-03-10" in where["text/html"]
    assert "0310-" in worst["text/html"]
    assert 1_500 < int(n_bad["text/plain"]) < 2_500


def test_every_block_of_the_page_is_run_or_kept():
    kinds = {kind for blocks in SECTIONS.values() for kind, _ in blocks}
    assert kinds == {"python", "sh", "text"}
    assert len(SECTIONS) == 7
