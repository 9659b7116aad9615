"""`robustbn bench`: the speed on this machine; in a checkout, the whole proof."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.count import Count
from robustbn._cli.networks import load_network, require_tables
from robustbn._cli.screen import Screen, print_facts, screen_options
from robustbn._cli.share import Share

if TYPE_CHECKING:
    from rich.console import Console

ROUNDS = 5


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--rows", type=Count(100), help="Measure here, on so many rows.")
@click.option("--network", default="example:alarm", show_default=True, help="What to draw from.")
@click.option("--eps", type=Share(False), default="0.1", help="Share of bad rows.  [default: 0.1]")
@click.option("--jobs", type=Count(1), metavar="N", help="Threads.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the rows.")
@click.argument("proof", nargs=-1, metavar="[OPTIONS OF THE PROOF]...")
@screen_options
def command(
    screen: Screen,
    rows: int | None,
    network: str,
    eps: float,
    jobs: int | None,
    seed: int,
    proof: tuple[str, ...],
) -> None:
    """Measure counting and the robust fit on this machine.

    In a checkout of the project, without --rows, this runs `python -m benchmarks proof`, which
    measures every claim (minutes) and takes further options. Otherwise it draws rows, poisons
    them, and measures both, with their ratio: seconds.

    \b
      robustbn bench --rows 200000
      robustbn bench --full
    """  # noqa: D301
    if rows is None and Path("benchmarks/proof.py").is_file():
        screen.note("This is a checkout: python -m benchmarks proof")
        done = subprocess.run([sys.executable, "-m", "benchmarks", "proof", *proof], check=False)
        click.get_current_context().exit(done.returncode)
    if proof:
        raise click.UsageError(f"{proof[0]} is for the proof, which needs a checkout.")
    with screen.steps() as steps, steps.step("measure", "measuring"):
        facts = _measure(network, rows or 200_000, eps, jobs, seed)
    screen.show(facts, _show)


def _measure(text: str, n: int, eps: float, jobs: int | None, seed: int) -> dict[str, Any]:
    from robustbn._rows.kernels import has_native
    from robustbn.distance import total_variation
    from robustbn.estimator import MaximumLikelihoodEstimator, RobustEstimator
    from robustbn.simulate import corrupt, sample

    truth = load_network(text)
    require_tables(truth, text, "drawing rows")
    rows, _ = corrupt(sample(truth, n, seed), truth, "mixture", eps, seed + 1)
    counting = MaximumLikelihoodEstimator(truth, n_threads=jobs)
    robust = RobustEstimator(truth, random_state=seed, n_threads=jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count_s = _median(lambda: counting.fit(rows), ROUNDS)
        robust_s = _median(lambda: robust.fit(rows), 3)
    return {
        "network": text,
        "rows": n,
        "nodes": truth.n_nodes,
        "eps": eps,
        "is_native": has_native(),
        "counting_s": count_s,
        "robust_s": robust_s,
        "ratio": robust_s / count_s,
        "counting_error": float(total_variation(truth, counting.network_)),
        "robust_error": float(total_variation(truth, robust.network_)),
    }


def _median(work: Callable[[], object], n: int) -> float:
    times = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _show(console: Console, facts: Any) -> None:
    kernels = "native" if facts["is_native"] else "NumPy (no native kernels here)"
    print_facts(
        console,
        {
            "rows": f"{facts['rows']:,} of {facts['network']}, {facts['eps']:.0%} of them bad; "
            f"{kernels} kernels",
            "counting": f"{facts['counting_s'] * 1e3:9.1f} ms   total variation from the truth "
            f"{facts['counting_error']:.4f}",
            "robust fit": f"{facts['robust_s'] * 1e3:9.1f} ms   total variation from the truth "
            f"{facts['robust_error']:.4f}",
            "ratio": f"{facts['ratio']:9.1f}",
        },
    )
