"""What a release promises: one version, names that stay, a front page that reads well anywhere."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import runpy
import tomllib
import zipfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import robustbn
from robustbn.cli import main
from robustbn.simulate import corrupt
from tests.world.test_public_names import MODULES, THINGS

ROOT = Path(__file__).parents[2]
PROMISED = ROOT / "tests" / "data" / "release-0.1.0.json"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FRAMES = ("rows", "moved", "missing_edges")


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
    assert {each for each in asked if f"- {each}\n" not in recipe} == {"fast-sugiyama>=0.5"}


# --- what stays -------------------------------------------------------------------------------


def parameters_of(thing):
    return [p.name for p in inspect.signature(thing).parameters.values()]


def members_of(thing):
    """Return the public members of a class that are ours, not those of another library."""
    ours = [each for each in thing.__mro__ if each.__module__.startswith("robustbn")]
    return {name for each in ours for name in vars(each) if not name.startswith("_")}


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


def describe_surface(folder):
    """Return all that others may rely on: names, parameters, options, columns, keys of JSON."""
    network = robustbn.random_network("tree", 12, random_state=0)
    good = robustbn.sample(network, 5_000, random_state=0)
    codes, _ = corrupt(good, network, "product", 0.1, random_state=0)
    fit = robustbn.fit(network, codes, random_state=0)
    network.write(folder / "net.bif")
    labels = [[network.states[n][v] for n, v in zip(network.nodes, r, strict=True)] for r in codes]
    lines = [",".join(map(str, row)) for row in (network.nodes, *labels)]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    fit.save(folder / "model.json")
    ran = CliRunner().invoke(
        main,
        ["fit", str(folder / "net.bif"), str(folder / "rows.csv"), "--json", "--seed", "0",
         "--output-dir", str(folder / "out")],
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    classes = {name: thing for name, thing in THINGS.items() if inspect.isclass(thing)}
    plain = {n: t for n, t in THINGS.items() if not (n in classes and issubclass(t, Exception))}
    return {
        "names": sorted(f"{m}.{n}" for m in MODULES for n in importlib.import_module(m).__all__),
        "parameters": sorted(f"{n}({p})" for n, t in plain.items() for p in parameters_of(t)),
        "members": sorted(
            f"{name}.{member}"
            for name, thing in classes.items()
            if not issubclass(thing, Exception)
            for member in members_of(thing)
        ),
        "found": sorted(n for n in dir(fit) if n.endswith("_") and not n.startswith("_")),
        "options": sorted(options_of(main)),
        "columns": sorted(f"{f}: {c}" for f in FRAMES for c in getattr(fit, f)().columns),
        "json": sorted(json.loads(ran.stdout)),
        "run.json": sorted(json.loads((folder / "out" / "run.json").read_text())),
        "model": sorted(json.loads((folder / "model.json").read_text())),
    }


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
def test_nothing_that_the_first_release_promised_is_gone(tmp_path):
    surface = describe_surface(tmp_path)
    promised = json.loads(PROMISED.read_text(encoding="utf-8"))
    assert promised.keys() == surface.keys()
    gone = {part: sorted(set(promised[part]) - set(surface[part])) for part in promised}
    assert not any(gone.values()), gone


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
    assert "pip install robustbn" in re.sub(r"<[^>]+>", "", front_page)
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
