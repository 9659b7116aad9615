"""Rows whose side a person knows, and what follows for the rows that are like them.

A row that is known to be good is trusted, one that is known to be bad is not, whatever the model
says. Beyond that, components change sides: a kind of bad rows that holds known good ones is a class
of the good population, a class that holds known bad ones is a kind. Known bad rows that no kind
holds start one of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import WrongCells
from robustbn._core.config import CEILING
from robustbn._core.numbers import count
from robustbn._core.protocols import Judged, Rows, RowVector, Vector
from robustbn._core.result import Misfit, RobustFit, Verdict
from robustbn._core.row_model import SMALLEST_SHARE, RowModel
from robustbn._learn.groups import JOINT_STEPS, UNLIKELY, Starts, race
from robustbn._learn.study import Sample, Study
from robustbn._learn.ties import Families

LEAST_KNOWN = 0.9  # rows of a component that are known: one clear example is an answer
STRAY = 0.5  # times the main class's rate: known good rows rarer than this in a kind are strays
FAR = 5.0  # standard errors: more wrong cells in rows that are vouched for are no chance
LEAST_START = 3  # known bad rows that no kind holds: fewer start none


@dataclass(frozen=True, eq=False)
class Known:
    """What a person knows of some rows of a table."""

    # +1 for a row known to be good, -1 for one known to be bad, 0 for the others; shape (N,)
    sides: NDArray[np.int8]
    rows: Rows  # those that are known, in the order of the table

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        """Whether each known row is bad."""
        is_bad: NDArray[np.bool_] = self.sides[self.sides != 0] < 0
        return is_bad


def override_known(sides: NDArray[np.int8], trust: RowVector) -> RowVector:
    """Return the trust in rows, 1 or 0 where their side is known; shape (N,)."""
    return np.where(sides == 0, trust, sides > 0).astype(trust.dtype)


def contradicts_known(wrong: WrongCells, known: Known) -> bool:
    """Return whether rows that a person vouches for have far more wrong cells than others."""
    is_good = known.sides > 0
    n_good = int(is_good.sum())
    of_good = int(is_good[wrong.rows].sum())
    usual = (len(wrong) - of_good) / max(len(is_good) - n_good, 1) * n_good
    return bool(of_good > usual + FAR * np.sqrt(usual + 1))


def heed_known(study: Study, verdict: Verdict, known: Known) -> Verdict:
    """Return the verdict with the components on the sides that known rows put them."""
    sample = study.choose(study.config.sample_size(study.survey.rows.layout))
    model = _add_missed_group(sample, verdict.model, known)
    kept = find_sides(model, known)
    filters = () if _excuse_filters(model, known, sample) else model.filters
    is_same = model is verdict.model and (kept == model.kept).all()
    if is_same and len(filters) == len(model.filters):
        return verdict
    is_decided = kept != model.kept
    model = replace(model, kept=kept, filters=filters)
    counts = model.count(sample.rows, sample.base)[:, 1:] * study.weight_of(sample)
    misfit, n = verdict.misfit, study.survey.n_rows * study.unit
    if misfit is not None or not model.is_bad.all():
        base = Misfit(True, 0.0, 0, verdict.top, verdict.threshold) if misfit is None else misfit
        misfit = describe_classes(base, model, counts[:, ~model.is_bad], n)
    chances = np.append(verdict.chances, np.ones(model.n_others - len(verdict.chances)))
    chances = np.where(is_decided, 1 - kept, chances)
    verdict = replace(verdict, model=model, judged=(None, None), misfit=misfit)
    return replace(verdict, group_counts=counts, chances=chances)


def find_sides(model: RowModel, known: Known) -> Vector:
    """Return what rows of each component keep of their weight, as known rows say; shape (K,)."""
    # A component changes sides if a row that is known, at least, puts it there, more of them do
    # than do not, and they are not just strays: rows known to be good are about as frequent in it
    # as in the main class, or rows known to be bad are several times as frequent.
    if not model.n_others:
        return model.kept
    belongs = model.sort(known.rows)[0].astype(np.float64)
    shares = np.append(1 - model.shares.sum(), model.shares)
    good, bad = (belongs[side].sum(axis=0) for side in (~known.is_bad, known.is_bad))
    good_rate, bad_rate = good / shares, bad / shares
    to_good = (good[1:] >= LEAST_KNOWN) & (good > bad)[1:]
    to_good &= good_rate[1:] >= STRAY * good_rate[0]
    to_bad = (bad[1:] >= LEAST_KNOWN) & (bad > good)[1:]
    to_bad &= bad_rate[1:] >= bad_rate[0] / STRAY
    return np.where(to_good, 1.0, np.where(to_bad, 0.0, model.kept))


def _excuse_filters(model: RowModel, known: Known, sample: Sample) -> bool:
    """Whether rows known to be good are about as frequent among filtered rows as elsewhere."""
    if not model.filters:
        return False
    only = replace(RowModel.of_good_rows(model.good), filters=model.filters)
    taken = [1 - only.weigh(rows).astype(np.float64) for rows in (known.rows, sample.rows)]
    share = float(taken[1].mean())
    good, bad = (float(taken[0][side].sum()) for side in (~known.is_bad, known.is_bad))
    kept = float((1 - taken[0])[~known.is_bad].sum()) / max(1 - share, 1e-9)
    return good >= max(LEAST_KNOWN, bad) and good / max(share, 1e-9) >= STRAY * kept


def _add_missed_group(sample: Sample, model: RowModel, known: Known) -> RowModel:
    """Return the model with a kind for the known bad rows that none of its kinds holds, if any."""
    layout = sample.rows.layout
    belongs = model.sort(known.rows)[0] if model.n_others else np.ones((known.rows.n_rows, 1))
    held = belongs[:, 1:][:, model.is_bad].sum(axis=1)
    is_missed = known.is_bad & (held < 0.5)
    if is_missed.sum() < LEAST_START:
        return model
    families = Families(layout, sample.prior, sample.plain_counts)
    density = model.log_density(sample.rows)
    missed = known.rows.count(is_missed.astype(np.float64))
    start = families.tie(missed[:, None], model.good).tables[:, 0]
    tables = np.repeat(start[:, None], len(UNLIKELY), axis=1)
    starts = Starts.at(sample, density, tables, np.array(UNLIKELY))
    starts = race(sample, families, density, model.good, starts, JOINT_STEPS)
    for k in np.argsort(-starts.worth):
        share = float(starts.shares[k])
        if starts.worth[k] > 0 and share <= CEILING:
            more = replace(model, shares=model.shares * (1 - share))
            more = more.with_component(starts.tables[:, k], share)
            if more.sort(known.rows)[0][is_missed, -1].mean() > 0.5:
                return more
    return model


def describe_classes(misfit: Misfit, model: RowModel, counts: Vector, n_rows: float) -> Misfit:
    """Return how well a network fits rows of which these classes are good."""
    is_class = ~model.is_bad
    shares = np.clip(model.shares[is_class], SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    told = (counts * model.evidence[:, is_class]).sum(axis=0) / max(n_rows, 1.0)
    spent = -shares * np.log(shares) - (1 - shares) * np.log1p(-shares)
    return replace(
        misfit,
        is_exact=misfit.is_exact and not is_class.any(),
        nats=float(np.maximum(told - spent, 0).sum()),
        n_classes=int(is_class.sum()),
    )


# --- after a fit ----------------------------------------------------------------------------------


def decide_groups(model: RowModel, bad: Sequence[int], good: Sequence[int]) -> RowModel:
    """Return a model in which a person has decided which groups (columns) are bad, and good."""
    kept = model.kept.copy()
    kept[list(bad)], kept[list(good)] = 0.0, 1.0
    return replace(model, kept=kept)


def refit_decided(fit: RobustFit, model: RowModel, judged: Judged | None = None) -> RobustFit:
    """Return a fit whose groups a person has decided on. Nothing is learned again.

    judged : all rows, by that model; without them, the sums of groups join or leave those of the
        good rows.
    """
    change = model.kept - fit.model.kept
    if judged is not None:
        counts, n = judged.counts, judged.total
    else:
        counts = np.clip(fit.counts + fit.group_counts @ change, 0, fit.plain_counts)
        n = float(np.clip(fit.n_trusted + change @ model.shares * fit.n_rows, 0, fit.n_rows))
    last = fit.rounds[-1]
    before = fit.misfit or Misfit(True, 0.0, 0, last.eigenvalues[0], last.threshold)
    misfit = describe_classes(before, model, fit.group_counts[:, ~model.is_bad], fit.n_rows)
    removed = max(0.0, 1 - n / fit.n_rows)
    decided = count(int(np.count_nonzero(change)), "group")
    status = f"{removed:.2%} of the rows' weight is distrusted; you decided on {decided}."
    return replace(
        fit,
        counts=counts,
        weights=None if judged is None else judged.trust,
        n_trusted=n,
        model=model,
        chances=np.where(change != 0, 1 - model.kept, fit.chances),
        misfit=misfit,
        converged=True,
        status=status,
    )
