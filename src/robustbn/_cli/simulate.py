"""`robustbn sample`, `corrupt` and `demo`: simulated rows for experiments."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli import arguments
from robustbn._cli.files import TABLES, Outputs, raw_option, write_codes, write_columns
from robustbn._cli.options import (
    at_least,
    force_option,
    seed_option,
    setting_options,
    share_of_rows,
)
from robustbn._cli.screen import Screen, Steps, print_facts, screen_options
from robustbn._core.config import TableConfig

if TYPE_CHECKING:
    from rich.console import Console

ADVERSARIES = (
    "product", "network", "repeated", "flipped", "shift", "rowflip", "comonotone", "misjoined",
    "blocks", "mixture", "tilt", "clones", "decoy", "flood", "adaptive", "veil", "lawful",
    "tail", "subtract", "starve",
)  # fmt: skip
eps_option = click.option(
    "--eps", type=share_of_rows(), default=0.1, show_default=True, help="Share of bad rows."
)
DEMONSTRATED = "mixture"  # how rows of the demo are corrupted: four kinds at once


@click.command("sample")
@click.argument("network", type=click.Path())
@click.option("-n", "--rows", type=at_least(1), default=1000, show_default=True,
              help="Number of rows to draw.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(), metavar="TABLE",
              help="Write a .csv, .parquet or .arrow file; without it, CSV goes to standard "
                  "output.")  # fmt: skip
@click.option("--codes", is_flag=True, help="Write positions of states instead of labels.")
@seed_option
@raw_option
@force_option
@screen_options
def sample_command(
    network: str, screen: Screen, rows: int, output: str | None, codes: bool, seed: int, force: bool
) -> None:
    """Draw rows from NETWORK, which must have tables.

    \b
      robustbn sample net.bif -n 100000 -o rows.parquet
      robustbn sample example:alarm -n 5
    """  # noqa: D301
    from robustbn.simulate import sample

    if output is None and screen.is_json:
        raise click.UsageError("Without -o, the rows are printed: remove --json, or add -o.")
    outputs = Outputs(force, [network])
    outputs.plan("rows", output, TABLES)
    with screen.working() as steps:
        source = arguments.load_network(network)
        arguments.require_tables(source, network, "drawing rows")
        with steps.step("draw", f"drawing {rows:,} rows"):
            drawn = sample(source, rows, seed)
        with steps.step("write", "writing"), outputs.writing():
            outputs.write("rows", lambda path: write_codes(drawn, source, path, codes))
    if output is None:
        sys.stdout.flush()
        write_codes(drawn, source, sys.stdout.buffer, codes)
        return
    facts = {"network": network, "rows": rows, "seed": seed, "files": outputs.names}
    screen.show(facts, lambda console, _: print_facts(console, {f"{rows:,} rows": output}))


@click.command("corrupt")
@click.argument("network", type=click.Path())
@click.argument("table", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), metavar="DIRTY",
              help="Write the corrupted copy (.csv, .parquet, .arrow).")  # fmt: skip
@click.option("--kind", type=click.Choice(ADVERSARIES), default="mixture", show_default=True,
              help="Kind of corruption.")  # fmt: skip
@eps_option
@click.option("--mode", type=click.Choice(["replace", "add"]), default="replace", show_default=True,
              help="Replace rows by bad ones, or add bad rows.")  # fmt: skip
@seed_option
@force_option
@setting_options(TableConfig, "sep")
@screen_options
def corrupt_command(network: str, table: str, screen: Screen, **options: Any) -> None:
    """Make a corrupted copy of TABLE for experiments, and record which rows are bad.

    The bad rows are listed in a file of the same name that ends in .bad.csv. TABLE needs one column
    per node, with the states of NETWORK; for other columns, make a network with `states` first. The
    adversary knows the tables of NETWORK; if it has none, they are counted from the rows. The copy
    contains only the columns of the network. The kinds `subtract` and `starve` remove rows instead
    of adding bad ones.

    \b
      robustbn corrupt net.bif good.csv --kind mixture --eps 0.1 -o dirty.csv
      robustbn corrupt net.bif good.csv --kind clones --eps 20% --mode add -o dirty.parquet
    """  # noqa: D301
    from robustbn.simulate import corrupt

    eps, output = options["eps"], Path(options["output"])
    bad_path = output.with_suffix(".bad.csv")
    network, table = arguments.bring_both(network, table, options)
    outputs = Outputs(options["force"], [network, table])
    outputs.plan("rows", output, TABLES)
    outputs.plan("bad rows", bad_path, TABLES)
    with screen.working() as steps:
        source = arguments.load_network(network)
        good = arguments.read_rows(table, source, arguments.build_config(options, source), steps)
        known = source if source.has_cpts else _count(source, good.codes, screen)
        with steps.step("corrupt", "corrupting"):
            how = options["kind"], eps, options["seed"]
            rows, is_bad = corrupt(good.codes, known, *how, mode=options["mode"])
        columns = {"row": range(len(rows)), "is_bad": is_bad}
        with steps.step("write", "writing"), outputs.writing():
            outputs.write("rows", lambda path: write_codes(rows, source, path))
            outputs.write("bad rows", lambda path: write_columns(columns, path))
    if good.reading.ignored:
        screen.note(f"Columns not copied: {arguments.some(good.reading.ignored)}")
    facts = {
        "kind": options["kind"],
        "rows_read": good.reading.n_read,
        "rows": len(rows),
        "rows_bad": int(is_bad.sum()),
        "rows_taken_away": max(0, len(good) - len(rows)),
        "seed": options["seed"],
        "files": outputs.names,
    }
    taken = f", {facts['rows_taken_away']:,} taken away" if facts["rows_taken_away"] else ""
    text = f"{len(rows):,}, {facts['rows_bad']:,} of them bad ({options['kind']}){taken}"
    screen.show(
        facts,
        lambda console, _: print_facts(console, {"rows": text, "written": str(output),
                                                 "bad rows": str(bad_path)}),
    )  # fmt: skip


def _count(network: Any, codes: Any, screen: Screen) -> Any:
    from robustbn.estimator import MaximumLikelihoodEstimator

    screen.note("The network has no tables; those counted from the rows are used.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MaximumLikelihoodEstimator(network, "laplace").fit(codes).network_


@click.command("demo")
@click.option("--rows", type=at_least(100), default=200_000, show_default=True,
              help="Number of rows to draw.")  # fmt: skip
@eps_option
@seed_option
@click.option("-o", "--output", default="robustbn-demo", show_default=True,
              type=click.Path(file_okay=False, path_type=Path),
              help="Folder for the results; those of an earlier demo are overwritten.")  # fmt: skip
@screen_options
def demo_command(screen: Screen, rows: int, eps: float, seed: int, output: Path) -> None:
    """Corrupt rows of the ALARM network, learn its tables anyway, and compare with counting.

    \b
      robustbn demo
      robustbn demo --eps 0.2
    """  # noqa: D301
    outputs = Outputs(force=True)
    outputs.plan("network", output / "alarm-fitted.json", in_new=True)
    outputs.plan("report", output / "report.html", in_new=True)
    with screen.working() as steps:
        facts = _run_demo(rows, eps, seed, outputs, steps)
    screen.show(facts, _show_demo)


def _run_demo(n: int, eps: float, seed: int, outputs: Outputs, steps: Steps) -> dict[str, Any]:
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
        dirty, is_bad = corrupt(good, truth, DEMONSTRATED, eps, random_state=seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted, count_s = _timed(lambda: MaximumLikelihoodEstimator(structure).fit(dirty))
        with steps.step("fit", "fitting"):
            robust, robust_s = _timed(
                lambda: RobustEstimator(structure, random_state=seed).fit(dirty)
            )
        ideal = MaximumLikelihoodEstimator(structure).fit(dirty[~is_bad])
    command = f"robustbn demo --rows {n} --eps {eps:g} --seed {seed}"
    title = f"ALARM, {len(dirty):,} rows, {is_bad.mean():.0%} of them poisoned ({DEMONSTRATED})"
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
        "adversary": DEMONSTRATED,
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


def _show_demo(console: Console, facts: Any) -> None:
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
            "error": "total variation distance from the true network:",
            "  counting": f"{error['counting']:.4f}  {seconds['counting'] * 1e3:6.1f} ms",
            "  robustbn": f"{error['robustbn']:.4f}  {seconds['robustbn'] * 1e3:6.1f} ms",
            "  ideal": f"{error['ideal']:.4f}  counting without the bad rows (ideal)",
            "bad rows": f"{facts['share_caught']:.1%} of them caught, "
            f"{facts['share_wrongly_caught']:.2%} of the good ones with them",
            "status": facts["status"],
        },
    )
    for kind in facts["kinds_in_words"]:
        print_facts(console, {"a kind": kind})
    console.print()
    show_moved(console, facts["moved"][:5])
    print_facts(console, {"result": facts["files"]["network"], "report": facts["files"]["report"]})
