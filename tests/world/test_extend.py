"""Following the page on extensions works, in a copy of the sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
RUN = """
import runpy, sys, warnings
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")  # the copy has no native kernels, and says so
import robustbn
assert robustbn.__file__.startswith(sys.argv[1]), robustbn.__file__
runpy.run_path(sys.argv[2])
"""


def change(file, lines):
    """Add lines marked `+` after the line above them, in place of those marked `-`."""
    text, before = file.read_text(encoding="utf-8"), ""
    for mark, line in ((line[0], line[1:]) for line in lines):
        if mark == " ":
            before = f"{line}\n"
            assert text.count(before) == 1, line
        elif mark == "-":
            assert text.count(f"{line}\n") == 1, line
            before = f"{line}\n"
            text = text.replace(before, "\0")
        else:
            new = f"{line}\n"
            place = "\0" if "\0" in text else before
            text = text.replace(place, new if place == "\0" else before + new)
            before = new
    file.write_text(text, encoding="utf-8")


def follow(text, folder):
    """Write what a section says into a copy of the sources; return the check it ends with."""
    shutil.copytree(
        ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    for kind, name, block in re.findall(r"```(\w+)\n ?# ([\w/.]+)\n(.*?)```", text, re.S):
        path = folder / name
        if kind == "diff":
            change(path, block.splitlines())
        else:
            assert not path.exists()
            path.write_text(block, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(("title", "text"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_following_the_page_gives_something_that_works(title, text, tmp_path):
    check = follow(text, tmp_path)
    command = [sys.executable, "-c", RUN, str(tmp_path / "src"), str(check)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("checked_types")
def test_what_the_page_says_to_write_keeps_the_house_rules(tmp_path):
    follow("".join(text for _, text in SECTIONS), tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / ".mypy_cache", tmp_path / ".mypy_cache")  # takes a minute to learn
    changed = [str(tmp_path / name) for name in re.findall(r"```\w+\n ?# (src[\w/.]+)\n", PAGE)]
    assert len(changed) == 6
    for command in (["ruff", "check", *changed], ["mypy", "--strict", *changed]):
        command = [sys.executable, "-m", *command]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_there_are_three_ways_to_extend():
    assert [title.split(":")[0] for title, _ in SECTIONS] == [
        "An oracle", "A format of network files", "Kernels",
    ]  # fmt: skip
