"""The house keeps its plan: small files, small functions, one name for one thing."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

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

# A name that several files define for the same thing, each for its own kind.


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


def test_every_number_has_a_unit_and_a_reason():
    from robustbn._core.tuning import TUNING

    for name, value, unit, reason in TUNING.describe():
        assert isinstance(value, int | float), name
        assert value > 0, name
        assert unit, name
        assert len(reason.split()) > 2, name
