"""Why a robust fit ended, in the sentence that the user reads."""

from __future__ import annotations

import numpy as np

from robustbn._core.cells import FoundCells
from robustbn._core.config import CEILING, RobustConfig
from robustbn._core.protocols import Survey, Vector
from robustbn._core.result import Misfit, Repetition, Verdict
from robustbn._core.row_model import RowModel

WORTH_A_LOOK = 0.3  # probability of a group to be bad, from which it is named


def describe_status(removed: float, config: RobustConfig, verdict: Verdict) -> tuple[bool, str]:
    """Return whether the trusted rows look clean, and the sentence that says so.

    Parameters
    ----------
    removed : share of the rows' weight that is distrusted, repeated rows included.
    """
    is_clean, sentence = _describe(removed, config, verdict)
    return is_clean, sentence + say_doubtful(verdict.model, verdict.chances)


def say_doubtful(model: RowModel, chances: Vector) -> str:
    """Say which groups may be bad, and are not taken for it; empty if there are none."""
    is_doubtful = ~model.is_bad & (chances >= WORTH_A_LOOK)
    return "".join(
        f" Group {k + 1}, {model.shares[k]:.1%} of the rows, may be bad "
        f"(probability {chances[k]:.0%}): look at it."
        for k in np.flatnonzero(is_doubtful).tolist()
    )


def _describe(removed: float, config: RobustConfig, verdict: Verdict) -> tuple[bool, str]:
    misfit, stopped = verdict.misfit, verdict.stopped
    top, threshold = verdict.top, verdict.threshold
    can_be_raised = config.ceiling < CEILING
    is_exact = misfit is None or misfit.is_exact
    if stopped and (top <= threshold or not is_exact):
        more = "Raise contamination, or leave it at 'auto'." if can_be_raised else ""
        return False, (
            f"{removed:.2%} of the rows' weight is distrusted; no more was taken away {stopped}. "
            f"{more or 'More cannot be told from a majority: look at the groups.'}"
        )
    if misfit is not None and not is_exact:
        return True, say_misfit(removed, misfit)
    values = f"top eigenvalue {top:.3f}, good rows have up to {threshold:.3f}"
    if top > threshold:
        raised = "more rows are bad than contamination allows (raise it)"
        beyond = "more rows are bad than can be told from a majority"
        return False, (
            f"{removed:.2%} of the rows' weight is distrusted, but the trusted rows still vary "
            f"more than good rows do ({values}); no more was taken away {stopped}. Either "
            f"{raised if can_be_raised else beyond}, or the network does not describe the good "
            "rows: an edge that is missing looks like bad rows."
        )
    if removed < 1e-6:
        return True, f"The rows look clean ({values}): every row is trusted."
    return True, (
        f"{removed:.2%} of the rows' weight is distrusted; the trusted rows look clean ({values})."
    )


def say_cells(found: FoundCells | None, survey: Survey) -> str:
    """Say how many cells are wrong; empty if none are."""
    if found is None:
        return ""
    share = float(found.rates.mean())
    n_wrong = len(found.wrong) * survey.n_rows / max(len(survey.codes), 1)
    return (
        f" About {share:.2%} of the cells show another value than the true one; {n_wrong:,.0f} are "
        "likely to, and are counted by what they should be."
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
