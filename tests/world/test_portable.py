"""The kernels are plain C++17: other compilers, other processors, machines that are refused."""

from __future__ import annotations

import platform
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robustbn._rows.kernels import load_kernels

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
CHECK = runpy.run_path(str(ROOT / "scripts" / "check_warnings.py"))
COMPILERS = [compiler for compiler in CHECK["COMPILERS"] if shutil.which(compiler)]
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="needs g++ or clang++")


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("file", sorted(NATIVE.glob("*.cpp")), ids=lambda file: file.name)
def test_no_compiler_warns_of_anything(compiler, file):
    for how in CHECK["variants"](file):
        assert CHECK["compile_file"](compiler, file, (*how, "-fsyntax-only")) == ""


@needs_compiler
def test_a_conversion_that_loses_something_would_be_told(tmp_path):
    narrow = tmp_path / "narrow.cpp"
    narrow.write_text("char narrow(int wide) { return wide; }\n")
    assert "conversion" in CHECK["compile_file"](COMPILERS[0], narrow, ("-fsyntax-only",))


@needs_compiler
def test_every_compiler_gives_the_same_bits_with_and_without_vectors(tmp_path):
    """Without vectors is what MSVC would compile. The driver prints a hash of all sums."""
    program, said = tmp_path / "driver", set()
    for compiler in COMPILERS:
        for how in ([], ["-DROBUSTBN_PLAIN"]):
            subprocess.run(
                [compiler, "-std=c++17", "-O1", "-ffp-contract=off", "-pthread", *how,
                 "-DROBUSTBN_ISA=portable", NATIVE / "kernels.cpp", NATIVE / "driver.cpp",
                 "-o", program],
                check=True,
            )  # fmt: skip
            done = subprocess.run([program], capture_output=True, text=True, check=True)
            said.add(done.stdout.strip())
    assert [len(each) for each in said] == [16]


@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("g++") is None, reason="needs g++ on x86-64"
)
def test_both_ways_to_ask_the_processor_agree(tmp_path):
    source = tmp_path / "ask.cpp"
    source.write_text(
        '#include <cstdio>\n#include "processor.h"\n'
        'int main() { std::printf("%d %d", robustbn::has_avx2(), robustbn::has_avx512()); }\n'
    )
    said = set()
    for how in ([], ["-DROBUSTBN_CPUID", "-mxsave"]):
        program = tmp_path / f"ask{len(how)}"
        subprocess.run(
            ["g++", "-std=c++17", f"-I{NATIVE}", *how, source, "-o", program], check=True
        )
        said.add(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    assert len(said) == 1


@needs_compiler
@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (["-U__SIZEOF_SIZE_T__", "-D__SIZEOF_SIZE_T__=4"], "robustbn needs a 64-bit machine"),
        (["-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321"], "robustbn needs a little-endian machine"),
    ],
)
def test_other_machines_are_refused_by_the_compiler_with_a_sentence(machine, sentence):
    command = [COMPILERS[0], "-std=c++17", "-fsyntax-only", "-DROBUSTBN_ISA=portable", *machine]
    done = subprocess.run([*command, NATIVE / "kernels.cpp"], capture_output=True, text=True)
    assert done.returncode != 0
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("maxsize", 2**31 - 1, "robustbn needs a 64-bit Python"),
        ("byteorder", "big", "robustbn needs a little-endian machine"),
    ],
)
def test_other_machines_are_refused_by_python_with_a_sentence(monkeypatch, name, value, sentence):
    monkeypatch.setattr(sys, name, value)
    with pytest.raises(ImportError, match=sentence):
        load_kernels("numpy")
