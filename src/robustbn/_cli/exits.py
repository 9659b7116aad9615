"""How a command ends: exit codes, and errors as one message in the words of the command line."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable

import click

from robustbn.exceptions import (
    DataError,
    InsufficientMemoryError,
    MissingDependencyError,
    ModelFileError,
    NetworkError,
    RobustBNError,
)

FAIL_OVER = 1  # more rows are distrusted than --fail-over allows
USAGE = 2
NETWORK = 3
DATA = 4
STATISTICS = 5  # with --strict: too few rows, or the trusted rows do not look clean
MACHINE = 6  # no memory, no library, no room on the disk
BUG = 70
STOPPED = 130

CODES: tuple[tuple[type[Exception], int], ...] = (
    (InsufficientMemoryError, MACHINE),
    (MissingDependencyError, MACHINE),
    (ModelFileError, NETWORK),
    (NetworkError, NETWORK),
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
        return STOPPED
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


# --- advice that was written for Python, as options -------------------------------------------


def say_as_options(text: str) -> str:
    """Return a message with the settings of `read_table` and `read_network` as our options."""
    for pattern, replacement in _ADVICE:
        text = re.sub(pattern, replacement, text)
    return text


def _rename(match: re.Match[str]) -> str:
    try:
        pairs = ast.literal_eval(match[1])
        return " ".join(f"--rename {shlex.quote(f'{old}={new}')}" for old, new in pairs.items())
    except (AttributeError, SyntaxError, ValueError):
        return "--rename COLUMN=NODE"


def _labels(match: re.Match[str]) -> str:
    try:
        ((node, pairs),) = ast.literal_eval(match[1]).items()
        said = ",".join(f"{value}={state}" for value, state in pairs.items())
        return f"--labels {shlex.quote(f'{node}:{said}')}"
    except (AttributeError, SyntaxError, TypeError, ValueError):
        node = re.match(r"\{'([^']*)'", match[1])
        return f"--labels {shlex.quote(f'{node[1] if node else chr(78)}:VALUE=STATE,...')}"


def _bins(match: re.Match[str]) -> str:
    node, cut = match[1], match[2].strip("'\"")
    return f"--bins {shlex.quote(f'{node}:' + ('EDGE,EDGE,...' if cut.startswith('[') else cut))}"


def _quoted(option: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{option} {shlex.quote(ast.literal_eval(match[1]))}"


_TEXT = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_ADVICE: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"rename=(\{[^{}]*\})", _rename),
    (r"labels=(\{'[^']*': \{[^{}]*\}\})", _labels),
    (r"bins=\{'([^']*)': ('[^']*'|\[[^\]]*\])\}", _bins),
    (rf"\bsep={_TEXT}", _quoted("--sep")),
    (rf"\bencoding={_TEXT}", _quoted("--encoding")),
    (rf"\bon_unknown={_TEXT}", _quoted("--unknown")),
    (rf"\bon_missing={_TEXT}", _quoted("--missing")),
    (r"\bsep=\.\.\.", "--sep"),
    (r"\bignore_case=True", "--ignore-case"),
    (r"\bcodes=True", "--codes"),
    (r"`?normalize=True`?", "--normalize"),
    (r"write_network\(\.\.\., numbered=True\)", "use robustbn convert --numbered"),
    (r"read_network\(\.\.\., states=\.\.\.\)", "--states"),
    (r"`?numbered=True`?", "--numbered"),
    (rf"\bmethod={_TEXT}", _quoted("--method")),
    (rf"\bschedule={_TEXT}", _quoted("--schedule")),
    (rf"\bmisfit={_TEXT}", _quoted("--misfit")),
    (r"`?\bmax_cells\b(?:=[\d_,]+)?`?", "--max-table"),
    (r"`?\bformat=`?", "--format"),
    (r'read_network\("edges\.csv", states="states\.json"\)', "--states states.json"),
    (r"`states=`", "--states"),
    (r"\bcontext=\[\.\.\.\]", "--context A,B"),
    (r"\bcontext=\(\)", "--context none"),
)
