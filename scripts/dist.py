"""`make dist`: build what is uploaded, and try it where nothing else is installed.

The sdist is built from the tree, the wheels from the sdist: one for Python 3.11 and one, of the
stable ABI, for all later ones. They are checked (how they read on the package index, size, version,
what is inside) and installed into fresh environments of every interpreter that is found, with the
newest dependencies, with the lowest that `pyproject.toml` allows, and from source without a
compiler; in each `scripts/smoke_fit.py` runs. What is not found here is said to be untried. The
workflow that builds for other systems cannot run here: it is checked against its schema.

    python scripts/dist.py [PYTHON ...]    # interpreters; else python3.11 to python3.14 on the path
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SMOKE = ROOT / "scripts" / "smoke_fit.py"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST = VERSIONS[0]
MOST_BYTES = 1_000_000  # of a wheel
NO_COMPILER = {"CC": "/nowhere/cc", "CXX": "/nowhere/c++"}
KERNELS = "robustbn/_rows/kernels/_native"
IN_WHEEL = ("robustbn/py.typed", "robustbn/_networks/data/alarm.json", "licenses/LICENSE")
IN_SDIST = ("pyproject.toml", "CMakeLists.txt", "native/kernels.cpp", "LICENSE", "CHANGELOG.md")
NOT_IN_SDIST = (".venv", "build", "dist", ".git", ".ci")
SCHEMAS = {  # what runs or is shown elsewhere, and cannot be tried here
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


class Trial(NamedTuple):
    """One fresh environment: what is installed there, with what, and how long that took."""

    what: str
    seconds: float
    said: str


def run(command: Sequence[str | Path], **given: str) -> str:
    """Run a command with environment variables more; return what it printed, or end with it."""
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}\nfailed")
    return done.stdout.strip()


def pip(python: Path, *arguments: str | Path, **given: str) -> str:
    """Run the pip of this environment for another one, which needs none of its own."""
    return run([sys.executable, "-m", "pip", "--python", python, *arguments], **given)


def find_interpreters(named: Sequence[str]) -> dict[str, Path]:
    """Return the interpreters that answer, by version, oldest first."""
    found = {}
    for name in named or [f"python{version}" for version in VERSIONS]:
        if path := shutil.which(name):
            code = "import sys; print('%d.%d' % sys.version_info[:2])"
            done = subprocess.run([path, "-c", code], capture_output=True, text=True)
            found[done.stdout.strip()] = Path(path)
    return {version: found[version] for version in VERSIONS if version in found}


def make_environment(python: Path, folder: Path) -> Path:
    """Make a fresh environment; return its interpreter."""
    run([python, "-m", "venv", "--without-pip", folder])
    return folder / "bin" / "python"


def build_everything(interpreters: Mapping[str, Path], folder: Path) -> tuple[Path, list[Path]]:
    """Build the sdist, and from it the wheels; return them."""
    shutil.rmtree(DIST, ignore_errors=True)
    run([sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT])
    (sdist,) = DIST.glob("*.tar.gz")
    later = next((version for version in interpreters if version != OLDEST), None)
    for version in {OLDEST, later} & set(interpreters):
        python = make_environment(interpreters[version], folder / f"build-{version}")
        pip(python, "wheel", "-q", "--no-deps", "-w", DIST, sdist)
    return sdist, sorted(DIST.glob("*.whl"))


def check_files(sdist: Path, wheels: Sequence[Path]) -> Iterator[str]:
    """Give what is wrong with the files; nothing if they can be uploaded."""
    run([sys.executable, "-m", "twine", "check", "--strict", sdist, *wheels])
    for schema, pattern in SCHEMAS.items():
        checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
        run([*checker, *sorted(ROOT.glob(pattern))])
    said = (ROOT / "src/robustbn/_core/__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'__version__ = "(.+)"', said)
    for file in (sdist, *wheels):
        if not re.match(rf"robustbn-{re.escape(version)}(-|\.tar)", file.name):
            yield f"{file.name} is not of version {version}"
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    yield from (f"{sdist.name} lacks {name}" for name in IN_SDIST if name not in inside)
    for name in sorted({entry.partition("/")[0] for entry in inside} & set(NOT_IN_SDIST)):
        yield f"{sdist.name} holds {name}"
    for wheel in wheels:
        yield from check_wheel(wheel)


def check_wheel(wheel: Path) -> Iterator[str]:
    """Give what is wrong with a wheel."""
    if wheel.stat().st_size > MOST_BYTES:
        yield f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {MOST_BYTES:,}"
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (KERNELS, *IN_WHEEL):
        if not any(wanted in name for name in names):
            yield f"{wheel.name} lacks {wanted}"
    tops = {name.partition("/")[0] for name in names}
    if any(top != "robustbn" and not top.endswith(".dist-info") for top in tops):
        yield f"{wheel.name} installs more than robustbn: {sorted(tops)}"
    if "abi3" in wheel.name:
        run([sys.executable, "-m", "abi3audit", "--strict", wheel])


def wheel_for(version: str, wheels: Sequence[Path]) -> Path:
    """Return the wheel that an interpreter takes."""
    tag = "cp311-cp311" if version == OLDEST else "cp312-abi3"
    return next(wheel for wheel in wheels if tag in wheel.name)


def lowest_dependencies() -> list[str]:
    """Return the dependencies, each of the lowest version that `pyproject.toml` allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [dependency.replace(">=", "==") for dependency in project["dependencies"]]


def try_wheel(python: Path, version: str, wheel: Path, folder: Path, pins: list[str]) -> Trial:
    """Install a wheel beside wheels of its dependencies, and fit."""
    what = "lowest dependencies" if pins else "newest dependencies"
    there, house = folder / f"{version}-{what[:6]}", folder / f"wheels-{version}-{what[:6]}"
    environment = make_environment(python, there)
    pip(environment, "download", "-q", "--only-binary", ":all:", "-d", house, wheel, *pins)
    start = time.perf_counter()
    pip(environment, "install", "-q", "--no-index", "--find-links", house, wheel, *pins)
    seconds = time.perf_counter() - start
    return Trial(what, seconds, run([environment, "-I", SMOKE, "native"]))


def try_sdist(python: Path, version: str, sdist: Path, folder: Path) -> Trial:
    """Install from source where no compiler is found, and fit with the NumPy kernels."""
    environment = make_environment(python, folder / f"{version}-source")
    start = time.perf_counter()
    pip(environment, "install", "-q", "--no-binary", "robustbn", sdist, **NO_COMPILER)
    seconds = time.perf_counter() - start
    said = run([environment, "-I", SMOKE, "numpy"])
    return Trial("from source, no compiler", seconds, said)


def try_everything(
    interpreters: Mapping[str, Path], sdist: Path, wheels: Sequence[Path], folder: Path
) -> Iterator[Trial]:
    """Try every interpreter, the lowest dependencies on the oldest, and both ends from source."""
    for version, python in interpreters.items():
        yield try_wheel(python, version, wheel_for(version, wheels), folder, [])
    oldest, *_, newest = [*interpreters, *interpreters]
    if oldest == OLDEST:  # newer interpreters have no wheels of them
        pins = lowest_dependencies()
        yield try_wheel(interpreters[oldest], oldest, wheel_for(oldest, wheels), folder, pins)
    for version in dict.fromkeys((oldest, newest)):
        yield try_sdist(interpreters[version], version, sdist, folder)


def main() -> int:
    """Build, check, try; return 1 if anything cannot be uploaded."""
    interpreters = find_interpreters(sys.argv[1:])
    if not interpreters:
        sys.exit(f"No interpreter of {', '.join(VERSIONS)} was found; name some.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist, wheels = build_everything(interpreters, folder)
        for file in (sdist, *wheels):
            print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes", flush=True)
        wrong = list(check_files(sdist, wheels))
        for trial in try_everything(interpreters, sdist, wheels, folder):
            print(f"{trial.what}, installed in {trial.seconds:.1f} s; {trial.said}", flush=True)
    untried = [version for version in VERSIONS if version not in interpreters]
    if untried:
        print(f"Untried, for want of an interpreter: {', '.join(untried)}.")
    print("\n".join(wrong) or f"All of {DIST.relative_to(ROOT)}/ can be uploaded.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
