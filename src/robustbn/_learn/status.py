"""Why a robust fit ended, in the sentence that the user reads."""

from __future__ import annotations

from robustbn._core.config import CEILING, RobustConfig
from robustbn._core.result import Misfit, Repetition


def describe_status(
    removed: float,
    config: RobustConfig,
    top: float,
    threshold: float,
    stopped: str,
    misfit: Misfit | None = None,
) -> tuple[bool, str]:
    """Return whether the trusted rows look clean, and the sentence that says so.

    Parameters
    ----------
    removed : share of the rows' weight that is distrusted, repeated rows included.
    top, threshold : largest eigenvalue left, and what good rows have at most.
    stopped : why no more was filtered.
    misfit : how well the network fits, if that was asked.
    """
    if misfit is not None and not misfit.is_exact:
        if not stopped:
            return True, say_misfit(removed, misfit)
        return False, (
            f"{removed:.2%} of the rows' weight is distrusted; no more was taken away {stopped}. "
            "Raise contamination, or leave it at 'auto'."
        )
    values = f"top eigenvalue {top:.3f}, good rows have up to {threshold:.3f}"
    can_be_raised = config.ceiling < CEILING
    if top > threshold:
        raised = "more rows are bad than contamination allows (raise it)"
        beyond = "more rows are bad than can be told from a majority"
        return False, (
            f"{removed:.2%} of the rows' weight is distrusted, but the trusted rows still vary "
            f"more than good rows do ({values}); no more was taken away {stopped}. Either "
            f"{raised if can_be_raised else beyond}, or the network does not describe the good "
            "rows: an edge that is missing looks like bad rows."
        )
    if removed > config.ceiling:
        raised = "Raise contamination, or look" if can_be_raised else "Look"
        return False, (
            f"{removed:.2%} of the rows' weight is distrusted, more than the {config.ceiling:.0%} "
            f"that {'contamination leads' if can_be_raised else 'a majority of good rows leaves'} "
            f"to expect. {raised} at repeated rows and kinds: rows that good data repeats may be "
            "missing from the network's point of view."
        )
    if removed < 1e-6:
        return True, f"The rows look clean ({values}): every row is trusted."
    return True, (
        f"{removed:.2%} of the rows' weight is distrusted; the trusted rows look clean ({values})."
    )


def say_repetition(repetition: Repetition | None, n_rows: float, n_distrusted: int) -> str:
    """Say how rows are repeated and what was made of it; empty if there is nothing to say.

    Parameters
    ----------
    n_distrusted : different rows that are distrusted for their copies.
    """
    if repetition is None:
        return ""
    text, uneven = "", repetition.uneven
    if repetition.is_design:
        how = f"{repetition.share:.0%} of those that should appear once appear again"
        if repetition.divisor > 1:
            how = f"each appears {repetition.divisor} times, or a multiple of that"
        text = f" Rows are repeated by design ({how}): copies are counted as they are."
    if uneven is not None:
        text += (
            f" Rows with {uneven.node} = {uneven.state} appear {uneven.times:.1f} times on average "
            f"where others appear {uneven.elsewhere:.1f} times"
        )
        if repetition.is_counted:
            text += ": what is learned is the table with its copies, not what it was before."
        else:
            text += ", and copies are distrusted." if n_distrusted else "."
            text += " If they were made on purpose, set copies to 'count'."
    if repetition.effect > 1:
        text += (
            f" {n_rows:,.0f} rows say as much as {n_rows / repetition.effect:,.0f} different ones."
        )
    return text


def say_misfit(removed: float, misfit: Misfit) -> str:
    """Say what was found among rows that the network does not describe."""
    found = (
        f"{removed:.2%} of the rows' weight is distrusted: these rows stand out from the variety "
        "that the others show."
        if removed >= 1e-6
        else "No row stands out: every row is trusted."
    )
    many = "es" if misfit.n_classes > 1 else ""
    reasons = []
    if misfit.top > misfit.limit:
        reasons.append(
            f"top eigenvalue {misfit.top:.3f}, rows drawn from it have up to {misfit.limit:.3f}"
        )
    if misfit.n_classes:
        reasons.append(
            f"{misfit.n_classes} more class{many} of good rows explain {misfit.nats:.2f} nats a row"
        )
    return (
        f"{found} The network does not describe the trusted rows ({'; '.join(reasons)}): an edge "
        "is missing, or there is a hidden group. That speaks of the network rather than of bad "
        "rows; bad rows that make a group of their own would look the same."
    )
