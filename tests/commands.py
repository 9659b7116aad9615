"""The commands, called in this process or started in one of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from robustbn.cli import main

COMMAND = Path(sys.executable).parent / "robustbn"


def call(*args, code=0, env=None):
    """Run a command in this process; return what it said."""
    ran = CliRunner().invoke(main, [str(a) for a in args], env=env)
    assert ran.exit_code == code, (ran.exit_code, ran.output, ran.stderr)
    return ran


def as_json(*args, code=0):
    return json.loads(call(*args, "--json", code=code).stdout)


def start(*args, code=0, **settings):
    """Run a command in a process of its own."""
    ran = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, **settings)
    assert ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
    return ran
