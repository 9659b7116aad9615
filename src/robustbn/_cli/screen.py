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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click

from robustbn._cli.options import say, with_options
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

FAIL_OVER = 1  # more rows are distrusted than --fail-over allows
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
    """What the caller wants to see, and what there was to warn of.

    Parameters
    ----------
    is_json : whether the result is JSON.
    is_quiet : whether only errors, and JSON if asked for, are shown.
    warned : warnings so far.
    """

    is_json: bool = False
    is_quiet: bool = False
    warned: list[str] = field(default_factory=list)

    def show(self, facts: Mapping[str, Any], show: Callable[[Console, Any], None]) -> None:
        """Print a result: as JSON, or in the words of `show`."""
        if self.is_json:
            click.echo(json.dumps(as_json(facts), indent=2, ensure_ascii=True, allow_nan=False))
        elif not self.is_quiet:
            show(self.console(sys.stdout), facts)

    def note(self, text: str) -> None:
        """Say something on standard error that is not a result."""
        if not self.is_quiet:
            self.console(sys.stderr).print(plain(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Warn on standard error, and keep it for the result."""
        text = plain(text)
        self.warned.append(text)
        if not self.is_quiet:
            from rich.text import Text

            line = Text.assemble(("Warning: ", "yellow"), text)
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
    def catching_warnings(self) -> Iterator[None]:
        """Show the warnings that arise in here as messages."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(
            say(w.message) for w in caught if issubclass(w.category, UserWarning)
        ):
            if text not in self.warned:
                self.warn(text)

    @contextmanager
    def steps(self) -> Iterator[Steps]:
        """Show what is being done, and for how long, while it is done; on a terminal only."""
        if self.is_quiet or not sys.stderr.isatty():
            yield Steps(None)
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=self.console(sys.stderr),
            transient=True,
        ) as progress:
            yield Steps(progress)


class Steps:
    """One line a step, gone when all is done; times of the steps stay.

    Parameters
    ----------
    progress : a `rich.progress.Progress`, or None to show nothing.

    Attributes
    ----------
    seconds : how long each step took, by its name.
    """

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task: Any = None
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, text: str) -> Iterator[None]:
        """Do one step."""
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
        click.option("--quiet", "is_quiet", is_flag=True, help="Say nothing but errors."),
    )(run)


def print_facts(console: Console, facts: Mapping[str, str | None], least_width: int = 10) -> None:
    """Print lines `name  text`, the texts one below the other; None is left out."""
    from rich.text import Text

    width = max(least_width, *(len(name) for name in facts)) + 2 if facts else 0
    for name, text in facts.items():
        for k, line in enumerate([] if text is None else str(text).split("\n")):
            head = f"{'' if k else plain(name):<{width}}"
            console.print(Text.assemble((head, "bold"), plain(line)), soft_wrap=True)


def say_kept(value: Any) -> str:
    """Return what a row holds in a column that it keeps; nothing where it is missing."""
    return "" if value is None else str(value)


def names_before_row(columns: Iterable[str]) -> list[str]:
    """Return the columns that rows keep, which stand before their number."""
    return list(takewhile(lambda name: name != "row", columns))


# --- how a command ends ---------------------------------------------------------------------------


class CannotWriteError(RobustBNError, OSError):
    """An output could not be written, although it could when the command began."""


def report_error(error: BaseException) -> int:
    """Say what went wrong on standard error; return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        say_error("No output was left half-written.", "Stopped")
        return STOPPED + next((n for n in error.args if isinstance(n, int)), signal.SIGINT)
    if isinstance(error, CannotWriteError):
        say_error(str(error))
        return MACHINE
    for kind, code in CODES:
        if isinstance(error, kind):
            say_error(say(error) or kind.__name__)
            return code
    traceback.print_exception(error)
    say_error("This is a mistake in robustbn, not in your files. Please report the lines above.")
    return BUG


def fails_over(share: float, limit: float | None) -> int:
    """Return the exit code of a share of distrusted rows: 0 unless it is over --fail-over."""
    if limit is None or 100 * share <= limit:
        return 0
    say_error(
        f"{100 * share:.2f} % of the rows are distrusted, more than the {limit:g} % of --fail-over."
    )
    return FAIL_OVER


def leave_pipe() -> int:
    """Write what is left to nowhere, since nobody reads it any more; return the exit code."""
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
