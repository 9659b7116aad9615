"""The site has every page, every public name, and links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from robustbn.cli import COMMANDS
from tests.test_public_names import THINGS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page):
    """Return what links to the headings of a page end in, as code hosts and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {word.strip().replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere_when_it_is_read_as_it_is(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINK.findall(text):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name}: {link}"


def test_every_page_is_in_a_table_of_contents():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^[\w/-]+$", index, re.MULTILINE))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.glob("*.md")}
    pages |= {f"stories/{page.stem}" for page in DOCS.glob("stories/*.ipynb")}
    assert pages - {"index"} == listed


def test_every_public_name_is_in_the_reference():
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    listed = {name.rpartition(".")[2] for name in re.findall(r"^   ([\w.]+)$", page, re.MULTILINE)}
    assert {name.rpartition(".")[2] for name in THINGS} <= listed


def test_every_command_is_in_the_reference_of_commands():
    page = (DOCS / "reference-cli.md").read_text(encoding="utf-8")
    assert ".. click:: robustbn.cli:main" in page
    assert ":nested: full" in page  # every command there is, from click itself
    assert COMMANDS
