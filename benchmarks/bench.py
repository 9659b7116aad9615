"""`python -m benchmarks bench`: every section of docs/proof.md, one after another, then the page.

`make bench` runs the short forms, `make bench-full` (`--full`) everything. A section that fails is
named at the end and stops nobody.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import page
from benchmarks.measure import RESULTS, say


def main(arguments: list[str]) -> None:
    """Measure the sections, write the page, and end with exit code 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks bench", description=__doc__)
    names = [section.result for section in page.SECTIONS]
    parser.add_argument("--full", action="store_true", help="everything: hours")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME",
                        help=f"some of {', '.join(names)}")  # fmt: skip
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--page", type=Path, default=page.PAGE, help="where the page goes")
    chosen = parser.parse_args(arguments)
    failed, started = [], time.monotonic()
    for section in (s for s in page.SECTIONS if s.result in chosen.only):
        command = section.full if chosen.full else section.short
        if command and not measure(command, chosen.output):
            failed.append(f"python -m benchmarks {command}")
    page.main(["--output", str(chosen.output), "--page", str(chosen.page)])
    say(f"all sections: {(time.monotonic() - started) / 60:.1f} minutes")
    if failed:
        raise SystemExit("These failed: " + "; ".join(failed))


def measure(command: str, output: Path) -> bool:
    """Run one section in a process of its own; return whether it succeeded."""
    say(f"== {command}")
    started = time.monotonic()
    arguments = [*shlex.split(command), *(() if output == RESULTS else ("--output", str(output)))]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], stdout=subprocess.DEVNULL, check=False
    )
    say(f"== {command}: {time.monotonic() - started:.0f} s")
    return done.returncode == 0
