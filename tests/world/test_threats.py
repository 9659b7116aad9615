"""Every promise of the page on threats is checked by a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def functions_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_is_there():
    defined = {path: functions_in(path) for path in {path for path, _ in NAMED}}
    assert [f"{path}::{test}" for path, test in NAMED if test not in defined[path]] == []


def test_every_promise_in_a_table_names_its_test():
    tables = re.findall(r"\| promise \| checked by \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    lines = [line for table in tables for line in table.splitlines()]
    assert len(tables) == 5
    assert [line for line in lines if not re.search(r"\| `tests/[\w/]+\.py::\w+`", line)] == []


def test_the_readme_links_the_page():
    assert "/docs/threats.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
