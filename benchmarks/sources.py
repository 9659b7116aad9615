"""Which code made a result: a hash of the sources it depends on, kept in every file of `results`.

A result depends on

- the package without what only shows a fit or reads a command line (`_show`, `_cli`, `cli.py`):
  hardly any figure depends on those, and they change most;
- the kernels, and how they are compiled: `native/` and `CMakeLists.txt`;
- its benchmark: the module and all modules of this folder that it imports, or starts by name in
  another process. Pages are written from stored results and are not among them;
- what one of these modules names in a constant `SOURCES`: patterns of files, from the root of the
  repository. That is how a benchmark of the report or of a command depends on `_show` or `_cli`.

The hash is over the contents when the result is written, not over a commit: what was measured with
changes that were never committed says so. Any change counts, that of a comment, too.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ALWAYS = ("src/robustbn/**/*", "native/*", "CMakeLists.txt")
SHOWN = re.compile(r"src/robustbn/(_show/|_cli/|cli\.py)")
COMPILED = {".pyc", ".pyd", ".so"}
PAGES = {"bench", "figures", "page", "sources", "stale"}  # write what is stored, decide nothing
ENTRIES = {
    "profile": "profile_fits",
    "cells": "wrong_cells",
}  # results that are not called as their module
N_DIGITS = 12
KEPT = re.compile(rb"\bsources\W{1,5}([0-9a-f]{%d})\b" % N_DIGITS)
UNKNOWN = "sources unknown (made before hashes were kept)"


def entry_of(stem: str) -> str:
    """Return the module of this folder that makes a result, by the name of its file."""
    name = re.sub(r"-(quick|full)$", "", stem)
    return "proof" if name.startswith("proof-") else ENTRIES.get(name, name)


def hash_sources(entry: str, root: Path = ROOT) -> str:
    """Return a hash of all that a benchmark depends on, names and contents."""
    digest = hashlib.sha256()
    for path in list_sources(entry, root):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:N_DIGITS]


def list_sources(entry: str, root: Path = ROOT) -> list[Path]:
    """Return the files that a benchmark depends on, in order.

    Parameters
    ----------
    entry : its module in the folder `benchmarks`.
    root : of the repository.
    """
    modules = _follow(entry, root / "benchmarks")
    found = {root / "benchmarks" / f"{name}.py" for name in modules}
    found |= {p for p in _expand(ALWAYS, root) if not SHOWN.match(p.relative_to(root).as_posix())}
    for tree in modules.values():
        found |= set(_expand(_find_patterns(tree), root))
    return sorted(found)


def find_hash(content: bytes) -> str | None:
    """Return the hash that a file of results carries, whatever its kind, or None."""
    found = KEPT.search(content)
    return found[1].decode() if found else None


def describe_sources(stored: Mapping[str, Any]) -> str:
    """Return which code made a stored result, as `find_hash` finds it."""
    return f"sources {stored['sources']}" if stored.get("sources") else UNKNOWN


# --- what a module depends on ---------------------------------------------------------------------


def _follow(entry: str, folder: Path) -> dict[str, ast.Module]:
    """Return the module and those it imports or starts, by name, inside of the folder."""
    found: dict[str, ast.Module] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in found:
            text = (folder / f"{name}.py").read_text(encoding="utf-8")
            found[name] = ast.parse(text)
            waiting += [
                other
                for other in _find_modules(found[name], folder.name)
                if other not in PAGES and (folder / f"{other}.py").exists()
            ]
    return found


def _find_modules(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        named: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == package:
            named = [f"{package}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or ""]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = [node.value]  # python -m benchmarks.worker
        for full in named:
            if found := re.fullmatch(rf"{package}\.(\w+)", full):
                yield found[1]


def _find_patterns(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SOURCES":
            yield from ast.literal_eval(node.value)


def _expand(patterns: Iterable[str], root: Path) -> Iterator[Path]:
    for pattern in patterns:
        found = [p for p in root.glob(pattern) if p.is_file() and p.suffix not in COMPILED]
        if not found:
            raise FileNotFoundError(f"No file in {root} matches {pattern!r}, a source of results.")
        yield from found
