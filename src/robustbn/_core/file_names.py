"""Names of files: suffixes, URLs, what a copy is called, and the file that was perhaps meant."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from robustbn.exceptions import shorten_name

COMPRESSIONS = (".gz", ".zst", ".bz2")
DRAFTED_EDGES = ".edges.csv"  # behind the name of a table: the edges that were drafted for it
TABLE_FORMATS = ("csv", "tsv", "jsonl", "arrow", "parquet", "xlsx")
_URL = re.compile(r"[a-z][a-z0-9+.-]+(://|::)", re.IGNORECASE)
_MANGLED = re.compile(r"([a-z][a-z0-9+.-]+):/(?=[^/])", re.IGNORECASE)
_names: dict[Path, str] = {}  # copy -> what to call it


def inner_suffix(path: Path) -> str:
    """Return what says the kind of a file, in small letters: that before `.gz`."""
    suffixes = [s.lower() for s in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in COMPRESSIONS:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def find_near(path: Path, suffixes: Collection[str]) -> Path | None:
    """Return the file beside a path whose name is nearest to it, of those with known suffixes."""
    import difflib  # seldom needed

    try:
        beside = [f for f in path.parent.iterdir() if f.name != path.name]
        names = [f.name for f in beside if f.is_dir() or inner_suffix(f) in suffixes]
    except OSError:
        return None
    same = [name for name in names if _stem(Path(name)) == _stem(path)]
    near = difflib.get_close_matches(path.name, same, 1, 0.0) if same else []
    near = near or difflib.get_close_matches(path.name, names, 1)
    return path.parent / near[0] if near else None


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the question that names the nearest of some names, after a blank; or nothing."""
    import difflib

    listed = list(names)
    folded = {each.strip().casefold(): each for each in listed}
    same = folded.get(name.strip().casefold())
    near = [same] if same is not None else difflib.get_close_matches(name, listed, 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _stem(path: Path) -> str:
    return path.name.removesuffix("".join(path.suffixes[-2:])) or path.stem


def did_you_mean(path: Path, suffixes: Collection[str]) -> str:
    """Return the question that names the nearest file, after a blank; nothing if there is none."""
    near = find_near(path, suffixes)
    return "" if near is None else f" Did you mean {near}?"


def url_of(path: object) -> str | None:
    """Return the URL that a name is, also one that went through `Path`; None for a file here."""
    if not isinstance(path, str | os.PathLike):
        return None
    text = os.fspath(path)
    if not isinstance(text, str):
        return None
    if _URL.match(text):
        return text
    if isinstance(path, os.PathLike) and _MANGLED.match(text) and not Path(text).exists():
        return _MANGLED.sub(r"\1://", text, count=1)
    return None


def plain_path(text: str | os.PathLike[str]) -> Path:
    """Return the part of a name that ends in its suffix: of a URL, the path without its query."""
    url = url_of(text)
    if url is None:
        return Path(text)
    link = next((link for link in url.split("::") if "://" in link), url)
    if link == url or link.lower().startswith("http"):  # which may hold :: of its own
        return Path(unquote(urlsplit(url[url.index(link) :]).path) or "/")
    return Path("/", link.partition("://")[2])  # of a chain, whose first link is a file in the next


def named_after(table: str | os.PathLike[str], ending: str) -> str:
    """Return the name of a file that belongs to a table: `rows.edges.csv` for `rows-*.csv`."""
    stem = plain_path(table).stem.translate(dict.fromkeys(map(ord, "*?[]")))  # of a pattern
    return f"{stem.strip('-') or 'table'}{ending}"


def names_below(names: Sequence[str]) -> list[Path]:
    """Return names as paths below any folder; `ValueError` if one leads out of it, or is twice."""
    paths = [Path(name) for name in names]
    for name, path in zip(names, paths, strict=True):
        if path.anchor or ".." in path.parts or not path.parts or "\0" in name:
            raise ValueError(f"the name {shorten_name(name)!r} leads out of the folder")
    often, n = Counter(paths).most_common(1)[0]
    if n > 1:
        raise ValueError(f"the name {shorten_name(str(often))!r} appears twice")
    return paths


def remember_name(copy: Path, name: str) -> Path:
    _names[copy] = name
    return copy


def say_special(path: Path) -> str:
    """Return what a path is that is neither a file nor a folder."""
    kinds = ((Path.is_fifo, "a pipe"), (Path.is_socket, "a socket"))
    found = next((what for is_kind, what in kinds if is_kind(path)), "a device")
    return f"{found}, which has no known end and cannot be read twice"


def name_of(path: str | os.PathLike[str]) -> str:
    """Return what to call a file: the URL that it is a copy of, or its own name."""
    found = Path(path)
    for place in (found, *found.parents):
        if place in _names:
            inner = "" if place == found else f"/{found.relative_to(place).as_posix()}"
            return _names[place].rstrip("/" if inner else "") + inner
    return os.fspath(path)
