"""The file that was meant: beside the one that is not there, or that has another suffix."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

COMPRESSIONS = (".gz", ".zst", ".bz2")
TABLE_FORMATS = ("csv", "tsv", "jsonl", "arrow", "parquet", "xlsx")


def inner_suffix(path: Path) -> str:
    """Return what says the kind of a file, in small letters: that before `.gz`."""
    suffixes = [s.lower() for s in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in COMPRESSIONS:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def find_near(path: Path, suffixes: Collection[str]) -> Path | None:
    """Return the file beside a path whose name is nearest to it, of those with a known suffix.

    A file of the same name but for its suffix comes first; folders count as well.

    Parameters
    ----------
    suffixes : those that the file may have.
    """
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
