"""One line on a terminal that shows how a long call gets on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds until the line appears: a shorter wait needs no explanation
PERIOD = 0.5  # seconds between two updates: often enough to show that the call is alive
_held = threading.Lock()  # whoever holds it has the terminal: one line at a time


def is_shown(verbose: bool | int | None) -> bool:
    """Whether a call shows its progress: on a terminal, unless `verbose` says otherwise."""
    return verbose is None and sys.stderr.isatty()


@contextmanager
def showing_progress(
    text: str, verbose: bool | int | None = None
) -> Iterator[Callable[[str], None]]:
    """Show what is done, and for how long, after two seconds; yields what replaces the text."""
    if not is_shown(verbose) or not _held.acquire(blocking=False):
        yield lambda _: None
        return
    said, is_done, start = [text], threading.Event(), time.perf_counter()
    shown = threading.Thread(target=_show, args=(said, is_done, start), daemon=True)
    shown.start()
    try:
        yield lambda new: said.__setitem__(0, new)
    finally:
        is_done.set()
        shown.join()
        _held.release()


@contextmanager
def hiding_progress() -> Iterator[None]:
    """Show no line: the caller has one of its own."""
    is_ours = _held.acquire(blocking=False)
    try:
        yield
    finally:
        if is_ours:
            _held.release()


def _show(said: list[str], is_done: threading.Event, start: float) -> None:
    """Write the line again and again until the call is done, then clear it."""
    if is_done.wait(PATIENCE):
        return
    while True:
        seconds = time.perf_counter() - start
        sys.stderr.write(f"\r{said[0]}, {seconds:,.0f} s\x1b[K")
        sys.stderr.flush()
        if is_done.wait(PERIOD):
            break
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()
