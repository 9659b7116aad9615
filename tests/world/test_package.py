"""What a newcomer meets: the import, the command, the files, the two kinds of installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import example_network, read_network, sample, write_network
from robustbn.cli import main
from robustbn.exceptions import NetworkError, SlowBackendWarning

ROOT = Path(__file__).parents[2]
HEAVY = {"pandas", "polars", "pyarrow", "pgmpy", "pyagrum", "sklearn", "scipy", "dask", "torch"}
LATER = {"networkx", "click", "rich", "importlib.metadata", "importlib.resources", "numpy"}
READERS = {"csv", "defusedxml", "gzip", "xml"}


def run_python(code, *options):
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


SHOWN_AT_ONCE = """
import sys
from robustbn.cli import main
try:
    main({arguments!r})
finally:
    print("loaded:", *sys.modules)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fti"]])
def test_what_needs_no_rows_is_shown_without_numpy_or_anything_optional(arguments):
    command = [sys.executable, "-c", SHOWN_AT_ONCE.format(arguments=arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    loaded = done.stdout.rpartition("loaded:")[2].split()
    assert "robustbn.cli" in loaded
    assert (HEAVY | {"numpy", "networkx", "rich", "jinja2", "matplotlib"}).isdisjoint(loaded)
    assert "robustbn._cli.fit" not in loaded
    assert not [name for name in loaded if name.startswith("robustbn._learn")]


def test_the_import_loads_nothing_that_is_not_needed_and_no_room_but_one():
    loaded = run_python("import sys, robustbn; print(*sys.modules)").split()
    assert (HEAVY | LATER | READERS).isdisjoint(loaded)
    rooms = {name for name in loaded if name.startswith("robustbn.")}
    assert rooms == {"robustbn._core"}


def test_a_fit_of_an_array_loads_nothing_that_it_does_not_use():
    code = (
        "import sys, robustbn; alarm = robustbn.example_network('alarm');"
        "robustbn.fit(alarm, robustbn.sample(alarm, 500, 0)); print(*sys.modules)"
    )
    loaded = run_python(code).split()
    assert "robustbn._learn.conductor" in loaded
    assert (HEAVY | {"networkx", "click", "rich", "jinja2"}).isdisjoint(loaded)


def test_scipy_is_not_imported_for_the_mean_of_an_array():
    code = (
        "import sys, numpy; from robustbn.mean import robust_mean;"
        "robust_mean(numpy.eye(9)); print('scipy' in sys.modules)"
    )
    assert run_python(code).strip() == "False"


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert robustbn.__version__ == version("robustbn")


def test_the_demo_learns_alarm_from_poisoned_rows_and_says_where_the_result_is(tmp_path):
    out = tmp_path / "deep" / "folder"
    ran = CliRunner().invoke(main, ["demo", "--rows", "50000", "-o", str(out)])
    assert ran.exit_code == 0, ran.output
    result = out / "alarm-fitted.json"
    assert str(result) in ran.output
    assert str(out / "report.html") in ran.output
    assert "counting" in ran.output
    assert (out / "report.html").stat().st_size > 50_000
    truth = example_network("alarm")
    fitted = read_network(result)
    assert fitted.has_same_structure(truth)
    assert robustbn.total_variation(truth, fitted) < 0.05


def test_the_command_is_installed():
    command = Path(sys.executable).parent / "robustbn"
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"robustbn, version {robustbn.__version__}\n"


def test_a_network_file_keeps_every_bit(tmp_path, sprinkler):
    odd = robustbn.BayesianNetwork(
        {'Ünï "code"\n': [], "b": ['Ünï "code"\n']},
        {'Ünï "code"\n': ["<a>", "b,c"], "b": [1, 2.5, True and "x"]},
        {'Ünï "code"\n': [1 / 3, 2 / 3], "b": [[0.1, 0.2, 0.7], [1e-300, 1 - 1e-16, 0]]},
    )
    for network in (sprinkler, odd, odd.with_cpts(None)):
        write_network(network, tmp_path / "n.json")
        assert read_network(tmp_path / "n.json") == network


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "not a network file"),
        ({"format": "other"}, "not a network file"),
        ({"version": 99}, "has version 99; this release reads version 1"),
        ({"nodes": 3}, '"nodes" must be a list'),
        ({"nodes": [{"name": "a"}]}, "node 0 needs name, states and parents"),
        ({"nodes": [{"name": "a", "states": [0, 1], "parents": []}] * 2}, "'a' appears twice"),
        (
            {"nodes": [{"name": "a", "states": [0, 1], "parents": [], "probabilities": [1]}]},
            "'a' needs 2 probabilities, found 1",
        ),
    ],
)
def test_a_wrong_network_file_is_refused_by_name(tmp_path, document, message):
    path = tmp_path / "wrong.json"
    if isinstance(document, dict):
        document = json.dumps({"format": "robustbn-network", "version": 1, **document})
    path.write_text(document)
    with pytest.raises(NetworkError, match=message) as error:
        read_network(path)
    assert "wrong.json" in str(error.value)


def test_memory_that_runs_out_is_an_error_and_not_a_crash():
    """Under a limit on the address space, the request that fails is named with its size."""
    code = """
import resource, numpy as np, robustbn
network = robustbn.random_network("tree", 100, random_state=0)
X = np.zeros((2_000_000, 100), np.uint8)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 30_000_000, -1))
try:
    robustbn.MaximumLikelihoodEstimator(network, n_threads=1).fit(X)
except robustbn.exceptions.InsufficientMemoryError as error:
    print(error)
"""
    assert "Packing rows needs" in run_python(code)


def test_other_files_and_examples_are_refused(tmp_path, sprinkler):
    with pytest.raises(NetworkError, match=r"x.pkl: networks are read from and written to .json"):
        read_network(tmp_path / "x.pkl")
    with pytest.raises(NetworkError, match=r"\.json"):
        write_network(sprinkler, tmp_path / "x.txt")
    with pytest.raises(ValueError, match="No example network 'x'"):
        example_network("x")


def test_alarm_is_the_published_network(alarm):
    """Sizes as published: 37 nodes, 46 edges, 509 free parameters."""
    assert (alarm.n_nodes, len(alarm.edges), alarm.layout.n_free) == (37, 46, 509)
    assert alarm.cpts["HYPOVOLEMIA"].tolist() == [0.2, 0.8]


@pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning")
@pytest.mark.parametrize("compiler", ["missing", "broken"])
def test_without_a_compiler_the_install_succeeds_and_says_once_that_it_is_slow(tmp_path, compiler):
    """Build the wheel with no usable compiler, install it apart, and run it."""
    cxx = "/nowhere/c++"
    if compiler == "broken":
        cxx = tmp_path / "c++"
        cxx.write_text("#!/bin/sh\nexit 1\n")
        cxx.chmod(0o755)
    build = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps",
         "-C", f"build-dir={tmp_path / 'build'}", "-w", str(tmp_path), str(ROOT)],
        capture_output=True, text=True, env={**os.environ, "CC": str(cxx), "CXX": str(cxx)},
    )  # fmt: skip
    assert build.returncode == 0, build.stderr
    (wheel,) = tmp_path.glob("robustbn-*.whl")
    assert wheel.name.endswith("-none-any.whl"), wheel.name
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target",
         str(tmp_path / "site"), str(wheel)],
        check=True,
    )  # fmt: skip
    code = """
import sys
sys.path[:0] = [{site!r}, {libraries!r}]
import warnings, numpy
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import robustbn
    net = robustbn.example_network("alarm")
    X = robustbn.sample(net, 2000, 0)
    fitted = robustbn.MaximumLikelihoodEstimator(net, "laplace").fit(X).network_
    robustbn.MaximumLikelihoodEstimator(net, "laplace").fit(X)
print(robustbn.__file__)
print([w.category.__name__ for w in caught if w.category.__name__.startswith("Slow")])
numpy.save({out!r}, fitted.probabilities)
""".format(
        site=str(tmp_path / "site"),
        libraries=sysconfig.get_path("platlib"),
        out=str(tmp_path / "q.npy"),
    )
    where, slow = run_python(code, "-S").splitlines()  # -S: the editable install is not seen
    assert str(tmp_path) in where
    assert slow == f"['{SlowBackendWarning.__name__}']"
    alarm = example_network("alarm")
    native = robustbn.MaximumLikelihoodEstimator(alarm, "laplace").fit(sample(alarm, 2000, 0))
    np.testing.assert_array_equal(np.load(tmp_path / "q.npy"), native.network_.probabilities)


def test_the_python_in_the_readme_runs_and_gives_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block, cells, real = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    names = {}
    exec(block, names)  # noqa: S102
    said = [float(x) for x in re.findall(r"total_variation\(.*\)\s*# ([\d.]+)", block)]
    fits = names["counted"], names["fit"]
    found = [robustbn.total_variation(names["alarm"], fit.network_) for fit in fits]
    assert said == [float(f"{value:.3f}") for value in found]
    assert f"# {names['fit'].contamination_:.3f}, found" in block
    assert len([line for line in block.splitlines() if line]) == 11  # ten lines and a page
    assert (tmp_path / "page.html").exists()
    exec(cells, names)  # noqa: S102
    is_changed = names["mended"] != names["X"]
    assert is_changed.sum() == len(names["changes"]) > 1_000
    assert (names["mended"] == names["good"][:50_000])[is_changed].mean() > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(real, names)  # noqa: S102
    fit = names["fit"]
    assert fit.contamination_ == 0
    assert fit.status_.startswith("No row stands out")
    first = fit.missing_edges().iloc[0]
    assert {first["parent"], first["child"]} == {"seatbelt", "dvcat"}
    assert "153 values are missing" in str(fit.reading_)
