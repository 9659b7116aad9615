"""Why a robust fit ended, in the sentence that the user reads."""

from __future__ import annotations

import numpy as np

from robustbn._core.cells import FoundCells
from robustbn._core.config import CEILING, RobustConfig
from robustbn._core.groups import WORTH_A_LOOK
from robustbn._core.numbers import count
from robustbn._core.protocols import Survey, Vector
from robustbn._core.result import Misfit, Repetition, Verdict
from robustbn._core.row_model import RowModel


def describe_status(removed: float, config: RobustConfig, verdict: Verdict) -> tuple[bool, str]:
    """Return whether the trusted rows look clean, and the sentence that says so."""
    is_clean, sentence = _describe(removed, config, verdict)
    return is_clean, sentence + say_doubtful(verdict.model, verdict.chances)


def say_doubtful(model: RowModel, chances: Vector) -> str:
    """Say which groups may be bad, and are not taken for it; empty if there are none."""
    is_doubtful = ~model.is_bad & (chances >= WORTH_A_LOOK)
    return "".join(
        f" Group {k + 1}, {model.shares[k]:.1%} of the rows, may be bad "
        f"(probability {chances[k]:.0%}); inspect it."
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
            f"{removed:.2%} of the rows' weight is distrusted; no more was removed {stopped}. "
            f"{more or 'A larger share cannot be told from a majority; inspect the groups.'}"
        )
    if misfit is not None and not is_exact:
        return True, say_misfit(removed, misfit)
    values = f"top eigenvalue {top:.3f}; at most {threshold:.3f} is expected for good rows"
    if top > threshold:
        raised = "more rows are bad than contamination allows (raise it)"
        beyond = "more rows are bad than can be told apart from a majority"
        return False, (
            f"{removed:.2%} of the rows' weight is distrusted, but the trusted rows still vary "
            f"more than good rows do ({values}); no more was removed {stopped}. Either "
            f"{raised if can_be_raised else beyond}, or the network does not describe the good "
            f"rows: a missing edge has the same effect as bad rows."
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
        f" About {share:.2%} of the cells are estimated to be wrong; {n_wrong:,.0f} probably are, "
        f"and are counted with their most likely true values."
    )


def say_repetition(repetition: Repetition | None, n_rows: float, n_distrusted: int) -> str:
    """Say how rows are repeated and what was made of it; empty if there is nothing to say."""
    if repetition is None:
        return ""
    text = f" {repetition.say()}".rstrip()
    if repetition.uneven is not None and repetition.is_counted:
        text += " The tables describe the rows with their copies, not those without them."
    elif repetition.uneven is not None:
        text += " Copies are distrusted." if n_distrusted else ""
        text += f" {repetition.advice}"
    if repetition.effect > 1:
        text += (
            f" {n_rows:,.0f} rows carry as much information as {n_rows / repetition.effect:,.0f} "
            f"distinct rows."
        )
    return text


def say_misfit(removed: float, misfit: Misfit) -> str:
    """Say what was found among rows that the network does not describe."""
    found = (
        f"{removed:.2%} of the rows' weight is distrusted: these rows differ from the others by "
        f"more than the others vary."
        if removed >= 1e-6
        else "No row stands out: every row is trusted."
    )
    reasons = []
    if misfit.top > misfit.limit:
        reasons.append(
            f"top eigenvalue {misfit.top:.3f}; at most {misfit.limit:.3f} is expected for rows "
            f"drawn from it"
        )
    if misfit.n_classes:
        reasons.append(
            f"{count(misfit.n_classes, 'additional class', 'additional classes')} of good rows "
            f"{'explains' if misfit.n_classes == 1 else 'explain'} {misfit.nats:.2f} nats per row"
        )
    return (
        f"{found} The network does not describe the trusted rows ({'; '.join(reasons)}): an edge "
        "is missing, or there is a hidden group. This points to the network, although a cluster "
        "of bad rows would look the same."
    )
