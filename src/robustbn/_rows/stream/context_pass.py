"""Names and context of rows that are read in stretches: one more pass, once they are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Column, Rows, RowVector, Vector
from robustbn._rows.context_counts import ChooseRuns, ContextStretch, CountPairs, RowCounter
from robustbn._rows.stream.data import RowsInStream
from robustbn._rows.stream.parts import Block, make_ahead
from robustbn._rows.stream.weights import WeightFiles
from robustbn._tables.aside import Aside, AsidePlan, AsideReader, say_files
from robustbn._tables.coder import Tally
from robustbn._tables.context import ContextCoder
from robustbn._tables.values import nothing_in
from robustbn.exceptions import DataError

MOST_HELD = 2**28  # bytes of context; with more, rows are counted and not held
STRETCHES_AHEAD = 2  # are read while one is counted: names are large
BYTES_A_VALUE = 4  # of context, at the most


@dataclass(frozen=True, eq=False)
class AsidePass:
    """Reads names and context of a stream whose rows were judged."""

    data: RowsInStream  # the stream
    plan: AsidePlan  # which columns
    # in each row that was read, if it is held; otherwise rows are judged again
    trust: RowVector | None
    weigh: Callable[[Rows], RowVector]  # judges rows
    shown: NDArray[np.int64]  # numbers of the rows that may be shown, in order
    # where names are written with the trust in each row, if anywhere
    weight_files: WeightFiles | None = None

    @property
    def can_be_held(self) -> bool:
        """Whether the group of each row in each column of context fits into memory."""
        n_bytes = BYTES_A_VALUE * self.data.surveyed.n_read * len(self.plan.context)
        return self.trust is not None and n_bytes <= MOST_HELD

    def read(self, choose_runs: ChooseRuns) -> Aside:
        """Return names and context."""
        surveyed, stream = self.data.surveyed, self.data.stream
        n_read, is_held = surveyed.n_read, self.can_be_held
        of_files = {n: sum(surveyed.reads[k] for k in parts) for n, parts in stream.files.items()}
        firsts = np.cumsum([0, *of_files.values()])
        counter = RowCounter(tuple(self.plan.context), say_files(list(of_files)), n_read)
        held = self.plan if is_held else replace(self.plan, context={})
        coders, reader = {} if is_held else self.plan.coders(), AsideReader(held, self.shown)
        if self.plan.columns or not is_held:
            for columns, stretch in self._stretches(self.plan.columns, coders):
                if not is_held:
                    counter.add(stretch)
                names = reader.add(columns)
                if self.weight_files is not None:
                    first = stretch.start - int(firsts[stretch.file])
                    self.weight_files.add(stretch.file, first, stretch.trust, names)
        if self.weight_files is not None:
            self.weight_files.add_empty(self.data.files_read, self.plan.names)
        aside = replace(reader.finish(list(of_files.items()) if is_held else ()), n_rows=n_read)
        if is_held:
            return aside
        return replace(aside, counted=counter.pair_up(choose_runs, self._count_pairs))

    def _count_pairs(self, count: CountPairs, named: set[str]) -> Vector:
        """Return how many rows belong to groups of these columns two by two."""
        wanted = tuple(n for n in self.plan.context if n in named) or self.plan.columns[:1]
        return count(stretch for _, stretch in self._stretches(wanted, self.plan.coders()))

    def _stretches(
        self, names: Sequence[str], coders: Mapping[str, ContextCoder]
    ) -> Iterator[tuple[dict[str, Column], ContextStretch]]:
        """Yield columns of all rows, and those of context coded, with the trust in the rows."""
        stream = self.data.stream
        depth = stream.may_be_ahead(STRETCHES_AHEAD)
        with closing(make_ahead(self._blocks(names), depth)) as blocks:
            for part, start, found, block in blocks:
                if block is not None:
                    trust = self.data.judge_block(block, self.weigh)
                elif self.trust is not None:
                    trust = self.trust[start : start + len(found[0].values)]
                columns = dict(zip(names, found, strict=True))
                raws = {n: coders[n].code(column) for n, column in columns.items() if n in coders}
                file = stream.file_numbers[stream.parts[part].name]
                yield columns, ContextStretch(start, file, raws, trust)

    def _blocks(
        self, names: Sequence[str]
    ) -> Iterator[tuple[int, int, tuple[Column, ...], Block | None]]:
        """Yield columns of every part, and what is to be judged where the trust is not held."""
        stream, start = self.data.stream, 0
        for k, n_rows in enumerate(self.data.surveyed.reads):
            end = start + n_rows
            if self.data.is_skipped(k):
                continue
            if self.trust is None:
                for block in stream.read(k, Tally(), names):
                    yield k, start, block.beside, block
                    start += block.span.n_read
            elif stream.has_any(k, names):
                for columns in stream.read_beside(k, names):
                    yield k, start, columns, None
                    start += len(columns[0].values)
            elif n_rows:
                yield k, start, tuple(nothing_in(n_rows) for _ in names), None
                start = end
            if start != end:
                raise DataError(
                    f"{stream.parts[k].name} has changed while it was read: the first pass found "
                    f"{n_rows:,} rows, this one {n_rows + start - end:,}. It must give the same "
                    "rows in every pass."
                )


def read_some(data: RowsInStream, names: Sequence[str]) -> None:
    """Read some columns of every part, and forget them."""
    for k in range(len(data.stream.parts)):
        if not data.is_skipped(k):
            for _ in data.stream.read_beside(k, names):
                pass
