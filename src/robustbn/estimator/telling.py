"""How a fit goes on, told on standard error."""

from __future__ import annotations

import sys

from robustbn._core.result import Round


def tell_part(what: str, done: int, total: int) -> None:
    """Tell how many of a table's parts are done."""
    if total > 1:
        print(f"{what}: {done} of {total} files", file=sys.stderr)


def tell_round(done: Round) -> None:
    """Tell what a round saw and did."""
    spectrum = ""
    if done.eigenvalues:
        spectrum = (
            f"top eigenvalue {done.eigenvalues[0]:.3f}, good rows up to {done.threshold:.3f}; "
        )
    undone = "" if done.is_accepted else ", undone: more would be in excess than before"
    print(
        f"round {done.number}: {done.action}{undone}; {spectrum}{done.removed:.2%} distrusted "
        f"({done.wall_s:.2f} s)",
        file=sys.stderr,
    )
