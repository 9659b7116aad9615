"""`make slowest`: the twenty tests that took longest when they were last run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

KEPT = Path(__file__).parents[1] / ".pytest_cache/v/robustbn/seconds"  # by tests/conftest.py
N_SHOWN = 20


def main() -> int:
    """Print seconds and name of each; return 1 if no test was run yet."""
    if not KEPT.exists():
        print("No run is kept: make test.")
        return 1
    seconds = json.loads(KEPT.read_text(encoding="utf-8"))
    for name in sorted(seconds, key=seconds.get, reverse=True)[:N_SHOWN]:
        print(f"{seconds[name]:7.2f} s  {name}")
    print(f"{sum(seconds.values()):7.2f} s  {len(seconds)} tests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
