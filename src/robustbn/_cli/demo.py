"""`robustbn demo`: the main job on rows that are made here, ending with a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.corrupt import ADVERSARIES
from robustbn._cli.count import Count
from robustbn._cli.files import Outputs
from robustbn._cli.screen import Screen, Steps, print_facts, screen_options

if TYPE_CHECKING:
    from rich.console import Console


@click.command
@click.option("--rows", type=Count(100), default=200_000, show_default=True,
              help="How many rows to draw.")  # fmt: skip
@click.option("--eps", type=click.FloatRange(0, 1, max_open=True), default=0.1, show_default=True,
              help="Share of the rows to poison.")  # fmt: skip
@click.option("--adversary", type=click.Choice(sorted(ADVERSARIES)), default="mixture",
              show_default=True, help="Who poisons them.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option("-o", "--output", default="robustbn-demo", show_default=True,
              type=click.Path(file_okay=False, path_type=Path),
              help="Folder for the results; those of an earlier demo are replaced.")  # fmt: skip
@screen_options
def command(screen: Screen, rows: int, eps: float, adversary: str, seed: int, output: Path) -> None:
    """Poison rows of the ALARM network, learn its tables anyway, and compare with counting.

    \b
      robustbn demo
      robustbn demo --adversary clones --eps 0.2
    """  # noqa: D301
    outputs = Outputs(force=True)
    outputs.plan("network", output / "alarm-fitted.json", in_new=True)
    outputs.plan("report", output / "report.html", in_new=True)
    with screen.steps() as steps:
        facts = _run(rows, eps, adversary, seed, outputs, steps)
    screen.show(facts, _show)


def _run(
    n: int, eps: float, adversary: str, seed: int, outputs: Outputs, steps: Steps
) -> dict[str, Any]:
    from robustbn._cli.summary import fit_facts
    from robustbn._networks import example_network, write_network
    from robustbn._show.page.render import render_page
    from robustbn.distance import total_variation
    from robustbn.estimator import MaximumLikelihoodEstimator, RobustEstimator
    from robustbn.simulate import corrupt, sample

    truth = example_network("alarm")
    structure = truth.with_cpts(None)
    with steps.step("draw", f"drawing {n:,} rows"):
        good = sample(truth, n, random_state=seed)
        dirty, is_bad = corrupt(good, truth, adversary, eps, random_state=seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted, count_s = _timed(lambda: MaximumLikelihoodEstimator(structure).fit(dirty))
        with steps.step("fit", "fitting"):
            robust, robust_s = _timed(
                lambda: RobustEstimator(structure, random_state=seed).fit(dirty)
            )
        ideal = MaximumLikelihoodEstimator(structure).fit(dirty[~is_bad])
    command = f"robustbn demo --rows {n} --eps {eps:g} --adversary {adversary} --seed {seed}"
    title = f"ALARM, {len(dirty):,} rows, {is_bad.mean():.0%} of them poisoned ({adversary})"
    with steps.step("report", "writing"):
        result = robust.result_.shown(title=title, command=command)
        with outputs.writing():
            outputs.write("network", lambda path: write_network(robust.network_, path))
            page = render_page(result).encode("utf-8")
            outputs.write("report", lambda path: path.write_bytes(page))
    suspicious = robust.row_weights_ < 0.5
    fits = (("counting", counted), ("robustbn", robust), ("ideal", ideal))
    return {
        **fit_facts(result, "example:alarm", f"{len(dirty):,} rows drawn from it"),
        "rows_bad": int(is_bad.sum()),
        "adversary": adversary,
        "seed": seed,
        "total_variation": {
            name: float(total_variation(truth, fit.network_)) for name, fit in fits
        },
        "fit_seconds": {"counting": count_s, "robustbn": robust_s},
        "share_caught": float(suspicious[is_bad].mean()) if is_bad.any() else 0.0,
        "share_wrongly_caught": float(suspicious[~is_bad].mean()),
        "kinds_in_words": [str(kind) for kind in robust.kinds_],
        "seconds": dict(steps.seconds),
        "files": outputs.names,
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def _show(console: Console, facts: Any) -> None:
    from robustbn._cli.summary import show_moved

    network, seconds, error = facts["network"], facts["fit_seconds"], facts["total_variation"]
    n = facts["table"]["rows"]
    print_facts(
        console,
        {
            "network": f"ALARM: {network['nodes']} nodes, {network['edges']} edges, "
            f"{network['free_parameters']} free parameters",
            "rows": f"{n:,}, {facts['rows_bad'] / n:.1%} of them bad ({facts['adversary']}, "
            f"seed {facts['seed']})",
            "error": "distance of the learned network from the true one (total variation):",
            "  counting": f"{error['counting']:.4f}  {seconds['counting'] * 1e3:6.1f} ms",
            "  robustbn": f"{error['robustbn']:.4f}  {seconds['robustbn'] * 1e3:6.1f} ms",
            "  ideal": f"{error['ideal']:.4f}  counting, had the bad rows been known",
            "bad rows": f"{facts['share_caught']:.1%} of them caught, "
            f"{facts['share_wrongly_caught']:.2%} of the good ones with them",
            "status": facts["status"],
        },
    )
    for kind in facts["kinds_in_words"]:
        print_facts(console, {"a kind": kind})
    show_moved(console, facts["moved"][:5])
    print_facts(console, {"result": facts["files"]["network"], "report": facts["files"]["report"]})
