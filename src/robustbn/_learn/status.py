"""Why a robust fit ended, in the sentence that the user reads."""

from __future__ import annotations


def describe_status(
    removed: float, ceiling: float, top: float, threshold: float, stopped: str
) -> tuple[bool, str]:
    """Return whether the trusted rows look clean, and the sentence that says so."""
    values = f"top eigenvalue {top:.3f}, good rows have up to {threshold:.3f}"
    if top > threshold:
        return False, (
            f"Stopped {stopped} with {removed:.2%} of the rows' weight distrusted, but the trusted "
            f"rows still vary more than good rows do ({values}). Either more rows are bad than "
            "contamination allows (raise it), or the network does not describe the good rows: an "
            "edge that is missing looks like bad rows."
        )
    if removed > ceiling:
        return False, (
            f"{removed:.2%} of the rows' weight is distrusted, more than the {ceiling:.0%} that "
            "contamination leads to expect. Raise contamination, or look at repeats_ and kinds_: "
            "rows that good data repeats may be missing from the network's point of view."
        )
    if removed < 1e-6:
        return True, f"The rows look clean ({values}): every row is trusted."
    return True, (
        f"{removed:.2%} of the rows' weight is distrusted; the trusted rows look clean ({values})."
    )
