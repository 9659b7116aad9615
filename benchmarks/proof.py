"""Exact networks: the paper's experiment, every adversary, published networks, costs beside peers.

`python -m benchmarks paper gallery published peers`. The rows are drawn from a network, so that the
error is known: the total variation from the true one. By default small networks, and one seed of
every adversary against every method; `--full` takes larger networks, more rows and three seeds of
everything. Finished cells are kept in `.bench_cache/`; a rerun goes on where the last one ended,
unless the code has changed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.cells import NOTEBOOK, Cell, Notebook, Record, code_version
from benchmarks.contenders import AUTO, FLOOR, GIVEN, METHODS, OURS, RIVALS
from benchmarks.measure import Goal, Report, Settings, Table, describe_machine, installed_versions
from benchmarks.pool import list_missing
from benchmarks.runner import Limits, run_cells
from benchmarks.scenes import build_network, title_network
from benchmarks.verdict import TIE, errors_by_method, group_by, judge, with_interval
from robustbn.adversary import KINDS

Records = Sequence[Record]

EPS = 0.1
WANTED_SHARE = 0.9  # of networks and adversaries in which ours is to be lowest
SHORT_S, FULL_S = 50.0, 1200.0  # for one cell, at the most
PAPER_METHODS = (FLOOR, "counting", "one_shot", "que_paper", *OURS)


# --- what is measured -----------------------------------------------------------------------------


def list_seeds(settings: Settings, short: int = 3) -> range:
    """Return the seeds of what is averaged: three, or fewer in a short run."""
    n_seeds = 3 if settings.full else 1 if settings.quick else short
    return range(settings.seed, settings.seed + n_seeds)


def rows_of_paper(name: str, seed: int) -> int:
    """Return N = 10 m / eps^2."""
    return round(10 * build_network(name, seed).n_configurations / EPS**2)


def plan_paper(settings: Settings) -> Iterator[Cell]:
    """Plan the paper's experiment: error against m, N = 10 m / eps^2."""
    if settings.full:
        names = [f"empty:{m}" for m in (50, 100, 200, 300, 500)]
        names += [f"tree:{d}" for d in (25, 50, 100, 150, 250)]
        names += [f"graph:50:{m}" for m in (100, 200, 300, 400, 500)]
    else:
        names = [f"empty:{m}" for m in (25, 50, 100)]
        names += [f"tree:{d}" for d in (13, 25, 50)]
        names += [f"graph:25:{m}" for m in (40, 70, 100)]
    for seed in list_seeds(settings):
        for name in names[:1] if settings.quick else names:
            n_rows = rows_of_paper(name, seed)
            for adversary in ("network", "product"):
                for method in PAPER_METHODS:
                    yield Cell("paper", name, adversary, method, EPS, n_rows, seed)


def plan_gallery(settings: Settings) -> Iterator[Cell]:
    """Plan every adversary against every method."""
    names = ["graph:30:100", "tree:50", "example:alarm"]
    if settings.full:
        names = ["graph:50:200", "tree:100", "categorical:30:300", "example:alarm"]
    most = 200_000 if settings.full else 5_000 if settings.quick else 30_000
    for seed in list_seeds(settings, short=1):
        for name in names[:1] if settings.quick else names:
            n_rows = min(most, rows_of_paper(name, seed))
            for adversary in ("none", *KINDS):
                for method in (FLOOR, *OURS, *RIVALS):
                    yield Cell("gallery", name, adversary, method, EPS, n_rows, seed)


def plan_published(settings: Settings) -> Iterator[Cell]:
    """Plan published networks, from few bad rows to many."""
    names: tuple[str, ...] = ("alarm", "insurance", "win95pts")
    shares: tuple[float, ...] = (0.01, 0.1, 0.3)
    if settings.full:
        names = ("alarm", "child", "insurance", "hailfinder", "hepar2", "win95pts", "andes")
        names += ("pigs", "link", "munin")
        shares = (0.01, 0.05, 0.1, 0.2, 0.3)
    large = ("andes", "pigs", "link", "munin")
    n_rows = 200_000 if settings.full else 5_000 if settings.quick else 50_000
    for seed in list_seeds(settings):
        for name in names[:1] if settings.quick else names:
            for adversary in ("network", "rowflip", "flood"):
                for eps in shares:
                    methods = [FLOOR, "counting", "one_shot", "trimmed", *OURS]
                    if settings.full and name not in large:
                        methods += ["forest", "hbos", "ecod"]
                        methods += ["que_paper"] if eps == EPS else []
                    for method in methods:
                        yield Cell("real", f"bif:{name}", adversary, method, eps, n_rows, seed)


def plan_peers(settings: Settings) -> Iterator[Cell]:
    """Plan time and memory of everybody on the same rows, one at a time, one thread."""
    n_rows = 500_000 if settings.full else 5_000 if settings.quick else 50_000
    for method in ("counting", "pgmpy", "pyagrum", *OURS, *RIVALS[1:]):
        n_rounds = 1 if method in ("que_paper", "lof") else 3
        for adversary in ("network", "rowflip"):
            yield Cell(
                "peers", "example:alarm", adversary, method, EPS, n_rows, settings.seed,
                n_rounds=n_rounds,
            )  # fmt: skip


def measure(
    plan: Callable[[Settings], Iterator[Cell]], settings: Settings, notebook: Path, *, alone: bool
) -> list[Record]:
    """Return every cell of a plan, measured now or before."""
    cells = list(plan(settings))
    limits = Limits(
        n_jobs=1 if alone else int(describe_machine()["cpus"]),
        cell_s=FULL_S if settings.full else SHORT_S,
        ends_at=time.monotonic() + 60 * settings.minutes if settings.minutes else None,
    )
    kept = Notebook(notebook, code_version(), fresh=settings.fresh)
    run_cells(cells, kept, limits)
    return kept.records(cells)


def _report(
    name: str,
    title: str,
    note: str,
    settings: Settings,
    records: Records,
    tables: Sequence[Table],
    goals: Sequence[Goal] = (),
) -> Report:
    used = [METHODS[key] for key in list_methods(records)]
    needed = dict.fromkeys(library for method in used for library in method.needs)
    methods = "; ".join(f"*{method.title}*: {method.note}" for method in used)
    return Report(
        f"proof-{name}",
        title,
        f"{note} {ERROR.format(most=_largest_error(records))} Methods: {methods}.",
        settings,
        installed_versions(["robustbn", "numpy", *needed]),
        tuple(tables),
        tuple(records),
        () if settings.quick else tuple(goals),
        list_missing(records),
    )


ERROR = (
    "Error is the total variation between the learned network and the true one: exact where the "
    "joint states can be enumerated, otherwise estimated from draws (standard error at most "
    "{most:.1g}). The *floor* is the error of counting the good rows alone. ± is a 95 % interval "
    "over seeds, where there are several; brackets hold one over adversaries, drawn again. Every "
    "cell has a process and one thread of its own."
)


def _largest_error(records: Records) -> float:
    return max((r["tv_error"] for r in records if "tv_error" in r), default=0.0)


def list_methods(records: Records) -> list[str]:
    """Return the methods of the records, in the order of `METHODS`."""
    used = {r["method"] for r in records}
    return [key for key in METHODS if key in used]


def run_paper(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Repeat the experiment of the paper."""
    records = measure(plan_paper, settings, notebook, alone=False)
    note = (
        f"An empty graph, a random tree and a random graph, all binary; eps = {EPS:g}, N = 10 m / "
        "eps²; the bad rows come from another network (a random tree), or have independent nodes."
    )
    tables = [tabulate_lost(records), tabulate_errors(records, "network", "adversary", "n_rows")]
    return _report("paper", "The paper's experiment", note, settings, records, tables)


def run_gallery(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Try every adversary against every method."""
    records = measure(plan_gallery, settings, notebook, alone=False)
    kinds = "; ".join(f"*{kind}*: {describe_adversary(kind)}" for kind in KINDS)
    note = (
        f"eps = {EPS:g}. In *none* all rows are good, and those who are told eps are told "
        f"{EPS:.0%} all the same. `R` is the error over the floor. Adversaries: {kinds}."
    )
    tables = [*(tabulate_lost(records, ours) for ours in (AUTO, GIVEN)), tabulate_choices(records)]
    tables.append(tabulate_gallery(records))
    goals = [goal for ours in (AUTO, GIVEN) for goal in find_goals(records, ours)]
    title = "Exact networks: every adversary, every method"
    return _report("gallery", title, note, settings, records, tables, goals)


def run_published(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Take networks as published, with few bad rows and many."""
    records = measure(plan_published, settings, notebook, alone=False)
    note = "Structure and tables as published (read from the files that come with pgmpy)."
    tables = [tabulate_lost(records), tabulate_errors(records, "network", "adversary", "eps")]
    return _report("real", "Published networks", note, settings, records, tables)


def run_peers(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Compare time and memory of all methods on the same rows."""
    records = measure(plan_peers, settings, notebook, alone=True)
    note = (
        f"{title_network(records[0]['network'])}, {records[0]['n_rows']:,} rows, eps = {EPS:g}; "
        "each alone on the machine, fastest of up to three rounds. A method is given its rows in "
        "the form it likes best, and that is not counted; one-hot rows are, for they are part of "
        "the way. Memory is the peak above what the process held before the fit. pgmpy and pyAgrum "
        "count, and are compared with our counts table by table."
    )
    title = "What a fit costs, beside the others"
    return _report("peers", title, note, settings, records, [tabulate_costs(records)])


# --- tables ---------------------------------------------------------------------------------------


def tabulate_lost(records: Records, ours: str = AUTO) -> Table:
    """Return every place in which a rival is lower by more than a tie, or ours failed."""
    lines = []
    groups = group_by(records, "n_rows", "eps").items()
    outcomes = [(eps, o) for (_, eps), group in groups for o in judge(group, ours)]
    for eps, outcome in outcomes:
        if outcome.is_lowest:
            continue
        best, error = outcome.best
        others = (outcome.errors.get("counting"), outcome.floor)
        lines.append(
            (
                title_network(outcome.network),
                f"{outcome.adversary}, {eps:.0%}",
                "failed" if outcome.ours is None else f"{outcome.ours:.4f}",
                f"{error:.4f}",
                METHODS[best].title,
                *("–" if value is None else f"{value:.4f}" for value in others),
                "**yes**" if outcome.is_worst else "no",
            )
        )
    header = ("network", "bad rows", "ours", "lowest", "by", "counting", "floor", "worst of all")
    title = f"Lost: {METHODS[ours].title}"
    note = f"{len(lines)} of {len(outcomes)}; a tie is within {TIE - 1:.0%}."
    return Table(title, header, tuple(lines), note, n_words=2)


def tabulate_errors(records: Records, *keys: str) -> Table:
    """Return the error of every method, a line for each value of the keys."""
    methods, lines = list_methods(records), []
    for values, cell in group_by(records, *keys).items():
        errors = errors_by_method(cell)
        shown = [errors[k].show() if k in errors else "–" for k in methods]
        what = (_show_key(key, value) for key, value in zip(keys, values, strict=True))
        if errors:
            lines.append((*what, *shown))
    header = ("network", "bad rows", {"n_rows": "N"}.get(keys[2], keys[2]))
    return Table("Error", (*header, *(METHODS[k].title for k in methods)), tuple(lines), "", 2)


def _show_key(key: str, value: str | float) -> str:
    if key == "network":
        return title_network(str(value))
    return f"{value:.0%}" if key == "eps" else f"{value:,}" if key == "n_rows" else str(value)


def tabulate_choices(records: Records) -> Table:
    """Return what each method comes to over all networks and adversaries."""
    ratios: dict[str, list[Record]] = {}
    for (_, adversary), cell in group_by(records, "network", "adversary").items():
        errors = {k: a.mean for k, a in errors_by_method(cell).items()}
        floor = errors.pop(FLOOR, None)
        for method, error in errors.items() if floor else ():
            is_lowest = error <= TIE * min(errors.values())
            found = {"adversary": adversary, "R": error / (floor or 1), "lowest": is_lowest}
            ratios.setdefault(method, []).append(found)
    lines = []
    for method in (m for m in (*OURS, *RIVALS) if m in ratios):
        mine = [r for r in records if r["method"] == method and "seconds" in r]
        lines.append(
            (
                METHODS[method].title,
                with_interval(ratios[method], _mean_ratio, ".2f", "adversary"),
                f"{max(r['R'] for r in ratios[method]):.1f}",
                with_interval(ratios[method], _share_lowest, ".0%", "adversary"),
                _mean_share([r.get("precision") for r in mine]),
                _mean_share([r.get("recall") for r in mine]),
                _mean_share([r.get("lost") for r in mine if r["adversary"] == "none"]),
                f"{np.median([r['seconds'] for r in mine]):.2f}",
                f"{np.median([r['peak_bytes'] for r in mine]) / 2**20:.0f}",
            )
        )
    judged = ("R", "largest R", "lowest", "precision", "recall", "lost, clean")
    header = ("method", *judged, "seconds", "MiB")
    note = (
        "R: geometric mean. `lowest`: lowest of all or within 2 %. `lost, clean`: good rows "
        "distrusted where all are good. Seconds and memory above that of the rows: medians."
    )
    return Table("What you would pick instead", header, tuple(lines), note)


def _mean_ratio(found: Records) -> float:
    return float(np.exp(np.mean(np.log([r["R"] for r in found]))))


def _share_lowest(found: Records) -> float:
    return float(np.mean([r["lowest"] for r in found]))


def _mean_share(values: Sequence[float | None]) -> str:
    known = [v for v in values if v is not None]
    return f"{np.mean(known):.1%}" if known else "–"


def tabulate_gallery(records: Records) -> Table:
    """Return R of counting, of the lowest rival and of ours, a line for each adversary."""
    networks = list(dict.fromkeys(r["network"] for r in records))
    lines = []
    for (adversary,), group in group_by(records, "adversary").items():
        outcomes = {o.network: o for o in judge(group, AUTO)}
        shown = []
        for network in networks:
            o = outcomes.get(network)
            if o is None or o.ours is None or not o.floor:
                shown.append("–")
                continue
            values = (o.errors.get("counting", math.nan), o.best[1], o.ours)
            counting, best, ours = (f"{value / (o.floor or 1):.2f}" for value in values)
            shown.append(f"{counting}, {best}, **{ours}**")
        lines.append((adversary, *shown))
    header = ("adversary", *(title_network(network) for network in networks))
    note = "R of counting, of the lowest rival, and of ours without knowledge of eps."
    return Table("R, adversary by adversary", header, tuple(lines), note)


def tabulate_costs(records: Records) -> Table:
    """Return seconds, memory and error of each method, the fastest first."""
    lines = []
    for record in sorted(records, key=lambda r: (r["adversary"], r.get("seconds", math.inf))):
        shown = ("failed", "–", "–", "–")
        if "failed" not in record:
            same = "–"
            if "agrees" in record:
                words = "as our counts" if record["agrees"] else "**differ from our counts**"
                same = f"{words} (within {record['difference']:.0e})"
            tv = f"{record['tv']:.4f}" if "tv" in record else "–"
            memory = f"{record['peak_bytes'] / 2**20:.0f}"
            shown = (f"{record['seconds']:.3f}", memory, tv, same)
        lines.append((record["adversary"], METHODS[record["method"]].title, *shown))
    header = ("bad rows", "method", "seconds", "MiB", "error", "tables")
    return Table("Seconds and memory", header, tuple(lines), "", 2)


def find_goals(records: Records, ours: str) -> Iterator[Goal]:
    """Yield how often ours is lowest and how often worst."""
    outcomes = judge(records, ours)
    if not outcomes:
        return
    found = [{"adversary": o.adversary, "lowest": o.is_lowest} for o in outcomes]
    share, shown = _share_lowest(found), with_interval(found, _share_lowest, ".0%", "adversary")
    n_worst = sum(o.is_worst for o in outcomes)
    title = METHODS[ours].title
    met = share >= WANTED_SHARE
    yield Goal(f"{title}: lowest error of all", f"≥ {WANTED_SHARE:.0%}", shown, met)
    yield Goal(f"{title}: worst of all", "never", f"{n_worst} of {len(outcomes)}", not n_worst)


def describe_adversary(kind: str) -> str:
    """Return the first sentence about an adversary."""
    words = (KINDS[kind].__doc__ or kind).strip().splitlines()[0].rstrip(".")
    return words[0].lower() + words[1:]


RUNS: dict[str, Callable[[Settings], Report]] = {
    "paper": run_paper,
    "gallery": run_gallery,
    "published": run_published,
    "peers": run_peers,
}
