"""The house keeps its plan: small files, small functions, one name for one thing."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from benchmarks.sensitivity import find_numbers

import robustbn

SOURCE = Path(robustbn.__file__).parent
FACES = {
    "__init__",
    "adversary",
    "cli",
    "distance",
    "estimator",
    "exceptions",
    "mean",
    "network",
    "pgmpy",
    "simulate",
    "states",
}
ROOMS = {"_cli", "_core", "_learn", "_means", "_networks", "_rows", "_show", "_tables"}
MOST_LINES, MOST_BODY = 600, 50


@cache
def modules():
    files = [f for f in sorted(SOURCE.rglob("*.py")) if "__pycache__" not in f.parts]
    return {f.relative_to(SOURCE): ast.parse(f.read_text()) for f in files}


def body_lines(function):
    """Lines of a function without its signature and its docstring."""
    first = function.body[1:] if ast.get_docstring(function) else function.body
    return first[-1].end_lineno - first[0].lineno + 1 if first else 0


def test_nothing_but_faces_and_rooms_is_at_the_top():
    found = {f.stem for f in SOURCE.iterdir() if f.suffix == ".py" or f.is_dir()}
    assert found - {"__pycache__"} == FACES | ROOMS


def test_no_file_is_long():
    long = {
        f: n for f in modules() if (n := len((SOURCE / f).read_text().splitlines())) > MOST_LINES
    }
    assert not long


def test_no_function_is_long():
    long = {
        f"{file}:{node.name}": n
        for file, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and (n := body_lines(node)) > MOST_BODY
    }
    assert not long


def test_every_number_of_learning_has_a_comment_that_says_its_unit_and_its_reason():
    numbers = find_numbers("robustbn._learn")
    bare = [f"{n.module}.{n.name}" for n in numbers if len(n.comment.split()) < 3]
    assert {"groups", "naming", "multiplicity"} <= {n.module for n in numbers}
    assert not bare
