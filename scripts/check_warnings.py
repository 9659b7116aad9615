"""`make warnings`: the kernels compiled by every compiler that is here, without a warning.

Each file of `native/` is compiled as strict C++17 with the warnings below as errors; the kernels
also without vectors (as MSVC would see them) and for every instruction set of x86-64. Conversions
between signed and unsigned indices, which clang counts among conversions and GCC does not, are
allowed.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "native"
COMPILERS = ("g++", "clang++")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Wpedantic", "-Werror")
AVX2 = ("-mavx2", "-mfma", "-mbmi", "-mbmi2")
AVX512 = (*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")


def variants(file: Path) -> Iterator[tuple[str, ...]]:
    """Give the options with which a file is compiled, beside the warnings."""
    has_wide = platform.machine() in ("x86_64", "AMD64")
    plain = ("-DROBUSTBN_ISA=portable", *(("-DROBUSTBN_X86_64",) if has_wide else ()))
    yield plain
    if file.name == "kernels.cpp":
        yield (*plain, "-DROBUSTBN_PLAIN")
        if has_wide:
            yield (*plain, *AVX2)
            yield (*plain, *AVX512)


def compile_file(compiler: str, file: Path, how: tuple[str, ...]) -> str:
    """Compile one file; return what the compiler says, nothing if it has nothing to say."""
    import nanobind

    others = [nanobind.include_dir(), sysconfig.get_paths()["include"]]
    includes = [option for folder in others for option in ("-isystem", folder)]
    done = subprocess.run(
        [compiler, "-std=c++17", *WARNINGS, *includes, *how, str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr.strip() or ("" if done.returncode == 0 else "failed")


def main() -> int:
    """Compile everything; return 1 if any compiler said anything."""
    found = [compiler for compiler in COMPILERS if shutil.which(compiler)]
    n_said = 0
    for compiler in found:
        for file in sorted(NATIVE.glob("*.cpp")):
            for how in variants(file):
                # optimised, as some warnings come from what an optimiser finds
                said = compile_file(compiler, file, (*how, "-O2", "-c", "-o", "/dev/null"))
                n_said += bool(said)
                print(f"{compiler} {file.name} {' '.join(how)}: {said or 'no warning'}", flush=True)
    for compiler in set(COMPILERS) - set(found):
        print(f"{compiler} is not here: nothing was checked with it.")
    return 1 if n_said or not found else 0


if __name__ == "__main__":
    sys.exit(main())
