"""The sentences that users meet: all are listed, and none is of those that had to be read twice."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/strings.py"

READ_TWICE = (
    "nobody can see",
    "That speaks of the network",
    "because of what it would say",
    "are wanted, ",
    "did not settle",
    "left to go",
    "What parts columns",
    "all that keeps them apart",
    "names its rows",
    "are of it",
    '"of it"',
    "lost their say",
    "have their say",
    "looks like this, too",
    "What is made of rows",
    "an ended run",
    "says of itself",
    "each other's place",
)


@pytest.fixture(scope="module")
def listed():
    spec = importlib.util.spec_from_file_location("strings", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found = script.list_strings([script.PACKAGE])
    return [
        (str(file.relative_to(script.PACKAGE)), " ".join(text.split())) for file, _, text in found
    ]


@pytest.mark.parametrize(
    ("file", "start"),
    [
        ("cli.py", "Learn the tables of a Bayesian network from data with corrupted rows."),  # help
        ("_cli/fit.py", "Write the report as one HTML page."),  # an option
        ("_core/config.py", "Column separator; 'tab' for a tab."),  # an option of a setting
        ("_core/structure.py", "The graph has a cycle: {"),  # an error
        (
            "_show/findings.py",
            "Nearly all rows of these groups were rejected: {named}",
        ),  # a finding
        ("_learn/status.py", "The rows look clean ({values})"),  # a status
        ("_show/page/page.html.j2", "Distrusted rows"),  # the page
    ],
)
def test_sentences_of_every_kind_are_listed(listed, file, start):
    assert any(name == file and text.startswith(start) for name, text in listed)


def test_docstrings_of_functions_and_keys_are_not_listed(listed):
    texts = [text for _, text in listed]
    assert "Return a share as people write it" not in " ".join(texts)
    assert "network" not in texts


def test_no_sentence_that_had_to_be_read_twice_is_left(listed):
    left = [(name, text) for name, text in listed for odd in READ_TWICE if odd in text]
    assert not left


def test_the_script_prints_file_and_line():
    args = [sys.executable, str(SCRIPT), str(ROOT / "src/robustbn/_core/structure.py")]
    said = subprocess.run(args, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[1] == "_core/structure.py"
    number, _, text = said[2].strip().partition("  ")
    lines = (ROOT / "src/robustbn/_core/structure.py").read_text().splitlines()
    assert text[:20] in lines[int(number) - 1]


def test_the_glossary_has_twenty_terms():
    words = (ROOT / "CONTRIBUTING.md").read_text().partition("## Words")[2].partition("\n## ")[0]
    lines = [line for line in words.splitlines() if line.startswith("| ")]
    assert len(lines) - 1 >= 20  # without the heading
