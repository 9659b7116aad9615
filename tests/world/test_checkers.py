"""What other tools say of the sources: types and layers hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_types_hold(checked_types):
    assert checked_types.returncode == 0, checked_types.stdout


def test_layers_hold():
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
