"""Rows that come again: blocks in the same order, as of a file appended twice, and single rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import FACTOR, NumberRows, RepeatedBlock, RepeatedPairs
from robustbn._core.protocols import Copied
from robustbn._rows.kernels import load_kernels

LEAST_ROWS = 10  # of a block: shorter ones are told as single rows, if at all
MOST_ANCHORS = 500_000  # rows that are compared first: in ten times as many rows every tenth
LEAST_NATS = 20.0  # evidence for a block beyond chance, all pairs of rows considered
BY_CHANCE = 1e-3  # pairs of stretches that are equal by chance, in all of the table
LONGEST_STRETCH = 60  # rows that are compared at once: where more are needed, rows say too little
MOST_OFFSETS = 20  # distances between a block and its copy that are tried, the most frequent first
LEAST_CHANGES = 0.5  # share of a block's rows that differ from the one before: sorted rows do not
MOST_BLOCKS = 5  # that are returned, the longest first
CLEAR = 2.33  # standard errors: one of 100 tables of rows that are all equally likely has more
CLEAR_OF_TWO = 2.58  # one of 200: where rows are compared in two ways
NEAR = 12  # rows on either side of a copy, that a row is compared with
CHANGED = 0.1  # share of the rows of a copy that were changed: few, but it happens
GAP = 2  # rows in a row that may differ inside of a block: it was changed here and there

Prints = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RowPrints:
    """What rows are known by: equal where rows are, the numbers that were cut included."""

    codes: Prints  # prints of the states; shape (N,)
    # prints of the numbers before they were cut, 0 where they are not known; shape (N,)
    numbers: Prints
    kernels: str | None = None  # that find prints which occur more than once

    @classmethod
    def of(
        cls,
        codes: Prints,
        numbers: NumberRows,
        kept: NDArray[np.int64],
        kernels: str | None = None,
    ) -> RowPrints:
        """Return the prints of rows, by their states and by the numbers of the rows `kept`."""
        return cls(codes, numbers.print_rows(kept), kernels)

    @property
    def every(self) -> int:
        """Of how many prints one is kept in `some`: of long tables, those that end in zeros."""
        return 1 << max(0, (len(self.codes) - 1).bit_length() - MOST_ANCHORS.bit_length() + 1)

    @cached_property
    def some(self) -> NDArray[np.int64]:
        """The rows with some of the prints, each with all rows that have the same."""
        ends = self.codes.astype(np.uint16)
        return np.flatnonzero((ends & np.uint16(min(self.every, 2**16) - 1)) == 0)

    @cached_property
    def copied(self) -> Copied:
        """Of `some`, the rows whose states occur more than once."""
        found = self.find_copied(self.codes[self.some])
        return replace(found, first=self.some[found.first], rows=self.some[found.rows])

    def find_copied(self, prints: Prints) -> Copied:
        """Return the prints that occur more than once, and where."""
        return load_kernels(self.kernels).find_copied(prints, 2)

    def have_other_numbers(self, some: Any, others: Any) -> NDArray[np.bool_]:
        """Return whether rows are known to have other numbers than others."""
        a, b = self.numbers[some], self.numbers[others]
        other: NDArray[np.bool_] = (a != b) & (a != 0) & (b != 0)
        return other

    def are_same(self, some: Any, others: Any) -> NDArray[np.bool_]:
        """Return whether rows are the same as others, as far as is known."""
        same: NDArray[np.bool_] = self.codes[some] == self.codes[others]
        return same & ~self.have_other_numbers(some, others)


def find_blocks(rows: RowPrints) -> list[RepeatedBlock]:
    """Return blocks of rows that come again in the same order, the longest first.

    Pairs of equal stretches, each so long that two are hardly ever equal by chance, vote for the
    distance between them; along each distance with votes, runs of equal rows are looked for. A run
    of L rows is worth

        S log((1 - e) / c) + (L - S) log(e / (1 - c)) - 2 log N nats,

    S of them being equal, e the share of rows that were changed in a copy, and c the chance that
    two rows are equal: of the table, or, if that is more, of the run and rows near its copy. In a
    table that is sorted, or repeats a pattern, these are alike. Stretches begin at rows that occur
    more than once; in a long table, at those whose print ends in zeros, so that time and memory
    beside the prints are bounded and a block is found wherever it stands.
    """
    prints, n = rows.codes, len(rows.codes)
    if n < 2 * LEAST_ROWS:
        return []
    seen = rows.copied.seen
    chance = rows.every * float((seen * (seen - 1.0)).sum() / (n * (n - 1.0)))
    worth = -float(np.log(np.clip(chance, 1.0 / n**2, 1 - 1e-9)))
    width = int(np.ceil((2 * np.log(n) + np.log(1 / BY_CHANCE)) / worth))
    if width > min(LONGEST_STRETCH, n // 2):
        return []
    first = np.sort(rows.copied.rows)
    first = first[first <= n - width]
    pairs = rows.find_copied(_join(prints, first, width))
    places = first[pairs.rows]
    is_pair = np.ones(len(places), bool)
    is_pair[np.cumsum(pairs.seen)[:-1]] = False  # from one print to the next
    apart = np.diff(places)[is_pair[1:]]
    offsets, votes = np.unique(apart, return_counts=True)
    likely = np.argsort(-votes, kind="stable")[:MOST_OFFSETS]
    found: list[RepeatedBlock] = []
    for offset in offsets[likely].tolist():
        found += _find_runs(rows, int(offset), worth, 2 * np.log(n))
    found.sort(key=lambda block: -block.n_rows)
    return _without_overlap(found)[:MOST_BLOCKS]


def find_pairs(
    rows: RowPrints, is_told: NDArray[np.bool_], clear: float = CLEAR
) -> RepeatedPairs | None:
    """Return the rows that appear exactly twice, if independent rows have fewer of them.

    Of independent rows, whatever their distribution, f_k appear k times, and k! f_k is expected to
    be the k-th moment of one measure, up to a factor. So `(2 f_2)^2 <= f_1 6 f_3`, by Cauchy and
    Schwarz: rows that often appear twice by chance appear three times, too. Copied rows do not.
    Of 807 public tables two have more pairs than that: one of polls, and colours with two names.
    Where a long table has too many is told by some of its prints.

    is_told : rows that are known to be copies already; shape (N,).
    clear : standard errors by which they are too many.
    """
    found = _find_pairs(rows, is_told, rows.some, rows.copied, clear)
    if found is None or rows.every == 1:
        return found
    every = np.arange(len(is_told))
    return _find_pairs(rows, is_told, every, rows.find_copied(rows.codes), clear)


def find_clearer_pairs(
    rows: RowPrints, is_told: NDArray[np.bool_], columns: Mapping[str, NDArray[np.integer[Any]]]
) -> RepeatedPairs | None:
    """Return the pairs of rows that are too many, by the way of comparing that shows them best.

    With columns of context, fewer rows are alike by chance; without, a copy may differ in them.

    columns : the group of each row in some columns of context; shape (N,) each.
    """
    if not columns:
        return find_pairs(rows, is_told)
    codes = rows.codes
    for groups in columns.values():
        codes = codes * FACTOR + groups.astype(np.uint64)
    alone = find_pairs(rows, is_told, CLEAR_OF_TWO)
    both = find_pairs(replace(rows, codes=codes), is_told, CLEAR_OF_TWO)
    if both is None or (alone is not None and _excess(alone) >= _excess(both)):
        return alone
    return replace(both, context=tuple(columns))


def _excess(pairs: RepeatedPairs) -> float:
    """Return by how many times pairs are too many."""
    return len(pairs.first) / pairs.most


def _find_pairs(
    rows: RowPrints,
    is_told: NDArray[np.bool_],
    some: NDArray[np.int64],
    copied: Copied,
    clear: float,
) -> RepeatedPairs | None:
    left = np.sort(copied.rows)
    left = left[~is_told[left]]
    prints = rows.codes[left]
    if rows.numbers.all():  # states alone say less, but are known of all rows
        prints = prints * FACTOR + rows.numbers[left]
    copied = rows.find_copied(prints)
    twice, thrice = (int(np.count_nonzero(copied.seen == k)) for k in (2, 3))
    once = int(np.count_nonzero(~is_told[some])) - int(copied.seen.sum())
    # square roots of Poisson numbers have a standard error of 1/2; one more, for small ones
    most = float(np.sqrt(1.5 * once) * (np.sqrt(thrice + 1) + clear / 2))
    if twice - clear * np.sqrt(twice) <= most:
        return None
    pairs = left[copied.rows[np.repeat(copied.seen == 2, copied.seen)]].reshape(-1, 2)
    pairs = np.sort(pairs, axis=1)
    first, again = pairs[np.argsort(pairs[:, 1])].T
    return RepeatedPairs(first, again, most)


def _join(prints: Prints, first: NDArray[np.int64], width: int) -> Prints:
    """Return a print of each stretch of so many rows, by its first row."""
    joined = np.zeros(len(first), np.uint64)
    for k in range(width):
        joined = joined * FACTOR + prints[first + k]
    return joined


def _find_runs(rows: RowPrints, offset: int, worth: float, price: float) -> list[RepeatedBlock]:
    """Return the runs of rows that are equal to those so many rows later."""
    sides = slice(None, -offset), slice(offset, None)
    is_same = rows.codes[sides[0]] == rows.codes[sides[1]]
    is_other = rows.have_other_numbers(*sides)
    is_known = (rows.numbers[sides[0]] > 0) & (rows.numbers[sides[1]] > 0)
    places = np.flatnonzero(is_same)
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) > GAP + 1)
    firsts = places[np.append(0, breaks + 1)]
    lasts = places[np.append(breaks, len(places) - 1)]
    found = []
    is_equal = is_same & ~is_other
    for start, end in zip(firsts.tolist(), lasts.tolist(), strict=True):
        equal = start + np.flatnonzero(is_equal[start : end + 1])  # rows beside may have its states
        first, last = (int(equal[0]), int(equal[-1])) if len(equal) else (start, start - 1)
        n_rows = last - first + 1
        if n_rows < LEAST_ROWS or n_rows > offset:
            continue
        n_same, n_other, n_known = (
            int(each[first : last + 1].sum()) for each in (is_same, is_other, is_known)
        )
        n_same -= n_same * n_other // max(n_known, 1)  # where they are not known, as many are other
        chance = max(_find_chance(rows.codes, first, last, offset), np.exp(-worth))
        told = n_same * np.log((1 - CHANGED) / chance)
        nats = float(told + (n_rows - n_same) * np.log(CHANGED / (1 - chance)) - price)
        if nats < LEAST_NATS:
            continue
        n_changes = int(np.count_nonzero(np.diff(rows.codes[first : last + 1])))
        if n_changes >= LEAST_CHANGES * n_rows:
            found.append(RepeatedBlock(first, first + offset, n_rows, nats))
    return found


def _find_chance(prints: Prints, first: int, last: int, offset: int) -> float:
    """Return how often rows of a run equal others near their copies, less a standard error."""
    places, most = np.arange(first, last + 1), 0.0
    for step in (*range(-NEAR, 0), *range(1, NEAR + 1)):
        others = places + offset + step
        some, others = places[others < len(prints)], others[others < len(prints)]
        n_equal = float(np.count_nonzero(prints[some] == prints[others]))
        most = max(most, (n_equal - np.sqrt(n_equal)) / len(places))
    return most


def _without_overlap(blocks: list[RepeatedBlock]) -> list[RepeatedBlock]:
    """Return the blocks whose copies do not lie in the copy of a longer one."""
    kept: list[RepeatedBlock] = []
    for block in blocks:
        end = block.again + block.n_rows
        if all(end <= k.again or block.again >= k.again + k.n_rows for k in kept):
            kept.append(block)
    return kept
