"""The command line."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import click

from robustbn._read import example_network, write_network
from robustbn._version import __version__
from robustbn.distance import node_distances, total_variation
from robustbn.estimator import MaximumLikelihoodEstimator
from robustbn.exceptions import UnseenConfigurationWarning
from robustbn.simulate import sample


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="robustbn")
def main() -> None:
    r"""Learn the tables of a Bayesian network from rows that cannot all be trusted.

    \b
    Try it:
      robustbn demo
    """


@main.command()
@click.option("--rows", default=200_000, show_default=True, help="How many rows to draw.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draws.")
@click.option(
    "-o",
    "--output",
    default="robustbn-demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.",
)
def demo(rows: int, seed: int, output: Path) -> None:
    """Draw rows from the ALARM network, learn its tables back, and say how close they are."""
    truth = example_network("alarm")
    codes = sample(truth, rows, random_state=seed)
    structure = truth.with_cpts(None)

    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenConfigurationWarning)  # told below
        estimator = MaximumLikelihoodEstimator(structure, prior="laplace").fit(codes)
    wall_s = time.perf_counter() - start

    fitted = estimator.network_
    distance = total_variation(truth, fitted)
    per_node = node_distances(truth, fitted)
    furthest = sorted(per_node, key=per_node.__getitem__, reverse=True)[:5]
    output.mkdir(parents=True, exist_ok=True)
    result = output / "alarm-fitted.json"
    write_network(fitted, result)

    click.echo(f"network    ALARM: {truth}")
    click.echo(f"rows       {rows:,} drawn from it (seed {seed})")
    click.echo(f"counting   {wall_s * 1e3:.1f} ms")
    click.echo(
        f"distance   {distance:.4f} total variation between the true and the learned network "
        f"(95 %: {distance.low:.4f} to {distance.high:.4f})"
    )
    click.echo(
        f"unseen     {len(estimator.unseen_configurations_)} of {truth.n_configurations} parent "
        "configurations are in no row; their tables are the prior"
    )
    click.echo("furthest   " + ", ".join(f"{node} {per_node[node]:.4f}" for node in furthest))
    click.echo(f"result     {result}")
