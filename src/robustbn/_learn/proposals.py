"""Where kinds of bad rows come from: rows that a filter marks, and kinds cut in two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import Expansion, normalise_counts, uniform_tables
from robustbn._core.layout import Codes
from robustbn._core.protocols import LoadCodes, Rows, RowVector, Vector
from robustbn._core.result import Round
from robustbn._core.row_model import Draw, RowModel
from robustbn._core.spectrum import top_eigenpairs
from robustbn._core.tuning import TUNING, Tuning
from robustbn._learn.population import Explained, explain


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from, and what stays the same while that is done.

    Parameters
    ----------
    rows : the rows.
    base : fixed weight of each, lower than given where a row is repeated too often; shape (N,).
    n_given : what all rows together weigh as they were given.
    draw : draws rows from tables.
    ceiling : largest share of the rows that may be distrusted, below 1/2.
    tell : is told of every round.
    codes : of the rows, where they are at hand; shape (N, d).
    load : encodes some of the codes.
    most_copies : that speak against no row.
    """

    rows: Rows
    base: RowVector
    n_given: float
    draw: Draw
    ceiling: float
    tuning: Tuning = TUNING
    tell: Callable[[Round], None] = lambda _: None
    codes: Codes | None = None
    load: LoadCodes | None = None
    most_copies: int = 0

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.base.sum(dtype=np.float64))

    @cached_property
    def noise(self) -> float:
        """What sampling does to the tables: `sqrt(free parameters / rows)`."""
        return float(np.sqrt(self.rows.layout.n_free / max(self.total, 1.0)))

    @cached_property
    def plain_counts(self) -> Vector:
        """Weight of the rows that touch each cell; shape (M,)."""
        return self.rows.count(self.base)

    @cached_property
    def prior(self) -> Vector:
        """Tables of all rows, smoothed: what components say where they have no rows; (M,)."""
        layout = self.rows.layout
        return normalise_counts(layout, self.plain_counts, uniform_tables(layout))

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the rows if all are of one class."""
        return float(self.plain_counts @ np.log(self.prior))

    def take(self, is_taken: NDArray[np.bool_]) -> tuple[Rows, NDArray[np.int64] | slice]:
        """Return those rows, and which they are; all of them if those are most."""
        which = np.flatnonzero(is_taken)
        if self.codes is None or self.load is None or 2 * len(which) > self.rows.n_rows:
            return self.rows, slice(None)
        return self.load(self.codes[which]), which

    def explain(self, start: RowModel, max_steps: int | None = None) -> Explained:
        """Fit a model to the rows from a start."""
        return explain(
            self.rows,
            self.base,
            start,
            self.prior,
            self.tuning,
            max_steps=max_steps,
            take=self.take,
        )

    def with_kind(self, model: RowModel, marked: RowVector, prior: Vector) -> RowModel:
        """Return the model with one more kind of bad rows: those that are marked, by weight."""
        pseudo_counts = self.tuning.kind_prior * prior
        tables = normalise_counts(self.rows.layout, self.rows.count(marked), pseudo_counts)
        return model.with_component(tables, float(marked.sum(dtype=np.float64)) / self.total)


def propose_kind(
    sample: Sample, model: RowModel, weights: RowVector, marked: RowVector
) -> RowModel:
    """Return a start with one more kind, and good tables without it.

    Parameters
    ----------
    weights : trusted so far; shape (N,).
    marked : what of it is now distrusted; shape (N,).
    """
    kept = sample.rows.count(weights - marked)
    good = normalise_counts(sample.rows.layout, kept, sample.prior)
    return sample.with_kind(replace(model, good=good), marked, sample.prior)


def split_kinds(sample: Sample, explained: Explained) -> Explained:
    """Split kinds that are not like networks, as long as that changes the verdicts."""
    tuning, n_free = sample.tuning, sample.rows.layout.n_free
    unsure = tuning.split_unsure * sample.noise
    most = tuning.split_growth * explained.model.share_bad
    tried: set[int] = set()
    while explained.model.n_others < tuning.kind_most:
        if explained.ambiguity < unsure / tuning.split_sure:
            break
        is_unsure = explained.ambiguity > tuning.split_sure * unsure
        split = split_widest(sample, explained, tried, 0.0 if is_unsure else tuning.split_edge)
        if split is None:
            break
        kind, start = split
        finer = sample.explain(start, tuning.split_steps)
        if finer.log_likelihood - explained.log_likelihood < tuning.split_gain * n_free:
            tried.add(kind)
            continue
        moved = float(sample.base @ np.abs(finer.good - explained.good)) / sample.total
        if moved < tuning.split_moved * sample.noise:
            break
        finer = sample.explain(finer.model)
        if finer.model.share_bad > most:  # it would explain good rows away
            break
        explained, tried = finer, set()
    return explained


def split_widest(
    sample: Sample, explained: Explained, tried: set[int], least: float
) -> tuple[int, RowModel] | None:
    """Cut in two the kind whose rows are least like a network, along its top direction.

    Returns its number and the model to start from, or None when all kinds look like networks.

    Parameters
    ----------
    tried : kinds to leave alone.
    least : a kind is cut when its top eigenvalue is at least so many times a network's.
    """
    model, tuning, best = explained.model, sample.tuning, None
    for k in np.flatnonzero(model.is_bad).tolist():
        belongs = explained.components[:, k]
        rows, which = sample.take(belongs > tuning.split_heeded)
        weights = (sample.base * belongs)[which]
        n = float(weights.sum())
        if k in tried or n < tuning.split_rows:
            continue
        expansion = Expansion.at_weights_of(rows, weights, tuning.spectrum_damping)
        center, depth = np.zeros(expansion.dim), tuning.split_depth
        spectrum = top_eigenpairs(expansion, weights, center, n, depth=depth)
        ratio = rows.layout.n_free / n
        edge = 1 + 2 * np.sqrt(ratio) + ratio
        excess = (spectrum.top / edge - 1) * n
        if spectrum.top > least * edge and (best is None or excess > best[0]):
            best = (excess, k, expansion.table(spectrum.vectors[:, :1]))
    if best is None:
        return None
    _, k, along = best
    side = sample.rows.project(along)[:, 0] > 0
    parts = model.without_component(k)
    for half in (side, ~side):
        marked = sample.base * explained.components[:, k] * half
        parts = sample.with_kind(parts, marked, model.others[:, k])
    return k, parts
