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

from robustbn._core.expansion import sum_over_rows
from robustbn._core.layout import Layout
from robustbn._core.protocols import Judged, Rows, RowVector, Vector
from robustbn._core.result import Misfit, RobustFit, Verdict
from robustbn._core.row_model import NO_REPEATS, SMALLEST_SHARE, RowModel
from robustbn._core.tuning import Tuning
from robustbn._learn.proposals import Sample
from robustbn._learn.status import say_misfit
from robustbn._learn.study import Study
from robustbn._learn.tied_kinds import race
from robustbn._learn.ties import Families

TRUSTED_UNHELD = (
    "Rows that are like no kind, and those that appear too often, are trusted because you said so."
)


@dataclass(frozen=True, eq=False)
class Known:
    """What a person knows of some rows of a table.

    Parameters
    ----------
    sides : +1 for a row known to be good, -1 for one known to be bad, 0 for the others; shape (N,).
    rows : those that are known, in the order of the table.
    """

    sides: NDArray[np.int8]
    rows: Rows

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        """Whether each known row is bad."""
        is_bad: NDArray[np.bool_] = self.sides[self.sides != 0] < 0
        return is_bad

    def override(self, trust: RowVector) -> RowVector:
        """Return the trust in all rows, 1 or 0 where it is known; shape (N,)."""
        return override_known(self.sides, trust)


def override_known(sides: NDArray[np.int8], trust: RowVector) -> RowVector:
    """Return the trust in rows, 1 or 0 where their side is known; shape (N,)."""
    return np.where(sides == 0, trust, sides > 0).astype(trust.dtype)


def heed_known(study: Study, verdict: Verdict, known: Known) -> Verdict:
    """Return the verdict with the components on the sides that known rows put them."""
    chosen = study.choose(study.config.tuning.tied_rows)
    sample = study.sample(chosen, study.unweighed())
    model = _add_missed_kind(sample, verdict.model, known)
    sides = find_sides(model, known, study.config.tuning)
    filters = () if _excuse_filters(model, known, sample) else model.filters
    is_same = model is verdict.model and (sides == model.is_bad).all()
    if is_same and len(filters) == len(model.filters):
        return verdict
    model = replace(model, is_bad=sides, filters=filters)
    counts = model.count(chosen.rows, sample.base)[:, 1:]
    scale = study.scale * study.effect_of(chosen)
    counts = counts * (study.unit * scale * (study.n_rows / chosen.rows.n_rows))
    misfit, n = verdict.misfit, study.survey.n_rows * study.unit
    if misfit is not None or not sides.all():
        base = Misfit(True, 0.0, 0, verdict.top, verdict.threshold) if misfit is None else misfit
        misfit = describe_classes(base, model, counts[:, ~sides], n)
    return replace(verdict, model=model, kind_counts=counts[:, sides], misfit=misfit)


def find_sides(model: RowModel, known: Known, tuning: Tuning) -> NDArray[np.bool_]:
    """Return which components are bad, as known rows say; shape (K,).

    A component changes sides if a row that is known, at least, puts it there, more of them do than
    do not, and they are not just strays: rows known to be good are about as frequent in it as in
    the main class, or rows known to be bad are several times as frequent.
    """
    if not model.n_others:
        return model.is_bad
    belongs = model.sort(known.rows)[0].astype(np.float64)
    shares = np.append(1 - model.shares.sum(), model.shares)
    good, bad = (belongs[side].sum(axis=0) for side in (~known.is_bad, known.is_bad))
    good_rate, bad_rate = good / shares, bad / shares
    to_good = (good[1:] >= tuning.known_least) & (good > bad)[1:]
    to_good &= good_rate[1:] >= tuning.known_stray * good_rate[0]
    to_bad = (bad[1:] >= tuning.known_least) & (bad > good)[1:]
    to_bad &= bad_rate[1:] >= bad_rate[0] / tuning.known_stray
    is_bad: NDArray[np.bool_] = np.where(model.is_bad, ~to_good, to_bad)
    return is_bad


def _excuse_filters(model: RowModel, known: Known, sample: Sample) -> bool:
    """Whether rows known to be good are about as frequent among filtered rows as elsewhere."""
    if not model.filters:
        return False
    only = replace(RowModel.of_good_rows(model.good), filters=model.filters)
    taken = [1 - only.weigh(rows).astype(np.float64) for rows in (known.rows, sample.rows)]
    share = float(taken[1].mean())
    good, bad = (float(taken[0][side].sum()) for side in (~known.is_bad, known.is_bad))
    kept = float((1 - taken[0])[~known.is_bad].sum()) / max(1 - share, 1e-9)
    least = max(sample.tuning.known_least, bad)
    return good >= least and good / max(share, 1e-9) >= sample.tuning.known_stray * kept


def _add_missed_kind(sample: Sample, model: RowModel, known: Known) -> RowModel:
    """Return the model with a kind for the known bad rows that none of its kinds holds, if any.

    They are a start like any other: it must find rows like them, and earn its description.
    """
    tuning, layout = sample.tuning, sample.rows.layout
    belongs = model.sort(known.rows)[0] if model.n_others else np.ones((known.rows.n_rows, 1))
    held = belongs[:, 1:][:, model.is_bad].sum(axis=1)
    is_missed = known.is_bad & (held < 0.5)
    if is_missed.sum() < tuning.known_start:
        return model
    families = Families(layout, sample.prior, sample.plain_counts)
    density = model.log_density(sample.rows)
    missed = known.rows.count(is_missed.astype(np.float64))
    start = families.tie(missed[:, None], model.good).tables[:, 0]
    shares = tuning.known_share * np.array([0.2, 1.0, 5.0])
    starts = np.repeat(start[:, None], len(shares), axis=1)
    tables, shares, worth = race(
        sample, families, density, model.good, starts, shares, tuning.known_steps
    )
    for k in np.argsort(-worth):
        if worth[k] > 0 and shares[k] <= tuning.standing_share:
            more = replace(model, shares=model.shares * (1 - shares[k]))
            more = more.with_component(tables[:, k], float(shares[k]))
            if more.sort(known.rows)[0][is_missed, -1].mean() > 0.5:
                return more
    return model


def describe_classes(misfit: Misfit, model: RowModel, counts: Vector, n_rows: float) -> Misfit:
    """Return how well a network fits rows of which these classes are good.

    Parameters
    ----------
    misfit : before some components changed sides.
    counts : weight of each class beside the main one on each cell; shape (M, classes).
    """
    is_class = ~model.is_bad
    return replace(
        misfit,
        is_exact=misfit.is_exact and not is_class.any(),
        nats=_explained(model, is_class, counts, n_rows),
        n_classes=int(is_class.sum()),
    )


def _explained(model: RowModel, which: NDArray[np.bool_], counts: Vector, n_rows: float) -> float:
    """Return the nats a row that some components explain beyond the main class."""
    shares = np.clip(model.shares[which], SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    told = (counts * model.evidence[:, which]).sum(axis=0) / max(n_rows, 1.0)
    spent = -shares * np.log(shares) - (1 - shares) * np.log1p(-shares)
    return float(np.maximum(told - spent, 0).sum())


# --- after a fit ----------------------------------------------------------------------------------


def forgive_kinds(fit: RobustFit, kinds: Sequence[int]) -> RowModel:
    """Return the model of a fit in which some kinds of bad rows are classes of the good population.

    Parameters
    ----------
    kinds : columns of `kind_counts`; one more for the rows that no kind holds, which filters and
        repetition speak against.
    """
    model, n_kinds = fit.model, fit.kind_counts.shape[1]
    is_bad = model.is_bad.copy()
    is_bad[np.flatnonzero(is_bad)[[k for k in kinds if k < n_kinds]]] = False
    if n_kinds in kinds:
        model = replace(model, filters=(), repeats=NO_REPEATS)
    return replace(model, is_bad=is_bad)


def trust_kinds(
    layout: Layout,
    fit: RobustFit,
    kinds: Sequence[int],
    unheld: Vector,
    judged: Judged | None = None,
) -> RobustFit:
    """Return a fit that takes some kinds of bad rows for classes of the good population.

    Nothing is learned again. Without the rows, the counts of a kind's rows are known, and join
    those of the good.

    Parameters
    ----------
    kinds : as in `forgive_kinds`.
    unheld : weight of the rows that no kind holds on each cell; shape (M,).
    judged : all rows, by the model that `forgive_kinds` returns; None if they are not at hand.
    """
    model, n_kinds = forgive_kinds(fit, kinds), fit.kind_counts.shape[1]
    is_chosen, joins = np.isin(np.arange(n_kinds), kinds), fit.model.is_bad & ~model.is_bad
    joining, misfit = fit.kind_counts[:, is_chosen], fit.misfit
    if is_chosen.any():
        last = fit.rounds[-1]
        before = misfit or Misfit(True, 0.0, 0, last.eigenvalues[0], last.threshold)
        misfit = replace(
            before,
            is_exact=False,
            nats=before.nats + _explained(model, joins, joining, fit.n_rows),
            n_classes=before.n_classes + int(is_chosen.sum()),
        )
    if judged is not None:
        counts, n = judged.counts, judged.total
    else:
        rest = unheld if n_kinds in kinds else np.zeros(layout.n_cells)
        counts = np.minimum(fit.counts + joining.sum(axis=1) + rest, fit.plain_counts)
        n = float(model.shares[joins].sum()) * fit.n_rows + float(sum_over_rows(layout, rest))
        n = min(fit.n_trusted + n, fit.n_rows)
    removed = max(0.0, 1 - n / fit.n_rows)
    status = f"{removed:.2%} of the rows' weight is distrusted. {TRUSTED_UNHELD}"
    if misfit is not None and is_chosen.any():
        status = say_misfit(removed, misfit)
    return replace(
        fit,
        counts=counts,
        weights=None if judged is None else judged.trust,
        n_trusted=n,
        model=model,
        kind_counts=fit.kind_counts[:, ~is_chosen],
        misfit=misfit,
        converged=True,
        status=status,
    )
