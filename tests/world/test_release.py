"""What a release promises: one version, names that stay, a front page that reads well anywhere."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import tomllib
import zipfile
from pathlib import Path

import click
import pytest

import robustbn
from robustbn.cli import main
from tests.world.test_public_names import THINGS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MOST_PARAMETERS, MOST_OPTIONS = 277, 226


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


# --- one version ------------------------------------------------------------------------------


def test_the_build_takes_the_version_from_the_package():
    assert "version" in PROJECT["project"]["dynamic"]
    place = PROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert re.findall(r'"(.+)"', text_of(place))[-1] == robustbn.__version__


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        ("CHANGELOG.md", r"^## (\S+)"),
        ("conda/recipe.yaml", r'^  version: "(.+)"$'),
    ],
)
def test_files_that_name_the_version_name_that_of_the_package(file, pattern):
    assert re.search(pattern, text_of(file), re.MULTILINE)[1] == robustbn.__version__


def test_the_conda_recipe_asks_for_what_the_package_needs():
    recipe = text_of("conda/recipe.yaml").replace(" >=", ">=")
    asked = {*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]}
    assert [each for each in asked if f"- {each}\n" not in recipe] == []


# --- how much there is --------------------------------------------------------------------------


def parameters_of(thing):
    return [p.name for p in inspect.signature(thing).parameters.values()]


def options_of(command, name=""):
    """Return the options of every command, as they are typed."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            yield from options_of(command.get_command(context, each), f"{name} {each}".strip())
    else:
        for parameter in command.params:
            opts = [*parameter.opts, *parameter.secondary_opts]
            yield from (f"{name} {option}" for option in opts if option.startswith("-"))


def test_the_public_surface_stays_small():
    """A thing that two modules give is counted once; errors take no settings."""
    plain = {
        id(t): t for t in THINGS.values() if not (inspect.isclass(t) and issubclass(t, Exception))
    }
    assert sum(len(parameters_of(thing)) for thing in plain.values()) <= MOST_PARAMETERS
    assert len(list(options_of(main))) <= MOST_OPTIONS


# --- what `make dist` would find ---------------------------------------------------------------

DIST = runpy.run_path(str(ROOT / "scripts" / "dist.py"))


def write_wheel(folder, *, without="", more=""):
    wheel = folder / "robustbn-0.1.0-cp311-cp311-linux_x86_64.whl"
    names = {f"{DIST['KERNELS']}.so", *DIST["IN_WHEEL"][:2]} - {without}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*names, "robustbn-0.1.0.dist-info/licenses/LICENSE", more):
            if name:
                archive.writestr(name, "x")
    return wheel


def test_a_wheel_that_lacks_something_or_installs_more_is_found(tmp_path):
    assert list(DIST["check_wheel"](write_wheel(tmp_path))) == []
    kernels = f"{DIST['KERNELS']}.so"
    (lacking,) = DIST["check_wheel"](write_wheel(tmp_path, without=kernels))
    assert "lacks" in lacking
    (more,) = DIST["check_wheel"](write_wheel(tmp_path, more="tests/__init__.py"))
    assert "installs more than robustbn" in more
    wheel = write_wheel(tmp_path)
    with wheel.open("ab") as file:
        file.write(bytes(DIST["MOST_BYTES"]))
    assert any("more than 1,000,000" in wrong for wrong in DIST["check_wheel"](wheel))


def test_the_lowest_dependencies_are_pinned_one_by_one():
    pins = DIST["lowest_dependencies"]()
    assert len(pins) == len(PROJECT["project"]["dependencies"])
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", pin) for pin in pins)


def test_classifiers_name_the_versions_of_python_that_are_tried():
    named = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if ":: 3." in c]
    assert tuple(named) == DIST["VERSIONS"]


# --- the front page ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def front_page():
    """The README as the package index shows it."""
    from readme_renderer.markdown import render

    shown = render(text_of("README.md"), variant="GFM")
    assert shown, "the package index would show the text as it is"
    return shown


def test_the_front_page_is_rendered_with_its_tables_code_and_pictures(front_page):
    for part in ("<h1", "<table>", "<pre", "<img"):
        assert part in front_page
    assert "pip install ." in re.sub(r"<[^>]+>", "", front_page)  # there is no release yet
    assert "```" not in front_page
    assert "](" not in front_page


def test_every_link_of_the_front_page_is_absolute_and_names_a_file_that_is_there(front_page):
    links = re.findall(r'(?:href|src)="(?!#user-content)([^"]+)"', front_page)
    assert len(links) > 20
    source = PROJECT["project"]["urls"]["Source"]
    for link in links:
        assert link.startswith("https://"), link
        if link.startswith(source):
            kind, branch, path = link.removeprefix(f"{source}/").split("/", 2)
            assert (kind in ("blob", "raw", "tree"), branch) == (True, "main"), link
            assert (ROOT / path).exists(), link


def test_what_the_front_page_says_of_its_picture_is_what_was_drawn():
    numbers = json.loads(text_of("docs/figures/numbers.json"))["counting"]
    said = re.search(r"!\[Distance from the truth.*?\]", text_of("README.md"))[0]
    counted, trimmed, ours = (
        numbers[name] for name in ("counting", "trimming, told 10 %", "robustbn")
    )
    assert f"from {counted[0]:.2f} to {counted[-1]:.2f} at 30 %" in said
    assert f"{trimmed[0]:.2f} without bad rows, {trimmed[-1]:.2f} at 30 %" in said
    assert f"{min(ours):.2f} to {max(ours):.2f}" in said


def test_the_limits_of_the_front_page_are_those_of_the_page_on_limits():
    said = text_of("README.md").partition("## Limits")[2].partition("## Where")[0]
    limits = set(re.findall(r"\d+ %|\d+ times", text_of("docs/limits.md")))
    assert set(re.findall(r"\d+ %|\d+ times", said)) <= limits


def test_pictures_of_the_front_page_are_small():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs/figures").glob("*.png")}
    assert sizes.keys() == {"counting.png", "report.png"}
    assert max(sizes.values()) < 150_000
