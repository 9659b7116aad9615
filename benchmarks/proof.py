"""`python -m benchmarks proof`: every claim on accuracy and cost, measured by one command.

Quick by default: small networks, one seed, at most ten minutes on two cores. `--full` is the real
thing: larger networks, more rows, several seeds with intervals. Finished cells are kept in
`.bench_cache/`; a rerun goes on where the last one ended, unless the code has changed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import figures, page, page_misfit
from benchmarks.cells import NOTEBOOK, ROOT, Cell, Notebook, code_version
from benchmarks.contenders import AUTO, FLOOR, GIVEN, METHODS, OURS, RIVALS
from benchmarks.measure import describe_machine, installed_versions, say
from benchmarks.runner import Limits, run_cells
from benchmarks.scenes import build_network
from benchmarks.sources import hash_sources
from benchmarks.verdict import judge, summarise
from robustbn.adversary import KINDS

RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs" / "proof.md"
EPS = 0.1
QUICK_MINUTES = 9.0
PAPER_METHODS = (FLOOR, "counting", "one_shot", "que_paper", *OURS)


@dataclass(frozen=True)
class Plan:
    """What to measure, and how much of it."""

    full: bool
    seed: int
    n_seeds: int

    @property
    def seeds(self) -> range:
        """The seeds of everything that is averaged."""
        return range(self.seed, self.seed + self.n_seeds)


# --- the experiments ------------------------------------------------------------------------------


def plan_paper(plan: Plan) -> Iterator[Cell]:
    """Plan the paper's experiment: error against m, N = 10 m / eps^2."""
    if plan.full:
        names = [f"empty:{m}" for m in (50, 100, 200, 300, 500)]
        names += [f"tree:{d}" for d in (25, 50, 100, 150, 250)]
        names += [f"graph:50:{m}" for m in (100, 200, 300, 400, 500)]
    else:
        names = [f"empty:{m}" for m in (25, 50, 100)]
        names += [f"tree:{d}" for d in (13, 25, 50)]
        names += [f"graph:25:{m}" for m in (40, 70, 100)]
    for seed in plan.seeds:
        for name in names:
            n_rows = rows_of_paper(name, seed)
            for adversary in ("network", "product"):
                for method in PAPER_METHODS:
                    yield Cell("paper", name, adversary, method, EPS, n_rows, seed)


def plan_gallery(plan: Plan) -> Iterator[Cell]:
    """Plan every adversary against every method."""
    names = ["graph:30:100", "tree:50", "example:alarm"]
    if plan.full:
        names = ["graph:50:200", "tree:100", "categorical:30:300", "example:alarm"]
    most = 200_000 if plan.full else 30_000
    for seed in plan.seeds:
        for name in names:
            n_rows = min(most, rows_of_paper(name, seed))
            for adversary in ("none", *KINDS):
                for method in (FLOOR, *OURS, *RIVALS):
                    yield Cell("gallery", name, adversary, method, EPS, n_rows, seed)


def plan_real(plan: Plan) -> Iterator[Cell]:
    """Plan published networks, from few bad rows to many."""
    names: tuple[str, ...] = ("alarm", "insurance", "win95pts")
    shares: tuple[float, ...] = (0.01, 0.1, 0.3)
    if plan.full:
        names = ("alarm", "child", "insurance", "hailfinder", "hepar2", "win95pts", "andes")
        names += ("pigs", "link", "munin")
        shares = (0.01, 0.05, 0.1, 0.2, 0.3)
    large = ("andes", "pigs", "link", "munin")
    n_rows = 200_000 if plan.full else 50_000
    for seed in plan.seeds:
        for name in names:
            for adversary in ("network", "rowflip", "flood"):
                for eps in shares:
                    methods = [FLOOR, "counting", "one_shot", "trimmed", *OURS]
                    if plan.full and name not in large:
                        methods += ["forest", "hbos", "ecod"]
                        methods += ["que_paper"] if eps == EPS else []
                    for method in methods:
                        yield Cell("real", f"bif:{name}", adversary, method, eps, n_rows, seed)


def plan_peers(plan: Plan) -> Iterator[Cell]:
    """Plan time and memory of everybody on the same rows, one at a time, one thread."""
    n_rows = 500_000 if plan.full else 50_000
    for method in ("counting", "pgmpy", "pyagrum", *OURS, *RIVALS[1:]):
        n_rounds = 1 if method in ("que_paper", "lof") else 3
        for adversary in ("network", "rowflip"):
            yield Cell(
                "peers",
                "example:alarm",
                adversary,
                method,
                EPS,
                n_rows,
                plan.seed,
                n_rounds=n_rounds,
            )


def plan_scaling(plan: Plan) -> Iterator[Cell]:
    """Plan time against rows, nodes, configurations and threads."""
    rows = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
    nodes, sizes = [10, 30, 100, 300, 1000], [100, 200, 500, 1000, 2000, 5000]
    n_rows, n_threads_rows = 200_000, 2_000_000
    if not plan.full:
        rows, nodes, sizes = rows[:5], nodes[:4], sizes[:4]
        n_rows, n_threads_rows = 50_000, 500_000
    cells = [("N", "graph:50:200", n, 1) for n in rows]
    cells += [("d", f"tree:{d}", n_rows, 1) for d in nodes]
    cells += [("m", f"graph:50:{m}", 5 * n_rows, 1) for m in sizes]
    cpus = int(describe_machine()["cpus"])
    threads = [k for k in (1, 2, 4, 8) if k <= cpus]
    cells += [("threads", "graph:50:200", n_threads_rows, k) for k in threads]
    for grows, name, n, n_threads in cells:
        for method in ("bytes", "counting", AUTO):
            yield Cell(
                f"scaling {grows}",
                name,
                "network",
                method,
                EPS,
                n,
                plan.seed,
                n_threads=n_threads,
                n_rounds=3,
                n_draws=0,
            )


def rows_of_paper(name: str, seed: int) -> int:
    """Return N = 10 m / eps^2."""
    return round(10 * build_network(name, seed).n_configurations / EPS**2)


# Cheap ones first: a time limit cuts the end. The second entry: whether cells are measured alone.
EXPERIMENTS = {
    "paper": (plan_paper, False),
    "peers": (plan_peers, True),
    "scaling": (plan_scaling, True),
    "real": (plan_real, False),
    "gallery": (plan_gallery, False),
}


# --- the command ----------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Measure what is missing, then write results, figures and page."""
    chosen = _parse(arguments)
    n_seeds = chosen.seeds or (3 if chosen.full else 1)
    plan = Plan(chosen.full, chosen.seed, n_seeds)
    cells = {name: list(EXPERIMENTS[name][0](plan)) for name in chosen.only}
    version = code_version()
    notebook = Notebook(chosen.notebook, version, fresh=chosen.fresh, retry=chosen.retry)
    minutes = chosen.minutes or (0 if chosen.full else QUICK_MINUTES)
    limits = Limits(
        cell_s=chosen.cell_seconds or (1200 if chosen.full else 50),
        ends_at=time.monotonic() + 60 * minutes if minutes else None,
    )
    machine = describe_machine()
    for name, planned in cells.items():
        alone = EXPERIMENTS[name][1]
        n_jobs = 1 if alone else chosen.jobs or machine["cpus"]
        say(f"{name}: {len(planned)} cells, {n_jobs} at a time")
        run_cells(planned, notebook, replace(limits, n_jobs=n_jobs))
    records = {name: notebook.records(planned) for name, planned in cells.items()}
    setting = {
        "mode": "full" if chosen.full else "quick",
        "seed": chosen.seed,
        "n_seeds": n_seeds,
        "command": shlex.join(["python", "-m", "benchmarks", "proof", *arguments]),
        "sources": hash_sources("proof"),
        "machine": machine,
        "versions": _find_versions(),
        "n_jobs": chosen.jobs or machine["cpus"],
    }
    for path in publish(records, setting, chosen.output, chosen.page):
        say(f"wrote {path}")


def publish(
    records: dict[str, list[dict[str, Any]]], setting: dict[str, Any], folder: Path, target: Path
) -> list[Path]:
    """Write the numbers, the figures and the page; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    written = []
    verdict = {ours: summarise(judge(records.get("gallery", []), ours)) for ours in (GIVEN, AUTO)}
    for name, found in records.items():
        path = folder / f"proof-{name}.json"
        content = {**setting, "experiment": name, "records": found}
        if name == "gallery":
            content["verdict"] = verdict
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    drawn = figures.draw_all(records, setting, folder)
    written += [path for pair in drawn.values() for path in pair]
    write_page(records, dict.fromkeys(records, setting), drawn, folder, target)
    return [*written, target]


def write_page(
    records: dict[str, list[Any]],
    settings: dict[str, dict[str, Any]],
    drawn: figures.Drawn,
    folder: Path,
    target: Path,
) -> None:
    """Write the page, with the sections of benchmarks whose results are in the folder."""
    more = tuple(page_misfit.render_stored(folder))
    text = page.render(records, settings, drawn, target.parent, more)
    target.write_text(text, encoding="utf-8")


def rewrite_page(arguments: list[str]) -> None:
    """Write the page anew from the results in the folder; nothing is measured or drawn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks page")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page goes")
    chosen = parser.parse_args(arguments)
    found = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in EXPERIMENTS
        if (path := chosen.output / f"proof-{name}.json").exists()
    }
    if not found:
        raise SystemExit(f"There are no results in {chosen.output}: run the proof first.")
    records = {name: stored["records"] for name, stored in found.items()}
    drawn = {
        path.stem.removeprefix("proof-"): (path, path.with_suffix(".png"))
        for path in sorted(chosen.output.glob("proof-*.svg"))
    }
    write_page(records, found, drawn, chosen.output, chosen.page)
    say(f"wrote {chosen.page}")


def _find_versions() -> dict[str, str]:
    needed = [library for method in METHODS.values() for library in method.needs]
    return installed_versions(dict.fromkeys(["robustbn", "numpy", *needed, "matplotlib"]))


def _parse(arguments: Iterable[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks proof", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the real thing: hours, not minutes")
    parser.add_argument("--fresh", action="store_true", help="ignore what was measured before")
    parser.add_argument("--retry", action="store_true", help="measure again what failed before")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(EXPERIMENTS),
        default=list(EXPERIMENTS),
        metavar="NAME",
        help=f"some of {', '.join(EXPERIMENTS)}; the page then shows these alone",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, help="how many seeds (quick 1, full 3)")
    parser.add_argument("--jobs", type=int, help="cells at a time (default: one a CPU)")
    parser.add_argument(
        "--minutes",
        type=float,
        help=f"begin no cell after so long (quick {QUICK_MINUTES:g}, full no limit)",
    )
    parser.add_argument("--cell-seconds", type=float, help="limit for a cell (quick 50, full 1200)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page goes")
    parser.add_argument("--notebook", type=Path, default=NOTEBOOK, help="file of finished cells")
    return parser.parse_args(list(arguments))
