"""The command line."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import click

from robustbn._read import example_network, write_network
from robustbn._version import __version__
from robustbn.adversary import KINDS, corrupt
from robustbn.distance import node_distances, total_variation
from robustbn.estimator import MaximumLikelihoodEstimator, RobustEstimator
from robustbn.exceptions import UnseenConfigurationWarning
from robustbn.simulate import sample


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="robustbn")
def main() -> None:
    r"""Learn the tables of a Bayesian network from rows that cannot all be trusted.

    \b
    Try it:
      robustbn demo
      robustbn demo --adversary clones --eps 0.2
    """


@main.command()
@click.option("--rows", default=200_000, show_default=True, help="How many rows to draw.")
@click.option("--eps", default=0.1, show_default=True, help="Share of the rows to poison.")
@click.option(
    "--adversary",
    default="mixture",
    show_default=True,
    type=click.Choice(sorted(KINDS)),
    help="Who poisons them.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the draws.")
@click.option(
    "-o",
    "--output",
    default="robustbn-demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.",
)
def demo(rows: int, eps: float, adversary: str, seed: int, output: Path) -> None:
    """Poison rows of the ALARM network, learn its tables anyway, and compare with counting."""
    truth = example_network("alarm")
    structure = truth.with_cpts(None)
    good = sample(truth, rows, random_state=seed)
    dirty, is_bad = corrupt(good, truth, adversary, eps, random_state=seed + 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenConfigurationWarning)
        start = time.perf_counter()
        counted = MaximumLikelihoodEstimator(structure).fit(dirty)
        middle = time.perf_counter()
        robust = RobustEstimator(structure, random_state=seed).fit(dirty)
        end = time.perf_counter()
        ideal = MaximumLikelihoodEstimator(structure).fit(dirty[~is_bad])

    output.mkdir(parents=True, exist_ok=True)
    result = output / "alarm-fitted.json"
    write_network(robust.network_, result)
    caught = (robust.row_weights_[is_bad] < 0.5).mean() if is_bad.any() else 0.0
    wrong = (robust.row_weights_[~is_bad] < 0.5).mean()
    moved = node_distances(robust.plain_network_, robust.network_)
    furthest = sorted(moved, key=moved.__getitem__, reverse=True)[:5]

    def line(name: str, text: str) -> None:
        click.echo(f"{name:<12}{text}")

    line("network", f"ALARM: {truth}")
    line("rows", f"{len(dirty):,}, {is_bad.mean():.1%} of them bad ({adversary}, seed {seed})")
    line("", "distance of the learned network from the true one (total variation):")
    for name, fit, seconds in (
        ("  counting", counted.network_, f"{(middle - start) * 1e3:6.1f} ms"),
        ("  robustbn", robust.network_, f"{(end - middle) * 1e3:6.1f} ms"),
        ("  ideal", ideal.network_, "   counting, had the bad rows been known"),
    ):
        line(name, f"{total_variation(truth, fit):.4f}  {seconds}")
    line("bad rows", f"{caught:.1%} of them caught, {wrong:.2%} of the good ones with them")
    line("status", robust.status_)
    for kind in robust.kinds_:
        line("a kind", str(kind).replace("\n", "\n" + " " * 12))
    line("moved most", ", ".join(f"{node} {moved[node]:.3f}" for node in furthest))
    line("result", str(result))
