"""Check that the search of the built site finds the pages for the words people type."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# what is typed, how the index shortens it, and the page that must be among those found
WORDS = [
    ("duplicate", "duplic", "copies"),
    ("outlier", "outlier", "findings"),
    ("typo", "typo", "findings"),
    ("unit", "unit", "findings"),
]


def read_index(site: Path) -> dict[str, Any]:
    """Return the index that the search of a site reads."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return index


def find_pages(index: dict[str, Any], stem: str) -> set[str]:
    """Return the pages whose text or title has a word, by its stem."""
    found: set[str] = set()
    for terms in (index["terms"], index["titleterms"]):
        pages = terms.get(stem, [])
        found |= {index["docnames"][k] for k in (pages if isinstance(pages, list) else [pages])}
    return found


def find_missing(site: Path) -> list[str]:
    """Return what the search of a site should find, and does not."""
    index = read_index(site)
    return [
        f"{word!r} does not find {page}: {sorted(find_pages(index, stem))}"
        for word, stem, page in WORDS
        if page not in find_pages(index, stem)
    ]


if __name__ == "__main__":
    missing = find_missing(Path(sys.argv[1]))
    print("\n".join(missing) or "the search finds every word")
    raise SystemExit(bool(missing))
