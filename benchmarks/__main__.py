"""`python -m benchmarks COMMAND`, or `python -m benchmarks NAME... | all`.

Commands have options of their own: see `python -m benchmarks dirt --help`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from robustbn._rows.kernels import has_native

if not has_native():
    sys.exit(
        "The benchmarks measure the native kernels, and this installation of robustbn has none. "
        "Install a C++17 compiler and reinstall robustbn."
    )

from benchmarks.measure import RESULTS, Settings, render_markdown, say, write_report

# name: module and, if it is not "run", the function that takes Settings and returns a Report
BENCHMARKS = {
    "paper": "proof.run_paper",
    "gallery": "proof.run_gallery",
    "published": "proof.run_published",
    "peers": "proof.run_peers",
    "profile": "profile_fits.run",
    **{
        name: f"{name}.run"
        for name in (
            "learned_adversary", "real", "judging", "repair", "mistakes", "untouched", "misfit",
            "causes", "holes", "posteriors", "calibration", "gate", "draft", "counting",
            "robust_time", "growth", "threads", "kernels", "startup", "report_page",
            "sensitivity", "dask_scale",
        )
    },
}  # fmt: skip
# name: module, whose `main` takes the rest of the command line
COMMANDS = {
    "bench": "bench", "dirt": "dirt", "page": "page", "stale": "stale", "compare": "compare",
    "golden": "golden", "stream": "stream", "soak": "soak", "judge": "judge",
    "cells": "wrong_cells",
}  # fmt: skip


def find(name: str) -> Callable[[Any], Any]:
    """Return a function by module and name; a benchmark is imported only if it is asked for."""
    module, _, function = name.partition(".")
    found: Callable[[Any], Any] = getattr(import_module(f"benchmarks.{module}"), function or "main")
    return found


def main(arguments: list[str]) -> None:
    """Run what the command line asks for."""
    if arguments and arguments[0] in COMMANDS:
        find(COMMANDS[arguments[0]])(arguments[1:])
        return
    chosen = _parse(arguments)
    names = list(BENCHMARKS) if "all" in chosen.names else list(dict.fromkeys(chosen.names))
    settings = Settings(
        quick=chosen.quick,
        full=chosen.full,
        fresh=chosen.fresh,
        minutes=chosen.minutes,
        seed=chosen.seed,
        n_rounds=chosen.rounds,
        budget_s=chosen.budget,
        folder=chosen.folder,
        command=shlex.join(["python", "-m", "benchmarks", *arguments]),
    )
    for name in names:
        report = find(BENCHMARKS[name])(settings)
        for path in write_report(report, chosen.output):
            say(f"wrote {path}")
        print(render_markdown(report))


def _parse(arguments: list[str]) -> argparse.Namespace:
    defaults = Settings()
    commands = f"Commands: {', '.join(COMMANDS)}."
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=f"{__doc__}{commands}"
    )
    names = [*BENCHMARKS, "all"]
    parser.add_argument("names", nargs="+", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="fewer rows; goals are not judged")
    parser.add_argument("--full", action="store_true", help="every table, more seeds")
    parser.add_argument("--fresh", action="store_true", help="ignore cells measured before")
    parser.add_argument(
        "--minutes", type=float, default=defaults.minutes, help="begin no cell after so long"
    )
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--rounds", type=int, default=defaults.n_rounds, help="at the most")
    parser.add_argument(
        "--budget", type=float, default=defaults.budget_s, help="seconds for each contender"
    )
    parser.add_argument("--folder", default=defaults.folder, help="of public dirty tables")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
