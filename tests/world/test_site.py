"""The site has every page, every public name, and links that lead somewhere."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from robustbn.cli import COMMANDS
from tests.world.test_public_names import THINGS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
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


def numbers_of(line):
    return re.findall(r"\d[\d.,]*%?", line)


def test_the_numbers_of_the_page_on_choosing_are_those_that_were_measured():
    page = (DOCS / "choose.md").read_text(encoding="utf-8")
    n_lines = 0
    for part in page.split("From\n")[1:] + page.split("From ")[1:]:
        link = LINK.search(part)[1].partition("#")[0]
        measured = (DOCS / link).read_text(encoding="utf-8").splitlines()
        table = re.search(r"^\|[^\n]*\n\| :--[^\n]*\n((?:\|.*\n)+)", part, re.MULTILINE)[1]
        for line in table.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            words = [cell for cell in cells if not numbers_of(cell)]
            there = [
                row for row in measured if all(f" {word} " in row for word in [cells[0], *words])
            ]
            assert any(set(numbers_of(line)) <= set(numbers_of(row)) for row in there), line
            n_lines += 1
    assert n_lines >= 20


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
def test_the_figures_are_those_that_their_script_draws(tmp_path):
    draw = runpy.run_path(str(DOCS / "draw_figures.py"))["draw_all"]
    shown = json.loads((DOCS / "figures" / "numbers.json").read_text(encoding="utf-8"))
    drawn = json.loads(json.dumps(draw(tmp_path)))
    assert drawn.keys() == shown.keys()
    for name, numbers in shown.items():
        assert drawn[name].keys() == numbers.keys()
        for key, value in numbers.items():
            is_words = isinstance(value, list) and isinstance(value[0], str)
            assert drawn[name][key] == (value if is_words else pytest.approx(value, abs=2e-3)), key
    sizes = {path.name: path.stat().st_size for path in DOCS.glob("figures/*.svg")}
    assert {path.name for path in tmp_path.glob("*.svg")} == set(sizes)
    assert max(sizes.values()) < 80_000


def test_links_of_the_site_that_lead_nowhere_are_found(tmp_path):
    find_broken = runpy.run_path(str(DOCS / "check_links.py"))["find_broken"]
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a> <a href="https://x.org/y">x</a>')
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1> <a href="a.html">a</a>')
    assert find_broken(tmp_path) == []
    (tmp_path / "b.html").write_text('<h1>b</h1> <img src="c.svg">')
    assert sorted(find_broken(tmp_path)) == ["a.html: b.html#here", "b.html: c.svg"]


def test_words_that_the_search_of_the_site_does_not_find_are_named(tmp_path):
    find_missing = runpy.run_path(str(DOCS / "check_search.py"))["find_missing"]
    index = {
        "docnames": ["copies", "findings"],
        "terms": {"duplic": [0, 1], "outlier": 1, "typo": 1},
        "titleterms": {"unit": 1},
    }
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    assert find_missing(tmp_path) == []
    index["terms"] |= {"typo": 0, "duplic": []}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    assert find_missing(tmp_path) == [
        "'duplicate' does not find copies: []",
        "'typo' does not find findings: ['copies']",
    ]


def test_the_pages_that_a_search_should_find_have_the_words():
    words = runpy.run_path(str(DOCS / "check_search.py"))["WORDS"]
    assert {word for word, _, _ in words} == {"duplicate", "outlier", "typo", "unit"}
    for word, stem, page in words:
        assert word.startswith(stem)
        text = (DOCS / f"{page}.md").read_text(encoding="utf-8").lower()
        assert re.search(rf"\b{word}s?\b", text), f"{page}.md does not say {word!r}"
