"""The trust in rows: a weight for each, how it is spread, what is known of rows once judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import RowVector, Vector

TRUST_EDGES = np.linspace(0, 1, 21)
DOUBT = 0.5  # a row with less trust is distrusted
LOOKED_AT_ONCE = 2**16  # numbers: they stay in the cache
MOST_DRAWN = 20_000  # rows that are kept, to look for what the network misses


def even_weights(n_rows: int) -> RowVector:
    """Return a weight of 1 for each row; shape (N,), not to be written to. O(1) time and memory."""
    return np.broadcast_to(np.float32(1), (n_rows,))


def is_even(weights: RowVector) -> bool:
    """Whether weights are those of `even_weights`, or a part of them. O(1): looks at one."""
    return weights.strides == (0,) and len(weights) > 0 and bool(weights[0] == 1)


def sum_weights(weights: RowVector) -> float:
    """Return the sum, in double; O(1) time if all are 1."""
    return float(len(weights)) if is_even(weights) else float(weights.sum(dtype=np.float64))


def spread(values: NDArray[Any], kept: NDArray[np.int64] | None, n_rows: int) -> NDArray[Any]:
    """Return values of the rows that are kept at their places among all; NaN for those left out."""
    if kept is None:
        return values
    among_all = np.full(n_rows, np.nan, np.result_type(values, np.float32))
    among_all[kept] = values
    return among_all


@dataclass(frozen=True, eq=False)
class Trust:
    """How the trust in rows is spread: what is left where nobody holds a number a row."""

    counts: Vector  # rows with a trust in each of 20 equal intervals from 0 to 1
    n_distrusted: int  # rows with less than one half
    # total, squares: sums of the trust and of its square
    total: float
    squares: float

    @classmethod
    def of(cls, weights: RowVector) -> Trust:
        """Return how the trust in some rows is spread; O(N), or O(1) if all have the trust of 1."""
        if is_even(weights):
            n = float(len(weights))
            return cls(np.append(np.zeros(len(TRUST_EDGES) - 2), n), 0, n, n)
        counts, total, squares, n_distrusted = np.zeros(len(TRUST_EDGES) - 1), 0.0, 0.0, 0
        for start in range(0, len(weights), LOOKED_AT_ONCE):
            part = weights[start : start + LOOKED_AT_ONCE]
            low = part[part < TRUST_EDGES[-2]]  # mostly few
            counts += np.histogram(low, TRUST_EDGES)[0]
            counts[-1] += len(part) - len(low)
            total += float(part.sum(dtype=np.float64))
            squares += float(np.square(part, dtype=np.float64).sum())
            n_distrusted += int(np.count_nonzero(low < DOUBT))
        return cls(counts, n_distrusted, total, squares)

    @property
    def effective_rows(self) -> float:
        """Rows that would tell as much if all were trusted: `(sum w)^2 / sum w^2`."""
        return self.total**2 / self.squares if self.squares else 0.0

    def scaled(self, factor: float) -> Trust:
        """Return what so many times as many rows of the same kind would have."""
        return Trust(
            self.counts * factor,
            round(self.n_distrusted * factor),
            self.total * factor,
            self.squares * factor,
        )


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """What is known of the rows of a fit once they are judged."""

    # trust in each row that was read, NaN for those left out; None if there are too many
    weights: RowVector | None
    trust: Trust  # how it is spread
    # numbers, codes, doubts: of the rows that are distrusted, as far as they are at hand: which
    # they are, their codes of shape (n, d), and the trust in them
    numbers: NDArray[np.int64]
    codes: Codes
    doubts: RowVector
    # drawn, drawn_codes, drawn_trust: some rows, drawn evenly from all: which they are, their
    # codes, and the trust in them
    drawn: NDArray[np.int64]
    drawn_codes: Codes
    drawn_trust: RowVector

    def judged_again(self, weigh: Callable[[Codes], RowVector]) -> JudgedRows:
        """Return what is known once the rows at hand are judged anew; others stay trusted."""
        doubts, drawn_trust = weigh(self.codes), weigh(self.drawn_codes)
        weights, still = self.weights, doubts < DOUBT
        if weights is None:
            spreading = Trust.of(drawn_trust).scaled(self.trust.counts.sum() / len(drawn_trust))
        else:
            weights = weights.copy()
            weights[self.numbers] = doubts
            spreading = Trust.of(weights[~np.isnan(weights)])
        return replace(
            self,
            weights=weights,
            trust=spreading,
            numbers=self.numbers[still],
            codes=self.codes[still],
            doubts=doubts[still],
            drawn_trust=drawn_trust,
        )

    def candidates(self) -> tuple[NDArray[np.int64], Codes, RowVector]:
        """Return rows that a person may be asked about, none twice: numbers, codes, trust."""
        some = _draw_evenly(len(self.doubts))[: len(self.doubts)]
        numbers = np.concatenate([self.numbers[some], self.drawn])
        _, first = np.unique(numbers, return_index=True)
        codes = np.concatenate([self.codes[some], self.drawn_codes])
        return (
            numbers[first],
            codes[first],
            np.concatenate([self.doubts[some], self.drawn_trust])[first],
        )

    @classmethod
    def of(
        cls,
        trust: RowVector,
        n_rows: int,
        numbers_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
        codes_of: Callable[[NDArray[np.int64]], Codes],
        *,
        weights: RowVector | None,
        most: int | None = None,
    ) -> JudgedRows:
        """Return what is known of a table's rows from the trust in some or all of them."""
        nowhere = np.empty(0, np.int64)
        doubtful = nowhere if is_even(trust) else np.flatnonzero(trust < DOUBT)[:most]
        if weights is None or len(trust) == n_rows:
            spreading = Trust.of(trust).scaled(n_rows / max(len(trust), 1))
        else:
            spreading = Trust.of(weights[~np.isnan(weights)])
        drawn = _draw_evenly(len(trust))
        return cls(
            weights,
            spreading,
            numbers_of(doubtful),
            codes_of(doubtful),
            trust[doubtful],
            numbers_of(drawn),
            codes_of(drawn),
            trust[drawn],
        )


def _draw_evenly(n_rows: int) -> NDArray[np.int64]:
    """Return the numbers of at most `MOST_DRAWN` rows, from the first to the last."""
    drawn: NDArray[np.int64] = np.linspace(0, n_rows - 1, MOST_DRAWN).astype(np.int64)
    is_new: NDArray[np.bool_] = np.append(True, drawn[1:] != drawn[:-1])
    return drawn[is_new]
