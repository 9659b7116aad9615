"""The blocks of every page run, from top to bottom, in a folder with the files that they name.

A `text` block right below a block shows lines that this block prints, in their order.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import robustbn
from robustbn.simulate import corrupt

DOCS = Path(__file__).parents[2] / "docs"
ELSEWHERE = {"extend.md", "recipes.md"}  # run by tests of their own
BLOCK = re.compile(
    r"^( *)```(python|sh|bash)\n(.*?)^\1```(?:\n+\1```text\n(.*?)^\1```)?", re.DOTALL | re.MULTILINE
)


def blocks_of(page):
    """Return the blocks of a page that can be run: what runs them, their text, what they print."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [
        (kind, re.sub(f"^{indent}", "", text, flags=re.M), shown)
        for indent, kind, text, shown in found
    ]


def check_shown(shown, printed):
    """Check that each line that a page shows below a block was printed, in this order."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
        assert line == "..." or line in lines, f"{line!r} was not printed there:\n{printed}"


PAGES = sorted(page.name for page in DOCS.glob("*.md") if blocks_of(page.name))
CLAIMING = ["causes.md", "paper.md", "start.md", "understand.md"]  # whose comments are held, too


def write_rows(network, codes, path):
    columns = {n: np.array(network.states[n])[codes[:, i]] for i, n in enumerate(network.nodes)}
    frame = pd.DataFrame(columns)
    frame["checked"] = ""
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files that pages name: networks, a list of edges, a table, one with bad rows."""
    folder = tmp_path_factory.mktemp("files")
    robustbn.example_network("alarm").write(folder / "alarm.bif.gz")
    network = robustbn.random_network("tree", 40, random_state=0)
    network.write(folder / "net.bif")
    edges = "".join(f"{parent},{child}\n" for parent, child in network.edges)
    (folder / "edges.csv").write_text(f"parent,child\n{edges}")
    good = robustbn.sample(network, 10_000, random_state=0)
    dirty, _ = corrupt(good, network, "product", 0.1, random_state=0)
    write_rows(network, dirty, folder / "rows.csv")
    for day, rows in (("monday", good[:5_000]), ("tuesday", good[5_000:])):
        write_rows(network, rows, folder / f"{day}.parquet")
    return folder


def run_in_shell(block):
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "ignore",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        ["sh", "-e", "-c", block], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE | set(CLAIMING)])
def test_every_block_runs(page, files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for file in files.iterdir():
        (tmp_path / file.name).symlink_to(file)
    names, printed = {}, ""
    for kind, block, shown in blocks_of(page):
        if kind == "python":
            exec(compile(block, f"docs/{page}", "exec"), names)  # noqa: S102
            new = capsys.readouterr().out
        else:
            new = run_in_shell(block)
        check_shown(shown, new)
        printed += new
    text = (DOCS / page).read_text(encoding="utf-8")
    assert all(said in printed for said in re.findall(r"^prints `([^`]+)`", text, re.MULTILINE))


def claims_of(block):
    """Return the expressions of a block whose comment says what they give, and what it says."""
    lines = block.splitlines()
    for node in ast.parse(block).body:
        comment = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
        if isinstance(node, ast.Expr) and comment.startswith("  # "):
            said = re.match(r"[\d.]+\b(?=[;:,]|$)|.*", comment[4:])[0]
            with contextlib.suppress(ValueError, SyntaxError):  # words, not a value
                yield ast.unparse(node), ast.literal_eval(said)


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
@pytest.mark.parametrize("page", CLAIMING)
def test_what_a_page_says_in_comments_is_what_is_found(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, n_claims = {}, 0
    for _, block, shown in (each for each in blocks_of(page) if each[0] == "python"):
        exec(compile(block, f"docs/{page}", "exec"), names)  # noqa: S102
        check_shown(shown, capsys.readouterr().out)
        for expression, said in claims_of(block):
            found = eval(expression, names)  # noqa: S307
            if isinstance(said, str) and said.endswith("..."):
                found, said = found[: len(said) - 3], said[:-3]
            assert found == (pytest.approx(said, abs=2e-3) if isinstance(said, float) else said)
            n_claims += 1
    assert n_claims
