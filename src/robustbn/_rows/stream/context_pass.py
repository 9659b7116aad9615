"""Names and context of rows that are read in stretches: one more pass, once they are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import CountedContext
from robustbn._core.protocols import Column, Rows, RowVector
from robustbn._rows.context_counts import ChooseRuns, ContextStretch, RowCounter, count_pairs
from robustbn._rows.stream.ahead import make_ahead
from robustbn._rows.stream.data import RowsInStream
from robustbn._rows.stream.parts import Block
from robustbn._rows.stream.weights import WeightFiles
from robustbn._tables.aside import (
    Aside,
    AsidePlan,
    AsideReader,
    say_files,
)
from robustbn._tables.coder import Tally
from robustbn._tables.context import ContextCoder
from robustbn._tables.values import nothing_in
from robustbn.exceptions import DataError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_HELD = 2**28  # bytes of context; with more, rows are counted and not held
STRETCHES_AHEAD = 2  # are read while one is counted: names are large
BYTES_A_VALUE = 4  # of context, at the most


@dataclass(frozen=True, eq=False)
class Beside:
    """A stretch of columns beside the network's.

    Parameters
    ----------
    part : that it belongs to.
    start : number of its first row among all that were read.
    columns : those that were asked for, by name.
    trust : in its rows, NaN for those left out.
    """

    part: int
    start: int
    columns: Mapping[str, Column]
    trust: RowVector


@dataclass(frozen=True, eq=False)
class AsidePass:
    """Reads names and context of a stream whose rows were judged.

    Parameters
    ----------
    data : the stream.
    plan : which columns.
    trust : in each row that was read, if it is held; otherwise rows are judged again.
    weigh : judges rows.
    shown : numbers of the rows that may be shown, in order.
    weight_files : where names are written with the trust in each row, if anywhere.
    """

    data: RowsInStream
    plan: AsidePlan
    trust: RowVector | None
    weigh: Callable[[Rows], RowVector]
    shown: NDArray[np.int64]
    weight_files: WeightFiles | None = None

    def read(self, choose_runs: ChooseRuns) -> Aside:
        """Return names and context.

        Context of many rows is counted, in memory that does not grow with them; then a second look
        is needed if groups of two columns may belong together.

        Parameters
        ----------
        choose_runs : returns the groups to count two by two.
        """
        n_read, n_columns = self.data.surveyed.n_read, len(self.plan.context)
        is_held = self.trust is not None and BYTES_A_VALUE * n_read * n_columns <= MOST_HELD
        of_files = {
            name: sum(self.data.surveyed.reads[k] for k in parts)
            for name, parts in self.data.stream.files.items()
        }
        counter = RowCounter(tuple(self.plan.context), say_files(list(of_files)), n_read)
        held = self.plan if is_held else replace(self.plan, context={})
        coders, reader = self.plan.coders(), AsideReader(held, self.shown)
        if self.plan.columns or not is_held:
            for stretch in self._stretches(self.plan.columns):
                if not is_held:
                    counter.add(self._code(stretch, coders))
                names = reader.add(stretch.columns)
                if self.weight_files is not None:
                    self._write(self.weight_files, stretch, names)
        self._write_empty()
        aside = replace(reader.finish(list(of_files.items()) if is_held else ()), n_rows=n_read)
        if is_held:
            return aside
        return replace(aside, counted=self._count_pairs(counter, choose_runs))

    def _count_pairs(self, counter: RowCounter, choose_runs: ChooseRuns) -> CountedContext:
        """Return what was counted, with the groups that may belong together counted two by two."""
        tallies, coders = counter.tallies(), self.plan.coders()
        runs = tuple(choose_runs(tallies))
        together = np.zeros((2, len(runs), len(runs)), np.int64)
        if runs:
            named = {tallies[run.column].groups.name for run in runs}
            wanted = tuple(n for n in self.plan.context if n in named) or self.plan.columns[:1]
            for stretch in self._stretches(wanted):
                coded = self._code(stretch, coders)
                together += count_pairs(tallies, runs, counter.numbers, coded)
        return CountedContext(tallies, runs, *together)

    def _code(self, stretch: Beside, coders: Mapping[str, ContextCoder]) -> ContextStretch:
        """Return the context of a stretch, coded."""
        columns = stretch.columns.items()
        raws = {name: coders[name].code(column) for name, column in columns if name in coders}
        stream = self.data.stream
        file = stream.file_numbers[stream.parts[stretch.part].name]
        return ContextStretch(stretch.start, file, raws, stretch.trust)

    def _write(self, files: WeightFiles, stretch: Beside, arrays: dict[str, pa.Array]) -> None:
        stream, part = self.data.stream, stretch.part
        name, of_file = stream.parts[part].name, stream.files[stream.parts[part].name]
        first_of_file = sum(self.data.surveyed.reads[: of_file[0]])
        first = stretch.start - first_of_file
        if not first:
            files.end()
            files.begin(stream.file_numbers[name], {n: a.type for n, a in arrays.items()})
        files.add(first, stretch.trust, arrays)

    def _write_empty(self) -> None:
        """Write the weights of files that have no rows."""
        if self.weight_files is None:
            return
        import pyarrow as pa

        stream, reads = self.data.stream, self.data.surveyed.reads
        for name, parts in stream.files.items():
            if not sum(reads[k] for k in parts) and not self.data.is_skipped(parts[0]):
                self.weight_files.end()
                kinds = dict.fromkeys(self.plan.names, pa.null())
                self.weight_files.begin(stream.file_numbers[name], kinds)

    def _stretches(self, names: Sequence[str]) -> Iterator[Beside]:
        """Yield columns of all rows, with the trust in them."""
        depth = self.data.stream.may_be_ahead(STRETCHES_AHEAD)
        with closing(make_ahead(self._blocks(names), depth)) as blocks:
            for part, start, columns, block in blocks:
                if block is not None:
                    trust = self.data.judge_block(block, self.weigh)
                elif self.trust is not None:
                    trust = self.trust[start : start + len(columns[0].values)]
                yield Beside(part, start, dict(zip(names, columns, strict=True)), trust)

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
                    f"{n_rows:,} rows, this one {n_rows + start - end:,}. It has to give the same "
                    "rows at every pass."
                )


def read_some(data: RowsInStream, names: Sequence[str]) -> None:
    """Read some columns of every part, and forget them."""
    for k in range(len(data.stream.parts)):
        if not data.is_skipped(k):
            for _ in data.stream.read_beside(k, names):
                pass
