"""The Python blocks of pages that stand by themselves run, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SAYS = re.compile(r"^(\S.*?)  # (\S.*)$", re.MULTILINE)  # what a line gives


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
@pytest.mark.parametrize("page", ["causes.md", "misfit.md"])
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, names = (DOCS / page).read_text(encoding="utf-8"), {}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, f"docs/{page}", "exec"), names)  # noqa: S102


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
def test_the_cause_of_the_page_is_the_one_that_is_found():
    text, names = (DOCS / "causes.md").read_text(encoding="utf-8"), {}
    block = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    exec(compile(block, "docs/causes.md", "exec"), names)  # noqa: S102
    said = dict(SAYS.findall(block))
    assert eval(said["kind.cause.name"]) == names["kind"].cause.name  # noqa: S307
    assert eval(said["sorted(kind.cause.columns)"]) == sorted(names["kind"].cause.columns)  # noqa: S307
    assert names["kind"].cause.confidence > 0.97
