"""Where a command speaks, and how it ends: results, messages, errors, exit codes.

Results go to standard output, all else to standard error.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.options import say, with_options
from robustbn._show.progress import hiding_progress
from robustbn.exceptions import (
    DataError,
    InsufficientMemoryError,
    MissingDependencyError,
    ModelFileError,
    NetworkError,
    RobustBNError,
    SettingError,
)

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_FILES = 100
MOST_FINDINGS, MOST_NOTES = 8, 3  # errors and warnings, and notes where there are fewer of these

FAIL_OVER = 1  # more rows are distrusted than --fail-over allows, or a finding of --fail-on
USAGE = 2
NETWORK = 3
DATA = 4
STATISTICS = 5  # with --strict: too few rows, or the trusted rows do not look clean
MACHINE = 6  # no memory, no library, no room on the disk
BUG = 70
STOPPED = 128  # and the number of the signal: 130 for Ctrl-C
NOBODY_READS = 141  # what a shell sees of other tools whose pipe is closed

CODES: tuple[tuple[type[Exception], int], ...] = (
    (InsufficientMemoryError, MACHINE),
    (MissingDependencyError, MACHINE),
    (ModelFileError, NETWORK),
    (NetworkError, NETWORK),
    (SettingError, USAGE),
    (DataError, DATA),
    (RobustBNError, DATA),
    (OSError, MACHINE),
    (MemoryError, MACHINE),
)


@dataclass
class Screen:
    """How a command prints: as JSON or text, quiet or not, with its warnings."""

    is_json: bool = False  # whether the result is JSON
    is_quiet: bool = False  # whether only errors, and JSON if asked for, are shown
    warned: list[str] = field(default_factory=list)  # warnings so far

    def show(self, facts: Mapping[str, Any], show: Callable[[Console, Any], None]) -> None:
        """Print a result: as JSON with the warnings, or as text by `show`."""
        if self.is_json:
            held = as_json({**facts, "warnings": self.warned})
            click.echo(json.dumps(held, indent=2, ensure_ascii=True, allow_nan=False))
        elif not self.is_quiet:
            show(self.console(sys.stdout), facts)

    def note(self, text: str, title: str = "") -> None:
        """Say something on standard error that is not a result."""
        if not self.is_quiet:
            from rich.text import Text

            line = Text.assemble((title, "yellow"), plain(text))
            self.console(sys.stderr).print(line, soft_wrap=True)

    def console(self, stream: Any) -> Console:
        """Return a place to print on: colours on a terminal only, no word taken for markup."""
        from rich.console import Console

        class PipedConsole(Console):
            def on_broken_pipe(self) -> None:
                raise BrokenPipeError  # which has an exit code of its own

        is_plain = bool(os.environ.get("NO_COLOR"))
        width = None if stream.isatty() or os.environ.get("COLUMNS") else WIDTH_OF_FILES
        return PipedConsole(
            file=stream,
            color_system=None if is_plain else "auto",
            markup=False,
            highlight=False,
            emoji=False,
            width=width,
        )

    @contextmanager
    def working(self) -> Iterator[Steps]:
        """Show progress while a command works, on a terminal only; then print the warnings."""
        with (
            warnings.catch_warnings(record=True) as caught,
            hiding_progress(),
            self._progress() as progress,
        ):
            warnings.simplefilter("always")
            yield Steps(progress)
        said = [say(each.message) for each in caught if issubclass(each.category, UserWarning)]
        for text in map(plain, dict.fromkeys(said)):
            if text not in self.warned:
                self.warned.append(text)
                self.note(text, "Warning: ")

    def _progress(self) -> Any:
        if self.is_quiet or not sys.stderr.isatty():
            return nullcontext()
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=self.console(sys.stderr),
            transient=True,
        )


class Steps:
    """One line per step on the terminal, removed at the end; the times of the steps are kept."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task: Any = None
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, text: str) -> Iterator[None]:
        start = time.perf_counter()
        if self._progress is not None:
            self._task = self._progress.add_task(plain(text), total=None)
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if self._progress is not None:
            self._progress.update(self._task, total=1, completed=1)

    def expect(self, total: int | None) -> None:
        """Say how much there is to do, once it is known."""
        if self._progress is not None:
            self._progress.update(self._task, total=total)

    def advance(self, n: int) -> None:
        """Say that n more of the total are done."""
        if self._progress is not None:
            self._progress.advance(self._task, n)

    def tell(self, text: str) -> None:
        """Change the text of the step."""
        if self._progress is not None:
            self._progress.update(self._task, description=plain(text))


def as_json(value: Any) -> Any:
    """Return plain values: what JSON cannot hold becomes null, or text."""
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def screen_options(function: Any) -> Any:
    """Give a command `--json` and `--quiet`; it gets them as `screen`."""

    def run(*args: Any, is_json: bool, is_quiet: bool, **options: Any) -> Any:
        return function(*args, screen=Screen(is_json, is_quiet), **options)

    run.__doc__ = function.__doc__
    run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    return with_options(
        click.option("--json", "is_json", is_flag=True, help="Print the result as JSON."),
        click.option("--quiet", "is_quiet", is_flag=True, help="Print only errors."),
    )(run)


def print_facts(console: Console, *blocks: Mapping[str, str | None]) -> None:
    """Print blocks of lines `name  text`, the texts one below the other; no text, no line."""
    from rich.text import Text

    for number, facts in enumerate(block for block in blocks if any(block.values())):
        if number:
            console.print()
        width = max([10, *map(len, facts)]) + 2
        for name, text in facts.items():
            for k, line in enumerate(str(text).split("\n") if text else []):
                head = f"{'' if k else plain(name):<{width}}"
                console.print(Text.assemble((head, "bold"), plain(line)), soft_wrap=True)


def print_table(
    console: Console, columns: Mapping[str, str], lines: Iterable[tuple[Sequence[str], bool]]
) -> None:
    """Print a table."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name, kind in columns.items():
        if kind == "wide":
            table.add_column(name, ratio=1)
        else:
            table.add_column(name, justify=kind, no_wrap=True)  # type: ignore[arg-type]
    for cells, is_pale in lines:
        table.add_row(*cells, style="dim" if is_pale else "")
    console.print(table)
    console.print()


def print_moved(console: Console, moved: Iterable[Mapping[str, Any]], **ends: str) -> None:
    """Print tables that moved, each with cell that moved most."""
    from robustbn._show.advice import say_state
    from robustbn._show.words import percent, shorten

    columns = {"table of": "left", "moved": "right", "error": "right"}
    columns |= {"cell that moved most": "wide", **dict.fromkeys(ends, "right")}
    lines = []
    for line in moved:
        cells = [shorten(plain(line["node"]), 24), percent(line["moved"]), percent(line["error"])]
        cells.append(shorten(plain(say_state(line["parents"], line["state"])), 60))
        cells += [f"{line[k]:.1f}" if k == "z" else percent(line[k]) for k in ends.values()]
        lines.append((cells, not line["is_significant"]))
    print_table(console, columns, lines)


def show_findings(console: Console, findings: list[dict[str, Any]], more: str = "--json") -> None:
    """Print findings, the most serious first, with advice; `more` says where the others are."""
    from rich.text import Text

    colours = {"error": "bold red", "warning": "yellow", "note": "dim"}
    notes = [each for each in findings if each["severity"] == "note"]
    shown = [each for each in findings if each["severity"] != "note"][:MOST_FINDINGS]
    hidden = len(findings) - len(notes) - len(shown)
    for each in [*shown, *notes[: max(MOST_NOTES - len(shown), 0)]]:
        head = f"{each['severity']:<9}"
        console.print(Text.assemble((head, colours[each["severity"]]), plain(each["sentence"])),
                      soft_wrap=True)  # fmt: skip
        if each["advice"]["command"]:
            console.print(Text(f"{'':9}{plain(each['advice']['command'])}", "dim"), soft_wrap=True)
    hidden += max(len(notes) - max(MOST_NOTES - len(shown), 0), 0)
    if hidden:
        console.print(f"{'':9}and {hidden:,} more: {plain(more)}", style="dim")
    if findings:
        console.print()


def names_before_row(columns: Iterable[str]) -> list[str]:
    """Return the columns that rows keep, which stand before their number."""
    return list(takewhile(lambda name: name != "row", columns))


def say_kept(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a row holds in the columns that it keeps; nothing where it is missing."""
    return [(n, "" if row[n] is None else str(row[n])) for n in names_before_row(row)]


# --- how a command ends ---------------------------------------------------------------------------


class CannotWriteError(RobustBNError, OSError):
    """An output could not be written, although it could when the command began."""


def report_error(error: BaseException) -> int:
    """Say what went wrong on standard error; return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        say_error("No partial output was left behind.", "Stopped")
        return STOPPED + next((n for n in error.args if isinstance(n, int)), signal.SIGINT)
    if isinstance(error, CannotWriteError):
        say_error(str(error))
        return MACHINE
    for kind, code in CODES:
        if isinstance(error, kind):
            say_error(say(error) or kind.__name__)
            return code
    traceback.print_exception(error)
    say_error(
        "This is a bug in robustbn, not a problem with your files. Please report the lines above."
    )
    return BUG


def fails_over(share: float, limit: float | None) -> int:
    """Return the exit code of a share of distrusted rows: 0 unless it is over --fail-over."""
    if limit is None or 100 * share <= limit:
        return 0
    say_error(
        f"{100 * share:.2f} % of the rows are distrusted, more than the {limit:g} % of --fail-over."
    )
    return FAIL_OVER


def fails_on(findings: Sequence[Mapping[str, Any]], severity: str | None) -> int:
    """Return the exit code of findings: 0 unless one is as serious as --fail-on says, or more."""
    failing = {"error": ("error",), "warning": ("error", "warning")}.get(severity or "", ())
    found = [each for each in findings if each["severity"] in failing]
    if not found:
        return 0
    say_error(f"{found[0]['sentence']} (--fail-on {severity})")
    return FAIL_OVER


def leave_pipe() -> int:
    """Discard the remaining output, because its reader has stopped; return the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if not stream.isatty():  # the pipe may be either, or both
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return NOBODY_READS


def say_error(text: str, title: str = "Error") -> None:
    """Print one message on standard error, in red where that is wanted."""
    is_plain = bool(os.environ.get("NO_COLOR"))
    head = f"{title}:" if is_plain else click.style(f"{title}:", fg="red", bold=True)
    click.echo(f"{head} {plain(text, keep=chr(10))}", err=True)


def plain(text: object, keep: str = "") -> str:
    """Return text that a terminal shows and does not obey: no escapes, no change of direction."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        c if c.isprintable() or c in keep else " " if c in "\t\n" else "�" for c in shown
    )
