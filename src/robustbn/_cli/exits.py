"""How a command ends: exit codes, and errors as one message in the words of the command line."""

from __future__ import annotations

import os
import signal
import sys
import traceback

import click

from robustbn._cli.wording import say_as_options
from robustbn.exceptions import (
    DataError,
    InsufficientMemoryError,
    MissingDependencyError,
    ModelFileError,
    NetworkError,
    RobustBNError,
    SettingError,
)

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
            say_error(say_as_options(str(error) or kind.__name__))
            return code
    traceback.print_exception(error)
    say_error("This is a mistake in robustbn, not in your files. Please report the lines above.")
    return BUG


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
    is_plain = bool(os.environ.get("NO_COLOR")) or "--no-color" in sys.argv
    head = f"{title}:" if is_plain else click.style(f"{title}:", fg="red", bold=True)
    shown = plain(text, keep="\n")
    click.echo(f"{head} {shown}", err=True)


def plain(text: object, keep: str = "") -> str:
    """Return text that a terminal shows and does not obey: no escapes, no change of direction."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        c if c.isprintable() or c in keep else " " if c in "\t\n" else "�" for c in shown
    )
