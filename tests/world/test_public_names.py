"""Every public name is explained by an example, and is known to editors and checkers."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import robustbn
from robustbn import RobustEstimator, read_table
from robustbn.exceptions import UnknownSettingError

ROOT = Path(__file__).parents[2]
MODULES = (
    "robustbn", "robustbn.adversary", "robustbn.distance", "robustbn.estimator",
    "robustbn.exceptions", "robustbn.mean", "robustbn.pgmpy", "robustbn.simulate",
    "robustbn.states",
)  # fmt: skip
PLAIN = ("__version__", "KINDS")  # values, with nothing to run


def public_things():
    for module in MODULES:
        face = importlib.import_module(module)
        for name in face.__all__:
            if name not in PLAIN:
                yield f"{module}.{name}", getattr(face, name)


THINGS = dict(public_things())


def is_error(thing):
    return inspect.isclass(thing) and issubclass(thing, Exception)


@cache
def examples_in(module):
    """Names with an example that pytest finds in a module, and runs there."""
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return {each.name for each in found if each.examples}


@pytest.mark.parametrize("name", THINGS)
def test_every_public_name_has_an_example(name):
    thing = THINGS[name]
    text = inspect.getdoc(thing) or ""
    if is_error(thing) and ">>>" not in text:
        assert len(text.split("\n\n")) > 1, f"{name} does not say what to do"
        return
    assert "\nExamples\n--------\n>>> " in text, f"{name} has no example"
    assert f"{thing.__module__}.{thing.__qualname__}" in examples_in(thing.__module__)


def public_calls():
    """Every public function and class, and every public method of a class, by its full name."""
    found = {}
    for thing in THINGS.values():
        if is_error(thing):
            continue
        owned = [thing]
        if inspect.isclass(thing):
            owned += [m for n, m in inspect.getmembers(thing, callable) if not n.startswith("_")]
        for call in owned:
            if (getattr(call, "__module__", None) or "").startswith("robustbn"):
                found[f"{call.__module__}.{call.__qualname__}"] = call
    return found


CALLS = public_calls()


def section(text, title):
    """Return the entries of a section of a docstring: each name, its type, and what is said."""
    lines = text.partition(f"\n{title}\n{'-' * len(title)}\n")[2].splitlines()
    entries = []
    for line, after in pairwise([*lines, ""]):
        if after and set(after) == {"-"}:
            break
        if line.startswith(" "):
            entries[-1][-1].append(line.strip())
        elif line:
            name, _, kind = line.partition(" : ")
            entries.append([name, kind, []])
    return [(name, kind, " ".join(said).strip()) for name, kind, said in entries]


def shown_default(parameter):
    """Return how a default is written in a docstring; a default that is made anew has no value."""
    if parameter.default is inspect.Parameter.empty:
        return ""
    default = parameter.default
    written = f'"{default}"' if isinstance(default, str) and default else repr(default)
    return ", optional" if written == "<factory>" else f", default={written}"


@pytest.mark.parametrize("name", CALLS)
def test_every_parameter_has_its_type_its_default_and_a_sentence(name):
    signs = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    parameters = {
        signs.get(p.kind, "") + n: p
        for n, p in inspect.signature(CALLS[name]).parameters.items()
        if n != "self"
    }
    entries = section(inspect.getdoc(CALLS[name]), "Parameters")
    assert [entry[0] for entry in entries] == list(parameters)
    for own, kind, said in entries:
        default = shown_default(parameters[own])
        assert kind.endswith(default), f"{own} : {kind} should end in {default!r}"
        assert kind.removesuffix(default), f"{own} has no type"
        assert default or ("default=" not in kind and "optional" not in kind), f"{own} : {kind}"
        assert said[:1].isupper() or said[0] in '"`(', f"{own}: {said}"
        assert said.endswith((".", "...")), f"{own}: {said}"


@pytest.mark.parametrize("name", ["RobustEstimator", "MaximumLikelihoodEstimator"])
def test_the_settings_of_an_estimator_are_in_groups(name):
    estimator = getattr(robustbn, name)
    groups = inspect.getdoc(estimator).partition("in groups:")[2].partition("\nParameters\n")[0]
    assert re.findall(r"`(\w+)`", groups) == list(inspect.signature(estimator).parameters)


@pytest.mark.parametrize("name", [n for n, c in CALLS.items() if inspect.isclass(c)])
def test_every_attribute_has_its_type_and_a_sentence(name):
    for own, kind, said in section(inspect.getdoc(CALLS[name]), "Attributes"):
        assert kind, f"{own} has no type"
        assert said.endswith("."), f"{own}: {said}"


def test_public_modules_say_which_names_are_public():
    names = [name for name in dir(robustbn) if inspect.ismodule(getattr(robustbn, name))]
    rooms = {f"robustbn.{name}" for name in names}
    assert rooms - set(MODULES) == {"robustbn.network"}  # which holds one class, ours to give
    assert robustbn.BayesianNetwork is robustbn.network.BayesianNetwork


def test_the_one_call_shows_the_settings_of_the_estimator_and_of_the_reader():
    shown = dict(inspect.signature(robustbn.fit).parameters)
    expected = dict(inspect.signature(RobustEstimator).parameters)
    expected |= dict(inspect.signature(read_table).parameters)
    assert set(shown) == set(expected) | {"known", "states", "dates", "most_states", "most_numbers"}
    assert all(p.kind is not p.VAR_KEYWORD for p in shown.values())
    for name in set(expected) - {"network", "table"}:
        assert shown[name].default == expected[name].default, name


def test_a_setting_for_something_else_is_refused():
    with pytest.raises(UnknownSettingError, match="dates applies only to an edge list"):
        robustbn.fit(robustbn.example_network("alarm"), [[0] * 37], dates="dmy")


def test_notebooks_complete_every_public_name_and_setting():
    import jedi

    space = [{"robustbn": robustbn}]
    names = {each.name for each in jedi.Interpreter("robustbn.", space).complete()}
    rooms = {module.partition(".")[2] for module in MODULES[1:]} - {"pgmpy"}  # which needs pgmpy
    assert set(robustbn.__all__) | rooms <= names
    (signature,) = jedi.Interpreter("robustbn.fit(", space).get_signatures()
    assert [p.name for p in signature.params] == list(inspect.signature(robustbn.fit).parameters)


SAMPLE = """\
import robustbn
from robustbn import BayesianNetwork, RobustEstimator, Streaming
from robustbn.exceptions import DataError
from robustbn.simulate import corrupt

alarm: BayesianNetwork = robustbn.example_network("alarm")
rows, is_bad = corrupt(robustbn.sample(alarm, 1_000, 0), alarm, "product", 0.1)
try:
    fitted: RobustEstimator = robustbn.fit(alarm, rows, contamination=0.2, id="uid", random_state=0)
except DataError as error:
    raise SystemExit(str(error)) from error
share: float = fitted.contamination_
apart: float = robustbn.total_variation(alarm, fitted.network_)
table: robustbn.Table = robustbn.read_table(rows, alarm)
estimator = RobustEstimator(alarm, 0.1, copies="count", streaming=Streaming(cache="packed"))
estimator.fit(table).save("model.json")
robustbn.distance.node_distances(alarm, fitted.network_)
"""
WRONG = """\
robustbn.fit(alarm, rows, contaminaton=0.1)
robustbn.fit(alarm, rows, polish="yes")
RobustEstimator(alarm, metod="filter")
robustbn.sample(alarm)
robustbn.no_such_name
"""


def said_by_mypy(file):
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--output=json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line["line"] for line in lines if Path(line["file"]).name == file.name]


def said_by_pyright(file):
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error"]
    command += ["--pythonpath", sys.executable, file.name]
    (file.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"]


@pytest.mark.usefixtures("checked_types")
@pytest.mark.parametrize("check", [said_by_mypy, said_by_pyright])
def test_type_checkers_know_what_is_right_and_what_is_wrong(check, tmp_path):
    file = tmp_path / "sample_script.py"
    file.write_text(SAMPLE + WRONG)
    first = SAMPLE.count("\n") + 1
    assert sorted(set(check(file))) == list(range(first, first + WRONG.count("\n")))
