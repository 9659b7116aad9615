"""`python -m benchmarks COMMAND`, or `python -m benchmarks NAME... | all`.

Commands: proof, page, stale, compare, golden, stream, soak, judge, order, unplanted, mistakes,
gate, cells, draft. They have options of their own: see `python -m benchmarks proof --help`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from robustbn._rows.kernels import has_native

if not has_native():
    sys.exit(
        "The benchmarks measure the native kernels, and this installation of robustbn has none. "
        "Install a C++17 compiler and reinstall robustbn."
    )

from benchmarks import (
    calibration,
    causes,
    compare,
    context,
    counting,
    dask_scale,
    dirt,
    draft,
    first_look,
    gate,
    golden,
    growth,
    holes,
    judge,
    kernels,
    learned_adversary,
    misfit,
    mistakes,
    order,
    posteriors,
    profile_fits,
    proof,
    proposals,
    que_time,
    real,
    report_page,
    robust_mean,
    robust_time,
    robustness,
    sensitivity,
    soak,
    stale,
    startup,
    stream,
    tables,
    threads,
    unplanted,
    wrong_cells,
)
from benchmarks.measure import Report, Settings, render_markdown, say, write_report

BENCHMARKS: dict[str, Callable[[Settings], Report]] = {
    "counting": counting.run,
    "kernels": kernels.run,
    "robustness": robustness.run,
    "real": real.run,
    "proposals": proposals.run,
    "misfit": misfit.run,
    "causes": causes.run,
    "calibration": calibration.run,
    "posteriors": posteriors.run,
    "learned_adversary": learned_adversary.run,
    "holes": holes.run,
    "sensitivity": sensitivity.run,
    "robust_time": robust_time.run,
    "growth": growth.run,
    "profile": profile_fits.run,
    "robust_mean": robust_mean.run,
    "threads": threads.run,
    "que_time": que_time.run,
    "startup": startup.run,
    "tables": tables.run,
    "first_look": first_look.run,
    "report_page": report_page.run,
    "context": context.run,
    "dask_scale": dask_scale.run,
}
COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "proof": proof.main,
    "page": proof.rewrite_page,
    "compare": compare.main,
    "golden": golden.main,
    "stream": stream.main,
    "soak": soak.main,
    "judge": judge.main,
    "order": order.main,
    "unplanted": unplanted.main,
    "mistakes": mistakes.main,
    "gate": gate.main,
    "cells": wrong_cells.main,
    "dirt": dirt.main,
    "draft": draft.main,
    "stale": stale.main,
}


def main(arguments: list[str]) -> None:
    """Run what the command line asks for."""
    if arguments and arguments[0] in COMMANDS:
        COMMANDS[arguments[0]](arguments[1:])
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
        command=shlex.join(["python", "-m", "benchmarks", *arguments]),
    )
    for name in names:
        report = BENCHMARKS[name](settings)
        for path in write_report(report, chosen.output):
            say(f"wrote {path}")
        print(render_markdown(report))


def _parse(arguments: list[str]) -> argparse.Namespace:
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
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
    parser.add_argument("--output", type=Path, default=proof.RESULTS, help="folder for the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
