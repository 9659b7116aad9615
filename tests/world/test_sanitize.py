"""The kernels under sanitizers, briefly; `make sanitize` runs all of their tests so."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from fuzz.sanitize import BUILDS, ROOT, RUNTIMES, find_runtime


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("kind", BUILDS)
def test_every_kernel_runs_on_threads_without_a_report(kind, tmp_path):
    if not find_runtime(RUNTIMES[kind]):
        pytest.skip(f"this compiler has no {RUNTIMES[kind]}")
    program = tmp_path / kind
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-g", f"-fsanitize={BUILDS[kind]}", "-pthread",
         "-fno-sanitize-recover=all", "-ffp-contract=off", "-DROBUSTBN_ISA=portable",
         ROOT / "native/kernels.cpp", ROOT / "native/driver.cpp", "-o", program],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
