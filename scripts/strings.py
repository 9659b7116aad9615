"""List every sentence of the source that a user can meet, with its file and line.

Usage: ``python scripts/strings.py [PATH ...]``. Paths are files or folders below ``src/robustbn``;
without one, the whole package is listed. Listed are the texts of help, options, messages,
warnings, errors, findings and progress, the docstrings that the command line shows as help, and
the text of the page's templates. Values that are put into a sentence stand in braces. Docstrings
of other functions and one-word strings (names of columns, keys, units) are left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "robustbn"

# Calls whose strings no user reads: patterns, formats of files, names of other modules' parts.
SILENT = {
    "compile",
    "match",
    "fullmatch",
    "sub",
    "search",
    "getattr",
    "import_module",
    "TypeVar",
    "NewType",
    "cast",
}


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below `node` except docstrings, types and calls in `SILENT`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Call):
            called = child.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in SILENT:
                continue
        if isinstance(node, ast.AnnAssign) and child is node.annotation:
            continue
        yield child
        if not isinstance(child, ast.JoinedStr):
            yield from walk(child)
        else:
            for part in child.values:
                if isinstance(part, ast.FormattedValue):
                    yield from walk(part)


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string or f-string, values in braces; None for others."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            elif isinstance(part, ast.FormattedValue):
                parts.append("{" + ast.unparse(part.value) + "}")
        return "".join(parts)
    return None


def is_sentence(text: str) -> bool:
    """Tell whether a text has at least two words: single words are keys and names."""
    outside = re.sub(r"\{[^{}]*\}", " x ", text)
    return len(re.findall(r"[A-Za-z]{2,}", outside)) >= 2 and " " in text.strip()


def is_command(node: ast.AST) -> bool:
    """Tell whether a function is a command, whose docstring is its help."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(
        ".command" in ast.unparse(one) or ".group" in ast.unparse(one)
        for one in node.decorator_list
    )


def list_source(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each sentence of a Python file."""
    tree = ast.parse(path.read_text())
    for node in walk(tree):
        if is_command(node):
            yield node.lineno, ast.get_docstring(node) or ""
        text = text_of(node)
        if text is not None and is_sentence(text):
            yield node.lineno, text


def list_template(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each line of a template that has words outside of its tags."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = re.sub(r"<[^>]*>|\{%.*?%\}|\{#.*?#\}", " ", line).strip()
        if is_sentence(text):
            yield number, " ".join(text.split())


def list_strings(paths: list[Path]) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and text of each sentence below the paths."""
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            reader = {".py": list_source, ".j2": list_template}.get(file.suffix)
            for line, text in sorted(set(reader(file))) if reader else ():
                yield file, line, text


def main() -> None:
    """Print the sentences of the paths named, a file at a time."""
    last = None
    for file, line, text in list_strings(
        [Path(name).resolve() for name in sys.argv[1:]] or [PACKAGE]
    ):
        if file != last:
            print(f"\n{file.relative_to(PACKAGE)}")
            last = file
        print(f"{line:5d}  {' '.join(text.split())}")


if __name__ == "__main__":
    main()
