"""`make slowest`: the tests that took longest when they were last run.

`--write` keeps the names of those that `make quick` leaves out, in `tests/data/long.txt`: after a
`make test` on a quiet machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".pytest_cache/v/robustbn/seconds"  # by tests/conftest.py
LONG = ROOT / "tests/data/long.txt"
N_SHOWN = 20
MOST_SECONDS = 0.35  # of a test that is short


def main() -> int:
    """Print seconds and name of each; return 1 if no test was run yet."""
    if not KEPT.exists():
        print("No run is kept: make test.")
        return 1
    seconds = json.loads(KEPT.read_text(encoding="utf-8"))
    for name in sorted(seconds, key=seconds.get, reverse=True)[:N_SHOWN]:
        print(f"{seconds[name]:7.2f} s  {name}")
    print(f"{sum(seconds.values()):7.2f} s  {len(seconds)} tests")
    if "--write" in sys.argv[1:]:
        long = {name.partition("[")[0] for name, taken in seconds.items() if taken > MOST_SECONDS}
        shelves = ("tests/unit/", "tests/promises/")
        lines = sorted(name for name in long if name.startswith(shelves))
        LONG.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
