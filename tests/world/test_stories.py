"""The stories run on real rows, and end in the decision that the truth gives, by what was found."""

from __future__ import annotations

import json
from pathlib import Path

import nbclient
import nbformat
import pytest

STORIES = Path(__file__).parents[2] / "docs" / "stories"
DECISIONS = {  # the column, what is decided at first, and what is decided at the end
    "hospital": ("check-up", "every year", "every second year"),
    "loans": ("offer", "usual rate", "best rate"),
    "school": ("auditor", "sends back", "accepts"),
    "survey": ("question", "word anew", "keep"),
}


def follow(story):
    """Run a story; return its decisions, a line each, and all that it printed."""
    notebook = nbformat.read(STORIES / f"{story}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept"
    notebook.cells.append(nbformat.v4.new_code_cell("print(decisions.to_json(orient='index'))"))
    nbclient.NotebookClient(notebook, timeout=120).execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    said = [o for o in outputs if o.get("name") == "stderr"]
    assert not said, said
    printed = "".join(o["text"] for o in outputs if o.get("name") == "stdout")
    return json.loads(notebook.cells[-1].outputs[0]["text"]), printed


@pytest.fixture(scope="module")
def told():
    return {story: follow(story) for story in DECISIONS}


@pytest.mark.parametrize("story", DECISIONS)
def test_a_story_ends_in_the_decision_of_the_truth(told, story):
    (first, mended, truth), (column, wrong, right) = told[story][0].values(), DECISIONS[story]
    assert (first[column], mended[column], truth[column]) == (wrong, right, right)
    number = next(iter(first))
    assert abs(mended[number] - truth[number]) < abs(first[number] - truth[number]) / 3


def test_the_findings_name_the_clinic_the_interviewers_and_the_unit(told):
    assert "Where clinic is 7: chronic" in told["hospital"][1]
    assert "left out: [7, 23]" in told["survey"][1]
    assert "Where branch is 5" in told["loans"][1]
    assert "months and years" in told["loans"][1]


def test_the_repaired_numbers_are_the_true_ones(told):
    assert "534 values were changed, 534 of them to the true value" in told["school"][1]


def test_every_story_is_told():
    assert {path.stem for path in STORIES.glob("*.ipynb")} == set(DECISIONS)
