"""`python -m benchmarks stale`: which results were made by other code, and which pages quote them.

A page quotes the results that it links to or names (`benchmarks/results/NAME.md`), and those that
it lists in a comment, anywhere on it: `<!-- figures: holes, real-full -->`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from benchmarks.page import PAGE, SECTIONS, find_result, render
from benchmarks.sources import ROOT, entry_of, find_hash, hash_sources

NEVER_KEPT = "made before hashes were kept"
NAMED = re.compile(r"benchmarks/results/([\w-]+)\.\w+")
LISTED = re.compile(r"<!-- figures: ([\w, -]+?) *-->")


def find_stale(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Return the files of results that were made by other code, each with the reason.

    Quick runs are left out: they are not kept with the repository.
    """
    current = cache(lambda entry: hash_sources(entry, root))
    found = {}
    for path in sorted(p for p in folder.iterdir() if not p.stem.endswith("-quick")):
        entry, made = entry_of(path.stem), find_hash(path.read_bytes())
        if not (root / "benchmarks" / f"{entry}.py").exists():
            found[path.name] = f"there is no benchmarks/{entry}.py"
        elif made is None:
            found[path.name] = NEVER_KEPT
        elif made != current(entry):
            found[path.name] = f"made from sources {made}, now {current(entry)}"
    return found


def find_quotes(page: Path) -> set[str]:
    """Return the names of the results that a page quotes."""
    text = page.read_text(encoding="utf-8")
    listed = {name.strip() for names in LISTED.findall(text) for name in names.split(",")}
    return {*NAMED.findall(text), *listed}


def describe_stale(stale: Mapping[str, str], folder: Path, pages: Iterable[Path]) -> list[str]:
    """Return the lines to print: stale results by reason, then the pages that quote them."""
    lines = []
    for reason in dict.fromkeys(stale.values()):
        names: dict[str, list[str]] = {}
        for name in (name for name, why in stale.items() if why == reason):
            names.setdefault(Path(name).stem, []).append(Path(name).suffix)
        lines.append(f"Stale results, {reason}:")
        lines += [f"  {stem} ({', '.join(kinds)})" for stem, kinds in names.items()]
    quotes = {page.name: find_quotes(page) for page in pages}
    stems, there = {Path(name).stem for name in stale}, {path.stem for path in folder.iterdir()}
    old = {page: found & stems for page, found in quotes.items()}
    lines += _list_pages("Pages that quote them:", old)
    missing = {page: found - there for page, found in quotes.items()}
    lines += _list_pages("Pages that quote results that are not there:", missing)
    return lines


def describe_page(folder: Path, page: Path = PAGE) -> list[str]:
    """Return the sections of the page that other code has made, and whether the page is old."""
    missing = [s for s in SECTIONS if not find_result(s, folder).is_current]
    lines = [f"  {section.title}: python -m benchmarks {section.full}" for section in missing]
    if lines:
        lines = [f"Sections of {page.name} that the present code has not made:", *lines]
    if not page.exists() or page.read_text(encoding="utf-8") != render(folder, page):
        lines.append(f"{page.name} is not what the results give: python -m benchmarks page")
    return lines


def _list_pages(title: str, quotes: Mapping[str, set[str]]) -> list[str]:
    lines = [f"  {page}: {', '.join(sorted(names))}" for page, names in quotes.items() if names]
    return [title, *lines] if lines else []


def main(arguments: list[str]) -> None:
    """List what is stale, and end with exit code 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks stale", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results")
    folder = parser.parse_args(arguments).output
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    lines = [*describe_stale(find_stale(folder), folder, pages), *describe_page(folder)]
    if lines:
        print("\n".join(lines))
        raise SystemExit(1)
    print(f"Every file in {folder} and every section was made by the sources that are here.")
