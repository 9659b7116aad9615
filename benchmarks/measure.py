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
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.sources import entry_of, hash_sources
from robustbn._rows.kernels import _native
from robustbn._rows.kernels.native import available_cpus

Name = TypeVar("Name", bound=Hashable)

RESULTS = Path(__file__).parent / "results"
SETTLE_S = 0.03  # idle threads of the contender before may still be spinning


@dataclass(frozen=True)
class Settings:
    """What a run was asked to do.

    Parameters
    ----------
    quick : fewer rows; the goals are not judged.
    full : more of everything: hours, where a benchmark knows how.
    fresh : whether finished cells of earlier runs are measured again.
    minutes : no cell is begun after so long, where a benchmark has cells; 0 for no limit.
    seed : of the networks, the rows and the order of the contenders.
    n_rounds : rounds to run, at the most, for each contender.
    budget_s : seconds that one contender may take in all; its first round is always run.
    folder : of public tables with known errors that are not part of this repository.
    command : what was typed, for the record.
    """

    quick: bool = False
    full: bool = False
    fresh: bool = False
    minutes: float = 0.0
    seed: int = 0
    n_rounds: int = 15
    budget_s: float = 15.0
    folder: str = "../shared/dirt"
    command: str = ""


@dataclass(frozen=True)
class Timing:
    """Seconds of every round: wall clock, and CPU of all threads of the process."""

    walls_s: tuple[float, ...] = ()
    cpus_s: tuple[float, ...] = ()

    @property
    def wall_s(self) -> float:
        """Wall clock of the fastest round."""
        return min(self.walls_s)

    @property
    def cpu_s(self) -> float:
        """CPU of the round that took least; for a machine that others use, too."""
        return min(self.cpus_s)

    def fits_budget(self, budget_s: float) -> bool:
        """Whether another round, as long as the fastest, may be run."""
        return not self.walls_s or sum(self.walls_s) + self.wall_s <= budget_s

    def add_round(self, wall_s: float, cpu_s: float) -> Timing:
        """Return the timing with one round more."""
        return Timing((*self.walls_s, wall_s), (*self.cpus_s, cpu_s))

    def to_record(self) -> dict[str, Any]:
        """Return the fastest round, and the wall clock of every round to judge the noise by."""
        wall_s, cpu_s = min(zip(self.walls_s, self.cpus_s, strict=True))
        return {"wall_s": wall_s, "cpu_s": cpu_s, "walls_s": self.walls_s}


@dataclass(frozen=True)
class Goal:
    """A number to reach, and the number that was measured."""

    sentence: str
    wanted: str
    measured: str
    met: bool


@dataclass(frozen=True)
class Table:
    """Lines of text under a title, with a note; the first `n_words` columns are words."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    note: str = ""
    n_words: int = 1


@dataclass(frozen=True)
class Report:
    """All that one benchmark found; `records` holds the numbers, `tables` show them.

    `sources` is the hash of the code that made it, known when it is written.
    """

    name: str
    title: str
    note: str
    settings: Settings
    versions: Mapping[str, str]
    tables: tuple[Table, ...]
    records: tuple[Mapping[str, Any], ...]
    goals: tuple[Goal, ...] = ()
    skipped: tuple[str, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=lambda: describe_machine())
    sources: str = ""


# --- timing ---------------------------------------------------------------------------------------


def time_interleaved(
    contenders: Mapping[Name, Callable[[], object]], settings: Settings
) -> dict[Name, Timing]:
    """Return the fastest round of each contender; they take turns, in a new order every round.

    A contender is called once a round, however short its call: the fastest of many calls beats the
    fastest of few by luck alone. It leaves when another round, as long as its fastest, would exceed
    the budget.
    """
    rng = np.random.default_rng(settings.seed)
    timings = {name: Timing() for name in contenders}
    for k in range(settings.n_rounds):
        playing = [name for name, t in timings.items() if t.fits_budget(settings.budget_s)]
        if not playing:
            break
        gc.collect()
        started = time.perf_counter()
        for turn in rng.permutation(len(playing)):
            name = playing[turn]
            timings[name] = timings[name].add_round(*_time_call(contenders[name]))
        elapsed = time.perf_counter() - started
        say(f"  round {k + 1} of {settings.n_rounds}: {len(playing)} contenders, {elapsed:.1f} s")
    return timings


def _time_call(run: Callable[[], object]) -> tuple[float, float]:
    time.sleep(SETTLE_S)
    gc.disable()
    cpu, wall = time.process_time(), time.perf_counter()
    result = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    gc.enable()
    del result  # freed after the clock stopped
    return wall, cpu


# --- where and with what --------------------------------------------------------------------------


def describe_machine() -> dict[str, Any]:
    """Return what a reader needs to judge times: processor, CPUs, memory, system."""
    return {
        "processor": _processor_name(),
        "cpus": available_cpus(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "instruction_set": _native.isa(),
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
    """Write `<name>.json` and `<name>.md`; `<name>-quick...` or `<name>-full...` for such a run."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = report.settings
    report = replace(report, sources=hash_sources(entry_of(report.name)))
    stem = report.name + ("-quick" if settings.quick else "-full" if settings.full else "")
    data, page = folder / f"{stem}.json", folder / f"{stem}.md"
    text = json.dumps(asdict(report), indent=2, ensure_ascii=False)
    if settings.full:  # thousands of cells: six digits, and no space for the eye
        rounded = json.loads(text, parse_float=lambda digits: round(float(digits), 6))
        text = json.dumps(rounded, ensure_ascii=False)
    data.write_text(text + "\n", encoding="utf-8")
    page.write_text(render_markdown(report), encoding="utf-8")
    return data, page


def render_markdown(report: Report) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {report.title}", report.note, _render_setting(report)]
    parts += [_render_table(table) for table in report.tables]
    if report.skipped:
        parts.append("Skipped:\n\n" + "\n".join(f"- {reason}" for reason in report.skipped))
    if report.goals:
        parts.append(_render_table(tabulate_goals(report.goals)))
    return "\n\n".join(parts) + "\n"


def _render_setting(report: Report) -> str:
    machine, settings = report.machine, report.settings
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    lines = [
        f"- Machine: {machine['processor']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB, "
        f"{machine['system']}; instruction set {machine['instruction_set']}.",
        f"- Versions: Python {machine['python']}, {versions}.",
        f"- Seed {settings.seed}; fastest of at most {settings.n_rounds} interleaved rounds, "
        f"{settings.budget_s:g} s for each contender.",
        f"- Command: `{settings.command}`",
    ]
    if report.sources:
        lines.append(f"- Made from sources {report.sources}: `make stale` says if they changed.")
    return "\n".join(lines)


def _render_table(table: Table) -> str:
    note = f"\n\n{table.note}" if table.note else ""
    return f"## {table.title}\n\n" + render_lines(table.header, table.lines, table.n_words) + note


def render_lines(header: Sequence[str], lines: Iterable[Sequence[str]], n_words: int = 1) -> str:
    """Return a Markdown table; the first `n_words` columns are words, the others numbers."""
    rule = [":--" if k < n_words else "--:" for k in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *lines))


def tabulate_goals(goals: Sequence[Goal]) -> Table:
    """Return the goals as a table."""
    return Table(
        "Goals",
        ("goal", "wanted", "measured", "met"),
        tuple((g.sentence, g.wanted, g.measured, "yes" if g.met else "**no**") for g in goals),
    )
