"""`python -m benchmarks page`: docs/proof.md, from the files in `results`; no number is typed.

A section shows the most thorough result that the present code has made (`NAME-full.json`, then
`NAME.json`, then `NAME-quick.json`). If other code made all of them, or there is none, it says so.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.figures import draw_growth, draw_paper
from benchmarks.measure import RESULTS, Table, render_lines, say
from benchmarks.sources import ROOT, describe_sources, entry_of, find_hash, hash_sources

PAGE = ROOT / "docs" / "proof.md"
MOST_LINES = 20  # of a table on the page; the report beside the numbers has all
PAPER = "proof-paper"
DRAWN = {PAPER: draw_paper, "growth": draw_growth}


@dataclass(frozen=True)
class Section:
    """One section of the page.

    Parameters
    ----------
    result : the name of its files in `results`.
    short, full : what `make bench` and `make bench-full` run, as `python -m benchmarks` takes it.
    minutes : that the short form takes on two quiet cores, about.
    n_tables : of the report, that the page shows: the first ones.
    """

    result: str
    title: str
    short: str
    full: str
    minutes: float
    n_tables: int = 3

    @property
    def command(self) -> str:
        """What makes the result."""
        return f"python -m benchmarks {self.short}"


SECTIONS = (
    Section(PAPER, "The paper's own experiments", "paper", "paper --full", 0.8),
    Section("proof-gallery", "Exact networks: every adversary, every method", "gallery",
            "gallery --full", 2.5, 4),
    Section("learned_adversary", "The learned adversary", "learned_adversary",
            "learned_adversary --full", 0.2),
    Section("proof-real", "Published networks", "published", "published --full", 1.3),
    Section("dirt", "Dirty tables: what is wrong is known", "dirt", "dirt --full", 0.6, 6),
    Section("real", "Real tables with planted rows", "real", "real --full", 0.7),
    Section("judging", "The judge, on packages that were left out", "judging", "judging --full",
            0.7),
    Section("repair", "Repair, beside published figures and a cleaning system", "repair",
            "repair --full", 1),
    Section("cells", "Wrong cells in real tables", "cells --tables 3", "cells", 0.7),
    Section("mistakes", "Everyday mistakes", "mistakes", "mistakes --full", 7.5),
    Section("untouched", "Public tables as they are", "untouched", "untouched --full", 0.3),
    Section("misfit", "Networks that are wrong in a known way", "misfit", "misfit --full", 0.6),
    Section("causes", "What is wrong with the rows, by name", "causes", "causes --full", 0.8),
    Section("holes", "Missing values, beside pyAgrum's EM", "holes", "holes --full", 1.1),
    Section("posteriors", "Intervals and experts", "posteriors", "posteriors --full", 0.2),
    Section("calibration", "What a fit says of itself", "calibration", "calibration --full", 0.3),
    Section("gate", "The gate's false alarms", "gate", "gate", 0.3),
    Section("draft", "Drafts, beside pgmpy and pyAgrum", "draft", "draft --full", 0.8),
    Section("proof-peers", "Speed: all methods on the same rows", "peers", "peers --full", 0.5),
    Section("counting", "Speed: counting, beside its peers", "counting --rounds 5 --budget 3",
            "counting", 1),
    Section("robust_time", "Speed: a robust fit, beside counting",
            "robust_time --rounds 3 --budget 5", "robust_time --full", 0.6),
    Section("stream", "Speed: a table that is read in chunks",
            "stream --rows 5000000 --rounds 1", "stream", 0.5),
    Section("growth", "Growth with rows, nodes, configurations",
            "growth --rounds 1", "growth --full", 0.6, 6),
    Section("threads", "Threads", "threads --rounds 5 --budget 2", "threads --full", 0.4),
    Section("profile", "Where the time of a fit goes", "profile --rounds 2", "profile --full",
            0.2, 2),
    Section("report_page", "The report: size, time until it can be used",
            "report_page --rounds 3", "report_page", 0.5),
)  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """A section with what is known of it: its result, its file, and whether it is current."""

    section: Section
    content: dict[str, Any]
    path: Path | None = None
    is_current: bool = False

    @property
    def state(self) -> str:
        """How far the result can be relied on."""
        if self.path is None:
            return "**not measured**"
        return "current" if self.is_current else "**stale**"

    @property
    def missed(self) -> list[dict[str, str]]:
        """The goals that were not met."""
        return [goal for goal in self.content.get("goals", ()) if not goal["met"]]


def find_result(section: Section, folder: Path, root: Path = ROOT) -> Stored:
    """Return the most thorough current result of a section, or the most thorough stale one."""
    there = [
        path
        for suffix in ("-full", "", "-quick")
        if (path := folder / f"{section.result}{suffix}.json").exists()
    ]
    now = _hash_now(entry_of(section.result), root) if there else ""
    current = [path for path in there if find_hash(path.read_bytes()) == now]
    if not there:
        return Stored(section, {})
    path = (current or there)[0]
    content = json.loads(path.read_text(encoding="utf-8"))
    return Stored(section, content, path, path in current)


@cache
def _hash_now(entry: str, root: Path) -> str:
    try:
        return hash_sources(entry, root)
    except FileNotFoundError:
        return "there is no such benchmark"


# --- the page -------------------------------------------------------------------------------------


def render(folder: Path, target: Path, root: Path = ROOT) -> str:
    """Return the page as Markdown; links are relative to the folder of the target."""
    found = [find_result(section, folder, root) for section in SECTIONS]
    parts = [*_render_head(found)]
    for stored in found:
        parts += _render_section(stored, target.parent)
    return "\n\n".join(parts) + "\n"


def _render_head(found: list[Stored]) -> Iterator[str]:
    n_old = sum(not stored.is_current for stored in found)
    yield "# Proof: what robustbn loses, what it brings, what it costs"
    yield (
        "Written by `python -m benchmarks page` from `benchmarks/results`; do not edit. `make "
        "bench` measures a short form of every section on your machine (25 minutes on two cores), "
        "`make bench-full` all of it (hours), and `make stale` lists what other code has made. "
        "Each section names its command, a hash of the sources it depends on, and the machine. "
        "What is lost comes first: below, and in each section."
    )
    if n_old:
        yield (
            f"**{n_old} of {len(found)} sections were made by other code than the present one, or "
            "were not measured**; each says so."
        )
    yield "## Goals that are missed"
    missed = [(s, goal) for s in found for goal in s.missed]
    n_goals = sum(len(stored.content.get("goals", ())) for stored in found)
    if missed:
        yield f"{len(missed)} of {n_goals}."
        yield from _render_lines(
            ("section", "goal", "wanted", "measured"),
            [(s.section.title, g["sentence"], g["wanted"], g["measured"]) for s, g in missed],
            2,
        )
    else:
        yield f"None of {n_goals}."
    yield "## Sections"
    header = ("section", "state", "goals missed", "made by")
    lines = []
    for s in found:
        goals = s.content.get("goals", ())
        shown = f"{len(s.missed)} of {len(goals)}" if goals else "–"
        lines.append((s.section.title, s.state, shown, f"`{_command_of(s)}`"))
    yield render_lines(header, lines, 4)


def _command_of(stored: Stored) -> str:
    settings = stored.content.get("settings", stored.content)
    return str(settings.get("command") or stored.section.command)


def _render_section(stored: Stored, folder: Path) -> Iterator[str]:
    yield f"## {stored.section.title}"
    if stored.path is None:
        yield f"**Not measured.** `{stored.section.command}` measures it."
        return
    yield _render_origin(stored)
    if "tables" not in stored.content:
        written = stored.path.with_suffix(".md")
        where = f"are in {_link(written, folder)}" if written.exists() else "were not kept"
        yield f"Its tables {where}: it was made before pages were assembled from them."
        return
    yield stored.content["note"]
    if (figure := stored.path.with_suffix(".svg")).exists():
        yield f"![{stored.section.title}]({_relative(figure, folder)})"
    if stored.missed:
        yield "**Missed goals**"
        lines = [(g["sentence"], g["wanted"], g["measured"]) for g in stored.missed]
        yield from _render_lines(("goal", "wanted", "measured"), lines, 1)
    tables = [Table(**table) for table in stored.content["tables"]]
    for table in tables[: stored.section.n_tables]:
        yield f"**{table.title}**"
        yield from _render_lines(table.header, table.lines, table.n_words)
        if table.note:
            yield table.note
    if stored.content["skipped"]:
        yield "Not measured: " + "; ".join(stored.content["skipped"]) + "."
    if len(tables) > stored.section.n_tables:
        yield f"More tables: {_link(stored.path.with_suffix('.md'), folder)}."


def _render_origin(stored: Stored) -> str:
    made, path = stored.content, stored.path
    assert path is not None
    words = [f"`{_command_of(stored)}`"]
    if machine := made.get("machine"):
        words.append(
            f"{machine['processor']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB, "
            f"{machine['system']}, Python {machine['python']}"
        )
    if versions := made.get("versions"):
        words.append(", ".join(f"{name} {version}" for name, version in versions.items()))
    if made.get("settings", {}).get("quick"):
        words.append("quick: fewer rows, no goals")
    words.append(f"{describe_sources(made)} of `benchmarks/results/{path.name}`")
    stale = "" if stored.is_current else "**Stale: other code than the present one made this.** "
    return f"{stale}<sub>{'; '.join(words)}.</sub>"


def _render_lines(header: Any, lines: Any, n_words: int) -> Iterator[str]:
    if not lines:
        yield "None."
        return
    yield render_lines(header, lines[:MOST_LINES], n_words)
    if len(lines) > MOST_LINES:
        yield f"… and {len(lines) - MOST_LINES} more."


def draw(folder: Path) -> None:
    """Draw the figures beside their numbers, if they are there."""
    for stored in (find_result(s, folder) for s in SECTIONS if s.result in DRAWN):
        if stored.path is None:
            continue
        try:
            path = stored.path.with_suffix(".svg")
            made = describe_sources(stored.content)
            DRAWN[stored.section.result](stored.content["records"], path, made)
        except ImportError as missing:
            say(f"no figure: {missing}")


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _link(path: Path, folder: Path) -> str:
    return f"[{path.name}]({_relative(path, folder)})"


def main(arguments: list[str]) -> None:
    """Write the page and its figure anew from the results in the folder; nothing is measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks page", description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page goes")
    chosen = parser.parse_args(arguments)
    draw(chosen.output)
    chosen.page.write_text(render(chosen.output, chosen.page), encoding="utf-8")
    say(f"wrote {chosen.page}")
