"""The stories run, and end in the decision that the truth would give, where counting does not."""

from __future__ import annotations

import json
from pathlib import Path

import nbclient
import nbformat

STORIES = Path(__file__).parents[2] / "docs" / "stories"


def follow(story):
    """Run a story; return its decisions, a line each."""
    notebook = nbformat.read(STORIES / f"{story}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept"
    notebook.cells.append(nbformat.v4.new_code_cell("print(decisions.to_json(orient='index'))"))
    nbclient.NotebookClient(notebook, timeout=120).execute()
    said = [
        o for cell in notebook.cells for o in cell.get("outputs", []) if o.get("name") == "stderr"
    ]
    assert not said, said
    return json.loads(notebook.cells[-1].outputs[0]["text"])


def test_three_zeros_send_the_nurse_to_the_tube():
    found = follow("hospital")
    assert {name: line["decision"] for name, line in found.items()} == {
        "counting": "wait", "robustbn": "tube", "truth": "tube",
    }  # fmt: skip
    apart = {name: abs(line["kinked"] - found["truth"]["kinked"]) for name, line in found.items()}
    assert apart["robustbn"] < apart["counting"] / 5


def test_both_applicants_get_what_the_truth_would_give():
    found = follow("loans")
    assert (found["truth"]["careful"], found["truth"]["stretched"]) == ("best rate", "no loan")
    for who in ("careful", "stretched"):
        assert found["robustbn"][who] == found["truth"][who]
        assert found["counting"][who] == "usual rate"


def test_three_of_five_waves_are_caught_and_people_know_of_the_others():
    found = follow("fraud")
    ours = {wave: line["robustbn"] for wave, line in found.items()}
    assert {line["counting"] for line in found.values()} == {"let pass"}
    assert ours == {
        "one order": "check", "noise": "check", "real, four cells": "check",
        "real, two cells": "let pass", "two cells, few": "let pass",
        "real, two cells, decided": "check", "two cells, few, 100 known": "check",
    }  # fmt: skip


def test_there_are_three_stories():
    assert {path.stem for path in STORIES.glob("*.ipynb")} == {"hospital", "loans", "fraud"}
