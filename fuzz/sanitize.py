"""`python -m fuzz.sanitize [address|thread]`: the kernels on builds that find unseen wrongs.

Builds the extension module anew in `build/sanitize-address` (AddressSanitizer and UBSan: memory
that is not theirs, arithmetic that is not defined) and `build/sanitize-thread` (ThreadSanitizer:
races), beside the installed one, which stays as it is; then runs the tests of the kernels and calls
them with wrong arguments from several threads. A sanitizer's report ends the run with an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILDS = {"address": "address,undefined", "thread": "thread"}
RUNTIMES = {"address": "libasan.so", "thread": "libtsan.so"}
TESTS = ("tests/unit/rows", "tests/promises/test_rows.py")
OPTIONS = {  # Python's own memory is never freed: leaks are not looked for
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    # Python and NumPy are not instrumented: what they do among themselves is not looked at
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66",
}
N_CALLS, N_THREADS = 200, 3


def find_runtime(name: str, compiler: str = "g++") -> str:
    """Return the path of a library that the compiler brings; empty if it brings none."""
    try:
        found = subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found if Path(found).is_absolute() and Path(found).exists() else ""


def build(kind: str) -> Path:
    """Build the extension module with sanitizers; return its file."""
    folder, tools = ROOT / f"build/sanitize-{kind}", Path(sys.executable).parent
    subprocess.run(
        [tools / "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja",
         f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", "-DCMAKE_BUILD_TYPE=Release",
         f"-DPython_EXECUTABLE={sys.executable}", f"-DROBUSTBN_SANITIZE={BUILDS[kind]}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    subprocess.run([tools / "cmake", "--build", folder], check=True)
    return next(folder.glob("_native*.so"))


def run_with(kind: str, module: Path, command: list[str]) -> int:
    """Run Python with a build of the kernels and its runtime; return how it ended."""
    preloaded = [find_runtime(RUNTIMES[kind]), find_runtime("libstdc++.so")]
    given = {"LD_PRELOAD": " ".join(preloaded), "ROBUSTBN_BUILT": str(module), **OPTIONS}
    whole = [sys.executable, *command]
    return subprocess.run(whole, env={**os.environ, **given}, cwd=ROOT).returncode


def call_from_threads() -> None:
    """Call the kernels, rightly and wrongly, from several threads at once."""
    import fuzz.built  # noqa: F401
    from fuzz import kernels

    n_wrong = [0] * N_THREADS

    def call(t: int) -> None:
        n_wrong[t] = kernels.run(N_CALLS, t)

    threads = [threading.Thread(target=call, args=(t,)) for t in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1 if any(n_wrong) else 0)


def main() -> int:
    """Build and run what is asked for; return 1 if anything was found."""
    failed = []
    for kind in sys.argv[1:] or list(BUILDS):
        if not find_runtime(RUNTIMES[kind]):
            print(f"{kind}: the compiler has no {RUNTIMES[kind]}; nothing was checked.")
            failed.append(kind)
            continue
        module = build(kind)
        calls = ["-c", "from fuzz import sanitize; sanitize.call_from_threads()"]
        commands = [calls]
        if kind == "address":
            commands.append(["-m", "pytest", "-p", "fuzz.built", "-p", "no:xdist", *TESTS])
        if any(run_with(kind, module, command) for command in commands):
            failed.append(kind)
    print(f"Sanitizers found something: {', '.join(failed)}." if failed else "Nothing was found.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
