"""Rows counted by file, by context and by row number, where nobody holds the group of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import (
    FILE_NAME,
    ContextTally,
    CountedContext,
    GroupRun,
    Groups,
    RowNumbers,
    count_together,
)
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.trust import DOUBT
from robustbn._tables.context import ContextCounts, RawContext, place_rows

ChooseRuns = Callable[[Sequence[ContextTally]], list[GroupRun]]


@dataclass(frozen=True, eq=False)
class ContextStretch:
    """A stretch of rows that were judged, and what they have beside the network's columns."""

    start: int  # number of its first row among all that were read
    file: int  # number of its file
    # columns of context, by name; one that is not there misses every value
    raws: Mapping[str, RawContext]
    trust: RowVector  # in its rows, NaN for those left out

    @property
    def masks(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows were judged, and which are distrusted."""
        return ~np.isnan(self.trust), self.trust < DOUBT

    def raw_of(self, name: str) -> RawContext:
        nothing = RawContext(name, "values", (), np.full(len(self.trust), -1, np.int16))
        return self.raws.get(name, nothing)


CountPairs = Callable[[Iterable[ContextStretch]], Vector]  # of runs; see `count_pairs`


class RowCounter:
    """Counts rows, stretch by stretch; counts of parts add up to those of the whole."""

    def __init__(self, columns: Sequence[str], files: tuple[str, ...], n_rows: int) -> None:
        self.files, self.numbers = files, RowNumbers.of(n_rows)
        self._counts = {name: ContextCounts(name) for name in columns}
        self._of_files = np.zeros((2, len(files) + 1), np.int64)
        self._of_numbers = np.zeros((2, len(self.numbers.starts)), np.int64)

    def add(self, stretch: ContextStretch) -> None:
        for name, counts in self._counts.items():
            counts.add(stretch.raw_of(name), *stretch.masks)
        numbers = 1 + self.numbers.place(stretch.start, len(stretch.trust))
        for k, mask in enumerate(stretch.masks):
            if self.files:
                self._of_files[k, 1 + stretch.file] += np.count_nonzero(mask)
            self._of_numbers[k] += np.bincount(numbers[mask], minlength=len(self.numbers.starts))

    def merge(self, other: RowCounter) -> None:
        for name, counts in self._counts.items():
            counts.merge(other._counts[name])
        self._of_files += other._of_files
        self._of_numbers += other._of_numbers

    def tallies(self) -> tuple[ContextTally, ...]:
        """Return how many rows each group has; the file comes first, the row number last."""
        of_files = ContextTally(Groups(FILE_NAME, self.files, kind="files"), *self._of_files)
        found = [counts.tally() for counts in self._counts.values()]
        of_numbers = ContextTally(self.numbers.groups, *self._of_numbers)
        listed = [of_files if self.files else None, *found, of_numbers]
        return tuple(tally for tally in listed if tally is not None)

    def pair_up(
        self, choose_runs: ChooseRuns, count: Callable[[CountPairs, set[str]], Vector]
    ) -> CountedContext:
        """Return what was counted, and groups that may belong together, counted two by two."""
        tallies = self.tallies()
        runs = tuple(choose_runs(tallies))
        together: Vector = np.zeros((2, 0, 0))
        if runs:
            named = {tallies[run.column].groups.name for run in runs}
            together = count(partial(count_pairs, tallies, runs, self.numbers), named)
        return CountedContext(tallies, runs, *together.astype(np.int64))


def count_pairs(
    tallies: Sequence[ContextTally],
    runs: Sequence[GroupRun],
    numbers: RowNumbers,
    stretches: Iterable[ContextStretch],
) -> Vector:
    """Return how many rows belong to both of two runs of groups, and are distrusted; (2, r, r)."""
    total = np.zeros((2, len(runs), len(runs)))
    for stretch in stretches:
        codes: dict[int, NDArray[Any]] = {}
        for k in {run.column for run in runs}:
            groups = tallies[k].groups
            if groups.kind == "rows":
                codes[k] = numbers.place(stretch.start, len(stretch.trust))
            elif groups.kind == "files":
                codes[k] = np.full(len(stretch.trust), stretch.file)
            else:
                codes[k] = place_rows(groups, stretch.raw_of(groups.name))
        total += count_together(runs, codes, *stretch.masks)
    return total
