"""Check that every link inside of the built site leads to a file and a place that are there."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """What a page links to, and the places that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the links and the names of one element."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def find_broken(site: Path) -> list[str]:
    """Return the links of all pages that lead nowhere; those to other sites are not followed."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken = []
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            is_there = target.exists() and (
                not place or target not in pages or place in pages[target].places
            )
            if not is_there:
                broken.append(f"{page.relative_to(site)}: {link}")
    return broken


if __name__ == "__main__":
    found = find_broken(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every link leads somewhere")
    raise SystemExit(bool(found))
