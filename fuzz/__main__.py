"""`python -m fuzz [SECONDS] [SEED] [TARGET]`: change what is read at random until the time is over.

Targets: files (tables and networks), models, and kernels (arguments of the compiled
passes); all by default. Prints every case that is neither refused by one of our errors nor right,
with the seed that makes it again, and ends with 1 if there was any. A case that ends the process is
the next after the last line on standard error.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable

from fuzz import models, readers
from robustbn._rows.kernels import has_native

BATCH = 200
TARGETS: dict[str, tuple[Callable[[int, int], int], int]] = {
    "files": (readers.run, BATCH),
    "models": (models.run, BATCH),
}
if has_native():
    from fuzz import kernels

    TARGETS["kernels"] = (kernels.run, 5 * BATCH)


def main() -> int:
    """Run batches of every target until the time is over."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    names = [sys.argv[3]] if len(sys.argv) > 3 else list(TARGETS)
    end, seed = time.monotonic() + seconds, first
    n_run, n_wrong = Counter[str](), Counter[str]()
    while time.monotonic() < end:
        for name in names:
            print(f"seed {seed} {name}", file=sys.stderr)
            run, n = TARGETS[name]
            n_wrong[name] += run(n, seed)
            n_run[name] += n
        seed += 1
    for name in names:
        print(f"{name}: {n_run[name]:,} changed, {n_wrong[name]} neither refused nor right.")
    return 1 if n_wrong.total() else 0


if __name__ == "__main__":
    sys.exit(main())
