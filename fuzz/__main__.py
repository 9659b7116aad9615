"""`python -m fuzz [SECONDS] [SEED]`: change files at random until the time is over.

Prints every case that is neither refused by one of our errors nor read, with the seed that makes it
again, and ends with 1 if there was any. A case that ends the process is the next after the last
line on standard error.
"""

from __future__ import annotations

import sys
import time

from fuzz import models, readers

BATCH = 200


def main() -> int:
    """Run batches of changed files and models until the time is over."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end, n_wrong, seed = time.monotonic() + seconds, 0, first
    while time.monotonic() < end:
        print(f"seed {seed}", file=sys.stderr)
        n_wrong += readers.run(BATCH, seed) + models.run(BATCH, seed)
        seed += 1
    n = 2 * BATCH * (seed - first)
    print(f"{n:,} changed files, {n_wrong} of them neither refused nor read.")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
