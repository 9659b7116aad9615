"""A call that takes long says so on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from contextlib import redirect_stderr

import pytest

import robustbn
from robustbn._show import progress
from tests.commands import COMMAND, call

SCRIPT = """
import time
from robustbn._show.progress import showing_progress
with showing_progress("Working", {verbose}):
    time.sleep({seconds})
print("done")
"""


def on_terminal(*command):
    """Run a command whose standard error is a terminal; return what it wrote there."""
    ours, theirs = pty.openpty()
    written = []

    def listen():
        try:
            while part := os.read(ours, 4096):
                written.append(part)
        except OSError:  # the other end is closed
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    settings = {"stderr": theirs, "stdout": subprocess.PIPE, "env": {**os.environ, "TERM": "xterm"}}
    done = subprocess.run(command, **settings, text=True, check=False)
    os.close(theirs)
    listener.join()
    os.close(ours)
    assert done.returncode == 0, b"".join(written)
    return b"".join(written).decode()


def worked(seconds, verbose=None):
    return on_terminal(sys.executable, "-c", SCRIPT.format(seconds=seconds, verbose=verbose))


def test_what_takes_over_two_seconds_shows_a_line_that_is_cleared_at_the_end():
    shown = worked(2.8)
    assert "\rWorking, 2 s" in shown
    assert shown.endswith("\r\x1b[K")


def test_what_is_short_and_what_is_not_to_be_told_shows_nothing():
    assert worked(0.1) == ""
    assert worked(2.8, verbose=False) == ""


class Terminal:
    """Standard error as a terminal has it."""

    def __init__(self):
        self.written = ""

    def isatty(self):
        return True

    def write(self, text):
        self.written += text

    def flush(self):
        pass


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """In this process every call is a long one."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.001)


def shown_by(call, *args, **settings):
    """Return what a call writes to a terminal."""
    with redirect_stderr(Terminal()) as terminal:
        call(*args, **settings)
    return terminal.written


@pytest.fixture(scope="module")
def drawn():
    network = robustbn.random_network("tree", 20, random_state=0)
    return network, robustbn.sample(network, 20_000, random_state=0)


def test_fits_drafts_updates_and_reports_show_what_they_do(drawn):
    network, rows = drawn
    shown = shown_by(robustbn.fit, network, rows, random_state=0)
    assert "Reading the table" in shown
    assert "Fitting: round 1, 0.0% of the rows distrusted" in shown
    fitted = robustbn.fit(network, rows, random_state=0)
    assert "Adding rows" in shown_by(fitted.update, rows)
    assert "Learning the tables again" in shown_by(fitted.decide)
    assert "Writing the report" in shown_by(fitted.report)
    counting = robustbn.MaximumLikelihoodEstimator(network)
    assert "Counting rows" in shown_by(counting.fit, rows)
    table = {"a": [0, 1] * 50, "b": [0, 1] * 49 + [1, 0]}
    assert "Drafting edges" in shown_by(robustbn.draft, table)


def test_a_fit_that_is_not_to_tell_or_that_tells_every_round_shows_no_line(drawn):
    assert shown_by(robustbn.fit, *drawn, random_state=0, verbose=False) == ""
    shown = shown_by(robustbn.fit, *drawn, random_state=0, verbose=True)
    assert "round 1: " in shown
    assert "\r" not in shown


def test_no_thread_and_no_lock_is_left_by_a_fit_that_fails(drawn):
    before = threading.active_count()
    with pytest.raises(robustbn.exceptions.DataError):
        shown_by(robustbn.fit, drawn[0], [[0, 1]])
    assert threading.active_count() == before
    assert not progress._held.locked()


def test_commands_show_their_steps_on_a_terminal_unless_they_are_to_be_quiet(tmp_path):
    file = str(tmp_path / "rows.csv")
    command = [str(COMMAND), "sample", "example:alarm", "-n", "2000", "-o", file]
    assert "drawing 2,000 rows" in on_terminal(*command)
    assert on_terminal(*command, "--force", "--quiet") == ""
    assert "drawing" not in call(*command[1:], "--force").stderr
