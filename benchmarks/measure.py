"""Time contenders side by side, describe the machine, write what was found.

Times on a shared machine drift by more than the differences we look for. So contenders take turns,
in a new order every round, and each is judged by its fastest round: the ratio of two such times
from one run is what a benchmark here reports.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._backends import _native
from robustbn._backends.native import available_cpus

SETTLE_S = 0.03  # idle threads of the contender before may still be spinning


@dataclass(frozen=True)
class Settings:
    """What a run was asked to do.

    Parameters
    ----------
    quick : fewer rows; the goals are not judged.
    seed : of the networks, the rows and the order of the contenders.
    n_rounds : rounds to run, at the most, for each contender.
    budget_s : seconds that one contender may take in all; its first round is always run.
    command : what was typed, for the record.
    """

    quick: bool = False
    seed: int = 0
    n_rounds: int = 7
    budget_s: float = 15.0
    command: str = ""


@dataclass(frozen=True)
class Timing:
    """The fastest of several rounds: wall clock, and CPU of all threads of the process."""

    wall_s: float
    cpu_s: float
    n_rounds: int


@dataclass(frozen=True)
class Goal:
    """A number to reach, and the number that was measured."""

    sentence: str
    wanted: str
    measured: str
    met: bool


@dataclass(frozen=True)
class Table:
    """Lines of text under a title, with what a reader must know to read them."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Report:
    """All that one benchmark found; `records` holds the numbers, `tables` show them."""

    name: str
    title: str
    settings: Settings
    versions: Mapping[str, str]
    tables: tuple[Table, ...]
    records: tuple[Mapping[str, Any], ...]
    goals: tuple[Goal, ...] = ()
    skipped: tuple[str, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=lambda: describe_machine())


# --- timing ---------------------------------------------------------------------------------------


def time_interleaved(
    contenders: Mapping[str, Callable[[], object]], settings: Settings
) -> dict[str, Timing]:
    """Return the fastest round of each contender; they take turns, in a new order every round.

    A contender leaves when another round, as long as its fastest, would exceed the budget.
    """
    rng = np.random.default_rng(settings.seed)
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for k in range(settings.n_rounds):
        playing = [name for name in contenders if _fits_budget(rounds[name], settings.budget_s)]
        if not playing:
            break
        started = time.perf_counter()
        for name in rng.permutation(playing):
            rounds[name].append(_time_once(contenders[name]))
        elapsed = time.perf_counter() - started
        say(f"  round {k + 1} of {settings.n_rounds}: {len(playing)} contenders, {elapsed:.1f} s")
    return {
        name: Timing(min(w for w, _ in times), min(c for _, c in times), len(times))
        for name, times in rounds.items()
    }


def _fits_budget(times: Sequence[tuple[float, float]], budget_s: float) -> bool:
    walls = [wall for wall, _ in times]
    return not walls or sum(walls) + min(walls) <= budget_s


def _time_once(run: Callable[[], object]) -> tuple[float, float]:
    gc.collect()
    time.sleep(SETTLE_S)
    cpu, wall = time.process_time(), time.perf_counter()
    result = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    del result  # freed after the clock stopped
    return wall, cpu


# --- where and with what --------------------------------------------------------------------------


def describe_machine() -> dict[str, Any]:
    """Return what a reader needs to judge times: processor, CPUs, memory, system, load."""
    return {
        "processor": _processor_name(),
        "cpus": available_cpus(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "instruction_set": _native.isa(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def installed_versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the version of each distribution that is installed."""
    versions = {}
    for name in distributions:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _processor_name() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _memory_gib() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError):
        return None


# --- saying and writing ---------------------------------------------------------------------------


def say(message: str) -> None:
    """Show progress; standard output is kept for the result."""
    print(message, file=sys.stderr, flush=True)


def write_report(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write `<name>.json` and `<name>.md`, or `<name>-quick...` for a quick run."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = report.name + ("-quick" if report.settings.quick else "")
    data, page = folder / f"{stem}.json", folder / f"{stem}.md"
    content = {key: value for key, value in asdict(report).items() if key != "tables"}
    data.write_text(json.dumps(content, indent=2) + "\n")
    page.write_text(render_markdown(report))
    return data, page


def render_markdown(report: Report) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {report.title}", _render_setting(report)]
    parts += [_render_table(table) for table in report.tables]
    if report.skipped:
        parts.append("Skipped:\n\n" + "\n".join(f"- {reason}" for reason in report.skipped))
    if report.goals:
        parts.append(_render_table(_tabulate_goals(report.goals)))
    return "\n\n".join(parts) + "\n"


def _render_setting(report: Report) -> str:
    machine, settings = report.machine, report.settings
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    lines = [
        f"- Machine: {machine['processor']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB, "
        f"{machine['system']}; instruction set {machine['instruction_set']}; load average "
        f"{machine['load_average']} when the report was written.",
        f"- Versions: Python {machine['python']}, {versions}.",
        f"- Seed {settings.seed}; fastest of at most {settings.n_rounds} interleaved rounds, "
        f"{settings.budget_s:g} s for each contender.",
        f"- Command: `{settings.command}`",
    ]
    return "\n".join(lines)


def _render_table(table: Table) -> str:
    rule = [":--" if k == 0 else "--:" for k in range(len(table.header))]
    lines = [f"| {' | '.join(cells)} |" for cells in (table.header, rule, *table.lines)]
    note = f"\n\n{table.note}" if table.note else ""
    return f"## {table.title}\n\n" + "\n".join(lines) + note


def _tabulate_goals(goals: Sequence[Goal]) -> Table:
    return Table(
        "Goals",
        ("goal", "wanted", "measured", "met"),
        tuple((g.sentence, g.wanted, g.measured, "yes" if g.met else "**no**") for g in goals),
    )
