"""How long a command and an import take to start, and what the first fit pays that others do not.

Every start is a fresh process; its CPU time is what the system says that the child took. Starts
take turns with an interpreter that does nothing, and each is judged by its fastest round.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say

# see sources.py
SOURCES = ("src/robustbn/_cli/**/*", "src/robustbn/_show/**/*", "src/robustbn/cli.py")
NOTHING = "an interpreter that does nothing"
COMMAND = "from robustbn.cli import main; main({})"  # what the installed script does
STARTS = {
    NOTHING: "pass",
    "`import robustbn`": "import robustbn",
    "`robustbn --help`": COMMAND.format(["--help"]),
    "`robustbn fit --help`": COMMAND.format(["fit", "--help"]),
    "`import numpy`, for comparison": "import numpy",
}
FITS = """
import sys, time
import robustbn
network = robustbn.example_network("alarm")
rows = robustbn.sample(network, 20_000, 0)
for _ in range(3):
    start = time.process_time()
    robustbn.fit(network, rows, random_state=0)
    print(time.process_time() - start)
"""
START_HEADER = ("start", "CPU, ms", "over nothing, ms", "times nothing")
STARTUP_NOTE = (
    "CPU time, user and system, of whole processes, which on a busy machine says more than the "
    "clock; compiled files are kept in a folder of their own and are there from the second round "
    "on. Fastest round."
)


def run(settings: Settings) -> Report:
    """Start processes and write what they took."""
    fastest: dict[str, float] = {}
    fits: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(settings.n_rounds + 1):
            say(f"startup: round {k}")
            for name, code in STARTS.items():
                cpu_s, _ = _start(code, Path(folder))
                fastest[name] = min(fastest.get(name, cpu_s), cpu_s) if k else cpu_s
            fits.append([float(line) for line in _start(FITS, Path(folder))[1].split()])
    first, second = (min(fit[k] for fit in fits[1:]) for k in (0, 1))
    return Report(
        "startup",
        "Starts, and first fits",
        STARTUP_NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "click"]),
        (
            Table("Starts", START_HEADER, tuple(_lines(fastest))),
            Table(
                "Fits of one process",
                ("fit of 20,000 rows of ALARM", "CPU, s"),
                (("the first", f"{first:.3f}"), ("the second", f"{second:.3f}")),
                "The first pays for the modules that a fit needs.",
            ),
        ),
        ({"starts": fastest, "first_s": first, "second_s": second},),
        tuple(_goals(fastest, first, second)),
    )


def _lines(fastest: dict[str, float]) -> Iterator[tuple[str, ...]]:
    nothing = fastest[NOTHING]
    for name, cpu_s in fastest.items():
        over = f"{1e3 * (cpu_s - nothing):.0f}"
        yield name, f"{1e3 * cpu_s:.0f}", over, f"{cpu_s / nothing:.1f}"


def _goals(fastest: dict[str, float], first: float, second: float) -> Iterator[Goal]:
    for name in ("`robustbn --help`", "`import robustbn`"):
        yield Goal(name, "0.1 s", f"{fastest[name]:.3f} s", fastest[name] <= 0.1)
    over = first - second
    yield Goal("the first fit over the second", "0.5 s", f"{over:.3f} s", over <= 0.5)


def _start(code: str, folder: Path) -> tuple[float, str]:
    """Run code in a fresh interpreter; return the CPU seconds it took and what it printed."""
    told: dict[str, Any] = {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
    environment = {k: v for k, v in os.environ.items() if k not in dropped} | told
    with (folder / "printed").open("w+") as printed:
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdout=printed, env=environment, cwd=folder
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{code!r} ended with {child.returncode}")
        printed.seek(0)
        return used.ru_utime + used.ru_stime, printed.read()
