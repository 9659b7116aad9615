"""The page on the paper names every statement of it, and files, functions and tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)`:\s+`(\w+)`", PAGE)))
STATEMENTS = [
    "def:adv",
    "thm:simple",
    "lem:dtv-bn",
    "def:Fxq",
    "lem:F-moments",
    "lem:mean-fxq",
    "sec:cond",
    "eqn:empirical",
    "eqn:good-pro",
    "eqn:conditions-Fp",
    "def:stability",
    "def:oracle",
    "def:hat-f",
    "lem:hf_q_stable",
    "lem:nd-oracle",
    "lem:upper_B",
    "lem:f_q_stable",
    "lem:scaling",
    "thm:main-result",
    "alg:1",
    "lem:ini",
    "lem:first_phase",
    "lem:dtv-bn-hat",
    "lem:DongHL19",
    "def:score-oracle",
    "eq:Arl",
    "eq:tau",
    "eq:q",
    "alg:2",
    "lem:score-correctness",
    "lem:score-runtime",
    "Lemma:A3",
    "lem:A1",
    "lem:A2",
    "eqn:good-sample-moments",
    "lem:A3",
    "def:good_condition",
    "lem:que_id",
    "lem:stable_good",
]  # the labels in the source of the paper


def top_names(file):
    """Return what a file defines at its top: functions, classes, constants."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            yield getattr(target, "id", "")


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_what_the_page_names_exists(file, name):
    path = ROOT / file if file.startswith("tests/") else ROOT / "src" / "robustbn" / file
    assert name in set(top_names(path))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_page_names_every_statement_of_the_paper(statement):
    assert f"`{statement}`" in PAGE


def test_the_page_names_methods_that_exist():
    from robustbn._core.expansion import Expansion

    methods = re.findall(r"method `(\w+)`", PAGE)
    assert methods
    assert all(hasattr(Expansion, each) for each in methods)


def test_every_error_in_the_paper_is_told():
    assert PAGE.count("**Error in the paper:**") == 6
    assert len(NAMED) > 35
