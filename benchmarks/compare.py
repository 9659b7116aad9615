"""`python -m benchmarks compare --base REF`: say whether the working tree is slower than that.

Both are copied to a temporary folder, built, and timed in turns in one run, one thread each, on
rows that both are given. It ends with exit code 1 when any case has become slower by more than
15 % and by more than 50 ms, medians compared; a case that only the base can run counts as well.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.cells import ROOT
from benchmarks.measure import render_lines, say

MOST_TIMES, MOST_SECONDS = 1.15, 0.05
SCRIPT = Path(__file__).with_name("timed_cases.py")


@dataclass(frozen=True)
class Pair:
    """Seconds of every round of one case; empty where it could not be run."""

    base_s: tuple[float, ...]
    head_s: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float] | None:
        """Median seconds of base and head; None unless both could be run."""
        if not (self.base_s and self.head_s):
            return None
        return statistics.median(self.base_s), statistics.median(self.head_s)

    @property
    def is_worse(self) -> bool:
        """Whether the head is slower than allowed, or cannot do what the base can."""
        if self.medians is None:
            return bool(self.base_s)
        return is_slower(*self.medians)


def is_slower(base_s: float, head_s: float) -> bool:
    """Whether the head takes more than 15 % and more than 50 ms longer."""
    return head_s > MOST_TIMES * base_s and head_s - base_s > MOST_SECONDS


def main(arguments: list[str]) -> None:
    """Build both versions, time them in turns, print a table; exit 1 if the head is slower."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks compare", description=__doc__)
    parser.add_argument("--base", required=True, help="git reference to compare with")
    parser.add_argument("--rounds", type=int, default=7, help="of each case, in each version")
    parser.add_argument("--small", action="store_true", help="few rows: to try the command itself")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        folder = Path(name)
        copy_reference(chosen.base, folder / "base" / "source")
        copy_working_tree(folder / "head" / "source")
        for version in ("base", "head"):
            say(f"compare: building {version}")
            build(folder / version / "source", folder / version / "site")
        pairs = race(folder, chosen.rounds, 20_000 if chosen.small else 500_000)
    print(tabulate(pairs))
    worse = [case for case, pair in pairs.items() if pair.is_worse]
    if worse:
        sys.exit(f"Slower than {chosen.base} by more than 15 % and 50 ms: {', '.join(worse)}.")
    say(f"Nothing is slower than {chosen.base} by more than 15 % and 50 ms.")


# --- the two versions -----------------------------------------------------------------------------


def copy_reference(reference: str, target: Path) -> None:
    """Write the files of a git reference to a folder; the repository is left as it is."""
    target.mkdir(parents=True)
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", reference]
    found = subprocess.run(command, capture_output=True, check=False)
    if found.returncode:
        sys.exit(f"git knows no reference {reference!r}: {found.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(target, filter="data")


def copy_working_tree(target: Path) -> None:
    """Copy the files of the working tree, changed and new ones too, but none that git ignores."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others"]
    listed = subprocess.run([*command, "--exclude-standard"], capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def build(source: Path, site: Path) -> None:
    """Install a source folder, without its dependencies, to a folder of its own."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--disable-pip-version-check", "--target", str(site), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{source.parent.name} could not be built:\n{done.stdout}{done.stderr}")


# --- the race -------------------------------------------------------------------------------------


def race(folder: Path, n_rounds: int, n_rows: int) -> dict[str, Pair]:
    """Return the times of each case; the versions take turns, and who begins changes."""
    rows = folder / "rows"
    rows.mkdir()
    drawn = _run_script(folder / "head" / "site", "draw", str(rows), str(n_rows))
    drawn.communicate()
    if drawn.returncode:
        sys.exit("The rows for the timings could not be drawn; see above.")
    runners = {v: _run_script(folder / v / "site", "time", str(rows)) for v in ("base", "head")}
    try:
        cases = {v: _ask(r, "cases")["cases"] for v, r in runners.items()}
        times: dict[tuple[str, str], list[float]] = {}
        for k in range(n_rounds + 1):
            for case in cases["head"] + [c for c in cases["base"] if c not in cases["head"]]:
                for version in ("base", "head") if k % 2 else ("head", "base"):
                    if case not in cases[version]:
                        continue
                    seconds = _ask(runners[version], case).get("seconds")
                    if k and seconds is not None:  # the first round warms up
                        times.setdefault((version, case), []).append(seconds)
            say(f"compare: round {k} of {n_rounds}" + ("" if k else " (not counted)"))
    finally:
        for runner in runners.values():
            runner.kill()
            runner.communicate()
    names = dict.fromkeys(case for _, case in times)
    return {
        c: Pair(tuple(times.get(("base", c), ())), tuple(times.get(("head", c), ()))) for c in names
    }


def _run_script(site: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(SCRIPT), str(site), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


def _ask(runner: subprocess.Popen[str], question: str) -> dict[str, Any]:
    sender, receiver = _streams(runner)
    sender.write(question + "\n")
    sender.flush()
    answer = receiver.readline()
    if not answer:
        sys.exit("A process that was timed ended by itself; see above.")
    found: dict[str, Any] = json.loads(answer)
    return found


def _streams(runner: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert runner.stdin is not None
    assert runner.stdout is not None
    return runner.stdin, runner.stdout


def tabulate(pairs: Mapping[str, Pair]) -> str:
    """Return the table that is printed."""
    lines = []
    for case, pair in pairs.items():
        if pair.medians is None:
            shown = ("–", "–", "–", "only in the base" if pair.base_s else "new")
        else:
            base, head = pair.medians
            verdict = "SLOWER" if pair.is_worse else "ok"
            shown = (f"{base * 1e3:.1f}", f"{head * 1e3:.1f}", f"{head / base:.2f}", verdict)
        lines.append((case, *shown))
    return render_lines(("case", "base, ms", "head, ms", "head / base", "verdict"), lines)
